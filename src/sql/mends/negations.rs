use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::AnalyzerRule;

/// Analyzer rule: rewrites `-x` of a signed integer to `0 - x`.
///
/// DataFusion 55 negates integers with wrap-around, except where it negates the statistics of a Parquet file
/// or a constant: if a file has the least integer, a condition on `-x` fails. Obsolete once the test
/// `stock_negations_of_statistics_still_overflow` fails.
#[derive(Debug, Default)]
pub(in crate::sql) struct PlainNegations;

impl AnalyzerRule for PlainNegations {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            let is_negation = |e: &Expr| e.exists(|e| Ok(matches!(e, Expr::Negative(_))));
            if !plan.expressions().iter().any(|e| is_negation(e).unwrap_or(true)) {
                return Ok(Transformed::no(plan));
            }
            let mut schema = merge_schema(&plan.inputs());
            if let LogicalPlan::TableScan(scan) = &plan {
                let (name, source) = (scan.table_name.clone(), scan.source.schema());
                schema.merge(&DFSchema::try_from_qualified_schema(name, &source)?);
            }
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|e| {
                let name = names.save(&e);
                let done = e.transform_up(|e| match e {
                    Expr::Negative(of) if of.get_type(&schema).is_ok_and(|t| is_signed(&t)) => {
                        let zero = lit(0i64).cast_to(&of.get_type(&schema)?, &schema)?;
                        Ok(Transformed::yes(zero - *of))
                    }
                    e => Ok(Transformed::no(e)),
                })?;
                Ok(done.update_data(|e| name.restore(e)))
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "serrate_plain_negations"
    }
}

fn is_signed(t: &DataType) -> bool {
    matches!(t, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64)
}
