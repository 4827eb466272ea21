//! Supports a SELECT with `unnest` in which the alias of another expression equals the name of a
//! column.
//!
//! DataFusion 55 plans `SELECT r.d + 1 AS d, unnest(r.x) AS u FROM r` as a projection of `r.d`,
//! `r.d + 1 AS d` and `r.x` below the `Unnest`, and rejects `r.d` and `d` there as ambiguous. So
//! this file gives the columns of such a SELECT generated names, and wraps it in another SELECT
//! that restores the original names. This workaround is obsolete once the test
//! `stock_names_beside_unnest_still_clash` fails.

use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    Distinct, Expr, Function, Ident, Select, SelectItem, SetExpr, TableFactor, Visit, Visitor,
};

use crate::sql::base::syntax::{parse_query, to_plain_name};
use crate::sql::statement::columns::set_names::is_name;
use crate::sql::statement::folding::is_same_name;

/// Wraps a SELECT with `unnest` in another SELECT if one of its aliases is also the name of a
/// column that one of its expressions uses.
pub(in crate::sql) fn separate_names(select: &mut Select) -> Result<()> {
    if matches!(select.distinct, Some(Distinct::On(_))) || !has_clash(&select.projection) {
        return Ok(());
    }
    let around = parse_query("SELECT 1 FROM (SELECT 1) AS __serrate_unnested")?;
    let SetExpr::Select(mut around) = *around.body else { return Ok(()) };
    let Some(TableFactor::Derived { subquery, .. }) =
        around.from.first_mut().map(|from| &mut from.relation)
    else {
        return Ok(());
    };
    let mut inner = select.clone();
    let mut projection = Vec::with_capacity(select.projection.len());
    for (item, number) in inner.projection.iter_mut().zip(1u32..) {
        let (expr, alias) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), alias.clone()),
            SelectItem::UnnamedExpr(expr) => {
                let name = match &*expr {
                    Expr::Identifier(name) => Some(name.clone()),
                    Expr::CompoundIdentifier(names) => names.last().cloned(),
                    _ => None,
                };
                let written = Ident::with_quote('"', expr.to_string());
                (expr.clone(), name.unwrap_or(written))
            }
            // A SELECT with `*` stays unchanged, because the columns of `*` cannot be renamed here.
            _ => return Ok(()),
        };
        let name = Ident::new(format!("__serrate_column_{number}"));
        *item = SelectItem::ExprWithAlias { expr, alias: name.clone() };
        projection.push(SelectItem::ExprWithAlias { expr: Expr::Identifier(name), alias });
    }
    *subquery.body = SetExpr::Select(Box::new(inner));
    around.projection = projection;
    *select = *around;
    Ok(())
}

/// Whether an alias in a SELECT with `unnest` is also the name of a column that an expression of
/// the SELECT uses.
fn has_clash(projection: &[SelectItem]) -> bool {
    let mut used = UsedColumns::default();
    let mut named = Vec::new();
    for item in projection {
        let expr = match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                if !is_name(expr) {
                    named.push(alias);
                }
                expr
            }
            SelectItem::UnnamedExpr(expr) => expr,
            _ => return false,
        };
        let _ = expr.visit(&mut used);
    }
    used.unnests && named.iter().any(|name| used.names.iter().any(|used| is_same_name(name, used)))
}

/// Collects the columns in expressions, except in arguments of `unnest`.
#[derive(Default)]
struct UsedColumns {
    names: Vec<Ident>,
    unnests: bool,
    /// Number of calls of `unnest` around the current position.
    within: usize,
}

impl Visitor for UsedColumns {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) if is_unnest(call) => {
                self.unnests = true;
                self.within = self.within.saturating_add(1);
            }
            Expr::Identifier(name) if self.within == 0 => self.names.push(name.clone()),
            Expr::CompoundIdentifier(names) if self.within == 0 => {
                self.names.extend(names.last().cloned());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Function(call) if is_unnest(call)) {
            self.within = self.within.saturating_sub(1);
        }
        ControlFlow::Continue(())
    }
}

pub(in crate::sql::statement) fn is_unnest(call: &Function) -> bool {
    let name = to_plain_name(&call.name);
    name.is_some_and(|name| ["unnest", "unnest_outer"].contains(&name.as_str()))
}
