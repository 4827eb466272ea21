//! [`QueryValues`]: queries as values in any expression.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, Subquery,
};
use datafusion::optimizer::AnalyzerRule;

use crate::sql::mends::correlated::{Names, is_equation, join_values, keep_name};
use crate::sql::mends::subqueries::{as_value, has_query, query_of};

/// Analyzer rule, after type coercion: plans `x IN (query)` and `EXISTS (query)` as values, and
/// correlated scalar subqueries with any condition.
///
/// DataFusion 55 plans IN and EXISTS only as conditions of WHERE, and correlated scalar subqueries
/// only if their condition is an equality of an inner and an outer column. This rule rewrites the
/// other cases:
///
/// * IN and EXISTS outside WHERE become scalar subqueries that count rows; IN is NULL where SQL
///   requires it;
/// * subqueries in a join condition are evaluated for the rows of the side whose columns they use;
/// * subqueries in ORDER BY, GROUP BY, aggregates and window functions, and lambdas in window
///   functions, are evaluated in a projection below;
/// * a correlated scalar subquery with another condition is evaluated once per distinct combination
///   of the outer columns that it uses, and joined to the outer rows ([`join_values`]).
///
/// `stock_queries_are_no_values` in `tests/sql/query_values.rs` fails once this rule can be
/// removed.
#[derive(Debug, Default)]
pub(in crate::sql) struct QueryValues;

impl AnalyzerRule for QueryValues {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            found = found || is_done_here(node)?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !found {
            return Ok(plan);
        }
        let mut names = Names::default();
        // Inner queries come first, because outer ones contain copies of them.
        Ok(plan.transform_up_with_subqueries(|node| of_node(node, &mut names))?.data)
    }

    fn name(&self) -> &str {
        "serrate_query_values"
    }
}

/// Whether a node contains queries, or lambdas in the keys of a window.
///
/// DataFusion's indices of lambda parameters follow those of a node's columns, so that a key of a
/// window differs from the key of the sort below it, and the plan fails its check.
fn is_done_here(node: &LogicalPlan) -> Result<bool> {
    if has_query(node)? {
        return Ok(true);
    }
    let LogicalPlan::Window(window) = node else { return Ok(false) };
    let mut found = false;
    for e in &window.window_expr {
        found = found || e.exists(|e| Ok(matches!(e, Expr::HigherOrderFunction(_))))?;
    }
    Ok(found)
}

fn of_node(node: LogicalPlan, names: &mut Names) -> Result<Transformed<LogicalPlan>> {
    if !is_done_here(&node)? {
        return Ok(Transformed::no(node));
    }
    match node {
        LogicalPlan::Filter(filter) => of_filter(filter, names),
        LogicalPlan::Projection(projection) => {
            let Projection { expr, input, .. } = projection;
            project_values(expr, input, names).map(Transformed::yes)
        }
        node @ (LogicalPlan::Aggregate(_) | LogicalPlan::Sort(_) | LogicalPlan::Window(_)) => {
            hoist_queries(node, names)
        }
        LogicalPlan::Join(join) => of_join(join, names),
        node => Ok(Transformed::no(node)),
    }
}

fn of_filter(filter: Filter, names: &mut Names) -> Result<Transformed<LogicalPlan>> {
    let Filter { mut predicate, mut input, .. } = filter;
    let columns = input.schema().columns();
    let joined = with_joined(std::slice::from_mut(&mut predicate), &mut input, names)?;
    let filtered = LogicalPlan::Filter(Filter::try_new(predicate, input)?);
    if !joined {
        return Ok(Transformed::no(filtered));
    }
    let columns: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
    LogicalPlanBuilder::from(filtered).project(columns)?.build().map(Transformed::yes)
}

/// A join whose condition has the values of its queries as columns, or those queries in a filter above it.
///
/// DataFusion plans those alone that its rules move below the join.
fn of_join(join: Join, names: &mut Names) -> Result<Transformed<LogicalPlan>> {
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let sides = [&join.left, &join.right];
    let mut below =
        sides.map(|side| side.schema().columns().into_iter().map(Expr::Column).collect::<Vec<_>>());
    let (mut above, mut within) = (Vec::new(), Vec::new());
    let conditions = join.filter.clone().map(split_conjunction_owned).unwrap_or_default();
    for condition in conditions {
        let named = match condition.exists(|e| Ok(query_of(e).is_some()))? {
            true if !condition.contains_outer() => named_columns(&condition)?,
            _ => {
                within.push(condition);
                continue;
            }
        };
        let is_of = |side: &&Arc<LogicalPlan>| {
            named.iter().all(|column| side.schema().maybe_index_of_column(column).is_some())
        };
        match sides.iter().position(is_of) {
            _ if join.join_type == JoinType::Inner => above.push(condition),
            Some(side) => {
                let name = names.next("value");
                within.push(Expr::Column(Column::new_unqualified(name.clone())));
                below[side].push(condition.alias(name));
            }
            None => within.push(condition),
        }
    }
    let [left_below, right_below] = below;
    let with_values = |side: Arc<LogicalPlan>, exprs: Vec<Expr>, names: &mut Names| match exprs
        .len()
        == side.schema().fields().len()
    {
        true => Ok(side),
        false => project_values(exprs, side, names).map(Arc::new),
    };
    let Join { left, right, on, join_type, join_constraint, null_equality, null_aware, .. } = join;
    let left = with_values(left, left_below, names)?;
    let right = with_values(right, right_below, names)?;
    let filter = conjunction(within);
    let joined = Join::try_new(
        left,
        right,
        on,
        filter,
        join_type,
        join_constraint,
        null_equality,
        null_aware,
    )?;
    let mut plan = LogicalPlan::Join(joined);
    if let Some(predicate) = conjunction(above) {
        plan = of_filter(Filter::try_new(predicate, Arc::new(plan))?, names)?.data;
    }
    if plan.schema().fields().len() > columns.len() {
        plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
    }
    Ok(Transformed::yes(plan))
}

/// The columns that an expression and the queries in it name.
fn named_columns(e: &Expr) -> Result<Vec<Column>> {
    let mut found: Vec<Column> = e.column_refs().into_iter().cloned().collect();
    e.apply(|e| {
        let outer = query_of(e).map_or(&[][..], |query| &query.outer_ref_columns);
        found.extend(outer.iter().filter_map(|e| match e {
            Expr::OuterReferenceColumn(_, column) => Some(column.clone()),
            _ => None,
        }));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Rewrites a projection so that DataFusion can plan its queries as values.
fn project_values(
    exprs: Vec<Expr>,
    mut input: Arc<LogicalPlan>,
    names: &mut Names,
) -> Result<LogicalPlan> {
    let schema = Arc::clone(input.schema());
    let exprs = exprs.into_iter().map(|e| keep_name(e, |e| as_value(e, &schema)));
    let mut exprs = exprs.collect::<Result<Vec<_>>>()?;
    with_joined(&mut exprs, &mut input, names)?;
    Projection::try_new(exprs, input).map(LogicalPlan::Projection)
}

/// Joins the values of correlated queries in expressions to their input. Returns whether there were
/// any.
fn with_joined(
    exprs: &mut [Expr],
    input: &mut Arc<LogicalPlan>,
    names: &mut Names,
) -> Result<bool> {
    let mut found = false;
    for expr in exprs {
        let taken = std::mem::take(expr);
        *expr = keep_name(taken, |e| {
            let done = e.transform_up(|e| {
                let Expr::ScalarSubquery(query) = &e else { return Ok(Transformed::no(e)) };
                if query.outer_ref_columns.is_empty() || is_equation(&query.subquery)? {
                    return Ok(Transformed::no(e));
                }
                let Some((joined, value)) = join_values(input, &query.subquery, names)? else {
                    return Ok(Transformed::no(e));
                };
                (*input, found) = (Arc::new(joined), true);
                Ok(Transformed::yes(value))
            })?;
            Ok(done.data)
        })?;
    }
    Ok(found)
}

/// Computes the queries of a node in a projection below it.
fn hoist_queries(node: LogicalPlan, names: &mut Names) -> Result<Transformed<LogicalPlan>> {
    let with_lambdas = matches!(node, LogicalPlan::Window(_));
    let inputs = node.inputs();
    let [input] = inputs[..] else { return Ok(Transformed::no(node)) };
    let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let input = Arc::new(input.clone());
    let mut below = columns.clone();
    let exprs = node.expressions().into_iter().map(|e| {
        keep_name(e, |e| {
            let done = e.transform_down(|e| match &e {
                // A scalar subquery without outer columns is computed only once anyway.
                Expr::ScalarSubquery(Subquery { outer_ref_columns, .. })
                    if outer_ref_columns.is_empty() =>
                {
                    Ok(Transformed::no(e))
                }
                Expr::HigherOrderFunction(_) if !with_lambdas => Ok(Transformed::no(e)),
                Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::HigherOrderFunction(_) => {
                    let name = names.next("value");
                    below.push(e.alias(name.clone()));
                    let column = Expr::Column(Column::new_unqualified(name));
                    Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
                }
                _ => Ok(Transformed::no(e)),
            })?;
            Ok(done.data)
        })
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    if below.len() == columns.len() {
        return Ok(Transformed::no(node));
    }
    let passes_columns = !matches!(node, LogicalPlan::Aggregate(_));
    let output: Vec<Expr> = node.schema().columns().into_iter().map(Expr::Column).collect();
    let below = project_values(below, input, names)?;
    let above = node.with_new_exprs(exprs, vec![below])?;
    match passes_columns {
        true => LogicalPlanBuilder::from(above).project(output)?.build().map(Transformed::yes),
        false => Ok(Transformed::yes(above)),
    }
}
