//! Order of lists and structs, compared element by element. A NULL element is greater than any
//! value, and a list sorts after its prefixes. All NaN are equal and greater than any number,
//! and 0.0 equals -0.0.

use arrow::array::{ArrayRef, DynComparator, make_comparator};
use arrow::compute::SortOptions;

use crate::error::Result;
use serrate_core::internal::to_canonical_floats;

/// Returns a comparator of the rows of `left` with the rows of `right`, both of the same type, in
/// which NULL is greatest. A type without an order is an error.
pub(crate) fn compare_nested(left: &ArrayRef, right: &ArrayRef) -> Result<DynComparator> {
    let order = SortOptions { descending: false, nulls_first: false };
    let (left, right) = (to_canonical_floats(left)?, to_canonical_floats(right)?);
    Ok(make_comparator(&left, &right, order)?)
}
