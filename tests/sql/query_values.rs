//! Subqueries as values: IN and EXISTS outside WHERE, ANY and ALL, and correlated scalar subqueries
//! with any condition.

use super::*;

async fn with_tables(partitions: usize) -> SessionContext {
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
    let tables = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, 30), (NULL, 7)) v(id, x)",
        "CREATE TABLE u AS SELECT * FROM (VALUES (1, 10), (2, 20), (2, 5), (NULL, 7)) v(k, y)",
        "CREATE TABLE w AS SELECT * FROM u WHERE k IS NOT NULL",
        "CREATE TABLE z AS SELECT * FROM u WHERE k > 9",
    ];
    run_all(&ctx, &tables).await;
    ctx
}

async fn check_cases(cases: &[(&str, &str)]) {
    for partitions in [1, 4] {
        let ctx = with_tables(partitions).await;
        for (sql, expected) in cases {
            assert_eq!(query_rows(&ctx, sql).await, *expected, "{sql}");
        }
    }
}

#[tokio::test]
async fn in_and_exists_are_three_valued_in_every_clause() {
    check_cases(&[
        // The subquery returns NULL, or the left operand is NULL.
        ("SELECT id, id IN (SELECT k FROM u) FROM t ORDER BY id", "1 true; 2 true; 3 NULL; NULL NULL"),
        (
            "SELECT id, id NOT IN (SELECT k FROM u) FROM t ORDER BY id",
            "1 false; 2 false; 3 NULL; NULL NULL",
        ),
        ("SELECT id, id IN (SELECT k FROM w) FROM t ORDER BY id", "1 true; 2 true; 3 false; NULL NULL"),
        ("SELECT id, id IN (SELECT k FROM z) FROM t ORDER BY id", "1 false; 2 false; 3 false; NULL false"),
        ("SELECT id, id NOT IN (SELECT k FROM z) FROM t ORDER BY id", "1 true; 2 true; 3 true; NULL true"),
        (
            "SELECT id, id IN (SELECT k FROM w WHERE y < x) FROM t ORDER BY id",
            "1 false; 2 true; 3 false; NULL NULL",
        ),
        ("SELECT id, EXISTS (SELECT 1 FROM u WHERE k = id) FROM t ORDER BY id", "1 true; 2 true; 3 false; NULL false"),
        ("SELECT id, EXISTS (SELECT 1 FROM u WHERE k < id) AS e FROM t ORDER BY id", "1 false; 2 true; 3 true; NULL false"),
        ("SELECT id, NOT EXISTS (SELECT 1 FROM z) FROM t ORDER BY id", "1 true; 2 true; 3 true; NULL true"),
        (
            "SELECT id, CASE WHEN id NOT IN (SELECT k FROM w) THEN 'n' ELSE 'y' END FROM t ORDER BY id",
            "1 y; 2 y; 3 n; NULL y",
        ),
        ("SELECT 1 IN (SELECT k FROM u) AS a, 9 IN (SELECT k FROM u) AS b, 9 IN (SELECT k FROM w) AS c", "true NULL false"),
        ("SELECT EXISTS (SELECT 1) AS a, EXISTS (SELECT 1 WHERE false) AS b", "true false"),
        // IN and EXISTS may be in every clause.
        ("SELECT id FROM t ORDER BY id IN (SELECT k FROM w), id", "3; 1; 2; NULL"),
        ("SELECT count(*) FILTER (WHERE id IN (SELECT k FROM u)) FROM t", "2"),
        (
            "SELECT sum(CASE WHEN EXISTS (SELECT 1 FROM u WHERE k = id) THEN x ELSE 0 END) FROM t",
            "30",
        ),
        (
            "SELECT id IN (SELECT k FROM w) AS b, count(*) FROM t GROUP BY 1 ORDER BY 1",
            "false 1; true 2; NULL 1",
        ),
        (
            "SELECT id, sum(x) OVER (PARTITION BY id IN (SELECT k FROM w)) FROM t ORDER BY id",
            "1 30; 2 30; 3 30; NULL 7",
        ),
        ("SELECT id FROM t WHERE (id IN (SELECT k FROM u)) IS NULL ORDER BY id", "3; NULL"),
    ])
    .await;
}

/// The value before IN, ANY or ALL may itself contain IN, EXISTS, ANY or ALL.
#[tokio::test]
async fn tests_of_subqueries_may_be_tested() {
    check_cases(&[
        (
            "SELECT id, (id IN (SELECT k FROM w)) IN (SELECT true) FROM t ORDER BY id",
            "1 true; 2 true; 3 false; NULL NULL",
        ),
        (
            "SELECT id, (id IN (SELECT k FROM w)) NOT IN (SELECT k = 2 FROM u) FROM t ORDER BY id",
            "1 false; 2 false; 3 false; NULL NULL",
        ),
        (
            "SELECT id, EXISTS (SELECT 1 FROM u) IN (SELECT k = id FROM w WHERE y < x) FROM t ORDER BY id",
            "1 false; 2 true; 3 false; NULL NULL",
        ),
        (
            "SELECT id FROM t WHERE (id IN (SELECT k FROM w)) IN (SELECT true) OR id = 3 ORDER BY id",
            "1; 2; 3",
        ),
        ("SELECT id FROM t WHERE (id IN (SELECT k FROM w)) NOT IN (SELECT true)", "3"),
        ("SELECT id FROM t WHERE ((id IN (SELECT k FROM w)) IN (SELECT true)) IS NULL", "NULL"),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE k = id) IN (SELECT true) ORDER BY id",
            "1; 2",
        ),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE k = id) = ANY (SELECT false) ORDER BY id",
            "3; NULL",
        ),
        (
            "SELECT id FROM t WHERE ((id > ANY (SELECT k FROM w)) IN (SELECT true)) IN (SELECT true) ORDER BY id",
            "2; 3",
        ),
        (
            "SELECT id FROM t GROUP BY id HAVING EXISTS (SELECT 1 FROM u WHERE k = id) IN (SELECT true) ORDER BY id",
            "1; 2",
        ),
        (
            "SELECT t.id FROM t JOIN w ON t.id = w.k AND EXISTS (SELECT 1 FROM u WHERE u.y = t.x) IN (SELECT true) ORDER BY t.id",
            "1; 2; 2",
        ),
    ])
    .await;
}

/// The value before IN, ANY or ALL may have columns of the query around the one that tests it.
#[tokio::test]
async fn values_of_outer_queries_may_be_tested() {
    check_cases(&[
        (
            "SELECT id, (SELECT t.id IN (SELECT k FROM w) FROM u WHERE y = 7) FROM t ORDER BY id",
            "1 true; 2 true; 3 false; NULL NULL",
        ),
        (
            "SELECT id, (SELECT t.id NOT IN (SELECT k FROM u) FROM u WHERE y = 7) FROM t ORDER BY id",
            "1 false; 2 false; 3 NULL; NULL NULL",
        ),
        (
            "SELECT id, (SELECT t.id NOT IN (SELECT k FROM z) FROM u WHERE y = 7) FROM t ORDER BY id",
            "1 true; 2 true; 3 true; NULL true",
        ),
        (
            "SELECT id, (SELECT t.x >= ALL (SELECT y FROM w) FROM u WHERE y = 7) FROM t ORDER BY id",
            "1 false; 2 true; 3 true; NULL false",
        ),
        (
            "SELECT id, (SELECT sum(CASE WHEN id + k IN (SELECT k FROM u) THEN y ELSE 0 END) FROM w) FROM t ORDER BY id",
            "1 10; 2 0; 3 0; NULL 0",
        ),
        (
            "SELECT id, (SELECT count(*) FILTER (WHERE id IN (SELECT k FROM w)) FROM u) FROM t ORDER BY id",
            "1 4; 2 4; 3 0; NULL 0",
        ),
        (
            "SELECT t.id, l.b FROM t, LATERAL (SELECT t.id IN (SELECT k FROM w) AS b FROM u WHERE y = 7) l ORDER BY t.id",
            "1 true; 2 true; 3 false; NULL NULL",
        ),
    ])
    .await;
}

#[tokio::test]
async fn scalar_subqueries_may_be_correlated_by_any_condition() {
    check_cases(&[
        ("SELECT id, (SELECT sum(y) FROM u WHERE k < id) FROM t ORDER BY id", "1 NULL; 2 10; 3 35; NULL NULL"),
        ("SELECT id, (SELECT count(*) FROM u WHERE k < id) FROM t ORDER BY id", "1 0; 2 1; 3 3; NULL 0"),
        ("SELECT id, (SELECT count(*) + 1 FROM u WHERE k < id) FROM t ORDER BY id", "1 1; 2 2; 3 4; NULL 1"),
        (
            "SELECT id, (SELECT sum(y) FROM u WHERE k = id OR y = x) FROM t ORDER BY id",
            "1 10; 2 25; 3 NULL; NULL 7",
        ),
        (
            "SELECT id, (SELECT sum(s.v) FROM (VALUES (1), (2)) s(v) WHERE s.v < id) FROM t ORDER BY id",
            "1 NULL; 2 1; 3 3; NULL NULL",
        ),
        ("SELECT id, (SELECT max(y + id) FROM u WHERE k = id) FROM t ORDER BY id", "1 11; 2 22; 3 NULL; NULL NULL"),
        ("SELECT id FROM t WHERE x > (SELECT sum(y) FROM u WHERE k < id) ORDER BY id", "2"),
        ("SELECT id FROM t WHERE (SELECT count(*) FROM u WHERE k < id) = 0 ORDER BY id", "1; NULL"),
        (
            "SELECT id, (SELECT y FROM u WHERE k <= id ORDER BY k DESC, y LIMIT 1) FROM t ORDER BY id",
            "1 10; 2 5; 3 5; NULL NULL",
        ),
        (
            "SELECT id, (SELECT y FROM u WHERE k <= id ORDER BY k DESC, y LIMIT 1 OFFSET 1) FROM t ORDER BY id",
            "1 NULL; 2 20; 3 20; NULL NULL",
        ),
        ("SELECT id, (SELECT y FROM u WHERE k = id AND y > 5) FROM t ORDER BY id", "1 10; 2 20; 3 NULL; NULL NULL"),
        (
            "SELECT id, (SELECT count(DISTINCT a.y) FROM u a JOIN w b ON a.k = b.k WHERE a.k < id) FROM t ORDER BY id",
            "1 0; 2 1; 3 3; NULL 0",
        ),
        (
            "SELECT id, (SELECT count(*) FROM (SELECT DISTINCT k FROM u WHERE k < id) q) FROM t ORDER BY id",
            "1 0; 2 1; 3 2; NULL 0",
        ),
        (
            "SELECT id, (SELECT max(n) FROM (SELECT k, count(*) AS n FROM u WHERE y < x GROUP BY k) q) FROM t ORDER BY id",
            "1 1; 2 1; 3 2; NULL 1",
        ),
        // An expression may have two subqueries, and the outer query may have equal rows.
        (
            "SELECT id, (SELECT count(*) FROM u WHERE k < id) + (SELECT count(*) FROM u WHERE y < x) FROM (SELECT * FROM t UNION ALL SELECT * FROM t) ORDER BY id",
            "1 2; 1 2; 2 4; 2 4; 3 7; 3 7; NULL 1; NULL 1",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_scalar_subquery_of_several_rows_is_an_error() {
    let ctx = with_tables(4).await;
    let sql = "SELECT id, (SELECT y FROM u WHERE k = id) FROM t";
    let frame = serrate::sql::sql(&ctx, sql).await.unwrap();
    let e = frame.collect().await.unwrap_err().strip_backtrace();
    assert!(e.contains("has 2 rows") && e.contains("LIMIT 1"), "{e}");
}

/// PARTITION BY and ORDER BY of windows may contain lambdas.
#[tokio::test]
async fn windows_may_have_lambdas_in_their_keys() {
    check_cases(&[
        (
            "SELECT id, sum(x) OVER (PARTITION BY len(list_filter([0, 1, 2], q -> q > id)) ORDER BY id) FROM t WHERE id > 0 ORDER BY id",
            "1 10; 2 20; 3 50",
        ),
        (
            "SELECT id, rank() OVER (ORDER BY len(list_filter([0, 1, 2], q -> q > id))) FROM t WHERE id > 0 ORDER BY id",
            "1 3; 2 1; 3 1",
        ),
        (
            "SELECT id, sum(x) OVER (PARTITION BY list_filter([0, 1, 2], q -> q > id) ORDER BY list_transform([1], q -> q + id)) FROM t WHERE id > 0 ORDER BY id",
            "1 10; 2 20; 3 50",
        ),
    ])
    .await;
}

#[tokio::test]
async fn join_conditions_may_contain_subqueries() {
    check_cases(&[
        (
            "SELECT id, k, y FROM t JOIN u ON id = k AND EXISTS (SELECT 1 FROM w WHERE w.y = t.x) ORDER BY 1, 3",
            "1 1 10; 2 2 5; 2 2 20",
        ),
        (
            "SELECT id, y FROM t LEFT JOIN u ON id = k AND EXISTS (SELECT 1 FROM w WHERE w.y = t.x - 15) ORDER BY 1, 2",
            "1 NULL; 2 5; 2 20; 3 NULL; NULL NULL",
        ),
        (
            "SELECT id, y FROM t LEFT JOIN u ON id = k AND u.y NOT IN (SELECT w.y FROM w WHERE w.k < u.k) ORDER BY 1, 2",
            "1 10; 2 5; 2 20; 3 NULL; NULL NULL",
        ),
        (
            "SELECT id, y FROM t RIGHT JOIN u ON id = k AND id IN (SELECT k FROM w WHERE y > 10) ORDER BY 2",
            "2 5; NULL 7; NULL 10; 2 20",
        ),
        (
            "SELECT id, y FROM t FULL JOIN u ON id = k AND x > (SELECT max(y) FROM w WHERE w.k = t.id - 1) ORDER BY 1, 2",
            "1 NULL; 2 5; 2 20; 3 NULL; NULL 7; NULL 10; NULL NULL",
        ),
        (
            "SELECT id FROM t LEFT SEMI JOIN u ON id = k AND x > (SELECT min(y) FROM w WHERE w.k = t.id) ORDER BY 1",
            "2",
        ),
        ("SELECT id, y FROM t JOIN u ON x = y AND id IN (SELECT k FROM u) ORDER BY 1", "1 10; 2 20"),
        ("SELECT t.*, u.* FROM t LEFT JOIN u ON id = k AND EXISTS (SELECT 1 FROM z) WHERE id = 1", "1 10 NULL NULL"),
    ])
    .await;
}

#[tokio::test]
async fn correlated_subqueries_may_be_operands_of_subqueries() {
    let setup =
        ["CREATE TABLE k AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, 20), (4, NULL)) v(id, k)"];
    let count = "(SELECT count(*) FROM k x WHERE x.k = b.k)";
    let cases = [
        (
            format!("SELECT id FROM k b WHERE {count} IN (SELECT y.id FROM k y) ORDER BY id"),
            "1; 2; 3",
        ),
        (
            format!(
                "SELECT id FROM k b WHERE {count} NOT IN (SELECT y.id FROM k y WHERE y.id < 2) ORDER BY id"
            ),
            "2; 3; 4",
        ),
        (
            format!(
                "SELECT id FROM k b WHERE {count} IN (SELECT y.id FROM k y WHERE y.k = b.k) AND id > 0 ORDER BY id"
            ),
            "1; 2; 3",
        ),
        (format!("SELECT count(*) FROM k b WHERE {count} + 1 IN (SELECT 3) OR id = 4"), "3"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn values_may_contain_subqueries() {
    check_cases(&[
        ("VALUES ((SELECT 1)), (2)", "1; 2"),
        ("SELECT a + b FROM (VALUES ((SELECT max(id) FROM t), 1), (5, (SELECT min(id) FROM t))) v(a, b) ORDER BY 1", "4; 6"),
        ("SELECT id FROM t WHERE id IN (VALUES ((SELECT 2)))", "2"),
        ("SELECT x FROM (VALUES (EXISTS (SELECT 1 FROM z))) v(x)", "false"),
    ])
    .await;
    let ctx = with_tables(4).await;
    for sql in [
        "CREATE TABLE n (a BIGINT, b VARCHAR)",
        "INSERT INTO n VALUES ((SELECT max(id) + 1 FROM t), 'x')",
    ] {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    assert_eq!(rows_or_error(&ctx, "SELECT * FROM n").await, "4 x");
}

#[tokio::test]
async fn a_scalar_subquery_without_rows_is_null() {
    check_cases(&[
        ("SELECT id FROM t WHERE (SELECT 1 FROM z) IS NULL ORDER BY id", "1; 2; 3; NULL"),
        ("SELECT id FROM t WHERE (SELECT 1 FROM z) IS NOT NULL", ""),
        ("SELECT id, (SELECT 'a' FROM z ORDER BY y LIMIT 1) FROM t WHERE id < 3 ORDER BY id", "1 NULL; 2 NULL"),
        ("SELECT (SELECT 1 FROM z) IS NULL, coalesce((SELECT 1 FROM z), 7)", "true 7"),
        ("SELECT (SELECT count(*) FROM u HAVING count(*) > 9)", "NULL"),
        ("SELECT id FROM t WHERE (SELECT count(*) FROM u HAVING count(*) > 9) IS NULL ORDER BY 1", "1; 2; 3; NULL"),
        ("SELECT id FROM t WHERE (SELECT count(*) FROM u LIMIT 0) IS NULL ORDER BY 1", "1; 2; 3; NULL"),
        ("SELECT (SELECT count(*) FROM z), (SELECT max(y) FROM z)", "0 NULL"),
        ("SELECT count((SELECT 2 FROM z)), count(*) FROM t", "0 4"),
        // The subquery may be in another subquery, a key, or an element of a list.
        ("SELECT a, count(*) FROM (SELECT (SELECT 1 FROM z) AS a FROM t) GROUP BY a", "NULL 4"),
        ("SELECT id FROM t WHERE x > coalesce((SELECT (SELECT 5 FROM z) + 1), 15) ORDER BY id", "2; 3"),
        ("SELECT ragged_fill_null([(SELECT 1 FROM z), 2], 0)", "[0, 2]"),
        // The column of the subquery becomes a literal when the plan is optimized.
        ("SELECT id FROM t WHERE (SELECT CASE WHEN true THEN 1 END FROM z) IS NULL ORDER BY 1", "1; 2; 3; NULL"),
        ("SELECT (SELECT nullif(1, 2) FROM z) IS NULL, (SELECT {'a': 1} FROM z) IS NULL", "true true"),
        ("SELECT id, (SELECT {'a': 1} FROM z) AS s FROM t WHERE id < 3 ORDER BY id", "1 NULL; 2 NULL"),
        // A scalar subquery with one row is its value.
        ("SELECT (SELECT 1 FROM w WHERE y = 10) + 1, (SELECT k FROM w WHERE y = 5)", "2 2"),
    ])
    .await;
    let ctx = with_tables(1).await;
    error(&ctx, "SELECT (SELECT 1 FROM u)").await;
}

/// When this test fails, `workarounds::subqueries::empty_queries` can be removed.
#[tokio::test]
async fn stock_queries_without_rows_are_still_values() {
    let ctx = SessionContext::new();
    let sql = "SELECT (SELECT 1 FROM (VALUES (1)) t(k) WHERE k > 9) IS NULL AS a";
    let batches = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    assert!(!batches[0].column(0).as_boolean().value(0));
}

/// When this test fails, `serrate_query_values` can be removed.
#[tokio::test]
async fn stock_queries_are_no_values() {
    let ctx = SessionContext::new();
    for sql in [
        "SELECT k IN (SELECT 1) FROM (VALUES (1)) t(k)",
        "SELECT EXISTS (SELECT 1 FROM (VALUES (1)) u(j) WHERE j = k) FROM (VALUES (1)) t(k)",
        "SELECT (SELECT count(*) FROM (VALUES (1)) u(j) WHERE j < k) FROM (VALUES (1)) t(k)",
        "SELECT k FROM (VALUES (1)) t(k) ORDER BY k IN (SELECT 1)",
        "SELECT k FROM (VALUES (1)) t(k) JOIN (VALUES (1)) u(j)
            ON EXISTS (SELECT 1 FROM (VALUES (1)) w(i) WHERE i = k)",
    ] {
        stock_error(&ctx, sql).await;
    }
}

#[tokio::test]
async fn tuples_in_correlated_subqueries_are_compared() {
    check_cases(&[
        ("SELECT id FROM t WHERE (id, x) IN (SELECT k, y FROM u WHERE u.k = t.id) ORDER BY id", "1; 2"),
        ("SELECT id FROM t WHERE (id, x) IN (SELECT k, y FROM u WHERE u.y < t.x + 1) ORDER BY id", "1; 2"),
        ("SELECT id FROM t WHERE (id, x) NOT IN (SELECT k, y FROM w WHERE w.k = t.id) ORDER BY id", "3; NULL"),
        ("SELECT id FROM t WHERE (id, x) NOT IN (SELECT k, y FROM u WHERE u.y > t.x) ORDER BY id", "1; 2; 3; NULL"),
        (
            "SELECT id, (id, x) IN (SELECT k, y FROM u WHERE u.y <= t.x) FROM t ORDER BY id",
            "1 true; 2 true; 3 false; NULL NULL",
        ),
        ("SELECT id, (id, x) NOT IN (SELECT k, y FROM u) FROM t ORDER BY id", "1 false; 2 false; 3 true; NULL NULL"),
        ("SELECT id FROM t WHERE (id + 1, 'a') IN (SELECT k AS a, 'a' AS b FROM u WHERE u.y < t.x + 11) ORDER BY id", "1"),
        ("SELECT id FROM t WHERE (id, 2) IN (SELECT k, count(*) FROM u WHERE u.k = t.id GROUP BY k) ORDER BY id", "2"),
        ("SELECT id FROM t WHERE (id, x) IN (SELECT k, y FROM u) OR id = 3 ORDER BY id", "1; 2; 3"),
        ("SELECT id FROM t WHERE (id, x) IN (SELECT * FROM u) ORDER BY id", "1; 2"),
        ("SELECT id FROM t WHERE (id, x) IN (VALUES (1, 10), (2, 21)) ORDER BY id", "1"),
        ("SELECT id FROM t WHERE (id, x) IN (SELECT k, y FROM u UNION SELECT 3, 30) ORDER BY id", "1; 2; 3"),
        ("SELECT id FROM t WHERE (id, x, 1) IN (SELECT DISTINCT k, y, 1 FROM u JOIN t v ON v.id = u.k WHERE t.id = v.id) ORDER BY id", "1; 2"),
    ])
    .await;
}

#[tokio::test]
async fn lateral_queries_may_have_limits_groups_and_set_operations() {
    check_cases(&[
        (
            "SELECT t.x, u.y FROM (VALUES (1), (2), (4)) t(x), LATERAL
                (SELECT y FROM (VALUES (1), (2), (3)) v(y) WHERE y >= t.x ORDER BY y LIMIT 1) u ORDER BY 1",
            "1 1; 2 2",
        ),
        (
            "SELECT t.x, u.y FROM (VALUES (1), (2), (4)) t(x) LEFT JOIN LATERAL
                (SELECT y FROM (VALUES (1), (2), (3)) v(y) WHERE y >= t.x ORDER BY y LIMIT 1) u ON true ORDER BY 1",
            "1 1; 2 2; 4 NULL",
        ),
        (
            "SELECT t.x, u.n FROM (VALUES (1), (1), (4)) t(x) CROSS JOIN LATERAL
                (SELECT count(*) AS n FROM (VALUES (1), (2), (3)) v(y) WHERE y > t.x) u ORDER BY 1",
            "1 2; 1 2; 4 0",
        ),
        (
            "SELECT t.x, u.y FROM (VALUES (1), (2)) t(x) JOIN LATERAL
                (SELECT DISTINCT y % 2 AS y FROM (VALUES (1), (2), (3)) v(y) WHERE y > t.x) u ON u.y = 1 ORDER BY 1",
            "1 1; 2 1",
        ),
        (
            "SELECT t.x, u.y FROM (VALUES (1), (2)) t(x), LATERAL
                (SELECT t.x AS y UNION ALL SELECT 10 * t.x) u ORDER BY 1, 2",
            "1 1; 1 10; 2 2; 2 20",
        ),
    ])
    .await;
}

#[tokio::test]
async fn any_and_all_of_subqueries_are_values() {
    let v = "(VALUES (1), (3), (NULL)) t(x)";
    let check_all = |test: &str, answers: &str| {
        (format!("SELECT x, {test} AS c FROM {v} ORDER BY x"), answers.to_owned())
    };
    let cases = [
        check_all("x < ALL (SELECT y FROM (VALUES (2), (4)) u(y))", "1 true; 3 false; NULL NULL"),
        check_all("x < ANY (SELECT y FROM (VALUES (2), (NULL)) u(y))", "1 true; 3 NULL; NULL NULL"),
        check_all(
            "x < ALL (SELECT y FROM (VALUES (2)) u(y) WHERE y > 5)",
            "1 true; 3 true; NULL true",
        ),
        check_all(
            "x <> ALL (SELECT y FROM (VALUES (3)) u(y) WHERE y >= t.x)",
            "1 true; 3 false; NULL true",
        ),
        (
            "SELECT a.x, b.x FROM (VALUES (1), (3)) a(x) LEFT JOIN (VALUES (1), (3)) b(x)
                ON a.x = b.x AND a.x < ALL (SELECT y FROM (VALUES (2)) u(y)) ORDER BY 1"
                .to_owned(),
            "1 1; 3 NULL".to_owned(),
        ),
        // The subquery after ANY uses a column of the outermost query.
        (
            "SELECT t.id FROM t WHERE t.id IN (SELECT u.k FROM u WHERE u.y = ANY (SELECT w.y FROM w WHERE w.k = t.id))
                ORDER BY 1"
                .to_owned(),
            "1; 2".to_owned(),
        ),
        (
            "SELECT t.id FROM t WHERE EXISTS
                (SELECT 1 FROM u WHERE u.k = 1 AND u.y >= ALL (SELECT w.y FROM w WHERE w.k = t.id)) ORDER BY 1"
                .to_owned(),
            "1; 3; NULL".to_owned(),
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(q, a)| (q.as_str(), a.as_str())).collect();
    check_cases(&cases).await;
}

#[tokio::test]
async fn equal_volatile_subqueries_have_separate_values() {
    check_cases(&[
        ("SELECT (SELECT random()) = (SELECT random())", "false"),
        ("SELECT count(*) FROM t WHERE (SELECT random()) = (SELECT random())", "0"),
        ("SELECT count(DISTINCT r) FROM (SELECT (SELECT random()) AS r FROM t)", "1"),
    ])
    .await;
}

#[tokio::test]
async fn unnest_may_be_selected_above_nested_correlated_subqueries() {
    check_cases(&[(
        "SELECT id, unnest([id, 7]) AS v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM w WHERE w.k = t.id))
         ORDER BY id, v",
        "1 1; 1 7; 2 2; 2 7",
    )])
    .await;
}

#[tokio::test]
async fn subqueries_that_expand_without_bound_are_refused() {
    let ctx = with_tables(1).await;
    let mut query = "SELECT a.k FROM u a WHERE a.y > t.x".to_owned();
    for _ in 0..3 {
        query = format!("SELECT a.k FROM u a WHERE a.y > t.x AND (a.k IN ({query})) IS NULL");
    }
    let sql = format!("SELECT id FROM t WHERE (id IN ({query})) IS NULL");
    let message = rows_or_error(&ctx, &sql).await;
    assert!(message.contains("expand to more than"), "{message}");
}

/// The rewrite of `(k, 1) IN (query)` uses the query twice. Both uses have the same rows, although
/// the query is volatile.
#[tokio::test]
async fn tuples_in_a_volatile_subquery_use_the_rows_of_one_run() {
    let sampled = "(SELECT k, random() AS r FROM g) h WHERE r < 0.5";
    for query in [
        format!("SELECT k, 1 FROM {sampled}"),
        format!("SELECT * FROM (SELECT k, 1 FROM {sampled}) j"),
    ] {
        let sql = format!(
            "SELECT count(*) FROM (SELECT (k, 1) IN ({query}) AS x FROM g) WHERE x IS NULL"
        );
        expect_rows(&["CREATE TABLE g AS SELECT i AS k FROM range(200) t(i)"], &[(&sql, "0")])
            .await;
    }
}

#[tokio::test]
async fn tuples_before_in_may_use_outer_columns() {
    expect_rows(
        &[
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, NULL)) v(id, x)",
            "CREATE TABLE u AS SELECT * FROM (VALUES (1, 10), (2, 21), (NULL, 30)) v(k, y)",
        ],
        &[
            ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u w WHERE (t.id, w.y) IN (SELECT k, y FROM u)) ORDER BY id", "1; 2"),
            ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u w WHERE (t.id, w.y) IN (SELECT * FROM u)) ORDER BY id", "1; 2"),
            ("SELECT id, (id, x) IN (SELECT * FROM u) FROM t ORDER BY id", "1 true; 2 false; 3 NULL"),
            ("SELECT id, (id, x) NOT IN (SELECT k, y FROM u ORDER BY y LIMIT 2) FROM t ORDER BY id", "1 false; 2 true; 3 true"),
            ("SELECT id, (id, x) IN (VALUES (1, 10), (2, 20)) FROM t ORDER BY id", "1 true; 2 true; 3 false"),
        ],
    )
    .await;
}

#[tokio::test]
async fn subqueries_in_case_are_evaluated_only_for_their_rows() {
    let least = "(SELECT max(u.b / x.d) FROM u WHERE u.b > x.d)";
    let cases = [
        (format!("SELECT d, CASE WHEN d = 0 THEN 0 ELSE {least} END FROM x ORDER BY d"), "0 0; 2 3; NULL NULL"),
        (format!("SELECT d, CASE d WHEN 0 THEN 0 ELSE {least} END FROM x ORDER BY d"), "0 0; 2 3; NULL NULL"),
        (format!("SELECT d, CASE WHEN d <> 0 THEN {least} END FROM x ORDER BY d"), "0 NULL; 2 3; NULL NULL"),
        (format!("SELECT d, CASE WHEN d IS NULL THEN 7 WHEN d = 0 THEN 0 WHEN {least} = 3 THEN {least} + 1 END FROM x ORDER BY d"), "0 0; 2 4; NULL 7"),
        (format!("SELECT d, CASE WHEN d < 9 THEN CASE WHEN d > 0 THEN {least} ELSE 1 END END FROM x ORDER BY d"), "0 1; 2 3; NULL NULL"),
        (format!("SELECT d FROM x WHERE CASE WHEN d = 0 THEN false ELSE {least} = 3 END"), "2"),
        ("SELECT d, CASE WHEN d = 0 THEN true ELSE EXISTS (SELECT 1 FROM u WHERE u.b / x.d > 2) END FROM x ORDER BY d".into(), "0 true; 2 true; NULL false"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(
        &[
            "CREATE TABLE x AS SELECT * FROM (VALUES (0), (2), (NULL)) v(d)",
            "CREATE TABLE u AS SELECT * FROM (VALUES (4), (6)) v(b)",
        ],
        &cases,
    )
    .await;
}

#[tokio::test]
async fn any_and_all_of_correlated_subqueries_are_values() {
    let tables = [
        "CREATE TABLE p AS SELECT * FROM (VALUES ('a', 10.5), ('b', 3.5), ('b', 1.0), (NULL, 7.0)) v(k, v)",
        "CREATE TABLE q AS SELECT * FROM (VALUES (1, 'a'), (2, NULL), (3, 'b'), (4, 'c')) v(j, k)",
    ];
    let sum = "(SELECT sum(v) FROM p WHERE p.k = q.k)";
    let cases = [
        (format!("{sum} > ALL (SELECT v FROM p WHERE p.k = q.k)"), "2; 3; 4"),
        (format!("{sum} > ALL (SELECT v FROM p WHERE p.k <> q.k)"), "1; 2"),
        (format!("NOT ({sum} > ALL (SELECT v FROM p WHERE p.k <> q.k))"), "3"),
        (format!("j = 4 OR {sum} > ALL (SELECT v FROM p WHERE p.k <> q.k)"), "1; 2; 4"),
        (format!("{sum} > ANY (SELECT v FROM p WHERE p.k <> q.k)"), "1"),
        (format!("{sum} >= ALL (SELECT v FROM p)"), "1"),
        (format!("{sum} = ANY (SELECT v FROM p)"), "1"),
    ];
    let cases =
        cases.map(|(test, rows)| (format!("SELECT j FROM q WHERE {test} ORDER BY j"), rows));
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&tables, &cases).await;
}
