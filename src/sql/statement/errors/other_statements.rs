//! Says what to write instead of statements of other systems, which the planner rejects by name.

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{Set, Statement};

use crate::sql::statement::errors::wording::refuse_clause;

pub(super) fn refuse_statement(statement: &Statement) -> Result<()> {
    let (found, instead) = match statement {
        Statement::AlterTable(_) => (
            "ALTER TABLE",
            "write CREATE OR REPLACE TABLE t AS SELECT .. FROM t with the columns that the table needs",
        ),
        Statement::CreateIndex(_) => (
            "CREATE INDEX",
            "remove the statement; scans of Parquet and .nrt files skip rows by the statistics of the files",
        ),
        Statement::StartTransaction { .. }
        | Statement::Commit { .. }
        | Statement::Rollback { .. } => {
            ("a transaction", "remove the statement; each statement takes effect when it ends")
        }
        Statement::CreateSequence { .. } => {
            ("CREATE SEQUENCE", "write row_number() OVER () AS id to number rows")
        }
        Statement::Use(_) => {
            ("USE", "write the name of the schema before the table, as in FROM s.t")
        }
        Statement::ShowDatabases { .. } | Statement::ShowSchemas { .. } => (
            "SHOW DATABASES or SHOW SCHEMAS",
            "write SELECT DISTINCT table_catalog, table_schema FROM information_schema.tables",
        ),
        Statement::Vacuum(_) | Statement::Analyze(_) => {
            ("VACUUM or ANALYZE", "remove the statement; tables need no maintenance")
        }
        Statement::Install { .. } | Statement::Load { .. } => {
            ("INSTALL or LOAD", "remove the statement; all functions and formats are built in")
        }
        Statement::DropFunction(_) => (
            "DROP FUNCTION",
            "remove the statement; the functions are built in, and all statements use them",
        ),
        Statement::Set(Set::SetTimeZone { value, .. }) => {
            return Err(refuse_clause(format!(
                "SET TIME ZONE is not supported: write SET datafusion.execution.time_zone = {value}"
            )));
        }
        _ => return Ok(()),
    };
    Err(refuse_clause(format!("{found} is not supported: {instead}")))
}
