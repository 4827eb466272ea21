//! Distinguishes aggregates, calls of `unnest` and GROUP BY keys of one SELECT that differ only in
//! casts, parentheses or subqueries.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    GroupByExpr, Ident, OrderBy, Query, Select, SelectItem, SetExpr, Value, WindowType,
    visit_expressions_mut,
};

use crate::functions;
use crate::sql::base::syntax::{for_each_expr, for_each_expr_mut, name_item, to_plain_name};
use crate::sql::statement::columns::merged::build_coalesce;
use crate::sql::statement::columns::set_names::{
    add_identifiers, find_unused_name, is_name, remove_casts,
};
use crate::sql::statement::names::select_names::{find_aliased, find_expression_at};

/// Maximum length in bytes of a call whose casts are compared. A longer call may be nested so
/// deeply that copying it overflows the stack.
const LONGEST_CALL: usize = 1_000;

static AGGREGATES: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let all = all_default_aggregate_functions();
    let names = all.iter().flat_map(|f| f.aliases().iter().map(String::as_str).chain([f.name()]));
    names.map(str::to_owned).collect()
});

/// Wraps an argument of an aggregate, a window function or `unnest` in `coalesce` if an earlier
/// call differs only in casts, parentheses, quotes or subqueries, such as `sum(x::INT)` before
/// `sum(x)`. Wraps keys of GROUP BY in the same way.
///
/// DataFusion omits casts, parentheses and most of a subquery in the name of a call. It fails if
/// two aggregates or keys have the same name, and computes only one of two calls of `unnest` with
/// the same name. This workaround is obsolete once the test `stock_aggregates_of_casts_still_clash`
/// fails.
pub(in crate::sql) fn distinguish_casts(select: &mut Select, mut order: Option<&mut OrderBy>) {
    if let Some(order) = order.as_deref() {
        name_sorted_casts(select, order);
    }
    for (key, wrapped) in find_clashing_keys(select) {
        let mut wrap = |e: &mut Expr| {
            if *e == key {
                *e = wrapped.clone();
            }
            ControlFlow::<()>::Continue(())
        };
        let _ = visit_expressions_mut(&mut select.projection, &mut wrap);
        let _ = visit_expressions_mut(&mut select.group_by, &mut wrap);
        for condition in select.having.iter_mut().chain(&mut select.qualify) {
            let _ = visit_expressions_mut(condition, &mut wrap);
        }
        if let Some(order) = order.as_deref_mut() {
            let _ = visit_expressions_mut(order, &mut wrap);
        }
    }
    wrap_aggregates(select, order);
}

/// Wraps arguments in the expansions of shorthands as [`distinguish_casts`] does: the expansions of
/// `quantile_disc(x, 0.5)` and `quantile_disc(x::INT, 0.5)` contain `count(x)` and `count(x::INT)`.
pub(in crate::sql) fn distinguish_expansions(query: &mut Query) {
    let Query { body, order_by, .. } = query;
    if let SetExpr::Select(select) = body.as_mut() {
        wrap_aggregates(select, order_by.as_mut());
        return;
    }
    let mut bodies = vec![body.as_mut()];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Select(select) => wrap_aggregates(select, None),
            SetExpr::SetOperation { left, right, .. } => {
                bodies.extend([left.as_mut(), right.as_mut()]);
            }
            _ => {}
        }
    }
}

fn wrap_aggregates(select: &mut Select, order: Option<&mut OrderBy>) {
    // For each name that DataFusion would give a call, such as `sum(x)`, the different calls of
    // this name in the SELECT, such as `sum(x)` and `sum(x::int)`, in lower case.
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

/// Gives an alias to casts in SELECT whose operand is in ORDER BY:
/// `SELECT (g + 8)::VARCHAR .. GROUP BY g + 8 ORDER BY g + 8`. DataFusion would sort by the cast,
/// because it gives the cast the name of the operand.
fn name_sorted_casts(select: &mut Select, order: &OrderBy) {
    let is_cast = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(e) if has_cast(e));
    if !select.projection.iter().any(is_cast) {
        return;
    }
    let mut sorted: Vec<(String, Expr)> = Vec::new();
    for_each_expr(order, |e| {
        if !is_name(e) && e.to_string().len() <= LONGEST_CALL {
            sorted.push((find_planned_name(e), e.clone()));
        }
    });
    let mut avoided = HashSet::new();
    add_identifiers(select, &mut avoided);
    add_identifiers(order, &mut avoided);
    let mut used: HashSet<String> = HashSet::new();
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        if !has_cast(expr) {
            continue;
        }
        let name = find_planned_name(expr);
        if sorted.iter().any(|(other, key)| *other == name && key != expr) {
            let alias = find_unused_name(&expr.to_string(), &mut used, &avoided);
            name_item(item, alias);
        }
    }
}

/// Whether an expression is a cast of an expression other than a column, also in parentheses.
/// Returns false if the cast is longer than [`LONGEST_CALL`].
fn has_cast(e: &Expr) -> bool {
    let mut e = e;
    while let Expr::Nested(inner) = e {
        e = inner;
    }
    match e {
        Expr::Cast { expr, .. } => !is_name(expr) && e.to_string().len() <= LONGEST_CALL,
        _ => false,
    }
}

/// Returns the keys of GROUP BY that would have the name of another key, each with the expression
/// to write instead.
fn find_clashing_keys(select: &Select) -> Vec<(Expr, Expr)> {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return Vec::new() };
    let mut keys: Vec<&Expr> = groups
        .iter()
        .flat_map(list_keys_within)
        .map(|key| resolve_key(key, &select.projection))
        .collect();
    if keys.len() < 2 {
        return Vec::new();
    }
    // Columns come first and are never wrapped, because another key may contain the column.
    keys.sort_by_key(|key| !is_name(key));
    let mut known: HashMap<String, Vec<&Expr>> = HashMap::new();
    let mut clashing = Vec::new();
    for key in keys {
        if key.to_string().len() > LONGEST_CALL {
            continue;
        }
        let others = known.entry(find_planned_name(key)).or_default();
        if others.contains(&key) {
            continue;
        }
        if !others.is_empty() && !is_name(key) {
            let wrapped = (0..others.len()).fold(key.clone(), |part, _| build_coalesce([part]));
            clashing.push((key.clone(), wrapped));
        }
        others.push(key);
    }
    clashing
}

/// Returns the keys in an element of GROUP BY: the element itself or the members of its sets.
fn list_keys_within(group: &Expr) -> Vec<&Expr> {
    match group {
        Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
            sets.iter().flatten().collect()
        }
        key => vec![key],
    }
}

/// Returns the expression of SELECT to which `key`, a position or an alias in GROUP BY, refers.
/// Returns any other key unchanged.
fn resolve_key<'a>(key: &'a Expr, columns: &'a [SelectItem]) -> &'a Expr {
    let found = match key {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => find_expression_at(columns, number),
            _ => None,
        },
        Expr::Identifier(name) => find_aliased(columns, name),
        _ => None,
    };
    found.unwrap_or(key)
}

/// Approximates the name that DataFusion gives an expression. This name omits casts, parentheses
/// and, in lists of constants, quotes. It has only the column of a subquery, and only the words IN
/// and EXISTS of a condition on one, so that all subqueries count as equal here.
fn find_planned_name(e: &Expr) -> String {
    let mut plain = remove_casts(e);
    for_each_expr_mut(&mut plain, |part| {
        if matches!(part, Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. }) {
            *part = Expr::Identifier(Ident::new("subquery"));
        }
    });
    plain.to_string().to_lowercase().replace(['\'', '(', ')'], "")
}

fn wrap_repeated(e: &mut Expr, known: &mut HashMap<String, Vec<String>>) -> ControlFlow<()> {
    if !matches!(e, Expr::Function(call) if is_aggregate(call) || is_unnest(call)) {
        return ControlFlow::Continue(());
    }
    let written = e.to_string().to_lowercase();
    if written.len() > LONGEST_CALL {
        return ControlFlow::Continue(());
    }
    let calls = known.entry(find_planned_name(e)).or_default();
    let at = calls.iter().position(|call| *call == written).unwrap_or_else(|| {
        calls.push(written);
        calls.len().saturating_sub(1)
    });
    if let Expr::Function(call) = e
        && at > 0
        && let Some(part) = find_first_part(call).cloned()
    {
        let wrapped = (0..at).fold(part.clone(), |part, _| build_coalesce([part]));
        // `array_agg(DISTINCT x ORDER BY x)` requires that the sort key equals the argument, so a
        // sort key that equals the argument is wrapped, too.
        if let FunctionArguments::List(list) = &mut call.args {
            for clause in &mut list.clauses {
                let FunctionArgumentClause::OrderBy(keys) = clause else { continue };
                let equal = keys.iter_mut().filter(|key| key.expr == part);
                equal.for_each(|key| key.expr = wrapped.clone());
            }
        }
        if let Some(first) = find_first_part(call) {
            *first = wrapped;
        }
    }
    ControlFlow::Continue(())
}

pub(in crate::sql) fn is_unnest(call: &Function) -> bool {
    to_plain_name(&call.name).is_some_and(|name| name == "unnest")
}

/// Whether a call is of an aggregate function, or has OVER.
pub(in crate::sql) fn is_aggregate(call: &Function) -> bool {
    call.over.is_some()
        || to_plain_name(&call.name).is_some_and(|name| {
            AGGREGATES.contains(&name) || functions::find_aggregate(&name).is_some()
        })
}

/// Returns the first expression in a call: an argument, the condition of FILTER, or a key of OVER.
/// Returns `None` for a call without expressions.
fn find_first_part(call: &mut Function) -> Option<&mut Expr> {
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
