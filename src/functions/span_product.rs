//! Products and quotients of spans (intervals, durations) and numbers, and quotients of two spans.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::{DFSchema, internal_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use serrate_core::internal::{choose_span_type, compute_spans, is_span as is_span_type};

use super::expression_planners::fold_call;
use super::naming::name_operation;
use super::{call_on_arrays, declare};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

static OPERATIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
    [SpanOperation::Product, SpanOperation::Quotient, SpanOperation::Ratio]
        .map(|operation| Arc::new(ScalarUDF::new_from_impl(operation)))
});

/// Returns the functions that [`plan_span_operation`] calls, for plans that are sent to worker processes.
#[cfg(feature = "cluster")]
pub(crate) fn build_span_operations() -> [Arc<ScalarUDF>; 3] {
    OPERATIONS.clone()
}

pub(super) fn is_span_product(call: &ScalarFunction) -> bool {
    call.func.inner().downcast_ref::<SpanOperation>() == Some(&SpanOperation::Product)
}

/// Plans products and quotients of spans and numbers. Returns `None` for any other operation.
///
/// Obsolete once the test `stock_intervals_are_still_not_multiplied` fails.
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

#[derive(Debug, PartialEq, Eq, Hash)]
enum SpanOperation {
    /// The product of a span and a number, in either order.
    Product,
    /// A span divided by a number.
    Quotient,
    /// A span divided by a span, as Float64.
    Ratio,
}

fn find_operand_type(t: &DataType) -> Result<DataType> {
    choose_span_type(t).ok_or_else(|| {
        plan_datafusion_err!("cannot multiply or divide a span of time by a {t}; use a number")
    })
}

impl ScalarUDFImpl for SpanOperation {
    declare!(Signature::user_defined(Volatility::Immutable));

    fn name(&self) -> &str {
        match self {
            Self::Product => "span_product",
            Self::Quotient => "span_quotient",
            Self::Ratio => "span_ratio",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match (args, self) {
            ([left, right], Self::Product) => name_operation(left, "*", right),
            ([left, right], _) => name_operation(left, "/", right),
            _ => plan_err!(
                "internal error: {} has {} arguments instead of 2; please report it",
                self.name(),
                args.len()
            ),
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        types.iter().map(find_operand_type).collect()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match self {
            Self::Ratio => Ok(DataType::Float64),
            _ => Ok(types.iter().find(|t| is_span_type(t)).cloned().unwrap_or(INTERVAL)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[left, right]| {
            let divides = *self != Self::Product;
            compute_spans(divides, &left, &right)?.ok_or_else(|| {
                internal_datafusion_err!(
                    "internal error: {} has operands of the types {} and {}; please report it",
                    self.name(),
                    left.data_type(),
                    right.data_type()
                )
            })
        })
    }
}
