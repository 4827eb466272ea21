//! Conversion of values to i128 or f64 for computation, and back.

use half::{bf16, f16};

use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// Values for computation: integers as i128, floats as f64.
#[derive(Clone, Debug)]
pub(super) enum WideNumbers {
    Int(Vec<i128>),
    Float(Vec<f64>),
}

impl WideNumbers {
    pub(super) fn from_dense(values: &DenseTensor) -> Result<Self> {
        macro_rules! ints {
            ($t:ty) => {
                Self::Int(values.as_slice::<$t>()?.iter().map(|v| i128::from(*v)).collect())
            };
        }
        macro_rules! floats {
            ($t:ty) => {
                Self::Float(values.as_slice::<$t>()?.iter().map(|v| f64::from(*v)).collect())
            };
        }
        Ok(match values.dtype() {
            DType::Bool | DType::U8 => ints!(u8),
            DType::U16 => ints!(u16),
            DType::U32 => ints!(u32),
            DType::U64 => ints!(u64),
            DType::I8 => ints!(i8),
            DType::I16 => ints!(i16),
            DType::I32 => ints!(i32),
            DType::I64 => ints!(i64),
            DType::F16 => floats!(f16),
            DType::BF16 => floats!(bf16),
            DType::F32 => floats!(f32),
            DType::F64 => floats!(f64),
        })
    }

    pub(super) fn into_floats(self) -> Vec<f64> {
        match self {
            Self::Int(v) => v.into_iter().map(|v| v as f64).collect(),
            Self::Float(v) => v,
        }
    }

    /// Converts to a tensor of one axis and type `dtype`. Returns an error if a value does not fit
    /// an integer type. `what` names the operation in the error message, as in `a sum`.
    pub(super) fn into_dense(self, dtype: DType, what: &str) -> Result<DenseTensor> {
        let shape = [self.len()];
        macro_rules! ints {
            ($t:ty, $v:expr) => {{
                let out: Option<Vec<$t>> = $v.into_iter().map(|v| <$t>::try_from(v).ok()).collect();
                let out = out.ok_or_else(|| match dtype.size() {
                    8 => Error::Overflow(what.into()),
                    _ => Error::invalid(format!(
                        "{what}: the result does not fit {dtype}; cast the values to a wider type first"
                    )),
                })?;
                DenseTensor::from_vec(shape, out)
            }};
        }
        match (self, dtype) {
            (Self::Int(v), DType::Bool) => {
                DenseTensor::from_bools(shape, v.into_iter().map(|v| v != 0))
            }
            (Self::Int(v), DType::U8) => ints!(u8, v),
            (Self::Int(v), DType::U16) => ints!(u16, v),
            (Self::Int(v), DType::U32) => ints!(u32, v),
            (Self::Int(v), DType::U64) => ints!(u64, v),
            (Self::Int(v), DType::I8) => ints!(i8, v),
            (Self::Int(v), DType::I16) => ints!(i16, v),
            (Self::Int(v), DType::I32) => ints!(i32, v),
            (Self::Int(v), DType::I64) => ints!(i64, v),
            (numbers, DType::F16) => DenseTensor::from_vec(
                shape,
                numbers.into_floats().into_iter().map(f16::from_f64).collect(),
            ),
            (numbers, DType::BF16) => DenseTensor::from_vec(
                shape,
                numbers.into_floats().into_iter().map(bf16::from_f64).collect(),
            ),
            (numbers, DType::F32) => {
                #[expect(clippy::cast_possible_truncation, reason = "rounding is intended")]
                let out = numbers.into_floats().into_iter().map(|v| v as f32).collect();
                DenseTensor::from_vec(shape, out)
            }
            (numbers, DType::F64) => DenseTensor::from_vec(shape, numbers.into_floats()),
            (Self::Float(v), dtype) => DenseTensor::from_vec(shape, v)?.cast(dtype),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Int(v) => v.len(),
            Self::Float(v) => v.len(),
        }
    }
}

/// Returns NumPy's common type of two types: the smallest type that holds the values of both, or
/// float64 if no type does, as for uint64 and int8.
pub(super) fn promote_types(a: DType, b: DType) -> DType {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    if a == b {
        return a;
    }
    let kind = |d: DType| match d {
        Bool => 0,
        U8 | U16 | U32 | U64 => 1,
        I8 | I16 | I32 | I64 => 2,
        _ => 3,
    };
    let (low, high) = if kind(a) <= kind(b) { (a, b) } else { (b, a) };
    let smallest_of = |types: [DType; 4], bytes: usize| {
        types.into_iter().find(|d| d.size() >= bytes).unwrap_or(F64)
    };
    match (kind(low), kind(high)) {
        (0, _) => high,
        (1, 1) | (2, 2) => {
            if low.size() > high.size() {
                low
            } else {
                high
            }
        }
        (1, 2) => {
            let bytes = high.size().max(2 * low.size());
            if bytes > 8 { F64 } else { smallest_of([I8, I16, I32, I64], bytes) }
        }
        (3, 3) => match (a, b) {
            (F16, BF16) | (BF16, F16) => F32,
            _ => {
                if low.size() > high.size() {
                    low
                } else {
                    high
                }
            }
        },
        // One type is an integer type, the other a float type. Widen a float type that cannot hold
        // all values of the integer type (integers of 32 or 64 bits give float64).
        _ => match low.size() {
            1 => high,
            2 => {
                if high.size() < 4 {
                    F32
                } else {
                    high
                }
            }
            _ => F64,
        },
    }
}

/// Returns whether each element is zero; -0.0 counts as zero.
pub(super) fn find_zeros(values: &DenseTensor) -> Result<Vec<bool>> {
    macro_rules! of {
        ($t:ty, $zero:expr) => {
            values.as_slice::<$t>()?.iter().map(|v| *v == $zero).collect()
        };
    }
    Ok(match values.dtype() {
        DType::Bool | DType::U8 => of!(u8, 0),
        DType::U16 => of!(u16, 0),
        DType::U32 => of!(u32, 0),
        DType::U64 => of!(u64, 0),
        DType::I8 => of!(i8, 0),
        DType::I16 => of!(i16, 0),
        DType::I32 => of!(i32, 0),
        DType::I64 => of!(i64, 0),
        DType::F16 => of!(f16, f16::ZERO),
        DType::BF16 => of!(bf16, bf16::ZERO),
        DType::F32 => of!(f32, 0.0),
        DType::F64 => of!(f64, 0.0),
    })
}
