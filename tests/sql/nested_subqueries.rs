//! Subqueries that use columns of a query two levels up, and subqueries in ORDER BY and DISTINCT
//! ON.

use std::time::{Duration, Instant};

use super::*;

pub(super) const TABLES: [&str; 4] = [
    "CREATE TABLE a AS SELECT * FROM (VALUES (1, 1, 'x'), (2, 3, 'y'), (3, NULL, 'z'), (4, 4, NULL)) v(id, k, s)",
    "CREATE TABLE c AS SELECT * FROM (VALUES (2, 1), (3, 3), (5, NULL), (4, 9)) v(id, k)",
    "CREATE TABLE nn AS SELECT * FROM (VALUES (1), (3), (4)) v(id)",
    "CREATE TABLE none AS SELECT 1 AS id, 1 AS k WHERE false",
];

#[tokio::test]
async fn in_may_use_columns_two_levels_up() {
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
async fn in_takes_a_union_with_outer_columns() {
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
    let ctx = create_parallel_session();
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
        // The limit holds for an unoptimized build on a busy machine.
        assert!(start.elapsed() < Duration::from_secs(30), "{word}: {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn order_by_and_distinct_on_may_contain_subqueries() {
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
async fn in_lists_may_begin_with_a_subquery() {
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
async fn inner_tables_hide_outer_tables_of_the_same_name() {
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
            // The derived table `t` hides the outer table `t` from the query after IN.
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
async fn queries_with_limit_may_select_subqueries() {
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

const GROUPED: [&str; 2] = [
    "CREATE TABLE g AS SELECT * FROM (VALUES (1, 1), (1, 2), (2, 1), (6, 5)) v(x, y)",
    "CREATE TABLE z AS SELECT * FROM (VALUES (2), (7)) v(i)",
];

#[tokio::test]
async fn subqueries_may_use_computed_group_keys() {
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
        // The table `g` of the subquery hides the outer table `g`.
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
        stock_batches(&ctx, sql).await.unwrap();
    }
    let sql =
        "SELECT x + 1 FROM g GROUP BY x + 1 HAVING EXISTS (SELECT 1 FROM z WHERE z.i = g.x + 1)";
    let e = stock_error(&ctx, sql).await;
    assert!(e.contains("g.x"), "{e}");
}

/// The value before IN, ANY and ALL may be a column of a query further out.
#[tokio::test]
async fn tested_values_may_be_columns_of_outer_queries() {
    let setup = [
        "CREATE TABLE d AS SELECT * FROM (VALUES (1, 'x'), (1, 'y'), (2, 'x'), (4, 'z'), (NULL, 'x')) v(id, code)",
        "CREATE TABLE v AS SELECT * FROM (VALUES (1, 5), (1, 15), (2, 25), (3, 1), (6, 1), (NULL, 3)) v(id, t)",
    ];
    let cases = [
        (
            "EXISTS (SELECT 1 FROM d b WHERE a.id IN (SELECT c.id FROM v c WHERE b.id < 5))",
            "1; 1; 2",
        ),
        (
            "a.id IN (SELECT b.id FROM d b WHERE a.id IN (SELECT c.id FROM v c WHERE c.t > 10))",
            "1; 1; 2",
        ),
        (
            "EXISTS (SELECT 1 FROM d b WHERE a.id NOT IN (SELECT c.id FROM v c WHERE c.id IS NOT NULL))",
            "4",
        ),
        ("EXISTS (SELECT 1 FROM d b WHERE NOT a.id IN (SELECT c.id FROM v c))", ""),
        (
            "EXISTS (SELECT 1 FROM d b WHERE b.code = 'z' AND (b.id = 9 OR a.id IN (SELECT c.id FROM v c)))",
            "1; 1; 2",
        ),
        (
            "EXISTS (SELECT 1 FROM d b WHERE a.id >= ANY (SELECT c.id FROM v c WHERE b.id < 5))",
            "1; 1; 2; 4",
        ),
        (
            "a.id >= ANY (SELECT b.id FROM d b LEFT JOIN v q ON b.id = q.id WHERE a.id >= ANY (SELECT c.id FROM v c WHERE c.t <= c.id OR b.id < 5))",
            "1; 1; 2; 4",
        ),
        (
            "EXISTS (SELECT 1 FROM d b WHERE a.id > ALL (SELECT c.id FROM v c WHERE c.t = 1 AND c.id < b.id))",
            "1; 1; 2; 4; NULL",
        ),
        (
            "EXISTS (SELECT 1 FROM d b WHERE b.id = 4 AND a.id > ALL (SELECT c.id FROM v c WHERE c.id < b.id))",
            "4",
        ),
        (
            "EXISTS (SELECT 1 FROM d b WHERE a.id IN (SELECT max(c.id) - 4 FROM v c WHERE c.t < b.id))",
            "2",
        ),
        (
            "EXISTS (SELECT 1 FROM d b WHERE a.id + b.id IN (SELECT c.id FROM v c WHERE c.t = 1))",
            "1; 1; 2; 4",
        ),
    ];
    let statements: Vec<(String, &str)> = cases
        .iter()
        .map(|(condition, rows)| {
            (format!("SELECT a.id FROM d a WHERE {condition} ORDER BY a.id"), *rows)
        })
        .collect();
    let statements: Vec<(&str, &str)> =
        statements.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &statements).await;
}

#[tokio::test]
async fn grouping_sets_may_have_subqueries_as_keys() {
    let cases = [
        (
            "SELECT (SELECT max(z.i) FROM z WHERE z.i <= g.x) AS c, count(*) FROM g GROUP BY ROLLUP (c) ORDER BY c, 2",
            "2 2; NULL 2; NULL 4",
        ),
        (
            "SELECT coalesce((SELECT max(z.i) FROM z WHERE z.i <= g.x), 0) AS c, y, count(*) FROM g GROUP BY CUBE (c, y) ORDER BY c, y, 3",
            "0 1 1; 0 2 1; 0 NULL 2; 2 1 1; 2 5 1; 2 NULL 2; NULL 1 2; NULL 2 1; NULL 5 1; NULL NULL 4",
        ),
        (
            "SELECT x IN (SELECT i FROM z) AS c, count(*) FROM g GROUP BY GROUPING SETS ((c), ()) ORDER BY c, 2",
            "false 3; true 1; NULL 4",
        ),
        (
            "SELECT EXISTS (SELECT 1 FROM z WHERE z.i = g.x + 1) AS c, count(*) FROM g GROUP BY ROLLUP (c) ORDER BY c, 2",
            "false 1; true 3; NULL 4",
        ),
    ];
    expect_rows(&GROUPED, &cases).await;
}

#[tokio::test]
async fn grouping_sets_of_outer_columns_are_refused() {
    let ctx = serrate::sql::session();
    run_all(&ctx, &GROUPED).await;
    for (aggregate, keys) in [
        ("count(*)", "ROLLUP (g.x)"),
        ("max(z.i)", "ROLLUP (z.i + g.x)"),
        ("max(z.i)", "CUBE (z.i, g.x)"),
        ("max(z.i)", "GROUPING SETS ((z.i + g.x), ())"),
        ("max(z.i + g.x)", "ROLLUP (z.i)"),
    ] {
        let query = format!("SELECT {aggregate} AS m FROM z GROUP BY {keys}");
        for sql in [
            format!("SELECT x, (SELECT max(m) FROM ({query}) v) AS m FROM g"),
            format!("SELECT x, ({query} ORDER BY 1 DESC LIMIT 1) AS m FROM g"),
            format!("SELECT x FROM g WHERE EXISTS ({query})"),
        ] {
            let e = rows_or_error(&ctx, &sql).await;
            assert!(e.contains("GROUPING SETS in a subquery uses the column g.x"), "{sql}\n{e}");
        }
    }
}

/// IN becomes a join, which would compute its left operand for every row.
#[tokio::test]
async fn operands_of_in_are_evaluated_where_case_and_or_need_them() {
    let setup = [
        "CREATE TABLE t AS SELECT i - 2 AS n FROM range(5) r(i)",
        "CREATE TABLE s AS SELECT 10 AS v",
    ];
    let cases = [
        ("CASE WHEN n > 0 THEN 10 / n IN (SELECT v FROM s) END", "1"),
        ("CASE WHEN n > 0 THEN 10 / n NOT IN (SELECT v FROM s) END", "2"),
        ("CASE WHEN n > 0 THEN 10 / n IN (SELECT v FROM s WHERE v > n) END", "1"),
        ("CASE WHEN n <= 0 THEN n = -1 ELSE 10 / n IN (SELECT v FROM s) END", "-1; 1"),
        ("CASE n WHEN 0 THEN true WHEN 2 THEN false ELSE 10 / n IN (SELECT v FROM s) END", "0; 1"),
        ("(CASE WHEN n > 0 THEN 10 / n IN (SELECT v FROM s) END) IN (SELECT true)", "1"),
        ("n = 0 OR 10 / n IN (SELECT v FROM s)", "0; 1"),
        ("NOT (n = 0 OR 10 / n IN (SELECT v FROM s))", "-2; -1; 2"),
        ("n = -1 OR n > 0 AND 10 / n IN (SELECT v FROM s)", "-1; 1"),
        ("n > 0 AND 10 / n IN (SELECT v FROM s)", "1"),
    ];
    let queries = cases
        .map(|(condition, rows)| (format!("SELECT n FROM t WHERE {condition} ORDER BY n"), rows));
    let queries: Vec<(&str, &str)> =
        queries.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &queries).await;
    let having = "SELECT count(*) FROM t HAVING CASE WHEN min(n) > 0 THEN 10 / (min(n) + 2) IN (SELECT v FROM s) ELSE true END";
    expect_rows(&setup, &[(having, "5")]).await;

    let ctx = serrate::sql::session();
    run_all(&ctx, &setup).await;
    let failing = "SELECT n FROM t WHERE CASE WHEN n >= 0 THEN 10 / n IN (SELECT v FROM s) END";
    let e = rows_or_error(&ctx, failing).await;
    assert!(e.to_lowercase().contains("divi"), "{e}");
}
