use std::sync::{Arc, LazyLock};

use arrow::array::new_null_array;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{cast, is_not_null};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::{count_call_rows, declare, to_columnar};
use crate::sql::base::expression_parts::rewrite_parts;

static COALESCE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(CoalesceOnce)));

/// Analyzer rule: evaluates the arguments of `coalesce` and `ifnull` once if one of them is
/// volatile.
///
/// DataFusion 55 replaces `coalesce(x, y)` with `CASE WHEN x IS NOT NULL THEN x ELSE y END`. If `x`
/// calls `random()`, the second `x` can be NULL although the first is not:
/// <https://github.com/apache/datafusion/issues/25477>. This workaround is obsolete once the test
/// `stock_coalesce_still_evaluates_its_arguments_twice` fails.
///
/// The function that replaces `coalesce` evaluates all arguments for all rows, so an argument that
/// fails for a row fails there even if an earlier argument has a value.
pub(in crate::sql) fn evaluate_coalesce_once(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_affected =
        |e: &Expr| matches!(e, Expr::ScalarFunction(call) if is_evaluated_twice(call));
    rewrite_parts(plan, is_affected, |e, _| match e {
        Expr::ScalarFunction(call) if is_evaluated_twice(&call) => {
            Ok(Transformed::yes(COALESCE.call(call.args)))
        }
        e => Ok(Transformed::no(e)),
    })
}

/// Whether a call is a `coalesce` with a volatile argument that DataFusion would evaluate twice.
fn is_evaluated_twice(call: &ScalarFunction) -> bool {
    ["coalesce", "nvl"].contains(&call.func.name())
        && call.args.split_last().is_some_and(|(_, tested)| tested.iter().any(Expr::is_volatile))
}

/// Returns the function that [`evaluate_coalesce_once`] inserts, for plans that are sent to worker
/// processes.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn get_coalesce_function() -> Arc<ScalarUDF> {
    Arc::clone(&COALESCE)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CoalesceOnce;

impl ScalarUDFImpl for CoalesceOnce {
    declare!("coalesce_once", Signature::variadic_any(Volatility::Immutable));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.iter().find(|t| !t.is_null()).cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let is_nullable = args.arg_fields.iter().all(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (is_one, rows) = count_call_rows(&args);
        let to = args.return_field.data_type();
        let mut found = new_null_array(to, rows);
        for arg in args.args.iter().rev() {
            let value = cast(&arg.to_array(rows)?, to)?;
            found = zip(&is_not_null(&value)?, &value, &found)?;
        }
        to_columnar(found, is_one)
    }
}
