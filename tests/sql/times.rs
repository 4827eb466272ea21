//! Comparisons of durations, intervals and timestamps of all years.

use super::*;

async fn run(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    serrate::sql::sql(ctx, sql).await?.collect().await
}

/// Returns the rows as text, with blanks between values and semicolons between rows.
async fn rows(ctx: &SessionContext, sql: &str) -> String {
    use datafusion::arrow::util::display::array_value_to_string;
    let batches = run(ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    let mut rows = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().map(|c| {
                if c.is_null(row) { "NULL".into() } else { array_value_to_string(c, row).unwrap() }
            });
            rows.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    rows.join("; ")
}

/// Returns the differences from the expected values of expressions over the rows of FROM.
async fn wrong(ctx: &SessionContext, from: &str, expected: &[(&str, &str)]) -> String {
    let mut wrong = String::new();
    for (what, expected) in expected {
        let sql = format!("SELECT {what} FROM {from}");
        let found = match run(ctx, &sql).await {
            Ok(_) => rows(ctx, &sql).await,
            Err(e) => e.strip_backtrace(),
        };
        if found != *expected {
            wrong.push_str(&format!("{what}: {found}, not {expected}\n"));
        }
    }
    wrong
}

async fn refusal(ctx: &SessionContext, sql: &str) -> String {
    match run(ctx, sql).await {
        Ok(found) => panic!("{sql} gave\n{}", pretty_format_batches(&found).unwrap()),
        Err(e) => e.strip_backtrace(),
    }
}

/// 60 days, and intervals around it, as columns, so that nothing is folded.
const SIXTY: &str = "(SELECT b - a AS d, x, y FROM (VALUES
    (TIMESTAMP '2020-03-01', TIMESTAMP '2020-01-01', INTERVAL '30 days', INTERVAL '1440 hours')) t(b, a, x, y))";

#[tokio::test]
async fn a_duration_and_an_interval_compare_as_lengths_of_time() {
    let ctx = four();
    let expected = [
        ("d > INTERVAL '30 days'", "true"),
        ("d > INTERVAL '60 days'", "false"),
        ("d >= INTERVAL '60 days'", "true"),
        ("d = INTERVAL '1440 hours'", "true"),
        ("d <> INTERVAL '60 days'", "false"),
        ("INTERVAL '61 days' > d", "true"),
        ("INTERVAL '30 days' < d", "true"),
        ("d > x", "true"),
        ("d = y", "true"),
        ("x < d", "true"),
        ("d IS DISTINCT FROM INTERVAL '60 days'", "false"),
        ("d IS NOT DISTINCT FROM y", "true"),
        ("d BETWEEN INTERVAL '59 days' AND INTERVAL '61 days'", "true"),
        ("d NOT BETWEEN x AND y", "false"),
        ("d IN (INTERVAL '1 day', INTERVAL '60 days')", "true"),
        ("d NOT IN (x, y)", "false"),
        ("CASE d WHEN INTERVAL '60 days' THEN 1 ELSE 2 END", "1"),
        ("nullif(d, INTERVAL '60 days') IS NULL", "true"),
        ("coalesce(NULL, d, INTERVAL '1 day') = d", "true"),
        ("greatest(d, INTERVAL '61 days') = INTERVAL '61 days'", "true"),
        ("least(d, INTERVAL '61 days') = d", "true"),
        ("CASE WHEN true THEN d ELSE INTERVAL '1 day' END > INTERVAL '59 days'", "true"),
        ("d + INTERVAL '1 day' = INTERVAL '61 days'", "true"),
        ("INTERVAL '1 day' + d > INTERVAL '60 days'", "true"),
        ("arrow_typeof(d - INTERVAL '1 day')", "Duration(µs)"),
        ("d > INTERVAL '1 nanosecond'", "true"),
        ("arrow_cast(d, 'Duration(Second)') = d", "true"),
        ("arrow_cast(d, 'Duration(Second)') < INTERVAL '60 days 0.000000001 seconds'", "true"),
        ("d > NULL", "NULL"),
    ];
    assert_eq!(wrong(&ctx, SIXTY, &expected).await, "");
    let sql = format!("SELECT count(*) FROM {SIXTY} WHERE d > INTERVAL '30 days' AND d > x");
    assert_eq!(rows(&ctx, &sql).await, "1");
    let sql =
        format!("SELECT max(d) > INTERVAL '30 days', min(d) = INTERVAL '60 days' FROM {SIXTY}");
    assert_eq!(rows(&ctx, &sql).await, "true true");
    let sql = format!("SELECT count(*) FROM {SIXTY} WHERE d IN (SELECT INTERVAL '60 days')");
    assert_eq!(rows(&ctx, &sql).await, "1");
    let sql = format!(
        "SELECT count(*) FROM {SIXTY} s JOIN (SELECT INTERVAL '60 days' AS z) u ON s.d = u.z"
    );
    assert_eq!(rows(&ctx, &sql).await, "1");
    let sql = format!(
        "SELECT d > (SELECT INTERVAL '30 days'), count(*) FROM {SIXTY} WHERE EXISTS (SELECT 1 FROM (SELECT INTERVAL '60 days' AS z) u WHERE u.z = d) GROUP BY 1"
    );
    assert_eq!(rows(&ctx, &sql).await, "true 1");
}

#[tokio::test]
async fn a_month_has_no_length_beside_a_duration() {
    let ctx = four();
    for what in [
        "d > INTERVAL '1 month'",
        "d BETWEEN INTERVAL '1 day' AND INTERVAL '1 year'",
        "d IN (INTERVAL '2 months')",
    ] {
        let e = refusal(&ctx, &format!("SELECT {what} FROM {SIXTY}")).await;
        assert!(
            e.contains("a month has no fixed length; write days, such as INTERVAL '30 days'"),
            "{what}: {e}"
        );
    }
    // The value of a column is known only at execution.
    let sql = "SELECT b - a > x FROM (VALUES (TIMESTAMP '2020-03-01', TIMESTAMP '2020-01-01', INTERVAL '30 days'),
        (TIMESTAMP '2020-03-01', TIMESTAMP '2020-01-01', INTERVAL '2 months')) t(b, a, x)";
    let e = refusal(&ctx, sql).await;
    assert!(e.contains("the interval 2mo ") && e.contains("a month has no fixed length"), "{e}");
    let e = refusal(
        &ctx,
        "SELECT ragged_diff([TIMESTAMP '2020-01-01', TIMESTAMP '2020-02-01']) > INTERVAL '1 month'",
    )
    .await;
    assert!(
        e.contains("a month has no fixed length; write days, such as INTERVAL '30 days'"),
        "{e}"
    );
}

#[tokio::test]
async fn intervals_compare_as_in_duckdb() {
    let ctx = four();
    let spans = "(SELECT x, n FROM (VALUES (INTERVAL '36 hours', 3), (INTERVAL '1 day', 1), (INTERVAL '24 hours', 1),
        (INTERVAL '1 month', 5), (INTERVAL '30 days', 5), (INTERVAL '31 days', 6), (INTERVAL '-1 day', 0), (NULL, NULL)) t(x, n))";
    for op in ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"] {
        let sql = format!(
            "SELECT count(*) FROM {spans} a CROSS JOIN {spans} b WHERE (a.x {op} b.x) IS DISTINCT FROM (a.n {op} b.n)"
        );
        assert_eq!(rows(&ctx, &sql).await, "0", "{op}");
    }
    let sql = format!("SELECT n FROM {spans} ORDER BY x NULLS LAST, n");
    assert_eq!(rows(&ctx, &sql).await, "0; 1; 1; 3; 5; 5; 6; NULL");
    let sql =
        format!("SELECT n, rank() OVER (ORDER BY x) AS r FROM {spans} WHERE n > 0 ORDER BY r, n");
    assert_eq!(rows(&ctx, &sql).await, "1 1; 1 1; 3 3; 5 4; 5 4; 6 6");
    let sql = format!("SELECT count(*) OVER (PARTITION BY x) AS c FROM {spans} WHERE n = 1");
    assert_eq!(rows(&ctx, &sql).await, "2; 2");
    let sql = format!("SELECT count(*) FROM {spans} a JOIN {spans} b ON a.x = b.x");
    assert_eq!(rows(&ctx, &sql).await, "11");
    let sql = format!("SELECT array_agg(n ORDER BY x DESC NULLS LAST, n) FROM {spans} WHERE n < 4");
    assert_eq!(rows(&ctx, &sql).await, "[3, 1, 1, 0]");
    assert_eq!(
        rows(
            &ctx,
            "SELECT INTERVAL '1 day' = INTERVAL '24 hours', INTERVAL '1 month' = INTERVAL '30 days'"
        )
        .await,
        "true true"
    );
    assert_eq!(
        rows(&ctx, "SELECT [INTERVAL '1 day', INTERVAL '25 hours'] > INTERVAL '24 hours'").await,
        "[false, true]"
    );
    for sql in [
        format!("SELECT DISTINCT [x] FROM {spans}"),
        "SELECT ragged_min([INTERVAL '1 day', INTERVAL '25 hours'])".into(),
        "SELECT ragged_sort([INTERVAL '1 day', INTERVAL '25 hours'])".into(),
        "SELECT [INTERVAL '1 day'] = [INTERVAL '24 hours']".into(),
        "SELECT [INTERVAL '1 day'] IN ([INTERVAL '24 hours'], [INTERVAL '1 hour'])".into(),
        "SELECT {'a': INTERVAL '1 day'} IN ({'a': INTERVAL '24 hours'})".into(),
        "SELECT [INTERVAL '1 day'] IN (SELECT [INTERVAL '24 hours'])".into(),
        "SELECT [INTERVAL '1 day'] >= ALL (SELECT [INTERVAL '24 hours'])".into(),
        "SELECT [INTERVAL '1 day'] BETWEEN [INTERVAL '1 hour'] AND [INTERVAL '24 hours']".into(),
        "SELECT CASE [INTERVAL '1 day'] WHEN [INTERVAL '24 hours'] THEN 1 END".into(),
        "SELECT array_has([INTERVAL '1 day'], INTERVAL '24 hours')".into(),
    ] {
        let e = refusal(&ctx, &sql).await;
        assert!(
            e.contains("interval") && (e.contains("epoch") || e.contains("durations")),
            "{sql}: {e}"
        );
    }
}

#[tokio::test]
async fn lists_and_structs_of_durations_compare_with_those_of_intervals() {
    let ctx = four();
    let t = "(SELECT TIMESTAMP '2020-03-01' - TIMESTAMP '2020-01-01' AS d)";
    let expected = [
        ("[d] > [INTERVAL '730 hours']", "true"),
        ("[INTERVAL '1440 hours'] = [d]", "true"),
        ("{'a': d} <= {'a': INTERVAL '1439 hours'}", "false"),
        ("[d] IS DISTINCT FROM [INTERVAL '1440 hours']", "false"),
    ];
    assert_eq!(wrong(&ctx, t, &expected).await, "");
    let e = refusal(&ctx, &format!("SELECT [d] = [INTERVAL '60 days'] FROM {t}")).await;
    assert!(e.contains("months or days"), "{e}");
    let view = "CREATE VIEW v AS SELECT [d] = [INTERVAL '1440 hours'] AS c FROM ";
    run(&ctx, &format!("{view}{t}")).await.unwrap();
    assert_eq!(rows(&ctx, "SELECT c FROM v").await, "true");
}

#[tokio::test]
async fn lists_of_durations_meet_intervals() {
    let ctx = four();
    let t = "(SELECT ragged_diff(x) AS d, INTERVAL '1 day' AS i FROM (VALUES ([TIMESTAMP '2020-01-01', TIMESTAMP '2020-02-01', TIMESTAMP '2020-02-02'])) t(x))";
    let expected = [
        ("d > INTERVAL '30 days'", "[, true, false]"),
        ("INTERVAL '30 days' < d", "[, true, false]"),
        ("d = i", "[, false, true]"),
        ("ragged_eq(d, INTERVAL '24 hours')", "[, false, true]"),
        ("ragged_between(d, INTERVAL '1 day', INTERVAL '2 days')", "[, false, true]"),
        ("ragged_isin(d, [INTERVAL '1 day', INTERVAL '1 nanosecond'])", "[, false, true]"),
        ("d IN (INTERVAL '24 hours')", "[, false, true]"),
        ("ragged_max(d) > INTERVAL '30 days'", "true"),
        ("ragged_min(d) = i", "true"),
        ("ragged_any(d > INTERVAL '30 days')", "true"),
        ("ragged_minimum(d, INTERVAL '1 day') = INTERVAL '1 day'", "[, true, true]"),
        ("d + INTERVAL '1 day' = INTERVAL '2 days'", "[, false, true]"),
        ("ragged_map(d, lambda v: v > INTERVAL '30 days')", "[, true, false]"),
        ("d > INTERVAL '1 nanosecond'", "[, true, true]"),
    ];
    assert_eq!(wrong(&ctx, t, &expected).await, "");
}

#[tokio::test]
async fn timestamps_are_microseconds_of_any_year() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = four();
    let file = show(&dir.path().join("t.parquet"));
    let sql = format!(
        "COPY (SELECT * FROM (VALUES (0, TIMESTAMP '1600-01-01'), (1, TIMESTAMP '2020-01-01'), (2, TIMESTAMP '2999-12-31'), (3, NULL)) t(id, t)) TO '{file}'"
    );
    run(&ctx, &sql).await.unwrap();
    run(&ctx, &format!("CREATE TABLE m AS SELECT * FROM '{file}'")).await.unwrap();
    assert_eq!(rows(&ctx, "SELECT arrow_typeof(t) FROM m LIMIT 1").await, "Timestamp(µs)");
    let typed = "SELECT arrow_typeof(TIMESTAMP '2999-12-31'), arrow_typeof(TIMESTAMP '2020-01-01 00:00:00.1234567'), arrow_typeof('2020-01-01'::TIMESTAMP(9)), arrow_typeof([NULL]::TIMESTAMP[])";
    assert_eq!(
        rows(&ctx, typed).await,
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
        assert_eq!(wrong(&ctx, &format!("{table} ORDER BY id"), &expected).await, "", "{table}");
        for (what, expected) in expected {
            if expected.contains("true") && !expected.contains('[') {
                let sql = format!("SELECT count(*) FROM {table} WHERE {what}");
                assert_eq!(
                    rows(&ctx, &sql).await,
                    expected.matches("true").count().to_string(),
                    "{sql}"
                );
            }
        }
        let sql = format!("SELECT min(t), max(t) FROM {table}");
        assert_eq!(rows(&ctx, &sql).await, "1600-01-01T00:00:00 2999-12-31T00:00:00");
        let sql = format!(
            "SELECT t FROM {table} WHERE id = 2 UNION ALL SELECT DATE '1600-01-01' ORDER BY 1"
        );
        assert_eq!(rows(&ctx, &sql).await, "1600-01-01T00:00:00; 2999-12-31T00:00:00");
        let sql = format!(
            "SELECT count(*) FROM {table} a JOIN (SELECT arrow_cast(t, 'Timestamp(Second, None)') AS s FROM {table}) b ON a.t = b.s"
        );
        assert_eq!(rows(&ctx, &sql).await, "3");
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
    assert_eq!(wrong(&ctx, &format!("{n} ORDER BY t"), &expected).await, "");
    let expected = [
        ("5::TIMESTAMP", "1970-01-01T00:00:05"),
        ("TRY_CAST('x' AS TIMESTAMP)", "NULL"),
        ("to_timestamp('2999-12-31')", "2999-12-31T00:00:00Z"),
        ("to_timestamp(99999999999)", "5138-11-16T09:46:39Z"),
        ("to_timestamp(1.5)", "1970-01-01T00:00:01.500Z"),
        ("DATE '2999-01-01' + INTERVAL '36 hours'", "2999-01-02T12:00:00"),
        ("DATE '2999-01-01' + INTERVAL '1 day'", "2999-01-02"),
    ];
    assert_eq!(wrong(&ctx, "(SELECT 1)", &expected).await, "");
    assert!(refusal(&ctx, "SELECT to_timestamp(1e30)").await.contains("outside the range"));
    assert!(refusal(&ctx, "SELECT 5.5::TIMESTAMP").await.contains("to_timestamp"));
    run(&ctx, "CREATE TABLE w (t TIMESTAMP)").await.unwrap();
    run(&ctx, "INSERT INTO w VALUES (TIMESTAMP '2999-01-01'), (now()), ('1600-01-01')")
        .await
        .unwrap();
    assert_eq!(
        rows(&ctx, "SELECT min(t), max(t) FROM w").await,
        "1600-01-01T00:00:00 2999-01-01T00:00:00"
    );
}

#[tokio::test]
async fn series_and_windows_take_timestamps() {
    let ctx = four();
    for series in ["generate_series", "range"] {
        let sql = format!(
            "SELECT value > TIMESTAMP '2020-01-01' FROM {series}(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02 12:00:00', INTERVAL '1 day') WHERE value < '2999-01-01' ORDER BY value"
        );
        assert_eq!(rows(&ctx, &sql).await, "false; true", "{series}");
        let sql = format!(
            "SELECT array_length({series}(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02 12:00:00', INTERVAL '1 day'))"
        );
        assert_eq!(rows(&ctx, &sql).await, "2", "{series}");
    }
    let sql = "SELECT sum(x) OVER (ORDER BY t RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW) FROM (VALUES
        (TIMESTAMP '2020-01-01', 1), (TIMESTAMP '2020-01-01 12:00:00', 2), (TIMESTAMP '2999-01-01', 4)) v(t, x)";
    assert_eq!(rows(&ctx, sql).await, "1; 3; 4");
}

/// Once this test fails, our `date_trunc`, `date_bin` and `to_timestamp` can be removed.
#[tokio::test]
async fn stock_functions_still_work_in_nanoseconds() {
    let stock = SessionContext::new();
    let far = "arrow_cast('2999-12-31', 'Timestamp(Microsecond, None)')";
    let trunc = stock.sql(&format!("SELECT date_trunc('month', {far})")).await.unwrap();
    assert!(trunc.collect().await.is_err());
    let bin = stock.sql(&format!("SELECT date_bin(INTERVAL '1 day', {far})")).await.unwrap();
    assert_eq!(bin.collect().await.unwrap()[0].column(0).null_count(), 1);
    let parse = stock.sql("SELECT to_timestamp('2999-12-31')").await.unwrap();
    assert!(parse.collect().await.is_err());
}

/// Stock `date_part` returns NULL for the seconds of 80 years. Once it does not, `sql::times::wide`
/// need not replace it.
#[tokio::test]
async fn parts_of_long_durations_are_exact() {
    let ctx = four();
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
    assert!(long.unwrap_err().to_string().contains("milliseconds, more than fit a 32-bit integer"));
    let stock = SessionContext::new();
    let stock = stock_text(
        &stock,
        "SELECT date_part('epoch', TIMESTAMP '2020-01-01' - TIMESTAMP '1940-01-01') AS e",
    )
    .await;
    assert!(!stock.contains("2524608000"), "DataFusion is fixed: {stock}");
}

#[tokio::test]
async fn now_has_room_for_all_years() {
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
    assert_eq!(wrong(&ctx, "(VALUES (1)) AS one(x)", &expected).await, "");
    run(&ctx, "SET datafusion.execution.time_zone = '+02:00'").await.unwrap();
    let zoned = [
        ("arrow_typeof(now())", "Timestamp(µs, \"+02:00\")"),
        ("now() + INTERVAL '2000 years' > now()", "true"),
    ];
    assert_eq!(wrong(&ctx, "(VALUES (1)) AS one(x)", &zoned).await, "");
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
    assert_eq!(wrong(&ctx, "(VALUES (1)) AS one(x)", &expected).await, "");
}

#[tokio::test]
async fn tables_are_looked_into_by_times_of_any_unit() {
    const UNITS: [&str; 4] = ["Second", "Millisecond", "Microsecond", "Nanosecond"];
    for keys in UNITS {
        let ctx = serrate::sql::session();
        let table = format!(
            "CREATE TABLE t AS SELECT arrow_cast(k, 'Timestamp({keys}, None)') AS k, v FROM (VALUES ('2020-01-01', 1), ('2001-01-01T00:00:01', 2)) AS t(k, v)"
        );
        run(&ctx, &table).await.unwrap();
        for values in UNITS {
            let one = |text: &str| format!("arrow_cast('{text}', 'Timestamp({values}, None)')");
            let given = [one("2020-01-01"), one("2001-01-01T00:00:01"), one("2001-01-01T00:00:02")];
            let sql = format!("SELECT ragged_lookup([{}], 't', 'k', 'v')", given.join(", "));
            assert_eq!(rows(&ctx, &sql).await, "[1, 2, ]", "{keys} {values}");
        }
        let expected = [
            // No key lies between two units, and none beyond the years of a unit.
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
        assert_eq!(wrong(&ctx, "(VALUES (1)) AS one(x)", &expected).await, "", "{keys}");
    }
}

#[tokio::test]
async fn windows_are_ordered_by_durations() {
    let of = "(SELECT v, arrow_cast(v, 'Duration(Microsecond)') AS g, TIMESTAMP '2020-01-01' AS t
        FROM (VALUES (3), (-1), (NULL), (3), (9)) t(v))";
    let ctx = four();
    for (call, expected) in [
        ("rank() OVER (ORDER BY g)", "1 2 2 4 5"),
        ("rank() OVER (ORDER BY g DESC NULLS LAST)", "1 2 2 4 5"),
        ("sum(v) OVER (ORDER BY g)", "-1 5 5 14 14"),
        (
            "count(*) OVER (ORDER BY t + g - t, v RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
            "1 2 4 4 5",
        ),
        ("row_number() OVER (PARTITION BY g ORDER BY g)", "1 1 1 1 2"),
        ("row_number() OVER (ORDER BY t, g)", "1 2 3 4 5"),
        // Frames of every unit in one order.
        (
            "10 * row_number() OVER (ORDER BY g) + count(*) OVER (ORDER BY g ROWS 1 PRECEDING)",
            "11 22 32 42 52",
        ),
        (
            "count(*) OVER (ORDER BY g GROUPS 1 PRECEDING) + 10 * rank() OVER (ORDER BY g)",
            "11 23 23 43 52",
        ),
    ] {
        let sql = format!("SELECT {call} AS n FROM {of} ORDER BY n");
        assert_eq!(rows(&ctx, &sql).await.replace(';', ""), expected, "{call}");
    }
    let heading = run(&ctx, &format!("SELECT rank() OVER (ORDER BY g) FROM {of}")).await.unwrap();
    let name = heading[0].schema().field(0).name().clone();
    assert!(!name.contains("CAST"), "{name}");
}

#[tokio::test]
async fn stock_windows_over_durations_still_fail() {
    let sql = "SELECT rank() OVER (ORDER BY arrow_cast(v, 'Duration(Microsecond)')) FROM (VALUES (1)) t(v)";
    let stock = stock_error(&SessionContext::new(), sql).await;
    assert!(stock.contains("Cannot run range queries on datatype: Duration"), "{stock}");
}

/// Equal intervals are one group, one distinct value and one extreme, however they are written.
#[tokio::test]
async fn equal_intervals_are_one_group() {
    let ctx = four();
    let spans =
        "(VALUES (INTERVAL '1 month', 1), (INTERVAL '30 days', 2), (INTERVAL '720 hours', 3),
        (INTERVAL '1 day', 4), (INTERVAL '-24 hours', 5), (NULL, 6)) t(x, n)";
    for (sql, expected) in [
        (
            format!("SELECT x, count(*) FROM {spans} GROUP BY x ORDER BY x"),
            "-1 days 1; 1 days 1; 1 mons 3; NULL 1",
        ),
        (format!("SELECT DISTINCT x FROM {spans} ORDER BY x"), "-1 days; 1 days; 1 mons; NULL"),
        (format!("SELECT min(x), max(x), count(DISTINCT x) FROM {spans}"), "-1 days 1 mons 3"),
        (
            format!("SELECT x FROM {spans} UNION SELECT x FROM {spans} ORDER BY x"),
            "-1 days; 1 days; 1 mons; NULL",
        ),
        (
            format!("SELECT n, max(x) OVER (ORDER BY n ROWS 1 PRECEDING) FROM {spans} ORDER BY n"),
            "1 1 mons; 2 1 mons; 3 1 mons; 4 1 mons; 5 1 days; 6 -1 days",
        ),
        (
            format!(
                "SELECT greatest(x, INTERVAL '2 days') FROM {spans} WHERE n IN (3, 4) ORDER BY n"
            ),
            "1 mons; 2 days",
        ),
        (
            format!(
                "SELECT x, count(*) FROM {spans} GROUP BY ROLLUP (x) ORDER BY count(*) DESC, x LIMIT 2"
            ),
            "NULL 6; 1 mons 3",
        ),
        (
            format!("SELECT DISTINCT ON (x) x, n FROM {spans} WHERE n < 4 ORDER BY x, n DESC"),
            "720 hours 3",
        ),
    ] {
        assert_eq!(rows(&ctx, &sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn series_of_timestamps_are_of_all_years() {
    let ctx = four();
    for (sql, expected) in [
        (
            "SELECT generate_series(TIMESTAMP '2999-01-01', TIMESTAMP '2999-01-02', INTERVAL '1 day')",
            "[2999-01-01T00:00:00, 2999-01-02T00:00:00]",
        ),
        (
            "SELECT range(TIMESTAMP '1600-01-01', TIMESTAMP '1600-01-02', INTERVAL '12 hours')",
            "[1600-01-01T00:00:00, 1600-01-01T12:00:00]",
        ),
        (
            "SELECT range(t, t - INTERVAL '1 day', INTERVAL '-12 hours') FROM (VALUES (TIMESTAMP '9999-01-01')) v(t)",
            "[9999-01-01T00:00:00, 9998-12-31T12:00:00]",
        ),
        (
            "SELECT generate_series(TIMESTAMP '2020-01-31', TIMESTAMP '2020-04-01', INTERVAL '1 month')",
            "[2020-01-31T00:00:00, 2020-02-29T00:00:00, 2020-03-29T00:00:00]",
        ),
        (
            "SELECT range(TIMESTAMP '2020-01-02', TIMESTAMP '2020-01-01', INTERVAL '1 day'), range(NULL::TIMESTAMP, TIMESTAMP '2020-01-01', INTERVAL '1 day')",
            "[] NULL",
        ),
        (
            "SELECT value FROM generate_series(TIMESTAMP '2999-01-01', TIMESTAMP '2999-01-02', INTERVAL '1 day')",
            "2999-01-01T00:00:00; 2999-01-02T00:00:00",
        ),
        (
            "SELECT value FROM range(DATE '1600-01-01', DATE '1600-01-03', INTERVAL '1 day')",
            "1600-01-01T00:00:00; 1600-01-02T00:00:00",
        ),
        (
            "SELECT count(*), min(value), max(value) FROM range(TIMESTAMP '2500-01-01', TIMESTAMP '2500-01-02', INTERVAL '1 second')",
            "86400 2500-01-01T00:00:00 2500-01-01T23:59:59",
        ),
        (
            "SELECT arrow_typeof(generate_series(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL '1 day'))",
            "List(Timestamp(µs))",
        ),
    ] {
        assert_eq!(rows(&ctx, sql).await, expected, "{sql}");
    }
    for (sql, words) in [
        (
            "SELECT range(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL '0 days')",
            "has no fixed direction",
        ),
        (
            "SELECT value FROM range(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL '1 month -30 days')",
            "has no fixed direction",
        ),
        (
            "SELECT range(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL '100 nanoseconds')",
            "TIMESTAMP(9)",
        ),
        (
            "SELECT range(TIMESTAMP '0001-01-01', TIMESTAMP '9999-01-01', INTERVAL '1 microsecond')",
            "2^31 - 1 timestamps",
        ),
    ] {
        let e = refusal(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

/// When this test fails, `sql::times::series` can be removed.
#[tokio::test]
async fn stock_series_still_are_nanoseconds() {
    let far = "arrow_cast('2999-12-31', 'Timestamp(Microsecond, None)')";
    let sql = format!("SELECT generate_series({far}, {far}, INTERVAL '1 day')");
    let found = SessionContext::new().sql(&sql).await.unwrap().collect().await.unwrap();
    assert_eq!(found[0].column(0).null_count(), 1);
}

#[tokio::test]
async fn a_date_and_a_duration_make_a_time() {
    let ctx = four();
    let expected = [
        ("d + (b - a)", "2020-01-03T06:00:00"),
        ("(b - a) + d", "2020-01-03T06:00:00"),
        ("d - (b - a)", "2019-12-29T18:00:00"),
        ("arrow_typeof(d + (b - a))", "Timestamp(µs)"),
    ];
    let from = "(VALUES (DATE '2020-01-01', TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-03 06:00:00')) t(d, a, b)";
    assert_eq!(wrong(&ctx, from, &expected).await, "");
}

#[tokio::test]
async fn unions_of_dates_with_hours_and_timestamps_are_of_all_years() {
    let ctx = four();
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
        assert_eq!(rows(&ctx, &sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn functions_take_dates_of_all_years() {
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

#[tokio::test]
async fn intervals_finer_than_the_times_they_are_added_to() {
    let seconds =
        "SELECT TIMESTAMP '2020-01-01'::TIMESTAMP(0) AS x, TIMESTAMP '2020-01-01 00:00:00.5' AS y,
        DATE '2020-01-01' AS d, INTERVAL '12 hours' AS half, INTERVAL '2 days' AS days";
    for partitions in [1, 4] {
        let ctx = serrate::sql::session_with(
            datafusion::prelude::SessionConfig::new().with_target_partitions(partitions),
        );
        run(&ctx, &format!("CREATE OR REPLACE TABLE s AS {seconds}")).await.unwrap();
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
        assert_eq!(wrong(&ctx, "s", &expected).await, "");
        let refused = refusal(&ctx, "SELECT ragged_add([d], half) FROM s").await;
        assert!(refused.contains("not a multiple of the unit of Date32"), "{refused}");
    }
}

#[tokio::test]
async fn series_of_local_times_do_not_end_early() {
    let ctx = serrate::sql::session();
    let days = |first: &str, step: &str| {
        format!(
            "SELECT len(generate_series(TIMESTAMP '{first}' AT TIME ZONE 'Europe/Berlin', TIMESTAMP '2020-04-02 02:30:00' AT TIME ZONE 'Europe/Berlin', INTERVAL '{step}'))"
        )
    };
    let refused = refusal(&ctx, &days("2020-03-28 02:30:00", "1 day")).await;
    assert!(refused.contains("does not exist or occurs twice"), "{refused}");
    assert_eq!(rows(&ctx, &days("2020-03-28 12:00:00", "1 day")).await, "5");
    assert_eq!(rows(&ctx, &days("2020-03-28 02:30:00", "24 hours")).await, "5");
}

#[tokio::test]
async fn times_of_day_of_several_units_are_chosen_from() {
    let table = "CREATE TABLE clocks AS SELECT id, arrow_cast(s, 'Time64(Microsecond)') AS t
        FROM (VALUES (1, '10:00:00'), (2, NULL)) v(id, s)";
    let cases = [
        ("SELECT coalesce(t, TIME '10:00:01') FROM clocks ORDER BY id", "10:00:00; 10:00:01"),
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

#[tokio::test]
async fn parts_of_times_of_any_year() {
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
            // A zone, and a year that only seconds can hold.
            ("SELECT hour(TIMESTAMPTZ '2020-01-01 12:00:00Z'), year(arrow_cast(arrow_cast(-7000000000000, 'Int64'), 'Timestamp(s)'))", "12 -219852"),
            ("SELECT strftime(t, '%Y-%m-%d %H:%M:%S.%g') FROM t WHERE i > 3 ORDER BY i", "0000-02-29 00:00:01.000; -0044-03-14 11:50:00.000; 12024-11-01 16:53:20.000"),
        ],
    )
    .await;
}

#[tokio::test]
async fn date_trunc_knows_periods_of_many_years() {
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

#[tokio::test]
async fn widths_of_buckets_are_positive_and_of_one_kind() {
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

/// The planner evaluates some constants in lists before the analyzer rules run.
#[tokio::test]
async fn constants_in_lists_are_those_of_scalars() {
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
        let data_type = rows(&ctx, &format!("SELECT arrow_typeof({constant})")).await;
        let value = rows(&ctx, &format!("SELECT {constant}")).await;
        let list = rows(&ctx, &format!("SELECT arrow_typeof([{constant}]), [{constant}]")).await;
        assert_eq!(list, format!("List({data_type}) [{value}]"), "{constant}");
    }
    let sql =
        "SELECT ['99999999999999999999999999999999999999'::DECIMAL(38,0) + '5'::DECIMAL(38,0)]";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("does not fit"), "{e}");
}

#[tokio::test]
async fn constants_next_to_lists_are_those_of_scalars() {
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
