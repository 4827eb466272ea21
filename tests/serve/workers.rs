//! A server with workers: results, lost workers, limits, cancelled queries, and encryption.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_flight::{Action, CancelFlightInfoRequest};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use prost::Message;
use serrate::datafusion;
use tonic::{Code, Request};

use super::process::{
    Client, ServerProcess, query_number, query_refusal, read_batches, run_query, show_setting,
};
use super::safety::start_refused;
use super::worker_process::{
    WorkerProcess, count_ticks, list_addresses, shipped_file, start_workers, wait_until_idle,
};

const FAST: &str = "SELECT g, count(*), sum(v) FROM p GROUP BY g ORDER BY g";

/// A query that runs for minutes on the workers.
const SLOW: &str = "SELECT count(*) FROM p a, p b, (VALUES (1), (2), (3), (4), (5), (6), (7), (8)) AS k(i) \
     WHERE ragged_sum(a.x * b.v) % 7 = k.i % 3";

/// A query that runs for several seconds on the workers and returns its only row at the end.
const LONG: &str = "SELECT count(*) FROM p a, p b \
     WHERE a.subject_id < 1500 AND ragged_sum(a.x * b.v) % 7 = 3";

/// Statements over the table `p` of files. The order of the rows of their results is determined.
const QUERIES: &[&str] = &[
    FAST,
    "SELECT count(*), min(v), max(ragged_sum(x)) FROM p WHERE g <> 2",
    "SELECT subject_id, x FROM p WHERE v > 1000 ORDER BY subject_id DESC LIMIT 7",
    "SELECT count(*), sum(a.v) FROM p a JOIN p b ON a.subject_id = b.subject_id + 1",
    "SELECT sum(subject_id) FROM (SELECT subject_id FROM p LIMIT 90 OFFSET 2450)",
    "SELECT subject_id FROM p LIMIT 5 OFFSET 4998",
    "WITH m AS (SELECT g, max(subject_id) AS s FROM p GROUP BY g) SELECT p.subject_id, p.x FROM p JOIN m ON p.subject_id = m.s ORDER BY 1",
];

/// Writes the Parquet files of the table `p` to a folder.
async fn write_files(folder: &Path) {
    std::fs::create_dir(folder.join("p")).unwrap();
    let context = serrate::sql::session();
    for from in (0..10_000).step_by(2500) {
        let path = folder.join("p").join(format!("{from}.parquet")).display().to_string();
        let sql = format!(
            "COPY (SELECT value AS subject_id, value % 5 AS g, value / 7.0 AS v, \
             range(value % 6) AS x FROM generate_series({from}, {}) AS t(value)) \
             TO '{path}' OPTIONS (max_row_group_size 50)",
            from + 2499
        );
        serrate::sql::sql(&context, &sql).await.unwrap().collect().await.unwrap();
    }
}

/// A server with workers, and the file that has its standard error.
struct Cluster {
    server: ServerProcess,
    log: PathBuf,
}

impl Cluster {
    fn start(folder: &Path, workers: &str, args: &[&str]) -> Self {
        let log = folder.join("log");
        let args = [&["--table", "p=p/*.parquet", "--workers", workers][..], args].concat();
        let file = File::create(&log).unwrap();
        Self { server: ServerProcess::start_with(folder, &args, file.into()), log }
    }

    fn read_log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Opens a session in which every scan is divided into tasks for the workers.
    async fn connect(&self) -> Client {
        let mut client = self.server.connect().await;
        for setting in [
            "datafusion.execution.target_partitions = 6",
            "datafusion.optimizer.repartition_file_min_size = 1",
            "cluster.bytes_per_task = 1",
        ] {
            show_setting(&mut client, &format!("SET {setting}")).await;
        }
        client
    }
}

#[tokio::test]
async fn results_equal_those_without_workers() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path()).await;
    let workers = start_workers(2);
    let with = Cluster::start(dir.path(), &list_addresses(&workers), &[]);
    let without = ServerProcess::start_in(dir.path(), &["--table", "p=p/*.parquet"]);
    let (mut there, mut here) = (with.connect().await, without.connect().await);
    for sql in QUERIES {
        assert_eq!(
            show_setting(&mut there, sql).await,
            show_setting(&mut here, sql).await,
            "{sql}"
        );
    }
    for client in [&mut there, &mut here] {
        let parameter: ArrayRef = Arc::new(Int64Array::from(vec![3]));
        let row = RecordBatch::try_from_iter([("p", parameter)]).unwrap();
        let mut prepared =
            client.prepare("SELECT count(*) FROM p WHERE g = ?".into(), None).await.unwrap();
        prepared.set_parameters(row).unwrap();
        let info = prepared.execute().await.unwrap();
        let rows = read_batches(client, info).await.unwrap();
        assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
        show_setting(client, "CREATE TABLE made AS SELECT g, count(*) AS c FROM p GROUP BY g")
            .await;
        assert_eq!(query_number(client, "SELECT sum(c) FROM made").await, 10_000);
        show_setting(client, "CREATE VIEW short AS SELECT g FROM p WHERE subject_id < 100").await;
        assert_eq!(query_number(client, "SELECT count(*) FROM short").await, 100);
        assert!(
            show_setting(client, "EXPLAIN SELECT count(*) FROM p").await.contains("physical_plan")
        );
    }
    let copy = "COPY (SELECT subject_id, x FROM p) TO 'there.nrt'";
    assert_eq!(there.execute_update(copy.into(), None).await.unwrap(), 10_000);
    let copy = copy.replace("there", "here");
    assert_eq!(here.execute_update(copy, None).await.unwrap(), 10_000);
    let bytes = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("there.nrt") == bytes("here.nrt"), "the order of the rows differs");
    let (code, said) = query_refusal(&mut there, "SELECT nothing FROM p").await;
    assert_eq!(code, Code::InvalidArgument, "{said}");
    assert_eq!(with.read_log(), "");
}

/// The workers may not read the files of the table, so that a statement fails if it runs on them.
#[tokio::test]
async fn statements_run_on_the_workers() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_files(dir.path()).await;
    let root = other.path().display().to_string();
    let workers: Vec<_> = (0..2).map(|_| WorkerProcess::start_worker(&["--root", &root])).collect();
    for used in [&workers[..], &workers[..1]] {
        let cluster = Cluster::start(dir.path(), &list_addresses(used), &[]);
        let mut client = cluster.connect().await;
        let (code, said) = query_refusal(&mut client, FAST).await;
        assert!(said.contains("outside the folder"), "{said}");
        assert_eq!(code, Code::PermissionDenied, "{said}");
        // Statements without a scan of several partitions run in the server.
        assert_eq!(
            query_number(&mut client, "SELECT sum(x) FROM (VALUES (1), (2)) AS t(x)").await,
            3
        );
        assert_eq!(cluster.read_log(), "");
    }
}

#[tokio::test]
async fn without_reachable_workers_the_server_runs_statements() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path()).await;
    // No process listens on these ports.
    let cluster = Cluster::start(dir.path(), "127.0.0.1:1,127.0.0.1:2", &[]);
    let mut client = cluster.connect().await;
    for _ in 0..3 {
        assert_eq!(
            query_number(
                &mut client,
                "SELECT sum(n) FROM (SELECT count(*) AS n FROM p GROUP BY g)"
            )
            .await,
            10_000
        );
        tokio::time::sleep(Duration::from_millis(1100)).await;
    }
    let log = cluster.read_log();
    assert!(log.starts_with("note: 0 of 2 workers can be used"), "{log}");
    assert!(log.contains("worker 127.0.0.1:1 cannot be reached"), "{log}");
    assert!(log.contains("statements run here"), "{log}");
    // The log has a line for each change of the workers, and none for statements.
    assert_eq!(log.lines().count(), 1, "{log}");
}

#[tokio::test]
async fn a_query_runs_again_without_a_lost_worker() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path()).await;
    let workers = start_workers(2);
    let cluster = Cluster::start(dir.path(), &list_addresses(&workers), &[]);
    let mut client = cluster.connect().await;
    let expected = show_setting(&mut client, FAST).await;
    let mut other = cluster.connect().await;
    let running = tokio::spawn(async move { run_query(&mut other, LONG).await });
    cluster.server.wait_for("queries_running", 1).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!running.is_finished(), "the query ended before the worker was lost");
    workers[1].send_signal("KILL");
    assert!(running.await.unwrap().is_ok());
    assert_eq!(show_setting(&mut client, FAST).await, expected);
    let log = cluster.read_log();
    assert!(log.contains("note: 1 of 2 workers can be used"), "{log}");
    assert_eq!(cluster.server.metric("workers"), 2);
    assert_eq!(cluster.server.metric("workers_usable"), 1);
    // The server uses the worker again after it has restarted.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let _worker = WorkerProcess::start_at(&workers[1].address, &[]);
    assert_eq!(show_setting(&mut client, FAST).await, expected);
    let log = cluster.read_log();
    assert!(log.ends_with("note: all 2 workers can be used\n"), "{log}");
}

#[tokio::test]
async fn limits_and_cancellation_apply_to_queries_on_workers() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path()).await;
    let workers = start_workers(2);
    let args = ["--max-queries", "1", "--queue-timeout", "1", "--memory-limit", "500MB"];
    let cluster = Cluster::start(dir.path(), &list_addresses(&workers), &args);
    let mut client = cluster.connect().await;
    let mut waiting = cluster.connect().await;
    // The query is cancelled by a request, and then by a client that disconnects.
    for leaves in [false, true] {
        let info = client.execute(SLOW.into(), None).await.unwrap();
        let (mut reader, read_info) = (client.clone(), info.clone());
        let running = tokio::spawn(async move { read_batches(&mut reader, read_info).await });
        cluster.server.wait_for("queries_running", 1).await;
        let (start, idle) = (Instant::now(), count_ticks(&workers));
        while count_ticks(&workers) < idle + 50 {
            assert!(start.elapsed() < Duration::from_secs(60), "the workers are idle");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (code, said) = query_refusal(&mut waiting, "SELECT 1").await;
        assert!(code == Code::ResourceExhausted && said.contains("--max-queries"), "{said}");
        if leaves {
            running.abort();
            assert!(running.await.unwrap_err().is_cancelled());
        } else {
            let request = CancelFlightInfoRequest::new(info);
            let action = Action::new("CancelFlightInfo", request.encode_to_vec());
            client.do_action(Request::new(action)).await.unwrap();
            assert_eq!(running.await.unwrap().unwrap_err().code(), Code::Cancelled);
        }
        cluster.server.wait_for("queries_open", 0).await;
        wait_until_idle(&workers).await;
    }
    assert_eq!(query_number(&mut client, "SELECT count(*) FROM p").await, 10_000);
    // The memory limit of the server applies to all sessions together, also with workers.
    let (code, said) = query_refusal(
        &mut client,
        "SELECT count(*) FROM (SELECT array_agg(repeat('x', 1000) || x) AS a FROM (SELECT unnest(range(1000000)) AS x)) WHERE cardinality(a) > 1",
    )
    .await;
    assert_eq!(code, Code::ResourceExhausted, "{said}");
}

#[tokio::test]
async fn connections_to_workers_are_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path()).await;
    let token = dir.path().join("token");
    std::fs::write(&token, "secret-token\n").unwrap();
    let token = token.display().to_string();
    let (certificate, key) = (shipped_file("serve/certificate.pem"), shipped_file("serve/key.pem"));
    let args = ["--tls-cert", &certificate, "--tls-key", &key, "--token-file", &token];
    let workers: Vec<_> = (0..2).map(|_| WorkerProcess::start_worker(&args)).collect();
    let workers = list_addresses(&workers);
    let other = shipped_file("cluster/other.pem");
    for (authority, words) in [
        (Some(&certificate), ""),
        (Some(&other), "its certificate is not accepted"),
        (None, "pass --worker-ca"),
    ] {
        let mut args = vec!["--worker-token-file", token.as_str()];
        args.extend(authority.iter().flat_map(|file| ["--worker-ca", file.as_str()]));
        let cluster = Cluster::start(dir.path(), &workers, &args);
        let mut client = cluster.connect().await;
        assert_eq!(
            query_number(&mut client, "SELECT count(*) FROM p WHERE x IS NOT NULL").await,
            10_000
        );
        let log = cluster.read_log();
        assert!(!log.contains("secret-token"), "{log}");
        match words.is_empty() {
            true => assert_eq!(log, ""),
            false => assert!(log.contains("0 of 2 workers") && log.contains(words), "{log}"),
        }
    }
    let said = start_refused(&["--workers", &workers, "--worker-ca", &token]);
    assert!(said.contains("--worker-ca does not name a certificate"), "{said}");
    assert!(!said.contains("secret-token"), "{said}");
    assert!(start_refused(&["--worker-ca", &certificate]).contains("--workers"));
}
