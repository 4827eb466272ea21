use std::ops::Range;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};

use super::RaggedTable;
use crate::error::{Error, Result};

/// A view of one row of a table: one range of elements per axis.
///
/// Borrows the table.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::UInt16Array;
/// use serrate::table::RaggedTable;
/// let table = RaggedTable::builder()
///     .lengths([2, 0])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8])))
///     .build()?;
/// let (first, second) = (table.row(0)?, table.row(1)?);
/// assert_eq!((first.index(), first.len()), (0, 2));
/// assert_eq!((second.index(), second.len(), second.is_empty()), (1, 0, true));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Row<'a> {
    table: &'a RaggedTable,
    windows: Vec<Range<usize>>,
}

impl<'a> Row<'a> {
    pub(super) fn new(table: &'a RaggedTable, index: usize) -> Result<Self> {
        if index >= table.num_rows() {
            return Err(Error::OutOfRange {
                axis: 0,
                index: i64::try_from(index).unwrap_or(i64::MAX),
                size: table.num_rows(),
            });
        }
        Ok(Self { table, windows: table.windows(index..index + 1)? })
    }

    /// Returns the index of the row in its table.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let row = table.row(1)?;
    /// assert_eq!(row.index(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn index(&self) -> usize {
        self.windows[0].start
    }

    /// Returns the indices of the row's elements on axis `axis`, as a range in the flat columns of
    /// this axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let row = table.row(1)?;
    /// assert_eq!((row.range(0)?, row.range(1)?), (1..2, 2..3));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the table has no such axis.
    pub fn range(&self, axis: usize) -> Result<Range<usize>> {
        self.windows.get(axis).cloned().ok_or_else(|| Error::NoSuchAxis {
            what: "the table".into(),
            axis: i64::try_from(axis).unwrap_or(i64::MAX),
            ndim: self.table.ndim(),
        })
    }

    /// Returns the number of elements on axis 1 (events); 0 if the table has only axis 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let row = table.row(1)?;
    /// assert_eq!(row.len(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.windows.get(1).map_or(0, Range::len)
    }

    /// Returns whether there are no elements on axis 1.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let row = table.row(1)?;
    /// assert!(!row.is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the values of a column in this row as a flat array, which shares the buffer of the
    /// column.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let row = table.row(1)?;
    /// assert_eq!(row.values("code")?.as_ref(), &UInt16Array::from(vec![9]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`] when the table has no such column.
    pub fn values(&self, column: &str) -> Result<ArrayRef> {
        let column = self.table.column(column)?;
        let window = &self.windows[column.axis()];
        Ok(column.values().slice(window.start, window.len()))
    }

    /// Returns the row's values of a primitive column as a slice; values at nulls are unspecified.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::{array::UInt16Array, datatypes::UInt16Type};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// assert_eq!(table.row(0)?.typed::<UInt16Type>("code")?, [7, 8]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such column, or it has another type.
    pub fn typed<T: ArrowPrimitiveType>(&self, column: &str) -> Result<&'a [T::Native]> {
        let column = self.table.column(column)?;
        let values = column.values().as_primitive_opt::<T>().ok_or_else(|| {
            Error::type_of(
                format!("column {:?}", column.name()),
                format!(
                    "{}, the requested type (cast the column, or request its own type)",
                    T::DATA_TYPE
                ),
                column.data_type(),
            )
        })?;
        Ok(&values.values()[self.windows[column.axis()].clone()])
    }

    /// Returns a view of only the events `events` (elements of axis 1), counted from 0 in this row.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let last = table.row(0)?.events(1..3)?;
    /// assert_eq!(last.values("code")?.as_ref(), &UInt16Array::from(vec![8, 9]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the range exceeds the row.
    pub fn events(&self, events: Range<usize>) -> Result<Self> {
        if events.start > events.end || events.end > self.len() {
            return Err(Error::OutOfRange {
                axis: 1,
                index: i64::try_from(events.start.max(events.end)).unwrap_or(i64::MAX),
                size: self.len(),
            });
        }
        let mut windows = self.windows.clone();
        let start = self.windows.get(1).map_or(0, |w| w.start);
        let mut window = start + events.start..start + events.end;
        for (axis, slot) in windows.iter_mut().enumerate().skip(1) {
            *slot = window.clone();
            if let Some(next) = self.table.axes().get(axis) {
                window = next.layout().ranges(window);
            }
        }
        Ok(Self { table: self.table, windows })
    }

    /// Returns the view as a table of one row.
    ///
    /// Shares all buffers.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let row = table.row(1)?;
    /// assert_eq!((row.range(1)?, row.is_empty(), row.to_table()?.num_rows()), (2..3, false, 1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: the ranges of a view are within its table.
    pub fn to_table(&self) -> Result<RaggedTable> {
        let index = self.index();
        let row = self.table.slice(index, 1)?;
        let whole = self.table.windows(index..index + 1)?;
        if whole == self.windows {
            return Ok(row);
        }
        row.narrow_to(&self.windows, &whole)
    }
}
