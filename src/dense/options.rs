//! How padding is written: side, fill, element type, limit.

use super::{BufferPool, DType, DenseTensor};
use crate::error::{Error, Result};

/// Where padding goes, at every level.
///
/// The same side is where a list that is too long is cut: with `Right` the first elements stay, with
/// `Left` the last ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// Values first, padding after them: `[1, 2, 0]`.
    #[default]
    Right,
    /// Padding first, values after it: `[0, 1, 2]`.
    Left,
}

/// Reads `left` and `right`.
impl std::str::FromStr for Side {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s {
            "right" => Ok(Self::Right),
            "left" => Ok(Self::Left),
            _ => Err(Error::invalid(format!("the padding side is 'left' or 'right', not {s:?}"))),
        }
    }
}

/// The value of padding. It must be a value of the tensor's type: 0.5 does not fill integers, nor -1
/// unsigned ones.
///
/// ```
/// use serrate::dense::Fill;
/// assert_eq!(Fill::from(-1), Fill::Int(-1));
/// assert_eq!(Fill::from(0.5), Fill::Float(0.5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// For booleans.
    Bool(bool),
    /// For numbers.
    Int(i64),
    /// For numbers; what `Int` cannot say are unsigned integers from 2^63 on.
    UInt(u64),
    /// For numbers; for integers only when whole.
    Float(f64),
}

impl From<bool> for Fill {
    fn from(v: bool) -> Self {
        Self::Bool(v)
    }
}

impl From<i32> for Fill {
    fn from(v: i32) -> Self {
        Self::Int(v.into())
    }
}

impl From<i64> for Fill {
    fn from(v: i64) -> Self {
        Self::Int(v)
    }
}

impl From<u64> for Fill {
    fn from(v: u64) -> Self {
        Self::UInt(v)
    }
}

impl From<f64> for Fill {
    fn from(v: f64) -> Self {
        Self::Float(v)
    }
}

impl std::fmt::Display for Fill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(v) => v.fmt(f),
            Self::Int(v) => v.fmt(f),
            Self::UInt(v) => v.fmt(f),
            Self::Float(v) => v.fmt(f),
        }
    }
}

impl Fill {
    /// The value as a tensor of one element.
    ///
    /// # Errors
    /// When it is no value of the type.
    pub fn to_tensor(self, dtype: DType) -> Result<DenseTensor> {
        let whole = match self {
            Self::Bool(v) => DenseTensor::from_bools([1], [v])?,
            Self::Int(v) => DenseTensor::from_vec([1], vec![v])?,
            Self::UInt(v) => DenseTensor::from_vec([1], vec![v])?,
            Self::Float(v) => DenseTensor::from_vec([1], vec![v])?,
        };
        let fits = match (self, dtype) {
            (Self::Bool(_), _) => true,
            (Self::Int(v), DType::Bool) => v == 0 || v == 1,
            (Self::UInt(v), DType::Bool) => v == 0 || v == 1,
            (Self::Float(v), DType::Bool) => v == 0.0 || v == 1.0,
            (Self::Float(v), d) if d.is_integer() => v.fract() == 0.0,
            _ => true,
        };
        let refuse = || Error::invalid(format!("the fill value {self} is no value of {dtype}"));
        if fits { whole.cast(dtype).map_err(|_| refuse()) } else { Err(refuse()) }
    }
}

/// How a ragged array becomes dense.
///
/// ```
/// use serrate::dense::{DenseOptions, Side};
/// let options = DenseOptions { side: Side::Left, fill: Some((-1).into()), ..Default::default() };
/// assert_eq!(options.limit, Some(DenseOptions::DEFAULT_LIMIT));
/// ```
#[derive(Clone, Debug)]
pub struct DenseOptions {
    /// Side of the padding, and of the cut where a list is too long.
    pub side: Side,
    /// Value of padding and of null leaves; zero (or `false`) when `None`.
    pub fill: Option<Fill>,
    /// Type of the result, that of the leaves when `None`. Narrow integers become 64-bit ones while
    /// they are written; other conversions go over the leaves first. A value that does not fit is
    /// an error.
    pub dtype: Option<DType>,
    /// Most bytes of one result; more is refused before anything is allocated. `None` for no limit.
    pub limit: Option<u64>,
    /// Whether large results may be written by several threads (rayon's). Off where the caller runs
    /// in parallel already.
    pub parallel: bool,
    /// Where memory for results comes from and returns to; fresh memory when `None`.
    pub pool: Option<BufferPool>,
}

impl DenseOptions {
    /// The limit unless another is set: 4 GiB.
    pub const DEFAULT_LIMIT: u64 = 4 << 30;

    /// Refuses `bytes` past the limit, or past what can be addressed at all.
    pub(crate) fn check_bytes(
        &self,
        bytes: u128,
        what: impl FnOnce() -> String,
        hint: impl FnOnce() -> String,
    ) -> Result<usize> {
        let most = self.limit.map_or(u128::from(u64::MAX), u128::from);
        let limit = most.min(isize::MAX.unsigned_abs() as u128);
        match usize::try_from(bytes) {
            Ok(n) if bytes <= limit => Ok(n),
            _ => Err(Error::TooLarge { what: what(), bytes, limit, hint: hint() }),
        }
    }
}

impl Default for DenseOptions {
    fn default() -> Self {
        Self {
            side: Side::Right,
            fill: None,
            dtype: None,
            limit: Some(Self::DEFAULT_LIMIT),
            parallel: true,
            pool: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_must_be_values_of_the_type() {
        let bytes = |f: Fill, d| f.to_tensor(d).map(|t| t.as_bytes().to_vec());
        assert_eq!(bytes(Fill::Int(-1), DType::I16).unwrap(), [255, 255]);
        assert_eq!(bytes(Fill::Float(2.0), DType::U8).unwrap(), [2]);
        assert_eq!(bytes(Fill::Int(1), DType::Bool).unwrap(), [1]);
        assert_eq!(bytes(Fill::UInt(u64::MAX), DType::U64).unwrap(), [255; 8]);
        assert_eq!(bytes(Fill::Bool(true), DType::F32).unwrap(), 1f32.to_ne_bytes());
        for (fill, dtype) in [
            (Fill::Int(-1), DType::U8),
            (Fill::Int(256), DType::U8),
            (Fill::Float(0.5), DType::I64),
            (Fill::Float(f64::NAN), DType::I64),
            (Fill::Int(2), DType::Bool),
            (Fill::UInt(u64::MAX), DType::I64),
        ] {
            let e = bytes(fill, dtype).unwrap_err().to_string();
            assert!(e.contains(&fill.to_string()) && e.contains(dtype.name()), "{e}");
        }
    }

    #[test]
    fn sides_are_read() {
        assert_eq!("left".parse::<Side>().unwrap(), Side::Left);
        for wrong in ["up", "LEFT"] {
            let e = wrong.parse::<Side>().unwrap_err().to_string();
            assert!(e.contains("'left' or 'right'"), "{e}");
        }
    }
}
