//! Several correlated subqueries in one statement, and forms of subqueries that failed next to
//! others.

use super::*;

const TABLES: [&str; 7] = [
    "CREATE TABLE a AS SELECT 1 AS id, 1 AS k UNION ALL SELECT 2, NULL",
    "CREATE TABLE c AS SELECT 9 AS id, 1 AS k UNION ALL SELECT 1, 5",
    "CREATE TABLE q AS SELECT 1 AS k",
    "CREATE TABLE t AS SELECT * FROM (VALUES (1), (2)) v(id)",
    "CREATE TABLE u AS SELECT * FROM (VALUES (1, 5, 5), (2, 6, NULL)) w(id, y, z)",
    "CREATE TABLE l AS SELECT * FROM (VALUES (1, [1], [1], 1), (2, [2], [5], 5)) v(id, x, m, v)",
    "CREATE TABLE w AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v(w, c)",
];

#[tokio::test]
async fn plans_grow_linearly_with_the_number_of_subqueries() {
    let counts: Vec<String> =
        (0..6).map(|n| format!("(SELECT count(*) FROM c WHERE c.k > a.id + {n})")).collect();
    let extremes: Vec<String> =
        (0..9).map(|n| format!("(SELECT max(k) FROM c WHERE c.k > a.id + {n})")).collect();
    let counts = format!("SELECT id, {} FROM a ORDER BY id", counts.join(", "));
    let extremes = format!("SELECT id, {} FROM a ORDER BY id", extremes.join(", "));
    expect_rows(
        &TABLES,
        &[
            (
                "SELECT id, id IN (SELECT k FROM q), k IN (SELECT k FROM q), id + 1 IN (SELECT k FROM q) FROM a ORDER BY id",
                "1 true true false; 2 false NULL false",
            ),
            (&counts, "1 1 1 1 1 0 0; 2 1 1 1 0 0 0"),
            (&extremes, "1 5 5 5 5 NULL NULL NULL NULL NULL; 2 5 5 5 NULL NULL NULL NULL NULL NULL"),
            (
                "SELECT id, id >= ALL (SELECT k FROM q), id > ANY (SELECT k FROM q), id IN (SELECT k FROM q) FROM a ORDER BY id",
                "1 true false true; 2 true true false",
            ),
            (
                "SELECT id FROM l WHERE v IN (SELECT unnest(l.x)) OR id IN (SELECT unnest(l.x)) ORDER BY id",
                "1; 2",
            ),
            (
                "SELECT id, v IN (SELECT unnest(l.x)), id IN (SELECT unnest(l.m)) FROM l ORDER BY id",
                "1 true true; 2 false false",
            ),
            ("SELECT id FROM a WHERE id IN (SELECT 1 UNION ALL SELECT a.k)", "1"),
            ("SELECT id FROM a WHERE id NOT IN (SELECT 1 UNION ALL SELECT a.id + 1)", "2"),
        ],
    )
    .await;
}

const MOVED: [&str; 3] = [
    "CREATE TABLE p AS SELECT * FROM (VALUES (1, NULL), (2, 0)) v(id, v)",
    "CREATE TABLE q AS SELECT * FROM (VALUES (1, 1), (2, NULL), (3, 5)) v(id, v)",
    "CREATE TABLE w AS SELECT * FROM (VALUES (0), (1)) v(i)",
];

const MOVED_TESTS: &str = "SELECT id FROM q WHERE EXISTS (SELECT 1 FROM p WHERE EXISTS (SELECT 1 FROM w WHERE i > 5) OR EXISTS (SELECT 1 FROM w WHERE i = p.v) OR p.id > q.v) ORDER BY id";

#[tokio::test]
async fn conditions_on_outer_columns_may_contain_several_subqueries() {
    let cases = [
        (MOVED_TESTS, "1; 2; 3"),
        (
            "SELECT id FROM q WHERE EXISTS (SELECT 1 FROM p WHERE (EXISTS (SELECT 1 FROM w WHERE i = p.v) OR p.id > q.v) AND (EXISTS (SELECT 1 FROM w WHERE i > 5) OR p.id > q.v)) ORDER BY id",
            "1",
        ),
        (
            "SELECT id FROM q WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.v NOT IN (SELECT i FROM w) OR p.id > q.v) ORDER BY id",
            "2; 3",
        ),
        (
            "SELECT id FROM q WHERE id NOT IN (SELECT p.v + 2 FROM p WHERE p.v NOT IN (SELECT i FROM w) OR p.id > q.v) ORDER BY id",
            "1; 2; 3",
        ),
        (
            "SELECT id FROM q WHERE id NOT IN (SELECT p.v + 2 FROM p WHERE p.v < ALL (SELECT i FROM w) OR p.id > q.v) ORDER BY id",
            "1; 2; 3",
        ),
        (
            "SELECT id FROM q WHERE 2 IN (SELECT p.id FROM p WHERE p.v IN (SELECT i + 9 FROM w) OR p.v IN (SELECT i FROM w) OR p.id > q.v) ORDER BY id",
            "1; 2; 3",
        ),
        (
            "SELECT id FROM q WHERE EXISTS (SELECT 1 FROM p WHERE EXISTS (SELECT 1 FROM w WHERE i > 5) OR p.id > q.v) ORDER BY id",
            "1",
        ),
    ];
    expect_rows(&MOVED, &cases).await;
}

#[tokio::test]
async fn stock_moved_subqueries_still_share_a_result() {
    let ctx = SessionContext::new();
    for sql in MOVED {
        stock_batches(&ctx, sql).await.unwrap();
    }
    assert_eq!(stock_ints(&ctx, MOVED_TESTS).await, [1]);
}

#[tokio::test]
async fn scalar_subqueries_without_aggregates_may_be_selected_with_others() {
    expect_rows(
        &TABLES,
        &[
            (
                "SELECT id, (SELECT y FROM u WHERE u.id = t.id) AS a, (SELECT z FROM u WHERE u.id = t.id) AS b FROM t ORDER BY id",
                "1 5 5; 2 6 NULL",
            ),
            (
                "SELECT id FROM t WHERE (SELECT y FROM u WHERE u.id = t.id) = (SELECT z FROM u WHERE u.id = t.id)",
                "1",
            ),
            (
                "SELECT id, (SELECT z FROM u WHERE u.id = t.id) FROM t WHERE (SELECT y FROM u WHERE u.id = t.id) > 5",
                "2 NULL",
            ),
            (
                "SELECT id, (SELECT y FROM u WHERE u.id = t.id), (SELECT max(y) FROM u WHERE u.id < t.id) FROM t ORDER BY id",
                "1 5 NULL; 2 6 5",
            ),
            (
                "SELECT id, coalesce((SELECT z FROM u WHERE u.id = t.id), (SELECT max(y) FROM u WHERE u.id < t.id), -1) FROM t ORDER BY id",
                "1 5; 2 5",
            ),
            (
                "SELECT id FROM a WHERE k >= (SELECT k FROM c WHERE c.id > a.id) AND k <= (SELECT k FROM c WHERE c.id > a.id)",
                "1",
            ),
        ],
    )
    .await;
    let ctx = create_parallel_session();
    for sql in TABLES {
        query_batches(&ctx, sql).await.unwrap();
    }
    let twice = "SELECT (SELECT y FROM u WHERE u.id >= t.id) AS a, (SELECT z FROM u WHERE u.id = t.id) AS b FROM t";
    assert!(error(&ctx, twice).await.contains("2 rows for one row of the outer query"));
}

#[tokio::test]
async fn derived_tables_may_have_correlated_conditions() {
    expect_rows(
        &TABLES,
        &[
            ("SELECT id FROM a WHERE id IN (SELECT cid - 8 FROM (SELECT c.id AS cid FROM c WHERE c.k = a.k) q)", "1"),
            ("SELECT id, (SELECT count(*) FROM (SELECT c.id AS m FROM c WHERE c.k = a.k) q) FROM a ORDER BY id", "1 1; 2 0"),
            ("SELECT id, (SELECT m FROM (SELECT max(c.id) AS m FROM c WHERE c.k = a.k) q) FROM a ORDER BY id", "1 9; 2 NULL"),
            ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM (SELECT c.id FROM c WHERE c.k = a.k) q WHERE q.id > 1)", "1"),
            (
                "SELECT id, (WITH q AS (SELECT max(c.id) AS m FROM c WHERE c.k = a.k) SELECT m FROM q) FROM a ORDER BY id",
                "1 9; 2 NULL",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn in_accepts_a_values_query() {
    expect_rows(
        &TABLES,
        &[
            ("SELECT id FROM a WHERE k IN (VALUES (1), (2))", "1"),
            ("SELECT id FROM a WHERE id NOT IN (VALUES (1), (3))", "2"),
            ("SELECT id FROM a WHERE id NOT IN (VALUES (1), (NULL))", ""),
            ("SELECT id, k IN (VALUES (1), (2)) FROM a ORDER BY id", "1 true; 2 NULL"),
            ("SELECT id FROM a WHERE id IN (VALUES (1), (2) LIMIT 1)", "1"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_subquery_may_unnest_two_lists_of_the_outer_row() {
    expect_rows(
        &TABLES,
        &[
            (
                "SELECT id, (SELECT count(*) FROM unnest(l.x) q(a) JOIN unnest(l.m) p(b) ON a = b) FROM l ORDER BY id",
                "1 1; 2 0",
            ),
            (
                "SELECT id FROM l WHERE EXISTS (SELECT 1 FROM unnest(l.x) q(a), unnest(l.m) p(b) WHERE a = b)",
                "1",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn lateral_tables_are_joined_after_a_comma() {
    expect_rows(
        &TABLES,
        &[
            ("SELECT l.id, a, c FROM l, unnest(l.x) AS q(a) JOIN w ON w.w = a ORDER BY l.id", "1 1 a; 2 2 b"),
            ("SELECT l.id, a, c FROM l, unnest(l.m) AS q(a) LEFT JOIN w ON w.w = a ORDER BY l.id", "1 1 a; 2 5 NULL"),
            ("SELECT l.id, a, c FROM l, LATERAL (SELECT unnest(l.x) AS a) q JOIN w ON w.w = a ORDER BY l.id", "1 1 a; 2 2 b"),
            (
                "SELECT x.id, t.id FROM a x, LATERAL (SELECT count(*) AS n FROM c WHERE c.id > x.id) y JOIN t ON t.id = y.n ORDER BY x.id",
                "1 1; 2 1",
            ),
            ("SELECT * FROM l, w JOIN t ON w.w = t.id WHERE l.id = 1 ORDER BY t.id", "1 [1] [1] 1 1 a 1; 1 [1] [1] 1 2 b 2"),
            ("SELECT x.id, y.v FROM a x, LATERAL (VALUES (x.k), (x.id)) y(v) ORDER BY x.id, y.v", "1 1; 1 1; 2 2; 2 NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn deeply_nested_subqueries_are_refused() {
    let ctx = create_parallel_session();
    let nested =
        |levels: usize| format!("SELECT {}1{}", "(SELECT ".repeat(levels), ")".repeat(levels));
    assert_eq!(query_int(&ctx, &nested(6)).await, 1);
    let message = error(&ctx, &nested(20)).await;
    assert!(message.contains("nested more than 16 levels deep"), "{message}");
}

/// DataFusion gives all subqueries with the same column, and all conditions IN and EXISTS, one name.
#[tokio::test]
async fn aggregates_and_keys_may_differ_in_their_subqueries() {
    let setup = [
        "CREATE TABLE g AS SELECT * FROM (VALUES (1, 1), (1, 2), (2, 1), (6, 5)) v(x, y)",
        "CREATE TABLE z AS SELECT * FROM (VALUES (2), (7)) v(i)",
    ];
    let cases = [
        (
            "SELECT sum(CASE WHEN x IN (SELECT i FROM z) THEN 1 ELSE 0 END) AS a, sum(CASE WHEN y + 1 IN (SELECT i FROM z) THEN 1 ELSE 0 END) AS b FROM g",
            "1 2",
        ),
        (
            "SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM z WHERE i = x)) AS a, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM z WHERE i = x + 1)) AS b FROM g",
            "1 3",
        ),
        (
            "SELECT sum((SELECT max(i) FROM z WHERE i > x)) AS a, sum((SELECT max(i) FROM z WHERE i < x)) AS b FROM g",
            "28 2",
        ),
        (
            "SELECT max((SELECT i FROM z WHERE i = 2)), max((SELECT i FROM z WHERE i = 7)) FROM g",
            "2 7",
        ),
        (
            "SELECT x IN (SELECT i FROM z) AS a, y IN (SELECT i FROM z) AS b, count(*) FROM g GROUP BY a, b ORDER BY a, b",
            "false false 2; false true 1; true false 1",
        ),
        (
            "SELECT max(y) AS m FROM g GROUP BY (SELECT max(i) FROM z WHERE i > x), (SELECT max(i) FROM z WHERE i < x) ORDER BY m",
            "2; 5",
        ),
        (
            "SELECT x, sum(x) OVER (PARTITION BY x IN (SELECT i FROM z)) AS a, sum(x) OVER (PARTITION BY y IN (SELECT i FROM z)) AS b FROM g ORDER BY x, b",
            "1 8 1; 1 8 9; 2 2 9; 6 8 9",
        ),
        (
            "SELECT count(*) FROM g HAVING sum((SELECT max(i) FROM z WHERE i > x)) > 27 AND sum((SELECT max(i) FROM z WHERE i < x)) < 3",
            "4",
        ),
    ];
    expect_rows(&setup, &cases).await;
}
