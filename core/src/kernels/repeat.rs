//! Repeats each element of an axis a given number of times.

use arrow::array::UInt64Array;

use super::CountArgument;
use super::argument_casts::find_bit_width;
use super::elementwise::repeat_values;
use super::gather::{replace_axis, take_rows};
use super::shape::list_axis;
use crate::array::{Layout, ListAxis, RaggedArray, make_lists_like};
use crate::error::Result;
use crate::limit::check_size;

/// Repeats every element of axis `axis` (1 or more, negative axes count from the innermost) with
/// everything below it, like NumPy's `repeat`.
///
/// `counts` is one integer for all elements, or has one integer per element of this or of an outer
/// axis. A null count means 0. Null lists stay null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::{CountArgument, repeat::repeat};
/// // [[1, 2], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let per_row = RaggedArray::try_new(2, vec![], Arc::new(Int32Array::from(vec![2, 3])))?;
/// let b = repeat(&a, 1, CountArgument::Each(&per_row))?;
/// assert_eq!(b.leaves().as_primitive::<Int32Type>().values(), &[1, 1, 2, 2, 3, 3, 3]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis or `axis` is 0, counts are negative or not integers, lists of
/// `counts` and of the array differ in length, or the result exceeds
/// [`DEFAULT_LIMIT`](crate::dense::DenseOptions::DEFAULT_LIMIT).
pub fn repeat(array: &RaggedArray, axis: i64, counts: CountArgument<'_>) -> Result<RaggedArray> {
    let axis = list_axis(array, axis)?;
    let level = array.axis(axis)?;
    let layout = level.layout();
    let counts: Vec<usize> = counts
        .expand_to_elements("repeat", array, axis)?
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect();
    let elements = array.inner(axis)?;
    let total = counts.iter().fold(0usize, |sum, n| sum.saturating_add(*n));
    check_size("repeat", total, find_bit_width(array.leaf_type()))?;
    let new = match (layout, counts.first()) {
        (Layout::Uniform { size, lists }, Some(n)) if counts.iter().all(|c| c == n) => {
            Layout::Uniform { size: size * n, lists: *lists }
        }
        _ => make_lists_like(
            layout,
            (0..layout.lists()).map(|i| counts[layout.range(i)].iter().sum()),
        )?,
    };
    let times = make_lists_like(layout, counts.iter().copied())?;
    let below = if elements.axes().is_empty() {
        let leaves = repeat_values(elements.leaves(), &times)?;
        RaggedArray::try_new(leaves.len(), Vec::new(), leaves)?
    } else {
        let ids = std::sync::Arc::new(UInt64Array::from_iter_values(0..elements.len() as u64));
        let positions = repeat_values(&(ids as _), &times)?;
        take_rows(&elements, arrow::array::AsArray::as_primitive(&positions))?
    };
    replace_axis(array, array.len(), axis, ListAxis::try_new(new, level.nulls().cloned())?, below)
}
