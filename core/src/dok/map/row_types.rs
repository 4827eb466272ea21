//! Types of rows, and access to rows that is specialized for common widths.

use std::fmt;

use arrow::buffer::Buffer;
use half::{bf16, f16};

use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// Type of a key or a value: an element type and a shape.
///
/// A shape without axes has one element. Rows of a shape with an axis of size 0 are all equal.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DType;
/// use serrate::dok::RowType;
/// let point = RowType::new(DType::F32, [3])?;
/// assert_eq!((point.dtype(), point.shape(), point.nbytes()), (DType::F32, &[3][..], 12));
/// assert_eq!(point.to_string(), "float32[3]");
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowType {
    dtype: DType,
    shape: Vec<usize>,
    bytes: usize,
}

impl RowType {
    /// Creates a row type from the type of the elements and the shape of a row.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::RowType;
    /// let matrix = RowType::new(DType::I16, [2, 3])?;
    /// assert_eq!((matrix.dtype(), matrix.shape(), matrix.nbytes()), (DType::I16, &[2, 3][..], 12));
    /// assert!(RowType::new(DType::I16, [usize::MAX, 2]).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a row has more bytes than can be addressed.
    pub fn new(dtype: DType, shape: impl Into<Vec<usize>>) -> Result<Self> {
        let shape = shape.into();
        let elements = crate::dense::count_shape_elements(&shape);
        let bytes = elements.and_then(|n| n.checked_mul(dtype.size()));
        let bytes = bytes.filter(|b| isize::try_from(*b).is_ok()).ok_or_else(|| {
            Error::invalid(format!(
                "a row of shape {shape:?} exceeds the address space; use a smaller shape"
            ))
        })?;
        Ok(Self { dtype, shape, bytes })
    }

    /// Returns the type of rows with one element.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::RowType;
    /// let number = RowType::scalar(DType::F64);
    /// assert!(number.shape().is_empty());
    /// assert_eq!((number.nbytes(), number.to_string().as_str()), (8, "float64"));
    /// ```
    pub fn scalar(dtype: DType) -> Self {
        Self { dtype, shape: Vec::new(), bytes: dtype.size() }
    }

    /// Returns the type of the rows (elements of the first axis) of a tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::RowType;
    /// let points = DenseTensor::from_vec([2, 3], vec![0.0f32; 6])?;
    /// assert_eq!(RowType::of(&points)?, RowType::new(DType::F32, [3])?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor has no axes and therefore no rows.
    pub fn of(tensor: &DenseTensor) -> Result<Self> {
        let shape = tensor.shape().get(1..).ok_or_else(|| {
            Error::invalid("a tensor without axes has no rows; reshape it to [1] first")
        })?;
        Self::new(tensor.dtype(), shape)
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape of one row.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of bytes of one row.
    pub fn nbytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn batch_shape(&self, rows: usize) -> Vec<usize> {
        std::iter::once(rows).chain(self.shape.iter().copied()).collect()
    }

    /// Returns an error if `found` differs from this type; `what` names the rows in the message,
    /// "keys" or "values".
    pub(super) fn check_equal(&self, found: &Self, what: &str) -> Result<()> {
        if self == found {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the given {what} have the type {found}, but the {what} of this map have the type {self}; cast or reshape the given tensor"
        )))
    }
}

impl fmt::Display for RowType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dtype.fmt(f)?;
        if self.shape.is_empty() { Ok(()) } else { write!(f, "{:?}", self.shape) }
    }
}

/// Width of a row in bytes. The compiler knows the width if it is common ([`FixedWidth`]).
pub(super) trait RowWidth: Copy + Send + Sync {
    fn bytes(self) -> usize;

    #[inline(always)]
    fn row(self, rows: &[u8], i: usize) -> &[u8] {
        let w = self.bytes();
        &rows[i * w..][..w]
    }
}

/// Copies a row. Rows of common widths are copied without the function call that `copy_from_slice`
/// needs.
#[inline(always)]
pub(super) fn copy_row(from: &[u8], to: &mut [u8]) {
    #[inline(always)]
    fn copy_array<const N: usize>(from: &[u8], to: &mut [u8]) {
        if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
            *to = *from;
        }
    }
    match (from.len(), to.len()) {
        (4, 4) => copy_array::<4>(from, to),
        (8, 8) => copy_array::<8>(from, to),
        (16, 16) => copy_array::<16>(from, to),
        (24, 24) => copy_array::<24>(from, to),
        _ => to.copy_from_slice(from),
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FixedWidth<const N: usize>;

impl<const N: usize> RowWidth for FixedWidth<N> {
    #[inline(always)]
    fn bytes(self) -> usize {
        N
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DynamicWidth(pub(super) usize);

impl RowWidth for DynamicWidth {
    #[inline(always)]
    fn bytes(self) -> usize {
        self.0
    }
}

/// Evaluates `$body` with `$w` bound to a [`RowWidth`] of `$bytes` bytes. The widths in brackets
/// are compile-time constants.
macro_rules! with_width {
    ([$($common:literal)+] $bytes:expr, $w:ident => $body:expr) => {
        match $bytes {
            $($common => {
                let $w = $crate::dok::map::row_types::FixedWidth::<$common>;
                $body
            })+
            other => {
                let $w = $crate::dok::map::row_types::DynamicWidth(other);
                $body
            }
        }
    };
}

/// Evaluates `$body` with `$w` bound to the width of a key of `$bytes` bytes. The most frequent
/// widths of keys are compile-time constants.
macro_rules! with_key_width {
    ($bytes:expr, $w:ident => $body:expr) => {
        $crate::dok::map::row_types::with_width!([4 8 12 16 24] $bytes, $w => $body)
    };
}

/// Evaluates `$body` with `$w` bound to the width of a value of `$bytes` bytes. The most frequent
/// widths of values are compile-time constants.
macro_rules! with_value_width {
    ($bytes:expr, $w:ident => $body:expr) => {
        $crate::dok::map::row_types::with_width!([4 8] $bytes, $w => $body)
    };
}

pub(super) use {with_key_width, with_value_width, with_width};

/// Returns the bytes of keys, with -0.0 replaced by 0.0 and every NaN by the same NaN. Shares the
/// buffer if nothing is replaced.
pub(crate) fn canonicalize_keys(keys: &DenseTensor) -> Result<Buffer> {
    macro_rules! floats {
        ($t:ty, $nan:expr, $zero:expr) => {{
            let values = keys.as_slice::<$t>()?;
            let odd = |v: &$t| v.is_nan() || (*v == $zero && v.is_sign_negative());
            if !values.iter().any(odd) {
                return Ok(keys.buffer().clone());
            }
            let one = |v: &$t| match *v {
                v if v.is_nan() => $nan,
                v if v == $zero => $zero,
                v => v,
            };
            let values: Vec<$t> = values.iter().map(one).collect();
            Ok(DenseTensor::from_vec(vec![values.len()], values)?.buffer().clone())
        }};
    }
    match keys.dtype() {
        DType::F16 => floats!(f16, f16::NAN, f16::ZERO),
        DType::BF16 => floats!(bf16, bf16::NAN, bf16::ZERO),
        DType::F32 => floats!(f32, f32::NAN, 0.0),
        DType::F64 => floats!(f64, f64::NAN, 0.0),
        _ => Ok(keys.buffer().clone()),
    }
}
