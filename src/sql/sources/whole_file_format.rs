//! CSV, JSON and Arrow files in SQL: DataFusion's formats, with checks, quotes and atomic writes.

use std::collections::HashMap;
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
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use object_store::{ObjectMeta, ObjectStore};

use crate::access;
use crate::sql::order::build_ordered_sink;
use crate::sql::sources::arrow_files::check_arrow_files;
use crate::sql::sources::arrow_scan::{ArrowReader, ArrowScan, infer_objects};
use crate::sql::sources::csv_nulls::NullTexts;
use crate::sql::sources::csv_scan::{CsvReader, CsvScan};
use crate::sql::sources::csv_schema::{
    check_options, infer_csv_schema, parse_null_regex, resolve_options,
};
use crate::sql::sources::file_output::{
    OutputOptions, find_local_path, find_single_file, is_copy, is_copy_to_folder,
};
use crate::sql::sources::format_sink::{FormatSink, WholeFile, make_temporary_target};
use crate::sql::sources::guarded_source::infer_guarded;
use crate::sql::sources::json;
use crate::sql::sources::json_scan::{JsonReader, JsonScan};
use crate::sql::sources::json_sink::write_nulls;
use crate::sql::sources::partition_folders::plan_folders;
use crate::sql::sources::run_ends::to_plain_schema;
use crate::sql::sources::urls::format_location;
use crate::sql::sources::write_options::{
    check_copy_options, check_insert_options, check_json_options,
};
use serrate_core::internal::arrow_ipc::remove_dictionaries;
use serrate_core::internal::csv::{CsvQuotes, has_text};
use serrate_core::internal::json::make_text_schema;
use serrate_core::internal::spans::make_span_text_schema;

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

/// Wraps a format of DataFusion, so that COPY to one local file first writes a temporary file next
/// to it. The file then appears completely or not at all.
///
/// Rows come in source order if the query has one; see
/// [`in_source_order`](crate::sql::in_source_order). In CSV, lists, structs and maps are written as
/// JSON text, an empty string as `""`, and NULL as an empty field. In Arrow files, dictionaries are
/// written as their values, because a file holds one dictionary per column. Run-end encoded columns
/// of Arrow files are read as plain columns.
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
                let may_have_newlines = csv.options().newlines_in_values != Some(false);
                let reader = CsvReader::new(options, self.is_declared, may_have_newlines);
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
