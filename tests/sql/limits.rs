//! LIMIT and OFFSET of a subquery return the same rows, whatever the query around it sorts, joins
//! or limits.

use super::*;

const ROWS: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (3), (1), (2), (4), (9), (0)) v(id)";

/// Statements over the table `{t}`, and the values of their only column.
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
async fn limits_of_subqueries_count_their_own_rows() {
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

/// Stock DataFusion still returns other rows than [`limits_of_subqueries_count_their_own_rows`]
/// expects.
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

const TIMED: &str = "CREATE TABLE t AS SELECT * FROM
    (VALUES (1, 30, 5), (2, 10, 5), (3, 20, 6), (4, 40, 6), (5, 0, 7)) v(id, ts, k)";

/// Statements over `{t}` and their rows. Most statements have a subquery that is sorted by a column that it does not
/// return.
const DROPPED_KEYS: [(&str, &str); 17] = [
    ("SELECT sum(id) FROM (SELECT id FROM (SELECT * FROM {t} ORDER BY ts) OFFSET 2)", "8"),
    ("SELECT id FROM {t} ORDER BY ts OFFSET 2", "3; 1; 4"),
    ("SELECT id FROM (SELECT id FROM {t} ORDER BY ts OFFSET 2) ORDER BY id", "1; 3; 4"),
    ("SELECT id FROM {t} WHERE id IN (SELECT id FROM {t} ORDER BY ts OFFSET 2) ORDER BY id", "1; 3; 4"),
    (
        "SELECT e.id FROM (SELECT id, k FROM {t} ORDER BY ts OFFSET 2) e JOIN (VALUES (5), (6)) x(k)
         ON e.k = x.k ORDER BY e.id",
        "1; 3; 4",
    ),
    ("SELECT sum(id) FROM (SELECT id FROM {t} ORDER BY abs(ts - 20), id OFFSET 2)", "11"),
    (
        "SELECT id FROM ((SELECT id FROM {t} ORDER BY ts OFFSET 3) UNION ALL
         (SELECT id FROM {t} ORDER BY ts DESC OFFSET 4)) ORDER BY id",
        "1; 4; 5",
    ),
    ("SELECT k FROM (SELECT k, count(*) AS n FROM {t} GROUP BY k ORDER BY max(ts) OFFSET 1) ORDER BY k", "5; 6"),
    ("SELECT sum(id) FROM (SELECT id FROM (SELECT * FROM {t} ORDER BY ts) WHERE 100 / id > 20 OFFSET 2)", "5"),
    ("SELECT sum(x) FROM (SELECT unnest([id, 10 * id]) AS x FROM (SELECT * FROM {t} ORDER BY ts) LIMIT 3)", "57"),
    ("SELECT sum(x) FROM (SELECT unnest([id, 10 * id]) AS x FROM (SELECT * FROM {t} ORDER BY ts) OFFSET 7)", "54"),
    (
        "SELECT sum(id) FROM ((SELECT id FROM {t} ORDER BY ts) UNION ALL (SELECT id FROM {t} ORDER BY ts DESC)
         OFFSET 8)",
        "7",
    ),
    (
        "SELECT id, row_number() OVER () AS r FROM (SELECT id FROM {t} ORDER BY ts) ORDER BY id",
        "1 4; 2 2; 3 3; 4 5; 5 1",
    ),
    (
        "SELECT id, r FROM (SELECT *, row_number() OVER () AS r FROM (SELECT * FROM {t} ORDER BY ts DESC))
         ORDER BY id LIMIT 2",
        "1 2; 2 4",
    ),
    (
        "SELECT id, lag(id) OVER () AS r FROM (SELECT id FROM {t} ORDER BY ts) ORDER BY id",
        "1 3; 2 5; 3 2; 4 1; 5 NULL",
    ),
    (
        "WITH w AS (SELECT id, random() AS r FROM {t} ORDER BY ts)
         SELECT a.id, b.n FROM (SELECT id FROM w LIMIT 2) a, (SELECT count(*) AS n FROM w) b ORDER BY a.id",
        "2 5; 5 5",
    ),
    (
        "WITH w AS (SELECT id, random() AS r FROM {t} ORDER BY ts)
         SELECT sum(a.id), max(b.n) FROM (SELECT id FROM w OFFSET 2) a, (SELECT count(*) AS n FROM w) b",
        "8 5",
    ),
];

#[tokio::test]
async fn limits_and_windows_see_the_order_of_columns_that_are_not_selected() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("t.parquet"));
    let copy = format!("COPY t TO '{file}' OPTIONS (overwrite true)");
    let cases: Vec<(String, &str)> = ["t".to_owned(), format!("'{file}'")]
        .iter()
        .flat_map(|from| DROPPED_KEYS.map(|(sql, rows)| (sql.replace("{t}", from), rows)))
        .collect();
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[TIMED, &copy], &cases).await;
}

/// Statements whose input has sorted partitions that no ORDER BY merges.
const SORTED_INPUTS: [(&str, &str); 7] = [
    ("(SELECT id FROM t ORDER BY id) UNION ALL (SELECT id - 5 FROM t ORDER BY 1) LIMIT 8", "0; 1; 2; 3; 4; 9; -5; -4"),
    ("(SELECT id FROM t ORDER BY id) UNION ALL (SELECT id - 5 FROM t ORDER BY 1) LIMIT 2 OFFSET 5", "9; -5"),
    ("SELECT x FROM (SELECT * FROM ((SELECT id AS x FROM t ORDER BY 1) UNION ALL (SELECT id - 5 FROM t ORDER BY 1))
      WHERE x <> 1 LIMIT 6) ORDER BY x", "-5; 0; 2; 3; 4; 9"),
    ("SELECT x FROM (SELECT x, row_number() OVER () AS r
      FROM ((SELECT id AS x FROM t ORDER BY 1) UNION ALL (SELECT id - 5 FROM t ORDER BY 1))) WHERE r > 5 AND r < 8
      ORDER BY r", "9; -5"),
    ("SELECT x FROM sorted LIMIT 4", "1; 4; 4; 7"),
    ("SELECT x FROM sorted WHERE x < 7 LIMIT 4 OFFSET 1", "4; 4; 0; 4"),
    ("SELECT x FROM sorted ORDER BY x LIMIT 2", "0; 1"),
];

#[tokio::test]
async fn limits_of_sorted_partitions_return_the_rows_of_the_first_partition_first() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    let copy = |name: &str, rows: &str| {
        format!(
            "COPY (SELECT x FROM (VALUES {rows}) v(x)) TO '{at}/{name}.parquet' OPTIONS (overwrite true)"
        )
    };
    let first = copy("a", "(1), (4), (4), (7)");
    let second = copy("b", "(0), (4), (5), (8)");
    let sorted =
        format!("CREATE EXTERNAL TABLE sorted STORED AS PARQUET LOCATION '{at}/' WITH ORDER (x)");
    expect_rows(&[ROWS, &first, &second, &sorted], &SORTED_INPUTS).await;
}

/// When this test fails, `hide_sorts` in `sql::workarounds::sorting::opaque_limits` can be removed.
#[tokio::test]
async fn stock_sorts_by_dropped_keys_are_still_removed() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, TIMED).await.unwrap();
    let (sql, right) = DROPPED_KEYS[0];
    let found = stock_batches(&ctx, &sql.replace("{t}", "t")).await.unwrap();
    assert_ne!(to_rows(&found), right);
}

/// Statements over the numbers 0 to 99 in `{t}` with a LIMIT that is pushed into the scan, and the
/// values of their only column.
const LIMITED_SCANS: [(&str, &[i64]); 10] = [
    ("SELECT id FROM (SELECT id FROM {t} LIMIT 12) ORDER BY id DESC LIMIT 2", &[11, 10]),
    (
        "SELECT b.id FROM (VALUES (40), (42)) a(id) JOIN (SELECT id FROM {t} LIMIT 15) b ON a.id = b.id",
        &[],
    ),
    ("SELECT id FROM (SELECT id FROM {t} LIMIT 3) ORDER BY id DESC", &[2, 1, 0]),
    ("SELECT id FROM (SELECT id FROM {t} WHERE id > 20 LIMIT 5) ORDER BY id DESC LIMIT 1", &[25]),
    (
        "SELECT first_value(id) OVER (ORDER BY id DESC) FROM (SELECT id FROM {t} LIMIT 3)",
        &[2, 2, 2],
    ),
    ("SELECT max(id) FROM (SELECT id FROM {t} LIMIT 12)", &[11]),
    (
        "SELECT b.id FROM (VALUES (21), (60)) a(id) JOIN (SELECT id FROM {t} WHERE id > 20 LIMIT 5) b \
         ON a.id = b.id",
        &[21],
    ),
    (
        "SELECT id FROM (SELECT id FROM {t} LIMIT 15) WHERE id IN (SELECT v FROM (VALUES (10), (40)) u(v))",
        &[10],
    ),
    (
        "SELECT a.id FROM (SELECT id FROM {t} LIMIT 4 OFFSET 10) a WHERE EXISTS \
         (SELECT 1 FROM (SELECT id AS i FROM {t} LIMIT 12) b WHERE b.i = a.id) ORDER BY a.id",
        &[10, 11],
    ),
    (
        "SELECT id FROM ((SELECT id FROM {t} LIMIT 3) UNION ALL (SELECT id FROM {t} LIMIT 2)) \
         ORDER BY id DESC LIMIT 3",
        &[2, 1, 1],
    ),
];

/// Writes the numbers 0 to 99 to a Parquet file with row groups of ten rows, and to a folder of two
/// such files.
async fn write_row_groups(dir: &tempfile::TempDir) -> [String; 2] {
    let ctx = serrate::sql::session();
    let (file, folder) = (dir.path().join("t.parquet"), dir.path().join("t"));
    std::fs::create_dir(&folder).unwrap();
    for (at, first, last) in [
        (file.clone(), 0, 99),
        (folder.join("a.parquet"), 0, 49),
        (folder.join("b.parquet"), 50, 99),
    ] {
        let rows = format!("SELECT value AS id FROM generate_series({first}, {last})");
        let at = display_path(&at);
        query_text(&ctx, &format!("COPY ({rows}) TO '{at}' OPTIONS (max_row_group_size 10)")).await;
    }
    [display_path(&file), format!("{}/", display_path(&folder))]
}

#[tokio::test]
async fn scans_with_limits_return_their_first_rows() {
    let dir = tempfile::tempdir().unwrap();
    let sources = write_row_groups(&dir).await;
    for partitions in [1, 4] {
        let ctx =
            serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
        for source in &sources {
            for (sql, expected) in LIMITED_SCANS {
                let sql = sql.replace("{t}", &format!("'{source}'"));
                assert_eq!(
                    query_ints(&ctx, &sql).await,
                    expected,
                    "{partitions} partitions: {sql}"
                );
            }
        }
    }
}

/// Returns the values that stock DataFusion returns for a statement of [`LIMITED_SCANS`], and the
/// right values.
async fn run_stock(number: usize) -> (Vec<i64>, &'static [i64]) {
    let dir = tempfile::tempdir().unwrap();
    let [file, _] = write_row_groups(&dir).await;
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let table = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{file}'");
    stock_batches(&ctx, &table).await.unwrap();
    let (sql, right) = LIMITED_SCANS[number];
    (stock_ints(&ctx, &sql.replace("{t}", "t")).await, right)
}

#[tokio::test]
async fn stock_limited_scans_still_reorder_rows() {
    let (found, right) = run_stock(0).await;
    assert_ne!(found, right, "DataFusion answers it now");
}

#[tokio::test]
async fn stock_joins_still_filter_below_limits() {
    let (found, right) = run_stock(1).await;
    assert_ne!(found, right, "DataFusion answers it now");
}

const REPEATED: [(&str, &[i64]); 3] = [
    ("SELECT DISTINCT ON (id % 2) id FROM t ORDER BY id % 2 DESC, id % 2, id, id", &[1, 0]),
    ("SELECT unnest(array_agg(id ORDER BY id DESC, id)) FROM t WHERE id > 2", &[9, 4, 3]),
    ("SELECT first_value(id) OVER (ORDER BY id, id DESC) FROM t WHERE id < 2", &[0, 0]),
];

#[tokio::test]
async fn repeated_sort_keys_have_no_effect() {
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

/// Sort keys that become equal when they are simplified are one key.
#[tokio::test]
async fn sort_keys_that_simplify_to_equal_keys_have_no_effect() {
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

/// Stock DataFusion still panics for a statement of [`repeated_sort_keys_have_no_effect`].
#[tokio::test]
async fn stock_repeated_keys_still_panic() {
    let ctx = SessionContext::new();
    ctx.sql(ROWS).await.unwrap().collect().await.unwrap();
    let plan = ctx.sql(REPEATED[0].0).await.unwrap();
    let found = tokio::spawn(plan.collect()).await;
    assert!(!matches!(found, Ok(Ok(_))), "DataFusion answers it now");
}

#[tokio::test]
async fn limits_within_a_table_function_apply_to_all_partitions() {
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
async fn limited_rows_joined_with_a_scalar_subquery_keep_their_order() {
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

/// `DISTINCT .. LIMIT` runs above operators that require sorted rows.
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
