//! Plans the scan of the files of a table: partition columns, pruning and statistics.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{ScanArgs, ScanResult, Session};
use datafusion::common::stats::Precision;
use datafusion::common::{DFSchema, ScalarValue, Statistics, project_schema};
use datafusion::datasource::listing::helpers::expr_applicable_for_cols;
use datafusion::datasource::listing::{ListingTable, PartitionedFile};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::cache::TableScopedPath;
use datafusion::execution::cache::cache_manager::{CachedFileMetadata, SchemaFingerprint};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion_datasource::compute_all_files_statistics;
use datafusion_datasource::file_scan_config::output_partitioning_from_partition_fields;
use datafusion_datasource::table_schema::TableSchemaBuilder;
use futures::{StreamExt, TryStreamExt, stream};
use serrate_core::internal::make_natural_key;

use crate::sql::order::FileRank;
use crate::sql::sources::listing::empty::refuse_empty;
use crate::sql::sources::listing::files::{FileSet, ListedFile};
use crate::sql::sources::listing::hive::find_values;

/// Returns the schema of a table. Unlike in DataFusion's `ListingTable`, the partition columns
/// (from folder names such as `year=2024/`) are nullable.
pub(super) fn find_table_schema(table: &ListingTable) -> TableSchema {
    let (file, folders) = split_schema(table);
    TableSchemaBuilder::new(file).with_table_partition_cols(folders).build()
}

fn split_schema(table: &ListingTable) -> (SchemaRef, Vec<FieldRef>) {
    use datafusion::catalog::TableProvider;
    let columns = &table.options().table_partition_cols;
    let schema = table.schema();
    let in_files = schema.fields().len().saturating_sub(columns.len());
    let fields: Vec<FieldRef> = schema.fields().iter().take(in_files).cloned().collect();
    let file = Schema::new_with_metadata(fields, schema.metadata().clone());
    let folders =
        columns.iter().map(|(name, data_type)| Arc::new(Field::new(name, data_type.clone(), true)));
    (Arc::new(file), folders.collect())
}

/// Plans the scan of a table as DataFusion's table does, except that `files` lists the files.
pub(super) async fn plan_scan(
    table: &ListingTable,
    files: &FileSet,
    state: &dyn Session,
    args: ScanArgs<'_>,
) -> Result<ScanResult> {
    use datafusion::catalog::TableProvider;
    let projection = args.projection().map(<[usize]>::to_vec);
    let options = table.options();
    let columns = &options.table_partition_cols;
    let schema = find_table_schema(table);
    let listed = files.list_files(state).await?;
    files.check_named(&listed)?;
    // Refuses empty files again, because a file may have become empty since the table was created.
    refuse_empty(&listed, &options.format.get_ext())?;
    let filters = args.filters().unwrap_or_default();
    let files = prune_files(to_partitioned(&listed, columns)?, columns, filters, state)?;
    let collect = state.config_options().execution.collect_statistics;
    let Some(path) = table.table_paths().first().filter(|_| !files.is_empty()) else {
        let schema = project_schema(schema.table_schema(), projection.as_ref())?;
        return Ok(ScanResult::new(Arc::new(EmptyExec::new(schema))));
    };
    let files = match collect {
        true => add_statistics(table, files, schema.file_schema(), state).await?,
        false => {
            let unknown = Arc::new(Statistics::new_unknown(schema.file_schema()));
            let add = |file: PartitionedFile| file.with_statistics(Arc::clone(&unknown));
            files.into_iter().map(add).collect()
        }
    };
    let files: Vec<PartitionedFile> = files.into_iter().map(correct_null_counts).collect();
    let partitions = state.config_options().execution.target_partitions.max(1);
    let (groups, by_values) = group_files(files, !columns.is_empty(), partitions, state);
    let (mut groups, statistics) =
        compute_all_files_statistics(groups, Arc::clone(schema.table_schema()), collect, false)?;
    let orders = table.try_create_output_ordering(state.execution_props(), &groups)?;
    if !orders.is_empty() {
        let keys = find_keys_with_null(&orders, schema.table_schema());
        groups = groups.into_iter().map(|group| remove_bounds_of_null(group, &keys)).collect();
    }
    if let Some(order) = orders.first()
        && state.config_options().execution.split_file_groups_by_statistics
        && let Ok(split) = FileScanConfig::split_groups_by_statistics_with_target_partitions(
            schema.table_schema(),
            &groups,
            order,
            partitions,
        )
        && split.len() <= partitions
    {
        groups = split;
    }
    let partitioning = by_values.then(|| {
        let fields = schema.table_partition_cols();
        output_partitioning_from_partition_fields(schema.table_schema(), fields, groups.len())
    });
    let source = options.format.file_source(schema.clone());
    let mut config = FileScanConfigBuilder::new(path.object_store(), source)
        .with_file_groups(groups)
        .with_statistics(statistics)
        .with_projection_indices(projection)?
        .with_limit(args.limit())
        .with_output_ordering(orders)
        .with_output_partitioning(partitioning.flatten());
    if let Some(constraints) = table.constraints() {
        config = config.with_constraints(constraints.clone());
    }
    Ok(ScanResult::new(options.format.create_physical_plan(state, config.build()).await?))
}

fn to_partitioned(
    listed: &[ListedFile],
    columns: &[(String, DataType)],
) -> Result<Vec<PartitionedFile>> {
    let with_bytes = listed.iter().filter(|file| file.meta.size > 0);
    let file = |file: &ListedFile| {
        let mut partitioned = PartitionedFile::from(file.meta.clone());
        partitioned.partition_values = find_values(file, columns)?;
        Ok(partitioned)
    };
    let files: Vec<PartitionedFile> = with_bytes.map(file).collect::<Result<_>>()?;
    if files.is_sorted_by_key(|file| make_natural_key(file.object_meta.location.as_ref())) {
        return Ok(files);
    }
    let ranked = files.into_iter().enumerate();
    Ok(ranked.map(|(rank, file)| file.with_extension(FileRank(rank))).collect())
}

/// Drops the files whose values of the partition columns `columns` do not pass the filters.
fn prune_files(
    files: Vec<PartitionedFile>,
    columns: &[(String, DataType)],
    filters: &[Expr],
    state: &dyn Session,
) -> Result<Vec<PartitionedFile>> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let on_folders = filters.iter().filter(|filter| expr_applicable_for_cols(&names, filter));
    let filter = conjunction(on_folders.cloned());
    let (Some(filter), false) = (filter, files.is_empty() || columns.is_empty()) else {
        return Ok(files);
    };
    let fields: Vec<Field> =
        columns.iter().map(|(name, t)| Field::new(name, t.clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let values = (0..columns.len()).map(|column| {
        ScalarValue::iter_to_array(files.iter().map(|file| file.partition_values[column].clone()))
    });
    let batch = RecordBatch::try_new(Arc::clone(&schema), values.collect::<Result<_>>()?)?;
    let filter = state.create_physical_expr(filter, &DFSchema::try_from(schema)?)?;
    let kept = filter.evaluate(&batch)?.into_array(files.len())?;
    let kept = kept.as_boolean();
    let is_kept = |row: usize| kept.is_valid(row) && kept.value(row);
    Ok(files.into_iter().enumerate().filter_map(|(i, file)| is_kept(i).then_some(file)).collect())
}

/// Returns the files with the statistics and the order of each, from the cache or from the file.
async fn add_statistics(
    table: &ListingTable,
    files: Vec<PartitionedFile>,
    schema: &SchemaRef,
    state: &dyn Session,
) -> Result<Vec<PartitionedFile>> {
    let Some(path) = table.table_paths().first() else { return Ok(files) };
    let store = state.runtime_env().object_store(path)?;
    // The table of `FROM 'file'` has no name, and its statistics are not cached.
    let name = path.get_table_ref().as_ref();
    let cache = state.runtime_env().cache_manager.get_file_statistic_cache();
    let cache = cache.filter(|_| name.is_some());
    let fingerprint = Arc::new(SchemaFingerprint::from_schema(schema));
    let parallel = state.config_options().execution.meta_fetch_concurrency.get();
    let read = |file: PartitionedFile| {
        let (cache, fingerprint, store) = (cache.clone(), Arc::clone(&fingerprint), &store);
        async move {
            let at =
                TableScopedPath { table: name.cloned(), path: file.object_meta.location.clone() };
            if let Some(known) = cache.as_ref().and_then(|cache| cache.get(&at))
                && known.is_valid_for(&file.object_meta, &fingerprint)
            {
                let statistics = Arc::clone(&known.statistics);
                return Ok(file.with_statistics(statistics).with_ordering(known.ordering.clone()));
            }
            let format = &table.options().format;
            let meta = &file.object_meta;
            let found =
                format.infer_stats_and_ordering(state, store, Arc::clone(schema), meta).await?;
            let (statistics, order) = (Arc::new(found.statistics), found.ordering);
            if let Some(cache) = &cache {
                let (meta, statistics) = (meta.clone(), Arc::clone(&statistics));
                let entry = CachedFileMetadata::new(meta, fingerprint, statistics, order.clone());
                cache.put(&at, entry);
            }
            Ok(file.with_statistics(statistics).with_ordering(order))
        }
    };
    stream::iter(files).map(read).buffered(parallel).try_collect().await
}

/// Corrects the statistics of partition columns whose value is NULL, or of all partition columns if
/// the file has no rows: all rows are NULL, and there is no minimum or maximum. DataFusion does not
/// expect NULL there, and takes the value of a file without rows for a minimum and maximum.
fn correct_null_counts(mut file: PartitionedFile) -> PartitionedFile {
    let Some(statistics) = file.statistics.as_mut() else { return file };
    let rows = statistics.num_rows;
    let is_empty = rows == Precision::Exact(0);
    let missing = file.partition_values.iter().rev().enumerate();
    let missing: Vec<usize> =
        missing.filter(|(_, v)| is_empty || v.is_null()).map(|(from_last, _)| from_last).collect();
    if missing.is_empty() {
        return file;
    }
    let statistics = Arc::make_mut(statistics);
    for from_last in missing {
        if let Some(column) = statistics.column_statistics.iter_mut().rev().nth(from_last) {
            column.null_count = rows;
            column.min_value = Precision::Absent;
            column.max_value = Precision::Absent;
            column.distinct_count = Precision::Absent;
        }
    }
    file
}

/// Returns the indices of the nullable columns that the sort keys of `orders` read.
fn find_keys_with_null(orders: &[LexOrdering], schema: &SchemaRef) -> BTreeSet<usize> {
    let columns = orders.iter().flat_map(|order| order.iter());
    let columns = columns.flat_map(|key| collect_columns(&key.expr));
    let is_nullable = |at: &usize| schema.fields().get(*at).is_none_or(|field| field.is_nullable());
    columns.map(|column| column.index()).filter(is_nullable).collect()
}

/// Removes the minimum and maximum of a sort key from the statistics of each file in which the key
/// may be NULL. These bounds omit NULL. DataFusion compares the bounds of files, and would treat
/// such a file and the next file as one sorted stream.
fn remove_bounds_of_null(group: FileGroup, keys: &BTreeSet<usize>) -> FileGroup {
    let of_group = group.file_statistics(None).cloned();
    let mut files = group.into_inner();
    for statistics in files.iter_mut().filter_map(|file| file.statistics.as_mut()) {
        let columns = &statistics.column_statistics;
        let has_null =
            |at: &usize| columns.get(*at).is_some_and(|c| c.null_count != Precision::Exact(0));
        let with_null: Vec<usize> = keys.iter().copied().filter(has_null).collect();
        for at in with_null {
            if let Some(column) = Arc::make_mut(statistics).column_statistics.get_mut(at) {
                column.min_value = Precision::Absent;
                column.max_value = Precision::Absent;
            }
        }
    }
    let group = FileGroup::new(files);
    match of_group {
        Some(statistics) => group.with_statistics(Arc::new(statistics)),
        None => group,
    }
}

/// Distributes files over partitions. `has_folders` is whether the table has partition columns.
/// Also returns whether all files with the same values in folder names are in one partition, as
/// `datafusion.optimizer.preserve_file_partitions` may require.
fn group_files(
    files: Vec<PartitionedFile>,
    has_folders: bool,
    partitions: usize,
    state: &dyn Session,
) -> (Vec<FileGroup>, bool) {
    let threshold = state.config_options().optimizer.preserve_file_partitions;
    let files = FileGroup::new(files);
    if threshold > 0 && has_folders {
        let grouped = files.clone().group_by_partition_values(partitions);
        if grouped.len() >= threshold {
            return (grouped, true);
        }
    }
    // `FileGroup::split_files` would sort by the names as text, so `10.csv` would come before
    // `9.csv`.
    let size = files.len().div_ceil(partitions).max(1);
    let groups = files.into_inner();
    (groups.chunks(size).map(|chunk| FileGroup::new(chunk.to_vec())).collect(), false)
}
