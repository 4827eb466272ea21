//! Runs the cases of the hash map.

use serrate::Error;
use serrate::dense::{DType, DenseTensor, Fill};
use serrate::dok::{Fallback, MapOptions, RowMap};

use crate::format::{Case, Expected, Outcome, check_only, parse_tensor, same_tensor};
use crate::json::Json;

type Checked<T> = Result<T, String>;

/// Runs a case. Returns an error if its result differs or its operation is unknown.
pub(crate) fn run(case: &Case) -> Checked<Outcome> {
    match (case.op.as_str(), &case.expected) {
        ("program", Expected::Result(expected)) => {
            run_program(case, expected).map(|()| Outcome::Passed)
        }
        ("errors", Expected::Error { kind, gist }) => {
            case.takes(&["do"], &[])?;
            match run_misuse(case.input.get("do").ok_or("nothing to do")?.text()?)? {
                Ok(()) => Err(format!("no error; expected {kind}: {gist}")),
                Err(Error::Invalid(_)) => Ok(Outcome::Passed),
                Err(other) => Err(format!("the error {other}; expected {kind}: {gist}")),
            }
        }
        (op, _) => Err(format!("the operation {op:?} with such a result is unknown")),
    }
}

fn text(e: Error) -> String {
    e.to_string()
}

fn create_map(n_buckets: usize) -> Checked<RowMap> {
    RowMap::new(MapOptions { n_buckets, ..Default::default() }).map_err(text)
}

fn parse_fallback(json: Option<&Json>, value: Option<&[usize]>) -> Checked<Fallback> {
    Ok(match json {
        None | Some(Json::Null) => Fallback::Zero,
        Some(Json::List(items)) => {
            let shape = value.ok_or("a fallback for no values")?.to_vec();
            let whole: Checked<Vec<i64>> = items.iter().map(Json::int).collect();
            let made = match whole {
                Ok(whole) => DenseTensor::from_vec(shape, whole),
                Err(_) => {
                    let all = items.iter().map(Json::float).collect::<Checked<Vec<f64>>>()?;
                    DenseTensor::from_vec(shape, all)
                }
            };
            Fallback::Value(made.map_err(text)?)
        }
        Some(Json::Bool(b)) => Fallback::Scalar(Fill::Bool(*b)),
        Some(object @ Json::Object(_)) => Fallback::Value(parse_tensor(object)?),
        Some(number) => Fallback::Scalar(match number.int::<i64>() {
            Ok(v) => Fill::Int(v),
            Err(_) => Fill::Float(number.float()?),
        }),
    })
}

fn check_flags(name: &str, found: &[bool], expected: &Json) -> Checked<()> {
    let found = DenseTensor::from_bools([found.len()], found.iter().copied()).map_err(text)?;
    same_tensor(name, &found, expected)
}

fn run_program(case: &Case, expected: &Json) -> Checked<()> {
    case.takes(&["n_buckets", "steps"], &[])?;
    check_only(expected, "the result", &["steps", "final"])?;
    let buckets = match case.input.get("n_buckets") {
        None | Some(Json::Null) => 0,
        Some(n) => n.int()?,
    };
    let mut map = create_map(buckets)?;
    let steps = case.input.get("steps").ok_or("no steps")?.list()?;
    let answers = expected.get("steps").ok_or("no answers")?.list()?;
    if steps.len() != answers.len() {
        return Err("not as many answers as steps".into());
    }
    for (step, answer) in steps.iter().zip(answers) {
        check_only(step, "a step", &["op", "keys", "values", "fallback", "n_buckets"])?;
        let part = |name: &str| parse_tensor(step.get(name).ok_or_else(|| format!("no {name}"))?);
        match step.get("op").ok_or("no op")?.text()? {
            "set" => {
                map.set(&part("keys")?, &part("values")?).map_err(text)?;
                if !matches!(answer, Json::Null) {
                    return Err("a set has no answer".into());
                }
            }
            "get" => {
                check_only(answer, "an answer", &["values", "found"])?;
                let fallback =
                    parse_fallback(step.get("fallback"), map.value_type().map(|t| t.shape()))?;
                let keys = part("keys")?;
                let fetched = map.get(&keys, &fallback).map_err(text)?;
                same_tensor("values", &fetched.values, answer.get("values").ok_or("no values")?)?;
                check_flags("found", &fetched.found, answer.get("found").ok_or("no found")?)?;
                assert_eq!(map.contains(&keys).map_err(text)?, fetched.found);
            }
            "remove" => {
                check_only(answer, "an answer", &["removed", "removed_unique_sorted"])?;
                let keys = part("keys")?;
                let removed = map.remove(&keys).map_err(text)?;
                check_flags("removed", &removed, answer.get("removed").ok_or("no removed")?)?;
                // The Python library returns one flag per distinct key, in the order of the sorted
                // keys.
                let mut unique: Vec<(Vec<f64>, bool)> =
                    list_rows(&keys)?.into_iter().zip(removed).collect();
                unique.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap());
                unique.dedup();
                let unique: Vec<bool> = unique.into_iter().map(|(_, r)| r).collect();
                if let Some(expected) = answer.get("removed_unique_sorted") {
                    check_flags("removed, unique and sorted", &unique, expected)?;
                }
            }
            "len" => {
                check_only(answer, "an answer", &["len"])?;
                if map.len() != answer.get("len").ok_or("no len")?.int::<usize>()? {
                    return Err(format!("{} keys, not {answer:?}", map.len()));
                }
            }
            "rehash" => {
                let buckets = step.get("n_buckets").map_or(Ok(0), Json::int)?;
                map.rehash(buckets).map_err(text)?;
            }
            other => return Err(format!("the step {other:?} is unknown")),
        }
    }
    let last = expected.get("final").ok_or("no end")?;
    check_only(last, "the end", &["len", "keys", "values"])?;
    if map.len() != last.get("len").ok_or("no len")?.int::<usize>()? {
        return Err(format!("{} keys in the end", map.len()));
    }
    if map.is_empty() && map.key_type().is_none() {
        return Ok(());
    }
    let keys = list_rows(&map.keys().map_err(text)?)?;
    let mut found: Vec<_> =
        keys.into_iter().zip(list_rows(&map.values().map_err(text)?)?).collect();
    found.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap());
    let all = |name: &str| -> Checked<Vec<Vec<f64>>> {
        last.get(name)
            .ok_or_else(|| format!("no {name}"))?
            .list()?
            .iter()
            .map(parse_leaves)
            .collect()
    };
    let expected: Vec<_> = all("keys")?.into_iter().zip(all("values")?).collect();
    if found == expected { Ok(()) } else { Err(format!("{found:?} in the end, not {expected:?}")) }
}

/// Returns the rows of a tensor as lists of floats.
fn list_rows(t: &DenseTensor) -> Checked<Vec<Vec<f64>>> {
    let n = t.shape()[0];
    let wide = t.cast(DType::F64).map_err(text)?;
    let all = wide.as_slice::<f64>().map_err(text)?;
    let width = all.len().checked_div(n).unwrap_or(0);
    Ok((0..n).map(|i| all[i * width..][..width].to_vec()).collect())
}

/// Returns the numbers of a nested list, flattened.
fn parse_leaves(json: &Json) -> Checked<Vec<f64>> {
    match json {
        Json::List(items) => {
            let parts = items.iter().map(parse_leaves).collect::<Checked<Vec<_>>>()?;
            Ok(parts.concat())
        }
        Json::Bool(b) => Ok(vec![f64::from(u8::from(*b))]),
        number => Ok(vec![number.float()?]),
    }
}

/// Calls the map in the invalid way that a sentence describes, such as `get keys [[1]] on a fresh
/// map` or `values were int64, set float32`, and returns the result of the call.
fn run_misuse(what: &str) -> Checked<serrate::Result<()>> {
    let zeros = |dtype: DType, width: usize| {
        let t = DenseTensor::from_vec([1, width], vec![0u8; width]).and_then(|t| t.cast(dtype));
        t.map_err(text)
    };
    let mut map = create_map(0)?;
    let unknown = || Err(format!("{what:?} is nothing that can be done"));
    if let Some(op) = what.strip_suffix(" on a fresh map") {
        let key = zeros(DType::I64, 1)?;
        return match op.split(' ').next() {
            Some("get") => Ok(map.get(&key, &Fallback::Zero).map(drop)),
            Some("remove") => Ok(map.remove(&key).map(drop)),
            Some("contains") => Ok(map.contains(&key).map(drop)),
            _ => unknown(),
        };
    }
    let Some((before, after)) = what.split_once(", ") else { return unknown() };
    let words: Vec<&str> = before.split(' ').chain(after.split(' ')).collect();
    let row = |kind: &[&str]| -> Checked<DenseTensor> {
        match kind {
            ["width", n] => zeros(DType::I64, n.parse().map_err(|_| format!("width {n}"))?),
            [dtype] => zeros(dtype.parse().map_err(text)?, 2),
            other => Err(format!("rows of {other:?}")),
        }
    };
    let (subject, first, op, second) = match words.as_slice() {
        [subject, "were", first @ .., op, a] if first.len() == 1 => (subject, first, op, vec![*a]),
        [subject, "were", w, n, op, v, m] => (subject, &[*w, *n][..], op, vec![*v, *m]),
        _ => return unknown(),
    };
    let (first, second) = (row(first)?, row(&second)?);
    let other = zeros(DType::F64, 1)?;
    let on_keys = match *subject {
        "keys" => true,
        "values" => false,
        _ => return unknown(),
    };
    let (keys, values) = if on_keys { (&first, &other) } else { (&other, &first) };
    map.set(keys, values).map_err(text)?;
    let (keys, values) = if on_keys { (&second, &other) } else { (&other, &second) };
    match *op {
        "get" => Ok(map.get(keys, &Fallback::Zero).map(drop)),
        "remove" => Ok(map.remove(keys).map(drop)),
        "set" => Ok(map.set(keys, values).map(drop)),
        _ => unknown(),
    }
}
