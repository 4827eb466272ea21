use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::exec::merged_order::{MergedOrderExec, keep_one_order};

/// Physical optimizer rule, before sorts are enforced: if a node needs one order of its input,
/// hides the other orders of the input from this node.
///
/// DataFusion 55 assumes that a merge of partitions keeps every order of its input. If `y` is
/// `date_trunc('hour', t)` in one partition and `date_trunc('year', t)` in another, and both are
/// sorted by `t`, each partition is also sorted by `y`, but their merge by `t` is not. DataFusion
/// still drops ORDER BY `y` above the merge. This workaround is obsolete once the test
/// `stock_merges_still_claim_every_order` fails.
pub(in crate::sql) fn hide_other_orders(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(plan.transform_up(hide_orders_of_inputs)?.data)
}

/// Physical optimizer rule, after sorts are enforced: adds to each merge the sort keys of its input
/// that it lacks. A merge by `x` of partitions that are sorted by `x, y` becomes a merge by `x, y`.
///
/// If each partition is sorted by `x, y`, a merge of the partitions by `x` mixes the `y` of equal
/// `x`. DataFusion 55 assumes that the rows are still sorted by `x, y`: `SELECT * FROM (SELECT *
/// FROM t ORDER BY x LIMIT 9) ORDER BY x, y` is not sorted by `y` over several files in the order
/// `x, y`. This workaround is obsolete once the test `stock_merges_still_claim_every_order` fails.
pub(in crate::sql) fn merge_by_all_keys(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() else {
            return Ok(Transformed::no(node));
        };
        let required = LexRequirement::from(merge.expr().clone());
        let known = keep_one_order(merge.input().equivalence_properties(), Some(&required));
        let Some(order) = known.oeq_class().first() else { return Ok(Transformed::no(node)) };
        let mut merged = known.clone();
        merged.clear_orderings();
        merged.add_ordering(merge.expr().clone());
        if merged.ordering_satisfy(order.clone())? {
            return Ok(Transformed::no(node));
        }
        let merge = SortPreservingMergeExec::new(order.clone(), Arc::clone(merge.input()));
        Ok(Transformed::yes(Arc::new(merge.with_fetch(node.fetch()))))
    })?;
    Ok(plan.data)
}

fn hide_orders_of_inputs(
    node: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let required = find_required_orders(&node);
    let mut changed = false;
    let mut inputs = Vec::new();
    for (input, required) in node.children().into_iter().zip(required) {
        let mut input = Arc::clone(input);
        if let Some(required) = required
            && loses_order(&input, required.as_ref())?
        {
            input = Arc::new(MergedOrderExec::new(input, required));
            changed = true;
        }
        inputs.push(input);
    }
    if !changed {
        return Ok(Transformed::no(node));
    }
    replace_inputs(node, inputs).map(Transformed::yes)
}

/// Returns, for each input of `node`, the order that `node` requires: `None` if `node` uses no
/// order of the input, and `Some(None)` if `node` requires no order but uses any order that the
/// input has.
fn find_required_orders(node: &Arc<dyn ExecutionPlan>) -> Vec<Option<Option<LexRequirement>>> {
    if let Some(sort) = node.downcast_ref::<SortExec>() {
        return vec![Some(Some(LexRequirement::from(sort.expr().clone())))];
    }
    let uses_any_order = node.is::<AggregateExec>();
    node.required_input_ordering()
        .into_iter()
        .map(|required| match required {
            Some(required) => Some(Some(required.first().clone())),
            None => uses_any_order.then_some(None),
        })
        .collect()
}

/// Whether a merge of the partitions of `input` by `required` breaks an order of `input`. Also
/// returns true if `required` is given and `input` is a UNION ALL: sorts that are added below the
/// UNION ALL later may give it an order that the merge breaks.
fn loses_order(input: &Arc<dyn ExecutionPlan>, required: Option<&LexRequirement>) -> Result<bool> {
    if input.is::<MergedOrderExec>() {
        return Ok(false);
    }
    if required.is_some() && has_union(input)? {
        return Ok(true);
    }
    let known = input.equivalence_properties();
    if known.oeq_class().is_empty() {
        return Ok(false);
    }
    let merged = keep_one_order(known, required);
    for order in known.oeq_class().iter() {
        if !merged.ordering_satisfy(order.clone())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether `input` is a UNION ALL, or a node that keeps the order of the rows of a UNION ALL below
/// it.
fn has_union(input: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut found = false;
    input.apply(|node| {
        found = found || node.is::<UnionExec>();
        let stops = found || !node.maintains_input_order().contains(&true);
        Ok(if stops { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
