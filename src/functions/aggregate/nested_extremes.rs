//! `min` and `max` of lists and structs, in the order of [`compare_nested`].

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;

use super::GroupStates;
use super::kept_rows::KeptRows;
use crate::error::Result;
use crate::functions::nested_comparison::compare_nested;

#[derive(Debug)]
pub(super) struct NestedExtremes {
    /// `Less` for `min`, `Greater` for `max`: a value replaces the best value so far if comparing
    /// it with that value gives `wanted`.
    wanted: Ordering,
    best: KeptRows,
}

impl NestedExtremes {
    pub(super) fn new(data_type: &DataType, wanted: Ordering) -> Self {
        Self { wanted, best: KeptRows::new(data_type) }
    }
}

impl GroupStates for NestedExtremes {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self { wanted: self.wanted, best: self.best.to_empty() }))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let counts = |row| values.is_valid(row);
        self.best.keep_best_rows(values, groups, counts, self.wanted, compare_nested)
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.update(states, groups)
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.best.collect_rows(groups)?])
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        self.best.collect_rows(groups)
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.best.forget_groups(groups)
    }

    fn size(&self) -> usize {
        self.best.size()
    }
}
