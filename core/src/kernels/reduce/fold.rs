//! Folds: a [`Fold`] is the accumulator of a reduction, such as a sum, and the operation that adds
//! a value to it. The loops in [`segments`](super::segments) and [`outer`](super::outer) use
//! several accumulators (lanes) at once, to shorten the dependency chain, and replace nulls with
//! [`NEUTRAL`](Fold::NEUTRAL).

use std::marker::PhantomData;

use super::block::{AbsentBlock, RegisterBlock};
#[cfg(target_arch = "x86_64")]
use super::registers::{DoubleExtremes, SingleExtremes, SumRegisters};
#[cfg(not(target_arch = "x86_64"))]
use AbsentBlock as SumRegisters;

/// Number of accumulators per list (lanes). They are combined after the last leaf of the list.
pub(super) const LANES: usize = 8;

pub(super) trait Fold: Sized {
    type Input: Copy;
    type Accumulator: Copy + Default;
    type RegisterBlock: RegisterBlock<Self>;
    const START: Self::Accumulator;
    const NEUTRAL: Self::Input;
    /// Whether to use several accumulators per list, which is faster if they fit SIMD lanes.
    const VECTORIZED: bool;

    fn push(acc: Self::Accumulator, value: Self::Input) -> Self::Accumulator;
    fn combine(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
}

/// A numeric type of leaves. [`Wide`](FoldNumber::Wide) is the type in which they are added up.
pub(super) trait FoldNumber: Copy {
    type Wide: Copy + Default + std::ops::Add<Output = Self::Wide>;
    const ZERO: Self;
    const WIDE_ZERO: Self::Wide;
    const VECTORIZED: bool;
    type SumBlock: RegisterBlock<SumFold<Self>>;

    fn widen(self) -> Self::Wide;
}

macro_rules! number {
    ($($t:ty => $wide:ty, $zero:expr, $vectorized:expr, $sums:ty);*) => {$(
        impl FoldNumber for $t {
            type Wide = $wide;
            const ZERO: Self = $zero;
            const WIDE_ZERO: $wide = $zero as $wide;
            const VECTORIZED: bool = $vectorized;
            type SumBlock = $sums;

            #[inline(always)]
            fn widen(self) -> $wide {
                <$wide>::from(self)
            }
        }
    )*};
}

// The sum of up to 2^31 values of 32 bits fits 64 bits; the values of longer arrays are first
// widened to 64 bits. The sum of up to 2^63 values of 64 bits fits 128 bits.
number!(
    i8 => i64, 0, true, AbsentBlock; i16 => i64, 0, true, AbsentBlock; i32 => i64, 0, true, AbsentBlock;
    u8 => u64, 0, true, AbsentBlock; u16 => u64, 0, true, AbsentBlock; u32 => u64, 0, true, AbsentBlock;
    i64 => i128, 0, false, AbsentBlock; u64 => i128, 0, false, AbsentBlock;
    f32 => f64, 0.0, true, SumRegisters; f64 => f64, 0.0, true, SumRegisters
);

pub(super) struct SumFold<T>(PhantomData<T>);

impl<T: FoldNumber> Fold for SumFold<T> {
    type Input = T;
    type Accumulator = T::Wide;
    const START: T::Wide = T::WIDE_ZERO;
    const NEUTRAL: T = T::ZERO;
    const VECTORIZED: bool = T::VECTORIZED;
    type RegisterBlock = T::SumBlock;

    #[inline(always)]
    fn push(acc: T::Wide, value: T) -> T::Wide {
        acc + value.widen()
    }

    #[inline(always)]
    fn combine(a: T::Wide, b: T::Wide) -> T::Wide {
        a + b
    }
}

pub(super) struct FloatProduct<T>(PhantomData<T>);

macro_rules! float_product {
    ($($t:ty),*) => {$(
        impl Fold for FloatProduct<$t> {
            type Input = $t;
            type Accumulator = f64;
            const START: f64 = 1.0;
            const NEUTRAL: $t = 1.0;
            const VECTORIZED: bool = true;
            type RegisterBlock = AbsentBlock;

            #[inline(always)]
            fn push(acc: f64, value: $t) -> f64 {
                acc * f64::from(value)
            }

            #[inline(always)]
            fn combine(a: f64, b: f64) -> f64 {
                a * b
            }
        }
    )*};
}
float_product!(f32, f64);

/// Product of integers. The accumulator is `None` after an overflow, until a factor of 0 makes
/// it 0.
pub(super) struct IntProduct<T>(PhantomData<T>);

macro_rules! int_product {
    ($($t:ty),*) => {$(
        impl Fold for IntProduct<$t> {
            type Input = $t;
            type Accumulator = Option<i128>;
            const START: Option<i128> = Some(1);
            const NEUTRAL: $t = 1;
            const VECTORIZED: bool = false;
            type RegisterBlock = AbsentBlock;

            #[inline]
            fn push(acc: Option<i128>, value: $t) -> Option<i128> {
                if value == 0 { Some(0) } else { acc.and_then(|a| a.checked_mul(value.into())) }
            }

            #[inline]
            fn combine(a: Option<i128>, b: Option<i128>) -> Option<i128> {
                match (a, b) {
                    (Some(0), _) | (_, Some(0)) => Some(0),
                    (Some(a), Some(b)) => a.checked_mul(b),
                    _ => None,
                }
            }
        }
    )*};
}
int_product!(i8, i16, i32, i64, u8, u16, u32, u64);

pub(super) trait MinOrMax: Copy {
    const MAX: bool;
}
#[derive(Clone, Copy)]
pub(super) struct Smallest;
#[derive(Clone, Copy)]
pub(super) struct Largest;
impl MinOrMax for Smallest {
    const MAX: bool = false;
}
impl MinOrMax for Largest {
    const MAX: bool = true;
}

pub(super) trait OrderedNumber: Copy + Default {
    const LEAST: Self;
    const GREATEST: Self;
    type ExtremeBlock<W: MinOrMax>: RegisterBlock<ExtremeFold<Self, W>>;

    /// Returns the smaller or the larger value (`W` selects which); NaN if either is NaN.
    fn best<W: MinOrMax>(value: Self, current: Self) -> Self;
    /// Replaces -0.0 with 0.0. Otherwise the order of evaluation would decide which zero is the
    /// result.
    fn one_zero(self) -> Self;
}

macro_rules! ordered_integers {
    ($($t:ty),*) => {$(
        impl OrderedNumber for $t {
            const LEAST: Self = <$t>::MIN;
            const GREATEST: Self = <$t>::MAX;
            type ExtremeBlock<W: MinOrMax> = AbsentBlock;

            #[inline(always)]
            fn best<W: MinOrMax>(value: Self, current: Self) -> Self {
                if W::MAX { value.max(current) } else { value.min(current) }
            }

            #[inline(always)]
            fn one_zero(self) -> Self {
                self
            }
        }
    )*};
}
ordered_integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! ordered_floats {
    ($($t:ty, $block:ident);*) => {$(
        impl OrderedNumber for $t {
            const LEAST: Self = <$t>::NEG_INFINITY;
            const GREATEST: Self = <$t>::INFINITY;
            #[cfg(target_arch = "x86_64")]
            type ExtremeBlock<W: MinOrMax> = $block<W>;
            #[cfg(not(target_arch = "x86_64"))]
            type ExtremeBlock<W: MinOrMax> = AbsentBlock;

            #[inline(always)]
            fn best<W: MinOrMax>(value: Self, current: Self) -> Self {
                // Compiles to `min` or `max`, which return `current` if `value` is NaN.
                let better = if W::MAX { value > current } else { value < current };
                let best = if better { value } else { current };
                if value.is_nan() { value } else { best }
            }

            #[inline(always)]
            fn one_zero(self) -> Self {
                if self.is_nan() { Self::NAN } else { self + 0.0 }
            }
        }
    )*};
}
ordered_floats!(f32, SingleExtremes; f64, DoubleExtremes);

pub(super) struct ExtremeFold<T, W>(PhantomData<(T, W)>);

impl<T: OrderedNumber, W: MinOrMax> Fold for ExtremeFold<T, W> {
    type Input = T;
    type Accumulator = T;
    const START: T = if W::MAX { T::LEAST } else { T::GREATEST };
    const NEUTRAL: T = Self::START;
    const VECTORIZED: bool = true;
    type RegisterBlock = T::ExtremeBlock<W>;

    #[inline(always)]
    fn push(acc: T, value: T) -> T {
        T::best::<W>(value, acc)
    }

    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        T::best::<W>(b, a)
    }
}
