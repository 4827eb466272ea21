//! Decodes the batches of a memory-mapped Arrow file without copying their buffers.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::Block;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::FileDecoder;
use bytes::Bytes;

use super::message_check::{MessageChecker, TAIL_BYTES, find_footer_length, parse_footer};
use super::read_options::IpcReadOptions;
use crate::error::{Error, Result};
use crate::io::memory_map::map_file;
use crate::io::named_columns::find_named_columns;
use crate::io::reader_panics::contain_panics;

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
            map_file(&file).map_err(io)?
        } else {
            let mut all = Vec::new();
            file.read_to_end(&mut all).map_err(io)?;
            Bytes::from(all)
        };
        let fail = |message: &str| Error::file(path, message);
        let arrow = |e: ArrowError| Error::file(path, e.to_string());

        let tail = bytes.last_chunk::<{ TAIL_BYTES }>();
        let tail = tail.filter(|_| bytes.len() >= 8 + TAIL_BYTES).ok_or_else(
            || fail("the file is too short to be an Arrow file; it may be truncated, so create it again"),
        )?;
        let end = bytes.len() - TAIL_BYTES;
        let length = find_footer_length(*tail, end as u64).map_err(|m| fail(&m))?;
        let (footer, schema) = parse_footer(&bytes[end - length..end]).map_err(|m| fail(&m))?;
        let schema: SchemaRef = Arc::new(contain_panics(path, || Ok(fb_to_schema(schema)))?);

        let mut decoder = FileDecoder::new(SchemaRef::clone(&schema), footer.version());
        for block in footer.dictionaries().iter().flatten() {
            let data = check_block_bytes(&bytes, block).map_err(|m| fail(&m))?;
            contain_panics(path, || decoder.read_dictionary(block, &data).map_err(arrow))?;
        }
        let shown = match options.columns.as_deref() {
            None => SchemaRef::clone(&schema),
            Some(columns) => {
                let indices = find_named_columns(path, &schema, columns)?;
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

    /// Decodes the batch with the index `index`. A buffer that is aligned and not compressed is a
    /// view of the mapped file; other buffers are copied.
    pub(super) fn decode_batch(&self, index: usize) -> Result<RecordBatch> {
        let fail = |message: String| Error::file(&self.path, format!("batch {index}: {message}"));
        let block = self
            .batches
            .get(index)
            .ok_or_else(|| fail("the file has no batch with this index".into()))?;
        let data = check_block_bytes(&self.bytes, block).map_err(fail)?;
        let arrow = |e: ArrowError| Error::file(&self.path, e.to_string());
        contain_panics(&self.path, || self.decoder.read_record_batch(block, &data).map_err(arrow))?
            .ok_or_else(|| {
                fail(
                    "expected a record batch, found a message without one; create the file again"
                        .into(),
                )
            })
    }
}

/// Returns the bytes of a block (one batch). Checks all offsets in the block, because the decoder
/// uses them without a check.
fn check_block_bytes(bytes: &Bytes, block: &Block) -> std::result::Result<Buffer, String> {
    MessageChecker::from_message_bytes(bytes).check_block(block)?;
    let number = |n: i64| usize::try_from(n).map_err(|e| e.to_string());
    let start = number(block.offset())?;
    let length = number(block.metaDataLength().into())? + number(block.bodyLength())?;
    Ok(Buffer::from(bytes.slice(start..start + length)))
}
