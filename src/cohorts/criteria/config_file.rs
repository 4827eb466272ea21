//! Reads the YAML files of a configuration, and reports what is wrong in them.

use std::path::{Path, PathBuf};

use super::super::yaml::{YamlEntry, YamlNode, YamlValue, parse_yaml};
use crate::access;
use crate::error::{Error, Result};

/// A YAML file that is part of a configuration: the configuration itself, or a file of predicates.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) root: YamlNode,
}

impl ConfigFile {
    pub(super) fn read_yaml(path: &Path) -> Result<Self> {
        let text = access::read_to_string(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::InvalidData => Error::file(
                path,
                "a configuration is a YAML file, but this file is not text; save it as UTF-8",
            ),
            std::io::ErrorKind::NotFound => Error::file(
                path,
                "the file does not exist; name the YAML file of the criteria of a cohort",
            ),
            _ => Error::io(path, e),
        })?;
        let root = parse_yaml(&text).map_err(|fault| {
            Error::file(path, format!("line {}: {}", fault.line, fault.message))
        })?;
        Ok(Self { path: path.to_path_buf(), root })
    }

    pub(super) fn make_fault(&self, line: usize, key: &str, message: impl AsRef<str>) -> Error {
        Error::file(&self.path, format!("line {line}: {key}: {}", message.as_ref()))
    }

    pub(super) fn make_node_error(&self, node: &YamlNode, key: &str, expected: &str) -> Error {
        self.make_fault(node.line, key, format!("{expected}, found {}", node.describe_value()))
    }

    /// Returns the entries of `node`, which must be a mapping or null; no entries if it is null.
    /// `key` is the key of the node, for the error.
    pub(super) fn map_entries<'a>(&self, node: &'a YamlNode, key: &str) -> Result<&'a [YamlEntry]> {
        match &node.value {
            YamlValue::Map(entries) => Ok(entries),
            YamlValue::Null => Ok(&[]),
            _ => Err(self.make_node_error(node, key, "expected a mapping of names to values")),
        }
    }

    pub(super) fn as_text<'a>(
        &self,
        node: &'a YamlNode,
        key: &str,
        expected: &str,
    ) -> Result<&'a str> {
        match &node.value {
            YamlValue::Text(text) => Ok(text),
            _ => Err(self.make_node_error(node, key, expected)),
        }
    }

    pub(super) fn as_bool(&self, node: &YamlNode, key: &str) -> Result<bool> {
        match node.value {
            YamlValue::Bool(value) => Ok(value),
            _ => Err(self.make_node_error(node, key, "expected true or false")),
        }
    }
}
