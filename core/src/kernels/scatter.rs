//! Writes values into lists at given indices, the inverse of [`take`](fn@super::take::take).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, Int64Array, PrimitiveArray, UInt64Array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat as concat_leaves, take};
use arrow::downcast_primitive_array;

use super::CountArgument;
use super::align::align_arrays;
use super::allocate::allocate_values;
use super::argument_casts::{cast_arg_integers, cast_exactly, find_bit_width};
use super::concat::concat;
use super::gather::{find_row_of_list, replace_axis, take_rows};
use super::take::{align_indices, merge_outer_nulls};
use crate::array::{Layout, ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};
use crate::index::resolve_position;
use crate::limit::check_size;

/// Treatment of several values that are written to the same element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DuplicateWrites {
    /// The last value, in the order of the indices, is written.
    #[default]
    Last,
    /// Duplicate indices are an error that names the index.
    Refuse,
}

/// Replaces the elements of `into` at `indices` with `values`, list by list.
///
/// `indices` has integer leaves, at least one level of lists, and at most as many as `into`. Its
/// innermost level is the axis to write to: one level replaces elements of axis 1, two levels those
/// of axis 2, and so on. `values` has the levels of `into`, and one value or list per index.
///
/// The outer lists, above the written axis, have the same lengths in all three arrays unless they
/// are null. Indices count from 0; negative indices count from the end. A null index writes
/// nothing, and neither does a list of the written axis that is null in `indices` or `values`; a
/// null value is written. Null lists of `into` stay null. An outer list that is null in any of the
/// three arrays is null in the result.
///
/// The result shares the lists of `into`. Values are converted to the type of the leaves of `into`.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::scatter::{DuplicateWrites, scatter};
/// let lists = |lengths: [usize; 2], leaves: Vec<i32>| {
///     let axes = vec![Offsets::from_lengths(lengths)?.into()];
///     RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(leaves)))
/// };
/// let into = lists([3, 1], vec![0, 0, 0, 0])?;
/// let at = lists([2, 1], vec![2, 0, -1])?;
/// let values = lists([2, 1], vec![7, 8, 9])?;
/// let out = scatter(&into, &at, &values, DuplicateWrites::Last)?;
/// assert_eq!(out.leaves().as_primitive::<Int32Type>().values(), &[8, 0, 7, 9]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If an index is out of range ([`Error::OutOfRangeAt`], with row, list, position, index and size)
/// or is repeated with [`DuplicateWrites::Refuse`], lists differ in length, or a value does not fit
/// the type.
pub fn scatter(
    into: &RaggedArray,
    indices: &RaggedArray,
    values: &RaggedArray,
    duplicates: DuplicateWrites,
) -> Result<RaggedArray> {
    let axis = indices.axes().len();
    if values.axes().len() != into.axes().len() || axis > values.axes().len() {
        return Err(Error::invalid(format!(
            "scatter: the indices have {axis} level(s) of lists, the values have {} and the array has {}; give values with as many levels as the array, and indices with no more levels than the array",
            values.axes().len(),
            into.axes().len()
        )));
    }
    // An outer list that is null in one array becomes null in all three.
    let (axis, into, indices, _) = align_indices("scatter", into, indices)?;
    let (into, values) =
        align_arrays(&merge_outer_nulls(&into, &indices, axis)?, values, axis - 1)?;
    let into = merge_outer_nulls(&into, &values, axis)?;
    let (axis, into, indices, _) = align_indices("scatter", &into, &indices)?;
    let (indices, values) = align_arrays(&indices, &values, axis)?;
    let at = cast_arg_integers("the indices of scatter", indices.leaves())?;
    let values = values.with_leaves(cast_exactly(
        "a value of scatter",
        values.leaves(),
        into.leaf_type(),
    )?)?;
    let to = into.axis(axis)?;
    let write = ScatterWrite {
        indices: &indices,
        at: &at,
        from: indices.axis(axis)?,
        to,
        axis,
        duplicates,
    };
    if axis == into.axes().len() {
        let (old, new) = (into.leaves(), values.leaves());
        if old.null_count() == 0 && new.null_count() == 0 {
            let made = downcast_primitive_array!(
                (old, new) => Some(write.write_leaves(old, new)?),
                _ => None,
            );
            if let Some(leaves) = made {
                return merge_outer_nulls(&into.with_leaves(leaves)?, &indices, axis);
            }
        }
    }
    let elements = to.layout().children();
    // For each element of the result, its index in the concatenation of the elements of `into`
    // and the elements of `values`.
    let mut order: Vec<u64> = (0..elements as u64).collect();
    write.for_each(|target_index, value| order[target_index] = (elements + value) as u64)?;
    let order = UInt64Array::from(order);
    let (old, new) = (into.inner(axis)?, values.inner(axis)?);
    if axis == into.axes().len() {
        let all = concat_leaves(&[old.leaves(), new.leaves()])?;
        return merge_outer_nulls(&into.with_leaves(take(&all, &order, None)?)?, &indices, axis);
    }
    let below = take_rows(&concat(&[&old, &new])?, &order)?;
    replace_axis(&merge_outer_nulls(&into, &indices, axis)?, into.len(), axis, to.clone(), below)
}

struct ScatterWrite<'a> {
    indices: &'a RaggedArray,
    at: &'a Int64Array,
    from: &'a ListAxis,
    to: &'a ListAxis,
    axis: usize,
    duplicates: DuplicateWrites,
}

impl ScatterWrite<'_> {
    /// Calls `write` with the indices of the element to replace and of the value. Returns an error
    /// for an index that is out of range or, with [`DuplicateWrites::Refuse`], repeated.
    fn for_each(&self, mut write: impl FnMut(usize, usize)) -> Result<()> {
        let (from, to) = (self.from.layout(), self.to.layout());
        let refuse = self.duplicates == DuplicateWrites::Refuse;
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
                let Some(target_index) = resolve_position(*index, size) else {
                    return Err(Error::OutOfRangeAt {
                        what: "scatter",
                        row: self.find_row_index(list),
                        list,
                        position,
                        index: *index,
                        size,
                    });
                };
                let target_index = target.start + target_index;
                if refuse && std::mem::replace(&mut seen[target_index], true) {
                    return Err(Error::invalid(format!(
                        "scatter: index {index} at position {position} of list {list} (row {}) selects the same element as an earlier index of this list; make the indices of a list distinct, or allow duplicates with `DuplicateWrites::Last`",
                        self.find_row_index(list)
                    )));
                }
                write(target_index, i);
            }
        }
        Ok(())
    }

    fn find_row_index(&self, list: usize) -> usize {
        find_row_of_list(self.indices, self.axis, list)
    }

    fn write_leaves<T: ArrowPrimitiveType>(
        &self,
        old: &PrimitiveArray<T>,
        new: &PrimitiveArray<T>,
    ) -> Result<ArrayRef> {
        let mut out = allocate_values(old.len());
        out.extend_from_slice(old.values());
        let values = new.values();
        self.for_each(|target_index, value| out[target_index] = values[value])?;
        let out = PrimitiveArray::<T>::new(out.into(), None);
        Ok(Arc::new(out.with_data_type(old.data_type().clone())))
    }
}

/// Creates lists of `sizes` elements, and writes values into them like [`scatter`].
///
/// Elements that no index selects have the value of `fill` or, without `fill`, are null.
///
/// `sizes` is one size for all lists or one per list (an array of integers with the outer lists of
/// the indices, or fewer levels). A list that is null in the indices or has a null size is null.
/// If elements are lists, those that no index selects are null even with `fill`.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, Int64Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::CountArgument;
/// use serrate::kernels::scatter::{DuplicateWrites, scatter_new};
/// // [2, 0] and [7, 8]
/// let lists = || Offsets::from_lengths([2]).map(|o| vec![o.into()]);
/// let at = RaggedArray::try_new(1, lists()?, Arc::new(Int64Array::from(vec![2, 0])))?;
/// let values = RaggedArray::try_new(1, lists()?, Arc::new(Int32Array::from(vec![7, 8])))?;
/// let new = scatter_new(&at, &values, CountArgument::All(3), None, DuplicateWrites::default())?;
/// let new: Vec<_> = new.leaves().as_primitive::<Int32Type>().iter().collect();
/// assert_eq!(new, [Some(8), None, Some(7)]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`scatter`]; also when the fill is not one value that the type of the leaves can
/// represent, or the result exceeds
/// [`DenseOptions::DEFAULT_LIMIT`](crate::dense::DenseOptions::DEFAULT_LIMIT).
pub fn scatter_new(
    indices: &RaggedArray,
    values: &RaggedArray,
    sizes: CountArgument<'_>,
    fill: Option<&ArrayRef>,
    duplicates: DuplicateWrites,
) -> Result<RaggedArray> {
    let axis = indices.axes().len();
    let (layout, nulls) = new_lists("scatter", indices, sizes)?;
    let elements = layout.children();
    check_size("scatter", elements, find_bit_width(values.leaf_type()))?;
    let inner = values.inner(axis.min(values.axes().len()))?;
    let below = match fill {
        Some(fill) if inner.axes().is_empty() => {
            if fill.len() != 1 {
                return Err(Error::invalid(format!(
                    "scatter: the fill has {} values; give exactly one value",
                    fill.len()
                )));
            }
            let fill = cast_exactly("the fill of scatter", fill, values.leaf_type())?;
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
    let into = replace_axis(indices, indices.len(), axis, level, below)?;
    scatter(&into, indices, values, duplicates)
}

/// Makes one list of the given size per innermost list of `indices`; null if its size or that list
/// is null.
pub(super) fn new_lists(
    what: &'static str,
    indices: &RaggedArray,
    sizes: CountArgument<'_>,
) -> Result<(Layout, Option<NullBuffer>)> {
    let axis = indices.axes().len();
    if axis == 0 {
        return Err(Error::invalid(format!(
            "{what}: the indices are flat, without lists; nest the indices in one list for each list of the result"
        )));
    }
    let level = indices.axis(axis)?;
    let mut sizes = sizes.expand_to_elements(what, indices, axis - 1)?;
    if let Some(nulls) = level.nulls() {
        for (i, size) in sizes.iter_mut().enumerate() {
            if nulls.is_null(i) {
                *size = None;
            }
        }
    }
    let nulls = sizes.contains(&None).then(|| sizes.iter().map(Option::is_some).collect());
    let layout = make_lists_like(level.layout(), sizes.iter().map(|s| s.unwrap_or(0)))?;
    Ok((layout, nulls))
}
