//! `min` and `max` of lists and structs, in the order of [`compare_nested`].

use std::cmp::Ordering;
use std::fmt;

use arrow::array::{Array, ArrayRef, DynComparator, UInt64Array, new_null_array};
use arrow::compute::{interleave, take};
use arrow::datatypes::DataType;

use super::GroupStates;
use crate::error::Result;
use crate::functions::nested_comparison::compare_nested;

/// Number of [`NestedExtremes::chunks`] above which they are merged into one.
const CHUNKS: usize = 32;

pub(super) struct NestedExtremes {
    data_type: DataType,
    /// Result of comparing a better value with a worse value: `Less` for `min`, `Greater` for
    /// `max`.
    wanted: Ordering,
    chunks: Vec<ArrayRef>,
    /// Best value of each group: index of its array in `chunks`, and index of the value in this
    /// array; `None` before the first value.
    best: Vec<Option<(usize, usize)>>,
}

impl fmt::Debug for NestedExtremes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NestedExtremes").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl NestedExtremes {
    pub(super) fn new(data_type: &DataType, wanted: Ordering) -> Self {
        Self { data_type: data_type.clone(), wanted, chunks: Vec::new(), best: Vec::new() }
    }

    fn collect_best_values(&self, groups: usize) -> Result<ArrayRef> {
        let null = new_null_array(&self.data_type, 1);
        let mut sources: Vec<&dyn Array> = self.chunks.iter().map(|c| c.as_ref()).collect();
        sources.push(null.as_ref());
        let best = self.best.iter().copied().chain(std::iter::repeat(None)).take(groups);
        let rows: Vec<_> = best.map(|at| at.unwrap_or((self.chunks.len(), 0))).collect();
        match rows.is_empty() {
            true => Ok(null.slice(0, 0)),
            false => Ok(interleave(&sources, &rows)?),
        }
    }

    fn merge_chunks(&mut self) -> Result<()> {
        let values = self.collect_best_values(self.best.len())?;
        for (row, best) in self.best.iter_mut().enumerate() {
            *best = best.map(|_| (0, row));
        }
        self.chunks = vec![values];
        Ok(())
    }
}

impl GroupStates for NestedExtremes {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self::new(&self.data_type, self.wanted)))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let most = groups.iter().max().map_or(0, |g| g.saturating_add(1));
        if most > self.best.len() {
            self.best.resize(most, None);
        }
        let new = self.chunks.len();
        // One comparator per array in `chunks`, which compares the new values with that array. The
        // last comparator compares the new values with each other.
        let mut orders: Vec<Option<DynComparator>> = Vec::new();
        orders.resize_with(new.saturating_add(1), || None);
        let mut changed = Vec::new();
        for (row, group) in groups.iter().enumerate() {
            if values.is_null(row) {
                continue;
            }
            let best = &mut self.best[*group];
            if let Some((chunk, at)) = *best {
                let order = match &mut orders[chunk] {
                    Some(order) => order,
                    none => none
                        .insert(compare_nested(values, self.chunks.get(chunk).unwrap_or(values))?),
                };
                if order(row, at) != self.wanted {
                    continue;
                }
            }
            if best.is_none_or(|(chunk, _)| chunk != new) {
                changed.push(*group);
            }
            *best = Some((new, row));
        }
        if changed.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::with_capacity(changed.len());
        for (at, group) in changed.into_iter().enumerate() {
            if let Some((_, row)) = self.best[group].replace((new, at)) {
                rows.push(row as u64);
            }
        }
        self.chunks.push(take(values.as_ref(), &UInt64Array::from(rows), None)?);
        if self.chunks.len() > CHUNKS {
            self.merge_chunks()?;
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.update(states, groups)
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.collect_best_values(groups)?])
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        self.collect_best_values(groups)
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.best.drain(..groups.min(self.best.len()));
        self.merge_chunks()
    }

    fn size(&self) -> usize {
        let held: usize = self.chunks.iter().map(|c| c.get_array_memory_size()).sum();
        held.saturating_add(
            self.best.capacity().saturating_mul(size_of::<Option<(usize, usize)>>()),
        )
    }
}
