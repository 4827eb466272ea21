//! Answers commands that request metadata: catalogs, schemas, tables, types, and properties of the
//! server.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow_flight::error::FlightError;
use arrow_flight::sql::Command;
use tonic::Status;

use super::catalog::{
    list_catalogs, list_foreign_keys, list_primary_keys, list_schemas, list_table_types,
    list_tables,
};
use super::info::{describe_server, describe_types};
use super::query::QueryEngine;
use super::sessions::ServerSession;
use super::status::{to_invalid, to_status};

pub(super) async fn answer_command(
    engine: &QueryEngine,
    session: &Arc<ServerSession>,
    command: Command,
) -> Result<RecordBatch, Status> {
    let ctx = session.session_context();
    match command {
        Command::CommandGetCatalogs(command) => {
            list_catalogs(ctx, command).map_err(convert_flight_error)
        }
        Command::CommandGetDbSchemas(command) => {
            list_schemas(ctx, command).map_err(convert_flight_error)
        }
        Command::CommandGetTables(command) => {
            let ctx = ctx.clone();
            // Runs on the threads for queries, because a table may read files to find its schema.
            let listed = async move { list_tables(&ctx, command).await.map_err(|e| to_status(&e)) };
            engine.run(listed).await
        }
        Command::CommandGetTableTypes(command) => {
            list_table_types(command).map_err(convert_flight_error)
        }
        Command::CommandGetPrimaryKeys(_) => Ok(list_primary_keys()),
        Command::CommandGetExportedKeys(_)
        | Command::CommandGetImportedKeys(_)
        | Command::CommandGetCrossReference(_) => Ok(list_foreign_keys()),
        Command::CommandGetSqlInfo(command) => {
            let info = describe_server().map_err(convert_flight_error)?;
            command.into_builder(&info).build().map_err(convert_flight_error)
        }
        Command::CommandGetXdbcTypeInfo(command) => {
            let types = describe_types().map_err(convert_flight_error)?;
            command.into_builder(&types).build().map_err(convert_flight_error)
        }
        other => Err(Status::unimplemented(format!(
            "the server does not support the command {}; send SQL text instead",
            other.type_url()
        ))),
    }
}

fn convert_flight_error(e: FlightError) -> Status {
    to_invalid(e.to_string())
}
