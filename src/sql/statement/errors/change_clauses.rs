//! Rejects clauses of INSERT, UPDATE, DELETE and MERGE that the planner does not support, and says
//! what to write instead.

use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    AssignmentTarget, Delete, Expr, Insert, SetExpr, Statement, Update,
};

use crate::sql::statement::errors::wording::refuse_clause;

pub(super) fn check_change(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Insert(insert) => check_insert(insert),
        Statement::Update(update) => check_update(update),
        Statement::Delete(delete) => check_delete(delete),
        Statement::Merge(_) => Err(refuse_clause(
            "MERGE is not supported: write UPDATE t SET a = (SELECT s.a FROM s WHERE s.id = t.id) WHERE id IN (SELECT id FROM s) for the rows that match, and INSERT INTO t SELECT * FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.id = s.id) for those that do not",
        )),
        _ => Ok(()),
    }
}

fn check_insert(insert: &Insert) -> Result<()> {
    if insert.on.is_some() {
        return Err(refuse_clause(
            "ON CONFLICT and ON DUPLICATE KEY of INSERT are not supported: to keep the existing rows, write INSERT INTO t SELECT * FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.id = s.id); to replace them, run DELETE FROM t WHERE id IN (SELECT id FROM s) before INSERT INTO t",
        ));
    }
    if insert.returning.is_some() {
        return Err(refuse_returning("INSERT", "after INSERT"));
    }
    if let Some(source) = &insert.source
        && let SetExpr::Values(values) = source.body.as_ref()
        && values.rows.iter().flat_map(|row| row.iter()).any(is_default)
    {
        return Err(refuse_clause(
            "DEFAULT among the VALUES of INSERT is not supported: leave the column out of the list of columns, as in INSERT INTO t (a) VALUES (1), and it gets its default",
        ));
    }
    Ok(())
}

fn check_update(update: &Update) -> Result<()> {
    let mut targets = update.assignments.iter().map(|assignment| &assignment.target);
    if let Some(columns) = targets.find(|target| matches!(target, AssignmentTarget::Tuple(_))) {
        return Err(refuse_clause(format!(
            "SET {columns} = .. is not supported: write an assignment for each column, as in SET a = 1, b = 2"
        )));
    }
    if update.assignments.iter().any(|assignment| is_default(&assignment.value)) {
        return Err(refuse_clause(
            "DEFAULT as a value of UPDATE is not supported: write the default value of the column itself, as in SET a = 0",
        ));
    }
    if update.from.is_some() {
        return Err(refuse_clause(
            "the clause FROM of UPDATE is not supported: write a subquery for the value and for the rows, as in UPDATE t SET a = (SELECT s.a FROM s WHERE s.id = t.id) WHERE id IN (SELECT id FROM s)",
        ));
    }
    if update.returning.is_some() {
        return Err(refuse_returning("UPDATE", "with the same condition after UPDATE"));
    }
    if !update.order_by.is_empty() || update.limit.is_some() {
        return Err(refuse_clause(
            "the clauses ORDER BY and LIMIT of UPDATE are not supported: select the rows by a key, as in UPDATE t SET a = 1 WHERE id IN (SELECT id FROM t ORDER BY x LIMIT 9)",
        ));
    }
    Ok(())
}

/// Whether a value is the word DEFAULT, which the parser reads as a column.
fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

fn check_delete(delete: &Delete) -> Result<()> {
    if delete.using.is_some() {
        return Err(refuse_clause(
            "the clause USING of DELETE is not supported: write a subquery, as in DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id)",
        ));
    }
    if delete.returning.is_some() {
        return Err(refuse_returning("DELETE", "with the same condition before DELETE"));
    }
    if !delete.order_by.is_empty() || delete.limit.is_some() {
        return Err(refuse_clause(
            "the clauses ORDER BY and LIMIT of DELETE are not supported: select the rows by a key, as in DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY x LIMIT 9)",
        ));
    }
    Ok(())
}

fn refuse_returning(change: &str, place: &str) -> DataFusionError {
    refuse_clause(format!(
        "the clause RETURNING of {change} is not supported: write SELECT .. FROM t {place} to read the rows; {change} returns only their number"
    ))
}
