use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use serrate_core::internal::holds_float;

/// `SELECT DISTINCT v FROM t ORDER BY v DESC LIMIT 2` over floats with NaN loses a row or panics
/// without this rule.
///
/// Physical optimizer rule: removes the limit that DataFusion pushes from ORDER BY .. LIMIT into an
/// aggregate, if the aggregate has float keys or values.
///
/// DataFusion's `TopKAggregation` keeps the best groups in a heap that drops NaN, so `max(v)` can
/// differ from its value without LIMIT, and a NaN key causes a panic. This workaround is obsolete
/// once the test `stock_topk_of_floats_is_still_wrong` fails.
pub(in crate::sql) fn remove_float_limits(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    remove_limits(plan, |aggregate| {
        let in_order = aggregate.limit_options().is_some_and(|l| l.descending().is_some());
        let of_floats = aggregate.schema().fields().iter().any(|f| holds_float(f.data_type()));
        in_order && of_floats
    })
}

/// `SELECT DISTINCT k, count(*) OVER (PARTITION BY k) AS n FROM t LIMIT 30` fails without this
/// rule.
///
/// Physical optimizer rule: removes the limit of DISTINCT .. LIMIT from an aggregate over sorted
/// rows.
///
/// DataFusion gives the limit to an aggregate of rows without an order. If a later rule sorts the
/// rows, the aggregate runs as a TopK and fails: "Ordering direction required for DISTINCT with
/// limit" (<https://github.com/apache/datafusion/issues/25350>). The limit above the aggregate
/// remains. This workaround is obsolete once the test
/// `stock_limits_of_sorted_distinct_rows_still_fail` fails.
pub(in crate::sql) fn remove_distinct_limits(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    remove_limits(plan, |aggregate| {
        let has_limit = aggregate.limit_options().is_some_and(|l| l.descending().is_none());
        has_limit && !aggregate.is_unordered_unfiltered_group_by_distinct()
    })
}

fn remove_limits(
    plan: Arc<dyn ExecutionPlan>,
    is_wrong: impl Fn(&AggregateExec) -> bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let aggregate = node.downcast_ref::<AggregateExec>().filter(|a| is_wrong(a));
        Ok(match aggregate {
            Some(aggregate) => {
                Transformed::yes(Arc::new(aggregate.with_new_limit_options(None)) as _)
            }
            None => Transformed::no(node),
        })
    })
    .map(|found| found.data)
}
