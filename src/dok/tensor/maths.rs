//! Functions of one number that leave zero at zero, so that sparse stays sparse.

use super::DokTensor;
use super::entries::Entries;
use super::numbers::Numbers;
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// A function with `f(0) = 0`; it is applied to the entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    /// Without its sign.
    Abs,
    /// With the other sign.
    Neg,
    /// -1, 0 or 1; NaN stays.
    Sign,
    /// Times itself.
    Square,
    /// Below 0 becomes 0.
    Relu,
    /// Square root; NaN of negative numbers.
    Sqrt,
    /// The next whole number above.
    Ceil,
    /// The next whole number below.
    Floor,
    /// Without what is behind the point.
    Trunc,
    /// Rounded to so many decimals (before the point, if negative); halves to even numbers.
    Round(i32),
    /// e^x - 1.
    Expm1,
    /// ln(1 + x).
    Log1p,
    /// Sine of radians.
    Sin,
    /// Tangent of radians.
    Tan,
    /// Arcus sine; NaN beyond -1 and 1.
    Asin,
    /// Arcus tangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic tangent.
    Tanh,
    /// Inverse of the hyperbolic sine.
    Asinh,
    /// Inverse of the hyperbolic tangent.
    Atanh,
    /// Degrees to radians.
    Deg2Rad,
    /// Radians to degrees.
    Rad2Deg,
}

impl Unary {
    /// Integers have these exactly; the others are for floating point numbers.
    fn int(self, v: i128) -> Option<i128> {
        match self {
            Self::Abs => Some(v.abs()),
            Self::Neg => Some(-v),
            Self::Sign => Some(v.signum()),
            Self::Square => v.checked_mul(v),
            Self::Relu => Some(v.max(0)),
            _ => None,
        }
    }

    /// Rounding with decimals scales in the type of the values, as numpy does it.
    fn float(self, v: f64, single: bool) -> f64 {
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
            Self::Round(decimals) => round(v, decimals, single),
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

    fn exact(self) -> bool {
        matches!(self, Self::Abs | Self::Neg | Self::Sign | Self::Square | Self::Relu)
    }
}

/// Rounds to decimals, halves to even; with factors so large or small that nothing is left to round
/// or everything goes, what is left is the number itself, or zero.
fn round(v: f64, decimals: i32, single: bool) -> f64 {
    if decimals == 0 || !v.is_finite() {
        return v.round_ties_even();
    }
    #[expect(clippy::cast_possible_truncation, reason = "the number is a float32")]
    let rounded = if single {
        let factor = 10f32.powi(decimals.abs());
        let v = v as f32;
        f64::from(if decimals > 0 {
            (v * factor).round_ties_even() / factor
        } else {
            (v / factor).round_ties_even() * factor
        })
    } else {
        let factor = 10f64.powi(decimals.abs());
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

fn apply(values: &DenseTensor, of: Unary) -> Result<DenseTensor> {
    let dtype = values.dtype();
    let numbers = match Numbers::of(values)? {
        Numbers::Int(_) if !of.exact() || dtype == DType::Bool => {
            return Err(Error::invalid(format!(
                "{of:?} of {dtype} values; cast them to float64 first"
            )));
        }
        Numbers::Int(v) => {
            let out: Option<Vec<i128>> = v.into_iter().map(|v| of.int(v)).collect();
            Numbers::Int(out.ok_or_else(|| Error::Overflow(format!("{of:?}")))?)
        }
        Numbers::Float(v) => {
            let single = dtype != DType::F64;
            Numbers::Float(v.into_iter().map(|v| of.float(v, single)).collect())
        }
    };
    numbers.into_dense(dtype, &format!("{of:?}"))
}

impl DokTensor {
    /// A function of every entry, in a tensor of its own with the same coordinates. Entries that
    /// become zero stay, until [`prune`](Self::prune).
    ///
    /// Floating point numbers stay of their type, integers too, which have [`Unary::Abs`],
    /// [`Unary::Neg`], [`Unary::Sign`], [`Unary::Square`] and [`Unary::Relu`] only.
    ///
    /// ```
    /// use serrate::dense::DType;
    /// use serrate::dok::{DokTensor, Unary};
    /// let mut t = DokTensor::new([10], DType::F32)?;
    /// t.set_at(&[3], -2.25)?;
    /// assert_eq!(t.map(Unary::Round(1))?.at(&[3])?.to_f64()?, f64::from(-2.2f32));
    /// assert_eq!(t.abs()?.sqrt()?.at(&[3])?.to_string(), "1.5");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// For integers and booleans where a function is not theirs; when an integer does not fit its
    /// type any more.
    pub fn map(&self, of: Unary) -> Result<Self> {
        let entries = self.entries()?;
        let values = apply(&entries.values, of)?;
        self.with_values(Entries { values, ..entries })
    }

    /// [`Unary::Abs`] of every entry.
    ///
    /// # Errors
    /// As [`map`](Self::map).
    pub fn abs(&self) -> Result<Self> {
        self.map(Unary::Abs)
    }

    /// [`Unary::Sqrt`] of every entry.
    ///
    /// # Errors
    /// As [`map`](Self::map).
    pub fn sqrt(&self) -> Result<Self> {
        self.map(Unary::Sqrt)
    }

    /// [`Unary::Ceil`] of every entry.
    ///
    /// # Errors
    /// As [`map`](Self::map).
    pub fn ceil(&self) -> Result<Self> {
        self.map(Unary::Ceil)
    }

    /// [`Unary::Floor`] of every entry.
    ///
    /// # Errors
    /// As [`map`](Self::map).
    pub fn floor(&self) -> Result<Self> {
        self.map(Unary::Floor)
    }

    /// [`Unary::Round`] of every entry.
    ///
    /// # Errors
    /// As [`map`](Self::map).
    pub fn round(&self, decimals: i32) -> Result<Self> {
        self.map(Unary::Round(decimals))
    }
}
