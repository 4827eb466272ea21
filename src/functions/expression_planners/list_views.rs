use arrow::datatypes::DataType;

use crate::kernels::elementwise::BinaryOp;

/// Whether one of the operand types `left` and `right` is a list view, which the operators on lists
/// do not support. False for an operation with NULL, and for a comparison of two list views, which
/// DataFusion compares as a whole.
pub(super) fn needs_list_cast(op: BinaryOp, left: &DataType, right: &DataType) -> bool {
    let is_view = |t: &DataType| matches!(t, DataType::ListView(_) | DataType::LargeListView(_));
    match (is_view(left), is_view(right)) {
        (true, true) => !op.is_comparison(),
        (true, false) => !right.is_null(),
        (false, true) => !left.is_null(),
        (false, false) => false,
    }
}
