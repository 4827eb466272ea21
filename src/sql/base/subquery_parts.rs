//! Finds subqueries in expressions, and the values that are compared with them.

use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};

use crate::sql::base::expression_parts::has_part;

pub(in crate::sql) fn has_query(node: &LogicalPlan) -> bool {
    has_part(node, |e| find_query(e).is_some())
}

pub(in crate::sql) fn find_query(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::InSubquery(test) => Some(&test.subquery),
        Expr::Exists(test) => Some(&test.subquery),
        Expr::SetComparison(test) => Some(&test.subquery),
        Expr::ScalarSubquery(query) => Some(query),
        _ => None,
    }
}

/// Whether an expression tests the rows of a subquery: IN, EXISTS, ANY or ALL.
pub(in crate::sql) fn is_subquery_test(expr: &Expr) -> bool {
    matches!(expr, Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
}

/// Whether the value of an expression depends only on the columns of its row: not on a subquery, a
/// column of an outer query, a parameter or a call such as `random()`.
pub(in crate::sql) fn uses_only_row(expr: &Expr) -> Result<bool> {
    let is_other = |e: &Expr| {
        find_query(e).is_some()
            || matches!(e, Expr::OuterReferenceColumn(..) | Expr::Placeholder(_))
    };
    Ok(!expr.is_volatile() && !expr.exists(|e| Ok(is_other(e)))?)
}

/// Returns the value `x` that `x IN (query)`, `x = ANY (query)` or `x = ALL (query)` compares with
/// the column of the subquery. Returns `None` for any other expression.
pub(in crate::sql) fn find_compared_value(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::InSubquery(test) => Some(test.expr.as_ref()),
        Expr::SetComparison(test) => Some(test.expr.as_ref()),
        _ => None,
    }
}

/// Whether a subquery returns exactly one row for every row of the outer query, as an aggregate
/// without GROUP BY does: `SELECT max(x) FROM t`.
pub(in crate::sql) fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => has_one_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => has_one_row(&node.input),
        LogicalPlan::Sort(node) => node.fetch.is_none() && has_one_row(&node.input),
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        _ => false,
    }
}
