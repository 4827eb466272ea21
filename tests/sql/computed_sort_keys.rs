//! Sort keys that are computed below the sort, because DataFusion does not derive their order.

use super::*;

#[tokio::test]
async fn rows_are_sorted_by_functions_of_part_of_the_numbers() {
    let ctx = create_parallel_session();
    let tables = [
        "CREATE TABLE a AS SELECT value AS id, value / 12.0 + 0.01 AS x FROM range(0, 12)",
        "CREATE TABLE t AS SELECT * FROM a UNION ALL SELECT * FROM a",
    ];
    for table in tables {
        query_batches(&ctx, table).await.unwrap();
    }
    for function in ["sqrt", "ln", "log2", "log10", "asin", "atanh"] {
        let sql = format!("SELECT id FROM t ORDER BY {function}(x), id LIMIT 4");
        assert_eq!(query_ints(&ctx, &sql).await, [0, 0, 1, 1], "{function}");
        let sql = format!("SELECT id FROM a ORDER BY -{function}(x) + 1 LIMIT 3");
        assert_eq!(query_ints(&ctx, &sql).await, [11, 10, 9], "{function}");
        let sql = format!("SELECT array_agg(id ORDER BY {function}(x) DESC)[1] AS id FROM a");
        assert_eq!(query_ints(&ctx, &sql).await, [11], "{function}");
        let sql = format!(
            "SELECT id FROM (SELECT id, rank() OVER (ORDER BY {function}(x) DESC) AS n FROM a) WHERE n < 3 ORDER BY n"
        );
        assert_eq!(query_ints(&ctx, &sql).await, [11, 10], "{function}");
        let sql = format!(
            "SELECT max(n) AS n FROM (SELECT count(*) OVER (PARTITION BY {function}(x)) AS n FROM t)"
        );
        assert_eq!(query_ints(&ctx, &sql).await, [2], "{function}");
    }
    for (function, expected) in [("acos(x)", [11, 10]), ("acosh(x + 1)", [0, 1])] {
        let sql = format!("SELECT id FROM a ORDER BY {function} LIMIT 2");
        assert_eq!(query_ints(&ctx, &sql).await, expected, "{function}");
    }
}

/// When this test fails, `PARTIAL_FUNCTIONS` of `sql::workarounds::grouping::computed_keys` can be
/// removed.
#[tokio::test]
async fn stock_partial_functions_are_still_no_keys() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4));
    let rows = "(SELECT value AS x FROM range(0, 12) UNION ALL SELECT 1)";
    let e = stock_error(&ctx, &format!("SELECT x FROM {rows} ORDER BY sqrt(x)")).await;
    assert!(e.contains("does not satisfy order requirements"), "{e}");
}
