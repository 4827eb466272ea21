//! Limits the memory of long constants that are repeated for every row of a batch.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{InListExpr, Literal};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use crate::functions::{count_repeated_bytes, is_ours};
use crate::sql::base::deep_stack::call_on_deep_stack;
use crate::sql::exec::cut_rows::{CutRowsExec, RepeatedConstants};
use crate::sql::pushdown::leaf_limit::BatchSizeExec;

/// Constants of a plan node that take at most this number of bytes per row are ignored, so that
/// most plans stay unchanged. Batches of 65,536 rows then take at most 64 MB.
const ROW_BYTES: usize = 1 << 10;

/// Physical optimizer rule: makes batches small where long constants are repeated for each row.
///
/// A constant list of 256 MB in SELECT is computed once, but the projection copies it for each of
/// the 8,192 rows of a batch. Without this rule, such an allocation ends the process. DataFusion
/// does not copy a list for a batch of one row.
pub(in crate::sql) fn limit_constants(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let batch_size: usize = config.execution.batch_size.get();
    let mut rows = usize::MAX;
    let mut has_text = false;
    let plan = plan.transform_up(|node| {
        let Some(constants) = find_constants(&node)? else { return Ok(Transformed::no(node)) };
        rows = rows.min(constants.count_fitting_rows());
        has_text |= constants.has_text;
        let inputs = node.children().into_iter().map(|input| {
            let cut = CutRowsExec::new(Arc::clone(input), constants.clone());
            Arc::new(cut) as Arc<dyn ExecutionPlan>
        });
        let inputs: Vec<_> = inputs.collect();
        match inputs.is_empty() {
            true => Ok(Transformed::no(node)),
            false => Ok(Transformed::yes(replace_similar_inputs(node, inputs)?)),
        }
    })?;
    if rows >= batch_size {
        return Ok(plan.data);
    }
    // Joins, filters and repartitioning above a node that returns small batches collect rows up to
    // the batch size again, so these nodes get a lower batch size.
    lower_batch_size(plan.data, BatchSizes { given: batch_size, rows, has_text, is_lowered: false })
}

/// Replaces the inputs of a node with inputs that have the same properties, such as their order.
fn replace_similar_inputs(
    node: Arc<dyn ExecutionPlan>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    node.replace_children(inputs, keep)
}

/// Returns the constants that a node repeats for each row. Returns `None` if the node has only one
/// row, or if its constants are literals that take at most [`ROW_BYTES`] bytes together.
fn find_constants(node: &Arc<dyn ExecutionPlan>) -> Result<Option<RepeatedConstants>> {
    if node.children().iter().any(|input| input.is::<PlaceholderRowExec>()) {
        return Ok(None);
    }
    let mut found = RepeatedConstants::default();
    node.apply_expressions(&mut |e: &Arc<dyn PhysicalExpr>| {
        add_constants(e, &mut found)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok((found.bytes > ROW_BYTES || !found.results.is_empty()).then_some(found))
}

/// Adds to `found` the constants in an expression that DataFusion may repeat for each row.
fn add_constants(e: &Arc<dyn PhysicalExpr>, found: &mut RepeatedConstants) -> Result<()> {
    e.apply(|e| {
        if let Some(literal) = e.downcast_ref::<Literal>() {
            let bytes = count_repeated_bytes(literal.value());
            found.bytes = found.bytes.saturating_add(bytes);
            found.has_text |= bytes > 0 && !literal.value().data_type().is_nested();
        }
        if e.is::<ScalarSubqueryExpr>() && e.return_field(&Schema::empty())?.data_type().is_nested()
        {
            found.results.push(Arc::clone(e));
        }
        // IN reads its list once per batch, and a function of Serrate reads each argument after the
        // first once per batch, so constants there are not added. If a function repeats such an
        // argument, `Call::read_array` checks its size.
        let first = match (e.downcast_ref::<InListExpr>(), e.downcast_ref::<ScalarFunctionExpr>()) {
            (Some(list), _) => Some(list.expr()),
            (_, Some(call)) if is_ours(call.fun()) => call.args().first(),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        if let Some(first) = first {
            add_constants(first, found)?;
        }
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(())
}

#[derive(Clone, Copy)]
struct BatchSizes {
    /// The batch size of a node without this rule.
    given: usize,
    /// The batch size of nodes that return long constants.
    rows: usize,
    /// Whether the long constants include strings.
    has_text: bool,
    /// Whether a node above has set the batch size to `rows`.
    is_lowered: bool,
}

/// Lowers the batch size from the topmost nodes that may return long constants down to those that
/// repeat them. The inputs below keep their batch size.
fn lower_batch_size(
    node: Arc<dyn ExecutionPlan>,
    sizes: BatchSizes,
) -> Result<Arc<dyn ExecutionPlan>> {
    if !repeats_constants(&node)? {
        return Ok(match sizes.is_lowered {
            true => Arc::new(BatchSizeExec::new(node, sizes.given)),
            false => node,
        });
    }
    if let Some(sized) = node.downcast_ref::<BatchSizeExec>()
        && let [input] = node.children()[..]
    {
        let given = sized.batch_rows();
        let input = lower_batch_size(Arc::clone(input), BatchSizes { given, ..sizes })?;
        return Ok(match sizes.is_lowered {
            true => input,
            false => Arc::new(BatchSizeExec::new(input, given)),
        });
    }
    let rows = sizes.rows.min(sizes.given);
    let starts = !sizes.is_lowered && returns_long_values(&node, sizes.has_text);
    let below = BatchSizes { is_lowered: sizes.is_lowered || starts, ..sizes };
    // A `FilterExec` would keep the batch size with which it was planned, so it gets a lower one.
    let filter = match node.downcast_ref::<FilterExec>() {
        Some(filter) if below.is_lowered && filter.batch_size() > rows => {
            Some(Arc::new(filter.with_batch_size(rows)?) as Arc<dyn ExecutionPlan>)
        }
        _ => None,
    };
    let node = filter.unwrap_or(node);
    let inputs = node.children().into_iter().map(|input| {
        let input = Arc::clone(input);
        call_on_deep_stack(|| lower_batch_size(input, below))
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let node = if inputs.is_empty() { node } else { replace_similar_inputs(node, inputs)? };
    Ok(match starts {
        true => Arc::new(BatchSizeExec::new(node, rows)),
        false => node,
    })
}

/// Whether a plan has a node that repeats long constants: a node above a [`CutRowsExec`] that this
/// rule has added, or a node without inputs, which limits its batches itself.
fn repeats_constants(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| {
        Ok(node.is::<CutRowsExec>()
            || (node.children().is_empty() && find_constants(node)?.is_some()))
    })
}

/// Whether the rows of a plan may have lists or, if `has_text`, strings.
fn returns_long_values(plan: &Arc<dyn ExecutionPlan>, has_text: bool) -> bool {
    let is_short =
        |t: &DataType| t.is_primitive() || matches!(t, DataType::Boolean | DataType::Null);
    let is_long = |t: &DataType| t.is_nested() || (has_text && !is_short(t));
    plan.schema().fields().iter().any(|field| is_long(field.data_type()))
}
