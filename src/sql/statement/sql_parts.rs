//! Access to the part of a statement that sqlparser has parsed: an SQL statement, or the query of
//! COPY, also below EXPLAIN.

use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{Statement as SqlStatement, Visit, Visitor};
use datafusion::sql::parser::Statement;

/// Evaluates an expression with the part of a statement that sqlparser has parsed. `$statement` is
/// a reference, `&Statement` or `&mut Statement`, and `$sql` is one to a `Box`. The SQL statement
/// and the query have different types, but both are `Visit` and `VisitMut`. Returns `None` for a
/// statement without such a part, such as COPY of a table.
macro_rules! with_sql {
    ($statement:expr, $sql:ident => $value:expr) => {{
        use datafusion::sql::parser;
        let mut statement = $statement;
        loop {
            match statement {
                parser::Statement::Statement($sql) => break Some($value),
                parser::Statement::CopyTo(parser::CopyToStatement { source, .. }) => match source {
                    parser::CopyToSource::Query($sql) => break Some($value),
                    parser::CopyToSource::Relation(_) => break None,
                },
                parser::Statement::Explain(parser::ExplainStatement {
                    statement: inner, ..
                }) => {
                    statement = inner;
                }
                parser::Statement::CreateExternalTable(_) | parser::Statement::Reset(_) => {
                    break None;
                }
            }
        }
    }};
}
pub(super) use with_sql;

/// Visits the part of a statement that sqlparser has parsed, if it has one.
pub(super) fn visit_statement<V: Visitor>(
    statement: &Statement,
    visitor: &mut V,
) -> ControlFlow<V::Break> {
    with_sql!(statement, sql => sql.visit(visitor)).unwrap_or(ControlFlow::Continue(()))
}

/// Returns the SQL statement of a statement, also below EXPLAIN and PREPARE. Returns `None` for
/// COPY and other statements that are not plain SQL.
pub(super) fn find_sql_statement(statement: &mut Statement) -> Option<&mut SqlStatement> {
    match statement {
        Statement::Statement(inner) => Some(skip_prepare(inner)),
        Statement::Explain(explain) => find_sql_statement(&mut explain.statement),
        _ => None,
    }
}

/// Returns the statement that PREPARE prepares, or any other statement itself.
pub(super) fn skip_prepare(statement: &mut SqlStatement) -> &mut SqlStatement {
    match statement {
        SqlStatement::Prepare { statement, .. } => skip_prepare(statement),
        other => other,
    }
}
