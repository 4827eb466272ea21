//! Reinterpretation of values as another type of the same width.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, PrimitiveArray, downcast_primitive, make_array};
use arrow::buffer::ScalarBuffer;
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
    let data = values.to_data();
    let width = values.data_type().primitive_width();
    // A build from parts counts the nulls again, which takes as long as a sum.
    macro_rules! view {
        ($t:ty) => {{
            let numbers = ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len());
            let array = PrimitiveArray::<$t>::new(numbers, data.nulls().cloned());
            return Ok(Arc::new(array.with_data_type(to.clone())));
        }};
    }
    if width.is_some() && width == to.primitive_width() {
        downcast_primitive! {
            to => (view),
            _ => {}
        }
    }
    Ok(make_array(data.into_builder().data_type(to.clone()).build()?))
}
