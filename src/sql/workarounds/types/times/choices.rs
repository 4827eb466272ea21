//! `greatest`, `least` and `nullif` of intervals, and the distinct intervals of a list. These
//! functions compare the lengths of intervals, and return one of the intervals unchanged: 40 days
//! do not become a month and 10 days, because a date plus 40 days is not always the date plus a
//! month and 10 days.

use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::clock::INTERVAL;
use crate::functions::{
    call_on_arrays, compare_intervals, count_call_rows, declare, measure_interval, take_first,
    to_columnar,
};

/// A function that returns one of its arguments, which are intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum IntervalChoice {
    Greatest,
    Least,
    /// Returns the first argument, or NULL if it equals the second.
    UnlessEqual,
}

impl IntervalChoice {
    /// Returns the choice that replaces DataFusion's function `name`, or `None` for a function that
    /// is not replaced.
    pub(super) fn from_function(name: &str) -> Option<Self> {
        match name {
            "greatest" => Some(Self::Greatest),
            "least" => Some(Self::Least),
            "nullif" => Some(Self::UnlessEqual),
            _ => None,
        }
    }

    pub(super) fn make_call(self, values: Vec<Expr>) -> Expr {
        ScalarUDF::new_from_impl(self).call(values)
    }

    fn choose_value(
        self,
        mut values: impl Iterator<Item = Option<IntervalMonthDayNano>>,
    ) -> Option<IntervalMonthDayNano> {
        match self {
            Self::Greatest => values.flatten().max_by(|a, b| compare_intervals(*a, *b)),
            Self::Least => values.flatten().min_by(|a, b| compare_intervals(*a, *b)),
            Self::UnlessEqual => {
                let value = values.next().flatten()?;
                let length = measure_interval(value);
                let other = values.next().flatten().map(measure_interval);
                (other != Some(length)).then_some(value)
            }
        }
    }
}

impl ScalarUDFImpl for IntervalChoice {
    declare!(Signature::variadic_any(Volatility::Immutable));

    fn name(&self) -> &str {
        match self {
            Self::Greatest => "interval_greatest",
            Self::Least => "interval_least",
            Self::UnlessEqual => "interval_nullif",
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (is_one, rows) = count_call_rows(&args);
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let columns = arrays.iter().map(|a| a.as_primitive_opt::<IntervalMonthDayNanoType>());
        let Some(columns) = columns.collect::<Option<Vec<_>>>() else {
            return exec_err!(
                "internal error: {} has an argument that is not an interval; please report it",
                self.name()
            );
        };
        let chosen = (0..rows).map(|row| {
            let values = columns.iter().map(|c| c.is_valid(row).then(|| c.value(row)));
            self.choose_value(values)
        });
        let chosen: IntervalMonthDayNanoArray = chosen.collect();
        to_columnar(Arc::new(chosen), is_one)
    }
}

/// Returns a call that keeps, of several equal intervals in a list (such as 1 day and 24 hours),
/// the least in the order of [`compare_intervals`]. `lists` is a column of lists of intervals.
pub(super) fn keep_distinct(lists: Expr) -> Expr {
    ScalarUDF::new_from_impl(DistinctIntervals).call(vec![lists])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DistinctIntervals;

impl ScalarUDFImpl for DistinctIntervals {
    declare!("distinct_intervals", Signature::any(1, Volatility::Immutable));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types).cloned()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[lists]| remove_equal_intervals(&lists))
    }
}

fn remove_equal_intervals(lists: &ArrayRef) -> Result<ArrayRef> {
    let parts = lists.as_list_opt::<i32>().zip(match lists.data_type() {
        DataType::List(field) => Some(field),
        _ => None,
    });
    let Some((lists, field)) = parts else {
        return exec_err!(
            "internal error: array_agg(DISTINCT ..) of intervals is not a list; please report it"
        );
    };
    let mut lengths = Vec::with_capacity(lists.len());
    let mut kept: Vec<Option<IntervalMonthDayNano>> = Vec::new();
    for list in lists.iter() {
        let first = kept.len();
        let list = list.unwrap_or_else(|| lists.values().slice(0, 0));
        let Some(values) = list.as_primitive_opt::<IntervalMonthDayNanoType>() else {
            return exec_err!(
                "internal error: array_agg(DISTINCT ..) has other values than intervals; please report it"
            );
        };
        let mut places: HashMap<Option<i128>, usize> = HashMap::new();
        for value in values {
            match places.entry(value.map(measure_interval)) {
                Entry::Vacant(place) => {
                    place.insert(kept.len());
                    kept.push(value);
                }
                Entry::Occupied(place) => {
                    if let (Some(best), Some(value)) = (&mut kept[*place.get()], value)
                        && compare_intervals(value, *best).is_lt()
                    {
                        *best = value;
                    }
                }
            }
        }
        lengths.push(kept.len() - first);
    }
    let values: IntervalMonthDayNanoArray = kept.into_iter().collect();
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(field),
        OffsetBuffer::from_lengths(lengths),
        Arc::new(values),
        lists.nulls().cloned(),
    )?))
}
