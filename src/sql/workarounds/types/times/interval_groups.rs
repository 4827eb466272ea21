//! Groups intervals by their lengths in GROUP BY, DISTINCT and `array_agg(DISTINCT x)`, and returns
//! one of the equal intervals of each group.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, Case, Distinct, Expr, ExprSchemable, GroupingSet, LogicalPlan, Projection, Window,
};

use super::choices::keep_distinct;
use super::clock::INTERVAL;
use super::expressions::holds_interval;
use super::functions::ComparableForm;
use super::unify::make_interval_key;
use crate::functions::find_interval_extreme;

/// Prefix of the names of columns that hold one of the equal intervals of a group.
const CHOSEN: &str = "__serrate_chosen_interval_";

/// Prefix of the names of columns that hold intervals computed with volatile functions.
const COMPUTED: &str = "__serrate_computed_interval_";

/// Returns an error if `plan` groups by lists or structs of intervals, because these would compare
/// field by field.
pub(super) fn refuse_groups(plan: &LogicalPlan, schema: &DFSchema) -> Result<()> {
    let of = |e: &Expr| e.get_type(schema).is_ok_and(|t| t != INTERVAL && holds_interval(&t));
    let (what, found) = match plan {
        LogicalPlan::Aggregate(aggregate) => ("GROUP BY", aggregate.group_expr.iter().any(of)),
        LogicalPlan::Distinct(Distinct::On(on)) => ("DISTINCT ON", on.on_expr.iter().any(of)),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let fields = input.schema().fields();
            (
                "DISTINCT",
                fields.iter().any(|f| *f.data_type() != INTERVAL && holds_interval(f.data_type())),
            )
        }
        _ => return Ok(()),
    };
    match found {
        true => plan_err!(
            "{what} of intervals in lists or structs is not supported, because equal intervals can have different fields (1 day, 24 hours); use durations instead, such as the difference of two timestamps"
        ),
        false => Ok(()),
    }
}

/// Replaces intervals among the keys of DISTINCT ON by their lengths. The selected columns keep
/// their values.
pub(super) fn measure_distinct_keys(plan: LogicalPlan) -> Transformed<LogicalPlan> {
    let mut on = match plan {
        LogicalPlan::Distinct(Distinct::On(on)) => on,
        plan => return Transformed::no(plan),
    };
    let mut changed = false;
    let schema = Arc::clone(on.input.schema());
    let keys = on.sort_expr.iter_mut().flatten().map(|key| &mut key.expr);
    for e in on.on_expr.iter_mut().chain(keys) {
        if let Some(length) = make_interval_key(e, &schema) {
            (*e, changed) = (length, true);
        }
    }
    Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), changed)
}

/// Groups by the lengths of intervals. Returns the least interval of each group in the order of
/// [`compare_intervals`](crate::functions::compare_intervals), so that the result does not depend
/// on the order of the rows.
pub(super) fn group_by_length(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => choose_values(aggregate),
        LogicalPlan::Distinct(Distinct::All(input))
            if input.schema().fields().iter().any(|f| *f.data_type() == INTERVAL) =>
        {
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            choose_values(Aggregate::try_new(input, columns, Vec::new())?)
        }
        LogicalPlan::Window(window) => keep_distinct_values(window),
        plan => Ok(Transformed::no(plan)),
    }
}

/// Whether a plan is a DISTINCT, or the plan that [`group_by_length`] has made of a DISTINCT.
pub(in crate::sql) fn has_distinct_rows(plan: &LogicalPlan) -> bool {
    let is_chosen = |e: &Expr| match e {
        Expr::Alias(alias) => alias.name.starts_with(CHOSEN),
        _ => false,
    };
    match plan {
        LogicalPlan::Distinct(Distinct::All(_)) => true,
        LogicalPlan::Projection(projection) => match projection.input.as_ref() {
            LogicalPlan::Aggregate(Aggregate { group_expr, aggr_expr, .. }) => {
                !aggr_expr.is_empty()
                    && aggr_expr.iter().all(is_chosen)
                    && !group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_)))
            }
            _ => false,
        },
        _ => false,
    }
}

fn choose_values(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let below = Arc::clone(aggregate.input.schema());
    let is_interval = |e: &Expr| e.get_type(&*below).is_ok_and(|t| t == INTERVAL);
    let groups: Vec<Expr> =
        grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().cloned().collect();
    let has_sets = matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
    let mut calls = aggregate.aggr_expr.clone();
    let mut computed = Vec::new();
    let mut keys = Vec::new();
    // The expressions that replace columns of the result, by the index of the column.
    let mut shown = HashMap::new();
    for (at, group) in groups.iter().enumerate().filter(|(_, group)| is_interval(group)) {
        let (relation, name) = group.qualified_name();
        let mut value = group.clone().unalias();
        if value.is_volatile() {
            // A projection computes the volatile `value` once, because the key and the aggregate
            // would each compute it, with different results.
            let column = format!("{COMPUTED}{at}");
            computed.push(value.alias(column.clone()));
            value = Expr::Column(Column::new_unqualified(column));
        }
        let key = ComparableForm::IntervalNanoseconds.make_call(value.clone());
        keys.push((group, key.alias_qualified(relation, name)));
        let Some(least) = find_interval_extreme("min") else { continue };
        let column = format!("{CHOSEN}{at}");
        calls.push(least.call(vec![value]).alias(column.clone()));
        let chosen = Expr::Column(Column::new_unqualified(column));
        let value = match has_sets {
            true => hide_other_sets(chosen, &aggregate, at),
            false => chosen,
        };
        shown.insert(at, value);
    }
    let columns = aggregate.schema.fields().len();
    let first_call = columns.saturating_sub(aggregate.aggr_expr.len());
    for (at, call) in (first_call..columns).zip(&aggregate.aggr_expr) {
        if collects_distinct_values(call, is_interval) {
            let lists = Expr::Column(Column::from(aggregate.schema.qualified_field(at)));
            shown.insert(at, keep_distinct(lists));
        }
    }
    if shown.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let group_expr = replace_groups(&aggregate.group_expr, &keys);
    let mut input = Arc::clone(&aggregate.input);
    if !computed.is_empty() {
        let columns = below.columns().into_iter().map(Expr::Column);
        let exprs = columns.chain(computed).collect();
        input = Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, input)?));
    }
    let exprs = aggregate.schema.iter().enumerate().map(|(at, named)| match shown.remove(&at) {
        Some(value) => value.alias_qualified(named.0.cloned(), named.1.name()),
        None => Expr::Column(Column::from(named)),
    });
    let exprs = exprs.collect();
    let grouped = LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, calls)?);
    let shown = Projection::try_new(exprs, Arc::new(grouped))?;
    Ok(Transformed::yes(LogicalPlan::Projection(shown)))
}

/// Returns `chosen`, the interval of the group with the index `at`, or NULL in the rows of a
/// grouping set without this group, in which the key is NULL.
fn hide_other_sets(chosen: Expr, aggregate: &Aggregate, at: usize) -> Expr {
    let key = Expr::Column(Column::from(aggregate.schema.qualified_field(at)));
    let is_grouped = Expr::IsNotNull(Box::new(key));
    let when = vec![(Box::new(is_grouped), Box::new(chosen))];
    Expr::Case(Case::new(None, when, None))
}

/// Replaces each of `groups`, also in grouping sets, that is the first part of a pair in `keys`
/// with the second part.
fn replace_groups(groups: &[Expr], keys: &[(&Expr, Expr)]) -> Vec<Expr> {
    let replace_group = |group: &mut Expr| {
        if let Some((_, key)) = keys.iter().find(|(from, _)| **from == *group) {
            *group = key.clone();
        }
    };
    let mut groups = groups.to_vec();
    for group in &mut groups {
        match group {
            Expr::GroupingSet(GroupingSet::Rollup(set) | GroupingSet::Cube(set)) => {
                set.iter_mut().for_each(replace_group);
            }
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
                sets.iter_mut().flatten().for_each(replace_group);
            }
            group => replace_group(group),
        }
    }
    groups
}

/// Removes equal intervals from the lists of `array_agg(DISTINCT x) OVER (..)`.
fn keep_distinct_values(window: Window) -> Result<Transformed<LogicalPlan>> {
    let below = Arc::clone(window.input.schema());
    let is_interval = |e: &Expr| e.get_type(&*below).is_ok_and(|t| t == INTERVAL);
    let collects = |call: &Expr| collects_distinct_values(call, is_interval);
    if !window.window_expr.iter().any(collects) {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let first_call = below.fields().len();
    let exprs = window.schema.iter().enumerate().map(|(at, named)| {
        let column = Expr::Column(Column::from(named));
        let call = at.checked_sub(first_call).and_then(|at| window.window_expr.get(at));
        match call.is_some_and(collects) {
            true => keep_distinct(column).alias_qualified(named.0.cloned(), named.1.name()),
            false => column,
        }
    });
    let exprs = exprs.collect();
    let shown = Projection::try_new(exprs, Arc::new(LogicalPlan::Window(window)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(shown)))
}

/// Whether an expression is `array_agg(DISTINCT x)`, with or without OVER, and `is_wanted` holds
/// for `x`.
fn collects_distinct_values(call: &Expr, is_wanted: impl Fn(&Expr) -> bool) -> bool {
    match call.clone().unalias() {
        Expr::AggregateFunction(call) => {
            call.func.name() == "array_agg"
                && call.params.distinct
                && call.params.args.iter().any(is_wanted)
        }
        Expr::WindowFunction(call) => {
            call.fun.name() == "array_agg"
                && call.params.distinct
                && call.params.args.iter().any(is_wanted)
        }
        _ => false,
    }
}
