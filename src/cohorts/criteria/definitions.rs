//! Parses predicates: plain ones (conditions on one measurement) and combinations by `and`, `or`.

use regex::Regex;

use super::super::boundary::is_name;
use super::super::matches::{CodePattern, ConfigScalar, PlainPredicate, ValueBound};
use super::super::yaml::{YamlEntry, YamlNode, YamlValue};
use super::config_file::ConfigFile;
use crate::error::Result;

/// A derived predicate, before the predicates are sorted so that each follows its inputs.
pub(super) struct PredicateDraft {
    pub(super) name: String,
    pub(super) all: bool,
    pub(super) inputs: Vec<String>,
    pub(super) is_static: bool,
    pub(super) definition: String,
}

/// Parses `and(a, b, ..)` or `or(a, b, ..)`. Returns true for `and`, false for `or`, and the names
/// of the inputs. Any other text is an error.
pub(super) fn parse_expression(
    source: &ConfigFile,
    node: &YamlNode,
    key: &str,
) -> Result<(bool, Vec<String>)> {
    const EXPECTED: &str =
        "expected \"and(a, b, ..)\" or \"or(a, b, ..)\" with two predicates or more";
    let text = source.as_text(node, key, EXPECTED)?;
    let inner = |start: &str| text.strip_prefix(start).and_then(|rest| rest.strip_suffix(')'));
    let (all, inputs) = match (inner("and("), inner("or(")) {
        (Some(inputs), _) => (true, inputs),
        (_, Some(inputs)) => (false, inputs),
        _ => return Err(source.make_node_error(node, key, EXPECTED)),
    };
    let inputs: Vec<String> = inputs.split(',').map(|input| input.trim().to_owned()).collect();
    match inputs.len() >= 2 && inputs.iter().all(|input| is_name(input)) {
        true => Ok((all, inputs)),
        false => Err(source.make_node_error(node, key, EXPECTED)),
    }
}

pub(super) fn read_derived(
    source: &ConfigFile,
    key: &str,
    name: &str,
    entries: &[YamlEntry],
) -> Result<PredicateDraft> {
    let (mut all, mut inputs, mut is_static) = (false, Vec::new(), false);
    for entry in entries {
        let key = format!("{key}.{}", entry.name);
        match entry.name.as_str() {
            "expr" => (all, inputs) = parse_expression(source, &entry.node, &key)?,
            "static" => is_static = source.as_bool(&entry.node, &key)?,
            _ => {
                let message = "unknown key; a derived predicate has the keys expr and static";
                return Err(source.make_fault(entry.line, &key, message));
            }
        }
    }
    let operator = if all { "and" } else { "or" };
    let definition = format!("{operator}({})", inputs.join(", "));
    Ok(PredicateDraft { name: name.into(), all, inputs, is_static, definition })
}

pub(super) fn read_plain(
    source: &ConfigFile,
    key: &str,
    definition: &YamlEntry,
    entries: &[YamlEntry],
) -> Result<(PlainPredicate, bool)> {
    let (mut codes, mut is_static) = (None, false);
    let (mut min, mut max) = (None, None);
    let (mut min_inclusive, mut max_inclusive) = (false, false);
    let mut other_columns = Vec::new();
    for entry in entries {
        let key = format!("{key}.{}", entry.name);
        let node = &entry.node;
        let is_null = node.value == YamlValue::Null;
        match entry.name.as_str() {
            "code" => codes = Some(read_codes(source, &key, node)?),
            "value_min" | "value_max" if is_null => {}
            "value_min" => min = Some(read_number(source, &key, node)?),
            "value_max" => max = Some(read_number(source, &key, node)?),
            "value_min_inclusive" | "value_max_inclusive" if is_null => {}
            "value_min_inclusive" => min_inclusive = source.as_bool(node, &key)?,
            "value_max_inclusive" => max_inclusive = source.as_bool(node, &key)?,
            "static" => is_static = source.as_bool(node, &key)?,
            "other_cols" => {
                for column in source.map_entries(node, &key)? {
                    let key = format!("{key}.{}", column.name);
                    other_columns.push(read_other(source, &key, column)?);
                }
            }
            // Any other key is a column of the data, with the value to which it is compared.
            _ => other_columns.push(read_other(source, &key, entry)?),
        }
    }
    let Some(codes) = codes else {
        let message = "a predicate needs the key code, or expr if it is derived from others";
        return Err(source.make_fault(definition.line, key, message));
    };
    let plain = PlainPredicate {
        key: key.to_owned(),
        codes,
        min: min.map(|value| ValueBound::new(&value, min_inclusive)),
        max: max.map(|value| ValueBound::new(&value, max_inclusive)),
        other_columns,
    };
    Ok((plain, is_static))
}

pub(super) fn read_codes(source: &ConfigFile, key: &str, node: &YamlNode) -> Result<CodePattern> {
    const EXPECTED: &str = "expected a code, {regex: ..} or {any: [..]}";
    let entries = match &node.value {
        YamlValue::Text(code) => return Ok(CodePattern::One(code.clone())),
        YamlValue::Map(entries) => entries,
        _ => return Err(source.make_node_error(node, key, EXPECTED)),
    };
    let [entry] = entries.as_slice() else {
        let message =
            format!("expected exactly one key, regex or any, found {} keys", entries.len());
        return Err(source.make_fault(node.line, key, message));
    };
    let key = format!("{key}.{}", entry.name);
    match (entry.name.as_str(), &entry.node.value) {
        ("regex", YamlValue::Text(text)) if !text.is_empty() => match Regex::new(text) {
            Ok(regex) => Ok(CodePattern::Regex(regex)),
            Err(e) => {
                let message = format!("the regular expression {text:?} is not valid: {e}");
                Err(source.make_fault(entry.line, &key, message))
            }
        },
        ("regex", _) => {
            Err(source.make_node_error(&entry.node, &key, "expected a regular expression"))
        }
        ("any", YamlValue::List(codes)) if !codes.is_empty() => {
            let codes = codes.iter().map(|code| {
                source.as_text(code, &key, "expected codes as strings").map(str::to_owned)
            });
            Ok(CodePattern::Any(codes.collect::<Result<_>>()?))
        }
        ("any", _) => {
            Err(source.make_node_error(&entry.node, &key, "expected a list of one or more codes"))
        }
        _ => Err(source.make_fault(
            entry.line,
            &key,
            "unknown key; the keys of codes are regex and any",
        )),
    }
}

pub(super) fn read_number(source: &ConfigFile, key: &str, node: &YamlNode) -> Result<ConfigScalar> {
    match node.value {
        YamlValue::Integer(value) => Ok(ConfigScalar::Integer(value)),
        YamlValue::Float(value) => Ok(ConfigScalar::Float(value)),
        _ => Err(source.make_node_error(node, key, "expected a number")),
    }
}

fn read_other(source: &ConfigFile, key: &str, entry: &YamlEntry) -> Result<(String, ConfigScalar)> {
    const STANDARD: [&str; 4] = ["subject_id", "time", "code", "numeric_value"];
    if STANDARD.contains(&entry.name.as_str()) {
        let message = "other_cols compares further columns of the data only; use code, value_min and value_max for codes and values";
        return Err(source.make_fault(entry.line, key, message));
    }
    let value = match &entry.node.value {
        YamlValue::Text(text) => ConfigScalar::Text(text.clone()),
        YamlValue::Bool(value) => ConfigScalar::Bool(*value),
        YamlValue::Integer(value) => ConfigScalar::Integer(*value),
        YamlValue::Float(value) => ConfigScalar::Float(*value),
        _ => {
            let expected = "expected a text, a number or a boolean to which the column of this name is compared";
            return Err(source.make_node_error(&entry.node, key, expected));
        }
    };
    Ok((entry.name.clone(), value))
}
