//! Physical optimizer rules that put the rows of scans into source order (by file, then by position
//! in the file) where a statement needs it.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::exec::nest::NestExec;
use crate::sql::exec::table_rows::TableRowsExec;
use crate::sql::order::ordered_sink::OrderedSinkExec;
use crate::sql::order::source_order::SourceOrderExec;
use crate::sql::order::{
    fix_memory, has_memory, has_window_keys, is_sorted_output, is_window, rewrite_plan,
};

/// Physical optimizer rule: puts rows in source order below LIMIT, `ragged_nest`, windows without
/// keys, CREATE TABLE AS and Serrate's sinks.
///
/// Without this rule, `SELECT * FROM 'folder/' LIMIT 3` returns rows of any file instead of the
/// first rows.
pub(crate) fn keep_source_order(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    // To evaluate a projection in parallel, the optimizer may insert a repartition above the limit.
    // The repartition loses the order, so the nodes above the limit are rewritten, too.
    let plan = match limit_reaches_output(&plan) {
        true => rewrite_plan(&plan)?.unwrap_or(plan),
        false => plan,
    };
    let plan = plan.transform_down(|node| {
        if let Some(sink) = node.downcast_ref::<OrderedSinkExec>() {
            return Ok(match sink.to_ordered()? {
                Some(sink) => Transformed::yes(Arc::new(sink) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(node),
            });
        }
        if node.is::<NestExec>() || (is_window(&node) && !has_window_keys(&node)) {
            return order_input(node);
        }
        // An existing `SourceOrderExec` is rewritten again, because the optimizer may have
        // repartitioned its input.
        let is_concat = node.is::<SourceOrderExec>();
        let limits = match node.downcast_ref::<CoalescePartitionsExec>() {
            Some(coalesce) => coalesce.fetch().is_some(),
            None => node.downcast_ref::<GlobalLimitExec>().is_some_and(|l| l.skip() > 0),
        };
        if !limits && !is_concat && !node.is::<TableRowsExec>() {
            return Ok(Transformed::no(node));
        }
        Ok(match rewrite_plan(&node)? {
            Ok(ordered) => Transformed::yes(ordered),
            Err(_) => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}

/// Puts the only input of a node into source order (by file, then by position in the file) and one
/// partition. Leaves an input without such an order unchanged.
fn order_input(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let [input] = node.children()[..] else { return Ok(Transformed::no(node)) };
    let Ok(mut input) = rewrite_plan(input)? else { return Ok(Transformed::no(node)) };
    if input.output_partitioning().partition_count() > 1 {
        input = Arc::new(SourceOrderExec::new(input, None));
    }
    replace_inputs(node, vec![input]).map(Transformed::yes)
}

/// Whether a plan is a chain of nodes with one input down to a limit, with a round-robin
/// repartition above the limit. A `ScalarSubqueryExec` counts as a node with one input.
fn limit_reaches_output(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut node = plan;
    let mut dealt_out = false;
    loop {
        if node.is::<GlobalLimitExec>() || node.is::<SourceOrderExec>() || node.fetch().is_some() {
            return dealt_out;
        }
        dealt_out |= node
            .downcast_ref::<RepartitionExec>()
            .is_some_and(|dealt| matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_)));
        match node.children()[..] {
            [child] => node = child,
            [main, ..] if node.is::<ScalarSubqueryExec>() => node = main,
            _ => return false,
        }
    }
}

/// Physical optimizer rule, before DataFusion's rules: makes LIMIT over tables in memory return the
/// first rows.
///
/// Without this rule, `SELECT * FROM t LIMIT 3` over a table in memory does not return the first
/// rows of `t`.
pub(crate) fn keep_memory_order(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_down(|node| {
        // `fix_memory` changes all tables below this limit, including those below other limits, so
        // this walk does not visit the inputs of the limit.
        let is_changed = node.is::<GlobalLimitExec>() && has_memory(&node)?;
        if is_changed && rewrite_plan(&node)?.is_ok() {
            let fixed = fix_memory(node)?;
            return Ok(Transformed::new(fixed, true, TreeNodeRecursion::Jump));
        }
        Ok(Transformed::no(node))
    })?;
    Ok(plan.data)
}

/// Physical optimizer rule, before DataFusion's rules: concatenates sorted inputs of LIMIT,
/// `ragged_nest` and windows without keys in source order, where the statement does not sort the
/// rows itself.
///
/// Without this rule, `(SELECT * FROM a ORDER BY x) UNION ALL (SELECT * FROM b ORDER BY x) LIMIT 3`
/// and LIMIT over a table WITH ORDER (x) of several files merge the partitions by `x`. With one
/// partition, the same table returns the rows of its first file.
pub(crate) fn concatenate_sorted_inputs(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let takes_source_order = node.is::<GlobalLimitExec>()
            || node.is::<NestExec>()
            || (is_window(&node) && !has_window_keys(&node));
        let [input] = node.children()[..] else { return Ok(Transformed::no(node)) };
        if !takes_source_order || !is_sorted_by_sources(input) {
            return Ok(Transformed::no(node));
        }
        let Ok(ordered) = rewrite_plan(input)? else { return Ok(Transformed::no(node)) };
        let input = Arc::new(SourceOrderExec::new(ordered, None)) as Arc<dyn ExecutionPlan>;
        replace_inputs(node, vec![input]).map(Transformed::yes)
    })?;
    Ok(plan.data)
}

/// Whether a plan reports an order that is only that of its partitions or of a scan: no ORDER BY
/// sorts all its rows.
fn is_sorted_by_sources(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.output_ordering().is_none() {
        return false;
    }
    let mut node = plan;
    while node.output_partitioning().partition_count() == 1 {
        match node.children()[..] {
            [] => return node.is::<DataSourceExec>(),
            [child] if !is_sorted_output(node) => node = child,
            _ => return false,
        }
    }
    true
}
