//! Rewrites forms of INSERT, UPDATE and DELETE that DataFusion's planner does not support.

use std::ops::ControlFlow;

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    Delete, Expr, FromTable, Ident, ObjectName, ObjectNamePart, Query, SetExpr, Statement,
    TableFactor, TableObject, VisitMut, VisitorMut, With,
};
use datafusion::prelude::SessionContext;

use crate::sql::base::syntax::{as_result, list_relations, parse_query};
use crate::sql::statement::columns::lateral_tables::table_name;
use crate::sql::statement::columns::position_columns::to_table_reference;
use crate::sql::statement::folding::is_same_name;

/// Moves the WITH clause of `WITH .. INSERT | UPDATE | DELETE` into the queries that the statement
/// contains, and replaces the alias in `DELETE FROM t AS alias` with the name of the table.
///
/// # Errors
/// If the alias also renames columns, or if a subquery of a DELETE reads the changed table by its
/// name and uses the alias.
pub(in crate::sql) fn write_out_change(statement: &mut Statement) -> Result<()> {
    if let Statement::Query(query) = statement
        && let SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change) =
            query.body.as_ref()
    {
        let mut change = change.clone();
        if let Some(with) = &query.with {
            let _ = VisitMut::visit(&mut change, &mut AddWith { with, depth: 0 });
        }
        *statement = change;
    }
    match statement {
        Statement::Delete(delete) => drop_alias(delete),
        _ => Ok(()),
    }
}

/// Rewrites `INSERT INTO t DEFAULT VALUES`, which DataFusion does not plan, to an INSERT of NULL
/// into a column without a default. DataFusion then adds the default values of the other columns.
///
/// # Errors
/// If all columns of the table have a default.
pub(in crate::sql) async fn write_out_defaults(
    ctx: &SessionContext,
    statement: &mut Statement,
) -> Result<()> {
    let Statement::Insert(insert) = statement else { return Ok(()) };
    let (None, [], TableObject::TableName(name)) =
        (&insert.source, insert.assignments.as_slice(), &insert.table)
    else {
        return Ok(());
    };
    let provider = match to_table_reference(name) {
        Some(reference) => ctx.table_provider(reference).await.ok(),
        None => None,
    };
    // If the table does not exist, the planner reports the error.
    if let Some(provider) = provider {
        let schema = provider.schema();
        let mut columns = schema.fields().iter();
        let Some(column) = columns.find(|c| provider.get_column_default(c.name()).is_none()) else {
            return plan_err!(
                "INSERT INTO {name} DEFAULT VALUES requires a column without a default, but all columns of {name} have one; write the value of one column: INSERT INTO {name} (a) VALUES (1)"
            );
        };
        insert.columns = vec![ObjectName::from(Ident::with_quote('"', column.name()))];
    }
    insert.source = Some(Box::new(parse_query("VALUES (NULL)")?));
    Ok(())
}

/// Adds the queries of a WITH clause to the outermost queries of a statement.
struct AddWith<'a> {
    with: &'a With,
    depth: usize,
}

impl VisitorMut for AddWith<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.depth = self.depth.saturating_add(1);
        if self.depth == 1 {
            // A WITH clause of the query itself may hide names that the added queries read, so the
            // query moves into a nested query together with this clause.
            if query.with.is_some() {
                *query = nest_query(query.clone());
            }
            query.with = Some(self.with.clone());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }
}

/// Returns `(query)`, a query whose body is `query` in parentheses.
fn nest_query(query: Query) -> Query {
    Query {
        with: None,
        body: Box::new(SetExpr::Query(Box::new(query))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// Replaces the alias of the table of a DELETE with the name of the table. DataFusion does not
/// resolve this alias.
fn drop_alias(delete: &mut Delete) -> Result<()> {
    let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &mut delete.from;
    let [table] = tables.as_mut_slice() else { return Ok(()) };
    let TableFactor::Table { name, alias, .. } = &mut table.relation else { return Ok(()) };
    let Some(alias) = alias.take() else { return Ok(()) };
    if !alias.columns.is_empty() {
        return plan_err!(
            "DELETE FROM {name} AS {alias} renames columns, which is not supported; write the alias without names of columns"
        );
    }
    let Some(ObjectNamePart::Identifier(table)) = name.0.last().cloned() else { return Ok(()) };
    let Some(selection) = &mut delete.selection else { return Ok(()) };
    let mut rename = RenameTable { table: &table, alias: &alias.name, around: Vec::new() };
    as_result(VisitMut::visit(selection, &mut rename))
}

/// Replaces the alias of the changed table in the names of columns with the name of the table.
struct RenameTable<'a> {
    table: &'a Ident,
    alias: &'a Ident,
    /// For each enclosing query, whether its FROM has the name or the alias of the changed table.
    /// The innermost query is last.
    around: Vec<CapturedNames>,
}

/// Whether a FROM clause has a table with the name or the alias of the changed table.
#[derive(Clone, Copy, Default)]
struct CapturedNames {
    table: bool,
    alias: bool,
}

impl RenameTable<'_> {
    fn find_captures(&self, body: &SetExpr) -> CapturedNames {
        let mut found = CapturedNames::default();
        match body {
            SetExpr::Select(select) => {
                for factor in select.from.iter().flat_map(list_relations) {
                    let is = |name: &Ident| {
                        table_name(factor).is_some_and(|known| is_same_name(known, name))
                    };
                    found.table |= is(self.table);
                    found.alias |= is(self.alias);
                }
            }
            SetExpr::Query(query) => found = self.find_captures(&query.body),
            SetExpr::SetOperation { left, right, .. } => {
                let (left, right) = (self.find_captures(left), self.find_captures(right));
                found.table = left.table || right.table;
                found.alias = left.alias || right.alias;
            }
            _ => {}
        }
        found
    }
}

impl VisitorMut for RenameTable<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        let captures = self.find_captures(&query.body);
        self.around.push(captures);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<DataFusionError> {
        self.around.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        let Expr::CompoundIdentifier(parts) = expr else { return ControlFlow::Continue(()) };
        let Some(first) = parts.first_mut().filter(|first| is_same_name(first, self.alias)) else {
            return ControlFlow::Continue(());
        };
        if self.around.iter().any(|captures| captures.alias) {
            return ControlFlow::Continue(());
        }
        if self.around.iter().any(|captures| captures.table) {
            let table = &self.table;
            return ControlFlow::Break(plan_datafusion_err!(
                "a subquery of this DELETE uses the alias {first} and also reads the table {table}, which is not supported; give {table} an alias of its own in the subquery"
            ));
        }
        *first = self.table.clone();
        ControlFlow::Continue(())
    }
}
