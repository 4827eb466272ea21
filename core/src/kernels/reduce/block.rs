//! SIMD accumulators for 64 values, in AVX-512 registers: compilers do not vectorize all loops over
//! arrays. Masks exclude null leaves and lanes past the end of a list, so that a list of up to 64
//! leaves needs no inner loop, whose exit would be mispredicted.

// Other targets name these types but never call their functions.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use super::fold::{Fold, LANES};
use crate::array::prefetch::prefetch_ahead;
use crate::kernels::simd::Avx512;

/// Number of values in a block: one per bit of a `u64` mask.
pub(super) const BLOCK: usize = 64;

const LINE: usize = 64;

pub(super) trait RegisterBlock<F: Fold>: Copy {
    /// Whether AVX-512 code exists for the fold `F`. If false, the functions of this trait are never called.
    const AVAILABLE: bool;
    type Part: Copy;

    fn empty(token: Avx512) -> Self;
    fn load_full(token: Avx512, values: &[F::Input; BLOCK], bits: u64) -> Self;
    /// Loads fewer than [`BLOCK`] values; the other lanes, with bits 0, get the neutral value.
    fn load_tail(token: Avx512, values: &[F::Input], bits: u64) -> Self;
    fn combine(self, other: Self) -> Self;
    fn to_register(self) -> Self::Part;
    /// Returns `part`, combined with `before` (the earlier blocks) if `more`. Has no branch.
    fn combine_if(part: Self::Part, before: Self::Part, more: bool) -> Self::Part;
    /// Combines the lanes of eight registers, one per list.
    fn reduce_lists(parts: [Self::Part; LANES]) -> [F::Accumulator; LANES];
    fn to_lanes(self) -> [F::Accumulator; BLOCK];
}

/// Prefetches all cache lines of `WIDTH` values one prefetch distance after index `at`, which moves
/// on by a whole list or block from call to call.
#[inline(always)]
pub(super) fn prefetch_block<T, const WIDTH: usize>(flat: &[T], at: usize) {
    for line in 0..(WIDTH * size_of::<T>()).div_ceil(LINE) {
        prefetch_ahead(flat, at + line * (LINE / size_of::<T>()));
    }
}

/// Implements [`RegisterBlock`] for folds and targets without AVX-512 code. Its functions are never called.
#[derive(Clone, Copy)]
pub(super) struct AbsentBlock;

impl<F: Fold> RegisterBlock<F> for AbsentBlock {
    const AVAILABLE: bool = false;
    type Part = ();

    fn empty(_: Avx512) -> Self {
        Self
    }

    fn load_full(_: Avx512, _: &[F::Input; BLOCK], _: u64) -> Self {
        Self
    }

    fn load_tail(_: Avx512, _: &[F::Input], _: u64) -> Self {
        Self
    }

    fn combine(self, _: Self) -> Self {
        self
    }

    fn to_register(self) {}

    fn combine_if((): (), (): (), _: bool) {}

    fn reduce_lists(_: [(); LANES]) -> [F::Accumulator; LANES] {
        [F::START; LANES]
    }

    fn to_lanes(self) -> [F::Accumulator; BLOCK] {
        [F::START; BLOCK]
    }
}
