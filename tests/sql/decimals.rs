//! Decimals combined with floats, and rounded decimals.

use super::*;

const ROWS: &str = "(VALUES (1, 1.26::DECIMAL(12, 2), 'NaN'::DOUBLE), (2, 1.30, 'inf'::DOUBLE),
    (3, 1.34, 1e30), (4, -0.5, -1e300), (5, NULL, 1.0), (6, 2.00, 2.0)) v(id, n, f)";

async fn ids(ctx: &SessionContext, condition: &str) -> Vec<i64> {
    let sql = format!("SELECT id FROM {ROWS} WHERE {condition} ORDER BY id");
    let frame = serrate::sql::sql(ctx, &sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    let batches = frame.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[tokio::test]
async fn floats_compare_with_decimals_as_doubles() {
    let ctx = four();
    for (condition, right) in [
        ("f > n", vec![1, 2, 3]),
        ("n > f", vec![4]),
        ("f = n", vec![6]),
        ("f IS DISTINCT FROM n", vec![1, 2, 3, 4, 5]),
        ("n BETWEEN -1e300 AND f", vec![1, 2, 3, 6]),
        ("f IN (n, 1)", vec![5, 6]),
        ("CASE f WHEN n THEN true END", vec![6]),
        ("greatest(f, n) = f", vec![1, 2, 3, 5, 6]),
        ("nullif(f, n) IS NULL", vec![6]),
        ("f > 1.5::DECIMAL(12, 2)", vec![1, 2, 3, 6]),
        ("id IN (SELECT w.id FROM (SELECT id, f FROM t) w JOIN t ON w.f = t.n)", vec![6]),
    ] {
        if condition.contains('t') && condition.contains("JOIN") {
            let sql = format!("CREATE OR REPLACE TABLE t AS SELECT * FROM {ROWS}");
            serrate::sql::sql(&ctx, &sql).await.unwrap().collect().await.unwrap();
        }
        assert_eq!(ids(&ctx, condition).await, right, "{condition}");
    }
}

#[tokio::test]
async fn rounded_decimals_keep_their_type() {
    let ctx = four();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.parquet");
    let sql = format!("COPY (SELECT * FROM {ROWS}) TO '{}'", file.display());
    serrate::sql::sql(&ctx, &sql).await.unwrap().collect().await.unwrap();
    for from in [ROWS.to_owned(), format!("'{}'", file.display())] {
        for places in ["1", "1::INT", "0 + 1", "(id - id + 1)", "-1", "0", "5"] {
            let round = format!("round(n, {places})");
            for sql in [
                format!("SELECT id FROM {from} WHERE {round} = {round} ORDER BY id"),
                format!(
                    "SELECT id FROM {from} WHERE {round} IS NOT DISTINCT FROM round(n + 0, {places}) AND n IS NOT NULL ORDER BY id"
                ),
                format!(
                    "SELECT id FROM {from} WHERE CASE WHEN id > 0 THEN {round} ELSE n END <= least({round}, n, 99) + 99 ORDER BY id"
                ),
                format!(
                    "SELECT min(id) AS id FROM (SELECT DISTINCT {round} AS r, id FROM {from} WHERE {round} IS NOT NULL) GROUP BY r, id ORDER BY id"
                ),
                format!(
                    "SELECT id FROM (SELECT {round} AS r, id FROM {from} UNION ALL SELECT n, id FROM {from} WHERE n > 99) WHERE r > -99 ORDER BY id"
                ),
                format!(
                    "SELECT a.id FROM {} a JOIN {} b ON round(a.n, {}) = round(b.n, {}) AND a.id = b.id ORDER BY a.id",
                    from.replace(" v(id, n, f)", ""),
                    from.replace(" v(id, n, f)", ""),
                    places.replace("id", "a.id"),
                    places.replace("id", "b.id")
                ),
            ] {
                if sql.contains(" JOIN (VALUES") {
                    continue;
                }
                let frame =
                    serrate::sql::sql(&ctx, &sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
                let batches = frame.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
                let found: Vec<i64> = batches
                    .iter()
                    .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec())
                    .collect();
                assert_eq!(found, [1, 2, 3, 4, 6], "{sql}");
            }
        }
    }
    let typed = "SELECT arrow_typeof(round(1.26::DECIMAL(12, 2), 1)) AS t, round(1.26::DECIMAL(12, 2), 1) AS r";
    let batches = serrate::sql::sql(&ctx, typed).await.unwrap().collect().await.unwrap();
    assert_eq!(batches[0].column(1).data_type().to_string(), "Decimal128(12, 1)");
}

/// When this test fails, the comparisons of `StableDecimals` can be removed.
#[tokio::test]
async fn stock_floats_become_decimals() {
    let ctx = SessionContext::new();
    let found = batches(&ctx, "SELECT 1e30::DOUBLE > arrow_cast(1.2, 'Decimal128(12, 2)')").await;
    assert!(found.is_err());
}

/// When this test fails, the `round` of `StableDecimals` can be removed.
#[tokio::test]
async fn stock_round_changes_type() {
    let ctx = SessionContext::new();
    let plan = ctx
        .sql("SELECT round(arrow_cast(x, 'Decimal128(12, 2)'), 1) AS r FROM (VALUES (1.26)) v(x)");
    let plan = plan.await.unwrap().into_unoptimized_plan();
    let analyzed = ctx.state().analyzer().execute_and_check(
        plan.clone(),
        &ctx.state().config_options().clone(),
        |_, _| {},
    );
    assert_ne!(plan.schema().field(0).data_type(), analyzed.unwrap().schema().field(0).data_type(),);
}

#[tokio::test]
async fn floats_are_looked_for_among_decimals_of_queries() {
    let ctx = four();
    for (sql, expected) in [
        (
            "SELECT count(*) FROM (VALUES ('nan'::DOUBLE), (1.5), (1e300)) t(x) WHERE x IN (SELECT 1.5::DECIMAL(3, 1))",
            1,
        ),
        (
            "SELECT count(*) FROM (VALUES ('nan'::DOUBLE), (1.5), (1e300)) t(x) WHERE x NOT IN (SELECT 1.5::DECIMAL(3, 1))",
            2,
        ),
        (
            "SELECT count(*) FROM (VALUES (1.5::DECIMAL(3, 1))) t(x) WHERE x IN (SELECT 'inf'::DOUBLE UNION ALL SELECT 1.5)",
            1,
        ),
        (
            "SELECT count(*) FROM (VALUES ('nan'::DOUBLE)) t(x) WHERE (x IN (SELECT 1.5::DECIMAL(3, 1))) IS FALSE",
            1,
        ),
    ] {
        let frame = serrate::sql::sql(&ctx, sql).await.unwrap();
        let found = frame.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
        assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), expected, "{sql}");
    }
}

#[tokio::test]
async fn values_of_decimals_and_floats_are_doubles() {
    let cases = [
        ("SELECT coalesce(x, y) FROM (VALUES (NULL::DECIMAL(5,2), 1.5e-20)) t(x, y)", "1.5e-20"),
        (
            "SELECT CASE WHEN x > 0 THEN x ELSE y END FROM (VALUES (NULL::DECIMAL(5,2), 1e20)) t(x, y)",
            "1e20",
        ),
        (
            "SELECT CASE y WHEN x THEN 1 ELSE 2 END FROM (VALUES (1.5::DECIMAL(5,2), 1e20)) t(x, y)",
            "2",
        ),
        (
            "SELECT v FROM (SELECT 5.05::DECIMAL(5,2) AS v UNION ALL SELECT 1e20) ORDER BY v",
            "5.05; 1e20",
        ),
        (
            "SELECT v FROM (SELECT 1e20 AS v UNION SELECT 5.05::DECIMAL(5,2) UNION SELECT NULL) ORDER BY v",
            "5.05; 1e20; NULL",
        ),
        (
            "SELECT v + 1 FROM (SELECT 5.05::DECIMAL(5,2) AS v, 1 AS w UNION ALL SELECT 1e20, 2) WHERE w > 1",
            "1e20",
        ),
        ("SELECT [5.05::DECIMAL(5,2), 1e20]", "[5.05, 1e20]"),
        ("SELECT coalesce(x, 'NaN'::DOUBLE) FROM (VALUES (NULL::DECIMAL(5,2))) t(x)", "NaN"),
        (
            "SELECT coalesce(x, 0.0), arrow_typeof(coalesce(x, 0.0)) FROM (VALUES (5.05::DECIMAL(5,2))) t(x)",
            "5.05 Decimal128(5, 2)",
        ),
        (
            "SELECT sum(CASE WHEN x > 0 THEN x ELSE 0.125 END) FROM (VALUES (5.05::DECIMAL(5,2)), (-1)) t(x)",
            "5.175",
        ),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn long_numbers_keep_their_digits_beside_decimals() {
    let setup = [
        "CREATE TABLE d AS SELECT column1 AS id, arrow_cast(column2, 'Decimal128(20, 2)') AS x FROM
            (VALUES (1, '12345678901234567.89'), (2, '12345678901234567.88'))",
    ];
    let cases = [
        ("SELECT id FROM d WHERE x = 12345678901234567.89", "1"),
        ("SELECT id FROM d WHERE 12345678901234567.89 > x", "2"),
        ("SELECT id FROM d WHERE -x = -12345678901234567.89", "1"),
        ("SELECT id FROM d WHERE x = 12345678901234567.89::DECIMAL(20,2)", "1"),
        ("SELECT id FROM d WHERE x BETWEEN 12345678901234567.885 AND 12345678901234567.895", "1"),
        (
            "SELECT 12345678901234567.89::DECIMAL(20,2), 12345678901234567890123::DECIMAL(38,0)",
            "12345678901234567.89 12345678901234567890123",
        ),
        ("SELECT id FROM d WHERE x IN (12345678901234567.88, 1.5)", "2"),
        ("SELECT id FROM d WHERE x BETWEEN 0.5 AND 12345678901234567.885", "2"),
        ("SELECT id FROM d WHERE x NOT IN (12345678901234567.88, 1.5)", "1"),
        ("SELECT x = 0.30000000000000004 FROM (VALUES (0.1::DOUBLE + 0.2)) t(x)", "true"),
        (
            "SELECT 0.30000000000000004, x > 1234567890.12345678 FROM (VALUES ([1.0, 1e20])) t(x)",
            "0.30000000000000004 [false, true]",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn columns_of_values_with_decimals_and_floats_are_doubles() {
    let cases = [
        ("SELECT * FROM (VALUES (1.5::DECIMAL(5,2)), (1e-20)) t(x)", "1.5; 1e-20"),
        (
            "SELECT * FROM (VALUES (1.5::DECIMAL(5,2)), (1e300::DOUBLE), (NULL)) t(x)",
            "1.5; 1e300; NULL",
        ),
        (
            "SELECT x + 1, y FROM (VALUES (1.5::DECIMAL(5,2), 1), ('NaN'::DOUBLE, 2)) t(x, y)",
            "2.5 1; NaN 2",
        ),
        (
            "SELECT arrow_typeof(x) FROM (VALUES (1.5::DECIMAL(5,2)), (0.25::FLOAT)) t(x)",
            "Float64; Float64",
        ),
        ("VALUES (1.5::DECIMAL(5,2)), (1e-20)", "1.5; 1e-20"),
        (
            "SELECT * FROM (VALUES (1.5::DECIMAL(30,15)), (1e-20::DOUBLE::DECIMAL(30,15))) t(x)",
            "1.500000000000000; 0.000000000000000",
        ),
        (
            "SELECT x::VARCHAR FROM (VALUES (1.5::DECIMAL(5,2)), (2.5)) t(x)",
            "1.500000000000000; 2.500000000000000",
        ),
        ("SELECT * FROM d", "1.50; 0.13"),
    ];
    let setup = [
        "CREATE TABLE d(x DECIMAL(5,2))",
        "INSERT INTO d VALUES (1.5::DECIMAL(5,2)), (0.1250000000000001::DOUBLE)",
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn nullif_of_an_integer_is_an_integer() {
    let cases = [
        (
            "SELECT nullif(9007199254740993, 0.5), nullif(2, 2.0), nullif(NULL::INT, 0.5)",
            "9007199254740993 NULL NULL",
        ),
        (
            "SELECT nullif(x, 0.5) FROM (VALUES (9007199254740993), (1), (NULL)) t(x) ORDER BY x",
            "1; 9007199254740993; NULL",
        ),
        (
            "SELECT v FROM (SELECT nullif(x, 1.0) + 1 AS v FROM (VALUES (2), (1)) t(x) UNION ALL SELECT 0.5) ORDER BY v",
            "0.5; 3.0; NULL",
        ),
        ("SELECT sum(nullif(x, y)) FROM (VALUES (2, 2.0), (1, 0.5)) t(x, y)", "1"),
        ("SELECT nullif(1.5, 1)", "1.5"),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn literals_become_decimals_digit_by_digit() {
    expect_rows(
        &[],
        &[
            ("SELECT 1.005::DECIMAL(10, 2), -0.285::DECIMAL(10, 2), 10.075::DECIMAL(10, 2)", "1.01 -0.29 10.08"),
            ("SELECT 0.1::DECIMAL(38, 30)", "0.100000000000000000000000000000"),
            ("SELECT CAST((123456789.123) AS DECIMAL(30, 10)), TRY_CAST(99.995 AS DECIMAL(4, 2))", "123456789.1230000000 NULL"),
            ("SELECT 1e2::DECIMAL(10, 2), 5::DECIMAL(4, 1), .5::DECIMAL(4, 1), 2.::DECIMAL(4, 1)", "100.00 5.0 0.5 2.0"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    let frame = serrate::sql::sql(&ctx, "SELECT 1.5::DECIMAL(3, 1), -2.5::DECIMAL(3, 1) + 1")
        .await
        .unwrap();
    let names: Vec<_> = frame.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["1.5", "-2.5 + 1"]);
}
