//! Reads batches and selectors of the vectors, and compares batches with expected ones.

use serrate::Error;
use serrate::batching::{AnyBatch, RaggedBatch};
use serrate::dense::{DType, DenseTensor, Fill};
use serrate::index::Index;

use crate::format::{
    Asked, Case, Expected, Outcome, check_only, matches_kind, parse_ints, parse_tensor,
};
use crate::json::Json;

pub(crate) type Checked<T> = Result<T, String>;

/// The reason why filler differs on purpose from the Python library.
pub(crate) const FILLER: &str = "filler is not stored: it reads as zero, or as what it is set to, and what is written to it is gone";

/// The result of an operation.
#[derive(Debug)]
pub(crate) enum Found {
    Batch(RaggedBatch),
    Batches(Vec<RaggedBatch>),
    Any(AnyBatch),
    Tensor(DenseTensor),
}

/// How exactly floats are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Exactly {
    Yes,
    /// Floats may differ by the tolerance of the vectors.
    Nearly,
}

/// Returns the member `name` of an object, or an error if there is none.
pub(crate) fn find_member<'a>(json: &'a Json, name: &str) -> Checked<&'a Json> {
    json.get(name).ok_or_else(|| format!("no {name}"))
}

/// Reads a ragged batch, which may be the member `ragged_batch` of an object. An inner error means
/// that the batch is invalid.
pub(crate) fn parse_batch(json: &Json) -> Checked<serrate::Result<RaggedBatch>> {
    let json = match json.get("ragged_batch") {
        Some(inner) => {
            check_only(json, "a batch", &["ragged_batch"])?;
            inner
        }
        None => json,
    };
    check_only(
        json,
        "a batch",
        &["tensor", "mask", "sample_sizes", "non_uniform_dim", "num_batch_dims"],
    )?;
    let sizes = json.get("sample_sizes").map(parse_tensor).transpose()?;
    let mask = json.get("mask").map(parse_tensor).transpose()?;
    let dim = json.get("non_uniform_dim").map(Json::int::<usize>).transpose()?;
    let made = RaggedBatch::try_new(
        &parse_tensor(find_member(json, "tensor")?)?,
        mask.as_ref(),
        sizes.as_ref(),
        dim,
    );
    if let (Some(n), Ok(made)) = (json.get("num_batch_dims"), &made) {
        check_same("num_batch_dims", made.num_batch_dims(), n.int()?)?;
    }
    Ok(made)
}

/// Reads a tensor or a ragged batch, in an object whose only member says which. An inner error
/// means that the batch is invalid.
pub(crate) fn parse_any(json: &Json) -> Checked<serrate::Result<AnyBatch>> {
    match json.members()? {
        [(kind, _)] if kind == "ragged_batch" => Ok(parse_batch(json)?.map(AnyBatch::Ragged)),
        [(kind, inner)] if kind == "tensor" => Ok(Ok(AnyBatch::Dense(parse_tensor(inner)?))),
        _ => Ok(Ok(AnyBatch::Dense(parse_tensor(json)?))),
    }
}

/// Reads a filler value, which is a number or a boolean.
pub(crate) fn parse_fill(json: &Json) -> Checked<Fill> {
    Ok(match json {
        Json::Bool(b) => Fill::Bool(*b),
        Json::Number(text) if text.parse::<i64>().is_ok() => Fill::Int(json.int()?),
        Json::Number(text) if text.parse::<u64>().is_ok() => Fill::UInt(json.int()?),
        other => Fill::Float(other.float()?),
    })
}

/// Reads the number of an axis. A negative number is an inner error, because `usize` excludes it.
pub(crate) fn parse_axis(json: Option<&Json>) -> Checked<serrate::Result<Option<usize>>> {
    let Some(json) = json else { return Ok(Ok(None)) };
    let n: i64 = json.int()?;
    Ok(usize::try_from(n)
        .map(Some)
        .map_err(|_| Error::invalid(format!("{n} is no number of an axis here"))))
}

/// Reads a list of selectors as an index, or as nonsense if a selector has a kind that no index
/// has.
pub(crate) fn parse_selectors(json: &Json) -> Checked<Asked> {
    let mut items = Vec::new();
    for selector in json.list()? {
        let [(kind, value)] = selector.members()? else {
            return Err("a selector has one member".into());
        };
        let item = match kind.as_str() {
            "int" => match value {
                Json::Bool(b) => Index::At(i64::from(*b)),
                value => Index::At(value.int()?),
            },
            "slice" => {
                let [start, stop, step] = value.list()? else {
                    return Err("a slice has three parts".into());
                };
                let part = |v: &Json| match v {
                    Json::Null => Ok(None),
                    v => v.int::<i64>().map(Some),
                };
                Index::Slice { start: part(start)?, stop: part(stop)?, step: part(step)? }
            }
            "list" => match parse_nested(value)? {
                Some(index) => index,
                None => return Ok(Asked::Nonsense),
            },
            "array" | "mask" => {
                let array = parse_tensor(value)?;
                if array.dtype().is_float() {
                    return Ok(Asked::Nonsense);
                }
                from_tensor(&array)?
            }
            "ellipsis" => Index::Rest,
            "newaxis" | "none" => Index::NewAxis,
            "float" | "str" => return Ok(Asked::Nonsense),
            other => return Err(format!("the selector {other:?} is unknown")),
        };
        items.push(item);
    }
    Ok(Asked::Index(items))
}

fn from_tensor(array: &DenseTensor) -> Checked<Index> {
    let shape = array.shape().to_vec();
    let text = |e: Error| e.to_string();
    if array.dtype() == DType::Bool {
        let values = array.as_bytes().iter().map(|b| *b == 1).collect();
        return serrate::index::IndexArray::try_new(shape, values).map(Index::Mask).map_err(text);
    }
    let wide = array.cast(DType::I64).map_err(text)?;
    let values = wide.as_slice::<i64>().map_err(text)?.to_vec();
    serrate::index::IndexArray::try_new(shape, values).map(Index::Array).map_err(text)
}

/// Reads an index array or mask from nested lists. Returns `None` if the lists are ragged or have
/// other values.
fn parse_nested(json: &Json) -> Checked<Option<Index>> {
    let (mut shape, mut level) = (Vec::new(), vec![json]);
    while let Some(Json::List(first)) = level.first() {
        shape.push(first.len());
        let mut below = Vec::new();
        for list in &level {
            match list {
                Json::List(list) if list.len() == first.len() => below.extend(list),
                _ => return Ok(None),
            }
        }
        level = below;
    }
    let bools: Checked<Vec<bool>> = level.iter().map(|v| v.bool()).collect();
    if let (Ok(values), false) = (bools, level.is_empty()) {
        return serrate::index::IndexArray::try_new(shape, values)
            .map(|m| Some(Index::Mask(m)))
            .map_err(|e| e.to_string());
    }
    let numbers: Checked<Vec<i64>> = level.iter().map(|v| v.int()).collect();
    let Ok(values) = numbers else { return Ok(None) };
    serrate::index::IndexArray::try_new(shape, values)
        .map(|a| Some(Index::Array(a)))
        .map_err(|e| e.to_string())
}

pub(crate) fn check_same<T: PartialEq + std::fmt::Debug>(
    name: &str,
    found: T,
    expected: T,
) -> Checked<()> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{name}: found {found:?}, expected {expected:?}"))
}

/// Counts the values that differ: first those at which `compared` is true, then the others. Type
/// and shape must be equal.
fn list_differences(
    name: &str,
    found: &DenseTensor,
    expected: &Json,
    compared: Option<&DenseTensor>,
    exactly: Exactly,
) -> Checked<(usize, usize)> {
    let expected = parse_tensor(expected).map_err(|e| format!("{name}: {e}"))?;
    check_same(&format!("{name}: dtype"), found.dtype(), expected.dtype())?;
    check_same(&format!("{name}: shape"), found.shape(), expected.shape())?;
    let wide = |t: &DenseTensor| {
        let t = t.cast(DType::F64).map_err(|e| e.to_string())?;
        Ok::<_, String>(t.as_slice::<f64>().map_err(|e| e.to_string())?.to_vec())
    };
    let (relative, absolute) = match (exactly, found.dtype()) {
        (Exactly::Yes, _) => (0.0, 0.0),
        (_, DType::F16) => (2e-3, 1e-3),
        (_, DType::BF16) => (1.6e-2, 1e-2),
        (_, d) if d.is_float() => (1e-5, 1e-6),
        _ => (0.0, 0.0),
    };
    // Integers are compared by their bytes, because 64-bit integers lose digits as floats.
    let size = found.dtype().size();
    let bytes = |t: &DenseTensor, i: usize| t.as_bytes()[i * size..(i + 1) * size].to_vec();
    let floats = found.dtype().is_float();
    let (a, b) = if floats { (wide(found)?, wide(&expected)?) } else { (vec![], vec![]) };
    let equal = |i: usize| {
        if !floats {
            return bytes(found, i) == bytes(&expected, i);
        }
        let (a, b) = (a[i], b[i]);
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= absolute + relative * b.abs()
    };
    let (mut own, mut others) = (0, 0);
    for i in (0..found.num_elements()).filter(|i| !equal(*i)) {
        if compared.is_none_or(|c| c.as_bytes()[i] == 1) {
            own += 1;
        } else {
            others += 1;
        }
    }
    Ok((own, others))
}

/// Compares a tensor. A different value is an error where `compared` is true; elsewhere, the result
/// is `Differs`.
pub(crate) fn same_values(
    name: &str,
    found: &DenseTensor,
    expected: &Json,
    compared: Option<&DenseTensor>,
    exactly: Exactly,
) -> Checked<Outcome> {
    match list_differences(name, found, expected, compared, exactly)? {
        (0, 0) => Ok(Outcome::Passed),
        (0, _) => Ok(Outcome::Differs(FILLER)),
        (n, _) => Err(format!("{name}: {n} values differ: found {found}, expected {expected:?}")),
    }
}

/// Returns booleans in the shape of the data: true, except in filler of a batch.
pub(crate) fn ones_like(data: &AnyBatch) -> serrate::Result<AnyBatch> {
    let ones = |t: &DenseTensor| DenseTensor::from_bools(t.shape(), vec![true; t.num_elements()]);
    Ok(match data {
        AnyBatch::Dense(tensor) => ones(tensor)?.into(),
        AnyBatch::Ragged(batch) => batch.apply_to_values(ones)?.into(),
    })
}

/// Returns a padded boolean tensor that is true for entries and false for filler.
pub(crate) fn read_existence(batch: &RaggedBatch) -> Checked<DenseTensor> {
    batch.get_existence_weights(DType::Bool).map_err(|e| e.to_string())
}

/// Compares a batch with the expected one. Filler is compared only if `filler` is set. `known` is
/// false at entries that the operation has read from filler.
pub(crate) fn same_batch(
    name: &str,
    found: &RaggedBatch,
    expected: &Json,
    filler: bool,
    known: Option<&DenseTensor>,
    exactly: Exactly,
) -> Checked<Outcome> {
    let expected = expected.get("ragged_batch").unwrap_or(expected);
    let text = |e: Error| e.to_string();
    let mut verdict = Outcome::Passed;
    for (part, value) in expected.members()? {
        let name = format!("{name}.{part}");
        match part.as_str() {
            "tensor" => {
                let tensor = found.tensor().map_err(text)?;
                // Filler of the result is not compared unless `filler` is set.
                let exists = read_existence(found)?;
                let all = if filler { None } else { Some(&exists) };
                let Some(known) = known else {
                    same_values(&name, tensor, value, all, exactly)?;
                    continue;
                };
                let pairs = exists.as_bytes().iter().zip(known.as_bytes());
                let read = pairs.map(|(e, k)| if *e == 0 { filler } else { *k == 1 });
                let read = DenseTensor::from_bools(exists.shape(), read).map_err(text)?;
                same_values(&name, tensor, value, Some(&read), exactly)?;
                if list_differences(&name, tensor, value, all, exactly)?.0 > 0 {
                    verdict = Outcome::Differs(FILLER);
                }
            }
            "sample_sizes" | "mask" => {
                let own = if part == "mask" { found.mask() } else { found.sample_sizes() };
                same_values(&name, own.map_err(text)?, value, None, Exactly::Yes)?;
            }
            "non_uniform_dim" => check_same(&name, found.non_uniform_dim(), value.int()?)?,
            "num_batch_dims" => check_same(&name, found.num_batch_dims(), value.int()?)?,
            "batch_shape" => check_same(&name, found.batch_shape().to_vec(), parse_ints(value)?)?,
            "total_num_samples_in_batch" => check_same(&name, found.num_samples(), value.int()?)?,
            "total_num_entries" => check_same(&name, found.num_entries(), value.int()?)?,
            "max_sample_size" => check_same(&name, found.max_sample_size(), value.int()?)?,
            "shape" => check_same(&name, found.shape(), parse_ints(value)?)?,
            "dtype" => check_same(&name, found.dtype().name(), value.text()?)?,
            "dim" => check_same(&name, found.ndim(), value.int()?)?,
            _ => return Err(format!("{name} is unknown")),
        }
    }
    Ok(verdict)
}

/// How results are compared.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Whether filler of the result is compared.
    pub(crate) filler: bool,
    /// False at elements that the operation has read from filler, which then may differ.
    pub(crate) known: Option<DenseTensor>,
    pub(crate) exactly: Exactly,
}

impl Default for Terms {
    fn default() -> Self {
        Self { filler: false, known: None, exactly: Exactly::Yes }
    }
}

/// Compares the result or the error of an operation with what the case expects.
pub(crate) fn settle(
    case: &Case,
    found: serrate::Result<Found>,
    terms: &Terms,
) -> Checked<Outcome> {
    match (&case.expected, found) {
        (Expected::Result(expect), Ok(found)) => check_answer(&found, expect, terms),
        (Expected::Error { kind, .. }, Err(error)) => {
            if matches_kind(&case.op, &error, kind)? {
                Ok(Outcome::Passed)
            } else {
                Err(format!("expected a {kind}, found the error {error:?}"))
            }
        }
        (Expected::Result(_), Err(error)) => Err(format!("found the error {error}")),
        (Expected::Error { kind, gist }, Ok(found)) => {
            Err(format!("expected a {kind} ({gist}), found {found:?}"))
        }
    }
}

fn check_answer(found: &Found, expect: &Json, terms: &Terms) -> Checked<Outcome> {
    let known = terms.known.as_ref();
    let one = |name: &str, batch: &RaggedBatch, expect: &Json| {
        same_batch(name, batch, expect, terms.filler, known, terms.exactly)
    };
    match found {
        Found::Batch(batch) => one("the batch", batch, expect),
        Found::Any(AnyBatch::Ragged(batch)) => {
            check_only(expect, "a batch", &["ragged_batch"])?;
            one("the batch", batch, find_member(expect, "ragged_batch")?)
        }
        Found::Any(AnyBatch::Dense(tensor)) => {
            check_only(expect, "a tensor", &["tensor"])?;
            let expect = find_member(expect, "tensor")?;
            same_values("the tensor", tensor, expect, known, terms.exactly)
        }
        Found::Tensor(tensor) => same_values("the tensor", tensor, expect, known, terms.exactly),
        Found::Batches(batches) => {
            let expected = expect.list()?;
            check_same("the number of batches", batches.len(), expected.len())?;
            let mut verdict = Outcome::Passed;
            for (i, (batch, expect)) in batches.iter().zip(expected).enumerate() {
                if let differs @ Outcome::Differs(_) = one(&format!("batch {i}"), batch, expect)? {
                    verdict = differs;
                }
            }
            Ok(verdict)
        }
    }
}
