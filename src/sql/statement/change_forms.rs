//! Forms of INSERT, UPDATE and DELETE that DataFusion's planner does not support.

use std::ops::ControlFlow;

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    Delete, Expr, FromTable, Ident, ObjectNamePart, Query, SetExpr, Statement, TableFactor, Visit,
    VisitMut, Visitor, VisitorMut, With, visit_expressions_mut,
};

use crate::sql::statement::lateral::table_name;

/// Moves the queries of `WITH .. INSERT | UPDATE | DELETE` into the queries that the statement contains, and
/// replaces the alias in `DELETE FROM t AS alias` with the name of the table.
///
/// # Errors
/// If a subquery of a DELETE reads a table with the name or the alias of the changed table.
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
            let mut with = self.with.clone();
            if let Some(own) = query.with.take() {
                with.recursive |= own.recursive;
                with.cte_tables.retain(|outer| {
                    let is_same =
                        |name: &Ident| name.value.eq_ignore_ascii_case(&outer.alias.name.value);
                    !own.cte_tables.iter().any(|inner| is_same(&inner.alias.name))
                });
                with.cte_tables.extend(own.cte_tables);
            }
            query.with = Some(with);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }
}

/// Replaces the alias of the table of a DELETE with the name of the table, which DataFusion does not.
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
    let mut check = CheckTables { table: &table, alias: &alias.name };
    if let ControlFlow::Break(e) = Visit::visit(selection, &mut check) {
        return Err(e);
    }
    let _ = visit_expressions_mut(selection, |e| {
        if let Expr::CompoundIdentifier(parts) = e
            && let Some(first) = parts.first_mut()
            && is_same_name(first, &alias.name)
        {
            *first = table.clone();
        }
        ControlFlow::<()>::Continue(())
    });
    Ok(())
}

fn is_same_name(a: &Ident, b: &Ident) -> bool {
    a.value.eq_ignore_ascii_case(&b.value)
}

/// Returns an error for a table in a subquery that would capture the columns of the changed table.
struct CheckTables<'a> {
    table: &'a Ident,
    alias: &'a Ident,
}

impl Visitor for CheckTables<'_> {
    type Break = DataFusionError;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<DataFusionError> {
        let captures =
            |name: &Ident| is_same_name(name, self.table) || is_same_name(name, self.alias);
        match table_name(factor).filter(|name| captures(name)) {
            Some(name) => ControlFlow::Break(plan_datafusion_err!(
                "a subquery of this DELETE also reads a table called {name}; give that table another alias"
            )),
            None => ControlFlow::Continue(()),
        }
    }
}
