//! Writers of both forms.

use std::io::Write;
use std::path::Path;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
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
    /// The schema as written: in a file, without dictionaries.
    written: SchemaRef,
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
        let written = match options.form {
            IpcForm::File => without_dictionaries(schema),
            IpcForm::Stream => SchemaRef::clone(schema),
        };
        let inner = match options.form {
            IpcForm::File => Inner::File(FileWriter::try_new_with_options(out, &written, arrow)?),
            IpcForm::Stream => {
                Inner::Stream(StreamWriter::try_new_with_options(out, schema, arrow)?)
            }
        };
        Ok(Self { inner, schema: SchemaRef::clone(schema), written })
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
    /// Another schema, or the system's refusal to write.
    pub fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let cast_batch;
        let batch = if self.written == self.schema {
            batch
        } else {
            cast_batch = as_schema(batch, &self.written)?;
            &cast_batch
        };
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

/// The batch with its columns cast to the types of a schema.
pub(crate) fn as_schema(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> std::result::Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns
        .map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(ArrayRef::clone(column)),
            false => cast(column, field.data_type()),
        })
        .collect::<std::result::Result<_, _>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &rows)
}

/// A file holds one dictionary per column for all its batches, which batches of several sources do not
/// share: their values are written instead.
pub(crate) fn without_dictionaries(schema: &SchemaRef) -> SchemaRef {
    fn plain(data_type: &DataType) -> DataType {
        let inner =
            |f: &FieldRef| Arc::new(f.as_ref().clone().with_data_type(plain(f.data_type())));
        match data_type {
            DataType::Dictionary(_, values) => plain(values),
            DataType::List(f) => DataType::List(inner(f)),
            DataType::LargeList(f) => DataType::LargeList(inner(f)),
            DataType::FixedSizeList(f, n) => DataType::FixedSizeList(inner(f), *n),
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
            other => other.clone(),
        }
    }
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_data_type(plain(f.data_type())))
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

impl<W: Write> std::fmt::Debug for IpcTableWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IpcTableWriter").field("schema", &self.schema).finish_non_exhaustive()
    }
}
