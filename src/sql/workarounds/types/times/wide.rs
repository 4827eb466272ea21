//! `date_trunc`, `date_bin`, `to_timestamp` and `now` for timestamps of any year.
//!
//! DataFusion's functions convert to nanoseconds whatever the unit of their arguments: for the year
//! 2999 in microseconds, `date_bin` returns NULL, `date_trunc` fails, and `to_timestamp(1e11)` is
//! the year 2262. The functions here call DataFusion's for values that nanoseconds can represent.
//! This workaround is obsolete once the test `stock_functions_still_work_in_nanoseconds` fails.

use std::any::Any;
use std::fmt::Display;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, new_empty_array};
use arrow::compute::kernels::numeric::add;
use arrow::compute::{DatePart, cast, concat, date_part, partition};
use arrow::datatypes::{
    DataType, FieldRef, Float64Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, TimeUnit,
};
use datafusion::common::{ScalarValue, exec_datafusion_err, exec_err};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::functions::datetime;
use datafusion::functions_nested::range::{gen_series_udf, range_udf};
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;
use serrate_core::internal::cast_strictly;
use serrate_core::internal::times::{NANOSECONDS_PER_DAY, count_nanoseconds};
use serrate_core::internal::{TimePart, extract_time_part};

use super::bins::{
    CYCLE_DAYS, CYCLE_MONTHS, CYCLE_START_DAYS, bin_each, check_bin_width, make_range_error,
    make_stride_error,
};
use super::series::{SeriesList, SeriesTable};
use crate::functions::{coerce_arguments, delegate, find_unit_of_text, to_columnar};
use crate::sql::workarounds::types::compared_casts::is_utc;

const SERIES: [&str; 2] = ["generate_series", "range"];

/// Replaces the time functions that DataFusion has registered in a session with the functions of
/// this module.
pub(in crate::sql) fn register_wide(ctx: &SessionContext) {
    let state = ctx.state_ref();
    let config = state.read().config_options().as_ref().clone();
    for function in [
        WideFunction::new(WideTask::Trunc, datetime::date_trunc()),
        WideFunction::new(WideTask::Bin, datetime::date_bin()),
        WideFunction::new(WideTask::Parse, datetime::to_timestamp(&config)),
        // `now()` returns microseconds, because `now() + INTERVAL '2000 years'` overflows in
        // nanoseconds.
        WideFunction::new(WideTask::Now, datetime::now(&config)),
    ] {
        ctx.register_udf(ScalarUDF::new_from_impl(function));
    }
    for (inner, closed) in [(range_udf(), false), (gen_series_udf(), true)] {
        ctx.register_udf(ScalarUDF::new_from_impl(SeriesList { inner, closed }));
    }
    for name in SERIES {
        let stock = state.read().table_functions().get(name).map(|f| Arc::clone(f.function()));
        if let Some(stock) = stock {
            ctx.register_udtf(name, Arc::new(SeriesTable::new(stock, name)));
        }
    }
}

/// Whether the session has this crate's table functions `generate_series` and `range`.
pub(super) fn has_wide_series(state: &SessionState) -> bool {
    SERIES.iter().all(|name| {
        state.table_functions().get(*name).is_some_and(|f| {
            let function: &dyn Any = f.function().as_ref();
            function.is::<SeriesTable>()
        })
    })
}

/// If `function` is DataFusion's `date_part`, returns its replacement for durations, dates and
/// timestamps. Calls are replaced in the plan, because `extract(..)` always becomes DataFusion's
/// own `date_part`.
pub(super) fn find_wide_part(function: &ScalarUDF) -> Option<Arc<ScalarUDF>> {
    (function == datetime::date_part().as_ref()).then(build_wide_part)
}

/// Returns the replacement of DataFusion's `date_part`, under the same name.
pub(in crate::sql) fn build_wide_part() -> Arc<ScalarUDF> {
    let part = WideFunction::new(WideTask::Part, datetime::date_part());
    Arc::new(ScalarUDF::new_from_impl(part))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WideTask {
    Trunc,
    Bin,
    Parse,
    Part,
    Now,
}

/// Wraps a function of DataFusion and handles the times that DataFusion's function does not
/// support.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WideFunction {
    what: WideTask,
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl WideFunction {
    fn new(what: WideTask, inner: Arc<ScalarUDF>) -> Self {
        let signature = match what {
            WideTask::Trunc | WideTask::Bin => {
                Signature::user_defined(inner.signature().volatility)
            }
            _ => inner.signature().clone(),
        };
        Self { what, inner, signature }
    }
}

impl WideFunction {
    /// Truncates times to periods of several years, which DataFusion does not support: truncates
    /// them to years, then moves each back to the first year of its period. As in DuckDB, the
    /// periods begin in multiples of `years`, such as 1990 and 2000 for decades; years before 0
    /// move towards 0.
    fn truncate_to_years(
        &self,
        mut args: ScalarFunctionArgs,
        period: &str,
        years: i32,
    ) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        if let Some(part) = args.args.first_mut() {
            *part = ColumnarValue::Scalar(ScalarValue::from("year"));
        }
        let starts = self.invoke_with_args(args)?;
        let one = matches!(starts, ColumnarValue::Scalar(_));
        let starts = starts.into_array(if one { 1 } else { rows })?;
        let numbers = date_part(&starts, DatePart::Year)?;
        if numbers.null_count() != starts.null_count() {
            return exec_err!(
                "date_trunc: a timestamp is too far from 1970 to find its {period}; use times within 200000 years of 1970"
            );
        }
        let months = |year: i32| -(year % years) * 12;
        let shifts = numbers.as_primitive::<Int32Type>().unary::<_, IntervalYearMonthType>(months);
        to_columnar(add(&starts, &shifts)?, one)
    }

    /// Computes `date_bin` for widths or origins that are arrays. Returns `None` if they are
    /// scalars.
    ///
    /// DataFusion 55 refuses such arrays. A scalar subquery is an array, too, if the statement
    /// contains it several times, like the width in the expansion of `time_bucket`: the optimizer
    /// then makes it a column of a projection.
    fn bin_columns(&self, args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
        let is_array = |at: usize| matches!(args.args.get(at), Some(ColumnarValue::Array(_)));
        if !is_array(0) && !is_array(2) {
            return Ok(None);
        }
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let bins = match arrays.as_slice() {
            [widths, times, origins @ ..]
                if matches!(times.data_type(), DataType::Timestamp(..)) =>
            {
                bin_each(widths, times, origins.first())?
            }
            _ => self.bin_runs(args, &arrays)?,
        };
        Ok(Some(ColumnarValue::Array(bins)))
    }

    /// Computes `date_bin` of times of day with one call for each run of rows with equal widths and
    /// origins. `arrays` has the arguments as arrays.
    fn bin_runs(&self, args: &ScalarFunctionArgs, arrays: &[ArrayRef]) -> Result<ArrayRef> {
        let is_time = |at: usize| at == 1;
        let keys = arrays.iter().enumerate().filter(|(at, _)| !is_time(*at));
        let keys: Vec<ArrayRef> = keys.map(|(_, key)| Arc::clone(key)).collect();
        let mut bins = vec![new_empty_array(args.return_field.data_type())];
        for run in partition(&keys)?.ranges() {
            let of_run = arrays.iter().enumerate().map(|(at, array)| match is_time(at) {
                true => Ok(ColumnarValue::Array(array.slice(run.start, run.len()))),
                false => ScalarValue::try_from_array(array, run.start).map(ColumnarValue::Scalar),
            });
            let mut call = args.clone();
            call.args = of_run.collect::<Result<_>>()?;
            call.number_rows = run.len();
            bins.push(self.invoke_with_args(call)?.into_array(run.len())?);
        }
        let bins: Vec<&dyn Array> = bins.iter().map(|bins| bins.as_ref()).collect();
        Ok(concat(&bins)?)
    }
}

impl ScalarUDFImpl for WideFunction {
    delegate!(inner: name, aliases, return_type, documentation);

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Casts dates and strings to microseconds where DataFusion would cast them to nanoseconds.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let mut stock = coerce_arguments(self.inner.as_ref(), types)?;
        let nanoseconds = |t: &DataType| matches!(t, DataType::Timestamp(TimeUnit::Nanosecond, _));
        if let (Some(given), Some(to)) = (types.get(1), stock.get_mut(1))
            && nanoseconds(to)
            && !given.is_null()
            && !nanoseconds(given)
        {
            *to = match given {
                DataType::Timestamp(..) => given.clone(),
                _ => DataType::Timestamp(TimeUnit::Microsecond, None),
            };
        }
        Ok(stock)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let literal = args.scalar_arguments.first().copied().flatten().cloned();
        let field = self.inner.return_field_from_args(args)?;
        Ok(match (self.what, field.data_type()) {
            (WideTask::Parse, DataType::Timestamp(_, zone)) => {
                let unit = literal.as_ref().map_or(TimeUnit::Microsecond, find_unit_of_text);
                let to = DataType::Timestamp(unit, zone.clone());
                Arc::new(field.as_ref().clone().with_data_type(to))
            }
            (WideTask::Now, DataType::Timestamp(_, zone)) => {
                let to = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
                Arc::new(field.as_ref().clone().with_data_type(to))
            }
            _ => field,
        })
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.inner.inner().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Self::new(self.what, inner)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.what {
            WideTask::Parse => return parse_timestamps(&self.inner, args),
            WideTask::Part => return extract_part(&self.inner, args),
            WideTask::Trunc => {
                if let Some((period, years)) = find_long_period(&args) {
                    return self.truncate_to_years(args, period, years);
                }
            }
            WideTask::Bin => {
                if let Some(bins) = self.bin_columns(&args)? {
                    return Ok(bins);
                }
                check_width(&args)?;
                // DataFusion refuses an origin that is NULL.
                if let Some(ColumnarValue::Scalar(origin)) = args.args.get(2)
                    && origin.is_null()
                {
                    return Ok(ColumnarValue::Scalar(ScalarValue::try_from(args.return_type())?));
                }
                if let Some(times) = find_far_nanoseconds(&args)? {
                    return bin_dates(&self.inner, args, TimeUnit::Nanosecond, &times);
                }
            }
            WideTask::Now => {}
        }
        let Some((unit, times)) = find_times_out_of_range(&args)? else {
            return match self.what {
                WideTask::Trunc => truncate_times(&self.inner, args),
                _ => self.inner.invoke_with_args(args),
            };
        };
        match self.what {
            WideTask::Bin => bin_dates(&self.inner, args, unit, &times),
            _ => call_shifted(&self.inner, args, unit, &times),
        }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if self.what != WideTask::Now {
            return Ok(ExprSimplifyResult::Original(args));
        }
        Ok(match self.inner.simplify(args, info)? {
            ExprSimplifyResult::Simplified(Expr::Literal(now, metadata)) => {
                let DataType::Timestamp(_, zone) = now.data_type() else {
                    return exec_err!(
                        "internal error: now() has the type {} instead of a timestamp; please report it",
                        now.data_type()
                    );
                };
                let to = DataType::Timestamp(TimeUnit::Microsecond, zone);
                ExprSimplifyResult::Simplified(Expr::Literal(now.cast_to(&to)?, metadata))
            }
            other => other,
        })
    }

    /// Returns the range of the times `t` for which a comparison such as
    /// `date_part('year', t) = 2024` is true. The simplifier then compares `t` with the two bounds
    /// of the range instead.
    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        match self.what {
            // A range has two comparisons, which would evaluate a random argument twice (test
            // `stock_years_of_random_times_are_still_evaluated_twice`).
            WideTask::Part if !args.iter().any(Expr::is_volatile) => {
                Ok(match self.inner.preimage(args, literal, info)? {
                    // Nanoseconds do not cover the range of a year such as 1500. Its bounds are
                    // NULL, and `year(t) <> 1500` would be NULL (test
                    // `stock_years_beyond_nanoseconds_are_still_null`).
                    PreimageResult::Range { interval, .. }
                        if interval.lower().is_null() || interval.upper().is_null() =>
                    {
                        PreimageResult::None
                    }
                    found => found,
                })
            }
            _ => Ok(PreimageResult::None),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }
}

/// Returns the name and the number of years of the period in a call such as
/// `date_trunc('century', t)` or `date_part('decade', t)`: for example, 100 for a century. Returns
/// `None` for a period of at most one year, which DataFusion's functions support.
fn find_long_period(args: &ScalarFunctionArgs) -> Option<(&'static str, i32)> {
    let Some(ColumnarValue::Scalar(part)) = args.args.first() else { return None };
    let part = part.try_as_str().flatten()?;
    let periods = [("decade", 10), ("century", 100), ("millennium", 1000)];
    periods.into_iter().find(|(name, _)| part.eq_ignore_ascii_case(name))
}

/// Returns an error if the width of the bins of `date_bin` is not positive, or has months and also
/// days or hours. DataFusion itself ignores the sign of a width.
fn check_width(args: &ScalarFunctionArgs) -> Result<()> {
    let Some(ColumnarValue::Scalar(width)) = args.args.first() else { return Ok(()) };
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let Ok(ScalarValue::IntervalMonthDayNano(Some(width))) = width.cast_to(&interval) else {
        return Ok(());
    };
    check_bin_width(width)
}

/// Calls `date_trunc` with an array in place of a constant time.
///
/// DataFusion 55 rounds constants before 1970 up, and arrays down. This workaround is obsolete once
/// the test `stock_constants_before_1970_are_still_rounded_up` fails.
fn truncate_times(function: &ScalarUDF, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let Some(ColumnarValue::Scalar(time)) = args.args.get(1) else {
        return function.invoke_with_args(args);
    };
    let time = time.to_array()?;
    if let Some(given) = args.args.get_mut(1) {
        *given = ColumnarValue::Array(time);
    }
    args.number_rows = 1;
    let found = function.invoke_with_args(args)?.into_array(1)?;
    to_columnar(found, true)
}

/// Computes `date_part` of durations, of long periods such as centuries, of arrays of dates or
/// timestamps for which a faster kernel exists, and the epoch of timestamps. Calls DataFusion's
/// function for all else.
///
/// DataFusion 55 counts parts in 32 bits: seconds over 68 years are NULL, and milliseconds of a
/// month overflow. It rounds the epoch twice. This workaround is obsolete once the tests
/// `parts_of_long_durations_are_exact` and `epochs_of_nanoseconds_are_rounded_once` pass without
/// this function.
fn extract_part(function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    if let Some((_, years)) = find_long_period(&args)
        && let Some(times) = args.args.get(1)
        && matches!(
            times.data_type(),
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)
        )
    {
        return number_periods(function, args, years);
    }
    let [ColumnarValue::Scalar(part), lengths] = args.args.as_slice() else {
        return function.invoke_with_args(args);
    };
    let part = part.try_as_str().flatten().map(str::to_lowercase);
    if let ColumnarValue::Array(times) = lengths
        && let Some(part) = part.as_deref().and_then(find_calendar_part)
        && let Some(parts) = extract_time_part(times, part)?
    {
        return Ok(ColumnarValue::Array(Arc::new(parts)));
    }
    let part = part.as_deref().map(|part| part.trim_matches('\''));
    let nanoseconds = match part {
        Some("epoch" | "second" | "seconds" | "sec") => 1_000_000_000,
        Some("millisecond" | "milliseconds" | "ms") => 1_000_000,
        Some("microsecond" | "microseconds" | "us") => 1_000,
        _ => return function.invoke_with_args(args),
    };
    let unit = match (lengths.data_type(), part) {
        (DataType::Duration(unit), _) | (DataType::Timestamp(unit, _), Some("epoch")) => unit,
        _ => return function.invoke_with_args(args),
    };
    let one = matches!(lengths, ColumnarValue::Scalar(_));
    let lengths = lengths.to_array(if one { 1 } else { args.number_rows })?;
    let counts = cast(&lengths, &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    let per = count_nanoseconds(unit);
    let parts: ArrayRef = match args.return_field.data_type() {
        DataType::Float64 => {
            // Both are powers of ten, so the smaller one divides the other one.
            let common = per.min(nanoseconds);
            let (factor, divisor) = (per / common, nanoseconds / common);
            Arc::new(counts.unary::<_, Float64Type>(|t| {
                // A count of up to 53 bits is exact as a double, so the quotient is rounded once.
                if factor == 1 && t.unsigned_abs() < 1 << f64::MANTISSA_DIGITS {
                    return t as f64 / divisor as f64;
                }
                divide_once_rounded(i128::from(t) * factor, divisor)
            }))
        }
        returns => {
            let whole = counts.iter().map(|t| {
                let Some(t) = t else { return Ok(None) };
                let number = i128::from(t) * per / nanoseconds;
                i32::try_from(number).map(Some).map_err(|_| {
                    exec_datafusion_err!(
                        "date_part: a duration has {number} {}s, which do not fit a 32-bit integer; use extract(epoch FROM ..), which returns its seconds in 64 bits",
                        part.unwrap_or("unit").trim_end_matches('s')
                    )
                })
            });
            cast(&whole.collect::<Result<Int32Array>>()?, returns)?
        }
    };
    to_columnar(parts, one)
}

/// Returns the double closest to `count / per`, for a `count` of at most 93 bits and a `per` of at
/// most 10^9. If `count` itself were rounded to a double first, 1577836800123000000 / 10^9 would
/// be 1577836800.1230001.
fn divide_once_rounded(count: i128, per: i128) -> f64 {
    let magnitude = count.unsigned_abs();
    if magnitude < 1 << f64::MANTISSA_DIGITS {
        return count as f64 / per as f64;
    }
    // A double has 53 bits and the quotient at least 56. So the last bit of the quotient only
    // decides the rounding, and can stand for all bits after it: it is set if one of them is set.
    let scaled = magnitude << 32;
    let per = per.unsigned_abs();
    let quotient = (scaled / per) | u128::from(!scaled.is_multiple_of(per));
    let rounded = quotient as f64 / 2f64.powi(32);
    if count < 0 { -rounded } else { rounded }
}

/// Computes `date_part` of decades, centuries and millennia, which DataFusion does not support. As
/// in DuckDB, the decade is the year divided by 10 and rounded towards 0: 197 for 1970. Century 1
/// begins in the year 1, so 1970 is in century 20; it follows century -1, because there is no
/// century 0. Millennia are numbered like centuries.
fn number_periods(
    function: &ScalarUDF,
    mut args: ScalarFunctionArgs,
    years: i32,
) -> Result<ColumnarValue> {
    let rows = args.number_rows;
    if let Some(part) = args.args.first_mut() {
        *part = ColumnarValue::Scalar(ScalarValue::from("year"));
    }
    let found = extract_part(function, args)?;
    let one = matches!(found, ColumnarValue::Scalar(_));
    let found = found.into_array(if one { 1 } else { rows })?;
    let number = |year: i32| match year {
        year if years == 10 => year / 10,
        1.. => (year - 1) / years + 1,
        year => year / years - 1,
    };
    let numbers = found.as_primitive::<Int32Type>().unary::<_, Int32Type>(number);
    to_columnar(Arc::new(numbers), one)
}

/// Returns the [`TimePart`] that a name such as `year` means. Returns `None` if no kernel computes
/// this part faster than Arrow. The kernels do not support times with a zone, which the caller
/// passes to DataFusion's function.
fn find_calendar_part(name: &str) -> Option<TimePart> {
    Some(match name {
        "year" => TimePart::Year,
        "quarter" => TimePart::Quarter,
        "month" => TimePart::Month,
        "week" => TimePart::Week,
        "day" => TimePart::Day,
        "doy" => TimePart::DayOfYear,
        "dow" => TimePart::Weekday,
        "isodow" => TimePart::IsoWeekday,
        "hour" => TimePart::Hour,
        "minute" => TimePart::Minute,
        "second" => TimePart::Second,
        _ => return None,
    })
}

/// If some times in the second argument are outside the 400 years that begin with
/// [`CYCLE_START_DAYS`], returns the unit of the times, and all times as numbers of this unit since
/// 1970. Returns `None` for other arguments, for timestamps in nanoseconds, and for zones other
/// than UTC, whose daylight saving rules do not repeat every 400 years.
fn find_times_out_of_range(args: &ScalarFunctionArgs) -> Result<Option<(TimeUnit, ArrayRef)>> {
    let Some(times) = args.args.get(1) else { return Ok(None) };
    let unit = match times.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => return Ok(None),
        DataType::Timestamp(unit, None) => unit,
        DataType::Timestamp(unit, Some(zone)) if is_utc(&zone) => unit,
        _ => return Ok(None),
    };
    let one = matches!(times, ColumnarValue::Scalar(_));
    let times = times.to_array(if one { 1 } else { args.number_rows })?;
    let counts = cast(&times, &DataType::Int64)?;
    let per = count_nanoseconds(unit);
    // Times from 1800 to 2199 need no shift by multiples of 400 years: nanoseconds can represent
    // all times from 1677 to 2262, so also the results of truncating or binning a time from 1800
    // to 2199.
    let inside = |t: i64| {
        let days = i128::from(t) * per / NANOSECONDS_PER_DAY;
        (CYCLE_START_DAYS..CYCLE_START_DAYS + CYCLE_DAYS).contains(&days)
    };
    let all = counts.as_primitive::<Int64Type>().iter().flatten().all(inside);
    Ok(if all { None } else { Some((unit, counts)) })
}

/// If the second argument has times in nanoseconds, and the difference of a time and the origin,
/// the third argument, does not fit 64 bits, returns all times as numbers. Returns `None` for other
/// arguments, and for bins of months.
///
/// DataFusion's `date_bin` returns NULL for such a time: `time_bucket` has the origin 2000, so it
/// was NULL for the year 1700.
fn find_far_nanoseconds(args: &ScalarFunctionArgs) -> Result<Option<ArrayRef>> {
    let [
        ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(width))),
        times,
        ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(Some(origin), _)),
    ] = args.args.as_slice()
    else {
        return Ok(None);
    };
    if width.months != 0 {
        return Ok(None);
    }
    match times.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {}
        DataType::Timestamp(TimeUnit::Nanosecond, Some(zone)) if is_utc(&zone) => {}
        _ => return Ok(None),
    }
    let one = matches!(times, ColumnarValue::Scalar(_));
    let times = times.to_array(if one { 1 } else { args.number_rows })?;
    let counts = cast(&times, &DataType::Int64)?;
    let is_far = |t: i64| t.checked_sub(*origin).is_none();
    let any = counts.as_primitive::<Int64Type>().iter().flatten().any(is_far);
    Ok(any.then_some(counts))
}

/// Calls `function` on times that are shifted by multiples of 400 years into the range of
/// nanoseconds, and shifts the results back. `counts` has the times in `unit` since 1970.
fn call_shifted(
    function: &ScalarUDF,
    mut args: ScalarFunctionArgs,
    unit: TimeUnit,
    counts: &ArrayRef,
) -> Result<ColumnarValue> {
    let per = count_nanoseconds(unit);
    let (cycle, start) =
        (CYCLE_DAYS * NANOSECONDS_PER_DAY / per, CYCLE_START_DAYS * NANOSECONDS_PER_DAY / per);
    let counts = counts.as_primitive::<Int64Type>();
    let near = |t: i64| (i128::from(t) - start).rem_euclid(cycle) + start;
    let moved: Int64Array = counts.unary_opt::<_, Int64Type>(|t| i64::try_from(near(t)).ok());
    let Some(given) = args.args.get_mut(1) else {
        return Err(make_missing_time_error());
    };
    let (one, to) = (matches!(given, ColumnarValue::Scalar(_)), given.data_type());
    let moved = cast(&moved, &to)?;
    // A constant time becomes an array, too, because DataFusion rounds constants before 1970 up
    // (see `truncate_times`).
    *given = ColumnarValue::Array(moved);
    args.number_rows = counts.len();
    let found = function.invoke_with_args(args)?;
    let found = found.to_array(counts.len())?;
    let found = cast(&found, &DataType::Int64)?;
    let pairs = found.as_primitive::<Int64Type>().iter().zip(counts);
    let back = pairs.map(|(found, t)| match (found, t) {
        (Some(found), Some(t)) => {
            let back = i128::from(found) + i128::from(t) - near(t);
            let back = i64::try_from(back);
            back.map(Some).map_err(|_| {
                exec_datafusion_err!(
                    "{}: the result for the timestamp {t} (in {unit:?}s since 1970) is outside the range of timestamps in 64 bits; use times closer to 1970",
                    function.name()
                )
            })
        }
        _ => Ok(None),
    });
    let back: Int64Array = back.collect::<Result<_>>()?;
    to_columnar(cast(&back, &to)?, one)
}

/// Returns the stride of `date_bin`, its first argument; `None` if it is NULL.
fn read_stride(stride: Option<&ColumnarValue>) -> Result<Option<IntervalMonthDayNano>> {
    let Some(ColumnarValue::Scalar(stride)) = stride else {
        return exec_err!(
            "date_bin: the stride is a column or a computed value; write an interval literal such as INTERVAL '15 minutes'"
        );
    };
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let strides = cast(&stride.to_array()?, &interval)?;
    let strides = strides.as_primitive::<IntervalMonthDayNanoType>();
    Ok(strides.is_valid(0).then(|| strides.value(0)))
}

/// Returns the origin of `date_bin`, its third argument, in nanoseconds since 1970: by default 0;
/// `None` if it is NULL.
fn read_origin(origin: Option<&ColumnarValue>) -> Result<Option<i128>> {
    match origin {
        None => Ok(Some(0)),
        Some(ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(origin, _))) => {
            Ok(origin.map(i128::from))
        }
        Some(ColumnarValue::Scalar(origin)) => exec_err!(
            "date_bin: the origin has the type {}; write a timestamp literal such as TIMESTAMP '2020-01-01'",
            origin.data_type()
        ),
        Some(_) => exec_err!(
            "date_bin: the origin is a column or a computed value; write a timestamp literal such as TIMESTAMP '2020-01-01'"
        ),
    }
}

/// Computes `date_bin`: bins of a fixed length by arithmetic, and bins of months by DataFusion's
/// function for times shifted by multiples of 400 years, after which the calendar repeats.
fn bin_dates(
    function: &ScalarUDF,
    args: ScalarFunctionArgs,
    unit: TimeUnit,
    counts: &ArrayRef,
) -> Result<ColumnarValue> {
    let Some(stride) = read_stride(args.args.first())? else {
        return function.invoke_with_args(args);
    };
    if stride.months != 0 {
        if stride.months > 0 && CYCLE_MONTHS % stride.months == 0 {
            return call_shifted(function, args, unit, counts);
        }
        return Err(make_stride_error(stride.months));
    }
    let length = i128::from(stride.days) * NANOSECONDS_PER_DAY + i128::from(stride.nanoseconds);
    if length <= 0 {
        return function.invoke_with_args(args);
    }
    let Some(origin) = read_origin(args.args.get(2))? else {
        return function.invoke_with_args(args);
    };
    let per = count_nanoseconds(unit);
    let bins = counts.as_primitive::<Int64Type>().iter().map(|t| {
        t.map(|t| {
            let bin = (i128::from(t) * per - origin).div_euclid(length) * length + origin;
            i64::try_from(bin.div_euclid(per)).map_err(|_| make_range_error(t, unit))
        })
        .transpose()
    });
    let bins: Int64Array = bins.collect::<Result<_>>()?;
    let (one, to) = match args.args.get(1) {
        Some(times) => (matches!(times, ColumnarValue::Scalar(_)), times.data_type()),
        None => {
            return Err(make_missing_time_error());
        }
    };
    to_columnar(cast(&bins, &to)?, one)
}

fn make_missing_time_error() -> DataFusionError {
    exec_datafusion_err!(
        "internal error: a function of times is called without the time, its second argument; please report it"
    )
}

fn make_seconds_error(seconds: impl Display) -> DataFusionError {
    exec_datafusion_err!(
        "to_timestamp: {seconds} seconds are outside the range of timestamps in 64 bits; use times closer to 1970"
    )
}

fn parse_timestamps(function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let to = args.return_field.data_type().clone();
    let DataType::Timestamp(unit, zone) = &to else { return function.invoke_with_args(args) };
    let Some(value) = args.args.first() else { return function.invoke_with_args(args) };
    let one = args.args.iter().all(|v| matches!(v, ColumnarValue::Scalar(_)));
    let values = value.to_array(if one { 1 } else { args.number_rows })?;
    let per_second = 1_000_000_000 / count_nanoseconds(*unit);
    let done = match values.data_type() {
        t if t.is_integer() => {
            let seconds = cast_strictly(&values, &DataType::Int64)?;
            let seconds = seconds.as_primitive::<Int64Type>();
            let per = i64::try_from(per_second).unwrap_or(1);
            let counts: Int64Array = seconds.try_unary::<_, Int64Type, _>(|s| {
                s.checked_mul(per).ok_or_else(|| make_seconds_error(s))
            })?;
            cast(&counts, &to)?
        }
        t if t.is_floating() => {
            let seconds = cast(&values, &DataType::Float64)?;
            #[expect(clippy::cast_precision_loss, reason = "a power of ten up to 10^9")]
            let per = per_second as f64;
            let counts: Int64Array =
                seconds.as_primitive::<Float64Type>().try_unary::<_, Int64Type, _>(|s| {
                    let count = (s * per).trunc();
                    // Floats represent both bounds exactly, because these are powers of two.
                    if count >= -(2f64.powi(63)) && count < 2f64.powi(63) {
                        #[expect(clippy::cast_possible_truncation, reason = "within the range")]
                        return Ok(count as i64);
                    }
                    Err(make_seconds_error(s))
                })?;
            cast(&counts, &to)?
        }
        DataType::Timestamp(..) | DataType::Null => cast_strictly(&values, &to)?,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if args.args.len() == 1 => {
            cast_strictly(&values, &DataType::Timestamp(*unit, zone.clone()))?
        }
        _ => {
            // DataFusion's function computes decimals, and strings with an explicit format, in
            // nanoseconds.
            let nanos = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
            let field = args.return_field.as_ref().clone().with_data_type(nanos);
            let rows = if one { 1 } else { args.number_rows };
            let args = ScalarFunctionArgs { return_field: Arc::new(field), ..args };
            // If a column of strings is parsed with a format, the result of DataFusion 55 lacks the
            // time zone of `return_field`. In debug builds, `ScalarUDF::invoke_with_args` refuses
            // such a result, so call the inner function. This workaround is obsolete once the test
            // `stock_parsed_columns_still_lack_their_zone` fails.
            let found = function.inner().invoke_with_args(args)?.to_array(rows)?;
            cast_strictly(&found, &to)?
        }
    };
    to_columnar(done, one)
}
