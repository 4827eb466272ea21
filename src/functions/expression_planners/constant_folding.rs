//! Evaluates constants while a statement is planned, before the analyzer rules run.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, ScalarFunction};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use serrate_core::internal::times::cast_time;
use serrate_core::internal::zones::may_change;

use crate::array::{leaf_type, list_depth};
use crate::functions::common_unit::find_clock_unit;
use crate::functions::expression_planners::date_arithmetic::may_have_hours;
use crate::functions::operators::needs_decimals;
use crate::kernels::elementwise::{BinaryOp, OperandType, OperationTypes};

pub(crate) fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        // A comparison does not count as constant, because the optimizer must first canonicalize
        // its floats.
        Expr::BinaryExpr(b) => {
            b.op.negate().is_none() && is_constant(&b.left) && is_constant(&b.right)
        }
        Expr::Negative(e) => is_constant(e),
        Expr::Cast(c) => is_constant(&c.expr),
        _ => false,
    }
}

/// Whether the value of an expression may depend on the row, on a group or on a subquery.
pub(crate) fn is_row_based(expr: &Expr) -> bool {
    let depends = |e: &Expr| {
        matches!(
            e,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::LambdaVariable(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
        )
    };
    expr.exists(|e| Ok(depends(e))).unwrap_or(true)
}

/// Evaluates an expression without columns. Returns `None` if it cannot be evaluated at planning,
/// or if its value is not [known](is_known_value) before the analyzer rules have run.
pub(crate) fn fold_constant(expr: Expr, schema: &DFSchema) -> Option<Expr> {
    is_known_value(&expr, schema).then(|| evaluate_constant(expr, schema))?
}

/// Evaluates a call of a function that no analyzer rule replaces. Returns `None` if an argument is
/// not a constant that [`fold_constant`] could evaluate.
pub(super) fn fold_call(call: ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let is_known = call.args.iter().all(|arg| is_known_value(arg, schema));
    is_known.then(|| evaluate_constant(Expr::ScalarFunction(call), schema))?
}

/// Returns one literal for the list of the constants `items`. Returns `None` for an empty list, for
/// elements that are not known at planning, and for elements of several types, which analyzer rules
/// cast to their common type later.
pub(super) fn fold_list(items: &[Expr], schema: &DFSchema) -> Option<Expr> {
    if items.is_empty() || !items.iter().all(|item| is_known_value(item, schema)) {
        return None;
    }
    let types = items.iter().map(|item| item.get_type(schema).ok()).collect::<Option<Vec<_>>>()?;
    let leaves: Vec<&DataType> = types.iter().map(leaf_type).filter(|t| !t.is_null()).collect();
    let is_alike = leaves.iter().all(|t| Some(t) == leaves.first())
        || leaves.iter().all(|t| is_plain_number(t))
        || leaves.iter().all(|t| t.is_string());
    is_alike.then(|| evaluate_constant(make_array(items.to_vec()), schema))?
}

fn evaluate_constant(expr: Expr, schema: &DFSchema) -> Option<Expr> {
    let simplifier = ExprSimplifier::new(SimplifyContext::default());
    let expr = simplifier.coerce(expr, schema).ok()?;
    match simplifier.simplify(expr).ok()? {
        literal @ Expr::Literal(..) => Some(literal),
        _ => None,
    }
}

/// Whether a constant expression has the same value before and after the analyzer rules of this
/// crate. Only such expressions are evaluated here, before these rules run. The optimizer evaluates
/// all other constants, after these rules.
fn is_known_value(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Negative(of) => is_known_value(of, schema),
        Expr::Cast(cast) if is_spelled_interval(cast) => true,
        Expr::Cast(cast) if is_numbered_time(cast) => false,
        Expr::Cast(cast) => {
            is_known_value(&cast.expr, schema)
                && cast
                    .expr
                    .get_type(schema)
                    .is_ok_and(|t| is_plain_cast(&t, cast.field.data_type()))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            is_known_value(left, schema)
                && is_known_value(right, schema)
                && is_plain_operation(left, *op, right, schema)
        }
        _ => false,
    }
}

/// Whether a cast reads an interval whose string has only numbers and spelled-out units, such as
/// `'40 days'`. An analyzer rule rewrites other strings, such as `'5'` and `'1d'`.
fn is_spelled_interval(cast: &Cast) -> bool {
    const UNITS: [&str; 10] = [
        "year",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
        "nanosecond",
    ];
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = cast.expr.as_ref() else { return false };
    let words: Vec<&str> = text.split_whitespace().collect();
    let (parts, rest) = words.as_chunks::<2>();
    let is_part = |[number, unit]: &[&str; 2]| {
        let unit = unit.to_ascii_lowercase();
        number.parse::<f64>().is_ok() && UNITS.contains(&unit.strip_suffix('s').unwrap_or(&unit))
    };
    matches!(cast.field.data_type(), DataType::Interval(IntervalUnit::MonthDayNano))
        && !parts.is_empty()
        && rest.is_empty()
        && parts.iter().all(is_part)
}

/// Whether a cast reads a string of an integer, such as `'10'`, as a time of day. An analyzer rule
/// makes such a cast fail.
fn is_numbered_time(cast: &Cast) -> bool {
    let Expr::Literal(text, _) = cast.expr.as_ref() else { return false };
    let is_number = text.try_as_str().flatten().is_some_and(|text| text.parse::<i64>().is_ok());
    is_number && find_clock_unit(cast.field.data_type()).is_some()
}

/// Whether no analyzer rule changes a cast of a constant from type `from` to type `to`.
fn is_plain_cast(from: &DataType, to: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Int32, Timestamp};
    use TimeUnit::{Microsecond, Nanosecond};
    if list_depth(from) != list_depth(to) {
        return from.is_null();
    }
    let (from, to) = (leaf_type(from), leaf_type(to));
    match (from, to) {
        _ if from == to || from.is_null() => true,
        (text, Timestamp(Microsecond | Nanosecond, zone)) if text.is_string() => {
            !zone.as_deref().is_some_and(may_change)
        }
        (text, Boolean | Date32 | Date64) if text.is_string() => true,
        (text, to) if text.is_string() => {
            to.is_string()
                || is_plain_number(to)
                || to.is_decimal()
                || find_clock_unit(to).is_some()
        }
        // Casts of floats to decimals are missing here, because an analyzer rule casts float
        // literals to decimals digit by digit.
        (from, to) if from.is_integer() && (to.is_decimal() || to.is_string()) => true,
        (from, to) if is_plain_number(from) && is_plain_number(to) => true,
        (Date32, Int32) | (Int32, Date32) => true,
        (Date32, Timestamp(Microsecond, None)) | (Timestamp(_, None), Date32) => true,
        // Casts to a coarser unit are missing here, because an analyzer rule rounds them down,
        // unlike Arrow.
        (Timestamp(unit, zone), Timestamp(to, to_zone)) => zone == to_zone && to >= unit,
        (from, to) => {
            find_clock_unit(from).is_some() && find_clock_unit(to) >= find_clock_unit(from)
        }
    }
}

/// Whether no analyzer rule changes the operation `left op right`, whose operands are constants.
fn is_plain_operation(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> bool {
    use DataType::{Date32, Interval, Timestamp};
    use IntervalUnit::MonthDayNano;
    use Operator::{
        BitwiseAnd, BitwiseOr, BitwiseShiftLeft, BitwiseShiftRight, Divide, Minus, Modulo,
        Multiply, Plus, StringConcat,
    };
    let (Ok(a), Ok(b)) = (left.get_type(schema), right.get_type(schema)) else { return false };
    // Unsigned integers are excluded: the sum of an unsigned and a signed integer is a decimal, and
    // an analyzer rule adds a check of its digits.
    let is_number = |t: &DataType| is_plain_number(t) && !t.is_unsigned_integer();
    match (op, &a, &b) {
        (StringConcat, a, b) => a.is_string() && b.is_string(),
        (Plus | Minus | Multiply | Divide | Modulo, a, b) if is_number(a) && is_number(b) => true,
        (BitwiseAnd | BitwiseOr | BitwiseShiftLeft | BitwiseShiftRight, a, b) => {
            a.is_signed_integer() && b.is_signed_integer()
        }
        (Plus | Minus, Interval(MonthDayNano), Interval(MonthDayNano)) => true,
        (Plus | Minus, time, Interval(MonthDayNano)) if is_fine_time(time) => true,
        (Plus, Interval(MonthDayNano), time) if is_fine_time(time) => true,
        (Minus, Timestamp(..), Timestamp(..)) => a == b,
        (Plus | Minus, Date32, Interval(MonthDayNano)) => !may_have_hours(right, &b, schema),
        (Plus, Interval(MonthDayNano), Date32) => !may_have_hours(left, &a, schema),
        _ => false,
    }
}

/// Whether no analyzer rule changes the sum of an interval and a timestamp of type `t`: its unit is
/// microseconds or nanoseconds (rules cast coarser units to microseconds), and it has no zone whose
/// clocks change (a rule replaces such sums).
fn is_fine_time(t: &DataType) -> bool {
    match t {
        DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, zone) => {
            !zone.as_deref().is_some_and(may_change)
        }
        _ => false,
    }
}

fn is_plain_number(t: &DataType) -> bool {
    t.is_integer() || t.is_floating()
}

/// Evaluates the constant `e` to a literal of type `to`. Returns `None` if `e` is not constant, or
/// if `to` cannot represent the value of `e` exactly.
pub(super) fn find_exact_constant(e: &Expr, to: &DataType) -> Option<Expr> {
    let Expr::Literal(value, _) =
        is_constant(e).then(|| fold_constant(e.clone(), &DFSchema::empty()))??
    else {
        return None;
    };
    let cast = value.cast_to(to).ok()?;
    (cast.cast_to(&value.data_type()).ok()? == value).then_some(Expr::Literal(cast, None))
}

/// Replaces arguments such as `CAST('2020-01-01' AS DATE)` with literals, because some arguments
/// must be literals.
pub(super) fn fold_to_literals(mut call: ScalarFunction, schema: &DFSchema) -> Expr {
    for arg in &mut call.args {
        if !matches!(arg, Expr::Literal(..))
            && is_constant(arg)
            && let Some(literal) = fold_constant(arg.clone(), schema)
        {
            *arg = literal;
        }
    }
    Expr::ScalarFunction(call)
}

/// Casts the operand `scalar` of `op`, if it is constant, to the type that `op` needs. This type is
/// often the leaf type of `list`, the type of the other operand. `first` is whether `scalar` is the
/// left operand. Returns `scalar` unchanged if it is not constant or does not fit the type.
pub(super) fn narrow_constant(
    op: BinaryOp,
    scalar: &Expr,
    list: &DataType,
    first: bool,
    schema: &DFSchema,
) -> Expr {
    let narrow = || {
        let constant =
            is_constant(scalar).then(|| fold_constant(scalar.clone(), schema)).flatten()?;
        let Expr::Literal(value, metadata) = constant else { return None };
        let one = value.to_array_of_size(1).ok()?;
        let (leaf, literal) = (OperandType::Leaves(leaf_type(list)), OperandType::Literal(&one));
        let (left, right) = if first { (literal, leaf) } else { (leaf, literal) };
        let types = OperationTypes::new(op, left, right).ok()?;
        let to = if first { types.left() } else { types.right() };
        let leaf = leaf_type(list);
        let is_widened = to != leaf && leaf.is_floating() && value.data_type().is_integer();
        if op.is_comparison() && is_widened {
            // The constant stays an integer: a float literal would be rounded to the type of the
            // leaves.
            return None;
        }
        if to.is_decimal() && !value.data_type().is_numeric() {
            // Only a number becomes a literal of type decimal. Strings and times stay unchanged:
            // the comparison itself converts them to decimals (times to exact seconds).
            return None;
        }
        if needs_decimals(op, leaf, &value.data_type()) && to.is_floating() {
            // The constant stays unchanged: the operator itself converts both operands to decimals
            // without rounding.
            return None;
        }
        let value = match cast_time(&one, to) {
            Some(exact) => ScalarValue::try_from_array(&exact.ok()?, 0).ok()?,
            None => value.cast_to(to).ok()?,
        };
        Some(Expr::Literal(value, metadata))
    };
    narrow().unwrap_or_else(|| scalar.clone())
}
