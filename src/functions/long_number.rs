//! Number literals with more digits than a double has.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use super::{declare, take_first};

/// Custom operator that keeps all digits of a long number literal in a comparison: the literal is
/// rewritten to `number WITH DIGITS 'digits'`. DataFusion plans the left operand as a double; the
/// right operand is a string of the digits.
pub(crate) const WITH_DIGITS: &str = "WITH DIGITS";

static LONG_NUMBER: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(LongNumber)));

#[derive(Debug)]
pub(crate) struct LongNumberPlanner;

impl ExprPlanner for LongNumberPlanner {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        _schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        Ok(match &expr.op {
            BinaryOperator::Custom(word) if word == WITH_DIGITS => {
                PlannerResult::Planned(LONG_NUMBER.call(vec![expr.left, expr.right]))
            }
            _ => PlannerResult::Original(expr),
        })
    }
}

/// Returns the double and the digits of a [`WITH_DIGITS`] operation; `None` for any other
/// expression.
pub(crate) fn find_long_number(e: &Expr) -> Option<(&Expr, &str)> {
    let Expr::ScalarFunction(call) = e else { return None };
    if !call.func.inner().is::<LongNumber>() {
        return None;
    }
    match call.args.as_slice() {
        [double, Expr::Literal(digits, _)] => Some((double, digits.try_as_str().flatten()?)),
        _ => None,
    }
}

/// Returns the number `digits` as a decimal literal, and its numbers of digits before and after the
/// point. Returns `None` if `digits` is not a number or has more than 38 digits.
pub(crate) fn make_decimal_of_digits(digits: &str) -> Option<(Expr, usize, usize)> {
    let unsigned = digits.trim_start_matches('-').trim_start_matches('0');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let precision = u8::try_from(whole.len() + fraction.len()).ok()?.max(1);
    let scale = i8::try_from(fraction.len()).ok()?;
    if precision > 38 {
        return None;
    }
    let decimal =
        ScalarValue::from(digits).cast_to(&DataType::Decimal128(precision, scale)).ok()?;
    (!decimal.is_null()).then(|| (Expr::Literal(decimal, None), whole.len(), fraction.len()))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LongNumber;

impl ScalarUDFImpl for LongNumber {
    declare!("long_number", Signature::any(2, Volatility::Immutable));

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map(|double| double.schema_name().to_string()).unwrap_or_default())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types).cloned()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        take_first(self.name(), args.args)
    }
}
