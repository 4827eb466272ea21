//! CSV, JSON and Arrow files in SQL: DataFusion's formats, with checks, quotes and atomic writes.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::config::CsvOptions;
use datafusion::common::parsers::CsvQuoteStyle;
use datafusion::common::{GetExt, Statistics, exec_err, internal_err, plan_err};
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::stream::{AbortHandle, StreamExt, abortable};
use object_store::{ObjectMeta, ObjectStore};

use crate::access;
use crate::sql::base::blocking::run_blocking;
use crate::sql::order::build_ordered_sink;
use crate::sql::sources::arrow_files::check_arrow_files;
use crate::sql::sources::arrow_scan::{ArrowReader, ArrowScan, infer_objects};
use crate::sql::sources::csv_nulls::NullTexts;
use crate::sql::sources::csv_scan::{CsvReader, CsvScan};
use crate::sql::sources::csv_schema::{
    check_options, infer_csv_schema, parse_null_regex, resolve_options,
};
use crate::sql::sources::file_output::{
    OutputOptions, ensure_batch, find_local_path, find_single_file, is_copy, is_copy_to_folder,
    make_folder,
};
use crate::sql::sources::guarded_source::infer_guarded;
use crate::sql::sources::inner_sink::{find_sink, write_to_target};
use crate::sql::sources::json;
use crate::sql::sources::json_scan::{JsonReader, JsonScan};
use crate::sql::sources::json_sink::write_nulls;
use crate::sql::sources::partition_folders::plan_folders;
use crate::sql::sources::run_ends::to_plain_schema;
use crate::sql::sources::urls::format_location;
use crate::sql::sources::write_options::{
    check_copy_options, check_insert_options, check_json_options,
};
use serrate_core::internal::NameLease;
use serrate_core::internal::arrow_ipc::{as_schema, remove_dictionaries};
use serrate_core::internal::csv::{CsvQuotes, has_text, quote_fields};
use serrate_core::internal::json::{convert_lists_to_json, make_text_schema};
use serrate_core::internal::spans::{convert_spans_to_texts, make_span_text_schema};

/// Creates formats of another factory, each wrapped in a [`WholeFileFormat`].
#[derive(Debug)]
pub(crate) struct WholeFileFormatFactory {
    inner: Arc<dyn FileFormatFactory>,
    extension: String,
}

impl WholeFileFormatFactory {
    pub(crate) fn new(inner: Arc<dyn FileFormatFactory>) -> Self {
        let extension = inner.get_ext();
        Self { inner, extension }
    }

    pub(crate) fn new_with_extension(
        inner: Arc<dyn FileFormatFactory>,
        extension: impl Into<String>,
    ) -> Self {
        Self { inner, extension: extension.into() }
    }
}

impl GetExt for WholeFileFormatFactory {
    fn get_ext(&self) -> String {
        self.extension.clone()
    }
}

impl FileFormatFactory for WholeFileFormatFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let (ours, theirs) =
            OutputOptions::take_overwrite(&self.extension.to_uppercase(), options)?;
        // DataFusion's factory for Arrow ignores options, so an unknown option is rejected here.
        let named = theirs.keys().filter(|key| !key.starts_with("execution."));
        if self.extension == "arrow"
            && let Some(key) = named.map(|key| key.strip_prefix("format.").unwrap_or(key)).min()
        {
            return plan_err!(
                "the format ARROW has no option '{key}'; its only option is overwrite"
            );
        }
        let has_form_option = theirs.keys().any(|k| k.ends_with("newline_delimited"));
        let inner = json::infer_all(self.inner.create(state, &theirs)?);
        if let Some(csv) = inner.downcast_ref::<CsvFormat>() {
            check_options(csv.options())?;
        }
        if let Some(options) = inner.downcast_ref::<JsonFormat>().map(JsonFormat::options)
            && options.compression_level.is_some()
            && !FileCompressionType::from(options.compression).is_compressed()
        {
            return plan_err!(
                "the option compression_level of JSON has no effect without compression; remove it"
            );
        }
        Ok(Arc::new(WholeFileFormat {
            array: json::as_array(&inner).filter(|_| !has_form_option),
            inner,
            extension: self.extension.clone(),
            overwrite: ours.overwrite,
            is_declared: false,
        }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        let inner = json::infer_all(self.inner.default());
        Arc::new(WholeFileFormat {
            array: json::as_array(&inner),
            inner,
            extension: self.extension.clone(),
            overwrite: false,
            is_declared: false,
        })
    }
}

/// Wraps a format of DataFusion, so that COPY to one local file first writes a temporary file next to it. The
/// file then appears completely or not at all.
///
/// Rows come in source order if the query has one; see [`in_source_order`](crate::sql::in_source_order). In
/// CSV, lists, structs and maps are written as JSON text, an empty string as `""`, and NULL as an empty
/// field. In Arrow files, dictionaries are written as their values, because a file holds one dictionary per
/// column. Run-end encoded columns of Arrow files are read as plain columns.
///
/// Both forms of JSON are read: one record per line, or a list of records. The first character of a
/// file decides, unless the option `newline_delimited` does. All files of a table have the same
/// form. A file that is a list is read by one thread, because it cannot be divided.
#[derive(Debug)]
pub(crate) struct WholeFileFormat {
    inner: Arc<dyn FileFormat>,
    /// The format for JSON lists of records, set if a file's first character decides on its form.
    array: Option<Arc<dyn FileFormat>>,
    extension: String,
    overwrite: bool,
    /// Whether a statement declares the columns, so that they are not inferred from the files.
    is_declared: bool,
}

/// Returns `format` for files whose columns a statement declares, so that they are not inferred.
pub(in crate::sql) fn declare_columns(format: Arc<dyn FileFormat>) -> Arc<dyn FileFormat> {
    match format.downcast_ref::<WholeFileFormat>() {
        Some(whole) => Arc::new(WholeFileFormat {
            inner: Arc::clone(&whole.inner),
            array: whole.array.clone(),
            extension: whole.extension.clone(),
            overwrite: whole.overwrite,
            is_declared: true,
        }),
        None => format,
    }
}

/// Returns the columns that a file names: those of the first records of a JSON file, and all
/// columns of a file of another format.
pub(in crate::sql) async fn find_named_columns(
    format: &Arc<dyn FileFormat>,
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
) -> Result<SchemaRef> {
    let objects = std::slice::from_ref(object);
    if let Some(whole) = format.downcast_ref::<WholeFileFormat>()
        && let Some(json) = whole.inner.downcast_ref::<JsonFormat>()
    {
        let has_lines = whole.has_lines(json, state, store, objects).await?;
        return json::infer_start(json, has_lines, store, object).await;
    }
    format.infer_schema(state, store, objects).await
}

#[async_trait]
impl FileFormat for WholeFileFormat {
    fn get_ext(&self) -> String {
        self.extension.clone()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        match self.extension == self.inner.get_ext() {
            true => self.inner.get_ext_with_compression(compression),
            false => Ok(format!("{}{}", self.extension, compression.get_ext())),
        }
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.inner.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        if let Some(json) = self.inner.downcast_ref::<JsonFormat>() {
            let has_lines = self.has_lines(json, state, store, objects).await?;
            return json::infer_records(json, has_lines, state, store, objects).await;
        }
        if let Some(csv) = self.inner.downcast_ref::<CsvFormat>() {
            return infer_csv_schema(csv, state, store, objects).await;
        }
        if !self.is_arrow() {
            return self.inner.infer_schema(state, store, objects).await;
        }
        if let Some(short) = objects.iter().find(|object| object.size < 8) {
            let shown = format_location(&short.location);
            return exec_err!(
                "{shown}: the file has {} bytes, but an Arrow file or stream has at least 8; create it again",
                short.size
            );
        }
        if let Some(schema) = infer_objects(store, objects).await? {
            return Ok(to_plain_schema(&schema));
        }
        let checked = check_arrow_files(Arc::clone(store));
        let schema = infer_guarded(self.inner.as_ref(), state, &checked, objects).await?;
        Ok(to_plain_schema(&schema))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.inner.infer_stats(state, store, table_schema, object).await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let json = self.inner.downcast_ref::<JsonFormat>();
        let (conf, has_lines) = match self.array {
            Some(_) => json::adapt_scan(state, conf).await?,
            None => (conf, json.is_some_and(JsonFormat::is_newline_delimited)),
        };
        let plan = self.inner.create_physical_plan(state, conf).await?;
        let scan = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        let Some(files) = scan.and_then(|scan| scan.downcast_ref::<FileScanConfig>()) else {
            return internal_err!(
                "internal error: expected a DataSourceExec as scan of {} files, found {}; please report it",
                self.name(),
                plan.name()
            );
        };
        let mut files = files.clone();
        let stock = Arc::clone(files.file_source());
        let csv = self.inner.downcast_ref::<CsvFormat>();
        files.file_source = match (csv, json) {
            (Some(csv), _) => {
                let options = resolve_options(csv, state);
                let has_no_newlines = csv.options().newlines_in_values == Some(false);
                let reader = CsvReader::new(options, self.is_declared, has_no_newlines);
                Arc::new(CsvScan::new(stock, reader))
            }
            (None, Some(_)) => {
                Arc::new(JsonScan::new(stock, JsonReader::new(has_lines, self.is_declared)))
            }
            (None, None) if self.is_arrow() => Arc::new(ArrowScan::new(stock, ArrowReader)),
            (None, None) => stock,
        };
        Ok(DataSourceExec::from_data_source(files))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan_folders(input, conf, order, |input, conf, order| {
            Box::pin(self.plan_writer(input, state, conf, order))
        })
        .await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.inner.file_source(table_schema)
    }
}

impl WholeFileFormat {
    /// Whether JSON files have one record per line.
    async fn has_lines(
        &self,
        json: &JsonFormat,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<bool> {
        match &self.array {
            Some(_) => Ok(!json::are_arrays(state, store, objects).await?),
            None => Ok(json.is_newline_delimited()),
        }
    }

    async fn plan_writer(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        mut conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let target = find_single_file(&conf);
        if target.is_none() && self.overwrite {
            return plan_err!(
                "the option 'overwrite' of {} applies only to COPY to one local file; name a file or \
                 remove the option",
                self.extension.to_uppercase()
            );
        }
        let schema = Arc::clone(conf.output_schema());
        let texts = match self.is_arrow() {
            true => Arc::clone(&schema),
            false => make_span_text_schema(&schema),
        };
        let quotes = match conf.table_partition_cols.is_empty() {
            true => self.find_csv_quotes(&texts),
            // Columns of PARTITIONED BY become names of folders, which must not be quoted. So no
            // string is quoted here, and DataFusion's writer decides on quotes.
            false => None,
        };
        self.check_csv_options(&conf, &texts, quotes.is_some())?;
        if let Some(json) = self.inner.downcast_ref::<JsonFormat>() {
            check_json_options(json.options(), is_copy(&conf))?;
        }
        let nulls = self.find_null_texts(&conf, quotes.is_some(), state)?;
        let written = match &quotes {
            Some(quotes) => quotes.quote_schema(&texts),
            None => self.convert_schema(&texts),
        };
        // A COPY of no rows to a folder writes one file with the columns, but no JSON file, because
        // a JSON file without records has no columns.
        let has_columns = !self.inner.is::<JsonFormat>();
        let even_empty = has_columns && target.is_none() && is_copy_to_folder(&conf);
        conf.output_schema = Arc::clone(&written);
        let folder = find_local_path(&conf);
        let whole = match target {
            Some(target) => {
                access::check_new(&target, self.overwrite)?;
                let (stem, url) = make_temporary_target(&conf, &target)?;
                conf.table_paths = vec![url];
                Some(WholeFile { target, stem, overwrite: self.overwrite })
            }
            None => None,
        };
        let plan = self.plan_stock_writer(&written, quotes.is_some(), state, conf).await?;
        let whole_file = whole.is_some();
        let sink = Arc::new(FormatSink {
            plan,
            schema,
            texts,
            written,
            quotes,
            nulls,
            whole,
            folder,
            even_empty,
        });
        match whole_file {
            true => build_ordered_sink(input, sink, order, self.name(), None),
            false => Ok(Arc::new(DataSinkExec::new(input, sink, order))),
        }
    }

    /// Returns an error if an option of CSV has no effect on the file to write, or if strings
    /// cannot be written with it. `is_quoted` is whether this format quotes strings itself.
    fn check_csv_options(
        &self,
        conf: &FileSinkConfig,
        texts: &SchemaRef,
        is_quoted: bool,
    ) -> Result<()> {
        let Some(csv) = self.inner.downcast_ref::<CsvFormat>() else { return Ok(()) };
        match is_copy(conf) {
            true => check_copy_options(csv.options())?,
            false => check_insert_options(csv.options(), has_text(texts))?,
        }
        if !is_quoted && has_text(texts) {
            check_escape(csv.options())?;
        }
        Ok(())
    }

    /// Returns the strings that represent NULL in a CSV file that is written, or `None` if only the
    /// empty string does. `is_quoted` is whether this format quotes strings itself.
    fn find_null_texts(
        &self,
        conf: &FileSinkConfig,
        is_quoted: bool,
        state: &dyn Session,
    ) -> Result<Option<NullTexts>> {
        let Some(csv) = self.inner.downcast_ref::<CsvFormat>() else { return Ok(None) };
        let options = resolve_options(csv, state);
        let Some(pattern) = &options.null_regex else { return Ok(None) };
        let pattern = parse_null_regex(pattern)?;
        let partitions = conf.table_partition_cols.iter().map(|(name, _)| name.clone()).collect();
        let quotes_strings = is_quoted && is_copy(conf);
        Ok(Some(NullTexts::new(pattern, options, quotes_strings, partitions)))
    }

    /// Plans DataFusion's writer of rows with the schema `written`. `is_quoted` is whether their
    /// strings are quoted already.
    async fn plan_stock_writer(
        &self,
        written: &SchemaRef,
        is_quoted: bool,
        state: &dyn Session,
        conf: FileSinkConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let unquoted = if is_quoted { self.remove_quotes() } else { None };
        let writer: &dyn FileFormat = match &unquoted {
            Some(csv) => csv,
            None => self.inner.as_ref(),
        };
        // Only the sink of this plan is used, so its input is an empty node.
        let nothing = Arc::new(EmptyExec::new(Arc::clone(written)));
        let plan =
            write_nulls(writer.create_writer_physical_plan(nothing, state, conf, None).await?);
        if !plan.is::<DataSinkExec>() {
            return internal_err!(
                "internal error: {} is not a format that can be written; please report it",
                self.extension
            );
        }
        Ok(plan)
    }

    fn is_arrow(&self) -> bool {
        self.inner.is::<ArrowFormat>()
    }

    fn name(&self) -> &'static str {
        if self.is_arrow() {
            "Arrow"
        } else if self.inner.is::<CsvFormat>() {
            "CSV"
        } else {
            "JSON"
        }
    }

    /// Returns how this sink quotes the strings of a CSV file before DataFusion's CSV writer
    /// receives them. Returns `None` if DataFusion's writer decides on quotes: if no column has
    /// strings, or if an option has a value for which quoted strings would be written wrongly.
    fn find_csv_quotes(&self, schema: &SchemaRef) -> Option<CsvQuotes> {
        let options = self.inner.downcast_ref::<CsvFormat>()?.options();
        let escape = match options.double_quote {
            // DataFusion's writer has the same default, but does not escape a backslash.
            Some(false) => options.escape.or(Some(b'\\')),
            _ => options.escape,
        };
        // A number or time may contain a delimiter such as a digit, `-` or `.`, and must then be
        // quoted. Only DataFusion's writer can quote fields that are not strings.
        let unusual = options.delimiter.is_ascii_alphanumeric()
            || !options.delimiter.is_ascii()
            || Some(options.delimiter) == escape
            || b"+-.: ".contains(&options.delimiter);
        let formats = [
            &options.date_format,
            &options.datetime_format,
            &options.timestamp_format,
            &options.timestamp_tz_format,
            &options.time_format,
        ];
        if !has_text(schema)
            || unusual
            || !options.quote.is_ascii()
            || escape.is_some_and(|escape| !escape.is_ascii())
            || options.quote_style != CsvQuoteStyle::Necessary
            || options.ignore_leading_whitespace == Some(true)
            || options.ignore_trailing_whitespace == Some(true)
            || options.terminator.is_some()
            || formats.into_iter().flatten().any(|format| may_need_quotes(format, options))
        {
            return None;
        }
        let null = options.null_value.clone().unwrap_or_default();
        let escape = escape.filter(|escape| *escape != options.quote);
        Some(CsvQuotes { delimiter: options.delimiter, quote: options.quote, escape, null })
    }

    fn remove_quotes(&self) -> Option<CsvFormat> {
        let mut options = self.inner.downcast_ref::<CsvFormat>()?.options().clone();
        options.quote_style = CsvQuoteStyle::Never;
        Some(CsvFormat::default().with_options(options))
    }

    /// Returns the schema of the file: without dictionaries in Arrow, and with text for nested
    /// columns in CSV. Files that the `serrate` command writes have this schema, too.
    fn convert_schema(&self, schema: &SchemaRef) -> SchemaRef {
        let nested = || schema.fields().iter().any(|f| f.data_type().is_nested());
        if self.is_arrow() {
            remove_dictionaries(schema)
        } else if self.inner.is::<CsvFormat>() && nested() {
            make_text_schema(schema)
        } else {
            Arc::clone(schema)
        }
    }
}

/// Whether a time in the format `format` may contain a delimiter, a quote or a line break.
fn may_need_quotes(format: &str, options: &CsvOptions) -> bool {
    let has = |byte: u8| format.as_bytes().contains(&byte);
    has(options.delimiter)
        || has(options.quote)
        || has(b'\n')
        || has(b'\r')
        || ["%n", "%t"].iter().any(|space| format.contains(space))
}

/// Returns an error if the option `escape` is a character other than the quote, or if
/// `double_quote` is false. DataFusion's writer ignores `escape`, or does not escape the escape
/// character itself.
fn check_escape(options: &CsvOptions) -> Result<()> {
    match options.escape {
        Some(escape) if escape != options.quote => plan_err!(
            "the option escape '{}' of CSV is not supported together with PARTITIONED BY or with options such as quote_style and date_format; remove escape or the other options",
            char::from(escape)
        ),
        _ if options.double_quote == Some(false) => plan_err!(
            "the option double_quote false of CSV is not supported together with PARTITIONED BY or with options such as quote_style and date_format; remove double_quote or the other options"
        ),
        _ => Ok(()),
    }
}

/// Draws a random name for a temporary folder next to the file `target`. Returns this name without
/// its extension, and the URL of the file in the temporary folder, which has the name of `target`.
fn make_temporary_target(
    conf: &FileSinkConfig,
    target: &Path,
) -> Result<(String, ListingTableUrl)> {
    let stem = NameLease::draw_stem();
    let ([url], Some(file)) = (conf.table_paths.as_slice(), target.file_name()) else {
        return internal_err!(
            "internal error: COPY must have exactly one target file; please report it"
        );
    };
    let mut url = url.get_url().clone();
    let folder = NameLease::format_data_name(&stem);
    match url.path_segments_mut() {
        Ok(mut path) => path.pop().push(&folder).push(&file.to_string_lossy()),
        Err(()) => {
            return internal_err!(
                "internal error: the URL of the target file of COPY has no path; please report it"
            );
        }
    };
    Ok((stem, ListingTableUrl::try_new(url, None)?))
}

/// Converts rows to the schema of the file and passes them to DataFusion's sink.
#[derive(Debug)]
struct FormatSink {
    /// DataFusion's plan that writes the files. Only its sink is used; its input is empty.
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    /// `schema`, but with strings for durations and intervals, except for an Arrow file.
    texts: SchemaRef,
    /// The schema of the file: `texts`, but with strings for nested columns in CSV, and without
    /// dictionaries in Arrow.
    written: SchemaRef,
    /// How to quote the strings of a CSV file before DataFusion's sink receives them. If `None`,
    /// DataFusion's sink quotes them.
    quotes: Option<CsvQuotes>,
    /// The strings that represent NULL in a CSV file. No value may be one of them.
    nulls: Option<NullTexts>,
    whole: Option<WholeFile>,
    /// The local folder that is the target if `whole` is `None`. `None` for object stores.
    folder: Option<PathBuf>,
    /// Whether a COPY to a folder writes a file even if there are no rows.
    even_empty: bool,
}

/// One local file, which DataFusion's sink first writes in a temporary folder.
#[derive(Clone, Debug)]
struct WholeFile {
    target: PathBuf,
    /// Name without extension of the temporary folder and of its lock file, held during the write.
    stem: String,
    overwrite: bool,
}

impl WholeFile {
    /// Writes rows to the temporary folder, then moves the file to `target`. Returns an error and
    /// writes no file if `stop` was aborted before all rows were written.
    async fn write_file(
        self,
        plan: Arc<dyn ExecutionPlan>,
        data: SendableRecordBatchStream,
        context: Arc<TaskContext>,
        stop: AbortHandle,
    ) -> Result<u64> {
        let Self { target, stem, overwrite } = self;
        make_folder(&target)?;
        let beside = target.parent().unwrap_or(Path::new("."));
        let io = |e| crate::Error::io(&target, e);
        // On drop, the lease removes the temporary folder with its contents.
        let lease = NameLease::acquire_named(beside, &stem).map_err(io)?;
        let folder = lease.data_path();
        access::create_dir_all(&folder).map_err(io)?;
        let rows = write_to_target(&plan, &target, data, &context).await?;
        if stop.is_aborted() {
            return exec_err!(
                "{}: the statement was cancelled, so this file was not written; run the statement again",
                target.display()
            );
        }
        let settle = move || {
            let file = folder.join(target.file_name().unwrap_or_default());
            let settled = serrate_core::internal::move_into_place(&file, &target, overwrite);
            drop(lease);
            settled
        };
        run_blocking(settle).await?;
        Ok(rows)
    }
}

struct StopOnDrop(AbortHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl FormatSink {
    fn convert_stream(&self, data: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let data = match self.texts == self.schema {
            true => data,
            false => self.convert_spans(data),
        };
        let data = match self.nulls.clone() {
            Some(nulls) => check_nulls(data, nulls),
            None => data,
        };
        if let Some(quotes) = self.quotes.clone() {
            let batches = data.map(move |batch| Ok(quote_fields(&batch?, &quotes)?));
            return Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.written), batches));
        }
        if self.written == self.texts {
            return data;
        }
        let written = Arc::clone(&self.written);
        let texts = self
            .written
            .fields()
            .iter()
            .zip(self.texts.fields())
            .any(|(to, from)| from.data_type().is_nested() && !to.data_type().is_nested());
        let batches = data.map(move |batch| {
            let batch = batch?;
            Ok(match texts {
                true => convert_lists_to_json(&batch)?,
                false => as_schema(&batch, &written)?,
            })
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.written), batches))
    }

    fn convert_spans(&self, data: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let batches = data.map(|batch| Ok(convert_spans_to_texts(&batch?)?));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.texts), batches))
    }
}

fn check_nulls(data: SendableRecordBatchStream, nulls: NullTexts) -> SendableRecordBatchStream {
    let schema = data.schema();
    let batches = data.map(move |batch| {
        let batch = batch?;
        nulls.check_batch(&batch)?;
        Ok(batch)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

impl DisplayAs for FormatSink {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.whole, self.plan.downcast_ref::<DataSinkExec>()) {
            (Some(whole), _) => write!(f, "WholeFileSink(file={})", whole.target.display()),
            (None, Some(plan)) => plan.sink().fmt_as(t, f),
            (None, None) => Ok(()),
        }
    }
}

#[async_trait]
impl DataSink for FormatSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn metrics(&self) -> Option<MetricsSet> {
        find_sink(&self.plan).ok()?.metrics()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let data = self.convert_stream(data);
        let Some(whole) = self.whole.clone() else {
            let data = if self.even_empty { ensure_batch(data) } else { data };
            return match &self.folder {
                Some(folder) => write_to_target(&self.plan, folder, data, context).await,
                None => find_sink(&self.plan)?.write_all(data, context).await,
            };
        };
        // If the write were part of this future, a drop of the future would leave behind tasks that
        // create files in the removed temporary folder. So a separate task writes and always runs
        // to its end; if this future is dropped, the task gets no more rows.
        let schema = data.schema();
        let (data, stop) = abortable(data);
        let data = Box::pin(RecordBatchStreamAdapter::new(schema, data));
        let _stop_on_drop = StopOnDrop(stop.clone());
        let write = whole.write_file(Arc::clone(&self.plan), data, Arc::clone(context), stop);
        tokio::spawn(write)
            .await
            .unwrap_or_else(|e| Err(DataFusionError::ExecutionJoin(Box::new(e))))
    }
}
