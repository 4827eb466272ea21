//! Comparisons with casts that the simplifier would move to the literal.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast, lit,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use serrate_core::internal::times::count_nanoseconds;

use crate::sql::base::expression_parts::{SavedNames, find_columns_below, has_part, map_columns};
use crate::sql::workarounds::grouping::dependencies::COMPUTED_COLUMN;

/// Alias that hides a cast from the simplifier while the simplifier runs.
const HELD: &str = "__serrate_cast";

/// Applies `simplify_expressions` so that a comparison with a cast keeps its meaning.
///
/// DataFusion 55 moves a cast from one side of a comparison to the literal on the other side. If
/// the cast rounds, as in `1.25::INT = 1`, or may be NULL, as in
/// `TRY_CAST(3000000000 AS INT) <> 5`, this changes the answer. This rule keeps such casts where
/// they are. This workaround is obsolete once the test `stock_casts_still_move_to_literals` fails.
///
/// DataFusion 55 replaces `CAST(x AS TIMESTAMP(6)) = t` for an `x` in milliseconds with `x = t` and
/// truncates `t` to milliseconds. This rule compares `x` exactly: for a `t` between two
/// milliseconds, `<` becomes `<=` with the millisecond before `t`. DataFusion also ignores that a
/// cast to a time zone other than UTC changes the stored integer. This workaround is obsolete once
/// the test `stock_casts_to_finer_units_still_round_literals` fails.
pub(in crate::sql) fn keep_compared_casts(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if !has_part(&plan, is_movable) {
        return stock.rewrite(plan, config);
    }
    let schema = find_columns_below(&plan)?;
    let saved = SavedNames::new(&plan)?;
    let exact = map_columns(plan, |e| {
        let hidden = e.transform_up(|e| Ok(hide_moved(e, &schema)))?;
        let exact = hidden.data.transform_up(|e| compare_exactly(e, &schema))?;
        let held = exact.data.transform_down(|e| Ok(hold_cast(e, &schema)))?;
        Ok(Transformed::new_transformed(held.data, hidden.transformed || exact.transformed))
    })?;
    let done = stock.rewrite(exact.data, config)?;
    let shown = saved.restore_over(done.data, |e| {
        let shown = e.transform_down(|e| {
            Ok(match e {
                Expr::Alias(alias) if alias.name.contains(HELD) => Transformed::yes(*alias.expr),
                e => Transformed::no(e),
            })
        })?;
        shown.data.transform_up(|e| compare_exactly(e, &schema))
    })?;
    let changed = exact.transformed || done.transformed || shown.transformed;
    Ok(Transformed::new(shown.data, changed, TreeNodeRecursion::Continue))
}

/// Whether an expression is TRY_CAST or a cast to a timestamp, integer or decimal, which the
/// simplifier may move to the other side of a comparison.
fn is_movable(e: &Expr) -> bool {
    match e {
        Expr::TryCast(_) => true,
        Expr::Cast(Cast { field, .. }) => {
            let to = field.data_type();
            matches!(to, DataType::Timestamp(..)) || to.is_integer() || to.is_decimal()
        }
        _ => false,
    }
}

/// If an expression casts a timestamp to a finer unit, returns the timestamp, its unit and the
/// finer unit.
fn find_finer_cast<'a>(e: &'a Expr, schema: &DFSchema) -> Option<(&'a Expr, TimeUnit, TimeUnit)> {
    let Expr::Cast(Cast { expr, field }) = e else { return None };
    let DataType::Timestamp(to, to_zone) = field.data_type() else { return None };
    let DataType::Timestamp(from, zone) = expr.get_type(schema).ok()? else { return None };
    let keeps_count = zone.is_some() || to_zone.as_deref().is_none_or(is_utc);
    (from < *to && keeps_count).then_some((expr, from, *to))
}

pub(in crate::sql) fn is_utc(zone: &str) -> bool {
    ["UTC", "Etc/UTC", "GMT", "Z", "+00:00", "+00"].contains(&zone)
}

/// Whether a comparison of the cast `e` may have another result than a comparison of its operand:
///
/// * A cast of a timestamp without a time zone to one with a zone other than UTC changes the stored
///   integer, and TRY_CAST to a finer unit makes distant times NULL.
/// * A cast of a decimal to an integer, or to fewer digits after the point, rounds.
/// * TRY_CAST to another type is NULL where the type does not represent the value. The simplifier
///   moves a cast of any type if the other side is NULL, as in
///   `TRY_CAST('a' AS INT) IS DISTINCT FROM NULL`.
fn is_moved(e: &Expr, schema: &DFSchema) -> bool {
    let (Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field })) = e else {
        return false;
    };
    let Ok(from) = expr.get_type(schema) else { return false };
    let may_be_null = matches!(e, Expr::TryCast(_));
    let moves = match (&from, field.data_type()) {
        (DataType::Timestamp(from, of_zone), DataType::Timestamp(to, zone)) => {
            let other_zone = of_zone.is_none() && zone.as_deref().is_some_and(|z| !is_utc(z));
            other_zone || (may_be_null && from < to)
        }
        (from, to) if is_exact_number(from) && is_exact_number(to) => {
            find_scale(to) < find_scale(from) || (may_be_null && from != to)
        }
        (from, to) => may_be_null && from != to,
    };
    // Also checks the operand, because the simplifier moves a cast in the operand once it has moved
    // this cast.
    moves || is_moved(expr, schema)
}

fn is_exact_number(t: &DataType) -> bool {
    t.is_integer() || t.is_decimal()
}

fn find_scale(t: &DataType) -> i8 {
    match t {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    }
}

/// Wraps compared casts for which [`is_moved`] is true in a function that is opaque to the
/// simplifier.
fn hide_moved(e: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let hide = |e: Box<Expr>| match is_moved(&e, schema) {
        true => Box::new(COMPUTED_COLUMN.call(vec![*e])),
        false => e,
    };
    match e {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if op.negate().is_some() && (is_moved(&left, schema) || is_moved(&right, schema)) =>
        {
            let pair = BinaryExpr { left: hide(left), op, right: hide(right) };
            Transformed::yes(Expr::BinaryExpr(pair))
        }
        Expr::InList(InList { expr, list, negated }) if is_moved(&expr, schema) => {
            Transformed::yes(Expr::InList(InList { expr: hide(expr), list, negated }))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_moved(&expr, schema) => {
            Transformed::yes(Expr::Between(Between { expr: hide(expr), negated, low, high }))
        }
        e => Transformed::no(e),
    }
}

/// Hides a cast to a finer unit from the simplifier with the alias [`HELD`], if the cast is
/// compared with an expression that the simplifier may turn into a literal.
fn hold_cast(e: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_held = |e: &Expr, other: &Expr| {
        !matches!(other, Expr::Literal(..) | Expr::Column(_))
            && find_finer_cast(e, schema).is_some()
    };
    match e {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.negate().is_some() => {
            let (hold_left, hold_right) = (is_held(&left, &right), is_held(&right, &left));
            let hold = |e: Box<Expr>, is_held| if is_held { Box::new(e.alias(HELD)) } else { e };
            let pair =
                BinaryExpr { left: hold(left, hold_left), op, right: hold(right, hold_right) };
            Transformed::new_transformed(Expr::BinaryExpr(pair), hold_left || hold_right)
        }
        Expr::InList(InList { expr, list, negated })
            if list.iter().any(|value| is_held(&expr, value)) =>
        {
            let expr = Box::new(expr.alias(HELD));
            Transformed::yes(Expr::InList(InList { expr, list, negated }))
        }
        e => Transformed::no(e),
    }
}

/// Rewrites comparisons such as `CAST(time AS TIMESTAMP(6)) < t`, in which the literal `t` has
/// digits that the unit of `time` lacks, to comparisons of `time` itself with the last time in this
/// unit before `t`.
fn compare_exactly(e: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match e {
        Expr::BinaryExpr(pair) => {
            let exact = match (&*pair.left, &*pair.right) {
                (cast, Expr::Literal(value, _)) => compare_time(cast, pair.op, value, schema),
                (Expr::Literal(value, _), cast) => {
                    pair.op.swap().and_then(|op| compare_time(cast, op, value, schema))
                }
                _ => None,
            };
            match exact {
                Some(exact) => Transformed::yes(exact),
                None => Transformed::no(Expr::BinaryExpr(pair)),
            }
        }
        Expr::InList(list) => match remove_inexact(&list, schema) {
            Some(exact) => Transformed::yes(exact),
            None => Transformed::no(Expr::InList(list)),
        },
        Expr::Between(between)
            if find_finer_cast(&between.expr, schema).is_some() && !between.expr.is_volatile() =>
        {
            let Between { expr, negated, low, high } = between;
            let both = match negated {
                false => (*expr).clone().gt_eq(*low).and((*expr).lt_eq(*high)),
                true => (*expr).clone().lt(*low).or((*expr).gt(*high)),
            };
            let exact = both.transform_up(|e| match e {
                Expr::BinaryExpr(_) => compare_exactly(e, schema),
                e => Ok(Transformed::no(e)),
            })?;
            Transformed::yes(exact.data)
        }
        e => Transformed::no(e),
    })
}

/// Returns the last time in unit `from` before a literal in the finer unit `to`. Returns `None` if
/// the literal is itself a time in unit `from`.
fn find_time_before(value: &ScalarValue, from: TimeUnit, to: TimeUnit) -> Option<i64> {
    let count = match value {
        ScalarValue::TimestampSecond(count, _)
        | ScalarValue::TimestampMillisecond(count, _)
        | ScalarValue::TimestampMicrosecond(count, _)
        | ScalarValue::TimestampNanosecond(count, _) => i128::from((*count)?),
        _ => return None,
    };
    let ratio = count_nanoseconds(from) / count_nanoseconds(to);
    (count % ratio != 0).then(|| i64::try_from(count.div_euclid(ratio)).ok())?
}

fn compare_time(cast: &Expr, op: Operator, value: &ScalarValue, schema: &DFSchema) -> Option<Expr> {
    let (time, from, to) = find_finer_cast(cast, schema)?;
    if !matches!(value.data_type(), DataType::Timestamp(unit, _) if unit == to) {
        return None;
    }
    let count = find_time_before(value, from, to)?;
    let DataType::Timestamp(_, zone) = time.get_type(schema).ok()? else { return None };
    let count = match from {
        TimeUnit::Second => ScalarValue::TimestampSecond(Some(count), zone),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(Some(count), zone),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(Some(count), zone),
        TimeUnit::Nanosecond => return None,
    };
    let before = Expr::Literal(count, None);
    let time = time.clone();
    Some(match op {
        Operator::Lt | Operator::LtEq => time.lt_eq(before),
        Operator::Gt | Operator::GtEq => time.gt(before),
        Operator::Eq => make_equal_to_none(time, false),
        Operator::NotEq => make_equal_to_none(time, true),
        Operator::IsDistinctFrom => lit(true),
        Operator::IsNotDistinctFrom => lit(false),
        _ => return None,
    })
}

/// Replaces `time = t`, or `time <> t` if `negated`, for a `t` that no time in the unit of `time`
/// can equal. The result is FALSE, or TRUE if `negated`, but NULL where `time` is NULL.
fn make_equal_to_none(time: Expr, negated: bool) -> Expr {
    let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
    match negated {
        false => time.is_null().and(unknown),
        true => time.is_not_null().or(unknown),
    }
}

fn remove_inexact(list: &InList, schema: &DFSchema) -> Option<Expr> {
    let (time, from, to) = find_finer_cast(&list.expr, schema)?;
    if !list.list.iter().all(|value| matches!(value, Expr::Literal(..))) {
        return None;
    }
    let is_exact = |value: &&Expr| match value {
        Expr::Literal(value, _) => find_time_before(value, from, to).is_none(),
        _ => true,
    };
    let exact: Vec<Expr> = list.list.iter().filter(is_exact).cloned().collect();
    if exact.len() == list.list.len() {
        return None;
    }
    Some(match exact.is_empty() {
        true => make_equal_to_none(time.clone(), list.negated),
        false => Expr::InList(InList::new(list.expr.clone(), exact, list.negated)),
    })
}
