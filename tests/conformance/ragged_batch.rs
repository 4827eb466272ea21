//! Runs the cases of `RaggedBatch`.

use serrate::Error;
use serrate::batching::{NestedSamples, RaggedBatch, SampleRepeats};
use serrate::dense::{DType, DenseTensor, Fill};

use crate::batches::{
    Checked, Exactly, Found, Terms, check_same, find_member, parse_axis, parse_batch, parse_fill,
    parse_selectors, read_existence, same_values, settle,
};
use crate::format::{
    Asked, Case, Expected, Outcome, check_only, matches_kind, parse_ints, parse_tensor,
};
use crate::json::Json;

/// Runs a case. Returns an error if its result differs or its operation is unknown.
pub(crate) fn run(case: &Case) -> Checked<Outcome> {
    let mut terms = Terms::default();
    let found = match case.op.as_str() {
        "construct" | "from_oversize_tensor" => {
            case.takes(&["tensor", "mask", "sample_sizes"], &["non_uniform_dim"])?;
            let data = parse_tensor(find_member(&case.input, "tensor")?)?;
            let mask = case.input.get("mask").map(parse_tensor).transpose()?;
            let sizes = case.input.get("sample_sizes").map(parse_tensor).transpose()?;
            parse_axis(case.args.get("non_uniform_dim"))?.and_then(|dim| {
                let (mask, sizes) = (mask.as_ref(), sizes.as_ref());
                if case.op == "construct" {
                    RaggedBatch::try_new(&data, mask, sizes, dim)
                } else {
                    RaggedBatch::from_oversize_tensor(&data, mask, sizes, dim)
                }
            })
        }
        "empty" => {
            case.takes(&[], &["num_dims", "non_uniform_dim", "num_batch_dims", "batch_shape"])?;
            make_empty(case)?
        }
        "from_full_tensor" => {
            case.takes(&["tensor"], &["non_uniform_dim", "num_batch_dims"])?;
            let data = parse_tensor(find_member(&case.input, "tensor")?)?;
            let batch_dims = parse_axis(case.args.get("num_batch_dims"))?;
            parse_axis(case.args.get("non_uniform_dim"))?.and_then(|dim| {
                RaggedBatch::from_full_tensor(&data, dim.unwrap_or(1), batch_dims?.unwrap_or(1))
            })
        }
        "broadcast_batch_dims" => {
            case.takes(&["data"], &[])?;
            let all = find_member(&case.input, "data")?.list()?;
            let all = all.iter().map(parse_batch).collect::<Checked<Vec<_>>>()?;
            let all = all.into_iter().collect::<serrate::Result<Vec<_>>>();
            let found = all.and_then(|all| RaggedBatch::broadcast_batch_dims(&all));
            return settle(case, found.map(Found::Batches), &terms);
        }
        "split" => {
            case.takes(&["data"], &[])?;
            return check_split(case, &parse_batch(find_member(&case.input, "data")?)?);
        }
        "getitem" | "setitem" => return check_items(case),
        "get_existence_weights" => {
            case.takes(&["data"], &["dtype"])?;
            let dtype = match case.args.get("dtype") {
                None => DType::F32,
                Some(name) => name.text()?.parse().map_err(|e: Error| e.to_string())?,
            };
            let data = parse_batch(find_member(&case.input, "data")?)?;
            let found = data.and_then(|d| d.get_existence_weights(dtype));
            return settle(case, found.map(Found::Tensor), &terms);
        }
        "apply" => {
            case.takes(&["data"], &["fn"])?;
            terms.exactly = Exactly::Nearly;
            let data = parse_batch(find_member(&case.input, "data")?)?;
            let name = find_member(&case.args, "fn")?.text()?;
            let found = match data {
                Ok(data) => apply_function(&data, name)?,
                Err(e) => Err(e),
            };
            return settle(case, found, &terms);
        }
        op => {
            if matches!(op, "with_padded_set_to" | "set_padded_to") {
                terms.filler = true;
            }
            call_method(case, op)?
        }
    };
    settle(case, found.map(Found::Batch), &terms)
}

fn make_empty(case: &Case) -> Checked<serrate::Result<RaggedBatch>> {
    let dims = parse_axis(case.args.get("num_dims"))?;
    let dim = parse_axis(case.args.get("non_uniform_dim"))?;
    let batch_dims = parse_axis(case.args.get("num_batch_dims"))?;
    let shape = match case.args.get("batch_shape") {
        None => Ok(None),
        Some(Json::List(sizes)) => {
            let sizes: Checked<Vec<_>> = sizes.iter().map(|n| parse_axis(Some(n))).collect();
            sizes?
                .into_iter()
                .map(|n| n.map(Option::unwrap_or_default))
                .collect::<Result<_, _>>()
                .map(Some)
        }
        one => parse_axis(one)?.map(|n| n.map(|n| vec![n])),
    };
    let needed = || Error::invalid("it needs a number of axes and a non-uniform one");
    Ok((|| {
        let shape: Option<Vec<usize>> = shape?;
        let (dims, dim) = (dims?.ok_or_else(needed)?, dim?.ok_or_else(needed)?);
        RaggedBatch::empty(dims, dim, batch_dims?, shape.as_deref())
    })())
}

/// Calls a method of a batch that returns a batch.
fn call_method(case: &Case, op: &str) -> Checked<serrate::Result<RaggedBatch>> {
    let data = |args: &[&str]| {
        case.takes(&["data"], args)?;
        parse_batch(find_member(&case.input, "data")?)
    };
    let arg = |name: &str| case.args.get(name);
    Ok(match op {
        "with_padded_set_to" | "set_padded_to" => {
            let mut data = data(&["value_to_set"])?;
            let value = parse_fill(find_member(&case.args, "value_to_set")?)?;
            if op == "with_padded_set_to" {
                data.and_then(|d| d.with_padded_set_to(value))
            } else {
                let done = data.as_mut().map(|d| d.set_padded_to(value));
                match done {
                    Ok(Err(e)) => Err(e),
                    _ => data,
                }
            }
        }
        "get_non_uniform_dimension_transposed_to" => {
            let data = data(&["dim"])?;
            let dim = parse_axis(Some(find_member(&case.args, "dim")?))?;
            data.and_then(|d| d.get_non_uniform_dimension_transposed_to(dim?.unwrap_or_default()))
        }
        "create_with_sample_sizes_like_self" | "set_tensor" => {
            let args: &[&str] = if op == "set_tensor" { &[] } else { &["non_uniform_dim"] };
            case.takes(&["data", "tensor"], args)?;
            let data = parse_batch(find_member(&case.input, "data")?)?;
            let new = parse_tensor(find_member(&case.input, "tensor")?)?;
            let dim = arg("non_uniform_dim").map(Json::int::<i64>).transpose()?;
            data.and_then(|mut d| {
                if op == "set_tensor" {
                    d.set_tensor(&new).map(|()| d)
                } else {
                    d.create_with_sample_sizes_like_self(&new, dim)
                }
            })
        }
        "repeat_samples" => {
            let data = data(&["num_repeats", "batch_dim"])?;
            let dim = parse_axis(arg("batch_dim"))?;
            let count = |n: &Json| parse_axis(Some(n)).map(|n| n.map(Option::unwrap_or_default));
            let repeats: serrate::Result<SampleRepeats> =
                match find_member(&case.args, "num_repeats")? {
                    Json::List(each) => {
                        let each = each.iter().map(count).collect::<Checked<Vec<_>>>()?;
                        each.into_iter()
                            .collect::<serrate::Result<Vec<_>>>()
                            .map(SampleRepeats::Each)
                    }
                    one => count(one)?.map(SampleRepeats::One),
                };
            data.and_then(|d| d.repeat_samples(repeats?, dim?))
        }
        "unsqueeze_batch_dim" => {
            let data = data(&["dim"])?;
            let dim = parse_axis(Some(find_member(&case.args, "dim")?))?;
            data.and_then(|d| d.unsqueeze_batch_dim(dim?.unwrap_or_default()))
        }
        "squeeze_batch_dim" => {
            let data = data(&["batch_dim"])?;
            let dim = parse_axis(Some(find_member(&case.args, "batch_dim")?))?;
            data.and_then(|d| d.squeeze_batch_dim(dim?.unwrap_or_default()))
        }
        "reshape_batch_dims" => {
            let data = data(&["new_batch_shape"])?;
            let shape = match find_member(&case.args, "new_batch_shape")? {
                Json::List(sizes) => {
                    sizes.iter().map(Json::int::<i64>).collect::<Checked<Vec<_>>>()?
                }
                one => vec![one.int::<i64>()?],
            };
            data.and_then(|d| d.reshape_batch_dims(&shape))
        }
        "flatten_batch_dims" => data(&[])?.and_then(|d| d.flatten_batch_dims()),
        "broadcast_batch_dims_to_shape" => {
            let data = data(&["new_batch_shape"])?;
            let shape: Vec<usize> = parse_ints(find_member(&case.args, "new_batch_shape")?)?;
            data.and_then(|d| d.broadcast_batch_dims_to_shape(&shape))
        }
        "unsqueeze_data_dim" => {
            let data = data(&["dim"])?;
            let dim: i64 = find_member(&case.args, "dim")?.int()?;
            data.and_then(|d| d.unsqueeze_data_dim(dim))
        }
        "to_dtype" => {
            let data = data(&["method"])?;
            let method = find_member(&case.args, "method")?.text()?;
            match method {
                "int" => data.and_then(|d| d.cast(DType::I32)),
                "long" => data.and_then(|d| d.cast(DType::I64)),
                "bool" => data.and_then(|d| d.cast(DType::Bool)),
                "half" => data.and_then(|d| d.cast(DType::F16)),
                "bfloat16" => data.and_then(|d| d.cast(DType::BF16)),
                "float" => data.and_then(|d| d.cast(DType::F32)),
                "double" => data.and_then(|d| d.cast(DType::F64)),
                other => return Err(format!("the method {other:?} is unknown")),
            }
        }
        other => return Err(format!("the operation {other:?} is unknown")),
    })
}

/// Applies `f` to the position and value of each element, as a 64-bit float, and casts the results
/// to the type of the tensor.
fn map_each(t: &DenseTensor, f: impl Fn(usize, f64) -> f64) -> serrate::Result<DenseTensor> {
    let wide = t.cast(DType::F64)?;
    let all = wide.as_slice::<f64>()?.iter().enumerate().map(|(i, v)| f(i, *v)).collect();
    DenseTensor::from_vec(t.shape(), all)?.cast(t.dtype())
}

fn apply_function(data: &RaggedBatch, name: &str) -> Checked<serrate::Result<Found>> {
    let float = |t: &DenseTensor| {
        if t.dtype().is_float() { Ok(t.clone()) } else { t.cast(DType::F32) }
    };
    let last = |t: &DenseTensor| t.shape().last().copied().unwrap_or(1).max(1);
    Ok(match name {
        "mul2_add1" => data.apply(|t| map_each(t, |_, v| v * 2.0 + 1.0)).map(Found::Batch),
        "square" => data.apply(|t| map_each(t, |_, v| v * v)).map(Found::Batch),
        "two_outputs" => data
            .apply(|t| Ok((map_each(t, |_, v| v + 1.0)?, map_each(t, |_, v| v * v)?)))
            .map(|(a, b)| Found::Batches(vec![a, b])),
        "where_mask_else_neg1" => data
            .apply_with_mask(|t, m| {
                same_shape(t, m)?;
                let flags = m.as_bytes();
                map_each(t, |i, v| if flags[i] == 1 { v } else { -1.0 })
            })
            .map(Found::Batch),
        "divide_by_size" => data
            .apply_with_sample_sizes(|t, m, sizes| {
                same_shape(t, m)?;
                let sizes = sizes.cast(DType::F64)?;
                let (sizes, width) = (sizes.as_slice::<f64>()?, last(t));
                map_each(&float(t)?, |i, v| v / sizes[i / width])
            })
            .map(Found::Batch),
        "keep_dim_sum_last" => data
            .apply(|t| {
                let wide = t.cast(DType::F64)?;
                let sums = wide.as_slice::<f64>()?.chunks(last(t)).map(|c| c.iter().sum());
                let mut shape = t.shape().to_vec();
                if let Some(last) = shape.last_mut() {
                    *last = 1;
                }
                let sums: Vec<f64> = sums.collect();
                let dtype = if t.dtype().is_float() { t.dtype() } else { DType::I64 };
                DenseTensor::from_vec(shape, sums)?.cast(dtype)
            })
            .map(Found::Batch),
        other => return Err(format!("the function {other:?} is unknown")),
    })
}

fn same_shape(t: &DenseTensor, mask: &DenseTensor) -> serrate::Result<()> {
    if t.shape() == mask.shape() {
        return Ok(());
    }
    Err(Error::invalid("this function is for data without data axes"))
}

fn check_split(case: &Case, data: &serrate::Result<RaggedBatch>) -> Checked<Outcome> {
    fn compare(found: &NestedSamples, expected: &Json) -> Checked<()> {
        match found {
            NestedSamples::Tensor(t) => {
                same_values("a sample", t, expected, None, Exactly::Yes).map(|_| ())
            }
            NestedSamples::List(list) => {
                let expected = expected.list()?;
                check_same("the number of samples", list.len(), expected.len())?;
                list.iter().zip(expected).try_for_each(|(f, e)| compare(f, e))
            }
        }
    }
    let found = data.as_ref().map_err(|e| e.to_string())?.split().map_err(|e| e.to_string())?;
    let Expected::Result(expect) = &case.expected else {
        return Err("a batch can always be split".into());
    };
    check_only(expect, "a split", &["split"])?;
    compare(&found, find_member(expect, "split")?)?;
    Ok(Outcome::Passed)
}

/// Runs a case of reading or writing by index.
fn check_items(case: &Case) -> Checked<Outcome> {
    let write = case.op == "setitem";
    case.takes(if write { &["data", "value"] } else { &["data"] }, &["index"])?;
    let data = parse_batch(find_member(&case.input, "data")?)?;
    let asked = parse_selectors(find_member(&case.args, "index")?)?;
    let value = if write { Some(parse_value(find_member(&case.input, "value")?)?) } else { None };
    let found = data.and_then(|mut data| {
        let Asked::Index(index) = &asked else {
            return Err(Error::invalid("the types of this crate rule such an index out"));
        };
        let exists = data.get_existence_weights(DType::Bool)?;
        Ok(match &value {
            None => (data.index(index)?, exists.index(index)?),
            Some(value) => {
                data.set(index, value)?;
                (data.tensor()?.clone(), exists)
            }
        })
    });
    match (&case.expected, found) {
        (Expected::Result(expect), Ok((found, exists))) => {
            same_values("the items", &found, expect, Some(&exists), Exactly::Yes)
        }
        (Expected::Error { kind, .. }, Err(e)) if matches_kind(&case.op, &e, kind)? => {
            Ok(Outcome::Passed)
        }
        // The Python library does not accept the index, and numpy does.
        (Expected::Error { .. }, Ok(_)) if case.has_tag("limitation") => Ok(Outcome::Passed),
        (expected, found) => Err(format!("expected {expected:?}, found {found:?}")),
    }
}

/// Reads a number or a tensor as a tensor.
fn parse_value(json: &Json) -> Checked<DenseTensor> {
    let one = |value: Fill| {
        let dtype = match value {
            Fill::Bool(_) => DType::Bool,
            Fill::Int(_) => DType::I64,
            Fill::UInt(_) => DType::U64,
            Fill::Float(_) => DType::F64,
        };
        value.to_tensor(dtype).and_then(|t| t.reshape([])).map_err(|e| e.to_string())
    };
    match json {
        Json::Object(members) => match &members[..] {
            [(kind, inner)] if kind == "tensor" => parse_tensor(inner),
            [(kind, inner)] if kind == "scalar" => one(parse_fill(inner)?),
            _ => parse_tensor(json),
        },
        number => one(parse_fill(number)?),
    }
}

/// The comparison of filler in all cases relies on this function.
#[test]
fn read_existence_is_true_for_entries_and_false_for_filler() {
    let data = r#"{"tensor": {"dtype": "int8", "shape": [1, 2, 2], "data": [1, 2, 3, 4]}, "sample_sizes": {"dtype": "int64", "shape": [1], "data": [1]}, "non_uniform_dim": 2, "num_batch_dims": 1}"#;
    let made = parse_batch(&Json::parse(data).unwrap()).unwrap().unwrap();
    assert_eq!(read_existence(&made).unwrap().as_bytes(), [1, 0, 1, 0]);
}
