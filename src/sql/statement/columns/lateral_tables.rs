//! Rewrites LATERAL tables in FROM, and VALUES, that DataFusion 55 cannot plan as they are written.

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectNamePart, Query, SelectItem, SetExpr,
    SetOperator, SetQuantifier, TableFactor, TableWithJoins, Values, Visit,
};

use crate::sql::base::marks::LATERAL;
use crate::sql::base::syntax::{has_expr, has_query, list_relations, parse_query};
use crate::sql::statement::columns::merged::replace_names;
use crate::sql::statement::columns::unnest_calls::as_unnest;
use crate::sql::statement::columns::written_columns::list_selected_names;
use crate::sql::statement::folding::{fold_name, is_same_name};

/// Maximum number of rows of VALUES that become a UNION ALL. VALUES with more rows stay unchanged.
const MOST_ROWS: usize = 100;

/// Rewrites `a, LATERAL (..) b JOIN c ON ..` to `a CROSS JOIN LATERAL (..) b JOIN c ON ..`.
///
/// DataFusion would join `b` and `c` before `a`, so that `b` could not use columns of `a`. Only
/// inner and left joins with ON are rewritten, because they return the same rows whether `b` is
/// first joined with `a` or with `c`.
pub(in crate::sql) fn join_after_comma(from: &mut Vec<TableWithJoins>) {
    let Some(last) = from.iter().rposition(|t| !t.joins.is_empty() && is_lateral(&t.relation))
    else {
        return;
    };
    let follows = from.iter().take(last.saturating_add(1)).skip(1);
    if last == 0 || !follows.flat_map(|t| &t.joins).all(|join| is_plain(&join.join_operator)) {
        return;
    }
    let mut tables = from.drain(..=last);
    let Some(mut joined) = tables.next() else { return };
    for mut from in tables {
        qualify_conditions(&mut from);
        let TableWithJoins { relation, joins } = from;
        let join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
        joined.joins.push(Join { relation, global: false, join_operator });
        joined.joins.extend(joins);
    }
    from.insert(0, joined);
}

/// Qualifies column names in ON, so that they cannot mean columns of the tables before the comma:
/// `x` becomes `b.x` if, of the joined tables, only `b` has a column `x`. Stops at the first table
/// whose columns the statement does not list.
fn qualify_conditions(from: &mut TableWithJoins) {
    let mut tables: Vec<(Ident, Vec<Ident>)> = Vec::new();
    if !add_columns(&from.relation, &mut tables) {
        return;
    }
    for join in &mut from.joins {
        if !add_columns(&join.relation, &mut tables) {
            return;
        }
        let mut names: Vec<(Ident, Expr)> = Vec::new();
        for (table, columns) in &tables {
            for column in columns {
                let all = tables.iter().flat_map(|(_, columns)| columns);
                if all.filter(|other| is_same_name(other, column)).count() == 1 {
                    let parts = vec![table.clone(), column.clone()];
                    names.push((column.clone(), Expr::CompoundIdentifier(parts)));
                }
            }
        }
        if let JoinOperator::Join(JoinConstraint::On(on))
        | JoinOperator::Inner(JoinConstraint::On(on))
        | JoinOperator::Left(JoinConstraint::On(on))
        | JoinOperator::LeftOuter(JoinConstraint::On(on)) = &mut join.join_operator
        {
            replace_names(on, &names);
        }
    }
}

/// Adds the alias and the column names of a subquery in FROM to `tables`: `a` with `x` and `y` for
/// `(SELECT x, y FROM t) AS a`. Adds nothing and returns false if the table is not a subquery with
/// an alias, or if the statement does not list its columns, as in `(SELECT * FROM t) AS a`.
fn add_columns(table: &TableFactor, tables: &mut Vec<(Ident, Vec<Ident>)>) -> bool {
    let TableFactor::Derived { subquery, alias: Some(alias), .. } = table else { return false };
    let columns = match (alias.columns.as_slice(), subquery.body.as_ref()) {
        ([], SetExpr::Select(select)) => list_selected_names(select),
        ([], _) => None,
        (columns, _) => Some(columns.iter().map(|column| column.name.clone()).collect()),
    };
    let Some(columns) = columns else { return false };
    tables.push((alias.name.clone(), columns));
    true
}

fn is_lateral(table: &TableFactor) -> bool {
    let names_columns = |exprs: &[Expr]| exprs.iter().any(has_columns);
    match table {
        TableFactor::Derived { lateral, .. } => *lateral,
        TableFactor::UNNEST { array_exprs, .. } => names_columns(array_exprs),
        other => match as_unnest(other) {
            Some(TableFactor::UNNEST { array_exprs, .. }) => names_columns(&array_exprs),
            _ => false,
        },
    }
}

fn has_columns<V: Visit>(node: &V) -> bool {
    has_expr(node, |e| {
        matches!(
            e,
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::CompoundFieldAccess { .. }
        )
    })
}

/// Whether a join is an inner, left or cross join, and has no USING.
fn is_plain(join: &JoinOperator) -> bool {
    matches!(
        join,
        JoinOperator::Join(JoinConstraint::On(_))
            | JoinOperator::Inner(JoinConstraint::On(_))
            | JoinOperator::Left(JoinConstraint::On(_))
            | JoinOperator::LeftOuter(JoinConstraint::On(_))
            | JoinOperator::CrossJoin(JoinConstraint::None)
    )
}

/// Rewrites `LATERAL (VALUES (a.x), ..)` to a UNION ALL, because DataFusion plans no outer columns
/// in VALUES. Within a subquery in an expression, the columns of `(VALUES (a.x), ..)` in FROM are
/// outer columns even without LATERAL.
pub(in crate::sql) fn select_values(table: &mut TableFactor) -> Result<()> {
    match table {
        TableFactor::Derived { subquery, .. } => select_rows(&mut subquery.body, has_columns),
        _ => Ok(()),
    }
}

/// Rewrites `VALUES ((SELECT ..)), ..` to a UNION ALL, because DataFusion runs no subqueries in
/// VALUES.
pub(in crate::sql) fn select_queries_in_values(query: &mut Query) -> Result<()> {
    select_rows(&mut query.body, |values| {
        values.rows.iter().flat_map(|row| row.iter()).any(has_query)
    })
}

fn select_rows(body: &mut SetExpr, is_affected: impl Fn(&Values) -> bool) -> Result<()> {
    let SetExpr::Values(values) = body else { return Ok(()) };
    if values.rows.len() > MOST_ROWS || !is_affected(values) {
        return Ok(());
    }
    let template = *parse_query("SELECT 1")?.body;
    let rows = values.rows.iter().filter_map(|row| {
        let SetExpr::Select(mut select) = template.clone() else { return None };
        let columns = row.iter().zip(1u32..).map(|(expr, number)| SelectItem::ExprWithAlias {
            expr: expr.clone(),
            alias: Ident::new(format!("column{number}")),
        });
        select.projection = columns.collect();
        Some(SetExpr::Select(select))
    });
    let all = rows.reduce(|left, right| SetExpr::SetOperation {
        left: Box::new(left),
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        right: Box::new(right),
    });
    if let Some(all) = all {
        *body = all;
    }
    Ok(())
}

/// In a subquery in FROM, gives each selected column of an outer query its own name as alias:
/// `SELECT u.k` becomes `SELECT u.k AS k`. DataFusion would call the column `outer_ref(u.k)`.
pub(in crate::sql) fn name_outer_columns(table: &mut TableFactor) {
    let TableFactor::Derived { subquery, .. } = table else { return };
    let SetExpr::Select(select) = subquery.body.as_mut() else { return };
    let mut tables: Vec<String> = Vec::new();
    for table in select.from.iter().flat_map(list_relations) {
        match table_name(table) {
            Some(name) => tables.push(fold_name(name)),
            // A table without a name, such as a join in parentheses, may contain the table `t`
            // of `t.k`. Then `t.k` is not an outer column, and with an alias, other clauses of the
            // query could not refer to it as `t.k`. So no column of the query gets an alias.
            None => return,
        }
    }
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        let name = match &*expr {
            Expr::Identifier(name) if tables.is_empty() => name.clone(),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] if !tables.contains(&fold_name(table)) => name.clone(),
                _ => continue,
            },
            _ => continue,
        };
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: name };
    }
}

/// Returns the name by which a query refers to a table: its alias or, without an alias, its own
/// name. Returns `None` for joins in parentheses and for functions without an alias.
pub(in crate::sql) fn table_name(table: &TableFactor) -> Option<&Ident> {
    match table {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(&alias.name),
        TableFactor::Table { name, .. } => match name.0.last() {
            Some(ObjectNamePart::Identifier(name)) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Rewrites `LATERAL (query) x`, if the query contains subqueries, to
/// `LATERAL (SELECT * FROM (query) AS __serrate_lateral) x`, which the rule for LATERAL joins
/// recognizes.
pub(in crate::sql) fn mark_query(table: &mut TableFactor) -> Result<()> {
    let TableFactor::Derived { lateral: true, subquery, alias: Some(_), .. } = table else {
        return Ok(());
    };
    let compares = |e: &Expr| matches!(e, Expr::AnyOp { .. } | Expr::AllOp { .. });
    if !(has_query(subquery.as_ref()) || has_expr(subquery.as_ref(), compares)) {
        return Ok(());
    }
    let mut around = parse_query(&format!("SELECT * FROM (SELECT 1) AS {LATERAL}"))?;
    let SetExpr::Select(select) = around.body.as_mut() else { return Ok(()) };
    let from = select.from.first_mut().map(|from| &mut from.relation);
    if let Some(TableFactor::Derived { subquery: inner, .. }) = from {
        std::mem::swap(inner, subquery);
        **subquery = around;
    }
    Ok(())
}
