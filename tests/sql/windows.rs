//! Keys and frames of windows, and offsets of `lag`.

use super::*;

const SMALL: &str = "CREATE TABLE t AS SELECT id, CAST(j AS TINYINT) AS j
    FROM (VALUES (1, 100), (2, NULL), (3, 5), (4, -100)) v(id, j)";

#[tokio::test]
async fn frames_whose_end_exceeds_the_type_exclude_null() {
    let count =
        |order: &str| format!("SELECT count(*) OVER (ORDER BY j {order}) FROM t ORDER BY id");
    let cases = [
        (count("RANGE BETWEEN CURRENT ROW AND 50 FOLLOWING"), "1; 1; 1; 1"),
        (count("RANGE BETWEEN CURRENT ROW AND 300 FOLLOWING"), "1; 1; 2; 3"),
        (count("RANGE BETWEEN UNBOUNDED PRECEDING AND 50 FOLLOWING"), "3; 4; 2; 1"),
        (count("NULLS FIRST RANGE BETWEEN 50 PRECEDING AND CURRENT ROW"), "1; 1; 1; 1"),
        (count("DESC NULLS LAST RANGE BETWEEN CURRENT ROW AND 50 FOLLOWING"), "1; 1; 1; 1"),
        (
            "SELECT sum(j) OVER (ORDER BY j ROWS UNBOUNDED PRECEDING), count(*) OVER (ORDER BY j RANGE BETWEEN CURRENT ROW AND 50 FOLLOWING) FROM t ORDER BY id".into(),
            "5 1; 5 1; -95 1; -100 1",
        ),
        (
            "SELECT count(*) OVER (ORDER BY b RANGE BETWEEN 1 PRECEDING AND 9 FOLLOWING) FROM (VALUES (9223372036854775807), (NULL), (9223372036854775800)) v(b) ORDER BY b".into(),
            "2; 1; 1",
        ),
        (
            "SELECT count(*) OVER (ORDER BY b RANGE BETWEEN 1 PRECEDING AND 9 FOLLOWING) FROM (SELECT arrow_cast(b, 'UInt64') AS b FROM (VALUES (0), (NULL), (7)) v(b)) ORDER BY b".into(),
            "2; 1; 1",
        ),
        (
            "SELECT count(*) OVER (ORDER BY x RANGE BETWEEN 15e-1 PRECEDING AND CURRENT ROW) FROM (VALUES (1e0), (2e0), (4e0), (55e-1)) v(x) ORDER BY x".into(),
            "1; 2; 1; 2",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[SMALL], &cases).await;
}

/// When this test fails, `sql::workarounds::windows::wide_frames` can be removed.
#[tokio::test]
async fn stock_frames_beyond_a_type_still_include_null() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    stock_batches(&ctx, SMALL).await.unwrap();
    let sql = "SELECT count(*) OVER (ORDER BY j RANGE BETWEEN CURRENT ROW AND 50 FOLLOWING) FROM t ORDER BY id";
    assert_eq!(stock_ints(&ctx, sql).await, [2, 1, 1, 1]);
}

#[tokio::test]
async fn windows_are_ordered_by_binary() {
    let rows = "(SELECT id, s::BYTEA AS b FROM (VALUES (1, 'b'), (2, 'a'), (3, NULL)) v(id, s))";
    let windows = "rank() OVER (ORDER BY b), sum(id) OVER (ORDER BY b), sum(id) OVER (ORDER BY b ROWS 1 PRECEDING)";
    expect_rows(
        &[],
        &[(&format!("SELECT id, {windows} FROM {rows} ORDER BY id"), "1 2 3 3; 2 1 2 2; 3 3 6 4")],
    )
    .await;
}

/// When this test fails, `sql::workarounds::windows::window_keys` need not replace keys of binary
/// strings.
#[tokio::test]
async fn stock_windows_over_binary_still_fail() {
    let sql = "SELECT rank() OVER (ORDER BY b) FROM (SELECT CAST('a' AS BYTEA) AS b)";
    let e = stock_error(&SessionContext::new(), sql).await;
    assert!(e.contains("Cannot run range queries"), "{e}");
}

const LAGS: &str = "SELECT lag(x, NULL) OVER (ORDER BY x) AS l FROM (VALUES (1), (2)) v(x)";

#[tokio::test]
async fn lag_and_lead_by_a_null_offset_are_null() {
    expect_rows(&[], &[(LAGS, "NULL; NULL"), (&LAGS.replace("lag", "lead"), "NULL; NULL")]).await;
}

/// When this test fails, `functions::lead` need not handle offsets of NULL.
#[tokio::test]
async fn stock_lags_by_null_are_still_values() {
    let found =
        stock_ints(&SessionContext::new(), &format!("SELECT coalesce(l, 0) FROM ({LAGS})")).await;
    assert_eq!(found.iter().sum::<i64>(), 3);
}

#[tokio::test]
async fn aggregates_of_booleans_bits_and_strings_have_sliding_frames() {
    let frame = "OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let ahead = "OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)";
    let cases = [
        (
            format!("SELECT bool_or(x > 4) {frame}, bool_and(x > 4) {frame} FROM t ORDER BY id"),
            "NULL NULL; false false; true false; true true; true true; false false",
        ),
        (
            format!("SELECT bit_and(x) {frame}, bit_or(x) {frame} FROM t ORDER BY id"),
            "NULL NULL; 3 3; 1 7; 5 7; 7 7; 2 2",
        ),
        (
            format!("SELECT string_agg(x::VARCHAR, ',') {frame} FROM t ORDER BY id"),
            "NULL; 3; 3,5; 5,7; 7; 2",
        ),
        (
            format!("SELECT string_agg(s, '-') FILTER (WHERE s <> 'c') {frame} FROM t ORDER BY id"),
            "a; a-b; b; d; d-e; e-f",
        ),
        (format!("SELECT string_agg(s, '') {ahead} FROM t ORDER BY id"), "abcdef; bcdef; cdef; def; ef; f"),
        (
            "SELECT string_agg(s, '') OVER (ORDER BY id RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING) FROM t ORDER BY id".to_owned(),
            "NULL; a; ab; bc; cd; de",
        ),
        (
            "SELECT sum(n) FROM (SELECT length(string_agg(x::VARCHAR, '') OVER (ORDER BY x ROWS BETWEEN 99 PRECEDING AND CURRENT ROW)) AS n FROM range(10, 90) t(x))".to_owned(),
            "6480",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, NULL, 'a'), (2, 3, 'b'), (3, 5, 'c'), (4, 7, 'd'), (5, NULL, 'e'), (6, 2, 'f')) t(id, x, s)",
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn aggregates_of_lists_have_sliding_frames() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, [1, 5]), (2, [2]), (3, NULL), (4, [4, 0, 7])) v(id, x)",
    ];
    let frame = "OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let cases = [
        (
            format!("SELECT ragged_sum_agg(x) {frame} FROM t ORDER BY id"),
            "[1, 5]; [3, 5]; [2]; [4, 0, 7]",
        ),
        (
            format!("SELECT ragged_max_agg(x) {frame} FROM t ORDER BY id"),
            "[1, 5]; [2, 5]; [2]; [4, 0, 7]",
        ),
        (
            format!("SELECT ragged_concat_agg(x) {frame} FROM t ORDER BY id"),
            "[1, 5]; [1, 5, 2]; [2]; [4, 0, 7]",
        ),
        (
            format!("SELECT ragged_nest_agg(id) {frame} FROM t ORDER BY id"),
            "[1]; [1, 2]; [2, 3]; [3, 4]",
        ),
        (
            format!("SELECT ragged_max_shape_agg(x) {frame} FROM t ORDER BY id"),
            "[2]; [2]; [1]; [3]",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `sliding_frames` of `functions::aggregate` need not handle aggregates of
/// DataFusion.
#[tokio::test]
async fn stock_frames_of_booleans_still_fail() {
    let ctx = SessionContext::new();
    let sql = "SELECT bool_or(x > 1) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (VALUES (1), (2)) t(x)";
    let failed = stock_error(&ctx, sql).await;
    assert!(failed.contains("retract_batch"), "{failed}");
}

#[tokio::test]
async fn windows_may_have_constant_partition_keys() {
    let cases = [
        (
            "SELECT sum(x) OVER (PARTITION BY 1 ORDER BY x), sum(x) OVER (PARTITION BY NULL ORDER BY x) FROM range(3) t(x) ORDER BY 1",
            "0 0; 1 1; 3 3",
        ),
        (
            "SELECT count(*) OVER (PARTITION BY 'a', x), count(*) OVER (PARTITION BY x) FROM range(2) t(x)",
            "1 1; 1 1",
        ),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn windows_with_equal_computed_keys_run() {
    expect_rows(
        &[
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a'), (2, 'bb'), (4, 'c')) v(x, s)",
            "CREATE TABLE u AS SELECT * FROM (VALUES (1), (3)) v(y)",
        ],
        &[
            ("SELECT x, sum(x) OVER (ORDER BY length(s) > 1), count(*) OVER (ORDER BY length(s) > 1) FROM t ORDER BY x", "1 5 2; 2 7 3; 4 5 2"),
            ("SELECT x, sum(x) OVER (ORDER BY length(s) > 1 DESC, x), count(*) OVER (ORDER BY length(s) > 1 DESC, x) FROM t ORDER BY x", "1 3 2; 2 2 1; 4 7 3"),
            ("SELECT x, sum(x) OVER (ORDER BY [[1]], x), count(*) OVER (ORDER BY [[1]], x) FROM t ORDER BY x", "1 1 1; 2 3 2; 4 7 3"),
            ("SELECT x, sum(x) OVER (ORDER BY (SELECT count(*) FROM u WHERE y < x)), count(*) OVER (ORDER BY (SELECT count(*) FROM u WHERE y < x)) FROM t ORDER BY x", "1 1 1; 2 3 2; 4 7 3"),
        ],
    )
    .await;
}

const ORDERED_WINDOW: &str = "SELECT id, array_agg(id ORDER BY x DESC) OVER (PARTITION BY k)
    FROM (VALUES (1, 'a', 5), (2, 'a', 7), (3, 'b', 1)) v(id, k, x) ORDER BY id";

#[tokio::test]
async fn ordered_aggregates_over_partitions_keep_their_order() {
    let setup = [
        "CREATE TABLE w AS SELECT * FROM (VALUES (1, 'a', 5), (2, 'a', 7), (3, 'b', 1)) v(id, k, x)",
    ];
    let cases = [
        (ORDERED_WINDOW, "1 [2, 1]; 2 [2, 1]; 3 [3]"),
        (
            "SELECT string_agg(id::VARCHAR, '-' ORDER BY x) OVER (), max(id) OVER () FROM w LIMIT 1",
            "3-1-2 3",
        ),
        (
            "SELECT id, sum(x ORDER BY id) FILTER (WHERE id > 1) OVER (PARTITION BY k) FROM w ORDER BY id",
            "1 7; 2 7; 3 1",
        ),
        ("SELECT first_value(id ORDER BY x DESC) OVER () AS f FROM w LIMIT 1", "2"),
        (
            "SELECT id FROM w QUALIFY id = first_value(id ORDER BY x) OVER (PARTITION BY k) ORDER BY id",
            "1; 3",
        ),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = create_parallel_session();
    query_batches(&ctx, setup[0]).await.unwrap();
    for call in [
        "array_agg(id ORDER BY x) OVER (ORDER BY id)",
        "array_agg(DISTINCT id ORDER BY id) OVER ()",
        "lag(id ORDER BY x) OVER ()",
    ] {
        let e = error(&ctx, &format!("SELECT {call} FROM w")).await;
        assert!(e.contains("write the order in the window"), "{call}: {e}");
    }
}

/// When this test fails, `sql::statement::expressions::windows::move_order_to_window` can be
/// removed.
#[tokio::test]
async fn stock_windows_still_have_no_ordered_arguments() {
    let e = stock_error(&SessionContext::new(), ORDERED_WINDOW).await;
    assert!(e.contains("Aggregate ORDER BY is not implemented for window functions"), "{e}");
}

const REVERSED: &str = "SELECT array_agg(x) OVER (ORDER BY x DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l
    FROM (SELECT x FROM (VALUES (1), (2), (3)) v(x) ORDER BY x LIMIT 3) LIMIT 1";

#[tokio::test]
async fn array_agg_over_a_window_has_the_order_of_the_window() {
    let sorted = "FROM (SELECT x FROM (VALUES (1), (2), (3)) v(x) ORDER BY x LIMIT 3)";
    let ahead = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING";
    let cases = [
        (REVERSED.to_owned(), "[3, 2, 1]"),
        (
            format!("SELECT x, array_agg(x) OVER (ORDER BY x DESC {ahead}) {sorted} ORDER BY x"),
            "1 [1]; 2 [2, 1]; 3 [3, 2, 1]",
        ),
        (
            format!(
                "SELECT x, string_agg(x::VARCHAR, '-') OVER (ORDER BY x DESC {ahead}), sum(x) OVER (ORDER BY x DESC {ahead}) {sorted} ORDER BY x"
            ),
            "1 1 1; 2 2-1 3; 3 3-2-1 6",
        ),
        (format!("SELECT array_agg(x ORDER BY x DESC) OVER () {sorted} LIMIT 1"), "[3, 2, 1]"),
        (
            format!("SELECT array_agg(x ORDER BY x DESC), array_agg(x ORDER BY x) {sorted}"),
            "[3, 2, 1] [1, 2, 3]",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &cases).await;
}

/// When this test fails, `functions::keep_window_order` can be removed.
#[tokio::test]
async fn stock_lists_of_reversed_windows_are_still_reversed() {
    let found = stock_text(&SessionContext::new(), REVERSED).await;
    assert!(found.contains("[1, 2, 3]"), "{found}");
}

const SHIFTED: [&str; 1] = [
    "CREATE TABLE l AS SELECT * FROM (VALUES (1, 10, 7), (2, NULL, 8), (3, NULL, NULL), (4, 40, 9)) v(id, v, w)",
];

#[tokio::test]
async fn lag_with_a_negative_offset_reads_rows_beyond_a_limit() {
    let frame = "OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)";
    let cases = [
        (format!("SELECT id, lag(v, -3, -1) {frame} FROM l ORDER BY id LIMIT 1"), "1 40"),
        (format!("SELECT id, lead(v, 3, -1) {frame} FROM l ORDER BY id LIMIT 1"), "1 40"),
        (format!("SELECT id, lead(v, -1, -1) {frame} FROM l ORDER BY id LIMIT 2"), "1 -1; 2 10"),
        (format!("SELECT id, lag(v, -1) IGNORE NULLS {frame} FROM l ORDER BY id LIMIT 1"), "1 40"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&SHIFTED, &cases).await;
}

/// When this test fails, `functions::lead` need not change `limit_effect`.
#[tokio::test]
async fn stock_lags_forward_still_lose_rows() {
    let stock = SessionContext::new();
    stock_batches(&stock, SHIFTED[0]).await.unwrap();
    let sql = "SELECT lag(v, -3, -1) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM l ORDER BY id LIMIT 1";
    assert_eq!(stock_ints(&stock, sql).await, [-1]);
}

#[tokio::test]
async fn defaults_of_lag_and_lead_may_be_columns() {
    let cases = [
        ("SELECT lag(v, 1, w) OVER (ORDER BY id) FROM l ORDER BY id", "7; 10; NULL; NULL"),
        ("SELECT lead(v, 2, w + id) OVER (ORDER BY id) FROM l ORDER BY id", "NULL; 40; NULL; 13"),
        ("SELECT lag(v, -1, w) OVER (ORDER BY id) FROM l ORDER BY id", "NULL; NULL; 40; 9"),
        ("SELECT lag(v, 0, w) OVER (ORDER BY id) FROM l ORDER BY id", "10; NULL; NULL; 40"),
        ("SELECT lag(v, 9, w) OVER (ORDER BY id) FROM l ORDER BY id", "7; 8; NULL; 9"),
        (
            "SELECT lag(v, 1, w) OVER (PARTITION BY id % 2 ORDER BY id) FROM l ORDER BY id",
            "7; 8; 10; NULL",
        ),
        ("SELECT lag(v, 1, w) IGNORE NULLS OVER (ORDER BY id) FROM l ORDER BY id", "7; 10; 10; 10"),
        ("SELECT lag(v, NULL, w) OVER (ORDER BY id) FROM l ORDER BY id", "NULL; NULL; NULL; NULL"),
        (
            "SELECT lag(v, 1, w::DOUBLE) OVER (ORDER BY id DESC), lead(v, 1, w) OVER (ORDER BY id) FROM l ORDER BY id",
            "NULL NULL; NULL NULL; 40 40; 9 9",
        ),
    ];
    expect_rows(&SHIFTED, &cases).await;
}

#[tokio::test]
async fn bit_xor_of_empty_sliding_frames_is_null() {
    let cases = [
        (
            "SELECT bit_xor(v) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM l ORDER BY id",
            "10; NULL; NULL; 40",
        ),
        (
            "SELECT bit_xor(v) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM l ORDER BY id",
            "NULL; 40; 40; NULL",
        ),
        (
            "SELECT bit_xor(w) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM l ORDER BY id",
            "7; 15; 8; 9",
        ),
        (
            "SELECT approx_distinct(v) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM l ORDER BY id",
            "1; 1; 0; 1",
        ),
        (
            "SELECT approx_median(w) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM l ORDER BY id",
            "7.0; 8.0; NULL; 9.0",
        ),
    ];
    expect_rows(&SHIFTED, &cases).await;
}

/// When this test fails, `CountedBits` of `functions::aggregate` can be removed.
#[tokio::test]
async fn stock_bit_xor_of_no_rows_is_still_zero() {
    let stock = SessionContext::new();
    stock_batches(&stock, SHIFTED[0]).await.unwrap();
    let sql = "SELECT bit_xor(v) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM l ORDER BY id";
    assert_eq!(stock_ints(&stock, sql).await, [10, 0, 0, 40]);
}

#[tokio::test]
async fn invalid_frame_bounds_are_refused() {
    let ctx = create_parallel_session();
    let frames = [
        ("RANGE BETWEEN INTERVAL '-2 day' PRECEDING AND CURRENT ROW", "negative"),
        ("RANGE BETWEEN INTERVAL '-1 day' PRECEDING AND INTERVAL '-1 day' FOLLOWING", "negative"),
        ("ROWS BETWEEN 18446744073709551615 FOLLOWING AND 18446744073709551615 FOLLOWING", "2^62"),
        ("GROUPS BETWEEN 1 PRECEDING AND 18446744073709551615 FOLLOWING", "2^62"),
    ];
    for (frame, part) in frames {
        let sql = format!(
            "SELECT sum(y) OVER (ORDER BY x {frame}) FROM (VALUES (TIMESTAMP '2024-01-01', 1), (TIMESTAMP '2024-01-05', 3)) t(x, y)"
        );
        let found = rows_or_error(&ctx, &sql).await;
        assert!(found.contains(part), "{frame}: {found}");
    }
    let far = "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND 4611686018427387904 FOLLOWING) FROM generate_series(1, 3) t(x)";
    assert_eq!(rows_or_error(&ctx, far).await, "6; 5; 3");
}

#[tokio::test]
async fn windows_and_aggregates_may_have_computed_keys() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'aa', [1, 2]), (2, 'b', [3]), (-3, 'cc', [1])) v(x, s, l)",
    ];
    let cases = [
        ("SELECT x, count(*) OVER (PARTITION BY abs(x) > 1) FROM t ORDER BY x", "-3 2; 1 1; 2 2"),
        (
            "SELECT x, count(*) OVER (PARTITION BY len(l) > 1, s < 'b') FROM t ORDER BY x",
            "-3 2; 1 1; 2 2",
        ),
        (
            "SELECT x FROM t QUALIFY row_number() OVER (PARTITION BY length(s) > 1 ORDER BY x) = 1 ORDER BY x",
            "-3; 2",
        ),
        ("SELECT array_agg(x ORDER BY len(l) > 1, x) FROM t", "[-3, 2, 1]"),
        (
            "SELECT s > 'b', string_agg(s, ',' ORDER BY length(s) > 1, s) FROM t GROUP BY s > 'b' ORDER BY 1",
            "false b,aa; true cc",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn windows_are_ordered_by_times_of_day() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (TIME '10:00:00', 1), (TIME '09:00:00', 2), (NULL, 3)) v(h, x)",
    ];
    let cases = [
        (
            "SELECT x, row_number() OVER (ORDER BY h), sum(x) OVER (ORDER BY h) FROM t ORDER BY x",
            "1 2 3; 2 1 2; 3 3 6",
        ),
        ("SELECT x, lag(x) OVER (ORDER BY h DESC) FROM t ORDER BY x", "1 3; 2 1; 3 NULL"),
        (
            "SELECT x, rank() OVER (ORDER BY arrow_cast(h, 'Time32(Second)')) FROM t ORDER BY x",
            "1 2; 2 1; 3 3",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn offsets_of_lag_and_lead_may_be_columns() {
    let table = "CREATE TABLE o AS SELECT * FROM (VALUES (1, 10, 0), (2, 20, 1), (3, 30, NULL), (4, 40, -1), (5, 50, 3), (6, 60, -4)) v(id, x, o)";
    let cases = [
        ("SELECT lag(x, o) OVER (ORDER BY id) FROM o ORDER BY id", "10; 10; NULL; 50; 20; NULL"),
        ("SELECT lead(x, o, 7) OVER (ORDER BY id) FROM o ORDER BY id", "10; 30; NULL; 30; 7; 20"),
        (
            "SELECT lead(x, o, id) OVER (ORDER BY id DESC) FROM o ORDER BY id",
            "10; 10; NULL; 50; 20; 6",
        ),
        (
            "SELECT lag(x, o + 0, -id) OVER (PARTITION BY id % 2 ORDER BY id) FROM o ORDER BY id",
            "10; -2; NULL; 60; -5; -6",
        ),
        ("SELECT lag(id, o) OVER (ORDER BY id) FROM o ORDER BY id LIMIT 4", "1; 1; NULL; 5"),
        (
            "SELECT lag([x], o) OVER (ORDER BY id), lag(x) OVER (ORDER BY id) FROM o WHERE id < 3 ORDER BY id",
            "[10] NULL; [10] 10",
        ),
    ];
    expect_rows(&[table], &cases).await;
    let ctx = create_parallel_session();
    query_batches(&ctx, table).await.unwrap();
    let e = error(&ctx, "SELECT lag(x, x / 7.0) OVER (ORDER BY id) FROM o").await;
    assert!(e.contains("the second argument of lag, the offset, must be an integer, not"), "{e}");
    for call in ["lag(x, 'a')", "lag(x, 1.5)", "lag(x, '1', 0)", "lag(x, 'a') IGNORE NULLS"] {
        let e = error(&ctx, &format!("SELECT {call} OVER (ORDER BY id) FROM o")).await;
        assert!(e.contains("the offset, must be an integer, not"), "{call}: {e}");
    }
    for (call, value) in [
        ("lag(id, 1, 1.5)", "1.5"),
        ("lead(id, 1, -0.25) IGNORE NULLS", "-0.25"),
        ("lag(id, o, 2.5::DECIMAL(2, 1))", "2.5"),
        ("lag(id, 1, x / 4.0)", "2.5"),
        ("lead(id, 1, x / 8.0) IGNORE NULLS", "7.5"),
        ("lag(id, o, x / 16.0)", "3.75"),
        ("lag(d, 1, TIMESTAMP '2020-01-01 10:00')", "2020-01-01T10:00:00"),
        ("lag([id], 1, [0.5])", "0.5"),
        ("lag([id], 1, [NULL, x / 4.0])", "2.5"),
        ("lead([[id]], 1, [[-0.25]]) IGNORE NULLS", "-0.25"),
    ] {
        let from = "FROM (SELECT *, DATE '2020-01-01' AS d FROM o)";
        let sql = format!("SELECT {call} OVER (ORDER BY id) {from}");
        let e = error(&ctx, &sql).await;
        let expected = "argument 3, the default, cannot be converted exactly to";
        assert!(e.contains(expected) && e.contains(value), "{call}: {e}");
    }
    let sql = "SELECT lag(id, 1, 0.0) OVER (ORDER BY id), lag(d, 1, TIMESTAMP '2020-01-05 00:00') OVER (ORDER BY id) FROM (SELECT *, DATE '2020-01-01' AS d FROM o) ORDER BY id LIMIT 1";
    assert_eq!(rows_or_error(&ctx, sql).await, "0 2020-01-05");
    let sql = "SELECT lag([id], 1, [0.0, NULL]) OVER (ORDER BY id) FROM o ORDER BY id LIMIT 1";
    assert_eq!(rows_or_error(&ctx, sql).await, "[0, ]");
    // Only the first row gets its default.
    for nulls in ["", "IGNORE NULLS"] {
        let sql = format!(
            "SELECT lag(id, 1, 8.5 - id / 2.0) {nulls} OVER (ORDER BY id) FROM o ORDER BY id"
        );
        assert_eq!(rows_or_error(&ctx, &sql).await, "8; 1; 2; 3; 4; 5");
    }
    let e = error(&ctx, "SELECT lag(x, o) IGNORE NULLS OVER (ORDER BY id) FROM o").await;
    assert!(e.contains("lag(..) IGNORE NULLS needs a constant as its second argument"), "{e}");
}

#[tokio::test]
async fn windows_may_be_partitioned_by_columns_that_a_join_equates() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 20), (2, 30), (NULL, 10), (3, NULL), (2, 20)) v(a, b)",
        "CREATE TABLE u AS SELECT * FROM (VALUES (1, 50), (2, 20), (3, 70), (3, 10)) v(a, b)",
    ];
    let from = "FROM t JOIN u ON t.a = u.a";
    let cases = [
        ("sum(t.b) OVER (PARTITION BY t.a + 1, u.a)", "1 20; 2 50; 2 50; 3 NULL; 3 NULL"),
        ("sum(t.b) OVER (PARTITION BY u.a, t.a + 1)", "1 20; 2 50; 2 50; 3 NULL; 3 NULL"),
        ("sum(t.b) OVER (PARTITION BY t.a + 1)", "1 20; 2 50; 2 50; 3 NULL; 3 NULL"),
        (
            "row_number() OVER (PARTITION BY t.a + 1, u.a ORDER BY u.b, t.b)",
            "1 1; 2 1; 2 2; 3 1; 3 2",
        ),
    ];
    let cases =
        cases.map(|(call, rows)| (format!("SELECT t.a, {call} {from} ORDER BY 1, 2"), rows));
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn quoted_names_of_windows_keep_their_case() {
    let setup = ["CREATE TABLE t AS SELECT * FROM (VALUES (1), (2)) v(x)"];
    let windows = "WINDOW \"W\" AS (ORDER BY x), w AS (), v AS (w)";
    let sum = |name: &str| format!("SELECT sum(x) OVER {name} FROM t {windows} ORDER BY x");
    let cases = [
        (sum("w"), "3; 3"),
        (sum("W"), "3; 3"),
        (sum("\"w\""), "3; 3"),
        (sum("\"W\""), "1; 3"),
        (sum("v"), "3; 3"),
        (sum("(\"W\" ROWS UNBOUNDED PRECEDING)"), "1; 3"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    let unknown = "SELECT sum(x) OVER \"W\" FROM (SELECT 1 AS x) WINDOW w AS ()";
    let unknown = rows_or_error(&ctx, unknown).await;
    assert!(unknown.contains("the window W is not defined"), "{unknown}");
}

#[tokio::test]
async fn frames_may_have_products_of_intervals_as_bounds() {
    let setup = ["CREATE TABLE t AS SELECT * FROM (VALUES
        (DATE '2020-01-01', 1), (DATE '2020-01-02', 2), (DATE '2020-01-04', 4)) v(d, x)"];
    let frames = [
        "INTERVAL '1 day' * 2 PRECEDING AND CURRENT ROW",
        "2 * INTERVAL '1 day' PRECEDING AND 0 * INTERVAL '1 day' FOLLOWING",
        "INTERVAL '1' DAY * 2 PRECEDING AND CURRENT ROW",
        "INTERVAL '2 days' PRECEDING AND CURRENT ROW",
    ];
    let over = |frame: &str| {
        format!("SELECT sum(x) OVER (ORDER BY d RANGE BETWEEN {frame}) FROM t ORDER BY d")
    };
    let mut queries: Vec<String> = frames.into_iter().map(over).collect();
    queries.push(
        "SELECT sum(x) OVER w FROM t WINDOW w AS (ORDER BY d RANGE INTERVAL '1 day' * 2 PRECEDING) ORDER BY d"
            .into(),
    );
    let cases: Vec<(&str, &str)> = queries.iter().map(|sql| (sql.as_str(), "1; 3; 6")).collect();
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    let day = "FROM (SELECT DATE '2020-01-01' AS d, 1 AS x)";
    let sql = over("INTERVAL '1 day' * 1.5 PRECEDING AND CURRENT ROW").replace("FROM t", day);
    let e = rows_or_error(&ctx, &sql).await;
    assert!(e.contains("frame offsets"), "{e}");
}

const EQUAL: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 1, 2.0::DOUBLE, 'x'), (2, 1, 3.0, 'y'), (3, 2, 5.0, 'x'), (4, NULL, 7.0, NULL), (5, 2, NULL, 'y')) v(id, k, f, s)";

/// Statements with two windows that become equal when they are simplified, or differ only in the
/// order of operands.
const EQUALS: [&str; 3] = [
    "SELECT id, sum(f) OVER (PARTITION BY (CASE WHEN true THEN s ELSE '' END)) AS a, sum(f) OVER (PARTITION BY s) AS b FROM t ORDER BY id",
    "SELECT id, sum(id + k) OVER (PARTITION BY s) AS a, sum(k + id) OVER (PARTITION BY s) AS b FROM t ORDER BY id",
    "SELECT id, count(*) OVER (PARTITION BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS a, count(*) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS b FROM t ORDER BY id",
];

#[tokio::test]
async fn windows_that_are_equal_once_simplified_have_both_names() {
    let s = "(CASE WHEN true THEN s ELSE '' END)";
    let sums = format!("sum(id) OVER (PARTITION BY {s}) AS a, sum(id) OVER (PARTITION BY s) AS b");
    let cases = [
        (EQUALS[0].to_owned(), "1 7.0 7.0; 2 3.0 3.0; 3 7.0 7.0; 4 7.0 7.0; 5 3.0 3.0"),
        (EQUALS[1].to_owned(), "1 7 7; 2 10 10; 3 7 7; 4 NULL NULL; 5 10 10"),
        (EQUALS[2].to_owned(), "1 1 1; 2 1 2; 3 1 2; 4 1 2; 5 1 2"),
        (
            "SELECT id, sum(id) OVER (PARTITION BY k) AS a, sum(CASE WHEN true THEN id END) OVER (PARTITION BY k) AS b, sum(id) FILTER (WHERE true) OVER (PARTITION BY k) AS c FROM t ORDER BY id".into(),
            "1 3 3 3; 2 3 3 3; 3 8 8 8; 4 4 4 4; 5 8 8 8",
        ),
        (
            format!("SELECT id, rank() OVER (ORDER BY s NULLS FIRST) AS a, rank() OVER (ORDER BY {s} NULLS FIRST) AS b, count(*) OVER (ORDER BY id) AS c FROM t ORDER BY id"),
            "1 2 2 1; 2 4 4 2; 3 2 2 3; 4 1 1 4; 5 4 4 5",
        ),
        (
            format!("SELECT id, sum(id) OVER (PARTITION BY s) + sum(id) OVER (PARTITION BY {s}) AS x FROM t ORDER BY id LIMIT 3"),
            "1 8; 2 14; 3 8",
        ),
        (
            format!("SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY {s} ORDER BY id) = 1 AND row_number() OVER (PARTITION BY s ORDER BY id) = 1 ORDER BY id"),
            "1; 2; 4",
        ),
        (
            format!("WITH w AS (SELECT id, {sums} FROM t) SELECT a, count(*) FROM w WHERE a = b GROUP BY a ORDER BY a"),
            "4 3; 7 2",
        ),
        (
            format!("SELECT id, (SELECT max(a + b) FROM (SELECT {sums} FROM t)) AS m FROM t ORDER BY id LIMIT 2"),
            "1 14; 2 14",
        ),
        (
            format!("SELECT a FROM (SELECT {sums}, sum(id) OVER (PARTITION BY {s}, k) AS c, sum(id) OVER (PARTITION BY s, k) AS d FROM t WHERE k = 1) WHERE c = d ORDER BY a"),
            "1; 2",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[EQUAL], &cases).await;
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("t.parquet"));
    let copy = format!("COPY t TO '{file}' OPTIONS (overwrite true)");
    let view = format!("CREATE VIEW t AS SELECT * FROM '{file}'");
    expect_rows(&[EQUAL, &copy, "DROP TABLE t", &view], &cases).await;
}

#[tokio::test]
async fn changes_and_prepared_statements_may_have_equal_windows() {
    let s = "(CASE WHEN true THEN s ELSE '' END)";
    let found = format!(
        "DELETE FROM t WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY {s} ORDER BY id) AS a, row_number() OVER (PARTITION BY s ORDER BY id) AS b FROM t) WHERE a = 1 AND b = 1)"
    );
    expect_rows(&[EQUAL, &found], &[("SELECT id FROM t ORDER BY id", "3; 5")]).await;
    let prepared = "PREPARE p(BIGINT) AS SELECT id, sum(id + $1) OVER (PARTITION BY s) AS a, sum($1 + id) OVER (PARTITION BY s) AS b FROM t WHERE k = 1 ORDER BY id";
    expect_rows(&[EQUAL, prepared], &[("EXECUTE p(1)", "1 2 2; 2 3 3")]).await;
}

/// When this test fails, `sql::workarounds::windows::whole_windows` can be removed.
#[tokio::test]
async fn stock_equal_windows_still_fail() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, EQUAL).await.unwrap();
    for sql in EQUALS {
        let e = stock_error(&ctx, sql).await;
        assert!(e.contains("does not support logical expression WindowFunction"), "{e}");
    }
}

const FOUR_ROWS: &str =
    "CREATE TABLE four AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, 7), (4, 40)) v(id, v)";

/// Returns a query for the first row of `window` over `s`, the sum of each row and the next row.
fn over_sums(window: &str) -> String {
    format!(
        "SELECT {window} AS w FROM (SELECT id, sum(v) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS s FROM four) LIMIT 1"
    )
}

#[tokio::test]
async fn limits_above_nested_windows_keep_their_rows() {
    let cases = [
        (over_sums("sum(s) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)"), "57"),
        (over_sums("sum(s) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING)"), "104"),
        (
            over_sums(
                "lead(s) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
            ),
            "27",
        ),
        (over_sums("sum(s) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING)"), "30"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[FOUR_ROWS], &cases).await;
}

#[tokio::test]
async fn nested_window_calls_and_ranges_of_strings_are_refused() {
    let ctx = serrate::sql::session();
    for (sql, words) in [
        (
            "SELECT rank() OVER (ORDER BY x) AS r FROM (VALUES (1)) t(x) QUALIFY sum(r) OVER () > 1",
            "the window function sum(..) OVER (..) contains the window function rank(..) or its alias",
        ),
        (
            "SELECT sum(rank() OVER (ORDER BY x)) OVER () FROM (VALUES (1)) t(x)",
            "compute rank in a subquery in FROM",
        ),
        (
            "SELECT max(rank() OVER (ORDER BY x)) FROM (VALUES (1)) t(x)",
            "the aggregate max(..) contains the window function rank(..)",
        ),
        (
            "SELECT count(*) OVER (ORDER BY s RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (VALUES ('a')) t(s)",
            "the frame RANGE .. 1 PRECEDING needs numbers, dates or times in the ORDER BY of its window, but t.s is Utf8",
        ),
        (
            "SELECT count(*) OVER (ORDER BY l RANGE 1 PRECEDING) FROM (VALUES ([1])) t(l)",
            "but t.l is List(Int64)",
        ),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

#[tokio::test]
async fn range_frames_without_an_offset_accept_any_key() {
    let cases = [
        (
            "SELECT s, count(*) OVER (ORDER BY s RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM (VALUES ('a'), ('b'), ('a')) t(s) ORDER BY s",
            "a 2; a 2; b 3",
        ),
        (
            "SELECT s, count(*) OVER (ORDER BY s GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (VALUES ('a'), ('b'), ('a')) t(s) ORDER BY s",
            "a 2; a 2; b 3",
        ),
        (
            "SELECT count(*) OVER (ORDER BY d RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW) FROM (VALUES (DATE '2020-01-01'), (DATE '2020-01-02')) t(d) ORDER BY d",
            "1; 2",
        ),
    ];
    expect_rows(&[], &cases).await;
}

/// When this test fails, `sql::workarounds::windows::nested_windows` can be removed.
#[tokio::test]
async fn stock_limits_still_forget_nested_windows() {
    let stock = SessionContext::new();
    stock_batches(&stock, FOUR_ROWS).await.unwrap();
    let sql = over_sums("sum(s) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)");
    assert_eq!(stock_ints(&stock, &sql).await, [50]);
}

/// The parser assigns IGNORE NULLS to the call before it, which may be an argument of the window
/// function.
#[tokio::test]
async fn ignore_nulls_after_an_argument_belongs_to_the_window_function() {
    let table = "CREATE TABLE z AS SELECT * FROM (VALUES (1, NULL, NULL), (2, NULL, -5), (3, 30, 40)) v(id, a, b)";
    expect_rows(
        &[table],
        &[
            ("SELECT first_value(greatest(a, b) IGNORE NULLS) OVER (ORDER BY id) FROM z ORDER BY id", "NULL; -5; -5"),
            ("SELECT first_value(1 + abs(b) IGNORE NULLS) OVER (ORDER BY id) FROM z ORDER BY id", "NULL; 6; 6"),
        ],
    )
    .await;
}

#[tokio::test]
async fn windows_may_have_only_keys_without_columns() {
    let table = "CREATE TABLE q AS SELECT * FROM (VALUES (1, 1), (1, 2), (2, 1), (6, 5)) v(w, y)";
    let cases = [
        ("SELECT row_number() OVER (ORDER BY (SELECT NULL)) AS a FROM q ORDER BY a", "1; 2; 3; 4"),
        (
            "SELECT rank() OVER (ORDER BY (SELECT max(w) FROM q)) AS a, sum(1) OVER () AS b FROM q",
            "1 4; 1 4; 1 4; 1 4",
        ),
        ("SELECT count(*) OVER (PARTITION BY (SELECT max(w) FROM q)) FROM q LIMIT 1", "4"),
        (
            "SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY random()) AS r FROM q) WHERE r < 3",
            "2",
        ),
        (
            "SELECT max(a), max(b) FROM (SELECT row_number() OVER (ORDER BY random()) AS a, row_number() OVER (ORDER BY random(), (SELECT 1)) AS b FROM q)",
            "4 4",
        ),
    ];
    expect_rows(&[table], &cases).await;
}

/// When this test fails, `names_no_column` in `sql::workarounds::grouping::computed_keys` can be
/// removed.
#[tokio::test]
async fn stock_windows_cannot_sort_rows_without_columns() {
    let stock = SessionContext::new();
    stock_batches(&stock, "CREATE TABLE q AS SELECT * FROM (VALUES (1), (2)) v(w)").await.unwrap();
    let sql = "SELECT row_number() OVER (ORDER BY random()) AS a FROM q";
    let e = stock_error(&stock, sql).await;
    assert!(e.contains("at least one column"), "{e}");
}
