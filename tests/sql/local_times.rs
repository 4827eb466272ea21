//! Local times and time zones, including local times that a change of clocks skips or repeats.

use super::*;

const CLOCKS: &str = "CREATE TABLE t AS SELECT id, local::TIMESTAMP AS local, local::TIMESTAMP AT TIME ZONE 'America/New_York' AS zoned, local AS text
    FROM (VALUES (1, '2024-03-10 01:30:00'), (2, '2024-03-10 02:30:00'), (3, '2024-11-03 01:30:00'), (4, NULL), (5, '2024-07-01 12:00:00')) v(id, local)";

#[tokio::test]
async fn skipped_and_repeated_local_times_become_instants() {
    let cases = [
        // DuckDB returns these instants, too.
        (
            "SELECT id, zoned AT TIME ZONE 'UTC' FROM t ORDER BY id",
            "1 2024-03-10T06:30:00Z; 2 2024-03-10T07:30:00Z; 3 2024-11-03T06:30:00Z; 4 NULL; 5 2024-07-01T16:00:00Z",
        ),
        (
            "SELECT zoned FROM t WHERE id < 4 ORDER BY zoned DESC",
            "2024-11-03T01:30:00-05:00; 2024-03-10T03:30:00-04:00; 2024-03-10T01:30:00-05:00",
        ),
        (
            "SELECT arrow_cast(text, 'Timestamp(Second, Some(\"America/New_York\"))') = zoned FROM t ORDER BY id",
            "true; true; true; NULL; true",
        ),
        (
            "SELECT count(*) FROM t WHERE arrow_cast(local, 'Timestamp(Millisecond, Some(\"America/New_York\"))') = zoned",
            "4",
        ),
        (
            "SELECT TIMESTAMP '2024-03-10 02:30:00' AT TIME ZONE 'America/New_York' AT TIME ZONE 'UTC'",
            "2024-03-10T07:30:00Z",
        ),
        (
            "SELECT DATE '2011-12-30' AT TIME ZONE 'Pacific/Apia' AT TIME ZONE 'UTC', TRY_CAST('never' AS TIMESTAMPTZ)",
            "2011-12-30T10:00:00Z NULL",
        ),
    ];
    expect_rows(&[CLOCKS], &cases).await;
}

#[tokio::test]
async fn casts_to_several_zones_are_distinct_columns() {
    let zone = "SET datafusion.execution.time_zone = 'America/New_York'";
    let cases = [
        (
            "SELECT local::TIMESTAMPTZ, local AT TIME ZONE 'Europe/Berlin' FROM t WHERE id = 5",
            "2024-07-01T12:00:00-04:00 2024-07-01T12:00:00+02:00",
        ),
        (
            "SELECT coalesce(zoned, local), local AT TIME ZONE 'Europe/Berlin', local AT TIME ZONE 'Asia/Tokyo' FROM t WHERE id = 5",
            "2024-07-01T12:00:00-04:00 2024-07-01T12:00:00+02:00 2024-07-01T12:00:00+09:00",
        ),
    ];
    expect_rows(&[CLOCKS, zone], &cases).await;
}

#[tokio::test]
async fn ragged_window_over_days_handles_skipped_and_repeated_times() {
    let spring = "CREATE TABLE spring AS SELECT x, t::TIMESTAMP AT TIME ZONE 'America/New_York' AS t
        FROM (VALUES (1, '2024-03-10 03:15:00'), (2, '2024-03-10 03:45:00'), (4, '2024-03-11 02:30:00')) v(x, t)";
    let autumn = "CREATE TABLE autumn AS SELECT x, t::TIMESTAMP AT TIME ZONE 'America/New_York' AS t
        FROM (VALUES (1, '2024-11-03 00:45:00'), (2, '2024-11-03 02:15:00'), (4, '2024-11-04 01:30:00')) v(x, t)";
    let windows = |table| {
        format!(
            "SELECT ragged_window(x, t, t, 'sum', before => INTERVAL '1 day'), ragged_window(x, t, t, 'sum', after => INTERVAL '1 day')
            FROM (SELECT array_agg(x ORDER BY t) AS x, array_agg(t ORDER BY t) AS t FROM {table})"
        )
    };
    let (in_spring, in_autumn) = (windows("spring"), windows("autumn"));
    let cases = [
        // One day before 02:30 of March 11 is 03:30, because March 10 has no 02:30. It is after
        // 03:15.
        (in_spring.as_str(), "[1, 3, 6] [6, 4, 0]"),
        // One day before 01:30 of November 4 is the second 01:30 of November 3.
        (in_autumn.as_str(), "[1, 3, 6] [2, 4, 0]"),
    ];
    expect_rows(&[spring, autumn], &cases).await;
}

#[tokio::test]
async fn sums_with_intervals_handle_skipped_and_repeated_times() {
    let cases = [
        ("SELECT zoned + INTERVAL '1 day' FROM t WHERE id = 1", "2024-03-11T01:30:00-04:00"),
        (
            "SELECT (TIMESTAMP '2024-03-09 02:30:00' AT TIME ZONE 'America/New_York') + INTERVAL '1 day'",
            "2024-03-10T03:30:00-04:00",
        ),
        (
            "SELECT INTERVAL '1 month' + (TIMESTAMP '2024-10-03 01:30:00' AT TIME ZONE 'America/New_York'), (TIMESTAMP '2024-11-04 01:30:00' AT TIME ZONE 'America/New_York') - INTERVAL '1 day'",
            "2024-11-03T01:30:00-05:00 2024-11-03T01:30:00-05:00",
        ),
        (
            "SELECT zoned + INTERVAL '24 hours', zoned - INTERVAL '1 month 1 hour' FROM t WHERE id IN (3, 5) ORDER BY id",
            "2024-11-04T01:30:00-05:00 2024-10-03T00:30:00-04:00; 2024-07-02T12:00:00-04:00 2024-06-01T11:00:00-04:00",
        ),
        ("SELECT count(zoned + to_days(id)) FROM t", "4"),
        ("SELECT [zoned] + INTERVAL '1 day' FROM t WHERE id = 1", "[2024-03-11T01:30:00-04:00]"),
        (
            "SELECT array_agg(TIMESTAMP '2024-03-09 02:30:00' AT TIME ZONE 'America/New_York') + INTERVAL '1 day'",
            "[2024-03-10T03:30:00-04:00]",
        ),
    ];
    expect_rows(&[CLOCKS], &cases).await;
    let ctx = serrate::sql::session();
    query_batches(&ctx, CLOCKS).await.unwrap();
    let e = error(&ctx, "SELECT zoned + INTERVAL '300000 years' FROM t").await;
    assert!(e.contains("is outside the range of"), "{e}");
}

/// `sql::workarounds::types::local_times` can be removed once this test fails.
#[tokio::test]
async fn stock_changes_of_clocks_are_still_errors() {
    let ctx = SessionContext::new();
    let local = "SELECT arrow_cast(arrow_cast('2024-03-10T02:30:00', 'Timestamp(Second, None)'), 'Timestamp(Second, Some(\"America/New_York\"))')";
    assert!(stock_batches(&ctx, local).await.is_err());
    let next = "SELECT arrow_cast('2024-03-09T02:30:00', 'Timestamp(Second, Some(\"America/New_York\"))') + INTERVAL '1 day'";
    assert!(stock_batches(&ctx, next).await.is_err());
    let difference = "SELECT arrow_cast(arrow_cast('2024-07-01T12:00:00', 'Timestamp(Second, None)'), 'Timestamp(Second, Some(\"Europe/Berlin\"))')
        - arrow_cast('2024-07-01T12:00:00', 'Timestamp(Second, None)')";
    let found = stock_batches(&ctx, difference).await.unwrap();
    let shown = arrow::util::display::array_value_to_string(found[0].column(0), 0).unwrap();
    assert_eq!(shown, "-PT7200S");
}

#[tokio::test]
async fn local_times_next_to_instants_are_in_the_zone_of_the_instants() {
    // In July, 12:00 in Berlin is 10:00 in UTC.
    let setup = "CREATE TABLE t AS SELECT [z] AS zs, [l] AS ls, [e] AS es, z, l, e, z::DATE AS d FROM (
        SELECT TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin' AS z, TIMESTAMP '2024-07-01 12:00:00' AS l, TIMESTAMP '2024-07-01 11:00:00' AS e)";
    let cases = [
        (
            "SELECT (z - l) / INTERVAL '1 second', (l - z) / INTERVAL '1 second', (z - e) / INTERVAL '1 second', (e - z) / INTERVAL '1 second' FROM t",
            "0.0 0.0 3600.0 -3600.0",
        ),
        (
            "SELECT (zs - l) / INTERVAL '1 second', (ls - z) / INTERVAL '1 second', ragged_sub(zs, es) / INTERVAL '1 second', (es - z) / INTERVAL '1 second' FROM t",
            "[0.0] [0.0] [3600.0] [-3600.0]",
        ),
        ("SELECT ragged_map(es, zs, lambda e, z: z - e) / INTERVAL '1 second' FROM t", "[3600.0]"),
        (
            "SELECT (z - arrow_cast(e, 'Timestamp(Nanosecond, None)')) / INTERVAL '1 second', ragged_sub(zs, ragged_cast(es, 'Timestamp(Second, None)')) / INTERVAL '1 second' FROM t",
            "3600.0 [3600.0]",
        ),
        (
            "SELECT ragged_lt(es, zs), ragged_gt(zs, es), ragged_eq(ls, zs), ragged_eq(zs, ls) FROM t",
            "[true] [true] [true] [true]",
        ),
        (
            "SELECT es < z, e < zs, zs > e, z > es, ls = z, l = zs FROM t",
            "[true] [true] [true] [true] [true] [true]",
        ),
        (
            "SELECT ragged_maximum(es, zs) = zs, ragged_minimum(zs, es) = es, ragged_maximum(e, zs) = zs FROM t",
            "true true true",
        ),
        (
            "SELECT ragged_between(es, z, z + INTERVAL '3 hours'), ragged_between(zs, e, l) FROM t",
            "[false] [true]",
        ),
        (
            "SELECT ragged_isin(zs, ls), ragged_isin(ls, zs), ragged_isin(zs, es), ragged_isin(es, [e, z]) FROM t",
            "[true] [true] [false] [true]",
        ),
        (
            "SELECT zs IN (TIMESTAMP '2024-07-01 12:00:00', TIMESTAMP '2024-07-01 13:00:00') FROM t",
            "[true]",
        ),
        ("SELECT ragged_isin(zs, [TIMESTAMP '2024-07-01 12:00:00.000000001']) FROM t", "[false]"),
        (
            "SELECT ragged_lookup(zs, 'SELECT l AS k, 7 AS v FROM t', 'k', 'v'), ragged_lookup(ls, 'SELECT z AS k, 7 AS v FROM t', 'k', 'v') FROM t",
            "[7] [7]",
        ),
        (
            "SELECT ragged_lookup(zs, 'SELECT d AS k, 7 AS v FROM t', 'k', 'v'), ragged_lookup([d], 'SELECT z AS k, 7 AS v FROM t', 'k', 'v') FROM t",
            "[] []",
        ),
    ];
    expect_rows(&[setup], &cases).await;
}

#[tokio::test]
async fn whole_lists_of_dates_and_timestamps_compare_exactly() {
    let setup = "CREATE TABLE t AS SELECT [d] AS ds, [d::TIMESTAMP] AS ls, [d::TIMESTAMP AT TIME ZONE 'Europe/Berlin'] AS zs, [arrow_cast(d, 'Timestamp(Second, None)')] AS seconds
        FROM (VALUES (DATE '2024-07-01'), (DATE '2999-07-01')) v(d)";
    let cases = [
        (
            "SELECT ds = zs, zs = ds, ds < zs, ds = ls, ls = zs FROM t",
            "true true false true true; true true false true true",
        ),
        (
            "SELECT seconds = ls, seconds = ds, seconds = zs, ds <= zs, [ds] = [zs] FROM t",
            "true true true true true; true true true true true",
        ),
        (
            "SELECT [d, z] = [z, z], [z, d] = [z, z] FROM (SELECT ds[1] AS d, zs[1] AS z FROM t)",
            "true true; true true",
        ),
        (
            "SELECT {'a': d} = {'a': z}, (z, 1) = (d, 1), (d, 1) < (z, 1) FROM (SELECT ds[1] AS d, zs[1] AS z FROM t)",
            "true true false; true true false",
        ),
        (
            "SELECT list_contains(zs, ds[1]), array_position(zs, ds[1]), array_has_any(ds, zs), array_has_all(zs, ds), array_concat(ds, zs) = array_append(zs, ds[1]) FROM t",
            "true 1 true true true; true 1 true true true",
        ),
    ];
    expect_rows(&[setup], &cases).await;
}

#[tokio::test]
async fn dates_in_lists_become_instants_in_the_zone_of_the_list() {
    for lists in ["List(", "LargeList(", "FixedSizeList(1, "] {
        let setup = format!(
            "CREATE TABLE t AS SELECT arrow_cast([d], '{lists}Date32)') AS ds, arrow_cast([l], '{lists}Timestamp(Microsecond, None))') AS ls, arrow_cast([z], '{lists}Timestamp(Microsecond, Some(\"Europe/Berlin\")))') AS zs, d, z
            FROM (SELECT d, d::TIMESTAMP AS l, d::TIMESTAMP AT TIME ZONE 'Europe/Berlin' AS z FROM (VALUES (DATE '2024-07-01')) v(d))"
        );
        let cases = [
            (
                "SELECT ds FROM t UNION ALL SELECT zs FROM t",
                "[2024-07-01T00:00:00+02:00]; [2024-07-01T00:00:00+02:00]",
            ),
            ("SELECT zs FROM t UNION SELECT ds FROM t", "[2024-07-01T00:00:00+02:00]"),
            ("SELECT ls FROM t UNION SELECT zs FROM t", "[2024-07-01T00:00:00+02:00]"),
            (
                "SELECT ds FROM t UNION SELECT ls FROM t UNION SELECT zs FROM t",
                "[2024-07-01T00:00:00+02:00]",
            ),
            (
                "SELECT [ds] FROM t UNION ALL SELECT [zs] FROM t",
                "[[2024-07-01T00:00:00+02:00]]; [[2024-07-01T00:00:00+02:00]]",
            ),
            ("SELECT zs FROM t INTERSECT SELECT ds FROM t", "[2024-07-01T00:00:00+02:00]"),
            ("SELECT ds FROM t EXCEPT SELECT zs FROM t", ""),
            (
                "SELECT CASE WHEN d > DATE '2024-01-01' THEN ds ELSE zs END, CASE d WHEN DATE '2024-01-01' THEN ds ELSE zs END FROM t",
                "[2024-07-01T00:00:00+02:00] [2024-07-01T00:00:00+02:00]",
            ),
            (
                "SELECT coalesce(ds, zs), coalesce(ls, ds, zs), ifnull(zs, ds), nvl2(ds, ds, zs) FROM t",
                "[2024-07-01T00:00:00+02:00] [2024-07-01T00:00:00+02:00] [2024-07-01T00:00:00+02:00] [2024-07-01T00:00:00+02:00]",
            ),
            (
                "SELECT greatest(ds, zs), least(zs, ds), nullif(ds, zs) FROM t",
                "[2024-07-01T00:00:00+02:00] [2024-07-01T00:00:00+02:00] NULL",
            ),
            (
                "SELECT ds BETWEEN zs AND zs, ls BETWEEN ds AND zs, ds IN (zs), zs NOT IN (ls, ds), CASE ds WHEN zs THEN 1 END, ds IS DISTINCT FROM zs FROM t",
                "true true true false 1 false",
            ),
            ("SELECT count(*) FROM t WHERE ds IN (SELECT zs FROM t)", "1"),
            ("SELECT count(*) FROM t AS a JOIN t AS b ON a.ds = b.zs", "1"),
        ];
        expect_rows(&[&setup], &cases).await;
    }
}

#[tokio::test]
async fn local_times_in_lists_that_clocks_skip_or_repeat_become_instants() {
    let clocks = CLOCKS.replacen("TABLE t", "TABLE c", 1);
    for lists in ["List(", "LargeList(", "FixedSizeList(5, "] {
        let setup = format!(
            "CREATE TABLE t AS SELECT arrow_cast(array_agg(zoned ORDER BY id), '{lists}Timestamp(Microsecond, Some(\"America/New_York\")))') AS zs, arrow_cast(array_agg(local ORDER BY id), '{lists}Timestamp(Microsecond, None))') AS ls FROM c"
        );
        let cases = [
            ("SELECT count(*) FROM (SELECT ls FROM t UNION SELECT zs FROM t)", "1"),
            ("SELECT ls = zs, coalesce(ls, zs) = zs, [ls] = [zs] FROM t", "true true true"),
            (
                "SELECT ragged_cast(ls, 'Timestamp(Microsecond, Some(\"America/New_York\"))') = zs FROM t",
                "true",
            ),
        ];
        expect_rows(&[&clocks, &setup], &cases).await;
    }
    let cases = [(
        "SELECT coalesce([DATE '2011-12-30', NULL], [TIMESTAMP '2011-12-30 10:00:00' AT TIME ZONE 'Pacific/Apia'])",
        "[2011-12-31T00:00:00+14:00, ]",
    )];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn dates_in_structs_and_values_become_instants_in_the_zone_next_to_them() {
    let setup = "CREATE TABLE t AS SELECT d, d::TIMESTAMP AT TIME ZONE 'Europe/Berlin' AS z FROM (VALUES (DATE '2024-07-01')) v(d)";
    let cases = [
        (
            "SELECT (d, 1) IN ((z, 1)), (d, 2) IN ((z, 1)), (z, 1) NOT IN ((d, 2), (d, 1)) FROM t",
            "true false false",
        ),
        ("SELECT count(*) FROM t WHERE (d, 1) IN (SELECT z, 1 FROM t)", "1"),
        (
            "SELECT {'a': d, 'b': [d]} FROM t UNION SELECT {'a': z, 'b': [z]} FROM t",
            "{a: 2024-07-01T00:00:00+02:00, b: [2024-07-01T00:00:00+02:00]}",
        ),
        (
            "SELECT coalesce({'a': d}, {'a': z}), [{'a': d}] = [{'a': z}] FROM t",
            "{a: 2024-07-01T00:00:00+02:00} true",
        ),
        (
            "SELECT x FROM (VALUES (DATE '2024-07-01'), (NULL), (TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin')) v(x)",
            "2024-07-01T00:00:00+02:00; NULL; 2024-07-01T12:00:00+02:00",
        ),
        (
            "SELECT x FROM (VALUES ([DATE '2024-07-01']), ([TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin']), (NULL)) v(x)",
            "[2024-07-01T00:00:00+02:00]; [2024-07-01T12:00:00+02:00]; NULL",
        ),
        (
            "SELECT x FROM (VALUES ([DATE '2024-07-01', TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin'])) v(x)",
            "[2024-07-01T00:00:00+02:00, 2024-07-01T12:00:00+02:00]",
        ),
        (
            "SELECT arrow_typeof(x) FROM (VALUES (DATE '2024-07-01'), ((TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin')::TIMESTAMP(9))) v(x) LIMIT 1",
            "Timestamp(ns)",
        ),
    ];
    expect_rows(&[setup], &cases).await;
}

#[tokio::test]
async fn dates_in_values_within_an_insert_are_in_the_zone_next_to_them() {
    let rows =
        "(DATE '2024-07-01'), (TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin')";
    let expected = "2024-06-30T22:00:00; 2024-07-01T10:00:00";
    let cases = [
        (format!("SELECT x::TIMESTAMP FROM (VALUES {rows}) v(x) ORDER BY 1"), expected),
        (format!("INSERT INTO t SELECT x FROM (VALUES {rows}) v(x)"), "2"),
        ("SELECT x FROM t ORDER BY x".into(), expected),
        (format!("DELETE FROM t WHERE x IN (SELECT x::TIMESTAMP FROM (VALUES {rows}) v(x))"), "2"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&["CREATE TABLE t (x TIMESTAMP)"], &cases).await;
}

#[tokio::test]
async fn dates_next_to_instants_in_nanoseconds_are_in_the_zone_of_the_instants() {
    let setup = "CREATE TABLE t AS SELECT d, arrow_cast(d::TIMESTAMP, 'Timestamp(Nanosecond, Some(\"Europe/Berlin\"))') AS z FROM (VALUES (DATE '2024-07-01')) v(d)";
    let cases = [
        ("SELECT d = z, z < d, d IN (z), z BETWEEN d AND d FROM t", "true false true true"),
        ("SELECT coalesce(d, z) FROM t", "2024-07-01T00:00:00+02:00"),
        (
            "SELECT d FROM t UNION ALL SELECT z FROM t",
            "2024-07-01T00:00:00+02:00; 2024-07-01T00:00:00+02:00",
        ),
        ("SELECT [d] = [z], [d, z] = [z, z] FROM t", "true true"),
    ];
    expect_rows(&[setup], &cases).await;
}

#[tokio::test]
async fn functions_cast_local_times_to_the_zone_of_their_list() {
    for lists in ["List(", "LargeList(", "FixedSizeList(2, "] {
        let setup = format!(
            "CREATE TABLE t AS SELECT arrow_cast([z, NULL], '{lists}Timestamp(Microsecond, Some(\"Europe/Berlin\")))') AS zs, arrow_cast([l, l], '{lists}Timestamp(Microsecond, None))') AS ls, arrow_cast([d, d], '{lists}Date32)') AS ds, l, d
            FROM (SELECT TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin' AS z, TIMESTAMP '2024-07-01 06:00:00' AS l, DATE '2024-07-02' AS d)"
        );
        let cases = [
            (
                "SELECT ragged_fill_null(zs, l), ragged_fill_null(zs, d), ragged_fill_null(zs, ls), ragged_fill_null(zs, ds) FROM t",
                "[2024-07-01T12:00:00+02:00, 2024-07-01T06:00:00+02:00] [2024-07-01T12:00:00+02:00, 2024-07-02T00:00:00+02:00] [2024-07-01T12:00:00+02:00, 2024-07-01T06:00:00+02:00] [2024-07-01T12:00:00+02:00, 2024-07-02T00:00:00+02:00]",
            ),
            (
                "SELECT ragged_where([true, false], zs, l), ragged_where([false, true], d, zs) FROM t",
                "[2024-07-01T12:00:00+02:00, 2024-07-01T06:00:00+02:00] [2024-07-01T12:00:00+02:00, 2024-07-02T00:00:00+02:00]",
            ),
            (
                "SELECT ragged_where([true, false], zs, ls), ragged_where([false, true], ds, zs) FROM t",
                "[2024-07-01T12:00:00+02:00, 2024-07-01T06:00:00+02:00] [2024-07-01T12:00:00+02:00, 2024-07-02T00:00:00+02:00]",
            ),
            (
                "SELECT ragged_at_or(zs, l, 1), ragged_at_or(zs, d, 7), ragged_at_or(zs, l, 0) FROM t",
                "2024-07-01T06:00:00+02:00 2024-07-02T00:00:00+02:00 2024-07-01T12:00:00+02:00",
            ),
            (
                "SELECT ragged_scatter(zs, [1], l), ragged_scatter(zs, [0, 1], ls), ragged_scatter(zs, [1], d) FROM t",
                "[2024-07-01T12:00:00+02:00, 2024-07-01T06:00:00+02:00] [2024-07-01T06:00:00+02:00, 2024-07-01T06:00:00+02:00] [2024-07-01T12:00:00+02:00, 2024-07-02T00:00:00+02:00]",
            ),
        ];
        expect_rows(&[&setup], &cases).await;
    }
    let cases = [
        (
            "SELECT ragged_fill_null([z, NULL], TIMESTAMP '2024-03-10 02:30:00') FROM t",
            "[2024-07-01T12:00:00-04:00, 2024-03-10T03:30:00-04:00]",
        ),
        (
            "SELECT ragged_where([false], [arrow_cast(z, 'Timestamp(Second, Some(\"UTC\"))')], [TIMESTAMP '2024-07-01 12:00:00']) FROM t",
            "[2024-07-01T12:00:00Z]",
        ),
    ];
    let setup = "CREATE TABLE t AS SELECT TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'America/New_York' AS z";
    expect_rows(&[setup], &cases).await;
    let ctx = serrate::sql::session();
    query_batches(&ctx, setup).await.unwrap();
    for refused in [
        "ragged_fill_null([TIMESTAMP '2024-07-01 12:00:00', NULL], z)",
        "ragged_where([true], [DATE '2024-07-01'], z)",
        "ragged_scatter([TIMESTAMP '2024-07-01 12:00:00'], [0], [z])",
    ] {
        let found = rows_or_error(&ctx, &format!("SELECT {refused} FROM t")).await;
        assert!(found.contains("has the zone America/New_York"), "{refused}: {found}");
    }
}

#[tokio::test]
async fn functions_search_lists_of_dates_for_instants() {
    for lists in ["List(", "LargeList(", "FixedSizeList(1, "] {
        let setup = format!(
            "CREATE TABLE t AS SELECT arrow_cast([d], '{lists}Date32)') AS ds, d::TIMESTAMP AT TIME ZONE 'Europe/Berlin' AS z FROM (VALUES (DATE '2024-07-01')) v(d)"
        );
        let cases = [
            (
                "SELECT list_contains(ds, z), list_contains(ds, z + INTERVAL '2 hours'), array_position(ds, z), array_positions(ds, z), array_has_any(ds, [z]), array_has_all(ds, [z]) FROM t",
                "true false 1 [1] true true",
            ),
            (
                "SELECT ds || z, array_append(ds, z), array_prepend(z, ds) FROM t",
                "[2024-07-01T00:00:00+02:00, 2024-07-01T00:00:00+02:00] [2024-07-01T00:00:00+02:00, 2024-07-01T00:00:00+02:00] [2024-07-01T00:00:00+02:00, 2024-07-01T00:00:00+02:00]",
            ),
            (
                "SELECT array_remove(ds, z), array_remove_all(ds, z), array_replace(ds, z, z + INTERVAL '1 hour') FROM t",
                "[] [] [2024-07-01T01:00:00+02:00]",
            ),
            (
                "SELECT array_except(ds, [z]), array_intersect(ds, [z]), array_union(ds, [z]) FROM t",
                "[] [2024-07-01T00:00:00+02:00] [2024-07-01T00:00:00+02:00]",
            ),
        ];
        expect_rows(&[&setup], &cases).await;
    }
}

#[tokio::test]
async fn lists_compare_with_local_times_that_clocks_skip_or_repeat() {
    let setup = "CREATE TABLE t AS SELECT array_agg(zoned ORDER BY id) AS zs, array_agg(local ORDER BY id) AS ls FROM c";
    let cases = [
        (
            "SELECT ragged_eq(zs, ls), ragged_eq(ls, zs) FROM t",
            "[true, true, true, , true] [true, true, true, , true]",
        ),
        (
            "SELECT zs = TIMESTAMP '2024-03-10 02:30:00', zs < TIMESTAMP '2024-11-03 01:30:00' FROM t",
            "[false, true, false, , false] [true, true, false, , true]",
        ),
        (
            "SELECT zs = '2024-03-10 02:30:00', zs IN ('2024-03-10 02:30:00', '2024-11-03 01:30:00') FROM t",
            "[false, true, false, , false] [false, true, true, , false]",
        ),
        (
            "SELECT ragged_isin(zs, [TIMESTAMP '2024-03-10 02:30:00']), ragged_isin(ls, [TIMESTAMP '2024-03-10 03:30:00' AT TIME ZONE 'America/New_York']) FROM t",
            "[false, true, false, , false] [false, true, false, , false]",
        ),
        ("SELECT ragged_sub(zs, ls) / INTERVAL '1 second' FROM t", "[0.0, 0.0, 0.0, , 0.0]"),
    ];
    expect_rows(&[&*CLOCKS.replacen("TABLE t", "TABLE c", 1), setup], &cases).await;
}

#[tokio::test]
async fn strings_with_zone_names_may_be_skipped_or_repeated_times() {
    let cases = [
        (
            "SELECT '2024-03-31 02:30:00 Europe/Berlin'::TIMESTAMPTZ::VARCHAR",
            "2024-03-31T01:30:00Z",
        ),
        ("SELECT '2024-10-27 02:30 Europe/Berlin'::TIMESTAMPTZ::VARCHAR", "2024-10-27T01:30:00Z"),
        (
            "SELECT '2024-06-27 02:30:00 America/New_York'::TIMESTAMPTZ::VARCHAR",
            "2024-06-27T06:30:00Z",
        ),
        ("SELECT TRY_CAST('2024-06-27 02:30:00 Nowhere/Land' AS TIMESTAMPTZ) IS NULL", "true"),
        (
            "SELECT s::TIMESTAMPTZ = '2024-03-31 01:30:00Z' FROM (VALUES ('2024-03-31 02:30:00 Europe/Berlin'), (NULL), ('2024-03-31 02:30:00+01')) t(s)",
            "true; NULL; true",
        ),
    ];
    expect_rows(&[], &cases).await;
}

/// DataFusion computes a date minus an instant in nanoseconds, which end in the year 2262.
#[tokio::test]
async fn differences_of_dates_and_instants_cover_all_years() {
    let ctx = create_parallel_session();
    let instants = "(SELECT arrow_cast('1600-01-02T00:00:00Z', 'Timestamp(µs, \"UTC\")') AS tz,
        DATE '2999-12-31' AS d)";
    for (sql, expected) in [
        (format!("SELECT tz + (d - tz) FROM {instants}"), "2999-12-31T00:00:00Z"),
        (format!("SELECT tz - (tz - d) FROM {instants}"), "2999-12-31T00:00:00Z"),
        (
            format!("SELECT tz + x FROM (SELECT tz, d - tz AS x FROM {instants})"),
            "2999-12-31T00:00:00Z",
        ),
        (format!("SELECT d - tz = INTERVAL '511338 days' FROM {instants}"), "true"),
        (
            format!(
                "SELECT CASE WHEN d > '2000-01-01' THEN d ELSE tz END + (d - d::TIMESTAMP) FROM {instants}"
            ),
            "2999-12-31T00:00:00Z",
        ),
        (
            format!("SELECT l + (d - l) FROM (SELECT tz::TIMESTAMP AS l, d FROM {instants})"),
            "2999-12-31T00:00:00",
        ),
    ] {
        assert_eq!(rows_or_error(&ctx, &sql).await, expected, "{sql}");
    }
}

/// Local times and dates in files are instants in the zone of the table, also in conditions that
/// the scan evaluates.
#[tokio::test]
async fn local_times_in_files_are_instants_in_the_zone_of_the_table() {
    for extension in ["parquet", "arrow"] {
        let dir = tempfile::tempdir().unwrap();
        let at = display_path(dir.path());
        let copy = format!(
            "COPY (SELECT id, local AS x, local::DATE AS d FROM t ORDER BY id) TO '{at}/0.{extension}' OPTIONS (overwrite true)"
        );
        let zone = "SET datafusion.execution.time_zone = 'America/New_York'";
        let create = format!(
            "CREATE EXTERNAL TABLE f (id BIGINT, x TIMESTAMPTZ, d TIMESTAMPTZ) STORED AS {extension} LOCATION '{at}/'"
        );
        let cases = [
            (
                "SELECT id, x AT TIME ZONE 'UTC' FROM f ORDER BY id",
                "1 2024-03-10T06:30:00Z; 2 2024-03-10T07:30:00Z; 3 2024-11-03T06:30:00Z; 4 NULL; 5 2024-07-01T16:00:00Z",
            ),
            ("SELECT id FROM f WHERE x = TIMESTAMPTZ '2024-07-01 16:00:00Z'", "5"),
            ("SELECT id FROM f WHERE x = TIMESTAMPTZ '2024-07-01 12:00:00Z'", ""),
            ("SELECT id FROM f WHERE x < TIMESTAMPTZ '2024-03-10 07:00:00Z'", "1"),
            ("SELECT f.id FROM f JOIN t ON f.x = t.zoned ORDER BY f.id", "1; 2; 3; 5"),
            ("SELECT d AT TIME ZONE 'UTC' FROM f WHERE id = 5", "2024-07-01T04:00:00Z"),
            ("SELECT id FROM f WHERE d = TIMESTAMPTZ '2024-07-01 04:00:00Z'", "5"),
        ];
        expect_rows(&[CLOCKS, &copy, zone, &create], &cases).await;
    }
}
