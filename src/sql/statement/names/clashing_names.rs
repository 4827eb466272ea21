//! Plans statements in which DataFusion gives two columns of a SELECT the same name, which is an error.
//!
//! DataFusion names a column after its planned expression, which omits casts and replaces operators and
//! aliases of functions: `SELECT *, a::VARCHAR`, `SELECT substr(s, 2), substring(s, 2)`. SQL has no such error.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::error::DataFusionError;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Ident, Select, SelectItem, TableFactor, Value, Visit, VisitMut, Visitor, VisitorMut,
};

use crate::sql::base::syntax::has_query;
use crate::sql::statement::columns::set_names::{
    add_identifiers, find_unused_name, is_name, name_of,
};
use crate::sql::statement::names::unnamed_queries::UNNAMED;

/// Whether a SELECT of a statement has a computed column without an alias next to other columns.
pub(in crate::sql::statement) fn may_clash<S: Visit>(statement: &S) -> bool {
    statement.visit(&mut FindComputed).is_break()
}

pub(in crate::sql::statement) fn is_clash(e: &DataFusionError) -> bool {
    let message = e.to_string();
    message.contains("require unique expression names")
        || message.contains("contains duplicate unqualified field name")
}

/// Gives every computed column without an alias its text as alias.
pub(in crate::sql::statement) fn name_computed<S: VisitMut + Visit>(statement: &mut S) {
    let mut avoided = HashSet::new();
    add_identifiers(statement, &mut avoided);
    let _ = VisitMut::visit(statement, &mut NameComputed { avoided });
}

fn is_computed(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(e) if !is_name(e))
}

struct FindComputed;

impl Visitor for FindComputed {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let columns = &select.projection;
        match columns.len() > 1 && columns.iter().any(is_computed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

struct NameComputed {
    /// Names that an alias must not get: the identifiers of the statement, in lower case. An alias
    /// that a clause mentions would hide a column of FROM.
    avoided: HashSet<String>,
}

impl VisitorMut for NameComputed {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.projection.len() < 2 {
            return ControlFlow::Continue(());
        }
        let named = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
            SelectItem::UnnamedExpr(e) if is_name(e) => Some(name_of(e).to_lowercase()),
            _ => None,
        });
        let mut used: HashSet<String> = named.collect();
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            if !is_name(expr) {
                let name = find_unused_name(&display_written(expr), &mut used, &self.avoided);
                let expr = std::mem::replace(expr, Expr::value(Value::Null));
                let alias = Ident::with_quote('"', name);
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns the text of an expression without the aliases that `unnamed_queries` has added to subqueries in FROM.
fn display_written(expr: &Expr) -> String {
    if !has_query(expr) {
        return name_of(expr);
    }
    let mut written = expr.clone();
    let _ = VisitMut::visit(&mut written, &mut DropAddedAliases);
    name_of(&written)
}

struct DropAddedAliases;

impl VisitorMut for DropAddedAliases {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived { alias, .. } = factor
            && alias.as_ref().is_some_and(|alias| alias.name.value.starts_with(UNNAMED))
        {
            *alias = None;
        }
        ControlFlow::Continue(())
    }
}
