use arrow::array::{Array, ArrayRef, Datum, Scalar, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::cmp;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};

use super::SideValues;
use super::power::apply_to_floats;
use crate::array::nulls::replace_validity;
use crate::error::Result;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ExtremeChoice {
    Smaller,
    Larger,
}

/// Returns the smaller or the larger value of each pair: null if either value is null, otherwise
/// NaN if either is NaN.
pub(super) fn choose_values(
    choice: ExtremeChoice,
    left: &SideValues,
    right: &SideValues,
    len: usize,
) -> Result<ArrayRef> {
    let smaller = choice == ExtremeChoice::Smaller;
    macro_rules! of {
        ($t:ty) => {
            apply_to_floats::<$t>(left, right, len, |a, b| {
                let keep = if smaller { a <= b } else { a >= b };
                if keep || a.is_nan() { a } else { b }
            })
        };
    }
    match left.values().data_type() {
        DataType::Float16 => return of!(Float16Type),
        DataType::Float32 => return of!(Float32Type),
        DataType::Float64 => return of!(Float64Type),
        _ => {}
    }
    let null = |side: &SideValues| matches!(side, SideValues::One(v) if v.is_null(0));
    if null(left) || null(right) {
        return Ok(new_null_array(left.values().data_type(), len));
    }
    let (one_left, one_right);
    let a: &dyn Datum = match left {
        SideValues::Each(v) => v,
        SideValues::One(v) => {
            one_left = Scalar::new(v.clone());
            &one_left
        }
    };
    let b: &dyn Datum = match right {
        SideValues::Each(v) => v,
        SideValues::One(v) => {
            one_right = Scalar::new(v.clone());
            &one_right
        }
    };
    let first = if smaller { cmp::lt_eq(a, b)? } else { cmp::gt_eq(a, b)? };
    let chosen = zip(&first, a, b)?;
    let nulls = |side: &SideValues| match side {
        SideValues::Each(v) => v.nulls().cloned(),
        SideValues::One(_) => None,
    };
    let nulls = NullBuffer::union(nulls(left).as_ref(), nulls(right).as_ref());
    replace_validity(&chosen, nulls)
}
