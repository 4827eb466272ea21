use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute::kernels::arity::binary;
use arrow::compute::kernels::numeric::sub;
use arrow::compute::{DatePart, cast, date_part};
use arrow::datatypes::{DataType, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::declare;
use crate::kernels::zones::to_local;

use super::documents::{DocumentationText, document};

const NAME: &str = "date_diff";
const TIMES: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// Returns `date_diff(part, start, end)`: how many calendar parts, such as months, begin after
/// `start` up to and including `end`.
pub(super) fn date_diff() -> ScalarUDF {
    ScalarUDF::new_from_impl(DateDiff)
}

/// Length of the calendar part in a call of `date_diff`, in months or microseconds.
#[derive(Clone, Copy)]
enum CalendarPart {
    Months(i64),
    /// Periods of seven days that begin on the day of `start`, whatever its weekday, as in DuckDB.
    Weeks,
    Microseconds(i64),
}

impl CalendarPart {
    fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "millennium" | "millennia" => Self::Months(12_000),
            "century" | "centuries" => Self::Months(1_200),
            "decade" | "decades" => Self::Months(120),
            "year" | "years" | "yr" | "y" => Self::Months(12),
            "quarter" | "quarters" => Self::Months(3),
            "month" | "months" | "mon" => Self::Months(1),
            "week" | "weeks" | "w" => Self::Weeks,
            "day" | "days" | "d" => Self::Microseconds(MICROSECONDS_PER_DAY),
            "hour" | "hours" | "hr" | "h" => Self::Microseconds(3_600_000_000),
            "minute" | "minutes" | "min" | "m" => Self::Microseconds(60_000_000),
            "second" | "seconds" | "sec" | "s" => Self::Microseconds(1_000_000),
            "millisecond" | "milliseconds" | "ms" => Self::Microseconds(1_000),
            "microsecond" | "microseconds" | "us" => Self::Microseconds(1),
            _ => return None,
        })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateDiff;

impl ScalarUDFImpl for DateDiff {
    declare!(NAME, aliases: ["datediff"], Signature::user_defined(Volatility::Immutable));

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [part, start, end] = types else {
            return plan_err!(
                "{NAME} takes 3 arguments, a part and two times, as in {NAME}('day', start, end), but found {}",
                types.len()
            );
        };
        if !part.is_string() && !part.is_null() {
            return plan_err!("{NAME}: the part must be a string such as 'day'; it is {part}");
        }
        for (argument, time) in [(2, start), (3, end)] {
            let is_time = matches!(
                time,
                DataType::Null | DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)
            );
            if !is_time && !time.is_string() {
                return plan_err!(
                    "{NAME}: argument {argument} must be a date or timestamp; it is {time}, so cast it first"
                );
            }
        }
        // If only one of the two times has a zone, the other is a local time in this zone.
        let zone = [start, end].into_iter().find_map(|time| match time {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        });
        let times = DataType::Timestamp(TimeUnit::Microsecond, zone);
        Ok(vec![DataType::Utf8, times.clone(), times])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(part), start, end] = args.args.as_slice() else {
            return exec_err!("{NAME}: the part is a column; give a literal such as 'day'");
        };
        let Some(part) = part.try_as_str().flatten() else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Int64(None)));
        };
        let Some(known) = CalendarPart::parse(part) else {
            return exec_err!(
                "{NAME}: there is no part '{part}'; parts are year, quarter, month, week, day, hour, minute, second, millisecond, microsecond, decade, century, millennium"
            );
        };
        let (start, end) = (start.to_array(args.number_rows)?, end.to_array(args.number_rows)?);
        Ok(ColumnarValue::Array(count_boundaries(known, &start, &end)?))
    }

    fn documentation(&self) -> Option<&Documentation> {
        document!(DocumentationText {
            syntax: "date_diff('day', start, end)",
            description: "Counts how often a new calendar part begins after `start`, up to and including `end`: from 2020-01-31 to 2020-02-01 one month begins. A week is a period of seven days from `start`. The result is a BIGINT, negative if `end` is before `start`. Hours and shorter parts of times with a zone are elapsed time, days and longer parts follow the local calendar.",
            args: &[
                (
                    "'day'",
                    "the part, a literal: 'year', 'quarter', 'month', 'week', 'day', 'hour', 'minute', 'second', 'millisecond', 'microsecond', 'decade', 'century' or 'millennium'"
                ),
                (
                    "start, end",
                    "dates, timestamps, or text of them; lists are counted value by value"
                )
            ],
            missing: "The result is NULL if an argument is NULL. Another part is an error.",
            example: "SELECT date_diff('month', DATE '2020-01-31', DATE '2020-02-01');   -- 1
SELECT date_diff('day', TIMESTAMP '2020-01-01 23:00', TIMESTAMP '2020-01-02 01:00');   -- 1",
            ..DocumentationText::EMPTY
        })
    }
}

/// Returns times as microseconds since 1970: by the local calendar of their zone if `local`, otherwise in UTC.
fn to_microseconds(times: &ArrayRef, local: bool) -> Result<Int64Array> {
    let times = if local { to_local(times)? } else { times.clone() };
    let times = cast(&times, &TIMES)?;
    Ok(times.as_primitive::<TimestampMicrosecondType>().reinterpret_cast())
}

/// Returns the number of months from the year 0 to each time.
fn count_months(times: &ArrayRef) -> Result<Int64Array> {
    let (years, months) = (date_part(times, DatePart::Year)?, date_part(times, DatePart::Month)?);
    let months_of_year = |year: i32, month: i32| i64::from(year) * 12 + i64::from(month) - 1;
    let (years, months) = (years.as_primitive::<Int32Type>(), months.as_primitive::<Int32Type>());
    Ok(binary(years, months, months_of_year)?)
}

fn count_boundaries(part: CalendarPart, start: &ArrayRef, end: &ArrayRef) -> Result<ArrayRef> {
    let number = |times: &ArrayRef| -> Result<Int64Array> {
        Ok(match part {
            CalendarPart::Months(length) => count_months(times)?.unary(|m| m.div_euclid(length)),
            CalendarPart::Weeks => {
                to_microseconds(times, true)?.unary(|t| t.div_euclid(MICROSECONDS_PER_DAY))
            }
            // Days follow the local calendar; hours and shorter parts are elapsed time.
            CalendarPart::Microseconds(length) => {
                to_microseconds(times, length >= MICROSECONDS_PER_DAY)?
                    .unary(|t| t.div_euclid(length))
            }
        })
    };
    let count = sub(&number(end)?, &number(start)?)?;
    Ok(match part {
        CalendarPart::Weeks => {
            Arc::new(count.as_primitive::<Int64Type>().unary::<_, Int64Type>(|days| days / 7))
        }
        CalendarPart::Months(_) | CalendarPart::Microseconds(_) => count,
    })
}
