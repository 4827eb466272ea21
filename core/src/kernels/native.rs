//! Dispatches on the leaf type. Timestamps and the like share the code of their integers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, PrimitiveArray, downcast_primitive, make_array};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::DataType;

use crate::error::Result;

/// Returns `Int32` or `Int64` if Arrow stores values of type `t` as such integers, in the same
/// order.
pub(super) fn find_native_int(t: &DataType) -> Option<DataType> {
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
    // Build primitive arrays from the buffers: `ArrayDataBuilder::build`, which is used below for
    // other types, counts the nulls, which takes as long as adding up the values.
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

/// Evaluates `$typed`, in which `$values` is a primitive array of type `$t`, or `$other` for other
/// leaves. Times and decimals become integers, booleans `UInt8`, and `Float16` becomes `Float32`.
macro_rules! dispatch_native {
    ($leaves:expr, $values:ident, $t:ident => $typed:expr, $other:expr) => {{
        macro_rules! run {
            ($arrow:ty, $as:expr) => {{
                type $t = $arrow;
                let $values: &arrow::array::ArrayRef = $as;
                $typed
            }};
        }
        let given = $leaves;
        match given.data_type() {
            arrow::datatypes::DataType::Int8 => run!(arrow::datatypes::Int8Type, given),
            arrow::datatypes::DataType::Int16 => run!(arrow::datatypes::Int16Type, given),
            arrow::datatypes::DataType::UInt8 => run!(arrow::datatypes::UInt8Type, given),
            arrow::datatypes::DataType::UInt16 => run!(arrow::datatypes::UInt16Type, given),
            arrow::datatypes::DataType::UInt32 => run!(arrow::datatypes::UInt32Type, given),
            arrow::datatypes::DataType::UInt64 => run!(arrow::datatypes::UInt64Type, given),
            arrow::datatypes::DataType::Float32 => run!(arrow::datatypes::Float32Type, given),
            arrow::datatypes::DataType::Float64 => run!(arrow::datatypes::Float64Type, given),
            arrow::datatypes::DataType::Float16 => run!(
                arrow::datatypes::Float32Type,
                &arrow::compute::cast(given, &arrow::datatypes::DataType::Float32)?
            ),
            arrow::datatypes::DataType::Boolean => run!(
                arrow::datatypes::UInt8Type,
                &arrow::compute::cast(given, &arrow::datatypes::DataType::UInt8)?
            ),
            t => match $crate::kernels::native::find_native_int(t) {
                Some(arrow::datatypes::DataType::Int32) => {
                    run!(
                        arrow::datatypes::Int32Type,
                        &$crate::kernels::native::reinterpret_values(
                            given,
                            &arrow::datatypes::DataType::Int32
                        )?
                    )
                }
                Some(_) => run!(
                    arrow::datatypes::Int64Type,
                    &$crate::kernels::native::reinterpret_values(
                        given,
                        &arrow::datatypes::DataType::Int64
                    )?
                ),
                None => $other,
            },
        }
    }};
}

pub(crate) use dispatch_native;
