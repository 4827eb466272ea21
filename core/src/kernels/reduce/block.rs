//! SIMD accumulators for 64 values, in AVX-512 registers.
//!
//! Compilers do not vectorize all loops over arrays, so folds of floats use intrinsics. Masks exclude null
//! leaves, and the lanes past the end of a list. A list of up to 64 leaves therefore needs no inner loop,
//! whose exit would be mispredicted.

// On targets other than x86-64, other modules name these types but never call their functions, so
// the compiler would warn about dead code.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use super::fold::{Fold, LANES};
use crate::array::prefetch::prefetch_ahead;
use crate::kernels::simd::Avx512;

/// Number of values in a block: one per bit of a `u64` mask.
pub(super) const BLOCK: usize = 64;

const LINE: usize = 64;

pub(super) trait Block<F: Fold>: Copy {
    /// Whether AVX-512 code exists for the fold `F`. If false, the functions of this trait are never called.
    const AVAILABLE: bool;
    /// The accumulators of a block after they are folded into one register.
    type Part: Copy;

    fn empty(token: Avx512) -> Self;
    fn load_full(token: Avx512, values: &[F::In; BLOCK], bits: u64) -> Self;
    /// Like `load_full` for fewer than [`BLOCK`] values; the lanes after the last value get the
    /// neutral value.
    fn load_tail(token: Avx512, values: &[F::In], bits: u64) -> Self;
    fn combine(self, other: Self) -> Self;
    fn to_register(self) -> Self::Part;
    /// Combines `part` with `before` if `more` is true, otherwise returns `part`. Has no branch.
    fn combine_if(part: Self::Part, before: Self::Part, more: bool) -> Self::Part;
    /// Folds each of eight registers down to one accumulator.
    fn reduce_lists(parts: [Self::Part; LANES]) -> [F::Acc; LANES];
    fn to_lanes(self) -> [F::Acc; BLOCK];
}

/// Prefetches all cache lines of `WIDTH` values. The first of these values lies one prefetch
/// distance after index `at`. With only one line per call and lists of equal length, the other
/// lines of every list would not be prefetched.
#[inline(always)]
pub(super) fn prefetch_block<T, const WIDTH: usize>(flat: &[T], at: usize) {
    for line in 0..(WIDTH * size_of::<T>()).div_ceil(LINE) {
        prefetch_ahead(flat, at + line * (LINE / size_of::<T>()));
    }
}

/// Implements [`Block`] for folds and targets without AVX-512 code. Its functions are never called.
#[derive(Clone, Copy)]
pub(super) struct Absent;

impl<F: Fold> Block<F> for Absent {
    const AVAILABLE: bool = false;
    type Part = ();

    fn empty(_: Avx512) -> Self {
        Self
    }

    fn load_full(_: Avx512, _: &[F::In; BLOCK], _: u64) -> Self {
        Self
    }

    fn load_tail(_: Avx512, _: &[F::In], _: u64) -> Self {
        Self
    }

    fn combine(self, _: Self) -> Self {
        self
    }

    fn to_register(self) {}

    fn combine_if((): (), (): (), _: bool) {}

    fn reduce_lists(_: [(); LANES]) -> [F::Acc; LANES] {
        [F::START; LANES]
    }

    fn to_lanes(self) -> [F::Acc; BLOCK] {
        [F::START; BLOCK]
    }
}
