use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, SubqueryAlias};
use datafusion::optimizer::OptimizerConfig;

use crate::functions::{find_facts, find_scalar};
use crate::sql::base::expression_parts::{has_part, map_named};

/// Logical optimizer rule: rewrites `ragged_filter(x, mask)` to `ragged_compress(x, mask)` if only
/// reductions over whole rows use the result, in the same expression or in the plan above.
///
/// Without this rule, `SELECT ragged_sum(ragged_filter(x, x > 5)) FROM t` builds the filtered inner
/// lists of `x`.
///
/// `ragged_filter` keeps the inner lists and writes an offset for each of them, which a reduction
/// over the row ignores. `ragged_compress` returns the selected values of a row as one flat list.
/// If the mask selects few elements, `ragged_filter` spends most of its time on the offsets.
pub(in crate::sql) fn flatten_filters(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let is_reduced = |e: &Expr| find_reduction_argument(e).and_then(as_compress).is_some();
    let plan = match has_part(&plan, is_reduced) {
        true => map_named(plan, |e| e.transform_down(flatten_reduced))?,
        false => Transformed::no(plan),
    };
    plan.transform_data(flatten_below)
}

fn flatten_reduced(e: Expr) -> Result<Transformed<Expr>> {
    let Some(filter) = find_reduction_argument(&e).and_then(as_compress) else {
        return Ok(Transformed::no(e));
    };
    e.map_children(|_| Ok(Transformed::yes(filter.clone())))
}

fn find_reduction_argument(e: &Expr) -> Option<&Expr> {
    match e {
        Expr::ScalarFunction(call) if find_facts(&call.func).whole_row => {
            match call.args.as_slice() {
                [of] => Some(of),
                _ => None,
            }
        }
        _ => None,
    }
}

fn as_compress(e: &Expr) -> Option<Expr> {
    match e {
        Expr::ScalarFunction(call) if call.name() == "ragged_filter" => {
            find_scalar("ragged_compress").map(|compress| compress.call(call.args.clone()))
        }
        _ => None,
    }
}

/// Rewrites the `ragged_filter` calls in the projection below a plan if the plan only reduces their
/// results.
fn flatten_below(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::no(plan));
    }
    let inputs = plan.inputs();
    let alias = match inputs[..] {
        [LogicalPlan::SubqueryAlias(alias)] => Some(alias),
        _ => None,
    };
    let given = match (alias, &inputs[..]) {
        (Some(alias), _) => alias.input.as_ref(),
        (None, [given]) => given,
        _ => return Ok(Transformed::no(plan)),
    };
    let LogicalPlan::Projection(projection) = given else { return Ok(Transformed::no(plan)) };
    let find_filter = |e: &Expr| match e {
        Expr::Alias(alias) => as_compress(&alias.expr),
        e => as_compress(e),
    };
    if projection.expr.iter().all(|e| find_filter(e).is_none()) {
        return Ok(Transformed::no(plan));
    }
    let above = plan.expressions();
    let columns = inputs[0].schema().columns();
    let mut changed = false;
    let made = projection.expr.iter().zip(projection.schema.columns()).zip(columns);
    let made = made.map(|((e, column), seen)| match find_filter(e) {
        Some(filter) if is_only_reduced(&above, &seen)? => {
            changed = true;
            Ok(filter.alias_qualified(column.relation, column.name))
        }
        _ => Ok(e.clone()),
    });
    let made = made.collect::<Result<Vec<_>>>()?;
    if !changed {
        return Ok(Transformed::no(plan));
    }
    let mut input =
        LogicalPlan::Projection(Projection::try_new(made, Arc::clone(&projection.input))?);
    if let Some(alias) = alias {
        let named = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?;
        input = LogicalPlan::SubqueryAlias(named);
    }
    plan.with_new_exprs(above, vec![input]).map(Transformed::yes)
}

/// Whether some of the expressions are reductions of a column, such as `ragged_sum(column)`, and
/// none of them uses the column in another way.
fn is_only_reduced(expressions: &[Expr], column: &Column) -> Result<bool> {
    let (mut reductions, mut others) = (false, false);
    for expression in expressions {
        expression.apply(|e| {
            if matches!(find_reduction_argument(e), Some(Expr::Column(of)) if of == column) {
                reductions = true;
                return Ok(TreeNodeRecursion::Jump);
            }
            others |= matches!(e, Expr::Column(of) if of == column);
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(reductions && !others)
}
