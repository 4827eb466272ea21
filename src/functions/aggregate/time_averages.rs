//! `avg`, `median` and `percentile_cont` of dates, timestamps and durations, which DataFusion
//! lacks. The results have the unit of the values; the results for dates are timestamps in
//! microseconds, as in DuckDB.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Int64Array, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Int64Type, TimeUnit, UInt64Type,
};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};

use super::GroupStates;
use super::adapter::{GroupedAccumulator, SingleAccumulator};
use super::group_states::{list_values, remove_values};
use super::quantile::RequestedQuantile;
use crate::error::{Error, Result};
use crate::functions::{coerce_arguments, delegate};
use serrate_core::internal::round_mean;

/// Type of the partial sums of times.
const SUM: DataType = DataType::Decimal128(38, 0);

/// Names of the aggregates that [`extend_to_times`] extends.
pub(crate) const OVER_TIMES: [&str; 3] = ["avg", "median", "percentile_cont"];

/// Returns an aggregate that also accepts dates, timestamps and durations, and treats all other
/// values as `stock` does.
///
/// This workaround is obsolete once the test `stock_averages_of_times_are_still_refused` fails.
pub(crate) fn extend_to_times(stock: Arc<AggregateUDF>) -> AggregateUDF {
    let signature = Signature::user_defined(stock.signature().volatility);
    AggregateUDF::new_from_impl(OverTimes { stock, signature })
}

#[derive(Debug, PartialEq, Eq)]
struct OverTimes {
    stock: Arc<AggregateUDF>,
    signature: Signature,
}

fn is_over_times(fields: &[FieldRef]) -> bool {
    fields.first().is_some_and(|field| find_time_type(field.data_type()).is_some())
}

/// Returns the type in which values of type `t` are aggregated, such as timestamps in microseconds
/// for `Date32`; `None` if `t` is not a type of times.
fn find_time_type(t: &DataType) -> Option<DataType> {
    match t {
        DataType::Timestamp(..) | DataType::Duration(_) => Some(t.clone()),
        DataType::Date32 => Some(DataType::Timestamp(TimeUnit::Microsecond, None)),
        DataType::Date64 => Some(DataType::Timestamp(TimeUnit::Millisecond, None)),
        _ => None,
    }
}

impl OverTimes {
    fn begin_fold(&self, args: &AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupStates>> {
        let to = args.return_field.data_type().clone();
        let task = match self.stock.name() {
            "avg" if !args.is_distinct => {
                return Ok(Box::new(TimeMeans { to, groups: Vec::new() }));
            }
            "avg" => TimeAggregate::Mean,
            "median" => TimeAggregate::Quantile(RequestedQuantile::MEDIAN),
            name => match RequestedQuantile::read_call(args)? {
                Some(asked) => TimeAggregate::Quantile(asked),
                None => {
                    return plan_err!(
                        "{name}: the fraction must be a literal number from 0 to 1, such as 0.5; it is {}",
                        args.exprs.get(1).map_or_else(String::new, ToString::to_string)
                    );
                }
            },
        };
        Ok(Box::new(TimeValues { task, is_distinct: args.is_distinct, to, groups: Vec::new() }))
    }
}

impl Hash for OverTimes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.stock.hash(state);
    }
}

impl AggregateUDFImpl for OverTimes {
    delegate!(stock: name, aliases, aggregate_names, is_nullable, default_value, documentation);

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> DfResult<Vec<DataType>> {
        let quantile = self.stock.name() == "percentile_cont";
        match types {
            [of] if !quantile && let Some(time) = find_time_type(of) => Ok(vec![time]),
            [of, _] if quantile && let Some(time) = find_time_type(of) => {
                Ok(vec![time, DataType::Float64])
            }
            types => coerce_arguments(self.stock.as_ref(), types),
        }
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        match types.first().and_then(find_time_type) {
            Some(time) => Ok(time),
            None => self.stock.return_type(types),
        }
    }

    fn return_field(&self, fields: &[FieldRef]) -> DfResult<FieldRef> {
        match fields.first().and_then(|field| find_time_type(field.data_type())) {
            Some(time) => Ok(Arc::new(Field::new(self.name(), time, true))),
            None => self.stock.return_field(fields),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        match is_over_times(args.expr_fields) {
            true => Ok(Box::new(SingleAccumulator::new(self.begin_fold(&args)?))),
            false => self.stock.accumulator(args),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn Accumulator>> {
        match is_over_times(args.expr_fields) {
            true => Ok(Box::new(SingleAccumulator::new(self.begin_fold(&args)?))),
            false => self.stock.create_sliding_accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        is_over_times(args.expr_fields) || self.stock.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn GroupsAccumulator>> {
        match is_over_times(args.expr_fields) {
            true => Ok(Box::new(GroupedAccumulator::new(self.begin_fold(&args)?))),
            false => self.stock.create_groups_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        if !is_over_times(args.input_fields) {
            return self.stock.state_fields(args);
        }
        let types = match self.stock.name() {
            "avg" if !args.is_distinct => vec![SUM, DataType::UInt64],
            _ => vec![DataType::new_list(DataType::Int64, true)],
        };
        let state = |(i, t)| Arc::new(Field::new(format!("{}[{i}]", args.name), t, true));
        Ok(types.into_iter().enumerate().map(state).collect())
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.stock.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        // For a reversible aggregate, DataFusion sorts the rows by the WITHIN GROUP of the call,
        // and refuses a second call with other sort keys. `percentile_cont` sorts the values
        // itself.
        match self.supports_within_group_clause() {
            true => ReversedUDAF::NotSupported,
            false => ReversedUDAF::Identical,
        }
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.stock.simplify()
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.stock.value_from_stats(args)
    }

    fn set_monotonicity(&self, _data_type: &DataType) -> SetMonotonicity {
        SetMonotonicity::NotMonotonic
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.stock.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.stock.supports_within_group_clause()
    }
}

/// Returns the times in the first of the argument columns `values` as integers in their unit.
fn read_numbers(values: &[ArrayRef]) -> Result<Int64Array> {
    match values.first() {
        Some(times) => Ok(cast(times, &DataType::Int64)?.as_primitive::<Int64Type>().clone()),
        None => {
            Err(Error::invalid("internal error: an aggregate has no argument; please report it"))
        }
    }
}

fn to_times(numbers: Int64Array, to: &DataType) -> Result<ArrayRef> {
    Ok(cast(&numbers, to)?)
}

fn refuse_state(states: &[ArrayRef]) -> Error {
    let found: Vec<_> = states.iter().map(|state| state.data_type()).collect();
    Error::invalid(format!(
        "internal error: the partial state of an aggregate of times has the wrong types {found:?}; please report it"
    ))
}

#[derive(Debug)]
struct TimeMeans {
    to: DataType,
    /// Sum and number of the values of each group.
    groups: Vec<(i128, u64)>,
}

impl TimeMeans {
    fn extend_to(&mut self, groups: &[usize]) {
        let groups = groups.iter().max().map_or(0, |last| last + 1);
        if groups > self.groups.len() {
            self.groups.resize(groups, (0, 0));
        }
    }
}

impl GroupStates for TimeMeans {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self { to: self.to.clone(), groups: Vec::new() }))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.extend_to(groups);
        for (value, group) in read_numbers(values)?.iter().zip(groups) {
            if let Some(value) = value {
                let (sum, count) = &mut self.groups[*group];
                *sum += i128::from(value);
                *count += 1;
            }
        }
        Ok(())
    }

    fn retracts(&self) -> bool {
        true
    }

    fn retract_one(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.extend_to(&[0]);
        for value in read_numbers(values)?.iter().flatten() {
            let (sum, count) = &mut self.groups[0];
            *sum -= i128::from(value);
            *count = count.saturating_sub(1);
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let [sums, counts] = states else { return Err(refuse_state(states)) };
        let sums = sums.as_primitive_opt::<Decimal128Type>();
        let sums = sums.ok_or_else(|| refuse_state(states))?;
        let counts = counts.as_primitive_opt::<UInt64Type>();
        let counts = counts.ok_or_else(|| refuse_state(states))?;
        self.extend_to(groups);
        for ((sum, count), group) in sums.iter().zip(counts).zip(groups) {
            if let (Some(sum), Some(count)) = (sum, count) {
                let (total, counted) = &mut self.groups[*group];
                *total += sum;
                *counted += count;
            }
        }
        Ok(())
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        let state = (0..groups).map(|group| self.groups.get(group).copied().unwrap_or_default());
        let (sums, counts): (Vec<i128>, Vec<u64>) = state.unzip();
        let sums = Decimal128Array::from(sums).with_data_type(SUM);
        Ok(vec![Arc::new(sums), Arc::new(UInt64Array::from(counts))])
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        let means = (0..groups).map(|group| {
            let (sum, count) = self.groups.get(group)?;
            round_mean(*sum, *count)
        });
        to_times(means.collect(), &self.to)
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.groups.drain(..groups.min(self.groups.len()));
        Ok(())
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<(i128, u64)>()
    }
}

#[derive(Clone, Copy, Debug)]
enum TimeAggregate {
    Mean,
    Quantile(RequestedQuantile),
}

/// Collects all values of each group, for quantiles of times and for means of distinct times.
#[derive(Debug)]
struct TimeValues {
    task: TimeAggregate,
    is_distinct: bool,
    to: DataType,
    groups: Vec<Vec<i64>>,
}

impl TimeValues {
    fn extend_to(&mut self, groups: &[usize]) {
        let groups = groups.iter().max().map_or(0, |last| last + 1);
        if groups > self.groups.len() {
            self.groups.resize_with(groups, Vec::new);
        }
    }

    fn aggregate_group(&self, mut values: Vec<i64>) -> Option<i64> {
        if self.is_distinct {
            values.sort_unstable();
            values.dedup();
        }
        match self.task {
            TimeAggregate::Mean => {
                round_mean(values.iter().map(|v| i128::from(*v)).sum(), values.len() as u64)
            }
            TimeAggregate::Quantile(asked) => asked.select_time(&mut values),
        }
    }
}

impl GroupStates for TimeValues {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        let (task, is_distinct, to) = (self.task, self.is_distinct, self.to.clone());
        Ok(Box::new(Self { task, is_distinct, to, groups: Vec::new() }))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.extend_to(groups);
        for (value, group) in read_numbers(values)?.iter().zip(groups) {
            self.groups[*group].extend(value);
        }
        Ok(())
    }

    fn retracts(&self) -> bool {
        true
    }

    fn retract_one(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.extend_to(&[0]);
        remove_values(&mut self.groups[0], read_numbers(values)?.iter().flatten(), |value| *value);
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let lists = states.first().and_then(|lists| lists.as_list_opt::<i32>());
        self.extend_to(groups);
        let lists = lists.ok_or_else(|| refuse_state(states))?;
        for (values, group) in lists.iter().zip(groups) {
            if let Some(values) = values {
                self.groups[*group].extend(read_numbers(&[values])?.iter().flatten());
            }
        }
        Ok(())
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        let lists = list_values::<Int64Type>(
            &self.groups,
            groups,
            "a quantile of times collects more than the maximum of 2^31 - 1 values in a partition; use approx_percentile_cont of epoch(t)",
        )?;
        Ok(vec![lists])
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        let found = (0..groups).map(|group| self.aggregate_group(self.groups.get(group)?.clone()));
        to_times(found.collect(), &self.to)
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.groups.drain(..groups.min(self.groups.len()));
        Ok(())
    }

    fn size(&self) -> usize {
        let held = self.groups.iter().map(|group| group.capacity() * size_of::<i64>());
        held.sum::<usize>() + self.groups.capacity() * size_of::<Vec<i64>>()
    }
}
