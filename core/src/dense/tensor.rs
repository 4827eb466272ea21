use std::fmt;

use arrow::buffer::Buffer;

use super::{DType, TensorElement};
use crate::error::{Error, Result};
use crate::index::broadcast_shape::derive_strides;

/// A dense tensor: elements of one type in row-major order.
///
/// Cloning, slicing rows and reshaping share the Arrow buffer. The buffer has exactly the size that
/// shape and type require and is aligned for the type; the bytes of `Bool` tensors are 0 or 1. A
/// tensor without axes has one element; an axis of size 0 makes the tensor empty.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::{DType, DenseTensor};
/// let t = DenseTensor::from_vec(vec![2, 3], vec![1u16, 2, 3, 4, 5, 6])?;
/// assert_eq!((t.dtype(), t.nbytes(), t.strides()), (DType::U16, 12, vec![3, 1]));
/// assert_eq!(t.slice(1, 1)?.as_slice::<u16>()?, [4, 5, 6]);
/// assert_eq!(t.cast(DType::I64)?.as_slice::<i64>()?, [1, 2, 3, 4, 5, 6]);
/// assert_eq!(t.to_string(), "uint16[2, 3] [[1, 2, 3], [4, 5, 6]]");
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DenseTensor {
    dtype: DType,
    shape: Vec<usize>,
    buffer: Buffer,
}

/// Returns the number of elements of a shape; `None` if it does not fit a `usize`.
pub(crate) fn count_shape_elements(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))
}

impl DenseTensor {
    /// Creates a tensor from an element type, a shape and a buffer.
    ///
    /// Copies a buffer that is not aligned.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::arrow::buffer::Buffer;
    /// use serrate::dense::{DType, DenseTensor};
    /// let t = DenseTensor::try_new(DType::U16, [2, 2], Buffer::from_vec(vec![1u16, 2, 3, 4]))?;
    /// assert_eq!(t.to_string(), "uint16[2, 2] [[1, 2], [3, 4]]");
    /// assert!(DenseTensor::try_new(DType::Bool, [1], Buffer::from_vec(vec![2u8])).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If shape and type require another buffer size, or a byte of a `Bool` tensor is neither 0
    /// nor 1.
    pub fn try_new(dtype: DType, shape: impl Into<Vec<usize>>, buffer: Buffer) -> Result<Self> {
        if dtype == DType::Bool
            && let Some(i) = buffer.iter().position(|b| *b > 1)
        {
            return Err(Error::invalid(format!(
                "element {i} of a bool tensor is the byte {}; every byte must be 0 or 1",
                buffer[i]
            )));
        }
        Self::try_new_trusted(dtype, shape.into(), buffer)
    }

    /// Creates a tensor like [`try_new`](Self::try_new); the caller guarantees that `Bool` bytes
    /// are 0 or 1.
    pub(crate) fn try_new_trusted(dtype: DType, shape: Vec<usize>, buffer: Buffer) -> Result<Self> {
        let expected = count_shape_elements(&shape).and_then(|n| n.checked_mul(dtype.size()));
        if expected != Some(buffer.len()) {
            return Err(Error::invalid(match expected {
                Some(expected) => format!(
                    "the buffer has {} bytes, but a {dtype} tensor of shape {shape:?} takes {expected}; give a buffer of exactly this size",
                    buffer.len()
                ),
                None => format!(
                    "a {dtype} tensor of shape {shape:?} takes more bytes than memory can address; use a smaller shape"
                ),
            }));
        }
        let aligned = buffer.as_ptr().align_offset(dtype.size()) == 0;
        let buffer = if aligned { buffer } else { Buffer::from_slice_ref(buffer.as_slice()) };
        Ok(Self { dtype, shape, buffer })
    }

    /// Creates a tensor from a vector without copying.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 3], vec![1u8, 2, 3, 4, 5, 6])?;
    /// assert_eq!((t.ndim(), t.num_elements()), (2, 6));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of values differs from the number of elements of the shape.
    pub fn from_vec<T: TensorElement>(
        shape: impl Into<Vec<usize>>,
        values: Vec<T>,
    ) -> Result<Self> {
        Self::try_new_trusted(T::DTYPE, shape.into(), T::into_buffer(values))
    }

    /// Creates a `Bool` tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// let mask = DenseTensor::from_bools([2, 2], [true, true, true, false])?;
    /// assert_eq!((mask.dtype(), mask.as_bytes()), (DType::Bool, [1, 1, 1, 0].as_slice()));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of values differs from the number of elements of the shape.
    pub fn from_bools(
        shape: impl Into<Vec<usize>>,
        values: impl IntoIterator<Item = bool>,
    ) -> Result<Self> {
        let bytes: Vec<u8> = values.into_iter().map(u8::from).collect();
        Self::try_new_trusted(DType::Bool, shape.into(), Buffer::from_vec(bytes))
    }

    /// Returns the type of the elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// let t = DenseTensor::from_vec([2, 3], vec![1u16, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.dtype(), DType::U16);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the size of every axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 3], vec![1u16, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.shape(), [2, 3]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of axes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 3], vec![1u16, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.ndim(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 3], vec![1u16, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.num_elements(), 6);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_elements(&self) -> usize {
        self.buffer.len() / self.dtype.size()
    }

    /// Returns the size of the elements in bytes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 3], vec![1u16, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.nbytes(), 12);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the row-major strides, in elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 3], vec![1u16, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.strides(), [3, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn strides(&self) -> Vec<usize> {
        derive_strides(&self.shape)
    }

    /// Returns the buffer of the elements, row-major.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2], vec![1u16, 2])?;
    /// assert_eq!(t.buffer().len(), 4);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    #[cfg(feature = "batching")]
    pub(crate) fn new_empty(dtype: DType) -> Self {
        Self { dtype, shape: vec![0], buffer: Buffer::from_vec(Vec::<u64>::new()) }
    }

    #[allow(dead_code, reason = "only some features use it")]
    pub(crate) fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// Returns the bytes of the elements, row-major, in native byte order.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2], vec![1u16, 2])?;
    /// assert_eq!(t.as_bytes(), [1u16.to_ne_bytes(), 2u16.to_ne_bytes()].concat());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        self.buffer.as_slice()
    }

    /// Returns the elements in row-major order.
    ///
    /// `u8` also reads `Bool` tensors, as 0 and 1.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1i32, 2, 3, 4])?;
    /// assert_eq!(t.as_slice::<i32>()?, [1, 2, 3, 4]);
    /// assert!(t.as_slice::<f32>().is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor has another type.
    pub fn as_slice<T: TensorElement>(&self) -> Result<&[T]> {
        if !T::reads(self.dtype) {
            return Err(Error::invalid(format!(
                "the tensor has the type {}, not {}; cast it first",
                self.dtype,
                T::DTYPE
            )));
        }
        T::view(&self.buffer).ok_or_else(|| {
            Error::invalid(format!(
                "the buffer of the tensor is not aligned for its element type {}; create the tensor with `DenseTensor::try_new`, which copies unaligned buffers",
                self.dtype
            ))
        })
    }

    /// Returns `length` rows (elements of the first axis) from row `offset` on, sharing the buffer.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([3, 2], vec![1i32, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.slice(1, 2)?.as_slice::<i32>()?, [3, 4, 5, 6]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor has no axes, or the range exceeds the first axis.
    pub fn slice(&self, offset: usize, length: usize) -> Result<Self> {
        let rows = *self.shape.first().ok_or_else(|| Error::NoSuchAxis {
            what: "the tensor".into(),
            axis: 0,
            ndim: 0,
        })?;
        let out_of_range = |index: usize| Error::OutOfRange {
            axis: 0,
            index: i64::try_from(index).unwrap_or(i64::MAX),
            size: rows,
        };
        let end = offset.checked_add(length).ok_or_else(|| out_of_range(offset))?;
        if end > rows {
            return Err(out_of_range(end));
        }
        // All rows have the same size in bytes; if the first axis is empty, the size is irrelevant.
        let row = self.buffer.len().checked_div(rows).unwrap_or(0);
        let mut shape = self.shape.clone();
        shape[0] = length;
        let buffer = self.buffer.slice_with_length(offset * row, length * row);
        Ok(Self { dtype: self.dtype, shape, buffer })
    }

    /// Returns row `index` as a tensor with one axis less, sharing the buffer.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([3, 2], vec![1i32, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.row(1)?, DenseTensor::from_vec([2], vec![3, 4])?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor has no axes or the row does not exist.
    pub fn row(&self, index: usize) -> Result<Self> {
        let mut row = self.slice(index, 1)?;
        row.shape.remove(0);
        Ok(row)
    }

    /// Returns the same elements in another shape, sharing the buffer.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([3, 2], vec![1i32, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.reshape([6])?.shape(), [6]);
    /// assert!(t.reshape([4]).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the new shape has a different number of elements.
    pub fn reshape(&self, shape: impl Into<Vec<usize>>) -> Result<Self> {
        let shape = shape.into();
        if count_shape_elements(&shape) != Some(self.num_elements()) {
            return Err(Error::invalid(format!(
                "a tensor of shape {:?} has {} element(s) and cannot be reshaped to {shape:?}; give a shape with the same number of elements",
                self.shape,
                self.num_elements()
            )));
        }
        Ok(Self { shape, ..self.clone() })
    }

    fn format_element(&self, i: usize) -> String {
        fn show_element<T: TensorElement + fmt::Debug>(t: &DenseTensor, i: usize) -> String {
            t.as_slice::<T>().ok().and_then(|v| v.get(i)).map_or("?".into(), |v| format!("{v:?}"))
        }
        match self.dtype {
            DType::Bool => match self.buffer.get(i) {
                Some(0) => "false".into(),
                _ => "true".into(),
            },
            DType::U8 => show_element::<u8>(self, i),
            DType::U16 => show_element::<u16>(self, i),
            DType::U32 => show_element::<u32>(self, i),
            DType::U64 => show_element::<u64>(self, i),
            DType::I8 => show_element::<i8>(self, i),
            DType::I16 => show_element::<i16>(self, i),
            DType::I32 => show_element::<i32>(self, i),
            DType::I64 => show_element::<i64>(self, i),
            DType::F16 => show_element::<half::f16>(self, i),
            DType::BF16 => show_element::<half::bf16>(self, i),
            DType::F32 => show_element::<f32>(self, i),
            DType::F64 => show_element::<f64>(self, i),
        }
    }

    #[cfg(feature = "het")]
    pub(crate) fn format_whole(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.format_axis(f, 0, 0, &self.strides(), usize::MAX)
    }

    /// Formats axis `axis` of the subtensor that starts at element `first`. If the axis has more
    /// than `shown + 1` elements, writes the first `shown - 1` elements, `…`, and the last element.
    pub(super) fn format_axis(
        &self,
        f: &mut fmt::Formatter<'_>,
        axis: usize,
        first: usize,
        strides: &[usize],
        shown: usize,
    ) -> fmt::Result {
        let Some(size) = self.shape.get(axis).copied() else {
            return f.write_str(&self.format_element(first));
        };
        let short = size > shown.saturating_add(1);
        let head = if short { shown - 1 } else { size };
        f.write_str("[")?;
        for k in (0..head).chain(short.then(|| size - 1)) {
            if k > 0 {
                f.write_str(if k > head { ", …, " } else { ", " })?;
            }
            let first = first.saturating_add(k.saturating_mul(strides[axis]));
            self.format_axis(f, axis + 1, first, strides, shown)?;
        }
        f.write_str("]")
    }
}

pub(super) const SHORT: usize = 4;

/// Formats type, shape and the first elements: `float32[2, 900] [[1.5, 0.0, 2.0, …, 0.0], …]`.
impl fmt::Display for DenseTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} ", self.dtype, self.shape)?;
        self.format_axis(f, 0, 0, &self.strides(), SHORT)
    }
}

/// Tensors are equal if type, shape and bytes are equal; NaN equals NaN of the same bits.
impl PartialEq for DenseTensor {
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.buffer == other.buffer
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn lengths_and_booleans_are_checked() {
        let b = || Buffer::from_vec(vec![0u8, 1, 2, 3]);
        assert!(DenseTensor::try_new(DType::U8, [4], b()).is_ok());
        assert!(DenseTensor::try_new(DType::U16, [2], b()).is_ok());
        for (dtype, shape) in [
            (DType::U8, vec![5]),
            (DType::U16, vec![4]),
            (DType::U8, vec![]),
            (DType::U8, vec![usize::MAX, 2]),
        ] {
            assert!(DenseTensor::try_new(dtype, shape, b()).is_err());
        }
        let e = DenseTensor::try_new(DType::Bool, [4], b()).unwrap_err().to_string();
        assert!(e.contains("element 2") && e.contains("byte 2"), "{e}");
        assert!(DenseTensor::from_vec([3], vec![1u8]).is_err());
        let empty = DenseTensor::from_vec([usize::MAX, 0, 7], Vec::<f64>::new()).unwrap();
        assert_eq!(empty.num_elements(), 0);
        assert_eq!(empty.slice(5, 1).unwrap().shape(), [1, 0, 7]);
        let scalar = DenseTensor::from_vec([], vec![7i8]).unwrap();
        assert_eq!(scalar.to_string(), "int8[] 7");
        assert!(scalar.slice(0, 0).is_err());
    }

    #[test]
    fn misaligned_buffers_are_copied_aligned_ones_are_not() {
        let whole = Buffer::from_vec(vec![0u32, 1, 2]);
        let aligned = DenseTensor::try_new(DType::U32, [2], whole.slice(4)).unwrap();
        assert_eq!(aligned.as_slice::<u32>().unwrap(), [1, 2]);
        assert_eq!(aligned.buffer().as_ptr(), whole.slice(4).as_ptr());
        let bytes: Vec<u8> = std::iter::once(9).chain(7u64.to_ne_bytes()).collect();
        let odd = Buffer::from_vec(bytes).slice(1);
        let t = DenseTensor::try_new(DType::U64, [1], odd).unwrap();
        assert_eq!(t.as_slice::<u64>().unwrap(), [7]);
    }

    #[test]
    fn rows_are_views() {
        let t = DenseTensor::from_vec([3, 2], vec![1f32, 2., 3., 4., 5., 6.]).unwrap();
        let s = t.slice(1, 2).unwrap();
        assert_eq!(s.shape(), [2, 2]);
        assert_eq!(
            s.as_slice::<f32>().unwrap().as_ptr(),
            t.as_slice::<f32>().unwrap()[2..].as_ptr()
        );
        let r = t.row(2).unwrap();
        assert_eq!((r.shape(), r.as_slice::<f32>().unwrap()), (&[2][..], &[5f32, 6.][..]));
        assert!(t.slice(2, 2).is_err() && t.row(3).is_err());
        assert!(t.slice(usize::MAX, 1).is_err());
        assert_eq!(t.reshape([6]).unwrap().shape(), [6]);
        assert!(t.reshape([4]).is_err());
    }

    #[test]
    fn elements_read_only_as_their_type() {
        let t = DenseTensor::from_bools([2], [true, false]).unwrap();
        assert_eq!(t.as_slice::<u8>().unwrap(), [1, 0]);
        assert!(t.as_slice::<i8>().is_err());
        let t = DenseTensor::from_vec([1], vec![bf16::from_f32(1.5)]).unwrap();
        assert_eq!(t.as_slice::<bf16>().unwrap()[0].to_f32(), 1.5);
        assert!(t.as_slice::<f16>().is_err() && t.as_slice::<u16>().is_err());
    }

    #[test]
    fn display_is_short() {
        let t = DenseTensor::from_vec([1000, 1000], vec![1u8; 1_000_000]).unwrap();
        assert_eq!(t.row(0).unwrap().to_string(), "uint8[1000] [1, 1, 1, …, 1]");
        assert!(t.to_string().len() < 120, "{t}");
        let t = DenseTensor::from_bools([2, 0], []).unwrap();
        assert_eq!(t.to_string(), "bool[2, 0] [[], []]");
    }
}
