//! `date_part`, `date_trunc` and `time_bucket` of times and durations.

use super::*;

/// Stock `date_part` returns NULL for the seconds of 80 years. Once it does not,
/// `sql::workarounds::types::times::wide` need not replace it.
#[tokio::test]
async fn parts_of_long_durations_are_exact() {
    let ctx = create_parallel_session();
    let rows = "(VALUES (TIMESTAMP '2020-01-01', TIMESTAMP '1940-01-01'), (TIMESTAMP '2020-01-01', TIMESTAMP '2019-12-31')) t(x, y)";
    let run = async |sql: String| {
        let batches = serrate::sql::sql(&ctx, &sql).await.unwrap().collect().await;
        batches.map(|b| pretty_format_batches(&b).unwrap().to_string())
    };
    let seconds =
        run(format!("SELECT extract(epoch FROM x - y) AS e FROM {rows} ORDER BY 1")).await.unwrap();
    assert!(seconds.contains("| 86400.0 ") && seconds.contains("| 2524608000.0 "), "{seconds}");
    let years = format!(
        "SELECT floor(date_part('epoch', x - y) / 86400 / 365.25) AS e FROM {rows} WHERE y < DATE '1950-01-01'"
    );
    let years = run(years).await.unwrap();
    assert!(years.contains("| 80.0 "), "{years}");
    let short = format!(
        "SELECT extract(millisecond FROM x - y) AS e FROM {rows} WHERE y > DATE '2000-01-01'"
    );
    let short = run(short).await.unwrap();
    assert!(short.contains("| 86400000 "), "{short}");
    let long = run(format!("SELECT extract(millisecond FROM x - y) AS e FROM {rows}")).await;
    assert!(
        long.unwrap_err().to_string().contains("milliseconds, which do not fit a 32-bit integer")
    );
    let stock = SessionContext::new();
    let stock = stock_text(
        &stock,
        "SELECT date_part('epoch', TIMESTAMP '2020-01-01' - TIMESTAMP '1940-01-01') AS e",
    )
    .await;
    assert!(!stock.contains("2524608000"), "DataFusion is fixed: {stock}");
}

#[tokio::test]
async fn epochs_of_nanoseconds_are_rounded_once() {
    let setup = "CREATE TABLE x AS SELECT i, arrow_cast(u, 'Timestamp(Nanosecond, None)') AS t, u FROM (VALUES (1, TIMESTAMP '2020-01-01 00:00:00.123'), (2, TIMESTAMP '1700-06-15 12:30:45'), (3, TIMESTAMP '1969-12-31 23:59:59.9'), (4, NULL)) v(i, u)";
    let expected = "1577836800.123; -8506034955.0; -0.1; NULL";
    let of = |e: &str| format!("SELECT {e} FROM x ORDER BY i");
    let epochs = [
        "epoch(t)",
        "epoch(u)",
        "extract(epoch FROM t)",
        "date_part('epoch', t AT TIME ZONE 'UTC')",
        "extract(epoch FROM t - arrow_cast(TIMESTAMP '1970-01-01', 'Timestamp(Nanosecond, None)'))",
        "(extract(epoch FROM [t]))[1]",
    ]
    .map(of);
    let mut cases: Vec<(&str, &str)> = epochs.iter().map(|sql| (sql.as_str(), expected)).collect();
    cases.push(("SELECT epoch(TIMESTAMP '2999-12-31 00:00:00.123456')", "32503593600.123455"));
    cases.push(("SELECT date_part('decade', t AT TIME ZONE 'UTC') FROM x WHERE i = 2", "170"));
    expect_rows(&[setup], &cases).await;
}

#[tokio::test]
async fn nanoseconds_far_from_the_origin_have_bins() {
    let setup = "CREATE TABLE x AS SELECT i, arrow_cast(u, 'Timestamp(Nanosecond, None)') AS t, u FROM (VALUES (1, TIMESTAMP '1700-06-15 12:30:45'), (2, TIMESTAMP '2020-03-04 10:00:00'), (3, NULL)) v(i, u)";
    let cases = [
        (
            "SELECT time_bucket(INTERVAL '7 days', t), time_bucket(INTERVAL '7 days', u) FROM x ORDER BY i",
            "1700-06-14T00:00:00 1700-06-14T00:00:00; 2020-03-02T00:00:00 2020-03-02T00:00:00; NULL NULL",
        ),
        (
            "SELECT date_bin(INTERVAL '1 hour', t, TIMESTAMP '2000-01-01') FROM x ORDER BY i",
            "1700-06-15T12:00:00; 2020-03-04T10:00:00; NULL",
        ),
        (
            "SELECT time_bucket(INTERVAL '1 month', t), time_bucket(INTERVAL '5 months', t) = time_bucket(INTERVAL '5 months', u) FROM x WHERE i = 1",
            "1700-06-01T00:00:00 true",
        ),
    ];
    expect_rows(&[setup], &cases).await;
}

#[tokio::test]
async fn parts_of_times_of_any_year_are_exact() {
    let times = "(VALUES (1, TIMESTAMP '2021-01-03 23:59:59.5'), (2, TIMESTAMP '1969-12-31 23:00:00'), (3, NULL), (4, TIMESTAMP '0000-02-29 00:00:01'), (5, to_timestamp(-63549403800)), (6, to_timestamp(317300000000))) AS v(i, t)";
    let setup = format!("CREATE TABLE t AS SELECT i, t::TIMESTAMP AS t FROM {times}");
    expect_rows(
        &[&setup, "CREATE VIEW w AS SELECT i, t, week(t) AS week FROM t"],
        &[
            (
                "SELECT year(t), quarter(t), month(t), week(t), day(t), date_part('doy', t) FROM t ORDER BY i",
                "2021 1 1 53 3 3; 1969 4 12 1 31 365; NULL NULL NULL NULL NULL NULL; 0 1 2 9 29 60; -44 1 3 11 14 74; 12024 4 11 44 1 306",
            ),
            (
                "SELECT dayofweek(t), date_part('isodow', t), hour(t), minute(t), date_part('second', t) FROM t ORDER BY i",
                "0 7 23 59 59; 3 3 23 0 0; NULL NULL NULL NULL NULL; 2 2 0 0 1; 3 3 11 50 0; 5 5 16 53 20",
            ),
            (
                "SELECT year(list), week(list::DATE[]), dayofweek(list) FROM (SELECT array_agg(t ORDER BY i) AS list FROM t WHERE i <> 3)",
                "[2021, 1969, 0, -44, 12024] [53, 1, 9, 11, 44] [0, 3, 2, 3, 5]",
            ),
            ("SELECT extract(year FROM t), EXTRACT(YEAR FROM t) FROM t WHERE i < 3 ORDER BY i", "2021 2021; 1969 1969"),
            ("SELECT i FROM t WHERE year(t) = 2021", "1"),
            ("SELECT i, week FROM w WHERE week > 40 ORDER BY i LIMIT 1", "1 53"),
            ("WITH c AS (SELECT * FROM t) SELECT year(t), count(*) FROM c GROUP BY year(t) HAVING year(t) < 2000 ORDER BY 1", "-44 1; 0 1; 1969 1"),
            // A timestamp with a zone, and a year that only timestamps in seconds can represent.
            ("SELECT hour(TIMESTAMPTZ '2020-01-01 12:00:00Z'), year(arrow_cast(arrow_cast(-7000000000000, 'Int64'), 'Timestamp(s)'))", "12 -219852"),
            ("SELECT strftime(t, '%Y-%m-%d %H:%M:%S.%g') FROM t WHERE i > 3 ORDER BY i", "0000-02-29 00:00:01.000; -0044-03-14 11:50:00.000; 12024-11-01 16:53:20.000"),
        ],
    )
    .await;
}

#[tokio::test]
async fn date_trunc_supports_decades_centuries_and_millennia() {
    let setup = "CREATE TABLE t AS SELECT * FROM (VALUES (1, TIMESTAMP '1969-05-05 01:02:03'), (2, TIMESTAMP '2000-01-01'), (3, TIMESTAMP '0005-05-05'), (4, NULL), (5, TIMESTAMP '9999-12-31')) v(i, t)";
    expect_rows(
        &[setup],
        &[
            (
                "SELECT date_trunc('decade', t), date_trunc('century', t), date_trunc('millennium', t) FROM t ORDER BY i",
                "1960-01-01T00:00:00 1900-01-01T00:00:00 1000-01-01T00:00:00; 2000-01-01T00:00:00 2000-01-01T00:00:00 2000-01-01T00:00:00; 0000-01-01T00:00:00 0000-01-01T00:00:00 0000-01-01T00:00:00; NULL NULL NULL; 9990-01-01T00:00:00 9900-01-01T00:00:00 9000-01-01T00:00:00",
            ),
            (
                "SELECT date_trunc('DECADE', DATE '1969-05-05'), date_trunc('century', [DATE '1969-05-05', NULL])",
                "1960-01-01T00:00:00 [1900-01-01T00:00:00, ]",
            ),
            ("SELECT date_trunc('decade', TIMESTAMPTZ '1965-05-05 01:02:03+00')", "1960-01-01T00:00:00Z"),
            ("SELECT i FROM t WHERE date_trunc('decade', t) = TIMESTAMP '1960-01-01'", "1"),
            ("SELECT count(*) FROM t GROUP BY date_trunc('century', t) ORDER BY 1", "1; 1; 1; 1; 1"),
        ],
    )
    .await;
}

/// Buckets of months begin in January, whatever name of the unit the width has.
#[tokio::test]
async fn buckets_of_months_begin_on_the_first_day() {
    let widths = [
        ("INTERVAL '1 month'", "2020-02-01"),
        ("INTERVAL '1 mon'", "2020-02-01"),
        ("INTERVAL '2 mons'", "2020-01-01"),
        ("INTERVAL '1mo'", "2020-02-01"),
        ("INTERVAL '1' MONTH", "2020-02-01"),
        ("INTERVAL 1 MONTH", "2020-02-01"),
        ("to_months(1)", "2020-02-01"),
        ("INTERVAL '1 quarter'", "2020-01-01"),
        ("INTERVAL '1y'", "2020-01-01"),
        ("INTERVAL '1 yr'", "2020-01-01"),
        ("to_years(1)", "2020-01-01"),
        ("INTERVAL '1 dec'", "2020-01-01"),
        ("INTERVAL '1 cent'", "2000-01-01"),
        ("INTERVAL '1 week'", "2020-02-17"),
        ("INTERVAL '1w'", "2020-02-17"),
    ];
    let cases = widths.map(|(width, day)| {
        let sql = format!("SELECT time_bucket({width}, TIMESTAMP '2020-02-20 10:00:00')");
        (sql, format!("{day}T00:00:00"))
    });
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, day)| (&**sql, &**day)).collect();
    expect_rows(&[], &cases).await;
}

/// The buckets of a parameter begin where those of an equal literal do.
#[tokio::test]
async fn buckets_of_parameters_begin_as_those_of_literals() {
    let prepare = "PREPARE bucket AS SELECT time_bucket($1, TIMESTAMP '2020-02-20 10:00:00')";
    let cases = [
        ("EXECUTE bucket(INTERVAL '1 month')", "2020-02-01T00:00:00"),
        ("EXECUTE bucket('2 months')", "2020-01-01T00:00:00"),
        ("EXECUTE bucket(to_years(1))", "2020-01-01T00:00:00"),
        ("EXECUTE bucket(INTERVAL '1 week')", "2020-02-17T00:00:00"),
        ("EXECUTE bucket(NULL)", "NULL"),
    ];
    expect_rows(&[prepare], &cases).await;
}

/// Only the month of an origin counts for a width of months, as in DuckDB. Buckets of times with a
/// zone are those of UTC.
#[tokio::test]
async fn buckets_of_months_begin_with_the_month_of_their_origin() {
    let setup = [
        "CREATE TABLE w AS SELECT * FROM (VALUES (1, INTERVAL '7 days'), (2, INTERVAL '2 months'), (3, NULL)) v(id, w)",
        "PREPARE bucket AS SELECT time_bucket($1, TIMESTAMP '2020-04-10', TIMESTAMP '2020-01-15 06:00')",
    ];
    let cases = [
        (
            "SELECT time_bucket(INTERVAL '1 month', TIMESTAMP '2020-04-10', TIMESTAMP '2020-01-15 06:00')",
            "2020-04-01T00:00:00",
        ),
        (
            "SELECT time_bucket(INTERVAL '2 months', [DATE '2020-04-20', NULL], DATE '2020-01-15')",
            "[2020-03-01T00:00:00, ]",
        ),
        (
            "SELECT time_bucket(to_years(1), TIMESTAMP '2020-04-10', '2019-03-31')",
            "2020-03-01T00:00:00",
        ),
        ("SELECT time_bucket(INTERVAL '1 month', DATE '2020-04-10', NULL)", "NULL"),
        (
            "SELECT time_bucket(INTERVAL '2 months', TIMESTAMPTZ '2020-04-10 01:00:00Z', TIMESTAMPTZ '2020-01-31 23:30:00Z' AT TIME ZONE 'Europe/Berlin')",
            "2020-03-01T00:00:00Z",
        ),
        (
            "SELECT time_bucket(INTERVAL '7 days', TIMESTAMP '2020-04-10', TIMESTAMP '2020-01-15 06:00')",
            "2020-04-08T06:00:00",
        ),
        (
            "SELECT time_bucket(w, TIMESTAMP '2020-04-10', DATE '2020-01-15') FROM w ORDER BY id",
            "2020-04-08T00:00:00; 2020-03-01T00:00:00; NULL",
        ),
        ("EXECUTE bucket(INTERVAL '1 month')", "2020-04-01T00:00:00"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn buckets_begin_later_by_an_offset() {
    let cases = [
        (
            "SELECT time_bucket(INTERVAL '7 days', TIMESTAMP '2020-04-10', INTERVAL '2 days')",
            "2020-04-08T00:00:00",
        ),
        (
            "SELECT time_bucket(INTERVAL '1 month', [DATE '2020-04-10', NULL], INTERVAL '5 days')",
            "[2020-04-06T00:00:00, ]",
        ),
        (
            "SELECT time_bucket(w, TIMESTAMP '2020-04-10', INTERVAL 5 DAY) FROM (SELECT INTERVAL '1 month' AS w)",
            "2020-04-06T00:00:00",
        ),
    ];
    expect_rows(&[], &cases).await;
}

/// The buckets of a width from a column or a subquery begin where those of an equal literal do.
#[tokio::test]
async fn buckets_of_columns_begin_as_those_of_literals() {
    let setup = [
        "CREATE TABLE w AS SELECT * FROM (VALUES (1, INTERVAL '7 days'), (2, INTERVAL '7 days'), (3, INTERVAL '1 month'), (4, INTERVAL '2 months'), (5, NULL)) v(id, w)",
    ];
    let of = |width: &str| format!("SELECT time_bucket({width}, TIMESTAMP '2020-02-20 10:00:00')");
    let cases = [
        (of("(SELECT w FROM w WHERE id = 1)"), "2020-02-17T00:00:00"),
        (of("(SELECT w FROM w WHERE id = 3)"), "2020-02-01T00:00:00"),
        (of("(SELECT w FROM w WHERE id = 5)"), "NULL"),
        (of("(SELECT w FROM w WHERE id = 6)"), "NULL"),
        (
            format!("{} FROM w ORDER BY id", of("w")),
            "2020-02-17T00:00:00; 2020-02-17T00:00:00; 2020-02-01T00:00:00; 2020-01-01T00:00:00; NULL",
        ),
        (
            "SELECT time_bucket(w, DATE '2020-02-20' + id::INT) FROM w WHERE id < 4 ORDER BY id".to_owned(),
            "2020-02-17T00:00:00; 2020-02-17T00:00:00; 2020-02-01T00:00:00",
        ),
        (
            "SELECT date_bin(w, TIMESTAMP '1066-02-20') FROM w WHERE id IN (1, 3) ORDER BY id".to_owned(),
            "1066-02-15T00:00:00; 1066-02-01T00:00:00",
        ),
        (
            "SELECT date_bin(INTERVAL '2 days', TIMESTAMP '2020-02-20', TIMESTAMP '2020-02-01' + id * INTERVAL '1 day') FROM w WHERE id < 3 ORDER BY id".to_owned(),
            "2020-02-20T00:00:00; 2020-02-19T00:00:00",
        ),
        (
            "SELECT time_bucket((SELECT w FROM w WHERE id = 1), [TIMESTAMP '2020-02-20 10:00:00', NULL])".to_owned(),
            "[2020-02-17T00:00:00, ]",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, day)| (&**sql, *day)).collect();
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    run_all(&ctx, &setup).await;
    let sql =
        "SELECT time_bucket(w - INTERVAL '8 days', TIMESTAMP '2020-02-20') FROM w WHERE id = 1";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("must be greater than 0"), "{e}");
}

/// Widths and origins that change from row to row give the bins of equal literals.
#[tokio::test]
async fn bins_with_a_width_per_row_are_those_of_literals() {
    let setup = [
        "CREATE TABLE x AS SELECT i, CASE i % 4 WHEN 0 THEN INTERVAL '7 days' WHEN 1 THEN INTERVAL '1 month' WHEN 2 THEN INTERVAL '90 minutes' ELSE INTERVAL '3 months' END AS w, DATE '1500-01-31' + i * 1009 + i * INTERVAL '131 minutes' AS t, TIMESTAMP '2000-01-31 06:00' + i * INTERVAL '11 days' AS o FROM generate_series(0, 399) s(i)",
    ];
    let pick = |times: &str, origin: &str| {
        let bin = |width: &str| format!("date_bin(INTERVAL '{width}', {times}{origin})");
        format!(
            "CASE i % 4 WHEN 0 THEN {} WHEN 1 THEN {} WHEN 2 THEN {} ELSE {} END",
            bin("7 days"),
            bin("1 month"),
            bin("90 minutes"),
            bin("3 months")
        )
    };
    let mut cases = Vec::new();
    let origin = ", TIMESTAMP '2000-01-31 06:00'";
    for times in ["t", "t::TIMESTAMP(0)", "t::TIMESTAMP(3)", "t AT TIME ZONE 'UTC'"] {
        for origin in ["", origin] {
            let literals = pick(times, origin);
            cases
                .push(format!("count(*) FILTER (WHERE date_bin(w, {times}{origin}) = {literals})"));
        }
    }
    let nanoseconds = "(DATE '1700-01-01' + i * 500)::TIMESTAMP(9)";
    let literals = pick(nanoseconds, origin);
    cases.push(format!("count(*) FILTER (WHERE date_bin(w, {nanoseconds}{origin}) = {literals})"));
    // The bins with an origin per row begin before their times, a multiple of the width from it.
    cases.push("count(*) FILTER (WHERE date_bin(INTERVAL '7 days', t, o) BETWEEN t - INTERVAL '7 days' AND t AND date_bin(INTERVAL '7 days', t, o) > t - INTERVAL '7 days' AND extract(epoch FROM date_bin(INTERVAL '7 days', t, o) - o)::BIGINT % 604800 = 0)".to_owned());
    cases.push(
        "count(*) FILTER (WHERE ragged_all(date_bin(w, [t, NULL]) = date_bin(w, t)))".to_owned(),
    );
    let cases: Vec<String> = cases.iter().map(|e| format!("SELECT {e} FROM x")).collect();
    let mut cases: Vec<(&str, &str)> = cases.iter().map(|sql| (sql.as_str(), "400")).collect();
    cases.extend([
        (
            "SELECT date_bin(w, v, o) FROM (VALUES (INTERVAL '1 month', TIMESTAMP '2999-03-01', TIMESTAMP '1970-01-31'), (INTERVAL '1 day', NULL, NULL), (NULL, TIMESTAMP '2020-01-01', NULL), (INTERVAL '10 months', TIMESTAMP '1969-12-31 23:00', TIMESTAMP '1970-01-01')) q(w, v, o)",
            "2999-02-28T00:00:00; NULL; NULL; 1969-03-01T00:00:00",
        ),
        (
            "SELECT date_bin(w, TIME '10:20:00') FROM (VALUES (INTERVAL '15 minutes'), (INTERVAL '1 hour')) q(w)",
            "10:15:00; 10:00:00",
        ),
    ]);
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    for (width, time, words) in [
        ("INTERVAL '7 months'", "TIMESTAMP '2999-01-01'", "divides 4800, not 7 months"),
        ("INTERVAL '-1 day'", "NULL::TIMESTAMP", "must be greater than 0"),
        ("INTERVAL '1 month 1 day'", "TIMESTAMP '2020-01-01'", "months have different lengths"),
        (
            "INTERVAL '7 days'",
            "arrow_cast(-9223372036854775807, 'Timestamp(Second, None)')",
            "outside the range of timestamps",
        ),
    ] {
        let sql = format!(
            "SELECT date_bin(w, v) FROM (VALUES ({width}, {time}), (INTERVAL '1 day', NULL)) q(w, v)"
        );
        let e = rows_or_error(&ctx, &sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

#[tokio::test]
async fn invalid_bucket_widths_are_refused() {
    let ctx = serrate::sql::session();
    for (width, words) in [
        ("0 days", "must be greater than 0"),
        ("-1 days", "must be greater than 0"),
        ("-1 month", "must be greater than 0"),
        ("1 month 1 day", "months have different lengths"),
    ] {
        for value in ["TIMESTAMP '2020-01-01'", "[TIMESTAMP '2020-01-01']", "DATE '1066-01-01'"] {
            let sql = format!("SELECT time_bucket(INTERVAL '{width}', {value})");
            let e = rows_or_error(&ctx, &sql).await;
            assert!(e.contains(words), "{sql}: {e}");
        }
    }
}

#[tokio::test]
async fn years_that_nanoseconds_do_not_cover_are_compared() {
    let setup = "CREATE TABLE x AS SELECT i, arrow_cast(u, 'Timestamp(Nanosecond, None)') AS t FROM (VALUES (1, TIMESTAMP '2020-01-01'), (2, TIMESTAMP '2262-01-05'), (3, TIMESTAMP '1677-12-31'), (4, NULL)) v(i, u)";
    let of = |condition: &str| format!("SELECT i FROM x WHERE {condition} ORDER BY i");
    let cases = [
        ("year(t) <> 2300", "1; 2; 3"),
        ("year(t) > 1600", "1; 2; 3"),
        ("year(t) >= 2500", ""),
        ("NOT year(t) >= 2500", "1; 2; 3"),
        ("year(t) < 2500", "1; 2; 3"),
        ("year(t) = 2262", "2"),
        ("year(t) <= 2262", "1; 2; 3"),
        ("year(t) = 1677", "3"),
        ("year(t) > 1677", "1; 2"),
        ("year(t) IN (1677, 1500)", "3"),
        ("year(t) NOT IN (2500, 2020)", "2; 3"),
        ("year(t) IS DISTINCT FROM 2300", "1; 2; 3; 4"),
        ("extract(year FROM t) > 1600 AND year(t) = 2020", "1"),
    ]
    .map(|(condition, rows)| (of(condition), rows));
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[setup], &cases).await;
}

/// When this test fails, `preimage` in `sql::workarounds::types::times::wide` need not test for
/// bounds that are NULL.
#[tokio::test]
async fn stock_years_beyond_nanoseconds_are_still_null() {
    let stock = SessionContext::new();
    let sql = "SELECT count(*) FROM (VALUES (TIMESTAMP '2020-01-01')) v(t) WHERE date_part('year', t) <> 2300";
    assert_eq!(stock_ints(&stock, sql).await, [0]);
}
