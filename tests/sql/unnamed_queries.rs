//! Subqueries in FROM without an alias hide the names of their tables.

use super::*;

const REPEATED: [&str; 2] = [
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 20, 'x'), (2, 30, 'y'), (NULL, 10, 'x'), (3, NULL, NULL), (2, 20, 'y')) v(a, b, c)",
    "CREATE TABLE u AS SELECT * FROM (VALUES (1, 50, 'x'), (2, 20, 'y'), (3, 70, 'x'), (3, 10, NULL)) v(a, b, c)",
];

/// `t.a` next to a subquery in FROM without an alias is a column of another table `t`, not of the
/// table `t` in the subquery.
#[tokio::test]
async fn subqueries_in_from_hide_the_names_of_their_tables() {
    let counts = "(SELECT count(*) FROM (SELECT a FROM t) WHERE a > t.a)";
    let view = format!("CREATE VIEW counts AS SELECT t.a, {counts} AS n FROM t");
    let prepared = format!("PREPARE counted AS SELECT t.a FROM t WHERE {counts} = $1");
    let setup = [REPEATED[0], REPEATED[1], view.as_str(), prepared.as_str()];
    let of_each = format!("SELECT t.a, {counts} n FROM t ORDER BY 1");
    let ordered = format!("SELECT t.a FROM t ORDER BY {counts}, 1");
    let last = format!("SELECT t.a FROM t ORDER BY {counts} DESC, 1 LIMIT 2");
    let grouped = format!("SELECT t.a, count(*) FROM t GROUP BY t.a HAVING {counts} = 1");
    let second = format!("SELECT t.a FROM t UNION ALL SELECT {counts} FROM t ORDER BY 1");
    let with = format!(
        "WITH q AS (SELECT t.a, {counts} AS n FROM t) SELECT max(n) FROM q, t WHERE q.a = t.a"
    );
    let cases = [
        (of_each.as_str(), "1 3; 2 1; 2 1; 3 0; NULL 0"),
        (ordered.as_str(), "3; NULL; 2; 2; 1"),
        (last.as_str(), "1; 2"),
        (grouped.as_str(), "2 2"),
        (second.as_str(), "0; 0; 1; 1; 1; 2; 2; 3; 3; NULL"),
        (with.as_str(), "3"),
        ("SELECT * FROM counts ORDER BY 1", "1 3; 2 1; 2 1; 3 0; NULL 0"),
        ("EXECUTE counted(3)", "1"),
        (
            "WITH c AS (SELECT a FROM t) SELECT a, (SELECT count(*) FROM (SELECT a FROM c) WHERE a > c.a) FROM c ORDER BY 1",
            "1 3; 2 1; 2 1; 3 0; NULL 0",
        ),
        (
            "SELECT q.a, (SELECT count(*) FROM (SELECT a FROM u q) WHERE a > q.a) FROM t q ORDER BY 1",
            "1 3; 2 2; 2 2; 3 0; NULL 0",
        ),
        (
            "SELECT t.a, (SELECT count(*) FROM (SELECT a FROM (SELECT a FROM t)) WHERE a > t.a) FROM t ORDER BY 1",
            "1 3; 2 1; 2 1; 3 0; NULL 0",
        ),
        (
            "SELECT t.a, (SELECT count(*) FROM (SELECT a FROM t UNION ALL SELECT a FROM u) WHERE a > t.a) FROM t ORDER BY 1",
            "1 6; 2 3; 2 3; 3 0; NULL 0",
        ),
        (
            "SELECT t.a, (SELECT count(*) FROM (SELECT * FROM t JOIN u ON t.a = u.a) WHERE a > t.a) FROM t ORDER BY 1",
            "1 4; 2 2; 2 2; 3 0; NULL 0",
        ),
        (
            "SELECT t.a, (SELECT a FROM (SELECT a FROM t) WHERE a > t.a ORDER BY a LIMIT 1) FROM t ORDER BY 1",
            "1 2; 2 3; 2 3; 3 NULL; NULL NULL",
        ),
        (
            "SELECT t.a, (SELECT count(*) FROM u WHERE u.a = t.a AND EXISTS (SELECT 1 FROM (SELECT a FROM t) WHERE a > t.a)) FROM t ORDER BY 1",
            "1 1; 2 1; 2 1; 3 0; NULL 0",
        ),
        (
            "SELECT t.a, (SELECT max(b) FROM (SELECT t.b FROM (SELECT a FROM t) WHERE a = t.a) q) m FROM t ORDER BY 1, 2",
            "1 20; 2 20; 2 30; 3 NULL; NULL NULL",
        ),
        (
            "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM (SELECT a FROM t) WHERE a > t.a)",
            "3",
        ),
        (
            "SELECT count(*) FROM t WHERE t.a IN (SELECT a + 1 FROM (SELECT a FROM t) WHERE a < t.a)",
            "3",
        ),
        (
            "SELECT count(*) FROM t WHERE t.a > ALL (SELECT a FROM (SELECT a FROM t WHERE a IS NOT NULL) WHERE a <> t.a)",
            "2",
        ),
        (
            "SELECT count(*) FROM t WHERE t.a >= ANY (SELECT a FROM (SELECT a FROM t) WHERE a > t.a - 1)",
            "4",
        ),
        (
            "SELECT t.a FROM t JOIN u ON t.a = u.a AND (SELECT count(*) FROM (SELECT b FROM u) WHERE b > u.b) = 1",
            "1",
        ),
        // The statement uses the generated name of the subquery as a name of its own.
        (
            "SELECT a, unnamed_subquery.b FROM t unnamed_subquery WHERE (SELECT count(*) FROM (SELECT a FROM t unnamed_subquery) WHERE a > unnamed_subquery.a) = 1 ORDER BY 1, 2",
            "2 20; 2 30",
        ),
        // No other table is named `t`, so `t.a` is a column of the subquery. DuckDB rejects these
        // statements.
        ("SELECT t.a FROM (SELECT a FROM t) ORDER BY 1", "1; 2; 2; 3; NULL"),
        ("SELECT count(*) FROM u JOIN (SELECT t.a FROM (SELECT a FROM t)) t ON u.a = t.a", "5"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn unnamed_subqueries_may_read_a_table_of_the_outer_query() {
    let cases = [
        (
            "SELECT t.a, l.* FROM t, LATERAL (SELECT b FROM (SELECT b, a FROM t) WHERE a = t.a) l ORDER BY 1, 2",
            "1 20; 2 20; 2 20; 2 30; 2 30; 3 NULL",
        ),
        (
            "SELECT t.a, l.b FROM t, LATERAL (SELECT t.b FROM (SELECT a FROM t) WHERE a = t.a) l ORDER BY 1, 2",
            "1 20; 2 20; 2 20; 2 30; 2 30; 3 NULL",
        ),
        (
            "SELECT t.a, s.x FROM t, LATERAL (SELECT max(b) x FROM (SELECT a, b FROM t) WHERE a < t.a AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a)) s ORDER BY 1, 2",
            "1 NULL; 2 20; 2 20; 3 30; NULL NULL",
        ),
        (
            "SELECT count(*), count(k) FROM t, LATERAL (SELECT b AS k, a FROM t WHERE c = 'y')",
            "10 10",
        ),
        ("SELECT count(*) FROM (SELECT t.a FROM t) JOIN t ON t.a = 3", "5"),
        ("SELECT count(*) FROM (SELECT a AS k, b FROM t) JOIN t ON k = t.a", "6"),
        (
            "SELECT * FROM (SELECT a FROM t WHERE b = 20), (SELECT a FROM t WHERE b = 30) ORDER BY 1",
            "1 2; 2 2",
        ),
        (
            "SELECT k, t.b FROM (SELECT a AS k FROM t) LEFT JOIN t ON k = t.a AND t.b = 20 ORDER BY 1, 2",
            "1 20; 2 20; 2 20; 3 NULL; NULL NULL",
        ),
        (
            "SELECT t.* FROM (SELECT a AS k FROM t WHERE a = 2) LEFT JOIN t ON k = t.a ORDER BY 1, 2",
            "2 20 y; 2 20 y; 2 30 y; 2 30 y",
        ),
        ("SELECT t.a FROM (SELECT a FROM t) NATURAL JOIN t ORDER BY 1", "1; 2; 2; 2; 2; 3"),
        (
            "SELECT a, t.b FROM (SELECT a FROM t) JOIN t USING (a) ORDER BY 1, 2",
            "1 20; 2 20; 2 20; 2 30; 2 30; 3 NULL",
        ),
        (
            "SELECT t.a, (SELECT count(*) FROM (SELECT a, b FROM u) JOIN u ON u.a = t.a) FROM t ORDER BY 1",
            "1 4; 2 4; 2 4; 3 8; NULL 0",
        ),
    ];
    expect_rows(&REPEATED, &cases).await;
}

#[tokio::test]
async fn unnamed_subqueries_in_changes_compare_with_the_changed_table() {
    let setup = [
        REPEATED[0],
        "CREATE TABLE d AS SELECT * FROM t",
        "CREATE TABLE e AS SELECT * FROM t",
        "CREATE TABLE f AS SELECT * FROM t",
        "CREATE TABLE g AS SELECT * FROM t",
        "CREATE TABLE i AS SELECT a, b FROM t WHERE false",
    ];
    let cases = [
        ("DELETE FROM d WHERE (SELECT count(*) FROM (SELECT a FROM d) WHERE a > d.a) = 0", "2"),
        ("SELECT a, b FROM d ORDER BY 1, 2", "1 20; 2 20; 2 30"),
        ("DELETE FROM d WHERE (SELECT count(*) FROM (SELECT a FROM d) WHERE a > d.a) = 0", "2"),
        ("SELECT a, b FROM d ORDER BY 1, 2", "1 20"),
        (
            "DELETE FROM e AS o WHERE (SELECT count(*) FROM (SELECT a FROM e) WHERE a > o.a) = 0",
            "2",
        ),
        ("SELECT a, b FROM e ORDER BY 1, 2", "1 20; 2 20; 2 30"),
        ("UPDATE f SET b = (SELECT count(*) FROM (SELECT a FROM f) WHERE a > f.a)", "5"),
        ("SELECT a, b FROM f ORDER BY 1, 2", "1 3; 2 1; 2 1; 3 0; NULL 0"),
        ("UPDATE g SET b = 0 WHERE EXISTS (SELECT 1 FROM (SELECT a FROM g) WHERE a > g.a)", "3"),
        ("SELECT a, b FROM g ORDER BY 1, 2", "1 0; 2 0; 2 0; 3 NULL; NULL 10"),
        (
            "INSERT INTO i SELECT t.a, (SELECT count(*) FROM (SELECT a FROM t) WHERE a > t.a) FROM t",
            "5",
        ),
        ("SELECT a, b FROM i ORDER BY 1, 2", "1 3; 2 1; 2 1; 3 0; NULL 0"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn column_names_and_errors_omit_generated_aliases() {
    let ctx = serrate::sql::session();
    for sql in REPEATED {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    let counts = "(SELECT count(*) FROM (SELECT a FROM t) WHERE a > t.a) + 1";
    for (columns, expected) in [
        (format!("a, {counts}"), vec!["a", "count(*) + 1"]),
        // The columns `a` and `a::INT` have the same name in DataFusion.
        (format!("*, a::INT, {counts}"), vec!["a", "b", "c", "a::INT", counts]),
    ] {
        let frame = serrate::sql::sql(&ctx, &format!("SELECT {columns} FROM t")).await.unwrap();
        let names: Vec<&str> =
            frame.schema().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, expected);
    }
    let missing = "SELECT (SELECT count(*) FROM (SELECT a FROM t) WHERE zz > t.a) FROM t";
    let found = rows_or_error(&ctx, missing).await;
    assert!(found.contains("No field named zz") && !found.contains("__serrate"), "{found}");
}

/// When this test fails, `sql::statement::names::unnamed_queries` can be removed.
#[tokio::test]
async fn stock_subqueries_still_keep_the_names_of_their_tables() {
    let stock = SessionContext::new();
    stock_batches(&stock, "CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    assert_eq!(stock_ints(&stock, "SELECT t.a FROM (SELECT a FROM t)").await, [1]);
}

const HIDDEN: &str =
    "SELECT b AS a, max(a) AS m FROM (SELECT x AS a, y AS b FROM p) GROUP BY b HAVING max(a) > 2";

/// Columns of subqueries without an alias are not read as aliases, nor keys of ORDER BY as columns
/// with their names.
#[tokio::test]
async fn columns_of_unnamed_subqueries_are_not_read_as_aliases() {
    let setup = ["CREATE TABLE p AS SELECT * FROM (VALUES (1, 3), (2, 2), (3, 1)) v(x, y)"];
    let with = format!("WITH q AS ({HIDDEN}) SELECT * FROM q");
    let cases = [
        (HIDDEN, "1 3"),
        (
            "SELECT b AS a, max(a) AS m FROM (SELECT p.x AS a, p.y AS b FROM p) GROUP BY b HAVING max(a) > 2",
            "1 3",
        ),
        (with.as_str(), "1 3"),
        (
            "SELECT b AS a, count(*) FROM (SELECT x AS a, y AS b FROM p) GROUP BY 1 HAVING max(a) = 1",
            "3 1",
        ),
        (
            "SELECT b AS a, max(a) AS b FROM (SELECT x AS a, y AS b FROM p) GROUP BY ALL HAVING max(a) > 1 ORDER BY ALL",
            "1 3; 2 2",
        ),
        (
            "SELECT b AS a, row_number() OVER (ORDER BY a) AS n FROM (SELECT x AS a, y AS b FROM p) QUALIFY a = 1",
            "3 1",
        ),
        (
            "SELECT b AS a, rank() OVER (ORDER BY a) AS b FROM (SELECT x AS a, y AS b FROM p) QUALIFY a > 1 ORDER BY 1",
            "1 3; 2 2",
        ),
        (
            "SELECT b AS a, max(a) AS m FROM (SELECT x AS a, y AS b FROM p UNION ALL SELECT 9, 9) GROUP BY b HAVING max(a) < 2",
            "3 1",
        ),
        (
            "SELECT column2 AS column1, max(column1) AS m FROM (VALUES (1, 3), (2, 2), (3, 1)) GROUP BY column2 HAVING max(column1) > 2",
            "1 3",
        ),
        (
            "SELECT * REPLACE (b AS a, a AS b) FROM (SELECT x AS a, y AS b FROM p) ORDER BY a LIMIT 1",
            "1 3",
        ),
        (
            "SELECT * REPLACE (b AS a, a AS b) FROM (SELECT * FROM (SELECT x AS a, y AS b FROM p)) ORDER BY a",
            "1 3; 2 2; 3 1",
        ),
        (
            "SELECT * EXCLUDE (a, b), b AS a, a AS b FROM (SELECT x AS a, y AS b, 0 AS c FROM p) ORDER BY a LIMIT 1",
            "0 1 3",
        ),
        (
            "SELECT * EXCLUDE (a, b), b AS a, a AS b FROM (SELECT x AS a, y AS b, 0 AS c FROM p) ORDER BY 2 DESC LIMIT 1",
            "0 3 1",
        ),
        (
            "SELECT * FROM (SELECT y AS a, -a FROM (SELECT x AS a, y FROM p)) ORDER BY -a",
            "3 -1; 2 -2; 1 -3",
        ),
        (
            "SELECT * FROM (SELECT y AS a, a + 1 FROM (SELECT x AS a, y FROM p)) ORDER BY a + 1 LIMIT 1",
            "1 4",
        ),
        (
            "SELECT DISTINCT -a FROM (SELECT max(y) AS a, -a FROM (SELECT x AS a, y / 2 AS y FROM p) GROUP BY -a) ORDER BY 1",
            "-1; 0",
        ),
        (
            "SELECT -a AS q, r FROM (SELECT max(y) AS a, -a, max(-x) AS r FROM (SELECT x AS a, x, 5 AS y FROM p) GROUP BY -a) ORDER BY q, r",
            "-5 -3; -5 -2; -5 -1",
        ),
        // ORDER BY uses `p.y`, the column of the subquery, so the subquery gets no alias.
        ("SELECT p.y AS z FROM (SELECT x, y FROM p) ORDER BY -p.y LIMIT 1", "3"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    serrate::sql::sql(&ctx, setup[0]).await.unwrap().collect().await.unwrap();
    let sql = "SELECT *, a + 1 FROM (SELECT y AS a, -a FROM (SELECT x AS a, y FROM p)) ORDER BY -a";
    let frame = serrate::sql::sql(&ctx, sql).await.unwrap();
    let names: Vec<&str> =
        frame.schema().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["a", "-a", "a + 1"]);
}

/// When this test fails, `sql::statement::names::unnamed_queries` need not add aliases for the
/// columns of subqueries.
#[tokio::test]
async fn stock_columns_of_unnamed_queries_are_still_read_as_aliases() {
    let stock = SessionContext::new();
    let table = "CREATE TABLE p AS SELECT * FROM (VALUES (1, 3), (2, 2), (3, 1)) v(x, y)";
    stock_batches(&stock, table).await.unwrap();
    assert_eq!(stock_ints(&stock, HIDDEN).await, [3]);
}
