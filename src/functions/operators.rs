//! Arithmetic, comparison and logic on lists.

use crate::array::RaggedArray;
use crate::error::Result;

/// A mask, with leaves of type Null as booleans that are all null.
pub(super) fn booleans(mask: &RaggedArray) -> Result<RaggedArray> {
    match mask.leaf_type().is_null() {
        true => mask.with_leaves(arrow::compute::cast(
            mask.leaves(),
            &arrow::datatypes::DataType::Boolean,
        )?),
        false => Ok(mask.clone()),
    }
}
