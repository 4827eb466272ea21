//! A file to scan: a local file, memory-mapped or not, or an object in an object store.

use std::any::Any;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{HashMap, Result};
use datafusion::execution::cache::cache_manager::{
    CachedFileMetadataEntry, FileMetadata, FileMetadataCache,
};
use object_store::local::LocalFileSystem;
use object_store::{GetOptions, GetResultPayload, ObjectMeta, ObjectStore};

use crate::io::nrt::{NrtColumn, NrtFile, NrtObject, ObjectOptions, ReadOptions};
use crate::sql::base::blocking::run_blocking;
use serrate_core::internal::FileStamp;
use serrate_core::internal::safetensors::{convert_store_error, make_first_request};

/// The session's cache of headers of remote `.nrt` files, and of what planning needs of local ones.
#[derive(Clone)]
pub(super) struct HeaderCache(Arc<FileMetadataCache>);

struct CachedHeader(NrtObject);

impl FileMetadata for CachedHeader {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn memory_size(&self) -> usize {
        self.0.memory_size()
    }

    fn extra_info(&self) -> HashMap<String, String> {
        HashMap::new()
    }
}

/// Holds what planning needs of a file.
#[derive(Clone)]
pub(super) struct KnownFile {
    meta: ObjectMeta,
    /// The stamp of a local file; `None` for an object of another store.
    stamp: Option<FileStamp>,
    pub(super) path: PathBuf,
    pub(super) schema: SchemaRef,
    pub(super) rows: usize,
    /// For each column of `schema`, the number of bytes that its values take.
    sizes: Vec<Option<usize>>,
}

impl KnownFile {
    /// Returns what the cache knows of this version of a local file, or opens the file. A file
    /// whose next change might not change its stamp is not cached.
    pub(super) async fn read_cached(
        store: &Arc<dyn ObjectStore>,
        meta: &ObjectMeta,
        mmap: bool,
        headers: &HeaderCache,
    ) -> Result<Self> {
        // The stamp is read before the file, so that it is not the stamp of a later version.
        let local = LocalFileSystem::new().path_to_filesystem(&meta.location).ok();
        let stamp = local.and_then(|path| FileStamp::of(&path).ok());
        if let Some(known) = headers.find_file(meta, stamp.as_ref()) {
            return Ok(known);
        }
        let file = NrtInput::open(store, meta, None, mmap, Some(headers)).await?;
        let schema = file.schema();
        let sizes = schema.fields().iter().map(|field| {
            let column = file.find_column(field.name())?;
            Some(usize::try_from(column.nbytes()).unwrap_or(usize::MAX))
        });
        let sizes = sizes.collect();
        let (path, rows) = (file.path().to_owned(), file.num_rows());
        let stamp = stamp.filter(|_| !file.is_remote());
        let known = Self { meta: meta.clone(), stamp, path, schema, rows, sizes };
        if known.stamp.as_ref().is_some_and(FileStamp::is_settled) {
            headers.insert_file(known.clone());
        }
        Ok(known)
    }

    /// Returns the number of bytes that the values of a column take. Returns `None` if the file
    /// lacks the column.
    pub(super) fn find_size(&self, column: &str) -> Option<usize> {
        self.sizes.get(self.schema.index_of(column).ok()?).copied().flatten()
    }
}

impl FileMetadata for KnownFile {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn memory_size(&self) -> usize {
        let names = self.path.as_os_str().len() + self.meta.location.as_ref().len();
        size_of::<Self>() + names + self.schema.fields().size() + size_of_val(&*self.sizes)
    }

    fn extra_info(&self) -> HashMap<String, String> {
        HashMap::new()
    }
}

impl HeaderCache {
    fn find_file(&self, meta: &ObjectMeta, stamp: Option<&FileStamp>) -> Option<KnownFile> {
        let entry = self.0.get(&meta.location)?;
        let known = entry.file_metadata.as_any().downcast_ref::<KnownFile>()?;
        let is_same = known.meta == *meta && stamp.is_some() && known.stamp.as_ref() == stamp;
        is_same.then(|| known.clone())
    }

    fn insert_file(&self, known: KnownFile) {
        let meta = known.meta.clone();
        let location = meta.location.clone();
        self.0.put(&location, CachedFileMetadataEntry::new(meta, Arc::new(known)));
    }

    pub(super) fn from_session(session: &dyn Session) -> Self {
        Self(session.runtime_env().cache_manager.get_file_metadata_cache())
    }

    fn get(&self, store: &Arc<dyn ObjectStore>, meta: &ObjectMeta) -> Option<NrtObject> {
        let entry = self.0.get(&meta.location).filter(|e| e.is_valid_for(meta))?;
        let CachedHeader(object) = entry.file_metadata.as_any().downcast_ref::<CachedHeader>()?;
        // The cache finds entries by path only, so the store and the ETag are compared here.
        object.is_of(store, meta.e_tag.as_deref()).then(|| object.copy_with_zero_counters())
    }

    fn insert(&self, meta: &ObjectMeta, object: &NrtObject) {
        let header = Arc::new(CachedHeader(object.copy_with_zero_counters()));
        self.0.put(&meta.location, CachedFileMetadataEntry::new(meta.clone(), header));
    }
}

/// Counts of all reads so far: the bytes read (or accessed, if mapped), and the requests (0 if
/// local).
pub(super) struct ReadCounts {
    pub(super) bytes: u64,
    pub(super) requests: u64,
}

#[derive(Debug)]
pub(super) enum NrtInput {
    File {
        file: NrtFile,
        /// Whether reads may block on the disk.
        waits: bool,
    },
    Object(NrtObject),
}

impl NrtInput {
    /// Opens a file of an object store. One request returns the handle of a local file or the
    /// header of a remote file; a header in the cache `headers` needs no request. Errors show a
    /// remote file as `name`.
    pub(super) async fn open(
        store: &Arc<dyn ObjectStore>,
        meta: &ObjectMeta,
        name: Option<String>,
        mmap: bool,
        headers: Option<&HeaderCache>,
    ) -> Result<Self> {
        if let Some(object) = headers.and_then(|h| h.get(store, meta)) {
            return Ok(Self::Object(object));
        }
        let name = PathBuf::from(name.unwrap_or_else(|| meta.location.to_string()));
        let options = ObjectOptions::default();
        // A file of 0 bytes has no valid byte range, so the request is for the whole file.
        let request =
            if meta.size == 0 { GetOptions::default() } else { make_first_request(&options) };
        let mut first = store
            .get_opts(&meta.location, request)
            .await
            .map_err(|e| convert_store_error(&name, e))?;
        match first.payload {
            GetResultPayload::File(file, path) => {
                let options = ReadOptions { mmap, ..ReadOptions::default() };
                let open = move || NrtFile::from_file(path, file, &options);
                let file = run_blocking(open).await?;
                return Ok(Self::File { file, waits: !mmap });
            }
            stream @ GetResultPayload::Stream(_) => first.payload = stream,
        }
        let (at, place) = (Arc::clone(store), meta.location.clone());
        let object = NrtObject::from_first(at, place, name, first, meta.size, &options).await?;
        if let Some(headers) = headers {
            headers.insert(meta, &object);
        }
        Ok(Self::Object(object))
    }

    pub(super) fn path(&self) -> &std::path::Path {
        match self {
            Self::File { file, .. } => file.path(),
            Self::Object(object) => object.path(),
        }
    }

    pub(super) fn num_rows(&self) -> usize {
        match self {
            Self::File { file, .. } => file.num_rows(),
            Self::Object(object) => object.num_rows(),
        }
    }

    pub(super) fn columns(&self) -> &[NrtColumn] {
        match self {
            Self::File { file, .. } => file.columns(),
            Self::Object(object) => object.columns(),
        }
    }

    pub(super) fn find_column(&self, name: &str) -> Option<&NrtColumn> {
        self.columns().iter().find(|c| c.name() == name)
    }

    pub(super) fn schema(&self) -> SchemaRef {
        match self {
            Self::File { file, .. } => file.schema(),
            Self::Object(object) => object.schema(),
        }
    }

    pub(super) fn axis_len(&self, axis: usize) -> crate::Result<usize> {
        match self {
            Self::File { file, .. } => file.axis_len(axis),
            Self::Object(object) => object.axis_len(axis),
        }
    }

    /// Whether the file is in a remote object store, so that its data must be fetched before it is
    /// read.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Whether reads may block on the disk, and so must not run on a thread of the runtime.
    pub(super) fn may_block(&self) -> bool {
        matches!(self, Self::File { waits: true, .. })
    }

    pub(super) fn count_reads(&self) -> ReadCounts {
        match self {
            Self::File { file, .. } => {
                ReadCounts { bytes: file.tensors().source().bytes_read(), requests: 0 }
            }
            Self::Object(object) => {
                ReadCounts { bytes: object.bytes_read(), requests: object.requests() }
            }
        }
    }

    /// Returns a file in memory with the rows `runs` of `columns`, down to the level of lists
    /// `depth`. Returns a local file unchanged.
    pub(super) async fn fetch_rows(
        &self,
        runs: &[Range<usize>],
        columns: &[String],
        depth: usize,
    ) -> Result<NrtFile> {
        let object = match self {
            Self::File { file, .. } => return Ok(file.clone()),
            Self::Object(object) => object,
        };
        let file = object.fetch_bounds(runs, depth).await?;
        let columns: Vec<&NrtColumn> = columns.iter().filter_map(|n| self.find_column(n)).collect();
        Ok(object.fetch_values(&file, runs, &columns, depth).await?)
    }
}
