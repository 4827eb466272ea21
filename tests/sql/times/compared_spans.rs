//! Durations and intervals are compared, grouped and ordered as lengths of time.

use super::*;

/// A query with a duration `d` of 60 days and two intervals, as columns, so that the planner folds
/// no comparison to a constant.
const SIXTY: &str = "(SELECT b - a AS d, x, y FROM (VALUES
    (TIMESTAMP '2020-03-01', TIMESTAMP '2020-01-01', INTERVAL '30 days', INTERVAL '1440 hours')) t(b, a, x, y))";

#[tokio::test]
async fn a_duration_and_an_interval_compare_as_lengths_of_time() {
    let ctx = create_parallel_session();
    let expected = [
        ("d > INTERVAL '30 days'", "true"),
        ("d > INTERVAL '60 days'", "false"),
        ("d >= INTERVAL '60 days'", "true"),
        ("d = INTERVAL '1440 hours'", "true"),
        ("d <> INTERVAL '60 days'", "false"),
        ("INTERVAL '61 days' > d", "true"),
        ("INTERVAL '30 days' < d", "true"),
        ("d > x", "true"),
        ("d = y", "true"),
        ("x < d", "true"),
        ("d IS DISTINCT FROM INTERVAL '60 days'", "false"),
        ("d IS NOT DISTINCT FROM y", "true"),
        ("d BETWEEN INTERVAL '59 days' AND INTERVAL '61 days'", "true"),
        ("d NOT BETWEEN x AND y", "false"),
        ("d IN (INTERVAL '1 day', INTERVAL '60 days')", "true"),
        ("d NOT IN (x, y)", "false"),
        ("CASE d WHEN INTERVAL '60 days' THEN 1 ELSE 2 END", "1"),
        ("nullif(d, INTERVAL '60 days') IS NULL", "true"),
        ("coalesce(NULL, d, INTERVAL '1 day') = d", "true"),
        ("greatest(d, INTERVAL '61 days') = INTERVAL '61 days'", "true"),
        ("least(d, INTERVAL '61 days') = d", "true"),
        ("CASE WHEN true THEN d ELSE INTERVAL '1 day' END > INTERVAL '59 days'", "true"),
        ("d + INTERVAL '1 day' = INTERVAL '61 days'", "true"),
        ("INTERVAL '1 day' + d > INTERVAL '60 days'", "true"),
        ("arrow_typeof(d - INTERVAL '1 day')", "Duration(µs)"),
        ("d > INTERVAL '1 nanosecond'", "true"),
        ("arrow_cast(d, 'Duration(Second)') = d", "true"),
        ("arrow_cast(d, 'Duration(Second)') < INTERVAL '60 days 0.000000001 seconds'", "true"),
        ("d > NULL", "NULL"),
    ];
    assert_eq!(list_wrong(&ctx, SIXTY, &expected).await, "");
    let sql = format!("SELECT count(*) FROM {SIXTY} WHERE d > INTERVAL '30 days' AND d > x");
    assert_eq!(query_rows(&ctx, &sql).await, "1");
    let sql =
        format!("SELECT max(d) > INTERVAL '30 days', min(d) = INTERVAL '60 days' FROM {SIXTY}");
    assert_eq!(query_rows(&ctx, &sql).await, "true true");
    let sql = format!("SELECT count(*) FROM {SIXTY} WHERE d IN (SELECT INTERVAL '60 days')");
    assert_eq!(query_rows(&ctx, &sql).await, "1");
    let sql = format!(
        "SELECT count(*) FROM {SIXTY} s JOIN (SELECT INTERVAL '60 days' AS z) u ON s.d = u.z"
    );
    assert_eq!(query_rows(&ctx, &sql).await, "1");
    let sql = format!(
        "SELECT d > (SELECT INTERVAL '30 days'), count(*) FROM {SIXTY} WHERE EXISTS (SELECT 1 FROM (SELECT INTERVAL '60 days' AS z) u WHERE u.z = d) GROUP BY 1"
    );
    assert_eq!(query_rows(&ctx, &sql).await, "true 1");
}

#[tokio::test]
async fn comparisons_of_durations_with_months_are_errors() {
    let ctx = create_parallel_session();
    for what in [
        "d > INTERVAL '1 month'",
        "d BETWEEN INTERVAL '1 day' AND INTERVAL '1 year'",
        "d IN (INTERVAL '2 months')",
    ] {
        let e = error(&ctx, &format!("SELECT {what} FROM {SIXTY}")).await;
        assert!(
            e.contains("a month has no fixed length; write days, such as INTERVAL '30 days'"),
            "{what}: {e}"
        );
    }
    // The interval is a column, whose months are found only at execution.
    let sql = "SELECT b - a > x FROM (VALUES (TIMESTAMP '2020-03-01', TIMESTAMP '2020-01-01', INTERVAL '30 days'),
        (TIMESTAMP '2020-03-01', TIMESTAMP '2020-01-01', INTERVAL '2 months')) t(b, a, x)";
    let e = error(&ctx, sql).await;
    assert!(e.contains("the interval 2mo ") && e.contains("a month has no fixed length"), "{e}");
    let e = error(
        &ctx,
        "SELECT ragged_diff([TIMESTAMP '2020-01-01', TIMESTAMP '2020-02-01']) > INTERVAL '1 month'",
    )
    .await;
    assert!(
        e.contains("a month has no fixed length; write days, such as INTERVAL '30 days'"),
        "{e}"
    );
}

#[tokio::test]
async fn intervals_compare_as_in_duckdb() {
    let ctx = create_parallel_session();
    let spans = "(SELECT x, n FROM (VALUES (INTERVAL '36 hours', 3), (INTERVAL '1 day', 1), (INTERVAL '24 hours', 1),
        (INTERVAL '1 month', 5), (INTERVAL '30 days', 5), (INTERVAL '31 days', 6), (INTERVAL '-1 day', 0), (NULL, NULL)) t(x, n))";
    for op in ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"] {
        let sql = format!(
            "SELECT count(*) FROM {spans} a CROSS JOIN {spans} b WHERE (a.x {op} b.x) IS DISTINCT FROM (a.n {op} b.n)"
        );
        assert_eq!(query_rows(&ctx, &sql).await, "0", "{op}");
    }
    let sql = format!("SELECT n FROM {spans} ORDER BY x NULLS LAST, n");
    assert_eq!(query_rows(&ctx, &sql).await, "0; 1; 1; 3; 5; 5; 6; NULL");
    let sql =
        format!("SELECT n, rank() OVER (ORDER BY x) AS r FROM {spans} WHERE n > 0 ORDER BY r, n");
    assert_eq!(query_rows(&ctx, &sql).await, "1 1; 1 1; 3 3; 5 4; 5 4; 6 6");
    let sql = format!("SELECT count(*) OVER (PARTITION BY x) AS c FROM {spans} WHERE n = 1");
    assert_eq!(query_rows(&ctx, &sql).await, "2; 2");
    let sql = format!("SELECT count(*) FROM {spans} a JOIN {spans} b ON a.x = b.x");
    assert_eq!(query_rows(&ctx, &sql).await, "11");
    let sql = format!("SELECT array_agg(n ORDER BY x DESC NULLS LAST, n) FROM {spans} WHERE n < 4");
    assert_eq!(query_rows(&ctx, &sql).await, "[3, 1, 1, 0]");
    assert_eq!(
        query_rows(
            &ctx,
            "SELECT INTERVAL '1 day' = INTERVAL '24 hours', INTERVAL '1 month' = INTERVAL '30 days'"
        )
        .await,
        "true true"
    );
    assert_eq!(
        query_rows(&ctx, "SELECT [INTERVAL '1 day', INTERVAL '25 hours'] > INTERVAL '24 hours'")
            .await,
        "[false, true]"
    );
    for sql in [
        format!("SELECT DISTINCT [x] FROM {spans}"),
        "SELECT ragged_min([INTERVAL '1 day', INTERVAL '25 hours'])".into(),
        "SELECT ragged_sort([INTERVAL '1 day', INTERVAL '25 hours'])".into(),
        "SELECT [INTERVAL '1 day'] = [INTERVAL '24 hours']".into(),
        "SELECT [INTERVAL '1 day'] IN ([INTERVAL '24 hours'], [INTERVAL '1 hour'])".into(),
        "SELECT {'a': INTERVAL '1 day'} IN ({'a': INTERVAL '24 hours'})".into(),
        "SELECT [INTERVAL '1 day'] IN (SELECT [INTERVAL '24 hours'])".into(),
        "SELECT [INTERVAL '1 day'] >= ALL (SELECT [INTERVAL '24 hours'])".into(),
        "SELECT [INTERVAL '1 day'] BETWEEN [INTERVAL '1 hour'] AND [INTERVAL '24 hours']".into(),
        "SELECT CASE [INTERVAL '1 day'] WHEN [INTERVAL '24 hours'] THEN 1 END".into(),
        "SELECT array_has([INTERVAL '1 day'], INTERVAL '24 hours')".into(),
    ] {
        let e = error(&ctx, &sql).await;
        assert!(
            e.contains("interval") && (e.contains("epoch") || e.contains("durations")),
            "{sql}: {e}"
        );
    }
}

#[tokio::test]
async fn lists_and_structs_of_durations_compare_with_those_of_intervals() {
    let ctx = create_parallel_session();
    let t = "(SELECT TIMESTAMP '2020-03-01' - TIMESTAMP '2020-01-01' AS d)";
    let expected = [
        ("[d] > [INTERVAL '730 hours']", "true"),
        ("[INTERVAL '1440 hours'] = [d]", "true"),
        ("{'a': d} <= {'a': INTERVAL '1439 hours'}", "false"),
        ("[d] IS DISTINCT FROM [INTERVAL '1440 hours']", "false"),
    ];
    assert_eq!(list_wrong(&ctx, t, &expected).await, "");
    let e = error(&ctx, &format!("SELECT [d] = [INTERVAL '60 days'] FROM {t}")).await;
    assert!(e.contains("months or days"), "{e}");
    let view = "CREATE VIEW v AS SELECT [d] = [INTERVAL '1440 hours'] AS c FROM ";
    query_batches(&ctx, &format!("{view}{t}")).await.unwrap();
    assert_eq!(query_rows(&ctx, "SELECT c FROM v").await, "true");
}

#[tokio::test]
async fn lists_of_durations_compare_with_intervals() {
    let ctx = create_parallel_session();
    let t = "(SELECT ragged_diff(x) AS d, INTERVAL '1 day' AS i FROM (VALUES ([TIMESTAMP '2020-01-01', TIMESTAMP '2020-02-01', TIMESTAMP '2020-02-02'])) t(x))";
    let expected = [
        ("d > INTERVAL '30 days'", "[, true, false]"),
        ("INTERVAL '30 days' < d", "[, true, false]"),
        ("d = i", "[, false, true]"),
        ("ragged_eq(d, INTERVAL '24 hours')", "[, false, true]"),
        ("ragged_between(d, INTERVAL '1 day', INTERVAL '2 days')", "[, false, true]"),
        ("ragged_isin(d, [INTERVAL '1 day', INTERVAL '1 nanosecond'])", "[, false, true]"),
        ("d IN (INTERVAL '24 hours')", "[, false, true]"),
        ("ragged_max(d) > INTERVAL '30 days'", "true"),
        ("ragged_min(d) = i", "true"),
        ("ragged_any(d > INTERVAL '30 days')", "true"),
        ("ragged_minimum(d, INTERVAL '1 day') = INTERVAL '1 day'", "[, true, true]"),
        ("d + INTERVAL '1 day' = INTERVAL '2 days'", "[, false, true]"),
        ("ragged_map(d, lambda v: v > INTERVAL '30 days')", "[, true, false]"),
        ("d > INTERVAL '1 nanosecond'", "[, true, true]"),
    ];
    assert_eq!(list_wrong(&ctx, t, &expected).await, "");
}

/// DataFusion would compare the months, then the days, then the hours of elements.
#[tokio::test]
async fn searches_for_intervals_are_refused() {
    let ctx = create_parallel_session();
    for call in [
        "array_remove(l, i)",
        "array_remove_n(l, i, 1)",
        "array_remove_all(l, i)",
        "array_replace(l, i, i)",
        "array_replace_n(l, i, i, 1)",
        "array_replace_all(l, i, i)",
    ] {
        let sql = format!(
            "SELECT {call} FROM (SELECT [INTERVAL '1 day'] AS l, INTERVAL '24 hours' AS i)"
        );
        let refused = error(&ctx, &sql).await;
        assert!(refused.contains("use durations instead"), "{call}: {refused}");
    }
}

#[tokio::test]
async fn windows_are_ordered_by_durations() {
    let of = "(SELECT v, arrow_cast(v, 'Duration(Microsecond)') AS g, TIMESTAMP '2020-01-01' AS t
        FROM (VALUES (3), (-1), (NULL), (3), (9)) t(v))";
    let ctx = create_parallel_session();
    for (call, expected) in [
        ("rank() OVER (ORDER BY g)", "1 2 2 4 5"),
        ("rank() OVER (ORDER BY g DESC NULLS LAST)", "1 2 2 4 5"),
        ("sum(v) OVER (ORDER BY g)", "-1 5 5 14 14"),
        (
            "count(*) OVER (ORDER BY t + g - t, v RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
            "1 2 4 4 5",
        ),
        ("row_number() OVER (PARTITION BY g ORDER BY g)", "1 1 1 1 2"),
        ("row_number() OVER (ORDER BY t, g)", "1 2 3 4 5"),
        // The window has frames of every unit.
        (
            "10 * row_number() OVER (ORDER BY g) + count(*) OVER (ORDER BY g ROWS 1 PRECEDING)",
            "11 22 32 42 52",
        ),
        (
            "count(*) OVER (ORDER BY g GROUPS 1 PRECEDING) + 10 * rank() OVER (ORDER BY g)",
            "11 23 23 43 52",
        ),
    ] {
        let sql = format!("SELECT {call} AS n FROM {of} ORDER BY n");
        assert_eq!(query_rows(&ctx, &sql).await.replace(';', ""), expected, "{call}");
    }
    let heading =
        query_batches(&ctx, &format!("SELECT rank() OVER (ORDER BY g) FROM {of}")).await.unwrap();
    let name = heading[0].schema().field(0).name().clone();
    assert!(!name.contains("CAST"), "{name}");
}

#[tokio::test]
async fn stock_windows_over_durations_still_fail() {
    let sql = "SELECT rank() OVER (ORDER BY arrow_cast(v, 'Duration(Microsecond)')) FROM (VALUES (1)) t(v)";
    let stock = stock_error(&SessionContext::new(), sql).await;
    assert!(stock.contains("Cannot run range queries on datatype: Duration"), "{stock}");
}

/// Equal intervals are one group, one distinct value and one extreme, however they are written. The
/// result is one of them.
#[tokio::test]
async fn equal_intervals_are_one_group() {
    let ctx = create_parallel_session();
    let spans =
        "(VALUES (INTERVAL '1 month', 1), (INTERVAL '30 days', 2), (INTERVAL '720 hours', 3),
        (INTERVAL '1 day', 4), (INTERVAL '-24 hours', 5), (NULL, 6)) t(x, n)";
    for (sql, expected) in [
        (
            format!("SELECT x, count(*) FROM {spans} GROUP BY x ORDER BY x"),
            "-24 hours 1; 1 days 1; 720 hours 3; NULL 1",
        ),
        (
            format!("SELECT DISTINCT x FROM {spans} ORDER BY x"),
            "-24 hours; 1 days; 720 hours; NULL",
        ),
        (format!("SELECT min(x), max(x), count(DISTINCT x) FROM {spans}"), "-24 hours 1 mons 3"),
        (
            format!("SELECT x FROM {spans} UNION SELECT x FROM {spans} ORDER BY x"),
            "-24 hours; 1 days; 720 hours; NULL",
        ),
        (
            format!("SELECT n, max(x) OVER (ORDER BY n ROWS 1 PRECEDING) FROM {spans} ORDER BY n"),
            "1 1 mons; 2 1 mons; 3 30 days; 4 720 hours; 5 1 days; 6 -24 hours",
        ),
        (
            format!(
                "SELECT greatest(x, INTERVAL '2 days') FROM {spans} WHERE n IN (3, 4) ORDER BY n"
            ),
            "720 hours; 2 days",
        ),
        (
            format!(
                "SELECT x, count(*) FROM {spans} GROUP BY ROLLUP (x) ORDER BY count(*) DESC, x LIMIT 2"
            ),
            "NULL 6; 720 hours 3",
        ),
        (
            format!("SELECT DISTINCT ON (x) x, n FROM {spans} WHERE n < 4 ORDER BY x, n DESC"),
            "720 hours 3",
        ),
    ] {
        assert_eq!(query_rows(&ctx, &sql).await, expected, "{sql}");
    }
}

/// A month and 30 days are equal intervals, but a date plus one differs from the date plus the
/// other, so a comparison must not replace one by the other.
#[tokio::test]
async fn compared_intervals_keep_their_months_and_days() {
    let rows = [
        "(INTERVAL '30 days', 1)",
        "(INTERVAL '1 month', 2)",
        "(INTERVAL '720 hours', 3)",
        "(INTERVAL '40 days', 4)",
        "(INTERVAL '1 month 10 days', 5)",
    ];
    let union = |rows: Vec<&str>| {
        let parts = rows.iter().map(|row| format!("SELECT * FROM (VALUES {row}) v(d, n)"));
        parts.collect::<Vec<_>>().join(" UNION ALL ")
    };
    let forward = union(rows.to_vec());
    let backward = union(rows.iter().rev().copied().collect());
    let at_once = format!("SELECT * FROM (VALUES {}) v(d, n)", rows.join(", "));
    // `{d}` stands for a date plus `d`.
    let cases = [
        ("SELECT {d}, sum(n) FROM t GROUP BY d ORDER BY 1", "2020-03-02 6; 2020-03-12 9"),
        ("SELECT {d} FROM t GROUP BY d HAVING d > INTERVAL '35 days'", "2020-03-12"),
        (
            "SELECT {d}, grouping(d), sum(n) FROM t GROUP BY ROLLUP (d) ORDER BY 2, 1",
            "2020-03-02 0 6; 2020-03-12 0 9; NULL 1 15",
        ),
        (
            "SELECT {d}, n, count(*) FROM t WHERE n < 3 GROUP BY GROUPING SETS ((d), (n)) ORDER BY 1, 2",
            "2020-03-02 NULL 2; NULL 1 1; NULL 2 1",
        ),
        ("SELECT count(*) FROM t GROUP BY d + INTERVAL '1 day' ORDER BY 1", "2; 3"),
        ("SELECT count(*) FROM t GROUP BY CASE WHEN random() < 2 THEN d END ORDER BY 1", "2; 3"),
        ("SELECT {d} FROM (SELECT DISTINCT d FROM t) ORDER BY 1", "2020-03-02; 2020-03-12"),
        (
            "SELECT {d} FROM (SELECT d FROM t UNION SELECT INTERVAL '1 month') ORDER BY 1",
            "2020-03-02; 2020-03-12",
        ),
        ("SELECT {d} FROM (SELECT d FROM t INTERSECT SELECT INTERVAL '960 hours')", "2020-03-12"),
        ("SELECT {d} FROM (SELECT d FROM t EXCEPT SELECT INTERVAL '1 month')", "2020-03-12"),
        ("SELECT count(*) FROM (SELECT d FROM t EXCEPT ALL SELECT INTERVAL '1 month')", "4"),
        (
            "SELECT {d} FROM (SELECT DISTINCT ON (d) d FROM t ORDER BY d, n) ORDER BY 1",
            "2020-03-02; 2020-03-12",
        ),
        ("SELECT {d} FROM (SELECT max(d) AS d FROM t WHERE n < 5)", "2020-03-12"),
        ("SELECT {d} FROM (SELECT max(d) AS d FROM t WHERE n IN (1, 3))", "2020-03-02"),
        ("SELECT {d} FROM (SELECT min(d) AS d FROM t)", "2020-03-02"),
        ("SELECT {d} FROM (SELECT max(DISTINCT d) AS d FROM t WHERE n < 5)", "2020-03-12"),
        (
            "SELECT n > 3, (DATE '2020-02-01' + min(d))::DATE FROM t GROUP BY 1 ORDER BY 1",
            "false 2020-03-02; true 2020-03-12",
        ),
        (
            "SELECT {d} FROM (SELECT n, max(d) OVER (ORDER BY n ROWS 1 PRECEDING) AS d FROM t WHERE n IN (1, 4)) ORDER BY n",
            "2020-03-02; 2020-03-12",
        ),
        (
            "SELECT {d} FROM (SELECT n, min(d) OVER (PARTITION BY d) AS d FROM t) ORDER BY n",
            "2020-03-02; 2020-03-02; 2020-03-02; 2020-03-12; 2020-03-12",
        ),
        (
            "SELECT {d} FROM (SELECT greatest(d, INTERVAL '35 days', NULL) AS d FROM t WHERE n = 4)",
            "2020-03-12",
        ),
        (
            "SELECT {d} FROM (SELECT least(d, INTERVAL '2 months') AS d FROM t WHERE n = 4)",
            "2020-03-12",
        ),
        (
            "SELECT {d} FROM (SELECT nullif(d, INTERVAL '1 day') AS d FROM t WHERE n = 4)",
            "2020-03-12",
        ),
        ("SELECT count(*) FROM t WHERE nullif(d, INTERVAL '960 hours') IS NULL", "2"),
        ("SELECT nullif(INTERVAL '40 days', INTERVAL '1 day')", "40 days"),
        ("SELECT nullif(INTERVAL '40 days', NULL)", "40 days"),
        ("SELECT greatest(INTERVAL '40 days', INTERVAL '1 month')", "40 days"),
        (
            "SELECT {d} FROM (SELECT a.d FROM t a JOIN (SELECT INTERVAL '960 hours' AS d) b USING (d)) ORDER BY 1",
            "2020-03-11; 2020-03-12",
        ),
        ("SELECT count(DISTINCT d), approx_distinct(d) FROM t", "2 2"),
        (
            "SELECT cardinality(l), (DATE '2020-02-01' + l[1])::DATE FROM (SELECT array_agg(DISTINCT d) AS l FROM t WHERE n < 4)",
            "1 2020-03-02",
        ),
        (
            "SELECT DISTINCT cardinality(l), (DATE '2020-02-01' + l[1])::DATE FROM (SELECT array_agg(DISTINCT d) OVER () AS l FROM t WHERE n < 4)",
            "1 2020-03-02",
        ),
        ("SELECT {d}, c FROM v ORDER BY 1", "2020-03-02 3; 2020-03-12 2"),
    ];
    for partitions in [1, 4] {
        for rows in [&forward, &backward, &at_once] {
            let config = SessionConfig::new().with_target_partitions(partitions);
            let ctx = serrate::sql::session_with(config);
            query_batches(&ctx, &format!("CREATE VIEW t AS {rows}")).await.unwrap();
            let view = "CREATE VIEW v AS SELECT d, count(*) AS c FROM t GROUP BY d";
            query_batches(&ctx, view).await.unwrap();
            for (sql, expected) in &cases {
                let sql = sql.replace("{d}", "(DATE '2020-02-01' + d)::DATE");
                assert_eq!(query_rows(&ctx, &sql).await, *expected, "{partitions}: {sql}");
            }
        }
    }
}

#[tokio::test]
async fn aggregates_that_would_compare_fields_of_intervals_are_refused() {
    let ctx = create_parallel_session();
    let from = "FROM (VALUES (INTERVAL '1 day')) t(d)";
    for (call, name) in [
        ("mode(d)", "mode of t.d is not supported"),
        ("mode(d) FILTER (WHERE d > INTERVAL '0 days')", "mode of "),
        ("max([d])", "max of make_array(t.d) is not supported"),
    ] {
        let refused = error(&ctx, &format!("SELECT {call} {from}")).await;
        assert!(refused.contains(name), "{call}: {refused}");
        assert!(!refused.contains("mode_of_elements"), "{call}: {refused}");
    }
}
