//! Plans in which DataFusion assumes that rows are sorted although they are not: Serrate sorts
//! them.

use super::order::one_row_batches;
use super::*;

const KEYED: &str = "CREATE TABLE t AS SELECT id, id % 2 AS k FROM (VALUES (2), (3), (1)) t(id)";

const EQUATIONS: [&str; 5] = [
    "SELECT id, row_number() OVER (PARTITION BY id ORDER BY k) FROM t WHERE abs(id) = id",
    "SELECT id, sum(k) OVER (PARTITION BY id ORDER BY k DESC, id) FROM t WHERE id = coalesce(id, 0)",
    "SELECT id, rank() OVER (PARTITION BY id ORDER BY k) FROM t WHERE abs(id) = id AND k = k + 0",
    "SELECT id, count(*) FROM t WHERE (CASE WHEN id > 0 THEN id END) = id GROUP BY id ORDER BY id",
    "SELECT a.id, row_number() OVER (PARTITION BY a.id ORDER BY b.id) FROM t a JOIN t b ON a.id = b.id
        WHERE abs(a.id) = b.id",
];

#[tokio::test]
async fn equations_of_a_column_with_its_own_expression_are_planned() {
    for partitions in [1, 2] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        query_batches(&ctx, KEYED).await.unwrap();
        for sql in EQUATIONS {
            let found = run_query(&ctx, sql).await;
            let found: usize = found.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(found, 3, "{sql}");
        }
    }
}

/// When this test fails, `sql::workarounds::sorting::equations` can be removed.
#[tokio::test]
async fn stock_windows_over_equations_still_fail() {
    let stock = SessionContext::new_with_config(one_row_batches(2));
    stock_batches(&stock, KEYED).await.unwrap();
    let message = stock_error(&stock, EQUATIONS[0]).await;
    assert!(message.contains("PARTITION BY expression"), "{message}");
}

/// Windows whose keys contain a function of one of two equal columns.
const EQUAL_COLUMNS: [(&str, &str); 4] = [
    (
        "SELECT u, v, k, row_number() OVER (PARTITION BY abs(v), k) FROM (SELECT id AS u, id AS v, k FROM t) ORDER BY u",
        "1 1 1 1; 2 2 0 1; 3 3 1 1",
    ),
    (
        "SELECT u, v, k, row_number() OVER (PARTITION BY abs(u), k) FROM (SELECT id AS u, id AS v, k FROM t) ORDER BY u",
        "1 1 1 1; 2 2 0 1; 3 3 1 1",
    ),
    (
        "SELECT u, v, sum(k) OVER (PARTITION BY -v, -k ORDER BY -u), count(*) OVER (PARTITION BY -v, -k ORDER BY -u)
         FROM (SELECT id AS u, id AS v, k FROM t) ORDER BY u",
        "1 1 1 1; 2 2 0 1; 3 3 1 1",
    ),
    (
        "SELECT x.id FROM (SELECT id, k, id::DOUBLE AS f FROM t) x
         WHERE x.f <= (SELECT x.f FROM t y WHERE y.id <> x.id ORDER BY 1 LIMIT 1) ORDER BY x.id",
        "1; 2; 3",
    ),
];

#[tokio::test]
async fn windows_by_functions_of_equal_columns_are_planned() {
    for partitions in [1, 4] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        query_batches(&ctx, KEYED).await.unwrap();
        for (sql, expected) in EQUAL_COLUMNS {
            assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
        }
    }
}

/// When this test fails, `sql::workarounds::grouping::computed_keys` need not compute the keys of
/// all windows by several keys.
#[tokio::test]
async fn stock_windows_over_functions_of_equal_columns_still_fail() {
    let stock = SessionContext::new_with_config(one_row_batches(4));
    stock_batches(&stock, KEYED).await.unwrap();
    let mut failed = 0;
    for (sql, _) in EQUAL_COLUMNS.into_iter().take(2) {
        if let Err(e) = stock_batches(&stock, sql).await {
            assert!(e.to_string().contains("PARTITION BY expression"), "{e}");
            failed += 1;
        }
    }
    assert!(failed > 0);
}

/// Keys that are constant below grouping sets or an outer join, and not above: a key is NULL in
/// grouping sets that omit it, and in rows of an outer join without a match.
const LOST_CONSTANTS: [(&str, &str); 13] = [
    (
        "SELECT k, count(*) AS n FROM (SELECT 'a' AS k FROM T) GROUP BY ROLLUP (k) ORDER BY k NULLS FIRST",
        "NULL 40; a 40",
    ),
    (
        "SELECT k, count(*) AS n FROM (SELECT x % 2 AS k FROM T) WHERE k = 1 GROUP BY ROLLUP (k) ORDER BY k NULLS FIRST",
        "NULL 20; 1 20",
    ),
    (
        "SELECT k, l, count(*) AS n FROM (SELECT [1.5] AS k, 2 AS l FROM T) GROUP BY CUBE (k, l) ORDER BY n, l NULLS FIRST, k DESC",
        "NULL NULL 40; [1.5] NULL 40; NULL 2 40; [1.5] 2 40",
    ),
    (
        "SELECT k, l, count(*) AS n FROM (SELECT x % 2 AS k, x % 4 AS l FROM T) WHERE k = l GROUP BY ROLLUP (k, l) ORDER BY k, l NULLS FIRST",
        "0 NULL 10; 0 0 10; 1 NULL 10; 1 1 10; NULL NULL 20",
    ),
    (
        "SELECT k, n, rank() OVER (ORDER BY k NULLS FIRST) AS r FROM (SELECT k, count(*) AS n FROM (SELECT 7 AS k FROM T) GROUP BY GROUPING SETS ((k), ())) ORDER BY r",
        "NULL 40 1; 7 40 2",
    ),
    (
        "SELECT c, y FROM (SELECT 1 AS c, x AS k FROM T) AS a RIGHT JOIN (VALUES (39), (40), (41)) b(y) ON k = y ORDER BY c NULLS FIRST, y",
        "NULL 40; NULL 41; 1 39",
    ),
    (
        "SELECT c, y FROM (VALUES (39), (40), (41)) b(y) LEFT JOIN (SELECT x AS c FROM T) AS a ON c = y AND y < 40 ORDER BY c NULLS FIRST, y",
        "NULL 40; NULL 41; 39 39",
    ),
    (
        "SELECT c, d FROM (SELECT 1 AS c, x FROM T) AS a FULL JOIN (SELECT 2 AS d, x AS y FROM T) AS b ON x = y + 38 WHERE coalesce(x, 39) > 38 AND coalesce(y, 0) < 2 ORDER BY c, d",
        "1 2",
    ),
    (
        "SELECT c, d FROM (SELECT x AS c FROM T) AS a FULL JOIN (VALUES (1)) b(d) ON 2 = 3 WHERE c = 7 OR c IS NULL ORDER BY c NULLS FIRST",
        "NULL 1; 7 NULL",
    ),
    (
        "SELECT count(*), sum(n) FROM (SELECT 'all' AS what, x % 3 AS k, count(*) AS n FROM (SELECT x FROM T) GROUP BY ROLLUP (what, k))",
        "5 120",
    ),
    (
        "SELECT count(*), sum(n) FROM (SELECT 'all' AS what, x % 3 AS k, count(*) AS n FROM (SELECT x FROM T) GROUP BY CUBE (what, k))",
        "8 160",
    ),
    (
        "SELECT count(*), sum(n) FROM (SELECT upper('a') AS c, x % 3 AS k, count(*) AS n FROM (SELECT x FROM T) GROUP BY GROUPING SETS ((k, c), (k)))",
        "6 80",
    ),
    (
        "SELECT x, 7 AS c, count(*) FROM (SELECT x FROM T) GROUP BY x, ROLLUP (c) ORDER BY x, c LIMIT 3",
        "0 7 1; 0 NULL 1; 1 7 1",
    ),
];

async fn lost_constants(ctx: &SessionContext, sql: &str) -> String {
    let sql = sql.replace(" T)", " (SELECT value AS x FROM generate_series(0, 39)))");
    query_rows(ctx, &sql).await
}

#[tokio::test]
async fn constants_that_become_null_above_a_join_or_rollup_are_sort_keys() {
    for partitions in [1, 4] {
        for batch in [1, 7, 8192] {
            let config = SessionConfig::new().with_target_partitions(partitions);
            let ctx = serrate::sql::session_with(config.with_batch_size(batch));
            for (sql, expected) in LOST_CONSTANTS {
                let found = lost_constants(&ctx, sql).await;
                assert_eq!(found, expected, "{partitions} {batch} {sql}");
            }
        }
    }
}

/// DataFusion replaces `count(*)` of a table in memory with a constant from its statistics.
#[tokio::test]
async fn counts_from_statistics_are_sort_keys_above_outer_joins() {
    let counts = "(SELECT count(*) AS c FROM m) a ON a.c = m.id";
    expect_rows(
        &["CREATE TABLE m AS SELECT value AS id FROM generate_series(1, 4)"],
        &[
            (&format!("SELECT id, c FROM m LEFT JOIN {counts} ORDER BY c LIMIT 1"), "4 4"),
            (
                &format!("SELECT c, id FROM m FULL JOIN {counts} ORDER BY c, id LIMIT 2"),
                "4 4; NULL 1",
            ),
            (
                "SELECT count(*) FROM (SELECT c, id, count(*) FROM m, (SELECT count(*) AS c FROM m) GROUP BY ROLLUP (c, id))",
                "6",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn stock_constants_are_still_kept_where_they_are_null() {
    // The rows may arrive in order by chance, so the test looks for the sort in the plan.
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4));
    let sql = "SELECT k, count(*) AS n FROM (SELECT 'a' AS k FROM generate_series(0, 39))
        GROUP BY ROLLUP (k) ORDER BY k NULLS FIRST";
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let plan = datafusion::physical_plan::displayable(plan.as_ref()).indent(true).to_string();
    assert!(!plan.contains("SortExec"), "remove the workaround\n{plan}");
}

#[tokio::test]
async fn windows_are_partitioned_and_ordered_by_nested_lists_and_structs() {
    let sum = |over: &str| format!("SELECT x, sum(x) OVER ({over}) FROM t ORDER BY x");
    let cases = [
        (sum("PARTITION BY [[1]] ORDER BY x"), "1 1; 2 3; 3 6"),
        (sum("PARTITION BY [[1]], x % 2 ORDER BY x"), "1 1; 2 2; 3 4"),
        (sum("PARTITION BY [[1]]"), "1 6; 2 6; 3 6"),
        (sum("ORDER BY [[1]], x"), "1 1; 2 3; 3 6"),
        (sum("ORDER BY [[1]]"), "1 6; 2 6; 3 6"),
        (sum("PARTITION BY [[x % 2]] ORDER BY [[x]]"), "1 1; 2 2; 3 4"),
        (sum("PARTITION BY [[x % 2]] ORDER BY [[x]] DESC"), "1 4; 2 2; 3 3"),
        (sum("ORDER BY {'a': 1}"), "1 6; 2 6; 3 6"),
        (sum("ORDER BY {'a': [x]}"), "1 1; 2 3; 3 6"),
        (sum("ORDER BY {'a': [x]} DESC"), "1 6; 2 5; 3 3"),
        (sum("PARTITION BY {'a': x % 2} ORDER BY x"), "1 1; 2 2; 3 4"),
        (sum("ORDER BY CASE WHEN x > 1 THEN [[x]] END NULLS FIRST"), "1 1; 2 3; 3 6"),
        (sum("ORDER BY CASE WHEN x > 1 THEN [[x]] END"), "1 6; 2 2; 3 5"),
        (sum("ORDER BY [[-x], [NULL]]"), "1 6; 2 5; 3 3"),
        (
            "SELECT k, rank() OVER (PARTITION BY k ORDER BY x DESC) FROM (SELECT [[1]] AS k, x FROM t) ORDER BY 2".into(),
            "[[1]] 1; [[1]] 2; [[1]] 3",
        ),
        (
            "SELECT min([[1]]) OVER (PARTITION BY [[1]] ORDER BY [[1]]), [[1]] FROM t GROUP BY x, [[1]]".into(),
            "[[1]] [[1]]; [[1]] [[1]]; [[1]] [[1]]",
        ),
        ("SELECT x FROM t ORDER BY [[1]], x DESC".into(), "3; 2; 1"),
        ("SELECT [[1]] AS k, count(*) FROM t GROUP BY [[1]]".into(), "[[1]] 3"),
        ("SELECT k, x, count(*) FROM (SELECT [[1]] AS k, x FROM t) GROUP BY k, x ORDER BY k, x".into(), "[[1]] 1 1; [[1]] 2 1; [[1]] 3 1"),
        ("SELECT DISTINCT [[1]] AS k, x FROM t ORDER BY k, x".into(), "[[1]] 1; [[1]] 2; [[1]] 3"),
        ("SELECT k, count(*) FROM (SELECT [[x % 2]] AS k FROM t ORDER BY [[x % 2]]) GROUP BY k ORDER BY k".into(), "[[0]] 1; [[1]] 2"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&["CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (3)) v(x)"], &cases).await;
}

/// When this test fails, `sql::workarounds::windows::window_keys` can be removed.
#[tokio::test]
async fn stock_windows_over_lists_of_lists_still_fail() {
    let config = SessionConfig::new().with_target_partitions(1);
    let ctx = SessionContext::new_with_config(config);
    let sql =
        "SELECT sum(x) OVER (ORDER BY make_array(make_array(x))) FROM (VALUES (1), (1), (2)) t(x)";
    let e = stock_error(&ctx, sql).await;
    assert!(e.contains("Uncomparable values"), "{e}");
}

/// Rows with a key of structs, some with a NULL field.
const STRUCTS: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (1, named_struct('a', 1, 'b', 'x')),
    (2, named_struct('a', 1, 'b', NULL)), (3, named_struct('a', 1, 'b', 'x')),
    (4, named_struct('a', 1, 'b', NULL)), (5, named_struct('a', 1, 'b', 'w'))) v(id, r)";

fn small_batches() -> SessionConfig {
    SessionConfig::new().with_target_partitions(2).with_batch_size(2)
}

#[tokio::test]
async fn aggregates_are_ordered_by_structs_and_lists_of_lists() {
    let ctx = serrate::sql::session_with(small_batches());
    query_batches(&ctx, STRUCTS).await.unwrap();
    let lists = "CREATE TABLE u AS SELECT * FROM
        (VALUES (1, [[1, NULL]]), (2, [[1]]), (3, [[1, NULL]]), (4, [[0]]), (5, NULL)) v(id, l)";
    query_batches(&ctx, lists).await.unwrap();
    for (sql, expected) in [
        ("SELECT array_agg(id ORDER BY r, id) FROM t", "[5, 1, 3, 2, 4]"),
        ("SELECT array_agg(id ORDER BY [r], id) FROM t", "[5, 1, 3, 2, 4]"),
        ("SELECT array_agg(id ORDER BY r DESC, id) FROM t", "[2, 4, 1, 3, 5]"),
        ("SELECT first_value(id ORDER BY r DESC, id) FROM t", "2"),
        ("SELECT last_value(id ORDER BY r, id) FROM t", "4"),
        ("SELECT string_agg(id::VARCHAR, '' ORDER BY r, id) FROM t", "51324"),
        ("SELECT first_value(id ORDER BY l, id) FROM u", "4"),
        ("SELECT array_agg(id ORDER BY l, id) FROM u", "[4, 2, 1, 3, 5]"),
        ("SELECT array_agg(id ORDER BY l NULLS FIRST, id) FROM u", "[5, 4, 2, 1, 3]"),
    ] {
        assert!(
            query_text(&ctx, sql).await.contains(expected),
            "{sql}\n{}",
            query_text(&ctx, sql).await
        );
    }
}

/// In a session with one partition, the rows can be sorted for only one of two ordered aggregates.
#[tokio::test]
async fn each_aggregate_has_its_own_order() {
    let lists = "CREATE TABLE t AS SELECT * FROM
        (VALUES (1, 1, [[1], [9]]), (2, 2, [[2], [5]]), (3, 0, [[3]]), (4, 5, []), (5, 4, [[NULL]])) v(id, f, g)";
    expect_rows(
        &[lists],
        &[
            ("SELECT list(id ORDER BY f), list(id ORDER BY g DESC) FROM t", "[3, 1, 2, 5, 4] [5, 3, 2, 1, 4]"),
            ("SELECT list(id ORDER BY g, id), list(id ORDER BY g DESC, id) FROM t", "[4, 1, 2, 3, 5] [5, 3, 2, 1, 4]"),
            ("SELECT first(id ORDER BY g, id), last(id ORDER BY g, id) FROM t", "4 5"),
            ("SELECT DISTINCT ON (g) id FROM t ORDER BY g, id DESC", "4; 1; 2; 3; 5"),
            (
                "SELECT DISTINCT ON (r) r['a'], id FROM (SELECT named_struct('a', f % 2) AS r, id FROM t) ORDER BY r DESC, id",
                "1 1; 0 2",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn arg_max_and_arg_min_may_order_by_their_own_argument() {
    let rows = "(VALUES ('a', 1.0), ('a', 2.0), ('b', 3.0)) v(k, f)";
    expect_rows(
        &[],
        &[
            (
                &format!(
                    "SELECT k, arg_max(f, f), arg_min(f, v.f) FROM {rows} GROUP BY k ORDER BY k"
                ),
                "a 2.0 1.0; b 3.0 3.0",
            ),
            (&format!("SELECT arg_max(f, f) FROM {rows}"), "3.0"),
        ],
    )
    .await;
}

/// When this test fails, `sql::workarounds::windows::window_keys` need not replace keys of
/// aggregates.
#[tokio::test]
async fn stock_ordered_aggregates_still_compare_structs_wrongly() {
    let ctx = SessionContext::new_with_config(small_batches());
    stock_batches(&ctx, STRUCTS).await.unwrap();
    let sql = "SELECT array_agg(id ORDER BY r ASC NULLS LAST, id) FROM t";
    let found = stock_text(&ctx, sql).await;
    assert!(!found.contains("[5, 1, 3, 2, 4]"), "{found}");
}

#[tokio::test]
async fn rows_are_sorted_by_functions_of_constant_nested_lists() {
    let ctx = create_parallel_session();
    query_batches(&ctx, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 30)")
        .await
        .unwrap();
    let at = "array_position([[3], [1], [2]], [v % 4])";
    let sql = format!("SELECT v FROM t WHERE v < 6 ORDER BY {at} NULLS FIRST, v DESC");
    assert_eq!(query_ints(&ctx, &sql).await, [4, 3, 5, 1, 2]);
    let twice = "(SELECT v FROM t UNION ALL SELECT v FROM t)";
    let sql = format!("SELECT v FROM {twice} WHERE v < 4 ORDER BY {at} DESC, v");
    assert_eq!(query_ints(&ctx, &sql).await, [2, 2, 1, 1, 3, 3]);
    let sql = format!(
        "SELECT v, sum(v) OVER (PARTITION BY {at} IS NULL ORDER BY {at}, v) FROM t WHERE v < 6"
    );
    assert_eq!(
        query_ints(&ctx, &format!("SELECT v FROM ({sql}) ORDER BY v")).await,
        [1, 2, 3, 4, 5]
    );
    let sums = format!("SELECT s FROM ({sql}) x(v, s) ORDER BY v");
    assert_eq!(query_ints(&ctx, &sums).await, [4, 11, 3, 4, 9]);
    let head =
        query_text(&ctx, &format!("SELECT *, rank() OVER (ORDER BY {at}) FROM t LIMIT 0")).await;
    assert!(!head.contains("__"), "{head}");
}

const SPANS: &str = "CREATE TABLE t AS SELECT id, n, CAST(day AS TIMESTAMP) AS ts
    FROM (VALUES (1, 5, '2020-01-01'), (2, 1, '2020-01-02'), (3, 0, '2020-01-04'), (4, NULL, '2020-01-03')) v(id, n, day)";

#[tokio::test]
async fn rows_are_sorted_by_times_plus_computed_intervals() {
    let twice = "(SELECT * FROM t UNION ALL SELECT * FROM t)";
    let key = "ts + n * INTERVAL '1 day'";
    let case = "ts + CASE WHEN id < 3 THEN INTERVAL '9 days' ELSE INTERVAL '0 days' END";
    let cases = [
        (format!("SELECT id FROM {twice} ORDER BY {key}, id"), "2; 2; 3; 3; 1; 1; 4; 4"),
        (format!("SELECT id FROM {twice} ORDER BY {key} DESC NULLS LAST LIMIT 2"), "1; 1"),
        (
            format!("SELECT id, rank() OVER (ORDER BY {key}) FROM t ORDER BY id"),
            "1 3; 2 1; 3 2; 4 4",
        ),
        (
            format!("SELECT id, rank() OVER (ORDER BY {case} DESC) FROM t ORDER BY id"),
            "1 2; 2 1; 3 3; 4 4",
        ),
        (
            "SELECT id, sum(id) OVER (PARTITION BY id > 2 ORDER BY ts + to_days(n) ROWS UNBOUNDED PRECEDING) FROM t ORDER BY id".into(),
            "1 3; 2 2; 3 3; 4 7",
        ),
        (
            format!("SELECT array_agg(id ORDER BY {key}, id) FROM {twice}"),
            "[2, 2, 3, 3, 1, 1, 4, 4]",
        ),
        (
            format!("SELECT DISTINCT ON (id > 2) id FROM {twice} ORDER BY id > 2, {key}"),
            "2; 3",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[SPANS], &cases).await;
}

/// When this test fails, `adds_computed_span` of
/// `sql::workarounds::subqueries::correlated::hoisted_queries` can be removed.
#[tokio::test]
async fn stock_sorts_by_computed_spans_still_fail() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4));
    stock_batches(&ctx, SPANS).await.unwrap();
    let key = "ts + CASE WHEN id < 3 THEN INTERVAL '9 days' ELSE INTERVAL '0 days' END";
    let sql = format!("SELECT id, rank() OVER (ORDER BY {key}) FROM t");
    let e = stock_error(&ctx, &sql).await;
    assert!(e.contains("SanityCheckPlan"), "{e}");
}

/// When this test fails, `has_unordered_constant` of
/// `sql::workarounds::subqueries::correlated::hoisted_queries` can be removed.
#[tokio::test]
async fn stock_sorts_by_constant_lists_still_fail() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4));
    let table = "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 30)";
    stock_batches(&ctx, table).await.unwrap();
    let at = "array_position(make_array(make_array(3), make_array(1)), make_array(v))";
    let twice = "(SELECT v FROM t UNION ALL SELECT v FROM t)";
    let e = stock_error(&ctx, &format!("SELECT v FROM {twice} ORDER BY {at}, v")).await;
    assert!(e.contains("SanityCheckPlan"), "{e}");
}

const FRAMES: &str = "CREATE TABLE a AS
    SELECT * FROM (VALUES (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)) AS v(g, i)";

/// Windows whose results DataFusion assumes to be sorted.
const WINDOWS: [&str; 8] = [
    "count(1) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "count(CASE WHEN i < 3 THEN 1 END) OVER (ORDER BY CASE WHEN i < 3 THEN 1 END
        ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "max(g) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "max(CASE WHEN i < 2 AND g < 2 THEN 1 END) OVER (ORDER BY g, i
        ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "max(CASE WHEN i > 1 THEN i END) OVER (ORDER BY g, i)",
    "min(CASE WHEN i > 1 THEN i END) OVER (ORDER BY g, i)",
    "min(CASE WHEN i > 1 THEN i END) OVER (PARTITION BY g ORDER BY i DESC
        ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "count(*) OVER (ORDER BY g RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING)",
];

#[tokio::test]
async fn order_by_the_result_of_a_window_sorts() {
    for batch in [8192, 2] {
        let config = SessionConfig::new().with_target_partitions(1).with_batch_size(batch);
        let ctx = serrate::sql::session_with(config);
        query_batches(&ctx, FRAMES).await.unwrap();
        for window in WINDOWS {
            let from = format!("SELECT {window} AS c FROM a");
            let kept = format!("CREATE OR REPLACE TABLE kept AS {from}");
            query_batches(&ctx, &kept).await.unwrap();
            for order in ["ASC", "DESC", "ASC NULLS FIRST", "DESC NULLS LAST"] {
                for from in [from.clone(), format!("SELECT DISTINCT c FROM ({from})")] {
                    let sorted = |from: &str| {
                        format!(
                            "SELECT coalesce(c, -1) FROM (SELECT c FROM ({from}) ORDER BY c {order})"
                        )
                    };
                    let expected = match from.starts_with("SELECT DISTINCT") {
                        true => sorted("SELECT DISTINCT c FROM kept"),
                        false => sorted("SELECT c FROM kept"),
                    };
                    let expected = query_ints(&ctx, &expected).await;
                    assert_eq!(query_ints(&ctx, &sorted(&from)).await, expected, "{from} {order}");
                }
            }
        }
    }
}

async fn stock_window(window: &str) -> Vec<i64> {
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(2);
    let ctx = SessionContext::new_with_config(config);
    stock_batches(&ctx, FRAMES).await.unwrap();
    stock_ints(
        &ctx,
        &format!("SELECT coalesce(c, 9) FROM (SELECT {window} AS c FROM a ORDER BY c)"),
    )
    .await
}

/// When this test fails, `sql::workarounds::windows::window_orders` can be removed.
#[tokio::test]
async fn stock_counts_over_frames_still_count_as_sorted() {
    assert!(!stock_window(WINDOWS[0]).await.is_sorted());
}

/// When this test fails, `min`, `max` and `sum` may promise that they are monotonic.
#[tokio::test]
async fn stock_extremes_over_frames_still_count_as_sorted() {
    assert!(!stock_window(WINDOWS[4]).await.is_sorted());
}

const TRUTHS: &str =
    "SELECT i FROM (VALUES (5), (-3), (0), (1)) AS v(i) WHERE CAST(i AS BOOLEAN) ORDER BY i";

#[tokio::test]
async fn integers_filtered_as_booleans_are_sorted() {
    assert_eq!(query_ints(&create_parallel_session(), TRUTHS).await, [-3, 1, 5]);
    let head = query_text(
        &create_parallel_session(),
        "SELECT CAST(i AS BOOLEAN) FROM (VALUES (5), (0), (NULL)) AS v(i)",
    )
    .await;
    assert!(head.contains("true") && head.contains("false"), "{head}");
    let cases = [
        ("SELECT b::DECIMAL(3, 1) FROM (VALUES (true), (false), (NULL)) AS v(b)", "1.0; 0.0; NULL"),
        ("SELECT true::DECIMAL(3, 1), TRY_CAST(true AS DECIMAL(2, 2))", "1.0 NULL"),
    ];
    expect_rows(&[], &cases).await;
}

/// When this test fails, `sql::workarounds::sorting` can be removed.
#[tokio::test]
async fn stock_truths_of_integers_are_still_one() {
    assert_ne!(stock_ints(&SessionContext::new(), TRUTHS).await, [-3, 1, 5]);
}

const RANKED: &str = "SELECT r, k FROM (SELECT k, rank() OVER (ORDER BY count(*) DESC) AS r
    FROM (VALUES (5), (3), (4), (1), (2), (2)) AS v(k) GROUP BY k) ORDER BY r, k";

#[tokio::test]
async fn rows_are_sorted_by_the_rank_and_the_key_of_their_group() {
    for partitions in [1, 4] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        let shown = query_text(&ctx, RANKED).await;
        let at = |k: i64| shown.find(&format!("| {k} |")).unwrap();
        assert!(at(3) < at(4) && at(4) < at(5), "{shown}");
    }
}

/// When this test fails, `sql::workarounds::sorting::moved_keys` can be removed.
#[tokio::test]
async fn stock_projections_still_move_keys() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let plan = stock_text(&ctx, &format!("EXPLAIN {RANKED}")).await;
    assert!(!plan.contains("SortExec: expr=[r@"), "{plan}");
}

const BY_UNIQUE_KEY: &str = "SELECT CAST(row_number() OVER (PARTITION BY k, max(x)) AS BIGINT) FROM
    (SELECT * FROM (VALUES (3, 1), (1, 2), (3, 5), (2, NULL)) AS v(k, x) ORDER BY k LIMIT 9) GROUP BY k";

#[tokio::test]
async fn windows_by_a_unique_key_and_an_aggregate_run() {
    for partitions in [1, 4] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        assert_eq!(query_ints(&ctx, BY_UNIQUE_KEY).await, [1, 1, 1]);
    }
}

/// When this test fails, `sql::workarounds::windows::unique_partitions` can be removed.
#[tokio::test]
async fn stock_windows_over_unique_keys_still_fail() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let error = stock_batches(&ctx, BY_UNIQUE_KEY).await.unwrap_err().to_string();
    assert!(error.contains("PARTITION BY expression to be ordered"), "{error}");
}

/// The rows of `b` are in two batches, so that windows run in two partitions.
const TWO_BATCHES: &str =
    "CREATE TABLE b AS SELECT * FROM (VALUES (15), (16), (17), (18), (19), (20), (21), (22)) v(id)";

const WINDOWS_OF_ALL: &str =
    "SELECT id AS c0, row_number() OVER (PARTITION BY id ORDER BY id) AS c1,
    count(0) OVER (ORDER BY 6) AS c2 FROM b ORDER BY 1, 2, 3 LIMIT 3";

fn two_partitions() -> SessionConfig {
    SessionConfig::new().with_target_partitions(2).with_batch_size(7)
}

#[tokio::test]
async fn windows_below_a_limit_read_all_rows() {
    let ctx = serrate::sql::session_with(two_partitions());
    query_batches(&ctx, TWO_BATCHES).await.unwrap();
    for (sql, expected) in [
        (WINDOWS_OF_ALL, "15 1 8; 16 1 8; 17 1 8"),
        (
            "SELECT id, c FROM (SELECT id, row_number() OVER (PARTITION BY id ORDER BY id) AS r, sum(id) OVER
             (ORDER BY id // 100) AS c FROM b) WHERE r = 1 AND id > 16 ORDER BY id, r, c LIMIT 2",
            "17 148; 18 148",
        ),
        ("SELECT id FROM (SELECT id FROM b ORDER BY id DESC LIMIT 4) WHERE id < 22 ORDER BY id LIMIT 2", "19; 20"),
    ] {
        assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn stock_limits_still_move_below_windows() {
    let stock = SessionContext::new_with_config(two_partitions());
    stock_batches(&stock, TWO_BATCHES).await.unwrap();
    assert_eq!(rows_or_error(&stock, WINDOWS_OF_ALL).await, "15 1 3; 16 1 3; 17 1 3");
}

#[tokio::test]
async fn rows_are_sorted_by_comparisons_of_function_results() {
    let ctx = create_parallel_session();
    let tables = [
        "CREATE TABLE a AS SELECT value AS id, value::VARCHAR AS s, [value, 2] AS x FROM range(0, 12)",
        "CREATE TABLE t AS SELECT * FROM a UNION ALL SELECT * FROM a",
    ];
    for table in tables {
        query_batches(&ctx, table).await.unwrap();
    }
    for (key, expected) in [
        ("length(s) > 1 DESC, id", [10, 10, 11, 11]),
        ("upper(s) > '9' OR id = 3, id DESC", [11, 11, 10, 10]),
        ("NOT (upper(s) < '8'), id", [0, 0, 1, 1]),
        ("id < 2 AND abs(id) >= 1 DESC, id", [1, 1, 0, 0]),
        ("CASE WHEN abs(id) > 6 THEN id END > 8, id", [7, 7, 8, 8]),
    ] {
        let sql = format!("SELECT id FROM t ORDER BY {key} LIMIT 4");
        assert_eq!(query_ints(&ctx, &sql).await, expected, "{key}");
        let sql = format!("SELECT id FROM (SELECT id FROM t ORDER BY {key}) LIMIT 4");
        assert_eq!(query_ints(&ctx, &sql).await, expected, "{key}");
        let sql = format!(
            "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY {key}) AS n FROM t) WHERE n < 5 ORDER BY n"
        );
        assert_eq!(query_ints(&ctx, &sql).await, expected, "{key}");
    }
    let head =
        query_text(&ctx, "SELECT *, row_number() OVER (ORDER BY length(s) > 1) FROM a LIMIT 0")
            .await;
    assert!(!head.contains("__serrate_key"), "{head}");
}

/// When this test fails, `sql::workarounds::grouping::computed_keys` can be removed.
#[tokio::test]
async fn stock_comparisons_of_functions_are_still_no_keys() {
    let config = SessionConfig::new().with_target_partitions(4);
    let ctx = SessionContext::new_with_config(config);
    let rows = "(SELECT value::VARCHAR AS s FROM range(0, 12) UNION ALL SELECT 'a')";
    let e = stock_error(&ctx, &format!("SELECT s FROM {rows} ORDER BY length(s) > 1")).await;
    assert!(e.contains("does not satisfy order requirements"), "{e}");
}

/// Ordered aggregates of distinct values over rows that are sorted in the opposite order, and
/// results.
const REVERSED: [(&str, &str); 4] = [
    (
        "SELECT array_agg(DISTINCT s ORDER BY s) FROM (SELECT s FROM w ORDER BY s DESC LIMIT 10)",
        "[a, b, c]",
    ),
    (
        "SELECT string_agg(DISTINCT s, '' ORDER BY s) FROM (SELECT s FROM w ORDER BY s DESC LIMIT 10)",
        "abc",
    ),
    (
        "SELECT array_agg(DISTINCT s ORDER BY s) AS a, array_agg(DISTINCT s ORDER BY s DESC) AS b FROM w",
        "[a, b, c] | [c, b, a]",
    ),
    (
        "SELECT array_agg(s ORDER BY s) AS a, array_agg(s ORDER BY s DESC) AS b FROM w",
        "[a, b, c] | [c, b, a]",
    ),
];

const LETTERS: &str =
    "CREATE TABLE w AS SELECT * FROM (VALUES (1, 'b'), (2, 'a'), (3, 'c')) v(id, s)";

#[tokio::test]
async fn ordered_aggregates_of_distinct_values_keep_their_order() {
    for partitions in [1, 2] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        query_batches(&ctx, LETTERS).await.unwrap();
        for (sql, expected) in REVERSED {
            let found = query_text(&ctx, sql).await;
            assert!(found.contains(expected), "{sql}\n{found}");
        }
    }
}

/// When this test fails, `MendedAggregate` of `functions::aggregate` need not handle DISTINCT.
#[tokio::test]
async fn stock_reversed_distinct_aggregates_are_still_wrong() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    stock_batches(&ctx, LETTERS).await.unwrap();
    for (sql, expected) in &REVERSED[..3] {
        let found = stock_text(&ctx, sql).await;
        assert!(!found.contains(expected), "{sql}\n{found}");
    }
}

/// Strings in a dictionary array, as MEDS files store codes.
const CODES: &str = "CREATE TABLE c AS SELECT id, arrow_cast(s, 'Dictionary(Int32, Utf8)') AS s
    FROM (VALUES (1, 'b'), (1, 'a'), (2, 'c'), (2, NULL), (1, 'b')) v(id, s)";

#[tokio::test]
async fn distinct_strings_of_dictionaries_are_sorted() {
    for partitions in [1, 2] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        query_batches(&ctx, CODES).await.unwrap();
        for (sql, expected) in [
            ("SELECT string_agg(DISTINCT s, '-' ORDER BY s) FROM c", "a-b-c"),
            ("SELECT string_agg(DISTINCT s, '-' ORDER BY s DESC NULLS LAST) FROM c", "c-b-a"),
            (
                "SELECT string_agg(DISTINCT s, '-' ORDER BY s) || '; ' || string_agg(DISTINCT s, '-' ORDER BY s DESC) FROM c",
                "a-b-c; c-b-a",
            ),
            (
                "SELECT string_agg(t, '; ' ORDER BY id) FROM (SELECT id, string_agg(DISTINCT s, '-' ORDER BY s) AS t FROM c GROUP BY id)",
                "a-b; c",
            ),
        ] {
            let found = query_text(&ctx, sql).await;
            assert!(found.contains(expected), "{sql}\n{found}");
        }
    }
}

/// When this test fails, `find_sorted_argument` of `functions::aggregate` can be removed.
#[tokio::test]
async fn stock_texts_of_dictionaries_are_still_no_keys() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, CODES).await.unwrap();
    let e = stock_error(&ctx, "SELECT string_agg(DISTINCT s, '-' ORDER BY s) FROM c").await;
    assert!(e.contains("must appear in argument list"), "{e}");
}

/// Percentiles of so many groups that the partial aggregation passes rows on without aggregating
/// them.
const PERCENTILES: [&str; 2] = [
    "CREATE TABLE b AS SELECT value AS k, value % 7 AS x FROM range(0, 1000)",
    "SELECT CAST(count(*) AS BIGINT) FROM
     (SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS q FROM b GROUP BY k) WHERE q >= 0",
];

fn configure_skipping() -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(2)
        .with_batch_size(8)
        .set_usize("datafusion.execution.skip_partial_aggregation_probe_rows_threshold", 1)
        .set_str("datafusion.execution.skip_partial_aggregation_probe_ratio_threshold", "0.0")
}

#[tokio::test]
async fn percentiles_of_many_groups_are_computed() {
    let ctx = serrate::sql::session_with(configure_skipping());
    query_batches(&ctx, PERCENTILES[0]).await.unwrap();
    assert_eq!(query_int(&ctx, PERCENTILES[1]).await, 1000);
}

/// When this test fails, `functions::aggregate::quantile` can be removed if its weights are exact,
/// too.
#[tokio::test]
async fn stock_percentiles_of_many_groups_still_panic() {
    let ctx = SessionContext::new_with_config(configure_skipping());
    stock_batches(&ctx, PERCENTILES[0]).await.unwrap();
    let frame = ctx.sql(PERCENTILES[1]).await.unwrap();
    let found = tokio::spawn(frame.collect()).await;
    assert!(!matches!(found, Ok(Ok(_))));
}

const LEADS: [&str; 2] = [
    "CREATE TABLE w AS SELECT * FROM (VALUES (1, 0), (2, 8), (3, 2), (4, 3), (5, 5), (6, NULL), (7, -3)) v(id, x)",
    "SELECT coalesce(lead(x, 2) IGNORE NULLS OVER (ORDER BY id), 0) FROM w ORDER BY id",
];

#[tokio::test]
async fn lead_and_lag_ignore_nulls() {
    let ctx = create_parallel_session();
    query_batches(&ctx, LEADS[0]).await.unwrap();
    assert_eq!(query_ints(&ctx, LEADS[1]).await, [2, 3, 5, -3, 0, 0, 0]);
    let one_ahead =
        "SELECT coalesce(lead(x) IGNORE NULLS OVER (ORDER BY id), 0) FROM w ORDER BY id";
    assert_eq!(query_ints(&ctx, one_ahead).await, [8, 2, 3, 5, -3, -3, 0]);
    let reversed = "SELECT coalesce(lag(x, 2) IGNORE NULLS OVER (ORDER BY id DESC), 0) FROM
        (SELECT * FROM w ORDER BY id LIMIT 10) ORDER BY id";
    assert_eq!(query_ints(&ctx, reversed).await, [2, 3, 5, -3, 0, 0, 0]);
}

/// When this test fails, `functions::lead` can be removed.
#[tokio::test]
async fn stock_leads_over_null_are_still_wrong() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    stock_batches(&ctx, LEADS[0]).await.unwrap();
    assert_ne!(stock_ints(&ctx, LEADS[1]).await, [2, 3, 5, -3, 0, 0, 0]);
}

/// LIMIT returns the first rows of a sorted subquery, CTE or view.
#[tokio::test]
async fn limits_take_the_first_rows_of_sorted_subqueries() {
    let ctx = create_parallel_session();
    query_batches(
        &ctx,
        "CREATE TABLE s AS SELECT * FROM (VALUES (3, 'c'), (1, 'a'), (2, 'b')) t(id, v)",
    )
    .await
    .unwrap();
    query_batches(&ctx, "CREATE VIEW v AS SELECT * FROM s ORDER BY id").await.unwrap();
    for (sql, expected) in [
        ("SELECT id FROM (SELECT * FROM s ORDER BY id) LIMIT 1", 1),
        ("WITH q AS (SELECT * FROM s ORDER BY id) SELECT id FROM q LIMIT 1", 1),
        ("SELECT id FROM v LIMIT 1", 1),
        ("SELECT id FROM (SELECT * FROM s ORDER BY id) LIMIT 1 OFFSET 1", 2),
        ("SELECT id FROM (SELECT * FROM s ORDER BY id DESC) WHERE id < 3 LIMIT 1", 2),
    ] {
        assert_eq!(query_ints(&ctx, sql).await, [expected], "{sql}");
    }
}

/// An aggregate that DataFusion computes from statistics is a constant below an outer join, and
/// NULL in some rows above it.
#[tokio::test]
async fn aggregates_of_statistics_are_sorted_above_outer_joins() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("w.parquet"));
    query_batches(&ctx, "CREATE TABLE w AS SELECT value AS x FROM range(0, 9)").await.unwrap();
    query_batches(&ctx, &format!("COPY w TO '{path}'")).await.unwrap();
    for (from, aggregate) in [("w".to_owned(), "count(*) - 5"), (format!("'{path}'"), "max(x)")] {
        let (c, x) = if aggregate == "max(x)" { (8, 8) } else { (4, 4) };
        let join =
            format!("{from} AS w LEFT JOIN (SELECT {aggregate} AS c FROM {from}) a ON a.c = w.x");
        let first = format!("SELECT x FROM {join} ORDER BY c, x LIMIT 1");
        assert_eq!(query_ints(&ctx, &first).await, [x], "{first}");
        let all = format!("SELECT coalesce(c, -1) FROM {join} ORDER BY c DESC NULLS LAST");
        assert_eq!(query_ints(&ctx, &all).await, [c, -1, -1, -1, -1, -1, -1, -1, -1], "{all}");
    }
}

/// Writes a Parquet file of row groups of three rows. Each row group is sorted by `x`, and the
/// footer says so.
fn write_sorted_groups(path: &Path, x: ArrayRef) {
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::file::metadata::SortingColumn;
    use datafusion::parquet::file::properties::WriterProperties;
    let batch = RecordBatch::try_from_iter([("x", x)]).unwrap();
    let sorted = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
    let properties = WriterProperties::builder()
        .set_sorting_columns(Some(vec![sorted]))
        .set_max_row_group_row_count(Some(3))
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[tokio::test]
async fn orders_of_row_groups_are_not_those_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    write_sorted_groups(&dir.path().join("a.parquet"), make_ints([1, 2, 3, 0, 2, 4]));
    let nulls = |values: [Option<i64>; 3]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    std::fs::create_dir(dir.path().join("n")).unwrap();
    write_sorted_groups(&dir.path().join("n/1.parquet"), nulls([Some(1), None, None]));
    write_sorted_groups(&dir.path().join("n/2.parquet"), nulls([Some(2), Some(3), None]));
    let (file, folder) =
        (display_path(&dir.path().join("a.parquet")), display_path(&dir.path().join("n")));
    expect_rows(
        &[],
        &[
            (&format!("SELECT x FROM '{file}' ORDER BY x"), "0; 1; 2; 2; 3; 4"),
            (
                &format!("SELECT x, count(*) FROM '{file}' GROUP BY x ORDER BY x"),
                "0 1; 1 1; 2 2; 3 1; 4 1",
            ),
            (&format!("SELECT x FROM '{folder}/' ORDER BY x LIMIT 2"), "1; 2"),
            (&format!("SELECT count(*) FROM (SELECT DISTINCT x FROM '{folder}/')"), "4"),
        ],
    )
    .await;
}

#[tokio::test]
async fn stock_orders_of_row_groups_are_still_taken_for_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    write_sorted_groups(&path, make_ints([1, 2, 3, 0, 2, 4]));
    let config = SessionConfig::new().with_target_partitions(1);
    let ctx = SessionContext::new_with_config(config);
    ctx.register_parquet("t", &display_path(&path), Default::default()).await.unwrap();
    assert_eq!(stock_ints(&ctx, "SELECT x FROM t ORDER BY x").await, [1, 2, 3, 0, 2, 4]);
}
