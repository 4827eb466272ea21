//! Rewrites LATERAL joins, and `unnest` in FROM over the lists of another table.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_nested::expr_fn::array_length;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, SubqueryAlias, lit, when,
};

use super::bound::BoundOuter;
use super::checks::{VisibleColumn, find_clash, list_shown_columns, names_outer};
use crate::functions::make_elements_nullable;
use crate::sql::base::outer_columns::{
    find_nested_outer_columns, find_subquery_of_lateral, has_outer, reads_no_table,
};
use crate::sql::workarounds::subqueries::correlated::expand::{ExpandedQuery, expand_query};
use crate::sql::workarounds::subqueries::correlated::new_names::NewNames;
use crate::sql::workarounds::subqueries::shared_rows::share_rows;

/// Rewrites a LATERAL join to a join of the outer rows with the rows that the query has for each
/// distinct outer row. Returns `None` if a node of the query is not supported.
pub(in crate::sql) fn join_lateral(
    join: &Join,
    names: &mut NewNames,
) -> Result<Option<LogicalPlan>> {
    let Some(query) = find_lateral_query(join)? else { return Ok(None) };
    if let Some(joined) = expand_rows(join, query, names)? {
        return Ok(Some(joined));
    }
    join_lateral_rows(join, query, names)
}

/// Joins the left side of a LATERAL join with the rows that `query` returns for each distinct left
/// row. The columns of `query` correspond by position to the columns of the right side. Returns
/// `None` if the query is not supported.
pub(super) fn join_lateral_rows(
    join: &Join,
    query: &LogicalPlan,
    names: &mut NewNames,
) -> Result<Option<LogicalPlan>> {
    let Some(left) = share_rows(&join.left)? else { return Ok(None) };
    let Some(ExpandedQuery { rows, keys, named, outer }) = expand_query(&left, query, names)?
    else {
        return Ok(None);
    };
    let table = names.next("lateral");
    let pairs = query.schema().columns().into_iter().zip(join.right.schema().columns());
    let shown = pairs.map(|(from, to)| Expr::Column(from).alias_qualified(to.relation, to.name));
    let keyed = keys.into_iter().zip(&named);
    let keyed =
        keyed.map(|(key, name)| Expr::Column(key).alias_qualified(Some(table.as_str()), name));
    let rows = LogicalPlanBuilder::from(rows).project(shown.chain(keyed))?.build()?;
    let right: Vec<Column> = named.iter().map(|n| Column::new(Some(table.as_str()), n)).collect();
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    LogicalPlanBuilder::from(left.as_ref().clone())
        .join_detailed(
            rows,
            join.join_type,
            (outer, right),
            join.filter.clone(),
            NullEquality::NullEqualsNull,
        )?
        .project(columns)?
        .build()
        .map(Some)
}

/// Rewrites a LATERAL join whose query reads no table to expressions and `unnest` over the rows of
/// the left side. Returns `None` if the join or its query is not supported.
fn expand_rows(
    join: &Join,
    query: &LogicalPlan,
    names: &mut NewNames,
) -> Result<Option<LogicalPlan>> {
    let query = match join.join_type {
        JoinType::Inner if reads_no_table(query) => query.clone(),
        JoinType::Left if join.filter.as_ref().is_none_or(is_true) => {
            match keep_empty_lists(query, join.left.schema())? {
                Some(query) => query,
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    let table = names.next("outer");
    let outer = join.left.schema().columns();
    let named: Vec<String> = (0..outer.len()).map(|at| format!("{table}_{at}")).collect();
    let keys = outer.iter().zip(&named).map(|(c, name)| Expr::Column(c.clone()).alias(name));
    let rows = LogicalPlanBuilder::from(join.left.as_ref().clone())
        .project(keys)?
        .alias(table.as_str())?
        .build()?;
    let keys: Vec<Column> = named.iter().map(|n| Column::new(Some(table.as_str()), n)).collect();
    let mut bound = BoundOuter { keys: keys.clone(), outer: outer.clone(), rows, names };
    let Some(rows) = bound.bind_outer(&query)? else { return Ok(None) };
    let made = query.schema().columns().into_iter().zip(join.right.schema().columns());
    let shown = keys.into_iter().zip(outer).chain(made);
    let shown = shown.map(|(from, to)| Expr::Column(from).alias_qualified(to.relation, to.name));
    let rows = LogicalPlanBuilder::from(rows).project(shown)?;
    match (join.join_type, &join.filter) {
        (JoinType::Inner, Some(filter)) => rows.filter(filter.clone())?.build().map(Some),
        _ => rows.build().map(Some),
    }
}

fn is_true(e: &Expr) -> bool {
    matches!(e, Expr::Literal(ScalarValue::Boolean(Some(true)), _))
}

/// Changes the query of a LEFT JOIN so that `unnest` of an outer list returns a row of NULL for an
/// empty or NULL list. Returns `None` unless the query is such an `unnest`, below projections that
/// only select columns.
fn keep_empty_lists(query: &LogicalPlan, outer: &DFSchema) -> Result<Option<LogicalPlan>> {
    Ok(match query {
        // The columns of the row for an empty list must be NULL. A computed column need not be NULL
        // for NULL arguments, so only projections that select columns are supported.
        LogicalPlan::Projection(node)
            if node.expr.iter().all(|e| matches!(e.clone().unalias(), Expr::Column(_))) =>
        {
            let Some(input) = keep_empty_lists(&node.input, outer)? else { return Ok(None) };
            Some(LogicalPlanBuilder::from(input).project(node.expr.clone())?.build()?)
        }
        LogicalPlan::SubqueryAlias(node) => {
            let Some(input) = keep_empty_lists(&node.input, outer)? else { return Ok(None) };
            let alias = SubqueryAlias::try_new(Arc::new(input), node.alias.clone())?;
            Some(LogicalPlan::SubqueryAlias(alias))
        }
        LogicalPlan::Unnest(node) => {
            let LogicalPlan::Projection(lists) = node.input.as_ref() else { return Ok(None) };
            let (LogicalPlan::EmptyRelation(_), [list]) =
                (lists.input.as_ref(), lists.expr.as_slice())
            else {
                return Ok(None);
            };
            let (_, field) = list.to_field(lists.input.schema())?;
            let to = make_elements_nullable(field.data_type());
            let null = match &to {
                DataType::List(element) | DataType::LargeList(element) if !list.is_volatile() => {
                    let null = ScalarValue::try_new_null(element.data_type())?;
                    let one = ScalarValue::new_list_nullable(&[null], element.data_type());
                    Expr::Literal(ScalarValue::List(one), None)
                }
                _ => return Ok(None),
            };
            let null = null.cast_to(&to, outer)?;
            let (relation, name) = list.qualified_name();
            let list = list.clone().unalias();
            let has_elements = array_length(list.clone()).gt(lit(0u64));
            let list = list.cast_to(&to, lists.input.schema())?;
            let list = when(has_elements, list).otherwise(null)?.alias_qualified(relation, name);
            let input =
                LogicalPlanBuilder::from(lists.input.as_ref().clone()).project([list])?.build()?;
            let columns = node.exec_columns.clone();
            Some(
                LogicalPlanBuilder::from(input)
                    .unnest_columns_with_options(columns, node.options.clone())?
                    .build()?,
            )
        }
        _ => None,
    })
}

/// Returns the query of a LATERAL join, if DataFusion cannot plan the query or would plan it with
/// the wrong columns. DataFusion can plan the query only if all nodes above its conditions on outer
/// columns are filters and projections. Returns `None` for any other join.
pub(in crate::sql) fn find_lateral_query(join: &Join) -> Result<Option<&LogicalPlan>> {
    let Some(query) = find_subquery_of_lateral(join) else { return Ok(None) };
    if !has_outer(query)? {
        return Ok(None);
    }
    let is_planned = MovedColumns::from_query(query)?
        .is_some_and(|columns| columns.find_clash(join, query).is_none());
    Ok((!is_planned).then_some(query))
}

/// Whether DataFusion adds columns to a LEFT JOIN LATERAL when it plans the query. A window
/// function above the join is then an error, because the planned join has other columns than
/// before.
pub(in crate::sql) fn gains_columns(join: &Join) -> Result<bool> {
    if join.join_type != JoinType::Left {
        return Ok(false);
    }
    let Some(query) = find_subquery_of_lateral(join) else { return Ok(false) };
    Ok(has_outer(query)? && find_lateral_query(join)?.is_none())
}

/// Returns the name of a column of a LATERAL query that DataFusion would confuse with another
/// column, or `None` if there is no such column.
pub(in crate::sql) fn find_clashing_column(join: &Join) -> Result<Option<String>> {
    let Some(query) = find_subquery_of_lateral(join) else { return Ok(None) };
    if !has_outer(query)? {
        return Ok(None);
    }
    let columns = MovedColumns::from_query(query)?;
    Ok(columns.and_then(|columns| columns.find_clash(join, query)))
}

/// Columns of a LATERAL query whose conditions on outer columns DataFusion moves into the join.
#[derive(Default)]
struct MovedColumns {
    /// The columns in the conditions that DataFusion moves. It adds these columns to the output of
    /// the query.
    moved: Vec<Column>,
    /// The columns of the projections above the conditions that DataFusion moves.
    shown: Vec<VisibleColumn>,
}

impl MovedColumns {
    /// Finds the moved and the shown columns of a LATERAL query. Returns `None` if DataFusion
    /// cannot move the conditions on outer columns into the join, for example because they are
    /// below a table alias.
    fn from_query(query: &LogicalPlan) -> Result<Option<Self>> {
        let mut columns = Self::default();
        let mut plan = query;
        while has_outer(plan)? {
            plan = match plan {
                LogicalPlan::Projection(node) if !names_outer(plan)? => {
                    columns.shown.extend(list_shown_columns(node));
                    &node.input
                }
                LogicalPlan::Filter(node) if find_nested_outer_columns(plan)?.is_empty() => {
                    for condition in split_conjunction(&node.predicate) {
                        if condition.contains_outer() {
                            columns.moved.extend(condition.column_refs().into_iter().cloned());
                        }
                    }
                    &node.input
                }
                _ => return Ok(None),
            };
        }
        Ok(Some(columns))
    }

    /// Returns the name of a column that DataFusion would confuse with another, or `None`.
    ///
    /// In the conditions that it moves, DataFusion replaces the table name of the query's columns
    /// with the alias of the query. In ON, it also replaces the table name of a column of the left
    /// side if a column of the query has the same table and name, and so confuses the two columns.
    /// If the query has no alias, any column of the query with the table and name of a left column
    /// is an error. `stock_lateral_self_joins_still_lose_rows` in `tests/sql/lateral_queries.rs`
    /// fails once this is fixed upstream.
    fn find_clash(&self, join: &Join, query: &LogicalPlan) -> Option<String> {
        if let Some(column) = find_clash(&self.moved, &self.shown) {
            return Some(column.name.clone());
        }
        let left = join.left.schema();
        let has_alias = matches!(join.right.as_ref(), LogicalPlan::SubqueryAlias(_));
        let on = join.filter.as_ref().map(Expr::column_refs).unwrap_or_default();
        let mut own = query.schema().columns().into_iter().chain(self.moved.iter().cloned());
        let is_of_left = |column: &Column| {
            column.relation.is_some()
                && left.has_column(column)
                && (!has_alias || on.contains(column))
        };
        own.find(is_of_left).map(|column| column.name)
    }
}

/// Converts a LATERAL join to a plain join if the query uses no column of the tables before it.
/// Returns `None` for any other join.
///
/// DataFusion treats a query as correlated even if only LATERAL joins within the query are
/// correlated, and does not plan the query after these joins are rewritten.
pub(in crate::sql) fn to_plain_join(join: &Join) -> Result<Option<Join>> {
    let (alias, right) = match join.right.as_ref() {
        LogicalPlan::SubqueryAlias(node) => (Some(node.alias.clone()), node.input.as_ref()),
        right => (None, right),
    };
    let LogicalPlan::Subquery(query) = right else { return Ok(None) };
    if has_outer(&query.subquery)? {
        return Ok(None);
    }
    let query = Arc::clone(&query.subquery);
    let right = match alias {
        Some(alias) => Arc::new(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(query, alias)?)),
        None => query,
    };
    Ok(Some(Join { right, ..join.clone() }))
}
