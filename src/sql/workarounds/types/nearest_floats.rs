use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast};

use super::coarser_times::is_named_cast;
use crate::array::leaf_type;
use crate::functions::cast_to_nearest;
use crate::sql::base::expression_parts::rewrite_parts;

/// Analyzer rule: casts decimals of more than 15 digits to the nearest floats, also in lists
/// and by `arrow_cast`.
///
/// Arrow divides the digits, rounded to a double, by a power of ten, which it rounds as well above
/// 10^22, so that about a quarter of the decimals of 17 and more digits become the wrong double.
/// This workaround is obsolete once the test `stock_decimals_are_still_rounded_twice` fails.
pub(in crate::sql) fn round_decimals_once(plan: LogicalPlan) -> Result<LogicalPlan> {
    let may_round = |e: &Expr| match e {
        Expr::Cast(cast) => is_float(cast.field.data_type()),
        Expr::TryCast(cast) => is_float(cast.field.data_type()),
        e => is_named_cast(e),
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
        e if is_named_cast(&e) && is_float(&e.get_type(columns)?) => cast_argument(e, columns),
        e => Ok(Transformed::no(e)),
    })
}

/// Converts the first argument of a call as [`cast_to_nearest`] does.
fn cast_argument(call: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    match call {
        Expr::ScalarFunction(mut call) if !call.args.is_empty() => {
            let doubles = cast_to_nearest(call.args[0].clone(), columns)?;
            Ok(doubles.update_data(|first| {
                call.args[0] = first;
                Expr::ScalarFunction(call)
            }))
        }
        e => Ok(Transformed::no(e)),
    }
}

/// Whether a type is a float, or a list of floats.
fn is_float(t: &DataType) -> bool {
    leaf_type(t).is_floating()
}
