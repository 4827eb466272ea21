//! Pushes conditions that can fail no further than to the rows for which SQL requires them.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, NullEquality, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, find_valid_equijoin_key_pair, merge_schema};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, Filter, Join, LogicalPlan, Operator,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::held::{HeldConditions, is_free, is_held, join_conditions};

/// `SELECT a.id FROM a JOIN b ON a.id = b.id WHERE 1 / a.x >= 0` fails without this rule because of
/// a row of `a` that has no match in `b`.
///
/// Wraps DataFusion's `PushDownFilter`. Pushes free conditions (which cannot fail and are not
/// volatile) down as DataFusion does. Pushes a held condition (any other) below a node only if it
/// is evaluated there for the same rows as above the node.
///
/// DataFusion moves every condition below joins and into scans, and evaluates cheap conditions
/// before expensive ones. A condition that can fail is then evaluated for rows that a join or
/// another condition drops, and a volatile condition once per row of one join input. DataFusion
/// also moves conditions without columns, such as `HAVING random() > 2`, below an aggregate without
/// group keys, which then returns a row where it should return none. This workaround is obsolete
/// once the test `stock_conditions_still_move` fails.
pub(in crate::sql) fn push_free_conditions(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Filter(_) if has_volatile_keys(&plan) => Ok(Transformed::no(plan)),
        LogicalPlan::Filter(_) => push_filter(stock, plan, config),
        LogicalPlan::Join(join) => push_over(stock, None, join, config),
        plan => stock.rewrite(plan, config),
    }
}

fn push_free(
    stock: &dyn OptimizerRule,
    free: Vec<Expr>,
    input: Arc<LogicalPlan>,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let Some(free) = conjunction(free) else {
        return Ok(Transformed::no(Arc::unwrap_or_clone(input)));
    };
    match Arc::unwrap_or_clone(input) {
        LogicalPlan::Join(join) => push_over(stock, Some(free), join, config),
        // The aggregate returns a row even for empty input, so the filter must stay above it.
        LogicalPlan::Aggregate(aggregate) if may_group_nothing(&aggregate) => {
            Ok(Transformed::no(add_filter(free, LogicalPlan::Aggregate(aggregate))?))
        }
        // The only extension node below filters is `SharedRows`, whose copies all return the same
        // rows. So no condition on one copy, even without columns, may move into the input of this
        // copy.
        LogicalPlan::Extension(node) => {
            Ok(Transformed::no(add_filter(free, LogicalPlan::Extension(node))?))
        }
        input => stock.rewrite(add_filter(free, input)?, config),
    }
}

/// Applies DataFusion's rule to a join below a filter of free conditions (`above`). The rule may
/// move free conditions, which cannot fail; the others, the held ones, stay in the join filter. For
/// a null-aware join, to which NOT IN is converted, the rule may move all conditions.
fn push_over(
    stock: &dyn OptimizerRule,
    above: Option<Expr>,
    mut join: Join,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if join.null_aware {
        return stock.rewrite(filter_over(above, join)?, config);
    }
    let was = join.filter.clone();
    let schema = merge_schema(&[&join.left, &join.right]);
    let mut conditions = HeldConditions::default();
    let moved = take_keys(&mut join);
    if let Some(condition) = join.filter.take() {
        conditions.add_predicate(condition, &schema);
    }
    let rekeyed = !moved.is_empty();
    conditions.held.splice(0..0, moved);
    if conditions.held.is_empty() {
        join.filter = was;
        return stock.rewrite(filter_over(above, join)?, config);
    }
    join.filter = conjunction(conditions.free);
    let pushed = stock.rewrite(filter_over(above, join)?, config)?;
    let held = conditions.held;
    let mut changed = pushed.transformed || rekeyed;
    let plan = change_join(pushed.data, |join| {
        join.filter = combine_held(join, held);
        changed |= join.filter != was;
    })?;
    Ok(Transformed::new_transformed(plan, changed))
}

fn push_filter(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let (filters, input) = collect_filters(&plan);
    let mut conditions = HeldConditions::default();
    for filter in filters.iter().rev() {
        conditions.add_predicate(filter.predicate.clone(), input.schema());
    }
    let HeldConditions { free, held } = conditions;
    if held.is_empty() {
        return push_free(stock, free, Arc::new(input.clone()), config);
    }
    let done = filters.len() == 1 && free.is_empty() && is_held(&filters[0].predicate)
        || filters.len() == 2
            && is_held(&filters[0].predicate)
            && !filters[1].predicate.exists(|e| Ok(is_held(e)))?;
    match input {
        LogicalPlan::TableScan(_) if free.is_empty() && held.len() == 1 => {
            // A single condition can move into the scan, which evaluates it for every row in any
            // case.
            let [only] = &held[..] else { return Ok(Transformed::no(plan)) };
            if only.is_volatile() {
                return Ok(Transformed::no(plan));
            }
            let bare = add_filter(only.clone(), input.clone())?;
            let changed = is_held(&filters[0].predicate);
            let pushed = stock.rewrite(bare, config)?;
            Ok(Transformed::new_transformed(pushed.data, changed || pushed.transformed))
        }
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner && join.on.is_empty() => {
            // The conditions become the join filter, which runs before the columns of a pair of
            // rows are copied.
            let mut join = join.clone();
            let all = join.filter.take().into_iter().chain(join_conditions(Vec::new(), held));
            join.filter = conjunction(all);
            let pushed = push_over(stock, conjunction(free), join, config)?;
            Ok(Transformed::yes(pushed.data))
        }
        input if lets_through(input, &held) => {
            let all = join_conditions(free, held);
            let Some(all) = all else { return Ok(Transformed::no(plan)) };
            let pushed = stock.rewrite(add_filter(all, input.clone())?, config)?;
            let split = split_held(pushed.data)?;
            Ok(Transformed::new_transformed(split, pushed.transformed || !done))
        }
        _ if done => Ok(Transformed::no(plan)),
        input => {
            let below = push_free(stock, free, Arc::new(input.clone()), config)?;
            let Some(held) = join_conditions(Vec::new(), held) else {
                return Ok(below);
            };
            Ok(Transformed::yes(add_filter(held, below.data)?))
        }
    }
}

fn add_filter(predicate: Expr, input: LogicalPlan) -> Result<LogicalPlan> {
    Filter::try_new(predicate, Arc::new(input)).map(LogicalPlan::Filter)
}

fn filter_over(above: Option<Expr>, join: Join) -> Result<LogicalPlan> {
    match above {
        Some(above) => add_filter(above, LogicalPlan::Join(join)),
        None => Ok(LogicalPlan::Join(join)),
    }
}

/// Returns the filters at the top of a plan, the topmost first, and the node below them.
fn collect_filters(mut plan: &LogicalPlan) -> (Vec<&Filter>, &LogicalPlan) {
    let mut filters = Vec::new();
    while let LogicalPlan::Filter(filter) = plan {
        filters.push(filter);
        plan = &filter.input;
    }
    (filters, plan)
}

/// Whether conditions that DataFusion moves below a node are evaluated for the same values as above
/// it. DataFusion moves only conditions on keys below DISTINCT, an aggregate or a window. Such a
/// condition has one value per group, unless it is volatile or has no columns.
fn lets_through(node: &LogicalPlan, conditions: &[Expr]) -> bool {
    let stable = || conditions.iter().all(|e| !e.is_volatile() && !e.column_refs().is_empty());
    match node {
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Union(_) => true,
        LogicalPlan::Sort(sort) => sort.fetch.is_none(),
        LogicalPlan::Distinct(Distinct::All(_)) | LogicalPlan::Window(_) => stable(),
        LogicalPlan::Aggregate(aggregate) => {
            let plain = |e: &Expr| !matches!(e, Expr::GroupingSet(_)) && !e.is_volatile();
            stable() && !aggregate.group_expr.is_empty() && aggregate.group_expr.iter().all(plain)
        }
        _ => false,
    }
}

/// Whether a filter is above a GROUP BY with a volatile key. DataFusion 55 moves a condition on the
/// key below the aggregate, which then computes the key again:
/// <https://github.com/apache/datafusion/issues/25415>.
fn has_volatile_keys(filters: &LogicalPlan) -> bool {
    let (_, below) = collect_filters(filters);
    matches!(below, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.iter().any(Expr::is_volatile))
}

/// Whether an aggregate may return a row for an empty input: it has no group keys, or only grouping
/// sets.
fn may_group_nothing(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.iter().all(|e| matches!(e, Expr::GroupingSet(_)))
}

/// Splits a filter, because a rule may have merged two: conditions that can fail move to a second
/// filter above the others.
fn split_held(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Filter(found) = plan else { return Ok(plan) };
    let mut conditions = HeldConditions::default();
    conditions.add_predicate(found.predicate.clone(), found.input.schema());
    let mut plan = Arc::unwrap_or_clone(found.input);
    if let Some(free) = conjunction(conditions.free) {
        plan = add_filter(free, plan)?;
    }
    match join_conditions(Vec::new(), conditions.held) {
        Some(held) => add_filter(held, plan),
        None => Ok(plan),
    }
}

/// If a join has a key that cannot fail, removes the keys that can fail, and returns them as
/// conditions: a join computes its keys for all rows, but its conditions only for pairs of rows
/// with equal keys.
fn take_keys(join: &mut Join) -> Vec<Expr> {
    let (l, r) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
    let is_whole = |(left, right): &(Expr, Expr)| is_free(left, &l) && is_free(right, &r);
    if !join.on.iter().any(is_whole) {
        return Vec::new();
    }
    let (keys, moved): (Vec<_>, Vec<_>) =
        std::mem::take(&mut join.on).into_iter().partition(is_whole);
    join.on = keys;
    let op = match join.null_equality {
        NullEquality::NullEqualsNothing => Operator::Eq,
        NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
    };
    let equal =
        |(l, r): (Expr, Expr)| Expr::BinaryExpr(BinaryExpr::new(Box::new(l), op, Box::new(r)));
    moved.into_iter().map(equal).collect()
}

/// Removes the filter of a join, and combines its conditions and `held` in this order: equalities
/// that can become join keys, other conditions that cannot fail, conditions that can fail. Returns
/// `None` if there are no conditions.
fn combine_held(join: &mut Join, held: Vec<Expr>) -> Option<Expr> {
    let (l, r) = (join.left.schema(), join.right.schema());
    let mut conditions = HeldConditions::default();
    let schema = merge_schema(&[&join.left, &join.right]);
    if let Some(free) = join.filter.take() {
        conditions.add_predicate(free, &schema);
    }
    let is_key = |e: &Expr| match e {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq | Operator::IsNotDistinctFrom,
            right,
        }) => {
            matches!(find_valid_equijoin_key_pair(left, right, l, r), Ok(Some(_)))
        }
        _ => false,
    };
    let (keys, first): (Vec<_>, Vec<_>) = conditions.free.into_iter().partition(is_key);
    let ordered = first.into_iter().chain(conditions.held).chain(held).collect();
    join_conditions(keys, ordered)
}

/// Calls `change` on the join at the top of a plan or below its filters.
fn change_join(plan: LogicalPlan, change: impl FnOnce(&mut Join)) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Join(mut join) => {
            change(&mut join);
            Ok(LogicalPlan::Join(join))
        }
        LogicalPlan::Filter(mut found) => {
            let input = change_join(Arc::unwrap_or_clone(found.input), change)?;
            found.input = Arc::new(input);
            Ok(LogicalPlan::Filter(found))
        }
        plan => internal_err!(
            "internal error: expected a join below the pushed filter, found {}; please report it",
            plan.display()
        ),
    }
}
