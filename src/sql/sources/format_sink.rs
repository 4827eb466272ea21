//! The sink of CSV, JSON and Arrow files: converts rows for DataFusion's sink, and moves the
//! complete file to its name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{exec_err, internal_err};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::stream::{AbortHandle, StreamExt, abortable};
use serrate_core::internal::NameLease;
use serrate_core::internal::arrow_ipc::as_schema;
use serrate_core::internal::csv::{CsvQuotes, quote_fields};
use serrate_core::internal::json::convert_lists_to_json;
use serrate_core::internal::spans::convert_spans_to_texts;

use crate::access;
use crate::sql::base::blocking::run_blocking;
use crate::sql::sources::csv_nulls::NullTexts;
use crate::sql::sources::file_output::{ensure_batch, make_folder};
use crate::sql::sources::inner_sink::{find_sink, write_to_target};

/// Draws a random name for a temporary folder next to the file `target`. Returns this name without
/// its extension, and the URL of the file in the temporary folder, which has the name of `target`.
pub(super) fn make_temporary_target(
    conf: &FileSinkConfig,
    target: &Path,
) -> Result<(String, ListingTableUrl)> {
    let stem = NameLease::draw_stem();
    let ([url], Some(file)) = (conf.table_paths.as_slice(), target.file_name()) else {
        return internal_err!(
            "internal error: COPY must have exactly one target file; please report it"
        );
    };
    let mut url = url.get_url().clone();
    let folder = NameLease::format_data_name(&stem);
    match url.path_segments_mut() {
        Ok(mut path) => path.pop().push(&folder).push(&file.to_string_lossy()),
        Err(()) => {
            return internal_err!(
                "internal error: the URL of the target file of COPY has no path; please report it"
            );
        }
    };
    Ok((stem, ListingTableUrl::try_new(url, None)?))
}

/// Converts rows to the schema of the file and passes them to DataFusion's sink.
#[derive(Debug)]
pub(super) struct FormatSink {
    /// DataFusion's plan that writes the files. Only its sink is used; its input is empty.
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) schema: SchemaRef,
    /// `schema`, but with strings for durations and intervals, except for an Arrow file.
    pub(super) texts: SchemaRef,
    /// The schema of the file: `texts`, but with strings for nested columns in CSV, and without
    /// dictionaries in Arrow.
    pub(super) written: SchemaRef,
    /// How to quote the strings of a CSV file before DataFusion's sink receives them. If `None`,
    /// DataFusion's sink quotes them.
    pub(super) quotes: Option<CsvQuotes>,
    /// The strings that represent NULL in a CSV file. No value may be one of them.
    pub(super) nulls: Option<NullTexts>,
    pub(super) whole: Option<WholeFile>,
    /// The local folder that is the target if `whole` is `None`. `None` for object stores.
    pub(super) folder: Option<PathBuf>,
    /// Whether a COPY to a folder writes a file even if there are no rows.
    pub(super) even_empty: bool,
}

/// One local file, which DataFusion's sink first writes in a temporary folder.
#[derive(Clone, Debug)]
pub(super) struct WholeFile {
    pub(super) target: PathBuf,
    /// Name without extension of the temporary folder and of its lock file, held during the write.
    pub(super) stem: String,
    pub(super) overwrite: bool,
}

impl WholeFile {
    /// Writes rows to the temporary folder, then moves the file to `target`. Returns an error and
    /// writes no file if `stop` was aborted before all rows were written.
    async fn write_file(
        self,
        plan: Arc<dyn ExecutionPlan>,
        data: SendableRecordBatchStream,
        context: Arc<TaskContext>,
        stop: AbortHandle,
    ) -> Result<u64> {
        let Self { target, stem, overwrite } = self;
        make_folder(&target)?;
        let beside = target.parent().unwrap_or(Path::new("."));
        let io = |e| crate::Error::io(&target, e);
        // On drop, the lease removes the temporary folder with its contents.
        let lease = NameLease::acquire_named(beside, &stem).map_err(io)?;
        let folder = lease.data_path();
        access::create_dir_all(&folder).map_err(io)?;
        let rows = write_to_target(&plan, &target, data, &context).await?;
        if stop.is_aborted() {
            return exec_err!(
                "{}: the statement was cancelled, so this file was not written; run the statement again",
                target.display()
            );
        }
        let settle = move || {
            let file = folder.join(target.file_name().unwrap_or_default());
            let settled = serrate_core::internal::move_into_place(&file, &target, overwrite);
            drop(lease);
            settled
        };
        run_blocking(settle).await?;
        Ok(rows)
    }
}

struct StopOnDrop(AbortHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl FormatSink {
    fn convert_stream(&self, data: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let data = match self.texts == self.schema {
            true => data,
            false => self.convert_spans(data),
        };
        let data = match self.nulls.clone() {
            Some(nulls) => check_nulls(data, nulls),
            None => data,
        };
        if let Some(quotes) = self.quotes.clone() {
            let batches = data.map(move |batch| Ok(quote_fields(&batch?, &quotes)?));
            return Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.written), batches));
        }
        if self.written == self.texts {
            return data;
        }
        let written = Arc::clone(&self.written);
        let texts = self
            .written
            .fields()
            .iter()
            .zip(self.texts.fields())
            .any(|(to, from)| from.data_type().is_nested() && !to.data_type().is_nested());
        let batches = data.map(move |batch| {
            let batch = batch?;
            Ok(match texts {
                true => convert_lists_to_json(&batch)?,
                false => as_schema(&batch, &written)?,
            })
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.written), batches))
    }

    fn convert_spans(&self, data: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let batches = data.map(|batch| Ok(convert_spans_to_texts(&batch?)?));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.texts), batches))
    }
}

fn check_nulls(data: SendableRecordBatchStream, nulls: NullTexts) -> SendableRecordBatchStream {
    let schema = data.schema();
    let batches = data.map(move |batch| {
        let batch = batch?;
        nulls.check_batch(&batch)?;
        Ok(batch)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

impl DisplayAs for FormatSink {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.whole, self.plan.downcast_ref::<DataSinkExec>()) {
            (Some(whole), _) => write!(f, "WholeFileSink(file={})", whole.target.display()),
            (None, Some(plan)) => plan.sink().fmt_as(t, f),
            (None, None) => Ok(()),
        }
    }
}

#[async_trait]
impl DataSink for FormatSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn metrics(&self) -> Option<MetricsSet> {
        find_sink(&self.plan).ok()?.metrics()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let data = self.convert_stream(data);
        let Some(whole) = self.whole.clone() else {
            let data = if self.even_empty { ensure_batch(data) } else { data };
            return match &self.folder {
                Some(folder) => write_to_target(&self.plan, folder, data, context).await,
                None => find_sink(&self.plan)?.write_all(data, context).await,
            };
        };
        // If the write were part of this future, a drop of the future would leave behind tasks that
        // create files in the removed temporary folder. So a separate task writes and always runs
        // to its end; if this future is dropped, the task gets no more rows.
        let schema = data.schema();
        let (data, stop) = abortable(data);
        let data = Box::pin(RecordBatchStreamAdapter::new(schema, data));
        let _stop_on_drop = StopOnDrop(stop.clone());
        let write = whole.write_file(Arc::clone(&self.plan), data, Arc::clone(context), stop);
        tokio::spawn(write)
            .await
            .unwrap_or_else(|e| Err(DataFusionError::ExecutionJoin(Box::new(e))))
    }
}
