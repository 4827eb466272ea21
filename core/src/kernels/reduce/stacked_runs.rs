//! Folds lists for a reduction along an outer axis. Adjacent lists that are reduced together are a run. Their
//! leaves at the same index are folded into one slot, which is an element of the result.
//!
//! One pass over the lists of a run folds [`WIDTH`](StackFold::WIDTH) slots, whose accumulators stay in
//! registers. Most lists have at most `WIDTH` leaves; longer lists continue in the next pass:
//!
//! ```text
//! run         list 0   a b c d|e f      pass 1 folds a+g+i, b+h+j, c+k, d
//! (width 4)   list 1   g h    |         and records that list 0 continues at e;
//!             list 2   i j k  |         pass 2 folds e, f
//! ```

use arrow::array::OffsetSizeTrait;

use super::block::prefetch_block;
#[cfg(target_arch = "x86_64")]
use super::block::{BLOCK, Block};
use super::fold::{Fold, LANES};
#[cfg(target_arch = "x86_64")]
use super::registers::{Blocks, LaneCounts};
use super::segments::{Folded, pad_tail, push_masked};
use crate::array::Offsets;
use crate::kernels::bits::{AllValid, BitWords, Rank, Validity};
use crate::kernels::simd::{for_avx2, return_avx512};
use crate::with_offsets;

/// Runs of adjacent lists of leaves; leaf `k` of each list is folded into slot `k` of its run.
pub(super) struct StackedRuns {
    pub(super) offsets: Offsets,
    pub(super) ends: Vec<ListRun>,
}

pub(super) struct ListRun {
    /// Number of lists in this run and all runs before it.
    pub(super) lists: usize,
    /// Number of slots (elements of the result) of this run and all runs before it.
    pub(super) slots: usize,
}

impl StackedRuns {
    /// Folds the valid leaves of every slot. Applies `finish` to the accumulator of each slot and
    /// to its number of valid leaves. Without `COUNTED`, this number is 0.
    pub(super) fn fold<F: Fold, R: Copy + Default, const COUNTED: bool>(
        &self,
        flat: &[F::In],
        valid: Option<&Rank>,
        finish: impl Fn(F::Acc, usize) -> R,
    ) -> Folded<R> {
        with_offsets!(&self.offsets, o => {
            dispatch_fold::<F, _, R, COUNTED>((o, &self.ends), flat, valid, finish)
        })
    }

    pub(super) fn count_run_values(&self, valid: &Rank) -> Vec<usize> {
        with_offsets!(&self.offsets, o => dispatch_counts((o, &self.ends), valid))
    }
}

/// The offsets of the lists, and the end of each run of lists.
type RunParts<'a, O> = (&'a [O], &'a [ListRun]);

fn dispatch_fold<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    parts: RunParts<'_, O>,
    flat: &[F::In],
    valid: Option<&Rank>,
    finish: impl Fn(F::Acc, usize) -> R,
) -> Folded<R> {
    return_avx512!(
        if F::Block::AVAILABLE,
        token: fn[F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool]::[F, O, R, COUNTED](
            parts: RunParts<'_, O>,
            flat: &[F::In],
            valid: Option<&Rank>,
            finish: impl Fn(F::Acc, usize) -> R,
        ) -> Folded<R> = match valid {
            // Each arm compiles to its own loop, so the loop without nulls reads no validity bits.
            None => {
                let leaves = Blocks::<F, _>::new(token, flat, AllValid);
                fold_runs::<_, O, R, COUNTED>(parts, &leaves, finish)
            }
            Some(valid) => {
                let leaves = Blocks::<F, _>::new(token, flat, valid.bits());
                fold_runs::<_, O, R, COUNTED>(parts, &leaves, finish)
            }
        }
    );
    for_avx2!(
        fn[F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool]::[F, O, R, COUNTED](
            parts: RunParts<'_, O>,
            flat: &[F::In],
            valid: Option<&Rank>,
            finish: impl Fn(F::Acc, usize) -> R,
        ) -> Folded<R> = fold_portable::<F, O, R, COUNTED>(parts, flat, valid, finish)
    )
}

#[inline(always)]
pub(super) fn fold_portable<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    parts: RunParts<'_, O>,
    flat: &[F::In],
    valid: Option<&Rank>,
    finish: impl Fn(F::Acc, usize) -> R,
) -> Folded<R> {
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

/// Folds lists into slots. This is a trait instead of a closure, because a closure is compiled
/// without the target features (such as AVX-512) of the function that it is passed to.
trait StackFold<const COUNTED: bool> {
    type State: Copy;
    /// Accumulators of [`WIDTH`](Self::WIDTH) slots (elements of the result).
    type Slots: Copy;
    type States: AsRef<[Self::State]>;
    type Count: Copy + Into<u32>;
    type Counts: AsRef<[Self::Count]>;
    const WIDTH: usize;

    fn empty(&self) -> Self::Slots;
    /// Folds leaf `at + k` into slot `k`, for at most `WIDTH` leaves before `end`.
    fn fold_slots(&self, slots: Self::Slots, at: usize, end: usize) -> Self::Slots;
    fn states(slots: Self::Slots) -> Self::States;
    /// Returns the number of valid leaves of each slot since the last call, and resets the numbers
    /// to 0. Without `COUNTED`, the numbers are unspecified.
    fn counts(&self, slots: &mut Self::Slots) -> Self::Counts;
}

/// Maximum number of lists after which the counts must be read and reset. Each list adds at most 1
/// to a count, which is a `u8`.
const COUNTABLE: usize = u8::MAX as usize;

/// Number of slots (elements of the result) per pass without AVX-512; their accumulators stay in registers.
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
    flat: &'a [F::In],
    validity: T,
}

impl<F: Fold, T: Validity, const COUNTED: bool> StackFold<COUNTED> for StackedLanes<'_, F, T> {
    type State = F::Acc;
    type Slots = ([[F::Acc; LANES]; PORTABLE_WIDTH / LANES], [u32; PORTABLE_WIDTH]);
    type States = [F::Acc; PORTABLE_WIDTH];
    type Count = u32;
    type Counts = [u32; PORTABLE_WIDTH];
    const WIDTH: usize = PORTABLE_WIDTH;

    #[inline(always)]
    fn empty(&self) -> Self::Slots {
        ([[F::START; LANES]; PORTABLE_WIDTH / LANES], [0; PORTABLE_WIDTH])
    }

    #[inline(always)]
    fn fold_slots(&self, (mut states, counts): Self::Slots, at: usize, end: usize) -> Self::Slots {
        prefetch_block::<F::In, PORTABLE_WIDTH>(self.flat, at);
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
    fn states((states, _): Self::Slots) -> [F::Acc; PORTABLE_WIDTH] {
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
impl<F: Fold, T: Validity, const COUNTED: bool> StackFold<COUNTED> for Blocks<'_, F, T> {
    type State = F::Acc;
    type Slots = (F::Block, LaneCounts);
    type States = [F::Acc; BLOCK];
    type Count = u8;
    type Counts = [u8; BLOCK];
    const WIDTH: usize = BLOCK;

    #[inline(always)]
    fn empty(&self) -> Self::Slots {
        (F::Block::empty(self.token), LaneCounts::empty(self.token))
    }

    #[inline(always)]
    fn fold_slots(
        &self,
        (states, counts): (F::Block, LaneCounts),
        at: usize,
        end: usize,
    ) -> Self::Slots {
        let (more, bits) = Blocks::fold_block(self, at, end);
        let states = states.combine(more);
        (states, if COUNTED { counts.count_bits(bits) } else { counts })
    }

    #[inline(always)]
    fn states((states, _): Self::Slots) -> [F::Acc; BLOCK] {
        states.to_lanes()
    }

    #[inline(always)]
    fn counts(&self, (_, counts): &mut Self::Slots) -> [u8; BLOCK] {
        std::mem::replace(counts, LaneCounts::empty(self.token)).to_lanes()
    }
}

/// Counts the valid leaves of every slot (element of the result), without reading their values.
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

fn dispatch_counts<O: OffsetSizeTrait>(parts: RunParts<'_, O>, valid: &Rank) -> Vec<usize> {
    for_avx2!(
        fn[O: OffsetSizeTrait](parts: RunParts<'_, O>, valid: &Rank) -> Vec<usize>
            = fold_runs::<_, O, usize, true>(parts, &CountOnly(valid.bits()), |(), n| n).values
    )
}

/// Folds the lists of every run into its slots (elements of the result), `V::WIDTH` slots per pass.
#[inline(always)]
fn fold_runs<V: StackFold<COUNTED>, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    (offsets, runs): RunParts<'_, O>,
    leaves: &V,
    finish: impl Fn(V::State, usize) -> R,
) -> Folded<R> {
    let slots = runs.last().map_or(0, |run| run.slots);
    let mut out = Folded::new_zeroed(slots, if COUNTED { slots } else { 0 });
    // For each list that continues in the next pass: the index of its next leaf, and its end.
    let mut longer: Vec<(usize, usize)> = Vec::new();
    let base = offsets[0].as_usize();
    let mut ends = &offsets[1..];
    let (mut first, mut from, mut done) = (0, 0, 0);
    for run in runs {
        let Some((here, rest)) = ends.split_at_checked(run.lists - first) else { break };
        (first, ends) = (run.lists, rest);
        let mut left = run.slots - done;
        if left == 0 {
            // The run has no slots, because all its lists are empty.
            continue;
        }
        longer.resize(here.len().max(longer.len()), (0, 0));
        let (mut slots, mut counts) = (leaves.empty(), [0u32; MAX_WIDTH]);
        let mut count = 0;
        for here in here.chunks(COUNTABLE) {
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
            (slots, counts) = (leaves.empty(), [0; MAX_WIDTH]);
            let (mut at, mut kept) = (0, 0);
            while at < count {
                let upto = count.min(at + COUNTABLE);
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

/// Maximum number of slots (elements of the result) that one pass folds.
const MAX_WIDTH: usize = 64;

#[inline(always)]
fn add_counts<C: Copy + Into<u32>>(counts: &mut [u32; MAX_WIDTH], more: &[C]) {
    for i in 0..more.len().min(MAX_WIDTH) {
        counts[i] += more[i].into();
    }
}
