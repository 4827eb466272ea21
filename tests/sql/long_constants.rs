//! A long constant in a projection is repeated for each row in small batches, and a result that
//! exceeds the memory limit is refused before it is allocated.

use super::*;

/// Runs a statement, and returns the number of rows of its largest batch, and of all batches.
async fn count_batch_rows(ctx: &SessionContext, sql: &str) -> (usize, usize) {
    let batches = serrate::sql::sql(ctx, sql).await.unwrap().collect().await.unwrap();
    let rows: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
    (rows.iter().copied().max().unwrap_or(0), rows.iter().sum())
}

#[tokio::test]
async fn long_constants_are_repeated_in_small_batches() {
    let ctx = serrate::sql::session();
    // `most` is the greatest number of rows per batch: about 64 MiB of copies of the constant, and
    // of the indexes that repeat its elements.
    for (constant, most) in [
        ("densify_valid([1, 2], [4000000])", 2),
        ("range(0, 1000000)", 4),
        ("repeat('a', 10000000)", 6),
        ("(SELECT range(0, 1000000))", 4),
        ("CASE WHEN i > 3 THEN range(0, 1000000) ELSE [i] END", 4),
        ("array_append(range(0, 1000000), i)", 4),
    ] {
        for sql in [
            format!("SELECT i, {constant} AS c FROM range(13) AS t(i)"),
            format!(
                "SELECT * FROM (SELECT i, {constant} AS c FROM range(13) AS t(i)) WHERE random() < 2"
            ),
        ] {
            let (found, rows) = count_batch_rows(&ctx, &sql).await;
            assert!(found <= most && rows == 13, "{sql}: {found} of {rows} rows");
        }
    }
    let (found, rows) =
        count_batch_rows(&ctx, "SELECT densify([1, 2], [5000000]) AS d FROM range(3)").await;
    assert_eq!((found, rows), (1, 3));
}

#[tokio::test]
async fn plans_above_long_constants_return_the_same_rows() {
    let constants = "(SELECT i, range(0, 300000) AS c FROM range(40) AS t(i))";
    expect_rows(
        &[],
        &[
            (format!("SELECT sum(len(array_append(c, i))) FROM {constants}").as_str(), "12000040"),
            (format!("SELECT i % 2 AS k, count(*), min(c[i + 1]) FROM {constants} GROUP BY k ORDER BY k").as_str(), "0 20 0; 1 20 1"),
            (format!("SELECT count(DISTINCT c), max(len(c)) FROM {constants}").as_str(), "1 300000"),
            (format!("SELECT count(*), sum(c[j + 1]) FROM {constants} AS a JOIN range(30) AS u(j) ON i = j").as_str(), "30 435"),
            (format!("SELECT i, c[2] FROM {constants} ORDER BY i DESC LIMIT 2").as_str(), "39 1; 38 1"),
            (format!("SELECT i FROM {constants} WHERE array_position(c, i) > 38 ORDER BY i").as_str(), "38; 39"),
        ],
    )
    .await;
}

#[tokio::test]
async fn short_constants_leave_plans_unchanged() {
    let ctx = serrate::sql::session();
    for (sql, expected) in [
        ("SELECT i, [1, 2, 3], 'abc' FROM range(3) AS t(i)", false),
        ("SELECT range(0, 1000000)", false),
        ("SELECT i, range(0, 1000000) FROM range(3) AS t(i)", true),
    ] {
        let frame = serrate::sql::sql(&ctx, sql).await.unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        let plan = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
        assert_eq!(plan.contains("CutRowsExec"), expected, "{sql}\n{plan}");
        assert_eq!(plan.contains("BatchSizeExec"), expected, "{sql}\n{plan}");
    }
}

#[tokio::test]
async fn results_beyond_the_memory_limit_are_refused() {
    let ctx = serrate::sql::session();
    for (sql, words) in [
        ("SELECT len(array_resize([1], 9000000000000))", "the result of array_resize needs"),
        (
            "SELECT len(array_repeat(repeat('a', 10000), 2000000000))",
            "the result of array_repeat needs",
        ),
        (
            "SELECT len(array_repeat(s, n)) FROM (VALUES ('abcdefgh', 4000000000000), ('b', 2)) AS v(s, n)",
            "the result of array_repeat needs",
        ),
        (
            "SELECT len(array_resize(x, n)) FROM (VALUES ([1], 9000000000000)) AS v(x, n)",
            "array_resize needs",
        ),
        ("SELECT len(range(0, 9000000000000))", "the result of range needs"),
        (
            "SELECT len(generate_series(i, 9000000000000, 2)) FROM range(3) AS t(i)",
            "the result of generate_series needs",
        ),
        ("SELECT length(lpad(s, 9000000000000)) FROM (VALUES ('a')) AS v(s)", "lpad needs"),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
    let rows = rows_or_error(&ctx, "SELECT len(array_repeat('a', 200000)), length(repeat('ab', 1000000)), len(array_resize([1], 300000)), len(range(10, 1000000, 3))").await;
    assert_eq!(rows, "200000 2000000 300000 333330");
}
