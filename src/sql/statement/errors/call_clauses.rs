//! Rejects clauses of calls that the planner ignores or rejects without an alternative.

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    DuplicateTreatment, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, NullTreatment, WindowType,
};

use crate::functions::{plans_predicates, takes_filter};
use crate::sql::statement::errors::wording::refuse_clause;
use crate::sql::statement::expressions::windows::has_order;

/// Returns an error for clauses of a call that the planner ignores or rejects without an alternative.
pub(super) fn check_call(state: &SessionState, call: &Function) -> Result<()> {
    let Some(name) = find_plain_name(call) else { return Ok(()) };
    check_arguments(&name, call)?;
    check_window_name(&name, call)?;
    check_distinct_star(&name, call)?;
    let of_one_row = state.scalar_functions().contains_key(&name)
        || state.higher_order_functions().contains_key(&name)
        || ["unnest", "unnest_outer"].contains(&name.as_str());
    if of_one_row {
        return check_scalar_call(state, &name, call);
    }
    // `move_order_to_window` has already rewritten the calls whose window is the whole partition,
    // so only other calls are errors here.
    match call.over.is_some() && has_order(call) {
        true => Err(refuse_clause(format!(
            "the call {name}(.. ORDER BY ..) OVER (..) is supported only for aggregates without DISTINCT over OVER () or OVER (PARTITION BY ..): write the order in the window, as in {name}(..) OVER (ORDER BY x)"
        ))),
        false => Ok(()),
    }
}

/// Returns the name of a function, in lower case unless it is quoted. Returns `None` for a name
/// with a schema, such as `s.f`.
fn find_plain_name(call: &Function) -> Option<String> {
    let [part] = call.name.0.as_slice() else { return None };
    let name = part.as_ident()?;
    Some(match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    })
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

/// Returns an error for a window that the WINDOW clause does not define. References to defined
/// windows have been replaced before.
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

/// Returns an error for `count(DISTINCT *)`.
fn check_distinct_star(name: &str, call: &Function) -> Result<()> {
    let FunctionArguments::List(list) = &call.args else { return Ok(()) };
    if list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
        && let [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] = list.args.as_slice()
    {
        return Err(refuse_clause(format!(
            "the call {name}(DISTINCT *) is not supported: name the columns, as in {name}(DISTINCT a), or count the rows of (SELECT DISTINCT * FROM ..)"
        )));
    }
    Ok(())
}

/// Returns an error for clauses of aggregates and window functions, which the planner ignores in calls of scalar
/// functions.
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

/// Kind of value of a scalar function, by the prefix of its name: lists of any depth (`ragged_..`),
/// lists of one level (`array_..`, `list_..`), or scalars.
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

/// A call of a scalar function in error messages.
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
