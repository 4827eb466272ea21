//! ORDER BY sorts rows that a sort-preserving merge of partitions has put into another order.

use super::order::one_row_batches;
use super::*;

/// Statements that sort by `x`, over rows that are sorted and merged by a literal and `x`.
const MERGED_PARTITIONS: [(&str, &str); 4] = [
    (
        "SELECT * FROM (SELECT x, 0 AS c FROM m UNION ALL SELECT x + 1, 1 FROM m ORDER BY c DESC, x LIMIT 9) ORDER BY x",
        "3 0; 4 1; 5 0; 6 1; 9 0; 10 1",
    ),
    (
        "SELECT x, row_number() OVER (ORDER BY x) FROM (SELECT x, 0 AS c FROM m UNION ALL SELECT x + 1, 1 FROM m
         ORDER BY c, x LIMIT 9) ORDER BY 2",
        "3 1; 4 2; 5 3; 6 4; 9 5; 10 6",
    ),
    (
        "SELECT x, count(*) AS n FROM (SELECT x, 0 AS c FROM m UNION ALL SELECT x, 1 FROM m ORDER BY c, x LIMIT 9)
         GROUP BY x ORDER BY x",
        "3 2; 5 2; 9 2",
    ),
    (
        "SELECT x, c FROM (SELECT * FROM (SELECT x, 0 AS c FROM m UNION ALL SELECT x + 1, 1 FROM m
         ORDER BY c DESC, x LIMIT 9) ORDER BY x LIMIT 3) ORDER BY c, x",
        "3 0; 5 0; 4 1",
    ),
];

const UNSORTED: &str = "CREATE TABLE m AS SELECT * FROM (VALUES (5), (3), (9)) t(x)";

#[tokio::test]
async fn rows_merged_by_a_literal_are_sorted_again() {
    for partitions in [1, 2, 4] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        query_batches(&ctx, UNSORTED).await.unwrap();
        for (sql, expected) in MERGED_PARTITIONS {
            assert_eq!(rows_or_error(&ctx, sql).await, expected, "{partitions} {sql}");
        }
    }
}

#[tokio::test]
async fn stock_merges_still_claim_orders_of_partitions() {
    let stock = SessionContext::new_with_config(one_row_batches(1));
    stock_batches(&stock, UNSORTED).await.unwrap();
    let (sql, expected) = MERGED_PARTITIONS[0];
    assert_ne!(rows_or_error(&stock, sql).await, expected);
}

const ORDERED_TABLE: &str =
    "CREATE TABLE p AS SELECT * FROM (VALUES (1, 5), (1, 6), (1, 7), (2, 2)) v(x, y)";

const OTHER_ORDERED_TABLE: &str =
    "CREATE TABLE q AS SELECT * FROM (VALUES (1, 1), (1, 2), (2, 1), (2, 2)) v(x, y)";

/// A query that merges two inputs by `x`. Each input is sorted by `x, y`, and the merged rows are
/// not.
const MERGED_BY_X: &str = "(SELECT * FROM ((SELECT x, y FROM p ORDER BY x, y LIMIT 8) UNION ALL
    (SELECT x, y FROM q ORDER BY x, y LIMIT 8)) ORDER BY x LIMIT 9)";

#[tokio::test]
async fn rows_merged_by_fewer_keys_are_sorted_by_all_keys() {
    let sorted = "1 1; 1 2; 1 5; 1 6; 1 7; 2 1; 2 2; 2 2";
    for partitions in [1, 2, 4] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        query_batches(&ctx, ORDERED_TABLE).await.unwrap();
        query_batches(&ctx, OTHER_ORDERED_TABLE).await.unwrap();
        for (sql, expected) in [
            (format!("SELECT * FROM {MERGED_BY_X} ORDER BY x, y"), sorted),
            (
                format!("SELECT x, y, count(*) FROM {MERGED_BY_X} GROUP BY x, y ORDER BY x, y"),
                "1 1 1; 1 2 1; 1 5 1; 1 6 1; 1 7 1; 2 1 1; 2 2 2",
            ),
            (format!("SELECT x, y FROM {MERGED_BY_X} ORDER BY x, y LIMIT 3"), "1 1; 1 2; 1 5"),
            (
                format!(
                    "SELECT y, row_number() OVER (ORDER BY x, y) AS r FROM {MERGED_BY_X} ORDER BY r LIMIT 3"
                ),
                "1 1; 2 2; 5 3",
            ),
        ] {
            assert_eq!(rows_or_error(&ctx, &sql).await, expected, "{partitions} {sql}");
        }
    }
}

#[tokio::test]
async fn rows_merged_from_ordered_files_are_sorted_by_all_keys() {
    for partitions in [1, 2, 4] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        for statement in [
            ORDERED_TABLE,
            OTHER_ORDERED_TABLE,
            &format!("COPY p TO '{at}/p.parquet'"),
            &format!("COPY q TO '{at}/q.parquet'"),
            &format!(
                "CREATE EXTERNAL TABLE o (x BIGINT, y BIGINT) STORED AS PARQUET LOCATION '{at}/' WITH ORDER (x, y)"
            ),
        ] {
            query_batches(&ctx, statement).await.unwrap();
        }
        for (sql, expected) in [
            (
                "SELECT * FROM (SELECT * FROM o ORDER BY x LIMIT 9) ORDER BY x, y",
                "1 1; 1 2; 1 5; 1 6; 1 7; 2 1; 2 2; 2 2",
            ),
            (
                "SELECT x, y FROM (SELECT *, row_number() OVER (ORDER BY x) AS r FROM o) ORDER BY x, y",
                "1 1; 1 2; 1 5; 1 6; 1 7; 2 1; 2 2; 2 2",
            ),
            (
                "SELECT x, y, count(*) FROM (SELECT *, row_number() OVER (ORDER BY x) AS r FROM o) GROUP BY x, y
                 ORDER BY x, y",
                "1 1 1; 1 2 1; 1 5 1; 1 6 1; 1 7 1; 2 1 1; 2 2 2",
            ),
        ] {
            assert_eq!(rows_or_error(&ctx, sql).await, expected, "{partitions} {sql}");
        }
    }
}

/// A query that merges two inputs by `x`. `y` increases with `x` in each input, but not in the
/// merged rows.
const TRUNCATED_TIMES: &str = "SELECT y::VARCHAR FROM (
    SELECT x, date_trunc('hour', x) AS y FROM (SELECT x FROM h ORDER BY x LIMIT 8)
    UNION ALL SELECT x, date_trunc('year', x) FROM (SELECT x FROM h ORDER BY x LIMIT 8)
    ORDER BY x LIMIT 9) ORDER BY y";

const HOURS: &str = "CREATE TABLE h AS SELECT column1::TIMESTAMP AS x FROM
    (VALUES ('2020-05-01 10:10:10'), ('2020-05-02 10:10:10'), ('2021-05-01 10:10:10'))";

#[tokio::test]
async fn rows_merged_by_one_key_are_sorted_by_another() {
    for partitions in [1, 2, 4] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        query_batches(&ctx, HOURS).await.unwrap();
        assert_eq!(
            rows_or_error(&ctx, TRUNCATED_TIMES).await,
            "2020-01-01T00:00:00; 2020-01-01T00:00:00; 2020-05-01T10:00:00; 2020-05-02T10:00:00; \
             2021-01-01T00:00:00; 2021-05-01T10:00:00",
            "{partitions}"
        );
    }
}

#[tokio::test]
async fn stock_merges_still_claim_every_order() {
    let stock = SessionContext::new_with_config(one_row_batches(2));
    stock_batches(&stock, ORDERED_TABLE).await.unwrap();
    stock_batches(&stock, OTHER_ORDERED_TABLE).await.unwrap();
    let sql = format!("SELECT * FROM {MERGED_BY_X} ORDER BY x, y");
    assert_ne!(rows_or_error(&stock, &sql).await, "1 1; 1 2; 1 5; 1 6; 1 7; 2 1; 2 2; 2 2");
}
