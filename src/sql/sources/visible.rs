use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use futures::future::ready;
use futures::stream::{BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
};
use url::{Position, Url};

use serrate_core::internal::is_hidden_name;

/// Returns a runtime whose object stores, also those registered later, do not list hidden files: those with a
/// name in their path that starts with `.` or `_`. A hidden file that is named explicitly is still read.
pub(in crate::sql) fn with_visible_files(runtime: &RuntimeEnv) -> Result<Arc<RuntimeEnv>> {
    let inner = Arc::clone(&runtime.object_store_registry);
    let registry = Arc::new(VisibleRegistry { inner, wrapped: Mutex::default() });
    RuntimeEnvBuilder::from_runtime_env(runtime).with_object_store_registry(registry).build_arc()
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
        self.wrapped.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.inner.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let inner = self.inner.get_store(url)?;
        let key = url[..Position::BeforePath].to_owned();
        let mut wrapped = self.wrapped.lock().unwrap_or_else(PoisonError::into_inner);
        let known = wrapped.get(&key).filter(|known| Arc::ptr_eq(&known.inner, &inner));
        if let Some(known) = known {
            return Ok(Arc::clone(known) as Arc<dyn ObjectStore>);
        }
        let visible = Arc::new(VisibleFiles { inner });
        wrapped.insert(key, Arc::clone(&visible));
        Ok(visible)
    }
}

#[derive(Debug)]
struct VisibleFiles {
    inner: Arc<dyn ObjectStore>,
}

/// Whether an object is not hidden and so appears in the listing of the folder `prefix`.
fn is_listed(location: &Path, prefix: Option<&Path>) -> bool {
    let above = prefix.map_or(0, |p| p.parts().count());
    !location.parts().skip(above).any(|part| is_hidden_name(part.as_ref()))
}

fn only_listed(
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
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> object_store::Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        only_listed(self.inner.list(prefix), prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        only_listed(self.inner.list_with_offset(prefix, offset), prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
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
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(
        &self,
        from: &Path,
        to: &Path,
        options: RenameOptions,
    ) -> object_store::Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}
