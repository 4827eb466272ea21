use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::workarounds::sorting::moved_keys::has_order;
use crate::sql::workarounds::sorting::sorts::UnorderedExec;

/// Physical optimizer rule: hides from a join an order of its input that the joined rows do not
/// have.
///
/// If one input of a join is sorted by `b` and the other by `a`, DataFusion 55 assumes that the
/// rows of the join are sorted by `b, a`. But the values of `a` start again for each row of the
/// first input, so the order breaks if two rows have the same `b`: `SELECT .. FROM (SELECT * FROM l
/// ORDER BY a LIMIT 9) l JOIN (SELECT * FROM r ORDER BY b LIMIT 9) r ON l.k = r.k ORDER BY b, a` is
/// not sorted by `a`. This workaround is obsolete once the test
/// `stock_joins_still_claim_two_orders` fails.
pub(in crate::sql) fn hide_join_orders(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if !has_order(&plan)? {
        return Ok(plan);
    }
    let plan = plan.transform_up(|node| {
        let kind = match node.downcast_ref::<HashJoinExec>() {
            Some(join) => Some(*join.join_type()),
            None => node.downcast_ref::<SortMergeJoinExec>().map(SortMergeJoinExec::join_type),
        };
        // Joins of other kinds stay unchanged: they return columns of only one input, or rows
        // without a known order.
        let (Some(JoinType::Inner | JoinType::Left | JoinType::Right), &[left, right]) =
            (kind, node.children().as_slice())
        else {
            return Ok(Transformed::no(node));
        };
        let mut sides = vec![Arc::clone(left), Arc::clone(right)];
        let Some(other) = node.maintains_input_order().iter().position(|keeps| !keeps) else {
            return Ok(Transformed::no(node));
        };
        match sides.get_mut(other) {
            Some(side) if side.output_ordering().is_some() => {
                *side = Arc::new(UnorderedExec::new(Arc::clone(side)));
            }
            _ => return Ok(Transformed::no(node)),
        }
        replace_inputs(node, sides).map(Transformed::yes)
    })?;
    Ok(plan.data)
}
