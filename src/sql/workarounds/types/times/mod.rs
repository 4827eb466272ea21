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
mod values;
mod wide;
mod written;

use std::sync::Arc;

use arrow::datatypes::{DataType, Fields, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable, Limit, LogicalPlan, Projection, Sort, Union,
};
use serrate_core::internal::times::has_texts;

use crate::array::{leaf_type, list_depth};
use crate::functions::{find_finest_clock, may_return_times, move_all_dates, replace_leaf};
use crate::sql::base::expression_parts::{find_columns_below, has_part, rewrite_node};
use crate::sql::base::plan_facts::is_time;
use crate::sql::workarounds::inserted_types::cast_inserted_rows;
use expressions::rewrite_expr;
use integers::{refuse_integers_of_union, refuse_integers_of_values};
pub(in crate::sql) use interval_groups::has_distinct_rows;
use interval_groups::{group_by_length, measure_distinct_keys, refuse_groups};
use unify::{make_interval_key, unify_compared_pairs};
use values::unify_dates_of_values;
pub(in crate::sql) use wide::register_wide;
pub(in crate::sql) use written::{cast_in_microseconds, set_column_microseconds};

/// `SELECT TIMESTAMP '2020-03-01' - TIMESTAMP '2020-01-01' > INTERVAL '30 days'`, in which the
/// difference is 60 days, is false without this rule.
///
/// Analyzer rule, before DataFusion's type coercion: compares times, durations and intervals exactly.
///
/// Type coercion converts durations to intervals and compares those field by field, so that 60 days in
/// hours are less than 30 days. It converts all timestamps to nanoseconds, a unit that cannot represent
/// the year 2999. This rule rewrites the comparisons:
///
/// * A duration and an interval compare as durations; an interval with months is an error. Two intervals
///   compare as lengths of time with months of 30 days, as in DuckDB.
/// * Timestamps, dates and strings compare in the unit of the columns. If the columns have several units,
///   or a literal does not fit their unit, all compare as exact decimals.
/// * A UNION of timestamps with strings returns timestamps in microseconds, or in nanoseconds if a
///   timestamp has this unit. A UNION of dates or times of day with strings returns strings. CASE,
///   `greatest` and other expressions that return either a date (or a time of day) or a string are
///   an error. Type coercion would cast the strings to dates, without their times of day.
/// * Dates are neither compared nor combined with integers: type coercion would take the integers
///   for days since 1970.
/// * GROUP BY, DISTINCT and aggregates compare the lengths of intervals, and return one of several equal
///   intervals. Lists and structs of intervals would compare field by field, so grouping by them is an
///   error.
pub(in crate::sql) fn compare_exactly(plan: LogicalPlan) -> Result<LogicalPlan> {
    // The rows of `INSERT INTO t VALUES ..` keep the types of the columns of `t`, to which the
    // planner casts them.
    let inserts = plan.exists(|node| Ok(inserts_values(node)))?;
    Ok(plan.transform_up_with_subqueries(|plan| rewrite_plan(plan, inserts))?.data)
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

/// Rewrites a plan node whose inputs are already rewritten. `inserts` is whether the node is part
/// of a statement for which [`inserts_values`] is true.
fn rewrite_plan(plan: LogicalPlan, inserts: bool) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Dml(dml) = &plan {
        // The rewrite of the inputs may have changed the types of the rows.
        return Ok(match cast_inserted_rows(dml)? {
            Some(dml) => Transformed::yes(LogicalPlan::Dml(dml)),
            None => Transformed::no(plan),
        });
    }
    if may_have_times(&plan) {
        return rewrite_times(plan, inserts);
    }
    if cfg!(debug_assertions) && has_part(&plan, |e| matches!(e, Expr::ScalarFunction(_))) {
        let done = rewrite_times(plan.clone(), inserts);
        assert!(
            done.is_ok_and(|done| !done.transformed),
            "serrate_exact_times changes or refuses {}, which has no times; correct functions::may_return_times",
            plan.display()
        );
    }
    Ok(Transformed::no(plan))
}

fn rewrite_times(plan: LogicalPlan, inserts: bool) -> Result<Transformed<LogicalPlan>> {
    let schema = find_columns_below(&plan)?;
    refuse_groups(&plan, &schema)?;
    let (plan, measured) = measure_distinct_keys(plan);
    let plan = rewrite_node(plan, rewrite_expr)?;
    let changed = plan.transformed || measured;
    let (plan, more) = unify_values(plan.data, &schema, changed, inserts)?;
    // Recompute the schema even if the expressions of this node did not change, because its inputs
    // may have new types.
    let plan = group_by_length(plan.recompute_schema()?)?;
    Ok(Transformed::new_transformed(plan.data, plan.transformed || changed || more))
}

/// Rewrites what [`rewrite_expr`] does not see: sort keys, equalities of joins, and the columns of
/// UNION and VALUES. `changed` is whether expressions of the node were rewritten. Returns whether
/// this function changed the node.
fn unify_values(
    plan: LogicalPlan,
    schema: &DFSchema,
    changed: bool,
    inserts: bool,
) -> Result<(LogicalPlan, bool)> {
    Ok(match plan {
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
            let more = convert_dates_to_texts(&mut union)?
                | convert_dates_to_timestamps(&mut union)?
                | convert_texts_to_timestamps(&mut union)?
                | unify_clocks(&mut union)?
                | take_branch_types(&mut union)?;
            (LogicalPlan::Union(union), more)
        }
        // The columns of VALUES keep the types that the planner chose, so rewritten values are cast to them.
        LogicalPlan::Values(mut values) => {
            if !inserts {
                refuse_integers_of_values(&values)?;
            }
            let more = !inserts && unify_dates_of_values(&mut values)?;
            for row in &mut values.values {
                for (value, field) in row.iter_mut().zip(values.schema.fields()) {
                    let t = value.get_type(schema);
                    if changed && t.is_ok_and(|t| t != *field.data_type()) {
                        *value = value.clone().cast_to(field.data_type(), schema)?;
                    }
                }
            }
            (LogicalPlan::Values(values), more)
        }
        plan => (plan, false),
    })
}

/// Casts the dates and times of day in a column of a union, also in lists, to strings if other inputs have strings in
/// this column, as in DuckDB. Type coercion would cast the strings to dates without their times of day. Returns whether
/// an input changed.
///
/// String literals that a cast represents exactly, such as `'2020-01-01'` next to a date, are still cast to the type
/// of the other inputs.
fn convert_dates_to_texts(union: &mut Union) -> Result<bool> {
    let mut changed = false;
    for column in 0..union.schema.fields().len() {
        let Some(types) = find_input_types(union, column) else { return Ok(changed) };
        let mut values = types.iter().filter(|t| !t.is_null());
        let depth = values.clone().next().map(list_depth);
        let is_mixed = types.iter().any(clock::is_day_or_clock) && types.iter().any(has_texts);
        if !is_mixed
            || !values.all(|t| {
                (clock::is_day_or_clock(t) || has_texts(t)) && Some(list_depth(t)) == depth
            })
        {
            continue;
        }
        let has_clock = types.iter().any(|t| clock::is_clock(leaf_type(t)));
        let mut texts = union.inputs.iter().zip(&types).filter(|(_, t)| has_texts(t));
        if texts.all(|(input, _)| has_exact_literals(input, column, has_clock)) {
            continue;
        }
        for (input, t) in union.inputs.iter_mut().zip(&types) {
            if clock::is_day_or_clock(t) {
                let to = replace_leaf(t, &DataType::Utf8);
                (*input, changed) = (cast_column(input, column, &to)?, true);
            }
        }
    }
    Ok(changed)
}

/// Whether all values of a column of strings are literals that a cast represents exactly: dates without a time of day
/// or, if `is_clock`, times of day without fractions of a second.
fn has_exact_literals(plan: &LogicalPlan, column: usize, is_clock: bool) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => {
            projection.expr.get(column).is_some_and(|e| is_exact_literal(e, is_clock))
        }
        LogicalPlan::Values(values) => {
            let mut column = values.values.iter().map(|row| row.get(column));
            column.all(|e| e.is_some_and(|e| is_exact_literal(e, is_clock)))
        }
        LogicalPlan::Union(union) => {
            union.inputs.iter().all(|input| has_exact_literals(input, column, is_clock))
        }
        _ => false,
    }
}

fn is_exact_literal(e: &Expr, is_clock: bool) -> bool {
    match e {
        Expr::Alias(alias) => is_exact_literal(&alias.expr, is_clock),
        Expr::Literal(value, _) if value.is_null() => true,
        Expr::Literal(value, _) => {
            value.try_as_str().flatten().is_some_and(|text| match is_clock {
                true => !text.contains('.'),
                // A string of at most this length has no time of day.
                false => text.trim().len() <= "2020-01-01".len(),
            })
        }
        _ => false,
    }
}

/// Casts a column of a union that has timestamps in some inputs and strings in others, also in
/// lists, to the type that [`find_timestamp_of_texts`] returns. Type coercion would cast it to
/// nanoseconds, which end in 2262. Returns whether an input changed.
fn convert_texts_to_timestamps(union: &mut Union) -> Result<bool> {
    let mut changed = false;
    for column in 0..union.schema.fields().len() {
        let Some(types) = find_input_types(union, column) else { return Ok(changed) };
        let Some(to) = find_timestamp_of_texts(&types) else { continue };
        for (input, t) in union.inputs.iter_mut().zip(&types) {
            let wanted = replace_leaf(t, &to);
            if !leaf_type(t).is_null() && *t != wanted {
                (*input, changed) = (cast_column(input, column, &wanted)?, true);
            }
        }
    }
    Ok(changed)
}

/// Returns the type to which the timestamps, dates and strings in a column of a union are cast: a
/// timestamp in the zone of the timestamps and in their finest unit, or in microseconds if this
/// unit is coarser. `types` has the type of the column in each input. Returns `None` unless some of
/// them are timestamps, some are strings, and all others are dates or NULL.
fn find_timestamp_of_texts(types: &[DataType]) -> Option<DataType> {
    let mut depths = types.iter().filter(|t| !t.is_null()).map(list_depth);
    let depth = depths.next()?;
    if depths.any(|other| other != depth) || !types.iter().any(has_texts) {
        return None;
    }
    let mut finest: Option<TimeUnit> = None;
    let mut common: Option<Arc<str>> = None;
    for t in types {
        match leaf_type(t) {
            DataType::Timestamp(unit, zone) => {
                finest = finest.max(Some(*unit));
                common = common.or_else(|| zone.clone());
            }
            DataType::Date32 | DataType::Date64 | DataType::Null => {}
            _ if has_texts(t) => {}
            _ => return None,
        }
    }
    Some(DataType::Timestamp(finest?.max(TimeUnit::Microsecond), common))
}

/// Casts the dates in a column of a union, also in lists and structs, to timestamps as in the column
/// of other inputs, unless these are in nanoseconds, which cannot represent all dates. Returns
/// whether an input changed.
fn convert_dates_to_timestamps(union: &mut Union) -> Result<bool> {
    let mut changed = false;
    for column in 0..union.schema.fields().len() {
        let Some(types) = find_input_types(union, column) else { return Ok(changed) };
        let Some(moved) = move_all_dates(&types) else { continue };
        for ((input, t), to) in union.inputs.iter_mut().zip(&types).zip(&moved) {
            if t != to {
                (*input, changed) = (cast_column(input, column, to)?, true);
            }
        }
    }
    Ok(changed)
}

/// Returns the types of a column in the inputs of a union, or `None` if an input lacks the column.
fn find_input_types(union: &Union, column: usize) -> Option<Vec<DataType>> {
    let types = union.inputs.iter().map(|input| input.schema().fields().get(column));
    types.map(|field| Some(field?.data_type().clone())).collect()
}

/// Casts times of day in a column of a union to the finest of their units, because type coercion
/// has no common type for them. Returns whether an input changed.
fn unify_clocks(union: &mut Union) -> Result<bool> {
    let mut changed = false;
    for column in 0..union.schema.fields().len() {
        let Some(types) = find_input_types(union, column) else { return Ok(changed) };
        let Some(finest) = find_finest_clock(&types) else { continue };
        for (input, t) in union.inputs.iter_mut().zip(&types) {
            if clock::is_clock(t) && *t != finest {
                (*input, changed) = (cast_column(input, column, &finest)?, true);
            }
        }
    }
    Ok(changed)
}

/// Adds a projection above `input` that casts the column at index `column` to the type `to`.
fn cast_column(input: &Arc<LogicalPlan>, column: usize, to: &DataType) -> Result<Arc<LogicalPlan>> {
    let exprs = input.schema().iter().enumerate().map(|(i, named)| {
        let e = Expr::Column(Column::from(named));
        match i == column {
            true => Expr::Cast(Cast::new(Box::new(e), to.clone()))
                .alias_qualified(named.0.cloned(), named.1.name()),
            false => e,
        }
    });
    let cast = Projection::try_new(exprs.collect(), Arc::clone(input))?;
    Ok(Arc::new(LogicalPlan::Projection(cast)))
}

/// Updates the types of a union after its inputs were rewritten: a date plus hours, for example,
/// becomes a timestamp in microseconds. If no input has the planned type of a column any more, the
/// column gets the type of the first input that is not just NULL, because type coercion would cast
/// all inputs back to the planned type. Returns whether a type changed.
pub(in crate::sql) fn take_branch_types(union: &mut Union) -> Result<bool> {
    let mut changed = false;
    let mut fields = Vec::with_capacity(union.schema.fields().len());
    for (column, (table, planned)) in union.schema.iter().enumerate() {
        let types = union.inputs.iter().map(|i| i.schema().fields().get(column));
        let Some(types) = types.collect::<Option<Vec<_>>>() else { return Ok(false) };
        let is_kept = types.iter().any(|f| f.data_type() == planned.data_type());
        let first = types.iter().find(|f| !f.data_type().is_null());
        let field = match first {
            Some(first) if !is_kept => {
                changed = true;
                Arc::new(planned.as_ref().clone().with_data_type(first.data_type().clone()))
            }
            _ => Arc::clone(planned),
        };
        fields.push((table.cloned(), field));
    }
    if changed {
        let schema = DFSchema::new_with_metadata(fields, union.schema.metadata().clone())?;
        union.schema = Arc::new(schema);
    }
    Ok(changed)
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
