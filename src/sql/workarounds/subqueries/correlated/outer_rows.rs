//! Joins the rows of a filter or projection with the values of the correlated subqueries in its
//! expressions.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Case, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, Subquery, lit,
};

use crate::sql::base::outer_columns::hides_outer;
use crate::sql::base::subquery_parts::{find_compared_value, find_query, is_subquery_test};
use crate::sql::workarounds::subqueries::case_guards::{CaseBranch, guard_branch};
use crate::sql::workarounds::subqueries::correlated::expand::{join_matches, join_values};
use crate::sql::workarounds::subqueries::correlated::new_names::{NewNames, keep_name};
use crate::sql::workarounds::subqueries::correlated::{
    is_equation, is_semi_join, repeats_bare_name,
};
use crate::sql::workarounds::subqueries::shared_rows::share_rows;
use crate::sql::workarounds::subqueries::subquery_conditions::{as_tests, as_value, is_correlated};

pub(super) fn rewrite_filter(
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
            // Uses the rewritten condition only if DataFusion can plan the subqueries that are left
            // in it.
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

/// Computes conditions such as `(SELECT ..) IN (SELECT ..)`, `(SELECT ..) > ALL (SELECT ..)` and
/// `EXISTS (SELECT ..) IN (SELECT ..)` as new columns of the input, and replaces these conditions
/// with the new columns. DataFusion would turn such a condition into a join condition, which cannot
/// contain a correlated subquery, nor an IN or EXISTS.
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
    let is_computed = |e: &Expr| match e {
        Expr::ScalarSubquery(query) => is_correlated(query),
        e => is_subquery_test(e),
    };
    condition.exists(|e| match find_compared_value(e) {
        Some(value) => value.exists(|e| Ok(is_computed(e))),
        None => Ok(false),
    })
}

/// Whether a condition contains a correlated subquery that DataFusion cannot plan unchanged: IN or
/// EXISTS that cannot become a semi join, or a scalar subquery for which [`needs_join`] is true.
/// `schema` has the columns of the rows for which the condition is evaluated.
fn needs_values(condition: &Expr, schema: &DFSchema) -> Result<bool> {
    condition.exists(|e| match find_query(e).filter(|query| is_correlated(query)) {
        None => Ok(false),
        Some(query) if matches!(e, Expr::ScalarSubquery(_)) => needs_join(query, schema),
        Some(query) => Ok(!is_semi_join(&query.subquery, matches!(e, Expr::Exists(_)))?
            || hides_outer(e, &query.subquery)?),
    })
}

/// Rewrites a projection so that DataFusion can plan the subqueries in its expressions.
pub(super) fn project_values(
    mut exprs: Vec<Expr>,
    input: Arc<LogicalPlan>,
    names: &mut NewNames,
) -> Result<LogicalPlan> {
    let input = project_compared_tests(input, &mut exprs, names)?;
    let schema = Arc::clone(input.schema());
    let exprs = exprs.into_iter().map(|e| keep_name(e, |e| as_value(e, &schema)));
    let mut exprs = exprs.collect::<Result<Vec<_>>>()?;
    let mut rows = OuterRows::new(input);
    rows.join_queries(&mut exprs, names)?;
    Projection::try_new(exprs, rows.joined).map(LogicalPlan::Projection)
}

/// Computes each value before IN, ANY or ALL that contains another IN, EXISTS, ANY or ALL, as
/// `a IN (SELECT ..)` in `(a IN (SELECT ..)) IN (SELECT ..)`, as a new column of the input, and
/// replaces the value with this column. Otherwise the rewrite of the outer test would copy the
/// inner test into its subquery, where no rule rewrites it.
fn project_compared_tests(
    input: Arc<LogicalPlan>,
    exprs: &mut [Expr],
    names: &mut NewNames,
) -> Result<Arc<LogicalPlan>> {
    let mut columns = list_column_exprs(&input);
    let known = columns.len();
    let mut move_below = |value: &mut Expr| {
        let name = names.next("value");
        let column = Expr::Column(Column::new_unqualified(name.clone()));
        columns.push(std::mem::replace(value, column).alias(name));
    };
    let has_test = |value: &Expr| value.exists(|e| Ok(is_subquery_test(e)));
    for expr in exprs {
        let taken = std::mem::take(expr);
        *expr = keep_name(taken, |e| {
            let done = e.transform_down(|e| match e {
                Expr::InSubquery(mut test) if has_test(&test.expr)? => {
                    move_below(&mut test.expr);
                    Ok(Transformed::yes(Expr::InSubquery(test)))
                }
                Expr::SetComparison(mut test) if has_test(&test.expr)? => {
                    move_below(&mut test.expr);
                    Ok(Transformed::yes(Expr::SetComparison(test)))
                }
                e => Ok(Transformed::no(e)),
            })?;
            Ok(done.data)
        })?;
    }
    match columns.len() > known {
        true => Ok(Arc::new(project_values(columns, input, names)?)),
        false => Ok(input),
    }
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

    /// Turns correlated scalar subqueries in expressions into joined columns. Returns whether there
    /// were any.
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

    /// Turns correlated scalar subqueries into joined columns, whose values are needed only for
    /// rows for which `guard` is true. A subquery within CASE is computed only for the rows for
    /// which CASE evaluates it, because it may fail for other rows.
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
        let guard_of = |branch: CaseBranch| guard_branch(&case, branch, guard, &schema);
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
            let when = join(self, when, guard_of(CaseBranch::When(at))?)?;
            branches.push((when, join(self, then, guard_of(CaseBranch::Then(at))?)?));
        }
        let otherwise = match &case.else_expr {
            Some(e) => Some(join(self, e, guard_of(CaseBranch::When(branches.len()))?)?),
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

    /// Rewrites the correlated IN and EXISTS in a condition of WHERE. A conjunct that is IN or
    /// EXISTS becomes a semi or anti join of `self.joined` where possible. Any other IN or EXISTS
    /// becomes a scalar subquery. Returns the conjuncts that have not become joins.
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

pub(super) fn list_column_exprs(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}
