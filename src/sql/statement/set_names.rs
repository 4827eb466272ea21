//! Inputs of set operations with two columns of the same name.

use std::collections::HashSet;

use datafusion::logical_expr::sqlparser::ast::{Expr, Ident, Select, SelectItem, SetExpr};

/// Renames the second of two columns with the same name in the inputs of UNION, EXCEPT and
/// INTERSECT, because DataFusion looks their columns up by name, although set operations match
/// columns by position. `stock_set_operations_by_name_still_fail` in `tests/sql/set_operations.rs`
/// fails once this can be removed.
pub(in crate::sql) fn name_apart(body: &mut SetExpr) {
    if let SetExpr::SetOperation { left, right, .. } = body {
        name_input(left);
        name_input(right);
    }
}

fn name_input(input: &mut SetExpr) {
    match input {
        SetExpr::Select(select) => name_columns(select),
        SetExpr::Query(query) => name_input(query.body.as_mut()),
        // Its inputs are renamed when it is visited itself.
        _ => {}
    }
}

fn name_columns(select: &mut Select) {
    let mut used: HashSet<String> = HashSet::new();
    for item in &select.projection {
        if let SelectItem::ExprWithAlias { alias, .. } = item {
            used.insert(alias.value.to_lowercase());
        }
    }
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        let name = match &*expr {
            Expr::Identifier(name) => name.value.clone(),
            Expr::CompoundIdentifier(parts) => match parts.last() {
                Some(last) => last.value.clone(),
                None => continue,
            },
            other => other.to_string(),
        };
        if used.insert(name.to_lowercase()) {
            continue;
        }
        let mut number = 1usize;
        let mut other = format!("{name}_{number}");
        while !used.insert(other.to_lowercase()) {
            number = number.saturating_add(1);
            other = format!("{name}_{number}");
        }
        let alias = Ident::with_quote('"', other);
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
}
