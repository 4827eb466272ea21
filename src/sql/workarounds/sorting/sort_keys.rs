use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Keeps `eliminate_duplicated_expr` from removing a sort key that has the name of an earlier cast.
///
/// The rule removes a key that earlier keys determine, and finds the earlier keys by their names. A
/// cast has the name of its column, so that `GROUP BY f ORDER BY f::INT, f` loses the key
/// `f`. This workaround is obsolete once the test `stock_casts_still_hide_sort_keys` fails.
pub(in crate::sql) fn keep_sort_keys(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Sort(sort) = &plan
        && sort.expr.iter().any(|key| !matches!(key.expr, Expr::Column(_)))
    {
        return Ok(Transformed::no(plan));
    }
    // The rule would compute the columns of an aggregation again.
    if has_one_key(&plan) {
        if cfg!(debug_assertions) {
            let done = stock.rewrite(plan.clone(), config);
            assert!(
                done.is_ok_and(|done| !done.transformed),
                "eliminate_duplicated_expr changes {}, which has at most one key",
                plan.display()
            );
        }
        return Ok(Transformed::no(plan));
    }
    stock.rewrite(plan, config)
}

/// Whether a node is a sort or an aggregation with at most one key, so that no key is repeated.
fn has_one_key(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(sort) => sort.expr.len() < 2,
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.len() < 2,
        _ => false,
    }
}
