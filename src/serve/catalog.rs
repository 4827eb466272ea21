//! Lists the catalogs, schemas and tables of a session.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::TableType;
use datafusion::prelude::SessionContext;

use super::wire_types::to_wire_schema;

pub(super) fn list_catalogs(
    ctx: &SessionContext,
    command: CommandGetCatalogs,
) -> Result<RecordBatch, FlightError> {
    let mut builder = command.into_builder();
    for name in ctx.catalog_names() {
        builder.append(name);
    }
    builder.build()
}

pub(super) fn list_schemas(
    ctx: &SessionContext,
    command: CommandGetDbSchemas,
) -> Result<RecordBatch, FlightError> {
    let mut builder = command.into_builder();
    for catalog_name in ctx.catalog_names() {
        let Some(catalog) = ctx.catalog(&catalog_name) else { continue };
        for schema_name in catalog.schema_names() {
            builder.append(&catalog_name, &schema_name);
        }
    }
    builder.build()
}

pub(super) async fn list_tables(
    ctx: &SessionContext,
    command: CommandGetTables,
) -> Result<RecordBatch> {
    let mut builder = command.into_builder();
    for catalog_name in ctx.catalog_names() {
        let Some(catalog) = ctx.catalog(&catalog_name) else { continue };
        for schema_name in catalog.schema_names() {
            let Some(schema) = catalog.schema(&schema_name) else { continue };
            let mut names = schema.table_names();
            names.sort();
            for name in names {
                let Some(table) = schema.table(&name).await? else { continue };
                let kind = name_type(table.table_type());
                let columns = to_wire_schema(&table.schema());
                let appended = builder.append(&catalog_name, &schema_name, &name, kind, &columns);
                appended.map_err(to_error)?;
            }
        }
    }
    builder.build().map_err(to_error)
}

fn to_error(e: FlightError) -> DataFusionError {
    DataFusionError::External(Box::new(e))
}

fn name_type(kind: TableType) -> &'static str {
    match kind {
        TableType::Base => "TABLE",
        TableType::View => "VIEW",
        TableType::Temporary => "LOCAL TEMPORARY",
    }
}

pub(super) fn list_table_types(command: CommandGetTableTypes) -> Result<RecordBatch, FlightError> {
    let mut builder = command.into_builder();
    for kind in [TableType::Base, TableType::View, TableType::Temporary] {
        builder.append(name_type(kind));
    }
    builder.build()
}

/// Returns an empty list of primary keys, because tables have none.
pub(super) fn list_primary_keys() -> RecordBatch {
    let text = |name, nullable| Field::new(name, DataType::Utf8, nullable);
    RecordBatch::new_empty(Arc::new(Schema::new(vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("column_name", false),
        text("key_name", true),
        Field::new("key_sequence", DataType::Int32, false),
    ])))
}

/// Returns an empty list of foreign keys, the answer to all three commands about foreign keys.
pub(super) fn list_foreign_keys() -> RecordBatch {
    let text = |name, nullable| Field::new(name, DataType::Utf8, nullable);
    RecordBatch::new_empty(Arc::new(Schema::new(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ])))
}
