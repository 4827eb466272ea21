//! Sources in FROM and targets of COPY: tables in memory, files, health records, sparse tensors.

pub(in crate::sql) mod arrow_files;
pub(in crate::sql) mod arrow_scan;
pub(in crate::sql) mod asof;
#[cfg(feature = "cloud")]
mod cloud_store;
pub(in crate::sql) mod cohort;
mod condition_errors;
mod created_folders;
pub(in crate::sql) mod csv_nulls;
pub(in crate::sql) mod csv_records;
pub(in crate::sql) mod csv_scan;
pub(in crate::sql) mod csv_schema;
pub(crate) mod dok;
pub(in crate::sql) mod exact_casts;
pub(in crate::sql) mod exact_file_casts;
pub(in crate::sql) mod exact_texts;
pub(crate) mod features;
pub(in crate::sql) mod file_adapter;
pub(in crate::sql) mod file_output;
pub(in crate::sql) mod format_scan;
mod format_sink;
pub(in crate::sql) mod guarded_source;
pub(in crate::sql) mod hidden_files;
pub(in crate::sql) mod inner_sink;
pub(in crate::sql) mod json;
pub(in crate::sql) mod json_scan;
pub(in crate::sql) mod json_sink;
pub(in crate::sql) mod listing;
#[cfg(feature = "cloud")]
pub(in crate::sql) mod local_copies;
pub(in crate::sql) mod meds;
pub(in crate::sql) mod memory_tables;
pub(in crate::sql) mod merged_schemas;
pub(in crate::sql) mod nrt;
pub(in crate::sql) mod parquet;
pub(in crate::sql) mod partition_folders;
pub(in crate::sql) mod pinned_file;
pub(in crate::sql) mod range_partitions;
pub(in crate::sql) mod run_ends;
pub(in crate::sql) mod safetensors;
#[cfg(feature = "cloud")]
mod store_options;
mod store_reads;
#[cfg(feature = "cloud")]
pub(in crate::sql) mod stores;
pub(in crate::sql) mod table_provider;
pub(in crate::sql) mod target_sink;
mod temporary_target;
pub(in crate::sql) mod training;
pub(in crate::sql) mod upload;
pub(in crate::sql) mod urls;
pub(in crate::sql) mod whole_file_format;
pub(in crate::sql) mod write_only;
mod write_options;

use std::borrow::Cow;
use std::path::Path;

use arrow::datatypes::Schema;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};

use crate::access;

/// Defines the methods `schema` and `table_type` of a `TableProvider` that has the field `schema`.
macro_rules! describe_table {
    ($kind:ident) => {
        fn schema(&self) -> arrow::datatypes::SchemaRef {
            std::sync::Arc::clone(&self.schema)
        }

        fn table_type(&self) -> datafusion::logical_expr::TableType {
            datafusion::logical_expr::TableType::$kind
        }
    };
}

pub(in crate::sql) use describe_table;

/// Returns for each condition whether a table evaluates it exactly, or not at all.
pub(in crate::sql) fn accept_filters(
    filters: &[&Expr],
    is_exact: impl Fn(&Expr) -> Result<bool>,
) -> Result<Vec<TableProviderFilterPushDown>> {
    let accept = |filter: &&Expr| match is_exact(filter)? {
        true => Ok(TableProviderFilterPushDown::Exact),
        false => Ok(TableProviderFilterPushDown::Unsupported),
    };
    filters.iter().map(accept).collect()
}

/// Defines methods of `FileSource` that call the same method of the source in a field.
///
/// `delegate_source!(inner: filter, metrics);` defines `filter` and `metrics`.
macro_rules! delegate_source {
    ($field:ident: $($method:ident),+) => {
        $($crate::sql::sources::delegate_source!(@ $field $method);)+
    };
    (@ $field:ident table_schema) => {
        fn table_schema(&self) -> &datafusion::datasource::table_schema::TableSchema {
            self.$field.table_schema()
        }
    };
    (@ $field:ident filter) => {
        fn filter(&self) -> Option<std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>> {
            self.$field.filter()
        }
    };
    (@ $field:ident projection) => {
        fn projection(&self) -> Option<&datafusion::physical_expr::projection::ProjectionExprs> {
            self.$field.projection()
        }
    };
    (@ $field:ident metrics) => {
        fn metrics(&self) -> &datafusion::physical_plan::metrics::ExecutionPlanMetricsSet {
            self.$field.metrics()
        }
    };
    (@ $field:ident file_type) => {
        fn file_type(&self) -> &str {
            self.$field.file_type()
        }
    };
    (@ $field:ident fmt_extra) => {
        fn fmt_extra(
            &self,
            t: datafusion::physical_plan::DisplayFormatType,
            f: &mut std::fmt::Formatter<'_>,
        ) -> std::fmt::Result {
            self.$field.fmt_extra(t, f)
        }
    };
    (@ $field:ident supports_repartitioning) => {
        fn supports_repartitioning(&self) -> bool {
            self.$field.supports_repartitioning()
        }
    };
    (@ $field:ident apply_expressions) => {
        fn apply_expressions(
            &self,
            f: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> datafusion::error::Result<
                datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> datafusion::error::Result<datafusion::common::tree_node::TreeNodeRecursion> {
            self.$field.apply_expressions(f)
        }
    };
    (@ $field:ident repartitioned) => {
        fn repartitioned(
            &self,
            target_partitions: usize,
            min_size: usize,
            ordering: Option<datafusion::physical_expr::LexOrdering>,
            config: &datafusion::datasource::physical_plan::FileScanConfig,
        ) -> datafusion::error::Result<Option<datafusion::datasource::physical_plan::FileScanConfig>>
        {
            self.$field.repartitioned(target_partitions, min_size, ordering, config)
        }
    };
    (@ $field:ident reorder_files) => {
        fn reorder_files(
            &self,
            files: Vec<datafusion::datasource::listing::PartitionedFile>,
        ) -> Vec<datafusion::datasource::listing::PartitionedFile> {
            self.$field.reorder_files(files)
        }
    };
}

pub(in crate::sql) use delegate_source;

pub(in crate::sql) fn as_literal_str(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

/// Returns the local path of the data at `path`. If `path` is the URL of an object store, copies
/// the data and returns the path of the copy.
fn to_local_path(path: &str) -> crate::Result<Cow<'_, Path>> {
    access::localize_path(path, &[]).map_err(|e| crate::Error::io(&*access::hide_secrets(path), e))
}

/// Returns the indices of the columns that a scan returns: those of the projection, or all.
pub(in crate::sql) fn select_columns(
    projection: Option<&Vec<usize>>,
    schema: &Schema,
) -> Vec<usize> {
    match projection {
        Some(columns) => columns.clone(),
        None => (0..schema.fields().len()).collect(),
    }
}
