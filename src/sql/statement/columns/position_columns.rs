//! Supports `_file` and `_row`, columns of `.nrt` files that exist only if a statement names them.
//!
//! DataFusion has no columns that `*` omits. So a statement that names `_file` or `_row` is
//! rewritten before planning: tables of `.nrt` files that the name may refer to are marked, `*`
//! gets an EXCLUDE (and is expanded table by table if FROM has several tables), and a relation
//! planner adds the columns to marked tables.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::common::TableReference;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{
    Cte, ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderBy, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins,
    Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion::prelude::SessionContext;

use crate::sql::base::syntax::list_relations;
use crate::sql::sources::listing::FilesTable;
use crate::sql::sources::nrt::position_fields::{FILE, ROW};
use crate::sql::statement::columns::join_constraints::{join_constraint, list_using_columns};
use crate::sql::statement::scopes::CteScopes;

/// Name of a partition. `FROM t PARTITION ("serrate positions")` marks `t` as a table that needs
/// position columns. Users are not expected to write this name.
const MARK: &str = "serrate positions";

pub(in crate::sql) fn is_marked(partitions: &[Ident]) -> bool {
    partitions.first().is_some_and(|mark| mark.value == MARK)
}

/// Adds the position columns `_file` and `_row` to the tables for which a statement uses them.
pub(in crate::sql) async fn add_position_columns<S: Visit + VisitMut>(
    ctx: &SessionContext,
    statement: &mut S,
) -> Result<()> {
    let mut found = TableCollector::default();
    let _ = Visit::visit(statement, &mut found);
    if found.tables.is_empty() {
        return Ok(());
    }
    let mut offered: HashMap<ObjectName, Vec<&'static str>> = HashMap::new();
    for (name, positions) in found.tables {
        let Some(reference) = to_table_reference(&name) else { continue };
        // A table that does not exist is skipped here. The planning of the statement reports it.
        let Ok(provider) = ctx.table_provider(reference).await else { continue };
        let Some(files) = provider.downcast_ref::<FilesTable>() else { continue };
        let names: Vec<&'static str> = positions
            .into_iter()
            .filter(|position| files.with_positions(&[position]).is_some())
            .collect();
        if !names.is_empty() {
            offered.insert(name, names);
        }
    }
    if !offered.is_empty() {
        let _ = VisitMut::visit(
            statement,
            &mut PositionMarker {
                offered: &offered,
                scopes: CteScopes::default(),
                orders: Vec::new(),
            },
        );
    }
    Ok(())
}

/// Returns the name of a table in FROM as a reference, with unquoted parts in lower case. Returns
/// `None` if the name has more than three parts.
pub(in crate::sql) fn to_table_reference(name: &ObjectName) -> Option<TableReference> {
    let parts: Option<Vec<String>> = name
        .0
        .iter()
        .map(|part| {
            let ident = part.as_ident()?;
            Some(match ident.quote_style {
                Some(_) => ident.value.clone(),
                None => ident.value.to_lowercase(),
            })
        })
        .collect();
    match parts?.as_slice() {
        [table] => Some(TableReference::bare(table.as_str())),
        [schema, table] => Some(TableReference::partial(schema.as_str(), table.as_str())),
        [catalog, schema, table] => {
            Some(TableReference::full(catalog.as_str(), schema.as_str(), table.as_str()))
        }
        _ => None,
    }
}

/// The position columns `_file` and `_row` that a statement uses, each with its qualifier.
#[derive(Default)]
struct NamedPositions(Vec<(Option<String>, &'static str)>);

pub(in crate::sql) fn match_position(ident: &Ident) -> Option<&'static str> {
    [FILE, ROW].into_iter().find(|p| match ident.quote_style {
        Some(_) => ident.value == *p,
        None => ident.value.eq_ignore_ascii_case(p),
    })
}

impl Visitor for NamedPositions {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => self.0.extend(match_position(ident).map(|p| (None, p))),
            Expr::CompoundIdentifier(parts) => {
                if let [.., table, column] = parts.as_slice() {
                    self.0.extend(
                        match_position(column).map(|p| (Some(table.value.to_lowercase()), p)),
                    );
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Returns the position columns that a SELECT uses, except in subqueries of its FROM.
fn collect_named(select: &Select, order: Option<&OrderBy>) -> NamedPositions {
    let mut named = NamedPositions::default();
    let _ = select.projection.visit(&mut named);
    let _ = select.distinct.visit(&mut named);
    let _ = select.prewhere.visit(&mut named);
    let _ = select.selection.visit(&mut named);
    let _ = select.group_by.visit(&mut named);
    let _ = select.having.visit(&mut named);
    let _ = select.qualify.visit(&mut named);
    let _ = select.named_window.visit(&mut named);
    for from in &select.from {
        for join in &from.joins {
            let _ = join.join_operator.visit(&mut named);
            let using =
                list_using_columns(&join.join_operator).iter().filter_map(find_column_ident);
            named.0.extend(using.filter_map(match_position).map(|p| (None, p)));
        }
    }
    if let Some(order) = order {
        let _ = Visit::visit(order, &mut named);
    }
    named
}

fn find_column_ident(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(|part| part.as_ident())
}

/// Appends the tables of a FROM to `out`, so that `*` becomes one `*` per table. Each table comes
/// with the USING columns that its `*` must omit, because an earlier table has them. Returns `None`
/// if a table has no name, or for a NATURAL, RIGHT SEMI or RIGHT ANTI join.
fn expand_star(
    from: &[TableWithJoins],
    out: &mut Vec<(ObjectName, Vec<ObjectName>)>,
) -> Option<()> {
    fn add_factor(
        factor: &TableFactor,
        merged: &[ObjectName],
        out: &mut Vec<(ObjectName, Vec<ObjectName>)>,
    ) -> Option<()> {
        let alias = match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } if merged.is_empty() => {
                return expand_star(std::slice::from_ref(table_with_joins.as_ref()), out);
            }
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::NestedJoin { alias, .. }
            | TableFactor::UNNEST { alias, .. } => alias,
            _ => return None,
        };
        let name = match (alias, factor) {
            (Some(alias), _) => ObjectName::from(vec![alias.name.clone()]),
            (None, TableFactor::Table { name, args: None, .. }) => name.clone(),
            _ => return None,
        };
        out.push((name, merged.to_vec()));
        Some(())
    }
    for item in from {
        add_factor(&item.relation, &[], out)?;
        for join in &item.joins {
            use JoinOperator as J;
            match &join.join_operator {
                J::LeftSemi(_) | J::LeftAnti(_) | J::Semi(_) | J::Anti(_) => {}
                J::RightSemi(_) | J::RightAnti(_) => return None,
                operator if matches!(join_constraint(operator), Some(JoinConstraint::Natural)) => {
                    return None;
                }
                operator => add_factor(&join.relation, list_using_columns(operator), out)?,
            }
        }
    }
    Some(())
}

fn collect_tables<'a>(from: &'a [TableWithJoins], out: &mut Vec<(String, &'a ObjectName)>) {
    for item in from {
        for factor in list_relations(item) {
            match factor {
                TableFactor::Table { name, alias, args: None, .. } => {
                    let own = name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.clone());
                    let called = alias.as_ref().map(|a| a.name.value.clone()).or(own);
                    out.push((called.unwrap_or_default().to_lowercase(), name));
                }
                TableFactor::NestedJoin { table_with_joins, .. } => {
                    collect_tables(std::slice::from_ref(table_with_joins.as_ref()), out);
                }
                _ => {}
            }
        }
    }
}

/// Returns the tables whose position columns a SELECT uses: for each, its name, its qualifier, and
/// these columns.
fn find_wanted(
    select: &Select,
    order: Option<&OrderBy>,
    scopes: &CteScopes<String>,
) -> Vec<(ObjectName, String, Vec<&'static str>)> {
    let NamedPositions(named) = collect_named(select, order);
    if named.is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    collect_tables(&select.from, &mut all);
    all.into_iter()
        .filter(|(_, name)| !is_cte(name, scopes))
        .filter_map(|(called, name)| {
            let mut positions: Vec<&'static str> = named
                .iter()
                .filter(|(table, _)| table.as_ref().is_none_or(|t| *t == called))
                .map(|(_, position)| *position)
                .collect();
            positions.sort_unstable();
            positions.dedup();
            (!positions.is_empty()).then(|| (name.clone(), called, positions))
        })
        .collect()
}

fn is_cte(name: &ObjectName, scopes: &CteScopes<String>) -> bool {
    matches!(name.0.as_slice(), [one] if one
    .as_ident()
    .is_some_and(|i| {
        let name = i.value.to_lowercase();
        scopes.iter_visible().any(|cte| *cte == name)
    }))
}

fn enter_query(scopes: &mut CteScopes<String>, query: &Query) {
    let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
    let names = ctes.map(|cte: &Cte| cte.alias.name.value.to_lowercase()).collect();
    scopes.enter_scope(names, query.with.as_ref().is_some_and(|with| with.recursive));
}

/// First pass: collects the tables that may need position columns.
#[derive(Default)]
struct TableCollector {
    tables: Vec<(ObjectName, BTreeSet<&'static str>)>,
    scopes: CteScopes<String>,
}

impl TableCollector {
    fn add_tables(&mut self, select: &Select, order: Option<&OrderBy>) {
        for (name, _, positions) in find_wanted(select, order, &self.scopes) {
            match self.tables.iter_mut().find(|(n, _)| *n == name) {
                Some((_, known)) => known.extend(positions),
                None => self.tables.push((name, positions.into_iter().collect())),
            }
        }
    }
}

impl Visitor for TableCollector {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        enter_query(&mut self.scopes, query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        // The visitor has visited all CTEs of the query, so `add_tables` can look up all of them.
        if let Some(select) = query.body.as_select() {
            self.add_tables(select, query.order_by.as_ref());
        }
        self.scopes.leave_scope();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.add_tables(select, None);
        ControlFlow::Continue(())
    }
}

/// Second pass over a statement: marks each table whose `_file` or `_row` a SELECT uses, so that
/// planning adds these columns to the table, and excludes them from the `*` of the SELECT.
struct PositionMarker<'a> {
    offered: &'a HashMap<ObjectName, Vec<&'static str>>,
    scopes: CteScopes<String>,
    /// For each enclosing query, its ORDER BY; `None` after its SELECT is visited.
    orders: Vec<Option<OrderBy>>,
}

impl PositionMarker<'_> {
    fn add_columns(&self, select: &mut Select, order: Option<&OrderBy>) {
        let mut given: Vec<(String, Vec<&'static str>)> = Vec::new();
        for (name, called, positions) in find_wanted(select, order, &self.scopes) {
            let Some(offered) = self.offered.get(&name) else { continue };
            let positions: Vec<_> = positions.into_iter().filter(|p| offered.contains(p)).collect();
            if !positions.is_empty() {
                given.push((called, positions));
            }
        }
        if given.is_empty() {
            return;
        }
        let mut fresh = false;
        mark_tables(&mut select.from, &given, &mut fresh);
        if !fresh {
            return;
        }
        split_star_by_table(select);
        for item in &mut select.projection {
            let (options, table) = match item {
                SelectItem::Wildcard(options) => (options, None),
                SelectItem::QualifiedWildcard(kind, options) => {
                    let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else { continue };
                    (options, find_column_ident(name).map(|ident| ident.value.to_lowercase()))
                }
                _ => continue,
            };
            let mut names: Vec<&'static str> = given
                .iter()
                .filter(|(called, _)| table.as_ref().is_none_or(|t| t == called))
                .flat_map(|(_, positions)| positions.iter().copied())
                .collect();
            names.sort_unstable();
            names.dedup();
            let mut excluded: Vec<ObjectName> = names
                .into_iter()
                .map(|n| ObjectName::from(vec![Ident::with_quote('"', n)]))
                .collect();
            if excluded.is_empty() {
                continue;
            }
            match options.opt_exclude.take() {
                None => {}
                Some(ExcludeSelectItem::Single(one)) => excluded.push(one),
                Some(ExcludeSelectItem::Multiple(more)) => excluded.extend(more),
            }
            options.opt_exclude = Some(ExcludeSelectItem::Multiple(excluded));
        }
    }
}

/// Replaces `*` over several tables with `a.*, b.*`, because an EXCLUDE of `*` cannot name a table.
fn split_star_by_table(select: &mut Select) {
    let mut tables = Vec::new();
    if expand_star(&select.from, &mut tables).is_none() || tables.len() < 2 {
        return;
    }
    let items = std::mem::take(&mut select.projection);
    for item in items {
        let SelectItem::Wildcard(options) = item else {
            select.projection.push(item);
            continue;
        };
        let plain = options.opt_ilike.is_none()
            && options.opt_except.is_none()
            && options.opt_replace.is_none()
            && options.opt_rename.is_none()
            && options.opt_exclude.is_none();
        if !plain {
            select.projection.push(SelectItem::Wildcard(options));
            continue;
        }
        for (table, merged) in &tables {
            let mut options = options.clone();
            let merged: Vec<_> = merged
                .iter()
                .filter(|name| find_column_ident(name).and_then(match_position).is_none())
                .cloned()
                .collect();
            if !merged.is_empty() {
                options.opt_exclude = Some(ExcludeSelectItem::Multiple(merged));
            }
            let kind = SelectItemQualifiedWildcardKind::ObjectName(table.clone());
            select.projection.push(SelectItem::QualifiedWildcard(kind, options));
        }
    }
}

fn mark_tables(
    from: &mut [TableWithJoins],
    given: &[(String, Vec<&'static str>)],
    fresh: &mut bool,
) {
    for item in from {
        let joins = item.joins.iter_mut().map(|j| &mut j.relation);
        for factor in std::iter::once(&mut item.relation).chain(joins) {
            match factor {
                TableFactor::Table { name, alias, args: None, partitions, .. } => {
                    let own = name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.clone());
                    let called = alias.as_ref().map(|a| a.name.value.clone()).or(own);
                    let called = called.unwrap_or_default().to_lowercase();
                    let positions = given.iter().find(|(c, _)| *c == called);
                    if let Some((_, positions)) = positions.filter(|_| partitions.is_empty()) {
                        let names = positions.iter().copied();
                        partitions.extend(std::iter::once(MARK).chain(names).map(Ident::new));
                        *fresh = true;
                    }
                }
                TableFactor::NestedJoin { table_with_joins, .. } => {
                    mark_tables(std::slice::from_mut(table_with_joins.as_mut()), given, fresh);
                }
                _ => {}
            }
        }
    }
}

impl VisitorMut for PositionMarker<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        enter_query(&mut self.scopes, query);
        // The names in ORDER BY refer to the tables of the SELECT, so `orders` keeps the clause.
        let is_select = matches!(query.body.as_ref(), SetExpr::Select(_));
        self.orders.push(query.order_by.clone().filter(|_| is_select));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_scope();
        self.orders.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let order = self.orders.last_mut().and_then(Option::take);
        self.add_columns(select, order.as_ref());
        ControlFlow::Continue(())
    }
}

#[derive(Debug)]
pub(in crate::sql) struct PositionsPlanner;

impl RelationPlanner for PositionsPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { name, alias, args: None, partitions, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let [mark, names @ ..] = partitions.as_slice() else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if mark.value != MARK {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let reference = context.object_name_to_table_reference(name.clone())?;
        let source = context.context_provider().get_table_source(reference.clone())?;
        let provider = source_as_provider(&source)?;
        let names: Vec<&str> = names.iter().map(|n| n.value.as_str()).collect();
        let with = provider.downcast_ref::<FilesTable>().and_then(|t| t.with_positions(&names));
        let source = match with {
            Some(table) => provider_as_source(std::sync::Arc::new(table)),
            None => source,
        };
        let plan = LogicalPlanBuilder::scan(reference, source, None)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}
