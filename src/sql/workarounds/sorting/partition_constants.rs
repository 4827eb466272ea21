use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::equivalence::AcrossPartitions;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::sql::exec::plain_order::PlainOrderExec;
use crate::sql::workarounds::sorting::moved_keys::has_order;

/// Physical optimizer rule: hides that a column is constant within each partition, if its value
/// differs between partitions. An example is a column of UNION ALL that is a different literal in
/// each input.
///
/// In DataFusion 55, a merge by such a column `c` and by `x` then reports that its rows are sorted
/// by `x` alone: `SELECT * FROM (SELECT x, 0 AS c FROM t UNION ALL SELECT x, 1 FROM t ORDER BY c, x
/// LIMIT 9) ORDER BY x` is not sorted. This workaround is obsolete once the test
/// `stock_merges_still_claim_orders_of_partitions` fails.
pub(in crate::sql) fn hide_partition_constants(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if !has_order(&plan)? {
        return Ok(plan);
    }
    let plan = plan.transform_up(|node| match has_partition_constants(&node) {
        true => Ok(Transformed::yes(Arc::new(PlainOrderExec::new(node)))),
        false => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}

fn has_partition_constants(node: &Arc<dyn ExecutionPlan>) -> bool {
    let constants = node.equivalence_properties().constants();
    node.output_partitioning().partition_count() > 1
        && constants.iter().any(|c| c.across_partitions == AcrossPartitions::Heterogeneous)
}
