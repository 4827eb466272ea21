//! `.nrt` files: tables, their scan, and COPY.

mod common_schema;
mod conditions;
mod input;
mod nrt_source;
pub(in crate::sql) mod position_fields;
pub(in crate::sql) mod row_runs;
mod scan;
mod scan_columns;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, GetExt, Statistics, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore};

use crate::sql::sources::target_sink::TargetSink;

use self::input::{HeaderCache, KnownFile};
pub(in crate::sql) use self::nrt_source::NrtSource;
use self::position_fields::{FILE, ROW, add_positions};
use crate::config::SerrateOptions;
use crate::io::nrt::{NrtSchema, NrtWriter, WriteOptions};
use crate::sql::order::build_ordered_sink;
use crate::sql::sources::file_output::{OutputOptions, find_local_target, make_folder};
use crate::table::RaggedTable;
use serrate_core::internal::make_natural_key;

/// Creates [`NrtFormat`]; registered under the extension `nrt`.
#[derive(Debug, Default)]
pub(crate) struct NrtFormatFactory;

impl GetExt for NrtFormatFactory {
    fn get_ext(&self) -> String {
        "nrt".into()
    }
}

impl FileFormatFactory for NrtFormatFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let output = OutputOptions::parse("NRT", options, &["plain", "positions"])?;
        Ok(Arc::new(NrtFormat {
            options: SerrateOptions::of(state.config_options()).clone(),
            output,
        }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(NrtFormat::default())
    }
}

/// `.nrt` files as tables.
///
/// * Columns are lists, one level per axis. Types are widened over files; absent columns are NULL.
/// * A scan reads only the required rows of the requested columns; row counts come from headers.
///   Local files are memory-mapped or read. For files in an object store, the required byte ranges
///   are fetched.
/// * The scan first evaluates conditions on flat columns (one value per row), on `_row` and on
///   `_file`.
/// * `_file` (the path or URL) and `_row` (the index in the file) are columns of a table with
///   `OPTIONS (positions true)`, or if a statement through [`sql()`](crate::sql::sql()) names them.
/// * A byte range of a file selects the corresponding share of its rows. Batches hold about
///   `serrate.leaf_batch_size` leaves (innermost list elements).
/// * NaN is read as NULL unless `serrate.nrt_nan` says otherwise.
/// * COPY writes one file, completely or not at all, in source order; see
///   [`in_source_order`](crate::sql::in_source_order). `OPTIONS (overwrite true)` replaces an
///   existing file, `OPTIONS (plain true)` omits `subject_id`.
#[derive(Clone, Debug, Default)]
pub(crate) struct NrtFormat {
    options: SerrateOptions,
    output: OutputOptions,
}

#[async_trait]
impl FileFormat for NrtFormat {
    fn get_ext(&self) -> String {
        "nrt".into()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        if compression.is_compressed() {
            return plan_err!(
                "an .nrt file cannot be compressed as a whole, because its parts are read in place; \
                 remove the compression"
            );
        }
        Ok(self.get_ext())
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let mut objects = objects.to_vec();
        // Sorts files by name, because listings have no order, and the schema begins with the
        // columns of the first file.
        objects.sort_by_cached_key(|o| make_natural_key(o.location.as_ref()));
        let mmap = SerrateOptions::of(state.config_options()).mmap;
        let parallel = state.config_options().execution.meta_fetch_concurrency.get();
        let headers = &HeaderCache::from_session(state);
        let files: Vec<(PathBuf, SchemaRef)> = stream::iter(objects)
            .map(|meta| async move {
                let known = KnownFile::read_cached(store, &meta, mmap, headers).await?;
                Ok::<_, datafusion::error::DataFusionError>((known.path, known.schema))
            })
            .buffered(parallel)
            .try_collect()
            .await?;
        let files = files.iter().map(|(path, schema)| (path.as_path(), Arc::clone(schema)));
        let schema = common_schema::unify_schemas(files)?;
        Ok(if self.output.has_option("positions") {
            add_positions(&schema, &[FILE, ROW])
        } else {
            schema
        })
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let mmap = SerrateOptions::of(state.config_options()).mmap;
        let headers = HeaderCache::from_session(state);
        let known = KnownFile::read_cached(store, object, mmap, &headers).await?;
        Ok(compute_file_statistics(&known, &table_schema))
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = SerrateOptions::of(state.config_options());
        let source = conf.file_source();
        let source: Arc<dyn FileSource> = match source.downcast_ref::<NrtSource>() {
            Some(source) => {
                Arc::new(source.with_options(options.clone(), HeaderCache::from_session(state)))
            }
            None => Arc::clone(source),
        };
        Ok(DataSourceExec::from_data_source(
            FileScanConfigBuilder::from(conf).with_source(source).build(),
        ))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let target = find_local_target(&conf, "NRT")?;
        if self.output.has_option("positions") {
            return plan_err!(
                "the option positions of NRT applies only to tables, whose rows then have the columns _file and _row; remove it from COPY"
            );
        }
        let plain = self.output.has_option("plain");
        let options = WriteOptions { overwrite: self.output.overwrite, plain };
        let schema = Arc::clone(conf.output_schema());
        let sink =
            TargetSink::new("NrtSink(file=", target, schema, move |batches, target, schema, _| {
                // An empty batch is converted first, so that an unsupported type is an error before
                // the file is created.
                let empty =
                    RaggedTable::try_from_batch(&RecordBatch::new_empty(Arc::clone(schema)))?;
                make_folder(target)?;
                let mut writer = NrtWriter::create(target, &NrtSchema::of_table(&empty), &options)?;
                for batch in batches {
                    writer.write(&RaggedTable::try_from_batch(&batch?)?)?;
                }
                let rows = writer.num_rows();
                writer.finish()?;
                Ok(rows)
            });
        // A plain file stores no `subject_id`, so its rows are identified only by their positions.
        let ids: &[&str] = if plain { &[] } else { &["subject_id"] };
        build_ordered_sink(input, sink, order, ".nrt", Some(ids))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(NrtSource::new(table_schema, self.options.clone()))
    }
}

/// Returns the exact number of rows, and the number of bytes that the values of each column take.
fn compute_file_statistics(file: &KnownFile, schema: &SchemaRef) -> Statistics {
    let mut total = 0usize;
    let columns = schema
        .fields()
        .iter()
        .map(|field| {
            let mut statistics = ColumnStatistics::new_unknown();
            if let Some(bytes) = file.find_size(field.name()) {
                total = total.saturating_add(bytes);
                statistics.byte_size = Precision::Inexact(bytes);
            }
            statistics
        })
        .collect();
    Statistics {
        num_rows: Precision::Exact(file.rows),
        total_byte_size: Precision::Inexact(total),
        column_statistics: columns,
    }
}
