//! The command `serrate` with the option `--workers`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::processes::{list_addresses, start_pair, wait_until_idle};
use crate::worker_process::count_ticks;

const GROUPS: &str =
    "SELECT g, count(*), sum(v), sum(ragged_sum(codes)) FROM p GROUP BY g ORDER BY g";
const ROWS: &str = "SELECT subject_id, codes FROM p WHERE g = 3 ORDER BY subject_id DESC LIMIT 20";
/// A query that runs for a minute unless it is interrupted.
const SLOW: &str = "SELECT count(*) FROM p a, p b, (VALUES (1), (2), (3), (4), (5), (6), (7), (8)) AS k(i) \
     WHERE ragged_sum(a.x * b.v) % 7 = k.i % 3";
/// A setting that exists only in sessions with workers. A value of 1 divides every scan into tasks.
const DIVIDE: &str = "SET cluster.bytes_per_task = 1;";

/// Returns a command that runs the statements `before` and then `sql` on the table `p`, whose
/// Parquet files are in `folder`. The caller adds workers.
fn build_command(folder: &Path, before: &str, sql: &str) -> Command {
    let table = folder.join("parquet");
    let create =
        format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{}/'", table.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_serrate"));
    command.env_remove("SERRATE_WORKERS");
    command.args(["--format", "csv", "-c", &format!("{before} {create}; {sql}")]);
    command
}

/// Runs a command, which must succeed, and returns its standard output and standard error.
fn run_command(mut command: Command) -> (String, String) {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{command:?}: {said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_set_by_the_option_or_the_environment_variable() {
    let (workers, folder, _pair) = start_pair(2, 1000).await;
    let addresses = list_addresses(&workers);
    for sql in [GROUPS, ROWS] {
        let (here, said) = run_command(build_command(folder.path(), "", sql));
        assert!(here.lines().count() > 5 && !said.contains("note: "), "{here}\n{said}");
        let mut with_option = build_command(folder.path(), DIVIDE, sql);
        // The option takes precedence over the variable, whose address is wrong.
        with_option.args(["--workers", &addresses]).env("SERRATE_WORKERS", "127.0.0.1:1");
        let mut with_variable = build_command(folder.path(), DIVIDE, sql);
        with_variable.env("SERRATE_WORKERS", &addresses);
        for command in [with_option, with_variable] {
            let (there, said) = run_command(command);
            assert_eq!(here, there, "{sql}");
            assert!(!said.contains("note: "), "{said}");
        }
    }
    // The output has the metrics of the tasks on workers.
    let mut analyzed = build_command(folder.path(), DIVIDE, &format!("EXPLAIN ANALYZE {GROUPS}"));
    analyzed.args(["--workers", &addresses]);
    let (plan, said) = run_command(analyzed);
    assert!(plan.contains("t1: ") && plan.contains("output_rows"), "{plan}\n{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_are_on_stderr() {
    let (mut workers, folder, _pair) = start_pair(2, 1000).await;
    let addresses = list_addresses(&workers);
    let (here, _) = run_command(build_command(folder.path(), "", GROUPS));
    let ask = || {
        let mut command = build_command(folder.path(), DIVIDE, GROUPS);
        command.args(["--workers", &addresses]);
        run_command(command)
    };
    for consequence in ["the other worker runs the statement", "the statement runs here"] {
        let lost = workers.pop().unwrap().address.clone();
        let (there, said) = ask();
        assert_eq!(here, there);
        let note = format!("worker {lost} cannot be reached");
        let found = said.lines().find(|line| line.starts_with("note: ") && line.contains(&note));
        assert!(found.is_some_and(|line| line.contains(consequence)), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_stops_the_workers() {
    let (workers, folder, _pair) = start_pair(2, 10_000).await;
    let mut command = build_command(folder.path(), DIVIDE, SLOW);
    command.args(["--workers", &list_addresses(&workers)]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (start, before) = (Instant::now(), count_ticks(&workers));
    while count_ticks(&workers) < before + 100 {
        assert!(start.elapsed() < Duration::from_secs(60), "the workers are idle");
        assert_eq!(child.try_wait().unwrap(), None, "the query ended before the interrupt");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let start = Instant::now();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    wait_until_idle(&workers).await;
}
