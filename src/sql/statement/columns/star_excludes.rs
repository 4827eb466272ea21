//! Supports `* EXCLUDE (k)` where several tables in FROM have a column `k`, and `* EXCLUDE (t.k)`.
//!
//! In DuckDB, `k` excludes the columns `k` of all tables. DataFusion rejects a name that several
//! tables have, and qualified names, so such a star is replaced with the remaining columns. The
//! columns are known only after planning. This workaround is obsolete once the test
//! `stock_names_of_several_tables_are_still_not_excluded` fails.

use std::ops::ControlFlow;

use datafusion::common::TableReference;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, ExcludeSelectItem, Expr, Ident, ObjectName, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableWithJoins, Visit, VisitMut, VisitorMut,
};

use crate::sql::base::syntax::{has_select, parse_query};
use crate::sql::statement::columns::join_constraints::is_merging;
use crate::sql::statement::columns::merged::list_excluded_names;
use crate::sql::statement::folding::fold_name;
use crate::sql::statement::planned_parts::{add_queries, plan_alone, plan_names};
use crate::sql::statement::scopes::{CteScopes, track_scopes};

/// A column of a star: its table and its name.
type StarColumn = (Option<TableReference>, String);

/// Replaces each star that DataFusion cannot plan because of its EXCLUDE with the remaining
/// columns.
pub(in crate::sql) async fn write_out<S: Visit + VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> Result<()> {
    // A statement without such a star skips the visitor, which copies queries.
    if !has_select(statement, |select| find_star(select).is_some()) {
        return Ok(());
    }
    // Each round rewrites only the innermost SELECTs with a star to replace: the columns of an
    // outer SELECT are known only after the SELECTs in its FROM are rewritten.
    loop {
        let mut found =
            StarExcludeRewriter { scopes: CteScopes::default(), places: Vec::new(), known: None };
        let _ = VisitMut::visit(statement, &mut found);
        let mut known = Vec::with_capacity(found.places.len());
        for (query, star) in found.places {
            known.push(match plan_names(state, query).await {
                Some(_) => None,
                None => list_star_columns(state, star).await,
            });
        }
        if known.iter().all(Option::is_none) {
            return Ok(());
        }
        let known = Some((known.into_iter(), false));
        let mut replaced =
            StarExcludeRewriter { scopes: CteScopes::default(), places: Vec::new(), known };
        let _ = VisitMut::visit(statement, &mut replaced);
        if !matches!(replaced.known, Some((_, true))) {
            return Ok(());
        }
    }
}

/// Rewrites `t.* EXCLUDE (t.a)` to `t.* EXCLUDE (a)`, because the planner rejects qualified names.
pub(in crate::sql) fn drop_own_tables(select: &mut Select) {
    for item in &mut select.projection {
        let SelectItem::QualifiedWildcard(kind, options) = item else { continue };
        let SelectItemQualifiedWildcardKind::ObjectName(table) = kind else { continue };
        let Some(table) = table.0.last().and_then(|part| part.as_ident()).map(fold_name) else {
            continue;
        };
        let names = match &mut options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => std::slice::from_mut(name),
            Some(ExcludeSelectItem::Multiple(names)) => names.as_mut_slice(),
            None => continue,
        };
        for name in names {
            if let [own, column] = name.0.as_slice()
                && own.as_ident().is_some_and(|own| fold_name(own) == table)
            {
                name.0 = vec![column.clone()];
            }
        }
    }
}

/// Plans a query and returns its columns with their tables, or `None` if it cannot be planned.
async fn list_star_columns(state: &SessionState, query: Query) -> Option<Vec<StarColumn>> {
    let plan = plan_alone(state, query).await?;
    let columns = plan.schema().iter();
    Some(columns.map(|(table, field)| (table.cloned(), field.name().clone())).collect())
}

/// Visitor that collects the SELECTs in which [`find_star`] finds a star, and replaces these stars
/// in a second pass.
struct StarExcludeRewriter {
    scopes: CteScopes<Cte>,
    /// For each SELECT, the SELECT as a separate query, and a query of all columns of its tables.
    places: Vec<(Query, Query)>,
    /// `None` in the first pass. In the second pass, the iterator has an item for each entry of
    /// `places`: the columns of its tables, or `None` if its star stays. The `bool` is whether a
    /// star has been replaced so far.
    known: Option<(std::vec::IntoIter<Option<Vec<StarColumn>>>, bool)>,
}

impl VisitorMut for StarExcludeRewriter {
    type Break = ();

    track_scopes!();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if find_star(select).is_none() {
            return ControlFlow::Continue(());
        }
        match &mut self.known {
            None => {
                let Ok(mut star) = parse_query("SELECT *") else {
                    return ControlFlow::Continue(());
                };
                let mut plain = star.clone();
                if let SetExpr::Select(all) = star.body.as_mut() {
                    all.from.clone_from(&select.from);
                }
                *plain.body = SetExpr::Select(Box::new(select.clone()));
                let both = [plain, star].map(|query| add_queries(query, &self.scopes));
                self.places.push(both.into());
            }
            Some((known, replaced)) => {
                if let Some(Some(columns)) = known.next() {
                    *replaced |= replace_star(select, &columns);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns the index in the SELECT list of a `*` that may exclude columns of several tables: FROM
/// has several tables, or EXCLUDE has a qualified name such as `t.k`. Returns `None` if there is no
/// such star, or if a join has USING or is NATURAL.
fn find_star(select: &Select) -> Option<usize> {
    let is_merged = |from: &TableWithJoins| from.joins.iter().any(is_merging);
    if select.from.is_empty() || select.from.iter().any(is_merged) {
        return None;
    }
    let several = select.from.len() > 1 || select.from.iter().any(|from| !from.joins.is_empty());
    select.projection.iter().position(|item| match item {
        SelectItem::Wildcard(options) => {
            let excluded = list_excluded_names(options);
            let has_table = excluded.iter().any(|name| name.0.len() > 1);
            let is_plain = options.opt_ilike.is_none() && options.opt_rename.is_none();
            is_plain && !excluded.is_empty() && (several || has_table)
        }
        _ => false,
    })
}

/// Replaces the star with the columns that it does not exclude. If an excluded name is not the name
/// of a column, changes nothing and returns `false`. The planner then reports the error.
fn replace_star(select: &mut Select, columns: &[StarColumn]) -> bool {
    let Some(at) = find_star(select) else { return false };
    let Some(SelectItem::Wildcard(options)) = select.projection.get(at) else { return false };
    let excluded = list_excluded_names(options);
    if !excluded.iter().all(|name| columns.iter().any(|column| is_column(name, column))) {
        return false;
    }
    let mut kept: Vec<SelectItem> = Vec::with_capacity(columns.len());
    for column in columns {
        if excluded.iter().any(|name| is_column(name, column)) {
            continue;
        }
        let (table, name) = column;
        let mut replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
        kept.push(match replaced.find(|item| fold_name(&item.column_name) == *name) {
            Some(item) => SelectItem::ExprWithAlias {
                expr: item.expr.clone(),
                alias: item.column_name.clone(),
            },
            None => SelectItem::UnnamedExpr(name_column(table.as_ref(), name)),
        });
    }
    if kept.is_empty() {
        return false;
    }
    select.projection.splice(at..=at, kept);
    true
}

fn is_column(excluded: &ObjectName, (table, name): &StarColumn) -> bool {
    let parts: Vec<String> =
        excluded.0.iter().filter_map(|part| part.as_ident()).map(fold_name).collect();
    match parts.as_slice() {
        [column] => column == name,
        [of, column] => column == name && table.as_ref().is_some_and(|table| table.table() == of),
        _ => false,
    }
}

pub(super) fn name_column(table: Option<&TableReference>, name: &str) -> Expr {
    let quoted = |part: &str| Ident::with_quote('"', part);
    let mut parts: Vec<Ident> = match table {
        None => return Expr::Identifier(quoted(name)),
        Some(table) => [table.catalog(), table.schema(), Some(table.table())]
            .into_iter()
            .flatten()
            .map(quoted)
            .collect(),
    };
    parts.push(quoted(name));
    Expr::CompoundIdentifier(parts)
}
