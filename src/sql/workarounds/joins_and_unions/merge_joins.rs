use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};

/// `SELECT * FROM a FULL JOIN b ON a.id = b.id AND b.y > 5` over columns that are NOT NULL fails
/// without this rule after `SET datafusion.optimizer.prefer_hash_join = false`.
///
/// Physical optimizer rule: replaces two kinds of sort-merge joins with hash joins: joins with a
/// condition besides their keys, and semi and anti joins with a key that is not a boolean, integer,
/// string, `Date32` or timestamp without time zone.
///
/// DataFusion 55 plans sort-merge joins if `datafusion.optimizer.prefer_hash_join` is off. A join
/// with a condition fails if a table has non-nullable columns, or if the condition names no column.
/// An outer join with a condition reports an order that its rows do not have. Semi and anti joins
/// panic for NaN, and fail for keys of most types. This workaround is obsolete once the tests
/// `stock_merge_joins_still_fail` and `stock_merge_joins_still_claim_an_order` fail.
pub(in crate::sql) fn replace_merge_joins(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(join) = node.downcast_ref::<SortMergeJoinExec>() else {
            return Ok(Transformed::no(node));
        };
        if join.filter().is_none() && compares_keys(join)? {
            return Ok(Transformed::no(node));
        }
        let join = HashJoinExec::try_new(
            Arc::clone(join.left()),
            Arc::clone(join.right()),
            join.on().to_vec(),
            join.filter().clone(),
            &join.join_type(),
            None,
            PartitionMode::Auto,
            join.null_equality(),
            false,
        )?;
        Ok(Transformed::yes(Arc::new(join) as Arc<dyn ExecutionPlan>))
    })?;
    Ok(plan.data)
}

fn compares_keys(join: &SortMergeJoinExec) -> Result<bool> {
    let of_pairs = matches!(
        join.join_type(),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full
    );
    if of_pairs {
        return Ok(true);
    }
    let left = join.left().schema();
    for (key, _) in join.on() {
        let plain = match key.data_type(&left)? {
            DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
            DataType::Date32 | DataType::Timestamp(_, None) => true,
            key => key.is_integer(),
        };
        if !plain {
            return Ok(false);
        }
    }
    Ok(true)
}
