//! Folds of contiguous leaves: one result per list.
//!
//! A list is folded in chunks of at most [`STRIDE`] leaves. Lanes past the end of the list are
//! masked to the neutral value, so that each chunk takes the same time and the loop has no branch
//! on lengths:
//!
//! ```text
//! (chunks drawn with 8 leaves)
//! offsets   0         5     8                    list 0 = a b c d e, list 1 = f g h
//! leaves    a b c d e f g h i j ...
//! chunk 0   a b c d e . . .            mask 0b0001_1111
//! chunk 1             f g h . . . . .  mask 0b0000_0111
//! lanes     each chunk is folded from 64 values to 8 lanes, and 8 lists x 8 lanes to 8 results
//! ```

use std::ops::Range;

use arrow::array::OffsetSizeTrait;

use super::block::prefetch_block;
#[cfg(target_arch = "x86_64")]
use super::block::{BLOCK, RegisterBlock};
use super::fold::{Fold, LANES};
#[cfg(target_arch = "x86_64")]
use super::registers::LeafBlocks;
use crate::array::Layout;
use crate::error::Result;
use crate::kernels::bits::{AllValid, RankedBitmap, Validity};
use crate::kernels::simd::{for_avx2, return_avx512};
use crate::with_offsets;

pub(super) struct FoldedLists<R> {
    pub(super) values: Vec<R>,
    /// 1 for each entry of `values` with a valid leaf, else 0. May be empty if leaves are not
    /// counted.
    pub(super) present: Vec<u8>,
}

impl<R: Copy + Default> FoldedLists<R> {
    pub(super) fn new_zeroed(groups: usize, counted: usize) -> Self {
        Self { values: vec![R::default(); groups], present: vec![0; counted] }
    }
}

/// Folds the leaves of each list. `finish` gets the accumulator and the number of valid leaves of a
/// list (unspecified unless `COUNTED`).
pub(super) fn fold_segments<F: Fold, R: Copy + Default, const COUNTED: bool>(
    flat: &[F::Input],
    valid: Option<&RankedBitmap>,
    layout: &Layout,
    finish: impl Fn(F::Accumulator, usize) -> R,
) -> Result<FoldedLists<R>> {
    let offsets = layout.to_offsets()?;
    Ok(with_offsets!(&offsets, o => dispatch_fold::<F, _, R, COUNTED>(flat, valid, o, finish)))
}

fn dispatch_fold<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    flat: &[F::Input],
    valid: Option<&RankedBitmap>,
    offsets: &[O],
    finish: impl Fn(F::Accumulator, usize) -> R,
) -> FoldedLists<R> {
    return_avx512!(
        if F::RegisterBlock::AVAILABLE,
        token: fn[F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool]::[F, O, R, COUNTED](
            flat: &[F::Input],
            valid: Option<&RankedBitmap>,
            offsets: &[O],
            finish: impl Fn(F::Accumulator, usize) -> R,
        ) -> FoldedLists<R> = match valid {
            None => {
                let leaves = LeafBlocks::<F, _>::new(token, flat, AllValid);
                fold_lists::<_, O, R, COUNTED>(&leaves, offsets, finish)
            }
            Some(valid) => {
                let leaves = LeafBlocks::<F, _>::new(token, flat, valid.bits());
                fold_lists::<_, O, R, COUNTED>(&leaves, offsets, finish)
            }
        }
    );
    if !F::VECTORIZED {
        return fold_portable::<F, O, R, COUNTED>(flat, valid, offsets, finish);
    }
    for_avx2!(
        fn[F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool]::[F, O, R, COUNTED](
            flat: &[F::Input],
            valid: Option<&RankedBitmap>,
            offsets: &[O],
            finish: impl Fn(F::Accumulator, usize) -> R,
        ) -> FoldedLists<R> = fold_portable::<F, O, R, COUNTED>(flat, valid, offsets, finish)
    )
}

#[inline(always)]
fn fold_portable<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    flat: &[F::Input],
    valid: Option<&RankedBitmap>,
    offsets: &[O],
    finish: impl Fn(F::Accumulator, usize) -> R,
) -> FoldedLists<R> {
    match (F::VECTORIZED, valid) {
        (false, _) => fold_lists_scalar::<F, O, R>(flat, valid, offsets, finish),
        (true, None) => {
            let leaves = ChunkLanes::<F, _> { flat, validity: AllValid };
            fold_lists::<_, O, R, COUNTED>(&leaves, offsets, finish)
        }
        (true, Some(valid)) => {
            let leaves = ChunkLanes::<F, _> { flat, validity: valid.bits() };
            fold_lists::<_, O, R, COUNTED>(&leaves, offsets, finish)
        }
    }
}

/// The operations of the loop [`fold_lists`]. This is a trait, because a closure would be compiled
/// without the target features (AVX2, AVX-512) of the function to which it is passed.
trait ListFold {
    type Fold: Fold;
    type Part: Copy;
    const ALL: bool;

    fn empty(&self) -> Self::Part;
    /// Folds the leaves `at..end`, but at most one chunk ([`STRIDE`] leaves).
    fn fold_chunk(&self, at: usize, end: usize) -> FoldedChunk<Self::Part>;
    /// Returns `part`, the result of one chunk. If `more` is true, the list has earlier chunks, and
    /// their result `before` is combined with `part`. Has no branch.
    fn combine_if(part: Self::Part, before: Self::Part, more: bool) -> Self::Part;
    /// Combines the eight lanes of each of eight lists into one value ([`LANES`] is both numbers).
    fn reduce_lists(parts: &[Self::Part; LANES]) -> [<Self::Fold as Fold>::Accumulator; LANES];
}

struct FoldedChunk<P> {
    part: P,
    /// Number of valid leaves in the chunk; unused if all leaves are valid ([`ListFold::ALL`]).
    count: usize,
    /// Index one past the last leaf of the chunk; may be past the end of the list.
    upto: usize,
}

/// Number of lists whose partial results, one per lane of a register, are kept before they are
/// combined. It is a multiple of [`LANES`], so that whole registers of lists are combined.
const BATCH: usize = 8 * LANES;

/// Folds each list, chunk by chunk. The loop does not branch on the length of a list, because this
/// branch would often be mispredicted: conditional moves select the next index, list and
/// accumulators. Each chunk overwrites the result of its list, so that the last chunk leaves the
/// final result.
#[inline(always)]
fn fold_lists<L: ListFold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    leaves: &L,
    offsets: &[O],
    finish: impl Fn(<L::Fold as Fold>::Accumulator, usize) -> R,
) -> FoldedLists<R> {
    let (base, lists) = (offsets[0].as_usize(), offsets.len() - 1);
    let mut out = FoldedLists::new_zeroed(lists, if COUNTED { lists } else { 0 });
    let (batches, rest) = offsets[1..].as_chunks::<BATCH>();
    // The last, partial batch is padded with empty lists.
    let mut last = [offsets[lists]; BATCH];
    last[..rest.len()].copy_from_slice(rest);
    let mut parts = [leaves.empty(); BATCH];
    let mut counts = [0; BATCH];
    let mut at = 0;
    for batch in 0..lists.div_ceil(BATCH) {
        let ends = if batch < batches.len() { &batches[batch] } else { &last };
        let done = batch * BATCH;
        let n = (lists - done).min(BATCH);
        let (mut part, mut count, mut more) = (leaves.empty(), 0, false);
        let (mut list, begun) = (0, at);
        while list < n {
            let end = ends[list].as_usize() - base;
            let taken = leaves.fold_chunk(at, end);
            part = L::combine_if(taken.part, part, more);
            parts[list] = part;
            if COUNTED && !L::ALL {
                count = taken.count + if more { count } else { 0 };
                counts[list] = count;
            }
            more = taken.upto < end;
            at = if more { taken.upto } else { end };
            list += usize::from(!more);
        }
        if COUNTED && L::ALL {
            let mut start = begun;
            for i in 0..BATCH {
                let end = ends[i].as_usize() - base;
                counts[i] = end - start;
                start = end;
            }
        }
        let mut found = [[L::Fold::START; LANES]; BATCH / LANES];
        for (found, parts) in found.iter_mut().zip(parts.as_chunks::<LANES>().0) {
            *found = L::reduce_lists(parts);
        }
        let found = found.as_flattened();
        let values = &mut out.values[done..done + n];
        for i in 0..n {
            values[i] = finish(found[i], counts[i]);
        }
        if COUNTED {
            let present = &mut out.present[done..done + n];
            for i in 0..n {
                present[i] = u8::from(counts[i] > 0);
            }
        }
    }
    out
}

fn fold_lists_scalar<F: Fold, O: OffsetSizeTrait, R: Copy + Default>(
    flat: &[F::Input],
    valid: Option<&RankedBitmap>,
    offsets: &[O],
    finish: impl Fn(F::Accumulator, usize) -> R,
) -> FoldedLists<R> {
    let (base, lists) = (offsets[0].as_usize(), offsets.len() - 1);
    let mut out = FoldedLists::new_zeroed(lists, lists);
    let (mut start, mut before) = (0, 0);
    for (list, end) in offsets[1..].iter().enumerate() {
        let leaves = start..end.as_usize() - base;
        start = leaves.end;
        let upto = valid.map_or(leaves.end, |valid| valid.count_before(leaves.end));
        let count = upto - before;
        before = upto;
        out.values[list] = finish(fold_list_scalar::<F>(F::START, flat, valid, leaves), count);
        out.present[list] = u8::from(count > 0);
    }
    out
}

#[inline]
fn fold_list_scalar<F: Fold>(
    mut acc: F::Accumulator,
    flat: &[F::Input],
    valid: Option<&RankedBitmap>,
    list: Range<usize>,
) -> F::Accumulator {
    match valid {
        None => flat[list].iter().for_each(|v| acc = F::push(acc, *v)),
        Some(valid) => {
            for_each_valid(valid, list.start, list.end, |i| acc = F::push(acc, flat[i]));
        }
    }
    acc
}

struct ChunkLanes<'a, F: Fold, T: Validity> {
    flat: &'a [F::Input],
    validity: T,
}

/// Values per chunk: as many as in an AVX-512 block, so that sums of floats have the same bits on
/// every CPU.
const STRIDE: usize = 64;

/// Half of a chunk. Most lists are not longer, and for such a list the fold skips the second half.
const HALF: usize = STRIDE / 2;

impl<F: Fold, T: Validity> ListFold for ChunkLanes<'_, F, T> {
    type Fold = F;
    type Part = [F::Accumulator; LANES];
    const ALL: bool = T::ALL;

    #[inline(always)]
    fn empty(&self) -> [F::Accumulator; LANES] {
        [F::START; LANES]
    }

    #[inline(always)]
    fn reduce_lists(parts: &[[F::Accumulator; LANES]; LANES]) -> [F::Accumulator; LANES] {
        combine_lists::<F>(parts)
    }

    #[inline(always)]
    fn fold_chunk(&self, at: usize, end: usize) -> FoldedChunk<[F::Accumulator; LANES]> {
        let (flat, mut at) = (self.flat, at);
        let mut before = None;
        // Fast path for leaves without nulls: in a long list, only the exit of this loop is
        // mispredicted.
        while T::ALL && end - at > STRIDE {
            let Some(values) = flat[at..].first_chunk::<STRIDE>() else { break };
            prefetch_block::<F::Input, STRIDE>(flat, at);
            let mut states = [[F::START; LANES]; STRIDE / LANES];
            for (states, chunk) in states.iter_mut().zip(values.as_chunks::<LANES>().0) {
                for i in 0..LANES {
                    states[i] = F::push(states[i], chunk[i]);
                }
            }
            let [a, b, c, d, e, f, g, h] = states;
            let part = combine_chunk::<F>([a, b, c, d], Some([e, f, g, h]));
            before = Some(Self::combine_if(part, before.unwrap_or(part), before.is_some()));
            at += STRIDE;
        }
        prefetch_block::<F::Input, HALF>(flat, at);
        // Bits past the end of the list are 0.
        let bits = self.validity.load_valid(at, end.min(at + STRIDE));
        let (part, upto) = if end - at <= HALF {
            let few;
            let values = match flat[at..].first_chunk::<HALF>() {
                Some(values) => values,
                None => {
                    few = pad_tail::<F, HALF>(&flat[at..end]);
                    &few
                }
            };
            (combine_chunk::<F>(push_half::<F>(values, bits), None), at + HALF)
        } else {
            prefetch_block::<F::Input, HALF>(flat, at + HALF);
            let few;
            let values = match flat[at..].first_chunk::<STRIDE>() {
                Some(values) => values,
                None => {
                    few = pad_tail::<F, STRIDE>(&flat[at..end]);
                    &few
                }
            };
            let (low, high) = values.split_at(HALF);
            let (low, high) = match (low.first_chunk::<HALF>(), high.first_chunk::<HALF>()) {
                (Some(low), Some(high)) => (low, high),
                _ => return FoldedChunk { part: self.empty(), count: 0, upto: end },
            };
            let (low, high) = (push_half::<F>(low, bits), push_half::<F>(high, bits >> HALF));
            (combine_chunk::<F>(low, Some(high)), at + STRIDE)
        };
        let part = Self::combine_if(part, before.unwrap_or(part), before.is_some());
        FoldedChunk { part, count: bits.count_ones() as usize, upto }
    }

    #[inline(always)]
    fn combine_if(part: Self::Part, before: Self::Part, more: bool) -> Self::Part {
        let mut all = [F::START; LANES];
        for i in 0..LANES {
            all[i] = F::combine(if more { before[i] } else { F::START }, part[i]);
        }
        all
    }
}

#[cfg(target_arch = "x86_64")]
impl<F: Fold, T: Validity> ListFold for LeafBlocks<'_, F, T> {
    type Fold = F;
    type Part = <F::RegisterBlock as RegisterBlock<F>>::Part;
    const ALL: bool = T::ALL;

    #[inline(always)]
    fn empty(&self) -> Self::Part {
        F::RegisterBlock::empty(self.token).to_register()
    }

    #[inline(always)]
    fn reduce_lists(parts: &[Self::Part; LANES]) -> [F::Accumulator; LANES] {
        F::RegisterBlock::reduce_lists(*parts)
    }

    #[inline(always)]
    fn fold_chunk(&self, at: usize, end: usize) -> FoldedChunk<Self::Part> {
        let (states, bits) = self.fold_block(at, end);
        FoldedChunk {
            part: states.to_register(),
            count: bits.count_ones() as usize,
            upto: at + BLOCK,
        }
    }

    #[inline(always)]
    fn combine_if(part: Self::Part, before: Self::Part, more: bool) -> Self::Part {
        F::RegisterBlock::combine_if(part, before, more)
    }
}

/// Returns `values`, the last leaves (fewer than `N`), padded with the neutral value to `N`.
#[cold]
#[inline(never)]
pub(super) fn pad_tail<F: Fold, const N: usize>(values: &[F::Input]) -> [F::Input; N] {
    let mut few = [F::NEUTRAL; N];
    for (few, v) in few.iter_mut().zip(values) {
        *few = *v;
    }
    few
}

#[inline(always)]
fn push_half<F: Fold>(
    values: &[F::Input; HALF],
    bits: u64,
) -> [[F::Accumulator; LANES]; HALF / LANES] {
    let none = [F::START; LANES];
    let [a, b, c, d] = values.as_chunks::<LANES>().0 else { return [none; HALF / LANES] };
    [
        push_masked::<F>(none, a, bits),
        push_masked::<F>(none, b, bits >> LANES),
        push_masked::<F>(none, c, bits >> (2 * LANES)),
        push_masked::<F>(none, d, bits >> (3 * LANES)),
    ]
}

/// Combines the accumulators of a chunk into one per lane, in the order of the AVX-512 code, so
/// that sums of floats have the same bits on every CPU.
#[inline(always)]
fn combine_chunk<F: Fold>(
    low: [[F::Accumulator; LANES]; 4],
    high: Option<[[F::Accumulator; LANES]; 4]>,
) -> [F::Accumulator; LANES] {
    let [mut a, mut b, mut c, mut d] = low;
    if let Some([e, f, g, h]) = high {
        for i in 0..LANES {
            (a[i], b[i]) = (F::combine(a[i], e[i]), F::combine(b[i], f[i]));
            (c[i], d[i]) = (F::combine(c[i], g[i]), F::combine(d[i], h[i]));
        }
    }
    for i in 0..LANES {
        a[i] = F::combine(F::combine(a[i], c[i]), F::combine(b[i], d[i]));
    }
    a
}

/// Adds eight values to eight accumulators, one each. Has no closures or iterator adapters, which
/// builds without cross-crate optimization do not inline.
#[inline(always)]
pub(super) fn push_masked<F: Fold>(
    mut lanes: [F::Accumulator; LANES],
    chunk: &[F::Input; LANES],
    bits: u64,
) -> [F::Accumulator; LANES] {
    // Use 32-bit masks, because a SIMD select takes masks as wide as the values, and most values
    // have 32 bits. The compiler vectorizes this only if all bits are extracted first, unshifted,
    // and then compared with `1 << i`.
    #[expect(clippy::cast_possible_truncation, reason = "only eight bits are used")]
    let bits = bits as u32;
    let valid_bits = [
        bits & 1,
        bits & 1 << 1,
        bits & 1 << 2,
        bits & 1 << 3,
        bits & 1 << 4,
        bits & 1 << 5,
        bits & 1 << 6,
        bits & 1 << 7,
    ];
    // A choice between values that are already read compiles to a select instead of a branch.
    let chunk: [F::Input; LANES] = *chunk;
    let values = [
        if valid_bits[0] == 1 { chunk[0] } else { F::NEUTRAL },
        if valid_bits[1] == 1 << 1 { chunk[1] } else { F::NEUTRAL },
        if valid_bits[2] == 1 << 2 { chunk[2] } else { F::NEUTRAL },
        if valid_bits[3] == 1 << 3 { chunk[3] } else { F::NEUTRAL },
        if valid_bits[4] == 1 << 4 { chunk[4] } else { F::NEUTRAL },
        if valid_bits[5] == 1 << 5 { chunk[5] } else { F::NEUTRAL },
        if valid_bits[6] == 1 << 6 { chunk[6] } else { F::NEUTRAL },
        if valid_bits[7] == 1 << 7 { chunk[7] } else { F::NEUTRAL },
    ];
    for i in 0..LANES {
        lanes[i] = F::push(lanes[i], values[i]);
    }
    lanes
}

/// Combines adjacent lanes, then adjacent results, until one is left per list.
#[inline(always)]
fn combine_lists<F: Fold>(lists: &[[F::Accumulator; LANES]; LANES]) -> [F::Accumulator; LANES] {
    let [a, b, c, d, e, f, g, h] = lists;
    let (ab, cd) = (combine_pairs::<F>(a, b), combine_pairs::<F>(c, d));
    let (ef, gh) = (combine_pairs::<F>(e, f), combine_pairs::<F>(g, h));
    let (abcd, efgh) = (combine_pairs::<F>(&ab, &cd), combine_pairs::<F>(&ef, &gh));
    combine_pairs::<F>(&abcd, &efgh)
}

#[inline(always)]
fn combine_pairs<F: Fold>(
    a: &[F::Accumulator; LANES],
    b: &[F::Accumulator; LANES],
) -> [F::Accumulator; LANES] {
    let ([a, b, c, d, e, f, g, h], [p, q, r, s, t, u, v, w]) = (*a, *b);
    [
        F::combine(a, b),
        F::combine(c, d),
        F::combine(e, f),
        F::combine(g, h),
        F::combine(p, q),
        F::combine(r, s),
        F::combine(t, u),
        F::combine(v, w),
    ]
}

#[inline(always)]
pub(super) fn for_each_valid(
    valid: &RankedBitmap,
    start: usize,
    end: usize,
    mut each: impl FnMut(usize),
) {
    let (valid, mut at) = (valid.bits(), start);
    while at < end {
        let n = (end - at).min(64);
        let mut word = valid.load_bits(at) & (u64::MAX >> (64 - n));
        while word != 0 {
            each(at + word.trailing_zeros() as usize);
            word &= word - 1;
        }
        at += n;
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use arrow::buffer::BooleanBuffer;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::fold::{ExtremeFold, FoldNumber, Largest, OrderedNumber, Smallest, SumFold};
    use super::super::stacked_runs::{self, ListRun, StackedRuns};
    use super::*;
    use crate::array::Offsets;

    /// Draws offsets and runs of lists whose lengths are near multiples of register widths.
    fn shapes(rng: &mut ChaCha8Rng) -> (Vec<i32>, Vec<ListRun>) {
        let (mut offsets, mut runs) = (vec![rng.random_range(0..5)], Vec::new());
        let (mut lists, mut slots) = (0, 0);
        let many = if rng.random_range(0..10) == 0 { 600 } else { 20 };
        for _ in 0..rng.random_range(0..6) {
            let mut longest = 0;
            for _ in 0..rng.random_range(0..many) {
                let around = [0, 1, 8, 16, 31, 33, 64, 65, 128, 200, 700][rng.random_range(0..11)];
                let n: i32 = around + rng.random_range(0..3);
                offsets.push(offsets[offsets.len() - 1] + n);
                longest = longest.max(n);
                lists += 1;
            }
            slots += usize::try_from(longest).unwrap();
            runs.push(ListRun { end_list: lists, end_slot: slots });
        }
        (offsets, runs)
    }

    /// Asserts that all implementations of folding with `F` give the result of adding value by
    /// value.
    fn all_ways<F: Fold>(
        rng: &mut ChaCha8Rng,
        finish: impl Fn(F::Accumulator) -> F::Accumulator,
        value: impl Fn(&mut ChaCha8Rng) -> F::Input,
    ) where
        F::Accumulator: Debug,
    {
        for _ in 0..60 {
            let (offsets, ends) = shapes(rng);
            let leaves = usize::try_from(offsets[offsets.len() - 1] - offsets[0]).unwrap();
            // In a quarter of the rounds, all values are equal, so that some lists have only -0.0.
            let one = value(rng);
            let same = rng.random_range(0..4) == 0;
            let flat: Vec<F::Input> =
                (0..leaves).map(|_| if same { one } else { value(rng) }).collect();
            let holes = rng.random_range(0.0..1.0f64);
            // The validity bits start at bit `before` of a larger buffer.
            let before = [0, 0, 64, 5, 77][rng.random_range(0..5)];
            let there: BooleanBuffer =
                (0..before + leaves + 9).map(|_| rng.random_range(0.0..1.0f64) > holes).collect();
            let there = there.slice(before, leaves);
            let rank = RankedBitmap::new(&there);
            let base = offsets[0];
            let range = |i: usize| {
                let at = |o: i32| usize::try_from(o - base).unwrap();
                at(offsets[i])..at(offsets[i + 1])
            };
            for valid in [None, Some(&rank)] {
                let holds = |i: &usize| valid.is_none() || there.value(*i);
                let made = |leaves: Vec<usize>| {
                    let acc = leaves.iter().fold(F::START, |acc, i| F::push(acc, flat[*i]));
                    (format!("{:?}", finish(acc)), leaves.len())
                };
                let shown = |found: FoldedLists<(F::Accumulator, usize)>| {
                    let there = found.values.iter().map(|(_, n)| u8::from(*n > 0));
                    assert_eq!(found.present, there.collect::<Vec<_>>());
                    let values = found.values.iter().map(|(acc, n)| (format!("{acc:?}"), *n));
                    values.collect::<Vec<_>>()
                };
                let lists = (0..offsets.len() - 1).map(|i| made(range(i).filter(holds).collect()));
                let lists: Vec<_> = lists.collect();
                let pair = |acc, n| (finish(acc), n);
                let found = dispatch_fold::<F, _, _, true>(&flat, valid, &offsets, pair);
                assert_eq!(shown(found), lists);
                let found = fold_portable::<F, _, _, true>(&flat, valid, &offsets, pair);
                assert_eq!(shown(found), lists);
                // Expected: slot `place` of a run folds leaf `place` of each of its lists.
                let (mut first, mut done, mut slots) = (0, 0, Vec::new());
                for run in &ends {
                    for place in 0..run.end_slot - done {
                        let over = (first..run.end_list).filter_map(|i| range(i).nth(place));
                        slots.push(made(over.filter(holds).collect()));
                    }
                    (first, done) = (run.end_list, run.end_slot);
                }
                let runs = StackedRuns {
                    offsets: Offsets::I32(arrow::buffer::OffsetBuffer::new(offsets.clone().into())),
                    ends: ends
                        .iter()
                        .map(|r| ListRun { end_list: r.end_list, end_slot: r.end_slot })
                        .collect(),
                };
                assert_eq!(shown(runs.fold::<F, _, true>(&flat, valid, pair)), slots);
                let parts = (&offsets[..], &runs.ends[..]);
                let found = stacked_runs::fold_portable::<F, _, _, true>(parts, &flat, valid, pair);
                assert_eq!(shown(found), slots);
                if let Some(valid) = valid {
                    let counts: Vec<usize> = slots.iter().map(|(_, n)| *n).collect();
                    assert_eq!(runs.count_run_values(valid), counts);
                }
            }
        }
    }

    #[test]
    fn sums_of_floats_are_the_same_bits_in_registers_of_every_width() {
        fn bits<T: FoldNumber<Wide = f64>>(
            flat: &[T],
            valid: Option<&RankedBitmap>,
            offsets: &[i32],
        ) -> [Vec<u64>; 2] {
            let finish = |sum: f64, _| sum.to_bits();
            [
                dispatch_fold::<SumFold<T>, _, _, true>(flat, valid, offsets, finish).values,
                fold_portable::<SumFold<T>, _, _, true>(flat, valid, offsets, finish).values,
            ]
        }
        let rng = &mut ChaCha8Rng::seed_from_u64(4);
        for round in 0..100 {
            let (offsets, _) = shapes(rng);
            let base = offsets[0];
            let leaves = usize::try_from(offsets[offsets.len() - 1] - base).unwrap();
            let flat: Vec<f64> = (0..leaves).map(|_| rng.random_range(-1e3..1e3)).collect();
            let singles: Vec<f32> = (0..leaves).map(|_| rng.random_range(-1e3..1e3)).collect();
            let there: BooleanBuffer = (0..leaves).map(|_| rng.random()).collect();
            let rank = RankedBitmap::new(&there);
            for valid in [None, Some(&rank)] {
                let [a, b] = bits(&flat, valid, &offsets);
                assert_eq!(a, b, "{round}");
                let [c, d] = bits(&singles, valid, &offsets);
                assert_eq!(c, d, "{round}");
                // The sum of a list also has the same bits if its leaves are alone in a buffer.
                for list in 0..offsets.len() - 1 {
                    let at = |o: i32| usize::try_from(o - base).unwrap();
                    let (start, end) = (at(offsets[list]), at(offsets[list + 1]));
                    let alone = there.slice(start, end - start);
                    let alone = valid.map(|_| RankedBitmap::new(&alone));
                    let ends = [0, i32::try_from(end - start).unwrap()];
                    let [one, other] = bits(&flat[start..end], alone.as_ref(), &ends);
                    assert_eq!((one[0], other[0]), (a[list], a[list]), "{round}");
                }
            }
        }
    }

    #[test]
    fn registers_of_every_width_make_the_same() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        // `number` also draws NaN, infinities and -0.0; `whole` only draws numbers with exact sums.
        let number = |rng: &mut ChaCha8Rng| match rng.random_range(0..40) {
            0 => f32::NAN,
            1 => -f32::NAN,
            2 => f32::INFINITY,
            3 => f32::NEG_INFINITY,
            4..9 => -0.0,
            _ => rng.random_range(-50..50i8).into(),
        };
        let whole = |rng: &mut ChaCha8Rng| match rng.random_range(0..4) {
            0 => -0.0,
            _ => f32::from(rng.random_range(-50..50i8)),
        };
        fn same<T>(value: T) -> T {
            value
        }
        all_ways::<SumFold<f32>>(rng, same, whole);
        all_ways::<SumFold<f64>>(rng, same, |rng| whole(rng).into());
        all_ways::<SumFold<i16>>(rng, same, |rng| rng.random());
        all_ways::<SumFold<u64>>(rng, same, |rng| rng.random());
        all_ways::<ExtremeFold<u8, Largest>>(rng, OrderedNumber::one_zero, |rng| rng.random());
        all_ways::<ExtremeFold<i64, Smallest>>(rng, OrderedNumber::one_zero, |rng| rng.random());
        all_ways::<ExtremeFold<f32, Largest>>(rng, OrderedNumber::one_zero, number);
        all_ways::<ExtremeFold<f32, Smallest>>(rng, OrderedNumber::one_zero, number);
        all_ways::<ExtremeFold<f64, Largest>>(rng, OrderedNumber::one_zero, |rng| {
            number(rng).into()
        });
        all_ways::<ExtremeFold<f64, Smallest>>(rng, OrderedNumber::one_zero, |rng| {
            number(rng).into()
        });
    }
}
