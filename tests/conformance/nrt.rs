//! The cases of nested_ragged_tensors, on `RaggedTable`.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use serde_json::Value;
use serrate::Error;
use serrate::dense::{DType, DenseOptions, DenseTensor};
use serrate::index::Index;
use serrate::io::json::{JsonOptions, is_ndim_list};
use serrate::io::nrt::{self, NrtFile, ReadOptions, WriteOptions};
use serrate::io::safetensors::{SafetensorsFile, dense};
use serrate::table::RaggedTable;

use crate::format::{Asked, Case, Expected, fits, index, only, same_tensor};
use crate::json::Json;
use crate::reference::{self, Nested, Plan};

/// Where this crate decides otherwise than the library, on purpose. Each rule is about a kind of
/// input, not about a case, and a case that falls under it is checked against what is meant here.
pub(crate) const DIFFERENCES: [(Rule, &str); 10] = [
    (Rule::OuterLengths, "lengths of all columns are checked on every axis, the rows included"),
    (Rule::NoValues, "a column without values stays in a dense result, with an axis of size 0"),
    (
        Rule::Scalars,
        "columns of axis 0 stay with an indexed row, so that rows with no others collate",
    ),
    (Rule::Widths, "columns of different number types concatenate: types unify as numpy's do"),
    (
        Rule::AnyAxis,
        "every axis can be squeezed, added or merged, not only the outermost or innermost",
    ),
    (
        Rule::Declared,
        "a declared type takes the values it has: 0 and 1 for bool, no float beyond its range",
    ),
    (Rule::Texts, "texts are values"),
    (Rule::Nulls, "values and lists may be missing"),
    (Rule::Empty, "a column of no rows is a column, where its type is declared"),
    (Rule::NoKeys, "a file read without any columns is a table without columns"),
];

/// See [`DIFFERENCES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    OuterLengths,
    NoValues,
    Scalars,
    Widths,
    AnyAxis,
    Declared,
    Texts,
    Nulls,
    Empty,
    NoKeys,
}

/// How a case went; failures are errors.
#[derive(Debug)]
pub(crate) enum Verdict {
    Passed,
    /// As this crate means it, not as the library does.
    Differs(Rule),
}

type Checked<T> = Result<T, String>;

/// What an operation gave.
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

/// Runs a case; an operation that is not listed here is an error.
pub(crate) fn run(case: &Case) -> Checked<Verdict> {
    let table = |t: serrate::Result<RaggedTable>| t.map(Found::Table);
    let whole: &[&str] = &["data", "schema"];
    // The tables an operation starts from, for what is checked about its answer.
    let mut from: Vec<RaggedTable> = Vec::new();
    let found = match case.op.as_str() {
        "construct" => {
            case.takes(whole, &[])?;
            table(construct(&case.input)?)
        }
        "infer_dtype" => {
            case.takes(&["values"], &[])?;
            let values = case.input.get("values").ok_or("no values")?;
            let data = Json::Object(vec![("x".into(), values.clone())]);
            construct(&Json::Object(vec![("data".into(), data)]))?.map(Found::Inferred)
        }
        "getitem_int"
        | "getitem_slice"
        | "getitem_array"
        | "getitem_tuple"
        | "getitem_unsupported" => {
            case.takes(whole, &["index"])?;
            let asked = index(case.args.get("index").ok_or("no index")?)?;
            one(&mut from, construct(&case.input)?, |t| take(t, &asked).map(Found::Table))
        }
        "to_dense" => {
            case.takes(whole, &["padding_side"])?;
            let side = case.args.get("padding_side").map_or(Ok("right"), Json::text)?;
            one(&mut from, construct(&case.input)?, |t| {
                let options = DenseOptions { side: side.parse()?, ..DenseOptions::default() };
                Ok(Found::Dense(t.clone(), t.to_dense(&options)?))
            })
        }
        "squeeze" | "unsqueeze" | "flatten" => {
            case.takes(whole, &["dim"])?;
            let dim = case.args.get("dim").map(Json::int::<i64>).transpose()?;
            one(&mut from, construct(&case.input)?, |t| match case.op.as_str() {
                "squeeze" => t.squeeze(dim.unwrap_or(0)).map(Found::Table),
                "unsqueeze" => t.unsqueeze(dim.unwrap_or(0)).map(Found::Table),
                _ => t.flatten(dim.unwrap_or(-1)).map(Found::Table),
            })
        }
        "concatenate" | "vstack" => {
            case.takes(&["items"], &[])?;
            let mut items = Ok(Vec::new());
            for item in case.input.get("items").ok_or("no items")?.list()? {
                only(item, "an item", whole)?;
                let table = construct(item)?;
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
            let order: Vec<i64> = crate::format::ints(case.args.get("order").ok_or("no order")?)?;
            one(&mut from, construct(&case.input)?, |t| {
                let rows =
                    order.iter().map(|i| t.index(&[(*i).into()])).collect::<Result<Vec<_>, _>>()?;
                table(RaggedTable::vstack(&rows))
            })
        }
        "equals" => {
            case.takes(&["a", "b"], &["equal_nan"])?;
            let nan = case.args.get("equal_nan").map_or(Ok(false), Json::bool)?;
            let side = |name: &str| -> Checked<serrate::Result<RaggedTable>> {
                let input = case.input.get(name).ok_or("a side is missing")?;
                only(input, "a side", whole)?;
                construct(input)
            };
            let (a, b) = (side("a")?, side("b")?);
            a.and_then(|a| Ok(Found::Flag("equal", a.equals(&b?, nan)?)))
        }
        "is_ndim_list" => {
            case.takes(&["list"], &["dim"])?;
            let list = to_value(case.input.get("list").ok_or("no list")?)?;
            let dim = case.args.get("dim").map_or(Ok(1), Json::int::<i64>)?;
            // A negative depth is no number of levels at all.
            is_ndim_list(&list, usize::try_from(dim).unwrap_or(0)).map(|r| Found::Flag("result", r))
        }
        "save" => save(case)?,
        "load" => load(case, &mut from)?,
        other => return Err(format!("the operation {other:?} is unknown")),
    };
    settle(case, &from, found)
}

fn one(
    from: &mut Vec<RaggedTable>,
    table: serrate::Result<RaggedTable>,
    then: impl FnOnce(&RaggedTable) -> serrate::Result<Found>,
) -> serrate::Result<Found> {
    let table = table?;
    from.push(table.clone());
    then(&table)
}

/// Raw data as JSON text, every number as it is written.
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

fn construct(input: &Json) -> Checked<serrate::Result<RaggedTable>> {
    let mut options = JsonOptions::default();
    if let Some(schema) = input.get("schema") {
        for (key, dtype) in schema.members()? {
            let dtype: DType = dtype.text()?.parse().map_err(|e: Error| e.to_string())?;
            options = options.with_column(key, dtype.to_arrow());
        }
    }
    let mut members = Vec::new();
    for (key, values) in input.get("data").ok_or("no data")?.members()? {
        members.push(format!("{}:{}", Value::from(key.as_str()), raw(values)?));
    }
    let text = format!("{{{}}}", members.join(","));
    Ok(RaggedTable::from_json_text(text.as_bytes(), &options))
}

fn take(table: &RaggedTable, asked: &Asked) -> serrate::Result<RaggedTable> {
    match asked {
        Asked::Index(index) => table.index(index),
        Asked::Nonsense => Err(Error::invalid("the types of this crate rule such an index out")),
    }
}

fn file(case: &Case, json: Option<&Json>) -> Checked<std::path::PathBuf> {
    Ok(case.root.join(json.ok_or("no file is named")?.text()?))
}

fn save(case: &Case) -> Checked<serrate::Result<Found>> {
    case.takes(&["data", "schema", "file"], &["file"])?;
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = dir.path().join("saved.nrt");
    let table = if case.input.get("file").is_some() {
        // To where it came from: a file that exists is not replaced unless that is asked for.
        let from = file(case, case.input.get("file"))?;
        std::fs::copy(&from, &path).map_err(|e| format!("{}: {e}", from.display()))?;
        NrtFile::open(&path, &ReadOptions::default()).and_then(|f| f.table())
    } else {
        construct(&case.input)?
    };
    Ok(table
        .and_then(|t| nrt::write(&path, &t, &WriteOptions::default()))
        .map(|()| Found::Saved(dir)))
}

fn load(case: &Case, from: &mut Vec<RaggedTable>) -> Checked<serrate::Result<Found>> {
    case.takes(&["file"], &["keys", "index"])?;
    let asked = case.args.get("index").map(index).transpose()?;
    let keys = match case.args.get("keys") {
        None => None,
        // What is not a list of texts is ruled out by the type of the argument.
        Some(Json::List(keys)) if keys.iter().all(|k| matches!(k, Json::Text(_))) => {
            Some(keys.iter().map(Json::text).collect::<Checked<Vec<_>>>()?)
        }
        Some(_) => return Ok(Err(Error::invalid("keys are a list of texts"))),
    };
    let path = file(case, case.input.get("file"))?;
    let read = || {
        let file = NrtFile::open(&path, &ReadOptions::default())?;
        file.read(0..file.num_rows(), keys.as_deref())
    };
    Ok(one(from, read(), |t| {
        Ok(Found::Table(asked.as_ref().map_or_else(|| Ok(t.clone()), |asked| take(t, asked))?))
    }))
}

/// Whether what was found is what the case says, or a difference that is meant.
fn settle(case: &Case, from: &[RaggedTable], found: serrate::Result<Found>) -> Checked<Verdict> {
    match (&case.expected, found) {
        (Expected::Result(expect), Ok(found)) => check(case, from, &found, expect),
        (Expected::Error { kind, .. }, Err(error)) => {
            if fits(&error, kind)? {
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
            if case.has_tag("limitation") {
                let Found::Table(table) = &found else { return Err("no table".into()) };
                let asked = index(case.args.get("index").ok_or("no index")?)?;
                let Asked::Index(items) = asked else { return Err("an index of no kind".into()) };
                numpy_answer(&from[0], &items, table)?;
                return Ok(Verdict::Passed);
            }
            meant(case, from, &found, gist)?
                .map(Verdict::Differs)
                .ok_or_else(|| format!("expected a {kind} ({gist}), found {}", found.shown()))
        }
    }
}

/// Whether a value was refused that numpy would have cast to a declared bool or float.
fn declared_otherwise(case: &Case, error: &Error) -> bool {
    let Error::ValueType { expected, .. } = error else { return false };
    let dtype = expected.parse::<DataType>().ok().and_then(|t| DType::from_arrow(&t));
    let declared = |d: DType| any(&case.input, &|j| *j == Json::Text(d.name().into()));
    dtype.is_some_and(|d| (d == DType::Bool || d.is_float()) && declared(d))
}

/// Which difference an answer falls under where the library refuses, once it is what is meant.
fn meant(case: &Case, from: &[RaggedTable], found: &Found, gist: &str) -> Checked<Option<Rule>> {
    let (Found::Table(table) | Found::Inferred(table) | Found::Dense(table, _)) = found else {
        return Ok(None);
    };
    let ensure = |ok: bool, rule| {
        if ok {
            Ok(Some(rule))
        } else {
            Err(format!("{rule:?} does not explain {}", found.shown()))
        }
    };
    let constructs = matches!(case.op.as_str(), "construct" | "infer_dtype");
    Ok(match case.op.as_str() {
        "concatenate" | "vstack" if gist.starts_with("Schema inconsistent") => {
            let mut row = 0;
            for item in from {
                let item = if case.op == "vstack" { item.unsqueeze(0) } else { Ok(item.clone()) };
                let item = item.map_err(|e| e.to_string())?;
                let part = table.slice(row..row + item.num_rows()).map_err(|e| e.to_string())?;
                if !part.equals(&item, true).map_err(|e| e.to_string())? {
                    return Err(format!("rows {row}.. are {part}, not {item}"));
                }
                row += item.num_rows();
            }
            ensure(row == table.num_rows(), Rule::Widths)?
        }
        op @ ("squeeze" | "unsqueeze" | "flatten") if gist.starts_with("Only supports dim") => {
            let dim: i64 = case.args.get("dim").ok_or("no dim")?.int()?;
            ensure(reshaped(op, dim, &from[0], table)?, Rule::AnyAxis)?
        }
        "collate_roundtrip" if from[0].max_ndim() == Some(1) => {
            rows_in_order(case, &from[0], table)?;
            Some(Rule::Scalars)
        }
        "load" if matches!(case.args.get("keys"), Some(Json::List(keys)) if keys.is_empty()) => {
            ensure(table.columns().is_empty(), Rule::NoKeys)?
        }
        _ if constructs && any(&case.input, &|j| j.get("$str").is_some()) => {
            let text = |t: &DataType| *t == DataType::Utf8 || *t == DataType::LargeUtf8;
            ensure(table.columns().iter().any(|c| text(c.data_type())), Rule::Texts)?
        }
        _ if constructs && any(&case.input, &|j| *j == Json::Null) => {
            let nulls = |c: &serrate::table::Column| {
                c.values().null_count() > 0 || c.list_nulls().iter().any(Option::is_some)
            };
            ensure(table.columns().iter().any(nulls), Rule::Nulls)?
        }
        _ if gist.starts_with("Empty list found") => ensure(table.num_rows() == 0, Rule::Empty)?,
        _ => None,
    })
}

fn any(json: &Json, is: &dyn Fn(&Json) -> bool) -> bool {
    is(json)
        || match json {
            Json::List(list) => list.iter().any(|j| any(j, is)),
            Json::Object(members) => members.iter().any(|(_, j)| any(j, is)),
            _ => false,
        }
}

/// Whether columns of one table have another number of rows.
fn outer_lengths_differ(input: &Json) -> bool {
    let differ = |data: &Json| {
        let lengths = data.members().map_or(Vec::new(), |m| {
            m.iter().filter_map(|(_, v)| v.list().ok().map(<[Json]>::len)).collect()
        });
        lengths.windows(2).any(|w: &[usize]| w[0] != w[1])
    };
    any(input, &|j| j.get("data").is_some_and(differ))
}

/// Elements as text, lists as lists.
fn nested(array: &ArrayRef) -> Nested<String> {
    let one = |i: usize| {
        if array.is_null(i) {
            return Nested::Null;
        }
        match array.data_type() {
            DataType::List(_) => nested(&array.as_list::<i32>().value(i)),
            DataType::LargeList(_) => nested(&array.as_list::<i64>().value(i)),
            DataType::FixedSizeList(..) => nested(&array.as_fixed_size_list().value(i)),
            _ => Nested::Leaf(array_value_to_string(array, i).unwrap()),
        }
    };
    Nested::List((0..array.len()).map(one).collect())
}

fn column(table: &RaggedTable, name: &str) -> Checked<Nested<String>> {
    let array = table.array(name).and_then(|a| a.to_arrow()).map_err(|e| e.to_string())?;
    Ok(nested(&array))
}

/// Refuses what is not numpy's answer, column by column.
fn numpy_answer(from: &RaggedTable, index: &[Index], found: &RaggedTable) -> Checked<()> {
    let plan = Plan::new(index, from.ndim()).ok_or("numpy refuses this index")?;
    for source in from.columns() {
        let name = source.name();
        let (expected, levels) = plan
            .apply(&column(from, name)?, source.axis() + 1)
            .ok_or("numpy finds something out of range")?;
        let (got, axis) = match found.scalar(name) {
            Ok(scalar) => (nested(scalar.value()).children()[0].clone(), 0),
            Err(_) => {
                let axis = found.column(name).map_err(|e| e.to_string())?.axis();
                (column(found, name)?, axis + 1)
            }
        };
        if got != expected || axis != levels {
            return Err(format!("{name}: found {got:?}, numpy has {expected:?}"));
        }
    }
    Ok(())
}

fn reshaped(op: &str, dim: i64, from: &RaggedTable, found: &RaggedTable) -> Checked<bool> {
    let ndim = i64::try_from(from.ndim()).unwrap() + i64::from(op == "unsqueeze");
    let at = usize::try_from(if dim < 0 { dim + ndim } else { dim }).map_err(|e| e.to_string())?;
    let mut same = true;
    for source in from.columns() {
        let (name, axis) = (source.name(), source.axis());
        let before = column(from, name)?;
        let expected = match op {
            "squeeze" => reference::squeeze(&before, axis, at),
            "unsqueeze" => reference::unsqueeze(&before, axis, at),
            _ => {
                let layout = from.layout(at).map_err(|e| e.to_string())?;
                let lengths: Vec<usize> = (0..layout.lists()).map(|l| layout.length(l)).collect();
                let zero = match source.data_type() {
                    DataType::Boolean => "false",
                    t if t.is_floating() => "0.0",
                    _ => "0",
                };
                reference::flatten(&before, axis, at, &lengths, &|_| Nested::Leaf(zero.into()))
            }
        };
        same &= column(found, name)? == expected;
    }
    Ok(same)
}

/// Compares an answer with all that the case says about it.
fn check(case: &Case, from: &[RaggedTable], found: &Found, expect: &Json) -> Checked<Verdict> {
    match found {
        Found::Table(table) => {
            let mut verdict = Verdict::Passed;
            for (what, expected) in expect.members()? {
                if what == "dense" {
                    let mut dense =
                        table.to_dense(&DenseOptions::default()).map_err(|e| e.to_string())?;
                    if case.op == "collate_roundtrip" {
                        // As for the tensors.
                        let lost = |n: &str| table.columns_at(0).any(|c| c.name() == n);
                        dense.retain(|(n, _)| expected.get(n).is_some() || !lost(n));
                    }
                    verdict = same_dense(table, dense, expected)?;
                } else {
                    same_state(case, table, what, expected)?;
                }
            }
            if case.op.starts_with("getitem") {
                nothing_is_lost(&from[0], table)?;
            }
            if case.op == "collate_roundtrip" {
                rows_in_order(case, &from[0], table)?;
            }
            Ok(verdict)
        }
        Found::Dense(table, dense) => same_dense(table, dense.clone(), expect),
        Found::Flag(name, value) => {
            only(expect, "the result", &[name])?;
            if expect.get(name).ok_or("no result")?.bool()? == *value {
                return Ok(Verdict::Passed);
            }
            Err(format!("{name} is {value}"))
        }
        Found::Inferred(table) => {
            only(expect, "the result", &["dtype", "stored"])?;
            let values = table.column("x").map_err(|e| e.to_string())?.values();
            let tensor = DenseTensor::from_flat(values, "x").map_err(|e| e.to_string())?;
            let dtype = expect.get("dtype").ok_or("no dtype")?.text()?;
            if tensor.dtype().name() != dtype || values.null_count() > 0 {
                return Err(format!("inferred {tensor}, expected {dtype}"));
            }
            same_tensor("stored", &tensor, expect.get("stored").ok_or("no values")?)?;
            Ok(Verdict::Passed)
        }
        Found::Saved(dir) => same_file(case, &dir.path().join("saved.nrt"), expect),
    }
}

/// Collated rows are the rows taken, columns of axis 0 included.
fn rows_in_order(case: &Case, from: &RaggedTable, table: &RaggedTable) -> Checked<()> {
    let order: Vec<i64> = crate::format::ints(case.args.get("order").ok_or("no order")?)?;
    let rows = from.index(&[order.into()]).map_err(|e| e.to_string())?;
    same("the rows taken", table.equals(&rows, true).map_err(|e| e.to_string())?, true)
}

/// The columns and bounds of a table as an `.nrt` file names them.
fn tensors(table: &RaggedTable) -> Checked<Vec<(String, DenseTensor)>> {
    let mut out = Vec::new();
    for axis in 1..table.ndim() {
        let layout = table.layout(axis).map_err(|e| e.to_string())?;
        let mut end = 0i64;
        let bounds: Vec<i64> = (0..layout.lists())
            .map(|l| {
                end += i64::try_from(layout.length(l)).unwrap();
                end
            })
            .collect();
        let tensor = DenseTensor::from_vec([bounds.len()], bounds).map_err(|e| e.to_string())?;
        out.push((format!("dim{axis}/bounds"), tensor));
    }
    for column in table.columns() {
        if column.values().null_count() > 0 || column.list_nulls().iter().any(Option::is_some) {
            return Err(format!("column {:?} has nulls", column.name()));
        }
        let tensor = DenseTensor::from_flat(column.values(), column.name());
        let name = format!("dim{}/{}", column.axis(), column.name());
        out.push((name, tensor.map_err(|e| e.to_string())?));
    }
    Ok(out)
}

/// Refuses other names than expected, but for those that may be there besides, and other tensors.
fn same_tensors(
    found: Vec<(String, DenseTensor)>,
    expected: &Json,
    extra: &dyn Fn(&str, &DenseTensor) -> bool,
) -> Checked<()> {
    let expected = expected.members()?;
    for (name, tensor) in expected {
        let (_, found) =
            found.iter().find(|(n, _)| n == name).ok_or_else(|| format!("{name} is missing"))?;
        same_tensor(name, found, tensor)?;
    }
    for (name, tensor) in &found {
        if !expected.iter().any(|(n, _)| n == name) && !extra(name, tensor) {
            return Err(format!("{name} should not be there: {tensor}"));
        }
    }
    Ok(())
}

fn same_dense(
    table: &RaggedTable,
    dense: Vec<(String, DenseTensor)>,
    expected: &Json,
) -> Checked<Verdict> {
    let without_values = |name: &str| table.column(name).is_ok_and(|c| c.values().is_empty());
    let differs = dense.iter().any(|(n, _)| expected.get(n).is_none() && without_values(n));
    same_tensors(dense, expected, &|name, tensor| {
        table.scalar(name).is_ok() && tensor.ndim() == 0
            || without_values(name) && tensor.shape().contains(&0)
    })?;
    Ok(if differs { Verdict::Differs(Rule::NoValues) } else { Verdict::Passed })
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Checked<()> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: found {found:?}, expected {expected:?}"))
    }
}

fn names(json: &Json) -> Checked<Vec<String>> {
    let mut names =
        json.list()?.iter().map(|n| n.text().map(str::to_owned)).collect::<Checked<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names
}

fn dtype(table: &RaggedTable, name: &str) -> Checked<&'static str> {
    let column = table.column(name).map_err(|e| e.to_string())?;
    Ok(DType::from_arrow(column.data_type()).ok_or("a type of no tensor")?.name())
}

/// One thing the library lets one see of a table.
fn same_state(case: &Case, table: &RaggedTable, what: &str, expected: &Json) -> Checked<()> {
    match what {
        "tensors" => {
            let flat = case.op == "collate_roundtrip";
            // Columns of axis 0 go with their rows here, where the library loses them.
            same_tensors(tensors(table)?, expected, &|name, _| flat && name.starts_with("dim0/"))
        }
        "scalars" => expected.members()?.iter().try_for_each(|(name, value)| {
            let scalar = table.scalar(name).map_err(|e| e.to_string())?;
            let found = DenseTensor::from_flat(scalar.value(), name).map_err(|e| e.to_string())?;
            let parts = [
                ("dtype", Json::Text(found.dtype().name().into())),
                ("shape", Json::List(vec![Json::Number("1".into())])),
                ("data", Json::List(vec![value.clone()])),
            ];
            let parts = parts.map(|(n, v)| (n.to_owned(), v));
            same_tensor(name, &found, &Json::Object(parts.into()))
        }),
        "len" => same("len", table.num_rows(), expected.int()?),
        "min_n_dims" => same("min_n_dims", table.min_ndim(), Some(expected.int()?)),
        "max_n_dims" => same("max_n_dims", table.max_ndim(), Some(expected.int()?)),
        "keys" => same("keys", sorted(table.names()), names(expected)?),
        "keys_at_dim" => {
            let depths = expected.members()?;
            same("dims", depths.len(), table.max_ndim().unwrap_or(0))?;
            depths.iter().try_for_each(|(axis, keys)| {
                let axis: usize = axis.parse().map_err(|_| format!("dim {axis:?}"))?;
                let found = sorted(table.columns_at(axis).map(|c| c.name()));
                same(&format!("keys at {axis}"), found, names(keys)?)
            })
        }
        "schema" => {
            let schema = expected.members()?;
            let keys = sorted(schema.iter().map(|(n, _)| n.as_str()));
            same("schema", sorted(table.names()), keys)?;
            schema.iter().try_for_each(|(n, t)| same(n, dtype(table, n)?, t.text()?))
        }
        "nested" => {
            let columns = expected.members()?;
            same("nested", table.columns().len(), columns.len())?;
            columns.iter().try_for_each(|(name, column)| {
                only(column, "a nested column", &["dtype", "ragged"])?;
                same(name, dtype(table, name)?, column.get("dtype").ok_or("no dtype")?.text()?)?;
                let array = table.array(name).and_then(|a| a.to_arrow());
                let array = array.map_err(|e| e.to_string())?;
                same_nested(name, &array, column.get("ragged").ok_or("no values")?)
            })
        }
        other => Err(format!("{other:?} is not known to be expected of a table")),
    }
}

fn same_nested(path: &str, array: &ArrayRef, expected: &Json) -> Checked<()> {
    let list = expected.list()?;
    same(path, array.len(), list.len())?;
    let element = |i: usize| match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().value(i)),
        DataType::LargeList(_) => Some(array.as_list::<i64>().value(i)),
        _ => None,
    };
    if matches!(array.data_type(), DataType::List(_) | DataType::LargeList(_)) {
        return list.iter().enumerate().try_for_each(|(i, e)| {
            let inner = element(i).ok_or("no list")?;
            same_nested(&format!("{path}[{i}]"), &inner, e)
        });
    }
    let found = DenseTensor::from_flat(array, path).map_err(|e| e.to_string())?;
    let parts = [
        ("dtype", Json::Text(found.dtype().name().into())),
        ("shape", Json::List(vec![Json::Number(list.len().to_string())])),
        ("data", expected.clone()),
    ];
    same_tensor(path, &found, &Json::Object(parts.map(|(n, v)| (n.to_owned(), v)).into()))
}

/// Columns that an index takes all axes of are scalars then.
fn nothing_is_lost(from: &RaggedTable, table: &RaggedTable) -> Checked<()> {
    match from.names().find(|n| table.column(n).is_err() && table.scalar(n).is_err()) {
        None => Ok(()),
        Some(lost) => Err(format!("column {lost:?} is neither a column nor a scalar any more")),
    }
}

fn same_file(case: &Case, path: &std::path::Path, expect: &Json) -> Checked<Verdict> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let file = SafetensorsFile::open(path, false).map_err(|e| e.to_string())?;
    let entries = file.tensors();
    for (what, expected) in expect.members()? {
        match what.as_str() {
            "names" => {
                let names = expected.members()?;
                same("tensors", entries.len(), names.len())?;
                for (name, info) in names {
                    only(info, "a tensor of a header", &["dtype", "shape"])?;
                    let entry = file.tensor(name).map_err(|e| e.to_string())?;
                    let dtype = dense::from_dtype(entry.dtype()).ok_or("a type of no tensor")?;
                    same(
                        name,
                        dtype.safetensors_name(),
                        info.get("dtype").ok_or("no dtype")?.text()?,
                    )?;
                    let shape: Vec<usize> =
                        crate::format::ints(info.get("shape").ok_or("no shape")?)?;
                    same(name, entry.shape(), &shape[..])?;
                }
            }
            "header_order" => {
                let order = expected.list()?.iter().map(Json::text).collect::<Checked<Vec<_>>>()?;
                same("header", entries.iter().map(|e| e.name()).collect(), order)?;
            }
            "has_metadata" => {
                same("metadata", !file.header().metadata().is_empty(), expected.bool()?)?;
            }
            "bytes" => same("bytes", bytes.len(), expected.int()?)?,
            // The file itself is there to compare with.
            "sha256" => {
                let theirs = crate::nrt::file(case, case.args.get("file"))?;
                let theirs = std::fs::read(theirs).map_err(|e| e.to_string())?;
                same("the file", bytes == theirs, true)?;
            }
            "tensors" => {
                let found = entries
                    .iter()
                    .map(|e| Ok((e.name().to_owned(), dense::read_one(&file, e)?)))
                    .collect::<serrate::Result<Vec<_>>>();
                same_tensors(found.map_err(|e| e.to_string())?, expected, &|_, _| false)?;
            }
            other => return Err(format!("{other:?} is not known to be expected of a file")),
        }
    }
    Ok(Verdict::Passed)
}
