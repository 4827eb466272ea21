//! Expressions and functions of DataFusion that cannot fail for any row.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::physical_expr::expressions::{
    BinaryExpr as PhysicalBinaryExpr, CastExpr, Column as PhysicalColumn, IsNullExpr, Literal,
    NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::scalar::ScalarValue;
use regex::Regex;

use super::float_range::may_exceed;
use super::stock_facts::{StockFact, has_fact};
use super::{find_definition, find_scalar};

/// Whether a call of the DataFusion function `name` never fails. `literals` has one item per
/// argument: the value of a literal, `None` for any other expression.
pub(super) fn is_harmless_call(name: &str, literals: &[Option<ScalarValue>]) -> bool {
    match (name, literals) {
        ("substr", [_, Some(start)]) => read_integer(start).is_some(),
        ("substr", [_, Some(start), Some(length)]) => {
            read_integer(start).is_some() && read_integer(length).is_some_and(|n| n >= 0)
        }
        ("split_part", [_, _, Some(field)]) => read_integer(field).is_some_and(|n| n != 0),
        ("regexp_like", [_, Some(pattern)]) => is_pattern(pattern),
        ("regexp_like", [_, Some(pattern), Some(flags)]) => {
            is_pattern(pattern) && flags.try_as_str() == Some(Some("i"))
        }
        _ => has_fact(name, StockFact::NeverFails),
    }
}

/// Returns the value of a literal, or of an expression that only concatenates string literals or
/// casts them to strings. Returns `None` for other expressions.
pub(super) fn read_literal(e: &Expr) -> Option<ScalarValue> {
    match e {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(cast) if cast.field.data_type().is_string() => {
            read_literal(&cast.expr).filter(|value| value.data_type().is_string())
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => {
            let (left, right) = (read_literal(left)?, read_literal(right)?);
            let joined = format!("{}{}", left.try_as_str()??, right.try_as_str()??);
            Some(ScalarValue::from(joined))
        }
        _ => None,
    }
}

/// Returns the value of an integer literal, or 1 for NULL, because neither 1 nor NULL makes a call
/// fail. Returns `None` for any other literal.
fn read_integer(literal: &ScalarValue) -> Option<i64> {
    match literal.data_type() {
        t if t.is_integer() || t.is_null() => match literal.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(value)) => Some(value.unwrap_or(1)),
            _ => None,
        },
        _ => None,
    }
}

fn is_pattern(literal: &ScalarValue) -> bool {
    match literal.try_as_str() {
        Some(Some(pattern)) => Regex::new(pattern).is_ok(),
        Some(None) => true,
        None => literal.is_null(),
    }
}

pub(super) fn operator_cannot_fail(e: &BinaryExpr, schema: &DFSchema) -> Result<bool> {
    use Operator::{
        And, BitwiseAnd, BitwiseOr, BitwiseXor, Divide, Eq, Gt, GtEq, IsDistinctFrom,
        IsNotDistinctFrom, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Or, Plus, RegexIMatch,
        RegexMatch, RegexNotIMatch, RegexNotMatch, StringConcat,
    };
    Ok(match e.op {
        RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch => {
            read_literal(&e.right).is_some_and(|pattern| is_pattern(&pattern))
        }
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom | And | Or
        | BitwiseAnd | BitwiseOr | BitwiseXor | StringConcat => true,
        // Plain operands are integers and floats, whose arithmetic never fails: integers wrap
        // around. On decimals, times and intervals, arithmetic fails on overflow.
        Plus | Minus | Multiply => is_plain(&e.left, schema)? && is_plain(&e.right, schema)?,
        Divide | Modulo => {
            let floats = e.left.get_type(schema)?.is_floating();
            floats && e.right.get_type(schema)?.is_floating()
                || e.left.get_type(schema)?.is_integer() && is_divisor(&e.right)
        }
        _ => false,
    })
}

fn is_plain(e: &Expr, schema: &DFSchema) -> Result<bool> {
    let t = e.get_type(schema)?;
    Ok(t.is_integer() || t.is_floating())
}

/// Whether `e` is a literal by which every integer can be divided: not 0, and not -1 (overflow).
fn is_divisor(e: &Expr) -> bool {
    match e {
        Expr::Literal(value, _) if value.data_type().is_integer() => {
            let is = |n: i64| value.cast_to(&DataType::Int64).ok() == Some(ScalarValue::from(n));
            value.is_null() || !(is(0) || is(-1))
        }
        _ => false,
    }
}

/// Whether a physical expression cannot fail for any row. Returns `false` for some expressions that
/// [`cannot_fail`](super::cannot_fail) recognizes in logical form.
pub(crate) fn physical_cannot_fail(e: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let plain = |e: &Arc<dyn PhysicalExpr>| {
        e.data_type(schema).is_ok_and(|t| t.is_integer() || t.is_floating())
    };
    let alone = if let Some(operation) = e.downcast_ref::<PhysicalBinaryExpr>() {
        use Operator::{And, Eq, Gt, GtEq, Lt, LtEq, Minus, Multiply, NotEq, Or, Plus};
        match operation.op() {
            And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq => true,
            Plus | Minus | Multiply => plain(operation.left()) && plain(operation.right()),
            _ => false,
        }
    } else if let Some(cast) = e.downcast_ref::<CastExpr>() {
        cast.expr().data_type(schema).is_ok_and(|t| cast_cannot_fail(&t, cast.cast_type()))
    } else if let Some(call) = e.downcast_ref::<ScalarFunctionExpr>() {
        let literal = |e: &Arc<dyn PhysicalExpr>| e.is::<Literal>();
        let types = call.args().iter().map(|arg| arg.data_type(schema)).collect::<Result<Vec<_>>>();
        match (find_definition(call.fun()), types) {
            (Some(def), Ok(types)) => {
                let shapes = vec![None; types.len()];
                !def.can_fail(&types, &shapes, call.args().iter().skip(1).all(literal))
            }
            (None, _) if find_scalar(call.name()).is_none() => {
                has_fact(call.name(), StockFact::NeverFails)
            }
            _ => false,
        }
    } else {
        e.is::<PhysicalColumn>() || e.is::<Literal>() || e.is::<NotExpr>() || e.is::<IsNullExpr>()
    };
    alone && e.children().into_iter().all(|child| physical_cannot_fail(child, schema))
}

pub(super) fn cast_cannot_fail(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Dictionary, FixedSizeList, LargeBinary,
        LargeList, LargeUtf8, List, Null, Timestamp, Utf8, Utf8View,
    };
    if from == to || *from == Null {
        return true;
    }
    match (from, to) {
        (Dictionary(_, from), to) => cast_cannot_fail(from, to),
        (Boolean, to) => to.is_numeric() && !to.is_decimal() || to.is_string(),
        (from, to) if from.is_integer() && to.is_integer() => {
            let (Some(from_bits), Some(to_bits)) = (from.primitive_width(), to.primitive_width())
            else {
                return false;
            };
            match (from.is_signed_integer(), to.is_signed_integer()) {
                (true, true) | (false, false) => from_bits <= to_bits,
                (false, true) => from_bits < to_bits,
                (true, false) => false,
            }
        }
        (from, to) if (from.is_integer() || from.is_floating()) && to.is_floating() => {
            !may_exceed(from, to)
        }
        (from, to) if from.is_integer() && to.is_decimal() => {
            let digits = match from.primitive_width() {
                Some(1) => 3,
                Some(2) => 5,
                Some(4) => 10,
                _ => 20,
            };
            matches!(to, DataType::Decimal32(p, s) | DataType::Decimal64(p, s)
                | DataType::Decimal128(p, s) | DataType::Decimal256(p, s)
                if i16::from(*p) - i16::from(*s) >= digits)
        }
        (from, to) if from.is_decimal() && to.is_floating() => !may_exceed(from, to),
        (Utf8 | LargeUtf8 | Utf8View, LargeUtf8 | Utf8View | LargeBinary | BinaryView) => true,
        (Utf8 | Utf8View, Utf8 | Binary) => true,
        (Binary | LargeBinary | BinaryView, LargeBinary | BinaryView) => true,
        (from, Utf8 | LargeUtf8 | Utf8View) => from.is_numeric(),
        (Date32, Date64) | (Timestamp(TimeUnit::Nanosecond, _), Date32) => true,
        (Timestamp(from, from_zone), Timestamp(to, to_zone)) => {
            let scale = |unit: &TimeUnit| match unit {
                TimeUnit::Second => 0,
                TimeUnit::Millisecond => 1,
                TimeUnit::Microsecond => 2,
                TimeUnit::Nanosecond => 3,
            };
            from_zone == to_zone && scale(from) >= scale(to)
        }
        (List(from), List(to) | LargeList(to))
        | (LargeList(from), LargeList(to))
        | (FixedSizeList(from, _), List(to) | LargeList(to)) => {
            cast_cannot_fail(from.data_type(), to.data_type())
        }
        _ => false,
    }
}
