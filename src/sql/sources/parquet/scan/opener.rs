//! [`ListsOpener`]: opens one file of a scan. If the scan reads only a byte range of the file,
//! opens the rows that `cut_by_rows` assigns to this range.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::DefaultParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::error::Result;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};

use super::cut::cut_by_rows;
use super::list_rows::ListRows;
use super::lists_source::ListsSource;
use super::scan_split::{ListColumn, SplitScan, find_measured_fields};
use crate::io::parquet::lists::{DecodedParts, is_supported};
use crate::sql::exec::cut_batches::BatchSize;

#[derive(Clone)]
pub(super) struct ListsOpener {
    source: ListsSource,
    store: Arc<dyn ObjectStore>,
    config: FileScanConfig,
    partition: usize,
}

impl FileOpener for ListsOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = self.clone();
        Ok(Box::pin(async move {
            match opener.list_rows(&file).await? {
                Some(stream) => Ok(stream),
                None => opener.read_stock_rows(opener.source.stock(), &opener.config, file).await,
            }
        }))
    }
}

impl ListsOpener {
    pub(super) fn new(
        source: ListsSource,
        store: Arc<dyn ObjectStore>,
        config: FileScanConfig,
        partition: usize,
    ) -> Self {
        Self { source, store, config, partition }
    }

    async fn read_stock_rows(
        &self,
        source: &ParquetSource,
        config: &FileScanConfig,
        file: PartitionedFile,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let scan = source.create_morselizer(Arc::clone(&self.store), config, self.partition)?;
        let mut planners = vec![scan.plan_file(file)?];
        let mut streams = Vec::new();
        while let Some(planner) = planners.pop() {
            let Some(mut plan) = planner.plan()? else { continue };
            streams.extend(plan.take_morsels().into_iter().map(|morsel| morsel.into_stream()));
            let mut ready = plan.take_ready_planners();
            if let Some(pending) = plan.take_pending_planner() {
                ready.push(pending.await?);
            }
            planners.extend(ready.into_iter().rev());
        }
        Ok(stream::iter(streams).flatten().boxed())
    }

    /// Returns the rows of a file, with decoded lists. Returns `None` for a file that the list
    /// decoder does not support; DataFusion alone then reads the file.
    async fn list_rows(
        &self,
        file: &PartitionedFile,
    ) -> Result<Option<BoxStream<'static, Result<RecordBatch>>>> {
        let stock = self.source.stock();
        if file.arrow_schema.is_some() {
            return Ok(None);
        }
        let mut reader = self.make_reader_factory().create_reader(
            self.partition,
            file.clone(),
            file.metadata_size_hint,
            stock.metrics(),
        )?;
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        // If the footer is invalid, DataFusion reads the file without the list decoder, and reports
        // the error.
        let Ok(metadata) = reader.get_metadata(Some(&options)).await else { return Ok(None) };
        let columns = self.columns(&metadata);
        if columns.is_empty() || !has_ordered_groups(&metadata) {
            return Ok(None);
        }
        let roots: Vec<usize> = columns.iter().map(|c| c.root).collect();
        let split = SplitScan::new(stock, columns, self.source.batch_size())?;
        let Some(split) = split else { return Ok(None) };
        let mut config = self.config.clone();
        let mut left = usize::MAX;
        if split.condition().is_some() {
            left = config.limit.take().unwrap_or(usize::MAX);
        }
        let part = cut_by_rows(file.clone(), &metadata, &roots, stock.filter().as_ref());
        let given = self.read_stock_rows(&split.given, &config, part).await?;
        // Adds the metrics of DataFusion's scan of this file to those of the whole scan. The
        // counters are shared, so EXPLAIN ANALYZE shows what they count later.
        for metric in split.given.metrics().clone_inner().iter() {
            stock.metrics().register(Arc::clone(metric));
        }
        let rows = ListRows::new(
            split,
            given,
            reader,
            metadata,
            (PathBuf::from(file.object_meta.location.as_ref()), file.object_meta.size),
            BatchSize { rows: self.source.batch_size(), leaves: self.source.leaves() },
            left,
            (stock.metrics(), self.partition),
        );
        Ok(Some(rows.into_stream()))
    }

    fn make_reader_factory(&self) -> Arc<dyn ParquetFileReaderFactory> {
        match self.source.stock().parquet_file_reader_factory() {
            Some(factory) => Arc::clone(factory),
            None => Arc::new(DefaultParquetFileReaderFactory::new(Arc::clone(&self.store))),
        }
    }

    /// Returns the list columns of the scan that the decoder supports and whose type in the file is
    /// the type in the table.
    fn columns(&self, metadata: &ParquetMetaData) -> Vec<ListColumn> {
        let footer = metadata.file_metadata();
        let schema = parquet_to_arrow_schema(footer.schema_descr(), footer.key_value_metadata());
        let Ok(schema) = schema else { return Vec::new() };
        let (stock, lists) = (self.source.stock(), self.source.lists());
        let lengths = find_measured_fields(stock, lists);
        let fields = stock.table_schema().file_schema().fields();
        let column = |table: usize| {
            let declared = fields.get(table)?;
            let root = schema.index_of(declared.name()).ok()?;
            let field = schema.fields().get(root)?;
            let fits = field.data_type() == declared.data_type()
                && (declared.is_nullable() || !field.is_nullable())
                && is_supported(metadata, root, field);
            let parts =
                if lengths.contains(&table) { DecodedParts::Lists } else { DecodedParts::Values };
            fits.then(|| ListColumn {
                table,
                root,
                field: Arc::clone(field),
                declared: Arc::clone(declared),
                parts,
            })
        };
        lists.iter().filter_map(|table| column(*table)).collect()
    }
}

/// Whether each row group's ordinal is its position in the footer. If not, DataFusion's scan
/// returns wrong row numbers.
fn has_ordered_groups(metadata: &ParquetMetaData) -> bool {
    let mut groups = metadata.row_groups().iter().enumerate();
    groups.all(|(i, group)| group.ordinal().is_some_and(|n| usize::try_from(n).ok() == Some(i)))
}
