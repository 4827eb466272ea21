//! Rejects comparisons of dates with integers, and expressions that return either a date or an
//! integer.
//!
//! Type coercion would take the integers for days since 1970: `d > 20200101` would be false for all
//! dates of this century, and a UNION of a date and 2020 would have the date 1975-07-14.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Union, Values};

use crate::functions::DATE_INSTEAD;
use crate::sql::workarounds::types::value_columns::remove_cast;

/// Returns an error if some of `values` are dates and others integers, also in lists, structs and
/// maps. An expression compares these values, or returns one of them.
pub(super) fn refuse_integers(values: &[(&Expr, &DFSchema)]) -> Result<()> {
    let mut distinct: Vec<(&Expr, DataType)> = Vec::new();
    for &(value, schema) in values {
        let Ok(value_type) = value.get_type(schema) else { continue };
        if distinct.iter().any(|(_, known)| *known == value_type) {
            continue;
        }
        let mixed =
            distinct.iter().find(|(_, known)| mixes_dates_with_integers(known, &value_type));
        if let Some((first, first_type)) = mixed {
            return plan_err!(
                "{} of type {first_type} is compared or combined with {} of type {value_type}, but dates are not numbers; {DATE_INSTEAD}",
                write_value(first),
                write_value(value)
            );
        }
        distinct.push((value, value_type));
    }
    Ok(())
}

/// Returns an error if a column of a union has dates in one input and integers in another.
pub(super) fn refuse_integers_of_union(union: &Union) -> Result<()> {
    for (at, field) in union.schema.fields().iter().enumerate() {
        let types = union.inputs.iter().flat_map(|input| list_column_types(input, at));
        let mut distinct: Vec<&DataType> = Vec::new();
        for other in types {
            if distinct.contains(&other) {
                continue;
            }
            if let Some(first) = distinct.iter().find(|t| mixes_dates_with_integers(t, other)) {
                return plan_err!(
                    "the column {} of a UNION has the type {first} in one query and {other} in another, but dates are not numbers; {DATE_INSTEAD}",
                    field.name()
                );
            }
            distinct.push(other);
        }
    }
    Ok(())
}

/// Returns an error if a column of VALUES has lists, structs or maps with dates in one row and with
/// integers in another. The planner itself refuses a column of dates and integers.
pub(super) fn refuse_integers_of_values(values: &Values) -> Result<()> {
    let none = DFSchema::empty();
    for (at, field) in values.schema.fields().iter().enumerate() {
        let planned = field.data_type();
        if planned.is_nested() {
            let cells = values.values.iter().filter_map(|row| row.get(at));
            let cells: Vec<(&Expr, &DFSchema)> =
                cells.map(|cell| (remove_cast(cell, planned), &none)).collect();
            refuse_integers(&cells)?;
        }
    }
    Ok(())
}

/// Returns the types of a column in the inputs of a union and of the unions within it; for another
/// plan, the type of its column.
fn list_column_types(plan: &LogicalPlan, at: usize) -> Vec<&DataType> {
    match plan {
        // Before type coercion, a union has the types of its first input.
        LogicalPlan::Union(union) => {
            union.inputs.iter().flat_map(|input| list_column_types(input, at)).collect()
        }
        other => {
            other.schema().fields().get(at).map(|field| field.data_type()).into_iter().collect()
        }
    }
}

/// Whether one of two types has dates where the other has integers.
fn mixes_dates_with_integers(a: &DataType, b: &DataType) -> bool {
    use DataType::{Date32, Date64, FixedSizeList, LargeList, List, Map, Struct};
    match (a, b) {
        (Date32 | Date64, t) | (t, Date32 | Date64) => t.is_integer(),
        (
            List(a) | LargeList(a) | FixedSizeList(a, _),
            List(b) | LargeList(b) | FixedSizeList(b, _),
        ) => mixes_dates_with_integers(a.data_type(), b.data_type()),
        (Struct(a), Struct(b)) => a.iter().any(|field| {
            let other = b.iter().find(|other| other.name() == field.name());
            other.is_some_and(|other| {
                mixes_dates_with_integers(field.data_type(), other.data_type())
            })
        }),
        // The fields of the entries are compared by position, because two map types may differ in
        // the names of these fields.
        (Map(a, _), Map(b, _)) => match (a.data_type(), b.data_type()) {
            (Struct(a), Struct(b)) => a
                .iter()
                .zip(b)
                .any(|(a, b)| mixes_dates_with_integers(a.data_type(), b.data_type())),
            _ => false,
        },
        _ => false,
    }
}

fn write_value(e: &Expr) -> String {
    match e {
        Expr::Literal(value, _) => value.to_string(),
        e => e.schema_name().to_string(),
    }
}
