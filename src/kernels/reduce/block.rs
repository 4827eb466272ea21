//! States of 64 values side by side, in registers of 512 bits.
//!
//! Compilers make such registers out of loops over arrays only sometimes; what floats are folded into is
//! written down here. Each register is masked by the bits of its values, so that a list of any length
//! is taken in without a loop that ends where the processor cannot foresee it.

// Other processors have the names alone.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use super::fold::Fold;
use super::segments::LANES;
use crate::kernels::bits::Wide;

/// Values of a block, as many as a word has bits.
pub(super) const BLOCK: usize = 64;

/// The states that 64 values make, each its own.
pub(super) trait Block<F: Fold>: Copy {
    /// Whether there is such a block; nothing is done with it where not.
    const THERE: bool;
    /// States that are left of a block, in one register.
    type Part: Copy;

    /// Of no values.
    fn none(wide: Wide) -> Self;
    /// Of those values whose bit is set.
    fn some(wide: Wide, values: &[F::In; BLOCK], bits: u64) -> Self;
    /// As [`some`](Self::some), where fewer values may be left of all; bits of what is not there count
    /// nothing.
    fn few(wide: Wide, values: &[F::In], bits: u64) -> Self;
    /// What the states of two blocks are together, place by place.
    fn join(self, other: Self) -> Self;
    /// As many of them joined as leave one register.
    fn part(self) -> Self::Part;
    /// `part` with what came before it, if `more` says that there was something.
    fn onto(part: Self::Part, before: Self::Part, more: bool) -> Self::Part;
    /// The state that each of eight parts makes.
    fn joined(parts: [Self::Part; LANES]) -> [F::Acc; LANES];
    /// All of them.
    fn all(self) -> [F::Acc; BLOCK];
}

/// What there is for values that are folded in another way, and on other processors.
#[derive(Clone, Copy)]
pub(super) struct Absent;

impl<F: Fold> Block<F> for Absent {
    const THERE: bool = false;
    type Part = ();

    fn none(_: Wide) -> Self {
        Self
    }

    fn some(_: Wide, _: &[F::In; BLOCK], _: u64) -> Self {
        Self
    }

    fn few(_: Wide, _: &[F::In], _: u64) -> Self {
        Self
    }

    fn join(self, _: Self) -> Self {
        self
    }

    fn part(self) {}

    fn onto((): (), (): (), _: bool) {}

    fn joined(_: [(); LANES]) -> [F::Acc; LANES] {
        [F::START; LANES]
    }

    fn all(self) -> [F::Acc; BLOCK] {
        [F::START; BLOCK]
    }
}
