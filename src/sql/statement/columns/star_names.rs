//! Gives unique names to the columns of queries with `*` where DataFusion rejects repeated names.
//!
//! `SELECT *, x` repeats a name of the star. In UNION, EXCEPT and INTERSECT, the inputs correspond
//! by position, but DataFusion gives the columns of all inputs the names of the first input, and
//! rejects two columns with the same name. The names of a star are known only after planning, so
//! each of these queries is first planned alone. This workaround is obsolete once the test
//! `stock_set_operations_by_name_still_fail` fails.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, Expr, Ident, Query, Select, SelectItem, SetExpr, TableAliasColumnDef, TableFactor,
    VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use crate::sql::base::syntax::{is_star, name_item, parse_query};
use crate::sql::statement::columns::set_names::{add_identifiers, find_unused_name, is_name};
use crate::sql::statement::planned_parts::{add_queries, plan_names};
use crate::sql::statement::scopes::CteScopes;

/// Gives unique names to the columns of SELECTs with `*` and of inputs of set operations with `*`.
pub(in crate::sql) async fn name_apart<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> Result<()> {
    let mut stars = StarVisitor {
        scopes: CteScopes::default(),
        ordered: Vec::new(),
        places: Vec::new(),
        known: None,
    };
    let _ = statement.visit(&mut stars);
    if stars.places.is_empty() {
        return Ok(());
    }
    let mut known = Vec::with_capacity(stars.places.len());
    for place in stars.places {
        known.push(match place {
            NamedQuery::Input(query) => KnownNames::Input(find_repeated_names(state, *query).await),
            NamedQuery::Columns(both) => {
                let (query, stars) = *both;
                // A SELECT that DataFusion can plan keeps its column names.
                KnownNames::Columns(match plan_names(state, query).await {
                    Some(_) => None,
                    None => plan_names(state, stars).await,
                })
            }
        });
    }
    let known = Some(known.into_iter());
    let mut stars = StarVisitor {
        scopes: CteScopes::default(),
        ordered: Vec::new(),
        places: Vec::new(),
        known,
    };
    let _ = statement.visit(&mut stars);
    Ok(())
}

/// Returns unique names for a query's columns; `None` if they are unique already or planning fails.
async fn find_repeated_names(state: &SessionState, query: Query) -> Option<Vec<String>> {
    let names = plan_names(state, query).await?;
    let mut used = HashSet::new();
    let all: HashSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let apart: Vec<String> =
        names.iter().map(|name| find_unused_name(name, &mut used, &all)).collect();
    (apart != names).then_some(apart)
}

/// A part of a statement whose columns may need new names: an input of a set operation with a star,
/// or a SELECT. It is planned alone, because the names of its columns are known only after
/// planning.
enum NamedQuery {
    Input(Box<Query>),
    /// A SELECT with a star and other columns. `SELECT *, x FROM t` is kept as two queries:
    /// unchanged, and as `SELECT * FROM t`.
    Columns(Box<(Query, Query)>),
}

enum KnownNames {
    Input(Option<Vec<String>>),
    /// The names of the columns of the stars, or `None` if the SELECT keeps its column names.
    Columns(Option<Vec<String>>),
}

/// Visitor of queries with stars: collects them in a first pass and renames columns in a second
/// one.
struct StarVisitor {
    scopes: CteScopes<Cte>,
    /// The identifiers in ORDER BY of each query around the visitor's position.
    ordered: Vec<HashSet<String>>,
    places: Vec<NamedQuery>,
    known: Option<std::vec::IntoIter<KnownNames>>,
}

impl StarVisitor {
    fn name_inputs(&mut self, body: &mut SetExpr) {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.name_inputs(left);
                self.name_inputs(right);
            }
            SetExpr::Query(query) if query.with.is_none() => self.name_inputs(&mut query.body),
            SetExpr::Select(select) if select.projection.iter().any(is_star) => {
                let Some(known) = &mut self.known else {
                    self.places.extend(
                        self.build_query(body.clone())
                            .map(|query| NamedQuery::Input(Box::new(query))),
                    );
                    return;
                };
                if let Some(KnownNames::Input(Some(names))) = known.next() {
                    name_input(body, names);
                }
            }
            _ => {}
        }
    }

    fn name_columns(&mut self, select: &mut Select) {
        let is_column =
            |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(e) if is_name(e));
        if !select.projection.iter().any(is_star) || !select.projection.iter().any(is_column) {
            return;
        }
        let Some(known) = &mut self.known else {
            let mut stars = select.clone();
            stars.projection.retain(is_star);
            let plain = self.build_query(SetExpr::Select(Box::new(select.clone())));
            let stars = self.build_query(SetExpr::Select(Box::new(stars)));
            self.places.extend(plain.zip(stars).map(|both| NamedQuery::Columns(Box::new(both))));
            return;
        };
        let Some(KnownNames::Columns(Some(of_stars))) = known.next() else { return };
        let mut avoided = self.ordered.last().cloned().unwrap_or_default();
        add_identifiers(select, &mut avoided);
        if let Some(items) = write_out_star(&select.projection, &of_stars, &avoided) {
            select.projection = items;
            return;
        }
        let mut used: HashSet<String> = of_stars.iter().map(|name| name.to_lowercase()).collect();
        used.extend(list_aliases(&select.projection));
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            let Some(name) = find_last_name(expr) else { continue };
            let other = find_unused_name(&name.value, &mut used, &avoided);
            if other != name.value {
                name_item(item, other);
            }
        }
    }

    /// Returns a query of a SELECT or set operation with the visible CTEs, or `None` if it cannot
    /// be built.
    fn build_query(&self, body: SetExpr) -> Option<Query> {
        let mut query = parse_query("SELECT 1").ok()?;
        *query.body = body;
        Some(add_queries(query, &self.scopes))
    }
}

impl VisitorMut for StarVisitor {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter_query(query);
        let mut ordered = HashSet::new();
        add_identifiers(&query.order_by, &mut ordered);
        self.ordered.push(ordered);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.ordered.pop();
        // Here, inner queries are already rewritten, and `scopes` still has the CTEs of this query.
        if matches!(*query.body, SetExpr::SetOperation { .. }) {
            self.name_inputs(&mut query.body);
        }
        self.scopes.leave_scope();
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.name_columns(select);
        ControlFlow::Continue(())
    }
}

fn find_last_name(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}

/// Returns the aliases of a SELECT in lower case.
fn list_aliases(items: &[SelectItem]) -> impl Iterator<Item = String> {
    items.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
        _ => None,
    })
}

/// Replaces the star in a SELECT list such as `id, *`, where `id` is also a column of the star:
/// `id, *` -> `id, "id" AS "id_1", "code"`. The first of the two columns keeps the name. Returns
/// `None` if no column before the star has the name of a column of the star, if the star has
/// options, or if two columns of the star have the same name.
fn write_out_star(
    items: &[SelectItem],
    of_star: &[String],
    avoided: &HashSet<String>,
) -> Option<Vec<SelectItem>> {
    let mut stars = items.iter().enumerate().filter(|(_, item)| is_star(item));
    let (Some((at, SelectItem::Wildcard(options))), None) = (stars.next(), stars.next()) else {
        return None;
    };
    let in_star: HashSet<String> = of_star.iter().map(|name| name.to_lowercase()).collect();
    let is_repeated = items.iter().take(at).any(|item| match item {
        SelectItem::UnnamedExpr(expr) => {
            find_last_name(expr).is_some_and(|name| in_star.contains(&name.value.to_lowercase()))
        }
        _ => false,
    });
    let is_plain = *options == WildcardAdditionalOptions::default();
    if !is_repeated || !is_plain || in_star.len() != of_star.len() {
        return None;
    }
    let avoided: HashSet<String> = avoided.iter().cloned().chain(in_star).collect();
    let mut used: HashSet<String> = list_aliases(items).collect();
    let mut before = HashSet::new();
    let mut written = Vec::new();
    let name_item = |expr: Expr, name: &str, used: &mut HashSet<String>| {
        let other = find_unused_name(name, used, &avoided);
        if other == name {
            return SelectItem::UnnamedExpr(expr);
        }
        SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', other) }
    };
    for item in items {
        match item {
            SelectItem::Wildcard(_) => written.extend(of_star.iter().map(|name| {
                let column = Expr::Identifier(Ident::with_quote('"', name));
                match before.contains(&name.to_lowercase()) {
                    true => name_item(column, name, &mut used),
                    false => {
                        used.insert(name.to_lowercase());
                        SelectItem::UnnamedExpr(column)
                    }
                }
            })),
            SelectItem::UnnamedExpr(expr) => written.push(match find_last_name(expr) {
                Some(name) => {
                    before.insert(name.value.to_lowercase());
                    name_item(expr.clone(), &name.value, &mut used)
                }
                None => item.clone(),
            }),
            other => written.push(other.clone()),
        }
    }
    Some(written)
}

/// Replaces an input of UNION, EXCEPT or INTERSECT with `SELECT * FROM (input) AS i (names)`, which
/// gives its columns the names `names`.
fn name_input(input: &mut SetExpr, names: Vec<String>) {
    let Ok(mut around) = parse_query("SELECT * FROM (SELECT 1) AS __serrate_input (x)") else {
        return;
    };
    let SetExpr::Select(select) = around.body.as_mut() else { return };
    let from = select.from.first_mut().map(|from| &mut from.relation);
    let Some(TableFactor::Derived { subquery, alias: Some(alias), .. }) = from else { return };
    let named = |name| TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None };
    alias.columns = names.into_iter().map(named).collect();
    std::mem::swap(subquery.body.as_mut(), input);
    *input = *around.body;
}
