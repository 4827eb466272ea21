//! Casts dates and timestamps in sums and differences, so that no digits are lost.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};

use crate::array::leaf_type;
use crate::functions::expression_planners::operator_names::list_operation;
use crate::functions::find_scalar;
use crate::functions::lists::NestedListType;
use crate::functions::span_product::is_span_product;
use crate::kernels::elementwise::BinaryOp;

/// Casts the date in date ± duration to a timestamp, as DuckDB does, because DataFusion refuses the
/// operation. Casts the date in the difference of a date and a timestamp to the type of the
/// timestamp, because DataFusion would cast both to nanoseconds. In other sums and differences with
/// an interval or a duration, casts the date or timestamp to the type that [`refine_unit`] chooses.
pub(super) fn cast_date_to_timestamp(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let op = match expr.op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        _ => return expr,
    };
    let is_date = |t: &DataType| matches!(t, DataType::Date32 | DataType::Date64);
    let is_span = |t: &DataType| matches!(t, DataType::Duration(_) | DataType::Interval(_));
    let expr = RawBinaryExpr {
        left: cast_dates_of_case(expr.left, schema),
        right: cast_dates_of_case(expr.right, schema),
        ..expr
    };
    let Ok(right) = expr.right.get_type(schema) else { return expr };
    // Checks the right side first: the type of a long left side `a + b + c + ..` takes time to
    // compute.
    if !is_date(&right) && !is_span(&right) && !matches!(right, DataType::Timestamp(..)) {
        return expr;
    }
    let Ok(left) = expr.left.get_type(schema) else { return expr };
    let cast = |e: Expr, to: &DataType| Expr::Cast(Cast::new(Box::new(e), to.clone()));
    let time = |unit: &TimeUnit| DataType::Timestamp(*unit, None);
    let is_coarse =
        |t: &DataType| matches!(t, DataType::Timestamp(unit, _) if *unit != TimeUnit::Nanosecond);
    match (op, &left, &right) {
        (_, date, DataType::Duration(unit)) if is_date(date) => {
            RawBinaryExpr { left: cast(expr.left, &time(unit)), ..expr }
        }
        (Operator::Plus, DataType::Duration(unit), date) if is_date(date) => {
            RawBinaryExpr { right: cast(expr.right, &time(unit)), ..expr }
        }
        (Operator::Minus, date, times) if is_date(date) && is_coarse(times) => {
            RawBinaryExpr { left: cast(expr.left, times), ..expr }
        }
        (Operator::Minus, times, date) if is_date(date) && is_coarse(times) => {
            RawBinaryExpr { right: cast(expr.right, times), ..expr }
        }
        _ if is_span(&left) || is_span(&right) => {
            match refine_unit(&expr.left, op, &expr.right, schema) {
                Some((left, right)) => RawBinaryExpr { left, right, ..expr },
                None => expr,
            }
        }
        _ => expr,
    }
}

/// Casts the dates of a CASE that also returns timestamps to the type of the first timestamp; other
/// expressions stay unchanged. Before type coercion, a CASE has the type of its first branch. If
/// this branch is a date, a sum or difference with the CASE would be planned for dates only.
fn cast_dates_of_case(e: Expr, schema: &DFSchema) -> Expr {
    let Expr::Case(mut case) = e else { return e };
    let mut branches: Vec<&mut Expr> =
        case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut()).collect();
    branches.extend(case.else_expr.as_deref_mut());
    let types: Vec<Option<DataType>> =
        branches.iter().map(|branch| branch.get_type(schema).ok()).collect();
    let times = types.iter().flatten().find(|t| matches!(t, DataType::Timestamp(..)));
    if let Some(times) = times {
        for (branch, of) in branches.into_iter().zip(&types) {
            if matches!(of, Some(DataType::Date32 | DataType::Date64)) {
                let date = std::mem::take(branch);
                *branch = Expr::Cast(Cast::new(Box::new(date), times.clone()));
            }
        }
    }
    Expr::Case(case)
}

/// Plans arithmetic on lists of dates like arithmetic on scalars: the difference of two dates is a
/// number of days, and a date plus or minus an integer is a date. At least one operand is a list.
/// Returns `None` for operands of other types.
pub(super) fn plan_days(
    op: BinaryOp,
    expr: &RawBinaryExpr,
    left: &DataType,
    right: &DataType,
    schema: &DFSchema,
) -> Option<Expr> {
    let cast = |e: &Expr, t: &DataType, leaf| {
        Expr::Cast(Cast::new(
            Box::new(e.clone()),
            NestedListType::from_type(t).make_plain_leaf(leaf),
        ))
    };
    let is_date = |t: &DataType| *leaf_type(t) == DataType::Date32;
    let is_number = |t: &DataType| leaf_type(t).is_integer();
    let (_, name) = list_operation(&expr.op)?;
    let call = |leaf: DataType| {
        let operands = vec![cast(&expr.left, left, leaf.clone()), cast(&expr.right, right, leaf)];
        find_scalar(name).map(|function| function.call(operands))
    };
    if op == BinaryOp::Sub && is_date(left) && is_date(right) {
        return call(DataType::Int64);
    }
    let moves = is_date(left) && is_number(right) && matches!(op, BinaryOp::Add | BinaryOp::Sub)
        || is_number(left) && is_date(right) && op == BinaryOp::Add;
    if !moves {
        return None;
    }
    let days = call(DataType::Int32)?;
    let days_type = days.get_type(schema).ok()?;
    Some(cast(&days, &days_type, DataType::Date32))
}

/// If one operand has dates and the other has timestamps or durations, casts the dates to
/// timestamps. At least one operand is a list. Returns both operands, or `None` for operands of
/// other types.
pub(super) fn cast_dates_for_times(
    expr: &RawBinaryExpr,
    left: &DataType,
    right: &DataType,
) -> Option<(Expr, Expr)> {
    let times_like = |t: &DataType| match leaf_type(t) {
        DataType::Timestamp(unit, zone) => Some(DataType::Timestamp(*unit, zone.clone())),
        DataType::Duration(unit) => Some(DataType::Timestamp(*unit, None)),
        _ => None,
    };
    let is_date = |t: &DataType| matches!(leaf_type(t), DataType::Date32 | DataType::Date64);
    let cast = |e: &Expr, t: &DataType, times| {
        Expr::Cast(Cast::new(
            Box::new(e.clone()),
            NestedListType::from_type(t).make_plain_leaf(times),
        ))
    };
    match (times_like(left), times_like(right)) {
        (_, Some(times)) if is_date(left) => {
            Some((cast(&expr.left, left, times), expr.right.clone()))
        }
        (Some(times), _) if is_date(right) => {
            Some((expr.left.clone(), cast(&expr.right, right, times)))
        }
        _ => None,
    }
}

/// If one operand has dates and the other has intervals that may have hours, casts the dates to
/// timestamps. Returns both operands, or `None` for operands of other types.
pub(super) fn cast_dates_for_hours(
    expr: &RawBinaryExpr,
    left: &DataType,
    right: &DataType,
    schema: &DFSchema,
) -> Option<(Expr, Expr)> {
    let to_times = |e: &Expr, t: &DataType| {
        let times = DataType::Timestamp(TimeUnit::Microsecond, None);
        Expr::Cast(Cast::new(
            Box::new(e.clone()),
            NestedListType::from_type(t).make_plain_leaf(times),
        ))
    };
    let is_date = |t: &DataType| matches!(leaf_type(t), DataType::Date32 | DataType::Date64);
    if is_date(left) && may_have_hours(&expr.right, leaf_type(right), schema) {
        Some((to_times(&expr.left, left), expr.right.clone()))
    } else if is_date(right) && may_have_hours(&expr.left, leaf_type(left), schema) {
        Some((expr.left.clone(), to_times(&expr.right, right)))
    } else {
        None
    }
}

/// Whether an expression of type `t` is an interval that may have hours or smaller units; false for
/// a literal of whole days and months, and for sums and integer multiples of such literals.
pub(super) fn may_have_hours(expr: &Expr, t: &DataType, schema: &DFSchema) -> bool {
    const NANOSECONDS_PER_DAY: i64 = 86_400_000_000_000;
    if !matches!(t, DataType::Interval(IntervalUnit::DayTime | IntervalUnit::MonthDayNano)) {
        return false;
    }
    let is_known = |e: &Expr| match e.get_type(schema) {
        // A decimal without fraction counts as an integer: if the query of a view is analyzed
        // again, type coercion may already have cast an unsigned integer to such a decimal.
        Ok(t) if t.is_integer() || matches!(t, DataType::Decimal128(_, 0)) => true,
        Ok(t) => matches!(t, DataType::Interval(_)) && !may_have_hours(e, &t, schema),
        Err(_) => false,
    };
    match expr {
        Expr::Literal(value, _) => {
            match value.cast_to(&DataType::Interval(IntervalUnit::MonthDayNano)) {
                Ok(ScalarValue::IntervalMonthDayNano(value)) => {
                    value.is_some_and(|v| v.nanoseconds % NANOSECONDS_PER_DAY != 0)
                }
                _ => true,
            }
        }
        Expr::BinaryExpr(sum) => !(is_known(&sum.left) && is_known(&sum.right)),
        Expr::Negative(of) => !is_known(of),
        Expr::Alias(alias) => !is_known(&alias.expr),
        Expr::ScalarFunction(call) if is_span_product(call) => !call.args.iter().all(is_known),
        _ => true,
    }
}

/// Casts a date or timestamp to a finer type before a sum or difference in which Arrow would drop
/// digits:
///
/// * date ± interval with hours: casts the date to a timestamp;
/// * timestamp in seconds or milliseconds ± interval: casts the timestamp to microseconds;
/// * timestamp ± duration of a finer unit: casts the timestamp to this unit.
///
/// Returns both operands, or `None` for operands of other types.
pub(crate) fn refine_unit(
    left: &Expr,
    op: Operator,
    right: &Expr,
    schema: &DFSchema,
) -> Option<(Expr, Expr)> {
    use TimeUnit::{Microsecond, Millisecond, Second};
    let finer = |instant: &Expr, interval: &Expr| {
        let spans = interval.get_type(schema).ok()?;
        let to = match instant.get_type(schema).ok()? {
            DataType::Date32 | DataType::Date64 if may_have_hours(interval, &spans, schema) => {
                DataType::Timestamp(Microsecond, None)
            }
            DataType::Timestamp(unit, zone) => match spans {
                DataType::Interval(_) if matches!(unit, Second | Millisecond) => {
                    DataType::Timestamp(Microsecond, zone)
                }
                DataType::Duration(span) if span > unit => DataType::Timestamp(span, zone),
                _ => return None,
            },
            _ => return None,
        };
        Some(Expr::Cast(Cast::new(Box::new(instant.clone()), to)))
    };
    match (finer(left, right), op) {
        (Some(left), _) => Some((left, right.clone())),
        (None, Operator::Plus) => Some((left.clone(), finer(right, left)?)),
        (None, _) => None,
    }
}
