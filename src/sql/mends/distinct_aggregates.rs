use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::sql::rules::LogicalRule;

/// Applies DataFusion's `single_distinct_aggregation_to_group_by` only where it succeeds.
///
/// The rule of DataFusion 55 gives the keys of its inner GROUP BY the names of the outer keys. A column and a
/// cast of it get the same name there, and the query fails. Obsolete once the test
/// `stock_distinct_sums_by_a_cast_still_fail` fails.
#[derive(Debug)]
pub(in crate::sql) struct DistinctAggregates {
    stock: LogicalRule,
}

impl DistinctAggregates {
    pub(in crate::sql) fn around(rule: LogicalRule) -> LogicalRule {
        match rule.name() {
            "single_distinct_aggregation_to_group_by" => Arc::new(Self { stock: rule }),
            _ => rule,
        }
    }
}

impl OptimizerRule for DistinctAggregates {
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
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        // The unchanged aggregate returns the same rows.
        let kept = LogicalPlan::Aggregate(aggregate.clone());
        Ok(self.stock.rewrite(plan, config).unwrap_or_else(|_| Transformed::no(kept)))
    }
}
