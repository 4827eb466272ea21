//! COPY to one object of an object store: writes a temporary local file, then uploads it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::catalog::Session;
use datafusion::common::{exec_datafusion_err, plan_err};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{Explain, LogicalPlan};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, collect,
};
use futures::stream::{self, TryStreamExt};
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use serrate_core::internal::NameLease;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use url::Url;

use crate::access;
use crate::sql::base::blocking::run_blocking;
use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::exec::one_input;
use crate::sql::sources::file_output::OutputOptions;
use crate::sql::sources::training::BATCHES;

/// Minimum size of the parts of an upload. A file of at most this size is sent in one request.
const MIN_PART_BYTES: u64 = 8 << 20;

/// Maximum number of parts of an upload. Stores allow 10,000.
const MAX_PARTS: u64 = 9_000;

/// Number of parts that are sent at the same time.
const AT_ONCE: usize = 4;

/// Formats whose COPY writes one file even if its name has no extension. Other formats then write a
/// folder.
const ONE_FILE: [&str; 3] = ["nrt", "safetensors", "dok"];

/// Plans COPY to one object as COPY to a temporary local file, followed by the upload of this file.
/// So every format writes as it does locally, and an object appears whole or not at all.
///
/// Folders (also PARTITIONED BY) are written by DataFusion, object by object.
#[derive(Debug)]
pub(in crate::sql) struct UploadPlanner {
    pub(in crate::sql) inner: Arc<dyn QueryPlanner + Send + Sync>,
}

impl QueryPlanner for UploadPlanner {
    boxed_method!(UploadPlanner: create_physical_plan = plan_copy);
}

impl UploadPlanner {
    async fn plan_copy(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match logical_plan {
            LogicalPlan::Copy(copy) => {
                if let Some((copy, upload)) = divide_copy(copy, session)? {
                    let local = LogicalPlan::Copy(copy);
                    let input = self.inner.create_physical_plan(&local, session).await?;
                    return Ok(Arc::new(UploadExec::new(input, upload)));
                }
            }
            LogicalPlan::Explain(explain) => {
                if let LogicalPlan::Copy(copy) = explain.plan.as_ref()
                    && let Some((copy, _)) = divide_copy(copy, session)?
                {
                    let plan = Arc::new(LogicalPlan::Copy(copy));
                    let local = LogicalPlan::Explain(Explain { plan, ..explain.clone() });
                    return self.inner.create_physical_plan(&local, session).await;
                }
            }
            LogicalPlan::Analyze(analyze) => {
                if let LogicalPlan::Copy(copy) = analyze.input.as_ref()
                    && divide_copy(copy, session)?.is_some()
                {
                    return plan_err!(
                        "EXPLAIN ANALYZE of COPY to {}, which is not a local file, is not supported; write EXPLAIN ANALYZE SELECT, or COPY to a local file",
                        copy.output_url
                    );
                }
            }
            _ => {}
        }
        self.inner.create_physical_plan(logical_plan, session).await
    }
}

/// Divides COPY to one object into COPY to a temporary local file and the upload of this file.
/// Returns `None` for local targets and for folders, and an error if the path of the temporary file
/// is not absolute.
fn divide_copy(copy: &CopyTo, session: &dyn Session) -> Result<Option<(CopyTo, ObjectUpload)>> {
    let target = ListingTableUrl::parse(&copy.output_url)?;
    let format = copy.file_type.get_ext().to_ascii_lowercase();
    let in_parts = copy.options.get("single_file_output").is_some_and(|set| set.trim() == "false");
    let is_file = ONE_FILE.contains(&format.as_str()) || target.file_extension().is_some();
    let folder = target.is_collection() || !copy.partition_by.is_empty() || in_parts || !is_file;
    if target.scheme() == "file" || folder || format == BATCHES {
        return Ok(None);
    }
    let Some(name) = target.prefix().filename() else { return Ok(None) };
    let (output, options) = OutputOptions::take_overwrite(&format.to_uppercase(), &copy.options)?;
    let disks = session.runtime_env().disk_manager.temp_dir_paths();
    let beside = disks.into_iter().next().unwrap_or_else(std::env::temp_dir);
    let beside = std::path::absolute(&beside).map_err(|e| crate::Error::io(&beside, e))?;
    let stem = NameLease::draw_stem();
    let file = beside.join(NameLease::format_data_name(&stem)).join(name);
    let Ok(url) = Url::from_file_path(&file) else {
        return plan_err!(
            "cannot write {} through the temporary file {}, whose path is not absolute; set datafusion.runtime.temp_directory to an absolute path",
            copy.output_url,
            file.display()
        );
    };
    let mut local = copy.clone();
    local.output_url = url.into();
    local.options = options;
    Ok(Some((local, ObjectUpload { beside, stem, file, target, overwrite: output.overwrite })))
}

/// The upload of a temporary local file to the object that is the target of a COPY.
#[derive(Clone, Debug)]
struct ObjectUpload {
    /// The folder that contains the temporary folder.
    beside: PathBuf,
    /// Name without extension of the temporary folder and of its lock file.
    stem: String,
    /// The file in the temporary folder.
    file: PathBuf,
    target: ListingTableUrl,
    overwrite: bool,
}

impl ObjectUpload {
    /// Executes `input`, which writes the file, and uploads the file. Returns the result of
    /// `input`, the number of rows.
    async fn write_object(
        self,
        input: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> Result<Vec<arrow::array::RecordBatch>> {
        let store = context.runtime_env().object_store(&self.target)?;
        self.check_new(&store).await?;
        let io = |e| crate::Error::io(&self.beside, e);
        // Dropping the lease removes the temporary folder, also if the query is cancelled.
        let lease = NameLease::acquire_named(&self.beside, &self.stem).map_err(io)?;
        access::create_dir_all(lease.data_path()).map_err(io)?;
        let rows = collect(input, context).await.map_err(|e| self.name_target(e))?;
        // Another writer may have created the object while the query ran, so the check is repeated.
        self.check_new(&store).await?;
        self.send_file(&store).await?;
        drop(lease);
        Ok(rows)
    }

    async fn check_new(&self, store: &Arc<dyn ObjectStore>) -> Result<()> {
        if self.overwrite {
            return Ok(());
        }
        match store.head(self.target.prefix()).await {
            Ok(_) => Err(crate::Error::Exists(self.target.as_str().into()).into()),
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(to_error(e)),
        }
    }

    /// Returns the error with the URL of the target in place of the path of the temporary file.
    fn name_target(&self, e: DataFusionError) -> DataFusionError {
        let text = e.find_root().message().into_owned();
        let file = self.file.display().to_string();
        match text.contains(&file) {
            true => exec_datafusion_err!("{}", text.replace(&file, self.target.as_str())),
            false => e,
        }
    }

    async fn send_file(&self, store: &Arc<dyn ObjectStore>) -> Result<()> {
        let (location, path) = (self.target.prefix(), &self.file);
        let io = |e| crate::Error::io(path, e);
        let file = access::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let part = MIN_PART_BYTES.max(size.div_ceil(MAX_PARTS));
        if size <= MIN_PART_BYTES {
            let (_, bytes) = read_part(file, path, part).await?;
            store.put(location, PutPayload::from(bytes)).await.map_err(to_error)?;
            return Ok(());
        }
        let upload = store.put_multipart(location).await.map_err(to_error)?;
        let mut unfinished = UnfinishedUpload { parts: Some(SentParts::new(upload)) };
        let sent = match &mut unfinished.parts {
            Some(parts) => parts.send_parts(file, path, part).await,
            None => Ok(()),
        };
        if let Some(parts) = unfinished.parts.take()
            && sent.is_err()
        {
            parts.abort_upload().await;
        }
        sent
    }
}

/// The parts of an upload. At most [`AT_ONCE`] are sent at the same time.
struct SentParts {
    upload: Box<dyn MultipartUpload>,
    sending: JoinSet<object_store::Result<()>>,
}

impl SentParts {
    fn new(upload: Box<dyn MultipartUpload>) -> Self {
        Self { upload, sending: JoinSet::new() }
    }

    /// Sends a file in parts of `part` bytes, and completes the upload.
    async fn send_parts(&mut self, mut file: File, path: &Path, part: u64) -> Result<()> {
        loop {
            let (rest, bytes) = read_part(file, path, part).await?;
            if bytes.is_empty() {
                break;
            }
            file = rest;
            while self.sending.len() >= AT_ONCE {
                self.wait_for_part().await?;
            }
            self.sending.spawn(self.upload.put_part(PutPayload::from(bytes)));
        }
        while !self.sending.is_empty() {
            self.wait_for_part().await?;
        }
        self.upload.complete().await.map(|_| ()).map_err(to_error)
    }

    async fn wait_for_part(&mut self) -> Result<()> {
        match self.sending.join_next().await {
            Some(Ok(sent)) => sent.map_err(to_error),
            Some(Err(e)) => Err(DataFusionError::ExecutionJoin(Box::new(e))),
            None => Ok(()),
        }
    }

    /// Asks the store to remove the parts that it has received. Ignores errors, because the caller
    /// reports the error that ended the upload.
    async fn abort_upload(mut self) {
        self.sending.shutdown().await;
        let _ = self.upload.abort().await;
    }
}

/// Aborts the upload when this value is dropped, for example because the query was cancelled,
/// unless [`ObjectUpload`] has taken `parts` out after the upload ended.
struct UnfinishedUpload {
    parts: Option<SentParts>,
}

impl Drop for UnfinishedUpload {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        let running = RunningAbort::new();
        runtime.spawn(async move {
            parts.abort_upload().await;
            drop(running);
        });
    }
}

/// Number of uploads that are being aborted because their queries were cancelled.
static ABORTS: AtomicUsize = AtomicUsize::new(0);

/// Counts an upload in [`ABORTS`] as long as this value exists.
struct RunningAbort;

impl RunningAbort {
    fn new() -> Self {
        ABORTS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for RunningAbort {
    fn drop(&mut self) {
        ABORTS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns whether uploads of cancelled queries are being aborted. Before a process ends, it waits
/// for these aborts: otherwise, the store would keep the parts of the uploads.
#[cfg(feature = "cli")]
pub(crate) fn has_aborts() -> bool {
    ABORTS.load(Ordering::SeqCst) > 0
}

/// Reads at most `part` bytes of a file, on a thread for blocking work.
async fn read_part(mut file: File, path: &Path, part: u64) -> Result<(File, Vec<u8>)> {
    let path = path.to_owned();
    let read = move || {
        let mut bytes = Vec::new();
        let count = file.by_ref().take(part).read_to_end(&mut bytes);
        count.map(|_| (file, bytes)).map_err(|e| crate::Error::io(path, e))
    };
    run_blocking(read).await
}

fn to_error(e: object_store::Error) -> DataFusionError {
    DataFusionError::ObjectStore(Box::new(e))
}

/// Runs a plan that writes a temporary file, then uploads this file.
#[derive(Debug)]
pub(in crate::sql) struct UploadExec {
    input: Arc<dyn ExecutionPlan>,
    upload: ObjectUpload,
}

impl UploadExec {
    fn new(input: Arc<dyn ExecutionPlan>, upload: ObjectUpload) -> Self {
        Self { input, upload }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, self.upload.clone())
    }
}

impl DisplayAs for UploadExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UploadExec: object={}", self.upload.target)
    }
}

impl ExecutionPlan for UploadExec {
    one_input!("UploadExec", input);

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = self.input.schema();
        let written = self.upload.clone().write_object(Arc::clone(&self.input), context);
        let rows = stream::once(async move {
            let written = written.await?.into_iter().map(Ok::<_, DataFusionError>);
            Ok::<_, DataFusionError>(stream::iter(written))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten())))
    }
}
