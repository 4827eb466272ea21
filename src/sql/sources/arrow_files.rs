use std::fmt;
use std::io::Seek;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResult, GetResultPayload, ObjectStore, ObjectStoreExt,
};

use crate::sql::sources::store_reads::{StoreReads, into_store};
use crate::sql::sources::urls::format_location;
use serrate_core::internal::arrow_ipc::MessageChecker;

/// Returns a store that checks the sizes and offsets in Arrow files and streams, because
/// DataFusion's readers allocate whatever a file declares. It checks each message that a reader
/// requests by a range of bytes, or all messages if a reader requests the whole object.
pub(in crate::sql) fn check_arrow_files(inner: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
    into_store(CheckedArrow { inner })
}

#[derive(Debug)]
struct CheckedArrow {
    inner: Arc<dyn ObjectStore>,
}

fn make_damage_error(location: &Path, message: impl fmt::Display) -> object_store::Error {
    let source = format!("{}: the file is damaged: {message}", format_location(location)).into();
    object_store::Error::Generic { store: "Arrow file", source }
}

#[async_trait]
impl StoreReads for CheckedArrow {
    fn inner_store(&self) -> &Arc<dyn ObjectStore> {
        &self.inner
    }

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
            let checked = MessageChecker::try_new(file).map(|mut checker| checker.check());
            let checked = checked.map_err(|e| make_damage_error(location, e))?;
            file.rewind().map_err(|e| make_damage_error(location, e))?;
            return checked
                .map(|()| answer)
                .map_err(|message| make_damage_error(location, message));
        }
        let (meta, range) = (answer.meta.clone(), answer.range.clone());
        let attributes = answer.attributes.clone();
        let bytes = answer.bytes().await?;
        MessageChecker::from_message_bytes(&bytes)
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
        // DataFusion's reader requests one message per range, so each block is checked as one
        // message.
        for block in &blocks {
            let checked = MessageChecker::from_message_bytes(block).check_stream();
            checked.map_err(|message| make_damage_error(location, message))?;
        }
        Ok(blocks)
    }
}
