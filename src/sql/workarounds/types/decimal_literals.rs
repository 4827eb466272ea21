//! Converts literals of doubles to decimals.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use serrate_core::internal::cast_strictly;

use crate::array::{RaggedArray, leaf_type, list_depth};

/// Converts the literal `operand`, a double or a list of doubles, to a literal of the decimal type
/// `to` with the same digits. The double closest to 1.005 is less than 1.005, so Arrow's cast to
/// DECIMAL(10, 2) would return 1.00. Returns `None` for other operands.
pub(super) fn cast_digits(operand: &Expr, to: &DataType) -> Option<Expr> {
    let Expr::Literal(value, metadata) = operand else { return None };
    let from = value.data_type();
    if !leaf_type(to).is_decimal()
        || *leaf_type(&from) != DataType::Float64
        || list_depth(&from) != list_depth(to)
    {
        return None;
    }
    let values = RaggedArray::try_from_arrow(&value.to_array().ok()?).ok()?;
    let digits =
        values.leaves().as_primitive::<Float64Type>().iter().map(|x| x.map(|x| x.to_string()));
    let digits: ArrayRef = Arc::new(digits.collect::<StringArray>());
    let decimals = cast_strictly(&digits, leaf_type(to)).ok()?;
    let decimals = values.with_leaves(decimals).ok()?.to_arrow().ok()?;
    let decimals = cast_strictly(&decimals, to).ok()?;
    Some(Expr::Literal(ScalarValue::try_from_array(&decimals, 0).ok()?, metadata.clone()))
}
