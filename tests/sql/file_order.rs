//! The order of rows of files: WITH ORDER, and the order in which the files of a folder are read.

use datafusion::parquet::arrow::ArrowWriter;

use super::*;

/// Returns a folder of two files, each of which is sorted by `x` with NULL last.
fn sorted_files() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, values) in [("1", [Some(1), None, None]), ("2", [Some(2), Some(3), None])] {
        let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
        let file = std::fs::File::create(dir.path().join(format!("{name}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
    dir
}

const CLAIMED: [(&str, &str); 5] = [
    ("SELECT DISTINCT x FROM t ORDER BY x", "1; 2; 3; NULL"),
    ("SELECT x, count(*) FROM t GROUP BY x ORDER BY x", "1 1; 2 1; 3 1; NULL 3"),
    ("SELECT x FROM t ORDER BY x LIMIT 2", "1; 2"),
    ("SELECT x FROM t ORDER BY x DESC NULLS LAST LIMIT 2", "3; 2"),
    ("SELECT array_agg(x ORDER BY x) FROM t", "[1, 2, 3, , , ]"),
];

#[tokio::test]
async fn sorted_files_with_null_are_not_concatenated_as_sorted() {
    let dir = sorted_files();
    for partitions in [1, 2] {
        let ctx =
            serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
        let create = format!(
            "CREATE EXTERNAL TABLE t STORED AS PARQUET WITH ORDER (x) LOCATION '{}/'",
            display_path(dir.path())
        );
        query_batches(&ctx, &create).await.unwrap();
        for (sql, expected) in CLAIMED {
            assert_eq!(rows_or_error(&ctx, sql).await, expected, "{partitions} {sql}");
        }
    }
}

/// When this test fails, `remove_bounds_of_null` of `sql::sources::listing` can be removed.
#[tokio::test]
async fn stock_sorted_files_with_null_are_still_one_stream() {
    let dir = sorted_files();
    let stock = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS PARQUET WITH ORDER (x) LOCATION '{}/'",
        display_path(dir.path())
    );
    stock_batches(&stock, &create).await.unwrap();
    assert_eq!(rows_or_error(&stock, "SELECT x FROM t ORDER BY x LIMIT 2").await, "1; NULL");
}

/// Writes the files `8`, `9`, `10` and `11` of a format, with the ids 0 to 29 in the order of these
/// numbers.
async fn write_numbered(ctx: &SessionContext, dir: &Path, extension: &str) {
    for (name, from, to) in [(8, 0, 7), (9, 7, 7), (10, 7, 20), (11, 20, 30)] {
        let path = display_path(&dir.join(format!("{name}.{extension}")));
        let rows = format!("SELECT value AS id, value % 5 AS g FROM range({from}, {to})");
        query_batches(ctx, &format!("COPY ({rows}) TO '{path}'")).await.unwrap();
    }
}

fn session_of(partitions: usize, batch: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch);
    serrate::sql::session_with(config)
}

#[tokio::test]
async fn files_are_read_in_the_order_of_their_numbers() {
    for extension in ["nrt", "parquet", "csv", "arrow"] {
        let dir = tempfile::tempdir().unwrap();
        let at = display_path(dir.path());
        write_numbered(&create_parallel_session(), dir.path(), extension).await;
        for partitions in [1, 2, 3] {
            let ctx = session_of(partitions, 8192);
            for from in [format!("'{at}/'"), format!("'{at}/*.{extension}'")] {
                let sql = format!("SELECT id FROM {from} WHERE id > 0 LIMIT 9");
                assert_eq!(query_ints(&ctx, &sql).await, [1, 2, 3, 4, 5, 6, 7, 8, 9], "{sql}");
            }
        }
        let ctx = session_of(1, 8192);
        let all: Vec<i64> = (0..30).collect();
        assert_eq!(query_ints(&ctx, &format!("SELECT id FROM '{at}/'")).await, all);
        let sql = format!("SELECT unnest(array_agg(id)) FROM '{at}/'");
        assert_eq!(query_ints(&ctx, &sql).await, all);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nested_rows_keep_the_order_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    write_numbered(&create_parallel_session(), dir.path(), "parquet").await;
    let files = format!("SELECT g AS k, id AS x FROM '{at}/'");
    let range = "SELECT x % 5 AS k, x FROM range(30) t(x)";
    for (partitions, batch) in [(1, 8192), (3, 1), (4, 7)] {
        let ctx = session_of(partitions, batch);
        for inner in [
            files.clone(),
            format!("{files} WHERE id >= 0"),
            format!("{files} LIMIT 30"),
            range.into(),
            format!("{range} WHERE x < 10 UNION ALL {range} WHERE x >= 10"),
        ] {
            let sql = format!("SELECT x FROM ragged_nest(({inner}), 'k') ORDER BY k LIMIT 2");
            let expected = "[0, 5, 10, 15, 20, 25]; [1, 6, 11, 16, 21, 26]";
            assert_eq!(rows_or_error(&ctx, &sql).await, expected, "{partitions} {batch} {inner}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn created_tables_keep_the_order_of_their_query() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    write_numbered(&create_parallel_session(), dir.path(), "parquet").await;
    let of_files = [
        format!("SELECT id AS x, g AS k FROM '{at}/'"),
        format!("SELECT id AS x, g AS k FROM '{at}/' WHERE id >= 0"),
    ];
    for (partitions, batch) in [(1, 8192), (3, 1), (4, 7)] {
        let ctx = session_of(partitions, batch);
        for query in [
            of_files[0].as_str(),
            of_files[1].as_str(),
            "SELECT x, x % 5 AS k FROM range(30) t(x) ORDER BY x",
            "SELECT t.x, x % 5 AS k, 1 AS one FROM range(30) t(x) ORDER BY t.x LIMIT 30",
            "SELECT x % 5 AS k, x AS x FROM (SELECT 29 - x AS x, -x AS y FROM range(30) t(x)) t ORDER BY -y DESC",
            "SELECT x, k FROM (SELECT x, x % 5 AS k FROM range(30) t(x)) ORDER BY x + k * 0, k",
            "SELECT x, x % 5 AS k FROM range(15) t(x) UNION ALL SELECT x, x % 5 FROM range(15, 30) t(x) ORDER BY x",
            "SELECT column1 AS x, column1 % 5 AS k FROM (VALUES (3), (1), (0), (2)) UNION ALL SELECT x, x % 5 FROM range(4, 30) t(x) ORDER BY 1",
        ] {
            let declared =
                if query.contains("FROM '") { "(x BIGINT NOT NULL, k BIGINT)" } else { "" };
            for columns in ["", declared] {
                let create = format!("CREATE OR REPLACE TABLE m{columns} AS {query}");
                serrate::sql::sql(&ctx, &create).await.unwrap().collect().await.unwrap();
                let nested =
                    "SELECT x FROM ragged_nest((SELECT k, x FROM m), 'k') ORDER BY k LIMIT 2";
                let expected = "[0, 5, 10, 15, 20, 25]; [1, 6, 11, 16, 21, 26]";
                assert_eq!(
                    rows_or_error(&ctx, nested).await,
                    expected,
                    "{partitions} {batch} {query}"
                );
                assert_eq!(
                    query_ints(&ctx, "SELECT x FROM m LIMIT 4").await,
                    [0, 1, 2, 3],
                    "{query}"
                );
            }
        }
    }
}

/// The rows of a query, and windows without ORDER BY, follow the order of files for any number of
/// partitions.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_are_numbered_and_returned_in_the_order_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    write_numbered(&create_parallel_session(), dir.path(), "parquet").await;
    let all: Vec<i64> = (0..30).collect();
    for (partitions, batch) in [(1, 8192), (3, 1), (4, 7)] {
        let ctx = session_of(partitions, batch);
        let numbered = format!(
            "SELECT sum(abs(n - 1 - id)) FROM (SELECT row_number() OVER () AS n, id FROM '{at}/')"
        );
        assert_eq!(query_ints(&ctx, &numbered).await, [0], "{partitions} {batch}");
        for sql in [
            format!("SELECT id FROM '{at}/'"),
            format!("SELECT id * 1 AS id FROM '{at}/' WHERE g >= 0"),
            "SELECT value + 0 FROM generate_series(0, 29)".to_owned(),
        ] {
            let frame = serrate::sql::sql(&ctx, &sql).await.unwrap();
            let task = Arc::new(frame.task_ctx());
            let plan = frame.create_physical_plan().await.unwrap();
            let plan = serrate::sql::prefer_source_order(plan).unwrap();
            let rows = datafusion::physical_plan::collect(plan, task).await.unwrap();
            let found: Vec<i64> = rows
                .iter()
                .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
                .collect();
            assert_eq!(found, all, "{partitions} {batch} {sql}");
        }
    }
}
