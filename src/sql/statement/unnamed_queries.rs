//! Gives an alias to subqueries in FROM whose columns could be taken for columns of another table.
//!
//! In `SELECT (SELECT count(*) FROM (SELECT a FROM t) WHERE a > t.a) FROM t`, SQL finds `t.a` in the outer table, because
//! the subquery in FROM has no table `t`. DataFusion would find it in the subquery, whose columns keep the names of
//! the tables within. For the same reason it would reject `FROM (SELECT a FROM t), t`. An alias hides these names. It is
//! added only if a table next to the subquery or of a query around it has one of these names. Obsolete once the test
//! `stock_subqueries_still_keep_the_names_of_their_tables` fails.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    FromTable, Ident, Query, Select, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins,
    UpdateTableFromKind, VisitMut, VisitorMut, With,
};

use crate::sql::statement::folding::fold_name;
use crate::sql::statement::lateral_tables::{mark_query, name_outer_columns, table_name};
use crate::sql::statement::set_names::unused_name;

/// The first of the added aliases. DuckDB uses the same name. The others have a number appended.
pub(super) const UNNAMED: &str = "unnamed_subquery";

/// Adds an alias to each subquery in FROM that has a table of the same name as a table next to or around it.
pub(super) fn name_ambiguous<S: VisitMut>(statement: &mut S) -> Result<()> {
    let mut tables = NamedTables::default();
    let _ = statement.visit(&mut tables);
    if !tables.unnamed {
        return Ok(());
    }
    let used = tables.names.into_iter().collect();
    match statement.visit(&mut NameQueries { used, ..NameQueries::default() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(e) => Err(e),
    }
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
    /// For each statement and query around the visitor's position, the names in its FROM. A name occurs once for each
    /// table that has it.
    scopes: Vec<Vec<String>>,
    /// The WITH clauses of these queries. They are visited apart, because they do not see the tables in FROM.
    withs: Vec<Option<With>>,
    /// For each subquery in FROM around the position, the names in that FROM, unless it is LATERAL and sees them, and
    /// the number of aliases added before.
    before: Vec<(Vec<String>, usize)>,
}

impl NameQueries {
    /// Whether a table next to the current table of FROM, or of a query around it, has one of its names.
    fn is_ambiguous(&self, names: &HashSet<String>) -> bool {
        let Some((own, outer)) = self.scopes.split_last() else { return false };
        names.iter().any(|name| {
            own.iter().filter(|other| *other == name).count() > 1
                || outer.iter().any(|scope| scope.contains(name))
        })
    }
}

impl VisitorMut for NameQueries {
    type Break = DataFusionError;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<DataFusionError> {
        let mut names = Vec::new();
        match statement {
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                let using = delete.using.iter().flatten();
                from.iter().chain(using).for_each(|from| add_tables(from, &mut names));
            }
            Statement::Update(update) => {
                add_tables(&update.table, &mut names);
                if let Some(
                    UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from),
                ) = &update.from
                {
                    from.iter().for_each(|from| add_tables(from, &mut names));
                }
            }
            _ => {}
        }
        self.scopes.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, _statement: &mut Statement) -> ControlFlow<DataFusionError> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        let mut with = query.with.take();
        with.visit(self)?;
        self.withs.push(with);
        self.scopes.push(Vec::new());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        self.scopes.pop();
        query.with = self.withs.pop().flatten();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        // ORDER BY of the query, which is visited after the SELECT, sees the same tables.
        if let Some(scope) = self.scopes.last_mut() {
            scope.clear();
            select.from.iter().for_each(|from| add_tables(from, scope));
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
            // A table within has a name only now, so this was not yet done.
            name_outer_columns(factor);
        }
        if let TableFactor::Derived { subquery, alias: alias @ None, .. } = factor
            && self.is_ambiguous(&find_inner_names(subquery))
        {
            let name = Ident::new(unused_name(UNNAMED, &mut self.used, &HashSet::new()));
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
    let joined = from.joins.iter().map(|join| &join.relation);
    std::iter::once(&from.relation).chain(joined).for_each(|factor| add_names(factor, names));
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
    let (mut open, mut names) = (vec![query.body.as_ref()], Vec::new());
    while let Some(body) = open.pop() {
        match body {
            SetExpr::Select(select) => {
                select.from.iter().for_each(|from| add_tables(from, &mut names));
            }
            SetExpr::Query(inner) => open.push(inner.body.as_ref()),
            SetExpr::SetOperation { left, right, .. } => open.extend([&**left, &**right]),
            _ => {}
        }
    }
    names.into_iter().collect()
}
