use std::sync::Arc;

use arrow::array::{Array, ArrayRef};

use super::{Column, RaggedTable};
use crate::array::{Layout, Offsets};
use crate::error::Result;

/// Builds a table from axes, outermost first, and columns.
///
/// [`build`](Self::build) checks that each axis has one list per element of the axis above, and
/// each column one value per element of its axis.
///
/// Without [`rows`](Self::rows), axis 1 (or else a column on axis 0) gives the number of rows.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, UInt16Array};
/// use serrate::table::{Column, RaggedTable};
/// let age = Column::new("age", 0, Arc::new(Int32Array::from(vec![71, 38])));
/// let table = RaggedTable::builder()
///     .names(["patient", "visit"])
///     .lengths([2, 1])?
///     .push(age)
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// assert_eq!((table.num_rows(), table.axis_name(1)), (2, Some("visit")));
/// assert_eq!(table.names().collect::<Vec<_>>(), ["age", "code"]);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct RaggedTableBuilder {
    rows: Option<usize>,
    names: Vec<Arc<str>>,
    layouts: Vec<Layout>,
    columns: Vec<Column>,
}

impl RaggedTableBuilder {
    /// Sets the number of rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder().rows(2).build()?;
    /// assert_eq!(table.num_rows(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Names the axes, starting with the rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder().names(["patient", "visit"]).lengths([3, 1])?.build()?;
    /// assert_eq!(table.axis_name(1), Some("visit"));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn names<S: AsRef<str>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.names = names.into_iter().map(|n| n.as_ref().into()).collect();
        self
    }

    /// Adds the next axis from the length of each of its lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder().lengths([3, 1])?.build()?;
    /// assert_eq!((table.num_rows(), table.axis_len(1)?), (2, 4));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the total length exceeds 2^63 - 1.
    pub fn lengths(mut self, lengths: impl IntoIterator<Item = usize>) -> Result<Self> {
        self.layouts.push(Offsets::from_lengths(lengths)?.into());
        Ok(self)
    }

    /// Adds the next axis from offsets.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder().offsets(Offsets::from_lengths([3, 1])?).build()?;
    /// assert_eq!(table.axis_len(1)?, 4);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn offsets(mut self, offsets: Offsets) -> Self {
        self.layouts.push(offsets.into());
        self
    }

    /// Adds the next axis from the ends of its lists, as stored in an `.nrt` file (nested ragged
    /// tensors).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .bounds([2, 2, 3])?
    ///     .column("x", 1, Arc::new(Int32Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// assert_eq!(table.array("x")?.lengths(1)?, [2, 0, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an end is negative or less than the previous end; the message names the axis.
    pub fn bounds(mut self, bounds: impl IntoIterator<Item = i64>) -> Result<Self> {
        let what = format!("dim{}/bounds", self.layouts.len() + 1);
        self.layouts.push(Offsets::from_bounds(bounds, &what)?.into());
        Ok(self)
    }

    /// Adds the next axis from a layout, such as a uniform one.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::array::{Layout, Offsets};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .rows(2)
    ///     .offsets(Offsets::from_lengths([1, 0])?)
    ///     .layout(Layout::Uniform { size: 2, lists: 1 })
    ///     .column("xy", 2, Arc::new(Int32Array::from(vec![3, 4])))
    ///     .build()?;
    /// assert_eq!(table.array("xy")?.shape(), [Some(2), None, Some(2)]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layouts.push(layout);
        self
    }

    /// Adds a column of flat values on axis `axis`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::RaggedTable;
    /// let age = Arc::new(Int32Array::from(vec![71, 38]));
    /// let table = RaggedTable::builder().column("age", 0, age).build()?;
    /// assert_eq!(table.num_rows(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn column(self, name: impl Into<String>, axis: usize, values: ArrayRef) -> Self {
        self.push(Column::new(name, axis, values))
    }

    /// Adds an existing column.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::{Column, RaggedTable};
    /// let age = Column::new("age", 0, Arc::new(Int32Array::from(vec![71, 38])));
    /// let table = RaggedTable::builder().push(age).build()?;
    /// assert_eq!(table.column("age")?.axis(), 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn push(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// Builds the table.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder().lengths([3, 1])?.build()?;
    /// assert_eq!(table.ndim(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the first inconsistency, as [`RaggedTable::try_new`] does.
    pub fn build(self) -> Result<RaggedTable> {
        let rows = self
            .rows
            .or_else(|| self.layouts.first().map(Layout::lists))
            .or_else(|| self.columns.iter().find(|c| c.axis() == 0).map(|c| c.values().len()))
            .unwrap_or(0);
        let axes = self.layouts.into_iter().map(|l| (None, l)).collect();
        RaggedTable::try_new(rows, None, axes, self.columns)?.with_axis_names(self.names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use arrow::array::Int32Array;

    fn ints(n: i32) -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(0..n))
    }

    fn error(builder: RaggedTableBuilder) -> String {
        builder.build().unwrap_err().to_string()
    }

    #[test]
    fn lengths_offsets_and_bounds_make_the_same_table() {
        let make = |b: RaggedTableBuilder| b.column("x", 1, ints(5)).build().unwrap();
        let table = make(RaggedTable::builder().lengths([3, 0, 2]).unwrap());
        let offsets = Offsets::from_lengths([3, 0, 2]).unwrap();
        assert_eq!(make(RaggedTable::builder().offsets(offsets)), table);
        assert_eq!(make(RaggedTable::builder().bounds([3, 3, 5]).unwrap()), table);
        let uniform = RaggedTable::builder().layout(Layout::Uniform { size: 5, lists: 1 });
        assert_eq!(make(uniform).array("x").unwrap().shape(), [Some(1), Some(5)]);
    }

    #[test]
    fn rows_come_from_the_first_axis_a_flat_column_or_as_said() {
        let rows = |b: RaggedTableBuilder| b.build().unwrap().num_rows();
        assert_eq!(rows(RaggedTable::builder()), 0);
        assert_eq!(rows(RaggedTable::builder().rows(7)), 7);
        assert_eq!(rows(RaggedTable::builder().column("x", 0, ints(3))), 3);
        assert_eq!(rows(RaggedTable::builder().lengths([1, 1]).unwrap()), 2);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let lists = || RaggedTable::builder().lengths([1, 2]).unwrap();
        let text = error(lists().column("x", 1, ints(4)));
        assert_eq!(
            text,
            "column \"x\" has 4 value(s), but its axis 1 has 3 element(s); both numbers must be equal"
        );
        let text = error(lists().column("x", 2, ints(3)));
        assert!(
            text.contains("column \"x\" has no axis 2") && text.contains("its number of axes is 2"),
            "{text}"
        );
        assert!(
            error(lists().lengths([1]).unwrap())
                .contains("this axis has 1 list(s), but axis 1 has 3 element(s)")
        );
        assert!(
            error(lists().rows(3)).contains("this axis has 2 list(s), but axis 0 has 3 element(s)")
        );
        assert!(
            error(lists().names(["a", "b", "c"]))
                .contains("3 names are given, but the table has 2 axes")
        );
        let huge = Layout::Uniform { size: usize::MAX, lists: 2 };
        assert!(error(RaggedTable::builder().layout(huge)).contains("64 bits"));
        let bounds = RaggedTable::builder().bounds([3, 2]).unwrap_err();
        assert!(
            matches!(&bounds, Error::Offsets { what, position: 1, .. } if what == "dim1/bounds")
        );
        assert!(RaggedTable::builder().bounds([-1]).is_err());
    }
}
