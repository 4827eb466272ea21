//! [`KeptRows`]: keeps one row of lists or structs per group, for aggregates such as `min` and
//! `first_value`.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow::array::{Array, ArrayRef, DynComparator, UInt64Array, new_empty_array, new_null_array};
use arrow::compute::{interleave, take};
use arrow::datatypes::DataType;
use serrate_core::internal::holds_type;

use crate::error::Result;

/// Maximum number of [`KeptRows::chunks`].
const MOST_CHUNKS: usize = 1024;

/// Maximum number of chunks that share buffers with batches, such as the values of a dictionary.
/// The size of every chunk includes the shared buffers, so the sizes of many chunks would add up to
/// more than the memory in use.
const MOST_SHARING_CHUNKS: usize = 32;

/// Number of replaced rows that may stay in `chunks`: merging chunks for so few rows costs more
/// than it saves.
const SPARE_ROWS: usize = 32;

/// Returns a copy of the rows of `values` with the indices `rows`, without spare capacity.
///
/// Arrow's `take` reserves too much for a slice of lists: it divides all values of the unsliced
/// array by the number of lists in the slice, and reserves the quotient for each row.
pub(super) fn copy_rows(values: &dyn Array, rows: Vec<u64>) -> Result<ArrayRef> {
    let mut copy = take(values, &UInt64Array::from(rows), None)?;
    copy.shrink_to_fit();
    Ok(copy)
}

/// Whether a copy of some rows of an array of this type shares buffers with the array, such as the
/// values of a dictionary.
fn shares_buffers(data_type: &DataType) -> bool {
    use DataType::{BinaryView, Dictionary, LargeListView, ListView, Utf8View};
    holds_type(data_type, |t| {
        matches!(t, Dictionary(..) | Utf8View | BinaryView | ListView(_) | LargeListView(_))
    })
}

/// At most one row per group. The rows are copies, so they do not keep their batches in memory.
#[derive(Debug)]
pub(super) struct KeptRows {
    data_type: DataType,
    most_chunks: usize,
    chunks: Vec<ArrayRef>,
    /// Size of `chunks` in bytes, updated with each change: DataFusion reads it after each batch.
    bytes: usize,
    /// Number of rows in `chunks`, including replaced rows.
    rows: usize,
    /// The row of each group: the index of the array in `chunks`, and the index of the row in this
    /// array; `None` for a group without a row.
    at: Vec<Option<(usize, usize)>>,
    /// Number of groups with a row.
    held: usize,
}

impl KeptRows {
    pub(super) fn new(data_type: &DataType) -> Self {
        Self {
            data_type: data_type.clone(),
            most_chunks: if shares_buffers(data_type) { MOST_SHARING_CHUNKS } else { MOST_CHUNKS },
            chunks: Vec::new(),
            bytes: 0,
            rows: 0,
            at: Vec::new(),
            held: 0,
        }
    }

    pub(super) fn to_empty(&self) -> Self {
        Self::new(&self.data_type)
    }

    pub(super) fn has_row(&self, group: usize) -> bool {
        self.at.get(group).is_some_and(Option::is_some)
    }

    /// Returns an array with the row of each group in `groups`, or NULL for a group without a row.
    pub(super) fn gather_rows(&self, groups: &[usize]) -> Result<ArrayRef> {
        self.copy_kept(groups.iter().map(|group| self.at.get(*group).copied().flatten()))
    }

    /// Returns an array with the row of each of the first `groups` groups, or NULL for a group
    /// without a row.
    pub(super) fn collect_rows(&self, groups: usize) -> Result<ArrayRef> {
        self.copy_kept(self.at.iter().copied().chain(std::iter::repeat(None)).take(groups))
    }

    fn copy_kept(&self, at: impl Iterator<Item = Option<(usize, usize)>>) -> Result<ArrayRef> {
        let null = new_null_array(&self.data_type, 1);
        let mut sources: Vec<&dyn Array> = self.chunks.iter().map(|c| c.as_ref()).collect();
        sources.push(null.as_ref());
        let rows: Vec<_> = at.map(|at| at.unwrap_or((self.chunks.len(), 0))).collect();
        match rows.is_empty() {
            true => Ok(new_empty_array(&self.data_type)),
            false => Ok(interleave(&sources, &rows)?),
        }
    }

    /// Keeps for each group the best of its kept row and the rows of `values` for which `counts` is
    /// true. Row `i` belongs to the group `groups[i]`. A row is better than another if comparing it
    /// with the other gives `wanted`.
    pub(super) fn keep_best_rows(
        &mut self,
        values: &ArrayRef,
        groups: &[usize],
        counts: impl Fn(usize) -> bool,
        wanted: Ordering,
        compare: impl Fn(&ArrayRef, &ArrayRef) -> Result<DynComparator>,
    ) -> Result<()> {
        let mut order: Option<DynComparator> = None;
        let mut best: HashMap<usize, usize> = HashMap::new();
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| counts(*row)) {
            match best.entry(*group) {
                Entry::Vacant(best) => {
                    best.insert(row);
                }
                Entry::Occupied(mut best) => {
                    let order = match &mut order {
                        Some(order) => order,
                        none => none.insert(compare(values, values)?),
                    };
                    if order(row, *best.get()) == wanted {
                        best.insert(row);
                    }
                }
            }
        }
        let (known, mut better): (Vec<_>, Vec<_>) =
            best.into_iter().partition(|(group, _)| self.has_row(*group));
        if !known.is_empty() {
            // Copies the kept rows of the groups in `known` to one small array, because comparators
            // of floats copy both arrays that they compare.
            let groups: Vec<usize> = known.iter().map(|(group, _)| *group).collect();
            let order = compare(values, &self.gather_rows(&groups)?)?;
            let wins = |(at, (_, row)): &(usize, (usize, usize))| order(*row, *at) == wanted;
            better.extend(known.into_iter().enumerate().filter(wins).map(|(_, found)| found));
        }
        let (groups, rows): (Vec<usize>, Vec<u64>) =
            better.into_iter().map(|(group, row)| (group, row as u64)).unzip();
        self.put_rows(values, &groups, rows)
    }

    /// Replaces the row of each of `groups` by the row of `values` at the same position in `rows`.
    /// No group occurs twice.
    pub(super) fn put_rows(
        &mut self,
        values: &dyn Array,
        groups: &[usize],
        rows: Vec<u64>,
    ) -> Result<()> {
        let Some(last) = groups.iter().max() else { return Ok(()) };
        if *last >= self.at.len() {
            self.at.resize(last.saturating_add(1), None);
        }
        let chunk = self.chunks.len();
        self.push_chunk(copy_rows(values, rows)?);
        for (row, group) in groups.iter().enumerate() {
            if self.at[*group].replace((chunk, row)).is_none() {
                self.held = self.held.saturating_add(1);
            }
        }
        let replaced = self.rows.saturating_sub(self.held);
        if replaced > SPARE_ROWS.max(self.held / 2) || self.chunks.len() > self.most_chunks {
            self.merge_chunks()?;
        }
        Ok(())
    }

    fn push_chunk(&mut self, chunk: ArrayRef) {
        self.bytes = self.bytes.saturating_add(chunk.get_array_memory_size());
        self.rows = self.rows.saturating_add(chunk.len());
        self.chunks.push(chunk);
    }

    fn merge_chunks(&mut self) -> Result<()> {
        let merged = self.copy_kept(self.at.iter().filter(|at| at.is_some()).copied())?;
        for (row, at) in self.at.iter_mut().flatten().enumerate() {
            *at = (0, row);
        }
        self.chunks.clear();
        (self.bytes, self.rows) = (0, 0);
        if self.held > 0 {
            self.push_chunk(merged);
        }
        Ok(())
    }

    /// Removes the first `groups` groups. The numbers of the remaining groups decrease by `groups`.
    pub(super) fn forget_groups(&mut self, groups: usize) -> Result<()> {
        self.at.drain(..groups.min(self.at.len()));
        self.held = self.at.iter().flatten().count();
        if self.at.is_empty() {
            self.at = Vec::new();
        }
        self.merge_chunks()
    }

    /// Returns the size in bytes. Counts each row twice, because merging chunks and creating a
    /// result or a partial state copy the rows.
    pub(super) fn size(&self) -> usize {
        let at = self.at.capacity().saturating_mul(size_of::<Option<(usize, usize)>>());
        self.bytes.saturating_mul(2).saturating_add(at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, ListArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn make_lists(rows: std::ops::Range<i64>, length: usize) -> ArrayRef {
        let rows = rows.map(|row| Some(vec![Some(row); length]));
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
    }

    fn first_values(lists: &ArrayRef) -> Vec<Option<i64>> {
        let first = |list: Option<ArrayRef>| Some(list?.as_primitive::<Int64Type>().value(0));
        lists.as_list::<i32>().iter().map(first).collect()
    }

    #[test]
    fn rows_are_replaced_merged_and_forgotten() {
        let lists = make_lists(0..200, 3);
        let mut kept = KeptRows::new(lists.data_type());
        for row in 0..200u64 {
            kept.put_rows(&lists, &[1, 3], vec![row, 199 - row]).unwrap();
            assert!(kept.rows <= 2 + 2 + SPARE_ROWS, "{}", kept.rows);
        }
        assert_eq!(
            first_values(&kept.collect_rows(5).unwrap()),
            [None, Some(199), None, Some(0), None]
        );
        assert_eq!(
            first_values(&kept.gather_rows(&[3, 7, 1]).unwrap()),
            [Some(0), None, Some(199)]
        );
        assert!(kept.has_row(1) && !kept.has_row(2) && !kept.has_row(7));
        kept.forget_groups(2).unwrap();
        assert_eq!(first_values(&kept.collect_rows(2).unwrap()), [None, Some(0)]);
        kept.forget_groups(9).unwrap();
        assert_eq!((kept.size(), kept.held), (0, 0));
        assert_eq!(first_values(&kept.collect_rows(1).unwrap()), [None]);
    }

    #[test]
    fn sizes_are_those_of_the_rows_that_are_kept() {
        let lists = make_lists(0..1000, 100);
        let mut kept = KeptRows::new(lists.data_type());
        let mut groups = 0;
        for start in (0..1000).step_by(10) {
            kept.put_rows(&lists.slice(start, 10), &[groups], vec![5]).unwrap();
            groups += 1;
        }
        // `values`: each group has one list of 100 integers of 8 bytes, which counts twice. `more`:
        // a bound for the overhead of the arrays and of `KeptRows`.
        let (values, more) = (groups * 100 * 8 * 2, groups * 2000);
        assert!((values..values + more).contains(&kept.size()), "{} {values}", kept.size());
        assert_eq!(first_values(&kept.collect_rows(2).unwrap()), [Some(5), Some(15)]);
    }
}
