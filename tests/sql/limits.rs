//! LIMIT and OFFSET of a subquery count the rows that reach them, whatever is sorted above.

use super::*;

const ROWS: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (3), (1), (2), (4), (9), (0)) v(id)";

/// Statements over `{t}` and their values.
const STATEMENTS: [(&str, &[i64]); 12] = [
    ("SELECT * FROM (SELECT * FROM {t} ORDER BY id LIMIT 2 OFFSET 1) ORDER BY id", &[1, 2]),
    ("WITH p AS (SELECT id FROM {t} ORDER BY id LIMIT 3 OFFSET 3) SELECT * FROM p ORDER BY id", &[3, 4, 9]),
    ("SELECT * FROM (SELECT * FROM {t} LIMIT 3) ORDER BY id", &[1, 2, 3]),
    ("SELECT * FROM (SELECT * FROM {t} LIMIT 3 OFFSET 1) ORDER BY id", &[1, 2, 4]),
    ("SELECT * FROM (SELECT * FROM {t} LIMIT 3) ORDER BY id LIMIT 2", &[1, 2]),
    ("SELECT * FROM (SELECT * FROM {t} OFFSET 2) ORDER BY id LIMIT 2", &[0, 2]),
    ("SELECT * FROM (SELECT * FROM (SELECT * FROM {t} ORDER BY id LIMIT 2) OFFSET 1 LIMIT 7) ORDER BY id", &[1]),
    ("SELECT * FROM (SELECT * FROM {t} ORDER BY id DESC LIMIT 3 OFFSET 1) ORDER BY id", &[2, 3, 4]),
    ("SELECT sum(id) OVER (ORDER BY id) FROM (SELECT * FROM {t} ORDER BY id LIMIT 3 OFFSET 1)", &[1, 3, 6]),
    ("SELECT id FROM (SELECT * FROM {t} ORDER BY id LIMIT 3 OFFSET 1) ORDER BY id LIMIT 2 OFFSET 1", &[2, 3]),
    ("SELECT row_number() OVER (ORDER BY id DESC) FROM (SELECT * FROM {t} LIMIT 2 OFFSET 3)", &[1, 2]),
    ("SELECT a.id FROM (SELECT * FROM {t} ORDER BY id LIMIT 3 OFFSET 1) a JOIN (SELECT * FROM {t} LIMIT 3) b
      ON a.id = b.id ORDER BY a.id", &[1, 2, 3]),
];

#[tokio::test]
async fn limits_count_the_rows_that_come_to_them() {
    let dir = tempfile::tempdir().unwrap();
    for partitions in [1, 4] {
        let ctx = serrate::sql::session_with(
            SessionConfig::new().with_target_partitions(partitions).with_batch_size(2),
        );
        query_text(&ctx, ROWS).await;
        let mut sources = vec!["t".to_owned()];
        for file in ["t.parquet", "t.arrow"] {
            let path = display_path(&dir.path().join(format!("{partitions}-{file}")));
            query_text(&ctx, &format!("COPY t TO '{path}'")).await;
            sources.push(format!("'{path}'"));
        }
        for source in sources {
            for (sql, expected) in STATEMENTS {
                let sql = sql.replace("{t}", &source);
                assert_eq!(
                    query_ints(&ctx, &sql).await,
                    expected,
                    "{partitions} partitions: {sql}"
                );
            }
        }
    }
}

/// DataFusion without our rules still fails what [`limits_count_the_rows_that_come_to_them`]
/// checks.
#[tokio::test]
async fn stock_sorts_still_move_below_limits() {
    let ctx = SessionContext::new();
    ctx.sql(ROWS).await.unwrap().collect().await.unwrap();
    let (sql, right) = STATEMENTS[0];
    assert_ne!(
        stock_ints(&ctx, &sql.replace("{t}", "t")).await,
        right,
        "DataFusion answers it now"
    );
}

const REPEATED: [(&str, &[i64]); 3] = [
    ("SELECT DISTINCT ON (id % 2) id FROM t ORDER BY id % 2 DESC, id % 2, id, id", &[1, 0]),
    ("SELECT unnest(array_agg(id ORDER BY id DESC, id)) FROM t WHERE id > 2", &[9, 4, 3]),
    ("SELECT first_value(id) OVER (ORDER BY id, id DESC) FROM t WHERE id < 2", &[0, 0]),
];

#[tokio::test]
async fn repeated_keys_order_nothing() {
    let ctx = create_parallel_session();
    query_text(&ctx, ROWS).await;
    for (sql, expected) in REPEATED {
        let batches = serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
        let found: Vec<i64> = batches
            .iter()
            .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect();
        assert_eq!(found, expected, "{sql}");
    }
}

/// Keys that are equal once simplified are one key.
#[tokio::test]
async fn keys_that_are_equal_once_simplified_order_nothing() {
    let k = "CASE WHEN true THEN k END";
    let cases = [
        (
            format!("SELECT DISTINCT ON ({k}, k) k, id FROM t ORDER BY {k}, k, id DESC"),
            "1 2; 2 5; NULL 4",
        ),
        (
            format!("SELECT k, first_value(id ORDER BY k, {k}, id DESC) FROM t GROUP BY k ORDER BY k"),
            "1 2; 2 5; NULL 4",
        ),
        (
            "SELECT s, last_value(id ORDER BY id + k, k + id, id) FILTER (WHERE k IS NOT NULL) AS l FROM t GROUP BY s ORDER BY s".into(),
            "x 3; y 5; NULL NULL",
        ),
        (
            format!("SELECT k, array_agg(id ORDER BY {k}, k DESC, id DESC) AS l FROM t GROUP BY k ORDER BY k"),
            "1 [2, 1]; 2 [5, 3]; NULL [4]",
        ),
        (
            format!("SELECT first_value(id ORDER BY k DESC, {k}, id) AS a, max(id) AS b FROM t WHERE k > 0"),
            "3 5",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    let table = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'x'), (4, NULL, NULL), (5, 2, 'y')) v(id, k, s)";
    expect_rows(&[table], &cases).await;
}

/// DataFusion without the workaround [`repeated_keys_order_nothing`] still panics.
#[tokio::test]
async fn stock_repeated_keys_still_panic() {
    let ctx = SessionContext::new();
    ctx.sql(ROWS).await.unwrap().collect().await.unwrap();
    let plan = ctx.sql(REPEATED[0].0).await.unwrap();
    let found = tokio::spawn(plan.collect()).await;
    assert!(!matches!(found, Ok(Ok(_))), "DataFusion answers it now");
}

#[tokio::test]
async fn limits_below_a_table_function_apply_to_all_partitions() {
    let ctx = create_parallel_session();
    for sql in [
        "CREATE TABLE lists AS SELECT value AS id, [value] AS x FROM generate_series(1, 10)",
        "CREATE TABLE none AS SELECT * FROM lists WHERE id > 99",
    ] {
        query_batches(&ctx, sql).await.unwrap();
    }
    for (from, expected) in [
        ("lists LIMIT 2 OFFSET 4", vec![5, 6]),
        ("none LIMIT 2 OFFSET 4", vec![]),
        ("(SELECT * FROM lists UNION ALL SELECT * FROM lists) LIMIT 3 OFFSET 9", vec![10, 1, 2]),
    ] {
        let sql = format!("SELECT x FROM ragged_explode((SELECT x FROM {from}))");
        assert_eq!(query_ints(&ctx, &sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn limited_rows_beside_a_scalar_query_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let file = dir.path().join("t.parquet");
    let rows = "SELECT value AS id, [value] AS x FROM generate_series(1, 10)";
    let copy = format!("COPY ({rows}) TO '{}' OPTIONS (max_row_group_size 5)", file.display());
    query_batches(&ctx, &copy).await.unwrap();
    query_batches(&ctx, "CREATE TABLE names AS SELECT 5 AS key, 'five' AS name").await.unwrap();
    let looked = "ragged_lookup(a.x, 'names', 'key', 'name')";
    let sql = format!("SELECT a.id, {looked} FROM '{}' AS a LIMIT 5 OFFSET 3", file.display());
    for _ in 0..20 {
        let rows = serrate::sql::sql(&ctx, &sql).await.unwrap().collect().await.unwrap();
        let ids = rows.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values());
        assert_eq!(ids.copied().collect::<Vec<_>>(), [4, 5, 6, 7, 8]);
    }
}

const MARKED: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 10), (2, 'b', NULL), (6, 'c', 10), (7, 'c', 4)) v(id, k, x)";

/// DISTINCT .. LIMIT works above operators that need sorted rows.
#[tokio::test]
async fn distinct_rows_above_windows_are_limited() {
    let count = "SELECT DISTINCT k, count(*) OVER (PARTITION BY k) AS n FROM t";
    let cases = [
        (format!("SELECT count(*), sum(n) FROM ({count} LIMIT 30)"), "3 4"),
        (format!("SELECT count(*) FROM ({count} LIMIT 2)"), "2"),
        (
            "SELECT k, s FROM (SELECT k, sum(x) OVER (PARTITION BY k) s FROM t) GROUP BY k, s HAVING s > 10 LIMIT 5".into(),
            "c 14",
        ),
        (format!("SELECT count(*) FROM ({count} UNION SELECT 'z', 9 LIMIT 1000)"), "4"),
        (format!("SELECT id FROM t WHERE id = 1 AND EXISTS ({count} LIMIT 1)"), "1"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[MARKED], &cases).await;
}

#[tokio::test]
async fn stock_limits_of_sorted_distinct_rows_still_fail() {
    let stock = SessionContext::new();
    stock.sql(MARKED).await.unwrap().collect().await.unwrap();
    let sql = "SELECT DISTINCT k, count(*) OVER (PARTITION BY k) AS n FROM t LIMIT 30";
    let found = stock.sql(sql).await.unwrap().collect().await;
    assert!(found.is_err(), "DataFusion is fixed");
}
