use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::AnalyzerRule;

use crate::sql::mends::parts::rewrite_parts;

/// Analyzer rule: rewrites `CAST(i AS BOOLEAN)` of an integer to `i <> 0`.
///
/// DataFusion 55 derives from `WHERE CAST(i AS BOOLEAN)` that `i` is 1, because true cast to an integer is 1,
/// and omits `i` from ORDER BY and from windows. Obsolete once the test
/// `stock_truths_of_integers_are_still_one` fails.
#[derive(Debug, Default)]
pub(in crate::sql) struct NumberTruths;

impl AnalyzerRule for NumberTruths {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let to_boolean = |e: &Expr| matches!(e, Expr::Cast(cast) if *cast.field.data_type() == DataType::Boolean);
        rewrite_parts(plan, to_boolean, |e, columns| match e {
            Expr::Cast(Cast { expr, field })
                if *field.data_type() == DataType::Boolean
                    && expr.get_type(columns).is_ok_and(|t| t.is_integer()) =>
            {
                let zero = lit(0i64).cast_to(&expr.get_type(columns)?, columns)?;
                Ok(Transformed::yes(expr.not_eq(zero)))
            }
            e => Ok(Transformed::no(e)),
        })
    }

    fn name(&self) -> &str {
        "serrate_number_truths"
    }
}
