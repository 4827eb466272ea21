//! Functions and syntax of DuckDB that the planner rewrites to others, and errors that name
//! counterparts.

use super::*;

#[tokio::test]
async fn intervals_are_computed_from_numbers() {
    expect_rows(
        &["CREATE TABLE n AS SELECT * FROM (VALUES (1, 2, 0.5), (2, NULL, 1.5)) v(id, k, f)"],
        &[
            ("SELECT DATE '2024-01-31' + k * INTERVAL '1 month' FROM n ORDER BY id", "2024-03-31; NULL"),
            ("SELECT TIMESTAMP '2024-01-31 00:00:00' + INTERVAL '2 days' * k FROM n ORDER BY id", "2024-02-04T00:00:00; NULL"),
            ("SELECT TIMESTAMP '2024-01-31 00:00:00' + f * INTERVAL '1 day' FROM n ORDER BY id", "2024-01-31T12:00:00; 2024-02-01T12:00:00"),
            ("SELECT TIMESTAMP '2024-01-31 00:00:00' + INTERVAL (k + 1) HOUR, TIMESTAMP '2024-01-31 00:00:00' - INTERVAL id DAY FROM n ORDER BY id", "2024-01-31T03:00:00 2024-01-30T00:00:00; NULL 2024-01-29T00:00:00"),
            ("SELECT DATE '2024-01-31' + to_days(id), DATE '2024-01-31' + to_months(-id) FROM n ORDER BY id", "2024-02-01 2023-12-31; 2024-02-02 2023-11-30"),
            ("SELECT TIMESTAMP '2024-01-31 00:00:00' + to_seconds(f) FROM n ORDER BY id", "2024-01-31T00:00:00.500; 2024-01-31T00:00:01.500"),
            ("SELECT to_years(1) = INTERVAL '1 year', to_weeks(2) = INTERVAL '14 days', to_hours(25) = INTERVAL '25 hours', to_minutes(3) = INTERVAL '3 minutes'", "true true true true"),
            ("SELECT INTERVAL '1 day' * 3 = INTERVAL '3 days', 2 * INTERVAL 3 HOURS = INTERVAL '6 hours'", "true true"),
            ("SELECT last_day(DATE '2024-02-03'), last_day(TIMESTAMP '2023-12-31 23:59:59'), last_day(NULL::DATE)", "2024-02-29 2023-12-31 NULL"),
            ("SELECT last_day([DATE '2024-02-03', NULL]), last_day([[TIMESTAMP '2999-12-03 10:00'], []])", "[2024-02-29, ] [[2999-12-31], []]"),
        ],
    )
    .await;
}

#[tokio::test]
async fn products_of_intervals_are_exact() {
    let third = "TIMESTAMP '2020-01-01 00:00:00' + x * INTERVAL '1 day'";
    expect_rows(
        &["CREATE TABLE n AS SELECT CAST(1 AS DOUBLE) / 3 AS x, CAST(2.5 AS DECIMAL(5, 2)) AS d, INTERVAL '1 month 1 day' AS i, arrow_cast(3, 'UInt64') AS u, CAST(NULL AS INT) AS z"],
        &[
            (&format!("SELECT {third} FROM n"), "2020-01-01T08:00:00"),
            ("SELECT 0.1 * 3 * INTERVAL '1 day' = INTERVAL '25920 seconds'", "true"),
            ("SELECT to_seconds(0.00001) = INTERVAL '10 microseconds'", "true"),
            ("SELECT INTERVAL '1 day' * 2 * 3 = INTERVAL '6 days', 2 * (3 * INTERVAL '1 day') = INTERVAL '6 days'", "true true"),
            ("SELECT (INTERVAL '1 day' + INTERVAL '1 hour') * 2 = INTERVAL '50 hours'", "true"),
            ("SELECT i * 2 = INTERVAL '2 months 2 days', u * i = INTERVAL '3 months 3 days', d * i = INTERVAL '2 months 17 days 12 hours', z * i, i * NULL FROM n", "true true true NULL NULL"),
            ("SELECT DATE '2020-01-31' + i * 1, DATE '2020-01-31' - u * INTERVAL '1 month' FROM n", "2020-03-01T00:00:00 2019-10-31"),
            ("SELECT TIMESTAMP '2020-01-01 00:00:00' + sum(INTERVAL '1 day' * k) FROM range(3) t(k)", "2020-01-04T00:00:00"),
            ("SELECT DATE '2020-01-01' + 25 * INTERVAL '1 hour'", "2020-01-02T01:00:00"),
            ("SELECT count(*) FROM n WHERE TIMESTAMP '2020-01-03 00:00:00' - 2 * INTERVAL '1 day' = TIMESTAMP '2020-01-01 00:00:00'", "1"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    for sql in [
        "SELECT 9223372036854775807 * INTERVAL '2 days'",
        "SELECT k * INTERVAL '1 month' FROM (VALUES (9223372036854775807)) v(k)",
        "SELECT x * INTERVAL '1 hour' FROM (VALUES ('NaN'::DOUBLE)) v(x)",
    ] {
        let refused = rows_or_error(&ctx, sql).await;
        assert!(refused.contains("the result is infinite, NaN or too long"), "{sql}: {refused}");
    }
}

#[tokio::test]
async fn intervals_in_lists_are_scaled_as_scalars_are() {
    let long = "arrow_cast(d, 'LargeList(Duration(Microsecond))')";
    expect_rows(
        &[
            "CREATE TABLE p AS SELECT id, t::TIMESTAMP[] AS t, ragged_diff(t::TIMESTAMP[]) AS d, n FROM (VALUES (1, ['2020-01-01', '2020-02-01', '2020-02-03'], [1, 2, NULL]), (2, [], []), (3, NULL, NULL)) v(id, t, n)",
            "CREATE TABLE one AS SELECT TIMESTAMP '2020-01-01 00:00:07' - TIMESTAMP '2020-01-01' AS d, INTERVAL '1 month' AS i",
        ],
        &[
            ("SELECT d / INTERVAL '1 day' FROM p ORDER BY id", "[, 31.0, 2.0]; []; NULL"),
            ("SELECT d * 2 / INTERVAL '1 day', 2 * d / INTERVAL '1 day', d / 2 / INTERVAL '1 hour' FROM p ORDER BY id", "[, 62.0, 4.0] [, 62.0, 4.0] [, 372.0, 24.0]; [] [] []; NULL NULL NULL"),
            ("SELECT d * 0.5 / INTERVAL '1 hour', d / 0.5 / INTERVAL '1 day', d * n / INTERVAL '1 day' FROM p ORDER BY id", "[, 372.0, 24.0] [, 62.0, 4.0] [, 62.0, ]; [] [] []; NULL NULL NULL"),
            ("SELECT d / d, INTERVAL '62 days' / d, d / NULL FROM p WHERE id = 1", "[, 1.0, 1.0] [, 2.0, 31.0] [, , ]"),
            ("SELECT (t - ragged_first(t)) / INTERVAL '365.25 days' FROM p WHERE id = 1", "[0.0, 0.08487337440109514, 0.09034907597535935]"),
            ("SELECT [[d, d]] * 3 / d, n * d / d FROM one, (SELECT n FROM p WHERE id = 1)", "[[3.0, 3.0]] [1.0, 2.0, ]"),
            ("SELECT ([d] / 2)[1] = d / 2, ([-1 * d] / 2)[1] = -1 * d / 2, ([d] * 1e-7)[1] = d * 1e-7 FROM one", "true true true"),
            ("SELECT ([i] * 0.5)[1] = i * 0.5, ([1.5] * i)[1] = 1.5 * i, ([i] / 3)[1] = INTERVAL '10 days' FROM one", "true true true"),
            ("SELECT arrow_typeof([d] * 2), arrow_typeof([d] / 2), arrow_typeof([d] / d), arrow_typeof([i] * 2.0) FROM one", "List(Duration(µs)) List(Duration(µs)) List(Float64) List(Interval(MonthDayNano))"),
            (&format!("SELECT {long} / INTERVAL '1 day', arrow_typeof({long} * 2) FROM p WHERE id = 1"), "[, 31.0, 2.0] LargeList(Duration(µs))"),
            ("SELECT arrow_cast(d, 'FixedSizeList(3, Duration(Microsecond))') / INTERVAL '1 day' FROM p WHERE id = 1", "[, 31.0, 2.0]"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    for (sql, words) in [
        ("SELECT [INTERVAL '1 day'] / 0", "cannot divide a span of time by 0"),
        (
            "SELECT [TIMESTAMP '2020-01-02' - TIMESTAMP '2020-01-01'] / INTERVAL '1 month'",
            "no fixed length",
        ),
        ("SELECT [TIMESTAMP '2020-01-02' - TIMESTAMP '2020-01-01'] * 'a'", "compatible types"),
        ("SELECT 2 / [INTERVAL '1 day']", "compatible types"),
    ] {
        let refused = rows_or_error(&ctx, sql).await;
        assert!(refused.contains(words), "{sql}: {refused}");
    }
}

#[tokio::test]
async fn errors_of_wrong_arguments_say_what_to_write() {
    let ctx = serrate::sql::session();
    for (sql, words) in [
        ("SELECT to_days([1, 2])", "ragged_map(x, lambda v: to_days(v))"),
        ("SELECT [1, 2] | 1", "ragged_map(x, lambda v: v | 1)"),
        ("SELECT [1, 2] & 1", "ragged_map(x, lambda v: v & 1)"),
        ("SELECT isfinite(TIMESTAMP '2020-01-01')", "a date or timestamp is always finite"),
        ("SELECT isinf(DATE '2020-01-01')", "a date or timestamp is always finite"),
    ] {
        let refused = rows_or_error(&ctx, sql).await;
        assert!(refused.contains(words), "{sql}: {refused}");
    }
}

#[tokio::test]
async fn to_timestamp_of_a_column_takes_a_format() {
    expect_rows(
        &["CREATE TABLE s AS SELECT * FROM (VALUES (1, '04.03.2020', ['05.03.2020', NULL]), (2, NULL, NULL)) v(id, s, l)"],
        &[
            ("SELECT to_timestamp(s, '%d.%m.%Y')::TIMESTAMP FROM s ORDER BY id", "2020-03-04T00:00:00; NULL"),
            ("SELECT to_timestamp(l, '%d.%m.%Y')::TIMESTAMP[] FROM s ORDER BY id", "[2020-03-05T00:00:00, ]; NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn stock_parsed_columns_still_lack_their_zone() {
    let config = SessionConfig::new().set_str("datafusion.execution.time_zone", "UTC");
    let ctx = SessionContext::new_with_config(config);
    let sql = "SELECT to_timestamp(s, '%Y-%m-%d') FROM (VALUES ('2020-01-01')) v(s)";
    assert!(stock_batches(&ctx, sql).await.is_err());
}

/// When this test fails, `functions::span_product` and its planner, `span_operations`, can be
/// removed.
#[tokio::test]
async fn stock_intervals_are_still_not_multiplied() {
    let ctx = SessionContext::new();
    let product = stock_batches(&ctx, "SELECT INTERVAL '1 day' * x FROM (VALUES (2)) v(x)").await;
    assert!(product.is_err());
}

#[tokio::test]
async fn patterns_have_an_escape_character() {
    expect_rows(
        &["CREATE TABLE p AS SELECT * FROM (VALUES (1, 'a%b'), (2, 'axb'), (3, 'a\\b'), (4, 'a!b')) v(id, s)"],
        &[
            ("SELECT id FROM p WHERE s LIKE 'a!%b' ESCAPE '!' ORDER BY id", "1"),
            ("SELECT id FROM p WHERE s NOT LIKE 'a!%b' ESCAPE '!' ORDER BY id", "2; 3; 4"),
            ("SELECT id FROM p WHERE s ILIKE 'A!!B' ESCAPE '!' ORDER BY id", "4"),
            ("SELECT id FROM p WHERE s LIKE 'a\\_' ESCAPE '!' ORDER BY id", "3"),
            ("SELECT id FROM p WHERE s LIKE 'a\\b' ESCAPE '' ORDER BY id", "3"),
            ("SELECT id FROM p WHERE s LIKE 'a!xb' ESCAPE '!' ORDER BY id", "2"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    let refused = rows_or_error(&ctx, "SELECT 'a' LIKE 'a!' ESCAPE '!'").await;
    assert!(refused.contains("escape"), "{refused}");
}

#[tokio::test]
async fn literals_accessors_and_aggregate_syntax_of_duckdb_are_planned() {
    expect_rows(
        &["CREATE TABLE n AS SELECT * FROM (VALUES (1, NULL), (2, 5), (3, 6)) v(id, k)"],
        &[
            ("SELECT E'a\\nb' = 'a' || chr(10) || 'b', e'it\\'s'", "true it's"),
            ("SELECT list_value(1, 2)[2], list_value() IS NULL", "2 false"),
            (
                "SELECT grouping_id(a, b), count(*) FROM (VALUES (1, 2)) t(a, b) GROUP BY ROLLUP (a, b) ORDER BY 1",
                "0 1; 1 1; 3 1",
            ),
            ("SELECT {'a': 1, 'b': {'c': 2}}.a, ({'b': {'c': 2}}).b.c, [{'a': 3}][1].a", "1 2 3"),
            ("SELECT id, first_value(k IGNORE NULLS) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM n ORDER BY id", "1 5; 2 5; 3 5"),
            ("SELECT last_value(k RESPECT NULLS ORDER BY id DESC) FROM n", "NULL"),
            ("SELECT first_value(k ORDER BY id) FROM n", "NULL"),
            ("SELECT 'ab'::BLOB = CAST('ab' AS BYTEA)", "true"),
        ],
    )
    .await;
}

#[tokio::test]
async fn strings_are_indexed_and_sliced() {
    expect_rows(
        &["CREATE TABLE s AS SELECT * FROM (VALUES (1, 'täxt'), (2, ''), (3, NULL)) v(id, s)"],
        &[
            (
                "SELECT s[2], s[9], s[-1], s[2:3], s[:2], s[3:], s[-2:], s[3:2], s[4:9], s[-9:] FROM s WHERE id = 1",
                "ä  t äx tä xt xt  t täxt",
            ),
            ("SELECT s[1] = '', s[1] IS NULL, s[1:2] IS NULL FROM s WHERE id > 1 ORDER BY id", "true false false; NULL true true"),
            ("SELECT 'text'[2], ['ab', 'cd'][2][1]", "e c"),
            ("SELECT s[0] = '', s[0:2], s[0:], s[0:0] = '' FROM s WHERE id = 1", "true tä täxt true"),
            ("SELECT s[0] IS NULL, s[0:2] IS NULL FROM s WHERE id = 3", "true true"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    for sql in [
        "SELECT 'hello'[-3:-2]",
        "SELECT 'hello'[1:4:2]",
        "SELECT 'hello'[-2]",
        "SELECT s[k] FROM (VALUES ('abc', 2)) v(s, k)",
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains("only at literal positions") && e.contains("substr(s, i, n)"), "{e}");
    }
    let frame = serrate::sql::sql(&ctx, "SELECT 2 * INTERVAL '1 day', to_days(3)").await.unwrap();
    let names: Vec<&str> = frame.schema().fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["2 * INTERVAL '1 day'", "to_days(3)"]);
}

#[tokio::test]
async fn aggregates_of_duckdb_are_computed() {
    let setup = [
        "CREATE TABLE a AS SELECT * FROM (VALUES (1, 'x', 4.0::DOUBLE), (1, 'y', 1.0), (1, 'x', 2.0), (2, 'z', NULL), (2, NULL, 8.0)) v(g, s, f)",
    ];
    let cases = [
        (
            "SELECT mode() WITHIN GROUP (ORDER BY s), percentile_disc(0.5) WITHIN GROUP (ORDER BY f) FROM a",
            "x 2.0",
        ),
        ("SELECT g, mode(s) FROM a GROUP BY g ORDER BY g", "1 x; 2 z"),
        ("SELECT mode(s) FILTER (WHERE s <> 'x'), mode(f) FROM a", "y 1.0"),
        // `mode` compares whole lists and structs, as in DuckDB.
        (
            "SELECT mode(x)::VARCHAR FROM (VALUES ([1, 2]), ([1, 2]), ([3, 3, 3]), (NULL), (NULL), (NULL)) t(x)",
            "[1, 2]",
        ),
        (
            "SELECT mode(x)::VARCHAR, mode(x) FILTER (WHERE len(x) = 1) IS NULL FROM (VALUES ([2, NULL]), ([2, 1]), ([2, 1]), ([2, NULL])) t(x)",
            "[2, 1] true",
        ),
        (
            "SELECT mode(x)::VARCHAR FROM (VALUES ([0.0, 'NaN'::DOUBLE]), ([-0.0, 'NaN'::DOUBLE]), ([-1.0])) t(x)",
            "[0.0, NaN]",
        ),
        ("SELECT mode({'a': x})::VARCHAR FROM (VALUES (1), (2), (2)) t(x)", "{'a': 2}"),
        ("SELECT mode(x) IS NULL FROM (SELECT [1] AS x WHERE false)", "true"),
        (
            "SELECT mode(x) OVER (ORDER BY x)::VARCHAR FROM (VALUES ([1, 2]), ([1, 2]), ([3, 3, 3])) t(x) ORDER BY x",
            "[1, 2]; [1, 2]; [1, 2]",
        ),
        ("SELECT g, mode(s) OVER (PARTITION BY g) FROM a ORDER BY g", "1 x; 1 x; 1 x; 2 z; 2 z"),
        (
            "SELECT quantile_disc(f, 0.5), quantile_disc(f, 0), quantile_disc(f, 1), quantile_disc(f, 0.51) FROM a",
            "2.0 1.0 8.0 4.0",
        ),
        (
            "SELECT quantile_disc(f, 0.5) FILTER (WHERE f > 1), quantile_disc(f, 0.5) FILTER (WHERE f > 9) FROM a",
            "4.0 NULL",
        ),
        (
            "SELECT quantile_cont(f, [0.25, 0.5]), quantile_disc(f, [0, 1]) FROM a",
            "[1.75, 3.0] [1.0, 8.0]",
        ),
        ("SELECT g, quantile_cont(f, [0.5]) FROM a GROUP BY g ORDER BY g", "1 [2.0]; 2 [8.0]"),
        (
            "SELECT g, quantile_disc(f, [0, 1]) FILTER (WHERE g = 1) AS q FROM a GROUP BY g ORDER BY g",
            "1 [1.0, 4.0]; 2 NULL",
        ),
        (
            "SELECT quantile_cont(f, [0.5, 0.9]) FILTER (WHERE f > 9), quantile_disc(f, [0.5]) FILTER (WHERE f > 9) IS NULL FROM a",
            "NULL true",
        ),
        (
            "SELECT geomean(f), round(sem(f), 6), favg(f), fsum(f) FROM a",
            "2.82842712474619 1.340476 3.75 15.0",
        ),
        (
            "SELECT approx_count_distinct(s), approx_quantile(f, 0.5) BETWEEN 2 AND 4 FROM a",
            "3 true",
        ),
        (
            "SELECT string_agg(s, ',' ORDER BY f), string_agg(s, ',' ORDER BY s DESC), count(*) FROM a",
            "y,x,x,z z,y,x,x 5",
        ),
        (
            "SELECT g, string_agg(s, '' ORDER BY f DESC) AS a, string_agg(DISTINCT s, '' ORDER BY s) FILTER (WHERE f > 1) FROM a GROUP BY g ORDER BY g",
            "1 xxy x; 2 z NULL",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `sql::statement::keys::text_orders` can be removed.
#[tokio::test]
async fn stock_orders_of_texts_still_conflict() {
    let stock = SessionContext::new();
    let sql = "SELECT string_agg(a, ',' ORDER BY a), string_agg(a, ',' ORDER BY b) FROM (VALUES ('x', 1)) v(a, b)";
    let refused = stock_error(&stock, sql).await;
    assert!(refused.contains("Conflicting ordering"), "{refused}");
}

#[tokio::test]
async fn functions_of_duckdb_are_computed() {
    let cases = [
        (
            "SELECT epoch_ms(TIMESTAMP '2024-01-01 00:00:00.1239'), epoch_us(DATE '2024-01-01'), epoch_ns(TIMESTAMP '1969-12-31 23:59:59.5')",
            "1704067200123 1704067200000000 -500000000",
        ),
        ("SELECT epoch_ms(1700000000123), epoch_ms(NULL)", "2023-11-14T22:13:20.123 NULL"),
        (
            "SELECT last_day(DATE '2024-02-03'), last_day(TIMESTAMP '1600-02-29 23:59:59'), last_day('1900-02-01'), last_day(DATE '-0004-02-01')",
            "2024-02-29 1600-02-29 1900-02-28 -0004-02-29",
        ),
        (
            "SELECT last_day(NULL), last_day([DATE '2023-12-31', NULL]), last_day((TIMESTAMP '2020-02-01 03:30' AT TIME ZONE 'UTC') AT TIME ZONE 'America/New_York')",
            "NULL [2023-12-31, ] 2020-01-31",
        ),
        ("SELECT make_timestamp(2024, 1, 2, 3, 4, 5.678)", "2024-01-02T03:04:05.678"),
        (
            "SELECT timezone('America/New_York', TIMESTAMP '2024-01-01') AT TIME ZONE 'UTC'",
            "2024-01-01T05:00:00Z",
        ),
        (
            "SELECT isinf('inf'::DOUBLE), isinf(1), isfinite('nan'::DOUBLE), isfinite(1.5), isfinite(NULL::DOUBLE)",
            "true false false true NULL",
        ),
        (
            "SELECT regexp_extract_all('a1b22', '[0-9]+'), regexp_extract_all('a1b2', '([a-z])([0-9])', 2), regexp_extract_all('abc', '[0-9]'), regexp_extract_all(NULL, 'a')",
            "[1, 22] [1, 2] [] NULL",
        ),
        (
            "SELECT regexp_split_to_array('a,b;c', '[,;]'), string_split_regex('abc', 'x')",
            "[a, b, c] [abc]",
        ),
        (
            "SELECT regexp_replace('abc', 'b', '\\\\'), regexp_replace('abc', '(b)', '<\\1>'), regexp_replace('abc', 'b', '$1')",
            "a\\c a<b>c a$1c",
        ),
        (
            "SELECT list_unique([1, 1, NULL, 2]), list_reverse_sort([1, NULL, 3, 2]), list_apply([1, 2], x -> x + 1)",
            "2 [3, 2, 1, ] [2, 3]",
        ),
        (
            "SELECT list_unique([[1, 2], [1, 2], NULL]), array_unique([{'a': 1}, {'a': 1}]), list_unique([]), list_unique(NULL::INT[])",
            "1 1 0 NULL",
        ),
        ("SELECT strlen('aé'), unicode('a')", "3 97"),
        ("SELECT unicode(''), ascii(''), unicode('é'), unicode(NULL::VARCHAR)", "-1 0 233 NULL"),
        (
            "SELECT unicode(s), unicode(s) * 2 FROM (VALUES (1, 'ab'), (2, ''), (3, NULL)) v(id, s) ORDER BY id",
            "97 194; -1 -2; NULL NULL",
        ),
        ("SELECT unicode(['a', '', NULL])", "[97, -1, ]"),
        (
            "SELECT split_part('abc', '', 1), split_part('abc', '', 2), split_part('a,b', ',', -1)",
            "abc  b",
        ),
        (
            "SELECT length(b), octet_length(b), strlen(b) FROM (SELECT 'aé'::BYTEA AS b UNION ALL SELECT NULL) ORDER BY b",
            "3 3 3; NULL NULL NULL",
        ),
    ];
    expect_rows(&[], &cases).await;
    let refused =
        rows_or_error(&serrate::sql::session(), "SELECT regexp_extract_all('a', '(')").await;
    assert!(refused.contains("regexp_extract_all") && refused.contains("valid"), "{refused}");
}

/// Functions of other databases and libraries, and the text of the error that suggests a
/// counterpart. Each function is called with one argument, because the error depends on the name
/// only.
const ASKED: [(&str, &str); 63] = [
    ("ord", "write ascii(s)"),
    ("unhex", "write decode(s, 'hex')"),
    ("list_mean", "write ragged_mean(..)"),
    ("list_std", "write ragged_std(x)"),
    ("list_var", "write ragged_var(..)"),
    ("list_stddev_pop", "write ragged_std(x, NULL, 0)"),
    ("list_quantile", "write ragged_quantile(x, 0.9)"),
    ("list_mode", "write ragged_mode(x)"),
    ("list_where", "write ragged_filter(x, mask)"),
    ("list_aggregate", "write the reduction of the list, such as ragged_sum(x)"),
    ("array_avg_of", "docs/functions"),
    ("ragged_variance", "write ragged_var(x)"),
    ("ragged_percentile", "write ragged_quantile(x, 0.9)"),
    ("ragged_forward_fill", "write ragged_ffill(x)"),
    ("ragged_value_counts", "write ragged_zip('value', ragged_group_keys(x), 'count', "),
    ("ragged_drop_nulls", "write ragged_filter(x, ragged_not(ragged_is_null(x)))"),
    ("ragged_rolling_sum", "write ragged_rolling(x, 3, 'sum')"),
    ("ragged_rolling_quantile", "write ragged_rolling(x, 3, 'quantile', q => 0.9)"),
    ("ragged_window_any", "write ragged_window(x, time, time, 'any', before => INTERVAL"),
    ("ragged_pivot", "write ragged_sum(ragged_group(x, k, ['a', 'b']), -1)"),
    ("ragged_join_asof", "write ragged_asof(x, time, at)"),
    ("ragged_resample", "write ragged_group(x, date_trunc('day', time))"),
    ("ragged_split_part", "write split_part(s, ',', 1)"),
    ("ragged_days", "write extract(epoch FROM ragged_diff(time)) / 86400"),
    ("ragged_year", "write year(time)"),
    ("ragged_concat", "write array_concat(x, y)"),
    ("average", "write avg(x) for rows, or ragged_mean(x) for a list"),
    ("count_distinct", "write count(DISTINCT x) for rows"),
    ("resample", "write GROUP BY date_trunc('day', t) for rows, or ragged_group("),
    ("pivot", "write sum(x) FILTER (WHERE k = 'a') for rows"),
    ("pct_change", "write x / lag(x) OVER (ORDER BY t) - 1 for rows, or ragged_diff(x) /"),
    ("days", "write date_diff('day', a, b) for rows"),
    ("months_between", "write date_diff('month', a, b)"),
    ("unix_timestamp", "write epoch(t) for rows"),
    ("timestamp_diff", "write date_sub('day', a, b) for rows"),
    ("week_of_year", "write week(t)"),
    ("iff", "write CASE WHEN x > 1 THEN 1 ELSE 0 END for rows"),
    ("interpolate", "write (ragged_ffill(x) + ragged_bfill(x)) / 2"),
    ("ewm_mean", "write ragged_rolling(x, 3, 'mean')"),
    ("yaer", "did you mean year?"),
    ("monht", "did you mean month?"),
    ("time_buckt", "did you mean time_bucket?"),
    ("dayofweekk", "did you mean dayofweek?"),
    ("epohc", "did you mean epoch?"),
    ("strptime", "write to_timestamp(s, '%Y-%m-%d')::TIMESTAMP for rows, or"),
    ("square", "write x * x"),
    ("roll", "write ragged_tail(x, 1) || ragged_head(x, -1)"),
    ("typeof", "write arrow_typeof(x)"),
    ("argsort", "did you mean ragged_argsort?"),
    ("ragged_maen", "did you mean ragged_mean?"),
    ("ragged_lasst", "did you mean ragged_last?"),
    ("list_contain", "did you mean list_contains?"),
    ("ragged_dayz", "docs/functions and the shell command .functions list all functions"),
    ("skewness", "write ragged_mean(((x - ragged_mean(x)) / ragged_std(x, NULL, 0)) ** 3)"),
    ("yearweek", "write isoyear(t) * 100 + week(t) for rows"),
    (
        "list_multi_hot",
        "write ragged_cast(ragged_fill_null(ragged_isin(['a', 'b'], s), false), 'INT')",
    ),
    ("bigrams", "write ragged_ngrams(x, 2)"),
    ("group_mean", "write ragged_mean(ragged_group(x, k), -1)"),
    ("any_before", "write ragged_window(x, time, at, 'any', before => INTERVAL '30 days')"),
    ("trend", "write regr_slope(y, x) for rows, or ragged_regr_slope(y, x) for a list"),
    ("carry_forward", "write last_value(x IGNORE NULLS) OVER (ORDER BY t) for rows"),
    ("time_since_last", "write t - lag(t) OVER (ORDER BY t) for rows, or at - ragged_asof("),
    ("md5", "docs/functions and the shell command .functions list all functions"),
];

#[tokio::test]
async fn errors_of_unknown_functions_name_a_counterpart() {
    let ctx = serrate::sql::session();
    let mut wrong = Vec::new();
    for (name, expected) in ASKED {
        let e = rows_or_error(&ctx, &format!("SELECT {name}(1)")).await;
        if !e.contains(&format!("there is no function {name}; {expected}")) {
            wrong.push(format!("{name}: {e}\n  not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn errors_of_unsupported_syntax_name_a_counterpart() {
    let ctx = serrate::sql::session();
    for (columns, expected) in [
        ("([1, 2]).list_sum()", "write list_sum(x) instead of x.list_sum()"),
        ("[1, 2].list_sum()", "write list_sum(x) instead of x.list_sum()"),
        (
            "x.list_sum()",
            "there is no function x.list_sum; a call after a dot is not supported, so write list_sum(x)",
        ),
        ("1::HUGEINT", "the type HUGEINT is not supported; write DECIMAL(38, 0)"),
        ("CAST(1 AS utinyint)", "write TINYINT UNSIGNED"),
        ("[1]::UBIGINT[]", "write BIGINT UNSIGNED"),
        ("1::DEC(5, 2)", "the type DEC(5,2) is not supported; write DECIMAL"),
        ("s::DATETIME", "write TIMESTAMP"),
        ("s::TIMESTAMP_MS", "write TIMESTAMP(3)"),
        ("s::JSON", "write VARCHAR"),
        ("s::BLOB", "write BYTEA for the bytes of a string"),
        ("NULL::MAP(VARCHAR, INT)", "write a list of structs"),
        ("s GLOB 'a*'", "GLOB at line 1, column 10 is not supported: write LIKE with %"),
        (
            "s ^@ 'a'",
            "the operator ^@ at line 1, column 10 is not supported: write starts_with(s, 'a')",
        ),
        ("sum(n) FILTER (n > 1)", "write the condition as in FILTER (WHERE x > 1)"),
        ("unnest([x], recursive := true)", ":= true of unnest is not supported: "),
        ("unnest([x], recursive => true)", "write unnest(ragged_flatten(x)) for all levels"),
        ("ragged_sum(x) FILTER (WHERE true)", "use CASE WHEN true THEN ragged_sum(..) END"),
        ("ragged_sum(x) FILTER (WHERE n > 1)", "use CASE WHEN n > 1 THEN ragged_sum(..) END"),
    ] {
        let sql = format!("SELECT {columns} FROM (VALUES ([1, 2], 'ab', 3)) t(x, s, n)");
        let e = rows_or_error(&ctx, &sql).await;
        assert!(e.contains(expected), "{sql}: {e}");
        assert!(!e.contains("Span("), "{sql}: {e}");
    }
    // A statement with the word FILTER that is wrong for another reason has the error of that
    // reason.
    let e = rows_or_error(&ctx, "SELECT sum(n) FILTER (WHERE n > 1 FROM t").await;
    assert!(e.contains("Expected: )"), "{e}");
}

#[tokio::test]
async fn errors_of_list_filter_conditions_that_are_lists_say_what_to_write() {
    let ctx = serrate::sql::session();
    for condition in ["v > 1", "v IN (1, 3)"] {
        let sql = format!(
            "SELECT list_filter(x, lambda v: {condition}) FROM (VALUES ([[1, 2], [3]])) t(x)"
        );
        let e = rows_or_error(&ctx, &sql).await;
        assert!(e.contains("use ragged_filter(x, x > 1)"), "{condition}: {e}");
    }
    let sql = "SELECT list_filter(x, lambda v: ragged_any(v > 2)) AS y FROM (VALUES ([[1, 2], [3]])) t(x)";
    assert_eq!(rows_or_error(&ctx, sql).await, "[[3]]");
}

#[tokio::test]
async fn errors_of_copy_without_a_known_format_say_what_to_write() {
    let ctx = serrate::sql::session();
    for (name, expected) in [
        (
            "x.tsv",
            "the extension .tsv does not name a format; write COPY .. TO 'FILE' (FORMAT csv)",
        ),
        ("x", "the name of the file has no extension, so its format is unknown; write COPY"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let e = rows_or_error(&ctx, &format!("COPY (SELECT 1 AS a) TO '{}'", path.display())).await;
        assert!(e.contains(expected), "{name}: {e}");
    }
}

#[tokio::test]
async fn all_errors_of_a_statement_are_reported() {
    let ctx = serrate::sql::session();
    let sql = "SELECT strptime('a'), list_aggregate([1], 'sum'), nope, cod FROM (SELECT 1 AS code)";
    let Err(e) = serrate::sql::sql(&ctx, sql).await else { panic!("{sql} worked") };
    let found: Vec<String> =
        e.iter().map(datafusion::error::DataFusionError::strip_backtrace).collect();
    let expected = [
        "there is no function strptime; write to_timestamp(s, '%Y-%m-%d')",
        "there is no function list_aggregate; write the reduction of the list",
        "No field named nope.\nValid fields are code.",
        "No field named cod. Did you mean 'code'?\nValid fields are code.",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found}\n  not {expected}");
    }
}

#[tokio::test]
async fn errors_list_each_valid_column_once() {
    let ctx = serrate::sql::session();
    for sql in
        ["SELECT x FROM (SELECT 1 AS x) GROUP BY y", "SELECT x FROM (SELECT 1 AS x) ORDER BY y"]
    {
        let e = rows_or_error(&ctx, sql).await;
        assert!(
            e.contains("No field named y.") && e.ends_with("Valid fields are x."),
            "{sql}: {e}"
        );
    }
}

#[tokio::test]
async fn show_tables_lists_the_tables_of_the_user() {
    expect_rows(
        &["CREATE TABLE t AS SELECT 1 AS a", "CREATE VIEW b AS SELECT 2 AS a"],
        &[("SHOW TABLES", "datafusion public b VIEW; datafusion public t BASE TABLE")],
    )
    .await;
    let ctx = serrate::sql::session();
    assert_eq!(rows_or_error(&ctx, "SHOW TABLES").await, "");
    let views = "SELECT count(*) > 0 FROM information_schema.tables";
    assert_eq!(rows_or_error(&ctx, views).await, "true");
}

#[tokio::test]
async fn errors_say_how_text_is_quoted() {
    let ctx = serrate::sql::session();
    let from = "FROM (SELECT 'x' AS sex) t";
    for (sql, expected) in [
        (
            format!("SELECT sex {from} WHERE sex = \"Male\""),
            "Valid fields are t.sex.\nDouble quotes enclose a name; write text as 'Male'.",
        ),
        (
            "SELECT \"it's\"".to_owned(),
            "No field named \"it's\".\nDouble quotes enclose a name; write text as 'it''s'.",
        ),
    ] {
        let e = rows_or_error(&ctx, &sql).await;
        assert!(e.ends_with(expected), "{sql}: {e}");
    }
    // A suggested column explains the error better, and `male` is not in quotes.
    for name in ["\"se\"", "male", "t.\"male\""] {
        let e = rows_or_error(&ctx, &format!("SELECT {name} {from}")).await;
        assert!(e.contains("No field named") && !e.contains("Double quotes"), "{name}: {e}");
    }
}

#[tokio::test]
async fn errors_say_how_to_name_a_column_of_several_tables() {
    let ctx = serrate::sql::session();
    let sql = "SELECT id FROM (SELECT 1 AS id) t JOIN (SELECT 1 AS id) u ON t.id = u.id";
    let e = rows_or_error(&ctx, sql).await;
    let expected = "Ambiguous reference to unqualified field id; several tables have this column: write the table before it, as in t.id, or join the tables with USING";
    assert!(e.contains(expected), "{e}");
}

#[tokio::test]
async fn errors_of_frequent_mistakes_say_what_to_write() {
    let ctx = serrate::sql::session();
    for (sql, expected) in [
        ("FROM meds(\"x\")", "meds takes one string in single quotes"),
        ("FROM vocab(\"x\")", "vocab takes one string in single quotes"),
        ("SELECT [now()] + 1", "write a number as an interval, as in n * INTERVAL '1 day'"),
        ("SELECT 1.5 + [now()]", "write a number as an interval, as in n * INTERVAL '1 day'"),
        ("SELECT now() + 1", "write a number as an interval, as in n * INTERVAL '1 day'"),
        ("SELECT ak.sum([1])", "there is no function ak.sum; write ragged_sum(..)"),
        ("SELECT np.abs([1])", "there is no function np.abs; write ragged_abs(..)"),
        ("SELECT ragged_filter([1], [[true]])", "such as ragged_any(mask, -1)"),
        ("SELECT date_trunc([now()], 'month')", "check the number and the order of the arguments"),
        (
            "SELECT c FROM (SELECT [1] AS x) t, unnest(x) AS c",
            "c is the table of unnest; to name its column, write unnest(..) AS c(value).",
        ),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(expected), "{sql}: {e}");
    }
}

#[tokio::test]
async fn errors_list_columns_of_files_without_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("x.parquet"));
    let ctx = serrate::sql::session();
    let copy = format!("COPY (SELECT 1 AS code, 2 AS n) TO '{path}'");
    assert_eq!(rows_or_error(&ctx, &copy).await, "1");
    let e = rows_or_error(&ctx, &format!("SELECT cod FROM '{path}'")).await;
    assert!(e.contains("Did you mean 'code'?\nValid fields are code, n."), "{e}");
}

#[tokio::test]
async fn ragged_window_takes_the_closed_argument_of_polars() {
    let window = |closed: &str| {
        format!(
            "ragged_window([1, 2, 3, 4], [1, 2, 3, 4], [3], NULL, before => 2, after => 1, closed => '{closed}')"
        )
    };
    for (name, ends, expected) in [
        ("right", "(]", "[[2, 3, 4]]"),
        ("left", "[)", "[[1, 2, 3]]"),
        ("both", "[]", "[[1, 2, 3, 4]]"),
        ("none", "()", "[[2, 3]]"),
    ] {
        let sql = format!("SELECT {} AS a, {} AS b", window(name), window(ends));
        expect_rows(&[], &[(&sql, &format!("{expected} {expected}"))]).await;
    }
}
