//! Columns with the same name in a SELECT and in the inputs of set operations.

use super::*;

async fn list_names(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let frame = serrate::sql::sql(ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    frame.schema().fields().iter().map(|f| f.name().clone()).collect()
}

#[tokio::test]
async fn columns_may_have_the_same_name() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(x, y)"],
        &[
            ("SELECT EXISTS (SELECT 1), EXISTS (SELECT 2 WHERE false)", "true false"),
            ("SELECT x IN (SELECT 1), x IN (SELECT 2) FROM t ORDER BY x", "true false; false true"),
            ("SELECT NOT EXISTS (SELECT 1), NOT EXISTS (SELECT 1)", "false false"),
            ("SELECT (SELECT 1), (SELECT 1)", "1 1"),
            ("SELECT (SELECT max(x) FROM t), (SELECT max(x) FROM t WHERE y < 20)", "2 1"),
            (
                "SELECT x, EXISTS (SELECT 1 FROM t u WHERE u.x > t.x), EXISTS (SELECT 1 FROM t u WHERE u.x < t.x) FROM t ORDER BY x",
                "1 true false; 2 false true",
            ),
            ("SELECT 1, 1", "1 1"),
            ("SELECT x, x, t.x, X FROM t ORDER BY x", "1 1 1 1; 2 2 2 2"),
            ("SELECT x, \"x\" FROM t WHERE y = 10", "1 1"),
            ("SELECT x, \"x\", X FROM t WHERE y = 20", "2 2 2"),
            ("SELECT sum(x), sum(x) FROM t", "3 3"),
            ("SELECT count(*), count(*) FROM t", "2 2"),
            ("SELECT x, x, count(*) FROM t GROUP BY x ORDER BY x", "1 1 1; 2 2 1"),
            ("SELECT *, x FROM t ORDER BY y", "1 10 1; 2 20 2"),
            ("SELECT x, * FROM t ORDER BY y", "1 1 10; 2 2 20"),
            ("SELECT *, t.x, y FROM t ORDER BY y", "1 10 1 10; 2 20 2 20"),
            ("WITH c AS (SELECT * FROM t) SELECT *, x FROM c ORDER BY y", "1 10 1; 2 20 2"),
            ("SELECT DISTINCT x, x FROM t ORDER BY x", "1 1; 2 2"),
            ("SELECT x::INT, x::SMALLINT, (x)::VARCHAR, CAST(x AS BIGINT) FROM t ORDER BY y", "1 1 1 1; 2 2 2 2"),
            ("SELECT [x, y][1:2], [x, y][:2], [x, y][1:] FROM t WHERE x = 1", "[1, 10] [1, 10] [1, 10]"),
            ("SELECT len([x]), array_length([x]), length([x]) FROM t WHERE x = 1", "1 1 1"),
            ("SELECT mean(x), mean(x) FILTER (WHERE x > 1), mean(DISTINCT x) FROM t", "1.5 2.0 1.5"),
            ("SELECT quantile_cont(x, 0.5), percentile_cont(x, 0.5) FROM t", "1.5 1.5"),
            ("SELECT x::INT = 1, x = 1 FROM t ORDER BY y", "true true; false false"),
            ("SELECT x::VARCHAR, x FROM t ORDER BY y", "1 1; 2 2"),
            ("SELECT *, x::VARCHAR FROM t ORDER BY y", "1 10 1; 2 20 2"),
            ("SELECT t.*, x::VARCHAR, x::DOUBLE FROM t ORDER BY y", "1 10 1 1.0; 2 20 2 2.0"),
            ("SELECT (x), x FROM t ORDER BY y", "1 1; 2 2"),
            ("SELECT x + 1, (x + 1)::VARCHAR FROM t ORDER BY x", "2 2; 3 3"),
            ("SELECT substr('abc', 2), substring('abc', 2), substring('abc' FROM 2)", "bc bc bc"),
            ("SELECT s.a, s['a'] FROM (SELECT {'a': 1} AS s)", "1 1"),
            ("SELECT rank() OVER (ORDER BY x), rank() OVER (ORDER BY x ASC) FROM t ORDER BY x", "1 1; 2 2"),
            ("SELECT ragged_ge(l, 2), l >= 2 FROM (SELECT [1, 2] AS l)", "[false, true] [false, true]"),
            ("SELECT count(*) FROM (SELECT *, x::VARCHAR FROM t UNION ALL SELECT x, y, x::VARCHAR FROM t)", "4"),
            ("WITH c AS (SELECT x::VARCHAR, x FROM t) SELECT count(*) FROM c", "2"),
            ("SELECT x::VARCHAR, x, count(*) FROM t GROUP BY x::VARCHAR, x ORDER BY x", "1 1 1; 2 2 1"),
        ],
    )
    .await;
}

#[tokio::test]
async fn set_operations_match_columns_of_stars_by_position() {
    let two = "(VALUES (1)) a(x), (VALUES (2)) b(x)";
    let cases = [
        (format!("SELECT * FROM {two} UNION SELECT 5, 6 ORDER BY 1"), "1 2; 5 6"),
        (format!("SELECT 5, 6 UNION SELECT * FROM {two} ORDER BY 1"), "1 2; 5 6"),
        (format!("SELECT a.*, b.* FROM {two} UNION ALL SELECT 5, 6 ORDER BY 1"), "1 2; 5 6"),
        (format!("SELECT a.*, b.* FROM {two} EXCEPT SELECT 1, 3"), "1 2"),
        (format!("SELECT * FROM (SELECT * FROM {two}) INTERSECT SELECT 1, 2"), "1 2"),
        (format!("SELECT * FROM {two} UNION SELECT * FROM {two}"), "1 2"),
        (
            format!("FROM {two} UNION ALL SELECT 5, 6 UNION ALL SELECT 7, 8 ORDER BY 1"),
            "1 2; 5 6; 7 8",
        ),
        (
            format!(
                "WITH c AS (SELECT * FROM {two} UNION ALL SELECT 5, 6) SELECT * FROM c ORDER BY 1"
            ),
            "1 2; 5 6",
        ),
        (
            format!(
                "WITH c(p, q) AS (SELECT * FROM {two}) SELECT *, p FROM c UNION ALL SELECT 5, 6, 7 ORDER BY 1"
            ),
            "1 2 1; 5 6 7",
        ),
        ("SELECT *, x FROM (VALUES (1)) a(x) UNION ALL SELECT 5, 6 ORDER BY 1".into(), "1 1; 5 6"),
        (
            format!(
                "SELECT count(*) FROM (SELECT * FROM {two} UNION ALL (SELECT * FROM {two} UNION ALL SELECT 3, 4))"
            ),
            "3",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn the_first_column_of_a_name_keeps_the_name() {
    let ctx = create_parallel_session();
    assert_eq!(list_names(&ctx, "SELECT x, x FROM (VALUES (1)) t(x)").await, ["x", "x_1"]);
    assert_eq!(list_names(&ctx, "SELECT *, x FROM (VALUES (1)) t(x)").await, ["x", "x_1"]);
    let from = "FROM (VALUES (1, 2)) t(x, y)";
    assert_eq!(list_names(&ctx, &format!("SELECT x, * {from}")).await, ["x", "x_1", "y"]);
    assert_eq!(
        list_names(&ctx, &format!("SELECT t.y, *, x {from}")).await,
        ["y", "x", "y_1", "x_1"]
    );
    assert_eq!(
        list_names(&ctx, "SELECT a.x, b.x FROM (VALUES (1)) a(x), (VALUES (1)) b(x)").await,
        ["x", "x"]
    );
    let found = list_names(&ctx, "SELECT EXISTS (SELECT 1), EXISTS (SELECT 2)").await;
    assert_eq!(found, ["EXISTS (SELECT 1)", "EXISTS (SELECT 2)"]);
    let found =
        list_names(&ctx, "SELECT * FROM (VALUES (1)) a(x), (VALUES (2)) b(x) UNION SELECT 5, 6")
            .await;
    assert_eq!(found, ["x", "x_1"]);
}

/// A generated name such as `k_1` does not hide a column with this name in ORDER BY and other
/// clauses.
#[tokio::test]
async fn generated_names_hide_no_columns() {
    expect_rows(
        &[
            "CREATE TABLE a AS SELECT * FROM (VALUES (1, 9), (2, 8)) v(k, k_1)",
            "CREATE TABLE b AS SELECT * FROM (VALUES (1), (2)) v(k)",
        ],
        &[
            ("SELECT k, k FROM a ORDER BY k_1", "2 2; 1 1"),
            ("SELECT k, k FROM a ORDER BY \"k_1\" DESC", "1 1; 2 2"),
            ("SELECT k, b.k FROM a JOIN b USING (k) ORDER BY k_1", "2 2; 1 1"),
            ("SELECT k, k, k_1 FROM a ORDER BY k_1", "2 2 8; 1 1 9"),
            ("SELECT k_1 FROM (SELECT k, k FROM b) ORDER BY k_1 DESC", "2; 1"),
            ("SELECT *, k FROM a ORDER BY k_1", "2 8 2; 1 9 1"),
            ("SELECT k, * FROM a ORDER BY k_1", "2 2 8; 1 1 9"),
            ("SELECT b.*, b.k FROM a JOIN b ON a.k = b.k ORDER BY k_1", "2 2; 1 1"),
            ("(SELECT k, k FROM a) ORDER BY k_1 DESC LIMIT 1", "1 1"),
            ("SELECT k, k FROM a GROUP BY k, k_1 HAVING k_1 > 8", "1 1"),
        ],
    )
    .await;
    let ctx = create_parallel_session();
    let sql =
        "SELECT * FROM (VALUES (1, 2, 3)) a(x, x_1, y), (VALUES (2)) b(x) UNION SELECT 5, 6, 7, 8";
    assert_eq!(list_names(&ctx, sql).await, ["x", "x_1", "y", "x_2"]);
}

#[tokio::test]
async fn fields_of_structs_next_to_merged_columns_keep_their_names() {
    let ctx = create_parallel_session();
    let from = "(SELECT 1 AS k, {'k': 7} AS s) a JOIN (VALUES (1)) b(k) USING (k)";
    assert_eq!(list_names(&ctx, &format!("SELECT k, s.k FROM {from}")).await, ["k", "s['k']"]);
    assert_eq!(list_names(&ctx, &format!("SELECT k, b.k FROM {from}")).await, ["k", "k_1"]);
}

#[tokio::test]
async fn equal_expressions_are_two_columns() {
    let ctx = create_parallel_session();
    let sql = "SELECT n * INTERVAL '1 day', n * INTERVAL '1 day', year(d), year(d) FROM (VALUES (1, DATE '2020-01-01')) v(n, d)";
    let found = list_names(&ctx, sql).await;
    assert_eq!(found, ["n * INTERVAL '1 day'", "n * INTERVAL '1 day'_1", "year(d)", "year(d)_1"]);
}

#[tokio::test]
async fn a_subquery_and_its_expression_may_both_be_selected() {
    let setup = ["CREATE TABLE u AS SELECT 1 AS id, 10 AS k"];
    let cases = [
        ("SELECT (SELECT count(*) FROM u), count(*) FROM u", "1 1"),
        ("SELECT id, (SELECT max(k) FROM u), max(k) FROM u GROUP BY id", "1 10 10"),
        ("SELECT (SELECT k + 1 FROM u), k + 1 FROM u", "11 11"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn comparisons_may_be_arguments_of_any_function() {
    let setup = ["CREATE TABLE u AS SELECT * FROM (VALUES (0, 1), (5, 2)) v(x, id)"];
    let cases = [
        ("SELECT if(x = 0, 'a', 'b') FROM u ORDER BY x", "a; b"),
        ("SELECT count_if(x = 5), arg_max(id, x = 0), bool_or(x = 7) FROM u", "1 1 false"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn aggregates_of_an_outer_query_are_refused() {
    let ctx = create_parallel_session();
    query_batches(&ctx, "CREATE TABLE u AS SELECT 1 AS id, 10 AS k").await.unwrap();
    for sql in ["SELECT (SELECT sum(u.k)) FROM u", "SELECT (SELECT max(o.k) FROM u) FROM u AS o"] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("it is an aggregate of the outer query"), "{sql}: {e}");
    }
    let fine =
        "SELECT (SELECT sum(u.k + o.k) FROM u), (SELECT count(*) FROM u WHERE u.k = o.k) FROM u o";
    assert_eq!(rows_or_error(&ctx, fine).await, "20 1");
    let local = [
        ("SELECT (SELECT count(o.k) FILTER (WHERE u.id > 1) FROM u) FROM u o", "0"),
        ("SELECT (SELECT array_agg(o.k ORDER BY u.id) FROM u) FROM u o", "[10]"),
        ("SELECT (SELECT arg_min(o.k, u.id) FROM u) FROM u o", "10"),
    ];
    for (sql, expected) in local {
        assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn stars_exclude_columns_of_all_tables() {
    let tables = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(id, x)",
        "CREATE TABLE b AS SELECT * FROM (VALUES (1, 'p'), (3, 'q')) v(id, l)",
    ];
    let cases = [
        ("SELECT * EXCLUDE (id) FROM t JOIN b ON t.id = b.id", "10 p"),
        ("SELECT * EXCLUDE ID FROM t JOIN b ON t.id = b.id", "10 p"),
        ("SELECT * EXCLUDE (t.id) FROM t JOIN b ON t.id = b.id", "10 1 p"),
        ("SELECT * EXCLUDE (t.x) FROM t ORDER BY id", "1; 2"),
        ("SELECT 7, * EXCLUDE (id, x), b.id + 1 FROM t, b WHERE t.id = b.id", "7 p 2"),
        ("SELECT * EXCLUDE (id) FROM t a JOIN t c ON a.id = c.id ORDER BY a.x", "10 10; 20 20"),
        ("SELECT * EXCLUDE (id) REPLACE (x + 1 AS x) FROM t JOIN b ON t.id = b.id", "11 p"),
        ("SELECT count(*) FROM (SELECT * EXCLUDE (id) FROM t JOIN b ON t.id = b.id) q", "1"),
        ("WITH c AS (SELECT * FROM b) SELECT * EXCLUDE (id) FROM t JOIN c ON t.id = c.id", "10 p"),
        (
            "SELECT * EXCLUDE (l) FROM (SELECT * EXCLUDE (id) FROM t JOIN b ON t.id = b.id) q JOIN b ON b.l = q.l",
            "10 1",
        ),
        ("SELECT * EXCLUDE (id) FROM t, unnest([5]) u(id) ORDER BY x", "10; 20"),
        ("SELECT * EXCLUDE (id) FROM t LEFT JOIN b USING (id) ORDER BY x", "10 p; 20 NULL"),
        ("SELECT * EXCLUDE (x) FROM t JOIN b ON t.id = b.id", "1 1 p"),
    ];
    expect_rows(&tables, &cases).await;
    let ctx = create_parallel_session();
    for table in tables {
        query_batches(&ctx, table).await.unwrap();
    }
    assert_eq!(
        list_names(&ctx, "SELECT * EXCLUDE (id) FROM t JOIN b ON t.id = b.id").await,
        ["x", "l"]
    );
    let e = rows_or_error(&ctx, "SELECT * EXCLUDE (nope) FROM t JOIN b ON t.id = b.id").await;
    assert!(e.contains("nope"), "{e}");
}

/// When this test fails, `statement::columns::star_excludes` can be removed, except for qualified
/// names.
#[tokio::test]
async fn stock_names_of_several_tables_are_still_not_excluded() {
    let stock = SessionContext::new();
    let sql = "SELECT * EXCLUDE (id) FROM (SELECT 1 AS id, 2 AS x) t JOIN (SELECT 1 AS id) b ON t.id = b.id";
    let e = stock_error(&stock, sql).await;
    assert!(e.contains("Ambiguous reference"), "{e}");
}

#[tokio::test]
async fn an_alias_may_be_the_name_of_another_selected_column() {
    let setup = ["CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(a, b)"];
    let cases = [
        ("SELECT a, b, -b AS b FROM t ORDER BY b", "2 20 -20; 1 10 -10"),
        ("SELECT a, -b AS b, b FROM t ORDER BY a LIMIT 1", "1 -10 10"),
        ("SELECT *, -a AS a FROM t ORDER BY b", "1 10 -1; 2 20 -2"),
        ("SELECT a, b AS a FROM t WHERE a > 1", "2 20"),
        ("SELECT a, max(b) AS a FROM t GROUP BY a ORDER BY 1", "1 10; 2 20"),
        ("SELECT DISTINCT a, b % 10 AS a FROM t ORDER BY 1", "1 0; 2 0"),
        ("SELECT a, row_number() OVER (ORDER BY a) AS a FROM t ORDER BY b", "1 1; 2 2"),
        (
            "SELECT a - (b - 1) AS p, (a - b) - 1 AS q, count(*) FROM t GROUP BY GROUPING SETS ((a - (b - 1)), ((a - b) - 1)) ORDER BY p, q",
            "-17 NULL 1; -8 NULL 1; NULL -19 1; NULL -10 1",
        ),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = create_parallel_session();
    query_batches(&ctx, setup[0]).await.unwrap();
    assert_eq!(list_names(&ctx, "SELECT a, b, -b AS b FROM t").await, ["a", "b", "b"]);
    for sql in [
        "CREATE TABLE x AS SELECT a, -a AS a FROM t",
        "SELECT count(*) FROM (SELECT a, -a AS a FROM t)",
        "SELECT a, -a AS a FROM t ORDER BY abs(a)",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(
            e.contains("a SELECT has the column t.a and another column with the name a"),
            "{e}"
        );
    }
    let e = rows_or_error(&ctx, "SELECT DISTINCT ON (a) a, unnest([b, a]) AS x FROM t ORDER BY a")
        .await;
    assert!(e.contains("unnest in a SELECT with DISTINCT ON is not supported"), "{e}");
}

/// When this test fails, `sql::statement::names::alias_twins` can be removed.
#[tokio::test]
async fn stock_aliases_of_columns_beside_them_are_still_refused() {
    let stock = SessionContext::new();
    stock_batches(&stock, "CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    let e = stock_error(&stock, "SELECT a, -a AS a FROM t").await;
    assert!(e.contains("which would be ambiguous"), "{e}");
}

#[tokio::test]
async fn duplicate_aliases_are_refused_with_their_position() {
    let ctx = serrate::sql::session();
    for sql in [
        "SELECT x.a FROM (SELECT 1 AS a, 2 AS a) x",
        "SELECT 1 AS a, 2 AS a",
        "CREATE TABLE t AS SELECT 1 AS a, 2 AS a",
        "CREATE VIEW v AS SELECT 1 AS a, 2 AS a",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("the columns 1 and 2 of a SELECT have the same name a"), "{sql}: {e}");
        assert!(!e.contains("Int64"), "{sql}: {e}");
    }
}
