use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;

use super::mapped_file::MappedFile;
use super::message_check::{CheckedStream, MessageChecker};
use super::read_options::IpcReadOptions;
use crate::access;
use crate::error::{Error, Result};
use crate::io::named_columns::find_named_columns;
use crate::io::reader_panics::contain_panics;
use crate::table::RaggedTable;

const STREAM_BUFFER_BYTES: usize = 1 << 20;

/// Reads an Arrow IPC file or stream, batch by batch, as chunks of a ragged table.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::RaggedTable;
/// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
/// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
/// use serrate::io::arrow_ipc::{self, IpcTableReader};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.arrow");
/// arrow_ipc::write(&path, &table, &Default::default())?;
/// let reader = IpcTableReader::open(&path, &Default::default())?;
/// assert_eq!((reader.schema().fields().len(), reader.num_batches()), (1, Some(1)));
/// let mut rows = 0;
/// for chunk in reader {
///     rows += chunk?.num_rows();
/// }
/// assert_eq!(rows, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct IpcTableReader {
    path: PathBuf,
    inner: ReaderForm,
    schema: SchemaRef,
}

enum ReaderForm {
    File {
        file: MappedFile,
        next: usize,
    },
    /// Input in the stream format: all columns are decoded, and unrequested columns are dropped
    /// afterwards.
    Stream {
        reader: Box<StreamReader<BufReader<Box<dyn Read + Send>>>>,
        columns: Option<Vec<usize>>,
    },
}

impl IpcTableReader {
    /// Opens a file and detects whether it is in the file or the stream format.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::arrow_ipc::{self, IpcReadOptions, IpcTableReader};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.arrow");
    /// arrow_ipc::write(&path, &table, &Default::default())?;
    /// let reader = IpcTableReader::open(&path, &IpcReadOptions::default())?;
    /// assert_eq!((reader.schema().fields().len(), reader.num_batches()), (1, Some(1)));
    /// let options = IpcReadOptions { columns: Some(vec!["code".into()]), ..Default::default() };
    /// assert!(IpcTableReader::open(&path, &options).is_err()); // no such column
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, is in neither format, or lacks a requested column.
    pub fn open(path: impl AsRef<Path>, options: &IpcReadOptions) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let mut file = access::open(&path).map_err(|e| Error::io(&path, e))?;
        let mut magic = [0; 6];
        let found = file.read(&mut magic).map_err(|e| Error::io(&path, e))?;
        file.seek(SeekFrom::Start(0)).map_err(|e| Error::io(&path, e))?;
        if found == 6 && magic == *b"ARROW1" {
            let file = MappedFile::open(&path, file, options)?;
            let schema = file.schema();
            return Ok(Self { path, inner: ReaderForm::File { file, next: 0 }, schema });
        }
        MessageChecker::try_new(&mut file)
            .map_err(|e| Error::io(&path, e))?
            .check()
            .map_err(|message| Error::file(&path, message))?;
        let length = file.metadata().map_err(|e| Error::io(&path, e))?.len();
        let buffer =
            usize::try_from(length).map_or(STREAM_BUFFER_BYTES, |n| n.min(STREAM_BUFFER_BYTES));
        file.rewind().map_err(|e| Error::io(&path, e))?;
        Self::open_stream(Box::new(file), &path, buffer, options)
    }

    /// Reads a stream such as standard input; `name` is used in errors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::arrow_ipc::{IpcForm, IpcTableReader, IpcTableWriter, IpcWriteOptions};
    /// let options = IpcWriteOptions { form: IpcForm::Stream, ..Default::default() };
    /// let mut writer = IpcTableWriter::new(Vec::new(), &table.arrow_schema()?, &options)?;
    /// writer.write(&table)?;
    /// let input = std::io::Cursor::new(writer.into_inner()?);
    /// let mut tables = IpcTableReader::from_stream(input, "stdin", &Default::default())?;
    /// assert_eq!(tables.next().unwrap()?.num_rows(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the input does not start like an Arrow stream, or a requested column is missing.
    pub fn from_stream(
        stream: impl Read + Send + 'static,
        name: &str,
        options: &IpcReadOptions,
    ) -> Result<Self> {
        let stream = CheckedStream::new(BufReader::with_capacity(STREAM_BUFFER_BYTES, stream));
        Self::open_stream(Box::new(stream), Path::new(name), 0, options)
    }

    fn open_stream(
        stream: Box<dyn Read + Send>,
        path: &Path,
        buffer: usize,
        options: &IpcReadOptions,
    ) -> Result<Self> {
        let stream = BufReader::with_capacity(buffer, stream);
        let reader = contain_panics(path, || {
            StreamReader::try_new(stream, None).map_err(|e| Error::file(path, e.to_string()))
        })?;
        let (schema, columns) = match options.columns.as_deref() {
            None => (reader.schema(), None),
            Some(columns) => {
                let indices = find_named_columns(path, &reader.schema(), columns)?;
                (Arc::new(reader.schema().project(&indices)?), Some(indices))
            }
        };
        let inner = ReaderForm::Stream { reader: Box::new(reader), columns };
        Ok(Self { path: path.to_path_buf(), inner, schema })
    }

    /// Returns the schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    /// Returns the number of batches; `None` for a stream.
    pub fn num_batches(&self) -> Option<usize> {
        match &self.inner {
            ReaderForm::File { file, .. } => Some(file.num_batches()),
            ReaderForm::Stream { .. } => None,
        }
    }

    /// Reads the next batch; `None` at the end.
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
    /// use serrate::io::arrow_ipc::{self, IpcTableReader};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.arrow");
    /// # arrow_ipc::write(&path, &table, &Default::default())?;
    /// let mut reader = IpcTableReader::open(&path, &Default::default())?;
    /// assert_eq!(reader.next_batch().unwrap()?.num_rows(), 2);
    /// assert!(reader.next_batch().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        match &mut self.inner {
            ReaderForm::File { file, next } => {
                if *next >= file.num_batches() {
                    return None;
                }
                *next += 1;
                Some(file.decode_batch(*next - 1))
            }
            ReaderForm::Stream { reader, columns } => {
                let path = &self.path;
                let next = contain_panics(path, || {
                    reader.next().transpose().map_err(|e| Error::file(path, e.to_string()))
                });
                let batch = next.transpose()?;
                Some(batch.and_then(|b| match columns {
                    None => Ok(b),
                    Some(columns) => Ok(b.project(columns)?),
                }))
            }
        }
    }
}

impl std::fmt::Debug for IpcTableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IpcTableReader")
            .field("path", &self.path)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl Iterator for IpcTableReader {
    type Item = Result<RaggedTable>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_batch()?.and_then(|b| RaggedTable::try_from_batch(&b)))
    }
}
