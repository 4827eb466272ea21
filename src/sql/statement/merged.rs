//! Gives each column that USING or NATURAL merges the value that SQL requires.
//!
//! The merged column is the left column in an inner or left join, the right column in a right join,
//! and the first that is not NULL in a full join. DataFusion always uses the column with the
//! smaller qualified name for `*`, and the first by position for an unqualified name, so the merged
//! column may be NULL in rows without a match, also in groups and later joins. Therefore a SELECT
//! over such joins is rewritten before planning: `*` is expanded table by table, with the merged
//! column in place of the left one, and unqualified names become expressions of both columns.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Cte, Distinct, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, GroupByExpr, Ident, Join, JoinConstraint,
    JoinOperator, ObjectName, OrderBy, Query, ReplaceSelectElement, ReplaceSelectItem, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement as SqlStatement, TableAlias,
    TableFactor, TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions, With,
};
use datafusion::logical_expr::sqlparser::tokenizer::Span;
use datafusion::sql::parser::Statement;

use crate::sql::sources::from::parse_query;
use crate::sql::statement::folding::fold_name;
use crate::sql::statement::positions::match_position;
use crate::sql::statement::scopes::Scopes;
use crate::sql::statement::set_names::{add_identifiers, unused_name};

/// Prefix of the aliases of subqueries in FROM without one.
const SIDE: &str = "__serrate_side_";

pub(in crate::sql) async fn write_out<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> Result<()> {
    let mut any = AnyNatural(false);
    let _ = statement.visit(&mut any);
    if any.0 {
        // An input of a NATURAL join may contain further ones, which must become USING first.
        let mut unknown = usize::MAX;
        loop {
            let still = write_natural(state, statement).await;
            if still == 0 || still >= unknown {
                break;
            }
            unknown = still;
        }
    }
    merge_columns(state, statement).await
}

/// Changes NATURAL joins to USING. Returns the number of those whose columns are unknown.
async fn write_natural<S: VisitMut>(state: &SessionState, statement: &mut S) -> usize {
    let mut natural = Natural { scopes: Scopes::default(), found: Vec::new(), known: None };
    let _ = statement.visit(&mut natural);
    let mut common: Vec<Option<Vec<String>>> = Vec::with_capacity(natural.found.len());
    for [left, right] in natural.found {
        let left = plan_merged_names(state, left).await;
        let right = plan_merged_names(state, right).await;
        common.push(match (left, right) {
            (Some(left), Some(right)) => {
                Some(right.into_iter().filter(|name| left.contains(name)).collect())
            }
            // The columns of an input that cannot be planned are unknown. Planning reports the
            // error.
            _ => None,
        });
    }
    let unknown = common.iter().filter(|names| names.is_none()).count();
    let known = Some(common.into_iter());
    let mut natural = Natural { scopes: Scopes::default(), found: Vec::new(), known };
    let _ = statement.visit(&mut natural);
    unknown
}

async fn merge_columns<S: VisitMut>(state: &SessionState, statement: &mut S) -> Result<()> {
    let (columns, relations) = find_columns(state, statement).await;
    match statement.visit(&mut Merge { outer: 0, columns, relations }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(e) => Err(e),
    }
}

/// Plans a query and returns the names of its columns, or `None` if it cannot be planned. Names of
/// merged columns may be ambiguous to the planner until [`Merge`] has rewritten them.
async fn plan_merged_names(state: &SessionState, mut query: Query) -> Option<Vec<String>> {
    if let Some(names) = plan_names(state, query.clone()).await {
        return Some(names);
    }
    merge_columns(state, &mut query).await.ok()?;
    plan_names(state, query).await
}

/// Plans a query and returns the names of its columns, or `None` if it cannot be planned.
pub(in crate::sql) async fn plan_names(state: &SessionState, query: Query) -> Option<Vec<String>> {
    let plan = plan_alone(state, query).await?;
    Some(plan.schema().fields().iter().map(|field| field.name().clone()).collect())
}

/// Plans a query, or returns `None` if it cannot be planned.
pub(in crate::sql) async fn plan_alone(state: &SessionState, query: Query) -> Option<LogicalPlan> {
    let statement = Statement::Statement(Box::new(SqlStatement::Query(Box::new(query))));
    state.statement_to_plan(statement).await.ok()
}

/// Adds to a query the CTEs that are visible at its position, so that it can be planned alone.
pub(in crate::sql) fn add_queries(query: Query, scopes: &Scopes<Cte>) -> Query {
    add_ctes(query, scopes.iter_visible(), scopes.recursive())
}

/// Adds CTEs to a query. A CTE hides those before it that have the same name.
pub(in crate::sql) fn add_ctes<'a>(
    mut query: Query,
    visible: impl Iterator<Item = &'a Cte>,
    recursive: bool,
) -> Query {
    let mut ctes: Vec<Cte> = Vec::new();
    for cte in visible {
        ctes.retain(|known| known.alias.name.value != cte.alias.name.value);
        ctes.push(cte.clone());
    }
    if !ctes.is_empty() {
        let with_token = AttachedToken::empty();
        query.with = Some(With { with_token, recursive, cte_tables: ctes });
    }
    query
}

/// The columns of each FROM of a subquery in an expression, by the text of the FROM, or `None` if
/// they are unknown.
type FromColumns = HashMap<String, Option<HashSet<String>>>;

/// The columns of each table next to which a `*` has EXCLUDE or REPLACE, or which may have a merged
/// column, by the text of the table, or the reason why they are unknown.
type TableColumns = HashMap<String, Result<HashSet<String>, String>>;

/// Plans each FROM of the subqueries of a statement with USING. Only then it is known whether an
/// unqualified name in a subquery is that of a merged column of an outer query. Also plans the
/// tables next to a `*` with options, and joined tables if one of them has a merged column.
async fn find_columns<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> (FromColumns, TableColumns) {
    let mut columns = FromColumns::new();
    let mut relations = TableColumns::new();
    let mut any = AnyUsing(false);
    let _ = statement.visit(&mut any);
    if !any.0 {
        return (columns, relations);
    }
    let mut inner = InnerTables {
        scopes: Scopes::default(),
        outer: 0,
        found: Vec::new(),
        relations: Vec::new(),
    };
    let _ = statement.visit(&mut inner);
    for (text, query) in inner.relations {
        let found = plan_columns(state, query).await;
        // Tables of equal SQL may differ if CTEs have the same name.
        let known = match relations.remove(&text) {
            Some(other) if other != found => Err("several tables have this name".to_owned()),
            _ => found,
        };
        relations.insert(text, known);
    }
    for (text, query) in inner.found {
        let found: Option<HashSet<String>> =
            plan_names(state, query).await.map(|names| names.into_iter().collect());
        // Tables of equal SQL may differ if CTEs have the same name.
        let known = match (columns.remove(&text), found) {
            (None, found) => found,
            (Some(Some(mut known)), Some(found)) => {
                known.extend(found);
                Some(known)
            }
            _ => None,
        };
        columns.insert(text, known);
    }
    (columns, relations)
}

/// Plans a query and returns the names of its columns.
///
/// # Errors
/// The message of the planner, if the query cannot be planned.
async fn plan_columns(state: &SessionState, query: Query) -> Result<HashSet<String>, String> {
    let statement = Statement::Statement(Box::new(SqlStatement::Query(Box::new(query))));
    let plan = state.statement_to_plan(statement).await.map_err(|e| e.strip_backtrace())?;
    Ok(plan.schema().fields().iter().map(|field| field.name().clone()).collect())
}

fn from_text(from: &[TableWithJoins]) -> String {
    from.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether a statement has a SELECT with USING. If not, the visitor [`InnerTables`], which copies
/// queries, is skipped.
struct AnyUsing(bool);

impl VisitorMut for AnyUsing {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.0 |= select.from.iter().any(has_using);
        ControlFlow::Continue(())
    }
}

/// Visitor that collects each FROM of the subqueries in expressions, and each table of
/// [`TableColumns`], as queries of all their columns.
struct InnerTables {
    scopes: Scopes<Cte>,
    /// The number of expressions around this part.
    outer: usize,
    found: Vec<(String, Query)>,
    relations: Vec<(String, Query)>,
}

impl InnerTables {
    fn add(&mut self, query: &Query) {
        let SetExpr::Select(select) = query.body.as_ref() else { return };
        if self.outer == 0 || query.with.is_some() || select.from.is_empty() {
            return;
        }
        let Ok(mut all) = parse_query("SELECT * FROM t") else { return };
        if let SetExpr::Select(star) = all.body.as_mut() {
            star.from = select.from.clone();
        }
        self.found.push((from_text(&select.from), add_queries(all, &self.scopes)));
    }

    /// Adds the tables of a FROM. `all` are the items of the whole FROM.
    fn add_relations(&mut self, from: &TableWithJoins, all: &[TableWithJoins]) {
        let joined = from.joins.iter().map(|join| &join.relation);
        for relation in std::iter::once(&from.relation).chain(joined) {
            if let TableFactor::NestedJoin { table_with_joins, alias: None } = relation {
                self.add_relations(table_with_joins, all);
            } else if let Ok(query) = select_all(relation, all) {
                self.relations.push((relation.to_string(), add_queries(query, &self.scopes)));
            }
        }
    }
}

/// Returns a query of the columns of a table in FROM. `all` is the whole FROM, because a table may
/// see those before it.
fn select_all(relation: &TableFactor, all: &[TableWithJoins]) -> Result<Query> {
    if let TableFactor::Derived { lateral: true, alias: Some(alias), .. }
    | TableFactor::UNNEST { alias: Some(alias), .. } = relation
    {
        if !alias.columns.is_empty() {
            let columns = alias.columns.iter().map(|column| format!("NULL AS {}", column.name));
            return parse_query(&format!("SELECT {}", columns.collect::<Vec<_>>().join(", ")));
        }
        let mut query = parse_query(&format!("SELECT {}.* FROM t", alias.name))?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.from = all.to_vec();
        }
        return Ok(query);
    }
    let mut query = parse_query("SELECT * FROM t")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![TableWithJoins { relation: relation.clone(), joins: Vec::new() }];
    }
    Ok(query)
}

impl VisitorMut for InnerTables {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.add(query);
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        let ctes = query.with.iter().flat_map(|with| with.cte_tables.iter().cloned());
        self.scopes.enter_scope(ctes.collect(), recursive);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_scope();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let has_options =
            |item: &SelectItem| matches!(item, SelectItem::Wildcard(options) if !is_bare(options));
        if select.from.iter().any(has_using)
            && (select.projection.iter().any(has_options) || select.from.iter().any(needs_columns))
        {
            for from in &select.from {
                self.add_relations(from, &select.from);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.outer += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.outer -= 1;
        ControlFlow::Continue(())
    }
}

/// Whether a statement has a NATURAL join. If not, the visitor [`Natural`], which copies queries, is skipped.
struct AnyNatural(bool);

impl AnyNatural {
    fn find_merged(&mut self, from: &TableWithJoins) {
        self.0 |= from.joins.iter().any(|join| {
            matches!(join_constraint(&join.join_operator), Some(JoinConstraint::Natural))
        });
    }
}

impl VisitorMut for AnyNatural {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.from.iter().for_each(|from| self.find_merged(from));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.find_merged(table_with_joins);
        }
        ControlFlow::Continue(())
    }
}

/// Visitor that first collects NATURAL joins in `found`, then changes them to USING with `known`.
struct Natural {
    scopes: Scopes<Cte>,
    /// For each NATURAL join, its two inputs as separate queries.
    found: Vec<[Query; 2]>,
    /// For each NATURAL join, the names of the columns that both inputs have.
    known: Option<std::vec::IntoIter<Option<Vec<String>>>>,
}

impl Natural {
    /// Returns `SELECT * FROM from` with the visible CTEs in WITH, or `None` if it cannot be built.
    fn build_star_query(&self, from: TableWithJoins) -> Option<Query> {
        let mut query = parse_query("SELECT * FROM t").ok()?;
        let SetExpr::Select(select) = query.body.as_mut() else { return None };
        select.from = vec![from];
        Some(add_queries(query, &self.scopes))
    }

    fn rewrite_joins(&mut self, from: &mut TableWithJoins) {
        for i in 0..from.joins.len() {
            let natural = join_constraint(&from.joins[i].join_operator);
            if !matches!(natural, Some(JoinConstraint::Natural)) {
                continue;
            }
            if let Some(known) = &mut self.known {
                if let Some(Some(columns)) = known.next()
                    && !columns.is_empty()
                    && let Some(constraint) = constraint_mut(&mut from.joins[i].join_operator)
                {
                    let quoted = |name: &String| {
                        ObjectName::from(vec![Ident::with_quote('"', name.clone())])
                    };
                    *constraint = JoinConstraint::Using(columns.iter().map(quoted).collect());
                }
                continue;
            }
            let left =
                TableWithJoins { relation: from.relation.clone(), joins: from.joins[..i].to_vec() };
            let right =
                TableWithJoins { relation: from.joins[i].relation.clone(), joins: Vec::new() };
            if let (Some(left), Some(right)) =
                (self.build_star_query(left), self.build_star_query(right))
            {
                self.found.push([left, right]);
            }
        }
    }
}

impl VisitorMut for Natural {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        let ctes = query.with.iter().flat_map(|with| with.cte_tables.iter().cloned());
        self.scopes.enter_scope(ctes.collect(), recursive);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_scope();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for from in &mut select.from {
            self.rewrite_joins(from);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.rewrite_joins(table_with_joins);
        }
        ControlFlow::Continue(())
    }
}

/// Rewrites `(a JOIN b USING (k)) AS j` to `(SELECT * FROM a JOIN b USING (k)) AS j`, in which `k` is one column.
pub(in crate::sql) fn select_merged(relation: &mut TableFactor) -> Result<()> {
    let TableFactor::NestedJoin { table_with_joins, alias: Some(alias) } = relation else {
        return Ok(());
    };
    let is_merging = |join: &Join| {
        let constraint = join_constraint(&join.join_operator);
        matches!(constraint, Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
    };
    if !table_with_joins.joins.iter().any(is_merging) {
        return Ok(());
    }
    let mut query = parse_query("SELECT * FROM t")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![table_with_joins.as_ref().clone()];
    }
    *relation = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: Some(alias.clone()),
        sample: None,
    };
    Ok(())
}

struct MergedTable {
    name: ObjectName,
    /// The table as it is written in FROM.
    text: String,
    /// The columns of this table that USING merges, each with the expression of the merged column.
    own: Vec<(Ident, Expr)>,
    /// Columns of this table that USING merges into a column of an earlier table.
    merged: Vec<ObjectName>,
    /// Columns of `own` that several joins merge. The planner rejects their unqualified names as ambiguous.
    repeated: Vec<Ident>,
}

struct Merge {
    /// The number of expressions and LATERAL tables around this part. If not 0, the planner looks up names in outer
    /// queries, too.
    outer: usize,
    columns: FromColumns,
    relations: TableColumns,
}

impl VisitorMut for Merge {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        // The names in ORDER BY refer to the tables of the SELECT, so both clauses are changed together.
        let Query { body, order_by, .. } = query;
        if let SetExpr::Select(select) = body.as_mut() {
            let has_outer = self.outer > 0;
            let order = order_by.as_mut();
            if let Err(e) = qualify_merged(select, order, has_outer, &self.columns, &self.relations)
            {
                return ControlFlow::Break(e);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        // This applies to SELECTs of set operations. `pre_visit_query` has changed the others.
        let done = qualify_merged(select, None, self.outer > 0, &self.columns, &self.relations);
        match done.and_then(|done| match done {
            true => Ok(()),
            false => select.from.iter().try_for_each(check_holders),
        }) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => ControlFlow::Break(e),
        }
    }

    fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<DataFusionError> {
        self.outer += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<DataFusionError> {
        self.outer -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<DataFusionError> {
        self.outer += usize::from(is_lateral(table));
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<DataFusionError> {
        self.outer -= usize::from(is_lateral(table));
        ControlFlow::Continue(())
    }
}

fn is_lateral(table: &TableFactor) -> bool {
    matches!(table, TableFactor::Derived { lateral: true, .. })
}

/// Returns an error if a RIGHT or FULL join merges a column although it is unknown which of several tables on its left
/// has the column. DataFusion would return the left column, which is NULL for rows without a match.
fn check_holders(from: &TableWithJoins) -> Result<()> {
    use JoinOperator as J;
    let mut seen: Vec<Ident> = Vec::new();
    for (before, join) in from.joins.iter().enumerate() {
        let columns = using_columns(&join.join_operator);
        let names = columns.iter().filter_map(|column| column.0.last()?.as_ident());
        let is_outer =
            matches!(join.join_operator, J::Right(_) | J::RightOuter(_) | J::FullOuter(_));
        for name in names {
            let is_held = before == 0 || seen.iter().any(|known| same_name(known, name));
            if is_outer && !is_held {
                return plan_err!(
                    "USING ({name}) of a RIGHT or FULL JOIN after a join of several tables is not supported, because it is unknown which of them has the column {name}, or several have it; write ON and coalesce(a.{name}, b.{name}) instead"
                );
            }
            seen.push(name.clone());
        }
    }
    Ok(())
}

/// Replaces the names of merged columns in a SELECT and its ORDER BY. Returns false if it is unknown
/// which tables have these columns; the SELECT then stays unchanged.
/// `has_outer` is whether the SELECT has an outer query.
/// `columns` are the columns of the subqueries, and `relations` those of the tables.
///
/// # Errors
/// If a `*` has EXCLUDE or REPLACE, and it is unknown which tables have the columns that it names.
fn qualify_merged(
    select: &mut Select,
    order: Option<&mut OrderBy>,
    has_outer: bool,
    columns: &FromColumns,
    relations: &TableColumns,
) -> Result<bool> {
    if !select.from.iter().any(has_using) {
        return Ok(true);
    }
    let mut unnamed = 0;
    let mut tables: Vec<MergedTable> = Vec::new();
    // USING can become ON only if no `*` remains: after ON, it would repeat the merged column.
    let by_conditions = select.projection.iter().all(|item| match item {
        SelectItem::Wildcard(options) => has_known_options(options),
        _ => true,
    });
    let mut written = select.from.clone();
    for from in &mut written {
        let before = tables.len();
        if merge_tables(from, by_conditions, relations, &mut unnamed, &mut tables).is_none() {
            return Ok(false);
        }
        // The text of a table in `tables` is the one before this change.
        replace_in_lateral(&mut from.relation, &tables[..before]);
    }
    select.from = written;
    name_beside_merged(select, order.as_deref(), &tables);
    let is_plain = |table: &MergedTable, name: &Ident, expr: &Expr| {
        *expr == qualify_column(&table.name, name)
            && !table.repeated.iter().any(|n| same_name(n, name))
    };
    // Merged columns whose value is not simply a column of their table, or whose name is ambiguous.
    let others: Vec<(Ident, Expr)> = tables
        .iter()
        .flat_map(|table| table.own.iter().map(move |(name, expr)| (table, name, expr)))
        .filter(|(table, name, expr)| !is_plain(table, name, expr))
        .map(|(_, name, expr)| (name.clone(), expr.clone()))
        .collect();
    let plain: Vec<(Ident, Expr)> = tables
        .iter()
        .flat_map(|table| table.own.iter().map(move |(name, expr)| (table, name, expr)))
        .filter(|(table, name, expr)| is_plain(table, name, expr))
        .map(|(_, name, expr)| (name.clone(), expr.clone()))
        .collect();
    let (mut output, mut aliased): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    // For each `*`, the names that it excludes.
    let mut stars: Vec<Vec<Ident>> = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::Wildcard(mut options) => {
                let excluded: Vec<Ident> =
                    excluded_names(&options).iter().filter_map(last_ident).collect();
                stars.push(excluded.clone());
                let replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
                aliased.extend(replaced.map(|item| fold_name(&item.column_name)));
                if let Some(written) = write_star(&options, &tables, relations)? {
                    select.projection.extend(written);
                    continue;
                }
                let replaced = options
                    .opt_replace
                    .get_or_insert_with(|| ReplaceSelectItem { items: Vec::new() });
                // `*` in DataFusion may return either column, so `REPLACE` sets the value.
                let is_merged = |name: &Ident| tables.iter().any(|table| is_merged_in(table, name));
                let merged = plain.iter().filter(|(name, _)| is_merged(name));
                for (name, expr) in others.iter().chain(merged) {
                    let known =
                        replaced.items.iter().any(|item| same_name(&item.column_name, name));
                    if !known && !excluded.iter().any(|e| same_name(e, name)) {
                        replaced.items.push(Box::new(replace_column(name, expr)));
                    }
                }
                if replaced.items.is_empty() {
                    options.opt_replace = None;
                }
                select.projection.push(SelectItem::Wildcard(options));
            }
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                output.push(fold_name(&name));
                let alias = name.clone();
                select.projection.push(
                    match others.iter().find(|(other, _)| same_name(other, &name)) {
                        Some((_, expr)) => SelectItem::ExprWithAlias { expr: expr.clone(), alias },
                        None => SelectItem::UnnamedExpr(Expr::Identifier(name)),
                    },
                );
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                output.push(fold_name(&alias));
                aliased.push(fold_name(&alias));
                select.projection.push(SelectItem::ExprWithAlias { expr, alias });
            }
            other => select.projection.push(other),
        }
    }
    if let Some(order) = order {
        // In ORDER BY, the name of a result column already refers to the merged column. Other names of left
        // columns get qualifiers, because after ON the planner finds them ambiguous.
        let is_in_star = |name: &Ident| {
            stars.iter().any(|excluded| !excluded.iter().any(|other| same_name(other, name)))
        };
        let others = others
            .iter()
            .filter(|(name, _)| !is_in_star(name) && !output.contains(&fold_name(name)));
        let plain = plain.iter().filter(|(name, _)| !aliased.contains(&fold_name(name)));
        let names: Vec<(Ident, Expr)> = others.chain(plain).cloned().collect();
        let _ = order.visit(&mut BareNames::new(&names, columns));
    }
    // In WHERE, HAVING and QUALIFY, unqualified names of merged columns would be ambiguous, too.
    let all: Vec<(Ident, Expr)> = others.iter().chain(&plain).cloned().collect();
    let mut bare = BareNames::new(&all, columns);
    let _ = select.selection.visit(&mut bare);
    let _ = select.having.visit(&mut bare);
    let _ = select.qualify.visit(&mut bare);
    // The planner finds the names of `plain` ambiguous, and then looks them up in the outer query first. Without an
    // outer query, a name that a further table may also have stays, so that the planner can reject it.
    let is_certain = |name: &Ident| {
        let owners = tables.iter().filter(|table| owns_column(table, name)).count();
        owners == 1
            && (has_outer || tables.iter().all(|t| owns_column(t, name) || is_merged_in(t, name)))
    };
    let certain = plain.iter().filter(|(name, _)| is_certain(name));
    let names: Vec<(Ident, Expr)> = others.iter().chain(certain).cloned().collect();
    let mut bare = BareNames::new(&names, columns);
    let _ = select.projection.visit(&mut bare);
    let _ = select.group_by.visit(&mut bare);
    if let Some(Distinct::On(exprs)) = &mut select.distinct {
        for expr in exprs {
            // The name of a result column refers to that column.
            let is_result =
                matches!(&*expr, Expr::Identifier(name) if aliased.contains(&fold_name(name)));
            replace_names(expr, if is_result { &others } else { &names });
        }
    }
    Ok(true)
}

/// Returns a `*` as the stars of its tables, with the merged column in place of the left one.
/// Returns `None` if the planner has to report an error: EXCLUDE names a column that no table has,
/// or the options are those of another dialect.
///
/// # Errors
/// If it is unknown which tables have the columns that EXCLUDE and REPLACE name, or if EXCLUDE
/// names a merged column with its table.
fn write_star(
    options: &WildcardAdditionalOptions,
    tables: &[MergedTable],
    relations: &TableColumns,
) -> Result<Option<Vec<SelectItem>>> {
    if !has_known_options(options) {
        return Ok(None);
    }
    let excluded = excluded_names(options);
    let replaced: Vec<&ReplaceSelectElement> =
        options.opt_replace.iter().flat_map(|r| &r.items).map(AsRef::as_ref).collect();
    let is_merged = |name: &Ident| {
        tables.iter().all(|table| owns_column(table, name) || is_merged_in(table, name))
    };
    let merged_only =
        excluded.iter().all(|name| last_ident(name).is_some_and(|name| is_merged(&name)))
            && replaced.iter().all(|item| is_merged(&item.column_name));
    let mut columns: Vec<HashSet<String>> = Vec::with_capacity(tables.len());
    for table in tables {
        columns.push(match relations.get(&table.text) {
            _ if merged_only => HashSet::new(),
            Some(Ok(columns)) => columns.clone(),
            Some(Err(reason)) => return refuse_star(table, reason),
            None => return refuse_star(table, "it depends on the tables next to it"),
        });
    }
    // Whether the star of a table has this column.
    let shows = |table: &MergedTable, columns: &HashSet<String>, name: &Ident| {
        owns_column(table, name)
            || (columns.contains(&fold_name(name)) && !is_merged_in(table, name))
    };
    for excluded in excluded {
        let Some((name, table)) = split_column(excluded) else { return Ok(None) };
        let mut owners = tables.iter().zip(&columns).filter(|(known, columns)| {
            has_name(known, &table) && (is_merged_in(known, &name) || shows(known, columns, &name))
        });
        let Some((owner, _)) = owners.next() else { return Ok(None) };
        if !table.is_empty() && owns_column(owner, &name) {
            return plan_err!(
                "EXCLUDE ({excluded}) names one of the columns that USING or NATURAL merges into {name}; write EXCLUDE ({name}) to omit the merged column"
            );
        }
    }
    let mut stars = Vec::with_capacity(tables.len());
    for (table, columns) in tables.iter().zip(&columns) {
        let is_excluded = |name: &Ident| {
            excluded
                .iter()
                .filter_map(split_column)
                .any(|(column, of)| same_name(&column, name) && has_name(table, &of))
        };
        let mut omitted = table.merged.clone();
        for name in excluded.iter().filter_map(last_ident) {
            if is_excluded(&name) && shows(table, columns, &name) {
                let name = ObjectName::from(vec![Ident::with_quote('"', fold_name(&name))]);
                if !omitted.contains(&name) {
                    omitted.push(name);
                }
            }
        }
        let is_replaced =
            |name: &Ident| replaced.iter().any(|item| same_name(&item.column_name, name));
        let own = table
            .own
            .iter()
            .filter(|(name, _)| !is_excluded(name) && !is_replaced(name))
            .filter(|(name, expr)| *expr != qualify_column(&table.name, name))
            .map(|(name, expr)| Box::new(replace_column(name, expr)));
        let others = replaced
            .iter()
            .filter(|item| shows(table, columns, &item.column_name))
            .filter(|item| !is_excluded(&item.column_name))
            .map(|item| Box::new((*item).clone()));
        let items: Vec<_> = own.chain(others).collect();
        let mut options = options.clone();
        options.opt_exclude = (!omitted.is_empty()).then_some(ExcludeSelectItem::Multiple(omitted));
        options.opt_replace = (!items.is_empty()).then_some(ReplaceSelectItem { items });
        let kind = SelectItemQualifiedWildcardKind::ObjectName(table.name.clone());
        stars.push(SelectItem::QualifiedWildcard(kind, options));
    }
    Ok(Some(stars))
}

fn refuse_star<T>(table: &MergedTable, reason: &str) -> Result<T> {
    plan_err!(
        "* with EXCLUDE or REPLACE over USING or NATURAL requires the columns of {}, which are unknown ({reason}); write the columns instead of the star",
        table.text
    )
}

/// Splits a name in EXCLUDE into the column and its table, which may be empty.
fn split_column(name: &ObjectName) -> Option<(Ident, Vec<Ident>)> {
    let mut parts: Vec<Ident> =
        name.0.iter().map(|part| part.as_ident().cloned()).collect::<Option<_>>()?;
    let column = parts.pop()?;
    Some((column, parts))
}

/// Whether `name` is a column of this table, into which USING merges columns of other tables.
fn owns_column(table: &MergedTable, name: &Ident) -> bool {
    table.own.iter().any(|(own, _)| same_name(own, name))
}

/// Whether USING merges the column `name` of this table into a column of an earlier table.
fn is_merged_in(table: &MergedTable, name: &Ident) -> bool {
    table.merged.iter().any(|merged| last_ident(merged).is_some_and(|m| same_name(&m, name)))
}

/// Renames `t.k` to `k_1` next to the merged column `k`, because the planner gives both one name.
fn name_beside_merged(select: &mut Select, order: Option<&OrderBy>, tables: &[MergedTable]) {
    let mut used = HashSet::new();
    let mut merged: Vec<Ident> = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                used.insert(name.value.to_lowercase());
                let is_own =
                    |table: &MergedTable| table.own.iter().any(|(own, _)| same_name(own, name));
                if tables.iter().any(is_own) {
                    merged.push(name.clone());
                }
            }
            SelectItem::ExprWithAlias { alias, .. } => {
                used.insert(alias.value.to_lowercase());
            }
            _ => {}
        }
    }
    if merged.is_empty() {
        return;
    }
    let mut avoided = HashSet::new();
    add_identifiers(select, &mut avoided);
    if let Some(order) = order {
        add_identifiers(order, &mut avoided);
    }
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Expr::CompoundIdentifier(parts) = &*expr
            && let Some((column, table)) = parts.split_last()
            // `s.k` may also be a field of a struct `s`.
            && tables.iter().any(|known| has_name(known, table))
            && merged.iter().any(|name| same_name(name, column))
        {
            let alias = unused_name(&column.value, &mut used, &avoided);
            let alias = Ident::with_quote('"', alias);
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// Whether `name`, such as `t` or `schema.t`, is the name of `table`, with or without its schema.
fn has_name(table: &MergedTable, name: &[Ident]) -> bool {
    let known: Vec<&Ident> = table.name.0.iter().filter_map(|part| part.as_ident()).collect();
    let skipped = known.len().checked_sub(name.len());
    skipped.is_some_and(|skipped| {
        known.iter().skip(skipped).zip(name).all(|(known, name)| same_name(known, name))
    })
}

pub(super) fn excluded_names(options: &WildcardAdditionalOptions) -> &[ObjectName] {
    match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => &[],
    }
}

/// Whether a star has no options besides EXCLUDE and REPLACE.
fn has_known_options(options: &WildcardAdditionalOptions) -> bool {
    options.opt_ilike.is_none() && options.opt_except.is_none() && options.opt_rename.is_none()
}

/// Whether USING merges a column of a side of several tables, unless an earlier USING shows which of
/// them has the column.
fn needs_columns(from: &TableWithJoins) -> bool {
    let within = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            Some(needs_columns(table_with_joins))
        }
        _ => None,
    };
    let first = within(&from.relation);
    let mut has_several = first.is_some();
    let mut seen: Vec<Ident> = Vec::new();
    let mut is_unknown = first == Some(true);
    for join in &from.joins {
        let right = within(&join.relation);
        let names = using_columns(&join.join_operator).iter().filter_map(last_ident);
        for name in names {
            let is_seen = seen.iter().any(|known| same_name(known, &name));
            is_unknown |= right.is_some() || has_several && !is_seen;
            seen.push(name);
        }
        is_unknown |= right == Some(true);
        has_several = true;
    }
    is_unknown
}

/// Whether a FROM contains USING, also in joins in parentheses.
fn has_using(from: &TableWithJoins) -> bool {
    let within = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => has_using(table_with_joins),
        _ => false,
    };
    let of_join =
        |join: &Join| !using_columns(&join.join_operator).is_empty() || within(&join.relation);
    within(&from.relation) || from.joins.iter().any(of_join)
}

fn is_bare(options: &WildcardAdditionalOptions) -> bool {
    has_known_options(options) && options.opt_replace.is_none() && options.opt_exclude.is_none()
}

fn replace_column(name: &Ident, expr: &Expr) -> ReplaceSelectElement {
    ReplaceSelectElement { expr: expr.clone(), column_name: name.clone(), as_keyword: true }
}

/// Collects the tables of a FROM with the columns that USING merges. Returns `None` if a table has no
/// name, or if it is unknown which table has a column.
fn merge_tables(
    from: &mut TableWithJoins,
    by_conditions: bool,
    relations: &TableColumns,
    unnamed: &mut usize,
    out: &mut Vec<MergedTable>,
) -> Option<()> {
    let merges = from.joins.iter().any(|join| !using_columns(&join.join_operator).is_empty());
    let first = out.len();
    add_table(&mut from.relation, by_conditions, merges, relations, unnamed, out)?;
    for join in &mut from.joins {
        use JoinOperator as J;
        let before = out.len();
        let columns = using_columns(&join.join_operator).to_vec();
        match &join.join_operator {
            // These joins return only the columns of the left side, so USING merges no columns.
            J::LeftSemi(_) | J::LeftAnti(_) | J::Semi(_) | J::Anti(_) => continue,
            J::RightSemi(_) | J::RightAnti(_) => return None,
            operator if matches!(join_constraint(operator), Some(JoinConstraint::Natural)) => {
                return None;
            }
            _ => add_table(&mut join.relation, by_conditions, merges, relations, unnamed, out)?,
        }
        let mut condition: Option<Expr> = None;
        let (mut changed, mut by_position) = (false, false);
        for column in &columns {
            let name = column.0.last()?.as_ident()?.clone();
            if match_position(&name).is_some() {
                by_position = true;
                continue;
            }
            // On the right side, the column belongs to the table that already merges it, or else to the only
            // table that has it. If this is unknown, the SELECT stays unchanged.
            let merges =
                |table: &MergedTable| table.own.iter().any(|(own, _)| same_name(own, &name));
            let right_at = match out[before..].iter().position(merges) {
                Some(at) => before + at,
                None if out.len() - before == 1 => before,
                None => before + find_holder(&out[before..], &name, relations)?,
            };
            let right_table = &mut out[right_at];
            let plain = qualify_column(&right_table.name, &name);
            // Joins in parentheses may have merged the column; the join then compares the merged value.
            let own = right_table.own.iter().position(|(own, _)| same_name(own, &name));
            let right = own.map_or_else(|| plain.clone(), |at| right_table.own.remove(at).1);
            changed |= right != plain;
            let holder = match out[first..before].iter().position(merges) {
                Some(at) => first + at,
                None if before - first == 1 => first,
                None => first + find_holder(&out[first..before], &name, relations)?,
            };
            let left_table = &out[holder];
            let known = left_table.own.iter().position(|(own, _)| same_name(own, &name));
            let plain = qualify_column(&left_table.name, &name);
            let left = known.map_or_else(|| plain.clone(), |at| left_table.own[at].1.clone());
            changed |= left != plain;
            let equal = Expr::BinaryOp {
                left: Box::new(left.clone()),
                op: BinaryOperator::Eq,
                right: Box::new(right.clone()),
            };
            condition = Some(match condition {
                Some(before) => Expr::BinaryOp {
                    left: Box::new(before),
                    op: BinaryOperator::And,
                    right: Box::new(equal),
                },
                None => equal,
            });
            let merged = match &join.join_operator {
                J::Right(_) | J::RightOuter(_) => right,
                J::FullOuter(_) => coalesce_of([left, right]),
                _ => left,
            };
            let holder = &mut out[holder];
            match known {
                Some(at) => {
                    holder.own[at].1 = merged;
                    // USING with a column of three tables cannot be planned, so ON is used.
                    changed |= by_conditions && holder.repeated.iter().any(|n| same_name(n, &name));
                    holder.repeated.push(name.clone());
                }
                None => holder.own.push((name.clone(), merged)),
            }
            out[right_at].merged.push(ObjectName::from(vec![name]));
        }
        if columns.is_empty() {
            let names: Vec<_> = out[first..].iter().flat_map(|t| t.own.iter().cloned()).collect();
            if let Some(JoinConstraint::On(on)) = constraint_mut(&mut join.join_operator) {
                replace_names(on, &names);
            }
            replace_in_lateral(&mut join.relation, out);
        }
        // If an earlier join has merged a column of this join, USING or NATURAL becomes ON.
        if changed
            && !by_position
            && let Some(condition) = condition
            && let Some(constraint) = constraint_mut(&mut join.join_operator)
        {
            *constraint = JoinConstraint::On(condition);
        }
    }
    Some(())
}

/// Returns the index of the only table with a column, or `None` if several tables have it or the
/// columns of a table are unknown.
fn find_holder(tables: &[MergedTable], name: &Ident, relations: &TableColumns) -> Option<usize> {
    let mut holder = None;
    for (at, table) in tables.iter().enumerate() {
        let Some(Ok(columns)) = relations.get(&table.text) else { return None };
        if columns.contains(&fold_name(name)) && holder.replace(at).is_some() {
            return None;
        }
    }
    holder
}

fn add_table(
    factor: &mut TableFactor,
    by_conditions: bool,
    merges: bool,
    relations: &TableColumns,
    unnamed: &mut usize,
    out: &mut Vec<MergedTable>,
) -> Option<()> {
    if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
        return merge_tables(table_with_joins, by_conditions, relations, unnamed, out);
    }
    let text = written_text(factor);
    if let TableFactor::Derived { alias: alias @ None, .. } = factor
        && merges
    {
        *unnamed += 1;
        let name = Ident::with_quote('"', format!("{SIDE}{unnamed}"));
        *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
    }
    let name = match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => {
            ObjectName::from(vec![alias.name.clone()])
        }
        TableFactor::Table { name, args: None, .. } => name.clone(),
        _ => return None,
    };
    out.push(MergedTable { name, text, own: vec![], merged: vec![], repeated: vec![] });
    Some(())
}

/// Returns the text of a table in the statement, without an alias that `add_table` has added.
fn written_text(factor: &TableFactor) -> String {
    if let TableFactor::Derived { alias: Some(alias), .. } = factor
        && alias.name.value.starts_with(SIDE)
    {
        let mut written = factor.clone();
        if let TableFactor::Derived { alias, .. } = &mut written {
            *alias = None;
        }
        return written.to_string();
    }
    factor.to_string()
}

/// Replaces unqualified names of merged columns of earlier tables in `unnest(..)`, and in a LATERAL query without FROM.
fn replace_in_lateral(table: &mut TableFactor, earlier: &[MergedTable]) {
    if matches!(table, TableFactor::Derived { lateral: true, .. } | TableFactor::UNNEST { .. }) {
        let names: Vec<_> = earlier.iter().flat_map(|known| known.own.iter().cloned()).collect();
        replace_names(table, &names);
    }
}

/// Replaces unqualified names of columns with expressions, except in subqueries that may have columns of these names.
pub(in crate::sql) fn replace_names<V: VisitMut>(node: &mut V, names: &[(Ident, Expr)]) {
    let _ = node.visit(&mut BareNames::new(names, &FromColumns::new()));
}

struct BareNames<'a> {
    names: &'a [(Ident, Expr)],
    columns: &'a FromColumns,
    /// For each query around the current position, whether it may have columns of these names.
    queries: Vec<bool>,
    parameters: Vec<String>,
}

impl<'a> BareNames<'a> {
    fn new(names: &'a [(Ident, Expr)], columns: &'a FromColumns) -> Self {
        Self { names, columns, queries: Vec::new(), parameters: Vec::new() }
    }
}

impl VisitorMut for BareNames<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.queries.push(!lacks_names(query, self.names, self.columns));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Lambda(lambda) = expr {
            self.parameters.extend(lambda.params.iter().map(|p| fold_name(&p.name)));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Lambda(lambda) = expr {
            let around = self.parameters.len().saturating_sub(lambda.params.iter().count());
            self.parameters.truncate(around);
        }
        if !self.queries.contains(&true)
            && let Expr::Identifier(name) = expr
            && !self.parameters.contains(&fold_name(name))
            && let Some((_, merged)) = self.names.iter().find(|(other, _)| same_name(other, name))
        {
            *expr = merged.clone();
        }
        ControlFlow::Continue(())
    }
}

/// Whether a query is a SELECT whose tables have no column named as one of `names`, and none of its
/// clauses refers to a result column of such a name.
fn lacks_names(query: &Query, names: &[(Ident, Expr)], columns: &FromColumns) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let is_named = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => {
            names.iter().any(|(name, _)| same_name(name, alias))
        }
        _ => false,
    };
    let is_grouped =
        !matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let may_refer = query.order_by.is_some()
        || is_grouped
        || select.having.is_some()
        || select.qualify.is_some()
        || matches!(select.distinct, Some(Distinct::On(_)));
    let is_known = select.from.is_empty()
        || columns.get(&from_text(&select.from)).and_then(Option::as_ref).is_some_and(|columns| {
            // A later item of SELECT may refer to the alias of an earlier one.
            query.with.is_none()
                && !select.projection.iter().any(is_named)
                && !names.iter().any(|(name, _)| columns.contains(&fold_name(name)))
        });
    is_known && !(may_refer && select.projection.iter().any(is_named))
}

pub(in crate::sql) fn coalesce_of<const N: usize>(args: [Expr; N]) -> Expr {
    let args = args.map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("coalesce")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.into(),
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

fn qualify_column(table: &ObjectName, column: &Ident) -> Expr {
    let parts = table.0.iter().filter_map(|part| part.as_ident().cloned());
    let mut column = column.clone();
    column.span = Span::empty();
    Expr::CompoundIdentifier(parts.chain([column]).collect())
}

fn last_ident(name: &ObjectName) -> Option<Ident> {
    name.0.last().and_then(|part| part.as_ident()).cloned()
}

fn same_name(a: &Ident, b: &Ident) -> bool {
    fold_name(a) == fold_name(b)
}

pub(in crate::sql) fn join_constraint(join: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator as J;
    match join {
        J::Join(c)
        | J::Inner(c)
        | J::Left(c)
        | J::LeftOuter(c)
        | J::Right(c)
        | J::RightOuter(c)
        | J::FullOuter(c)
        | J::Semi(c)
        | J::LeftSemi(c)
        | J::RightSemi(c)
        | J::Anti(c)
        | J::LeftAnti(c)
        | J::RightAnti(c)
        | J::StraightJoin(c) => Some(c),
        _ => None,
    }
}

pub(in crate::sql) fn constraint_mut(join: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator as J;
    match join {
        J::Join(c)
        | J::Inner(c)
        | J::Left(c)
        | J::LeftOuter(c)
        | J::Right(c)
        | J::RightOuter(c)
        | J::FullOuter(c) => Some(c),
        _ => None,
    }
}

pub(in crate::sql) fn using_columns(join: &JoinOperator) -> &[ObjectName] {
    match join_constraint(join) {
        Some(JoinConstraint::Using(columns)) => columns,
        _ => &[],
    }
}
