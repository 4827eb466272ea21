//! Subqueries that use columns of a query two levels up, and subqueries in LATERAL, ORDER BY and DISTINCT ON.

use std::time::{Duration, Instant};

use super::*;

const TABLES: [&str; 4] = [
    "CREATE TABLE a AS SELECT * FROM (VALUES (1, 1, 'x'), (2, 3, 'y'), (3, NULL, 'z'), (4, 4, NULL)) v(id, k, s)",
    "CREATE TABLE c AS SELECT * FROM (VALUES (2, 1), (3, 3), (5, NULL), (4, 9)) v(id, k)",
    "CREATE TABLE nn AS SELECT * FROM (VALUES (1), (3), (4)) v(id)",
    "CREATE TABLE none AS SELECT 1 AS id, 1 AS k WHERE false",
];

#[tokio::test]
async fn in_reads_columns_two_levels_up() {
    expect_rows(
        &TABLES,
        &[
            (
                "SELECT id FROM a WHERE id IN (SELECT c.id FROM c WHERE c.id IN (SELECT a.id FROM nn WHERE nn.id = a.id)) ORDER BY id",
                "3; 4",
            ),
            (
                "SELECT id FROM a WHERE id NOT IN (SELECT c.id FROM c WHERE c.id IN (SELECT a.id FROM nn WHERE nn.id = a.id)) ORDER BY id",
                "1; 2",
            ),
            (
                "SELECT id FROM a WHERE id IN (SELECT c.id FROM c WHERE c.id NOT IN (SELECT a.id FROM nn WHERE nn.id = a.id)) ORDER BY id",
                "2",
            ),
            (
                "SELECT id FROM a WHERE k NOT IN (SELECT c.k FROM c WHERE c.id NOT IN (SELECT nn.id + a.id FROM nn WHERE nn.id < a.id)) ORDER BY id",
                "4",
            ),
            (
                "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM c WHERE c.id >= a.id AND NOT EXISTS (SELECT 1 FROM nn WHERE nn.id = c.id AND nn.id = a.id)) ORDER BY id",
                "1; 2; 3; 4",
            ),
            (
                "SELECT id FROM a WHERE k IN (SELECT k FROM none WHERE none.id IN (SELECT a.id FROM nn)) OR k NOT IN (SELECT k FROM none WHERE none.id IN (SELECT a.id FROM nn)) ORDER BY id",
                "1; 2; 3; 4",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn in_over_a_union_with_outer_columns() {
    expect_rows(
        &TABLES,
        &[
            ("SELECT id FROM a WHERE k IN (SELECT 1 UNION ALL SELECT a.id) ORDER BY id", "1; 4"),
            ("SELECT id FROM a WHERE k NOT IN (SELECT 1 UNION ALL SELECT a.id) ORDER BY id", "2"),
            (
                "SELECT id FROM a WHERE k NOT IN (SELECT 7 UNION ALL SELECT NULLIF(a.id, 2)) ORDER BY id",
                "",
            ),
            (
                "SELECT id FROM a WHERE k IN (SELECT 1 UNION ALL SELECT a.id) OR id = 3 ORDER BY id",
                "1; 3; 4",
            ),
            (
                "SELECT id FROM a WHERE (k IN (SELECT 1 UNION ALL SELECT a.id)) IS NULL ORDER BY id",
                "3",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn nested_in_is_planned_quickly() {
    let ctx = four();
    for sql in TABLES {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    for word in ["IN", "NOT IN"] {
        let sql = format!(
            "SELECT a.id FROM a WHERE a.id {word} (SELECT c.id FROM c WHERE c.id {word} (SELECT a.id FROM nn WHERE nn.id = a.id))"
        );
        let start = Instant::now();
        let frame = serrate::sql::sql(&ctx, &sql).await.unwrap();
        frame.create_physical_plan().await.unwrap();
        // An unoptimized build on a busy machine.
        assert!(start.elapsed() < Duration::from_secs(30), "{word}: {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn lateral_queries_contain_subqueries() {
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
async fn order_by_and_distinct_on_contain_subqueries() {
    expect_rows(
        &TABLES,
        &[
            ("SELECT id FROM a ORDER BY EXISTS (SELECT 1 FROM c WHERE c.k = a.k) DESC, id", "1; 2; 3; 4"),
            ("SELECT s FROM a ORDER BY (SELECT max(c.id) FROM c WHERE c.k = a.k) DESC NULLS LAST, s NULLS LAST", "y; x; z; NULL"),
            ("SELECT s FROM a ORDER BY (SELECT count(*) FROM c WHERE c.k > a.k) + id * 10 DESC LIMIT 2", "NULL; z"),
            ("SELECT s, id AS k FROM a ORDER BY k, (SELECT max(c.id) FROM c WHERE c.k = a.k)", "x 1; y 2; z 3; NULL 4"),
            ("SELECT DISTINCT ON (id IN (SELECT id FROM c)) id FROM a ORDER BY id IN (SELECT id FROM c), id", "1; 2"),
            ("SELECT DISTINCT ON (EXISTS (SELECT 1 FROM c WHERE c.id = a.id)) id, s FROM a ORDER BY EXISTS (SELECT 1 FROM c WHERE c.id = a.id), id DESC", "1 x; 4 NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn lists_after_in_begin_with_a_query() {
    expect_rows(
        &TABLES,
        &[
            ("SELECT id FROM a WHERE k IN ((SELECT min(k) FROM c), (SELECT max(id) - 1 FROM c)) ORDER BY id", "1; 4"),
            ("SELECT id FROM a WHERE k NOT IN ((SELECT min(k) FROM c WHERE (c.k) > 0), 4) ORDER BY id", "2"),
            ("SELECT id FROM a WHERE id IN ((SELECT k FROM c)) ORDER BY id", "1; 3"),
            ("SELECT 1 IN ((SELECT 1), 2), 3 IN ((SELECT 1), 2)", "true false"),
        ],
    )
    .await;
}

#[tokio::test]
async fn columns_of_inner_tables_of_equal_names_stay() {
    expect_rows(
        &[
            "CREATE TABLE t AS SELECT * FROM (VALUES (1), (100)) v(a)",
            "CREATE TABLE u AS SELECT * FROM (VALUES (1), (200)) v(b)",
        ],
        &[
            (
                "SELECT t.a, (SELECT count(*) FROM u WHERE u.b > t.a AND EXISTS (SELECT 1 FROM t WHERE t.a < 10 AND t.a IN (SELECT x.b FROM u x WHERE x.b > t.a - 5))) AS n FROM t ORDER BY 1",
                "1 1; 100 1",
            ),
            (
                "SELECT t.a, (SELECT count(*) FROM u WHERE u.b > t.a AND EXISTS (SELECT 1 FROM t t2 WHERE t2.a < 10 AND t2.a IN (SELECT x.b FROM u x WHERE x.b > t2.a - 5))) AS n FROM t ORDER BY 1",
                "1 1; 100 1",
            ),
            // The table alias `t` of the derived table hides the outer `t` from the query after IN.
            (
                "SELECT t.a, (SELECT count(*) FROM (SELECT u.b FROM u WHERE u.b > t.a) t(a) WHERE t.a IN (SELECT x.b FROM u x WHERE x.b > t.a - 5 AND x.b < t.a + 5)) AS n FROM t ORDER BY 1",
                "1 1; 100 1",
            ),
            (
                "SELECT t.a, (SELECT sum(y.n) FROM (SELECT u.b FROM u WHERE u.b > t.a) t(a), LATERAL (SELECT count(*) AS n FROM u x WHERE x.b >= t.a) y) AS s FROM t ORDER BY 1",
                "1 1; 100 1",
            ),
            (
                "SELECT t.a, (SELECT count(*) FROM u WHERE u.b > t.a AND EXISTS (SELECT 1 FROM t, LATERAL (SELECT count(*) AS n FROM u x WHERE x.b >= t.a) y WHERE t.a < 10 AND y.n = 2)) AS n FROM t ORDER BY 1",
                "1 1; 100 1",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn conditions_beside_lateral_name_the_joined_tables() {
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
async fn tables_in_from_keep_the_names_of_outer_columns() {
    let setup = ["CREATE TABLE u AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(id, k)"];
    let cases = [
        ("SELECT q.k FROM u, LATERAL (SELECT u.k) q ORDER BY 1", "10; 20"),
        ("SELECT q.k + 1 FROM u, LATERAL (SELECT k) q ORDER BY 1", "11; 21"),
        (
            "SELECT q.k, q.m FROM u, LATERAL (SELECT u.k, m FROM (VALUES (5)) w(m)) q ORDER BY 1",
            "10 5; 20 5",
        ),
        ("SELECT (SELECT t2.k FROM (SELECT u.k) t2) FROM u ORDER BY 1", "10; 20"),
        (
            "SELECT q.id, u.id FROM u, LATERAL (SELECT w.id FROM u w WHERE w.id = u.id ORDER BY w.id) q ORDER BY 1",
            "1 1; 2 2",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

const STRUCTS: [&str; 2] = [
    "CREATE TABLE a AS SELECT 1 AS id, {'f': 5, 'g': {'h': 7}} AS s",
    "CREATE TABLE b AS SELECT 2 AS id, {'f': 5, 'g': {'h': 7}} AS s",
];

#[tokio::test]
async fn fields_of_outer_structs_are_read() {
    let cases = [
        ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.s.f = a.s.f)", "1"),
        (
            "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.s.g.h = a.s.g.h AND b.id > a.id)",
            "1",
        ),
        ("SELECT (SELECT max(id) FROM b WHERE b.s.f = a.s.f) FROM a", "2"),
        (
            "SELECT id FROM a AS o WHERE o.s.f IN (SELECT a.s.f FROM b AS a WHERE a.s.f = o.s.f)",
            "1",
        ),
        ("SELECT b.id FROM a, LATERAL (SELECT id FROM b WHERE b.s.f = a.s.f) b", "2"),
    ];
    expect_rows(&STRUCTS, &cases).await;
}

/// When this test fails, `sql::statement::outer_fields` can be removed.
#[tokio::test]
async fn stock_fields_of_outer_structs_are_still_refused() {
    let stock = SessionContext::new();
    for table in ["a", "b"] {
        let create = format!("CREATE TABLE {table} AS SELECT 1 AS id, named_struct('f', 5) AS s");
        batches(&stock, &create).await.unwrap();
    }
    let sql = "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.s.f = a.s.f)";
    let refused = error(&stock, sql).await;
    assert!(refused.contains("Nested identifiers"), "{refused}");
}

/// `t.a` is a column of an outer table `t`, unless a table of the subquery has a struct `t`.
#[tokio::test]
async fn columns_of_outer_tables_are_not_fields_of_columns_of_their_name() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 10, {'f': 5}, [7, 8]), (2, 20, NULL, NULL)) v(a, b, s, l)",
        "CREATE TABLE v AS SELECT * FROM (VALUES (1, 100), (1, NULL), (3, 300)) v(a, t)",
        "CREATE TABLE c AS SELECT 1 AS a, {'a': 7, 'z': 8} AS t",
        "CREATE VIEW vw AS SELECT a, (SELECT count(*) FROM v WHERE v.a = t.a) AS n FROM t",
        "PREPARE p AS SELECT t.a FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.a = t.a + $1)",
        "CREATE TABLE g AS SELECT a, b FROM t",
        "UPDATE g SET b = (SELECT count(*) FROM (SELECT a, t AS g FROM v) r WHERE r.a = g.a)",
        "CREATE TABLE d AS SELECT a, b FROM t",
        "DELETE FROM d WHERE EXISTS (SELECT 1 FROM (SELECT a, t AS d FROM v) r WHERE r.a = d.a)",
        "CREATE SCHEMA z",
        "CREATE TABLE z.t AS SELECT 3 AS a",
    ];
    let cases = [
        ("SELECT a, (SELECT count(*) FROM v WHERE v.a = t.a) FROM t ORDER BY a", "1 2; 2 0"),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.a = t.a)", "1"),
        ("SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.a = t.a)", "2"),
        ("SELECT a FROM t WHERE a IN (SELECT a FROM v WHERE t.b = 10)", "1"),
        ("SELECT t.a FROM t WHERE 100 = ANY (SELECT v.t FROM v WHERE v.a = t.a)", "1"),
        ("SELECT a FROM t WHERE a >= ALL (SELECT v.a FROM v WHERE v.a = t.a) ORDER BY a", "1; 2"),
        (
            "SELECT t.a, (SELECT max(v.t) FROM v WHERE v.a = t.a) FROM t AS t ORDER BY 1",
            "1 100; 2 NULL",
        ),
        (
            "SELECT a, (SELECT count(*) FROM v WHERE EXISTS (SELECT 1 FROM v AS i WHERE i.a = t.a AND i.t = v.t)) FROM t ORDER BY a",
            "1 1; 2 0",
        ),
        ("SELECT a, (SELECT count(*) FROM v WHERE v.a = t.s.f - 4) FROM t ORDER BY a", "1 2; 2 0"),
        ("SELECT a, (SELECT count(*) FROM v WHERE v.a = t.l[1] - 6) FROM t ORDER BY a", "1 2; 2 0"),
        ("WITH t AS (SELECT 3 AS a) SELECT (SELECT max(v.t) FROM v WHERE v.a = t.a) FROM t", "300"),
        ("SELECT (SELECT max(v.t) FROM v WHERE v.a = t.a) FROM z.t", "300"),
        (
            "SELECT q.n FROM t, LATERAL (SELECT count(*) AS n FROM v WHERE v.a = t.a) q ORDER BY n",
            "0; 2",
        ),
        ("SELECT a FROM vw WHERE n = 2", "1"),
        ("EXECUTE p(2)", "1"),
        ("SELECT * FROM g ORDER BY a", "1 2; 2 0"),
        ("SELECT * FROM d", "2 20"),
        // The column of the subquery has fields.
        ("SELECT (SELECT max(t.a) FROM c) FROM t", "7; 7"),
        (
            "SELECT (SELECT max(t.a) FROM c), (SELECT count(*) FROM v WHERE v.a = t.a) AS n FROM t ORDER BY n",
            "7 0; 7 2",
        ),
        ("SELECT d.z FROM t, (SELECT t.z FROM c) AS d", "8; 8"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = four();
    for sql in setup {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    let e =
        rows_or_error(&ctx, "SELECT (SELECT count(*) FROM v WHERE v.a = t.nosuch) FROM t").await;
    assert!(!e.contains("__serrate"), "{e}");
}

/// When this test fails, `sql::statement::outer_tables` can be removed.
#[tokio::test]
async fn stock_columns_of_outer_tables_are_still_read_as_fields() {
    let stock = SessionContext::new();
    for sql in ["CREATE TABLE t AS SELECT 1 AS a", "CREATE TABLE v AS SELECT 1 AS a, 2 AS t"] {
        batches(&stock, sql).await.unwrap();
    }
    let sql = "SELECT (SELECT count(*) FROM v WHERE v.a = t.a) FROM t";
    let refused = error(&stock, sql).await;
    assert!(refused.contains("Cannot access field"), "{refused}");
}

/// A name of three parts is not that of a table if its first part is not the schema of the table.
#[tokio::test]
async fn fields_of_structs_are_not_columns_of_tables_of_their_name() {
    let setup = [
        "CREATE TABLE st AS SELECT * FROM (VALUES ({'a': 1, 'l': [7]}, 5, [8]), ({'a': 3, 'l': NULL}, 6, NULL)) v(st, a, l)",
        "CREATE TABLE d AS SELECT * FROM (VALUES ({'a': 1}, 5), ({'a': 2}, 6)) v(d, a)",
        "DELETE FROM d WHERE d.d.a = 1",
        "UPDATE d SET a = d.d.a + 40",
        "CREATE VIEW sv AS SELECT st.st.a AS x FROM st",
        "PREPARE one(BIGINT) AS SELECT a FROM st WHERE st.st.a = $1",
        "CREATE SCHEMA z",
        "CREATE TABLE z.z AS SELECT {'a': 1} AS z, 5 AS a",
    ];
    let cases = [
        ("SELECT st.st.a FROM st ORDER BY 1", "1; 3"),
        ("SELECT a FROM st WHERE st.st.a = 1", "5"),
        ("SELECT st.st.l[1] FROM st ORDER BY st.st.a", "7; NULL"),
        ("SELECT sum(st.st.a) FROM st", "4"),
        (
            "SELECT st.st.a, count(*) FROM st GROUP BY st.st.a HAVING st.st.a > 1 ORDER BY st.st.a",
            "3 1",
        ),
        ("SELECT b.a FROM st JOIN st AS b ON st.st.a = b.st.a - 2", "6"),
        ("WITH c AS (SELECT st.st.a AS x FROM st) SELECT max(x) FROM c", "3"),
        ("SELECT a FROM d", "42"),
        ("SELECT x FROM sv ORDER BY x", "1; 3"),
        ("EXECUTE one(3)", "6"),
        ("SELECT t.s.a FROM (SELECT {'s': {'a': 3}} AS t, 10 AS a) AS s", "3"),
        ("SELECT s.s.t FROM (SELECT {'t': 12} AS s, {'x': 1} AS t) AS s", "12"),
        ("SELECT s.t.s.a FROM (SELECT {'s': {'a': 3}} AS t, 10 AS a) AS s", "3"),
        ("SELECT array_transform([{'st': {'l': [1]}}], v -> v.st.l[1]) FROM st LIMIT 1", "[1]"),
        ("SELECT (SELECT st.st.a FROM (SELECT {'st': {'a': 4}} AS st) AS q) FROM d", "4"),
        // The first parts are a schema.
        ("SELECT public.st.a FROM st ORDER BY 1", "5; 6"),
        ("SELECT datafusion.public.st.a FROM st ORDER BY 1", "5; 6"),
        ("SELECT public.st.st.a FROM st ORDER BY 1", "1; 3"),
        ("SELECT z.z.a FROM z.z", "5"),
        ("SELECT z.z.z.a FROM z.z", "1"),
        ("WITH t AS (SELECT {'t': {'a': 3}} AS public, 10 AS a) SELECT public.t.a FROM t", "3"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = four();
    for sql in [
        "SELECT nosuch.t.a FROM (SELECT 1 AS a) AS t",
        "SELECT (SELECT nosuch.t.a) FROM (SELECT 1 AS a) AS t",
        "SELECT public.t.a FROM (SELECT 1 AS a) AS t",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("No field named"), "{sql}: {e}");
    }
}

/// When this test fails, `access_own_fields` in `sql::statement::outer_fields` can be removed.
#[tokio::test]
async fn stock_names_are_still_read_without_their_schema() {
    let stock = SessionContext::new();
    batches(&stock, "CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    assert!(batches(&stock, "SELECT nosuch.t.a FROM t").await.is_ok());
}

const LATER_TYPES: [(&str, &str); 16] = [
    (
        "SELECT c, (SELECT sum(y * l.c) FROM (VALUES (1::BIGINT)) q(y)) FROM (SELECT 2::INT AS c UNION ALL SELECT 300.5) l ORDER BY c",
        "2.0 2.0; 300.5 300.5",
    ),
    (
        "SELECT i FROM (SELECT 1::INT AS i UNION ALL SELECT 2.5) l WHERE EXISTS (SELECT 1 FROM range(1, 4) r(k) WHERE k = l.i)",
        "1.0",
    ),
    (
        "SELECT (SELECT sum(v) FROM unnest(l.c) u(v)) AS s FROM (SELECT [2::INT] AS c UNION ALL SELECT [300.5]) l ORDER BY s",
        "2.0; 300.5",
    ),
    (
        "SELECT (SELECT sum(y * l.c) FROM (VALUES (1::BIGINT)) q(y)) FROM (SELECT CASE WHEN i = 1 THEN 2::INT ELSE 300.5 END AS c FROM (VALUES (1), (2)) t(i)) l ORDER BY 1",
        "2.0; 300.5",
    ),
    (
        "SELECT EXISTS (SELECT 1 FROM (VALUES (2::BIGINT)) q(y) WHERE y = c) AS e FROM (SELECT NULL AS c UNION ALL SELECT 2.5::DOUBLE) l",
        "false; false",
    ),
    (
        "SELECT (SELECT max(x) FROM (VALUES (0), (400)) q(x) WHERE x <= l.c) AS m FROM (SELECT 2 AS c UNION ALL SELECT 400.5) l ORDER BY m",
        "0; 400",
    ),
    (
        "SELECT x FROM (SELECT 2 AS c UNION ALL SELECT 300.5) l, LATERAL (SELECT l.c + 1 AS x) ORDER BY x",
        "3.0; 301.5",
    ),
    (
        "SELECT v FROM (SELECT [2] AS c UNION ALL SELECT [300.5]) l, unnest(l.c) u(v) ORDER BY v",
        "2.0; 300.5",
    ),
    (
        "WITH l AS (SELECT 2::INT AS c UNION ALL SELECT 300.5) SELECT (SELECT sum(y * l.c) FROM (VALUES (1::BIGINT)) q(y)) FROM l ORDER BY 1",
        "2.0; 300.5",
    ),
    ("SELECT len(c) FROM (SELECT NULL AS c UNION ALL SELECT [1, 2]) ORDER BY 1", "2; NULL"),
    (
        "SELECT len(v) FROM (SELECT unnest(c) AS v FROM (SELECT [] AS c UNION ALL SELECT [[1, 2]]))",
        "2",
    ),
    (
        "SELECT c + INTERVAL '1 hour' FROM (SELECT NULL AS c UNION ALL SELECT DATE '2020-01-03') ORDER BY 1",
        "2020-01-03T01:00:00; NULL",
    ),
    (
        "SELECT c > 1, upper(c::VARCHAR) FROM (SELECT NULL AS c UNION ALL SELECT 3) ORDER BY 1",
        "true 3; NULL NULL",
    ),
    (
        "SELECT ragged_map(x, v -> v + 1) FROM (SELECT [2] AS x UNION ALL SELECT [2.5]) ORDER BY 1",
        "[3.0]; [3.5]",
    ),
    (
        "SELECT list_transform(x, lambda v: v + 1) FROM (SELECT CASE WHEN true THEN [2] ELSE [300.5] END AS x)",
        "[3.0]",
    ),
    (
        "SELECT a.c, b.c FROM (SELECT 1 AS c UNION ALL SELECT 2.5) a JOIN (SELECT 1::BIGINT AS c UNION ALL SELECT 3) b ON a.c = b.c",
        "1.0 1",
    ),
];

#[tokio::test]
async fn columns_have_their_final_types_while_a_statement_is_planned() {
    expect_rows(&[], &LATER_TYPES).await;
}

/// When this test fails, `sql::workarounds::relation_types` can be removed.
#[tokio::test]
async fn stock_outer_columns_still_have_earlier_types() {
    let stock = SessionContext::new();
    let sql = "SELECT (SELECT sum(y * l.c) FROM (SELECT 1 AS y) q) AS s FROM (SELECT arrow_cast(2, 'Int32') AS c UNION ALL SELECT 300.5) l ORDER BY s";
    assert_ne!(rows_or_error(&stock, sql).await, "2.0; 300.5");
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

#[tokio::test]
async fn limited_queries_select_queries() {
    let setup = [
        "CREATE TABLE qa AS SELECT * FROM (VALUES (1), (2)) v(id)",
        "CREATE TABLE qb AS SELECT * FROM (VALUES (1, 10), (3, 30)) v(id, k)",
        "CREATE TABLE qc AS SELECT * FROM (VALUES (1), (2)) v(id)",
    ];
    let cases = [
        (
            "SELECT qa.id, (SELECT (SELECT max(qc.id) FROM qc WHERE qc.id <= qa.id + qb.id) FROM qb WHERE qb.id = qa.id LIMIT 1) FROM qa ORDER BY 1",
            "1 2; 2 NULL",
        ),
        (
            "SELECT qa.id, (SELECT (SELECT max(qc.id) FROM qc WHERE qc.id <= qa.id) FROM qb WHERE qb.id >= qa.id LIMIT 1) FROM qa ORDER BY 1",
            "1 1; 2 2",
        ),
        (
            "SELECT qa.id, (SELECT x FROM (SELECT (SELECT max(qc.id) FROM qc WHERE qc.id <= qa.id + qb.id) AS x FROM qb WHERE qb.id = qa.id) q LIMIT 1) FROM qa ORDER BY 1",
            "1 2; 2 NULL",
        ),
        (
            "SELECT qa.id, (SELECT (SELECT max(qc.id) FROM qc WHERE qc.id < qb.id + qa.id - qa.id) FROM qb WHERE qb.id >= qa.id ORDER BY k DESC LIMIT 1) FROM qa ORDER BY 1",
            "1 2; 2 2",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

const REPEATED: [&str; 2] = [
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 20, 'x'), (2, 30, 'y'), (NULL, 10, 'x'), (3, NULL, NULL), (2, 20, 'y')) v(a, b, c)",
    "CREATE TABLE u AS SELECT * FROM (VALUES (1, 50, 'x'), (2, 20, 'y'), (3, 70, 'x'), (3, 10, NULL)) v(a, b, c)",
];

/// The subqueries in FROM have no alias, and `t.a` is a column of another table `t`.
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
        // The statement itself uses the name that the subquery gets.
        (
            "SELECT a, unnamed_subquery.b FROM t unnamed_subquery WHERE (SELECT count(*) FROM (SELECT a FROM t unnamed_subquery) WHERE a > unnamed_subquery.a) = 1 ORDER BY 1, 2",
            "2 20; 2 30",
        ),
        // No other table has the name `t`. DuckDB rejects this name.
        ("SELECT t.a FROM (SELECT a FROM t) ORDER BY 1", "1; 2; 2; 3; NULL"),
        ("SELECT count(*) FROM u JOIN (SELECT t.a FROM (SELECT a FROM t)) t ON u.a = t.a", "5"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn subqueries_in_from_have_tables_of_the_same_name_beside_them() {
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
async fn changes_compare_with_the_changed_table() {
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
async fn headings_and_errors_omit_generated_names_of_subqueries() {
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

/// When this test fails, `sql::statement::unnamed_queries` can be removed.
#[tokio::test]
async fn stock_subqueries_still_keep_the_names_of_their_tables() {
    let stock = SessionContext::new();
    batches(&stock, "CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    assert_eq!(ints(&stock, "SELECT t.a FROM (SELECT a FROM t)").await, [1]);
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
async fn lateral_queries_read_several_columns_of_one_name() {
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

/// The conditions of these LATERAL queries are below an alias, or a table has the name of an outer table.
#[tokio::test]
async fn lateral_queries_name_their_tables_as_they_like() {
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
async fn volatile_lateral_queries_read_one_column_of_each_name() {
    let ctx = serrate::sql::session();
    for sql in SAME_NAMES {
        batches(&ctx, sql).await.unwrap();
    }
    let volatile = SELF_JOIN.replace("s.c AS x", "s.c AS x, random() AS y");
    let found = rows_or_error(&ctx, &format!("SELECT r.a, l.x, l.y FROM u r, {volatile}")).await;
    assert!(found.contains("another column named a"), "{found}");
}

/// When this test fails, `MovedColumns::find_clash` of `sql::workarounds::correlated` can be removed.
#[tokio::test]
async fn stock_lateral_self_joins_still_lose_rows() {
    let stock = SessionContext::new();
    for sql in &SAME_NAMES[..2] {
        batches(&stock, sql).await.unwrap();
    }
    let sql = format!("SELECT r.a FROM u r, {SELF_JOIN} ORDER BY r.a");
    assert_ne!(rows_or_error(&stock, &sql).await, "1; 2; 2; 2; 2");
}

/// The columns of the left side of a LATERAL join are no outer columns of the query around the join.
#[tokio::test]
async fn subqueries_contain_left_lateral_joins() {
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

const GROUPED: [&str; 2] = [
    "CREATE TABLE g AS SELECT * FROM (VALUES (1, 1), (1, 2), (2, 1), (6, 5)) v(x, y)",
    "CREATE TABLE z AS SELECT * FROM (VALUES (2), (7)) v(i)",
];

#[tokio::test]
async fn subqueries_above_groups_name_computed_keys() {
    let cases = [
        (
            "SELECT x + 1, count(*) FROM g GROUP BY x + 1 HAVING EXISTS (SELECT 1 FROM z WHERE z.i = g.x + 1) ORDER BY 1",
            "2 2; 7 1",
        ),
        (
            "SELECT x + 1 AS k, (SELECT count(*) FROM z WHERE z.i < g.x + 1) AS n FROM g GROUP BY k ORDER BY k",
            "2 0; 3 1; 7 1",
        ),
        (
            "SELECT y, x + 1 AS k FROM g GROUP BY ROLLUP (y, x + 1) HAVING EXISTS (SELECT 1 FROM z WHERE z.i = g.x + 1) ORDER BY y, k",
            "1 2; 2 2; 5 7",
        ),
        // The inner table `g` hides the outer one.
        (
            "SELECT x + 1 AS k FROM g GROUP BY x + 1 HAVING EXISTS (SELECT 1 FROM g WHERE g.x + 1 = 7) ORDER BY k",
            "2; 3; 7",
        ),
        (
            "SELECT x + 1 AS k FROM g GROUP BY x + 1 HAVING EXISTS (SELECT 1 FROM g WHERE EXISTS (SELECT 1 FROM z WHERE z.i = g.x + 1 AND z.i = 7)) ORDER BY k",
            "2; 3; 7",
        ),
    ];
    expect_rows(&GROUPED, &cases).await;
}

#[tokio::test]
async fn stock_computed_keys_are_still_no_outer_columns() {
    let ctx = SessionContext::new();
    for sql in GROUPED {
        batches(&ctx, sql).await.unwrap();
    }
    let sql =
        "SELECT x + 1 FROM g GROUP BY x + 1 HAVING EXISTS (SELECT 1 FROM z WHERE z.i = g.x + 1)";
    let e = error(&ctx, sql).await;
    assert!(e.contains("g.x"), "{e}");
}
