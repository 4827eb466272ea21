//! Reads fields of structs whose names DataFusion 55 refuses or takes for other columns.
//!
//! DataFusion refuses `o.s.a` within a subquery, where `o` is a table of the query around it, but
//! accepts `(o.s).a`. The argument of `unnest` in FROM sees the tables before it like this, too: in
//! `FROM t, unnest(t.v) AS u(s), unnest(s.codes)`, `s` is a column of an outer table. This
//! workaround is obsolete once `stock_fields_of_outer_structs_are_still_refused` fails.
//!
//! DataFusion reads `t.s.a` as the column `a` of a table `s`, if FROM has such a table: it does not
//! check that the schema of the table is `t`. This workaround is obsolete once the test
//! `stock_names_are_still_read_without_their_schema` fails.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Query, Select, Statement,
    TableAlias, TableFactor, TableWithJoins, Value, VisitMut, VisitorMut,
};

use crate::sql::base::syntax::{list_changed_tables, list_relations, list_selects, to_plain_name};
use crate::sql::statement::columns::lateral_tables::table_name;
use crate::sql::statement::folding::fold_name;
use crate::sql::statement::scopes::CteScopes;

pub(in crate::sql) fn access_outer_fields<S: VisitMut + ?Sized>(statement: &mut S) {
    let _ = statement.visit(&mut OuterFields::default());
}

/// The tables in FROM of each query around the current position.
#[derive(Default)]
struct OuterFields {
    /// The names of the tables.
    tables: Vec<HashSet<String>>,
    /// The columns that aliases of the tables name, such as `s` in `unnest(t.v) AS u(s)`.
    columns: Vec<HashSet<String>>,
}

impl OuterFields {
    /// Returns the number of parts of a name in the argument of `unnest` up to its column, if a
    /// field follows: 1 for `s.codes`, 2 for `u.s.codes`. Returns `None` for other names.
    fn find_unnested_column(&self, parts: &[Ident]) -> Option<usize> {
        let has = |names: &[HashSet<String>], part: &Ident| {
            let name = fold_name(part);
            names.iter().any(|names| names.contains(&name))
        };
        let [first, second, rest @ ..] = parts else { return None };
        // `z.t.v` is a column of a table `t` in a schema `z`.
        if !rest.is_empty() && has(&self.tables, second) {
            return None;
        }
        match has(&self.tables, first) {
            true => (!rest.is_empty()).then_some(2),
            false => has(&self.columns, first).then_some(1),
        }
    }
}

impl VisitorMut for OuterFields {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let factors = list_factors(query);
        let names = factors.iter().filter_map(|factor| table_name(factor));
        self.tables.push(names.map(fold_name).collect());
        let aliases = factors.iter().filter_map(|factor| find_alias(factor));
        let columns = aliases.flat_map(|alias| &alias.columns);
        self.columns.push(columns.map(|column| fold_name(&column.name)).collect());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.tables.pop();
        self.columns.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        for arg in list_unnested(factor) {
            let Expr::CompoundIdentifier(parts) = &*arg else { continue };
            if let Some(length) = self.find_unnested_column(parts) {
                let (column, fields) = parts.split_at(length);
                *arg = access_outer_column(column, fields);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::CompoundIdentifier(parts) = &*expr else { return ControlFlow::Continue(()) };
        let ([table, column, fields @ ..], Some((own, outer))) =
            (parts.as_slice(), self.tables.split_last())
        else {
            return ControlFlow::Continue(());
        };
        let name = fold_name(table);
        if !fields.is_empty()
            && !own.contains(&name)
            && outer.iter().any(|tables| tables.contains(&name))
        {
            *expr = access_outer_column(&[table.clone(), column.clone()], fields);
        }
        ControlFlow::Continue(())
    }
}

/// Returns `(o.s).a` for the column `o.s` and the field `a`.
fn access_outer_column(column: &[Ident], fields: &[Ident]) -> Expr {
    let of = match column {
        [name] => Expr::Identifier(name.clone()),
        parts => Expr::CompoundIdentifier(parts.to_vec()),
    };
    let fields = fields.iter().cloned().map(|f| AccessExpr::Dot(Expr::Identifier(f)));
    Expr::CompoundFieldAccess {
        root: Box::new(Expr::Nested(Box::new(of))),
        access_chain: fields.collect(),
    }
}

fn list_factors(query: &Query) -> Vec<&TableFactor> {
    let items = list_selects(query).into_iter().flat_map(|select| &select.from);
    items.flat_map(list_relations).collect()
}

fn find_alias(factor: &TableFactor) -> Option<&TableAlias> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_ref(),
        _ => None,
    }
}

/// Returns the arguments of `unnest` in FROM; none for other tables.
fn list_unnested(factor: &mut TableFactor) -> Vec<&mut Expr> {
    let args = match factor {
        TableFactor::UNNEST { array_exprs, .. } => return array_exprs.iter_mut().collect(),
        TableFactor::Table { name, args: Some(args), .. } if is_unnest(name) => &mut args.args,
        TableFactor::Function { name, args, .. } if is_unnest(name) => args,
        _ => return Vec::new(),
    };
    let exprs = args.iter_mut().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    exprs.collect()
}

fn is_unnest(name: &ObjectName) -> bool {
    to_plain_name(name).is_some_and(|name| name == "unnest")
}

/// The schema that `outer_tables` writes before the name of a table that has an alias or is a
/// query.
pub(in crate::sql::statement) const OUTER: &str = "__serrate_outer";

/// Rewrites `t.s.a`, the field `a` of the struct column `s` of table `t`, to `(t.s).a` if FROM also
/// has a table `s`. DataFusion would read `t.s.a` as the column `a` of this table, although it is
/// not in a schema `t`.
pub(in crate::sql) fn access_own_fields<S: VisitMut>(state: &SessionState, statement: &mut S) {
    let _ = statement.visit(&mut OwnFields::new(state));
}

/// A table in FROM.
pub(super) struct VisibleTable {
    pub(super) name: String,
    /// The catalog and the schema, unless the table is a query or has an alias.
    pub(super) path: Option<[String; 2]>,
}

pub(super) struct OwnFields {
    /// The default catalog and schema.
    default: [String; 2],
    /// The names of the WITH queries that are visible at the current position.
    queries: CteScopes<String>,
    /// For the statement and each query around the current position, the tables in FROM.
    pub(super) scopes: Vec<Vec<VisibleTable>>,
}

impl OwnFields {
    pub(super) fn new(state: &SessionState) -> Self {
        let catalog = &state.config_options().catalog;
        let default = [catalog.default_catalog.clone(), catalog.default_schema.clone()];
        Self { default, queries: CteScopes::default(), scopes: Vec::new() }
    }

    fn add_relations(&self, from: &TableWithJoins, out: &mut Vec<VisibleTable>) {
        for factor in list_relations(from) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    self.add_relations(table_with_joins, out);
                }
                TableFactor::NestedJoin { alias: Some(alias), .. } => {
                    out.push(VisibleTable { name: fold_name(&alias.name), path: None });
                }
                other => out.extend(table_name(other).map(|name| {
                    let name = fold_name(name);
                    VisibleTable { path: self.find_path(other, &name), name }
                })),
            }
        }
    }

    fn find_path(&self, factor: &TableFactor, visible: &str) -> Option<[String; 2]> {
        let TableFactor::Table { name, args: None, .. } = factor else { return None };
        let parts: Vec<String> =
            name.0.iter().filter_map(|part| part.as_ident()).map(fold_name).collect();
        let [catalog, schema] = &self.default;
        match parts.as_slice() {
            [table] if table == visible && !self.queries.iter_visible().any(|q| q == table) => {
                Some([catalog.clone(), schema.clone()])
            }
            [schema, table] if table == visible => Some([catalog.clone(), schema.clone()]),
            [catalog, schema, table] if table == visible => Some([catalog.clone(), schema.clone()]),
            _ => None,
        }
    }

    /// Returns the number of parts of a name up to its column: 2 for `t.s.a`, where `a` is a field
    /// of the column `t.s`. Returns `None` for a name that DataFusion reads correctly.
    fn find_column(&self, parts: &[Ident]) -> Option<usize> {
        let names: Vec<String> = parts.iter().map(fold_name).collect();
        if names.first().is_some_and(|name| name == OUTER) {
            return None;
        }
        // The last part of a name is a column or a field, never a table.
        let is_table = |relations: &[VisibleTable], at: usize| {
            at + 1 < names.len() && relations.iter().any(|table| table.name == names[at])
        };
        let relations = self
            .scopes
            .iter()
            .rev()
            .find(|relations| is_table(relations, 1) || is_table(relations, 2))?;
        let has = |of: &str, is_in: &dyn Fn(&[String; 2]) -> bool| {
            relations.iter().any(|table| table.name == of && table.path.as_ref().is_some_and(is_in))
        };
        let length = match names.as_slice() {
            [catalog, schema, table, _, ..]
                if has(table, &|[c, s]| c == catalog && s == schema) =>
            {
                4
            }
            // In `catalog.table.column`, the table is in the default schema.
            [of, table, _, ..]
                if has(table, &|[c, s]| s == of || (c == of && *s == self.default[1])) =>
            {
                3
            }
            _ => 2,
        };
        let is_misread =
            (length < 3 && is_table(relations, 1)) || (length < 4 && is_table(relations, 2));
        (is_misread && length < names.len()).then_some(length)
    }
}

impl VisitorMut for OwnFields {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        let mut relations = Vec::new();
        for from in list_changed_tables(statement) {
            self.add_relations(from, &mut relations);
        }
        self.scopes.push(relations);
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, _statement: &mut Statement) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        let names = ctes.map(|cte| fold_name(&cte.alias.name)).collect();
        self.queries.enter_scope(names, recursive);
        self.scopes.push(Vec::new());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.scopes.pop();
        self.queries.leave_scope();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let mut relations = Vec::new();
        select.from.iter().for_each(|from| self.add_relations(from, &mut relations));
        // The tables stay in the scope after the SELECT, because ORDER BY of the query, which is
        // visited later, sees them, too.
        if let Some(scope) = self.scopes.last_mut() {
            *scope = relations;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Some((mut column, rest)) = split_name(expr, 3) else {
            return ControlFlow::Continue(());
        };
        let Some(length) = self.find_column(&column) else { return ControlFlow::Continue(()) };
        let fields = column.split_off(length);
        *expr = access_fields(column, &fields, rest);
        ControlFlow::Continue(())
    }
}

/// Returns the expression that reads the nested `fields` of a column, and then applies the accesses
/// `rest`, such as subscripts.
pub(super) fn access_fields(column: Vec<Ident>, fields: &[Ident], rest: &[AccessExpr]) -> Expr {
    let fields = fields
        .iter()
        .map(|field| AccessExpr::Dot(Expr::value(Value::SingleQuotedString(fold_name(field)))));
    let access_chain = fields.chain(rest.iter().cloned()).collect();
    let root = Box::new(Expr::Nested(Box::new(Expr::CompoundIdentifier(column))));
    Expr::CompoundFieldAccess { root, access_chain }
}

/// Splits `t.s.a[1].b` into the name `t.s.a` and the accesses `[1].b`. Returns `None` if the name
/// has fewer than `least` parts, and for any other expression.
pub(super) fn split_name(expr: &Expr, least: usize) -> Option<(Vec<Ident>, &[AccessExpr])> {
    match expr {
        Expr::CompoundIdentifier(parts) if parts.len() >= least => Some((parts.clone(), &[])),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let Expr::Identifier(first) = root.as_ref() else { return None };
            let names = access_chain.iter().map_while(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
                _ => None,
            });
            let parts: Vec<Ident> = std::iter::once(first.clone()).chain(names).collect();
            let rest = access_chain.get(parts.len().saturating_sub(1)..).unwrap_or_default();
            (parts.len() >= least).then_some((parts, rest))
        }
        _ => None,
    }
}
