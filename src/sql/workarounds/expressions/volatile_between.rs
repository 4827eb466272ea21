use std::sync::{Arc, LazyLock};

use arrow::compute::and_kleene;
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::{call_on_arrays, declare};
use crate::sql::base::expression_parts::rewrite_parts;
use serrate_core::internal::to_canonical_floats;

static BETWEEN: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(BetweenOnce)));

/// Analyzer rule: evaluates the operand of `random() BETWEEN a AND b` once.
///
/// DataFusion 55 rewrites BETWEEN to two comparisons, each with a random number of its own:
/// <https://github.com/apache/datafusion/issues/25457>. This workaround is obsolete once the test
/// `stock_between_still_evaluates_its_operand_twice` fails.
pub(in crate::sql) fn evaluate_between_once(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_affected = |e: &Expr| matches!(e, Expr::Between(between) if between.expr.is_volatile());
    rewrite_parts(plan, is_affected, |e, _| match e {
        Expr::Between(between) if between.expr.is_volatile() => {
            let is_between = BETWEEN.call(vec![*between.expr, *between.low, *between.high]);
            Ok(Transformed::yes(if between.negated { !is_between } else { is_between }))
        }
        e => Ok(Transformed::no(e)),
    })
}

/// Returns the function that [`evaluate_between_once`] inserts. Workers of a distributed query need
/// it to decode plans.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn get_between_function() -> Arc<ScalarUDF> {
    Arc::clone(&BETWEEN)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BetweenOnce;

impl ScalarUDFImpl for BetweenOnce {
    declare!("between_once", Signature::any(3, Volatility::Immutable));

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[value, low, high]| {
            let value = to_canonical_floats(&value)?;
            let (low, high) = (to_canonical_floats(&low)?, to_canonical_floats(&high)?);
            Ok(Arc::new(and_kleene(&gt_eq(&value, &low)?, &lt_eq(&value, &high)?)?))
        })
    }
}
