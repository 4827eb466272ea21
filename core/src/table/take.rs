use std::ops::Range;

use arrow::array::BooleanArray;

use super::RaggedTable;
use super::gather::{PickedElements, PickedParents};
use crate::array::make_lists_like;
use crate::array::nulls::find_true_bits;
use crate::error::{Error, Result};

impl RaggedTable {
    /// Takes the rows `rows` in the given order; rows may repeat.
    ///
    /// Copies each range of consecutive rows at once. If all rows form one such range, returns a
    /// [`slice`](Self::slice) without a copy.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the table has no such row.
    ///
    /// ```
    /// # use serrate_core as serrate;
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

    /// Keeps the rows whose bit is true (null counts as false), copying like [`take`](Self::take).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// use arrow::array::BooleanArray;
    /// let young = table.filter(&BooleanArray::from(vec![false, true]))?;
    /// assert_eq!(young.array("code")?.lengths(1)?, [1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the length of the mask differs from the number of rows.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        if keep.len() != self.num_rows() {
            return Err(Error::invalid(format!(
                "the mask has {} bit(s) for {} row(s); give one bit per row",
                keep.len(),
                self.num_rows()
            )));
        }
        let bits = find_true_bits(keep);
        self.gather_rows(bits.set_slices().map(|(start, end)| start..end))
    }

    /// Keeps the elements of axis `axis` whose bit is true, with everything below them.
    ///
    /// Negative axes count from the innermost axis. The mask has one bit per element of the axis;
    /// null counts as false. Lists stay: a list without kept elements becomes empty, and a null
    /// list stays null.
    ///
    /// ```
    /// # use serrate_core as serrate;
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
    /// If there is no such axis, or the length of the mask differs from the length of the axis.
    pub fn filter_axis(&self, axis: i64, keep: &BooleanArray) -> Result<Self> {
        let axis = self.resolve_axis(axis)?;
        if axis == 0 {
            return self.filter(keep);
        }
        let layout = self.layout(axis)?;
        if keep.len() != layout.children() {
            return Err(Error::invalid(format!(
                "the mask has {} bit(s) for the {} element(s) of axis {axis}; give one bit per element",
                keep.len(),
                layout.children()
            )));
        }
        let bits = find_true_bits(keep);
        let kept = |list: usize| {
            let range = layout.range(list);
            bits.slice(range.start, range.len()).count_set_bits()
        };
        let over = make_lists_like(layout, (0..layout.lists()).map(kept))?;
        let picks = PickedElements::from_ranges(bits.set_slices().map(|(start, end)| start..end));
        self.gather_axis(axis, PickedParents::Lists(over), &[picks])
    }

    /// Takes the rows in `ranges`, in this order. The caller ensures that the rows exist.
    pub(super) fn gather_rows(&self, ranges: impl Iterator<Item = Range<usize>>) -> Result<Self> {
        self.gather_axis(0, PickedParents::Rows, &[PickedElements::from_ranges(ranges)])
    }
}
