//! Statements with several columns of one name, whether the statement or DataFusion gives the name.

use super::{Queries, SINGLE};
use crate::forms::{Form, Parts, Role};

/// Pairs of equivalent select lists over the columns `a`, `b`, `c` and `x`. In the first, all names
/// differ; in the second, names clash. The third string is the text after the relation in FROM.
const CLASHES: &[(&str, &str, &str)] = &[
    ("a, b, c, x, CAST(a AS VARCHAR) AS d", "*, a::VARCHAR", ""),
    ("a, b, c, x, x AS d", "y.*, x", ""),
    ("CAST(a AS VARCHAR) AS d, a", "a::VARCHAR, a", ""),
    ("x AS d, x AS e, CAST(x AS VARCHAR) AS f", "x, y.x, x::VARCHAR", ""),
    ("CAST(a AS VARCHAR) AS d, CAST(a AS DOUBLE) AS e", "a::VARCHAR, a::DOUBLE", ""),
    ("a * (b + c) AS d, a * b + c AS e", "a * (b + c), a * b + c", ""),
    ("a - (b - c) AS d, a - b - c AS e", "a - (b - c), a - b - c", ""),
    ("-(a - b) AS d, -a - b AS e", "-(a - b), -a - b", ""),
    (
        "a > b AND (b > c OR c > 1) AS d, (a > b AND b > c) OR c > 1 AS e",
        "a > b AND (b > c OR c > 1), a > b AND b > c OR c > 1",
        "",
    ),
    (
        "NOT (a = b) IS NULL AS d, (NOT a = b) IS NULL AS e",
        "NOT (a = b) IS NULL, (NOT a = b) IS NULL",
        "",
    ),
    ("[a, b][1:1] AS d, [a, b][2:2] AS e", "[a, b][1:1], [a, b][2:2]", ""),
    ("CAST(a = 1 AS VARCHAR) AS d, a = 1 AS e", "(a = 1)::VARCHAR, a = 1", ""),
    ("sum(a * (b + c)) AS d, sum(a * b + c) AS e", "sum(a * (b + c)), sum(a * b + c)", ""),
    ("sum(a - (b - c)) AS d, sum(a - b - c) AS e", "sum(a - (b - c)), sum(a - b - c)", ""),
    (
        "count(a) AS d, count(a) FILTER (WHERE b > c) AS e, count(DISTINCT a) AS f",
        "count(a), count(a) FILTER (WHERE b > c), count(DISTINCT a)",
        "",
    ),
    ("max(x) AS d, CAST(max(x) AS VARCHAR) AS e", "max(x), max(x)::VARCHAR", ""),
    ("b AS d, CAST(b AS VARCHAR) AS e, count(*) AS f", "b, b::VARCHAR, count(*)", " GROUP BY b"),
    (
        "CAST(b AS VARCHAR) AS d, b AS e, max(a) AS f",
        "b::VARCHAR, b, max(a)",
        " GROUP BY b::VARCHAR, b",
    ),
    (
        "count(*) OVER (PARTITION BY a) AS d, count(*) OVER (PARTITION BY b) AS e",
        "count(*) OVER (PARTITION BY a), count(*) OVER (PARTITION BY b)",
        "",
    ),
];

impl Queries {
    pub(super) fn make_clash(&mut self) -> Form {
        let from = self.relation(1);
        let mut p = Parts::default();
        let r = p.put(from.node);
        let [a, b, c] = ["i", "i", "i"].map(|ty| p.put(self.value(ty, &from.columns, 1)));
        // Omits floats, because casts of floats to strings are compared in other statements.
        let types: Vec<&'static str> = SINGLE.into_iter().filter(|ty| *ty != "f").collect();
        let ty = self.pick(&types);
        let x = p.put(self.value(ty, &from.columns, 1));
        let w = p.put(self.condition(&from.columns, false));
        let (named, clashing, rest) = CLASHES[self.below(CLASHES.len())];
        let rows = format!(
            "(SELECT {a} AS a, {b} AS b, {c} AS c, {x} AS x FROM {r} WHERE {w}) AS y{rest}"
        );
        let root = p
            .node(Role::Fixed, format!("SELECT {named} FROM {rows}"))
            .or("columns may have one name", format!("SELECT {clashing} FROM {rows}"));
        Form { root, ordered: false, alone: true }
    }
}
