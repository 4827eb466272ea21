//! Reads fields of structs of an outer query: `o.s.a` within a subquery, where `o` is a table of the query around it.
//!
//! DataFusion 55 refuses such names, but accepts `(o.s).a`. Obsolete once the test
//! `stock_fields_of_outer_structs_are_still_refused` fails.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, Expr, Query, SetExpr, TableWithJoins, VisitMut, VisitorMut,
};

use crate::sql::statement::folding::fold_name;
use crate::sql::statement::lateral::table_name;

pub(in crate::sql) fn access_outer_fields<S: VisitMut + ?Sized>(statement: &mut S) {
    let _ = statement.visit(&mut OuterFields::default());
}

/// The names of the tables in FROM of each query around the current position.
#[derive(Default)]
struct OuterFields {
    tables: Vec<HashSet<String>>,
}

impl VisitorMut for OuterFields {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.tables.push(find_tables(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.tables.pop();
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
            let of = Expr::CompoundIdentifier(vec![table.clone(), column.clone()]);
            let fields = fields.iter().cloned().map(|f| AccessExpr::Dot(Expr::Identifier(f)));
            *expr = Expr::CompoundFieldAccess {
                root: Box::new(Expr::Nested(Box::new(of))),
                access_chain: fields.collect(),
            };
        }
        ControlFlow::Continue(())
    }
}

fn find_tables(query: &Query) -> HashSet<String> {
    let (mut open, mut tables) = (vec![query.body.as_ref()], HashSet::new());
    while let Some(body) = open.pop() {
        match body {
            SetExpr::Select(select) => {
                let factors = select.from.iter().flat_map(|TableWithJoins { relation, joins }| {
                    std::iter::once(relation).chain(joins.iter().map(|join| &join.relation))
                });
                tables.extend(factors.filter_map(table_name).map(fold_name));
            }
            SetExpr::Query(inner) => open.push(inner.body.as_ref()),
            SetExpr::SetOperation { left, right, .. } => open.extend([&**left, &**right]),
            _ => {}
        }
    }
    tables
}
