//! A physical optimizer rule that makes scans skip the rows of OFFSET.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::order::SourceOrderExec;
use crate::sql::sources::parquet::make_window_scan;
use crate::sql::sources::table_provider::TableSource;

/// Physical optimizer rule, after
/// [`keep_source_order`](crate::sql::order::order_rules::keep_source_order): makes scans read only
/// the rows that OFFSET and LIMIT leave, if the query only selects columns of a table in memory or
/// of Parquet files with known row counts. Row groups without any of these rows are skipped, and
/// the first and the last row group that have some are read in part.
///
/// Without this rule, `SELECT id FROM 't.parquet' LIMIT 3 OFFSET 1000000` also reads the million
/// rows that it skips.
pub(in crate::sql) fn push_offsets(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_down(|node| {
        let Some(limit) = node.downcast_ref::<GlobalLimitExec>() else {
            return Ok(Transformed::no(node));
        };
        Ok(match limit.skip() > 0 {
            true => match skip_rows(limit.input(), limit.skip(), limit.fetch())? {
                Some(input) => Transformed::yes(input),
                None => Transformed::no(node),
            },
            false => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}

/// Returns the plan without its first `skip` rows and with at most `fetch` rows. Returns `None`
/// unless the plan returns exactly the rows of a table in memory or of Parquet files, in their
/// order.
fn skip_rows(
    plan: &Arc<dyn ExecutionPlan>,
    skip: usize,
    fetch: Option<usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        if let Some(files) = scan.data_source().downcast_ref::<FileScanConfig>() {
            let window = make_window_scan(files, skip, fetch);
            return Ok(window
                .map(|window| DataSourceExec::from_data_source(window) as Arc<dyn ExecutionPlan>));
        }
        let source = scan.data_source().downcast_ref::<TableSource>();
        let window = source.and_then(|source| source.take_window(skip, fetch));
        return Ok(
            window.map(|window| DataSourceExec::from_data_source(window) as Arc<dyn ExecutionPlan>)
        );
    }
    // The `fetch` of a `SourceOrderExec` includes the rows that OFFSET skips, so `skip` is
    // subtracted.
    if let Some(order) = plan.downcast_ref::<SourceOrderExec>() {
        let within = order.fetch().map(|given| given.saturating_sub(skip));
        let fetch = [fetch, within].into_iter().flatten().min();
        let ordered = skip_rows(order.children()[0], skip, fetch)?.map(|input| {
            match input.output_partitioning().partition_count() {
                // A single partition is already limited and in order, so it needs no
                // `SourceOrderExec`.
                1 => input,
                _ => Arc::new(SourceOrderExec::new(input, fetch)) as Arc<dyn ExecutionPlan>,
            }
        });
        return Ok(ordered);
    }
    if !plan.is::<ProjectionExec>() && !plan.is::<CooperativeExec>() {
        return Ok(None);
    }
    let Some(input) = skip_rows(plan.children()[0], skip, fetch)? else { return Ok(None) };
    replace_inputs(Arc::clone(plan), vec![input]).map(Some)
}
