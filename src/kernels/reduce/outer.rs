//! Lists laid over one another: what a reduction along an outer axis looks at.

use std::borrow::Cow;
use std::ops::Range;

use arrow::array::{OffsetSizeTrait, UInt64Array};

use super::fold::Fold;
use super::runs::{Run, Runs};
use super::segments::{self, Folded, LANES};
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::error::Result;
use crate::kernels::bits::Rank;
use crate::kernels::gather::lists_like;
use crate::with_offsets;

/// The lists of the innermost axis, and where in the result each of them lies.
///
/// What falls on one place of the result comes in the order of the leaves.
pub(in crate::kernels) struct Overlay {
    /// The reduced axis and all below it; the last one has the lists of leaves.
    levels: Vec<ListAxis>,
    /// For each list of leaves, the place of its first leaf in the result; `None` when they are the elements
    /// of the reduced axis, which follow each other.
    starts: Option<Vec<usize>>,
    /// The innermost lists of the result.
    slots: Layout,
}

/// The levels of the result of reducing along axis `axis`, which is not the innermost, and where the
/// leaves go.
pub(super) fn overlay(array: &RaggedArray, axis: usize) -> Result<(Vec<ListAxis>, Overlay)> {
    let (above, levels) = array.axes().split_at(axis - 1);
    let mut axes = above.to_vec();
    let overlay = |starts, slots| Overlay { levels: levels.to_vec(), starts, slots };
    let reduced = array.axis(axis)?;
    let mut nulls = reduced.nulls().cloned();
    let Some((level, mut below)) = levels[1..].split_first() else {
        // An innermost axis has nothing below it that could be laid over one another.
        let lists = reduced.layout().lists();
        let slots = Layout::Uniform { size: 1, lists };
        return Ok((axes, overlay(None, slots)));
    };
    // Elements of the reduced axis follow each other: as long as the longest of each of its lists.
    let lengths = longest(reduced.layout(), level.layout())?;
    let mut new = lists_like(level.layout(), lengths)?;
    axes.push(ListAxis::try_new(new.clone(), nulls.take())?);
    let mut layout = level.layout();
    let mut starts = None;
    while let Some((level, rest)) = below.split_first() {
        // For every element of the axis at hand: its first place on the next.
        let first = starts.unwrap_or_else(|| first_places(reduced.layout(), &new));
        // For every element of the axis at hand: the element of the result it falls on.
        let mut on = Vec::with_capacity(layout.children());
        for (list, start) in first.iter().enumerate() {
            on.extend(*start..start + layout.length(list));
        }
        layout = level.layout();
        let mut lengths = vec![0usize; new.children()];
        for (list, on) in on.iter().enumerate() {
            lengths[*on] = lengths[*on].max(layout.length(list));
        }
        new = lists_like(layout, lengths)?;
        axes.push(ListAxis::try_new(new.clone(), None)?);
        starts = Some(on.iter().map(|on| new.range(*on).start).collect());
        below = rest;
    }
    Ok((axes, overlay(starts, new)))
}

/// A number of every list of `layout`, for each of its children.
fn repeated(layout: &Layout, of: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut out = Vec::with_capacity(layout.children());
    for list in 0..layout.lists() {
        out.resize(out.len() + layout.length(list), of(list));
    }
    out
}

/// For every child of `reduced`, the place of `slots` where its list begins.
fn first_places(reduced: &Layout, slots: &Layout) -> Vec<usize> {
    repeated(reduced, |list| slots.range(list).start)
}

/// For every list of `outer`, the length of the longest list in it.
fn longest(outer: &Layout, inner: &Layout) -> Result<Vec<usize>> {
    fn typed<O: OffsetSizeTrait>(outer: &Layout, inner: &[O]) -> Vec<usize> {
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
        Layout::Ragged(Offsets::I32(o)) => typed(outer, o),
        Layout::Ragged(Offsets::I64(o)) => typed(outer, o),
    })
}

impl Overlay {
    /// The lists of leaves. Where the reduced axis is the innermost, every leaf is one.
    fn inner(&self) -> Layout {
        match &self.levels[..] {
            [reduced] => Layout::Uniform { size: 1, lists: reduced.layout().children() },
            [.., inner] => inner.layout().clone(),
            [] => Layout::Uniform { size: 1, lists: 0 },
        }
    }

    /// For each list of leaves, the element of the reduced axis that it is or belongs to: its position
    /// there.
    fn along(&self) -> Vec<usize> {
        let mut along = Vec::new();
        for (depth, level) in self.levels.iter().enumerate() {
            let layout = level.layout();
            if depth == 0 {
                along = (0..layout.lists()).flat_map(|list| 0..layout.length(list)).collect();
            } else if depth + 1 < self.levels.len() {
                along = repeated(layout, |list| along[list]);
            }
        }
        along
    }

    /// Number of places in the result.
    pub(super) fn len(&self) -> usize {
        self.slots.children()
    }

    /// What `finish` makes of the state of every place of the result, null leaves left out.
    pub(super) fn fold<F: Fold, R: Copy + Default>(
        &self,
        flat: &[F::In],
        valid: Option<&Rank>,
        finish: impl Fn(F::Acc) -> R,
    ) -> Result<Vec<R>> {
        if let (true, Some(runs)) = (F::LANED, self.runs()?) {
            return Ok(runs.fold::<F, R, false>(flat, valid, |acc, _| finish(acc)).values);
        }
        Ok(self.laid_over::<F>(flat, valid).into_iter().map(finish).collect())
    }

    /// As [`fold`](Self::fold), of the state and the number of leaves in it.
    pub(super) fn fold_counted<F: Fold, R: Copy + Default>(
        &self,
        flat: &[F::In],
        valid: Option<&Rank>,
        finish: impl Fn(F::Acc, usize) -> R,
    ) -> Result<Folded<R>> {
        if let (true, Some(runs)) = (F::LANED, self.runs()?) {
            return Ok(runs.fold::<F, R, true>(flat, valid, finish));
        }
        let (states, counts) = (self.laid_over::<F>(flat, valid), self.counts(valid));
        let values = states.iter().zip(&counts).map(|(acc, n)| finish(*acc, *n)).collect();
        Ok(Folded { values, there: counts.iter().map(|n| u8::from(*n > 0)).collect() })
    }

    /// For each list of leaves, the place of its first leaf in the result.
    fn starts(&self) -> Cow<'_, [usize]> {
        match (&self.starts, self.levels.first()) {
            (Some(starts), _) => Cow::Borrowed(starts),
            (None, Some(reduced)) => Cow::Owned(first_places(reduced.layout(), &self.slots)),
            (None, None) => Cow::Borrowed(&[]),
        }
    }

    /// The lists as runs, when those that lie over one another follow each other.
    fn runs(&self) -> Result<Option<Runs>> {
        let ends = match (&self.starts, &self.levels[..]) {
            (Some(starts), _) if !starts.is_sorted() => return Ok(None),
            (Some(starts), _) => {
                let mut ends = Vec::new();
                let mut lists = 0;
                for run in starts.chunk_by(|a, b| a == b) {
                    lists += run.len();
                    let places = starts.get(lists).map_or(self.len(), |next| *next);
                    ends.push(Run { lists, places });
                }
                ends
            }
            (None, levels) => {
                let reduced = levels.first().map(ListAxis::layout);
                let each = reduced.into_iter().flat_map(|of| (0..of.lists()).map(|i| of.range(i)));
                let places = (0..self.slots.lists()).map(|list| self.slots.range(list).end);
                each.zip(places).map(|(lists, places)| Run { lists: lists.end, places }).collect()
            }
        };
        Ok(Some(Runs { offsets: self.inner().to_offsets()?, ends }))
    }

    /// The state of every place, with registers of 256 bits where the processor has them.
    fn laid_over<F: Fold>(&self, flat: &[F::In], valid: Option<&Rank>) -> Vec<F::Acc> {
        let mut states = vec![F::START; self.len() + LANES];
        self.lay_over::<F>(flat, valid, &mut states);
        states.truncate(self.len());
        states
    }

    fn lay_over<F: Fold>(&self, flat: &[F::In], valid: Option<&Rank>, states: &mut [F::Acc]) {
        #[cfg(target_arch = "x86_64")]
        if F::LANED && crate::kernels::bits::has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            unsafe { lay_wide::<F>(&self.inner(), &self.starts(), flat, valid, states) };
            return;
        }
        lay::<F>(&self.inner(), &self.starts(), flat, valid, states);
    }

    /// How many leaves fell on every place, null ones left out.
    pub(super) fn counts(&self, valid: Option<&Rank>) -> Vec<usize> {
        if let (Some(valid), Ok(Some(runs))) = (valid, self.runs()) {
            return runs.counts(valid);
        }
        let mut counts = vec![0usize; self.len()];
        let inner = self.inner();
        if let Some(valid) = valid {
            for (list, start) in self.starts().iter().enumerate() {
                let list = inner.range(list);
                segments::for_each_valid(valid, list.start, list.end, |leaf| {
                    counts[start + (leaf - list.start)] += 1;
                });
            }
            return counts;
        }
        // A list counts once at its last place, and then everywhere before it.
        fn ends<O: OffsetSizeTrait>(offsets: &[O], starts: &[usize], counts: &mut [usize]) {
            for (pair, start) in offsets.windows(2).zip(starts) {
                let n = (pair[1] - pair[0]).as_usize();
                if n > 0 {
                    counts[start + n - 1] += 1;
                }
            }
        }
        match &inner {
            Layout::Ragged(offsets) => {
                with_offsets!(offsets, o => ends(o, &self.starts(), &mut counts));
            }
            Layout::Uniform { size: 0, .. } => {}
            Layout::Uniform { size, .. } => {
                self.starts().iter().for_each(|start| counts[start + size - 1] += 1);
            }
        }
        for list in 0..self.slots.lists() {
            let mut here = 0;
            for count in counts[self.slots.range(list)].iter_mut().rev() {
                here += *count;
                *count = here;
            }
        }
        counts
    }

    /// The leaves in the order of their places in the result, and how the places divide them.
    pub(super) fn gathered(&self) -> Result<Gathered> {
        let counts = self.counts(None);
        let offsets = Offsets::from_lengths(counts.iter().copied())?;
        let mut next: Vec<usize> = counts
            .iter()
            .scan(0, |end, n| {
                let start = *end;
                *end += n;
                Some(start)
            })
            .collect();
        let (inner, positions) = (self.inner(), self.along());
        let mut order = vec![0u64; inner.children()];
        let mut along = vec![0usize; inner.children()];
        for (list, start) in self.starts().iter().enumerate() {
            for (leaf, slot) in inner.range(list).zip(*start..) {
                order[next[slot]] = leaf as u64;
                along[next[slot]] = positions[list];
                next[slot] += 1;
            }
        }
        Ok(Gathered { order: UInt64Array::from(order), along, lists: offsets.into() })
    }
}

impl Overlay {
    /// The leaves in the order of their places, and the lists that the places make.
    pub(in crate::kernels) fn in_order(&self) -> Result<(UInt64Array, Layout)> {
        let gathered = self.gathered()?;
        Ok((gathered.order, gathered.lists.layout().clone()))
    }

    /// For every leaf the one at the same place, `n` elements before along the axis.
    pub(in crate::kernels) fn shifted(&self, n: i64) -> Result<Vec<Option<u64>>> {
        let Gathered { order, along, lists } = self.gathered()?;
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

/// Leaves that were laid over one another as lists of their own.
pub(super) struct Gathered {
    /// Which leaf comes when.
    pub(super) order: UInt64Array,
    /// For each of them, its position along the reduced axis.
    pub(super) along: Vec<usize>,
    /// One list per place in the result.
    pub(super) lists: ListAxis,
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn lay_wide<F: Fold>(
    inner: &Layout,
    starts: &[usize],
    flat: &[F::In],
    valid: Option<&Rank>,
    states: &mut [F::Acc],
) {
    lay::<F>(inner, starts, flat, valid, states);
}

/// `states` has room for eight more than there are places: a list's last few values come with what
/// stands behind them, which counts nothing.
#[inline(always)]
fn lay<F: Fold>(
    inner: &Layout,
    starts: &[usize],
    flat: &[F::In],
    valid: Option<&Rank>,
    states: &mut [F::Acc],
) {
    let eight = |states: &mut [F::Acc], at: usize, bits: u64| {
        let Some(values) = flat.get(at..) else { return };
        match (states.first_chunk_mut::<LANES>(), values.first_chunk::<LANES>()) {
            (Some(slot), Some(chunk)) => *slot = segments::chosen::<F>(*slot, chunk, bits),
            _ => last_few::<F>(states, values, bits),
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
            let mut word = valid.at(list.start + done) & (u64::MAX >> (64 - n));
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

/// Where fewer than eight values are left of all.
#[cold]
#[inline(never)]
fn last_few<F: Fold>(states: &mut [F::Acc], values: &[F::In], bits: u64) {
    for (i, (state, v)) in states.iter_mut().zip(values).take(LANES).enumerate() {
        if bits >> i & 1 == 1 {
            *state = F::push(*state, *v);
        }
    }
}
