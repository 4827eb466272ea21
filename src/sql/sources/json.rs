//! The two forms of JSON: one record per line, or a list of records.

use std::any::Any;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, JsonSource,
};
use datafusion::error::Result;
use datafusion::physical_expr::Partitioning;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::sql::sources::urls::shown_location;

/// Returns the format for a list of records if `format` is uncompressed JSON and its form was not specified,
/// otherwise `None`. The first character of a compressed file does not show the form.
pub(in crate::sql) fn as_array(format: &Arc<dyn FileFormat>) -> Option<Arc<dyn FileFormat>> {
    let any: &dyn Any = format.as_ref();
    let json = any.downcast_ref::<JsonFormat>()?;
    let plain = !format.compression_type().is_some_and(|c| c.is_compressed());
    (plain && json.is_newline_delimited()).then(|| {
        let options = json.options().clone();
        let array = JsonFormat::default().with_options(options).with_newline_delimited(false);
        Arc::new(array) as Arc<dyn FileFormat>
    })
}

/// Whether files are lists of records. Returns an error if the files have both forms.
pub(in crate::sql) async fn are_arrays(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    objects: &[ObjectMeta],
) -> Result<bool> {
    let parallel = state.config_options().execution.meta_fetch_concurrency.get();
    let forms: Vec<bool> = stream::iter(objects.to_vec())
        .map(|object| {
            let store = Arc::clone(store);
            async move { is_array(&store, &object).await }
        })
        .buffered(parallel)
        .try_collect()
        .await?;
    let find = |form| forms.iter().position(|f| *f == form).and_then(|i| objects.get(i));
    match (find(true), find(false)) {
        (Some(list), Some(lines)) => plan_err!(
            "{} is a list of records, but {} has one record per line; all files of a table must have the same form",
            shown_location(&list.location),
            shown_location(&lines.location)
        ),
        (list, _) => Ok(list.is_some()),
    }
}

/// Whether the first character of a file opens a list.
async fn is_array(store: &Arc<dyn ObjectStore>, object: &ObjectMeta) -> Result<bool> {
    const PIECE: u64 = 1024;
    let mut start = 0;
    while start < object.size {
        let end = object.size.min(start + PIECE);
        let bytes = store.get_range(&object.location, start..end).await?;
        let text = bytes.strip_prefix(b"\xEF\xBB\xBF".as_slice()).unwrap_or(&bytes);
        if let Some(first) = text.iter().find(|b| !b.is_ascii_whitespace()) {
            return Ok(*first == b'[');
        }
        start = end;
    }
    Ok(false)
}

/// Changes a JSON scan to read lists of records if its first file is such a list.
pub(in crate::sql) async fn scan(
    state: &dyn Session,
    conf: FileScanConfig,
) -> Result<FileScanConfig> {
    let file = conf.file_groups.iter().flat_map(FileGroup::iter).next();
    let source = conf.file_source().downcast_ref::<JsonSource>();
    let (Some(file), Some(source)) = (file, source) else { return Ok(conf) };
    let store = state.runtime_env().object_store(&conf.object_store_url)?;
    if !is_array(&store, &file.object_meta).await? {
        return Ok(conf);
    }
    let source: Arc<dyn FileSource> = Arc::new(source.clone().with_newline_delimited(false));
    // A JSON file with a list of records cannot be read in byte ranges. The scan declares its partitioning,
    // because DataFusion then does not divide the files.
    let partitions = Partitioning::UnknownPartitioning(conf.file_groups.len());
    Ok(FileScanConfigBuilder::from(conf)
        .with_source(source)
        .with_output_partitioning(Some(partitions))
        .build())
}
