//! The functions `date_diff` and `date_sub` of DuckDB.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Datum, Int32Array, Int64Array, Scalar};
use arrow::buffer::NullBuffer;
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
use serrate_core::internal::zones::to_local;
use serrate_core::internal::{TimePart, extract_time_part};

use crate::functions::declare;

use super::documents::{DocumentationText, document};

const TIMES: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
const MICROSECONDS_PER_MINUTE: i64 = 60 * MICROSECONDS_PER_SECOND;
const MICROSECONDS_PER_HOUR: i64 = 60 * MICROSECONDS_PER_MINUTE;
const MICROSECONDS_PER_DAY: i64 = 24 * MICROSECONDS_PER_HOUR;

/// Returns `date_diff(part, start, end)`: how many calendar parts, such as months, begin after
/// `start` up to and including `end`.
pub(super) fn date_diff() -> ScalarUDF {
    ScalarUDF::new_from_impl(PartCount::Begun)
}

/// Returns `date_sub(part, start, end)`: how many whole parts, such as months, lie between `start`
/// and `end`.
pub(super) fn date_sub() -> ScalarUDF {
    ScalarUDF::new_from_impl(PartCount::Whole)
}

/// Length of the calendar part in a call of `date_diff` or `date_sub`, in months or microseconds.
#[derive(Clone, Copy)]
enum CalendarPart {
    Months(i64),
    /// Periods of seven days, on whatever weekday they begin, as in DuckDB. `date_diff` counts them
    /// from the start of the day of `start`, `date_sub` from `start` itself.
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
            "hour" | "hours" | "hr" | "h" => Self::Microseconds(MICROSECONDS_PER_HOUR),
            "minute" | "minutes" | "min" | "m" => Self::Microseconds(MICROSECONDS_PER_MINUTE),
            "second" | "seconds" | "sec" | "s" => Self::Microseconds(MICROSECONDS_PER_SECOND),
            "millisecond" | "milliseconds" | "ms" => Self::Microseconds(1_000),
            "microsecond" | "microseconds" | "us" => Self::Microseconds(1),
            _ => return None,
        })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum PartCount {
    /// Parts of the calendar that begin between two times: from 10:30 to 12:15, 2 hours begin.
    Begun,
    /// Complete parts that fit between two times: from 10:30 to 12:15 is 1 hour.
    Whole,
}

impl ScalarUDFImpl for PartCount {
    declare!(Signature::user_defined(Volatility::Immutable));

    fn name(&self) -> &str {
        match self {
            Self::Begun => "date_diff",
            Self::Whole => "date_sub",
        }
    }

    fn aliases(&self) -> &[String] {
        static ALIASES: LazyLock<[Vec<String>; 2]> =
            LazyLock::new(|| ["datediff", "datesub"].map(|alias| vec![alias.to_owned()]));
        let [begun, whole] = &*ALIASES;
        match self {
            Self::Begun => begun,
            Self::Whole => whole,
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        let [part, start, end] = types else {
            return plan_err!(
                "{name} takes 3 arguments, a part and two times, as in {name}('day', start, end), but found {}",
                types.len()
            );
        };
        if !part.is_string() && !part.is_null() {
            return plan_err!("{name}: the part must be a string such as 'day'; it is {part}");
        }
        for (argument, time) in [(2, start), (3, end)] {
            let is_time = matches!(
                time,
                DataType::Null | DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)
            );
            if !is_time && !time.is_string() {
                return plan_err!(
                    "{name}: argument {argument} must be a date or timestamp; it is {time}, so cast it first"
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
        let name = self.name();
        let [ColumnarValue::Scalar(part), start, end] = args.args.as_slice() else {
            return exec_err!("{name}: the part is a column; give a literal such as 'day'");
        };
        let Some(part) = part.try_as_str().flatten() else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Int64(None)));
        };
        let Some(known) = CalendarPart::parse(part) else {
            return exec_err!(
                "{name}: there is no part '{part}'; parts are year, quarter, month, week, day, hour, minute, second, millisecond, microsecond, decade, century, millennium"
            );
        };
        let rows = args.number_rows;
        Ok(ColumnarValue::Array(match self {
            Self::Begun
                if matches!((start, end), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_))) =>
            {
                count_boundaries(known, &ColumnarValue::Array(start.to_array(rows)?), end)?
            }
            Self::Begun => count_boundaries(known, start, end)?,
            Self::Whole => count_whole(known, &start.to_array(rows)?, &end.to_array(rows)?)?,
        }))
    }

    fn documentation(&self) -> Option<&Documentation> {
        match self {
            Self::Begun => document!(DocumentationText {
                syntax: "date_diff('day', start, end)",
                description: "Counts how often a new calendar part begins after `start`, up to and including `end`: from 2020-01-31 to 2020-02-01 one month begins. A week is a period of seven days from `start`. The result is a BIGINT, negative if `end` is before `start`. Hours and shorter parts of times with a zone are elapsed time, days and longer parts follow the local calendar.",
                args: PARTS,
                missing: "The result is NULL if an argument is NULL. Another part is an error.",
                example: "SELECT date_diff('month', DATE '2020-01-31', DATE '2020-02-01');   -- 1
SELECT date_diff('day', TIMESTAMP '2020-01-01 23:00', TIMESTAMP '2020-01-02 01:00');   -- 1",
                ..DocumentationText::EMPTY
            }),
            Self::Whole => document!(DocumentationText {
                syntax: "date_sub('day', start, end)",
                description: "Counts the whole parts between `start` and `end`: from 2020-01-31 to 2020-02-01 there is no whole month. A month from a day that a shorter month does not have ends on the last day of that month. The result is a BIGINT, negative if `end` is before `start`. Hours and shorter parts of times with a zone are elapsed time, days and longer parts follow the local calendar.",
                args: PARTS,
                missing: "The result is NULL if an argument is NULL. Another part is an error.",
                example: "SELECT date_sub('month', DATE '2020-01-31', DATE '2020-02-29');   -- 1
SELECT date_sub('day', TIMESTAMP '2020-01-01 23:00', TIMESTAMP '2020-01-02 01:00');   -- 0",
                ..DocumentationText::EMPTY
            }),
        }
    }
}

const PARTS: &[(&str, &str)] = &[
    (
        "'day'",
        "the part, a literal: 'year', 'quarter', 'month', 'week', 'day', 'hour', 'minute', 'second', 'millisecond', 'microsecond', 'decade', 'century' or 'millennium'",
    ),
    ("start, end", "dates, timestamps, or text of them; lists are counted value by value"),
];

/// Returns times as microseconds since 1970: by the local calendar of their zone if `local`,
/// otherwise in UTC.
fn to_microseconds(times: &ArrayRef, local: bool) -> Result<Int64Array> {
    let times = if local { to_local(times)? } else { times.clone() };
    let times = cast(&times, &TIMES)?;
    Ok(times.as_primitive::<TimestampMicrosecondType>().reinterpret_cast())
}

/// Returns the number of months from the year 0 to each time.
fn count_months(times: &ArrayRef) -> Result<Int64Array> {
    let extract = |fast: TimePart, stock: DatePart| -> Result<Int32Array> {
        match extract_time_part(times, fast)? {
            Some(parts) => Ok(parts),
            None => Ok(date_part(times, stock)?.as_primitive::<Int32Type>().clone()),
        }
    };
    let years = extract(TimePart::Year, DatePart::Year)?;
    let months = extract(TimePart::Month, DatePart::Month)?;
    let months_of_year = |year: i32, month: i32| i64::from(year) * 12 + i64::from(month) - 1;
    Ok(binary(&years, &months, months_of_year)?)
}

/// Numbers the parts of the calendar, and returns the number of the part that contains each time.
/// The difference of two numbers is how many parts begin between the times. For
/// [`CalendarPart::Weeks`], numbers the days; the caller divides their difference by 7.
fn number_parts(part: CalendarPart, times: &ArrayRef) -> Result<Int64Array> {
    Ok(match part {
        CalendarPart::Months(1) => count_months(times)?,
        CalendarPart::Months(length) => count_months(times)?.unary(|m| m.div_euclid(length)),
        CalendarPart::Weeks => divide_floor(&to_microseconds(times, true)?, MICROSECONDS_PER_DAY),
        // Days follow the local calendar; hours and shorter parts are elapsed time.
        CalendarPart::Microseconds(length) => {
            divide_floor(&to_microseconds(times, length >= MICROSECONDS_PER_DAY)?, length)
        }
    })
}

fn divide_floor(times: &Int64Array, length: i64) -> Int64Array {
    // Each unit has its own arm, because a division by a constant is several times as fast.
    match length {
        MICROSECONDS_PER_DAY => times.unary(|t| t.div_euclid(MICROSECONDS_PER_DAY)),
        MICROSECONDS_PER_HOUR => times.unary(|t| t.div_euclid(MICROSECONDS_PER_HOUR)),
        MICROSECONDS_PER_MINUTE => times.unary(|t| t.div_euclid(MICROSECONDS_PER_MINUTE)),
        MICROSECONDS_PER_SECOND => times.unary(|t| t.div_euclid(MICROSECONDS_PER_SECOND)),
        length => times.unary(|t| t.div_euclid(length)),
    }
}

/// Returns, for each row, how many calendar parts, such as months, begin between `start` and `end`.
/// At most one of the two is a scalar.
fn count_boundaries(
    part: CalendarPart,
    start: &ColumnarValue,
    end: &ColumnarValue,
) -> Result<ArrayRef> {
    let number = |times: &ColumnarValue| -> Result<Box<dyn Datum>> {
        Ok(match times {
            ColumnarValue::Array(times) => Box::new(number_parts(part, times)?),
            ColumnarValue::Scalar(time) => {
                Box::new(Scalar::new(number_parts(part, &time.to_array()?)?))
            }
        })
    };
    let count = sub(number(end)?.as_ref(), number(start)?.as_ref())?;
    Ok(match part {
        CalendarPart::Weeks => {
            Arc::new(count.as_primitive::<Int64Type>().unary::<_, Int64Type>(|days| days / 7))
        }
        CalendarPart::Months(_) | CalendarPart::Microseconds(_) => count,
    })
}

fn count_whole(part: CalendarPart, start: &ArrayRef, end: &ArrayRef) -> Result<ArrayRef> {
    let length = match part {
        CalendarPart::Months(length) => {
            let months = count_whole_months(start, end)?;
            return Ok(Arc::new(months.unary::<_, Int64Type>(|months| months / length)));
        }
        CalendarPart::Weeks => 7 * MICROSECONDS_PER_DAY,
        CalendarPart::Microseconds(length) => length,
    };
    let is_local = length >= MICROSECONDS_PER_DAY;
    let elapsed = sub(&to_microseconds(end, is_local)?, &to_microseconds(start, is_local)?)?;
    let elapsed = elapsed.as_primitive::<Int64Type>();
    Ok(Arc::new(elapsed.unary::<_, Int64Type>(|elapsed| elapsed / length)))
}

/// A time of the local calendar, in this order: the month, counted from January of the year 0; the
/// day of the month; the microseconds since midnight.
type LocalTime = (i64, i32, i64);

fn count_whole_months(start: &ArrayRef, end: &ArrayRef) -> Result<Int64Array> {
    let months = [count_months(start)?, count_months(end)?];
    let days = [date_part(start, DatePart::Day)?, date_part(end, DatePart::Day)?];
    let days = days.each_ref().map(|days| days.as_primitive::<Int32Type>());
    let instants = [to_microseconds(start, true)?, to_microseconds(end, true)?];
    let local = |side: usize, row: usize| -> LocalTime {
        let time_of_day = instants[side].value(row).rem_euclid(MICROSECONDS_PER_DAY);
        (months[side].value(row), days[side].value(row), time_of_day)
    };
    let counts = (0..start.len()).map(|row| match (local(0, row), local(1, row)) {
        (start, end) if start <= end => subtract_months(start, end),
        (start, end) => -subtract_months(end, start),
    });
    let nulls = NullBuffer::union(start.nulls(), end.nulls());
    Ok(Int64Array::new(counts.collect::<Vec<i64>>().into(), nulls))
}

/// Returns the number of whole months from `start` to `end`. The caller ensures that `end` is not
/// before `start`.
fn subtract_months(start: LocalTime, end: LocalTime) -> i64 {
    let day = start.1.min(count_days_in_month(end.0));
    let is_partial = (day, start.2) > (end.1, end.2);
    end.0 - start.0 - i64::from(is_partial)
}

/// Returns the number of days of a month. Month 0 is January of the year 0.
fn count_days_in_month(month: i64) -> i32 {
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12));
    match month {
        1 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}
