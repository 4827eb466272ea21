use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use super::asof_source::AsOfSource;
use crate::sql::base::plan_nodes::replace_inputs;

/// Physical optimizer rule: pushes projections into scans of `meds_asof`. Without it,
/// `SELECT subject_id FROM meds_asof('DIR', 'labels/')` copies the history of each label.
///
/// Runs before DataFusion's rules insert a repartitioning between scan and projection, which would
/// lose the order of labels and copy whole lists.
pub(crate) fn push_asof_projections(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(projection) = node.downcast_ref::<ProjectionExec>() else {
            return Ok(Transformed::no(node));
        };
        Ok(match into_scan(projection, projection.input())? {
            Some(plan) => Transformed::yes(plan),
            None => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}

/// Pushes a projection into the scan if `input` is a scan of `meds_asof`, or limits above such a
/// scan. Returns `None` for any other input, or if the scan refuses the projection.
fn into_scan(
    projection: &ProjectionExec,
    input: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = find_asof_scan(input) {
        return scan.try_swapping_with_projection(projection);
    }
    if !input.is::<GlobalLimitExec>() && !input.is::<LocalLimitExec>() {
        return Ok(None);
    }
    let [limited] = input.children()[..] else { return Ok(None) };
    match into_scan(projection, limited)? {
        Some(plan) => replace_inputs(Arc::clone(input), vec![plan]).map(Some),
        None => Ok(None),
    }
}

fn find_asof_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<&DataSourceExec> {
    plan.downcast_ref::<DataSourceExec>().filter(|scan| scan.data_source().is::<AsOfSource>())
}

/// `SELECT * FROM meds_asof('DIR', 'labels/')` returns its rows in any order without this rule.
///
/// Physical optimizer rule, after DataFusion's rules: removes repartitioning of rows of
/// `meds_asof`, because a merge of partitions would change their order. The scan itself already
/// uses all cores.
pub(crate) fn keep_asof_order(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(dealt) = node.downcast_ref::<RepartitionExec>() else {
            return Ok(Transformed::no(node));
        };
        let input = dealt.input();
        let round_robin = matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_));
        let one = input.output_partitioning().partition_count() == 1;
        Ok(match round_robin && one && has_scan_order(input) {
            true => Transformed::yes(Arc::clone(input)),
            false => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}

fn has_scan_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let passes = plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>();
    match plan.children()[..] {
        [input] if passes => has_scan_order(input),
        _ => find_asof_scan(plan).is_some(),
    }
}
