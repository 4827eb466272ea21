//! Buffers the input rows of an aggregate, each with the number of its group.

use arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array, new_empty_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat as arrow_concat, filter};
use arrow::datatypes::DataType;

use super::super::lists::take_rows_at;
use crate::array::{ListAxis, Offsets, RaggedArray, list_depth};
use crate::error::Result;
use crate::kernels::concat;

#[derive(Debug)]
pub(super) struct CollectedRows {
    types: Vec<DataType>,
    batches: Vec<RowBatch>,
    /// Size of all batches in bytes, updated with each batch, because DataFusion reads it after
    /// each.
    bytes: usize,
}

type RowBatch = (Vec<ArrayRef>, Vec<usize>);

/// Rows sorted by group, and within a group in order of arrival, with the number of rows per group.
pub(super) struct ByGroup {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) lengths: Vec<usize>,
}

impl CollectedRows {
    pub(super) fn new(types: Vec<DataType>) -> Self {
        Self { types, batches: Vec::new(), bytes: 0 }
    }

    pub(super) fn make_empty(&self) -> Self {
        Self::new(self.types.clone())
    }

    pub(super) fn push(&mut self, columns: Vec<ArrayRef>, groups: Vec<usize>) {
        if !groups.is_empty() {
            let batch = (columns, groups);
            self.bytes = self.bytes.saturating_add(count_row_bytes(&batch));
            self.batches.push(batch);
        }
    }

    fn merge_batches(&mut self) -> Result<()> {
        if self.batches.len() < 2 {
            return Ok(());
        }
        let columns = (0..self.types.len())
            .map(|i| {
                let parts = self.batches.iter().map(|(columns, _)| &columns[i]);
                concat_arrays(&self.types[i], parts)
            })
            .collect::<Result<_>>()?;
        let groups = self.batches.iter().flat_map(|(_, groups)| groups.iter().copied()).collect();
        self.batches = vec![(columns, groups)];
        self.bytes = self.batches.iter().map(count_row_bytes).sum();
        Ok(())
    }

    /// Returns the buffered rows of the first `groups` groups, sorted by group. Merges all batches
    /// into one, and copies this batch only if it is not sorted already.
    pub(super) fn sort_by_group(&mut self, groups: usize) -> Result<ByGroup> {
        self.merge_batches()?;
        let Some((columns, of)) = self.batches.first() else {
            let columns = self.types.iter().map(new_empty_array).collect();
            return Ok(ByGroup { columns, lengths: vec![0; groups] });
        };
        let mut lengths = vec![0usize; groups];
        let mut behind = 0usize;
        for group in of {
            match lengths.get_mut(*group) {
                Some(n) => *n += 1,
                None => behind += 1,
            }
        }
        let kept = of.len() - behind;
        if of.is_sorted() {
            let columns = columns.iter().map(|c| c.slice(0, kept)).collect();
            return Ok(ByGroup { columns, lengths });
        }
        let mut next = Vec::with_capacity(groups);
        let mut start = 0usize;
        for n in &lengths {
            next.push(start);
            start += n;
        }
        let mut order = vec![0u64; kept];
        for (row, group) in (0u64..).zip(of) {
            if let Some(at) = next.get_mut(*group) {
                order[*at] = row;
                *at += 1;
            }
        }
        let order = UInt64Array::from(order);
        let columns = columns.iter().map(|c| take_rows_at(c, &order)).collect::<Result<_>>()?;
        Ok(ByGroup { columns, lengths })
    }

    /// Removes the rows of the first `groups` groups, and renumbers the other groups from 0.
    pub(super) fn forget_rows(&mut self, groups: usize) -> Result<()> {
        let mut left = Vec::new();
        for (columns, of) in std::mem::take(&mut self.batches) {
            let behind: Vec<bool> = of.iter().map(|g| *g >= groups).collect();
            if behind.iter().all(|b| !b) {
                continue;
            }
            let of = of.iter().filter_map(|g| g.checked_sub(groups)).collect();
            let keep = BooleanArray::from(behind);
            let columns =
                columns.iter().map(|c| Ok(filter(c, &keep)?)).collect::<Result<Vec<_>>>()?;
            left.push((columns, of));
        }
        self.bytes = left.iter().map(count_row_bytes).sum();
        self.batches = left;
        Ok(())
    }

    pub(super) fn size(&self) -> usize {
        self.bytes
    }
}

fn count_row_bytes((columns, groups): &RowBatch) -> usize {
    let column = |c: &ArrayRef| c.to_data().get_slice_memory_size().unwrap_or_default();
    let columns: usize = columns.iter().map(column).sum();
    columns + groups.capacity() * size_of::<usize>()
}

/// Concatenates `parts`, arrays of type `t`. Uses Arrow's `concat` only for arrays that are not
/// lists, because it returns no error if the offsets of lists overflow.
fn concat_arrays<'a>(t: &DataType, parts: impl Iterator<Item = &'a ArrayRef>) -> Result<ArrayRef> {
    if list_depth(t) == 0 {
        let parts: Vec<&dyn Array> = parts.map(AsRef::as_ref).collect();
        return Ok(arrow_concat(&parts)?);
    }
    let parts = parts.map(RaggedArray::try_from_arrow).collect::<Result<Vec<_>>>()?;
    concat::concat(&parts.iter().collect::<Vec<_>>())?.to_arrow_as(t)
}

/// Returns `rows` grouped into lists: list `i` has the next `lengths[i]` rows, and is NULL if
/// `null(i)` is true.
pub(super) fn group_rows(
    rows: RaggedArray,
    lengths: &[usize],
    null: impl Fn(usize) -> bool,
) -> Result<RaggedArray> {
    let nulls = NullBuffer::from_iter((0..lengths.len()).map(|g| !null(g)));
    let level = ListAxis::try_new(Offsets::from_lengths(lengths.iter().copied())?, Some(nulls))?;
    let (_, axes, leaves) = rows.into_parts();
    let axes = std::iter::once(level).chain(axes).collect();
    RaggedArray::try_new(lengths.len(), axes, leaves)
}
