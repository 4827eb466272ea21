//! Tokens, TLS, `--root`, `--read-only`, and settings that clients may not change.

use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_flight::sql::client::FlightSqlServiceClient;
use tonic::Code;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use super::process::{
    ServerProcess, query_number, query_refusal, run_query, show_setting, status_of,
};

fn read_shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve").join(name);
    path.to_str().unwrap().to_owned()
}

fn write_token(dir: &Path) -> PathBuf {
    let path = dir.join("token");
    std::fs::write(&path, "secret-token\n").unwrap();
    path
}

#[tokio::test]
async fn clients_without_the_token_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let token = write_token(dir.path());
    let server = ServerProcess::start(&["--token-file", token.to_str().unwrap()]);
    let mut client = server.connect().await;
    assert_eq!(query_refusal(&mut client, "SELECT 1").await.0, Code::Unauthenticated);
    client.set_token("secret-toke".into());
    let (code, said) = query_refusal(&mut client, "SELECT 1").await;
    assert_eq!(code, Code::Unauthenticated);
    assert!(!said.contains("secret"), "{said}");
    assert!(client.handshake("user", "wrong").await.is_err());
    assert_eq!(server.metric("sessions"), 0);
    assert!(server.metric("unauthenticated_total") >= 3);
    client.set_token("secret-token".into());
    assert_eq!(query_number(&mut client, "SELECT 1").await, 1);
    // A handshake with the token as the password returns a token of the session.
    let mut client = server.connect().await;
    client.handshake("anyone", "secret-token").await.unwrap();
    assert_ne!(client.token().unwrap(), "secret-token");
    assert_eq!(query_number(&mut client, "SELECT 2").await, 2);
    let list = client.get_catalogs().await;
    assert!(list.is_ok());
    client.clear_token();
    let list = client.get_catalogs().await.map_err(status_of);
    assert_eq!(list.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn the_server_accepts_only_connections_with_tls() {
    let dir = tempfile::tempdir().unwrap();
    let token = write_token(dir.path());
    let (certificate, key) = (read_shipped("certificate.pem"), read_shipped("key.pem"));
    let server = ServerProcess::start(&[
        "--token-file",
        token.to_str().unwrap(),
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ]);
    let authority = Certificate::from_pem(std::fs::read(&certificate).unwrap());
    let tls = ClientTlsConfig::new().ca_certificate(authority).domain_name("localhost");
    let endpoint = Endpoint::from_shared(format!("https://{}", server.address)).unwrap();
    let channel = endpoint.tls_config(tls).unwrap().connect().await.unwrap();
    let mut client = FlightSqlServiceClient::new(channel);
    client.handshake("user", "secret-token").await.unwrap();
    show_setting(&mut client, "CREATE TABLE t AS SELECT 3 AS x").await;
    assert_eq!(query_number(&mut client, "SELECT x FROM t").await, 3);
    // A client without TLS is refused.
    let plain = Endpoint::from_shared(format!("http://{}", server.address)).unwrap();
    let answer = match plain.connect().await {
        Ok(channel) => {
            run_query(&mut FlightSqlServiceClient::new(channel), "SELECT 1").await.is_ok()
        }
        Err(_) => false,
    };
    assert!(!answer);
}

/// Starts a server with invalid arguments and returns its error message.
pub(crate) fn start_refused(args: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_serrate")).arg("serve").args(args).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}: {said}");
    said
}

#[test]
fn listening_for_other_machines_needs_a_token_and_tls() {
    let dir = tempfile::tempdir().unwrap();
    let token = write_token(dir.path());
    let token = token.to_str().unwrap();
    let open = ["--listen", "0.0.0.0:0"];
    let said = start_refused(&open);
    assert!(said.starts_with("error: clients on other machines need"), "{said}");
    assert!(said.contains("--insecure-listen"), "{said}");
    let with_token = [&open[..], &["--token-file", token]].concat();
    assert!(start_refused(&with_token).contains("--tls-cert"));
    let tls =
        ["--tls-cert", &read_shipped("certificate.pem"), "--tls-key", &read_shipped("key.pem")];
    assert!(start_refused(&[&open[..], &tls].concat()).contains("--token-file"));
    assert!(start_refused(&["--metrics-listen", "0.0.0.0:0"]).contains("metrics"));
    assert!(start_refused(&["--tls-cert", &read_shipped("certificate.pem")]).contains("--tls-key"));
    let wrong = ["--tls-cert", &read_shipped("certificate.pem"), "--tls-key", token];
    let said = start_refused(&wrong);
    assert!(said.contains("private key") && !said.contains("secret-token"), "{said}");
    // Clients could read a token file in the folder of `--root` like any other file.
    let inside = ["--root", dir.path().to_str().unwrap(), "--token-file", token];
    assert!(start_refused(&inside).contains("every client can read"));
    assert!(start_refused(&["--max-message", "1MB"]).contains("--max-message"));
    assert!(start_refused(&["--max-queries", "0"]).contains("--max-queries"));
    assert!(start_refused(&["--table", "t"]).contains("NAME=PATH"));
    assert!(start_refused(&["--table", "t=nothing.nrt"]).contains("nothing.nrt"));
}

/// Statements that take a path, with `{}` in place of the path.
const PATHS: &[&str] = &[
    "SELECT * FROM '{}'",
    "FROM '{}'",
    "FROM read_csv('{}')",
    "FROM read_parquet('{}')",
    "FROM read_json('{}')",
    "FROM read_ndjson('{}')",
    "FROM read_arrow('{}')",
    "FROM read_nrt('{}')",
    "FROM read_csv(['a.csv', '{}'])",
    "FROM read_parquet(['{}'])",
    "FROM 'file://{}'",
    "SUMMARIZE '{}'",
    "FROM meds('{}')",
    "FROM meds_asof('{}', '{}')",
    "FROM meds_cohort('{}', '{}')",
    "FROM meds_features('{}', '{}')",
    "FROM vocab('{}')",
    "FROM ragged_nest('{}', 'x')",
    "FROM ragged_explode('{}')",
    "FROM ragged_axes('{}')",
    "SELECT ragged_lookup([1], '{}', 'k', 'v')",
    "SELECT ragged_bin([1.0], ['a'], '{}')",
    "SELECT ragged_encode(['a'], '{}')",
    "SELECT ragged_decode([1], '{}')",
    "SELECT descendants('a', '{}')",
    "SELECT dok_get('{}', 1, 1)",
    "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{}'",
    "CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{}'",
    "CREATE EXTERNAL TABLE e STORED AS NRT LOCATION '{}'",
    "CREATE EXTERNAL TABLE e STORED AS JSON LOCATION '{}'",
    "CREATE EXTERNAL TABLE e STORED AS ARROW LOCATION '{}'",
    "CREATE EXTERNAL TABLE e STORED AS DOK LOCATION '{}'",
    "CREATE VIEW v AS SELECT * FROM '{}'",
    "CREATE TABLE c AS SELECT * FROM '{}'",
    "COPY (SELECT 1 AS x) TO '{}.csv'",
    "COPY (SELECT 1 AS x) TO '{}.nrt'",
    "COPY (SELECT 1 AS x) TO '{}.parquet'",
    "COPY (SELECT [1] AS x) TO '{}.safetensors'",
    "COPY (SELECT 1 AS x) TO '{}.nrt' STORED AS NRT",
    "COPY (SELECT 1 AS x) TO '{}.json' STORED AS JSON",
    "COPY (SELECT 1 AS x) TO '{}.arrow' STORED AS ARROW",
    "COPY (SELECT 1 AS i, 2.0 AS v) TO '{}.safetensors' STORED AS DOK OPTIONS (keys 'i')",
    "COPY (SELECT [1.0] AS x) TO '{}.d' STORED AS BATCHES OPTIONS (batch 1)",
    "COPY (SELECT 1 AS x, 2 AS k) TO '{}.d/' STORED AS PARQUET PARTITIONED BY (k)",
    "EXPLAIN SELECT * FROM '{}'",
    "PREPARE p AS SELECT * FROM '{}'",
];

#[tokio::test]
async fn statements_refuse_paths_outside_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("in");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.csv"), "x\n1\n").unwrap();
    std::fs::write(dir.path().join("outside.csv"), "x\n1\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.join("link.csv")).unwrap();
    let server = ServerProcess::start_in(&root, &["--root", "."]);
    let mut client = server.connect().await;
    assert_eq!(query_number(&mut client, "SELECT count(*) FROM 'a.csv'").await, 1);
    let outside = dir.path().join("outside.csv");
    for path in ["/etc/passwd", "../outside.csv", "link.csv", outside.to_str().unwrap()] {
        for statement in PATHS {
            let sql = statement.replace("{}", path);
            // COPY writes to `link.csv.nrt`, which is a new file in the folder and not the link.
            if path == "link.csv" && sql.starts_with("COPY") {
                continue;
            }
            if sql.contains("file://") && !path.starts_with('/') {
                continue;
            }
            let (code, said) = query_refusal(&mut client, &sql).await;
            let outside = said.contains("outside the folder") && said.contains("--root");
            assert!(outside, "{sql}: {code} {said}");
            assert_eq!(code, Code::PermissionDenied, "{sql}: {said}");
            let update = client.execute_update(sql.clone(), None).await;
            assert_eq!(status_of(update.unwrap_err()).code(), Code::PermissionDenied, "{sql}");
        }
        // The message may be that only the server can change this setting.
        let sql = format!("SET datafusion.runtime.temp_directory = '{path}'");
        assert_eq!(query_refusal(&mut client, &sql).await.0, Code::PermissionDenied, "{sql}");
        let update = client.execute_update(sql.clone(), None).await;
        assert_eq!(status_of(update.unwrap_err()).code(), Code::PermissionDenied, "{sql}");
    }
    let (_, said) = query_refusal(&mut client, "FROM 'https://example.com/x.csv'").await;
    assert!(said.contains("--root"), "{said}");
    // No file was created, neither in the folder nor outside.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 2);
}

#[tokio::test]
async fn a_read_only_server_writes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.csv"), "x\n1\n").unwrap();
    let server = ServerProcess::start_in(dir.path(), &["--read-only"]);
    let mut client = server.connect().await;
    for statement in [
        "COPY (SELECT 1 AS x) TO 'b.csv'",
        "COPY (SELECT 1 AS x) TO 'b.nrt'",
        "CREATE EXTERNAL TABLE d (i BIGINT, v DOUBLE) STORED AS DOK LOCATION 'd.safetensors' OPTIONS (shape '[10]')",
    ] {
        let (code, said) = query_refusal(&mut client, statement).await;
        assert!(
            code == Code::PermissionDenied && said.contains("--read-only"),
            "{statement}: {code} {said}"
        );
    }
    // Tables in memory belong to the session and can change.
    show_setting(&mut client, "CREATE TABLE t AS SELECT * FROM 'a.csv'").await;
    assert_eq!(client.execute_update("INSERT INTO t VALUES (2)".into(), None).await.unwrap(), 1);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn clients_cannot_change_settings_of_the_server() {
    let server = ServerProcess::start(&["--memory-limit", "500MB"]);
    let mut client = server.connect().await;
    for statement in [
        "SET serrate.memory_limit = '1MB'",
        "SET datafusion.runtime.memory_limit = '100MB'",
        "RESET serrate.memory_limit",
        "SET datafusion.runtime.temp_directory = '/tmp'",
        "RESET datafusion.runtime.memory_limit",
    ] {
        let (code, said) = query_refusal(&mut client, statement).await;
        assert!(code == Code::PermissionDenied && said.contains("server"), "{statement}: {said}");
        let update = client.execute_update(statement.into(), None).await.unwrap_err();
        assert_eq!(status_of(update).code(), Code::PermissionDenied, "{statement}");
    }
    for statement in [
        "SET datafusion.execution.target_partitions = 1000000",
        "SET datafusion.execution.batch_size = 100000000",
        "SET serrate.max_dense_bytes = '100GB'",
    ] {
        assert!(query_refusal(&mut client, statement).await.1.contains("at most"), "{statement}");
    }
    show_setting(&mut client, "SET serrate.max_dense_bytes = '1GB'").await;
    let limit = server.metric("memory_limit_bytes");
    assert_eq!(limit, 500_000_000);
}

#[tokio::test]
async fn malformed_requests_are_refused() {
    let server = ServerProcess::start(&[]);
    let mut client = server.connect().await;
    let garbage: [&[u8]; 4] = [b"", b"\xff\xff\xff\xff", b"\x0a\x03abc", &[0x0a; 300]];
    for bytes in garbage {
        let descriptor = arrow_flight::FlightDescriptor::new_cmd(bytes.to_vec());
        let inner = client.inner_mut();
        inner.get_flight_info(descriptor.clone()).await.unwrap_err();
        inner.get_schema(descriptor).await.unwrap_err();
        inner.do_get(arrow_flight::Ticket::new(bytes.to_vec())).await.unwrap_err();
        for name in ["CreatePreparedStatement", "CancelFlightInfo", "CancelQuery", "Nothing"] {
            let action = arrow_flight::Action::new(name, bytes.to_vec());
            let answer = inner.do_action(action).await;
            // An empty request of CancelFlightInfo is an error, because it does not name a query.
            assert!(answer.is_err(), "{name} {bytes:?}");
        }
        let message = arrow_flight::FlightData::new()
            .with_descriptor(arrow_flight::FlightDescriptor::new_cmd(bytes.to_vec()))
            .with_data_header(bytes.to_vec());
        inner.do_put(futures::stream::iter([message])).await.unwrap_err();
    }
    let long = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    for sql in ["", ";", "SELECT 'open", "\u{0}", "SELECT * FROM", long.as_str()] {
        assert_eq!(query_refusal(&mut client, sql).await.0, Code::InvalidArgument, "{sql:.20}");
    }
    assert_eq!(query_number(&mut client, "SELECT 1").await, 1);
}
