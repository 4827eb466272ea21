use super::{BufferPool, DType, DenseTensor};
use crate::error::{Error, Result};
use crate::kernels::side::PaddingSide;
use crate::limit::{DEFAULT_LIMIT, check_bytes};

/// The value of padding.
///
/// The element type of the tensor must be able to represent this value: 0.5 needs a float type.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::Fill;
/// assert_eq!(Fill::from(-1), Fill::Int(-1));
/// assert_eq!(Fill::from(0.5), Fill::Float(0.5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// A boolean fill value, which is 0 or 1 in numeric tensors.
    Bool(bool),
    /// A signed integer as fill value.
    Int(i64),
    /// An unsigned integer; needed only for 2^63 or more, which `Int` cannot hold.
    UInt(u64),
    /// A float; tensors of integers accept only whole numbers, such as 2.0.
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
    /// Returns the value as a tensor of one element.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, Fill};
    /// assert_eq!(Fill::from(7).to_tensor(DType::U8)?.as_slice::<u8>()?, [7]);
    /// assert!(Fill::from(-1).to_tensor(DType::U8).is_err());
    /// assert!(Fill::from(16_777_217).to_tensor(DType::F32).is_err());
    /// assert!(Fill::from(1e300).to_tensor(DType::F32).is_err());
    /// assert_eq!(Fill::from(0.1).to_tensor(DType::F32)?.as_slice::<f32>()?, [0.1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the type cannot represent the value. A float type is allowed to round a float (0.1), but
    /// not an integer.
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
        let refuse = || {
            Error::invalid(format!(
                "the fill value {self} cannot be represented as {dtype}; choose another fill value or type"
            ))
        };
        if !fits {
            return Err(refuse());
        }
        let tensor = whole.cast(dtype).map_err(|_| refuse())?;
        let back = match dtype.is_float() {
            true => tensor.cast(DType::F64)?.as_slice::<f64>()?.first().copied(),
            false => None,
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the cast saturates, and no fill value is so large"
        )]
        let same = match (self, back) {
            (Self::Int(v), Some(back)) => back as i128 == i128::from(v),
            (Self::UInt(v), Some(back)) => back as i128 == i128::from(v),
            (Self::Float(v), Some(back)) => v.is_finite() == back.is_finite(),
            _ => true,
        };
        if same { Ok(tensor) } else { Err(refuse()) }
    }
}

/// Options for converting ragged data to dense tensors.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::{DenseOptions, PaddingSide};
/// let options = DenseOptions { side: PaddingSide::Left, fill: Some((-1).into()), ..Default::default() };
/// assert_eq!(options.limit, Some(DenseOptions::DEFAULT_LIMIT));
/// ```
#[derive(Clone, Debug)]
pub struct DenseOptions {
    /// Side on which lists are padded and truncated.
    pub side: PaddingSide,
    /// Fill value for padding and null leaves; `None` for zero (or `false`).
    pub fill: Option<Fill>,
    /// Element type of the result; `None` for the type of the leaves. A conversion takes an extra
    /// pass over the leaves, except from booleans and narrower integers to int64, which are
    /// converted while the result is written. A value that does not fit is an error.
    pub dtype: Option<DType>,
    /// Maximum number of bytes of one result, checked before allocation; `None` for no limit.
    pub limit: Option<u64>,
    /// Whether rayon's threads may write a large result. Set this to false if the caller already
    /// uses several threads.
    pub parallel: bool,
    /// Pool that provides the memory of results and takes it back; `None` allocates new memory.
    pub pool: Option<BufferPool>,
}

impl DenseOptions {
    /// Default of [`limit`](Self::limit): 4 GiB.
    pub const DEFAULT_LIMIT: u64 = DEFAULT_LIMIT;

    /// Returns `bytes` as a `usize`, or an error if it exceeds [`limit`](Self::limit). In the
    /// error, `what` names the result that has this size, and `hint` says how to reduce the size.
    pub(crate) fn check_bytes(
        &self,
        bytes: u128,
        what: impl FnOnce() -> String,
        hint: impl FnOnce() -> String,
    ) -> Result<usize> {
        check_bytes(self.limit, bytes, what, hint)
    }
}

impl Default for DenseOptions {
    fn default() -> Self {
        Self {
            side: PaddingSide::Right,
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
        assert_eq!("left".parse::<PaddingSide>().unwrap(), PaddingSide::Left);
        for wrong in ["up", "LEFT"] {
            let e = wrong.parse::<PaddingSide>().unwrap_err().to_string();
            assert!(e.contains("'left' or 'right'"), "{e}");
        }
    }
}
