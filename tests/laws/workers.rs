//! Compares three worker processes with a session without workers: over the same files, a statement
//! must have the same result.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::cluster::{ClientConfig, Cluster};
use serrate::datafusion::error::DataFusionError;
use serrate::datafusion::physical_plan::displayable;
use serrate::datafusion::prelude::SessionContext;

use crate::cuts::{Setup, Source};
use crate::expressions::Calls;
use crate::laws::Asked;
use crate::queries::Queries;
use crate::report::Difference;
use crate::sources::{register_names, run_query, write_table};
use crate::statements::{Statements, Steps};
use crate::tables::World;
use crate::worker_process::{WorkerProcess, list_addresses, start_workers};
use crate::{Findings, PER_WORLD, ROWS, block_on, read_setting};

/// A statement that takes longer than this counts as hanging.
const LIMIT: Duration = Duration::from_secs(120);

/// Two sessions with the same tables: `there` uses workers, `here` does not.
struct Pair {
    here: SessionContext,
    there: SessionContext,
    cluster: Cluster,
    /// Number of statements that read files. `divided` is the number of those that ran in several
    /// tasks.
    over_files: usize,
    divided: usize,
}

impl Pair {
    fn new(workers: &[WorkerProcess]) -> Self {
        let cluster = Cluster::new(&ClientConfig::new(&list_addresses(workers))).unwrap();
        let (here, there) = (serrate::sql::session(), serrate::sql::session());
        cluster.attach(&there);
        register_names(&here);
        register_names(&there);
        Self { here, there, cluster, over_files: 0, divided: 0 }
    }

    /// Writes the tables of a world to files, and creates tables of these files in both sessions.
    async fn enter(&self, world: &World, setup: &Setup, folder: &Path) {
        let source = format!("{:?}", setup.source);
        for table in &world.tables {
            write_table(table, setup, &folder.join(&source).join(&table.name));
        }
        for ctx in [&self.here, &self.there] {
            let mut statements: Vec<String> = setup
                .settings()
                .iter()
                .map(|(name, value)| format!("SET {name} = {value}"))
                .collect();
            statements.push(format!("SET datafusion.execution.time_zone = '{}'", world.zone));
            for table in &world.tables {
                ctx.deregister_table(table.name.as_str()).unwrap();
                statements.push(format!(
                    "CREATE EXTERNAL TABLE {} STORED AS {} LOCATION '{}/'",
                    table.name,
                    source.to_uppercase(),
                    folder.join(&source).join(&table.name).display()
                ));
            }
            for sql in statements {
                run_query(ctx, &sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
            }
        }
        run_query(&self.there, "SET cluster.bytes_per_task = 1").await.unwrap();
    }

    /// Counts the statement as divided, or counts the reason why it is not.
    async fn count_tasks(&mut self, sql: &str, findings: &Findings) {
        // Discards the notes about the previous statement.
        self.cluster.take_notes();
        let shown = show_plan(&self.there, sql).await;
        let notes = self.cluster.take_notes().join("; ");
        if shown.contains("DistributedExec") || shown.contains("SubqueriesFirstExec") {
            self.over_files += 1;
            self.divided += 1;
        } else if shown.contains(".parquet") || shown.contains(".nrt") {
            self.over_files += 1;
            let reason: &str = if notes.is_empty() { "there is nothing to divide" } else { &notes };
            let kind: String = reason.chars().filter(|c| !c.is_ascii_digit()).take(150).collect();
            findings.count(format!("not divided: {kind}"));
        }
    }

    /// Runs a statement in both sessions. Returns both results if they differ.
    async fn find_difference(
        &mut self,
        asked: &Asked,
        setup: &Setup,
        findings: &Findings,
    ) -> Option<(String, String)> {
        let sql = asked.sql();
        self.count_tasks(&sql, findings).await;
        let here = asked.found(&self.here, setup).await;
        let there = tokio::time::timeout(LIMIT, asked.found(&self.there, setup)).await;
        let there = there.unwrap_or_else(|_| panic!("no result within {LIMIT:?}: {sql}"));
        let counter = if here.is_ok() { &findings.answered } else { &findings.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        asked.compare(&here, &there, setup)
    }
}

/// Returns the physical plan of a statement as text, or an empty string if it cannot be planned.
async fn show_plan(ctx: &SessionContext, sql: &str) -> String {
    let (ctx, text) = (ctx.clone(), sql.to_owned());
    let task = tokio::spawn(async move {
        let plan = serrate::sql::sql(&ctx, &text).await?.create_physical_plan().await?;
        Ok::<_, DataFusionError>(displayable(plan.as_ref()).indent(false).to_string())
    });
    task.await.ok().and_then(Result::ok).unwrap_or_default()
}

/// Returns a world (set of random tables). Half of the worlds have tables that `.nrt` can hold.
fn make_world(seed: u64, number: u64) -> World {
    let plain = number % 4 < 2;
    let mut worlds = (0..).map(|i| {
        let seed = (seed * 1_000_000 + number) * 1_000 + i;
        if is_wide(number) { World::wide(seed, ROWS) } else { World::new(seed, ROWS) }
    });
    worlds.find(|world| world.plain == plain).unwrap()
}

/// Returns whether the world with this number has the tables and statements of the generator
/// `queries`.
fn is_wide(number: u64) -> bool {
    number % 2 == 1
}

/// Generates the statements of a world. Each is written in random ways.
fn make_statements(world: &World, number: u64, count: u64) -> Vec<Asked> {
    let mut random = ChaCha8Rng::seed_from_u64(world.seed);
    let mut statements = Statements::new(world, Calls::Safe, world.seed ^ 0x5eed);
    if !is_wide(number) {
        let all = (0..count).map(|_| {
            let steps = [Steps::With, Steps::Derived][random.random_range(0..2)];
            Asked::Steps(statements.statement(), steps)
        });
        return all.collect();
    }
    let mut queries = Queries::new(world, world.seed ^ 0xf0f0);
    let all = (0..count).map(|i| {
        // Every fourth statement has a rare clause, and the clauses take turns.
        let form = match i % 4 {
            3 => queries.rare_form(usize::try_from(number * count + i / 4).unwrap()),
            _ => queries.form(),
        };
        Asked::Form(form.drawn(&mut |n| random.random_range(0..n)))
    });
    all.collect()
}

#[test]
fn statements_have_one_answer_on_workers() {
    let seed = read_setting("SEED", 1);
    let wanted = read_setting("STATEMENTS", 150);
    let each = (PER_WORLD as u64).min(wanted.div_ceil(8));
    let findings = Findings::default();
    let workers = start_workers(3);
    block_on(async {
        let mut pair = Pair::new(&workers);
        for number in 0..wanted.div_ceil(each) {
            let world = make_world(seed, number);
            let statements = make_statements(&world, number, each);
            let folder = tempfile::tempdir().unwrap();
            let mut random = ChaCha8Rng::seed_from_u64(world.seed);
            for source in [Source::Nrt, Source::Parquet] {
                if source == Source::Nrt && !world.plain {
                    continue;
                }
                let setup = Setup {
                    source,
                    files: 3,
                    partitions: [3, 6][random.random_range(0..2)],
                    batch: [7, 8192][random.random_range(0..2)],
                    parquet_lists: random.random_range(0..2) == 0,
                    pushdown_filters: random.random_range(0..2) == 0,
                    ..Setup::default()
                };
                pair.enter(&world, &setup, folder.path()).await;
                for (at, asked) in statements.iter().enumerate() {
                    let found = pair.find_difference(asked, &setup, &findings).await;
                    let Some((expected, found)) = found else { continue };
                    let difference = Difference {
                        law: "one answer on workers",
                        seed: world.seed,
                        number: at,
                        asked: asked.clone(),
                        setup: setup.clone(),
                        expected,
                        found,
                    };
                    let script = difference.script(&world);
                    println!("{script}");
                    findings.differences.lock().unwrap().push(script);
                    if findings.is_enough() {
                        return;
                    }
                }
            }
        }
        let (divided, all) = (pair.divided, pair.over_files);
        println!("{divided} of {all} statements over files ran in more than one task");
        assert!(divided * 4 >= all, "only {divided} of {all} statements were divided");
    });
    findings.finish();
}
