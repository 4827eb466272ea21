//! [`WrittenFormat`]: formats that COPY writes but no query reads.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Statistics, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use object_store::{ObjectMeta, ObjectStore};

/// A format that COPY writes and that no query reads as a table. The value holds the options of a
/// COPY.
pub(crate) trait WrittenFormat:
    Clone + Default + fmt::Debug + Send + Sync + 'static
{
    /// The name of the format in lower case.
    const NAME: &'static str;
    /// Error message for a query that reads a file of this format as a table.
    const READING: &'static str;
    /// Error message for a COPY with compression.
    const COMPRESSING: &'static str;

    fn parse(options: &HashMap<String, String>) -> Result<Self>;

    fn plan_copy(
        &self,
        input: Arc<dyn ExecutionPlan>,
        conf: &FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>>;
}

/// Creates the file format of a [`WrittenFormat`].
#[derive(Debug)]
pub(crate) struct WrittenFactory<F>(PhantomData<F>);

impl<F> WrittenFactory<F> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<F: WrittenFormat> GetExt for WrittenFactory<F> {
    fn get_ext(&self) -> String {
        F::NAME.into()
    }
}

impl<F: WrittenFormat> FileFormatFactory for WrittenFactory<F> {
    fn create(
        &self,
        _state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        Ok(Arc::new(CopyTarget(F::parse(options)?)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(CopyTarget(F::default()))
    }
}

#[derive(Debug)]
struct CopyTarget<F>(F);

#[async_trait]
impl<F: WrittenFormat> FileFormat for CopyTarget<F> {
    fn get_ext(&self) -> String {
        F::NAME.into()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        if compression.is_compressed() {
            return plan_err!("{}", F::COMPRESSING);
        }
        Ok(self.get_ext())
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        _state: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        _objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        plan_err!("{}", F::READING)
    }

    async fn infer_stats(
        &self,
        _state: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        _table_schema: SchemaRef,
        _object: &ObjectMeta,
    ) -> Result<Statistics> {
        plan_err!("{}", F::READING)
    }

    async fn create_physical_plan(
        &self,
        _state: &dyn Session,
        _conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan_err!("{}", F::READING)
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.plan_copy(input, &conf, order)
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        // This source is never opened, because `create_physical_plan` returns an error.
        crate::sql::sources::nrt::NrtFormat::default().file_source(table_schema)
    }
}
