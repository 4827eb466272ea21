use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use datafusion::catalog::Session;
use datafusion::common::{GetExt, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use object_store::path::Path;

use crate::sql::sources::listing::files::{FileSet, ListedFile};
use crate::sql::sources::urls::format_location;

/// File name extensions of the data formats.
const FORMATS: [&str; 9] =
    ["arrow", "avro", "csv", "json", "jsonl", "ndjson", "nrt", "parquet", "safetensors"];

const JSON: [&str; 3] = ["json", "jsonl", "ndjson"];

/// Text formats, whose files may be compressed as a whole.
const TEXTS: [&str; 4] = ["csv", "json", "jsonl", "ndjson"];

const COMPRESSIONS: [&str; 4] = ["bz2", "gz", "xz", "zst"];

const COMPRESSION: &str = "format.compression";

/// The extension of a file in lower case, and that of its compression: `A.CSV.gz` has `csv` and `gz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sql) struct FileKind {
    pub(in crate::sql) extension: String,
    compression: Option<String>,
}

impl FileKind {
    pub(in crate::sql) fn new(extension: &str, compression: Option<&str>) -> Self {
        Self {
            extension: extension.to_ascii_lowercase(),
            compression: compression.map(str::to_ascii_lowercase),
        }
    }

    pub(super) fn from_name(location: &Path) -> Self {
        let name = location.filename().unwrap_or_default().to_ascii_lowercase();
        let (stem, last) = name.rsplit_once('.').unwrap_or((&name, ""));
        if !COMPRESSIONS.contains(&last) {
            return Self::new(last, None);
        }
        Self::new(stem.rsplit_once('.').map_or("", |(_, inner)| inner), Some(last))
    }

    pub(super) fn is_data(&self) -> bool {
        FORMATS.contains(&self.extension.as_str())
    }

    /// Whether two kinds have the same format, maybe with different extensions or compressions.
    pub(super) fn is_same_format(&self, other: &Self) -> bool {
        let is_json = |kind: &Self| JSON.contains(&kind.extension.as_str());
        self.extension == other.extension || is_json(self) && is_json(other)
    }

    /// Returns an error for compressed text: this build has no decompression of whole files.
    pub(in crate::sql) fn refuse_compressed(&self) -> Result<()> {
        match &self.compression {
            None => Ok(()),
            Some(compression) => plan_err!(
                "the files are compressed (.{compression}), and compressed {} is not supported; decompress them, or convert them to Parquet, which is compressed inside",
                self.extension
            ),
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.compression {
            Some(compression) => write!(f, "{}.{compression}", self.extension),
            None => write!(f, "{}", self.extension),
        }
    }
}

/// Returns the common kind of all files, or `None` if there are no files. If `only_data` is true, files that
/// are not of a data format are ignored.
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

/// Returns the kind of the files that a table of a named format reads in its folders.
///
/// # Errors
/// If text files are compressed, by an option or by their names.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_from_names() {
        for (name, expected) in [
            ("a/b.parquet", "parquet"),
            ("a.b/B.PARQUET", "parquet"),
            ("x.csv.GZ", "csv.gz"),
            ("x.gz", ".gz"),
            ("part-0", ""),
        ] {
            assert_eq!(FileKind::from_name(&Path::from(name)).to_string(), expected, "{name}");
        }
        let json = FileKind::new("NDJSON", None);
        assert!(json.is_same_format(&FileKind::new("jsonl", Some("gz"))));
        assert!(!json.is_same_format(&FileKind::new("csv", None)));
    }
}
