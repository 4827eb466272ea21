//! Coordinates of leaves: the index of each leaf along an axis.

use std::sync::Arc;

use arrow::array::Int64Array;

use super::elementwise::repeat_values;
use super::levels::merge_all_levels;
use crate::array::{Layout, RaggedArray, resolve_axis};
use crate::error::Result;

/// Returns the index of every leaf along axis `axis` (axis 0 gives its row, negative axes count
/// from the innermost), as `Int64`.
///
/// The result shares the lists of the array. Null leaves have coordinates, too.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int64Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::coords::coord;
/// // [[1, 2], [], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
/// assert_eq!(coord(&a, 0)?.leaves().as_primitive::<Int64Type>().values(), &[0, 0, 2]);
/// assert_eq!(coord(&a, 1)?.leaves().as_primitive::<Int64Type>().values(), &[0, 1, 0]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis.
pub fn coord(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    let axis = resolve_axis(axis, array.ndim(), "the array")?;
    let count = |n: usize| 0..i64::try_from(n).unwrap_or(i64::MAX);
    let numbers: Vec<i64> = if axis == 0 {
        count(array.len()).collect()
    } else {
        let layout: &Layout = array.axis(axis)?.layout();
        let mut numbers = Vec::with_capacity(layout.children());
        for list in 0..layout.lists() {
            numbers.extend(count(layout.length(list)));
        }
        numbers
    };
    let numbers = Arc::new(Int64Array::from(numbers));
    match merge_all_levels(&array.inner(axis)?)? {
        Some(lists) => array.with_leaves(repeat_values(&(numbers as _), lists.layout())?),
        None => array.with_leaves(numbers),
    }
}

/// Returns the [`coord`] of every leaf along every axis, from the rows to the innermost axis.
///
/// Null leaves have coordinates, too.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::coords::coords;
/// // [[10, 20], [30]]
/// let leaves = Arc::new(Int32Array::from(vec![10, 20, 30]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let [rows, columns]: [RaggedArray; 2] = coords(&a)?.try_into().unwrap_or_else(|_| panic!());
/// # use arrow::array::Int64Array;
/// assert_eq!(rows.leaves().as_ref(), &Int64Array::from(vec![0, 0, 1]));
/// assert_eq!(columns.leaves().as_ref(), &Int64Array::from(vec![0, 1, 0]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Never: the array has every axis that is used.
pub fn coords(array: &RaggedArray) -> Result<Vec<RaggedArray>> {
    (0..array.ndim()).map(|axis| coord(array, i64::try_from(axis).unwrap_or(i64::MAX))).collect()
}
