//! Functions for formats that write one whole file: they parse the options, find and check the
//! target, and pass the rows to a writer on a thread.

use crate::access;
use crate::memory::{ChargedValue, MemoryCharge};
use crate::sql::exec::spool::count_own_bytes;
use crate::sql::sources::inner_sink::{PassRows, find_sink, wrap_own_sink};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::common::{exec_err, plan_err};
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};

#[derive(Clone, Debug, Default)]
pub(in crate::sql) struct OutputOptions {
    pub(in crate::sql) overwrite: bool,
    /// Names of the boolean options that are on, except `overwrite`.
    pub(in crate::sql) on: Vec<String>,
}

impl OutputOptions {
    /// Parses `overwrite` and the boolean options in `known`. COPY has added the prefix `format.`
    /// to the names of its options.
    pub(in crate::sql) fn parse(
        format: &str,
        options: &HashMap<String, String>,
        known: &[&str],
    ) -> Result<Self> {
        let mut out = Self::default();
        for (key, value) in options {
            let name = key.strip_prefix("format.").unwrap_or(key);
            if name != "overwrite" && !known.contains(&name) {
                if name.starts_with("execution.") {
                    // Ignores an option of DataFusion's sink, such as
                    // `execution.keep_partition_by_columns`.
                    continue;
                }
                let all: Vec<_> =
                    std::iter::once("overwrite").chain(known.iter().copied()).collect();
                return plan_err!(
                    "the format {format} has no option '{name}'; the options of this format are {}",
                    all.join(", ")
                );
            }
            let on = match value.trim().to_ascii_lowercase().as_str() {
                "true" | "on" | "1" | "yes" => true,
                "false" | "off" | "0" | "no" => false,
                _ => return plan_err!("option '{name}' must be true or false, not '{value}'"),
            };
            match (name, on) {
                ("overwrite", on) => out.overwrite = on,
                (name, true) => out.on.push(name.into()),
                _ => {}
            }
        }
        Ok(out)
    }

    /// Parses only the option `overwrite`. Also returns all other options, which the caller passes
    /// to DataFusion's format.
    pub(in crate::sql) fn take_overwrite(
        format: &str,
        options: &HashMap<String, String>,
    ) -> Result<(Self, HashMap<String, String>)> {
        let (ours, theirs): (HashMap<_, _>, HashMap<_, _>) =
            options.clone().into_iter().partition(|(key, _)| {
                key.strip_prefix("format.").unwrap_or(key).eq_ignore_ascii_case("overwrite")
            });
        let ours = ours.into_values().map(|value| ("overwrite".into(), value)).collect();
        Ok((Self::parse(format, &ours, &[])?, theirs))
    }

    pub(in crate::sql) fn has_option(&self, name: &str) -> bool {
        self.on.iter().any(|o| o == name)
    }
}

/// Returns the local folder that a COPY writes. Returns an error for INSERT, for PARTITIONED BY,
/// for several targets, and for a target that is not local.
pub(in crate::sql) fn find_local_folder(conf: &FileSinkConfig, format: &str) -> Result<PathBuf> {
    let [url] = conf.table_paths.as_slice() else {
        return plan_err!(
            "COPY to {format} writes one folder, but {} targets are given; name one folder",
            conf.table_paths.len()
        );
    };
    if !is_copy(conf) {
        return plan_err!("INSERT is not supported for {format}; use COPY .. TO 'folder'");
    }
    if !conf.table_partition_cols.is_empty() {
        return plan_err!(
            "{format} identifies rows by position, so a table cannot be split by the values of columns; remove PARTITIONED BY"
        );
    }
    match url.get_url().to_file_path() {
        Ok(path) if url.scheme() == "file" => Ok(path),
        _ => plan_err!(
            "COPY to {format} writes a local folder, but {} is not local; name a local folder",
            conf.original_url
        ),
    }
}

/// Returns the local file that a COPY writes. Returns an error for INSERT, for PARTITIONED BY, for
/// several targets, and for a target that is a folder or is not local.
pub(in crate::sql) fn find_local_target(conf: &FileSinkConfig, format: &str) -> Result<PathBuf> {
    if !is_copy(conf) {
        return plan_err!(
            "INSERT is not supported for {format}, because a file cannot be appended to; write a new file with COPY .. TO 'file'"
        );
    }
    let [url] = conf.table_paths.as_slice() else {
        return plan_err!(
            "COPY to {format} writes one file, but {} targets are given; name one file",
            conf.table_paths.len()
        );
    };
    if !conf.table_partition_cols.is_empty() {
        return plan_err!(
            "{format} files identify rows by position, so a table cannot be split over several files; remove PARTITIONED BY"
        );
    }
    if url.scheme() != "file" {
        return plan_err!(
            "COPY to {format} writes a local file, but {} is not local; name a local file",
            conf.original_url
        );
    }
    let parsed = url.get_url().to_file_path();
    let Ok(path) = parsed else {
        return plan_err!("{} is not the path of a file; name a local file", conf.original_url);
    };
    if url.is_collection() || access::is_dir(&path) {
        return plan_err!(
            "COPY to {format} writes one file, but {} is a folder; name a file in it (`serrate convert` converts a folder to a folder, one file per input file)",
            conf.original_url
        );
    }
    Ok(path)
}

/// Returns the one local file that a COPY writes; `None` for INSERT, folders and object stores.
pub(in crate::sql) fn find_single_file(conf: &FileSinkConfig) -> Option<PathBuf> {
    let [url] = conf.table_paths.as_slice() else { return None };
    let file = conf.file_output_mode.single_file_output(url) && !url.is_collection();
    if !is_copy(conf) || !file || !conf.table_partition_cols.is_empty() || url.scheme() != "file" {
        return None;
    }
    let path = url.get_url().to_file_path().ok()?;
    (!access::is_dir(&path)).then_some(path)
}

/// Returns the local file or folder that a writer writes; `None` for object stores.
pub(in crate::sql) fn find_local_path(conf: &FileSinkConfig) -> Option<PathBuf> {
    let [url] = conf.table_paths.as_slice() else { return None };
    if url.scheme() != "file" {
        return None;
    }
    url.get_url().to_file_path().ok()
}

/// Whether a writer is part of COPY. COPY and INSERT share `FileSinkConfig`, and only COPY sets
/// `original_url`.
pub(in crate::sql) fn is_copy(conf: &FileSinkConfig) -> bool {
    conf.insert_op == InsertOp::Append && !conf.original_url.is_empty()
}

/// Whether a COPY writes a folder, and has no PARTITIONED BY.
pub(in crate::sql) fn is_copy_to_folder(conf: &FileSinkConfig) -> bool {
    let [url] = conf.table_paths.as_slice() else { return false };
    is_copy(conf)
        && conf.table_partition_cols.is_empty()
        && !conf.file_output_mode.single_file_output(url)
}

/// Adds an empty batch to a stream without batches, because DataFusion writes no file for such a
/// stream.
pub(in crate::sql) fn ensure_batch(data: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = data.schema();
    let empty = RecordBatch::new_empty(Arc::clone(&schema));
    let seen = Arc::new(AtomicBool::new(false));
    let is_seen = Arc::clone(&seen);
    let data = data.inspect(move |_| seen.store(true, Ordering::Relaxed));
    let last = stream::once(async move { (!is_seen.load(Ordering::Relaxed)).then_some(Ok(empty)) });
    let last = last.filter_map(std::future::ready);
    Box::pin(RecordBatchStreamAdapter::new(schema, data.chain(last)))
}

/// Changes `plan`, the plan of a writer, so that it writes a file even if there are no rows.
pub(in crate::sql) fn ensure_file(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    wrap_own_sink(plan, AnyFile)
}

/// Passes the batches of a stream to a sink, or one empty batch if there are none, so that the sink
/// writes a file.
#[derive(Debug)]
struct AnyFile;

#[async_trait]
impl PassRows for AnyFile {
    async fn pass_rows(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        find_sink(plan)?.write_all(ensure_batch(data), context).await
    }
}

/// Collects the rows of a writer that needs all of them at once. `what` names the writer in errors.
pub(in crate::sql) fn collect_rows(
    batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
    schema: &SchemaRef,
    what: &str,
) -> Result<ChargedValue<RecordBatch>> {
    let (mut all, mut charge) = (Vec::new(), MemoryCharge::default());
    for batch in batches {
        let batch = batch?;
        charge.grow(what, count_own_bytes(&batch)?)?;
        all.push(batch);
    }
    // The batches stay in memory until their copy is complete, so both count as used memory.
    let copy = MemoryCharge::take(what, charge.bytes())?;
    Ok(ChargedValue::new(concat_batches(schema, &all)?, copy))
}

/// Creates the folder of a target, as DataFusion's own COPY does.
pub(in crate::sql) fn make_folder(target: &Path) -> Result<()> {
    match target.parent() {
        Some(folder) => {
            access::create_dir_all(folder).map_err(|e| crate::Error::io(folder, e).into())
        }
        None => Ok(()),
    }
}

/// Passes a stream to `write` on a thread for blocking work, and returns the result. If the stream
/// fails or the query is dropped, the last item for `write` is an error, so a cancelled query
/// writes no file.
pub(in crate::sql) async fn write_blocking<T: Send + 'static>(
    data: SendableRecordBatchStream,
    write: impl FnOnce(&mut dyn Iterator<Item = Result<RecordBatch>>) -> Result<T> + Send + 'static,
) -> Result<T> {
    write_unless_cancelled(data, |batches, _| write(batches)).await
}

/// Like [`write_blocking`], for a `write` that also checks, while it works, whether the query was
/// dropped.
pub(in crate::sql) async fn write_unless_cancelled<T: Send + 'static>(
    mut data: SendableRecordBatchStream,
    write: impl FnOnce(&mut dyn Iterator<Item = Result<RecordBatch>>, &dyn Fn() -> bool) -> Result<T>
    + Send
    + 'static,
) -> Result<T> {
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Option<Result<RecordBatch>>>(2);
    // A cancelled query drops this future with its value `running`, which the writer watches.
    let running = Arc::new(());
    let watched = Arc::downgrade(&running);
    let writer = tokio::task::spawn_blocking(move || {
        let mut ended = false;
        let is_cancelled = || watched.strong_count() == 0;
        let mut batches = std::iter::from_fn(|| {
            if ended {
                return None;
            }
            let next = match receiver.blocking_recv() {
                Some(next) => next,
                None => {
                    Some(exec_err!("the query was cancelled, so no file was written; run it again"))
                }
            };
            ended = !matches!(next, Some(Ok(_)));
            next
        });
        write(&mut batches, &is_cancelled)
    });
    loop {
        let next = data.next().await;
        let last = !matches!(next, Some(Ok(_)));
        // A closed channel means that the writer stopped; its result contains the error.
        if sender.send(next).await.is_err() || last {
            break;
        }
    }
    let written = writer.await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?;
    drop(running);
    written
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;

    use super::*;

    #[tokio::test]
    async fn a_dropped_query_is_an_error_to_the_writer_not_the_end() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let schema = Arc::new(Schema::empty());
        let first = RecordBatch::new_empty(Arc::clone(&schema));
        let batches = stream::iter([Ok(first)]).chain(stream::pending());
        let data = Box::pin(RecordBatchStreamAdapter::new(schema, batches));
        let write = write_blocking(data, move |batches| {
            let all: Result<Vec<_>> = batches.collect();
            sender.send(all.map(|b| b.len())).unwrap();
            Ok(())
        });
        assert!(tokio::time::timeout(std::time::Duration::from_millis(50), write).await.is_err());
        let seen = tokio::task::spawn_blocking(move || receiver.recv().unwrap()).await.unwrap();
        assert!(seen.unwrap_err().to_string().contains("cancelled"));
    }
}
