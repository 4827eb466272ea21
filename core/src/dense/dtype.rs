use std::fmt;
use std::str::FromStr;

use arrow::buffer::Buffer;
use arrow::datatypes::{ArrowNativeType, DataType};
use half::slice::HalfBitsSliceExt;
use half::{bf16, f16};

use crate::error::{Error, Result};

/// Element type of a [`DenseTensor`](super::DenseTensor).
///
/// These are the fixed-width types that tensor libraries share. `Bool` takes one byte per element,
/// 0 or 1 (Arrow packs eight booleans into a byte). `BF16` has no Arrow type and converts to
/// `Float32`.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::DataType;
/// use serrate::dense::DType;
/// assert_eq!("uint16".parse::<DType>()?, DType::U16);
/// assert_eq!("BF16".parse::<DType>()?, DType::BF16);
/// assert_eq!(DType::I64.to_string(), "int64");
/// assert_eq!(DType::I64.safetensors_name(), "I64");
/// assert_eq!(DType::from_arrow(&DataType::Float32), Some(DType::F32));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// A boolean, stored as one byte that is 0 or 1.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// IEEE half-precision float, 16 bits.
    F16,
    /// bfloat16: the upper 16 bits of a float32.
    BF16,
    /// IEEE single-precision float, 32 bits.
    F32,
    /// IEEE double-precision float, 64 bits.
    F64,
}

impl DType {
    /// All element types of dense tensors.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
    ];

    /// Returns the size of one element in bytes: 1, 2, 4 or 8.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// assert_eq!((DType::Bool.size(), DType::BF16.size(), DType::I64.size()), (1, 2, 8));
    /// ```
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Returns the name in Python's array libraries, such as `uint16` or `bfloat16`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// assert_eq!((DType::U16.name(), DType::BF16.name()), ("uint16", "bfloat16"));
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// Returns the name in the header of a safetensors file, such as `U16` or `BF16`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// assert_eq!((DType::U16.safetensors_name(), DType::BF16.safetensors_name()), ("U16", "BF16"));
    /// ```
    pub const fn safetensors_name(self) -> &'static str {
        match self {
            Self::Bool => "BOOL",
            Self::U8 => "U8",
            Self::U16 => "U16",
            Self::U32 => "U32",
            Self::U64 => "U64",
            Self::I8 => "I8",
            Self::I16 => "I16",
            Self::I32 => "I32",
            Self::I64 => "I64",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::F32 => "F32",
            Self::F64 => "F64",
        }
    }

    /// Returns the type with this name in safetensors files; `None` for other names, such as
    /// `F8_E4M3`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// assert_eq!(DType::from_safetensors_name("BF16"), Some(DType::BF16));
    /// assert_eq!(DType::from_safetensors_name("F8_E4M3"), None);
    /// ```
    pub fn from_safetensors_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.safetensors_name() == name)
    }

    /// Returns the Arrow type: `Boolean` for bool, `Float32` for bfloat16.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::arrow::datatypes::DataType;
    /// use serrate::dense::DType;
    /// assert_eq!(DType::I64.to_arrow(), DataType::Int64);
    /// assert_eq!(DType::BF16.to_arrow(), DataType::Float32);
    /// ```
    pub fn to_arrow(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::U8 => DataType::UInt8,
            Self::U16 => DataType::UInt16,
            Self::U32 => DataType::UInt32,
            Self::U64 => DataType::UInt64,
            Self::I8 => DataType::Int8,
            Self::I16 => DataType::Int16,
            Self::I32 => DataType::Int32,
            Self::I64 => DataType::Int64,
            Self::F16 => DataType::Float16,
            Self::BF16 | Self::F32 => DataType::Float32,
            Self::F64 => DataType::Float64,
        }
    }

    /// Returns the type for an Arrow boolean or number type; `None` for every other Arrow type.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::arrow::datatypes::DataType;
    /// use serrate::dense::DType;
    /// assert_eq!(DType::from_arrow(&DataType::Int32), Some(DType::I32));
    /// assert_eq!(DType::from_arrow(&DataType::Date32), None);
    /// ```
    pub fn from_arrow(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Bool,
            DataType::UInt8 => Self::U8,
            DataType::UInt16 => Self::U16,
            DataType::UInt32 => Self::U32,
            DataType::UInt64 => Self::U64,
            DataType::Int8 => Self::I8,
            DataType::Int16 => Self::I16,
            DataType::Int32 => Self::I32,
            DataType::Int64 => Self::I64,
            DataType::Float16 => Self::F16,
            DataType::Float32 => Self::F32,
            DataType::Float64 => Self::F64,
            _ => return None,
        })
    }

    /// Returns the element type of tensors converted from an Arrow type.
    ///
    /// Booleans and numbers keep their type; dates, times, timestamps and durations become the
    /// integers that store them.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::arrow::datatypes::DataType;
    /// use serrate::dense::DType;
    /// assert_eq!(DType::of_leaves(&DataType::Date32, "date")?, DType::I32);
    /// assert!(DType::of_leaves(&DataType::Utf8, "code").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// For all other types; the message suggests a conversion and names the column `what`.
    pub fn of_leaves(data_type: &DataType, what: &str) -> Result<Self> {
        let storage = match data_type {
            DataType::Date32 | DataType::Time32(_) => Some(Self::I32),
            DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
            | DataType::Duration(_) => Some(Self::I64),
            other => Self::from_arrow(other),
        };
        storage.ok_or_else(|| {
            let expected = match data_type {
                DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Dictionary(_, _) => {
                    "numbers, booleans, dates or times; encode strings to integers with a vocabulary first (the keys of a dictionary differ between batches and cannot replace a vocabulary)"
                }
                DataType::Decimal32(_, _)
                | DataType::Decimal64(_, _)
                | DataType::Decimal128(_, _)
                | DataType::Decimal256(_, _) => {
                    "numbers, booleans, dates or times; cast decimals to float64 first"
                }
                _ => "numbers, booleans, dates or times",
            };
            Error::type_of(what, expected, data_type)
        })
    }

    /// Returns whether the elements are signed or unsigned integers.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// assert!(DType::U8.is_integer());
    /// assert!(!DType::Bool.is_integer() && !DType::F32.is_integer());
    /// ```
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::U8
                | Self::U16
                | Self::U32
                | Self::U64
                | Self::I8
                | Self::I16
                | Self::I32
                | Self::I64
        )
    }

    /// Returns whether the elements are floating-point numbers.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use arrow::datatypes::DataType;
    /// use serrate::dense::DType;
    /// let dtype = DType::from_safetensors_name("BF16").unwrap();
    /// assert_eq!((dtype, dtype.name(), dtype.size()), (DType::BF16, "bfloat16", 2));
    /// assert!(dtype.is_float() && !dtype.is_integer());
    /// assert_eq!(DType::of_leaves(&DataType::Date32, "birth")?, DType::I32);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }
}

/// Writes the [`name`](DType::name) of the type, such as `uint16`.
impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses the name in Python (`uint16`) or in safetensors files (`U16`), ignoring case.
impl FromStr for DType {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let is = |name: &str| name.eq_ignore_ascii_case(s.trim());
        Self::ALL.into_iter().find(|d| is(d.name()) || is(d.safetensors_name())).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|d| d.name()).collect();
            Error::invalid(format!(
                "the element type {s:?} is unknown; use one of {}",
                names.join(", ")
            ))
        })
    }
}

mod sealed {
    pub trait Sealed: bytemuck::Pod {}
}

/// A Rust type that can hold the elements of a tensor.
///
/// Implemented for the integers, `f32`, `f64` and the types of [`half`]; `u8` also reads `Bool`, as
/// 0 and 1.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::{DType, TensorElement};
/// assert_eq!(u16::DTYPE, DType::U16);
/// assert!(u8::reads(DType::U8) && u8::reads(DType::Bool) && !u8::reads(DType::I8));
/// let buffer = u16::into_buffer(vec![1, 2]);
/// assert_eq!(u16::view(&buffer), Some(&[1, 2][..]));
/// ```
pub trait TensorElement:
    sealed::Sealed + Copy + fmt::Debug + Default + PartialEq + Send + Sync
{
    /// The element type that [`DenseTensor::from_vec`](super::DenseTensor::from_vec) creates.
    const DTYPE: DType;

    /// Returns whether a tensor of type `dtype` holds elements of this Rust type.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, TensorElement};
    /// assert!(f32::reads(DType::F32) && !f32::reads(DType::F64));
    /// assert!(u8::reads(DType::Bool));
    /// ```
    fn reads(dtype: DType) -> bool {
        dtype == Self::DTYPE
    }

    /// Converts a vector of elements to a buffer without copying.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::TensorElement;
    /// assert_eq!(u16::into_buffer(vec![1, 2]).len(), 4);
    /// ```
    fn into_buffer(values: Vec<Self>) -> Buffer;

    /// Views a buffer as elements; `None` if it is misaligned or ends within an element.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::TensorElement;
    /// let buffer = u16::into_buffer(vec![1, 2]);
    /// assert_eq!(u16::view(&buffer), Some(&[1, 2][..]));
    /// // 3 bytes end within the second element.
    /// assert_eq!(u16::view(&buffer.slice_with_length(0, 3)), None);
    /// ```
    fn view(buffer: &Buffer) -> Option<&[Self]>;

    /// Views the aligned whole elements in `bytes`; skips the bytes before the first and after the
    /// last.
    #[doc(hidden)]
    fn view_bytes(bytes: &[u8]) -> &[Self] {
        bytemuck::pod_align_to(bytes).1
    }
}

fn view_native<T: ArrowNativeType>(buffer: &Buffer) -> Option<&[T]> {
    let aligned = buffer.as_ptr().align_offset(align_of::<T>()) == 0;
    (aligned && buffer.len().is_multiple_of(size_of::<T>())).then(|| buffer.typed_data::<T>())
}

macro_rules! element {
    ($($native:ty => $dtype:ident $(, also $also:ident)?;)*) => {$(
        impl sealed::Sealed for $native {}
        impl TensorElement for $native {
            const DTYPE: DType = DType::$dtype;
            $(fn reads(dtype: DType) -> bool {
                dtype == Self::DTYPE || dtype == DType::$also
            })?
            fn into_buffer(values: Vec<Self>) -> Buffer {
                Buffer::from_vec(values)
            }
            fn view(buffer: &Buffer) -> Option<&[Self]> {
                view_native(buffer)
            }
        }
    )*};
}

element! {
    u8 => U8, also Bool;
    u16 => U16;
    u32 => U32;
    u64 => U64;
    i8 => I8;
    i16 => I16;
    i32 => I32;
    i64 => I64;
    f16 => F16;
    f32 => F32;
    f64 => F64;
}

impl sealed::Sealed for bf16 {}
impl TensorElement for bf16 {
    const DTYPE: DType = DType::BF16;

    fn into_buffer(values: Vec<Self>) -> Buffer {
        use half::vec::HalfFloatVecExt;
        Buffer::from_vec(values.reinterpret_into())
    }

    fn view(buffer: &Buffer) -> Option<&[Self]> {
        view_native::<u16>(buffer).map(|bits| bits.reinterpret_cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for d in DType::ALL {
            assert_eq!(d.name().parse::<DType>().unwrap(), d);
            assert_eq!(d.safetensors_name().to_lowercase().parse::<DType>().unwrap(), d);
            assert_eq!(DType::from_safetensors_name(d.safetensors_name()), Some(d));
            let arrow = DType::from_arrow(&d.to_arrow()).unwrap();
            assert_eq!(arrow, if d == DType::BF16 { DType::F32 } else { d });
        }
        let e = "complex64".parse::<DType>().unwrap_err().to_string();
        assert!(e.contains("complex64") && e.contains("bfloat16"), "{e}");
        assert_eq!(DType::from_safetensors_name("uint8"), None);
    }

    #[test]
    fn leaves_that_are_not_numbers_are_refused_with_advice() {
        assert_eq!(DType::of_leaves(&DataType::Date32, "d").unwrap(), DType::I32);
        let e = DType::of_leaves(&DataType::Utf8, "column \"code\"").unwrap_err().to_string();
        assert!(e.contains("column \"code\"") && e.contains("encode strings to integers"), "{e}");
        let dictionary = DataType::Dictionary(DataType::Int8.into(), DataType::Utf8.into());
        assert!(DType::of_leaves(&dictionary, "x").is_err());
        assert!(DType::of_leaves(&DataType::Null, "x").is_err());
    }

    #[test]
    fn misaligned_buffers_have_no_view() {
        let buffer = Buffer::from_vec(vec![0u64; 2]).slice_with_length(1, 8);
        assert!(u64::view(&buffer).is_none());
        assert!(bf16::view(&buffer).is_none());
        assert_eq!(u8::view(&buffer).unwrap().len(), 8);
    }
}
