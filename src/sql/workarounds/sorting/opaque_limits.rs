//! Hides limits and sorts from a rule of DataFusion that would move sorts across them.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, OrderingRequirements};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements, PlanProperties,
};

use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::exec::shared::SharedExec;
use crate::sql::exec::{display_name, hide_node};
use crate::sql::order::{SourceOrderExec, has_window_keys, is_window, keeps_row_order};
use crate::sql::workarounds::sorting::moved_keys::has_order;

/// Keeps `EnsureRequirements` from moving sorts below limits, limits below windows or filters, and
/// from removing the sorts of subqueries whose order a limit or a window function needs.
///
/// If a sort is above a `GlobalLimitExec`, DataFusion moves the sort below the limit, so that
/// `(SELECT * FROM t LIMIT 3) ORDER BY id` returns the three smallest rows of the table. If a sort
/// is already below the limit, that sort gets the fetch of the limit but not the skip, so
/// `(.. ORDER BY id LIMIT 2 OFFSET 1) ORDER BY id` returns one row. This workaround is obsolete
/// once the test `stock_sorts_still_move_below_limits` fails.
///
/// If the input of a sort with a limit is sorted already, DataFusion removes the sort and gives its
/// limit to the merge below, even if a window function between them needs all rows. Sorts and their
/// limits are therefore separate nodes while the rule runs. This workaround is obsolete once the
/// test `stock_limits_still_move_below_windows` fails.
///
/// A limit takes the first rows of a sorted subquery, and `row_number() OVER ()` numbers them in
/// its order. If a key of the sort is not among the columns of the rows, as in `SELECT sum(x) FROM
/// (SELECT x FROM t ORDER BY time OFFSET 3)`, DataFusion does not see that the order is needed, and
/// removes the sort ([`hide_sorts`]). This workaround is obsolete once the test
/// `stock_sorts_by_dropped_keys_are_still_removed` fails.
pub(in crate::sql) fn hide_limits(
    stock: &dyn PhysicalOptimizerRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let opaque = plan.transform_up(|node| {
        if node.is::<GlobalLimitExec>() || node.is::<LocalLimitExec>() {
            let limit = hide_sorts(node)?.data;
            return Ok(Transformed::yes(
                Arc::new(OpaqueLimitExec::new(limit, HiddenNode::Limit)) as _
            ));
        }
        if node.is::<SharedExec>() || (is_window(&node) && !has_window_keys(&node)) {
            return hide_sorts(node);
        }
        Ok(match split_sort(&node)? {
            Some(limit) => {
                Transformed::yes(Arc::new(OpaqueLimitExec::new(limit, HiddenNode::SplitSort)) as _)
            }
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

/// Hides the sorts that order the rows of a limit, of a window without keys or of a `SharedExec`
/// (rows that several nodes read), so that the rule does not move or remove these sorts. Does not
/// hide sorts with a limit, which the rule never removes. Does not hide a sort below a limit or
/// `SharedExec` if the sort keys are all among the columns of this node, because the node then
/// requires the order.
fn hide_sorts(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let [input] = node.children()[..] else { return Ok(Transformed::no(node)) };
    let known = match is_window(&node) {
        true => 0,
        false if input.is::<SortExec>() => return Ok(Transformed::no(node)),
        false => input.output_ordering().map_or(0, |order| order.len()),
    };
    let is_lost = |sort: &SortExec| {
        sort.fetch().is_none() && !sort.preserve_partitioning() && known < sort.expr().len()
    };
    let hidden = Arc::clone(input).transform_down(|below| {
        if below.downcast_ref::<SortExec>().is_some_and(is_lost) {
            let sort = OpaqueLimitExec::new(below, HiddenNode::Sort);
            let sort = Arc::new(sort) as Arc<dyn ExecutionPlan>;
            return Ok(Transformed::new(sort, true, TreeNodeRecursion::Jump));
        }
        let next = match passes_order(&below) {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Jump,
        };
        Ok(Transformed::new(below, false, next))
    })?;
    if !hidden.transformed {
        return Ok(Transformed::no(node));
    }
    replace_inputs(node, vec![hidden.data]).map(Transformed::yes)
}

/// Whether a node returns the rows of its inputs in their order, one input after the other, and
/// requires no order itself.
fn passes_order(node: &Arc<dyn ExecutionPlan>) -> bool {
    let keeps_order = matches!(node.maintains_input_order().as_slice(), [true]);
    keeps_row_order(node)
        || node.is::<SourceOrderExec>()
        || (keeps_order && matches!(node.required_input_ordering().as_slice(), [None]))
}

/// Splits a sort with a limit into a sort and a limit above it, if its input has sorts or window
/// functions. Returns `None` for any other node.
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
/// limit of the outer sort, returns this input: the outer sort is redundant. Otherwise returns
/// `None`.
fn find_repeated_sort(node: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = node.downcast_ref::<SortExec>()?;
    let first = sort.input().downcast_ref::<SortExec>()?;
    let fetch = first.fetch()?;
    let same = sort.expr() == first.expr()
        && sort.preserve_partitioning() == first.preserve_partitioning()
        && sort.fetch().is_none_or(|most| fetch <= most);
    same.then(|| Arc::clone(sort.input()))
}

/// The node that an [`OpaqueLimitExec`] hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HiddenNode {
    Limit,
    /// A sort of [`hide_sorts`].
    Sort,
    /// The limit above a sort that [`split_sort`] has split.
    SplitSort,
}

/// Hides a limit, or a sort of [`hide_sorts`], from the wrapped rule: reports no fetch. Present
/// only while [`hide_limits`] runs.
#[derive(Debug)]
struct OpaqueLimitExec {
    limit: Arc<dyn ExecutionPlan>,
    hidden: HiddenNode,
    properties: Arc<PlanProperties>,
}

impl OpaqueLimitExec {
    fn new(limit: Arc<dyn ExecutionPlan>, hidden: HiddenNode) -> Self {
        let properties = match hidden {
            HiddenNode::Limit | HiddenNode::Sort => Arc::clone(limit.properties()),
            // Reports no order: if a parent required the order, the rule would give the fetch of
            // this parent to the sorts below this node.
            HiddenNode::SplitSort => {
                let unknown = EquivalenceProperties::new(limit.schema());
                Arc::new(limit.properties().as_ref().clone().with_eq_properties(unknown))
            }
        };
        Self { limit, hidden, properties }
    }

    fn hide_other(&self, limit: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(limit, self.hidden)
    }
}

display_name!(OpaqueLimitExec);

impl ExecutionPlan for OpaqueLimitExec {
    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.limit.input_distribution_requirements()
    }

    /// Requires the inputs of a limit in the order that they had before.
    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let requires_order = self.hidden != HiddenNode::Sort;
        let inputs = self.limit.children().into_iter();
        let orders = inputs.map(|input| input.output_ordering().filter(|_| requires_order));
        orders.map(|order| order.cloned().map(OrderingRequirements::from)).collect()
    }

    /// Returns `false`. Otherwise, the rule would sort the input of this node by an order that a
    /// parent of this node requires.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.limit.benefits_from_input_partitioning()
    }

    hide_node!("OpaqueLimitExec", limit);
}
