//! Timestamps are microseconds, and cover all years, also in functions, windows and tables.

use super::*;

#[tokio::test]
async fn timestamps_are_microseconds_of_any_year() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let file = display_path(&dir.path().join("t.parquet"));
    let sql = format!(
        "COPY (SELECT * FROM (VALUES (0, TIMESTAMP '1600-01-01'), (1, TIMESTAMP '2020-01-01'), (2, TIMESTAMP '2999-12-31'), (3, NULL)) t(id, t)) TO '{file}'"
    );
    query_batches(&ctx, &sql).await.unwrap();
    query_batches(&ctx, &format!("CREATE TABLE m AS SELECT * FROM '{file}'")).await.unwrap();
    assert_eq!(query_rows(&ctx, "SELECT arrow_typeof(t) FROM m LIMIT 1").await, "Timestamp(µs)");
    let typed = "SELECT arrow_typeof(TIMESTAMP '2999-12-31'), arrow_typeof(TIMESTAMP '2020-01-01 00:00:00.1234567'), arrow_typeof('2020-01-01'::TIMESTAMP(9)), arrow_typeof([NULL]::TIMESTAMP[])";
    assert_eq!(
        query_rows(&ctx, typed).await,
        "Timestamp(µs) Timestamp(ns) Timestamp(ns) List(Timestamp(µs))"
    );
    for table in ["m".to_owned(), format!("'{file}'")] {
        let expected = [
            ("t > TIMESTAMP '2500-01-01'", "false; false; true; NULL"),
            ("t < '1700-01-01'", "true; false; false; NULL"),
            ("t >= DATE '2999-12-31'", "false; false; true; NULL"),
            (
                "t = arrow_cast('2020-01-01', 'Timestamp(Nanosecond, None)')",
                "false; true; false; NULL",
            ),
            (
                "t > arrow_cast('2020-01-01T00:00:00.000000001', 'Timestamp(Nanosecond, None)')",
                "false; false; true; NULL",
            ),
            (
                "t < arrow_cast('2020-01-01T00:00:00.000000001', 'Timestamp(Nanosecond, None)')",
                "true; true; false; NULL",
            ),
            ("t BETWEEN DATE '1600-01-01' AND now()", "true; true; false; NULL"),
            ("t IN (TIMESTAMP '2999-12-31', '1600-01-01')", "true; false; true; NULL"),
            ("arrow_cast(t, 'Timestamp(Second, None)') = t", "true; true; true; NULL"),
            ("t > TIMESTAMP '2020-01-01 00:00:00.0000001'", "false; false; true; NULL"),
            ("now() > t", "true; true; false; NULL"),
            ("t - TIMESTAMP '2020-01-01' > INTERVAL '1 day'", "false; false; true; NULL"),
            ("now() - t > INTERVAL '1 day'", "true; true; false; NULL"),
            ("t - DATE '2020-01-01' = INTERVAL '0 days'", "false; true; false; NULL"),
            ("coalesce(t, TIMESTAMP '2000-01-01') > DATE '2000-01-01'", "false; true; true; false"),
            (
                "coalesce(t, DATE '2000-01-01') = TIMESTAMP '2000-01-01'",
                "false; false; false; true",
            ),
            (
                "CASE WHEN id = 3 THEN DATE '2000-01-01' ELSE t END < TIMESTAMP '2000-01-01'",
                "true; false; false; false",
            ),
            ("CASE t WHEN TIMESTAMP '2999-12-31' THEN 1 ELSE 0 END", "0; 0; 1; 0"),
            ("greatest(t, TIMESTAMP '2020-01-01') = t", "false; true; true; NULL"),
            ("extract(year FROM t)", "1600; 2020; 2999; NULL"),
            (
                "date_trunc('month', t)",
                "1600-01-01T00:00:00; 2020-01-01T00:00:00; 2999-12-01T00:00:00; NULL",
            ),
            (
                "date_trunc('week', t)",
                "1599-12-27T00:00:00; 2019-12-30T00:00:00; 2999-12-30T00:00:00; NULL",
            ),
            (
                "date_bin(INTERVAL '7 days', t)",
                "1599-12-30T00:00:00; 2019-12-26T00:00:00; 2999-12-26T00:00:00; NULL",
            ),
            (
                "date_bin(INTERVAL '3 months', t)",
                "1600-01-01T00:00:00; 2020-01-01T00:00:00; 2999-10-01T00:00:00; NULL",
            ),
            (
                "t + INTERVAL '1 month'",
                "1600-02-01T00:00:00; 2020-02-01T00:00:00; 3000-01-31T00:00:00; NULL",
            ),
            ("t::TEXT::TIMESTAMP = t", "true; true; true; NULL"),
            ("t::DATE::TIMESTAMP = t", "true; true; true; NULL"),
            (
                "t AT TIME ZONE 'UTC'",
                "1600-01-01T00:00:00Z; 2020-01-01T00:00:00Z; 2999-12-31T00:00:00Z; NULL",
            ),
            ("[t] > now()", "[false]; [false]; [true]; []"),
            ("datetrunc('year', t) = DATE '2999-01-01'", "false; false; true; NULL"),
            ("[t] > TIMESTAMP '2500-01-01'", "[false]; [false]; [true]; []"),
            (
                "[arrow_cast(t, 'Timestamp(Second, None)')] < TIMESTAMP '2999-12-31 00:00:00.000001'",
                "[true]; [true]; [true]; []",
            ),
            (
                "ragged_searchsorted([TIMESTAMP '1800-01-01', TIMESTAMP '2500-01-01'], t)",
                "0; 1; 2; NULL",
            ),
        ];
        assert_eq!(
            list_wrong(&ctx, &format!("{table} ORDER BY id"), &expected).await,
            "",
            "{table}"
        );
        for (what, expected) in expected {
            if expected.contains("true") && !expected.contains('[') {
                let sql = format!("SELECT count(*) FROM {table} WHERE {what}");
                assert_eq!(
                    query_rows(&ctx, &sql).await,
                    expected.matches("true").count().to_string(),
                    "{sql}"
                );
            }
        }
        let sql = format!("SELECT min(t), max(t) FROM {table}");
        assert_eq!(query_rows(&ctx, &sql).await, "1600-01-01T00:00:00 2999-12-31T00:00:00");
        let sql = format!(
            "SELECT t FROM {table} WHERE id = 2 UNION ALL SELECT DATE '1600-01-01' ORDER BY 1"
        );
        assert_eq!(query_rows(&ctx, &sql).await, "1600-01-01T00:00:00; 2999-12-31T00:00:00");
        let sql = format!(
            "SELECT count(*) FROM {table} a JOIN (SELECT arrow_cast(t, 'Timestamp(Second, None)') AS s FROM {table}) b ON a.t = b.s"
        );
        assert_eq!(query_rows(&ctx, &sql).await, "3");
    }
    // Columns of nanoseconds next to values that nanoseconds cannot represent.
    let n = "(SELECT arrow_cast('2020-01-01', 'Timestamp(Nanosecond, None)') AS n, t FROM m WHERE id < 3)";
    let expected = [
        ("n > TIMESTAMP '1600-01-01'", "true; true; true"),
        ("n < '2999-12-31'", "true; true; true"),
        ("n < DATE '2999-12-31'", "true; true; true"),
        ("n = t", "false; true; false"),
        ("n < t", "false; false; true"),
        ("[n] < TIMESTAMP '2999-12-31'", "[true]; [true]; [true]"),
        ("[n] > '1600-01-01'", "[true]; [true]; [true]"),
        ("[n] < DATE '2999-12-31'", "[true]; [true]; [true]"),
        ("ragged_searchsorted([n], t)", "0; 0; 1"),
    ];
    assert_eq!(list_wrong(&ctx, &format!("{n} ORDER BY t"), &expected).await, "");
    let expected = [
        ("5::TIMESTAMP", "1970-01-01T00:00:05"),
        ("TRY_CAST('x' AS TIMESTAMP)", "NULL"),
        ("to_timestamp('2999-12-31')", "2999-12-31T00:00:00Z"),
        ("to_timestamp(99999999999)", "5138-11-16T09:46:39Z"),
        ("to_timestamp(1.5)", "1970-01-01T00:00:01.500Z"),
        ("DATE '2999-01-01' + INTERVAL '36 hours'", "2999-01-02T12:00:00"),
        ("DATE '2999-01-01' + INTERVAL '1 day'", "2999-01-02"),
    ];
    assert_eq!(list_wrong(&ctx, "(SELECT 1)", &expected).await, "");
    assert!(error(&ctx, "SELECT to_timestamp(1e30)").await.contains("outside the range"));
    assert!(error(&ctx, "SELECT 5.5::TIMESTAMP").await.contains("to_timestamp"));
    query_batches(&ctx, "CREATE TABLE w (t TIMESTAMP)").await.unwrap();
    query_batches(&ctx, "INSERT INTO w VALUES (TIMESTAMP '2999-01-01'), (now()), ('1600-01-01')")
        .await
        .unwrap();
    assert_eq!(
        query_rows(&ctx, "SELECT min(t), max(t) FROM w").await,
        "1600-01-01T00:00:00 2999-01-01T00:00:00"
    );
}

#[tokio::test]
async fn series_and_windows_accept_timestamps() {
    let ctx = create_parallel_session();
    for series in ["generate_series", "range"] {
        let sql = format!(
            "SELECT value > TIMESTAMP '2020-01-01' FROM {series}(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02 12:00:00', INTERVAL '1 day') WHERE value < '2999-01-01' ORDER BY value"
        );
        assert_eq!(query_rows(&ctx, &sql).await, "false; true", "{series}");
        let sql = format!(
            "SELECT array_length({series}(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02 12:00:00', INTERVAL '1 day'))"
        );
        assert_eq!(query_rows(&ctx, &sql).await, "2", "{series}");
    }
    let sql = "SELECT sum(x) OVER (ORDER BY t RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW) FROM (VALUES
        (TIMESTAMP '2020-01-01', 1), (TIMESTAMP '2020-01-01 12:00:00', 2), (TIMESTAMP '2999-01-01', 4)) v(t, x)";
    assert_eq!(query_rows(&ctx, sql).await, "1; 3; 4");
}

/// When this test fails, our `date_trunc`, `date_bin` and `to_timestamp` can be removed.
#[tokio::test]
async fn stock_functions_still_work_in_nanoseconds() {
    let stock = SessionContext::new();
    let far = "arrow_cast('2999-12-31', 'Timestamp(Microsecond, None)')";
    let trunc = stock.sql(&format!("SELECT date_trunc('month', {far})")).await.unwrap();
    assert!(trunc.collect().await.is_err());
    let bin = stock.sql(&format!("SELECT date_bin(INTERVAL '1 day', {far})")).await.unwrap();
    assert_eq!(bin.collect().await.unwrap()[0].column(0).null_count(), 1);
    let origin = "SELECT date_bin(INTERVAL '1 day', TIMESTAMP '2020-01-01', NULL::TIMESTAMP)";
    let bin = stock.sql(origin).await.unwrap().collect().await.unwrap_err();
    assert!(bin.to_string().contains("expects origin argument"), "{bin}");
    let parse = stock.sql("SELECT to_timestamp('2999-12-31')").await.unwrap();
    assert!(parse.collect().await.is_err());
}

#[tokio::test]
async fn bins_from_an_origin_that_is_null_are_null() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, DATE '2020-01-05'), (2, NULL)) v(i, d)"],
        &[
            ("SELECT time_bucket(INTERVAL '7 days', d, NULL) FROM t ORDER BY i", "NULL; NULL"),
            (
                "SELECT date_bin(INTERVAL '1 month', d, NULL::TIMESTAMP) FROM t WHERE i = 1",
                "NULL",
            ),
            (
                "SELECT arrow_typeof(time_bucket(INTERVAL '7 days', DATE '2999-01-01', NULL::DATE))",
                "Timestamp(\u{b5}s)",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn now_is_in_microseconds() {
    let ctx = serrate::sql::session();
    let micros = "Timestamp(µs, \"UTC\")";
    let expected = [
        ("arrow_typeof(now())", micros),
        ("arrow_typeof(current_timestamp)", micros),
        ("arrow_typeof(now() + INTERVAL '1 day')", micros),
        ("now() + INTERVAL '2000 years' > TIMESTAMP '2999-01-01'", "true"),
        ("TIMESTAMP '1600-01-01' > now() - INTERVAL '2000 years'", "true"),
        ("now() = now() AND now() = current_timestamp", "true"),
        ("now() > TIMESTAMP '2020-01-01' AND now() < TIMESTAMP '2200-01-01'", "true"),
        ("now() > arrow_cast('2020-01-01', 'Timestamp(Nanosecond, None)')", "true"),
        ("[TIMESTAMP '2999-01-01', now()][1]", "2999-01-01T00:00:00Z"),
        ("coalesce(TIMESTAMP '2999-01-01', now())", "2999-01-01T00:00:00Z"),
        (
            "CASE WHEN now() IS NULL THEN now() ELSE TIMESTAMP '2999-01-01' END",
            "2999-01-01T00:00:00Z",
        ),
        ("extract(year FROM now()) > 2000", "true"),
        ("now()::DATE = current_date", "true"),
        (
            "(SELECT max(t) FROM (SELECT TIMESTAMP '2999-01-01' AS t UNION SELECT now()))",
            "2999-01-01T00:00:00Z",
        ),
        (
            "(SELECT count(*) FROM (SELECT now() AS t UNION ALL SELECT TIMESTAMP '1600-01-01') WHERE t < now())",
            "1",
        ),
    ];
    assert_eq!(list_wrong(&ctx, "(VALUES (1)) AS one(x)", &expected).await, "");
    query_batches(&ctx, "SET datafusion.execution.time_zone = '+02:00'").await.unwrap();
    let zoned = [
        ("arrow_typeof(now())", "Timestamp(µs, \"+02:00\")"),
        ("now() + INTERVAL '2000 years' > now()", "true"),
    ];
    assert_eq!(list_wrong(&ctx, "(VALUES (1)) AS one(x)", &zoned).await, "");
}

#[tokio::test]
async fn times_with_a_zone_are_instants() {
    let ctx = serrate::sql::session();
    let berlin = "AT TIME ZONE 'Europe/Berlin'";
    let zoned = format!("TIMESTAMPTZ '2020-01-01 10:00:00Z' {berlin}");
    let local = format!("TIMESTAMP '2020-01-01 10:00:00' {berlin}");
    let equal = format!("{local} = TIMESTAMPTZ '2020-01-01 09:00:00Z'");
    let naive = format!("({local})::TIMESTAMP");
    let expected = [
        ("arrow_typeof(now())", "Timestamp(µs, \"UTC\")"),
        ("TIMESTAMPTZ '2020-01-01 10:00:00+02'", "2020-01-01T08:00:00Z"),
        ("'2020-01-01'::TIMESTAMPTZ", "2020-01-01T00:00:00Z"),
        (zoned.as_str(), "2020-01-01T11:00:00+01:00"),
        (local.as_str(), "2020-01-01T10:00:00+01:00"),
        (equal.as_str(), "true"),
        (naive.as_str(), "2020-01-01T09:00:00"),
        ("now() - TIMESTAMP '2020-01-01' > INTERVAL '1 day'", "true"),
        ("TIMESTAMP '2020-01-01' IN (TIMESTAMPTZ '2020-01-01 00:00:00Z')", "true"),
    ];
    assert_eq!(list_wrong(&ctx, "(VALUES (1)) AS one(x)", &expected).await, "");
}

#[tokio::test]
async fn ragged_lookup_finds_times_of_any_unit() {
    const UNITS: [&str; 4] = ["Second", "Millisecond", "Microsecond", "Nanosecond"];
    for keys in UNITS {
        let ctx = serrate::sql::session();
        let table = format!(
            "CREATE TABLE t AS SELECT arrow_cast(k, 'Timestamp({keys}, None)') AS k, v FROM (VALUES ('2020-01-01', 1), ('2001-01-01T00:00:01', 2)) AS t(k, v)"
        );
        query_batches(&ctx, &table).await.unwrap();
        for values in UNITS {
            let one = |text: &str| format!("arrow_cast('{text}', 'Timestamp({values}, None)')");
            let given = [one("2020-01-01"), one("2001-01-01T00:00:01"), one("2001-01-01T00:00:02")];
            let sql = format!("SELECT ragged_lookup([{}], 't', 'k', 'v')", given.join(", "));
            assert_eq!(query_rows(&ctx, &sql).await, "[1, 2, ]", "{keys} {values}");
        }
        let expected = [
            // A value that the unit of the keys cannot represent is not found.
            (
                "ragged_lookup([arrow_cast('2020-01-01T00:00:00.000000001', 'Timestamp(Nanosecond, None)')], 't', 'k', 'v')",
                "[]",
            ),
            (
                "ragged_lookup([TIMESTAMP '2020-01-01', TIMESTAMP '2999-01-01', NULL], 't', 'k', 'v')",
                "[1, , ]",
            ),
            ("ragged_lookup([DATE '2020-01-01', DATE '2999-01-01'], 't', 'k', 'v')", "[1, ]"),
        ];
        assert_eq!(list_wrong(&ctx, "(VALUES (1)) AS one(x)", &expected).await, "", "{keys}");
    }
}

#[tokio::test]
async fn unions_of_dates_plus_hours_and_timestamps_cover_all_years() {
    let ctx = create_parallel_session();
    let dates = "(VALUES (DATE '1600-01-01')) t(d)";
    let expected = "1600-01-01T05:00:00; 2999-12-31T00:00:00";
    for sql in [
        format!(
            "SELECT d + INTERVAL '5 hours' AS c FROM {dates} UNION ALL SELECT TIMESTAMP '2999-12-31' ORDER BY 1"
        ),
        format!(
            "SELECT d + INTERVAL '5 hours' AS c FROM {dates} UNION SELECT DATE '2999-12-31' ORDER BY 1"
        ),
        format!(
            "SELECT d + INTERVAL '5 hours' AS c FROM {dates} UNION ALL BY NAME SELECT TIMESTAMP '2999-12-31' AS c ORDER BY 1"
        ),
        format!(
            "SELECT c FROM (SELECT TIMESTAMP '2999-12-31' AS c UNION ALL SELECT d + INTERVAL '5 hours' FROM {dates}) GROUP BY c ORDER BY c"
        ),
        format!(
            "SELECT c FROM (SELECT DATE '2999-12-31' AS c UNION ALL SELECT d + INTERVAL '5 hours' FROM {dates}) ORDER BY c"
        ),
    ] {
        assert_eq!(query_rows(&ctx, &sql).await, expected, "{sql}");
    }
}

/// DataFusion would cast both to nanoseconds, which end in 2262.
#[tokio::test]
async fn dates_next_to_timestamps_cover_all_years_in_lists_and_structs() {
    let setup = "CREATE TABLE x AS SELECT d, t, t::TIMESTAMP(0) AS s, t::TIMESTAMP(9) AS n FROM (VALUES (DATE '2999-01-01', TIMESTAMP '1970-01-01 10:00')) v(d, t)";
    let both = "[2999-01-01T00:00:00, 1970-01-01T10:00:00]";
    let rows = "[2999-01-01T00:00:00]; [1970-01-01T10:00:00]";
    let cases = [
        ("SELECT [d, t] FROM x", both),
        (
            "SELECT arrow_typeof([d, t]), arrow_typeof([d, s]) FROM x",
            "List(Timestamp(\u{b5}s)) List(Timestamp(s))",
        ),
        ("SELECT [DATE '2999-01-01', TIMESTAMP '1970-01-01 10:00']", both),
        (
            "SELECT [[d], [s]], [{'a': d}, {'a': t}] FROM x",
            "[[2999-01-01T00:00:00], [1970-01-01T10:00:00]] [{a: 2999-01-01T00:00:00}, {a: 1970-01-01T10:00:00}]",
        ),
        (
            "SELECT coalesce([d], [t]), greatest([d], [t]) FROM x",
            "[2999-01-01T00:00:00] [2999-01-01T00:00:00]",
        ),
        (
            "SELECT coalesce(d, t, s), CASE WHEN d > t THEN [d] ELSE [t] END FROM x",
            "2999-01-01T00:00:00 [2999-01-01T00:00:00]",
        ),
        (
            "SELECT CASE WHEN d > t THEN {'a': d} ELSE {'a': s} END FROM x",
            "{a: 2999-01-01T00:00:00}",
        ),
        ("SELECT {'a': d} = {'a': t}, {'a': d} > {'a': s} FROM x", "false true"),
        (
            "SELECT array_append([d], t), [d] || t, [d] || [t] FROM x",
            "[2999-01-01T00:00:00, 1970-01-01T10:00:00] [2999-01-01T00:00:00, 1970-01-01T10:00:00] [2999-01-01T00:00:00, 1970-01-01T10:00:00]",
        ),
        (
            "SELECT array_prepend(d, [t]), array_resize([d], 2, t) FROM x",
            "[2999-01-01T00:00:00, 1970-01-01T10:00:00] [2999-01-01T00:00:00, 1970-01-01T10:00:00]",
        ),
        (
            "SELECT array_position([t], d), array_has([d], t), array_has([d], d::TIMESTAMP) FROM x",
            "NULL false true",
        ),
        ("SELECT [d] AS v FROM x UNION ALL SELECT [t] FROM x ORDER BY v DESC", rows),
        (
            "SELECT [d] AS v FROM x UNION SELECT [t] FROM x UNION SELECT [s] FROM x ORDER BY v DESC",
            rows,
        ),
        (
            "SELECT {'a': d} AS v FROM x UNION ALL SELECT {'a': t} FROM x ORDER BY v DESC",
            "{a: 2999-01-01T00:00:00}; {a: 1970-01-01T10:00:00}",
        ),
        (
            "SELECT d AS v FROM x UNION ALL SELECT s FROM x UNION ALL SELECT t FROM x ORDER BY v DESC LIMIT 1",
            "2999-01-01T00:00:00",
        ),
        (
            "SELECT v FROM (VALUES ([DATE '2999-01-01']), (NULL), ([TIMESTAMP '1970-01-01 10:00'])) q(v) WHERE v IS NOT NULL ORDER BY v DESC",
            rows,
        ),
        (
            "SELECT v FROM (VALUES ({'a': DATE '2999-01-01'}), ({'a': TIMESTAMP '1970-01-01 10:00'})) q(v) ORDER BY v DESC LIMIT 1",
            "{a: 2999-01-01T00:00:00}",
        ),
        ("SELECT v FROM (VALUES ([DATE '2999-01-01', TIMESTAMP '1970-01-01 10:00'])) q(v)", both),
        ("SELECT map_values(MAP {'a': d, 'b': t}) FROM x", both),
        // Nanoseconds keep their digits.
        (
            "SELECT arrow_typeof([DATE '2020-01-01', n]), arrow_typeof(v) FROM x, (VALUES (TIMESTAMP '1970-01-01'::TIMESTAMP(9))) q(v)",
            "List(Timestamp(ns)) Timestamp(ns)",
        ),
        (
            "SELECT arrow_typeof(v) FROM (VALUES ([TIMESTAMP '1970-01-01']::TIMESTAMP(9)[]), ([DATE '1970-01-01'])) q(v) LIMIT 1",
            "List(Timestamp(ns))",
        ),
    ];
    expect_rows(&[setup], &cases).await;
    let ctx = serrate::sql::session();
    run_all(&ctx, &[setup]).await;
    for sql in ["SELECT [d, n] FROM x", "SELECT coalesce([d], [n]) FROM x"] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("375835"), "{sql}: {e}");
    }
}

#[tokio::test]
async fn values_of_dates_and_timestamps_cover_all_years() {
    let rows = "(DATE '2020-02-29'), (NULL), (TIMESTAMP '1600-01-01 00:00:01')";
    let expected = "1600-01-01T00:00:01; 2020-02-29T00:00:00; NULL";
    let cases = [
        (format!("SELECT * FROM (VALUES {rows}) v(t) ORDER BY t"), expected),
        (format!("SELECT DISTINCT arrow_typeof(t) FROM (VALUES {rows}) v(t)"), "Timestamp(\u{b5}s)"),
        (format!("WITH v(t) AS (VALUES {rows}) SELECT max(year(t)) FROM v"), "2020"),
        (
            "SELECT DISTINCT arrow_typeof(t) FROM (VALUES (TIMESTAMP(9) '2020-01-01'), (DATE '2020-02-29')) v(t)".into(),
            "Timestamp(ns)",
        ),
        (format!("INSERT INTO u SELECT t FROM (VALUES {rows}) v(t)"), "3"),
        ("SELECT t FROM u ORDER BY t".into(), expected),
        (format!("INSERT INTO n VALUES {rows}"), "3"),
        ("SELECT t FROM n ORDER BY t".into(), expected),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&["CREATE TABLE u (t TIMESTAMP)", "CREATE TABLE n (t TIMESTAMP)"], &cases).await;
}

#[tokio::test]
async fn functions_accept_dates_of_all_years() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, DATE '0001-05-17'), (2, DATE '2024-02-29'), (3, DATE '9999-12-31'), (4, NULL)) v(i, d)"],
        &[
            (
                "SELECT date_trunc('month', d) FROM t ORDER BY i",
                "0001-05-01T00:00:00; 2024-02-01T00:00:00; 9999-12-01T00:00:00; NULL",
            ),
            (
                "SELECT date_trunc('week', d), date_trunc('quarter', d) FROM t ORDER BY i",
                "0001-05-14T00:00:00 0001-04-01T00:00:00; 2024-02-26T00:00:00 2024-01-01T00:00:00; 9999-12-27T00:00:00 9999-10-01T00:00:00; NULL NULL",
            ),
            ("SELECT date_trunc('year', DATE '1066-10-14'), date_trunc('day', '2999-10-14')", "1066-01-01T00:00:00 2999-10-14T00:00:00"),
            ("SELECT date_bin(INTERVAL '1 month', DATE '2999-05-17'), date_bin(INTERVAL '1 day', d) FROM t WHERE i = 3", "2999-05-01T00:00:00 9999-12-31T00:00:00"),
            ("SELECT arrow_typeof(date_trunc('month', d)) FROM t WHERE i = 1", "Timestamp(\u{b5}s)"),
            (
                "SELECT date_part('year', d), extract(month FROM d), extract(dow FROM d), extract(doy FROM d) FROM t WHERE i <> 2 ORDER BY i",
                "1 5 4 137; 9999 12 5 365; NULL NULL NULL NULL",
            ),
            ("SELECT extract(epoch FROM d) FROM t WHERE i < 4 ORDER BY i", "-62123846400.0; 1709164800.0; 253402214400.0"),
            ("SELECT d - 1, d + 1, d - INTERVAL '1 month' FROM t WHERE i = 3", "9999-12-30 +10000-01-01 9999-11-30"),
            ("SELECT d + INTERVAL '1 year', d - DATE '9999-12-31' FROM t WHERE i = 1", "0002-05-17 -3651922"),
            (
                "SELECT generate_series(TIMESTAMP '2999-01-01', TIMESTAMP '2999-01-02', INTERVAL '1 day')[2], range(DATE '0001-01-01', DATE '0001-01-03', INTERVAL '1 day')",
                "2999-01-02T00:00:00 [0001-01-01, 0001-01-02]",
            ),
        ],
    )
    .await;
}
