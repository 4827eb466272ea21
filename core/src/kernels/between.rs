//! Selects elements by their times, which are in parallel sorted lists.

use std::str::FromStr;

use arrow::array::Datum;

use super::RowArg;
use super::align::align_arrays;
use super::index::slice;
use super::search::{SearchSide, searchsorted};
use crate::array::RaggedArray;
use crate::error::{Error, Result};

/// The ends that a range of values includes: one, both or none.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::kernels::between::ClosedEnds;
/// assert_eq!("(]".parse::<ClosedEnds>()?, ClosedEnds::Right);
/// assert_eq!("right".parse::<ClosedEnds>()?, ClosedEnds::Right);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClosedEnds {
    /// `[]`: includes both ends.
    #[default]
    Both,
    /// `[)`: includes only the lower end.
    Left,
    /// `(]`: includes only the upper end.
    Right,
    /// `()`: includes neither end.
    Neither,
}

/// Parses `[]`, `[)`, `(]` and `()`, and the names of Polars: `both`, `left`, `right` and `none`.
impl FromStr for ClosedEnds {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s {
            "[]" | "both" => Ok(Self::Both),
            "[)" | "left" => Ok(Self::Left),
            "(]" | "right" => Ok(Self::Right),
            "()" | "none" => Ok(Self::Neither),
            _ => Err(Error::invalid(format!(
                "{s:?} does not name the ends that a range includes; use '[]' or 'both', '[)' or 'left' (the lower end), '(]' or 'right' (the upper end), or '()' or 'none'"
            ))),
        }
    }
}

/// Returns, for every row, the range of elements of `times` (sorted ascending) that are between
/// `low` and `high`.
///
/// The range is a start and an end index, the arguments of [`slice`](fn@slice) along axis 1.
///
/// `low` and `high` are one value for all rows or one per row; a missing or null bound does not
/// limit the range. The bounds are compared with the elements by the rules of [`searchsorted`].
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::between::{ClosedEnds, range};
/// # let axes = vec![Offsets::from_lengths([3, 1])?.into()];
/// let times = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 5, 9, 4])))?;
/// let (low, high) = (Int32Array::new_scalar(1), Int32Array::new_scalar(5));
/// let (start, stop) = range(&times, Some(&low), Some(&high), ClosedEnds::Right)?;
/// assert_eq!((start.get(0), stop.get(0)), (Some(1), Some(2))); // the 5 of [1, 5, 9]
/// assert_eq!((start.get(1), stop.get(1)), (Some(0), Some(1)));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`searchsorted`]; also when `times` does not have one level of lists.
pub fn range(
    times: &RaggedArray,
    low: Option<&dyn Datum>,
    high: Option<&dyn Datum>,
    closure: ClosedEnds,
) -> Result<(RowArg, RowArg)> {
    let find = |value: Option<&dyn Datum>, side| match value {
        None => Ok(RowArg::NONE),
        Some(value) => searchsorted(times, value, side).map(RowArg::Each),
    };
    let start = match closure {
        ClosedEnds::Both | ClosedEnds::Left => SearchSide::Left,
        ClosedEnds::Right | ClosedEnds::Neither => SearchSide::Right,
    };
    let stop = match closure {
        ClosedEnds::Both | ClosedEnds::Right => SearchSide::Right,
        ClosedEnds::Left | ClosedEnds::Neither => SearchSide::Left,
    };
    Ok((find(low, start)?, find(high, stop)?))
}

/// Returns the elements of axis 1 of `array` whose times are between `low` and `high` (see
/// [`range`]).
///
/// `times` has one time per element, sorted ascending within each row.
///
/// The result shares all buffers if every element is between the bounds. A row that is null in
/// `array` stays null; a row that is null only in `times` becomes empty.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::between::{ClosedEnds, between};
/// let axes = vec![Offsets::from_lengths([3, 1])?.into()];
/// let times = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 5, 9, 4])))?;
/// let codes = times.with_leaves(Arc::new(Int32Array::from(vec![10, 50, 90, 40])))?;
/// let (low, high) = (Int32Array::new_scalar(1), Int32Array::new_scalar(5));
/// let out = between(&codes, &times, Some(&low), Some(&high), ClosedEnds::Right)?;
/// assert_eq!(out.leaves().as_primitive::<Int32Type>().values(), &[50, 40]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`range`]; also when a row does not have one time per element.
pub fn between(
    array: &RaggedArray,
    times: &RaggedArray,
    low: Option<&dyn Datum>,
    high: Option<&dyn Datum>,
    closure: ClosedEnds,
) -> Result<RaggedArray> {
    if array.axes().is_empty() || times.axes().is_empty() {
        let missing = if array.axes().is_empty() { "elements" } else { "times" };
        return Err(Error::invalid(format!(
            "between: the {missing} have no lists; give one list of elements and one list of times per row"
        )));
    }
    let (array, times) = align_arrays(array, times, 1)?;
    let (start, stop) = range(&times, low, high, closure)?;
    slice(&array, 1, &start, &stop, &RowArg::NONE)
}
