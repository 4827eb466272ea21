//! `min` and `max` of lists and structs, in the order of [`compare_nested`].

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow::array::{Array, ArrayRef, DynComparator};
use arrow::datatypes::DataType;

use super::GroupStates;
use super::kept_rows::KeptRows;
use crate::error::Result;
use crate::functions::nested_comparison::compare_nested;

#[derive(Debug)]
pub(super) struct NestedExtremes {
    /// How a better value compares with a worse one: `Less` for `min`, `Greater` for `max`.
    wanted: Ordering,
    best: KeptRows,
}

impl NestedExtremes {
    pub(super) fn new(data_type: &DataType, wanted: Ordering) -> Self {
        Self { wanted, best: KeptRows::new(data_type) }
    }

    /// Returns the row of the best of the new values of each group, as pairs of group and row. Groups
    /// without a value are left out.
    fn find_best_rows(&self, values: &ArrayRef, groups: &[usize]) -> Result<Vec<(usize, usize)>> {
        let mut order: Option<DynComparator> = None;
        let mut places = HashMap::new();
        let mut best: Vec<(usize, usize)> = Vec::new();
        for (row, group) in groups.iter().enumerate() {
            if values.is_null(row) {
                continue;
            }
            match places.entry(*group) {
                Entry::Vacant(place) => {
                    place.insert(best.len());
                    best.push((*group, row));
                }
                Entry::Occupied(place) => {
                    let order = match &mut order {
                        Some(order) => order,
                        none => none.insert(compare_nested(values, values)?),
                    };
                    let best = &mut best[*place.get()].1;
                    if order(row, *best) == self.wanted {
                        *best = row;
                    }
                }
            }
        }
        Ok(best)
    }
}

impl GroupStates for NestedExtremes {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self { wanted: self.wanted, best: self.best.fresh() }))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let found = self.find_best_rows(values, groups)?;
        let (known, mut better): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(group, _)| self.best.has_row(*group));
        if !known.is_empty() {
            // Compares with a copy of the rows of these groups only: comparators of floats copy
            // both arrays.
            let groups: Vec<usize> = known.iter().map(|(group, _)| *group).collect();
            let order = compare_nested(values, &self.best.gather_rows(&groups)?)?;
            let wins = |(at, (_, row)): &(usize, (usize, usize))| order(*row, *at) == self.wanted;
            better.extend(known.into_iter().enumerate().filter(wins).map(|(_, found)| found));
        }
        let (groups, rows): (Vec<usize>, Vec<u64>) =
            better.into_iter().map(|(group, row)| (group, row as u64)).unzip();
        self.best.put_rows(values, &groups, rows)
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
