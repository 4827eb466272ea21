//! Generates statements from the bytes of libFuzzer. Each choice consumes a byte or two. If no
//! bytes are left, a choice takes its first alternative, so the first alternatives must not
//! recurse.

use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::Unstructured;
use serrate::datafusion::logical_expr::Documentation;
use serrate::sql::session;

use crate::functions::{AGGREGATES, Call, STOCK, WINDOWS, list_ours};
use crate::tables::{FAMILIES, LEAVES, OTHERS, column_name};

/// The maximum levels of calls in an expression, and of queries in a query.
const DEPTH: usize = 3;

/// The functions of a session.
struct Catalogue {
    names: Vec<String>,
    /// Statements of the examples in the documentation.
    examples: Vec<String>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(read_catalogue);

fn read_catalogue() -> Catalogue {
    let state = session().state();
    let scalar = state.scalar_functions();
    let aggregate = state.aggregate_functions();
    let window = state.window_functions();
    let higher_order = state.higher_order_functions();
    let names = scalar.keys().chain(aggregate.keys()).chain(window.keys());
    let mut names: Vec<String> = names.chain(higher_order.keys()).cloned().collect();
    let mut examples = Vec::new();
    let mut add = |documentation: Option<&Documentation>| {
        if let Some(text) = documentation.and_then(|d| d.sql_example.as_deref()) {
            examples.extend(split_example(text));
        }
    };
    scalar.values().for_each(|f| add(f.documentation()));
    aggregate.values().for_each(|f| add(f.documentation()));
    window.values().for_each(|f| add(f.documentation()));
    higher_order.values().for_each(|f| add(f.documentation()));
    // The lists are sorted, because they come from maps without an order, and an input must
    // generate the same statement in every process.
    for list in [&mut names, &mut examples] {
        list.sort_unstable();
        list.dedup();
    }
    Catalogue { names, examples }
}

/// Returns the statements of an example, without their results.
fn split_example(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim_start_matches("> "));
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with(['+', '|', '`'])).collect();
    let statements = lines.join("\n");
    let statements = statements.split(';').map(str::trim).filter(|part| !part.is_empty());
    statements.map(str::to_owned).collect()
}

const JOINS: &[&str] = &[
    "q JOIN o ON q.id = o.id",
    "q LEFT JOIN o ON q.i = o.i",
    "q FULL JOIN o ON q.s = o.s AND q.i > 0",
    "q CROSS JOIN (SELECT * FROM o LIMIT 2) o",
    "q SEMI JOIN o ON q.l_i = o.l_i",
    "q, LATERAL (SELECT count(*) AS n, max(o.id) AS id FROM o WHERE o.i < q.i) o",
];

const SOURCES: &[&str] = &[
    "q",
    "(SELECT * FROM q WHERE id > 2) q",
    "(SELECT * FROM q ORDER BY id DESC LIMIT 5) q",
    "(SELECT * FROM q UNION ALL SELECT * FROM o) q",
    "(SELECT * FROM q WHERE false) q",
    "(SELECT *, unnest(l_i) AS item FROM q) q",
    "ragged_nest('o', 's') q",
    "ragged_explode('o') q",
];

/// Literals that are arguments of any function.
const WORDS: &[&str] = &[
    "-1",
    "2",
    "0.5",
    "NULL",
    "[2, 3]",
    "[NULL]",
    "'desc'",
    "'sum'",
    "'day'",
    "'%Y-%m'",
    "'1:, ::-1'",
    "'left'",
    "'BIGINT'",
    "INTERVAL '1 day'",
    "lambda v: v + 1",
    "v -> v IS NULL",
    "(v, w) -> v",
    "*",
    "q",
    "(SELECT max(id) FROM o)",
    "axis => -1",
];

const ENDS: &[&str] = &[
    "",
    " FILTER (WHERE q.b)",
    " OVER ()",
    " OVER (PARTITION BY q.i ORDER BY q.id)",
    " OVER (ORDER BY q.l_i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "[1]",
    "[1:2]",
    "::VARCHAR",
    "::BIGINT[]",
    " IS NOT NULL",
];

const CHANGES: &[&str] = &[
    "INSERT INTO q SELECT * FROM o",
    "INSERT INTO q (id, l_i) VALUES (1, `)",
    "UPDATE q SET l_i = `, i = ` WHERE `",
    "DELETE FROM q WHERE `",
    "TRUNCATE TABLE q",
    "ALTER TABLE q ADD COLUMN z BIGINT",
    "DROP TABLE q",
    "SET serrate.leaf_batch_size = 1",
    "SET serrate.rule.below_joins = false",
    "SET serrate.rule.flat_filters = false",
    "PREPARE p AS SELECT q.i + $1 FROM q; EXECUTE p(`)",
    "COPY q TO 'tests/data/never.parquet'",
    "CREATE EXTERNAL TABLE e STORED AS DOK LOCATION 'tests/data/tiny-dok/m.safetensors'; SELECT * FROM e",
];

/// A type in the catalogue of calls, such as `l?.1^` or `i=1`, parsed. The module `functions`
/// describes the syntax.
struct Hole {
    star: bool,
    levels: usize,
    leaf: char,
    repeat: Option<usize>,
    /// Arguments with the same number must have the same lists. `None` allows any lists.
    lists: Option<usize>,
    outer: bool,
}

impl Hole {
    /// Parses a text between `<` and `>`. Returns `None` if it is not a type, such as the text
    /// between two comparison operators.
    fn parse(text: &str) -> Option<Self> {
        let mut hole =
            Self { star: false, levels: 0, leaf: ' ', repeat: None, lists: None, outer: false };
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let mut number = || chars.next().and_then(|n| n.to_digit(10)).map(|n| n as usize);
            match c {
                '*' => hole.star = true,
                'l' => hole.levels += 1,
                '?' | '#' | 'i' | 'f' | 'b' | 's' | 't' => hole.leaf = c,
                '=' => hole.repeat = Some(number()?),
                '.' => hole.lists = Some(number()?),
                '^' => hole.outer = true,
                _ => return None,
            }
        }
        (hole.leaf != ' ').then_some(hole)
    }

    /// Returns whether a call with this result type can return a value with `levels` levels of
    /// lists and leaves of the type `leaf`. If `has_lists`, the result must also have the same
    /// lists as the arguments with the number 1.
    fn fits(&self, levels: usize, leaf: char, has_lists: bool) -> bool {
        let of = match self.leaf {
            '?' => true,
            '#' => matches!(leaf, 'i' | 'f'),
            own => own == leaf,
        };
        let depth = if self.star { matches!(levels, 1 | 2) } else { self.levels == levels };
        of && depth && (!has_lists || self.lists == Some(1) && !self.outer)
    }
}

/// Generates statements from the bytes that are not consumed yet.
pub struct Generator<'a> {
    choices: Unstructured<'a>,
    /// Whether the query joins the table `o`.
    joined: bool,
}

impl<'a> Generator<'a> {
    pub fn new(choices: Unstructured<'a>) -> Self {
        Self { choices, joined: false }
    }

    /// Returns a number below `n`; 0 if no choices are left.
    fn draw(&mut self, n: usize) -> usize {
        self.choices.int_in_range(0..=n.saturating_sub(1)).unwrap_or(0)
    }

    fn pick<'t, T: ?Sized>(&mut self, of: &'t [&'t T]) -> &'t T {
        of[self.draw(of.len())]
    }

    /// Returns true once in `n` times; false if no choices are left.
    fn flip(&mut self, n: usize) -> bool {
        self.draw(n) == n - 1
    }

    fn draw_leaf(&mut self) -> char {
        LEAVES[self.draw(LEAVES.len())]
    }

    /// Returns statements, with `;` between them.
    pub fn make_statements(&mut self) -> String {
        match self.draw(16) {
            10 | 11 => self.change_example(),
            12 => format!("EXPLAIN {}", self.make_query(DEPTH)),
            13 => {
                let kind = self.pick(&["TABLE", "VIEW"]);
                format!("CREATE {kind} n AS {}; SELECT * FROM n", self.make_query(DEPTH))
            }
            14 => {
                let change = self.pick(CHANGES);
                format!("{}; SELECT * FROM q", self.fill_text(change))
            }
            15 => format!("SUMMARIZE {}", self.make_query(1)),
            _ => self.make_query(DEPTH),
        }
    }

    /// Replaces every backquote of a text with a value.
    pub fn fill_text(&mut self, text: &str) -> String {
        let mut parts = text.split('`');
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            out += &self.make_any(DEPTH);
            out += part;
        }
        out
    }

    /// Returns a statement of the documentation with other literals.
    fn change_example(&mut self) -> String {
        let examples = &CATALOGUE.examples;
        let Some(example) = examples.get(self.draw(examples.len())) else { return String::new() };
        let (mut out, mut rest) = (String::new(), example.as_str());
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit() || c == '\'') {
            let (before, literal) = rest.split_at(at);
            let end = match literal.strip_prefix('\'') {
                Some(inner) => inner.find('\'').map_or(literal.len(), |end| end + 2),
                None => literal.find(|c: char| !c.is_ascii_digit()).unwrap_or(literal.len()),
            };
            out += before;
            if self.flip(4) {
                let (levels, leaf) = (self.draw(3), self.draw_leaf());
                out += &self.make_literal(levels, leaf);
            } else {
                out += &literal[..end];
            }
            rest = &literal[end..];
        }
        out + rest
    }

    fn make_query(&mut self, depth: usize) -> String {
        if depth > 1 && self.flip(10) {
            let operation = self.pick(&["UNION ALL", "UNION", "EXCEPT", "INTERSECT"]);
            return format!(
                "({}) {operation} ({})",
                self.make_query(depth - 1),
                self.make_query(depth - 1)
            );
        }
        let outer = self.joined;
        self.joined = self.flip(5);
        let from = self.pick(if self.joined { JOINS } else { SOURCES });
        let filter = match self.flip(2) {
            true => format!(" WHERE {}", self.make_value(0, 'b', None, depth)),
            false => String::new(),
        };
        let (items, group) = if self.flip(4) {
            let (levels, leaf) = (self.draw(2), self.draw_leaf());
            let key = self.make_value(levels, leaf, None, depth - 1);
            let mut items = format!("{key} AS k");
            for _ in 0..=self.draw(2) {
                items = format!("{items}, {}", self.make_call(AGGREGATES, depth));
            }
            let having = match self.flip(4) {
                true => format!(" HAVING {} IS NOT NULL", self.make_call(AGGREGATES, depth)),
                false => String::new(),
            };
            (items, format!(" GROUP BY {key}{having}"))
        } else {
            let items = (0..=self.draw(3)).map(|_| self.make_item(depth)).collect::<Vec<_>>();
            (items.join(", "), String::new())
        };
        let distinct = if self.flip(8) { "DISTINCT " } else { "" };
        let order = match self.draw(5) {
            3 => " ORDER BY 1".to_owned(),
            4 if group.is_empty() => {
                let (levels, leaf) = (self.draw(2), self.draw_leaf());
                let direction = self.pick(&["", " DESC", " NULLS FIRST"]);
                format!(" ORDER BY {}{direction}", self.make_value(levels, leaf, None, 1))
            }
            _ => String::new(),
        };
        let limit = self.pick(&["", "", "", " LIMIT 3", " LIMIT 2 OFFSET 1", " OFFSET 3"]);
        self.joined = outer;
        format!("SELECT {distinct}{items} FROM {from}{filter}{group}{order}{limit}")
    }

    fn make_item(&mut self, depth: usize) -> String {
        match self.draw(12) {
            9 => self.make_call(WINDOWS, depth),
            10 => {
                let (levels, leaf) = (1 + self.draw(2), self.draw_leaf());
                format!("unnest({})", self.make_value(levels, leaf, None, depth))
            }
            11 => format!("* EXCLUDE ({})", OTHERS[self.draw(OTHERS.len())]),
            _ => self.make_any(depth),
        }
    }

    /// Returns an expression of any type.
    fn make_any(&mut self, depth: usize) -> String {
        match self.draw(12) {
            10 => format!("q.{}", OTHERS[self.draw(OTHERS.len())]),
            11 if depth > 1 => format!("(SELECT * FROM ({}) s LIMIT 1)", self.make_query(1)),
            _ => {
                let (levels, leaf) = (self.draw(3), self.draw_leaf());
                self.make_value(levels, leaf, None, depth)
            }
        }
    }

    /// Returns an expression of a type. If `family` is given, its value has the lists of this
    /// family of columns.
    fn make_value(
        &mut self,
        levels: usize,
        leaf: char,
        family: Option<usize>,
        depth: usize,
    ) -> String {
        if depth == 0 || self.draw(4) == 0 {
            return self.make_leaf(levels, leaf, family);
        }
        if family.is_none() && self.flip(8) {
            return self.call_any(depth - 1);
        }
        let fits = |call: &&Call| {
            Hole::parse(call.result).is_some_and(|of| of.fits(levels, leaf, family.is_some()))
        };
        let calls: Vec<&Call> = STOCK.iter().chain(list_ours()).filter(fits).collect();
        if calls.is_empty() {
            return self.make_leaf(levels, leaf, family);
        }
        let call = calls[self.draw(calls.len())];
        let text = self.fill_call(call, levels, leaf, family, depth - 1);
        if self.flip(8) { text } else { format!("({text})") }
    }

    /// Returns a column or a literal.
    fn make_leaf(&mut self, levels: usize, leaf: char, family: Option<usize>) -> String {
        if family.is_none() && self.flip(3) {
            return self.make_literal(levels, leaf);
        }
        let table = if self.joined && family.is_none() && self.flip(3) { "o" } else { "q" };
        match family.or_else(|| self.draw_family(levels)) {
            Some(family) => format!("{table}.{}", column_name(FAMILIES[family].0, leaf)),
            None => self.make_literal(levels, leaf),
        }
    }

    fn draw_family(&mut self, levels: usize) -> Option<usize> {
        let all = FAMILIES.iter().enumerate().filter(|(_, (_, kinds))| kinds.len() == levels);
        let all: Vec<usize> = all.map(|(family, _)| family).collect();
        all.get(self.draw(all.len())).copied()
    }

    fn make_literal(&mut self, levels: usize, leaf: char) -> String {
        if levels > 0 && self.flip(4) {
            let of = match leaf {
                'i' => "BIGINT",
                'f' => "DOUBLE",
                'b' => "BOOLEAN",
                's' => "VARCHAR",
                _ => "TIMESTAMP",
            };
            return format!("CAST(NULL AS {of}{})", "[]".repeat(levels));
        }
        if levels > 0 {
            let items = 0..=self.draw(3);
            let items = items.map(|_| self.make_literal(levels - 1, leaf)).collect::<Vec<_>>();
            return format!("[{}]", items.join(", "));
        }
        let of: &[&str] = match leaf {
            'i' => &["1", "0", "-1", "NULL", "3", "9223372036854775807", "(-2147483648)"],
            'f' => &["0.5", "-0.0", "NULL", "'NaN'::DOUBLE", "'inf'::DOUBLE", "1e308"],
            'b' => &["true", "false", "NULL"],
            's' => &["'a'", "''", "NULL", "'1'", "'it''s'", "'äß'", "'%_'", "'2020-01-01'"],
            _ => &[
                "TIMESTAMP '1970-01-01 00:00:01'",
                "NULL",
                "TIMESTAMP '2020-02-29 12:00:00.5'",
                "TIMESTAMP '0001-01-01 00:00:00'",
                "TIMESTAMP '9999-12-31 23:59:59'",
            ],
        };
        self.pick(of).to_owned()
    }

    /// Calls any function with arguments of any type.
    fn call_any(&mut self, depth: usize) -> String {
        let names = &CATALOGUE.names;
        let name = names.get(self.draw(names.len())).map_or("coalesce", String::as_str);
        let mut arguments = Vec::new();
        for _ in 0..=self.draw(4) {
            arguments.push(match self.flip(3) {
                true => self.pick(WORDS).to_owned(),
                false => self.make_any(depth),
            });
        }
        let end = if self.flip(4) { self.pick(ENDS) } else { "" };
        format!("{name}({}){end}", arguments.join(", "))
    }

    /// Returns one of the calls in `of`, with generated arguments.
    fn make_call(&mut self, of: &'static [Call], depth: usize) -> String {
        let call = &of[self.draw(of.len())];
        let Some(result) = Hole::parse(call.result) else { return call.text.to_owned() };
        let levels = if result.star { 1 + self.draw(2) } else { result.levels };
        let leaf = match result.leaf {
            '?' => self.draw_leaf(),
            '#' => ['i', 'f'][self.draw(2)],
            own => own,
        };
        self.fill_call(call, levels, leaf, None, depth.saturating_sub(1))
    }

    /// Writes arguments into a call, so that its result has `levels` levels of lists and leaves of
    /// the type `leaf`.
    fn fill_call(
        &mut self,
        call: &Call,
        levels: usize,
        leaf: char,
        family: Option<usize>,
        depth: usize,
    ) -> String {
        let result = Hole::parse(call.result);
        let is_result = |c: char| result.as_ref().is_some_and(|of| of.leaf == c);
        let star =
            if result.as_ref().is_some_and(|of| of.star) { levels } else { 1 + self.draw(2) };
        let any = if is_result('?') { leaf } else { self.draw_leaf() };
        let number = if is_result('#') { leaf } else { ['i', 'f'][self.draw(2)] };
        let mut families = [None; 10];
        families[1] = family;
        let mut repeats = Vec::new();
        let (mut out, mut rest) = (String::new(), call.text);
        while let Some((before, after)) = rest.split_once('<') {
            out += before;
            let hole =
                after.split_once('>').and_then(|(text, rest)| Some((Hole::parse(text)?, rest)));
            let Some((hole, behind)) = hole else {
                out.push('<');
                rest = after;
                continue;
            };
            rest = behind;
            let levels = if hole.star { star } else { hole.levels };
            let leaf = match hole.leaf {
                '?' => any,
                '#' => number,
                own => own,
            };
            let value = match hole.lists {
                None => self.make_value(levels, leaf, None, depth),
                Some(lists) => {
                    let levels = levels + usize::from(hole.outer);
                    let fitting =
                        families[lists].filter(|f: &usize| FAMILIES[*f].1.len() == levels);
                    let family = fitting.or_else(|| self.draw_family(levels));
                    families[lists] = family;
                    match hole.outer {
                        true => {
                            format!("ragged_first({}, -1)", self.make_leaf(levels, leaf, family))
                        }
                        false => self.make_value(levels, leaf, family, depth),
                    }
                }
            };
            if let Some(number) = hole.repeat {
                repeats.push((format!("{{{number}}}"), value.clone()));
            }
            out += &value;
        }
        out += rest;
        for (name, value) in repeats {
            out = out.replace(&name, &value);
        }
        // Removes the brackets `⟦⟧`, which only the reference of the differential suite uses, and
        // replaces `ORDER` by a key that makes the order total.
        out.replace(['⟦', '⟧'], "").replace("ORDER BY ORDER", "ORDER BY q.id")
    }
}
