//! Takes the elements at given indices from every list.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, Int64Array, PrimitiveArray, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::downcast_primitive_array;

use super::RowArg;
use super::align::align_arrays;
use super::allocate::allocate_values;
use super::argument_casts::cast_arg_integers;
use super::gather::{find_row_of_list, replace_axis, take_rows};
use super::index::slice;
use super::shape::list_axis;
use crate::array::{Layout, ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};
use crate::index::resolve_position;

/// Takes the elements of every list at the indices in its list of `indices` (NumPy's `take`, list
/// by list).
///
/// `indices` has integer leaves; its innermost level is the axis to select from: one level selects
/// elements of axis 1 with everything below them, two levels select elements of axis 2, and so on.
/// Its outer lists have the lengths of the outer lists of the array. Indices count from 0, negative
/// indices from the end, and may repeat. A null index gives a null element; a list that is null in
/// either array gives a null list.
///
/// The result has the lists of the indices, shared if no list of the array is null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, Int64Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::take::take;
/// // [[1, 2, 3], [4]] and [[2, 0], [-1, 0]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let at = Arc::new(Int64Array::from(vec![2, 0, -1, 0]));
/// let at = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 2])?.into()], at)?;
/// let b = take(&a, &at)?;
/// assert_eq!(b.leaves().as_primitive::<Int32Type>().values(), &[3, 1, 4, 4]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If an index is out of range ([`Error::OutOfRangeAt`], with row, list, position, index and size),
/// the indices are not integers, have no levels or more levels than the array, or outer lists
/// differ in length.
pub fn take(array: &RaggedArray, indices: &RaggedArray) -> Result<RaggedArray> {
    let (axis, array, indices, at) = align_indices("take", array, indices)?;
    let (from, to) = (array.axis(axis)?, indices.axis(axis)?);
    let outside = |list: usize, position: usize| Error::OutOfRangeAt {
        what: "take",
        row: find_row_of_list(&indices, axis, list),
        list,
        position,
        index: at.value(to.layout().range(list).start + position),
        size: from.layout().length(list),
    };
    let plain = from.nulls().is_none() && to.nulls().is_none() && at.null_count() == 0;
    if plain && axis == array.axes().len() && array.leaves().null_count() == 0 {
        let leaves = array.leaves();
        let out = downcast_primitive_array!(
            leaves => Some(take_primitive(leaves, from.layout(), &at, to.layout())),
            _ => None,
        );
        if let Some(out) = out {
            let out = out.map_err(|at| outside(at.list, at.position))?;
            return merge_outer_nulls(&indices.with_leaves(out)?, &array, axis);
        }
    }
    let null = |axis: &ListAxis, list: usize| axis.nulls().is_some_and(|n| n.is_null(list));
    let mut positions: Vec<Option<u64>> = Vec::with_capacity(at.len());
    let mut dropped = false;
    for list in 0..to.layout().lists() {
        let (source, range) = (from.layout().range(list), to.layout().range(list));
        if null(from, list) {
            dropped |= !range.is_empty();
            continue;
        }
        for (position, i) in range.enumerate() {
            positions.push(if at.is_null(i) {
                None
            } else {
                match resolve_position(at.value(i), source.len()) {
                    Some(p) => Some((source.start + p) as u64),
                    None => return Err(outside(list, position)),
                }
            });
        }
    }
    let below = take_rows(&array.inner(axis)?, &UInt64Array::from(positions))?;
    let layout = if dropped {
        let length = |i| if null(from, i) { 0 } else { to.layout().length(i) };
        make_lists_like(to.layout(), (0..to.layout().lists()).map(length))?
    } else {
        to.layout().clone()
    };
    let level = ListAxis::try_new(layout, NullBuffer::union(from.nulls(), to.nulls()))?;
    replace_axis(&merge_outer_nulls(&indices, &array, axis)?, indices.len(), axis, level, below)
}

/// Reverses every list of `axis` (1 or more, negative axes count from the innermost); null lists
/// stay null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::take::reverse;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// assert_eq!(reverse(&a, 1)?.leaves().as_ref(), &Int32Array::from(vec![3, 2, 1, 4]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis or `axis` is 0.
pub fn reverse(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    let axis = list_axis(array, axis)?;
    let axis = i64::try_from(axis).unwrap_or(i64::MAX);
    slice(array, axis, &RowArg::NONE, &RowArg::NONE, &RowArg::from(-1))
}

/// Returns the axis that the indices select from, both arrays with the same outer lists, and the
/// indices as integers. Refuses indices without lists, or with more levels than the array.
pub(super) fn align_indices(
    what: &'static str,
    array: &RaggedArray,
    indices: &RaggedArray,
) -> Result<(usize, RaggedArray, RaggedArray, Int64Array)> {
    let axis = indices.axes().len();
    if axis == 0 || axis > array.axes().len() {
        return Err(Error::invalid(format!(
            "{what}: the indices have {axis} level(s) of lists, but the array has {}; give indices with at least one level, and no more levels than the array",
            array.axes().len()
        )));
    }
    let (array, indices) = align_arrays(array, indices, axis - 1)?;
    let at = cast_arg_integers(&format!("the indices of {what}"), indices.leaves())?;
    Ok((axis, array, indices, at))
}

/// Returns `a` with more nulls: a list above axis `axis` is null if it is null in `a` or in `b`.
pub(super) fn merge_outer_nulls(
    a: &RaggedArray,
    b: &RaggedArray,
    axis: usize,
) -> Result<RaggedArray> {
    let (rows, mut axes, leaves) = a.clone().into_parts();
    for (level, other) in axes.iter_mut().zip(b.axes()).take(axis - 1) {
        if other.nulls().is_some() {
            let nulls = NullBuffer::union(level.nulls(), other.nulls());
            *level = ListAxis::try_new(level.layout().clone(), nulls)?;
        }
    }
    RaggedArray::try_new(rows, axes, leaves)
}

/// An index that is out of range: its list among all lists of indices, and its position in this
/// list.
struct OutsideIndex {
    list: usize,
    position: usize,
}

/// Takes from every list of `values` (layout `from`) the values at the indices in the same list of
/// `at` (layout `to`); neither values nor indices have nulls. The error is the first index that is
/// out of range.
fn take_primitive<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    from: &Layout,
    at: &Int64Array,
    to: &Layout,
) -> std::result::Result<ArrayRef, OutsideIndex> {
    let data_type = values.data_type();
    let (values, indices) = (values.values(), at.values());
    let mut out: Vec<T::Native> = allocate_values(indices.len());
    for list in 0..to.lists() {
        let source = &values[from.range(list)];
        let mut outside = None;
        let wanted = &indices[to.range(list)];
        out.extend(wanted.iter().enumerate().map(|(position, index)| {
            match resolve_position(*index, source.len()).and_then(|i| source.get(i)) {
                Some(value) => *value,
                None => {
                    outside = outside.or(Some(position));
                    T::Native::default()
                }
            }
        }));
        if let Some(position) = outside {
            return Err(OutsideIndex { list, position });
        }
    }
    let out = PrimitiveArray::<T>::new(out.into(), None);
    Ok(Arc::new(out.with_data_type(data_type.clone())))
}
