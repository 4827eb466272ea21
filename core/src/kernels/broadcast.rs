//! Broadcasting of values of an outer axis over the lists of a deeper axis.

use std::str::FromStr;

use arrow::array::{UInt64Array, UInt64Builder};
use arrow::compute::take;

use super::align::align_arrays;
use super::elementwise::{OperandPair, pair_arrays};
use super::levels::merge_all_levels;
use crate::array::RaggedArray;
use crate::error::{Error, Result};

/// Mode of [`broadcast`]: which elements of an inner list receive the value of the outer element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BroadcastMode {
    /// All elements of the list receive the value.
    #[default]
    Repeat,
    /// Only the first element of the list receives the value; the others are null.
    First,
}

/// Parses `repeat` and `first`.
impl FromStr for BroadcastMode {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s {
            "repeat" => Ok(Self::Repeat),
            "first" => Ok(Self::First),
            _ => Err(Error::invalid(format!(
                "the mode of a broadcast is {s:?}; use 'repeat' or 'first'"
            ))),
        }
    }
}

/// Repeats each value of `outer` for the elements of its list in `inner`, such as the time of an
/// event for its measurements.
///
/// `[7, 8]` and `[[1, 2], [3]]` give `[[7, 7], [8]]`. `how` can give the value to the first element
/// only, `[[7, NULL], [8]]`. `inner` has the lists of `outer` and more levels below; the result
/// shares the lists of `inner`. A value with an empty list in `inner` is dropped. A list that is
/// null in either array is null in the result.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::broadcast::{BroadcastMode, broadcast};
/// let time = RaggedArray::try_new(2, vec![], Arc::new(Int32Array::from(vec![7, 8])))?;
/// let axes = vec![Offsets::from_lengths([2, 1])?.into()];
/// let codes = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3])))?;
/// let out = broadcast(&time, &codes, BroadcastMode::Repeat)?;
/// assert_eq!(out.leaves().as_primitive::<Int32Type>().values(), &[7, 7, 8]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `outer` does not have fewer levels than `inner`, or a list of `outer` differs in length
/// from the same list of `inner`.
pub fn broadcast(
    outer: &RaggedArray,
    inner: &RaggedArray,
    how: BroadcastMode,
) -> Result<RaggedArray> {
    let levels = outer.axes().len();
    if levels >= inner.axes().len() {
        return Err(Error::invalid(format!(
            "the values have {levels} level(s) of lists, so they cannot be broadcast over an array with {} level(s); the array must have more levels",
            inner.axes().len()
        )));
    }
    let (outer, inner) = align_arrays(outer, inner, levels)?;
    let OperandPair { shape, left, .. } = pair_arrays(&outer, &inner)?;
    if how == BroadcastMode::Repeat {
        return shape.with_leaves(left);
    }
    let Some(lists) = merge_all_levels(&inner.inner(levels)?)? else {
        return shape.with_leaves(left);
    };
    let layout = lists.layout();
    let mut at = UInt64Builder::with_capacity(layout.children());
    for list in 0..layout.lists() {
        let n = layout.length(list);
        if n > 0 {
            at.append_value(list as u64);
            at.append_nulls(n - 1);
        }
    }
    let at: UInt64Array = at.finish();
    shape.with_leaves(take(outer.leaves(), &at, None)?)
}
