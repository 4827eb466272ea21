//! Conditions over files whose statistics DataFusion cannot use.

use super::*;

const SPANS: &str = "CREATE TABLE t AS SELECT a::TIMESTAMP AS t, b::DATE AS d, c::DATE AS e FROM (VALUES
    ('2023-12-31 23:59:59.999999', '2023-12-31', '2023-12-01'), ('2024-01-01', '2024-01-01', '2024-01-05'),
    ('2024-12-31 23:59:59', '2024-12-31', NULL), ('2025-01-01', '2025-01-01', '2024-01-01'), (NULL, NULL, NULL)) v(a, b, c)";

#[tokio::test]
async fn conditions_whose_rows_cannot_be_estimated_are_evaluated() {
    let dir = tempfile::tempdir().unwrap();
    let file = show(&dir.path().join("t.parquet"));
    let mut cases = Vec::new();
    for from in ["t".to_owned(), format!("'{file}'")] {
        for (condition, rows) in [
            ("t::DATE > DATE '2023-12-31'", "3"),
            ("t::DATE >= DATE '2023-12-31'", "4"),
            ("NOT t::DATE > DATE '2023-12-31'", "1"),
            ("d - DATE '2024-01-01' > 3", "2"),
            ("d - e > 3", "2"),
            ("d - DATE '2024-01-01' = 0 AND t IS NOT NULL", "1"),
            ("(d - e) * 2 > 6 OR t::DATE > DATE '2023-12-31'", "4"),
        ] {
            cases.push((format!("SELECT count(*) FROM {from} WHERE {condition}"), rows));
        }
        cases.push((
            format!("SELECT a.d FROM {from} a JOIN {from} b ON a.d = b.d WHERE a.d - b.e > 3 ORDER BY a.d"),
            "2023-12-31; 2025-01-01",
        ));
    }
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    let copy = format!("COPY t TO '{file}' OPTIONS (overwrite true)");
    expect_rows(&[SPANS, &copy], &cases).await;
}

/// When this test fails, `sql::mends::failing_statistics` can be removed.
#[tokio::test]
async fn stock_estimates_of_conditions_still_fail() {
    let dir = tempfile::tempdir().unwrap();
    let file = show(&dir.path().join("t.parquet"));
    let ours = serrate::sql::session();
    for sql in [SPANS, &format!("COPY t TO '{file}'")] {
        rows_or_error(&ours, sql).await;
    }
    let stock = SessionContext::new();
    let scan = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{file}'");
    batches(&stock, &scan).await.unwrap();
    let failed = error(&stock, "SELECT d FROM p WHERE d - DATE '2024-01-01' > 3").await;
    assert!(failed.contains("lhs_type == rhs_type"), "{failed}");
}
