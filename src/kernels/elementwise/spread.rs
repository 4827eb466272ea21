//! Two arrays over one set of lists: what one of them has once is repeated along the other.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanBufferBuilder, PrimitiveArray, UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::downcast_primitive_array;

use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::error::{Error, Result};
use crate::kernels::align::aligned;
use crate::kernels::args::check_size;
use crate::kernels::gather::{lists_like, row_of_list};
use crate::kernels::reshape::leaf_lists;
use crate::kernels::room::with_room;

/// Two arrays as they meet.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The lists of the result, over the leaves of one side.
    pub(crate) shape: RaggedArray,
    /// Leaves of the left side, one for every place.
    pub(crate) left: ArrayRef,
    /// Leaves of the right side, one for every place.
    pub(crate) right: ArrayRef,
}

/// The lists both arrays have, or the deeper one has where the other has fewer levels, and the
/// leaves of each side, one for every place. Of two lists that differ in length, one of one element is
/// repeated along the other: each pair of lists is looked at by itself, so that what is made of a row does
/// not depend on the rows beside it.
///
/// Where lists agree they are shared and leaves are those of the arrays.
///
/// # Errors
/// For another number of rows, and where lists that are not null differ in length and neither has one
/// element.
pub(crate) fn pair(left: &RaggedArray, right: &RaggedArray) -> Result<Pair> {
    paired(left, right, Repeat::Lists)
}

/// As [`pair`], but only where all lists of an axis have one element are they repeated: an array of some
/// dims is one value, and one of size 1 is a matter of the whole dim.
///
/// # Errors
/// As [`pair`], and for lists of one element among longer ones.
pub(crate) fn pair_dims(left: &RaggedArray, right: &RaggedArray) -> Result<Pair> {
    paired(left, right, Repeat::Axes)
}

/// What is repeated along the other side.
#[derive(Clone, Copy, PartialEq)]
enum Repeat {
    /// Each list of one element.
    Lists,
    /// An axis of lists of one element.
    Axes,
}

fn paired(left: &RaggedArray, right: &RaggedArray, repeat: Repeat) -> Result<Pair> {
    let levels = left.axes().len().min(right.axes().len());
    let Ok((left, right)) = aligned(left, right, levels) else {
        return repeated(left, right, repeat);
    };
    let (deep, other) =
        if left.axes().len() >= right.axes().len() { (&left, &right) } else { (&right, &left) };
    let mut axes = deep.axes().to_vec();
    for (axis, other) in axes.iter_mut().zip(other.axes()) {
        if other.nulls().is_some() {
            let nulls = NullBuffer::union(axis.nulls(), other.nulls());
            *axis = ListAxis::try_new(axis.layout().clone(), nulls)?;
        }
    }
    let spread = |array: &RaggedArray| {
        if array.axes().len() == axes.len() {
            return Ok(array.leaves().clone());
        }
        match leaf_lists(&deep.inner(levels)?)? {
            Some(lists) => repeat_values(array.leaves(), lists.layout()),
            None => Ok(array.leaves().clone()),
        }
    };
    let (a, b) = (spread(&left)?, spread(&right)?);
    let shape = RaggedArray::try_new(deep.len(), axes.clone(), deep.leaves().clone())?;
    Ok(Pair { shape, left: a, right: b })
}

/// One side on its way through the levels: which of its elements stands at each of the result's.
struct Place<'a> {
    array: &'a RaggedArray,
    at: Option<Vec<u64>>,
}

impl Place<'_> {
    fn of(&self, element: usize) -> usize {
        // Positions were usizes before.
        self.at.as_ref().map_or(element, |at| usize::try_from(at[element]).unwrap_or(usize::MAX))
    }

    fn leaves(&self) -> Result<ArrayRef> {
        match &self.at {
            None => Ok(self.array.leaves().clone()),
            Some(at) => Ok(take(self.array.leaves(), &UInt64Array::from(at.clone()), None)?),
        }
    }

    /// Forgets positions that are where they would be anyway.
    fn moved(&mut self, at: Vec<u64>, len: usize) {
        let same = at.len() == len && at.iter().enumerate().all(|(i, p)| *p == i as u64);
        self.at = (!same).then_some(at);
    }
}

/// Whether every list of an axis that is not null has one element.
fn size_one(axis: &ListAxis) -> bool {
    let layout = axis.layout();
    match layout {
        Layout::Uniform { size, .. } => *size == 1,
        Layout::Ragged(o) => {
            let nulls = axis.nulls();
            o.lengths().enumerate().all(|(i, n)| n == 1 || nulls.is_some_and(|v| v.is_null(i)))
        }
    }
}

fn repeated(left: &RaggedArray, right: &RaggedArray, repeat: Repeat) -> Result<Pair> {
    if left.len() != right.len() {
        return Err(Error::invalid(format!(
            "{} rows on the left and {} on the right",
            left.len(),
            right.len()
        )));
    }
    let mut axes: Vec<ListAxis> = Vec::new();
    let (mut a, mut b) = (Place { array: left, at: None }, Place { array: right, at: None });
    let mut len = left.len();
    for axis in 1..=left.axes().len().max(right.axes().len()) {
        let level = match (left.axis(axis), right.axis(axis)) {
            (Ok(x), Ok(y)) => meet(axis, len, repeat, (&mut a, x), (&mut b, y))?,
            (Ok(x), Err(_)) => follow(len, (&mut a, x), &mut b)?,
            (Err(_), Ok(y)) => follow(len, (&mut b, y), &mut a)?,
            (Err(e), Err(_)) => return Err(e),
        };
        len = level.layout().children();
        axes.push(level);
    }
    let (x, y) = (a.leaves()?, b.leaves()?);
    let shape = RaggedArray::try_new(left.len(), axes, x.clone())?;
    Ok(Pair { shape, left: x, right: y })
}

/// A level that both sides have.
fn meet(
    axis: usize,
    len: usize,
    repeat: Repeat,
    (a, x): (&mut Place<'_>, &ListAxis),
    (b, y): (&mut Place<'_>, &ListAxis),
) -> Result<ListAxis> {
    if a.at.is_none() && b.at.is_none() && x.layout() == y.layout() {
        let nulls = NullBuffer::union(x.nulls(), y.nulls());
        return ListAxis::try_new(x.layout().clone(), nulls);
    }
    let repeats = |axis| repeat == Repeat::Lists || size_one(axis);
    let (one_x, one_y) = (repeats(x), repeats(y));
    let still = (a.at.is_none(), b.at.is_none());
    let null = |axis: &ListAxis, i: usize| axis.nulls().is_some_and(|n| n.is_null(i));
    let mut lengths = Vec::with_capacity(len);
    let mut valid = Vec::with_capacity(len);
    let (mut next_a, mut next_b) = (Vec::new(), Vec::new());
    for element in 0..len {
        let (i, j) = (a.of(element), b.of(element));
        valid.push(!null(x, i) && !null(y, j));
        if null(x, i) || null(y, j) {
            lengths.push(0);
            continue;
        }
        let (p, q) = (x.layout().range(i), y.layout().range(j));
        let n = match (p.len(), q.len()) {
            (n, m) if n == m => n,
            (1, m) if one_x => m,
            (n, 1) if one_y => n,
            (n, m) => {
                return Err(Error::invalid(format!(
                    "list {i} of axis {axis} (row {}) has {n} element(s) on the left and {m} on the right; both sides must have lists of the same lengths, or one of them a list of one element",
                    row_of_list(a.array, axis, i),
                )));
            }
        };
        // Lists of one element on either side, along different axes, make all pairs.
        check_size("repeated lists of one element", next_a.len().saturating_add(n), 64)?;
        lengths.push(n);
        for (next, range) in [(&mut next_a, p), (&mut next_b, q)] {
            let start = range.start as u64;
            if range.len() == n {
                next.extend(start..start + n as u64);
            } else {
                next.resize(next.len() + n, start);
            }
        }
    }
    a.moved(next_a, x.layout().children());
    b.moved(next_b, y.layout().children());
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    // Lists that stay as they are on one side are shared with it.
    let layout = match (&a.at, &b.at) {
        (None, _) if still.0 => x.layout().clone(),
        (_, None) if still.1 => y.layout().clone(),
        _ => lists_like(x.layout(), lengths)?,
    };
    ListAxis::try_new(layout, nulls)
}

/// A level that only one side has: each element of the other stands at all elements of a list.
fn follow(
    len: usize,
    (deep, level): (&mut Place<'_>, &ListAxis),
    flat: &mut Place<'_>,
) -> Result<ListAxis> {
    let layout = level.layout();
    let mut next_flat = Vec::with_capacity(layout.children());
    for element in 0..len {
        let value = flat.of(element) as u64;
        let n = layout.length(deep.of(element));
        next_flat.resize(next_flat.len() + n, value);
    }
    flat.at = Some(next_flat);
    if deep.at.is_none() {
        return Ok(level.clone());
    }
    let mut next = Vec::with_capacity(layout.children());
    for element in 0..len {
        let range = layout.range(deep.of(element));
        next.extend(range.start as u64..range.end as u64);
    }
    let nulls = level
        .nulls()
        .map(|n| (0..len).map(|element| n.is_valid(deep.of(element))).collect::<NullBuffer>());
    let lengths = (0..len).map(|element| layout.length(deep.of(element)));
    let new = ListAxis::try_new(lists_like(layout, lengths)?, nulls)?;
    deep.moved(next, layout.children());
    Ok(new)
}

/// The `i`-th value as often as list `i` has elements.
pub(crate) fn repeat_values(values: &ArrayRef, lists: &Layout) -> Result<ArrayRef> {
    fn typed<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, lists: &Layout) -> ArrayRef {
        let mut out: Vec<T::Native> = with_room(lists.children());
        let mut list = 0;
        each_length(lists, |n| {
            out.resize(out.len() + n, values.values()[list]);
            list += 1;
        });
        let nulls = values.nulls().filter(|n| n.null_count() > 0).map(|n| repeat_bits(n, lists));
        let out = PrimitiveArray::<T>::new(out.into(), nulls);
        Arc::new(out.with_data_type(values.data_type().clone()))
    }
    downcast_primitive_array!(
        values => Ok(typed(values, lists)),
        _ => {
            let mut at = Vec::with_capacity(lists.children());
            let mut list = 0u64;
            each_length(lists, |n| {
                at.resize(at.len() + n, list);
                list += 1;
            });
            Ok(take(values, &UInt64Array::from(at), None)?)
        }
    )
}

fn repeat_bits(bits: &NullBuffer, lists: &Layout) -> NullBuffer {
    let mut out = BooleanBufferBuilder::new(lists.children());
    let mut list = 0;
    each_length(lists, |n| {
        out.append_n(n, bits.is_valid(list));
        list += 1;
    });
    NullBuffer::new(out.finish())
}

/// The length of every list, one after the other.
pub(crate) fn each_length(lists: &Layout, mut each: impl FnMut(usize)) {
    match lists {
        Layout::Uniform { size, lists } => (0..*lists).for_each(|_| each(*size)),
        Layout::Ragged(Offsets::I32(o)) => {
            // Offsets do not decrease.
            o.windows(2).for_each(|w| each(usize::try_from(w[1] - w[0]).unwrap_or_default()));
        }
        Layout::Ragged(Offsets::I64(o)) => {
            o.windows(2).for_each(|w| each(usize::try_from(w[1] - w[0]).unwrap_or_default()));
        }
    }
}
