//! Conversion of dense tensors from and to Arrow arrays.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, FixedSizeListArray, Float32Array,
    PrimitiveArray, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, Field, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use half::bf16;

use super::{DType, DenseTensor};
use crate::array::exact_casts::cast_strictly;
use crate::error::{Error, Result};

fn share_primitive<T: ArrowPrimitiveType>(buffer: &Buffer) -> ArrayRef {
    // The buffer of a tensor is aligned for its type, so the array can share it.
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(buffer.clone()), None))
}

/// Writes each bit of `bits` as one byte, 0 or 1, to `out`.
pub(crate) fn unpack_bits(bits: &BooleanBuffer, out: &mut [u8]) {
    /// `BYTES[b][i]` is bit `i` of the byte `b`, as a byte with the value 0 or 1.
    const BYTES: [[u8; 8]; 256] = {
        let mut table = [[0u8; 8]; 256];
        let mut i = 0;
        while i < 256 {
            let mut bit = 0;
            while bit < 8 {
                if (i >> bit) & 1 == 1 {
                    table[i][bit] = 1;
                }
                bit += 1;
            }
            i += 1;
        }
        table
    };
    let (mut chunks, mut i) = (out.chunks_exact_mut(8), 0);
    let packed = bits.values();
    if bits.offset().is_multiple_of(8) {
        let first = bits.offset() / 8;
        for (chunk, byte) in chunks.by_ref().zip(&packed[first..]) {
            if let Some(chunk) = chunk.first_chunk_mut() {
                *chunk = BYTES[usize::from(*byte)];
            }
            i += 8;
        }
    } else {
        for chunk in chunks.by_ref() {
            for b in chunk {
                *b = u8::from(bits.value(i));
                i += 1;
            }
        }
    }
    for b in chunks.into_remainder() {
        *b = u8::from(bits.value(i));
        i += 1;
    }
}

impl DenseTensor {
    /// Creates a one-dimensional tensor from a flat Arrow array: numbers share its memory, booleans
    /// are unpacked to bytes, and dates and times become the integers that store them.
    ///
    /// A null element keeps the value that the array stores for it; check
    /// [`null_count`](Array::null_count) first if nulls matter. `what` names the array in error
    /// messages.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::array::{BooleanArray, Int32Array, StringArray};
    /// use serrate::dense::DenseTensor;
    /// let codes = DenseTensor::from_flat(&Int32Array::from(vec![1, 2, 3]), "codes")?;
    /// assert_eq!(codes.to_string(), "int32[3] [1, 2, 3]");
    /// let flags = DenseTensor::from_flat(&BooleanArray::from(vec![true, false]), "flags")?;
    /// assert_eq!(flags.to_string(), "bool[2] [true, false]");
    /// assert!(DenseTensor::from_flat(&StringArray::from(vec!["a"]), "names").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// For all other types, such as strings and dictionaries.
    pub fn from_flat(array: &dyn Array, what: &str) -> Result<Self> {
        let dtype = DType::of_leaves(array.data_type(), what)?;
        let buffer = if let Some(b) = array.as_boolean_opt() {
            let mut bytes = vec![0u8; b.len()];
            unpack_bits(b.values(), &mut bytes);
            Buffer::from_vec(bytes)
        } else {
            let data = array.to_data();
            let size = dtype.size();
            // A sliced primitive array refers to its whole buffer, so apply its offset and length
            // here.
            data.buffers()[0].slice_with_length(data.offset() * size, data.len() * size)
        };
        Self::try_new_trusted(dtype, vec![array.len()], buffer)
    }

    /// Returns a flat Arrow array.
    ///
    /// Numbers share the memory of the tensor; bool is packed to bits, and bfloat16 becomes
    /// Float32.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1u8, 2, 3, 4])?;
    /// let flat = t.to_flat()?;
    /// assert_eq!(DenseTensor::from_flat(&flat, "x")?.reshape([2, 2])?, t);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: every element type converts to an Arrow type.
    pub fn to_flat(&self) -> Result<ArrayRef> {
        let buffer = self.buffer();
        Ok(match self.dtype() {
            DType::Bool => {
                let bytes = self.as_bytes();
                let bits = BooleanBuffer::collect_bool(bytes.len(), |i| bytes[i] != 0);
                Arc::new(BooleanArray::new(bits, None))
            }
            DType::U8 => share_primitive::<UInt8Type>(buffer),
            DType::U16 => share_primitive::<UInt16Type>(buffer),
            DType::U32 => share_primitive::<UInt32Type>(buffer),
            DType::U64 => share_primitive::<UInt64Type>(buffer),
            DType::I8 => share_primitive::<Int8Type>(buffer),
            DType::I16 => share_primitive::<Int16Type>(buffer),
            DType::I32 => share_primitive::<Int32Type>(buffer),
            DType::I64 => share_primitive::<Int64Type>(buffer),
            DType::F16 => share_primitive::<Float16Type>(buffer),
            DType::F32 => share_primitive::<Float32Type>(buffer),
            DType::F64 => share_primitive::<Float64Type>(buffer),
            DType::BF16 => Arc::new(Float32Array::from_iter_values(
                self.as_slice::<bf16>()?.iter().map(|v| v.to_f32()),
            )),
        })
    }

    /// Returns an Arrow array with one value per row: a `FixedSizeList<T not null>` of all elements
    /// of the row, or a flat array if the tensor has one axis.
    ///
    /// Numbers are not copied.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 3], vec![1u8, 2, 3, 4, 5, 6])?;
    /// let array = t.to_arrow()?;
    /// assert_eq!(array.len(), 2);
    /// assert_eq!(DenseTensor::try_from_arrow(&array)?, t);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor has no axes, or a row has more than 2^31 - 1 elements.
    pub fn to_arrow(&self) -> Result<ArrayRef> {
        let (rows, rest) = self.shape().split_first().ok_or_else(|| {
            Error::invalid("a tensor without axes has no rows; reshape it to [1] first")
        })?;
        let values = self.to_flat()?;
        if rest.is_empty() {
            return Ok(values);
        }
        let size = count_row_elements(rest)?;
        let item = Arc::new(Field::new_list_field(values.data_type().clone(), false));
        Ok(Arc::new(FixedSizeListArray::try_new_with_length(item, size, values, None, *rows)?))
    }

    /// Converts like [`to_arrow`](Self::to_arrow), with one `FixedSizeList` level per axis after
    /// the rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([1, 2, 2], vec![1u8, 2, 3, 4])?;
    /// let nested = t.to_arrow_nested()?;
    /// assert_eq!(DenseTensor::try_from_arrow(&nested)?, t);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor has no axes, or an axis is longer than 2^31 - 1.
    pub fn to_arrow_nested(&self) -> Result<ArrayRef> {
        if self.ndim() == 0 {
            return self.to_arrow();
        }
        let mut array = self.to_flat()?;
        for axis in (1..self.ndim()).rev() {
            let item = Arc::new(Field::new_list_field(array.data_type().clone(), false));
            let lists = super::tensor::count_shape_elements(&self.shape()[..axis]).ok_or_else(|| {
                Error::invalid(format!(
                    "a tensor of shape {:?} needs more nested lists than memory can address; reshape it to fewer axes first",
                    self.shape()
                ))
            })?;
            let size = count_row_elements(&self.shape()[axis..=axis])?;
            let list = FixedSizeListArray::try_new_with_length(item, size, array, None, lists)?;
            array = Arc::new(list);
        }
        Ok(array)
    }

    /// Returns the Arrow field for the array of [`to_arrow`](Self::to_arrow).
    ///
    /// If the tensor has several axes, the field has the canonical extension type
    /// `arrow.fixed_shape_tensor`, with the shape of one row.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([1, 2, 2], vec![1u8, 2, 3, 4])?;
    /// assert_eq!(t.field("x")?.metadata()["ARROW:extension:name"], "arrow.fixed_shape_tensor");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor has several axes, and a row has more than 2^31 - 1 elements.
    pub fn field(&self, name: &str) -> Result<Field> {
        let rest = self.shape().get(1..).unwrap_or_default();
        tensor_field(name, self.dtype(), rest)
    }

    /// Creates a tensor from nested `FixedSizeList`s of numbers, without a copy.
    ///
    /// Each level becomes an axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// use arrow::array::{ArrayRef, FixedSizeListArray, types::Int32Type};
    /// use serrate::dense::DenseTensor;
    /// let rows = [Some([Some(1), Some(2)]), Some([Some(3), Some(4)])];
    /// let lists = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(rows, 2);
    /// let lists: ArrayRef = Arc::new(lists);
    /// let t = DenseTensor::try_from_arrow(&lists)?;
    /// assert_eq!(t.to_string(), "int32[2, 2] [[1, 2], [3, 4]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are nulls (fill them) or variable-length lists (densify them), or leaves are not
    /// numeric.
    pub fn try_from_arrow(array: &ArrayRef) -> Result<Self> {
        let mut shape = vec![array.len()];
        let mut current = array.clone();
        loop {
            if current.null_count() > 0 {
                return Err(Error::invalid(format!(
                    "the array has {} null(s) at nesting level {} (level 0 has the rows), but a tensor cannot hold nulls; fill them first",
                    current.null_count(),
                    shape.len() - 1
                )));
            }
            let Some(list) = current.as_fixed_size_list_opt() else { break };
            let size = usize::try_from(list.value_length()).map_err(|_| {
                Error::invalid(format!(
                    "the array has a FixedSizeList of size {}; use a size of 0 or more",
                    list.value_length()
                ))
            })?;
            // Slicing a `FixedSizeListArray` also slices its values, so the first row starts at 0.
            let inner = list.values().slice(0, list.len() * size);
            shape.push(size);
            current = inner;
        }
        if let DataType::List(_) | DataType::LargeList(_) = current.data_type() {
            return Err(Error::type_of(
                "an array to convert to a tensor",
                "numbers, or FixedSizeLists of numbers (densify ragged lists first)",
                current.data_type(),
            ));
        }
        let flat = Self::from_flat(&current, "a tensor")?;
        flat.reshape(shape)
    }

    /// Converts the elements to `dtype`.
    ///
    /// Integer types truncate floats towards zero. In `Bool`, nonzero elements are true.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// let t = DenseTensor::from_vec([2], vec![1.7f32, -2.0])?;
    /// assert_eq!(t.cast(DType::I64)?.as_slice::<i64>()?, [1, -2]);
    /// assert!(t.cast(DType::U8).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a value does not fit (300 as uint8, NaN as an integer).
    pub fn cast(&self, dtype: DType) -> Result<Self> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        let shape = self.shape().to_vec();
        if dtype == DType::BF16 {
            let wide = self.cast(DType::F32)?;
            let values = wide.as_slice::<f32>()?.iter().map(|v| bf16::from_f32(*v)).collect();
            return Self::from_vec(shape, values);
        }
        // A bool tensor stores bytes 0 and 1: cast them as uint8, without packing them to bits.
        let source = match self.dtype() {
            DType::Bool if dtype == DType::U8 => {
                return Self::try_new_trusted(dtype, shape, self.buffer().clone());
            }
            DType::Bool => share_primitive::<UInt8Type>(self.buffer()),
            _ => self.to_flat()?,
        };
        if source.data_type() == &dtype.to_arrow() {
            return Self::from_flat(&source, "a cast")?.reshape(shape);
        }
        let out = cast_strictly(&source, &dtype.to_arrow())?;
        // `safe: false` reports values that do not fit as errors, so `out` has no nulls.
        let out = make_array(out.to_data());
        Self::from_flat(&out, "a cast")?.reshape(shape)
    }
}

fn count_row_elements(shape: &[usize]) -> Result<i32> {
    let n = super::tensor::count_shape_elements(shape);
    n.and_then(|n| i32::try_from(n).ok()).ok_or_else(|| {
        Error::invalid(format!(
            "a row of shape {shape:?} has more than 2^31 - 1 elements, the maximum of a FixedSizeList; use smaller rows"
        ))
    })
}

/// Returns the Arrow field of a tensor column whose rows have the shape `shape`.
///
/// For an empty shape, this is a field of the Arrow type of `dtype`. For other shapes, it is a
/// `FixedSizeList<T not null>` of all elements of a row, with the extension type
/// `arrow.fixed_shape_tensor`.
///
/// The metadata of the extension type is JSON like `{"shape":[256,64]}`, without optional keys.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::{DType, tensor_field};
/// let f = tensor_field("code", DType::U16, &[256, 64])?;
/// assert_eq!(f.metadata()["ARROW:extension:metadata"], r#"{"shape":[256,64]}"#);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If a row has more than 2^31 - 1 elements.
pub fn tensor_field(name: &str, dtype: DType, shape: &[usize]) -> Result<Field> {
    let leaf = dtype.to_arrow();
    if shape.is_empty() {
        return Ok(Field::new(name, leaf, false));
    }
    let item = Arc::new(Field::new_list_field(leaf, false));
    let list = DataType::FixedSizeList(item, count_row_elements(shape)?);
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    Ok(Field::new(name, list, false).with_metadata(
        [
            ("ARROW:extension:name".to_owned(), "arrow.fixed_shape_tensor".to_owned()),
            ("ARROW:extension:metadata".to_owned(), format!("{{\"shape\":[{}]}}", sizes.join(","))),
        ]
        .into(),
    ))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, Int32Array, ListArray, StringArray};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arrow_and_back_without_a_copy() {
        let t = DenseTensor::from_vec([2, 3], vec![1i32, 2, 3, 4, 5, 6]).unwrap();
        for array in [t.to_arrow().unwrap(), t.to_arrow_nested().unwrap()] {
            let back = DenseTensor::try_from_arrow(&array).unwrap();
            assert_eq!(back, t);
            assert_eq!(back.buffer().as_ptr(), t.buffer().as_ptr());
            let part = DenseTensor::try_from_arrow(&array.slice(1, 1)).unwrap();
            assert_eq!(part, t.slice(1, 1).unwrap());
            assert_eq!(part.as_bytes().as_ptr(), t.as_bytes()[12..].as_ptr());
        }
        let t = t.reshape([1, 2, 3]).unwrap();
        assert_eq!(t.to_arrow().unwrap().data_type(), t.field("x").unwrap().data_type());
        assert_eq!(DenseTensor::try_from_arrow(&t.to_arrow_nested().unwrap()).unwrap(), t);
        let t = DenseTensor::from_vec([3, 0, 2], Vec::<f32>::new()).unwrap();
        assert_eq!(t.to_arrow().unwrap().len(), 3);
        assert_eq!(DenseTensor::try_from_arrow(&t.to_arrow_nested().unwrap()).unwrap(), t);
    }

    #[test]
    fn what_is_no_tensor_is_refused() {
        let nulls: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
        assert!(DenseTensor::try_from_arrow(&nulls).unwrap_err().to_string().contains("fill"));
        let strings: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert!(DenseTensor::try_from_arrow(&strings).unwrap_err().to_string().contains("encode"));
        let lists: ArrayRef =
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]));
        assert!(DenseTensor::try_from_arrow(&lists).unwrap_err().to_string().contains("densify"));
        let huge = DenseTensor::from_vec([0, 1 << 20, 1 << 20], Vec::<u8>::new()).unwrap();
        assert!(huge.to_arrow().is_err());
        let days: ArrayRef = Arc::new(Date32Array::from(vec![3, 4]));
        assert_eq!(DenseTensor::try_from_arrow(&days).unwrap().dtype(), DType::I32);
    }

    #[test]
    fn every_type_casts_to_every_other() {
        let one = DenseTensor::from_vec([2, 2], vec![0u8, 1, 1, 0]).unwrap();
        for a in DType::ALL {
            let from = one.cast(a).unwrap();
            assert_eq!((from.dtype(), from.shape()), (a, &[2, 2][..]));
            for b in DType::ALL {
                let to = from.cast(b).unwrap();
                assert_eq!(to.dtype(), b);
                assert_eq!(to.cast(DType::U8).unwrap(), one, "{a} to {b}");
            }
        }
    }

    #[test]
    fn casts_that_lose_the_value_are_errors() {
        let t = |v: f64| DenseTensor::from_vec([1], vec![v]).unwrap();
        assert!(t(300.0).cast(DType::U8).is_err());
        assert!(t(-1.0).cast(DType::U64).is_err());
        assert!(t(f64::NAN).cast(DType::I32).is_err());
        assert_eq!(t(-2.9).cast(DType::I8).unwrap().as_slice::<i8>().unwrap(), [-2]);
        assert_eq!(t(0.5).cast(DType::Bool).unwrap().as_slice::<u8>().unwrap(), [1]);
        let big = DenseTensor::from_vec([1], vec![u64::MAX]).unwrap();
        assert!(big.cast(DType::I64).is_err());
        let b = t(1.00390625).cast(DType::BF16).unwrap();
        assert_eq!(b.to_flat().unwrap().as_primitive::<Float32Type>().value(0), 1.0);
    }

    proptest! {
        #[test]
        fn bits_unpack_at_every_offset(
            bits in proptest::collection::vec(any::<bool>(), 0..70),
            skip in 0usize..20,
        ) {
            let skip = skip.min(bits.len());
            let array = BooleanArray::from(bits.clone()).slice(skip, bits.len() - skip);
            let expected: Vec<u8> = bits[skip..].iter().map(|b| u8::from(*b)).collect();
            let t = DenseTensor::from_flat(&array, "bits").unwrap();
            prop_assert_eq!(t.as_slice::<u8>().unwrap(), &expected[..]);
            let back = t.to_flat().unwrap();
            prop_assert_eq!(back.as_boolean(), &array);
        }
    }
}
