//! `min` and `max` of floats, intervals, lists and structs over a sliding frame.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, IntervalMonthDayNanoType};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::kept_rows::copy_rows;
use crate::functions::compare_intervals;
use crate::functions::nested_comparison::compare_nested;

/// The minimum or maximum of a sliding frame. Each value enters and leaves `candidates` once, so a
/// frame of any width takes about two comparisons per row.
pub(super) struct SlidingExtreme {
    data_type: DataType,
    /// `Less` for `min`, `Greater` for `max`: the result of comparing a better value with a worse
    /// one.
    wanted: Ordering,
    /// The values that are or may become the result, the best first. The first is the result now;
    /// each other value is the result once all values before it have left the frame. Each entry has
    /// the index of the row, and the value as an array of length 1.
    candidates: VecDeque<(usize, ArrayRef)>,
    entered: usize,
    left: usize,
}

impl fmt::Debug for SlidingExtreme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlidingExtreme").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl SlidingExtreme {
    pub(super) fn new(data_type: &DataType, wanted: Ordering) -> Self {
        Self {
            data_type: data_type.clone(),
            wanted,
            candidates: VecDeque::new(),
            entered: 0,
            left: 0,
        }
    }
}

/// Compares the values of two arrays of length 1.
fn compare_values(a: &ArrayRef, b: &ArrayRef) -> Result<Ordering> {
    let intervals = (
        a.as_primitive_opt::<IntervalMonthDayNanoType>(),
        b.as_primitive_opt::<IntervalMonthDayNanoType>(),
    );
    Ok(match intervals {
        (Some(a), Some(b)) => compare_intervals(a.value(0), b.value(0)),
        _ => compare_nested(a, b)?(0, 0),
    })
}

impl Accumulator for SlidingExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        for row in 0..values.len() {
            let number = self.entered;
            self.entered = self.entered.saturating_add(1);
            if values.is_null(row) {
                continue;
            }
            // Copies the value, because a slice would keep the whole batch in memory.
            let value = copy_rows(values, vec![row as u64])?;
            while let Some((_, worst)) = self.candidates.back()
                && compare_values(&value, worst)? == self.wanted
            {
                self.candidates.pop_back();
            }
            self.candidates.push_back((number, value));
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |v| v.len());
        self.left = self.left.saturating_add(rows);
        while self.candidates.front().is_some_and(|(number, _)| *number < self.left) {
            self.candidates.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.candidates.front() {
            Some((_, value)) => ScalarValue::try_from_array(value, 0),
            None => ScalarValue::try_from(&self.data_type),
        }
    }

    fn size(&self) -> usize {
        let held: usize = self.candidates.iter().map(|(_, v)| v.get_array_memory_size()).sum();
        size_of_val(self).saturating_add(held)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
