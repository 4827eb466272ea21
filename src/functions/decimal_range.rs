//! Adds checks to arithmetic on decimals: a result with more digits than the precision of its type
//! becomes an error.
//!
//! Arrow checks decimal arithmetic against 128 or 256 bits, not against the precision. The sum of
//! 9e37 and 2e37 as DECIMAL(38, 0) has 39 digits, fits 128 bits, and loses its last digit when it
//! becomes text. Remove this module once the test `stock_decimals_still_exceed_their_precision` in
//! `tests/sql/decimals.rs` fails.

use std::sync::{Arc, LazyLock};

use arrow::array::Array;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use serrate_core::internal::check_decimal_precision;

use super::{declare, take_first};

static IN_PRECISION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(InPrecision)));

/// Returns a function that returns its argument, or an error if a decimal exceeds its precision.
#[cfg(feature = "cluster")]
pub(crate) fn get_precision_check() -> Arc<ScalarUDF> {
    Arc::clone(&IN_PRECISION)
}

/// If `e` is arithmetic whose result is a decimal of the largest precision, adds a check of the
/// results. Returns any other expression unchanged, because a decimal result of smaller precision
/// always fits its type.
pub(crate) fn check_precision(e: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_capped = match &e {
        Expr::BinaryExpr(operation) => find_type(operation, schema).is_some_and(|t| match t {
            DataType::Decimal128(precision, _) => precision == DECIMAL128_MAX_PRECISION,
            DataType::Decimal256(precision, _) => precision == DECIMAL256_MAX_PRECISION,
            other => other.is_decimal(),
        }),
        _ => false,
    };
    match is_capped {
        true => Transformed::yes(IN_PRECISION.call(vec![e])),
        false => Transformed::no(e),
    }
}

pub(crate) fn checks_precision(e: &Expr) -> bool {
    matches!(e, Expr::ScalarFunction(call) if call.func.inner().is::<InPrecision>())
}

/// Returns the result type of `operation` if it is arithmetic whose result is a decimal, otherwise
/// `None`.
fn find_type(operation: &BinaryExpr, schema: &DFSchema) -> Option<DataType> {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    if !matches!(operation.op, Plus | Minus | Multiply | Divide | Modulo) {
        return None;
    }
    let right = operation.right.get_type(schema).ok().filter(|t| t.is_numeric())?;
    let left = operation.left.get_type(schema).ok().filter(|t| t.is_numeric())?;
    if !left.is_decimal() && !right.is_decimal() {
        return None;
    }
    let types = BinaryTypeCoercer::new(&left, &operation.op, &right);
    types.get_result_type().ok().filter(DataType::is_decimal)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InPrecision;

impl ScalarUDFImpl for InPrecision {
    declare!("in_precision", Signature::any(1, Volatility::Immutable));

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map(|of| of.schema_name().to_string()).unwrap_or_default())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types).cloned()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = take_first(self.name(), args.args)?;
        match &value {
            ColumnarValue::Array(values) => check_digits(values)?,
            ColumnarValue::Scalar(value) => check_digits(&value.to_array()?)?,
        }
        Ok(value)
    }
}

fn check_digits(values: &dyn Array) -> Result<()> {
    check_decimal_precision(values).map_err(|e| {
        exec_datafusion_err!(
            "a result of +, -, *, / or % does not fit its type {}: {e}; cast the operands to decimals with fewer digits, or to DOUBLE",
            values.data_type()
        )
    })
}
