//! Statements do not replace files, change rows or lose values unless they say so.

use serrate::table::Column;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_replaces_no_file_without_overwrite() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for extension in ["csv", "json", "arrow", "nrt", "safetensors"] {
        let path = dir.path().join(format!("x.{extension}"));
        let copy = format!("COPY (SELECT 1 AS a) TO '{}'", path.display());
        query_batches(&ctx, &copy).await.unwrap();
        let before = std::fs::read(&path).unwrap();
        let again = format!("COPY (SELECT 2 AS a) TO '{}'", path.display());
        let e = query_batches(&ctx, &again).await.unwrap_err().strip_backtrace();
        assert!(e.contains("overwrite true"), "{extension}: {e}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{extension}");
        query_batches(&ctx, &format!("{again} OPTIONS (overwrite true)")).await.unwrap();
        assert_ne!(std::fs::read(&path).unwrap(), before, "{extension}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_of_a_change_changes_nothing() {
    let ctx = create_parallel_session();
    query_batches(&ctx, "CREATE TABLE t AS SELECT 1 AS i UNION ALL SELECT 2").await.unwrap();
    for sql in [
        "EXPLAIN DELETE FROM t WHERE i = 1",
        "EXPLAIN ANALYZE DELETE FROM t WHERE i = 1",
        "EXPLAIN ANALYZE DELETE FROM t WHERE i IN (SELECT 1)",
    ] {
        assert!(query_batches(&ctx, sql).await.is_err(), "{sql}");
        assert_eq!(query_int(&ctx, "SELECT count(*) FROM t").await, 2, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_wider_than_the_table_type_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let table = |values: ArrayRef| {
        RaggedTable::builder().lengths([1]).unwrap().push(Column::new("code", 1, values)).build()
    };
    let narrow = Arc::new(datafusion::arrow::array::UInt8Array::from(vec![7]));
    let wide = Arc::new(datafusion::arrow::array::UInt16Array::from(vec![700]));
    write_table(&dir.path().join("0.nrt"), &table(narrow).unwrap());
    let ctx = create_parallel_session();
    let sql = format!("CREATE EXTERNAL TABLE t STORED AS NRT LOCATION '{}/'", dir.path().display());
    query_batches(&ctx, &sql).await.unwrap();
    write_table(&dir.path().join("1.nrt"), &table(wide).unwrap());
    let seen = query_batches(&ctx, "SELECT code FROM t").await;
    match seen {
        Err(e) => assert!(e.to_string().contains("700"), "{e}"),
        // The session may have cached the list of files when the table was created.
        Ok(batches) => assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_are_in_the_order_of_their_numbers() {
    let dir = tempfile::tempdir().unwrap();
    for shard in [0, 1, 2, 10, 11] {
        write_table(
            &dir.path().join(format!("in/{shard}.nrt")),
            &make_numbered_table(shard * 100, 3),
        );
    }
    let out = dir.path().join("out.nrt");
    let ctx = create_parallel_session();
    let from = format!("'{}/in/'", dir.path().display());
    query_batches(&ctx, &format!("COPY (SELECT id FROM {from}) TO '{}'", out.display()))
        .await
        .unwrap();
    let table =
        serrate::io::nrt::NrtFile::open(&out, &Default::default()).unwrap().table().unwrap();
    let ids = table.column("id").unwrap().values().as_primitive::<Int64Type>().values().to_vec();
    let expected: Vec<i64> = [0, 1, 2, 10, 11].iter().flat_map(|s| s * 100..s * 100 + 3).collect();
    assert_eq!(ids, expected);
    assert_eq!(query_ints(&ctx, &format!("SELECT id FROM {from} LIMIT 10")).await, expected[..10]);
    let mut rest = query_ints(&ctx, &format!("SELECT id FROM {from} OFFSET 10")).await;
    rest.sort_unstable();
    assert_eq!(rest, expected[10..]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zeros_of_both_signs_are_equal_in_lists() {
    let ctx = create_parallel_session();
    let shown = query_text(
        &ctx,
        "SELECT x == 0.0 AS eq, x < 0.0 AS lt, x >= 0.0 AS ge, ragged_eq(x, y) AS both
         FROM (VALUES ([arrow_cast('-0.0', 'Float64'), 1.0], [0.0, 1.0])) AS t(x, y)",
    )
    .await;
    assert!(
        shown.contains("[true, false] | [false, false] | [true, true] | [true, true]"),
        "{shown}"
    );
}
