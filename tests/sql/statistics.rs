//! Conditions and extremes over files whose statistics DataFusion evaluates wrongly.

use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;

use super::*;
use crate::null_counts::remove_null_counts;

const SPANS: &str = "CREATE TABLE t AS SELECT a::TIMESTAMP AS t, b::DATE AS d, c::DATE AS e FROM (VALUES
    ('2023-12-31 23:59:59.999999', '2023-12-31', '2023-12-01'), ('2024-01-01', '2024-01-01', '2024-01-05'),
    ('2024-12-31 23:59:59', '2024-12-31', NULL), ('2025-01-01', '2025-01-01', '2024-01-01'), (NULL, NULL, NULL)) v(a, b, c)";

#[tokio::test]
async fn conditions_whose_selectivity_cannot_be_estimated_are_evaluated() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("t.parquet"));
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

/// When this test fails, `sql::workarounds::guards::failing_statistics` can be removed.
#[tokio::test]
async fn stock_estimates_of_conditions_still_fail() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("t.parquet"));
    let ours = serrate::sql::session();
    for sql in [SPANS, &format!("COPY t TO '{file}'")] {
        rows_or_error(&ours, sql).await;
    }
    let stock = SessionContext::new();
    let scan = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{file}'");
    stock_batches(&stock, &scan).await.unwrap();
    let failed = stock_error(&stock, "SELECT d FROM p WHERE d - DATE '2024-01-01' > 3").await;
    assert!(failed.contains("lhs_type == rhs_type"), "{failed}");
}

#[tokio::test]
async fn extremes_of_casts_are_computed_from_rows() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("t.parquet"));
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

const NOON: &str = "CREATE TABLE t AS SELECT id, at::TIMESTAMP AS at, arrow_cast(at, 'Timestamp(Microsecond, Some(\"UTC\"))') AS z, n, f::DOUBLE AS f
    FROM (VALUES (1, '2020-01-01 23:00:00', -1, -0.5), (2, '2020-01-02 12:00:00', 0, 0.0), (3, '2020-01-03 01:00:00', 1, 0.5)) v(id, at, n, f)";

#[tokio::test]
async fn conditions_on_casts_that_change_the_order_read_all_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("t.parquet"));
    let mut cases = Vec::new();
    for from in ["t".to_owned(), format!("'{file}'")] {
        for (condition, rows) in [
            ("at::TIME = TIME '12:00:00'", "2"),
            ("'12:00:00' = at::TIME", "2"),
            ("at::TIME IN (TIME '12:00:00', TIME '13:00:00')", "2"),
            ("at::TIME BETWEEN TIME '11:00:00' AND TIME '22:00:00'", "2"),
            ("at::TIME > TIME '11:00:00'", "1; 2"),
            ("at::TIME < (SELECT TIME '11:00:00')", "3"),
            ("z::TIME = TIME '12:00:00'", "2"),
            ("z::TIMESTAMP::TIME = TIME '12:00:00'", "2"),
            ("TRY_CAST(at AS TIME) = TIME '12:00:00'", "2"),
            ("arrow_cast(at, 'Time64(Nanosecond)') = TIME '12:00:00'", "2"),
            ("arrow_try_cast(at, 'Time64(Nanosecond)') = TIME '12:00:00'", "2"),
            ("TRY_CAST(n AS BOOLEAN) < true", "2"),
            ("TRY_CAST(n AS BOOLEAN) > false", "1; 3"),
            ("TRY_CAST(-f AS BOOLEAN) < true", "2"),
            ("at::DATE = DATE '2020-01-02'", "2"),
            ("f::INT = 0", "1; 2; 3"),
        ] {
            cases.push((format!("SELECT id FROM {from} WHERE {condition} ORDER BY id"), rows));
        }
        for time in ["at::TIME", "TRY_CAST(at AS TIME)"] {
            let times = format!("(SELECT id, {time} AS x FROM {from})");
            cases.push((format!("SELECT id FROM {times} WHERE x = TIME '12:00:00'"), "2"));
            cases.push((
                format!("SELECT id FROM {times} JOIN (VALUES (TIME '12:00:00')) u(y) ON x = y"),
                "2",
            ));
        }
    }
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    let copy = format!("COPY t TO '{file}' OPTIONS (overwrite true)");
    expect_rows(&[NOON, &copy], &cases).await;
}

/// When this test fails, `keeps_order` in `sql::workarounds::types::cast_statistics` can be
/// removed.
#[tokio::test]
async fn stock_casts_still_skip_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("t.parquet"));
    let ours = serrate::sql::session();
    for sql in [NOON, &format!("COPY t TO '{file}'")] {
        rows_or_error(&ours, sql).await;
    }
    let stock = SessionContext::new();
    let scan = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{file}'");
    stock_batches(&stock, &scan).await.unwrap();
    let noon = "SELECT id FROM p WHERE CAST(at AS TIME) = TIME '12:00:00'";
    let found = stock_batches(&stock, noon).await.unwrap();
    assert_eq!(found.iter().map(|batch| batch.num_rows()).sum::<usize>(), 0);
}

/// When this test fails, `sql::workarounds::types::cast_statistics` can be removed.
#[tokio::test]
async fn stock_casts_still_keep_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("t.parquet"));
    let stock = SessionContext::new();
    for sql in [
        format!("COPY (SELECT * FROM (VALUES ('9'), ('10')) t(s)) TO '{file}'"),
        format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{file}'"),
    ] {
        stock_batches(&stock, &sql).await.unwrap();
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
async fn row_groups_without_bounds_are_read_for_extremes() {
    let table = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{PARTIAL}'");
    expect_rows(&[&table], &PARTIAL_ROWS).await;
    let copy = format!("CREATE TABLE p AS SELECT * FROM '{PARTIAL}'");
    expect_rows(&[&copy], &PARTIAL_ROWS).await;
}

/// When this test fails, `sql::sources::parquet::statistics_bounds::remove_partial_bounds` can be
/// removed.
#[tokio::test]
async fn stock_bounds_of_some_row_groups_are_still_those_of_the_file() {
    let stock = SessionContext::new();
    let table = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{PARTIAL}'");
    stock_batches(&stock, &table).await.unwrap();
    assert_ne!(rows_or_error(&stock, PARTIAL_ROWS[0].0).await, PARTIAL_ROWS[0].1);
}

/// Writes 12 rows in three row groups, with `a` NULL in rows 3 and 6, and removes the numbers of
/// nulls, which are optional, from the statistics in the footer.
fn write_uncounted(file: &std::path::Path) {
    let a = (1..=12).map(|i| (i != 3 && i != 6).then_some(i)).collect::<Int64Array>();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("id", Arc::new(Int64Array::from_iter_values(1..=12))), ("a", Arc::new(a))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(4)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    std::fs::write(file, remove_null_counts(bytes)).unwrap();
}

const UNCOUNTED_ROWS: [(&str, &str); 6] = [
    ("SELECT count(a), count(*) FROM p", "10 12"),
    ("SELECT id FROM p WHERE a IS NULL ORDER BY id", "3; 6"),
    ("SELECT count(*) FROM p WHERE a IS NULL", "2"),
    ("SELECT id FROM p ORDER BY a NULLS FIRST, id LIMIT 2", "3; 6"),
    ("SELECT count(*) FROM p WHERE a IS NOT NULL AND a > 8", "4"),
    ("SELECT max(a), min(a), count(DISTINCT a) FROM p", "12 1 10"),
];

#[tokio::test]
async fn missing_null_counts_are_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("p.parquet");
    write_uncounted(&file);
    let file = display_path(&file);
    let table = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{file}'");
    for filters in ["true", "false"] {
        let setting = format!("SET datafusion.execution.parquet.pushdown_filters = {filters}");
        expect_rows(&[&setting, &table], &UNCOUNTED_ROWS).await;
    }
}

/// When this test fails, the number of nulls may be left in `sql::sources::parquet::footers` and
/// `statistics_bounds`.
#[tokio::test]
async fn stock_missing_counts_of_nulls_are_still_zero() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("p.parquet");
    write_uncounted(&file);
    let stock = SessionContext::new();
    let table =
        format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{}'", display_path(&file));
    stock_batches(&stock, &table).await.unwrap();
    assert_ne!(rows_or_error(&stock, UNCOUNTED_ROWS[1].0).await, UNCOUNTED_ROWS[1].1);
}

#[tokio::test]
async fn distinct_values_are_counted_in_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| display_path(&dir.path().join(format!("{name}.parquet")));
    let (some, none) = (file("some"), file("none"));
    let mut setup = vec![
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) v(id, unit)".into(),
        "CREATE TABLE none AS SELECT * FROM t WHERE false".into(),
    ];
    for (table, file) in [("t", &some), ("none", &none)] {
        setup.push(format!("COPY {table} TO '{file}' OPTIONS (overwrite true)"));
    }
    let mut cases = Vec::new();
    for (t, e) in [("t".into(), "none".into()), (format!("'{some}'"), format!("'{none}'"))] {
        for (query, rows) in [
            (
                format!("count(DISTINCT c), count(*) FROM (SELECT id, NULL::INT AS c FROM {t})"),
                "0 3",
            ),
            (format!("count(DISTINCT c), max(c) FROM (SELECT 5 AS c FROM {e})"), "0 NULL"),
            (
                format!("count(DISTINCT c), count(*) FROM (SELECT 5 AS c FROM {t}) CROSS JOIN {e}"),
                "0 0",
            ),
            (
                format!("count(DISTINCT c), count(*) FROM (SELECT 5 AS c FROM {t} WHERE id > 1)"),
                "1 2",
            ),
            (
                format!(
                    "count(DISTINCT unit), count(*) FROM (FROM {t} UNION ALL BY NAME SELECT id FROM {t})"
                ),
                "2 6",
            ),
            (format!("count(DISTINCT unit), max(unit), count(DISTINCT id) FROM {t}"), "2 b 3"),
        ] {
            cases.push((format!("SELECT {query}"), rows));
        }
    }
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `sql::workarounds::grouping::distinct_counts` can be removed.
#[tokio::test]
async fn stock_distinct_counts_are_still_those_of_statistics() {
    let stock = SessionContext::new();
    stock_batches(&stock, "CREATE TABLE t AS VALUES (1), (2)").await.unwrap();
    let sql = "SELECT count(DISTINCT c), count(*) FROM (SELECT CAST(NULL AS INT) AS c FROM t)";
    assert_eq!(to_rows(&stock_batches(&stock, sql).await.unwrap()), "1 2");
}

#[tokio::test]
async fn literals_without_rows_are_in_no_aggregate() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| display_path(&dir.path().join(format!("{name}.parquet")));
    let (some, none) = (file("some"), file("none"));
    let mut setup = vec![
        "CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (3)) v(id)".to_owned(),
        "CREATE TABLE none AS SELECT * FROM t WHERE false".to_owned(),
    ];
    for (table, file) in [("t", &some), ("none", &none)] {
        setup.push(format!("COPY {table} TO '{file}' OPTIONS (overwrite true)"));
    }
    let mut cases = Vec::new();
    for (t, e) in [("t".to_owned(), "none".to_owned()), (format!("'{some}'"), format!("'{none}'"))]
    {
        for (query, rows) in [
            (
                format!("min(x), max(x) FROM (SELECT 1 AS x FROM {e} UNION ALL SELECT 2 FROM {t})"),
                "2 2",
            ),
            (format!("max(x) FROM (SELECT 2 AS x FROM {t} UNION ALL SELECT 9 FROM {e})"), "2"),
            (
                format!(
                    "min(x), count(*) FROM (SELECT 5 AS x FROM {t} UNION ALL SELECT 1 FROM {e} UNION ALL SELECT 3 FROM {t})"
                ),
                "3 6",
            ),
            (format!("sum(x) FROM (SELECT 5 AS x FROM {e})"), "NULL"),
            (format!("sum(x) FROM (SELECT 5 AS x FROM {t})"), "15"),
            (format!("sum(x) FROM (SELECT 5 AS x FROM {e} UNION ALL SELECT 6 FROM {e})"), "NULL"),
            (format!("sum(x) FROM (SELECT 5 AS x FROM {e} UNION ALL SELECT 6 FROM {t})"), "18"),
            (format!("sum(x) FROM (SELECT 5 AS x FROM {t} OFFSET 3)"), "NULL"),
            (format!("sum(x) FROM (SELECT 5 AS x FROM {t}) CROSS JOIN {e}"), "NULL"),
            (format!("sum(x) FROM (SELECT 1.5::DECIMAL(5, 1) AS x FROM {e})"), "NULL"),
        ] {
            cases.push((format!("SELECT {query}"), rows));
        }
    }
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `sql::workarounds::grouping::empty_inputs` can be removed.
#[tokio::test]
async fn stock_extremes_still_include_literals_without_rows() {
    let stock = SessionContext::new();
    for setup in ["CREATE TABLE t AS VALUES (1)", "CREATE TABLE e AS SELECT * FROM t WHERE false"] {
        stock_batches(&stock, setup).await.unwrap();
    }
    let sql = "SELECT min(x) FROM (SELECT 1 AS x FROM e UNION ALL SELECT 2 FROM t)";
    assert_eq!(to_rows(&stock_batches(&stock, sql).await.unwrap()), "1");
}

/// When this test fails, `value_from_stats` of `functions::aggregate::exact_aggregates` need not
/// test for inputs without rows.
#[tokio::test]
async fn stock_sums_of_literals_without_rows_are_still_zero() {
    let stock = SessionContext::new();
    for setup in ["CREATE TABLE t AS VALUES (1)", "CREATE TABLE e AS SELECT * FROM t WHERE false"] {
        stock_batches(&stock, setup).await.unwrap();
    }
    let sql = "SELECT sum(x) FROM (SELECT 5 AS x FROM e)";
    assert_eq!(to_rows(&stock_batches(&stock, sql).await.unwrap()), "0");
}
