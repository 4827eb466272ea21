use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

use crate::config::SerrateOptions;
use crate::sql::pushdown::leaf_limit::estimate_leaves_per_row;

/// Physical optimizer rule, before partitions are planned: divides a scan of `.nrt` or Parquet
/// files among partitions if its leaves (innermost list elements) fill at least two batches.
///
/// Without this rule, `SELECT ragged_sum(x) FROM 't.nrt'` over a thousand rows with long lists runs
/// on one thread.
///
/// DataFusion considers a file of a thousand rows small, however long their lists are.
/// `datafusion.optimizer.repartition_file_scans` and `repartition_file_min_size` apply here, too.
pub(in crate::sql) fn divide_leaves(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let target = config.execution.target_partitions;
    if target < 2 || !config.optimizer.repartition_file_scans {
        return Ok(plan);
    }
    let leaves = SerrateOptions::of(config).leaf_batch_size as f64;
    let plan = plan.transform_up(|node| {
        let Some(scan) = node.downcast_ref::<DataSourceExec>() else {
            return Ok(Transformed::no(node));
        };
        let Some(files) = scan.data_source().downcast_ref::<FileScanConfig>() else {
            return Ok(Transformed::no(node));
        };
        let ours = ["nrt", "parquet"].contains(&files.file_source().file_type());
        let limited = files.limit.is_some();
        if !ours || limited || files.file_groups.len() >= target {
            return Ok(Transformed::no(node));
        }
        let Some(rows) = files.statistics().num_rows.get_value().copied() else {
            return Ok(Transformed::no(node));
        };
        let per_row = estimate_leaves_per_row(scan)?.unwrap_or(0.0);
        if per_row * (rows as f64) < 2.0 * leaves {
            return Ok(Transformed::no(node));
        }
        Ok(match scan.repartitioned(target, config)? {
            Some(divided) => Transformed::yes(divided),
            None => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}
