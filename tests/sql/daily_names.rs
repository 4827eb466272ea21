//! Names and forms of DuckDB that expand to others.

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
        assert!(refused.contains("is not an interval"), "{sql}: {refused}");
    }
}

/// When this test fails, `functions::interval_product` can be removed.
#[tokio::test]
async fn stock_intervals_are_still_not_multiplied() {
    let ctx = SessionContext::new();
    let product =
        rows_or_stock_error(&ctx, "SELECT INTERVAL '1 day' * x FROM (VALUES (2)) v(x)").await;
    assert!(product.is_err());
}

async fn rows_or_stock_error(
    ctx: &SessionContext,
    sql: &str,
) -> datafusion::error::Result<Vec<RecordBatch>> {
    ctx.sql(sql).await?.collect().await
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
async fn small_forms() {
    expect_rows(
        &["CREATE TABLE n AS SELECT * FROM (VALUES (1, NULL), (2, 5), (3, 6)) v(id, k)"],
        &[
            ("SELECT E'a\\nb' = 'a' || chr(10) || 'b', e'it\\'s'", "true it's"),
            ("SELECT list_value(1, 2)[2], list_value() IS NULL", "2 false"),
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
async fn strings_have_positions() {
    expect_rows(
        &["CREATE TABLE s AS SELECT * FROM (VALUES (1, 'täxt'), (2, ''), (3, NULL)) v(id, s)"],
        &[
            (
                "SELECT s[2], s[9], s[-1], s[2:3], s[:2], s[3:], s[-2:], s[3:2], s[4:9], s[-9:] FROM s WHERE id = 1",
                "ä  t äx tä xt xt  t täxt",
            ),
            ("SELECT s[1] = '', s[1] IS NULL, s[1:2] IS NULL FROM s WHERE id > 1 ORDER BY id", "true false false; NULL true true"),
            ("SELECT 'text'[2], ['ab', 'cd'][2][1]", "e c"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    let frame = serrate::sql::sql(&ctx, "SELECT 2 * INTERVAL '1 day', to_days(3)").await.unwrap();
    let names: Vec<&str> = frame.schema().fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["2 * INTERVAL '1 day'", "to_days(3)"]);
}
