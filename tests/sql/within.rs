//! `ragged_group` and `ragged_window` return within each row what GROUP BY and window functions
//! return over the exploded rows; types and names of lambda parameters.

use super::forms::query_cells;
use super::*;

const MEDS: &str = "meds('tests/data/synthea-meds')";

#[tokio::test]
async fn arguments_may_be_named_and_omitted() {
    let ctx = create_parallel_session();
    for (sql, expected) in [
        ("SELECT ragged_window([1, 2], [1, 5], [5], before => 3)", "[[2]]"),
        ("SELECT ragged_window([1, 2], [1, 5], [0], after => 9, how => 'sum')", "[3]"),
        (
            "SELECT ragged_window(at => [5], x => [1, 2], time => [1, 5], how => 'count', CLOSED => '[]')",
            "[2]",
        ),
        ("SELECT ragged_slice([1, 2, 3], start => 1, stop => 2)", "[2]"),
        ("SELECT ragged_sum(axis => -1, x => [[1, 2], [3]])", "[3, 3]"),
        ("SELECT ragged_group([1, 2, 3], groups => [7, 8], keys => [7, 9, 7])", "[[1, 3], []]"),
    ] {
        assert_eq!(query_cells(&ctx, sql).await, expected, "{sql}");
    }
    for (sql, expected) in [
        ("SELECT ragged_window([1], [1], how => 'sum')", "the required argument at is missing"),
        (
            "SELECT ragged_sum([1], axes => 1)",
            "does not accept the argument axes => 1; its arguments are x, axis",
        ),
        ("SELECT ragged_sum(x => [1], -1)", "write unnamed arguments first"),
        ("SELECT ragged_sum([1], x => [1])", "x => [1] is given twice"),
        (
            "SELECT ragged_rolling([1], INTERVAL '3 days', 'mean')",
            "write ragged_window(x, time, time",
        ),
        ("SELECT ragged_ngrams([1], INTERVAL '3 days')", "it is INTERVAL '3 days'"),
        (
            "SELECT ragged_group([1], [DATE '2020-01-01'], 'month')",
            "ragged_group(x, date_trunc('month', time))",
        ),
        (
            "SELECT ragged_group([1], [DATE '2020-01-01'], INTERVAL '1 month')",
            "ragged_group(x, time_bucket(INTERVAL '7 days', time))",
        ),
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains(expected), "{sql}: {e}");
    }
}

#[tokio::test]
async fn windows_of_too_few_values_do_not_overflow() {
    let cases = [
        (
            "SELECT ragged_rolling([9223372036854775807, 1, -5], 3, 'sum')",
            "[, , 9223372036854775803]",
        ),
        ("SELECT ragged_rolling([9223372036854775807, 1, NULL], 3, 'sum')", "[, , ]"),
    ];
    expect_rows(&[], &cases).await;
    let ctx = create_parallel_session();
    let message = error(&ctx, "SELECT ragged_rolling([9223372036854775807, 1], 2, 'sum')").await;
    assert!(message.contains("does not fit"), "{message}");
}

#[tokio::test]
async fn ragged_group_equals_group_by() {
    let ctx = create_parallel_session();
    let within = format!(
        "SELECT subject_id, CAST(k AS VARCHAR) AS k, n, s FROM ragged_explode((
           SELECT subject_id, ragged_group_keys(c) AS k, ragged_lengths(ragged_group(c, c), 2) AS n,
                  ragged_count(ragged_group(v, c), -1) AS s
           FROM (SELECT subject_id, ragged_flatten(code) AS c, ragged_flatten(numeric_value) AS v FROM {MEDS})))"
    );
    let rows = format!(
        "SELECT subject_id, CAST(code AS VARCHAR) AS k, count(*) AS n, count(numeric_value) AS s
         FROM ragged_explode((SELECT subject_id, code, numeric_value FROM {MEDS})) GROUP BY subject_id, code"
    );
    for sql in [
        format!("SELECT count(*) FROM (({within}) EXCEPT ({rows}))"),
        format!("SELECT count(*) FROM (({rows}) EXCEPT ({within}))"),
    ] {
        assert_eq!(query_cells(&ctx, &sql).await, "0", "{sql}");
    }
    let months = format!(
        "SELECT subject_id, m, n FROM ragged_explode((
           SELECT subject_id, ragged_group_keys(m) AS m, ragged_lengths(ragged_group(time, m), 2) AS n
           FROM (SELECT subject_id, time, date_trunc('month', time) AS m FROM {MEDS})))"
    );
    let rows = format!(
        "SELECT subject_id, date_trunc('month', time) AS m, count(*) AS n
         FROM ragged_explode((SELECT subject_id, time FROM {MEDS})) GROUP BY ALL"
    );
    let sql = format!("SELECT count(*) FROM (({months}) EXCEPT ({rows}))");
    assert_eq!(query_cells(&ctx, &sql).await, "0", "{sql}");
    let sql = format!("SELECT count(*) > 100 FROM ({months})");
    assert_eq!(query_cells(&ctx, &sql).await, "true", "{sql}");
}

#[tokio::test]
async fn ragged_window_equals_window_functions() {
    let ctx = create_parallel_session();
    let lists = format!(
        "(SELECT subject_id, ragged_filter(time, ragged_not(ragged_is_null(time))) AS time FROM {MEDS})"
    );
    for (how, over) in [
        ("count", "count(v)"),
        ("sum", "sum(v)"),
        ("min", "min(v)"),
        ("max", "max(v)"),
        ("mean", "avg(v)"),
    ] {
        let numbers =
            format!("(SELECT subject_id, time, extract(day FROM time) % 7 AS v FROM {lists})");
        let within = format!(
            "SELECT subject_id, time, CAST(w AS DOUBLE) AS w FROM ragged_explode((
               SELECT subject_id, time, ragged_window(v, time, time, '{how}', INTERVAL '30 days', closed => '[]') AS w
               FROM {numbers}))"
        );
        let rows = format!(
            "SELECT subject_id, time, CAST({over} OVER (PARTITION BY subject_id ORDER BY time
               RANGE BETWEEN INTERVAL '30 days' PRECEDING AND CURRENT ROW) AS DOUBLE) AS w
             FROM ragged_explode({numbers})"
        );
        let sql = format!("SELECT count(*) FROM (({within}) EXCEPT ({rows}))");
        assert_eq!(query_cells(&ctx, &sql).await, "0", "{sql}");
        let sql = format!("SELECT count(*) FROM (({rows}) EXCEPT ({within}))");
        assert_eq!(query_cells(&ctx, &sql).await, "0", "{sql}");
    }
}

/// Each statement of the section in `docs/sql.md` returns the values in the comment after it.
#[tokio::test]
async fn the_documented_examples_return_what_they_show() {
    let page = include_str!("../../docs/sql.md");
    let section = page.split("## Groups and windows within a row").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let ctx = create_parallel_session();
    let mut seen = 0;
    for part in section.split("```sql\n").skip(1) {
        let code = part.split("```").next().unwrap();
        let (sql, shown) = code.rsplit_once("\n-- ").unwrap();
        let answer = query_cells(&ctx, sql).await;
        assert_eq!(answer, shown.trim().replace("  ", " "), "{sql}");
        seen += 1;
    }
    assert_eq!(seen, 2);
    let row = "(SELECT [1.0, 2.0, 3.0] AS x, ['A', 'B', 'A'] AS code, time, date_trunc('month', time) AS month, [DATE '2020-03-05'] AS at FROM (SELECT [DATE '2020-01-03', DATE '2020-03-01', DATE '2020-03-02'] AS time))";
    let recipes: Vec<&str> = section
        .lines()
        .filter(|l| l.starts_with("| ") && l.contains('`'))
        .flat_map(|l| l.split('|').nth(2).unwrap().split('`').skip(1).step_by(2))
        .filter(|recipe| recipe.contains('(') && !recipe.contains("ragged_flatten"))
        .collect();
    assert!(recipes.len() >= 10, "{recipes:?}");
    for recipe in recipes {
        let sql = format!("SELECT {recipe} FROM {row}");
        assert!(!query_cells(&ctx, &sql).await.is_empty(), "{sql}");
    }
}

#[tokio::test]
async fn lambdas_have_the_common_type_of_branches() {
    let tables = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1), (2)) v(id)",
        // The element field of lists is named `element` in files of pyarrow, and `item` in
        // literals.
        "CREATE TABLE e AS SELECT id, arrow_cast([id], 'List(Int64, field: ''element'')') AS li FROM t",
    ];
    let cases = [
        (
            "SELECT list_transform(CASE WHEN id > 1 THEN [1] ELSE [2.5] END, lambda v: v + 1) FROM t ORDER BY id",
            "[3.5]; [2.0]",
        ),
        (
            "SELECT list_transform(CASE WHEN id > 1 THEN [] ELSE [2.5] END, lambda v: v + 1) FROM t ORDER BY id",
            "[3.5]; []",
        ),
        (
            "SELECT list_filter(CASE id WHEN 1 THEN [1, 2] ELSE [2.5] END, lambda v: v > 1) FROM t ORDER BY id",
            "[2.0]; [2.5]",
        ),
        (
            "SELECT ragged_map(CASE WHEN id > 1 THEN [1] ELSE [2.5] END, lambda v: v + 1) FROM t ORDER BY id",
            "[3.5]; [2.0]",
        ),
        (
            "SELECT list_transform(x, lambda v: v * 2) FROM (SELECT id, CASE WHEN id > 1 THEN [1] ELSE [2.5] END AS x FROM t) q ORDER BY id",
            "[5.0]; [2.0]",
        ),
        (
            "SELECT list_filter(CASE WHEN id > 5 THEN [li] ELSE [[1], [2, 3]] END, lambda v: len(v) > 1) FROM e ORDER BY id",
            "[[2, 3]]; [[2, 3]]",
        ),
        (
            "SELECT list_transform(CASE WHEN 1 = 1 THEN [[1], [2, NULL]] ELSE [li] END, lambda v: len(v)) FROM e WHERE id = 1",
            "[1, 2]",
        ),
        (
            "SELECT list_transform(CASE WHEN id > 1 THEN [li] ELSE [[1]] END, lambda v: list_transform(v, lambda w: w + len(v))) FROM e ORDER BY id",
            "[[2]]; [[3]]",
        ),
        (
            "SELECT list_transform(list_filter(CASE WHEN id > 1 THEN [1] ELSE [2.5] END, lambda v: v > 0), lambda v: -v) FROM t ORDER BY id",
            "[-2.5]; [-1.0]",
        ),
        (
            "SELECT id FROM t WHERE len(list_filter(CASE WHEN id > 1 THEN [1] ELSE [2.5] END, lambda v: v > 2)) = 1",
            "1",
        ),
    ];
    expect_rows(&tables, &cases).await;
}

/// When this test fails, the rule `serrate_lambda_types` can be removed.
#[tokio::test]
async fn stock_parameters_over_case_still_fail() {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.dialect = datafusion::config::Dialect::DuckDB;
    let stock = SessionContext::new_with_config(config);
    let sql = "SELECT array_transform(CASE WHEN a > 1 THEN [1] ELSE [2.5] END, v -> v + 1) FROM (VALUES (1), (2)) t(a)";
    let e = stock_error(&stock, sql).await;
    assert!(e.contains("LambdaVariable field and schema field mismatch"), "{e}");
}

/// When this test fails, `serrate_lambda_parameters` can be removed.
#[tokio::test]
async fn stock_parameters_are_still_read_from_columns() {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.dialect = datafusion::config::Dialect::DuckDB;
    let stock = SessionContext::new_with_config(config);
    let rows = "(VALUES ([1, 2], 5), ([3], 6)) AS t(x, u)";
    let sql = format!("SELECT array_transform(x, v -> v + 1) FROM {rows}");
    let found = stock_batches(&stock, &sql).await;
    let is_right = found
        .is_ok_and(|rows| pretty_format_batches(&rows).unwrap().to_string().contains("[2, 3]"));
    assert!(!is_right, "DataFusion is fixed");
    expect_rows(&[], &[(sql.as_str(), "[2, 3]; [4]")]).await;
}

#[tokio::test]
async fn columns_of_subqueries_are_not_lambda_parameters() {
    let cases = [
        ("SELECT list_transform([3], lambda v: v + (SELECT min(v) FROM (VALUES (1)) u(v)))", "[4]"),
        (
            "SELECT list_transform([3], lambda v: v + (SELECT min(u.v) FROM (VALUES (1)) u(v)))",
            "[4]",
        ),
        ("SELECT ragged_map([3], lambda V: v + (SELECT min(v) FROM (VALUES (1)) u(v)))", "[4]"),
        (
            "SELECT list_transform([3], lambda v: v + v_ + (SELECT min(v) FROM (VALUES (1)) u(v))) FROM (VALUES (5)) t(v_)",
            "[9]",
        ),
        (
            "SELECT list_transform([{'a': 3}], lambda v: v.a + (SELECT min(v) FROM (VALUES (1)) u(v)))",
            "[4]",
        ),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn ragged_group_accepts_keys_of_every_type() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, ['x', 'y', NULL, 'x']), (2, NULL), (3, ['b', 'b', 'b', 'b'])) AS v(i, c)"],
        &[
            (
                "SELECT ragged_group_keys(c), ragged_sum(ragged_group([1, 2, 3, 4], c), -1) FROM t ORDER BY i",
                "[x, y, ] [5, 2, 3]; NULL NULL; [b] [10]",
            ),
            (
                "SELECT ragged_sum(ragged_group([1, 2, 3, 4], arrow_cast(c, 'List(Utf8View)')), -1) FROM t ORDER BY i LIMIT 1",
                "[5, 2, 3]",
            ),
            (
                "SELECT ragged_group([1, 2, 3], [9223372036854775807, NULL, -9223372036854775808])",
                "[[3], [1], [2]]",
            ),
            ("SELECT ragged_group([1, 2, 3, 4, 5], ['b', 'a', NULL, 'b', ''])", "[[5], [2], [1, 4], [3]]"),
            ("SELECT ragged_group([1, 2, 3], [1, 1, 2]), ragged_group([[1], [], [2, 3]], [1, 1, 2])", "[[1, 2], [3]] [[[1], []], [[2, 3]]]"),
            ("SELECT ragged_group([1, 2, 3], ['b'::BYTEA, 'a'::BYTEA, 'b'::BYTEA])", "[[2], [1, 3]]"),
            ("SELECT ragged_group([1, 2, 3], [0.5::DECIMAL(30, 2), 0.25, 0.5])", "[[2], [1, 3]]"),
        ],
    )
    .await;
}
