use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

/// `SELECT id FROM 't.parquet' WHERE id >= 2287 LIMIT 3`, over the numbers up to 2999 in row groups
/// of 700, returns 2800, 2801 and 2802 without this rule.
///
/// Physical optimizer rule, after DataFusion's rules: makes every file scan with a limit read in
/// order.
///
/// If the row groups in which all rows match a filter have enough rows for the limit, a Parquet
/// scan without `preserve_order` skips the other row groups, although they may have earlier rows.
/// `LimitPushdown` of DataFusion 55 leaves `preserve_order` unset even if a merge above relies on
/// the scan's order. This workaround is obsolete once the test `stock_limits_drop_row_groups`
/// fails. Serrate then still needs a way to return the first rows for LIMIT, which DataFusion does
/// not promise.
pub(in crate::sql) fn order_limited_scans(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(scan) = node.downcast_ref::<DataSourceExec>() else {
            return Ok(Transformed::no(node));
        };
        let Some(files) = scan.data_source().downcast_ref::<FileScanConfig>() else {
            return Ok(Transformed::no(node));
        };
        if files.limit.is_none() || files.preserve_order {
            return Ok(Transformed::no(node));
        }
        let ordered = FileScanConfigBuilder::from(files.clone()).with_preserve_order(true);
        Ok(Transformed::yes(DataSourceExec::from_data_source(ordered.build()) as _))
    })?;
    Ok(plan.data)
}
