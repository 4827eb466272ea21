//! Writing to every list at the indices of another list: the other direction of
//! [`take`](fn@super::take::take).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, Int64Array, PrimitiveArray, UInt64Array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat as concat_leaves, take};
use arrow::downcast_primitive_array;

use super::Count;
use super::align::aligned;
use super::args::{bits_of, check_size, exact, integers};
use super::concat::concat;
use super::gather::{lists_like, row_of_list, take_rows, with_axis};
use super::room::with_room;
use super::take::{beside, outer_nulls};
use crate::array::{Layout, ListAxis, RaggedArray};
use crate::error::{Error, Result};
use crate::index::resolve;

/// What to do when two values go to one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// The last one in the order of the indices stays.
    #[default]
    Last,
    /// They are an error that names the place.
    Refuse,
}

/// `into` with the elements at `indices` replaced by `values`, list by list.
///
/// `indices` has integer leaves and as many levels of lists as the axis that is written to;
/// `values` has a value for every index, its lists being those of the indices (and whatever its
/// elements hold below that, as those of `into` do). Outer lists are the same in all three. Indices
/// count from 0, negatives from the end. Nothing is written for a null index, for a list that is
/// null in indices or values, and to a list of `into` that is null, which stays null. An outer list
/// that is null in one of them is null.
///
/// The lists of `into` are shared. Values take the type of its leaves, which must have them.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::scatter::{Duplicates, scatter};
/// let lists = |lengths: [usize; 2], leaves: Vec<i32>| {
///     let axes = vec![Offsets::from_lengths(lengths)?.into()];
///     RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(leaves)))
/// };
/// let into = lists([3, 1], vec![0, 0, 0, 0])?;
/// let at = lists([2, 1], vec![2, 0, -1])?;
/// let values = lists([2, 1], vec![7, 8, 9])?;
/// let out = scatter(&into, &at, &values, Duplicates::Last)?;
/// assert_eq!(out.leaves().as_primitive::<Int32Type>().values(), &[8, 0, 7, 9]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When an index is out of range ([`Error::OutOfRangeAt`], naming row, list, position, index and
/// size), comes twice in a list where that is refused, when lists differ in length, and when a value
/// has no place in the type of the leaves.
pub fn scatter(
    into: &RaggedArray,
    indices: &RaggedArray,
    values: &RaggedArray,
    duplicates: Duplicates,
) -> Result<RaggedArray> {
    let axis = indices.axes().len();
    if values.axes().len() != into.axes().len() || axis > values.axes().len() {
        return Err(Error::invalid(format!(
            "scatter: indices with {axis} level(s) of lists, values with {} and an array with {}; values and array need as many, indices no more",
            values.axes().len(),
            into.axes().len()
        )));
    }
    // Outer lists that are null in one of the three, in all three.
    let (axis, into, indices, _) = beside("scatter", into, indices)?;
    let (into, values) = aligned(&outer_nulls(&into, &indices, axis)?, values, axis - 1)?;
    let into = outer_nulls(&into, &values, axis)?;
    let (axis, into, indices, _) = beside("scatter", &into, &indices)?;
    let (indices, values) = aligned(&indices, &values, axis)?;
    let at = integers("the indices of scatter", indices.leaves())?;
    let values =
        values.with_leaves(exact("a value of scatter", values.leaves(), into.leaf_type())?)?;
    let to = into.axis(axis)?;
    let write =
        Write { indices: &indices, at: &at, from: indices.axis(axis)?, to, axis, duplicates };
    if axis == into.axes().len() {
        let (old, new) = (into.leaves(), values.leaves());
        if old.null_count() == 0 && new.null_count() == 0 {
            let made = downcast_primitive_array!(
                (old, new) => Some(write.values(old, new)?),
                _ => None,
            );
            if let Some(leaves) = made {
                return outer_nulls(&into.with_leaves(leaves)?, &indices, axis);
            }
        }
    }
    // What stands at every place: an element of the array, or behind all of these one of the values.
    let elements = to.layout().children();
    let mut order: Vec<u64> = (0..elements as u64).collect();
    write.each(|place, value| order[place] = (elements + value) as u64)?;
    let order = UInt64Array::from(order);
    let (old, new) = (into.inner(axis)?, values.inner(axis)?);
    if axis == into.axes().len() {
        let all = concat_leaves(&[old.leaves(), new.leaves()])?;
        return outer_nulls(&into.with_leaves(take(&all, &order, None)?)?, &indices, axis);
    }
    let below = take_rows(&concat(&[&old, &new])?, &order)?;
    with_axis(&outer_nulls(&into, &indices, axis)?, into.len(), axis, to.clone(), below)
}

/// What is written where.
struct Write<'a> {
    indices: &'a RaggedArray,
    at: &'a Int64Array,
    from: &'a ListAxis,
    to: &'a ListAxis,
    axis: usize,
    duplicates: Duplicates,
}

impl Write<'_> {
    /// Calls `write` with the place and the number of every value, in their order.
    fn each(&self, mut write: impl FnMut(usize, usize)) -> Result<()> {
        let (from, to) = (self.from.layout(), self.to.layout());
        let refuse = self.duplicates == Duplicates::Refuse;
        let mut seen = vec![false; if refuse { to.children() } else { 0 }];
        let indices = self.at.values();
        let plain = self.at.null_count() == 0;
        for list in 0..from.lists() {
            if self.to.nulls().is_some_and(|n| n.is_null(list)) {
                continue;
            }
            let (range, target) = (from.range(list), to.range(list));
            let size = target.len();
            for (position, (i, index)) in range.clone().zip(&indices[range]).enumerate() {
                if !plain && self.at.is_null(i) {
                    continue;
                }
                let Some(place) = resolve(*index, size) else {
                    return Err(Error::OutOfRangeAt {
                        what: "scatter",
                        row: self.row(list),
                        list,
                        position,
                        index: *index,
                        size,
                    });
                };
                let place = target.start + place;
                if refuse && std::mem::replace(&mut seen[place], true) {
                    return Err(Error::invalid(format!(
                        "scatter: index {index} at position {position} of list {list} (row {}) comes twice",
                        self.row(list)
                    )));
                }
                write(place, i);
            }
        }
        Ok(())
    }

    fn row(&self, list: usize) -> usize {
        row_of_list(self.indices, self.axis, list)
    }

    /// Leaves of which none is null.
    fn values<T: ArrowPrimitiveType>(
        &self,
        old: &PrimitiveArray<T>,
        new: &PrimitiveArray<T>,
    ) -> Result<ArrayRef> {
        let mut out = with_room(old.len());
        out.extend_from_slice(old.values());
        let values = new.values();
        self.each(|place, value| out[place] = values[value])?;
        let out = PrimitiveArray::<T>::new(out.into(), None);
        Ok(Arc::new(out.with_data_type(old.data_type().clone())))
    }
}

/// [`scatter`] into new lists of `sizes` elements, which are `fill` (null without one) where nothing
/// is written.
///
/// `sizes` is one size for all lists of the indices' axis, or by list (an array of integers with the
/// outer lists of the indices, or fewer). A list that is null in the indices, or whose size is null,
/// is null. Elements that are lists themselves are null where nothing is written.
///
/// # Errors
/// As [`scatter`], when the fill is not one value that the leaves' type has, and when the result is
/// larger than [`DenseOptions::DEFAULT_LIMIT`](crate::dense::DenseOptions::DEFAULT_LIMIT).
pub fn scatter_new(
    indices: &RaggedArray,
    values: &RaggedArray,
    sizes: Count<'_>,
    fill: Option<&ArrayRef>,
    duplicates: Duplicates,
) -> Result<RaggedArray> {
    let axis = indices.axes().len();
    let (layout, nulls) = new_lists("scatter", indices, sizes)?;
    let elements = layout.children();
    check_size("scatter", elements, bits_of(values.leaf_type()))?;
    let inner = values.inner(axis.min(values.axes().len()))?;
    let below = match fill {
        Some(fill) if inner.axes().is_empty() => {
            if fill.len() != 1 {
                return Err(Error::invalid(format!(
                    "scatter: {} fill values, not one",
                    fill.len()
                )));
            }
            let fill = exact("the fill of scatter", fill, values.leaf_type())?;
            let first = UInt64Array::from(vec![0; elements]);
            RaggedArray::try_new(elements, Vec::new(), take(&fill, &first, None)?)?
        }
        None if inner.axes().is_empty() => {
            let nothing = new_null_array(values.leaf_type(), elements);
            RaggedArray::try_new(elements, Vec::new(), nothing)?
        }
        _ => take_rows(&inner, &UInt64Array::from(vec![None; elements]))?,
    };
    let level = ListAxis::try_new(layout, nulls)?;
    let into = with_axis(indices, indices.len(), axis, level, below)?;
    scatter(&into, indices, values, duplicates)
}

/// Lists of given sizes in place of the innermost lists of indices, and which of them are null.
pub(super) fn new_lists(
    what: &'static str,
    indices: &RaggedArray,
    sizes: Count<'_>,
) -> Result<(Layout, Option<NullBuffer>)> {
    let axis = indices.axes().len();
    if axis == 0 {
        return Err(Error::invalid(format!("{what}: indices without a level of lists")));
    }
    let level = indices.axis(axis)?;
    let mut sizes = sizes.of_elements(what, indices, axis - 1)?;
    if let Some(nulls) = level.nulls() {
        for (i, size) in sizes.iter_mut().enumerate() {
            if nulls.is_null(i) {
                *size = None;
            }
        }
    }
    let nulls = sizes.contains(&None).then(|| sizes.iter().map(Option::is_some).collect());
    let layout = lists_like(level.layout(), sizes.iter().map(|s| s.unwrap_or(0)))?;
    Ok((layout, nulls))
}
