//! Reductions that choose one of the leaves: first, last, minimum, maximum and their indices.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, NullArray, UInt64Array,
    make_comparator,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{SortOptions, take};

use super::fold::{ExtremeFold, Largest, MinOrMax, OrderedNumber, Smallest};
use super::groups::{GroupLists, rank_valid};
use super::{ReduceTask, Reduction, segments};
use crate::array::ListAxis;
use crate::error::Result;
use crate::kernels::bits::{BitWords, RankedBitmap};
use crate::kernels::native::dispatch_native;

/// The leaf chosen for each list, as an index into all leaves; `None` for a list without valid
/// leaves.
pub(super) type ChosenLeaves = Vec<Option<usize>>;

pub(super) fn pick_first_last(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    let lists = task.groups.gather_leaves(leaves)?;
    let valid = lists.valid().map(|n| RankedBitmap::new(n.inner()));
    let valid = valid.as_ref().map(RankedBitmap::bits);
    let last = task.how == Reduction::Last;
    let chosen = choose_in_lists(&lists.lists, |list| match (valid, last) {
        _ if list.is_empty() => None,
        (None, false) => Some(list.start),
        (None, true) => Some(list.end - 1),
        (Some(valid), false) => find_first_valid(valid, list),
        (Some(valid), true) => find_last_valid(valid, list),
    });
    take_chosen(leaves, &lists, &chosen)
}

pub(super) fn find_extremes(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    let lists = task.groups.gather_leaves(leaves)?;
    let chosen = match task.how {
        Reduction::ArgMax => choose_extremes::<Largest>(&lists)?,
        _ => choose_extremes::<Smallest>(&lists)?,
    };
    let layout = lists.lists.layout();
    let positions = chosen.iter().enumerate().map(|(list, chosen)| {
        let position = chosen.map(|leaf| lists.locate_leaf(layout.range(list).start, leaf));
        position.and_then(|n| i64::try_from(n).ok())
    });
    Ok(Arc::new(positions.collect::<Int64Array>()))
}

/// Finds the minimum or maximum (`W` selects which) of leaves that do not compare as numbers, such
/// as strings.
pub(super) fn find_extreme_by_comparison<W: MinOrMax>(
    leaves: &ArrayRef,
    task: &ReduceTask,
) -> Result<ArrayRef> {
    if leaves.data_type().is_null() {
        return Ok(Arc::new(NullArray::new(task.groups.len())));
    }
    let lists = task.groups.gather_leaves(leaves)?;
    let chosen = choose_by_comparison::<W>(&lists)?;
    take_chosen(leaves, &lists, &chosen)
}

pub(super) fn take_chosen(
    leaves: &ArrayRef,
    lists: &GroupLists,
    chosen: &ChosenLeaves,
) -> Result<ArrayRef> {
    let chosen: UInt64Array =
        chosen.iter().map(|leaf| leaf.map(|i| lists.find_original_index(i))).collect();
    Ok(take(leaves, &chosen, None)?)
}

fn choose_in_lists(
    level: &ListAxis,
    choose: impl FnMut(Range<usize>) -> Option<usize>,
) -> ChosenLeaves {
    let layout = level.layout();
    (0..layout.lists()).map(|i| layout.range(i)).map(choose).collect()
}

fn find_first_valid(valid: BitWords<'_>, list: Range<usize>) -> Option<usize> {
    let mut at = list.start;
    while at < list.end {
        let word = valid.load_bits(at);
        if word != 0 {
            return Some(at + word.trailing_zeros() as usize).filter(|i| *i < list.end);
        }
        at += 64;
    }
    None
}

fn find_last_valid(valid: BitWords<'_>, list: Range<usize>) -> Option<usize> {
    let mut end = list.end;
    while end > list.start {
        let n = (end - list.start).min(64);
        let word = valid.load_bits(end - n) & (u64::MAX >> (64 - n));
        if word != 0 {
            return Some(end - n + 63 - word.leading_zeros() as usize);
        }
        end -= n;
    }
    None
}

/// Chooses the first minimum or maximum of each list, or the first NaN of a list that has NaN.
fn choose_extremes<W: MinOrMax>(lists: &GroupLists) -> Result<ChosenLeaves> {
    dispatch_native!(
        &lists.leaves,
        values,
        T => choose_typed_extremes::<T, W>(values, &lists.lists),
        choose_by_comparison::<W>(lists)
    )
}

/// Finds the minimum or maximum of each list with SIMD, then the first leaf with this value.
fn choose_typed_extremes<T, W: MinOrMax>(
    leaves: &ArrayRef,
    level: &ListAxis,
) -> Result<ChosenLeaves>
where
    T: ArrowPrimitiveType<Native: OrderedNumber>,
{
    let flat: &[T::Native] = leaves.as_primitive::<T>().values();
    let valid = rank_valid(leaves);
    let found = segments::fold_segments::<ExtremeFold<T::Native, W>, _, false>(
        flat,
        valid.as_ref(),
        level.layout(),
        |best, _| best,
    )?
    .values;
    let (mut found, valid) = (found.into_iter(), valid.as_ref().map(RankedBitmap::bits));
    Ok(choose_in_lists(level, |list| {
        let best = found.next()?;
        // Only NaN differs from itself: if the extreme is NaN, search for a NaN.
        let unlike = |v: T::Native| v.partial_cmp(&v).is_none();
        let mut at = list.start;
        while at < list.end {
            let rest = &flat[at..list.end];
            at += match unlike(best) {
                true => find_first(rest, unlike)?,
                false => find_first(rest, |v| v == best)?,
            };
            if valid.is_none_or(|valid| valid.load_bits(at) & 1 == 1) {
                return Some(at);
            }
            at += 1;
        }
        None
    }))
}

/// Returns the index of the first value for which `is` returns true. Tests eight values at a time.
#[inline(always)]
fn find_first<T: Copy>(values: &[T], is: impl Fn(T) -> bool) -> Option<usize> {
    let (eights, rest) = values.as_chunks::<8>();
    for (i, eight) in eights.iter().enumerate() {
        let mut any = false;
        for v in eight {
            any |= is(*v);
        }
        if any {
            return Some(8 * i + eight.iter().position(|v| is(*v))?);
        }
    }
    Some(8 * eights.len() + rest.iter().position(|v| is(*v))?)
}

fn choose_by_comparison<W: MinOrMax>(lists: &GroupLists) -> Result<ChosenLeaves> {
    let nulls: Option<NullBuffer> = lists.valid();
    let compare = make_comparator(&lists.leaves, &lists.leaves, SortOptions::default())?;
    let wanted = if W::MAX { Ordering::Greater } else { Ordering::Less };
    Ok(choose_in_lists(&lists.lists, |list| {
        let valid = list.into_iter().filter(|i| nulls.as_ref().is_none_or(|n| n.is_valid(*i)));
        valid.reduce(|a, b| if compare(b, a) == wanted { b } else { a })
    }))
}
