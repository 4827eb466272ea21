//! Benchmarks planning, from the text of a statement to its physical plan, which is not executed:
//! small statements of every kind, and long statements of increasing size.
//!
//! Times are medians in ms, in a session that has planned the statement before. They are compared
//! with stock DataFusion if it accepts the same text. `SERRATE_BENCH_ONLY=text` runs the rows whose
//! name contains the text. `SERRATE_BENCH_RULES=1` prints the µs of each step and rule for each
//! row.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use serrate::datafusion;

/// Each statement is planned repeatedly until this time has passed, but at most `RUNS` times.
const LONG: Duration = Duration::from_secs(2);
const RUNS: usize = 300;

const PARTITIONS: usize = 2;

struct Statement {
    name: String,
    text: String,
}

fn statement(name: impl Into<String>, text: impl Into<String>) -> Statement {
    Statement { name: name.into(), text: text.into() }
}

fn repeat(n: usize, between: &str, term: impl Fn(usize) -> String) -> String {
    (0..n).map(term).collect::<Vec<_>>().join(between)
}

/// Returns small statements over the file or table `t` with the columns `id`, and `code` and
/// `value`, which are lists. `what` is added to their names.
fn over(what: &str, t: &str) -> Vec<Statement> {
    [
        ("point query", format!("SELECT id, code FROM {t} WHERE id = 5")),
        ("filter", format!("SELECT id FROM {t} WHERE id > 990 AND ragged_any(code = 3) LIMIT 10")),
        (
            "GROUP BY",
            format!(
                "SELECT ragged_count(code) AS n, count(*), sum(ragged_mean(value)) FROM {t} GROUP BY 1 ORDER BY 1"
            ),
        ),
        (
            "join",
            format!("SELECT l.y, ragged_sum(t.value) FROM {t} t JOIN labels l ON t.id = l.k"),
        ),
        (
            "unnest",
            format!(
                "SELECT c, count(*) n FROM (SELECT unnest(flatten(code)) c FROM {t}) GROUP BY c ORDER BY 2 DESC LIMIT 5"
            ),
        ),
    ]
    .into_iter()
    .map(|(name, text)| statement(format!("{name}, {what}"), text))
    .collect()
}

/// Returns long statements of several kinds, with sizes that double.
fn long() -> Vec<Statement> {
    let rows = "numbers";
    let mut all = Vec::new();
    for n in [250, 500, 1000, 2000] {
        let sum = repeat(n + 1, " + ", |_| "a".into());
        all.push(statement(format!("{n} + of a column"), format!("SELECT {sum} FROM {rows}")));
        let sum = repeat(n + 1, " + ", |i| format!("{}", i % 7));
        all.push(statement(format!("{n} + of literals"), format!("SELECT {sum}")));
        let sum = repeat(n + 1, " * ", |i| format!("f{}", i % 3));
        all.push(statement(
            format!("{n} * in WHERE"),
            format!("SELECT a FROM {rows} WHERE {sum} > 0"),
        ));
        let any = repeat(n + 1, " OR ", |i| format!("a = {i}"));
        all.push(statement(format!("{n} OR"), format!("SELECT a FROM {rows} WHERE {any}")));
        let none = repeat(n + 1, " AND ", |i| format!("a <> {i}"));
        all.push(statement(format!("{n} AND"), format!("SELECT a FROM {rows} WHERE {none}")));
        let text = repeat(n + 1, " || ", |_| "s".into());
        all.push(statement(format!("{n} ||"), format!("SELECT {text} FROM {rows}")));
    }
    for n in [8, 32, 100, 126, 127, 128, 200] {
        let joins: String = (1..n).map(|i| format!(" JOIN labels l{i} ON l0.k = l{i}.k")).collect();
        all.push(statement(
            format!("{n} tables joined"),
            format!("SELECT l0.y FROM labels l0{joins}"),
        ));
    }
    for n in [100, 1000] {
        let union = repeat(n, " UNION ALL ", |i| format!("SELECT {i} AS a"));
        all.push(statement(format!("{n} UNION ALL"), union));
    }
    let nested =
        format!("{}SELECT y FROM labels{}", "SELECT * FROM (".repeat(20), ") t".repeat(20));
    all.push(statement("20 queries within one another", nested));
    all
}

/// Plans a statement up to its physical plan, by stock DataFusion if `stock` is true.
async fn plan(ctx: &SessionContext, text: &str, stock: bool) -> datafusion::error::Result<()> {
    let frame = match stock {
        true => ctx.sql(text).await?,
        false => serrate::sql::sql(ctx, text).await?,
    };
    frame.create_physical_plan().await?;
    Ok(())
}

/// Returns the median planning time in ms, or `None` if the statement is refused.
async fn measure(ctx: &SessionContext, text: &str, stock: bool) -> Option<f64> {
    let first = Instant::now();
    plan(ctx, text, stock).await.ok()?;
    let begun = Instant::now();
    // A slow statement is measured only once, because warm caches change its time little.
    if first.elapsed() > LONG {
        return Some(first.elapsed().as_secs_f64() * 1e3);
    }
    let mut times = Vec::new();
    while times.is_empty() || (begun.elapsed() < LONG && times.len() < RUNS) {
        let start = Instant::now();
        plan(ctx, text, stock).await.ok()?;
        times.push(start.elapsed());
    }
    times.sort();
    Some(times[times.len() / 2].as_secs_f64() * 1e3)
}

/// Prints the times of the steps of planning and of the rules, in µs, in descending order.
///
/// Each physical rule is measured on the finished physical plan, not on the plan that it receives
/// during planning.
async fn print_rules(ctx: &SessionContext, text: &str) {
    let mut times: BTreeMap<String, Duration> = BTreeMap::new();
    for _ in 0..RUNS {
        let mut last = Instant::now();
        let mut add = |name: String| {
            *times.entry(name).or_default() += last.elapsed();
            last = Instant::now();
        };
        let state = ctx.state();
        add("copy of the session".into());
        let mut plan = serrate::sql::sql(ctx, text).await.unwrap().logical_plan().clone();
        add("text to logical plan".into());
        for rule in &state.analyzer().rules {
            plan = rule.analyze(plan, state.config_options()).unwrap();
            add(format!("analyzer {}", rule.name()));
        }
        let plan = state
            .optimizer()
            .optimize(plan, &state, |_, rule| add(format!("optimizer {}", rule.name())))
            .unwrap();
        let planner = state.query_planner();
        let plan = planner.create_physical_plan(&plan, &state).await.unwrap();
        add("logical to physical plan, with the physical rules".into());
        for rule in state.physical_optimizers() {
            rule.optimize(Arc::clone(&plan), state.config_options()).unwrap();
            add(format!("physical {}", rule.name()));
        }
    }
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    for (name, time) in times {
        println!("  {:>8.1} {name}", time.as_secs_f64() * 1e6 / RUNS as f64);
    }
}

async fn run(dir: &Path) {
    let config = SessionConfig::new().with_target_partitions(PARTITIONS);
    let ctx = serrate::sql::session_with(config.clone());
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let stock = SessionContext::new_with_state(builder.build()).enable_url_table();
    let rows = "SELECT i AS id, [[i % 7, i % 5], [i % 11]] AS code, [i * 0.5, i * 0.25] AS value
        FROM (SELECT unnest(range(0, 1000)) AS i) ORDER BY i";
    let (nrt, parquet) = (dir.join("t.nrt"), dir.join("t.parquet"));
    for path in [&nrt, &parquet] {
        let copy = format!("COPY ({rows}) TO '{}'", path.display());
        serrate::sql::sql(&ctx, &copy).await.unwrap().collect().await.unwrap();
    }
    let tables = [
        "CREATE TABLE labels AS SELECT * FROM (VALUES (1, 0), (2, 1), (3, 0)) t(k, y)",
        "CREATE TABLE numbers AS SELECT * FROM (VALUES (1, 0.5, 1.5, 2.5, 'x'), (2, 0.1, 0.2, 0.3, 'y')) t(a, f0, f1, f2, s)",
    ];
    for text in tables {
        serrate::sql::sql(&ctx, text).await.unwrap().collect().await.unwrap();
        stock.sql(text).await.unwrap().collect().await.unwrap();
    }
    let table = format!("CREATE EXTERNAL TABLE n STORED AS NRT LOCATION '{}'", nrt.display());
    serrate::sql::sql(&ctx, &table).await.unwrap().collect().await.unwrap();
    let table =
        format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{}'", parquet.display());
    serrate::sql::sql(&ctx, &table).await.unwrap().collect().await.unwrap();
    stock.sql(&table).await.unwrap().collect().await.unwrap();

    let mut all = vec![statement("SELECT 1", "SELECT 1")];
    all.extend(over("table of a .nrt file", "n"));
    all.extend(over(".nrt file by path", &format!("'{}'", nrt.display())));
    all.extend(over("table of a Parquet file", "p"));
    all.extend(over("Parquet file by path", &format!("'{}'", parquet.display())));
    all.extend(long());
    let only = std::env::var("SERRATE_BENCH_ONLY").unwrap_or_default();
    println!("{:<42} {:>10} {:>10}", "ms, medians", "Serrate", "stock");
    for statement in all.iter().filter(|s| s.name.contains(&only)) {
        let shown = |ms: Option<f64>| ms.map_or("-".into(), |ms| format!("{ms:.3}"));
        let ours = measure(&ctx, &statement.text, false).await;
        // Stock DataFusion takes minutes for more than 126 operators, so it is not measured for
        // them.
        let theirs = match statement.name.split_once(' ').map(|(n, _)| n.parse::<usize>()) {
            Some(Ok(n)) if n > 126 => None,
            _ => measure(&stock, &statement.text, true).await,
        };
        println!("{:<42} {:>10} {:>10}", statement.name, shown(ours), shown(theirs));
        if std::env::var_os("SERRATE_BENCH_RULES").is_some() {
            print_rules(&ctx, &statement.text).await;
        }
    }
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    // The main thread of the `serrate` command has a stack of this size, too.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(PARTITIONS)
        .enable_all()
        .build()
        .unwrap();
    let path = dir.path().to_owned();
    let deep = std::thread::Builder::new().stack_size(64 << 20);
    deep.spawn(move || runtime.block_on(run(&path))).unwrap().join().unwrap();
}
