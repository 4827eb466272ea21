//! Refuses WITH RECURSIVE if a column, or lists and structs in it, have integers in the first part
//! and fractions in the recursive part, dates or times of day in the first part and timestamps in
//! the recursive part, or times in one part and numbers in the other.
//!
//! The first part gives the columns their types. DataFusion casts the values of the recursive part
//! to these types. A cast to an integer drops the fraction, so that
//! `SELECT 1 AS n UNION ALL SELECT n + 0.5 FROM q WHERE n < 3` would never end. A cast of a
//! timestamp to a date drops the time of day, and a cast of a number to a date takes the number for
//! days since 1970.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, DFSchemaRef, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, Query, SetExpr, SetOperator, VisitMut, VisitorMut,
};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator};

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
            compare_types(state, &cte, &first, &next)?;
        }
    }
    Ok(())
}

fn compare_types(
    state: &SessionState,
    cte: &Cte,
    first: &LogicalPlan,
    next: &LogicalPlan,
) -> Result<()> {
    let (first_schema, next_schema) = (coerce_schema(state, first), coerce_schema(state, next));
    let pairs = first_schema.fields().iter().zip(next_schema.fields());
    for (at, (given, found)) in pairs.enumerate() {
        let (given_type, found_type) = (given.data_type(), found.data_type());
        let column = cte.alias.columns.get(at).map_or(given.name(), |named| &named.name.value);
        if let Some(reason) = explain_mixed_times(given_type, found_type) {
            return plan_err!(
                "the column {column} of the recursive query {} has the type {given_type} in its first SELECT and {found_type} after UNION, but {reason}",
                cte.alias.name
            );
        }
        if let Some(lost) = find_lost_part(given_type, found_type)
            && !is_whole(next, at, lost)
        {
            let explanation = match lost {
                LostPart::Fraction => {
                    "fractions; write a cast such as 1::DOUBLE in the first SELECT, or round(..) after UNION"
                }
                LostPart::TimeOfDay => {
                    "times of day; write a cast such as d::TIMESTAMP in the first SELECT, or d::DATE after UNION"
                }
                LostPart::Date => {
                    "dates; write a cast such as t::TIME after UNION, or return a timestamp in the first SELECT"
                }
            };
            return plan_err!(
                "the column {column} of the recursive query {} has the type {given_type} in its first SELECT, but {found_type} after UNION, so its values would lose their {explanation}",
                cte.alias.name
            );
        }
    }
    Ok(())
}

/// Returns the schema of a plan after type coercion, which makes a list of floats of
/// `array_append(integers, 0.5)`. Returns the schema of the plan itself if its analysis fails,
/// because planning the whole statement reports the error.
fn coerce_schema(state: &SessionState, plan: &LogicalPlan) -> DFSchemaRef {
    let options = state.config_options();
    match state.analyzer().execute_and_check(plan.clone(), options, |_, _| {}) {
        Ok(analyzed) => Arc::clone(analyzed.schema()),
        Err(_) => Arc::clone(plan.schema()),
    }
}

/// A part of a value that a cast drops.
#[derive(Clone, Copy)]
enum LostPart {
    Fraction,
    TimeOfDay,
    Date,
}

/// Returns what a cast of values, list elements or fields of the type `found` to the type `given`
/// drops.
fn find_lost_part(given: &DataType, found: &DataType) -> Option<LostPart> {
    use DataType::{Date32, Date64, FixedSizeList, LargeList, List, Map, Struct};
    use DataType::{Time32, Time64, Timestamp};
    match (given, found) {
        (
            List(a) | LargeList(a) | FixedSizeList(a, _),
            List(b) | LargeList(b) | FixedSizeList(b, _),
        )
        | (Map(a, _), Map(b, _)) => find_lost_part(a.data_type(), b.data_type()),
        (Struct(a), Struct(b)) => a.iter().find_map(|field| {
            let (_, other) = b.find(field.name())?;
            find_lost_part(field.data_type(), other.data_type())
        }),
        (Date32 | Date64, Timestamp(..)) => Some(LostPart::TimeOfDay),
        (Time32(_) | Time64(_), Timestamp(..)) => Some(LostPart::Date),
        _ if given.is_integer() && has_fractions(found) => Some(LostPart::Fraction),
        _ => None,
    }
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

/// Whether the values of the column of `plan` at index `at` lack the part `lost`, because the
/// column is a call such as `floor(x)` or `date_trunc('day', t)`.
fn is_whole(plan: &LogicalPlan, at: usize, lost: LostPart) -> bool {
    let LogicalPlan::Projection(select) = plan else { return false };
    let Some(expr) = select.expr.get(at) else { return false };
    match lost {
        LostPart::Fraction => {
            matches!(expr.clone().unalias(), Expr::ScalarFunction(call)
                if call.args.len() == 1
                    && ["ceil", "floor", "round", "trunc"].contains(&call.name()))
        }
        LostPart::TimeOfDay => is_midnight(expr, select.input.schema()),
        LostPart::Date => false,
    }
}

/// Whether the values of an expression are dates or the starts of days, such as those of
/// `date_trunc('month', t) + INTERVAL '1 month'`.
fn is_midnight(e: &Expr, columns: &DFSchema) -> bool {
    match e {
        // Before type coercion, CASE has the type of its first branch.
        Expr::Case(_) => false,
        e if matches!(e.get_type(columns), Ok(DataType::Date32 | DataType::Date64)) => true,
        Expr::Alias(alias) => is_midnight(&alias.expr, columns),
        Expr::Cast(cast) if !matches!(cast.field.data_type(), DataType::Timestamp(_, Some(_))) => {
            is_midnight(&cast.expr, columns)
        }
        Expr::ScalarFunction(call) if call.name() == "date_trunc" => truncates_to_days(&call.args),
        Expr::BinaryExpr(sum) if matches!(sum.op, Operator::Plus | Operator::Minus) => {
            is_midnight(&sum.left, columns) && has_whole_days(&sum.right)
        }
        _ => false,
    }
}

/// Whether an expression is an interval of days, months and years.
fn has_whole_days(e: &Expr) -> bool {
    match e {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(span)), _) => span.nanoseconds == 0,
        Expr::Literal(ScalarValue::IntervalYearMonth(_), _) => true,
        _ => false,
    }
}

/// Whether `date_trunc` with the arguments `args` returns the starts of days or longer periods.
fn truncates_to_days(args: &[Expr]) -> bool {
    let periods = ["day", "week", "month", "quarter", "year", "decade", "century", "millennium"];
    let Some(Expr::Literal(period, _)) = args.first() else { return false };
    let period = period.try_as_str().flatten().unwrap_or_default();
    periods.iter().any(|days| days.eq_ignore_ascii_case(period))
}

/// Whether a statement has WITH RECURSIVE. If not, [`RecursiveCtes`], which copies queries, is
/// skipped.
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
