use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Makes the rule `eliminate_duplicated_expr` remove repeated ORDER BY keys of aggregate calls,
/// too.
///
/// `first_value(x ORDER BY k, k)` panics with GROUP BY. `statement::keys::repeated_keys` removes
/// keys of the same text, and this rule removes keys that are equal once simplified. This
/// workaround is obsolete once the test `stock_repeated_keys_still_panic` fails.
pub(in crate::sql) fn drop_repeated_orders(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Aggregate(aggregate) if has_several_orders(&aggregate)? => {
            shorten_orders(aggregate)?
        }
        other => Transformed::no(other),
    };
    plan.transform_data(|plan| stock.rewrite(plan, config))
}

/// Whether an aggregate has an ORDER BY with several keys.
fn has_several_orders(aggregate: &Aggregate) -> Result<bool> {
    let is_ordered =
        |e: &Expr| matches!(e, Expr::AggregateFunction(call) if call.params.order_by.len() > 1);
    let mut found = false;
    for e in &aggregate.aggr_expr {
        found = found || e.exists(|e| Ok(is_ordered(e)))?;
    }
    Ok(found)
}

fn shorten_orders(mut aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new_for_projection();
    let mut changed = false;
    for e in &mut aggregate.aggr_expr {
        let short = e.clone().transform_up(|e| Ok(shorten_order(e)))?;
        if short.transformed {
            *e = names.save(e).restore(short.data);
            changed = true;
        }
    }
    Ok(Transformed::new_transformed(LogicalPlan::Aggregate(aggregate), changed))
}

fn shorten_order(mut e: Expr) -> Transformed<Expr> {
    let Expr::AggregateFunction(call) = &mut e else { return Transformed::no(e) };
    let keys = &mut call.params.order_by;
    let (before, mut seen) = (keys.len(), Vec::new());
    keys.retain(|key| {
        let key = key.expr.clone().unalias();
        let is_repeated = seen.contains(&key) && !key.is_volatile();
        seen.push(key);
        !is_repeated
    });
    let changed = keys.len() < before;
    Transformed::new_transformed(e, changed)
}
