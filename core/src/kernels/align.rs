use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;

use super::gather::{find_row_of_list, replace_axis, take_ranges};
use crate::array::{ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};

pub(super) fn check_rows(left: &RaggedArray, right: &RaggedArray) -> Result<()> {
    if left.len() == right.len() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "there are {} row(s) on the left and {} on the right; both sides must have the same number of rows",
        left.len(),
        right.len()
    )))
}

pub(super) fn check_mask(mask: &RaggedArray) -> Result<()> {
    match mask.leaf_type() {
        DataType::Boolean => Ok(()),
        found => {
            Err(Error::type_of("the mask", "booleans (compare or cast the values first)", found))
        }
    }
}

/// Returns both arrays, with lists of equal lengths on the axes 1 to `levels`. If a list is null in
/// one array, the list at the same index of the other array becomes empty: `[NULL, [1]]` and
/// `[[7, 8], [2]]` become `[NULL, [1]]` and `[[], [2]]`.
///
/// Copies nothing if every list that must become empty is empty already.
///
/// # Errors
/// If the numbers of rows differ, or two valid lists differ in length; the message has axis,
/// list, row and both lengths.
pub fn align_arrays(
    left: &RaggedArray,
    right: &RaggedArray,
    levels: usize,
) -> Result<(RaggedArray, RaggedArray)> {
    check_rows(left, right)?;
    let (mut left, mut right) = (left.clone(), right.clone());
    for axis in 1..=levels {
        if let Some(keep) = right.axis(axis)?.nulls().cloned() {
            left = empty_null_lists(left, axis, &keep)?;
        }
        if let Some(keep) = left.axis(axis)?.nulls().cloned() {
            right = empty_null_lists(right, axis, &keep)?;
        }
        let (a, b) = (left.axis(axis)?.layout(), right.axis(axis)?.layout());
        if let Some(list) = a.first_difference(b) {
            return Err(Error::invalid(format!(
                "list {list} of axis {axis} (row {}) has {} element(s) on the left and {} on the right; both sides must have lists of the same lengths",
                find_row_of_list(&left, axis, list),
                a.length(list),
                b.length(list)
            )));
        }
    }
    Ok((left, right))
}

/// Returns both arrays like [`align_arrays`], but a list that is null in one array is null in both
/// results.
///
/// # Errors
/// Same as [`align_arrays`].
pub fn share_lists(
    left: &RaggedArray,
    right: &RaggedArray,
    levels: usize,
) -> Result<(RaggedArray, RaggedArray)> {
    let (left, right) = align_arrays(left, right, levels)?;
    let (mut a, mut b) = (left.axes().to_vec(), right.axes().to_vec());
    for (a, b) in a.iter_mut().zip(&mut b).take(levels) {
        let nulls = NullBuffer::union(a.nulls(), b.nulls());
        if nulls.is_some() {
            *a = ListAxis::try_new(a.layout().clone(), nulls.clone())?;
            *b = ListAxis::try_new(b.layout().clone(), nulls)?;
        }
    }
    let shared = |array: RaggedArray, axes| -> Result<RaggedArray> {
        let (rows, _, leaves) = array.into_parts();
        RaggedArray::try_new(rows, axes, leaves)
    };
    Ok((shared(left, a)?, shared(right, b)?))
}

fn empty_null_lists(array: RaggedArray, axis: usize, keep: &NullBuffer) -> Result<RaggedArray> {
    let level = array.axis(axis)?;
    let layout = level.layout();
    if (0..layout.lists()).all(|i| keep.is_valid(i) || layout.length(i) == 0) {
        return Ok(array);
    }
    let ranges = keep.valid_slices().map(|(start, end)| layout.ranges(start..end));
    let below = take_ranges(&array.inner(axis)?, ranges)?;
    let lengths = (0..layout.lists()).map(|i| if keep.is_valid(i) { layout.length(i) } else { 0 });
    let level = ListAxis::try_new(make_lists_like(layout, lengths)?, level.nulls().cloned())?;
    replace_axis(&array, array.len(), axis, level, below)
}
