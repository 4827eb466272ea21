//! Columns of one name in a SELECT and in the inputs of set operations.

use super::*;

async fn names(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let frame = serrate::sql::sql(ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    frame.schema().fields().iter().map(|f| f.name().clone()).collect()
}

#[tokio::test]
async fn columns_of_one_name_are_columns() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(x, y)"],
        &[
            ("SELECT EXISTS (SELECT 1), EXISTS (SELECT 2 WHERE false)", "true false"),
            ("SELECT x IN (SELECT 1), x IN (SELECT 2) FROM t ORDER BY x", "true false; false true"),
            ("SELECT NOT EXISTS (SELECT 1), NOT EXISTS (SELECT 1)", "false false"),
            ("SELECT (SELECT 1), (SELECT 1)", "1 1"),
            ("SELECT (SELECT max(x) FROM t), (SELECT max(x) FROM t WHERE y < 20)", "2 1"),
            (
                "SELECT x, EXISTS (SELECT 1 FROM t u WHERE u.x > t.x), EXISTS (SELECT 1 FROM t u WHERE u.x < t.x) FROM t ORDER BY x",
                "1 true false; 2 false true",
            ),
            ("SELECT 1, 1", "1 1"),
            ("SELECT x, x, t.x, X FROM t ORDER BY x", "1 1 1 1; 2 2 2 2"),
            ("SELECT sum(x), sum(x) FROM t", "3 3"),
            ("SELECT count(*), count(*) FROM t", "2 2"),
            ("SELECT x, x, count(*) FROM t GROUP BY x ORDER BY x", "1 1 1; 2 2 1"),
            ("SELECT *, x FROM t ORDER BY y", "1 10 1; 2 20 2"),
            ("SELECT x, * FROM t ORDER BY y", "1 1 10; 2 2 20"),
            ("SELECT *, t.x, y FROM t ORDER BY y", "1 10 1 10; 2 20 2 20"),
            ("WITH c AS (SELECT * FROM t) SELECT *, x FROM c ORDER BY y", "1 10 1; 2 20 2"),
            ("SELECT DISTINCT x, x FROM t ORDER BY x", "1 1; 2 2"),
            ("SELECT x::INT, x::SMALLINT, (x)::VARCHAR, CAST(x AS BIGINT) FROM t ORDER BY y", "1 1 1 1; 2 2 2 2"),
            ("SELECT [x, y][1:2], [x, y][:2], [x, y][1:] FROM t WHERE x = 1", "[1, 10] [1, 10] [1, 10]"),
            ("SELECT len([x]), array_length([x]), length([x]) FROM t WHERE x = 1", "1 1 1"),
            ("SELECT mean(x), mean(x) FILTER (WHERE x > 1), mean(DISTINCT x) FROM t", "1.5 2.0 1.5"),
            ("SELECT quantile_cont(x, 0.5), percentile_cont(x, 0.5) FROM t", "1.5 1.5"),
            ("SELECT x::INT = 1, x = 1 FROM t ORDER BY y", "true true; false false"),
        ],
    )
    .await;
}

#[tokio::test]
async fn set_operations_go_by_place_behind_stars_too() {
    let two = "(VALUES (1)) a(x), (VALUES (2)) b(x)";
    let cases = [
        (format!("SELECT * FROM {two} UNION SELECT 5, 6 ORDER BY 1"), "1 2; 5 6"),
        (format!("SELECT 5, 6 UNION SELECT * FROM {two} ORDER BY 1"), "1 2; 5 6"),
        (format!("SELECT a.*, b.* FROM {two} UNION ALL SELECT 5, 6 ORDER BY 1"), "1 2; 5 6"),
        (format!("SELECT a.*, b.* FROM {two} EXCEPT SELECT 1, 3"), "1 2"),
        (format!("SELECT * FROM (SELECT * FROM {two}) INTERSECT SELECT 1, 2"), "1 2"),
        (format!("SELECT * FROM {two} UNION SELECT * FROM {two}"), "1 2"),
        (
            format!("FROM {two} UNION ALL SELECT 5, 6 UNION ALL SELECT 7, 8 ORDER BY 1"),
            "1 2; 5 6; 7 8",
        ),
        (
            format!(
                "WITH c AS (SELECT * FROM {two} UNION ALL SELECT 5, 6) SELECT * FROM c ORDER BY 1"
            ),
            "1 2; 5 6",
        ),
        (
            format!(
                "WITH c(p, q) AS (SELECT * FROM {two}) SELECT *, p FROM c UNION ALL SELECT 5, 6, 7 ORDER BY 1"
            ),
            "1 2 1; 5 6 7",
        ),
        ("SELECT *, x FROM (VALUES (1)) a(x) UNION ALL SELECT 5, 6 ORDER BY 1".into(), "1 1; 5 6"),
        (
            format!(
                "SELECT count(*) FROM (SELECT * FROM {two} UNION ALL (SELECT * FROM {two} UNION ALL SELECT 3, 4))"
            ),
            "3",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn the_first_of_a_name_keeps_it() {
    let ctx = four();
    assert_eq!(names(&ctx, "SELECT x, x FROM (VALUES (1)) t(x)").await, ["x", "x_1"]);
    assert_eq!(names(&ctx, "SELECT *, x FROM (VALUES (1)) t(x)").await, ["x", "x_1"]);
    assert_eq!(
        names(&ctx, "SELECT a.x, b.x FROM (VALUES (1)) a(x), (VALUES (1)) b(x)").await,
        ["x", "x"]
    );
    let found = names(&ctx, "SELECT EXISTS (SELECT 1), EXISTS (SELECT 2)").await;
    assert_eq!(found, ["EXISTS (SELECT 1)", "EXISTS (SELECT 2)"]);
    let found =
        names(&ctx, "SELECT * FROM (VALUES (1)) a(x), (VALUES (2)) b(x) UNION SELECT 5, 6").await;
    assert_eq!(found, ["x", "x_1"]);
}
