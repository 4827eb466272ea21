//! Runs the cases of `HetTensor`.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use serrate::array::RaggedArray;
use serrate::dense::{DType, DenseOptions, DenseTensor};
use serrate::het::{HetOperand, HetTensor, HetValue, NestedTensors, NumberOperand, cat};
use serrate::index::{Index, IndexArray};
use serrate::kernels::coords::coords;
use serrate::kernels::elementwise::BinaryOp;
use serrate::kernels::reduce::Reduction;
use serrate::kernels::unary::UnaryOp;
use serrate::{Error, Result};

use crate::format::{Asked, Case, Expected, Outcome, check_only, parse_index, parse_tensor};
use crate::json::Json;

type Checked<T> = std::result::Result<T, String>;

/// The reasons why results differ on purpose from those of the Python library.
const TRAILING: &str = "HetTensor: empty places behind the last value stay";
const MEANS: &str = "HetTensor: the mean of integers is float64, not cut to an integer";
const NEGATIVE: &str = "HetTensor: negative dims count from the last";
const LEADING: &str = "HetTensor: missing leading axes are broadcast, as in numpy";

/// The result of an operation.
enum Found {
    Value(HetValue),
    Padded(DenseTensor),
    Nested(HetTensor),
}

/// Runs a case. Returns an error if its result differs or its operation is unknown.
pub(crate) fn run(case: &Case) -> Checked<Outcome> {
    let found = run_operation(case)?;
    match (&case.expected, found) {
        (Expected::Error { kind, gist }, Ok(found)) => {
            refused_there(case, &found).ok_or_else(|| format!("no error; expected {kind}: {gist}"))
        }
        (Expected::Error { kind, gist }, Err(error)) => {
            if matches_kind(&error, kind)? {
                Ok(Outcome::Passed)
            } else {
                Err(format!("the error {error}; expected {kind}: {gist}"))
            }
        }
        (Expected::Result(_), Err(error)) => Err(error.to_string()),
        (Expected::Result(expected), Ok(Found::Padded(found))) => {
            close_tensor(case, &found, expected).map(|()| Outcome::Passed)
        }
        (Expected::Result(expected), Ok(Found::Nested(het))) => check_unbound(case, &het, expected),
        (Expected::Result(expected), Ok(Found::Value(value))) => value_is(case, value, expected),
    }
}

/// Explains a result of this crate for a case that the Python library refuses: a negative dim must
/// give the result of the positive one, and missing leading axes that of axes of size 1. Returns
/// `None` if neither holds.
fn refused_there(case: &Case, found: &Found) -> Option<Outcome> {
    let Found::Value(found) = found else { return None };
    if let Some(how) = find_reduction(&case.op) {
        let dim: i64 = case.args.get("dim")?.int().ok()?;
        let het = parse_het(case.input.get("het")?).ok()?.ok()?;
        let same = dim.checked_add_unsigned(het.ndim() as u64).filter(|_| dim < 0)?;
        let again = het.reduce(how, Some(same)).ok()?;
        return (again == *found).then_some(Outcome::Differs(NEGATIVE));
    }
    if case.op != "elementwise" {
        return None;
    }
    let het = parse_het(case.input.get("het")?).ok()?.ok()?;
    let other = parse_tensor(case.input.get("other")?.get("tensor")?).ok()?;
    let missing = het.ndim().checked_sub(other.ndim()).filter(|n| *n > 0 && other.ndim() > 0)?;
    let shape: Vec<usize> = std::iter::repeat_n(1, missing).chain(other.shape().to_vec()).collect();
    let other = other.reshape(shape).ok()?;
    let again = apply_operator(case, &het, (&other).into()).ok()?.ok()?;
    (again == *found).then_some(Outcome::Differs(LEADING))
}

/// Returns whether an error of this crate is of the kind that the Python exception `kind` stands
/// for.
fn matches_kind(error: &Error, kind: &str) -> Checked<bool> {
    Ok(match kind {
        // The Python library raises ValueError for an index out of range.
        "ValueError"
        | "IndexError"
        | "TypeError"
        | "AssertionError"
        | "RuntimeError"
        | "NotImplementedError"
        | "OverflowError" => !matches!(error, Error::Io { .. }),
        other => return Err(format!("errors of kind {other:?} are unknown")),
    })
}

fn run_operation(case: &Case) -> Checked<Result<Found>> {
    let dim = || case.args.get("dim").map(Json::int::<i64>).transpose();
    let one = |args: &[&str], run: &dyn Fn(HetTensor) -> Result<Found>| {
        case.takes(&["het"], args)?;
        Ok(parse_het(case.input.get("het").ok_or("no het")?)?.and_then(run))
    };
    let value = |v: Result<HetValue>| v.map(Found::Value);
    match case.op.as_str() {
        "construct" => one(&[], &|x| value(x.into_value())),
        "to_dense" => one(&[], &|x| x.to_dense(&DenseOptions::default()).map(Found::Padded)),
        "unbind" => one(&[], &|x| {
            // Joining the parts again must give the same tensor.
            let again = HetTensor::from_nested(&x.unbind()?)?;
            assert_eq!(again, x);
            Ok(Found::Nested(x))
        }),
        "getitem" => match parse_items(case.args.get("index").ok_or("no index")?)? {
            Some(items) => one(&["index"], &|x| value(x.index(&items))),
            None => Ok(Err(Error::invalid("no index"))),
        },
        "unsqueeze" => {
            let dim = dim()?.ok_or("no dim")?;
            one(&["dim"], &|x| value(x.unsqueeze(dim)))
        }
        "squeeze" => {
            let dim = dim()?.ok_or("no dim")?;
            one(&["dim"], &|x| value(x.squeeze(dim)))
        }
        "cat" => {
            case.takes(&["items"], &["dim"])?;
            let mut all = Ok(Vec::new());
            for item in case.input.get("items").ok_or("no items")?.list()? {
                let x = parse_het(item)?;
                all = all.and_then(|mut all: Vec<HetTensor>| {
                    all.push(x?);
                    Ok(all)
                });
            }
            let dim = dim()?.unwrap_or(0);
            Ok(all.and_then(|all| value(cat(&all.iter().collect::<Vec<_>>(), dim))))
        }
        "unary" => {
            let op = find_unary(case.args.get("op").ok_or("no op")?.text()?)?;
            one(&["op"], &|x| value(x.unary(op)))
        }
        "elementwise" => {
            case.takes(&["het", "other"], &["op", "reverse"])?;
            let x = parse_het(case.input.get("het").ok_or("no het")?)?;
            let other = case.input.get("other").ok_or("no other")?;
            let [(kind, given)] = other.members()? else {
                return Err("the other side is one of scalar, tensor and het".into());
            };
            let x = match x {
                Ok(x) => x,
                Err(e) => return Ok(Err(e)),
            };
            let result = match kind.as_str() {
                "scalar" => {
                    let scalar = match given {
                        Json::Bool(b) => NumberOperand::Bool(*b),
                        given => match given.int() {
                            Ok(n) => NumberOperand::Int(n),
                            Err(_) => NumberOperand::Float(given.float()?),
                        },
                    };
                    apply_operator(case, &x, scalar.into())?
                }
                "tensor" => apply_operator(case, &x, (&parse_tensor(given)?).into())?,
                "het" => match parse_het(given)? {
                    Ok(other) => apply_operator(case, &x, (&other).into())?,
                    Err(e) => Err(e),
                },
                other => return Err(format!("the operand {other:?} is unknown")),
            };
            Ok(value(result))
        }
        op => {
            let how =
                find_reduction(op).ok_or_else(|| format!("the operation {op:?} is unknown"))?;
            let dim = dim()?;
            one(&["dim"], &|x| value(x.reduce(how, dim)))
        }
    }
}

fn find_reduction(op: &str) -> Option<Reduction> {
    Some(match op.strip_prefix("reduce_")? {
        "sum" => Reduction::Sum,
        "mean" => Reduction::Mean,
        "prod" => Reduction::Prod,
        "amax" => Reduction::Max,
        "amin" => Reduction::Min,
        _ => return None,
    })
}

fn apply_operator(case: &Case, x: &HetTensor, other: HetOperand<'_>) -> Checked<Result<HetValue>> {
    let op = match case.args.get("op").ok_or("no op")?.text()? {
        "add" => BinaryOp::Add,
        "sub" => BinaryOp::Sub,
        "mul" => BinaryOp::Mul,
        "div" | "truediv" => BinaryOp::Div,
        "pow" => BinaryOp::Pow,
        "min" | "minimum" => BinaryOp::Minimum,
        "max" | "maximum" => BinaryOp::Maximum,
        "eq" => BinaryOp::Eq,
        "ne" => BinaryOp::NotEq,
        "lt" => BinaryOp::Lt,
        "le" => BinaryOp::LtEq,
        "gt" => BinaryOp::Gt,
        "ge" => BinaryOp::GtEq,
        other => return Err(format!("the operation {other:?} is unknown")),
    };
    let reverse = case.args.get("reverse").map_or(Ok(false), Json::bool)?;
    Ok(if reverse { x.binary_reverse(op, other) } else { x.binary(op, other) })
}

fn find_unary(name: &str) -> Checked<UnaryOp> {
    Ok(match name {
        "neg" => UnaryOp::Neg,
        "abs" => UnaryOp::Abs,
        "sign" => UnaryOp::Sign,
        "ceil" => UnaryOp::Ceil,
        "floor" => UnaryOp::Floor,
        "round" => UnaryOp::Round(0),
        "sqrt" => UnaryOp::Sqrt,
        "exp" => UnaryOp::Exp,
        "log" => UnaryOp::Ln,
        other => return Err(format!("the function {other:?} is unknown")),
    })
}

/// Reads an index, with one item per leading dim. Returns `None` if an item is not an index.
fn parse_items(json: &Json) -> Checked<Option<Vec<Index>>> {
    let mut out = Vec::new();
    for item in json.list()? {
        let [(kind, value)] = item.members()? else {
            return Err("an index object has one member".into());
        };
        if kind == "mask" {
            let mask = parse_tensor(value)?;
            let values = mask.as_bytes().iter().map(|b| *b == 1).collect();
            let mask = IndexArray::try_new(mask.shape(), values).map_err(|e| e.to_string())?;
            out.push(Index::Mask(mask));
            continue;
        }
        match parse_index(item)? {
            Asked::Index(one) => out.extend(one),
            Asked::Nonsense => return Ok(None),
        }
    }
    Ok(Some(out))
}

/// Reads a nested list of tensors. An inner error means that an element is not a tensor.
fn parse_het(json: &Json) -> Checked<Result<HetTensor>> {
    fn nested(json: &Json) -> Checked<Option<NestedTensors>> {
        Ok(match json {
            Json::Object(_) => Some(NestedTensors::Tensor(parse_tensor(json)?)),
            Json::List(list) => {
                let parts = list.iter().map(nested).collect::<Checked<Option<Vec<_>>>>()?;
                parts.map(NestedTensors::List)
            }
            _ => None,
        })
    }
    Ok(match nested(json)? {
        Some(nested) => HetTensor::from_nested(&nested),
        None => Err(Error::invalid("leaves are tensors")),
    })
}

/// The elements of a tensor by their coordinates.
type Cells = BTreeMap<Vec<i64>, f64>;

/// Returns the elements of a dense or ragged tensor by their coordinates.
fn read_cells(value: &HetValue) -> Checked<Cells> {
    let het = value.clone().into_het().map_err(|e| e.to_string())?;
    if het.ndim() == 0 {
        let dense = het.to_dense(&DenseOptions::default()).map_err(|e| e.to_string())?;
        let numbers = list_numbers(&dense.to_flat().map_err(|e| e.to_string())?);
        return Ok(if het.has_holes() { Cells::new() } else { [(Vec::new(), numbers[0])].into() });
    }
    let array: RaggedArray = het.to_ragged().map_err(|e| e.to_string())?;
    let axes = coords(&array).map_err(|e| e.to_string())?;
    let values = list_numbers(array.leaves());
    let mut out = Cells::new();
    for (i, value) in values.iter().enumerate().filter(|(i, _)| array.leaves().is_valid(*i)) {
        let at = axes.iter().map(|a| a.leaves().as_primitive::<Int64Type>().value(i)).collect();
        out.insert(at, *value);
    }
    Ok(out)
}

#[allow(clippy::cast_precision_loss)]
fn list_numbers(values: &ArrayRef) -> Vec<f64> {
    match values.data_type() {
        DataType::Boolean => {
            (0..values.len()).map(|i| f64::from(u8::from(values.as_boolean().value(i)))).collect()
        }
        DataType::UInt64 => {
            values.as_primitive::<UInt64Type>().values().iter().map(|v| *v as f64).collect()
        }
        _ => cast(values, &DataType::Float64)
            .unwrap()
            .as_primitive::<Float64Type>()
            .values()
            .to_vec(),
    }
}

/// Returns whether two numbers are equal, up to rounding if the operation computes.
fn are_close(case: &Case, a: f64, b: f64) -> bool {
    let rtol = match case.op.as_str() {
        "reduce_prod" => 1e-4,
        "reduce_sum" | "reduce_mean" | "elementwise" | "unary" => 1e-5,
        _ => 0.0,
    };
    let atol = if rtol == 0.0 { 0.0 } else { 1e-6 };
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= atol + rtol * b.abs()
}

fn close_tensor(case: &Case, found: &DenseTensor, expected: &Json) -> Checked<()> {
    let expected = parse_tensor(expected)?;
    let wide =
        |t: &DenseTensor| Ok::<_, String>(list_numbers(&t.to_flat().map_err(|e| e.to_string())?));
    let (a, b) = (wide(found)?, wide(&expected)?);
    let same = found.dtype() == expected.dtype()
        && found.shape() == expected.shape()
        && a.iter().zip(&b).all(|(a, b)| are_close(case, *a, *b));
    if same { Ok(()) } else { Err(format!("found {found}, expected {expected}")) }
}

/// Returns the values of nested tensors as nested lists.
fn to_json(nested: &NestedTensors) -> Checked<Json> {
    fn tensor(t: &DenseTensor) -> Checked<Json> {
        if t.ndim() == 0 {
            let value = list_numbers(&t.to_flat().map_err(|e| e.to_string())?)[0];
            return Ok(Json::Number(format!("{value}")));
        }
        (0..t.shape()[0])
            .map(|i| t.row(i).map_err(|e| e.to_string()).and_then(|r| tensor(&r)))
            .collect::<Checked<_>>()
            .map(Json::List)
    }
    match nested {
        NestedTensors::Hole => Ok(Json::Null),
        NestedTensors::Tensor(t) => tensor(t),
        NestedTensors::List(list) => {
            list.iter().map(to_json).collect::<Checked<_>>().map(Json::List)
        }
    }
}

fn same_nested(case: &Case, a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::List(a), Json::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_nested(case, a, b))
        }
        (Json::Bool(a), b) | (b, Json::Bool(a)) => {
            b.float().is_ok_and(|b| b == f64::from(u8::from(*a)))
        }
        (a, b) => match (a.float(), b.float()) {
            (Ok(a), Ok(b)) => are_close(case, a, b),
            _ => a == b,
        },
    }
}

fn check_unbound(case: &Case, het: &HetTensor, expected: &Json) -> Checked<Outcome> {
    check_only(expected, "the result", &["dtype", "ragged"])?;
    if expected.get("dtype").ok_or("no dtype")?.text()? != het.dtype().name() {
        return Err(format!("found {} values", het.dtype()));
    }
    let found = to_json(&het.unbind().map_err(|e| e.to_string())?)?;
    let expected = expected.get("ragged").ok_or("no ragged")?;
    if same_nested(case, &found, expected) {
        return Ok(Outcome::Passed);
    }
    if same_nested(case, &without_trailing(&found), &without_trailing(expected)) {
        return Ok(Outcome::Differs(TRAILING));
    }
    Err(format!("found {het}, expected {expected:?}"))
}

/// Returns the nested lists without the empty lists at the end of each list.
fn without_trailing(json: &Json) -> Json {
    let Json::List(list) = json else { return json.clone() };
    let mut list: Vec<Json> = list.iter().map(without_trailing).collect();
    while list.last() == Some(&Json::List(Vec::new())) {
        list.pop();
    }
    Json::List(list)
}

fn value_is(case: &Case, value: HetValue, expected: &Json) -> Checked<Outcome> {
    let part = |name: &str| expected.get(name).ok_or_else(|| format!("a result without {name}"));
    let (wanted, dtype) = match part("kind")?.text()? {
        "tensor" => {
            check_only(expected, "the result", &["kind", "tensor"])?;
            let json = part("tensor")?;
            let tensor = parse_tensor(json)?;
            if let HetValue::Dense(found) = &value
                && close_tensor(case, found, json).is_ok()
            {
                return Ok(Outcome::Passed);
            }
            let dtype = tensor.dtype();
            (read_cells(&HetValue::Dense(tensor))?, dtype)
        }
        "het" => {
            let known =
                ["kind", "dim_type", "shape", "max_shape", "dtype", "coords", "values", "ragged"];
            check_only(expected, "the result", &known)?;
            let (at, values) = (part("coords")?.list()?, part("values")?.list()?);
            let mut wanted = Cells::new();
            for (at, value) in at.iter().zip(values) {
                let value = match value {
                    Json::Bool(b) => f64::from(u8::from(*b)),
                    value => value.float()?,
                };
                wanted.insert(crate::format::parse_ints(at)?, value);
            }
            if at.len() != values.len() || wanted.len() != at.len() {
                return Err("as many coordinates as values are needed, each once".into());
            }
            let dtype: DType = part("dtype")?.text()?.parse().map_err(|e: Error| e.to_string())?;
            (wanted, dtype)
        }
        other => return Err(format!("results of kind {other:?} are unknown")),
    };
    let found = read_cells(&value)?;
    let wrong = || Err(format!("found {value} ({}), expected {expected:?}", value.dtype()));
    if case.op == "reduce_mean"
        && dtype.is_integer()
        && value.dtype() == DType::F64
        && found.len() == wanted.len()
        && found.iter().all(|(at, x)| wanted.get(at).is_some_and(|y| x.floor() == *y))
    {
        return Ok(Outcome::Differs(MEANS));
    }
    let same = found.len() == wanted.len()
        && found.iter().all(|(at, x)| wanted.get(at).is_some_and(|y| are_close(case, *x, *y)));
    if !same || value.dtype() != dtype {
        return wrong();
    }
    // All values and coordinates are equal, so that only shapes can differ.
    let HetValue::Het(het) = &value else { return wrong() };
    let trailing = || {
        let last = |dim: usize| found.keys().map(|at| at[dim]).max().map_or(0, |n| n + 1);
        let longer = het.max_shape().into_iter().enumerate();
        longer.into_iter().any(|(dim, n)| i64::try_from(n).unwrap() > last(dim))
    };
    let Some(types) = expected.get("dim_type") else {
        return if trailing() { Ok(Outcome::Differs(TRAILING)) } else { wrong() };
    };
    let types: Vec<&str> = types.list()?.iter().map(Json::text).collect::<Checked<_>>()?;
    let kinds: Vec<String> = het.dim_types().iter().map(ToString::to_string).collect();
    let shape: Vec<i64> = crate::format::parse_ints(part("shape")?)?;
    let max_shape: Vec<usize> = crate::format::parse_ints(part("max_shape")?)?;
    // In the vectors, -1 stands for a size that varies.
    let size = |n: Option<usize>| n.map_or(-1, |n| i64::try_from(n).unwrap());
    let own: Vec<i64> = het.shape().into_iter().map(size).collect();
    if kinds != types || own != shape || het.max_shape() != max_shape {
        return if trailing() {
            Ok(Outcome::Differs(TRAILING))
        } else {
            Err(format!(
                "found {kinds:?} {own:?} {:?}, expected {types:?} {shape:?} {max_shape:?}",
                het.max_shape()
            ))
        };
    }
    if let Some(ragged) = expected.get("ragged") {
        let unbound = to_json(&het.unbind().map_err(|e| e.to_string())?)?;
        if !same_nested(case, &unbound, ragged) {
            return wrong();
        }
    }
    Ok(Outcome::Passed)
}

/// Runs a case given as the text of its JSON members, without the name.
fn check_unseen(op: &str, case: &str) -> Checked<Outcome> {
    let case = Json::parse(&format!("{{\"name\": \"unseen\", {case}}}")).unwrap();
    run(&Case::new(std::path::Path::new("."), op, &case)?)
}

/// A tensor of two lists of lists of integers. One of the inner lists is empty.
const Y: &str = r#""het": [[{"dtype": "int64", "shape": [2], "data": [1, 2]}, {"dtype": "int64", "shape": [1], "data": [0]}],
    [[], {"dtype": "int64", "shape": [1], "data": [3]}, {"dtype": "int64", "shape": [2], "data": [4, 5]}]]"#;

#[test]
fn cases_in_forms_that_the_vectors_lack_are_checked() {
    let passes = |op: &str, args: &str, expect: &str| {
        let case = format!(r#""input": {{{Y}}}, "args": {args}, "expect": {expect}"#);
        assert_eq!(check_unseen(op, &case), Ok(Outcome::Passed), "{op} {args}");
    };
    let het = |types: &str, shape: &str, max: &str, coords: &str, values: &str| {
        format!(
            r#"{{"kind": "het", "dim_type": {types}, "shape": {shape}, "max_shape": {max},
                 "dtype": "int64", "coords": {coords}, "values": {values}}}"#
        )
    };
    // The result has no element for the sum of an empty list.
    let sums = het(
        r#"["het", "het"]"#,
        "[-1, -1]",
        "[2, 3]",
        "[[0, 0], [0, 1], [1, 1], [1, 2]]",
        "[3, 0, 3, 9]",
    );
    passes("reduce_sum", r#"{"dim": 2}"#, &sums);
    passes("reduce_sum", r#"{"dim": -1}"#, &sums);
    let over_rows = het(
        r#"["het", "het"]"#,
        "[-1, -1]",
        "[3, 2]",
        "[[0, 0], [0, 1], [1, 0], [2, 0], [2, 1]]",
        "[1, 2, 3, 4, 5]",
    );
    passes(
        "reduce_prod",
        r#"{"dim": 0}"#,
        &over_rows.replace("[1, 2, 3, 4, 5]", "[1, 2, 0, 4, 5]"),
    );
    passes("reduce_amax", r#"{"dim": 0}"#, &over_rows);
    // The last element of each innermost list.
    let last = het(
        r#"["het", "het"]"#,
        "[-1, -1]",
        "[2, 3]",
        "[[0, 0], [0, 1], [1, 1], [1, 2]]",
        "[2, 0, 3, 5]",
    );
    let all = r#"{"slice": [null, null, null]}"#;
    passes("getitem", &format!(r#"{{"index": [{all}, {all}, {{"int": -1}}]}}"#), &last);
    let error = |op: &str, args: &str, kind: &str| {
        let error = format!(r#""error": {{"kind": "{kind}", "gist": "no"}}"#);
        check_unseen(op, &format!(r#""input": {{{Y}}}, "args": {args}, {error}"#))
    };
    let far = format!(r#"{{"index": [{all}, {{"int": 3}}]}}"#);
    assert_eq!(error("getitem", &far, "IndexError"), Ok(Outcome::Passed));
    assert_eq!(error("reduce_sum", r#"{"dim": 3}"#, "IndexError"), Ok(Outcome::Passed));
    assert_eq!(error("reduce_sum", r#"{"dim": -1}"#, "IndexError"), Ok(Outcome::Differs(NEGATIVE)));
    // A difference that the tests do not know is a failure.
    assert!(error("reduce_sum", r#"{"dim": 0}"#, "ValueError").is_err());
    assert!(error("reduce_sum", r#"{"dim": 3}"#, "KeyError").is_err());
    assert!(error("reduce_median", r#"{"dim": 0}"#, "ValueError").is_err());
    assert!(error("reduce_sum", r#"{"axis": 0}"#, "ValueError").is_err());
    assert!(error("getitem", r#"{"index": [{"set": 1}]}"#, "ValueError").is_err());
    let wrong = sums.replace("[3, 0, 3, 9]", "[3, 0, 3, 8]");
    let case = format!(r#""input": {{{Y}}}, "args": {{"dim": 2}}, "expect": {wrong}"#);
    assert!(check_unseen("reduce_sum", &case).is_err());
    let case = format!(
        r#""input": {{{Y}}}, "args": {{"dim": 2}}, "expect": {}"#,
        sums.replace("int64", "int32")
    );
    assert!(check_unseen("reduce_sum", &case).is_err());
}
