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

#[tokio::test]
async fn extremes_of_casts_are_not_casts_of_extremes() {
    let dir = tempfile::tempdir().unwrap();
    let file = show(&dir.path().join("t.parquet"));
    let rows = "CREATE TABLE t AS SELECT s, i, ts::TIMESTAMP AS ts, f::DOUBLE AS f, arrow_cast(s, 'Dictionary(Int32, Utf8)') AS d
        FROM (VALUES ('9', 9, '2020-01-01 23:00:00', 1.2), ('10', 10, '2020-01-02 01:00:00', 1.3),
                     ('-5', -5, '2020-01-01 12:00:00', 1.7)) v(s, i, ts, f)";
    let mut cases = Vec::new();
    for from in ["t".to_owned(), format!("'{file}'")] {
        for (columns, found) in [
            ("max(s::INT), min(s::INT)", "10 -5"),
            ("max(s::DOUBLE), min(s::DECIMAL(5, 1))", "10.0 -5.0"),
            ("max(d::INT), min(d::INT)", "10 -5"),
            ("max(i::VARCHAR), min(i::VARCHAR)", "9 -5"),
            ("max(i::BIGINT::VARCHAR), min(i::BIGINT::VARCHAR)", "9 -5"),
            ("max(arrow_cast(s, 'Int64')), min(arrow_cast(s, 'Int64'))", "10 -5"),
            ("max(ts::TIME), min(ts::TIME)", "23:00:00 01:00:00"),
            ("max(ts::DATE), min(ts::DATE)", "2020-01-02 2020-01-01"),
            ("max(f::INT), count(DISTINCT f::INT), min(f::INT)", "1 1 1"),
            ("max(i::BIGINT), min(i::DOUBLE)", "10 -5.0"),
        ] {
            cases.push((format!("SELECT {columns} FROM {from}"), found));
        }
        cases.push((
            format!("SELECT max(x) FROM (SELECT s::INT AS x FROM {from} UNION ALL SELECT 3)"),
            "10",
        ));
        cases.push((
            format!("WITH c AS (SELECT i::VARCHAR AS x FROM {from}) SELECT min(x), max(x) FROM c"),
            "-5 9",
        ));
        cases.push((
            format!("SELECT count(*) FROM {from} WHERE i::VARCHAR = '10' AND s::INT > 9"),
            "1",
        ));
    }
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    let copy = format!("COPY t TO '{file}' OPTIONS (overwrite true)");
    expect_rows(&[rows, &copy], &cases).await;
}

/// When this test fails, `sql::mends::cast_statistics` can be removed.
#[tokio::test]
async fn stock_casts_still_keep_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let file = show(&dir.path().join("t.parquet"));
    let stock = SessionContext::new();
    for sql in [
        format!("COPY (SELECT * FROM (VALUES ('9'), ('10')) t(s)) TO '{file}'"),
        format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{file}'"),
    ] {
        batches(&stock, &sql).await.unwrap();
    }
    let found =
        rows_or_error(&stock, "SELECT max(CAST(s AS INT)), min(CAST(s AS INT)) FROM p").await;
    assert_eq!(found, "9 10");
}

const PARTIAL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/parquet-bounds/partial.parquet");

const PARTIAL_ROWS: [(&str, &str); 8] = [
    ("SELECT id, length(a) FROM p ORDER BY id", "1 1; 2 1; 3 5000"),
    ("SELECT count(*) FROM p WHERE a <> 'b'", "1"),
    ("SELECT DISTINCT length(a) FROM p ORDER BY 1", "1; 5000"),
    ("SELECT id FROM p WHERE a LIKE 'note%'", "3"),
    ("SELECT id FROM p WHERE a > 'd'", "3"),
    ("SELECT length(max(a)), min(a) FROM p", "5000 b"),
    ("SELECT length(min(b)), length(max(b)) FROM p", "5000 1"),
    ("SELECT count(*), count(a), count(DISTINCT a) FROM p", "3 3 2"),
];

#[tokio::test]
async fn bounds_of_some_row_groups_are_not_those_of_the_file() {
    let table = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{PARTIAL}'");
    expect_rows(&[&table], &PARTIAL_ROWS).await;
    let copy = format!("CREATE TABLE p AS SELECT * FROM '{PARTIAL}'");
    expect_rows(&[&copy], &PARTIAL_ROWS).await;
}

/// When this test fails, `sql::sources::parquet::bounds::without_partial_bounds` can be removed.
#[tokio::test]
async fn stock_bounds_of_some_row_groups_are_still_those_of_the_file() {
    let stock = SessionContext::new();
    let table = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{PARTIAL}'");
    batches(&stock, &table).await.unwrap();
    assert_ne!(rows_or_error(&stock, PARTIAL_ROWS[0].0).await, PARTIAL_ROWS[0].1);
}
