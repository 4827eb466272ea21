use std::sync::Arc;

use arrow::array::{AsArray, StringArray};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::{count_call_rows, declare, to_columnar};
use crate::kernels::time_formats::{format_times, format_times_each};

use super::documents::{DocumentationText, document};
use super::list_types;

const NAME: &str = "strftime";

/// Returns `strftime(time, format)`, which formats dates and timestamps with the directives of
/// DuckDB. The arguments may be in either order. A timestamp with a zone is formatted in its zone.
///
/// DataFusion's `to_char` has the directives of the crate chrono, and takes ten times as long.
pub(super) fn build_strftime_function() -> ScalarUDF {
    ScalarUDF::new_from_impl(StrftimeFunction)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct StrftimeFunction;

pub(super) fn find_time_type(t: &DataType) -> Option<DataType> {
    match t {
        DataType::Timestamp(..) => Some(t.clone()),
        DataType::Date32 | DataType::Date64 => Some(DataType::Timestamp(TimeUnit::Second, None)),
        DataType::Null => Some(DataType::Timestamp(TimeUnit::Microsecond, None)),
        t if t.is_string() => Some(DataType::Timestamp(TimeUnit::Microsecond, None)),
        _ => None,
    }
}

impl ScalarUDFImpl for StrftimeFunction {
    declare!(NAME, Signature::user_defined(Volatility::Immutable));

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_format = |t: &DataType| t.is_string() || t.is_null();
        match types {
            [time, format] if is_format(format) && find_time_type(time).is_some() => {
                Ok(find_time_type(time).into_iter().chain([DataType::Utf8]).collect())
            }
            [format, time] if is_format(format) && find_time_type(time).is_some() => {
                Ok([DataType::Utf8].into_iter().chain(find_time_type(time)).collect())
            }
            types => plan_err!(
                "{NAME} takes a date or timestamp and a format, as in {NAME}(t, '%Y-%m-%d'), but found {}",
                list_types(types)
            ),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [first, second] = args.args.as_slice() else {
            return exec_err!(
                "{NAME} takes 2 arguments, as in {NAME}(t, '%Y-%m-%d'), but found {}",
                args.args.len()
            );
        };
        let (times, format) = match first.data_type() {
            DataType::Timestamp(..) => (first, second),
            _ => (second, first),
        };
        let (is_one, rows) = count_call_rows(&args);
        let times = times.to_array(rows)?;
        let texts = match format {
            ColumnarValue::Scalar(format) => match format.try_as_str().flatten() {
                Some(format) => format_times(&times, format)?,
                None => StringArray::new_null(rows),
            },
            ColumnarValue::Array(formats) => format_times_each(&times, formats.as_string::<i32>())?,
        };
        to_columnar(Arc::new(texts), is_one)
    }

    fn documentation(&self) -> Option<&Documentation> {
        document!(DocumentationText {
            syntax: "strftime(t, format)",
            also: &["strftime(format, t)"],
            description: "Formats a date or timestamp as text, with the directives of DuckDB: %Y %m %d (year, month, day), %H %M %S (hour, minute, second), %y %j %G %V %u %w (two-digit year, day of the year, ISO year, ISO week, day of the week from Monday 1 and from Sunday 0), %U %W (week from Sunday and from Monday), %I %p (hour of 12, AM or PM), %g %f %n (milli-, micro- and nanoseconds), %A %a %B %b (names of days and months, long and short), %z %Z (zone), %x %X %c (ISO date, time, both), %%. %-d omits leading zeros. A timestamp with a zone is formatted in its zone.",
            args: &[
                ("t", "dates, timestamps, or text of them; lists are formatted value by value"),
                ("format", "text with directives, which may be a column")
            ],
            missing: "The result is NULL if an argument is NULL, and an empty string for an empty format. An unknown directive is an error.",
            example: "SELECT strftime(TIMESTAMP '2020-03-01 13:45:30', '%d.%m.%Y %H:%M');   -- 01.03.2020 13:45",
        })
    }
}
