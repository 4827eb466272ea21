//! [`AsOfProjections`]: columns of a query are made where the rows of labels are.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use super::source::AsOfSource;

/// Physical optimizer rule, before those of DataFusion: projections go into scans of `meds_asof`.
///
/// DataFusion's own rule does so after it has put partitions in between, which lose the order of the
/// labels and have whole lists copied for them.
#[derive(Debug, Default)]
pub struct AsOfProjections;

impl PhysicalOptimizerRule for AsOfProjections {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| {
            let Some(projection) = node.downcast_ref::<ProjectionExec>() else {
                return Ok(Transformed::no(node));
            };
            let input = projection.input();
            let scan = input
                .downcast_ref::<DataSourceExec>()
                .filter(|scan| scan.data_source().is::<AsOfSource>());
            let swapped = match scan {
                Some(scan) => scan.try_swapping_with_projection(projection)?,
                None => None,
            };
            Ok(match swapped {
                Some(scan) => Transformed::yes(scan),
                None => Transformed::no(node),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "serrate_asof_projections"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
