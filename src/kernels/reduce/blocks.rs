//! Leaves of lists, read 64 at a time into registers of 512 bits.

use super::block::{BLOCK, Block};
use super::fold::Fold;
use super::segments::{There, ask_for};
use crate::kernels::bits::Wide;

/// Leaves, and which of them there are.
pub(super) struct Blocks<'a, F: Fold, T: There> {
    pub(super) wide: Wide,
    flat: &'a [F::In],
    there: T,
    /// Places from which 64 leaves may be read, and their bits.
    whole: usize,
}

impl<'a, F: Fold, T: There> Blocks<'a, F, T> {
    #[inline(always)]
    pub(super) fn new(wide: Wide, flat: &'a [F::In], there: T) -> Self {
        let whole = (flat.len() + 1).saturating_sub(BLOCK).min(there.reach());
        Self { wide, flat, there, whole }
    }

    /// The states of those leaves from `at` on and before `end` that there are, and their bits. Nothing is
    /// called here: a call, however rare, takes all registers away from what runs around it.
    #[inline(always)]
    pub(super) fn states(&self, at: usize, end: usize) -> (F::Block, u64) {
        ask_for::<F::In, BLOCK>(self.flat, at);
        if at < self.whole {
            // SAFETY: 64 leaves may be read from there, and so may their bits. (Both comparisons that slices
            // would make, and the bytes that bits are read from, are a quarter of the time of short lists.)
            let (values, bits) = unsafe {
                let values = self.flat.as_ptr().add(at).cast::<[F::In; BLOCK]>();
                (&*values, self.there.word_within(at, end))
            };
            return (F::Block::some(self.wide, values, bits), bits);
        }
        let bits = self.there.word(at, end);
        (F::Block::few(self.wide, &self.flat[at..], bits), bits)
    }
}
