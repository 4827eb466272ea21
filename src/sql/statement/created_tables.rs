//! CREATE TABLE .. AS a query: the rows of the table are in source order, and its columns are nullable, so that
//! rows with NULL can be inserted later.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::Statement as SqlStatement;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::sql::parser::Statement;

use crate::sql::exec::table_rows::TableRows;

/// A statement that creates a table from a query.
#[derive(Clone, Copy)]
pub(super) struct CreatedFromQuery {
    /// Whether the statement declares the columns.
    declared: bool,
}

impl CreatedFromQuery {
    /// Returns `None` if the statement is not CREATE TABLE .. AS a query.
    pub(super) fn from_statement(statement: &Statement) -> Option<Self> {
        let Statement::Statement(inner) = statement else { return None };
        match inner.as_ref() {
            SqlStatement::CreateTable(table) if table.query.is_some() => {
                Some(Self { declared: !table.columns.is_empty() })
            }
            _ => None,
        }
    }

    /// Adds the node [`TableRows`] above the query of the plan.
    pub(super) fn add_table_rows(self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) = plan else {
            return Ok(plan);
        };
        let input = Arc::unwrap_or_clone(table.input);
        table.input = Arc::new(TableRows::plan(input, self.declared)?);
        Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
    }
}
