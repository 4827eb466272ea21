//! The table function `meds`: MEDS data sets and tensorized cohorts as tables.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::plan_err;
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::range_partitions::{divide_shards, limit_rows, read_ranges, write_limit};
use crate::access;
use crate::config::SerrateOptions;
use crate::error::find_original;
use crate::io::meds::{MedsReadOptions, MedsShard};
use crate::io::meds_torch::MedsFolder;
use crate::memory::MemoryCharge;
use crate::sql::base::blocking::run_blocking;
use crate::sql::exec::cut_batches::count_fitting_rows;
use crate::sql::sources::{as_literal_str, describe_table, select_columns, to_local_path};
use serrate_core::internal::meds::NeededColumns;
use serrate_core::internal::{build_record_batch, trim_extent};

/// Table function `meds('DIR')`.
///
/// It returns one row per subject, in the order of shards: `subject_id`, `time` and
/// `time_delta_days` per event, `code`, `code_id`, `numeric_value` and further columns per
/// measurement, and `static_code`, `static_code_id`, `static_numeric_value`, .. for facts without a
/// time. A subject in two shards is an error unless `serrate.meds_shared_subjects` is on. The
/// folder may also be a cohort tensorized by meds-torch-data: the table then has no further
/// columns, and its values are read from the tensors of the cohort.
#[derive(Debug, Default)]
pub(crate) struct MedsFunction;

impl TableFunctionImpl for MedsFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        if let [path] = args.exprs()
            && let Some(path) = as_literal_str(path)
        {
            return Ok(Arc::new(MedsTable::open(to_local_path(path)?)?));
        }
        plan_err!(
            "meds takes one string in single quotes, the folder of a MEDS data set, such as meds('tests/data/synthea-meds'); found meds({})",
            args.exprs().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        )
    }
}

/// A MEDS data set, or a cohort tensorized by meds-torch-data, as a table: one row per subject,
/// read shard by shard.
#[derive(Debug)]
pub(crate) struct MedsTable {
    folder: MedsFolder,
    schema: SchemaRef,
}

impl MedsTable {
    pub(crate) fn open(root: impl AsRef<Path>) -> crate::Result<Self> {
        let folder = MedsFolder::open(root)?;
        let schema = folder.schema()?;
        Ok(Self { folder, schema })
    }

    pub(in crate::sql) fn into_parts(self) -> (MedsFolder, SchemaRef) {
        (self.folder, self.schema)
    }
}

#[async_trait]
impl TableProvider for MedsTable {
    describe_table!(Base);

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = select_columns(projection, &self.schema);
        let schema = Arc::new(self.schema.project(&columns)?);
        let partitions = divide_shards(self.folder.num_shards(), state);
        let settings = SerrateOptions::of(state.config_options());
        let options = Arc::new(MedsReadOptions {
            columns: Some(find_further_columns(
                &self.schema,
                schema.fields().iter().map(|f| f.name().as_str()),
            )),
            shared_subjects: settings.meds_shared_subjects,
            ..MedsReadOptions::default()
        });
        Ok(DataSourceExec::from_data_source(MedsSource {
            folder: self.folder.clone(),
            options,
            schema,
            partitions,
            limit,
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

const ALWAYS: [&str; 9] = [
    "subject_id",
    "time",
    "time_delta_days",
    "code",
    "code_id",
    "numeric_value",
    "static_code",
    "static_code_id",
    "static_numeric_value",
];

/// Whether a column has static measurements (facts without a time). These are the last columns,
/// from `static_code` on. Their names do not identify them, because the names of other columns may
/// begin with `static_`, too.
pub(in crate::sql) fn is_static(table: &Schema, index: usize) -> bool {
    table.index_of("static_code").is_ok_and(|first| index >= first)
}

/// Returns the names of the columns in the files that the table columns `wanted` require, such as
/// `unit` for `static_unit`. Omits the columns that are always read ([`ALWAYS`]).
pub(in crate::sql) fn find_further_columns<'a>(
    all: &SchemaRef,
    wanted: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in wanted {
        if ALWAYS.contains(&name) {
            continue;
        }
        let of_facts = all.index_of(name).is_ok_and(|index| is_static(all, index));
        let base = match name.strip_prefix("static_") {
            Some(base) if of_facts => base,
            _ => name,
        };
        if !names.iter().any(|n| n == base) {
            names.push(base.into());
        }
    }
    names
}

#[derive(Clone)]
pub(in crate::sql) struct MedsSource {
    folder: MedsFolder,
    options: Arc<MedsReadOptions>,
    schema: SchemaRef,
    partitions: Vec<Range<usize>>,
    limit: Option<usize>,
    metrics: ExecutionPlanMetricsSet,
}

impl fmt::Debug for MedsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MedsSource").field("root", &self.folder.root()).finish_non_exhaustive()
    }
}

/// A scan of a MEDS folder, described by plain values that can be sent to worker processes.
#[cfg(feature = "cluster")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MedsScan {
    pub(crate) root: std::path::PathBuf,
    /// Names of all shards. `partitions` contains ranges of indices into these names.
    pub(crate) shards: Vec<String>,
    /// Whether reads detect a subject that is in several shards: true for a MEDS data set, false
    /// for a tensorized cohort.
    pub(crate) has_checks: bool,
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) shared_subjects: bool,
    pub(crate) schema: SchemaRef,
    pub(crate) partitions: Vec<Range<usize>>,
    pub(crate) limit: Option<usize>,
}

#[cfg(feature = "cluster")]
fn list_shard_names(folder: &MedsFolder) -> Vec<String> {
    match folder {
        MedsFolder::Meds(data) => data.shards().map(|s| s.name().to_owned()).collect(),
        MedsFolder::Cohort(cohort) => cohort.shards().iter().map(|s| s.name().to_owned()).collect(),
    }
}

#[cfg(feature = "cluster")]
impl MedsSource {
    pub(in crate::sql) fn folder_root(&self) -> &Path {
        self.folder.root()
    }

    /// Returns the scan as plain values for workers. Returns an error if the folder is a local copy
    /// of objects in a store, or no longer exists.
    pub(in crate::sql) fn to_scan(&self) -> Result<MedsScan> {
        if access::is_copy(self.folder.root()) {
            return plan_err!(
                "the folder is in an object store, so the session reads a local copy"
            );
        }
        Ok(MedsScan {
            root: access::canonicalize_path(self.folder.root())?,
            shards: list_shard_names(&self.folder),
            has_checks: matches!(self.folder, MedsFolder::Meds(_)),
            columns: self.options.columns.clone(),
            shared_subjects: self.options.shared_subjects,
            schema: Arc::clone(&self.schema),
            partitions: self.partitions.clone(),
            limit: self.limit,
        })
    }

    /// Creates the source in a worker process. Returns an error unless the folder has exactly the
    /// shards that the scan names.
    pub(in crate::sql) fn from_scan(scan: MedsScan) -> Result<Self> {
        let folder = MedsFolder::open(&scan.root)?;
        let shards = list_shard_names(&folder);
        if shards != scan.shards {
            return plan_err!(
                "{}: this worker has {} shards in the folder, but the session has {} shards with other names; give every machine the same files",
                scan.root.display(),
                shards.len(),
                scan.shards.len()
            );
        }
        if let Some(p) = scan.partitions.iter().find(|p| p.start > p.end || p.end > shards.len()) {
            return plan_err!(
                "the scan of {} that this worker received reads the shards {p:?}, but the folder has only the shards 0..{}; use the same build of Serrate for the session and its workers",
                scan.root.display(),
                shards.len()
            );
        }
        let options = MedsReadOptions {
            columns: scan.columns,
            shared_subjects: scan.shared_subjects,
            ..MedsReadOptions::default()
        };
        Ok(Self {
            folder,
            options: Arc::new(options),
            schema: scan.schema,
            partitions: scan.partitions,
            limit: scan.limit,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Whether it is known, without reading the shards (the files of the data set), that no subject
    /// is in two of them.
    pub(in crate::sql) fn has_distinct_subjects(&self) -> bool {
        match &self.folder {
            MedsFolder::Meds(data) => data.has_distinct_subjects(),
            MedsFolder::Cohort(_) => true,
        }
    }

    /// Returns the total size of the files of all shards, or `None` if it is not known.
    pub(in crate::sql) fn count_all_bytes(&self) -> Option<u64> {
        let MedsFolder::Meds(data) = &self.folder else { return None };
        let sizes =
            data.shards().map(|shard| access::metadata(shard.path()).map(|file| file.len()));
        sizes.sum::<std::io::Result<u64>>().ok()
    }

    /// Returns a scan with `count` partitions: the partitions `range` of this scan, then empty
    /// partitions.
    pub(in crate::sql) fn take_partitions(&self, range: Range<usize>, count: usize) -> Self {
        let mut partitions = self.partitions.get(range).unwrap_or_default().to_vec();
        partitions.resize(count, 0..0);
        Self { partitions, ..self.clone() }
    }
}

impl MedsSource {
    /// Returns the size of the file of a shard, for the progress of a query; 0 if it is not known.
    fn count_file_bytes(&self, shard: usize) -> usize {
        let MedsFolder::Meds(data) = &self.folder else { return 0 };
        let size = data.shards().nth(shard).and_then(|shard| access::metadata(shard.path()).ok());
        size.and_then(|file| usize::try_from(file.len()).ok()).unwrap_or(0)
    }

    /// Reads a shard, one file of the data set, as batches of about `leaves` measurements. Also
    /// returns the charge for their memory.
    fn read(
        &self,
        shard: usize,
        leaves: usize,
        batch_size: usize,
    ) -> Result<(Vec<RecordBatch>, MemoryCharge)> {
        let names: Vec<&str> = self.schema.fields().iter().map(|f| f.name().as_str()).collect();
        let whole = self.folder.read_needed(shard, &self.options, NeededColumns(Some(&names)))?;
        let charge = whole.charge_memory()?;
        let rows = whole.events.num_rows();
        let axis = whole.events.ndim() - 1;
        let mut batches = Vec::new();
        let mut start = 0;
        while start < rows {
            let most = start..rows.min(start.saturating_add(batch_size));
            let count = count_fitting_rows(&whole.events, most, axis, leaves)?;
            let part = MedsShard {
                name: String::new(),
                events: whole.events.slice(start, count)?,
                statics: whole.statics.slice(start, count)?,
            };
            let batch = part.to_batch()?;
            let columns = self
                .schema
                .fields()
                .iter()
                .map(|f| match batch.column_by_name(f.name()) {
                    Some(column) => Ok(trim_extent(column)),
                    None => plan_err!(
                        "the shard {} lacks the column {:?}, but all shards of a data set must \
                     have the same columns; add the column to the shard",
                        whole.name,
                        f.name()
                    ),
                })
                .collect::<Result<_>>()?;
            batches.push(build_record_batch(Arc::clone(&self.schema), columns, batch.num_rows())?);
            start += count;
        }
        Ok((batches, charge))
    }
}

impl DataSource for MedsSource {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let leaves = SerrateOptions::of(context.session_config().options()).leaf_batch_size;
        let batch_size = context.session_config().batch_size();
        let shards = self.partitions.get(partition).cloned().unwrap_or(0..0);
        let (source, limit) = (self.clone(), self.limit);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let bytes = MetricBuilder::new(&self.metrics).counter("bytes_scanned", partition);
        let batches = stream::iter(shards)
            .then(move |shard| {
                let (source, bytes) = (source.clone(), bytes.clone());
                async move {
                    run_blocking(move || {
                        let read = source.read(shard, leaves, batch_size)?;
                        bytes.add(source.count_file_bytes(shard));
                        Ok::<_, DataFusionError>(read)
                    })
                    .await
                }
            })
            .map_ok(|(batches, charge)| {
                // The batches share the memory of the shard. The closure holds `charge`, which
                // counts this memory, until the last batch is returned.
                let charge = Arc::new(charge);
                stream::iter(batches.into_iter().map(move |batch| {
                    let _held = &charge;
                    Ok(batch)
                }))
            })
            .try_flatten();
        let batches = limit_rows(batches, limit)
            .inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.metrics.clone()
    }

    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.schema.fields().iter().map(|f| f.name().as_str()).collect();
        write!(
            f,
            "Meds: folder={}, shards={}, projection=[{}]",
            find_original(self.folder.root()).display(),
            self.folder.num_shards(),
            names.join(", ")
        )?;
        write_limit(f, self.limit)
    }

    read_ranges!(schema, plain);
}
