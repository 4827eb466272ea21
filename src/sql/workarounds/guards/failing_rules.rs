use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, Volatility};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::conditions::is_held;
use crate::functions::{StockFact, has_fact};
use crate::sql::base::expression_parts::for_each_part;

const SIMPLIFY: &str = "simplify_expressions";

/// `SELECT CASE WHEN false THEN CAST('' AS BIGINT) ELSE 1 END` fails without this rule.
///
/// Applies rules of DataFusion only to the nodes or plans for which they succeed.
///
/// * `single_distinct_aggregation_to_group_by` gives the keys of its inner GROUP BY the names of
///   the outer keys. A column and a cast of it get the same name there, and the query fails.
///   Obsolete once the test `stock_distinct_sums_by_a_cast_still_fail` fails.
/// * `simplify_expressions` fails if it cannot cast a literal, even within a branch of CASE that no
///   row takes. The execution reports the error if a row does take it. Obsolete once the test
///   `stock_casts_in_branches_still_fail` fails.
pub(in crate::sql) fn skip_failing_nodes(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let simplifies = stock.name() == SIMPLIFY;
    if !matches!(plan, LogicalPlan::Aggregate(_)) && (!simplifies || has_leaves_only(&plan)?) {
        if cfg!(debug_assertions) {
            let done = stock.rewrite(plan.clone(), config);
            assert!(
                done.is_ok_and(|done| done.data == plan),
                "{} changes {}, for which it is skipped",
                stock.name(),
                plan.display()
            );
        }
        return Ok(Transformed::no(plan));
    }
    // A failure is an error of the query, so no copy of the node is needed.
    if simplifies && must_be_simplified(&plan)? {
        return stock.rewrite(plan, config);
    }
    // If the rule fails, the plan keeps the unchanged node, which returns the same rows.
    let unchanged = plan.clone();
    match stock.rewrite(plan, config) {
        Err(_) => Ok(Transformed::no(unchanged)),
        done => done,
    }
}

/// Whether all expressions of a node are columns and literals, which `simplify_expressions` does
/// not change. It removes an alias that repeats the name of a literal, and moves the metadata of an
/// alias to its literal.
fn has_leaves_only(node: &LogicalPlan) -> Result<bool> {
    let mut found = true;
    node.apply_expressions(|e| {
        found = match e {
            Expr::Alias(alias) => match &*alias.expr {
                Expr::Column(_) => true,
                e @ Expr::Literal(..) => {
                    alias.metadata.is_none() && e.schema_name().to_string() != alias.name
                }
                _ => false,
            },
            e => matches!(e, Expr::Column(_) | Expr::Literal(..)),
        };
        Ok(if found { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(found)
}

/// Whether a failure of `simplify_expressions` for a node is an error of the query: the node has no
/// expression such as CASE that can skip a cast and no held condition, which may receive no rows,
/// or it has functions that only this rule can evaluate (`arrow_cast`, functions of the current
/// time).
fn must_be_simplified(node: &LogicalPlan) -> Result<bool> {
    let (mut conditional, mut simplified) = (false, false);
    for_each_part(node, |e| {
        match e {
            Expr::Case(_) => conditional = true,
            Expr::BinaryExpr(pair) if matches!(pair.op, Operator::And | Operator::Or) => {
                conditional = true;
            }
            Expr::ScalarFunction(call) => {
                conditional |= call.func.short_circuits() || is_held(e);
                let is_cast = has_fact(call.name(), StockFact::CastsToNamedType);
                simplified |= is_cast || call.func.signature().volatility == Volatility::Stable;
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(simplified || !conditional)
}
