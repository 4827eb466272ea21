use std::sync::Arc;

use arrow::array::ArrowNativeTypeOp;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, new_null_array};
use arrow::compute::kernels::arity::{binary, try_binary, try_unary, unary};
use arrow::datatypes::{
    ArrowNativeType, DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use half::f16;

use super::{SideValues, add_hint};
use crate::error::{Error, Result};

pub(super) fn raise_to_power(
    left: &SideValues,
    right: &SideValues,
    len: usize,
) -> Result<ArrayRef> {
    macro_rules! integers {
        ($($name:ident => $t:ty),*) => {
            match left.values().data_type() {
                $(DataType::$name => raise_integers::<$t>(left, right, len, |a, b| {
                    match b.to_usize().and_then(|b| u32::try_from(b).ok()) {
                        Some(b) => a.pow_checked(b),
                        None => raise_to_huge(a, b),
                    }
                }).map_err(|e| add_hint("**", e)),)*
                DataType::Float16 => {
                    apply_to_floats::<Float16Type>(left, right, len, |a, b| {
                        f16::from_f64(a.to_f64().powf(b.to_f64()))
                    })
                }
                DataType::Float32 => apply_to_floats::<Float32Type>(left, right, len, f32::powf),
                DataType::Float64 => apply_to_floats::<Float64Type>(left, right, len, f64::powf),
                other => Err(Error::type_of("**", "numbers (cast the operands first)", other)),
            }
        };
    }
    integers!(
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type
    )
}

/// Computes `base ** power` for a power that is negative or exceeds `u32`. A negative power is an
/// error. If the power is not negative, only the bases 0, 1 and -1 have a result; any other base is
/// an error, because the result overflows.
fn raise_to_huge<T: ArrowNativeTypeOp>(base: T, power: T) -> std::result::Result<T, ArrowError> {
    if power.is_lt(T::ZERO) {
        return Err(ArrowError::InvalidArgumentError(format!(
            "{base:?} ** {power:?} has a negative power, so the result may not be an integer; cast the base or the power to float64"
        )));
    }
    if base.is_zero() || base.is_eq(T::ONE) {
        return Ok(base);
    }
    if base.is_lt(T::ZERO) && base.add_wrapping(T::ONE).is_zero() {
        let odd = !power.mod_checked(T::ONE.add_wrapping(T::ONE))?.is_zero();
        return Ok(if odd { base } else { T::ONE });
    }
    // Not an `ArithmeticOverflow`, because `add_hint` would add a second remedy to its message.
    Err(ArrowError::InvalidArgumentError(format!(
        "{base:?} ** {power:?} does not fit the integer type of the operands; cast the base or the power to float64"
    )))
}

fn raise_integers<T: ArrowPrimitiveType>(
    left: &SideValues,
    right: &SideValues,
    len: usize,
    f: impl Fn(T::Native, T::Native) -> std::result::Result<T::Native, ArrowError>,
) -> std::result::Result<ArrayRef, ArrowError> {
    let (a, b) = (left.values().as_primitive::<T>(), right.values().as_primitive::<T>());
    let out: PrimitiveArray<T> = match (left, right) {
        (SideValues::Each(_), SideValues::Each(_)) => try_binary(a, b, f)?,
        (_, SideValues::One(_)) if b.is_null(0) => return Ok(new_null_array(&T::DATA_TYPE, len)),
        (SideValues::One(_), _) if a.is_null(0) => return Ok(new_null_array(&T::DATA_TYPE, len)),
        (_, SideValues::One(_)) => {
            let b = b.value(0);
            try_unary(a, |a| f(a, b))?
        }
        (SideValues::One(_), _) => {
            let a = a.value(0);
            try_unary(b, |b| f(a, b))?
        }
    };
    Ok(Arc::new(out))
}

pub(super) fn apply_to_floats<T: ArrowPrimitiveType>(
    left: &SideValues,
    right: &SideValues,
    len: usize,
    f: impl Fn(T::Native, T::Native) -> T::Native,
) -> Result<ArrayRef> {
    let (a, b) = (left.values().as_primitive::<T>(), right.values().as_primitive::<T>());
    let out: PrimitiveArray<T> = match (left, right) {
        (SideValues::Each(_), SideValues::Each(_)) => binary(a, b, f)?,
        (_, SideValues::One(_)) if b.is_null(0) => return Ok(new_null_array(&T::DATA_TYPE, len)),
        (SideValues::One(_), _) if a.is_null(0) => return Ok(new_null_array(&T::DATA_TYPE, len)),
        (_, SideValues::One(_)) => {
            let b = b.value(0);
            unary(a, |a| f(a, b))
        }
        (SideValues::One(_), _) => {
            let a = a.value(0);
            unary(b, |b| f(a, b))
        }
    };
    Ok(Arc::new(out))
}
