//! Casts the columns of a UNION that mix times with strings, dates with timestamps, or units.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, Projection, Union};
use serrate_core::internal::times::has_texts;

use super::clock;
use crate::array::{leaf_type, list_depth};
use crate::functions::{find_finest_clock, move_all_dates, replace_leaf};

/// Returns the types to which a column of a union is cast, one for each input, or `None` if the
/// column stays as it is. The slice has the present types.
type ColumnConversion = fn(&Union, usize, &[DataType]) -> Option<Vec<DataType>>;

/// Each conversion sees the types that those before it return.
const CONVERSIONS: [ColumnConversion; 4] = [
    convert_dates_to_texts,
    convert_dates_to_timestamps,
    convert_texts_to_timestamps,
    unify_clocks,
];

/// Casts the inputs of a union where the types of a column need it. Returns whether an input
/// changed.
pub(super) fn unify_union_columns(union: &mut Union) -> Result<bool> {
    let mut changed = false;
    for convert in CONVERSIONS {
        for column in 0..union.schema.fields().len() {
            let Some(types) = find_input_types(union, column) else { break };
            let Some(wanted) = convert(union, column, &types) else { continue };
            for ((input, t), to) in union.inputs.iter_mut().zip(&types).zip(&wanted) {
                if t != to {
                    (*input, changed) = (cast_column(input, column, to)?, true);
                }
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

/// Converts the dates and times of day in a column, also in lists, to strings if other inputs have
/// strings in this column, as in DuckDB. Type coercion would cast the strings to dates without
/// their times of day.
///
/// String literals that a cast represents exactly, such as `'2020-01-01'` next to a date, are still
/// cast to the type of the other inputs.
fn convert_dates_to_texts(
    union: &Union,
    column: usize,
    types: &[DataType],
) -> Option<Vec<DataType>> {
    let mut values = types.iter().filter(|t| !t.is_null());
    let depth = values.clone().next().map(list_depth);
    let is_mixed = types.iter().any(clock::is_day_or_clock) && types.iter().any(has_texts);
    if !is_mixed
        || !values
            .all(|t| (clock::is_day_or_clock(t) || has_texts(t)) && Some(list_depth(t)) == depth)
    {
        return None;
    }
    let has_clock = types.iter().any(|t| clock::is_clock(leaf_type(t)));
    let mut texts = union.inputs.iter().zip(types).filter(|(_, t)| has_texts(t));
    if texts.all(|(input, _)| has_exact_literals(input, column, has_clock)) {
        return None;
    }
    let convert = |t: &DataType| match clock::is_day_or_clock(t) {
        true => replace_leaf(t, &DataType::Utf8),
        false => t.clone(),
    };
    Some(types.iter().map(convert).collect())
}

/// Whether all values of a column of strings are literals that a cast represents exactly: dates
/// without a time of day or, if `is_clock`, times of day without fractions of a second.
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

/// Converts the dates in a column, also in lists and structs, to timestamps as in the column of
/// other inputs, unless these are in nanoseconds, which cannot represent all dates.
fn convert_dates_to_timestamps(_: &Union, _: usize, types: &[DataType]) -> Option<Vec<DataType>> {
    move_all_dates(types)
}

/// Converts a column that has timestamps in some inputs and strings in others, also in lists, to
/// the type that [`find_timestamp_of_texts`] returns. Type coercion would cast it to nanoseconds,
/// which end in 2262.
fn convert_texts_to_timestamps(_: &Union, _: usize, types: &[DataType]) -> Option<Vec<DataType>> {
    let to = find_timestamp_of_texts(types)?;
    let convert = |t: &DataType| match leaf_type(t).is_null() {
        true => t.clone(),
        false => replace_leaf(t, &to),
    };
    Some(types.iter().map(convert).collect())
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

/// Converts times of day to the finest of their units, because type coercion has no common type
/// for them.
fn unify_clocks(_: &Union, _: usize, types: &[DataType]) -> Option<Vec<DataType>> {
    let finest = find_finest_clock(types)?;
    let convert = |t: &DataType| if clock::is_clock(t) { finest.clone() } else { t.clone() };
    Some(types.iter().map(convert).collect())
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
