//! Random statements, which consist of the steps of a WITH and a query over tables and steps.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::expressions::{CLOSE, Calls, Expr, Leaf, Maker, OPEN, Type};
use crate::tables::{Column, World};

/// How the steps of a statement are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// The steps are in `WITH s0 AS (..)`.
    With,
    /// The steps are subqueries in FROM.
    Derived,
    /// The statement names tables that hold the results of the steps.
    Tables,
}

#[derive(Clone, Debug)]
pub struct Statement {
    pub steps: Vec<(String, Query)>,
    pub last: Query,
}

/// An item of FROM.
#[derive(Clone, Debug)]
pub struct Relation {
    /// The name of a table or step in double braces, or a join of several.
    pub text: String,
    pub alias: String,
}

#[derive(Clone, Debug)]
pub struct Join {
    pub kind: &'static str,
    pub with: Relation,
    pub on: Vec<String>,
    pub using: Option<&'static str>,
}

#[derive(Clone, Debug, Default)]
pub struct Query {
    pub distinct: bool,
    pub items: Vec<Item>,
    pub from: Option<Relation>,
    pub joins: Vec<Join>,
    pub filters: Vec<String>,
    pub group: Vec<String>,
    pub having: Option<String>,
    /// Keys of ORDER BY that come before those that make the order total.
    pub order: Vec<String>,
    /// Whether all columns follow as keys of ORDER BY, so that the order is total.
    pub total: bool,
    pub limit: Option<(usize, usize)>,
    pub union: Option<Box<Query>>,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub struct Item {
    pub expr: Expr,
    pub name: String,
    /// Whether the item is unnested into rows.
    pub unnest: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    Plain,
    Grouped,
    Windowed,
    Unnest,
    Explode,
    Nest,
}

impl Query {
    /// Returns the SQL text, in which names of tables and steps are in double braces.
    fn text(&self) -> String {
        let mut out = self.selected();
        if let Some(union) = &self.union {
            out = format!("{out} UNION ALL {}", union.selected());
        }
        let mut order = self.order.clone();
        if self.total {
            order.extend((1..=self.items.len()).map(|i| i.to_string()));
        }
        if !order.is_empty() {
            out.push_str(&format!(" ORDER BY {}", order.join(", ")));
        }
        if let Some((n, skip)) = self.limit {
            out.push_str(&format!(" LIMIT {n}"));
            if skip > 0 {
                out.push_str(&format!(" OFFSET {skip}"));
            }
        }
        out
    }

    fn selected(&self) -> String {
        let item = |i: &Item| match i.unnest {
            true => format!("unnest({}) AS {}", i.expr, i.name),
            false => format!("{} AS {}", i.expr, i.name),
        };
        let items: Vec<_> = self.items.iter().map(item).collect();
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        let mut out = format!("SELECT {distinct}{}", items.join(", "));
        if let Some(from) = &self.from {
            out.push_str(&format!(" FROM {} AS {}", from.text, from.alias));
        }
        for join in &self.joins {
            out.push_str(&format!(" {} JOIN {} AS {}", join.kind, join.with.text, join.with.alias));
            match join.using {
                Some(column) => out.push_str(&format!(" USING ({column})")),
                None => out.push_str(&format!(" ON {}", join.on.join(" AND "))),
            }
        }
        if !self.filters.is_empty() {
            out.push_str(&format!(" WHERE {}", self.filters.join(" AND ")));
        }
        if !self.group.is_empty() {
            out.push_str(&format!(" GROUP BY {}", self.group.join(", ")));
        }
        if let Some(having) = &self.having {
            out.push_str(&format!(" HAVING {having}"));
        }
        out
    }

    fn leave_order(&mut self) {
        (self.order, self.total, self.limit) = (Vec::new(), false, None);
    }

    /// Returns whether ORDER BY determines the order of all rows.
    pub fn is_ordered(&self) -> bool {
        self.total
    }
}

/// Returns the text with its redundant parentheses written, or without them.
pub fn parentheses(text: &str, written: bool) -> String {
    if written {
        text.replace(OPEN, "(").replace(CLOSE, ")")
    } else {
        text.replace([OPEN, CLOSE], "")
    }
}

impl Statement {
    pub fn text(&self, steps: Steps, written: bool) -> String {
        let mut known = BTreeMap::new();
        let mut with = Vec::new();
        for (name, query) in &self.steps {
            let text = resolve_text(&query.text(), &known);
            match steps {
                Steps::With => with.push(format!("{name} AS ({text})")),
                Steps::Derived => {
                    known.insert(name.clone(), format!("({text})"));
                }
                Steps::Tables => {}
            }
        }
        let last = resolve_text(&self.last.text(), &known);
        let text = if with.is_empty() { last } else { format!("WITH {} {last}", with.join(", ")) };
        parentheses(&text, written)
    }

    /// Returns an equivalent statement with more steps: queries below an unnest and the inputs of
    /// UNION ALL become steps.
    pub fn unrolled(&self) -> Self {
        let mut steps = Vec::new();
        for (name, query) in &self.steps {
            let outer = unroll(name, query, &mut steps);
            steps.push((name.clone(), outer));
        }
        let last = unroll("last", &self.last, &mut steps);
        Self { steps, last }
    }

    /// Returns the statement without ORDER BY and LIMIT.
    pub fn unordered(mut self) -> Self {
        for (_, query) in &mut self.steps {
            query.leave_order();
        }
        self.last.leave_order();
        self
    }

    /// Returns the names of the steps with their queries, in which earlier steps are tables.
    pub fn step_texts(&self) -> Vec<(String, String)> {
        let none = BTreeMap::new();
        self.steps
            .iter()
            .map(|(name, q)| (name.clone(), parentheses(&resolve_text(&q.text(), &none), true)))
            .collect()
    }

    /// Returns whether a plan may omit an expression that fails, because no other part of the
    /// statement reads its rows or columns.
    pub fn may_skip(&self) -> bool {
        let cut = |q: &Query| q.limit.is_some();
        let last = &self.last;
        !self.steps.is_empty()
            || cut(last)
            || !last.joins.is_empty()
            || last.filters.len() > 1
            || last.union.is_some()
            || self.last.text().matches("SELECT").count() > 1
            || self.last.text().contains("CASE")
            || self.last.text().contains("coalesce")
            || self.last.text().contains(" AND ")
            || self.last.text().contains(" OR ")
    }
}

/// Moves the query below an unnest, or the inputs of UNION ALL, to `steps`. Returns the query that
/// reads them.
fn unroll(name: &str, query: &Query, steps: &mut Vec<(String, Query)>) -> Query {
    let unnests = query.items.iter().any(|i| i.unnest);
    if !unnests && query.union.is_none() {
        return query.clone();
    }
    let mut inner = query.clone();
    inner.leave_order();
    if unnests {
        inner.distinct = false;
        inner.items.iter_mut().for_each(|i| i.unnest = false);
    }
    let name = format!("u_{name}");
    let item = |i: &Item| Item {
        expr: Expr::column(i.name.clone(), i.expr.ty, None),
        unnest: unnests && i.unnest,
        name: i.name.clone(),
    };
    let outer = Query {
        distinct: query.distinct && unnests,
        items: query.items.iter().map(item).collect(),
        from: Some(Relation { text: name.clone(), alias: "u".into() }),
        order: query.order.clone(),
        total: query.total,
        limit: query.limit,
        kind: query.kind,
        ..Query::default()
    };
    steps.push((name, inner));
    outer
}

fn resolve_text(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let end = rest[at..].find("}}").map_or(rest.len(), |e| at + e);
        let name = &rest[at + 2..end];
        out.push_str(&rest[..at]);
        out.push_str(known.get(name).map_or(name, String::as_str));
        rest = &rest[end + 2..];
    }
    out.push_str(rest);
    out
}

/// A table or step that a query may select from.
#[derive(Clone, Debug)]
struct Source {
    name: String,
    columns: Vec<Column>,
    /// Whether the source is a table, whose rows have an order.
    table: bool,
}

/// A generator of statements over the tables of a world.
pub struct Statements {
    pub random: ChaCha8Rng,
    calls: Calls,
    sources: Vec<Source>,
}

/// The columns that expressions may use, and the key by which their rows are ordered.
struct Scope {
    columns: Vec<Expr>,
    traps: Vec<String>,
    /// Sort keys that make the order of the rows total, if all relations have them.
    unique: Option<String>,
}

impl Statements {
    pub fn new(world: &World, calls: Calls, seed: u64) -> Self {
        let sources = world
            .tables
            .iter()
            .map(|t| Source { name: t.name.clone(), columns: t.columns.clone(), table: true })
            .collect();
        Self { random: ChaCha8Rng::seed_from_u64(seed), calls, sources }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.random_range(0..n)
    }

    pub fn statement(&mut self) -> Statement {
        let tables = self.sources.len();
        let mut steps = Vec::new();
        for i in 0..[0, 0, 0, 1, 1, 2][self.below(6)] {
            let name = format!("s{i}");
            let mut query = self.query();
            for (n, item) in query.items.iter_mut().enumerate() {
                item.name = format!("{}{n}", ["d", "e"][i]);
            }
            if let Some(union) = &mut query.union {
                for (n, item) in union.items.iter_mut().enumerate() {
                    item.name = format!("{}{n}", ["d", "e"][i]);
                }
            }
            if query.total && self.chance(60) {
                query.total = false;
                query.order.clear();
                query.limit = None;
            }
            self.sources.push(source_of(&name, &query));
            steps.push((name, query));
        }
        let last = self.query();
        self.sources.truncate(tables);
        Statement { steps, last }
    }

    /// Returns a statement with the given call over one table, or `None` if no arguments fit.
    pub fn about(&mut self, call: crate::functions::Call, aggregate: bool) -> Option<Statement> {
        let source = self.sources[0].clone();
        let relation = Relation { text: format!("{{{{{}}}}}", source.name), alias: "a".into() };
        let columns: Vec<Expr> =
            source.columns.iter().filter(|c| !c.trap).map(|c| c.of("a")).collect();
        let mut query = Query { from: Some(relation), total: true, ..Query::default() };
        let mut maker = Maker {
            random: &mut self.random,
            columns: &columns,
            calls: if call.fails { Calls::All } else { Calls::Safe },
        };
        let mut made = maker.call(call, None, 1)?;
        made.text = made.text.replace("ORDER BY ORDER", "ORDER BY a.id");
        let key = columns.iter().find(|c| c.text == if aggregate { "a.k" } else { "a.id" })?;
        if aggregate {
            query.group.push("a.k".into());
            query.kind = Kind::Grouped;
        }
        query.items = make_items(vec![key.clone(), made]);
        Some(Statement { steps: Vec::new(), last: query })
    }

    fn relation(&mut self, alias: &str) -> (Relation, Source) {
        let at = self.below(self.sources.len());
        let source = if self.chance(50) {
            self.sources[self.sources.len() - 1].clone()
        } else {
            self.sources[at].clone()
        };
        let text = format!("{{{{{}}}}}", source.name);
        (Relation { text, alias: alias.into() }, source)
    }

    fn scope(parts: &[(String, Source)]) -> Scope {
        let all = |trap: bool| {
            parts.iter().flat_map(move |(alias, s)| {
                s.columns.iter().filter(move |c| c.trap == trap).map(move |c| c.of(alias))
            })
        };
        let unique: Option<Vec<String>> =
            parts.iter().map(|(alias, s)| s.table.then(|| format!("{alias}.id"))).collect();
        Scope {
            columns: all(false).collect(),
            traps: all(true).map(|e| e.text).collect(),
            unique: unique.map(|u| u.join(", ")),
        }
    }

    fn query(&mut self) -> Query {
        let mut query = Query::default();
        let choice = self.below(20);
        let steps = self.sources.iter().any(|s| !s.table);
        if choice < 3 && self.calls != Calls::Shared {
            return self.exploded(steps);
        }
        let (from, source) = self.relation("a");
        query.from = Some(from);
        let mut parts = vec![("a".to_string(), source)];
        let joins = [0, 0, 0, 1, 1, 2][self.below(6)];
        for alias in ["b", "c"].into_iter().take(joins) {
            self.join(&mut query, &mut parts, alias);
        }
        let scope = Self::scope(&parts);
        self.filters(&mut query, &scope);
        match choice {
            3..=6 => self.grouped(&mut query, &scope),
            7..=8 => self.windowed(&mut query, &scope),
            9..=10 => self.unnested(&mut query, &scope),
            _ => self.plain(&mut query, &scope),
        }
        self.finish(&mut query, &scope);
        query
    }

    fn join(&mut self, query: &mut Query, parts: &mut Vec<(String, Source)>, alias: &str) {
        const KINDS: [&str; 6] = ["INNER", "INNER", "LEFT", "RIGHT", "RIGHT", "FULL"];
        let kind = KINDS[self.below(KINDS.len())];
        let (with, source) = self.relation(alias);
        let has_k = |s: &Source| s.columns.iter().any(|c| c.name == "k");
        let using = (parts.len() == 1 && has_k(&parts[0].1) && has_k(&source) && self.chance(12))
            .then_some("k");
        let left: Vec<Expr> = Self::scope(parts).columns;
        let right: Vec<Expr> = source.columns.iter().map(|c| c.of(alias)).collect();
        parts.push((alias.to_string(), source));
        let mut on = Vec::new();
        if using.is_none() {
            let ty = if self.chance(85) { Leaf::Int } else { Leaf::Text };
            let levels = [0, 0, 0, 1][self.below(4)];
            let calls = self.calls;
            let side = |columns: &[Expr], random: &mut ChaCha8Rng| {
                let mut maker = Maker { random, columns, calls };
                let made = maker.make(Type::new(0, ty), &None, levels);
                match ty {
                    Leaf::Int if maker.chance(20) => format!("CAST({made} AS BIGINT)"),
                    _ => made.closed(),
                }
            };
            let l = side(&left, &mut self.random);
            let r = side(&right, &mut self.random);
            on.push(format!("{l} = {r}"));
            if self.chance(25) {
                let columns: Vec<Expr> = left.iter().chain(&right).cloned().collect();
                let mut maker =
                    Maker { random: &mut self.random, columns: &columns, calls: self.calls };
                on.push(maker.predicate(1).closed());
            }
        }
        query.joins.push(Join { kind, with, on, using });
    }

    fn filters(&mut self, query: &mut Query, scope: &Scope) {
        for _ in 0..[0, 0, 1, 1, 2][self.below(5)] {
            let filter = match self.below(10) {
                0..=2 => self.subquery(scope),
                3 if query.joins.iter().any(|j| j.kind != "INNER") => {
                    let alias = ["a", "b"][self.below(2)];
                    let column = scope.columns.iter().find(|c| c.text.starts_with(alias));
                    column.map(|c| format!("{c} IS NULL"))
                }
                _ => None,
            };
            let levels = 1 + self.below(2);
            let filter = filter.unwrap_or_else(|| {
                let mut maker =
                    Maker { random: &mut self.random, columns: &scope.columns, calls: self.calls };
                maker.predicate(levels).closed()
            });
            query.filters.push(filter);
        }
    }

    /// Returns a condition with a subquery, or `None` if the columns allow none.
    fn subquery(&mut self, scope: &Scope) -> Option<String> {
        let (relation, source) = self.relation("q");
        let inside: Vec<Expr> =
            source.columns.iter().filter(|c| !c.trap).map(|c| c.of("q")).collect();
        let ints = |of: &[Expr]| -> Vec<Expr> {
            of.iter().filter(|c| c.ty == Type::new(0, Leaf::Int)).cloned().collect()
        };
        let (outer, inner) = (ints(&scope.columns), ints(&inside));
        if outer.is_empty() || inner.is_empty() {
            return None;
        }
        let o = &outer[self.below(outer.len())];
        let i = &inner[self.below(inner.len())];
        let from = format!("FROM {} AS q", relation.text);
        let mut maker = Maker { random: &mut self.random, columns: &inside, calls: self.calls };
        let inner = if maker.chance(50) {
            format!(" AND {}", maker.predicate(1).closed())
        } else {
            String::new()
        };
        let not = if self.chance(40) { "NOT " } else { "" };
        Some(match self.below(5) {
            0 => format!("{not}EXISTS (SELECT 1 {from} WHERE {i} = {o}{inner})"),
            4 => format!("{not}EXISTS (SELECT {i} {from} WHERE {i} = {o}{inner} GROUP BY {i})"),
            1 => format!("{o} {not}IN (SELECT {i} {from} WHERE true{inner})"),
            2 => format!("{o} >= (SELECT min({i}) {from} WHERE true{inner})"),
            _ => format!("(SELECT count(*) {from} WHERE {i} = {o}{inner}) > 1"),
        })
    }

    fn plain(&mut self, query: &mut Query, scope: &Scope) {
        let n = 1 + self.below(4);
        let mut made = Vec::new();
        for _ in 0..n {
            if !scope.traps.is_empty() && self.calls != Calls::Shared && self.chance(8) {
                made.push(self.guarded(scope));
                continue;
            }
            let levels = self.below(4);
            let all = self.calls == Calls::Safe && self.chance(4);
            let calls = if all { Calls::All } else { self.calls };
            let mut maker = Maker { random: &mut self.random, columns: &scope.columns, calls };
            let ty = Self::ty(&mut maker);
            made.push(maker.make(ty, &None, levels));
        }
        query.items = make_items(made);
        query.distinct = self.chance(15);
        if self.chance(10) && query.joins.is_empty() {
            let mut other = query.clone();
            other.distinct = false;
            other.filters.clear();
            self.filters(&mut other, scope);
            query.union = Some(Box::new(other));
        }
    }

    /// Returns a call that fails on some rows, in a CASE or condition that excludes these rows.
    fn guarded(&mut self, scope: &Scope) -> Expr {
        let at = self.below(scope.traps.len());
        let trap = &scope.traps[at];
        let (alias, name) = trap.split_once('.').unwrap_or(("a", trap));
        let call = if name == "big" {
            [
                "ragged_sum(TRAP)",
                "ragged_max(ragged_cumsum(TRAP))",
                "CAST(ragged_sum(ragged_head(TRAP, 2)) AS BIGINT)",
            ][self.below(3)]
        } else {
            [
                "ragged_count(ragged_squeeze(TRAP, 2))",
                "ragged_get(TRAP, '0, 0') // (ragged_count(TRAP) - 2)",
                "array_length(ragged_squeeze(TRAP, -1))",
            ][self.below(3)]
        };
        let call = call.replace("TRAP", trap);
        let text = format!("CASE WHEN {alias}.id % 4 <> 0 THEN CAST({call} AS BIGINT) ELSE -1 END");
        Expr::column(text, Type::new(0, Leaf::Int), None)
    }

    fn grouped(&mut self, query: &mut Query, scope: &Scope) {
        query.kind = Kind::Grouped;
        let mut made = Vec::new();
        for _ in 0..1 + self.below(2) {
            let levels = self.below(2);
            let leaf = [Leaf::Int, Leaf::Int, Leaf::Text, Leaf::Bool, Leaf::Time][self.below(5)];
            let mut maker =
                Maker { random: &mut self.random, columns: &scope.columns, calls: self.calls };
            let depth = usize::from(maker.chance(10));
            let key = maker.make(Type::new(depth, leaf), &None, levels);
            // A key is never a literal, because GROUP BY would read an integer as the position of a
            // column.
            let columns = scope.columns.iter().any(|c| key.text.contains(&c.text));
            if columns && !query.group.contains(&key.closed()) {
                query.group.push(key.closed());
                made.push(key);
            }
        }
        if query.group.is_empty() {
            let key = scope.columns[0].clone();
            query.group.push(key.closed());
            made.push(key);
        }
        for _ in 0..1 + self.below(3) {
            let mut maker =
                Maker { random: &mut self.random, columns: &scope.columns, calls: self.calls };
            let order = scope.unique.clone();
            loop {
                let levels = maker.below(2);
                let over = maker.over(false, order.as_deref().unwrap_or("ORDER"), levels);
                // An aggregate with ORDER BY needs keys that order all rows.
                if order.is_some() || !over.text.contains("ORDER BY") {
                    made.push(over);
                    break;
                }
            }
        }
        query.items = make_items(made);
        if self.chance(25) {
            for item in &mut query.items[query.group.len()..] {
                item.unnest = item.expr.ty.depth > 0;
            }
        }
        if self.chance(25) {
            query.having =
                Some(["count(*) > 1", "count(*) <= 2", "min(1) IS NULL"][self.below(3)].into());
        }
    }

    fn windowed(&mut self, query: &mut Query, scope: &Scope) {
        let Some(order) = scope.unique.clone() else { return self.plain(query, scope) };
        query.kind = Kind::Windowed;
        let mut made = vec![scope.columns[0].clone()];
        for _ in 0..1 + self.below(2) {
            let levels = self.below(2);
            let mut maker =
                Maker { random: &mut self.random, columns: &scope.columns, calls: self.calls };
            made.push(maker.over(true, &order, levels));
        }
        query.items = make_items(made);
    }

    fn unnested(&mut self, query: &mut Query, scope: &Scope) {
        query.kind = Kind::Unnest;
        let mut made = Vec::new();
        let mut unnested = Vec::new();
        for _ in 0..1 + self.below(2) {
            let at = self.below(scope.columns.len());
            made.push(scope.columns[at].clone());
        }
        for _ in 0..1 + self.below(2) {
            let levels = self.below(3);
            let mut maker =
                Maker { random: &mut self.random, columns: &scope.columns, calls: self.calls };
            let depth = 1 + usize::from(maker.chance(25));
            let leaf = maker.leaf();
            let given = maker.make(Type::new(depth, leaf), &None, levels);
            made.push(given);
            unnested.push(made.len() - 1);
        }
        query.items = make_items(made);
        for at in unnested {
            query.items[at].unnest = true;
        }
    }

    /// Returns a query that turns lists into rows or rows into lists, over a table or a step.
    fn exploded(&mut self, steps: bool) -> Query {
        let of: Vec<Source> = self.sources.iter().filter(|s| !steps || !s.table).cloned().collect();
        let source = of[self.below(of.len())].clone();
        let shapes: Vec<_> = source.columns.iter().filter_map(|c| c.shape.clone()).collect();
        let lists = !shapes.is_empty();
        let mut query = Query { kind: Kind::Explode, ..Query::default() };
        let columns: Vec<Column>;
        let from: String;
        if lists && self.chance(65) {
            let shape = shapes[self.below(shapes.len())].clone();
            let outer = shape.rsplit_once('/').map(|(outer, _)| outer.to_string());
            let taken: Vec<&Column> = source
                .columns
                .iter()
                .filter(|c| {
                    c.ty.depth == 0
                        || c.shape.as_ref() == Some(&shape)
                        || c.shape == outer && outer.is_some()
                })
                .filter(|c| !c.trap)
                .collect();
            let names: Vec<_> = taken.iter().map(|c| format!("e.{}", c.name)).collect();
            let options = ["", "", ", keep_empty => true", ", positions => true"][self.below(4)];
            from = format!(
                "ragged_explode((SELECT {} FROM {{{{{}}}}} AS e){options})",
                names.join(", "),
                source.name
            );
            columns = taken
                .iter()
                .map(|c| Column { ty: Type::new(0, c.ty.leaf), shape: None, ..(*c).clone() })
                .collect();
        } else {
            query.kind = Kind::Nest;
            let keys: Vec<&Column> = source
                .columns
                .iter()
                .filter(|c| c.ty.depth == 0 && c.ty.leaf != Leaf::Float)
                .collect();
            let values: Vec<&Column> = source.columns.iter().filter(|c| c.ty.depth == 0).collect();
            if keys.is_empty() || values.len() < 2 {
                return self.query();
            }
            let key = keys[self.below(keys.len())].name.clone();
            let names: Vec<_> = values.iter().map(|c| format!("n.{}", c.name)).collect();
            let order: Vec<_> = (1..=names.len()).map(|i| i.to_string()).collect();
            from = format!(
                "ragged_nest((SELECT {} FROM {{{{{}}}}} AS n WHERE n.{key} IS NOT NULL ORDER BY {}), '{key}')",
                names.join(", "),
                source.name,
                order.join(", ")
            );
            columns = values
                .iter()
                .map(|c| {
                    let depth = usize::from(c.name != key);
                    let shape = (depth == 1).then(|| "n".to_string());
                    Column { ty: Type::new(depth, c.ty.leaf), shape, ..(*c).clone() }
                })
                .collect();
        }
        query.from = Some(Relation { text: from, alias: "a".into() });
        let scope = Scope {
            columns: columns.iter().map(|c| c.of("a")).collect(),
            traps: Vec::new(),
            unique: None,
        };
        self.filters(&mut query, &scope);
        if query.kind == Kind::Explode && self.chance(30) {
            self.grouped(&mut query, &scope);
        } else {
            let kind = query.kind;
            self.plain(&mut query, &scope);
            query.kind = kind;
        }
        self.finish(&mut query, &scope);
        query
    }

    /// Returns a type. The types of the columns in scope are more frequent than others.
    fn ty(maker: &mut Maker<'_>) -> Type {
        if maker.chance(60) {
            let at = maker.below(maker.columns.len());
            return maker.columns[at].ty;
        }
        maker.ty()
    }

    /// Adds ORDER BY, LIMIT and OFFSET to a query.
    fn finish(&mut self, query: &mut Query, scope: &Scope) {
        let one_table = query.joins.is_empty()
            && query.union.is_none()
            && scope.unique.is_some()
            && matches!(query.kind, Kind::Plain | Kind::Unnest)
            && !query.distinct
            && !query.filters.iter().any(|f| f.contains("SELECT"));
        if self.chance(55) {
            query.total = true;
            let free = query.kind == Kind::Plain && !query.distinct && query.union.is_none();
            for _ in 0..self.below(2) {
                let levels = self.below(2);
                let mut maker =
                    Maker { random: &mut self.random, columns: &scope.columns, calls: self.calls };
                let key = if free {
                    let ty = Type::new(0, maker.leaf());
                    let key = maker.make(ty, &None, levels);
                    // A key is never a literal, because ORDER BY would read an integer as the
                    // position of a column.
                    if !scope.columns.iter().any(|c| key.text.contains(&c.text)) {
                        continue;
                    }
                    key.text
                } else {
                    (1 + maker.below(query.items.len())).to_string()
                };
                let way = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"][maker.below(4)];
                query.order.push(format!("{key}{way}"));
            }
            if self.chance(45) {
                let skip = if self.chance(40) { self.below(5) } else { 0 };
                query.limit = Some((self.below(9), skip));
            }
        } else if one_table && self.chance(30) {
            // LIMIT without ORDER BY selects the first rows of the source.
            let skip = if self.chance(40) { self.below(5) } else { 0 };
            query.limit = Some((1 + self.below(9), skip));
        }
    }
}

fn make_items(of: Vec<Expr>) -> Vec<Item> {
    of.into_iter()
        .enumerate()
        .map(|(i, expr)| Item { expr, name: format!("c{i}"), unnest: false })
        .collect()
}

fn source_of(name: &str, query: &Query) -> Source {
    let columns = query
        .items
        .iter()
        .map(|i| {
            let mut ty = i.expr.ty;
            ty.depth -= usize::from(i.unnest);
            let shape = if i.unnest { None } else { i.expr.shape.clone() };
            Column { name: i.name.clone(), ty, shape, trap: false }
        })
        .collect();
    Source { name: name.into(), columns, table: false }
}
