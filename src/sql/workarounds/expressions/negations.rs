use std::sync::{Arc, LazyLock};

use arrow::array::ArrayRef;
use arrow::compute::kernels::numeric::neg;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::common::exec_datafusion_err;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use crate::functions::{call_on_arrays, declare, same_field};
use crate::sql::base::expression_parts::rewrite_parts;

static NEGATIVE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(CheckedNegative)));

/// `SELECT -x` returns -128 for the TINYINT -128 without this rule.
///
/// Analyzer rule: makes `-x` an error if `x` is the least integer of a signed type, as in DuckDB,
/// PostgreSQL and `ragged_neg`.
///
/// DataFusion 55 negates integers with wrap-around, except constants and the statistics of a
/// Parquet file. There, the negation of the least integer fails, also if the statement does not
/// need the result, as in `WHERE x > 0 AND -x > -5`:
/// <https://github.com/apache/datafusion/issues/24668>. This workaround is obsolete once the test
/// `stock_negations_still_wrap` fails.
pub(in crate::sql) fn check_negations(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_negation = |e: &Expr| matches!(e, Expr::Negative(_));
    rewrite_parts(plan, is_negation, |e, columns| match e {
        Expr::Negative(of) if of.get_type(columns).is_ok_and(|t| t.is_signed_integer()) => {
            Ok(Transformed::yes(NEGATIVE.call(vec![*of])))
        }
        e => Ok(Transformed::no(e)),
    })
}

/// Returns the function that [`check_negations`] inserts. Workers of a distributed query need it to
/// decode plans.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn get_negative_function() -> Arc<ScalarUDF> {
    Arc::clone(&NEGATIVE)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedNegative;

impl ScalarUDFImpl for CheckedNegative {
    declare!("negative", Signature::any(1, Volatility::Immutable));
    same_field!();

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|e| e.schema_name().to_string()).collect();
        Ok(format!("(- {})", args.join(",")))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[values]| negate_integers(&values))
    }
}

fn negate_integers(values: &ArrayRef) -> Result<ArrayRef> {
    neg(values).map_err(|e| match e {
        ArrowError::ArithmeticOverflow(_) => refuse_least(values.data_type()),
        other => other.into(),
    })
}

fn refuse_least(data_type: &DataType) -> DataFusionError {
    let least = match data_type {
        DataType::Int8 => i64::from(i8::MIN),
        DataType::Int16 => i64::from(i16::MIN),
        DataType::Int32 => i64::from(i32::MIN),
        _ => i64::MIN,
    };
    exec_datafusion_err!(
        "overflow: the negative of {least}, the least integer of the type {data_type}, does not fit this type; cast the operand of - to a wider type first, such as DECIMAL(38, 0)"
    )
}
