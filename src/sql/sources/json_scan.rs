//! [`JsonScan`]: scans of JSON files that lose no part of a number or a time.

use std::io::{BufRead, BufReader, Chain, Cursor, Read};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use bytes::{Buf, Bytes};
use datafusion::common::exec_datafusion_err;
use datafusion::datasource::file_format::json::JsonDecoder;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig};
use datafusion::error::{DataFusionError, Result};
use datafusion_datasource::boundary_stream::AlignedBoundaryStream;
use datafusion_datasource::decoder::{DecoderDeserializer, deserialize_stream};
use datafusion_datasource_json::utils::JsonArrayToNdjsonReader;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::{GetResultPayload, ObjectStoreExt};
use serrate_core::internal::build_record_batch;

use crate::sql::sources::exact_casts::{InexactConversion, convert_exact, format_unheld_message};
use crate::sql::sources::exact_texts::TextRules;
use crate::sql::sources::format_scan::{FormatScan, ReadFormat, ScannedColumns};
use crate::sql::sources::urls::format_location;

/// A scan of JSON files with Serrate's reader. DataFusion's reader truncates a number with a
/// fraction in a column of integers, and drops digits of decimals and seconds. The test
/// `stock_late_fields_of_json_are_still_lost` fails once DataFusion's reader is fixed.
pub(in crate::sql) type JsonScan = FormatScan<JsonReader>;

#[derive(Clone)]
pub(in crate::sql) struct JsonReader {
    /// Whether a file has one record per line, and is not a list of records.
    has_lines: bool,
    rules: TextRules,
}

impl JsonReader {
    pub(in crate::sql) fn new(has_lines: bool, is_declared: bool) -> Self {
        let rules = TextRules {
            exact_floats: !is_declared,
            numeric_times: true,
            local_times: !is_declared,
        };
        Self { has_lines, rules }
    }
}

impl ReadFormat for JsonReader {
    fn create_opener(&self, wanted: ScannedColumns) -> Arc<dyn FileOpener> {
        Arc::new(JsonOpener { reader: self.clone(), wanted })
    }

    fn can_divide(&self, stock: bool, _config: &FileScanConfig) -> bool {
        stock && self.has_lines
    }
}

/// Opens a file or a byte range. The reader returns numbers as text; the opener converts them.
#[derive(Clone)]
struct JsonOpener {
    reader: JsonReader,
    wanted: ScannedColumns,
}

impl FileOpener for JsonOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let scan = Self { reader: self.reader.clone(), wanted: self.wanted.pin_file(&file) };
        Ok(Box::pin(async move {
            let location = file.object_meta.location.clone();
            let is_start = file.range.as_ref().is_none_or(|range| range.start == 0);
            let (wanted, rules) = (Arc::clone(&scan.wanted.columns), scan.reader.rules);
            let mut before = 0usize;
            let batches = scan.open_texts(file).await?.map(move |batch| {
                let batch = batch?;
                let exact = to_types(&batch, &wanted, rules, is_start.then_some(before));
                before = before.saturating_add(batch.num_rows());
                exact.map_err(|message| {
                    exec_datafusion_err!("{}: {message}", format_location(&location))
                })
            });
            Ok(batches.boxed())
        }))
    }
}

impl JsonOpener {
    /// Returns a builder of a reader that returns numbers as text.
    fn make_text_builder(&self) -> ReaderBuilder {
        let schema = Arc::new(Schema::new(choose_read_fields(
            self.wanted.columns.fields(),
            self.reader.rules,
        )));
        ReaderBuilder::new(schema)
            .with_batch_size(self.wanted.batch_size)
            .with_coerce_primitive(true)
    }

    async fn open_texts(
        &self,
        file: PartitionedFile,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let (wanted, meta) = (&self.wanted, &file.object_meta);
        let location = meta.location.clone();
        let is_start = file.range.as_ref().is_none_or(|range| range.start == 0);
        let bytes = match &file.range {
            Some(range) => {
                let place = |at: i64| u64::try_from(at).unwrap_or(0);
                let (start, end) = (place(range.start), place(range.end));
                let store = Arc::clone(&wanted.store);
                AlignedBoundaryStream::new(store, location, start, end, meta.size, b'\n')
                    .await?
                    .boxed()
            }
            None => {
                let answer = wanted.store.get(&location).await?;
                match answer.payload {
                    GetResultPayload::File(file, _) => {
                        return self.read_records(wanted.compression.convert_read(file)?);
                    }
                    GetResultPayload::Stream(bytes) if self.reader.has_lines => bytes,
                    GetResultPayload::Stream(_) => {
                        let bytes = answer.bytes().await?.reader();
                        return self.read_records(wanted.compression.convert_read(bytes)?);
                    }
                }
            }
        };
        let mut bytes =
            wanted.compression.convert_stream(bytes.map_err(DataFusionError::from).boxed())?;
        if is_start {
            bytes = skip_mark_of_stream(bytes).await?;
        }
        let decoder = JsonDecoder::new(self.make_text_builder().build_decoder()?);
        let batches = deserialize_stream(bytes.fuse(), DecoderDeserializer::new(decoder));
        Ok(batches.map_err(Into::into).boxed())
    }

    fn read_records(
        &self,
        reader: impl Read + Send + 'static,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let reader: Box<dyn BufRead + Send> = match self.reader.has_lines {
            true => Box::new(BufReader::new(skip_mark(reader)?)),
            false => Box::new(ListReader::try_new(reader)?),
        };
        let batches = self.make_text_builder().build(reader)?;
        Ok(stream::iter(batches).map_err(Into::into).boxed())
    }
}

/// The byte order mark of UTF-8, which a file may begin with.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Returns a reader of a file without the byte order mark that it may begin with.
pub(in crate::sql) fn skip_mark<R: Read>(
    mut reader: R,
) -> std::io::Result<Chain<Cursor<Vec<u8>>, R>> {
    let mut start = Vec::with_capacity(MARK.len());
    reader.by_ref().take(3).read_to_end(&mut start)?;
    if start == MARK {
        start.clear();
    }
    Ok(Read::chain(Cursor::new(start), reader))
}

/// Returns the bytes of a file without the byte order mark that they may begin with.
async fn skip_mark_of_stream(
    mut bytes: BoxStream<'static, Result<Bytes>>,
) -> Result<BoxStream<'static, Result<Bytes>>> {
    let mut start = Bytes::new();
    while start.len() < MARK.len() {
        match bytes.try_next().await? {
            Some(piece) if start.is_empty() => start = piece,
            Some(piece) => start = Bytes::from([start, piece].concat()),
            None => break,
        }
    }
    if start.starts_with(MARK) {
        start = start.slice(MARK.len()..);
    }
    Ok(stream::iter([Ok(start)]).chain(bytes).boxed())
}

/// Reads a JSON list of records and returns one line of text per record. An unterminated list is an
/// error.
pub(in crate::sql) struct ListReader<R: Read>(JsonArrayToNdjsonReader<Chain<Cursor<Vec<u8>>, R>>);

impl<R: Read> ListReader<R> {
    /// Creates a reader that skips a byte order mark of UTF-8 at the start of the file.
    pub(in crate::sql) fn try_new(reader: R) -> std::io::Result<Self> {
        Ok(Self(JsonArrayToNdjsonReader::new(skip_mark(reader)?)))
    }
}

impl<R: Read> Read for ListReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            self.0.validate_complete()?;
        }
        Ok(read)
    }
}

impl<R: Read> BufRead for ListReader<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.0.fill_buf()?.is_empty() {
            self.0.validate_complete()?;
        }
        self.0.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}

/// Returns the type in which DataFusion reads a column: text for numbers and times that its reader
/// would truncate.
fn choose_read_type(data_type: &DataType, rules: TextRules) -> DataType {
    match data_type {
        DataType::Float64 if rules.exact_floats => DataType::Utf8,
        t if t.is_integer() || t.is_decimal() => DataType::Utf8,
        DataType::Date32
        | DataType::Timestamp(_, _)
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Interval(_) => DataType::Utf8,
        DataType::List(of) => DataType::List(Arc::new(choose_read_field(of, rules))),
        DataType::LargeList(of) => DataType::LargeList(Arc::new(choose_read_field(of, rules))),
        DataType::Map(entries, sorted) => {
            DataType::Map(Arc::new(choose_read_field(entries, rules)), *sorted)
        }
        DataType::Struct(fields) => DataType::Struct(choose_read_fields(fields, rules)),
        other => other.clone(),
    }
}

fn choose_read_field(field: &Field, rules: TextRules) -> Field {
    field.clone().with_data_type(choose_read_type(field.data_type(), rules))
}

fn choose_read_fields(fields: &Fields, rules: TextRules) -> Fields {
    fields.iter().map(|field| Arc::new(choose_read_field(field, rules))).collect()
}

/// Converts columns that were read as text (see [`choose_read_type`]). `before` is the number of
/// rows of the file before the batch, or `None` if rows are not counted. The error is a message
/// without the name of the file.
fn to_types(
    batch: &RecordBatch,
    wanted: &SchemaRef,
    rules: TextRules,
    before: Option<usize>,
) -> std::result::Result<RecordBatch, String> {
    let columns = batch.columns().iter().zip(wanted.fields()).map(|(column, field)| {
        convert_exact(column, field.data_type(), rules).map_err(|inexact| match inexact {
            InexactConversion::Value { row, text } => {
                let place = before.map(|before| format!(" (row {})", before.saturating_add(row)));
                format_unheld_message(
                    field.name(),
                    field.data_type(),
                    &text,
                    &place.unwrap_or_default(),
                )
            }
            InexactConversion::Failed(e) => read_failure(field, &e),
        })
    });
    let columns = columns.collect::<std::result::Result<Vec<_>, String>>()?;
    build_record_batch(Arc::clone(wanted), columns, batch.num_rows()).map_err(|e| e.to_string())
}

fn read_failure(field: &Field, e: &ArrowError) -> String {
    format!(
        "the column '{}' cannot be read as {}; declare another type: {e}",
        field.name(),
        field.data_type()
    )
}
