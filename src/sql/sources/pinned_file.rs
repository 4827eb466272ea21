//! Makes all reads of a scan see the same version of a local file. Each read opens the file again,
//! so a read after a change of the file is an error.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResult, GetResultPayload, OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta,
    ObjectStore, coalesce_ranges,
};

use crate::sql::sources::store_reads::{StoreReads, into_store};
use crate::sql::sources::urls::format_location;

/// Returns a store that reads the file of `meta`, but returns an error once the file is no longer
/// the version that was listed. Returns `store` itself if `store` is not the file system, or if the
/// version of the file is unknown.
///
/// A scan opens a file by its path for each range of bytes. Without the check, the pages of a new
/// file could be read with the footer of the file that it has replaced.
pub(in crate::sql) fn pin_version(
    store: &Arc<dyn ObjectStore>,
    url: &ObjectStoreUrl,
    meta: &ObjectMeta,
) -> Arc<dyn ObjectStore> {
    match url.as_str().starts_with("file:") && meta.e_tag.is_some() {
        true => into_store(PinnedFile { inner: Arc::clone(store), meta: meta.clone() }),
        false => Arc::clone(store),
    }
}

#[derive(Debug)]
struct PinnedFile {
    inner: Arc<dyn ObjectStore>,
    meta: ObjectMeta,
}

fn to_store_error(error: crate::Error) -> object_store::Error {
    object_store::Error::Generic { store: "LocalFileSystem", source: Box::new(error) }
}

fn read_ranges(mut file: &File, size: u64, ranges: &[Range<u64>]) -> io::Result<Vec<Bytes>> {
    let mut read = Vec::with_capacity(ranges.len());
    for range in ranges {
        let length = range.end.min(size).saturating_sub(range.start);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        file.seek(SeekFrom::Start(range.start))?;
        file.take(length).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).ok() != range.end.checked_sub(range.start) {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "the file ends before byte {1}, but bytes {0} to {1} are needed; create it again",
                    range.start, range.end
                ),
            ));
        }
        read.push(bytes.into());
    }
    Ok(read)
}

#[async_trait]
impl StoreReads for PinnedFile {
    fn inner_store(&self) -> &Arc<dyn ObjectStore> {
        &self.inner
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        if *location != self.meta.location || options.if_match.is_some() {
            return self.inner.get_opts(location, options).await;
        }
        let options = GetOptions { if_match: self.meta.e_tag.clone(), ..options };
        self.inner.get_opts(location, options).await.map_err(|e| match e {
            object_store::Error::Precondition { .. } => to_store_error(crate::Error::file(
                format_location(location),
                "the file was replaced or changed while it was read; run the statement again",
            )),
            e => e,
        })
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> object_store::Result<Vec<Bytes>> {
        // For the file system, this only opens the file. The ranges are read below.
        let found = self.get_opts(location, GetOptions::default()).await?;
        let size = found.meta.size;
        let GetResultPayload::File(file, path) = found.payload else {
            let read = |range: Range<u64>| async move {
                let options = GetOptions::new().with_range(Some(GetRange::Bounded(range)));
                self.get_opts(location, options).await?.bytes().await
            };
            return coalesce_ranges(ranges, read, OBJECT_STORE_COALESCE_DEFAULT).await;
        };
        let ranges = ranges.to_vec();
        let read = tokio::task::spawn_blocking(move || read_ranges(&file, size, &ranges)).await?;
        read.map_err(|e| to_store_error(crate::Error::io(&path, e)))
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;
    use object_store::local::LocalFileSystem;

    use super::*;

    #[tokio::test]
    async fn a_replaced_or_cut_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a.csv"), dir.path().join("b.csv"));
        let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new());
        let location = Path::from_filesystem_path(dir.path()).unwrap().join("a.csv");
        for change in ["none", "replace", "cut"] {
            std::fs::write(&path, "0123456789").unwrap();
            let meta = store.head(&location).await.unwrap();
            let pinned = pin_version(&store, &ObjectStoreUrl::local_filesystem(), &meta);
            let read = pinned.get_ranges(&location, &[1..3, 7..10]).await.unwrap();
            assert_eq!(read, [&b"12"[..], &b"789"[..]]);
            assert!(pinned.get_ranges(&location, std::slice::from_ref(&(7..11))).await.is_err());
            match change {
                "none" => {
                    let first = pinned.get_range(&location, 0..1).await.unwrap();
                    assert_eq!(first, Bytes::from_static(b"0"));
                    continue;
                }
                "replace" => {
                    std::fs::write(&other, "abcdefghij").unwrap();
                    std::fs::rename(&other, &path).unwrap();
                }
                _ => std::fs::write(&path, "0123").unwrap(),
            }
            for read in [
                pinned.get_ranges(&location, std::slice::from_ref(&(0..1))).await.map(|_| ()),
                pinned.get_range(&location, 0..1).await.map(|_| ()),
            ] {
                let error = read.unwrap_err().to_string();
                assert!(error.contains("a.csv: the file was replaced or changed"), "{error}");
            }
        }
    }
}
