//! Plans IN, EXISTS and scalar subqueries as values, as in `SELECT k IN (SELECT ..)`, and not only
//! as conditions of WHERE.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, not_impl_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Distinct, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, Subquery,
};

use super::hoisted_queries::{
    adds_computed_span, find_named_columns, hoist_below_select, hoist_distinct, hoist_queries,
    lacks_known_order,
};
use super::outer_rows::{list_column_exprs, project_values, rewrite_filter};
use crate::sql::base::expression_parts::for_each_part;
use crate::sql::base::outer_columns::{find_outer_columns, has_grouping_sets, has_outer};
use crate::sql::base::plan_nodes::has_node;
use crate::sql::base::subquery_parts::{find_query, has_query};
use crate::sql::workarounds::subqueries::correlated::new_names::NewNames;
use crate::sql::workarounds::subqueries::correlated::{
    find_clashing_column, find_lateral_query, gains_columns, join_lateral, to_plain_join,
};
use crate::sql::workarounds::subqueries::shared_rows::is_volatile;
use crate::sql::workarounds::subqueries::subquery_conditions::{
    has_optional_outer, is_correlated, reject_subquery, test_outer_values,
};

/// `SELECT k IN (SELECT 1) FROM t` fails without this rule.
///
/// Analyzer rule, after type coercion: plans IN, EXISTS and correlated scalar subqueries as values.
///
/// DataFusion 55 plans IN and EXISTS only as conditions of WHERE, and correlated scalar subqueries
/// only if their condition equates an inner and an outer column. This rule rewrites the other
/// cases:
///
/// * IN and EXISTS outside WHERE, and IN and EXISTS in WHERE that cannot become semi joins
///   ([`is_semi_join`](super::is_semi_join)), become scalar subqueries that count rows. IN is NULL
///   where SQL requires it.
/// * IN, ANY and ALL in WHERE become EXISTS if the tested value, as `a.i` in `a.i IN (SELECT ..)`,
///   has columns of an outer query ([`test_outer_values`]).
/// * Subqueries in a join condition are evaluated for the rows of the join input whose columns they
///   use.
/// * Subqueries in ORDER BY, GROUP BY, aggregates and window functions are evaluated in a
///   projection below the node. So are lambdas in window functions, and sort keys whose order
///   DataFusion does not recognize ([`lacks_known_order`]).
/// * A correlated scalar subquery whose condition does not equate an inner and an outer column is
///   evaluated once per distinct combination of its outer columns, and joined
///   ([`join_values`](super::expand::join_values)).
/// * A LEFT JOIN LATERAL that DataFusion plans gets a projection that keeps its columns.
///
/// This workaround is obsolete once the test `stock_queries_are_no_values` fails.
pub(in crate::sql) fn plan_query_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, may_rewrite_node)? {
        return Ok(plan);
    }
    check_nesting(&plan, 0)?;
    let plan = test_outer_values(plan)?;
    let mut names = NewNames::default();
    // Rewrites inner subqueries first, because the rewrite of an outer subquery may copy them.
    let plan = plan.transform_up_with_subqueries(|node| {
        let node = node.map_expressions(|e| {
            e.transform_up(|e| {
                forget_inner_columns(e)?.transform_data(|e| draw_apart(e, &mut names))
            })
        })?;
        let done = node.transform_data(|node| rewrite_node(node, &mut names))?;
        if done.transformed {
            check_size(&done.data)?;
        }
        Ok(done)
    });
    let plan = plan?.data;
    refuse_outer_lists(&plan)?;
    refuse_outer_recursions(&plan)?;
    refuse_outer_sets(&plan)?;
    refuse_name_clashes(&plan)?;
    Ok(plan)
}

/// Whether [`plan_query_values`] may rewrite a node. It rewrites subqueries, lateral joins, lambdas
/// in window expressions, and sort keys whose order DataFusion does not recognize.
///
/// DataFusion numbers lambda parameters after the columns of a node. The key of a window with a
/// lambda would therefore differ from the key of the sort below the window, and the plan would fail
/// DataFusion's check.
fn may_rewrite_node(node: &LogicalPlan) -> Result<bool> {
    if has_query(node) {
        return Ok(true);
    }
    match node {
        LogicalPlan::Sort(sort) => {
            Ok(sort.expr.iter().any(|by| lacks_known_order(&by.expr, sort.input.schema())))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let mut found = false;
            for e in &aggregate.aggr_expr {
                found = found
                    || e.exists(|e| {
                        let Expr::AggregateFunction(call) = e else { return Ok(false) };
                        let schema = aggregate.input.schema();
                        let keys = &call.params.order_by;
                        Ok(keys.iter().any(|by| adds_computed_span(&by.expr, schema)))
                    })?;
            }
            Ok(found)
        }
        LogicalPlan::Distinct(Distinct::On(on)) => {
            let mut keys = on.sort_expr.iter().flatten().map(|by| &by.expr).chain(&on.on_expr);
            Ok(keys.any(|key| adds_computed_span(key, on.input.schema())))
        }
        LogicalPlan::Join(join) => Ok(find_lateral_query(join)?.is_some()
            || to_plain_join(join)?.is_some()
            || gains_columns(join)?),
        LogicalPlan::Window(window) => {
            let mut found = false;
            for e in &window.window_expr {
                found = found
                    || e.exists(|e| {
                        Ok(match e {
                            Expr::HigherOrderFunction(_) => true,
                            Expr::WindowFunction(call) => list_window_keys(call)
                                .any(|key| lacks_known_order(key, window.input.schema())),
                            _ => false,
                        })
                    })?;
            }
            Ok(found)
        }
        _ => Ok(false),
    }
}

fn list_window_keys(call: &WindowFunction) -> impl Iterator<Item = &Expr> {
    let params = &call.params;
    params.order_by.iter().map(|by| &by.expr).chain(&params.partition_by)
}

fn rewrite_node(node: LogicalPlan, names: &mut NewNames) -> Result<Transformed<LogicalPlan>> {
    if !may_rewrite_node(&node)? {
        return Ok(Transformed::no(node));
    }
    let has_queries = has_query(&node);
    match node {
        LogicalPlan::Filter(filter) => rewrite_filter(filter, names),
        LogicalPlan::Projection(projection) => {
            let Projection { expr, input, .. } = projection;
            project_values(expr, input, names).map(Transformed::yes)
        }
        LogicalPlan::Sort(sort) => match hoist_below_select(&sort, names)? {
            Some(sorted) => Ok(Transformed::yes(sorted)),
            None => hoist_queries(LogicalPlan::Sort(sort), names),
        },
        node @ (LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) => hoist_queries(node, names),
        LogicalPlan::Distinct(Distinct::On(distinct)) => hoist_distinct(distinct, names),
        LogicalPlan::Join(join) if !has_queries && gains_columns(&join)? => {
            let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
            let joined = LogicalPlanBuilder::from(LogicalPlan::Join(join));
            joined.project(columns)?.build().map(Transformed::yes)
        }
        LogicalPlan::Join(join) => match join_lateral(&join, names)? {
            Some(joined) => Ok(Transformed::yes(joined)),
            None => {
                check_lateral(&join)?;
                match to_plain_join(&join)? {
                    Some(plain) => {
                        rewrite_join(plain, names).map(|done| Transformed::yes(done.data))
                    }
                    None => rewrite_join(join, names),
                }
            }
        },
        node => Ok(Transformed::no(node)),
    }
}

/// Maximum number of nodes of a plan with subqueries. The optimizer takes ten seconds for a plan of
/// this size.
const MOST_NODES: usize = 2_000;

/// Returns an error for a plan that is too large to optimize in reasonable time.
///
/// Each IN is replaced with up to three copies of its subquery, so the plan of nested INs grows
/// exponentially.
fn check_size(plan: &LogicalPlan) -> Result<()> {
    let mut nodes = 0usize;
    plan.apply_with_subqueries(|_| {
        nodes += 1;
        Ok(match nodes > MOST_NODES {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    match nodes > MOST_NODES {
        false => Ok(()),
        true => plan_err!(
            "the correlated subqueries of this statement expand to more than {MOST_NODES} plan nodes; replace IN with EXISTS, write one of the subqueries as a join, or store the rows of one in a table"
        ),
    }
}

/// Removes the list of outer columns from a scalar subquery that uses none.
///
/// The planner lists the columns that a LATERAL join or `unnest` within a subquery takes from the
/// tables before it as outer columns of the subquery, too. The rule would then join the subquery
/// with the outer rows by no column, which is an error.
fn forget_inner_columns(e: Expr) -> Result<Transformed<Expr>> {
    match e {
        Expr::ScalarSubquery(query)
            if !query.outer_ref_columns.is_empty() && !has_outer(&query.subquery)? =>
        {
            let query = Subquery { outer_ref_columns: Vec::new(), ..query };
            Ok(Transformed::yes(Expr::ScalarSubquery(query)))
        }
        e => Ok(Transformed::no(e)),
    }
}

/// Gives a scalar subquery with a volatile function an alias of its own, because DataFusion
/// computes equal subqueries once: the two values in `(SELECT random()) = (SELECT random())` would
/// be equal.
fn draw_apart(e: Expr, names: &mut NewNames) -> Result<Transformed<Expr>> {
    match e {
        Expr::ScalarSubquery(query) if !is_correlated(&query) && is_volatile(&query.subquery)? => {
            let plan = LogicalPlanBuilder::from(query.subquery.as_ref().clone());
            let subquery = Arc::new(plan.alias(names.next("drawn"))?.build()?);
            Ok(Transformed::yes(Expr::ScalarSubquery(Subquery { subquery, ..query })))
        }
        e => Ok(Transformed::no(e)),
    }
}

/// Maximum depth of subqueries in expressions of subqueries. DataFusion 55 checks an inner subquery
/// twice for each check of the subquery around it. At this depth, the checks take half a second.
const MOST_LEVELS: usize = 16;

/// Returns an error if subqueries in expressions are nested so deeply that planning would take too
/// long.
fn check_nesting(plan: &LogicalPlan, levels: usize) -> Result<()> {
    if levels > MOST_LEVELS {
        return plan_err!(
            "subqueries in expressions are nested more than {MOST_LEVELS} levels deep; write the inner ones as WITH queries"
        );
    }
    plan.apply(|node| {
        for_each_part(node, |e| {
            if let Some(query) = find_query(e) {
                check_nesting(&query.subquery, levels.saturating_add(1))?;
            }
            Ok(())
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Returns an error for `unnest` of a list of an outer query, which DataFusion cannot plan.
fn refuse_outer_lists(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| match node {
        LogicalPlan::Unnest(unnest) => match find_outer_columns(&unnest.input)?.first() {
            Some(column) => plan_err!(
                "unnest that depends on the column {column} of another table is not supported in this query; unnest in a subquery that reads one table, as in (SELECT id, unnest(x) FROM t), and join this subquery"
            ),
            None => Ok(TreeNodeRecursion::Continue),
        },
        _ => Ok(TreeNodeRecursion::Continue),
    })?;
    Ok(())
}

/// Returns an error for a recursive query that uses columns of an outer query, which DataFusion
/// cannot plan. A query that reads its result may use outer columns.
fn refuse_outer_recursions(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::RecursiveQuery(query) = node else {
            return Ok(TreeNodeRecursion::Continue);
        };
        match find_outer_columns(node)?.first() {
            Some(column) => plan_err!(
                "the recursive query {} of a subquery uses the column {column} of the query around it, which is not supported; compute the recursion for all rows at once in WITH RECURSIVE before the outer SELECT, with {column} as one of its columns, and join its result",
                query.name
            ),
            None => Ok(TreeNodeRecursion::Continue),
        }
    })?;
    Ok(())
}

/// Returns an error for GROUP BY with ROLLUP, CUBE or GROUPING SETS that has columns of an outer
/// query among its keys or in its aggregates, which DataFusion cannot plan.
fn refuse_outer_sets(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::Aggregate(sets) = node else { return Ok(TreeNodeRecursion::Continue) };
        if !has_grouping_sets(sets) {
            return Ok(TreeNodeRecursion::Continue);
        }
        for_each_part(node, |e| match e {
            Expr::OuterReferenceColumn(_, column) => plan_err!(
                "GROUP BY with ROLLUP, CUBE or GROUPING SETS in a subquery uses the column {column} of the query around it, which is not supported; join both tables in FROM, and add {column} to each of the GROUPING SETS"
            ),
            _ => Ok(()),
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Returns an error for a LATERAL join that DataFusion would plan with the wrong columns, if
/// [`plan_query_values`] has not rewritten the join because its query is volatile.
fn refuse_name_clashes(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::Join(join) = node else { return Ok(TreeNodeRecursion::Continue) };
        match find_clashing_column(join)? {
            Some(name) => not_impl_err!(
                "a LATERAL query with a volatile function such as random() uses the column {name}, but another column of the join is also named {name}, which is not supported; rename the column, as in FROM (SELECT {name} AS other_{name} FROM t) AS u"
            ),
            None => Ok(TreeNodeRecursion::Continue),
        }
    })?;
    Ok(())
}

/// Returns an error for LATERAL with GROUPING SETS, whose rows for empty input DataFusion would
/// omit, and for LATERAL with DISTINCT ON over outer columns, which DataFusion does not plan.
///
/// Also returns an error if DataFusion would move a condition on outer columns above a window
/// function, DISTINCT, or an outer join that fills the columns of the condition with NULL.
fn check_lateral(join: &Join) -> Result<()> {
    let Some(query) = find_lateral_query(join)? else { return Ok(()) };
    // If the join itself is part of a correlated query, the rewrite of that query decides.
    let is_inner = has_outer(&LogicalPlan::Join(join.clone()))?;
    let mut refused = None;
    query.apply(|node| {
        refused = match node {
            LogicalPlan::Aggregate(sets) if has_grouping_sets(sets) => Some("GROUPING SETS"),
            LogicalPlan::Distinct(Distinct::On(_)) if has_outer(node)? => Some("DISTINCT ON"),
            _ if is_inner => return Ok(TreeNodeRecursion::Continue),
            LogicalPlan::Distinct(_) if has_outer(node)? => Some("DISTINCT"),
            LogicalPlan::Window(_) if has_outer(node)? => Some("a window function"),
            node if has_optional_outer(node)? => Some("an outer join"),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    })?;
    match refused {
        Some(what) => reject_subquery(what),
        None => Ok(()),
    }
}

/// Moves subqueries out of join conditions, such as EXISTS in `a JOIN b ON a.i = b.i AND EXISTS
/// (SELECT 1 ..)`.
///
/// DataFusion plans a subquery in a join condition only if its rules move it below the join.
fn rewrite_join(join: Join, names: &mut NewNames) -> Result<Transformed<LogicalPlan>> {
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let JoinConditions { above, within, below: [left_below, right_below] } =
        divide_conditions(&join, names)?;
    let Join { left, right, on, join_type, join_constraint, null_equality, null_aware, .. } = join;
    let joined = Join::try_new(
        project_side(left, left_below, names)?,
        project_side(right, right_below, names)?,
        on,
        conjunction(within),
        join_type,
        join_constraint,
        null_equality,
        null_aware,
    )?;
    let mut plan = LogicalPlan::Join(joined);
    if let Some(predicate) = conjunction(above) {
        plan = rewrite_filter(Filter::try_new(predicate, Arc::new(plan))?, names)?.data;
    }
    if plan.schema().fields().len() > columns.len() {
        plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
    }
    Ok(Transformed::yes(plan))
}

/// The conditions of a join, by the node that evaluates them.
struct JoinConditions {
    /// Conditions with subqueries for a filter above an inner join.
    above: Vec<Expr>,
    /// Conditions for the join itself: those without subqueries, and those with columns of an outer
    /// query.
    within: Vec<Expr>,
    /// For each input, its columns, then the conditions with subqueries that are computed as
    /// further columns of this input.
    below: [Vec<Expr>; 2],
}

/// Divides the conditions of a join. A condition with subqueries moves above an inner join. Other
/// joins may also return rows for which the condition is false. For these joins, the condition
/// becomes a column of the input whose columns it uses.
fn divide_conditions(join: &Join, names: &mut NewNames) -> Result<JoinConditions> {
    let sides = [&join.left, &join.right];
    let mut divided = JoinConditions {
        above: Vec::new(),
        within: Vec::new(),
        below: sides.map(|side| list_column_exprs(side)),
    };
    for condition in join.filter.clone().map(split_conjunction_owned).unwrap_or_default() {
        let has_queries = condition.exists(|e| Ok(find_query(e).is_some()))?;
        if !has_queries || condition.contains_outer() {
            divided.within.push(condition);
            continue;
        }
        if join.join_type == JoinType::Inner {
            divided.above.push(condition);
            continue;
        }
        let named = find_named_columns(&condition)?;
        let has_all = |side: &&Arc<LogicalPlan>| {
            named.iter().all(|column| side.schema().maybe_index_of_column(column).is_some())
        };
        let Some(side) = sides.iter().position(has_all) else {
            return not_impl_err!(
                "a subquery in the ON clause of an outer join uses columns of both tables, which is not supported; compute the matching pairs of rows in a WITH query, and join its result"
            );
        };
        let name = names.next("value");
        divided.within.push(Expr::Column(Column::new_unqualified(name.clone())));
        divided.below[side].push(condition.alias(name));
    }
    Ok(divided)
}

/// Projects an input to `exprs`, which are its columns and further expressions. If there are no
/// further expressions, returns the input unchanged.
fn project_side(
    side: Arc<LogicalPlan>,
    exprs: Vec<Expr>,
    names: &mut NewNames,
) -> Result<Arc<LogicalPlan>> {
    match exprs.len() == side.schema().fields().len() {
        true => Ok(side),
        false => project_values(exprs, side, names).map(Arc::new),
    }
}
