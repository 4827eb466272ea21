use std::collections::HashMap;
use std::str::FromStr;

use datafusion::catalog::Session;
use datafusion::common::{GetExt, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;

use crate::sql::sources::listing::file_kind::FileKind;
use crate::sql::sources::listing::files::{FileSet, ListedFile};
use crate::sql::sources::urls::format_location;

/// Text formats, whose files may be compressed as a whole.
const TEXTS: [&str; 4] = ["csv", "json", "jsonl", "ndjson"];

const COMPRESSION: &str = "format.compression";

/// Returns the common kind of all files, or `None` if there are no files. If `only_data` is true,
/// files that are not of a data format are ignored.
///
/// # Errors
/// If the files are of several kinds, because a table reads only one.
pub(in crate::sql) fn find_kind(
    path: &str,
    files: &[ListedFile],
    only_data: bool,
) -> Result<Option<FileKind>> {
    let mut first: Option<(FileKind, &ListedFile)> = None;
    for file in files {
        let kind = FileKind::from_name(&file.meta.location);
        match &first {
            _ if only_data && !kind.is_data() => {}
            None => first = Some((kind, file)),
            Some((known, _)) if *known == kind => {}
            Some((_, other)) => {
                return plan_err!(
                    "cannot read '{path}', because it has files of several formats, such as {} and {}; name a folder or glob of one format, or read a MEDS folder as meds('{path}')",
                    format_location(&other.meta.location),
                    format_location(&file.meta.location)
                );
            }
        }
    }
    Ok(first.map(|(kind, _)| kind))
}

/// Returns the kind of the files that a table with `STORED AS format` reads in its folders.
///
/// # Errors
/// If the files are text files, and their compressions differ, or an option or their names say that
/// they are compressed.
pub(in crate::sql) async fn find_named_kind(
    state: &dyn Session,
    paths: &[ListingTableUrl],
    format: &str,
    options: &HashMap<String, String>,
) -> Result<FileKind> {
    let mut kind = FileKind::new(format, None);
    if !TEXTS.contains(&kind.extension.as_str()) {
        return Ok(kind);
    }
    if let Some(given) = options.get(COMPRESSION) {
        let extension = FileCompressionType::from_str(given)?.get_ext();
        let extension = extension.trim_start_matches('.');
        kind.compression = (!extension.is_empty()).then(|| extension.to_owned());
    } else {
        let is_folder = |path: &ListingTableUrl| path.is_collection() && path.get_glob().is_none();
        let (folders, named): (Vec<_>, Vec<_>) = paths.iter().cloned().partition(is_folder);
        let mut files = FileSet::new(folders, None).list_files(state).await?;
        files.retain(|file| FileKind::from_name(&file.meta.location).is_same_format(&kind));
        files.extend(FileSet::new(named, None).list_files(state).await?);
        kind.compression = find_compression(&files)?;
    }
    kind.refuse_compressed()?;
    Ok(kind)
}

fn find_compression(files: &[ListedFile]) -> Result<Option<String>> {
    let mut first: Option<(Option<String>, &ListedFile)> = None;
    for file in files {
        let compression = FileKind::from_name(&file.meta.location).compression;
        match &first {
            None => first = Some((compression, file)),
            Some((known, _)) if *known == compression => {}
            Some((_, other)) => {
                return plan_err!(
                    "{} and {} have different compressions; all files of a table must have the same compression",
                    format_location(&other.meta.location),
                    format_location(&file.meta.location)
                );
            }
        }
    }
    Ok(first.and_then(|(compression, _)| compression))
}
