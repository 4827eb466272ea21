//! Runs the cases of the functions on batches, such as reads and writes by index and by mask.

use serrate::Error;
use serrate::batching::{
    AnyBatch, BatchField, CompactField, IndexOptions, NestedSamples, NonFiniteMeans, RaggedBatch,
    apply_mask_to_tensor, average_over_targets, batched_bool_indexing, batched_bool_indexing_write,
    batched_index_mapping, batched_indexing_access, batched_indexing_write,
    batched_inverse_indexing_access, combine_data, get_compact_from_named_tuple, get_compact_lists,
    get_indices_from_mask, get_mask_from_indices, squeeze_except_batch_and_sample,
    sum_over_targets,
};
use serrate::dense::{DType, DenseTensor, Fill};

use crate::batches::{
    Checked, Exactly, Found, Terms, check_same, find_member, ones_like, parse_any, parse_axis,
    parse_batch, parse_fill, same_batch, same_values, settle,
};
use crate::format::{Case, Expected, Outcome, check_only, matches_kind, parse_tensor};
use crate::json::Json;

/// The reason why means differ on purpose if the non-uniform axis is after the second data axis.
const AXES: &str = "means keep the order of the data axes, as sums do";

/// Runs a case. Returns an error if its result differs or its operation is unknown.
pub(crate) fn run(case: &Case) -> Checked<Outcome> {
    let input = |name: &str| find_member(&case.input, name);
    let mut terms = Terms::default();
    let options = IndexOptions::default();
    let found = match case.op.as_str() {
        "apply_mask_to_tensor" => {
            case.takes(&["data", "mask"], &["value_to_set"])?;
            let value = case.args.get("value_to_set").map_or(Ok(Fill::Int(0)), parse_fill)?;
            apply_mask_to_tensor(
                &parse_tensor(input("data")?)?,
                &parse_tensor(input("mask")?)?,
                value,
            )
            .map(Found::Tensor)
        }
        "average_over_targets" => return check_average(case),
        "sum_over_targets" => {
            case.takes(&["data"], &[])?;
            terms.exactly = Exactly::Nearly;
            parse_batch(input("data")?)?.and_then(|d| sum_over_targets(&d)).map(Found::Tensor)
        }
        "batched_bool_indexing" => {
            case.takes(&["input_data", "input_mask"], &[])?;
            let (data, mask) = (parse_any(input("input_data")?)?, parse_any(input("input_mask")?)?);
            data.and_then(|d| batched_bool_indexing(d, mask?)).map(Found::Batch)
        }
        "batched_bool_indexing_write" => {
            case.takes(&["to_write", "output_mask", "to_write_into"], &[])?;
            let mask = parse_any(input("output_mask")?)?;
            let into = parse_any(input("to_write_into")?)?;
            parse_any(input("to_write")?)?
                .and_then(|from| match from {
                    AnyBatch::Ragged(from) => batched_bool_indexing_write(&from, mask?, into?),
                    AnyBatch::Dense(_) => Err(Error::invalid("its type rules a tensor out")),
                })
                .map(Found::Any)
        }
        "batched_indexing_access" => return check_access(case),
        "batched_inverse_indexing_access" => {
            case.takes(
                &["input_data", "output_indices"],
                &["output_num_targets", "filler_value", "dim_to_index_in"],
            )?;
            let (data, indices) =
                (parse_any(input("input_data")?)?, parse_batch(input("output_indices")?)?);
            let targets = parse_axis(Some(find_member(&case.args, "output_num_targets")?))?;
            let filler = case.args.get("filler_value").map_or(Ok(Fill::Int(0)), parse_fill)?;
            let dim = parse_axis(case.args.get("dim_to_index_in"))?;
            data.and_then(|d| {
                let targets = targets?.unwrap_or_default();
                batched_inverse_indexing_access(d, &indices?, targets, filler, dim?, &options)
            })
            .map(Found::Tensor)
        }
        "batched_indexing_write" => {
            case.takes(&["to_write", "output_indices", "to_write_into"], &["dim_to_index_in"])?;
            let (from, indices) =
                (parse_any(input("to_write")?)?, parse_batch(input("output_indices")?)?);
            let into = parse_any(input("to_write_into")?)?;
            let dim = parse_axis(case.args.get("dim_to_index_in"))?;
            from.and_then(|f| batched_indexing_write(f, &indices?, into?, dim?, &options))
                .map(Found::Any)
        }
        "batched_index_mapping" => return check_mapping(case),
        "get_indices_from_mask" => {
            case.takes(&["mask"], &[])?;
            terms.filler = true;
            parse_any(input("mask")?)?.and_then(get_indices_from_mask).map(Found::Batch)
        }
        "get_mask_from_indices" => {
            case.takes(&["indices"], &["mask_num_targets"])?;
            let targets = parse_axis(Some(find_member(&case.args, "mask_num_targets")?))?;
            let indices = parse_batch(input("indices")?)?;
            indices
                .and_then(|i| get_mask_from_indices(targets?.unwrap_or_default(), &i))
                .map(Found::Tensor)
        }
        "squeeze_except_batch_and_sample" => {
            case.takes(&["data"], &[])?;
            parse_any(input("data")?)?.and_then(squeeze_except_batch_and_sample).map(Found::Any)
        }
        "get_compact_lists" | "get_compact_from_named_tuple" => return check_compact(case),
        "combine_data" => {
            case.takes(&["data_list", "other_with_same_sample_sizes"], &["flatten_batch_dims"])?;
            terms.filler = true;
            let other =
                case.input.get("other_with_same_sample_sizes").map(parse_batch).transpose()?;
            let flatten = case.args.get("flatten_batch_dims").map_or(Ok(true), Json::bool)?;
            match parse_samples(input("data_list")?)? {
                None => Err(Error::invalid("its type rules all but tensors and lists out")),
                Some(samples) => other
                    .transpose()
                    .and_then(|other| combine_data(&samples, other.as_ref(), flatten)),
            }
            .map(Found::Batch)
        }
        other => return Err(format!("the operation {other:?} is unknown")),
    };
    settle(case, found, &terms)
}

/// Reads nested lists of tensors, or returns `None` if they contain anything else.
fn parse_samples(json: &Json) -> Checked<Option<NestedSamples>> {
    match json {
        Json::List(list) => {
            let list = list.iter().map(parse_samples).collect::<Checked<Option<Vec<_>>>>()?;
            Ok(list.map(NestedSamples::List))
        }
        Json::Object(members) => match &members[..] {
            [(kind, _)] if kind == "other" => Ok(None),
            [(kind, inner)] if kind == "tensor" => Ok(Some(parse_tensor(inner)?.into())),
            _ => Ok(Some(parse_tensor(json)?.into())),
        },
        other => Err(format!("{other:?} is no sample")),
    }
}

fn check_average(case: &Case) -> Checked<Outcome> {
    case.takes(&["data"], &["nans_to_zero"])?;
    let zero = case.args.get("nans_to_zero").map_or(Ok(true), Json::bool)?;
    let non_finite = if zero { NonFiniteMeans::Zero } else { NonFiniteMeans::Keep };
    let data = parse_batch(find_member(&case.input, "data")?)?;
    let terms = Terms { exactly: Exactly::Nearly, ..Terms::default() };
    let found = data.as_ref().map_err(|e| Error::invalid(e.to_string()));
    let found = found.and_then(|d| average_over_targets(d, non_finite));
    let verdict = settle(
        case,
        found.as_ref().map(|t| Found::Tensor(t.clone())).map_err(|e| Error::invalid(e.to_string())),
        &terms,
    );
    let (Err(_), Ok(data), Ok(found), Expected::Result(expect)) =
        (&verdict, &data, &found, &case.expected)
    else {
        return verdict;
    };
    // The Python library swaps the non-uniform axis with the first data axis and does not swap
    // back.
    let (batch_dims, dim) = (data.num_batch_dims(), data.non_uniform_dim());
    if dim < batch_dims + 2 {
        return verdict;
    }
    let swapped = swap_back(found, batch_dims, dim).map_err(|e| e.to_string())?;
    same_values("the mean", &swapped, expect, None, Exactly::Nearly)?;
    Ok(Outcome::Differs(AXES))
}

/// Moves the axes of the means to where the Python library leaves them: the first data axis stands
/// in place of the non-uniform axis.
fn swap_back(means: &DenseTensor, batch_dims: usize, dim: usize) -> serrate::Result<DenseTensor> {
    // Changes [batch, x, between, after] to [batch, between, x, after].
    let shape = means.shape();
    let mut moved = shape.to_vec();
    moved[batch_dims..dim].rotate_left(1);
    let block = |range: std::ops::Range<usize>| shape[range].iter().product::<usize>();
    let (blocks, a) = (block(0..batch_dims), shape[batch_dims]);
    let (b, run) = (block(batch_dims + 1..dim), block(dim..shape.len()));
    let size = means.dtype().size();
    let from = means.as_bytes();
    let mut out = Vec::with_capacity(from.len());
    for block in 0..blocks {
        for j in 0..b {
            for i in 0..a {
                let at = ((block * a + i) * b + j) * run * size;
                out.extend_from_slice(&from[at..at + run * size]);
            }
        }
    }
    DenseTensor::try_new(means.dtype(), moved, out.into())
}

fn check_access(case: &Case) -> Checked<Outcome> {
    case.takes(&["input_data", "input_indices"], &["filler_value", "dim_to_index_in"])?;
    let data = parse_any(find_member(&case.input, "input_data")?)?;
    let indices = parse_batch(find_member(&case.input, "input_indices")?)?;
    let filler = case.args.get("filler_value").map_or(Ok(Fill::Int(0)), parse_fill)?;
    let dim = parse_axis(case.args.get("dim_to_index_in"))?;
    let mut terms = Terms { filler: true, ..Terms::default() };
    let found = (|| {
        let (data, indices, dim) = (data?, indices?, dim?);
        let options = IndexOptions::default();
        let found = batched_indexing_access(&data, &indices, filler, dim, &options)?;
        let known = batched_indexing_access(ones_like(&data)?, &indices, 0, dim, &options)?;
        terms.known = Some(known.tensor()?.clone());
        Ok((found, data, indices))
    })();
    // The Python library refuses the type of this case. The result is compared with a loop instead.
    if let (Expected::Error { .. }, Ok((found, data, indices))) = (&case.expected, &found)
        && case.has_tag("limitation")
    {
        check_same("the result", element_by_element(data, indices)?, found.values().clone())?;
        return Ok(Outcome::Passed);
    }
    settle(case, found.map(|(found, ..)| Found::Batch(found)), &terms)
}

/// Reads entries of a boolean tensor along the first data axis, one by one, as a reference.
fn element_by_element(data: &AnyBatch, indices: &RaggedBatch) -> Checked<DenseTensor> {
    let text = |e: Error| e.to_string();
    let data = data.to_tensor().map_err(text)?;
    let ids = indices.values().cast(DType::I64).map_err(text)?;
    let ids = ids.as_slice::<i64>().map_err(text)?;
    let batch_dims = indices.num_batch_dims();
    let width = data.shape()[batch_dims];
    let entry: usize = data.shape()[batch_dims + 1..].iter().product();
    let mut out = Vec::new();
    for i in 0..indices.num_samples() {
        for id in &ids[indices.offsets().range(i)] {
            let n = i64::try_from(width).map_err(|e| e.to_string())?;
            let id =
                usize::try_from(if *id < 0 { id + n } else { *id }).map_err(|e| e.to_string())?;
            let at = (i * width + id) * entry;
            out.extend(data.as_bytes()[at..at + entry].iter().map(|b| *b == 1));
        }
    }
    let mut shape = vec![ids.len()];
    shape.extend_from_slice(&data.shape()[batch_dims + 1..]);
    DenseTensor::from_bools(shape, out).map_err(text)
}

fn check_mapping(case: &Case) -> Checked<Outcome> {
    case.takes(&["source_data", "source_indices", "target_indices", "target_data"], &[])?;
    let part = |name: &str| parse_any(find_member(&case.input, name)?);
    let (source, target) = (part("source_data")?, part("target_data")?);
    let from = parse_batch(find_member(&case.input, "source_indices")?)?;
    let to = parse_batch(find_member(&case.input, "target_indices")?)?;
    let mut terms = Terms::default();
    let found = (|| {
        let (source, from, to, target) = (source?, from?, to?, target?);
        let options = IndexOptions::default();
        let found = batched_index_mapping(&source, &from, &to, &target, &options)?;
        let (source, target) = (ones_like(&source)?, ones_like(&target)?);
        let known = batched_index_mapping(source, &from, &to, target, &options)?;
        terms.known = Some(known.to_tensor()?);
        Ok(Found::Any(found))
    })();
    settle(case, found, &terms)
}

/// Runs a case of `get_compact_lists`, whose data may contain lists and named tuples with other
/// values than tensors.
fn check_compact(case: &Case) -> Checked<Outcome> {
    case.takes(&["mask", "data"], &[])?;
    let mask = parse_tensor(find_member(&case.input, "mask")?)?;
    let field = |json: &Json| match json.members()? {
        [(kind, inner)] if kind == "tensor" => Ok(BatchField::Tensor(parse_tensor(inner)?)),
        [(kind, inner)] if kind == "other" => Ok(BatchField::Other(inner.clone())),
        other => Err(format!("{other:?} is neither a tensor nor anything else")),
    };
    let data = find_member(&case.input, "data")?;
    let named = case.op == "get_compact_from_named_tuple";
    let found = if named {
        let fields = data.members()?.iter().map(|(n, f)| Ok((n.clone(), field(f)?)));
        get_compact_from_named_tuple(&mask, fields.collect::<Checked<Vec<_>>>()?)
    } else {
        let fields = data.list()?.iter().map(field).collect::<Checked<Vec<_>>>()?;
        get_compact_lists(&mask, fields)
            .map(|list| list.into_iter().map(|f| (String::new(), f)).collect())
    };
    let compare = |found: &CompactField<Json>, expect: &Json| match found {
        CompactField::Other(value) => {
            check_only(expect, "an element", &["other"])?;
            check_same(
                "what is no tensor",
                expect.get("other"),
                Some(value).filter(|v| **v != Json::Null),
            )
        }
        CompactField::Batch(batch) => {
            check_only(expect, "an element", &["ragged_batch"])?;
            same_batch("a batch", batch, expect, true, None, Exactly::Yes).map(|_| ())
        }
    };
    match (&case.expected, found) {
        (Expected::Result(expect), Ok(found)) => {
            let expected: Vec<(String, Json)> = if named {
                expect.members()?.to_vec()
            } else {
                expect.list()?.iter().map(|e| (String::new(), e.clone())).collect()
            };
            check_same("the number of elements", found.len(), expected.len())?;
            for ((name, found), (expected_name, expected)) in found.iter().zip(&expected) {
                check_same("a name", name, expected_name)?;
                compare(found, expected)?;
            }
            Ok(Outcome::Passed)
        }
        (Expected::Error { kind, .. }, Err(e)) if matches_kind(&case.op, &e, kind)? => {
            Ok(Outcome::Passed)
        }
        (expected, found) => Err(format!("expected {expected:?}, found {found:?}")),
    }
}
