//! Arithmetic of times of different units, and functions that choose one of them.

use super::*;

#[tokio::test]
async fn a_date_plus_a_duration_is_a_timestamp() {
    let ctx = create_parallel_session();
    let expected = [
        ("d + (b - a)", "2020-01-03T06:00:00"),
        ("(b - a) + d", "2020-01-03T06:00:00"),
        ("d - (b - a)", "2019-12-29T18:00:00"),
        ("arrow_typeof(d + (b - a))", "Timestamp(µs)"),
    ];
    let from = "(VALUES (DATE '2020-01-01', TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-03 06:00:00')) t(d, a, b)";
    assert_eq!(list_wrong(&ctx, from, &expected).await, "");
}

/// DataFusion plans a search for nanoseconds in a list of microseconds, but not one for
/// milliseconds.
#[tokio::test]
async fn lists_are_searched_for_times_of_coarser_units() {
    let ctx = create_parallel_session();
    let from =
        "(SELECT arrow_cast(['2020-01-02', NULL], 'List(Timestamp(Microsecond, None))') AS x,
        arrow_cast('2020-01-02', 'Timestamp(Millisecond, None)') AS m,
        TIMESTAMP '2020-01-02' - TIMESTAMP '2020-01-01' AS fine,
        TIMESTAMP '2020-01-02'::TIMESTAMP(3) - TIMESTAMP '2020-01-01'::TIMESTAMP(3) AS coarse)";
    let expected = [
        ("list_contains(x, m)", "true"),
        ("list_contains(x, m + INTERVAL '1 day')", "false"),
        ("list_contains(arrow_cast(x, 'LargeList(Timestamp(Microsecond, None))'), m)", "true"),
        ("m IN x", "true"),
        ("m = ANY(x)", "true"),
        ("array_position(x, m)", "1"),
        ("array_append(x, m)", "[2020-01-02T00:00:00, , 2020-01-02T00:00:00]"),
        ("m || x", "[2020-01-02T00:00:00, 2020-01-02T00:00:00, ]"),
        ("arrow_typeof(array_append(x, m))", "List(Timestamp(\u{b5}s))"),
        ("array_remove(x, m)", "[]"),
        ("arrow_typeof(coarse)", "Duration(ms)"),
        ("list_contains([fine], coarse), list_contains([coarse], fine)", "true true"),
        ("arrow_typeof(array_append([coarse], fine))", "List(Duration(\u{b5}s))"),
    ];
    assert_eq!(list_wrong(&ctx, from, &expected).await, "");
    let stock = SessionContext::new();
    let sql = "SELECT array_has(arrow_cast(['2020-01-02'], 'List(Timestamp(Microsecond, None))'), arrow_cast('2020-01-02', 'Timestamp(Millisecond, None)'))";
    // When DataFusion plans this call, `find_finest_unit` can be removed.
    assert!(stock_error(&stock, sql).await.contains("array_has"));
}

#[tokio::test]
async fn intervals_may_be_finer_than_the_times_they_are_added_to() {
    let seconds =
        "SELECT TIMESTAMP '2020-01-01'::TIMESTAMP(0) AS x, TIMESTAMP '2020-01-01 00:00:00.5' AS y,
        DATE '2020-01-01' AS d, INTERVAL '12 hours' AS half, INTERVAL '2 days' AS days";
    for partitions in [1, 4] {
        let ctx = serrate::sql::session_with(
            datafusion::prelude::SessionConfig::new().with_target_partitions(partitions),
        );
        query_batches(&ctx, &format!("CREATE OR REPLACE TABLE s AS {seconds}")).await.unwrap();
        let expected = [
            ("[d] + INTERVAL '12 hours'", "[2020-01-01T12:00:00]"),
            ("[d] + INTERVAL '1 day'", "[2020-01-02]"),
            ("[d] + INTERVAL '1 month' + INTERVAL '1 hour'", "[2020-02-01T01:00:00]"),
            ("INTERVAL '12 hours' + [d]", "[2020-01-01T12:00:00]"),
            ("[d] - INTERVAL '12 hours'", "[2019-12-31T12:00:00]"),
            ("[d] + half", "[2020-01-01T12:00:00]"),
            ("[d] + days", "[2020-01-03T00:00:00]"),
            ("d + [INTERVAL '12 hours', NULL]", "[2020-01-01T12:00:00, ]"),
            ("[[d], [NULL]] + [half, days]", "[[2020-01-01T12:00:00], []]"),
            ("d + half", "2020-01-01T12:00:00"),
            ("half + d", "2020-01-01T12:00:00"),
            ("d - half", "2019-12-31T12:00:00"),
            ("d + days", "2020-01-03T00:00:00"),
            ("d + INTERVAL '2 days'", "2020-01-03"),
            ("ragged_gt([TIMESTAMP '2020-01-01 06:00:00'], [d] + INTERVAL '12 hours')", "[false]"),
            (
                "([(d + 1)::TIMESTAMP] - [d]) + INTERVAL '500 milliseconds' = INTERVAL '86400500 milliseconds'",
                "[true]",
            ),
            ("x + INTERVAL '500 milliseconds' = y", "true"),
            ("x - INTERVAL '1 microsecond' = TIMESTAMP '2019-12-31 23:59:59.999999'", "true"),
            ("x + (y - x) = y", "true"),
            ("[x] + INTERVAL '500 milliseconds' = y", "[true]"),
            ("[x] - INTERVAL '1 microsecond' = TIMESTAMP '2019-12-31 23:59:59.999999'", "[true]"),
            ("[x] + (y - x) = y", "[true]"),
            ("[x] + INTERVAL '1 day' = '2020-01-02'", "[true]"),
            ("[x] = '2020-01-01 00:00:00.5'", "[false]"),
            ("[x] < '2020-01-01 00:00:00.5'", "[true]"),
            ("[x] >= '2020-01-01 00:00:00.5'", "[false]"),
            ("[x] = '2020-01-01 00:00:00'", "[true]"),
            ("[x] IN ('2020-01-01 00:00:00.5')", "[false]"),
            ("ragged_between([x], '2020-01-01 00:00:00.5', '2020-01-02')", "[false]"),
            ("ragged_searchsorted([x], '2020-01-01 00:00:00.5')", "1"),
            ("ragged_isin([x], ['2020-01-01 00:00:00.5'])", "[false]"),
            ("[d] = '2020-01-01 12:00:00'", "[false]"),
            ("[d] < '2020-01-01 12:00:00'", "[true]"),
            ("[d] = '2020-01-01'", "[true]"),
            ("[d] IN ('2020-01-01 12:00:00', '2020-01-02')", "[false]"),
            ("[d] IN ('2020-01-01')", "[true]"),
            ("ragged_searchsorted([d], '2020-01-01 12:00:00')", "1"),
        ];
        assert_eq!(list_wrong(&ctx, "s", &expected).await, "");
        let refused = error(&ctx, "SELECT ragged_add([d], half) FROM s").await;
        assert!(refused.contains("not a multiple of the unit of Date32"), "{refused}");
    }
}

#[tokio::test]
async fn coalesce_and_greatest_accept_times_of_day_of_several_units() {
    let table = "CREATE TABLE clocks AS SELECT id, arrow_cast(s, 'Time64(Microsecond)') AS t
        FROM (VALUES (1, '10:00:00'), (2, NULL)) v(id, s)";
    let cases = [
        ("SELECT coalesce(t, TIME '10:00:01') FROM clocks ORDER BY id", "10:00:00; 10:00:01"),
        ("SELECT nvl(t, TIME '10:00:01') FROM clocks ORDER BY id", "10:00:00; 10:00:01"),
        (
            "SELECT greatest(t, TIME '09:00:00'), least(NULL, t) FROM clocks WHERE id = 1",
            "10:00:00 10:00:00",
        ),
        (
            "SELECT nullif(t, TIME '10:00:00') IS NULL, nullif(t, TIME '11:00:00') FROM clocks WHERE id = 1",
            "true 10:00:00",
        ),
        (
            "SELECT [t, TIME '10:00:01'] = [TIME '10:00:00', TIME '10:00:01'] FROM clocks WHERE id = 1",
            "true",
        ),
        (
            "SELECT ifnull(t, arrow_cast('08:00:00', 'Time32(Second)')) FROM clocks ORDER BY id",
            "10:00:00; 08:00:00",
        ),
        ("SELECT coalesce(t, t), [t] FROM clocks WHERE id = 1", "10:00:00 [10:00:00]"),
    ];
    expect_rows(&[table], &cases).await;
}
