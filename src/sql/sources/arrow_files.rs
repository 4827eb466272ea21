use std::fmt;
use std::io::Seek;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, RenameOptions,
};

use crate::sql::sources::urls::format_location;
use serrate_core::internal::arrow_ipc::Checker;

/// An object store that checks the sizes and offsets in Arrow files and streams, because DataFusion's readers
/// allocate whatever a file declares. It checks each message that a reader requests by a range of
/// bytes, or all messages if a reader requests the whole object.
#[derive(Debug)]
pub(in crate::sql) struct CheckedArrow {
    inner: Arc<dyn ObjectStore>,
}

impl CheckedArrow {
    pub(in crate::sql) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner }
    }
}

fn make_damage_error(location: &Path, message: impl fmt::Display) -> object_store::Error {
    let source = format!("{}: the file is damaged: {message}", format_location(location)).into();
    object_store::Error::Generic { store: "Arrow file", source }
}

impl fmt::Display for CheckedArrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for CheckedArrow {
    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        let options = match options.range {
            // Replaces a request for the last `length` bytes, which Azure refuses, with a request
            // for a range from the start. DataFusion's reader requests the footer in this way.
            Some(GetRange::Suffix(length)) => {
                let size = self.inner.head(location).await?.size;
                options.with_range(Some(size.saturating_sub(length)..size))
            }
            _ => options,
        };
        let whole = options.range.is_none() && !options.head;
        let answer = self.inner.get_opts(location, options).await?;
        if !whole {
            return Ok(answer);
        }
        if let GetResultPayload::File(file, _) = &answer.payload {
            let mut file = file;
            let checked = Checker::try_new(file).map(|mut checker| checker.check());
            let checked = checked.map_err(|e| make_damage_error(location, e))?;
            file.rewind().map_err(|e| make_damage_error(location, e))?;
            return checked
                .map(|()| answer)
                .map_err(|message| make_damage_error(location, message));
        }
        let (meta, range) = (answer.meta.clone(), answer.range.clone());
        let attributes = answer.attributes.clone();
        let bytes = answer.bytes().await?;
        Checker::from_message_bytes(&bytes)
            .check()
            .map_err(|message| make_damage_error(location, message))?;
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> object_store::Result<Vec<Bytes>> {
        let size = self.inner.head(location).await?.size;
        if let Some(outside) = ranges.iter().find(|r| r.start > r.end || r.end > size) {
            return Err(make_damage_error(
                location,
                format!(
                    "the block from byte {} to byte {} is not within the {size} bytes of the file; create the file again",
                    outside.start, outside.end
                ),
            ));
        }
        let blocks = self.inner.get_ranges(location, ranges).await?;
        // DataFusion's reader requests one message per range, so each block is checked as one message.
        for block in &blocks {
            let checked = Checker::from_message_bytes(block).check_stream();
            checked.map_err(|message| make_damage_error(location, message))?;
        }
        Ok(blocks)
    }

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

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
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
