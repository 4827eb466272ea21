//! Tensor names `dim{axis}/{key}` and the types of their values.

use std::path::Path;

use arrow::datatypes::DataType;
use safetensors::Dtype;

use crate::error::{Error, Result};

pub(super) const MAX_AXIS: usize = 64;

pub(super) const BOUNDS: &str = "bounds";

/// Keys (last parts of tensor names) that a column cannot have; `mask` is for the masks of padded
/// tensors.
pub(super) const RESERVED: [&str; 2] = [BOUNDS, "mask"];

/// Key of the list lengths that the Python library before version 0.0.7 stored next to the bounds.
pub(super) const LENGTHS: &str = "lengths";

pub(super) const SUBJECT_ID: &str = "subject_id";

/// Splits `dim1/a/b` into 1 and `a/b`; an error for other forms and axes above `MAX_AXIS`.
pub(super) fn split_name(path: &Path, name: &str) -> Result<(usize, String)> {
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
                "the name of tensor {name:?} is not of the form dim{{axis}}/{{key}}, so the file is a safetensors file but not an .nrt file; give an .nrt file"
            ),
        )
    })?;
    if axis > MAX_AXIS {
        return Err(Error::file(
            path,
            format!(
                "tensor {name:?} has {axis} levels of lists, but at most {MAX_AXIS} are accepted; write the file with fewer levels"
            ),
        ));
    }
    Ok((axis, key))
}

/// Returns the tensor name of a column, such as `dim1/code`. A column whose name already begins
/// with its axis (`dim1/lengths` on axis 1) keeps its name.
pub(super) fn format_tensor_name(axis: usize, column: &str) -> String {
    let own = format!("dim{axis}/");
    if column.starts_with(&own) { column.to_owned() } else { own + column }
}

/// Returns the Arrow type for reading a tensor's values; `None` if Arrow has no such type.
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

/// Returns the tensor type for writing an Arrow type; `None` if the format does not support the
/// Arrow type.
pub(super) fn find_tensor_dtype(data_type: &DataType) -> Option<Dtype> {
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
