//! CTEs, and outer rows of correlated subqueries, that a plan uses several times and computes once.

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
            // The CTE `x` is used directly, and by `y`, which is used twice.
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
            // A condition without columns applies to one of the uses.
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
            // Two CTEs with equal definitions have separate rows.
            (
                "WITH x AS (SELECT random() AS r), y AS (SELECT random() AS r) SELECT count(*) FROM x, y WHERE x.r = y.r",
                "0",
            ),
            // The shared rows are in the order of the CTE.
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
async fn ctes_whose_types_rules_change_are_computed_once() {
    let t = "CREATE TABLE t AS SELECT * FROM (VALUES (1,20,'x'),(2,30,'y'),(NULL,10,'x'),(3,NULL,NULL),(2,20,'y')) v(a,b,c)";
    let case = "SELECT random() AS r, CASE WHEN a > 1 THEN 1 ELSE 2.5 END AS q, a, b FROM t";
    let lists =
        "SELECT random() AS r, unnest(l) AS z FROM (SELECT b, array_agg(a) AS l FROM t GROUP BY b)";
    let twice = "w x JOIN w y ON x.r = y.r";
    let setup = [
        t.to_owned(),
        "CREATE TABLE d AS SELECT * FROM t".to_owned(),
        "CREATE TABLE e AS SELECT * FROM t".to_owned(),
        format!("DELETE FROM d WHERE b IN (WITH w AS ({case}) SELECT x.b FROM {twice})"),
        format!("UPDATE e SET c = 'z' WHERE b IN (WITH w AS ({case}) SELECT x.b FROM {twice})"),
        format!("CREATE TABLE i AS WITH w AS ({case}) SELECT x.r FROM {twice}"),
        format!("CREATE VIEW v AS WITH w AS ({case}) SELECT x.r FROM {twice}"),
        format!(
            "PREPARE p AS WITH w AS ({case}) SELECT count(*) FROM {twice} WHERE x.b > $1 AND y.b > $1"
        ),
        format!("PREPARE f AS WITH w AS ({case} WHERE b > $1) SELECT count(*) FROM {twice}"),
    ];
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    let cases = [
        (format!("WITH w AS ({case}) SELECT count(*) FROM {twice}"), "5"),
        (format!("WITH w AS MATERIALIZED ({case}) SELECT count(*) FROM {twice}"), "5"),
        (format!("WITH w AS ({case} LIMIT 3) SELECT count(*) FROM {twice}"), "3"),
        (format!("WITH w AS ({case}) SELECT count(*) FROM {twice} AND x.q = y.q"), "5"),
        (format!("WITH w AS (SELECT random() AS r, nullif(a, 2.5) FROM t) SELECT count(*) FROM {twice}"), "5"),
        (format!("WITH w AS (SELECT a, random() AS r FROM t UNION ALL SELECT 2.5, random()) SELECT count(*) FROM {twice}"), "6"),
        (format!("WITH w AS ({lists}) SELECT count(*) FROM w x LEFT JOIN w y ON x.r = y.r WHERE y.r IS NULL"), "0"),
        (format!("WITH w(r, q, a, b) AS ({case}) SELECT count(*) FROM w AS w JOIN w AS x(k, l, m, n) ON w.r = x.k"), "5"),
        (format!("WITH w AS ({case}), s AS (SELECT r FROM w) SELECT count(*) FROM {twice} JOIN s ON s.r = x.r JOIN s u ON u.r = s.r"), "5"),
        (format!("WITH w AS ({case}) SELECT (SELECT count(*) FROM w WHERE r < 0.5) + (SELECT count(*) FROM w WHERE r >= 0.5)"), "5"),
        (format!("WITH w AS ({case}) SELECT count(*) FROM w x WHERE r IN (SELECT r FROM w)"), "5"),
        // The rules change types in a query that reads the CTE.
        ("WITH w AS (SELECT random() AS r, a FROM t) SELECT count(*) FROM w x JOIN (SELECT w.r, CASE WHEN a > 1 THEN 1 ELSE 2.5 END FROM w) y ON x.r = y.r".to_owned(), "5"),
        ("WITH w AS (SELECT random() AS r, a FROM t WHERE a < 2.5) SELECT count(*) FROM (SELECT w.r, CASE WHEN a > 1 THEN 1 ELSE 2.5 END FROM w) x JOIN w y ON x.r = y.r".to_owned(), "3"),
        (format!("WITH w AS ({case}) SELECT count(*) FROM (SELECT r, CASE WHEN a > 1 THEN 1 ELSE 2.5 END FROM w) x JOIN (SELECT r, nullif(a, 2.5) FROM w) y ON x.r = y.r JOIN w ON w.r = x.r"), "5"),
        ("SELECT count(*) FROM d".to_owned(), "1"),
        ("SELECT count(*) FROM e WHERE c = 'z'".to_owned(), "4"),
        ("SELECT count(*) FROM i".to_owned(), "5"),
        ("SELECT count(*) FROM v".to_owned(), "5"),
        ("SELECT count(*) FROM (SELECT r, CASE WHEN r < 2 THEN 1 ELSE 2.5 END FROM v)".to_owned(), "5"),
        ("EXECUTE p(15)".to_owned(), "3"),
        ("EXECUTE f(15)".to_owned(), "3"),
        // Two CTEs or subqueries with equal text, and two references to a view, have separate rows.
        (format!("WITH w AS ({case}), s AS ({case}) SELECT count(*) FROM w JOIN s ON w.r = s.r"), "0"),
        (format!("WITH w AS ({case}), s AS (WITH w AS ({case}) SELECT r, nullif(a, 2.5) FROM w) SELECT count(*) FROM w JOIN s ON w.r = s.r"), "0"),
        (format!("SELECT count(*) FROM ({case}) x JOIN ({case}) y ON x.r = y.r"), "0"),
        (format!("SELECT count(*) FROM (SELECT r, nullif(a, 2.5) FROM ({case}) x) k JOIN (SELECT r, nullif(a, 2.5) FROM ({case}) x) l ON k.r = l.r"), "0"),
        ("SELECT count(*) FROM v x JOIN v y ON x.r = y.r".to_owned(), "0"),
        ("SELECT count(*) FROM (SELECT x.r, CASE WHEN x.r < 2 THEN 1 ELSE 2.5 END FROM v x JOIN v y ON x.r = y.r)".to_owned(), "0"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn views_compute_their_ctes_in_each_run() {
    let ctx = create_parallel_session();
    for sql in [
        "CREATE TABLE t AS SELECT 1 AS k",
        "CREATE VIEW v AS WITH x AS (SELECT k, random() AS r FROM t) SELECT p.k, p.r FROM x p JOIN x q ON p.r = q.r",
    ] {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    assert_eq!(query_int(&ctx, "SELECT count(*) FROM v").await, 1);
    let first = query_text(&ctx, "SELECT r FROM v").await;
    assert_ne!(query_text(&ctx, "SELECT r FROM v").await, first);
    query_batches(&ctx, "INSERT INTO t VALUES (2)").await.unwrap();
    assert_eq!(query_int(&ctx, "SELECT count(*) FROM v").await, 2);
    let frame = serrate::sql::sql(&ctx, "SELECT r FROM v").await.unwrap();
    let first = frame.clone().collect().await.unwrap();
    assert_ne!(frame.collect().await.unwrap(), first);
}

#[tokio::test]
async fn each_reference_to_a_view_has_its_own_rows() {
    let ctx = create_parallel_session();
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
async fn correlated_subqueries_may_have_volatile_outer_rows() {
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
async fn references_to_a_shared_query_may_read_different_fields() {
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
