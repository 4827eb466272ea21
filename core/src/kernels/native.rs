//! Reinterpretation of values as another type of the same width.

use arrow::array::{Array, ArrayRef, make_array};
use arrow::datatypes::DataType;

use crate::error::Result;

/// Returns the integer type with the same width and order as `t`, if there is one.
pub(super) fn native_int(t: &DataType) -> Option<DataType> {
    use DataType::{
        Date32, Date64, Decimal32, Decimal64, Duration, Int32, Int64, Time32, Time64, Timestamp,
    };
    match t {
        Int32 | Date32 | Time32(_) | Decimal32(..) => Some(Int32),
        Int64 | Date64 | Time64(_) | Timestamp(..) | Duration(_) | Decimal64(..) => Some(Int64),
        _ => None,
    }
}

pub(super) fn reinterpret_values(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if values.data_type() == to {
        return Ok(values.clone());
    }
    let data = values.to_data().into_builder().data_type(to.clone());
    let width = values.data_type().primitive_width();
    if width.is_none() || width != to.primitive_width() {
        return Ok(make_array(data.build()?));
    }
    // SAFETY: the bytes of valid numbers are valid numbers of any type of the same width. The
    // checked constructor would recount the nulls, which takes as long as a sum.
    Ok(make_array(unsafe { data.build_unchecked() }))
}
