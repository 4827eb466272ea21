//! The columns that USING and NATURAL joins merge, read by subqueries and by correlated tables.

use super::merged::query_named_rows;
use super::*;

const MERGED_TABLES: [&str; 5] = [
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 20, 'x'), (2, 30, 'y'), (NULL, 10, 'x'), (3, NULL, NULL), (2, 20, 'y')) v(a, b, c)",
    "CREATE TABLE u AS SELECT * FROM (VALUES (1, 50, 'x'), (2, 20, 'y'), (3, 70, 'x'), (3, 10, NULL)) v(a, b, c)",
    "CREATE TABLE w AS SELECT * FROM (VALUES (1, 50, 'q'), (9, 1, 'r')) v(a, d, e)",
    "CREATE TABLE wc AS SELECT * FROM (VALUES (1, 'p'), (2, 'q')) v(k, c)",
    "CREATE TABLE d AS SELECT * FROM (VALUES (1), (2)) v(a)",
];

/// The outer query has a column with the name of the merged column, which DataFusion would use
/// instead.
#[tokio::test]
async fn merged_columns_of_subqueries_hide_columns_of_outer_queries() {
    let mut setup = MERGED_TABLES.to_vec();
    setup.push(
        "CREATE VIEW inner_keys AS SELECT w.a FROM w WHERE w.a = ANY (SELECT a + 8 FROM t JOIN u USING (a))",
    );
    setup.push(
        "PREPARE shifted(BIGINT) AS SELECT w.a FROM w WHERE w.a IN (SELECT a + $1 FROM t JOIN u USING (a))",
    );
    let cases = [
        ("SELECT w.a FROM w WHERE w.a = ANY (SELECT a + 8 FROM t JOIN u USING (a))", "9"),
        (
            "SELECT w.a FROM w WHERE w.a = ANY (SELECT a + 8 FROM t NATURAL JOIN (SELECT a FROM u) x)",
            "9",
        ),
        ("FROM inner_keys", "9"),
        ("EXECUTE shifted(8)", "9"),
        (
            "SELECT w.a FROM w WHERE 3 IN (SELECT a FROM t LEFT JOIN u USING (a)) ORDER BY w.a",
            "1; 9",
        ),
        (
            "SELECT w.a FROM w WHERE w.a IN (SELECT a + 8 FROM t JOIN u USING (a) UNION ALL SELECT a + 7 FROM t JOIN u USING (a))",
            "9",
        ),
        (
            "SELECT w.a, (SELECT count(*) FROM (SELECT a FROM t JOIN u USING (a) GROUP BY a) q) FROM w ORDER BY w.a",
            "1 3; 9 3",
        ),
        (
            "SELECT w.a, (SELECT count(*) FROM (SELECT DISTINCT a FROM t JOIN u USING (a)) q) FROM w ORDER BY w.a",
            "1 3; 9 3",
        ),
        ("SELECT w.a, (SELECT max(a) FROM t JOIN u USING (a)) FROM w ORDER BY w.a", "1 3; 9 3"),
        (
            "SELECT w.a, (SELECT a FROM t JOIN u USING (a) ORDER BY a DESC LIMIT 1) FROM w ORDER BY w.a",
            "1 3; 9 3",
        ),
        (
            "SELECT w.a, (SELECT max(n) FROM (SELECT count(*) OVER (PARTITION BY a) n FROM t JOIN u USING (a)) q) FROM w ORDER BY w.a",
            "1 2; 9 2",
        ),
        (
            "SELECT w.a, (SELECT max(n) FROM (SELECT count(*) OVER x n FROM t JOIN u USING (a) WINDOW x AS (PARTITION BY a)) q) FROM w ORDER BY w.a",
            "1 2; 9 2",
        ),
        (
            "SELECT w.a, (WITH q AS (SELECT a FROM t JOIN u USING (a)) SELECT sum(q.a) FROM q) FROM w ORDER BY w.a",
            "1 11; 9 11",
        ),
        // The column `a` is not ambiguous with a column of `v`, the table that is joined last.
        (
            "SELECT w.a, (SELECT max(a) FROM t JOIN u USING (a) JOIN (SELECT 5 AS z) v ON v.z > t.a) FROM w ORDER BY w.a",
            "1 3; 9 3",
        ),
        (
            "SELECT w.a, (SELECT max(a) FROM t JOIN u USING (a) WHERE t.a = w.a) FROM w ORDER BY w.a",
            "1 1; 9 NULL",
        ),
        (
            "SELECT wc.k, q.* FROM wc, LATERAL (SELECT upper(c) g, count(*) n FROM t JOIN u USING (a, c) GROUP BY upper(c)) q ORDER BY 1, 2",
            "1 X 1; 1 Y 2; 2 X 1; 2 Y 2",
        ),
        (
            "SELECT wc.k, q.g, q.n FROM wc, LATERAL (SELECT c AS g, count(*) n FROM t JOIN u USING (a, c) GROUP BY c) q ORDER BY 1, 2",
            "1 x 1; 1 y 2; 2 x 1; 2 y 2",
        ),
        (
            "SELECT a, b FROM t JOIN (SELECT a FROM u) x USING (a) WHERE a IN (SELECT a FROM t JOIN u USING (a) WHERE u.b > 20) ORDER BY a, b",
            "1 20; 3 NULL; 3 NULL",
        ),
        ("DELETE FROM d WHERE a NOT IN (SELECT a - 1 FROM t JOIN u USING (a))", "0"),
        ("SELECT a FROM d ORDER BY a", "1; 2"),
    ];
    expect_rows(&setup, &cases).await;
    let changes = [
        ("UPDATE d SET a = a + 10 WHERE a IN (SELECT a - 1 FROM t JOIN u USING (a))", "2"),
        ("SELECT a FROM d ORDER BY a", "11; 12"),
    ];
    expect_rows(&MERGED_TABLES, &changes).await;
}

#[tokio::test]
async fn merged_columns_are_grouped_by_expressions_and_keep_their_names() {
    let cases = [
        (
            "SELECT c || 'k', count(*) FROM t JOIN u USING (a, c) GROUP BY c || 'k' ORDER BY 1",
            "xk 1; yk 2",
        ),
        (
            "SELECT a % 2 AS a, count(*) FROM t JOIN u USING (a) GROUP BY a % 2 ORDER BY 1",
            "0 2; 1 3",
        ),
        // GROUP BY uses the input column `a`, not the result column `a`.
        (
            "SELECT a % 2 AS a, count(*) AS n FROM t JOIN u USING (a) GROUP BY a ORDER BY 1, 2",
            "0 2; 1 1; 1 2",
        ),
        (
            "SELECT a, a + 1, count(*) FROM t JOIN u USING (a) GROUP BY a, a + 1 ORDER BY a",
            "1 2 1; 2 3 2; 3 4 2",
        ),
        // DISTINCT ON uses the result column `a`.
        ("SELECT DISTINCT ON (a) t.b AS a FROM t JOIN u USING (a) ORDER BY a", "20; 30; NULL"),
        ("SELECT a, (SELECT a + 1) FROM t JOIN u USING (a) ORDER BY a LIMIT 1", "1 2"),
        // ORDER BY of the subquery uses the result column `a` of the subquery.
        (
            "SELECT (SELECT unnest([3, 1, 2]) AS a ORDER BY a LIMIT 1) FROM t JOIN u USING (a) LIMIT 1",
            "1",
        ),
        (
            "SELECT (SELECT unnest([3, 1, 2]) AS a ORDER BY a LIMIT 1) FROM t FULL JOIN u USING (a) LIMIT 1",
            "1",
        ),
    ];
    expect_rows(&MERGED_TABLES, &cases).await;
    let ctx = create_parallel_session();
    for sql in MERGED_TABLES {
        query_batches(&ctx, sql).await.unwrap();
    }
    let (names, _) = query_named_rows(
        &ctx,
        "SELECT a, a + 1, max(a) FROM t JOIN u USING (a) GROUP BY a, a + 1 ORDER BY a",
    )
    .await;
    assert_eq!(names, ["a", "a + 1", "max(a)"]);
    for sql in [
        "SELECT a FROM w, t JOIN u USING (a)",
        "SELECT count(*) FROM t JOIN u USING (a) JOIN w ON w.d > 0 GROUP BY a",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("Ambiguous reference"), "{sql}: {e}");
    }
}

#[tokio::test]
async fn subqueries_with_tables_read_merged_columns() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 20), (2, 30), (NULL, 10), (3, NULL), (2, 20)) v(a, b)",
        "CREATE TABLE w AS SELECT * FROM (VALUES (2, 5), (7, 6)) v(a, d)",
        "CREATE TABLE z AS SELECT * FROM (VALUES (1), (7)) v(i)",
        "CREATE VIEW merged AS SELECT a, (SELECT count(*) FROM z WHERE z.i = a) n FROM t FULL JOIN w USING (a)",
    ];
    let full = "t FULL JOIN w USING (a)";
    let counts = format!(
        "SELECT coalesce(a, 0) k, (SELECT count(*) FROM z WHERE z.i = a) n FROM {full} ORDER BY k"
    );
    let two = format!(
        "SELECT coalesce(a, 0) k, (SELECT count(*) FROM z WHERE i = a) n, (SELECT max(i) FROM z WHERE i < a) m FROM {full} ORDER BY k"
    );
    let found =
        format!("SELECT a FROM {full} WHERE EXISTS (SELECT 1 FROM z WHERE z.i = a) ORDER BY a");
    // The table of the inner query has a column of this name, which hides the merged one.
    let hidden = format!(
        "SELECT coalesce(a, 0) k, (SELECT count(*) FROM t WHERE a = 2) n FROM {full} ORDER BY k LIMIT 2"
    );
    let cte = format!(
        "WITH z AS (SELECT 9 AS a, 7 AS i) SELECT a, (SELECT max(a) FROM z) m FROM {full} WHERE a = 7"
    );
    let between = format!(
        "SELECT coalesce(a, 0) k, (SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM z WHERE z.i = a)) n FROM {full} ORDER BY k LIMIT 2"
    );
    expect_rows(
        &setup,
        &[
            (counts.as_str(), "0 0; 1 1; 2 0; 2 0; 3 0; 7 1"),
            (two.as_str(), "0 0 NULL; 1 1 NULL; 2 0 1; 2 0 1; 3 0 1; 7 1 1"),
            (found.as_str(), "1; 7"),
            (hidden.as_str(), "0 2; 1 2"),
            (cte.as_str(), "7 9"),
            (between.as_str(), "0 1; 1 1"),
            ("SELECT n FROM merged WHERE a = 7", "1"),
            (
                "SELECT a, (SELECT count(*) FROM z WHERE z.i < a) n FROM t JOIN w USING (a) ORDER BY a",
                "2 1; 2 1",
            ),
            (
                "SELECT a, (SELECT count(*) FROM z WHERE z.i <= a) n FROM t RIGHT JOIN w USING (a) ORDER BY a",
                "2 1; 2 1; 7 2",
            ),
            (
                "SELECT a FROM t NATURAL RIGHT JOIN w WHERE a IN (SELECT i FROM z WHERE i >= a) ORDER BY a",
                "7",
            ),
            (
                "SELECT a, (SELECT max(q.i) FROM (SELECT i FROM z WHERE i > a) q) m FROM t FULL JOIN w USING (a) ORDER BY a",
                "1 7; 2 7; 2 7; 3 7; 7 NULL; NULL NULL",
            ),
            (
                "SELECT a, (SELECT count(*) FROM unnest([a, 7]) q(v) WHERE v = a) n FROM t FULL JOIN w USING (a) ORDER BY a",
                "1 1; 2 1; 2 1; 3 1; 7 2; NULL 0",
            ),
            (
                "SELECT a, EXISTS (SELECT i FROM z WHERE i = a UNION ALL SELECT d FROM (SELECT d FROM w) q WHERE d = a + 3) e FROM t LEFT JOIN w USING (a) ORDER BY a",
                "1 true; 2 true; 2 true; 3 true; NULL false",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn subqueries_next_to_further_tables_read_merged_columns() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 20), (2, 30), (NULL, 10), (3, NULL), (2, 20)) v(a, b)",
        "CREATE TABLE w AS SELECT * FROM (VALUES (2, 5), (7, 6)) v(a, d)",
        "CREATE TABLE z AS SELECT * FROM (VALUES (1), (7)) v(i)",
        "CREATE TABLE y AS SELECT 1 AS j",
    ];
    let cases = [
        (
            "SELECT a, (SELECT count(*) FROM z WHERE i < a) n FROM t LEFT JOIN w USING (a), y ORDER BY a",
            "1 0; 2 1; 2 1; 3 1; NULL 0",
        ),
        (
            "SELECT a, (SELECT count(*) FROM z WHERE i < a) n FROM t LEFT JOIN w USING (a) JOIN y ON j < t.a ORDER BY a",
            "2 1; 2 1; 3 1",
        ),
        (
            "SELECT a FROM t LEFT JOIN w USING (a) JOIN y ON EXISTS (SELECT 1 FROM z WHERE i = a) ORDER BY a",
            "1",
        ),
        (
            "SELECT a, n FROM t FULL JOIN w USING (a), LATERAL (SELECT count(*) AS n FROM z WHERE z.i >= a) x ORDER BY a, n",
            "1 2; 2 1; 2 1; 3 1; 7 1; NULL 0",
        ),
        (
            "SELECT a, i FROM t LEFT JOIN w USING (a) LEFT JOIN LATERAL (SELECT i FROM z WHERE i = a) x ON true ORDER BY a, i",
            "1 1; 2 NULL; 2 NULL; 3 NULL; NULL NULL",
        ),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = create_parallel_session();
    run_all(&ctx, &setup).await;
    let sql = "SELECT (SELECT count(*) FROM z WHERE i < a) FROM t LEFT JOIN w USING (a), w AS x";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("No field named a") || e.contains("Ambiguous reference"), "{e}");
}

/// Without `merge_values` in `merged/tables.rs`, the time to plan would double with each join.
#[tokio::test]
async fn many_tables_are_joined_by_full_joins_with_using() {
    let ctx = create_parallel_session();
    let joins: Vec<String> = (2..=24)
        .map(|i| format!(" FULL JOIN (SELECT {} AS k, {i} AS v{i}) t{i} USING (k)", i % 5))
        .collect();
    let sql = format!(
        "SELECT k, v24 FROM (SELECT 1 AS k) t1{} WHERE k > 1 ORDER BY k, v24",
        joins.concat()
    );
    assert_eq!(rows_or_error(&ctx, &sql).await, "2 NULL; 3 NULL; 4 24");
}

/// The tables in the NATURAL joins use columns of an outer query, which also has a column `k`.
#[tokio::test]
async fn natural_joins_merge_columns_of_correlated_tables() {
    let setup = [
        "CREATE TABLE c AS SELECT * FROM (VALUES (1, 5), (3, 6), (4, NULL)) v(k, z)",
        "CREATE TABLE e AS SELECT * FROM (VALUES (2, 1), (4, 4), (5, 3)) v(k, j)",
        "CREATE TABLE a AS SELECT * FROM (VALUES (1, 10), (2, 20), (4, 40)) v(k, x)",
    ];
    let cases = [
        (
            "SELECT w.* FROM c, LATERAL (SELECT k, j FROM (SELECT c.k + 1 AS k) p NATURAL JOIN e) w ORDER BY k",
            "2 1; 4 4; 5 3",
        ),
        (
            "SELECT w.* FROM c, LATERAL (SELECT * FROM e NATURAL RIGHT JOIN (SELECT c.k AS k) q) w ORDER BY k",
            "1 NULL; 3 NULL; 4 4",
        ),
        (
            "SELECT c.k, (SELECT max(k) FROM (SELECT * FROM a WHERE x > c.z + 5) p NATURAL LEFT JOIN e) AS m FROM c ORDER BY k",
            "1 4; 3 4; 4 NULL",
        ),
        (
            "SELECT c.k, (SELECT max(j) FROM (VALUES (c.k + 1, 7)) p(k, v) NATURAL JOIN e) AS m FROM c ORDER BY k",
            "1 1; 3 4; 4 3",
        ),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = create_parallel_session();
    run_all(&ctx, &setup).await;
    let sql = "SELECT (SELECT max(k) FROM (SELECT a.k, c.z + 1 FROM a) p NATURAL JOIN e) FROM c";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("write USING with the columns instead of NATURAL"), "{e}");
}

/// GROUP BY keeps the merged column, but not the columns of the tables that it merges.
#[tokio::test]
async fn correlated_subqueries_may_use_grouped_merged_columns() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (2), (NULL)) v(a)",
        "CREATE TABLE w AS SELECT * FROM (VALUES (2), (7)) v(a)",
        "CREATE TABLE z AS SELECT * FROM (VALUES (1), (7)) v(i)",
        "CREATE VIEW few AS SELECT a, count(*) n FROM t FULL JOIN w USING (a) GROUP BY a HAVING EXISTS (SELECT 1 FROM z WHERE z.i = a)",
    ];
    let grouped = "FROM t FULL JOIN w USING (a) GROUP BY a";
    let cases = [
        (
            "SELECT a, count(*) {} HAVING EXISTS (SELECT 1 FROM z WHERE z.i = a) ORDER BY a",
            "1 1; 7 1",
        ),
        ("SELECT a {} HAVING NOT EXISTS (SELECT 1 FROM z WHERE z.i = a) ORDER BY a", "2; NULL"),
        ("SELECT a {} HAVING a IN (SELECT i FROM z WHERE i >= a) ORDER BY a", "1; 7"),
        (
            "SELECT a, (SELECT count(*) FROM z WHERE z.i = a) n {} ORDER BY a",
            "1 1; 2 0; 7 1; NULL 0",
        ),
        (
            "SELECT a {} HAVING count(*) > (SELECT count(*) FROM z WHERE z.i = a) ORDER BY a",
            "2; NULL",
        ),
        (
            "SELECT a, sum(a) OVER () s {} QUALIFY EXISTS (SELECT 1 FROM z WHERE z.i = a) ORDER BY a",
            "1 10; 7 10",
        ),
        // The query between the innermost and the outermost query has no column `a` that would hide
        // the merged one.
        (
            "SELECT a {} HAVING EXISTS (SELECT 1 FROM z WHERE EXISTS (SELECT 1 FROM z y WHERE y.i = a AND y.i = z.i)) ORDER BY a",
            "1; 7",
        ),
        // The column `a` of the inner table hides the merged one.
        ("SELECT a {} HAVING EXISTS (SELECT 1 FROM w WHERE a = 7) AND a < 2", "1"),
        ("SELECT a, n FROM few ORDER BY a", "1 1; 7 1"),
        (
            "SELECT a FROM t FULL JOIN w USING (a) GROUP BY ROLLUP (a) HAVING EXISTS (SELECT 1 FROM z WHERE z.i = a) ORDER BY a",
            "1; 7",
        ),
    ];
    let cases: Vec<(String, &str)> =
        cases.iter().map(|(sql, rows)| (sql.replace("{}", grouped), *rows)).collect();
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}
