//! Reductions that choose one of the leaves: the first, the last, the least, and where it stands.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, NullArray, UInt64Array,
    make_comparator,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{SortOptions, cast, take};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};

use super::fold::{Extreme, Largest, Ordered, Smallest, Which};
use super::groups::InLists;
use super::numbers::{native_int, ranks, reinterpret};
use super::{Reduction, Task, segments};
use crate::array::ListAxis;
use crate::error::Result;
use crate::kernels::bits::{Rank, Words};

/// Which leaf of each list was chosen, by its place among all leaves.
type Chosen = Vec<Option<usize>>;

/// [`Reduction::First`] and [`Reduction::Last`]: of the leaves that are not null.
pub(super) fn end(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    let lists = task.groups.gathered(leaves)?;
    let valid = lists.valid().map(|n| Rank::new(n.inner()));
    let valid = valid.as_ref().map(Rank::bits);
    let last = task.how == Reduction::Last;
    let chosen = each_list(&lists.lists, |list| match (valid, last) {
        _ if list.is_empty() => None,
        (None, false) => Some(list.start),
        (None, true) => Some(list.end - 1),
        (Some(valid), false) => first_valid(valid, list),
        (Some(valid), true) => last_valid(valid, list),
    });
    taken(leaves, &lists, &chosen)
}

/// [`Reduction::ArgMin`] and [`Reduction::ArgMax`].
pub(super) fn position(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    let lists = task.groups.gathered(leaves)?;
    let chosen = match task.how {
        Reduction::ArgMax => positions::<Largest>(&lists)?,
        _ => positions::<Smallest>(&lists)?,
    };
    let layout = lists.lists.layout();
    let places = chosen.iter().enumerate().map(|(list, chosen)| {
        let place = chosen.map(|leaf| lists.position(layout.range(list).start, leaf));
        place.and_then(|n| i64::try_from(n).ok())
    });
    Ok(Arc::new(places.collect::<Int64Array>()))
}

/// [`Reduction::Min`] and [`Reduction::Max`] of values that only compare.
pub(super) fn extreme_by_comparison<W: Which>(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    if leaves.data_type().is_null() {
        return Ok(Arc::new(NullArray::new(task.groups.len())));
    }
    let lists = task.groups.gathered(leaves)?;
    let chosen = by_comparison::<W>(&lists)?;
    taken(leaves, &lists, &chosen)
}

/// The leaves chosen; nothing where none was.
fn taken(leaves: &ArrayRef, lists: &InLists, chosen: &Chosen) -> Result<ArrayRef> {
    let chosen: UInt64Array = chosen.iter().map(|leaf| leaf.map(|i| lists.before(i))).collect();
    Ok(take(leaves, &chosen, None)?)
}

fn each_list(level: &ListAxis, choose: impl FnMut(Range<usize>) -> Option<usize>) -> Chosen {
    let layout = level.layout();
    (0..layout.lists()).map(|i| layout.range(i)).map(choose).collect()
}

fn first_valid(valid: Words<'_>, list: Range<usize>) -> Option<usize> {
    let mut at = list.start;
    while at < list.end {
        let word = valid.at(at);
        if word != 0 {
            return Some(at + word.trailing_zeros() as usize).filter(|i| *i < list.end);
        }
        at += 64;
    }
    None
}

fn last_valid(valid: Words<'_>, list: Range<usize>) -> Option<usize> {
    let mut end = list.end;
    while end > list.start {
        let n = (end - list.start).min(64);
        let word = valid.at(end - n) & (u64::MAX >> (64 - n));
        if word != 0 {
            return Some(end - n + 63 - word.leading_zeros() as usize);
        }
        end -= n;
    }
    None
}

/// The first of the least, or the largest; of floats the first NaN.
fn positions<W: Which>(lists: &InLists) -> Result<Chosen> {
    macro_rules! by {
        ($t:ty, $leaves:expr) => {
            typed::<$t, W>($leaves, &lists.lists)
        };
    }
    let leaves = &lists.leaves;
    match leaves.data_type() {
        DataType::Int8 => by!(Int8Type, leaves),
        DataType::Int16 => by!(Int16Type, leaves),
        DataType::UInt8 => by!(UInt8Type, leaves),
        DataType::UInt16 => by!(UInt16Type, leaves),
        DataType::UInt32 => by!(UInt32Type, leaves),
        DataType::UInt64 => by!(UInt64Type, leaves),
        DataType::Float32 => by!(Float32Type, leaves),
        DataType::Float64 => by!(Float64Type, leaves),
        DataType::Float16 => by!(Float32Type, &cast(leaves, &DataType::Float32)?),
        DataType::Boolean => by!(UInt8Type, &cast(leaves, &DataType::UInt8)?),
        t => match native_int(t) {
            Some(DataType::Int32) => by!(Int32Type, &reinterpret(leaves, &DataType::Int32)?),
            Some(_) => by!(Int64Type, &reinterpret(leaves, &DataType::Int64)?),
            None => by_comparison::<W>(lists),
        },
    }
}

/// The value is found as fast as it can be read; then its first place is looked for.
fn typed<T, W: Which>(leaves: &ArrayRef, level: &ListAxis) -> Result<Chosen>
where
    T: ArrowPrimitiveType<Native: Ordered>,
{
    let flat: &[T::Native] = leaves.as_primitive::<T>().values();
    let valid = ranks(leaves);
    let found = segments::fold::<Extreme<T::Native, W>, _, false>(
        flat,
        valid.as_ref(),
        level.layout(),
        |best, _| best,
    )?
    .values;
    let (mut found, valid) = (found.into_iter(), valid.as_ref().map(Rank::bits));
    Ok(each_list(level, |list| {
        let best = found.next()?;
        // Only NaN is not as large as itself, and then a NaN is looked for.
        let unlike = |v: T::Native| v.partial_cmp(&v).is_none();
        let mut at = list.start;
        while at < list.end {
            let rest = &flat[at..list.end];
            at += match unlike(best) {
                true => first(rest, unlike)?,
                false => first(rest, |v| v == best)?,
            };
            if valid.is_none_or(|valid| valid.at(at) & 1 == 1) {
                return Some(at);
            }
            at += 1;
        }
        None
    }))
}

/// The place of the first value that `is` holds for, eight of which are looked at together.
#[inline(always)]
fn first<T: Copy>(values: &[T], is: impl Fn(T) -> bool) -> Option<usize> {
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

fn by_comparison<W: Which>(lists: &InLists) -> Result<Chosen> {
    let nulls: Option<NullBuffer> = lists.valid();
    let compare = make_comparator(&lists.leaves, &lists.leaves, SortOptions::default())?;
    let wanted = if W::MAX { Ordering::Greater } else { Ordering::Less };
    Ok(each_list(&lists.lists, |list| {
        let valid = list.into_iter().filter(|i| nulls.as_ref().is_none_or(|n| n.is_valid(*i)));
        valid.reduce(|a, b| if compare(b, a) == wanted { b } else { a })
    }))
}
