//! Folds lists for a reduction along an outer axis. Adjacent lists that are reduced together are a
//! run; their leaves at an index are folded into one slot, an element of the result. One pass over
//! a run folds [`WIDTH`](StackFold::WIDTH) slots in registers; longer lists continue in the next:
//!
//! ```text
//! run         list 0   a b c d|e f      pass 1 folds a+g+i, b+h+j, c+k, d
//! (width 4)   list 1   g h    |         and records that list 0 continues at e;
//!             list 2   i j k  |         pass 2 folds e, f
//! ```

use arrow::array::OffsetSizeTrait;

use super::block::prefetch_block;
#[cfg(target_arch = "x86_64")]
use super::block::{BLOCK, RegisterBlock};
use super::fold::{Fold, LANES};
#[cfg(target_arch = "x86_64")]
use super::registers::{LaneCounts, LeafBlocks};
use super::segments::{FoldedLists, pad_tail, push_masked};
use crate::array::Offsets;
use crate::kernels::bits::{AllValid, BitWords, RankedBitmap, Validity};
use crate::kernels::simd::{for_avx2, return_avx512};
use crate::with_offsets;

/// Runs of adjacent lists of leaves; leaf `k` of each list is folded into slot `k` of its run.
pub(super) struct StackedRuns {
    pub(super) offsets: Offsets,
    pub(super) ends: Vec<ListRun>,
}

pub(super) struct ListRun {
    pub(super) end_list: usize,
    pub(super) end_slot: usize,
}

impl StackedRuns {
    /// Folds the leaves of each slot. `finish` gets the accumulator and the number of valid leaves
    /// (0 unless `COUNTED`) of a slot.
    pub(super) fn fold<F: Fold, R: Copy + Default, const COUNTED: bool>(
        &self,
        flat: &[F::Input],
        valid: Option<&RankedBitmap>,
        finish: impl Fn(F::Accumulator, usize) -> R,
    ) -> FoldedLists<R> {
        with_offsets!(&self.offsets, o => {
            dispatch_fold::<F, _, R, COUNTED>((o, &self.ends), flat, valid, finish)
        })
    }

    pub(super) fn count_run_values(&self, valid: &RankedBitmap) -> Vec<usize> {
        with_offsets!(&self.offsets, o => dispatch_counts((o, &self.ends), valid))
    }
}

/// The offsets of the lists, and the end of each run of adjacent lists that are reduced together.
type RunParts<'a, O> = (&'a [O], &'a [ListRun]);

fn dispatch_fold<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    parts: RunParts<'_, O>,
    flat: &[F::Input],
    valid: Option<&RankedBitmap>,
    finish: impl Fn(F::Accumulator, usize) -> R,
) -> FoldedLists<R> {
    return_avx512!(
        if F::RegisterBlock::AVAILABLE,
        token: fn[F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool]::[F, O, R, COUNTED](
            parts: RunParts<'_, O>,
            flat: &[F::Input],
            valid: Option<&RankedBitmap>,
            finish: impl Fn(F::Accumulator, usize) -> R,
        ) -> FoldedLists<R> = match valid {
            None => {
                let leaves = LeafBlocks::<F, _>::new(token, flat, AllValid);
                fold_runs::<_, O, R, COUNTED>(parts, &leaves, finish)
            }
            Some(valid) => {
                let leaves = LeafBlocks::<F, _>::new(token, flat, valid.bits());
                fold_runs::<_, O, R, COUNTED>(parts, &leaves, finish)
            }
        }
    );
    for_avx2!(
        fn[F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool]::[F, O, R, COUNTED](
            parts: RunParts<'_, O>,
            flat: &[F::Input],
            valid: Option<&RankedBitmap>,
            finish: impl Fn(F::Accumulator, usize) -> R,
        ) -> FoldedLists<R> = fold_portable::<F, O, R, COUNTED>(parts, flat, valid, finish)
    )
}

#[inline(always)]
pub(super) fn fold_portable<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    parts: RunParts<'_, O>,
    flat: &[F::Input],
    valid: Option<&RankedBitmap>,
    finish: impl Fn(F::Accumulator, usize) -> R,
) -> FoldedLists<R> {
    match valid {
        None => {
            let leaves = StackedLanes::<F, _> { flat, validity: AllValid };
            fold_runs::<_, O, R, COUNTED>(parts, &leaves, finish)
        }
        Some(valid) => {
            let leaves = StackedLanes::<F, _> { flat, validity: valid.bits() };
            fold_runs::<_, O, R, COUNTED>(parts, &leaves, finish)
        }
    }
}

/// The operations of the loop over runs. This is a trait, because a closure would be compiled
/// without the target features (AVX2, AVX-512) of the function to which it is passed.
trait StackFold<const COUNTED: bool> {
    type State: Copy;
    type Slots: Copy;
    type States: AsRef<[Self::State]>;
    type Count: Copy + Into<u32>;
    type Counts: AsRef<[Self::Count]>;
    const WIDTH: usize;

    fn empty(&self) -> Self::Slots;
    /// Folds leaf `at + k` into slot `k`, for at most `WIDTH` leaves before `end`.
    fn fold_slots(&self, slots: Self::Slots, at: usize, end: usize) -> Self::Slots;
    fn states(slots: Self::Slots) -> Self::States;
    /// Counts the valid leaves of each slot since the last call; unspecified unless `COUNTED`.
    fn counts(&self, slots: &mut Self::Slots) -> Self::Counts;
}

/// Number of lists after which the counts must be read and reset, because they are `u8`.
const MAX_COUNTED_LISTS: usize = u8::MAX as usize;

/// Number of slots (elements of the result) per pass without AVX-512; their accumulators stay in
/// registers.
const PORTABLE_WIDTH: usize = 4 * LANES;

#[inline(always)]
fn count_set_lanes(mut counts: [u32; PORTABLE_WIDTH], bits: u64) -> [u32; PORTABLE_WIDTH] {
    #[expect(clippy::cast_possible_truncation, reason = "there are as many bits as slots")]
    let bits = bits as u32;
    for (i, count) in counts.iter_mut().enumerate() {
        *count += bits >> i & 1;
    }
    counts
}

struct StackedLanes<'a, F: Fold, T: Validity> {
    flat: &'a [F::Input],
    validity: T,
}

impl<F: Fold, T: Validity, const COUNTED: bool> StackFold<COUNTED> for StackedLanes<'_, F, T> {
    type State = F::Accumulator;
    type Slots = ([[F::Accumulator; LANES]; PORTABLE_WIDTH / LANES], [u32; PORTABLE_WIDTH]);
    type States = [F::Accumulator; PORTABLE_WIDTH];
    type Count = u32;
    type Counts = [u32; PORTABLE_WIDTH];
    const WIDTH: usize = PORTABLE_WIDTH;

    #[inline(always)]
    fn empty(&self) -> Self::Slots {
        ([[F::START; LANES]; PORTABLE_WIDTH / LANES], [0; PORTABLE_WIDTH])
    }

    #[inline(always)]
    fn fold_slots(&self, (mut states, counts): Self::Slots, at: usize, end: usize) -> Self::Slots {
        prefetch_block::<F::Input, PORTABLE_WIDTH>(self.flat, at);
        let bits = self.validity.load_valid(at, end);
        let few;
        let values = match self.flat[at..].first_chunk::<PORTABLE_WIDTH>() {
            Some(values) => values,
            None => {
                few = pad_tail::<F, PORTABLE_WIDTH>(&self.flat[at..end]);
                &few
            }
        };
        if let [a, b, c, d] = values.as_chunks::<LANES>().0 {
            states[0] = push_masked::<F>(states[0], a, bits);
            states[1] = push_masked::<F>(states[1], b, bits >> LANES);
            states[2] = push_masked::<F>(states[2], c, bits >> (2 * LANES));
            states[3] = push_masked::<F>(states[3], d, bits >> (3 * LANES));
        }
        (states, if COUNTED { count_set_lanes(counts, bits) } else { counts })
    }

    #[inline(always)]
    fn states((states, _): Self::Slots) -> [F::Accumulator; PORTABLE_WIDTH] {
        let mut all = [F::START; PORTABLE_WIDTH];
        all.copy_from_slice(states.as_flattened());
        all
    }

    #[inline(always)]
    fn counts(&self, (_, counts): &mut Self::Slots) -> [u32; PORTABLE_WIDTH] {
        std::mem::replace(counts, [0; PORTABLE_WIDTH])
    }
}

#[cfg(target_arch = "x86_64")]
impl<F: Fold, T: Validity, const COUNTED: bool> StackFold<COUNTED> for LeafBlocks<'_, F, T> {
    type State = F::Accumulator;
    type Slots = (F::RegisterBlock, LaneCounts);
    type States = [F::Accumulator; BLOCK];
    type Count = u8;
    type Counts = [u8; BLOCK];
    const WIDTH: usize = BLOCK;

    #[inline(always)]
    fn empty(&self) -> Self::Slots {
        (F::RegisterBlock::empty(self.token), LaneCounts::empty(self.token))
    }

    #[inline(always)]
    fn fold_slots(
        &self,
        (states, counts): (F::RegisterBlock, LaneCounts),
        at: usize,
        end: usize,
    ) -> Self::Slots {
        let (more, bits) = LeafBlocks::fold_block(self, at, end);
        let states = states.combine(more);
        (states, if COUNTED { counts.count_bits(bits) } else { counts })
    }

    #[inline(always)]
    fn states((states, _): Self::Slots) -> [F::Accumulator; BLOCK] {
        states.to_lanes()
    }

    #[inline(always)]
    fn counts(&self, (_, counts): &mut Self::Slots) -> [u8; BLOCK] {
        std::mem::replace(counts, LaneCounts::empty(self.token)).to_lanes()
    }
}

struct CountOnly<'a>(BitWords<'a>);

impl StackFold<true> for CountOnly<'_> {
    type State = ();
    type Slots = [u32; PORTABLE_WIDTH];
    type States = [(); PORTABLE_WIDTH];
    type Count = u32;
    type Counts = [u32; PORTABLE_WIDTH];
    const WIDTH: usize = PORTABLE_WIDTH;

    #[inline(always)]
    fn empty(&self) -> [u32; PORTABLE_WIDTH] {
        [0; PORTABLE_WIDTH]
    }

    #[inline(always)]
    fn fold_slots(
        &self,
        counts: [u32; PORTABLE_WIDTH],
        at: usize,
        end: usize,
    ) -> [u32; PORTABLE_WIDTH] {
        count_set_lanes(counts, self.0.load_valid(at, end))
    }

    #[inline(always)]
    fn states(_: [u32; PORTABLE_WIDTH]) -> [(); PORTABLE_WIDTH] {
        [(); PORTABLE_WIDTH]
    }

    #[inline(always)]
    fn counts(&self, counts: &mut [u32; PORTABLE_WIDTH]) -> [u32; PORTABLE_WIDTH] {
        std::mem::replace(counts, [0; PORTABLE_WIDTH])
    }
}

fn dispatch_counts<O: OffsetSizeTrait>(parts: RunParts<'_, O>, valid: &RankedBitmap) -> Vec<usize> {
    for_avx2!(
        fn[O: OffsetSizeTrait](parts: RunParts<'_, O>, valid: &RankedBitmap) -> Vec<usize>
            = fold_runs::<_, O, usize, true>(parts, &CountOnly(valid.bits()), |(), n| n).values
    )
}

#[inline(always)]
fn fold_runs<V: StackFold<COUNTED>, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    (offsets, runs): RunParts<'_, O>,
    leaves: &V,
    finish: impl Fn(V::State, usize) -> R,
) -> FoldedLists<R> {
    let slots = runs.last().map_or(0, |run| run.end_slot);
    let mut out = FoldedLists::new_zeroed(slots, if COUNTED { slots } else { 0 });
    // For each list that continues in the next pass: the index of its next leaf, and its end.
    let mut longer: Vec<(usize, usize)> = Vec::new();
    let base = offsets[0].as_usize();
    let mut ends = &offsets[1..];
    let (mut first, mut from, mut done) = (0, 0, 0);
    for run in runs {
        let Some((here, rest)) = ends.split_at_checked(run.end_list - first) else { break };
        (first, ends) = (run.end_list, rest);
        let mut left = run.end_slot - done;
        if left == 0 {
            // The run has no slots, because all its lists are empty.
            continue;
        }
        longer.resize(here.len().max(longer.len()), (0, 0));
        let (mut slots, mut counts) = (leaves.empty(), [0u32; MAX_SLOTS_PER_PASS]);
        let mut count = 0;
        for here in here.chunks(MAX_COUNTED_LISTS) {
            for end in here {
                let end = end.as_usize() - base;
                slots = leaves.fold_slots(slots, from, end);
                longer[count] = (from + V::WIDTH, end);
                count += usize::from(end - from > V::WIDTH);
                from = end;
            }
            if COUNTED {
                add_counts(&mut counts, leaves.counts(&mut slots).as_ref());
            }
        }
        loop {
            let n = left.min(V::WIDTH);
            let found = V::states(slots);
            let (found, counted) = (&found.as_ref()[..n], &counts[..n]);
            let values = &mut out.values[done..done + n];
            for i in 0..n {
                values[i] = finish(found[i], usize::try_from(counted[i]).unwrap_or(usize::MAX));
            }
            if COUNTED {
                let present = &mut out.present[done..done + n];
                for i in 0..n {
                    present[i] = u8::from(counted[i] > 0);
                }
            }
            done += n;
            left -= n;
            if left == 0 {
                break;
            }
            (slots, counts) = (leaves.empty(), [0; MAX_SLOTS_PER_PASS]);
            let (mut at, mut kept) = (0, 0);
            while at < count {
                let upto = count.min(at + MAX_COUNTED_LISTS);
                while at < upto {
                    let (from, end) = longer[at];
                    slots = leaves.fold_slots(slots, from, end);
                    longer[kept] = (from + V::WIDTH, end);
                    kept += usize::from(end - from > V::WIDTH);
                    at += 1;
                }
                if COUNTED {
                    add_counts(&mut counts, leaves.counts(&mut slots).as_ref());
                }
            }
            count = kept;
        }
    }
    out
}

const MAX_SLOTS_PER_PASS: usize = 64;

#[inline(always)]
fn add_counts<C: Copy + Into<u32>>(counts: &mut [u32; MAX_SLOTS_PER_PASS], more: &[C]) {
    for i in 0..more.len().min(MAX_SLOTS_PER_PASS) {
        counts[i] += more[i].into();
    }
}
