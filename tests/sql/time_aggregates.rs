//! Averages and quantiles of times, and arithmetic of durations and intervals.

use super::*;

const TIMES: &str = "CREATE TABLE m AS SELECT g, t::TIMESTAMP AS t, t::DATE AS d, arrow_cast(t::TIMESTAMP, 'Timestamp(Second, None)') AS s, t::TIMESTAMP - TIMESTAMP '2024-01-01' AS u
    FROM (VALUES ('a', '2024-01-01 00:00:00'), ('a', '2024-01-01 00:00:01'), ('a', '2024-01-04 12:00:00'), ('b', '2999-01-01 00:00:00.000001'), ('b', NULL), ('c', NULL)) v(g, t)";

#[tokio::test]
async fn times_have_averages_and_quantiles() {
    let grouped = |what: &str| format!("SELECT g, {what} FROM m GROUP BY g ORDER BY g");
    let cases = [
        (grouped("avg(t)"), "a 2024-01-02T04:00:00.333333; b 2999-01-01T00:00:00.000001; c NULL"),
        (grouped("avg(s)"), "a 2024-01-02T04:00:00; b 2999-01-01T00:00:00; c NULL"),
        (grouped("median(t)"), "a 2024-01-01T00:00:01; b 2999-01-01T00:00:00.000001; c NULL"),
        (grouped("quantile_cont(t, 0.25)"), "a 2024-01-01T00:00:00.500; b 2999-01-01T00:00:00.000001; c NULL"),
        (grouped("median(d)"), "a 2024-01-01T00:00:00; b 2999-01-01T00:00:00; c NULL"),
        (grouped("avg(d)"), "a 2024-01-02T00:00:00; b 2999-01-01T00:00:00; c NULL"),
        (grouped("count(t), avg(t) FILTER (WHERE t < '2024-01-02')"), "a 3 2024-01-01T00:00:00.500; b 1 NULL; c 0 NULL"),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t DESC) FROM m WHERE g = 'a'".to_owned(), "2024-01-01T00:00:01"),
        ("SELECT percentile_cont(0.75) WITHIN GROUP (ORDER BY t DESC) FROM m WHERE g = 'a'".to_owned(), "2024-01-01T00:00:00.500"),
        ("SELECT avg(DISTINCT d), median(DISTINCT d) FROM m WHERE g = 'a'".to_owned(), "2024-01-02T12:00:00 2024-01-02T12:00:00"),
        ("SELECT avg(t), median(t), avg(d) FROM m WHERE false".to_owned(), "NULL NULL NULL"),
        ("SELECT median(u) = INTERVAL '1 second', avg(u) > INTERVAL '1 day' FROM m WHERE g = 'a'".to_owned(), "true true"),
        (
            "SELECT avg(t) OVER (ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), median(t) OVER (ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM m WHERE g = 'a' ORDER BY t".to_owned(),
            "2024-01-01T00:00:00 2024-01-01T00:00:00; 2024-01-01T00:00:00.500 2024-01-01T00:00:00.500; 2024-01-02T18:00:00.500 2024-01-02T18:00:00.500",
        ),
        ("SELECT median(x), avg(x), quantile_cont(x, 0.25) FROM (VALUES (1), (2), (4)) v(x)".to_owned(), "2.0 2.3333333333333335 1.5"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[TIMES], &cases).await;
}

/// When this test fails, `functions::aggregate::time_averages` can be removed.
#[tokio::test]
async fn stock_averages_of_times_are_still_refused() {
    let stock = SessionContext::new();
    assert!(stock_batches(&stock, "SELECT avg(DATE '2024-01-01')").await.is_err());
    assert!(stock_batches(&stock, "SELECT median(DATE '2024-01-01')").await.is_err());
}

#[tokio::test]
async fn durations_and_intervals_are_scaled_and_divided() {
    let cases = [
        (
            "SELECT u * 2 = INTERVAL '7 days', 0.5 * u = INTERVAL '42 hours', u / 7 = INTERVAL '12 hours', u / 0.5 = INTERVAL '7 days' FROM m WHERE d = '2024-01-04'",
            "true true true true",
        ),
        (
            "SELECT u / INTERVAL '1 day', u / u, (t - TIMESTAMP '2024-01-01') / INTERVAL '12 hours', INTERVAL '1 day' / u FROM m WHERE d = '2024-01-04'",
            "3.5 1.0 7.0 0.2857142857142857",
        ),
        ("SELECT (max(t) - min(t)) / 2 = INTERVAL '42 hours' FROM m WHERE g = 'a'", "true"),
        (
            "SELECT INTERVAL '3 days' / 2 = INTERVAL '36 hours', INTERVAL '1 month' / 2 = INTERVAL '15 days'",
            "true true",
        ),
        ("SELECT count(*) FROM m WHERE u * 2 IS NULL AND u / 2 IS NULL AND u / NULL IS NULL", "2"),
        ("SELECT count(*) FROM m WHERE (t - TIMESTAMP '2024-01-01') / INTERVAL '1 day' > 3", "2"),
        ("SELECT t + u * 2 FROM m WHERE d = '2024-01-04'", "2024-01-11T12:00:00"),
    ];
    expect_rows(&[TIMES], &cases).await;
    let ctx = serrate::sql::session();
    rows_or_error(&ctx, TIMES).await;
    for (sql, message) in [
        ("SELECT u / 0 FROM m", "cannot divide"),
        ("SELECT u * 1e30 FROM m WHERE u > INTERVAL '1 day'", "cannot multiply"),
        ("SELECT u / INTERVAL '1 month' FROM m", "month"),
    ] {
        let refused = rows_or_error(&ctx, sql).await;
        assert!(refused.contains(message), "{sql}: {refused}");
    }
}

const GAPS: &str = "CREATE TABLE p AS SELECT id, ragged_diff(t) AS d FROM (VALUES
    (1, [TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-01 00:00:00.000001', TIMESTAMP '2024-01-01 00:00:00.000003', TIMESTAMP '2024-01-03 00:00:00']),
    (2, [TIMESTAMP '1600-01-01', TIMESTAMP '2999-12-31 00:00:00.000001']),
    (3, [TIMESTAMP '2024-01-02', TIMESTAMP '2024-01-01 23:59:59.999999', TIMESTAMP '2024-01-01 23:59:59.999997']),
    (4, [TIMESTAMP '2024-01-01']), (5, []::TIMESTAMP[]), (6, NULL)) v(id, t)";

/// The same values in lists and in rows have the same means and quantiles.
#[tokio::test]
async fn lists_of_durations_have_the_means_and_medians_of_rows() {
    let ctx = serrate::sql::session();
    rows_or_error(&ctx, GAPS).await;
    for (of_rows, of_lists) in [
        ("avg(x)", "ragged_mean(d)"),
        ("median(x)", "ragged_median(d)"),
        ("quantile_cont(x, 0.25)", "ragged_quantile(d, 0.25)"),
        ("quantile_cont(x, 0.9)", "ragged_quantile(d, [0.1, 0.9])[2]"),
    ] {
        let rows = format!(
            "SELECT id, {of_rows} AS v FROM (SELECT id, unnest(d) AS x FROM p) GROUP BY id"
        );
        let sql = format!(
            "SELECT count(*), count(r.v), count(*) FILTER (WHERE l.v IS DISTINCT FROM r.v) FROM (SELECT id, {of_lists} AS v FROM p WHERE ragged_count(d) > 0) l JOIN ({rows}) r USING (id)"
        );
        assert_eq!(rows_or_error(&ctx, &sql).await, "3 3 0", "{sql}");
    }
    let cases = [
        (
            "SELECT ragged_mean(d)::VARCHAR, ragged_median(d)::VARCHAR FROM p WHERE id > 2 ORDER BY id",
            "-00:00:00.000002 -00:00:00.000001; NULL NULL; NULL NULL; NULL NULL",
        ),
        (
            "SELECT ragged_window(d, [1, 2, 3, 4], [4], 'mean', before => 'unbounded')::VARCHAR FROM p WHERE id = 1",
            "[16:00]",
        ),
        (
            "SELECT ragged_rolling(d, 2, 'mean', 1)::VARCHAR FROM p WHERE id = 1",
            "[NULL, 00:00:00.000001, 00:00:00.000002, 1d]",
        ),
        (
            "SELECT ragged_rolling(d, 2, 'median', 1)::VARCHAR FROM p WHERE id = 3",
            "[NULL, -00:00:00.000001, -00:00:00.000001]",
        ),
        (
            "SELECT ragged_rolling(d, 2, 'quantile', 1, 1.0)::VARCHAR FROM p WHERE id = 3",
            "[NULL, -00:00:00.000001, -00:00:00.000001]",
        ),
        (
            "SELECT ragged_mean([d, d], -1)::VARCHAR FROM p WHERE id = 3",
            "[-00:00:00.000002, -00:00:00.000002]",
        ),
        (
            "SELECT ragged_mean([d, d], 1)::VARCHAR FROM p WHERE id = 3",
            "[NULL, -00:00:00.000001, -00:00:00.000002]",
        ),
        (
            "SELECT ragged_mean_agg(d)::VARCHAR FROM p WHERE id IN (1, 3)",
            "[NULL, 00:00, 00:00, 1d 23:59:59.999997]",
        ),
        ("SELECT ragged_mean_agg(d) IS NULL FROM p WHERE id = 6", "true"),
        (
            "SELECT arrow_typeof(ragged_mean(d)), arrow_typeof(ragged_quantile(d, [0.5])) FROM p WHERE id = 1",
            "Duration(µs) List(Duration(µs))",
        ),
    ];
    expect_rows(&[GAPS], &cases).await;
    let refused = rows_or_error(&ctx, "SELECT ragged_std(d) FROM p").await;
    assert!(refused.contains("std"), "{refused}");
}

#[tokio::test]
async fn ragged_group_without_cuts_has_no_groups() {
    let cases = [
        ("SELECT ragged_group([1, 2], [1, 2], NULL::INT[]) IS NULL", "true"),
        ("SELECT len(ragged_group([1, 2], [1, 2], coalesce(NULL::INT[], [])))", "0"),
        ("SELECT ragged_group([1, 2], [1, 2], NULL)::VARCHAR", "[[1], [2]]"),
        ("SELECT ragged_group([]::INT[], []::INT[], [1, 2])::VARCHAR", "[[], []]"),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn messages_show_intervals_as_results_do() {
    let ctx = serrate::sql::session();
    for (sql, shown) in [
        (
            "SELECT ragged_window([1], [1], 1, 'sum', before => INTERVAL '3 days')",
            "3d is neither 'unbounded' nor an integer or a finite float",
        ),
        (
            "SELECT ragged_regr_slope([1, 2], [DATE '2020-01-01', DATE '2020-01-02'])",
            "write extract(epoch FROM x) for seconds",
        ),
    ] {
        let refused = rows_or_error(&ctx, sql).await;
        assert!(refused.contains(shown), "{sql}: {refused}");
    }
}
