//! Products and quotients of spans (intervals, durations) and numbers, and quotients of two spans.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::{internal_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use serrate_core::internal::{choose_span_type, compute_spans, is_span};

use super::naming::name_operation;
use super::{call_on_arrays, declare};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

pub(super) static OPERATIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
    [SpanOperation::Product, SpanOperation::Quotient, SpanOperation::Ratio]
        .map(|operation| Arc::new(ScalarUDF::new_from_impl(operation)))
});

/// Returns the functions that `plan_span_operation` calls, so that worker processes can decode
/// plans that call them.
#[cfg(feature = "cluster")]
pub(crate) fn build_span_operations() -> [Arc<ScalarUDF>; 3] {
    OPERATIONS.clone()
}

pub(super) fn is_span_product(call: &ScalarFunction) -> bool {
    call.func.inner().downcast_ref::<SpanOperation>() == Some(&SpanOperation::Product)
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
            _ => Ok(types.iter().find(|t| is_span(t)).cloned().unwrap_or(INTERVAL)),
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
