use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, TryCast};

use crate::array::leaf_type;
use crate::functions::cast_to_nearest;
use crate::sql::base::expression_parts::rewrite_parts;

/// Analyzer rule: casts decimals of more than 15 digits to the nearest floats, also in lists.
///
/// Arrow divides the digits, rounded to a double, by a power of ten, which it rounds as well above
/// 10^22, so that about a quarter of the decimals of 17 and more digits become the wrong double.
/// This workaround is obsolete once the test `stock_decimals_are_still_rounded_twice` fails.
pub(in crate::sql) fn round_decimals_once(plan: LogicalPlan) -> Result<LogicalPlan> {
    let may_round = |e: &Expr| match e {
        Expr::Cast(cast) => is_float(cast.field.data_type()),
        Expr::TryCast(cast) => is_float(cast.field.data_type()),
        _ => false,
    };
    rewrite_parts(plan, may_round, |e, columns| match e {
        Expr::Cast(Cast { expr, field }) if is_float(field.data_type()) => {
            let doubles = cast_to_nearest(*expr, columns)?;
            Ok(doubles.update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field })))
        }
        Expr::TryCast(TryCast { expr, field }) if is_float(field.data_type()) => {
            let doubles = cast_to_nearest(*expr, columns)?;
            Ok(doubles.update_data(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field })))
        }
        e => Ok(Transformed::no(e)),
    })
}

/// Whether a type is a float, or a list of floats.
fn is_float(t: &DataType) -> bool {
    leaf_type(t).is_floating()
}
