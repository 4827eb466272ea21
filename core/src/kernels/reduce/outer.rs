//! Groups the leaves for a reduction along an outer axis. A group is called a slot: it becomes one
//! element of the result. The lists of leaves that are reduced together are called stacked.
//!
//! ```text
//! axis 1 of   [[a b c], [d e], [], [f]]     reduces to   [a+d+f  b+e  c]
//!
//! lists of leaves    a b c      start 0
//!                    d e        start 0     the k-th leaf of a list
//!                    (empty)    start 0     belongs to slot start + k
//!                    f          start 0
//! slots              0 1 2
//! ```
//!
//! Each list of the reduced axis has its own slots, after those of the list before it.

use std::borrow::Cow;
use std::ops::Range;

use arrow::array::{OffsetSizeTrait, UInt64Array};

use super::fold::{Fold, LANES};
use super::segments::{self, FoldedLists};
use super::stacked_runs::{ListRun, StackedRuns};
use crate::array::{Layout, ListAxis, Offsets, RaggedArray, make_lists_like};
use crate::error::Result;
use crate::kernels::bits::RankedBitmap;
use crate::kernels::simd::for_avx2;
use crate::with_offsets;

/// Lists of leaves, and the slot (element of the result) of each leaf. The leaves of a slot keep
/// their order.
pub(in crate::kernels) struct StackedLists {
    /// The reduced axis and all axes below it. The lists of leaves are the lists of the last axis.
    levels: Vec<ListAxis>,
    /// Slot of the first leaf of each list; `None` if each element of the reduced axis is one list
    /// of leaves: all elements of a list then start at the same slot.
    starts: Option<Vec<usize>>,
    slots: Layout,
}

pub(super) fn stack_lists(
    array: &RaggedArray,
    axis: usize,
) -> Result<(Vec<ListAxis>, StackedLists)> {
    let (above, levels) = array.axes().split_at(axis - 1);
    let mut axes = above.to_vec();
    let stacked = |starts, slots| StackedLists { levels: levels.to_vec(), starts, slots };
    let reduced = array.axis(axis)?;
    let mut nulls = reduced.nulls().cloned();
    let Some((level, mut below)) = levels[1..].split_first() else {
        // The reduced axis is the innermost, so all leaves of a list are one group.
        let lists = reduced.layout().lists();
        let slots = Layout::Uniform { size: 1, lists };
        return Ok((axes, stacked(None, slots)));
    };
    // Each list of the reduced axis becomes one list, as long as the longest of its elements.
    let lengths = find_longest_lists(reduced.layout(), level.layout())?;
    let mut new = make_lists_like(level.layout(), lengths)?;
    axes.push(ListAxis::try_new(new.clone(), nulls.take())?);
    let mut layout = level.layout();
    let mut starts = None;
    while let Some((level, rest)) = below.split_first() {
        // For each list of this level, the result element to which its first element contributes.
        let first = starts.unwrap_or_else(|| find_first_slots(reduced.layout(), &new));
        // For each element of this level, the result element to which it contributes.
        let mut on = Vec::with_capacity(layout.children());
        for (list, start) in first.iter().enumerate() {
            on.extend(*start..start + layout.length(list));
        }
        layout = level.layout();
        let mut lengths = vec![0usize; new.children()];
        for (list, on) in on.iter().enumerate() {
            lengths[*on] = lengths[*on].max(layout.length(list));
        }
        new = make_lists_like(layout, lengths)?;
        axes.push(ListAxis::try_new(new.clone(), None)?);
        starts = Some(on.iter().map(|on| new.range(*on).start).collect());
        below = rest;
    }
    Ok((axes, stacked(starts, new)))
}

fn repeat_per_child(layout: &Layout, of: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut out = Vec::with_capacity(layout.children());
    for list in 0..layout.lists() {
        out.resize(out.len() + layout.length(list), of(list));
    }
    out
}

fn find_first_slots(reduced: &Layout, slots: &Layout) -> Vec<usize> {
    repeat_per_child(reduced, |list| slots.range(list).start)
}

fn find_longest_lists(outer: &Layout, inner: &Layout) -> Result<Vec<usize>> {
    fn find_longest_ragged<O: OffsetSizeTrait>(outer: &Layout, inner: &[O]) -> Vec<usize> {
        let mut out = Vec::with_capacity(outer.lists());
        for list in 0..outer.lists() {
            let Range { start, end } = outer.range(list);
            let mut longest = O::usize_as(0);
            for pair in inner[start..=end].windows(2) {
                longest = longest.max(pair[1] - pair[0]);
            }
            out.push(longest.as_usize());
        }
        out
    }
    Ok(match inner {
        Layout::Uniform { size, .. } => {
            (0..outer.lists()).map(|list| size * usize::from(outer.length(list) > 0)).collect()
        }
        Layout::Ragged(Offsets::I32(o)) => find_longest_ragged(outer, o),
        Layout::Ragged(Offsets::I64(o)) => find_longest_ragged(outer, o),
    })
}

impl StackedLists {
    /// Returns the lists of leaves. If the reduced axis is the innermost, each leaf is a list of
    /// its own.
    fn inner(&self) -> Layout {
        match &self.levels[..] {
            [reduced] => Layout::Uniform { size: 1, lists: reduced.layout().children() },
            [.., inner] => inner.layout().clone(),
            [] => Layout::Uniform { size: 1, lists: 0 },
        }
    }

    /// Returns, for each list of leaves, which element of the reduced axis contains it: the index
    /// of this element in its list.
    fn list_positions(&self) -> Vec<usize> {
        let mut along = Vec::new();
        for (depth, level) in self.levels.iter().enumerate() {
            let layout = level.layout();
            if depth == 0 {
                along = (0..layout.lists()).flat_map(|list| 0..layout.length(list)).collect();
            } else if depth + 1 < self.levels.len() {
                along = repeat_per_child(layout, |list| along[list]);
            }
        }
        along
    }

    pub(super) fn len(&self) -> usize {
        self.slots.children()
    }

    pub(super) fn fold<F: Fold, R: Copy + Default>(
        &self,
        flat: &[F::Input],
        valid: Option<&RankedBitmap>,
        finish: impl Fn(F::Accumulator) -> R,
    ) -> Result<Vec<R>> {
        if let (true, Some(runs)) = (F::VECTORIZED, self.plan_runs()?) {
            return Ok(runs.fold::<F, R, false>(flat, valid, |acc, _| finish(acc)).values);
        }
        Ok(self.fold_stacked::<F>(flat, valid).into_iter().map(finish).collect())
    }

    pub(super) fn fold_counted<F: Fold, R: Copy + Default>(
        &self,
        flat: &[F::Input],
        valid: Option<&RankedBitmap>,
        finish: impl Fn(F::Accumulator, usize) -> R,
    ) -> Result<FoldedLists<R>> {
        if let (true, Some(runs)) = (F::VECTORIZED, self.plan_runs()?) {
            return Ok(runs.fold::<F, R, true>(flat, valid, finish));
        }
        let (states, counts) = (self.fold_stacked::<F>(flat, valid), self.count_slot_values(valid));
        let values = states.iter().zip(&counts).map(|(acc, n)| finish(*acc, *n)).collect();
        Ok(FoldedLists { values, present: counts.iter().map(|n| u8::from(*n > 0)).collect() })
    }

    fn find_starts(&self) -> Cow<'_, [usize]> {
        match (&self.starts, self.levels.first()) {
            (Some(starts), _) => Cow::Borrowed(starts),
            (None, Some(reduced)) => Cow::Owned(find_first_slots(reduced.layout(), &self.slots)),
            (None, None) => Cow::Borrowed(&[]),
        }
    }

    /// Divides the lists of leaves into runs of adjacent lists whose first leaf has the same slot.
    /// Returns `None` if these slots do not ascend from run to run.
    fn plan_runs(&self) -> Result<Option<StackedRuns>> {
        let ends = match (&self.starts, &self.levels[..]) {
            (Some(starts), _) if !starts.is_sorted() => return Ok(None),
            (Some(starts), _) => {
                let mut ends = Vec::new();
                let mut lists = 0;
                for run in starts.chunk_by(|a, b| a == b) {
                    lists += run.len();
                    let slots = starts.get(lists).map_or(self.len(), |next| *next);
                    ends.push(ListRun { end_list: lists, end_slot: slots });
                }
                ends
            }
            (None, levels) => {
                let reduced = levels.first().map(ListAxis::layout);
                let each = reduced.into_iter().flat_map(|of| (0..of.lists()).map(|i| of.range(i)));
                let slots = (0..self.slots.lists()).map(|list| self.slots.range(list).end);
                each.zip(slots)
                    .map(|(lists, end_slot)| ListRun { end_list: lists.end, end_slot })
                    .collect()
            }
        };
        Ok(Some(StackedRuns { offsets: self.inner().to_offsets()?, ends }))
    }

    fn fold_stacked<F: Fold>(
        &self,
        flat: &[F::Input],
        valid: Option<&RankedBitmap>,
    ) -> Vec<F::Accumulator> {
        let mut states = vec![F::START; self.len() + LANES];
        self.dispatch_stacked::<F>(flat, valid, &mut states);
        states.truncate(self.len());
        states
    }

    fn dispatch_stacked<F: Fold>(
        &self,
        flat: &[F::Input],
        valid: Option<&RankedBitmap>,
        states: &mut [F::Accumulator],
    ) {
        let (inner, starts) = (self.inner(), self.find_starts());
        let (inner, starts): (&Layout, &[usize]) = (&inner, &starts);
        if !F::VECTORIZED {
            return fold_lists_into::<F>(inner, starts, flat, valid, states);
        }
        for_avx2!(
            fn[F: Fold]::[F](
                inner: &Layout,
                starts: &[usize],
                flat: &[F::Input],
                valid: Option<&RankedBitmap>,
                states: &mut [F::Accumulator],
            ) = fold_lists_into::<F>(inner, starts, flat, valid, states)
        );
    }

    pub(super) fn count_slot_values(&self, valid: Option<&RankedBitmap>) -> Vec<usize> {
        if let (Some(valid), Ok(Some(runs))) = (valid, self.plan_runs()) {
            return runs.count_run_values(valid);
        }
        let mut counts = vec![0usize; self.len()];
        let inner = self.inner();
        if let Some(valid) = valid {
            for (list, start) in self.find_starts().iter().enumerate() {
                let list = inner.range(list);
                segments::for_each_valid(valid, list.start, list.end, |leaf| {
                    counts[start + (leaf - list.start)] += 1;
                });
            }
            return counts;
        }
        // Count each list only at the slot of its last leaf, `start + n - 1`. The last loop of
        // `count_slot_values` adds this count to the slots of its other leaves.
        fn count_ends<O: OffsetSizeTrait>(offsets: &[O], starts: &[usize], counts: &mut [usize]) {
            for (pair, start) in offsets.windows(2).zip(starts) {
                let n = (pair[1] - pair[0]).as_usize();
                if n > 0 {
                    counts[start + n - 1] += 1;
                }
            }
        }
        match &inner {
            Layout::Ragged(offsets) => {
                with_offsets!(offsets, o => count_ends(o, &self.find_starts(), &mut counts));
            }
            Layout::Uniform { size: 0, .. } => {}
            Layout::Uniform { size, .. } => {
                self.find_starts().iter().for_each(|start| counts[start + size - 1] += 1);
            }
        }
        for list in 0..self.slots.lists() {
            let mut total = 0;
            for count in counts[self.slots.range(list)].iter_mut().rev() {
                total += *count;
                *count = total;
            }
        }
        counts
    }

    pub(super) fn gather_stacked(&self) -> Result<GatheredLeaves> {
        let counts = self.count_slot_values(None);
        let offsets = Offsets::from_lengths(counts.iter().copied())?;
        let mut next: Vec<usize> = counts
            .iter()
            .scan(0, |end, n| {
                let start = *end;
                *end += n;
                Some(start)
            })
            .collect();
        let (inner, positions) = (self.inner(), self.list_positions());
        let mut order = vec![0u64; inner.children()];
        let mut along = vec![0usize; inner.children()];
        for (list, start) in self.find_starts().iter().enumerate() {
            for (leaf, slot) in inner.range(list).zip(*start..) {
                order[next[slot]] = leaf as u64;
                along[next[slot]] = positions[list];
                next[slot] += 1;
            }
        }
        Ok(GatheredLeaves { order: UInt64Array::from(order), along, lists: offsets.into() })
    }
}

impl StackedLists {
    pub(in crate::kernels) fn order_by_slot(&self) -> Result<(UInt64Array, Layout)> {
        let gathered = self.gather_stacked()?;
        Ok((gathered.order, gathered.lists.layout().clone()))
    }

    /// Returns, for every leaf, the leaf of the same slot `n` elements before it along the reduced
    /// axis (after it if `n` is negative), if any.
    pub(in crate::kernels) fn shift_leaves(&self, n: i64) -> Result<Vec<Option<u64>>> {
        let GatheredLeaves { order, along, lists } = self.gather_stacked()?;
        let distance = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
        let mut from = vec![None; order.len()];
        for list in 0..lists.layout().lists() {
            let range = lists.layout().range(list);
            let (along, order) = (&along[range.clone()], &order.values()[range]);
            for (leaf, at) in order.iter().zip(along) {
                let source = match n < 0 {
                    true => at.checked_add(distance),
                    false => at.checked_sub(distance),
                };
                let found = source.and_then(|s| along.binary_search(&s).ok());
                from[usize::try_from(*leaf).unwrap_or(usize::MAX)] = found.map(|i| order[i]);
            }
        }
        Ok(from)
    }
}

pub(super) struct GatheredLeaves {
    /// For each leaf in the order of the slots, its index in the original order.
    pub(super) order: UInt64Array,
    /// For each leaf in the order of the slots, its index along the reduced axis.
    pub(super) along: Vec<usize>,
    pub(super) lists: ListAxis,
}

/// Folds each list of leaves into `states`, the accumulators of the slots. `states` has [`LANES`]
/// more elements than the result, because leaves are folded in groups of [`LANES`]: the last group
/// of a list may reach past its end, where a mask excludes the leaves.
#[inline(always)]
fn fold_lists_into<F: Fold>(
    inner: &Layout,
    starts: &[usize],
    flat: &[F::Input],
    valid: Option<&RankedBitmap>,
    states: &mut [F::Accumulator],
) {
    let eight = |states: &mut [F::Accumulator], at: usize, bits: u64| {
        let Some(values) = flat.get(at..) else { return };
        match (states.first_chunk_mut::<LANES>(), values.first_chunk::<LANES>()) {
            (Some(slot), Some(chunk)) => *slot = segments::push_masked::<F>(*slot, chunk, bits),
            _ => push_tail::<F>(states, values, bits),
        }
    };
    for (list, start) in starts.iter().enumerate() {
        let list = inner.range(list);
        let states = &mut states[*start..];
        let Some(valid) = valid else {
            let (chunks, rest) = flat[list.clone()].as_chunks::<LANES>();
            for (slot, chunk) in states.as_chunks_mut::<LANES>().0.iter_mut().zip(chunks) {
                for (state, v) in slot.iter_mut().zip(chunk) {
                    *state = F::push(*state, *v);
                }
            }
            let done = chunks.len() * LANES;
            eight(&mut states[done..], list.start + done, (1 << rest.len()) - 1);
            continue;
        };
        let (valid, mut done) = (valid.bits(), 0);
        while done < list.len() {
            let n = (list.len() - done).min(64);
            let mut word = valid.load_bits(list.start + done) & (u64::MAX >> (64 - n));
            let mut place = done;
            while word != 0 {
                eight(&mut states[place..], list.start + place, word);
                word >>= LANES;
                place += LANES;
            }
            done += n;
        }
    }
}

#[cold]
#[inline(never)]
fn push_tail<F: Fold>(states: &mut [F::Accumulator], values: &[F::Input], bits: u64) {
    for (i, (state, v)) in states.iter_mut().zip(values).take(LANES).enumerate() {
        if bits >> i & 1 == 1 {
            *state = F::push(*state, *v);
        }
    }
}
