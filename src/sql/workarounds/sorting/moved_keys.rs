use std::sync::Arc;

use datafusion::common::Constraint;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::exec::plain_order::PlainOrderExec;

/// Physical optimizer rule, before DataFusion's: if a projection moves unique columns of its input
/// to other indices, hides from the projection that these columns are unique.
///
/// A projection of DataFusion 55 keeps the index of a unique column, even if another column is now
/// at that index: `SELECT rank() OVER (ORDER BY count(*)) AS r, k FROM t GROUP BY k ORDER BY r, k`
/// is not sorted by `k`. This workaround is obsolete once the test
/// `stock_projections_still_move_keys` fails.
pub(in crate::sql) fn hide_moved_keys(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    // A plan without sorts and windows stays unchanged: only these use the information that columns
    // are unique.
    if !has_order(&plan)? {
        return Ok(plan);
    }
    let plan = plan.transform_up(|node| {
        let Some(projection) = node.downcast_ref::<ProjectionExec>() else {
            return Ok(Transformed::no(node));
        };
        if !moves_keys(projection) {
            return Ok(Transformed::no(node));
        }
        let input = Arc::new(PlainOrderExec::new(Arc::clone(projection.input())));
        replace_inputs(node, vec![input]).map(Transformed::yes)
    })?;
    Ok(plan.data)
}

pub(in crate::sql::workarounds) fn has_order(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| {
        Ok(node.is::<SortExec>() || node.is::<WindowAggExec>() || node.is::<BoundedWindowAggExec>())
    })
}

/// Whether a projection changes the index of a unique column of its input.
fn moves_keys(projection: &ProjectionExec) -> bool {
    let stays = |place: &usize| {
        projection.expr().get(*place).is_some_and(|made| {
            made.expr.downcast_ref::<Column>().is_some_and(|column| column.index() == *place)
        })
    };
    projection.input().equivalence_properties().constraints().iter().any(|constraint| {
        let (Constraint::PrimaryKey(places) | Constraint::Unique(places)) = constraint;
        !places.iter().all(stays)
    })
}
