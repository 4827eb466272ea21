//! CSV files of one table: columns by header, columns that begin empty, dates and times.

use super::*;

fn write_text(path: &Path, text: &str) -> String {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    show(path)
}

/// Sessions that read whole files, and parts of files in small batches.
fn sessions() -> Vec<SessionContext> {
    let parts = SessionConfig::new()
        .with_target_partitions(3)
        .with_batch_size(2)
        .set_usize("datafusion.optimizer.repartition_file_min_size", 1);
    vec![
        serrate::sql::session_with(SessionConfig::new().with_target_partitions(1)),
        serrate::sql::session_with(parts),
    ]
}

async fn expect(cases: &[(&str, &str)], dir: &Path) {
    for ctx in sessions() {
        for (sql, expected) in cases {
            let sql = sql.replace("{}", &show(dir));
            assert_eq!(rows_or_error(&ctx, &sql).await, *expected, "{sql}");
        }
    }
}

#[tokio::test]
async fn columns_of_each_file_are_found_by_its_header() {
    let dir = tempfile::tempdir().unwrap();
    write_text(&dir.path().join("d/a.csv"), "x,y\n1,2\n");
    write_text(&dir.path().join("d/b.csv"), "y,x\n3,4\n");
    write_text(&dir.path().join("d/c.csv"), "\"z\nz\",x\n5,6\n");
    write_text(&dir.path().join("d/e.csv"), "");
    expect(
        &[
            ("SELECT x, y FROM '{}/d/' ORDER BY x", "1 2; 4 3; 6 NULL"),
            ("SELECT * FROM '{}/d/' ORDER BY x", "1 2 NULL; 4 3 NULL; 6 NULL 5"),
            ("SELECT count(*), sum(y) FROM '{}/d/*.csv' WHERE x > 1", "2 3"),
            ("SELECT count(*) FROM '{}/d/'", "3"),
            ("SELECT y FROM '{}/d/' WHERE x = 4", "3"),
        ],
        dir.path(),
    )
    .await;
}

#[tokio::test]
async fn declared_columns_are_those_of_the_header_if_it_has_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_text(&dir.path().join("a.csv"), "x,y\n1,2\n");
    for ctx in sessions() {
        for (columns, expected) in [
            ("y INT, x INT", "2 1"),
            ("x INT", "1"),
            ("y INT", "2"),
            ("x INT, y INT, z INT", "1 2 NULL"),
            // Other names, and names in their place, are those that the statement gives.
            ("a INT, b INT", "1 2"),
            ("x INT, b INT", "1 2"),
        ] {
            batches(&ctx, "DROP TABLE IF EXISTS t").await.unwrap();
            let create = format!(
                "CREATE EXTERNAL TABLE t ({columns}) STORED AS CSV LOCATION '{path}' OPTIONS (has_header true)"
            );
            batches(&ctx, &create).await.unwrap();
            assert_eq!(rows_or_error(&ctx, "SELECT * FROM t").await, expected, "{columns}");
        }
        batches(&ctx, "DROP TABLE t").await.unwrap();
        let create = format!(
            "CREATE EXTERNAL TABLE t (y INT, b INT) STORED AS CSV LOCATION '{path}' OPTIONS (has_header true)"
        );
        batches(&ctx, &create).await.unwrap();
        let e = error(&ctx, "SELECT * FROM t").await;
        assert!(e.contains("a.csv") && e.contains("'x', 'y'") && e.contains("'y', 'b'"), "{e}");
    }
}

#[tokio::test]
async fn files_without_a_common_column_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_text(&dir.path().join("a.csv"), "1,2\n3,4\n");
    write_text(&dir.path().join("b.csv"), "5,6\n7,8\n");
    for ctx in sessions() {
        let folder = show(dir.path());
        let e = rows_or_error(&ctx, &format!("SELECT * FROM '{folder}/'")).await;
        assert!(e.contains("b.csv") && e.contains("'5', '6'") && e.contains("has_header"), "{e}");
        let create = format!(
            "CREATE EXTERNAL TABLE t (x INT, y INT) STORED AS CSV LOCATION '{folder}/' OPTIONS (has_header false)"
        );
        batches(&ctx, &create).await.unwrap();
        assert_eq!(rows_or_error(&ctx, "SELECT sum(x), sum(y) FROM t").await, "16 20");
    }
}

#[tokio::test]
async fn columns_after_the_first_thousand_records_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let many = "1,2\n".repeat(1100);
    write_text(&dir.path().join("d/a.csv"), &format!("x,y\n{many}"));
    write_text(&dir.path().join("d/b.csv"), "x,z\n3,4\n");
    expect(&[("SELECT sum(x), sum(y), sum(z) FROM '{}/d/'", "1103 2200 4")], dir.path()).await;
}

#[tokio::test]
async fn a_column_that_begins_empty_keeps_later_values() {
    let dir = tempfile::tempdir().unwrap();
    let empty = "1,\n".repeat(1100);
    write_text(&dir.path().join("a.csv"), &format!("n,x\n{empty}2,seven\n"));
    write_text(&dir.path().join("b.csv"), "n,x\n1,\n");
    expect(
        &[
            ("SELECT count(x), max(x), sum(n) FROM '{}/a.csv'", "1 seven 1102"),
            ("SELECT x, n FROM '{}/b.csv'", "NULL 1"),
        ],
        dir.path(),
    )
    .await;
}

#[tokio::test]
async fn dates_and_times_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for (first, later, column) in [
        ("2020-01-01", "2020-01-02 10:00:00", "DATE"),
        ("2020-01-01", "2020-01-02T00:00:00.001", "DATE"),
        ("2020-01-01 00:00:00", "2020-01-02 10:00:00.5", "TIMESTAMP(0)"),
        ("2020-01-01 00:00:00.1", "2020-01-02 10:00:00.0005", "TIMESTAMP(3)"),
    ] {
        let many = format!("{first}\n").repeat(1100);
        let path = write_text(&dir.path().join("a.csv"), &format!("x\n{many}{later}\n"));
        let short = write_text(&dir.path().join("b.csv"), &format!("x\n{first}\n{later}\n"));
        for ctx in sessions() {
            let e = rows_or_error(&ctx, &format!("SELECT DISTINCT x FROM '{path}'")).await;
            let day = later.get(..10).unwrap();
            assert!(e.contains("a.csv") && e.contains("'x'") && e.contains(day), "{e}");
            let create =
                format!("CREATE EXTERNAL TABLE t (x {column}) STORED AS CSV LOCATION '{short}'");
            batches(&ctx, &create).await.unwrap();
            let e = rows_or_error(&ctx, "SELECT x FROM t").await;
            assert!(e.contains("b.csv") && e.contains(day), "{e}");
            batches(&ctx, "DROP TABLE t").await.unwrap();
        }
    }
    // Midnight and long years are dates.
    let path = write_text(
        &dir.path().join("c.csv"),
        "x,n\n2020-01-02,1\n2020-01-02 00:00:00,2\n,3\n20200103,4\n+12020-01-04,5\n",
    );
    for ctx in sessions() {
        let create =
            format!("CREATE EXTERNAL TABLE t (x DATE, n INT) STORED AS CSV LOCATION '{path}'");
        batches(&ctx, &create).await.unwrap();
        let rows = rows_or_error(&ctx, "SELECT x FROM t ORDER BY n").await;
        assert_eq!(rows, "2020-01-02; 2020-01-02; NULL; 2020-01-03; +12020-01-04");
    }
}

async fn stock_table(path: &str) -> SessionContext {
    let ctx = SessionContext::new();
    ctx.register_csv("t", path, Default::default()).await.unwrap();
    ctx
}

#[tokio::test]
async fn stock_csv_files_are_still_read_by_position() {
    let dir = tempfile::tempdir().unwrap();
    write_text(&dir.path().join("a.csv"), "x,y\n1,20\n");
    write_text(&dir.path().join("b.csv"), "y,x\n30,4\n");
    let ctx = stock_table(&show(dir.path())).await;
    // The first listed file, which may be either, determines the places of columns.
    assert_ne!(one(&ctx, "SELECT max(x) FROM t").await, 4);
}

#[tokio::test]
async fn stock_columns_that_begin_empty_still_stay_empty() {
    let dir = tempfile::tempdir().unwrap();
    let empty = "1,\n".repeat(1100);
    let path = write_text(&dir.path().join("a.csv"), &format!("n,x\n{empty}2,7\n"));
    let ctx = stock_table(&path).await;
    assert_eq!(one(&ctx, "SELECT count(x) FROM t").await, 0);
}

#[tokio::test]
async fn stock_dates_still_lose_the_time_of_day() {
    let dir = tempfile::tempdir().unwrap();
    let many = "2020-01-01\n".repeat(1100);
    let path = write_text(&dir.path().join("a.csv"), &format!("x\n{many}2020-01-01 10:00:00\n"));
    let ctx = stock_table(&path).await;
    assert_eq!(one(&ctx, "SELECT count(DISTINCT x) FROM t").await, 1);
}
