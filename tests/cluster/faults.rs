//! Workers that are killed, stopped, out of memory, of another version, or refuse the session.

use std::process::Command;
use std::time::{Duration, Instant};

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion_distributed::Worker;
use futures::StreamExt;
use serrate::cluster::{ClientConfig, Cluster, TlsIdentity, WorkerConfig, serve};
use serrate::datafusion;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use crate::processes::{
    Pair, WorkerProcess, create_tables, run_query, shipped_file, start_pair, start_workers,
    wait_until_idle,
};

/// A query that runs for a minute unless it is cancelled.
const SLOW: &str = "SELECT count(*) FROM p a, p b, (VALUES (1), (2), (3), (4), (5), (6), (7), (8)) AS k(i) \
     WHERE ragged_sum(a.x * b.v) % 7 = k.i % 3";

const FAST: &str = "SELECT g, count(*) FROM p GROUP BY g ORDER BY g";

/// A query that runs for several seconds and returns its only row at the end.
const LONG: &str = "SELECT count(*), sum(a.subject_id) FROM p a, p b \
     WHERE a.subject_id < 1500 AND ragged_sum(a.x * b.v) % 7 = 3";

/// Runs [`LONG`] on workers, calls `lose` while it runs, compares the result with that of a session
/// without workers, and returns the notes of the cluster.
async fn run_with_loss(pair: &Pair, lose: impl FnOnce()) -> String {
    let there = pair.there.clone();
    let query = tokio::spawn(async move { run_query(&there, LONG).await });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!query.is_finished(), "the query ended before the worker was lost");
    lose();
    let answer = tokio::time::timeout(Duration::from_secs(180), query).await;
    let rows = answer.expect("the query does not end").unwrap().unwrap();
    let expected = run_query(&pair.here, LONG).await.unwrap();
    let show = |rows| pretty_format_batches(rows).unwrap().to_string();
    assert_eq!(show(&rows), show(&expected));
    pair.cluster.take_notes().join("\n")
}

/// Runs [`LONG`] on three workers and sends `signal` to one of them. The statement must run again
/// on the other two, with the right result.
async fn repeats_after(signal: &'static str) {
    let (workers, _folder, mut pair) = start_pair(3, 10_000).await;
    assert!(pair.is_divided(LONG).await, "{:?}", pair.cluster.take_notes());
    let notes = run_with_loss(&pair, || workers[1].send_signal(signal)).await;
    assert!(notes.contains("was lost while the statement ran"), "{notes}");
    assert!(notes.contains("; the statement runs again"), "{notes}");
    assert!(notes.contains(&workers[1].address), "{notes}");
    assert!(notes.contains("the other 2 run the statement"), "{notes}");
    // The other two workers run the next statement, too.
    pair.check_divided(FAST).await;
    pair.check_failures();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_runs_again_without_a_killed_worker() {
    repeats_after("KILL").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_runs_again_without_a_stopped_worker() {
    repeats_after("STOP").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_runs_again_in_the_session_if_no_worker_is_left() {
    let (workers, _folder, pair) = start_pair(2, 10_000).await;
    let notes = run_with_loss(&pair, || drop(workers)).await;
    assert!(notes.contains("the statement runs here"), "{notes}");
}

/// The caller has received rows already, so that the statement cannot run again and fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_lost_after_the_first_row_is_an_error() {
    let (workers, _folder, mut pair) = start_pair(3, 10_000).await;
    let sql = "SELECT a.subject_id, b.x FROM p a, p b WHERE ragged_sum(a.x * b.v) % 7 > 3";
    assert!(pair.is_divided(sql).await, "{:?}", pair.cluster.take_notes());
    let frame = serrate::sql::sql(&pair.there, sql).await.unwrap();
    let mut rows = frame.execute_stream().await.unwrap();
    rows.next().await.unwrap().unwrap();
    workers[1].send_signal("KILL");
    let start = Instant::now();
    let failure = async {
        loop {
            match rows.next().await {
                Some(Ok(_)) => {}
                Some(Err(e)) => return e.strip_backtrace(),
                None => panic!("all rows were returned"),
            }
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(30), failure).await.unwrap();
    assert!(error.contains("was lost while the statement ran"), "{error}");
    assert!(error.contains(&workers[1].address), "{error}");
    eprintln!("{:?}: {error}", start.elapsed());
    pair.check_divided(FAST).await;
    pair.check_failures();
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_run_without_unreachable_workers() {
    let (mut workers, _folder, mut pair) = start_pair(2, 100).await;
    let address = workers[0].address.clone();
    drop(workers.remove(0));
    let lost = format!("worker {address} cannot be reached");
    assert!(pair.is_divided(FAST).await);
    let notes = pair.cluster.take_notes().concat();
    assert!(notes.contains(&lost), "{notes}");
    assert!(notes.contains("the other worker runs the statement"), "{notes}");
    pair.check_divided(FAST).await;
    // The session uses a worker again after the worker has restarted.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let worker = WorkerProcess::start_at(&address, &[]);
    pair.check_divided(FAST).await;
    drop(workers);
    drop(worker);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    pair.check_query(FAST).await;
    assert_eq!(pair.whole.len(), 1, "{:?}", pair.whole);
    assert!(pair.whole[0].contains("the statement runs here"), "{:?}", pair.whole);
    assert!(pair.whole[0].contains(&lost), "{:?}", pair.whole);
    pair.check_failures();
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_refuse_sessions_without_their_token() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "a secret\n").unwrap();
    let file = token.display().to_string();
    let workers: Vec<_> =
        (0..2).map(|_| WorkerProcess::start_worker(&["--token-file", &file])).collect();
    let mut pair = Pair::new(&workers).await;
    create_tables(&pair, folder.path(), 100).await;
    pair.check_query(FAST).await;
    assert!(pair.whole[0].contains("refuses the token"), "{:?}", pair.whole);
    let addresses: Vec<&str> = workers.iter().map(|w| w.address.as_str()).collect();
    let mut config = ClientConfig::new(&addresses.join(","));
    config.token = Some("a secret".into());
    let known = Cluster::new(&config).unwrap();
    let there = serrate::sql::session();
    known.attach(&there);
    run_query(&there, "SET cluster.bytes_per_task = 1").await.unwrap();
    pair.there = there;
    let path = folder.path().join("parquet").display().to_string();
    let create = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{path}/'");
    run_query(&pair.there, &create).await.unwrap();
    pair.cluster = known;
    pair.check_divided(FAST).await;
    // For a join, workers send rows to each other.
    pair.check_divided("SELECT count(*) FROM p a JOIN p b ON a.subject_id = b.subject_id + 1")
        .await;
}

/// Starts a worker that listens on all network addresses. Returns `Ok` once it listens, or the
/// error with which it refuses to start.
async fn listen_everywhere(token: bool, tls: bool, insecure: bool) -> Result<(), String> {
    let read = |path| std::fs::read_to_string(shipped_file(path)).unwrap();
    let identity =
        TlsIdentity { certificate: read("serve/certificate.pem"), key: read("serve/key.pem") };
    let config = WorkerConfig {
        listen: "0.0.0.0:0".parse().unwrap(),
        token: token.then(|| "a secret".into()),
        tls: tls.then_some(identity),
        insecure,
        authority: None,
        timeout: Duration::from_secs(5),
    };
    let (send, ready) = tokio::sync::oneshot::channel();
    let served = serve(config, |address| {
        let _ = send.send(address);
    });
    tokio::select! {
        served = served => Err(served.unwrap_err().strip_backtrace()),
        address = ready => {
            assert!(address.is_ok(), "the worker ended before it had an address");
            Ok(())
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn listening_for_other_machines_needs_a_token_and_tls() {
    for (token, tls) in [(false, false), (true, false), (false, true)] {
        let refused = listen_everywhere(token, tls, false).await.unwrap_err();
        assert!(refused.contains("sessions on other machines need a token"), "{refused}");
        for option in ["--token-file", "--tls-cert", "--tls-key", "--insecure-listen"] {
            assert!(refused.contains(option), "{refused}");
        }
        assert_eq!(listen_everywhere(token, tls, true).await, Ok(()));
    }
    assert_eq!(listen_everywhere(true, true, false).await, Ok(()));
    let worker = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_serrate"));
        command.args(["worker", "--listen", "0.0.0.0:0"]).args(args).output().unwrap()
    };
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "a secret\n").unwrap();
    let output = worker(&["--token-file", &token.path().display().to_string()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    assert!(said.starts_with("error: sessions on other machines need"), "{said}");
    // `start_at` panics if the worker does not print its address.
    WorkerProcess::start_at("0.0.0.0:0", &["--insecure-listen"]);
}

/// The error is the same whether both workers or one of them may not read the files.
#[tokio::test(flavor = "multi_thread")]
async fn workers_with_a_root_read_no_files_outside_it() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let root = other.path().display().to_string();
    let confined: &[&str] = &["--root", &root];
    for args in [confined, &[]] {
        let workers = [confined, args].map(WorkerProcess::start_worker);
        let pair = Pair::new(&workers).await;
        create_tables(&pair, &folder.path().join(args.len().to_string()), 100).await;
        let start = Instant::now();
        let error = run_query(&pair.there, FAST).await.unwrap_err().strip_backtrace();
        assert!(error.contains("outside the folder"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_another_version_are_not_used() {
    let workers = start_workers(1);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = listener.local_addr().unwrap().to_string();
    let service = Worker::default().with_version("serrate 0.0.1").into_worker_server();
    let server = Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let addresses = format!("{},{other}", workers[0].address);
    let mut pair = Pair::with_config(ClientConfig::new(&addresses)).await;
    let folder = tempfile::tempdir().unwrap();
    create_tables(&pair, folder.path(), 100).await;
    assert!(pair.is_divided(FAST).await);
    let notes = pair.cluster.take_notes().concat();
    assert!(notes.contains(&format!("worker {other} has version \"serrate 0.0.1\"")), "{notes}");
    pair.check_divided(FAST).await;
    pair.check_failures();
}

/// A file is written completely or not at all, also if a worker is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_worker_leaves_no_file() {
    let (workers, folder, pair) = start_pair(2, 10_000).await;
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    // The query runs for a minute and returns rows from the start.
    let copy = format!(
        "COPY (SELECT a.subject_id, b.x FROM p a, p b WHERE ragged_sum(a.x * b.v) % 7 > 6) TO '{}'",
        out.join("rows.parquet").display()
    );
    assert!(pair.is_divided(&copy).await, "{:?}", pair.cluster.take_notes());
    let there = pair.there.clone();
    let query = tokio::spawn(async move { run_query(&there, &copy).await });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!query.is_finished(), "the query ended before the worker was lost");
    workers[1].send_signal("KILL");
    let answer = tokio::time::timeout(Duration::from_secs(20), query).await;
    let error = answer.expect("the query does not end").unwrap().unwrap_err().strip_backtrace();
    assert!(error.contains("was lost while the statement ran"), "{error}");
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
}

/// Returns the sum of the resident memory of the workers in bytes.
fn measure_memory(workers: &[WorkerProcess]) -> u64 {
    let sizes = workers.iter().map(|worker| {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", worker.child.id())).unwrap();
        let pages = text.split_whitespace().nth(1).unwrap();
        pages.parse::<u64>().unwrap() * 4096
    });
    sizes.sum()
}

/// Runs [`SLOW`] `count` times, one after the other, and cancels each run after 200 ms.
async fn cancel_queries(pair: &Pair, count: usize) {
    for _ in 0..count {
        let frame = serrate::sql::sql(&pair.there, SLOW).await.unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        let query = datafusion_collect(plan, pair);
        let answer = tokio::time::timeout(Duration::from_millis(200), query).await;
        assert!(answer.is_err(), "the query ended before it was cancelled: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_queries_leave_no_memory_in_use_on_workers() {
    let (workers, _folder, mut pair) = start_pair(2, 10_000).await;
    // The first queries allocate buffers and thread stacks that workers keep.
    cancel_queries(&pair, 10).await;
    let before = measure_memory(&workers);
    cancel_queries(&pair, 50).await;
    wait_until_idle(&workers).await;
    let after = measure_memory(&workers);
    eprintln!("{} MiB before 50 cancelled queries, {} MiB after", before >> 20, after >> 20);
    assert!(after < before + (64 << 20), "{before} bytes before, {after} after");
    pair.check_divided(FAST).await;
    pair.check_failures();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_for_a_missing_file_names_it() {
    let (_workers, folder, pair) = start_pair(2, 100).await;
    let frame =
        serrate::sql::sql(&pair.there, "SELECT sum(ragged_sum(codes)) FROM p").await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    std::fs::remove_file(folder.path().join("parquet").join("3 a%b.parquet")).unwrap();
    let start = Instant::now();
    let answer = datafusion_collect(plan, &pair).await;
    let error = answer.unwrap_err();
    assert!(error.contains("3 a%b.parquet"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

async fn datafusion_collect(
    plan: std::sync::Arc<dyn serrate::datafusion::physical_plan::ExecutionPlan>,
    pair: &Pair,
) -> Result<usize, String> {
    let batches = serrate::datafusion::physical_plan::collect(plan, pair.there.task_ctx()).await;
    batches.map(|b| b.len()).map_err(|e| e.strip_backtrace())
}

/// Each worker has its own memory limit. A query beyond this limit may fail, but the worker then
/// runs other queries.
#[tokio::test(flavor = "multi_thread")]
async fn memory_of_each_worker_is_limited() {
    let workers: Vec<_> =
        (0..2).map(|_| WorkerProcess::start_worker(&["--memory-limit", "3MB"])).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut pair = Pair::new(&workers).await;
    create_tables(&pair, folder.path(), 20_000).await;
    let large = "SELECT array_agg(deep) AS d FROM p GROUP BY subject_id * 2";
    assert!(pair.is_divided(large).await, "{:?}", pair.cluster.take_notes());
    if let Err(e) = run_query(&pair.there, large).await {
        assert!(e.to_string().contains("Resources exhausted"), "{e}");
    }
    pair.check_divided(FAST).await;
}

/// A sort that exceeds the memory limit of a worker spills to disk. If the disk is full, the query
/// fails, and the worker then runs other queries. A limit on the size of files simulates the full
/// disk.
#[tokio::test(flavor = "multi_thread")]
async fn queries_on_workers_spill_to_disk() {
    const SORT: &str = "SELECT subject_id, subject_id || repeat('x', 4000) AS s FROM p ORDER BY s";
    let folder = tempfile::tempdir().unwrap();
    for (name, limit) in [("free", ""), ("full", "trap '' XFSZ; ulimit -f 1;")] {
        let script = format!("{limit} exec \"$0\" \"$@\"");
        let start = |_| {
            let mut command = Command::new("sh");
            command.args(["-c", script.as_str(), env!("CARGO_BIN_EXE_serrate")]);
            WorkerProcess::start_with(command, "127.0.0.1:0", &["--memory-limit", "24MB"])
        };
        let workers: Vec<_> = (0..2).map(start).collect();
        let mut pair = Pair::new(&workers).await;
        create_tables(&pair, &folder.path().join(name), 20_000).await;
        // If batches are small, the merges of the three sorts of a worker fit the memory reserved
        // for them.
        pair.set_both("datafusion.execution.batch_size", "16").await;
        pair.set_both("datafusion.execution.sort_spill_reservation_bytes", "4000000").await;
        if limit.is_empty() {
            pair.check_divided(SORT).await;
        } else {
            let error = run_query(&pair.there, SORT).await.unwrap_err().strip_backtrace();
            assert!(error.contains("File too large"), "{error}");
        }
        pair.check_divided(FAST).await;
        pair.check_failures();
    }
}
