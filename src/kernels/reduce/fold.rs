//! How values become one: what is kept in between, and how a value enters.
//!
//! A [`Fold`] knows nothing of lists. [`segments`](super::segments) feeds it lists,
//! [`outer`](super::outer) lists that lie over one another; both keep several states side by side, so
//! that one value need not wait for the one before, and both let what is not there in as
//! [`NEUTRAL`](Fold::NEUTRAL), so that a null costs no branch.

use std::marker::PhantomData;

use super::block::{Absent, Block};
#[cfg(target_arch = "x86_64")]
use super::registers::{Doubles, Singles, Sums};
#[cfg(not(target_arch = "x86_64"))]
use Absent as Sums;

/// Many values to one state.
pub(super) trait Fold: Sized {
    type In: Copy;
    type Acc: Copy + Default;
    /// The states of 64 values in wide registers.
    type Block: Block<Self>;
    /// The state before any value.
    const START: Self::Acc;
    /// A value that leaves every state as it is.
    const NEUTRAL: Self::In;
    /// Whether states side by side pay off: those that a register holds.
    const LANED: bool;

    fn push(acc: Self::Acc, value: Self::In) -> Self::Acc;
    /// What two states are together.
    fn join(a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

/// A number and the type that many of them are added in.
pub(super) trait Number: Copy {
    type Wide: Copy + Default + std::ops::Add<Output = Self::Wide>;
    const ZERO: Self;
    const NOTHING: Self::Wide;
    const LANED: bool;
    type Sums: Block<Total<Self>>;

    fn widen(self) -> Self::Wide;
}

macro_rules! number {
    ($($t:ty => $wide:ty, $zero:expr, $laned:expr, $sums:ty);*) => {$(
        impl Number for $t {
            type Wide = $wide;
            const ZERO: Self = $zero;
            const NOTHING: $wide = $zero as $wide;
            const LANED: bool = $laned;
            type Sums = $sums;

            #[inline(always)]
            fn widen(self) -> $wide {
                <$wide>::from(self)
            }
        }
    )*};
}

// 2^31 values of 32 bits fit 64 bits; more of them are handed over as 64 bits. 2^64 values of 64 bits
// would be needed to overflow 128.
number!(
    i8 => i64, 0, true, Absent; i16 => i64, 0, true, Absent; i32 => i64, 0, true, Absent;
    u8 => u64, 0, true, Absent; u16 => u64, 0, true, Absent; u32 => u64, 0, true, Absent;
    i64 => i128, 0, false, Absent; u64 => i128, 0, false, Absent;
    f32 => f64, 0.0, true, Sums; f64 => f64, 0.0, true, Sums
);

/// The sum.
pub(super) struct Total<T>(PhantomData<T>);

impl<T: Number> Fold for Total<T> {
    type In = T;
    type Acc = T::Wide;
    const START: T::Wide = T::NOTHING;
    const NEUTRAL: T = T::ZERO;
    const LANED: bool = T::LANED;
    type Block = T::Sums;

    #[inline(always)]
    fn push(acc: T::Wide, value: T) -> T::Wide {
        acc + value.widen()
    }

    #[inline(always)]
    fn join(a: T::Wide, b: T::Wide) -> T::Wide {
        a + b
    }
}

/// The product of floats.
pub(super) struct FloatProduct<T>(PhantomData<T>);

macro_rules! float_product {
    ($($t:ty),*) => {$(
        impl Fold for FloatProduct<$t> {
            type In = $t;
            type Acc = f64;
            const START: f64 = 1.0;
            const NEUTRAL: $t = 1.0;
            const LANED: bool = true;
            type Block = Absent;

            #[inline(always)]
            fn push(acc: f64, value: $t) -> f64 {
                acc * f64::from(value)
            }

            #[inline(always)]
            fn join(a: f64, b: f64) -> f64 {
                a * b
            }
        }
    )*};
}
float_product!(f32, f64);

/// The product of integers; `None` after an overflow, until a zero comes.
pub(super) struct IntProduct<T>(PhantomData<T>);

macro_rules! int_product {
    ($($t:ty),*) => {$(
        impl Fold for IntProduct<$t> {
            type In = $t;
            type Acc = Option<i128>;
            const START: Option<i128> = Some(1);
            const NEUTRAL: $t = 1;
            const LANED: bool = false;
            type Block = Absent;

            #[inline]
            fn push(acc: Option<i128>, value: $t) -> Option<i128> {
                if value == 0 { Some(0) } else { acc.and_then(|a| a.checked_mul(value.into())) }
            }

            #[inline]
            fn join(a: Option<i128>, b: Option<i128>) -> Option<i128> {
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

/// Which of two values is wanted.
pub(super) trait Which: Copy {
    const MAX: bool;
}
#[derive(Clone, Copy)]
pub(super) struct Smallest;
#[derive(Clone, Copy)]
pub(super) struct Largest;
impl Which for Smallest {
    const MAX: bool = false;
}
impl Which for Largest {
    const MAX: bool = true;
}

/// What has a least and a greatest value.
pub(super) trait Ordered: Copy + Default {
    const LEAST: Self;
    const GREATEST: Self;
    type Extremes<W: Which>: Block<Extreme<Self, W>>;

    /// The wanted one of both; of floats NaN, if one is.
    fn best<W: Which>(value: Self, so_far: Self) -> Self;
    /// 0 for either zero: which of them is found depends on the order that values are looked at.
    fn one_zero(self) -> Self;
}

macro_rules! ordered_integers {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            const LEAST: Self = <$t>::MIN;
            const GREATEST: Self = <$t>::MAX;
            type Extremes<W: Which> = Absent;

            #[inline(always)]
            fn best<W: Which>(value: Self, so_far: Self) -> Self {
                if W::MAX { value.max(so_far) } else { value.min(so_far) }
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
        impl Ordered for $t {
            const LEAST: Self = <$t>::NEG_INFINITY;
            const GREATEST: Self = <$t>::INFINITY;
            #[cfg(target_arch = "x86_64")]
            type Extremes<W: Which> = $block<W>;
            #[cfg(not(target_arch = "x86_64"))]
            type Extremes<W: Which> = Absent;

            #[inline(always)]
            fn best<W: Which>(value: Self, so_far: Self) -> Self {
                // What the processor's own minimum and maximum do with a NaN: keep the second.
                let better = if W::MAX { value > so_far } else { value < so_far };
                let best = if better { value } else { so_far };
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

/// The smallest or the largest value.
pub(super) struct Extreme<T, W>(PhantomData<(T, W)>);

impl<T: Ordered, W: Which> Fold for Extreme<T, W> {
    type In = T;
    type Acc = T;
    const START: T = if W::MAX { T::LEAST } else { T::GREATEST };
    const NEUTRAL: T = Self::START;
    const LANED: bool = true;
    type Block = T::Extremes<W>;

    #[inline(always)]
    fn push(acc: T, value: T) -> T {
        T::best::<W>(value, acc)
    }

    #[inline(always)]
    fn join(a: T, b: T) -> T {
        T::best::<W>(b, a)
    }
}
