//! Decides which correlated queries DataFusion plans correctly, and lists the outer columns that queries use.

use std::collections::HashSet;

use datafusion::common::Column;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, FetchType, LogicalPlan, Operator, SkipType,
};

use crate::sql::mends::subqueries::{has_query, query_of};

/// Whether a correlated scalar subquery has the form that DataFusion turns into a join: an aggregate without
/// GROUP BY over rows for which expressions of columns equal outer columns.
pub(in crate::sql) fn is_equation(query: &LogicalPlan) -> Result<bool> {
    if has_name_clash(query)? {
        return Ok(false);
    }
    let mut plan = query;
    let mut aggregated = false;
    loop {
        if !matches!(plan, LogicalPlan::Filter(_)) && names_outer(plan)? {
            return Ok(false);
        }
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Aggregate(node) if !aggregated && node.group_expr.is_empty() => {
                aggregated = true;
                &node.input
            }
            LogicalPlan::Filter(node) if aggregated => {
                if !are_equations(&node.predicate) || !nested_outer_columns(plan)?.is_empty() {
                    return Ok(false);
                }
                &node.input
            }
            // The plan below the filter must not refer to the outer query.
            rest => return Ok(aggregated && !any_outer(rest)?),
        };
    }
}

/// Whether DataFusion turns EXISTS or IN over a correlated query into a semi join of the same meaning: one
/// filter uses outer columns, and above the filter are only projections, DISTINCT and, if the filter consists
/// of equations, GROUP BY. For EXISTS, a LIMIT above the filter is allowed, too.
pub(in crate::sql) fn is_semi_join(query: &LogicalPlan, exists: bool) -> Result<bool> {
    if has_name_clash(query)? {
        return Ok(false);
    }
    let mut plan = query;
    let mut any_row_counts = exists;
    let mut aggregated = false;
    loop {
        if !matches!(plan, LogicalPlan::Filter(_)) && names_outer(plan)? {
            return Ok(false);
        }
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Sort(node) if node.fetch.is_none() => &node.input,
            LogicalPlan::Limit(node)
                if any_row_counts
                    && matches!(node.get_skip_type()?, SkipType::Literal(0))
                    && matches!(node.get_fetch_type()?, FetchType::Literal(Some(1..))) =>
            {
                &node.input
            }
            LogicalPlan::Aggregate(node)
                if !node.group_expr.is_empty() && !has_grouping_sets(node) =>
            {
                (aggregated, any_row_counts) = (true, false);
                &node.input
            }
            LogicalPlan::Filter(node) if !names_outer(plan)? => {
                any_row_counts = false;
                &node.input
            }
            LogicalPlan::Filter(node) => {
                let plain = !aggregated || are_equations(&node.predicate);
                let nested = !nested_outer_columns(plan)?.is_empty();
                return Ok(plain && !nested && !any_outer(&node.input)?);
            }
            rest => return Ok(!any_outer(rest)?),
        };
    }
}

/// Whether DataFusion would confuse columns that it moves out of a correlated query.
///
/// DataFusion adds the columns of conditions on outer columns to the output of the query, whose columns then
/// get one table name. Two columns `r2.d` and `r3.d` become one: `EXISTS (SELECT 1 FROM t r2, t r3 WHERE
/// r2.d + r3.d = r1.d)` loses rows. `stock_correlated_self_joins_still_lose_rows` in
/// `tests/sql/subqueries.rs` fails once this is fixed upstream.
fn has_name_clash(query: &LogicalPlan) -> Result<bool> {
    let mut moved: Vec<Column> = Vec::new();
    let mut shown: Vec<(String, Option<Column>)> = Vec::new();
    let mut plan = query;
    loop {
        plan = match plan {
            LogicalPlan::Filter(node) => {
                if node.predicate.contains_outer() {
                    moved.extend(node.predicate.column_refs().into_iter().cloned());
                }
                &node.input
            }
            LogicalPlan::Projection(node) => {
                shown.extend(node.expr.iter().map(|e| {
                    let column = match e {
                        Expr::Column(column) => Some(column.clone()),
                        _ => None,
                    };
                    (e.qualified_name().1, column)
                }));
                &node.input
            }
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Aggregate(node) => &node.input,
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Sort(node) => &node.input,
            LogicalPlan::Limit(node) => &node.input,
            _ => break,
        };
    }
    let all = moved.iter().map(|c| (&c.name, Some(c)));
    let all: Vec<_> = all.chain(shown.iter().map(|(name, c)| (name, c.as_ref()))).collect();
    Ok(moved.iter().any(|column| {
        all.iter().any(|(name, other)| **name == column.name && *other != Some(column))
    }))
}

/// Whether an aggregate has GROUPING SETS, ROLLUP or CUBE, which can return a row for an empty input.
pub(in crate::sql) fn has_grouping_sets(node: &Aggregate) -> bool {
    node.group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_)))
}

/// Whether all conditions on outer columns are equations with columns of the query.
fn are_equations(predicate: &Expr) -> bool {
    split_conjunction(predicate).into_iter().all(|e| match e {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let pair =
                |inner: &Expr, outer: &Expr| !inner.contains_outer() && is_outer_column(outer);
            !e.contains_outer() || pair(left, right) || pair(right, left)
        }
        e => !e.contains_outer(),
    })
}

fn is_outer_column(e: &Expr) -> bool {
    match e {
        Expr::OuterReferenceColumn(..) => true,
        Expr::Cast(cast) => is_outer_column(&cast.expr),
        _ => false,
    }
}

/// Whether the expressions of a node, or the subqueries in these expressions, use outer columns.
pub(super) fn names_outer(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|e| {
        found = found || e.contains_outer();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found || !nested_outer_columns(node)?.is_empty())
}

/// Whether any node of a plan uses outer columns.
pub(super) fn any_outer(plan: &LogicalPlan) -> Result<bool> {
    Ok(!outer_columns(plan)?.is_empty())
}

/// Returns the columns of outer queries that a plan uses, including columns that only its subqueries use.
pub(in crate::sql) fn outer_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    plan.apply(|node| {
        node.apply_expressions(|e| {
            e.apply(|e| {
                if let Expr::OuterReferenceColumn(_, column) = e {
                    found.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        found.extend(nested_outer_columns(node)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut seen = HashSet::new();
    found.retain(|column| seen.insert(column.clone()));
    Ok(found)
}

/// Returns the outer columns of the subqueries in a node's expressions, except columns of the node's inputs.
pub(super) fn nested_outer_columns(node: &LogicalPlan) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    if !has_query(node)? {
        return Ok(found);
    }
    let inputs = node.inputs();
    node.apply_expressions(|e| {
        e.apply(|e| {
            if let Some(query) = query_of(e) {
                let named = outer_columns(&query.subquery)?.into_iter();
                found.extend(named.filter(|column| {
                    let of = |input: &&LogicalPlan| input.schema().has_column(column);
                    !inputs.iter().any(of)
                }));
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}
