//! Rules by which results differ on purpose from those of the Python library, and how such results
//! are checked.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use serrate::Error;
use serrate::dense::DType;
use serrate::index::Index;
use serrate::table::{NanComparison, RaggedTable};

use super::{Checked, Found, state};
use crate::format::Case;
use crate::json::Json;
use crate::reference::{self, Nested, Plan};

/// The rules by which results differ on purpose. Each rule is about a kind of input, not about a
/// case. If only the Python library refuses, the result is compared with that of numpy, with nested
/// vectors that are reshaped one by one, or with the input values. If only this crate refuses, the
/// kind of the error is compared.
pub(crate) const DIFFERENCES: [(Rule, &str); 11] = [
    (Rule::OuterLengths, "lengths of all columns are checked on every axis, the rows included"),
    (Rule::NoValues, "a column without values stays in a dense result, with an axis of size 0"),
    (
        Rule::Scalars,
        "columns of axis 0 stay with an indexed row, so that rows with no others collate",
    ),
    (Rule::Indices, "every index that numpy takes, masks, steps and empty arrays among them"),
    (Rule::Widths, "columns of different number types concatenate: types unify as numpy's do"),
    (
        Rule::AnyAxis,
        "every axis can be squeezed, added or merged, not only the outermost or innermost",
    ),
    (
        Rule::Declared,
        "a declared type takes the values it has: 0 and 1 for bool, no float beyond its range",
    ),
    (Rule::Texts, "strings are values"),
    (Rule::Nulls, "values and lists may be missing"),
    (Rule::Empty, "a column of no rows is a column, where its type is declared"),
    (Rule::NoKeys, "a file read without any columns is a table without columns"),
];

/// A rule of [`DIFFERENCES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    OuterLengths,
    NoValues,
    Scalars,
    Indices,
    Widths,
    AnyAxis,
    Declared,
    Texts,
    Nulls,
    Empty,
    NoKeys,
}

/// Returns whether this crate refuses a value that numpy casts to a declared boolean or float type.
pub(super) fn declared_otherwise(case: &Case, error: &Error) -> bool {
    let Error::ValueType { expected, .. } = error else { return false };
    let dtype = expected.parse::<DataType>().ok().and_then(|t| DType::from_arrow(&t));
    let declared = |d: DType| has_any(&case.input, &|j| *j == Json::Text(d.name().into()));
    dtype.is_some_and(|d| (d == DType::Bool || d.is_float()) && declared(d))
}

/// Returns the rule that explains a result of this crate where the Python library raises an error,
/// or `None` if there is no rule. If the result is wrong by that rule, returns an error.
pub(super) fn find_rule(
    case: &Case,
    from: &[RaggedTable],
    found: &Found,
    kind: &str,
    gist: &str,
) -> Checked<Option<Rule>> {
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
    let tagged = case.has_tag("limitation");
    let given = case.input.get("values").or(case.input.get("data"));
    Ok(match case.op.as_str() {
        "concatenate" | "vstack" if tagged || gist.starts_with("Schema inconsistent") => {
            let mut row = 0;
            for item in from {
                let item = if case.op == "vstack" { item.unsqueeze(0) } else { Ok(item.clone()) };
                let item = item.map_err(|e| e.to_string())?;
                let part = table.slice(row, item.num_rows()).map_err(|e| e.to_string())?;
                if !part.equals(&item, NanComparison::Equal).map_err(|e| e.to_string())? {
                    return Err(format!("rows {row}.. are {part}, not {item}"));
                }
                row += item.num_rows();
            }
            ensure(row == table.num_rows(), Rule::Widths)?
        }
        op @ ("squeeze" | "unsqueeze" | "flatten")
            if tagged || kind == "KeyError" || gist.starts_with("Only supports dim") =>
        {
            let default = if op == "flatten" { -1 } else { 0 };
            let dim = case.args.get("dim").map_or(Ok(default), Json::int::<i64>)?;
            ensure(is_reshaped(op, dim, &from[0], table)?, Rule::AnyAxis)?
        }
        "collate_roundtrip" if tagged || from[0].max_ndim() == Some(1) => {
            rows_in_order(case, &from[0], table)?;
            Some(Rule::Scalars)
        }
        "load" if matches!(case.args.get("keys"), Some(Json::List(keys)) if keys.is_empty()) => {
            ensure(table.columns().is_empty(), Rule::NoKeys)?
        }
        _ if constructs && has_any(&case.input, &|j| j.get("$str").is_some()) => {
            as_given(&case.input, table)?;
            Some(Rule::Texts)
        }
        _ if constructs && given.is_some_and(|g| has_any(g, &|j| *j == Json::Null)) => {
            as_given(&case.input, table)?;
            Some(Rule::Nulls)
        }
        _ if constructs && (tagged || gist.starts_with("Empty list found")) => {
            as_given(&case.input, table)?;
            ensure(tagged || table.num_rows() == 0, Rule::Empty)?
        }
        _ => None,
    })
}

pub(super) fn has_any(json: &Json, is: &dyn Fn(&Json) -> bool) -> bool {
    is(json)
        || match json {
            Json::List(list) => list.iter().any(|j| has_any(j, is)),
            Json::Object(members) => members.iter().any(|(_, j)| has_any(j, is)),
            _ => false,
        }
}

/// Returns an error unless a table holds the values of the input at their positions.
pub(crate) fn as_given(input: &Json, table: &RaggedTable) -> Checked<()> {
    let data = match input.get("values") {
        Some(values) => vec![("x".to_owned(), values.clone())],
        None => input.get("data").ok_or("no data")?.members()?.to_vec(),
    };
    state::check_same("columns", table.columns().len(), data.len())?;
    data.iter().try_for_each(|(name, values)| {
        let array = table.array(name).and_then(|a| a.to_arrow()).map_err(|e| e.to_string())?;
        same_as_raw(name, &array, values)
    })
}

fn same_as_raw(path: &str, array: &ArrayRef, raw: &Json) -> Checked<()> {
    let raw = raw.list()?;
    state::check_same(path, array.len(), raw.len())?;
    for (i, raw) in raw.iter().enumerate() {
        let path = format!("{path}[{i}]");
        state::check_same(&format!("a null at {path}"), array.is_null(i), *raw == Json::Null)?;
        match array.data_type() {
            _ if array.is_null(i) => {}
            DataType::List(_) => same_as_raw(&path, &array.as_list::<i32>().value(i), raw)?,
            DataType::LargeList(_) => same_as_raw(&path, &array.as_list::<i64>().value(i), raw)?,
            data_type => {
                let found = array_value_to_string(array, i).map_err(|e| e.to_string())?;
                let expected = cast_number(raw, data_type)?;
                let both = (found.parse::<f64>(), expected.parse::<f64>());
                let same = match both {
                    (Ok(a), Ok(b)) if data_type.is_floating() => a == b || a.is_nan() && b.is_nan(),
                    _ => found == expected,
                };
                state::check_same(&path, same.then_some(&expected), Some(&expected))
                    .map_err(|e| format!("{e}: it is {found}"))?;
            }
        }
    }
    Ok(())
}

/// Returns a raw value as the text that a column of `data_type` has for it.
#[allow(clippy::cast_possible_truncation)]
fn cast_number(raw: &Json, data_type: &DataType) -> Checked<String> {
    let text = raw.get("$str").map(Json::text).transpose()?;
    if matches!(data_type, DataType::Utf8 | DataType::LargeUtf8) {
        return text.map(str::to_owned).ok_or_else(|| format!("{raw:?} became a text"));
    }
    if let Some(text) = text {
        return Err(format!("the text {text:?} became {data_type}"));
    }
    let number = match raw {
        Json::Bool(b) => i64::from(*b).to_string(),
        Json::Object(_) => raw.get("$int").ok_or("no number")?.text()?.to_owned(),
        Json::Number(text) => text.clone(),
        other => other.float()?.to_string(),
    };
    let float: f64 = number.parse().map_err(|_| format!("{number} is no number"))?;
    Ok(match data_type {
        DataType::Boolean => (float != 0.0).to_string(),
        DataType::Float16 => half::f16::from_f64(float).to_string(),
        DataType::Float32 => (float as f32).to_string(),
        DataType::Float64 => float.to_string(),
        t if t.is_integer() && number.parse::<i128>().is_ok() => number,
        t if t.is_integer() => format!("{:.0}", float.trunc()),
        other => return Err(format!("no raw value is of type {other}")),
    })
}

/// Returns whether columns of one table have different numbers of rows.
pub(super) fn outer_lengths_differ(input: &Json) -> bool {
    let differ = |data: &Json| {
        let lengths = data.members().map_or(Vec::new(), |m| {
            m.iter().filter_map(|(_, v)| v.list().ok().map(<[Json]>::len)).collect()
        });
        lengths.windows(2).any(|w: &[usize]| w[0] != w[1])
    };
    has_any(input, &|j| j.get("data").is_some_and(differ))
}

/// Returns the rows of an array as nested lists of strings.
fn read_nested(array: &ArrayRef) -> Nested<String> {
    let one = |i: usize| {
        if array.is_null(i) {
            return Nested::Null;
        }
        match array.data_type() {
            DataType::List(_) => read_nested(&array.as_list::<i32>().value(i)),
            DataType::LargeList(_) => read_nested(&array.as_list::<i64>().value(i)),
            DataType::FixedSizeList(..) => read_nested(&array.as_fixed_size_list().value(i)),
            _ => Nested::Leaf(array_value_to_string(array, i).unwrap()),
        }
    };
    Nested::List((0..array.len()).map(one).collect())
}

fn read_column(table: &RaggedTable, name: &str) -> Checked<Nested<String>> {
    let array = table.array(name).and_then(|a| a.to_arrow()).map_err(|e| e.to_string())?;
    Ok(read_nested(&array))
}

/// Returns an error unless every column of `found` is what numpy's indexing gives for that column
/// of `from`.
pub(super) fn numpy_answer(
    from: &RaggedTable,
    index: &[Index],
    found: &RaggedTable,
) -> Checked<()> {
    let plan = Plan::new(index, from.ndim()).ok_or("numpy refuses this index")?;
    for source in from.columns() {
        let name = source.name();
        let (expected, levels) = plan
            .apply(&read_column(from, name)?, source.axis() + 1)
            .ok_or("numpy finds something out of range")?;
        let (got, axis) = match found.scalar(name) {
            Ok(scalar) => (read_nested(scalar.value()).children()[0].clone(), 0),
            Err(_) => {
                let axis = found.column(name).map_err(|e| e.to_string())?.axis();
                (read_column(found, name)?, axis + 1)
            }
        };
        if got != expected || axis != levels {
            return Err(format!("{name}: found {got:?}, numpy has {expected:?}"));
        }
    }
    Ok(())
}

fn is_reshaped(op: &str, dim: i64, from: &RaggedTable, found: &RaggedTable) -> Checked<bool> {
    let ndim = i64::try_from(from.ndim()).unwrap() + i64::from(op == "unsqueeze");
    let at = usize::try_from(if dim < 0 { dim + ndim } else { dim }).map_err(|e| e.to_string())?;
    let mut same = true;
    for source in from.columns() {
        let (name, axis) = (source.name(), source.axis());
        let before = read_column(from, name)?;
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
        same &= match found.scalar(name) {
            Ok(scalar) => read_nested(scalar.value()).children()[0] == expected,
            Err(_) => read_column(found, name)? == expected,
        };
    }
    Ok(same)
}

/// Returns an error unless the collated rows are the rows of `from` in the order of the case,
/// columns of axis 0 included.
pub(super) fn rows_in_order(case: &Case, from: &RaggedTable, table: &RaggedTable) -> Checked<()> {
    let order: Vec<i64> = crate::format::parse_ints(case.args.get("order").ok_or("no order")?)?;
    let rows = from.index(&[order.into()]).map_err(|e| e.to_string())?;
    state::check_same(
        "the rows taken",
        table.equals(&rows, NanComparison::Equal).map_err(|e| e.to_string())?,
        true,
    )
}
