//! An object store in memory that records the byte ranges requested from it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Object and byte range of each request.
pub(crate) type Gets = Vec<(String, Range<u64>)>;

/// An object store in memory that records requests for bytes.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    inner: InMemory,
    gets: Mutex<Gets>,
    /// Whether answers to `get` lack their last byte, as if the connection broke.
    pub(crate) short: AtomicBool,
}

impl Counting {
    /// Creates a store with objects from pairs of path and contents.
    pub(crate) async fn with(objects: &[(&str, Vec<u8>)]) -> Arc<Self> {
        let store = Self::default();
        for (path, bytes) in objects {
            store.inner.put(&Path::from(*path), bytes.clone().into()).await.unwrap();
        }
        Arc::new(store)
    }

    /// Adds an object, or replaces the one at `path`.
    pub(crate) async fn replace(&self, path: &str, bytes: Vec<u8>) {
        self.inner.put(&Path::from(path), bytes.into()).await.unwrap();
    }

    pub(crate) async fn remove(&self, path: &str) {
        self.inner.delete(&Path::from(path)).await.unwrap();
    }

    /// Returns the recorded requests and clears the record.
    pub(crate) fn take(&self) -> Gets {
        std::mem::take(&mut *self.gets.lock().unwrap())
    }

    /// Returns the number of recorded requests and the sum of their bytes, and clears the record.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let gets = self.take();
        (gets.len(), gets.iter().map(|(_, range)| range.end - range.start).sum())
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counting")
    }
}

#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(&self, at: &Path, data: PutPayload, o: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(at, data, o).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        o: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, o).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        let mut answer = self.inner.get_opts(at, options).await?;
        self.gets.lock().unwrap().push((at.to_string(), answer.range.clone()));
        if self.short.load(Ordering::Relaxed) {
            let (meta, range) = (answer.meta.clone(), answer.range.clone());
            let attributes = answer.attributes.clone();
            let mut bytes = answer.bytes().await?;
            bytes.truncate(bytes.len().saturating_sub(1));
            let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
            answer = GetResult { payload, meta, range, attributes };
        }
        Ok(answer)
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        let gets = ranges.iter().map(|r| (at.to_string(), r.clone()));
        self.gets.lock().unwrap().extend(gets);
        self.inner.get_ranges(at, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
