//! What must hold of every statement: one answer from every source, and answers that go together.

use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use serrate::datafusion;

use crate::expressions::{Calls, Leaf, Maker, Type};
use crate::report::{Difference, fewer, smaller};
use crate::sources::{Rows, Setup, Source, reference, run, session};
use crate::statements::{Kind, Query, Statement, Statements, Steps};
use crate::tables::World;

pub type Answer = Result<Rows, String>;

/// The answer of the reference: each step a table before the next begins, so that no rule can carry over
/// from one to the other.
pub async fn answer(ctx: &SessionContext, statement: &Statement) -> Answer {
    let statement = &statement.unrolled();
    let mut made = Vec::new();
    let mut out = None;
    for (name, sql) in statement.step_texts() {
        match run(ctx, &sql).await {
            Ok(rows) => {
                let batches: Vec<RecordBatch> = rows.batches;
                let schema = batches.first().map_or(rows.schema, RecordBatch::schema);
                let table = MemTable::try_new(schema, vec![batches]);
                let table = table.unwrap_or_else(|e| panic!("{name}: {sql}: {e}"));
                ctx.register_table(name.as_str(), std::sync::Arc::new(table)).unwrap();
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
        None => run(ctx, &statement.text(Steps::Tables, true)).await,
    };
    for name in made {
        ctx.deregister_table(name.as_str()).unwrap();
    }
    out
}

/// As text, in its order or in one that is the same for equal rows.
fn lines(answer: &Answer, sorted: bool) -> String {
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

/// Different rows, sorted, with one zero: the reference puts -0.0 before 0.0 where the keys behind should decide, and
/// has two groups of them within lists.
fn with_one_zero(answer: &Answer) -> Vec<String> {
    let text = lines(answer, true).replace("-0.0", "0.0");
    let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// What is expected and what is found, where they are not the same.
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
            lines(expected, !ordered) == lines(found, !ordered)
                || lines(expected, true).contains("-0.0")
                    && (with_one_zero(expected) == with_one_zero(found)
                        || ordered && rows.rows.len() == others.rows.len())
        }
    };
    (!same).then(|| (lines(expected, !ordered), lines(found, !ordered)))
}

/// Whether the order of the rows is part of the answer.
fn is_sequence(query: &Query) -> bool {
    query.is_ordered() || query.limit.is_some()
}

/// One answer: that of the reference.
pub async fn one_answer(
    plain: &SessionContext,
    ctx: &SessionContext,
    statement: &Statement,
    steps: Steps,
) -> (Answer, Option<(String, String)>) {
    let expected = answer(plain, statement).await;
    let found = run(ctx, &statement.text(steps, false)).await;
    let out = compare(&expected, &found, is_sequence(&statement.last), statement.may_skip());
    (expected, out)
}

/// Answers of one session that must go together.
pub async fn together(
    ctx: &SessionContext,
    statement: &Statement,
    steps: Steps,
    statements: &mut Statements,
) -> Option<(&'static str, Statement, String, String)> {
    let whole = run(ctx, &statement.text(steps, false)).await;
    let Ok(rows) = &whole else { return None };
    let n = rows.rows.len();
    // count(*) is the number of rows.
    let text = statement.text(steps, false);
    let counted = run(ctx, &format!("SELECT count(*) AS n FROM ({text}) AS z")).await;
    if let Ok(counted) = &counted
        && counted.rows[0][0] != n.to_string()
    {
        let found = counted.rows[0][0].clone();
        return Some(("count(*) is the number of rows", statement.clone(), n.to_string(), found));
    }
    // One column has as many rows as all.
    if statement.last.items.len() > 1
        && !statement.last.distinct
        && statement.last.kind == Kind::Plain
        && statement.last.union.is_none()
        && statement.last.order.is_empty()
        && !(statement.last.total && statement.last.limit.is_some())
    {
        let mut one = statement.clone();
        one.last.items.truncate(1);
        let found = run(ctx, &one.text(steps, false)).await;
        if let Ok(found) = &found
            && found.rows.len() != n
        {
            let found = format!("{} rows", found.rows.len());
            return Some(("a projection keeps rows", one, format!("{n} rows"), found));
        }
    }
    // LIMIT n OFFSET m is a window of what is ordered.
    if let (true, Some((limit, skip))) = (statement.last.is_ordered(), statement.last.limit) {
        let mut all = statement.clone();
        all.last.limit = None;
        if let Ok(mut all) = run(ctx, &all.text(steps, false)).await {
            let end = (skip + limit).min(all.rows.len());
            all.rows = all.rows.get(skip..end).unwrap_or_default().to_vec();
            let all = Ok(all);
            if let Some((expected, found)) = compare(&all, &whole, true, false) {
                return Some(("LIMIT is a window of ORDER BY", statement.clone(), expected, found));
            }
        }
    }
    // DISTINCT is GROUP BY all columns.
    if statement.last.distinct && statement.last.limit.is_none() && statement.last.union.is_none() {
        let mut all = statement.clone();
        all.last.distinct = false;
        let names: Vec<_> = all.last.items.iter().map(|i| i.name.clone()).collect();
        let names = names.join(", ");
        let sql = format!("SELECT {names} FROM ({}) AS z GROUP BY {names}", all.text(steps, false));
        let grouped = run(ctx, &sql).await;
        if grouped.is_ok()
            && let Some((expected, found)) = compare(&grouped, &whole, false, false)
        {
            return Some(("DISTINCT is GROUP BY", statement.clone(), expected, found));
        }
    }
    // Rows where p, where NOT p and where p is NULL are all rows.
    if statement.last.kind == Kind::Plain
        && statement.last.joins.len() < 2
        && statement.last.limit.is_none()
        && !statement.last.distinct
        && statement.last.union.is_none()
    {
        let columns: Vec<_> = statement.last.items.iter().map(|i| i.expr.clone()).collect();
        let mut maker =
            Maker { random: &mut statements.random, columns: &columns, calls: Calls::Safe };
        let p = maker.make(Type::new(0, Leaf::Bool), &None, 1).closed();
        let mut parts = Vec::new();
        for filter in [p.clone(), format!("NOT {p}"), format!("{p} IS NULL")] {
            let mut part = statement.clone();
            part.last.filters.push(filter);
            match run(ctx, &part.text(steps, false)).await {
                Ok(rows) => parts.push((part, rows)),
                Err(_) => return None,
            }
        }
        let (part, mut sum) = parts.remove(0);
        for (_, more) in parts {
            sum.rows.extend(more.rows);
        }
        let sum = Ok(sum);
        if let Some((expected, found)) = compare(&whole, &sum, false, false) {
            return Some(("p, NOT p and p IS NULL are all rows", part, expected, found));
        }
    }
    None
}

/// Whether a statement over a world still has two answers, and which.
async fn differs(
    world: &World,
    statement: &Statement,
    like: &Difference,
) -> Option<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let plain = reference(world);
    let ctx = session(world, &like.setup, folder.path()).await;
    let (_, out) = one_answer(&plain, &ctx, statement, like.steps).await;
    let kind = |text: &str| text.starts_with("error");
    out.filter(|(expected, found)| {
        kind(expected) == kind(&like.expected) && kind(found) == kind(&like.found)
    })
}

/// A difference between sources with all left out that it does not need.
pub async fn shrunk(world: World, found: Difference, mut tries: usize) -> (World, Difference) {
    let (mut world, mut best) = (world, found);
    for plainer in [1, 2, 8192] {
        let mut next = best.clone();
        match plainer {
            1 => next.setup.partitions = 1,
            2 => next.setup.files = 1,
            _ => next.setup.batch = 8192,
        }
        if differs(&world, &next.statement, &next).await.is_some() {
            best = next;
        }
    }
    if best.setup.source != Source::Memory {
        let mut next = best.clone();
        next.setup.source = Source::Memory;
        if differs(&world, &next.statement, &next).await.is_some() {
            best = next;
        }
    }
    loop {
        let mut better = None;
        for statement in smaller(&best.statement) {
            tries = tries.saturating_sub(1);
            if let Some((expected, found)) = differs(&world, &statement, &best).await {
                better = Some((
                    world.clone(),
                    Difference { statement, expected, found, ..best.clone() },
                ));
                break;
            }
        }
        if better.is_none() {
            for fewer in fewer(&world) {
                tries = tries.saturating_sub(1);
                if tries == 0 {
                    break;
                }
                if let Some((expected, found)) = differs(&fewer, &best.statement, &best).await {
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

/// A file that knows rows by position has those of its source, in their order.
pub async fn written_in_order(
    plain: &SessionContext,
    ctx: &SessionContext,
    world: &World,
    folder: &Path,
) -> Option<(String, String)> {
    let table = &world.tables[0].name;
    let one = SessionConfig::new().with_target_partitions(1);
    let reader = serrate::sql::session_with(one);
    for filter in ["", " WHERE a.k < 3", " WHERE ragged_count(a.x) > 1 LIMIT 9 OFFSET 2"] {
        let query = format!("SELECT a.id, a.f, a.x + 1 AS y, a.xx FROM {table} AS a{filter}");
        let expected = run(plain, &query).await;
        let file = folder.join("written.nrt");
        let copy = format!("COPY ({query}) TO '{}' OPTIONS (overwrite true)", file.display());
        let copied = run(ctx, &copy).await;
        let found = match copied {
            Ok(_) => run(&reader, &format!("SELECT id, f, y, xx FROM '{}'", file.display())).await,
            Err(e) => Err(e),
        };
        if let Some((expected, found)) = compare(&expected, &found, true, false) {
            return Some((format!("{query}\n{expected}"), found));
        }
    }
    None
}

pub async fn sessions(
    world: &World,
    setups: &[Setup],
    folder: &Path,
) -> Vec<(Setup, SessionContext)> {
    let mut out = Vec::new();
    for setup in setups {
        out.push((setup.clone(), session(world, setup, folder).await));
    }
    out
}
