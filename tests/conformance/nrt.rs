//! Runs the cases of the Python library `nested_ragged_tensors` on `RaggedTable`.

#[path = "nrt/differences.rs"]
mod differences;
#[path = "nrt/state.rs"]
mod state;

use arrow::datatypes::DataType;
use serde_json::Value;
use serrate::Error;
use serrate::dense::{DType, DenseOptions, DenseTensor};
use serrate::io::json::JsonOptions;
use serrate::io::nrt::{self, NrtFile, ReadOptions, WriteOptions};
use serrate::table::{NanComparison, RaggedTable};

pub(crate) use self::differences::as_given;
pub(crate) use self::differences::{DIFFERENCES, Rule};
use self::differences::{
    declared_otherwise, find_rule, has_any, numpy_answer, outer_lengths_differ,
};
use crate::format::{Asked, Case, Expected, check_only, matches_kind, parse_index};
use crate::json::Json;

/// The outcome of a case that did not fail.
#[derive(Debug)]
pub(crate) enum Verdict {
    Passed,
    /// The result differs on purpose from that of the Python library, by this rule.
    Differs(Rule),
}

type Checked<T> = Result<T, String>;

/// The result of an operation.
#[derive(Debug)]
enum Found {
    Table(RaggedTable),
    Dense(RaggedTable, Vec<(String, DenseTensor)>),
    Flag(&'static str, bool),
    Saved(tempfile::TempDir),
    Inferred(RaggedTable),
}

impl Found {
    fn shown(&self) -> String {
        match self {
            Self::Table(table) | Self::Inferred(table) | Self::Dense(table, _) => table.to_string(),
            Self::Flag(name, value) => format!("{name}: {value}"),
            Self::Saved(_) => "a file".into(),
        }
    }
}

/// Runs a case. Returns an error if its result differs or its operation is unknown.
pub(crate) fn run(case: &Case) -> Checked<Verdict> {
    let table = |t: serrate::Result<RaggedTable>| t.map(Found::Table);
    let whole: &[&str] = &["data", "schema"];
    // The tables on which the operation is called, with which the checks compare its result.
    let mut from: Vec<RaggedTable> = Vec::new();
    let found = match case.op.as_str() {
        "construct" => {
            case.takes(whole, &[])?;
            table(construct_table(&case.input)?)
        }
        "infer_dtype" => {
            case.takes(&["values"], &[])?;
            let values = case.input.get("values").ok_or("no values")?;
            let data = Json::Object(vec![("x".into(), values.clone())]);
            construct_table(&Json::Object(vec![("data".into(), data)]))?.map(Found::Inferred)
        }
        "getitem_int"
        | "getitem_slice"
        | "getitem_array"
        | "getitem_tuple"
        | "getitem_unsupported" => {
            case.takes(whole, &["index"])?;
            let asked = parse_index(case.args.get("index").ok_or("no index")?)?;
            record_table(&mut from, construct_table(&case.input)?, |t| {
                take_part(t, &asked).map(Found::Table)
            })
        }
        "to_dense" => {
            case.takes(whole, &["padding_side"])?;
            let side = case.args.get("padding_side").map_or(Ok("right"), Json::text)?;
            record_table(&mut from, construct_table(&case.input)?, |t| {
                let options = DenseOptions { side: side.parse()?, ..DenseOptions::default() };
                Ok(Found::Dense(t.clone(), t.to_dense(&options)?))
            })
        }
        "squeeze" | "unsqueeze" | "flatten" => {
            case.takes(whole, &["dim"])?;
            let dim = case.args.get("dim").map(Json::int::<i64>).transpose()?;
            record_table(&mut from, construct_table(&case.input)?, |t| match case.op.as_str() {
                "squeeze" => t.squeeze(dim.unwrap_or(0)).map(Found::Table),
                "unsqueeze" => t.unsqueeze(dim.unwrap_or(0)).map(Found::Table),
                _ => t.flatten(dim.unwrap_or(-1)).map(Found::Table),
            })
        }
        "concatenate" | "vstack" => {
            case.takes(&["items"], &[])?;
            let mut items = Ok(Vec::new());
            for item in case.input.get("items").ok_or("no items")?.list()? {
                check_only(item, "an item", whole)?;
                let table = construct_table(item)?;
                items = items.and_then(|mut all: Vec<RaggedTable>| {
                    all.push(table?);
                    Ok(all)
                });
            }
            items.and_then(|items| {
                from.clone_from(&items);
                let stack = case.op == "vstack";
                table(if stack { RaggedTable::vstack(&items) } else { RaggedTable::concat(&items) })
            })
        }
        "collate_roundtrip" => {
            case.takes(whole, &["order"])?;
            let order: Vec<i64> =
                crate::format::parse_ints(case.args.get("order").ok_or("no order")?)?;
            record_table(&mut from, construct_table(&case.input)?, |t| {
                let rows =
                    order.iter().map(|i| t.index(&[(*i).into()])).collect::<Result<Vec<_>, _>>()?;
                table(RaggedTable::vstack(&rows))
            })
        }
        "equals" => {
            case.takes(&["a", "b"], &["equal_nan"])?;
            let equal_nan = case.args.get("equal_nan").map_or(Ok(false), Json::bool)?;
            let nan = if equal_nan { NanComparison::Equal } else { NanComparison::Unequal };
            let side = |name: &str| -> Checked<serrate::Result<RaggedTable>> {
                let input = case.input.get(name).ok_or("a side is missing")?;
                check_only(input, "a side", whole)?;
                construct_table(input)
            };
            let (a, b) = (side("a")?, side("b")?);
            a.and_then(|a| Ok(Found::Flag("equal", a.equals(&b?, nan)?)))
        }
        "is_ndim_list" => {
            case.takes(&["list"], &["dim"])?;
            let list = to_value(case.input.get("list").ok_or("no list")?)?;
            let dim = case.args.get("dim").map_or(Ok(1), Json::int::<i64>)?;
            // A negative depth is as invalid as the depth 0.
            is_ndim_list(&list, usize::try_from(dim).unwrap_or(0)).map(|r| Found::Flag("result", r))
        }
        "save" => save_file(case)?,
        "load" => load_file(case, &mut from)?,
        other => return Err(format!("the operation {other:?} is unknown")),
    };
    settle(case, &from, found)
}

/// Returns whether `value` consists of lists nested `ndim` deep around numbers or booleans. As in
/// the Python library, an empty list may have any depth.
fn is_ndim_list(value: &Value, ndim: usize) -> serrate::Result<bool> {
    fn is_number(value: &Value) -> bool {
        match value {
            Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity"),
            _ => false,
        }
    }
    fn is_nested(value: &Value, ndim: usize) -> bool {
        let Value::Array(list) = value else { return false };
        list.iter().all(|v| if ndim == 1 { is_number(v) } else { is_nested(v, ndim - 1) })
    }
    if ndim == 0 {
        return Err(Error::invalid("the depth of a list is at least 1; 0 was given"));
    }
    Ok(is_nested(value, ndim))
}

fn record_table(
    from: &mut Vec<RaggedTable>,
    table: serrate::Result<RaggedTable>,
    then: impl FnOnce(&RaggedTable) -> serrate::Result<Found>,
) -> serrate::Result<Found> {
    let table = table?;
    from.push(table.clone());
    then(&table)
}

/// Returns raw data of a case as JSON text. Numbers keep their text.
fn raw(json: &Json) -> Checked<String> {
    Ok(match json {
        Json::Null => "null".into(),
        Json::Bool(b) => b.to_string(),
        Json::Number(text) => text.clone(),
        Json::Text(text) => match text.as_str() {
            "NaN" | "Infinity" | "-Infinity" => format!("{text:?}"),
            other => return Err(format!("the raw text {other:?} is no number")),
        },
        Json::List(list) => {
            let parts = list.iter().map(raw).collect::<Checked<Vec<_>>>()?;
            format!("[{}]", parts.join(","))
        }
        Json::Object(members) => match &members[..] {
            [(kind, Json::Text(text))] if kind == "$int" => text.clone(),
            [(kind, Json::Text(text))] if kind == "$str" => Value::from(text.as_str()).to_string(),
            other => return Err(format!("the raw value {other:?} is unknown")),
        },
    })
}

fn to_value(json: &Json) -> Checked<Value> {
    serde_json::from_str(&raw(json)?).map_err(|e| e.to_string())
}

fn construct_table(input: &Json) -> Checked<serrate::Result<RaggedTable>> {
    let mut options = JsonOptions::default();
    if let Some(schema) = input.get("schema") {
        for (key, dtype) in schema.members()? {
            let dtype: DType = dtype.text()?.parse().map_err(|e: Error| e.to_string())?;
            options = options.with_column(key, dtype.to_arrow());
        }
    }
    let mut members = Vec::new();
    let reads_as_float = |j: &Json| {
        let text = j.get("$str").and_then(|t| t.text().ok());
        text.is_some_and(|t| matches!(t, "NaN" | "Infinity" | "-Infinity"))
    };
    for (key, values) in input.get("data").ok_or("no data")?.members()? {
        if has_any(values, &reads_as_float) {
            if options.schema.iter().any(|(name, _)| name == key) {
                return Err(format!("{key}: a text that reads as a float, and a declared type"));
            }
            options = options.with_column(key, DataType::Utf8);
        }
        members.push(format!("{}:{}", Value::from(key.as_str()), raw(values)?));
    }
    let text = format!("{{{}}}", members.join(","));
    Ok(RaggedTable::from_json_text(text.as_bytes(), &options))
}

fn take_part(table: &RaggedTable, asked: &Asked) -> serrate::Result<RaggedTable> {
    match asked {
        Asked::Index(index) => table.index(index),
        Asked::Nonsense => Err(Error::invalid("the types of this crate rule such an index out")),
    }
}

fn find_file(case: &Case, json: Option<&Json>) -> Checked<std::path::PathBuf> {
    Ok(case.root.join(json.ok_or("no file is named")?.text()?))
}

fn save_file(case: &Case) -> Checked<serrate::Result<Found>> {
    case.takes(&["data", "schema", "file"], &["file"])?;
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = dir.path().join("saved.nrt");
    let table = if case.input.get("file").is_some() {
        // The file to save to exists already: it is the source, and `write` replaces it only with
        // `overwrite`.
        let from = find_file(case, case.input.get("file"))?;
        std::fs::copy(&from, &path).map_err(|e| format!("{}: {e}", from.display()))?;
        NrtFile::open(&path, &ReadOptions::default()).and_then(|f| f.table())
    } else {
        construct_table(&case.input)?
    };
    Ok(table
        .and_then(|t| nrt::write(&path, &t, &WriteOptions::default()))
        .map(|()| Found::Saved(dir)))
}

fn load_file(case: &Case, from: &mut Vec<RaggedTable>) -> Checked<serrate::Result<Found>> {
    case.takes(&["file"], &["keys", "index"])?;
    let asked = case.args.get("index").map(parse_index).transpose()?;
    let keys = match case.args.get("keys") {
        None => None,
        // Other values than a list of strings are excluded by the type of the argument in this
        // crate.
        Some(Json::List(keys)) if keys.iter().all(|k| matches!(k, Json::Text(_))) => {
            // The Python library takes the keys as a set, so that repeated keys count once.
            let mut names: Vec<&str> = Vec::new();
            for key in keys {
                let name = key.text()?;
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            Some(names)
        }
        Some(_) => return Ok(Err(Error::invalid("keys are a list of strings"))),
    };
    let path = find_file(case, case.input.get("file"))?;
    let read = || {
        let file = NrtFile::open(&path, &ReadOptions::default())?;
        file.read(0..file.num_rows(), keys.as_deref())
    };
    Ok(record_table(from, read(), |t| {
        Ok(Found::Table(asked.as_ref().map_or_else(|| Ok(t.clone()), |asked| take_part(t, asked))?))
    }))
}

/// Compares the result or the error of an operation with what the case expects, and finds the rule
/// for a difference on purpose.
fn settle(case: &Case, from: &[RaggedTable], found: serrate::Result<Found>) -> Checked<Verdict> {
    match (&case.expected, found) {
        (Expected::Result(expect), Ok(found)) => state::check(case, from, &found, expect),
        (Expected::Error { kind, .. }, Err(error)) => {
            if matches_kind(&case.op, &error, kind)? {
                return Ok(Verdict::Passed);
            }
            if declared_otherwise(case, &error) {
                return Ok(Verdict::Differs(Rule::Declared));
            }
            Err(format!("expected a {kind}, found the error {error:?}"))
        }
        (Expected::Result(_), Err(error)) => {
            if matches!(error, Error::Disagree { .. }) && outer_lengths_differ(&case.input) {
                return Ok(Verdict::Differs(Rule::OuterLengths));
            }
            if declared_otherwise(case, &error) {
                return Ok(Verdict::Differs(Rule::Declared));
            }
            Err(format!("found the error {error}"))
        }
        (Expected::Error { kind, gist }, Ok(found)) => {
            // If the Python library does not accept an index, the result of numpy is expected.
            let tagged = case.has_tag("limitation");
            let refuses = tagged || kind == "TypeError" || kind == "ValueError";
            if let (true, Found::Table(table), Some(asked)) =
                (refuses, &found, case.args.get("index"))
            {
                let Asked::Index(items) = parse_index(asked)? else {
                    return Err("an index of no kind has an answer".into());
                };
                numpy_answer(&from[0], &items, table)?;
                return Ok(if tagged { Verdict::Passed } else { Verdict::Differs(Rule::Indices) });
            }
            find_rule(case, from, &found, kind, gist)?
                .map(|rule| if tagged { Verdict::Passed } else { Verdict::Differs(rule) })
                .ok_or_else(|| format!("expected a {kind} ({gist}), found {}", found.shown()))
        }
    }
}
