//! DataFusion's Parquet format, with Serrate's COPY to one local file.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::config::ParquetOptions;
use datafusion::common::stats::Precision;
use datafusion::common::{GetExt, Statistics, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::{ParquetFormat, ParquetFormatFactory};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory, FileMeta};
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_expr::{LexOrdering, LexRequirement};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore};

use crate::sql::sources::exact_file_casts::ExactCasts;
use crate::sql::sources::guarded_source::{catch_panics, infer_guarded};
use crate::sql::sources::merged_schemas::{merge_fields, merge_schemas};
use crate::sql::sources::run_ends::to_plain_schema;
use crate::sql::sources::target_sink::TargetSink;

use super::footers::correct_footers;
use super::logical_types::{LeafTypes, find_leaf_types, set_leaf_types};
use super::statistics_bounds::{remove_bounds, remove_partial_bounds};
use super::writer_options::check_writer_options;
use crate::array::{leaf_type, list_depth};
use crate::io::parquet::{ParquetTableWriter, ParquetWriteOptions};
use crate::sql::order::build_ordered_sink;
use crate::sql::sources::file_adapter::describe_repeated_column;
use crate::sql::sources::file_output::{
    OutputOptions, ensure_file, find_local_path, find_single_file, is_copy, is_copy_to_folder,
    make_folder,
};
use crate::sql::sources::inner_sink::{PassRows, add_target_name, find_sink, wrap_sink};
use crate::sql::sources::partition_folders::plan_folders;
use crate::sql::sources::write_options::check_parquet_options;
use serrate_core::internal::find_repeated;
use serrate_core::internal::meds::{find_plain_type, unify_types};
use serrate_core::internal::parquet::{to_stored, to_stored_schema};

/// Creates [`ParquetFileFormat`]s that wrap the formats of another factory.
#[derive(Debug)]
pub(crate) struct ParquetFileFormatFactory {
    inner: Arc<dyn FileFormatFactory>,
}

impl ParquetFileFormatFactory {
    pub(crate) fn new(inner: Arc<dyn FileFormatFactory>) -> Self {
        Self { inner }
    }
}

impl Default for ParquetFileFormatFactory {
    fn default() -> Self {
        Self::new(Arc::new(ParquetFormatFactory::new()))
    }
}

impl GetExt for ParquetFileFormatFactory {
    fn get_ext(&self) -> String {
        self.inner.get_ext()
    }
}

impl FileFormatFactory for ParquetFileFormatFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let (output, theirs) = OutputOptions::take_overwrite("PARQUET", options)?;
        Ok(Arc::new(ParquetFileFormat {
            inner: self.inner.create(state, &theirs)?,
            overwrite: output.overwrite,
            given: theirs.into_keys().collect(),
        }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        let inner = self.inner.default();
        Arc::new(ParquetFileFormat { inner, overwrite: false, given: Vec::new() })
    }
}

/// Parquet files as tables: [`decode_lists`](super::decode_lists) reads lists, DataFusion the rest.
///
/// COPY to one local file whose name ends in `.parquet` writes as [`ParquetTableWriter`] does: row
/// groups have about equal numbers of leaves (innermost list elements), the file appears completely
/// or not at all, and an existing file is an error unless `OPTIONS (overwrite true)` is given. Rows
/// come in source order if the query has one; see [`in_source_order`](crate::sql::in_source_order).
///
/// Folders, PARTITIONED BY, remote targets, INSERT, and COPY with options of DataFusion's Parquet
/// writer (in `OPTIONS` or set in `datafusion.execution.parquet`) use DataFusion's own sink.
#[derive(Debug)]
pub(crate) struct ParquetFileFormat {
    inner: Arc<dyn FileFormat>,
    overwrite: bool,
    /// The names of the given options of DataFusion's Parquet format.
    given: Vec<String>,
}

impl ParquetFileFormat {
    /// Returns one schema for files in which the types of a column differ in their layout, such as
    /// `Utf8` and `LargeUtf8`. Returns `None` if no type holds the values of a column, or if the
    /// schema of a file cannot be read.
    async fn unify_spellings(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Option<SchemaRef> {
        let mut schemas = Vec::with_capacity(objects.len());
        for object in objects {
            let one = std::slice::from_ref(object);
            let read = self.inner.infer_schema(state, store, one);
            schemas.push(catch_panics(&object.location, read).await.ok()?);
        }
        let merge = |a: &FieldRef, b: &FieldRef| {
            if find_plain_type(a.data_type()) != find_plain_type(b.data_type()) {
                return merge_fields(a, b);
            }
            let unified = unify_types(a.data_type(), b.data_type())?;
            let nullable = a.is_nullable() || b.is_nullable();
            Some(Arc::new(a.as_ref().clone().with_data_type(unified).with_nullable(nullable)))
        };
        let merged = merge_schemas(objects, &schemas, merge).ok()?;
        Some(Arc::new(Schema::new(merged.fields().clone())))
    }

    /// Returns the schema of a table over files from which DataFusion infers `schema`, with the
    /// leaf types `types`.
    fn adapt_schema(&self, schema: &SchemaRef, types: &LeafTypes) -> SchemaRef {
        let format = self.inner.downcast_ref::<ParquetFormat>();
        let has_views = format.is_none_or(ParquetFormat::force_view_types);
        with_nullable_items(&to_plain_schema(&set_leaf_types(schema, types, has_views)))
    }

    /// Returns DataFusion's plan that writes `input` in the order `order`. If the types of the rows
    /// must be converted for Parquet, [`StoredRows`] converts them on their way to the sink of the
    /// plan.
    async fn plan_stock_writer(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        mut conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = Arc::clone(conf.output_schema());
        let stored = to_stored_schema(&schema)?;
        if stored == schema {
            return self.inner.create_writer_physical_plan(input, state, conf, order).await;
        }
        conf.output_schema = Arc::clone(&stored);
        // Only the sink of this plan is used, so the input of the plan is empty.
        let nothing = Arc::new(EmptyExec::new(Arc::clone(&stored)));
        let plan = self.inner.create_writer_physical_plan(nothing, state, conf, None).await?;
        wrap_sink(input, schema, order, plan, StoredRows { stored })
    }

    async fn plan_writer(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(format) = self.inner.downcast_ref::<ParquetFormat>() {
            check_writer_options(format.options(), &conf)?;
        }
        if is_copy(&conf) {
            check_parquet_options(&self.given)?;
        }
        let is_set = is_writer_set(&state.config_options().execution.parquet);
        let stock = is_set || !self.given.is_empty();
        match find_file_target(&conf) {
            Some(target) if !stock => {
                let schema = Arc::clone(conf.output_schema());
                let options =
                    ParquetWriteOptions { overwrite: self.overwrite, ..Default::default() };
                // This sink writes batches as they arrive. `build_ordered_sink` ensures their
                // order.
                let name = "ParquetFileSink(file=";
                let sink =
                    TargetSink::new(name, target, schema, move |batches, target, schema, _| {
                        make_folder(target)?;
                        let mut writer = ParquetTableWriter::create(target, schema, &options)?;
                        for batch in batches {
                            writer.write_batch(&batch?)?;
                        }
                        let rows = writer.num_rows();
                        writer.finish()?;
                        Ok(rows)
                    });
                build_ordered_sink(input, sink, order, ".parquet", None)
            }
            None if self.overwrite => plan_err!(
                "the option 'overwrite' of PARQUET applies only to COPY to one local file named \
                 '*.parquet'; name such a file or remove the option"
            ),
            // DataFusion's own sink writes in all other cases. It always replaces an existing file.
            _ => {
                let (is_folder, target) = (is_copy_to_folder(&conf), find_local_path(&conf));
                let plan = self.plan_stock_writer(input, state, conf, order).await?;
                let plan = if is_folder { ensure_file(plan) } else { plan };
                Ok(add_target_name(plan, target))
            }
        }
    }
}

#[async_trait]
impl FileFormat for ParquetFileFormat {
    fn get_ext(&self) -> String {
        self.inner.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.inner.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.inner.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let error = match infer_guarded(self.inner.as_ref(), state, store, objects).await {
            Ok(schema) => {
                let types = check_footers(state, store, objects).await?;
                return Ok(self.adapt_schema(&schema, &types));
            }
            Err(error) => error,
        };
        let Some(unified) = self.unify_spellings(state, store, objects).await else {
            return Err(error);
        };
        let types = check_footers(state, store, objects).await?;
        Ok(self.adapt_schema(&unified, &types))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let schema = Arc::clone(&table_schema);
        catch_panics(&object.location, async {
            let statistics = self.inner.infer_stats(state, store, table_schema, object).await?;
            Ok(correct_statistics(statistics, state, store, &schema, object).await)
        })
        .await
    }

    /// Returns no order. DataFusion would treat the order of rows within row groups as an order of
    /// the file, and of all files (test `stock_orders_of_row_groups_are_still_taken_for_the_file`).
    async fn infer_ordering(
        &self,
        _state: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        _table_schema: SchemaRef,
        _object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        Ok(None)
    }

    async fn infer_stats_and_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        let schema = Arc::clone(&table_schema);
        let inner = self.inner.infer_stats_and_ordering(state, store, table_schema, object);
        catch_panics(&object.location, async {
            let mut meta = inner.await?;
            meta.statistics =
                correct_statistics(meta.statistics, state, store, &schema, object).await;
            meta.ordering = None;
            Ok(meta)
        })
        .await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        mut conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if conf.expr_adapter_factory.is_none() {
            conf.expr_adapter_factory = Some(ExactCasts::new_shared_factory());
        }
        Ok(correct_footers(self.inner.create_physical_plan(state, conf).await?, state))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan_folders(input, conf, order, |input, conf, order| {
            Box::pin(self.plan_writer(input, state, conf, order))
        })
        .await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.inner.file_source(table_schema)
    }
}

/// Converts rows to types that Parquet has.
#[derive(Debug)]
struct StoredRows {
    /// The schema of the files.
    stored: SchemaRef,
}

#[async_trait]
impl PassRows for StoredRows {
    async fn pass_rows(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let rows = data.map(|batch| Ok(to_stored(&batch?)?));
        let rows = RecordBatchStreamAdapter::new(Arc::clone(&self.stored), rows);
        find_sink(plan)?.write_all(Box::pin(rows), context).await
    }
}

/// Corrects statistics with the metadata in the footer of the file: removes wrong bounds, and sets
/// the byte sizes of list columns.
async fn correct_statistics(
    statistics: Statistics,
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    schema: &SchemaRef,
    object: &ObjectMeta,
) -> Statistics {
    let statistics = remove_bounds(statistics, schema);
    let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
    let reader =
        DFParquetMetadata::new(store.as_ref(), object).with_file_metadata_cache(Some(cache));
    // A footer that cannot be read here is encrypted. Its statistics cannot be corrected, so the
    // scan uses none.
    let Ok(footer) = reader.fetch_metadata().await else {
        return Statistics::new_unknown(schema);
    };
    set_leaf_sizes(remove_partial_bounds(statistics, &footer, schema), &footer, schema)
}

/// Estimates the byte size of list columns as the number of their values times the width of a
/// value, because the sizes in the footer are those of compressed pages.
fn set_leaf_sizes(
    mut statistics: Statistics,
    footer: &ParquetMetaData,
    schema: &SchemaRef,
) -> Statistics {
    for (field, column) in schema.fields().iter().zip(&mut statistics.column_statistics) {
        if list_depth(field.data_type()) == 0 {
            continue;
        }
        let chunks = footer.row_groups().iter().flat_map(|g| g.columns());
        // A list of structs has one column of values per field. Its byte size is estimated from the
        // field with the most values.
        let mut values: HashMap<&str, i64> = HashMap::new();
        for chunk in chunks {
            let path = chunk.column_path();
            if let [root, .., leaf] = path.parts()
                && root == field.name()
            {
                let count = values.entry(leaf).or_default();
                *count = count.saturating_add(chunk.num_values());
            }
        }
        let width = leaf_type(field.data_type()).primitive_width().unwrap_or(8);
        if let Some(count) = values.into_values().max().and_then(|n| usize::try_from(n).ok()) {
            column.byte_size = Precision::Inexact(count.saturating_mul(width));
        }
    }
    statistics
}

/// Returns an error for a file in which several columns have the same name, because a schema would
/// hold only the first of them. Returns the types of leaves that differ from those of Arrow's
/// reader.
async fn check_footers(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    objects: &[ObjectMeta],
) -> Result<LeafTypes> {
    let parallel = state.config_options().execution.meta_fetch_concurrency.get();
    let checks = objects.iter().map(|object| check_footer(state, store, object));
    let checks = stream::iter(checks.collect::<Vec<_>>()).buffer_unordered(parallel);
    let types: Vec<LeafTypes> = checks.try_collect().await?;
    Ok(types.into_iter().flatten().collect())
}

/// Does for one file what [`check_footers`] does for all files.
async fn check_footer(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
) -> Result<LeafTypes> {
    let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
    let reader =
        DFParquetMetadata::new(store.as_ref(), object).with_file_metadata_cache(Some(cache));
    // A footer that cannot be read here is encrypted, because a damaged footer is already an error
    // when the schema of the file is inferred.
    let Ok(metadata) = reader.fetch_metadata().await else { return Ok(LeafTypes::new()) };
    let fields = metadata.file_metadata().schema_descr().root_schema().get_fields();
    match find_repeated(fields.iter().map(|field| field.name())) {
        Some(name) => plan_err!("{}", describe_repeated_column(&object.location, name)),
        None => Ok(find_leaf_types(&metadata)),
    }
}

/// Declares items of fixed-size lists nullable if a struct around the list may be NULL. Below such
/// a NULL, Arrow's reader returns NULL items even if the file declares them required, so sorts
/// fail.
fn with_nullable_items(schema: &SchemaRef) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(|field| declare_items(field, false)).collect();
    match fields == *schema.fields() {
        true => Arc::clone(schema),
        false => Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
    }
}

/// Declares items within a field nullable, as [`with_nullable_items`] does. `below_null` is whether
/// a struct around the field may be NULL.
fn declare_items(field: &FieldRef, below_null: bool) -> FieldRef {
    let declared = match field.data_type() {
        DataType::Struct(fields) => {
            let below_null = below_null || field.is_nullable();
            DataType::Struct(fields.iter().map(|f| declare_items(f, below_null)).collect())
        }
        DataType::FixedSizeList(item, size) => {
            let item = declare_items(item, below_null);
            let nullable = below_null || item.is_nullable();
            let item = Arc::new(item.as_ref().clone().with_nullable(nullable));
            DataType::FixedSizeList(item, *size)
        }
        // A NULL list has no items. So NULL in a struct around the list does not cause NULL items.
        DataType::List(item) => DataType::List(declare_items(item, false)),
        DataType::LargeList(item) => DataType::LargeList(declare_items(item, false)),
        _ => return Arc::clone(field),
    };
    Arc::new(field.as_ref().clone().with_data_type(declared))
}

/// Returns the local file that a COPY writes, or `None` for any other target.
fn find_file_target(conf: &FileSinkConfig) -> Option<PathBuf> {
    let is_parquet = |e: &std::ffi::OsStr| e.eq_ignore_ascii_case("parquet");
    find_single_file(conf).filter(|path| path.extension().is_some_and(is_parquet))
}

/// Whether the session changes settings of DataFusion's Parquet writer.
fn is_writer_set(set: &ParquetOptions) -> bool {
    let stock = ParquetOptions::default();
    set.compression != stock.compression
        || set.max_row_group_size != stock.max_row_group_size
        || set.max_row_group_bytes != stock.max_row_group_bytes
        || set.encoding != stock.encoding
        || set.dictionary_enabled != stock.dictionary_enabled
        || set.dictionary_page_size_limit != stock.dictionary_page_size_limit
        || set.statistics_enabled != stock.statistics_enabled
        || set.statistics_truncate_length != stock.statistics_truncate_length
        || set.column_index_truncate_length != stock.column_index_truncate_length
        || set.skip_arrow_metadata != stock.skip_arrow_metadata
        || set.bloom_filter_on_write != stock.bloom_filter_on_write
        || set.writer_version != stock.writer_version
        || set.created_by != stock.created_by
        || set.data_pagesize_limit != stock.data_pagesize_limit
        || set.data_page_row_count_limit != stock.data_page_row_count_limit
        || set.content_defined_chunking.enabled
}
