use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use safetensors::Dtype;

use super::layout::{FileLayout, NrtColumn};
use super::{ReadOptions, tensor_values};
use crate::array::Offsets;
use crate::error::{Error, Result};
use crate::io::safetensors::{FileAccess, SafetensorsFile};
use crate::table::{Column, RaggedTable};

/// An `.nrt` file.
///
/// Opening reads and checks only the header. [`read`](Self::read) reads and checks the bounds of
/// the rows and the values of the requested columns. With a memory map, values are returned in
/// place, in buffers whose memory size does not include the rest of the map. Clones share the file.
///
/// Values are returned as stored: NaN does not become NULL. Columns are sorted by axis, then name.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::UInt16Array;
/// use serrate::io::nrt::{self, NrtFile, ReadOptions, WriteOptions};
/// use serrate::table::RaggedTable;
///
/// let table = RaggedTable::builder()
///     .lengths([2, 0, 1])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.nrt");
/// nrt::write(&path, &table, &WriteOptions::default())?;
///
/// let file = NrtFile::open(&path, &ReadOptions::default())?;
/// assert_eq!((file.num_rows(), file.ndim(), file.path()), (3, 2, path.as_path()));
/// assert_eq!(file.tensors().tensor("dim1/code")?.shape(), [3]);
/// assert_eq!(file.table()?, table);
/// assert_eq!(file.read(2..3, Some(&["code"]))?.row(0)?.values("code")?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NrtFile {
    inner: Arc<FileState>,
    large_lists: bool,
}

#[derive(Debug)]
struct FileState {
    file: SafetensorsFile,
    layout: Arc<FileLayout>,
}

impl NrtFile {
    /// Opens a file.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// use serrate::io::nrt::{NrtFile, ReadOptions};
    /// let options = ReadOptions { mmap: false, ..Default::default() };
    /// assert_eq!(NrtFile::open(&path, &options)?.num_rows(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read or is not a safetensors file, the name of a tensor does not begin
    /// with its axis (`dim1/`), Arrow lacks the type of a tensor, the bounds (list ends) of an axis
    /// are missing or not integers, or tensors of the same axis differ in length.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        let access = FileAccess::from_mmap(options.mmap);
        Self::new(SafetensorsFile::open(path, access)?, options.large_lists)
    }

    /// Opens a file like [`open`](Self::open) from an open handle; `path` is used in errors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// use serrate::io::nrt::NrtFile;
    /// let handle = std::fs::File::open(&path)?;
    /// let file = NrtFile::from_file(&path, handle, &Default::default())?;
    /// assert_eq!(file.num_rows(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub fn from_file(path: impl AsRef<Path>, file: File, options: &ReadOptions) -> Result<Self> {
        let access = FileAccess::from_mmap(options.mmap);
        Self::new(SafetensorsFile::from_file(path, file, access)?, options.large_lists)
    }

    /// Opens a file whose bytes are in memory; `name` is used in errors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// use serrate::io::nrt::NrtFile;
    /// let bytes = bytes::Bytes::from(std::fs::read(&path)?);
    /// assert_eq!(NrtFile::from_bytes("memory", bytes)?.table()?, table);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the bytes are not a safetensors file or not an `.nrt` file, as in [`open`](Self::open).
    pub fn from_bytes(name: impl AsRef<Path>, bytes: Bytes) -> Result<Self> {
        Self::new(SafetensorsFile::from_bytes(name, bytes)?, false)
    }

    fn new(file: SafetensorsFile, large_lists: bool) -> Result<Self> {
        let layout = Arc::new(FileLayout::from_file(&file)?);
        Ok(Self::from_layout(file, layout, large_lists))
    }

    pub(super) fn from_layout(
        file: SafetensorsFile,
        layout: Arc<FileLayout>,
        large_lists: bool,
    ) -> Self {
        Self { inner: Arc::new(FileState { file, layout }), large_lists }
    }

    /// Returns the same file with 64-bit or 32-bit offsets; see [`ReadOptions::large_lists`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// # use arrow::datatypes::DataType;
    /// use serrate::io::nrt::NrtFile;
    /// let file = NrtFile::open(&path, &Default::default())?.with_large_lists(true);
    /// assert!(matches!(file.schema().field(0).data_type(), DataType::LargeList(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_large_lists(&self, large_lists: bool) -> Self {
        Self { inner: Arc::clone(&self.inner), large_lists }
    }

    /// Returns the number of rows.
    pub fn num_rows(&self) -> usize {
        self.inner.layout.rows
    }

    /// Returns the number of axes, including the rows.
    pub fn ndim(&self) -> usize {
        self.inner.layout.ndim()
    }

    /// Returns the number of elements of an axis according to the header; axis 0 is the rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// use serrate::io::nrt::NrtFile;
    /// let file = NrtFile::open(&path, &Default::default())?;
    /// assert_eq!((file.ndim(), file.axis_len(0)?, file.axis_len(1)?), (2, 3, 3));
    /// assert!(file.axis_len(2).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file has no such axis.
    pub fn axis_len(&self, axis: usize) -> Result<usize> {
        self.inner.layout.axis_len(self.path(), axis)
    }

    /// Returns the columns, sorted by axis, then name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// use serrate::io::nrt::NrtFile;
    /// let file = NrtFile::open(&path, &Default::default())?;
    /// let names: Vec<_> = file.columns().iter().map(|column| column.name()).collect();
    /// assert_eq!(names, ["code"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn columns(&self) -> &[NrtColumn] {
        &self.inner.layout.columns
    }

    /// Returns a column by name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// use serrate::io::nrt::NrtFile;
    /// let file = NrtFile::open(&path, &Default::default())?;
    /// assert_eq!((file.column("code")?.axis(), file.column("code")?.len()), (1, 3));
    /// assert!(file.column("age").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file has no such column; the message lists the columns.
    pub fn column(&self, name: &str) -> Result<&NrtColumn> {
        self.inner.layout.find_column(name)
    }

    /// Returns the Arrow schema of the columns; a column on axis `k` has `k` levels of lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// # use arrow::datatypes::DataType;
    /// use serrate::io::nrt::NrtFile;
    /// let schema = NrtFile::open(&path, &Default::default())?.schema();
    /// assert_eq!(schema.field(0).name(), "code");
    /// assert!(matches!(schema.field(0).data_type(), DataType::List(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schema(&self) -> SchemaRef {
        self.inner.layout.schema(self.large_lists)
    }

    /// Returns the name of the file.
    pub fn path(&self) -> &Path {
        self.inner.file.path()
    }

    /// Returns the underlying safetensors file.
    pub fn tensors(&self) -> &SafetensorsFile {
        &self.inner.file
    }

    /// Reads the whole file as a table.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// use serrate::io::nrt::NrtFile;
    /// assert_eq!(NrtFile::open(&path, &Default::default())?.table()?, table);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`read`](Self::read), for all rows and columns.
    pub fn table(&self) -> Result<RaggedTable> {
        self.read(0..self.num_rows(), None)
    }

    /// Reads the rows `rows` of the columns `columns` as a table, with the columns in this order;
    /// `None` reads all columns and axes.
    ///
    /// The table has the axes down to the deepest axis of the given columns; deeper axes are not
    /// read. An empty list of columns gives a table with only a number of rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// use serrate::io::nrt::NrtFile;
    /// let file = NrtFile::open(&path, &Default::default())?;
    /// let rows = file.read(1..3, Some(&["code"]))?;
    /// assert_eq!(rows.array("code")?.lengths(1)?, [0, 1]);
    /// assert!(file.read(1..4, None).is_err()); // the file has 3 rows
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the rows are out of range, a column does not exist, a bound (the end of a list) in the
    /// rows is negative, less than the previous bound or greater than the number of values, a BOOL
    /// byte is neither 0 nor 1, or 2^31 values or more are read at once without
    /// [`ReadOptions::large_lists`].
    pub fn read(&self, rows: Range<usize>, columns: Option<&[&str]>) -> Result<RaggedTable> {
        self.read_deep(rows, columns, 0)
    }

    pub(crate) fn read_deep(
        &self,
        rows: Range<usize>,
        columns: Option<&[&str]>,
        depth: usize,
    ) -> Result<RaggedTable> {
        let (columns, deepest) = self.inner.layout.select_columns(columns)?;
        self.inner.layout.check_rows(&rows)?;
        self.read_columns(0, rows, &columns, depth.max(deepest))
    }

    /// Reads rows and columns like [`read`](Self::read), but the table also has all axes of the
    /// file down to `depth`, even if no column is on them.
    #[cfg(feature = "sql")]
    #[doc(hidden)]
    pub fn read_to(
        &self,
        rows: Range<usize>,
        columns: &[&str],
        depth: usize,
    ) -> Result<RaggedTable> {
        let (columns, deepest) = self.inner.layout.select_columns(Some(columns))?;
        self.inner.layout.check_rows(&rows)?;
        self.read_columns(0, rows, &columns, depth.max(deepest))
    }

    /// Reads elements of axis 1 as the rows of a table. No column may be on axis 0.
    ///
    /// To get these elements, [`read`](Self::read) would have to read whole rows of the file, with
    /// the bounds of their other elements.
    #[doc(hidden)]
    pub fn read_elements(
        &self,
        elements: Range<usize>,
        columns: Option<&[&str]>,
    ) -> Result<RaggedTable> {
        let (columns, deepest) = self.inner.layout.select_columns(columns)?;
        self.read_columns(1, elements, &columns, deepest)
    }

    /// Reads the elements `rows` of axis `first` as the rows of a table, which has all axes down to
    /// `depth`.
    fn read_columns(
        &self,
        first: usize,
        rows: Range<usize>,
        columns: &[&NrtColumn],
        depth: usize,
    ) -> Result<RaggedTable> {
        let file = &self.inner.file;
        let mut windows = vec![rows.clone()];
        let mut axes = Vec::with_capacity(depth);
        let mut window = rows.clone();
        for axis in self.inner.layout.axes.iter().take(depth).skip(first) {
            let (offsets, elements) = axis.offsets(file, window, self.large_lists)?;
            axes.push((None, Offsets::into(offsets)));
            windows.push(elements.clone());
            window = elements;
        }
        let columns = columns
            .iter()
            .map(|c| {
                let axis = c.axis().checked_sub(first).ok_or_else(|| {
                    Error::invalid(format!(
                        "column {:?} has {} levels of lists per row, but elements of level {first} are requested; select columns with at least {first} levels",
                        c.name(),
                        c.axis()
                    ))
                })?;
                let window = windows.get(axis).cloned().unwrap_or_default();
                let values = tensor_values::read_values(file, c.tensor(), window)?;
                Ok(Column::new(c.name(), axis, values))
            })
            .collect::<Result<_>>()?;
        RaggedTable::try_new(rows.len(), None, axes, columns)
    }

    /// Returns how many elements of `axis` precede `row`, which may be the number of rows.
    ///
    /// Reads only one bound (the end of a list) per axis, so a caller can find the size of a range
    /// of rows before it reads the range.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// use serrate::io::nrt::NrtFile;
    /// let file = NrtFile::open(&path, &Default::default())?;
    /// assert_eq!((file.elements_before(1, 1)?, file.elements_before(3, 1)?), (2, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the axis or row does not exist, or a bound exceeds the number of elements of its axis.
    pub fn elements_before(&self, row: usize, axis: usize) -> Result<usize> {
        self.axis_len(axis)?;
        self.inner.layout.check_rows(&(row..row))?;
        let mut position = row;
        for axis in self.inner.layout.axes.iter().take(axis) {
            position = axis.find_list_start(&self.inner.file, position)?;
        }
        Ok(position)
    }

    /// Returns the largest number of rows from the start of `rows` that together have at most
    /// `elements` elements of `axis`, but at least one row.
    ///
    /// Reads only a few bounds (the ends of lists), by a galloping search.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::RaggedTable;
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = RaggedTable::builder().lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// # serrate::io::nrt::write(&path, &table, &Default::default())?;
    /// use serrate::io::nrt::NrtFile;
    /// let file = NrtFile::open(&path, &Default::default())?; // lists of 2, 0 and 1 elements
    /// assert_eq!((file.rows_within(0..3, 1, 2)?, file.rows_within(0..3, 1, 3)?), (2, 3));
    /// assert_eq!(file.rows_within(0..3, 1, 1)?, 1); // one row, although it has 2 elements
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If rows or axis do not exist, or a bound is negative or exceeds the number of elements of
    /// its axis.
    pub fn rows_within(&self, rows: Range<usize>, axis: usize, elements: usize) -> Result<usize> {
        self.inner.layout.check_rows(&rows)?;
        let start = self.elements_before(rows.start, axis)?;
        let limit = start.saturating_add(elements);
        // Invariant: the first `good` rows hold at most `elements` elements or are a single row;
        // the first `bad` rows hold more, or `bad` exceeds the number of rows.
        let (mut good, mut bad) = (rows.len().min(1), rows.len().saturating_add(1));
        // Double the step, then bisect: this reads fewer bounds if few of the rows fit.
        let mut step = 1usize;
        while good < rows.len() && bad > rows.len() {
            let next = good.saturating_add(step).min(rows.len());
            if self.elements_before(rows.start.saturating_add(next), axis)? <= limit {
                good = next;
                step = step.saturating_mul(2);
            } else {
                bad = next;
            }
        }
        while bad.saturating_sub(good) > 1 && good < rows.len() {
            let middle = good.midpoint(bad);
            if self.elements_before(rows.start.saturating_add(middle), axis)? <= limit {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(good)
    }

    /// Checks the whole file: all bounds (the ends of lists) and all BOOL values.
    ///
    /// A read checks only what it returns.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::fs::File;
    /// use std::sync::Arc;
    /// use arrow::array::UInt16Array;
    /// use arrow::datatypes::DataType;
    /// use serrate::RaggedTable;
    /// use serrate::io::nrt::{self, NrtFile, ReadOptions, WriteOptions};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 0, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.nrt");
    /// nrt::write(&path, &table, &WriteOptions::default())?;
    /// let file = NrtFile::from_file(&path, File::open(&path)?, &ReadOptions::default())?;
    /// file.validate()?;
    /// assert_eq!((file.ndim(), file.axis_len(1)?), (2, 3));
    /// assert_eq!((file.elements_before(1, 1)?, file.rows_within(0..3, 1, 2)?), (2, 2));
    /// let column = &file.columns()[0];
    /// assert_eq!((column.name(), column.axis(), column.data_type()), ("code", 1, &DataType::UInt16));
    /// assert_eq!((column.is_empty(), column.nbytes(), column.dtype().to_string().as_str()), (false, 6, "U16"));
    /// assert_eq!(file.tensors().tensors().len(), 2);
    /// let wide = file.with_large_lists(true).schema();
    /// assert!(matches!(wide.field(0).data_type(), DataType::LargeList(_)));
    /// let bytes = bytes::Bytes::from(std::fs::read(&path)?);
    /// assert_eq!(NrtFile::from_bytes("t", bytes)?.table()?, table);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a bound is negative, less than the previous bound or greater than the number of values, a
    /// BOOL byte is neither 0 nor 1, or the file cannot be read. The message has the tensor and
    /// position of the first such bound or byte.
    pub fn validate(&self) -> Result<()> {
        let mut window = 0..self.inner.layout.rows;
        for axis in &self.inner.layout.axes {
            // A valid file may have more values than 32-bit offsets allow, so use 64-bit offsets.
            window = axis.offsets(&self.inner.file, window, true)?.1;
        }
        for column in self.columns().iter().filter(|c| c.dtype() == Dtype::BOOL) {
            tensor_values::read_values(&self.inner.file, column.tensor(), 0..column.len())?;
        }
        Ok(())
    }

    /// Returns the range of the elements that `rows` have on each of the axes 0 to `depth`. Reads
    /// two bounds (list ends) per axis.
    #[cfg(feature = "object_store")]
    pub(super) fn read_windows(
        &self,
        rows: Range<usize>,
        depth: usize,
    ) -> Result<Vec<Range<usize>>> {
        self.inner.layout.check_rows(&rows)?;
        let mut windows = vec![rows];
        for axis in self.inner.layout.axes.iter().take(depth) {
            let lists = windows.last().cloned().unwrap_or_default();
            windows.push(axis.read_window(&self.inner.file, lists)?);
        }
        Ok(windows)
    }
}
