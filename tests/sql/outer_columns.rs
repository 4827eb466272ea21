//! Columns of outer queries in subqueries: their names, fields and types.

use super::*;

#[tokio::test]
async fn derived_tables_keep_the_names_of_outer_columns() {
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

#[tokio::test]
async fn unnest_reads_fields_of_the_tables_before_it() {
    let setup = [
        "CREATE TABLE p AS SELECT * FROM (VALUES (1, [{'t': 5, 'codes': [{'c': 'a', 'n': [7]}, {'c': 'b', 'n': [8, 9]}]}, {'t': 6, 'codes': [{'c': 'd', 'n': []}]}]), (2, NULL)) x(id, v)",
        "CREATE TABLE q AS SELECT 3 AS id, {'l': [1, 2]} AS s",
    ];
    let cases = [
        (
            "SELECT id, s.t, k.c FROM p, unnest(p.v) AS u(s), unnest(s.codes) AS codes(k) ORDER BY s.t, k.c",
            "1 5 a; 1 5 b; 1 6 d",
        ),
        ("SELECT k.c FROM p, unnest(v) u(s), unnest(u.s.codes) w(k) ORDER BY 1", "a; b; d"),
        (
            "SELECT n FROM p, unnest(v) u(s), unnest(s.codes) w(k), unnest(k.n) z(n) ORDER BY 1",
            "7; 8; 9",
        ),
        (
            "SELECT id, (SELECT max(k.c) FROM unnest(p.v) u(s), unnest(s.codes) w(k)) FROM p ORDER BY id",
            "1 d; 2 NULL",
        ),
        ("SELECT id, a FROM q, unnest(q.s.l) w(a) ORDER BY a", "3 1; 3 2"),
        ("SELECT a FROM p, unnest([p.id]) u(p1), unnest([u.p1]) w(a) ORDER BY a", "1; 2"),
    ];
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `sql::statement::names::outer_fields` can be removed.
#[tokio::test]
async fn stock_fields_of_outer_structs_are_still_refused() {
    let stock = SessionContext::new();
    for table in ["a", "b"] {
        let create = format!("CREATE TABLE {table} AS SELECT 1 AS id, named_struct('f', 5) AS s");
        stock_batches(&stock, &create).await.unwrap();
    }
    let sql = "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.s.f = a.s.f)";
    let refused = stock_error(&stock, sql).await;
    assert!(refused.contains("Nested identifiers"), "{refused}");
}

/// `t.a` in a subquery is a column of the outer table `t`, unless a table of the subquery has a
/// struct column `t`.
#[tokio::test]
async fn qualified_outer_columns_are_not_read_as_struct_fields() {
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
        // Table `c` of the subquery has a struct column `t`, so `t.a` is its field.
        ("SELECT (SELECT max(t.a) FROM c) FROM t", "7; 7"),
        (
            "SELECT (SELECT max(t.a) FROM c), (SELECT count(*) FROM v WHERE v.a = t.a) AS n FROM t ORDER BY n",
            "7 0; 7 2",
        ),
        ("SELECT d.z FROM t, (SELECT t.z FROM c) AS d", "8; 8"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = create_parallel_session();
    for sql in setup {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    let e =
        rows_or_error(&ctx, "SELECT (SELECT count(*) FROM v WHERE v.a = t.nosuch) FROM t").await;
    assert!(!e.contains("__serrate"), "{e}");
}

/// When this test fails, `sql::statement::names::outer_tables` can be removed.
#[tokio::test]
async fn stock_columns_of_outer_tables_are_still_read_as_fields() {
    let stock = SessionContext::new();
    for sql in ["CREATE TABLE t AS SELECT 1 AS a", "CREATE TABLE v AS SELECT 1 AS a, 2 AS t"] {
        stock_batches(&stock, sql).await.unwrap();
    }
    let sql = "SELECT (SELECT count(*) FROM v WHERE v.a = t.a) FROM t";
    let refused = stock_error(&stock, sql).await;
    assert!(refused.contains("Cannot access field"), "{refused}");
}

/// `x.y.z` is not the column `z` of the table `y` if `x` is not the schema of the table.
#[tokio::test]
async fn struct_fields_are_not_read_as_qualified_columns() {
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
        // These names begin with a schema.
        ("SELECT public.st.a FROM st ORDER BY 1", "5; 6"),
        ("SELECT datafusion.public.st.a FROM st ORDER BY 1", "5; 6"),
        ("SELECT public.st.st.a FROM st ORDER BY 1", "1; 3"),
        ("SELECT z.z.a FROM z.z", "5"),
        ("SELECT z.z.z.a FROM z.z", "1"),
        ("WITH t AS (SELECT {'t': {'a': 3}} AS public, 10 AS a) SELECT public.t.a FROM t", "3"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = create_parallel_session();
    for sql in [
        "SELECT nosuch.t.a FROM (SELECT 1 AS a) AS t",
        "SELECT (SELECT nosuch.t.a) FROM (SELECT 1 AS a) AS t",
        "SELECT public.t.a FROM (SELECT 1 AS a) AS t",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("No field named"), "{sql}: {e}");
    }
}

/// When this test fails, `access_own_fields` in `sql::statement::names::outer_fields` can be
/// removed.
#[tokio::test]
async fn stock_names_are_still_read_without_their_schema() {
    let stock = SessionContext::new();
    stock_batches(&stock, "CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    assert!(stock_batches(&stock, "SELECT nosuch.t.a FROM t").await.is_ok());
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
async fn columns_have_their_final_types_during_planning() {
    expect_rows(&[], &LATER_TYPES).await;
}

/// When this test fails, `sql::from::relation_types` can be removed.
#[tokio::test]
async fn stock_outer_columns_still_have_earlier_types() {
    let stock = SessionContext::new();
    let sql = "SELECT (SELECT sum(y * l.c) FROM (SELECT 1 AS y) q) AS s FROM (SELECT arrow_cast(2, 'Int32') AS c UNION ALL SELECT 300.5) l ORDER BY s";
    assert_ne!(rows_or_error(&stock, sql).await, "2.0; 300.5");
}
