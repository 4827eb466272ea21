//! Folds: the accumulator of a reduction, and how to add a value to it.
//!
//! A [`Fold`] does not know lists: [`segments`](super::segments) applies it to the leaves of each list, and
//! [`outer`](super::outer) to the leaves that a reduction along an outer axis combines. Both keep several
//! accumulators (lanes) to shorten the dependency chain, and replace nulls with [`NEUTRAL`](Fold::NEUTRAL).

use std::marker::PhantomData;

use super::block::{Absent, Block};
#[cfg(target_arch = "x86_64")]
use super::registers::{Doubles, Singles, Sums};
#[cfg(not(target_arch = "x86_64"))]
use Absent as Sums;

/// Number of accumulators per list (lanes). They are combined after the last leaf of the list.
pub(super) const LANES: usize = 8;

pub(super) trait Fold: Sized {
    type In: Copy;
    type Acc: Copy + Default;
    /// Accumulators of 64 values in AVX-512 registers.
    type Block: Block<Self>;
    const START: Self::Acc;
    /// Value that leaves every accumulator unchanged.
    const NEUTRAL: Self::In;
    /// Whether to use several accumulators per list, which is faster if an accumulator fits a SIMD
    /// lane.
    const VECTORIZED: bool;

    fn push(acc: Self::Acc, value: Self::In) -> Self::Acc;
    fn combine(a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

/// A type of leaves that are numbers. [`Wide`](FoldNumber::Wide) is the type in which the leaves
/// are added up.
pub(super) trait FoldNumber: Copy {
    type Wide: Copy + Default + std::ops::Add<Output = Self::Wide>;
    const ZERO: Self;
    const WIDE_ZERO: Self::Wide;
    const VECTORIZED: bool;
    type Sums: Block<Total<Self>>;

    fn widen(self) -> Self::Wide;
}

macro_rules! number {
    ($($t:ty => $wide:ty, $zero:expr, $vectorized:expr, $sums:ty);*) => {$(
        impl FoldNumber for $t {
            type Wide = $wide;
            const ZERO: Self = $zero;
            const WIDE_ZERO: $wide = $zero as $wide;
            const VECTORIZED: bool = $vectorized;
            type Sums = $sums;

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
    i8 => i64, 0, true, Absent; i16 => i64, 0, true, Absent; i32 => i64, 0, true, Absent;
    u8 => u64, 0, true, Absent; u16 => u64, 0, true, Absent; u32 => u64, 0, true, Absent;
    i64 => i128, 0, false, Absent; u64 => i128, 0, false, Absent;
    f32 => f64, 0.0, true, Sums; f64 => f64, 0.0, true, Sums
);

pub(super) struct Total<T>(PhantomData<T>);

impl<T: FoldNumber> Fold for Total<T> {
    type In = T;
    type Acc = T::Wide;
    const START: T::Wide = T::WIDE_ZERO;
    const NEUTRAL: T = T::ZERO;
    const VECTORIZED: bool = T::VECTORIZED;
    type Block = T::Sums;

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
            type In = $t;
            type Acc = f64;
            const START: f64 = 1.0;
            const NEUTRAL: $t = 1.0;
            const VECTORIZED: bool = true;
            type Block = Absent;

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

/// Product of integers. The accumulator is `None` after an overflow, until a factor of 0 makes it 0.
pub(super) struct IntProduct<T>(PhantomData<T>);

macro_rules! int_product {
    ($($t:ty),*) => {$(
        impl Fold for IntProduct<$t> {
            type In = $t;
            type Acc = Option<i128>;
            const START: Option<i128> = Some(1);
            const NEUTRAL: $t = 1;
            const VECTORIZED: bool = false;
            type Block = Absent;

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
    type Extremes<W: MinOrMax>: Block<Extreme<Self, W>>;

    /// Returns the smaller or the larger value (`W` selects which); NaN if either is NaN.
    fn best<W: MinOrMax>(value: Self, current: Self) -> Self;
    /// Replaces -0.0 with 0.0. Otherwise the order of evaluation would decide which zero is the result.
    fn one_zero(self) -> Self;
}

macro_rules! ordered_integers {
    ($($t:ty),*) => {$(
        impl OrderedNumber for $t {
            const LEAST: Self = <$t>::MIN;
            const GREATEST: Self = <$t>::MAX;
            type Extremes<W: MinOrMax> = Absent;

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
            type Extremes<W: MinOrMax> = $block<W>;
            #[cfg(not(target_arch = "x86_64"))]
            type Extremes<W: MinOrMax> = Absent;

            #[inline(always)]
            fn best<W: MinOrMax>(value: Self, current: Self) -> Self {
                // The comparisons compile to `min` and `max` instructions, which return `current`
                // if `value` is NaN.
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
ordered_floats!(f32, Singles; f64, Doubles);

pub(super) struct Extreme<T, W>(PhantomData<(T, W)>);

impl<T: OrderedNumber, W: MinOrMax> Fold for Extreme<T, W> {
    type In = T;
    type Acc = T;
    const START: T = if W::MAX { T::LEAST } else { T::GREATEST };
    const NEUTRAL: T = Self::START;
    const VECTORIZED: bool = true;
    type Block = T::Extremes<W>;

    #[inline(always)]
    fn push(acc: T, value: T) -> T {
        T::best::<W>(value, acc)
    }

    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        T::best::<W>(b, a)
    }
}
