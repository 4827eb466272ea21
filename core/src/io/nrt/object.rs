use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
#[cfg(feature = "sql")]
use object_store::GetResult;
use object_store::ObjectStore;
use object_store::path::Path as Location;

use super::file::NrtFile;
use super::layout::{FileLayout, NrtColumn};
use crate::error::Result;
pub use crate::io::safetensors::ObjectOptions;
use crate::io::safetensors::{
    ByteSource, FetchedPart, SafetensorsFile, SafetensorsHeader, StoredObject, is_covered,
};
use crate::table::RaggedTable;

/// An `.nrt` file in an object store (cloud, HTTP or memory).
///
/// Opening reads the header, usually with one request. [`read`](Self::read) requests bounds axis by
/// axis, then all values at once: at most `d` + 1 rounds of requests if the deepest column is on
/// axis `d`. It fetches only bounds, values and the short gaps between them
/// ([`ObjectOptions::gap`]), and checks the same as [`NrtFile`].
///
/// All requests read the same version of the object, by the ETag of the first response (if the
/// store has ETags); an object that is replaced in the meantime is an error. Clones share the
/// header.
///
/// ```
/// # use serrate_core as serrate;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> { futures::executor::block_on(async {
/// use std::sync::Arc;
/// use arrow::array::UInt16Array;
/// use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
/// use serrate::io::nrt::{self, NrtObject, ObjectOptions, WriteOptions};
/// use serrate::table::RaggedTable;
///
/// let table = RaggedTable::builder()
///     .lengths([2, 0, 1])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// let dir = tempfile::tempdir()?;
/// nrt::write(dir.path().join("t.nrt"), &table, &WriteOptions::default())?;
/// let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
/// let at = Path::from("train/t.nrt");
/// store.put(&at, std::fs::read(dir.path().join("t.nrt"))?.into()).await?;
///
/// let file = NrtObject::open(store, at, &ObjectOptions::default()).await?;
/// assert_eq!((file.num_rows(), file.ndim(), file.columns().len()), (3, 2, 1));
/// assert_eq!(file.schema().field(0).name(), "code");
/// assert_eq!((file.path().to_str(), file.is_empty()), (Some("train/t.nrt"), false));
/// assert!(file.len() > 0 && file.bytes_read() > 0);
/// assert_eq!(file.read(2..3, Some(&["code"])).await?.row(0)?.values("code")?.len(), 1);
/// assert_eq!(file.table().await?, table);
/// # Ok(()) }) }
/// ```
#[derive(Clone, Debug)]
pub struct NrtObject {
    inner: Arc<ObjectState>,
}

#[derive(Debug)]
struct ObjectState {
    object: StoredObject,
    header: Arc<SafetensorsHeader>,
    layout: Arc<FileLayout>,
    /// Byte ranges fetched on opening. They are the whole file if it is small.
    head: Vec<FetchedPart>,
}

impl NrtObject {
    /// Opens an object of a store; errors name its location.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { futures::executor::block_on(async {
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = serrate::RaggedTable::builder();
    /// # let table = table.lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # serrate::io::nrt::write(dir.path().join("t.nrt"), &table, &Default::default())?;
    /// # let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    /// # let at = Path::from("t.nrt");
    /// # store.put(&at, std::fs::read(dir.path().join("t.nrt"))?.into()).await?;
    /// use serrate::io::nrt::NrtObject;
    /// let file = NrtObject::open(Arc::clone(&store), at, &Default::default()).await?;
    /// assert_eq!((file.num_rows(), file.ndim()), (3, 2));
    /// assert!(NrtObject::open(store, Path::from("x"), &Default::default()).await.is_err());
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// If the object does not exist or is not accessible, or for the reasons of [`NrtFile::open`].
    pub async fn open(
        store: Arc<dyn ObjectStore>,
        location: Location,
        options: &ObjectOptions,
    ) -> Result<Self> {
        let name = PathBuf::from(location.as_ref());
        let (object, head) = StoredObject::open(store, location, name, *options).await?;
        Self::new(object, head).await
    }

    /// Opens an object from the response to its first request. `name` is the name of the object in
    /// errors; `expected` is the size of the object according to the listing.
    #[cfg(feature = "sql")]
    #[doc(hidden)]
    pub async fn from_first(
        store: Arc<dyn ObjectStore>,
        location: Location,
        name: PathBuf,
        first: GetResult,
        expected: u64,
        options: &ObjectOptions,
    ) -> Result<Self> {
        let (object, head) =
            StoredObject::from_first(store, location, name, first, Some(expected), *options)
                .await?;
        Self::new(object, head).await
    }

    /// Returns a handle to the same file whose counters of requests and fetched bytes start at
    /// zero.
    #[cfg(feature = "sql")]
    #[doc(hidden)]
    pub fn copy_with_zero_counters(&self) -> Self {
        let ObjectState { object, header, layout, head } = self.inner.as_ref();
        let inner = ObjectState {
            object: object.copy_without_counts(),
            header: Arc::clone(header),
            layout: Arc::clone(layout),
            head: head.clone(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns whether the file is from `store` and has the ETag `e_tag`. A missing or weak ETag
    /// matches any other.
    #[cfg(feature = "sql")]
    #[doc(hidden)]
    pub fn is_of(&self, store: &Arc<dyn ObjectStore>, e_tag: Option<&str>) -> bool {
        self.inner.object.is_of(store, e_tag)
    }

    /// Returns an estimate of the memory in bytes of the header and of the byte ranges fetched on
    /// opening.
    #[cfg(feature = "sql")]
    #[doc(hidden)]
    pub fn memory_size(&self) -> usize {
        let parts = self.inner.head.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        let header = usize::try_from(self.inner.header.data_start()).unwrap_or(0);
        // Estimate that the parsed header takes four times the bytes that it has in the file.
        parts.saturating_add(header.saturating_mul(4))
    }

    async fn new(object: StoredObject, head: FetchedPart) -> Result<Self> {
        let (header, mut head) = object.read_header(head).await?;
        let header = Arc::new(header);
        loop {
            let file = make_partial_file(&object, &header, head.clone());
            match FileLayout::from_file(&file) {
                Ok(layout) => {
                    let layout = Arc::new(layout);
                    return Ok(Self {
                        inner: Arc::new(ObjectState { object, header, layout, head }),
                    });
                }
                // The length of an axis without columns is its last bound. Fetch it and try again.
                Err(e) => match file.source().missing() {
                    Some(range) => {
                        head.extend(object.fetch_ranges(std::iter::once(range)).await?);
                        head.sort_by_key(|(start, _)| *start);
                    }
                    None => return Err(e),
                },
            }
        }
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
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { futures::executor::block_on(async {
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = serrate::RaggedTable::builder();
    /// # let table = table.lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # serrate::io::nrt::write(dir.path().join("t.nrt"), &table, &Default::default())?;
    /// # let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    /// # let at = Path::from("t.nrt");
    /// # store.put(&at, std::fs::read(dir.path().join("t.nrt"))?.into()).await?;
    /// use serrate::io::nrt::NrtObject;
    /// let file = NrtObject::open(store, at, &Default::default()).await?;
    /// assert_eq!(file.axis_len(1)?, 3);
    /// assert!(file.axis_len(2).is_err());
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// If the file has no such axis.
    pub fn axis_len(&self, axis: usize) -> Result<usize> {
        self.inner.layout.axis_len(self.path(), axis)
    }

    /// Returns the columns, sorted by axis, then name.
    pub fn columns(&self) -> &[NrtColumn] {
        &self.inner.layout.columns
    }

    /// Returns a column by name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { futures::executor::block_on(async {
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = serrate::RaggedTable::builder();
    /// # let table = table.lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # serrate::io::nrt::write(dir.path().join("t.nrt"), &table, &Default::default())?;
    /// # let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    /// # let at = Path::from("t.nrt");
    /// # store.put(&at, std::fs::read(dir.path().join("t.nrt"))?.into()).await?;
    /// use serrate::io::nrt::NrtObject;
    /// let file = NrtObject::open(store, at, &Default::default()).await?;
    /// assert_eq!(file.column("code")?.axis(), 1);
    /// assert!(file.column("age").is_err());
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// If the file has no such column; the message lists the columns.
    pub fn column(&self, name: &str) -> Result<&NrtColumn> {
        self.inner.layout.find_column(name)
    }

    /// Returns the Arrow schema of the columns; see [`NrtFile::schema`].
    pub fn schema(&self) -> SchemaRef {
        self.inner.layout.schema(self.inner.object.options().large_lists)
    }

    /// Returns the name of the object.
    pub fn path(&self) -> &Path {
        self.inner.object.name()
    }

    /// Returns the size of the object in bytes.
    pub fn len(&self) -> u64 {
        self.inner.object.len()
    }

    /// Returns whether the object is empty; an `.nrt` file never is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes that this handle and its clones have fetched, including gaps.
    pub fn bytes_read(&self) -> u64 {
        self.inner.object.bytes_read()
    }

    /// Returns the number of requests of this handle and its clones that were answered so far.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { futures::executor::block_on(async {
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = serrate::RaggedTable::builder();
    /// # let table = table.lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # serrate::io::nrt::write(dir.path().join("t.nrt"), &table, &Default::default())?;
    /// # let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    /// # let at = Path::from("t.nrt");
    /// # store.put(&at, std::fs::read(dir.path().join("t.nrt"))?.into()).await?;
    /// use serrate::io::nrt::NrtObject;
    /// let file = NrtObject::open(store, at, &Default::default()).await?;
    /// let (requests, bytes) = (file.requests(), file.bytes_read());
    /// assert!(requests >= 1 && bytes > 0); // the header
    /// file.table().await?;
    /// assert!(file.requests() >= requests && file.bytes_read() >= bytes);
    /// # Ok(()) }) }
    /// ```
    pub fn requests(&self) -> u64 {
        self.inner.object.requests()
    }

    /// Reads the whole file as a table.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { futures::executor::block_on(async {
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = serrate::RaggedTable::builder();
    /// # let table = table.lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # serrate::io::nrt::write(dir.path().join("t.nrt"), &table, &Default::default())?;
    /// # let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    /// # let at = Path::from("t.nrt");
    /// # store.put(&at, std::fs::read(dir.path().join("t.nrt"))?.into()).await?;
    /// use serrate::io::nrt::NrtObject;
    /// let file = NrtObject::open(store, at, &Default::default()).await?;
    /// assert_eq!(file.table().await?, table);
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// Same as [`read`](Self::read).
    pub async fn table(&self) -> Result<RaggedTable> {
        self.read(0..self.num_rows(), None).await
    }

    /// Reads the rows `rows` of the columns `columns` as a table, with the columns in this order;
    /// `None` reads all columns and axes.
    ///
    /// Values that are aligned in the fetched buffers are not copied.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { futures::executor::block_on(async {
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = serrate::RaggedTable::builder();
    /// # let table = table.lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # serrate::io::nrt::write(dir.path().join("t.nrt"), &table, &Default::default())?;
    /// # let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    /// # let at = Path::from("t.nrt");
    /// # store.put(&at, std::fs::read(dir.path().join("t.nrt"))?.into()).await?;
    /// use serrate::io::nrt::NrtObject;
    /// let file = NrtObject::open(store, at, &Default::default()).await?;
    /// let rows = file.read(1..3, Some(&["code"])).await?;
    /// assert_eq!(rows.array("code")?.lengths(1)?, [0, 1]);
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// For the reasons of [`NrtFile::read`], and if the object no longer exists, was replaced since
    /// it was opened, or the response of the store does not match the request.
    pub async fn read(&self, rows: Range<usize>, columns: Option<&[&str]>) -> Result<RaggedTable> {
        self.read_runs(std::slice::from_ref(&rows), columns).await
    }

    /// Reads and concatenates ranges of rows, with as many rounds of requests as one
    /// [`read`](Self::read).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { futures::executor::block_on(async {
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = serrate::RaggedTable::builder();
    /// # let table = table.lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # serrate::io::nrt::write(dir.path().join("t.nrt"), &table, &Default::default())?;
    /// # let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    /// # let at = Path::from("t.nrt");
    /// # store.put(&at, std::fs::read(dir.path().join("t.nrt"))?.into()).await?;
    /// use serrate::io::nrt::NrtObject;
    /// let file = NrtObject::open(store, at, &Default::default()).await?;
    /// let rows = file.read_runs(&[0..1, 2..3], None).await?;
    /// assert_eq!(rows.array("code")?.lengths(1)?, [2, 1]);
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// Same as [`read`](Self::read), for every range.
    pub async fn read_runs(
        &self,
        runs: &[Range<usize>],
        columns: Option<&[&str]>,
    ) -> Result<RaggedTable> {
        let (selected, depth) = self.inner.layout.select_columns(columns)?;
        let file = self.fetch_bounds(runs, depth).await?;
        let file = self.fetch_values(&file, runs, &selected, depth).await?;
        if runs.is_empty() {
            return file.read(0..0, columns);
        }
        let tables: Vec<RaggedTable> =
            runs.iter().map(|r| file.read(r.clone(), columns)).collect::<Result<_>>()?;
        RaggedTable::concat(&tables)
    }

    /// Returns the number of elements of axis `axis` that precede row `row`; see
    /// [`NrtFile::elements_before`].
    ///
    /// Makes at most one request per axis, for one bound.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { futures::executor::block_on(async {
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
    /// # use serrate::io::nrt::{self, NrtObject, WriteOptions};
    /// # let table = serrate::table::RaggedTable::builder()
    /// #     .lengths([2, 0, 1])?
    /// #     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    /// #     .build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # nrt::write(dir.path().join("t.nrt"), &table, &WriteOptions::default())?;
    /// # let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    /// # let at = Path::from("t.nrt");
    /// # store.put(&at, std::fs::read(dir.path().join("t.nrt"))?.into()).await?;
    /// let file = NrtObject::open(store, at, &Default::default()).await?;
    /// assert_eq!((file.ndim(), file.axis_len(1)?, file.is_empty()), (2, 3, false));
    /// assert_eq!((file.columns().len(), file.schema().fields().len()), (1, 1));
    /// assert_eq!(file.elements_before(1, 1).await?, 2);
    /// assert_eq!(file.read_runs(&[0..1, 2..3], None).await?.num_rows(), 2);
    /// let bounds = file.fetch_bounds(&[2..3], 1).await?;
    /// let part = file.fetch_values(&bounds, &[2..3], &[file.column("code")?], 1).await?;
    /// assert_eq!(part.read(2..3, None)?.num_rows(), 1);
    /// assert!(file.requests() >= 1 && file.bytes_read() > 0);
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// Same as [`read`](Self::read); also if axis or row do not exist, or a bound (the end of a
    /// list) exceeds the number of elements of its axis.
    pub async fn elements_before(&self, row: usize, axis: usize) -> Result<usize> {
        self.axis_len(axis)?;
        self.inner.layout.check_rows(&(row..row))?;
        let mut position = row;
        for axis in self.inner.layout.axes.iter().take(axis) {
            let bound = position.saturating_sub(1)..position;
            let range = axis.tensor.element_bytes(self.path(), bound)?;
            let parts = self.fetch_missing(&self.inner.head, [range]).await?;
            position = axis.find_list_start(&self.make_partial_file(parts), position)?;
        }
        Ok(position)
    }

    /// Fetches the bounds of the row ranges `runs` on the axes down to `depth`. The returned file
    /// has these bounds, but only the values that were fetched together with the header.
    #[doc(hidden)]
    pub async fn fetch_bounds(&self, runs: &[Range<usize>], depth: usize) -> Result<NrtFile> {
        for run in runs {
            self.inner.layout.check_rows(run)?;
        }
        let mut parts = self.inner.head.clone();
        let mut windows: Vec<_> = runs.iter().filter(|r| !r.is_empty()).cloned().collect();
        for axis in self.inner.layout.axes.iter().take(depth) {
            let ranges = windows
                .iter()
                // A list starts at the bound of the previous list: fetch this bound, too, even
                // if `w` is empty.
                .map(|w| w.start.saturating_sub(1)..w.end)
                .map(|bounds| axis.tensor.element_bytes(self.path(), bounds))
                .collect::<Result<Vec<_>>>()?;
            parts = self.fetch_missing(&parts, ranges).await?;
            let file = self.make_partial_file(parts.clone());
            windows = windows
                .into_iter()
                .map(|w| axis.read_window(&file, w))
                .collect::<Result<Vec<_>>>()?;
        }
        Ok(self.make_nrt_file(parts))
    }

    /// Fetches the values of `columns` in the row ranges `runs`.
    ///
    /// `file` is the result of `fetch_bounds` for these rows. Returns a file that has the bounds of
    /// `file` and also the values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { futures::executor::block_on(async {
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
    /// # let code = Arc::new(UInt16Array::from(vec![7, 8, 9]));
    /// # let table = serrate::RaggedTable::builder();
    /// # let table = table.lengths([2, 0, 1])?.column("code", 1, code).build()?;
    /// # let dir = tempfile::tempdir()?;
    /// # serrate::io::nrt::write(dir.path().join("t.nrt"), &table, &Default::default())?;
    /// # let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    /// # let at = Path::from("t.nrt");
    /// # store.put(&at, std::fs::read(dir.path().join("t.nrt"))?.into()).await?;
    /// use serrate::io::nrt::NrtObject;
    /// let file = NrtObject::open(store, at, &Default::default()).await?;
    /// let bounds = file.fetch_bounds(&[2..3], 1).await?;
    /// let part = file.fetch_values(&bounds, &[2..3], &[file.column("code")?], 1).await?;
    /// assert_eq!(part.read(2..3, None)?.num_rows(), 1);
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// Same as [`read`](Self::read); also if `file` lacks a bound of the rows.
    pub async fn fetch_values(
        &self,
        file: &NrtFile,
        runs: &[Range<usize>],
        columns: &[&NrtColumn],
        depth: usize,
    ) -> Result<NrtFile> {
        let mut ranges = Vec::new();
        for run in runs.iter().filter(|r| !r.is_empty()) {
            let windows = file.read_windows(run.clone(), depth)?;
            for column in columns {
                let window = windows.get(column.axis()).cloned().unwrap_or_default();
                ranges.push(column.tensor().element_bytes(self.path(), window)?);
            }
        }
        let parts = self.fetch_missing(file.tensors().source().parts(), ranges).await?;
        Ok(self.make_nrt_file(parts))
    }

    /// Fetches `ranges` that no part contains. Returns old and new parts, sorted by start.
    async fn fetch_missing(
        &self,
        parts: &[FetchedPart],
        ranges: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<Vec<FetchedPart>> {
        let ranges = ranges.into_iter().filter(|r| !is_covered(parts, r)).collect::<Vec<_>>();
        let mut all = parts.to_vec();
        all.extend(self.inner.object.fetch_ranges(ranges).await?);
        all.sort_by_key(|(start, _)| *start);
        Ok(all)
    }

    fn make_partial_file(&self, parts: Vec<FetchedPart>) -> SafetensorsFile {
        make_partial_file(&self.inner.object, &self.inner.header, parts)
    }

    fn make_nrt_file(&self, parts: Vec<FetchedPart>) -> NrtFile {
        let large = self.inner.object.options().large_lists;
        NrtFile::from_layout(self.make_partial_file(parts), Arc::clone(&self.inner.layout), large)
    }
}

fn make_partial_file(
    object: &StoredObject,
    header: &Arc<SafetensorsHeader>,
    parts: Vec<FetchedPart>,
) -> SafetensorsFile {
    let source = ByteSource::from_parts(object.name().to_path_buf(), object.len(), parts);
    SafetensorsFile::from_header(source, Arc::clone(header))
}
