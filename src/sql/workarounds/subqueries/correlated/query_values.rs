//! Plans IN, EXISTS and scalar subqueries as values.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, not_impl_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Exists, WindowFunction};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Case, Distinct, DistinctOn, Expr, ExprSchemable, Filter, Join, LogicalPlan, LogicalPlanBuilder,
    Projection, Sort, Subquery, lit,
};

use crate::sql::base::outer_columns::{find_outer_columns, has_grouping_sets, hides_outer};
use crate::sql::base::subquery_parts::{find_query, has_query};
use crate::sql::workarounds::sorting::sorts::has_comparison;
use crate::sql::workarounds::subqueries::correlated::expand::{join_matches, join_values};
use crate::sql::workarounds::subqueries::correlated::new_names::{NewNames, keep_name};
use crate::sql::workarounds::subqueries::correlated::{
    find_clashing_column, find_lateral_query, gains_columns, is_equation, is_semi_join,
    join_lateral, repeats_bare_name, to_plain_join,
};
use crate::sql::workarounds::subqueries::shared_rows::{is_volatile, share_rows};
use crate::sql::workarounds::subqueries::subquery_conditions::{
    as_tests, as_value, is_correlated, reject_subquery,
};

/// `SELECT k IN (SELECT 1) FROM t` fails without this rule.
///
/// Analyzer rule, after type coercion: plans IN, EXISTS and correlated scalar subqueries as values.
///
/// DataFusion 55 plans IN and EXISTS only as conditions of WHERE, and correlated scalar subqueries only if
/// their condition equates an inner and an outer column. This rule rewrites the other cases:
///
/// * IN and EXISTS outside WHERE, and IN and EXISTS in WHERE that cannot become semi joins
///   ([`is_semi_join`]), become scalar subqueries that count rows. IN is NULL where SQL requires it.
/// * Subqueries in a join condition are evaluated for the rows of the join input whose columns they
///   use.
/// * Subqueries in ORDER BY, GROUP BY, aggregates and window functions are evaluated in a projection below the
///   node. So are lambdas in window functions, and sort keys with constant lists of lists
///   ([`has_unordered_constant`]).
/// * A correlated scalar subquery whose condition does not equate an inner and an outer column is
///   evaluated once per distinct combination of its outer columns, and joined ([`join_values`]).
/// * A LEFT JOIN LATERAL that DataFusion plans gets a projection that keeps its columns.
///
/// Obsolete once the test `stock_queries_are_no_values` fails.
pub(in crate::sql) fn plan_query_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found = found || may_rewrite_node(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !found {
        return Ok(plan);
    }
    check_nesting(&plan, 0)?;
    let mut names = NewNames::default();
    // Rewrites inner subqueries first, because the rewrite of an outer subquery may copy them.
    let plan = plan.transform_up_with_subqueries(|node| {
        let node = node.map_expressions(|e| e.transform_up(|e| draw_apart(e, &mut names)))?;
        let done = node.transform_data(|node| rewrite_node(node, &mut names))?;
        if done.transformed {
            check_size(&done.data)?;
        }
        Ok(done)
    });
    let plan = plan?.data;
    refuse_outer_lists(&plan)?;
    refuse_name_clashes(&plan)?;
    Ok(plan)
}

/// Whether [`plan_query_values`] may rewrite a node. It rewrites subqueries, lateral joins, lambdas in window
/// expressions, and constant lists of lists in sort keys.
///
/// DataFusion numbers lambda parameters after the columns of a node. A window key with a lambda would
/// therefore differ from the key of the sort below it, and the plan would fail DataFusion's check.
fn may_rewrite_node(node: &LogicalPlan) -> Result<bool> {
    if has_query(node)? {
        return Ok(true);
    }
    match node {
        LogicalPlan::Sort(sort) => {
            Ok(sort.expr.iter().any(|by| has_unordered_constant(&by.expr, sort.input.schema())))
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
                            Expr::WindowFunction(call) => keys_of(call)
                                .any(|key| has_unordered_constant(key, window.input.schema())),
                            _ => false,
                        })
                    })?;
            }
            Ok(found)
        }
        _ => Ok(false),
    }
}

fn keys_of(call: &WindowFunction) -> impl Iterator<Item = &Expr> {
    let params = &call.params;
    params.order_by.iter().map(|by| &by.expr).chain(&params.partition_by)
}

/// Whether an expression contains a constant whose type has no scalar comparison, such as a list of lists.
///
/// DataFusion 55 derives a range of values from each constant of a sort key. If the type of the
/// constant has no such range, DataFusion drops the order of the key and refuses the plan in
/// `SanityCheckPlan`. Obsolete once the test `stock_sorts_by_constant_lists_still_fail` fails.
fn has_unordered_constant(e: &Expr, schema: &DFSchema) -> bool {
    e.exists(|e| {
        let constant = !e.any_column_refs()
            && e.get_type(schema).is_ok_and(|t| t.is_nested() && !has_comparison(&t));
        Ok(constant)
    })
    .unwrap_or(false)
}

fn rewrite_node(node: LogicalPlan, names: &mut NewNames) -> Result<Transformed<LogicalPlan>> {
    if !may_rewrite_node(&node)? {
        return Ok(Transformed::no(node));
    }
    let has_queries = has_query(&node)?;
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

/// Gives a scalar subquery with a volatile function an alias of its own, because DataFusion computes equal
/// subqueries once: the two values in `(SELECT random()) = (SELECT random())` would be equal.
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

/// Returns an error if subqueries in expressions are nested so deeply that planning would take too long.
fn check_nesting(plan: &LogicalPlan, levels: usize) -> Result<()> {
    if levels > MOST_LEVELS {
        return plan_err!(
            "subqueries in expressions are nested more than {MOST_LEVELS} levels deep; write the inner ones as WITH queries"
        );
    }
    plan.apply(|node| {
        node.apply_expressions(|e| {
            e.apply(|e| {
                if let Some(query) = find_query(e) {
                    check_nesting(&query.subquery, levels.saturating_add(1))?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
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

/// Returns an error for a LATERAL join that the rule does not rewrite and DataFusion would plan with the
/// wrong columns. The rule rewrites no volatile queries.
fn refuse_name_clashes(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::Join(join) = node else { return Ok(TreeNodeRecursion::Continue) };
        match find_clashing_column(join)? {
            Some(name) => not_impl_err!(
                "a LATERAL query with conditions on the tables before it has another column named {name}, which is not supported together with volatile functions such as random(); rename this column in a subquery, as in FROM (SELECT {name} AS other_{name} FROM t) AS u"
            ),
            None => Ok(TreeNodeRecursion::Continue),
        }
    })?;
    Ok(())
}

/// Returns an error for LATERAL with GROUPING SETS, whose rows for empty input DataFusion would omit.
fn check_lateral(join: &Join) -> Result<()> {
    let Some(query) = find_lateral_query(join)? else { return Ok(()) };
    match query.exists(|node| {
        Ok(matches!(node, LogicalPlan::Aggregate(sets) if has_grouping_sets(sets)))
    })? {
        true => reject_subquery("GROUPING SETS"),
        false => Ok(()),
    }
}

pub(in crate::sql) fn rewrite_filter(
    filter: Filter,
    names: &mut NewNames,
) -> Result<Transformed<LogicalPlan>> {
    let Filter { predicate, input, .. } = filter;
    let columns = input.schema().columns();
    let (input, conditions) = project_operands(input, split_conjunction_owned(predicate), names)?;
    let mut joined = input.schema().fields().len() > columns.len();
    let schema = Arc::clone(input.schema());
    let mut rows = OuterRows::new(input);
    let conditions = conditions.into_iter().map(|mut condition| {
        if needs_values(&condition, &schema)? {
            let mut with_value = rows.clone();
            let mut value = with_value.join_tests(condition.clone(), names)?;
            with_value.join_queries(std::slice::from_mut(&mut value), names)?;
            // Uses the rewritten condition only if it has no subquery left that DataFusion cannot
            // plan.
            if !needs_values(&value, &schema)? {
                (condition, rows, joined) = (value, with_value, true);
            }
        }
        joined |= rows.join_queries(std::slice::from_mut(&mut condition), names)?;
        Ok(condition)
    });
    let conditions = conditions.collect::<Result<Vec<_>>>()?;
    let predicate = conjunction(conditions).unwrap_or_else(|| lit(true));
    let filtered = LogicalPlan::Filter(Filter::try_new(predicate, rows.joined)?);
    if !joined {
        return Ok(Transformed::no(filtered));
    }
    let columns: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
    LogicalPlanBuilder::from(filtered).project(columns)?.build().map(Transformed::yes)
}

/// Computes conditions such as `(SELECT ..) IN (SELECT ..)` as new columns of the input, and
/// replaces these conditions with the new columns. DataFusion would turn such a condition into a
/// join condition, which cannot contain a correlated subquery.
fn project_operands(
    input: Arc<LogicalPlan>,
    mut conditions: Vec<Expr>,
    names: &mut NewNames,
) -> Result<(Arc<LogicalPlan>, Vec<Expr>)> {
    let mut columns = list_column_exprs(&input);
    let known = columns.len();
    for condition in &mut conditions {
        if has_query_as_operand(condition)? {
            let name = names.next("value");
            let value = Expr::Column(Column::new_unqualified(name.clone()));
            columns.push(std::mem::replace(condition, value).alias(name));
        }
    }
    match columns.len() > known {
        true => Ok((Arc::new(project_values(columns, input, names)?), conditions)),
        false => Ok((input, conditions)),
    }
}

fn has_query_as_operand(condition: &Expr) -> Result<bool> {
    let is_correlated_query =
        |e: &Expr| matches!(e, Expr::ScalarSubquery(query) if is_correlated(query));
    condition.exists(|e| match e {
        Expr::InSubquery(test) => test.expr.exists(|e| Ok(is_correlated_query(e))),
        _ => Ok(false),
    })
}

/// Whether a condition contains a correlated subquery that DataFusion cannot plan unchanged: IN or EXISTS
/// that cannot become a semi join, or a scalar subquery that [`needs_join`]. `schema` has the
/// columns of the rows for which the condition is evaluated.
fn needs_values(condition: &Expr, schema: &DFSchema) -> Result<bool> {
    let mut found = false;
    condition.apply(|e| {
        if let Some(query) = find_query(e).filter(|query| is_correlated(query)) {
            found = found
                || match e {
                    Expr::ScalarSubquery(_) => needs_join(query, schema)?,
                    _ => {
                        !is_semi_join(&query.subquery, matches!(e, Expr::Exists(_)))?
                            || hides_outer(e, &query.subquery)?
                    }
                };
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Moves subqueries out of the condition of a join, such as EXISTS in `a JOIN b ON a.i = b.i AND
/// EXISTS (SELECT 1 FROM c WHERE c.i = b.j)`.
///
/// DataFusion plans a subquery of a join condition only if its rules move the subquery below the
/// join.
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
    /// Conditions for the join itself: those without subqueries, and those with columns of an outer query.
    within: Vec<Expr>,
    /// For each input, its columns, then the conditions with subqueries that are computed as
    /// further columns of this input.
    below: [Vec<Expr>; 2],
}

/// Divides the conditions of a join. A condition with subqueries moves above an inner join. Other
/// joins may also return rows for which the condition is false. There, the condition becomes a
/// column of the input whose columns it uses.
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

/// Returns the columns that an expression uses, also in its subqueries.
fn find_named_columns(e: &Expr) -> Result<Vec<Column>> {
    let mut found: Vec<Column> = e.column_refs().into_iter().cloned().collect();
    e.apply(|e| {
        if let Some(query) = find_query(e) {
            found.extend(find_outer_columns(&query.subquery)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Rewrites a projection so that DataFusion can plan the subqueries in its expressions.
pub(in crate::sql) fn project_values(
    exprs: Vec<Expr>,
    input: Arc<LogicalPlan>,
    names: &mut NewNames,
) -> Result<LogicalPlan> {
    let schema = Arc::clone(input.schema());
    let exprs = exprs.into_iter().map(|e| keep_name(e, |e| as_value(e, &schema)));
    let mut exprs = exprs.collect::<Result<Vec<_>>>()?;
    let mut rows = OuterRows::new(input);
    rows.join_queries(&mut exprs, names)?;
    Projection::try_new(exprs, rows.joined).map(LogicalPlan::Projection)
}

/// The input of a node whose expressions contain correlated scalar subqueries.
#[derive(Clone)]
struct OuterRows {
    /// The input of the node. The subqueries are computed for its rows.
    input: Arc<LogicalPlan>,
    /// The input, joined with the values of the subqueries rewritten so far.
    joined: Arc<LogicalPlan>,
}

impl OuterRows {
    fn new(input: Arc<LogicalPlan>) -> Self {
        Self { joined: Arc::clone(&input), input }
    }

    /// Turns correlated scalar subqueries in expressions into joined columns. Returns whether there were any.
    fn join_queries(&mut self, exprs: &mut [Expr], names: &mut NewNames) -> Result<bool> {
        let mut found = false;
        for expr in exprs {
            let taken = std::mem::take(expr);
            *expr = keep_name(taken, |e| {
                let done = self.join_where(e, None, names)?;
                found |= done.transformed;
                Ok(done.data)
            })?;
        }
        Ok(found)
    }

    /// Turns correlated scalar subqueries into joined columns, whose values are needed only for rows for which
    /// `guard` is true. A subquery within CASE is computed only for the rows for which CASE evaluates it, because it
    /// may fail for other rows.
    fn join_where(
        &mut self,
        expr: Expr,
        guard: Option<&Expr>,
        names: &mut NewNames,
    ) -> Result<Transformed<Expr>> {
        expr.transform_down(|e| match e {
            Expr::ScalarSubquery(query) if needs_join(&query, self.input.schema())? => {
                Ok(match self.join_value(&query.subquery, guard, names)? {
                    Some((joined, value)) => {
                        self.joined = Arc::new(joined);
                        Transformed::yes(value)
                    }
                    None => Transformed::no(Expr::ScalarSubquery(query)),
                })
            }
            Expr::Case(case) if has_join(&case, self.input.schema())? => {
                let done = self.join_in_case(case, guard, names)?;
                Ok(Transformed::new(
                    Expr::Case(done.data),
                    done.transformed,
                    TreeNodeRecursion::Jump,
                ))
            }
            e => Ok(Transformed::no(e)),
        })
    }

    fn join_in_case(
        &mut self,
        case: Case,
        guard: Option<&Expr>,
        names: &mut NewNames,
    ) -> Result<Transformed<Case>> {
        let schema = Arc::clone(self.input.schema());
        let guard_of = |branch: Branch| guard_branch(&case, branch, guard, &schema);
        let mut changed = false;
        let mut join = |rows: &mut Self, e: &Expr, guard: Option<Expr>| {
            let done = rows.join_where(e.clone(), guard.as_ref(), names)?;
            changed |= done.transformed;
            Ok::<_, DataFusionError>(Box::new(done.data))
        };
        let expr = match &case.expr {
            Some(operand) => Some(join(self, operand, guard.cloned())?),
            None => None,
        };
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        for (at, (when, then)) in case.when_then_expr.iter().enumerate() {
            let when = join(self, when, guard_of(Branch::When(at))?)?;
            branches.push((when, join(self, then, guard_of(Branch::Then(at))?)?));
        }
        let otherwise = match &case.else_expr {
            Some(e) => Some(join(self, e, guard_of(Branch::When(branches.len()))?)?),
            None => None,
        };
        Ok(Transformed::new_transformed(Case::new(expr, branches, otherwise), changed))
    }

    fn join_value(
        &mut self,
        query: &LogicalPlan,
        guard: Option<&Expr>,
        names: &mut NewNames,
    ) -> Result<Option<(LogicalPlan, Expr)>> {
        self.join_shared_input(|input, joined| match guard {
            Some(guard) => {
                let guarded = Filter::try_new(guard.clone(), Arc::clone(input))?;
                let guarded = Arc::new(LogicalPlan::Filter(guarded));
                join_values(&guarded, joined, query, names)
            }
            None => join_values(input, joined, query, names),
        })
    }

    /// Removes correlated IN and EXISTS from a condition of WHERE, and returns the rest. If IN or
    /// EXISTS is a conjunct, it becomes a semi or anti join with `joined`, and otherwise a scalar
    /// subquery.
    fn join_tests(&mut self, condition: Expr, names: &mut NewNames) -> Result<Expr> {
        let condition = as_tests(condition, self.joined.schema())?;
        let mut rest = Vec::new();
        for test in split_conjunction_owned(condition) {
            if let Expr::Exists(Exists { subquery, negated }) = &test
                && is_correlated(subquery)
                && let Some(joined) = self.join_shared_input(|input, joined| {
                    join_matches(input, joined, &subquery.subquery, *negated, names)
                })?
            {
                self.joined = Arc::new(joined);
                continue;
            }
            rest.push(as_value(test, self.joined.schema())?);
        }
        Ok(conjunction(rest).unwrap_or_else(|| lit(true)))
    }

    /// Calls `join`, which joins one more subquery to `joined`. The resulting plan contains `input`
    /// once per subquery, so `share_rows` first makes all copies of `input` return the same rows.
    /// Returns `None` if that is not possible, or if `join` returns `None`.
    fn join_shared_input<T>(
        &mut self,
        join: impl FnOnce(&Arc<LogicalPlan>, &Arc<LogicalPlan>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if !Arc::ptr_eq(&self.input, &self.joined) {
            return join(&self.input, &self.joined);
        }
        let Some(same) = share_rows(&self.input)? else { return Ok(None) };
        let Some(done) = join(&same, &same)? else { return Ok(None) };
        (self.input, self.joined) = (Arc::clone(&same), same);
        Ok(Some(done))
    }
}

/// Whether a scalar subquery is correlated and DataFusion cannot join it with outer rows that have
/// the columns of `schema`.
fn needs_join(query: &Subquery, schema: &DFSchema) -> Result<bool> {
    let plan = &query.subquery;
    Ok(is_correlated(query) && (!is_equation(plan)? || repeats_bare_name(schema, plan)?))
}

fn has_join(case: &Case, schema: &DFSchema) -> Result<bool> {
    let parts = case.when_then_expr.iter().flat_map(|(when, then)| [when, then]);
    let mut found = false;
    for part in parts.chain(&case.expr).chain(&case.else_expr) {
        found = found
            || part.exists(|e| match e {
                Expr::ScalarSubquery(query) => needs_join(query, schema),
                _ => Ok(false),
            })?;
    }
    Ok(found)
}

/// An operand of CASE. `When(i)` is condition `i`, or ELSE if `i` is the number of conditions.
/// `Then(i)` is the value after THEN for condition `i`.
#[derive(Clone, Copy)]
enum Branch {
    When(usize),
    Then(usize),
}

/// Returns a condition that is true for all rows for which CASE evaluates `branch`, or `None` if
/// these may be all rows. The condition leaves out the first condition of CASE for which `is_guard`
/// is false, and all later conditions.
fn guard_branch(
    case: &Case,
    branch: Branch,
    guard: Option<&Expr>,
    schema: &DFSchema,
) -> Result<Option<Expr>> {
    let (before, has_own) = match branch {
        Branch::When(at) => (at, false),
        Branch::Then(at) => (at, true),
    };
    let boxed = |value: bool| Box::new(lit(value));
    let mut whens = Vec::new();
    let mut otherwise = true;
    let is_operand_known = case.expr.iter().all(|e| is_guard(e, schema).unwrap_or(false));
    let parts = case.when_then_expr.iter().take(before.saturating_add(usize::from(has_own)));
    for (at, (when, _)) in parts.enumerate() {
        if !is_operand_known || !is_guard(when, schema)? {
            break;
        }
        let is_own = at == before;
        whens.push((when.clone(), boxed(is_own)));
        otherwise = !is_own;
    }
    if whens.is_empty() {
        return Ok(guard.cloned());
    }
    let is_evaluated = Expr::Case(Case::new(case.expr.clone(), whens, Some(boxed(otherwise))));
    Ok(Some(match guard {
        Some(guard) => {
            let within = vec![(Box::new(guard.clone()), Box::new(is_evaluated))];
            Expr::Case(Case::new(None, within, Some(boxed(false))))
        }
        None => is_evaluated,
    }))
}

/// Whether a condition uses only columns of `schema`, no outer columns, no subqueries and no
/// volatile functions, so that each evaluation for a row has the same result.
fn is_guard(guard: &Expr, schema: &DFSchema) -> Result<bool> {
    let is_of_rows = !guard.contains_outer()
        && guard.column_refs().into_iter().all(|column| schema.has_column(column));
    Ok(is_of_rows && !guard.is_volatile() && !guard.exists(|e| Ok(find_query(e).is_some()))?)
}

/// The projection below a node in which expressions of the node are computed, each as a column with a new name.
struct ColumnsBelow<'a> {
    /// The columns that the node itself needs, and then the expressions that are moved below the
    /// node.
    exprs: Vec<Expr>,
    /// The number of columns that the node itself needs.
    given: usize,
    /// The expressions that `share_column` has moved below the node, with the names of their
    /// columns.
    shared: Vec<(Expr, String)>,
    names: &'a mut NewNames,
}

impl<'a> ColumnsBelow<'a> {
    fn new(given: Vec<Expr>, names: &'a mut NewNames) -> Self {
        Self { given: given.len(), exprs: given, shared: Vec::new(), names }
    }

    fn has_hoisted(&self) -> bool {
        self.exprs.len() > self.given
    }

    /// Adds a column with the values of `e`, even if another column has the same expression.
    /// Returns the new column.
    fn add_column(&mut self, e: Expr) -> Expr {
        let name = self.names.next("value");
        self.exprs.push(e.alias(name.clone()));
        Expr::Column(Column::new_unqualified(name))
    }

    /// Returns the column with the values of `e`, and adds it unless an equal expression already
    /// has one.
    ///
    /// Expressions that are equal in a node must stay equal: the sort keys of the calls of a window node, and the
    /// expressions of DISTINCT ON with which ORDER BY begins.
    fn share_column(&mut self, e: Expr) -> Expr {
        if let Some((_, name)) = self.shared.iter().find(|(other, _)| *other == e) {
            return Expr::Column(Column::new_unqualified(name.clone()));
        }
        let name = self.names.next("value");
        self.exprs.push(e.clone().alias(name.clone()));
        self.shared.push((e, name.clone()));
        Expr::Column(Column::new_unqualified(name))
    }

    /// Returns the column with the values of `e`. Equal expressions share a column, but each
    /// volatile expression gets a column of its own.
    fn hoist_expr(&mut self, e: Expr) -> Result<Expr> {
        Ok(match is_stable(&e)? {
            true => self.share_column(e),
            false => self.add_column(e),
        })
    }

    /// Returns the projection over the input of the node.
    fn build_projection(self, input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
        project_values(self.exprs, input, self.names)
    }
}

fn list_column_exprs(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// Moves subqueries of a node, such as that in `SELECT count(*) FROM t GROUP BY (SELECT max(u.b)
/// FROM u WHERE u.a < t.a)`, into a projection below the node. Also moves sort keys with constants
/// that have no order, such as lists of lists.
fn hoist_queries(node: LogicalPlan, names: &mut NewNames) -> Result<Transformed<LogicalPlan>> {
    let inputs = node.inputs();
    let [input] = inputs[..] else { return Ok(Transformed::no(node)) };
    let input = Arc::new(input.clone());
    let schema = Arc::clone(input.schema());
    let mut below = ColumnsBelow::new(list_column_exprs(&input), names);
    let is_sort = matches!(node, LogicalPlan::Sort(_));
    let is_window = matches!(node, LogicalPlan::Window(_));
    let exprs = node.expressions().into_iter().map(|e| {
        if is_sort && has_unordered_constant(&e, &schema) {
            return below.hoist_expr(e);
        }
        hoist_parts(e, is_window, &schema, &mut below)
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    if !below.has_hoisted() {
        return Ok(Transformed::no(node));
    }
    let above = node.with_new_exprs(exprs, vec![below.build_projection(input)?])?;
    if matches!(node, LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::yes(above));
    }
    // All nodes except aggregates also return the columns of their input, so this projection
    // removes the hoisted columns.
    let shown = list_column_exprs(&node);
    LogicalPlanBuilder::from(above).project(shown)?.build().map(Transformed::yes)
}

/// Replaces each subexpression that a node cannot compute with a column that is computed below the
/// node.
fn hoist_parts(
    e: Expr,
    is_window: bool,
    schema: &DFSchema,
    below: &mut ColumnsBelow<'_>,
) -> Result<Expr> {
    keep_name(e, |e| {
        let done = e.transform_down(|e| match e {
            Expr::WindowFunction(mut call) => {
                let is_changed = hoist_window_keys(&mut call, schema, below)?;
                let call = Expr::WindowFunction(call);
                Ok(Transformed::new(call, is_changed, TreeNodeRecursion::Continue))
            }
            e if needs_hoisting(&e, is_window) => {
                Ok(Transformed::new(below.hoist_expr(e)?, true, TreeNodeRecursion::Jump))
            }
            e => Ok(Transformed::no(e)),
        })?;
        Ok(done.data)
    })
}

/// Moves the keys of a window function that contain constants without an order, such as lists of
/// lists, into the projection `below`. Returns whether there are such keys.
fn hoist_window_keys(
    call: &mut WindowFunction,
    schema: &DFSchema,
    below: &mut ColumnsBelow<'_>,
) -> Result<bool> {
    let params = &mut call.params;
    let order = params.order_by.iter_mut().map(|by| &mut by.expr);
    let mut is_changed = false;
    for key in order.chain(&mut params.partition_by) {
        if has_unordered_constant(key, schema) {
            *key = below.hoist_expr(std::mem::take(key))?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// Whether the subexpression `e` must be computed in a projection below its node.
fn needs_hoisting(e: &Expr, is_window: bool) -> bool {
    match e {
        // An uncorrelated scalar subquery stays in its node: DataFusion computes it only once,
        // whichever node contains it.
        Expr::ScalarSubquery(query) => is_correlated(query),
        Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) => true,
        // A window key with a lambda would differ from the key of the sort below it (see `may_rewrite_node`).
        Expr::HigherOrderFunction(_) => is_window,
        _ => false,
    }
}

/// Whether an expression and its subqueries call no volatile function.
fn is_stable(e: &Expr) -> Result<bool> {
    let mut found = !e.is_volatile();
    e.apply(|e| {
        if let Some(query) = find_query(e) {
            found = found && !is_volatile(&query.subquery)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// If subqueries of ORDER BY use columns that SELECT does not return, moves the subqueries into the
/// projection of SELECT, as in `SELECT a FROM t ORDER BY (SELECT max(u.b) FROM u WHERE u.c > t.c)`.
fn hoist_below_select(sort: &Sort, names: &mut NewNames) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Projection(select) = sort.input.as_ref() else { return Ok(None) };
    let is_below_select = |e: &Expr| -> Result<bool> {
        if find_query(e).is_none() {
            return Ok(false);
        }
        let named = find_named_columns(e)?;
        let has_all = |schema: &DFSchema| named.iter().all(|column| schema.has_column(column));
        Ok(!has_all(&select.schema) && has_all(select.input.schema()))
    };
    let mut below = ColumnsBelow::new(select.expr.clone(), names);
    let by = sort.expr.iter().map(|by| {
        let expr = by.expr.clone().transform_down(|e| {
            Ok(match is_below_select(&e)? {
                true => Transformed::new(below.add_column(e), true, TreeNodeRecursion::Jump),
                false => Transformed::no(e),
            })
        })?;
        Ok(by.with_expr(expr.data))
    });
    let expr = by.collect::<Result<Vec<_>>>()?;
    if !below.has_hoisted() {
        return Ok(None);
    }
    let input = Arc::new(below.build_projection(Arc::clone(&select.input))?);
    let sorted = LogicalPlan::Sort(Sort { expr, input, fetch: sort.fetch });
    let sorted = hoist_queries(sorted, names)?.data;
    let shown = list_column_exprs(&sort.input);
    LogicalPlanBuilder::from(sorted).project(shown)?.build().map(Some)
}

/// Moves the subqueries of DISTINCT ON into a projection below it, as in
/// `SELECT DISTINCT ON (a IN (SELECT b FROM u)) a FROM t ORDER BY a IN (SELECT b FROM u)`.
fn hoist_distinct(node: DistinctOn, names: &mut NewNames) -> Result<Transformed<LogicalPlan>> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, .. } = node;
    let mut below = ColumnsBelow::new(list_column_exprs(&input), names);
    let mut hoist = |e: Expr| {
        keep_name(e, |e| {
            let done = e.transform_down(|e| {
                Ok(match find_query(&e).is_some() {
                    true => Transformed::new(below.share_column(e), true, TreeNodeRecursion::Jump),
                    false => Transformed::no(e),
                })
            })?;
            Ok(done.data)
        })
    };
    let on = on_expr.into_iter().map(|e| hoist(e).map(Expr::unalias));
    let on = on.collect::<Result<Vec<_>>>()?;
    let select = select_expr.into_iter().map(&mut hoist).collect::<Result<Vec<_>>>()?;
    let sort = sort_expr.map(|by| {
        by.into_iter()
            .map(|by| Ok(by.with_expr(hoist(by.expr.clone())?.unalias())))
            .collect::<Result<Vec<_>>>()
    });
    let sort = sort.transpose()?;
    let input = Arc::new(below.build_projection(input)?);
    let distinct = DistinctOn::try_new(on, select, sort, input)?;
    Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(distinct))))
}
