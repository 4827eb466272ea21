//! `min` and `max` of floats, intervals, lists and structs. NaN is the greatest, and -0.0 is less
//! than 0.0. Intervals have the order of [`compare_intervals`].
//!
//! DataFusion's grouped `min` and `max` replace a NaN with any later number, and a number with any
//! later NaN, so their results depend on batches. Their `max` of values that are all -Infinity is
//! the smallest finite number. If their input has structs that they cannot compare, they return the
//! first struct. They compare the months, days and hours of intervals one after the other. Remove
//! this module once `stock_extremes_are_still_wrong` in the SQL tests fails.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    StatisticsArgs,
};
use half::f16;

use super::GroupStates;
use super::adapter::{GroupedAccumulator, SingleAccumulator};
use super::nested_extremes::NestedExtremes;
use super::sliding_extremes::SlidingExtreme;
use crate::error::{Error, Result};
use crate::functions::{compare_intervals, delegate};

pub(crate) fn build_udafs() -> [AggregateUDF; 2] {
    [("min", min_udaf(), Ordering::Less), ("max", max_udaf(), Ordering::Greater)].map(
        |(name, stock, wanted)| AggregateUDF::new_from_impl(FloatExtreme { name, stock, wanted }),
    )
}

/// Returns the aggregate that replaces the function `min` or `max` in calls on intervals. Returns
/// `None` for any other function.
///
/// The replacement has another name, because DataFusion filters scans by the least or greatest
/// value so far of any aggregate named `min` or `max`, and such a filter would compare intervals
/// field by field.
pub(crate) fn find_interval_extreme(function: &str) -> Option<AggregateUDF> {
    let (name, stock, wanted) = match function {
        "min" => ("interval_min", min_udaf(), Ordering::Less),
        "max" => ("interval_max", max_udaf(), Ordering::Greater),
        _ => return None,
    };
    Some(AggregateUDF::new_from_impl(FloatExtreme { name, stock, wanted }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatExtreme {
    name: &'static str,
    stock: Arc<AggregateUDF>,
    /// `Less` for `min`, `Greater` for `max`: a value replaces the best value so far if comparing
    /// it with that value gives `wanted`.
    wanted: Ordering,
}

impl FloatExtreme {
    fn begin_fold(&self, args: &AccumulatorArgs<'_>) -> Option<Box<dyn GroupStates>> {
        new_fold(args.return_field.data_type(), self.wanted)
    }
}

impl AggregateUDFImpl for FloatExtreme {
    delegate!(stock: aliases, signature, coerce_types, return_type, documentation);

    fn name(&self) -> &str {
        self.name
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        match self.begin_fold(&args) {
            Some(fold) => Ok(Box::new(SingleAccumulator::new(fold))),
            None => self.stock.accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        // For lists, DataFusion would create one accumulator per group, each with its own buffers.
        // `begin_fold` returns one state for all groups.
        self.begin_fold(&args).is_some() || self.stock.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn GroupsAccumulator>> {
        match self.begin_fold(&args) {
            Some(fold) => Ok(Box::new(GroupedAccumulator::new(fold))),
            None => self.stock.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn Accumulator>> {
        // Replaces DataFusion's sliding aggregate, which cannot order structs or lists of lists,
        // and for which a NaN with a negative sign is the smallest float.
        let data_type = args.return_field.data_type();
        if data_type.is_nested() || data_type.is_floating() || is_interval(data_type) {
            return Ok(Box::new(SlidingExtreme::new(data_type, self.wanted)));
        }
        self.stock.create_sliding_accumulator(args)
    }

    fn is_descending(&self) -> Option<bool> {
        self.stock.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    /// Ignores statistics from files for floats, because they omit NaN, and for intervals, because
    /// the writer of a file may have compared intervals in another order.
    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        match args.return_type.is_floating() || is_interval(args.return_type) {
            true => None,
            false => self.stock.value_from_stats(args),
        }
    }

    // DataFusion assumes that the results of a monotonic aggregate over growing frames are sorted
    // with NULL last. But a frame without values has the result NULL, so NULL comes first. No
    // aggregate is therefore declared as monotonic
    // (`stock_extremes_over_frames_still_count_as_sorted` in `tests/sql/claimed_orders.rs`).
    fn set_monotonicity(&self, _data_type: &DataType) -> SetMonotonicity {
        SetMonotonicity::NotMonotonic
    }
}

fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(IntervalUnit::MonthDayNano))
}

fn new_fold(data_type: &DataType, wanted: Ordering) -> Option<Box<dyn GroupStates>> {
    fn new_typed_fold<T: ArrowPrimitiveType<Native: InOrder>>(
        wanted: Ordering,
    ) -> Option<Box<dyn GroupStates>> {
        Some(Box::new(GroupExtremes::<T> { wanted, values: Vec::new() }))
    }
    match data_type {
        DataType::Float16 => new_typed_fold::<Float16Type>(wanted),
        DataType::Float32 => new_typed_fold::<Float32Type>(wanted),
        DataType::Float64 => new_typed_fold::<Float64Type>(wanted),
        t if is_interval(t) => new_typed_fold::<IntervalMonthDayNanoType>(wanted),
        t if t.is_nested() => Some(Box::new(NestedExtremes::new(t, wanted))),
        _ => None,
    }
}

trait InOrder: Copy {
    /// Returns the positive NaN, which is greater than any number, if the value is a NaN.
    /// Otherwise, returns the value.
    fn one_nan(self) -> Self;
    fn order(self, other: Self) -> Ordering;
}

macro_rules! in_order {
    ($($t:ty),*) => {$(
        impl InOrder for $t {
            fn one_nan(self) -> Self {
                if self.is_nan() { <$t>::NAN } else { self }
            }

            fn order(self, other: Self) -> Ordering {
                self.total_cmp(&other)
            }
        }
    )*};
}
in_order!(f16, f32, f64);

impl InOrder for IntervalMonthDayNano {
    fn one_nan(self) -> Self {
        self
    }

    fn order(self, other: Self) -> Ordering {
        compare_intervals(self, other)
    }
}

struct GroupExtremes<T: ArrowPrimitiveType> {
    wanted: Ordering,
    values: Vec<Option<T::Native>>,
}

impl<T: ArrowPrimitiveType> fmt::Debug for GroupExtremes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupExtremes").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl<T: ArrowPrimitiveType<Native: InOrder>> GroupExtremes<T> {
    fn collect_best_values(&self, groups: usize) -> ArrayRef {
        let values = self.values.iter().copied().chain(std::iter::repeat(None)).take(groups);
        Arc::new(values.collect::<PrimitiveArray<T>>())
    }
}

impl<T: ArrowPrimitiveType<Native: InOrder>> GroupStates for GroupExtremes<T> {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self { wanted: self.wanted, values: Vec::new() }))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let values = values.as_primitive_opt::<T>().ok_or_else(|| {
            Error::type_of(
                "internal error, please report it: the values of a minimum or maximum",
                T::DATA_TYPE.to_string(),
                values.data_type(),
            )
        })?;
        let most = groups.iter().max().map_or(0, |g| g + 1);
        if most > self.values.len() {
            self.values.resize(most, None);
        }
        for (value, group) in values.iter().zip(groups) {
            let Some(value) = value.map(InOrder::one_nan) else { continue };
            let best = &mut self.values[*group];
            if best.is_none_or(|best| value.order(best) == self.wanted) {
                *best = Some(value);
            }
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.update(states, groups)
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.collect_best_values(groups)])
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        Ok(self.collect_best_values(groups))
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.values.drain(..groups.min(self.values.len()));
        Ok(())
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<Option<T::Native>>()
    }
}
