//! ANY and ALL over lists, and searches in lists, use three-valued logic.

use super::*;

/// Returns the cells of the first row, which are booleans or NULL.
async fn query_flags(ctx: &SessionContext, sql: &str) -> Vec<Option<bool>> {
    let batches = run_query(ctx, sql).await;
    let first = |column: &ArrayRef| {
        let flags = column.as_boolean();
        flags.is_valid(0).then(|| flags.value(0))
    };
    batches[0].columns().iter().map(first).collect()
}

#[tokio::test]
async fn any_and_all_are_three_valued() {
    let ctx = serrate::sql::session();
    let lists: [(&str, Option<Vec<Option<i64>>>); 6] = [
        ("[]::BIGINT[]", Some(vec![])),
        ("[7, NULL]", Some(vec![Some(7), None])),
        ("[0, 3, NULL]", Some(vec![Some(0), Some(3), None])),
        ("[7, 7]", Some(vec![Some(7), Some(7)])),
        ("[NULL]::BIGINT[]", Some(vec![None])),
        ("NULL::BIGINT[]", None),
    ];
    type Compare = fn(i64, i64) -> bool;
    let operators: [(&str, Compare); 6] = [
        ("=", |x, y| x == y),
        ("<>", |x, y| x != y),
        ("<", |x, y| x < y),
        ("<=", |x, y| x <= y),
        (">", |x, y| x > y),
        (">=", |x, y| x >= y),
    ];
    for (value, x) in [("7", Some(7)), ("3", Some(3)), ("NULL::BIGINT", None)] {
        for (list, values) in &lists {
            let mut cases = Vec::new();
            for (op, compare) in operators {
                for (word, all) in [("ANY", false), ("ALL", true)] {
                    // One FALSE decides ALL, and one TRUE decides ANY.
                    let right = values.as_ref().and_then(|values| {
                        let tests: Vec<Option<bool>> =
                            values.iter().map(|y| Some(compare(x?, (*y)?))).collect();
                        if tests.contains(&Some(!all)) {
                            Some(!all)
                        } else if tests.contains(&None) {
                            None
                        } else {
                            Some(all)
                        }
                    });
                    cases.push((op, word, right));
                }
            }
            let from = format!("FROM (SELECT {value} AS x, {list} AS y)");
            let (mut constants, mut columns) = (Vec::new(), Vec::new());
            for (i, (op, word, _)) in cases.iter().enumerate() {
                constants.push(format!("{value} {op} {word}({list}) AS v{i}"));
                columns.push(format!("x {op} {word}(y) AS v{i}"));
            }
            let right: Vec<Option<bool>> = cases.iter().map(|(_, _, right)| *right).collect();
            for sql in [
                format!("SELECT {}", constants.join(", ")),
                format!("SELECT {} {from}", columns.join(", ")),
            ] {
                assert_eq!(query_flags(&ctx, &sql).await, right, "{sql}");
            }
            for (op, word, right) in cases {
                let sql = format!("SELECT bool_or(true) AS v {from} WHERE x {op} {word}(y)");
                assert_eq!(query_flags(&ctx, &sql).await, [right.filter(|v| *v)], "{sql}");
            }
        }
    }
}

/// When this test fails, `quantified.rs` can be removed.
#[tokio::test]
async fn stock_any_is_still_two_valued() {
    let ctx = SessionContext::new();
    let batches = stock_batches(&ctx, "SELECT 7 = ANY(make_array(0, 3, NULL))").await.unwrap();
    assert!(batches[0].column(0).is_valid(0));
}

const SUBSETS: &str =
    "CREATE TABLE l AS SELECT * FROM (VALUES (1, [1, 2], [1]), (2, [1], NULL), (3, NULL, [1]),
    (4, NULL, NULL), (5, [1], []), (6, NULL, []), (7, [], [2]), (8, [1], [2])) v(id, x, y)";

#[tokio::test]
async fn array_has_all_of_null_is_null_in_batches_of_any_size() {
    for batch in [1, 3, 8192] {
        let config = SessionConfig::new().with_target_partitions(1).with_batch_size(batch);
        let ctx = serrate::sql::session_with(config);
        serrate::sql::sql(&ctx, SUBSETS).await.unwrap().collect().await.unwrap();
        let yes = |ids: &[i64]| ids.to_vec();
        for (condition, expected) in [
            ("array_has_all(x, y)", yes(&[1, 5])),
            ("list_has_all(x, y) IS NULL", yes(&[2, 3, 4, 6])),
            ("array_has_any(x, y)", yes(&[1])),
            ("list_has_any(x, y) IS NULL", yes(&[2, 3, 4, 6])),
            ("NOT array_has_any(x, y)", yes(&[5, 7, 8])),
            ("array_has_all(x, [1])", yes(&[1, 2, 5, 8])),
            ("array_has_any(x, []) IS NULL", yes(&[3, 4, 6])),
            ("array_has_all(x, NULL) IS NULL", yes(&[1, 2, 3, 4, 5, 6, 7, 8])),
        ] {
            let sql = format!("SELECT id FROM l WHERE {condition} ORDER BY id");
            assert_eq!(query_ints(&ctx, &sql).await, expected, "{sql}");
        }
    }
}

/// When this test fails, `functions::list_subsets` can be removed.
#[tokio::test]
async fn stock_subsets_of_null_are_still_true() {
    let sql = "SELECT array_has_all(make_array(1), arrow_cast(NULL, 'List(Int64)')) AS a";
    let rows = SessionContext::new().sql(sql).await.unwrap().collect().await.unwrap();
    assert!(rows[0].column(0).is_valid(0));
}

#[tokio::test]
async fn searches_in_constant_lists_equal_searches_in_columns() {
    for (list, elements) in [
        ("[3, NULL, 1]", "BIGINT[]"),
        ("[NULL]", "BIGINT[]"),
        ("[]", "BIGINT[]"),
        ("[1, 2]", "BIGINT[]"),
        ("make_array(3, NULL)", "BIGINT[]"),
        ("NULL", "BIGINT[]"),
    ] {
        let ctx = serrate::sql::session();
        let made = format!(
            "CREATE TABLE v AS SELECT column1 AS x, {list}::{elements} AS l
             FROM (VALUES (2), (NULL), (3), (1))"
        );
        query_batches(&ctx, &made).await.unwrap();
        let query = format!(
            "SELECT count(*) FROM v
             WHERE array_has(l, x) IS DISTINCT FROM array_has({list}::{elements}, x)
                OR array_has(l, 2) IS DISTINCT FROM list_contains({list}::{elements}, 2)"
        );
        assert_eq!(query_int(&ctx, &query).await, 0, "{list}");
    }
}

/// When this test fails, `functions::list_contains` can be removed.
#[tokio::test]
async fn stock_constant_lists_still_contain_null() {
    let sql = "SELECT count(*) FROM (VALUES (2), (5)) AS v(x) WHERE NOT array_has([3, NULL], x)";
    assert_eq!(stock_one(&SessionContext::new(), sql).await, 0);
}

#[tokio::test]
async fn any_and_all_compare_with_lists_in_a_list() {
    let setup = [
        "CREATE TABLE l AS SELECT * FROM (VALUES (1, [[]::INT[]]), (2, [[], NULL]), (3, []), (4, NULL), (5, [[1]])) v(id, x)",
    ];
    let cases = [
        ("SELECT id, [1] = ANY (x) FROM l ORDER BY id", "1 false; 2 NULL; 3 false; 4 NULL; 5 true"),
        (
            "SELECT id, []::INT[] = ANY (x) FROM l ORDER BY id",
            "1 true; 2 true; 3 false; 4 NULL; 5 false",
        ),
        (
            "SELECT id, []::INT[] <> ALL (x) FROM l ORDER BY id",
            "1 false; 2 false; 3 true; 4 NULL; 5 true",
        ),
        (
            "SELECT id, NULL::INT[] = ANY (x) FROM l ORDER BY id",
            "1 NULL; 2 NULL; 3 false; 4 NULL; 5 NULL",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn strings_are_compared_with_elements_exactly() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, '1', [1, 2]), (2, '01', [1]), (3, '3', [1, 2]), (4, NULL, [1])) v(id, s, x)",
        "CREATE TABLE d AS SELECT [DATE '2020-01-01'] AS ds, [TIMESTAMP '2020-01-01 10:00:00', NULL] AS ts, [1.5, 2.0] AS f, [1.01::DECIMAL(10, 2)] AS m, '1.01' AS s, 5 AS n, ['9', '80'] AS st",
    ];
    let cases = [
        ("SELECT id, array_has(x, s) FROM t ORDER BY id", "1 true; 2 true; 3 false; 4 NULL"),
        ("SELECT id FROM t WHERE list_contains([1, 2], s) ORDER BY id", "1; 2"),
        ("SELECT id FROM t WHERE s = ANY(x) ORDER BY id", "1; 2"),
        ("SELECT id, array_position(x, s) FROM t ORDER BY id", "1 1; 2 1; 3 NULL; 4 NULL"),
        (
            "SELECT list_contains(f, '1.5'), list_contains(f, '1.50'), list_contains(f, '3') FROM d",
            "true true false",
        ),
        (
            "SELECT list_contains(ds, '2020-01-01'), list_contains(ds, '2020-01-02') FROM d",
            "true false",
        ),
        (
            "SELECT list_contains(ts, '2020-01-01 10:00:00'), array_position(ts, '2020-01-01 10:00') FROM d",
            "true 1",
        ),
        ("SELECT list_contains(m, s::DECIMAL(10, 2)) FROM d", "true"),
        // Strings compare as strings, and as numbers next to numbers.
        (
            "SELECT 10 < ANY([9, 80]), '10' < ANY([9, 80]), '10' < ANY(['9', '80']), 10 < ANY(st::INT[]) FROM d",
            "true true true true",
        ),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = create_parallel_session();
    for sql in setup {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    for (sql, words) in [
        ("SELECT id FROM t WHERE array_has(x, s || '.5')", "Cannot cast string"),
        ("SELECT x == s FROM t", "cast one side"),
        ("SELECT list_contains(m, s) FROM d", "list_contains(x, s::DECIMAL(10, 2))"),
        ("SELECT n FROM d WHERE list_contains(ds, s)", "list_contains(x, s::DATE)"),
        ("SELECT list_contains(ds, '2020-01-01 10:00:00') FROM d", "list_contains(x, s::DATE)"),
        ("SELECT n FROM d WHERE array_position(ts, s) = 1", "array_position(x, s::TIMESTAMP)"),
        ("SELECT n FROM d WHERE s = ANY(ds)", "list_contains(x, s::DATE)"),
        // The string '9' is greater than '80', so that ANY and ALL must not compare with the greatest
        // string.
        ("SELECT 10 < ANY(['9', '80'])", "cast the list"),
        ("SELECT 10 > ALL(['9', '80'])", "cast the list"),
        ("SELECT n FROM d WHERE n <> ANY(st)", "cast the list"),
        ("SELECT DATE '2020-01-01' >= ANY(st) FROM d", "cast the list"),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

#[tokio::test]
async fn lists_of_bytes_and_of_fixed_size_are_searched() {
    let cases = [
        (
            "SELECT X'61' = ANY([X'61', X'62']), X'63' = ANY([X'61']), X'61' <> ALL([X'61', X'62'])",
            "true false false",
        ),
        (
            "SELECT b = ANY(l), b < ANY(l), l[2] FROM (SELECT X'61' AS b, array_append([X'61'], NULL) AS l)",
            "true NULL NULL",
        ),
        (
            "SELECT list_contains(l, b), array_position(l, b) FROM (SELECT X'62' AS b, arrow_cast([X'61', X'62'], 'List(BinaryView)') AS l)",
            "true 2",
        ),
        (
            "SELECT list_contains(f, 2.5), list_contains(f, 2), 1.5 = ANY(f), array_position(f, 2.5) FROM (SELECT arrow_cast([1.5, 2.5], 'FixedSizeList(2, Decimal128(3, 1))') AS f)",
            "true false true 2",
        ),
    ];
    expect_rows(&[], &cases).await;
}
