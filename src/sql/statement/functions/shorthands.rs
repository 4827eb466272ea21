//! Expands functions of DuckDB to existing functions, for example `year(t)` to
//! `date_part('year', t)`.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::logical_expr::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Ident, ObjectName, OrderBy,
    OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, UnaryOperator, Value, VisitMut,
    VisitorMut, WindowType,
};
use datafusion::logical_expr::sqlparser::dialect::DuckDbDialect;
use datafusion::logical_expr::sqlparser::parser::Parser;

use crate::sql::base::syntax::{
    for_each_expr_mut, has_expr, list_plain_arguments, name_item, to_plain_name,
};
use crate::sql::statement::expressions::intervals::computes_interval;
use crate::sql::statement::expressions::predicates::call_function;
use crate::sql::statement::expressions::windows::has_order;
use crate::sql::statement::functions::numbered_lambdas::has_position;

/// Function names and their expansions. `$1` is the first argument, and the highest number is the
/// arity.
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
    ("millisecond", "date_part('millisecond', $1)"),
    ("microsecond", "date_part('microsecond', $1)"),
    ("isodow", "date_part('isodow', $1)"),
    ("isoyear", "date_part('isoyear', $1)"),
    ("decade", "date_part('decade', $1)"),
    ("century", "date_part('century', $1)"),
    ("millennium", "date_part('millennium', $1)"),
    ("epoch", "date_part('epoch', $1)"),
    ("dayname", "strftime($1, '%A')"),
    ("monthname", "strftime($1, '%B')"),
    ("time_bucket", "date_bin($1, $2, $3)"),
    (BUCKETS_OF_DAYS, "date_bin($1, $2, TIMESTAMP '2000-01-03')"),
    (BUCKETS_OF_MONTHS, "date_bin($1, $2, TIMESTAMP '2000-01-01')"),
    // For a width of months, the origin is two days before that for other widths.
    (
        BUCKETS_OF_COMPUTED_WIDTHS,
        "date_bin($1, $2, TIMESTAMP '2000-01-03' - CAST(date_part('year', CAST($1 AS INTERVAL)) * 12 + date_part('month', CAST($1 AS INTERVAL)) > 0 AS BIGINT) * INTERVAL '2 days')",
    ),
    // A cast to TIMESTAMP takes the month of an origin with a zone in UTC, where buckets of months
    // begin.
    (BUCKETS_OF_MONTHS_FROM, "date_bin($1, $2, date_trunc('month', CAST($3 AS TIMESTAMP)))"),
    (
        BUCKETS_OF_COMPUTED_WIDTHS_FROM,
        "date_bin($1, $2, CASE WHEN date_part('year', CAST($1 AS INTERVAL)) * 12 + date_part('month', CAST($1 AS INTERVAL)) > 0 THEN date_trunc('month', CAST($3 AS TIMESTAMP)) ELSE CAST($3 AS TIMESTAMP) END)",
    ),
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
    // `unicode('')` is -1, but `ascii('')` is 0. `strpos('', s)` is 1 if `s` is empty, and 0
    // otherwise.
    ("unicode", "ascii($1) - strpos('', $1)"),
    ("ceiling", "ceil($1)"),
    ("sign", "signum($1)"),
    ("mod", "$1 % $2"),
    ("if", "CASE WHEN $1 THEN $2 ELSE $3 END"),
    // DataFusion's `nvl` converts lists to text, but `coalesce` does not.
    ("nvl", "coalesce($1, $2)"),
    ("ifnull", "coalesce($1, $2)"),
    // DataFusion's `nvl2` converts the first argument to the type of the others.
    ("nvl2", "CASE WHEN $1 IS NOT NULL THEN $2 ELSE $3 END"),
    ("isinf", "abs($1) = CAST('inf' AS DOUBLE)"),
    ("isfinite", "(abs($1) < CAST('inf' AS DOUBLE) AND NOT isnan($1))"),
    ("xor", "$1 ^ $2"),
    ("timezone", "$2 AT TIME ZONE $1"),
    (
        "make_timestamp",
        "CAST(make_date($1, $2, $3) AS TIMESTAMP) + ($4 | 0) * INTERVAL '1 hour' + ($5 | 0) * INTERVAL '1 minute' + $6 * INTERVAL '1 second'",
    ),
    // `ragged_nunique` counts values of all levels, but lists and structs in a list count as
    // wholes.
    ("list_unique", "ragged_lengths(array_distinct(array_compact($1)))"),
    ("array_unique", "ragged_lengths(array_distinct(array_compact($1)))"),
    ("list_reverse_sort", "array_sort($1, 'DESC', 'NULLS LAST')"),
    ("array_reverse_sort", "array_sort($1, 'DESC', 'NULLS LAST')"),
    ("list_min", "array_min($1)"),
    // DataFusion's own sum of a list converts integers to floats, but `ragged_sum` does not.
    ("list_sum", "CASE WHEN ragged_count($1) > 0 THEN ragged_sum($1) END"),
    ("array_sum", "CASE WHEN ragged_count($1) > 0 THEN ragged_sum($1) END"),
    ("list_first", "array_element($1, 1)"),
    ("list_last", "array_element($1, -1)"),
    ("count_if", "sum(CASE WHEN $1 THEN 1 WHEN NOT $1 THEN 0 END)"),
    ("countif", "sum(CASE WHEN $1 THEN 1 WHEN NOT $1 THEN 0 END)"),
    // `mode_of_elements` returns the least of several most frequent values, whatever the order of
    // the rows.
    ("mode", "mode_of_elements(array_agg($1))"),
    (
        "quantile_disc",
        "array_element(array_sort(array_agg($1) FILTER (WHERE $1 IS NOT NULL)), CASE WHEN ceil(count($1) * $2) < 1 THEN 1 ELSE CAST(ceil(count($1) * $2) AS BIGINT) END)",
    ),
    (
        DESCENDING_QUANTILE,
        "array_element(array_sort(array_agg($1) FILTER (WHERE $1 IS NOT NULL)), -CASE WHEN ceil(count($1) * $2) < 1 THEN 1 ELSE CAST(ceil(count($1) * $2) AS BIGINT) END)",
    ),
    ("sem", "stddev_pop($1) / sqrt(count($1))"),
    ("geomean", "exp(avg(ln($1)))"),
    ("geometric_mean", "exp(avg(ln($1)))"),
    // The second sort key, the result itself, makes the choice independent of the order of the
    // rows.
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
    ("arg_max", ARG_OF_GREATEST),
    ("max_by", ARG_OF_GREATEST),
    ("argmax", ARG_OF_GREATEST),
    ("arg_min", ARG_OF_LEAST),
    ("min_by", ARG_OF_LEAST),
    ("argmin", ARG_OF_LEAST),
    (
        SEVERAL_GREATEST,
        "array_slice(array_agg($1 ORDER BY $1 DESC) FILTER (WHERE $1 IS NOT NULL), 1, $2)",
    ),
    (SEVERAL_LEAST, "array_slice(array_agg($1 ORDER BY $1) FILTER (WHERE $1 IS NOT NULL), 1, $2)"),
    // The first sort key puts the rows in which an argument is NULL after all others. If the first
    // row is such a row, all rows are, and the result is NULL.
    (
        GREATEST_OF_WINDOW,
        "first_value(CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN $1 END) OVER (ORDER BY ($1 IS NULL OR $2 IS NULL), $2 DESC, $1 ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
    (
        LEAST_OF_WINDOW,
        "first_value(CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN $1 END) OVER (ORDER BY ($1 IS NULL OR $2 IS NULL), $2, $1 ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
];

/// Expansions of `arg_max(x, y, n)` and `arg_min(x, y, n)`.
const ARG_OF_GREATEST: &str = "array_slice(array_agg($1 ORDER BY $2 DESC, $1) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL), 1, $3)";
const ARG_OF_LEAST: &str = "array_slice(array_agg($1 ORDER BY $2, $1) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL), 1, $3)";

/// Name of the expansion of `percentile_disc(q) WITHIN GROUP (ORDER BY x DESC)`. Statements cannot
/// use this name, because it contains blanks.
const DESCENDING_QUANTILE: &str = "quantile_disc of descending values";

/// Names of the expansions of `max(x, n)` and `min(x, n)`, and of `arg_max` and `arg_min` with
/// OVER. Statements cannot use these names, because they contain blanks.
const SEVERAL_GREATEST: &str = "max of several";
const SEVERAL_LEAST: &str = "min of several";
const GREATEST_OF_WINDOW: &str = "arg_max of a window";
const LEAST_OF_WINDOW: &str = "arg_min of a window";

/// Names of the expansions of `time_bucket` without an origin: as in DuckDB, buckets begin on a
/// Monday, and buckets of months in January. The third expansion tests at run time whether a width
/// has months. Statements cannot use these names, because they contain blanks.
const BUCKETS_OF_DAYS: &str = "time_bucket of days";
const BUCKETS_OF_MONTHS: &str = "time_bucket of months";
const BUCKETS_OF_COMPUTED_WIDTHS: &str = "time_bucket of computed widths";

/// Names of the expansions of `time_bucket` with an origin. As in DuckDB, buckets of months count
/// from the month of the origin, whatever its day and time.
const BUCKETS_OF_MONTHS_FROM: &str = "time_bucket of months from an origin";
const BUCKETS_OF_COMPUTED_WIDTHS_FROM: &str = "time_bucket of computed widths from an origin";

static EXPANSIONS: LazyLock<HashMap<(&str, usize), Expr>> = LazyLock::new(|| {
    let parse = |text: &str| {
        let mut parser = Parser::new(&DuckDbDialect {}).try_with_sql(text).ok()?;
        parser.parse_expr().ok()
    };
    let arity = |text: &str| (1..=6).rev().find(|n| text.contains(&format!("${n}")));
    let expansions =
        SHORTHANDS.iter().filter_map(|(name, text)| Some(((*name, arity(text)?), parse(text)?)));
    expansions.collect()
});

/// Returns the numbers of arguments that a shorthand takes, ascending; empty for another name.
pub(in crate::sql) fn list_shorthand_arities(name: &str) -> Vec<usize> {
    let mut arities: Vec<usize> =
        EXPANSIONS.keys().filter(|(known, _)| *known == name).map(|(_, arity)| *arity).collect();
    if name == "time_bucket" {
        arities.push(2);
    }
    arities.sort_unstable();
    arities
}

/// Returns the expansions of a shorthand, in which `$1` is the first argument. The second string is
/// the condition under which the expansion applies, such as `" for a width of months"`, and is
/// empty if it always applies. Returns an empty vector if `name` is not a shorthand.
#[cfg(feature = "cli")]
pub(crate) fn list_shorthand_forms(name: &str) -> Vec<(&'static str, &'static str)> {
    let condition = |known: &str| match (name, known) {
        ("time_bucket", "time_bucket" | BUCKETS_OF_DAYS) => {
            Some(" for a width of days or shorter parts")
        }
        ("time_bucket", BUCKETS_OF_MONTHS | BUCKETS_OF_MONTHS_FROM) => {
            Some(" for a width of months")
        }
        _ if known == name => Some(""),
        _ => None,
    };
    let forms = SHORTHANDS.iter().filter_map(|(known, text)| Some((*text, condition(known)?)));
    forms.collect()
}

pub(crate) fn list_shorthand_names() -> impl Iterator<Item = &'static str> {
    let names = SHORTHANDS.iter().map(|(name, _)| *name).filter(|name| !name.contains(' '));
    // `names` repeats the name of a shorthand that takes different numbers of arguments.
    let unique: BTreeSet<&str> = names.collect();
    unique.into_iter()
}

/// Replaces a call of a shorthand with its expansion, and leaves other expressions unchanged.
pub(in crate::sql) fn expand_shorthand(expr: &mut Expr) {
    if let Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: of } = expr {
        let of = std::mem::replace(of.as_mut(), Expr::value(Value::Null));
        *expr = call_function("bit_not", vec![of]);
        return;
    }
    let Expr::Function(call) = expr else { return };
    move_order_to_group(call);
    if let Some(first) = find_ordered_any(call) {
        *call = first;
        return;
    }
    if let Some(plain) = remove_within_group(call) {
        *call = plain;
    }
    if let Some(list) = list_quantiles(call) {
        *expr = list;
        return;
    }
    if let Some(name) = find_window_extreme(call) {
        let Some(args) = find_plain_arguments(call) else { return };
        let Some(mut expansion) = EXPANSIONS.get(&(name, args.len())).cloned() else { return };
        let mut inserter = ArgumentInserter { args: &args, over: None, filter: None };
        let _ = VisitMut::visit(&mut expansion, &mut inserter);
        if let Expr::Function(window) = &mut expansion
            && let Some(WindowType::WindowSpec(spec)) = &mut window.over
            && let Some(WindowType::WindowSpec(given)) = &mut call.over
        {
            spec.partition_by = std::mem::take(&mut given.partition_by);
            *expr = expansion;
        }
        return;
    }
    let Some(name) = find_shorthand_name(call) else { return };
    let Some(mut args) = find_plain_arguments(call) else { return };
    if let Some(shifted) = shift_buckets(name, &args) {
        *expr = shifted;
        return;
    }
    let name = match (name, args.as_slice()) {
        ("arg_max" | "max_by" | "argmax" | "arg_min" | "min_by" | "argmin", [_, _, count])
            if !is_count(count) =>
        {
            return;
        }
        ("time_bucket", [width, _]) if is_computed(width) => BUCKETS_OF_COMPUTED_WIDTHS,
        ("time_bucket", [width, _]) if is_of_months(width) => BUCKETS_OF_MONTHS,
        ("time_bucket", [_, _]) => BUCKETS_OF_DAYS,
        ("time_bucket", [width, _, _]) if is_computed(width) => BUCKETS_OF_COMPUTED_WIDTHS_FROM,
        ("time_bucket", [width, _, _]) if is_of_months(width) => BUCKETS_OF_MONTHS_FROM,
        _ => name,
    };
    let Some(expansion) = EXPANSIONS.get(&(name, args.len())) else { return };
    let mut expansion = expansion.clone();
    if let ("quantile_disc" | DESCENDING_QUANTILE, [_, quantile]) = (name, args.as_mut_slice()) {
        cast_quantile(quantile);
    }
    let (over, filter) = (call.over.take(), call.filter.take());
    let _ = VisitMut::visit(&mut expansion, &mut ArgumentInserter { args: &args, over, filter });
    *expr = match expansion {
        call @ Expr::Function(_) => call,
        other => Expr::Nested(Box::new(other)),
    };
}

/// Rewrites `time_bucket(width, t, INTERVAL '2 days')`, whose buckets begin two days later than by
/// default, to `time_bucket(width, t - INTERVAL '2 days') + INTERVAL '2 days'`, and expands it.
/// Returns `None` for other calls.
fn shift_buckets(name: &str, args: &[Expr]) -> Option<Expr> {
    let ("time_bucket", [width, time, offset @ Expr::Interval(_)]) = (name, args) else {
        return None;
    };
    let offset = || Box::new(offset.clone());
    let earlier = Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(time.clone()))),
        op: BinaryOperator::Minus,
        right: offset(),
    };
    let mut start = call_function(name, vec![width.clone(), earlier]);
    expand_shorthand(&mut start);
    let shifted =
        Expr::BinaryOp { left: Box::new(start), op: BinaryOperator::Plus, right: offset() };
    Some(Expr::Nested(Box::new(shifted)))
}

/// Casts a literal quantile such as 0.55, or a parameter, to a decimal, so that its product with a
/// number of rows is exact: as floats, 100 * 0.55 is greater than 55.
fn cast_quantile(quantile: &mut Expr) {
    let Expr::Value(value) = &*quantile else { return };
    let is_cast = match &value.value {
        Value::Number(text, _) => is_short_fraction(text),
        Value::Placeholder(_) => true,
        _ => false,
    };
    if is_cast {
        *quantile = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(quantile.clone()),
            data_type: DataType::Decimal(ExactNumberInfo::PrecisionAndScale(16, 15)),
            array: false,
            format: None,
        };
    }
}

/// Whether a number is at least 0 and less than 2, and has at most 15 digits after the point.
fn is_short_fraction(number: &str) -> bool {
    number.split_once('.').is_some_and(|(whole, fraction)| {
        matches!(whole, "" | "0" | "1")
            && fraction.len() <= 15
            && fraction.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Rewrites `quantile_cont(x, q ORDER BY x DESC)` to `quantile_cont(q) WITHIN GROUP (ORDER BY x
/// DESC)`, and leaves calls with other sort keys unchanged.
fn move_order_to_group(call: &mut Function) {
    if let Some(moved) = find_moved_order(call) {
        *call = moved;
    }
}

fn find_moved_order(call: &Function) -> Option<Function> {
    let name = to_plain_name(&call.name)?;
    if !["quantile_cont", "quantile_disc"].contains(&name.as_str()) || !call.within_group.is_empty()
    {
        return None;
    }
    let FunctionArguments::List(list) = &call.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value)), _] = list.args.as_slice() else {
        return None;
    };
    let [FunctionArgumentClause::OrderBy(keys)] = list.clauses.as_slice() else { return None };
    if keys.len() != 1 || keys.first()?.expr != *value {
        return None;
    }
    let mut moved = call.clone();
    moved.within_group.clone_from(keys);
    if let FunctionArguments::List(list) = &mut moved.args {
        list.args.remove(0);
        list.clauses.clear();
    }
    Some(moved)
}

/// Rewrites `any_value(x ORDER BY y)` to `first_value(x ORDER BY y) FILTER (WHERE x IS NOT NULL)`,
/// because DataFusion ignores the order of `any_value`. Returns `None` for any other call.
///
/// No upstream issue was found. This workaround is obsolete once the test
/// `stock_any_value_still_ignores_its_order` fails.
fn find_ordered_any(call: &Function) -> Option<Function> {
    let is_plain = call.over.is_none() && call.null_treatment.is_none();
    if to_plain_name(&call.name)?.as_str() != "any_value" || !is_plain || !has_order(call) {
        return None;
    }
    let FunctionArguments::List(list) = &call.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = list.args.as_slice() else {
        return None;
    };
    let is_value = Expr::IsNotNull(Box::new(Expr::Nested(Box::new(value.clone()))));
    let mut first = call.clone();
    first.name = ObjectName::from(vec![Ident::new("first_value")]);
    first.filter = combine_conditions(Some(Box::new(is_value)), first.filter.take());
    if let FunctionArguments::List(list) = &mut first.args {
        // DISTINCT has no effect: the first of the distinct values is the first of all values.
        list.duplicate_treatment = None;
    }
    Some(first)
}

/// Rewrites `mode() WITHIN GROUP (ORDER BY x)` to `mode(x)`, and
/// `percentile_disc(q) WITHIN GROUP (ORDER BY x)` to `quantile_disc(x, q)` or, with DESC, to a call
/// of [`DESCENDING_QUANTILE`]. With OVER, rewrites `percentile_cont` to `quantile_cont(x, q)`.
/// Returns `None` for any other call.
fn remove_within_group(call: &Function) -> Option<Function> {
    let [OrderByExpr { expr, options, .. }] = call.within_group.as_slice() else { return None };
    let is_descending = options.asc == Some(false);
    let name = match (to_plain_name(&call.name)?.as_str(), find_plain_arguments(call)?.len()) {
        ("mode", 0) => "mode",
        ("percentile_disc" | "quantile_disc", 1) if is_descending => DESCENDING_QUANTILE,
        ("percentile_disc" | "quantile_disc", 1) => "quantile_disc",
        // DataFusion takes no WITHIN GROUP with OVER, but takes `quantile_cont(x, q)` with OVER.
        ("percentile_cont" | "quantile_cont", 1) if call.over.is_some() && !is_descending => {
            "quantile_cont"
        }
        _ => return None,
    };
    let mut plain = call.clone();
    plain.name = ObjectName::from(vec![Ident::new(name)]);
    plain.within_group.clear();
    if let FunctionArguments::List(list) = &mut plain.args {
        list.args.insert(0, FunctionArg::Unnamed(FunctionArgExpr::Expr(expr.clone())));
    }
    Some(plain)
}

/// Returns, for `quantile_cont(x, [0.1, 0.9])`, an expression that makes a list of one call for
/// each quantile, and is NULL if there are no values, as in DuckDB. Returns `None` for any other
/// call.
fn list_quantiles(call: &Function) -> Option<Expr> {
    let name = to_plain_name(&call.name)?;
    let names = ["quantile_cont", "percentile_cont", "quantile_disc", DESCENDING_QUANTILE];
    if !names.contains(&name.as_str()) {
        return None;
    }
    let args = find_plain_arguments(call)?;
    let (value, quantiles) = match (args.as_slice(), call.within_group.as_slice()) {
        ([value, Expr::Array(quantiles)], []) => (Some(value), quantiles),
        ([Expr::Array(quantiles)], [_]) => (None, quantiles),
        _ => return None,
    };
    let calls = quantiles.elem.iter().map(|quantile| {
        let mut one = call.clone();
        if let FunctionArguments::List(list) = &mut one.args {
            let args = value.into_iter().chain([quantile]).cloned();
            list.args = args.map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
        }
        Expr::Function(one)
    });
    let calls: Vec<Expr> = calls.collect();
    let first = calls.first().cloned();
    let list = call_function("make_array", calls);
    let Some(first) = first else { return Some(list) };
    let has_values = Expr::IsNotNull(Box::new(first));
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition: has_values, result: list }],
        else_result: None,
    })
}

/// Names result columns after the calls of shorthands in the statement instead of their expansions,
/// and makes ORDER BY refer to these columns.
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
        // An alias that equals the text of its expression was added by `name_repeated`, so the
        // column counts as one without an alias.
        if let SelectItem::ExprWithAlias { expr, alias } = item
            && has_expr(expr, is_shorthand)
            && alias.value == expr.to_string()
        {
            names.push(alias.value.clone());
        }
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        if !has_expr(expr, is_shorthand) {
            continue;
        }
        let name = write_expr(expr);
        name_item(item, name.clone());
        names.push(name);
    }
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else {
        return;
    };
    for key in keys {
        let name = write_expr(&key.expr);
        if names.contains(&name) {
            key.expr = Expr::Identifier(Ident::with_quote('"', name));
        }
    }
}

/// Returns the SQL of an expression without the quotes around argument names, which
/// `rewrite_known_forms` may have added.
fn write_expr(expr: &Expr) -> String {
    let mut plain = expr.clone();
    for_each_expr_mut(&mut plain, |e| {
        if let Expr::Function(call) = e
            && let FunctionArguments::List(list) = &mut call.args
        {
            for arg in &mut list.args {
                if let FunctionArg::Named { name, .. } = arg {
                    name.quote_style = None;
                }
            }
        }
    });
    plain.to_string()
}

/// Returns the name of the shorthand in [`SHORTHANDS`] that a call uses, or `None` if it uses none.
/// A call with OVER or FILTER is a shorthand only if its expansion accepts that clause.
fn find_shorthand_name(call: &Function) -> Option<&'static str> {
    let name = to_plain_name(&call.name)?;
    let name = match name.as_str() {
        "max" if has_count(call) => SEVERAL_GREATEST,
        "min" if has_count(call) => SEVERAL_LEAST,
        name => name,
    };
    let (name, expansion) = SHORTHANDS.iter().find(|(shorthand, _)| *shorthand == name)?;
    let has_clauses = call.null_treatment.is_some()
        || !call.within_group.is_empty()
        || (call.over.is_some() && expansion.contains("ORDER BY"))
        || ((call.over.is_some() || call.filter.is_some()) && !is_aggregate(expansion));
    (!has_clauses).then_some(*name)
}

/// Whether a call has two arguments, and the second is a number of values: `max(x, 3)`.
fn has_count(call: &Function) -> bool {
    let FunctionArguments::List(list) = &call.args else { return false };
    match list.args.as_slice() {
        [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(count))] => is_count(count),
        _ => false,
    }
}

/// Whether an expression is an integer literal above 0. An expansion uses the number as the end of
/// a slice, which would read a negative number as a position from the end.
fn is_count(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(&value.value, Value::Number(number, _)
        if number.parse::<i64>().is_ok_and(|count| count > 0)))
}

/// Returns the name of the expansion of `arg_max(x, y) OVER (PARTITION BY ..)` or `arg_min`.
/// Returns `None` for other calls. These include calls with an order or a frame in OVER, because
/// the expansion needs its own order and frame.
fn find_window_extreme(call: &Function) -> Option<&'static str> {
    let Some(WindowType::WindowSpec(spec)) = &call.over else { return None };
    let is_whole =
        spec.window_name.is_none() && spec.order_by.is_empty() && spec.window_frame.is_none();
    let has_clauses =
        call.filter.is_some() || call.null_treatment.is_some() || !call.within_group.is_empty();
    if !is_whole || has_clauses {
        return None;
    }
    let name = match to_plain_name(&call.name)?.as_str() {
        "arg_max" | "max_by" | "argmax" => GREATEST_OF_WINDOW,
        "arg_min" | "min_by" | "argmin" => LEAST_OF_WINDOW,
        _ => return None,
    };
    (find_plain_arguments(call)?.len() == 2).then_some(name)
}

/// Aggregates that expansions call. Each call gets the OVER and FILTER of the shorthand.
const AGGREGATES: [&str; 6] = ["array_agg", "avg", "count", "first_value", "stddev_pop", "sum"];

/// Whether an expansion calls an aggregate. The call `ragged_count(..)` is not one of `count`.
fn is_aggregate(expansion: &str) -> bool {
    let is_of_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    AGGREGATES.iter().any(|name| {
        let mut found = expansion.match_indices(name);
        found.any(|(at, _)| {
            !expansion[..at].ends_with(is_of_name) && expansion[at + name.len()..].starts_with('(')
        })
    })
}

/// Returns the arguments of a call. Returns `None` if an argument has a name or is `*`, or if the
/// parentheses also contain DISTINCT or a clause such as ORDER BY.
fn find_plain_arguments(call: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &call.args else { return None };
    if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return None;
    }
    list_plain_arguments(&list.args)
}

/// Whether the statement does not show the value of a width, because the width contains a
/// parameter, a column or a subquery.
fn is_computed(width: &Expr) -> bool {
    has_expr(width, |part| match part {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::CompoundFieldAccess { .. }
        | Expr::Subquery(_) => true,
        Expr::Value(value) => matches!(value.value, Value::Placeholder(_)),
        _ => false,
    })
}

/// Whether a width is an interval of months or years, as written: `INTERVAL '1 mon'`, `INTERVAL 2
/// YEAR` or `to_months(3)`.
fn is_of_months(interval: &Expr) -> bool {
    let text = interval.to_string().to_ascii_lowercase();
    text.split(|c: char| !c.is_ascii_alphabetic()).any(|word| UNITS_OF_MONTHS.contains(&word))
}

/// Names of the units of intervals that are a number of months.
const UNITS_OF_MONTHS: [&str; 21] = [
    "mo",
    "mon",
    "mons",
    "month",
    "months",
    "quarter",
    "quarters",
    "y",
    "yr",
    "yrs",
    "year",
    "years",
    "dec",
    "decs",
    "decade",
    "decades",
    "c",
    "cent",
    "cents",
    "century",
    "centuries",
];

fn combine_conditions(a: Option<Box<Expr>>, b: Option<Box<Expr>>) -> Option<Box<Expr>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Box::new(Expr::BinaryOp {
            left: Box::new(Expr::Nested(a)),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(b)),
        })),
        (one, other) => one.or(other),
    }
}

/// Inserts the arguments of a shorthand, and the clauses after its parentheses, into its expansion.
struct ArgumentInserter<'a> {
    args: &'a [Expr],
    over: Option<WindowType>,
    filter: Option<Box<Expr>>,
}

impl VisitorMut for ArgumentInserter<'_> {
    type Break = ();

    // Runs after the children are visited, so that `$1` and calls within an argument or a clause
    // stay unchanged.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expr
            && to_plain_name(&call.name).is_some_and(|name| AGGREGATES.contains(&name.as_str()))
        {
            // If the shorthand has no OVER to insert, an OVER in the expansion itself stays.
            if self.over.is_some() {
                call.over.clone_from(&self.over);
            }
            call.filter = combine_conditions(call.filter.take(), self.filter.clone());
        }
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

fn is_shorthand(expr: &Expr) -> bool {
    let is_call = match expr {
        Expr::Function(call) => {
            find_shorthand_name(call).is_some()
                || list_quantiles(call).is_some()
                || remove_within_group(call).is_some()
                || find_moved_order(call).is_some()
                || find_ordered_any(call).is_some()
                || find_window_extreme(call).is_some()
        }
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, .. } => true,
        _ => false,
    };
    is_call || computes_interval(expr) || has_position(expr)
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
        let page = include_str!("../../../../docs/sql.md");
        for (name, _) in SHORTHANDS.iter().filter(|(name, _)| !name.contains(' ')) {
            assert!(page.contains(&format!("`{name}")), "docs/sql.md has no {name}");
        }
    }
}
