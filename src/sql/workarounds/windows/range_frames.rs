use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, WindowExpr};

/// `SELECT count(*) OVER (ORDER BY z RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING) FROM t` counts too
/// few rows for a NULL `z` without this rule, if the NULLs are in several batches.
///
/// Physical optimizer rule: makes windows with a frame `RANGE .. AND n PRECEDING` read whole
/// partitions.
///
/// The streaming window of DataFusion 55 returns a row before it reads the next batch. But NULL
/// minus n is NULL, and infinity minus n is infinity: the frame of a row with such a key ends with
/// the last peer of the row, perhaps in a later batch. This workaround is obsolete once the test
/// `stock_range_frames_of_nulls_still_miss_peers` fails.
pub(in crate::sql) fn read_whole_partitions(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| match node.downcast_ref::<BoundedWindowAggExec>() {
        Some(window) if window.window_expr().iter().any(ends_before_row) => {
            read_whole(window).map(Transformed::yes)
        }
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}

fn ends_before_row(window: &Arc<dyn WindowExpr>) -> bool {
    let frame = window.get_window_frame();
    frame.units == WindowFrameUnits::Range
        && matches!(&frame.end_bound, WindowFrameBound::Preceding(n) if !n.is_null())
}

fn read_whole(window: &BoundedWindowAggExec) -> Result<Arc<dyn ExecutionPlan>> {
    let calls = window.window_expr().to_vec();
    let keys = window.partition_keys();
    let mut input = Arc::clone(window.input());
    if window.input_order_mode != InputOrderMode::Sorted {
        let keys = keys.iter().map(|key| PhysicalSortExpr::new_default(Arc::clone(key)));
        let order = calls.iter().take(1).flat_map(|call| call.order_by().iter().cloned());
        if let Some(order) = LexOrdering::new(keys.chain(order)) {
            input = Arc::new(SortExec::new(order, input).with_preserve_partitioning(true));
        }
    }
    Ok(Arc::new(WindowAggExec::try_new(calls, input, !keys.is_empty())?))
}
