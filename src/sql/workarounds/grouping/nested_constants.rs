use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::OptimizerConfig;

use crate::functions::declare;
use crate::sql::workarounds::sorting::sorts::has_comparison;

/// `SELECT * FROM (SELECT *, row_number() OVER (ORDER BY a, id) AS n FROM (SELECT *, [[1]] AS a
/// FROM t)) WHERE n <= 2` fails without this rule.
///
/// Logical optimizer rule, after all others: replaces constant columns of lists of lists with
/// function calls.
///
/// DataFusion 55 derives an interval from each constant of a projection, and compares the two equal
/// bounds of the interval. DataFusion cannot compare lists of lists, so DISTINCT, PARTITION BY and
/// INTERSECT of such a column fail. This workaround is obsolete once the test
/// `stock_constant_lists_of_lists_still_fail` fails.
pub(in crate::sql) fn hide_nested_constants(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    // Replaces constants only if they are whole columns of a projection. Arguments of functions
    // stay, because a function may need a constant argument at planning.
    let LogicalPlan::Projection(projection) = &plan else { return Ok(Transformed::no(plan)) };
    if !projection.expr.iter().any(is_nested_literal) {
        return Ok(Transformed::no(plan));
    }
    let names = NamePreserver::new_for_projection();
    plan.map_expressions(|e| {
        let name = names.save(&e);
        let done = e.transform_down(|e| {
            Ok(match e {
                Expr::Alias(_) => Transformed::no(e),
                Expr::Literal(value, metadata) => {
                    let data_type = value.data_type();
                    match metadata.is_none() && data_type.is_nested() && !has_comparison(&data_type)
                    {
                        true => Transformed::yes(call_constant(value)),
                        false => Transformed::no(Expr::Literal(value, metadata)),
                    }
                }
                e => Transformed::new(e, false, TreeNodeRecursion::Jump),
            })
        })?;
        Ok(done.update_data(|e| name.restore(e)))
    })
}

/// Whether an expression, without its aliases, is a literal list or struct.
fn is_nested_literal(e: &Expr) -> bool {
    match e {
        Expr::Alias(alias) => is_nested_literal(&alias.expr),
        Expr::Literal(value, _) => value.data_type().is_nested(),
        _ => false,
    }
}

fn call_constant(value: ScalarValue) -> Expr {
    ScalarUDF::new_from_impl(NestedConstant { value }).call(Vec::new())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NestedConstant {
    value: ScalarValue,
}

impl ScalarUDFImpl for NestedConstant {
    // The function is stable, because the simplifier would replace a call of an immutable function
    // with a constant.
    declare!("nested_constant", Signature::nullary(Volatility::Stable));

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.value.data_type())
    }

    /// The field is nullable only if the value is NULL, as is the field of the literal that this
    /// function replaces: CREATE TABLE AS requires that both have the same nullability.
    fn return_field_from_args(&self, _args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = Field::new(self.name(), self.value.data_type(), self.value.is_null());
        Ok(Arc::new(field))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }
}
