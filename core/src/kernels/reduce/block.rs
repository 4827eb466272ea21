//! SIMD accumulators for 64 values, in AVX-512 registers. They use intrinsics, because compilers do
//! not vectorize all loops over arrays. Masks exclude null leaves and lanes past the end of a list,
//! so that a list of up to 64 leaves needs no inner loop, whose exit would be mispredicted.

// On targets other than x86-64, the code names these types but never calls their functions.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use super::fold::{Fold, LANES};
use crate::array::prefetch::prefetch_ahead;
use crate::kernels::simd::Avx512;

/// Number of values in a block: one per bit of a `u64` mask.
pub(super) const BLOCK: usize = 64;

const LINE: usize = 64;

pub(super) trait RegisterBlock<F: Fold>: Copy {
    /// Whether AVX-512 code exists for the fold `F`. If false, the functions of this trait are
    /// never called.
    const AVAILABLE: bool;
    type Part: Copy;

    fn empty(token: Avx512) -> Self;
    fn load_full(token: Avx512, values: &[F::Input; BLOCK], bits: u64) -> Self;
    /// Loads fewer than [`BLOCK`] values. Lanes whose bit in `bits` is 0, such as all lanes past
    /// the end of `values`, get the neutral value of the fold.
    fn load_tail(token: Avx512, values: &[F::Input], bits: u64) -> Self;
    fn combine(self, other: Self) -> Self;
    fn to_register(self) -> Self::Part;
    /// Returns `part`, the result of one block. If `more` is true, the list has earlier blocks, and
    /// their result `before` is combined with `part`. Has no branch.
    fn combine_if(part: Self::Part, before: Self::Part, more: bool) -> Self::Part;
    /// Combines the lanes of each of eight registers into one value. Each register has the lanes of
    /// one list.
    fn reduce_lists(parts: [Self::Part; LANES]) -> [F::Accumulator; LANES];
    fn to_lanes(self) -> [F::Accumulator; BLOCK];
}

/// Prefetches `WIDTH` values that a later call will read: those a fixed prefetch distance after
/// index `at`. Prefetches every cache line of these values, because from call to call `at` advances
/// by a whole list or block, which may span several lines.
#[inline(always)]
pub(super) fn prefetch_block<T, const WIDTH: usize>(flat: &[T], at: usize) {
    for line in 0..(WIDTH * size_of::<T>()).div_ceil(LINE) {
        prefetch_ahead(flat, at + line * (LINE / size_of::<T>()));
    }
}

/// Implements [`RegisterBlock`] for folds and targets without AVX-512 code. Its functions are never
/// called.
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
