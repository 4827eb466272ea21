//! Compares what a table or a file holds with what a case expects.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use serrate::dense::{DType, DenseOptions, DenseTensor};
use serrate::io::safetensors::{FileAccess, SafetensorsFile, dense};
use serrate::table::RaggedTable;

use super::differences::{Rule, rows_in_order};
use super::{Checked, Found, Verdict};
use crate::format::{Case, check_only, same_tensor};
use crate::json::Json;

/// Compares a result with every member of the expected one.
pub(super) fn check(
    case: &Case,
    from: &[RaggedTable],
    found: &Found,
    expect: &Json,
) -> Checked<Verdict> {
    match found {
        Found::Table(table) => {
            let mut verdict = Verdict::Passed;
            for (what, expected) in expect.members()?.iter().filter(|(_, e)| *e != Json::Null) {
                if what == "dense" {
                    let mut dense =
                        table.to_dense(&DenseOptions::default()).map_err(|e| e.to_string())?;
                    if case.op == "collate_roundtrip" {
                        // The Python library loses columns of axis 0 when it collates, as in
                        // `same_state`.
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
            check_only(expect, "the result", &[name])?;
            if expect.get(name).ok_or("no result")?.bool()? == *value {
                return Ok(Verdict::Passed);
            }
            Err(format!("{name} is {value}"))
        }
        Found::Inferred(table) => {
            check_only(expect, "the result", &["dtype", "stored"])?;
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

/// Returns the columns and the bounds of a table, with the names that they have in an `.nrt` file.
fn list_tensors(table: &RaggedTable) -> Checked<Vec<(String, DenseTensor)>> {
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

/// Returns an error if tensors are missing or differ, or if there are others than the expected ones
/// and those that `extra` allows.
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

pub(super) fn check_same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: T,
    expected: T,
) -> Checked<()> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: found {found:?}, expected {expected:?}"))
    }
}

fn parse_names(json: &Json) -> Checked<Vec<String>> {
    let mut names =
        json.list()?.iter().map(|n| n.text().map(str::to_owned)).collect::<Checked<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

fn sort_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names
}

fn find_dtype(table: &RaggedTable, name: &str) -> Checked<&'static str> {
    let column = table.column(name).map_err(|e| e.to_string())?;
    Ok(DType::from_arrow(column.data_type()).ok_or("a type of no tensor")?.name())
}

/// Returns whether a tensor has the name of an axis that an index has removed: the Python library
/// may keep `dim-1/..`.
fn is_gone(name: &str) -> bool {
    name.strip_prefix("dim-").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Compares one property of a table, which `what` names.
fn same_state(case: &Case, table: &RaggedTable, what: &str, expected: &Json) -> Checked<()> {
    match what {
        "tensors" => {
            let flat = case.op == "collate_roundtrip";
            // The Python library loses columns of axis 0 when it collates rows, and this crate does
            // not.
            let kept = expected.members()?.iter().filter(|(name, _)| !is_gone(name)).cloned();
            let expected = Json::Object(kept.collect());
            same_tensors(list_tensors(table)?, &expected, &|name, _| {
                flat && name.starts_with("dim0/")
            })
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
        "len" => check_same("len", table.num_rows(), expected.int()?),
        "min_n_dims" => check_same("min_n_dims", table.min_ndim(), Some(expected.int()?)),
        "max_n_dims" => check_same("max_n_dims", table.max_ndim(), Some(expected.int()?)),
        "keys" => check_same("keys", sort_names(table.names()), parse_names(expected)?),
        "keys_at_dim" => {
            let depths = expected.members()?;
            check_same("dims", depths.len(), table.max_ndim().unwrap_or(0))?;
            depths.iter().try_for_each(|(axis, keys)| {
                let axis: usize = axis.parse().map_err(|_| format!("dim {axis:?}"))?;
                let found = sort_names(table.columns_at(axis).map(|c| c.name()));
                check_same(&format!("keys at {axis}"), found, parse_names(keys)?)
            })
        }
        "schema" => {
            let schema = expected.members()?;
            let keys = sort_names(schema.iter().map(|(n, _)| n.as_str()));
            check_same("schema", sort_names(table.names()), keys)?;
            schema.iter().try_for_each(|(n, t)| check_same(n, find_dtype(table, n)?, t.text()?))
        }
        "nested" => {
            let columns = expected.members()?;
            check_same("nested", table.columns().len(), columns.len())?;
            columns.iter().try_for_each(|(name, column)| {
                check_only(column, "a nested column", &["dtype", "ragged"])?;
                check_same(
                    name,
                    find_dtype(table, name)?,
                    column.get("dtype").ok_or("no dtype")?.text()?,
                )?;
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
    check_same(path, array.len(), list.len())?;
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

/// Returns an error unless each column of `from` is a column of `table`, or a scalar because the
/// index removes all its axes.
fn nothing_is_lost(from: &RaggedTable, table: &RaggedTable) -> Checked<()> {
    match from.names().find(|n| table.column(n).is_err() && table.scalar(n).is_err()) {
        None => Ok(()),
        Some(lost) => Err(format!("column {lost:?} is neither a column nor a scalar any more")),
    }
}

fn same_file(case: &Case, path: &std::path::Path, expect: &Json) -> Checked<Verdict> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let file = SafetensorsFile::open(path, FileAccess::Read).map_err(|e| e.to_string())?;
    let entries = file.tensors();
    for (what, expected) in expect.members()?.iter().filter(|(_, e)| *e != Json::Null) {
        match what.as_str() {
            "names" => {
                let names = expected.members()?;
                check_same("tensors", entries.len(), names.len())?;
                for (name, info) in names {
                    check_only(info, "a tensor of a header", &["dtype", "shape"])?;
                    let entry = file.tensor(name).map_err(|e| e.to_string())?;
                    let dtype = dense::from_dtype(entry.dtype()).ok_or("a type of no tensor")?;
                    check_same(
                        name,
                        dtype.safetensors_name(),
                        info.get("dtype").ok_or("no dtype")?.text()?,
                    )?;
                    let shape: Vec<usize> =
                        crate::format::parse_ints(info.get("shape").ok_or("no shape")?)?;
                    check_same(name, entry.shape(), &shape[..])?;
                }
            }
            "header_order" => {
                let order = expected.list()?.iter().map(Json::text).collect::<Checked<Vec<_>>>()?;
                check_same("header", entries.iter().map(|e| e.name()).collect(), order)?;
            }
            "has_metadata" => {
                check_same("metadata", !file.header().metadata().is_empty(), expected.bool()?)?;
            }
            "bytes" => check_same("bytes", bytes.len(), expected.int()?)?,
            // The expected file is available, so that its bytes can be compared instead of the
            // hash.
            "sha256" => {
                let theirs = super::find_file(case, case.args.get("file"))?;
                let theirs = std::fs::read(theirs).map_err(|e| e.to_string())?;
                check_same("the file", bytes == theirs, true)?;
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
