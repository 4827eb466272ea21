//! Supports `COLUMNS(*)` and `COLUMNS('pattern')` in SELECT, also within expressions, and `s.*` of
//! a struct, as in DuckDB.
//!
//! The columns are known only after planning, so the tables of such a SELECT are planned alone
//! first.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::{TableReference, plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, Cte, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Subscript, TableWithJoins, Value,
    Visit, VisitMut, VisitorMut, WildcardAdditionalOptions, visit_expressions,
};
use regex::Regex;

use crate::sql::base::syntax::{
    for_each_expr_mut, has_select, list_relations, parse_query, to_plain_name, unquote_text,
};
use crate::sql::statement::columns::join_constraints::is_merging;
use crate::sql::statement::columns::lateral_tables::table_name;
use crate::sql::statement::columns::set_names::is_name;
use crate::sql::statement::columns::star_excludes::name_column;
use crate::sql::statement::folding::{fold_name, is_same_name};
use crate::sql::statement::planned_parts::{add_queries, plan_alone};
use crate::sql::statement::scopes::{CteScopes, track_scopes};

/// A column of the tables of a SELECT: its table, its name and its type.
type TableColumn = (Option<TableReference>, String, DataType);

/// Replaces each `COLUMNS(..)`, and each `s.*` of a struct `s`, in a statement with the columns
/// that it stands for.
///
/// # Errors
/// If a pattern is not a regular expression, or matches no column, or if several columns would get
/// one alias.
pub(in crate::sql) async fn write_out<S: Visit + VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> Result<()> {
    // A statement with neither skips the visitor, which copies queries.
    if !has_select(statement, has_set) {
        return Ok(());
    }
    // Each round rewrites only the innermost SELECTs with `COLUMNS(..)` or `s.*`: the columns of an
    // outer SELECT are known only after the SELECTs in its FROM are rewritten.
    loop {
        let mut found =
            ColumnSetRewriter { scopes: CteScopes::default(), places: Vec::new(), known: None };
        let _ = VisitMut::visit(statement, &mut found);
        let mut known = Vec::with_capacity(found.places.len());
        for query in found.places {
            known.push(list_table_columns(state, query).await);
        }
        let known = Some((known.into_iter(), false));
        let mut sets =
            ColumnSetRewriter { scopes: CteScopes::default(), places: Vec::new(), known };
        if let ControlFlow::Break(e) = VisitMut::visit(statement, &mut sets) {
            return Err(e);
        }
        if !matches!(sets.known, Some((_, true))) {
            return Ok(());
        }
    }
}

/// Plans a query and returns its columns, or `None` if it cannot be planned.
async fn list_table_columns(state: &SessionState, query: Query) -> Option<Vec<TableColumn>> {
    let plan = plan_alone(state, query).await?;
    let columns = plan
        .schema()
        .iter()
        .map(|(table, field)| (table.cloned(), field.name().clone(), field.data_type().clone()));
    Some(columns.collect())
}

/// Visitor that collects SELECTs with `COLUMNS(..)` or `s.*` in a first pass, and replaces each
/// `COLUMNS(..)` and `s.*` with columns in a second.
struct ColumnSetRewriter {
    scopes: CteScopes<Cte>,
    /// For each collected SELECT, the query `SELECT *` over the same FROM.
    places: Vec<Query>,
    /// `None` in the first pass. In the second pass, the columns of the tables of each collected
    /// SELECT, or `None` for a SELECT whose columns are unknown. The `bool` is whether the second
    /// pass has replaced an item of a SELECT list.
    known: Option<(std::vec::IntoIter<Option<Vec<TableColumn>>>, bool)>,
}

impl VisitorMut for ColumnSetRewriter {
    type Break = DataFusionError;

    track_scopes!();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        if !has_set(select) {
            return ControlFlow::Continue(());
        }
        match &mut self.known {
            None => {
                // The first pass adds a query that returns all columns of FROM. The second pass
                // reads the columns from `known` in the same order.
                let mut star = match parse_query("SELECT *") {
                    Ok(star) => star,
                    Err(e) => return ControlFlow::Break(e),
                };
                if let SetExpr::Select(all) = star.body.as_mut() {
                    all.from.clone_from(&select.from);
                }
                self.places.push(add_queries(star, &self.scopes));
            }
            Some((known, replaced)) => {
                if let Some(Some(columns)) = known.next() {
                    match replace_sets(select, &columns) {
                        Ok(done) => *replaced |= done,
                        Err(e) => return ControlFlow::Break(e),
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether the SELECT list has `COLUMNS(..)` or the `s.*` of a struct. Returns false if FROM has
/// USING or NATURAL, because `COLUMNS(..)` cannot list merged columns.
fn has_set(select: &Select) -> bool {
    let is_merged = |from: &TableWithJoins| from.joins.iter().any(is_merging);
    if select.from.is_empty() || select.from.iter().any(is_merged) {
        return false;
    }
    select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            find_call(expr).is_some()
        }
        item => find_struct_name(item).is_some_and(|name| !is_table(name, &select.from)),
    })
}

/// Returns `s` for the item `s.*` without options, or `None` for any other item.
fn find_struct_name(item: &SelectItem) -> Option<&Ident> {
    let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) =
        item
    else {
        return None;
    };
    match name.0.as_slice() {
        [name] if *options == WildcardAdditionalOptions::default() => name.as_ident(),
        _ => None,
    }
}

fn is_table(name: &Ident, from: &[TableWithJoins]) -> bool {
    from.iter()
        .flat_map(list_relations)
        .any(|table| table_name(table).is_some_and(|known| is_same_name(known, name)))
}

/// Returns the call of COLUMNS in an expression. Returns `None` if the expression has no such call,
/// has two different calls, as in `COLUMNS('a') + COLUMNS('b')`, or has a subquery, in which
/// COLUMNS means the columns of other tables.
fn find_call(expr: &Expr) -> Option<Function> {
    let mut calls: Vec<Function> = Vec::new();
    let query = visit_expressions(expr, |part| {
        match part {
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                return ControlFlow::Break(());
            }
            Expr::Function(call) if is_columns(call) => calls.push(call.clone()),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    let first = calls.first()?.clone();
    let is_same = |call: &Function| call.to_string() == first.to_string();
    (query.is_continue() && calls.iter().all(is_same)).then_some(first)
}

fn is_columns(call: &Function) -> bool {
    to_plain_name(&call.name).is_some_and(|name| name == "columns")
}

/// Replaces each `COLUMNS(..)` and each `s.*` of a SELECT list with columns. Returns whether one
/// was replaced. Calls for which [`write_out_call`] returns `None` stay, and the planner reports
/// them.
fn replace_sets(select: &mut Select, columns: &[TableColumn]) -> Result<bool> {
    let mut items = Vec::with_capacity(select.projection.len());
    let mut replaced = false;
    for item in &select.projection {
        let written = match item {
            SelectItem::UnnamedExpr(expr) => write_out_call(expr, None, columns)?,
            SelectItem::ExprWithAlias { expr, alias } => {
                write_out_call(expr, Some(alias), columns)?
            }
            item => find_struct_name(item).and_then(|name| write_out_fields(name, columns)),
        };
        match written {
            Some(written) => {
                replaced = true;
                items.extend(written);
            }
            None => items.push(item.clone()),
        }
    }
    select.projection = items;
    Ok(replaced)
}

/// Returns one copy of an expression for each column that its `COLUMNS(..)` selects: `a + 1 AS a`
/// and `b + 1 AS b` for `COLUMNS(*) + 1`, as in DuckDB. Returns `None` if [`find_call`] finds no
/// call, or if the argument of COLUMNS is neither `*` nor a string.
///
/// # Errors
/// If the pattern is invalid or matches no column, or an alias would name several columns.
fn write_out_call(
    expr: &Expr,
    alias: Option<&Ident>,
    columns: &[TableColumn],
) -> Result<Option<Vec<SelectItem>>> {
    let Some(call) = find_call(expr) else { return Ok(None) };
    let FunctionArguments::List(list) = &call.args else { return Ok(None) };
    let pattern = match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] => None,
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(pattern))] => match unquote_text(pattern) {
            Some(pattern) => Some(pattern),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let regex = pattern.map(Regex::new).transpose().map_err(|e| {
        plan_datafusion_err!(
            "{call} has a pattern that is not a regular expression ({e}); write a pattern such as '^value'"
        )
    })?;
    let is_chosen =
        |column: &&TableColumn| regex.as_ref().is_none_or(|regex| regex.is_match(&column.1));
    let chosen: Vec<&TableColumn> = columns.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = columns.iter().map(|column| column.1.as_str()).collect();
        return plan_err!(
            "{call} matches none of the columns {}; write another pattern",
            names.join(", ")
        );
    }
    if let (Some(alias), [_, _, ..]) = (alias, chosen.as_slice()) {
        return plan_err!(
            "{call} AS {alias} would give {} columns the same name; leave out the alias, or select the columns by name",
            chosen.len()
        );
    }
    let written = chosen.into_iter().map(|(table, name, _)| {
        let mut expr = expr.clone();
        for_each_expr_mut(&mut expr, |part| {
            if matches!(&*part, Expr::Function(call) if is_columns(call)) {
                *part = name_column(table.as_ref(), name);
            }
        });
        match alias {
            Some(alias) => SelectItem::ExprWithAlias { expr, alias: alias.clone() },
            None if is_name(&expr) => SelectItem::UnnamedExpr(expr),
            None => SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) },
        }
    });
    Ok(Some(written.collect()))
}

/// Returns one item of SELECT for each field of the struct column `name`: an expression that reads
/// the field, with the name of the field as alias. Returns `None` if there is no such column, or if
/// `name` is a table.
fn write_out_fields(name: &Ident, columns: &[TableColumn]) -> Option<Vec<SelectItem>> {
    let folded = fold_name(name);
    let is_table =
        |column: &TableColumn| column.0.as_ref().is_some_and(|table| table.table() == folded);
    let mut found = columns.iter().filter(|column| column.1 == folded);
    let ((table, column, data_type), None) = (found.next()?, found.next()) else { return None };
    let DataType::Struct(fields) = data_type else { return None };
    if columns.iter().any(is_table) {
        return None;
    }
    let written = fields.iter().map(|field| {
        let index = Expr::value(Value::SingleQuotedString(field.name().clone()));
        let expr = Expr::CompoundFieldAccess {
            root: Box::new(name_column(table.as_ref(), column)),
            access_chain: vec![AccessExpr::Subscript(Subscript::Index { index })],
        };
        SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', field.name()) }
    });
    Some(written.collect())
}
