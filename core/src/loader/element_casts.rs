//! Converts the elements of a column: to a common type if the shards store different types, and
//! integers to int64 if the option `tokens_as_i64` requires it.

use half::f16;

use crate::dense::DType;

/// Converts values in native byte order from one type to another. Returns `false` if a value is out
/// of the range of the new type.
pub(super) type ElementCast = fn(&[u8], &mut [u8]) -> bool;

trait NativeNumber: Copy {
    const SIZE: usize;
    fn read(bytes: &[u8]) -> Self;
    fn write(self, out: &mut [u8]);
}

/// Converts a number exactly, or an integer to the nearest float. Returns `None` if the number is
/// out of the range of `Self`.
trait FromNumber<S>: Sized {
    fn from_number(value: S) -> Option<Self>;
}

macro_rules! native {
    ($($t:ty),*) => {$(
        impl NativeNumber for $t {
            const SIZE: usize = size_of::<$t>();
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                // `first_chunk` compiles to one load; a copy from a slice would compile to a
                // function call.
                Self::from_ne_bytes(bytes.first_chunk().copied().unwrap_or_default())
            }
            #[inline(always)]
            fn write(self, out: &mut [u8]) {
                if let Some(out) = out.first_chunk_mut() {
                    *out = self.to_ne_bytes();
                }
            }
        }
    )*};
}
native!(u8, u16, u32, u64, i8, i16, i32, i64, f16, f32, f64);

macro_rules! to_integers {
    ($($s:ty),* => $targets:tt) => {$( to_integers!(@ $s => $targets); )*};
    (@ $s:ty => ($($d:ty),*)) => {$(
        impl FromNumber<$s> for $d {
            #[inline(always)]
            fn from_number(value: $s) -> Option<Self> {
                Self::try_from(value).ok()
            }
        }
    )*};
}
to_integers!(u8, u16, u32, u64, i8, i16, i32, i64 => (u16, u32, u64, i16, i32, i64));

macro_rules! to_floats {
    ($($s:ty),*) => {$(
        impl FromNumber<$s> for f32 {
            #[inline(always)]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless)]
            fn from_number(value: $s) -> Option<Self> {
                Some(value as Self)
            }
        }
        impl FromNumber<$s> for f64 {
            #[inline(always)]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless)]
            fn from_number(value: $s) -> Option<Self> {
                Some(value as Self)
            }
        }
    )*};
}
to_floats!(u8, u16, u32, u64, i8, i16, i32, i64);

impl FromNumber<f16> for f32 {
    fn from_number(value: f16) -> Option<Self> {
        Some(value.to_f32())
    }
}

impl FromNumber<f16> for f64 {
    fn from_number(value: f16) -> Option<Self> {
        Some(value.to_f64())
    }
}

impl FromNumber<u8> for f16 {
    fn from_number(value: u8) -> Option<Self> {
        Some(Self::from_f32(value.into()))
    }
}

impl FromNumber<i8> for f16 {
    fn from_number(value: i8) -> Option<Self> {
        Some(Self::from_f32(value.into()))
    }
}

impl FromNumber<f32> for f64 {
    fn from_number(value: f32) -> Option<Self> {
        Some(value.into())
    }
}

fn convert_all<S: NativeNumber, D: NativeNumber + FromNumber<S>>(
    from: &[u8],
    out: &mut [u8],
) -> bool {
    let mut fits = true;
    for (from, out) in from.chunks_exact(S::SIZE).zip(out.chunks_exact_mut(D::SIZE)) {
        match D::from_number(S::read(from)) {
            Some(value) => value.write(out),
            None => fits = false,
        }
    }
    fits
}

/// Returns the function that converts values of type `from` to `to`; `None` if type promotion never
/// converts `from` to `to`.
pub(super) fn find_converter(from: DType, to: DType) -> Option<ElementCast> {
    use DType as T;
    fn to_number<S: NativeNumber>(to: DType) -> Option<ElementCast>
    where
        u16: FromNumber<S>,
        u32: FromNumber<S>,
        u64: FromNumber<S>,
        i16: FromNumber<S>,
        i32: FromNumber<S>,
        i64: FromNumber<S>,
        f32: FromNumber<S>,
        f64: FromNumber<S>,
    {
        Some(match to {
            T::U16 => convert_all::<S, u16>,
            T::U32 => convert_all::<S, u32>,
            T::U64 => convert_all::<S, u64>,
            T::I16 => convert_all::<S, i16>,
            T::I32 => convert_all::<S, i32>,
            T::I64 => convert_all::<S, i64>,
            T::F32 => convert_all::<S, f32>,
            T::F64 => convert_all::<S, f64>,
            _ => return None,
        })
    }
    match from {
        // Booleans are bytes with the value 0 or 1, so copying them gives the 8-bit integers 0
        // and 1.
        T::Bool if matches!(to, T::U8 | T::I8) => Some(|from, out| {
            out.copy_from_slice(from);
            true
        }),
        T::Bool | T::U8 if to == T::F16 => Some(convert_all::<u8, f16>),
        T::I8 if to == T::F16 => Some(convert_all::<i8, f16>),
        T::Bool | T::U8 => to_number::<u8>(to),
        T::U16 => to_number::<u16>(to),
        T::U32 => to_number::<u32>(to),
        T::U64 => to_number::<u64>(to),
        T::I8 => to_number::<i8>(to),
        T::I16 => to_number::<i16>(to),
        T::I32 => to_number::<i32>(to),
        T::I64 => to_number::<i64>(to),
        T::F16 if to == T::F32 => Some(convert_all::<f16, f32>),
        T::F16 if to == T::F64 => Some(convert_all::<f16, f64>),
        T::F32 if to == T::F64 => Some(convert_all::<f32, f64>),
        _ => None,
    }
}
