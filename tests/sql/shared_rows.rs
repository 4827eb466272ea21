//! CTEs and outer rows that several places of a plan share.

use super::*;

const TABLES: [&str; 2] = [
    "CREATE TABLE g AS SELECT (i * 7919) % 1000 AS k, i AS v FROM range(3000) t(i)",
    "CREATE TABLE q AS SELECT i AS k FROM range(20) t(i)",
];

#[tokio::test]
async fn ctes_are_computed_once() {
    expect_rows(
        &TABLES,
        &[
            ("WITH x AS (SELECT random() AS r) SELECT count(*) FROM x p, x q WHERE p.r = q.r", "1"),
            (
                "WITH x AS (SELECT DISTINCT k FROM g LIMIT 100) SELECT count(*) FROM x p JOIN x q ON p.k = q.k",
                "100",
            ),
            (
                "WITH s AS (SELECT v, random() AS r FROM g)
                 SELECT (SELECT count(*) FROM s WHERE r < 0.5) + (SELECT count(*) FROM s WHERE r >= 0.5)",
                "3000",
            ),
            // A CTE within a CTE that is used twice, and directly.
            (
                "WITH x AS (SELECT random() AS r), y AS (SELECT r FROM x)
                 SELECT count(*) FROM x, y a, y b WHERE a.r = b.r AND x.r = a.r",
                "1",
            ),
            (
                "WITH x AS (SELECT k, row_number() OVER () AS n FROM (SELECT DISTINCT k FROM g))
                 SELECT count(*) FROM x a JOIN x b ON a.k = b.k AND a.n = b.n",
                "1000",
            ),
            // A condition without columns about one of the places.
            (
                "WITH x AS (SELECT DISTINCT k FROM g LIMIT 100)
                 SELECT count(p.k) FROM x q LEFT JOIN (SELECT * FROM x WHERE (SELECT max(k) FROM q) > 50) p ON p.k = q.k",
                "0",
            ),
            (
                "WITH x AS (SELECT DISTINCT k FROM g LIMIT 100)
                 SELECT (SELECT count(*) FROM x WHERE k >= 0), (SELECT count(*) FROM x WHERE k > 0 OR k = 0), (SELECT max(n) FROM (SELECT count(*) AS n FROM x LIMIT 1))",
                "100 100 100",
            ),
            // Two CTEs of one definition have rows of their own.
            (
                "WITH x AS (SELECT random() AS r), y AS (SELECT random() AS r) SELECT count(*) FROM x, y WHERE x.r = y.r",
                "0",
            ),
            // The shared rows keep the order of the CTE.
            (
                "WITH x AS (SELECT k, random() AS r FROM g ORDER BY k DESC, r)
                 SELECT (SELECT k FROM x LIMIT 1), (SELECT count(*) FROM x WHERE r < 2), (SELECT k FROM x LIMIT 1)",
                "999 3000 999",
            ),
            (
                "WITH RECURSIVE x AS (SELECT random() AS r UNION ALL SELECT r FROM x WHERE r > 2)
                 SELECT a.r = b.r FROM x a, x b",
                "true",
            ),
            (
                "WITH x AS (SELECT k % 3 AS m, array_agg(v) AS l FROM g GROUP BY m)
                 SELECT count(*) FROM x a JOIN x b ON a.m = b.m AND a.l = b.l",
                "3",
            ),
            // Each run of a view computes its CTE again.
            ("SELECT count(*) FROM g WHERE k IN (WITH x AS (SELECT 1 AS k) SELECT p.k FROM x p JOIN x q ON p.k = q.k)", "3"),
        ],
    )
    .await;
}

#[tokio::test]
async fn views_compute_their_ctes_in_each_run() {
    let ctx = four();
    for sql in [
        "CREATE TABLE t AS SELECT 1 AS k",
        "CREATE VIEW v AS WITH x AS (SELECT k, random() AS r FROM t) SELECT p.k, p.r FROM x p JOIN x q ON p.r = q.r",
    ] {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    assert_eq!(one(&ctx, "SELECT count(*) FROM v").await, 1);
    let first = text(&ctx, "SELECT r FROM v").await;
    assert_ne!(text(&ctx, "SELECT r FROM v").await, first);
    batches(&ctx, "INSERT INTO t VALUES (2)").await.unwrap();
    assert_eq!(one(&ctx, "SELECT count(*) FROM v").await, 2);
    let frame = serrate::sql::sql(&ctx, "SELECT r FROM v").await.unwrap();
    let first = frame.clone().collect().await.unwrap();
    assert_ne!(frame.collect().await.unwrap(), first);
}

#[tokio::test]
async fn each_use_of_a_view_has_its_own_rows() {
    let ctx = four();
    for sql in [
        "CREATE VIEW v AS SELECT random() AS x",
        "CREATE VIEW w AS SELECT s.x FROM (SELECT random() AS x) AS s",
        "CREATE VIEW c AS WITH q AS (SELECT random() AS x) SELECT a.x AS x, b.x AS y FROM q a, q b",
    ] {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    for (sql, expected) in [
        ("SELECT a.x = b.x FROM v a, v b", "false"),
        ("SELECT a.x = b.x FROM w a, w b", "false"),
        ("SELECT a.x = b.x, a.x = a.y, b.x = b.y FROM c a, c b", "false true true"),
        ("WITH q AS (SELECT x FROM w) SELECT a.x = b.x FROM q a, q b", "true"),
    ] {
        assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn stock_ctes_are_still_computed_twice() {
    let ctx = SessionContext::new();
    let sql = "WITH x AS (SELECT random() AS r) SELECT count(*) FROM x p, x q WHERE p.r = q.r";
    let found = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), 0);
}

#[tokio::test]
async fn subqueries_over_undetermined_rows_have_values() {
    let limited = "(SELECT DISTINCT k FROM g LIMIT 100) x";
    let numbered = "(SELECT k, row_number() OVER () AS r FROM (SELECT DISTINCT k FROM g)) x";
    let drawn = "(SELECT k, random() AS r FROM g) x";
    let cases = [
        (format!("SELECT count(*), count(c) FROM (SELECT k, (SELECT count(*) FROM q WHERE q.k > x.k % 20) AS c FROM {limited})"), "100 100"),
        (format!("SELECT count(*), sum((x.k IN (SELECT v FROM g))::INT) FROM {limited}"), "100 100"),
        (format!("SELECT count(c) FROM (SELECT (SELECT count(*) FROM q WHERE q.k > x.k % 20 + x.r * 0) AS c FROM {numbered})"), "1000"),
        (format!("SELECT count(c) FROM (SELECT (SELECT count(*) FROM q WHERE q.k > x.r * 20) AS c FROM {drawn})"), "3000"),
        (format!("SELECT count(y.c) FROM {limited} LEFT JOIN LATERAL (SELECT count(*) AS c FROM q WHERE q.k > x.k % 20) y ON true"), "100"),
        ("SELECT count(*) FROM (SELECT k NOT IN (SELECT k FROM (SELECT DISTINCT k FROM g LIMIT 100) h) AS x FROM g) WHERE x IS NULL".to_owned(), "0"),
        ("SELECT count(*) FROM (SELECT k < ANY (SELECT k FROM (SELECT DISTINCT k FROM g LIMIT 100) h) AS x FROM g) WHERE x IS NULL".to_owned(), "0"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&TABLES, &cases).await;
}

#[tokio::test]
async fn references_to_a_shared_query_read_different_fields() {
    let setup =
        ["CREATE TABLE t AS SELECT * FROM (VALUES ({a: 1, b: 10}, 1), ({a: 2, b: 20}, 2)) v(r, y)"];
    let with = "WITH w AS (SELECT r, array_agg(y) AS l FROM t GROUP BY r)";
    let cases = [
        (
            format!("{with} SELECT r.a AS v FROM w UNION ALL SELECT r.b FROM w ORDER BY v"),
            "1; 2; 10; 20",
        ),
        (format!("{with} SELECT (SELECT max(r.a) FROM w), (SELECT max(r.b) FROM w)"), "2 20"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}
