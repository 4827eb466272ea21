//! [`OneZero`]: 0.0 and -0.0 are one key of a join.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Logical optimizer rule: floats that are keys of a join are added to 0.0, which makes 0.0 of -0.0 and
/// changes nothing else.
///
/// A hash join finds both zeros equal. The filter that it makes of its keys for the scan of the other side
/// tells them apart, and rows of Parquet files would be missing that rows in memory are joined with.
#[derive(Debug, Default)]
pub(super) struct OneZero;

impl OptimizerRule for OneZero {
    fn name(&self) -> &str {
        "serrate_one_zero"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
        let mut changed = false;
        for (left, right) in &mut join.on {
            changed |= with_one_zero(left, join.left.schema())?;
            changed |= with_one_zero(right, join.right.schema())?;
        }
        Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
    }
}

/// Makes one zero of two; whether there was something to do.
fn with_one_zero(key: &mut Expr, schema: &DFSchema) -> Result<bool> {
    let zero = match key.get_type(schema)? {
        t @ (DataType::Float16 | DataType::Float32 | DataType::Float64) => {
            Expr::Literal(ScalarValue::new_zero(&t)?, None)
        }
        _ => return Ok(false),
    };
    let done = match &*key {
        Expr::BinaryExpr(sum) => sum.op == Operator::Plus && *sum.right == zero,
        // An integer has one zero.
        Expr::Cast(cast) => cast.expr.get_type(schema)?.is_integer(),
        _ => false,
    };
    if !done {
        let value = std::mem::take(key);
        let sum = BinaryExpr::new(Box::new(value), Operator::Plus, Box::new(zero));
        *key = Expr::BinaryExpr(sum);
    }
    Ok(!done)
}
