//! A server process, and functions for its clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use arrow_flight::FlightInfo;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int64Type, Schema};
use datafusion::arrow::util::pretty::pretty_format_batches;
use futures::TryStreamExt;
use serrate::datafusion;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// A query that runs for minutes before it returns its only row.
pub(crate) const LONG: &str = "SELECT count(*) FROM (SELECT unnest(range(300000)) AS x) a, (SELECT unnest(range(300000)) AS y) b WHERE (x * y) % 7 = 3";

pub(crate) type Client = FlightSqlServiceClient<Channel>;

/// A server process, which ends when the value is dropped.
pub(crate) struct ServerProcess {
    pub(crate) child: Child,
    pub(crate) address: String,
    metrics: String,
}

impl ServerProcess {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_in(Path::new("."), args)
    }

    pub(crate) fn start_in(folder: &Path, args: &[&str]) -> Self {
        Self::start_with(folder, args, Stdio::inherit())
    }

    /// Starts a server in `folder` that writes standard error to `log`.
    pub(crate) fn start_with(folder: &Path, args: &[&str], log: Stdio) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_serrate"))
            .current_dir(folder)
            .args(["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            line.trim().rsplit(' ').next().unwrap().to_owned()
        };
        let (address, metrics) = (line(), line());
        assert!(address.contains(':') && metrics.contains("http://"), "{address:?} {metrics:?}");
        let metrics = metrics.trim_start_matches("http://").trim_end_matches("/metrics").to_owned();
        Self { child, address, metrics }
    }

    pub(crate) async fn connect(&self) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        FlightSqlServiceClient::new(endpoint.connect().await.unwrap())
    }

    /// Sends the process the signal `name`, such as `TERM`.
    pub(crate) fn send_signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Waits until the process ends. Returns its exit code and how long it took.
    pub(crate) fn wait(&mut self) -> (Option<i32>, Duration) {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), start.elapsed());
            }
            assert!(start.elapsed() < Duration::from_secs(60), "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Requests a path from the metrics address over HTTP and returns the whole response.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.metrics).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics");
        let name = format!("serrate_{name} ");
        let line = text.lines().find(|line| line.starts_with(&name));
        line.unwrap_or_else(|| panic!("{name} in {text}"))[name.len()..].parse().unwrap()
    }

    /// Waits until a metric has the given value. Returns how long it took.
    pub(crate) async fn wait_for(&self, name: &str, value: u64) -> Duration {
        let start = Instant::now();
        while self.metric(name) != value {
            let limit = Duration::from_secs(30);
            assert!(start.elapsed() < limit, "{name} is {}, not {value}", self.metric(name));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        start.elapsed()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the gRPC status of an error of the client.
pub(crate) fn status_of(e: FlightError) -> Status {
    match e {
        FlightError::Tonic(status) => *status,
        other => panic!("{other}"),
    }
}

/// Reads a result, and asserts that its batches have exactly the schema of the FlightInfo.
pub(crate) async fn read_batches(
    client: &mut Client,
    info: FlightInfo,
) -> Result<Vec<RecordBatch>, Status> {
    let schema = info.clone().try_decode_schema().unwrap();
    let mut batches = Vec::new();
    for endpoint in info.endpoint {
        let stream = client.do_get(endpoint.ticket.unwrap()).await.map_err(status_of)?;
        batches.extend(read_stream(stream, &schema).await?);
    }
    Ok(batches)
}

pub(crate) async fn read_stream(
    mut stream: FlightRecordBatchStream,
    schema: &Schema,
) -> Result<Vec<RecordBatch>, Status> {
    let mut batches = Vec::new();
    while let Some(batch) = stream.try_next().await.map_err(status_of)? {
        batches.push(batch);
    }
    assert_eq!(
        stream.schema().unwrap().as_ref(),
        schema,
        "the schemas of the result and of the FlightInfo differ"
    );
    Ok(batches)
}

pub(crate) async fn run_query(client: &mut Client, sql: &str) -> Result<Vec<RecordBatch>, Status> {
    let info = client.execute(sql.to_owned(), None).await.map_err(status_of)?;
    read_batches(client, info).await
}

/// Runs a query, which must succeed, and returns its rows as a table of text.
pub(crate) async fn show_setting(client: &mut Client, sql: &str) -> String {
    let batches = run_query(client, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    pretty_format_batches(&batches).unwrap().to_string()
}

/// Runs a query whose result is one integer, and returns this integer.
pub(crate) async fn query_number(client: &mut Client, sql: &str) -> i64 {
    let batches = run_query(client, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let batch = batches.iter().find(|batch| batch.num_rows() > 0).unwrap();
    assert!(!batch.column(0).is_null(0), "{sql}");
    batch.column(0).as_primitive::<Int64Type>().value(0)
}

/// Runs a statement, which must fail, and returns the code and the message of its status.
pub(crate) async fn query_refusal(client: &mut Client, sql: &str) -> (Code, String) {
    match run_query(client, sql).await {
        Ok(rows) => panic!("{sql}: {}", pretty_format_batches(&rows).unwrap()),
        Err(status) => (status.code(), status.message().to_owned()),
    }
}
