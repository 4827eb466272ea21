//! Lists laid over one another: what a reduction along an outer axis looks at.

use arrow::array::UInt64Array;

use super::fold::Fold;
use super::runs::Runs;
use super::segments::{self, LANES};
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::error::Result;
use crate::kernels::bits::Rank;
use crate::kernels::gather::lists_like;

/// The lists of the innermost axis, and where in the result each of them lies.
///
/// What falls on one place of the result comes in the order of the leaves.
pub(in crate::kernels) struct Overlay {
    /// The lists of leaves.
    inner: Layout,
    /// For each of them, the place of its first leaf in the result.
    starts: Vec<usize>,
    /// For each of them, the element of the reduced axis that it is or belongs to: its position there.
    along: Vec<usize>,
    /// The innermost lists of the result.
    slots: Layout,
}

/// The levels of the result of reducing along axis `axis`, which is not the innermost, and where the
/// leaves go.
pub(super) fn overlay(array: &RaggedArray, axis: usize) -> Result<(Vec<ListAxis>, Overlay)> {
    let level = array.axis(axis)?;
    let mut axes = array.axes()[..axis - 1].to_vec();
    // For every element of the axis at hand: the element of the result it falls on, and its position
    // along the reduced axis.
    let children = level.layout().children();
    let (mut on, mut along) = (Vec::with_capacity(children), Vec::with_capacity(children));
    for list in 0..level.layout().lists() {
        let n = level.layout().length(list);
        on.resize(on.len() + n, list);
        along.extend(0..n);
    }
    let mut len = level.layout().lists();
    let mut nulls = level.nulls().cloned();
    let mut below = &array.axes()[axis..];
    loop {
        let Some((level, rest)) = below.split_first() else {
            // An innermost axis has nothing below it that could be laid over one another.
            let inner = Layout::Uniform { size: 1, lists: on.len() };
            let slots = Layout::Uniform { size: 1, lists: len };
            return Ok((axes, Overlay { inner, starts: on, along, slots }));
        };
        let layout = level.layout();
        let mut lengths = vec![0usize; len];
        for (list, on) in on.iter().enumerate() {
            lengths[*on] = lengths[*on].max(layout.length(list));
        }
        let new = lists_like(layout, lengths)?;
        axes.push(ListAxis::try_new(new.clone(), nulls.take())?);
        if rest.is_empty() {
            let starts = on.iter().map(|on| new.range(*on).start).collect();
            return Ok((axes, Overlay { inner: layout.clone(), starts, along, slots: new }));
        }
        let deeper = layout.children();
        let (mut next, mut next_along) = (Vec::with_capacity(deeper), Vec::with_capacity(deeper));
        for (list, (on, along)) in on.iter().zip(&along).enumerate() {
            let (start, n) = (new.range(*on).start, layout.length(list));
            next.extend(start..start + n);
            next_along.resize(next_along.len() + n, *along);
        }
        (on, along) = (next, next_along);
        len = new.children();
        below = rest;
    }
}

impl Overlay {
    /// Number of places in the result.
    pub(super) fn len(&self) -> usize {
        self.slots.children()
    }

    /// What `finish` makes of the state of every place of the result, null leaves left out.
    pub(super) fn fold<F: Fold, R>(
        &self,
        flat: &[F::In],
        valid: Option<&Rank>,
        finish: impl Fn(F::Acc) -> R,
    ) -> Result<Vec<R>> {
        if let (true, Some(runs)) = (F::LANED, self.runs()?) {
            return Ok(runs.fold::<F, R>(flat, valid, finish));
        }
        let mut states = vec![F::START; self.len() + LANES];
        self.lay_over::<F>(flat, valid, &mut states);
        states.truncate(self.len());
        Ok(states.into_iter().map(finish).collect())
    }

    /// The lists as runs, when those that lie over one another follow each other.
    fn runs(&self) -> Result<Option<Runs<'_>>> {
        if !self.starts.is_sorted() {
            return Ok(None);
        }
        let offsets = match &self.inner {
            Layout::Ragged(offsets) => offsets.clone(),
            uniform @ Layout::Uniform { .. } => uniform.to_offsets()?,
        };
        Ok(Some(Runs { offsets, starts: &self.starts, slots: self.len() }))
    }

    /// With the widest registers that the processor has.
    fn lay_over<F: Fold>(&self, flat: &[F::In], valid: Option<&Rank>, states: &mut [F::Acc]) {
        #[cfg(target_arch = "x86_64")]
        if F::LANED && crate::kernels::bits::has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            unsafe { lay_wide::<F>(&self.inner, &self.starts, flat, valid, states) };
            return;
        }
        lay::<F>(&self.inner, &self.starts, flat, valid, states);
    }

    /// How many leaves fell on every place, null ones left out.
    pub(super) fn counts(&self, valid: Option<&Rank>) -> Vec<usize> {
        if let (Some(valid), Ok(Some(runs))) = (valid, self.runs()) {
            return runs.counts(valid);
        }
        let mut counts = vec![0usize; self.len()];
        let lists =
            self.starts.iter().enumerate().map(|(list, start)| (self.inner.range(list), *start));
        if let Some(valid) = valid {
            for (list, start) in lists {
                let from = list.start;
                segments::for_each_valid(valid, list.start, list.end, |leaf| {
                    counts[start + (leaf - from)] += 1;
                });
            }
            return counts;
        }
        // A list counts once at its last place, and then everywhere before it.
        for (list, start) in lists {
            if !list.is_empty() {
                counts[start + list.len() - 1] += 1;
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
        let mut order = vec![0u64; self.inner.children()];
        let mut along = vec![0usize; self.inner.children()];
        for (list, start) in self.starts.iter().enumerate() {
            for (leaf, slot) in self.inner.range(list).zip(*start..) {
                order[next[slot]] = leaf as u64;
                along[next[slot]] = self.along[list];
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
        let mut done = 0;
        while done < list.len() {
            let n = (list.len() - done).min(64);
            let mut word = valid.word(list.start + done) & (u64::MAX >> (64 - n));
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
