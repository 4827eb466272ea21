//! The kinds of files that can be tables: format and compression, by the names of files.

use std::fmt;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use object_store::path::Path;

/// File name extensions of the data formats.
const FORMATS: [&str; 9] =
    ["arrow", "avro", "csv", "json", "jsonl", "ndjson", "nrt", "parquet", "safetensors"];

const JSON: [&str; 3] = ["json", "jsonl", "ndjson"];

const COMPRESSIONS: [&str; 4] = ["bz2", "gz", "xz", "zst"];

/// The extensions of a file in lower case, for its format and for its compression: `csv` and `gz`
/// for `A.CSV.gz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sql) struct FileKind {
    pub(in crate::sql) extension: String,
    pub(super) compression: Option<String>,
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

    /// Whether two kinds have the same format. The extensions of JSON (`.json`, `.ndjson`, ..)
    /// count as one format, and compressions are not compared.
    pub(super) fn is_same_format(&self, other: &Self) -> bool {
        let is_json = |kind: &Self| JSON.contains(&kind.extension.as_str());
        self.extension == other.extension || is_json(self) && is_json(other)
    }

    /// Returns an error for compressed files such as `a.csv.gz`: this build cannot decompress whole
    /// files.
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

/// Returns the names of the formats that STORED AS and COPY accept, separated by commas.
pub(in crate::sql) fn list_known_formats(state: &SessionState) -> String {
    let mut known: Vec<&str> = state
        .table_factories()
        .keys()
        .map(String::as_str)
        .filter(|name| state.get_file_format_factory(name).is_some())
        .collect();
    known.sort_unstable();
    known.join(", ")
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
