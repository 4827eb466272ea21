//! Functions that map zero to zero, so that sparse tensors stay sparse.

use super::DokTensor;
use super::entries::SparseEntries;
use super::wide_numbers::WideNumbers;
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// A function with `f(0) = 0`, applied to the entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DokUnary {
    /// Absolute value.
    Abs,
    /// Negation.
    Neg,
    /// Sign: -1, 0 or 1. NaN stays NaN.
    Sign,
    /// Square.
    Square,
    /// 0 for negative numbers, the number itself otherwise.
    Relu,
    /// Square root; NaN for negative numbers.
    Sqrt,
    /// Rounds up to an integer.
    Ceil,
    /// Rounds down to an integer.
    Floor,
    /// Rounds towards zero to an integer.
    Trunc,
    /// Rounds to this number of decimals (left of the point if negative), ties to even.
    Round(i32),
    /// e^x - 1.
    Expm1,
    /// ln(1 + x).
    Log1p,
    /// Sine of an angle in radians.
    Sin,
    /// Tangent of an angle in radians.
    Tan,
    /// Arcsine; NaN outside -1 to 1.
    Asin,
    /// Arctangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic tangent.
    Tanh,
    /// Inverse hyperbolic sine.
    Asinh,
    /// Inverse hyperbolic tangent.
    Atanh,
    /// Degrees to radians.
    Deg2Rad,
    /// Radians to degrees.
    Rad2Deg,
}

impl DokUnary {
    /// Applies the function to an integer; `None` on overflow, or if the function supports only
    /// floats.
    fn apply_int(self, v: i128) -> Option<i128> {
        match self {
            Self::Abs => Some(v.abs()),
            Self::Neg => Some(-v),
            Self::Sign => Some(v.signum()),
            Self::Square => v.checked_mul(v),
            Self::Relu => Some(v.max(0)),
            _ => None,
        }
    }

    /// Applies the function to a float; [`Self::Round`] uses float32 if `single`, like NumPy.
    fn apply_float(self, v: f64, single: bool) -> f64 {
        match self {
            Self::Abs => v.abs(),
            Self::Neg => -v,
            Self::Sign if v.is_nan() || v == 0.0 => v,
            Self::Sign => v.signum(),
            Self::Square => v * v,
            Self::Relu if v < 0.0 => 0.0,
            Self::Relu => v,
            Self::Sqrt => v.sqrt(),
            Self::Ceil => v.ceil(),
            Self::Floor => v.floor(),
            Self::Trunc => v.trunc(),
            Self::Round(decimals) => round_decimals(v, decimals, single),
            Self::Expm1 => v.exp_m1(),
            Self::Log1p => v.ln_1p(),
            Self::Sin => v.sin(),
            Self::Tan => v.tan(),
            Self::Asin => v.asin(),
            Self::Atan => v.atan(),
            Self::Sinh => v.sinh(),
            Self::Tanh => v.tanh(),
            Self::Asinh => v.asinh(),
            Self::Atanh => v.atanh(),
            Self::Deg2Rad => v.to_radians(),
            Self::Rad2Deg => v.to_degrees(),
        }
    }

    fn is_exact(self) -> bool {
        matches!(self, Self::Abs | Self::Neg | Self::Sign | Self::Square | Self::Relu)
    }
}

/// Rounds `v` to `decimals` places, ties to even, in float32 if `single`. If the power of ten
/// overflows, returns zero for negative `decimals`, else `v`, which has no digits that far right.
fn round_decimals(v: f64, decimals: i32, single: bool) -> f64 {
    if decimals == 0 || !v.is_finite() {
        return v.round_ties_even();
    }
    // `i32::MIN` has no absolute value, but `i32::MAX` gives the same result, because the power of
    // ten is infinite for both.
    let digits = decimals.saturating_abs();
    #[expect(clippy::cast_possible_truncation, reason = "the number is a float32")]
    let rounded = if single {
        let factor = 10f32.powi(digits);
        let v = v as f32;
        f64::from(if decimals > 0 {
            (v * factor).round_ties_even() / factor
        } else {
            (v / factor).round_ties_even() * factor
        })
    } else {
        let factor = 10f64.powi(digits);
        if decimals > 0 {
            (v * factor).round_ties_even() / factor
        } else {
            (v / factor).round_ties_even() * factor
        }
    };
    match (rounded.is_finite(), decimals > 0) {
        (true, _) => rounded,
        (false, true) => v,
        (false, false) => 0.0f64.copysign(v),
    }
}

fn apply_unary(values: &DenseTensor, of: DokUnary) -> Result<DenseTensor> {
    let dtype = values.dtype();
    let numbers = match WideNumbers::from_dense(values)? {
        WideNumbers::Int(_) if !of.is_exact() || dtype == DType::Bool => {
            return Err(Error::invalid(format!(
                "{of:?} is not defined for {dtype} values; cast them to float64 first"
            )));
        }
        WideNumbers::Int(v) => {
            let out: Option<Vec<i128>> = v.into_iter().map(|v| of.apply_int(v)).collect();
            WideNumbers::Int(out.ok_or_else(|| Error::Overflow(format!("{of:?}")))?)
        }
        WideNumbers::Float(v) => {
            let single = dtype != DType::F64;
            WideNumbers::Float(v.into_iter().map(|v| of.apply_float(v, single)).collect())
        }
    };
    numbers.into_dense(dtype, &format!("{of:?}"))
}

impl DokTensor {
    /// Applies a function to every entry and returns an independent tensor with the same
    /// coordinates.
    ///
    /// Entries that become zero remain until [`prune`](Self::prune).
    ///
    /// The type of the values stays the same. Integers support only [`DokUnary::Abs`],
    /// [`DokUnary::Neg`], [`DokUnary::Sign`], [`DokUnary::Square`] and [`DokUnary::Relu`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::{DokTensor, DokUnary};
    /// let mut t = DokTensor::new([10], DType::F32)?;
    /// t.set_at(&[3], -2.25)?;
    /// assert_eq!(t.map(DokUnary::Round(1))?.at(&[3])?.to_f64()?, f64::from(-2.2f32));
    /// assert_eq!(t.abs()?.sqrt()?.at(&[3])?.to_string(), "1.5");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the function does not support the type of the values, or an integer result does not fit
    /// this type.
    pub fn map(&self, of: DokUnary) -> Result<Self> {
        let entries = self.collect_entries()?;
        let values = apply_unary(&entries.values, of)?;
        self.replace_entries(SparseEntries { values, ..entries })
    }

    /// Applies [`DokUnary::Abs`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![-1.5, 2.0])?)?;
    /// assert_eq!(t.abs()?.to_dense()?.as_slice::<f64>()?, [1.5, 2.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`map`](Self::map).
    pub fn abs(&self) -> Result<Self> {
        self.map(DokUnary::Abs)
    }

    /// Applies [`DokUnary::Sqrt`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![4.0, 9.0])?)?;
    /// assert_eq!(t.sqrt()?.to_dense()?.as_slice::<f64>()?, [2.0, 3.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`map`](Self::map).
    pub fn sqrt(&self) -> Result<Self> {
        self.map(DokUnary::Sqrt)
    }

    /// Applies [`DokUnary::Ceil`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![1.5, -2.5])?)?;
    /// assert_eq!(t.ceil()?.to_dense()?.as_slice::<f64>()?, [2.0, -2.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`map`](Self::map).
    pub fn ceil(&self) -> Result<Self> {
        self.map(DokUnary::Ceil)
    }

    /// Applies [`DokUnary::Floor`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![1.5, -2.5])?)?;
    /// assert_eq!(t.floor()?.to_dense()?.as_slice::<f64>()?, [1.0, -3.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`map`](Self::map).
    pub fn floor(&self) -> Result<Self> {
        self.map(DokUnary::Floor)
    }

    /// Applies [`DokUnary::Round`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([1], vec![1.26])?)?;
    /// assert_eq!(t.round(1)?.at(&[0])?.to_string(), "1.3");
    /// assert_eq!(t.floor()?.at(&[0])?.to_string(), "1");
    /// assert_eq!(t.ceil()?.at(&[0])?.to_string(), "2");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`map`](Self::map).
    pub fn round(&self, decimals: i32) -> Result<Self> {
        self.map(DokUnary::Round(decimals))
    }
}
