//! Supports ROLLUP, CUBE and GROUPING SETS with elements that are tuples, column positions or
//! nested sets.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    Query, Select, SelectItem, Value, Visit, Visitor,
};

use crate::sql::base::syntax::{for_each_expr, for_each_expr_mut, is_star};
use crate::sql::statement::columns::set_names::is_name;
use crate::sql::statement::names::cast_arguments::{is_aggregate, is_unnest};
use crate::sql::statement::names::order_aliases::fold_names;
use crate::sql::statement::names::select_names::find_aliased;

/// Maximum number of grouping sets in a GROUP BY that DataFusion plans.
const MOST_SETS: usize = 4096;

/// Rewrites the forms of GROUP BY that DataFusion 55 cannot plan.
///
/// * `ROLLUP ((a, b), c)` and `CUBE ((a, b), c)` become the equivalent GROUPING SETS.
/// * In `GROUPING SETS (ROLLUP (a, b), c)`, the sets of ROLLUP replace it: `(a, b), (a), (), c`.
/// * In `ROLLUP (1, 2)`, the first two columns of SELECT replace the numbers, by which DataFusion
///   would group.
/// * `ROLLUP (a, a)` and `ROLLUP (t.a, a)` become GROUPING SETS, because DataFusion would give two
///   columns of the ROLLUP the same name. The set `(a)` occurs twice among the GROUPING SETS.
///   Obsolete once the test `stock_columns_in_a_rollup_are_still_distinct` fails.
/// * `GROUP BY (a, b)` becomes `GROUP BY a, b`, and `GROUP BY ()` becomes one group of all rows.
///
/// This workaround is obsolete once the test `stock_tuples_in_rollup_still_fail` fails.
///
/// # Errors
/// If there are more grouping sets than DataFusion plans, or SELECT has no column at a position.
pub(in crate::sql) fn write_out_sets(select: &mut Select) -> Result<()> {
    let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return Ok(()) };
    let is_set = |e: &Expr| {
        matches!(e, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) | Expr::Tuple(_))
    };
    if !groups.iter().any(is_set) {
        return Ok(());
    }
    let columns = &select.projection;
    let mut written = Vec::with_capacity(groups.len());
    for group in std::mem::take(groups) {
        match group {
            Expr::Tuple(parts) => written.extend(parts),
            Expr::Rollup(mut parts) => {
                check_positions(&parts, columns)?;
                name_positions(&mut parts, columns);
                written.push(match are_distinct_columns(&parts, columns) {
                    true => Expr::Rollup(parts),
                    false => Expr::GroupingSets(list_rollup_sets(&parts)),
                });
            }
            Expr::Cube(mut parts) => {
                check_positions(&parts, columns)?;
                name_positions(&mut parts, columns);
                written.push(match are_distinct_columns(&parts, columns) {
                    true => Expr::Cube(parts),
                    false => Expr::GroupingSets(list_cube_sets(&parts)?),
                });
            }
            Expr::GroupingSets(parts) => {
                let mut sets = Vec::with_capacity(parts.len());
                for part in parts {
                    sets.extend(list_grouping_sets(part)?);
                }
                check_positions(&sets, columns)?;
                name_positions(&mut sets, columns);
                written.push(Expr::GroupingSets(sets));
            }
            other => written.push(other),
        }
    }
    // `GROUP BY ()` returns one group even for no rows, so it becomes `GROUPING SETS (())`.
    if written.is_empty() {
        written.push(Expr::GroupingSets(vec![Vec::new()]));
    }
    *groups = join_columns_to_sets(written, columns)?;
    Ok(())
}

/// Whether each part of ROLLUP or CUBE is one expression, not a tuple such as `(a, b)`, and no two
/// parts can be the same column. Counts `t.a` and `u.a` as the same column: if this function
/// returns false, ROLLUP or CUBE becomes GROUPING SETS, which is correct for different columns,
/// too.
fn are_distinct_columns(parts: &[Vec<Expr>], columns: &[SelectItem]) -> bool {
    let mut seen = HashSet::new();
    parts.iter().all(|part| match part.as_slice() {
        [only] => seen.insert(remove_tables(find_named(only, columns))),
        _ => false,
    })
}

/// Returns the expression of SELECT that has the alias `group`, or `group` if there is none.
fn find_named<'a>(group: &'a Expr, columns: &'a [SelectItem]) -> &'a Expr {
    let Expr::Identifier(name) = group else { return group };
    find_aliased(columns, name).unwrap_or(group)
}

/// Returns an expression with unquoted names in lower case, and with `a` in place of `t.a`.
fn remove_tables(expr: &Expr) -> Expr {
    let mut plain = fold_names(expr);
    for_each_expr_mut(&mut plain, |part| {
        if let Expr::CompoundIdentifier(names) = part
            && let Some(column) = names.pop()
        {
            *part = Expr::Identifier(column);
        }
    });
    plain
}

/// Moves plain columns of GROUP BY into the grouping sets: `GROUP BY a, ROLLUP (b)` becomes `GROUP
/// BY GROUPING SETS ((a, b), (a))`.
///
/// If `a` is the unique key of its table, DataFusion 55 adds the other columns of the table to
/// every set, because `a` determines them. So `b` gets into the sets that should omit `b`.
/// DataFusion does not add columns for a key that is within the grouping sets. This workaround is
/// obsolete once the test `stock_keys_beside_rollup_still_add_columns` fails.
fn join_columns_to_sets(groups: Vec<Expr>, columns: &[SelectItem]) -> Result<Vec<Expr>> {
    let is_set = |e: &Expr| matches!(e, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
    if !groups.iter().any(is_set) {
        return Ok(groups);
    }
    let (joined, mut kept): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| is_column(group, columns));
    if joined.is_empty() {
        return Ok(kept);
    }
    let mut joined = [joined];
    name_positions(&mut joined, columns);
    let Some(set) = kept.iter_mut().find(|group| is_set(group)) else { return Ok(kept) };
    let sets = match set {
        Expr::Rollup(parts) => list_rollup_sets(parts),
        Expr::Cube(parts) => list_cube_sets(parts)?,
        Expr::GroupingSets(sets) => std::mem::take(sets),
        _ => return Ok(kept),
    };
    *set = Expr::GroupingSets(
        sets.into_iter().map(|set| concat_parts([&joined[0], &set].into_iter())).collect(),
    );
    Ok(kept)
}

/// Whether an element of GROUP BY is a column, or the position or alias of a column in SELECT.
fn is_column(group: &Expr, columns: &[SelectItem]) -> bool {
    match group {
        Expr::Identifier(name) => columns.iter().all(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                !alias.value.eq_ignore_ascii_case(&name.value) || is_name(expr)
            }
            _ => true,
        }),
        Expr::CompoundIdentifier(_) => true,
        Expr::Value(_) => {
            let mut named = [vec![group.clone()]];
            name_positions(&mut named, columns);
            is_name(&named[0][0])
        }
        _ => false,
    }
}

/// Casts the 5 in `SELECT 5 AS a .. GROUP BY a`, because DataFusion 55 would group by the fifth
/// column. This workaround is obsolete once the test
/// `stock_integers_in_group_by_are_still_positions` fails.
///
/// Also casts the 5 in `SELECT 5 .. GROUP BY ROLLUP (1)`: [`write_out_sets`] replaces the position
/// 1 with the 5. A SELECT in a subquery in FROM is rewritten twice, and the second time, the 5 in
/// `ROLLUP (5)` would be read as a position.
pub(in crate::sql) fn cast_grouped_integers(select: &mut Select) {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return };
    let mut grouped = HashSet::new();
    let mut positions = HashSet::new();
    for group in groups {
        let is_set = matches!(group, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
        for_each_expr(group, |e| match e {
            Expr::Identifier(name) => {
                grouped.insert(name.value.to_lowercase());
            }
            Expr::Value(value) if is_set => {
                if let Value::Number(number, _) = &value.value {
                    positions.extend(number.parse::<usize>().ok());
                }
            }
            _ => {}
        });
    }
    for (at, item) in (1usize..).zip(&mut select.projection) {
        let is_position = positions.contains(&at);
        let expr = match &*item {
            SelectItem::ExprWithAlias { expr, alias }
                if is_position || grouped.contains(&alias.value.to_lowercase()) =>
            {
                expr
            }
            SelectItem::UnnamedExpr(expr) if is_position => expr,
            _ => continue,
        };
        let Expr::Value(value) = expr else { continue };
        let Value::Number(number, _) = &value.value else { continue };
        if number.parse::<i64>().is_err() {
            continue;
        }
        let alias = match &*item {
            SelectItem::ExprWithAlias { alias, .. } => alias.clone(),
            _ => Ident::with_quote('"', number.clone()),
        };
        let expr = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(expr.clone()),
            data_type: DataType::BigInt(None),
            array: false,
            format: None,
        };
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
}

/// Drops GROUP BY ALL from a SELECT of aggregates and constants. The SELECT then returns a row even
/// for no rows, as in DuckDB; DataFusion groups by the constants. This workaround is obsolete once
/// the test `stock_constants_in_group_by_all_are_still_keys` fails.
pub(in crate::sql) fn group_constants_together(select: &mut Select) {
    let GroupByExpr::All(modifiers) = &select.group_by else { return };
    if !modifiers.is_empty() {
        return;
    }
    let mut has_aggregate = false;
    for item in &select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            return;
        };
        let mut parts = ItemParts::default();
        let _ = expr.visit(&mut parts);
        if !parts.has_aggregate && (parts.has_query || parts.has_column) {
            return;
        }
        has_aggregate |= parts.has_aggregate;
    }
    if has_aggregate {
        select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    }
}

/// Visitor that records what an item of a SELECT list contains outside its subqueries.
#[derive(Default)]
struct ItemParts {
    /// The number of subqueries around the current position.
    queries: usize,
    has_query: bool,
    has_aggregate: bool,
    /// Whether the item has a column, a window function or a call of `unnest`.
    has_column: bool,
}

impl Visitor for ItemParts {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        self.has_query = true;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            _ if self.queries > 0 => {}
            Expr::Function(call) if call.over.is_none() && is_aggregate(call) => {
                self.has_aggregate = true;
            }
            Expr::Function(call) => self.has_column |= call.over.is_some() || is_unnest(call),
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => self.has_column = true,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Returns an error if a position in grouping sets is not that of an expression of SELECT.
/// DataFusion would group by the number.
fn check_positions(sets: &[Vec<Expr>], columns: &[SelectItem]) -> Result<()> {
    for part in sets.iter().flatten() {
        let Expr::Value(value) = part else { continue };
        let Value::Number(number, _) = &value.value else { continue };
        let at = number.parse::<u32>().ok().and_then(|at| usize::try_from(at).ok());
        let Some(at) = at else { continue };
        if columns.iter().take(at).any(is_star) {
            return plan_err!(
                "ROLLUP, CUBE or GROUPING SETS has the position {number}, but SELECT has * at this position or before it, so the position does not identify a column; write the name of the column"
            );
        }
        if at == 0 || at > columns.len() {
            return plan_err!(
                "ROLLUP, CUBE or GROUPING SETS has the position {number}, but SELECT has {} column(s); write a position from 1, or the name of a column",
                columns.len()
            );
        }
    }
    Ok(())
}

/// In grouping sets, replaces a column position such as 2 with the second expression of SELECT.
fn name_positions(sets: &mut [Vec<Expr>], columns: &[SelectItem]) {
    for part in sets.iter_mut().flatten() {
        let Expr::Value(value) = &*part else { continue };
        let Value::Number(number, _) = &value.value else { continue };
        let at = number.parse::<usize>().ok().and_then(|at| at.checked_sub(1));
        if let Some(
            SelectItem::UnnamedExpr(named) | SelectItem::ExprWithAlias { expr: named, .. },
        ) = at.and_then(|at| columns.get(at))
        {
            *part = named.clone();
        }
    }
}

/// Expands one element of GROUPING SETS to a list of grouping sets: `ROLLUP (a, b)` to `(a, b)`,
/// `(a)` and `()`.
fn list_grouping_sets(mut part: Vec<Expr>) -> Result<Vec<Vec<Expr>>> {
    let [only] = part.as_mut_slice() else { return Ok(vec![part]) };
    match only {
        // Within GROUPING SETS, the parser returns ROLLUP and CUBE as function calls with these
        // names.
        Expr::Function(call) => {
            let name = call.name.to_string();
            let rollup = name.eq_ignore_ascii_case("rollup");
            if !rollup && !name.eq_ignore_ascii_case("cube") {
                return Ok(vec![part]);
            }
            let FunctionArguments::List(list) = &call.args else { return Ok(vec![part]) };
            let parts = list.args.iter().map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(parts))) => {
                    Some(parts.clone())
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Nested(inner))) => {
                    Some(vec![inner.as_ref().clone()])
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(vec![e.clone()]),
                _ => None,
            });
            let Some(parts) = parts.collect::<Option<Vec<_>>>() else { return Ok(vec![part]) };
            match rollup {
                true => Ok(list_rollup_sets(&parts)),
                false => list_cube_sets(&parts),
            }
        }
        _ => Ok(vec![part]),
    }
}

/// Returns the grouping sets of `ROLLUP (parts)`: all parts, all but the last, and so on to the
/// empty set.
fn list_rollup_sets(parts: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    (0..=parts.len()).rev().map(|count| concat_parts(parts.iter().take(count))).collect()
}

/// Returns the grouping sets of `CUBE (parts)`: those of `CUBE (a, b)` are `(a, b)`, `(a)`, `(b)`
/// and `()`.
fn list_cube_sets(parts: &[Vec<Expr>]) -> Result<Vec<Vec<Expr>>> {
    let sets = u32::try_from(parts.len()).ok().and_then(|count| 1usize.checked_shl(count));
    let Some(sets) = sets.filter(|sets| *sets <= MOST_SETS) else {
        return plan_err!(
            "CUBE of {} columns has more than {MOST_SETS} grouping sets, the maximum; list only the sets that you need in GROUPING SETS",
            parts.len()
        );
    };
    let chosen = |set: usize| {
        concat_parts(
            parts.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1).map(|(_, part)| part),
        )
    };
    Ok((0..sets).rev().map(chosen).collect())
}

/// Returns the expressions of all parts in order, each only once. `a` and `A` count as the same
/// name.
fn concat_parts<'a>(parts: impl Iterator<Item = &'a Vec<Expr>>) -> Vec<Expr> {
    let mut merged: Vec<Expr> = Vec::new();
    let mut seen = HashSet::new();
    for part in parts.flatten() {
        if seen.insert(fold_names(part)) {
            merged.push(part.clone());
        }
    }
    merged
}
