//! Checks, before a query runs, that workers would receive the same plan that the session made.
//!
//! Encodes and decodes each part of the plan that a worker would receive, and compares the result
//! with the original. Without this check, a worker would wait ten seconds for a plan that cannot be
//! encoded, and nobody would notice that the encoding has changed a plan.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::catalog::Session;
use datafusion::common::exec_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::window::SlidingAggregateWindowExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::windows::{
    BoundedWindowAggExec, PlainAggregateWindowExpr, StandardWindowExpr, WindowAggExec,
    WindowUDFExpr,
};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, WindowExpr, displayable};
use datafusion_distributed::{DistributedCodec, DistributedLeafExec, NetworkBoundaryExt};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
};
use datafusion_proto::physical_plan::DeduplicatingProtoConverter;

use super::worker_functions::replace_functions;
use crate::sql::portable::{reads_paths, to_portable};

/// Maximum bytes of an encoded part of a plan, including the tables in memory that it reads.
const MAX_PART_BYTES: usize = 64 << 20;

/// Checks the parts of `plan` that would run on workers. The error is the reason why workers cannot
/// run one of the parts.
pub(super) fn check_stages(
    plan: &Arc<dyn ExecutionPlan>,
    session: &dyn Session,
) -> std::result::Result<(), String> {
    let context = make_worker_context(session);
    for stage in find_stages(plan) {
        check_types(&stage.schema())?;
        check_stage(&stage, &context)?;
    }
    Ok(())
}

/// Returns the task context of `session`, with the functions of a worker.
#[doc(hidden)]
pub fn make_worker_context(session: &dyn Session) -> Arc<TaskContext> {
    Arc::new(replace_functions(&session.task_ctx()))
}

/// Returns an error if a column has a type that arrow-flight does not send correctly: it declares a
/// LargeList as a List, whose offsets are half as large, and it drops the metadata of unions.
fn check_types(schema: &Schema) -> std::result::Result<(), String> {
    for field in schema.fields() {
        if let Some(lost) = find_unsendable(field.data_type()) {
            return Err(format!(
                "the column {:?} contains a {lost}, which cannot be sent to workers; cast the column to another type, such as List instead of LargeList",
                field.name()
            ));
        }
    }
    Ok(())
}

fn find_unsendable(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::LargeList(_) => Some("LargeList"),
        DataType::Union(_, _) => Some("Union"),
        DataType::ListView(_) | DataType::LargeListView(_) => Some("ListView"),
        DataType::RunEndEncoded(_, _) => Some("RunEndEncoded"),
        DataType::List(inner) | DataType::FixedSizeList(inner, _) | DataType::Map(inner, _) => {
            find_unsendable(inner.data_type())
        }
        DataType::Struct(fields) => fields.iter().find_map(|f| find_unsendable(f.data_type())),
        DataType::Dictionary(_, values) => find_unsendable(values),
        _ => None,
    }
}

/// Returns the parts of a plan that run on workers and send their rows to the session. A part that
/// sends its rows to other workers is not listed, because it is a subplan of a returned part.
fn find_stages(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    if plan.is_network_boundary() {
        return plan.children().into_iter().map(Arc::clone).collect();
    }
    plan.children().into_iter().flat_map(find_stages).collect()
}

fn check_stage(
    stage: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> std::result::Result<(), String> {
    let mut reason = None;
    let checked = stage.apply(|node| {
        if node.is_network_boundary()
            && let Err(lost) = check_types(&node.schema())
        {
            reason = Some(lost);
            return Ok(TreeNodeRecursion::Stop);
        }
        reason = check_node(node, context)?;
        Ok(if reason.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    checked.map_err(|e| e.strip_backtrace())?;
    if let Some(reason) = reason {
        return Err(reason);
    }
    let one = find_first_task(stage).map_err(|e| e.strip_backtrace())?;
    let decoded = encode_and_decode(&one, context).map_err(|e| {
        let text = e.strip_backtrace();
        format!("the plan cannot be sent to workers: {}", text.lines().next().unwrap_or_default())
    })?;
    compare_plans(&one, &decoded)
}

fn find_first_task(stage: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = Arc::clone(stage).transform_up(|node| {
        let first = node.downcast_ref::<DistributedLeafExec>().and_then(|l| l.variants().first());
        Ok(match first {
            Some(first) => Transformed::yes(Arc::clone(first)),
            None => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}

/// Returns the bytes that a session sends to workers for `plan`.
#[doc(hidden)]
pub fn encode_plan(context: &TaskContext, plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
    let bytes = physical_plan_to_bytes_with_proto_converter(
        Arc::clone(plan),
        &DistributedCodec::new_combined_with_user(context.session_config()),
        &DeduplicatingProtoConverter::default(),
    )?;
    Ok(bytes.to_vec())
}

/// Returns the plan that a worker decodes from `bytes`.
#[doc(hidden)]
pub fn decode_plan(context: &TaskContext, bytes: &[u8]) -> Result<Arc<dyn ExecutionPlan>> {
    let decoded = physical_plan_from_bytes_with_proto_converter(
        bytes,
        context,
        &DistributedCodec::new_combined_with_user(context.session_config()),
        &DeduplicatingProtoConverter::default(),
    )?;
    retype_calls(decoded, context.session_config().options())
}

fn encode_and_decode(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let bytes = encode_plan(context, plan)?;
    if bytes.len() > MAX_PART_BYTES {
        return exec_err!(
            "the part of the plan to send to workers has {} bytes, but at most {MAX_PART_BYTES} are allowed; write the in-memory tables of the query to files",
            bytes.len()
        );
    }
    decode_plan(context, &bytes)
}

/// Returns an error if `decoded`, the copy of `plan` that a worker would get, differs from `plan`.
/// The error names the first node that differs, and the property that is lost.
fn compare_plans(
    plan: &Arc<dyn ExecutionPlan>,
    decoded: &Arc<dyn ExecutionPlan>,
) -> std::result::Result<(), String> {
    let lost = |property: &str| {
        Err(format!(
            "the plan node {} loses its {property} when it is encoded for workers, so the session runs the whole plan; please report it",
            plan.name()
        ))
    };
    // Workers run a `PlainOrderExec` in place of a `MergedOrderExec` (see `to_portable`).
    let is_replaced = plan.name() == "MergedOrderExec" && decoded.name() == "PlainOrderExec";
    if !is_replaced && plan.name() != decoded.name() {
        return lost("name");
    }
    if plan.schema() != decoded.schema() {
        return lost("types");
    }
    let count = |p: &Arc<dyn ExecutionPlan>| p.output_partitioning().partition_count();
    if count(plan) != count(decoded) {
        return lost("partitions");
    }
    let shown = |p: &Arc<dyn ExecutionPlan>| displayable(p.as_ref()).one_line().to_string();
    if !is_replaced && shown(plan) != shown(decoded) {
        return lost("properties");
    }
    let (ours, theirs) = (plan.children(), decoded.children());
    if ours.len() != theirs.len() {
        return lost("inputs");
    }
    ours.into_iter().zip(theirs).try_for_each(|(a, b)| compare_plans(a, b))
}

/// Returns the reason why the window functions of `node` cannot be sent to workers, or `None` if
/// they can be sent.
fn check_windows(node: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let windows = match node.downcast_ref::<WindowAggExec>() {
        Some(windows) => windows.window_expr(),
        None => node.downcast_ref::<BoundedWindowAggExec>()?.window_expr(),
    };
    let lost = windows.iter().find(|window| !is_plain_window(window.as_ref()))?;
    Some(format!(
        "the window function {} has FILTER or IGNORE NULLS, or reads its rows in the opposite order, which workers do not support",
        lost.name()
    ))
}

/// Whether a window function has none of the properties that DataFusion's encoding of plans drops:
/// FILTER, IGNORE NULLS, and that the optimizer has reversed the order of the rows. These are read
/// from debug strings, because no method returns them.
fn is_plain_window(window: &dyn WindowExpr) -> bool {
    let lacks_filter = |window: &dyn Debug| format!("{window:?}").ends_with("filter: None }");
    let window = window.as_any();
    if let Some(plain) = window.downcast_ref::<PlainAggregateWindowExpr>() {
        return !plain.get_aggregate_expr().is_reversed() && lacks_filter(plain);
    }
    if let Some(sliding) = window.downcast_ref::<SlidingAggregateWindowExpr>() {
        return !sliding.get_aggregate_expr().is_reversed() && lacks_filter(sliding);
    }
    let Some(standard) = window.downcast_ref::<StandardWindowExpr>() else { return false };
    let function = standard.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>();
    function.is_some_and(|function| {
        format!("{function:?}").ends_with("is_reversed: false, ignore_nulls: false }")
    })
}

/// Returns the reason why `node`, without its inputs, cannot be sent to workers, or `None` if it
/// can be sent.
fn check_node(node: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<Option<String>> {
    let leaf = match node.downcast_ref::<DistributedLeafExec>() {
        Some(leaf) => leaf.original(),
        None => node,
    };
    // A scan must be portable (`to_portable`), unless it scans tables in memory, which DataFusion
    // encodes.
    let scan = leaf.downcast_ref::<DataSourceExec>();
    if scan.is_some_and(|scan| !scan.data_source().is::<MemorySourceConfig>())
        && let Err(reason) = to_portable(leaf)
    {
        return Ok(Some(reason));
    }
    let mut reason = check_windows(node);
    if reason.is_some() {
        return Ok(reason);
    }
    node.apply_expressions(&mut |expr| {
        expr.apply(|e| {
            reason = check_function(e, node, context);
            Ok(if reason.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    if reason.is_some() {
        return Ok(reason);
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        for expr in aggregate.aggr_expr() {
            let known = context.aggregate_functions().get(expr.fun().name());
            if known.is_none_or(|known| known.as_ref() != expr.fun()) {
                return Ok(Some(format!(
                    "the function {} exists only in this query, not on workers",
                    expr.fun().name()
                )));
            }
        }
    }
    Ok(None)
}

fn check_function(
    expr: &Arc<dyn PhysicalExpr>,
    node: &Arc<dyn ExecutionPlan>,
    context: &TaskContext,
) -> Option<String> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let name = call.fun().name();
    if reads_paths(name) {
        return Some(format!(
            "{name}() reads a file by a path that may be relative to the folder of the session"
        ));
    }
    // Only the name of a function is sent, so workers must have the same function by this name.
    let known = context.scalar_functions().get(name);
    if known.is_none_or(|known| known.as_ref() != call.fun()) {
        return Some(format!("the function {name} exists only in this query, not on workers"));
    }
    let field = expr.return_field(&Schema::empty());
    let tagged = field.is_ok_and(|f| !f.metadata().is_empty());
    if tagged && !node.is::<ProjectionExec>() {
        return Some(format!(
            "the metadata of the result of {name}(), such as a shape, is lost within a condition or group"
        ));
    }
    None
}

/// Restores the metadata of function calls in projections, such as the shape of a tensor. This
/// metadata is lost when a plan is sent, because the encoding of a call does not contain it.
pub(super) fn retype_calls(
    plan: Arc<dyn ExecutionPlan>,
    options: &Arc<ConfigOptions>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(projection) = node.downcast_ref::<ProjectionExec>() else {
            return Ok(Transformed::no(node));
        };
        let schema = projection.input().schema();
        let mut changed = false;
        let mut exprs = Vec::with_capacity(projection.expr().len());
        for column in projection.expr() {
            let expr = Arc::clone(&column.expr).transform_up(|e| {
                let Some(call) = e.downcast_ref::<ScalarFunctionExpr>() else {
                    return Ok(Transformed::no(e));
                };
                let fun = Arc::new(call.fun().clone());
                let args = call.args().to_vec();
                let new = ScalarFunctionExpr::try_new(fun, args, &schema, Arc::clone(options))?;
                let found = e.return_field(&schema)?;
                let derived = new.return_field(&schema)?;
                // Replaces a call only if the metadata of its result changes, and its type and
                // nullability do not.
                let same = found.metadata() == derived.metadata()
                    || found.data_type() != derived.data_type()
                    || found.is_nullable() != derived.is_nullable();
                Ok(match same {
                    true => Transformed::no(e),
                    false => Transformed::yes(Arc::new(new) as Arc<dyn PhysicalExpr>),
                })
            })?;
            changed |= expr.transformed;
            exprs.push(ProjectionExpr { expr: expr.data, alias: column.alias.clone() });
        }
        if !changed {
            return Ok(Transformed::no(node));
        }
        let node = ProjectionExec::try_new(exprs, Arc::clone(projection.input()))?;
        Ok(Transformed::yes(Arc::new(node) as Arc<dyn ExecutionPlan>))
    })?;
    Ok(plan.data)
}
