//! WITH: names that hide others, MATERIALIZED, recursive queries.

use super::*;

#[tokio::test]
async fn an_inner_name_hides_an_outer_one() {
    expect_rows(
        &["CREATE TABLE t AS SELECT 7 AS v"],
        &[
            ("WITH x AS (SELECT 1 AS v) SELECT * FROM (WITH x AS (SELECT 2 AS v) SELECT v FROM x) y, x", "2 1"),
            ("WITH x AS (SELECT 1 AS v) SELECT (WITH x AS (SELECT 2 AS v) SELECT x.v FROM x), v FROM x", "2 1"),
            ("WITH x AS (SELECT 1 AS v), y AS (WITH x AS (SELECT 2 AS v) SELECT * FROM x) SELECT x.v, y.v FROM x, y", "1 2"),
            // The inner query reads the outer one before it hides it.
            ("WITH x AS (SELECT 1 AS v) SELECT * FROM (WITH x AS (SELECT v + 10 AS v FROM x) SELECT X.v FROM X) y", "11"),
            ("WITH x AS (SELECT 1 AS v) SELECT * FROM (WITH x AS (SELECT 2 AS v), z AS (SELECT v * 10 AS w FROM x AS q) SELECT w, x.v FROM z, x) y", "20 2"),
            ("WITH x AS (SELECT 1 AS v) SELECT * FROM (WITH x AS (SELECT 2 AS v) SELECT * FROM (WITH x AS (SELECT v + 1 AS v FROM x) FROM x)) y, x", "3 1"),
            ("WITH x AS (SELECT 1 AS v) SELECT * FROM (WITH RECURSIVE x AS (SELECT 2 AS v UNION ALL SELECT v + 1 FROM x WHERE v < 4) SELECT max(v) FROM x) y, x", "4 1"),
            ("WITH x(a) AS (SELECT 1) SELECT * FROM (WITH \"x\"(b) AS (SELECT 2) SELECT b FROM x) y, x", "2 1"),
            ("WITH t AS (SELECT v + 1 AS v FROM t) SELECT (WITH t AS (SELECT v + 1 AS v FROM t) SELECT v FROM t) FROM t", "9"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    let twice = rows_or_error(&ctx, "WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x").await;
    assert!(twice.contains("more than once"), "{twice}");
}

#[tokio::test]
async fn volatile_queries_may_be_materialized() {
    expect_rows(
        &[],
        &[
            (
                "WITH x AS MATERIALIZED (SELECT random() AS r) SELECT p.r = q.r FROM x p, x q",
                "true",
            ),
            ("WITH x AS NOT MATERIALIZED (SELECT 1 AS r) SELECT p.r = q.r FROM x p, x q", "true"),
        ],
    )
    .await;
}

#[tokio::test]
async fn several_recursive_branches_are_refused_by_name() {
    let ctx = serrate::sql::session();
    for union in ["UNION", "UNION ALL"] {
        let sql = format!(
            "WITH RECURSIVE r(n) AS (SELECT 1 {union} SELECT n + 1 FROM r WHERE n < 3 {union} SELECT n + 2 FROM r WHERE n < 3) SELECT * FROM r"
        );
        let refused = rows_or_error(&ctx, &sql).await;
        assert!(refused.contains("reads itself in more than one branch"), "{refused}");
    }
    expect_rows(
        &[],
        &[
            ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT 2 UNION SELECT n + 2 FROM r WHERE n < 3) SELECT * FROM r ORDER BY n", "1; 2; 3; 4"),
            ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + step FROM r, (VALUES (1), (2)) AS steps (step) WHERE n < 3) SELECT * FROM r ORDER BY n", "1; 2; 3; 4"),
            ("WITH RECURSIVE r AS (SELECT 1::INT AS n UNION ALL SELECT CASE WHEN n < 3 THEN n + 1 ELSE 9::SMALLINT END FROM r WHERE n < 5) SELECT * FROM r ORDER BY n", "1; 2; 3; 9"),
            ("WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM q WHERE EXISTS (SELECT 1 FROM (SELECT a FROM (VALUES (1), (2), (3)) v(a)) u WHERE u.a > q.n)) SELECT n FROM q ORDER BY n", "1; 2; 3"),
            ("WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM q WHERE EXISTS (SELECT 1 FROM (SELECT a + 1 AS a FROM range(3) v(a)) u WHERE u.a = q.n)) SELECT n FROM q ORDER BY n", "1; 2; 3; 4"),
        ],
    )
    .await;
}

const LISTS: &str =
    "WITH RECURSIVE r(l) AS (SELECT * FROM (VALUES ([1]), (NULL), ([]), ([3]), ([1])) v(l)
    UNION SELECT array_append(l, 1) FROM r WHERE cardinality(l) < 2)
    SELECT * FROM r";

#[tokio::test]
async fn recursive_unions_keep_every_new_row() {
    let nan = "'NaN'::DOUBLE";
    let floats = format!(
        "WITH RECURSIVE r(f) AS (SELECT * FROM (VALUES (0.0), (-0.0), ({nan}), (-{nan})) v(f)
            UNION SELECT -f FROM r) SELECT * FROM r ORDER BY f"
    );
    let float_lists = format!(
        "WITH RECURSIVE r(k, f) AS (SELECT * FROM (VALUES (1, [0.0]), (1, [-0.0]), (1, [{nan}]), (1, [-{nan}]), (2, [0.0])) v(k, f)
            UNION SELECT k, f FROM r) SELECT k, f FROM r ORDER BY k, f"
    );
    let twice = format!("SELECT count(*) FROM ({LISTS}) a, ({LISTS}) b");
    expect_rows(
        &[],
        &[
            (LISTS, "[1]; NULL; []; [3]; [1, 1]; [3, 1]"),
            (floats.as_str(), "0.0; NaN"),
            (float_lists.as_str(), "1 [0.0]; 1 [NaN]; 2 [0.0]"),
            (twice.as_str(), "36"),
            ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n % 5 + 1 FROM r) SELECT * FROM r", "1; 2; 3; 4; 5"),
            ("WITH RECURSIVE r(s, d) AS (SELECT {'a': 1}, DATE '2024-01-01' UNION SELECT s, d FROM r) SELECT count(*) FROM r", "1"),
        ],
    )
    .await;
    // A second run of one plan starts without the rows of the first.
    let ctx = serrate::sql::session();
    let plan = serrate::sql::sql(&ctx, LISTS).await.unwrap().create_physical_plan().await.unwrap();
    for _ in 0..2 {
        let batches =
            datafusion::physical_plan::collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 6);
    }
}

/// When this fails, `sql::workarounds::joins_and_unions` can go.
#[tokio::test]
async fn stock_recursive_unions_still_lose_rows() {
    let ctx = SessionContext::new();
    let rows = LISTS
        .replace("[]", "make_array()")
        .replace("[1]", "make_array(1)")
        .replace("[3]", "make_array(3)");
    let counted = format!("SELECT count(*) FROM ({rows})");
    assert!(stock_one(&ctx, &counted).await < 6);
}

#[tokio::test]
async fn recursive_parts_keep_the_type_of_the_first_part() {
    let ctx = serrate::sql::session();
    for sql in [
        "WITH RECURSIVE q AS (SELECT 1 n UNION ALL SELECT n + 0.5 FROM q WHERE n < 3) SELECT n FROM q",
        "WITH RECURSIVE q(n) AS (SELECT 1 UNION SELECT n * 2.5 FROM q WHERE n < 30) SELECT n FROM q",
        "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 0.5::DECIMAL(3, 1) FROM q WHERE n < 3) SELECT n FROM q",
        "SELECT * FROM (WITH RECURSIVE p AS (SELECT 1 AS a), q(n) AS (SELECT a FROM p UNION ALL SELECT n / 2.0 FROM q, p WHERE n > 1) SELECT n FROM q)",
        "CREATE VIEW w AS WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 0.5 FROM q WHERE n < 3) SELECT n FROM q",
    ] {
        let message = rows_or_error(&ctx, sql).await;
        assert!(message.contains("column n of the recursive query q"), "{sql}\n{message}");
        assert!(message.contains("lose their fractions"), "{sql}\n{message}");
    }
    expect_rows(
        &[],
        &[
            ("WITH RECURSIVE q AS (SELECT 1::DOUBLE n UNION ALL SELECT n + 0.5 FROM q WHERE n < 2) SELECT n FROM q ORDER BY n", "1.0; 1.5; 2.0"),
            ("WITH RECURSIVE q(n) AS (SELECT 100 UNION ALL SELECT floor(n / 2.0) FROM q WHERE n > 3) SELECT n FROM q ORDER BY n", "3; 6; 12; 25; 50; 100"),
            ("WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT CAST(n * 2.0 AS BIGINT) FROM q WHERE n < 3) SELECT n FROM q ORDER BY n", "1; 2; 4"),
            ("WITH RECURSIVE q(n) AS (SELECT 1::SMALLINT UNION ALL SELECT n + 1 FROM q WHERE n < 3) SELECT n FROM q ORDER BY n", "1; 2; 3"),
            ("WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT 0.5) SELECT n FROM q ORDER BY n", "0.5; 1.0"),
        ],
    )
    .await;
}

#[tokio::test]
async fn recursive_parts_read_the_last_rows_once() {
    let ctx = serrate::sql::session();
    let u = "(VALUES (1), (2), (3)) u(a)";
    for step in [
        format!("SELECT (SELECT min(u.a) FROM {u} WHERE u.a > q.n) FROM q WHERE n < 3"),
        format!(
            "SELECT l.x FROM q, LATERAL (SELECT min(u.a) x FROM {u} WHERE u.a > q.n) l WHERE x > 0"
        ),
        "SELECT q.n + 1 FROM q JOIN q r ON q.n = r.n WHERE q.n < 3".to_owned(),
    ] {
        let sql = format!("WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL {step}) SELECT n FROM q");
        let message = rows_or_error(&ctx, &sql).await;
        assert!(message.contains("reads q more than once"), "{sql}\n{message}");
    }
    let joined = format!(
        "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT min(u.a) FROM q JOIN {u} ON u.a > q.n GROUP BY q.n) SELECT n FROM q ORDER BY n"
    );
    let exists = format!(
        "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE EXISTS (SELECT 1 FROM {u} WHERE u.a = q.n)) SELECT n FROM q ORDER BY n"
    );
    expect_rows(&[], &[(joined.as_str(), "1; 2; 3"), (exists.as_str(), "1; 2; 3; 4")]).await;
}

#[tokio::test]
async fn a_setting_that_turns_recursion_off_is_named() {
    let ctx = serrate::sql::session();
    let off = "SET datafusion.execution.enable_recursive_ctes = false";
    serrate::sql::sql(&ctx, off).await.unwrap().collect().await.unwrap();
    let sql =
        "WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM q WHERE n < 3) FROM q";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("enable_recursive_ctes = true"), "{e}");
}
