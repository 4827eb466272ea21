//! Reductions of contiguous leaves: one list, one value.

use std::cmp::Ordering;
use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, UInt64Array, make_comparator,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{SortOptions, take};
use arrow::datatypes::ArrowNativeType;

use super::Reduction;
use super::fold::{Fold, Which};
use crate::array::{Layout, ListAxis};
use crate::error::{Error, Result};
use crate::kernels::bits::Rank;
use crate::with_offsets;

/// One value per list of `level`, which is axis `axis`.
pub(super) fn fold<F: Fold>(
    how: Reduction,
    values: &PrimitiveArray<F::In>,
    level: &ListAxis,
    axis: usize,
) -> Result<PrimitiveArray<F::Out>> {
    let flat = values.values();
    let lists = level.layout().lists();
    let mut out = Vec::with_capacity(lists);
    let mut valid = Vec::with_capacity(if F::NULL_OF_NOTHING { lists } else { 0 });
    let mut overflow = None;
    let mut put = |acc, count: usize| {
        let nothing = F::NULL_OF_NOTHING && count == 0;
        if F::NULL_OF_NOTHING {
            valid.push(!nothing);
        }
        let value = if nothing { None } else { F::finish(acc, count) };
        if value.is_none() && !nothing && overflow.is_none() {
            overflow = Some(out.len());
        }
        out.push(value.unwrap_or_default());
    };
    match values.nulls().filter(|n| n.null_count() > 0) {
        None => for_each_list(level.layout(), |r| {
            let mut acc = F::start();
            let count = r.len();
            F::extend(&mut acc, &flat[r]);
            put(acc, count);
        }),
        Some(nulls) => {
            let rank = Rank::new(nulls.inner());
            for_each_list(level.layout(), |r| {
                let count = rank.rank(r.end) - rank.rank(r.start);
                put(fold_valid::<F>(flat, &rank, r), count);
            });
        }
    }
    if let Some(list) = overflow {
        return Err(Error::Overflow(format!("{} of list {list} of axis {axis}", how.name())));
    }
    let nothing = F::NULL_OF_NOTHING.then(|| NullBuffer::from(valid));
    let nulls = NullBuffer::union(level.nulls(), nothing.as_ref()).filter(|n| n.null_count() > 0);
    Ok(PrimitiveArray::try_new(out.into(), nulls)?)
}

/// The values of a list that are not null, 64 places at a time.
fn fold_valid<F: Fold>(
    flat: &[<F::In as ArrowPrimitiveType>::Native],
    rank: &Rank,
    list: Range<usize>,
) -> F::Acc {
    let mut acc = F::start();
    let mut at = list.start;
    while at < list.end {
        let n = (list.end - at).min(64);
        let all = u64::MAX >> (64 - n);
        let mut word = rank.word(at) & all;
        if word == all {
            F::extend(&mut acc, &flat[at..at + n]);
        } else {
            while word != 0 {
                F::push(&mut acc, flat[at + word.trailing_zeros() as usize]);
                word &= word - 1;
            }
        }
        at += n;
    }
    acc
}

/// The children of every list in turn.
fn for_each_list(layout: &Layout, mut each: impl FnMut(Range<usize>)) {
    match layout {
        Layout::Uniform { size, lists } => {
            for i in 0..*lists {
                each(i * size..(i + 1) * size);
            }
        }
        Layout::Ragged(offsets) => with_offsets!(offsets, o => {
            let base = o[0].as_usize();
            let mut start = 0;
            for end in &o[1..] {
                let end = end.as_usize() - base;
                each(start..end);
                start = end;
            }
        }),
    }
}

/// Minimum or maximum of values that only compare.
pub(super) fn extreme_by_comparison<W: Which>(
    leaves: &ArrayRef,
    level: &ListAxis,
) -> Result<ArrayRef> {
    let nulls = leaves.logical_nulls();
    let better = better_of::<W>(leaves)?;
    let mut best = Vec::with_capacity(level.layout().lists());
    for_each_list(level.layout(), |list| {
        let valid = list.filter(|i| nulls.as_ref().is_none_or(|n| n.is_valid(*i)));
        best.push(valid.reduce(|a, b| if better(b, a) { b } else { a }));
    });
    take_best(leaves, best)
}

/// Whether one leaf beats another.
pub(super) fn better_of<W: Which>(leaves: &ArrayRef) -> Result<impl Fn(usize, usize) -> bool> {
    let compare = make_comparator(leaves, leaves, SortOptions::default())?;
    let wanted = if W::MAX { Ordering::Greater } else { Ordering::Less };
    Ok(move |a, b| compare(a, b) == wanted)
}

pub(super) fn take_best(leaves: &ArrayRef, best: Vec<Option<usize>>) -> Result<ArrayRef> {
    let best: UInt64Array = best.into_iter().map(|i| i.map(|i| i as u64)).collect();
    Ok(take(leaves, &best, None)?)
}
