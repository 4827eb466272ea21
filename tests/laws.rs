//! Laws of SQL over lists, tried on random statements over random tables.
//!
//! Each statement has one answer, from memory and from files of every format, whatever the partitions,
//! the batches and the rules of the optimizer: that of plain DataFusion, which takes it step by step
//! over tables in memory. A run of `cargo test` tries a few hundred; more by hand:
//!
//! ```text
//! SERRATE_LAWS_STATEMENTS=100000 SERRATE_LAWS_SEED=7 cargo test --test laws -- --nocapture
//! ```
//!
//! What is not asked, since engines may differ in it:
//!
//! * The order of -0.0 and 0.0, which plain DataFusion tells apart in ORDER BY, and which of the two
//!   stands for both in a group. Lists hold both.
//! * The words of errors: two that fail are equal. An error of the reference that another plan does not
//!   meet is none where rows or columns can be left out (`Statement::may_skip`); the other way round it
//!   is a difference.
//! * The order of rows without ORDER BY, but for LIMIT over one table and files that are written in the
//!   order of their source.
//!
//! `SERRATE_LAWS_DIFFERENCES` is after how many differences a run ends (5). Each is made small and
//! printed as a script; with `SERRATE_LAWS_REPORT=FOLDER` it is a file there too.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    unreachable_pub
)]

#[path = "laws/export.rs"]
mod export;
#[path = "laws/expressions.rs"]
mod expressions;
#[path = "laws/functions.rs"]
mod functions;
#[path = "laws/laws.rs"]
mod laws;
#[path = "laws/report.rs"]
mod report;
#[path = "laws/sources.rs"]
mod sources;
#[path = "laws/statements.rs"]
mod statements;
#[path = "laws/tables.rs"]
mod tables;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use expressions::Calls;
use laws::{one_answer, sessions, shrunk, together, written_in_order};
use report::Difference;
use sources::{Setup, reference, rules};
use statements::{Statement, Statements, Steps};
use tables::World;

/// Statements over one world, and sessions that they run in.
const PER_WORLD: usize = 12;
const SESSIONS: usize = 4;
const ROWS: usize = 24;

fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(format!("SERRATE_LAWS_{name}")).ok();
    text.map_or(default, |t| t.parse().unwrap_or_else(|_| panic!("SERRATE_LAWS_{name}={t}")))
}

/// What a run has found so far.
#[derive(Default)]
struct Findings {
    answered: AtomicUsize,
    failed: AtomicUsize,
    differences: Mutex<Vec<String>>,
    /// Errors that have been reported.
    kinds: Mutex<BTreeSet<String>>,
}

impl Findings {
    fn is_enough(&self) -> bool {
        self.differences.lock().unwrap().len() >= setting("DIFFERENCES", 5) as usize
    }

    async fn add(&self, world: &World, found: Difference, shrink: bool) {
        if let Some(kind) = found.kind()
            && !self.kinds.lock().unwrap().insert(kind)
        {
            return;
        }
        let (world, found) = if shrink {
            shrunk(world.clone(), found, setting("TRIES", 200) as usize).await
        } else {
            (world.clone(), found)
        };
        let script = found.script(&world);
        println!("{script}");
        if let Ok(folder) = std::env::var("SERRATE_LAWS_REPORT") {
            std::fs::create_dir_all(&folder).unwrap();
            let name = format!("{folder}/{}-{}.sql", found.seed, found.number);
            std::fs::write(name, &script).unwrap();
        }
        self.differences.lock().unwrap().push(script);
    }
}

/// Runs a future on a stack that plans of deep expressions fit into.
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

/// All laws over one world.
async fn world(seed: u64, rules: &[String], findings: &Findings) {
    let world = World::new(seed, ROWS);
    let mut statements = Statements::new(&world, Calls::Safe, seed ^ 0x5eed);
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0xface);
    let setups: Vec<Setup> =
        (0..SESSIONS).map(|_| Setup::random(&mut random, world.plain, rules)).collect();
    let folder = tempfile::tempdir().unwrap();
    let plain = reference(&world);
    let ours = sessions(&world, &setups, folder.path()).await;
    if world.plain {
        let (setup, ctx) = &ours[0];
        if let Some((expected, found)) = written_in_order(&plain, ctx, &world, folder.path()).await
        {
            let difference = format!("{setup} (world {seed}):\nexpected {expected}\nfound {found}");
            println!("{difference}");
            findings.differences.lock().unwrap().push(difference);
        }
    }
    for number in 0..PER_WORLD {
        let statement = statements.statement();
        try_statement(&world, &plain, &ours, (seed, number), &statement, &mut statements, findings)
            .await;
        if findings.is_enough() {
            return;
        }
    }
}

async fn try_statement(
    world: &World,
    plain: &datafusion::prelude::SessionContext,
    ours: &[(Setup, datafusion::prelude::SessionContext)],
    (seed, number): (u64, usize),
    statement: &Statement,
    statements: &mut Statements,
    findings: &Findings,
) {
    let first = statements.random.random_range(0..ours.len());
    for at in first..first + ours.len().min(2) {
        let (setup, ctx) = &ours[at % ours.len()];
        let steps = [Steps::With, Steps::Derived][statements.random.random_range(0..2)];
        let made = |law, statement: &Statement, expected, found| Difference {
            law,
            seed,
            number,
            statement: statement.clone(),
            steps,
            setup: setup.clone(),
            expected,
            found,
        };
        let (expected, different) = one_answer(plain, ctx, statement, steps).await;
        let counter = if expected.is_ok() { &findings.answered } else { &findings.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        if let (Err(e), true) = (&expected, std::env::var("SERRATE_LAWS_ERRORS").is_ok()) {
            println!("{}\n  {}", statement.text(Steps::With, true), e);
        }
        if let Some((expected, found)) = different {
            let difference = made("one answer from every source", statement, expected, found);
            return findings.add(world, difference, true).await;
        }
        if at == first
            && ours.len() > 1
            && let Some((law, statement, expected, found)) =
                together(ctx, statement, steps, statements).await
        {
            return findings.add(world, made(law, &statement, expected, found), false).await;
        }
    }
}

use serrate::datafusion;

#[test]
fn statements_have_one_answer() {
    let seed = setting("SEED", 1);
    let worlds = setting("STATEMENTS", 120).div_ceil(PER_WORLD as u64);
    let threads = setting("THREADS", 2);
    let findings = Findings::default();
    let rules = block_on(rules());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed) as u64;
                    if i >= worlds || findings.is_enough() {
                        return;
                    }
                    block_on(world(seed * 1_000_000 + i, &rules, &findings));
                }
            });
        }
    });
    let (answered, failed) = (findings.answered.into_inner(), findings.failed.into_inner());
    println!("{answered} answers compared, {failed} errors");
    let differences = findings.differences.into_inner().unwrap();
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(failed * 4 < answered, "{failed} of {} statements fail", failed + answered);
}

/// Every form of every function over columns, one at a time.
#[test]
fn functions_have_one_answer() {
    let seed = setting("SEED", 1);
    let findings = Findings::default();
    block_on(async {
        let rules = rules().await;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let worlds: Vec<World> = (0..)
            .map(|i| World::new(seed * 1_000_000 + i, ROWS))
            .filter(|w| !w.plain && w.tables[0].rows.num_rows() == ROWS)
            .take(2)
            .collect();
        for (w, world) in worlds.iter().enumerate() {
            let setups: Vec<Setup> =
                (0..2).map(|_| Setup::random(&mut random, false, &rules)).collect();
            let folder = tempfile::tempdir().unwrap();
            let plain = reference(world);
            let ours = sessions(world, &setups, folder.path()).await;
            let mut statements = Statements::new(world, Calls::Safe, seed);
            let calls = functions::OURS.iter().map(|c| (c, false));
            let calls = calls.chain(functions::AGGREGATES.iter().map(|c| (c, true)));
            for (number, (call, aggregate)) in calls.enumerate() {
                if number % worlds.len() != w || findings.is_enough() {
                    continue;
                }
                let made = (0..20).find_map(|_| statements.about(*call, aggregate));
                let statement = made.unwrap_or_else(|| panic!("no arguments for {}", call.text));
                let key = (world.seed, number);
                let at = number / worlds.len() % ours.len();
                let ours = &ours[at..=at];
                try_statement(world, &plain, ours, key, &statement, &mut statements, &findings)
                    .await;
            }
        }
    });
    let differences = findings.differences.into_inner().unwrap();
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn every_function_is_generated() {
    let mut generated = BTreeSet::new();
    for seed in 0..40 {
        let world = World::new(seed, ROWS);
        let mut statements = Statements::new(&world, Calls::Safe, seed);
        for _ in 0..100 {
            let text = statements.statement().text(Steps::With, false);
            generated.extend(functions::names(&text).map(str::to_string));
        }
    }
    let scalar = serrate::functions::all_scalar().into_iter().map(|f| f.name().to_string());
    let aggregate = serrate::functions::all_aggregate().into_iter().map(|f| f.name().to_string());
    let higher = serrate::functions::all_higher_order().into_iter().map(|f| f.name().to_string());
    let missing: Vec<_> =
        scalar.chain(aggregate).chain(higher).filter(|n| !generated.contains(n)).collect();
    assert!(missing.is_empty(), "never generated: {missing:?}");
}

/// What `tests/interop/duckdb.py` reads: tables as Parquet, and statements with our answers.
#[test]
fn statements_of_other_engines() {
    let own = tempfile::tempdir().unwrap();
    let given = std::env::var("SERRATE_LAWS_EXPORT").ok();
    let folder = given.map_or_else(|| own.path().to_path_buf(), std::path::PathBuf::from);
    let statements = setting("STATEMENTS", 24);
    let answered = block_on(export::write(&folder, setting("SEED", 1), statements as usize));
    assert!(answered * 4 > statements * 3, "{answered} of {statements} have answers");
}
