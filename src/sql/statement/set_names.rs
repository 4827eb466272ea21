//! Renames columns that have the same name in a SELECT or in the inputs of a set operation.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{
    Expr, Ident, Select, SelectItem, SetExpr, Value, visit_expressions, visit_expressions_mut,
};

/// Names of more bytes are compared with their casts: a copy of a very deep expression overflows the stack.
const LONGEST_NAME: usize = 1_000;

/// Renames the second of two columns with the same name in the inputs of UNION, EXCEPT and INTERSECT.
///
/// Set operations match columns by position, but DataFusion finds them by name. Obsolete once the test
/// `stock_set_operations_by_name_still_fail` fails.
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
        // A nested set operation stays unchanged here. The visitor renames its inputs when it reaches them.
        _ => {}
    }
}

fn find_aliases(select: &Select) -> HashSet<String> {
    let aliases = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
        _ => None,
    });
    aliases.collect()
}

/// Returns `name`, or if it is already used, `name` with a number appended.
pub(in crate::sql) fn unused_name(name: &str, used: &mut HashSet<String>) -> String {
    let mut number = 1usize;
    let mut other = name.to_owned();
    while !used.insert(other.to_lowercase()) {
        other = format!("{name}_{number}");
        number = number.saturating_add(1);
    }
    other
}

/// Gives aliases to columns of a SELECT that DataFusion would reject because it gives them the same name:
/// expressions that are equal but for casts (the second becomes `x_1`), and subqueries (DataFusion names each `<subquery>`).
pub(in crate::sql) fn name_repeated(select: &mut Select) {
    let is_query = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(e) if has_query(e));
    let several_queries = select.projection.iter().filter(|item| is_query(item)).count() > 1;
    // If FROM has only one table, `x` and `t.x` are the same column and get the same name.
    let one_table = matches!(select.from.as_slice(), [from] if from.joins.is_empty());
    let plain = |name: &Ident| match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    };
    let key_of_bare = |expr: &Expr| match expr {
        Expr::Identifier(name) => plain(name),
        Expr::CompoundIdentifier(parts) if one_table && parts.len() == 2 => {
            parts.last().map(plain).unwrap_or_default()
        }
        // The planner treats `//` and `/` as the same operator, so `a // b` and `a / b` get the same name.
        other => other.to_string().replace(" // ", " / "),
    };
    let key = |expr: &Expr| {
        let key = key_of_bare(expr);
        match key.len() <= LONGEST_NAME {
            true => key_of_bare(&without_casts(expr)),
            false => key,
        }
    };
    let mut seen: HashSet<String> = HashSet::new();
    let mut repeated = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        repeated.push(match item {
            SelectItem::UnnamedExpr(expr) => !seen.insert(key(expr)),
            _ => false,
        });
    }
    if !several_queries && !repeated.contains(&true) {
        return;
    }
    let mut used = find_aliases(select);
    for (item, repeated) in select.projection.iter().zip(&repeated) {
        if let SelectItem::UnnamedExpr(expr) = item
            && !repeated
            && !(several_queries && is_query(item))
        {
            used.insert(name_of(expr).to_lowercase());
        }
    }
    for (item, repeated) in select.projection.iter_mut().zip(repeated) {
        let named = repeated || several_queries && is_query(item);
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        if named {
            let alias = Ident::with_quote('"', unused_name(&name_of(expr), &mut used));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// Removes all casts, and the types of literals such as `DATE '2020-01-01'`, which the names of columns omit:
/// `x::INT` and `x::DOUBLE` have one name.
fn without_casts(expr: &Expr) -> Expr {
    let mut bare = expr.clone();
    let _ = visit_expressions_mut(&mut bare, |e| {
        while let Some(inner) = inner_of_cast(e) {
            *e = inner;
        }
        ControlFlow::<()>::Continue(())
    });
    bare
}

/// Takes the operand out of a cast, or a name out of its parentheses.
fn inner_of_cast(e: &mut Expr) -> Option<Expr> {
    match e {
        Expr::Cast { expr, .. } => Some(std::mem::replace(expr.as_mut(), Expr::value(Value::Null))),
        Expr::TypedString(typed) => Some(Expr::Value(typed.value.clone())),
        Expr::Nested(inner) if is_name(inner) => Some(inner.as_ref().clone()),
        _ => None,
    }
}

fn is_name(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

fn has_query(expr: &Expr) -> bool {
    let mut found = false;
    let _ = visit_expressions(expr, |e| {
        found |= matches!(e, Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. });
        match found {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    found
}

/// Returns the column name of an expression without an alias.
fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(parts) => {
            parts.last().map(|last| last.value.clone()).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

fn name_columns(select: &mut Select) {
    let mut used = find_aliases(select);
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
        let other = unused_name(&name, &mut used);
        let alias = Ident::with_quote('"', other);
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
}
