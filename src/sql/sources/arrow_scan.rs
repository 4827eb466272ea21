use std::fmt;
use std::io::Cursor;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{StreamReader, read_footer_length};
use arrow::ipc::root_as_footer;
use bytes::Bytes;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    ArrowOpener, FileOpenFuture, FileOpener, FileScanConfig, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::sql::sources::adapt::{FileAdapter, repeated_column};
use crate::sql::sources::urls::shown_location;

/// A scan of Arrow files and streams that finds columns by name. DataFusion's source reads the
/// files of a table either all in the file format or all in the stream format. It reads columns at
/// their positions in the table, whatever the columns of the file
/// (`stock_arrow_files_are_still_read_by_position`).
#[derive(Clone)]
pub(in crate::sql) struct ArrowScan {
    /// DataFusion's source, which divides files and holds the metrics.
    stock: Arc<dyn FileSource>,
    projection: SplitProjection,
}

impl ArrowScan {
    pub(in crate::sql) fn new(stock: Arc<dyn FileSource>) -> Self {
        let table = stock.table_schema();
        let projection = match stock.projection() {
            Some(projection) => SplitProjection::new(table.file_schema(), projection),
            None => SplitProjection::unprojected(table),
        };
        Self { stock, projection }
    }
}

impl FileSource for ArrowScan {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        _config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let schema = self.table_schema().file_schema();
        let wanted = Arc::new(schema.project(&self.projection.file_indices)?);
        let opener = Arc::new(NamedOpener { store, wanted });
        ProjectionOpener::try_new(self.projection.clone(), opener, schema)
    }

    fn table_schema(&self) -> &TableSchema {
        self.stock.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { stock: self.stock.with_batch_size(batch_size), ..self.clone() })
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

/// Opens one file or stream, and returns the columns `wanted` of the table.
struct NamedOpener {
    store: Arc<dyn ObjectStore>,
    wanted: SchemaRef,
}

impl FileOpener for NamedOpener {
    fn open(&self, mut file: PartitionedFile) -> Result<FileOpenFuture> {
        let (store, wanted) = (Arc::clone(&self.store), Arc::clone(&self.wanted));
        Ok(Box::pin(async move {
            let location = file.object_meta.location.clone();
            let (form, schema) = read_schema(&store, &file.object_meta).await?;
            let mut columns = find_columns(&location, &wanted, &schema)?;
            columns.sort_unstable();
            let read = Arc::new(schema.project(&columns)?);
            let adapter = FileAdapter::try_new(&location, &wanted, &read)?;
            let opener = match form {
                Form::File => ArrowOpener::new_file_opener(store, Some(columns)),
                Form::Stream => {
                    // A stream cannot be read in ranges of bytes, so the first range reads all of it.
                    if file.range.take().is_some_and(|range| range.start > 0) {
                        return Ok(stream::empty().boxed());
                    }
                    ArrowOpener::new_stream_file_opener(store, Some(columns))
                }
            };
            let batches = opener.open(file)?.await?;
            Ok(batches.map(move |batch| adapter.adapt_batch(&batch?)).boxed())
        }))
    }
}

/// Returns the indices in a file's schema of those columns `wanted` that the file has.
fn find_columns(file: &Path, wanted: &SchemaRef, schema: &SchemaRef) -> Result<Vec<usize>> {
    let mut columns = Vec::with_capacity(wanted.fields().len());
    for field in wanted.fields() {
        let named = |at: &usize| schema.fields().get(*at).is_some_and(|f| f.name() == field.name());
        let mut places = (0..schema.fields().len()).filter(named);
        columns.extend(places.next());
        if places.next().is_some() {
            return exec_err!("{}", repeated_column(file, field.name()));
        }
    }
    Ok(columns)
}

enum Form {
    File,
    Stream,
}

/// Magic bytes at the start and at the end of a file.
const MAGIC: &[u8] = b"ARROW1";
/// Size in bytes of the end of a file: the length of the footer, and the magic.
const TAIL: u64 = 10;
/// Continuation marker before the length of a message, absent in old streams.
const MARKER: [u8; 4] = [0xff; 4];

async fn read_schema(store: &Arc<dyn ObjectStore>, meta: &ObjectMeta) -> Result<(Form, SchemaRef)> {
    let damaged = || {
        exec_datafusion_err!(
            "{}: the file is damaged, because its schema lies outside the file; write it again",
            shown_location(&meta.location)
        )
    };
    let read = async |start: u64, end: u64| -> Result<Bytes> {
        if start > end || end > meta.size {
            return Err(damaged());
        }
        Ok(store.get_range(&meta.location, start..end).await?)
    };
    let first = read(0, meta.size.min(8)).await?;
    if first.starts_with(MAGIC) {
        let footer_end = meta.size.checked_sub(TAIL).ok_or_else(damaged)?;
        let tail = read(footer_end, meta.size).await?;
        let tail = tail.as_ref().try_into().map_err(|_| damaged())?;
        let length = u64::try_from(read_footer_length(tail)?).map_err(|_| damaged())?;
        let start = footer_end.checked_sub(length).ok_or_else(damaged)?;
        let footer = read(start, footer_end).await?;
        let footer = root_as_footer(&footer).map_err(|_| damaged())?;
        let schema = fb_to_schema(footer.schema().ok_or_else(damaged)?);
        return Ok((Form::File, Arc::new(schema)));
    }
    let numbers: [u8; 8] = first.as_ref().try_into().map_err(|_| damaged())?;
    let [a, b, c, d, e, f, g, h] = numbers;
    let (head, length) = match [a, b, c, d] {
        MARKER => (8, [e, f, g, h]),
        length => (4, length),
    };
    let length = u64::try_from(i32::from_le_bytes(length)).map_err(|_| damaged())?;
    let message = read(0, head + length).await?;
    let reader =
        StreamReader::try_new(Cursor::new(message), None).map_err(DataFusionError::from)?;
    Ok((Form::Stream, reader.schema()))
}
