//! [`AsOfSource`]: the scan of `meds_asof`, which reads the data of all subjects once, and returns
//! one row per label (a subject with a prediction time) in the order of the labels.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::prep_null_mask_filter;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, exec_err};
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs, Projector};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, apply_expression_roots};
use futures::stream::{self, StreamExt, TryStreamExt};
use rayon::prelude::*;
use tokio::sync::OnceCell;

use super::inputs::AsofInputs;
use crate::config::SerrateOptions;
use crate::error::find_original;
use crate::io::meds::{AsOf, Labels, MedsReadOptions};
use crate::io::meds_torch::MedsFolder;
use crate::sql::base::blocking::run_blocking;
use crate::sql::sources::features::FeaturesSource;
use crate::sql::sources::meds::find_further_columns;
use crate::sql::sources::range_partitions::{limit_rows, write_limit};
use serrate_core::internal::build_record_batch;
use serrate_core::internal::meds::{AsOfBatchLimits, NeededColumns, divide_labels};

/// Name of the metric that counts the labels (a subject and a prediction time each) whose subject
/// is not in the data.
const UNKNOWN: &str = "labels_of_unknown_subjects";

/// A source with one row per label (a subject and a prediction time). It has one partition, to keep
/// the order of the labels, and computes batches concurrently.
#[derive(Clone)]
pub(in crate::sql) struct AsOfSource {
    folder: MedsFolder,
    labels: Arc<Labels>,
    tasks: Arc<[String]>,
    /// All columns of the table: first the columns of the labels, then the columns of the subjects'
    /// data.
    table: SchemaRef,
    projection: ProjectionExprs,
    filters: Vec<Arc<dyn PhysicalExpr>>,
    limit: Option<usize>,
    schema: SchemaRef,
    /// Number of batches that are computed concurrently.
    at_once: usize,
    rows: Arc<OnceCell<Arc<AsOf>>>,
    metrics: ExecutionPlanMetricsSet,
}

impl AsOfSource {
    pub(super) fn try_new(
        folder: MedsFolder,
        (labels, tasks): (Arc<Labels>, Arc<[String]>),
        table: SchemaRef,
        projection: ProjectionExprs,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        at_once: usize,
    ) -> Result<Self> {
        let schema = Arc::new(projection.project_schema(&table)?);
        Ok(Self {
            folder,
            labels,
            tasks,
            table,
            projection,
            filters,
            limit: None,
            schema,
            at_once: at_once.max(1),
            rows: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    pub(super) fn with_limit(self, limit: Option<usize>) -> Self {
        Self { limit, ..self }
    }

    fn has_same_labels(&self, other: &Self) -> bool {
        let same = Arc::ptr_eq(&self.labels, &other.labels) || self.labels == other.labels;
        same && self.folder.root() == other.folder.root()
    }

    /// Returns the conditions and columns of the query as expressions over the columns of
    /// [`AsofInputs`].
    fn rule(&self) -> Result<AsofRule> {
        let labels = self.labels.schema().fields().len();
        let add =
            |inputs: &mut AsofInputs, e: &Arc<dyn PhysicalExpr>| inputs.add(e, &self.table, labels);
        let mut filters = Vec::with_capacity(self.filters.len());
        for filter in &self.filters {
            let mut inputs = AsofInputs::default();
            let condition = add(&mut inputs, filter)?;
            filters.push((condition, inputs));
        }
        // Conditions on columns of the labels are evaluated before conditions on lists, because
        // these columns are cheaper to read.
        filters.sort_by_key(|(_, inputs)| inputs.has_lists());
        let mut inputs = AsofInputs::default();
        let expressions = self
            .projection
            .iter()
            .map(|e| {
                let expr = add(&mut inputs, &e.expr)?;
                Ok(ProjectionExpr { expr, alias: e.alias.clone() })
            })
            .collect::<Result<Vec<_>>>()?;
        let projector = ProjectionExprs::new(expressions).make_projector(&inputs.schema())?;
        Ok(AsofRule { filters, inputs, projector, schema: Arc::clone(&self.schema) })
    }

    fn read(&self, rule: &AsofRule) -> crate::Result<AsOf> {
        let all = rule.filters.iter().map(|(_, inputs)| inputs).chain([&rule.inputs]);
        let mut wanted: Vec<(bool, &str)> = all.flat_map(AsofInputs::columns).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let names = wanted.iter().map(|(_, name)| *name);
        let options = MedsReadOptions {
            columns: Some(find_further_columns(&self.table, names)),
            // Turns off the check that no subject is in two shards, because each read sees only one
            // shard. `AsOf::try_new` checks this instead.
            shared_subjects: true,
            ..MedsReadOptions::default()
        };
        let needed: Vec<&str> = wanted.iter().map(|(_, name)| *name).collect();
        let shards = (0..self.folder.num_shards())
            .into_par_iter()
            .map(|shard| self.folder.read_needed(shard, &options, NeededColumns(Some(&needed))))
            .collect::<crate::Result<Vec<_>>>()?;
        AsOf::try_new(shards, &self.labels)
    }
}

/// The conditions and columns of a query, and the [`AsofInputs`] (lists, lengths and counts) that
/// they read. In `filters`, each condition has its own inputs. All columns share `inputs`.
struct AsofRule {
    filters: Vec<(Arc<dyn PhysicalExpr>, AsofInputs)>,
    inputs: AsofInputs,
    projector: Projector,
    schema: SchemaRef,
}

impl AsofRule {
    /// Divides the labels into ranges. The rows of each range, one per label, have about `leaves`
    /// leaves (innermost list elements) together.
    fn find_batch_ranges(
        &self,
        rows: &AsOf,
        leaves: usize,
        batch_size: usize,
    ) -> Result<Vec<Range<usize>>> {
        let mut copied = self.inputs.find_copied_lists(rows)?;
        for (_, inputs) in &self.filters {
            copied.extend(inputs.find_copied_lists(rows)?);
        }
        let limits = AsOfBatchLimits { labels: batch_size, leaves };
        Ok(divide_labels(&copied, rows.len(), limits))
    }

    fn select_batch(&self, rows: &AsOf, labels: Range<usize>) -> Result<RecordBatch> {
        let mut labels: Vec<usize> = labels.collect();
        for (condition, inputs) in &self.filters {
            let batch = inputs.build_inputs(rows, &labels)?;
            let keep = condition.evaluate(&batch)?.into_array(batch.num_rows())?;
            let Some(keep) = keep.as_boolean_opt() else {
                return exec_err!(
                    "internal error: a condition on meds_asof has the type {} instead of boolean; please report it",
                    keep.data_type()
                );
            };
            let keep = match keep.nulls() {
                None => keep.clone(),
                Some(_) => prep_null_mask_filter(keep),
            };
            let kept = labels.iter().zip(keep.values().iter()).filter(|(_, keep)| *keep);
            labels = kept.map(|(label, _)| *label).collect();
        }
        let batch = self.projector.project_batch(&self.inputs.build_inputs(rows, &labels)?)?;
        // The projector may return other column names and nullability, so the batch gets the plan's
        // schema.
        Ok(build_record_batch(
            Arc::clone(&self.schema),
            batch.columns().to_vec(),
            batch.num_rows(),
        )?)
    }
}

impl fmt::Debug for AsOfSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsOfSource").field("root", &self.folder.root()).finish_non_exhaustive()
    }
}

impl DataSource for AsOfSource {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return exec_err!(
                "internal error: partition {partition} was requested, but the scan of labels has only \
                 partition 0; please report it"
            );
        }
        let leaves = SerrateOptions::of(context.session_config().options()).leaf_batch_size;
        let batch_size = context.session_config().batch_size();
        let unknown = MetricBuilder::new(&self.metrics).counter(UNKNOWN, partition);
        let rule = Arc::new(self.rule()?);
        let (source, at_once) = (self.clone(), self.at_once);
        let batches = async move {
            let of = Arc::clone(&rule);
            let cell = Arc::clone(&source.rows);
            let read = async move {
                let rows = run_blocking(move || source.read(&of).map(Arc::new)).await?;
                // This line runs only when the rows are computed, not when the query reads the
                // computed rows again, so no label is counted twice.
                unknown.add(rows.unknown());
                Ok::<_, DataFusionError>(rows)
            };
            let rows = Arc::clone(cell.get_or_try_init(|| read).await?);
            let ranges = rule.find_batch_ranges(&rows, leaves, batch_size)?;
            let made = stream::iter(ranges).map(move |labels| {
                let (rule, rows) = (Arc::clone(&rule), Arc::clone(&rows));
                run_blocking(move || rule.select_batch(&rows, labels))
            });
            Ok::<_, DataFusionError>(made.buffered(at_once))
        };
        let batches = limit_rows(stream::once(batches).try_flatten(), self.limit);
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }

    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "MedsAsOf: folder={}, shards={}, labels={}, projection={}",
            find_original(self.folder.root()).display(),
            self.folder.num_shards(),
            self.labels.len(),
            self.projection
        )?;
        if !self.filters.is_empty() {
            let filters: Vec<String> = self.filters.iter().map(ToString::to_string).collect();
            write!(f, ", filters=[{}]", filters.join(" AND "))?;
        }
        write_limit(f, self.limit)
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(1)
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        EquivalenceProperties::new(Arc::clone(&self.schema))
    }

    fn partition_statistics(&self, _partition: Option<usize>) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        let most = self.labels.len().min(self.limit.unwrap_or(usize::MAX));
        statistics.num_rows = Precision::Inexact(most);
        Ok(Arc::new(statistics))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        Some(Arc::new(self.clone().with_limit(limit)))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.metrics.clone()
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        // Merges `projection` only into a projection of plain columns. If `projection` used a
        // computed column twice, the scan would compute it twice.
        if !self.projection.iter().all(|e| e.expr.downcast_ref::<Column>().is_some()) {
            return Ok(None);
        }
        let projection = self.projection.try_merge(projection)?;
        let schema = Arc::new(projection.project_schema(&self.table)?);
        Ok(Some(Arc::new(Self { projection, schema, rows: Arc::default(), ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        match apply_expression_roots(self.projection.iter(), f)? {
            TreeNodeRecursion::Stop => Ok(TreeNodeRecursion::Stop),
            _ => apply_expression_roots(self.filters.iter(), f),
        }
    }
}

/// Returns how many labels have no row in an executed plan, because the data lacks their subjects.
///
/// Labels that several scans of the plan read from the same data count once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use serrate::datafusion::physical_plan::collect;
/// use serrate::sql::{session, unknown_labels};
/// let ctx = session();
/// let data = "tests/data/synthea-meds";
/// let sql = format!("SELECT subject_id FROM meds_asof('{data}', '{data}/labels')");
/// let plan = ctx.sql(&sql).await?.create_physical_plan().await?;
/// collect(Arc::clone(&plan), ctx.task_ctx()).await?;
/// assert_eq!(unknown_labels(&plan), 0); // the data has all subjects of the labels
/// # Ok(())
/// # }
/// ```
pub fn unknown_labels(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let mut sources = Vec::new();
    collect_sources(plan, &mut sources);
    let mut counted: Vec<&AsOfSource> = Vec::new();
    let mut unknown = 0usize;
    for source in &sources {
        let Some(rows) = source.rows.get() else { continue };
        if !counted.iter().any(|known| known.has_same_labels(source)) {
            counted.push(source);
            unknown = unknown.saturating_add(rows.unknown());
        }
    }
    let mut tables = Vec::new();
    collect_features(plan, &mut tables);
    tables.iter().fold(unknown, |sum, table| sum.saturating_add(table.num_unknown()))
}

/// Returns the tasks whose labels `meds_asof` concatenates from one folder.
///
/// The list is empty for labels of one task.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::sql::{label_tasks, session};
/// let data = "tests/data/synthea-meds";
/// let sql = format!("SELECT subject_id FROM meds_asof('{data}', '{data}/labels')");
/// let plan = session().sql(&sql).await?.create_physical_plan().await?;
/// assert!(label_tasks(&plan).is_empty());
/// # Ok(())
/// # }
/// ```
pub fn label_tasks(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let mut sources = Vec::new();
    collect_sources(plan, &mut sources);
    let mut tasks: Vec<String> = Vec::new();
    let mut tables = Vec::new();
    collect_features(plan, &mut tables);
    let of_tables = tables.iter().flat_map(|table| table.task_names());
    for task in sources.iter().flat_map(|source| source.tasks.iter()).chain(of_tables) {
        if !tasks.contains(task) {
            tasks.push(task.clone());
        }
    }
    tasks
}

fn collect_sources(plan: &Arc<dyn ExecutionPlan>, sources: &mut Vec<AsOfSource>) {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>()
        && let Some(source) = scan.data_source().downcast_ref::<AsOfSource>()
    {
        sources.push(source.clone());
    }
    for child in plan.children() {
        collect_sources(child, sources);
    }
}

fn collect_features(plan: &Arc<dyn ExecutionPlan>, sources: &mut Vec<FeaturesSource>) {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>()
        && let Some(source) = scan.data_source().downcast_ref::<FeaturesSource>()
    {
        sources.push(source.clone());
    }
    for child in plan.children() {
        collect_features(child, sources);
    }
}
