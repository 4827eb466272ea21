//! [`FailingRules`]: logical rules of DataFusion that fail where a statement is valid.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::sql::rules::LogicalRule;

/// Applies two rules of DataFusion only to the nodes for which they succeed.
///
/// * `single_distinct_aggregation_to_group_by` gives the keys of its inner GROUP BY the names of the outer
///   keys. A column and a cast of it get the same name there, and the query fails. Obsolete once the test
///   `stock_distinct_sums_by_a_cast_still_fail` fails.
/// * `simplify_expressions` fails if it cannot cast a literal, even within a branch of CASE that no row
///   takes. The execution reports the error if a row does take it. Obsolete once the test
///   `stock_casts_in_branches_still_fail` fails.
#[derive(Debug)]
pub(in crate::sql) struct FailingRules {
    stock: LogicalRule,
}

impl FailingRules {
    pub(in crate::sql) fn around(rule: LogicalRule) -> LogicalRule {
        match rule.name() {
            "single_distinct_aggregation_to_group_by" | "simplify_expressions" => {
                Arc::new(Self { stock: rule })
            }
            _ => rule,
        }
    }
}

impl OptimizerRule for FailingRules {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.stock.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // If the rule fails, the node stays unchanged, which returns the same rows.
        let unchanged = plan.clone();
        Ok(self.stock.rewrite(plan, config).unwrap_or_else(|_| Transformed::no(unchanged)))
    }
}
