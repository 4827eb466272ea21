use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::physical_plan::{
    FileOpener, FileScanConfig, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{
    CastExpr, Column, IsNotNullExpr, IsNullExpr, Literal,
};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use object_store::ObjectStore;

use crate::array::list_depth;
use crate::sql::sources::delegate_source;

/// Wraps a Parquet source so that it accepts a condition only if it can evaluate the condition in
/// every file.
///
/// DataFusion 55 accepts a condition on list columns if it contains IS NULL or `array_has`
/// anywhere. For each file, it then replaces columns that are constant according to the statistics,
/// and simplifies the condition. The simplified condition may be a comparison of lists. The reader
/// cannot evaluate such a comparison and omits it, so the query returns too many rows. Obsolete
/// once the test `stock_row_filters_of_lists_still_vanish` fails. Present only while
/// [`guard_pushdowns`](super::guarded_rules::guard_pushdowns) runs.
#[derive(Clone)]
struct RowFilterSource {
    stock: ParquetSource,
}

/// Makes the Parquet scans of a plan refuse conditions that they would accept but not evaluate.
pub(in crate::sql) fn guard_row_filters(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    replace_sources(plan, |source| {
        let stock = source.downcast_ref::<ParquetSource>()?.clone();
        Some(Arc::new(RowFilterSource { stock }))
    })
}

pub(in crate::sql) fn release_row_filters(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    replace_sources(plan, |source| {
        Some(Arc::new(source.downcast_ref::<RowFilterSource>()?.stock.clone()))
    })
}

fn replace_sources(
    plan: Arc<dyn ExecutionPlan>,
    by: impl Fn(&Arc<dyn FileSource>) -> Option<Arc<dyn FileSource>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let scan = node.downcast_ref::<DataSourceExec>();
        let files = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
        let Some((files, source)) = files.and_then(|files| Some((files, by(files.file_source())?)))
        else {
            return Ok(Transformed::no(node));
        };
        let mut files = files.clone();
        files.file_source = source;
        let scan = DataSourceExec::from_data_source(files);
        Ok(Transformed::yes(scan as Arc<dyn ExecutionPlan>))
    })?;
    Ok(plan.data)
}

impl FileSource for RowFilterSource {
    delegate_source!(stock: table_schema, filter, projection, metrics, file_type, apply_expressions);

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.stock.create_file_opener(store, config, partition)
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.stock.with_batch_size(batch_size)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let schema = self.stock.table_schema().table_schema();
        let accepted = filters.iter().map(|e| {
            // A condition on at most one column is safe: if DataFusion replaces this column with
            // its constant value in a file, the whole condition becomes a constant.
            collect_columns(e).len() <= 1 || stays_evaluable(e, schema)
        });
        let accepted: Vec<bool> = accepted.collect();
        let passed = filters.into_iter().zip(&accepted).filter(|(_, passes)| **passes);
        let passed = passed.map(|(filter, _)| filter).collect();
        let answer = self.stock.try_pushdown_filters(passed, config)?;
        let mut answers = answer.filters.into_iter();
        let filters = accepted.into_iter().map(|passes| match passes {
            true => answers.next().unwrap_or(PushedDown::No),
            false => PushedDown::No,
        });
        Ok(FilterPushdownPropagation {
            filters: filters.collect(),
            updated_node: answer.updated_node.map(|source| {
                match source.downcast_ref::<ParquetSource>().cloned() {
                    Some(stock) => Arc::new(Self { stock }),
                    None => source,
                }
            }),
        })
    }
}

/// Whether every list column of a condition is the direct argument of a function that the reader
/// evaluates, such as IS NULL or `array_has`. DataFusion then cannot simplify the condition to a
/// comparison of lists, which the reader would omit.
fn stays_evaluable(e: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    if let Some(column) = e.downcast_ref::<Column>() {
        return schema
            .fields()
            .get(column.index())
            .is_some_and(|field| list_depth(field.data_type()) == 0);
    }
    let tests_lists = e.is::<IsNullExpr>()
        || e.is::<IsNotNullExpr>()
        || e.downcast_ref::<ScalarFunctionExpr>().is_some_and(|call| {
            matches!(call.name(), "array_has" | "array_has_all" | "array_has_any")
        });
    let children = e.children();
    (tests_lists && children.iter().all(|e| is_column_or_literal(e)))
        || children.into_iter().all(|e| stays_evaluable(e, schema))
}

fn is_column_or_literal(e: &Arc<dyn PhysicalExpr>) -> bool {
    match e.downcast_ref::<CastExpr>() {
        Some(cast) => is_column_or_literal(cast.expr()),
        None => e.is::<Column>() || e.is::<Literal>(),
    }
}
