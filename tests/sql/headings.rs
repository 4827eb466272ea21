//! Names of computed columns in results: the expression as written, without table names.

use super::*;

async fn list_names(ctx: &SessionContext, query: &str) -> Vec<String> {
    let batches = run_query(ctx, query).await;
    batches[0].schema().fields().iter().map(|f| f.name().clone()).collect()
}

#[tokio::test]
async fn names_of_computed_columns_omit_tables() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = serrate::sql::session();
    let path = display_path(&dir.path().join("long name.parquet"));
    let make = format!(
        "COPY (SELECT value AS id, [value, 3] AS val, 'a' AS s FROM generate_series(1, 5)) TO '{path}'"
    );
    serrate::sql::sql(&ctx, &make).await.unwrap().collect().await.unwrap();
    for (columns, expected) in [
        ("sum(ragged_max(val))", "sum(ragged_max(val))"),
        ("ragged_max(val)", "ragged_max(val)"),
        ("id + id", "id + id"),
        ("id + 1", "id + 1"),
        ("1", "1"),
        ("'it''s'", "'it''s'"),
        ("round(id + 0.5, 1)", "round(id + 0.5,1)"),
        ("TIMESTAMP '2020-01-02'", "'2020-01-02'"),
        ("DATE '2020-01-01' + INTERVAL '1 day'", "'2020-01-01' + INTERVAL '1 day'"),
        (
            "datediff('day', DATE '2020-01-01', DATE '2020-02-01')",
            "datediff('day','2020-01-01','2020-02-01')",
        ),
        ("count(*) FILTER (WHERE s = 'a')", "count(*) FILTER (WHERE s = 'a')"),
        (
            "count(*) FILTER (WHERE ragged_any(val > 1) AND id > 0)",
            "count(*) FILTER (WHERE ragged_any(val > 1) AND id > 0)",
        ),
        (
            "sum(id) FILTER (WHERE ragged_any(val > 1))",
            "sum(id) FILTER (WHERE ragged_any(val > 1))",
        ),
        (
            "array_agg(id ORDER BY ragged_sum(val + 1), id DESC)",
            "array_agg(id) ORDER BY [ragged_sum(val + 1) ASC NULLS LAST, id DESC NULLS FIRST]",
        ),
        (
            "sum(id) OVER (PARTITION BY ragged_count(val) ORDER BY ragged_sum(val + 1))",
            "sum(id) PARTITION BY [ragged_count(val)] ORDER BY [ragged_sum(val + 1) ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        ),
        ("id = ANY(val)", "id = ANY(val)"),
        ("id + 1 IN (SELECT 1)", "id + 1 IN (SELECT ..)"),
        ("id NOT IN (SELECT 1)", "id NOT IN (SELECT ..)"),
        ("EXISTS (SELECT 1)", "EXISTS (SELECT ..)"),
        ("CASE WHEN id IN (SELECT 1) THEN s END", "CASE WHEN id IN (SELECT ..) THEN s END"),
        ("upper(s)", "upper(s)"),
        ("mean(id)", "mean(id)"),
        ("mean(id) + 1", "mean(id) + 1"),
        ("pow(id, 2) * (id + 1)", "pow(id,2) * (id + 1)"),
        ("list_max([id, 1]) + 1", "list_max([id, 1]) + 1"),
        (
            "row_number() OVER (ORDER BY id)",
            "row_number() ORDER BY [id ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        ),
        ("CASE WHEN s = s THEN id END", "CASE WHEN s = s THEN id END"),
        ("CAST(id AS DOUBLE)", "id"),
        ("id", "id"),
        ("id + id AS twice", "twice"),
        ("count(DISTINCT id)", "count(DISTINCT id)"),
        ("ragged_map(val, lambda v: v + id)", "ragged_map(val, (v) -> v + id)"),
    ] {
        for query in [
            format!("SELECT {columns} FROM '{path}'"),
            format!("SELECT {columns} FROM '{path}' LIMIT 1"),
            format!("SELECT * FROM (SELECT {columns} FROM '{path}') AS q"),
            format!("SELECT {columns} FROM '{path}' ORDER BY 1 LIMIT 1"),
            format!("SELECT DISTINCT {columns} FROM '{path}'"),
            format!("SELECT {columns} FROM '{path}' UNION ALL SELECT {columns} FROM '{path}'"),
            format!("WITH q AS (SELECT {columns} FROM '{path}') SELECT * FROM q"),
        ] {
            let found = list_names(&ctx, &query).await;
            assert_eq!(found.len(), 1, "{query}");
            let plain = |name: &str| name.replace(", (v)", ",(v)");
            assert_eq!(plain(&found[0]), plain(expected), "{query}");
        }
    }
    // Created tables and files have these column names, too.
    let table = format!("CREATE TABLE made AS SELECT sum(id) FROM '{path}'");
    serrate::sql::sql(&ctx, &table).await.unwrap().collect().await.unwrap();
    assert_eq!(list_names(&ctx, "SELECT \"sum(id)\" FROM made").await, ["sum(id)"]);
}

#[tokio::test]
async fn names_keep_the_tables_if_two_columns_would_share_a_name() {
    let ctx = serrate::sql::session();
    let from = "(VALUES (1)) AS a(id), (VALUES (2)) AS b(id)";
    assert_eq!(
        list_names(&ctx, &format!("SELECT max(a.id), max(b.id), min(b.id) FROM {from}")).await,
        ["max(a.id)", "max(b.id)", "min(id)"]
    );
    assert_eq!(
        list_names(&ctx, &format!("SELECT a.id + 1, b.id FROM {from} ORDER BY a.id + 1")).await,
        ["id + 1", "id"]
    );
    assert_eq!(
        list_names(&ctx, &format!("SELECT a.id + 1, b.id + 1, 2 * a.id FROM {from}")).await,
        ["a.id + 1", "b.id + 1", "2 * id"]
    );
}

#[tokio::test]
async fn columns_that_datafusion_names_alike_have_distinct_names() {
    let ctx = serrate::sql::session();
    let written = [
        "CASE WHEN x THEN CAST(d AS TIMESTAMP) AT TIME ZONE 'UTC' END",
        "CASE WHEN x THEN d END",
        "CASE WHEN x THEN TRY_CAST(d AS TIMESTAMP) END",
        "CASE WHEN x THEN TIMESTAMP '2020-01-01' END",
        "-CASE WHEN x THEN 1.5 END",
        "CASE WHEN d IN (DATE '2020-01-01', DATE '2020-01-02') THEN upper('a') END",
        "d NOT IN (DATE '2020-01-01')",
        "ragged_sum([1, 2]) FILTER (WHERE [1, 2] > 1)",
        "CASE WHEN 'a' NOT LIKE 'b' THEN CAST(NULL AS TIMESTAMPTZ) END",
    ];
    let sql = format!("SELECT {} FROM (SELECT true x, DATE '2020-01-01' d) t", written.join(", "));
    assert_eq!(list_names(&ctx, &sql).await, written);
}

#[tokio::test]
async fn names_show_times_as_sql_literals() {
    let ctx = serrate::sql::session();
    let from = "(VALUES ([TIMESTAMP '2020-02-01'], DATE '2020-03-01')) AS t(time, d)";
    for (written, heading) in [
        ("time > '2020-01-01'", "time > '2020-01-01'"),
        ("time >= TIMESTAMP '2020-01-01 03:00:00'", "time >= '2020-01-01 03:00:00'"),
        ("ragged_any(time > '2020-01-01')", "ragged_any(time > '2020-01-01')"),
        ("d > '2020-01-01'", "d > '2020-01-01'"),
    ] {
        assert_eq!(list_names(&ctx, &format!("SELECT {written} FROM {from}")).await, [heading]);
    }
}

#[tokio::test]
async fn names_show_intervals_as_sql_literals() {
    let ctx = serrate::sql::session();
    let from = "(VALUES (TIMESTAMP '2020-02-01', [TIMESTAMP '2020-02-01'], INTERVAL '1 day')) AS v(t, time, i)";
    for (written, heading) in [
        ("t + INTERVAL '1 month'", "t + INTERVAL '1 month'"),
        ("t + INTERVAL '2 years'", "t + INTERVAL '2 years'"),
        ("t + INTERVAL '30 hours'", "t + INTERVAL '30 hours'"),
        ("t + INTERVAL '1.5 seconds'", "t + INTERVAL '1.5 seconds'"),
        ("t - INTERVAL '1 day 1 minute'", "t - INTERVAL '1 day 1 minute'"),
        ("ragged_diff(time) > INTERVAL '30 days'", "ragged_diff(time) > INTERVAL '30 days'"),
        ("ragged_diff(time) / INTERVAL '1 day'", "ragged_diff(time) / INTERVAL '1 day'"),
        (
            "to_days(1) = i AND ragged_any(ragged_window(time, time, time, 'count', before => INTERVAL '1 day') > 0)",
            "to_days(1) = i AND ragged_any(ragged_window(time, time, time, 'count', before => INTERVAL '1 day') > 0)",
        ),
    ] {
        assert_eq!(list_names(&ctx, &format!("SELECT {written} FROM {from}")).await, [heading]);
    }
}

#[tokio::test]
async fn names_have_only_the_required_parentheses() {
    let ctx = serrate::sql::session();
    for (written, heading) in [
        ("sum((v - a) / d)", "sum((v - a) / d)"),
        ("sum(v - a / d)", "sum(v - a / d)"),
        ("sum(v) / (sum(a) + 1)", "sum(v) / (sum(a) + 1)"),
        ("v - (a - d)", "v - (a - d)"),
        ("v - a - d", "v - a - d"),
        ("(v * a) + d", "v * a + d"),
        ("-(v + a)", "-(v + a)"),
        ("-(-v)", "-(-v)"),
        ("2 - -v", "2 - -v"),
        ("v IN (1, 2)", "v IN (1, 2)"),
        ("true = (d NOT IN (3))", "true = (d NOT IN (3))"),
        ("[v, a, d][2:]", "[v, a, d][2:]"),
        ("[v, a, d][:a]", "[v, a, d][:a]"),
        ("[v, a, d][2:a + 1]", "[v, a, d][2:a + 1]"),
        ("NOT (v > 1 AND a > 2)", "NOT (v > 1 AND a > 2)"),
        ("(v > 1 OR a > 1) AND d > 1", "(v > 1 OR a > 1) AND d > 1"),
        ("(v = 1) IS NULL", "(v = 1) IS NULL"),
        ("CAST(v + a AS DOUBLE) / d", "(v + a) / d"),
        ("CASE WHEN (v + a) * 2 > 3 THEN 1 END", "CASE WHEN (v + a) * 2 > 3 THEN 1 END"),
        ("(v || 'a') = 'b'", "v || 'a' = 'b'"),
        ("v ^ a", "v ^ a"),
        ("v ^ (a ^ d)", "v ^ (a ^ d)"),
        ("(v ^ a) * 2", "(v ^ a) * 2"),
        ("v + a ^ d = 3", "v + a ^ d = 3"),
        ("NULL::INT[] || [v]", "NULL || [v]"),
        ("[v] || [a] || [d] = [1]", "[v] || [a] || [d] = [1]"),
        ("array_concat([v], [a])", "array_concat([v],[a])"),
        ("ragged_eq([v, a], [v, d])", "ragged_eq([v, a], [v, d])"),
        ("ragged_any(ragged_lt([v, a], [v, d]))", "ragged_any(ragged_lt([v, a], [v, d]))"),
        ("ragged_eq([v, a], 2)", "[v, a] = 2"),
        ("[v, a] = [v, d]", "[v, a] = [v, d]"),
    ] {
        let from = "(VALUES (1, 2, 3)) t(v, a, d)";
        for sql in [
            format!("SELECT {written} FROM {from} GROUP BY v, a, d"),
            format!("SELECT * FROM (SELECT {written} FROM {from} GROUP BY v, a, d)"),
        ] {
            assert_eq!(list_names(&ctx, &sql).await, [heading], "{sql}");
        }
    }
    assert_eq!(
        list_names(&ctx, "SELECT ragged_eq([1, 2], [1, 3])").await,
        ["ragged_eq([1, 2], [1, 3])"]
    );
    // `=` compares two lists as wholes, and `ragged_eq` compares them value by value.
    let both = "SELECT [1, 2] = [1, 3], ragged_eq([1, 2], [1, 3])";
    assert_eq!(list_names(&ctx, both).await, ["[1, 2] = [1, 3]", "ragged_eq([1, 2], [1, 3])"]);
    // The name of a GROUP BY key within an expression is the expression of the key.
    let sql = "SELECT (v - a) / 2 FROM (VALUES (1, 2)) t(v, a) GROUP BY v - a";
    assert_eq!(list_names(&ctx, sql).await, ["(v - a) / 2"]);
}

#[tokio::test]
async fn names_next_to_grouping_sets_omit_tables() {
    let ctx = serrate::sql::session();
    for (columns, groups) in [
        ("sum(b)", "ROLLUP (a)"),
        ("a", "CUBE (a)"),
        ("a + 1", "ROLLUP (a + 1)"),
        ("mean(b)", "GROUPING SETS ((a, b), (a), ())"),
        ("grouping(a)", "ROLLUP (a)"),
    ] {
        let from = format!("FROM (VALUES (1, 2)) AS t(a, b) GROUP BY {groups}");
        for query in [
            format!("SELECT {columns} {from}"),
            format!("SELECT * FROM (SELECT {columns} {from}) AS q"),
            format!("SELECT {columns} {from} HAVING count(*) > 0 ORDER BY 1 LIMIT 1"),
        ] {
            assert_eq!(list_names(&ctx, &query).await, [columns], "{query}");
        }
    }
}

#[tokio::test]
async fn columns_without_a_new_name_keep_their_headings() {
    let ctx = serrate::sql::session();
    for (query, expected) in [
        ("SELECT * FROM (SELECT 1, 2 + 3, 'x') q(a)", vec!["a", "2 + 3", "'x'"]),
        ("WITH q(a) AS (SELECT 1, 2 + 3) FROM q", vec!["a", "2 + 3"]),
        ("SELECT q.* FROM (SELECT id, id + 1 FROM (SELECT 1 AS id) i) q(k)", vec!["k", "id + 1"]),
        ("SELECT * FROM (VALUES (1, 2)) q(a)", vec!["a", "column2"]),
        ("SELECT 1, 2 + 3 AS b EXCEPT SELECT 5, 6", vec!["1", "b"]),
        ("SELECT 1, 'x' INTERSECT ALL SELECT 1, 'x' ORDER BY 1", vec!["1", "'x'"]),
    ] {
        assert_eq!(list_names(&ctx, query).await, expected, "{query}");
    }
}
