//! Views and prepared statements over tables that change, and arguments of EXECUTE.

use super::*;

async fn run(ctx: &SessionContext, statements: &[&str]) {
    for sql in statements {
        serrate::sql::sql(ctx, sql).await.unwrap().collect().await.unwrap();
    }
}

async fn expect(ctx: &SessionContext, cases: &[(&str, &str)]) {
    for (sql, expected) in cases {
        assert_eq!(rows_or_error(ctx, sql).await, *expected, "{sql}");
    }
}

#[tokio::test]
async fn views_read_the_tables_of_today() {
    let ctx = four();
    run(
        &ctx,
        &[
            "CREATE TABLE a(x INT)",
            "INSERT INTO a VALUES (1)",
            "CREATE VIEW v AS FROM a",
            "CREATE VIEW w(y) AS SELECT x * 10 FROM v WHERE x IS DISTINCT FROM 5 AND x > 0",
        ],
    )
    .await;
    expect(&ctx, &[("FROM v", "1"), ("FROM w", "10")]).await;
    run(&ctx, &["INSERT INTO a VALUES (2)"]).await;
    expect(&ctx, &[("FROM v ORDER BY x", "1; 2"), ("SELECT sum(y) FROM w", "30")]).await;
    run(&ctx, &["DROP TABLE a"]).await;
    for sql in ["FROM v", "SELECT 1 FROM w", "SELECT (SELECT max(y) FROM w)"] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(
            e.contains("the view v cannot be planned anew") && e.contains("a' not found"),
            "{sql}\n{e}"
        );
    }
    run(&ctx, &["CREATE TABLE a AS SELECT 7 AS x, 'a' AS s"]).await;
    expect(
        &ctx,
        &[
            ("FROM v", "7 a"),
            ("SELECT v.x, w.y FROM v, w AS w", "7 70"),
            ("WITH a AS (SELECT 3 AS x) FROM v", "7 a"),
            ("WITH v AS (SELECT 3 AS x) FROM v", "3"),
        ],
    )
    .await;
    run(&ctx, &["CREATE OR REPLACE VIEW v AS SELECT x + 1 AS x FROM a"]).await;
    expect(&ctx, &[("FROM v", "8"), ("FROM w", "80")]).await;
    run(&ctx, &["CREATE OR REPLACE TABLE a AS SELECT 5 AS x", "DROP VIEW v"]).await;
    let e = rows_or_error(&ctx, "FROM w").await;
    assert!(e.contains("the view w cannot be planned anew"), "{e}");
}

#[tokio::test]
async fn a_view_may_replace_a_view_that_it_reads() {
    let ctx = four();
    run(
        &ctx,
        &[
            "CREATE VIEW v AS SELECT 1 AS x",
            "CREATE VIEW w AS SELECT x FROM v",
            "CREATE OR REPLACE VIEW v AS SELECT x + 1 AS x FROM w",
        ],
    )
    .await;
    expect(&ctx, &[("FROM v", "2"), ("FROM v", "2"), ("FROM w", "1"), ("FROM v", "2")]).await;
}

#[tokio::test]
async fn views_see_new_files_of_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = four();
    let copy = |n: usize| format!("COPY (SELECT {n} AS x) TO '{}/{n}.parquet'", show(dir.path()));
    run(&ctx, &[&copy(1), &format!("CREATE VIEW v AS FROM '{}/'", show(dir.path()))]).await;
    expect(&ctx, &[("FROM v ORDER BY x", "1")]).await;
    run(&ctx, &[&copy(2)]).await;
    expect(&ctx, &[("FROM v ORDER BY x", "1; 2")]).await;
}

#[tokio::test]
async fn arguments_keep_their_values() {
    let ctx = four();
    run(
        &ctx,
        &[
            "CREATE TABLE t AS SELECT * FROM range(5) AS r(x)",
            "PREPARE eq AS SELECT x FROM t WHERE x = $1",
            "PREPARE lt AS SELECT x FROM t WHERE x < $1 ORDER BY x",
            "PREPARE typed(INT) AS SELECT x FROM t WHERE x = $1",
            "PREPARE top AS SELECT x + $2 AS y FROM t ORDER BY x LIMIT $1",
            "PREPARE twice(VARCHAR) AS SELECT $1 || $1 AS a",
        ],
    )
    .await;
    expect(
        &ctx,
        &[
            ("EXECUTE eq(1.5)", ""),
            ("EXECUTE eq(1)", "1"),
            ("EXECUTE eq(NULL)", ""),
            ("EXECUTE lt(1.5)", "0; 1"),
            ("EXECUTE lt(-1)", ""),
            ("EXECUTE typed('3')", "3"),
            ("EXECUTE top(2, 0.5)", "0.5; 1.5"),
            ("EXECUTE top(1 + 0, 1)", "1"),
            ("EXECUTE twice('ab')", "abab"),
        ],
    )
    .await;
    for (sql, expected) in [
        ("EXECUTE eq(1, 2)", "has 1 parameters, but EXECUTE has 2 arguments"),
        ("EXECUTE eq", "has 1 parameters, but EXECUTE has 0 arguments"),
        ("EXECUTE eq(x)", "the argument x is not a constant"),
        ("EXECUTE eq((SELECT 1))", "is not a constant"),
        ("EXECUTE other(1)", "other"),
        ("PREPARE eq AS SELECT 1", "already exists"),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(expected), "{sql}\n{e}");
    }
    run(&ctx, &["DROP TABLE t", "CREATE TABLE t AS SELECT 1 AS x"]).await;
    expect(&ctx, &[("EXECUTE lt(9)", "1")]).await;
    run(&ctx, &["DEALLOCATE lt", "PREPARE lt AS SELECT 7 AS x"]).await;
    expect(&ctx, &[("EXECUTE lt", "7")]).await;
    // Another session has statements of its own.
    assert!(rows_or_error(&four(), "EXECUTE lt").await.contains("lt"));
}

#[tokio::test]
async fn prepared_changes_change_tables() {
    let ctx = four();
    run(
        &ctx,
        &[
            "CREATE TABLE t (x INT)",
            "PREPARE add AS INSERT INTO t VALUES ($1), ($2)",
            "EXECUTE add(1, NULL)",
            "EXECUTE add(3, 4)",
        ],
    )
    .await;
    expect(&ctx, &[("SELECT count(*), sum(x) FROM t", "4 8")]).await;
}

#[tokio::test]
async fn tables_of_queries_take_null() {
    let ctx = four();
    run(
        &ctx,
        &[
            "CREATE TABLE t AS SELECT 1 AS x, 'a' AS s, [1] AS l, count(*) AS n ORDER BY 1",
            "INSERT INTO t VALUES (NULL, NULL, NULL, NULL)",
            "CREATE OR REPLACE TABLE u AS FROM t",
            "INSERT INTO u VALUES (NULL, NULL, NULL, NULL)",
            "CREATE TABLE d (x INT NOT NULL, y INT)",
        ],
    )
    .await;
    expect(
        &ctx,
        &[
            ("FROM t ORDER BY x", "1 a [1] 1; NULL NULL NULL NULL"),
            ("SELECT count(*), count(x), count(l) FROM u", "3 1 1"),
            (
                "SELECT is_nullable FROM information_schema.columns WHERE table_name = 'd'",
                "NO; YES",
            ),
        ],
    )
    .await;
    let e = rows_or_error(&ctx, "INSERT INTO d VALUES (NULL, 1)").await;
    assert!(e.contains("non-nullable"), "{e}");
}

#[tokio::test]
async fn stock_views_still_keep_replaced_tables() {
    let ctx = SessionContext::new();
    for sql in [
        "CREATE TABLE a AS SELECT 1 AS x",
        "CREATE VIEW v AS SELECT x FROM a",
        "CREATE OR REPLACE TABLE a AS SELECT 2 AS x",
    ] {
        batches(&ctx, sql).await.unwrap();
    }
    assert_eq!(one(&ctx, "SELECT x FROM v").await, 1);
}

#[tokio::test]
async fn stock_execute_still_casts_its_arguments() {
    let ctx = SessionContext::new();
    batches(&ctx, "PREPARE p AS SELECT * FROM (VALUES (1), (2)) AS t(x) WHERE x = $1")
        .await
        .unwrap();
    assert_eq!(ints(&ctx, "EXECUTE p(1.5)").await, [1]);
}
