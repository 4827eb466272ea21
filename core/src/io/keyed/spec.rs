use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use super::contents::KeyedContents;
use super::entry_cache::{self, KeyedVersion};
use crate::access;
use crate::error::{Error, Result};
use crate::io::dictionary::parse_type;

/// Identifies a [`KeyedVersion`] of a tensor or dictionary file. In query plans, a serialized spec
/// is an argument of the function `dok_get`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KeyedSpec {
    location: String,
    /// The stamp of the version of the file: [`KeyedVersion::stamp`].
    version: String,
    /// Sizes of the axes of a sparse tensor; `None` for a dictionary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<usize>>,
    keys: Vec<(String, String)>,
    value: String,
}

impl KeyedSpec {
    /// Returns the spec that identifies `version`.
    pub fn of(version: &KeyedVersion) -> Self {
        let schema = version.contents.schema();
        let mut columns: Vec<(String, String)> =
            schema.fields().iter().map(|f| (f.name().clone(), f.data_type().to_string())).collect();
        let value = columns.pop().map_or_else(String::new, |(_, value)| value);
        let shape = match &version.contents {
            KeyedContents::Tensor(tensor) => Some(tensor.shape().to_vec()),
            KeyedContents::Keys(_) => None,
        };
        let location = version.path.to_string_lossy().into_owned();
        Self { location, version: version.stamp.clone(), shape, keys: columns, value }
    }

    /// Parses a serialized spec.
    ///
    /// If `text` is a path, returns the spec of the file's current version instead.
    pub fn parse(text: &str) -> Result<Self> {
        if text.starts_with('{') {
            return serde_json::from_str(text).map_err(|e| {
                Error::invalid(format!("{text:?} is not a valid description of a tensor or dictionary file: {e}; give the path of the file instead"))
            });
        }
        let Some(path) = Self::file(text) else {
            return Err(Error::invalid(format!(
                "there is neither a table {text:?} STORED AS DOK nor a file of this name; create the table or give the path of a tensor or dictionary file"
            )));
        };
        Ok(Self::of(entry_cache::open(path)?.as_ref()))
    }

    /// Returns the path if the string is the path or the URL of an existing file, else `None`.
    pub fn file(text: &str) -> Option<&Path> {
        let path = Path::new(text.strip_prefix("file://").unwrap_or(text));
        (access::exists(path) && !access::is_dir(path)).then_some(path)
    }

    /// Serializes the spec for [`parse`](Self::parse).
    pub fn to_text(&self) -> String {
        // A spec has only strings and integers, which can always be serialized.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the names and types of the key columns.
    pub fn keys(&self) -> Result<Vec<(&str, DataType)>> {
        self.keys.iter().map(|(name, of)| Ok((name.as_str(), parse_type(of)?))).collect()
    }

    /// Returns the type of the value column.
    pub fn value(&self) -> Result<DataType> {
        parse_type(&self.value)
    }

    /// Returns the version from memory, or else reads it from the file. Returns an error if it is
    /// not in memory and the file has changed.
    pub fn load_version(&self) -> Result<Arc<KeyedVersion>> {
        entry_cache::open_pinned(Path::new(&self.location), &self.version)
    }
}
