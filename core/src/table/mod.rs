//! [`RaggedTable`]: nested columns that share axes; each axis stores its offsets once.

mod arrow;
mod builder;
mod column;
mod common_nulls;
mod concat;
mod display;
mod equal;
mod gather;
mod history;
mod index;
mod key_runs;
mod long;
mod reshape;
mod row;
mod scalar;
mod sort;
mod stats;
mod take;

use std::ops::Range;
use std::sync::Arc;

use ::arrow::array::Array;

use crate::array::ranges::check_row_range;
use crate::array::{Layout, ListAxis, RaggedArray, resolve_axis};
use crate::error::{Error, Result};

pub use self::arrow::{AXES_METADATA, unzip, zip};
pub(crate) use self::arrow::{IncomingColumn, assemble_table};
pub use builder::RaggedTableBuilder;
pub use column::Column;
pub(crate) use concat::join_layouts;
pub use concat::promote_types;
pub use equal::NanComparison;
pub(crate) use history::EventHistory;
pub use long::{LongOptions, NestOptions, UnsortedRows};
pub use reshape::FlattenFill;
pub use row::Row;
pub use scalar::Scalar;
pub use sort::SortKey;
pub use stats::{ColumnStats, LengthHistogram, TableStats};

/// One axis of a table: its name, its parent and its layout.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::table::RaggedTable;
/// let table = RaggedTable::builder().names(["patient", "visit"]).lengths([2, 0])?.build()?;
/// let visits = &table.axes()[0];
/// assert_eq!((visits.name(), visits.parent()), (Some("visit"), 0));
/// assert_eq!(visits.layout().children(), 2);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Axis {
    name: Option<Arc<str>>,
    parent: usize,
    layout: Layout,
}

impl Axis {
    /// Returns the name, such as `event`; `None` if the axis has no name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder().names(["patient", "visit"]).lengths([2, 0])?.build()?;
    /// let visits = &table.axes()[0];
    /// assert_eq!((visits.name(), visits.layout().max_length()), (Some("visit"), 2));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the index of the parent axis: the previous axis, whose elements hold the lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder().lengths([2, 1])?.lengths([1, 0, 4])?.build()?;
    /// assert_eq!((table.axes()[0].parent(), table.axes()[1].parent()), (0, 1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn parent(&self) -> usize {
        self.parent
    }

    /// Returns the lists of elements of this axis, one per element of the parent axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder().lengths([2, 0, 1])?.build()?;
    /// let layout = table.axes()[0].layout();
    /// assert_eq!((layout.lists(), layout.children(), layout.max_length()), (3, 3, 2));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// A table of nested columns whose axes are stored once and shared by all columns.
///
/// Axis 0 is the rows; axis `k` has one list of elements per element of axis `k - 1`. A column
/// belongs to one axis and is a flat Arrow array with one value per element of the axis. Memory
/// holds these values plus one offset per list of each axis. Access to a row takes constant time;
/// clones, slices and row views share all buffers.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::{Int32Array, UInt16Array};
/// use serrate::table::RaggedTable;
///
/// // two patients with 3 and 1 visits, which have 2, 4, 1 and 3 codes
/// let table = RaggedTable::builder()
///     .names(["patient", "visit", "code"])
///     .lengths([3, 1])?
///     .lengths([2, 4, 1, 3])?
///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
///     .build()?;
/// assert_eq!(table.num_rows(), 2);
/// assert_eq!(table.array("code")?.max_shape(), [2, 3, 4]);
/// assert_eq!(table.row(1)?.values("code")?.len(), 3);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RaggedTable {
    rows: usize,
    row_name: Option<Arc<str>>,
    axes: Vec<Axis>,
    columns: Vec<Column>,
    scalars: Vec<Scalar>,
    /// Whether an integer index removed the only axis of the table, so that only scalars are left.
    point: bool,
}

impl RaggedTable {
    /// Returns a builder of a table from flat values and the lengths, offsets or bounds of lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("day", 1, Arc::new(Int32Array::from(vec![0, 30, 5])))
    ///     .build()?;
    /// assert_eq!(table.array("day")?.lengths(1)?, [2, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn builder() -> RaggedTableBuilder {
        RaggedTableBuilder::default()
    }

    /// Builds a table from its parts; `axes[k - 1]` is the name and the layout of axis `k`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::array::Offsets;
    /// use serrate::table::{Column, RaggedTable};
    /// let visits = Offsets::from_lengths([2, 1])?;
    /// let code = Column::new("code", 1, Arc::new(Int32Array::from(vec![7, 8, 9])));
    /// let table = RaggedTable::try_new(
    ///     2,
    ///     Some("patient".into()),
    ///     vec![(Some("visit".into()), visits.into())],
    ///     vec![code],
    /// )?;
    /// assert_eq!(table.axis_name(1), Some("visit"));
    /// assert_eq!(table.array("code")?.lengths(1)?, [2, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of lists of an axis differs from the number of elements of the axis above,
    /// the length of a column differs from its axis, or two columns share a name.
    pub fn try_new(
        rows: usize,
        row_name: Option<Arc<str>>,
        axes: Vec<(Option<Arc<str>>, Layout)>,
        columns: Vec<Column>,
    ) -> Result<Self> {
        let mut expected = rows;
        for (i, (_, layout)) in axes.iter().enumerate() {
            if layout.lists() != expected {
                return Err(Error::Offsets {
                    what: format!("axis {}", i + 1),
                    position: layout.lists().min(expected),
                    message: format!(
                        "this axis has {} list(s), but axis {i} has {expected} element(s); give one list per element",
                        layout.lists()
                    ),
                });
            }
            expected = layout.check_child_count(i + 1)?;
        }
        let axes = axes
            .into_iter()
            .enumerate()
            .map(|(parent, (name, layout))| Axis { name, parent, layout })
            .collect();
        let (scalars, point) = (Vec::new(), false);
        let table = Self { rows, row_name, axes, columns: Vec::new(), scalars, point };
        table.with_columns(columns)
    }

    /// Replaces the columns and keeps the axes.
    ///
    /// Checks the columns like [`try_new`](Self::try_new).
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
    /// use serrate::table::Column;
    /// let token = Column::new("token", 1, Arc::new(Int32Array::from(vec![1, 2, 3])));
    /// assert_eq!(table.with_columns(vec![token])?.array("token")?.lengths(1)?, [2, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If two columns share a name, a column has the name of a scalar, the axis of a column does
    /// not exist, its length differs from the axis, or a null list of a column has elements.
    pub fn with_columns(&self, columns: Vec<Column>) -> Result<Self> {
        for (i, column) in columns.iter().enumerate() {
            let same_name = |c: &Column| c.name() == column.name();
            if columns[..i].iter().any(same_name) {
                return Err(Error::invalid(format!(
                    "two columns are named {:?}; rename one of them",
                    column.name()
                )));
            }
            if self.scalar(column.name()).is_ok() {
                return Err(Error::invalid(format!(
                    "a column and a scalar of the table are both named {:?}; rename the column",
                    column.name()
                )));
            }
            let expected = self.axis_len(column.axis()).map_err(|_| Error::NoSuchAxis {
                what: format!("the table of column {:?}", column.name()),
                axis: i64::try_from(column.axis()).unwrap_or(i64::MAX),
                ndim: self.ndim(),
            })?;
            if column.values().len() != expected {
                return Err(Error::ColumnLength {
                    column: column.name().into(),
                    axis: column.axis(),
                    expected,
                    found: column.values().len(),
                });
            }
            for (level, nulls) in column.list_nulls().iter().enumerate() {
                // `ListAxis::try_new` checks that there is one bit per list, and that null lists
                // are empty.
                ListAxis::try_new(self.axes[level].layout.clone(), nulls.clone())?;
            }
        }
        Ok(Self { columns, ..self.clone() })
    }

    /// Returns the number of rows: the length of axis 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 0, 1, 0])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// assert_eq!((table.num_rows(), table.axis_len(1)?), (4, 3));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of axes, rows included; 0 if an integer index removed the last axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!(table.ndim(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn ndim(&self) -> usize {
        if self.point { 0 } else { self.axes.len() + 1 }
    }

    /// Returns the number of axes of the shallowest column, but at most 2; `None` without columns.
    ///
    /// The result is 1 if a column is on axis 0, otherwise 2, even if all columns are on axis 2:
    /// `min_n_dims` in Python's nested_ragged_tensors returns the same.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!(table.min_ndim(), Some(1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn min_ndim(&self) -> Option<usize> {
        self.columns.iter().map(|c| c.axis().min(1) + 1).min()
    }

    /// Returns the number of axes of the deepest column; `None` without columns.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!(table.max_ndim(), Some(3));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn max_ndim(&self) -> Option<usize> {
        self.columns.iter().map(|c| c.axis() + 1).max()
    }

    /// Returns the axes after the rows; `axes()[k - 1]` is axis `k`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!(table.axes()[0].layout().lists(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns the name of an axis; 0 is the rows.
    ///
    /// Returns `None` if the axis has no name or does not exist.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!((table.axis_name(1), table.axis_name(3)), (Some("visit"), None));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn axis_name(&self, axis: usize) -> Option<&str> {
        match axis.checked_sub(1) {
            None => self.row_name.as_deref(),
            Some(i) => self.axes.get(i).and_then(Axis::name),
        }
    }

    /// Returns the number of elements of an axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!((table.axis_len(1)?, table.axis_len(2)?), (4, 10));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchAxis`] when the table has no such axis.
    pub fn axis_len(&self, axis: usize) -> Result<usize> {
        match axis.checked_sub(1) {
            None => Ok(self.rows),
            Some(_) => Ok(self.layout(axis)?.children()),
        }
    }

    /// Returns the layout of axis `axis` (1 or more).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!(table.layout(2)?.max_length(), 4);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchAxis`] for axis 0, which has no lists, and when the table has no such axis.
    pub fn layout(&self, axis: usize) -> Result<&Layout> {
        axis.checked_sub(1).and_then(|i| self.axes.get(i)).map(Axis::layout).ok_or_else(|| {
            Error::NoSuchAxis {
                what: "the table".into(),
                axis: i64::try_from(axis).unwrap_or(i64::MAX),
                ndim: self.ndim(),
            }
        })
    }

    /// Resolves the index of an axis; negative indices count from the innermost axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!(table.resolve_axis(-1)?, 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchAxis`] when the table has no such axis.
    pub fn resolve_axis(&self, axis: i64) -> Result<usize> {
        resolve_axis(axis, self.ndim(), "the table")
    }

    /// Returns the columns.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// # use arrow::datatypes::DataType;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let found: Vec<_> = table.columns().iter().map(|c| (c.name(), c.axis(), c.data_type())).collect();
    /// assert_eq!(found, [("age", 0, &DataType::Int32), ("code", 1, &DataType::UInt16)]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the names of the columns.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!(table.names().collect::<Vec<_>>(), ["age", "code"]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(Column::name)
    }

    /// Returns the columns on axis `axis`; none if the table has no such axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!(table.columns_at(2).count(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn columns_at(&self, axis: usize) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(move |c| c.axis() == axis)
    }

    /// Returns the column with this name.
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
    /// let code = table.column("code")?;
    /// assert_eq!((code.axis(), code.values().len()), (1, 3));
    /// assert!(table.column("time").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`] when no column has this name (a scalar is not a column); the message
    /// lists the columns.
    pub fn column(&self, name: &str) -> Result<&Column> {
        self.columns.iter().find(|c| c.name() == name).ok_or_else(|| Error::NoSuchColumn {
            name: name.into(),
            available: self.list_known_names(),
        })
    }

    /// Returns a column and the axes above it as one array.
    ///
    /// Shares all buffers.
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
    /// assert_eq!(table.array("code")?.lengths(1)?, [2, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`] when there is no such column.
    pub fn array(&self, name: &str) -> Result<RaggedArray> {
        self.column_array(self.column(name)?)
    }

    /// Returns a column of this table as an array, like [`array`](Self::array).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert_eq!(table.column_array(table.column("code")?)?.max_shape(), [2, 3, 4]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the column comes from another table whose lists or null lists do not fit the axes of
    /// this table.
    ///
    /// # Panics
    /// When the column is on an axis that this table does not have.
    pub fn column_array(&self, column: &Column) -> Result<RaggedArray> {
        let axes = self.axes[..column.axis()]
            .iter()
            .zip(column.list_nulls())
            .map(|(axis, nulls)| ListAxis::try_new(axis.layout.clone(), nulls.clone()))
            .collect::<Result<_>>()?;
        RaggedArray::try_new(self.rows, axes, column.values().clone())
    }

    /// Keeps only the columns and scalars `names`, in the order of `names`.
    ///
    /// Keeps all axes, also those without a column.
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
    /// let codes = table.select(&["code"])?;
    /// assert_eq!(codes.names().collect::<Vec<_>>(), ["code"]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`] when neither a column nor a scalar has one of the names.
    pub fn select(&self, names: &[&str]) -> Result<Self> {
        let (mut columns, mut scalars) = (Vec::with_capacity(names.len()), Vec::new());
        for name in names {
            match self.scalar(name) {
                Ok(scalar) => scalars.push(scalar.clone()),
                Err(_) => columns.push(self.column(name)?.clone()),
            }
        }
        Ok(Self { columns, scalars, ..self.clone() })
    }

    /// Names the axes, rows first; an axis for which no name is given becomes unnamed.
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
    /// let named = table.with_axis_names(["patient", "event"])?;
    /// assert_eq!(named.axis_name(1), Some("event"));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more names than axes.
    pub fn with_axis_names<S: AsRef<str>>(
        mut self,
        names: impl IntoIterator<Item = S>,
    ) -> Result<Self> {
        let mut names = names.into_iter().map(|n| Arc::<str>::from(n.as_ref()));
        self.row_name = names.next();
        for axis in &mut self.axes {
            axis.name = names.next();
        }
        match names.count() {
            0 => Ok(self),
            more => Err(Error::invalid(format!(
                "{} names are given, but the table has {} axes, rows included; give at most one name per axis",
                self.ndim() + more,
                self.ndim()
            ))),
        }
    }

    /// Returns, for each axis, the range of elements that belong to the rows `rows`; the first
    /// range is `rows` itself.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 0, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// assert_eq!(table.windows(1..3)?, [1..3, 2..3]);
    /// assert_eq!((table.ndim(), table.min_ndim(), table.max_ndim()), (2, Some(2), Some(2)));
    /// assert_eq!((table.axes()[0].parent(), table.axes()[0].layout().lists()), (0, 3));
    /// assert_eq!((table.layout(1)?.children(), table.resolve_axis(-1)?), (3, 1));
    /// let column = table.columns_at(1).next().unwrap();
    /// assert_eq!(table.column_array(column)?, table.array("code")?);
    /// assert!(table.nbytes() >= 6);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when the range exceeds the rows, or starts after its own end.
    pub fn windows(&self, rows: Range<usize>) -> Result<Vec<Range<usize>>> {
        check_row_range(&rows, self.rows)?;
        let mut windows = Vec::with_capacity(self.ndim());
        let mut window = rows;
        for axis in &self.axes {
            let next = axis.layout.ranges(window.clone());
            windows.push(std::mem::replace(&mut window, next));
        }
        windows.push(window);
        Ok(windows)
    }

    /// Returns the `length` rows from row `offset` on, sharing all buffers; O(axes + columns).
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
    /// let second = table.slice(1, 1)?;
    /// assert_eq!((second.num_rows(), second.axis_len(1)?), (1, 1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when the range exceeds the rows.
    pub fn slice(&self, offset: usize, length: usize) -> Result<Self> {
        let windows = self.windows(offset..offset.saturating_add(length))?;
        let axes = self
            .axes
            .iter()
            .zip(&windows)
            .map(|(axis, w)| Axis {
                name: axis.name.clone(),
                parent: axis.parent,
                layout: axis.layout.slice(w.start, w.len()),
            })
            .collect();
        let columns = self.columns.iter().map(|c| c.slice(&windows)).collect();
        let (row_name, scalars) = (self.row_name.clone(), self.scalars.clone());
        Ok(Self { rows: windows[0].len(), row_name, axes, columns, scalars, point: self.point })
    }

    /// Returns one row as a view; O(axes), copies nothing.
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
    /// let row = table.row(0)?;
    /// assert_eq!(row.len(), 2);
    /// assert_eq!(row.values("code")?.as_ref(), &UInt16Array::from(vec![7, 8]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when there is no such row.
    pub fn row(&self, index: usize) -> Result<Row<'_>> {
        Row::new(self, index)
    }

    /// Keeps only a part of a table that is one row of a larger table. On axis `k`, this table has
    /// the elements `whole[k]` of the larger table, and keeps the elements `windows[k]` of the
    /// larger table.
    fn narrow_to(&self, windows: &[Range<usize>], whole: &[Range<usize>]) -> Result<Self> {
        let within: Vec<Range<usize>> = windows
            .iter()
            .zip(whole)
            .map(|(w, all)| w.start - all.start..w.end - all.start)
            .collect();
        let mut axes = Vec::with_capacity(self.axes.len());
        for (i, axis) in self.axes.iter().enumerate() {
            let layout = if i == 0 {
                // The table has one row, so axis 1 has one list, which gets a new length.
                crate::array::Offsets::from_lengths([within[1].len()])?.into()
            } else {
                axis.layout.slice(within[i].start, within[i].len())
            };
            axes.push(Axis { name: axis.name.clone(), parent: axis.parent, layout });
        }
        let columns = self.columns.iter().map(|c| c.slice(&within)).collect();
        Ok(Self { axes, columns, ..self.clone() })
    }

    /// Returns the number of bytes of values, validity and offsets that this table uses.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .names(["patient", "visit", "code"])
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// assert!(table.nbytes() >= 2 * 4 + 10 * 2); // the values of both columns
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        let offsets: usize = self.axes.iter().map(|a| a.layout.count_bytes()).sum();
        let values: usize = self
            .columns
            .iter()
            .map(|c| c.values().to_data().get_slice_memory_size().unwrap_or(0))
            .sum();
        offsets + values
    }
}
