//! Constant expressions within and next to lists have the same values as without lists.

use super::*;

/// The planner evaluates some constants in lists before the analyzer rules run.
#[tokio::test]
async fn constants_in_lists_equal_scalar_constants() {
    let ctx = serrate::sql::session();
    for constant in [
        "1 + 2 * 3",
        "7 / 2",
        "-7 % 3",
        "1 << 3",
        "6 & 3",
        "-(-5)",
        "0.1 + 0.2",
        "0.1::REAL",
        "2.5::INT",
        "2::DOUBLE",
        "300::SMALLINT",
        "2::BOOLEAN",
        "true::INT",
        "'t'::BOOLEAN",
        "'a' || 'b'",
        "1::VARCHAR",
        "1e20::VARCHAR",
        "1.005::DECIMAL(10, 2)",
        "7::DECIMAL(5, 2)",
        "1.5::DECIMAL(3, 1) * 2",
        "DATE '2020-01-05'::VARCHAR",
        "DATE '2020-01-01' + 5",
        "DATE '2020-01-05' - DATE '2020-01-01'",
        "DATE '2020-01-31' + INTERVAL '1 month'",
        "DATE '2020-01-01' + INTERVAL '36 hours'",
        "INTERVAL '36 hours' + DATE '2020-01-01'",
        "DATE '2020-01-31' - INTERVAL '1 month 1 hour'",
        "DATE '2020-01-01' + INTERVAL '36 hours' + INTERVAL '1 day'",
        "TIMESTAMP '2020-01-31' + INTERVAL '1 month 1 second'",
        "TIMESTAMP '2020-01-05' - TIMESTAMP '2020-01-01'",
        "TIMESTAMP '1969-12-31 23:59:59.5'::DATE",
        "TIMESTAMP '1969-12-31 23:59:59.5'::TIMESTAMP(0)",
        "TIMESTAMP '1969-12-31 23:59:59.5'::TIMESTAMP(3)",
        "TIMESTAMP '2020-01-01 00:00:01'::TIMESTAMP(0) + INTERVAL '500 milliseconds'",
        "TIMESTAMPTZ '2020-01-31 00:00:00+02' + INTERVAL '1 month'",
        "'2020-01-01T10:00:00'::TIMESTAMP",
        "'2020-01-01 10:00'::TIMESTAMP",
        "'1969-12-31 23:59:59.5'::TIMESTAMP(0)",
        "TIME '10:00:00.5'",
        "INTERVAL '1 day' - INTERVAL '36 hours'",
        "INTERVAL '1 day' * 2",
        "-INTERVAL '36 hours'",
        "'5'::INTERVAL",
        "INTERVAL '36 hours'::VARCHAR",
        "'x' || INTERVAL '36 hours'",
        "(TIMESTAMP '2020-01-01' - TIMESTAMP '2019-12-01')::INTERVAL::VARCHAR",
    ] {
        let data_type = query_rows(&ctx, &format!("SELECT arrow_typeof({constant})")).await;
        let value = query_rows(&ctx, &format!("SELECT {constant}")).await;
        let list =
            query_rows(&ctx, &format!("SELECT arrow_typeof([{constant}]), [{constant}]")).await;
        assert_eq!(list, format!("List({data_type}) [{value}]"), "{constant}");
    }
    let sql =
        "SELECT ['99999999999999999999999999999999999999'::DECIMAL(38,0) + '5'::DECIMAL(38,0)]";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("does not fit"), "{e}");
}

#[tokio::test]
async fn constants_next_to_lists_equal_scalar_constants() {
    let noon = "DATE '2020-01-01' + INTERVAL '36 hours'";
    let second = "TIMESTAMP '1969-12-31 23:59:59.5'::TIMESTAMP(0)";
    let days = "[TIMESTAMP '2020-01-02 06:00:00', TIMESTAMP '2020-01-02 13:00:00']";
    let old = "[TIMESTAMP '1969-12-31 23:59:59', TIMESTAMP '1970-01-01']";
    let setup = format!("CREATE TABLE t AS SELECT {days} AS x, {old} AS y, 1 AS i");
    let times = "CREATE TABLE u AS SELECT * FROM (VALUES (TIMESTAMP '1969-12-31 23:59:59'), (TIMESTAMP '1970-01-01')) v(t)";
    let cases = [
        (
            format!("SELECT x > {noon}, {noon} >= x, x IN ({noon}) FROM t"),
            "[false, true] [true, false] [false, false]",
        ),
        (format!("SELECT x IN ({noon}, TIMESTAMP '2020-01-02 13:00:00') FROM t"), "[false, true]"),
        (format!("SELECT ragged_between(x, {noon}, DATE '2020-01-05') FROM t"), "[false, true]"),
        (
            format!("SELECT ragged_searchsorted(x, {noon}), ragged_asof(x, x, {noon}) FROM t"),
            "1 2020-01-02T06:00:00",
        ),
        (format!("SELECT i FROM t WHERE ragged_any(ragged_head(x, 1) > {noon})"), ""),
        (format!("WITH c AS (SELECT x FROM t) SELECT ragged_sum(x > {noon}) FROM c LIMIT 1"), "1"),
        (
            format!("SELECT y = {second}, y IN ({second}), {second} < y FROM t"),
            "[true, false] [true, false] [false, true]",
        ),
        (
            format!("SELECT t = {second}, t IN ({second}) FROM u ORDER BY t"),
            "true true; false false",
        ),
        (
            format!("SELECT nullif(t, {second}), greatest(t, {second}) FROM u ORDER BY t"),
            "NULL 1969-12-31T23:59:59; 1970-01-01T00:00:00 1970-01-01T00:00:00",
        ),
        (format!("SELECT CASE t WHEN {second} THEN 1 ELSE 2 END FROM u ORDER BY t"), "1; 2"),
        (format!("SELECT count(*) FROM u JOIN t ON u.t = {second}"), "1"),
        (
            format!(
                "SELECT t = ANY([{noon}]) FROM (VALUES (TIMESTAMP '2020-01-02'), (TIMESTAMP '2020-01-02 12:00:00')) v(t) ORDER BY t"
            ),
            "false; true",
        ),
        (format!("SELECT * FROM unnest([{noon}])"), "2020-01-02T12:00:00"),
        (
            format!(
                "SELECT * FROM generate_series({noon}, TIMESTAMP '2020-01-03 23:00:00', INTERVAL '1 day')"
            ),
            "2020-01-02T12:00:00; 2020-01-03T12:00:00",
        ),
        (
            format!(
                "SELECT [DATE '2020-01-05'] - ({noon}) = [INTERVAL '60 hours'], [DATE '2020-01-02'] < {noon}"
            ),
            "true [true]",
        ),
        ("SELECT ['36:00', '36 hours'] IN (INTERVAL '36 hours'::VARCHAR)".into(), "[true, false]"),
        (
            format!("SELECT * FROM (VALUES ({noon}), (DATE '2020-01-05')) v(d) ORDER BY d"),
            "2020-01-02T12:00:00; 2020-01-05T00:00:00",
        ),
        (
            format!(
                "INSERT INTO d VALUES ({noon}, {noon}), (DATE '2020-01-05', DATE '2020-01-06')"
            ),
            "2",
        ),
        ("UPDATE d SET t = d + INTERVAL '12 hours' WHERE t = TIMESTAMP '2020-01-06'".into(), "1"),
        (
            "SELECT d, t FROM d ORDER BY d".into(),
            "2020-01-02 2020-01-02T12:00:00; 2020-01-05 2020-01-05T12:00:00",
        ),
        (format!("DELETE FROM u WHERE t = {second}"), "1"),
        ("SELECT t FROM u".into(), "1970-01-01T00:00:00"),
    ];
    let cases: Vec<(&str, &str)> =
        cases.iter().map(|(sql, expected)| (sql.as_str(), *expected)).collect();
    expect_rows(&[setup.as_str(), times, "CREATE TABLE d(d DATE, t TIMESTAMP)"], &cases).await;
}
