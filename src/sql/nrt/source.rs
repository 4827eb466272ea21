//! Scanning `.nrt` files: [`NrtSource`] and its opener.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::schema::leaves;
use crate::array::{RaggedArray, leaf_type, list_depth};
use crate::io::nrt::{NrtFile, ReadOptions};
use crate::sql::config::{NrtNan, SerrateOptions};
use crate::table::RaggedTable;

/// A scan of `.nrt` files: which columns, and the settings in force when it was planned.
#[derive(Clone)]
pub(super) struct NrtSource {
    schema: TableSchema,
    projection: SplitProjection,
    options: SerrateOptions,
    batch_size: usize,
    metrics: ExecutionPlanMetricsSet,
}

impl NrtSource {
    pub(super) fn new(schema: TableSchema, options: SerrateOptions) -> Self {
        let projection = SplitProjection::unprojected(&schema);
        Self {
            schema,
            projection,
            options,
            batch_size: 8192,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    pub(super) fn with_options(&self, options: SerrateOptions) -> Self {
        Self { options, ..self.clone() }
    }
}

impl FileSource for NrtSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        _config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let schema = self.schema.file_schema().project(&self.projection.file_indices)?;
        let opener = NrtOpener {
            store,
            schema: Arc::new(schema),
            options: self.options.clone(),
            batch_size: self.batch_size,
        };
        ProjectionOpener::try_new(
            self.projection.clone(),
            Arc::new(opener),
            self.schema.file_schema(),
        )
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_size, ..self.clone() })
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "nrt"
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), f)
    }
}

/// Opens one file, or the part of it that a byte range stands for.
struct NrtOpener {
    store: Arc<dyn ObjectStore>,
    /// The columns to read, as the table has them.
    schema: SchemaRef,
    options: SerrateOptions,
    batch_size: usize,
}

impl FileOpener for NrtOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let store = Arc::clone(&self.store);
        let schema = Arc::clone(&self.schema);
        let (options, batch_size) = (self.options.clone(), self.batch_size);
        Ok(Box::pin(async move {
            let mmap = options.mmap;
            let nrt = open(&store, &file.object_meta, mmap).await?;
            let rows = match &file.range {
                None => 0..nrt.num_rows(),
                Some(range) => {
                    rows_of_range(range.start, range.end, file.object_meta.size, nrt.num_rows())
                }
            };
            let reader =
                Arc::new(Reader::try_new(nrt, schema, options.nrt_nan, options.leaf_batch_size)?);
            let parts = stream::try_unfold(rows, move |rows| {
                let reader = Arc::clone(&reader);
                async move {
                    if rows.is_empty() {
                        return Ok(None);
                    }
                    let read = move || {
                        let end = rows.start + reader.batch_rows(rows.clone(), batch_size)?;
                        Ok((reader.read(rows.start..end)?, end..rows.end))
                    };
                    if mmap {
                        return read().map(Some);
                    }
                    // Plain reads wait for the disk.
                    tokio::task::spawn_blocking(read)
                        .await
                        .map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?
                        .map(Some)
                }
            });
            Ok(parts.into_stream().boxed())
        }))
    }
}

/// Opens a file of a store: the handle of a local one, all bytes of another.
pub(super) async fn open(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    mmap: bool,
) -> Result<NrtFile> {
    match store.get(&meta.location).await?.payload {
        GetResultPayload::File(file, path) => {
            let options = ReadOptions { mmap, ..ReadOptions::default() };
            Ok(NrtFile::from_file(path, file, &options)?)
        }
        payload @ GetResultPayload::Stream(_) => {
            let GetResultPayload::Stream(bytes) = payload else {
                return Ok(NrtFile::from_bytes(meta.location.as_ref(), bytes::Bytes::new())?);
            };
            let parts: Vec<bytes::Bytes> = bytes.try_collect().await?;
            let whole = match parts.as_slice() {
                [one] => one.clone(),
                parts => parts.concat().into(),
            };
            Ok(NrtFile::from_bytes(meta.location.as_ref(), whole)?)
        }
    }
}

/// The rows of the byte range `start..end` of a file of `size` bytes: row `r` of `rows` belongs to
/// the range that holds byte `floor(r * size / rows)`.
fn rows_of_range(start: i64, end: i64, size: u64, rows: usize) -> Range<usize> {
    let first = |byte: i64| {
        // The first r with r * size / rows >= byte is ceil(byte * rows / size).
        let byte = u128::from(u64::try_from(byte).unwrap_or(0));
        let scaled = byte.saturating_mul(rows as u128);
        match u128::from(size) {
            0 => 0,
            size => usize::try_from(scaled.div_ceil(size)).unwrap_or(rows).min(rows),
        }
    };
    first(start)..first(end).max(first(start))
}

/// Rows of one file as batches of the table's schema.
struct Reader {
    file: NrtFile,
    schema: SchemaRef,
    /// Columns of the schema that the file has.
    present: Vec<String>,
    /// The deepest axis among them.
    depth: usize,
    nan_is_null: bool,
    leaves: usize,
}

impl Reader {
    fn try_new(file: NrtFile, schema: SchemaRef, nan: NrtNan, leaves: usize) -> Result<Self> {
        let mut present = Vec::new();
        let mut depth = 0;
        for field in schema.fields() {
            let Some(column) = file.columns().iter().find(|c| c.name() == field.name()) else {
                continue;
            };
            if column.axis() != list_depth(field.data_type()) {
                return Err(DataFusionError::Execution(format!(
                    "{}: column {:?} is on axis {}, but the table declares it as {}",
                    file.path().display(),
                    field.name(),
                    column.axis(),
                    field.data_type()
                )));
            }
            depth = depth.max(column.axis());
            present.push(field.name().clone());
        }
        Ok(Self { file, schema, present, depth, nan_is_null: nan == NrtNan::Null, leaves })
    }

    /// How many of `rows` go into the next batch: at least one.
    fn batch_rows(&self, rows: Range<usize>, batch_size: usize) -> Result<usize> {
        let rows = rows.start..rows.end.min(rows.start.saturating_add(batch_size.max(1)));
        Ok(match self.depth {
            0 => rows.len(),
            depth => self.file.rows_within(rows, depth, self.leaves)?,
        })
    }

    fn read(&self, rows: Range<usize>) -> Result<RecordBatch> {
        let names: Vec<&str> = self.present.iter().map(String::as_str).collect();
        let table = self.file.read(rows.clone(), Some(&names))?;
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|field| {
                if !self.present.contains(field.name()) {
                    return Ok(new_null_array(field.data_type(), rows.len()));
                }
                self.column(&table, field.name(), field.data_type())
            })
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    fn column(
        &self,
        table: &RaggedTable,
        name: &str,
        target: &arrow::datatypes::DataType,
    ) -> Result<ArrayRef> {
        let (rows, axes, values) = table.array(name)?.into_parts();
        let values = leaves(&values, leaf_type(target), self.nan_is_null)?;
        Ok(RaggedArray::try_new(rows, axes, values)?.to_arrow_as(target)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_by_bytes_give_every_row_once() {
        for rows in [0usize, 1, 2, 3, 10, 1000, 4097] {
            for size in [1u64, 7, 100, 1000, 1 << 20] {
                for cuts in [1i64, 2, 3, 4, 7, 64] {
                    let size_i = i64::try_from(size).unwrap();
                    let mut next = 0;
                    for c in 0..cuts {
                        let (a, b) = (size_i * c / cuts, size_i * (c + 1) / cuts);
                        let part = rows_of_range(a, b, size, rows);
                        assert_eq!(part.start, next, "rows {rows} size {size} cut {c} of {cuts}");
                        next = part.end;
                        for r in part {
                            let byte = r as u128 * u128::from(size) / rows as u128;
                            assert!((a..b).contains(&i64::try_from(byte).unwrap()));
                        }
                    }
                    assert_eq!(next, rows);
                }
            }
        }
    }
}
