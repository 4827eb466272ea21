//! Rejects times that are combined with numbers.

use arrow::datatypes::DataType;

use super::args::CallPlan;
use crate::error::Result;

/// How to write a date instead of an integer, for error messages.
pub(crate) const DATE_INSTEAD: &str = "write a date such as DATE '2020-01-31' instead of the integer, compare a part of the date, as in year(d) = 2020, or write DATE '1970-01-01' + n for a number n of days since 1970";

/// Returns an error if the values of argument `i`, of the type `value`, are compared with values of
/// the type `values` or replace them, and only one of the two types is a number.
pub(super) fn refuse_numbers_as_times(
    plan: &CallPlan<'_>,
    i: usize,
    value: &DataType,
    values: &DataType,
) -> Result<()> {
    let Some(reason) = explain_mixed_times(value, values) else { return Ok(()) };
    Err(plan.refuse_call(format!(
        "argument {} has values of type {value}, which are compared or combined with values of type {values}, but {reason}",
        i + 1
    )))
}

/// Returns the end of an error message if one of two types is a date, a time or a duration, and the
/// other a number, which a cast would take for days or for the unit of the time. Does the same for
/// the values of two lists, and for fields of one name of two structs. Returns `None` for all other
/// types.
pub(crate) fn explain_mixed_times(a: &DataType, b: &DataType) -> Option<String> {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct};
    match (a, b) {
        (
            List(a) | LargeList(a) | FixedSizeList(a, _),
            List(b) | LargeList(b) | FixedSizeList(b, _),
        )
        | (Map(a, _), Map(b, _)) => explain_mixed_times(a.data_type(), b.data_type()),
        (Struct(a), Struct(b)) => a.iter().find_map(|field| {
            let (_, other) = b.find(field.name())?;
            explain_mixed_times(field.data_type(), other.data_type())
        }),
        _ => explain_mixed_scalars(find_plain_type(a), find_plain_type(b)),
    }
}

fn explain_mixed_scalars(a: &DataType, b: &DataType) -> Option<String> {
    let time = match (a.is_numeric(), b.is_numeric()) {
        (true, false) => b,
        (false, true) => a,
        _ => return None,
    };
    let (what, instead) = match time {
        DataType::Date32 | DataType::Date64 => ("dates", DATE_INSTEAD),
        DataType::Timestamp(..) => (
            "timestamps",
            "write a timestamp such as TIMESTAMP '2020-01-31 10:00:00' instead of the number, or to_timestamp(n) for a number n of seconds since 1970",
        ),
        DataType::Time32(_) | DataType::Time64(_) => {
            ("times of day", "write a time such as TIME '10:00:00' instead of the number")
        }
        DataType::Duration(_) => (
            "durations",
            "write the difference of two timestamps or, for a value to fill in, an interval such as INTERVAL '1 hour' instead of the number",
        ),
        _ => return None,
    };
    Some(format!("{what} are not numbers; {instead}"))
}

/// Returns the type of the values of a dictionary; any other type is returned unchanged.
fn find_plain_type(t: &DataType) -> &DataType {
    match t {
        DataType::Dictionary(_, values) => values.as_ref(),
        t => t,
    }
}
