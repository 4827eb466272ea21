//! CSV, JSON and Arrow files as DataFusion has them, but for COPY to one local file, which appears
//! whole or not at all.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Statistics, internal_err, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::{self, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore};

use super::exec::one_input;
use super::json;
use super::output::{OutputOptions, make_folder, single_file};
use crate::io::atomic;

/// Makes [`WholeFileFormat`]s: another factory's formats, and COPY to one local file whole or not at
/// all.
#[derive(Debug)]
pub struct WholeFileFormatFactory {
    inner: Arc<dyn FileFormatFactory>,
    extension: String,
}

impl WholeFileFormatFactory {
    /// Over another factory, under its name.
    pub fn new(inner: Arc<dyn FileFormatFactory>) -> Self {
        let extension = inner.get_ext();
        Self { inner, extension }
    }

    /// Over another factory, for files whose names end in `extension`.
    pub fn with_extension(inner: Arc<dyn FileFormatFactory>, extension: impl Into<String>) -> Self {
        Self { inner, extension: extension.into() }
    }
}

impl GetExt for WholeFileFormatFactory {
    fn get_ext(&self) -> String {
        self.extension.clone()
    }
}

impl FileFormatFactory for WholeFileFormatFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let (ours, theirs) = OutputOptions::take(&self.extension.to_uppercase(), options)?;
        // DataFusion's factory for Arrow does not look at options.
        if self.extension == "arrow"
            && let Some(key) = theirs.keys().filter_map(|key| key.strip_prefix("format.")).min()
        {
            return plan_err!("the format ARROW has no option '{key}'; its option is overwrite");
        }
        let said = theirs.keys().any(|k| k.ends_with("newline_delimited"));
        let inner = self.inner.create(state, &theirs)?;
        Ok(Arc::new(WholeFileFormat {
            array: json::as_array(&inner).filter(|_| !said),
            inner,
            extension: self.extension.clone(),
            overwrite: ours.overwrite,
        }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        let inner = self.inner.default();
        Arc::new(WholeFileFormat {
            array: json::as_array(&inner),
            inner,
            extension: self.extension.clone(),
            overwrite: false,
        })
    }
}

/// A format of DataFusion's, whose COPY to one local file goes through a temporary file beside it.
///
/// Of JSON, both forms are read: one record per line, and a list of records, as the first character
/// of a file says (unless the option `newline_delimited` does). All files of a table have one form. A
/// list is read by one thread, as it cannot be cut.
#[derive(Debug)]
pub struct WholeFileFormat {
    inner: Arc<dyn FileFormat>,
    /// JSON as one list of records, where the files decide.
    array: Option<Arc<dyn FileFormat>>,
    extension: String,
    overwrite: bool,
}

#[async_trait]
impl FileFormat for WholeFileFormat {
    fn get_ext(&self) -> String {
        self.extension.clone()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        match self.extension == self.inner.get_ext() {
            true => self.inner.get_ext_with_compression(compression),
            false => Ok(format!("{}{}", self.extension, compression.get_ext())),
        }
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.inner.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        if let Some(array) = &self.array
            && json::are_arrays(state, store, objects).await?
        {
            return array.infer_schema(state, store, objects).await;
        }
        self.inner.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.inner.infer_stats(state, store, table_schema, object).await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let conf = match self.array {
            Some(_) => json::scan(state, conf).await?,
            None => conf,
        };
        self.inner.create_physical_plan(state, conf).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        mut conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(target) = single_file(&conf) else {
            if self.overwrite {
                return plan_err!(
                    "the option 'overwrite' of {} is for COPY to one local file",
                    self.extension.to_uppercase()
                );
            }
            return self.inner.create_writer_physical_plan(input, state, conf, order).await;
        };
        if !self.overwrite && target.exists() {
            return Err(crate::Error::Exists(target).into());
        }
        let (folder, url) = temporary(&conf, &target)?;
        conf.table_paths = vec![url];
        let input = self.inner.create_writer_physical_plan(input, state, conf, order).await?;
        Ok(Arc::new(WholeFileExec { input, folder, target, overwrite: self.overwrite }))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.inner.file_source(table_schema)
    }
}

/// A folder of our own beside the target, and in it a file of the target's name.
fn temporary(conf: &FileSinkConfig, target: &Path) -> Result<(PathBuf, ListingTableUrl)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!(".serrate-{}-{number}.tmp", std::process::id());
    let ([url], Some(file)) = (conf.table_paths.as_slice(), target.file_name()) else {
        return internal_err!("a COPY has one target");
    };
    let mut url = url.get_url().clone();
    match url.path_segments_mut() {
        Ok(mut path) => path.pop().push(&name).push(&file.to_string_lossy()),
        Err(()) => return internal_err!("the URL of a file has a path"),
    };
    Ok((target.with_file_name(name), ListingTableUrl::try_new(url, None)?))
}

/// Runs a plan that writes one file into a folder of its own, and then gives the file its name.
#[derive(Debug)]
struct WholeFileExec {
    input: Arc<dyn ExecutionPlan>,
    folder: PathBuf,
    target: PathBuf,
    overwrite: bool,
}

impl WholeFileExec {
    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        let (folder, target) = (self.folder.clone(), self.target.clone());
        Self { input, folder, target, overwrite: self.overwrite }
    }
}

impl DisplayAs for WholeFileExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WholeFileExec: file={}", self.target.display())
    }
}

impl ExecutionPlan for WholeFileExec {
    fn name(&self) -> &str {
        "WholeFileExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    one_input!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        let (target, overwrite) = (self.target.clone(), self.overwrite);
        // Removed with what is in it when the query fails or is dropped.
        let folder = Temporary(self.folder.clone());
        let written = stream::once(async move {
            make_folder(&target)?;
            std::fs::create_dir(&folder.0).map_err(|e| crate::Error::io(&folder.0, e))?;
            let counts: Vec<_> = input.try_collect().await?;
            let settle = move || {
                let file = folder.0.join(target.file_name().unwrap_or_default());
                atomic::settle(&file, &target, overwrite)
            };
            tokio::task::spawn_blocking(settle)
                .await
                .map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
            Ok::<_, DataFusionError>(stream::iter(counts.into_iter().map(Ok)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, written.try_flatten())))
    }
}

/// A folder that goes when this does.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
