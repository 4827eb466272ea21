//! Object stores: runs the command with `s3://` URLs against a local server that implements a part
//! of S3's protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "cloud/server.rs"]
mod server;

use std::process::Command;

use server::Server;

struct Said {
    ok: bool,
    out: String,
    err: String,
}

/// Runs a statement with the server's credentials in the environment variables.
fn run_statement(server: &Server, sql: &str) -> Said {
    run_as(server, server::KEY, &[], sql)
}

fn run_as(server: &Server, key: &str, options: &[&str], sql: &str) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_serrate"));
    for (name, _) in std::env::vars() {
        if name.starts_with("AWS_") || name.to_lowercase().ends_with("_proxy") {
            command.env_remove(name);
        }
    }
    let done = command
        .env("AWS_ACCESS_KEY_ID", key)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ENDPOINT", server.url())
        .env("AWS_ALLOW_HTTP", "true")
        .args(options)
        .args(["-f", "csv", "-c", sql])
        .output()
        .unwrap();
    Said {
        ok: done.status.success(),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

const SECRET: &str = "not-to-be-shown";

#[track_caller]
fn expect_rows(said: &Said, rows: &str) {
    assert!(said.ok, "{}", said.err);
    let found: Vec<&str> = said.out.lines().skip(1).collect();
    assert_eq!(found.join("; "), rows, "{}", said.err);
}

#[track_caller]
fn expect_error(said: &Said, parts: &[&str]) {
    assert!(!said.ok, "{}", said.out);
    for part in parts {
        assert!(said.err.contains(part), "{part}\n{}", said.err);
    }
    assert!(!said.err.contains(SECRET), "{}", said.err);
    assert!(!said.err.contains("<Error>"), "{}", said.err);
}

/// Returns the bytes of the file `name` that COPY writes with the rows of `query`.
fn file_of(query: &str, name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let sql = format!("COPY ({query}) TO '{}'", path.display());
    let done = Command::new(env!("CARGO_BIN_EXE_serrate")).args(["-c", &sql]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(path).unwrap()
}

const ROWS: &str = "SELECT value AS id, [value, value + 1] AS x FROM generate_series(0, 19999)";

#[test]
fn files_of_all_formats_are_read() {
    let server = Server::start();
    for name in ["t.nrt", "t.parquet", "t.json", "t.arrow"] {
        server.put_object(&format!("bucket/data/{name}"), file_of(ROWS, name));
        let from = format!("'s3://bucket/data/{name}'");
        let said =
            run_statement(&server, &format!("SELECT count(*), sum(ragged_sum(x)) FROM {from}"));
        expect_rows(&said, "20000,400000000");
    }
    server.put_object("bucket/data/t.csv", b"a,b\n1,x\n2,y\n".to_vec());
    expect_rows(&run_statement(&server, "SELECT a, b FROM 's3://bucket/data/t.csv'"), "1,x; 2,y");
    expect_rows(&run_statement(&server, "SELECT count(*) FROM 's3://bucket/data/*.nrt'"), "20000");
    expect_rows(
        &run_statement(&server, "SELECT count(*) FROM read_parquet('s3://bucket/data/t.parquet')"),
        "20000",
    );
    let http = format!("SELECT count(*) FROM '{}/bucket/data/t.nrt'", server.url());
    server.set_open(true);
    expect_rows(&run_statement(&server, &http), "20000");
}

#[test]
fn a_query_of_one_row_reads_the_header_its_offsets_and_its_values() {
    let server = Server::start();
    let file = file_of(ROWS, "t.nrt");
    assert!(file.len() > 400_000);
    server.put_object("bucket/t.nrt", file);
    server.take_bytes();
    expect_rows(
        &run_statement(&server, "SELECT id FROM 's3://bucket/t.nrt' WHERE _row = 12345"),
        "12345",
    );
    // The first 16 KiB, which contain the header, and the 8 bytes of the id.
    let bytes = server.take_bytes();
    assert!(bytes <= (16 << 10) + 8, "{bytes}");
    let said =
        run_statement(&server, "SELECT ragged_sum(x) FROM 's3://bucket/t.nrt' WHERE _row = 12345");
    expect_rows(&said, "24691");
    // Two offsets and two values.
    let bytes = server.take_bytes();
    assert!(bytes <= (16 << 10) + 16 + 16, "{bytes}");
}

#[test]
fn copy_writes_a_complete_object_or_none() {
    let server = Server::start();
    for name in ["t.nrt", "t.parquet", "t.csv", "t.json", "t.safetensors"] {
        let copy = format!("COPY (SELECT 1 AS id, 2.5 AS v) TO 's3://bucket/out/{name}'");
        assert!(run_statement(&server, &copy).ok, "{name}");
        assert!(server.get_object(&format!("bucket/out/{name}")).is_some(), "{name}");
        expect_error(&run_statement(&server, &copy), &["already exists"]);
    }
    let large = "COPY (SELECT value AS id FROM generate_series(1, 2500000)) TO 's3://bucket/l.nrt'";
    assert!(run_statement(&server, large).ok);
    expect_rows(
        &run_statement(&server, "SELECT sum(id) FROM 's3://bucket/l.nrt'"),
        "3125001250000",
    );
    let failing = "COPY (SELECT 10 / (value - 900000) AS q FROM generate_series(1, 1000000)) TO 's3://bucket/f.csv'";
    expect_error(&run_statement(&server, failing), &["by zero"]);
    assert!(server.get_object("bucket/f.csv").is_none());
    let none = run_as(
        &server,
        server::KEY,
        &["--read-only"],
        "COPY (SELECT 1 AS a) TO 's3://bucket/r.csv'",
    );
    expect_error(&none, &["--read-only"]);
    assert!(server.get_object("bucket/r.csv").is_none());
}

#[test]
fn an_upload_with_a_failed_part_is_aborted() {
    let server = Server::start();
    // The object has 20 MB, which are uploaded in three parts.
    let copy = "COPY (SELECT value AS id FROM generate_series(1, 2500000)) TO 's3://bucket/l.nrt'";
    for part in [1, 3] {
        server.refuse_part(part);
        expect_error(&run_statement(&server, copy), &["too many (503"]);
        assert!(server.get_object("bucket/l.nrt").is_none());
        assert_eq!(server.count_uploads(), 0, "{part}");
    }
}

#[test]
fn options_override_the_environment_and_are_not_printed() {
    let server = Server::start();
    server.put_object("bucket/t.nrt", file_of("SELECT 7 AS id", "t.nrt"));
    let options = |key: &str| {
        format!(
            "'aws.access_key_id' '{key}', 'aws.secret_access_key' '{SECRET}', 'aws.region' 'us-east-1', 'aws.endpoint' '{}', 'aws.allow_http' 'true'",
            server.url()
        )
    };
    let create = |key: &str| {
        format!(
            "CREATE EXTERNAL TABLE t STORED AS NRT LOCATION 's3://bucket/t.nrt' OPTIONS ({})",
            options(key)
        )
    };
    // The environment has a wrong key, but the options of the statement take precedence.
    let sql = format!("{}; SELECT id FROM t", create(server::KEY));
    let said = run_as(&server, "WRONG", &[], &sql);
    assert!(said.ok && said.out.contains('7'), "{}", said.err);
    let copy =
        format!("COPY (SELECT 1 AS id) TO 's3://bucket/c.nrt' OPTIONS ({})", options(server::KEY));
    let said = run_as(&server, "WRONG", &[], &format!("EXPLAIN {copy}; {copy}; SHOW ALL"));
    assert!(said.ok, "{}", said.err);
    assert!(!said.out.contains(SECRET) && !said.out.contains(server::KEY), "{}", said.out);
    assert!(server.get_object("bucket/c.nrt").is_some());
    let said = run_statement(&server, &create("WRONG"));
    expect_error(&said, &["the store refuses access", "403", "AWS_ACCESS_KEY_ID"]);
    let other =
        create(server::KEY).replace("us-east-1", "eu-north-1").replace("TABLE t", "TABLE u");
    let said = run_statement(&server, &format!("{}; {other}", create(server::KEY)));
    expect_error(&said, &["already open in this session with other options"]);
    let wrong = create(server::KEY).replace("aws.region", "aws.rejion");
    expect_error(&run_statement(&server, &wrong), &["the option aws.rejion is unknown"]);
    let twice = create(server::KEY).replace("'aws.region'", "'aws.aws_region' 'a', 'aws.region'");
    expect_error(&run_statement(&server, &twice), &["the option aws.region is given twice"]);
    let wrong = create(server::KEY).replace("aws.region", "gcp.region");
    expect_error(&run_statement(&server, &wrong), &["does not apply to s3:// URLs"]);
}

#[test]
fn errors_name_the_cause_and_requests_are_retried() {
    let server = Server::start();
    server.put_object("bucket/t.nrt", file_of("SELECT 7 AS id", "t.nrt"));
    let read = "SELECT id FROM 's3://bucket/t.nrt'";
    expect_error(&run_as(&server, "WRONG", &[], read), &["the store refuses access", "403"]);
    expect_error(
        &run_statement(&server, "SELECT id FROM 's3://bucket/none.nrt'"),
        &["does not exist"],
    );
    expect_error(
        &run_statement(&server, "SELECT id FROM 's3://nowhere/t.nrt'"),
        &["s3://nowhere: the bucket does not exist"],
    );
    expect_error(
        &run_statement(&server, "SELECT id FROM 's3://user:pw@bucket/t.nrt'"),
        &["has a user or password"],
    );
    expect_error(
        &run_statement(&server, "SELECT id FROM 's3://bucket/t.nrt?x=1'"),
        &["after ? or #"],
    );
    expect_error(
        &run_as(&server, server::KEY, &["--root", "/tmp"], read),
        &["object stores cannot be read"],
    );
    // Requests are repeated after a few answers 503 and after a few closed connections.
    server.refuse_next(2);
    expect_rows(&run_statement(&server, read), "7");
    server.break_next(1);
    expect_rows(&run_statement(&server, read), "7");
    server.refuse_next(1_000);
    expect_error(
        &run_statement(&server, read),
        &["too many (503", "run the statement again later"],
    );
    server.refuse_next(0);
    server.break_next(1_000);
    expect_error(&run_statement(&server, read), &["check the endpoint and the network"]);
}

#[test]
fn large_objects_are_copied_in_ranges() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codes.parquet").display().to_string();
    let copy = format!(
        "COPY (SELECT 'code ' || value AS code, repeat('x', 1000) || value AS description \
         FROM generate_series(1, 20000) AS t(value)) TO '{path}' OPTIONS (compression 'uncompressed')"
    );
    assert!(run_statement(&server, &copy).ok);
    let bytes = std::fs::read(&path).unwrap();
    let (range, end) = (16 << 20, bytes.len());
    assert!(range < end && end < 2 * range, "{end} bytes");
    server.put_object("bucket/codes.parquet", bytes);
    let query = "SELECT ragged_encode(['code 7', 'code 20000'], 'PATH') AS c";
    let local = run_statement(&server, &query.replace("PATH", &path));
    let query = query.replace("PATH", "s3://bucket/codes.parquet");
    let remote = run_statement(&server, &query);
    assert!(local.ok && remote.ok, "{}\n{}", local.err, remote.err);
    assert_eq!(local.out, remote.out);
    assert_eq!(server.take_ranges(), [(0, range - 1), (range, end - 1)]);
    // A copy whose ranges come from two versions of the object would be corrupt, so it is an error.
    server.change_after_ranges(true);
    expect_error(&run_statement(&server, &query), &["codes.parquet changed while it was copied"]);
}

#[test]
fn functions_that_take_paths_read_objects() {
    let server = Server::start();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/synthea-meds");
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            server.put_object(&format!("bucket/meds/{name}"), std::fs::read(&path).unwrap());
        }
    }
    let root = root.display().to_string();
    for query in [
        "SELECT count(*), sum(ragged_count(code)) FROM meds('ROOT')",
        "SELECT count(*) FROM meds_asof('ROOT', 'ROOT/labels')",
        "SELECT count(*), min(code) FROM vocab('ROOT')",
        "SELECT ragged_lookup([code], 'ROOT', 'code', 'code/n_subjects') AS n FROM vocab('ROOT') ORDER BY token LIMIT 3",
        "SELECT ragged_decode(ragged_encode([code], 'ROOT'), 'ROOT/metadata/codes.parquet') AS c FROM vocab('ROOT') ORDER BY token LIMIT 3",
    ] {
        let local = run_statement(&server, &query.replace("ROOT", &root));
        let remote = run_statement(&server, &query.replace("ROOT", "s3://bucket/meds"));
        assert!(local.ok && remote.ok, "{query}\n{}\n{}", local.err, remote.err);
        assert_eq!(local.out, remote.out, "{query}");
    }
    let missing = run_statement(&server, "SELECT * FROM meds('s3://bucket/none')");
    expect_error(&missing, &["s3://bucket/none: there is no object of this name"]);
    server.put_object("bucket/bad/data/0.parquet", b"no parquet".to_vec());
    let bad = run_statement(&server, "SELECT * FROM meds('s3://bucket/bad')");
    expect_error(&bad, &["s3://bucket/bad/data/0.parquet: "]);
    assert!(!bad.err.contains(".serrate-"), "{}", bad.err);
}
