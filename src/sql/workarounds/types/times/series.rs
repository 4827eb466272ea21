//! `generate_series` and `range` of timestamps of any year, as scalar functions and in FROM.
//!
//! DataFusion's functions compute in nanoseconds whatever the unit of their arguments: for the year
//! 2999 the list is NULL, and the table function fails. The functions here compute in nanoseconds
//! only if an argument is in nanoseconds, and otherwise in microseconds. In FROM, dates become
//! timestamps, as in DataFusion. This workaround is obsolete once the test
//! `stock_series_still_are_nanoseconds` fails.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, Int64Array, NullBufferBuilder, RecordBatch,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    Schema, SchemaRef, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;
use serrate_core::internal::cast_strictly;
use serrate_core::internal::times::NANOSECONDS_PER_DAY;

use crate::functions::{charge_series, count_call_rows, delegate, to_columnar};

const MOST_DAYS_PER_MONTH: i128 = 31;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SeriesList {
    pub(super) inner: Arc<ScalarUDF>,
    /// Whether the list includes the stop: true for `generate_series`, false for `range`.
    pub(super) closed: bool,
}

impl ScalarUDFImpl for SeriesList {
    delegate!(inner: name, aliases, signature, documentation);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let inner = self.inner.return_type(types)?;
        Ok(match (inner, types) {
            (DataType::List(item), [start, stop, ..])
                if matches!(item.data_type(), DataType::Timestamp(..)) =>
            {
                DataType::new_list(find_element_type(start, stop), item.is_nullable())
            }
            (inner, _) => inner,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let element = match args.return_field.data_type() {
            DataType::List(item) if matches!(item.data_type(), DataType::Timestamp(..)) => item,
            _ => {
                let _charge = charge_series(self.name(), &args)?;
                return self.inner.invoke_with_args(args);
            }
        };
        let (is_one, rows) = count_call_rows(&args);
        let [start, stop, step] = args.args.as_slice() else {
            return exec_err!(
                "{} of timestamps takes 3 arguments, not {}; write a start, a stop and a step such as INTERVAL '1 day'",
                self.name(),
                args.args.len()
            );
        };
        let lists = self.build_lists(
            element,
            &start.to_array(rows)?,
            &stop.to_array(rows)?,
            &step.to_array(rows)?,
        )?;
        to_columnar(lists, is_one)
    }
}

impl SeriesList {
    fn build_lists(
        &self,
        element: &Arc<Field>,
        start: &ArrayRef,
        stop: &ArrayRef,
        step: &ArrayRef,
    ) -> Result<ArrayRef> {
        let (unit, zone) = find_unit_and_zone(element.data_type())?;
        let starts = count_units_since_epoch(start, unit)?;
        let stops = count_units_since_epoch(stop, unit)?;
        let (starts, stops) =
            (starts.as_primitive::<Int64Type>(), stops.as_primitive::<Int64Type>());
        let steps = cast(step, &DataType::Interval(IntervalUnit::MonthDayNano))?;
        let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
        let mut values: Vec<i64> = Vec::new();
        let mut offsets: Vec<i32> = vec![0];
        let mut valid = NullBufferBuilder::new(starts.len());
        for row in 0..starts.len() {
            let present = starts.is_valid(row) && stops.is_valid(row) && steps.is_valid(row);
            valid.append(present);
            if present {
                let series = SeriesTimestamps::try_new(
                    self.name(),
                    SeriesBounds {
                        start: starts.value(row),
                        stop: stops.value(row),
                        closed: self.closed,
                    },
                    steps.value(row),
                    unit,
                    zone,
                )?;
                let most = series.min_elements().saturating_add(values.len() as u128);
                if most > i32::MAX as u128 {
                    return fail_at_limit(self.name());
                }
                for value in series {
                    values.push(value?);
                    if values.len() > i32::MAX as usize {
                        return fail_at_limit(self.name());
                    }
                }
            }
            let Ok(end) = i32::try_from(values.len()) else { return fail_at_limit(self.name()) };
            offsets.push(end);
        }
        let values = cast(&Int64Array::from(values), element.data_type())?;
        let lists = GenericListArray::<i32>::try_new(
            Arc::clone(element),
            OffsetBuffer::new(offsets.into()),
            values,
            valid.finish(),
        )?;
        Ok(Arc::new(lists))
    }
}

fn fail_at_limit<T>(name: &str) -> Result<T> {
    exec_err!(
        "{name}: the lists of one batch of rows have more than 2^31 - 1 timestamps; use FROM {name}(..), which returns one row per timestamp"
    )
}

fn find_element_type(start: &DataType, stop: &DataType) -> DataType {
    let is_nanos = |t: &DataType| matches!(t, DataType::Timestamp(TimeUnit::Nanosecond, _));
    let unit = match is_nanos(start) || is_nanos(stop) {
        true => TimeUnit::Nanosecond,
        false => TimeUnit::Microsecond,
    };
    match start {
        DataType::Timestamp(_, zone) => DataType::Timestamp(unit, zone.clone()),
        _ => DataType::Timestamp(unit, None),
    }
}

fn find_unit_and_zone(element: &DataType) -> Result<(TimeUnit, Tz)> {
    let DataType::Timestamp(unit, zone) = element else {
        return exec_err!(
            "internal error: a series has elements of type {element} instead of timestamps; please report it"
        );
    };
    Ok((*unit, Tz::from_str(zone.as_deref().unwrap_or("+00:00"))?))
}

fn count_units_since_epoch(times: &ArrayRef, unit: TimeUnit) -> Result<ArrayRef> {
    let zone = match times.data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    let times = cast_strictly(times, &DataType::Timestamp(unit, zone))?;
    Ok(cast(&times, &DataType::Int64)?)
}

#[derive(Clone, Copy, Debug)]
struct SeriesBounds {
    start: i64,
    stop: i64,
    closed: bool,
}

/// Iterator over the timestamps of a series, as numbers of `unit`s since 1970.
#[derive(Clone, Debug)]
struct SeriesTimestamps {
    name: &'static str,
    next: Option<i64>,
    bounds: SeriesBounds,
    step: IntervalMonthDayNano,
    unit: TimeUnit,
    zone: Tz,
    ascending: bool,
}

impl SeriesTimestamps {
    fn try_new(
        name: &str,
        bounds: SeriesBounds,
        step: IntervalMonthDayNano,
        unit: TimeUnit,
        zone: Tz,
    ) -> Result<Self> {
        if unit == TimeUnit::Microsecond && step.nanoseconds % 1000 != 0 {
            return exec_err!(
                "{name}: a step of {} ns is not a whole number of microseconds, the unit of the timestamps; cast the start to TIMESTAMP(9)",
                step.nanoseconds
            );
        }
        let (months, days) = (i128::from(step.months), i128::from(step.days));
        let (least, most) = {
            // A month has 28 to 31 days, so the step is between `least` and `most` nanoseconds
            // long.
            let rest = days * NANOSECONDS_PER_DAY + i128::from(step.nanoseconds);
            let (a, b) = (
                months * 28 * NANOSECONDS_PER_DAY,
                months * MOST_DAYS_PER_MONTH * NANOSECONDS_PER_DAY,
            );
            (a.min(b) + rest, a.max(b) + rest)
        };
        if least <= 0 && most >= 0 {
            return exec_err!(
                "{name}: a step of {} months, {} days and {} ns has no fixed direction; write a step that is not 0 and whose months, days and time have the same sign",
                step.months,
                step.days,
                step.nanoseconds
            );
        }
        let name = if name == "range" { "range" } else { "generate_series" };
        Ok(Self { name, next: Some(bounds.start), bounds, step, unit, zone, ascending: least > 0 })
    }

    fn unit_name(&self) -> &'static str {
        match self.unit {
            TimeUnit::Nanosecond => "nanoseconds",
            _ => "microseconds",
        }
    }

    fn is_past(&self, time: i64) -> bool {
        let SeriesBounds { stop, closed, .. } = self.bounds;
        match (self.ascending, closed) {
            (true, true) => time > stop,
            (true, false) => time >= stop,
            (false, true) => time < stop,
            (false, false) => time <= stop,
        }
    }

    /// Returns a lower bound of the number of elements. It assumes the longest months, 31 days.
    fn min_elements(&self) -> u128 {
        if self.is_past(self.bounds.start) {
            return 0;
        }
        let per: u128 = if self.unit == TimeUnit::Nanosecond { 1 } else { 1000 };
        let span = i128::from(self.bounds.stop) - i128::from(self.bounds.start);
        let days = i128::from(self.step.months) * MOST_DAYS_PER_MONTH + i128::from(self.step.days);
        let step = days * NANOSECONDS_PER_DAY + i128::from(self.step.nanoseconds);
        span.unsigned_abs().saturating_mul(per) / step.unsigned_abs().max(1)
    }

    /// Whether the time one step after `time`, computed in UTC, is within the bounds. If so, a step
    /// that fails in the zone of the series fails because the local time after the step does not
    /// exist or occurs twice.
    fn has_next_on_clock(&self, time: i64) -> bool {
        let utc = Tz::from_str("+00:00").ok();
        let next = |zone| match self.unit {
            TimeUnit::Nanosecond => {
                TimestampNanosecondType::add_month_day_nano(time, self.step, zone)
            }
            _ => TimestampMicrosecondType::add_month_day_nano(time, self.step, zone),
        };
        utc.and_then(next).is_some_and(|next| !self.is_past(next))
    }

    fn find_step_after(&self, time: i64) -> Option<i64> {
        match self.unit {
            TimeUnit::Nanosecond => {
                TimestampNanosecondType::add_month_day_nano(time, self.step, self.zone)
            }
            _ => TimestampMicrosecondType::add_month_day_nano(time, self.step, self.zone),
        }
    }
}

impl Iterator for SeriesTimestamps {
    type Item = Result<i64>;

    fn next(&mut self) -> Option<Result<i64>> {
        let time = self.next.take()?;
        if self.is_past(time) {
            return None;
        }
        self.next = match self.find_step_after(time) {
            Some(next) if (next > time) == self.ascending && next != time => Some(next),
            Some(_) => {
                return Some(exec_err!(
                    "{}: the step does not change the time {time} ({} since 1970); write a longer step",
                    self.name,
                    self.unit_name()
                ));
            }
            None if self.has_next_on_clock(time) => {
                return Some(exec_err!(
                    "{}: the local time one step after {time} ({} since 1970) does not exist or occurs twice in the time zone, because clocks change; use a step of hours, or times without a zone",
                    self.name,
                    self.unit_name()
                ));
            }
            // The next time does not fit 64-bit nanoseconds, but the stop does, so the next time is
            // past the stop.
            None if self.unit == TimeUnit::Nanosecond => None,
            None => {
                let stop = self.bounds.stop;
                let zero = IntervalMonthDayNano::new(0, 0, 0);
                let known = |t| TimestampMicrosecondType::add_month_day_nano(t, zero, self.zone);
                match known(time).is_some() && known(stop).is_some() {
                    true => None,
                    false => {
                        return Some(Err(exec_datafusion_err!(
                            "{}: the series from {time} to {stop} microseconds since 1970 leaves the range of the calendar; use times closer to 1970",
                            self.name
                        )));
                    }
                }
            }
        };
        Some(Ok(time))
    }
}

#[derive(Debug)]
pub(in crate::sql) struct SeriesTable {
    inner: Arc<dyn TableFunctionImpl>,
    name: &'static str,
    closed: bool,
}

impl SeriesTable {
    pub(super) fn new(inner: Arc<dyn TableFunctionImpl>, name: &'static str) -> Self {
        Self { inner, name, closed: name == "generate_series" }
    }
}

impl TableFunctionImpl for SeriesTable {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let is_time = |t: &DataType| matches!(t, DataType::Timestamp(..) | DataType::Date32);
        let [start, stop, step] = args.exprs() else { return self.inner.call_with_args(args) };
        let Expr::Literal(start, _) = start else { return self.inner.call_with_args(args) };
        if !is_time(&start.data_type()) {
            return self.inner.call_with_args(args);
        }
        let (Expr::Literal(stop, _), Expr::Literal(step, _)) = (stop, step) else {
            let other = if matches!(stop, Expr::Literal(..)) { step } else { stop };
            return plan_err!(
                "the arguments of {} in FROM must be literals, but {other} is not one; use {0}(..) in SELECT for computed arguments",
                self.name
            );
        };
        if !is_time(&stop.data_type()) && !stop.data_type().is_null() {
            return plan_err!(
                "{}: the stop has the type {}; give a timestamp, a date or NULL",
                self.name,
                stop.data_type()
            );
        }
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let step = match step.data_type() {
            DataType::Interval(_) | DataType::Null => step.cast_to(&interval)?,
            other => {
                return plan_err!(
                    "{}: the step has the type {other}; give an interval or NULL",
                    self.name
                );
            }
        };
        let element = find_element_type(&start.data_type(), &stop.data_type());
        let schema = Arc::new(Schema::new(vec![Field::new("value", element.clone(), false)]));
        let (unit, zone) = find_unit_and_zone(&element)?;
        let count = |time: &ScalarValue| -> Result<Option<i64>> {
            if time.is_null() {
                return Ok(None);
            }
            let counts = count_units_since_epoch(&time.to_array()?, unit)?;
            Ok(counts.as_primitive::<Int64Type>().iter().next().flatten())
        };
        let series = match (count(start)?, count(stop)?, step) {
            (Some(start), Some(stop), ScalarValue::IntervalMonthDayNano(Some(step))) => {
                let bounds = SeriesBounds { start, stop, closed: self.closed };
                Some(SeriesTimestamps::try_new(self.name, bounds, step, unit, zone)?)
            }
            _ => None,
        };
        let rows = SeriesRows { schema: Arc::clone(&schema), series };
        Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(rows)])?))
    }
}

#[derive(Debug)]
struct SeriesRows {
    schema: SchemaRef,
    /// The timestamps of the table, or `None` if the table has no rows because an argument is NULL.
    series: Option<SeriesTimestamps>,
}

impl PartitionStream for SeriesRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let size = context.session_config().batch_size();
        let schema = Arc::clone(&self.schema);
        let mut series = self.series.clone().into_iter().flatten();
        let batches = std::iter::from_fn(move || {
            let times: Result<Vec<i64>> = series.by_ref().take(size).collect();
            match times {
                Ok(times) if times.is_empty() => None,
                times => Some(times.and_then(|times| build_times_batch(times, &schema))),
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream::iter(batches)))
    }
}

fn build_times_batch(times: Vec<i64>, schema: &SchemaRef) -> Result<RecordBatch> {
    let times: ArrayRef = Arc::new(Int64Array::from(times));
    let times = cast(&times, schema.field(0).data_type())?;
    Ok(RecordBatch::try_new(Arc::clone(schema), vec![times])?)
}
