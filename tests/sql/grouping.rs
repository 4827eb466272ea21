//! ROLLUP, CUBE and GROUPING SETS with tuples, positions and one another in them.

use super::*;

const TABLE: &str =
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 2, 5), (1, 3, 5), (2, 2, 6)) v(a, b, c)";

#[tokio::test]
async fn tuples_are_one_part_of_a_set() {
    let by = |groups: &str| {
        format!(
            "SELECT a, b, count(*) FROM t GROUP BY {groups} ORDER BY a NULLS LAST, b NULLS LAST, 3"
        )
    };
    let pairs = "1 2 1; 1 3 1; 2 2 1";
    let of_a = "1 2 1; 1 3 1; 1 NULL 2; 2 2 1; 2 NULL 1";
    let cases = [
        ("ROLLUP ((a, b))", format!("{pairs}; NULL NULL 3")),
        ("ROLLUP ((a), b)", format!("{of_a}; NULL NULL 3")),
        ("ROLLUP (a, (a, b))", format!("{of_a}; NULL NULL 3")),
        ("CUBE ((a, b))", format!("{pairs}; NULL NULL 3")),
        (
            "CUBE ((a, b), c)",
            "1 2 1; 1 2 1; 1 3 1; 1 3 1; 2 2 1; 2 2 1; NULL NULL 1; NULL NULL 2; NULL NULL 3"
                .into(),
        ),
        ("GROUPING SETS ((a, b), a, ())", format!("{of_a}; NULL NULL 3")),
        ("GROUPING SETS (ROLLUP (a, b))", format!("{of_a}; NULL NULL 3")),
        ("GROUPING SETS ((a, b), ROLLUP ((a)))", format!("{of_a}; NULL NULL 3")),
        ("GROUPING SETS (CUBE ((a, b)))", format!("{pairs}; NULL NULL 3")),
        ("(a, b)", pairs.into()),
        ("a, (b)", pairs.into()),
        ("a, ROLLUP ((b, c))", of_a.into()),
        ("a, b, ()", pairs.into()),
        ("ROLLUP (1, 2)", format!("{of_a}; NULL NULL 3")),
        ("ROLLUP ((1, 2))", format!("{pairs}; NULL NULL 3")),
        ("GROUPING SETS ((1, 2), 1)", of_a.into()),
    ];
    let cases = cases.map(|(groups, expected)| (by(groups), expected));
    let cases: Vec<(&str, &str)> =
        cases.iter().map(|(sql, rows)| (sql.as_str(), rows.as_str())).collect();
    expect_rows(&[TABLE], &cases).await;
}

#[tokio::test]
async fn grouping_tells_sets_apart_and_none_is_one_row() {
    expect_rows(
        &[TABLE],
        &[
            (
                "SELECT a, grouping(a), grouping(b), sum(c) FROM t GROUP BY ROLLUP ((a, b)) ORDER BY 2, 1, 4",
                "1 0 0 5; 1 0 0 5; 2 0 0 6; NULL 1 1 16",
            ),
            ("SELECT count(*) FROM t GROUP BY ()", "3"),
            ("SELECT count(*) FROM t WHERE a > 9 GROUP BY ()", "0"),
            ("SELECT a + b AS s, count(*) FROM t GROUP BY ROLLUP ((s)) ORDER BY s NULLS LAST", "3 1; 4 2; NULL 3"),
        ],
    )
    .await;
    let ctx = four();
    let parts: Vec<String> = (0..13).map(|i| format!("(a, a + {i})")).collect();
    let sql = format!("SELECT 1 FROM (VALUES (1)) t(a) GROUP BY CUBE ({})", parts.join(", "));
    let e = serrate::sql::sql(&ctx, &sql).await.unwrap_err().to_string();
    assert!(e.contains("CUBE of 13 columns has more than 4096 grouping sets"), "{e}");
}

const INTEGERS: &str = "SELECT 5 AS p, count(*) AS n FROM (VALUES (1), (2)) t(a) GROUP BY p";

#[tokio::test]
async fn integers_with_a_name_are_no_positions() {
    expect_rows(
        &[TABLE],
        &[
            (INTEGERS, "5 2"),
            ("SELECT 3 AS p, a, count(*) FROM t GROUP BY p, a ORDER BY a", "3 1 2; 3 2 1"),
            ("SELECT 2 AS p, count(*) FROM t GROUP BY ROLLUP (p) ORDER BY p", "2 3; NULL 3"),
            ("SELECT a, count(*) FROM t GROUP BY 1 ORDER BY 1", "1 2; 2 1"),
        ],
    )
    .await;
}

/// When this fails, `cast_grouped_integers` of `sql::statement::grouping` can go.
#[tokio::test]
async fn stock_integers_in_group_by_are_still_positions() {
    let e = error(&SessionContext::new(), INTEGERS).await;
    assert!(e.contains("position 5"), "{e}");
}

/// When this fails, `sql::statement::grouping` can go.
#[tokio::test]
async fn stock_tuples_in_rollup_still_fail() {
    let ctx = SessionContext::new();
    let e = error(&ctx, "SELECT a FROM (VALUES (1, 2)) t(a, b) GROUP BY ROLLUP ((a, b))").await;
    assert!(e.contains("Tuple expressions"), "{e}");
}

const DISTINCT_SUMS: &str =
    "SELECT sum(DISTINCT f) AS s FROM (VALUES (1.5, true), (1.5, true), (2.0, NULL)) t(f, b)
    GROUP BY CAST(b AS INT), b";

#[tokio::test]
async fn distinct_sums_are_grouped_by_a_cast() {
    let sql = format!("SELECT CAST(sum(s) * 10 AS BIGINT) FROM ({DISTINCT_SUMS})");
    assert_eq!(one(&four(), &sql).await, 35);
}

/// When this fails, `sql::mends::distinct_aggregates` may go.
#[tokio::test]
async fn stock_distinct_sums_by_a_cast_still_fail() {
    let message = error(&SessionContext::new(), DISTINCT_SUMS).await;
    assert!(message.contains("single_distinct_aggregation_to_group_by"), "{message}");
}

#[tokio::test]
async fn a_constant_having_makes_one_group() {
    let cases = [
        ("SELECT 1 FROM range(3) HAVING true", "1"),
        ("SELECT 1 FROM range(3) HAVING 1 = 2", ""),
        ("SELECT 1 FROM range(3) HAVING NULL", ""),
        ("SELECT 1 HAVING 1 = 1 OR false", "1"),
        ("SELECT 7 FROM range(2) HAVING 1 BETWEEN 0 AND 2", "7"),
        ("SELECT 7 FROM range(2) HAVING coalesce(true)", "7"),
        ("SELECT 7 FROM range(2) HAVING 'a' LIKE 'b' OR 2 NOT IN (1, 3)", "7"),
        ("SELECT 7 FROM range(2) HAVING CASE WHEN 1 > 2 THEN true ELSE false END", ""),
        ("SELECT count(*) FROM range(3) HAVING true", "3"),
        ("SELECT x FROM range(2) t(x) GROUP BY x HAVING true ORDER BY x", "0; 1"),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn sums_and_means_of_null_are_null() {
    let cases = [
        ("SELECT sum(NULL), avg(NULL), sum(DISTINCT NULL)", "NULL NULL NULL"),
        ("SELECT sum(x), avg(x), count(x) FROM (SELECT NULL AS x FROM range(3))", "NULL NULL 0"),
        ("SELECT k, sum(NULL) FROM range(2) t(k) GROUP BY k ORDER BY k", "0 NULL; 1 NULL"),
        ("SELECT sum(NULL) OVER (ORDER BY x ROWS 1 PRECEDING) FROM range(2) t(x)", "NULL; NULL"),
        ("SELECT arrow_typeof(sum(NULL)), arrow_typeof(avg(NULL))", "Int64 Float64"),
        ("SELECT coalesce(sum(NULL), 0) + 1", "1"),
    ];
    expect_rows(&[], &cases).await;
}
