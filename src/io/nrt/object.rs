//! [`NrtObject`]: an `.nrt` file in an object store.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
#[cfg(feature = "sql")]
use object_store::GetResult;
use object_store::ObjectStore;
use object_store::path::Path as Location;

use super::file::NrtFile;
use super::layout::{Layout, NrtColumn};
use crate::error::Result;
pub use crate::io::safetensors::ObjectOptions;
use crate::io::safetensors::{Header, Object, Part, SafetensorsFile, Source, covered};
use crate::table::RaggedTable;

/// An `.nrt` file in an object store: a cloud's, a server's, or in memory.
///
/// Opening it reads the header, with one request as a rule. [`read`](Self::read) asks for the bounds
/// that lead to the rows, one axis after the other, and then for the values of the columns asked for,
/// all at once: one round of requests more than the deepest of them has axes. Nothing else is fetched
/// but what lies between ranges that are close to each other ([`ObjectOptions::gap`]). All that an
/// [`NrtFile`] checks is checked here.
///
/// All requests after the first are for the version of the object that the first one met (where the
/// store has ETags); a file that is replaced meanwhile is an error. Clones share the header.
///
/// ```
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
/// assert_eq!(file.num_rows(), 3);
/// assert_eq!(file.read(2..3, Some(&["code"])).await?.row(0)?.values("code")?.len(), 1);
/// assert_eq!(file.table().await?, table);
/// # Ok(()) }) }
/// ```
#[derive(Clone, Debug)]
pub struct NrtObject {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    object: Object,
    header: Arc<Header>,
    layout: Arc<Layout>,
    /// What was fetched to open it; a small file is all here.
    head: Vec<Part>,
}

impl NrtObject {
    /// Opens an object of a store, which also names it in errors.
    ///
    /// # Errors
    /// When there is no such object, the store refuses, or the object is not an `.nrt` file; see
    /// [`NrtFile::open`].
    pub async fn open(
        store: Arc<dyn ObjectStore>,
        location: Location,
        options: &ObjectOptions,
    ) -> Result<Self> {
        let name = PathBuf::from(location.as_ref());
        let (object, head) = Object::open(store, location, name, *options).await?;
        Self::new(object, head).await
    }

    /// Opens an object whose first request was made and answered; `name` names it in errors,
    /// `expected` is its size as listed.
    #[cfg(feature = "sql")]
    pub(crate) async fn from_first(
        store: Arc<dyn ObjectStore>,
        location: Location,
        name: PathBuf,
        first: GetResult,
        expected: u64,
        options: &ObjectOptions,
    ) -> Result<Self> {
        let (object, head) =
            Object::from_first(store, location, name, first, Some(expected), *options).await?;
        Self::new(object, head).await
    }

    /// The same file, with nothing counted.
    #[cfg(feature = "sql")]
    pub(crate) fn fresh(&self) -> Self {
        let Inner { object, header, layout, head } = self.inner.as_ref();
        let inner = Inner {
            object: object.fresh(),
            header: Arc::clone(header),
            layout: Arc::clone(layout),
            head: head.clone(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Whether it lies in this very store, and has the tag of its version where that is known.
    #[cfg(feature = "sql")]
    pub(crate) fn is_of(&self, store: &Arc<dyn ObjectStore>, e_tag: Option<&str>) -> bool {
        self.inner.object.is_of(store, e_tag)
    }

    /// Bytes of memory that the header takes, and what was fetched with it; an estimate.
    #[cfg(feature = "sql")]
    pub(crate) fn memory_size(&self) -> usize {
        let parts = self.inner.head.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        let header = usize::try_from(self.inner.header.data_start()).unwrap_or(0);
        // The JSON is there as tensors and as columns.
        parts.saturating_add(header.saturating_mul(4))
    }

    async fn new(object: Object, head: Part) -> Result<Self> {
        let (header, mut head) = object.header(head).await?;
        let header = Arc::new(header);
        loop {
            let file = sparse(&object, &header, head.clone());
            match Layout::of(&file) {
                Ok(layout) => {
                    let layout = Arc::new(layout);
                    return Ok(Self { inner: Arc::new(Inner { object, header, layout, head }) });
                }
                // An axis without columns is as long as its last bound says.
                Err(e) => match file.source().missing() {
                    Some(range) => {
                        head.extend(object.fetch(std::iter::once(range)).await?);
                        head.sort_by_key(|(start, _)| *start);
                    }
                    None => return Err(e),
                },
            }
        }
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.inner.layout.rows
    }

    /// Number of axes, the rows included.
    pub fn ndim(&self) -> usize {
        self.inner.layout.ndim()
    }

    /// Number of elements of an axis, as the header says; 0 is the rows.
    pub fn axis_len(&self, axis: usize) -> Result<usize> {
        self.inner.layout.axis_len(self.path(), axis)
    }

    /// The columns: those of axis 0 first, by name within an axis.
    pub fn columns(&self) -> &[NrtColumn] {
        &self.inner.layout.columns
    }

    /// A column by name.
    pub fn column(&self, name: &str) -> Result<&NrtColumn> {
        self.inner.layout.column(name)
    }

    /// The columns as Arrow lists, one level per axis above 0; see [`NrtFile::schema`].
    pub fn schema(&self) -> SchemaRef {
        self.inner.layout.schema(self.inner.object.options().large_lists)
    }

    /// Name of the object.
    pub fn path(&self) -> &Path {
        self.inner.object.name()
    }

    /// Size of the object in bytes.
    pub fn len(&self) -> u64 {
        self.inner.object.len()
    }

    /// Whether it has no bytes; an `.nrt` file has some.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes fetched so far, by this handle and its clones: header, bounds, values, and what lay
    /// between ranges joined to one.
    pub fn bytes_read(&self) -> u64 {
        self.inner.object.bytes_read()
    }

    /// Requests answered so far.
    pub fn requests(&self) -> u64 {
        self.inner.object.requests()
    }

    /// The whole file as a table.
    pub async fn table(&self) -> Result<RaggedTable> {
        self.read(0..self.num_rows(), None).await
    }

    /// Some rows and columns as a table, columns in the order given; `None` is all columns and axes.
    /// Values are where they were fetched to, not copied again when they are aligned there.
    ///
    /// # Errors
    /// Those of [`NrtFile::read`], and those of the store: the object is gone, was replaced since it
    /// was opened, or the answer is not what was asked for.
    pub async fn read(&self, rows: Range<usize>, columns: Option<&[&str]>) -> Result<RaggedTable> {
        self.read_runs(std::slice::from_ref(&rows), columns).await
    }

    /// As [`read`](Self::read), for several ranges of rows, one after the other in the result. The
    /// requests are shared: there are no more rounds of them than for one range.
    pub async fn read_runs(
        &self,
        runs: &[Range<usize>],
        columns: Option<&[&str]>,
    ) -> Result<RaggedTable> {
        let (selected, depth) = self.inner.layout.select(columns)?;
        let file = self.fetch_bounds(runs, depth).await?;
        let file = self.fetch_values(&file, runs, &selected, depth).await?;
        if runs.is_empty() {
            return file.read(0..0, columns);
        }
        let tables: Vec<RaggedTable> =
            runs.iter().map(|r| file.read(r.clone(), columns)).collect::<Result<_>>()?;
        RaggedTable::concat(&tables)
    }

    /// Elements of axis `axis` that lie before row `row`; see [`NrtFile::elements_before`]. One
    /// request for one bound per axis.
    pub async fn elements_before(&self, row: usize, axis: usize) -> Result<usize> {
        self.axis_len(axis)?;
        self.inner.layout.check_rows(&(row..row))?;
        let mut position = row;
        for axis in self.inner.layout.axes.iter().take(axis) {
            let bound = position.saturating_sub(1)..position;
            let range = axis.tensor.element_bytes(self.path(), bound)?;
            let parts = self.fetch_missing(&self.inner.head, [range]).await?;
            position = axis.start_of(&self.sparse(parts), position)?;
        }
        Ok(position)
    }

    /// A file with the bounds of `runs` on the axes down to `depth`, and without values but those
    /// that came with the header.
    pub(crate) async fn fetch_bounds(
        &self,
        runs: &[Range<usize>],
        depth: usize,
    ) -> Result<NrtFile> {
        for run in runs {
            self.inner.layout.check_rows(run)?;
        }
        let mut parts = self.inner.head.clone();
        let mut windows: Vec<_> = runs.iter().filter(|r| !r.is_empty()).cloned().collect();
        for axis in self.inner.layout.axes.iter().take(depth) {
            let ranges = windows
                .iter()
                // The bound before the first list is where that list starts; where there are no
                // lists, it says what they would be the start of.
                .map(|w| w.start.saturating_sub(1)..w.end)
                .map(|bounds| axis.tensor.element_bytes(self.path(), bounds))
                .collect::<Result<Vec<_>>>()?;
            parts = self.fetch_missing(&parts, ranges).await?;
            let file = self.sparse(parts.clone());
            windows =
                windows.into_iter().map(|w| axis.window(&file, w)).collect::<Result<Vec<_>>>()?;
        }
        Ok(self.file(parts))
    }

    /// `file`, which has the bounds of `runs` down to `depth`, with the values of `columns` as well.
    pub(crate) async fn fetch_values(
        &self,
        file: &NrtFile,
        runs: &[Range<usize>],
        columns: &[&NrtColumn],
        depth: usize,
    ) -> Result<NrtFile> {
        let mut ranges = Vec::new();
        for run in runs.iter().filter(|r| !r.is_empty()) {
            let windows = file.windows(run.clone(), depth)?;
            for column in columns {
                let window = windows.get(column.axis()).cloned().unwrap_or_default();
                ranges.push(column.tensor().element_bytes(self.path(), window)?);
            }
        }
        let parts = self.fetch_missing(file.tensors().source().parts(), ranges).await?;
        Ok(self.file(parts))
    }

    /// `parts`, which are in the order of their starts, and those of the ranges that are in none.
    async fn fetch_missing(
        &self,
        parts: &[Part],
        ranges: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<Vec<Part>> {
        let ranges = ranges.into_iter().filter(|r| !covered(parts, r)).collect::<Vec<_>>();
        let mut all = parts.to_vec();
        all.extend(self.inner.object.fetch(ranges).await?);
        all.sort_by_key(|(start, _)| *start);
        Ok(all)
    }

    fn sparse(&self, parts: Vec<Part>) -> SafetensorsFile {
        sparse(&self.inner.object, &self.inner.header, parts)
    }

    fn file(&self, parts: Vec<Part>) -> NrtFile {
        let large = self.inner.object.options().large_lists;
        NrtFile::with_layout(self.sparse(parts), Arc::clone(&self.inner.layout), large)
    }
}

fn sparse(object: &Object, header: &Arc<Header>, parts: Vec<Part>) -> SafetensorsFile {
    let source = Source::from_parts(object.name().to_path_buf(), object.len(), parts);
    SafetensorsFile::from_header(source, Arc::clone(header))
}
