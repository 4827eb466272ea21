//! Finds the columns of the table that INSERT and UPDATE change.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::logical_expr::sqlparser::ast::{Insert, ObjectName, TableObject};
use datafusion::prelude::SessionContext;

use crate::sql::statement::columns::position_columns::to_table_reference;
use crate::sql::statement::folding::fold_name;

/// Returns, for each value in a row of an INSERT, the column that takes it: the columns that the
/// statement lists, or else all columns of the table. A column that the table lacks is `None`.
/// Returns no columns if the table does not exist.
pub(in crate::sql::statement) async fn find_target_columns(
    ctx: &SessionContext,
    insert: &Insert,
) -> Vec<Option<FieldRef>> {
    let TableObject::TableName(table) = &insert.table else { return Vec::new() };
    let Some(schema) = find_table_columns(ctx, table).await else { return Vec::new() };
    if insert.columns.is_empty() {
        return schema.fields().iter().map(|field| Some(Arc::clone(field))).collect();
    }
    let columns = insert.columns.iter().map(|column| {
        let name = fold_name(column.0.last()?.as_ident()?);
        schema.fields().find(&name).map(|(_, field)| Arc::clone(field))
    });
    columns.collect()
}

/// Returns the columns of a table, or `None` if the table does not exist.
pub(in crate::sql::statement) async fn find_table_columns(
    ctx: &SessionContext,
    table: &ObjectName,
) -> Option<SchemaRef> {
    let reference = to_table_reference(table)?;
    ctx.table_provider(reference).await.ok().map(|provider| provider.schema())
}
