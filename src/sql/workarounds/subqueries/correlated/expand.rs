//! Joins the rows of the outer query with the rows of a correlated subquery.

use std::sync::Arc;

use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, LogicalPlanBuilder};

use crate::sql::base::marks::MATCHES;
use crate::sql::base::outer_columns::find_outer_columns;
use crate::sql::workarounds::subqueries::correlated::bound::BoundOuter;
use crate::sql::workarounds::subqueries::correlated::new_names::NewNames;
use crate::sql::workarounds::subqueries::only_row::keep_only_rows;
use crate::sql::workarounds::subqueries::shared_rows::is_volatile;

/// Joins `joined` with the value of a scalar subquery for each outer row. Returns the join and the
/// column of the value, or `None` if the query is not supported.
///
/// `joined` is `outer` or a join of `outer` with other subqueries. The query is computed for the
/// rows of `outer` instead of `joined`, so that the size of the plan is linear in the number of
/// subqueries.
pub(in crate::sql) fn join_values(
    outer: &Arc<LogicalPlan>,
    joined: &Arc<LogicalPlan>,
    query: &LogicalPlan,
    names: &mut NewNames,
) -> Result<Option<(LogicalPlan, Expr)>> {
    let Some(ExpandedQuery { rows: found, keys, named, outer: columns }) =
        expand_query(outer, query, names)?
    else {
        return Ok(None);
    };
    let value = match query.schema().columns().as_slice() {
        [only] => Expr::Column(only.clone()),
        _ => return Ok(None),
    };
    let (found, value) = match has_one_row_at_most(query)? {
        true => (found, value),
        false => keep_only_rows(found, &keys, value)?,
    };
    let result = names.next("query");
    let value_name = "__serrate_value";
    let shown = keys.iter().zip(&named).map(|(key, name)| Expr::Column(key.clone()).alias(name));
    let shown = shown.chain([value.alias(value_name)]);
    let found = LogicalPlanBuilder::from(found).project(shown)?.alias(result.as_str())?.build()?;
    let right: Vec<Column> = named.iter().map(|n| Column::new(Some(result.as_str()), n)).collect();
    let joined = LogicalPlanBuilder::from(joined.as_ref().clone())
        .join_detailed(found, JoinType::Left, (columns, right), None, NullEquality::NullEqualsNull)?
        .build()?;
    Ok(Some((joined, Expr::Column(Column::new(Some(result), value_name)))))
}

/// Keeps the rows of `joined` for which a correlated query returns at least one row or, if
/// `negated` is true, returns no row. `outer` and `joined` have the same meaning as for
/// [`join_values`]. Returns `None` if the query is not supported.
pub(in crate::sql) fn join_matches(
    outer: &Arc<LogicalPlan>,
    joined: &Arc<LogicalPlan>,
    query: &LogicalPlan,
    negated: bool,
    names: &mut NewNames,
) -> Result<Option<LogicalPlan>> {
    let Some(ExpandedQuery { rows, keys, named, outer: columns }) =
        expand_query(outer, query, names)?
    else {
        return Ok(None);
    };
    let result = names.next(MATCHES);
    let shown = keys.into_iter().zip(&named).map(|(key, name)| Expr::Column(key).alias(name));
    let found = LogicalPlanBuilder::from(rows).project(shown)?.alias(result.as_str())?.build()?;
    let right: Vec<Column> = named.iter().map(|n| Column::new(Some(result.as_str()), n)).collect();
    let kind = if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
    LogicalPlanBuilder::from(joined.as_ref().clone())
        .join_detailed(found, kind, (columns, right), None, NullEquality::NullEqualsNull)?
        .build()
        .map(Some)
}

pub(super) struct ExpandedQuery {
    /// The rows of the query, each with the values of the outer columns for which it was computed.
    pub(super) rows: LogicalPlan,
    /// The columns of `rows` that hold the values of the outer columns.
    pub(super) keys: Vec<Column>,
    pub(super) named: Vec<String>,
    /// The outer columns that the query uses, in the order of `keys`.
    pub(super) outer: Vec<Column>,
}

/// Computes a query for all distinct values that its outer columns have in `outer`. Returns `None`
/// if this is not supported. The returned plan may contain `outer` several times. The caller has
/// made all copies of `outer` return the same rows (`share_rows`).
pub(super) fn expand_query(
    outer: &Arc<LogicalPlan>,
    query: &LogicalPlan,
    names: &mut NewNames,
) -> Result<Option<ExpandedQuery>> {
    if is_volatile(query)? {
        return Ok(None);
    }
    let columns = find_outer_columns(query)?;
    if columns.iter().any(|c| outer.schema().maybe_index_of_column(c).is_none()) {
        return Ok(None);
    }
    let table = names.next("outer");
    let named: Vec<String> = (0..columns.len()).map(|at| format!("{table}_{at}")).collect();
    let keys = columns.iter().zip(&named).map(|(c, name)| Expr::Column(c.clone()).alias(name));
    let rows = LogicalPlanBuilder::from(outer.as_ref().clone())
        .project(keys)?
        .distinct()?
        .alias(table.as_str())?
        .build()?;
    let mut bound = BoundOuter {
        keys: named.iter().map(|n| Column::new(Some(table.as_str()), n)).collect(),
        outer: columns.clone(),
        rows,
        names,
    };
    let Some(rows) = bound.bind_outer(query)? else { return Ok(None) };
    let keys = bound.keys.clone();
    Ok(Some(ExpandedQuery { rows, keys, named, outer: columns }))
}

/// Whether a query has at most one row per outer row, whatever the data.
fn has_one_row_at_most(plan: &LogicalPlan) -> Result<bool> {
    Ok(match plan {
        LogicalPlan::Projection(node) => has_one_row_at_most(&node.input)?,
        LogicalPlan::SubqueryAlias(node) => has_one_row_at_most(&node.input)?,
        LogicalPlan::Filter(node) => has_one_row_at_most(&node.input)?,
        LogicalPlan::Sort(node) => {
            node.fetch.is_some_and(|n| n <= 1) || has_one_row_at_most(&node.input)?
        }
        LogicalPlan::Limit(node) => {
            matches!(node.get_fetch_type()?, FetchType::Literal(Some(0 | 1)))
                || has_one_row_at_most(&node.input)?
        }
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        _ => false,
    })
}
