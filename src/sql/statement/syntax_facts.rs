//! Finds which kinds of clauses and expressions a statement has. A rewrite that concerns other
//! kinds is skipped, because each walk over the syntax tree takes as long as this search.

use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{
    Expr, Function, Query, Select, Statement, TableFactor, TableWithJoins, UnaryOperator, Value,
    Visit, Visitor,
};

use crate::sql::base::syntax::is_star;
use crate::sql::statement::columns::join_constraints::is_merging;
use crate::sql::statement::columns::position_columns::match_position;

/// A double holds all digits of a number with at most this many.
pub(super) const MOST_DIGITS: usize = 15;

/// The kinds of clauses and expressions that a query and its subqueries have. A statement of
/// another kind, such as INSERT, counts as having all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SyntaxFacts {
    is_other: bool,
    queries: usize,
    /// A function call.
    pub(super) has_calls: bool,
    /// A cast, a literal with a type, or AT TIME ZONE.
    pub(super) has_casts: bool,
    /// HAVING or QUALIFY.
    pub(super) has_conditions: bool,
    /// A name of at least three parts, such as `t.s.a`, or an access such as `s['a']`.
    pub(super) has_fields: bool,
    pub(super) has_lambdas: bool,
    /// A number of more than [`MOST_DIGITS`] digits.
    pub(super) has_long_numbers: bool,
    /// USING or NATURAL.
    pub(super) has_merging_joins: bool,
    /// A subquery.
    pub(super) has_nested_queries: bool,
    /// `_file` or `_row`.
    pub(super) has_positions: bool,
    /// An expression that [`as_operators`](super::expressions::predicates::as_operators) rewrites,
    /// other than a function call.
    pub(super) has_predicates: bool,
    /// A name of at least two parts, such as `t.a`, or an access such as `s['a']`.
    pub(super) has_qualified_names: bool,
    /// A star in a SELECT list, or `COLUMNS(..)`.
    pub(super) has_stars: bool,
    /// A subquery in FROM without an alias.
    pub(super) has_unnamed_queries: bool,
    pub(super) has_with: bool,
}

impl SyntaxFacts {
    /// The facts of a statement about which nothing is known.
    pub(super) const ALL: Self = Self {
        is_other: true,
        queries: 2,
        has_calls: true,
        has_casts: true,
        has_conditions: true,
        has_fields: true,
        has_lambdas: true,
        has_long_numbers: true,
        has_merging_joins: true,
        has_nested_queries: true,
        has_positions: true,
        has_predicates: true,
        has_qualified_names: true,
        has_stars: true,
        has_unnamed_queries: true,
        has_with: true,
    };

    pub(super) fn find_in<S: Visit>(statement: &S) -> Self {
        let mut found = Self::default();
        let _ = statement.visit(&mut found);
        found.has_nested_queries = found.queries > 1;
        match found.is_other {
            true => Self::ALL,
            false => found,
        }
    }

    fn add_joins(&mut self, from: &TableWithJoins) {
        self.has_merging_joins |= from.joins.iter().any(is_merging);
    }
}

impl Visitor for SyntaxFacts {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        self.is_other |= !matches!(statement, Statement::Query(_));
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.queries = self.queries.saturating_add(1);
        self.has_with |= query.with.is_some();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.has_stars |= select.projection.iter().any(is_star);
        self.has_conditions |= select.having.is_some() || select.qualify.is_some();
        select.from.iter().for_each(|from| self.add_joins(from));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Derived { alias: None, .. } => self.has_unnamed_queries = true,
            TableFactor::NestedJoin { table_with_joins, .. } => self.add_joins(table_with_joins),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.has_positions |= match_position(name).is_some(),
            Expr::CompoundIdentifier(parts) => {
                self.has_qualified_names = true;
                self.has_fields |= parts.len() > 2;
                self.has_positions |= parts.last().and_then(match_position).is_some();
            }
            Expr::CompoundFieldAccess { .. } => {
                self.has_qualified_names = true;
                self.has_fields = true;
            }
            Expr::Function(call) => {
                self.has_calls = true;
                self.has_stars |= is_columns(call);
            }
            Expr::Lambda(_) => self.has_lambdas = true,
            Expr::Cast { .. } | Expr::TypedString(_) | Expr::AtTimeZone { .. } => {
                self.has_casts = true;
            }
            Expr::Value(value) => {
                self.has_long_numbers |= matches!(&value.value, Value::Number(digits, _)
                    if digits.len() > MOST_DIGITS);
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, .. }
            | Expr::Like { .. }
            | Expr::ILike { .. }
            | Expr::InList { .. }
            | Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..)
            | Expr::Extract { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Position { .. }
            | Expr::Overlay { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. } => self.has_predicates = true,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn is_columns(call: &Function) -> bool {
    let name = call.name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| name.value.eq_ignore_ascii_case("columns"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::base::syntax::parse_query;

    #[test]
    fn facts_are_those_of_the_query() {
        let none = SyntaxFacts { queries: 1, ..SyntaxFacts::default() };
        let nested = SyntaxFacts { queries: 2, has_nested_queries: true, ..none };
        let qualified = SyntaxFacts { has_qualified_names: true, ..none };
        for (text, expected) in [
            ("SELECT a AS b FROM t WHERE a = 5 OR b <> 'x' ORDER BY 1", none),
            ("SELECT f(a) FROM t", SyntaxFacts { has_calls: true, ..none }),
            ("SELECT a::INT FROM t", SyntaxFacts { has_casts: true, ..none }),
            ("SELECT a FROM t GROUP BY a HAVING a", SyntaxFacts { has_conditions: true, ..none }),
            ("SELECT t.a FROM t", qualified),
            ("SELECT t.s.a FROM t", SyntaxFacts { has_fields: true, ..qualified }),
            (
                "SELECT a FROM t WHERE a = 1234567890123456",
                SyntaxFacts { has_long_numbers: true, ..none },
            ),
            ("SELECT a FROM t JOIN u USING (b)", SyntaxFacts { has_merging_joins: true, ..none }),
            ("SELECT a FROM (t NATURAL JOIN u)", SyntaxFacts { has_merging_joins: true, ..none }),
            ("SELECT a, _row FROM t", SyntaxFacts { has_positions: true, ..none }),
            ("SELECT -a FROM t", SyntaxFacts { has_predicates: true, ..none }),
            ("SELECT * FROM t", SyntaxFacts { has_stars: true, ..none }),
            (
                "SELECT COLUMNS('a') FROM t",
                SyntaxFacts { has_calls: true, has_stars: true, ..none },
            ),
            ("SELECT a FROM (SELECT a FROM t) u", nested),
            (
                "SELECT a FROM (SELECT a FROM t)",
                SyntaxFacts { has_unnamed_queries: true, ..nested },
            ),
            (
                "WITH u AS (SELECT a FROM t) SELECT a FROM u",
                SyntaxFacts { has_with: true, ..nested },
            ),
        ] {
            assert_eq!(SyntaxFacts::find_in(&parse_query(text).unwrap()), expected, "{text}");
        }
    }
}
