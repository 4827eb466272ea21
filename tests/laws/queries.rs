//! Random statements over the tables of [`World::wide`](crate::tables::World::wide), as the trees
//! of [`crate::forms`].

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::forms::{Form, Node, Parts, Role};
use crate::grammar::{LISTS, SINGLE, TEMPLATES, Template, list_literals, number_columns};
use crate::tables::World;
use rarer::RARE;

pub mod changes;
mod clashes;
mod inserts;
mod precedence;
mod rarer;
mod shapes;
mod subqueries;

/// The text of a column that an expression may use, and its type.
#[derive(Clone, Debug)]
struct Col {
    text: String,
    ty: &'static str,
}

/// Names and types of the columns of a query.
type Columns = Vec<(String, &'static str)>;

/// An item of FROM.
struct Relation {
    node: Node,
    columns: Vec<Col>,
    /// The name of the relation, or `None` if it is a join.
    alias: Option<String>,
    /// The columns that identify a row together, if there are any.
    unique: Option<String>,
}

pub struct Queries {
    random: ChaCha8Rng,
    tables: Vec<(String, Columns)>,
    /// The fields of the structs of each table.
    fields: Vec<Columns>,
    names: usize,
}

fn type_of(name: &str) -> &'static str {
    SINGLE.into_iter().chain(LISTS).find(|t| *t == name).expect("the type is in SINGLE or LISTS")
}

/// Returns the type of a column of [`World::wide`], which its name determines.
fn type_by_name(name: &str) -> &'static str {
    match name {
        "id" | "k" | "v" | "z" => "i",
        other => type_of(other),
    }
}

fn query_role(columns: &Columns) -> Role {
    Role::Query(columns.iter().map(|(name, ty)| format!("{name} {ty},")).collect())
}

fn join_names(columns: &Columns) -> String {
    columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the names of columns, qualified by `alias`, such as `z.c0, z.c1`.
fn names_of(columns: &Columns, alias: &str) -> String {
    columns.iter().map(|(n, _)| format!("{alias}.{n}")).collect::<Vec<_>>().join(", ")
}

/// Returns the literal NULL of a type.
fn format_null(ty: &str) -> &'static str {
    list_literals(ty).iter().find(|l| l.contains("NULL") && !l.starts_with('[')).expect("NULL")
}

const WAYS: [&str; 4] = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"];

impl Queries {
    pub fn new(world: &World, seed: u64) -> Self {
        let tables = world.tables.iter().map(|t| {
            let schema = t.rows.schema();
            let fields = schema.fields().iter().filter(|f| f.name() != "st");
            (t.name.clone(), fields.map(|f| (f.name().clone(), type_by_name(f.name()))).collect())
        });
        let fields = world.tables.iter().map(|t| match t.rows.column_by_name("st") {
            Some(_) => {
                vec![
                    ("st.a".to_string(), "i"),
                    ("st.s".to_string(), "s"),
                    ("st.l".to_string(), "li"),
                ]
            }
            None => Vec::new(),
        });
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            tables: tables.collect(),
            fields: fields.collect(),
            names: 0,
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.random_range(0..n)
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())].clone()
    }

    fn name(&mut self, start: &str) -> String {
        self.names += 1;
        format!("{start}{}", self.names)
    }

    /// Returns the statement with the rare clause that `number` selects, or one with several
    /// columns of one name.
    pub fn rare_form(&mut self, number: usize) -> Form {
        self.names = 0;
        match number % (RARE + 1) {
            RARE => self.make_clash(),
            number => Form { root: self.make_rare(number).0, ordered: false, alone: false },
        }
    }

    /// Returns a random statement. Half of the statements have ORDER BY.
    pub fn form(&mut self) -> Form {
        self.names = 0;
        if self.chance(3) {
            return self.make_clash();
        }
        let (query, columns) = self.query(2);
        if self.chance(50) {
            return Form { root: query, ordered: false, alone: false };
        }
        let order = self.order(&columns);
        let mut p = Parts::default();
        let q = p.put(query);
        let limit = match self.below(2) {
            0 => {
                let (n, skip) = (self.below(9), [0, 0, 1, 4][self.below(4)]);
                p.put(Node::text(Role::Optional, format!(" LIMIT {n} OFFSET {skip}")))
            }
            _ => String::new(),
        };
        let all = join_names(&columns);
        let root = p
            .node(Role::Fixed, format!("SELECT * FROM ({q}) AS z ORDER BY {order}{limit}"))
            .or("WITH", format!("WITH z AS ({q}) SELECT * FROM z ORDER BY {order}{limit}"))
            .or(
                "a step between",
                format!(
                    "SELECT {all} FROM (SELECT * FROM ({q}) AS y) AS z ORDER BY {order}{limit}"
                ),
            );
        Form { root, ordered: true, alone: false }
    }

    /// Returns all columns as sort keys, in random order and directions.
    fn order(&mut self, columns: &Columns) -> String {
        let mut keys: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        for i in (1..keys.len()).rev() {
            let j = self.below(i + 1);
            keys.swap(i, j);
        }
        let keys: Vec<String> =
            keys.into_iter().map(|key| format!("{key}{}", WAYS[self.below(4)])).collect();
        keys.join(", ")
    }

    // Expressions of a value.

    fn atom(&mut self, ty: &'static str, scope: &[Col]) -> Node {
        let fitting: Vec<&Col> = scope.iter().filter(|c| c.ty == ty).collect();
        if !fitting.is_empty() && self.chance(85) {
            let at = self.below(fitting.len());
            return Node::text(Role::Value(ty), fitting[at].text.clone());
        }
        let of = list_literals(ty);
        Node::text(Role::Value(ty), of[self.below(of.len())])
    }

    fn value(&mut self, ty: &'static str, scope: &[Col], levels: usize) -> Node {
        if levels == 0 || self.chance(30) {
            return self.atom(ty, scope);
        }
        let of: Vec<&'static Template> = TEMPLATES.iter().filter(|t| t.ty == ty).collect();
        let template = self.pick(&of);
        let (text, types) = number_columns(&template.text);
        let mut p = Parts::default();
        for ty in types {
            let made = self.value(ty, scope, levels - 1);
            p.put(made);
        }
        let mut node = p.node(Role::Value(ty), format!("({text})"));
        for (law, text) in &template.ways {
            node = node.or(law, format!("({text})"));
        }
        node
    }

    /// Returns a condition for WHERE. With `inner`, it may contain a subquery.
    fn condition(&mut self, scope: &[Col], inner: bool) -> Node {
        if inner && self.chance(35) {
            let first = self.subquery(scope);
            if self.chance(60) {
                return first;
            }
            let mut p = Parts::default();
            let a = p.put(first);
            let second = self.value("b", scope, 2);
            let b = p.put(second);
            return p
                .node(Role::Value("b"), format!("({a} AND {b})"))
                .or("AND of a query goes both ways", format!("({b} AND {a})"));
        }
        self.value("b", scope, 3)
    }

    fn base(&mut self) -> Relation {
        let at = self.below(self.tables.len());
        let (table, mut columns) = self.tables[at].clone();
        columns.extend(self.fields[at].iter().cloned());
        let alias = self.name("r");
        let columns =
            columns.into_iter().map(|(n, ty)| Col { text: format!("{alias}.{n}"), ty }).collect();
        Relation {
            node: Node::text(Role::Fixed, format!("{table} AS {alias}")),
            columns,
            unique: Some(format!("{alias}.id")),
            alias: Some(alias),
        }
    }

    fn derived(&mut self, levels: usize) -> Relation {
        let (query, columns) = self.query(levels - 1);
        let alias = self.name("q");
        let mut p = Parts::default();
        let q = p.put(query);
        Relation {
            node: p.node(Role::Fixed, format!("({q}) AS {alias}")),
            columns: columns
                .into_iter()
                .map(|(n, ty)| Col { text: format!("{alias}.{n}"), ty })
                .collect(),
            alias: Some(alias),
            unique: None,
        }
    }

    fn relation(&mut self, levels: usize) -> Relation {
        match self.below(10) {
            0..=2 if levels > 0 => self.derived(levels),
            3..=5 if levels > 0 => self.join(levels),
            _ => self.base(),
        }
    }

    fn join(&mut self, levels: usize) -> Relation {
        let left = self.relation(levels - 1);
        let right = if self.chance(30) { self.derived(levels) } else { self.base() };
        let mut both = left.columns.clone();
        both.extend(right.columns.iter().cloned());
        let mut p = Parts::default();
        let (l, r) = (p.put(left.node), p.put(right.node));
        let ty = ["i", "i", "i", "s", "f", "d", "n", "li", "li", "ls", "ll", "u", "t", "tz", "b"]
            [self.below(15)];
        let on = |of: &[Col]| of.iter().filter(|c| c.ty == ty).cloned().collect::<Vec<_>>();
        let (a, b) = (on(&left.columns), on(&right.columns));
        let mut conditions = Vec::new();
        if !a.is_empty() && !b.is_empty() && self.chance(90) {
            let sign = if self.chance(12) { "IS NOT DISTINCT FROM" } else { "=" };
            let (a, b) = (self.pick(&a).text, self.pick(&b).text);
            conditions.push(format!("{a} {sign} {b}"));
        }
        if conditions.is_empty() || self.chance(35) {
            let made = self.value("b", &both, 2);
            conditions.push(p.put(made));
        }
        let on = conditions.join(" AND ");
        let unique = left.unique.zip(right.unique).map(|(a, b)| format!("{a}, {b}"));
        let (kind, turned) = [
            ("JOIN", "JOIN"),
            ("JOIN", "JOIN"),
            ("LEFT JOIN", "RIGHT JOIN"),
            ("LEFT JOIN", "RIGHT JOIN"),
            ("RIGHT JOIN", "LEFT JOIN"),
            ("FULL JOIN", "FULL JOIN"),
            ("LEFT SEMI JOIN", ""),
            ("LEFT ANTI JOIN", ""),
        ][self.below(8)];
        let text = format!("{l} {kind} {r} ON {on}");
        if turned.is_empty() {
            let node = p.node(Role::Fixed, text);
            return Relation { node, columns: left.columns, alias: None, unique: None };
        }
        // Joins are left-associative, so that a join on the right side would need parentheses.
        let mut node = p.node(Role::Fixed, text);
        if left.alias.is_some() {
            node = node.or("a join turned round", format!("{r} {turned} {l} ON {on}"));
        }
        Relation { node, columns: both, alias: None, unique }
    }

    // Queries with all their clauses.

    fn items(&mut self, p: &mut Parts, scope: &[Col], n: usize, lists: bool) -> (String, Columns) {
        let mut columns = Vec::new();
        let mut texts = Vec::new();
        for i in 0..n {
            let (made, ty) = if lists && self.chance(10) {
                self.scalar(scope)
            } else {
                let at = self.below(scope.len());
                let ty = match self.below(3) {
                    0 => scope[at].ty,
                    1 if lists => LISTS[self.below(LISTS.len())],
                    _ => SINGLE[self.below(SINGLE.len())],
                };
                let ty = if lists || SINGLE.contains(&ty) { ty } else { "i" };
                (self.value(ty, scope, 2), ty)
            };
            let item = p.put(made);
            texts.push(format!("{item} AS c{i}"));
            columns.push((format!("c{i}"), ty));
        }
        (texts.join(", "), columns)
    }

    fn query(&mut self, levels: usize) -> (Node, Columns) {
        match self.below(if levels == 0 { 6 } else { 28 }) {
            0..=3 => self.plain(levels),
            4..=5 => self.grouped(levels),
            6..=7 => self.limited(levels),
            8..=10 => self.set(levels),
            11..=12 => self.grouping_sets(levels),
            13 => self.distinct(levels),
            14 => self.distinct_on(levels),
            15..=16 => self.windowed(levels),
            17 => self.qualified(levels),
            18..=19 => self.unnested(levels),
            20 => self.nested(),
            21 => self.constant_above(levels),
            _ => self.make_rarer(),
        }
    }

    fn plain(&mut self, levels: usize) -> (Node, Columns) {
        let from = self.relation(levels);
        let mut p = Parts::default();
        let r = p.put(from.node);
        let n = 1 + self.below(3);
        let (items, columns) = self.items(&mut p, &from.columns, n, true);
        let inner = self.chance(40);
        let w = p.put(self.condition(&from.columns, inner));
        let q = p.put(self.value("b", &from.columns, 2));
        let mut node = p
            .node(query_role(&columns), format!("SELECT {items} FROM {r} WHERE {w}"))
            .or(
                "rows where q and where not are all rows",
                format!("SELECT {items} FROM {r} WHERE {w} AND {q} UNION ALL SELECT {items} FROM {r} WHERE {w} AND ({q}) IS NOT TRUE"),
            )
            .or(
                "a condition above the columns",
                format!("SELECT {} FROM (SELECT {items}, {q} AS c9 FROM {r} WHERE {w}) AS y WHERE c9 OR c9 IS NOT TRUE", join_names(&columns)),
            );
        if !inner {
            node = node.or(
                "WHERE of a CASE",
                format!("SELECT {items} FROM {r} WHERE CASE WHEN {w} THEN true ELSE false END"),
            );
        }
        if let Some(alias) = from.alias {
            let c = self.name("w");
            node = node
                .or(
                    "a condition below a query",
                    format!("SELECT {items} FROM (SELECT * FROM {r} WHERE {w}) AS {alias}"),
                )
                .or(
                    "a condition above WITH",
                    format!("WITH {c} AS (SELECT * FROM {r}) SELECT {items} FROM {c} AS {alias} WHERE {w}"),
                );
        }
        (node, columns)
    }

    /// Returns an aggregate over the columns in scope, with all its ways to be written, and the
    /// type of its result.
    fn aggregate(&mut self, scope: &[Col]) -> (Node, &'static str) {
        let mut p = Parts::default();
        let single = ["i", "f", "s", "d", "t", "tz", "n", "u", "g"];
        let ty = match self.below(12) {
            0..=3 => "i",
            _ => single[self.below(single.len())],
        };
        let x = p.put(self.value(ty, scope, 1));
        let b = p.put(self.value("b", scope, 1));
        let filtered = |p: Parts, ty, call: &str| {
            let text = |x: &str, filter: &str| call.replace("{x}", x).replace("{filter}", filter);
            let case = format!("CASE WHEN {b} THEN {x} END");
            p.node(Role::Value(ty), text(&x, &format!(" FILTER (WHERE {b})")))
                .or("FILTER is CASE", text(&case, ""))
        };
        match self.below(9) {
            0 => (
                Node::text(Role::Value("i"), "count(*)").or("count(*) is count(1)", "count(1)"),
                "i",
            ),
            1 => (
                p.node(Role::Value("i"), format!("count({x})"))
                    .or("count of values", format!("count(*) FILTER (WHERE ({x}) IS NOT NULL)")),
                "i",
            ),
            2 => (filtered(p, "i", "count(DISTINCT {x}){filter}"), "i"),
            3 => (filtered(p, ty, "max({x}){filter}"), ty),
            4 => (filtered(p, ty, "min({x}){filter}"), ty),
            5 if ty == "i" => (filtered(p, "i", "CAST(sum({x}){filter} AS BIGINT)"), "i"),
            6 if ty == "i" => {
                (p.node(Role::Value("i"), format!("CAST(sum(DISTINCT {x}) AS BIGINT)")), "i")
            }
            7 if ty == "i" || ty == "f" => (filtered(p, "f", "avg({x}){filter}"), "f"),
            _ if ty == "f" => (filtered(p, "f", "sum({x}){filter}"), "f"),
            _ => (
                p.node(Role::Value("b"), format!("bool_or({b})")).or(
                    "bool_or is a count",
                    format!(
                        "CASE WHEN count({b}) > 0 THEN count(CASE WHEN {b} THEN 1 END) > 0 END"
                    ),
                ),
                "b",
            ),
        }
    }

    fn grouped(&mut self, levels: usize) -> (Node, Columns) {
        let from = self.relation(levels);
        let mut p = Parts::default();
        let r = p.put(from.node);
        let mut columns = Vec::new();
        let (mut keys, mut all) = (Vec::new(), Vec::new());
        for i in 0..1 + self.below(2) {
            let of: Vec<Col> = from.columns.clone();
            let column = self.pick(&of);
            // A key is never a literal, because GROUP BY would read an integer as the position of a
            // column.
            let made = match self.below(3) {
                0 if SINGLE.contains(&column.ty) => self.key(column.ty, &from.columns),
                _ => Node::text(Role::Fixed, column.text.clone()),
            };
            let key = p.put(made);
            all.push(format!("{key} AS c{i}"));
            keys.push(key);
            columns.push((format!("c{i}"), column.ty));
        }
        for i in keys.len()..keys.len() + 1 + self.below(2) {
            let (made, ty) = self.aggregate(&from.columns);
            let item = p.put(made);
            all.push(format!("{item} AS c{i}"));
            columns.push((format!("c{i}"), ty));
        }
        let w = p.put(self.condition(&from.columns, false));
        let having = ["count(*) > 1", "count(*) <= 2", "true", "true"][self.below(4)];
        let (items, keys) = (all.join(", "), keys.join(", "));
        let list = join_names(&columns);
        let node = p
            .node(
                query_role(&columns),
                format!("SELECT {items} FROM {r} WHERE {w} GROUP BY {keys} HAVING {having}"),
            )
            .or(
                "HAVING is WHERE above",
                format!("SELECT {list} FROM (SELECT {items}, {having} AS c9 FROM {r} WHERE {w} GROUP BY {keys}) AS y WHERE c9"),
            );
        (node, columns)
    }

    /// Returns an expression with at least one column, as a key of GROUP BY.
    fn key(&mut self, ty: &'static str, scope: &[Col]) -> Node {
        for _ in 0..8 {
            let made = self.value(ty, scope, 1);
            let text = made.sql(false);
            if scope.iter().any(|c| text.contains(&c.text)) {
                return Node { role: Role::Fixed, ..made };
            }
        }
        let column = scope.iter().find(|c| c.ty == ty).unwrap_or(&scope[0]);
        Node::text(Role::Fixed, column.text.clone())
    }

    fn grouping_sets(&mut self, levels: usize) -> (Node, Columns) {
        let (query, inner) = self.plain(levels - 1);
        let mut p = Parts::default();
        let q = p.put(query);
        let h = self.name("h");
        let scope: Vec<Col> =
            inner.iter().map(|(n, ty)| Col { text: format!("{h}.{n}"), ty }).collect();
        let keys: Vec<Col> = scope.iter().take(2).cloned().collect();
        let (made, ty) = self.aggregate(&scope);
        let a = p.put(made);
        let mut columns: Columns =
            keys.iter().enumerate().map(|(i, k)| (format!("c{i}"), k.ty)).collect();
        let last = format!("c{}", columns.len());
        columns.push((last.clone(), ty));
        let whole: Vec<usize> = (0..keys.len()).collect();
        let texts: Vec<&str> = keys.iter().map(|k| k.text.as_str()).collect();
        let (written, sets): (String, Vec<Vec<usize>>) = match self.below(4) {
            0 => (
                format!("ROLLUP ({})", texts.join(", ")),
                (0..=keys.len()).map(|n| whole[..n].to_vec()).collect(),
            ),
            1 if keys.len() == 2 => {
                (format!("CUBE ({})", texts.join(", ")), vec![vec![0, 1], vec![0], vec![1], vec![]])
            }
            2 if keys.len() == 2 => {
                (format!("{}, ROLLUP ({})", texts[0], texts[1]), vec![vec![0, 1], vec![0]])
            }
            _ => {
                let mut sets = vec![whole.clone()];
                for _ in 0..1 + self.below(2) {
                    let keep = (0..keys.len()).filter(|_| self.chance(40)).collect();
                    sets.push(keep);
                }
                let text: Vec<String> = sets
                    .iter()
                    .map(|s| {
                        let of: Vec<&str> = s.iter().map(|i| texts[*i]).collect();
                        format!("({})", of.join(", "))
                    })
                    .collect();
                (format!("GROUPING SETS ({})", text.join(", ")), sets)
            }
        };
        let made = self.value("b", &scope, 1);
        let w = p.put(Node { role: Role::Value("b"), ..made });
        let having = ["count(*) > 1", "true", "true"][self.below(3)];
        let items: Vec<String> =
            keys.iter().enumerate().map(|(i, k)| format!("{} AS c{i}", k.text)).collect();
        let text = format!(
            "SELECT {}, {a} AS {last} FROM ({q}) AS {h} WHERE {w} GROUP BY {written} HAVING {having}",
            items.join(", ")
        );
        let parts: Vec<String> = sets
            .iter()
            .map(|set| {
                let items: Vec<String> = keys
                    .iter()
                    .enumerate()
                    .map(|(i, k)| match set.contains(&i) {
                        true => format!("{} AS c{i}", k.text),
                        false => format!("{} AS c{i}", format_null(k.ty)),
                    })
                    .collect();
                let by: Vec<&str> = set.iter().map(|i| texts[*i]).collect();
                let by = if by.is_empty() {
                    String::new()
                } else {
                    format!(" GROUP BY {}", by.join(", "))
                };
                format!(
                    "SELECT {}, {a} AS {last} FROM ({q}) AS {h} WHERE {w}{by} HAVING {having}",
                    items.join(", ")
                )
            })
            .collect();
        let node = p
            .node(query_role(&columns), text)
            .or("GROUPING SETS are a UNION ALL", parts.join(" UNION ALL "));
        (node, columns)
    }

    fn distinct(&mut self, levels: usize) -> (Node, Columns) {
        let from = self.relation(levels);
        let mut p = Parts::default();
        let r = p.put(from.node);
        let n = 1 + self.below(3);
        let (items, columns) = self.items(&mut p, &from.columns, n, true);
        let w = p.put(self.condition(&from.columns, true));
        let list = join_names(&columns);
        let query = format!("SELECT {items} FROM {r} WHERE {w}");
        let node = p
            .node(query_role(&columns), format!("SELECT DISTINCT {items} FROM {r} WHERE {w}"))
            .or("DISTINCT is GROUP BY", format!("SELECT {list} FROM ({query}) AS y GROUP BY {list}"))
            .or("DISTINCT is UNION", format!("{query} UNION SELECT {items} FROM {r} WHERE {w}"))
            .or("DISTINCT is the first of a window", format!("SELECT {list} FROM (SELECT *, row_number() OVER (PARTITION BY {list}) AS c9 FROM ({query}) AS y) AS x WHERE c9 = 1"));
        (node, columns)
    }

    fn distinct_on(&mut self, _: usize) -> (Node, Columns) {
        let from = self.base();
        let mut p = Parts::default();
        let r = p.put(from.node);
        let n = 1 + self.below(3);
        let (items, columns) = self.items(&mut p, &from.columns, n, false);
        let w = p.put(self.condition(&from.columns, false));
        let on: Vec<Col> = from.columns.iter().filter(|c| c.ty != "ll").cloned().collect();
        let k = self.pick(&on).text;
        let id = from.unique.unwrap_or_default();
        let way = WAYS[self.below(4)];
        let list = join_names(&columns);
        let node = p
            .node(
                query_role(&columns),
                format!("SELECT DISTINCT ON ({k}) {items} FROM {r} WHERE {w} ORDER BY {k}, {id}{way}"),
            )
            .or(
                "DISTINCT ON is the first of a window",
                format!("SELECT {list} FROM (SELECT {items}, row_number() OVER (PARTITION BY {k} ORDER BY {id}{way}) AS c9 FROM {r} WHERE {w}) AS y WHERE c9 = 1"),
            );
        (node, columns)
    }

    /// Returns a window function over a base table, and the type of its result. The column `id`
    /// completes the sort keys, so that the order of the rows is determined.
    fn window(&mut self, p: &mut Parts, scope: &[Col], id: &str) -> (String, &'static str) {
        let by: Vec<Col> = scope.iter().filter(|c| c.ty != "ll").cloned().collect();
        let by = self.pick(&by).text;
        let partition = if self.chance(70) { format!("PARTITION BY {by} ") } else { String::new() };
        let sorts: Vec<Col> = scope.iter().filter(|c| SINGLE.contains(&c.ty)).cloned().collect();
        let sort = self.pick(&sorts).text;
        let way = WAYS[self.below(4)];
        let over = format!("OVER ({partition}ORDER BY {sort}{way}, {id})");
        let frame = [
            "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
            "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            "",
        ][self.below(4)];
        let framed = format!("OVER ({partition}ORDER BY {sort}{way}, {id} {frame})");
        let ty = ["i", "f", "s", "d", "n"][self.below(5)];
        let x = p.put(self.value(ty, scope, 1));
        match self.below(8) {
            6 => (format!("lag({x}, -1, {x}) {over}"), ty),
            7 => (format!("lead({x}, 2, {x}) {over}"), ty),
            0 => (format!("CAST(row_number() {over} AS BIGINT)"), "i"),
            1 => (format!("CAST(rank() OVER ({partition}ORDER BY {sort}{way}) AS BIGINT)"), "i"),
            2 => (format!("lag({x}) {over}"), ty),
            3 => (format!("first_value({x}) {framed}"), ty),
            4 => (format!("max({x}) {framed}"), ty),
            _ => (format!("count({x}) {framed}"), "i"),
        }
    }

    fn windowed(&mut self, _: usize) -> (Node, Columns) {
        let from = self.base();
        let id = from.unique.clone().unwrap_or_default();
        let mut p = Parts::default();
        let r = p.put(from.node);
        let n = 1 + self.below(2);
        let (items, mut columns) = self.items(&mut p, &from.columns, n, true);
        let w = p.put(self.condition(&from.columns, false));
        let (window, ty) = self.window(&mut p, &from.columns, &id);
        let last = format!("c{}", columns.len());
        columns.push((last.clone(), ty));
        let alias = from.alias.unwrap_or_default();
        let node = p
            .node(query_role(&columns), format!("SELECT {items}, {window} AS {last} FROM {r} WHERE {w}"))
            .or(
                "a window above a condition",
                format!("SELECT {items}, {window} AS {last} FROM (SELECT * FROM {r} WHERE {w}) AS {alias}"),
            )
            .or(
                "a window over sorted rows",
                format!("SELECT {items}, {window} AS {last} FROM (SELECT * FROM {r} WHERE {w} ORDER BY {id} DESC) AS {alias}"),
            );
        (node, columns)
    }

    fn qualified(&mut self, _: usize) -> (Node, Columns) {
        let from = self.base();
        let id = from.unique.clone().unwrap_or_default();
        let mut p = Parts::default();
        let r = p.put(from.node);
        let n = 1 + self.below(2);
        let (items, columns) = self.items(&mut p, &from.columns, n, true);
        let w = p.put(self.condition(&from.columns, false));
        let (window, ty) = self.window(&mut p, &from.columns, &id);
        let test = match ty {
            "i" => ["= 1", "> 1", "IS NULL"][self.below(3)],
            _ => ["IS NULL", "IS NOT NULL"][self.below(2)],
        };
        let node = p
            .node(
                query_role(&columns),
                format!("SELECT {items} FROM {r} WHERE {w} QUALIFY {window} {test}"),
            )
            .or(
                "QUALIFY is WHERE above",
                format!("SELECT {} FROM (SELECT {items}, {window} AS c9 FROM {r} WHERE {w}) AS y WHERE c9 {test}", join_names(&columns)),
            );
        (node, columns)
    }

    fn set(&mut self, levels: usize) -> (Node, Columns) {
        let (left, columns) = self.query(levels - 1);
        let from = self.relation(levels - 1);
        let mut p = Parts::default();
        let a = p.put(left);
        // The second query of the set operation has columns of the same names and types, from
        // another relation.
        let mut right = Parts::default();
        let r = right.put(from.node);
        let mut items = Vec::new();
        for (name, ty) in &columns {
            let made = self.value(ty, &from.columns, 1);
            items.push(format!("{} AS {name}", right.put(made)));
        }
        let made = self.condition(&from.columns, false);
        let w = right.put(made);
        let right = right
            .node(query_role(&columns), format!("SELECT {} FROM {r} WHERE {w}", items.join(", ")));
        let b = p.put(right);
        let all = join_names(&columns);
        let (x, y) = (names_of(&columns, "x"), names_of(&columns, "y"));
        let equal: Vec<String> =
            columns.iter().map(|(n, _)| format!("x.{n} IS NOT DISTINCT FROM y.{n}")).collect();
        let equal = equal.join(" AND ");
        let counted = |q: &str, t: &str, of: &str| {
            format!("SELECT {of}, row_number() OVER (PARTITION BY {of}) AS c9 FROM ({q}) AS {t}")
        };
        let (q, role) = (p, query_role(&columns));
        let node = match self.below(7) {
            0 => q
                .node(role, format!("({a}) EXCEPT ALL ({b})"))
                .or("EXCEPT ALL by numbers", format!("SELECT {all} FROM (({}) EXCEPT ({})) AS w", counted(&a, "x", &x), counted(&b, "y", &y))),
            1 => q
                .node(role, format!("({a}) INTERSECT ALL ({b})"))
                .or("INTERSECT ALL by numbers", format!("SELECT {all} FROM (({}) INTERSECT ({})) AS w", counted(&a, "x", &x), counted(&b, "y", &y)))
                .or("INTERSECT ALL turned round", format!("({b}) INTERSECT ALL ({a})")),
            2 => q
                .node(role, format!("({a}) EXCEPT ({b})"))
                .or("EXCEPT is NOT EXISTS", format!("SELECT DISTINCT {x} FROM ({a}) AS x WHERE NOT EXISTS (SELECT 1 FROM ({b}) AS y WHERE {equal})"))
                .or("EXCEPT of DISTINCT", format!("(SELECT DISTINCT * FROM ({a}) AS x) EXCEPT ALL (SELECT DISTINCT * FROM ({b}) AS y)")),
            3 => q
                .node(role, format!("({a}) INTERSECT ({b})"))
                .or("INTERSECT is EXISTS", format!("SELECT DISTINCT {x} FROM ({a}) AS x WHERE EXISTS (SELECT 1 FROM ({b}) AS y WHERE {equal})"))
                .or("INTERSECT turned round", format!("({b}) INTERSECT ({a})")),
            4 => q
                .node(role, format!("({a}) UNION ({b})"))
                .or("UNION is DISTINCT of UNION ALL", format!("SELECT DISTINCT * FROM (({a}) UNION ALL ({b})) AS x"))
                .or("UNION turned round", format!("({b}) UNION ({a})")),
            _ => q
                .node(role, format!("({a}) UNION ALL ({b})"))
                .or("UNION ALL turned round", format!("({b}) UNION ALL ({a})")),
        };
        (node, columns)
    }

    fn limited(&mut self, levels: usize) -> (Node, Columns) {
        let (query, columns) = self.query(levels - 1);
        let mut p = Parts::default();
        let q = p.put(query);
        let order = self.order(&columns);
        let (n, skip) = (self.below(8), [0, 0, 1, 3][self.below(4)]);
        let offset = if skip > 0 { format!(" OFFSET {skip}") } else { String::new() };
        let all = join_names(&columns);
        let node = p
            .node(
                query_role(&columns),
                format!("SELECT * FROM ({q}) AS z ORDER BY {order} LIMIT {n}{offset}"),
            )
            .or(
                "LIMIT is a window of ORDER BY",
                format!("SELECT {all} FROM (SELECT *, row_number() OVER (ORDER BY {order}) AS c9 FROM ({q}) AS z) AS y WHERE c9 > {skip} AND c9 <= {}", skip + n),
            )
            .or(
                "LIMIT of LIMIT",
                format!("SELECT * FROM (SELECT * FROM ({q}) AS z ORDER BY {order} LIMIT {}) AS y ORDER BY {order} LIMIT {n}{offset}", n + skip),
            )
            .or(
                "OFFSET below LIMIT",
                format!("SELECT * FROM (SELECT * FROM ({q}) AS z ORDER BY {order}{offset}) AS y ORDER BY {order} LIMIT {n}"),
            );
        (node, columns)
    }

    fn unnested(&mut self, levels: usize) -> (Node, Columns) {
        let from = self.relation(levels - 1);
        let mut p = Parts::default();
        let r = p.put(from.node);
        let (items, mut columns) = self.items(&mut p, &from.columns, 1, true);
        let w = p.put(self.condition(&from.columns, false));
        let (mut lists, mut plain) = (Vec::new(), Vec::new());
        for i in 1..2 + self.below(2) {
            let ty = LISTS[self.below(LISTS.len())];
            let list = p.put(self.value(ty, &from.columns, 1));
            lists.push(format!("unnest({list}) AS c{i}"));
            plain.push(format!("{list} AS l{i}"));
            let element = if ty == "ll" { "li" } else { type_of(&ty[1..]) };
            columns.push((format!("c{i}"), element));
        }
        let later: Vec<String> =
            (1..=lists.len()).map(|i| format!("unnest(l{i}) AS c{i}")).collect();
        let node = p
            .node(
                query_role(&columns),
                format!("SELECT {items}, {} FROM {r} WHERE {w}", lists.join(", ")),
            )
            .or(
                "unnest a step later",
                format!(
                    "SELECT c0, {} FROM (SELECT {items}, {} FROM {r} WHERE {w}) AS y",
                    later.join(", "),
                    plain.join(", ")
                ),
            );
        (node, columns)
    }

    /// Returns a query that unnests lists into rows and nests the rows into lists again.
    fn nested(&mut self) -> (Node, Columns) {
        let at = self.below(self.tables.len());
        let (table, known) = self.tables[at].clone();
        let lists: Vec<(String, &'static str)> =
            known.iter().filter(|(_, ty)| ["li", "lf", "ls"].contains(ty)).cloned().collect();
        let (list, ty) = self.pick(&lists);
        let e = self.name("e");
        let scope = vec![
            Col { text: format!("{e}.id"), ty: "i" },
            Col { text: format!("{e}.{list}"), ty: type_of(&ty[1..]) },
        ];
        let mut p = Parts::default();
        let w = p.put(self.value("b", &scope, 1));
        let columns = vec![("c0".to_string(), "i"), ("c1".to_string(), ty)];
        let rows = format!("ragged_explode((SELECT id, {list} FROM {table}))");
        let node = p
            .node(
                query_role(&columns),
                format!("SELECT n.c0 AS c0, n.c1 AS c1 FROM ragged_nest((SELECT {e}.id AS c0, {e}.{list} AS c1 FROM {rows} AS {e} WHERE {w} ORDER BY 1, 2), 'c0') AS n"),
            )
            .or(
                "ragged_nest is array_agg",
                format!("SELECT {e}.id AS c0, array_agg({e}.{list} ORDER BY {e}.{list}) AS c1 FROM {rows} AS {e} WHERE {w} GROUP BY {e}.id"),
            )
            .or(
                "ragged_explode is unnest",
                format!("SELECT n.c0 AS c0, n.c1 AS c1 FROM ragged_nest((SELECT {e}.id AS c0, {e}.{list} AS c1 FROM (SELECT id, unnest({list}) AS {list} FROM {table}) AS {e} WHERE {w} ORDER BY 1, 2), 'c0') AS n"),
            );
        (node, columns)
    }

    /// Returns a query above an aggregation that adds a constant column and has a condition without
    /// columns.
    fn constant_above(&mut self, levels: usize) -> (Node, Columns) {
        let (query, inner) = match self.below(2) {
            0 => self.grouped(levels - 1),
            _ => self.grouping_sets(levels),
        };
        let mut p = Parts::default();
        let q = p.put(query);
        let ty = SINGLE[self.below(SINGLE.len())];
        let of = list_literals(ty);
        let constant = of[self.below(of.len())];
        let w = p.put(self.value("b", &[], 1));
        let mut columns = inner.clone();
        columns.push(("c8".into(), ty));
        let all = join_names(&inner);
        let node = p
            .node(
                query_role(&columns),
                format!("SELECT {all}, {constant} AS c8 FROM ({q}) AS y WHERE {w}"),
            )
            .or(
                "a constant of a join",
                format!("SELECT {all}, c8 FROM ({q}) AS y CROSS JOIN (SELECT {constant} AS c8) AS x WHERE {w}"),
            )
            .or(
                "a constant condition above",
                format!("SELECT {all}, c8 FROM (SELECT {all}, {constant} AS c8, {w} AS c9 FROM ({q}) AS y) AS x WHERE c9"),
            );
        (node, columns)
    }
}
