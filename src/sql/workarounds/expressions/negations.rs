use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, lit};

use crate::sql::base::expression_parts::rewrite_parts;

/// `SELECT * FROM 't.parquet' WHERE -x > 5` fails without this rule if a value of `x` is the least
/// integer of its type.
///
/// Analyzer rule: rewrites `-x` of a signed integer to `0 - x`.
///
/// DataFusion 55 negates integers with wrap-around, except where it negates the statistics of a
/// Parquet file or a constant. There, the negation of the least integer fails. This workaround is
/// obsolete once the test `stock_negations_of_statistics_still_overflow` fails.
pub(in crate::sql) fn rewrite_negations(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_negation = |e: &Expr| matches!(e, Expr::Negative(_));
    rewrite_parts(plan, is_negation, |e, columns| match e {
        Expr::Negative(of) if of.get_type(columns).is_ok_and(|t| is_signed(&t)) => {
            let zero = lit(0i64).cast_to(&of.get_type(columns)?, columns)?;
            Ok(Transformed::yes(zero - *of))
        }
        e => Ok(Transformed::no(e)),
    })
}

fn is_signed(t: &DataType) -> bool {
    matches!(t, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64)
}
