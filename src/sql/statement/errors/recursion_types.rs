//! Refuses WITH RECURSIVE if a column has integers in the first part and fractions in the recursive
//! part, dates in the first part and timestamps in the recursive part, or times in one part and
//! numbers in the other.
//!
//! The first part gives the columns their types. DataFusion casts the values of the recursive part
//! to these types. A cast to an integer drops the fraction, so that
//! `SELECT 1 AS n UNION ALL SELECT n + 0.5 FROM q WHERE n < 3` would never end, and one to a date
//! drops the time of day. A cast of a number to a date takes the number for days since 1970.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, Query, SetExpr, SetOperator, VisitMut, VisitorMut,
};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::functions::explain_mixed_times;
use crate::sql::base::syntax::parse_query;
use crate::sql::statement::errors::clauses::reads_table;
use crate::sql::statement::planned_parts::{add_ctes, plan_alone};
use crate::sql::statement::scopes::CteScopes;

/// Plans both parts of each recursive query of a statement alone, and compares the types of their
/// columns. If a part cannot be planned, planning the whole statement reports the error.
pub(in crate::sql) async fn check_types<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> Result<()> {
    let mut any = AnyRecursive(false);
    let _ = statement.visit(&mut any);
    if !any.0 {
        return Ok(());
    }
    let mut recursions = RecursiveCtes { scopes: CteScopes::default(), found: Vec::new() };
    let _ = statement.visit(&mut recursions);
    for RecursiveCte { cte, first, next } in recursions.found {
        if let Some(first) = plan_alone(state, first).await
            && let Some(next) = plan_alone(state, next).await
        {
            compare_types(&cte, &first, &next)?;
        }
    }
    Ok(())
}

fn compare_types(cte: &Cte, first: &LogicalPlan, next: &LogicalPlan) -> Result<()> {
    let pairs = first.schema().fields().iter().zip(next.schema().fields());
    for (at, (given, found)) in pairs.enumerate() {
        let (given_type, found_type) = (given.data_type(), found.data_type());
        let column = cte.alias.columns.get(at).map_or(given.name(), |named| &named.name.value);
        if let Some(reason) = explain_mixed_times(given_type, found_type) {
            return plan_err!(
                "the column {column} of the recursive query {} has the type {given_type} in its first SELECT and {found_type} after UNION, but {reason}",
                cte.alias.name
            );
        }
        if given_type.is_integer() && has_fractions(found_type) && !is_whole(next, at) {
            return plan_err!(
                "the column {column} of the recursive query {} has the type {given_type} in its first SELECT, but {found_type} after UNION, so its values would lose their fractions; write a cast such as 1::DOUBLE in the first SELECT, or round(..) after UNION",
                cte.alias.name
            );
        }
        let is_date = matches!(given_type, DataType::Date32 | DataType::Date64);
        if is_date && matches!(found_type, DataType::Timestamp(..)) && !is_midnight(next, at) {
            return plan_err!(
                "the column {column} of the recursive query {} has the type {given_type} in its first SELECT, but {found_type} after UNION, so its values would lose their times of day; write a cast such as DATE '2020-01-31'::TIMESTAMP in the first SELECT, or x::DATE after UNION",
                cte.alias.name
            );
        }
    }
    Ok(())
}

fn has_fractions(t: &DataType) -> bool {
    match t {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale > 0,
        t => t.is_floating(),
    }
}

/// Whether the column of `plan` at index `at` is a call such as `floor(x)`, whose values have no
/// fractions.
fn is_whole(plan: &LogicalPlan, at: usize) -> bool {
    find_call(plan, at).is_some_and(|call| {
        call.args.len() == 1 && ["ceil", "floor", "round", "trunc"].contains(&call.name())
    })
}

/// Whether the column of `plan` at index `at` is a call such as `date_trunc('month', x)`, whose
/// values have no time of day.
fn is_midnight(plan: &LogicalPlan, at: usize) -> bool {
    find_call(plan, at).is_some_and(|call| {
        let part = call.args.first().and_then(|part| part.as_literal()?.try_as_str()?);
        let is_clock = |part: &str| {
            let part = part.to_ascii_lowercase();
            ["hour", "minute", "second"].iter().any(|unit| part.contains(unit))
        };
        call.name() == "date_trunc" && part.is_some_and(|part| !is_clock(part))
    })
}

/// Returns the function call that is the column of `plan` at index `at`, or `None` if the column is
/// another expression.
fn find_call(plan: &LogicalPlan, at: usize) -> Option<ScalarFunction> {
    let LogicalPlan::Projection(select) = plan else { return None };
    match select.expr.get(at)?.clone().unalias() {
        Expr::ScalarFunction(call) => Some(call),
        _ => None,
    }
}

/// Whether a statement has WITH RECURSIVE. If not, [`RecursiveCtes`], which copies queries, is skipped.
struct AnyRecursive(bool);

impl VisitorMut for AnyRecursive {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.0 |= query.with.as_ref().is_some_and(|with| with.recursive);
        ControlFlow::Continue(())
    }
}

/// A recursive query with its parts before and after UNION, each as a query that can be planned
/// alone.
struct RecursiveCte {
    cte: Cte,
    first: Query,
    next: Query,
}

struct RecursiveCtes {
    scopes: CteScopes<Cte>,
    found: Vec<RecursiveCte>,
}

impl RecursiveCtes {
    /// Adds a recursive query as two queries: its first part, and its recursive part, in which the
    /// name of the recursive query stands for the first part.
    fn add_recursion(&mut self, cte: &Cte, earlier: &[Cte]) {
        let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } =
            cte.query.body.as_ref()
        else {
            return;
        };
        if cte.query.with.is_some() || !reads_table(right, &cte.alias.name) {
            return;
        }
        let (Ok(mut first), Ok(mut next)) = (parse_query("SELECT 1"), parse_query("SELECT 1"))
        else {
            return;
        };
        first.body = left.clone();
        next.body = right.clone();
        let start = Cte { query: Box::new(first.clone()), ..cte.clone() };
        let visible: Vec<&Cte> = self.scopes.iter_visible().chain(earlier).collect();
        let first = add_ctes(first, visible.iter().copied(), true);
        let next = add_ctes(next, visible.into_iter().chain([&start]), true);
        self.found.push(RecursiveCte { cte: cte.clone(), first, next });
    }
}

impl VisitorMut for RecursiveCtes {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        let ctes: Vec<Cte> =
            query.with.iter().flat_map(|with| with.cte_tables.iter().cloned()).collect();
        if recursive {
            for (at, cte) in ctes.iter().enumerate() {
                self.add_recursion(cte, ctes.get(..at).unwrap_or_default());
            }
        }
        self.scopes.enter_scope(ctes, recursive);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_scope();
        ControlFlow::Continue(())
    }
}
