//! Casts of times to other units and zones, and times of day.

use super::*;

/// Comparisons of timestamps that are cast to a finer unit are exact, also if the cast is in a
/// subquery.
#[tokio::test]
async fn casts_to_finer_units_compare_exactly() {
    let setup = [
        "CREATE TABLE t AS SELECT column1 AS id, arrow_cast(column2, 'Timestamp(Millisecond, None)') AS x FROM
            (VALUES (1, '2020-02-29 23:59:59.123'), (2, '1960-02-29 23:59:59.123'), (3, NULL))",
    ];
    let late = "TIMESTAMP '2020-02-29 23:59:59.123456'";
    let early = "TIMESTAMP '1960-02-29 23:59:59.123456'";
    let case = |condition: &str| {
        let condition = condition.replace("LATE", late).replace("EARLY", early);
        format!("SELECT id FROM t WHERE {condition} ORDER BY id")
    };
    let cases: Vec<(String, &str)> = [
        ("x::TIMESTAMP = LATE", ""),
        ("NOT x::TIMESTAMP = LATE", "1; 2"),
        ("x::TIMESTAMP <> LATE", "1; 2"),
        ("(x::TIMESTAMP = LATE) IS NULL", "3"),
        ("x::TIMESTAMP < LATE", "1; 2"),
        ("x::TIMESTAMP >= LATE", ""),
        ("x::TIMESTAMP > EARLY", "1"),
        ("x::TIMESTAMP <= EARLY", "2"),
        ("EARLY >= x::TIMESTAMP", "2"),
        ("x::TIMESTAMP < LATE + INTERVAL '0 seconds'", "1; 2"),
        ("x::TIMESTAMP = LATE - INTERVAL '1 microsecond' + INTERVAL '1 microsecond'", ""),
        ("x::TIMESTAMP IN (LATE, EARLY)", ""),
        ("x::TIMESTAMP NOT IN (LATE, EARLY)", "1; 2"),
        ("x::TIMESTAMP IN (LATE, TIMESTAMP '2020-02-29 23:59:59.123')", "1"),
        ("x::TIMESTAMP NOT IN (LATE, TIMESTAMP '2020-02-29 23:59:59.123')", "2"),
        ("x::TIMESTAMP BETWEEN EARLY AND LATE", "1"),
        ("x::TIMESTAMP NOT BETWEEN EARLY AND LATE", "2"),
        ("x::TIMESTAMP IS DISTINCT FROM LATE", "1; 2; 3"),
        ("TRY_CAST(x AS TIMESTAMP(9)) = arrow_cast('2020-02-29 23:59:59.123000001', 'Timestamp(Nanosecond, None)')", ""),
        ("x::TIMESTAMP = '2020-02-29 23:59:59.123456'", ""),
        ("x::TIMESTAMP = TIMESTAMP '2020-02-29 23:59:59.123'", "1"),
        ("id IN (SELECT id FROM (SELECT id, x::TIMESTAMP AS y FROM t) WHERE y = LATE)", ""),
    ]
    .map(|(condition, expected)| (case(condition), expected))
    .to_vec();
    let mut cases: Vec<(&str, &str)> =
        cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    let view = format!(
        "SELECT id FROM (SELECT id, x::TIMESTAMP AS y FROM t) WHERE y = {late} OR y > {early} ORDER BY id"
    );
    cases.push((&view, "1"));
    let value = format!(
        "SELECT x::TIMESTAMP = {late}, x::TIMESTAMP < {late}, x::TIMESTAMP IN ({late}) FROM t ORDER BY id"
    );
    cases.push((&value, "false true false; false true false; NULL NULL NULL"));
    expect_rows(&setup, &cases).await;
}

/// When this test and `stock_casts_still_move_to_literals` fail, `keep_compared_casts` can be
/// removed.
#[tokio::test]
async fn stock_casts_to_finer_units_still_round_literals() {
    let sql = "SELECT count(*) FROM (VALUES (arrow_cast('2020-02-29 23:59:59.123', 'Timestamp(Millisecond, None)'))) t(x)
        WHERE arrow_cast(x, 'Timestamp(Microsecond, None)') = arrow_cast('2020-02-29 23:59:59.123456', 'Timestamp(Microsecond, None)')";
    assert_eq!(stock_one(&SessionContext::new(), sql).await, 1);
}

#[tokio::test]
async fn times_of_day_compare_exactly() {
    let setup = [
        "CREATE TABLE t AS SELECT arrow_cast('12:00:00', 'Time64(Microsecond)') AS u, arrow_cast('12:00:00', 'Time32(Second)') AS s,
            arrow_cast('23:59:59.999', 'Time32(Millisecond)') AS m, TIME '12:00:00' AS n, '12:00:00.0000005' AS c",
    ];
    let cases = [
        ("SELECT u = '12:00:00.0000005', u < '12:00:00.0000005' FROM t", "false true"),
        (
            "SELECT m = '23:59:59.999999', m = '23:59:59.999', s = '12:00:00.5', s < '12:00:00.5' FROM t",
            "false true false true",
        ),
        (
            "SELECT u IN (TIME '12:00:00', TIME '13:00:00'), s NOT IN (TIME '12:00:00'), u IN ('12:00:00') FROM t",
            "true false true",
        ),
        ("SELECT count(*) FROM t a JOIN t b ON a.u = b.n AND a.s = b.u", "1"),
        ("SELECT count(*) FROM t WHERE u IN (SELECT n FROM t)", "1"),
        ("SELECT count(*) FROM t WHERE u < TIME '12:00:00.000000001'", "1"),
        ("SELECT u = NULL, u IS DISTINCT FROM NULL FROM t", "NULL true"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn case_returns_the_finest_unit_of_its_branches() {
    let setup = [
        "CREATE TABLE t AS SELECT id, arrow_cast('2024-01-01 12:00:00', 'Timestamp(Second, None)') AS s,
            arrow_cast('2024-01-01T12:00:00.000005Z', 'Timestamp(Microsecond, Some(\"UTC\"))') AS z
            FROM (VALUES (1), (2)) v(id)",
    ];
    let cases = [
        ("SELECT id FROM t WHERE CASE WHEN id > 1 THEN s ELSE z END = z ORDER BY id", "1"),
        ("SELECT id FROM t WHERE CASE WHEN id > 1 THEN z ELSE s END = z ORDER BY id", "2"),
        (
            "SELECT id FROM t WHERE CASE WHEN id > 1 THEN s WHEN id > 2 THEN NULL ELSE z END < z",
            "2",
        ),
        (
            "SELECT id, x IS DISTINCT FROM z FROM (SELECT id, z, CASE id WHEN 2 THEN s ELSE z END AS x FROM t) ORDER BY id",
            "1 false; 2 true",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn times_of_day_of_several_units_have_distinct_and_union() {
    let setup = [
        "CREATE TABLE t AS SELECT id, arrow_cast(x, 'Time32(Second)') AS s, arrow_cast(y, 'Time32(Millisecond)') AS m,
            arrow_cast(y, 'Time64(Microsecond)') AS u, y AS n
            FROM (VALUES (1, TIME '01:02:03', TIME '01:02:03'), (2, TIME '04:05:06', TIME '04:05:06.5'), (3, NULL, TIME '01:01:01'), (4, NULL, NULL)) v(id, x, y)",
    ];
    let cases = [
        (
            "SELECT s IS DISTINCT FROM m, u IS NOT DISTINCT FROM s, n IS DISTINCT FROM s FROM t ORDER BY id",
            "false true false; true false true; true false true; false true false",
        ),
        (
            "SELECT s IS DISTINCT FROM TIME '04:05:06', TIME '04:05:06.5' IS NOT DISTINCT FROM m, s IS DISTINCT FROM NULL FROM t ORDER BY id",
            "true false true; false true true; true false false; true false false",
        ),
        ("SELECT id FROM t WHERE NOT s IS DISTINCT FROM u ORDER BY id", "1; 4"),
        ("SELECT count(*) FROM t WHERE s IS DISTINCT FROM TIME '04:05:06.5'", "4"),
        (
            "SELECT a.id, b.id FROM t a JOIN t b ON a.s IS NOT DISTINCT FROM b.n ORDER BY 1, 2",
            "1 1; 3 4; 4 4",
        ),
        (
            "SELECT 1 IS DISTINCT FROM 2, NULL IS NOT DISTINCT FROM NULL, 1 + 1 IS DISTINCT FROM 2",
            "true true false",
        ),
        ("SELECT count(*) FROM (SELECT s FROM t UNION SELECT m FROM t)", "5"),
        (
            "SELECT count(*), max(s) FROM (SELECT s FROM t UNION ALL SELECT n FROM t UNION ALL SELECT NULL)",
            "9 04:05:06.500",
        ),
        (
            "SELECT id, min(u) = max(u) FROM (SELECT id, u FROM t UNION ALL SELECT id, s FROM t) GROUP BY id ORDER BY id",
            "1 true; 2 false; 3 true; 4 NULL",
        ),
        ("SELECT count(*) FROM (SELECT id, s FROM t EXCEPT SELECT id, u FROM t)", "2"),
        (
            "SELECT array_has([s], m), array_position([m], s), [s] = [m], array_append([s], u) FROM t WHERE id <> 3 ORDER BY id",
            "true 1 true [01:02:03, 01:02:03]; false NULL false [04:05:06, 04:05:06.500]; NULL 1 true [, ]",
        ),
        ("SELECT count(*) FROM (SELECT s FROM t INTERSECT SELECT n FROM t)", "2"),
    ];
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `times::clock` can be removed.
#[tokio::test]
async fn stock_times_of_day_still_differ() {
    let ctx = SessionContext::new();
    let sql = "SELECT arrow_cast('12:00:00', 'Time64(Microsecond)') < arrow_cast('13:00:00', 'Time64(Nanosecond)')";
    let refused = stock_error(&ctx, sql).await;
    assert!(refused.contains("Cannot infer common argument type"), "{refused}");
}

#[tokio::test]
async fn constants_before_1970_are_rounded_down() {
    let cases = [
        (
            "SELECT date_trunc('millisecond', TIMESTAMP '1969-12-31 23:59:59.999999')",
            "1969-12-31T23:59:59.999",
        ),
        (
            "SELECT date_trunc('millisecond', TIMESTAMP '1960-01-01 00:00:00.0005')",
            "1960-01-01T00:00:00",
        ),
        ("SELECT date_trunc('second', TIMESTAMP '1600-01-01 00:00:00.5')", "1600-01-01T00:00:00"),
        ("SELECT date_trunc('minute', TIMESTAMP '1969-12-31 23:59:59.5')", "1969-12-31T23:59:00"),
        (
            "SELECT date_trunc('microsecond', arrow_cast('1969-12-31 23:59:59.999999999', 'Timestamp(Nanosecond, None)'))",
            "1969-12-31T23:59:59.999999",
        ),
        (
            "SELECT date_trunc('month', TIMESTAMP '1969-12-31 23:59:59.5'), date_trunc('day', NULL::TIMESTAMP)",
            "1969-12-01T00:00:00 NULL",
        ),
        (
            "SELECT x FROM (VALUES (TIMESTAMP '2020-01-01')) t(x) WHERE x > date_trunc('hour', TIMESTAMP '1969-12-31 23:59:59.5')",
            "2020-01-01T00:00:00",
        ),
    ];
    expect_rows(&[], &cases).await;
}

/// When this test fails, `wide::truncate` can be removed.
#[tokio::test]
async fn stock_constants_before_1970_are_still_rounded_up() {
    let time = "arrow_cast('1969-12-31 23:59:59.999999', 'Timestamp(Microsecond, None)')";
    let sql = format!("SELECT arrow_cast(date_trunc('millisecond', {time}), 'Int64')");
    assert_eq!(stock_ints(&SessionContext::new(), &sql).await, [0]);
}

#[tokio::test]
async fn casts_of_times_before_1970_round_down() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, TIMESTAMP '1969-12-31 23:59:59.3'), (2, TIMESTAMP '1970-01-01 00:00:01.7'), (3, NULL)) t(id, x)",
    ];
    let cases = [
        (
            "SELECT x::TIMESTAMP(0), to_unixtime(x), to_timestamp_seconds(x) FROM t ORDER BY id",
            "1969-12-31T23:59:59 -1 1969-12-31T23:59:59Z; 1970-01-01T00:00:01 1 1970-01-01T00:00:01Z; NULL NULL NULL",
        ),
        ("SELECT (TIMESTAMP '1969-12-31 23:59:59.3')::TIMESTAMP(0)", "1969-12-31T23:59:59"),
        ("SELECT id FROM t WHERE x::TIMESTAMP(0) = TIMESTAMP '1969-12-31 23:59:59'", "1"),
        ("SELECT id FROM t ORDER BY x::TIMESTAMP(0) DESC NULLS LAST LIMIT 2", "2; 1"),
        ("SELECT TRY_CAST(x AS TIMESTAMP(3)) FROM t WHERE id = 1", "1969-12-31T23:59:59.300"),
    ];
    expect_rows(&setup, &cases).await;
}

/// `TIMESTAMP` and `TIMESTAMP(6)` are one type, so a cast of a number to it must not have two
/// units.
#[tokio::test]
async fn numbers_are_cast_to_timestamps_as_seconds_only() {
    let setup = [
        "CREATE TABLE t AS SELECT 5::BIGINT AS i, 1.5 AS f, TIMESTAMP '2020-01-01 10:00:00' AS t",
        "CREATE VIEW v AS SELECT i::TIMESTAMP AS t FROM t",
    ];
    let cases = [
        (
            "SELECT i::TIMESTAMP, i::TIMESTAMP(0), i::TIMESTAMP(9) FROM t",
            "1970-01-01T00:00:05 1970-01-01T00:00:05 1970-01-01T00:00:05",
        ),
        (
            "SELECT TRY_CAST(i AS TIMESTAMP), i::TIMESTAMPTZ FROM t",
            "1970-01-01T00:00:05 1970-01-01T00:00:05Z",
        ),
        ("SELECT t FROM v", "1970-01-01T00:00:05"),
        (
            "SELECT to_timestamp_micros(i)::TIMESTAMP, to_timestamp_millis(i)::TIMESTAMP(3) FROM t",
            "1970-01-01T00:00:00.000005 1970-01-01T00:00:00.005",
        ),
        (
            "SELECT arrow_cast(i, 'Timestamp(Microsecond, None)') FROM t",
            "1970-01-01T00:00:00.000005",
        ),
        (
            "SELECT t::TIMESTAMP(3), '2020-01-01'::TIMESTAMP(6), NULL::TIMESTAMP(6) FROM t",
            "2020-01-01T10:00:00 2020-01-01T00:00:00 NULL",
        ),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    run_all(&ctx, &setup).await;
    for sql in [
        "SELECT i::TIMESTAMP(6) FROM t",
        "SELECT i::TIMESTAMP(3) FROM t",
        "SELECT 5::TIMESTAMP(6)",
        "SELECT f::TIMESTAMP(6) FROM t",
        "SELECT f::TIMESTAMP(0) FROM t",
        "SELECT TRY_CAST(i AS TIMESTAMP(6)) FROM t",
        "SELECT i::TIMESTAMP(6) WITH TIME ZONE FROM t",
        "SELECT t FROM t WHERE t > (SELECT max(i::TIMESTAMP(6)) FROM t)",
        "CREATE TABLE u AS SELECT i::TIMESTAMP(6) AS t FROM t",
        "CREATE VIEW u AS SELECT i::TIMESTAMP(6) AS t FROM t",
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains("the unit of the numbers is not known"), "{sql}: {e}");
        assert!(e.contains("to_timestamp_micros(x) for microseconds"), "{sql}: {e}");
    }
}

/// When this test fails, `serrate_coarser_times` can be removed.
#[tokio::test]
async fn stock_casts_before_1970_still_round_up() {
    let time = "arrow_cast('1969-12-31 23:59:59.3', 'Timestamp(Microsecond, None)')";
    let sql = format!("SELECT arrow_cast(arrow_cast({time}, 'Timestamp(Second, None)'), 'Int64')");
    assert_eq!(stock_ints(&SessionContext::new(), &sql).await, [0]);
}

#[tokio::test]
async fn arrow_cast_of_times_is_exact() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, TIMESTAMP '1969-12-31 23:59:59.999999'), (2, TIMESTAMP '2020-01-01 00:00:00'), (3, NULL)) t(id, x)",
    ];
    let cases = [
        (
            "SELECT arrow_cast(x, 'Timestamp(Millisecond, None)'), arrow_try_cast(x, 'Timestamp(Second, None)') FROM t ORDER BY id",
            "1969-12-31T23:59:59.999 1969-12-31T23:59:59; 2020-01-01T00:00:00 2020-01-01T00:00:00; NULL NULL",
        ),
        (
            "SELECT arrow_cast(TIMESTAMP '1969-12-31 23:59:59.999999', 'Timestamp(Millisecond, None)')",
            "1969-12-31T23:59:59.999",
        ),
        ("SELECT arrow_cast(x, 'Int64') FROM t WHERE id = 1", "-1"),
        (
            "SELECT id FROM t WHERE arrow_cast(x, 'Timestamp(Microsecond, Some(\"+02:00\"))') = TIMESTAMP '2020-01-01'",
            "2",
        ),
        (
            "SELECT id FROM t WHERE arrow_cast(x, 'Timestamp(Microsecond, Some(\"+02:00\"))') < TIMESTAMP '2020-01-01' ORDER BY id",
            "1",
        ),
        (
            "SELECT id FROM t WHERE arrow_cast(x, 'Timestamp(Microsecond, Some(\"+02:00\"))') IN (TIMESTAMP '2020-01-01')",
            "2",
        ),
        (
            "SELECT id FROM t WHERE arrow_cast(x, 'Timestamp(Microsecond, Some(\"+02:00\"))') = arrow_cast('2019-12-31 22:00:00Z', 'Timestamp(Microsecond, Some(\"+00:00\"))')",
            "2",
        ),
        (
            "SELECT arrow_cast(x, 'Timestamp(Nanosecond, None)') = x FROM t ORDER BY id",
            "true; true; NULL",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn times_of_day_of_several_units_are_compared_as_values() {
    let setup = [
        "CREATE TABLE t AS SELECT arrow_cast('12:00:00', 'Time64(Microsecond)') AS a, TIME '12:00:00' AS b, arrow_cast('12:00:00', 'Time32(Second)') AS c, TIME '12:00:00.000000001' AS d",
    ];
    let cases = [
        ("SELECT a = b, b >= c, c < a, a < d, a <> d FROM t", "true true false true true"),
        (
            "SELECT a = TIME '12:00:00', a < TIME '12:00:00.0000001', TIME '11:00:00' > c FROM t",
            "true true false",
        ),
        ("SELECT count(*) FROM t GROUP BY a = b HAVING max(a) = max(b) ORDER BY a = b", "1"),
        ("SELECT CASE WHEN a = b THEN 1 ELSE 2 END, (a = b) AND (c = b) FROM t", "1 true"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn times_that_try_cast_makes_null_do_not_compare() {
    let cast = "TRY_CAST(x AS TIMESTAMP(9))";
    let middle = "CAST('2020-01-01 00:00:00.0000005' AS TIMESTAMP(9))";
    let cases = [
        (format!("SELECT count(*) FROM t WHERE {cast} > {middle}"), "1"),
        (format!("SELECT count(*) FROM t WHERE {cast} <> {middle}"), "2"),
        (format!("SELECT count(*) FROM t WHERE {cast} IS DISTINCT FROM {middle}"), "3"),
        (format!("SELECT count(*) FROM t WHERE {cast} IS NOT DISTINCT FROM NULL"), "1"),
        (format!("SELECT count(*) FROM t WHERE {cast} NOT IN ({middle})"), "2"),
        (format!("SELECT count(*) FROM t WHERE {cast} NOT BETWEEN {middle} AND {middle}"), "2"),
        (format!("SELECT count(*) FROM t WHERE {cast} = CAST('2021-01-01' AS TIMESTAMP(9))"), "1"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(
        &["CREATE TABLE t AS SELECT CAST(x AS TIMESTAMP(3)) AS x FROM (VALUES ('9999-01-01'), ('2021-01-01'), ('2020-01-01')) v(x)"],
        &cases,
    )
    .await;
}

/// The arguments of a table function are computed before the analyzer rules run.
#[tokio::test]
async fn bounds_of_series_before_1970_round_down() {
    let cases = [
        (
            "SELECT value FROM generate_series(TIMESTAMP '1969-12-31 23:59:58.5'::TIMESTAMP(0), TIMESTAMP '1970-01-01 00:00:00.5'::TIMESTAMP(0), INTERVAL '1 second')",
            "1969-12-31T23:59:58; 1969-12-31T23:59:59; 1970-01-01T00:00:00",
        ),
        (
            "SELECT value FROM range(CAST(TIMESTAMP '1969-12-31 23:59:59.9995' AS TIMESTAMP(3)), TIMESTAMP '1970-01-01', INTERVAL '1 second')",
            "1969-12-31T23:59:59.999",
        ),
        (
            "SELECT value FROM range(TRY_CAST(TIMESTAMP '1969-12-31 23:59:58.5' + INTERVAL '1 second' AS TIMESTAMP(0)), '1970-01-01'::TIMESTAMP(0), INTERVAL '1 second')",
            "1969-12-31T23:59:59",
        ),
        (
            "SELECT count(*) FROM generate_series(NULL::TIMESTAMP::TIMESTAMP(0), TIMESTAMP '1970-01-01', INTERVAL '1 day')",
            "0",
        ),
    ];
    expect_rows(&[], &cases).await;
}
