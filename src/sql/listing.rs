//! Tables over files whose LIMIT takes the first rows.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider, TableProviderFactory};
use datafusion::common::{Constraints, Statistics};
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    CreateExternalTable, Expr, LogicalPlan, TableProviderFilterPushDown, TableType,
};
use datafusion::physical_plan::ExecutionPlan;

/// A table over files that never leaves files out under a limit.
///
/// DataFusion's own stops listing once the files seen so far hold enough rows. It lists in whatever
/// order the file system does, so `LIMIT 3` gives rows of any file.
#[derive(Debug)]
pub(super) struct FilesTable {
    inner: Arc<dyn TableProvider>,
}

impl FilesTable {
    pub(super) fn new(inner: Arc<dyn TableProvider>) -> Self {
        Self { inner }
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
        // The limit reaches the scan later, from the physical plan.
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

/// `CREATE EXTERNAL TABLE` with the tables of another factory as [`FilesTable`]s.
#[derive(Debug)]
pub(super) struct FilesTableFactory {
    inner: Arc<dyn TableProviderFactory>,
}

impl FilesTableFactory {
    pub(super) fn new(inner: Arc<dyn TableProviderFactory>) -> Self {
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
        Ok(Arc::new(FilesTable::new(self.inner.create(state, command).await?)))
    }
}
