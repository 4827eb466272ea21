//! Integer arithmetic, and unsigned 64-bit integers in all places in which SQL uses signed ones.

use super::*;

const RANKED: &str = "(VALUES (1), (2), (3)) t(x)";

#[tokio::test]
async fn window_ranks_and_counts_are_signed() {
    let ranked = |what: &str| format!("SELECT {what} FROM {RANKED} ORDER BY x");
    let cases = [
        ("rank() OVER (ORDER BY x) // -3", "0; 0; -1"),
        ("row_number() OVER (ORDER BY x) // 2", "0; 1; 1"),
        ("dense_rank() OVER (ORDER BY x) / 2 - 2", "-2; -1; -1"),
        ("-rank() OVER (ORDER BY x)", "-1; -2; -3"),
        ("-ntile(2) OVER (ORDER BY x) % 2", "-1; -1; 0"),
        ("[7, 8, 9][rank() OVER (ORDER BY x)]", "7; 8; 9"),
        ("array_element([7, 8, 9], -row_number() OVER (ORDER BY x))", "9; 8; 7"),
        ("list_slice([7, 8, 9], 1, rank() OVER (ORDER BY x))", "[7]; [7, 8]; [7, 8, 9]"),
        ("repeat('a', rank() OVER (ORDER BY x))", "a; aa; aaa"),
        ("left('abc', rank() OVER (ORDER BY x))", "a; ab; abc"),
        ("1 - cardinality([x])", "0; 0; 0"),
        ("1 - array_ndims([[x]])", "-1; -1; -1"),
        ("array_dims([x])[1] - 2", "-1; -1; -1"),
        (
            "x IN (SELECT row_number() OVER () - 1 FROM (VALUES (1), (2)) u(y))",
            "true; false; false",
        ),
        ("sum(x) OVER (ORDER BY x) // rank() OVER (ORDER BY x)", "1; 1; 2"),
        ("arrow_typeof(rank() OVER (ORDER BY x))", "Int64; Int64; Int64"),
    ];
    let cases = cases.map(|(what, expected)| (ranked(what), expected));
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, e)| (sql.as_str(), *e)).collect();
    expect_rows(&[], &cases).await;
    expect_rows(
        &[],
        &[
            (
                "SELECT x FROM (VALUES (5), (6), (7)) t(x) QUALIFY row_number() OVER (ORDER BY x) <= 2 ORDER BY x",
                "5; 6",
            ),
            (
                "SELECT x FROM (SELECT x, rank() OVER (PARTITION BY x % 2 ORDER BY x DESC) AS r FROM (VALUES (5), (6), (7)) t(x)) WHERE r < 2 ORDER BY x",
                "6; 7",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn integer_division_truncates_and_is_exact() {
    let values = "CREATE TABLE t AS SELECT arrow_cast(a, 'UInt64') AS u, b AS i, arrow_cast(b % 100, 'Int8') AS b, arrow_cast(7, 'UInt8') AS c
        FROM (VALUES ('18446744073709551615', -3), ('7', -2), ('7', 2), (NULL, 1)) v(a, b)";
    expect_rows(
        &[values],
        &[
            ("SELECT u // i FROM t", "-6148914691236517205; -3; 3; NULL"),
            ("SELECT u / i FROM t", "-6148914691236517205; -3; 3; NULL"),
            ("SELECT u // 2 FROM t", "9223372036854775807; 3; 3; NULL"),
            ("SELECT u / -2 FROM t", "-9223372036854775807; -3; -3; NULL"),
            ("SELECT u / b, u / c FROM t WHERE u = 7", "-3 1; 3 1"),
            ("SELECT u % i, u % 4, u % -4 FROM t", "0 3 3; 1 3 3; 1 3 3; NULL NULL NULL"),
            ("SELECT i // u, 15 // u, -15 // u FROM t", "0 0 0; 0 2 -2; 0 2 -2; NULL NULL NULL"),
            ("SELECT (u + i) // 2, (u - 1) / i, 2 * u / 4 FROM t WHERE u = 7", "2 -3 3; 4 3 3"),
            ("SELECT -u, -c, - -u FROM t", "-18446744073709551615 -7 18446744073709551615; -7 -7 7; -7 -7 7; NULL -7 NULL"),
            ("SELECT -u / 2 FROM t WHERE u = 7", "-3; -3"),
            ("SELECT [1, 2, 3][u - 5], [1, 2, 3][u - 5:u] FROM t WHERE u = 7", "2 [2, 3]; 2 [2, 3]"),
            ("SELECT [1, 2, 3][u] FROM t WHERE u = 7", "NULL; NULL"),
            ("SELECT arrow_typeof(u / 2), arrow_typeof(i / u), arrow_typeof(u / i) FROM t LIMIT 1", "UInt64 Int64 Decimal128(20, 0)"),
            ("SELECT u / 0 FROM t", "Arrow error: Divide by zero error"),
            ("SELECT 7.0 / 2, CAST(7 AS DECIMAL(20, 0)) / 2", "3.5 3.5000"),
            ("SELECT sum(u // i) FROM t WHERE u = 7", "0"),
        ],
    )
    .await;
}

#[tokio::test]
async fn unsigned_columns_may_be_positions_in_lists_and_strings() {
    let values =
        "CREATE TABLE t AS SELECT arrow_cast(a, 'UInt64') AS u FROM (VALUES (2), (3)) v(a)";
    expect_rows(
        &[values],
        &[
            ("SELECT array_element([7, 8, 9], u), [7, 8, 9][u] AS v FROM t", "8 8; 9 9"),
            (
                "SELECT array_slice([7, 8, 9], 1, u), [7, 8, 9][2:u] FROM t",
                "[7, 8] [8]; [7, 8, 9] [8, 9]",
            ),
            (
                "SELECT repeat('a', u), substr('abcd', u), left('abcd', u) FROM t",
                "aa bcd ab; aaa cd abc",
            ),
            (
                "SELECT array_resize([1], u, 0), array_repeat('a', u) FROM t",
                "[1, 0] [a, a]; [1, 0, 0] [a, a, a]",
            ),
            (
                "SELECT round(1234.5678, u), lpad('a', u, '.'), split_part('a.b.c', '.', u) FROM t",
                "1234.57 .a b; 1234.568 ..a c",
            ),
            ("SELECT generate_series(1, u) FROM t", "[1, 2]; [1, 2, 3]"),
        ],
    )
    .await;
    let ctx = create_parallel_session();
    let sql = "SELECT array_remove_n([1], 1, arrow_cast('18446744073709551615', 'UInt64'))";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("Can't cast value 18446744073709551615 to type Int64"), "{e}");
}

/// When this test fails, `functions::unsigned` need not handle window functions.
#[tokio::test]
async fn stock_ranks_are_still_unsigned() {
    let ctx = SessionContext::new();
    let rows =
        stock_text(&ctx, "SELECT row_number() OVER (ORDER BY x) / -3 AS r FROM (VALUES (1)) t(x)")
            .await;
    assert!(rows.contains("-0.3333"), "{rows}");
}

/// Tests for every function and every list of up to four argument types: if the function accepts
/// the list, it also accepts the list with any one Int64 replaced by UInt64.
#[tokio::test]
async fn functions_of_integers_accept_unsigned_integers() {
    use std::collections::BTreeMap;

    use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
    use datafusion::logical_expr::ScalarUDF;
    use datafusion::logical_expr::type_coercion::functions::fields_with_udf;

    let kinds = [
        DataType::Int64,
        DataType::new_list(DataType::Int64, true),
        DataType::Utf8,
        DataType::Float64,
        DataType::Timestamp(TimeUnit::Microsecond, None),
    ];
    let mut tuples: Vec<Vec<DataType>> = Vec::new();
    let mut last: Vec<Vec<DataType>> = vec![vec![]];
    for _ in 0..4 {
        let longer = last
            .iter()
            .flat_map(|t| kinds.iter().map(|k| [&t[..], std::slice::from_ref(k)].concat()));
        last = longer.collect();
        tuples.extend(last.iter().filter(|t| t.contains(&DataType::Int64)).cloned());
    }
    let is_taken = |f: &ScalarUDF, types: &[DataType]| {
        let field = |t: &DataType| Arc::new(Field::new("x", t.clone(), true));
        let fields: Vec<FieldRef> = types.iter().map(field).collect();
        fields_with_udf(&fields, f).is_ok()
    };
    let mut missing: BTreeMap<String, String> = BTreeMap::new();
    let ctx = serrate::sql::session();
    for (name, f) in ctx.state().scalar_functions() {
        if name.starts_with("ragged_") || name != f.name() {
            continue;
        }
        for types in tuples.iter().filter(|types| is_taken(f, types)) {
            for at in (0..types.len()).filter(|at| types[*at] == DataType::Int64) {
                let mut unsigned = types.clone();
                unsigned[at] = DataType::UInt64;
                if !is_taken(f, &unsigned) {
                    missing.entry(name.clone()).or_insert(format!("{unsigned:?}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// A sum whose intermediate result exceeds 64 bits, and whose final result does not.
const PASSING: &str = "SELECT sum(x) FROM (VALUES (9223372036854775807), (1), (-2)) AS v(x)";

#[tokio::test]
async fn only_the_final_sum_overflows() {
    let ctx = serrate::sql::session();
    assert_eq!(query_int(&ctx, PASSING).await, i64::MAX - 1);
    let windows = "SELECT max(s) FROM (SELECT sum(x) OVER (ORDER BY x ROWS 1 PRECEDING) AS s
        FROM (VALUES (9223372036854775807), (-5), (3)) AS v(x))";
    let moved = "SELECT sum(x - 9) FROM (VALUES (9223372036854775807), (8)) AS v(x)";
    assert_eq!(query_int(&ctx, moved).await, i64::MAX - 10);
    for beyond in [
        "SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) AS v(x)",
        "SELECT k, sum(x) FROM (VALUES (1, 9223372036854775807), (1, 1)) AS v(k, x) GROUP BY k",
        "SELECT sum(arrow_cast(x, 'UInt64')) FROM (VALUES (9223372036854775807), (9223372036854775807), (2)) AS v(x)",
        windows,
    ] {
        let error = query_batches(&ctx, beyond).await.unwrap_err().to_string();
        assert!(error.contains("sum: the result does not fit a 64-bit integer"), "{error}");
    }
    for (types, sum) in [("Int8", 200), ("UInt8", 200), ("Int32", 200), ("UInt64", 200)] {
        let query = format!(
            "SELECT sum(arrow_cast(x, '{types}')) FROM (VALUES (100), (100), (NULL)) AS v(x)"
        );
        assert_eq!(
            query_int(&ctx, &format!("SELECT CAST(s AS BIGINT) FROM ({query}) AS q(s)")).await,
            sum
        );
    }
    let empty = "SELECT count(*) FROM (SELECT sum(x) AS s FROM (VALUES (1)) AS v(x) WHERE false) WHERE s IS NULL";
    assert_eq!(query_int(&ctx, empty).await, 1);
}

/// When this test fails, `exact_aggregates` need not sum integers.
#[tokio::test]
async fn stock_sums_of_integers_still_wrap() {
    let wrapped = "SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) AS v(x)";
    assert_eq!(stock_one(&SessionContext::new(), wrapped).await, i64::MIN);
}

#[tokio::test]
async fn conditions_with_negations_run_over_parquet_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("m.parquet"));
    let create = "CREATE TABLE m AS SELECT column1 AS x, arrow_cast(column2, 'Int8') AS y FROM
        (VALUES ((-9223372036854775807 - 1), -128), (5, 5), (7, 7), (NULL, NULL))";
    let copy = format!("COPY m TO '{file}'");
    let mut cases = Vec::new();
    for table in ["m".to_owned(), format!("'{file}'")] {
        cases.push((format!("SELECT x FROM {table} WHERE -x >= -5 AND x > 0"), "5"));
        cases.push((format!("SELECT x FROM {table} WHERE -y >= -5 AND x > 0"), "5"));
        cases.push((
            format!("SELECT y FROM {table} WHERE x > 0 ORDER BY -y NULLS LAST LIMIT 2"),
            "7; 5",
        ));
        cases.push((format!("SELECT -y, -x FROM {table} WHERE x = 5"), "-5 -5"));
        cases.push((
            format!("SELECT sum(-y) FROM {table} WHERE x > 0 GROUP BY -x ORDER BY -x"),
            "-7; -5",
        ));
        cases.push((
            format!("SELECT CASE WHEN x > 0 THEN -x ELSE x END FROM {table} WHERE x = 7"),
            "-7",
        ));
    }
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    let copied = format!("{copy} OPTIONS (overwrite true)");
    expect_rows(&[create, &copied], &cases).await;
}

#[tokio::test]
async fn negatives_of_least_integers_are_errors() {
    let ctx = serrate::sql::session();
    let create = "CREATE TABLE m AS SELECT column1 AS x, arrow_cast(column2, 'Int8') AS y FROM
        (VALUES ((-9223372036854775807 - 1), -128), (5, 5), (NULL, NULL))";
    run_all(&ctx, &[create]).await;
    for (sql, least) in [
        ("SELECT -x FROM m", "-9223372036854775808"),
        ("SELECT -y FROM m", "-128"),
        ("SELECT x FROM m WHERE -y = -128", "-128"),
        ("SELECT x FROM m ORDER BY -x", "-9223372036854775808"),
        ("SELECT sum(-y) FROM m", "-128"),
        ("SELECT -(-9223372036854775807 - 1)", "-9223372036854775808"),
        ("SELECT -((-2147483648)::INT)", "-2147483648"),
        ("SELECT -(-x) FROM m", "-9223372036854775808"),
        ("SELECT ragged_map([x], lambda v: -v) FROM m", "-9223372036854775808"),
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains("overflow") && e.contains(least), "{sql}: {e}");
        assert!(e.contains("DECIMAL(38, 0)"), "{sql}: {e}");
    }
    let e = error(&ctx, "SELECT ragged_neg([x]) FROM m").await;
    assert!(e.to_lowercase().contains("overflow"), "{e}");
    let cases = [
        ("SELECT -(x::DECIMAL(38, 0)) FROM m WHERE x < 0", "9223372036854775808"),
        (
            "SELECT -9223372036854775808, -(5), -(-5), -(NULL::INT)",
            "-9223372036854775808 -5 5 NULL",
        ),
        ("SELECT - x FROM m WHERE x > 0", "-5"),
    ];
    expect_rows(&[create], &cases).await;
}

/// When this test fails, `serrate_plain_negations` can be removed.
#[tokio::test]
async fn stock_negations_still_wrap() {
    let wrapped = "SELECT min(-x) FROM (VALUES (-9223372036854775807 - 1), (5)) AS v(x)";
    assert_eq!(stock_one(&SessionContext::new(), wrapped).await, i64::MIN);
}

#[tokio::test]
async fn lists_of_unsigned_integers_are_searched_for_signed_ones() {
    let setup = [
        "CREATE TABLE t AS SELECT [1::BIGINT UNSIGNED, 18446744073709551615] AS u, 1 AS i, -1 AS n",
    ];
    let cases = [
        (
            "SELECT list_contains(u, 1), list_contains(u, -1), list_contains(u, i), list_contains(u, n) FROM t",
            "true false true false",
        ),
        ("SELECT list_position(u, 1), array_positions(u, i) FROM t", "1 [1]"),
        (
            "SELECT list_contains([i, n], u[1]), list_contains([i, n], u[2]), list_position([n, i], u[1]), u[2] = ANY([i]) FROM t",
            "true false 2 false",
        ),
        ("SELECT 1 = ANY(u), 7 = ANY(u), n <> ALL(u), 0 < ALL(u) FROM t", "true false true true"),
        ("SELECT i FROM t WHERE 1 = ANY(u)", "1"),
        (
            "SELECT array_append(u, 1), array_prepend(i, u), array_remove(u, 1), array_replace(u, 1, 7) FROM t",
            "[1, 18446744073709551615, 1] [1, 1, 18446744073709551615] [18446744073709551615] [7, 18446744073709551615]",
        ),
        (
            "SELECT array_append([1.5::DECIMAL(3, 1)], 1), array_prepend(2, [1.5::DECIMAL(3, 1)]), array_position([1.5::DECIMAL(3, 1), 2], 2), array_append([1.5::DECIMAL(3, 1)], 1e-20)",
            "[1.5, 1.0] [2.0, 1.5] 2 [1.5, 1e-20]",
        ),
        ("SELECT 1 = ANY([1.5::DECIMAL(3, 1), 1]), 1.5 = ANY([1.5::DECIMAL(3, 1)])", "true true"),
        ("SELECT u IN (18446744073709551615, 5), u IN (1) FROM t", "[false, true] [true, false]"),
        (
            "SELECT [1.1::DECIMAL(3, 1), 2.5] IN (1.1, 2.5), [1.5::DECIMAL(3, 1), NULL] IN (1, 2)",
            "[true, true] [false, ]",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn equal_operands_of_xor_keep_null() {
    let setup = ["CREATE TABLE n AS SELECT * FROM (VALUES (1, 7), (2, NULL), (3, 5)) v(id, i)"];
    let cases = [
        ("SELECT i ^ i FROM n ORDER BY id", "0; NULL; 0"),
        ("SELECT id FROM n WHERE i ^ i = 0 ORDER BY id", "1; 3"),
        (
            "SELECT (i ^ 5) ^ i, i ^ i ^ i, i ^ 5 ^ i ^ 5 FROM n ORDER BY id",
            "5 7 0; NULL NULL NULL; 5 5 0",
        ),
        ("SELECT count(i ^ i), sum(i ^ id ^ i) FROM n", "2 4"),
        (
            "SELECT i ^ i ^ i ^ i, i ^ i ^ i ^ i ^ i, i ^ i ^ id ^ id ^ i ^ id ^ i FROM n ORDER BY id",
            "0 7 1; NULL NULL NULL; 0 5 3",
        ),
        ("SELECT (i ^ i) ^ (i ^ i) FROM n ORDER BY id", "0; NULL; 0"),
        ("SELECT count(i ^ i ^ i ^ i) FROM n", "2"),
    ];
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `sql::workarounds::expressions::xor_pairs` can be removed.
#[tokio::test]
async fn stock_pairs_of_xor_still_forget_null() {
    let ctx = SessionContext::new();
    let sql = "SELECT count(i ^ i) FROM (VALUES (1), (NULL)) v(i)";
    assert_eq!(stock_one(&ctx, sql).await, 2);
}

#[tokio::test]
async fn bits_are_counted_and_inverted() {
    let setup = [
        "CREATE TABLE b AS SELECT arrow_cast(5, 'UInt8') AS u, 5 AS i, arrow_cast(-1, 'Int32') AS n, NULL::INT AS z",
    ];
    let cases = [
        ("SELECT ~u, ~i, ~n, ~z, ~(~i), -~i FROM b", "250 -6 0 NULL 5 6"),
        (
            "SELECT bit_count(u), bit_count(i), bit_count(n), bit_count(z), bit_count(NULL) FROM b",
            "2 2 32 NULL NULL",
        ),
        ("SELECT xor(i, 3), i & ~1, bit_count(~i) FROM b", "6 4 62"),
        ("SELECT arrow_typeof(~u), arrow_typeof(~n) FROM b", "UInt8 Int32"),
        ("SELECT i FROM b WHERE ~i = -6 GROUP BY i HAVING bit_count(i) = 2", "5"),
    ];
    expect_rows(&setup, &cases).await;
    let refused = rows_or_error(&serrate::sql::session(), "SELECT ~1.5, ~'a'").await;
    assert!(refused.contains("integer"), "{refused}");
}

#[tokio::test]
async fn lists_of_unsigned_and_signed_integers_compute_exactly() {
    let values = "CREATE TABLE t AS SELECT ragged_cast(a, 'UInt64') AS u, b AS i FROM
        (VALUES (['18446744073709551615', '7'], -2)) v(a, b)";
    expect_rows(
        &[values],
        &[
            (
                "SELECT u / i, u // -2 FROM t",
                "[-9223372036854775807, -3] [-9223372036854775807, -3]",
            ),
            ("SELECT u % i, i / u, 15 / u FROM t", "[1, 1] [0, 0] [0, 2]"),
            ("SELECT u - i, u + -1 FROM t", "[18446744073709551617, 9] [18446744073709551614, 6]"),
            (
                "SELECT arrow_typeof(u / i), arrow_typeof(i / u) FROM t",
                "List(Decimal128(20, 0)) List(Int64)",
            ),
            (
                "SELECT ragged_maximum(u, i), ragged_minimum(i, u), ragged_maximum(u, [8, 8]) FROM t",
                "[18446744073709551615, 7] [-2, -2] [18446744073709551615, 8]",
            ),
            (
                "SELECT arrow_typeof(ragged_maximum(u, 8)), arrow_typeof(ragged_minimum(i, u)) FROM t",
                "List(UInt64) List(Int64)",
            ),
            // The results stay integers, which `densify` and sums take.
            (
                "SELECT densify(ragged_maximum(u, 0), [2]), ragged_sum(ragged_minimum(u, 100)) FROM t",
                "[18446744073709551615, 7] 107",
            ),
            (
                "SELECT ragged_pow(u, 1), ragged_pow(i, ragged_tail(u, 1)), ragged_pow(u, [1, 2]) FROM t",
                "[18446744073709551615, 7] [-128] [18446744073709551615, 49]",
            ),
            (
                "SELECT arrow_typeof(ragged_pow(u, 1)), arrow_typeof(ragged_pow(i, ragged_tail(u, 1))) FROM t",
                "List(UInt64) List(Int64)",
            ),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    let e = error(&ctx, "SELECT arrow_cast([7], 'List(UInt64)') % x FROM (VALUES (0)) t(x)").await;
    assert!(e.contains("division by an integer zero"), "{e}");
    let e = error(
        &ctx,
        "SELECT ragged_pow(arrow_cast([7], 'List(UInt64)'), x) FROM (VALUES (-1)) t(x)",
    )
    .await;
    assert!(e.contains("a power is negative"), "{e}");
}

#[tokio::test]
async fn errors_of_list_views_suggest_a_cast() {
    let ctx = serrate::sql::session();
    let view = "arrow_cast([1, 2], 'ListView(Int64)')";
    for e in [format!("{view} + 1"), format!("{view} + {view}"), format!("{view} IN ([1, 2])")] {
        let e = error(&ctx, &format!("SELECT {e}")).await;
        assert!(e.contains("cast it to List or LargeList"), "{e}");
    }
}

#[tokio::test]
async fn scalar_functions_accept_list_views() {
    let tables = [
        "CREATE TABLE w AS SELECT id, arrow_cast(x, 'ListView(Int64)') AS x, arrow_cast(s, 'LargeListView(Utf8)') AS s FROM (VALUES (1, [1, 2, NULL], ['ab', 'c']), (2, [], NULL)) v(id, x, s)",
    ];
    let cases = [
        (
            "SELECT id, len(x), length(s), array_length(x), len(s) > 1 FROM w ORDER BY id",
            "1 3 2 3 true; 2 0 NULL 0 NULL",
        ),
        (
            "SELECT reverse(s), upper(s), concat(x, x) FROM w WHERE id = 1",
            "[ba, c] [AB, C] [1, 2, , 1, 2, ]",
        ),
        (
            "SELECT arrow_typeof(x), arrow_typeof(coalesce(x, x)) FROM w WHERE id = 1",
            "ListView(Int64) ListView(Int64)",
        ),
    ];
    expect_rows(&tables, &cases).await;
}

#[tokio::test]
async fn flatten_merges_list_views() {
    let of = |t: &str| {
        format!(
            "SELECT id, flatten(arrow_cast(x, '{t}')), arrow_typeof(flatten(arrow_cast(x, '{t}'))) FROM w ORDER BY id"
        )
    };
    let list = "1 [1, 2, 3] List(Int64); 2 [4] List(Int64); 3 NULL List(Int64); 4 [] List(Int64)";
    let large = list.replace("List", "LargeList");
    let views = of("ListView(ListView(Int64))");
    let elements = of("List(ListView(Int64))");
    let outer = of("ListView(List(Int64))");
    let large_elements = of("List(LargeListView(Int64))");
    let large_views = of("LargeListView(ListView(Int64))");
    let cases = [
        (views.as_str(), list),
        (elements.as_str(), list),
        (outer.as_str(), list),
        (large_elements.as_str(), large.as_str()),
        (large_views.as_str(), large.as_str()),
        (
            "SELECT flatten(flatten(arrow_cast([[[1], [2]], [[3]]], 'ListView(ListView(ListView(Int64)))')))",
            "[1, 2, 3]",
        ),
        ("SELECT flatten(arrow_cast([1, 2], 'ListView(Int64)'))", "[1, 2]"),
    ];
    let tables = [
        "CREATE TABLE w AS SELECT id, x FROM (VALUES (1, [[1, 2], [3]]), (2, [NULL, [4]]), (3, NULL), (4, [])) v(id, x)",
    ];
    expect_rows(&tables, &cases).await;
}

/// `flatten` need not cast list views below lists once this fails.
#[tokio::test]
async fn stock_flatten_still_keeps_list_views() {
    let ctx = SessionContext::new();
    let sql = "SELECT arrow_typeof(flatten(arrow_cast(make_array(make_array(1)), 'List(ListView(Int64))')))";
    assert_eq!(rows_or_error(&ctx, sql).await, "List(ListView(Int64))");
}

/// `get_field` of DataFusion would panic for a constant list as a key.
#[tokio::test]
async fn maps_may_have_lists_as_keys() {
    let sql = "SELECT map([[x]], [5])[[1]] FROM (VALUES (1), (2)) t(x) ORDER BY x";
    expect_rows(&[], &[(sql, "5; NULL")]).await;
}

#[tokio::test]
async fn shifts_count_modulo_the_number_of_bits() {
    let cases = [
        (
            "SELECT 1 << x FROM (VALUES (64), (63), (-1), (65)) t(x)",
            "1; -9223372036854775808; -9223372036854775808; 2",
        ),
        ("SELECT -8 >> x FROM (VALUES (64), (63), (-1), (65)) t(x)", "-8; -1; -1; -4"),
        ("SELECT 1 << 65, -8 >> 64", "2 -8"),
    ];
    expect_rows(&[], &cases).await;
}
