//! Plans parts of a statement to learn the columns of its tables and of the FROM of its subqueries.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, Expr, Ident, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, VisitMut,
    VisitorMut,
};

use crate::sql::base::syntax::{has_query, list_relations, parse_query};
use crate::sql::statement::columns::join_constraints::{has_using, list_using_columns};
use crate::sql::statement::columns::merged::names::{find_last_ident, is_bare};
use crate::sql::statement::folding::{fold_name, is_same_name};
use crate::sql::statement::planned_parts::{
    add_queries, list_column_names, plan_names, to_statement,
};
use crate::sql::statement::scopes::{CteScopes, is_lateral_query};

/// The columns of the FROM of each subquery in an expression, and of the FROM of each LATERAL
/// query; `None` if they are unknown. The key is the text of the FROM.
pub(super) type FromColumns = HashMap<String, Option<HashSet<String>>>;

/// The columns of tables in FROM, by the text of the table, or the reason why they are unknown.
/// Only SELECTs with USING add their tables, and only in three cases: a `*` has EXCLUDE or REPLACE,
/// [`needs_columns`] is true, or the SELECT list has subqueries and [`has_others`] is true.
pub(super) type TableColumns = HashMap<String, Result<HashSet<String>, String>>;

/// Plans the FROM of each subquery in a statement with USING, to learn whether an unqualified name
/// in the subquery means a column of the subquery or a merged column of an outer query. Also plans
/// the tables of [`TableColumns`]. Returns `None` if no join of the statement has USING.
pub(super) async fn find_columns<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> Option<(FromColumns, TableColumns)> {
    let mut columns = FromColumns::new();
    let mut relations = TableColumns::new();
    let mut using = UsingNames::default();
    let _ = statement.visit(&mut using);
    if using.0.is_empty() {
        return None;
    }
    let mut inner = InnerTables {
        scopes: CteScopes::default(),
        depth: 0,
        found: Vec::new(),
        relations: Vec::new(),
    };
    let _ = statement.visit(&mut inner);
    for (text, query) in inner.relations {
        let found = plan_columns(state, query).await;
        // Two tables may have the same text: a name that two WITH clauses define with different
        // columns. Then the columns are unknown.
        let known = match relations.remove(&text) {
            Some(other) if other != found => Err(REPEATED_NAME.to_owned()),
            _ => found,
        };
        relations.insert(text, known);
    }
    for (text, query) in inner.found {
        let found = plan_from(state, query, &using.0).await;
        // Two FROM with the same text may have different columns, if two WITH clauses define a name
        // in this text. The entry then has the columns of both.
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
    Some((columns, relations))
}

/// The reason in [`TableColumns`] why the columns of a table are unknown, if two WITH clauses
/// define its name.
const REPEATED_NAME: &str = "several WITH queries have this name";

/// Plans a query of all columns of a FROM, and returns their names. If this fails, the FROM may use
/// outer columns, so this function plans the query again as a LATERAL query next to a table with
/// the columns `names`. Returns `None` if this fails, too.
async fn plan_from(
    state: &SessionState,
    query: Query,
    names: &BTreeSet<String>,
) -> Option<HashSet<String>> {
    let found = match plan_names(state, query.clone()).await {
        None => plan_names(state, add_outer_columns(query, names)?).await,
        found => found,
    };
    Some(found?.into_iter().collect())
}

fn add_outer_columns(mut query: Query, names: &BTreeSet<String>) -> Option<Query> {
    let columns = names.iter().map(|name| format!("NULL AS {}", Ident::with_quote('"', name)));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let text = format!(
        "SELECT __serrate_from.* FROM (SELECT {columns}) AS __serrate_outer CROSS JOIN LATERAL (SELECT 1) AS __serrate_from"
    );
    let mut around = parse_query(&text).ok()?;
    around.with = query.with.take();
    let SetExpr::Select(select) = around.body.as_mut() else { return None };
    let lateral = &mut select.from.first_mut()?.joins.first_mut()?.relation;
    let TableFactor::Derived { subquery, .. } = lateral else { return None };
    **subquery = query;
    Some(around)
}

/// Plans a query and returns the names of its columns.
///
/// # Errors
/// The message of the planner, if the query cannot be planned.
async fn plan_columns(state: &SessionState, query: Query) -> Result<HashSet<String>, String> {
    let plan = state.statement_to_plan(to_statement(query)).await;
    Ok(list_column_names(&plan.map_err(|e| e.strip_backtrace())?))
}

/// Returns the SELECT of a query, or those of a set operation. Returns none if an input is not a
/// SELECT, such as VALUES.
pub(super) fn list_only_selects(body: &SetExpr) -> Vec<&Select> {
    match body {
        SetExpr::Select(select) => vec![select.as_ref()],
        SetExpr::SetOperation { left, right, .. } => {
            let (mut left, right) = (list_only_selects(left), list_only_selects(right));
            if left.is_empty() || right.is_empty() {
                return Vec::new();
            }
            left.extend(right);
            left
        }
        _ => Vec::new(),
    }
}

pub(super) fn from_text(from: &[TableWithJoins]) -> String {
    from.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Visitor that collects the columns that USING names in a statement. Without such columns, the
/// visitor [`InnerTables`], which copies queries, is skipped.
#[derive(Default)]
struct UsingNames(BTreeSet<String>);

impl UsingNames {
    fn add_from(&mut self, from: &TableWithJoins) {
        for relation in list_relations(from) {
            if let TableFactor::NestedJoin { table_with_joins, .. } = relation {
                self.add_from(table_with_joins);
            }
        }
        let columns = from.joins.iter().flat_map(|join| list_using_columns(&join.join_operator));
        self.0.extend(columns.filter_map(find_last_ident).map(|name| fold_name(&name)));
    }
}

impl VisitorMut for UsingNames {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for from in &select.from {
            self.add_from(from);
        }
        ControlFlow::Continue(())
    }
}

/// Visitor that collects the FROM of each subquery of [`FromColumns`], and each table of
/// [`TableColumns`]. For each FROM and each table, it builds a query that returns all columns.
struct InnerTables {
    scopes: CteScopes<Cte>,
    /// The number of expressions and LATERAL tables around the current position.
    depth: usize,
    found: Vec<(String, Query)>,
    relations: Vec<(String, Query)>,
}

impl InnerTables {
    fn add_subquery(&mut self, query: &Query) {
        if self.depth == 0 || query.with.is_some() {
            return;
        }
        let selects = list_only_selects(&query.body);
        for select in selects.iter().filter(|select| !select.from.is_empty()) {
            let Ok(mut all) = parse_query("SELECT * FROM t") else { return };
            if let SetExpr::Select(star) = all.body.as_mut() {
                star.from = select.from.clone();
            }
            self.found.push((from_text(&select.from), add_queries(all, &self.scopes)));
        }
    }

    /// Adds the tables in one item of FROM, also those of joins in parentheses. `all` is the whole
    /// FROM.
    fn add_relations(&mut self, from: &TableWithJoins, all: &[TableWithJoins]) {
        for relation in list_relations(from) {
            if let TableFactor::NestedJoin { table_with_joins, alias: None } = relation {
                self.add_relations(table_with_joins, all);
            } else if let Ok(query) = select_all(relation, all) {
                self.relations.push((relation.to_string(), add_queries(query, &self.scopes)));
            }
        }
    }
}

/// Returns a query that selects all columns of the table `relation` in FROM. `all` is the whole
/// FROM, because a LATERAL table may use columns of the tables before it.
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
        self.add_subquery(query);
        self.scopes.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_scope();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let has_options =
            |item: &SelectItem| matches!(item, SelectItem::Wildcard(options) if !is_bare(options));
        let needs_others = || has_others(&select.from) && has_query(&select.projection);
        if select.from.iter().any(has_using)
            && (select.projection.iter().any(has_options)
                || select.from.iter().any(needs_columns)
                || needs_others())
        {
            for from in &select.from {
                self.add_relations(from, &select.from);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        self.depth += usize::from(is_lateral_query(table));
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        self.depth -= usize::from(is_lateral_query(table));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Whether a FROM has a table that USING joins with no other table.
fn has_others(from: &[TableWithJoins]) -> bool {
    let mut joins = from.iter().flat_map(|item| &item.joins);
    from.len() > 1 || joins.any(|join| list_using_columns(&join.join_operator).is_empty())
}

/// Whether a FROM does not show which table has a column of USING. In `a JOIN b ON .. JOIN c USING
/// (k)`, `k` may be a column of `a` or of `b`; in `a JOIN b USING (k) JOIN c USING (k)`, of both.
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
        let names = list_using_columns(&join.join_operator).iter().filter_map(find_last_ident);
        for name in names {
            let is_seen = seen.iter().any(|known| is_same_name(known, &name));
            is_unknown |= right.is_some() || has_several && !is_seen;
            seen.push(name);
        }
        is_unknown |= right == Some(true);
        has_several = true;
    }
    is_unknown
}
