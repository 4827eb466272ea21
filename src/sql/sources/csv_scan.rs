use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Date32Array, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::Parser;
use arrow::csv::reader::Format;
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Field, FieldRef, Schema, SchemaRef, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::util::display::array_value_to_string;
use datafusion::catalog::Session;
use datafusion::common::config::CsvOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{exec_datafusion_err, exec_err, plan_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    CsvSource, FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::sql::sources::adapt::{FileAdapter, repeated_column};
use crate::sql::sources::listing::{merge_fields, merge_schemas};
use crate::sql::sources::urls::shown_location;

/// Returns the options of a format, with the session's setting for headers.
pub(in crate::sql) fn resolve_options(csv: &CsvFormat, state: &dyn Session) -> CsvOptions {
    let catalog = &state.config_options().catalog;
    let mut options = csv.options().clone();
    options.has_header = Some(options.has_header.unwrap_or(catalog.has_header));
    options.newlines_in_values =
        Some(options.newlines_in_values.unwrap_or(catalog.newlines_in_values));
    options
}

/// Whether headers name all columns. If the option `truncated_rows` is set, a header may have fewer
/// names than the rows have columns.
fn has_names(options: &CsvOptions) -> bool {
    options.has_header == Some(true)
        && options.truncated_rows != Some(true)
        && options.terminator.is_none()
}

/// Infers the schema of CSV files: all columns of their headers, with text for a column without a
/// value. DataFusion stops after the first thousand records, so it does not read the headers of
/// later files. It also gives an empty column the type Null, for which the reader ignores all later
/// values (`stock_columns_that_begin_empty_still_stay_empty`).
pub(in crate::sql) async fn infer_csv_schema(
    csv: &CsvFormat,
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    objects: &[ObjectMeta],
) -> Result<SchemaRef> {
    let schema = match csv.infer_schema(state, store, objects).await {
        Ok(schema) => schema,
        Err(_) if objects.len() > 1 => unite_types(csv, state, store, objects).await?,
        Err(e) => return Err(e),
    };
    let mut fields: Vec<FieldRef> = schema.fields().iter().map(Arc::clone).collect();
    let options = resolve_options(csv, state);
    if has_names(&options) && objects.len() > 1 {
        let compression = options.compression.into();
        let parallel = state.config_options().execution.meta_fetch_concurrency.get();
        let headers: Vec<Vec<String>> = stream::iter(objects.to_vec())
            .map(|object| {
                let (store, options) = (Arc::clone(store), options.clone());
                async move { read_header(&store, &object, compression, &options).await }
            })
            .buffered(parallel)
            .try_collect()
            .await?;
        let mut seen: HashSet<&str> = HashSet::new();
        for (object, header) in objects.iter().zip(&headers) {
            if !seen.is_empty()
                && !header.is_empty()
                && !header.iter().any(|n| seen.contains(n.as_str()))
            {
                return plan_err!(
                    "{}: the header has {}, none of which is a column of the other files; read the file as a table of its own, or set has_header to false if the files have no header",
                    shown_location(&object.location),
                    list_names(header.iter())
                );
            }
            seen.extend(header.iter().map(String::as_str));
            if header.iter().all(|name| fields.iter().any(|f| f.name() == name)) {
                continue;
            }
            let more = csv.infer_schema(state, store, std::slice::from_ref(object)).await?;
            for field in more.fields() {
                if !fields.iter().any(|f| f.name() == field.name()) {
                    fields.push(Arc::clone(field));
                }
            }
        }
    }
    let fields = fields.into_iter().map(|field| match field.data_type() {
        DataType::Null => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        _ => field,
    });
    Ok(Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())))
}

/// Infers the schema of each file, and merges the schemas. A column of integers in one file and
/// floats in another becomes a column of floats, as it would within one file.
async fn unite_types(
    csv: &CsvFormat,
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    objects: &[ObjectMeta],
) -> Result<SchemaRef> {
    let mut schemas = Vec::with_capacity(objects.len());
    for object in objects {
        schemas.push(csv.infer_schema(state, store, std::slice::from_ref(object)).await?);
    }
    merge_schemas(objects, &schemas, |a, b| {
        let is = |t: &DataType| [a, b].iter().any(|field| field.data_type() == t);
        match is(&DataType::Int64) && is(&DataType::Float64) {
            true => Some(Arc::new(a.as_ref().clone().with_data_type(DataType::Float64))),
            false => merge_fields(a, b),
        }
    })
}

/// Maximum number of bytes of a header. The rest of a longer header is ignored.
const MAX_HEADER: usize = 16 << 20;

/// Returns the names in the header of a file, none for an empty file.
async fn read_header(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    compression: FileCompressionType,
    options: &CsvOptions,
) -> Result<Vec<String>> {
    let bytes = store.get(&meta.location).await?.into_stream().map_err(DataFusionError::from);
    let mut bytes = compression.convert_stream(bytes.boxed())?;
    let mut start = Vec::new();
    while !has_record(&start, options) && start.len() < MAX_HEADER {
        match bytes.next().await {
            Some(more) => start.extend_from_slice(&more?),
            None => break,
        }
    }
    let mut format = Format::default()
        .with_header(true)
        .with_delimiter(options.delimiter)
        .with_quote(options.quote);
    if let Some(escape) = options.escape {
        format = format.with_escape(escape);
    }
    if let Some(comment) = options.comment {
        format = format.with_comment(comment);
    }
    let (schema, _) = format.infer_schema(start.as_slice(), Some(0)).map_err(|e| {
        exec_datafusion_err!(
            "{}: the header of the CSV file cannot be read ({e}); correct the first line or the options of the table",
            shown_location(&meta.location)
        )
    })?;
    Ok(schema.fields().iter().map(|f| f.name().clone()).collect())
}

/// Whether the bytes at the start of a file contain a whole record.
fn has_record(bytes: &[u8], options: &CsvOptions) -> bool {
    let (mut quoted, mut start) = (false, 0);
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == options.quote {
            quoted = !quoted;
        }
        if quoted || !matches!(byte, b'\n' | b'\r') {
            continue;
        }
        let line = bytes.get(start..at).unwrap_or_default();
        if !line.is_empty() && options.comment.is_none_or(|c| line.first() != Some(&c)) {
            return true;
        }
        start = at + 1;
    }
    false
}

fn list_names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// Returns the columns of a file in its order, with the types of the table. The names are those of the header
/// if it has all names of the table, or only names of the table. Any other header is ignored: the columns are
/// those of the table, in its order.
///
/// # Errors
/// If only some names are in both the header and the table, and one of these is at different positions.
fn arrange_fields(file: &Path, header: &[String], table: &SchemaRef) -> Result<SchemaRef> {
    let names: Vec<&String> = table.fields().iter().map(|f| f.name()).collect();
    let known: HashSet<&String> = header.iter().collect();
    if header.is_empty() || header.iter().eq(names.iter().copied()) {
        return Ok(Arc::clone(table));
    }
    if known.len() < header.len() {
        let mut seen = HashSet::new();
        return match header.iter().find(|name| !seen.insert(*name)) {
            Some(name) if header.len() != names.len() => {
                exec_err!("{}", repeated_column(file, name))
            }
            _ => Ok(Arc::clone(table)),
        };
    }
    let common = names.iter().filter(|name| known.contains(*name)).count();
    if common == header.len() || common == names.len() {
        let field = |name: &String| match table.field_with_name(name) {
            Ok(field) => field.clone(),
            Err(_) => Field::new(name, DataType::Utf8, true),
        };
        return Ok(Arc::new(Schema::new(header.iter().map(field).collect::<Vec<_>>())));
    }
    let in_place = header.iter().zip(&names).filter(|(a, b)| a == *b).count();
    if common == in_place {
        return Ok(Arc::clone(table));
    }
    exec_err!(
        "{}: the header has {}, but the columns of the table are {}; declare the columns with the names of the header",
        shown_location(file),
        list_names(header.iter()),
        list_names(names.into_iter())
    )
}

/// A scan of CSV files that finds columns by each file's header and loses no part of a date or time, unlike
/// DataFusion's source (`stock_csv_files_are_still_read_by_position`, apache/datafusion#4918).
#[derive(Clone)]
pub(in crate::sql) struct CsvScan {
    /// DataFusion's source, which divides files and holds the metrics.
    stock: Arc<dyn FileSource>,
    options: CsvOptions,
    projection: SplitProjection,
    batch_size: usize,
}

impl CsvScan {
    pub(in crate::sql) fn new(stock: Arc<dyn FileSource>, options: CsvOptions) -> Self {
        let table = stock.table_schema();
        let projection = match stock.projection() {
            Some(projection) => SplitProjection::new(table.file_schema(), projection),
            None => SplitProjection::unprojected(table),
        };
        Self { stock, options, projection, batch_size: 8192 }
    }
}

impl FileSource for CsvScan {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let table = self.table_schema().file_schema();
        let opener = HeaderOpener {
            store,
            url: config.object_store_url.clone(),
            compression: config.file_compression_type,
            options: self.options.clone(),
            table: Arc::clone(table),
            wanted: Arc::new(table.project(&self.projection.file_indices)?),
            batch_size: self.batch_size,
            partition,
        };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), table)
    }

    fn table_schema(&self) -> &TableSchema {
        self.stock.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let stock = self.stock.with_batch_size(batch_size);
        Arc::new(Self { stock, batch_size, ..self.clone() })
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table_schema().file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.stock.metrics()
    }

    fn file_type(&self) -> &str {
        self.stock.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stock.fmt_extra(t, f)
    }

    fn supports_repartitioning(&self) -> bool {
        self.stock.supports_repartitioning()
    }

    fn repartitioned(
        &self,
        target_partitions: usize,
        min_size: usize,
        ordering: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        self.stock.repartitioned(target_partitions, min_size, ordering, config)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), f)
    }
}

/// Opens one file, or a range of its bytes, and returns the columns `wanted` of the table.
#[derive(Clone)]
struct HeaderOpener {
    store: Arc<dyn ObjectStore>,
    url: ObjectStoreUrl,
    compression: FileCompressionType,
    options: CsvOptions,
    table: SchemaRef,
    wanted: SchemaRef,
    batch_size: usize,
    partition: usize,
}

impl FileOpener for HeaderOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let scan = self.clone();
        Ok(Box::pin(async move {
            let location = file.object_meta.location.clone();
            let fields = match has_names(&scan.options) {
                true => {
                    let meta = &file.object_meta;
                    let header =
                        read_header(&scan.store, meta, scan.compression, &scan.options).await?;
                    arrange_fields(&location, &header, &scan.table)?
                }
                false => Arc::clone(&scan.table),
            };
            let columns: Vec<usize> = scan
                .wanted
                .fields()
                .iter()
                .filter_map(|f| fields.index_of(f.name()).ok())
                .collect();
            let typed = Arc::new(fields.project(&columns)?);
            let adapter = FileAdapter::try_new(&location, &scan.wanted, &typed)?;
            let batches = scan.stock_opener(&fields, &columns)?.open(file)?.await?;
            let batches = batches.map(move |batch| {
                let batch = batch.and_then(|batch| to_types(&location, &batch, &typed))?;
                adapter.adapt_batch(&batch)
            });
            Ok(batches.boxed())
        }))
    }
}

impl HeaderOpener {
    /// Returns DataFusion's opener that reads the columns with the indices `columns` of a file. `fields` are
    /// all columns of the file.
    fn stock_opener(&self, fields: &SchemaRef, columns: &[usize]) -> Result<Arc<dyn FileOpener>> {
        let fields = fields.fields().iter().map(|field| {
            let data_type = type_read(field.data_type());
            field.as_ref().clone().with_data_type(data_type).with_nullable(true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let source = CsvSource::new(Arc::clone(&schema)).with_csv_options(self.options.clone());
        let mut source = source.with_batch_size(self.batch_size);
        let projection = ProjectionExprs::from_indices(columns, &schema);
        if let Some(projected) = source.try_pushdown_projection(&projection)? {
            source = projected;
        }
        let config = FileScanConfigBuilder::new(self.url.clone(), Arc::clone(&source))
            .with_file_compression_type(self.compression)
            .build();
        source.create_file_opener(Arc::clone(&self.store), &config, self.partition)
    }
}

/// Returns the type in which to read a column. In its own type, the reader would drop the time of day of a
/// date, and digits of a second that the type cannot hold (`stock_dates_still_lose_the_time_of_day`).
fn type_read(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Date32 => DataType::Utf8,
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        other => other.clone(),
    }
}

/// Converts columns that were read in another type (see [`type_read`]) to the types of the table.
fn to_types(file: &Path, batch: &RecordBatch, typed: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(typed.fields()).map(|(column, field)| {
        let found = match (field.data_type(), column.data_type()) {
            (to, from) if to == from => return Ok(Arc::clone(column)),
            (DataType::Date32, _) => to_dates(column),
            (to, _) => to_coarser(column, to),
        };
        found.map_err(|value| {
            exec_datafusion_err!(
                "{}: the column '{}' has the type {}, which cannot hold '{value}'; declare the column as TIMESTAMP or VARCHAR in CREATE EXTERNAL TABLE",
                shown_location(file),
                field.name(),
                field.data_type()
            )
        })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(typed), columns, &rows)?)
}

/// Parses dates. Returns as an error the first text that is no date, or has a time of day.
fn to_dates(texts: &ArrayRef) -> std::result::Result<ArrayRef, String> {
    const DAY: i64 = 86_400_000;
    let parse = |text: &str| {
        let days = Date32Type::parse(text)?;
        // A longer text has a time of day, unless it begins with the sign of a long year.
        let whole = text.len() <= 10
            || text.starts_with(['+', '-'])
            || Date64Type::parse(text).is_some_and(|milliseconds| milliseconds % DAY == 0);
        whole.then_some(days)
    };
    let dates = texts.as_string::<i32>().iter().map(|text| match text {
        None => Ok(None),
        Some(text) => parse(text).map(Some).ok_or_else(|| text.to_owned()),
    });
    Ok(Arc::new(dates.collect::<std::result::Result<Date32Array, String>>()?))
}

/// Converts microseconds to a coarser unit. Returns as an error the first value that is not a multiple of it.
fn to_coarser(column: &ArrayRef, to: &DataType) -> std::result::Result<ArrayRef, String> {
    let unit = match to {
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000,
        _ => 1_000,
    };
    let times = column.as_primitive::<TimestampMicrosecondType>();
    let finer = times.iter().position(|time| time.is_some_and(|time| time % unit != 0));
    if let Some(row) = finer {
        return Err(array_value_to_string(column, row).map_err(|e| e.to_string())?);
    }
    cast(column, to).map_err(|e| e.to_string())
}
