//! Functions of one value, applied to every leaf. Results share the lists of the array. A null leaf
//! stays null, except in [`UnaryOp::IsNull`].

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::arity::try_unary;
use arrow::compute::{cast, is_null as find_null};
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use half::f16;

use super::allocate::map_values;
use super::elementwise;
use crate::array::RaggedArray;
use crate::error::{Error, Result};

/// A function of one value.
///
/// | function | integers | floats | other |
/// |---|---|---|---|
/// | `Neg` | same type, not unsigned | same type | durations, decimals |
/// | `Abs`, `Sign`, `Ceil`, `Floor`, `Round` | same type | same type | - |
/// | `Sqrt`, `Exp`, `Ln`, `Log2`, `Log10` | Float64 | same type | - |
/// | `Not` | - | - | Boolean |
/// | `IsNan` | Boolean | Boolean | - |
/// | `IsNull` | Boolean | Boolean | Boolean |
///
/// The definitions are NumPy's: NaN stays NaN, the square root of a negative number is NaN, and the
/// logarithm of 0 is negative infinity. Half precision is computed in 32 bits, all other types in
/// their own width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Negation. An error for the smallest integer of its type, whose negative does not fit.
    Neg,
    /// Absolute value. An error for the smallest integer of its type, whose absolute value does not
    /// fit.
    Abs,
    /// Sign: -1, 0 or 1.
    Sign,
    /// Smallest integer that is not less than the value.
    Ceil,
    /// Largest integer that is not greater than the value.
    Floor,
    /// Rounds to a number of decimals (negative: to tens, hundreds, ...), halves to even.
    Round(i32),
    /// Square root.
    Sqrt,
    /// e to the power of the value.
    Exp,
    /// Natural logarithm.
    Ln,
    /// Logarithm to base 2.
    Log2,
    /// Logarithm to base 10.
    Log10,
    /// Logical negation of a boolean.
    Not,
    /// Whether a leaf is null; the result is never null.
    IsNull,
    /// Whether a number is NaN; false for integers.
    IsNan,
}

impl UnaryOp {
    /// Returns the name used in error messages: `abs`, `round`, ...
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::kernels::unary::UnaryOp;
    /// assert_eq!((UnaryOp::IsNull.name(), UnaryOp::Round(2).name()), ("is_null", "round"));
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Neg => "neg",
            Self::Abs => "abs",
            Self::Sign => "sign",
            Self::Ceil => "ceil",
            Self::Floor => "floor",
            Self::Round(_) => "round",
            Self::Sqrt => "sqrt",
            Self::Exp => "exp",
            Self::Ln => "ln",
            Self::Log2 => "log2",
            Self::Log10 => "log10",
            Self::Not => "not",
            Self::IsNull => "is_null",
            Self::IsNan => "is_nan",
        }
    }

    /// Returns the type of the result.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::unary::UnaryOp;
    /// assert_eq!(UnaryOp::Sqrt.output_type(&DataType::Int32)?, DataType::Float64);
    /// assert_eq!(UnaryOp::Sqrt.name(), "sqrt");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If leaves of this type do not support the function.
    pub fn output_type(self, leaf: &DataType) -> Result<DataType> {
        let unsupported = |expected: &str| Err(Error::type_of(self.name(), expected, leaf));
        match self {
            Self::IsNull => Ok(DataType::Boolean),
            Self::Not if matches!(leaf, DataType::Boolean) => Ok(DataType::Boolean),
            Self::Not => unsupported("booleans (compare or cast the values first)"),
            Self::Neg if leaf.is_unsigned_integer() => {
                unsupported("signed numbers (cast unsigned integers to int64 first)")
            }
            Self::Neg if matches!(leaf, DataType::Duration(_)) || leaf.is_decimal() => {
                Ok(leaf.clone())
            }
            _ if !leaf.is_integer() && !leaf.is_floating() => {
                unsupported("numbers (cast others to float64 or int64)")
            }
            Self::IsNan => Ok(DataType::Boolean),
            Self::Sqrt | Self::Exp | Self::Ln | Self::Log2 | Self::Log10 if leaf.is_integer() => {
                Ok(DataType::Float64)
            }
            _ => Ok(leaf.clone()),
        }
    }
}

/// Applies a function to every leaf.
///
/// A null leaf stays null, except in [`UnaryOp::IsNull`]; the lists stay as they are, null lists as
/// well.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Float32Array, types::Float32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::unary::{UnaryOp, unary};
/// let leaves = Arc::new(Float32Array::from(vec![2.25, -0.5, 3.5]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let b = unary(UnaryOp::Round(0), &a)?;
/// assert_eq!(b.leaves().as_primitive::<Float32Type>().values(), &[2.0, -0.0, 4.0]);
/// assert_eq!(b.lengths(1)?, a.lengths(1)?);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the leaves do not support the function, or the result of an integer overflows.
pub fn unary(function: UnaryOp, array: &RaggedArray) -> Result<RaggedArray> {
    function.output_type(array.leaf_type())?;
    let leaves = array.leaves();
    let out: ArrayRef = match function {
        UnaryOp::Neg => return elementwise::neg(array),
        UnaryOp::Not => return elementwise::not(array),
        UnaryOp::IsNull => match leaves.logical_nulls() {
            Some(nulls) => Arc::new(BooleanArray::new(!nulls.inner(), None)),
            None => Arc::new(find_null(leaves)?),
        },
        UnaryOp::IsNan => Arc::new(find_nan(leaves)),
        _ if leaves.data_type().is_integer() => apply_to_integers(function, leaves)?,
        _ => apply_to_floats(function, leaves)?,
    };
    array.with_leaves(out)
}

macro_rules! shorthand {
    ($($(#[$doc:meta])* $name:ident => $function:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// Same as [`unary`] with this function.
        pub fn $name(array: &RaggedArray) -> Result<RaggedArray> {
            unary(UnaryOp::$function, array)
        }
    )*};
}

shorthand! {
    /// Returns the absolute value of every leaf; null for a null leaf.
    abs => Abs;
    /// Returns -1, 0 or 1 for every leaf; null for a null leaf.
    sign => Sign;
    /// Rounds every leaf up to an integer; null for a null leaf.
    ceil => Ceil;
    /// Rounds every leaf down to an integer; null for a null leaf.
    floor => Floor;
    /// Returns the square root of every leaf; null for a null leaf.
    sqrt => Sqrt;
    /// Returns e to the power of every leaf; null for a null leaf.
    exp => Exp;
    /// Returns the natural logarithm of every leaf; null for a null leaf.
    ln => Ln;
    /// Returns whether each leaf is null; no result is null.
    is_null => IsNull;
    /// Returns whether each leaf is NaN; null for a null leaf.
    is_nan => IsNan;
}

/// Rounds every leaf to a number of decimals, halves to even; null for a null leaf.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Float64Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::unary::round;
/// let leaves = Arc::new(Float64Array::from(vec![1.25, 2.5, 17.0]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// assert_eq!(round(&a, 1)?.leaves().as_ref(), &Float64Array::from(vec![1.2, 2.5, 17.]));
/// assert_eq!(round(&a, -1)?.leaves().as_ref(), &Float64Array::from(vec![0., 0., 20.]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`unary`] with [`UnaryOp::Round`].
pub fn round(array: &RaggedArray, decimals: i32) -> Result<RaggedArray> {
    unary(UnaryOp::Round(decimals), array)
}

fn find_nan(leaves: &ArrayRef) -> BooleanArray {
    fn collect_nan<T: ArrowPrimitiveType>(
        leaves: &ArrayRef,
        is: impl Fn(T::Native) -> bool,
    ) -> BooleanBuffer {
        let values = leaves.as_primitive::<T>().values();
        BooleanBuffer::collect_bool(values.len(), |i| is(values[i]))
    }
    let bits = match leaves.data_type() {
        DataType::Float16 => collect_nan::<Float16Type>(leaves, f16::is_nan),
        DataType::Float32 => collect_nan::<Float32Type>(leaves, f32::is_nan),
        DataType::Float64 => collect_nan::<Float64Type>(leaves, f64::is_nan),
        _ => BooleanBuffer::new_unset(leaves.len()),
    };
    BooleanArray::new(bits, leaves.nulls().cloned())
}

fn apply_to_integers(function: UnaryOp, leaves: &ArrayRef) -> Result<ArrayRef> {
    fn apply_typed<T: ArrowPrimitiveType>(
        function: UnaryOp,
        values: &PrimitiveArray<T>,
    ) -> Result<ArrayRef>
    where
        T::Native: Into<i128> + TryFrom<i128>,
    {
        let zero = T::Native::ZERO;
        let out: PrimitiveArray<T> = match function {
            UnaryOp::Abs => {
                let made =
                    try_unary(values, |v| if v.is_lt(zero) { v.neg_checked() } else { Ok(v) });
                made.map_err(|e| {
                    Error::invalid(format!(
                        "abs: a result does not fit the type {} ({e}); cast the values to a wider type first",
                        T::DATA_TYPE
                    ))
                })?
            }
            UnaryOp::Sign => map_values(values, |v| {
                if v.is_gt(zero) {
                    T::Native::ONE
                } else if v.is_lt(zero) {
                    zero.sub_wrapping(T::Native::ONE)
                } else {
                    zero
                }
            }),
            UnaryOp::Round(decimals) if decimals < 0 => {
                let made = try_unary::<_, _, T>(values, |v| {
                    let rounded = round_tens(v.into(), decimals.unsigned_abs());
                    T::Native::try_from(rounded).map_err(|_| {
                        ArrowError::ArithmeticOverflow(format!(
                            "{v:?} rounds to {rounded}, which does not fit the type {}; cast the values to a wider type first",
                            T::DATA_TYPE
                        ))
                    })
                });
                made.map_err(|e| Error::invalid(format!("round: {e}")))?
            }
            _ => return Ok(Arc::new(values.clone())),
        };
        Ok(Arc::new(out))
    }
    if matches!(
        function,
        UnaryOp::Sqrt | UnaryOp::Exp | UnaryOp::Ln | UnaryOp::Log2 | UnaryOp::Log10
    ) {
        return apply_to_floats(function, &cast(leaves, &DataType::Float64)?);
    }
    macro_rules! of {
        ($($name:ident => $t:ty),*) => {
            match leaves.data_type() {
                $(DataType::$name => apply_typed::<$t>(function, leaves.as_primitive()),)*
                other => Err(Error::type_of(function.name(), "numbers (cast the values first)", other)),
            }
        };
    }
    of!(
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type
    )
}

/// Rounds to a multiple of `10^digits`, halves to even.
fn round_tens(value: i128, digits: u32) -> i128 {
    // If `10^digits` overflows an `i128`, half of it exceeds every 64-bit value, so the result
    // is 0.
    let Some(unit) = 10i128.checked_pow(digits) else { return 0 };
    let (whole, rest) = (value.div_euclid(unit), value.rem_euclid(unit));
    let up = match (rest * 2).cmp(&unit) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => whole.rem_euclid(2),
        std::cmp::Ordering::Greater => 1,
    };
    (whole + up) * unit
}

fn apply_to_floats(function: UnaryOp, leaves: &ArrayRef) -> Result<ArrayRef> {
    macro_rules! of {
        ($t:ty, $native:ident) => {{
            let values = leaves.as_primitive::<$t>();
            let out: PrimitiveArray<$t> = match function {
                UnaryOp::Abs => map_values(values, $native::abs),
                UnaryOp::Sign => {
                    map_values(values, |v| if v == 0.0 || v.is_nan() { v } else { v.signum() })
                }
                UnaryOp::Ceil => map_values(values, $native::ceil),
                UnaryOp::Floor => map_values(values, $native::floor),
                UnaryOp::Round(0) => map_values(values, $native::round_ties_even),
                UnaryOp::Round(decimals) => {
                    map_values(values, |v| $native::from_double(round_to(v.into(), decimals)))
                }
                UnaryOp::Sqrt => map_values(values, $native::sqrt),
                UnaryOp::Exp => map_values(values, $native::exp),
                UnaryOp::Ln => map_values(values, $native::ln),
                UnaryOp::Log2 => map_values(values, $native::log2),
                UnaryOp::Log10 => map_values(values, $native::log10),
                _ => {
                    return Err(Error::type_of(
                        function.name(),
                        "integers (cast the values first)",
                        leaves.data_type(),
                    ));
                }
            };
            Ok(Arc::new(out))
        }};
    }
    match leaves.data_type() {
        DataType::Float16 => {
            let wide = apply_to_floats(function, &cast(leaves, &DataType::Float32)?)?;
            Ok(cast(&wide, &DataType::Float16)?)
        }
        DataType::Float32 => of!(Float32Type, f32),
        DataType::Float64 => of!(Float64Type, f64),
        other => Err(Error::type_of(function.name(), "numbers (cast the values first)", other)),
    }
}

trait FromDouble {
    fn from_double(value: f64) -> Self;
}

impl FromDouble for f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounding to the leaves' width is wanted")]
    fn from_double(value: f64) -> Self {
        value as Self
    }
}

impl FromDouble for f64 {
    fn from_double(value: f64) -> Self {
        value
    }
}

/// Rounds like `numpy.round`: scales by a power of 10, rounds, and scales back.
fn round_to(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals.saturating_abs());
    if scale.is_infinite() {
        // `decimals` is at least 309, or at most -309. With 309 or more decimals, the value stays
        // the same: rounding could change only floats below about 1e-293. With -309 or fewer, a
        // finite value rounds to 0, because no finite float reaches half of 10^309.
        let none = decimals < 0 && value.is_finite();
        return if none { 0f64.copysign(value) } else { value };
    }
    let out = if decimals >= 0 {
        (value * scale).round_ties_even() / scale
    } else {
        (value / scale).round_ties_even() * scale
    };
    // Scaling a finite value may overflow. For 0 or more decimals, the value is then too large to
    // have digits at that decimal; for negative decimals, the rounded value would be too large for
    // a float. Keep the value in both cases.
    if out.is_finite() || !value.is_finite() { out } else { value }
}
