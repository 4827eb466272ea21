//! The format of the vectors: reads cases, tensors and index objects, and compares tensors and
//! errors.

use std::path::{Path, PathBuf};

use serrate::Error;
use serrate::dense::{DType, DenseTensor};
use serrate::index::{Index, IndexArray};

use crate::json::Json;

/// The outcome of a case that did not fail.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Passed,
    /// The result differs on purpose from that of the Python library. The field is the reason.
    Differs(&'static str),
}

/// A case of a file of vectors.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) op: String,
    pub(crate) name: String,
    pub(crate) input: Json,
    pub(crate) args: Json,
    pub(crate) expected: Expected,
    /// The folder of the vectors, to which paths in cases are relative.
    pub(crate) root: PathBuf,
    tags: Vec<String>,
}

/// The expected outcome of a case: a result, or an error of a Python exception class with a
/// message.
#[derive(Debug)]
pub(crate) enum Expected {
    Result(Json),
    Error { kind: String, gist: String },
}

impl Case {
    pub(crate) fn new(root: &Path, op: &str, case: &Json) -> Result<Self, String> {
        check_only(
            case,
            "a case",
            &["name", "input", "args", "expect", "error", "tags", "note", "upstream", "provenance"],
        )?;
        let name = case.get("name").ok_or("a case without a name")?.text()?.to_owned();
        let member = |name: &str| case.get(name).cloned().unwrap_or(Json::Object(Vec::new()));
        let tags = match case.get("tags") {
            None => Vec::new(),
            Some(tags) => tags
                .list()?
                .iter()
                .map(|t| t.text().map(str::to_owned))
                .collect::<Result<_, _>>()?,
        };
        const TAGS: [&str; 6] = [
            "upstream-bug",
            "head-differs",
            "beyond-upstream",
            "limitation",
            "ambiguous",
            "readme-conflict",
        ];
        if let Some(unknown) = tags.iter().find(|t: &&String| !TAGS.contains(&t.as_str())) {
            return Err(format!("{name}: the tag {unknown:?} is unknown"));
        }
        let expected = match (case.get("expect"), case.get("error")) {
            (Some(expect), None) => Expected::Result(expect.clone()),
            (None, Some(error)) => {
                check_only(error, "an error", &["kind", "gist"])?;
                let part = |n: &str| {
                    Ok::<_, String>(error.get(n).ok_or("an error in parts")?.text()?.to_owned())
                };
                Expected::Error { kind: part("kind")?, gist: part("gist")? }
            }
            _ => return Err(format!("{name}: exactly one of expect and error is needed")),
        };
        let (input, args) = (member("input"), member("args"));
        Ok(Self { op: op.to_owned(), name, input, args, expected, root: root.to_owned(), tags })
    }

    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|t| t == tag)
    }

    /// Returns an error if the case has other inputs or arguments than those named.
    pub(crate) fn takes(&self, input: &[&str], args: &[&str]) -> Result<(), String> {
        check_only(&self.input, "the input", input)?;
        check_only(&self.args, "the arguments", args)
    }
}

/// Returns an error if the object `json` has members with other names than `names`.
pub(crate) fn check_only(json: &Json, what: &str, names: &[&str]) -> Result<(), String> {
    match json.members()?.iter().find(|(n, _)| !names.contains(&n.as_str())) {
        Some((unknown, _)) => Err(format!("{what} has an unknown member {unknown:?}")),
        None => Ok(()),
    }
}

/// Reads a dense tensor.
pub(crate) fn parse_tensor(json: &Json) -> Result<DenseTensor, String> {
    check_only(json, "a tensor", &["dtype", "shape", "data"])?;
    let part = |name: &str| json.get(name).ok_or_else(|| format!("a tensor without {name}"));
    let name = part("dtype")?.text()?;
    let dtype: DType = name.parse().map_err(|e: Error| e.to_string())?;
    if dtype.name() != name {
        return Err(format!("{name} is not how the vectors spell a type"));
    }
    let shape: Vec<usize> = parse_ints(part("shape")?)?;
    let data = part("data")?;
    let all = data.list()?;
    #[allow(clippy::cast_possible_truncation)]
    let made = match dtype {
        DType::Bool => {
            let bools = all.iter().map(Json::bool).collect::<Result<Vec<_>, _>>()?;
            DenseTensor::from_bools(shape, bools)
        }
        DType::U8 => DenseTensor::from_vec(shape, parse_ints::<u8>(data)?),
        DType::U16 => DenseTensor::from_vec(shape, parse_ints::<u16>(data)?),
        DType::U32 => DenseTensor::from_vec(shape, parse_ints::<u32>(data)?),
        DType::U64 => DenseTensor::from_vec(shape, parse_ints::<u64>(data)?),
        DType::I8 => DenseTensor::from_vec(shape, parse_ints::<i8>(data)?),
        DType::I16 => DenseTensor::from_vec(shape, parse_ints::<i16>(data)?),
        DType::I32 => DenseTensor::from_vec(shape, parse_ints::<i32>(data)?),
        DType::I64 => DenseTensor::from_vec(shape, parse_ints::<i64>(data)?),
        DType::F16 => DenseTensor::from_vec(shape, parse_floats(all, half::f16::from_f64)?),
        DType::BF16 => DenseTensor::from_vec(shape, parse_floats(all, half::bf16::from_f64)?),
        DType::F32 => DenseTensor::from_vec(shape, parse_floats(all, |x| x as f32)?),
        DType::F64 => DenseTensor::from_vec(shape, parse_floats(all, |x| x)?),
    };
    made.map_err(|e| e.to_string())
}

pub(crate) fn parse_ints<T: std::str::FromStr>(json: &Json) -> Result<Vec<T>, String> {
    json.list()?.iter().map(Json::int).collect()
}

fn parse_floats<T>(data: &[Json], make: impl Fn(f64) -> T) -> Result<Vec<T>, String> {
    data.iter().map(|v| v.float().map(&make)).collect()
}

/// Returns an error unless type, shape and values of a tensor are the expected ones. NaN equals
/// NaN, and 0.0 equals -0.0.
pub(crate) fn same_tensor(name: &str, found: &DenseTensor, expected: &Json) -> Result<(), String> {
    let expected = parse_tensor(expected).map_err(|e| format!("{name}: {e}"))?;
    let differ = || Err(format!("{name}: found {found}, expected {expected}"));
    if found.dtype() != expected.dtype() || found.shape() != expected.shape() {
        return differ();
    }
    if !found.dtype().is_float() {
        return if *found == expected { Ok(()) } else { differ() };
    }
    let wide = |t: &DenseTensor| {
        let t = t.cast(DType::F64).map_err(|e| e.to_string())?;
        Ok::<_, String>(t.as_slice::<f64>().map_err(|e| e.to_string())?.to_vec())
    };
    let (a, b) = (wide(found)?, wide(&expected)?);
    let same = a.iter().zip(&b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
    if same { Ok(()) } else { differ() }
}

/// The index of a case.
#[derive(Debug)]
pub(crate) enum Asked {
    Index(Vec<Index>),
    /// An object that is not an index in Python either, such as a string. The type [`Index`] cannot
    /// represent it.
    Nonsense,
}

/// Reads an index object of the cases of `nrt`.
pub(crate) fn parse_index(json: &Json) -> Result<Asked, String> {
    let [(kind, value)] = json.members()? else {
        return Err("an index object has one member".into());
    };
    if kind != "tuple" {
        return Ok(parse_item(kind, value)?.map_or(Asked::Nonsense, |i| Asked::Index(vec![i])));
    }
    let mut items = Vec::new();
    for part in value.list()? {
        let [(kind, value)] = part.members()? else {
            return Err("an index object has one member".into());
        };
        match parse_item(kind, value)? {
            Some(i) => items.push(i),
            None => return Ok(Asked::Nonsense),
        }
    }
    Ok(Asked::Index(items))
}

pub(crate) fn parse_slice(value: &Json) -> Result<Index, String> {
    let part = |v: &Json| match v {
        Json::Null => Ok(None),
        v => v.int::<i64>().map(Some),
    };
    let [start, stop, step] = value.list()? else {
        return Err("a slice has three parts".into());
    };
    Ok(Index::Slice { start: part(start)?, stop: part(stop)?, step: part(step)? })
}

/// Reads one item of an index. Returns `None` for an object that is not an index.
fn parse_item(kind: &str, value: &Json) -> Result<Option<Index>, String> {
    Ok(Some(match kind {
        // In Python, a boolean is an integer.
        "int" | "np_int64" => match value {
            Json::Bool(b) => Index::At(i64::from(*b)),
            value => Index::At(value.int()?),
        },
        "none" => Index::NewAxis,
        "ellipsis" => Index::Rest,
        "slice" => parse_slice(value)?,
        "list" => {
            let list = value.list()?;
            if !list.is_empty() && list.iter().all(|v| matches!(v, Json::Bool(_))) {
                list.iter().map(Json::bool).collect::<Result<Vec<_>, _>>()?.into()
            } else {
                match parse_ints::<i64>(value) {
                    Ok(positions) => positions.into(),
                    Err(_) => return Ok(None),
                }
            }
        }
        "array" => {
            let array = parse_tensor(value)?;
            let shape = array.shape().to_vec();
            if array.dtype() == DType::Bool {
                let values = array.as_bytes().iter().map(|b| *b == 1).collect();
                Index::Mask(IndexArray::try_new(shape, values).map_err(|e| e.to_string())?)
            } else if array.dtype().is_integer() {
                let Ok(array) = array.cast(DType::I64) else { return Ok(None) };
                let values = array.as_slice::<i64>().map_err(|e| e.to_string())?.to_vec();
                Index::Array(IndexArray::try_new(shape, values).map_err(|e| e.to_string())?)
            } else {
                return Ok(None);
            }
        }
        "str" | "float" => return Ok(None),
        other => return Err(format!("the index object {other:?} is unknown")),
    }))
}

/// Returns whether an error of this crate is of the kind that the Python exception `kind` stands
/// for.
pub(crate) fn matches_kind(op: &str, error: &Error, kind: &str) -> Result<bool, String> {
    Ok(match kind {
        "IndexError" => match error {
            Error::OutOfRange { .. }
            | Error::OutOfRangeIn { .. }
            | Error::OutOfRangeAt { .. }
            | Error::NoSuchEntry { .. } => true,
            Error::Invalid(message) => ["indices", "mask", "index array", "such an index"]
                .iter()
                .any(|what| message.contains(what)),
            _ => false,
        },
        // The Python library looks up a tensor of an axis that the table does not have.
        "KeyError" if matches!(op, "flatten" | "squeeze" | "unsqueeze") => {
            matches!(error, Error::Invalid(_) | Error::NoSuchAxis { .. })
        }
        "KeyError" => matches!(error, Error::NoSuchColumn { .. }),
        "FileNotFoundError" => matches!(error, Error::Io { .. }),
        // Python has several exceptions for invalid arguments, for which this crate has an enum or
        // refuses the program at compile time.
        "ValueError"
        | "TypeError"
        | "AssertionError"
        | "RuntimeError"
        | "OverflowError"
        | "NotImplementedError" => !matches!(error, Error::Io { .. }),
        other => return Err(format!("errors of kind {other:?} are unknown")),
    })
}
