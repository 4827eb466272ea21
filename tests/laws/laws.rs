//! The laws that every statement must obey: it has the same result with every cut, and results of
//! related statements agree.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use serrate::datafusion;

use crate::cuts::{Setup, Source, Wrapping};
use crate::explained::{find_refusal, is_failure};
use crate::expressions::{Calls, Leaf, Maker, Type};
use crate::forms::Form;
use crate::report::{Difference, list_fewer, list_smaller};
use crate::sources::{Rows, Sessions, Stored, run_query, run_wrapped};
use crate::statements::{Kind, Query, Statement, Statements, Steps};
use crate::tables::World;

pub type Answer = Result<Rows, String>;

/// A statement, with the text that the reference runs and the text that a cut runs.
#[derive(Clone, Debug)]
pub enum Asked {
    /// The reference is plain DataFusion, which runs the statement step by step. A cut runs it as
    /// one statement.
    Steps(Statement, Steps),
    /// The reference is our session over tables in memory, with each node of the tree in its first
    /// way. A cut runs the statement with each node in the drawn way.
    Form(Form),
}

impl Asked {
    /// Returns the text that a cut runs.
    pub fn sql(&self) -> String {
        match self {
            Self::Steps(statement, steps) => statement.text(*steps, false),
            Self::Form(form) => form.root.sql(true),
        }
    }

    /// Returns the text that the reference runs, or `None` if the reference runs several steps.
    pub fn reference(&self) -> Option<String> {
        match self {
            Self::Steps(..) => None,
            Self::Form(form) => Some(form.root.sql(false)),
        }
    }

    /// Runs the statement in the session of the reference.
    pub async fn expected(&self, sessions: &Sessions) -> Answer {
        match self {
            Self::Steps(statement, _) => answer(&sessions.plain, statement).await,
            Self::Form(form) => run_query(&sessions.own, &form.root.sql(false)).await,
        }
    }

    /// Runs the statement as the cut `setup` requires, in the session `ctx` of that cut.
    pub async fn found(&self, ctx: &SessionContext, setup: &Setup) -> Answer {
        let wrapping = match self {
            Self::Form(form) if form.alone => Wrapping::Query,
            _ => setup.wrapping,
        };
        run_wrapped(ctx, wrapping, &self.sql()).await
    }

    /// Returns the expected and the found result as text if they differ, otherwise `None`.
    pub fn compare(
        &self,
        expected: &Answer,
        found: &Answer,
        setup: &Setup,
    ) -> Option<(String, String)> {
        // The query that reads the table or view with the stored result has no ORDER BY.
        let bare = setup.wrapping == Wrapping::Query;
        match self {
            Self::Steps(statement, _) => {
                let ordered = bare && is_sequence(&statement.last);
                compare(expected, found, ordered, statement.may_skip())
            }
            Self::Form(form) => compare_ways(expected, found, bare && form.ordered),
        }
    }

    fn smaller(&self) -> Vec<Self> {
        match self {
            Self::Steps(statement, steps) => {
                list_smaller(statement).into_iter().map(|s| Self::Steps(s, *steps)).collect()
            }
            Self::Form(form) => {
                let of = form.root.smaller();
                of.into_iter().map(|root| Self::Form(Form { root, ..form.clone() })).collect()
            }
        }
    }
}

/// Runs a statement step by step. The rows of each step become a table before the next step starts,
/// so that no rule of the optimizer sees two steps.
async fn answer(ctx: &SessionContext, statement: &Statement) -> Answer {
    let statement = &statement.unrolled();
    let mut made = Vec::new();
    let mut out = None;
    for (name, sql) in statement.step_texts() {
        match run_query(ctx, &sql).await {
            Ok(rows) => {
                let batches: Vec<RecordBatch> = rows.batches;
                let schema = batches.first().map_or(rows.schema, RecordBatch::schema);
                let table = MemTable::try_new(schema, vec![batches]);
                let table = table.unwrap_or_else(|e| panic!("{name}: {sql}: {e}"));
                ctx.register_table(name.as_str(), Arc::new(table)).unwrap();
                made.push(name);
            }
            Err(e) => {
                out = Some(Err(e));
                break;
            }
        }
    }
    let out = match out {
        Some(failed) => failed,
        None => run_query(ctx, &statement.text(Steps::Tables, true)).await,
    };
    for name in made {
        ctx.deregister_table(name.as_str()).unwrap();
    }
    out
}

/// Returns the rows as text: sorted, or in their order.
fn list_lines(answer: &Answer, sorted: bool) -> String {
    match answer {
        Ok(rows) => {
            let mut lines: Vec<_> = rows.rows.iter().map(|r| r.join(" | ")).collect();
            if sorted {
                lines.sort();
            }
            format!("{} rows\n{}", lines.len(), lines.join("\n"))
        }
        Err(e) => format!("error: {e}"),
    }
}

/// Returns the distinct rows, sorted, with 0.0 in place of -0.0. The reference sorts -0.0 before
/// 0.0 instead of comparing the next sort key, and distinguishes them in groups by lists.
fn with_one_zero(answer: &Answer) -> Vec<String> {
    let text = list_lines(answer, true).replace("-0.0", "0.0");
    let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Returns the expected and the found result as text if they differ. With `may_skip`, an error may
/// be missing in the found result, because rows or columns can be left out.
fn compare(
    expected: &Answer,
    found: &Answer,
    ordered: bool,
    may_skip: bool,
) -> Option<(String, String)> {
    let panicked = |a: &Answer| a.as_ref().is_err_and(|e| e.starts_with("panic"));
    let same = match (expected, found) {
        (Err(_), Err(_)) => !panicked(expected) && !panicked(found),
        (Err(_), Ok(_)) => may_skip && !panicked(expected),
        (Ok(_), Err(_)) => false,
        (Ok(rows), Ok(others)) => {
            list_lines(expected, !ordered) == list_lines(found, !ordered)
                || list_lines(expected, true).contains("-0.0")
                    && (with_one_zero(expected) == with_one_zero(found)
                        || ordered && rows.rows.len() == others.rows.len())
        }
    };
    (!same).then(|| (list_lines(expected, !ordered), list_lines(found, !ordered)))
}

/// Returns whether the result includes the order of the rows.
fn is_sequence(query: &Query) -> bool {
    query.is_ordered() || query.limit.is_some()
}

/// Compares the results of two ways to write a statement, like [`compare`]. Zeros of either sign
/// are equal, one of the ways may be refused, and an error caused by a value is a difference.
fn compare_ways(expected: &Answer, found: &Answer, ordered: bool) -> Option<(String, String)> {
    let text = |answer: &Answer| {
        let text = match answer {
            Ok(_) => list_lines(answer, false).replace("-0.0", "0.0"),
            Err(_) => list_lines(answer, false),
        };
        match ordered {
            true => text,
            false => {
                let mut lines: Vec<&str> = text.lines().collect();
                lines.sort_unstable();
                lines.join("\n")
            }
        }
    };
    let same = match (expected, found) {
        (Ok(_), Ok(_)) => text(expected) == text(found),
        (Err(e), Err(f)) => !is_failure(e) && !is_failure(f),
        (Err(e), Ok(_)) => !is_failure(e),
        (Ok(_), Err(f)) => find_refusal(f).is_some(),
    };
    (!same).then(|| (text(expected), text(found)))
}

/// A law by which the results of related statements agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    Counted,
    Projected,
    Limited,
    Distinct,
    Divided,
}

impl Law {
    const ALL: [Self; 5] =
        [Self::Counted, Self::Projected, Self::Limited, Self::Distinct, Self::Divided];

    pub fn name(self) -> &'static str {
        match self {
            Self::Counted => "count(*) is the number of rows",
            Self::Projected => "a projection keeps rows",
            Self::Limited => "LIMIT is a window of ORDER BY",
            Self::Distinct => "DISTINCT is GROUP BY",
            Self::Divided => "p, NOT p and p IS NULL are all rows",
        }
    }

    /// Returns the laws that apply to a query.
    pub fn of(query: &Query) -> Vec<Self> {
        let plain = query.kind == Kind::Plain && !query.distinct && query.union.is_none();
        let applies = |law: &Self| match law {
            Self::Counted => true,
            Self::Projected => {
                plain
                    && query.items.len() > 1
                    && query.order.is_empty()
                    && !(query.total && query.limit.is_some())
            }
            Self::Limited => query.is_ordered() && query.limit.is_some(),
            Self::Distinct => query.distinct && query.limit.is_none() && query.union.is_none(),
            Self::Divided => plain && query.joins.len() < 2 && query.limit.is_none(),
        };
        Self::ALL.into_iter().filter(applies).collect()
    }
}

/// Checks a law with further statements. `rows` is the result of the statement in the session
/// `ctx`. If they do not agree, returns the statement, the expected and the found result.
pub async fn check_together(
    law: Law,
    ctx: &SessionContext,
    (statement, steps): (&Statement, Steps),
    rows: &Rows,
    statements: &mut Statements,
) -> Option<(Statement, String, String)> {
    let n = rows.rows.len();
    let whole = Ok(rows.clone());
    match law {
        Law::Counted => {
            let text = statement.text(steps, false);
            let counted = run_query(ctx, &format!("SELECT count(*) AS n FROM ({text}) AS z")).await;
            let found = counted.ok()?.rows[0][0].clone();
            (found != n.to_string()).then(|| (statement.clone(), n.to_string(), found))
        }
        Law::Projected => {
            let mut one = statement.clone();
            one.last.items.truncate(1);
            let found = run_query(ctx, &one.text(steps, false)).await.ok()?.rows.len();
            (found != n).then(|| (one, format!("{n} rows"), format!("{found} rows")))
        }
        Law::Limited => {
            let (limit, skip) = statement.last.limit?;
            let mut all = statement.clone();
            all.last.limit = None;
            let mut all = run_query(ctx, &all.text(steps, false)).await.ok()?;
            let end = (skip + limit).min(all.rows.len());
            all.rows = all.rows.get(skip..end).unwrap_or_default().to_vec();
            let (expected, found) = compare(&Ok(all), &whole, true, false)?;
            Some((statement.clone(), expected, found))
        }
        Law::Distinct => {
            let mut all = statement.clone();
            all.last.distinct = false;
            let names: Vec<_> = all.last.items.iter().map(|i| i.name.clone()).collect();
            let names = names.join(", ");
            let text = all.text(steps, false);
            let sql = format!("SELECT {names} FROM ({text}) AS z GROUP BY {names}");
            let grouped = run_query(ctx, &sql).await;
            grouped.as_ref().ok()?;
            let (expected, found) = compare(&grouped, &whole, false, false)?;
            Some((statement.clone(), expected, found))
        }
        Law::Divided => {
            let columns: Vec<_> = statement.last.items.iter().map(|i| i.expr.clone()).collect();
            let mut maker =
                Maker { random: &mut statements.random, columns: &columns, calls: Calls::Safe };
            let p = maker.make(Type::new(0, Leaf::Bool), &None, 1).closed();
            let mut sum: Option<(Statement, Rows)> = None;
            for filter in [p.clone(), format!("NOT {p}"), format!("{p} IS NULL")] {
                let mut part = statement.clone();
                part.last.filters.push(filter);
                let found = run_query(ctx, &part.text(steps, false)).await.ok()?;
                match &mut sum {
                    Some((_, all)) => all.rows.extend(found.rows),
                    None => sum = Some((part, found)),
                }
            }
            let (part, sum) = sum?;
            let (expected, found) = compare(&whole, &Ok(sum), false, false)?;
            Some((part, expected, found))
        }
    }
}

/// Runs a statement again in a smaller case. Returns the expected and the found result if they
/// differ in the same way as in `like`.
async fn find_difference(
    sessions: &Sessions,
    world: &World,
    asked: &Asked,
    like: &Difference,
) -> Option<(String, String)> {
    sessions.enter(world);
    let expected = asked.expected(sessions).await;
    let mut tables = Stored::new(world);
    let ctx = sessions.cut(&like.setup, &mut tables).await;
    let found = asked.found(ctx, &like.setup).await;
    let out = asked.compare(&expected, &found, &like.setup);
    // Errors must begin with the same text as in `like`.
    let kind = |text: &str| match text.strip_prefix("error: ") {
        Some(error) => error.chars().filter(char::is_ascii_alphabetic).take(24).collect(),
        None => String::new(),
    };
    out.filter(|(expected, found)| {
        kind(expected) == kind(&like.expected) && kind(found) == kind(&like.found)
    })
}

/// Returns cuts that have one property of the default in place of their own.
fn list_plainer(setup: &Setup) -> Vec<Setup> {
    let own = Setup::default();
    let mut out = Vec::new();
    let mut push = |change: &dyn Fn(&mut Setup)| {
        let mut next = setup.clone();
        change(&mut next);
        if next != *setup {
            out.push(next);
        }
    };
    push(&|s| (s.source, s.foreign) = (Source::Memory, None));
    push(&|s| s.foreign = None);
    for foreign in setup.foreign.iter().flat_map(|foreign| foreign.plainer()) {
        push(&|s| s.foreign = Some(foreign));
    }
    push(&|s| s.wrapping = own.wrapping);
    push(&|s| s.partitions = own.partitions);
    push(&|s| s.files = own.files);
    push(&|s| s.batch = own.batch);
    push(&|s| s.parquet_lists = own.parquet_lists);
    push(&|s| s.pushdown_filters = own.pushdown_filters);
    push(&|s| s.rule = None);
    push(&|s| s.planner = None);
    out
}

/// Reduces a difference between the reference and a cut to a smaller world and statement, in at
/// most `tries` steps.
pub async fn shrink_case(
    sessions: &Sessions,
    world: World,
    found: Difference,
    mut tries: usize,
) -> (World, Difference) {
    let (mut world, mut best) = (world, found);
    while let Some(next) = {
        let mut better = None;
        for setup in list_plainer(&best.setup) {
            let next = Difference { setup, ..best.clone() };
            if find_difference(sessions, &world, &next.asked, &next).await.is_some() {
                better = Some(next);
                break;
            }
        }
        better
    } {
        best = next;
    }
    loop {
        let mut better = None;
        for asked in best.asked.smaller() {
            tries = tries.saturating_sub(1);
            if tries == 0 {
                break;
            }
            if let Some((expected, found)) = find_difference(sessions, &world, &asked, &best).await
            {
                better =
                    Some((world.clone(), Difference { asked, expected, found, ..best.clone() }));
                break;
            }
        }
        if better.is_none() {
            for fewer in list_fewer(&world) {
                tries = tries.saturating_sub(1);
                if tries == 0 {
                    break;
                }
                if let Some((expected, found)) =
                    find_difference(sessions, &fewer, &best.asked, &best).await
                {
                    better = Some((fewer, Difference { expected, found, ..best.clone() }));
                    break;
                }
            }
        }
        match better {
            Some((w, d)) if tries > 0 => (world, best) = (w, d),
            Some((w, d)) => return (w, d),
            None => return (world, best),
        }
    }
}

/// Checks that COPY to a format that identifies rows by position keeps the order of the rows.
/// Returns the expected and the found rows if it does not.
pub async fn written_in_order(
    plain: &SessionContext,
    ctx: &SessionContext,
    world: &World,
    folder: &std::path::Path,
) -> Option<(String, String)> {
    let table = &world.tables[0].name;
    let one = SessionConfig::new().with_target_partitions(1);
    let reader = serrate::sql::session_with(one);
    for filter in ["", " WHERE a.k < 3", " WHERE ragged_count(a.x) > 1 LIMIT 9 OFFSET 2"] {
        let query = format!("SELECT a.id, a.f, a.x + 1 AS y, a.xx FROM {table} AS a{filter}");
        let expected = run_query(plain, &query).await;
        let file = folder.join("written.nrt");
        let copy = format!("COPY ({query}) TO '{}' OPTIONS (overwrite true)", file.display());
        let copied = run_query(ctx, &copy).await;
        let found = match copied {
            Ok(_) => {
                run_query(&reader, &format!("SELECT id, f, y, xx FROM '{}'", file.display())).await
            }
            Err(e) => Err(e),
        };
        if let Some((expected, found)) = compare(&expected, &found, true, false) {
            return Some((format!("{query}\n{expected}"), found));
        }
    }
    None
}
