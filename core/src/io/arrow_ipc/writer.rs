//! Writes tables as Arrow IPC files or streams.

use std::io::Write;
use std::path::Path;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions as ArrowOptions, StreamWriter};

use crate::array::record_batch::build_record_batch;
use crate::error::Result;
use crate::io::atomic::AtomicFile;
use crate::table::RaggedTable;

/// The two formats of Arrow IPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpcForm {
    /// A file with an index at the end, for random access. Its name usually ends in `.arrow`.
    #[default]
    File,
    /// A sequence of batches, suitable for pipes. The name of a file in this format usually ends in
    /// `.arrows`.
    Stream,
}

/// Compression of buffers.
///
/// A reader must decompress compressed buffers, so it cannot use them in place in a mapped file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpcCompression {
    /// No compression.
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
    /// Whether to replace an existing file. If not, an existing file is an error.
    pub overwrite: bool,
    /// File or stream format.
    pub form: IpcForm,
    /// Compression of buffers.
    pub compression: IpcCompression,
}

/// Writes tables as Arrow IPC, one batch per table, to any writer or to a file that appears when it
/// is complete.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// use serrate::RaggedTable;
/// use serrate::io::arrow_ipc::{IpcForm, IpcReadOptions, IpcTableReader, IpcTableWriter, IpcWriteOptions};
/// let ages = Arc::new(Int32Array::from(vec![71, 38]));
/// let table = RaggedTable::builder().column("age", 0, ages).build()?;
/// let schema = table.arrow_schema()?;
/// let options = IpcWriteOptions { form: IpcForm::Stream, ..Default::default() };
/// let mut writer = IpcTableWriter::new(Vec::new(), &schema, &options)?;
/// writer.write(&table)?;
/// writer.write_batch(&table.to_batch()?)?;
/// let bytes = writer.into_inner()?;
/// let input = std::io::Cursor::new(bytes);
/// let mut reader = IpcTableReader::from_stream(input, "stdin", &IpcReadOptions::default())?;
/// assert_eq!((reader.schema(), reader.num_batches()), (schema, None));
/// assert_eq!(reader.next_batch().unwrap()?.num_rows(), 2);
/// # Ok::<(), serrate::Error>(())
/// ```
pub struct IpcTableWriter<W: Write = AtomicFile> {
    inner: WriterForm<W>,
    schema: SchemaRef,
    /// The schema of the output. In the file format, this is `schema` with each dictionary type
    /// replaced by its value type.
    written: SchemaRef,
}

enum WriterForm<W: Write> {
    File(FileWriter<W>),
    Stream(StreamWriter<W>),
}

impl IpcTableWriter {
    /// Starts a file.
    ///
    /// `schema` is the [`RaggedTable::arrow_schema`] of the tables, or the same schema with other
    /// list types, such as `LargeList` instead of `List`; the writer converts the tables to it.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::RaggedTable;
    /// use serrate::io::arrow_ipc::{IpcTableReader, IpcTableWriter};
    /// let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.arrow");
    /// let mut writer = IpcTableWriter::create(&path, &table.arrow_schema()?, &Default::default())?;
    /// writer.write(&table)?;
    /// writer.finish()?;
    /// assert_eq!(IpcTableReader::open(&path, &Default::default())?.num_batches(), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file exists and `overwrite` is false, or it cannot be created.
    pub fn create(
        path: impl AsRef<Path>,
        schema: &SchemaRef,
        options: &IpcWriteOptions,
    ) -> Result<Self> {
        Self::new(AtomicFile::create(path, options.overwrite)?, schema, options)
    }

    /// Completes the file, syncs it to disk and renames it from its temporary to its final name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::arrow_ipc::IpcTableWriter;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.arrow");
    /// let schema = table.arrow_schema()?;
    /// let mut writer = IpcTableWriter::create(&path, &schema, &Default::default())?;
    /// writer.write(&table)?;
    /// assert!(!path.exists());
    /// writer.finish()?;
    /// assert!(path.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the disk is full, or a file with the final name has appeared since the start and
    /// [`IpcWriteOptions::overwrite`] is false.
    pub fn finish(self) -> Result<()> {
        self.into_inner()?.commit()
    }
}

impl<W: Write> IpcTableWriter<W> {
    /// Starts writing to `out`, such as standard output; `overwrite` is ignored.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::arrow_ipc::IpcTableWriter;
    /// let schema = table.arrow_schema()?;
    /// let mut writer = IpcTableWriter::new(Vec::new(), &schema, &Default::default())?;
    /// writer.write(&table)?;
    /// assert!(writer.into_inner()?.starts_with(b"ARROW1"));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn new(out: W, schema: &SchemaRef, options: &IpcWriteOptions) -> Result<Self> {
        // Buffers are aligned to 64 bytes, so that any reader can use them in place.
        let arrow = ArrowOptions::default().try_with_compression(match options.compression {
            IpcCompression::None => None,
            IpcCompression::Lz4 => Some(CompressionType::LZ4_FRAME),
            IpcCompression::Zstd => Some(CompressionType::ZSTD),
        })?;
        let written = match options.form {
            IpcForm::File => remove_dictionaries(schema),
            IpcForm::Stream => SchemaRef::clone(schema),
        };
        let inner = match options.form {
            IpcForm::File => {
                WriterForm::File(FileWriter::try_new_with_options(out, &written, arrow)?)
            }
            IpcForm::Stream => {
                WriterForm::Stream(StreamWriter::try_new_with_options(out, schema, arrow)?)
            }
        };
        Ok(Self { inner, schema: SchemaRef::clone(schema), written })
    }

    /// Appends a table as one batch.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::arrow_ipc::{IpcTableReader, IpcTableWriter};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.arrow");
    /// let schema = table.arrow_schema()?;
    /// let mut writer = IpcTableWriter::create(&path, &schema, &Default::default())?;
    /// writer.write(&table)?;
    /// writer.write(&table)?;
    /// writer.finish()?;
    /// assert_eq!(IpcTableReader::open(&path, &Default::default())?.num_batches(), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the table lacks a column of the writer's schema, if a leaf type differs from this schema,
    /// or if writing fails.
    pub fn write(&mut self, table: &RaggedTable) -> Result<()> {
        self.write_batch(&table.to_batch_as(&self.schema)?)
    }

    /// Appends a batch.
    ///
    /// Unlike the columns of a [`RaggedTable`], list columns of the batch may differ in list
    /// lengths.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::arrow_ipc::{self, IpcTableWriter};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.arrow");
    /// let batch = table.to_batch()?;
    /// let mut writer = IpcTableWriter::create(&path, &batch.schema(), &Default::default())?;
    /// writer.write_batch(&batch)?;
    /// writer.finish()?;
    /// assert_eq!(arrow_ipc::read(&path, &Default::default())?.num_rows(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the schema of the batch differs from the schema of the writer, or writing fails.
    pub fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let cast_batch;
        let batch = if self.written == self.schema {
            batch
        } else {
            cast_batch = as_schema(batch, &self.written)?;
            &cast_batch
        };
        match &mut self.inner {
            WriterForm::File(w) => w.write(batch)?,
            WriterForm::Stream(w) => w.write(batch)?,
        }
        Ok(())
    }

    /// Writes the end of the file or stream and returns the underlying writer.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// use arrow::datatypes::{DataType, Field, Schema};
    /// use serrate::io::arrow_ipc::IpcTableWriter;
    /// let schema = Arc::new(Schema::new(vec![Field::new("age", DataType::Int32, true)]));
    /// let writer = IpcTableWriter::new(Vec::new(), &schema, &Default::default())?;
    /// assert!(writer.into_inner()?.ends_with(b"ARROW1")); // a file without batches
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If writing fails.
    pub fn into_inner(self) -> Result<W> {
        Ok(match self.inner {
            WriterForm::File(w) => w.into_inner()?,
            WriterForm::Stream(w) => w.into_inner()?,
        })
    }
}

/// Casts the columns of a batch to the types of a schema.
pub fn as_schema(
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
    build_record_batch(SchemaRef::clone(schema), columns, batch.num_rows())
}

/// Replaces dictionary types with their value types, because an Arrow file holds only one
/// dictionary per column, but batches from several sources have different dictionaries.
pub fn remove_dictionaries(schema: &SchemaRef) -> SchemaRef {
    fn find_plain_type(data_type: &DataType) -> DataType {
        let inner = |f: &FieldRef| {
            Arc::new(f.as_ref().clone().with_data_type(find_plain_type(f.data_type())))
        };
        match data_type {
            DataType::Dictionary(_, values) => find_plain_type(values),
            DataType::List(f) => DataType::List(inner(f)),
            DataType::LargeList(f) => DataType::LargeList(inner(f)),
            DataType::ListView(f) => DataType::ListView(inner(f)),
            DataType::LargeListView(f) => DataType::LargeListView(inner(f)),
            DataType::FixedSizeList(f, n) => DataType::FixedSizeList(inner(f), *n),
            DataType::Map(f, sorted) => DataType::Map(inner(f), *sorted),
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
            other => other.clone(),
        }
    }
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_data_type(find_plain_type(f.data_type())))
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

impl<W: Write> std::fmt::Debug for IpcTableWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IpcTableWriter").field("schema", &self.schema).finish_non_exhaustive()
    }
}
