//! `percentile_cont` (`quantile_cont`), interpolated as in `NumPy`. NaN is the greatest value.

use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Float64Array, PrimitiveArray, RecordBatch,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, ColumnarValue, GroupsAccumulator};

use super::GroupStates;
use super::adapter::{GroupedAccumulator, SingleAccumulator};
use super::group_states::{list_values, remove_values};
use crate::error::{Error, Result};
use serrate_core::internal::{select_ordered_quantile, select_rounded_quantile};

/// Returns the accumulator of `percentile_cont`. If the quantile is a constant from 0 to 1,
/// DISTINCT calls use [`DistinctQuantile`] and other calls over floats use [`GroupQuantiles`]. All
/// other calls use DataFusion's accumulator.
pub(super) fn make_accumulator(
    stock: &AggregateUDF,
    args: AccumulatorArgs<'_>,
) -> DfResult<Box<dyn Accumulator>> {
    let (asked, distinct) = (RequestedQuantile::read_call(&args)?, args.is_distinct);
    let values = args.expr_fields.first().map(|f| f.data_type().clone());
    // DataFusion's accumulator checks the arguments, so it is created even if replaced below.
    let stock = stock.accumulator(args)?;
    Ok(match (asked, values) {
        (Some(asked), Some(_)) if distinct => Box::new(DistinctQuantile { stock, asked }),
        (Some(asked), Some(values)) => match asked.make_fold(&values) {
            Some(fold) => Box::new(SingleAccumulator::new(fold)),
            None => stock,
        },
        _ => stock,
    })
}

pub(super) fn make_groups_accumulator(
    stock: &AggregateUDF,
    args: AccumulatorArgs<'_>,
) -> DfResult<Box<dyn GroupsAccumulator>> {
    let requested = RequestedQuantile::read_call(&args)?;
    let values = args.expr_fields.first().map(|f| f.data_type().clone());
    let stock = stock.create_groups_accumulator(args)?;
    let fold = requested.zip(values).and_then(|(requested, values)| requested.make_fold(&values));
    Ok(fold.map_or(stock, |fold| Box::new(GroupedAccumulator::new(fold))))
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RequestedQuantile {
    q: f64,
    descending: bool,
}

impl RequestedQuantile {
    pub(super) const MEDIAN: Self = Self { q: 0.5, descending: false };

    /// Returns the quantile that a call requests: the second argument, and the direction of its
    /// ORDER BY. Returns `None` if the second argument is not a constant number from 0 to 1.
    pub(super) fn read_call(args: &AccumulatorArgs<'_>) -> DfResult<Option<Self>> {
        let Some(q) = args.exprs.get(1) else { return Ok(None) };
        let none = RecordBatch::new_empty(Arc::new(args.schema.clone()));
        let ColumnarValue::Scalar(q) = q.evaluate(&none)? else { return Ok(None) };
        let ScalarValue::Float64(Some(q)) = q.cast_to(&DataType::Float64)? else {
            return Ok(None);
        };
        let descending = args.order_bys.first().is_some_and(|by| by.options.descending);
        Ok((0.0..=1.0).contains(&q).then_some(Self { q, descending }))
    }

    fn make_fold(self, values: &DataType) -> Option<Box<dyn GroupStates>> {
        Some(match values {
            DataType::Float16 => Box::new(GroupQuantiles::<Float16Type>::new(self)),
            DataType::Float32 => Box::new(GroupQuantiles::<Float32Type>::new(self)),
            DataType::Float64 => Box::new(GroupQuantiles::<Float64Type>::new(self)),
            _ => return None,
        })
    }

    /// Returns the requested quantile of times, rounded to their unit. `values` are the times as
    /// integers in this unit. Returns `None` if there are no values.
    pub(super) fn select_time(self, values: &mut [i64]) -> Option<i64> {
        select_rounded_quantile(values, self.q, self.descending)
    }

    fn select_quantile(self, values: &mut [f64]) -> Option<f64> {
        select_ordered_quantile(values, self.q, self.descending)
    }
}

struct GroupQuantiles<T: ArrowPrimitiveType> {
    asked: RequestedQuantile,
    groups: Vec<Vec<T::Native>>,
}

impl<T: ArrowPrimitiveType> GroupQuantiles<T> {
    fn new(asked: RequestedQuantile) -> Self {
        Self { asked, groups: Vec::new() }
    }

    fn group_values(&mut self, group: usize) -> &mut Vec<T::Native> {
        if group >= self.groups.len() {
            self.groups.resize_with(group + 1, Vec::new);
        }
        &mut self.groups[group]
    }
}

impl<T: ArrowPrimitiveType> fmt::Debug for GroupQuantiles<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} groups", self.asked, self.groups.len())
    }
}

fn downcast_values<T: ArrowPrimitiveType>(values: &[ArrayRef]) -> Result<&PrimitiveArray<T>> {
    values.first().and_then(|values| values.as_primitive_opt::<T>()).ok_or_else(|| {
        let found: Vec<_> = values.iter().map(|values| values.data_type()).collect();
        Error::invalid(format!(
            "internal error: percentile_cont expects values of type {}, but found {found:?}; please report it",
            T::DATA_TYPE
        ))
    })
}

impl<T: ArrowPrimitiveType<Native: Into<f64>>> GroupStates for GroupQuantiles<T> {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self::new(self.asked)))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let values = downcast_values::<T>(values)?;
        if let Some(last) = groups.iter().max() {
            self.group_values(*last);
        }
        for (value, group) in values.iter().zip(groups) {
            self.groups[*group].extend(value);
        }
        Ok(())
    }

    fn update_one(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = downcast_values::<T>(values)?;
        let all = self.group_values(0);
        match values.null_count() {
            0 => all.extend_from_slice(values.values()),
            _ => all.extend(values.iter().flatten()),
        }
        Ok(())
    }

    fn retracts(&self) -> bool {
        true
    }

    fn retract_one(&mut self, values: &[ArrayRef]) -> Result<()> {
        let removed = downcast_values::<T>(values)?.iter().flatten();
        remove_values(self.group_values(0), removed, |value| (*value).into().to_bits());
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let lists = states.first().and_then(|lists| lists.as_list_opt::<i32>());
        let lists = lists.ok_or_else(|| {
            let found: Vec<_> = states.iter().map(|state| state.data_type()).collect();
            Error::invalid(format!(
                "internal error: a partial state of percentile_cont must be a list, but found {found:?}; please report it"
            ))
        })?;
        for (values, group) in lists.iter().zip(groups) {
            if let Some(values) = values {
                let values = downcast_values::<T>(std::slice::from_ref(&values))?;
                self.group_values(*group).extend(values.iter().flatten());
            }
        }
        Ok(())
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        let lists = list_values::<T>(
            &self.groups,
            groups,
            "percentile_cont collects more than the maximum of 2^31 - 1 values in a partition; use approx_percentile_cont",
        )?;
        Ok(vec![lists])
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        let mut scratch: Vec<f64> = Vec::new();
        let found: Float64Array = (0..groups)
            .map(|group| {
                scratch.clear();
                let values = self.groups.get(group)?;
                scratch.extend(values.iter().map(|value| (*value).into()));
                self.asked.select_quantile(&mut scratch)
            })
            .collect();
        Ok(cast(&found, &T::DATA_TYPE)?)
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.groups.drain(..groups.min(self.groups.len()));
        Ok(())
    }

    fn size(&self) -> usize {
        let held = self.groups.iter().map(|group| group.capacity() * size_of::<T::Native>());
        held.sum::<usize>() + self.groups.capacity() * size_of::<Vec<T::Native>>()
    }
}

/// Collects distinct values with DataFusion's accumulator, and returns their quantile `asked`.
#[derive(Debug)]
struct DistinctQuantile {
    stock: Box<dyn Accumulator>,
    asked: RequestedQuantile,
}

impl Accumulator for DistinctQuantile {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.stock.update_batch(values)
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        // Computes the quantile of the distinct values in DataFusion's state. DataFusion's own
        // result only gives the type.
        let stock = self.stock.evaluate()?;
        let state = self.stock.state()?;
        let Some(ScalarValue::List(lists)) = state.first() else { return Ok(stock) };
        let values = cast(lists.values(), &DataType::Float64)?;
        let mut values = values.as_primitive::<Float64Type>().values().to_vec();
        ScalarValue::Float64(self.asked.select_quantile(&mut values)).cast_to(&stock.data_type())
    }

    fn size(&self) -> usize {
        self.stock.size()
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        self.stock.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        self.stock.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.stock.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.stock.supports_retract_batch()
    }
}
