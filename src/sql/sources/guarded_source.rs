//! Adds file names to errors of readers, and converts panics of readers to errors.
//!
//! The readers of DataFusion and Arrow do not check many lengths, offsets and types in a file, and
//! panic if one is invalid. Such a panic ends the statement that reads the file, not the process.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::catalog::Session;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::future::FutureExt;
use futures::stream::{BoxStream, StreamExt};
use object_store::path::Path as Location;
use object_store::{ObjectMeta, ObjectStore};

use crate::sql::sources::arrow_files::check_arrow_files;
use crate::sql::sources::condition_errors::find_condition_error;
use crate::sql::sources::delegate_source;
use crate::sql::sources::exact_casts::find_unheld;
use crate::sql::sources::urls::format_location;
use serrate_core::internal::find_panic_text;

fn make_damage_error(file: &Location, panic: &(dyn Any + Send)) -> DataFusionError {
    exec_datafusion_err!(
        "{}: the file is damaged, because it has an invalid length, offset or type ({}); restore it, or \
         create it again",
        format_location(file),
        find_panic_text(panic)
    )
}

/// Adds the file name to an error of a file reader. Errors of conditions that the reader evaluates
/// become those of a filter. Leaves other errors (a cast in SELECT, say) unchanged.
fn add_file_name(file: &Location, error: DataFusionError) -> DataFusionError {
    if let Some(message) = find_unheld(&error.strip_backtrace()) {
        return exec_datafusion_err!("{}: {message}", format_location(file));
    }
    if let Some(of_condition) = find_condition_error(&error.strip_backtrace()) {
        return of_condition;
    }
    let of_reader = match error.find_root() {
        DataFusionError::ParquetError(_)
        | DataFusionError::ObjectStore(_)
        | DataFusionError::IoError(_) => true,
        // The Arrow errors listed here come from expressions, not from the reader.
        DataFusionError::ArrowError(e, _) => !matches!(
            e.as_ref(),
            ArrowError::ComputeError(_)
                | ArrowError::CastError(_)
                | ArrowError::DivideByZero
                | ArrowError::ArithmeticOverflow(_)
                | ArrowError::MemoryError(_)
        ),
        _ => false,
    };
    let text = error.strip_backtrace();
    match of_reader && !text.contains(file.as_ref()) {
        true => exec_datafusion_err!("{}: {text}", format_location(file)),
        false => error,
    }
}

fn contain_panic<T>(file: &Location, read: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|e| add_file_name(file, e)),
        Err(panic) => Err(make_damage_error(file, panic.as_ref())),
    }
}

/// Runs a future that reads a file, and converts a panic of the future to an error.
///
/// A panic may leave state inconsistent, but the caller abandons the file and does not use it
/// again.
pub(in crate::sql) async fn catch_panics<T>(
    file: &Location,
    read: impl Future<Output = Result<T>>,
) -> Result<T> {
    match AssertUnwindSafe(read).catch_unwind().await {
        Ok(read) => read.map_err(|e| add_file_name(file, e)),
        Err(panic) => Err(make_damage_error(file, panic.as_ref())),
    }
}

/// Infers the common schema of files. Panics become errors, and errors name the file.
pub(in crate::sql) async fn infer_guarded(
    format: &dyn FileFormat,
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    objects: &[ObjectMeta],
) -> Result<SchemaRef> {
    // DataFusion's error does not name the file, so after an error, the files are read one by one
    // to find it.
    let all = AssertUnwindSafe(format.infer_schema(state, store, objects)).catch_unwind().await;
    if let Ok(Ok(schema)) = all {
        return Ok(schema);
    }
    for object in objects {
        let one = std::slice::from_ref(object);
        let schema = catch_panics(&object.location, format.infer_schema(state, store, one)).await;
        schema.map_err(|e| match e.strip_backtrace() {
            text if text.contains(object.location.as_ref()) => e,
            text => exec_datafusion_err!("{}: {text}", format_location(&object.location)),
        })?;
    }
    // Each file can be read alone, so the reason of the error is that their schemas do not match.
    match all {
        Ok(schema) => schema,
        Err(panic) => {
            exec_err!(
                "the schemas of the files do not match: {}; read the files as separate tables",
                find_panic_text(panic.as_ref())
            )
        }
    }
}

/// `SELECT * FROM 'damaged.parquet'` ends the process, or returns an error without the name of the
/// file, without this rule.
///
/// Physical optimizer rule: makes scans of Parquet and Arrow files name the file in their errors,
/// and return panics as errors. It runs last, because other rules inspect the sources and do not
/// recognize a wrapped source.
pub(in crate::sql) fn name_files(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let scan = node.downcast_ref::<DataSourceExec>();
        let files = scan.and_then(|s| s.data_source().downcast_ref::<FileScanConfig>());
        let Some(files) = files else { return Ok(Transformed::no(node)) };
        let source = files.file_source();
        let known = ["parquet", "arrow", "arrow_stream"].contains(&source.file_type());
        if !known || source.is::<GuardedSource>() {
            return Ok(Transformed::no(node));
        }
        let mut files = files.clone();
        files.file_source = Arc::new(GuardedSource::new(Arc::clone(files.file_source())));
        let scan = DataSourceExec::from_data_source(files);
        Ok(Transformed::yes(scan as Arc<dyn ExecutionPlan>))
    })?;
    Ok(plan.data)
}

/// Wraps a file source so that panics of a reader become errors, and all errors of a reader name
/// the file.
#[derive(Clone)]
pub(in crate::sql) struct GuardedSource {
    inner: Arc<dyn FileSource>,
}

impl GuardedSource {
    pub(in crate::sql) fn new(inner: Arc<dyn FileSource>) -> Self {
        Self { inner }
    }

    #[cfg(feature = "cluster")]
    pub(in crate::sql) fn inner_source(&self) -> &Arc<dyn FileSource> {
        &self.inner
    }

    fn wrap_source(&self, inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { inner })
    }

    /// Returns a store that checks the files if the source reads Arrow files, else `store` itself.
    fn guard_store(&self, store: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        match self.inner.file_type().starts_with("arrow") {
            true => check_arrow_files(store),
            false => store,
        }
    }
}

impl FileSource for GuardedSource {
    delegate_source!(inner: table_schema, filter, projection, metrics, file_type, fmt_extra, supports_repartitioning, repartitioned, apply_expressions, reorder_files);

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.inner.create_file_opener(self.guard_store(store), config, partition)
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let inner = self.inner.create_morselizer(self.guard_store(store), config, partition)?;
        Ok(Box::new(GuardedMorselizer { inner }))
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.wrap_source(self.inner.with_batch_size(batch_size))
    }
}

#[derive(Debug)]
struct GuardedMorselizer {
    inner: Box<dyn Morselizer>,
}

impl Morselizer for GuardedMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let location = file.object_meta.location.clone();
        let inner = contain_panic(&location, || self.inner.plan_file(file))?;
        Ok(Box::new(GuardedPlanner { inner, file: location }))
    }
}

#[derive(Debug)]
struct GuardedPlanner {
    inner: Box<dyn MorselPlanner>,
    file: Location,
}

impl MorselPlanner for GuardedPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { inner, file } = *self;
        let Some(mut plan) = contain_panic(&file, || inner.plan())? else { return Ok(None) };
        let guard =
            |inner| -> Box<dyn MorselPlanner> { Box::new(Self { inner, file: file.clone() }) };
        let planners = plan.take_ready_planners().into_iter().map(guard).collect();
        let morsels = plan.take_morsels().into_iter().map(|inner| -> Box<dyn Morsel> {
            Box::new(GuardedMorsel { inner, file: file.clone() })
        });
        let mut out = MorselPlan::new().with_morsels(morsels.collect()).with_planners(planners);
        if let Some(pending) = plan.take_pending_planner() {
            let file = file.clone();
            out.set_pending_planner(async move {
                let inner = catch_panics(&file, pending.into_future()).await?;
                Ok(Box::new(Self { inner, file }) as Box<dyn MorselPlanner>)
            });
        }
        Ok(Some(out))
    }
}

#[derive(Debug)]
struct GuardedMorsel {
    inner: Box<dyn Morsel>,
    file: Location,
}

impl Morsel for GuardedMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { inner, file } = *self;
        let stream = match catch_unwind(AssertUnwindSafe(|| inner.into_stream())) {
            Ok(stream) => stream,
            Err(panic) => {
                let error = make_damage_error(&file, panic.as_ref());
                return futures::stream::once(async { Err(error) }).boxed();
            }
        };
        let batches = AssertUnwindSafe(stream).catch_unwind().map(move |next| match next {
            Ok(batch) => batch.map_err(|e| add_file_name(&file, e)),
            Err(panic) => Err(make_damage_error(&file, panic.as_ref())),
        });
        batches.boxed()
    }
}
