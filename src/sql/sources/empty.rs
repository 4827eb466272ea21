//! Returns an error for files of 0 bytes, which DataFusion's listing skips.

use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use futures::TryStreamExt;

use crate::sql::sources::urls::shown_location;

/// Formats whose files always have a header.
const WITH_HEADERS: [&str; 4] = ["nrt", "safetensors", "parquet", "arrow"];

/// Returns an error for a file of 0 bytes in a format with a header. DataFusion would return no rows instead.
pub(in crate::sql) async fn refuse_empty(
    state: &dyn Session,
    url: &ListingTableUrl,
    format: &str,
) -> Result<()> {
    let format = format.to_ascii_lowercase();
    if !WITH_HEADERS.contains(&format.as_str()) {
        return Ok(());
    }
    let store = state.runtime_env().object_store(url)?;
    let files = url.list_all_files(state, store.as_ref(), "").await?;
    let empty = files
        .try_filter(|f| {
            let extension = f.location.extension();
            let ours = !url.is_collection() || extension.is_some_and(|e| e == format);
            std::future::ready(f.size == 0 && ours)
        })
        .try_collect::<Vec<_>>()
        .await?;
    match empty.first() {
        None => Ok(()),
        Some(file) => plan_err!(
            "{} has 0 bytes, but every .{format} file has a header, so the file is probably incomplete; write it again",
            shown_location(&file.location)
        ),
    }
}
