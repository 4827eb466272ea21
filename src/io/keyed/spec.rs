//! [`Spec`]: which file a call of `dok_get` looks into, as a text that can travel.

use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use super::contents::Contents;
use super::store::{self, Version};
use crate::error::{Error, Result};

/// What a look-up has to know of a file: it stands as a literal in the plan, where the name of a
/// table stood in the query.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    location: String,
    /// What differs when the file was written anew.
    version: String,
    /// Sizes of the axes of a tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shape: Option<Vec<usize>>,
    /// Names and types of the keys.
    keys: Vec<(String, String)>,
    value: String,
}

impl Spec {
    pub(crate) fn of(version: &Version) -> Self {
        let schema = version.contents.schema();
        let mut columns: Vec<(String, String)> =
            schema.fields().iter().map(|f| (f.name().clone(), f.data_type().to_string())).collect();
        let value = columns.pop().map_or_else(String::new, |(_, value)| value);
        let shape = match &version.contents {
            Contents::Tensor(tensor) => Some(tensor.shape().to_vec()),
            Contents::Keys(_) => None,
        };
        let location = version.path.to_string_lossy().into_owned();
        Self { location, version: version.stamp.clone(), shape, keys: columns, value }
    }

    /// What an argument says: such a text, or the path of a file.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text.starts_with('{') {
            return serde_json::from_str(text)
                .map_err(|e| Error::invalid(format!("{text:?} names no tensor: {e}")));
        }
        let Some(path) = Self::file(text) else {
            return Err(Error::invalid(format!(
                "there is no table {text:?} STORED AS DOK, and no such file"
            )));
        };
        Ok(Self::of(store::open(path)?.as_ref()))
    }

    /// The file that a text is the path of.
    pub(crate) fn file(text: &str) -> Option<&Path> {
        let path = Path::new(text.strip_prefix("file://").unwrap_or(text));
        path.is_file().then_some(path)
    }

    pub(crate) fn to_text(&self) -> String {
        // Texts and numbers can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Names and types of the keys.
    pub(crate) fn keys(&self) -> Result<Vec<(&str, DataType)>> {
        self.keys.iter().map(|(name, of)| Ok((name.as_str(), data_type(of)?))).collect()
    }

    /// Type of the value.
    pub(crate) fn value(&self) -> Result<DataType> {
        data_type(&self.value)
    }

    /// The entries.
    pub(crate) fn load(&self) -> Result<Arc<Version>> {
        store::pinned(Path::new(&self.location), &self.version)
    }
}

fn data_type(text: &str) -> Result<DataType> {
    text.parse().map_err(|_| Error::invalid(format!("there is no type {text:?}")))
}
