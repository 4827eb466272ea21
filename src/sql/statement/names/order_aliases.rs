//! Rewrites keys of ORDER BY that DataFusion takes for columns of SELECT instead of FROM.

use std::collections::HashSet;

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    Distinct, Expr, FunctionArguments, GroupByExpr, Ident, ObjectNamePart, OrderByKind, Query,
    Select, SelectItem, SetExpr, TableFactor, Value,
};

use crate::sql::base::syntax::{for_each_expr_mut, has_expr, has_query, is_star, parse_query};
use crate::sql::statement::columns::set_names::{add_identifiers, name_columns, remove_casts};
use crate::sql::statement::folding::{fold_name, is_same_name};
use crate::sql::statement::names::cast_arguments::is_aggregate;

/// Prefix of the names of columns that hold the keys of ORDER BY.
const KEY: &str = "__serrate_key_";

/// Computes some keys of ORDER BY as columns of a subquery in FROM:
/// `SELECT -x AS x FROM t ORDER BY t.x` becomes
/// `SELECT * EXCLUDE (key) FROM (SELECT -x AS x, t.x AS key FROM t) ORDER BY key`.
///
/// The keys are:
/// * `t.x`, and aggregates and window functions over `x`, if `x` is also an alias. DataFusion
///   refuses these keys.
/// * Expressions that SELECT casts, as in `SELECT sum(x)::TEXT .. ORDER BY sum(x)`. DataFusion
///   gives the cast and its operand the same name, and sorts by the text.
///
/// A SELECT whose expressions use aliases of other columns, as in `SELECT b AS a, a AS b FROM (..)
/// ORDER BY a`, becomes a subquery, too, but without further columns: DataFusion replaces the key
/// `a` with `b`, and then sorts by the alias `b`.
///
/// This workaround is obsolete once the tests
/// `stock_keys_still_are_columns_of_select` and `stock_swapped_aliases_still_sort_by_the_other`
/// fail.
pub(in crate::sql) fn order_by_columns(query: &mut Query) -> Result<()> {
    let Query { body, order_by: Some(order), .. } = query else { return Ok(()) };
    let (SetExpr::Select(select), OrderByKind::Expressions(keys)) =
        (body.as_mut(), &mut order.kind)
    else {
        return Ok(());
    };
    let mut has_kept_position = false;
    let is_distinct = match select.distinct {
        None | Some(Distinct::All) => {
            if is_grouped(select) {
                let aliases = find_aliases(select);
                for key in keys.iter_mut() {
                    has_kept_position |= !replace_position(&mut key.expr, select, &aliases);
                }
            }
            false
        }
        Some(Distinct::Distinct) => {
            keys.iter_mut().for_each(|key| replace_by_position(&mut key.expr, select));
            true
        }
        Some(Distinct::On(_)) => return Ok(()),
    };
    let names = SelectNames::from_select(select);
    let is_enclosed = match uses_other_aliases(select) {
        // A SELECT with DISTINCT cannot get a further column for a sort key, because the column
        // would change which rows are distinct.
        true => !is_distinct || keys.iter().all(|key| names.is_column(&key.expr)),
        false => {
            has_kept_position || !is_distinct && keys.iter().any(|key| names.is_hidden(&key.expr))
        }
    };
    if !is_enclosed {
        return Ok(());
    }
    name_columns(select, &HashSet::new());
    let mut hidden = Vec::new();
    for key in keys {
        // The outer query reads only the columns of the subquery, so each sort key that is not one
        // of these columns becomes a further column of the subquery.
        if !names.is_column(&key.expr) {
            let name = Ident::with_quote('"', format!("{KEY}{}", hidden.len()));
            let expr = std::mem::replace(&mut key.expr, Expr::Identifier(name.clone()));
            hidden.push((expr, name));
        }
    }
    let listed: Vec<String> = hidden.iter().map(|(_, name)| name.to_string()).collect();
    let columns = hidden.into_iter().map(|(expr, alias)| SelectItem::ExprWithAlias { expr, alias });
    select.projection.extend(columns);
    let excluded = match listed.is_empty() {
        true => String::new(),
        false => format!(" EXCLUDE ({})", listed.join(", ")),
    };
    let around = format!("SELECT *{excluded} FROM (SELECT 1) AS __serrate_keyed");
    let mut around = parse_query(&around)?;
    let SetExpr::Select(outer) = around.body.as_mut() else { return Ok(()) };
    let from = outer.from.first_mut().map(|from| &mut from.relation);
    if let Some(TableFactor::Derived { subquery, .. }) = from {
        std::mem::swap(&mut subquery.body, body);
        *body = around.body;
    }
    Ok(())
}

/// Whether a SELECT groups rows: by GROUP BY or, without GROUP BY, by an aggregate of all rows.
fn is_grouped(select: &Select) -> bool {
    match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, _) => {
            !keys.is_empty() || select.projection.iter().any(has_aggregate)
        }
    }
}

/// Whether an item of a SELECT has an aggregate and no subquery. A subquery may have aggregates of
/// its own.
fn has_aggregate(item: &SelectItem) -> bool {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return false;
    };
    let is_call = |part: &Expr| matches!(part, Expr::Function(call) if call.over.is_none() && is_aggregate(call));
    has_expr(expr, is_call) && !has_query(expr)
}

/// Returns the aliases of a SELECT, each with the index of its column. Omits an alias that equals
/// the name of its column, as in `a AS a`.
fn find_aliases(select: &Select) -> Vec<(String, usize)> {
    let items = select.projection.iter().enumerate();
    let aliases = items.filter_map(|(at, item)| match item {
        SelectItem::ExprWithAlias { expr: Expr::Identifier(name), alias }
            if is_same_name(name, alias) =>
        {
            None
        }
        SelectItem::ExprWithAlias { alias, .. } => Some((fold_name(alias), at)),
        _ => None,
    });
    aliases.collect()
}

/// Whether `expr`, the column of a SELECT at index `at`, uses an unqualified name that is the alias
/// of another column.
fn uses_alias(expr: &Expr, at: usize, aliases: &[(String, usize)]) -> bool {
    let is_other = |part: &Expr| match part {
        Expr::Identifier(name) => {
            let name = fold_name(name);
            aliases.iter().any(|(alias, other)| *other != at && *alias == name)
        }
        _ => false,
    };
    has_expr(expr, is_other)
}

/// Whether a column with an alias uses the alias of another column, as in `b AS a, a AS b`. Ignores
/// qualified names, and aliases such as `a AS a`. Returns false for a SELECT with wildcards.
fn uses_other_aliases(select: &Select) -> bool {
    if select.projection.iter().any(is_star) {
        return false;
    }
    let aliases = find_aliases(select);
    select.projection.iter().enumerate().any(|(at, item)| match item {
        SelectItem::ExprWithAlias { expr, .. } => uses_alias(expr, at, &aliases),
        _ => false,
    })
}

/// Replaces a position in ORDER BY with the expression of the column of SELECT, if the column has
/// no alias: DataFusion rejects `SELECT x % 2 .. GROUP BY x ORDER BY 1`, and without GROUP BY
/// `SELECT sum(x) + 1 .. ORDER BY 1`. The positions of volatile expressions and of subqueries are
/// kept.
///
/// Returns false, and keeps the position, if the expression uses a name that is the alias of
/// another column. In a key of ORDER BY, DataFusion would read this name as the alias instead of
/// the column of FROM.
///
/// This workaround is obsolete once the test `stock_positions_of_groups_are_still_refused` fails.
fn replace_position(key: &mut Expr, select: &Select, aliases: &[(String, usize)]) -> bool {
    let Expr::Value(value) = key else { return true };
    let Value::Number(number, _) = &value.value else { return true };
    let Ok(position) = number.parse::<usize>() else { return true };
    let mut before = select.projection.iter().take(position);
    if position == 0 || before.any(is_star) {
        return true;
    }
    let Some(SelectItem::UnnamedExpr(expr)) = select.projection.get(position - 1) else {
        return true;
    };
    let is_name =
        matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_));
    if is_name || may_differ(expr) {
        return true;
    }
    if uses_alias(expr, position - 1, aliases) {
        return false;
    }
    *key = expr.clone();
    true
}

/// Whether an expression may return another value when it is evaluated again: it has a subquery, or
/// a call without arguments such as `random()`.
pub(in crate::sql) fn may_differ(expr: &Expr) -> bool {
    has_expr(expr, |e| match e {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => true,
        Expr::Function(call) => match &call.args {
            FunctionArguments::List(list) => list.args.is_empty() && call.over.is_none(),
            _ => true,
        },
        _ => false,
    })
}

/// Replaces a key of ORDER BY with the position of the column of SELECT that has the same
/// expression: with DISTINCT, DataFusion rejects `SELECT DISTINCT x % 2 .. ORDER BY x % 2`.
///
/// This workaround is obsolete once the test `stock_keys_of_distinct_are_still_refused` fails.
fn replace_by_position(key: &mut Expr, select: &Select) {
    if matches!(key, Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
        return;
    }
    let folded = fold_names(key);
    for (at, item) in select.projection.iter().enumerate() {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                if fold_names(expr) == folded {
                    *key = Expr::value(Value::Number((at + 1).to_string(), false));
                    return;
                }
            }
            // The positions of the columns after a wildcard are unknown, so the key stays.
            _ => return,
        }
    }
}

/// Returns an expression without outer parentheses, and with unquoted names in lower case.
pub(in crate::sql) fn fold_names(expr: &Expr) -> Expr {
    let mut folded = expr.clone();
    while let Expr::Nested(inner) = folded {
        folded = *inner;
    }
    let fold = |name: &mut Ident| *name = Ident::with_quote('"', fold_name(name));
    for_each_expr_mut(&mut folded, |part| match part {
        Expr::Identifier(name) => fold(name),
        Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(fold),
        Expr::Function(call) => {
            for part in &mut call.name.0 {
                if let ObjectNamePart::Identifier(name) = part {
                    fold(name);
                }
            }
        }
        _ => {}
    });
    folded
}

struct SelectNames {
    all_aliases: HashSet<String>,
    /// The aliases in the SELECT list, except those that equal the name of their column, as in `a
    /// AS a`.
    aliases: HashSet<String>,
    /// For each expression with casts and no alias, its SQL with and without the casts.
    cast: Vec<(String, String)>,
}

impl SelectNames {
    fn from_select(select: &Select) -> Self {
        let mut names =
            Self { all_aliases: HashSet::new(), aliases: HashSet::new(), cast: Vec::new() };
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { expr, alias } => {
                    names.all_aliases.insert(fold_name(alias));
                    let column = match expr {
                        Expr::Identifier(name) => Some(name),
                        Expr::CompoundIdentifier(parts) => parts.last(),
                        _ => None,
                    };
                    if column.is_none_or(|column| fold_name(column) != fold_name(alias)) {
                        names.aliases.insert(fold_name(alias));
                    }
                }
                SelectItem::UnnamedExpr(expr) => {
                    let (written, bare) =
                        (format_expr_text(expr), format_expr_text(&remove_casts(expr)));
                    if written != bare {
                        names.cast.push((written, bare));
                    }
                }
                _ => {}
            }
        }
        names
    }

    /// Whether DataFusion would resolve a part of a key to a column of the SELECT list by mistake.
    fn is_hidden(&self, key: &Expr) -> bool {
        !self.is_column(key) && has_expr(key, |part| self.is_taken(part))
    }

    /// Whether a key is a column of the SELECT list by the SQL standard: a position or an alias.
    fn is_column(&self, key: &Expr) -> bool {
        match key {
            Expr::Value(_) => true,
            Expr::Identifier(name) => self.all_aliases.contains(&fold_name(name)),
            _ => false,
        }
    }

    fn is_taken(&self, part: &Expr) -> bool {
        let is_alias = match part {
            Expr::CompoundIdentifier(parts) => {
                parts.len() > 1
                    && parts.last().is_some_and(|name| self.aliases.contains(&fold_name(name)))
            }
            Expr::Function(call) if is_aggregate(call) => {
                let mut mentioned = HashSet::new();
                add_identifiers(part, &mut mentioned);
                !mentioned.is_disjoint(&self.aliases)
            }
            _ => false,
        };
        if is_alias
            || self.cast.is_empty()
            || matches!(part, Expr::Value(value) if matches!(value.value, Value::Null))
        {
            return is_alias;
        }
        let (written, bare) = (format_expr_text(part), format_expr_text(&remove_casts(part)));
        self.cast.iter().any(|(item, operand)| *operand == bare && *item != written)
    }
}

fn format_expr_text(expr: &Expr) -> String {
    expr.to_string().to_lowercase()
}
