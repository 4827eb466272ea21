//! Plans products and quotients of numbers and spans of time, which are intervals and durations.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use serrate_core::internal::is_span as is_span_type;

use crate::functions::expression_planners::constant_folding::fold_call;
use crate::functions::span_product::OPERATIONS;

/// Plans products and quotients of spans and numbers. Returns `None` for any other operation.
///
/// This workaround is obsolete once the test `stock_intervals_are_still_not_multiplied` fails.
pub(super) fn plan_span_operation(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let [product, quotient, ratio] = &*OPERATIONS;
    let is_number = |e: &Expr| e.get_type(schema).is_ok_and(|t| t.is_numeric() || t.is_null());
    let is_span = |e: &Expr| is_span(e, schema);
    let function = match expr.op {
        BinaryOperator::Multiply if is_span(&expr.right) => {
            is_number(&expr.left).then_some(product)
        }
        BinaryOperator::Multiply if is_span(&expr.left) => {
            is_number(&expr.right).then_some(product)
        }
        BinaryOperator::Divide if is_span(&expr.left) => match is_span(&expr.right) {
            true => Some(ratio),
            false => is_number(&expr.right).then_some(quotient),
        },
        _ => None,
    };
    let call = function?.call(vec![expr.left.clone(), expr.right.clone()]);
    // A constant becomes a literal, because some functions accept only literal intervals.
    let is_interval = matches!(call.get_type(schema), Ok(DataType::Interval(_)));
    let folded = match &call {
        Expr::ScalarFunction(call) if is_interval => fold_call(call.clone(), schema),
        _ => None,
    };
    Some(folded.unwrap_or(call))
}

/// Whether the value of an expression is an interval or a duration. Does not compute the type of a
/// long chain `a + b + c + ..` of numbers, which would take quadratic time.
fn is_span(e: &Expr, schema: &DFSchema) -> bool {
    let is_time = |t: &DataType| {
        matches!(t, DataType::Timestamp(..) | DataType::Interval(_) | DataType::Duration(_))
    };
    match e {
        Expr::BinaryExpr(BinaryExpr { left: _, op: Operator::Plus | Operator::Minus, right })
            if !right.get_type(schema).is_ok_and(|t| is_time(&t)) =>
        {
            false
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Plus | Operator::Minus, .. }) => {
            e.get_type(schema).is_ok_and(|t| is_span_type(&t))
        }
        Expr::BinaryExpr(_) => false,
        e => e.get_type(schema).is_ok_and(|t| is_span_type(&t)),
    }
}
