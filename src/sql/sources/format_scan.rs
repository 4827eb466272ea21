//! [`FormatScan`]: the common part of the scans of Arrow, CSV and JSON files.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::exec_datafusion_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use object_store::path::Path;

use crate::sql::sources::delegate_source;
use crate::sql::sources::pinned_file::pin_version;
use crate::sql::sources::urls::format_location;

/// The columns that a scan reads from each of its files, and how it reads them.
#[derive(Clone)]
pub(in crate::sql) struct ScannedColumns {
    pub(in crate::sql) store: Arc<dyn ObjectStore>,
    pub(in crate::sql) url: ObjectStoreUrl,
    pub(in crate::sql) compression: FileCompressionType,
    /// All columns of the table except the partition columns, whose values are in folder names.
    pub(in crate::sql) table: SchemaRef,
    pub(in crate::sql) columns: SchemaRef,
    pub(in crate::sql) batch_size: usize,
    pub(in crate::sql) partition: usize,
}

impl ScannedColumns {
    /// Returns the same columns with a store that returns an error once `file` is no longer the
    /// version that was listed.
    pub(in crate::sql) fn pin_file(&self, file: &PartitionedFile) -> Self {
        let store = pin_version(&self.store, &self.url, &file.object_meta);
        Self { store, ..self.clone() }
    }
}

pub(in crate::sql) trait ReadFormat: Clone + Send + Sync + 'static {
    /// Returns an opener that reads the columns `wanted` of a file or of a byte range of a file.
    fn create_opener(&self, wanted: ScannedColumns) -> Arc<dyn FileOpener>;

    /// Whether a file can be read in byte ranges. `stock` is DataFusion's answer for the format.
    fn can_divide(&self, stock: bool, _config: &FileScanConfig) -> bool {
        stock
    }
}

/// A scan of files whose format is read by Serrate and not by DataFusion. Errors name the file.
#[derive(Clone)]
pub(in crate::sql) struct FormatScan<R> {
    /// DataFusion's source, which divides files and holds the metrics.
    stock: Arc<dyn FileSource>,
    reader: R,
    projection: SplitProjection,
    batch_size: usize,
}

impl<R: ReadFormat> FormatScan<R> {
    pub(in crate::sql) fn new(stock: Arc<dyn FileSource>, reader: R) -> Self {
        let table = stock.table_schema();
        let projection = match stock.projection() {
            Some(projection) => SplitProjection::new(table.file_schema(), projection),
            None => SplitProjection::unprojected(table),
        };
        Self { stock, reader, projection, batch_size: 8192 }
    }
}

impl<R: ReadFormat> FileSource for FormatScan<R> {
    delegate_source!(stock: table_schema, metrics, file_type, fmt_extra, supports_repartitioning);

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let table = self.table_schema().file_schema();
        let opener = self.reader.create_opener(ScannedColumns {
            store,
            url: config.object_store_url.clone(),
            compression: config.file_compression_type,
            table: Arc::clone(table),
            columns: Arc::new(table.project(&self.projection.file_indices)?),
            batch_size: self.batch_size,
            partition,
        });
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(NamedFile { opener }), table)
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

    fn repartitioned(
        &self,
        target_partitions: usize,
        min_size: usize,
        ordering: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        match self.reader.can_divide(self.stock.supports_repartitioning(), config) {
            true => self.stock.repartitioned(target_partitions, min_size, ordering, config),
            false => Ok(None),
        }
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), f)
    }
}

/// Adds the name of the file to the errors of an opener.
struct NamedFile {
    opener: Arc<dyn FileOpener>,
}

impl FileOpener for NamedFile {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let location = file.object_meta.location.clone();
        let opened = self.opener.open(file)?;
        Ok(Box::pin(async move {
            let batches = opened.await.map_err(|e| name_file(&location, e))?;
            Ok(batches.map_err(move |e| name_file(&location, e)).boxed())
        }))
    }
}

pub(in crate::sql) fn name_file(file: &Path, error: DataFusionError) -> DataFusionError {
    let text = error.strip_backtrace();
    let is_memory = matches!(error.find_root(), DataFusionError::ResourcesExhausted(_));
    match is_memory || text.contains(file.as_ref()) {
        true => error,
        false => exec_datafusion_err!("{}: {text}", format_location(file)),
    }
}
