//! Timestamps of all years, durations and intervals: casts, comparisons, functions and groups.

mod bins;
mod choices;
mod clock;
mod expressions;
mod functions;
mod integers;
mod interval_groups;
mod series;
mod unify;
mod union_columns;
mod values;
mod wide;
mod written;

use arrow::datatypes::Fields;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, Limit, LogicalPlan, Projection, Sort};

use crate::functions::may_return_times;
use crate::sql::base::expression_parts::{find_columns_below, has_part, rewrite_node};
use crate::sql::base::plan_facts::is_time;
use crate::sql::workarounds::inserted_types::cast_inserted_rows;
use expressions::rewrite_expr;
use integers::{refuse_integers_of_union, refuse_integers_of_values};
pub(in crate::sql) use interval_groups::has_distinct_rows;
use interval_groups::{group_by_length, measure_distinct_keys, refuse_groups};
use unify::{make_interval_key, unify_compared_pairs};
pub(in crate::sql) use union_columns::take_branch_types;
use union_columns::unify_union_columns;
use values::unify_dates_of_values;
#[cfg(feature = "cluster")]
pub(in crate::sql) use wide::build_wide_part;
pub(in crate::sql) use wide::register_wide;
pub(in crate::sql) use written::{cast_in_microseconds, set_column_microseconds};

/// `SELECT TIMESTAMP '2020-03-01' - TIMESTAMP '2020-01-01' > INTERVAL '30 days'`, in which the
/// difference is 60 days, is false without this rule.
///
/// Analyzer rule, before DataFusion's type coercion: compares times, durations and intervals
/// exactly.
///
/// Type coercion converts durations to intervals and compares those field by field, so that 60 days
/// in hours are less than 30 days. It converts all timestamps to nanoseconds, a unit that cannot
/// represent the year 2999. This rule rewrites the comparisons:
///
/// * A duration and an interval compare as durations; an interval with months is an error. Two
///   intervals compare as lengths of time with months of 30 days, as in DuckDB.
/// * Timestamps, dates and strings compare in the unit of the columns. If the columns have several
///   units, or a literal does not fit their unit, all compare as exact decimals.
/// * A UNION of timestamps with strings returns timestamps in microseconds, or in nanoseconds if a
///   timestamp has this unit. A UNION of dates or times of day with strings returns strings. CASE,
///   `greatest` and other expressions that return either a date (or a time of day) or a string are
///   an error. Type coercion would cast the strings to dates, without their times of day.
/// * Dates are neither compared nor combined with integers: type coercion would take the integers
///   for days since 1970.
/// * GROUP BY, DISTINCT and aggregates compare the lengths of intervals, and return one of several
///   equal intervals. Lists and structs of intervals would compare field by field, so grouping by
///   them is an error.
pub(in crate::sql) fn compare_exactly(plan: LogicalPlan) -> Result<LogicalPlan> {
    // The rows of `INSERT INTO t VALUES ..` keep the types of the columns of `t`, to which the
    // planner casts them.
    let has_inserted_values = plan.exists(|node| Ok(inserts_values(node)))?;
    Ok(plan.transform_up_with_subqueries(|plan| rewrite_plan(plan, has_inserted_values))?.data)
}

/// Whether a node is an INSERT whose query is VALUES, also with ORDER BY or LIMIT.
fn inserts_values(node: &LogicalPlan) -> bool {
    let LogicalPlan::Dml(change) = node else { return false };
    let mut input = change.input.as_ref();
    while let LogicalPlan::Projection(Projection { input: below, .. })
    | LogicalPlan::Sort(Sort { input: below, .. })
    | LogicalPlan::Limit(Limit { input: below, .. }) = input
    {
        input = below.as_ref();
    }
    matches!(input, LogicalPlan::Values(_))
}

/// Rewrites a plan node whose inputs are already rewritten. `has_inserted_values` is whether the
/// node is part of a statement for which [`inserts_values`] is true.
fn rewrite_plan(plan: LogicalPlan, has_inserted_values: bool) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Dml(dml) = &plan {
        // The rewrite of the inputs may have changed the types of the rows.
        return Ok(match cast_inserted_rows(dml)? {
            Some(dml) => Transformed::yes(LogicalPlan::Dml(dml)),
            None => Transformed::no(plan),
        });
    }
    if may_have_times(&plan) {
        return rewrite_times(plan, has_inserted_values);
    }
    if cfg!(debug_assertions) && has_part(&plan, |e| matches!(e, Expr::ScalarFunction(_))) {
        let done = rewrite_times(plan.clone(), has_inserted_values);
        assert!(
            done.is_ok_and(|done| !done.transformed),
            "serrate_exact_times changes or refuses {}, which has no times; correct functions::may_return_times",
            plan.display()
        );
    }
    Ok(Transformed::no(plan))
}

fn rewrite_times(plan: LogicalPlan, has_inserted_values: bool) -> Result<Transformed<LogicalPlan>> {
    let schema = find_columns_below(&plan)?;
    refuse_groups(&plan, &schema)?;
    let measured = measure_distinct_keys(plan);
    let rewritten = rewrite_node(measured.data, rewrite_expr)?;
    let changed = measured.transformed || rewritten.transformed;
    let unified = unify_keys_and_columns(rewritten.data, &schema, changed, has_inserted_values)?;
    let changed = changed || unified.transformed;
    // Recompute the schema even if the expressions of this node did not change, because its inputs
    // may have new types.
    let grouped = group_by_length(unified.data.recompute_schema()?)?;
    Ok(Transformed::new_transformed(grouped.data, changed || grouped.transformed))
}

/// Rewrites what [`rewrite_expr`] does not see: sort keys, equalities of joins, and the columns of
/// UNION and VALUES. `is_rewritten` is whether expressions of the node were rewritten.
fn unify_keys_and_columns(
    plan: LogicalPlan,
    schema: &DFSchema,
    is_rewritten: bool,
    has_inserted_values: bool,
) -> Result<Transformed<LogicalPlan>> {
    let (plan, changed) = match plan {
        LogicalPlan::Sort(mut sort) => {
            let mut more = false;
            for key in &mut sort.expr {
                if let Some(by) = make_interval_key(&key.expr, schema) {
                    (key.expr, more) = (by, true);
                }
            }
            (LogicalPlan::Sort(sort), more)
        }
        LogicalPlan::Join(mut join) => {
            let mut more = false;
            for (left, right) in &mut join.on {
                let pair = unify_compared_pairs(&[
                    (&*left, join.left.schema().as_ref()),
                    (&*right, join.right.schema().as_ref()),
                ])?;
                if let Some([l, r]) = pair.and_then(|pair| <[Expr; 2]>::try_from(pair).ok()) {
                    (*left, *right, more) = (l, r, true);
                }
            }
            (LogicalPlan::Join(join), more)
        }
        LogicalPlan::Union(mut union) => {
            refuse_integers_of_union(&union)?;
            let more = unify_union_columns(&mut union)? | take_branch_types(&mut union)?;
            (LogicalPlan::Union(union), more)
        }
        // The columns of VALUES keep the types that the planner chose, so rewritten values are cast
        // to them.
        LogicalPlan::Values(mut values) => {
            if !has_inserted_values {
                refuse_integers_of_values(&values)?;
            }
            let more = !has_inserted_values && unify_dates_of_values(&mut values)?;
            for row in &mut values.values {
                for (value, field) in row.iter_mut().zip(values.schema.fields()) {
                    let t = value.get_type(schema);
                    if is_rewritten && t.is_ok_and(|t| t != *field.data_type()) {
                        *value = value.clone().cast_to(field.data_type(), schema)?;
                    }
                }
            }
            (LogicalPlan::Values(values), more)
        }
        plan => (plan, false),
    };
    Ok(Transformed::new_transformed(plan, changed))
}

/// Whether a node may contain a time, duration or interval. This cheap test excludes most plans.
fn may_have_times(plan: &LogicalPlan) -> bool {
    let has = |e: &Expr| match e {
        Expr::Literal(value, _) => is_time(&value.data_type()),
        Expr::Cast(cast) => is_time(cast.field.data_type()),
        Expr::TryCast(cast) => is_time(cast.field.data_type()),
        Expr::OuterReferenceColumn(field, _) => is_time(field.data_type()),
        Expr::ScalarFunction(call) => may_return_times(&call.func),
        Expr::HigherOrderFunction(_)
        | Expr::ScalarSubquery(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_) => true,
        _ => false,
    };
    let hold = |fields: &Fields| fields.iter().any(|f| is_time(f.data_type()));
    plan.inputs().iter().any(|input| hold(input.schema().fields()))
        || hold(plan.schema().fields())
        || matches!(plan, LogicalPlan::TableScan(scan) if hold(scan.source.schema().fields()))
        || has_part(plan, has)
}
