//! Sources in FROM and targets of COPY: tables in memory, files, health records, sparse tensors.

pub(in crate::sql) mod adapt;
pub(in crate::sql) mod arrow_files;
pub(in crate::sql) mod arrow_scan;
pub(in crate::sql) mod asof;
pub(in crate::sql) mod cohort;
pub(in crate::sql) mod csv_records;
pub(in crate::sql) mod csv_scan;
pub(in crate::sql) mod csv_schema;
pub(in crate::sql) mod cuts;
pub(crate) mod dok;
pub(in crate::sql) mod empty;
pub(in crate::sql) mod exact;
pub(in crate::sql) mod exact_casts;
pub(crate) mod features;
pub(in crate::sql) mod folders;
pub(in crate::sql) mod format_scan;
pub(in crate::sql) mod from;
pub(in crate::sql) mod json;
pub(in crate::sql) mod json_scan;
pub(in crate::sql) mod json_sink;
pub(in crate::sql) mod listing;
pub(in crate::sql) mod meds;
pub(in crate::sql) mod memory;
pub(in crate::sql) mod nrt;
pub(in crate::sql) mod output;
pub(in crate::sql) mod parquet;
pub(in crate::sql) mod ranges;
pub(in crate::sql) mod relation;
pub(in crate::sql) mod safetensors;
pub(in crate::sql) mod table;
pub(in crate::sql) mod training;
pub(in crate::sql) mod urls;
pub(in crate::sql) mod visible;
pub(in crate::sql) mod whole;
pub(in crate::sql) mod write_only;

use arrow::datatypes::Schema;

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

/// Returns the indices of the columns that a scan returns: those of the projection, or all.
fn select_columns(projection: Option<&Vec<usize>>, schema: &Schema) -> Vec<usize> {
    match projection {
        Some(columns) => columns.clone(),
        None => (0..schema.fields().len()).collect(),
    }
}
