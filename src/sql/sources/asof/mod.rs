//! `meds_asof`: labels (a subject and a prediction time each) with the history of their subjects.

mod asof_source;
mod inputs;
mod projection_rule;

use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DFSchema, plan_err};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::ExecutionPlan;

pub(in crate::sql) use self::asof_source::AsOfSource;
use crate::io::meds::Labels;
use crate::io::meds_torch::MedsFolder;
use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::base::subquery_parts::uses_only_row;
use crate::sql::sources::meds::MedsTable;
use crate::sql::sources::{
    accept_filters, as_literal_str, describe_table, select_columns, to_local_path,
};

pub use self::asof_source::{label_tasks, unknown_labels};
pub(crate) use self::projection_rule::{keep_asof_order, push_asof_projections};

/// Table function `meds_asof('DIR', 'LABELS')`.
///
/// It returns one row per label, in the order of the labels: `subject_id`, `prediction_time` and
/// the value columns that the labels have (`boolean_value`, ..), then the columns of `meds('DIR')`.
/// Lists of events and measurements end at `prediction_time` (included), so that no query sees
/// later data; static facts (facts without a time) are complete. A label without earlier data has
/// empty lists. Labels of subjects that are not in the data have no row; [`unknown_labels`] counts
/// them. Labels of several tasks in one folder are concatenated; [`label_tasks`] names them.
///
/// The lists of a subject are in memory once, however many labels the subject has: a row is a range
/// of these lists. `ragged_head`, `ragged_tail`, `ragged_slice`, `ragged_flatten`, `ragged_at`,
/// `ragged_lengths` and `ragged_count` are applied to the ranges as far as possible. Then the scan
/// copies the values of the requested columns, batch by batch.
#[derive(Debug, Default)]
pub(crate) struct MedsAsOfFunction;

impl TableFunctionImpl for MedsAsOfFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        if let [data, labels] = args.exprs()
            && let (Some(data), Some(labels)) = (as_literal_str(data), as_literal_str(labels))
        {
            return Ok(Arc::new(MedsAsOfTable::open(
                to_local_path(data)?,
                to_local_path(labels)?,
            )?));
        }
        plan_err!(
            "meds_asof takes two strings, the folder of a MEDS data set and a file or folder of labels, such as meds_asof('tests/data/synthea-meds', 'tests/data/synthea-meds/labels'); found meds_asof({})",
            args.exprs().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        )
    }
}

/// The table of [`MedsAsOfFunction`]: one row per label (a subject and a prediction time), with the
/// history of the subject up to the prediction time.
#[derive(Debug)]
pub(crate) struct MedsAsOfTable {
    folder: MedsFolder,
    labels: Arc<Labels>,
    /// Names of the tasks whose labels are concatenated. Empty if all labels belong to one task.
    tasks: Arc<[String]>,
    /// Columns of the labels, followed by columns of the data.
    schema: SchemaRef,
}

impl MedsAsOfTable {
    /// Opens a MEDS data set or a cohort tensorized by meds-torch-data, and a file or folder of
    /// labels.
    pub(crate) fn open(root: impl AsRef<Path>, labels: impl AsRef<Path>) -> crate::Result<Self> {
        let tasks = Labels::tasks(&labels)?.into();
        let labels = Labels::read(labels)?;
        Ok(Self { tasks, ..Self::try_new(MedsTable::open(root)?, labels)? })
    }

    /// Creates the table from `table`, the data of the subjects, and `labels`. A column that both
    /// have, other than `subject_id`, is an error.
    pub(crate) fn try_new(table: MedsTable, labels: Labels) -> crate::Result<Self> {
        let (folder, of_data) = table.into_parts();
        let mut fields: Vec<FieldRef> = labels.schema().fields().to_vec();
        for field in of_data.fields().iter().filter(|f| f.name() != "subject_id") {
            if fields.iter().any(|f| f.name() == field.name()) {
                return Err(crate::Error::file(
                    folder.root(),
                    format!(
                        "the column {:?} is in the data and also in the labels; rename it in one of the two",
                        field.name()
                    ),
                ));
            }
            fields.push(Arc::clone(field));
        }
        Ok(Self {
            folder,
            labels: Arc::new(labels),
            tasks: Arc::default(),
            schema: Arc::new(Schema::new(fields)),
        })
    }
}

impl TableProvider for MedsAsOfTable {
    describe_table!(Base);

    /// Accepts conditions that depend only on the values of the row, not on subqueries, parameters
    /// or random numbers. The scan evaluates these conditions before it copies values.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        accept_filters(filters, uses_only_row)
    }

    boxed_method!(MedsAsOfTable: scan = plan_scan);
}

impl MedsAsOfTable {
    async fn plan_scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = select_columns(projection, &self.schema);
        let of_table = DFSchema::try_from(Arc::clone(&self.schema))?;
        let filters = filters
            .iter()
            .map(|f| state.create_physical_expr(f.clone(), &of_table))
            .collect::<Result<Vec<_>>>()?;
        let source = AsOfSource::try_new(
            self.folder.clone(),
            (Arc::clone(&self.labels), Arc::clone(&self.tasks)),
            Arc::clone(&self.schema),
            ProjectionExprs::from_indices(&columns, &self.schema),
            filters,
            state.config().target_partitions(),
        )?;
        Ok(DataSourceExec::from_data_source(source.with_limit(limit)))
    }
}
