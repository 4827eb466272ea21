//! Strings of dates, times and intervals in common formats, such as times without seconds.

use super::*;

const TEXTS: &str =
    "CREATE TABLE x AS SELECT * FROM (VALUES (1, '2024-01-05 10:00'), (2, '2024/1/5 9:30:15.5'),
    (3, ' 2024-01-05 '), (4, NULL), (5, '2024-01-05T10:00:00')) v(id, s)";

#[tokio::test]
async fn strings_of_times_next_to_lists_need_no_seconds() {
    let setup = "CREATE TABLE lists AS SELECT [TIMESTAMP '2024-01-05 10:00:00', NULL] AS t, [DATE '2024-01-05'] AS d,
        [TIMESTAMP '2024-01-05 10:00:00' AT TIME ZONE 'Europe/Berlin'] AS z";
    let cases = [
        (
            "SELECT t = '2024-01-05 10:00', t > '2024/1/5 9:30', t < ' 2024-1-6 ' FROM lists",
            "[true, ] [true, ] [true, ]",
        ),
        (
            "SELECT t IN ('2024-01-05 10:00', '2024/1/6'), ragged_isin(t, ['2024-01-05 10:00']) FROM lists",
            "[true, ] [true, ]",
        ),
        ("SELECT ragged_between(t, '2024-01-05 09:00', '2024-01-05 10:30') FROM lists", "[true, ]"),
        (
            "SELECT d = '2024/1/5', d < '2024-01-05 10:00', d IN ('2024/1/5') FROM lists",
            "[true] [true] [true]",
        ),
        (
            "SELECT z = '2024-01-05 10:00', z = '2024-01-05 9:00Z', z < '2024-01-05 11:00' FROM lists",
            "[true] [true] [true]",
        ),
    ];
    expect_rows(&[setup], &cases).await;
}

#[tokio::test]
async fn leap_seconds_are_the_first_second_of_the_next_minute() {
    let setup = "CREATE TABLE l AS SELECT '2016-12-31 23:59:60' AS s, '23:59:60' AS t";
    let cases = [
        (
            "SELECT s::TIMESTAMP, s::TIMESTAMP(0), s::TIMESTAMP(3), s::DATE, s::TIMESTAMP(0) = '2017-01-01' FROM l",
            "2017-01-01T00:00:00 2017-01-01T00:00:00 2017-01-01T00:00:00 2017-01-01 true",
        ),
        (
            "SELECT TIMESTAMP '2016-12-31 23:59:60.5', '2020-01-01 10:30:60'::TIMESTAMP(0), '10:30:60'::TIME",
            "2017-01-01T00:00:00.500 2020-01-01T10:31:00 10:31:00",
        ),
        // No time of day is the second after 23:59:59.
        (
            "SELECT TRY_CAST(t AS TIME), TRY_CAST('23:59:60.5' AS TIME), TRY_CAST('11:59:60 PM' AS TIME) FROM l",
            "NULL NULL NULL",
        ),
    ];
    expect_rows(&[setup], &cases).await;
    let ctx = create_parallel_session();
    let e = rows_or_error(&ctx, "SELECT '23:59:60'::TIME").await;
    assert!(e.contains("Cannot cast string '23:59:60 '"), "{e}");
}

#[tokio::test]
async fn strings_of_times_need_no_seconds() {
    let all = "2024-01-05T10:00:00; 2024-01-05T09:30:15.500; 2024-01-05T00:00:00; NULL; 2024-01-05T10:00:00";
    let cases = [
        ("SELECT s::TIMESTAMP FROM x ORDER BY id", all),
        ("SELECT TRY_CAST(s AS TIMESTAMP) FROM x ORDER BY id", all),
        ("SELECT to_timestamp(s)::TIMESTAMP FROM x ORDER BY id", all),
        ("SELECT arrow_cast(s, 'Timestamp(Microsecond, None)') FROM x ORDER BY id", all),
        ("SELECT unnest(array_agg(s ORDER BY id)::TIMESTAMP[]) FROM x", all),
        ("SELECT DISTINCT s::DATE FROM x WHERE s IS NOT NULL", "2024-01-05"),
        ("SELECT count(*) FROM x WHERE s::TIMESTAMP > '2024-01-05 09:30'", "3"),
        (
            "SELECT count(*) FROM x WHERE s::TIMESTAMP IN (TIMESTAMP '2024-1-5 10:00', '2024/01/05')",
            "3",
        ),
        (
            "SELECT count(*) FROM x WHERE s::TIMESTAMP BETWEEN '2024-01-05 09:00' AND '2024-01-05 09:59'",
            "1",
        ),
        (
            "SELECT TIMESTAMP '2024-01-05 10:00', DATE '2024/1/5', DATE '2024-01-05 10:00'",
            "2024-01-05T10:00:00 2024-01-05 2024-01-05",
        ),
        (
            "SELECT TIMESTAMPTZ '2024-01-05 10:00+02', TIMESTAMPTZ '2024-01-05 10:00 UTC'",
            "2024-01-05T08:00:00Z 2024-01-05T10:00:00Z",
        ),
        ("SELECT ['2024-01-05 10:00', NULL]::TIMESTAMP[]", "[2024-01-05T10:00:00, ]"),
        (
            "SELECT TRY_CAST('2024-01-05 10' AS TIMESTAMP), TRY_CAST('10:00' AS TIMESTAMP), TRY_CAST('x' AS DATE)",
            "NULL NULL NULL",
        ),
    ];
    expect_rows(&[TEXTS], &cases).await;
}

#[tokio::test]
async fn strings_of_times_without_seconds_are_inserted() {
    let cases = [(
        "SELECT t, d FROM w ORDER BY t",
        "2024-01-05T10:00:00 2024-01-05; 2024-01-06T00:00:00 NULL",
    )];
    let setup = [
        "CREATE TABLE w (t TIMESTAMP, d DATE)",
        "INSERT INTO w VALUES ('2024-01-05 10:00', '2024/1/5'), ('2024-1-6', NULL)",
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn strings_next_to_dates_are_inserted_with_their_time() {
    let setup = [
        "CREATE TABLE a(i INT, t TIMESTAMP)",
        "INSERT INTO a VALUES (1, '2020-01-01 10:00'), (2, DATE '2020-01-02'), (3, NULL)",
        "INSERT INTO a(t, i) VALUES (DATE '2020-01-03', 4), ('2020-01-04 11:30:15', 5)",
    ];
    let cases = [(
        "SELECT t FROM a ORDER BY i",
        "2020-01-01T10:00:00; 2020-01-02T00:00:00; NULL; 2020-01-03T00:00:00; 2020-01-04T11:30:15",
    )];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn coalesce_casts_strings_to_times() {
    let setup = "CREATE TABLE d AS SELECT * FROM (VALUES (1, DATE '2020-05-05', TIMESTAMP '2020-05-05 10:00', INTERVAL '1 day'), (2, NULL, NULL, NULL)) v(i, d, t, s)";
    let cases = [
        (
            "SELECT coalesce(d, '2999-12-31'), ifnull(d, '2999-1-1'), coalesce(t, '2020-01-01 12:30'), coalesce('2020-01-01', d) FROM d ORDER BY i",
            "2020-05-05 2020-05-05 2020-05-05T10:00:00 2020-01-01; 2999-12-31 2999-01-01 2020-01-01T12:30:00 2020-01-01",
        ),
        (
            "SELECT arrow_typeof(coalesce(d, '2999-12-31')), coalesce(d, NULL, '2000-01-01'), coalesce(s, '2 days') = INTERVAL '2 days' FROM d WHERE i = 2",
            "Date32 2000-01-01 true",
        ),
        ("SELECT count(*) FROM d WHERE coalesce(d, '2999-12-31') > '2021-01-01'", "1"),
        ("SELECT coalesce('a', 'b'), coalesce(NULL, '7'), coalesce('7', 5)", "a 7 7"),
    ];
    expect_rows(&[setup], &cases).await;
    let e =
        rows_or_error(&SessionContext::new(), "SELECT coalesce(DATE '2020-01-01', '2020-01-02')")
            .await;
    assert!(e.contains("have no common type; cast them"), "DataFusion casts the string: {e}");
}

#[tokio::test]
async fn columns_of_csv_files_have_times_without_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, "id,t\n1,2024-01-05 10:00\n2,2024/1/5 9:30\n3,\n").unwrap();
    let create = format!(
        "CREATE EXTERNAL TABLE c (id INT, t TIMESTAMP) STORED AS CSV LOCATION '{}' OPTIONS (format.has_header true)",
        display_path(&path)
    );
    let cases = [("SELECT t FROM c ORDER BY id", "2024-01-05T10:00:00; 2024-01-05T09:30:00; NULL")];
    expect_rows(&[&create], &cases).await;
}

#[tokio::test]
async fn numbers_are_no_times_of_day() {
    let cases = [
        (
            "SELECT '10:00'::TIME, TRY_CAST('10' AS TIME), TRY_CAST('-5' AS TIME), TRY_CAST('+25' AS TIME), TRY_CAST('10:30 PM' AS TIME)",
            "10:00:00 NULL NULL NULL 22:30:00",
        ),
        (
            "SELECT TRY_CAST(s AS TIME) FROM (VALUES ('10'), ('10:00'), ('1000000'), (NULL)) v(s)",
            "NULL; 10:00:00; NULL; NULL",
        ),
    ];
    expect_rows(&[], &cases).await;
    let ctx = serrate::sql::session();
    for sql in ["SELECT '10'::TIME", "SELECT TIME '10'", "SELECT s::TIME FROM (VALUES ('10')) v(s)"]
    {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("Cannot cast string '10"), "{sql}: {e}");
    }
}

/// When this test fails, `sql::workarounds::types::text_to_time_casts` need not change strings of
/// numbers.
#[tokio::test]
async fn stock_times_of_day_are_still_read_from_numbers() {
    let shown = stock_text(&SessionContext::new(), "SELECT CAST('10' AS TIME) AS t").await;
    assert!(shown.contains("00:00:00.00000001"), "{shown}");
}

/// When this test fails, `sql::workarounds::types::text_to_time_casts` can be removed.
#[tokio::test]
async fn stock_times_without_seconds_are_still_errors() {
    let ctx = SessionContext::new();
    assert!(stock_batches(&ctx, "SELECT '2024-01-05 10:00'::TIMESTAMP").await.is_err());
}

#[tokio::test]
async fn strings_of_intervals_are_cast_back_to_intervals() {
    let cases = [
        (
            "SELECT s::INTERVAL::VARCHAR = s FROM z WHERE s IS NOT NULL",
            "true; true; true; true; true; true",
        ),
        ("SELECT count(*) FROM z WHERE s::INTERVAL IS NULL", "1"),
        ("SELECT count(*) FROM z WHERE TRY_CAST(s AS INTERVAL) > INTERVAL '1 day'", "2"),
        ("SELECT '1y 2mo 3d 04:00'::INTERVAL = INTERVAL '14 months 3 days 4 hours'", "true"),
        (
            "SELECT arrow_cast('-1d -02:00', 'Interval(MonthDayNano)') = INTERVAL '-26 hours'",
            "true",
        ),
        ("SELECT TRY_CAST('soon' AS INTERVAL), TRY_CAST('1d x' AS INTERVAL)", "NULL NULL"),
        ("SELECT ['1d', NULL]::INTERVAL[]::VARCHAR", "[1d, NULL]"),
        // The string of a duration is the string of the interval with the same length.
        (
            "SELECT (b - a)::VARCHAR::INTERVAL = b - a, (a - b)::VARCHAR::INTERVAL = a - b, (a - b)::VARCHAR FROM (VALUES (TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02 02:00:00.5')) v(a, b)",
            "true true -1d -02:00:00.5",
        ),
    ];
    let setup = "CREATE TABLE z AS SELECT * FROM (VALUES ('1y 2mo 3d 04:00'), ('-1mo 2d -00:01'), ('00:00'),
        ('4951d 03:00'), ('-1d -02:00'), ('00:00:00.000000001'), (NULL)) v(s)";
    expect_rows(&[setup], &cases).await;
}

#[tokio::test]
async fn columns_of_csv_and_json_files_are_declared_as_intervals() {
    let dir = tempfile::tempdir().unwrap();
    let (csv, json) = (dir.path().join("i.csv"), dir.path().join("i.json"));
    let written = "SELECT * FROM (VALUES (1, TIMESTAMP '2020-01-01' - TIMESTAMP '2020-01-02 02:00', INTERVAL '1y 2mo 3d 04:00'),
        (2, NULL, INTERVAL '-1mo 2d -00:01'), (3, TIMESTAMP '2020-01-02' - TIMESTAMP '2020-01-01', NULL)) v(id, d, i)";
    let copies = [&csv, &json].map(|file| {
        format!("COPY ({written} ORDER BY id) TO '{}' OPTIONS (overwrite true)", display_path(file))
    });
    let creates = [
        ("c", "CSV", &csv, " OPTIONS (format.has_header true)"),
        ("j", "JSON", &json, ""),
    ]
    .map(|(name, format, file, options)| {
        format!(
            "CREATE EXTERNAL TABLE {name} (id INT, d INTERVAL, i INTERVAL) STORED AS {format} LOCATION '{}'{options}",
            display_path(file)
        )
    });
    let setup: Vec<&str> = copies.iter().chain(&creates).map(String::as_str).collect();
    let rows = "-1d -02:00 1y 2mo 3d 04:00; NULL -1mo 2d -00:01; 1d NULL";
    let cases = [
        ("SELECT d::VARCHAR, i::VARCHAR FROM c ORDER BY id", rows),
        ("SELECT d::VARCHAR, i::VARCHAR FROM j ORDER BY id", rows),
    ];
    expect_rows(&setup, &cases).await;
    let text = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(text, "id,d,i\n1,-1d -02:00,1y 2mo 3d 04:00\n2,,-1mo 2d -00:01\n3,1d,\n");
    let text = std::fs::read_to_string(&json).unwrap();
    assert!(
        text.starts_with("{\"id\":1,\"d\":\"-1d -02:00\",\"i\":\"1y 2mo 3d 04:00\"}\n"),
        "{text}"
    );
}

/// When this test fails, the part of `sql::workarounds::types::text_to_time_casts` for intervals
/// can be removed.
#[tokio::test]
async fn stock_intervals_without_units_are_still_errors() {
    let ctx = SessionContext::new();
    assert!(stock_batches(&ctx, "SELECT '1d 03:00'::INTERVAL").await.is_err());
}

#[tokio::test]
async fn numbers_without_a_unit_in_intervals_are_seconds() {
    let cases = [
        ("SELECT CAST('2' AS INTERVAL) = INTERVAL '2 seconds'", "true"),
        ("SELECT TRY_CAST('1d 2' AS INTERVAL) = INTERVAL '1 day 2 seconds'", "true"),
        (
            "SELECT INTERVAL '1 day 2' = INTERVAL '1 day 2 seconds', INTERVAL '3' = INTERVAL '3 seconds'",
            "true true",
        ),
        (
            "SELECT s::INTERVAL = INTERVAL '1 day 2.5 seconds' FROM (VALUES ('1 day 2.5'), (NULL)) t(s)",
            "true; NULL",
        ),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn dates_and_times_compare_with_strings_exactly() {
    let setup = [
        "CREATE TABLE x AS SELECT * FROM (VALUES (DATE '2020-01-01', TIMESTAMP '2020-01-01', '2020-01-01 10:00', '2020-01-01 00:00:00.0000001', '2020/1/1'), (NULL, NULL, NULL, NULL, NULL)) v(d, t, s, n, p)",
    ];
    let cases = [
        (
            "SELECT d = '2020-01-01 10:00', [d] = '2020-01-01 10:00:00', d = '2020-01-01', [d] = '2020-01-01' FROM x WHERE d IS NOT NULL",
            "false [false] true [true]",
        ),
        (
            "SELECT d < '2020-01-01 10:00', d <> '2020-01-01 10:00', d IN ('2020-01-01 10:00'), d BETWEEN '2020-01-01 10:00' AND '2020-01-02' FROM x ORDER BY d",
            "true true false false; NULL NULL NULL NULL",
        ),
        (
            "SELECT d IS DISTINCT FROM '2020-01-01 10:00', CASE d WHEN '2020-01-01 10:00' THEN 1 ELSE 0 END FROM x WHERE d IS NOT NULL",
            "true 0",
        ),
        (
            "SELECT DATE '2020-01-01' = '2020-01-01 10:00', [DATE '2020-01-01'] IN ('2020-01-01 10:00:00')",
            "false [false]",
        ),
        (
            "SELECT d = s, d < s, d = n, d = p, d IN (s, p), d BETWEEN p AND s FROM x ORDER BY d",
            "false true false true true true; NULL NULL NULL NULL NULL NULL",
        ),
        (
            "SELECT t = s, t < s, t = n, t < n, t = p, t IN (n), t BETWEEN p AND n FROM x WHERE d IS NOT NULL",
            "false true false true true false true",
        ),
        (
            "SELECT t = '2020-01-01 00:00:00.0000001', [t] = '2020-01-01 00:00:00.0000001', [t] < '2020-01-01 00:00:00.0000001' FROM x WHERE d IS NOT NULL",
            "false [false] [true]",
        ),
        (
            "SELECT t IN ('2020-01-01 00:00:00.0000001'), [t] IN ('2020-01-01 00:00:00.0000001'), [t] IN ('2020-01-01') FROM x WHERE d IS NOT NULL",
            "false [false] [true]",
        ),
        ("SELECT count(*) FROM x JOIN (SELECT s AS j FROM x) y ON d = j", "0"),
        ("SELECT count(*) FROM x JOIN (SELECT p AS j FROM x) y ON d = j", "1"),
        ("SELECT count(*) FROM x WHERE t = (SELECT max(n) FROM x)", "0"),
        ("SELECT count(*) FROM x WHERE t IN (SELECT p FROM x)", "1"),
        (
            "SELECT [d] = [s], [d] < [s], [t] = [p], [t] = [n], [d] = ['2020-01-01'] FROM x WHERE d IS NOT NULL",
            "false true true false true",
        ),
        (
            "SELECT arrow_cast(t, 'Timestamp(Second, None)') = '2020-01-01 00:00:00.5', [arrow_cast(t, 'Timestamp(Second, None)')] = '2020-01-01 00:00:00.5' FROM x WHERE d IS NOT NULL",
            "false [false]",
        ),
        (
            "SELECT [TIMESTAMPTZ '2020-01-01 00:00:00Z'] = '2020-01-01 00:00:00.0000001', [TIMESTAMPTZ '2020-01-01 00:00:00Z'] = '2020-01-01'",
            "[false] [true]",
        ),
        (
            "SELECT [arrow_cast('10:00:00', 'Time32(Second)')] = '10:00:00.5', [arrow_cast('10:00:00', 'Time32(Second)')] = '10:00:00', [arrow_cast('10:00:00', 'Time32(Second)')] IN ('10:00:00.5')",
            "[false] [true] [false]",
        ),
        (
            "SELECT ragged_searchsorted([t], '2020-01-01 00:00:00.0000001'), ragged_searchsorted([t], '2020-01-01') FROM x WHERE d IS NOT NULL",
            "1 0",
        ),
        (
            "SELECT TIMESTAMP '2999-12-31' > s, [TIMESTAMP '2999-12-31'] = '2999-12-31' FROM x WHERE d IS NOT NULL",
            "true [true]",
        ),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    for sql in [
        "SELECT DATE '2020-01-01' = 'noon'",
        "SELECT [DATE '2020-01-01'] = 'noon'",
        "SELECT TIMESTAMP '2020-01-01' = 'noon'",
        "SELECT [TIMESTAMP '2020-01-01'] IN ('noon')",
        "SELECT d = s FROM (VALUES (DATE '2020-01-01', 'noon')) v(d, s)",
        "SELECT [d] = [s] FROM (VALUES (DATE '2020-01-01', 'noon')) v(d, s)",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("noon"), "{sql}: {e}");
    }
}

#[tokio::test]
async fn columns_of_strings_next_to_dates_keep_their_times_of_day() {
    let setup = [
        "CREATE TABLE x AS SELECT * FROM (VALUES (DATE '2020-01-01', TIME '10:00:00', '2020-01-02 10:00', TRUE)) v(d, c, s, b)",
    ];
    let cases = [
        (
            "SELECT v, arrow_typeof(v) LIKE 'Utf8%' FROM (SELECT d AS v FROM x UNION ALL SELECT s FROM x) ORDER BY v",
            "2020-01-01 true; 2020-01-02 10:00 true",
        ),
        ("SELECT s AS v FROM x UNION SELECT d FROM x ORDER BY v", "2020-01-01; 2020-01-02 10:00"),
        (
            "SELECT s AS v FROM x UNION ALL SELECT d AS v FROM x ORDER BY v",
            "2020-01-01; 2020-01-02 10:00",
        ),
        (
            "SELECT v FROM x, LATERAL (VALUES (s), (DATE '2020-01-01')) y(v) ORDER BY v",
            "2020-01-01; 2020-01-02 10:00",
        ),
        (
            "SELECT d AS v FROM x UNION ALL SELECT NULL UNION ALL SELECT s FROM x ORDER BY v",
            "2020-01-01; 2020-01-02 10:00; NULL",
        ),
        ("SELECT c AS v FROM x UNION ALL SELECT s FROM x ORDER BY v", "10:00:00; 2020-01-02 10:00"),
        (
            "SELECT [d] AS v FROM x UNION ALL SELECT [s] FROM x ORDER BY v",
            "[2020-01-01]; [2020-01-02 10:00]",
        ),
        (
            "SELECT DATE '2020-01-01' AS v UNION ALL SELECT '2020-01-02 10:00' ORDER BY v",
            "2020-01-01; 2020-01-02 10:00",
        ),
        // The literal has no time of day.
        (
            "SELECT v, arrow_typeof(v) FROM (SELECT d AS v FROM x UNION ALL SELECT '2020-01-02') ORDER BY v",
            "2020-01-01 Date32; 2020-01-02 Date32",
        ),
        (
            "SELECT CASE WHEN b THEN d ELSE '2020-01-02' END, greatest(d, '2020-01-02') FROM x",
            "2020-01-01 2020-01-02",
        ),
        (
            "SELECT d = s, d < s, d IN (s), nullif(d, s), d IN (SELECT s FROM x) FROM x",
            "false true false 2020-01-01 false",
        ),
        ("SELECT count(*) FROM x JOIN (SELECT '2020-01-01 10:00' AS s) y ON x.d = y.s", "0"),
        ("SELECT d FROM x INTERSECT SELECT '2020-01-01 10:00' FROM x WHERE s IS NOT NULL", ""),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    run_all(&ctx, &setup).await;
    for sql in [
        "SELECT CASE WHEN b THEN d ELSE s END FROM x",
        "SELECT CASE WHEN b THEN s END, CASE WHEN b THEN s ELSE d END FROM x",
        "SELECT greatest(d, s) FROM x",
        "SELECT least(s, d) FROM x",
        "SELECT nullif(s, d) FROM x",
        "SELECT CASE WHEN b THEN [d] ELSE [s] END FROM x",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("AS DATE") && e.contains("AS TIMESTAMP"), "{sql}: {e}");
    }
    let e = rows_or_error(&ctx, "SELECT CASE WHEN b THEN c ELSE s END FROM x").await;
    assert!(e.contains("AS TIME) or CAST(") && !e.contains("AS DATE"), "{e}");
}

#[tokio::test]
async fn strings_next_to_timestamps_become_timestamps() {
    let cases = [
        (
            "SELECT TIMESTAMP '2020-01-01 10:00' AS v UNION ALL SELECT s FROM (VALUES ('2020-01-01T10:00:00.5'), ('2020-01-01 10:00:00+02:00')) t(s) ORDER BY v",
            "2020-01-01T08:00:00; 2020-01-01T10:00:00; 2020-01-01T10:00:00.500",
        ),
        (
            "SELECT v, arrow_typeof(v) FROM (SELECT TIMESTAMP '2999-01-01' AS v UNION ALL SELECT '1500-01-01 10:00') ORDER BY v",
            "1500-01-01T10:00:00 Timestamp(µs); 2999-01-01T00:00:00 Timestamp(µs)",
        ),
        (
            "SELECT s AS v FROM (VALUES ('2999-01-01'), (NULL)) t(s) UNION SELECT '1500-01-01'::TIMESTAMP(0) UNION SELECT DATE '0001-01-01' ORDER BY v",
            "0001-01-01T00:00:00; 1500-01-01T00:00:00; 2999-01-01T00:00:00; NULL",
        ),
        (
            "SELECT [TIMESTAMP '2999-01-01'] AS v UNION ALL SELECT ['1500-01-01 10:00'] ORDER BY v",
            "[1500-01-01T10:00:00]; [2999-01-01T00:00:00]",
        ),
        (
            "SELECT TIMESTAMP '2020-01-01 10:00'::VARCHAR AS v UNION ALL SELECT 'noon' ORDER BY v",
            "2020-01-01T10:00:00; noon",
        ),
    ];
    expect_rows(&[], &cases).await;
    let ctx = serrate::sql::session();
    let e = rows_or_error(&ctx, "SELECT TIMESTAMP '2020-01-01' AS v UNION ALL SELECT 'noon'").await;
    assert!(e.contains("noon"), "{e}");
}

/// Type coercion would take the integers for days since 1970.
#[tokio::test]
async fn dates_are_neither_compared_nor_combined_with_integers() {
    let setup = ["CREATE TABLE x AS SELECT * FROM (VALUES (DATE '2020-01-01', 18262)) v(d, i)"];
    let cases = [
        ("SELECT d + 1, d - DATE '1970-01-01' = i, year(d) = 2020 FROM x", "2020-01-02 true true"),
        ("SELECT d = NULL, CASE WHEN i > 5 THEN d ELSE NULL END FROM x", "NULL 2020-01-01"),
        ("SELECT d FROM x UNION ALL SELECT NULL ORDER BY d", "2020-01-01; NULL"),
        (
            "SELECT cardinality(v) FROM (SELECT MAP {'a': d} AS v FROM x UNION ALL SELECT MAP {'b': DATE '2020-01-02'})",
            "1; 1",
        ),
        ("SELECT lag(d, 1, d + 1) OVER (ORDER BY i) FROM x", "2020-01-02"),
        ("SELECT nvl2(d, i, 5), nvl2(i, d, d + 1) FROM x", "18262 2020-01-01"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    run_all(&ctx, &setup).await;
    for sql in [
        "SELECT d > 20200101 FROM x",
        "SELECT i = d FROM x",
        "SELECT d IN (i, 5) FROM x",
        "SELECT d BETWEEN 5 AND 6 FROM x",
        "SELECT d IN (SELECT i FROM x) FROM x",
        "SELECT CASE d WHEN 18262 THEN 1 END FROM x",
        "SELECT CASE WHEN i > 5 THEN d ELSE i END FROM x",
        "SELECT greatest(d, 5), nullif(d, i) FROM x",
        "SELECT nvl2(i, d, i) FROM x",
        "SELECT lag(d, 1, 5) OVER (ORDER BY i) FROM x",
        "SELECT lead(i, 1, d) OVER (ORDER BY i) FROM x",
        "SELECT [d] = [i] FROM x",
        "SELECT a.i FROM x a JOIN x b ON a.d = b.i",
        "SELECT d FROM x UNION ALL SELECT i FROM x",
        "SELECT NULL AS v UNION ALL SELECT 5 UNION ALL SELECT d FROM x",
        "SELECT [d] AS v FROM x UNION SELECT [5]",
        "SELECT {'a': d} AS v FROM x UNION ALL SELECT {'a': 5}",
        "SELECT d FROM x EXCEPT SELECT i FROM x",
        "SELECT i FROM x INTERSECT SELECT d FROM x",
        "SELECT MAP {'a': d} AS v FROM x UNION ALL SELECT MAP {'a': 5}",
        "SELECT MAP {d: 1} AS v FROM x UNION ALL SELECT MAP {5: 1}",
        "SELECT [MAP {'a': i}] AS v FROM x UNION ALL SELECT [MAP {'a': d}] FROM x",
        "SELECT CASE WHEN i > 5 THEN MAP {'a': d} ELSE MAP {'a': 5} END FROM x",
        "SELECT coalesce(MAP {'a': d}, MAP {'a': i}) FROM x",
        "SELECT MAP {'a': d} = MAP {'a': i} FROM x",
        "SELECT [MAP {'a': d}, MAP {'a': i}] FROM x",
        "SELECT [{'a': d}, {'a': 5}] FROM x",
        "SELECT [[d], [i]] FROM x",
        "SELECT * FROM (VALUES (MAP {'a': DATE '2020-01-01'}), (MAP {'a': 5})) v(m)",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("dates are not numbers; write a date"), "{sql}: {e}");
    }
}

/// A cast would take the numbers for days, or for the unit of the times.
#[tokio::test]
async fn functions_of_lists_refuse_numbers_as_times() {
    let ctx = serrate::sql::session();
    let from = "FROM (VALUES (DATE '2020-01-01', TIMESTAMP '2020-01-01', 5)) x(d, t, i)";
    for (what, calls) in [
        (
            "dates",
            [
                "ragged_fill_null([d, NULL], i)",
                "ragged_fill_null([1, NULL], d)",
                "ragged_where([true, false], [d, NULL], 5)",
                "ragged_where([true, false], i, [d, NULL])",
                "ragged_pad([d], 3, 5)",
                "ragged_at_or([d], 3, 5)",
                "ragged_at_or([i], d, 5)",
                "ragged_at_or([{'a': d}], {'a': 5}, 3)",
                "ragged_searchsorted([d], i)",
                "ragged_shift([d], 1, 5)",
                "ragged_scatter([d], [0], [i])",
                "ragged_group([1], [d], [18262])",
            ],
        ),
        (
            "timestamps",
            [
                "ragged_fill_null([t, NULL], i)",
                "ragged_fill_null([t, NULL], 0.5::DECIMAL(2, 1))",
                "ragged_fill_null([1, NULL], t)",
                "ragged_where([true, false], [t, NULL], 5)",
                "ragged_where([true, false], i, [t, NULL])",
                "ragged_pad([t], 3, 5)",
                "ragged_at_or([t], 3.0, 5)",
                "ragged_at_or([{'a': i}], {'a': t}, 3)",
                "ragged_searchsorted([t], [i])",
                "ragged_shift([t], 1, 5)",
                "ragged_scatter([t], [0], 5)",
                "ragged_group([1], [t], [0])",
            ],
        ),
    ] {
        for call in calls {
            let e = rows_or_error(&ctx, &format!("SELECT {call} {from}")).await;
            let told = e.contains(&format!("but {what} are not numbers; write a"));
            assert!(told, "{call}: {e}");
        }
    }
    for call in ["ragged_pad([t - t], 3, 5)", "ragged_fill_null([TIME '10:00:00', NULL], i)"] {
        let e = rows_or_error(&ctx, &format!("SELECT {call} {from}")).await;
        assert!(e.contains("are not numbers; write"), "{call}: {e}");
    }
    let kept = format!(
        "SELECT ragged_fill_null([d, NULL], DATE '1970-01-01' + i), ragged_at_or([t], to_timestamp(i), 7), ragged_pad([t - t], 2, INTERVAL '1 hour') > INTERVAL '30 minutes', ragged_shift([d], 1, DATE '2019-12-31') {from}"
    );
    assert_eq!(
        rows_or_error(&ctx, &kept).await,
        "[2020-01-01, 1970-01-06] 1970-01-01T00:00:05 [false, true] [2019-12-31]"
    );
}

#[tokio::test]
async fn string_literals_are_defaults_and_elements_of_times() {
    let cases = [
        (
            "SELECT lead(t, 1, '2020-01-01 10:00') OVER () FROM (VALUES (TIMESTAMP '2020-01-05')) v(t)",
            "2020-01-01T10:00:00",
        ),
        (
            "SELECT lag(d, 1, '2020-01-01') OVER () FROM (VALUES (DATE '2020-01-05')) v(d)",
            "2020-01-01",
        ),
        (
            "SELECT array_append([d], '2020-01-01') FROM (VALUES (DATE '2020-01-05')) v(d)",
            "[2020-01-05, 2020-01-01]",
        ),
    ];
    expect_rows(&[], &cases).await;
}
