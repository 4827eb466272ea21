//! Texts of dates and times in the forms that people write.

use super::*;

const TEXTS: &str =
    "CREATE TABLE x AS SELECT * FROM (VALUES (1, '2024-01-05 10:00'), (2, '2024/1/5 9:30:15.5'),
    (3, ' 2024-01-05 '), (4, NULL), (5, '2024-01-05T10:00:00')) v(id, s)";

#[tokio::test]
async fn times_need_no_seconds() {
    let all = "2024-01-05T10:00:00; 2024-01-05T09:30:15.500; 2024-01-05T00:00:00; NULL; 2024-01-05T10:00:00";
    let cases = [
        ("SELECT s::TIMESTAMP FROM x ORDER BY id", all),
        ("SELECT TRY_CAST(s AS TIMESTAMP) FROM x ORDER BY id", all),
        ("SELECT to_timestamp(s)::TIMESTAMP FROM x ORDER BY id", all),
        ("SELECT arrow_cast(s, 'Timestamp(Microsecond, None)') FROM x ORDER BY id", all),
        ("SELECT unnest(array_agg(s ORDER BY id)::TIMESTAMP[]) FROM x", all),
        ("SELECT DISTINCT s::DATE FROM x WHERE s IS NOT NULL", "2024-01-05"),
        ("SELECT count(*) FROM x WHERE s::TIMESTAMP > '2024-01-05 09:30'", "3"),
        (
            "SELECT count(*) FROM x WHERE s::TIMESTAMP IN (TIMESTAMP '2024-1-5 10:00', '2024/01/05')",
            "3",
        ),
        (
            "SELECT count(*) FROM x WHERE s::TIMESTAMP BETWEEN '2024-01-05 09:00' AND '2024-01-05 09:59'",
            "1",
        ),
        (
            "SELECT TIMESTAMP '2024-01-05 10:00', DATE '2024/1/5', DATE '2024-01-05 10:00'",
            "2024-01-05T10:00:00 2024-01-05 2024-01-05",
        ),
        (
            "SELECT TIMESTAMPTZ '2024-01-05 10:00+02', TIMESTAMPTZ '2024-01-05 10:00 UTC'",
            "2024-01-05T08:00:00Z 2024-01-05T10:00:00Z",
        ),
        ("SELECT ['2024-01-05 10:00', NULL]::TIMESTAMP[]", "[2024-01-05T10:00:00, ]"),
        (
            "SELECT TRY_CAST('2024-01-05 10' AS TIMESTAMP), TRY_CAST('10:00' AS TIMESTAMP), TRY_CAST('x' AS DATE)",
            "NULL NULL NULL",
        ),
    ];
    expect_rows(&[TEXTS], &cases).await;
}

#[tokio::test]
async fn times_without_seconds_are_inserted() {
    let cases = [(
        "SELECT t, d FROM w ORDER BY t",
        "2024-01-05T10:00:00 2024-01-05; 2024-01-06T00:00:00 NULL",
    )];
    let setup = [
        "CREATE TABLE w (t TIMESTAMP, d DATE)",
        "INSERT INTO w VALUES ('2024-01-05 10:00', '2024/1/5'), ('2024-1-6', NULL)",
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn columns_of_csv_files_have_times_without_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, "id,t\n1,2024-01-05 10:00\n2,2024/1/5 9:30\n3,\n").unwrap();
    let create = format!(
        "CREATE EXTERNAL TABLE c (id INT, t TIMESTAMP) STORED AS CSV LOCATION '{}' OPTIONS (format.has_header true)",
        show(&path)
    );
    let cases = [("SELECT t FROM c ORDER BY id", "2024-01-05T10:00:00; 2024-01-05T09:30:00; NULL")];
    expect_rows(&[&create], &cases).await;
}

/// When this test fails, `sql::mends::time_texts` can be removed.
#[tokio::test]
async fn stock_times_without_seconds_are_still_errors() {
    let ctx = SessionContext::new();
    assert!(batches(&ctx, "SELECT '2024-01-05 10:00'::TIMESTAMP").await.is_err());
}
