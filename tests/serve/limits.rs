//! Cancelled queries, large results, the queue of queries, limits of sessions, and shutdown.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_flight::error::FlightError;
use arrow_flight::sql::{ActionCancelQueryRequest, CommandStatementIngest, ProstMessageExt};
use arrow_flight::{Action, CancelFlightInfoRequest};
use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use futures::{StreamExt, TryStreamExt, stream};
use prost::Message;
use serrate::datafusion;
use tonic::{Code, Request};

use super::process::{
    LONG, ServerProcess, query_number, query_refusal, read_batches, run_query, show_setting,
    status_of,
};

/// Queries stop within a second on an idle machine. The limit allows for other tests that run at
/// the same time.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn queries_are_cancelled() {
    let server = ServerProcess::start(&[]);
    let mut client = server.connect().await;
    for deprecated in [false, true] {
        let info = client.execute(LONG.into(), None).await.unwrap();
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        let mut reader = client.clone();
        let reading = tokio::spawn(async move {
            let mut stream = reader.do_get(ticket).await.map_err(status_of)?;
            while stream.try_next().await.map_err(status_of)?.is_some() {}
            Ok::<(), tonic::Status>(())
        });
        server.wait_for("queries_running", 1).await;
        let action = match deprecated {
            true => {
                let request = ActionCancelQueryRequest { info: info.encode_to_vec().into() };
                Action::new("CancelQuery", request.as_any().encode_to_vec())
            }
            false => {
                let request = CancelFlightInfoRequest::new(info.clone());
                Action::new("CancelFlightInfo", request.encode_to_vec())
            }
        };
        // Another session cannot cancel the query.
        let mut other = server.connect().await;
        let refused = other.do_action(Request::new(action.clone())).await.map(|_| ());
        assert_eq!(status_of(refused.unwrap_err()).code(), Code::NotFound);
        let start = Instant::now();
        client.do_action(Request::new(action)).await.unwrap();
        let ended = reading.await.unwrap().unwrap_err();
        assert_eq!(ended.code(), Code::Cancelled, "{ended}");
        server.wait_for("queries_open", 0).await;
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    }
    assert_eq!(server.metric("queries_cancelled_total"), 2);
    // The session remains usable.
    assert_eq!(query_number(&mut client, "SELECT 7").await, 7);
}

#[tokio::test]
async fn queries_stop_when_their_client_disconnects() {
    let server = ServerProcess::start(&[]);
    // The client disconnects while it reads a result, or while a statement runs in GetFlightInfo or
    // DoPut.
    for kind in 0..3 {
        let mut client = server.connect().await;
        let create = format!("CREATE TABLE t AS {LONG}");
        let info = client.execute(LONG.into(), None).await.unwrap();
        let running = tokio::spawn(async move {
            match kind {
                0 => drop(read_batches(&mut client, info).await),
                1 => drop(client.execute(create, None).await),
                _ => drop(client.execute_update(create, None).await),
            }
        });
        server.wait_for("queries_running", 1).await;
        running.abort();
        let took = server.wait_for("queries_open", 0).await;
        assert!(took < SOON, "kind {kind}: the query stopped after {took:?}");
        server.wait_for("queries_running", 0).await;
        server.wait_for("sessions", 0).await;
    }
    assert_eq!(server.metric("queries_cancelled_total"), 3);
}

/// Returns the anonymous memory of the server process in bytes.
fn memory_of(server: &ServerProcess) -> usize {
    let path = format!("/proc/{}/status", server.child.id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[tokio::test]
async fn large_results_are_streamed() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServerProcess::start_in(dir.path(), &["--memory-limit", "1GB"]);
    let mut client = server.connect().await;
    show_setting(&mut client, "COPY (SELECT unnest(range(400000)) AS x) TO 'x.parquet'").await;
    let before = memory_of(&server);
    // 400,000 rows, each with a string of 1,000 bytes and a list of 100 integers: 720 MB.
    let sql =
        "SELECT x, repeat('x', 1000) || x AS t, range(x % 10, x % 10 + 100) AS l FROM 'x.parquet'";
    let info = client.execute(sql.into(), None).await.unwrap();
    let mut stream = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
    // The peak memory during each half of the result.
    let (mut rows, mut most) = (0, [0, 0]);
    while let Some(batch) = stream.try_next().await.unwrap() {
        rows += batch.num_rows();
        let half = usize::from(rows > 200_000);
        most[half] = most[half].max(memory_of(&server).saturating_sub(before));
        if rows < 100_000 {
            // The client reads slowly at first.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    assert_eq!(rows, 400_000);
    let [first, second] = most;
    assert!(
        first < 350 << 20 && second < first + (50 << 20),
        "memory in bytes during each half of 720 MB: {most:?}"
    );
    assert!(server.metric("bytes_sent_total") > 700_000_000);
    assert_eq!(server.metric("rows_sent_total"), 400_001);
}

#[tokio::test]
async fn a_row_larger_than_a_message_is_an_error() {
    let server = ServerProcess::start(&["--max-message", "4MiB"]);
    let mut client = server.connect().await;
    let (code, said) = query_refusal(&mut client, "SELECT repeat('x', 5000000) AS t").await;
    assert!(code == Code::ResourceExhausted && said.contains("--max-message"), "{code} {said}");
    let rows =
        run_query(&mut client, "SELECT repeat('x', 2000000) AS t FROM (VALUES (1), (2), (3))");
    let rows = rows.await.unwrap();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [1, 1, 1]);
}

#[tokio::test]
async fn queries_beyond_the_limit_wait_or_are_refused() {
    let server = ServerProcess::start(&["--max-queries", "1", "--queue-timeout", "2"]);
    let mut long = server.connect().await;
    let running = tokio::spawn(async move { run_query(&mut long, LONG).await });
    server.wait_for("queries_running", 1).await;
    let mut client = server.connect().await;
    let (code, said) = query_refusal(&mut client, "SELECT 1").await;
    assert!(code == Code::ResourceExhausted && said.contains("--max-queries"), "{said}");
    assert_eq!(server.metric("queries_rejected_total"), 1);
    let waiting = tokio::spawn(async move { query_number(&mut client, "SELECT 5").await });
    server.wait_for("queries_queued", 1).await;
    running.abort();
    assert_eq!(waiting.await.unwrap(), 5);
    assert_eq!(server.metric("queries_running"), 0);
    // A query whose client does not read its result does not count towards the limit.
    let mut slow = server.connect().await;
    let sql = "SELECT repeat('x', 1000) AS t FROM (SELECT unnest(range(200000)) AS x)";
    let info = slow.execute(sql.into(), None).await.unwrap();
    let mut stream = slow.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
    stream.try_next().await.unwrap();
    let mut client = server.connect().await;
    assert_eq!(query_number(&mut client, "SELECT 6").await, 6);
    let mut rows = 0;
    while let Some(batch) = stream.try_next().await.unwrap() {
        rows += batch.num_rows();
    }
    assert!(rows > 190_000);
}

#[tokio::test]
async fn a_client_that_stops_sending_rows_blocks_no_query() {
    let server = ServerProcess::start(&["--max-queries", "1", "--idle-timeout", "3"]);
    let mut sending = server.connect().await;
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("x", values)]).unwrap();
    let rows = stream::iter([Ok::<_, FlightError>(batch)]).chain(stream::pending());
    let command = CommandStatementIngest { table: "sent".into(), ..Default::default() };
    let sent = tokio::spawn(async move { sending.execute_ingest(command, rows).await });
    server.wait_for("queries_running", 1).await;
    // The ingestion waits for its client, so that another query can run.
    let mut client = server.connect().await;
    assert_eq!(query_number(&mut client, "SELECT 5").await, 5);
    assert_eq!(server.metric("queries_open"), 1);
    let ended = status_of(sent.await.unwrap().unwrap_err());
    assert!(ended.code() == Code::Cancelled && ended.message().contains("sent no rows"), "{ended}");
    server.wait_for("queries_open", 0).await;
}

#[tokio::test]
async fn bound_parameters_count_towards_the_memory_limit() {
    let server = ServerProcess::start(&["--memory-limit", "50MB"]);
    let mut client = server.connect().await;
    let list = [Some((0..20_000).map(Some).collect::<Vec<_>>())];
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(list));
    let batch = RecordBatch::try_from_iter([("p", list)]).unwrap();
    let mut statements = Vec::new();
    let refused = loop {
        assert!(statements.len() < 40, "no statement is refused");
        let mut statement = client.prepare("SELECT ragged_sum(?)".into(), None).await.unwrap();
        statement.set_parameters(batch.clone()).unwrap();
        match statement.execute().await {
            Ok(_) => statements.push(statement),
            Err(e) => break status_of(e),
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(!statements.is_empty());
    for statement in statements {
        statement.close().await.unwrap();
    }
    // A closed statement frees its memory.
    let mut statement = client.prepare("SELECT ragged_sum(?)".into(), None).await.unwrap();
    statement.set_parameters(batch).unwrap();
    statement.execute().await.unwrap();
}

#[tokio::test]
async fn idle_sessions_end_and_their_number_is_limited() {
    let server = ServerProcess::start(&["--max-sessions", "2", "--idle-timeout", "1"]);
    let (mut a, mut b, mut c) =
        (server.connect().await, server.connect().await, server.connect().await);
    show_setting(&mut a, "CREATE TABLE t AS SELECT 1 AS x").await;
    query_number(&mut b, "SELECT 1").await;
    let (code, said) = query_refusal(&mut c, "SELECT 1").await;
    assert!(code == Code::ResourceExhausted && said.contains("--max-sessions"), "{said}");
    server.wait_for("sessions", 0).await;
    let (code, said) = query_refusal(&mut a, "SELECT x FROM t").await;
    assert!(code == Code::NotFound && said.contains("in a new session"), "{said}");
    assert_eq!(query_number(&mut a, "SELECT 2").await, 2);
}

#[tokio::test]
async fn a_signal_ends_the_server_after_its_running_queries() {
    for (signal, grace) in [("TERM", "30"), ("INT", "30")] {
        let mut server = ServerProcess::start(&["--grace", grace]);
        let mut client = server.connect().await;
        let sql = "SELECT count(*) FROM (SELECT unnest(range(6000)) AS x) a, (SELECT unnest(range(6000)) AS y) b WHERE (x * y) % 7 = 3";
        let mut other = client.clone();
        let info = client.execute(sql.into(), None).await.unwrap();
        let running = tokio::spawn(async move { read_batches(&mut other, info).await });
        server.wait_for("queries_running", 1).await;
        server.send_signal(signal);
        // The running query may finish.
        let rows = running.await.unwrap().unwrap_or_else(|e| panic!("{signal}: {e}"));
        assert_eq!(rows[0].num_rows(), 1);
        let (code, took) = server.wait();
        assert!(code == Some(0) && took < SOON, "{signal}: {code:?} {took:?}");
        assert!(run_query(&mut client, "SELECT 1").await.is_err());
    }
    let mut server = ServerProcess::start(&["--grace", "1"]);
    let mut client = server.connect().await;
    let info = client.execute(LONG.into(), None).await.unwrap();
    let running = tokio::spawn(async move { read_batches(&mut client, info).await });
    server.wait_for("queries_running", 1).await;
    server.send_signal("TERM");
    let ended = running.await.unwrap().unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    let (code, took) = server.wait();
    assert!(code == Some(0) && took < SOON, "{code:?} {took:?}");
}

#[tokio::test]
async fn metrics_and_health_are_served_over_http() {
    let server = ServerProcess::start(&["--memory-limit", "500MB"]);
    assert!(server.get("/health").ends_with("\r\n\r\nok\n"));
    assert!(server.get("/").starts_with("HTTP/1.1 404"));
    let mut client = server.connect().await;
    query_number(&mut client, "SELECT 1").await;
    query_refusal(&mut client, "SELECT nothing").await;
    let text = server.get("/metrics");
    for line in [
        "serrate_queries_finished_total 1",
        "serrate_queries_failed_total 1",
        "serrate_sessions 1",
        "serrate_connections 1",
        "serrate_rows_sent_total 1",
        "serrate_memory_limit_bytes 500000000",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line} in {text}");
    }
    // One memory limit applies to all sessions together.
    let (code, said) = query_refusal(
        &mut client,
        "SELECT count(*) FROM (SELECT array_agg(repeat('x', 1000) || x) AS a FROM (SELECT unnest(range(1000000)) AS x)) WHERE cardinality(a) > 1",
    )
    .await;
    assert_eq!(code, Code::ResourceExhausted, "{said}");
}
