use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast, lit};

use crate::sql::base::expression_parts::rewrite_parts;

/// Analyzer rule: rewrites `CAST(i AS BOOLEAN)` of an integer to `i <> 0`. Also casts a boolean to
/// an integer before a cast to a decimal, because Arrow cannot cast booleans to decimals.
///
/// DataFusion 55 derives from `WHERE CAST(i AS BOOLEAN)` that `i` is 1, because true cast to an
/// integer is 1, and omits `i` from ORDER BY and from windows. This workaround is obsolete once the
/// test `stock_truths_of_integers_are_still_one` fails.
pub(in crate::sql) fn rewrite_boolean_casts(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_affected = |e: &Expr| {
        let (Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. })) = e else {
            return false;
        };
        *field.data_type() == DataType::Boolean || field.data_type().is_decimal()
    };
    rewrite_parts(plan, is_affected, |e, columns| match e {
        Expr::Cast(Cast { expr, field })
            if *field.data_type() == DataType::Boolean
                && expr.get_type(columns).is_ok_and(|t| t.is_integer()) =>
        {
            let zero = lit(0i64).cast_to(&expr.get_type(columns)?, columns)?;
            Ok(Transformed::yes(expr.not_eq(zero)))
        }
        Expr::Cast(Cast { expr, field }) if is_boolean_to_decimal(&expr, &field, columns) => {
            let number = Expr::Cast(Cast::new(expr, DataType::Int8));
            Ok(Transformed::yes(Expr::Cast(Cast { expr: Box::new(number), field })))
        }
        Expr::TryCast(TryCast { expr, field }) if is_boolean_to_decimal(&expr, &field, columns) => {
            let number = Expr::Cast(Cast::new(expr, DataType::Int8));
            Ok(Transformed::yes(Expr::TryCast(TryCast { expr: Box::new(number), field })))
        }
        e => Ok(Transformed::no(e)),
    })
}

fn is_boolean_to_decimal(value: &Expr, field: &FieldRef, columns: &DFSchema) -> bool {
    field.data_type().is_decimal() && value.get_type(columns).is_ok_and(|t| t == DataType::Boolean)
}
