//! Dynamic filters: scans skip rows by filters that aggregates and joins derive while they run.

use datafusion::arrow::array::Float64Array;
use datafusion::parquet::arrow::ArrowWriter;

use super::*;

/// Returns a folder of 40 small Parquet files with the columns `a`, `b` and `f`. The first file has
/// the greatest `b`; the eleventh has the least `a`, and both NaN and a number in `f`.
fn write_files() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..40 {
        let (a, b, f) = if number == 10 { (-7, 1, [f64::NAN, 2.0]) } else { (5, 9, [9.0, 8.0]) };
        let a: ArrayRef = Arc::new(Int64Array::from(vec![a; 2]));
        let b: ArrayRef = Arc::new(Int64Array::from(vec![b; 2]));
        let f: ArrayRef = Arc::new(Float64Array::from_iter_values(f));
        let batch = RecordBatch::try_from_iter([("a", a), ("b", b), ("f", f)]).unwrap();
        let file = std::fs::File::create(dir.path().join(format!("{number:02}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
    dir
}

fn make_config() -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(2)
        .with_batch_size(1)
        .set_bool("datafusion.optimizer.repartition_file_scans", false)
}

fn create_table(dir: &tempfile::TempDir) -> String {
    let at = dir.path().display();
    format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{at}/'")
}

#[tokio::test]
async fn min_and_max_of_several_expressions_read_all_rows() {
    let dir = write_files();
    let ctx = serrate::sql::session_with(make_config());
    query_batches(&ctx, &create_table(&dir)).await.unwrap();
    assert_eq!(query_int(&ctx, "SELECT min(a * 2) FROM t").await, -14);
    assert_eq!(query_int(&ctx, "SELECT min(a * 2), max(b) FROM t").await, -14);
    assert_eq!(query_int(&ctx, "SELECT min(a), max(b) FROM t").await, -7);
    let nan = "SELECT count(*) FROM (SELECT max(f) AS f FROM t) WHERE isnan(f)";
    assert_eq!(query_int(&ctx, nan).await, 1);
    assert_eq!(query_int(&ctx, "SELECT CAST(min(f) AS BIGINT) FROM t").await, 2);
}

/// Returns a folder of two Parquet files with row groups of two rows. The first file has only NULL
/// in `b`, and in `a` where the second file has numbers.
async fn files_with_nulls(ctx: &SessionContext) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let rows = [
        "(1, NULL), (2, NULL), (3, NULL), (4, NULL), (-7, NULL), (2, NULL)",
        "(NULL, 50), (NULL, 60), (NULL, 40), (NULL, 55), (NULL, 1), (NULL, 55)",
    ];
    for (number, rows) in rows.into_iter().enumerate() {
        let at = dir.path().join(format!("{number}.parquet"));
        let query = format!("SELECT a::INT AS a, b::INT AS b FROM (VALUES {rows}) v(a, b)");
        let copy =
            format!("COPY ({query}) TO '{}' OPTIONS (max_row_group_size 2)", display_path(&at));
        query_text(ctx, &copy).await;
    }
    dir
}

#[tokio::test]
async fn min_and_max_of_columns_with_null_read_all_rows() {
    let ctx = serrate::sql::session_with(make_config());
    let dir = files_with_nulls(&ctx).await;
    query_batches(&ctx, &create_table(&dir)).await.unwrap();
    for (query, expected) in [
        ("SELECT min(b), max(b) FROM t", [1, 60]),
        ("SELECT min(a), max(b) FROM t", [-7, 60]),
        ("SELECT max(a), min(b) FROM t", [4, 1]),
        ("SELECT min(a), min(b) FROM t", [-7, 1]),
    ] {
        for column in [0, 1] {
            let sql = format!("SELECT CAST(c{column} AS BIGINT) FROM ({query}) AS q(c0, c1)");
            assert_eq!(query_int(&ctx, &sql).await, expected[column], "{query}");
        }
    }
}

/// When this test fails, `filters_too_much` of `sql::workarounds::guards::guarded_rules` need not
/// test for columns with NULL.
#[tokio::test]
async fn stock_dynamic_filters_of_extremes_still_forget_null() {
    let dir = files_with_nulls(&serrate::sql::session()).await;
    let ctx = SessionContext::new_with_config(make_config());
    stock_batches(&ctx, &create_table(&dir)).await.unwrap();
    let sql = "SELECT CAST(min(b) AS BIGINT) FROM t HAVING max(b) > 0";
    assert_ne!(stock_one(&ctx, sql).await, 1);
}

/// When this test fails, `filters_too_much` of `sql::workarounds::guards::guarded_rules` need not
/// test the arguments of aggregates.
#[tokio::test]
async fn stock_dynamic_filters_of_extremes_still_drop_rows() {
    let dir = write_files();
    let ctx = SessionContext::new_with_config(make_config());
    stock_batches(&ctx, &create_table(&dir)).await.unwrap();
    let query = "SELECT min(a * 2) AS lo, max(b) FROM t";
    let plan = stock_text(&ctx, &format!("EXPLAIN ANALYZE {query}")).await;
    assert_eq!(stock_one(&ctx, query).await, 10, "{plan}");
}

/// A table of eight lists, some with NULL, and a query that joins it with three of these lists. The
/// query sorts the table below the join, so that the dynamic filter of the join applies below the
/// sort.
const JOIN_OF_LISTS: [&str; 2] = [
    "CREATE TABLE l AS SELECT column1 AS id, column2 AS x FROM (VALUES \
     (1, [1]), (2, [NULL, 5]), (3, [5, NULL]), (4, [5]), (5, []), (6, NULL), (7, [NULL]), (8, [2, 3]))",
    "SELECT l.id FROM l JOIN (SELECT [NULL, 5] AS x FROM l \
     UNION ALL SELECT [5, NULL] UNION ALL SELECT [5]) AS r ON l.x = r.x ORDER BY l.x",
];

fn one_partition() -> SessionConfig {
    SessionConfig::new().with_target_partitions(1)
}

async fn count_rows(ctx: &SessionContext, query: &str) -> usize {
    query_batches(ctx, query).await.unwrap().iter().map(RecordBatch::num_rows).sum()
}

#[tokio::test]
async fn joins_by_lists_with_null_keep_their_rows() {
    let [table, query] = JOIN_OF_LISTS;
    let ctx = serrate::sql::session_with(one_partition());
    query_batches(&ctx, table).await.unwrap();
    assert_eq!(count_rows(&ctx, query).await, 10);
    query_batches(&ctx, "CREATE TABLE ll AS SELECT [[1], [2, 3]] AS x FROM l").await.unwrap();
    let equal = "SELECT ll.x FROM ll JOIN (SELECT [[1], [2, 3]] AS x FROM l) AS r ON ll.x = r.x ORDER BY ll.x";
    assert_eq!(count_rows(&ctx, equal).await, 64);
}

/// When this test fails, `filters_too_much` of `sql::workarounds::guards::guarded_rules` need not
/// test for joins.
#[tokio::test]
async fn stock_dynamic_filters_of_lists_still_drop_rows() {
    let [table, query] = JOIN_OF_LISTS;
    let ctx = SessionContext::new_with_config(one_partition());
    stock_batches(&ctx, table).await.unwrap();
    let plan = stock_text(&ctx, &format!("EXPLAIN {query}")).await;
    let found = stock_batches(&ctx, query).await.unwrap();
    assert_ne!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 10, "{plan}");
}

/// Creates tables `g` (a CSV file, whose number of rows the planner does not know), `d` and `b`.
/// Returns a query that joins `g`, which has one key, with the keys that `d` and `b` have in
/// common.
async fn join_below_partitioned_join(
    ctx: &SessionContext,
    dir: &tempfile::TempDir,
) -> &'static str {
    let writer = serrate::sql::session_with(make_config());
    for (name, format, query) in [
        ("g", "CSV", "SELECT 1 AS k FROM range(2)"),
        ("d", "PARQUET", "SELECT value % 7 AS k FROM range(2000)"),
        ("b", "PARQUET", "SELECT value AS k FROM range(5)"),
    ] {
        let at = display_path(&dir.path().join(format!("{name}.{}", format.to_lowercase())));
        query_text(&writer, &format!("COPY ({query}) TO '{at}'")).await;
        let create = format!("CREATE EXTERNAL TABLE {name} STORED AS {format} LOCATION '{at}'");
        stock_batches(ctx, &create).await.unwrap();
    }
    "SELECT g.k, n.k FROM (SELECT DISTINCT k FROM g) g
       LEFT JOIN (SELECT d.k FROM (SELECT DISTINCT k FROM d) d JOIN b ON d.k = b.k) n ON g.k = n.k"
}

/// Returns a configuration in which joins with the small table `b` collect it, and other joins
/// repartition both inputs.
fn config_of_partitioned_joins() -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(4)
        .set_usize("datafusion.optimizer.hash_join_single_partition_threshold", 1000)
        .set_usize("datafusion.optimizer.hash_join_single_partition_threshold_rows", 100)
}

const LONG: std::time::Duration = std::time::Duration::from_secs(5);

#[tokio::test]
async fn joins_below_partitioned_joins_do_not_hang() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = serrate::sql::session_with(config_of_partitioned_joins());
    let query = join_below_partitioned_join(&ctx, &dir).await;
    let plan = query_text(&ctx, &format!("EXPLAIN {query}")).await;
    assert!(plan.contains("mode=Partitioned, join_type=Left"), "{plan}");
    assert!(plan.contains("mode=CollectLeft, join_type=Inner"), "{plan}");
    let found = tokio::time::timeout(LONG * 12, query_text(&ctx, query)).await;
    assert!(found.unwrap().contains("| 1 | 1 |"));
}

#[tokio::test]
async fn stock_joins_below_partitioned_joins_still_hang() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = SessionContext::new_with_config(config_of_partitioned_joins());
    let query = join_below_partitioned_join(&ctx, &dir).await;
    let found = tokio::time::timeout(LONG, stock_batches(&ctx, query)).await;
    assert!(found.is_err(), "no hang: remove src/sql/workarounds/guards/waiting_joins.rs");
}
