//! How values become one: accumulators over slices and single values.

use std::marker::PhantomData;

use arrow::array::{ArrowNativeTypeOp, ArrowPrimitiveType};
use arrow::datatypes::{Float16Type, Float32Type, Float64Type, Int64Type, UInt64Type};
use half::f16;

/// Values of one type to one value of another.
pub(super) trait Fold {
    type In: ArrowPrimitiveType;
    type Out: ArrowPrimitiveType;
    /// The state in between.
    type Acc: Copy;
    /// Whether no values give null (or else what [`finish`](Self::finish) makes of the start).
    const NULL_OF_NOTHING: bool;

    fn start() -> Self::Acc;
    fn push(acc: &mut Self::Acc, value: <Self::In as ArrowPrimitiveType>::Native);
    /// As many pushes; the order of floating-point operations may be another.
    fn extend(acc: &mut Self::Acc, values: &[<Self::In as ArrowPrimitiveType>::Native]) {
        for v in values {
            Self::push(acc, *v);
        }
    }
    /// The result over `count` values; `None` when it does not fit.
    fn finish(acc: Self::Acc, count: usize) -> Option<<Self::Out as ArrowPrimitiveType>::Native>;
}

/// Integers that add up.
pub(super) trait Integer: Copy + Into<i128> {
    fn total(values: &[Self]) -> i128;
}

macro_rules! narrow_integer {
    ($($t:ty => $wide:ty),*) => {$(
        impl Integer for $t {
            #[inline]
            fn total(values: &[Self]) -> i128 {
                // 2^31 values of 32 bits fit 64 bits.
                let part = |v: &[Self]| i128::from(v.iter().map(|x| <$wide>::from(*x)).sum::<$wide>());
                if values.len() <= 1 << 31 { part(values) } else { values.chunks(1 << 31).map(part).sum() }
            }
        }
    )*};
}
narrow_integer!(i8 => i64, i16 => i64, i32 => i64, u8 => u64, u16 => u64, u32 => u64);

macro_rules! wide_integer {
    ($($t:ty),*) => {$(
        impl Integer for $t {
            #[inline]
            fn total(values: &[Self]) -> i128 {
                values.iter().map(|x| i128::from(*x)).sum()
            }
        }
    )*};
}
wide_integer!(i64, u64);

/// Floats that compute in 64 bits.
pub(super) trait Float: Copy + Into<f64> + PartialOrd {
    const INFINITY: Self;
    const NEG_INFINITY: Self;
    const NAN: Self;
    const ZERO: Self;
}

macro_rules! float {
    ($($t:ty, $zero:expr);*) => {$(
        impl Float for $t {
            const INFINITY: Self = <$t>::INFINITY;
            const NEG_INFINITY: Self = <$t>::NEG_INFINITY;
            const NAN: Self = <$t>::NAN;
            const ZERO: Self = $zero;
        }
    )*};
}
float!(f16, f16::ZERO; f32, 0.0; f64, 0.0);

/// Type of sums and means over floats: at least 32 bits.
pub(super) trait FloatType: ArrowPrimitiveType {
    type Out: ArrowPrimitiveType;
    fn round(value: f64) -> <Self::Out as ArrowPrimitiveType>::Native;
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to the result's width is wanted")]
fn to_f32(value: f64) -> f32 {
    value as f32
}

impl FloatType for Float16Type {
    type Out = Float32Type;
    fn round(value: f64) -> f32 {
        to_f32(value)
    }
}
impl FloatType for Float32Type {
    type Out = Float32Type;
    fn round(value: f64) -> f32 {
        to_f32(value)
    }
}
impl FloatType for Float64Type {
    type Out = Float64Type;
    fn round(value: f64) -> f64 {
        value
    }
}

/// Type of sums over integers: 64 bits of the same sign.
pub(super) trait IntType: ArrowPrimitiveType {
    type Out: ArrowPrimitiveType;
    fn narrow(value: i128) -> Option<<Self::Out as ArrowPrimitiveType>::Native>;
}

macro_rules! int_type {
    ($out:ty, $native:ty: $($t:ident),*) => {$(
        impl IntType for arrow::datatypes::$t {
            type Out = $out;
            fn narrow(value: i128) -> Option<$native> {
                value.try_into().ok()
            }
        }
    )*};
}
int_type!(Int64Type, i64: Int8Type, Int16Type, Int32Type, Int64Type);
int_type!(UInt64Type, u64: UInt8Type, UInt16Type, UInt32Type, UInt64Type);

#[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
fn ratio(sum: f64, count: usize) -> f64 {
    sum / count as f64
}

pub(super) struct IntSum<T>(PhantomData<T>);

impl<T: IntType<Native: Integer>> Fold for IntSum<T> {
    type In = T;
    type Out = T::Out;
    type Acc = i128;
    const NULL_OF_NOTHING: bool = false;

    fn start() -> i128 {
        0
    }
    #[inline]
    fn push(acc: &mut i128, value: T::Native) {
        // 2^64 values of 64 bits are needed to overflow.
        *acc += value.into();
    }
    #[inline]
    fn extend(acc: &mut i128, values: &[T::Native]) {
        *acc += Integer::total(values);
    }
    #[inline]
    fn finish(acc: i128, _: usize) -> Option<<T::Out as ArrowPrimitiveType>::Native> {
        T::narrow(acc)
    }
}

pub(super) struct IntMean<T>(PhantomData<T>);

impl<T: IntType<Native: Integer>> Fold for IntMean<T> {
    type In = T;
    type Out = Float64Type;
    type Acc = i128;
    const NULL_OF_NOTHING: bool = true;

    fn start() -> i128 {
        0
    }
    #[inline]
    fn push(acc: &mut i128, value: T::Native) {
        *acc += value.into();
    }
    #[inline]
    fn extend(acc: &mut i128, values: &[T::Native]) {
        *acc += Integer::total(values);
    }
    #[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
    #[inline]
    fn finish(acc: i128, count: usize) -> Option<f64> {
        Some(ratio(acc as f64, count))
    }
}

pub(super) struct IntProd<T>(PhantomData<T>);

impl<T: IntType<Native: Integer>> Fold for IntProd<T> {
    type In = T;
    type Out = T::Out;
    /// `None` after an overflow, until a zero comes.
    type Acc = Option<i128>;
    const NULL_OF_NOTHING: bool = false;

    fn start() -> Option<i128> {
        Some(1)
    }
    #[inline]
    fn push(acc: &mut Option<i128>, value: T::Native) {
        let value = value.into();
        *acc = if value == 0 { Some(0) } else { acc.and_then(|a| a.checked_mul(value)) };
    }
    fn finish(acc: Option<i128>, _: usize) -> Option<<T::Out as ArrowPrimitiveType>::Native> {
        acc.and_then(T::narrow)
    }
}

/// Accumulators that run side by side, so that one addition need not wait for the one before.
const LANES: usize = 8;

#[inline]
fn float_total<T: Float>(values: &[T]) -> f64 {
    let mut chunks = values.chunks_exact(LANES);
    let mut lanes = [0f64; LANES];
    for chunk in &mut chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane += (*v).into();
        }
    }
    let mut rest = 0f64;
    for v in chunks.remainder() {
        rest += (*v).into();
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    (((a + e) + (b + f)) + ((c + g) + (d + h))) + rest
}

pub(super) struct FloatSum<T>(PhantomData<T>);

impl<T: FloatType<Native: Float>> Fold for FloatSum<T> {
    type In = T;
    type Out = T::Out;
    type Acc = f64;
    const NULL_OF_NOTHING: bool = false;

    fn start() -> f64 {
        0.0
    }
    #[inline]
    fn push(acc: &mut f64, value: T::Native) {
        *acc += value.into();
    }
    #[inline]
    fn extend(acc: &mut f64, values: &[T::Native]) {
        *acc += float_total(values);
    }
    #[inline]
    fn finish(acc: f64, _: usize) -> Option<<T::Out as ArrowPrimitiveType>::Native> {
        Some(T::round(acc))
    }
}

pub(super) struct FloatMean<T>(PhantomData<T>);

impl<T: FloatType<Native: Float>> Fold for FloatMean<T> {
    type In = T;
    type Out = T::Out;
    type Acc = f64;
    const NULL_OF_NOTHING: bool = true;

    fn start() -> f64 {
        0.0
    }
    #[inline]
    fn push(acc: &mut f64, value: T::Native) {
        *acc += value.into();
    }
    #[inline]
    fn extend(acc: &mut f64, values: &[T::Native]) {
        *acc += float_total(values);
    }
    #[inline]
    fn finish(acc: f64, count: usize) -> Option<<T::Out as ArrowPrimitiveType>::Native> {
        Some(T::round(ratio(acc, count)))
    }
}

pub(super) struct FloatProd<T>(PhantomData<T>);

impl<T: FloatType<Native: Float>> Fold for FloatProd<T> {
    type In = T;
    type Out = T::Out;
    type Acc = f64;
    const NULL_OF_NOTHING: bool = false;

    fn start() -> f64 {
        1.0
    }
    #[inline]
    fn push(acc: &mut f64, value: T::Native) {
        *acc *= value.into();
    }
    fn finish(acc: f64, _: usize) -> Option<<T::Out as ArrowPrimitiveType>::Native> {
        Some(T::round(acc))
    }
}

/// Minimum or maximum.
pub(super) trait Which {
    const MAX: bool;
}
pub(super) struct Smallest;
pub(super) struct Largest;
impl Which for Smallest {
    const MAX: bool = false;
}
impl Which for Largest {
    const MAX: bool = true;
}

/// Minimum or maximum of what has a total order: integers, times, decimals.
pub(super) struct ValueExtreme<T, W>(PhantomData<(T, W)>);

impl<T: ArrowPrimitiveType, W: Which> Fold for ValueExtreme<T, W> {
    type In = T;
    type Out = T;
    type Acc = T::Native;
    const NULL_OF_NOTHING: bool = true;

    fn start() -> T::Native {
        if W::MAX { T::Native::MIN_TOTAL_ORDER } else { T::Native::MAX_TOTAL_ORDER }
    }
    #[inline]
    fn push(acc: &mut T::Native, value: T::Native) {
        let better = if W::MAX { value.is_gt(*acc) } else { value.is_lt(*acc) };
        *acc = if better { value } else { *acc };
    }
    #[inline]
    fn finish(acc: T::Native, _: usize) -> Option<T::Native> {
        Some(acc)
    }
}

/// Minimum or maximum of floats: NaN when there is one.
pub(super) struct FloatExtreme<T, W>(PhantomData<(T, W)>);

/// The best number so far, and a NaN once there was one.
#[derive(Clone, Copy)]
pub(super) struct Best<F> {
    best: F,
    nan: F,
}

#[inline]
fn better<F: Float, W: Which>(a: F, b: F) -> F {
    // Exactly what the processor's min and max do with a NaN: keep the second.
    if (W::MAX && a > b) || (!W::MAX && a < b) { a } else { b }
}

#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
#[inline]
fn nan_of<F: Float>(value: F, before: F) -> F {
    if value == value { before } else { value }
}

impl<T: ArrowPrimitiveType<Native: Float>, W: Which> Fold for FloatExtreme<T, W> {
    type In = T;
    type Out = T;
    type Acc = Best<T::Native>;
    const NULL_OF_NOTHING: bool = true;

    fn start() -> Self::Acc {
        let best = if W::MAX { Float::NEG_INFINITY } else { Float::INFINITY };
        Best { best, nan: Float::ZERO }
    }
    #[inline]
    fn push(acc: &mut Self::Acc, value: T::Native) {
        acc.best = better::<_, W>(value, acc.best);
        acc.nan = nan_of(value, acc.nan);
    }
    #[inline]
    fn extend(acc: &mut Self::Acc, values: &[T::Native]) {
        let start = Self::start();
        let mut best = [start.best; LANES];
        let mut nan = [start.nan; LANES];
        let mut chunks = values.chunks_exact(LANES);
        for chunk in &mut chunks {
            for ((best, nan), v) in best.iter_mut().zip(&mut nan).zip(chunk) {
                *best = better::<_, W>(*v, *best);
                *nan = nan_of(*v, *nan);
            }
        }
        for v in chunks.remainder() {
            Self::push(acc, *v);
        }
        if values.len() >= LANES {
            for (best, nan) in best.into_iter().zip(nan) {
                acc.best = better::<_, W>(best, acc.best);
                acc.nan = nan_of(nan, acc.nan);
            }
        }
    }
    #[inline]
    fn finish(acc: Self::Acc, _: usize) -> Option<T::Native> {
        Some(if nan_of(acc.nan, Float::ZERO) == Float::ZERO { acc.best } else { Float::NAN })
    }
}
