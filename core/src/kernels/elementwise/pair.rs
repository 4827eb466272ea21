//! Broadcasts the operands of an operation to common lists.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanBufferBuilder, PrimitiveArray, UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::downcast_primitive_array;

use crate::array::{Layout, ListAxis, Offsets, RaggedArray, make_lists_like};
use crate::error::{Error, Result};
use crate::kernels::align::{align_arrays, check_rows};
use crate::kernels::allocate::allocate_values;
use crate::kernels::gather::find_row_of_list;
use crate::kernels::levels::merge_all_levels;
use crate::limit::check_size;

#[derive(Debug)]
pub(crate) struct OperandPair {
    /// An array with the lists of the result. Its leaves are not the result; callers replace them.
    pub(crate) shape: RaggedArray,
    /// Leaves of the left operand, one per leaf of the result; `right` has the leaves of the right
    /// operand.
    pub(crate) left: ArrayRef,
    pub(crate) right: ArrayRef,
}

/// Broadcasts two arrays to common lists, and an array with fewer levels over the deeper one. If
/// two lists differ in length and one has a single element, this element is repeated. Each pair of
/// lists is treated separately, so the result for a row does not depend on the other rows.
///
/// If both arrays have equal lists, the result shares their lists and leaves. Returns an error if
/// the numbers of rows differ, or if two valid lists differ in length and neither has one element.
pub(crate) fn pair_arrays(left: &RaggedArray, right: &RaggedArray) -> Result<OperandPair> {
    broadcast_pair(left, right, RepeatRule::Lists)
}

/// Broadcasts like [`pair_arrays`], but repeats elements along an axis only if all lists of this
/// axis in one operand have one element, because a named dimension has the same size in all lists.
#[cfg(feature = "het")]
pub(crate) fn pair_dims(left: &RaggedArray, right: &RaggedArray) -> Result<OperandPair> {
    broadcast_pair(left, right, RepeatRule::Axes)
}

#[derive(Clone, Copy, PartialEq)]
enum RepeatRule {
    /// Repeats the element of any list that has only one element.
    Lists,
    /// Repeats the elements of an axis only if all its lists have one element.
    #[cfg(feature = "het")]
    Axes,
}

fn broadcast_pair(
    left: &RaggedArray,
    right: &RaggedArray,
    repeat: RepeatRule,
) -> Result<OperandPair> {
    let levels = left.axes().len().min(right.axes().len());
    let Ok((left, right)) = align_arrays(left, right, levels) else {
        return repeat_lists(left, right, repeat);
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
    let broadcast = |array: &RaggedArray| {
        if array.axes().len() == axes.len() {
            return Ok(array.leaves().clone());
        }
        match merge_all_levels(&deep.inner(levels)?)? {
            Some(lists) => repeat_values(array.leaves(), lists.layout()),
            None => Ok(array.leaves().clone()),
        }
    };
    let (a, b) = (broadcast(&left)?, broadcast(&right)?);
    let shape = RaggedArray::try_new(deep.len(), axes.clone(), deep.leaves().clone())?;
    Ok(OperandPair { shape, left: a, right: b })
}

/// Maps the elements of the innermost level of the result that is built so far to elements of one
/// operand: element `i` of this level comes from element `at[i]` of the operand, or from element
/// `i` if `at` is `None`.
struct SideElements<'a> {
    array: &'a RaggedArray,
    at: Option<Vec<u64>>,
}

impl SideElements<'_> {
    fn locate_element(&self, element: usize) -> usize {
        // All indices come from `usize`, so the conversion cannot fail.
        self.at.as_ref().map_or(element, |at| usize::try_from(at[element]).unwrap_or(usize::MAX))
    }

    fn leaves(&self) -> Result<ArrayRef> {
        match &self.at {
            None => Ok(self.array.leaves().clone()),
            Some(at) => Ok(take(self.array.leaves(), &UInt64Array::from(at.clone()), None)?),
        }
    }

    /// Sets the field `at` to the positions `at`, or to `None` if they are `0..len`, because no
    /// element then needs to be copied.
    fn set_positions(&mut self, at: Vec<u64>, len: usize) {
        let same = at.len() == len && at.iter().enumerate().all(|(i, p)| *p == i as u64);
        self.at = (!same).then_some(at);
    }
}

fn has_size_one(axis: &ListAxis) -> bool {
    let layout = axis.layout();
    match layout {
        Layout::Uniform { size, .. } => *size == 1,
        Layout::Ragged(o) => {
            let nulls = axis.nulls();
            o.lengths().enumerate().all(|(i, n)| n == 1 || nulls.is_some_and(|v| v.is_null(i)))
        }
    }
}

fn repeat_lists(
    left: &RaggedArray,
    right: &RaggedArray,
    repeat: RepeatRule,
) -> Result<OperandPair> {
    check_rows(left, right)?;
    let mut axes: Vec<ListAxis> = Vec::new();
    let (mut a, mut b) =
        (SideElements { array: left, at: None }, SideElements { array: right, at: None });
    let mut len = left.len();
    for axis in 1..=left.axes().len().max(right.axes().len()) {
        let level = match (left.axis(axis), right.axis(axis)) {
            (Ok(x), Ok(y)) => combine_level(axis, len, repeat, (&mut a, x), (&mut b, y))?,
            (Ok(x), Err(_)) => add_level(len, (&mut a, x), &mut b)?,
            (Err(_), Ok(y)) => add_level(len, (&mut b, y), &mut a)?,
            (Err(e), Err(_)) => return Err(e),
        };
        len = level.layout().children();
        axes.push(level);
    }
    let (x, y) = (a.leaves()?, b.leaves()?);
    let shape = RaggedArray::try_new(left.len(), axes, x.clone())?;
    Ok(OperandPair { shape, left: x, right: y })
}

fn combine_level(
    axis: usize,
    len: usize,
    repeat: RepeatRule,
    (a, x): (&mut SideElements<'_>, &ListAxis),
    (b, y): (&mut SideElements<'_>, &ListAxis),
) -> Result<ListAxis> {
    if a.at.is_none() && b.at.is_none() && x.layout() == y.layout() {
        let nulls = NullBuffer::union(x.nulls(), y.nulls());
        return ListAxis::try_new(x.layout().clone(), nulls);
    }
    let repeats = |axis| repeat == RepeatRule::Lists || has_size_one(axis);
    let (one_x, one_y) = (repeats(x), repeats(y));
    let still = (a.at.is_none(), b.at.is_none());
    let null = |axis: &ListAxis, i: usize| axis.nulls().is_some_and(|n| n.is_null(i));
    let mut lengths = Vec::with_capacity(len);
    let mut valid = Vec::with_capacity(len);
    let (mut next_a, mut next_b) = (Vec::new(), Vec::new());
    for element in 0..len {
        let (i, j) = (a.locate_element(element), b.locate_element(element));
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
                    "list {i} of axis {axis} (row {}) has {n} element(s) on the left and {m} on the right; both sides must have lists of the same lengths, or one of the two lists must have one element",
                    find_row_of_list(a.array, axis, i),
                )));
            }
        };
        // If the operands repeat along different axes, the result may be much larger than both, so
        // check its size.
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
    a.set_positions(next_a, x.layout().children());
    b.set_positions(next_b, y.layout().children());
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    // If no element of an operand is repeated, the result shares the offsets of this operand.
    let layout = match (&a.at, &b.at) {
        (None, _) if still.0 => x.layout().clone(),
        (_, None) if still.1 => y.layout().clone(),
        _ => make_lists_like(x.layout(), lengths)?,
    };
    ListAxis::try_new(layout, nulls)
}

/// Adds a level that only `deep` has. Repeats element `i` of `flat` for all elements of list `i`.
fn add_level(
    len: usize,
    (deep, level): (&mut SideElements<'_>, &ListAxis),
    flat: &mut SideElements<'_>,
) -> Result<ListAxis> {
    let layout = level.layout();
    let mut next_flat = Vec::with_capacity(layout.children());
    for element in 0..len {
        let value = flat.locate_element(element) as u64;
        let n = layout.length(deep.locate_element(element));
        next_flat.resize(next_flat.len() + n, value);
    }
    flat.at = Some(next_flat);
    if deep.at.is_none() {
        return Ok(level.clone());
    }
    let mut next = Vec::with_capacity(layout.children());
    for element in 0..len {
        let range = layout.range(deep.locate_element(element));
        next.extend(range.start as u64..range.end as u64);
    }
    let nulls = level.nulls().map(|n| {
        (0..len).map(|element| n.is_valid(deep.locate_element(element))).collect::<NullBuffer>()
    });
    let lengths = (0..len).map(|element| layout.length(deep.locate_element(element)));
    let new = ListAxis::try_new(make_lists_like(layout, lengths)?, nulls)?;
    deep.set_positions(next, layout.children());
    Ok(new)
}

pub(crate) fn repeat_values(values: &ArrayRef, lists: &Layout) -> Result<ArrayRef> {
    fn repeat_primitive<T: ArrowPrimitiveType>(
        values: &PrimitiveArray<T>,
        lists: &Layout,
    ) -> ArrayRef {
        let mut out: Vec<T::Native> = allocate_values(lists.children());
        let mut list = 0;
        for_each_length(lists, |n| {
            out.resize(out.len() + n, values.values()[list]);
            list += 1;
        });
        let nulls = values.nulls().filter(|n| n.null_count() > 0).map(|n| repeat_bits(n, lists));
        let out = PrimitiveArray::<T>::new(out.into(), nulls);
        Arc::new(out.with_data_type(values.data_type().clone()))
    }
    downcast_primitive_array!(
        values => Ok(repeat_primitive(values, lists)),
        _ => {
            let mut at = Vec::with_capacity(lists.children());
            let mut list = 0u64;
            for_each_length(lists, |n| {
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
    for_each_length(lists, |n| {
        out.append_n(n, bits.is_valid(list));
        list += 1;
    });
    NullBuffer::new(out.finish())
}

pub(crate) fn for_each_length(lists: &Layout, mut each: impl FnMut(usize)) {
    match lists {
        Layout::Uniform { size, lists } => (0..*lists).for_each(|_| each(*size)),
        Layout::Ragged(Offsets::I32(o)) => {
            // Offsets do not decrease, so the conversion cannot fail.
            o.windows(2).for_each(|w| each(usize::try_from(w[1] - w[0]).unwrap_or_default()));
        }
        Layout::Ragged(Offsets::I64(o)) => {
            o.windows(2).for_each(|w| each(usize::try_from(w[1] - w[0]).unwrap_or_default()));
        }
    }
}
