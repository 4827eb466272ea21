//! Scalar functions applied to the values of lists, functions of DuckDB, and elements declared NOT
//! NULL.

use super::forms::query_cells;
use super::*;

/// A NULL without a type counts as a scalar if the other operand is a list.
#[tokio::test]
async fn null_is_combined_with_each_value() {
    let ctx = create_parallel_session();
    for (sql, expected) in [
        (
            "SELECT ragged_and(NULL, [false, true]), ragged_or(NULL, [[true], []])",
            "[false, ] [[true], []]",
        ),
        ("SELECT ragged_and([false, true], NULL), NULL AND [false, true]", "[false, ] [false, ]"),
        ("SELECT ragged_eq(NULL, [1, 2]), ragged_mul(NULL, [[1], []])", "[, ] [[], []]"),
        ("SELECT ragged_pow(NULL, [1, 2]), ragged_minimum(NULL, ['a', 'b'])", "[, ] [, ]"),
        ("SELECT ragged_where(NULL, [1, 2], 0), ragged_where(NULL, 1, [[2]])", "[0, 0] [[2]]"),
        ("SELECT ragged_add(n, x), n * x FROM (SELECT NULL AS n, [1, 2] AS x)", "[, ] [, ]"),
        ("SELECT ragged_lengths(ragged_sub(NULL, [1, 2]))", "2"),
        ("SELECT ragged_add(NULL, NULL), ragged_sum(NULL), ragged_window(NULL, [1], [1])", "  "),
        ("SELECT ragged_add(NULL, [DATE '2020-01-01'])", ""),
    ] {
        assert_eq!(query_cells(&ctx, sql).await, expected, "{sql}");
    }
    let prepare = "PREPARE p AS SELECT ragged_add($1, [DATE '2020-01-01']), ragged_mul($2, [1, 2])";
    assert_eq!(rows_or_error(&ctx, prepare).await, "");
    let found = query_cells(&ctx, "EXECUTE p(INTERVAL '1 day', 1.5)").await;
    assert_eq!(found, "[2020-01-02] [1.5, 3.0]");
}

#[tokio::test]
async fn scalar_functions_apply_to_the_values_of_lists() {
    let ctx = create_parallel_session();
    for (sql, expected) in [
        ("SELECT upper(['a', NULL, 'b']), upper(NULL::VARCHAR[])", "[A, , B] "),
        ("SELECT abs([[-1, 2], [], NULL, [NULL]])", "[[1, 2], [], , []]"),
        ("SELECT extract(year FROM [TIMESTAMP '2020-01-01', NULL])", "[2020, ]"),
        ("SELECT date_trunc('month', [TIMESTAMP '2999-01-05'])", "[2999-01-01T00:00:00]"),
        ("SELECT substr(['abc'], 2, 1), 'a' || upper(trim(' b ')), floor([1.5])", "[b] aB [1.0]"),
        ("SELECT arrow_cast(['a'], 'LargeList(Utf8)') = upper(['a'])", "false"),
        ("SELECT lower(arrow_cast(['A', 'B'], 'FixedSizeList(2, Utf8)'))", "[a, b]"),
        // A list of fewer levels is broadcast to the deeper list, and a scalar to all values of its
        // row.
        ("SELECT power([1.0, 2.0], [[1.0], [3.0, 4.0]])", "[[1.0], [8.0, 16.0]]"),
        (
            "SELECT id, power(x, id) FROM (VALUES (1, [2, 3]), (2, [4, NULL]), (3, NULL)) t(id, x) ORDER BY id",
            "1 [2.0, 3.0]; 2 [16.0, ]; 3 ",
        ),
        (
            "SELECT upper(x) AS u, count(*) FROM (VALUES (['a']), (['A'])) t(x) GROUP BY upper(x)",
            "[A] 2",
        ),
        ("SELECT x FROM (VALUES (['b']), (['A'])) t(x) ORDER BY lower(x)", "[A]; [b]"),
        (
            "SELECT ragged_map([['a']], lambda v: upper(v)), list_transform([['a']], lambda v: upper(v))",
            "[[A]] [[A]]",
        ),
        // Functions that accept whole lists are not applied to the values.
        (
            "SELECT length([1, 2]), coalesce(NULL, [1]), greatest([1], [2]), nullif([1], [1])",
            "2 [1] [2] ",
        ),
        ("SELECT array_length([[1], [2]]), concat(['a'], 'b')", "2 [a]b"),
        (
            "SELECT concat([1], [2], NULL), concat([[1]], [[NULL]]), concat(NULL, NULL)",
            "[1, 2] [[1], []] ",
        ),
        ("SELECT list_concat([1], NULL), list_concat(NULL, ['a'], ['b'])", "[1] [a, b]"),
    ] {
        assert_eq!(query_cells(&ctx, sql).await, expected, "{sql}");
    }
    let headings = serrate::sql::sql(
        &ctx,
        "SELECT upper(x), 1 + power(y, 2) FROM (SELECT ['a'] AS x, [2] AS y)",
    );
    let headings = headings.await.unwrap();
    let names: Vec<_> = headings.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["upper(x)", "1 + power(y,2)"]);
}

#[tokio::test]
async fn unsupported_types_of_values_are_errors() {
    let ctx = create_parallel_session();
    let e = error(&ctx, "SELECT date_trunc('month', [true])").await;
    assert!(e.contains("date_trunc does not accept lists with these types of values"), "{e}");
    let e = error(&ctx, "SELECT power([1, 2], [1])").await;
    assert!(e.contains("2 element(s)") && e.contains("same lengths"), "{e}");
}

#[tokio::test]
async fn lists_of_unequal_lengths_are_errors_of_the_function_that_is_called() {
    let ctx = create_parallel_session();
    let days = "[DATE '2020-01-01', DATE '2020-01-02'], [DATE '2020-01-03']";
    for (call, named) in [
        (format!("date_diff('day', {days})"), "date_diff: "),
        ("power([1, 2], [1])".to_owned(), "power: "),
        ("ragged_map([1, 2], [1], lambda v, w: v + w)".to_owned(), "ragged_map: "),
    ] {
        let e = error(&ctx, &format!("SELECT {call}")).await;
        assert!(e.contains(named) && e.contains("same lengths"), "{call}: {e}");
        assert_eq!(e.contains("ragged_map"), named == "ragged_map: ", "{call}: {e}");
    }
}

#[tokio::test]
async fn functions_with_names_of_duckdb_return_what_duckdb_returns() {
    let ctx = create_parallel_session();
    for (sql, expected) in [
        (
            "SELECT year(t), month(t) + 1, dayname(t), epoch(t) FROM (SELECT TIMESTAMP '2020-03-04 12:00:01.5' AS t)",
            "2020 4 Wednesday 1583323201.5",
        ),
        ("SELECT year([DATE '2020-01-01', NULL])", "[2020, ]"),
        ("SELECT strftime(TIMESTAMP '2020-03-04 05:06:07.25', '%d/%m %f')", "04/03 250000"),
        (
            "SELECT date_diff('month', DATE '2019-12-31', DATE '2020-01-01'), datediff('year', DATE '1600-05-05', DATE '2999-01-01')",
            "1 1399",
        ),
        (
            "SELECT date_diff('week', TIMESTAMP '2021-05-12 19:37:04', TIMESTAMP '2021-05-19 07:29:05'), date_diff('week', DATE '2020-01-05', DATE '2020-01-06')",
            "1 0",
        ),
        (
            "SELECT date_diff('ms', TIMESTAMP '1969-12-31 23:59:59.9995', TIMESTAMP '1970-01-01 00:00:00.001'), date_diff(NULL, DATE '2020-01-01', DATE '2020-01-01')",
            "2 ",
        ),
        ("SELECT date_diff('day', [DATE '2020-01-01', NULL], TIMESTAMP '2020-03-01')", "[60, ]"),
        // DuckDB returns these values.
        (
            "SELECT date_sub('month', DATE '2020-01-31', DATE '2020-02-01'), datesub('month', DATE '2020-01-31', DATE '2020-02-29'), date_sub('month', DATE '2020-02-29', DATE '2020-01-31')",
            "0 1 -1",
        ),
        (
            "SELECT date_sub('year', DATE '1980-05-17', DATE '2020-05-16'), date_sub('quarter', TIMESTAMP '2020-01-01 12:00', TIMESTAMP '2020-07-01 11:00'), date_sub('month', TIMESTAMP '2020-01-31 10:00', TIMESTAMP '2020-02-29 09:00')",
            "39 1 0",
        ),
        (
            "SELECT date_sub('day', TIMESTAMP '2020-01-01 23:00', TIMESTAMP '2020-01-02 01:00'), date_sub('week', DATE '2020-01-01', DATE '2020-01-14'), date_sub('hour', TIMESTAMP '2020-01-02 00:30', TIMESTAMP '2020-01-01 23:00')",
            "0 1 -1",
        ),
        (
            "SELECT date_sub('month', [DATE '2020-01-31', NULL], DATE '2020-03-30'), date_sub('day', NULL, DATE '2020-01-01')",
            "[1, ] ",
        ),
        (
            "SELECT extract(century FROM DATE '2000-12-31'), extract(century FROM DATE '2001-01-01'), extract(decade FROM TIMESTAMP '1999-01-01'), extract(millennium FROM DATE '2001-01-01')",
            "20 21 199 3",
        ),
        ("SELECT extract(century FROM [DATE '1900-01-01', NULL])", "[19, ]"),
        (
            "SELECT isodow(t), isoyear(t), decade(t), century(t), millennium(t), millisecond(t), microsecond(t) FROM (SELECT TIMESTAMP '2021-01-03 10:11:30.5' AS t)",
            "7 2020 202 21 3 30500 30500000",
        ),
        (
            "SELECT isodow([DATE '2020-03-01', NULL]), century([[DATE '2000-12-31'], []])",
            "[7, ] [[20], []]",
        ),
        (
            "SELECT time_bucket(INTERVAL '7 days', TIMESTAMP '2020-01-01'), time_bucket(INTERVAL '1 month', TIMESTAMP '2020-01-15')",
            "2019-12-30T00:00:00 2020-01-01T00:00:00",
        ),
        (
            "SELECT time_bucket(INTERVAL '1 week', TIMESTAMP '2999-07-11 23:39:33')",
            "2999-07-08T00:00:00",
        ),
        (
            "SELECT regexp_extract('LAB//12', '(\\w+)//(\\d+)', 2), regexp_extract('b', '(a)|(b)', 2), regexp_extract('x', 'a') = '', regexp_extract(NULL, 'a')",
            "12 b true ",
        ),
        (
            "SELECT string_split('a,b', ','), string_split('', ','), string_split('ab', ''), string_split('a', NULL)",
            "[a, b] [] [a, b] [a]",
        ),
        (
            "SELECT list_min([3, NULL, 1]), list_last([3, 1]), list_first([[3], [1]]), if(NULL, 'a', 'b'), mod(-7, 3)",
            "1 1 [3] b -1",
        ),
        (
            "SELECT regexp_matches('abc', 'b'), regexp_full_match('abc', 'b'), regexp_full_match('ab', 'a|ab'), prefix('abc', 'a')",
            "true false true true",
        ),
        // `arg_max` and `min_by` ignore NULL values and NULL keys. Of equal keys, the least value
        // is returned.
        (
            "SELECT arg_max(v, w), min_by(v, w), count_if(v > 1) FROM (VALUES (1, 5), (2, 7), (3, NULL), (NULL, 9), (1, 7)) t(v, w)",
            "1 1 2",
        ),
        (
            "SELECT year(d), day(d), count(*) FROM (SELECT DATE '2020-01-02' AS d) GROUP BY year(d), day(d) HAVING year(d) > 1 ORDER BY year(d)",
            "2020 2 1",
        ),
        (
            "SELECT DISTINCT year(d) FROM (VALUES (DATE '2021-01-02'), (DATE '2020-01-02')) t(d) ORDER BY year(d)",
            "2020; 2021",
        ),
        (
            "SELECT count_if(v > 1) OVER (), count_if(v > 1) FILTER (WHERE v > 5) OVER () FROM (VALUES (2)) t(v)",
            "1 ",
        ),
    ] {
        assert_eq!(query_cells(&ctx, sql).await, expected, "{sql}");
    }
    let named = serrate::sql::sql(
        &ctx,
        "SELECT year(d) + 1 FROM (SELECT DATE '2020-01-02' AS d) UNION ALL SELECT 1",
    );
    assert_eq!(named.await.unwrap().schema().field(0).name(), "year(d) + 1");
    let e =
        error(&ctx, "SELECT date_diff('fortnight', DATE '2020-01-01', DATE '2020-01-01')").await;
    assert!(e.contains("no part 'fortnight'"), "{e}");
}

/// Returns a configuration with one row per batch, for lists whose element field is named
/// `element`, as in Parquet files.
fn configure_elements() -> SessionConfig {
    SessionConfig::new().with_target_partitions(1).with_batch_size(1)
}

const ELEMENTS: &str =
    "CREATE TABLE e AS SELECT arrow_cast(x, 'List(Int64, field: ''element'')') AS x
    FROM (VALUES ([3, NULL]), (NULL), ([])) AS v(x)";

#[tokio::test]
async fn lists_with_different_element_field_names_have_one_type() {
    let ctx = serrate::sql::session_with(configure_elements());
    query_batches(&ctx, ELEMENTS).await.unwrap();
    for (expr, expected) in [
        ("array_concat(x, x)", "[3, , 3, ]"),
        ("array_concat(x, [1])", "[3, , 1]"),
        ("array_repeat(x, 2)", "[[3, ], [3, ]]"),
        ("array_normalize(x)", "|"),
    ] {
        let shown = query_text(&ctx, &format!("SELECT x, {expr} AS y FROM e")).await;
        assert!(shown.contains(expected), "{expr}\n{shown}");
        let kept = format!("CREATE OR REPLACE TABLE kept AS SELECT {expr} AS y FROM e");
        query_batches(&ctx, &kept).await.unwrap();
        assert_eq!(query_int(&ctx, "SELECT count(*) FROM kept").await, 3, "{expr}");
    }
}

/// A view whose lists `a` have elements that are declared NOT NULL, as in a Parquet file.
const REQUIRED: &str = "CREATE VIEW q AS
    SELECT id, arrow_cast(x, 'List(non-null Int64)') AS a, y AS n, k
    FROM (VALUES (1, [1, 2, 2], [2, NULL], 3), (2, NULL, [1], 1), (3, [], NULL, NULL), (4, [5], [7], 0)) v(id, x, y, k)";

#[tokio::test]
async fn lists_of_not_null_elements_may_be_extended_by_null() {
    let cases = [
        (
            "SELECT array_union(a, n), array_union(n, a) FROM q ORDER BY id",
            "[1, 2, ] [2, , 1]; NULL NULL; NULL NULL; [5, 7] [7, 5]",
        ),
        (
            "SELECT array_except(a, n), array_except(n, a), array_intersect(a, n) FROM q ORDER BY id",
            "[1] [] [2]; NULL NULL NULL; NULL NULL NULL; [5] [7] []",
        ),
        (
            "SELECT array_resize(a, 2), array_resize(a, k), array_resize(a, 2, k), array_resize(a, NULL) FROM q ORDER BY id",
            "[1, 2] [1, 2, 2] [1, 2] NULL; NULL NULL NULL NULL; [, ] NULL [, ] NULL; [5, ] [] [5, 0] NULL",
        ),
        (
            "SELECT array_add(a, a), array_subtract(a, a), array_append(a, NULL), array_concat(a, n) FROM q ORDER BY id",
            "[2.0, 4.0, 4.0] [0.0, 0.0, 0.0] [1, 2, 2, ] [1, 2, 2, 2, ]; NULL NULL [] [1]; [] [] [] []; [10.0] [0.0] [5, ] [5, 7]",
        ),
        ("SELECT id FROM q WHERE array_union(a, n) = [1, 2, NULL]", "1"),
        ("SELECT array_resize(a, 4) FROM q ORDER BY id LIMIT 1", "[1, 2, 2, ]"),
        (
            "WITH w AS (SELECT id, array_union(a, [NULL]) AS u FROM q) SELECT u, count(*) FROM w GROUP BY u ORDER BY u",
            "[1, 2, ] 1; [5, ] 1; [] 1; NULL 1",
        ),
        (
            "SELECT id, u FROM q LEFT JOIN unnest(q.a) AS x(u) ON true ORDER BY id, u",
            "1 1; 1 2; 1 2; 2 NULL; 3 NULL; 4 5",
        ),
        (
            "SELECT id, u FROM q LEFT JOIN unnest(q.a) AS x(u) ON u > 1 ORDER BY id, u",
            "1 2; 1 2; 2 NULL; 3 NULL; 4 5",
        ),
        (
            "SELECT array_resize(arrow_cast(a, 'LargeList(non-null Int64)'), 2) FROM q ORDER BY id LIMIT 1",
            "[1, 2]",
        ),
    ];
    expect_rows(&[REQUIRED], &cases).await;
    let ctx = serrate::sql::session();
    let refused = error(&ctx, "SELECT array_resize([1, 2], -1)").await;
    assert!(refused.contains("the size, must be at least 0, but found -1"), "{refused}");
    assert_eq!(query_cells(&ctx, "SELECT array_resize(NULL::INT[], -1)").await, "");
}

#[tokio::test]
async fn structs_are_cast_to_the_element_type_of_lists() {
    let tables = [
        "CREATE TABLE s AS SELECT id, CASE WHEN id < 3 THEN [{'a': id + 5000000000, 'b': 'p'}] END AS x, {'a': id::INT, 'b': 'q'} AS y FROM (VALUES (1), (2), (3)) v(id)",
    ];
    let cases = [
        ("SELECT array_append([{'a': 5000000000}], {'a': 1::INT})", "[{a: 5000000000}, {a: 1}]"),
        (
            "SELECT list_append([{'a': 1::INT}], {'a': 5000000000}), array_prepend({'a': 1::INT}, [{'a': 5000000000}])",
            "[{a: 1}, {a: 5000000000}] [{a: 1}, {a: 5000000000}]",
        ),
        (
            "SELECT array_concat([{'a': 5}], [{'a': 1::INT}]), array_concat([{'a': 1::INT}], [{'a': 5}])",
            "[{a: 5}, {a: 1}] [{a: 1}, {a: 5}]",
        ),
        (
            "SELECT id, array_append(x, y), y || x FROM s ORDER BY id",
            "1 [{a: 5000000001, b: p}, {a: 1, b: q}] [{a: 1, b: q}, {a: 5000000001, b: p}]; 2 [{a: 5000000002, b: p}, {a: 2, b: q}] [{a: 2, b: q}, {a: 5000000002, b: p}]; 3 [{a: 3, b: q}] [{a: 3, b: q}]",
        ),
        (
            "SELECT list_contains([{'a': 5}], {'a': 5::INT}), list_contains([{'a': 5}], {'a': 6::INT})",
            "true false",
        ),
        ("SELECT [{'a': 1.5}] || {'a': 2}", "[{a: 1.5}, {a: 2.0}]"),
        ("SELECT [5] || arrow_cast(3, 'UInt64'), arrow_cast(3, 'UInt64') || [5]", "[5, 3] [3, 5]"),
        ("SELECT array_append([{'a': 1.5::DECIMAL(3, 1)}], {'a': 2})", "[{a: 1.5}, {a: 2.0}]"),
        (
            "SELECT array_append([{'a': 5, 'b': 6}], {'b': 1::INT, 'a': 2::INT})",
            "[{a: 5, b: 6}, {a: 2, b: 1}]",
        ),
        (
            "SELECT array_append([{'a': {'b': [5]}}], {'a': {'b': [1::INT]}})",
            "[{a: {b: [5]}}, {a: {b: [1]}}]",
        ),
        ("SELECT array_append([{'a': 1}], {'a': NULL})", "[{a: 1}, {a: }]"),
    ];
    expect_rows(&tables, &cases).await;
    let ctx = create_parallel_session();
    for sql in [
        "SELECT array_append([{'a': 1}], {'a': 'x'})",
        "SELECT array_append([{'a': 1}], {'b': 1::INT})",
        "SELECT array_append([{'a': 1.5}], {'a': 1.5::DECIMAL(3, 1)})",
        "SELECT array_append([{'a': 1}], {'a': 1::INT, 'b': 2})",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("array_append does not accept arguments of the types"), "{sql}\n{e}");
    }
}

/// `functions::struct_elements` can be removed once this test fails.
#[tokio::test]
async fn stock_structs_are_still_not_widened() {
    let sql = "SELECT array_append(make_array(named_struct('a', 5)), named_struct('a', arrow_cast(1, 'Int32')))";
    let e = stock_error(&SessionContext::new(), sql).await;
    assert!(e.contains("array_append"), "{e}");
}

#[tokio::test]
async fn lambdas_are_not_evaluated_for_empty_lists() {
    let tables = [
        "CREATE TABLE e AS SELECT id, CASE WHEN id < 3 THEN []::INT[] END AS x, 0 AS y FROM (VALUES (1), (2), (3)) v(id)",
    ];
    let cases = [
        ("SELECT ragged_map([], v -> 1 / 0), ragged_map([[], NULL], v -> 1 / 0)", "[] [[], ]"),
        ("SELECT ragged_map(NULL::INT[], v -> 1 / 0)", "NULL"),
        ("SELECT id, ragged_map(x, v -> 1 / y) FROM e ORDER BY id", "1 []; 2 []; 3 NULL"),
        ("SELECT ragged_map(x, v -> ragged_map([v], w -> 1 / 0)) FROM e WHERE id = 1", "[]"),
        ("SELECT id, list_transform(x, v -> 1 / 0) FROM e ORDER BY id", "1 []; 2 []; 3 NULL"),
        ("SELECT id, list_filter(x, v -> v / y > 1 / 0) FROM e ORDER BY id", "1 []; 2 []; 3 NULL"),
        (
            "SELECT id, array_any_match(x, v -> 1 / 0 > v) FROM e ORDER BY id",
            "1 false; 2 false; 3 NULL",
        ),
        ("SELECT id, array_first(x, v -> 1 / 0 > v) FROM e ORDER BY id", "1 NULL; 2 NULL; 3 NULL"),
        (
            "SELECT list_filter([1, 2, 3], v -> v > 1), list_transform([1], v -> v + 1)",
            "[2, 3] [2]",
        ),
        (
            "SELECT list_transform(arrow_cast(x, 'LargeList(Int32)'), v -> v IS NULL) FROM e WHERE id = 1",
            "[]",
        ),
    ];
    expect_rows(&tables, &cases).await;
    let ctx = create_parallel_session();
    for sql in ["SELECT ragged_map([1], v -> 1 / 0)", "SELECT list_filter([1], v -> 1 / 0 > v)"] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.to_lowercase().contains("zero"), "{sql}\n{e}");
    }
}

/// `functions::lazy_lambdas` can be removed once this test fails.
#[tokio::test]
async fn stock_lambdas_of_empty_lists_still_fail() {
    let config = SessionConfig::new().set_str("datafusion.sql_parser.dialect", "duckdb");
    let ctx = SessionContext::new_with_config(config);
    let sql = "SELECT array_any_match(arrow_cast(make_array(), 'List(Int64)'), v -> 1 / 0 > v)";
    let e = stock_error(&ctx, sql).await;
    assert!(e.to_lowercase().contains("zero"), "{e}");
}

/// When this test fails, the cast of results in `functions::lazy_lambdas` can be removed.
#[tokio::test]
async fn stock_empty_large_lists_still_differ() {
    let config = SessionConfig::new().set_str("datafusion.sql_parser.dialect", "duckdb");
    let ctx = SessionContext::new_with_config(config);
    stock_batches(
        &ctx,
        "CREATE TABLE e AS SELECT arrow_cast(make_array(), 'LargeList(Int64)') AS x",
    )
    .await
    .unwrap();
    let e = stock_error(&ctx, "SELECT array_transform(x, v -> v IS NULL) FROM e").await;
    assert!(e.contains("column types must match schema types"), "{e}");
}

#[tokio::test]
async fn lists_that_a_lambda_makes_may_be_combined_with_lists_of_null() {
    let setup =
        ["CREATE TABLE t AS SELECT * FROM (VALUES (1, [7, 8]), (2, NULL), (3, [])) v(k, l)"];
    let cases = [
        (
            "WITH RECURSIVE r AS (SELECT 1 AS i, list_transform([7], v -> 1) AS x UNION ALL SELECT i + 1, x || [NULL]::BIGINT[] FROM r WHERE i < 3) FROM r ORDER BY i",
            "1 [1]; 2 [1, ]; 3 [1, , ]",
        ),
        (
            "WITH RECURSIVE r AS (SELECT k, list_transform(l, v -> {'a': 1}) AS x FROM t UNION ALL SELECT k + 2, lag(x) OVER (ORDER BY k) FROM r WHERE k < 3) FROM r ORDER BY k, x",
            "1 [{a: 1}, {a: 1}]; 2 NULL; 3 []; 3 NULL; 4 [{a: 1}, {a: 1}]",
        ),
        (
            "WITH RECURSIVE r AS (SELECT k, list_filter(list_transform(l, v -> k), v -> v > 0) AS x FROM t UNION SELECT k + 2, [NULL] FROM r WHERE k < 2) FROM r ORDER BY k, x",
            "1 [1, 1]; 2 NULL; 3 []; 3 []",
        ),
        (
            "SELECT k, list_transform(l, v -> k) FROM t INTERSECT SELECT k, [k, k] FROM t ORDER BY k",
            "1 [1, 1]",
        ),
        (
            "SELECT k, lead(list_transform(l, v -> k), 1, [4, NULL]) OVER (ORDER BY k) FROM t ORDER BY k",
            "1 NULL; 2 []; 3 [4, ]",
        ),
        ("SELECT arrow_typeof(list_transform([7], v -> 1))", "List(Int64)"),
        (
            "SELECT arrow_typeof(list_transform(arrow_cast([7], 'LargeList(Int64)'), v -> 1))",
            "LargeList(Int64)",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `lazy_lambdas::allow_null_elements` can be removed.
#[tokio::test]
async fn stock_elements_of_a_constant_lambda_are_still_not_nullable() {
    let config = SessionConfig::new().set_str("datafusion.sql_parser.dialect", "duckdb");
    let ctx = SessionContext::new_with_config(config);
    let sql = "SELECT arrow_typeof(array_transform(make_array(1, 2), v -> 1))";
    let found = stock_text(&ctx, sql).await;
    assert!(found.contains("List(non-null Int64)"), "{found}");
}

#[tokio::test]
async fn tables_created_from_not_null_elements_accept_null() {
    let setup = [
        REQUIRED,
        "CREATE TABLE z AS SELECT id, a FROM q",
        "INSERT INTO z SELECT id + 10, n FROM q WHERE id = 1",
        "UPDATE z SET a = array_append(a, NULL) WHERE id = 4",
        "DELETE FROM z WHERE array_has(array_union(a, [9]), 1)",
    ];
    let cases = [("SELECT id, a FROM z ORDER BY id", "2 NULL; 3 []; 4 [5, ]; 11 [2, ]")];
    expect_rows(&setup, &cases).await;
}

/// A map whose values are declared NOT NULL.
const REQUIRED_MAP: &str = "arrow_cast(MAP {'a': 1}, 'Map(\"entries\": non-null Struct(\"key\": non-null Utf8, \"value\": non-null Int64), unsorted)')";

#[tokio::test]
async fn map_entries_of_not_null_values_are_a_list() {
    let ctx = serrate::sql::session();
    let sql = format!("SELECT cardinality(map_entries({REQUIRED_MAP}))");
    assert_eq!(query_cells(&ctx, &sql).await, "1");
    let sql = format!("SELECT array_append(map_entries({REQUIRED_MAP}), NULL)[1]['value']");
    assert_eq!(query_cells(&ctx, &sql).await, "1");
}

/// When this test fails, the functions that `functions::list_fields` replaces need not be replaced.
#[tokio::test]
async fn stock_lists_of_required_elements_still_fail() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, REQUIRED).await.unwrap();
    for function in ["array_union(a, n)", "array_resize(a, 4)", "array_except(a, n)"] {
        let sql = format!("SELECT {function} FROM q");
        assert!(stock_batches(&ctx, &sql).await.is_err(), "{function}");
    }
}

/// When this test fails, `functions::list_fields` can be removed.
#[tokio::test]
async fn stock_element_fields_still_differ() {
    let ctx = SessionContext::new_with_config(configure_elements());
    stock_batches(&ctx, ELEMENTS).await.unwrap();
    for function in ["array_concat(x, x)", "array_repeat(x, 2)"] {
        let sql = format!("SELECT x, {function} FROM e");
        assert!(stock_batches(&ctx, &sql).await.is_err(), "{function}");
    }
}

#[tokio::test]
async fn string_functions_apply_to_elements_not_to_the_string_of_a_list() {
    expect_rows(
        &[],
        &[
            ("SELECT left(['abc'], 1), reverse(['ab']), string_split(['a b'], ' ')", "[a] [ba] [[a, b]]"),
            ("SELECT lpad([['a'], NULL], 2, 'x'), translate(['ab'], 'a', 'c'), regexp_replace(['aab'], 'a+', 'z')", "[[xa], ] [cb] [zb]"),
            ("SELECT upper(['a']), array_to_string(['a', 'b'], ',')", "[A] a,b"),
            ("SELECT coalesce(NULL, ['b']), greatest([1], [2]), len(['a', 'b'])", "[b] [2] 2"),
            ("SELECT count(*) FROM (VALUES (['xy'])) v(s) WHERE ragged_any(left(s, 1) = 'x')", "1"),
        ],
    )
    .await;
}

#[tokio::test]
async fn lambdas_read_fields_of_their_parameters() {
    let setup = ["CREATE TABLE t AS SELECT [{'p': 1, 'q': 'a'}, {'p': 2, 'q': 'b'}] AS st, 5 AS s"];
    let cases = [
        ("SELECT list_transform(st, lambda s: s.p) FROM t", "[1, 2]"),
        ("SELECT list_transform(st, lambda x: x.p + t.s) FROM t", "[6, 7]"),
        ("SELECT list_filter(st, lambda s: s.p > 1)[1].q FROM t", "b"),
        (
            "SELECT list_transform([1, 2], lambda v: list_filter(st, lambda s: s.p = v)[1].q) FROM t",
            "[a, b]",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn nvl2_does_not_convert_the_tested_value() {
    let cases = [
        ("SELECT nvl2('x', 1, 2) + 1, nvl2(NULL, 1, 2), nvl2([0.5], 'a', 'b')", "2 2 a"),
        ("SELECT nvl2(DATE '2020-01-01', 5, 6), arrow_typeof(nvl2(1.5, 1, 2))", "5 Int64"),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn coalesce_returns_whole_lists() {
    let setup = ["CREATE TABLE t AS SELECT * FROM (VALUES (1, ['a', NULL]), (2, NULL)) v(id, ss)"];
    let cases = [
        ("SELECT coalesce(ss, ['none']) FROM t ORDER BY id", "[a, ]; [none]"),
        ("SELECT ifnull(ss, ['none']), nvl(ss, ['x'])[1] FROM t ORDER BY id", "[a, ] a; [none] x"),
        ("SELECT nvl(NULL, 1), ifnull('a', 'b'), len(ifnull([1], [0]))", "1 a 1"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = create_parallel_session();
    rows_or_error(&ctx, setup[0]).await;
    let refused = rows_or_error(&ctx, "SELECT coalesce(ss, 'none') FROM t").await;
    assert!(refused.contains("coalesce"), "{refused}");
}

#[tokio::test]
async fn ragged_shape_does_not_depend_on_other_rows() {
    let lists = "SELECT id, arrow_cast(x, 'List(FixedSizeList(2, Int64))') AS x FROM (VALUES (1, [[1, 2], NULL]), (2, [[3, 4]]), (3, NULL)) q(id, x)";
    let setup = [format!("CREATE TABLE t AS {lists}")];
    let cases = [
        ("SELECT ragged_shape(x) FROM t ORDER BY id", "[2, 2]; [1, 2]; NULL"),
        ("SELECT ragged_shape(x) FROM t WHERE id = 2", "[1, 2]"),
    ];
    expect_rows(&[setup[0].as_str()], &cases).await;
}

#[tokio::test]
async fn dates_in_lists_follow_the_rules_of_scalars() {
    let cases = [
        (
            "SELECT [DATE '2020-01-05', NULL] - DATE '2020-01-01', DATE '2020-01-05' - [DATE '2020-01-01']",
            "[4, ] [4]",
        ),
        (
            "SELECT [DATE '2020-01-05'] + 3, [DATE '2020-01-05'] - 5, 1 + [[DATE '2020-01-05'], NULL]",
            "[2020-01-08] [2019-12-31] [[2020-01-06], ]",
        ),
        (
            "SELECT [TIMESTAMP '2020-01-05 01:00:00'] - DATE '2020-01-05' = [INTERVAL '1 hour']",
            "true",
        ),
        (
            "SELECT [DATE '2020-01-05'] - TIMESTAMP '2020-01-04 23:00:00' > INTERVAL '59 minutes'",
            "[true]",
        ),
        (
            "SELECT [DATE '2020-01-05'] + (TIMESTAMP '2020-03-01 12:00:00' - TIMESTAMP '2020-03-01')",
            "[2020-01-05T12:00:00]",
        ),
        (
            "SELECT [DATE '2020-01-05'] + INTERVAL '1 day', [DATE '2020-01-05'] - INTERVAL '2 days ago'",
            "[2020-01-06] [2020-01-07]",
        ),
        (
            "SELECT TIMESTAMP '2020-01-01' + INTERVAL '1:30:00', DATE '2020-01-01' + INTERVAL '1 quarter'",
            "2020-01-01T01:30:00 2020-04-01",
        ),
    ];
    expect_rows(&[], &cases).await;
    let ctx = serrate::sql::session();
    let e = error(&ctx, "SELECT list_avg([TIMESTAMP '2020-01-01'])").await;
    assert!(e.contains("list_avg takes a list of numbers"), "{e}");
}

#[tokio::test]
async fn functions_of_lists_of_numbers_reject_lists_of_lists() {
    let ctx = serrate::sql::session();
    for (call, advice) in [
        ("list_avg([[1, 2], [3]])", "ragged_mean(x)"),
        ("list_product([[1, 2], [3]])", "ragged_prod(x)"),
        ("array_add([[1, 2]], NULL)", "x + y"),
        ("array_add([1, 2], [[1], [2]])", "x + y"),
        ("array_subtract([[1, 2]], [[3, 4]])", "x - y"),
        ("array_scale([[1, 2]], 2)", "x * 2"),
        ("array_normalize([[1, 2]])", "list_transform(x"),
        ("inner_product([[1, 2]], [[1, 2]])", "ragged_sum(x * y)"),
        ("cosine_distance([[1, 2]], [[1, 2]])", "flatten(x)"),
    ] {
        let e = error(&ctx, &format!("SELECT {call}")).await;
        assert!(e.contains("takes lists of numbers, but the values of a list are List("), "{e}");
        assert!(e.contains(advice), "{e}");
    }
    let cases = [(
        "SELECT list_avg([1, NULL, 4]), list_product([2, 3]), array_scale([1, 2], 2), array_add([1], [2])",
        "2.5 6.0 [2.0, 4.0] [3.0]",
    )];
    expect_rows(&[], &cases).await;
}

/// `OVER_NUMBERS` of `functions::number_lists` can be removed once this test fails.
#[tokio::test]
async fn stock_products_of_lists_are_still_internal_errors() {
    let ctx = SessionContext::new();
    for call in ["array_product", "array_avg", "array_normalize"] {
        let e = stock_error(&ctx, &format!("SELECT {call}([[1, 2], [3]])")).await;
        assert!(e.contains("could not cast array"), "{e}");
    }
}

/// The refusal of times in `functions::number_lists` can be removed once this test fails.
#[tokio::test]
async fn stock_averages_of_times_are_still_numbers() {
    let ctx = SessionContext::new();
    let sql = "SELECT arrow_typeof(array_avg([arrow_cast(1, 'Timestamp(Second, None)')]))";
    assert_eq!(rows_or_error(&ctx, sql).await, "Float64");
}

#[tokio::test]
async fn concatenation_ignores_null_lists_and_appends_null_elements() {
    let table = "CREATE TABLE t AS SELECT * FROM (VALUES ([1], NULL::INT[], NULL::INT)) v(x, y, n)";
    let cases = [
        ("SELECT [1] || NULL, NULL || [1], [1] || NULL::INT", "[1, ] [, 1] [1, ]"),
        ("SELECT [1] || NULL::INT[], NULL::INT[] || [1]", "[1] [1]"),
        ("SELECT x || y, y || x, y || y, x || n, y || n FROM t", "[1] [1] NULL [1, ] []"),
        (
            "SELECT x || NULL, len(y || NULL), [x] || y, [x] || [y] FROM t",
            "[1, ] 1 [[1], ] [[1], ]",
        ),
    ];
    expect_rows(&[table], &cases).await;
}

#[tokio::test]
async fn nested_lists_with_different_element_field_names_are_concatenated() {
    let table =
        "CREATE TABLE f AS SELECT arrow_cast([3, 1], 'List(Int64, field: ''element'')') AS x";
    let cases = [
        (
            "SELECT [x] || [[1]], [[1]] || [x], list_concat([x], [[1]]) FROM f",
            "[[3, 1], [1]] [[1], [3, 1]] [[3, 1], [1]]",
        ),
        ("SELECT x || [2.5], [1] || x FROM f", "[3.0, 1.0, 2.5] [1, 3, 1]"),
    ];
    expect_rows(&[table], &cases).await;
}

#[tokio::test]
async fn nested_large_lists_are_concatenated() {
    let setup = [
        "CREATE TABLE l AS SELECT arrow_cast([[1], NULL], 'LargeList(LargeList(Int64))') AS x, [[2]] AS y, arrow_cast([[3]], 'List(LargeList(Int64))') AS z",
    ];
    let cases = [
        ("SELECT x || x FROM l", "[[1], , [1], ]"),
        ("SELECT x || y, y || z FROM l", "[[1], , [2]] [[2], [3]]"),
        ("SELECT array_concat(z, NULL, z), concat(z, x) FROM l", "[[3], [3]] [[3], [1], ]"),
        (
            "SELECT arrow_typeof(y || z), arrow_typeof(x || x) = arrow_typeof(x) FROM l",
            "List(LargeList(Int64)) true",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `find_widest_lists` in `functions::list_fields` can be removed.
#[tokio::test]
async fn stock_nested_large_lists_still_fail() {
    let ctx = SessionContext::new();
    let list = "arrow_cast(make_array(make_array(1)), 'List(LargeList(Int64))')";
    let sql = format!("SELECT array_concat({list}, {list})");
    assert!(stock_batches(&ctx, &sql).await.is_err());
}

#[tokio::test]
async fn lists_and_structs_are_found_removed_and_replaced() {
    let setup = [
        "CREATE TABLE l AS SELECT * FROM (VALUES (1, [[1], [], NULL, [1]], [1], [7]), (2, [[NULL], []], NULL, []), (3, NULL, [1], [2]), (4, [], [1], NULL)) v(id, x, e, f)",
        "CREATE TABLE s AS SELECT [{'p': 1, 'q': 'a'}, NULL, {'p': NULL, 'q': 'b'}, {'p': 1, 'q': 'a'}] AS x, {'p': 1, 'q': 'a'} AS e",
    ];
    let cases = [
        ("SELECT array_position(x, e) FROM l ORDER BY id", "1; NULL; NULL; NULL"),
        ("SELECT array_positions(x, e) FROM l ORDER BY id", "[1, 4]; []; NULL; []"),
        ("SELECT array_position(x, []::INT[]), array_position(x, NULL) FROM l WHERE id = 1", "2 3"),
        ("SELECT array_position(x, [NULL]::INT[]) FROM l WHERE id < 3 ORDER BY id", "NULL; 1"),
        ("SELECT array_remove(x, e) FROM l ORDER BY id", "[[], , [1]]; NULL; NULL; []"),
        ("SELECT array_remove_all(x, e) FROM l WHERE id = 1", "[[], ]"),
        (
            "SELECT array_replace(x, e, f) FROM l ORDER BY id",
            "[[7], [], , [1]]; [[], []]; NULL; []",
        ),
        ("SELECT array_replace_all(x, e, f) FROM l WHERE id = 1", "[[7], [], , [7]]"),
        (
            "SELECT array_replace_n(x, [1], f, 1) FROM (FROM l ORDER BY id OFFSET 1) ORDER BY id",
            "[[], []]; NULL; []",
        ),
        (
            "SELECT array_position(x, e), array_positions(x, e), array_position(x, NULL) FROM s",
            "1 [1, 4] 2",
        ),
        ("SELECT array_remove(x, e) FROM s", "[, {p: , q: b}, {p: 1, q: a}]"),
        ("SELECT array_remove_n(x, e, 5) FROM s", "[, {p: , q: b}]"),
        (
            "SELECT array_replace_all(x, e, {'p': 2, 'q': 'c'}) FROM s",
            "[{p: 2, q: c}, , {p: , q: b}, {p: 2, q: c}]",
        ),
        ("SELECT e = ANY (x), {'p': 9, 'q': 'a'} = ANY (x) FROM s", "true NULL"),
        ("SELECT [5] = ANY ([[1], []]), [5] = ANY ([[1], NULL])", "false NULL"),
        (
            "SELECT array_remove([[0.0], [1.0]], [-0.0]), array_position([['NaN'::DOUBLE]], ['NaN'::DOUBLE])",
            "[[1.0]] 1",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `functions::nested_elements` can be removed.
#[tokio::test]
async fn stock_searches_for_null_still_find_empty_lists() {
    let ctx = SessionContext::new();
    let null = "arrow_cast(NULL, 'List(Int64)')";
    let list = "make_array(make_array(1), arrow_cast(make_array(), 'List(Int64)'))";
    assert_eq!(stock_one(&ctx, &format!("SELECT array_position({list}, {null})")).await, 2);
}
