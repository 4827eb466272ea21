//! Object stores whose listings leave out hidden files.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::executor::block_on;
use futures::future::ready;
use futures::stream::{BoxStream, StreamExt, once};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, coalesce_ranges,
};
use serrate_core::internal::lock_mutex;
use tokio::runtime::Handle;
use url::{Position, Url};

use crate::access;
use crate::sql::sources::created_folders::{CreatedFolders, FolderWrite, LocalUpload};
use crate::sql::sources::temporary_target::{TemporaryTarget, to_store_error};
use serrate_core::internal::is_hidden_name;

/// Returns a runtime whose object stores, also those registered later, do not list hidden files:
/// files whose path below the listed folder has a component that starts with `.` or `_`. A hidden
/// file that is named explicitly is still read.
///
/// The stores refuse to read and write files that the process must not access ([`access`]).
pub(crate) fn skip_hidden_files(runtime: &RuntimeEnv) -> Arc<RuntimeEnv> {
    let inner = Arc::clone(&runtime.object_store_registry);
    let registry = Arc::new(VisibleRegistry { inner, wrapped: Mutex::default() });
    Arc::new(RuntimeEnv { object_store_registry: registry, ..runtime.clone() })
}

/// URL schemes of the object stores that the feature `cloud` adds.
const SCHEMES: [&str; 5] = ["s3", "gs", "az", "http", "https"];

/// Number of bytes of a range that is read without a check of the size of the file.
const UNCHECKED_BYTES: u64 = 1 << 20;

/// Returns the error for a URL of `scheme` for which no object store is registered or can be
/// opened.
pub(in crate::sql) fn make_store_error(scheme: &str) -> crate::Error {
    let has_stores = cfg!(feature = "cloud");
    crate::Error::invalid(match SCHEMES.contains(&scheme) {
        true if !has_stores => format!(
            "{scheme}:// is the URL of an object store, which this program cannot read or write; build Serrate with the feature `cloud`, or use a local path"
        ),
        _ => format!(
            "{scheme}:// is not a known URL scheme; use a local path, file://, s3://, gs://, az://, http:// or https://{}",
            if has_stores {
                ""
            } else {
                " (all but file:// require the feature `cloud`, which this build does not have)"
            }
        ),
    })
}

#[derive(Debug)]
struct VisibleRegistry {
    inner: Arc<dyn ObjectStoreRegistry>,
    /// One wrapper per store, by scheme and host, because caches identify a store by its pointer.
    wrapped: Mutex<HashMap<String, Arc<VisibleFiles>>>,
}

impl ObjectStoreRegistry for VisibleRegistry {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.inner.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let key = &url[..Position::BeforePath];
        lock_mutex(&self.wrapped).remove(key);
        self.inner.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let local = url.scheme() == "file";
        if !local {
            // Messages omit the part of the URL before the host, because it may have a password.
            let shown = &url[Position::BeforeHost..];
            access::check_store().map_err(|e| plan_datafusion_err!("{shown}: {e}"))?;
        }
        let inner = self.inner.get_store(url).map_err(|e| match e.find_root() {
            DataFusionError::Internal(_) if !local => {
                DataFusionError::from(make_store_error(url.scheme()))
            }
            _ => e,
        })?;
        let key = url[..Position::BeforePath].to_owned();
        let mut wrapped = lock_mutex(&self.wrapped);
        let known = wrapped.get(&key).filter(|known| Arc::ptr_eq(&known.inner, &inner));
        if let Some(known) = known {
            return Ok(Arc::clone(known) as Arc<dyn ObjectStore>);
        }
        let visible = Arc::new(VisibleFiles { inner, local, created: Arc::default() });
        wrapped.insert(key, Arc::clone(&visible));
        Ok(visible)
    }
}

#[derive(Debug)]
struct VisibleFiles {
    inner: Arc<dyn ObjectStore>,
    /// Whether the store is the file system, whose locations are absolute paths.
    local: bool,
    /// The folders that unfinished writes have created in the file system; a failed write removes
    /// them.
    created: Arc<CreatedFolders>,
}

impl VisibleFiles {
    fn check_read(&self, location: &Path) -> object_store::Result<()> {
        if !self.local || !access::has_root() {
            return Ok(());
        }
        let path = LocalFileSystem::new().path_to_filesystem(location)?;
        access::check_read(&path).map_err(|e| to_store_error(&path, e))
    }

    fn check_write(&self, location: &Path) -> object_store::Result<()> {
        if self.local && access::has_root() {
            let path = LocalFileSystem::new().path_to_filesystem(location)?;
            return access::check_write(&path).map_err(|e| to_store_error(&path, e));
        }
        access::check_writes().map_err(|e| to_store_error(location.as_ref(), e))
    }

    /// Registers a write of a local file. A failed write leaves behind empty folders that it has
    /// created; dropping the returned [`FolderWrite`] removes them. Returns `None` for other
    /// stores, which have no folders.
    fn start_write(&self, location: &Path) -> object_store::Result<Option<FolderWrite>> {
        self.check_write(location)?;
        if !self.local {
            return Ok(None);
        }
        let path = LocalFileSystem::new().path_to_filesystem(location)?;
        Ok(Some(self.created.start_write(&path)))
    }

    /// Returns an error if a local file ends before the end of a large range. `get_ranges` of the
    /// file system allocates the memory of a range before it reads, so a range that is taken from a
    /// damaged file would end the process.
    async fn check_large_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> object_store::Result<()> {
        let is_small = |range: &Range<u64>| {
            range.end.checked_sub(range.start).is_some_and(|length| length <= UNCHECKED_BYTES)
        };
        if ranges.iter().all(is_small) {
            return Ok(());
        }
        let size = self.get_opts(location, GetOptions::new().with_head(true)).await?.meta.size;
        match ranges.iter().find(|range| range.start > range.end || range.end > size) {
            None => Ok(()),
            Some(range) => {
                let message = format!(
                    "the file has {size} bytes, but bytes {} to {} are needed, so it is damaged or truncated; create it again",
                    range.start, range.end
                );
                let path = LocalFileSystem::new().path_to_filesystem(location)?;
                Err(to_store_error(path, io::Error::new(io::ErrorKind::UnexpectedEof, message)))
            }
        }
    }

    /// Returns an error if the folder `prefix` must not be listed; `None` is the whole file system.
    fn check_folder(&self, prefix: Option<&Path>) -> object_store::Result<()> {
        self.check_read(prefix.unwrap_or(&Path::default()))
    }
}

/// Returns what the object store of the file system returns for a request of the metadata of a
/// file. The store would open the file on another thread, and the change of threads takes longer
/// than the system calls. Returns `None` if the file cannot be opened, so that the store reports
/// the error.
fn open_for_head(location: &Path) -> Option<GetResult> {
    let path = LocalFileSystem::new().path_to_filesystem(location).ok()?;
    // A pipe must not be opened here, because this waits for the other end.
    if !access::is_file(&path) {
        return None;
    }
    let file = access::open(&path).ok()?;
    let metadata = file.metadata().ok()?;
    let modified = metadata.modified().ok()?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0u64;
    let meta = ObjectMeta {
        location: location.clone(),
        last_modified: modified.into(),
        size: metadata.len(),
        // The ETag that the store computes.
        e_tag: Some(format!("{inode:x}-{since:x}-{:x}", metadata.len())),
        version: None,
    };
    Some(GetResult {
        payload: GetResultPayload::File(file, path),
        range: 0..meta.size,
        meta,
        attributes: Attributes::default(),
    })
}

/// Runs `write`, which creates a local file, on one of Tokio's threads for blocking work. If the
/// returned future is dropped, the thread may still create folders and the file. So `write` itself
/// must drop the [`FolderWrite`] when the file is complete, and the empty folders are not removed
/// before. Once the runtime shuts down, no write begins.
async fn create_file<T: Send + 'static>(
    write: impl FnOnce() -> object_store::Result<T> + Send + 'static,
) -> object_store::Result<T> {
    match Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(write).await?,
        Err(_) => write(),
    }
}

/// Writes a local file. It appears under its name when it is complete.
fn put_file(
    store: &dyn ObjectStore,
    location: &Path,
    payload: PutPayload,
    options: PutOptions,
) -> object_store::Result<PutResult> {
    // A rename replaces an existing file, so other modes are left to the store.
    let temporary = match options.mode {
        PutMode::Overwrite => TemporaryTarget::prepare_write(location)?,
        PutMode::Create | PutMode::Update(_) => None,
    };
    let written = temporary.as_ref().map_or(location, TemporaryTarget::temporary_path);
    let result = block_on(store.put_opts(written, payload, options))?;
    if let Some(temporary) = temporary {
        temporary.publish_file()?;
    }
    Ok(result)
}

/// Whether an object is not hidden and so appears in the listing of the folder `prefix`.
fn is_listed(location: &Path, prefix: Option<&Path>) -> bool {
    let above = prefix.map_or(0, |p| p.parts().count());
    !location.parts().skip(above).any(|part| is_hidden_name(part.as_ref()))
}

fn filter_listed(
    objects: BoxStream<'static, object_store::Result<ObjectMeta>>,
    prefix: Option<&Path>,
) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
    let prefix = prefix.cloned();
    let keep = move |object: &object_store::Result<ObjectMeta>| {
        ready(object.as_ref().map_or(true, |o| is_listed(&o.location, prefix.as_ref())))
    };
    objects.filter(keep).boxed()
}

impl fmt::Display for VisibleFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for VisibleFiles {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        let Some(write) = self.start_write(location)? else {
            return self.inner.put_opts(location, payload, options).await;
        };
        let (inner, location) = (Arc::clone(&self.inner), location.clone());
        let put = move || {
            let done = put_file(inner.as_ref(), &location, payload, options);
            drop(write);
            done
        };
        create_file(put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        let Some(write) = self.start_write(location)? else {
            return self.inner.put_multipart_opts(location, options).await;
        };
        let (inner, location) = (Arc::clone(&self.inner), location.clone());
        // If this future is dropped, the thread drops the upload, which removes its file.
        let begin = move || {
            let temporary = TemporaryTarget::prepare_write(&location)?;
            let written = temporary.as_ref().map_or(&location, TemporaryTarget::temporary_path);
            let upload = block_on(inner.put_multipart_opts(written, options))?;
            let upload = LocalUpload::new(upload, temporary, write);
            Ok(Box::new(upload) as Box<dyn MultipartUpload>)
        };
        create_file(begin).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        if self.local
            && options.head
            && let Some(found) = open_for_head(location)
        {
            options.check_preconditions(&found.meta)?;
            return Ok(found);
        }
        self.check_read(location)?;
        let found = self.inner.get_opts(location, options).await?;
        if let GetResultPayload::File(file, path) = &found.payload {
            access::check_opened(file, path).map_err(|e| to_store_error(path, e))?;
        }
        Ok(found)
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> object_store::Result<Vec<Bytes>> {
        if self.local && access::has_root() {
            // Reads by `get_opts`: `get_ranges` of the file system does not check the access.
            let read = |range: Range<u64>| async move {
                let options = GetOptions::new().with_range(Some(GetRange::Bounded(range)));
                self.get_opts(location, options).await?.bytes().await
            };
            return coalesce_ranges(ranges, read, OBJECT_STORE_COALESCE_DEFAULT).await;
        }
        if self.local {
            self.check_large_ranges(location, ranges).await?;
        }
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        if !access::has_root() && !access::is_read_only() {
            return self.inner.delete_stream(locations);
        }
        let (inner, created) = (Arc::clone(&self.inner), Arc::clone(&self.created));
        let files = Self { inner, local: self.local, created };
        let check = move |location: object_store::Result<Path>| {
            let location = location?;
            files.check_write(&location).map(|()| location)
        };
        self.inner.delete_stream(locations.map(check).boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        match self.check_folder(prefix) {
            Ok(()) => filter_listed(self.inner.list(prefix), prefix),
            Err(e) => once(ready(Err(e))).boxed(),
        }
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        match self.check_folder(prefix) {
            Ok(()) => filter_listed(self.inner.list_with_offset(prefix, offset), prefix),
            Err(e) => once(ready(Err(e))).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.check_folder(prefix)?;
        let mut listed = self.inner.list_with_delimiter(prefix).await?;
        listed.objects.retain(|o| is_listed(&o.location, prefix));
        listed.common_prefixes.retain(|p| is_listed(p, prefix));
        Ok(listed)
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.check_read(from)?;
        self.check_write(to)?;
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(
        &self,
        from: &Path,
        to: &Path,
        options: RenameOptions,
    ) -> object_store::Result<()> {
        self.check_write(from)?;
        self.check_write(to)?;
        self.inner.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;

    use super::*;

    #[tokio::test]
    async fn metadata_of_local_files_is_that_of_their_store() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.csv");
        std::fs::write(&file, "x\n1\n").unwrap();
        let runtime = skip_hidden_files(&RuntimeEnv::default());
        let url = Url::parse("file:///").unwrap();
        let visible = runtime.object_store_registry.get_store(&url).unwrap();
        let stock = LocalFileSystem::new();
        let location = Path::from_absolute_path(&file).unwrap();
        let found = visible.head(&location).await.unwrap();
        assert_eq!(found, stock.head(&location).await.unwrap());
        let missing = Path::from_absolute_path(dir.path().join("b.csv")).unwrap();
        let folder = Path::from_absolute_path(dir.path()).unwrap();
        for location in [missing, folder] {
            let found = visible.head(&location).await.unwrap_err();
            assert_eq!(found.to_string(), stock.head(&location).await.unwrap_err().to_string());
        }
    }

    #[tokio::test]
    async fn ranges_beyond_the_end_of_a_file_allocate_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.csv");
        std::fs::write(&file, "x\n1\n").unwrap();
        let runtime = skip_hidden_files(&RuntimeEnv::default());
        let url = Url::parse("file:///").unwrap();
        let visible = runtime.object_store_registry.get_store(&url).unwrap();
        let location = Path::from_absolute_path(&file).unwrap();
        assert_eq!(visible.get_ranges(&location, &[0..2, 2..4]).await.unwrap().len(), 2);
        for range in [0..1 << 47, 2..u64::MAX, Range { start: 3, end: 1 }] {
            let read = visible.get_ranges(&location, &[0..2, range.clone()]).await;
            let error = read.unwrap_err().to_string();
            assert!(error.contains("the file has 4 bytes, but bytes"), "{range:?}: {error}");
        }
    }
}
