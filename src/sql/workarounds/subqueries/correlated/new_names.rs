//! Generates names for the columns of plans that replace subqueries.

use datafusion::error::Result;
use datafusion::logical_expr::Expr;

/// Generates names that no other column or table of a plan has.
#[derive(Debug, Default)]
pub(in crate::sql) struct NewNames(usize);

impl NewNames {
    pub(in crate::sql) fn next(&mut self, what: &str) -> String {
        self.0 = self.0.saturating_add(1);
        format!("__serrate_{what}_{}", self.0)
    }
}

/// Changes an expression but not its name: adds an alias if `change` returns an expression of
/// another name.
pub(in crate::sql) fn keep_name(
    expr: Expr,
    change: impl FnOnce(Expr) -> Result<Expr>,
) -> Result<Expr> {
    // An alias keeps its name even if its expression changes.
    if matches!(expr, Expr::Alias(_)) {
        return change(expr);
    }
    let name = expr.qualified_name();
    let changed = change(expr)?;
    match changed.qualified_name() == name {
        true => Ok(changed),
        false => Ok(changed.alias_qualified(name.0, name.1)),
    }
}
