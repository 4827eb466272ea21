//! How values become one: what is kept in between, and how a value enters.
//!
//! A [`Fold`] knows nothing of lists. [`segments`](super::segments) feeds it lists,
//! [`outer`](super::outer) lists that lie over one another; both keep several states side by side, so
//! that one value need not wait for the one before, and both let what is not there in as
//! [`NEUTRAL`](Fold::NEUTRAL), so that a null costs no branch.

use std::marker::PhantomData;

/// Many values to one state.
pub(super) trait Fold {
    type In: Copy;
    type Acc: Copy;
    /// The state before any value.
    const START: Self::Acc;
    /// A value that leaves every state as it is.
    const NEUTRAL: Self::In;
    /// Whether states side by side pay off: those that a register holds.
    const LANED: bool;
    /// Whether the values are floats: what reads them is compiled for 512-bit registers, too.
    const FLOATS: bool;

    fn push(acc: Self::Acc, value: Self::In) -> Self::Acc;
    /// What two states are together.
    fn join(a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

/// A number and the type that many of them are added in.
pub(super) trait Number: Copy {
    type Wide: Copy + std::ops::Add<Output = Self::Wide>;
    const ZERO: Self;
    const NOTHING: Self::Wide;
    const LANED: bool;
    const FLOATS: bool;

    fn widen(self) -> Self::Wide;
}

macro_rules! number {
    ($($t:ty => $wide:ty, $zero:expr, $laned:expr, $floats:expr);*) => {$(
        impl Number for $t {
            type Wide = $wide;
            const ZERO: Self = $zero;
            const NOTHING: $wide = $zero as $wide;
            const LANED: bool = $laned;
            const FLOATS: bool = $floats;

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
    i8 => i64, 0, true, false; i16 => i64, 0, true, false; i32 => i64, 0, true, false;
    u8 => u64, 0, true, false; u16 => u64, 0, true, false; u32 => u64, 0, true, false;
    i64 => i128, 0, false, false; u64 => i128, 0, false, false;
    f32 => f64, 0.0, true, true; f64 => f64, 0.0, true, true
);

/// The sum.
pub(super) struct Total<T>(PhantomData<T>);

impl<T: Number> Fold for Total<T> {
    type In = T;
    type Acc = T::Wide;
    const START: T::Wide = T::NOTHING;
    const NEUTRAL: T = T::ZERO;
    const LANED: bool = T::LANED;
    const FLOATS: bool = T::FLOATS;

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
            const FLOATS: bool = true;

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
            const FLOATS: bool = false;

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

/// What has a least and a greatest value.
pub(super) trait Ordered: Copy {
    const LEAST: Self;
    const GREATEST: Self;
    const FLOATS: bool;

    /// The wanted one of both; of floats NaN, if one is.
    fn best<W: Which>(value: Self, so_far: Self) -> Self;
}

macro_rules! ordered_integers {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            const LEAST: Self = <$t>::MIN;
            const GREATEST: Self = <$t>::MAX;
            const FLOATS: bool = false;

            #[inline(always)]
            fn best<W: Which>(value: Self, so_far: Self) -> Self {
                if W::MAX { value.max(so_far) } else { value.min(so_far) }
            }
        }
    )*};
}
ordered_integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! ordered_floats {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            const LEAST: Self = <$t>::NEG_INFINITY;
            const GREATEST: Self = <$t>::INFINITY;
            const FLOATS: bool = true;

            #[inline(always)]
            fn best<W: Which>(value: Self, so_far: Self) -> Self {
                // What the processor's own minimum and maximum do with a NaN: keep the second.
                let better = if W::MAX { value > so_far } else { value < so_far };
                let best = if better { value } else { so_far };
                if value.is_nan() { value } else { best }
            }
        }
    )*};
}
ordered_floats!(f32, f64);

/// The smallest or the largest value.
pub(super) struct Extreme<T, W>(PhantomData<(T, W)>);

impl<T: Ordered, W: Which> Fold for Extreme<T, W> {
    type In = T;
    type Acc = T;
    const START: T = if W::MAX { T::LEAST } else { T::GREATEST };
    const NEUTRAL: T = Self::START;
    const LANED: bool = true;
    const FLOATS: bool = T::FLOATS;

    #[inline(always)]
    fn push(acc: T, value: T) -> T {
        T::best::<W>(value, acc)
    }

    #[inline(always)]
    fn join(a: T, b: T) -> T {
        T::best::<W>(b, a)
    }
}
