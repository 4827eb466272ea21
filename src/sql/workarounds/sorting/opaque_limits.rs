use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, OrderingRequirements};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties,
};

use crate::sql::exec::hide_node;
use crate::sql::workarounds::sorting::moved_keys::has_order;

/// Keeps `EnsureRequirements` from moving sorts below limits, and limits below windows or filters.
///
/// If a sort is above a `GlobalLimitExec`, DataFusion moves the sort below the limit, so that `(SELECT * FROM
/// t LIMIT 3) ORDER BY id` returns the three smallest rows of the table. If a sort is already below the
/// limit, that sort gets the fetch of the limit but not the skip, so `(.. ORDER BY id LIMIT 2 OFFSET 1) ORDER
/// BY id` returns one row. Obsolete once the test `stock_sorts_still_move_below_limits` fails.
///
/// If the input of a sort with a limit is sorted already, DataFusion removes the sort and gives its limit to
/// the merge below, even if a window function between them needs all rows. Sorts and their limits are
/// therefore separate nodes while the rule runs. Obsolete once the test
/// `stock_limits_still_move_below_windows` fails.
pub(in crate::sql) fn hide_limits(
    stock: &dyn PhysicalOptimizerRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let opaque = plan.transform_up(|node| {
        if node.is::<GlobalLimitExec>() || node.is::<LocalLimitExec>() {
            return Ok(Transformed::yes(Arc::new(OpaqueLimitExec::new(node, true)) as _));
        }
        Ok(match split_sort(&node)? {
            Some(limit) => Transformed::yes(Arc::new(OpaqueLimitExec::new(limit, false)) as _),
            None => Transformed::no(node),
        })
    })?;
    let plan = stock.optimize(opaque.data, config)?;
    if !opaque.transformed {
        return Ok(plan);
    }
    let plan = plan.transform_up(|node| {
        if let Some(opaque) = node.downcast_ref::<OpaqueLimitExec>() {
            return Ok(Transformed::yes(join_sort(Arc::clone(&opaque.limit))));
        }
        Ok(match find_repeated_sort(&node) {
            Some(first) => Transformed::yes(first),
            None => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}

/// Splits a sort with a limit into a sort and a limit above it, if its input has sorts or window functions.
fn split_sort(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(None) };
    let (Some(fetch), false) = (sort.fetch(), sort.preserve_partitioning()) else {
        return Ok(None);
    };
    if !has_order(sort.input())? {
        return Ok(None);
    }
    let whole = Arc::new(sort.with_fetch(None));
    Ok(Some(Arc::new(GlobalLimitExec::new(whole, 0, Some(fetch)))))
}

/// Merges a limit into the sort, merge or limit below, which then returns at most this many rows.
fn join_sort(limit: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let joined = limit.downcast_ref::<GlobalLimitExec>().filter(|l| l.skip() == 0).and_then(|l| {
        let input = l.input();
        if let Some(below) = input.downcast_ref::<GlobalLimitExec>() {
            let fetch = below.fetch().into_iter().chain(l.fetch()).min();
            let limit = GlobalLimitExec::new(Arc::clone(below.input()), below.skip(), fetch);
            return Some(Arc::new(limit) as Arc<dyn ExecutionPlan>);
        }
        if input.fetch().is_some() || input.output_partitioning().partition_count() != 1 {
            return None;
        }
        if let Some(merge) = input.downcast_ref::<SortPreservingMergeExec>() {
            let sort = merge.input().downcast_ref::<SortExec>()?;
            let sort = Arc::new(sort.with_fetch(l.fetch()));
            let merge = SortPreservingMergeExec::new(merge.expr().clone(), sort);
            return Some(Arc::new(merge.with_fetch(l.fetch())) as Arc<dyn ExecutionPlan>);
        }
        let sort = input.downcast_ref::<SortExec>()?;
        Some(Arc::new(sort.with_fetch(l.fetch())) as Arc<dyn ExecutionPlan>)
    });
    joined.unwrap_or(limit)
}

/// If the input of a sort is another sort by the same keys, whose limit is not greater than the
/// limit of the outer sort, returns this input. The outer sort is then redundant.
fn find_repeated_sort(node: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = node.downcast_ref::<SortExec>()?;
    let first = sort.input().downcast_ref::<SortExec>()?;
    let fetch = first.fetch()?;
    let same = sort.expr() == first.expr()
        && sort.preserve_partitioning() == first.preserve_partitioning()
        && sort.fetch().is_none_or(|most| fetch <= most);
    same.then(|| Arc::clone(sort.input()))
}

/// Hides a limit from the wrapped rule: reports no fetch. Present only while [`hide_limits`] runs.
#[derive(Debug)]
struct OpaqueLimitExec {
    limit: Arc<dyn ExecutionPlan>,
    /// Whether this node reports the order of its input. It does not above a sort that
    /// [`split_sort`] has split: if a parent requires a reported order, the rule gives the fetch of
    /// the parent to the sorts below this node.
    ordered: bool,
    properties: Arc<PlanProperties>,
}

impl OpaqueLimitExec {
    fn new(limit: Arc<dyn ExecutionPlan>, ordered: bool) -> Self {
        let properties = match ordered {
            true => Arc::clone(limit.properties()),
            false => {
                let unknown = EquivalenceProperties::new(limit.schema());
                Arc::new(limit.properties().as_ref().clone().with_eq_properties(unknown))
            }
        };
        Self { limit, ordered, properties }
    }

    fn hide_other(&self, limit: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(limit, self.ordered)
    }
}

impl DisplayAs for OpaqueLimitExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpaqueLimitExec")
    }
}

impl ExecutionPlan for OpaqueLimitExec {
    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.limit.input_distribution_requirements()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let orders = self.limit.children().into_iter().map(|child| child.output_ordering());
        orders.map(|order| order.cloned().map(OrderingRequirements::from)).collect()
    }

    /// Returns `false`: otherwise, if a parent of this node requires an order, the rule would
    /// require it from the input of this node.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.limit.benefits_from_input_partitioning()
    }

    hide_node!("OpaqueLimitExec", limit);
}
