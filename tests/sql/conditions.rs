//! Conditions that can fail for a value, or are volatile, are evaluated only for the rows for which
//! SQL requires their value, over files as over tables in memory.

use super::*;

/// Tables `a` and `b`. `1 / x`, `CAST(s AS INT)` and `ragged_sum(l)` fail for the row of `a` with
/// the id 2, which matches no row of `b`.
const TABLES: [(&str, &str); 2] = [
    (
        "a",
        "SELECT * FROM (VALUES (1, 1, '7', [1, 2], true), (2, 0, 'x', [9223372036854775807, 9], false),
         (3, 2, '8', [3], true), (4, 1, '9', [4], true)) t(id, x, s, l, ok)",
    ),
    ("b", "SELECT * FROM (VALUES (1, 5), (3, 6), (5, 7)) t(id, y)"),
];

/// Statements over the tables `{a}` and `{b}`, and the values of their first column.
const STATEMENTS: [(&str, &str); 34] = [
    // Joins.
    ("SELECT a.id FROM {a} a JOIN {b} b ON a.id = b.id WHERE 1 / a.x >= 0", "1 3"),
    ("SELECT a.id FROM {a} a JOIN {b} b ON a.id = b.id WHERE ragged_sum(a.l) > 0", "1 3"),
    ("SELECT a.id FROM {a} a JOIN {b} b USING (id) WHERE CAST(a.s AS INT) > 7", "3"),
    ("SELECT a.id FROM {a} a JOIN {b} b ON a.id = b.id AND 1 / a.x >= 0", "1 3"),
    ("SELECT b.id FROM {b} b LEFT JOIN {a} a ON a.id = b.id AND 1 / a.x >= 0", "1 3 5"),
    ("SELECT a.id FROM {a} a LEFT JOIN {b} b ON a.id = b.id AND 1 / a.x >= 0", "1 2 3 4"),
    ("SELECT a.id FROM {a} a LEFT JOIN {b} b ON a.ok AND 1 / a.x >= 0 AND a.id = b.id", "1 2 3 4"),
    (
        "SELECT b.id FROM {a} a FULL JOIN {b} b ON a.id = b.id AND 1 / a.x > 0 WHERE b.id > 0",
        "1 3 5",
    ),
    ("SELECT a.id FROM {a} a JOIN {b} b ON a.id = b.id AND CAST(a.s AS INT) = b.y + 2", "1 3"),
    ("SELECT a.id FROM {a} a, {b} b WHERE a.id = b.id AND CAST(a.s AS INT) = b.y + 2", "1 3"),
    ("SELECT a.id FROM {a} a, {b} b WHERE a.ok AND CAST(a.s AS INT) = b.y + 2", "1 3 4"),
    ("SELECT a.id FROM {a} a JOIN {b} b ON a.x < b.y AND a.ok AND 3 / a.x > b.id", "1 4"),
    (
        "SELECT a.id FROM {a} a JOIN {b} b ON a.id = b.id AND a.x <> b.y AND 1 / (a.x - b.y) = 0",
        "1 3",
    ),
    (
        "SELECT b.id FROM {b} b LEFT JOIN {a} a ON a.id = b.id WHERE a.id IS NULL OR 1 / a.x >= 0",
        "1 3 5",
    ),
    ("SELECT id FROM {a} WHERE id IN (SELECT id FROM {b}) AND 1 / x >= 0", "1 3"),
    ("SELECT id FROM {a} WHERE 1 / x >= 0 AND id IN (SELECT id FROM {b})", "1 3"),
    (
        "SELECT id FROM {a} a WHERE EXISTS (SELECT 1 FROM {b} b WHERE a.id = b.id) AND 1 / x >= 0",
        "1 3",
    ),
    (
        "SELECT id FROM {a} a WHERE NOT EXISTS (SELECT 1 FROM {b} b WHERE b.id = a.id - 1) AND 1 / x > 0",
        "1",
    ),
    (
        "SELECT id FROM {a} a WHERE EXISTS (SELECT 1 FROM {b} b WHERE a.id = b.id AND 1 / a.x >= 0)",
        "1 3",
    ),
    // Conditions that can fail next to, and above, the conditions that exclude the failing row.
    ("SELECT id FROM {a} WHERE ok AND 1 / x > 0", "1 4"),
    ("SELECT id FROM {a} WHERE x <> 0 AND 4 / x > 1 AND 1 / (id - 2) >= 0", "3 4"),
    ("SELECT id FROM (SELECT id, x FROM {a} WHERE x <> 0) WHERE 1 / x > 0", "1 4"),
    ("SELECT id FROM (SELECT id, 1 / x AS y FROM {a} WHERE ok) WHERE y > 0", "1 4"),
    ("SELECT id FROM {a} WHERE ragged_any(l < 5) AND 1 / x > 0", "1 4"),
    ("SELECT id FROM {a} WHERE CAST(id AS VARCHAR) <> '2' AND 1 / x > 0", "1 4"),
    ("SELECT id FROM {a} WHERE x = 0 OR 1 / x > 0", "1 2 4"),
    ("SELECT id FROM {a} WHERE NOT (x = 0 OR 1 / x > 0)", "3"),
    ("SELECT id FROM {a} WHERE CASE WHEN x <> 0 THEN 1 / x > 0 ELSE false END", "1 4"),
    ("SELECT id FROM {a} WHERE CASE WHEN x = 0 THEN NULL WHEN 1 / x > 0 THEN ok END", "1 4"),
    ("SELECT x FROM {a} WHERE x <> 0 GROUP BY x HAVING 2 / x > 0 AND count(*) > 0", "1 2"),
    ("SELECT x FROM (SELECT DISTINCT x FROM {a} WHERE ok) WHERE 2 / x > 1", "1"),
    (
        "SELECT id FROM (SELECT id, x, ok FROM {a} UNION ALL SELECT id, y, true FROM {b}) WHERE ok AND 9 / x > 4",
        "1 4",
    ),
    (
        "SELECT id FROM (SELECT id, x, ok, count(*) OVER (PARTITION BY x) n FROM {a}) WHERE ok AND 1 / x > 0",
        "1 4",
    ),
    (
        "SELECT id FROM (SELECT id, x, unnest(l) u FROM {a} WHERE ok) WHERE u < 3 AND 1 / x > 0",
        "1 1",
    ),
];

async fn query_ids(ctx: &SessionContext, sql: &str) -> String {
    let sql = format!("SELECT string_agg(CAST(v AS VARCHAR), ' ' ORDER BY v) FROM ({sql}) q(v)");
    let batches = run_query(ctx, &sql).await;
    let column = datafusion::arrow::compute::cast(
        batches[0].column(0),
        &datafusion::arrow::datatypes::DataType::Utf8,
    );
    column.unwrap().as_string::<i32>().value(0).to_owned()
}

/// Returns sessions that differ in partitions, in batch size, and in the order of conditions in
/// scans.
fn create_sessions() -> Vec<SessionContext> {
    let config = SessionConfig::new;
    vec![
        create_parallel_session(),
        serrate::sql::session_with(config().with_target_partitions(1).with_batch_size(1)),
        serrate::sql::session_with(
            config().set_bool("datafusion.execution.parquet.reorder_filters", true),
        ),
    ]
}

#[tokio::test]
async fn conditions_that_can_fail_are_evaluated_after_others() {
    for ctx in create_sessions() {
        let dir = tempfile::tempdir().unwrap();
        for (name, query) in TABLES {
            query_batches(&ctx, &format!("CREATE TABLE {name} AS {query}")).await.unwrap();
            let file = display_path(&dir.path().join(format!("{name}.parquet")));
            query_batches(&ctx, &format!("COPY ({query}) TO '{file}'")).await.unwrap();
        }
        for (sql, expected) in STATEMENTS {
            let [a, b] = ["a", "b"].map(|n| display_path(&dir.path().join(format!("{n}.parquet"))));
            let files = sql.replace("{a}", &format!("'{a}'")).replace("{b}", &format!("'{b}'"));
            assert_eq!(query_ids(&ctx, &sql.replace(['{', '}'], "")).await, expected, "{sql}");
            assert_eq!(query_ids(&ctx, &files).await, expected, "{files}");
        }
    }
}

/// The Parquet reader evaluates these conditions, but its errors do not blame the file.
#[tokio::test]
async fn conditions_of_scans_fail_as_filters_do() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let query = "SELECT * FROM (VALUES (1, 'a'), (0, '2')) v(n, s)";
    let file = display_path(&dir.path().join("t.parquet"));
    let setup = [format!("CREATE TABLE t AS {query}"), format!("COPY ({query}) TO '{file}'")];
    run_all(&ctx, &setup).await;
    for condition in ["10 / n > 2", "s::INT = 2", "make_date(n, 2, 30) > DATE '2020-01-01'"] {
        let of_table = error(&ctx, &format!("SELECT n FROM t WHERE {condition}")).await;
        let of_file = error(&ctx, &format!("SELECT n FROM '{file}' WHERE {condition}")).await;
        assert_eq!(of_file, of_table, "{condition}");
    }
}

#[tokio::test]
async fn boolean_operands_are_evaluated_only_for_rows_that_need_them() {
    let ctx = create_parallel_session();
    query_batches(&ctx, &format!("CREATE TABLE a AS {}", TABLES[0].1)).await.unwrap();
    for (e, expected) in [
        ("x <> 0 AND 2 / x > 1", "true false false true"),
        ("x = 0 OR 2 / x > 1", "true true false true"),
        ("nullif(x, 2) <> 0 AND 2 / x > 1", "true false false true"),
        ("nullif(x, 2) <> 0 AND 4 / x > 1", "true false NULL true"),
        ("nullif(x, 2) = 0 OR 4 / x > 1", "true true true true"),
        ("nullif(x, 2) = 0 OR 4 / x < 1", "false true NULL false"),
        ("CASE WHEN x <> 0 THEN 2 / x > 1 END", "true NULL false true"),
        ("CASE WHEN x <> 0 THEN 2 / x > 1 ELSE x = 0 END", "true true false true"),
    ] {
        let sql = format!(
            "SELECT string_agg(coalesce(CAST(v AS VARCHAR), 'NULL'), ' ' ORDER BY id) AS v
             FROM (SELECT id, {e} AS v FROM a)"
        );
        let text = query_text(&ctx, &sql).await;
        assert!(text.contains(&format!(" {expected} ")), "{e}\n{text}");
    }
}

#[tokio::test]
async fn a_condition_that_fails_for_a_row_of_the_result_fails() {
    let ctx = create_parallel_session();
    for (name, query) in TABLES {
        query_batches(&ctx, &format!("CREATE TABLE {name} AS {query}")).await.unwrap();
    }
    for sql in [
        "SELECT id FROM a WHERE 1 / x > 0",
        "SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE 1 / a.x > 0",
        "SELECT a.id FROM a JOIN b ON a.x < b.y AND 1 / a.x > 0",
        "SELECT id FROM a WHERE NOT ok AND 1 / x > 0",
    ] {
        assert!(error(&ctx, sql).await.contains("Divide by zero"), "{sql}");
    }
}

#[tokio::test]
async fn conditions_without_columns_stay_above_an_aggregate_without_keys() {
    let ctx = create_parallel_session();
    for (name, query) in TABLES {
        query_batches(&ctx, &format!("CREATE TABLE {name} AS {query}")).await.unwrap();
    }
    for sql in [
        "SELECT count(*) FROM a HAVING random() > 2",
        "SELECT count(*) FROM a HAVING (SELECT max(y) FROM b) > 100",
        "SELECT * FROM (SELECT sum(x) FROM a) WHERE random() > 2",
        "SELECT * FROM (SELECT 'x' AS s, count(*) AS n FROM a) WHERE s = 'b'",
        "SELECT * FROM (SELECT 'x' AS s, count(*) AS n FROM a UNION ALL SELECT 'y', count(*) FROM a) WHERE s = 'z'",
        "SELECT * FROM (SELECT x, 1 AS n FROM a GROUP BY ROLLUP (x)) WHERE n = 2",
        "SELECT * FROM (SELECT x, 1 AS n FROM a GROUP BY GROUPING SETS ((x), ())) WHERE n = 2",
        "SELECT * FROM (SELECT x, 1 AS n FROM a GROUP BY CUBE (x)) WHERE n = 2",
    ] {
        let batches = query_batches(&ctx, sql).await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 0, "{sql}");
    }
}

/// A volatile condition is evaluated for each pair of rows, not for each row of one side.
#[tokio::test]
async fn volatile_conditions_stay_above_joins() {
    let ctx = create_parallel_session();
    for (name, query) in TABLES {
        query_batches(&ctx, &format!("CREATE TABLE {name} AS {query}")).await.unwrap();
    }
    for sql in [
        "SELECT a.id FROM a JOIN b ON a.id = b.id WHERE random() < 0.5",
        "SELECT a.id FROM a JOIN b ON a.id = b.id WHERE a.x < random()",
        "SELECT a.id FROM a JOIN b ON a.id = b.id AND a.x < random()",
    ] {
        let plan = query_text(&ctx, &format!("EXPLAIN {sql}")).await;
        let line = |what: &str| plan.lines().position(|line| line.contains(what)).unwrap();
        assert!(line("evaluated_here") <= line("Join: "), "{plan}");
    }
}

/// Conditions that cannot fail are still pushed down.
#[tokio::test]
async fn conditions_that_cannot_fail_are_pushed_down() {
    let ctx = create_parallel_session();
    for (name, query) in TABLES {
        query_batches(&ctx, &format!("CREATE TABLE {name} AS {query}")).await.unwrap();
    }
    for condition in [
        "a.x = 1",
        "a.x + 1 > 2",
        "a.x % 2 = 1",
        "upper(a.s) = 'A'",
        "a.s LIKE '7%'",
        "a.x IN (1, 2)",
        "ragged_any(a.l == 4)",
        "a.l[1] = 3",
        "array_has(a.l, 4)",
        "CAST(a.x AS DOUBLE) > 0.5",
        "a.x > (SELECT min(y) FROM b)",
        "NOT a.ok OR a.x BETWEEN 1 AND 2",
    ] {
        let sql =
            format!("EXPLAIN SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE {condition}");
        let plan = query_text(&ctx, &sql).await;
        assert!(!plan.contains("evaluated_here"), "{plan}");
        let (join, filter) = (plan.find("Join"), plan.find("Filter: "));
        assert!(filter > join, "{plan}");
    }
}

/// DataFusion pushes conditions down even if they can fail. When this test fails, check which parts
/// of `sql::workarounds::guards::conditions` can be removed.
#[tokio::test]
async fn stock_conditions_still_move() {
    let stock = SessionContext::new();
    for (name, query) in TABLES {
        let query = query.replace('[', "make_array(").replace(']', ")");
        stock_batches(&stock, &format!("CREATE TABLE {name} AS {query}")).await.unwrap();
    }
    for sql in [
        "SELECT a.id FROM a JOIN b ON a.id = b.id WHERE 1 / a.x >= 0",
        "SELECT id FROM (SELECT id, x FROM a WHERE x <> 0) WHERE 1 / x > 0",
        "SELECT CASE WHEN x <> 0 THEN 1 / x > 0 ELSE false END FROM a",
    ] {
        assert!(stock_error(&stock, sql).await.contains("Divide by zero"), "{sql}");
    }
    let found = stock_batches(&stock, "SELECT count(*) FROM a HAVING random() > 2").await.unwrap();
    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 1, "none is right");
}

/// A query fails over files if and only if it fails over tables in memory, although only scans of
/// files receive the dynamic filter of a join, which excludes rows.
#[tokio::test]
async fn expressions_that_fail_do_so_over_files_as_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for (name, query) in TABLES {
        query_batches(&ctx, &format!("CREATE TABLE {name} AS {query}")).await.unwrap();
        let file = display_path(&dir.path().join(format!("{name}.parquet")));
        query_batches(&ctx, &format!("COPY ({query}) TO '{file}'")).await.unwrap();
    }
    let [a, b] = ["a", "b"].map(|n| display_path(&dir.path().join(format!("{n}.parquet"))));
    for sql in [
        "SELECT id, c FROM (SELECT id, ragged_cumsum(l) AS c FROM {a}) WHERE id IN (SELECT id FROM {b})",
        "SELECT q.id, c FROM {b} b JOIN (SELECT id, 1 / x AS c FROM {a}) q ON q.id = b.id",
        "SELECT id, c FROM (SELECT id, ragged_cumprod(l) AS c FROM {a}) WHERE id IN (SELECT id FROM {b} WHERE id = 1)",
        "SELECT id, CAST(s AS INT) AS c FROM {a} ORDER BY id LIMIT 1",
    ] {
        let files = sql.replace("{a}", &format!("'{a}'")).replace("{b}", &format!("'{b}'"));
        let memory = query_batches(&ctx, &sql.replace(['{', '}'], "")).await;
        let files = query_batches(&ctx, &files).await;
        assert_eq!(memory.is_err(), files.is_err(), "{sql}\n{memory:?}\n{files:?}");
    }
}

/// DataFusion moves a projection to fewer columns below a filter. A projection that can fail stays
/// above it.
#[tokio::test]
async fn projections_that_can_fail_stay_above_filters() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for extension in ["csv", "arrow", "json", "parquet"] {
        let file = display_path(&dir.path().join(format!("t.{extension}")));
        let copy =
            format!("COPY (SELECT * FROM (VALUES (0, 1, 2), (1, 2, 3)) t(x, y, z)) TO '{file}'");
        query_batches(&ctx, &copy).await.unwrap();
        for (made, expected) in [
            ("y / x + z", "1 5"),
            ("ragged_sum(ragged_mod([y, z], x))", "1 0"),
            ("ragged_take([y], [x - 2])", "1 [2]"),
        ] {
            let sql = format!("SELECT x, {made} FROM '{file}' WHERE x <> 0");
            assert_eq!(rows_or_error(&ctx, &sql).await, expected, "{sql}");
        }
    }
}

/// When this test fails, `GuardedFilterExec` of `sql::workarounds::guards::guarded_rules` can be
/// removed.
#[tokio::test]
async fn stock_projections_still_move_below_filters() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.csv");
    std::fs::write(&file, "x,y,z\n0,1,2\n1,2,3\n").unwrap();
    let stock = SessionContext::new();
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{}' OPTIONS ('format.has_header' 'true')",
        display_path(&file)
    );
    stock_batches(&stock, &create).await.unwrap();
    let message = stock_error(&stock, "SELECT x, y / x + z FROM t WHERE x <> 0").await;
    assert!(message.contains("Divide by zero"), "{message}");
}

/// The elements of an IN list may be expressions of the row, some of which are NULL.
#[tokio::test]
async fn in_lists_of_computed_values_are_evaluated_per_row() {
    let ctx = create_parallel_session();
    let t = "(VALUES (1, true), (2, false), (3, NULL)) t(id, p)";
    for (condition, expected) in [
        ("5 IN (CASE WHEN NOT p THEN 5 END, 6)", 2),
        ("5 IN (CASE WHEN p THEN 5 END, NULL)", 1),
        ("5 NOT IN (CASE WHEN NOT p THEN 5 ELSE 6 END, 7)", 4),
        ("(5 NOT IN (CASE WHEN p THEN 6 END, 7)) IS NULL", 5),
        ("id IN (coalesce(nullif(id, 2), 7), 9)", 4),
        ("id IN (CASE WHEN p THEN 1 ELSE 2 END, CASE WHEN p THEN 3 ELSE 3 END)", 6),
        // The elements are constants whose evaluation can fail.
        ("5 IN (CASE WHEN 'a' ~ '[0-9]' AND 'a'::BIGINT > 1 THEN 5 ELSE 4 END, 6)", 0),
        ("5 NOT IN (CASE WHEN 'a' ~ '[a-z]' OR 'a'::BIGINT > 1 THEN 4 ELSE 5 END, 6)", 6),
    ] {
        let sql = format!("SELECT coalesce(sum(id), 0) FROM {t} WHERE {condition}");
        assert_eq!(query_int(&ctx, &sql).await, expected, "{condition}");
        let sql = format!("SELECT coalesce(sum(CASE WHEN {condition} THEN id END), 0) FROM {t}");
        assert_eq!(query_int(&ctx, &sql).await, expected, "{condition}");
    }
}

/// The elements are columns of a subquery, into which the optimizer pushes the condition.
#[tokio::test]
async fn in_lists_of_computed_columns_are_evaluated_per_row() {
    let ctx = create_parallel_session();
    let t = "(SELECT id, CASE WHEN p THEN 5 END AS c, coalesce(nullif(id, 2), 7) AS d
        FROM (VALUES (1, true), (2, false), (3, NULL)) t(id, p))";
    for (condition, expected) in [
        ("5 IN (c, 6)", 1),
        ("6 NOT IN (c, 7)", 1),
        ("(5 IN (c, 6)) IS NULL", 5),
        ("id IN (d, 9)", 4),
        ("5 IN (c, 6) AND id IN (SELECT 1)", 1),
    ] {
        let sql = format!("SELECT coalesce(sum(id), 0) FROM {t} WHERE {condition}");
        assert_eq!(query_int(&ctx, &sql).await, expected, "{condition}");
        let sql = format!(
            "SELECT coalesce(sum(n), 0) FROM (SELECT id, sum(id) AS n FROM {t} WHERE {condition} GROUP BY id)"
        );
        assert_eq!(query_int(&ctx, &sql).await, expected, "{condition}");
    }
}

#[tokio::test]
async fn stock_lists_with_case_are_still_wrong() {
    let sql = "SELECT id FROM (VALUES (1, true), (2, false)) t(id, p) WHERE 5 IN (CASE WHEN NOT p THEN 5 END, 6)";
    let found = SessionContext::new().sql(sql).await.unwrap().collect().await.unwrap();
    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 2, "one is right");
}

/// AND, OR and CASE in lambdas evaluate an operand only for the elements that need it.
#[tokio::test]
async fn lambdas_evaluate_operands_only_for_elements_that_need_them() {
    let ctx = create_parallel_session();
    for (sql, expected) in [
        ("list_filter(l, v -> v <> 0 AND 10 / v > 1)", "[5]"),
        ("list_filter([0, 5, 20], v -> v <> 0 AND 10 / v > 1)", "[5]"),
        ("list_transform(l, v -> v = 0 OR 10 / v > 1)", "[true, true, false]"),
        (
            "list_transform(l, v -> CASE WHEN v <> 0 THEN 10 / v > 1 ELSE false END)",
            "[false, true, false]",
        ),
        ("ragged_map(l, lambda v: v <> 0 AND 10 / v > k)", "[false, true, false]"),
        ("list_filter(l, v -> k > 0 AND v > k AND 10 / v > 1)", "[5]"),
        (
            "list_filter(l, v -> v <> 0 AND len(list_filter([0, 5], w -> w <> 0 AND 20 / w > v)) = 0)",
            "[5, 20]",
        ),
    ] {
        let sql = format!("SELECT {sql} FROM (VALUES ([0, 5, 20], 1)) t(l, k)");
        let frame = serrate::sql::sql(&ctx, &sql).await.unwrap();
        let found = frame.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
        let cell = datafusion::arrow::util::display::array_value_to_string;
        assert_eq!(cell(found[0].column(0), 0).unwrap(), expected, "{sql}");
    }
}

#[tokio::test]
async fn constants_that_fail_are_evaluated_only_if_needed() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1), (2)) v(x)"],
        &[
            ("SELECT CASE WHEN FALSE THEN CAST('a' AS BIGINT) ELSE 1 END", "1"),
            ("SELECT CASE 1 WHEN 2 THEN CAST('a' || 'b' AS BIGINT) ELSE 1 END", "1"),
            ("SELECT CASE WHEN TRUE THEN 1 ELSE CAST('a' AS BIGINT) + 1 END", "1"),
            ("SELECT coalesce(1, CAST('a' AS BIGINT)), coalesce(NULL, 2, 1 / 0)", "1 2"),
            ("SELECT FALSE AND CAST('a' AS BIGINT) > 1, TRUE OR CAST('a' AS BIGINT) > 1", "false true"),
            ("SELECT FALSE AND 1 / 0 > 1, TRUE OR 1 / 0 > 1", "false true"),
            ("SELECT CASE WHEN x > 5 THEN CAST('a' AS BIGINT) ELSE x END FROM t ORDER BY x", "1; 2"),
            ("SELECT CASE WHEN x > 5 THEN DATE 'a' END FROM t", "NULL; NULL"),
            ("SELECT x > 5 AND CAST('a' AS BIGINT) > x FROM t", "false; false"),
            ("SELECT count(*) FROM t WHERE x > 5 AND CAST('a' AS BIGINT) > x", "0"),
            ("SELECT count(*) FROM t a JOIN t b ON a.x = b.x + 5 AND CAST('a' AS BIGINT) > a.x", "0"),
            ("SELECT list_transform([1, 2], v -> CASE WHEN v > 5 THEN CAST('a' AS BIGINT) ELSE v END)", "[1, 2]"),
            ("SELECT sum(CASE WHEN x > 5 THEN CAST('a' AS BIGINT) ELSE x END) FROM t", "3"),
            ("SELECT * FROM (VALUES (CASE WHEN false THEN CAST('a' AS BIGINT) ELSE 4 END))", "4"),
            ("SELECT s FROM (SELECT 'a' AS s FROM t) WHERE s ~ '[0-9]' AND CAST(s AS BIGINT) > 5", ""),
            ("SELECT s FROM (SELECT 'a' AS s, x FROM t) WHERE x > 5 AND CAST(s AS BIGINT) > x GROUP BY ROLLUP (s)", "NULL"),
        ],
    )
    .await;
    let ctx = create_parallel_session();
    for sql in [
        "SELECT CAST('a' AS BIGINT)",
        "SELECT CASE WHEN TRUE THEN CAST('a' AS BIGINT) ELSE 1 END",
        "SELECT TRUE AND CAST('a' AS BIGINT) > 1",
        "SELECT coalesce(NULL, CAST('a' AS BIGINT))",
        "SELECT CASE WHEN x > 1 THEN CAST('a' AS BIGINT) ELSE x END FROM (VALUES (1), (2)) t(x)",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("Cannot cast string 'a' to value of Int64 type"), "{sql}: {e}");
    }
}

/// When this test fails, `serrate_lazy_conditions` need not handle constants.
#[tokio::test]
async fn stock_constants_fail_where_nothing_asks() {
    let ctx = SessionContext::new();
    let e = stock_error(&ctx, "SELECT CASE WHEN FALSE THEN CAST('a' AS BIGINT) ELSE 1 END").await;
    assert!(e.contains("Cannot cast string 'a'"), "{e}");
}

#[tokio::test]
async fn bodies_of_lambdas_evaluate_operands_lazily() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES ([0, 1, 2], 0), ([0], 5)) v(x, y)"],
        &[
            ("SELECT list_filter(x, v -> v <> 0 AND 10 / v > 1) FROM t ORDER BY y", "[1, 2]; []"),
            ("SELECT list_filter([0, 1, 2], v -> v <> 0 AND 10 / v > 1)", "[1, 2]"),
            ("SELECT ragged_map(x, v -> v = 0 OR 10 / v > 5) FROM t ORDER BY y", "[true, true, false]; [true]"),
            ("SELECT list_transform(x, v -> CASE WHEN v <> 0 THEN 10 / v END) FROM t ORDER BY y", "[, 10, 5]; []"),
            ("SELECT list_any_match(x, v -> y <> 0 AND 10 / y > v) FROM t ORDER BY y", "false; true"),
            ("SELECT list_filter(x, v -> v <> 0 AND (v = 1 OR 10 / (v - 1) > 1)) FROM t ORDER BY y", "[1, 2]; []"),
            ("SELECT list_filter(x, v -> ragged_any(list_transform(x, w -> w <> 0 AND v / w > 1))) FROM t ORDER BY y", "[2]; []"),
        ],
    )
    .await;
}

#[tokio::test]
async fn join_conditions_are_evaluated_only_for_pairs_of_rows() {
    expect_rows(
        &["CREATE TABLE a AS SELECT * FROM (VALUES (0), (1)) v(x)", "CREATE TABLE b AS SELECT * FROM (VALUES (0)) v(y)"],
        &[
            ("SELECT * FROM a JOIN (SELECT * FROM b WHERE y > 5) b ON 1 / a.x > b.y", ""),
            ("SELECT x, y FROM a LEFT JOIN (SELECT * FROM b WHERE y > 5) b ON 1 / a.x > b.y ORDER BY x", "0 NULL; 1 NULL"),
            ("SELECT * FROM a JOIN b ON a.x > b.y AND 1 / a.x > b.y", "1 0"),
        ],
    )
    .await;
}

#[tokio::test]
async fn casts_in_branches_that_no_row_takes_do_not_fail() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES ('7'), ('x')) v(s)"],
        &[
            ("SELECT CASE WHEN false THEN CAST('' AS BIGINT) ELSE 1 END", "1"),
            ("SELECT CASE WHEN s = 'y' THEN CAST('x' AS BIGINT) ELSE 2 END FROM t", "2; 2"),
            ("SELECT count(*) FROM t WHERE s = 'y' AND CAST('x' AS BIGINT) = 1", "0"),
            (
                "SELECT CASE WHEN coalesce('', s) ~ '^[0-9]+$' THEN CAST(coalesce('', s) AS BIGINT) END FROM t",
                "NULL; NULL",
            ),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    for sql in ["SELECT CAST('x' AS BIGINT)", "SELECT 1 + CAST('x' AS BIGINT) AS a"] {
        let message = rows_or_error(&ctx, sql).await;
        assert!(message.contains("Cannot cast string 'x' to value of Int64 type"), "{message}");
    }
}

#[tokio::test]
async fn stock_casts_in_branches_still_fail() {
    let message = stock_error(
        &SessionContext::new(),
        "SELECT CASE WHEN false THEN CAST('' AS BIGINT) ELSE 1 END",
    )
    .await;
    assert!(message.contains("Cannot cast string"), "{message}");
}

#[tokio::test]
async fn join_keys_and_filtered_arguments_are_evaluated_only_for_their_rows() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 0), (1, 5), (2, 0), (2, NULL)) v(k, n)",
        "CREATE TABLE s AS SELECT * FROM (VALUES (1, 'x'), (2, '5')) v(k, s)",
    ];
    let guarded = "ON a.n <> 0 AND b.n = 25 / a.n";
    let cases = [
        (format!("SELECT a.k, a.n, b.n FROM t a LEFT JOIN t b {guarded} ORDER BY 1, 2"), "1 0 NULL; 1 5 5; 2 0 NULL; 2 NULL NULL"),
        (format!("SELECT count(*) FROM t a FULL JOIN t b {guarded}"), "7"),
        (format!("SELECT count(*) FROM t a JOIN t b {guarded}"), "1"),
        ("SELECT a.k FROM t a LEFT JOIN t b ON b.n <> 0 AND 25 / b.n = a.n AND a.n > 0 WHERE b.k IS NOT NULL".into(), "1"),
        ("SELECT a.k FROM t a LEFT JOIN t b ON a.n <> 0 AND 25 / a.n > b.n WHERE b.k IS NOT NULL ORDER BY b.n".into(), "1; 1"),
        ("SELECT k, n FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE a.n <> 0 AND b.n = 25 / a.n) ORDER BY 1, 2".into(), "1 0; 2 0; 2 NULL"),
        ("SELECT t.n FROM t LEFT JOIN s ON s.s ~ '^[0-9]+$' AND s.s::INT = t.n WHERE s.k = 2".into(), "5"),
        ("SELECT k, sum(100 / n) FILTER (WHERE n <> 0) FROM t GROUP BY k ORDER BY k".into(), "1 20; 2 NULL"),
        ("SELECT sum(100 / n) FILTER (WHERE n <> 0), count(*) FILTER (WHERE 1 / (n + 1) = 0) FROM t".into(), "20 1"),
        ("SELECT DISTINCT k, max(100 / n) FILTER (WHERE n <> 0) OVER (PARTITION BY k) FROM t ORDER BY k".into(), "1 20; 2 NULL"),
        ("SELECT DISTINCT k, max(CASE k WHEN 1 THEN 100 / n ELSE 50 / n END) FILTER (WHERE n <> 0) OVER (PARTITION BY k) FROM t ORDER BY k".into(), "1 20; 2 NULL"),
        ("SELECT array_agg(100 / n ORDER BY n) FILTER (WHERE n <> 0) FROM t".into(), "[20]"),
        ("SELECT array_agg(k ORDER BY 100 / n) FILTER (WHERE n <> 0) FROM t".into(), "[1]"),
        ("SELECT first_value(k ORDER BY 100 / n DESC) FILTER (WHERE n <> 0) FROM t".into(), "1"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn conditions_on_strings_guard_join_keys_that_can_fail() {
    let setup = [
        "CREATE TABLE va AS SELECT * FROM (VALUES ('1'), ('x'), (NULL)) v(v)",
        "CREATE TABLE vb AS SELECT * FROM (VALUES (1), (2)) v(w)",
        "CREATE TABLE vc(v VARCHAR)",
        "INSERT INTO vc VALUES ('1'), ('x')",
    ];
    let cases = [
        ("SELECT v, w FROM va, vb WHERE v ~ '^[0-9]+$' AND w = v::INT", "1 1"),
        ("SELECT v, w FROM vc, vb WHERE v ~ '^[0-9]+$' AND w = v::INT", "1 1"),
        ("SELECT v, w FROM vc, vb WHERE v LIKE '1%' AND w = v::INT", "1 1"),
        ("SELECT v, w FROM vc, vb WHERE v NOT ILIKE 'X%' AND w = v::INT", "1 1"),
        ("SELECT v FROM vc WHERE v ~ '^[0-9]+$' AND v::INT IN (SELECT w FROM vb)", "1"),
        (
            "SELECT v FROM va WHERE regexp_full_match(v, '[0-9]+') AND EXISTS (SELECT 1 FROM vb WHERE w = v::INT)",
            "1",
        ),
        ("SELECT v, w FROM va, vb WHERE v ~* '^[0-9]+$' AND w = v::INT", "1 1"),
        ("SELECT v, w FROM va, vb WHERE v !~ '[a-z]' AND w = v::INT", "1 1"),
        ("SELECT v, w FROM va, vb WHERE regexp_matches(v, '^[0-9]+$') AND w = v::INT", "1 1"),
        ("SELECT v, w FROM va, vb WHERE substr(v, 1, 1) = '1' AND w = v::INT", "1 1"),
        ("SELECT v, w FROM va, vb WHERE split_part(v, 'x', 1) = v AND w = v::INT", "1 1"),
        ("SELECT v FROM va WHERE v ~ '^[0-9]+$' AND v::INT IN (SELECT w FROM vb)", "1"),
        ("SELECT v FROM va JOIN vb ON va.v ~ '^[0-9]+$' AND vb.w = va.v::INT", "1"),
        (
            "SELECT v FROM va WHERE EXISTS (SELECT 1 FROM vb WHERE va.v ~ '^[0-9]+$' AND vb.w = va.v::INT)",
            "1",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn between_evaluates_its_operand_once() {
    let cases = [
        (
            "SELECT count(*) BETWEEN 19000 AND 21000 FROM generate_series(1, 100000) WHERE random() BETWEEN 0.4 AND 0.6",
            "true",
        ),
        (
            "SELECT count(*) BETWEEN 79000 AND 81000 FROM generate_series(1, 100000) WHERE random() NOT BETWEEN 0.4 AND 0.6",
            "true",
        ),
        ("SELECT count(*) FROM generate_series(1, 9) WHERE random() BETWEEN NULL AND 2", "0"),
        (
            "SELECT count(*) FROM generate_series(1, 9) WHERE random() BETWEEN NULL AND -1 IS NOT NULL",
            "9",
        ),
    ];
    expect_rows(&[], &cases).await;
}

/// When this test fails, `sql::workarounds::expressions::volatile_between` can be removed.
#[tokio::test]
async fn stock_between_still_evaluates_its_operand_twice() {
    let stock = SessionContext::new();
    let sql = "SELECT count(*) FROM generate_series(1, 100000) WHERE random() BETWEEN 0.4 AND 0.6";
    assert!(stock_ints(&stock, sql).await[0] > 30_000);
}

#[tokio::test]
async fn coalesce_evaluates_its_arguments_once() {
    const VALUE: &str = "CASE WHEN random() < 0.5 THEN 1 END";
    let count = |value: &str, condition: &str| {
        format!(
            "SELECT count(*) FROM (SELECT {value} AS c FROM generate_series(1, 500) g(x)) WHERE {condition}"
        )
    };
    let cases = [
        (
            format!(
                "SELECT count(c) BETWEEN 400 AND 600 FROM (SELECT coalesce({VALUE}, nullif(x, x)) AS c FROM generate_series(1, 1000) g(x))"
            ),
            "true",
        ),
        (count(&format!("coalesce({VALUE}, 2)"), "c IS NULL"), "0"),
        (count(&format!("coalesce(NULL, {VALUE}, 2)"), "c IS NULL"), "0"),
        (count(&format!("ifnull({VALUE}, 2)"), "c IS NULL OR c NOT IN (1, 2)"), "0"),
        (count(&format!("coalesce(x, {VALUE})"), "c = 7"), "1"),
        (count(&format!("coalesce({VALUE}, 2.5)"), "c NOT IN (1, 2.5)"), "0"),
        (
            "SELECT coalesce(nullif(random(), 2) * 0, 5) FROM generate_series(1, 2)".into(),
            "0.0; 0.0",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &cases).await;
}

/// When this test fails, `sql::workarounds::expressions::volatile_coalesce` can be removed.
#[tokio::test]
async fn stock_coalesce_still_evaluates_its_arguments_twice() {
    let stock = SessionContext::new();
    let sql = "SELECT count(*) FROM (SELECT coalesce(CASE WHEN random() < 0.5 THEN 1 END, NULLIF(value, value)) AS c FROM generate_series(1, 10000)) WHERE c IS NULL";
    assert!(stock_ints(&stock, sql).await[0] > 6_000);
}

#[tokio::test]
async fn comparisons_of_years_and_floor_evaluate_their_argument_once() {
    let cases = [
        (
            "SELECT count(*) BETWEEN 700 AND 1300 FROM generate_series(1, 10000) WHERE year(DATE '2020-01-01' + (random() * 3652)::INT) = 2026",
            "true",
        ),
        (
            "SELECT count(*) BETWEEN 8500 AND 11500 FROM generate_series(1, 100000) WHERE floor(random() * 10) = 3",
            "true",
        ),
        (
            "SELECT count(*) BETWEEN 18000 AND 22000 FROM generate_series(1, 100000) WHERE floor(random() * 10) IN (3, 5)",
            "true",
        ),
        (
            "SELECT count(*) BETWEEN 88500 AND 91500 FROM (SELECT floor(random() * 10) <> 3 AS c FROM generate_series(1, 100000)) WHERE c",
            "true",
        ),
    ];
    expect_rows(&[], &cases).await;
}

/// When this test fails, `preimage` in `sql::workarounds::types::times::wide` need not test for
/// random arguments.
#[tokio::test]
async fn stock_years_of_random_times_are_still_evaluated_twice() {
    let stock = SessionContext::new();
    let sql = "SELECT count(*) FROM generate_series(1, 10000) WHERE date_part('year', to_timestamp_seconds(1577836800 + CAST(random() * 315532800 AS BIGINT))) = 2026";
    assert!(stock_ints(&stock, sql).await[0] > 2_000);
}

/// Registers tables in memory whose partitions have no batches, or batches without rows.
fn with_empty_tables(ctx: &SessionContext) {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("flag", DataType::Boolean, true),
    ]));
    let batch = RecordBatch::new_empty(Arc::clone(&schema));
    for (name, partitions) in [
        ("batch", vec![vec![batch.clone()]]),
        ("batches", vec![vec![batch.clone()], vec![batch.clone()], vec![batch]]),
        ("none", vec![vec![], vec![], vec![]]),
    ] {
        let table = datafusion::datasource::MemTable::try_new(Arc::clone(&schema), partitions);
        ctx.register_table(name, Arc::new(table.unwrap())).unwrap();
    }
}

#[tokio::test]
async fn queries_of_tables_without_rows_evaluate_nothing() {
    let guard = "('a' ~ '^[0-9]+$' AND CAST('a' AS BIGINT) > 5)";
    for partitions in [1, 2, 4] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        with_empty_tables(&ctx);
        for table in ["batch", "batches", "none"] {
            for sql in [
                format!("SELECT x FROM (SELECT [[1]] AS x FROM {table}) WHERE {guard} ORDER BY x"),
                format!("SELECT [[1]] AS x FROM {table} WHERE {guard} IS NOT TRUE"),
                format!("SELECT CASE WHEN {guard} THEN 1 / (id - id) END AS x FROM {table}"),
                format!(
                    "SELECT CASE WHEN {guard} THEN CAST(1 AS BIGINT UNSIGNED) END AS c FROM {table} ORDER BY c"
                ),
                format!(
                    "WITH s AS (SELECT CAST(flag AS INT) % 3 AS e, id FROM {table} ORDER BY 2 DESC, 1)
                     SELECT min(e) AS m FROM s GROUP BY e ORDER BY 1"
                ),
                format!("SELECT DISTINCT id FROM (SELECT id, flag FROM {table} ORDER BY flag) ORDER BY 1"),
                format!(
                    "SELECT a.id FROM {table} a LEFT ANTI JOIN {table} b ON b.flag WHERE {guard} IS NOT TRUE"
                ),
            ] {
                assert_eq!(rows_or_error(&ctx, &sql).await, "", "{partitions}: {sql}");
            }
        }
    }
}

/// The joined subqueries are sorted, and their GROUP BY key is not the key of the join.
#[tokio::test]
async fn joins_of_sorted_groups_without_rows_are_planned() {
    let mut config = SessionConfig::new().with_target_partitions(4);
    config.options_mut().optimizer.hash_join_single_partition_threshold_rows = 0;
    let ctx = serrate::sql::session_with(config);
    with_empty_tables(&ctx);
    for table in ["batch", "batches", "none"] {
        let groups = format!("(SELECT id, max(id) AS m FROM {table} GROUP BY id ORDER BY 1, 2)");
        let sql = format!(
            "SELECT count(c.id) FROM {groups} a LEFT JOIN {groups} b ON abs(a.m + a.id) = b.id
             LEFT JOIN {table} c ON abs(b.m) = abs(c.id)"
        );
        assert_eq!(rows_or_error(&ctx, &sql).await, "0", "{sql}");
    }
}

/// When this test fails, `sql::workarounds::sorting::missing_partitions` can be removed.
#[tokio::test]
async fn stock_removed_sorts_still_leave_partitions() {
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .set_bool("datafusion.sql_parser.enable_subquery_sort_elimination", false);
    let stock = SessionContext::new_with_config(config);
    with_empty_tables(&stock);
    let sql = "SELECT e, count(*) FROM (SELECT id AS e, flag FROM batches ORDER BY flag) s GROUP BY e ORDER BY 1";
    let e = stock_error(&stock, sql).await;
    assert!(e.contains("does not satisfy distribution requirements"), "{e}");
}
