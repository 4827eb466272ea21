//! Filters that an operator derives from the rows it has seen.

use datafusion::arrow::array::Float64Array;
use datafusion::parquet::arrow::ArrowWriter;

use super::*;

/// Returns a folder of 40 Parquet files of one row with the columns `a`, `b` and `f`. The first file has
/// the greatest `b`; the eleventh has the least `a`, and NaN in `f` beside a number.
fn files() -> tempfile::TempDir {
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

fn config() -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(2)
        .with_batch_size(1)
        .set_bool("datafusion.optimizer.repartition_file_scans", false)
}

fn table(dir: &tempfile::TempDir) -> String {
    let at = dir.path().display();
    format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{at}/'")
}

#[tokio::test]
async fn extremes_of_several_expressions_see_all_rows() {
    let dir = files();
    let ctx = serrate::sql::session_with(config());
    batches(&ctx, &table(&dir)).await.unwrap();
    assert_eq!(one(&ctx, "SELECT min(a * 2) FROM t").await, -14);
    assert_eq!(one(&ctx, "SELECT min(a * 2), max(b) FROM t").await, -14);
    assert_eq!(one(&ctx, "SELECT min(a), max(b) FROM t").await, -7);
    let nan = "SELECT count(*) FROM (SELECT max(f) AS f FROM t) WHERE isnan(f)";
    assert_eq!(one(&ctx, nan).await, 1);
    assert_eq!(one(&ctx, "SELECT CAST(min(f) AS BIGINT) FROM t").await, 2);
}

/// When this fails, `filters_too_much` of `sql::mends::guarded_rules` need not look at arguments.
#[tokio::test]
async fn stock_dynamic_filters_of_extremes_still_drop_rows() {
    let dir = files();
    let ctx = SessionContext::new_with_config(config());
    batches(&ctx, &table(&dir)).await.unwrap();
    let query = "SELECT min(a * 2) AS lo, max(b) FROM t";
    let plan = text(&ctx, &format!("EXPLAIN ANALYZE {query}")).await;
    assert_eq!(one(&ctx, query).await, 10, "{plan}");
}

/// Eight rows of lists, some with NULL, and a join with three of these lists. The sort lies below the join, above
/// the filter that the join derives.
const JOIN_OF_LISTS: [&str; 2] = [
    "CREATE TABLE l AS SELECT column1 AS id, column2 AS x FROM (VALUES \
     (1, [1]), (2, [NULL, 5]), (3, [5, NULL]), (4, [5]), (5, []), (6, NULL), (7, [NULL]), (8, [2, 3]))",
    "SELECT l.id FROM l JOIN (SELECT [NULL, 5] AS x FROM l \
     UNION ALL SELECT [5, NULL] UNION ALL SELECT [5]) AS r ON l.x = r.x ORDER BY l.x",
];

fn one_partition() -> SessionConfig {
    SessionConfig::new().with_target_partitions(1)
}

async fn rows(ctx: &SessionContext, query: &str) -> usize {
    batches(ctx, query).await.unwrap().iter().map(RecordBatch::num_rows).sum()
}

#[tokio::test]
async fn joins_of_lists_keep_their_rows() {
    let [table, query] = JOIN_OF_LISTS;
    let ctx = serrate::sql::session_with(one_partition());
    batches(&ctx, table).await.unwrap();
    assert_eq!(rows(&ctx, query).await, 10);
    batches(&ctx, "CREATE TABLE ll AS SELECT [[1], [2, 3]] AS x FROM l").await.unwrap();
    let equal = "SELECT ll.x FROM ll JOIN (SELECT [[1], [2, 3]] AS x FROM l) AS r ON ll.x = r.x ORDER BY ll.x";
    assert_eq!(rows(&ctx, equal).await, 64);
}

/// When this fails, `filters_too_much` of `sql::mends::guarded_rules` need not look at joins.
#[tokio::test]
async fn stock_dynamic_filters_of_lists_still_drop_rows() {
    let [table, query] = JOIN_OF_LISTS;
    let ctx = SessionContext::new_with_config(one_partition());
    batches(&ctx, table).await.unwrap();
    let plan = text(&ctx, &format!("EXPLAIN {query}")).await;
    assert_ne!(rows(&ctx, query).await, 10, "{plan}");
}
