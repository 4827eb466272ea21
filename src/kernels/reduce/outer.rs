//! Reductions along an outer axis: lists laid over one another.

use arrow::array::{Array, ArrayRef, PrimitiveArray};
use arrow::buffer::NullBuffer;

use super::Reduction;
use super::fold::{Fold, Which};
use super::segments::{better_of, take_best};
use crate::array::{ListAxis, RaggedArray};
use crate::error::{Error, Result};
use crate::kernels::gather::lists_like;

/// The place in the result of every leaf.
pub(super) struct Slots {
    of: Vec<usize>,
    len: usize,
}

/// The levels of the result of reducing along axis `axis`, which is not the innermost, and where
/// every leaf goes.
pub(super) fn overlay(array: &RaggedArray, axis: usize) -> Result<(Vec<ListAxis>, Slots)> {
    let level = array.axis(axis)?;
    let mut axes = array.axes()[..axis - 1].to_vec();
    // For every element of the axis at hand, the element of the result it falls on.
    let mut on = Vec::with_capacity(level.layout().children());
    for list in 0..level.layout().lists() {
        on.resize(on.len() + level.layout().length(list), list);
    }
    let mut len = level.layout().lists();
    let mut nulls = level.nulls().cloned();
    for level in &array.axes()[axis..] {
        let layout = level.layout();
        let mut lengths = vec![0usize; len];
        for (list, on) in on.iter().enumerate() {
            lengths[*on] = lengths[*on].max(layout.length(list));
        }
        let new = lists_like(layout, lengths)?;
        let mut next = Vec::with_capacity(layout.children());
        for (list, on) in on.iter().enumerate() {
            let start = new.range(*on).start;
            next.extend(start..start + layout.length(list));
        }
        on = next;
        len = new.children();
        axes.push(ListAxis::try_new(new, nulls.take())?);
    }
    Ok((axes, Slots { of: on, len }))
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn fold<F: Fold>(
        &self,
        how: Reduction,
        values: &PrimitiveArray<F::In>,
        axis: usize,
    ) -> Result<PrimitiveArray<F::Out>> {
        let mut states = vec![(F::start(), 0usize); self.len];
        let flat = values.values();
        let mut add = |i: usize| {
            let (acc, count) = &mut states[self.of[i]];
            F::push(acc, flat[i]);
            *count += 1;
        };
        match values.nulls() {
            None => (0..flat.len()).for_each(&mut add),
            Some(n) => n.valid_indices().for_each(&mut add),
        }
        let mut out = Vec::with_capacity(self.len);
        for (slot, (acc, count)) in states.iter().enumerate() {
            let value = if F::NULL_OF_NOTHING && *count == 0 {
                None
            } else {
                Some(F::finish(*acc, *count).ok_or_else(|| {
                    Error::Overflow(format!("{} along axis {axis}, result {slot}", how.name()))
                })?)
            };
            out.push(value.unwrap_or_default());
        }
        let nulls = F::NULL_OF_NOTHING
            .then(|| NullBuffer::from_iter(states.iter().map(|(_, count)| *count > 0)))
            .filter(|n| n.null_count() > 0);
        Ok(PrimitiveArray::try_new(out.into(), nulls)?)
    }

    pub(super) fn extreme_by_comparison<W: Which>(&self, leaves: &ArrayRef) -> Result<ArrayRef> {
        let nulls = leaves.logical_nulls();
        let better = better_of::<W>(leaves)?;
        let mut best: Vec<Option<usize>> = vec![None; self.len];
        for (i, slot) in self.of.iter().enumerate() {
            if nulls.as_ref().is_none_or(|n| n.is_valid(i)) {
                let best = &mut best[*slot];
                *best = Some(best.map_or(i, |b| if better(i, b) { i } else { b }));
            }
        }
        take_best(leaves, best)
    }
}
