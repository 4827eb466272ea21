//! Subqueries in conditions and as values, each written in several equivalent ways.

use super::*;

/// Returns whether values of two types can be compared. A timestamp with a time zone can be
/// compared with a local time or a date, which is read in that zone.
fn are_comparable(a: &str, b: &str) -> bool {
    a == b || matches!((a, b), ("tz", "t" | "d") | ("t" | "d", "tz"))
}

impl Queries {
    /// Returns a condition with a subquery.
    pub(super) fn subquery(&mut self, scope: &[Col]) -> Node {
        let role = || Role::Value("b");
        let mut p = Parts::default();
        let relation = self.base();
        let r = p.put(relation.node);
        let inside = relation.columns;
        let outer: Vec<Col> = scope.iter().filter(|c| SINGLE.contains(&c.ty)).cloned().collect();
        let Some(o) = (!outer.is_empty()).then(|| self.pick(&outer)) else {
            return self.value("b", scope, 1);
        };
        let fitting: Vec<Col> =
            inside.iter().filter(|c| are_comparable(c.ty, o.ty)).cloned().collect();
        let (o, i) = match fitting.is_empty() {
            true => (list_literals("i")[0].to_string(), inside[0].text.clone()),
            false => (o.text, self.pick(&fitting).text),
        };
        let w = p.put(self.value("b", &inside, 2));
        let every = |op: &str, all: bool| {
            let test = if all { format!("NOT ({o} {op} {i})") } else { format!("{o} {op} {i}") };
            let (found, rest) = if all { ("false", "true") } else { ("true", "false") };
            format!(
                "CASE WHEN (SELECT count(*) FROM {r} WHERE {w} AND {test}) > 0 THEN {found} WHEN (SELECT count(*) FROM {r} WHERE {w} AND ({test}) IS NULL) > 0 THEN NULL ELSE {rest} END"
            )
        };
        match self.below(7) {
            5 => p
                .node(role(), every("<", true))
                .or("ALL is two counts", format!("{o} < ALL (SELECT {i} FROM {r} WHERE {w})")),
            6 => p
                .node(role(), every("<>", false))
                .or("ANY is two counts", format!("{o} <> ANY (SELECT {i} FROM {r} WHERE {w})")),
            0 => p
                .node(role(), format!("{o} NOT IN (SELECT {i} FROM {r} WHERE {w})"))
                .or("NOT IN is NOT (IN)", format!("NOT ({o} IN (SELECT {i} FROM {r} WHERE {w}))"))
                .or(
                    "NOT IN (query) is a count",
                    format!("(SELECT count(*) FROM {r} WHERE {w}) = (SELECT count(*) FROM {r} WHERE {w} AND {i} IS NOT NULL AND {o} IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM {r} WHERE {i} = {o} AND {w})"),
                ),
            1 => p
                .node(role(), format!("{o} IN (SELECT {i} FROM {r} WHERE {w})"))
                .or("IN (query) is EXISTS", format!("EXISTS (SELECT 1 FROM {r} WHERE {i} = {o} AND {w})"))
                .or("IN (query) of the first", format!("{o} IN (SELECT {i} FROM {r} WHERE {i} = {o} AND {w} LIMIT 1)"))
                .or("IN (query) of DISTINCT", format!("{o} IN (SELECT DISTINCT {i} FROM {r} WHERE {w})"))
                .or("IN (query) is a count", format!("(SELECT count(*) FROM {r} WHERE {i} = {o} AND {w}) > 0")),
            2 => p
                .node(role(), format!("EXISTS (SELECT 1 FROM {r} WHERE {i} = {o} AND {w})"))
                .or("EXISTS is IN", format!("{o} IN (SELECT {i} FROM {r} WHERE {w})"))
                .or("EXISTS is a count", format!("(SELECT count(*) FROM {r} WHERE {i} = {o} AND {w}) > 0"))
                .or("EXISTS of rows", format!("EXISTS (SELECT * FROM {r} WHERE {w} AND {i} = {o})"))
                .or("EXISTS of groups", format!("EXISTS (SELECT {i}, count(*) FROM {r} WHERE {i} = {o} AND {w} GROUP BY {i})"))
                .or("EXISTS of a window", format!("EXISTS (SELECT row_number() OVER () FROM {r} WHERE {i} = {o} AND {w})"))
                .or("EXISTS of a limit", format!("EXISTS (SELECT 1 FROM (SELECT {i} FROM {r} WHERE {i} = {o} AND {w} LIMIT 1) AS one WHERE true)"))
                .or("EXISTS of a union", format!("EXISTS (SELECT {i} FROM {r} WHERE {i} = {o} AND {w} UNION ALL SELECT {i} FROM {r} WHERE {i} = {o} AND {w})"))
                .or("EXISTS of EXISTS", format!("EXISTS (SELECT 1 FROM {r} WHERE {w} AND EXISTS (SELECT 1 FROM (VALUES (1)) AS one(k) WHERE {i} = {o}))")),
            3 => p
                .node(role(), format!("NOT EXISTS (SELECT 1 FROM {r} WHERE {i} = {o} AND {w})"))
                .or("NOT EXISTS is a count", format!("(SELECT count(*) FROM {r} WHERE {i} = {o} AND {w}) = 0"))
                .or(
                    "NOT EXISTS is NOT IN without NULL",
                    format!("({o} IS NULL OR {o} NOT IN (SELECT {i} FROM {r} WHERE {i} IS NOT NULL AND {w}))"),
                ),
            _ => p
                .node(role(), format!("{o} >= (SELECT max({i}) FROM {r} WHERE {w})"))
                .or(
                    ">= max is a sort",
                    format!("{o} >= (SELECT {i} FROM {r} WHERE {i} IS NOT NULL AND {w} ORDER BY {i} DESC LIMIT 1)"),
                ),
        }
    }

    /// Returns a scalar subquery that is correlated with the columns in scope, and the type of its
    /// value.
    pub(super) fn scalar(&mut self, scope: &[Col]) -> (Node, &'static str) {
        let keys: Vec<Col> =
            scope.iter().filter(|c| matches!(c.ty, "i" | "s" | "d")).cloned().collect();
        let o = match keys.is_empty() {
            true => return (self.value("i", scope, 2), "i"),
            false => self.pick(&keys),
        };
        let mut p = Parts::default();
        let relation = self.base();
        let r = p.put(relation.node);
        let fitting: Vec<Col> = relation.columns.iter().filter(|c| c.ty == o.ty).cloned().collect();
        if fitting.is_empty() {
            return (self.value("i", scope, 2), "i");
        }
        let (i, o) = (self.pick(&fitting).text, o.text);
        let w = p.put(self.value("b", &relation.columns, 1));
        let ty = ["i", "s", "f", "n"][self.below(4)];
        let x = p.put(self.value(ty, &relation.columns, 1));
        match self.below(3) {
            0 => (
                p.node(
                    Role::Value("i"),
                    format!("(SELECT count(*) FROM {r} WHERE {i} = {o} AND {w})"),
                )
                .or(
                    "count of a query is a sum",
                    format!("coalesce((SELECT sum(1) FROM {r} WHERE {i} = {o} AND {w}), 0)"),
                )
                .or(
                    "count of a filter",
                    format!("(SELECT count(CASE WHEN {w} THEN 1 END) FROM {r} WHERE {i} = {o})"),
                ),
                "i",
            ),
            1 => (
                p.node(
                    Role::Value("i"),
                    format!("(SELECT count({x}) FROM {r} WHERE {i} = {o} AND {w})"),
                )
                .or(
                    "count of values",
                    format!(
                        "(SELECT count(*) FROM {r} WHERE {i} = {o} AND {w} AND {x} IS NOT NULL)"
                    ),
                ),
                "i",
            ),
            _ => (
                p.node(
                    Role::Value(ty),
                    format!("(SELECT max({x}) FROM {r} WHERE {i} = {o} AND {w})"),
                )
                .or(
                    "max of a filter",
                    format!("(SELECT max(CASE WHEN {w} THEN {x} END) FROM {r} WHERE {i} = {o})"),
                ),
                ty,
            ),
        }
    }

    // Relations.
}
