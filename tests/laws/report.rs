//! Differences between results, smaller cases of them, and the scripts that report them.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::cuts::{Setup, Wrapping};
use crate::laws::Asked;
use crate::statements::{Query, Statement, Steps};
use crate::tables::{World, create};

/// A statement with two results that should be equal, and all that is needed to run it again.
#[derive(Clone, Debug)]
pub struct Difference {
    pub law: &'static str,
    pub seed: u64,
    pub number: usize,
    pub asked: Asked,
    pub setup: Setup,
    pub expected: String,
    pub found: String,
}

impl Difference {
    /// Returns a string that differences with the same cause probably share: the beginning of the
    /// error or, without an error, the laws that the statement uses. Returns `None` if there is
    /// neither.
    pub fn kind(&self) -> Option<String> {
        let error = self.found.strip_prefix("error: ").or(self.expected.strip_prefix("error: "));
        if let Some(error) = error {
            return Some(error.chars().filter(|c| !c.is_ascii_digit()).take(60).collect());
        }
        let Asked::Form(form) = &self.asked else { return None };
        let mut laws = BTreeSet::new();
        form.root.laws(&mut laws);
        Some(format!("{laws:?}"))
    }

    /// Returns a script that runs the statement in both ways, with both results as comments.
    pub fn script(&self, world: &World) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "-- {} (world {} statement {})", self.law, self.seed, self.number);
        let text = self.asked.sql();
        let reference = self.asked.reference();
        let both = format!("{text} {}", reference.as_deref().unwrap_or_default());
        let used: Vec<_> = world.tables.iter().filter(|t| both.contains(&t.name)).collect();
        for table in &used {
            out.push_str(&create(table, &both));
        }
        let _ = writeln!(out, "SET datafusion.execution.time_zone = '{}';", world.zone);
        if let Some(reference) = reference {
            let _ = writeln!(out, "{reference};");
        }
        out.push_str(&self.setup.script(&used));
        let _ = match self.setup.wrapping {
            Wrapping::Query => writeln!(out, "{text};"),
            Wrapping::Table => writeln!(out, "CREATE TABLE w AS {text};\nSELECT * FROM w;"),
            Wrapping::View => writeln!(out, "CREATE VIEW w AS {text};\nSELECT * FROM w;"),
        };
        if let Asked::Form(form) = &self.asked {
            let mut laws = BTreeSet::new();
            form.root.laws(&mut laws);
            let _ = writeln!(out, "-- laws: {laws:?}");
        }
        for (title, answer) in [("expected", &self.expected), ("found", &self.found)] {
            let _ = writeln!(out, "-- {title}:");
            for line in answer.lines().take(30) {
                let _ = writeln!(out, "--   {line}");
            }
        }
        out
    }
}

/// Returns the query of the step at index `at`, or the last query if there is no such step.
fn find_query(statement: &mut Statement, at: usize) -> &mut Query {
    match statement.steps.get_mut(at) {
        Some((_, query)) => query,
        None => &mut statement.last,
    }
}

/// Returns smaller statements, each of which lacks some parts of this one.
pub fn list_smaller(statement: &Statement) -> Vec<Statement> {
    let mut out = Vec::new();
    let mut push = |change: &dyn Fn(&mut Statement)| {
        let mut next = statement.clone();
        change(&mut next);
        out.push(next);
    };
    for i in 0..statement.steps.len() {
        push(&|s| {
            s.steps.remove(i);
        });
    }
    for at in 0..=statement.steps.len() {
        let query =
            if at < statement.steps.len() { &statement.steps[at].1 } else { &statement.last };
        push(&|s| find_query(s, at).union = None);
        for i in 0..query.joins.len() {
            push(&|s| {
                find_query(s, at).joins.remove(i);
            });
            for j in 1..query.joins[i].on.len() {
                push(&|s| {
                    find_query(s, at).joins[i].on.remove(j);
                });
            }
        }
        for i in 0..query.filters.len() {
            push(&|s| {
                find_query(s, at).filters.remove(i);
            });
        }
        if query.items.len() > 1 && query.union.is_none() {
            for i in 0..query.items.len() {
                push(&|s| {
                    find_query(s, at).items.remove(i);
                });
            }
        }
        for i in 0..query.group.len() {
            push(&|s| {
                find_query(s, at).group.remove(i);
            });
        }
        for i in 0..query.order.len() {
            push(&|s| {
                find_query(s, at).order.remove(i);
            });
        }
        push(&|s| find_query(s, at).having = None);
        push(&|s| find_query(s, at).limit = None);
        push(&|s| find_query(s, at).distinct = false);
        push(&|s| {
            let q = find_query(s, at);
            q.total = false;
            q.order.clear();
            q.limit = None;
        });
    }
    let text = statement.text(Steps::With, true);
    out.retain(|s| s.text(Steps::With, true) != text);
    out
}

/// Returns smaller worlds, each of which lacks some rows of this one.
pub fn list_fewer(world: &World) -> Vec<World> {
    let mut out = Vec::new();
    for at in 0..world.tables.len() {
        let n = world.tables[at].rows.num_rows();
        for part in [2, 4, 8, 16] {
            let size = n.div_ceil(part).max(1);
            if n == 0 || (part > 2 && size == n.div_ceil(part / 2).max(1)) {
                continue;
            }
            for from in (0..n).step_by(size) {
                let mut next = world.clone();
                let rows = &world.tables[at].rows;
                let keep = (0..n as u64).filter(|i| {
                    let i = usize::try_from(*i).unwrap_or(usize::MAX);
                    i < from || i >= from + size
                });
                let keep = serrate::datafusion::arrow::array::UInt64Array::from_iter_values(keep);
                next.tables[at].rows =
                    serrate::datafusion::arrow::compute::take_record_batch(rows, &keep).unwrap();
                out.push(next);
            }
        }
    }
    out
}
