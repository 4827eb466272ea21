//! Scans that read only the lengths of lists.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableScan};
use datafusion::optimizer::OptimizerConfig;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::array::list_depth;
use crate::functions::{ReadParts, find_list_reads, never_fails};
use crate::sql::base::expression_parts::has_part;
use crate::sql::base::measured_lists::{find_measured_columns, find_reads};
use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::sources::listing::FilesTable;
use crate::sql::sources::table_provider::{RaggedTableProvider, TableSource};

/// Prefix of the names of columns that have results of moved calls.
const LENGTH_PREFIX: &str = "__serrate_lengths";

/// Logical optimizer rule, the last of each pass of the optimizer: moves calls that need only list
/// lengths, such as `ragged_count(code)`, from aggregates, conditions and sorts to a projection
/// directly above the scan. A call is moved only if the scan is one of `.nrt`, Parquet or a table
/// in memory, and if no other expression needs the values of the list.
///
/// Without this rule, `SELECT sum(ragged_count(code)) FROM 't.nrt'` reads the values of `code`.
///
/// DataFusion pushes into a scan only the expressions of a projection directly above it. If only
/// the lengths of a column are needed, a scan of `.nrt` reads list bounds and no values, a scan of
/// Parquet decodes repetition levels and no values, and a table in memory need not limit the leaves
/// of its batches.
pub(crate) fn move_lengths_below(
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let begins_here = matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_));
    // The rule skips grouping sets: the column of a key such as `ragged_count(x)` is named after
    // the text of the key, and a replaced call would change this name.
    let is_set = |e: &Expr| matches!(e, Expr::GroupingSet(_));
    if !begins_here
        || !has_part(&plan, is_length_call) && !has_call_below(&plan, is_length_call)
        || has_part(&plan, is_set)
    {
        return Ok(Transformed::no(plan));
    }
    let Some(base) = find_scan_below(&plan, &config.options()) else {
        return Ok(Transformed::no(plan));
    };
    // Calls in a projection directly above the scan are kept: DataFusion pushes them down.
    let is_above_scan = plan.inputs().first().is_some_and(|input| std::ptr::eq(*input, base));
    if is_above_scan && matches!(plan, LogicalPlan::Projection(_)) {
        return Ok(Transformed::no(plan));
    }
    let columns = find_length_columns(&plan, base)?;
    if columns.is_empty() {
        return Ok(Transformed::no(plan));
    }
    let base = base.clone();
    let mut made: Vec<(Expr, Column)> = Vec::new();
    let plan = replace_calls(plan, &base, &columns, &mut made, config)?;
    Ok(Transformed::yes(plan))
}

/// Physical optimizer rule, directly after conditions are pushed into scans and before a
/// repartitioning is inserted: pushes the projection of [`move_lengths_below`] into the scan. A
/// table in memory keeps the projection above its scan, which then returns list lengths in fewer
/// and larger batches.
///
/// Without this rule, `SELECT ragged_count(code) FROM 't.nrt'` reads the values of `code`.
pub(in crate::sql) fn push_lengths(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(projection) = node.downcast_ref::<ProjectionExec>() else {
            return Ok(Transformed::no(node));
        };
        let Some(scan) = projection.input().downcast_ref::<DataSourceExec>() else {
            return Ok(Transformed::no(node));
        };
        if let Some(table) = scan.data_source().downcast_ref::<TableSource>() {
            let schema = scan.schema();
            let unseen = find_measured_columns(projection.expr().iter(), &schema, false);
            let mut lists = schema.fields().iter().filter(|f| list_depth(f.data_type()) > 0);
            if unseen.is_empty() || !lists.all(|f| unseen.contains(f.name())) {
                return Ok(Transformed::no(node));
            }
            if projection.expr().iter().any(|e| moves_leaves(&e.expr)) {
                let scan = DataSourceExec::from_data_source(table.reduce_to_lengths(true)?);
                // If a function does not accept lists without values, the scan keeps the values.
                let over = replan_projection(projection, scan, config).ok();
                if let Some(over) = over.filter(|over| over.schema() == node.schema()) {
                    return Ok(Transformed::yes(over));
                }
            }
            let scan = DataSourceExec::from_data_source(table.reduce_to_lengths(false)?);
            return replace_inputs(Arc::clone(&node), vec![scan]).map(Transformed::yes);
        }
        if !projection.expr().iter().any(|e| e.alias.starts_with(LENGTH_PREFIX)) {
            return Ok(Transformed::no(node));
        }
        match projection.input().try_swapping_with_projection(projection)? {
            Some(scan) => Ok(Transformed::yes(scan)),
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok(plan.data)
}

/// Whether an expression calls a function, such as `ragged_head`, that moves or drops values of
/// lists but does not read them.
fn moves_leaves(e: &Arc<dyn PhysicalExpr>) -> bool {
    e.exists(|e| Ok(find_reads(e) == ReadParts::Structure)).unwrap_or(false)
}

/// Rebuilds a projection for `scan`, which returns other column types than the input of
/// `projection`. Each function call is created again, so that it accepts or rejects the new types.
fn replan_projection(
    projection: &ProjectionExec,
    scan: Arc<DataSourceExec>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = scan.schema();
    let config = Arc::new(config.clone());
    let expressions = projection
        .expr()
        .iter()
        .map(|given| {
            let over = Arc::clone(&given.expr).transform_up(|e| {
                let Some(call) = e.downcast_ref::<ScalarFunctionExpr>() else {
                    return Ok(Transformed::no(e));
                };
                let (function, args) = (Arc::new(call.fun().clone()), call.args().to_vec());
                let call =
                    ScalarFunctionExpr::try_new(function, args, &schema, Arc::clone(&config));
                Ok(Transformed::yes(Arc::new(call?) as Arc<dyn PhysicalExpr>))
            })?;
            Ok(ProjectionExpr { expr: over.data, alias: given.alias.clone() })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new(expressions, scan)?))
}

fn is_length_call(e: &Expr) -> bool {
    find_length_column(e).is_some()
}

/// Whether a condition or a sort between a plan and its scan contains an expression for which `has`
/// is true.
fn has_call_below(plan: &LogicalPlan, has: fn(&Expr) -> bool) -> bool {
    match plan.inputs()[..] {
        [input] if passes_rows(input) => has_part(input, has) || has_call_below(input, has),
        _ => false,
    }
}

/// Returns the list column if `e` reads only the lengths of its lists, as `ragged_count(code)` and
/// `ragged_count(ragged_head(code, 3))` do. Returns `None` for any other expression.
fn find_length_column(e: &Expr) -> Option<&Column> {
    let mut list = find_read_list(e, ReadParts::is_length)?;
    loop {
        if let Expr::Column(column) = list {
            return Some(column);
        }
        list = find_read_list(list, |what| what == ReadParts::Structure)?;
    }
}

/// Returns the list that is the first argument of the call `e`. Returns `None` unless `accepts`
/// returns true for the part of the list that the function reads, all other arguments are literals,
/// and the call cannot fail for any row, including rows that a condition drops.
fn find_read_list(e: &Expr, accepts: impl Fn(ReadParts) -> bool) -> Option<&Expr> {
    let Expr::ScalarFunction(call) = e else { return None };
    let [list, rest @ ..] = call.args.as_slice() else { return None };
    let are_literals = rest.iter().all(|e| matches!(e, Expr::Literal(..)));
    (accepts(find_list_reads(&call.func)) && are_literals && never_fails(call)).then_some(list)
}

/// Whether each output row of a plan is a row of its input, with columns of the input.
fn passes_rows(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_))
        || find_projected_columns(plan).is_some()
}

/// Returns the columns of a projection of columns alone, as in `SELECT a, b`. Returns `None` for a
/// projection with any other expression, and for any other plan.
fn find_projected_columns(plan: &LogicalPlan) -> Option<Vec<&Column>> {
    let LogicalPlan::Projection(projection) = plan else { return None };
    let columns = projection.expr.iter().map(|e| match e {
        Expr::Column(column) => Some(column),
        _ => None,
    });
    columns.collect()
}

/// Returns the scan below a plan or, if the scan has an alias, the node of the alias. Returns
/// `None` for a plan without a scan, and for a scan that always reads the values of lists together
/// with their lengths.
fn find_scan_below<'a>(plan: &'a LogicalPlan, options: &ConfigOptions) -> Option<&'a LogicalPlan> {
    let [input] = plan.inputs()[..] else { return None };
    match input {
        LogicalPlan::TableScan(scan) => gains_from_lengths(scan, options).then_some(input),
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::TableScan(scan) => gains_from_lengths(scan, options).then_some(input),
            _ => None,
        },
        input if passes_rows(input) => find_scan_below(input, options),
        _ => None,
    }
}

/// Whether a scan can avoid reading the values of a column if only its lengths are needed.
fn gains_from_lengths(scan: &TableScan, options: &ConfigOptions) -> bool {
    source_as_provider(&scan.source).is_ok_and(|table| {
        let files = table.downcast_ref::<FilesTable>();
        table.is::<RaggedTableProvider>() || files.is_some_and(|files| files.has_lengths(options))
    })
}

/// Returns the list columns of the scan `base` that the nodes from `plan` down to the scan use only
/// for their lengths.
fn find_length_columns(plan: &LogicalPlan, base: &LogicalPlan) -> Result<HashSet<Column>> {
    let mut lengths: HashSet<Column> = HashSet::new();
    let mut values: HashSet<Column> = HashSet::new();
    let mut node = plan;
    while !std::ptr::eq(node, base) {
        // Skips a projection below `plan` that only selects columns: it passes lists on and does
        // not read their values.
        let is_passed_on = !std::ptr::eq(node, plan) && find_projected_columns(node).is_some();
        for expression in node.expressions().into_iter().filter(|_| !is_passed_on) {
            expression.apply(|e| {
                if let Some(column) = find_length_column(e) {
                    lengths.insert(column.clone());
                    return Ok(TreeNodeRecursion::Jump);
                }
                if let Expr::Column(column) = e {
                    values.insert(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        match node.inputs()[..] {
            [input] => node = input,
            _ => break,
        }
    }
    let is_list = |c: &Column| {
        base.schema()
            .qualified_field_from_column(c)
            .is_ok_and(|(_, f)| list_depth(f.data_type()) > 0)
    };
    Ok(lengths.into_iter().filter(|c| !values.contains(c) && is_list(c)).collect())
}

/// Replaces each call that needs only list lengths of `columns` with a column of a projection above
/// the scan `base`. Adds each call and its column to `made`, unless `made` already has the call.
fn replace_calls(
    plan: LogicalPlan,
    base: &LogicalPlan,
    columns: &HashSet<Column>,
    made: &mut Vec<(Expr, Column)>,
    config: &dyn OptimizerConfig,
) -> Result<LogicalPlan> {
    let names = NamePreserver::new(&plan);
    let expressions = plan
        .expressions()
        .into_iter()
        .map(|expression| {
            let name = names.save(&expression);
            let moved = expression.transform_down(|e| {
                if find_length_column(&e).is_none_or(|column| !columns.contains(column)) {
                    return Ok(Transformed::no(e));
                }
                let known = made.iter().find(|(known, _)| *known == e).map(|(_, c)| c.clone());
                let column = known.unwrap_or_else(|| {
                    let name = config.alias_generator().next(LENGTH_PREFIX);
                    let column = Column::new_unqualified(name);
                    made.push((e, column.clone()));
                    column
                });
                Ok(Transformed::new(Expr::Column(column), true, TreeNodeRecursion::Jump))
            })?;
            Ok(name.restore(moved.data))
        })
        .collect::<Result<Vec<_>>>()?;
    let input = match plan.inputs()[..] {
        [input] => rebuild_over(input, base, columns, made, config)?,
        _ => return Ok(plan),
    };
    plan.with_new_exprs(expressions, vec![input])
}

/// Rebuilds the nodes from `input` down to the scan `base`, with the projection of
/// [`replace_calls`] above the scan. Its columns replace `columns` in projections of columns.
fn rebuild_over(
    input: &LogicalPlan,
    base: &LogicalPlan,
    columns: &HashSet<Column>,
    made: &mut Vec<(Expr, Column)>,
    config: &dyn OptimizerConfig,
) -> Result<LogicalPlan> {
    if let (Some(chosen), [below]) = (find_projected_columns(input), &input.inputs()[..]) {
        let kept = chosen.into_iter().filter(|c| !columns.contains(c)).cloned();
        let above = kept.chain(made.iter().map(|(_, column)| column.clone()));
        let above: Vec<Expr> = above.map(Expr::Column).collect();
        let below = rebuild_over(below, base, columns, made, config)?;
        return LogicalPlanBuilder::from(below).project(above)?.build();
    }
    if passes_rows(input) {
        return replace_calls(input.clone(), base, columns, made, config);
    }
    let kept = base.schema().columns().into_iter().filter(|c| !columns.contains(c));
    let kept = kept.map(Expr::Column).collect::<Vec<_>>();
    let made = made.iter().map(|(e, column)| e.clone().alias(column.name.clone()));
    LogicalPlanBuilder::from(base.clone()).project(kept.into_iter().chain(made))?.build()
}
