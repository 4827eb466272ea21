use std::path::Path;

use serde_json::{Map, Value};

use super::AuditLog;
use crate::access;

const STRINGS: [&str; 9] = [
    "dataset_name",
    "dataset_version",
    "etl_name",
    "etl_version",
    "meds_version",
    "created_at",
    "license",
    "location_uri",
    "description_uri",
];

/// Fields of `dataset.json` that MEDS defines as lists of column names.
const LISTS: [&str; 5] = [
    "raw_source_id_columns",
    MODIFIERS,
    "additional_value_modality_columns",
    "site_id_columns",
    "other_extension_columns",
];

/// Field of `dataset.json` that lists columns of `codes.parquet`. If it lists any, a code has
/// several rows in `codes.parquet`: one for every combination of values of these columns.
const MODIFIERS: &str = "code_modifier_columns";

/// Checks `metadata/dataset.json`; returns whether its field [`MODIFIERS`] lists any column.
pub(super) fn check_metadata(root: &Path, log: &mut AuditLog) -> bool {
    let path = root.join("metadata").join("dataset.json");
    let expected = "a JSON object with dataset_name, dataset_version, meds_version, ..";
    if !access::exists(&path) {
        log.add_finding("no-dataset-json", &path, String::new, "no such file", expected);
        return false;
    }
    let text = match access::read(&path) {
        Ok(text) => text,
        Err(e) => {
            log.add_finding("dataset-json", &path, String::new, e.to_string(), expected);
            return false;
        }
    };
    match serde_json::from_slice::<Value>(&text) {
        Ok(Value::Object(fields)) => check_fields(&path, &fields, log),
        Ok(other) => {
            log.add_finding("dataset-json", &path, String::new, name_kind(&other), expected);
            false
        }
        Err(e) => {
            log.add_finding("dataset-json", &path, String::new, format!("not JSON: {e}"), expected);
            false
        }
    }
}

fn check_fields(path: &Path, fields: &Map<String, Value>, log: &mut AuditLog) -> bool {
    for (name, value) in fields {
        let is_text_list =
            |v: &Value| matches!(v, Value::Array(a) if a.iter().all(Value::is_string));
        let expected = match name.as_str() {
            _ if value.is_null() => continue,
            string if STRINGS.contains(&string) && !value.is_string() => "a string",
            list if LISTS.contains(&list) && !is_text_list(value) => "a list of column names",
            _ => continue,
        };
        let position = || format!("field {name:?}");
        log.add_finding_about(name, "dataset-json", path, position, name_kind(value), expected);
    }
    fields.get(MODIFIERS).and_then(Value::as_array).is_some_and(|columns| !columns.is_empty())
}

fn name_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
