//! [`CsvScan`]: scans of CSV files that find columns by header, and lose no part of a value.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::config::CsvOptions;
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::{
    CsvSource, FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::projection::ProjectionExprs;
use futures::future::ready;
use futures::{StreamExt, stream};
use object_store::path::Path;
use regex::Regex;
use serrate_core::internal::{build_record_batch, find_repeated};

use crate::sql::sources::csv_records::{RangeStarts, check_closed_quotes};
use crate::sql::sources::csv_schema::{has_names, list_names, parse_null_regex, read_header};
use crate::sql::sources::exact_casts::{InexactConversion, convert_exact, format_unheld_message};
use crate::sql::sources::exact_texts::TextRules;
use crate::sql::sources::file_adapter::{FileAdapter, describe_repeated_column};
use crate::sql::sources::format_scan::{FormatScan, ReadFormat, ScannedColumns};
use crate::sql::sources::urls::format_location;

/// A scan of CSV files that finds columns by each file's header and loses no part of a value,
/// unlike DataFusion's source (test `stock_csv_files_are_still_read_by_position`,
/// apache/datafusion#4918).
pub(in crate::sql) type CsvScan = FormatScan<CsvReader>;

#[derive(Clone)]
pub(in crate::sql) struct CsvReader {
    options: CsvOptions,
    /// Whether a statement declares the columns, so that they may have other names than in the
    /// files.
    is_declared: bool,
    /// Finds the records at which ranges begin; `None` if the statement says that values have no
    /// line breaks.
    starts: Option<RangeStarts>,
}

impl CsvReader {
    /// Creates a reader. `is_declared` is true if the statement declares the columns, and
    /// `may_have_newlines` unless it says that values have no line breaks.
    pub(in crate::sql) fn new(
        options: CsvOptions,
        is_declared: bool,
        may_have_newlines: bool,
    ) -> Self {
        let starts = may_have_newlines.then(RangeStarts::default);
        Self { options, is_declared, starts }
    }
}

impl ReadFormat for CsvReader {
    fn create_opener(&self, wanted: ScannedColumns) -> Arc<dyn FileOpener> {
        Arc::new(CsvOpener { reader: self.clone(), wanted })
    }

    /// Whether a file may be divided into byte ranges. False if `stock`, the answer of DataFusion's
    /// source, is false. If values may contain line breaks, only local files are divided, because
    /// the search for the starts of the ranges reads the file a second time.
    fn can_divide(&self, stock: bool, config: &FileScanConfig) -> bool {
        let is_local = config.object_store_url == ObjectStoreUrl::local_filesystem();
        stock && (self.starts.is_none() || is_local)
    }
}

/// Returns, for each column of a header, the index of its column in the table, or `None` if the
/// table lacks it. In a table with declared columns (`is_declared`), the names may differ in case.
fn find_places(header: &[String], names: &[&String], is_declared: bool) -> Vec<Option<usize>> {
    let exact: HashMap<&str, usize> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let mut places: Vec<Option<usize>> =
        header.iter().map(|name| exact.get(name.as_str()).copied()).collect();
    if !is_declared {
        return places;
    }
    // In a declared table, names may differ in case, because SQL converts names without quotes to
    // lower case.
    let mut alike: HashMap<String, Option<usize>> = HashMap::new();
    let found: HashSet<usize> = places.iter().flatten().copied().collect();
    for (at, name) in names.iter().enumerate().filter(|(at, _)| !found.contains(at)) {
        alike.entry(name.to_lowercase()).and_modify(|at| *at = None).or_insert(Some(at));
    }
    for (place, name) in places.iter_mut().zip(header) {
        *place = place.or_else(|| alike.get(&name.to_lowercase()).copied().flatten());
    }
    places
}

/// Returns the columns of a file in the order of the file, with the types of the table.
///
/// If the statement does not declare the columns, the header names them. In a declared table, the
/// header names the columns if it has all columns of the table, or if all its names are columns of
/// the table. Otherwise, the header is ignored, and the file has the table's columns in order. In a
/// table `(a, b)`, the headers `b,a`, `b,a,c` and `b` name the columns, and `a,x` and `x,y` are
/// ignored.
///
/// # Errors
/// If the header names a column twice, if it names no column of a table that the statement does not
/// declare, or if it would be ignored but has a column of the declared table at another position
/// than in the table (`x,a`).
fn arrange_fields(
    file: &Path,
    header: &[String],
    table: &SchemaRef,
    is_declared: bool,
) -> Result<SchemaRef> {
    const OTHER_TABLE: &str =
        "read the file as a separate table, or set has_header to false if the files have no header";
    const DECLARE: &str = "declare the columns with the names of the header";
    let names: Vec<&String> = table.fields().iter().map(|f| f.name()).collect();
    if header.is_empty() || header.iter().eq(names.iter().copied()) {
        return Ok(Arc::clone(table));
    }
    let places = find_places(header, &names, is_declared);
    let mut seen = vec![false; names.len()];
    for (place, name) in places.iter().zip(header) {
        let Some(taken) = place.and_then(|at| seen.get_mut(at)) else { continue };
        if std::mem::replace(taken, true) {
            return exec_err!("{}", describe_repeated_column(file, name));
        }
    }
    let common = places.iter().flatten().count();
    let refuse = |remedy: &str| {
        exec_err!(
            "{}: the header has {}, but the columns of the table are {}; {remedy}",
            format_location(file),
            list_names(header.iter()),
            list_names(names.iter().copied())
        )
    };
    if !is_declared && common == 0 {
        return refuse(OTHER_TABLE);
    }
    if !is_declared || common == header.len() || common == names.len() {
        // Columns that the table lacks get names that no column of the table has.
        let field = |(at, place): (usize, &Option<usize>)| match place {
            Some(place) => table.field(*place).clone(),
            None => Field::new(format!("\0{at}"), DataType::Utf8, true),
        };
        return Ok(Arc::new(Schema::new(places.iter().enumerate().map(field).collect::<Vec<_>>())));
    }
    if let Some(name) = find_repeated(header).filter(|_| header.len() != names.len()) {
        return exec_err!("{}", describe_repeated_column(file, name));
    }
    let is_in_place = |(at, place): (usize, &Option<usize>)| place.is_none_or(|p| p == at);
    match places.iter().enumerate().all(is_in_place) {
        true => Ok(Arc::clone(table)),
        false => refuse(DECLARE),
    }
}

#[derive(Clone)]
struct CsvOpener {
    reader: CsvReader,
    wanted: ScannedColumns,
}

impl FileOpener for CsvOpener {
    fn open(&self, mut file: PartitionedFile) -> Result<FileOpenFuture> {
        let scan = Self { reader: self.reader.clone(), wanted: self.wanted.pin_file(&file) };
        Ok(Box::pin(async move {
            let location = file.object_meta.location.clone();
            let (reader, wanted) = (&scan.reader, &scan.wanted);
            let fields = match has_names(&reader.options) {
                true => {
                    let (meta, options) = (&file.object_meta, &reader.options);
                    let header =
                        read_header(&wanted.store, meta, wanted.compression, options).await?;
                    arrange_fields(&location, &header, &wanted.table, reader.is_declared)?
                }
                false => Arc::clone(&wanted.table),
            };
            if !scan.align_range(&mut file).await? {
                return Ok(stream::empty().boxed());
            }
            let columns: Vec<usize> = wanted
                .columns
                .fields()
                .iter()
                .filter_map(|f| fields.index_of(f.name()).ok())
                .collect();
            let typed = Arc::new(fields.project(&columns)?);
            let adapter = FileAdapter::try_new(&location, &wanted.columns, &typed)?;
            let is_inferred = !reader.is_declared;
            let rules = TextRules {
                exact_floats: is_inferred,
                numeric_times: false,
                local_times: is_inferred,
            };
            let nulls = reader.options.null_regex.as_deref().map(parse_null_regex).transpose()?;
            let end = scan.check_end(&file);
            let batches = scan.make_stock_opener(&fields, &columns)?.open(file)?.await?;
            let batches = batches.map(move |batch| {
                let batch = match &nulls {
                    Some(pattern) => set_nulls(&batch?, pattern)?,
                    None => batch?,
                };
                let batch = to_types(&location, &batch, &typed, rules)?;
                adapter.adapt_batch(&batch)
            });
            // The check follows the batches, so that LIMIT does not read the whole file.
            let unclosed = stream::once(end).filter_map(|end| ready(end.err().map(Err)));
            Ok(batches.chain(unclosed).boxed())
        }))
    }
}

impl CsvOpener {
    /// Moves the start and the end of a file's byte range forward to positions where records begin.
    /// Returns whether a record begins in the range.
    async fn align_range(&self, file: &mut PartitionedFile) -> Result<bool> {
        let (Some(range), Some(starts)) = (&file.range, &self.reader.starts) else {
            return Ok(true);
        };
        let (store, options) = (&self.wanted.store, &self.reader.options);
        let place = |at: i64| u64::try_from(at).unwrap_or(0);
        let (start, end) = (place(range.start), place(range.end));
        let start = starts.find_start(store, &file.object_meta, options, start).await?;
        let end = starts.find_start(store, &file.object_meta, options, end).await?;
        let place = |at: u64| i64::try_from(at).unwrap_or(i64::MAX);
        file.range = Some(FileRange { start: place(start), end: place(end) });
        Ok(start < end)
    }

    /// Checks that a local file does not end within quotes, if its byte range, which
    /// [`align_range`](Self::align_range) has aligned, ends with the file. The check reads the
    /// range again, so files of other stores are not checked.
    fn check_end(&self, file: &PartitionedFile) -> impl Future<Output = Result<()>> + use<> {
        let size = i64::try_from(file.object_meta.size).unwrap_or(i64::MAX);
        let start = match &file.range {
            None => Some(0),
            Some(range) if self.reader.starts.is_some() && range.end >= size => {
                u64::try_from(range.start).ok()
            }
            Some(_) => None,
        };
        let is_local = self.wanted.url == ObjectStoreUrl::local_filesystem();
        let start = start.filter(|_| is_local && !self.wanted.compression.is_compressed());
        let (store, options) = (Arc::clone(&self.wanted.store), self.reader.options.clone());
        let meta = file.object_meta.clone();
        async move {
            match start {
                Some(start) => check_closed_quotes(&store, &meta, &options, start).await,
                None => Ok(()),
            }
        }
    }

    /// Returns DataFusion's opener for the columns with indices `columns` among a file's `fields`.
    fn make_stock_opener(
        &self,
        fields: &SchemaRef,
        columns: &[usize],
    ) -> Result<Arc<dyn FileOpener>> {
        let (reader, wanted) = (&self.reader, &self.wanted);
        let fields = fields.fields().iter().map(|field| {
            let data_type = match &reader.options.null_regex {
                Some(_) => DataType::Utf8,
                None => choose_read_type(field.data_type(), reader.is_declared),
            };
            field.as_ref().clone().with_data_type(data_type).with_nullable(true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let source = CsvSource::new(Arc::clone(&schema)).with_csv_options(reader.options.clone());
        let mut source = source.with_batch_size(wanted.batch_size);
        let projection = ProjectionExprs::from_indices(columns, &schema);
        if let Some(projected) = source.try_pushdown_projection(&projection)? {
            source = projected;
        }
        let config = FileScanConfigBuilder::new(wanted.url.clone(), Arc::clone(&source))
            .with_file_compression_type(wanted.compression)
            .build();
        source.create_file_opener(Arc::clone(&wanted.store), &config, wanted.partition)
    }
}

/// Returns the type in which DataFusion reads a column: text if its reader would drop a part of a
/// value, such as the time of day of a date (test `stock_dates_still_lose_the_time_of_day`) or a
/// digit of a decimal. A column whose type was inferred as float is read as text, too, because it
/// may have integers that no float represents, such as 9007199254740993.
fn choose_read_type(data_type: &DataType, is_declared: bool) -> DataType {
    match data_type {
        DataType::Float64 if !is_declared => DataType::Utf8,
        t if t.is_decimal() => DataType::Utf8,
        DataType::Date32
        | DataType::Timestamp(_, _)
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Interval(_) => DataType::Utf8,
        other => other.clone(),
    }
}

/// Sets the strings that match `pattern`, and only these, to NULL. DataFusion's reader ignores
/// `null_regex` (test `stock_csv_files_still_keep_null_texts`) and reads an empty string as NULL.
fn set_nulls(batch: &RecordBatch, pattern: &Regex) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| -> ArrayRef {
        let texts = column.as_string::<i32>().iter().map(Option::unwrap_or_default);
        let texts = texts.map(|text| (!pattern.is_match(text)).then_some(text));
        Arc::new(texts.collect::<StringArray>())
    });
    Ok(build_record_batch(batch.schema(), columns.collect(), batch.num_rows())?)
}

/// Converts columns that were read as text (see [`choose_read_type`]) to the types of the table. A
/// value that its type cannot hold is an error that names `file`.
fn to_types(
    file: &Path,
    batch: &RecordBatch,
    typed: &SchemaRef,
    rules: TextRules,
) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(typed.fields()).map(|(column, field)| {
        convert_exact(column, field.data_type(), rules).map_err(|inexact| {
            let (name, data_type) = (field.name(), field.data_type());
            let message = match inexact {
                InexactConversion::Value { text, .. } => format_unheld_message(name, data_type, &text, ""),
                InexactConversion::Failed(e) => {
                    format!("the column '{name}' cannot be read as {data_type}; declare another type: {e}")
                }
            };
            exec_datafusion_err!("{}: {message}", format_location(file))
        })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(build_record_batch(Arc::clone(typed), columns, batch.num_rows())?)
}
