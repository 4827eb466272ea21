//! Gives an alias to subqueries in FROM whose columns could be taken for columns of another table.
//!
//! In `SELECT (SELECT count(*) FROM (SELECT a FROM t) WHERE a > t.a) FROM t`, SQL finds
//! `t.a` in the outer table, because the subquery in FROM has no table `t`. DataFusion would find
//! it in the subquery, whose columns keep the names of the tables within. For the same reason it
//! would reject `FROM (SELECT a FROM t), t`. An alias hides these names. It is added only if a
//! table next to the subquery or of a query around it has one of these names. This workaround is
//! obsolete once the test `stock_subqueries_still_keep_the_names_of_their_tables` fails.
//!
//! The columns that such a subquery computes have no table name at all, and DataFusion confuses
//! them with aliases and expressions:
//!
//! * in `SELECT b AS a, a AS b FROM (SELECT x AS a, y AS b FROM t) QUALIFY a > 1`, it takes `a` for
//!   the alias;
//! * in `FROM (SELECT x AS a, -a FROM (..)) ORDER BY -a`, it takes the sort key `-a` for the column
//!   `-a` of the subquery;
//! * in `SELECT DISTINCT -a FROM (SELECT max(x) AS a, -a FROM (..) GROUP BY -a)`, it takes the
//!   outer `-a` for the column `-a` of the subquery, whose values are unique, and drops DISTINCT.
//!
//! Columns with a table name cannot be confused like this. So an alias is also added if a column of
//! the subquery could be confused. This workaround is obsolete once the test
//! `stock_columns_of_unnamed_queries_are_still_read_as_aliases` fails.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, Statement, TableAlias, TableFactor, TableWithJoins, Visit, VisitMut, VisitorMut, With,
};

use crate::sql::base::syntax::{
    as_result, for_each_expr, list_changed_tables, list_relations, list_selects,
};
use crate::sql::statement::columns::lateral_tables::{mark_query, name_outer_columns, table_name};
use crate::sql::statement::columns::set_names::{
    add_identifiers, find_expr_name, find_unused_name, is_name,
};
use crate::sql::statement::folding::fold_name;

/// The first of the added aliases. DuckDB uses the same name. The others have a number appended.
pub(super) const UNNAMED: &str = "unnamed_subquery";

/// Adds an alias to each subquery in FROM that has none, if the subquery reads a table with the
/// name of another table (next to the subquery, or in a query around it), or if a column of the
/// subquery could be taken for an alias or an expression.
pub(in crate::sql::statement) fn name_ambiguous<S: VisitMut>(statement: &mut S) -> Result<()> {
    let mut tables = NamedTables::default();
    let _ = statement.visit(&mut tables);
    if !tables.unnamed {
        return Ok(());
    }
    let used = tables.names.into_iter().collect();
    as_result(statement.visit(&mut NameQueries { used, ..NameQueries::default() }))
}

/// The names of all tables of a statement, and whether it has a subquery in FROM without an alias.
#[derive(Default)]
struct NamedTables {
    names: Vec<String>,
    unnamed: bool,
}

impl VisitorMut for NamedTables {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Derived { alias: None, .. } => self.unnamed = true,
            other => add_names(other, &mut self.names),
        }
        ControlFlow::Continue(())
    }
}

#[derive(Default)]
struct NameQueries {
    /// The names of all tables, and the aliases added so far.
    used: HashSet<String>,
    added: usize,
    /// For each enclosing statement and query, the names in its FROM. A name occurs once for each
    /// table that has it.
    scopes: Vec<Vec<String>>,
    /// For each entry of `scopes`, the names in the expressions of the statement or query.
    used_names: Vec<UsedNames>,
    /// The WITH clause of each enclosing query. WITH clauses are visited separately, because they
    /// do not see the tables in FROM.
    withs: Vec<Option<With>>,
    /// For each subquery in FROM around the position: the entry of `scopes` that is hidden while
    /// the subquery is visited, and the value of `added` before the visit. A subquery does not see
    /// the tables next to it, so their names are hidden. A LATERAL subquery sees them, so its entry
    /// is empty.
    before: Vec<(Vec<String>, usize)>,
}

impl NameQueries {
    /// Whether one of `names`, the table names of a subquery in FROM, is also the name of another
    /// table in this FROM, or of a table of an enclosing query.
    fn is_ambiguous(&self, names: &HashSet<String>) -> bool {
        let Some((own, outer)) = self.scopes.split_last() else { return false };
        names.iter().any(|name| {
            own.iter().filter(|other| *other == name).count() > 1
                || outer.iter().any(|scope| scope.contains(name))
        })
    }

    fn needs_alias(&self, subquery: &Query) -> bool {
        let tables = find_inner_names(subquery);
        self.is_ambiguous(&tables) || self.may_confuse_columns(subquery, &tables)
    }

    /// Whether a column of a subquery in FROM could be taken for an alias or an expression. Returns
    /// false if the query around it qualifies columns with one of `tables`, the tables in the
    /// subquery: an alias of the subquery would hide their names.
    fn may_confuse_columns(&self, subquery: &Query, tables: &HashSet<String>) -> bool {
        let Some(used) = self.used_names.last() else { return false };
        if tables.iter().any(|name| used.tables.contains(&name.to_lowercase())) {
            return false;
        }
        let is_confused = |column: &String| {
            used.aliases.contains(column) || used.has_expression && !is_plain_name(column)
        };
        match list_computed(&subquery.body) {
            Some(columns) => columns.iter().any(is_confused),
            None => !used.aliases.is_empty() || used.has_expression,
        }
    }
}

/// Names in a SELECT and the ORDER BY of its query, in lower case.
#[derive(Default)]
struct UsedNames {
    /// The aliases that other columns of the SELECT, HAVING or QUALIFY mention.
    aliases: HashSet<String>,
    /// The tables that qualify columns.
    tables: HashSet<String>,
    /// Whether ORDER BY has a key that is neither a column nor a position.
    has_computed_key: bool,
    /// Whether ORDER BY or the SELECT list has an expression other than a column.
    has_expression: bool,
}

impl UsedNames {
    fn from_order(order: Option<&OrderBy>) -> Self {
        let mut names = Self::default();
        if let Some(order) = order {
            add_qualifiers(order, &mut names.tables);
            if let OrderByKind::Expressions(keys) = &order.kind {
                names.has_computed_key = keys
                    .iter()
                    .any(|key| !is_name(&key.expr) && !matches!(key.expr, Expr::Value(_)));
            }
        }
        names
    }

    /// Replaces the aliases by those of `select`, and adds the tables of `select`. Runs once for
    /// each SELECT of a query, for example for each input of a UNION.
    fn set_select(&mut self, select: &Select) {
        let is_computed = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                !is_name(expr)
            }
            _ => false,
        };
        self.has_expression = self.has_computed_key || select.projection.iter().any(is_computed);
        self.aliases = find_used_aliases(select);
        add_visible_tables(select, &mut self.tables);
    }
}

/// Adds the names of tables that qualify columns in a SELECT. Subqueries in FROM are skipped,
/// because they do not see the other tables in FROM.
fn add_visible_tables(select: &Select, tables: &mut HashSet<String>) {
    add_qualifiers(&select.distinct, tables);
    add_qualifiers(&select.projection, tables);
    add_qualifiers(&select.selection, tables);
    add_qualifiers(&select.group_by, tables);
    add_qualifiers(&select.having, tables);
    add_qualifiers(&select.named_window, tables);
    add_qualifiers(&select.qualify, tables);
    for from in &select.from {
        for table in list_relations(from) {
            if !matches!(table, TableFactor::Derived { lateral: false, .. }) {
                add_qualifiers(table, tables);
            }
        }
        from.joins.iter().for_each(|join| add_qualifiers(&join.join_operator, tables));
    }
    for item in &select.projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) =
            item
        {
            let parts = name.0.iter().filter_map(|part| part.as_ident());
            tables.extend(parts.map(|part| part.value.to_lowercase()));
        }
    }
}

fn add_qualifiers<V: Visit>(node: &V, tables: &mut HashSet<String>) {
    for_each_expr(node, |expr| {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some((_, qualifiers)) = parts.split_last()
        {
            tables.extend(qualifiers.iter().map(|part| part.value.to_lowercase()));
        }
    });
}

/// Returns the aliases in a SELECT that its other columns, HAVING or QUALIFY mention, in lower
/// case.
fn find_used_aliases(select: &Select) -> HashSet<String> {
    let mut columns: Vec<(Option<&Ident>, &Expr)> = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::ExprWithAlias { expr, alias } => columns.push((Some(alias), expr)),
            SelectItem::UnnamedExpr(expr) => columns.push((None, expr)),
            SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
                let replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
                columns.extend(replaced.map(|item| (Some(&item.column_name), &item.expr)));
            }
            _ => {}
        }
    }
    let mut after = HashSet::new();
    add_identifiers(&select.having, &mut after);
    add_identifiers(&select.qualify, &mut after);
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut aliases: Vec<(String, bool)> = Vec::new();
    for (alias, expr) in columns {
        let mut names = HashSet::new();
        add_identifiers(expr, &mut names);
        if let Some(alias) = alias {
            let alias = alias.value.to_lowercase();
            let is_own = names.contains(&alias);
            aliases.push((alias, is_own));
        }
        for name in names {
            let count = counts.entry(name).or_default();
            *count = count.saturating_add(1);
        }
    }
    let is_used = |(alias, is_own): &(String, bool)| {
        after.contains(alias)
            || counts.get(alias).is_some_and(|count| *count > usize::from(*is_own))
    };
    aliases.into_iter().filter(is_used).map(|(alias, _)| alias).collect()
}

/// Returns the lower-case names of the columns in a SELECT list, without those of `*`. Returns
/// `None` if a column that is not in the list, such as a column of `*`, may lack a table name.
fn list_computed(body: &SetExpr) -> Option<Vec<String>> {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::Query(query) => return list_computed(&query.body),
        _ => return None,
    };
    // `*` over tables returns only columns with a table name, unless a join merges columns.
    let has_only_tables = || {
        let mut tables = select.from.iter();
        tables.all(|from| from.joins.is_empty() && table_name(&from.relation).is_some())
    };
    if select.projection.is_empty() && !has_only_tables() {
        return None;
    }
    let mut columns = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        match item {
            SelectItem::ExprWithAlias { alias, .. } => columns.push(alias.value.to_lowercase()),
            SelectItem::UnnamedExpr(expr) => columns.push(find_expr_name(expr).to_lowercase()),
            SelectItem::Wildcard(options) if options.opt_replace.is_none() && has_only_tables() => {
            }
            _ => return None,
        }
    }
    Some(columns)
}

/// Whether a name has only letters, digits and `_`, so that it cannot be the generated name of an
/// expression.
fn is_plain_name(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl VisitorMut for NameQueries {
    type Break = DataFusionError;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<DataFusionError> {
        let mut names = Vec::new();
        for from in list_changed_tables(statement) {
            add_tables(from, &mut names);
        }
        self.scopes.push(names);
        self.used_names.push(UsedNames::default());
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, _statement: &mut Statement) -> ControlFlow<DataFusionError> {
        self.scopes.pop();
        self.used_names.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        let mut with = query.with.take();
        VisitMut::visit(&mut with, self)?;
        self.withs.push(with);
        self.scopes.push(Vec::new());
        self.used_names.push(UsedNames::from_order(query.order_by.as_ref()));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        self.scopes.pop();
        self.used_names.pop();
        query.with = self.withs.pop().flatten();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        // The names stay in the scope after the SELECT: ORDER BY of the query, which is visited
        // later, sees the same tables.
        if let Some(scope) = self.scopes.last_mut() {
            scope.clear();
            select.from.iter().for_each(|from| add_tables(from, scope));
        }
        if let Some(names) = self.used_names.last_mut() {
            names.set_select(select);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<DataFusionError> {
        if let TableFactor::Derived { lateral, .. } = factor {
            let hidden = match self.scopes.last_mut() {
                Some(scope) if !*lateral => std::mem::take(scope),
                _ => Vec::new(),
            };
            self.before.push((hidden, self.added));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(
        &mut self,
        factor: &mut TableFactor,
    ) -> ControlFlow<DataFusionError> {
        let TableFactor::Derived { lateral, .. } = &*factor else {
            return ControlFlow::Continue(());
        };
        let lateral = *lateral;
        let Some((hidden, added)) = self.before.pop() else { return ControlFlow::Continue(()) };
        if !lateral && let Some(scope) = self.scopes.last_mut() {
            *scope = hidden;
        }
        if added < self.added {
            // A query in the FROM of `factor` has just got an alias. `name_outer_columns` changes
            // nothing before every table in this FROM has a name, so it is called again.
            name_outer_columns(factor);
        }
        if let TableFactor::Derived { subquery, alias: alias @ None, .. } = factor
            && self.needs_alias(subquery)
        {
            let name = Ident::new(find_unused_name(UNNAMED, &mut self.used, &HashSet::new()));
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
            self.added = self.added.saturating_add(1);
            if let Err(e) = mark_query(factor) {
                return ControlFlow::Break(e);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Adds the names by which DataFusion finds the columns of the tables in FROM.
fn add_tables(from: &TableWithJoins, names: &mut Vec<String>) {
    list_relations(from).for_each(|factor| add_names(factor, names));
}

fn add_names(factor: &TableFactor, names: &mut Vec<String>) {
    match factor {
        TableFactor::NestedJoin { table_with_joins, alias } => {
            add_tables(table_with_joins, names);
            names.extend(alias.as_ref().map(|alias| fold_name(&alias.name)));
        }
        TableFactor::Derived { subquery, alias: None, .. } => {
            names.extend(find_inner_names(subquery))
        }
        other => names.extend(table_name(other).map(fold_name)),
    }
}

/// Returns the names of the tables in FROM of a query, also of the inputs of a set operation.
fn find_inner_names(query: &Query) -> HashSet<String> {
    let mut names = Vec::new();
    for from in list_selects(query).into_iter().flat_map(|select| &select.from) {
        add_tables(from, &mut names);
    }
    names.into_iter().collect()
}
