//! Aliases of SELECT in later columns and in WHERE.

use super::*;

const SETUP: [&str; 3] = [
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20), (NULL, 30)) v(a, k)",
    "CREATE VIEW w AS SELECT a + 1 AS b, b * 2 AS c FROM t WHERE b > 1",
    "PREPARE p AS SELECT a + $1 AS b, b * 2 AS c FROM t WHERE b > 2",
];

#[tokio::test]
async fn later_columns_and_where_may_use_aliases() {
    let cases = [
        (
            "SELECT a + 1 AS b, b * 2 AS c, c + b AS d FROM t ORDER BY a",
            "2 4 6; 3 6 9; NULL NULL NULL",
        ),
        ("SELECT a + 1 AS b FROM t WHERE b > 2", "3"),
        (
            "SELECT a + 1 AS b, b IS NULL AS n FROM t WHERE b IS NULL OR B = 2 ORDER BY b",
            "2 false; NULL true",
        ),
        ("SELECT a - 1 AS b, 10 - b AS c FROM t WHERE a = 1", "0 10"),
        ("SELECT a + 1 AS \"B b\", \"B b\" * 2 FROM t WHERE a = 1", "2 4"),
        (
            "SELECT a + 1 AS b, row_number() OVER (ORDER BY b DESC) AS n FROM t WHERE a > 0 ORDER BY n",
            "3 1; 2 2",
        ),
        (
            "SELECT row_number() OVER (ORDER BY k) AS r, r * 10 AS q FROM t ORDER BY k",
            "1 10; 2 20; 3 30",
        ),
        ("SELECT sum(a) AS s, s * 2 AS d, rank() OVER (ORDER BY s) AS r FROM t", "3 6 1"),
        (
            "SELECT a % 2 AS g, g + 1 AS h, sum(k) AS s FROM t WHERE a > 0 GROUP BY g, h ORDER BY g",
            "0 1 20; 1 2 10",
        ),
        ("SELECT a + 1 AS b, sum(b) AS s FROM t WHERE a > 0 GROUP BY a ORDER BY b", "2 2; 3 3"),
        ("SELECT 1 AS a, a + 1 AS b, b + 1 AS c", "1 2 3"),
        ("SELECT *, a + 1 AS b, b * 2 AS c FROM t WHERE a = 1", "1 10 2 4"),
        (
            "SELECT [a, k] AS x, ragged_sum(x) AS s, ragged_map(x, lambda v: v + s) AS m FROM t WHERE a = 1",
            "[1, 10] 11 [12, 21]",
        ),
        (
            "SELECT a + 1 AS v, ragged_map([1, 2], lambda v: v * 10) AS m, v AS u FROM t WHERE a = 1",
            "2 [10, 20] 2",
        ),
        (
            "SELECT c + 1 AS d, d * 10 AS e FROM (SELECT a + 1 AS b, b * 2 AS c FROM t WHERE a > 0) ORDER BY d",
            "5 50; 7 70",
        ),
        (
            "WITH x AS (SELECT a + 1 AS b, b * 2 AS c FROM t WHERE a = 1), y AS (SELECT c AS d, d + 1 AS e FROM x) SELECT e + 1 AS f, f + 1 FROM y",
            "6 7",
        ),
        (
            "SELECT a + 1 AS b, b AS c FROM t WHERE a = 1 UNION ALL SELECT k AS x, x + 1 AS y FROM t WHERE k = 30 ORDER BY 1",
            "2 2; 30 31",
        ),
        (
            "SELECT c, l.b FROM (SELECT a AS b, b * 2 AS c FROM t) l FULL JOIN (SELECT 9 AS c) r USING (c) WHERE c = 9",
            "9 NULL",
        ),
        ("SELECT y AS d, d AS e FROM (SELECT round([1.5, 2.0]) AS y)", "[2.0, 2.0] [2.0, 2.0]"),
        (
            "SELECT y AS d, ragged_sum(d) AS e FROM (SELECT ragged_filter([1, 2], x LIKE 'a%') AS y FROM (SELECT ['ab', 'b'] AS x))",
            "[1] 1",
        ),
        ("SELECT * FROM w ORDER BY b", "2 4; 3 6"),
        ("EXECUTE p(1)", "3 6"),
    ];
    expect_rows(&SETUP, &cases).await;
}

#[tokio::test]
async fn columns_of_from_have_precedence_over_aliases() {
    let cases = [
        ("SELECT a + 1 AS a, a * 2 AS c FROM t WHERE a = 1", "2 2"),
        ("SELECT a + 1 AS k, k * 2 AS c, a AS b, b + k AS d FROM t WHERE a = 1", "2 20 1 11"),
    ];
    expect_rows(&SETUP, &cases).await;
}

#[tokio::test]
async fn inserts_and_created_tables_may_use_aliases() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(a, k)",
        "CREATE TABLE n AS SELECT a + 1 AS b, b * 2 AS c FROM t",
        "INSERT INTO n SELECT k AS x, x + 1 AS y FROM t WHERE x > 10",
        "DELETE FROM n WHERE b = 2",
    ];
    expect_rows(&setup, &[("SELECT b, c FROM n ORDER BY b", "3 6; 20 21")]).await;
}

#[tokio::test]
async fn ambiguous_volatile_and_aggregate_aliases_are_refused() {
    let ctx = serrate::sql::session();
    for sql in [
        // Refused: an alias of a later column, of a volatile expression, and of two columns.
        "SELECT b * 2 AS c, a AS b FROM (SELECT 1 AS a)",
        "SELECT random() AS b, b + 1 AS c FROM (SELECT 1 AS a)",
        "SELECT a AS b, a + 1 AS b, b AS c FROM (SELECT 1 AS a)",
        "SELECT sum(a) AS s, sum(s) AS u FROM (SELECT 1 AS a)",
        "SELECT sum(a) AS s FROM (SELECT 1 AS a) WHERE s > 0",
        "SELECT b + 1 AS b, b AS c FROM (SELECT 1 AS a)",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("No field named") || e.contains("same name"), "{sql}: {e}");
    }
    for sql in [
        "SELECT row_number() OVER () AS r FROM (SELECT 1 AS a) WHERE r = 1",
        "SELECT a - sum(a) OVER () AS r FROM (SELECT 1 AS a) WHERE a > 0 AND R > 1 ORDER BY r",
        "WITH q AS (SELECT rank() OVER (ORDER BY a) AS r FROM (SELECT 1 AS a) WHERE r < 3) FROM q",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("alias r of a window function") && e.contains("QUALIFY"), "{sql}: {e}");
    }
    // The expression of each alias is twice as large as the one before, and is refused at some
    // size.
    let mut sql = "SELECT a AS x0".to_owned();
    for i in 1..40 {
        sql.push_str(&format!(", x{} + x{} AS x{i}", i - 1, i - 1));
    }
    let e = rows_or_error(&ctx, &format!("{sql} FROM (SELECT 1 AS a)")).await;
    assert!(e.contains("No field named x"), "{e}");
}

const HAVING: &str = "SELECT g, sum(k) AS k FROM (VALUES (1, 5), (1, 6), (2, 7)) v(g, k)
    GROUP BY g HAVING k > 10";

#[tokio::test]
async fn having_may_use_aliases_of_aggregates() {
    let setup = [
        "CREATE TABLE h AS SELECT * FROM (VALUES (1, 5), (1, 6), (2, 7)) v(g, k)",
        "CREATE VIEW s AS SELECT g, sum(k) AS k FROM h GROUP BY g HAVING k < 10",
    ];
    let cases = [
        (HAVING, "1 11"),
        ("SELECT g, max(k) + 1 AS K FROM h GROUP BY 1 HAVING k = 8 OR k IS NULL", "2 8"),
        ("SELECT g, sum(k) AS k FROM h GROUP BY g HAVING k > 6 AND max(k) < 7 ORDER BY g", "1 11"),
        // A column that is a GROUP BY key has precedence over an alias.
        ("SELECT sum(g) AS k FROM h GROUP BY k HAVING k > 5 ORDER BY 1", "1; 2"),
        ("WITH q AS (SELECT g, min(k) AS k FROM h GROUP BY g HAVING k > 5) SELECT * FROM q", "2 7"),
        ("SELECT * FROM s", "2 7"),
        // `k` outside of aggregates is the alias, and `k` in `max(k)` is the column.
        ("SELECT g, min(k) AS k FROM h GROUP BY g HAVING k + max(k) = 11", "1 5"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    query_batches(&ctx, setup[0]).await.unwrap();
    let e = rows_or_error(&ctx, "SELECT g + 1 AS k FROM h GROUP BY g HAVING k > 1").await;
    assert!(e.contains("GROUP BY"), "{e}");
}

/// When this test fails, `select_aliases::replace_in_having` can be removed.
#[tokio::test]
async fn stock_names_in_having_are_still_columns() {
    let e = stock_error(&SessionContext::new(), HAVING).await;
    assert!(e.contains("Column in HAVING must be in GROUP BY"), "{e}");
}

/// `sql::statement::names::select_aliases` can be removed once this test fails.
#[tokio::test]
async fn stock_aliases_are_still_no_columns() {
    let ctx = SessionContext::new();
    let later = "SELECT a + 1 AS b, b * 2 AS c FROM (VALUES (1)) t(a)";
    assert!(ctx.sql(later).await.is_err());
    let condition = "SELECT a + 1 AS b FROM (VALUES (1)) t(a) WHERE b > 1";
    assert!(ctx.sql(condition).await.is_err());
}

#[tokio::test]
async fn random_aliases_cannot_be_used_in_conditions() {
    let ctx = serrate::sql::session();
    for sql in [
        "SELECT a, random() AS r FROM (SELECT 1 AS a) GROUP BY a HAVING r > 0.5",
        "SELECT a, random() AS r, count(*) OVER () AS n FROM (SELECT 1 AS a) QUALIFY r > 0.5",
        "SELECT * FROM (SELECT a, random() + 1 AS R FROM (SELECT 1 AS a) GROUP BY a HAVING a + r > 0.5)",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("cannot use the alias"), "{sql}: {e}");
    }
    let cases = [
        (
            "SELECT count(*) FROM (SELECT random() AS r FROM (SELECT 1 AS a) GROUP BY r HAVING r < 2)",
            "1",
        ),
        (
            "SELECT count(*) FROM (SELECT random() AS r FROM (SELECT 1 AS a) GROUP BY 1 HAVING r < 2)",
            "1",
        ),
        ("SELECT a, max(b) AS m FROM (SELECT 1 AS a, 2 AS b) GROUP BY a HAVING m < 5", "1 2"),
        (
            "SELECT count(*) FROM (SELECT a, random() AS r FROM (SELECT 1 AS a) GROUP BY a HAVING a IN (SELECT r FROM (SELECT 1 AS r)))",
            "1",
        ),
    ];
    expect_rows(&[], &cases).await;
}

/// When this test fails, `select_aliases::find_random_alias` can be removed.
#[tokio::test]
async fn stock_having_still_calls_random_again() {
    let sql = "SELECT count(*) FROM (SELECT value, random() AS r FROM generate_series(1, 1000) GROUP BY value HAVING r > 0.5) WHERE r <= 0.5";
    assert!(stock_one(&SessionContext::new(), sql).await > 0);
}
