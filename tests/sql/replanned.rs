//! Views and prepared statements over tables that change, and arguments of EXECUTE.

use super::*;

async fn expect_texts(ctx: &SessionContext, cases: &[(&str, &str)]) {
    for (sql, expected) in cases {
        assert_eq!(rows_or_error(ctx, sql).await, *expected, "{sql}");
    }
}

#[tokio::test]
async fn views_read_the_current_tables() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &[
            "CREATE TABLE a(x INT)",
            "INSERT INTO a VALUES (1)",
            "CREATE VIEW v AS FROM a",
            "CREATE VIEW w(y) AS SELECT x * 10 FROM v WHERE x IS DISTINCT FROM 5 AND x > 0",
        ],
    )
    .await;
    expect_texts(&ctx, &[("FROM v", "1"), ("FROM w", "10")]).await;
    run_all(&ctx, &["INSERT INTO a VALUES (2)"]).await;
    expect_texts(&ctx, &[("FROM v ORDER BY x", "1; 2"), ("SELECT sum(y) FROM w", "30")]).await;
    run_all(&ctx, &["DROP TABLE a"]).await;
    for sql in ["FROM v", "SELECT 1 FROM w", "SELECT (SELECT max(y) FROM w)"] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(
            e.contains("the view v cannot be planned with the current tables")
                && e.contains("a' not found"),
            "{sql}\n{e}"
        );
    }
    run_all(&ctx, &["CREATE TABLE a AS SELECT 7 AS x, 'a' AS s"]).await;
    expect_texts(
        &ctx,
        &[
            ("FROM v", "7 a"),
            ("SELECT v.x, w.y FROM v, w AS w", "7 70"),
            ("WITH a AS (SELECT 3 AS x) FROM v", "7 a"),
            ("WITH v AS (SELECT 3 AS x) FROM v", "3"),
        ],
    )
    .await;
    run_all(&ctx, &["CREATE OR REPLACE VIEW v AS SELECT x + 1 AS x FROM a"]).await;
    expect_texts(&ctx, &[("FROM v", "8"), ("FROM w", "80")]).await;
    run_all(&ctx, &["CREATE OR REPLACE TABLE a AS SELECT 5 AS x", "DROP VIEW v"]).await;
    let e = rows_or_error(&ctx, "FROM w").await;
    assert!(e.contains("the view w cannot be planned with the current tables"), "{e}");
}

#[tokio::test]
async fn a_view_may_replace_a_view_that_it_reads() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &[
            "CREATE VIEW v AS SELECT 1 AS x",
            "CREATE VIEW w AS SELECT x FROM v",
            "CREATE OR REPLACE VIEW v AS SELECT x + 1 AS x FROM w",
        ],
    )
    .await;
    expect_texts(&ctx, &[("FROM v", "2"), ("FROM v", "2"), ("FROM w", "1"), ("FROM v", "2")]).await;
}

#[tokio::test]
async fn a_view_reads_the_current_tables_after_a_failed_create_view() {
    let ctx = create_parallel_session();
    let setup = ["CREATE TABLE a AS SELECT 1 AS x", "CREATE VIEW v AS SELECT x FROM a"];
    run_all(&ctx, &setup).await;
    for failing in [
        "CREATE VIEW v AS SELECT x + 1 AS x FROM a",
        "CREATE VIEW v AS SELECT x + 2 AS x FROM a",
        "CREATE OR REPLACE VIEW v AS SELECT x, x AS x FROM a",
    ] {
        let e = rows_or_error(&ctx, failing).await;
        assert!(e.contains("already exists") || e.contains("x"), "{failing}: {e}");
    }
    run_all(&ctx, &["CREATE OR REPLACE TABLE a AS SELECT 7 AS x"]).await;
    expect_texts(&ctx, &[("FROM v", "7")]).await;
    run_all(&ctx, &["CREATE OR REPLACE VIEW v AS SELECT x + 1 AS x FROM a"]).await;
    run_all(&ctx, &["CREATE OR REPLACE TABLE a AS SELECT 8 AS x"]).await;
    expect_texts(&ctx, &[("FROM v", "9")]).await;
}

/// CREATE OR REPLACE VIEW may read the view that it replaces. The new view keeps its plan, and is
/// not planned again when it is read.
#[tokio::test]
async fn a_view_that_replaces_its_table_has_the_types_of_its_query() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &[
            "CREATE VIEW v AS SELECT 1e30::DOUBLE AS f, 1.5::DECIMAL(5, 2) AS d, DATE '2020-03-01' AS a,
                '9999-01-01'::TIMESTAMP(3) AS z, '2020-01-01'::TIMESTAMP(9) AS n",
            "CREATE OR REPLACE VIEW v AS SELECT a - 1 AS a, f > d AS x, z > n AS y FROM v",
        ],
    )
    .await;
    expect_texts(
        &ctx,
        &[("SELECT arrow_typeof(a), a, x, y FROM v", "Date32 2020-02-29 true true")],
    )
    .await;
}

#[tokio::test]
async fn views_read_new_files_of_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let copy =
        |n: usize| format!("COPY (SELECT {n} AS x) TO '{}/{n}.parquet'", display_path(dir.path()));
    run_all(&ctx, &[&copy(1), &format!("CREATE VIEW v AS FROM '{}/'", display_path(dir.path()))])
        .await;
    expect_texts(&ctx, &[("FROM v ORDER BY x", "1")]).await;
    run_all(&ctx, &[&copy(2)]).await;
    expect_texts(&ctx, &[("FROM v ORDER BY x", "1; 2")]).await;
}

#[tokio::test]
async fn arguments_of_execute_are_not_rounded() {
    let ctx = create_parallel_session();
    run_all(
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
    expect_texts(
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
        ("EXECUTE eq(1, 2)", "is 1, but the number of arguments is 2"),
        ("EXECUTE eq", "is 1, but the number of arguments is 0"),
        ("EXECUTE eq(x)", "the argument x is not a constant"),
        ("EXECUTE eq((SELECT 1))", "is not a constant"),
        ("EXECUTE typed($1)", "the argument $1 is not a constant"),
        ("EXECUTE eq($1 + 1)", "is not a constant"),
        ("EXECUTE other(1)", "other"),
        ("PREPARE eq AS SELECT 1", "already exists"),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(expected), "{sql}\n{e}");
    }
    run_all(&ctx, &["DROP TABLE t", "CREATE TABLE t AS SELECT 1 AS x"]).await;
    expect_texts(&ctx, &[("EXECUTE lt(9)", "1")]).await;
    run_all(&ctx, &["DEALLOCATE lt", "PREPARE lt AS SELECT 7 AS x"]).await;
    expect_texts(&ctx, &[("EXECUTE lt", "7")]).await;
    // A prepared statement belongs to its session.
    assert!(rows_or_error(&create_parallel_session(), "EXECUTE lt").await.contains("lt"));
}

#[tokio::test]
async fn a_failed_prepare_does_not_define_the_name() {
    let ctx = create_parallel_session();
    for (sql, expected) in [
        ("PREPARE q AS SELECT x FROM later", "later"),
        ("EXECUTE q", "does not exist"),
        ("CREATE TABLE later AS SELECT 1 AS x", ""),
        ("EXECUTE q", "does not exist"),
        ("PREPARE q AS SELECT 7 AS x", ""),
        ("EXECUTE q", "7"),
        ("EXECUTE Q", "7"),
        ("DEALLOCATE Q", ""),
        ("PREPARE Q AS SELECT 8 AS x", ""),
        ("EXECUTE q", "8"),
        ("PREPARE \"Q\" AS SELECT 9 AS x WHERE 9 = $1", ""),
        ("EXECUTE \"Q\"(9.5)", ""),
        ("EXECUTE \"Q\"(9)", "9"),
    ] {
        let found = rows_or_error(&ctx, sql).await;
        let same = if expected.is_empty() { found.is_empty() } else { found.contains(expected) };
        assert!(same, "{sql}: {found}");
    }
}

#[tokio::test]
async fn integer_arguments_are_not_positions() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &[
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 9), (2, 8)) v(a, b)",
            "PREPARE sorted AS SELECT a, b FROM t ORDER BY $1, a",
            "PREPARE grouped AS SELECT $1 AS a, count(*) AS n FROM (VALUES (1), (2)) v(x) GROUP BY a",
            "PREPARE page AS SELECT a FROM t ORDER BY a LIMIT $1 OFFSET $2",
            "PREPARE moment AS SELECT $1 > TIMESTAMP '2020-01-01'",
        ],
    )
    .await;
    expect_texts(
        &ctx,
        &[
            ("EXECUTE sorted(2)", "1 9; 2 8"),
            ("EXECUTE grouped(2)", "2 2"),
            ("EXECUTE page(1, 1)", "2"),
            ("EXECUTE moment(now())", "true"),
        ],
    )
    .await;
    for sql in ["EXECUTE sorted(random())", "EXECUTE sorted(count(*))"] {
        assert!(rows_or_error(&ctx, sql).await.contains("is not a constant"), "{sql}");
    }
}

#[tokio::test]
async fn views_have_the_types_of_their_queries() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &[
            "CREATE TABLE t AS SELECT 1e30::DOUBLE AS f, 1.5::DECIMAL(5, 2) AS d, 1 AS a, NULL::INT AS b",
            "CREATE VIEW v AS SELECT f > d AS c FROM t",
            "CREATE VIEW w AS SELECT '9999-01-01'::TIMESTAMP(3) > '2020-01-01'::TIMESTAMP(9) AS c",
            "CREATE VIEW x AS SELECT (a, b) IN (SELECT 1, NULL) AS c FROM t",
            "CREATE VIEW y AS SELECT DATE '2020-02-28' + a AS c, 2 + DATE '2020-03-01' AS d FROM t",
            "CREATE VIEW z AS SELECT DATE '2020-03-31' - a::BIGINT UNSIGNED * INTERVAL '1 month' AS c FROM t",
        ],
    )
    .await;
    expect_texts(&ctx, &[("FROM v", "true"), ("FROM w", "true"), ("FROM x", "NULL")]).await;
    let days = "SELECT arrow_typeof(c), c + 1, d - 1 FROM y";
    let months = "SELECT arrow_typeof(c), c FROM z";
    expect_texts(&ctx, &[(days, "Date32 2020-03-01 2020-03-02"), (months, "Date32 2020-02-29")])
        .await;
}

#[tokio::test]
async fn views_find_their_tables_where_they_were_created() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &[
            "CREATE TABLE t AS SELECT 1 AS x",
            "CREATE VIEW v AS SELECT x FROM t",
            "CREATE VIEW w AS SELECT x + 10 AS x FROM v",
            "CREATE SCHEMA s",
            "CREATE TABLE s.t AS SELECT 2 AS x",
            "SET datafusion.catalog.default_schema = 's'",
            "CREATE VIEW v AS SELECT x FROM t",
            "CREATE OR REPLACE TABLE public.t AS SELECT 3 AS x",
        ],
    )
    .await;
    expect_texts(&ctx, &[("FROM public.v", "3"), ("FROM v", "2"), ("FROM public.w", "13")]).await;
    run_all(&ctx, &["SET datafusion.catalog.default_schema = 'public'"]).await;
    expect_texts(&ctx, &[("FROM s.v", "2"), ("FROM v", "3"), ("FROM w", "13")]).await;
}

#[tokio::test]
async fn a_failed_create_view_does_not_move_a_view() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &[
            "CREATE SCHEMA a",
            "CREATE TABLE t AS SELECT 1 AS x",
            "CREATE VIEW a.v AS SELECT x FROM t",
            "CREATE SCHEMA b",
            "CREATE TABLE b.t AS SELECT 2 AS x",
            "SET datafusion.catalog.default_schema = 'b'",
        ],
    )
    .await;
    let e = rows_or_error(&ctx, "CREATE VIEW a.v AS SELECT x FROM t").await;
    assert!(e.contains("already exists"), "{e}");
    expect_texts(&ctx, &[("FROM a.v", "1")]).await;
    run_all(&ctx, &["CREATE OR REPLACE VIEW a.v AS SELECT x FROM t"]).await;
    expect_texts(&ctx, &[("FROM a.v", "2")]).await;
    run_all(&ctx, &["DROP VIEW a.v", "CREATE VIEW a.v AS SELECT x FROM public.t"]).await;
    expect_texts(&ctx, &[("FROM a.v", "1")]).await;
}

#[tokio::test]
async fn chains_of_views_are_planned_again() {
    let ctx = create_parallel_session();
    run_all(&ctx, &["CREATE VIEW v0 AS SELECT 0 AS x"]).await;
    for i in 1..30 {
        let last = i - 1;
        run_all(&ctx, &[&format!("CREATE VIEW v{i} AS SELECT x + 1 AS x FROM v{last}")]).await;
    }
    expect_texts(&ctx, &[("FROM v29", "29")]).await;
}

#[tokio::test]
async fn created_tables_keep_the_order_of_rows() {
    let ctx = create_parallel_session();
    run_all(&ctx, &["CREATE TABLE t AS SELECT value AS x FROM range(0, 100000)"]).await;
    expect_texts(&ctx, &[("SELECT x FROM t LIMIT 1 OFFSET 20000", "20000")]).await;
}

#[tokio::test]
async fn prepared_inserts_updates_and_deletes_change_tables() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &[
            "CREATE TABLE t (x INT)",
            "PREPARE add AS INSERT INTO t VALUES ($1), ($2)",
            "EXECUTE add(1, NULL)",
            "EXECUTE add(3, 4)",
        ],
    )
    .await;
    expect_texts(&ctx, &[("SELECT count(*), sum(x) FROM t", "4 8")]).await;
    run_all(
        &ctx,
        &[
            "PREPARE raise(INT) AS UPDATE t SET x = x + $1 WHERE x IS NOT NULL",
            "PREPARE cut AS DELETE FROM t WHERE x > $1 AND x NOT IN (SELECT $2)",
            "EXECUTE raise(10)",
            "EXECUTE cut(11, 14)",
        ],
    )
    .await;
    expect_texts(&ctx, &[("SELECT x FROM t ORDER BY x", "11; 14; NULL")]).await;
}

#[tokio::test]
async fn created_tables_accept_null() {
    let ctx = create_parallel_session();
    run_all(
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
    expect_texts(
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
        stock_batches(&ctx, sql).await.unwrap();
    }
    assert_eq!(stock_one(&ctx, "SELECT x FROM v").await, 1);
}

#[tokio::test]
async fn stock_execute_still_casts_its_arguments() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, "PREPARE p AS SELECT * FROM (VALUES (1), (2)) AS t(x) WHERE x = $1")
        .await
        .unwrap();
    assert_eq!(stock_ints(&ctx, "EXECUTE p(1.5)").await, [1]);
}

#[tokio::test]
async fn prepared_statements_may_have_lists_of_different_types() {
    let ctx = create_parallel_session();
    run_all(&ctx, &["PREPARE p AS SELECT [['a'], []] AS c", "PREPARE q AS SELECT [$1, 2.5] AS c"])
        .await;
    expect_texts(&ctx, &[("EXECUTE p", "[[a], []]"), ("EXECUTE q(1)", "[1.0, 2.5]")]).await;
}

#[tokio::test]
async fn distinct_on_may_be_prepared() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &[
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, [3, 1]), (2, [4]), (3, [2])) v(id, x)",
            "PREPARE bare AS SELECT DISTINCT ON (ragged_sum(x)) id FROM t WHERE id < $1 ORDER BY ragged_sum(x), id DESC",
            "PREPARE keyed AS SELECT DISTINCT ON (id > $1) id, x FROM t ORDER BY id > $1, id",
            "PREPARE within AS WITH w AS (SELECT DISTINCT ON (id % 2) id FROM t ORDER BY id % 2, id) SELECT id FROM w WHERE id IN (SELECT DISTINCT ON (x) id FROM t) ORDER BY id LIMIT $1",
            "PREPARE unsorted AS SELECT count(*) FROM (SELECT DISTINCT ON (x) id FROM t)",
        ],
    )
    .await;
    expect_texts(
        &ctx,
        &[
            ("EXECUTE bare(4)", "3; 2"),
            ("EXECUTE bare(3)", "2"),
            ("EXECUTE keyed(1)", "1 [3, 1]; 2 [4]"),
            ("EXECUTE within(5)", "1; 2"),
            ("EXECUTE unsorted", "3"),
        ],
    )
    .await;
}

/// When this test fails, `sql::statement::keys::prepared_distinct` can be removed.
#[tokio::test]
async fn stock_distinct_on_still_cannot_be_prepared() {
    use std::panic::AssertUnwindSafe;

    use futures::FutureExt;

    let ctx = SessionContext::new();
    let sql = "PREPARE p AS SELECT DISTINCT ON (x) x FROM (VALUES (1), (2)) AS t(x)";
    let run = stock_batches(&ctx, sql);
    assert!(!matches!(AssertUnwindSafe(run).catch_unwind().await, Ok(Ok(_))));
}

#[tokio::test]
async fn views_may_contain_any_subquery() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &[
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, [3, 1]), (2, [2])) v(id, x)",
            "CREATE VIEW r AS SELECT id, rank() OVER (ORDER BY (SELECT max(v) FROM unnest(t.x) AS u(v))) AS r FROM t",
            "CREATE VIEW i AS SELECT id, id IN (SELECT 2) AS b FROM t",
        ],
    )
    .await;
    expect_texts(
        &ctx,
        &[("FROM r ORDER BY id", "1 2; 2 1"), ("FROM i ORDER BY id", "1 false; 2 true")],
    )
    .await;
}
