//! Lists the columns of subqueries in FROM as the statement writes them, without planning.

use datafusion::logical_expr::sqlparser::ast::{
    Expr, Ident, Select, SelectItem, SetExpr, TableFactor,
};

use crate::sql::base::syntax::count_columns;

/// Returns the names of the columns of a SELECT. Returns `None` if the statement does not write all
/// of them, as in `SELECT *` and `SELECT x + 1`.
pub(in crate::sql) fn list_selected_names(select: &Select) -> Option<Vec<Ident>> {
    let names = select.projection.iter().map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().cloned(),
        _ => None,
    });
    names.collect()
}

/// Returns the names of the columns of a subquery in FROM: `x` and `b` for
/// `(SELECT a, b FROM t) AS q(x)`. Returns `None` for other tables, and if the statement does not
/// write all of the names.
pub(in crate::sql) fn list_derived_names(table: &TableFactor) -> Option<Vec<Ident>> {
    let TableFactor::Derived { subquery, alias, .. } = table else { return None };
    let renamed = alias.iter().flat_map(|alias| &alias.columns).map(|column| column.name.clone());
    let mut names: Vec<Ident> = renamed.collect();
    let body = subquery.body.as_ref();
    if !matches!(body, SetExpr::Select(_) | SetExpr::Values(_)) {
        return None;
    }
    if names.len() < count_columns(body)? {
        let SetExpr::Select(select) = body else { return None };
        names.extend(list_selected_names(select)?.into_iter().skip(names.len()));
    }
    Some(names)
}
