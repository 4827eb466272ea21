//! Tables over files for which LIMIT returns the first rows.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider, TableProviderFactory};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Constraints, Statistics};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::{ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    CreateExternalTable, Expr, LogicalPlan, TableProviderFilterPushDown, TableType,
};
use datafusion::physical_plan::ExecutionPlan;

use crate::config::SerrateOptions;
use crate::sql::sources::empty::refuse_empty;
use crate::sql::sources::nrt::NrtFormat;
use crate::sql::sources::nrt::positions::with_positions;
use crate::sql::sources::parquet::ParquetFileFormat;

/// A table over files that lists all files even under a limit. DataFusion's table lists files in any order
/// and stops when they hold enough rows, so `LIMIT 3` would return rows of any file.
#[derive(Debug)]
pub(in crate::sql) struct FilesTable {
    inner: Arc<dyn TableProvider>,
}

impl FilesTable {
    pub(in crate::sql) fn new(inner: Arc<dyn TableProvider>) -> Self {
        Self { inner }
    }

    fn is_of<F: FileFormat>(&self) -> bool {
        if let Some(inner) = self.inner.downcast_ref::<Self>() {
            return inner.is_of::<F>();
        }
        let table = self.inner.downcast_ref::<ListingTable>();
        table.is_some_and(|table| table.options().format.is::<F>())
    }

    /// Whether list lengths in the table's files can be read without the values.
    pub(in crate::sql) fn has_lengths(&self, options: &ConfigOptions) -> bool {
        let parquet = || SerrateOptions::of(options).parquet_lists;
        self.is_of::<NrtFormat>() || self.is_of::<ParquetFileFormat>() && parquet()
    }

    /// Adds the columns in `names` (`_file`, `_row`) that the table lacks. Returns `None` if it lacks none,
    /// or if its files are not `.nrt`.
    pub(in crate::sql) fn with_positions(&self, names: &[&str]) -> Option<Self> {
        if let Some(inner) = self.inner.downcast_ref::<Self>() {
            return inner.with_positions(names);
        }
        let table = self.inner.downcast_ref::<ListingTable>()?;
        let options = table.options();
        if !options.format.is::<NrtFormat>() {
            return None;
        }
        let partitions = options.table_partition_cols.len();
        let files = table.schema().fields().len().checked_sub(partitions)?;
        let names: Vec<&str> =
            names.iter().copied().filter(|n| table.schema().index_of(n).is_err()).collect();
        if names.is_empty() {
            return None;
        }
        let schema = table.schema().project(&(0..files).collect::<Vec<_>>()).ok()?;
        let config = ListingTableConfig::new_with_multi_paths(table.table_paths().clone())
            .with_listing_options(options.clone())
            .with_schema(with_positions(&Arc::new(schema), &names));
        Some(Self { inner: Arc::new(ListingTable::try_new(config).ok()?) })
    }
}

#[async_trait]
impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.inner.constraints()
    }

    fn table_type(&self) -> TableType {
        self.inner.table_type()
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.inner.get_table_definition()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.inner.get_logical_plan()
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.inner.get_column_default(column)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // The listing gets no limit, so that it finds all files. The physical plan passes the limit to the
        // scan later.
        self.inner.scan(state, projection, filters, None).await
    }

    async fn scan_with_args<'a>(
        &self,
        state: &dyn Session,
        args: ScanArgs<'a>,
    ) -> Result<ScanResult> {
        self.inner.scan_with_args(state, args.with_limit(None)).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.inner.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.inner.statistics()
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.inner.insert_into(state, input, op).await
    }
}

/// Wraps the tables of another factory in [`FilesTable`] for `CREATE EXTERNAL TABLE`.
#[derive(Debug)]
pub(in crate::sql) struct FilesTableFactory {
    inner: Arc<dyn TableProviderFactory>,
}

impl FilesTableFactory {
    pub(in crate::sql) fn new(inner: Arc<dyn TableProviderFactory>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl TableProviderFactory for FilesTableFactory {
    async fn create(
        &self,
        state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        for location in &command.locations {
            refuse_empty(state, &ListingTableUrl::parse(location)?, &command.file_type).await?;
        }
        Ok(Arc::new(FilesTable::new(self.inner.create(state, command).await?)))
    }
}
