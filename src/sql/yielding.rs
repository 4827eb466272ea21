//! [`YieldingJoins`]: joins that can be cancelled.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec,
    SymmetricHashJoinExec,
};

/// Makes joins yield to the runtime now and then.
///
/// A query is cancelled where it yields, and DataFusion has its leaves yield after a number of batches.
/// A join makes thousands of batches of one that it took, though, and what stands above, an aggregation
/// say, takes them one after the other: nobody yields for minutes, and a worker of the runtime does nothing
/// else meanwhile.
#[derive(Debug, Default)]
pub(super) struct YieldingJoins;

impl PhysicalOptimizerRule for YieldingJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| {
            let join = node.is::<HashJoinExec>()
                || node.is::<NestedLoopJoinExec>()
                || node.is::<CrossJoinExec>()
                || node.is::<SortMergeJoinExec>()
                || node.is::<SymmetricHashJoinExec>()
                || node.is::<PiecewiseMergeJoinExec>();
            Ok(match join {
                true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as _),
                false => Transformed::no(node),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "serrate_yielding_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
