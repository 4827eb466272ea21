//! Finds the columns of outer queries in the plans of correlated subqueries.

use std::collections::HashSet;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, Expr, Join, LogicalPlan};

use crate::sql::base::expression_parts::for_each_part;
use crate::sql::base::marks::is_marked;
use crate::sql::base::subquery_parts::{find_compared_value, find_query, has_query};

/// Returns the inner columns of each condition in a correlated query that also uses an outer
/// column: `u.a` of `WHERE u.a = t.a`, if `t` is a table of the outer query. DataFusion adds these
/// columns to the output of the query, under their own names.
pub(in crate::sql) fn find_moved_columns(query: &LogicalPlan) -> Result<Vec<Column>> {
    let mut moved = Vec::new();
    query.apply(|node| {
        if let LogicalPlan::Filter(filter) = node {
            for condition in split_conjunction(&filter.predicate) {
                if condition.contains_outer() {
                    moved.extend(condition.column_refs().into_iter().cloned());
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(moved)
}

/// Whether DataFusion would confuse an inner column with an outer column when it plans the
/// correlated subquery of IN, ANY, ALL or EXISTS as a join.
///
/// The condition of the join names columns of both queries. DataFusion finds an unqualified column
/// of this condition by name alone, and replaces every column that has the table and name of a
/// moved column ([`find_moved_columns`]). In `SELECT count(*) FROM (SELECT x AS s, g FROM t) WHERE
/// s IN (SELECT u.s FROM u WHERE u.h = g)`, both queries have a column `s`. The test
/// `stock_correlated_columns_of_one_name_are_still_mixed_up` in `tests/sql/subqueries.rs` fails
/// once DataFusion no longer confuses the two.
pub(in crate::sql) fn hides_outer(test: &Expr, query: &LogicalPlan) -> Result<bool> {
    let mut outer = find_outer_columns(query)?;
    let mut inner = find_moved_columns(query)?;
    match find_compared_value(test) {
        // In the join, the column that is compared with `value` gets a name that no other column
        // has. It cannot be confused, so it is not added to `inner`.
        Some(value) => outer.extend(value.column_refs().into_iter().cloned()),
        None => inner.extend(query.schema().columns()),
    }
    Ok(outer.iter().any(|column| {
        let is_bare = column.relation.is_none();
        let same = |c: &Column| c.name == column.name && (is_bare || c.relation == column.relation);
        inner.iter().any(same)
    }))
}

/// Whether an aggregate has GROUPING SETS, ROLLUP or CUBE, which can return a row for an empty
/// input.
pub(in crate::sql) fn has_grouping_sets(node: &Aggregate) -> bool {
    node.group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_)))
}

pub(in crate::sql) fn has_outer(plan: &LogicalPlan) -> Result<bool> {
    Ok(!find_outer_columns(plan)?.is_empty())
}

/// Returns the columns of outer queries that a plan uses, including columns that only its
/// subqueries use.
pub(in crate::sql) fn find_outer_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    plan.apply(|node| {
        for_each_part(node, |e| {
            if let Expr::OuterReferenceColumn(_, column) = e {
                found.push(column.clone());
            }
            Ok(())
        })?;
        found.extend(find_nested_outer_columns(node)?);
        if let LogicalPlan::Join(join) = node
            && find_subquery_of_lateral(join).is_some()
        {
            // Columns of the left input are outer columns for the query in the right input, but not
            // for the join.
            let (left, right) = (find_outer_columns(&join.left)?, find_outer_columns(&join.right)?);
            let is_outer = |column: &Column| !join.left.schema().has_column(column);
            found.extend(left.into_iter().chain(right.into_iter().filter(is_outer)));
            return Ok(TreeNodeRecursion::Jump);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut seen = HashSet::new();
    found.retain(|column| seen.insert(column.clone()));
    Ok(found)
}

/// Returns the outer columns of the subqueries in a node's expressions, except columns of the
/// node's inputs.
pub(in crate::sql) fn find_nested_outer_columns(node: &LogicalPlan) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    if !has_query(node) {
        return Ok(found);
    }
    let inputs = node.inputs();
    for_each_part(node, |e| {
        if let Some(query) = find_query(e) {
            let named = find_outer_columns(&query.subquery)?.into_iter();
            found.extend(named.filter(|column| {
                let of = |input: &&LogicalPlan| input.schema().has_column(column);
                !inputs.iter().any(of)
            }));
        }
        Ok(())
    })?;
    Ok(found)
}

/// Whether a query reads no table, so that its rows depend on nothing but the outer row.
pub(in crate::sql) fn reads_no_table(query: &LogicalPlan) -> bool {
    let mut plan = query;
    loop {
        if has_query(plan) {
            return false;
        }
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Filter(node) => &node.input,
            LogicalPlan::Unnest(node) => &node.input,
            LogicalPlan::Subquery(node) => &node.subquery,
            LogicalPlan::EmptyRelation(node) => return node.produce_one_row,
            _ => return false,
        };
    }
}

pub(in crate::sql) fn find_subquery_of_lateral(join: &Join) -> Option<&LogicalPlan> {
    let right = match join.right.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
        right => right,
    };
    let query = match right {
        LogicalPlan::Subquery(query) => query.subquery.as_ref(),
        // `SessionContext::sql` plans `unnest(..)` in FROM like a table function, without a
        // `Subquery` node.
        query if reads_no_table(query) => query,
        query if is_marked(query) => query,
        _ => return None,
    };
    let joined = matches!(join.join_type, JoinType::Inner | JoinType::Left);
    (joined && join.on.is_empty()).then_some(query)
}
