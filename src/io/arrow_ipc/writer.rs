//! Writers of both forms.

use std::io::Write;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions as ArrowOptions, StreamWriter};

use crate::error::Result;
use crate::io::atomic::AtomicFile;
use crate::table::RaggedTable;

/// Which of Arrow's two forms is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpcForm {
    /// With an index at the end, for random access; usually `.arrow`.
    #[default]
    File,
    /// Batch after batch, for pipes; usually `.arrows`.
    Stream,
}

/// How buffers are compressed. Compressed ones cannot be used in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpcCompression {
    /// Not at all.
    #[default]
    None,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// Options of [`IpcTableWriter`].
#[derive(Clone, Copy, Debug, Default)]
pub struct IpcWriteOptions {
    /// Whether a file that exists is replaced; it is refused otherwise.
    pub overwrite: bool,
    /// File or stream.
    pub form: IpcForm,
    /// Compression of buffers.
    pub compression: IpcCompression,
}

/// Writes tables, one batch each, as Arrow IPC to a file that appears whole, or to any writer.
pub struct IpcTableWriter<W: Write = AtomicFile> {
    inner: Inner<W>,
    schema: SchemaRef,
}

enum Inner<W: Write> {
    File(FileWriter<W>),
    Stream(StreamWriter<W>),
}

impl IpcTableWriter {
    /// Starts a file; its schema is that of [`RaggedTable::arrow_schema`] or one with other kinds of
    /// lists.
    ///
    /// # Errors
    /// When the file exists and may not be replaced, or cannot be made.
    pub fn create(
        path: impl AsRef<Path>,
        schema: &SchemaRef,
        options: &IpcWriteOptions,
    ) -> Result<Self> {
        Self::new(AtomicFile::create(path, options.overwrite)?, schema, options)
    }

    /// Completes the file, syncs it to disk and gives it its name.
    ///
    /// # Errors
    /// When the disk is full, or a file of that name appeared meanwhile and may not be replaced.
    pub fn finish(self) -> Result<()> {
        self.into_inner()?.commit()
    }
}

impl<W: Write> IpcTableWriter<W> {
    /// Starts to write to `out` (standard output, say); `overwrite` does not matter.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn new(out: W, schema: &SchemaRef, options: &IpcWriteOptions) -> Result<Self> {
        // Buffers at multiples of 64 bytes can be used in place by any reader.
        let arrow = ArrowOptions::default().try_with_compression(match options.compression {
            IpcCompression::None => None,
            IpcCompression::Lz4 => Some(CompressionType::LZ4_FRAME),
            IpcCompression::Zstd => Some(CompressionType::ZSTD),
        })?;
        let inner = match options.form {
            IpcForm::File => Inner::File(FileWriter::try_new_with_options(out, schema, arrow)?),
            IpcForm::Stream => {
                Inner::Stream(StreamWriter::try_new_with_options(out, schema, arrow)?)
            }
        };
        Ok(Self { inner, schema: SchemaRef::clone(schema) })
    }

    /// Appends a table as one batch.
    ///
    /// # Errors
    /// A missing column, another type, or the system's refusal to write.
    pub fn write(&mut self, table: &RaggedTable) -> Result<()> {
        self.write_batch(&table.to_batch_as(&self.schema)?)
    }

    /// Appends a batch; its list columns need not share their lengths.
    ///
    /// # Errors
    /// Another schema, dictionaries that differ from those of earlier batches (in a file; a stream
    /// may replace them), or the system's refusal to write.
    pub fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.inner {
            Inner::File(w) => w.write(batch)?,
            Inner::Stream(w) => w.write(batch)?,
        }
        Ok(())
    }

    /// Writes the end and gives the writer back.
    ///
    /// # Errors
    /// The system's refusal to write.
    pub fn into_inner(self) -> Result<W> {
        Ok(match self.inner {
            Inner::File(w) => w.into_inner()?,
            Inner::Stream(w) => w.into_inner()?,
        })
    }
}

impl<W: Write> std::fmt::Debug for IpcTableWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IpcTableWriter").field("schema", &self.schema).finish_non_exhaustive()
    }
}
