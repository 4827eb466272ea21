//! Conditions with subqueries, compared with three-valued logic that the tests compute.

use super::*;

/// The columns `k` and `b` of the table `a`, in the order of its column `row`.
const ROWS: [(Option<i64>, Option<bool>); 6] = [
    (Some(1), Some(true)),
    (Some(2), Some(false)),
    (Some(5), None),
    (None, Some(true)),
    (None, Some(false)),
    (None, None),
];

/// The tables `e` (without NULL), `n` (with NULL) and `z` (without rows), with their ids.
const SETS: [(&str, &[Option<i64>]); 3] =
    [("e", &[Some(1), Some(5)]), ("n", &[Some(1), None]), ("z", &[])];

async fn with_tables(partitions: usize) -> SessionContext {
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
    let tables = [
        "CREATE TABLE a AS SELECT * FROM (VALUES (1, 1, true), (2, 2, false), (3, 5, NULL),
            (4, NULL, true), (5, NULL, false), (6, NULL, NULL)) v(row, k, b)",
        "CREATE TABLE e AS SELECT * FROM (VALUES (1), (5)) v(id)",
        "CREATE TABLE n AS SELECT * FROM (VALUES (1), (NULL)) v(id)",
        "CREATE TABLE z AS SELECT id FROM e WHERE id > 9",
    ];
    run_all(&ctx, &tables).await;
    ctx
}

async fn query_chosen_rows(ctx: &SessionContext, condition: &str) -> Vec<i64> {
    let sql = format!("SELECT row FROM a WHERE {condition} ORDER BY row");
    query_ints(ctx, &sql).await
}

type Row = (Option<i64>, Option<bool>);

/// Returns `a AND b` in three-valued logic.
fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(a: Option<bool>) -> Option<bool> {
    a.map(|a| !a)
}

fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    not(and(not(a), not(b)))
}

fn is_in(x: Option<i64>, values: impl Iterator<Item = Option<i64>>) -> Option<bool> {
    let mut found = Some(false);
    for y in values {
        found = or(found, x.zip(y).map(|(x, y)| x == y));
    }
    found
}

#[tokio::test]
async fn in_is_three_valued_in_every_position() {
    type Left = fn(Row) -> Option<i64>;
    type Kept = fn(Row, Option<i64>) -> Option<bool>;
    type Place = fn(Row, Option<bool>) -> Option<bool>;
    let lefts: [(&str, Left); 4] = [
        ("k", |row| row.0),
        ("k - 1", |row| row.0.map(|k| k - 1)),
        ("7", |_| Some(7)),
        ("NULL::INT", |_| None),
    ];
    let wheres: [(&str, Kept); 6] = [
        ("true", |_, _| Some(true)),
        ("a.b", |row, _| row.1),
        ("id > a.k", |row, id| id.zip(row.0).map(|(id, k)| id > k)),
        ("id = a.k", |row, id| id.zip(row.0).map(|(id, k)| id == k)),
        ("id IS NOT NULL OR a.b", |row, id| or(Some(id.is_some()), row.1)),
        ("id IS NOT DISTINCT FROM a.k AND NOT a.b", |row, id| and(Some(id == row.0), not(row.1))),
    ];
    let places: [(&str, Place); 12] = [
        ("{in}", |_, v| v),
        ("NOT {in}", |_, v| not(v)),
        ("{not in}", |_, v| not(v)),
        ("NOT {not in}", |_, v| v),
        ("{in} OR b", |row, v| or(v, row.1)),
        ("{not in} OR b", |row, v| or(not(v), row.1)),
        ("NOT ({in} OR b)", |row, v| not(or(v, row.1))),
        ("NOT ({not in} AND b)", |row, v| not(and(not(v), row.1))),
        ("{in} IS NULL", |_, v| Some(v.is_none())),
        ("({not in}) IS NOT TRUE", |_, v| Some(not(v) != Some(true))),
        ("CASE WHEN {not in} THEN b ELSE true END", |row, v| {
            if v == Some(false) { row.1 } else { Some(true) }
        }),
        ("({in}) = b", |row, v| v.zip(row.1).map(|(v, b)| v == b)),
    ];
    let ctx = with_tables(4).await;
    for (l, (left, x)) in lefts.iter().enumerate() {
        for (t, (table, ids)) in SETS.iter().enumerate() {
            for (c, (condition, keeps)) in wheres.iter().enumerate() {
                let query = format!("(SELECT id FROM {table} WHERE {condition})");
                // Tests half of the combinations, and each place with each left side, table and
                // condition.
                for (place, asked) in places.iter().skip((l + t + c) % 2).step_by(2) {
                    let sql = place
                        .replace("{in}", &format!("{left} IN {query}"))
                        .replace("{not in}", &format!("{left} NOT IN {query}"));
                    let right: Vec<i64> = (1..)
                        .zip(ROWS)
                        .filter(|(_, row)| {
                            let found =
                                ids.iter().copied().filter(|id| keeps(*row, *id) == Some(true));
                            asked(*row, is_in(x(*row), found)) == Some(true)
                        })
                        .map(|(number, _)| number)
                        .collect();
                    assert_eq!(query_chosen_rows(&ctx, &sql).await, right, "{sql}");
                }
            }
        }
    }
}

/// An aggregate without GROUP BY has a row for each outer row, also if no row matches.
#[tokio::test]
async fn correlated_aggregates_have_a_row_without_matches() {
    let ctx = with_tables(2).await;
    for (condition, right) in [
        ("0 IN (SELECT count(*) FROM e WHERE e.id = a.k)", vec![2, 4, 5, 6]),
        ("0 NOT IN (SELECT count(*) FROM e WHERE e.id = a.k)", vec![1, 3]),
        ("k NOT IN (SELECT max(id) FROM e WHERE e.id = a.k)", vec![]),
        ("(5 NOT IN (SELECT max(id) FROM e WHERE e.id = a.k)) IS NULL", vec![2, 4, 5, 6]),
        ("EXISTS (SELECT count(*) FROM e WHERE e.id = a.k)", vec![1, 2, 3, 4, 5, 6]),
        ("NOT EXISTS (SELECT max(id) FROM e WHERE e.id = a.k) OR b", vec![1, 4]),
    ] {
        assert_eq!(query_chosen_rows(&ctx, condition).await, right, "{condition}");
    }
}

/// DataFusion would move a condition on outer columns above LIMIT, OFFSET, DISTINCT and windows.
#[tokio::test]
async fn correlated_conditions_stay_below_limits_and_windows() {
    let ctx = with_tables(2).await;
    for (condition, right) in [
        ("EXISTS (SELECT 1 FROM e WHERE e.id >= a.k OFFSET 1)", vec![1]),
        (
            "EXISTS (SELECT 1 FROM (SELECT id FROM e WHERE e.id >= a.k ORDER BY id LIMIT 1) s WHERE id = 5)",
            vec![2, 3],
        ),
        ("k NOT IN (SELECT id FROM e WHERE e.id >= a.k ORDER BY id LIMIT 1)", vec![2, 4, 5, 6]),
        (
            "EXISTS (SELECT 1 FROM (SELECT row_number() OVER () AS i FROM e WHERE e.id >= a.k) s WHERE i = 2)",
            vec![1],
        ),
        ("k IN (SELECT row_number() OVER (ORDER BY id) FROM e WHERE e.id >= a.k)", vec![1]),
        ("EXISTS (SELECT 1 FROM e WHERE e.id = a.k HAVING count(*) = 0)", vec![2, 4, 5, 6]),
        (
            "EXISTS (SELECT 1 FROM n LEFT JOIN (SELECT id FROM e WHERE e.id = a.k) s ON true WHERE s.id IS NULL)",
            vec![2, 4, 5, 6],
        ),
        (
            "EXISTS (SELECT 1 FROM (SELECT id FROM e WHERE e.id = a.k) s RIGHT JOIN n ON true WHERE s.id IS NULL)",
            vec![2, 4, 5, 6],
        ),
        (
            "EXISTS (SELECT 1 FROM (SELECT id FROM e WHERE e.id <> a.k) s JOIN (SELECT id FROM n WHERE n.id < a.k) u ON s.id <> u.id)",
            vec![2],
        ),
        ("k IN (SELECT id FROM e WHERE e.id = a.k UNION ALL SELECT 2)", vec![1, 2, 3]),
        ("EXISTS (SELECT id FROM e WHERE e.id = a.k UNION SELECT id FROM z)", vec![1, 3]),
        ("EXISTS (SELECT id FROM e WHERE e.id > a.k GROUP BY id HAVING count(*) = 1)", vec![1, 2]),
        (
            "EXISTS (SELECT 1 FROM e WHERE EXISTS (SELECT 1 FROM n WHERE n.id <> a.k AND n.id = e.id))",
            vec![2, 3],
        ),
        (
            "(SELECT count(*) FROM e WHERE id >= (SELECT max(id) FROM n WHERE n.id <= a.k)) = 2",
            vec![1, 2, 3],
        ),
        (
            "(SELECT count(*) FROM e WHERE id > (SELECT max(id) FROM n WHERE n.id = a.k)) = 1",
            vec![1],
        ),
        ("EXISTS (SELECT 1 FROM e WHERE e.id > a.k LIMIT 1)", vec![1, 2]),
        ("k IN (SELECT id FROM e ORDER BY id DESC LIMIT 1)", vec![3]),
        ("k NOT IN (SELECT id FROM e ORDER BY id DESC LIMIT 1)", vec![1, 2]),
        ("k NOT IN (SELECT max(id) FROM e GROUP BY id % 2)", vec![1, 2]),
    ] {
        assert_eq!(query_chosen_rows(&ctx, condition).await, right, "{condition}");
    }
}

/// ROLLUP of no rows has a row, which DataFusion omits if the query has a correlated condition.
#[tokio::test]
async fn correlated_grouping_sets_are_refused() {
    let ctx = with_tables(2).await;
    for sql in [
        "SELECT row FROM a WHERE EXISTS (SELECT id FROM e WHERE e.id = a.k GROUP BY ROLLUP(id))",
        "SELECT row FROM a WHERE k IN (SELECT max(id) FROM e WHERE e.id = a.k GROUP BY CUBE(id))",
        "SELECT row, (SELECT count(*) FROM e WHERE e.id = a.k GROUP BY GROUPING SETS (())) FROM a",
        "SELECT row, n FROM a, LATERAL (SELECT count(*) AS n FROM e WHERE e.id = a.k GROUP BY ROLLUP(id)) s",
    ] {
        let refused = match serrate::sql::sql(&ctx, sql).await {
            Ok(frame) => frame.collect().await.map(|_| ()).expect_err(sql),
            Err(e) => e,
        };
        let refused = refused.strip_backtrace();
        assert!(refused.contains("GROUPING SETS after a condition"), "{sql}\n{refused}");
    }
}

/// When this test fails, try all assertions above without `serrate_three_valued_in`; if they pass,
/// remove it.
#[tokio::test]
async fn stock_in_is_still_two_valued() {
    let ctx = SessionContext::new();
    let sql = "SELECT count(*) FROM (VALUES (1), (2)) a(k) WHERE 7 NOT IN (SELECT id FROM (VALUES (1), (NULL)) n(id))";
    assert_eq!(stock_one(&ctx, sql).await, 2);
    let sql = "SELECT count(*) FROM (VALUES (1), (2)) a(k) WHERE k NOT IN (SELECT id FROM (VALUES (1), (NULL)) n(id)) OR k < 0";
    assert_eq!(stock_one(&ctx, sql).await, 1);
}

/// FROM of a subquery may unnest lists of the outer row. DuckDB and PostgreSQL return these rows.
#[tokio::test]
async fn lists_of_outer_rows_are_unnested() {
    let ctx = serrate::sql::session();
    for sql in [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, [1, 2], 7), (2, [], 8), (3, NULL, 9),
             (4, [5, NULL], 1)) AS v(id, xs, x)",
        "CREATE TABLE s AS SELECT id, [[id, 1], [], [NULL]] AS xx FROM t WHERE id < 3",
    ] {
        query_batches(&ctx, sql).await.unwrap();
    }
    for (sql, expected) in [
        ("SELECT t.id * 10 + coalesce(u.y, 0) FROM t, unnest(t.xs) AS u(y)", vec![11, 12, 45, 40]),
        ("SELECT t.x * 10 + u.x FROM t CROSS JOIN unnest(t.xs) AS u(x) WHERE u.x > 1", vec![72, 15]),
        ("SELECT t.id * 10 + u.y FROM t JOIN unnest(t.xs) AS u(y) ON u.y > t.id", vec![12, 45]),
        (
            "SELECT t.id * 10 + coalesce(u.y, 0) FROM t LEFT JOIN unnest(t.xs) AS u(y) ON true",
            vec![11, 12, 20, 30, 45, 40],
        ),
        (
            "SELECT t.id * 10 + coalesce(u.y, 0) FROM t LEFT JOIN unnest(t.xs) AS u(y) ON u.y < 3
             ORDER BY 1",
            vec![11, 12, 20, 30, 40],
        ),
        ("SELECT u.y FROM t, LATERAL (SELECT unnest(t.xs) + t.id AS y) AS u WHERE u.y > 2", vec![3, 9]),
        ("SELECT u.* FROM t, LATERAL (SELECT t.id + 1 AS y) AS u", vec![2, 3, 4, 5]),
        ("SELECT (SELECT count(y) FROM unnest(t.xs) AS u(y)) FROM t ORDER BY id", vec![2, 0, 0, 1]),
        ("SELECT coalesce((SELECT sum(y) FROM unnest(t.xs) AS u(y)), 0) FROM t ORDER BY id", vec![3, 0, 0, 5]),
        ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM unnest(t.xs) AS u(y) WHERE y > 1) ORDER BY 1", vec![1, 4]),
        ("SELECT id FROM t WHERE 2 IN (SELECT unnest(t.xs))", vec![1]),
        ("SELECT id FROM t WHERE 2 NOT IN (SELECT unnest(t.xs)) ORDER BY 1", vec![2, 3]),
        ("SELECT id FROM t WHERE 2 > ALL (SELECT unnest(t.xs)) ORDER BY 1", vec![2, 3]),
        (
            "SELECT t.id * 10 + a.id FROM t CROSS JOIN unnest(t.xs) AS u(y) JOIN t AS a ON a.id = u.y
             ORDER BY 1",
            vec![11, 12],
        ),
        (
            "SELECT s.id * 10 + coalesce(y, 0) FROM s, unnest(s.xx) AS u(x), unnest(u.x) AS w(y)",
            vec![11, 11, 10, 22, 21, 20],
        ),
        (
            "SELECT (SELECT max(z) FROM (SELECT y * 2 AS z FROM unnest(t.xs) AS u(y) ORDER BY y LIMIT 1))
             FROM t WHERE id IN (1, 4) ORDER BY id",
            vec![2, 10],
        ),
    ] {
        assert_eq!(query_ints(&ctx, sql).await, expected, "{sql}");
    }
    let sql = "SELECT t.id FROM t RIGHT JOIN LATERAL (SELECT unnest(t.xs) AS y) AS u ON true";
    let e = serrate::sql::sql(&ctx, sql).await.unwrap_err().to_string();
    assert!(e.contains("LATERAL"), "{e}");
}

/// When this test fails, `refuse_outer_lists` and the arm for `unnest` in `correlated` can be
/// removed.
#[tokio::test]
async fn stock_lists_of_outer_rows_still_fail() {
    let ctx = SessionContext::new();
    let sql = "SELECT t.id, u.y FROM (SELECT 1 AS id, [1, 2] AS xs) AS t, unnest(t.xs) AS u(y)";
    assert!(stock_batches(&ctx, sql).await.is_err());
}

const SELF: &str = "CREATE TABLE a AS
    SELECT * FROM (VALUES (1, 10, 5), (2, 20, 6), (3, 30, 7), (4, 10, 8)) AS v(id, d, k)";

/// Tables and columns of a correlated query may have the names of outer ones. DuckDB returns these
/// rows.
#[tokio::test]
async fn correlated_queries_distinguish_columns_of_the_same_name() {
    let ctx = serrate::sql::session();
    query_batches(&ctx, SELF).await.unwrap();
    for (sql, expected) in [
        (
            "SELECT id FROM a r1 WHERE EXISTS (SELECT 1 FROM a r2 CROSS JOIN a r3
                WHERE r2.d + r3.d = r1.d + 10 AND r2.id < r3.id) ORDER BY id",
            vec![1, 2, 3, 4],
        ),
        (
            "SELECT id FROM a r1 WHERE id IN (SELECT r2.id FROM a r2 CROSS JOIN a r3
                WHERE r3.id = r1.id + 1) ORDER BY id",
            vec![1, 2, 3],
        ),
        (
            "SELECT id FROM a r1 WHERE id NOT IN (SELECT r2.id FROM a r2 CROSS JOIN a r3
                WHERE r3.id = r1.id + 1 AND r2.id = r3.id - 1) ORDER BY id",
            vec![4],
        ),
        (
            "SELECT id FROM a r1 WHERE id IN (SELECT k FROM
                (SELECT r2.id AS k FROM a r2 WHERE r2.k = r1.k) q) ORDER BY id",
            vec![1, 2, 3, 4],
        ),
        (
            "SELECT id FROM a r1 WHERE id + 4 IN (SELECT q.id FROM
                (SELECT r2.k AS id FROM a r2 WHERE r2.id = r1.id) q) ORDER BY id",
            vec![1, 2, 3, 4],
        ),
        ("SELECT (SELECT max(r2.id) AS d FROM a r2 WHERE r2.d = r1.d) FROM a r1 ORDER BY id", vec![4, 2, 3, 4]),
        (
            "SELECT (SELECT count(*) FROM a r2 CROSS JOIN a r3 WHERE r2.d = r1.d AND r3.d = r1.id * 10)
             FROM a r1 ORDER BY id",
            vec![4, 1, 1, 0],
        ),
    ] {
        assert_eq!(query_ints(&ctx, sql).await, expected, "{sql}");
    }
}

/// When this test fails, `has_name_clash` of `sql::workarounds::subqueries::correlated` can be
/// removed.
#[tokio::test]
async fn stock_correlated_self_joins_still_lose_rows() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, SELF).await.unwrap();
    let sql = "SELECT count(*) FROM a r1 WHERE EXISTS (SELECT 1 FROM a r2 CROSS JOIN a r3
        WHERE r2.d + r3.d = r1.d + 10 AND r2.id < r3.id)";
    let found = stock_batches(&ctx, sql).await;
    assert!(found.is_err() || stock_one(&ctx, sql).await != 4);
}

/// The outer query and the query after ALL or ANY read the same table, so their columns have the
/// same name.
#[tokio::test]
async fn any_and_all_may_read_the_outer_table() {
    let ctx = serrate::sql::session();
    query_batches(&ctx, "CREATE TABLE same AS SELECT * FROM (VALUES (1), (5), (3)) AS v(x)")
        .await
        .unwrap();
    let kept: [(&str, &[i64]); 8] = [
        ("x >= ALL (SELECT x FROM same)", &[5]),
        ("x > ALL (SELECT x - 2 FROM same WHERE x > 2)", &[5]),
        ("x + 1 = ANY (SELECT x - 1 FROM same)", &[1, 3]),
        ("x < ANY (SELECT x FROM same)", &[1, 3]),
        ("NOT (x < ANY (SELECT x FROM same))", &[5]),
        ("x > ALL (SELECT x FROM same WHERE x < 3) OR x = 1", &[1, 3, 5]),
        ("x <> ALL (SELECT x FROM same WHERE x > ANY (SELECT x FROM same))", &[1]),
        ("x NOT IN (SELECT x FROM same WHERE x > 2)", &[1]),
    ];
    for (condition, expected) in kept {
        let query = format!("SELECT x FROM same WHERE {condition} ORDER BY x");
        assert_eq!(query_ints(&ctx, &query).await, expected, "{condition}");
        let having = format!("SELECT x FROM same GROUP BY x HAVING {condition} ORDER BY x");
        assert_eq!(query_ints(&ctx, &having).await, expected, "{condition}");
    }
    let correlated = "SELECT same.x FROM same JOIN (VALUES (1), (3)) AS u(k) ON same.x >= u.k
        WHERE same.x >= ALL (SELECT x FROM same WHERE x <> u.k AND x < 5) ORDER BY 1";
    assert_eq!(query_ints(&ctx, correlated).await, [3, 3, 5, 5]);
    let aliased =
        correlated.replace("SELECT x FROM same WHERE x", "SELECT i.x FROM same AS i WHERE i.x");
    let aliased = aliased.replace("AND x < 5", "AND i.x < 5");
    assert_eq!(query_ints(&ctx, &aliased).await, [3, 3, 5, 5]);
}

/// Tables for statements in which a column has the same name as a column of the outer query. `{d}`
/// and `{n}` in a statement of [`expect_in_named`] stand for queries whose columns belong to no
/// table.
const NAMED: [&str; 3] = [
    "CREATE TABLE t(g INT, x INT) AS VALUES (1, 1), (2, 5), (3, 9)",
    "CREATE TABLE u(h INT, s INT) AS VALUES (1, 1), (2, 5), (3, 9), (NULL, 12)",
    "CREATE TABLE n(x INT) AS VALUES (5), (NULL)",
];

async fn expect_in_named(changes: &[&str], cases: &[(&str, &str)]) {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("t.parquet"));
    let copy = ["COPY t TO '{file}' OPTIONS (overwrite true)"];
    let write = |sql: &str| {
        sql.replace("{d}", "(SELECT x AS s, g FROM t)")
            .replace("{n}", "(SELECT x AS s FROM n)")
            .replace("{file}", &file)
    };
    let setup: Vec<String> =
        NAMED.iter().chain(&copy).chain(changes).map(|sql| write(sql)).collect();
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    let cases: Vec<(String, &str)> = cases.iter().map(|(sql, rows)| (write(sql), *rows)).collect();
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn compared_columns_of_derived_tables_may_have_the_same_name() {
    let changes = [
        "CREATE VIEW greatest_sum AS SELECT g FROM t GROUP BY g HAVING sum(x) >= ALL (SELECT sum(x) FROM t GROUP BY g)",
        "PREPARE p AS SELECT s FROM {d} WHERE s > ANY (SELECT s + $1 AS s FROM {d}) ORDER BY s",
        "CREATE TABLE deleted AS SELECT * FROM t",
        "DELETE FROM deleted WHERE g IN (SELECT s FROM (SELECT g AS s FROM t) WHERE s >= ALL (SELECT s FROM (SELECT g AS s FROM t)))",
        "CREATE TABLE updated AS SELECT * FROM t",
        "UPDATE updated SET x = 0 WHERE x >= ALL (SELECT x FROM updated)",
    ];
    let cases = [
        (
            "SELECT g, sum(x) FROM t GROUP BY g HAVING sum(x) >= ALL (SELECT sum(x) FROM t GROUP BY g)",
            "3 9",
        ),
        ("SELECT g, sum(x) FROM t GROUP BY g HAVING sum(x) = ANY (SELECT sum(x) FROM t)", ""),
        (
            "SELECT g, max(x) FROM t GROUP BY g HAVING max(x) <> ANY (SELECT max(x) FROM t) ORDER BY g",
            "1 1; 2 5",
        ),
        ("SELECT g, sum(x) FROM t GROUP BY g HAVING sum(x) IN (SELECT sum(x) FROM t)", ""),
        (
            "SELECT g, sum(x) FROM t GROUP BY g HAVING sum(x) IN (SELECT sum(x) FROM t GROUP BY g LIMIT 10) ORDER BY g",
            "1 1; 2 5; 3 9",
        ),
        (
            "SELECT g, sum(x) FROM t GROUP BY g HAVING sum(x) NOT IN (SELECT sum(x) FROM t WHERE g < 3 GROUP BY g)",
            "3 9",
        ),
        (
            "SELECT x + 1, count(*) FROM t GROUP BY x + 1 HAVING x + 1 >= ALL (SELECT x + 1 FROM t)",
            "10 1",
        ),
        (
            "SELECT g, sum(x) FROM '{file}' GROUP BY g HAVING sum(x) >= ALL (SELECT sum(x) FROM '{file}' GROUP BY g)",
            "3 9",
        ),
        (
            "SELECT g FROM t QUALIFY row_number() OVER (ORDER BY g) >= ALL (SELECT row_number() OVER (ORDER BY g) FROM t)",
            "3",
        ),
        (
            "SELECT g FROM t QUALIFY sum(x) OVER (PARTITION BY g) >= ALL (SELECT sum(x) OVER (PARTITION BY g) FROM t)",
            "3",
        ),
        (
            "SELECT v FROM (SELECT unnest([1, 5, 9]) AS v) WHERE v >= ALL (SELECT unnest([1, 5, 9]) AS v)",
            "9",
        ),
        (
            "SELECT s FROM {n} WHERE s = ANY (SELECT s FROM (SELECT x + 4 AS s FROM t)) OR s = 1",
            "5",
        ),
        ("SELECT s FROM {d} WHERE s >= ALL (SELECT s FROM {d})", "9"),
        ("SELECT s FROM {d} WHERE s > ANY (SELECT x + 4 AS s FROM t)", "9"),
        ("SELECT s FROM {d} WHERE s > ANY (SELECT x AS s FROM n)", "9"),
        ("SELECT s FROM {d} WHERE s > ALL (SELECT x AS s FROM n)", ""),
        ("SELECT s FROM {d} WHERE NOT (s = ANY (SELECT x AS s FROM n))", ""),
        ("SELECT s FROM {d} WHERE (s <> ALL (SELECT x AS s FROM n)) IS NULL ORDER BY s", "1; 9"),
        ("SELECT s FROM {d} WHERE s >= ALL (SELECT s FROM {d} WHERE false) ORDER BY s", "1; 5; 9"),
        ("SELECT s FROM {d} WHERE s = ANY (SELECT s FROM {d} WHERE false)", ""),
        ("SELECT s FROM {n} WHERE s IN (SELECT s FROM {d})", "5"),
        ("SELECT s FROM {n} WHERE s NOT IN (SELECT s + 4 AS s FROM {d})", ""),
        ("SELECT s FROM {d} WHERE s NOT IN (SELECT s + 4 AS s FROM {d})", "1"),
        ("SELECT s FROM {d} WHERE s NOT IN (SELECT s FROM {n})", ""),
        (
            "SELECT s FROM {d} WHERE s IN (SELECT s + 4 AS s FROM {d}) OR s = 1 ORDER BY s",
            "1; 5; 9",
        ),
        (
            "SELECT s FROM {d} WHERE s IN (SELECT u.s FROM u WHERE u.s > 1) OR s = 1 ORDER BY s",
            "1; 5; 9",
        ),
        (
            "SELECT s FROM {d} WHERE s < ANY (SELECT s FROM u) AND s IN (SELECT s FROM u WHERE h > 1) ORDER BY s",
            "5; 9",
        ),
        (
            "SELECT s, s >= ALL (SELECT s FROM {d}), s IN (SELECT s FROM {n}) FROM {d} ORDER BY s",
            "1 false NULL; 5 false true; 9 true NULL",
        ),
        (
            "SELECT s, CASE WHEN s > ALL (SELECT s - 4 AS s FROM {d}) THEN 'top' WHEN s IN (SELECT s FROM {n}) THEN 'in' END FROM {d} ORDER BY s",
            "1 NULL; 5 in; 9 top",
        ),
        ("WITH q AS (SELECT x AS s FROM t) SELECT s FROM q WHERE s >= ALL (SELECT s FROM q)", "9"),
        ("SELECT g FROM greatest_sum", "3"),
        ("EXECUTE p(4)", "9"),
        ("SELECT g FROM deleted ORDER BY g", "1; 2"),
        ("SELECT g FROM updated WHERE x = 0", "3"),
    ];
    expect_in_named(&changes, &cases).await;
}

/// A correlated query becomes a join, whose condition has columns of both queries.
#[tokio::test]
async fn correlated_conditions_distinguish_columns_of_the_same_name() {
    let changes = [
        "CREATE TABLE deleted AS SELECT x AS s, g FROM t",
        "DELETE FROM deleted WHERE s NOT IN (SELECT u.s + 0 FROM u WHERE u.s <> g)",
    ];
    let pairs = "SELECT t.x, u.h FROM t JOIN u ON t.x >= u.h WHERE";
    let in_pairs = [
        ("t.x NOT IN (SELECT x + 4 FROM t WHERE x <> u.h)", "1 1; 5 1"),
        ("t.x IN (SELECT x + 4 FROM t WHERE x <> u.h)", "5 2; 5 3; 9 1; 9 2; 9 3"),
        ("t.x = ANY (SELECT x + 4 FROM t WHERE x <> u.h)", "5 2; 5 3; 9 1; 9 2; 9 3"),
        ("t.x >= ALL (SELECT x FROM t WHERE x <> u.h)", "9 1; 9 2; 9 3"),
    ];
    let in_pairs =
        in_pairs.map(|(condition, rows)| (format!("{pairs} {condition} ORDER BY 1, 2"), rows));
    let mut cases = vec![
        ("SELECT s FROM {d} WHERE s NOT IN (SELECT u.s + 0 FROM u WHERE u.s <> g)", "1"),
        ("SELECT s FROM deleted ORDER BY s", "5; 9"),
        (
            "SELECT s, x FROM (SELECT x, g AS s FROM t) WHERE s NOT IN (SELECT u.h FROM u WHERE u.s = x)",
            "",
        ),
        (
            "SELECT s, x FROM (SELECT x, g AS s FROM t) WHERE s IN (SELECT u.h FROM u WHERE u.s = x) ORDER BY s",
            "1 1; 2 5; 3 9",
        ),
        (
            "SELECT s, s NOT IN (SELECT u.h FROM u WHERE u.s = x) FROM (SELECT x, g AS s FROM t) ORDER BY s",
            "1 false; 2 false; 3 false",
        ),
        ("SELECT s FROM {d} WHERE s IN (SELECT u.s FROM u WHERE u.h = g) ORDER BY s", "1; 5; 9"),
        (
            "SELECT s FROM {d} WHERE s IN (SELECT u.s FROM u WHERE u.s <> g) OR s = 1 ORDER BY s",
            "1; 5; 9",
        ),
        ("SELECT s FROM {d} WHERE s > ALL (SELECT u.s FROM u WHERE u.h < g) ORDER BY s", "1; 5; 9"),
        (
            "SELECT s FROM {d} WHERE s > ANY (SELECT u.s + 0 FROM u WHERE u.s < g) ORDER BY s",
            "5; 9",
        ),
        (
            "SELECT q FROM (SELECT x AS q FROM t) WHERE NOT EXISTS (SELECT u.h + 100 AS q FROM u WHERE u.s = q)",
            "",
        ),
        (
            "SELECT q FROM (SELECT x AS q FROM t) WHERE NOT EXISTS (SELECT u.h AS q FROM u WHERE u.s < q)",
            "1",
        ),
        (
            "SELECT q FROM (SELECT x AS q FROM t) WHERE EXISTS (SELECT u.h AS q FROM u WHERE u.s < q) OR q = 1 ORDER BY q",
            "1; 5; 9",
        ),
        (
            "SELECT q, z FROM (SELECT x AS q, g AS z FROM t) WHERE z IN (SELECT u.h AS q FROM u WHERE u.s = q) ORDER BY q",
            "1 1; 5 2; 9 3",
        ),
        (
            "SELECT h, (SELECT max(u.s) FROM u WHERE u.h = x) FROM (SELECT x, g AS h FROM t) ORDER BY h",
            "1 1; 2 NULL; 3 NULL",
        ),
        (
            "SELECT h FROM (SELECT x, g AS h FROM t) WHERE h <= (SELECT max(u.s) FROM u WHERE u.h = x)",
            "1",
        ),
        (
            "SELECT k, c FROM (SELECT g AS k, count(*) AS c FROM t GROUP BY g) WHERE c >= (SELECT count(*) AS c FROM u WHERE u.h = k) ORDER BY k",
            "1 1; 2 1; 3 1",
        ),
    ];
    cases.extend(in_pairs.iter().map(|(sql, rows)| (sql.as_str(), *rows)));
    expect_in_named(&changes, &cases).await;
}

/// When this test fails, `hides_outer` of `sql::workarounds::subqueries::correlated` can be
/// removed.
#[tokio::test]
async fn stock_correlated_columns_of_one_name_are_still_mixed_up() {
    let ctx = SessionContext::new();
    for sql in NAMED {
        stock_batches(&ctx, sql).await.unwrap();
    }
    let sql = "SELECT count(*) FROM (SELECT x AS s, g FROM t) WHERE s IN (SELECT u.s FROM u WHERE u.h = g)";
    let found = stock_batches(&ctx, sql).await;
    assert!(found.is_err() || stock_one(&ctx, sql).await != 3);
}

#[tokio::test]
async fn not_in_treats_expressions_as_nullable() {
    let setup = ["CREATE TABLE t AS SELECT * FROM (VALUES (1), (2)) v(x)"];
    let cases = [
        (
            "SELECT count(*) FROM (VALUES (1), (2)) t(x) WHERE NULLIF(x, x) NOT IN (SELECT y FROM (VALUES (3)) s(y))",
            "0",
        ),
        (
            "SELECT count(*) FROM (VALUES (1), (2)) t(x) WHERE NULLIF(x, x) NOT IN (SELECT y FROM (VALUES (3)) s(y) WHERE false)",
            "2",
        ),
        (
            "SELECT x FROM (VALUES (1), (200)) t(x) WHERE CASE WHEN x > 100 THEN 1 END NOT IN (SELECT y FROM (VALUES (3)) s(y))",
            "200",
        ),
        (
            "SELECT count(*) FROM generate_series(1, 3) g(x) WHERE try_cast('q' || x AS INT) NOT IN (SELECT 7)",
            "0",
        ),
        (
            "SELECT count(*) FROM (VALUES (1), (2)) t(x) WHERE x + 1 NOT IN (SELECT y FROM (VALUES (3)) s(y))",
            "1",
        ),
        ("SELECT count(*) FROM t WHERE NULLIF(x, 1) NOT IN (SELECT y FROM (VALUES (3)) s(y))", "1"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn aggregates_in_where_are_refused() {
    let ctx = create_parallel_session();
    let own = "SELECT 1 FROM (VALUES (1)) t(a) WHERE max(a) > 0";
    let outer = "SELECT k, (SELECT max(b.id) FROM (VALUES (1)) b(id) WHERE b.id < max(a.id)) FROM (VALUES (1, 2)) a(id, k) GROUP BY k";
    for sql in [own, outer] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("WHERE has an aggregate; write HAVING"), "{e}");
    }
}

/// An ORDER BY without a LIMIT has no effect on the result of IN, EXISTS, ANY or ALL.
#[tokio::test]
async fn subqueries_in_conditions_may_have_order_by() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 20), (2, 30), (NULL, 10), (3, NULL), (2, 20)) v(a, b)",
        "CREATE TABLE u AS SELECT * FROM (VALUES (1, 50), (2, 20), (3, 70), (3, 10)) v(a, b)",
        "CREATE TABLE w AS SELECT * FROM (VALUES (1, 50), (9, 1)) v(a, d)",
        "CREATE VIEW tv AS SELECT * FROM t",
        "CREATE TABLE deleted AS SELECT * FROM w",
        "DELETE FROM deleted WHERE EXISTS (SELECT 1 FROM t WHERE t.a = deleted.a ORDER BY t.b)",
        "CREATE TABLE updated AS SELECT * FROM w",
        "UPDATE updated SET d = 0 WHERE a IN (SELECT t.a FROM t WHERE t.b < updated.d ORDER BY t.b)",
        "PREPARE p AS SELECT a FROM w WHERE EXISTS (SELECT 1 FROM t WHERE t.a = w.a AND t.b = $1 ORDER BY t.b)",
    ];
    let cases = [
        ("SELECT a FROM w WHERE EXISTS (SELECT 1 FROM t WHERE t.a = w.a ORDER BY t.b)", "1"),
        (
            "SELECT a FROM w WHERE EXISTS (SELECT 1 FROM t WHERE t.a = w.a ORDER BY t.b LIMIT 1)",
            "1",
        ),
        (
            "SELECT a FROM w WHERE EXISTS (SELECT 1 FROM t WHERE t.a <= w.a ORDER BY t.b LIMIT 2) ORDER BY a",
            "1; 9",
        ),
        (
            "SELECT a FROM w WHERE EXISTS (SELECT t.a FROM t WHERE t.a < w.a ORDER BY t.b LIMIT 1 OFFSET 1)",
            "9",
        ),
        (
            "SELECT a FROM w WHERE NOT EXISTS (SELECT DISTINCT t.b FROM t WHERE t.a = w.a ORDER BY t.b)",
            "9",
        ),
        ("SELECT a FROM w WHERE a IN (SELECT t.a FROM t WHERE t.b < w.d ORDER BY t.b)", "1"),
        (
            "SELECT a FROM w WHERE a NOT IN (SELECT t.a FROM t WHERE t.b < w.d AND t.a IS NOT NULL ORDER BY t.b)",
            "9",
        ),
        (
            "SELECT a FROM w WHERE d >= ALL (SELECT t.b FROM t WHERE t.a = w.a ORDER BY t.b) ORDER BY a",
            "1; 9",
        ),
        ("SELECT a FROM w WHERE d > ANY (SELECT t.b FROM t WHERE t.a = w.a ORDER BY t.b)", "1"),
        (
            "SELECT a FROM w WHERE a = 9 OR EXISTS (SELECT 1 FROM t WHERE t.a = w.a ORDER BY t.b) ORDER BY a",
            "1; 9",
        ),
        (
            "SELECT a, EXISTS (SELECT 1 FROM t WHERE t.a = w.a ORDER BY t.b) AS x FROM w ORDER BY a",
            "1 true; 9 false",
        ),
        (
            "SELECT a FROM w GROUP BY a HAVING EXISTS (SELECT 1 FROM tv t WHERE t.a = w.a ORDER BY t.b)",
            "1",
        ),
        (
            "WITH k AS (SELECT * FROM t) SELECT a FROM w WHERE a IN (SELECT k.a FROM k WHERE k.b < w.d ORDER BY k.b DESC)",
            "1",
        ),
        (
            "SELECT w.a, u.b FROM w JOIN u ON EXISTS (SELECT 1 FROM t WHERE t.a = w.a ORDER BY t.b) AND u.a = w.a",
            "1 50",
        ),
        ("SELECT * FROM deleted", "9 1"),
        ("SELECT * FROM updated ORDER BY a", "1 0; 9 1"),
        ("EXECUTE p(20)", "1"),
    ];
    expect_rows(&setup, &cases).await;
}

const TU: [&str; 2] = [
    "CREATE TABLE t AS SELECT * FROM (VALUES (1,20,'x'),(2,30,'y'),(NULL,10,'x'),(3,NULL,NULL),(2,20,'y')) v(a,b,c)",
    "CREATE TABLE u AS SELECT * FROM (VALUES (1,50,'x'),(2,20,'y'),(3,70,'x'),(3,10,NULL)) v(a,b,c)",
];

#[tokio::test]
async fn in_within_or_may_select_computed_columns() {
    let setup = [
        TU[0],
        TU[1],
        "CREATE VIEW v AS SELECT a FROM t WHERE a IN (SELECT DISTINCT a + 1 FROM u) OR b = 10",
        "PREPARE p AS SELECT coalesce(a, 0) AS k FROM t WHERE a IN (SELECT DISTINCT a + 1 FROM u) OR b = $1 ORDER BY k",
        "CREATE TABLE deleted AS SELECT * FROM t",
        "DELETE FROM deleted WHERE a IN (SELECT DISTINCT a + 1 FROM u) OR b = 10",
        "CREATE TABLE updated AS SELECT * FROM t",
        "UPDATE updated SET c = 'z' WHERE a IN (SELECT max(a) FROM u) OR b = 10",
    ];
    let select = "SELECT coalesce(a, 0) AS k FROM t WHERE";
    let cases = [
        ("a IN (SELECT DISTINCT a + 1 FROM u) OR b = 20", "1; 2; 2; 3"),
        ("a IN (SELECT y FROM (SELECT a + 1 AS y FROM u)) OR b = 20", "1; 2; 2; 3"),
        ("a IN (SELECT a FROM u UNION SELECT a + 1 FROM u) OR b = 20", "1; 2; 2; 3"),
        ("a IN (SELECT a FROM u UNION ALL SELECT a + 1 FROM u) OR b = 20", "1; 2; 2; 3"),
        ("a IN (SELECT a + 1 FROM u GROUP BY 1) OR b = 10", "0; 2; 2; 3"),
        ("a IN (SELECT max(a) FROM u) OR b = 10", "0; 3"),
        ("a IN (SELECT 3 EXCEPT SELECT 4) OR b = 10", "0; 3"),
        ("a IN (VALUES (1), (3)) OR b = 10", "0; 1; 3"),
        ("a IN (SELECT DISTINCT a + 1 FROM u ORDER BY 1 LIMIT 1) OR b = 10", "0; 2; 2"),
        ("a IN (SELECT row_number() OVER (ORDER BY a) FROM u) OR b = 10", "0; 1; 2; 2; 3"),
        ("a IN (SELECT a + 1 FROM u) OR a IN (SELECT DISTINCT b / 10 FROM u)", "1; 2; 2; 3"),
        ("a IN (SELECT DISTINCT u.a + 1 FROM u WHERE u.c = t.c OR u.c IS NULL) OR b = 10", "0"),
        ("a IN (SELECT DISTINCT a + 1 FROM u WHERE u.c = t.c) OR b = 10", "0"),
        ("NOT (a NOT IN (SELECT DISTINCT a + 1 FROM u) AND b <> 10)", "0; 2; 2; 3"),
        ("(a IN (SELECT DISTINCT a + 1 FROM u)) IS TRUE", "2; 2; 3"),
        ("(a IN (SELECT DISTINCT a + 1 FROM u)) IS NOT TRUE", "0; 1"),
        ("a + 1 IN (SELECT DISTINCT b / 10 FROM u) OR a IS NULL", "0; 1"),
        ("3 IN (SELECT DISTINCT a + 1 FROM u) OR b = 10", "0; 1; 2; 2; 3"),
        ("9 IN (SELECT DISTINCT a + 1 FROM u) OR b = 10", "0"),
    ];
    let cases: Vec<(String, &str)> = cases
        .into_iter()
        .map(|(condition, rows)| (format!("{select} {condition} ORDER BY k"), rows))
        .collect();
    let mut cases: Vec<(&str, &str)> =
        cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    cases.extend([
        ("SELECT coalesce(a, 0) AS k FROM v ORDER BY k", "0; 2; 2; 3"),
        ("EXECUTE p(10)", "0; 2; 2; 3"),
        ("SELECT a FROM deleted", "1"),
        ("SELECT coalesce(a, 0) AS k FROM updated WHERE c = 'z' ORDER BY k", "0; 3"),
        (
            "SELECT count(*) FROM t JOIN u ON t.a = u.a AND (t.a IN (SELECT DISTINCT a + 1 FROM u) OR t.b = 20)",
            "5",
        ),
        (
            "SELECT a, count(*) FROM t GROUP BY a HAVING a IN (SELECT DISTINCT a + 1 FROM u) OR count(*) > 1 ORDER BY 1",
            "2 2; 3 1",
        ),
    ]);
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn windows_may_read_left_lateral_joins_next_to_subqueries() {
    let lateral = "LEFT JOIN LATERAL (SELECT u.b AS x FROM u WHERE u.a = t.a) l ON true";
    let above = format!(
        "SELECT x, row_number() OVER (ORDER BY x) FROM t {lateral} WHERE t.b > (SELECT min(b) FROM u) ORDER BY 1, 2"
    );
    let kept = format!(
        "SELECT x, max(x) OVER () FROM t {lateral} WHERE t.a IN (SELECT a FROM u WHERE b > 15) OR t.b = 10 ORDER BY 1, 2"
    );
    let view = format!("CREATE VIEW v AS {above}");
    let cte = format!("WITH w AS ({above}) SELECT count(*) FROM w");
    expect_rows(
        &[TU[0], TU[1], view.as_str()],
        &[
            (above.as_str(), "20 1; 20 2; 50 3"),
            (kept.as_str(), "10 70; 20 70; 20 70; 50 70; 70 70; NULL 70"),
            ("SELECT * FROM v LIMIT 2", "20 1; 20 2"),
            (cte.as_str(), "3"),
            (
                "SELECT t.b, x, row_number() OVER (ORDER BY t.b, x) r FROM t LEFT JOIN LATERAL (SELECT u.b AS x FROM u WHERE u.a = t.a AND u.b > t.b) l ON true WHERE t.b >= (SELECT min(b) FROM u) ORDER BY 3",
                "10 NULL 1; 20 50 2; 20 NULL 3; 30 NULL 4",
            ),
            (
                "SELECT t.b, x, sum(x) OVER (PARTITION BY t.c) s FROM t LEFT JOIN LATERAL (SELECT u.b AS x FROM u WHERE u.a = t.a) l ON x > 20 WHERE t.b > (SELECT min(b) FROM u) ORDER BY 1, 2, 3",
                "20 50 50; 20 NULL NULL; 30 NULL NULL",
            ),
        ],
    )
    .await;
}

/// When this test fails, `serrate_rows_in` can be removed.
#[tokio::test]
async fn stock_rows_in_queries_still_fail() {
    let sql = "SELECT a FROM (VALUES (1, 2), (3, 4)) t(a, b) WHERE (a, b) IN (SELECT 1, 2)";
    stock_error(&SessionContext::new(), sql).await;
    expect_rows(&[], &[(sql, "1")]).await;
}

/// DataFusion gives a cast the name of its operand, which may be a column of the condition, too.
#[tokio::test]
async fn correlated_conditions_may_contain_casts_of_columns() {
    let table = "CREATE TABLE c AS SELECT column1 AS id, column2 AS a, column1::INT AS i, column3 AS s, column4::DATE AS dt FROM
        (VALUES (1, 10, '2024-01-01', '2024-01-01'), (2, NULL, 'x', '2024-01-02'), (3, 30, '2024-01-02', '2024-01-03'), (40, 3, '', '2024-01-02'))";
    let cases = [
        ("s IN (SELECT u.dt::VARCHAR FROM c u WHERE c.dt >= u.dt)", "1; 3"),
        ("a IN (SELECT u.a::BIGINT FROM c u WHERE c.a >= u.a)", "1; 3; 40"),
        ("a IN (SELECT u.i FROM c u WHERE c.a >= u.i)", "40"),
        ("a > 20 OR a IN (SELECT u.i FROM c u WHERE c.a >= u.i)", "3; 40"),
        ("a IN (SELECT DISTINCT u.i::BIGINT FROM c u WHERE c.a >= u.i)", "40"),
        ("a NOT IN (SELECT u.a::INT FROM c u WHERE c.a >= u.a) OR id = 1", "1; 2"),
        ("a >= ANY (SELECT u.a::INT FROM c u WHERE c.a > u.a)", "1; 3"),
        ("a < ALL (SELECT u.a::INT FROM c u WHERE c.a > u.a)", "2; 40"),
        ("NOT EXISTS (SELECT u.a::INT FROM c u WHERE c.a > u.a)", "2; 40"),
        ("a IN (SELECT u.a::INT FROM c u WHERE c.a = u.a GROUP BY u.a::INT)", "1; 3; 40"),
    ];
    let cases = cases.map(|(condition, expected)| {
        (format!("SELECT id FROM c WHERE {condition} ORDER BY id"), expected)
    });
    let mut cases: Vec<(&str, &str)> = cases.iter().map(|(sql, e)| (sql.as_str(), *e)).collect();
    cases.push((
        "SELECT c.id, q.v FROM c, LATERAL (SELECT u.a::INT FROM c u WHERE c.a > u.a) q(v) ORDER BY 1, 2",
        "1 3; 3 3; 3 10",
    ));
    expect_rows(&[table], &cases).await;
}

#[tokio::test]
async fn lateral_queries_with_distinct_on_are_refused() {
    let ctx = serrate::sql::session();
    let e = error(
        &ctx,
        "SELECT q.b FROM (VALUES (1)) t(x), LATERAL (SELECT DISTINCT ON (a) a, b + x AS b FROM (VALUES (1, 2)) u(a, b)) q",
    )
    .await;
    assert!(e.contains("DISTINCT ON"), "{e}");
}
