//! `dim{axis}/{key}` and what may stand there.

use std::path::Path;

use arrow::datatypes::DataType;
use safetensors::Dtype;

use crate::error::{Error, Result};

/// Deepest axis of a file.
pub(super) const MAX_AXIS: usize = 64;

/// Key of the bounds of an axis.
pub(super) const BOUNDS: &str = "bounds";

/// Keys that are no columns: `mask` is what dense results call theirs.
pub(super) const RESERVED: [&str; 2] = [BOUNDS, "mask"];

/// Key of the lengths that versions before 0.0.7 of the Python library stored beside the bounds.
pub(super) const LENGTHS: &str = "lengths";

/// Column with the ids of the rows.
pub(super) const SUBJECT_ID: &str = "subject_id";

/// Axis and key of a tensor's name; the key is all after the first `/`.
pub(super) fn split(path: &Path, name: &str) -> Result<(usize, String)> {
    let parts = || {
        let (dim, key) = name.strip_prefix("dim")?.split_once('/')?;
        let plain =
            dim == "0" || (!dim.starts_with('0') && dim.bytes().all(|b| b.is_ascii_digit()));
        let axis = dim.parse::<usize>().ok().filter(|_| plain)?;
        (!key.is_empty()).then(|| (axis, key.to_owned()))
    };
    let (axis, key) = parts().ok_or_else(|| {
        Error::file(
            path,
            format!(
                "tensor {name:?} is not named dim{{axis}}/{{key}}; this is a safetensors file but not an .nrt file"
            ),
        )
    })?;
    if axis > MAX_AXIS {
        return Err(Error::file(
            path,
            format!("tensor {name:?} is on axis {axis}; at most {MAX_AXIS} are accepted"),
        ));
    }
    Ok((axis, key))
}

/// Name of the tensor of a column: a name that says its own axis (`dim1/lengths` on axis 1) is one
/// already.
pub(super) fn tensor(axis: usize, column: &str) -> String {
    let own = format!("dim{axis}/");
    if column.starts_with(&own) { column.to_owned() } else { own + column }
}

/// Arrow type that a tensor's values are read as.
pub(super) fn data_type(dtype: Dtype) -> Option<DataType> {
    Some(match dtype {
        Dtype::BOOL => DataType::Boolean,
        Dtype::U8 => DataType::UInt8,
        Dtype::U16 => DataType::UInt16,
        Dtype::U32 => DataType::UInt32,
        Dtype::U64 => DataType::UInt64,
        Dtype::I8 => DataType::Int8,
        Dtype::I16 => DataType::Int16,
        Dtype::I32 => DataType::Int32,
        Dtype::I64 => DataType::Int64,
        Dtype::F16 => DataType::Float16,
        Dtype::BF16 | Dtype::F32 => DataType::Float32,
        Dtype::F64 => DataType::Float64,
        _ => return None,
    })
}

/// Type of the tensor that an Arrow type is written as.
pub(super) fn dtype(data_type: &DataType) -> Option<Dtype> {
    Some(match data_type {
        DataType::Boolean => Dtype::BOOL,
        DataType::UInt8 => Dtype::U8,
        DataType::UInt16 => Dtype::U16,
        DataType::UInt32 => Dtype::U32,
        DataType::UInt64 => Dtype::U64,
        DataType::Int8 => Dtype::I8,
        DataType::Int16 => Dtype::I16,
        DataType::Int32 => Dtype::I32,
        DataType::Int64 => Dtype::I64,
        DataType::Float16 => Dtype::F16,
        DataType::Float32 => Dtype::F32,
        DataType::Float64 => Dtype::F64,
        _ => return None,
    })
}
