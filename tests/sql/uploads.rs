//! COPY to an object of an object store: the object appears whole or not at all.

use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::memory::InMemory;
use object_store::path::Path as Location;
use object_store::{ObjectStore, ObjectStoreExt};

use super::*;

async fn create_bucket() -> (SessionContext, Arc<InMemory>) {
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(4));
    let store = Arc::new(InMemory::new());
    let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
    let url = ObjectStoreUrl::parse("mem://bucket").unwrap();
    ctx.register_object_store(url.as_ref(), shared);
    (ctx, store)
}

async fn is_there(store: &InMemory, name: &str) -> bool {
    store.head(&Location::from(name)).await.is_ok()
}

/// A query of 1000 rows with an id and a list.
const ROWS: &str = "SELECT value AS id, [value, value + 1] AS x FROM generate_series(0, 999)";

#[tokio::test]
async fn each_format_is_written_to_an_object_and_read_back() {
    let (ctx, store) = create_bucket().await;
    for format in ["nrt", "parquet", "json", "ndjson", "arrow"] {
        let file = format!("mem://bucket/sub/t.{format}");
        let copied = rows_or_error(&ctx, &format!("COPY ({ROWS}) TO '{file}'")).await;
        assert_eq!(copied, "1000", "{format}");
        let sql = format!("SELECT count(*), sum(id), sum(ragged_sum(x)) FROM '{file}'");
        assert_eq!(rows_or_error(&ctx, &sql).await, "1000 499500 1000000", "{format}");
        let sql = format!("SELECT id, x FROM '{file}' LIMIT 2 OFFSET 7");
        assert_eq!(rows_or_error(&ctx, &sql).await, "7 [7, 8]; 8 [8, 9]", "{format}");
    }
    let (sql, file) = ("SELECT 1 AS a, 'x,y' AS b", "mem://bucket/t.csv");
    assert_eq!(rows_or_error(&ctx, &format!("COPY ({sql}) TO '{file}'")).await, "1");
    assert_eq!(rows_or_error(&ctx, &format!("SELECT a, b FROM '{file}'")).await, "1 x,y");
    for (copy, name) in [
        ("COPY (SELECT 1 AS id, 2.5 AS v) TO 'mem://bucket/d.safetensors'", "d.safetensors"),
        (
            "COPY (SELECT 1 AS i, 2 AS j, 0.5 AS v) TO 'mem://bucket/m.safetensors' STORED AS DOK OPTIONS (shape '3, 3')",
            "m.safetensors",
        ),
        ("COPY (SELECT 1 AS id, [2] AS x) TO 'mem://bucket/plain' STORED AS NRT", "plain"),
    ] {
        assert_eq!(rows_or_error(&ctx, copy).await, "1", "{copy}");
        assert!(is_there(&store, name).await, "{name}");
    }
}

#[tokio::test]
async fn an_object_is_replaced_only_on_request() {
    let (ctx, _) = create_bucket().await;
    for format in ["nrt", "parquet", "csv", "json", "arrow"] {
        let copy = |n: i64, options: &str| {
            format!("COPY (SELECT {n} AS id) TO 'mem://bucket/t.{format}' {options}")
        };
        let read = format!("SELECT id FROM 'mem://bucket/t.{format}'");
        assert_eq!(rows_or_error(&ctx, &copy(1, "")).await, "1", "{format}");
        let refused = rows_or_error(&ctx, &copy(2, "")).await;
        assert!(refused.contains("already exists"), "{format}: {refused}");
        assert!(refused.contains(&format!("mem://bucket/t.{format}")), "{refused}");
        assert_eq!(rows_or_error(&ctx, &read).await, "1", "{format}");
        let replaced = rows_or_error(&ctx, &copy(3, "OPTIONS (overwrite true)")).await;
        assert_eq!(replaced, "1", "{format}");
        assert_eq!(rows_or_error(&ctx, &read).await, "3", "{format}");
    }
}

#[tokio::test]
async fn a_failed_query_writes_no_object() {
    let (ctx, store) = create_bucket().await;
    for format in ["nrt", "parquet", "csv", "json", "arrow"] {
        let copy = format!(
            "COPY (SELECT value AS id, 10 / (value - 900000) AS q FROM generate_series(0, 1000000)) TO 'mem://bucket/t.{format}'"
        );
        let failed = rows_or_error(&ctx, &copy).await;
        assert!(failed.contains("by zero"), "{format}: {failed}");
        assert!(!is_there(&store, &format!("t.{format}")).await, "{format}");
    }
}

#[tokio::test]
async fn a_large_object_is_sent_in_parts() {
    let (ctx, store) = create_bucket().await;
    let rows = "SELECT value AS id, value * 7 AS y FROM generate_series(1, 1500000)";
    let copied = rows_or_error(&ctx, &format!("COPY ({rows}) TO 'mem://bucket/t.nrt'")).await;
    assert_eq!(copied, "1500000");
    let size = store.head(&Location::from("t.nrt")).await.unwrap().size;
    assert!(size > 20 << 20, "{size}");
    let sql = "SELECT count(*), sum(id), sum(y) FROM 'mem://bucket/t.nrt'";
    assert_eq!(rows_or_error(&ctx, sql).await, "1500000 1125000750000 7875005250000");
}

#[tokio::test]
async fn glob_patterns_match_objects() {
    let (ctx, _) = create_bucket().await;
    for (name, n) in [("d/2.nrt", 2), ("d/10.nrt", 10), ("d/sub/3.nrt", 3)] {
        let copy = format!("COPY (SELECT {n} AS id) TO 'mem://bucket/{name}'");
        assert_eq!(rows_or_error(&ctx, &copy).await, "1");
    }
    for (path, ids) in [("d/*.nrt", "2; 10"), ("d/**/*.nrt", "2; 10; 3"), ("d/1*.nrt", "10")] {
        let sql = format!("SELECT id FROM 'mem://bucket/{path}'");
        assert_eq!(rows_or_error(&ctx, &sql).await, ids, "{path}");
    }
    let none = rows_or_error(&ctx, "SELECT id FROM 'mem://bucket/d/x*.nrt'").await;
    assert!(none.contains("no file matches the pattern"), "{none}");
}

#[tokio::test]
async fn explain_writes_no_object() {
    let (ctx, store) = create_bucket().await;
    let copy = "COPY (SELECT 1 AS id) TO 'mem://bucket/t.nrt'";
    let plan = rows_or_error(&ctx, &format!("EXPLAIN {copy}")).await;
    assert!(plan.contains("NrtSink"), "{plan}");
    let refused = rows_or_error(&ctx, &format!("EXPLAIN ANALYZE {copy}")).await;
    assert!(refused.contains("EXPLAIN ANALYZE of COPY to mem://bucket/t.nrt"), "{refused}");
    assert!(!is_there(&store, "t.nrt").await);
    let refused = rows_or_error(
        &ctx,
        "COPY (SELECT 1 AS id, [2] AS x) TO 'mem://bucket/b' STORED AS BATCHES (batch 1, len 1)",
    )
    .await;
    assert!(refused.contains("writes a local folder"), "{refused}");
}
