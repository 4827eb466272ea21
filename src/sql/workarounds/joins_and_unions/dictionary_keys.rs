use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::OptimizerConfig;

/// `SELECT * FROM 't.parquet' p JOIN 't.parquet' q ON p.k = q.k` fails without this rule if `k` is
/// a dictionary of integers.
///
/// Logical optimizer rule: joins dictionaries of integers by their values.
///
/// If a hash join has a single key column and computes the least and greatest key of its build
/// side, for a filter of the other input, it stores integer keys in an array (`ArrayMap`). The
/// least and greatest key of a dictionary of integers are integers, so DataFusion builds the array
/// and fails, because `ArrayMap` does not support dictionaries. This workaround is obsolete once
/// the test `stock_joins_by_integer_dictionaries_still_fail` fails.
pub(in crate::sql) fn join_dictionary_values(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
    let mut changed = false;
    for (left, right) in &mut join.on {
        changed |= decode_key(left, join.left.schema());
        changed |= decode_key(right, join.right.schema());
    }
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
}

/// Casts a key that is a dictionary of integers to integers. Returns whether it did so.
fn decode_key(key: &mut Expr, schema: &DFSchema) -> bool {
    match key.get_type(schema) {
        Ok(DataType::Dictionary(_, values)) if values.is_integer() => {
            *key = Expr::Cast(Cast::new(Box::new(std::mem::take(key)), *values));
            true
        }
        _ => false,
    }
}
