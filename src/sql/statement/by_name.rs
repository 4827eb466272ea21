//! `INSERT INTO t BY NAME SELECT ..`: inserts each column of the query into the column of the table
//! that has the same name.

use std::collections::HashSet;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    Ident, Insert, ObjectName, SetExpr, Statement as SqlStatement, TableObject,
};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::sql::base::deep_stack::run_deep;
use crate::sql::statement::columns::position_columns::to_table_reference;
use crate::sql::statement::parsing::forms::BY_NAME;
use crate::sql::statement::planned_parts::{list_column_names, to_statement};
use crate::sql::statement::planner::plan_with_views;
use crate::sql::statement::sql_parts::find_sql_statement;

/// In `INSERT INTO t BY NAME SELECT ..`, replaces the placeholder [`BY_NAME`], which the parser has
/// read as a column of `t`, with the names of the columns of the query.
///
/// # Errors
/// If the table lacks a column of the query, or if the statement has VALUES, whose columns have no
/// names.
pub(super) fn list_columns<'a>(
    ctx: &'a SessionContext,
    statement: &'a mut Statement,
    refreshed: &'a mut HashSet<String>,
) -> BoxFuture<'a, Result<()>> {
    // This function and `plan_with_views` call each other, so one of the two futures must be boxed.
    find_columns(ctx, statement, refreshed).boxed()
}

async fn find_columns(
    ctx: &SessionContext,
    statement: &mut Statement,
    refreshed: &mut HashSet<String>,
) -> Result<()> {
    let Some(insert) = find_insert(statement).filter(|insert| is_by_name(insert)) else {
        return Ok(());
    };
    let (Some(source), TableObject::TableName(table)) = (&insert.source, &insert.table) else {
        return Ok(());
    };
    if matches!(source.body.as_ref(), SetExpr::Values(_)) {
        return plan_err!(
            "INSERT INTO {table} BY NAME has VALUES, whose columns have no names; write a query with names, as in INSERT INTO {table} BY NAME SELECT 1 AS a, or the columns, as in INSERT INTO {table} (a) VALUES (1)"
        );
    }
    let query = to_statement(source.as_ref().clone());
    let (plan, _) = run_deep(plan_with_views(ctx, query, refreshed)).await?;
    let mut names: Vec<String> = list_column_names(&plan);
    let provider = match to_table_reference(table) {
        Some(reference) => ctx.table_provider(reference).await.ok(),
        None => None,
    };
    // If the table does not exist, the planner reports the error.
    if let Some(provider) = provider {
        let schema = provider.schema();
        let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        for name in &mut names {
            let is_same = |column: &&&str| column.eq_ignore_ascii_case(name);
            let found = match known.contains(&name.as_str()) {
                true => continue,
                false => known.iter().find(is_same),
            };
            let Some(found) = found else {
                return plan_err!(
                    "INSERT INTO {table} BY NAME: the query has the column {name}, but the columns of {table} are {}; name the column after one of them with AS, or leave it out",
                    known.join(", ")
                );
            };
            *name = (*found).to_owned();
        }
    }
    insert.columns =
        names.into_iter().map(|name| ObjectName::from(Ident::with_quote('"', name))).collect();
    Ok(())
}

/// Returns the INSERT of a statement, also below EXPLAIN or PREPARE; `None` for other statements.
pub(super) fn find_insert(statement: &mut Statement) -> Option<&mut Insert> {
    match find_sql_statement(statement)? {
        SqlStatement::Insert(insert) => Some(insert),
        _ => None,
    }
}

fn is_by_name(insert: &Insert) -> bool {
    match insert.columns.as_slice() {
        [column] => match column.0.as_slice() {
            [name] => name.as_ident().is_some_and(|name| name.value == BY_NAME),
            _ => false,
        },
        _ => false,
    }
}
