use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::sql::rules::LogicalRule;

/// Keeps the rule `eliminate_duplicated_expr` from removing sort keys after a cast.
///
/// The rule removes keys that the keys before them determine, and finds the latter by their names. A cast has
/// the name of its column, so that `GROUP BY f ORDER BY f::INT, f` loses the key `f`. Obsolete once the test
/// `stock_casts_still_hide_sort_keys` fails.
#[derive(Debug)]
pub(in crate::sql) struct SortKeys {
    stock: LogicalRule,
}

impl SortKeys {
    pub(in crate::sql) fn wrap_rule(rule: LogicalRule) -> LogicalRule {
        match rule.name() {
            "eliminate_duplicated_expr" => Arc::new(Self { stock: rule }),
            _ => rule,
        }
    }
}

impl OptimizerRule for SortKeys {
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
        if let LogicalPlan::Sort(sort) = &plan
            && sort.expr.iter().any(|key| !matches!(key.expr, Expr::Column(_)))
        {
            return Ok(Transformed::no(plan));
        }
        self.stock.rewrite(plan, config)
    }
}
