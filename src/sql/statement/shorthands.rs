//! Expands functions of DuckDB to existing functions, for example `year(t)` to `date_part('year', t)`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    OrderBy, OrderByKind, Query, SelectItem, SetExpr, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion::logical_expr::sqlparser::dialect::DuckDbDialect;
use datafusion::logical_expr::sqlparser::parser::Parser;

use crate::sql::sources::from::one_name;
use crate::sql::statement::intervals::computes_interval;

/// Function names and their expansions. `$1` is the first argument, and the highest number is the arity.
const SHORTHANDS: &[(&str, &str)] = &[
    ("year", "date_part('year', $1)"),
    ("quarter", "date_part('quarter', $1)"),
    ("month", "date_part('month', $1)"),
    ("week", "date_part('week', $1)"),
    ("weekofyear", "date_part('week', $1)"),
    ("day", "date_part('day', $1)"),
    ("dayofmonth", "date_part('day', $1)"),
    ("dayofweek", "date_part('dow', $1)"),
    ("weekday", "date_part('dow', $1)"),
    ("dayofyear", "date_part('doy', $1)"),
    ("hour", "date_part('hour', $1)"),
    ("minute", "date_part('minute', $1)"),
    ("second", "date_part('second', $1)"),
    ("epoch", "date_part('epoch', $1)"),
    ("dayname", "to_char($1, '%A')"),
    ("monthname", "to_char($1, '%B')"),
    // `%f` is microseconds in DuckDB and nanoseconds in DataFusion.
    ("strftime", "to_char($1, replace($2, '%f', '%6f'))"),
    ("time_bucket", "date_bin($1, $2, $3)"),
    (BUCKETS_OF_DAYS, "date_bin($1, $2, TIMESTAMP '2000-01-03')"),
    (BUCKETS_OF_MONTHS, "date_bin($1, $2, TIMESTAMP '2000-01-01')"),
    ("last_day", "CAST(date_trunc('month', $1) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)"),
    ("to_years", "($1 | 0) * INTERVAL '1 year'"),
    ("to_months", "($1 | 0) * INTERVAL '1 month'"),
    ("to_weeks", "($1 | 0) * INTERVAL '1 week'"),
    ("to_days", "($1 | 0) * INTERVAL '1 day'"),
    ("to_hours", "($1 | 0) * INTERVAL '1 hour'"),
    ("to_minutes", "($1 | 0) * INTERVAL '1 minute'"),
    ("to_seconds", "$1 * INTERVAL '1 second'"),
    ("regexp_matches", "regexp_like($1, $2)"),
    ("regexp_full_match", r"regexp_like($1, '\A(?:' || $2 || ')\z')"),
    ("prefix", "starts_with($1, $2)"),
    ("suffix", "ends_with($1, $2)"),
    ("lcase", "lower($1)"),
    ("ucase", "upper($1)"),
    ("ceiling", "ceil($1)"),
    ("sign", "signum($1)"),
    ("mod", "$1 % $2"),
    ("if", "CASE WHEN $1 THEN $2 ELSE $3 END"),
    // DataFusion's `nvl` returns the text of lists.
    ("nvl", "coalesce($1, $2)"),
    ("ifnull", "coalesce($1, $2)"),
    ("list_min", "array_min($1)"),
    // DataFusion's own sum of a list converts integers to floats.
    ("list_sum", "CASE WHEN ragged_count($1) > 0 THEN ragged_sum($1) END"),
    ("array_sum", "CASE WHEN ragged_count($1) > 0 THEN ragged_sum($1) END"),
    ("list_first", "array_element($1, 1)"),
    ("list_last", "array_element($1, -1)"),
    ("count_if", "sum(CASE WHEN $1 THEN 1 WHEN NOT $1 THEN 0 END)"),
    ("countif", "sum(CASE WHEN $1 THEN 1 WHEN NOT $1 THEN 0 END)"),
    // The second sort key, the result itself, makes the choice independent of the order of the rows.
    (
        "arg_max",
        "first_value($1 ORDER BY $2 DESC, $1) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)",
    ),
    (
        "max_by",
        "first_value($1 ORDER BY $2 DESC, $1) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)",
    ),
    (
        "argmax",
        "first_value($1 ORDER BY $2 DESC, $1) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)",
    ),
    ("arg_min", "first_value($1 ORDER BY $2, $1) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("min_by", "first_value($1 ORDER BY $2, $1) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("argmin", "first_value($1 ORDER BY $2, $1) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
];

/// Names of the expansions of `time_bucket` without an origin: as in DuckDB, buckets begin on a Monday, and
/// buckets of months in January. Statements cannot use these names, because they contain blanks.
const BUCKETS_OF_DAYS: &str = "time_bucket of days";
const BUCKETS_OF_MONTHS: &str = "time_bucket of months";

static EXPANSIONS: LazyLock<HashMap<(&str, usize), Expr>> = LazyLock::new(|| {
    let parse = |text: &str| {
        let mut parser = Parser::new(&DuckDbDialect {}).try_with_sql(text).ok()?;
        parser.parse_expr().ok()
    };
    let arity = |text: &str| (1..=3).rev().find(|n| text.contains(&format!("${n}")));
    let expansions =
        SHORTHANDS.iter().filter_map(|(name, text)| Some(((*name, arity(text)?), parse(text)?)));
    expansions.collect()
});

/// Returns the numbers of arguments that a shorthand takes, in ascending order. The result is empty for
/// another name.
pub(in crate::sql) fn shorthand_arities(name: &str) -> Vec<usize> {
    let mut arities: Vec<usize> =
        EXPANSIONS.keys().filter(|(known, _)| *known == name).map(|(_, arity)| *arity).collect();
    if name == "time_bucket" {
        arities.push(2);
    }
    arities.sort_unstable();
    arities
}

/// Replaces a call of a shorthand with its expansion, and leaves other expressions unchanged.
pub(in crate::sql) fn expand_shorthand(expr: &mut Expr) {
    let Expr::Function(call) = expr else { return };
    let Some(name) = shorthand_name(call) else { return };
    let Some(args) = plain_arguments(call) else { return };
    let name = match (name, args.as_slice()) {
        ("time_bucket", [width, _]) if is_of_months(width) => BUCKETS_OF_MONTHS,
        ("time_bucket", [_, _]) => BUCKETS_OF_DAYS,
        _ => name,
    };
    let Some(expansion) = EXPANSIONS.get(&(name, args.len())) else { return };
    let mut expansion = expansion.clone();
    let _ = VisitMut::visit(&mut expansion, &mut Arguments { args: &args });
    match &mut expansion {
        Expr::Function(inner) => {
            inner.over = call.over.take();
            inner.filter = and_conditions(inner.filter.take(), call.filter.take());
        }
        _ => expansion = Expr::Nested(Box::new(expansion)),
    }
    *expr = expansion;
}

/// Names result columns after the original calls, and makes ORDER BY refer to these columns.
pub(in crate::sql) fn name_shorthands(query: &mut Query) {
    let mut names = Vec::new();
    let mut bodies = vec![query.body.as_mut()];
    let mut items = Vec::new();
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Select(select) => items.extend(&mut select.projection),
            SetExpr::SetOperation { left, right, .. } => {
                bodies.extend([left.as_mut(), right.as_mut()]);
            }
            _ => {}
        }
    }
    for item in items {
        // `name_repeated` may have added the alias.
        if let SelectItem::ExprWithAlias { expr, alias } = item
            && Visit::visit(expr, &mut HasShorthand).is_break()
            && alias.value == expr.to_string()
        {
            names.push(alias.value.clone());
        }
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        if Visit::visit(expr, &mut HasShorthand).is_continue() {
            continue;
        }
        let name = expr.to_string();
        let expr = std::mem::replace(expr, Expr::value(Value::Null));
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', &name) };
        names.push(name);
    }
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else {
        return;
    };
    for key in keys {
        let name = key.expr.to_string();
        if names.contains(&name) {
            key.expr = Expr::Identifier(Ident::with_quote('"', name));
        }
    }
}

/// Returns the name of the shorthand in [`SHORTHANDS`] that a call uses, or `None` if it uses none. A call
/// with OVER or FILTER is a shorthand only if its expansion accepts that clause.
fn shorthand_name(call: &Function) -> Option<&'static str> {
    let name = one_name(&call.name)?;
    let (name, expansion) = SHORTHANDS.iter().find(|(shorthand, _)| *shorthand == name)?;
    let has_clauses = call.null_treatment.is_some()
        || !call.within_group.is_empty()
        || (call.over.is_some() && expansion.contains("ORDER BY"))
        || ((call.over.is_some() || call.filter.is_some()) && !is_aggregate(expansion));
    (!has_clauses).then_some(*name)
}

fn is_aggregate(expansion: &str) -> bool {
    expansion.starts_with("sum(") || expansion.starts_with("first_value(")
}

/// Returns the arguments of a call. Returns `None` if an argument is named or is `*`, or if the parentheses
/// contain DISTINCT or other clauses.
fn plain_arguments(call: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &call.args else { return None };
    if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return None;
    }
    let args = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e.clone()),
        _ => None,
    });
    args.collect()
}

fn is_of_months(interval: &Expr) -> bool {
    let text = interval.to_string().to_ascii_lowercase();
    ["month", "year", "quarter", "decade", "centur"].iter().any(|unit| text.contains(unit))
}

fn and_conditions(a: Option<Box<Expr>>, b: Option<Box<Expr>>) -> Option<Box<Expr>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Box::new(Expr::BinaryOp {
            left: Box::new(Expr::Nested(a)),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(b)),
        })),
        (one, other) => one.or(other),
    }
}

struct Arguments<'a> {
    args: &'a [Expr],
}

impl VisitorMut for Arguments<'_> {
    type Break = ();

    // Runs after the children are visited, so that `$1` within an argument is not replaced.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(place) = &value.value
            && let Some(at) = place.strip_prefix('$').and_then(|n| n.parse::<usize>().ok())
            && let Some(arg) = at.checked_sub(1).and_then(|at| self.args.get(at))
        {
            *expr = match arg {
                Expr::BinaryOp { .. } | Expr::UnaryOp { .. } => Expr::Nested(Box::new(arg.clone())),
                arg => arg.clone(),
            };
        }
        ControlFlow::Continue(())
    }
}

struct HasShorthand;

impl Visitor for HasShorthand {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) if shorthand_name(call).is_some() => ControlFlow::Break(()),
            other if computes_interval(other) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shorthand_is_an_expression() {
        assert_eq!(EXPANSIONS.len(), SHORTHANDS.len());
    }

    #[test]
    fn every_shorthand_is_documented() {
        let page = include_str!("../../../docs/sql.md");
        for (name, _) in SHORTHANDS.iter().filter(|(name, _)| !name.contains(' ')) {
            assert!(page.contains(&format!("`{name}")), "docs/sql.md has no {name}");
        }
    }
}
