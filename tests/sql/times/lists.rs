//! Functions of dates and times over lists, compared with the same functions over rows.

use super::*;

/// Functions of a timestamp `t`.
const FUNCTIONS: [&str; 29] = [
    "year(t)",
    "quarter(t)",
    "month(t)",
    "week(t)",
    "day(t)",
    "hour(t)",
    "minute(t)",
    "second(t)",
    "dayofweek(t)",
    "dayofyear(t)",
    "isodow(t)",
    "isoyear(t)",
    "century(t)",
    "millisecond(t)",
    "extract(decade FROM t)",
    "date_part('century', t)",
    "epoch(t)",
    "epoch_ms(t)",
    "epoch_us(t)",
    "dayname(t)",
    "monthname(t)",
    "last_day(t)",
    "strftime(t, '%d.%m.%Y %H:%M:%S')",
    "date_trunc('month', t)",
    "time_bucket(INTERVAL '7 days', t)",
    "time_bucket(INTERVAL '2 months', t)",
    "date_diff('month', t, TIMESTAMP '2020-02-29 12:00:00')",
    "date_sub('month', t, TIMESTAMP '2020-02-29 12:00:00')",
    "t + INTERVAL '1 month'",
];

/// Each row of `elements` is an element of a list of `lists`. The last two rows of `lists` are an
/// empty list and NULL.
const TABLES: [&str; 2] = [
    "CREATE TABLE elements AS SELECT * FROM (VALUES
       (1, 1, TIMESTAMP '1969-12-31 23:59:59.999999'), (1, 2, NULL), (1, 3, TIMESTAMP '2999-12-31'),
       (2, 1, TIMESTAMP '2020-01-31 10:00:00'), (2, 2, TIMESTAMP '0001-01-01'), (2, 3, NULL)) v(id, i, t)",
    "CREATE TABLE lists AS SELECT id, array_agg(t ORDER BY i) AS t FROM elements GROUP BY id
       UNION ALL SELECT 3, CAST([] AS TIMESTAMP[]) UNION ALL SELECT 4, NULL",
];

#[tokio::test]
async fn functions_of_times_apply_to_lists_of_every_kind() {
    let ctx = create_parallel_session();
    run_all(&ctx, &TABLES).await;
    let kinds =
        ["List(Timestamp(µs))", "LargeList(Timestamp(µs))", "FixedSizeList(3, Timestamp(µs))"];
    let mut wrong = String::new();
    for function in FUNCTIONS {
        let rows = format!(
            "SELECT id, array_agg({function} ORDER BY i) FROM elements GROUP BY id ORDER BY id"
        );
        let expected = rows_or_error(&ctx, &rows).await;
        assert!(
            expected.starts_with("1 [") && expected.contains("; 2 ["),
            "{function}: {expected}"
        );
        for kind in kinds {
            let lists = format!(
                "SELECT id, {function} FROM (SELECT id, arrow_cast(t, '{kind}') AS t FROM lists WHERE id <= 2) ORDER BY id"
            );
            let found = rows_or_error(&ctx, &lists).await;
            if found != expected {
                wrong.push_str(&format!("{function} of {kind}\n  has {found}\n  not {expected}\n"));
            }
        }
        let missing = format!("SELECT id, {function} FROM lists WHERE id > 2 ORDER BY id");
        let found = rows_or_error(&ctx, &missing).await;
        if found != "3 []; 4 NULL" {
            wrong.push_str(&format!("{function} of an empty list and NULL has {found}\n"));
        }
        // Two levels: a list of the lists of all rows gives the list of their results.
        let nested =
            format!("SELECT {function} FROM (SELECT array_agg(t ORDER BY id) AS t FROM lists)");
        let parts = format!("SELECT array_agg({function} ORDER BY id) FROM lists");
        let found = rows_or_error(&ctx, &nested).await;
        let expected = rows_or_error(&ctx, &parts).await;
        if found != expected {
            wrong.push_str(&format!("{function} of two levels\n  has {found}\n  not {expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
