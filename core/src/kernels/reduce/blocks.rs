//! Reads the leaves of lists into AVX-512 registers, 64 at a time.

use super::block::{BLOCK, Block};
use super::fold::Fold;
use super::segments::prefetch_block;
use crate::kernels::bits::Validity;
use crate::kernels::simd::Avx512;

pub(super) struct Blocks<'a, F: Fold, T: Validity> {
    pub(super) token: Avx512,
    flat: &'a [F::In],
    validity: T,
    /// Index limit for unchecked reads: from a smaller index, [`BLOCK`] leaves and their bits can be read.
    whole: usize,
}

impl<'a, F: Fold, T: Validity> Blocks<'a, F, T> {
    #[inline(always)]
    pub(super) fn new(token: Avx512, flat: &'a [F::In], validity: T) -> Self {
        let whole = (flat.len() + 1).saturating_sub(BLOCK).min(validity.reach());
        Self { token, flat, validity, whole }
    }

    /// Returns the accumulators and validity bits of the leaves `at..end`, at most one block. Contains no
    /// function call, because even a rare call spills all registers of the surrounding loop.
    #[inline(always)]
    pub(super) fn fold_block(&self, at: usize, end: usize) -> (F::Block, u64) {
        prefetch_block::<F::In, BLOCK>(self.flat, at);
        if at < self.whole {
            // SAFETY: `at < self.whole`, so 64 leaves and their bits can be read. (The bounds
            // checks on values and bits take a quarter of the time on short lists.)
            let (values, bits) = unsafe {
                let values = self.flat.as_ptr().add(at).cast::<[F::In; BLOCK]>();
                (&*values, self.validity.load_valid_within(at, end))
            };
            return (F::Block::load_full(self.token, values, bits), bits);
        }
        let bits = self.validity.load_valid(at, end);
        (F::Block::load_tail(self.token, &self.flat[at..], bits), bits)
    }
}
