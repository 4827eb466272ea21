use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::AnalyzerRule;

/// Analyzer rule: rewrites `CAST(i AS BOOLEAN)` of an integer to `i <> 0`.
///
/// DataFusion 55 derives from `WHERE CAST(i AS BOOLEAN)` that `i` is 1, because true cast to an integer is 1,
/// and omits `i` from ORDER BY and from windows. Obsolete once the test
/// `stock_truths_of_integers_are_still_one` fails.
#[derive(Debug, Default)]
pub(in crate::sql) struct NumberTruths;

impl AnalyzerRule for NumberTruths {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|e| {
                let name = names.save(&e);
                let done = e.transform_up(|e| match e {
                    Expr::Cast(Cast { expr, field })
                        if *field.data_type() == DataType::Boolean
                            && expr.get_type(&schema).is_ok_and(|t| t.is_integer()) =>
                    {
                        let zero = lit(0i64).cast_to(&expr.get_type(&schema)?, &schema)?;
                        Ok(Transformed::yes(expr.not_eq(zero)))
                    }
                    e => Ok(Transformed::no(e)),
                })?;
                Ok(done.update_data(|e| name.restore(e)))
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "serrate_number_truths"
    }
}
