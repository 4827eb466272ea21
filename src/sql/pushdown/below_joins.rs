//! Calls on lists that are evaluated below joins.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Projection,
};
use datafusion::optimizer::OptimizerConfig;

use crate::array::list_depth;
use crate::functions::{cannot_fail, find_facts, is_fixed_slice, is_ours};
use crate::sql::base::expression_parts::map_named;
use crate::sql::base::plan_nodes::keeps_side;

const PREFIX: &str = "__serrate_below_join";

/// Logical optimizer rule: moves calls of Serrate's functions, `x[a:b]` and `x[a]` below a join.
///
/// Without this rule, `SELECT ragged_sum(t.x) FROM t JOIN u ON t.id = u.id` copies each list `x`
/// once per match.
///
/// A join copies the lists of each row that it returns, once per match. The result of a function on
/// lists is usually small (a sum, the last ten events). Below the join, the function runs once per
/// row of its input, and copies no lists. The function stays above the join if an outer join adds
/// rows of NULL, if it needs columns of both inputs, if it may fail on rows without a match, or if
/// the query also returns the lists themselves.
pub(crate) fn move_below_joins(
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if !matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::no(plan));
    }
    let Some((join, between)) = plan.inputs().first().and_then(|input| join_below(input)) else {
        return Ok(Transformed::no(plan));
    };
    // The projection only selects columns, so each of its expressions is a column of the join.
    let between = between.map(|projection| projection.expr.clone());
    let sides = [
        keeps_side(join.join_type, true).then(|| Arc::clone(join.left.schema())),
        keeps_side(join.join_type, false).then(|| Arc::clone(join.right.schema())),
    ];
    let join = join.clone();
    let bare = find_bare_lists(&plan);
    let mut made: [Vec<(Expr, Column)>; 2] = Default::default();
    let mut changed = false;
    let above = map_named(plan.clone(), |e| {
        e.transform_down(|e| {
            let Some(side) = find_side(&e, &sides, &bare)? else {
                return Ok(Transformed::no(e));
            };
            let known = made[side].iter().find(|(known, _)| *known == e);
            let column = match known {
                Some((_, column)) => column.clone(),
                None => {
                    let name = config.alias_generator().next(PREFIX);
                    let column = Column::new_unqualified(name);
                    made[side].push((e, column.clone()));
                    column
                }
            };
            changed = true;
            let column = Expr::Column(column);
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        })
    })?;
    if !changed {
        return Ok(Transformed::no(plan));
    }
    let moved: Vec<Expr> =
        made.iter().flatten().map(|(_, column)| Expr::Column(column.clone())).collect();
    let [left, right] = made;
    let inputs = vec![add_columns(&join.left, left)?, add_columns(&join.right, right)?];
    let join = LogicalPlan::Join(join);
    let mut join = join.with_new_exprs(join.expressions(), inputs)?;
    if let Some(columns) = between {
        let columns = columns.into_iter().chain(moved);
        join = LogicalPlanBuilder::from(join).project(columns)?.build()?;
    }
    plan.with_new_exprs(above.data.expressions(), vec![join]).map(Transformed::yes)
}

/// Returns `input` if it is a join or, if `input` is a projection that only selects columns, the
/// join directly below it, together with the projection. Returns `None` for any other plan.
fn join_below(input: &LogicalPlan) -> Option<(&Join, Option<&Projection>)> {
    match input {
        LogicalPlan::Join(join) => Some((join, None)),
        LogicalPlan::Projection(projection)
            if projection.expr.iter().all(|e| matches!(e, Expr::Column(_))) =>
        {
            match projection.input.as_ref() {
                LogicalPlan::Join(join) => Some((join, Some(projection))),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns the join input (0 or 1) to which the call `e` can move, or `None` if it must stay above
/// the join. `sides` has the schema of each input, or `None` if the join adds rows of NULL to the
/// input. A call that reads one of the columns `bare`, which the query also returns, stays.
fn find_side(
    e: &Expr,
    sides: &[Option<Arc<DFSchema>>; 2],
    bare: &HashSet<Column>,
) -> Result<Option<usize>> {
    let Expr::ScalarFunction(call) = e else { return Ok(None) };
    if !(is_ours(&call.func) || is_fixed_slice(call)) || e.is_volatile() {
        return Ok(None);
    }
    let columns = e.column_refs();
    if columns.is_empty() || columns.iter().any(|c| bare.contains(*c)) {
        return Ok(None);
    }
    for (i, side) in sides.iter().enumerate() {
        let Some(schema) = side else { continue };
        let mut lists = false;
        let has_columns = columns.iter().all(|c| match schema.field_from_column(c) {
            Ok(field) => {
                lists |= list_depth(field.data_type()) > 0;
                true
            }
            Err(_) => false,
        });
        if has_columns && lists {
            // Below the join, the function also runs for rows without a match, so it must not fail.
            if !cannot_fail(e, schema.as_ref())? {
                return Ok(None);
            }
            // An elementwise result is as large as its input, so only calls that shrink a list
            // move.
            let small = match e.get_type(schema.as_ref()) {
                Ok(t) => {
                    list_depth(&t) == 0 || find_facts(&call.func).shrinks || is_fixed_slice(call)
                }
                Err(_) => false,
            };
            return Ok(small.then_some(i));
        }
    }
    Ok(None)
}

/// Returns the columns that a plan returns unchanged: `x`, but not `y`, of `SELECT x, f(y)`.
fn find_bare_lists(plan: &LogicalPlan) -> HashSet<Column> {
    plan.expressions()
        .into_iter()
        .filter_map(|e| match e.unalias() {
            Expr::Column(column) => Some(column),
            _ => None,
        })
        .collect()
}

fn add_columns(side: &Arc<LogicalPlan>, made: Vec<(Expr, Column)>) -> Result<LogicalPlan> {
    let side = LogicalPlan::clone(side);
    if made.is_empty() {
        return Ok(side);
    }
    let own = side.schema().columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
    let made = made.into_iter().map(|(e, column)| e.alias(column.name));
    LogicalPlanBuilder::from(side).project(own.into_iter().chain(made))?.build()
}
