//! Makes the columns of CREATE TABLE .. AS a query nullable, so that rows with NULL can be inserted later.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::Statement as SqlStatement;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::sql::parser::Statement;

use crate::sql::exec::nullable::NullableColumns;

/// Whether a statement creates a table from a query, without declared columns.
pub(super) fn creates_from_query(statement: &Statement) -> bool {
    let Statement::Statement(inner) = statement else { return false };
    matches!(
        inner.as_ref(),
        SqlStatement::CreateTable(table) if table.query.is_some() && table.columns.is_empty()
    )
}

/// If the plan creates a table, makes all columns of the table nullable.
pub(super) fn with_nullable_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) = plan else {
        return Ok(plan);
    };
    if table.input.schema().fields().iter().any(|field| !field.is_nullable()) {
        table.input = Arc::new(NullableColumns::plan(Arc::unwrap_or_clone(table.input))?);
    }
    Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
}
