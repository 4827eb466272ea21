//! Aggregates with FILTER over a subquery that is itself an aggregate.

use super::*;

const TABLE: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 10), (2, 'b', NULL), (6, 'c', 10)) v(id, k, x)";
const COUNT: &str = "(SELECT count(*) c FROM t) q";

#[tokio::test]
async fn filters_of_aggregates_over_aggregates_have_an_effect() {
    let view = "CREATE VIEW w AS SELECT count(*) c FROM t";
    let cases = [
        (format!("SELECT id, (SELECT max(c) FILTER (WHERE c > 100) FROM {COUNT}) FROM t ORDER BY 1"), "1 NULL; 2 NULL; 6 NULL"),
        (format!("SELECT id FROM t WHERE id > (SELECT max(c) FILTER (WHERE c > 100) FROM {COUNT})"), ""),
        (format!("SELECT id FROM t WHERE id IN (SELECT max(c) FILTER (WHERE c > 2) - 1 FROM {COUNT})"), "2"),
        (format!("SELECT count(*) FILTER (WHERE c > 100) AS n FROM {COUNT}"), "0"),
        (format!("SELECT count(DISTINCT c) FILTER (WHERE c > 1), min(c) FROM {COUNT}"), "1 3"),
        (
            "SELECT max(id), min(x) FILTER (WHERE x > 9) FROM (SELECT max(id) id, count(*) x FROM t WHERE false) q".into(),
            "NULL NULL",
        ),
        ("SELECT count(*) FILTER (WHERE c > 5) FROM w".into(), "0"),
        (format!("SELECT max(n) FROM (SELECT sum(c) FILTER (WHERE c < 2) n FROM {COUNT} UNION ALL SELECT 7) u"), "7"),
        // An aggregate without FILTER above one with FILTER, and the other way round.
        (format!("SELECT count(*) FROM (SELECT max(c) FILTER (WHERE c > 100) FROM {COUNT}) p"), "1"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[TABLE, view], &cases).await;
}

#[tokio::test]
async fn stock_statistics_still_replace_filtered_aggregates() {
    let stock = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4));
    stock.sql(TABLE).await.unwrap().collect().await.unwrap();
    let sql = format!("SELECT count(*) FILTER (WHERE c > 100) AS n FROM {COUNT}");
    let found = async { stock.sql(&sql).await?.collect().await }.await;
    assert!(found.is_err(), "DataFusion is fixed");
}
