//! [`JsonScan`]: scans JSON files without dropping fractions of numbers.

use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
    StructArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, Field, Fields, Schema, SchemaRef};
use datafusion::common::exec_datafusion_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource, JsonOpener,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::StreamExt;
use object_store::ObjectStore;

use crate::sql::sources::urls::shown_location;

/// Scale of the decimals in which integer columns are read first. DataFusion's reader of integers
/// would drop a fraction; the decimal keeps it, so that the scan can report it.
const SCALE: i8 = 18;

/// A scan of JSON files for a table with integer columns. It reads them as decimals and returns an
/// error for a fraction. DataFusion's reader drops the fraction of a number in an integer column
/// (`stock_late_fields_of_json_are_still_lost`).
#[derive(Clone)]
pub(in crate::sql) struct JsonScan {
    /// DataFusion's source, which divides files and holds the metrics.
    stock: Arc<dyn FileSource>,
    /// Whether a file has one record per line, and is not a list of records.
    has_lines: bool,
    projection: SplitProjection,
    batch_size: usize,
}

impl JsonScan {
    /// Returns the scan, or `None` if no column has integers.
    pub(in crate::sql) fn try_new(stock: Arc<dyn FileSource>, has_lines: bool) -> Option<Self> {
        let table = stock.table_schema();
        let fields = table.file_schema().fields();
        if fields.iter().all(|field| type_read(field.data_type()) == *field.data_type()) {
            return None;
        }
        let projection = match stock.projection() {
            Some(projection) => SplitProjection::new(table.file_schema(), projection),
            None => SplitProjection::unprojected(table),
        };
        Some(Self { stock, has_lines, projection, batch_size: 8192 })
    }
}

impl FileSource for JsonScan {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let table = self.table_schema().file_schema();
        let wanted = Arc::new(table.project(&self.projection.file_indices)?);
        let read = Arc::new(Schema::new(fields_read(wanted.fields())));
        let stock = JsonOpener::new(
            self.batch_size,
            read,
            config.file_compression_type,
            store,
            self.has_lines,
        );
        let opener = ExactOpener { stock: Arc::new(stock), wanted };
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

/// Opens one file, or a range of its bytes, and converts its decimals to integers.
struct ExactOpener {
    stock: Arc<dyn FileOpener>,
    wanted: SchemaRef,
}

impl FileOpener for ExactOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let (location, wanted) = (file.object_meta.location.clone(), Arc::clone(&self.wanted));
        let is_start = file.range.as_ref().is_none_or(|range| range.start == 0);
        let opened = self.stock.open(file)?;
        Ok(Box::pin(async move {
            let mut before = 0usize;
            let batches = opened.await?.map(move |batch| {
                let batch = batch?;
                let exact = to_integers(&batch, &wanted).map_err(|found| {
                    // If only a byte range of the file is read, the number of rows before the range
                    // is unknown, so the error names no row.
                    let row = match (is_start, found.row) {
                        (true, Some(row)) => format!(" (row {})", before.saturating_add(row)),
                        _ => String::new(),
                    };
                    exec_datafusion_err!(
                        "{}: the column '{}' has the type {}, which cannot hold {}{row}; declare the column as DOUBLE in CREATE EXTERNAL TABLE",
                        shown_location(&location),
                        found.column,
                        found.data_type,
                        found.value
                    )
                })?;
                before = before.saturating_add(batch.num_rows());
                Ok(exact)
            });
            Ok(batches.boxed())
        }))
    }
}

/// A number that its column cannot hold.
struct Misfit {
    column: String,
    data_type: DataType,
    value: String,
    /// The row within the batch, if the column is no list and no struct.
    row: Option<usize>,
}

/// Returns the type in which a column is read: its own type, with decimals in place of integers.
fn type_read(data_type: &DataType) -> DataType {
    match data_type {
        t if t.is_integer() => DataType::Decimal128(38, SCALE),
        DataType::List(of) => DataType::List(Arc::new(field_read(of))),
        DataType::LargeList(of) => DataType::LargeList(Arc::new(field_read(of))),
        DataType::Struct(fields) => DataType::Struct(fields_read(fields)),
        other => other.clone(),
    }
}

fn field_read(field: &Field) -> Field {
    field.clone().with_data_type(type_read(field.data_type()))
}

fn fields_read(fields: &Fields) -> Fields {
    fields.iter().map(|field| Arc::new(field_read(field))).collect()
}

fn to_integers(
    batch: &RecordBatch,
    wanted: &SchemaRef,
) -> std::result::Result<RecordBatch, Misfit> {
    let columns = batch.columns().iter().zip(wanted.fields()).map(|(column, field)| {
        convert_column(column, field.data_type()).map_err(|(row, value)| Misfit {
            column: field.name().clone(),
            data_type: field.data_type().clone(),
            value,
            row: field.data_type().is_integer().then_some(row),
        })
    });
    let columns = columns.collect::<std::result::Result<Vec<_>, Misfit>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(wanted), columns, &rows).map_err(|e| Misfit {
        column: String::new(),
        data_type: DataType::Null,
        value: e.to_string(),
        row: None,
    })
}

/// Converts a column that was read in another type, see [`type_read`]. Returns as an error the position and the text
/// of the first number that the type cannot hold.
fn convert_column(
    column: &ArrayRef,
    to: &DataType,
) -> std::result::Result<ArrayRef, (usize, String)> {
    if column.data_type() == to {
        return Ok(Arc::clone(column));
    }
    let failed = |e: arrow::error::ArrowError| (0, e.to_string());
    Ok(match to {
        DataType::List(of) => Arc::new(convert_list::<i32>(column, of.data_type())?),
        DataType::LargeList(of) => Arc::new(convert_list::<i64>(column, of.data_type())?),
        DataType::Struct(fields) => {
            let parts = column.as_struct();
            let columns = parts.columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| convert_column(column, field.data_type()));
            let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
            let nulls = parts.nulls().cloned();
            let length = parts.len();
            let made = StructArray::try_new_with_length(fields.clone(), columns, nulls, length);
            Arc::new(made.map_err(failed)?)
        }
        to => {
            let numbers = column.as_primitive::<Decimal128Type>();
            let one = 10i128.pow(u32::from(SCALE.unsigned_abs()));
            let fraction = numbers.iter().position(|n| n.is_some_and(|n| n % one != 0));
            let text = |row: usize| {
                let text = numbers.value_as_string(row);
                match text.contains('.') {
                    true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                    false => text,
                }
            };
            if let Some(row) = fraction {
                return Err((row, text(row)));
            }
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            match cast_with_options(column, to, &strict) {
                Ok(integers) => integers,
                Err(e) => {
                    let lenient = CastOptions { safe: true, ..CastOptions::default() };
                    let held = cast_with_options(column, to, &lenient).map_err(failed)?;
                    let row = (0..column.len()).find(|r| column.is_valid(*r) && held.is_null(*r));
                    return Err(row.map_or_else(|| failed(e), |row| (row, text(row))));
                }
            }
        }
    })
}

fn convert_list<O: OffsetSizeTrait>(
    column: &ArrayRef,
    to: &DataType,
) -> std::result::Result<GenericListArray<O>, (usize, String)> {
    let (field, offsets, values, nulls) = column.as_list::<O>().clone().into_parts();
    let values = convert_column(&values, to)?;
    let field = Arc::new(field.as_ref().clone().with_data_type(to.clone()));
    GenericListArray::try_new(field, offsets, values, nulls).map_err(|e| (0, e.to_string()))
}
