//! The file form, decoded in place.

use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{FileDecoder, read_footer_length};
use arrow::ipc::{Block, MessageHeader, root_as_footer, root_as_message};
use bytes::Bytes;
use memmap2::Mmap;

use super::reader::{IpcReadOptions, projection};
use crate::error::{Error, Result};

/// Every file starts and ends with this.
const MAGIC: usize = 6;

/// A file in memory or mapped, its footer and dictionaries read.
pub(super) struct MappedFile {
    path: PathBuf,
    bytes: Bytes,
    decoder: FileDecoder,
    schema: SchemaRef,
    batches: Vec<Block>,
}

impl MappedFile {
    pub(super) fn open(path: &Path, mut file: File, options: &IpcReadOptions) -> Result<Self> {
        let io = |e| Error::io(path, e);
        let bytes = if options.mmap {
            // SAFETY: the map is private and read-only. What the system cannot promise, that nobody
            // truncates the file meanwhile, is said where the option is.
            Bytes::from_owner(unsafe { Mmap::map(&file) }.map_err(io)?)
        } else {
            let mut all = Vec::new();
            file.read_to_end(&mut all).map_err(io)?;
            Bytes::from(all)
        };
        let fail = |message: &str| Error::file(path, message);
        let arrow = |e: ArrowError| Error::file(path, e.to_string());

        let tail = bytes
            .last_chunk::<10>()
            .filter(|_| bytes.len() >= MAGIC + 2 + 10)
            .ok_or_else(|| fail("too short for an Arrow file"))?;
        let length = read_footer_length(*tail).map_err(arrow)?;
        let end = bytes.len() - 10;
        let start = end
            .checked_sub(length)
            .filter(|s| *s >= MAGIC)
            .ok_or_else(|| fail("the footer is longer than the file"))?;
        let footer = root_as_footer(&bytes[start..end])
            .map_err(|e| fail(&format!("the footer is damaged: {e}")))?;
        let schema = footer.schema().ok_or_else(|| fail("the footer has no schema"))?;
        let schema: SchemaRef = Arc::new(contained(path, || Ok(fb_to_schema(schema)))?);

        let mut decoder = FileDecoder::new(SchemaRef::clone(&schema), footer.version());
        for block in footer.dictionaries().iter().flatten() {
            let data = checked(&bytes, block).map_err(|m| fail(&m))?;
            contained(path, || decoder.read_dictionary(block, &data))?;
        }
        let shown = match options.columns.as_deref() {
            None => SchemaRef::clone(&schema),
            Some(columns) => {
                let indices = projection(path, &schema, columns)?;
                let shown = schema.project(&indices)?;
                decoder = decoder.with_projection(indices);
                Arc::new(shown)
            }
        };
        let batches = footer.recordBatches().iter().flatten().copied().collect();
        Ok(Self { path: path.to_path_buf(), bytes, decoder, schema: shown, batches })
    }

    pub(super) fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    pub(super) fn num_batches(&self) -> usize {
        self.batches.len()
    }

    /// Batch `index`, its buffers within the file's bytes where they are aligned and not compressed.
    pub(super) fn batch(&self, index: usize) -> Result<RecordBatch> {
        let fail = |message: String| Error::file(&self.path, format!("batch {index}: {message}"));
        let block = self.batches.get(index).ok_or_else(|| fail("there is none".into()))?;
        let data = checked(&self.bytes, block).map_err(fail)?;
        contained(&self.path, || self.decoder.read_record_batch(block, &data))?
            .ok_or_else(|| fail("an empty message".into()))
    }
}

/// Runs Arrow's decoder, which panics on types it does not know, and makes an error of that too.
///
/// What a panic leaves behind is not used: the file is given up.
pub(super) fn contained<T>(
    path: &Path,
    decode: impl FnOnce() -> std::result::Result<T, ArrowError>,
) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|e| Error::file(path, e.to_string())),
        Err(_) => Err(Error::file(path, "damaged: a type, or a length in it, makes no sense")),
    }
}

/// The bytes of a block, once every number that says where they are was compared with what there is:
/// the decoder takes them as given.
fn checked(bytes: &Bytes, block: &Block) -> std::result::Result<Buffer, String> {
    let outside = || "a block lies outside the file".to_string();
    let number = |n: i64| usize::try_from(n).map_err(|_| outside());
    let start = number(block.offset())?;
    let (head, body) = (number(block.metaDataLength().into())?, number(block.bodyLength())?);
    let end = head
        .checked_add(body)
        .and_then(|n| n.checked_add(start))
        .filter(|end| *end <= bytes.len())
        .ok_or_else(outside)?;
    let data = bytes.slice(start..end);

    // The message, after its length (four bytes, or eight with the marker of newer files).
    let skip = if data.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let message = data.get(skip..head).ok_or("a message shorter than its own length")?;
    let message = root_as_message(message).map_err(|e| format!("the message is damaged: {e}"))?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => {
            message.header_as_dictionary_batch().and_then(|d| d.data())
        }
        _ => None,
    };
    let batch = batch.ok_or("a message that is no batch")?;
    for (i, buffer) in batch.buffers().iter().flatten().enumerate() {
        let end = number(buffer.offset())
            .and_then(|o| o.checked_add(number(buffer.length())?).ok_or_else(outside))
            .map_err(|_| format!("buffer {i} lies outside the batch"))?;
        if end > body {
            return Err(format!("buffer {i} ends at {end}, but the batch has {body} bytes"));
        }
    }
    Ok(Buffer::from(data))
}
