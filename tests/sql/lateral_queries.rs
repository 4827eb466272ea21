//! LATERAL queries: their subqueries, names and joins.

use super::nested_subqueries::TABLES;
use super::*;

#[tokio::test]
async fn lateral_queries_may_contain_subqueries() {
    expect_rows(
        &TABLES,
        &[
            (
                "SELECT x.id, y.v FROM a x, LATERAL (SELECT c.id AS v FROM c WHERE EXISTS (SELECT 1 FROM nn WHERE nn.id = x.k AND nn.id = c.id)) y ORDER BY 1, 2",
                "2 3; 4 4",
            ),
            (
                "SELECT x.id, y.v FROM a x, LATERAL (SELECT c.id AS v FROM c WHERE c.id NOT IN (SELECT nn.id FROM nn WHERE nn.id > x.id)) y WHERE x.id > 2 ORDER BY 1, 2",
                "3 2; 3 3; 3 5; 4 2; 4 3; 4 4; 4 5",
            ),
            (
                "SELECT x.id, y.v FROM a x LEFT JOIN LATERAL (SELECT c.id AS v FROM c WHERE c.id = x.id AND c.id IN (SELECT id FROM nn)) y ON true ORDER BY 1, 2",
                "1 NULL; 2 NULL; 3 3; 4 4",
            ),
            (
                "SELECT x.id, y.v FROM a x, LATERAL (SELECT c.id AS v FROM c WHERE c.id > x.id EXCEPT SELECT nn.id FROM nn) y ORDER BY 1, 2",
                "1 2; 1 5; 2 5; 3 5; 4 5",
            ),
            (
                "SELECT x.id, y.v FROM a x, LATERAL (SELECT c.id AS v FROM c WHERE c.id > x.id INTERSECT SELECT nn.id FROM nn) y ORDER BY 1, 2",
                "1 3; 1 4; 2 3; 2 4; 3 4",
            ),
            (
                "SELECT count(*) FROM a x, LATERAL (SELECT * FROM c, LATERAL (SELECT nn.id AS n FROM nn WHERE nn.id = c.k AND nn.id > x.id) z) y",
                "2",
            ),
            (
                "SELECT x.id, y.id, y.n FROM a x, LATERAL (SELECT c.id, z.n FROM c LEFT JOIN LATERAL (SELECT nn.id AS n FROM nn WHERE nn.id >= c.k AND nn.id < x.id) z ON true) y WHERE x.id = 4 ORDER BY 1, 2, 3",
                "4 2 1; 4 2 3; 4 3 3; 4 4 NULL; 4 5 NULL",
            ),
            (
                "SELECT x.id, (SELECT sum(y.n) FROM c, LATERAL (SELECT count(*) AS n FROM nn WHERE nn.id <= c.id AND nn.id <> x.id) y) AS s FROM a x ORDER BY id",
                "1 5; 2 9; 3 6; 4 7",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn join_conditions_after_lateral_name_the_joined_tables() {
    expect_rows(
        &[],
        &[
            ("SELECT * FROM (VALUES (1)) a(x), LATERAL (SELECT a.x + 1 AS y) b JOIN (VALUES (2)) c(x) ON x = y", "1 2 2"),
            ("SELECT * FROM (VALUES (1)) a(x), LATERAL (SELECT a.x + 1 AS y) b LEFT JOIN (VALUES (3)) c(x) ON x = y", "1 2 NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn lateral_queries_may_use_only_their_own_columns() {
    let setup = [
        "CREATE TABLE lb AS SELECT * FROM (VALUES (1, [1, 2]), (3, NULL)) v(id, l)",
        "CREATE TABLE lc AS SELECT * FROM (VALUES (1, 7), (2, 8)) v(id, x)",
    ];
    let from = "(SELECT 1 AS one) o";
    let cases = [
        (
            format!(
                "SELECT w.* FROM {from}, LATERAL (SELECT lb.id, u.v FROM lb LEFT JOIN unnest(lb.l) u(v) ON true) w ORDER BY 1, 2"
            ),
            "1 1; 1 2; 3 NULL",
        ),
        (
            format!(
                "SELECT w.* FROM {from}, LATERAL (SELECT lb.id, u.v FROM lb, unnest(lb.l) u(v)) w ORDER BY 1, 2"
            ),
            "1 1; 1 2",
        ),
        (
            format!(
                "SELECT w.* FROM {from} LEFT JOIN LATERAL (SELECT lb.id, u.v FROM lb, unnest(lb.l) u(v)) w ON w.v > one"
            ),
            "1 2",
        ),
        (
            format!(
                "SELECT w.* FROM {from}, LATERAL (SELECT lb.id, c.x FROM lb, LATERAL (SELECT max(x) AS x FROM lc WHERE lc.id < lb.id) c) w ORDER BY 1"
            ),
            "1 NULL; 3 8",
        ),
        (
            format!(
                "SELECT w.* FROM {from}, LATERAL (SELECT lb.id, c.x FROM lb, LATERAL (SELECT x FROM lc WHERE lc.id = lb.id) c) w"
            ),
            "1 7",
        ),
        (
            format!(
                "SELECT one, w.* FROM {from}, LATERAL (SELECT lb.id, u.v FROM lb, unnest(lb.l) u(v) WHERE u.v > one) w"
            ),
            "1 1 2",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

/// Tables whose columns have the same names.
const SAME_NAMES: [&str; 4] = [
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 20, 'x'), (2, 30, 'y'), (NULL, 10, 'x'), (3, NULL, NULL), (2, 20, 'y')) v(a, b, c)",
    "CREATE TABLE u AS SELECT * FROM (VALUES (1, 50, 'x'), (2, 20, 'y'), (3, 70, 'x'), (3, 10, NULL)) v(a, b, c)",
    "CREATE TABLE w AS SELECT * FROM (VALUES (1, 50, 'q'), (9, 1, 'r')) v(a, d, e)",
    "CREATE VIEW tv AS SELECT * FROM t",
];

const SELF_JOIN: &str =
    "LATERAL (SELECT s.c AS x FROM t s, u s2 WHERE s.a = r.a AND s2.a = r.a + 1) l";

#[tokio::test]
async fn lateral_queries_may_read_several_columns_of_one_name() {
    let of_views = SELF_JOIN.replace("FROM t s", "FROM tv s");
    let ordered = SELF_JOIN.replace(") l", " ORDER BY s.b LIMIT 1) l");
    let prepared = SELF_JOIN.replace("+ 1", "+ $1");
    let prepared = format!("PREPARE p AS SELECT r.a, r.b, l.x FROM u r, {prepared}");
    let deleted = format!("DELETE FROM kept WHERE a IN (SELECT r.a FROM u r, {SELF_JOIN})");
    let mut setup = SAME_NAMES.to_vec();
    setup.push("CREATE TABLE kept AS SELECT * FROM t");
    setup.push(prepared.as_str());
    setup.push(deleted.as_str());
    let cases = [
        (
            format!("SELECT r.a, r.b, l.x FROM u r, {SELF_JOIN} ORDER BY 1, 2, 3"),
            "1 50 x; 2 20 y; 2 20 y; 2 20 y; 2 20 y",
        ),
        (
            format!("SELECT r.a, r.b, l.x FROM u r, {SELF_JOIN} ORDER BY r.b, l.x LIMIT 2"),
            "2 20 y; 2 20 y",
        ),
        (format!("SELECT r.a, l.x FROM u r, {of_views} ORDER BY 1, 2"), "1 x; 2 y; 2 y; 2 y; 2 y"),
        (format!("SELECT r.a, l.x FROM u r, {ordered} ORDER BY 1"), "1 x; 2 y"),
        ("EXECUTE p(2)".to_owned(), "1 50 x; 1 50 x"),
        ("SELECT a FROM kept ORDER BY 1".to_owned(), "3; NULL"),
    ];
    let cases = cases.each_ref().map(|(sql, rows)| (sql.as_str(), *rows));
    expect_rows(&setup, &cases).await;
    expect_rows(
        &SAME_NAMES,
        &[
            (
                "SELECT r.a, r.b, l.x FROM u r LEFT JOIN LATERAL (SELECT s.c AS x FROM t s, t s2 WHERE s.a = r.a AND s2.a > r.a) l ON true ORDER BY 1, 2, 3",
                "1 50 x; 1 50 x; 1 50 x; 2 20 y; 2 20 y; 3 10 NULL; 3 70 NULL",
            ),
            (
                "SELECT r.a, l.x, l.y FROM u r LEFT JOIN LATERAL (SELECT s.c AS x, s2.b AS y FROM t s, t s2 WHERE s.a = r.a AND s2.a > r.a) l ON l.y = r.b + 10 ORDER BY 1",
                "1 NULL NULL; 2 NULL NULL; 3 NULL NULL; 3 NULL NULL",
            ),
            (
                "SELECT r.a, r.b, l.x FROM u r, LATERAL (SELECT s.c AS x FROM t s JOIN u s2 ON s2.c = s.c WHERE s.a = r.a AND s2.a <> r.a) l",
                "1 50 x",
            ),
            (
                "SELECT r.a, l.x FROM u r, LATERAL (SELECT s.c AS x FROM t s, u s2 WHERE s.a = s2.a AND s.a = r.a AND s2.b = r.b) l ORDER BY 1, 2",
                "1 x; 2 y; 2 y; 3 NULL; 3 NULL",
            ),
            (
                "SELECT u.a, l.* FROM u, LATERAL (SELECT t.b AS a FROM t WHERE t.a = u.a) l ORDER BY 1, 2",
                "1 20; 2 20; 2 30; 3 NULL; 3 NULL",
            ),
            (
                "SELECT r.a, r.b, l.a FROM u r, LATERAL (SELECT s2.a FROM t s, u s2 WHERE s.a = r.a AND s2.b = r.b) l ORDER BY 1, 2",
                "1 50 1; 2 20 2; 2 20 2; 3 10 3; 3 70 3",
            ),
            (
                "WITH k AS (SELECT a, c FROM t) SELECT count(*), min(l.x) FROM u r, LATERAL (SELECT s.c AS x FROM k s, k s2 WHERE s.a = r.a AND s2.a > r.a) l",
                "5 x",
            ),
            (
                "SELECT r.a, (SELECT count(*) FROM w, LATERAL (SELECT s.c AS x FROM t s, u s2 WHERE s.a = r.a AND s2.a > w.a) l) AS n FROM u r ORDER BY 1",
                "1 3; 2 6; 3 3; 3 3",
            ),
            (
                "SELECT a FROM t WHERE a NOT IN (SELECT l.x FROM u r, LATERAL (SELECT s.a AS x FROM t s, u s2 WHERE s.a = r.a AND s2.a = r.a + 1) l)",
                "3",
            ),
            (
                "SELECT a FROM w WHERE a IN (SELECT l.x FROM u r, LATERAL (SELECT s2.a AS x FROM t s, t s2 WHERE s.a = r.a AND s2.a < r.a) l)",
                "1",
            ),
        ],
    )
    .await;
}

/// The tables within a LATERAL query may have aliases, and names of outer tables.
#[tokio::test]
async fn lateral_queries_may_have_table_aliases() {
    let cases = [
        (
            "SELECT r.a, l.x FROM u r, LATERAL (SELECT z.x FROM (SELECT s.b AS x FROM t s WHERE s.a = r.a) z) l ORDER BY 1, 2",
            "1 20; 2 20; 2 30; 3 NULL; 3 NULL",
        ),
        (
            "SELECT r.a, l.x FROM u r LEFT JOIN LATERAL (WITH z AS (SELECT s.b AS x, s.a FROM t s WHERE s.a = r.a) SELECT z.x FROM z WHERE z.x > 20) l ON true ORDER BY 1, 2",
            "1 NULL; 2 30; 3 NULL; 3 NULL",
        ),
        (
            "SELECT w.a, l.x FROM w LEFT JOIN LATERAL (SELECT z.x FROM (SELECT t.b AS x FROM t WHERE w.a > 1) z) l ON l.x < 20 ORDER BY 1",
            "1 NULL; 9 10",
        ),
        (
            "SELECT r.a, r.b, l.x FROM u r LEFT JOIN LATERAL (SELECT r.e AS x, r.a FROM w r WHERE r.d > b) l ON r.a > 1 ORDER BY 1, 2",
            "1 50 NULL; 2 20 q; 3 10 q; 3 70 NULL",
        ),
        (
            "SELECT s.a, r.b, x FROM t s, u r, LATERAL (SELECT s.b AS x FROM t s WHERE s.a = r.a) WHERE s.a = 1 ORDER BY 1, 2, 3",
            "1 10 NULL; 1 20 20; 1 20 30; 1 50 20; 1 70 NULL",
        ),
    ];
    expect_rows(&SAME_NAMES, &cases).await;
}

#[tokio::test]
async fn volatile_lateral_queries_with_repeated_column_names_are_refused() {
    let ctx = serrate::sql::session();
    for sql in SAME_NAMES {
        query_batches(&ctx, sql).await.unwrap();
    }
    let volatile = SELF_JOIN.replace("s.c AS x", "s.c AS x, random() AS y");
    let found = rows_or_error(&ctx, &format!("SELECT r.a, l.x, l.y FROM u r, {volatile}")).await;
    assert!(found.contains("uses the column a, but another column of the join"), "{found}");
}

/// When this test fails, `MovedColumns::find_clash` of `sql::workarounds::subqueries::correlated`
/// can be removed.
#[tokio::test]
async fn stock_lateral_self_joins_still_lose_rows() {
    let stock = SessionContext::new();
    for sql in &SAME_NAMES[..2] {
        stock_batches(&stock, sql).await.unwrap();
    }
    let sql = format!("SELECT r.a FROM u r, {SELF_JOIN} ORDER BY r.a");
    assert_ne!(rows_or_error(&stock, &sql).await, "1; 2; 2; 2; 2");
}

/// The columns of the left side of a LATERAL join are not outer columns of the query around the
/// join.
#[tokio::test]
async fn subqueries_may_contain_left_lateral_joins() {
    let cases = [
        (
            "SELECT (SELECT max(l.x) FROM u LEFT JOIN LATERAL (SELECT t.a AS x FROM t WHERE 'z' <> u.c) l ON true)",
            "3",
        ),
        (
            "SELECT a FROM w WHERE a IN (SELECT l.x FROM u LEFT JOIN LATERAL (SELECT t.a AS x FROM t WHERE 'z' <> u.c) l ON true)",
            "1",
        ),
        (
            "SELECT a FROM w WHERE EXISTS (SELECT 1 FROM u LEFT JOIN LATERAL (SELECT t.a AS x FROM t WHERE t.b = u.b) l ON true WHERE u.a = w.a)",
            "1",
        ),
        (
            "SELECT a, (SELECT count(l.x) FROM u LEFT JOIN LATERAL (SELECT t.a AS x FROM t WHERE t.b <= u.b) l ON true WHERE u.a = w.a) AS n FROM w ORDER BY a",
            "1 3; 9 0",
        ),
        (
            "SELECT a, (SELECT max(l.x) FROM u LEFT JOIN LATERAL (SELECT t.a AS x FROM t WHERE t.b > u.b AND t.a < w.a) l ON true) AS m FROM w ORDER BY a",
            "1 NULL; 9 2",
        ),
    ];
    expect_rows(&SAME_NAMES, &cases).await;
}

/// A scalar subquery with a LATERAL join of its own tables uses no column of the outer query.
#[tokio::test]
async fn scalar_subqueries_may_join_their_own_tables_laterally() {
    let setup = [
        "CREATE TABLE lists AS SELECT * FROM (VALUES (1, [1, 2]), (3, NULL), (4, [7])) v(id, x)",
        "CREATE TABLE limits AS SELECT * FROM (VALUES (2), (5)) v(most)",
    ];
    let cases = [
        (
            "SELECT id, (SELECT q.v FROM lists l, unnest(l.x) q(v) ORDER BY q.v DESC LIMIT 1) AS top FROM lists ORDER BY id",
            "1 7; 3 7; 4 7",
        ),
        (
            "SELECT (SELECT q.v FROM lists l LEFT JOIN unnest(l.x) q(v) ON true ORDER BY l.id, q.v DESC LIMIT 1) AS top",
            "2",
        ),
        (
            "SELECT (SELECT q.n FROM limits, LATERAL (SELECT count(*) AS n FROM lists WHERE id < most) q ORDER BY most LIMIT 1) AS n",
            "1",
        ),
        (
            "SELECT (SELECT q.id FROM limits, LATERAL (SELECT id FROM lists WHERE id < most) q ORDER BY q.id DESC LIMIT 1) AS last",
            "4",
        ),
        (
            "SELECT id FROM lists WHERE id > (SELECT q.n FROM limits, LATERAL (SELECT count(*) AS n FROM lists WHERE id < most) q ORDER BY most LIMIT 1) ORDER BY id",
            "3; 4",
        ),
        (
            "SELECT id, CASE WHEN id > 1 THEN (SELECT DISTINCT most FROM limits, LATERAL (SELECT id FROM lists l WHERE l.id > most) q WHERE most = 2) END AS c FROM lists ORDER BY id",
            "1 NULL; 3 2; 4 2",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

/// DataFusion would move a condition on outer columns above the join, window function or DISTINCT,
/// and lose or repeat rows.
#[tokio::test]
async fn lateral_queries_above_whose_conditions_rows_depend_on_each_other_are_refused() {
    let ctx = serrate::sql::session();
    run_all(&ctx, &SAME_NAMES).await;
    for query in [
        "SELECT t.b, u.c FROM (SELECT * FROM t WHERE t.a >= w.a) t FULL JOIN u ON t.a = u.a",
        "SELECT t.b, random() < 2 AS r FROM u LEFT JOIN (SELECT * FROM t WHERE t.a = w.a) t ON t.a = u.a",
        "SELECT row_number() OVER (ORDER BY random()) AS r FROM t WHERE t.a >= w.a",
        "SELECT DISTINCT t.a > 0 AS p, random() < 2 AS r FROM t WHERE t.a >= w.a",
    ] {
        for join in [", LATERAL", "LEFT JOIN LATERAL"] {
            let on = if join.starts_with("LEFT") { "ON true" } else { "" };
            let sql = format!("SELECT w.d, l.* FROM w {join} ({query}) l {on}");
            let e = rows_or_error(&ctx, &sql).await;
            assert!(e.contains("after a condition on columns of the outer query"), "{sql}: {e}");
        }
    }
}
