//! [`DistinctAggregates`]: `sum(DISTINCT x)` grouped by a column and a cast of it.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::sql::rules::LogicalRule;

/// `single_distinct_aggregation_to_group_by` for aggregates that it can rewrite.
///
/// The rule of DataFusion 55 names the keys of its inner GROUP BY like those of the outer one. A column
/// and a cast of it have one name there, and the query fails. Remove once
/// `stock_distinct_sums_by_a_cast_still_fail` in `tests/sql/grouping.rs` fails.
#[derive(Debug)]
pub(in crate::sql) struct DistinctAggregates {
    stock: LogicalRule,
}

impl DistinctAggregates {
    /// Wraps `single_distinct_aggregation_to_group_by`; returns any other rule unchanged.
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
        // The aggregate itself gives the same rows.
        let kept = LogicalPlan::Aggregate(aggregate.clone());
        Ok(self.stock.rewrite(plan, config).unwrap_or_else(|_| Transformed::no(kept)))
    }
}
