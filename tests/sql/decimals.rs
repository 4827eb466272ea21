//! Decimals: comparisons with floats and integers, rounding, precision.

use super::*;

const ROWS: &str = "(VALUES (1, 1.26::DECIMAL(12, 2), 'NaN'::DOUBLE), (2, 1.30, 'inf'::DOUBLE),
    (3, 1.34, 1e30), (4, -0.5, -1e300), (5, NULL, 1.0), (6, 2.00, 2.0)) v(id, n, f)";

async fn query_ids(ctx: &SessionContext, condition: &str) -> Vec<i64> {
    let sql = format!("SELECT id FROM {ROWS} WHERE {condition} ORDER BY id");
    query_ints(ctx, &sql).await
}

#[tokio::test]
async fn floats_compare_with_decimals_as_doubles() {
    let ctx = create_parallel_session();
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
        assert_eq!(query_ids(&ctx, condition).await, right, "{condition}");
    }
}

#[tokio::test]
async fn a_negative_scale_is_an_error() {
    let ctx = create_parallel_session();
    for sql in [
        "SELECT 150::DECIMAL(5, -2)",
        "SELECT CAST(x AS NUMERIC(5, -2)) FROM (VALUES (1)) v(x)",
        "SELECT TRY_CAST([150] AS DECIMAL(5, -2)[])",
        "CREATE TABLE t (a DECIMAL(5, -2))",
        "SELECT arrow_cast(150, 'Decimal128(5, -2)')",
        "SELECT x FROM (VALUES (1)) v(x) WHERE arrow_try_cast(x, 'Decimal32(5, -2)') > 1",
        "SELECT arrow_cast([150], 'List(Decimal256(5, -2))')",
        "SELECT arrow_cast(x, 'Dictionary(Int32, Decimal64(5, -2))') FROM (VALUES (1)) v(x)",
        "SELECT ragged_cast([150], 'Decimal128(5, -2)')",
        "SELECT ragged_try_cast([x], 'Decimal128(5, -2)') FROM (VALUES (1)) v(x)",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("write DECIMAL(7, 0), and round(x, -2)"), "{sql}: {e}");
    }
    let sql = "SELECT round(150::DECIMAL(7, 0), -2) = 200";
    assert_eq!(rows_or_error(&ctx, sql).await, "true");
}

#[tokio::test]
async fn rounded_decimals_keep_their_type() {
    let ctx = create_parallel_session();
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

/// When this test fails, the comparisons of `serrate_stable_decimals` can be removed.
#[tokio::test]
async fn stock_floats_become_decimals() {
    let ctx = SessionContext::new();
    let found =
        stock_batches(&ctx, "SELECT 1e30::DOUBLE > arrow_cast(1.2, 'Decimal128(12, 2)')").await;
    assert!(found.is_err());
}

/// When this test fails, the `round` of `serrate_stable_decimals` can be removed.
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
async fn floats_are_compared_with_decimals_of_subqueries_as_doubles() {
    let ctx = create_parallel_session();
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
async fn case_and_coalesce_of_decimals_and_floats_are_doubles() {
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
async fn long_literals_keep_their_digits_next_to_decimals() {
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
        (
            "SELECT list_contains([x], 12345678901234567.89), list_has([x], 12345678901234567.9), list_position([1, x], 12345678901234567.890) FROM d ORDER BY id",
            "true false 2; false false NULL",
        ),
        (
            "SELECT list_contains([0.1::DOUBLE + 0.2], 0.30000000000000004), array_has([1], 1.00000000000000001), list_contains([-x], -12345678901234567.88) FROM d ORDER BY id",
            "true true false; true true true",
        ),
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
async fn values_are_rewritten_as_other_expressions() {
    let cases = [
        (
            "SELECT x::DECIMAL(20,4) FROM (VALUES (1.25::DECIMAL(10,2)), (99999999.99), (-123456.7), (NULL)) t(x)",
            "1.2500; 99999999.9900; -123456.7000; NULL",
        ),
        (
            "SELECT x = 99999999.99::DECIMAL(10,2) FROM (VALUES (1.25::DECIMAL(10,2)), (99999999.99)) t(x)",
            "false; true",
        ),
        (
            "SELECT * FROM (VALUES (CASE WHEN true THEN 1.5::DECIMAL(5,2) ELSE 1e300::DOUBLE END)) t(x)",
            "1.5",
        ),
        (
            "SELECT * FROM (VALUES (CASE WHEN false THEN 1.5::DECIMAL(5,2) ELSE 1e300::DOUBLE END), (2.5::DECIMAL(5,2)), (7)) t(x)",
            "1e300; 2.5; 7.0",
        ),
        ("SELECT * FROM (VALUES ([1.5::DECIMAL(5,2), 1e300::DOUBLE])) t(x)", "[1.5, 1e300]"),
        (
            "SELECT * FROM (VALUES (1e30::DOUBLE > 1.2::DECIMAL(12,2)), (16777217::INT = 16777216::FLOAT)) t(x)",
            "true; false",
        ),
        (
            "SELECT * FROM (VALUES (coalesce(0.0, 1.25::DECIMAL(5,2))), (3.14159)) t(x)",
            "0.000000000000000; 3.141590000000000",
        ),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn subqueries_use_the_type_of_nullif() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (9007199254740993), (9007199254740992)) v(b)"],
        &[(
            "SELECT u.c, (SELECT count(*) FROM t WHERE t.b = u.c), (SELECT max(t.b) FROM t WHERE t.b <= u.c)
                FROM (SELECT nullif(b, 0.5) AS c FROM t) u ORDER BY u.c",
            "9007199254740992 1 9007199254740992; 9007199254740993 1 9007199254740993",
        )],
    )
    .await;
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

#[tokio::test]
async fn strings_with_exponents_become_decimals() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, '1e2'), (2, '-1.50E-1'), (3, '0.5'), (4, NULL)) v(id, s)",
        "CREATE TABLE d (x DECIMAL(10, 3))",
        "INSERT INTO d SELECT s FROM t WHERE id < 3",
    ];
    let cases = [
        ("SELECT '1e2'::DECIMAL(10, 2), '1.5e-3'::DECIMAL(10, 3)", "100.00 0.002"),
        ("SELECT '1e2'::DECIMAL = 100, '-1e-400'::DECIMAL(10, 3)", "true 0.000"),
        ("SELECT s::DECIMAL(10, 3) FROM t ORDER BY id", "100.000; -0.150; 0.500; NULL"),
        ("SELECT ['1e2', NULL, '2']::DECIMAL(10, 2)[]", "[100.00, , 2.00]"),
        ("SELECT arrow_cast(s, 'Decimal128(10, 3)') FROM t WHERE id = 2", "-0.150"),
        (
            "SELECT TRY_CAST('1e400' AS DECIMAL(10, 2)), TRY_CAST('1e' AS DECIMAL(10, 2))",
            "NULL NULL",
        ),
        ("SELECT TRY_CAST(s AS DECIMAL(2, 1)) FROM t WHERE id = 1", "NULL"),
        ("SELECT x FROM d ORDER BY x", "-0.150; 100.000"),
        ("SELECT x FROM d WHERE x = '1e2'", "100.000"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    for sql in ["SELECT '1e400'::DECIMAL(10, 2)", "SELECT 'e2'::DECIMAL(10, 2)"] {
        assert!(!error(&ctx, sql).await.is_empty(), "{sql}");
    }
}

/// When this test fails, `serrate_decimal_texts` can be removed.
#[tokio::test]
async fn stock_exponents_are_still_no_decimals() {
    let ctx = SessionContext::new();
    let sql = "SELECT arrow_cast('1e2', 'Decimal128(10, 2)')";
    assert!(stock_batches(&ctx, sql).await.is_err());
}

/// Decimals in lists compare and compute as scalars do, not as doubles.
#[tokio::test]
async fn decimals_in_lists_keep_their_digits() {
    let setup = [
        "CREATE TABLE t AS SELECT 9007199254740993::DECIMAL(20, 0) AS n, 123456789012345678.01::DECIMAL(20, 2) AS m,
            9007199254740993 AS i, 2.5::DECIMAL(3, 1) AS half, 0.5 AS f",
    ];
    let cases = [
        ("SELECT [n] + 1, n + 1 FROM t", "[9007199254740994] 9007199254740994"),
        ("SELECT [n] = 9007199254740992, [n] > 9007199254740992 FROM t", "[false] [true]"),
        ("SELECT [n] = i, ragged_eq([n], [i]), [i] = n FROM t", "[true] [true] [true]"),
        ("SELECT [m] = 123456789012345678.010::DECIMAL(21, 3) FROM t", "[true]"),
        ("SELECT [123456789012345678::DECIMAL(20, 0)] = 123456789012345679", "[false]"),
        (
            "SELECT ragged_maximum([n], [9007199254740992]), [n] - [i] FROM t",
            "[9007199254740993] [0]",
        ),
        (
            "SELECT [n] * half, n * half, [n] + [m] FROM t",
            "[22517998136852482.5] 22517998136852482.5 [132463988267086671.01]",
        ),
        (
            "SELECT [half] + f, [half] * 2, [half] > 2, [half] = 2.5 FROM t",
            "[3.0] [5.0] [true] [true]",
        ),
        ("SELECT [half, NULL] + NULL, [NULL]::DECIMAL(3, 1)[] + 1 FROM t", "[, ] []"),
        (
            "SELECT ragged_where([true, false], [n, n], [i, i + 1]) FROM t",
            "[9007199254740993, 9007199254740994]",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

/// Results of up to 38 digits are exact, and results of more digits are errors.
#[tokio::test]
async fn decimals_do_not_exceed_their_precision() {
    let ctx = create_parallel_session();
    let sql = "CREATE TABLE t AS SELECT * FROM (VALUES (60000000::DECIMAL(38, 30), 1.5::DECIMAL(38, 10), 1),
        (60000000, 1100000000, 1), (1, 2, 2)) v(x, y, k)";
    serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    for refused in [
        "SELECT x + x FROM t",
        "SELECT y * y FROM t",
        "SELECT -x - x FROM t",
        "SELECT [x] + x FROM t",
        "SELECT sum(x) FROM t",
        "SELECT k, sum(x) FROM t GROUP BY k",
        "SELECT sum(x) OVER (ORDER BY k) FROM t",
        "SELECT sum(DISTINCT x) + 59999999 FROM t",
        "SELECT 9e37::DECIMAL(38, 0) + 2e37::DECIMAL(38, 0)",
    ] {
        let found = rows_or_error(&ctx, refused).await;
        assert!(found.contains("fit"), "{refused}: {found}");
    }
    let cases = [
        ("SELECT x + 1 FROM t WHERE k = 2", "2.000000000000000000000000000000"),
        ("SELECT avg(y) FROM t WHERE k = 1", "550000000.75000000000000"),
        (
            "SELECT k, sum(y) FROM t GROUP BY k ORDER BY k",
            "1 1100000001.5000000000; 2 2.0000000000",
        ),
        (
            "SELECT sum(x) OVER (ORDER BY k DESC ROWS 0 PRECEDING) FROM t ORDER BY 1",
            "1.000000000000000000000000000000; 60000000.000000000000000000000000000000; 60000000.000000000000000000000000000000",
        ),
        (
            "SELECT arrow_typeof(sum(x)), arrow_typeof(avg(y)) FROM t WHERE false",
            "Decimal128(38, 30) Decimal128(38, 14)",
        ),
        ("SELECT sum(DISTINCT y) FROM t", "1100000003.5000000000"),
    ];
    for (sql, expected) in cases {
        assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
    }
}

/// `sql::workarounds::types::decimals` and `functions::decimal_range` can be removed once this test
/// fails.
#[tokio::test]
async fn stock_decimals_still_exceed_their_precision() {
    let ctx = SessionContext::new();
    let sql =
        "SELECT (x + x)::TEXT FROM (VALUES (arrow_cast('60000000', 'Decimal128(38, 30)'))) t(x)";
    let found = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    let found = found[0].column(0);
    let found = datafusion::arrow::util::display::array_value_to_string(found, 0).unwrap();
    assert!(!found.starts_with("120000000"), "{found}");
}

/// A scalar next to a list is cast to the element type of the list only if the cast is exact.
#[tokio::test]
async fn scalars_next_to_lists_keep_their_digits() {
    let ctx = create_parallel_session();
    let from = "FROM (VALUES (2.5::DECIMAL(3, 1), 2.25::DECIMAL(5, 2), 2.0::DECIMAL(3, 1), TIMESTAMP '2020-01-01 12:00:00')) t(y, z, w, ts)";
    for refused in [
        "ragged_fill_null([1, NULL], y)",
        "ragged_fill_null([1.5::DECIMAL(3, 1), NULL], z)",
        "ragged_fill_null([DATE '2020-01-01', NULL], ts)",
        "ragged_where([true, false], [DATE '2020-01-01', NULL], ts)",
        "ragged_at_or([DATE '2020-01-01', NULL], ts, 1)",
        "ragged_pad([DATE '2020-01-01'], 2, TIMESTAMP '2020-01-01 12:00:00')",
        "ragged_scatter([DATE '2020-01-01'], [0], ts)",
        "ragged_scatter([1, 2], [0], y)",
        "ragged_fill_null([TIMESTAMP '2020-01-01'::TIMESTAMP(0), NULL], '2020-01-01 00:00:00.5')",
        "ragged_fill_null([DATE '2020-01-01', NULL], '2020-01-01 12:00:00')",
        "ragged_fill_null([1.5::FLOAT, NULL], 1e300)",
    ] {
        let found = rows_or_error(&ctx, &format!("SELECT {refused} {from}")).await;
        assert!(found.contains("cannot be converted exactly"), "{refused}: {found}");
    }
    for (kept, expected) in [
        ("ragged_fill_null([1, NULL], w)", "[1, 2]"),
        ("ragged_fill_null([1.5::DECIMAL(3, 1), NULL], y)", "[1.5, 2.5]"),
        (
            "ragged_fill_null([TIMESTAMP '2020-01-01', NULL], DATE '2020-02-01')",
            "[2020-01-01T00:00:00, 2020-02-01T00:00:00]",
        ),
        ("ragged_fill_null([0.5::FLOAT, NULL], 0.1)", "[0.5, 0.1]"),
        ("ragged_at_or([1], w, 5)", "2"),
    ] {
        let found = rows_or_error(&ctx, &format!("SELECT {kept} {from}")).await;
        assert_eq!(found, expected, "{kept}");
    }
}

#[tokio::test]
async fn literals_become_decimals_wherever_they_are_cast() {
    let setup = [
        "CREATE TABLE t (a DECIMAL(10, 2), b DECIMAL(38, 30), c DECIMAL(10, 2)[])",
        "INSERT INTO t VALUES (1.005, 0.1, [1.005, 0.285])",
        "CREATE TABLE u AS SELECT 1 AS k, 0::DECIMAL(10, 2) AS a",
        "UPDATE u SET a = 1.005 WHERE k = 1",
    ];
    let cases = [
        ("SELECT a, b, c FROM t", "1.01 0.100000000000000000000000000000 [1.01, 0.29]"),
        ("SELECT a FROM u", "1.01"),
        (
            "SELECT [1.005]::DECIMAL(10, 2)[], CAST([[1.005, NULL], NULL] AS DECIMAL(10, 2)[][])",
            "[1.01] [[1.01, ], ]",
        ),
        ("SELECT [1.5::DECIMAL(3, 1), 1e-20::DOUBLE]", "[1.5, 1e-20]"),
        (
            "SELECT {'a': 1.005, 'b': -0.285}::STRUCT(a DECIMAL(10, 2), b DOUBLE)",
            "{a: 1.01, b: -0.285}",
        ),
        (
            "SELECT [{'a': 1.005}, {'a': k}]::STRUCT(a DECIMAL(10, 2))[] FROM u",
            "[{a: 1.01}, {a: 1.00}]",
        ),
        (
            "SELECT CAST({'a': [1.005, 2], 'b': {'c': (-1.005)}} AS STRUCT(a DECIMAL(10, 2)[], b STRUCT(c DECIMAL(10, 2))))",
            "{a: [1.01, 2.00], b: {c: -1.01}}",
        ),
        ("SELECT row(1.005, 2)::STRUCT(a DECIMAL(10, 2), b INT)", "{a: 1.01, b: 2}"),
        ("SELECT [1.005, k, k::DOUBLE]::DECIMAL(10, 2)[] FROM u", "[1.01, 1.00, 1.00]"),
        (
            "SELECT TRY_CAST({'a': 1.005, 'b': 123.5} AS STRUCT(a DECIMAL(10, 2), b DECIMAL(4, 2)))",
            "{a: 1.01, b: }",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn decimals_within_lists_and_structs_compare_with_floats_as_doubles() {
    let setup = [
        "CREATE TABLE a AS SELECT [0::DECIMAL(3, 1)] AS x, {'v': 0::DECIMAL(3, 1), 'n': 1} AS s, 0::DECIMAL(3, 1) AS k",
        "CREATE TABLE b AS SELECT [1e-20::DOUBLE] AS x, {'v': 1e-20::DOUBLE, 'n': 1} AS s, 1e-20::DOUBLE AS k",
    ];
    let cases = [
        (
            "SELECT a.x = b.x, a.s = b.s, a.x < b.x, a.x IN (b.x) FROM a, b",
            "false false true false",
        ),
        ("SELECT count(*) FROM a JOIN b ON a.x = b.x", "0"),
        ("SELECT count(*) FROM a JOIN b USING (x)", "0"),
        ("SELECT count(*) FROM a JOIN b USING (k)", "0"),
        ("SELECT count(*) FROM a WHERE x IN (SELECT x FROM b) OR s IN (SELECT s FROM b)", "0"),
        ("SELECT x FROM a UNION SELECT x FROM b ORDER BY x", "[0.0]; [1e-20]"),
        ("SELECT x FROM a UNION ALL SELECT NULL UNION ALL SELECT x FROM b", "[0.0]; NULL; [1e-20]"),
        (
            "SELECT coalesce(a.x, b.x), CASE WHEN a.k > 0 THEN a.s ELSE b.s END FROM a, b",
            "[0.0] {v: 1e-20, n: 1}",
        ),
        ("SELECT [a.x, b.x] FROM a, b", "[[0.0], [1e-20]]"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn comparisons_with_rounding_casts_are_evaluated_after_the_cast() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 1.25::DECIMAL(10, 2)), (2, -0.25), (3, 10.05), (4, NULL)) v(id, x)",
        "CREATE TABLE n AS SELECT * FROM (VALUES (3000000000), (1), (NULL)) v(x)",
    ];
    let ids = |condition: &str| format!("SELECT id FROM t WHERE {condition} ORDER BY id");
    let of = |condition: &str| format!("SELECT x FROM n WHERE {condition} ORDER BY x");
    let cases = [
        (ids("x::INT = 1"), "1"),
        (ids("x::INT <= 1"), "1; 2"),
        (ids("x::INT <> 1"), "2; 3"),
        (ids("1 < x::BIGINT"), "3"),
        (ids("x::INT IN (1, 2)"), "1"),
        (ids("x::INT NOT IN (1, 2)"), "2; 3"),
        (ids("x::INT BETWEEN 0 AND 1"), "1; 2"),
        (ids("TRY_CAST(x AS INT) = 10"), "3"),
        (ids("x::DECIMAL(10, 1) = 1.3::DECIMAL(10, 1)"), "1"),
        (ids("x::DECIMAL(12, 0) IS NOT DISTINCT FROM 0::DECIMAL(12, 0)"), "2"),
        (ids("CASE WHEN x::INT = 1 THEN 1 ELSE 0 END = 1"), "1"),
        ("SELECT count(*) FILTER (WHERE x::INT = 1), bool_or(x::INT = 10) FROM t".into(), "1 true"),
        (of("TRY_CAST(x AS INT) <> 5"), "1"),
        (of("NOT (TRY_CAST(x AS INT) = 5)"), "1"),
        (of("TRY_CAST(x AS INT) NOT IN (5, 6)"), "1"),
        (of("TRY_CAST(x AS DECIMAL(3, 0)) <> 5"), "1"),
        (of("x::DECIMAL(20, 2) = 1"), "1"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `keep_compared_casts` need not keep casts of decimals and integers in
/// place.
#[tokio::test]
async fn stock_casts_still_move_to_literals() {
    let ctx = SessionContext::new();
    let sql = "SELECT count(*) FROM (VALUES (1.25), (2.5)) v(x) WHERE arrow_cast(x, 'Decimal128(5, 2)')::INT = 1";
    let found = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), 0);
}

#[tokio::test]
async fn integers_compare_with_float32_as_doubles() {
    let setup = [
        "CREATE TABLE t AS SELECT 16777217::INT AS a, 16777216::REAL AS b",
        "CREATE TABLE n AS SELECT [0.1::REAL] AS x, 0.1::DOUBLE AS d",
    ];
    let cases = [
        (
            "SELECT a = b, b IN (a), [b] IN (a), [a] = b, b = 16777217, a BETWEEN b AND b FROM t",
            "false false [false] [false] false false",
        ),
        (
            "SELECT b = 16777216, b > 5, a > b, CASE a WHEN b THEN 1 ELSE 2 END FROM t",
            "true true true 2",
        ),
        ("SELECT count(*) FROM t x JOIN t y ON x.a = y.b", "0"),
        (
            "SELECT [b] = 16777217, [b] IN (16777217), [b] < 16777217, 16777217 > [b] FROM t",
            "[false] [false] [true] [true]",
        ),
        (
            "SELECT [b] = 16777216, [b] IN (16777216, NULL), ragged_between([b], 16777217, 16777218) FROM t",
            "[true] [true] [false]",
        ),
        (
            "SELECT [b] = 16777217.0, [0.1::REAL] = 0.1, arrow_typeof([b] + 16777217) FROM t",
            "[true] [true] List(Float32)",
        ),
        (
            "SELECT ragged_isin([0.1::REAL], ['0.1000000001'::DECIMAL(12, 10)]), ragged_isin([1.0::DOUBLE], ['1.00000000000000000001'::DECIMAL(38, 20)])",
            "[true] [true]",
        ),
        (
            "SELECT ragged_eq([r], [d]), ragged_eq([r], [f]), ragged_isin([r], [d]), ragged_isin([r], [f]), r IN (d), r IN (f) FROM (VALUES (0.1::REAL, 0.1::DECIMAL(2, 1), 0.1::DOUBLE), (0.5::REAL, 0.5::DECIMAL(2, 1), 0.5::DOUBLE)) v(r, d, f) ORDER BY f",
            "[false] [false] [false] [false] false false; [true] [true] [true] [true] true true",
        ),
        (
            "SELECT ragged_isin(x, [0.1]), x IN (0.1), x IN (0.1, d), x IN (d), ragged_isin(x, [d, NULL]), x = (SELECT max(d) FROM n), ragged_isin(x, (SELECT array_agg(d) FROM n)) FROM n",
            "[true] [true] [true] [false] [] [false] [false]",
        ),
        (
            "SELECT ragged_isin([inf], [d]), ragged_isin([inf], [1e300]), [inf] = 1e300, ragged_isin([inf], [inf::DOUBLE]) FROM (VALUES ('inf'::REAL, 1e300)) v(inf, d)",
            "[false] [false] [false] [true]",
        ),
        (
            "SELECT [b] IN (16777217, 0.5), [b] NOT IN (16777217, 0.5), [b] IN (16777216, 0.5) FROM t",
            "[false] [true] [true]",
        ),
        (
            "SELECT x = 9223372036854775808, x < 9223372036854775808, x IN (9223372036854775808) FROM (VALUES ([9223372036854775807])) v(x)",
            "[false] [true] [false]",
        ),
        (
            "SELECT ragged_between(x, 9223372036854775808, 9223372036854775809), 9223372036854775808 > x, ragged_eq(x, 18446744073709551615) FROM (VALUES ([9223372036854775807, NULL])) v(x)",
            "[false, ] [true, ] [false, ]",
        ),
        (
            "SELECT ifnull(123456789::BIGINT UNSIGNED, 0), arrow_typeof(nvl(NULL, DATE '2020-01-01'))",
            "123456789 Date32",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn lists_of_decimals_and_floats_are_combined_as_doubles() {
    let setup = [
        "CREATE TABLE t AS SELECT 0.3::DECIMAL(2, 1) AS d, 0.30000000000000004 AS f, 'NaN'::DOUBLE AS n, 0.5::DECIMAL(38, 10) AS p, 'NaN'::REAL AS g",
    ];
    let cases = [
        (
            "SELECT list_has_any([d], [f]), list_has_all([d], [f]), list_has_any([n, d], [d]) FROM t",
            "false false true",
        ),
        (
            "SELECT list_contains([f], d), list_contains([n], d), list_contains([g, p], p), list_contains([g], p) FROM t",
            "false false true false",
        ),
        (
            "SELECT array_concat([d], [f, n]), [d] || f, array_append([d], n), array_prepend(f, [d]) FROM t",
            "[0.3, 0.30000000000000004, NaN] [0.3, 0.30000000000000004] [0.3, NaN] [0.30000000000000004, 0.3]",
        ),
        (
            "SELECT array_intersect([d], [f]), array_except([d], [f]), array_union([d], [f, d]) FROM t",
            "[] [0.3] [0.3, 0.30000000000000004]",
        ),
        (
            "SELECT array_remove([d, d], f), array_replace([d], d, f) FROM t",
            "[0.3, 0.3] [0.30000000000000004]",
        ),
        ("SELECT arrow_typeof(array_append([p], g)) FROM t", "List(Float64)"),
        // Literals next to decimals.
        ("SELECT list_contains([d], 0.3), array_remove([d], 0.3) FROM t", "true []"),
        ("SELECT list_contains([0.1::DECIMAL(38, 38)], 0.1)", "true"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn integers_compare_with_narrow_floats_as_doubles_in_subqueries_and_lists() {
    let setup = [
        "CREATE TABLE t AS SELECT 16777217::INT AS a, 16777216::REAL AS b, 2049 AS i, arrow_cast(2048.0, 'Float16') AS h",
    ];
    let cases = [
        (
            "SELECT a IN (SELECT b FROM t), a = ANY (SELECT b FROM t), b IN (SELECT a FROM t) FROM t",
            "false false false",
        ),
        (
            "SELECT [a] = [b], [a] > [b], [a] IN ([b]), [a] BETWEEN [b] AND [b], [[a]] = [[b]] FROM t",
            "false true false false false",
        ),
        ("SELECT {'a': a} = {'a': b}, (a, 1) IN ((b, 1)) FROM t", "false false"),
        (
            "SELECT list_contains([b], a), list_has_any([b], [a]), a IN x, list_contains([[b]], [a]) FROM (SELECT a, b, [b] AS x FROM t)",
            "false false false false",
        ),
        ("SELECT list_contains([b], 16777217), list_contains([b], 16777216) FROM t", "false true"),
        ("SELECT nullif(a, b) FROM t", "16777217"),
        (
            "SELECT count(*) FROM (SELECT a AS k FROM t) x JOIN (SELECT b AS k FROM t) y USING (k)",
            "0",
        ),
        ("SELECT count(*) FROM (SELECT [a] AS k FROM t) x JOIN t y ON x.k = [y.b]", "0"),
        ("SELECT count(*) FROM (SELECT a FROM t INTERSECT SELECT b FROM t) x", "0"),
        (
            "SELECT i = h, i > h, i IN (h), h = 2049, h = 2048, i BETWEEN h AND h FROM t",
            "false true false false true false",
        ),
        ("SELECT count(*) FROM t x JOIN t y ON x.i = y.h", "0"),
        // Nothing compares the result of CASE, so the branches keep FLOAT as their common type.
        ("SELECT arrow_typeof(CASE WHEN true THEN [b] ELSE [a] END) FROM t", "List(Float32)"),
        (
            "SELECT CASE WHEN true THEN j ELSE h END, coalesce(j, h), j + h, [j, h] FROM (SELECT 70000 AS j, h FROM t)",
            "70000.0 70000.0 72048.0 [70000.0, 2048.0]",
        ),
        ("SELECT max(x) FROM (SELECT 70000 AS x UNION ALL SELECT h FROM t)", "70000.0"),
        ("SELECT arrow_typeof(h + 1), arrow_typeof(h + 70000) FROM t", "Float16 Float64"),
    ];
    expect_rows(&setup, &cases).await;
}

/// `sql::workarounds::types::decimals` need not cast integers next to float32 once this test fails.
#[tokio::test]
async fn stock_integers_are_still_rounded_to_float32() {
    let ctx = SessionContext::new();
    let sql = "SELECT a = b FROM (SELECT CAST(16777217 AS INT) AS a, CAST(16777216 AS REAL) AS b)";
    let found = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    assert!(found[0].column(0).as_boolean().value(0));
}

#[tokio::test]
async fn decimals_in_lists_compare_with_strings() {
    // Serrate uses DECIMAL(38, 9) for seconds with nanoseconds as well.
    for decimal in ["DECIMAL(10, 2)", "DECIMAL(38, 9)", "DECIMAL(76, 9)"] {
        let list = format!("[1.5::{decimal}, 2.25::{decimal}]");
        let equal = format!("SELECT {list} = '1.5', '2' < {list}");
        let between = format!("SELECT ragged_between({list}, '1', '1.75')");
        let cases =
            [(equal.as_str(), "[true, false] [false, true]"), (between.as_str(), "[true, false]")];
        expect_rows(&[], &cases).await;
    }
}

#[tokio::test]
async fn literals_are_written_to_decimals_with_all_their_digits() {
    let ctx = create_parallel_session();
    let table = "CREATE OR REPLACE TABLE t (m DECIMAL(5, 2), l DECIMAL(30, 20), x DECIMAL(5, 2)[], s STRUCT(a DECIMAL(5, 2), b INT), f DOUBLE)";
    for (insert, column, rows) in [
        ("INSERT INTO t (m) VALUES (1.005), (-1.005), (1.005e0)", "m", "-1.01; 1.01; 1.01"),
        ("INSERT INTO t (m) SELECT 1.005", "m", "1.01"),
        ("INSERT INTO t (m) SELECT -1.005 AS a LIMIT 1", "m", "-1.01"),
        ("INSERT INTO t (m) SELECT DISTINCT (1.005) FROM range(3)", "m", "1.01"),
        (
            "INSERT INTO t (m) SELECT 1.005 UNION ALL SELECT 2 UNION ALL SELECT 2.005",
            "m",
            "1.01; 2.00; 2.01",
        ),
        ("INSERT INTO t BY NAME SELECT 1.005 AS m", "m", "1.01"),
        ("EXPLAIN ANALYZE INSERT INTO t (m) SELECT 1.005", "m", "1.01"),
        ("INSERT INTO t (m) SELECT 1.005::DOUBLE", "m", "1.00"),
        (
            "INSERT INTO t (m) SELECT CASE WHEN i = 0 THEN 1.005 WHEN i = 1 THEN 2 END FROM range(3) v(i)",
            "m",
            "1.01; 2.00; NULL",
        ),
        ("INSERT INTO t (m) VALUES (CASE WHEN 1 < 2 THEN -1.005 ELSE 2.5 END)", "m", "-1.01"),
        ("INSERT INTO t (m) SELECT coalesce(NULL, (1.005)) AS a", "m", "1.01"),
        ("INSERT INTO t (m) VALUES ((SELECT 1.005)), (ifnull(NULL, 2.005))", "m", "1.01; 2.01"),
        (
            "INSERT INTO t (m) SELECT (SELECT 1.005 FROM range(3) w(j) WHERE j = i + 1) FROM range(1) v(i)",
            "m",
            "1.01",
        ),
        // The other branch has doubles.
        (
            "INSERT INTO t (m) SELECT CASE WHEN i < 1.5 THEN 1.005 ELSE i END FROM (VALUES (1.0), (2.25)) v(i)",
            "m",
            "1.01; 2.25",
        ),
        // A literal that does not fit is an error only if a row has it.
        (
            "INSERT INTO t (m) SELECT CASE WHEN i > 5 THEN 12345.6 ELSE 1.005 END FROM range(1) v(i)",
            "m",
            "1.01",
        ),
        // Two rows differ, and one row is the first, by the values as they are written.
        (
            "INSERT INTO t (m) SELECT DISTINCT CASE WHEN i = 0 THEN 1.001 ELSE 1.002 END FROM range(2) v(i)",
            "m",
            "1.00; 1.00",
        ),
        (
            "INSERT INTO t (m, f) SELECT CASE WHEN i = 0 THEN 1.006 ELSE 1.007 END, max(i) FROM range(2) v(i) GROUP BY 1",
            "f",
            "0.0; 1.0",
        ),
        (
            "INSERT INTO t (m, f) SELECT CASE WHEN i = 0 THEN 1.002 ELSE 1.001 END, i FROM range(2) v(i) ORDER BY 1 LIMIT 1",
            "f",
            "1.0",
        ),
        ("INSERT INTO t (m) SELECT 12345.6 WHERE false", "count(*)", "0"),
        ("INSERT INTO t (m, f) SELECT 1.005, 1.005", "f", "1.005"),
        ("INSERT INTO t (m, l) SELECT 1.005, 1.005", "m", "1.01"),
        // The alias stands for the double in the second column.
        ("INSERT INTO t (m, f) SELECT 1.005 AS a, a * 2 AS b", "f", "2.01"),
        ("INSERT INTO t (m) SELECT 1.005 AS a FROM range(2) ORDER BY a LIMIT 1", "m", "1.01"),
        // The sort key is computed from the double.
        (
            "INSERT INTO t (m, f) SELECT 1.005 AS a, i FROM range(2) v(i) ORDER BY (a > 1.007) = (i = 0) LIMIT 1",
            "f",
            "0.0",
        ),
        // The struct becomes two columns.
        ("INSERT INTO t (l, m, f) SELECT unnest({'a': 1, 'b': 2}), 1.005", "f", "1.005"),
        ("INSERT INTO t (l) VALUES (0.12345678901234567890)", "l", "0.12345678901234567890"),
        ("INSERT INTO t (l) SELECT 0.12345678901234567890", "l", "0.12345678901234567890"),
        ("INSERT INTO t (x) VALUES ([1.005, 2])", "x", "[1.01, 2.00]"),
        ("INSERT INTO t (x) SELECT [1.005, 2]", "x", "[1.01, 2.00]"),
        ("INSERT INTO t (s) VALUES ({'a': 1.005, 'b': 1})", "s.a", "1.01"),
        ("INSERT INTO t (s) SELECT {'a': 1.005, 'b': 1}", "s.a", "1.01"),
        ("INSERT INTO t (s) VALUES (row(1.005, 1))", "s.a", "1.01"),
        ("INSERT INTO t (s) VALUES ((1.005, 1))", "s.a", "1.01"),
    ] {
        run_all(&ctx, &[table, insert]).await;
        let sql = format!("SELECT {column} FROM t ORDER BY {column}");
        assert_eq!(rows_or_error(&ctx, &sql).await, rows, "{insert}");
    }
    for change in [
        "UPDATE t SET m = 1.005, l = 0.12345678901234567890",
        "UPDATE t SET m = CASE WHEN l > 9 THEN l ELSE 1.005 END, l = coalesce(NULL, 0.12345678901234567890)",
    ] {
        assert_eq!(rows_or_error(&ctx, change).await, "1", "{change}");
        let rows = rows_or_error(&ctx, "SELECT m, l FROM t").await;
        assert_eq!(rows, "1.01 0.12345678901234567890", "{change}");
    }
    for insert in ["INSERT INTO t (m) VALUES (12345.6)", "INSERT INTO t (m) SELECT 12345.6"] {
        let e = rows_or_error(&ctx, insert).await;
        assert!(e.contains("too large to store in a Decimal128 of precision 5"), "{insert}: {e}");
    }
}
