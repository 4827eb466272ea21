//! Rejects clauses of calls that the planner would ignore, or would reject without saying what to
//! write instead.

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, NullTreatment, UnaryOperator, Value, WindowType,
};

use crate::functions::{plans_predicates, takes_filter};
use crate::sql::base::syntax::unquote_text;
use crate::sql::statement::errors::wording::refuse_clause;
use crate::sql::statement::expressions::windows::has_order;
use crate::sql::statement::folding::fold_name;

/// Returns an error for a clause of a call that the planner would ignore, or would reject without
/// an alternative. The error says what to write instead.
pub(super) fn check_call(state: &SessionState, call: &Function) -> Result<()> {
    let Some(name) = find_plain_name(call) else { return Ok(()) };
    check_arguments(&name, call)?;
    check_window_name(&name, call)?;
    check_distinct_star(&name, call)?;
    check_star_argument(&name, call)?;
    check_group_order(state, &name, call)?;
    check_time_format(&name, call)?;
    let of_one_row = state.scalar_functions().contains_key(&name)
        || state.higher_order_functions().contains_key(&name)
        || ["unnest", "unnest_outer", "len"].contains(&name.as_str());
    if of_one_row {
        return check_scalar_call(state, &name, call);
    }
    // `move_order_to_window` has already rewritten calls whose window is a whole partition, so
    // ORDER BY in calls over other windows is an error here.
    match call.over.is_some() && has_order(call) {
        true => Err(refuse_clause(format!(
            "the call {name}(.. ORDER BY ..) OVER (..) is supported only without DISTINCT, and only if OVER is empty or has nothing but PARTITION BY; write the order in the window, as in {name}(..) OVER (ORDER BY x)"
        ))),
        false => Ok(()),
    }
}

/// Returns a function's name, lower case unless quoted; `None` for a name with a schema, such as
/// `s.f`.
fn find_plain_name(call: &Function) -> Option<String> {
    let [part] = call.name.0.as_slice() else { return None };
    part.as_ident().map(fold_name)
}

/// Returns an error for `to_char(t, 'YYYY-MM')`, a format of PostgreSQL: DataFusion reads the
/// directives of strftime, and would return the format itself.
fn check_time_format(name: &str, call: &Function) -> Result<()> {
    let FunctionArguments::List(list) = &call.args else { return Ok(()) };
    let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(format))] = list.args.as_slice() else {
        return Ok(());
    };
    let format = unquote_text(format).filter(|_| ["to_char", "date_format"].contains(&name));
    match format.filter(|text| !text.contains('%') && text.chars().any(char::is_alphabetic)) {
        Some(text) => Err(refuse_clause(format!(
            "the format '{text}' of {name} has no directive of strftime, so that every result would be '{text}'; write {name}(t, '%Y-%m-%d %H:%M:%S')"
        ))),
        None => Ok(()),
    }
}

/// Returns an error for `f(a)(b)`, `f(SELECT ..)`, and `unnest(x, recursive := true)`.
fn check_arguments(name: &str, call: &Function) -> Result<()> {
    if !matches!(call.parameters, FunctionArguments::None) {
        return Err(refuse_clause(format!(
            "a second list of arguments, as in {name}(..)(..), is not supported: pass all arguments in one list"
        )));
    }
    if matches!(call.args, FunctionArguments::Subquery(_)) {
        return Err(refuse_clause(format!(
            "{name}(SELECT ..) is not supported: a subquery as an argument needs its own parentheses, as in f((SELECT ..)); for a list of its rows, write (SELECT array_agg(a) FROM ..)"
        )));
    }
    if name == "unnest"
        && let FunctionArguments::List(list) = &call.args
        && let Some(named) = list.args.iter().find(|arg| !matches!(arg, FunctionArg::Unnamed(_)))
    {
        return Err(refuse_clause(format!(
            "the argument {named} of unnest is not supported: unnest turns one level of lists into rows; write unnest(ragged_flatten(x)) for all levels"
        )));
    }
    Ok(())
}

/// Returns an error for `count(* EXCLUDE (a))` and `count(t.* EXCLUDE (a))`.
fn check_star_argument(name: &str, call: &Function) -> Result<()> {
    let FunctionArguments::List(list) = &call.args else { return Ok(()) };
    let is_star = |arg: &FunctionArg| {
        matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::WildcardWithOptions(_)))
    };
    match list.args.iter().any(is_star) {
        true => Err(refuse_clause(format!(
            "the star with EXCLUDE, REPLACE or RENAME as an argument of {name} is not supported: name the columns, as in {name}(a), or write {name} of a query, as in SELECT count(*) FROM (SELECT * EXCLUDE (a) FROM t)"
        ))),
        false => Ok(()),
    }
}

/// Returns an error for a call with the name of a window, because the WINDOW clause does not define
/// it: the names of defined windows have already been replaced with their definitions.
fn check_window_name(name: &str, call: &Function) -> Result<()> {
    match &call.over {
        Some(WindowType::NamedWindow(window)) => plan_err!(
            "{name}(..) OVER {window} refers to a window that this SELECT does not define; \
             add WINDOW {window} AS (..)"
        ),
        Some(WindowType::WindowSpec(spec)) => match &spec.window_name {
            Some(window) => plan_err!(
                "{name}(..) OVER ({window} ..) refers to a window that this SELECT does not define; add \
                 WINDOW {window} AS (..)"
            ),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

/// Returns an error for `count(t.*)`. For use in a SELECT of several tables, where DataFusion would
/// count all rows, also those for which an outer join found no row of `t`. No upstream issue was
/// found. This check is obsolete once the test `stock_counts_of_a_table_still_count_all_rows`
/// fails.
pub(super) fn check_table_star(call: &Function) -> Result<()> {
    let FunctionArguments::List(list) = &call.args else { return Ok(()) };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table))]
            if find_plain_name(call).as_deref() == Some("count") =>
        {
            Err(refuse_clause(format!(
                "the call count({table}.*) in a SELECT of several tables is not supported: write count(*) to count all rows, or count({table}.a), with a column a of {table} that is never NULL, to count the rows that have a row of {table}"
            )))
        }
        _ => Ok(()),
    }
}

/// Returns an error for `count(DISTINCT *)` and `count(DISTINCT t.*)`.
fn check_distinct_star(name: &str, call: &Function) -> Result<()> {
    let FunctionArguments::List(list) = &call.args else { return Ok(()) };
    if list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
        && let [
            FunctionArg::Unnamed(
                star @ (FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_)),
            ),
        ] = list.args.as_slice()
    {
        return Err(refuse_clause(format!(
            "the call {name}(DISTINCT {star}) is not supported: name the columns, as in {name}(DISTINCT a), or count the rows of (SELECT DISTINCT {star} FROM ..)"
        )));
    }
    Ok(())
}

/// Returns an error for WITHIN GROUP of an aggregate such as `string_agg`, which takes its order
/// within its parentheses.
fn check_group_order(state: &SessionState, name: &str, call: &Function) -> Result<()> {
    let Some(key) = call.within_group.first() else { return Ok(()) };
    match state.aggregate_functions().get(name) {
        Some(function) if !function.supports_within_group_clause() => Err(refuse_clause(format!(
            "the call {name}(..) WITHIN GROUP (ORDER BY {key}) is not supported: WITHIN GROUP applies to percentile_cont, percentile_disc and mode; write the order within the parentheses, as in {name}(.. ORDER BY {key})"
        ))),
        _ => Ok(()),
    }
}

/// Returns an error for a call of `mode` or of a quantile function whose ORDER BY is not supported,
/// or whose fraction (0.5 for the median) is out of range. The caller runs this check before it
/// rewrites such calls, because the rewrites drop the ORDER BY.
pub(in crate::sql) fn check_ordered_values(expr: &Expr) -> Result<()> {
    let Expr::Function(call) = expr else { return Ok(()) };
    let Some(name) = find_plain_name(call) else { return Ok(()) };
    check_mode(&name, call)?;
    check_quantiles(&name, call)
}

/// Returns an error for `mode() WITHIN GROUP (ORDER BY x DESC)`, because `mode` returns the least
/// of several most frequent values, whatever the order.
fn check_mode(name: &str, call: &Function) -> Result<()> {
    match call.within_group.as_slice() {
        [key] if name == "mode" && key.options.asc == Some(false) => Err(refuse_clause(format!(
            "the order DESC in mode() WITHIN GROUP (ORDER BY {key}) is not supported: if several values are equally frequent, mode returns the least of them; write mode({})",
            key.expr
        ))),
        _ => Ok(()),
    }
}

/// Returns an error for a call of a quantile function that has both DESC and OVER. Also returns an
/// error for a call of a discrete quantile function, such as `percentile_disc(2)`, if the fraction
/// is NULL or a literal below 0 or above 1.
fn check_quantiles(name: &str, call: &Function) -> Result<()> {
    let FunctionArguments::List(list) = &call.args else { return Ok(()) };
    let is_discrete = matches!(name, "quantile_disc" | "percentile_disc");
    if !is_discrete && !matches!(name, "quantile_cont" | "percentile_cont") {
        return Ok(());
    }
    if !is_discrete
        && call.over.is_some()
        && let [key] = call.within_group.as_slice()
        && key.options.asc == Some(false)
    {
        return Err(refuse_clause(format!(
            "the call {name}(..) WITHIN GROUP (ORDER BY {key}) OVER (..) is not supported: write quantile_cont({}, 0.9) OVER (..) for the quantile 0.1 of the descending values",
            key.expr
        )));
    }
    let is_descending = list.clauses.iter().any(|clause| match clause {
        FunctionArgumentClause::OrderBy(keys) => {
            keys.iter().any(|key| key.options.asc == Some(false))
        }
        _ => false,
    });
    if is_descending && call.over.is_some() {
        return Err(refuse_clause(format!(
            "the call {name}(.. ORDER BY .. DESC) OVER (..) is not supported, because a window sorts the values in ascending order; compute the quantile with GROUP BY in a subquery, and join it"
        )));
    }
    let quantile = match list.args.as_slice() {
        [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(quantile))] => quantile,
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(quantile))]
            if !call.within_group.is_empty() =>
        {
            quantile
        }
        _ => return Ok(()),
    };
    let quantiles = match quantile {
        Expr::Array(several) => several.elem.as_slice(),
        one => std::slice::from_ref(one),
    };
    match quantiles.iter().find(|e| is_discrete && is_no_quantile(e)) {
        Some(found) => plan_err!(
            "the quantile of {name} must be a number from 0 to 1, but is {found}; write 0.5 for the value in the middle, or percentile_disc(0.1) WITHIN GROUP (ORDER BY x DESC) to count from the greatest value"
        ),
        None => Ok(()),
    }
}

/// Whether an expression is NULL, or a literal number below 0 or above 1.
fn is_no_quantile(e: &Expr) -> bool {
    let read_number = |e: &Expr| match e {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => text.parse::<f64>().ok(),
            _ => None,
        },
        _ => None,
    };
    match e {
        Expr::Value(value) if value.value == Value::Null => true,
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            read_number(expr).is_some_and(|number| number > 0.0)
        }
        e => read_number(e).is_some_and(|number| number > 1.0),
    }
}

/// Returns an error for clauses of aggregates and window functions, which the planner ignores in
/// calls of scalar functions.
fn check_scalar_call(state: &SessionState, name: &str, call: &Function) -> Result<()> {
    let scalar = ScalarCall { name, kind: FunctionKind::from_name(name) };
    if call.filter.is_some() && !(takes_filter(name) && plans_predicates(state.expr_planners())) {
        return Err(scalar.refuse_filter());
    }
    if call.over.is_some() {
        return Err(scalar.refuse_over());
    }
    if !call.within_group.is_empty() {
        return Err(scalar.refuse_within_group());
    }
    if let Some(treatment) = &call.null_treatment {
        return Err(scalar.refuse_nulls(treatment));
    }
    let FunctionArguments::List(list) = &call.args else { return Ok(()) };
    if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
        return Err(scalar.refuse_distinct());
    }
    for clause in &list.clauses {
        match clause {
            FunctionArgumentClause::OrderBy(_) => return Err(scalar.refuse_order()),
            FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => {
                return Err(scalar.refuse_nulls(treatment));
            }
            // The planner itself rejects other clauses.
            _ => {}
        }
    }
    Ok(())
}

/// Kind of the arguments of a scalar function, by the prefix of its name: lists of any depth
/// (`ragged_..`), lists of one level (`array_..`, `list_..`), or scalars.
#[derive(Clone, Copy)]
enum FunctionKind {
    Ragged,
    List,
    Single,
}

impl FunctionKind {
    fn from_name(name: &str) -> Self {
        match name {
            name if name.starts_with("ragged_") => Self::Ragged,
            name if name.starts_with("array_") || name.starts_with("list_") => Self::List,
            _ => Self::Single,
        }
    }
}

/// A call of a scalar function, with which error messages about its clauses are made.
struct ScalarCall<'a> {
    name: &'a str,
    kind: FunctionKind,
}

impl ScalarCall<'_> {
    fn refuse_filter(&self) -> DataFusionError {
        let name = self.name;
        let instead = match self.kind {
            FunctionKind::Ragged | FunctionKind::List => {
                "use ragged_filter(x, mask) to keep the values for which a mask is true"
            }
            FunctionKind::Single => {
                "use CASE WHEN condition THEN .. END to return the value if a condition is true"
            }
        };
        refuse_clause(format!(
            "the call {name}(..) FILTER (WHERE ..) is not supported: FILTER applies to aggregates and to reductions of lists such as ragged_mean; {instead}"
        ))
    }

    fn refuse_over(&self) -> DataFusionError {
        let name = self.name;
        refuse_clause(match self.kind {
            FunctionKind::Ragged => format!(
                "the call {name}(..) OVER (..) is not supported: {name} works on the list of one row; use OVER with an aggregate or a window function, as in sum({name}(x)) OVER (..)"
            ),
            FunctionKind::List | FunctionKind::Single => format!(
                "the call {name}(..) OVER (..) is not supported: {name} works on one row; use OVER with an aggregate or a window function"
            ),
        })
    }

    fn refuse_within_group(&self) -> DataFusionError {
        refuse_clause(format!(
            "the call {}(..) WITHIN GROUP (ORDER BY ..) is not supported: WITHIN GROUP applies to aggregates such as percentile_cont; use ragged_quantile(x, 0.5) for the quantile of a list",
            self.name
        ))
    }

    fn refuse_nulls(&self, treatment: &NullTreatment) -> DataFusionError {
        refuse_clause(format!(
            "the call {}(..) {treatment} is not supported: {treatment} applies to aggregates and window functions; use ragged_filter(x, ragged_not(ragged_is_null(x))) to remove NULL from a list",
            self.name
        ))
    }

    fn refuse_distinct(&self) -> DataFusionError {
        let name = self.name;
        let instead = match self.kind {
            FunctionKind::Ragged => format!("use {name}(ragged_unique(x)) for distinct values"),
            FunctionKind::List => format!("use {name}(array_distinct(x)) for distinct values"),
            FunctionKind::Single => {
                format!("{name} works on one row; use SELECT DISTINCT to remove equal rows")
            }
        };
        refuse_clause(format!("the call {name}(DISTINCT ..) is not supported: {instead}"))
    }

    fn refuse_order(&self) -> DataFusionError {
        let name = self.name;
        let instead = match self.kind {
            FunctionKind::Ragged => {
                format!("use {name}(ragged_sort(x)) for the sorted values of a list")
            }
            FunctionKind::List => {
                format!("use {name}(array_sort(x)) for the sorted values of a list")
            }
            FunctionKind::Single => {
                format!("{name} works on one row; write ORDER BY at the end of the query")
            }
        };
        refuse_clause(format!("the call {name}(.. ORDER BY ..) is not supported: {instead}"))
    }
}
