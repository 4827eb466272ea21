//! Queries with clauses that are rare in statements. Each has an equivalent query without the
//! clause.

use super::shapes::SHAPES;
use super::{Col, Columns, LISTS, Queries, SINGLE, WAYS, list_literals, query_role};
use crate::forms::{Node, Parts};

const JOINS: [&str; 4] = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"];

fn columns_of<const N: usize>(types: [&'static str; N]) -> Columns {
    types.into_iter().enumerate().map(|(i, ty)| (format!("c{i}"), ty)).collect()
}

/// Number of kinds of queries that this file and `precedence` generate.
const CLAUSES: usize = 14;

/// Number of kinds of queries that [`Queries::make_rare`] generates.
pub(super) const RARE: usize = CLAUSES + SHAPES.len();

/// Columns of recursive queries: the type in the notation of `grammar`, the type in SQL, and a step
/// that is its own inverse.
const REVERTED: [(&str, &str, &str); 9] = [
    ("i", "BIGINT", "-a"),
    ("f", "DOUBLE", "-a"),
    ("n", "DECIMAL(12,2)", "-a"),
    ("s", "VARCHAR", "reverse(a)"),
    ("b", "BOOLEAN", "NOT a"),
    ("li", "BIGINT[]", "array_reverse(a)"),
    ("lf", "DOUBLE[]", "array_reverse(a)"),
    ("ls", "VARCHAR[]", "array_reverse(a)"),
    ("ld", "DATE[]", "array_reverse(a)"),
];

impl Queries {
    pub(super) fn make_rarer(&mut self) -> (Node, Columns) {
        let number = self.below(RARE);
        self.make_rare(number)
    }

    pub(super) fn make_rare(&mut self, number: usize) -> (Node, Columns) {
        match number {
            0 => self.make_lateral(),
            1 => self.make_merged_keys(),
            2 | 3 => self.make_frame(),
            4 => self.make_recursive(),
            5 => self.make_struct_keys(),
            6 => self.make_ordered_lists(),
            7 => self.make_join_on_query(),
            8 => self.make_reduced_lists(),
            9 => self.make_listed_rows(),
            10 => self.make_queried_rows(),
            11 => self.make_peeled_lists(),
            12 => self.make_reverted_rows(),
            13 => self.make_precedences(),
            number => self.make_shape(number - CLAUSES),
        }
    }

    /// Picks a column of the relation `left` and one of `right` that have the same type.
    fn pick_pair(
        &mut self,
        left: &[Col],
        right: &[Col],
        types: &[&'static str],
    ) -> (String, String) {
        let of = |columns: &[Col], ty: &str| -> Vec<Col> {
            columns.iter().filter(|c| c.ty == ty).cloned().collect()
        };
        let both: Vec<&'static str> = types
            .iter()
            .filter(|ty| !of(left, ty).is_empty() && !of(right, ty).is_empty())
            .copied()
            .collect();
        let ty = self.pick(&both);
        (self.pick(&of(left, ty)).text, self.pick(&of(right, ty)).text)
    }

    /// Returns a query with LATERAL, which runs for every row of the outer relation.
    fn make_lateral(&mut self) -> (Node, Columns) {
        let (outer, inner) = (self.base(), self.base());
        let (k, j) = self.pick_pair(&outer.columns, &inner.columns, &["i", "i", "s", "d", "n"]);
        let id = outer.unique.unwrap_or_default();
        let mut p = Parts::default();
        let (o, i) = (p.put(outer.node), p.put(inner.node));
        let w = p.put(self.value("b", &inner.columns, 1));
        let ty = ["i", "f", "s", "d"][self.below(4)];
        let x = p.put(self.value(ty, &inner.columns, 1));
        let l = self.name("l");
        let columns = columns_of(["i", "i", ty]);
        let select = format!("SELECT {id} AS c0, {l}.n AS c1, {l}.x AS c2 FROM {o}");
        let of = format!("FROM {i} WHERE {j} = {k} AND {w}");
        let query = format!("(SELECT count(*) AS n, max({x}) AS x {of}) AS {l}");
        let node = p
            .node(query_role(&columns), format!("{select} CROSS JOIN LATERAL {query}"))
            .or("LATERAL of one row is a LEFT JOIN", format!("{select} LEFT JOIN LATERAL {query} ON true"))
            .or(
                "LATERAL is queries of SELECT",
                format!("SELECT {id} AS c0, (SELECT count(*) {of}) AS c1, (SELECT max({x}) {of}) AS c2 FROM {o}"),
            )
            .or(
                "LATERAL is a join of groups",
                format!("SELECT {id} AS c0, coalesce({l}.n, 0) AS c1, {l}.x AS c2 FROM {o} LEFT JOIN (SELECT {j} AS j, count(*) AS n, max({x}) AS x FROM {i} WHERE {w} GROUP BY {j}) AS {l} ON {l}.j = {k}"),
            );
        (node, columns)
    }

    /// Returns a join with USING, which merges the key columns.
    fn make_merged_keys(&mut self) -> (Node, Columns) {
        let tables = [0, 1].map(|_| {
            let at = self.below(self.tables.len());
            self.tables[at].clone()
        });
        let keys: Vec<(String, &'static str)> =
            tables[0].1.iter().filter(|(_, ty)| SINGLE.contains(ty)).cloned().collect();
        let (key, ty) = self.pick(&keys);
        let [u, a, b] = ["u", "a", "b"].map(|start| self.name(start));
        let kind = JOINS[self.below(4)];
        let side = |table: &str, alias: &str| {
            format!("(SELECT {key} AS {u}, id AS {alias}x FROM {table}) AS {alias}")
        };
        let (left, right) = (side(&tables[0].0, &a), side(&tables[1].0, &b));
        let of = list_literals(ty);
        let literal = of[self.below(of.len())];
        let test = match self.below(3) {
            0 => "true".to_string(),
            1 => "§ IS NOT NULL".to_string(),
            _ => format!("(§ IS NULL OR § <> {literal})"),
        };
        let columns = columns_of([ty, "i", "i"]);
        let query = |key: &str, from: String| {
            let test = test.replace('§', key);
            format!("SELECT {key} AS c0, {a}.{a}x AS c1, {b}.{b}x AS c2 FROM {from} WHERE {test}")
        };
        let merged = format!("coalesce({a}.{u}, {b}.{u})");
        let node = Parts::default()
            .node(query_role(&columns), query(&u, format!("{left} {kind} {right} USING ({u})")))
            .or("NATURAL is USING", query(&u, format!("{left} NATURAL {kind} {right}")))
            .or(
                "USING is coalesce",
                query(&merged, format!("{left} {kind} {right} ON {a}.{u} = {b}.{u}")),
            );
        (node, columns)
    }

    /// Returns a query with a window function whose frame is ROWS, GROUPS or RANGE.
    fn make_frame(&mut self) -> (Node, Columns) {
        let from = self.base();
        let id = from.unique.clone().unwrap_or_default();
        let mut p = Parts::default();
        let r = p.put(from.node);
        let pick = |queries: &mut Self, types: &[&str]| {
            let of: Vec<Col> =
                from.columns.iter().filter(|c| types.contains(&c.ty)).cloned().collect();
            queries.pick(&of).text
        };
        let by = pick(self, &["i", "s", "b", "d", "f", "li"]);
        let ty = ["i", "i", "f", "s", "d", "n"][self.below(6)];
        let x = p.put(self.value(ty, &from.columns, 1));
        let (call, ty) = match self.below(4) {
            0 => ("count(X)", "i"),
            1 if ty == "i" => ("CAST(sum(X) AS BIGINT)", "i"),
            1 | 2 => ("max(X)", ty),
            _ => ("min(X)", ty),
        };
        let (before, after) = (self.below(3), self.below(3));
        let way = WAYS[self.below(4)];
        let (unit, sort, order, number, within) = match self.below(3) {
            0 => {
                let sort = pick(self, &SINGLE);
                let order = format!("{sort}{way}, {id}");
                ("ROWS", sort, order, "row_number()", None)
            }
            1 => {
                let sort = pick(self, &SINGLE);
                let order = format!("{sort}{way}");
                ("GROUPS", sort, order, "dense_rank()", None)
            }
            _ => {
                let sort = pick(self, &["i"]);
                let order = sort.clone();
                let near = format!(
                    "(z.s BETWEEN y.s - {before} AND y.s + {after} OR (z.s IS NULL AND y.s IS NULL))"
                );
                ("RANGE", sort, order, "row_number()", Some(near))
            }
        };
        let near = format!("z.n BETWEEN y.n - {before} AND y.n + {after}");
        let near = within.unwrap_or(near);
        let same = "z.p IS NOT DISTINCT FROM y.p";
        let columns = columns_of(["i", ty]);
        let over = format!(
            "OVER (PARTITION BY {by} ORDER BY {order} {unit} BETWEEN {before} PRECEDING AND {after} FOLLOWING)"
        );
        let (framed, of_rows) = (call.replace("X", &x), call.replace("X", "z.x"));
        let framed = match framed.strip_suffix(" AS BIGINT)") {
            Some(sum) => format!("{sum} {over} AS BIGINT)"),
            None => format!("{framed} {over}"),
        };
        let c = self.name("w");
        let numbered = format!(
            "WITH {c} AS (SELECT {id} AS i, {by} AS p, {sort} AS s, {x} AS x, CAST({number} OVER (PARTITION BY {by} ORDER BY {order}) AS BIGINT) AS n FROM {r})"
        );
        let node = p
            .node(query_role(&columns), format!("SELECT {id} AS c0, {framed} AS c1 FROM {r}"))
            .or(
                "a frame is a join of numbered rows",
                format!("{numbered} SELECT y.i AS c0, {of_rows} AS c1 FROM {c} AS y LEFT JOIN {c} AS z ON {same} AND {near} GROUP BY y.i"),
            )
            .or(
                "a frame is a query of numbered rows",
                format!("{numbered} SELECT y.i AS c0, (SELECT {of_rows} FROM {c} AS z WHERE {same} AND {near}) AS c1 FROM {c} AS y"),
            );
        (node, columns)
    }

    fn make_recursive(&mut self) -> (Node, Columns) {
        let from = self.base();
        let mut p = Parts::default();
        let r = p.put(from.node);
        let x = p.put(self.value("i", &from.columns, 1));
        let w = p.put(self.condition(&from.columns, false));
        let c = self.name("w");
        let columns = columns_of(["i", "i"]);
        let start = format!("SELECT {x} AS a, 0 AS n FROM {r} WHERE {w}");
        let (all, union) = [("UNION ALL", "UNION ALL"), ("UNION", "UNION")][self.below(2)];
        let node = p
            .node(
                query_role(&columns),
                format!("WITH RECURSIVE {c} AS ({start} {all} SELECT {c}.a + 1, {c}.n + 1 FROM {c} WHERE {c}.n < 2) SELECT a AS c0, n AS c1 FROM {c}"),
            )
            .or(
                "steps written out",
                format!("WITH {c} AS ({start}) SELECT a AS c0, n AS c1 FROM {c} {union} SELECT a + 1, 1 FROM {c} {union} SELECT a + 2, 2 FROM {c}"),
            );
        (node, columns)
    }

    /// Returns a recursive query over lists that removes their first element in each step.
    fn make_peeled_lists(&mut self) -> (Node, Columns) {
        let from = self.base();
        let mut p = Parts::default();
        let r = p.put(from.node);
        let (ty, cast) = [
            ("li", "BIGINT[]"),
            ("lf", "DOUBLE[]"),
            ("ls", "VARCHAR[]"),
            ("ll", "BIGINT[][]"),
            ("ld", "DATE[]"),
        ][self.below(5)];
        let x = p.put(self.value(ty, &from.columns, 1));
        let w = p.put(self.condition(&from.columns, false));
        let c = self.name("w");
        let columns = columns_of([ty]);
        let start = format!("SELECT (CAST({x} AS {cast}))[1:3] AS a FROM {r} WHERE {w}");
        let union = ["UNION ALL", "UNION"][self.below(2)];
        let node = p
            .node(
                query_role(&columns),
                format!("WITH RECURSIVE {c} AS ({start} {union} SELECT ({c}.a)[2:] FROM {c} WHERE array_length({c}.a) > 0) SELECT a AS c0 FROM {c}"),
            )
            .or(
                "steps written out",
                format!("WITH {c} AS ({start}) SELECT a AS c0 FROM {c} {union} SELECT (a)[2:] FROM {c} WHERE array_length(a) > 0 {union} SELECT (a)[3:] FROM {c} WHERE array_length(a) > 1 {union} SELECT (a)[4:] FROM {c} WHERE array_length(a) > 2"),
            );
        (node, columns)
    }

    /// Returns a recursive query with UNION, which ends when a step returns no new rows.
    fn make_reverted_rows(&mut self) -> (Node, Columns) {
        let from = self.base();
        let mut p = Parts::default();
        let r = p.put(from.node);
        let (ty, cast, step) = REVERTED[self.below(REVERTED.len())];
        let x = p.put(self.value(ty, &from.columns, 1));
        let w = p.put(self.condition(&from.columns, false));
        let c = self.name("w");
        let columns = columns_of([ty]);
        let start = format!("SELECT CAST({x} AS {cast}) AS a FROM {r} WHERE {w}");
        let node = p
            .node(
                query_role(&columns),
                format!("WITH RECURSIVE {c} AS ({start} UNION SELECT {step} FROM {c}) SELECT a AS c0 FROM {c}"),
            )
            .or(
                "a recursive UNION is one of two steps",
                format!("WITH {c} AS ({start}) SELECT a AS c0 FROM {c} UNION SELECT {step} FROM {c}"),
            )
            .or(
                "a recursive UNION is DISTINCT",
                format!("SELECT DISTINCT a AS c0 FROM (SELECT a FROM ({start}) AS y UNION ALL SELECT {step} FROM ({start}) AS x) AS z"),
            );
        (node, columns)
    }

    /// Returns a query with GROUP BY a struct.
    fn make_struct_keys(&mut self) -> (Node, Columns) {
        let from = self.relation(1);
        let mut p = Parts::default();
        let r = p.put(from.node);
        let types = [["i", "s"], ["f", "i"], ["d", "b"], ["s", "li"]][self.below(4)];
        let [a, b] = types.map(|ty| p.put(self.value(ty, &from.columns, 1)));
        let w = p.put(self.condition(&from.columns, false));
        let columns = columns_of([types[0], types[1], "i"]);
        let structs =
            format!("(SELECT named_struct('a', {a}, 'b', {b}) AS s FROM {r} WHERE {w}) AS y");
        let node = p
            .node(
                query_role(&columns),
                format!("SELECT s['a'] AS c0, s['b'] AS c1, count(*) AS c2 FROM {structs} GROUP BY s"),
            )
            .or(
                "a struct is its fields",
                format!("SELECT a AS c0, b AS c1, count(*) AS c2 FROM (SELECT {a} AS a, {b} AS b FROM {r} WHERE {w}) AS y GROUP BY a, b"),
            )
            .or(
                "groups by a struct are counted over windows",
                format!("SELECT s['a'] AS c0, s['b'] AS c1, n AS c2 FROM (SELECT s, count(*) OVER (PARTITION BY s) AS n, row_number() OVER (PARTITION BY s) AS m FROM {structs}) AS x WHERE m = 1"),
            );
        (node, columns)
    }

    /// Returns a query that aggregates the values of a group to a list in a given order.
    fn make_ordered_lists(&mut self) -> (Node, Columns) {
        let from = self.base();
        let id = from.unique.clone().unwrap_or_default();
        let mut p = Parts::default();
        let r = p.put(from.node);
        let keys: Vec<Col> = from.columns.iter().filter(|c| c.ty != "ll").cloned().collect();
        let key = self.pick(&keys);
        let sorts: Vec<Col> =
            from.columns.iter().filter(|c| SINGLE.contains(&c.ty)).cloned().collect();
        let sort = self.pick(&sorts).text;
        let way = WAYS[self.below(4)];
        let ty = ["i", "f", "s"][self.below(3)];
        let x = p.put(self.value(ty, &from.columns, 1));
        let w = p.put(self.condition(&from.columns, false));
        let list = LISTS.into_iter().find(|l| l[1..] == *ty).unwrap_or("li");
        let columns = columns_of([key.ty, list]);
        let (k, order) = (key.text, format!("ORDER BY {sort}{way}, {id}"));
        let rest = format!("FROM {r} WHERE {w}");
        let whole = format!(
            "OVER (PARTITION BY {k} {order} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
        );
        let node = p
            .node(
                query_role(&columns),
                format!("SELECT {k} AS c0, array_agg({x} {order}) AS c1 {rest} GROUP BY {k}"),
            )
            .or(
                "array_agg is ragged_nest_agg",
                format!("SELECT {k} AS c0, ragged_nest_agg({x} {order}) AS c1 {rest} GROUP BY {k}"),
            )
            .or(
                "a list of a group is one of lists",
                format!("SELECT {k} AS c0, ragged_concat_agg([{x}] {order}) AS c1 {rest} GROUP BY {k}"),
            )
            .or(
                "a list of a group is a window",
                format!("SELECT c0, c1 FROM (SELECT {k} AS c0, array_agg({x}) {whole} AS c1, row_number() OVER (PARTITION BY {k} {order}) AS n {rest}) AS y WHERE n = 1"),
            );
        (node, columns)
    }

    /// Returns a join with a subquery in its condition.
    fn make_join_on_query(&mut self) -> (Node, Columns) {
        let (left, right) = (self.base(), self.base());
        let (a, b) = self.pick_pair(&left.columns, &right.columns, &["i", "i", "s", "d"]);
        let (x, y) = (left.unique.unwrap_or_default(), right.unique.unwrap_or_default());
        let first = self.chance(50);
        let scope = if first { &left.columns } else { &right.columns };
        let sub = self.subquery(scope);
        let mut p = Parts::default();
        let (l, r, q) = (p.put(left.node), p.put(right.node), p.put(sub));
        let alias = if first { left.alias } else { right.alias }.unwrap_or_default();
        let columns = columns_of(["i", "i"]);
        let kind = JOINS[self.below(4)];
        let select = format!("SELECT {x} AS c0, {y} AS c1 FROM");
        let with_value = |side: &str| format!("(SELECT *, {q} AS c9 FROM {side}) AS {alias}");
        let (valued_l, valued_r) = match first {
            true => (with_value(&l), r.clone()),
            false => (l.clone(), with_value(&r)),
        };
        let mut node = p
            .node(
                query_role(&columns),
                format!("{select} {valued_l} {kind} {valued_r} ON {a} = {b} AND {alias}.c9"),
            )
            .or(
                "a query of ON is a value",
                format!("{select} {l} {kind} {r} ON {a} = {b} AND {q}"),
            );
        if kind == "JOIN" {
            node = node.or(
                "a query of ON is one of WHERE",
                format!("{select} {l} JOIN {r} ON {a} = {b} WHERE {q}"),
            );
        }
        (node, columns)
    }

    /// Returns a query of reductions of lists, which equal aggregates of their elements as rows.
    fn make_reduced_lists(&mut self) -> (Node, Columns) {
        let from = self.base();
        let id = from.unique.clone().unwrap_or_default();
        let mut p = Parts::default();
        let r = p.put(from.node);
        const NO_TIME: &str = "arrow_cast(0, 'Duration(Microsecond)')";
        let (call, of_rows, empty, list, ty) = [
            ("ragged_sum", "sum(e)", NO_TIME, "lg", "g"),
            ("ragged_mean", "avg(e)", "NULL", "lg", "g"),
            ("ragged_median", "median(e)", "NULL", "lg", "g"),
            ("ragged_max", "max(e)", "NULL", "lg", "g"),
            ("ragged_min", "min(e)", "NULL", "ld", "d"),
            ("ragged_nunique", "count(DISTINCT e)", "0", "ld", "i"),
            ("ragged_sum", "CAST(sum(e) AS BIGINT)", "0", "li", "i"),
            ("ragged_max", "max(e)", "NULL", "li", "i"),
            ("ragged_min", "min(e)", "NULL", "ls", "s"),
            ("ragged_mean", "avg(e)", "NULL", "li", "f"),
            ("ragged_nunique", "count(DISTINCT e)", "0", "lf", "i"),
            ("ragged_max", "max(e)", "NULL", "lf", "f"),
        ][self.below(12)];
        let l = p.put(self.value(list, &from.columns, 1));
        let columns = columns_of(["i", ty]);
        let lists = format!("(SELECT {id} AS i, {l} AS l FROM {r})");
        let rows = format!(
            "(SELECT i, {of_rows} AS s FROM (SELECT i, unnest(l) AS e FROM {lists} AS x) AS w GROUP BY i)"
        );
        let node = p
            .node(query_role(&columns), format!("SELECT {id} AS c0, {call}({l}) AS c1 FROM {r}"))
            .or(
                "a reduction is a group of unnested rows",
                format!("SELECT y.i AS c0, CASE WHEN y.l IS NOT NULL THEN coalesce(z.s, {empty}) END AS c1 FROM {lists} AS y LEFT JOIN {rows} AS z ON z.i = y.i"),
            );
        (node, columns)
    }

    /// Returns a VALUES whose rows contain subqueries and literals.
    fn make_queried_rows(&mut self) -> (Node, Columns) {
        let from = self.base();
        let mut p = Parts::default();
        let r = p.put(from.node);
        let types = [["i", "s"], ["f", "i"], ["d", "b"], ["n", "i"], ["b", "t"]][self.below(5)];
        let columns = columns_of(types);
        let mut rows = Vec::new();
        for _ in 0..1 + self.below(3) {
            let mut cells = Vec::new();
            for ty in types {
                let of = list_literals(ty);
                let literal = of[self.below(of.len())].to_string();
                let made = self.condition(&from.columns, false);
                let made = if self.chance(30) { made } else { Node::text(made.role, "true") };
                let w = p.put(made);
                let cell = match (ty, self.below(3)) {
                    (_, 0) => literal,
                    ("b", 1) => format!("EXISTS (SELECT 1 FROM {r} WHERE {w})"),
                    ("i", 1) => format!("(SELECT count(*) FROM {r} WHERE {w})"),
                    _ => {
                        let x = p.put(self.value(ty, &from.columns, 1));
                        format!("(SELECT max({x}) FROM {r} WHERE {w})")
                    }
                };
                cells.push(cell);
            }
            rows.push(cells);
        }
        let values: Vec<String> = rows.iter().map(|row| format!("({})", row.join(", "))).collect();
        let unions: Vec<String> =
            rows.iter().map(|row| format!("SELECT {} AS c0, {} AS c1", row[0], row[1])).collect();
        let text =
            format!("SELECT a AS c0, b AS c1 FROM (VALUES {}) AS v(a, b)", values.join(", "));
        let node = p
            .node(query_role(&columns), text)
            .or("VALUES with queries is a UNION ALL", unions.join(" UNION ALL "));
        (node, columns)
    }

    /// Returns a VALUES whose rows contain literals.
    fn make_listed_rows(&mut self) -> (Node, Columns) {
        let types: Vec<&'static str> =
            (0..1 + self.below(3)).map(|_| SINGLE[self.below(SINGLE.len())]).collect();
        let columns: Columns =
            types.iter().enumerate().map(|(i, ty)| (format!("c{i}"), *ty)).collect();
        let rows: Vec<Vec<&str>> = (0..1 + self.below(5))
            .map(|_| {
                let cells = types.iter().map(|ty| {
                    let of = list_literals(ty);
                    of[self.below(of.len())]
                });
                cells.collect()
            })
            .collect();
        let named: Vec<String> =
            (1..=types.len()).map(|i| format!("column{i} AS c{}", i - 1)).collect();
        let values: Vec<String> = rows.iter().map(|row| format!("({})", row.join(", "))).collect();
        let unions: Vec<String> = rows
            .iter()
            .map(|row| {
                let cells = row.iter().enumerate().map(|(i, cell)| format!("{cell} AS c{i}"));
                format!("SELECT {}", cells.collect::<Vec<_>>().join(", "))
            })
            .collect();
        let text = format!("SELECT {} FROM (VALUES {}) AS v", named.join(", "), values.join(", "));
        let node = Parts::default()
            .node(query_role(&columns), text)
            .or("VALUES is a UNION ALL", unions.join(" UNION ALL "));
        (node, columns)
    }
}
