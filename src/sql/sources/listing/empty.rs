//! Refuses files of 0 bytes in formats whose files have a header.

use datafusion::common::plan_err;
use datafusion::error::Result;

use crate::sql::sources::listing::ListedFile;
use crate::sql::sources::urls::format_location;

/// Formats whose files always have a header.
const WITH_HEADERS: [&str; 4] = ["nrt", "safetensors", "parquet", "arrow"];

/// Returns an error for a file of 0 bytes in a format with a header. Without this check, a scan of
/// the file would return no rows and no error.
pub(in crate::sql) fn refuse_empty(files: &[ListedFile], format: &str) -> Result<()> {
    let format = format.to_ascii_lowercase();
    if !WITH_HEADERS.contains(&format.as_str()) {
        return Ok(());
    }
    match files.iter().find(|file| file.meta.size == 0) {
        None => Ok(()),
        Some(file) => plan_err!(
            "{} has 0 bytes, but every .{format} file has a header, so the file is probably incomplete; create it again",
            format_location(&file.meta.location)
        ),
    }
}
