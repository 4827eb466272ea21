//! Rejects comparisons of dates with integers, and expressions that return either a date or an
//! integer.
//!
//! Type coercion would take the integers for days since 1970: `d > 20200101` would be false for all
//! dates of this century, and a UNION of a date and 2020 would have the date 1975-07-14.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Union};

/// How to write a date instead of an integer, for error messages.
const INSTEAD: &str = "write a date such as DATE '2020-01-31' instead of the integer, compare a part of the date, as in year(d) = 2020, or write DATE '1970-01-01' + n for a number n of days since 1970";

/// Returns an error if some of `values` are dates and others integers, also in lists and structs.
/// An expression compares these values, or returns one of them.
pub(super) fn refuse_integers(values: &[(&Expr, &DFSchema)]) -> Result<()> {
    let mut typed =
        values.iter().filter_map(|&(e, schema)| e.get_type(schema).ok().map(|t| (e, t)));
    let Some((first, first_type)) = typed.find(|(_, t)| !t.is_null()) else { return Ok(()) };
    match typed.find(|(_, t)| mixes_dates_with_integers(&first_type, t)) {
        None => Ok(()),
        Some((other, other_type)) => plan_err!(
            "{} of type {first_type} is compared or combined with {} of type {other_type}, but dates are not numbers; {INSTEAD}",
            write_value(first),
            write_value(other)
        ),
    }
}

/// Returns an error if a column of a union has dates in one input and integers in another.
pub(super) fn refuse_integers_of_union(union: &Union) -> Result<()> {
    for (at, field) in union.schema.fields().iter().enumerate() {
        let types = union.inputs.iter().flat_map(|input| list_column_types(input, at));
        let mut types = types.filter(|t| !t.is_null());
        let Some(first) = types.next() else { continue };
        if let Some(other) = types.find(|t| mixes_dates_with_integers(first, t)) {
            return plan_err!(
                "the column {} of a UNION has the type {first} in one query and {other} in another, but dates are not numbers; {INSTEAD}",
                field.name()
            );
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
    use DataType::{Date32, Date64, FixedSizeList, LargeList, List, Struct};
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
        _ => false,
    }
}

fn write_value(e: &Expr) -> String {
    match e {
        Expr::Literal(value, _) => value.to_string(),
        e => e.schema_name().to_string(),
    }
}
