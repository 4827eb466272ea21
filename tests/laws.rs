//! Differential suite: laws of SQL over lists, on random statements over random tables.
//!
//! A world is a set of random tables. Two generators of statements take turns, one world each. A
//! cut is a way to run a statement. The statement must have the same answer with every cut: from
//! tables in memory and from files of every format, with any number of partitions, any batch size,
//! and with any optimizer rule switched off that only speeds up queries.
//!
//! * `statements`: calls of every function in statements of several steps. The reference is plain
//!   DataFusion, which runs the steps one by one over tables in memory.
//! * `queries`: clauses of SQL over extreme values, where plain DataFusion itself is wrong. Every
//!   part of such a statement can be written in several equivalent ways. The reference is our
//!   session over tables in memory with each part in its first way; a cut draws a way for each
//!   part. In half of the worlds, the time zone of the sessions is one whose clocks change.
//!
//! Files are ours or `foreign`: as other programs write them. Some cuts store the result of the
//! statement with CREATE TABLE .. AS, or create a view of the statement, and select all rows of
//! this table or view.
//!
//! `workers` needs the feature `cluster`: it compares three worker processes with a session without
//! workers, over the same files.
//!
//! `cargo test` tries a few hundred statements; to try more by hand:
//!
//! ```text
//! SERRATE_LAWS_STATEMENTS=100000 SERRATE_LAWS_SEED=7 cargo test --release --test laws statements_have -- --nocapture
//! SERRATE_LAWS_STATEMENTS=10000 cargo test --release --test laws rare_clauses -- --nocapture
//! SERRATE_LAWS_STATEMENTS=10000 cargo test --release --features cluster --test laws on_workers -- --nocapture
//! SERRATE_LAWS_STATEMENTS=10000 SERRATE_LAWS_FOREIGN=only cargo test --release --test laws one_answer -- --nocapture
//! ```
//!
//! The first of these runs prints a line to standard error about once a minute.
//!
//! Settings in the environment, all with the prefix `SERRATE_LAWS_`:
//!
//! * `SEED`, `STATEMENTS`, and `THREADS` (2), the number of worlds that run at the same time.
//! * `CUTS`: number of cuts per statement (1). They are dealt so that every source, number of
//!   partitions, batch size and disabled rule occurs equally often. `all` runs the whole product,
//!   with every law. A run reports how often each cut and each law was used.
//! * `FOREIGN`: `only` takes all rows from files as other programs write them, `none` from none.
//! * `DIFFERENCES`: number of differences after which a run ends (5). Each is reduced in at most
//!   `TRIES` (400) steps and printed as a script; `REPORT=FOLDER` also writes it to a file.
//! * `ERRORS`: prints the statements that the reference refuses.
//! * `EXPORT`: see `tests/interop/duckdb_statements.py`.
//!
//! Engines may differ in the following, which is not compared:
//!
//! * Which of -0.0 and 0.0 represents a group. Plain DataFusion also distinguishes them in ORDER
//!   BY.
//! * The text of errors: two failures are equal. An error of plain DataFusion that another plan
//!   does not raise is not a difference if rows or columns can be left out (`Statement::may_skip`);
//!   the opposite is a difference. Statements of `queries` never fail on a value.
//! * The order of rows without ORDER BY, except for LIMIT over one table and for files written in
//!   source order.
//!
//! `explained` lists known differences that are not faults.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    unreachable_pub
)]

#[path = "laws/claims/mod.rs"]
mod claims;
#[path = "laws/cuts.rs"]
mod cuts;
#[path = "laws/explained.rs"]
mod explained;
#[path = "laws/export.rs"]
mod export;
#[path = "laws/expressions.rs"]
mod expressions;
#[path = "laws/foreign.rs"]
mod foreign;
#[path = "laws/forms.rs"]
mod forms;
#[path = "laws/functions.rs"]
mod functions;
#[path = "laws/grammar.rs"]
mod grammar;
#[path = "laws/laws.rs"]
mod laws;
#[path = "common/null_counts.rs"]
mod null_counts;
#[path = "laws/queries.rs"]
mod queries;
#[path = "laws/report.rs"]
mod report;
#[path = "laws/sources.rs"]
mod sources;
#[path = "laws/statements.rs"]
mod statements;
#[path = "laws/tables.rs"]
mod tables;
#[cfg(feature = "cluster")]
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "common/worker_process.rs"]
mod worker_process;
#[cfg(feature = "cluster")]
#[path = "laws/workers.rs"]
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use cuts::{Counts, Cuts, Setup, Source, Switches, Wrapping};
use explained::find_refusal;
use expressions::Calls;
use laws::{Asked, Law, check_together, shrink_case, written_in_order};
use queries::Queries;
use queries::changes::COPY;
use report::Difference;
use sources::{Rows, Sessions, Stored, run_query, write_table};
use statements::{Statement, Statements, Steps};
use tables::World;

/// Number of statements of a run if the setting `STATEMENTS` is not given.
const STATEMENTS: u64 = 160;
/// Number of statements that run over one world, which is a set of random tables.
const PER_WORLD: usize = 40;
const ROWS: usize = 24;
/// Number of differences of one kind (see `Difference::kind`) that are reported in full. Further
/// ones are only counted.
const OF_A_KIND: usize = 3;

fn read_setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(format!("SERRATE_LAWS_{name}")).ok();
    text.map_or(default, |t| t.parse().unwrap_or_else(|_| panic!("SERRATE_LAWS_{name}={t}")))
}

/// Returns the number of cuts per statement, or `None` if each statement runs with all cuts.
fn cuts_per_statement() -> Option<usize> {
    match std::env::var("SERRATE_LAWS_CUTS").ok().as_deref() {
        Some("all") => None,
        Some(n) => Some(n.parse().unwrap_or_else(|_| panic!("SERRATE_LAWS_CUTS={n}"))),
        None => Some(1),
    }
}

/// The results of a run so far.
#[derive(Default)]
struct Findings {
    answered: AtomicUsize,
    failed: AtomicUsize,
    differences: Mutex<Vec<String>>,
    /// Number of differences that were reported of each kind.
    kinds: Mutex<BTreeMap<String, usize>>,
    /// How often each cut and each law was used, and how many statements were refused.
    counts: Mutex<Counts>,
}

impl Findings {
    fn is_enough(&self) -> bool {
        self.differences.lock().unwrap().len() >= read_setting("DIFFERENCES", 5) as usize
    }

    fn count(&self, name: impl Into<String>) {
        self.counts.lock().unwrap().add(name);
    }

    /// Returns whether enough differences of this kind have been reported. If not, and `add` is
    /// set, counts this one as reported.
    fn is_known(&self, found: &Difference, add: bool) -> bool {
        let Some(kind) = found.kind() else { return false };
        let mut kinds = self.kinds.lock().unwrap();
        let n = kinds.entry(kind.clone()).or_default();
        let known = *n >= OF_A_KIND;
        if add && !known {
            *n += 1;
        }
        if known {
            self.count(format!("difference, known: {kind}"));
        }
        known
    }

    async fn add(&self, sessions: &Sessions, world: &World, found: Difference, shrink: bool) {
        if self.is_known(&found, false) {
            return;
        }
        let (small, found) = if shrink {
            let tries = read_setting("TRIES", 400) as usize;
            let small = shrink_case(sessions, world.clone(), found, tries).await;
            sessions.enter(world);
            small
        } else {
            (world.clone(), found)
        };
        if self.is_known(&found, true) {
            return;
        }
        let script = found.script(&small);
        println!("{script}");
        if let Ok(folder) = std::env::var("SERRATE_LAWS_REPORT") {
            std::fs::create_dir_all(&folder).unwrap();
            let name = format!("{folder}/{}-{}", found.seed, found.number);
            std::fs::write(format!("{name}.sql"), &script).unwrap();
            if found.setup.foreign.is_some() {
                for table in &small.tables {
                    let folder = std::path::Path::new(&name).join(&table.name);
                    write_table(table, &found.setup, &folder);
                }
            }
        }
        self.differences.lock().unwrap().push(script);
    }

    /// Prints a line on the run to standard error if a new minute has begun since the last line.
    /// `minutes` is the number of minutes that had passed at that line.
    fn print_progress(&self, started: Instant, minutes: &AtomicU64) {
        let seconds = started.elapsed().as_secs();
        if minutes.fetch_max(seconds / 60, Ordering::Relaxed) >= seconds / 60 {
            return;
        }
        let statements =
            self.answered.load(Ordering::Relaxed) + self.failed.load(Ordering::Relaxed);
        let differences = self.differences.lock().unwrap().len();
        eprintln!("{statements} statements, {differences} differences, {seconds} seconds");
    }

    /// Prints how often cuts and laws were used, and panics if there are differences.
    fn finish(self) {
        let (answered, failed) = (self.answered.into_inner(), self.failed.into_inner());
        println!("{}", self.counts.into_inner().unwrap());
        println!("the reference returned results of {answered} statements and errors of {failed}");
        let differences = self.differences.into_inner().unwrap();
        assert!(
            differences.is_empty(),
            "{} differences:\n{}",
            differences.len(),
            differences.join("\n")
        );
        assert!(
            failed * 4 < answered,
            "the reference fails for {failed} of {} statements",
            failed + answered
        );
    }
}

/// Runs a future on threads whose stack is large enough for the plans of deep expressions.
fn block_on<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .thread_stack_size(32 << 20)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(work)
        };
        let builder = std::thread::Builder::new().stack_size(32 << 20);
        builder.spawn_scoped(scope, run).unwrap().join().unwrap()
    })
}

/// One world (a set of random tables), and the sessions that run statements over it.
struct Trial<'a> {
    sessions: &'a Sessions,
    findings: &'a Findings,
    tables: Stored<'a>,
    cuts: Cuts,
    random: ChaCha8Rng,
}

impl<'a> Trial<'a> {
    fn new(
        sessions: &'a Sessions,
        findings: &'a Findings,
        world: &'a World,
        switches: &Switches,
    ) -> Self {
        sessions.enter(world);
        Self {
            sessions,
            findings,
            tables: Stored::new(world),
            cuts: Cuts::new(world.plain, switches),
            random: ChaCha8Rng::seed_from_u64(world.seed ^ 0xface),
        }
    }

    fn deal(&mut self) -> Vec<Setup> {
        match cuts_per_statement() {
            Some(n) => (0..n).map(|_| self.cuts.deal(&mut self.random)).collect(),
            None => self.cuts.all(),
        }
    }

    /// Checks that files which a COPY writes keep the order of the rows.
    async fn try_writing(&mut self) {
        let dealt = self.cuts.deal(&mut self.random);
        let setup = Setup { source: Source::Nrt, foreign: None, ..dealt };
        let folder = tempfile::tempdir().unwrap();
        let world = self.tables.world;
        let ctx = self.sessions.cut(&setup, &mut self.tables).await;
        if let Some((expected, found)) =
            written_in_order(&self.sessions.plain, ctx, world, folder.path()).await
        {
            let difference =
                format!("{setup} (world {}):\nexpected {expected}\nfound {found}", world.seed);
            println!("{difference}");
            self.findings.differences.lock().unwrap().push(difference);
        }
    }

    /// Runs one statement with several cuts. Each result must equal that of the reference, and
    /// results of related statements must agree by the laws.
    async fn try_asked(&mut self, number: usize, asked: Asked, statements: &mut Statements) {
        let (sessions, findings, world) = (self.sessions, self.findings, self.tables.world);
        let expected = asked.expected(sessions).await;
        let counter = if expected.is_ok() { &findings.answered } else { &findings.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Err(e) = &expected {
            let kind: String = e.chars().filter(|c| !c.is_ascii_digit()).take(90).collect();
            findings.count(format!("refused by the reference: {}", kind.replace('\n', " ")));
        }
        if let (Err(e), true) = (&expected, std::env::var("SERRATE_LAWS_ERRORS").is_ok()) {
            println!("{}\n  {e}", asked.reference().unwrap_or_else(|| asked.sql()));
        }
        for setup in self.deal() {
            let asked = match &asked {
                Asked::Form(form) => {
                    Asked::Form(form.drawn(&mut |n| self.random.random_range(0..n)))
                }
                Asked::Steps(statement, _) => {
                    let steps = [Steps::With, Steps::Derived][self.random.random_range(0..2)];
                    Asked::Steps(statement.clone(), steps)
                }
            };
            setup.kinds().into_iter().for_each(|kind| findings.count(format!("cut: {kind}")));
            let made = |law, asked: Asked, expected, found| Difference {
                law,
                seed: world.seed,
                number,
                asked,
                setup: setup.clone(),
                expected,
                found,
            };
            let ctx = self.sessions.cut(&setup, &mut self.tables).await;
            let found = asked.found(ctx, &setup).await;
            if let Err(e) = &found
                && let Some(reason) = find_refusal(e)
            {
                findings.count(format!("refused by a cut: {reason}"));
            }
            if let Some((expected, found)) = asked.compare(&expected, &found, &setup) {
                let difference = made("one answer from every cut", asked, expected, found);
                return findings.add(sessions, world, difference, true).await;
            }
            match &asked {
                Asked::Form(form) => {
                    let mut laws = BTreeSet::new();
                    form.root.laws(&mut laws);
                    let of = if found.is_ok() && expected.is_ok() { "law" } else { "law, refused" };
                    laws.into_iter().for_each(|law| findings.count(format!("{of}: {law}")));
                }
                Asked::Steps(statement, steps) => {
                    let Ok(rows) = &found else { continue };
                    // A query of the table or view that stores the result may return the rows in
                    // another order.
                    if setup.wrapping != Wrapping::Query {
                        continue;
                    }
                    let all = Law::of(&statement.last);
                    let drawn = all[self.random.random_range(0..all.len())];
                    for law in all {
                        if law != drawn && cuts_per_statement().is_some() {
                            continue;
                        }
                        findings.count(format!("law: {}", law.name()));
                        let of = (statement, *steps);
                        if let Some((statement, expected, found)) =
                            check_together(law, ctx, of, rows, statements).await
                        {
                            let asked = Asked::Steps(statement, *steps);
                            let difference = made(law.name(), asked, expected, found);
                            return findings.add(sessions, world, difference, false).await;
                        }
                    }
                }
            }
        }
    }
}

/// Runs the statements of one world with several cuts and checks all laws.
async fn try_world(seed: u64, n: usize, sessions: &Sessions, switches: &Switches, all: &Findings) {
    // Worlds with odd seeds use the generator `queries`, the others `statements`.
    let wide = seed % 2 == 1;
    let world = if wide { World::wide(seed, ROWS) } else { World::new(seed, ROWS) };
    let mut statements = Statements::new(&world, Calls::Safe, seed ^ 0x5eed);
    let mut queries = wide.then(|| Queries::new(&world, seed ^ 0xf0f0));
    let mut trial = Trial::new(sessions, all, &world, switches);
    if world.plain && !wide {
        trial.try_writing().await;
    }
    for number in 0..n {
        let asked = match &mut queries {
            Some(queries) => Asked::Form(queries.form()),
            None => Asked::Steps(statements.statement(), Steps::With),
        };
        trial.try_asked(number, asked, &mut statements).await;
        if all.is_enough() {
            return;
        }
    }
}

use serrate::datafusion;

#[test]
fn statements_have_one_answer() {
    let seed = read_setting("SEED", 1);
    let wanted = read_setting("STATEMENTS", STATEMENTS);
    let each = (PER_WORLD as u64).min(wanted.div_ceil(8));
    let worlds = wanted.div_ceil(each);
    let findings = Findings::default();
    let switches = block_on(Switches::listed());
    let next = AtomicUsize::new(0);
    let (started, minutes) = (Instant::now(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..read_setting("THREADS", 2) {
            scope.spawn(|| {
                block_on(async {
                    let sessions = Sessions::new();
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed) as u64;
                        if i >= worlds || findings.is_enough() {
                            return;
                        }
                        if wanted > STATEMENTS {
                            findings.print_progress(started, &minutes);
                        }
                        let seed = seed * 1_000_000 + i;
                        try_world(seed, each as usize, &sessions, &switches, &findings).await;
                    }
                });
            });
        }
    });
    findings.finish();
}

/// Checks every function in every form of its syntax, one call per statement, with columns as
/// arguments.
#[test]
fn functions_have_one_answer() {
    let seed = read_setting("SEED", 1);
    let findings = Findings::default();
    block_on(async {
        let switches = Switches::listed().await;
        let sessions = Sessions::new();
        let worlds: Vec<World> = (0..)
            .map(|i| World::new(seed * 1_000_000 + i, ROWS))
            .filter(|w| !w.plain && w.tables[0].rows.num_rows() == ROWS)
            .take(2)
            .collect();
        for (w, world) in worlds.iter().enumerate() {
            let mut trial = Trial::new(&sessions, &findings, world, &switches);
            let mut statements = Statements::new(world, Calls::Safe, seed);
            let calls = functions::list_ours().iter().map(|c| (c, false));
            let calls = calls.chain(functions::AGGREGATES.iter().map(|c| (c, true)));
            for (number, (call, aggregate)) in calls.enumerate() {
                if number % worlds.len() != w || findings.is_enough() {
                    continue;
                }
                let made: Option<Statement> =
                    (0..20).find_map(|_| statements.about(*call, aggregate));
                let statement = made.unwrap_or_else(|| {
                    panic!("found no arguments for a statement with {}", call.text)
                });
                let asked = Asked::Steps(statement, Steps::With);
                trial.try_asked(number, asked, &mut statements).await;
            }
        }
    });
    findings.finish();
}

/// Checks statements with rare clauses. Each clause is generated equally often.
#[test]
fn rare_clauses_have_one_answer() {
    let seed = read_setting("SEED", 1);
    let wanted = read_setting("STATEMENTS", STATEMENTS) * 5 / 8;
    let each = (PER_WORLD as u64).min(wanted.div_ceil(4));
    let findings = Findings::default();
    block_on(async {
        let switches = Switches::listed().await;
        let sessions = Sessions::new();
        for i in 0..wanted.div_ceil(each) {
            // The seeds of these worlds differ from those of `statements_have_one_answer`.
            let world = World::wide(seed * 1_000_000 + 700_000 + i, ROWS);
            let mut trial = Trial::new(&sessions, &findings, &world, &switches);
            let mut statements = Statements::new(&world, Calls::Safe, seed);
            let mut queries = Queries::new(&world, world.seed ^ 0x7a7e);
            for number in 0..each {
                let form = queries.rare_form((i * each + number) as usize);
                let asked = Asked::Form(form);
                trial.try_asked(number as usize, asked, &mut statements).await;
                if findings.is_enough() {
                    return;
                }
            }
        }
    });
    findings.finish();
}

/// Checks that INSERT, DELETE and UPDATE leave the rows that a query with the same rows or the same
/// condition returns, and that the table does not change if they fail.
#[test]
fn changes_leave_the_rows_that_a_query_returns() {
    let seed = read_setting("SEED", 1);
    let wanted = read_setting("STATEMENTS", STATEMENTS) / 4;
    let each = (PER_WORLD as u64).min(wanted.div_ceil(4));
    block_on(async {
        let switches = Switches::listed().await;
        let sessions = Sessions::new();
        let (mut changed, mut failed) = (0, 0);
        for i in 0..wanted.div_ceil(each) {
            let world = World::wide(seed * 1_000_000 + i, ROWS);
            let mut queries = Queries::new(&world, world.seed ^ 0xc4a6);
            sessions.enter(&world);
            let mut tables = Stored::new(&world);
            let mut cuts = Cuts::new(world.plain, &switches);
            let mut random = ChaCha8Rng::seed_from_u64(world.seed);
            for _ in 0..each {
                let change = queries.change(&world);
                // Uses no files of other programs, because the copy of such a table would have
                // other types than the expected rows.
                let setup = Setup { foreign: None, ..cuts.deal(&mut random) };
                let ctx = sessions.cut(&setup, &mut tables).await;
                let fresh = format!("CREATE OR REPLACE TABLE {COPY} AS {}", change.rows);
                run_query(ctx, &fresh).await.unwrap();
                let all = format!("FROM {COPY}");
                let before = run_query(ctx, &all).await.unwrap();
                let expected = run_query(ctx, &change.expected).await;
                let done = run_query(ctx, &change.sql).await;
                let after = run_query(ctx, &all).await.unwrap();
                let refused = done.is_err();
                let (expected, done) = match (expected, done) {
                    (Ok(expected), Ok(_)) => (expected, Ok(())),
                    (Err(_), Err(_)) => (before, Ok(())),
                    (Err(e), Ok(_)) => (before, Err(format!("the query fails: {e}"))),
                    (Ok(expected), Err(e)) => (expected, Err(e)),
                };
                let sorted = |rows: &Rows| {
                    let mut lines: Vec<_> = rows.rows.iter().map(|r| r.join(" | ")).collect();
                    lines.sort();
                    lines
                };
                assert!(
                    done.is_ok() && sorted(&after) == sorted(&expected),
                    "world {}, {setup}\n{fresh};\n{};\n{done:?}\nexpected by {}\n{:#?}\nfound {:#?}",
                    world.seed,
                    change.sql,
                    change.expected,
                    sorted(&expected),
                    sorted(&after),
                );
                changed += usize::from(!refused);
                failed += usize::from(refused);
            }
        }
        println!("{changed} changes succeeded, {failed} were refused");
        assert!(failed * 4 <= changed, "{failed} of {} changes fail", changed + failed);
    });
}

/// Each of our rules either only speeds up queries, and then cuts disable it, or it is listed in
/// [`explained::WORKAROUNDS`], because results are wrong without it.
#[test]
fn every_rule_is_disabled_by_a_cut_or_corrects_results() {
    use datafusion::optimizer::{Analyzer, Optimizer};
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
    let mut stock: BTreeSet<String> = BTreeSet::new();
    stock.extend(Analyzer::new().rules.iter().map(|r| r.name().to_string()));
    stock.extend(Optimizer::new().rules.iter().map(|r| r.name().to_string()));
    stock.extend(PhysicalOptimizer::new().rules.iter().map(|r| r.name().to_string()));
    let state = serrate::sql::session().state();
    let mut found: BTreeSet<String> = BTreeSet::new();
    found.extend(state.analyzer().rules.iter().map(|r| r.name().to_string()));
    found.extend(state.optimizer().rules.iter().map(|r| r.name().to_string()));
    found.extend(state.physical_optimizers().iter().map(|r| r.name().to_string()));
    let switches = block_on(Switches::listed());
    let optimizations = &switches.optimizations;
    let ours: BTreeSet<String> =
        found.difference(&stock).filter(|name| !optimizations.contains(*name)).cloned().collect();
    assert!(optimizations.iter().all(|name| found.contains(name)), "{optimizations:?}");
    let listed: BTreeSet<String> =
        explained::WORKAROUNDS.iter().map(|(n, _)| (*n).to_string()).collect();
    assert_eq!(ours, listed, "rules that no cut disables, and the rules of WORKAROUNDS");
}

#[test]
fn plain_datafusion_searches_constant_lists_right() {
    let lists = [("[5, NULL]", "false"), ("ragged_pad([5], 3)", "false"), ("[5, 7]", "true")];
    block_on(async {
        let sessions = Sessions::new();
        for (list, expected) in lists {
            for value in ["7", "x"] {
                let sql = format!("SELECT array_has({list}, {value}) FROM (VALUES (7)) AS v(x)");
                let rows = run_query(&sessions.plain, &sql).await.unwrap().rows;
                assert_eq!(rows, [[expected]], "{sql}");
            }
        }
    });
}

#[test]
fn every_function_is_generated() {
    let mut generated = BTreeSet::new();
    for seed in 0..40 {
        let world = World::new(seed, ROWS);
        let mut statements = Statements::new(&world, Calls::Safe, seed);
        for _ in 0..100 {
            let text = statements.statement().text(Steps::With, false);
            generated.extend(functions::find_names(&text).map(str::to_string));
        }
    }
    let scalar = serrate::functions::all_scalar().into_iter().map(|f| f.name().to_string());
    let aggregate = serrate::functions::all_aggregate().into_iter().map(|f| f.name().to_string());
    let higher = serrate::functions::all_higher_order().into_iter().map(|f| f.name().to_string());
    let missing: Vec<_> =
        scalar.chain(aggregate).chain(higher).filter(|n| !generated.contains(n)).collect();
    assert!(missing.is_empty(), "no statement calls {missing:?}");
}

/// Writes the input of `tests/interop/duckdb_statements.py`: tables as Parquet files, and
/// statements with our results.
#[test]
fn statements_are_exported_for_other_engines() {
    let own = tempfile::tempdir().unwrap();
    let given = std::env::var("SERRATE_LAWS_EXPORT").ok();
    let folder = given.map_or_else(|| own.path().to_path_buf(), std::path::PathBuf::from);
    let statements = read_setting("STATEMENTS", 24);
    let answered = block_on(export::write(&folder, read_setting("SEED", 1), statements as usize));
    assert!(answered * 4 > statements * 3, "only {answered} of {statements} statements succeed");
}
