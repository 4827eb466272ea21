use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::exec::plain_order::PlainOrderExec;

/// Physical optimizer rule: hides from a window with several PARTITION BY keys that columns of its
/// input are unique.
///
/// Rows sorted by a unique column are also sorted by that column and any other. DataFusion 55 omits
/// the sort of a window for this reason, but the window then requires that the input declares an
/// order by both keys. So `SELECT row_number() OVER (PARTITION BY k, max(x)) FROM (SELECT * FROM t
/// ORDER BY k LIMIT 9) GROUP BY k` fails. This workaround is obsolete once the test
/// `stock_windows_over_unique_keys_still_fail` fails.
pub(in crate::sql) fn hide_unique_columns(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(input) = find_unique_input(&node) else { return Ok(Transformed::no(node)) };
        let input = Arc::new(PlainOrderExec::new(input));
        replace_inputs(node, vec![input]).map(Transformed::yes)
    })?;
    Ok(plan.data)
}

/// If a node is a window with several PARTITION BY keys, and its input has a unique column, returns
/// this input.
fn find_unique_input(node: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let (windows, input): (&[Arc<dyn WindowExpr>], _) =
        if let Some(window) = node.downcast_ref::<BoundedWindowAggExec>() {
            (window.window_expr(), window.input())
        } else {
            let window = node.downcast_ref::<WindowAggExec>()?;
            (window.window_expr(), window.input())
        };
    let has_keys = windows.iter().any(|window| window.partition_by().len() > 1);
    let is_unique = input.equivalence_properties().constraints().iter().next().is_some();
    (has_keys && is_unique).then(|| Arc::clone(input))
}
