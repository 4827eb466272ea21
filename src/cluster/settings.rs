//! The settings `cluster.*`, and settings that a session sends to workers with a query.

use std::any::Any;

use arrow::error::ArrowError;
use datafusion::common::config::{ConfigEntry, ExtensionOptions};
use datafusion::common::{config_err, exec_datafusion_err, exec_err, extensions_options};
use datafusion::config::{ConfigExtension, ConfigOptions};
use datafusion::error::{DataFusionError, Result};
use serde_json::{Map, Value};

use crate::config::{SerrateOptions, parse_bytes};

/// The settings `cluster.*` of a session with workers. The macro `extensions_options` is not used,
/// because it lists settings without their prefix: SHOW would not find `cluster.bytes_per_task`.
#[derive(Clone, Debug)]
pub(super) struct ClusterOptions {
    /// Number of bytes of files that each task of a scan reads. A scan of more bytes has more
    /// tasks, and uses more workers.
    pub(super) bytes_per_task: usize,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self { bytes_per_task: 4 << 20 }
    }
}

impl ConfigExtension for ClusterOptions {
    const PREFIX: &'static str = "cluster";
}

impl ExtensionOptions for ClusterOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        if key != "bytes_per_task" {
            return config_err!("there is no setting cluster.{key}; use cluster.bytes_per_task");
        }
        let bytes = parse_bytes(value).map_err(|e| {
            DataFusionError::Configuration(format!("cluster.{key}: {}", e.message()))
        })?;
        self.bytes_per_task = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        vec![ConfigEntry {
            key: format!("{}.bytes_per_task", Self::PREFIX),
            value: Some(self.bytes_per_task.to_string()),
            description: "Number of file bytes per task of a scan; a scan with more bytes uses more workers",
        }]
    }
}

extensions_options! {
    /// The settings of a session that it sends to workers with each query.
    pub(super) struct SentSettings {
        /// Settings of the session that differ from the defaults; set internally for each query
        pub settings: String, default = String::new()
    }
}

impl ConfigExtension for SentSettings {
    const PREFIX: &'static str = "cluster_session";
}

/// A session sends settings with these prefixes to workers: they change what a worker computes.
const TRAVELS: [&str; 2] = ["serrate.", "datafusion.execution."];
/// Maximum bytes of the HTTP header of the settings. All headers together may have 16 KiB.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// Encodes the settings whose names begin with one of [`TRAVELS`] and whose values differ from the
/// defaults, as a text for an HTTP header. A text longer than [`MAX_HEADER_BYTES`] is an error.
pub(super) fn encode_settings(options: &ConfigOptions) -> Result<String> {
    let mut defaults = ConfigOptions::default();
    defaults.extensions.insert(SerrateOptions::default());
    let defaults = defaults.entries();
    let mut changed = Map::new();
    for entry in options.entries() {
        let travels = TRAVELS.iter().any(|prefix| entry.key.starts_with(prefix));
        if !travels {
            continue;
        }
        let default = defaults.iter().find(|d| d.key == entry.key);
        if default.is_some_and(|d| d.value != entry.value)
            && let Some(value) = entry.value
        {
            changed.insert(entry.key, Value::String(value));
        }
    }
    let text = encode_percent(&Value::Object(changed).to_string());
    if text.len() > MAX_HEADER_BYTES {
        return exec_err!(
            "the encoded settings of the session have {} bytes, but at most {MAX_HEADER_BYTES} can be sent to workers; reset some settings to their defaults",
            text.len()
        );
    }
    Ok(text)
}

/// Applies the settings that [`encode_settings`] encoded as `text`; an unknown setting is an error.
pub(super) fn apply_settings(text: &str, options: &mut ConfigOptions) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let damaged = |e: &dyn std::fmt::Display| {
        exec_datafusion_err!(
            "the received settings of the session cannot be applied; use the same version of Serrate for the session and all workers: {e}"
        )
    };
    let text = decode_percent(text).map_err(|e| damaged(&e))?;
    let settings: Map<String, Value> = serde_json::from_str(&text).map_err(|e| damaged(&e))?;
    for (key, value) in settings {
        let travels = TRAVELS.iter().any(|prefix| key.starts_with(prefix));
        match value {
            Value::String(value) if travels => options.set(&key, &value)?,
            _ => return Err(damaged(&key)),
        }
    }
    Ok(())
}

fn encode_percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | 0..=b' ' | 127.. => out.push_str(&format!("%{byte:02x}")),
            byte => out.push(char::from(byte)),
        }
    }
    out
}

fn decode_percent(text: &str) -> std::result::Result<String, DataFusionError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|d| std::str::from_utf8(d).ok());
        let byte = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
        bytes.push(byte.ok_or_else(|| {
            exec_datafusion_err!("the encoded settings of the session have a % without two hexadecimal digits after it; use the same version of Serrate for the session and all workers")
        })?);
        rest = rest.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes)
        .map_err(|e| DataFusionError::from(ArrowError::ParseError(e.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_travel_whatever_their_letters() {
        let mut options = ConfigOptions::default();
        options.extensions.insert(SerrateOptions::default());
        options.set("serrate.codes", "data/größe 100%/codes.parquet").unwrap();
        options.set("serrate.nrt_nan", "nan").unwrap();
        options.set("datafusion.execution.time_zone", "Europe/Berlin").unwrap();
        options.set("datafusion.execution.batch_size", "1234").unwrap();
        let text = encode_settings(&options).unwrap();
        assert!(text.bytes().all(|b| (33..127).contains(&b)), "{text}");
        let mut other = ConfigOptions::default();
        other.extensions.insert(SerrateOptions::default());
        apply_settings(&text, &mut other).unwrap();
        let values = |o: &ConfigOptions| -> Vec<_> {
            o.entries().into_iter().map(|e| (e.key, e.value)).collect()
        };
        assert_eq!(values(&options), values(&other));
    }

    #[test]
    fn listed_names_are_those_that_set_takes() {
        let mut options = ConfigOptions::default();
        options.extensions.insert(ClusterOptions::default());
        let find = |options: &ConfigOptions| {
            let found = options.entries().into_iter().find(|e| e.key == "cluster.bytes_per_task");
            found.and_then(|e| e.value)
        };
        assert_eq!(find(&options).as_deref(), Some("4194304"));
        options.set("cluster.bytes_per_task", "1MiB").unwrap();
        assert_eq!(find(&options).as_deref(), Some("1048576"));
        for (name, value) in [("cluster.bytes_per_task", "lots"), ("cluster.settings", "{}")] {
            let e = options.set(name, value).unwrap_err().to_string();
            assert!(e.contains("cluster."), "{e}");
        }
    }

    #[test]
    fn damaged_settings_are_refused() {
        let mut options = ConfigOptions::default();
        for text in ["{", "%", "%zz", "%ff", "[1]", "{\"datafusion.catalog.location\":\"/\"}"] {
            assert!(apply_settings(text, &mut options).is_err(), "{text}");
        }
        options.extensions.insert(SerrateOptions::default());
        options.set("serrate.codes", &"x".repeat(9000)).unwrap();
        assert!(encode_settings(&options).is_err());
    }
}
