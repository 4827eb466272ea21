//! Comparisons of numbers and times, 64 values at a time.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{
    ArrowNativeType, DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::{BinaryOp, SideValues};
use crate::error::Result;
use crate::kernels::flags::{PackFlags, PortablePack, WORD};
use crate::kernels::native::{find_native_int, reinterpret_values};
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::Avx2;
use crate::kernels::simd::for_avx2;

/// A type whose values convert to integer keys; the keys compare like the values.
trait Comparable: Copy + Default {
    type Key: Copy + Ord;

    fn key(self) -> Self::Key;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Comparable for $t {
            type Key = $t;

            #[inline(always)]
            fn key(self) -> $t {
                self
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($t:ty => $key:ty),*) => {$(
        /// The order of floats is total: both zeros are equal, and all NaN are equal and greatest.
        impl Comparable for $t {
            type Key = $key;

            #[inline(always)]
            fn key(self) -> $key {
                let bits = self.to_bits().cast_signed();
                let below = (bits >> (<$key>::BITS - 1)) & <$key>::MAX;
                let key = bits ^ below;
                // The key of -0.0 is -1 here and that of 0.0 is 0, so give both the key 0.
                let key = if key == -1 { 0 } else { key };
                if self.is_nan() { <$key>::MAX } else { key }
            }
        }
    )*};
}
floats!(f32 => i32, f64 => i64);

/// Compares operands of the same numeric or time type. Returns `None` for other types and for null
/// scalars.
pub(super) fn compare_sides(
    op: BinaryOp,
    left: &SideValues,
    right: &SideValues,
) -> Result<Option<ArrayRef>> {
    let given = left.values().data_type();
    let one_null = |side: &SideValues| matches!(side, SideValues::One(v) if v.is_null(0));
    if given != right.values().data_type() || one_null(left) || one_null(right) {
        return Ok(None);
    }
    let native = find_native_int(given).unwrap_or_else(|| given.clone());
    let as_one = |side: &SideValues| -> Result<SideValues> {
        Ok(match side {
            SideValues::Each(v) => SideValues::Each(reinterpret_values(v, &native)?),
            SideValues::One(v) => SideValues::One(reinterpret_values(v, &native)?),
        })
    };
    let (left, right) = (&as_one(left)?, &as_one(right)?);
    Ok(match &native {
        DataType::Int8 => compare_typed::<Int8Type>(op, left, right),
        DataType::Int16 => compare_typed::<Int16Type>(op, left, right),
        DataType::Int32 => compare_typed::<Int32Type>(op, left, right),
        DataType::Int64 => compare_typed::<Int64Type>(op, left, right),
        DataType::UInt8 => compare_typed::<UInt8Type>(op, left, right),
        DataType::UInt16 => compare_typed::<UInt16Type>(op, left, right),
        DataType::UInt32 => compare_typed::<UInt32Type>(op, left, right),
        DataType::UInt64 => compare_typed::<UInt64Type>(op, left, right),
        DataType::Float32 => compare_typed::<Float32Type>(op, left, right),
        DataType::Float64 => compare_typed::<Float64Type>(op, left, right),
        _ => None,
    })
}

/// Values of one operand: an array, or a scalar repeated 64 times.
#[derive(Clone, Copy)]
enum WordOperand<'a, T> {
    Each(&'a [T]),
    One([T; WORD]),
}

impl<'a, N: Comparable + ArrowNativeType> WordOperand<'a, N> {
    fn new<T: ArrowPrimitiveType<Native = N>>(side: &'a SideValues) -> Self {
        match side {
            SideValues::Each(v) => Self::Each(v.as_primitive::<T>().values()),
            SideValues::One(v) => Self::One([v.as_primitive::<T>().value(0); WORD]),
        }
    }

    /// Returns the [`WORD`] values from index `at` on; values past the end of the operand are
    /// unspecified.
    #[inline(always)]
    fn read_padded_word(&self, at: usize) -> [N; WORD] {
        match self {
            Self::Each(values) => {
                let mut word = [N::default(); WORD];
                let rest = &values[at.min(values.len())..];
                let n = rest.len().min(WORD);
                word[..n].copy_from_slice(&rest[..n]);
                word
            }
            Self::One(word) => *word,
        }
    }
}

fn compare_typed<T: ArrowPrimitiveType<Native: Comparable>>(
    op: BinaryOp,
    left: &SideValues,
    right: &SideValues,
) -> Option<ArrayRef> {
    let values = |side: &SideValues| -> Option<(Option<usize>, Option<NullBuffer>)> {
        let values = side.values().as_primitive_opt::<T>()?;
        Some(match side {
            SideValues::Each(_) => (Some(values.len()), values.nulls().cloned()),
            SideValues::One(_) => (None, None),
        })
    };
    let ((a_len, a_nulls), (b_len, b_nulls)) = (values(left)?, values(right)?);
    let len = match (a_len, b_len) {
        (Some(a), Some(b)) if a != b => return None,
        (Some(len), _) | (_, Some(len)) => len,
        (None, None) => return None,
    };
    let (a, b) = (WordOperand::new::<T>(left), WordOperand::new::<T>(right));
    // `==` and `<` suffice: `a > b` is `b < a` (`swapped`), and `a >= b` is not `a < b` (`not`).
    let (less, swapped, not) = match op {
        BinaryOp::Eq => (false, false, false),
        BinaryOp::NotEq => (false, false, true),
        BinaryOp::Lt => (true, false, false),
        BinaryOp::GtEq => (true, false, true),
        BinaryOp::Gt => (true, true, false),
        BinaryOp::LtEq => (true, true, true),
        _ => return None,
    };
    let (a, b) = if swapped { (b, a) } else { (a, b) };
    let flip = if not { u64::MAX } else { 0 };
    let words = match less {
        true => dispatch_words::<T::Native, true>(a, b, len, flip),
        false => dispatch_words::<T::Native, false>(a, b, len, flip),
    };
    let bits = BooleanBuffer::new(Buffer::from_vec(words), 0, len);
    let nulls = NullBuffer::union(a_nulls.as_ref(), b_nulls.as_ref());
    Some(Arc::new(BooleanArray::new(bits, nulls)))
}

fn dispatch_words<T: Comparable + ArrowNativeType, const LESS: bool>(
    a: WordOperand<'_, T>,
    b: WordOperand<'_, T>,
    len: usize,
    flip: u64,
) -> Vec<u64> {
    for_avx2!(
        fn[T: Comparable + ArrowNativeType, const LESS: bool]::[T, LESS](
            a: WordOperand<'_, T>,
            b: WordOperand<'_, T>,
            len: usize,
            flip: u64,
        ) -> Vec<u64> = collect_words::<T, LESS>(a, b, len, flip, Avx2::new()),
        else collect_words::<T, LESS>(a, b, len, flip, PortablePack)
    )
}

#[inline(always)]
fn collect_words<T: Comparable + ArrowNativeType, const LESS: bool>(
    a: WordOperand<'_, T>,
    b: WordOperand<'_, T>,
    len: usize,
    flip: u64,
    pack: impl PackFlags,
) -> Vec<u64> {
    let mut out = Vec::with_capacity(len.div_ceil(WORD));
    match (&a, &b) {
        (WordOperand::Each(a), WordOperand::Each(b)) => {
            let (a, b) = (a.as_chunks::<WORD>().0, b.as_chunks::<WORD>().0);
            for i in 0..a.len().min(b.len()) {
                out.push((collect_word::<T, LESS>(&a[i], &b[i], pack) ^ flip).to_le());
            }
        }
        (WordOperand::Each(a), WordOperand::One(b)) => {
            for a in a.as_chunks::<WORD>().0 {
                out.push((collect_word::<T, LESS>(a, b, pack) ^ flip).to_le());
            }
        }
        (WordOperand::One(a), WordOperand::Each(b)) => {
            for b in b.as_chunks::<WORD>().0 {
                out.push((collect_word::<T, LESS>(a, b, pack) ^ flip).to_le());
            }
        }
        (WordOperand::One(_), WordOperand::One(_)) => {}
    }
    let done = out.len() * WORD;
    if done < len {
        let (a, b) = (a.read_padded_word(done), b.read_padded_word(done));
        let rest = collect_word::<T, LESS>(&a, &b, pack) ^ flip;
        out.push((rest & (u64::MAX >> (WORD - (len - done)))).to_le());
    }
    out
}

#[inline(always)]
fn collect_word<T: Comparable + ArrowNativeType, const LESS: bool>(
    a: &[T; WORD],
    b: &[T; WORD],
    pack: impl PackFlags,
) -> u64 {
    let mut flags = [0u8; WORD];
    // Loop over indices, because the compiler might not inline the closures of a zip.
    for i in 0..WORD {
        let (a, b) = (a[i].key(), b[i].key());
        flags[i] = u8::from(if LESS { a < b } else { a == b });
    }
    pack.pack_flags(&flags)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use arrow::array::{Date32Array, Float32Array, Float64Array, UInt16Array};

    use super::*;

    type Holds = fn(Ordering) -> bool;

    const OPS: [(BinaryOp, Holds); 6] = [
        (BinaryOp::Eq, Ordering::is_eq),
        (BinaryOp::NotEq, Ordering::is_ne),
        (BinaryOp::Lt, Ordering::is_lt),
        (BinaryOp::LtEq, Ordering::is_le),
        (BinaryOp::Gt, Ordering::is_gt),
        (BinaryOp::GtEq, Ordering::is_ge),
    ];

    /// Checks all comparisons; `order(i, j)` returns the expected order of `a[i]` and `b[j]`.
    fn check(a: &ArrayRef, b: &ArrayRef, order: impl Fn(usize, usize) -> Ordering) {
        for (start, len) in [(0, a.len()), (3, 70), (1, 64), (5, 0), (2, 63)] {
            let (a, b) = (a.slice(start, len), b.slice(start, len));
            for (op, holds) in OPS {
                let run =
                    |l: SideValues, r: SideValues| compare_sides(op, &l, &r).unwrap().unwrap();
                let got = run(SideValues::Each(a.clone()), SideValues::Each(b.clone()));
                let got = got.as_boolean();
                assert_eq!(got.len(), len);
                for i in 0..len {
                    let there = a.is_valid(i) && b.is_valid(i);
                    let expected = there.then(|| holds(order(start + i, start + i)));
                    let found = got.is_valid(i).then(|| got.value(i));
                    assert_eq!(found, expected, "{op:?} at {i} of {len}");
                }
                if len == 0 || b.is_null(len / 2) || a.is_null(len / 2) {
                    continue;
                }
                let (one_a, one_b) = (a.slice(len / 2, 1), b.slice(len / 2, 1));
                let right = run(SideValues::Each(a.clone()), SideValues::One(one_b));
                let left = run(SideValues::One(one_a), SideValues::Each(b.clone()));
                for i in 0..len {
                    let found = |x: &ArrayRef| x.is_valid(i).then(|| x.as_boolean().value(i));
                    let (i, middle) = (start + i, start + len / 2);
                    let expected = holds(order(i, middle));
                    assert_eq!(found(&right), a.is_valid(i - start).then_some(expected));
                    let expected = holds(order(middle, i));
                    assert_eq!(found(&left), b.is_valid(i - start).then_some(expected));
                }
            }
        }
    }

    #[test]
    fn integers_and_dates_of_any_number() {
        let a: Vec<Option<u16>> =
            (0..200u16).map(|i| (i % 11 != 4).then_some(i.wrapping_mul(40_503) % 7)).collect();
        let b: Vec<Option<u16>> =
            (0..200u16).map(|i| (i % 13 != 5).then_some(i.wrapping_mul(30_011) % 7)).collect();
        let order = |i: usize, j: usize| a[i].unwrap_or(0).cmp(&b[j].unwrap_or(0));
        let whole = |v: &[Option<u16>]| Arc::new(UInt16Array::from(v.to_vec())) as ArrayRef;
        check(&whole(&a), &whole(&b), order);
        let dates = |v: &[Option<u16>]| {
            Arc::new(v.iter().map(|d| d.map(i32::from)).collect::<Date32Array>()) as ArrayRef
        };
        check(&dates(&a), &dates(&b), order);
    }

    #[test]
    fn floats_in_their_total_order_with_one_zero() {
        let some = [
            f64::NEG_INFINITY,
            -1.5,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1.5,
            f64::INFINITY,
            f64::NAN,
        ];
        let a: Vec<f64> = (0..150).map(|i| some[i * 5 % some.len()]).collect();
        let b: Vec<f64> = (0..150).map(|i| some[i * 7 % some.len()]).collect();
        let plain = |x: f64| if x == 0.0 { 0.0 } else { x };
        let order = |i: usize, j: usize| plain(a[i]).total_cmp(&plain(b[j]));
        let whole = |v: &[f64]| Arc::new(Float64Array::from(v.to_vec())) as ArrayRef;
        check(&whole(&a), &whole(&b), order);
        #[expect(clippy::cast_possible_truncation, reason = "small numbers of 32 bits")]
        let narrow = |v: &[f64]| v.iter().map(|x| *x as f32).collect::<Vec<_>>();
        let (a, b) = (narrow(&a), narrow(&b));
        let plain = |x: f32| if x == 0.0 { 0.0 } else { x };
        let order = |i: usize, j: usize| plain(a[i]).total_cmp(&plain(b[j]));
        let whole = |v: &[f32]| Arc::new(Float32Array::from(v.to_vec())) as ArrayRef;
        check(&whole(&a), &whole(&b), order);
    }
}
