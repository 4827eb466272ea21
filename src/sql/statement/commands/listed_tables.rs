use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::Statement as SqlStatement;
use datafusion::sql::parser::Statement;

use crate::sql::base::syntax::parse_query;

/// The query that SHOW TABLES stands for. That of DataFusion also lists the views of
/// `information_schema`, among which the tables of the user are easy to miss.
const SHOW_TABLES: &str = "SELECT * FROM information_schema.tables WHERE table_schema <> 'information_schema' ORDER BY table_catalog, table_schema, table_name";

/// Replaces SHOW TABLES by a query for the tables and views of the user. Other statements, and SHOW
/// TABLES with clauses, stay as they are.
pub(in crate::sql::statement) fn write_out_show(statement: &mut Statement) -> Result<()> {
    if let Statement::Statement(inner) = statement
        && matches!(**inner, SqlStatement::ShowTables { .. })
        && inner.to_string() == "SHOW TABLES"
    {
        **inner = SqlStatement::Query(Box::new(parse_query(SHOW_TABLES)?));
    }
    Ok(())
}
