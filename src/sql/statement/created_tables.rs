//! CREATE TABLE .. AS a query: the rows of the table are in source order, and its columns are nullable, so that
//! rows with NULL can be inserted later.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::Statement as SqlStatement;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::sql::parser::Statement;

use crate::sql::exec::table_rows::TableRows;

/// Removes the word TEMPORARY from CREATE TABLE and CREATE VIEW: all tables and views in memory belong to the session
/// and vanish with it. GLOBAL stays, and is an error of the planner.
pub(super) fn drop_temporary(statement: &mut SqlStatement) {
    match statement {
        SqlStatement::CreateTable(table) if table.temporary => {
            table.temporary = false;
            table.global = table.global.filter(|global| *global);
        }
        SqlStatement::CreateView(view) => view.temporary = false,
        _ => {}
    }
}

/// A statement that creates a table from a query.
#[derive(Clone, Copy)]
pub(super) struct CreatedFromQuery {
    /// Whether the statement declares the columns.
    declared: bool,
}

impl CreatedFromQuery {
    /// Returns `None` if the statement is not CREATE TABLE .. AS a query.
    pub(super) fn of_statement(statement: &Statement) -> Option<Self> {
        let Statement::Statement(inner) = statement else { return None };
        match inner.as_ref() {
            SqlStatement::CreateTable(table) if table.query.is_some() => {
                Some(Self { declared: !table.columns.is_empty() })
            }
            _ => None,
        }
    }

    /// Adds the node [`TableRows`] above the query of the plan.
    pub(super) fn with_table_rows(self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) = plan else {
            return Ok(plan);
        };
        let input = Arc::unwrap_or_clone(table.input);
        table.input = Arc::new(TableRows::plan(input, self.declared)?);
        Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
    }
}
