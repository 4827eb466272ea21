//! Rows of a table in another order or a subset of them, elements of an axis by a mask.

use std::ops::Range;

use arrow::array::{Array, BooleanArray};
use arrow::buffer::BooleanBuffer;

use super::RaggedTable;
use super::gather::{Over, Picks, lists_like};
use crate::error::{Error, Result};

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
        self.gather_rows(rows.iter().map(|r| *r..r + 1))
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
        let bits = true_bits(keep);
        self.gather_rows(bits.set_slices().map(|(start, end)| start..end))
    }

    /// The elements of axis `axis` (negatives from the innermost) whose bit is true, with all below
    /// them: one bit per element, in the order of the flat columns of that axis. Null counts as false.
    /// Lists stay: one without a chosen element is empty, a null one is null.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow::array::{AsArray, Float32Array, UInt16Array, types::UInt16Type};
    /// use arrow::compute::kernels::cmp::gt;
    /// use serrate::table::RaggedTable;
    /// let t = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .column("value", 1, Arc::new(Float32Array::from(vec![0.5, 2.0, 3.0])))
    ///     .build()?;
    /// let high = gt(t.column("value")?.values(), &Float32Array::new_scalar(1.0))?;
    /// let t = t.filter_axis(1, &high)?;
    /// assert_eq!(t.array("code")?.lengths(1)?, [1, 1]);
    /// assert_eq!(t.column("code")?.values().as_primitive::<UInt16Type>().values(), &[8, 9]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// No such axis; not one bit per element.
    pub fn filter_axis(&self, axis: i64, keep: &BooleanArray) -> Result<Self> {
        let axis = self.resolve_axis(axis)?;
        if axis == 0 {
            return self.filter(keep);
        }
        let layout = self.layout(axis)?;
        if keep.len() != layout.children() {
            return Err(Error::invalid(format!(
                "{} bits to keep elements of axis {axis}, which has {}",
                keep.len(),
                layout.children()
            )));
        }
        let bits = true_bits(keep);
        let kept = |list: usize| {
            let range = layout.range(list);
            bits.slice(range.start, range.len()).count_set_bits()
        };
        let over = lists_like(layout, (0..layout.lists()).map(kept))?;
        let picks = Picks::ranges(bits.set_slices().map(|(start, end)| start..end));
        self.gather(axis, Over::Lists(over), &[picks])
    }

    /// The rows of these ranges, which are within the table, one after the other.
    pub(super) fn gather_rows(&self, ranges: impl Iterator<Item = Range<usize>>) -> Result<Self> {
        self.gather(0, Over::Rows, &[Picks::ranges(ranges)])
    }
}

/// Where bits are true and not null.
fn true_bits(keep: &BooleanArray) -> BooleanBuffer {
    match keep.nulls() {
        None => keep.values().clone(),
        Some(n) => keep.values() & n.inner(),
    }
}
