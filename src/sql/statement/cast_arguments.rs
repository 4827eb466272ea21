//! Aggregates and `unnest` of one SELECT that differ only in casts, such as `sum(x)` and `sum(x::DOUBLE)`.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    OrderBy, Select, WindowType, visit_expressions_mut,
};

use crate::functions;
use crate::sql::sources::from::to_plain_name;
use crate::sql::statement::merged::coalesce_of;
use crate::sql::statement::set_names::without_casts;

/// Maximum number of bytes of a call whose casts are compared. The copy of a very deep call would overflow
/// the stack.
const LONGEST_CALL: usize = 1_000;

/// The names and aliases of DataFusion's aggregates.
static AGGREGATES: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let all = all_default_aggregate_functions();
    let names = all.iter().flat_map(|f| f.aliases().iter().map(String::as_str).chain([f.name()]));
    names.map(str::to_owned).collect()
});

/// Wraps an argument of each aggregate, window function and `unnest` that differs from an earlier one only in casts, or
/// in the quotes of strings:
/// `sum(x), sum(x::DOUBLE)` becomes `sum(x), sum(coalesce(x::DOUBLE))`.
///
/// DataFusion omits casts in the name of a call. It fails if two aggregates have one name, and computes only one of two
/// calls of `unnest`. Obsolete once the test
/// `stock_aggregates_of_casts_still_clash` fails.
pub(in crate::sql) fn tell_casts_apart(select: &mut Select, order: Option<&mut OrderBy>) {
    // For each call, written without casts and in lower case, the different calls with casts.
    let mut known: HashMap<String, Vec<String>> = HashMap::new();
    let items = select.projection.iter_mut();
    for item in items {
        let _ = visit_expressions_mut(item, |e| wrap_repeated(e, &mut known));
    }
    for condition in select.having.iter_mut().chain(&mut select.qualify) {
        let _ = visit_expressions_mut(condition, |e| wrap_repeated(e, &mut known));
    }
    if let Some(order) = order {
        let _ = visit_expressions_mut(order, |e| wrap_repeated(e, &mut known));
    }
}

fn wrap_repeated(e: &mut Expr, known: &mut HashMap<String, Vec<String>>) -> ControlFlow<()> {
    if !matches!(e, Expr::Function(call) if is_aggregate(call) || is_unnest(call)) {
        return ControlFlow::Continue(());
    }
    let written = e.to_string().to_lowercase();
    if written.len() > LONGEST_CALL {
        return ControlFlow::Continue(());
    }
    // Constant lists are named without the quotes of their strings.
    let name = without_casts(e).to_string().to_lowercase().replace('\'', "");
    let calls = known.entry(name).or_default();
    let at = calls.iter().position(|call| *call == written).unwrap_or_else(|| {
        calls.push(written);
        calls.len().saturating_sub(1)
    });
    if let Expr::Function(call) = e
        && at > 0
        && let Some(part) = first_part(call).cloned()
    {
        let wrapped = (0..at).fold(part.clone(), |part, _| coalesce_of([part]));
        // ORDER BY keys of the call that equal the argument are wrapped, too, because DISTINCT requires that they
        // stay equal.
        if let FunctionArguments::List(list) = &mut call.args {
            for clause in &mut list.clauses {
                let FunctionArgumentClause::OrderBy(keys) = clause else { continue };
                let equal = keys.iter_mut().filter(|key| key.expr == part);
                equal.for_each(|key| key.expr = wrapped.clone());
            }
        }
        if let Some(first) = first_part(call) {
            *first = wrapped;
        }
    }
    ControlFlow::Continue(())
}

fn is_unnest(call: &Function) -> bool {
    to_plain_name(&call.name).is_some_and(|name| name == "unnest")
}

/// Whether a call is of an aggregate function, or has OVER.
pub(in crate::sql) fn is_aggregate(call: &Function) -> bool {
    call.over.is_some()
        || to_plain_name(&call.name)
            .is_some_and(|name| AGGREGATES.contains(&name) || functions::aggregate(&name).is_some())
}

/// Returns the first expression in a call: an argument, the condition of FILTER, or a key of OVER.
fn first_part(call: &mut Function) -> Option<&mut Expr> {
    if let FunctionArguments::List(list) = &mut call.args
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) = list.args.first_mut()
    {
        return Some(first);
    }
    if let Some(condition) = call.filter.as_deref_mut() {
        return Some(condition);
    }
    let Some(WindowType::WindowSpec(window)) = &mut call.over else { return None };
    let keys = window.partition_by.iter_mut();
    keys.chain(window.order_by.iter_mut().map(|by| &mut by.expr)).next()
}
