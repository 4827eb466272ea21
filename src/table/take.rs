//! Rows of a table in another order or a subset of them: ranges gathered on every axis.

use std::ops::Range;

use arrow::array::{Array, BooleanArray};

use super::RaggedTable;
use super::gather::{Over, Picks};
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
        let bits = match keep.nulls() {
            None => keep.values().clone(),
            Some(n) => keep.values() & n.inner(),
        };
        self.gather_rows(bits.set_slices().map(|(start, end)| start..end))
    }

    /// The rows of these ranges, which are within the table, one after the other.
    pub(super) fn gather_rows(&self, ranges: impl Iterator<Item = Range<usize>>) -> Result<Self> {
        self.gather(0, Over::Rows, &[Picks::ranges(ranges)])
    }
}
