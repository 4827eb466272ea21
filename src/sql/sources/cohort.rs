//! `FROM meds_cohort('DIR', 'CONFIG.yaml', ..)`: the realizations (matches) of a cohort's criteria.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::plan_err;
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::sqlparser::ast::{Expr as SqlExpr, FunctionArg};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::range_partitions::{divide_shards, limit_rows, read_ranges, write_limit};
use crate::cohorts::{Cohort, CohortColumn, CohortCriteria};
use crate::config::SerrateOptions;
use crate::error::find_original;
use crate::io::meds_torch::MedsFolder;
use crate::sql::base::blocking::run_blocking;
use crate::sql::base::syntax::{split_argument, unquote_text};
use crate::sql::sources::{describe_table, to_local_path};

pub(in crate::sql) const NAME: &str = "meds_cohort";

const SUCH: &str = "meds_cohort('MEDS', 'task.yaml') or meds_cohort('MEDS', 'task.yaml', predicates => 'predicates.yaml')";

/// Number of subjects that are searched at a time.
const BLOCK_SUBJECTS: usize = 256;

/// Creates the table for a call of `meds_cohort`. The only named argument is `predicates`, a file
/// of predicates that replace those of the configuration.
pub(in crate::sql) fn make_cohort_table(args: &[FunctionArg]) -> Result<Arc<dyn TableProvider>> {
    let mut paths = Vec::new();
    let mut predicates = None;
    let one_text = |what: &str, value: &SqlExpr| match unquote_text(value) {
        Some(text) => Ok(text.to_owned()),
        None => plan_err!("{NAME}: {what} must be a string, not {value}; write {SUCH}"),
    };
    for arg in args {
        match split_argument(arg) {
            Some((None, value)) => paths.push(one_text("the folder or the configuration", value)?),
            Some((Some(name), value)) if name == "predicates" => {
                predicates = Some(one_text("predicates", value)?);
            }
            Some((Some(name), _)) => {
                return plan_err!("{NAME} has no option {name}; its only option is predicates");
            }
            None => return plan_err!("{NAME}: {arg} is not a valid argument; write {SUCH}"),
        }
    }
    let [data, config] = paths.as_slice() else {
        return plan_err!(
            "{NAME} takes 2 paths as strings (the folder of a MEDS data set, and a configuration), but the number of paths given is {}; write {SUCH}",
            paths.len()
        );
    };
    let config = to_local_path(config)?;
    let predicates = predicates.as_deref().map(to_local_path).transpose()?;
    let criteria = CohortCriteria::read_config(&config, predicates.as_deref())?;
    let columns = criteria.list_result_columns();
    let schema = criteria.make_result_schema(&columns);
    let cohort = Arc::new(Cohort::new(MedsFolder::open(to_local_path(data)?)?, criteria));
    Ok(Arc::new(CohortTable { cohort, columns, schema }))
}

/// The realizations of a cohort's criteria, in the order of shards, subjects and times.
#[derive(Debug)]
struct CohortTable {
    cohort: Arc<Cohort>,
    columns: Vec<CohortColumn>,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for CohortTable {
    describe_table!(Base);

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<CohortColumn> = match projection {
            Some(columns) => columns.iter().map(|c| self.columns[*c]).collect(),
            None => self.columns.clone(),
        };
        let settings = SerrateOptions::of(state.config_options());
        Ok(DataSourceExec::from_data_source(CohortSource {
            schema: self.cohort.criteria.make_result_schema(&columns),
            cohort: Arc::clone(&self.cohort),
            columns: columns.into(),
            partitions: divide_shards(self.cohort.folder.num_shards(), state),
            shared_subjects: settings.meds_shared_subjects,
            limit,
        }))
    }
}

#[derive(Clone)]
pub(in crate::sql) struct CohortSource {
    cohort: Arc<Cohort>,
    columns: Arc<[CohortColumn]>,
    schema: SchemaRef,
    partitions: Vec<Range<usize>>,
    shared_subjects: bool,
    limit: Option<usize>,
}

impl fmt::Debug for CohortSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.cohort.folder.root();
        f.debug_struct("CohortSource").field("root", &root).finish_non_exhaustive()
    }
}

fn split_batch(batch: &RecordBatch, size: usize) -> Vec<Result<RecordBatch>> {
    let rows = batch.num_rows();
    (0..rows)
        .step_by(size.max(1))
        .map(|start| Ok(batch.slice(start, size.max(1).min(rows - start))))
        .collect()
}

impl DataSource for CohortSource {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batch_size = context.session_config().batch_size();
        let shards = self.partitions.get(partition).cloned().unwrap_or(0..0);
        let (source, limit) = (self.clone(), self.limit);
        let batches = stream::iter(shards)
            .then(move |shard| {
                let source = source.clone();
                async move {
                    let (cohort, shared) = (Arc::clone(&source.cohort), source.shared_subjects);
                    let shard =
                        run_blocking(move || cohort.read(shard, shared).map(Arc::new)).await?;
                    let subjects = shard.num_subjects();
                    let blocks = (0..subjects).step_by(BLOCK_SUBJECTS);
                    Ok::<_, DataFusionError>(stream::iter(blocks).then(move |first| {
                        let (source, shard) = (source.clone(), Arc::clone(&shard));
                        run_blocking(move || {
                            let block = first..(first + BLOCK_SUBJECTS).min(subjects);
                            let cohort = &source.cohort;
                            let (rows, _) =
                                cohort.search_subjects(&shard, block, &source.columns)?;
                            rows.to_batch(&cohort.criteria, &source.columns)
                        })
                    }))
                }
            })
            .try_flatten()
            .map_ok(move |batch| stream::iter(split_batch(&batch, batch_size)))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            limit_rows(batches, limit),
        )))
    }

    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.schema.fields().iter().map(|f| f.name().as_str()).collect();
        write!(
            f,
            "MedsCohort: folder={}, shards={}, criteria={}, projection=[{}]",
            find_original(self.cohort.folder.root()).display(),
            self.cohort.folder.num_shards(),
            find_original(self.cohort.criteria.path()).display(),
            names.join(", ")
        )?;
        write_limit(f, self.limit)
    }

    read_ranges!(schema, plain);
}
