//! Rows of a table in another order or a subset of them: ranges gathered on every axis.

use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBufferBuilder, MutableArrayData, OffsetSizeTrait,
    UInt64Array, make_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;

use super::{Axis, Column, RaggedTable};
use crate::array::{Layout, Offsets};
use crate::error::{Error, Result};
use crate::with_offsets;

impl RaggedTable {
    /// The rows `rows`, in that order; a row may come more than once.
    ///
    /// Copies every element of these rows once, range by range; a run of consecutive rows that is
    /// the whole answer is a [`slice`](Self::slice) and copies nothing.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a row the table does not have.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::RaggedTable;
    /// let t = RaggedTable::builder()
    ///     .lengths([2, 0, 1])?
    ///     .column("code", 1, Arc::new(Int32Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let back = t.take(&[2, 1, 0])?;
    /// assert_eq!(back.array("code")?.lengths(1)?, [1, 0, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn take(&self, rows: &[usize]) -> Result<Self> {
        if let Some(bad) = rows.iter().find(|r| **r >= self.num_rows()) {
            return Err(Error::OutOfRange {
                axis: 0,
                index: i64::try_from(*bad).unwrap_or(i64::MAX),
                size: self.num_rows(),
            });
        }
        self.gather(coalesced(rows.iter().map(|r| *r..r + 1)))
    }

    /// The rows whose bit is true (null counts as false), as [`take`](Self::take) gathers them.
    ///
    /// # Errors
    /// When there is not one bit per row.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        if keep.len() != self.num_rows() {
            return Err(Error::invalid(format!(
                "{} bits to keep rows of a table that has {}",
                keep.len(),
                self.num_rows()
            )));
        }
        let bits = match keep.nulls() {
            None => keep.values().clone(),
            Some(n) => keep.values() & n.inner(),
        };
        self.gather(bits.set_slices().map(|(start, end)| start..end).collect())
    }

    /// The rows of these ranges (within the table, none empty), one after the other.
    fn gather(&self, ranges: Vec<Range<usize>>) -> Result<Self> {
        match ranges.as_slice() {
            [] => return self.slice(0..0),
            [one] => return self.slice(one.clone()),
            _ => {}
        }
        let mut windows = vec![ranges];
        let mut axes = Vec::with_capacity(self.axes.len());
        for axis in &self.axes {
            let lists = &windows[windows.len() - 1];
            let layout = gather_layout(&axis.layout, lists)?;
            let next = coalesced(lists.iter().map(|r| axis.layout.ranges(r.clone())));
            windows.push(next);
            axes.push(Axis { name: axis.name.clone(), parent: axis.parent, layout });
        }
        let columns = self
            .columns
            .iter()
            .map(|c| {
                let values = gather_values(c.values(), &windows[c.axis()])?;
                let nulls = c
                    .list_nulls()
                    .iter()
                    .zip(&windows)
                    .map(|(n, w)| n.as_ref().map(|n| gather_nulls(n, w)))
                    .collect();
                Ok(Column::with_field(c.field().clone(), c.axis(), values).with_list_nulls(nulls))
            })
            .collect::<Result<_>>()?;
        let rows = windows[0].iter().map(Range::len).sum();
        Ok(Self { rows, row_name: self.row_name.clone(), axes, columns })
    }
}

/// The ranges without the empty ones, neighbours joined.
fn coalesced(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for range in ranges.filter(|r| !r.is_empty()) {
        match out.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => out.push(range),
        }
    }
    out
}

fn gather_layout(layout: &Layout, lists: &[Range<usize>]) -> Result<Layout> {
    let number: usize = lists.iter().map(Range::len).sum();
    let offsets = match layout {
        Layout::Uniform { size, .. } => {
            size.checked_mul(number).ok_or_else(|| too_many(number))?;
            return Ok(Layout::Uniform { size: *size, lists: number });
        }
        Layout::Ragged(offsets) => offsets,
    };
    let total = lists
        .iter()
        .try_fold(0usize, |sum, r| sum.checked_add(offsets.ranges(r.clone()).len()))
        .filter(|t| i64::try_from(*t).is_ok())
        .ok_or_else(|| too_many(number))?;
    // The kind of list stays what it was as long as it can hold the elements.
    let narrow = matches!(offsets, Offsets::I32(_)) && i32::try_from(total).is_ok();
    Ok(if narrow {
        with_offsets!(offsets, o => Offsets::I32(moved::<_, i32>(o, lists, number))).into()
    } else {
        with_offsets!(offsets, o => Offsets::I64(moved::<_, i64>(o, lists, number))).into()
    })
}

fn too_many(lists: usize) -> Error {
    Error::invalid(format!("the elements of {lists} lists taken do not fit 63 bits"))
}

/// Offsets of the lists taken, from zero. The caller has checked that the last one fits `B`.
fn moved<A: OffsetSizeTrait, B: OffsetSizeTrait>(
    offsets: &[A],
    lists: &[Range<usize>],
    number: usize,
) -> OffsetBuffer<B> {
    let mut out: Vec<B> = Vec::with_capacity(number + 1);
    let mut end = 0;
    out.push(B::usize_as(0));
    for range in lists {
        let base = offsets[range.start].as_usize();
        let ends = &offsets[range.start + 1..=range.end];
        out.extend(ends.iter().map(|o| B::usize_as(end + o.as_usize() - base)));
        end += offsets[range.end].as_usize() - base;
    }
    OffsetBuffer::new(out.into())
}

/// The elements of these ranges, one after the other.
fn gather_values(values: &ArrayRef, ranges: &[Range<usize>]) -> Result<ArrayRef> {
    match ranges {
        [] => return Ok(values.slice(0, 0)),
        [one] => return Ok(values.slice(one.start, one.len())),
        _ => {}
    }
    let total: usize = ranges.iter().map(Range::len).sum();
    // Copying a range has a price of its own; many short ones are cheaper element by element.
    if total / ranges.len() < 8 {
        let indices: UInt64Array = ranges.iter().cloned().flatten().map(|i| i as u64).collect();
        return Ok(take(values, &indices, None)?);
    }
    let data = values.to_data();
    let mut out = MutableArrayData::new(vec![&data], false, total);
    for range in ranges {
        out.try_extend(0, range.start, range.end)?;
    }
    Ok(make_array(out.freeze()))
}

fn gather_nulls(nulls: &NullBuffer, ranges: &[Range<usize>]) -> NullBuffer {
    let mut bits = BooleanBufferBuilder::new(ranges.iter().map(Range::len).sum());
    for range in ranges {
        bits.append_buffer(&nulls.inner().slice(range.start, range.len()));
    }
    NullBuffer::new(bits.finish())
}
