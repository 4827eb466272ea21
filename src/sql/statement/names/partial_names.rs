//! Lets the names of columns after a query of WITH, and after a view, name the first columns only.

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    Ident, Query, SetExpr, Statement, TableAliasColumnDef, TableFactor,
};

use crate::sql::base::syntax::{count_columns, parse_query};

/// Rewrites `WITH a(x) AS (SELECT 1 AS p, 2 AS q)` to `WITH a AS (SELECT * FROM (SELECT 1 AS p, 2
/// AS q) AS i(x))`. In FROM,
/// [`PlannedRelations`](crate::sql::from::planned_relations::PlannedRelations) completes the names;
/// in WITH, DataFusion requires a name for each column.
pub(in crate::sql) fn complete_names(query: &mut Query) -> Result<()> {
    let Some(with) = query.with.as_mut().filter(|with| !with.recursive) else { return Ok(()) };
    for cte in &mut with.cte_tables {
        let names = cte.alias.columns.iter().map(|column| column.name.clone()).collect();
        if name_first_columns(&mut cte.query, names)? {
            cte.alias.columns.clear();
        }
    }
    Ok(())
}

/// Rewrites `CREATE VIEW a(x) AS SELECT 1 AS p, 2 AS q` like [`complete_names`].
pub(in crate::sql) fn complete_view_names(statement: &mut Statement) -> Result<()> {
    let Statement::CreateView(view) = statement else { return Ok(()) };
    let names = view.columns.iter().map(|column| column.name.clone()).collect();
    if name_first_columns(&mut view.query, names)? {
        view.columns.clear();
    }
    Ok(())
}

/// Encloses a query in another one that gives its first columns the names `names`, if it has more
/// columns than these. Returns whether it does. A query with a star stays unchanged, because its
/// columns are unknown here.
fn name_first_columns(query: &mut Query, names: Vec<Ident>) -> Result<bool> {
    if names.is_empty() || count_columns(&query.body).is_none_or(|count| count <= names.len()) {
        return Ok(false);
    }
    let mut around = parse_query("SELECT * FROM (SELECT 1) AS __serrate_named (x)")?;
    let SetExpr::Select(select) = around.body.as_mut() else { return Ok(false) };
    let from = select.from.first_mut().map(|from| &mut from.relation);
    let Some(TableFactor::Derived { subquery, alias: Some(alias), .. }) = from else {
        return Ok(false);
    };
    alias.columns =
        names.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    std::mem::swap(subquery.as_mut(), query);
    *query = around;
    Ok(true)
}
