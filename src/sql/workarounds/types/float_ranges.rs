use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, TryCast};

use crate::array::leaf_type;
use crate::functions::check_float_range;
use crate::sql::base::expression_parts::rewrite_parts;

/// Analyzer rule: makes a cast to FLOAT or Float16 of a number beyond the range of this type an
/// error, or NULL with TRY_CAST, also in lists. DuckDB does the same. A number in a string becomes
/// infinite, as in DuckDB, and so does the result of `arrow_cast`, which is a cast of Arrow.
///
/// Arrow casts such a number to infinity. This workaround is obsolete once the test
/// `stock_casts_to_floats_are_still_infinite` fails.
pub(in crate::sql) fn check_float_ranges(plan: LogicalPlan) -> Result<LogicalPlan> {
    let may_exceed = |e: &Expr| match e {
        Expr::Cast(cast) => is_narrow(cast.field.data_type()),
        Expr::TryCast(cast) => is_narrow(cast.field.data_type()),
        _ => false,
    };
    rewrite_parts(plan, may_exceed, |e, columns| match e {
        Expr::Cast(Cast { expr, field }) if is_narrow(field.data_type()) => {
            let checked = check_float_range(*expr, field.data_type(), false, columns)?;
            Ok(checked.update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field })))
        }
        Expr::TryCast(TryCast { expr, field }) if is_narrow(field.data_type()) => {
            let checked = check_float_range(*expr, field.data_type(), true, columns)?;
            Ok(checked.update_data(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field })))
        }
        e => Ok(Transformed::no(e)),
    })
}

/// Whether a type is a float that cannot hold all doubles, or a list of such floats.
fn is_narrow(t: &DataType) -> bool {
    matches!(leaf_type(t), DataType::Float32 | DataType::Float16)
}
