//! COPY .. PARTITIONED BY and INSERT INTO partitioned tables: names of folders, contents of files.

use super::*;

/// Returns the folders that contain files, as sorted paths relative to `dir`.
fn list_folders(dir: &Path) -> Vec<String> {
    fn collect(dir: &Path, base: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => collect(&path, base, found),
                false => {
                    let folder = path.parent().unwrap().strip_prefix(base).unwrap();
                    found.push(folder.display().to_string());
                }
            }
        }
    }
    let mut found = Vec::new();
    collect(dir, dir, &mut found);
    found.sort();
    found.dedup();
    found
}

/// Returns the path of the only file in a folder.
fn find_file(dir: &Path) -> String {
    let mut files = std::fs::read_dir(dir).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none(), "{}", dir.display());
    display_path(&file)
}

const NULLS: &str = "__HIVE_DEFAULT_PARTITION__";

#[tokio::test]
async fn null_is_written_to_the_hive_default_partition() {
    let dir = tempfile::tempdir().unwrap();
    for (at, (values, of_value)) in [
        ("(1, 0), (2, NULL), (3, 0)", "p=0"),
        ("(1, ''), (2, NULL), (3, '')", "p="),
        ("(1, false), (2, NULL), (3, false)", "p=false"),
        ("(1, DATE '1970-01-01'), (2, NULL), (3, DATE '1970-01-01')", "p=1970-01-01"),
        ("(1, 0.5::DOUBLE), (2, NULL), (3, 0.5::DOUBLE)", "p=0.5"),
        ("(1, 0.50::DECIMAL(5, 2)), (2, NULL), (3, 0.5::DECIMAL(5, 2))", "p=0.50"),
        (
            "(1, TIMESTAMP '2020-01-02 03:04:05'), (2, NULL), (3, TIMESTAMP '2020-01-02 03:04:05')",
            "p=2020-01-02T03:04:05",
        ),
        ("(1, arrow_cast('a', 'Dictionary(Int8, Utf8)')), (2, NULL), (3, 'a')", "p=a"),
    ]
    .into_iter()
    .enumerate()
    {
        for format in ["PARQUET", "CSV", "JSON", "NDJSON", "ARROW"] {
            // Batches have one row, so that some batches have no NULL.
            let config = SessionConfig::new().with_target_partitions(1).with_batch_size(1);
            let ctx = serrate::sql::session_with(config);
            let out = dir.path().join(format!("{at}{format}"));
            let copy = format!(
                "COPY (SELECT x, p FROM (VALUES {values}) AS v(x, p)) TO '{}/' STORED AS {format} PARTITIONED BY (p)",
                display_path(&out)
            );
            assert_eq!(query_int(&ctx, &copy).await, 3, "{copy}");
            let null = format!("p={NULLS}");
            let mut expected = [of_value, null.as_str()];
            expected.sort_unstable();
            assert_eq!(list_folders(&out), expected, "{copy}");
            let x = format!("SELECT * FROM '{}'", find_file(&out.join(&null)));
            assert_eq!(query_ints(&ctx, &x).await, [2], "{copy}");
            assert_eq!(query_batches(&ctx, &x).await.unwrap()[0].num_columns(), 1, "{copy}");
            let x = format!("SELECT x FROM '{}' ORDER BY x", find_file(&out.join(of_value)));
            assert_eq!(query_ints(&ctx, &x).await, [1, 3], "{copy}");
        }
    }
}

#[tokio::test]
async fn insert_and_copy_name_folders_alike() {
    for format in ["PARQUET", "CSV", "JSON", "ARROW"] {
        let dir = tempfile::tempdir().unwrap();
        let ctx = create_parallel_session();
        let create = format!(
            "CREATE EXTERNAL TABLE t (x INT, p DOUBLE, q VARCHAR) STORED AS {format} PARTITIONED BY (p, q) LOCATION '{}/'",
            display_path(dir.path())
        );
        query_batches(&ctx, &create).await.unwrap();
        assert_eq!(
            query_int(&ctx, "INSERT INTO t VALUES (1, 0, 'a'), (2, 0.5, '')").await,
            2,
            "{format}"
        );
        assert_eq!(list_folders(dir.path()), ["p=0.0/q=a", "p=0.5/q="], "{format}");
        let rows = rows_or_error(&ctx, "SELECT x, p, q FROM t ORDER BY x").await;
        assert_eq!(rows, "1 0.0 a; 2 0.5 ", "{format}");
        // A table whose partition columns are NOT NULL refuses the rows, and writes none.
        match query_batches(&ctx, "INSERT INTO t VALUES (3, NULL, 'a'), (4, 0, NULL)").await {
            Err(e) => assert!(e.strip_backtrace().contains("non-nullable"), "{format} {e}"),
            Ok(_) => {
                let null = "p=__HIVE_DEFAULT_PARTITION__/q=a";
                let found = list_folders(dir.path());
                let expected =
                    ["p=0.0/q=__HIVE_DEFAULT_PARTITION__", "p=0.0/q=a", "p=0.5/q=", null];
                assert_eq!(found, expected, "{format}");
            }
        }
    }
}

/// A table returns its partition columns last. If the statement declares other columns after them,
/// INSERT must list the columns, because values would otherwise be exchanged.
#[tokio::test]
async fn insert_lists_columns_if_partition_columns_are_not_declared_last() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    let ctx = create_parallel_session();
    let create = format!(
        "CREATE EXTERNAL TABLE t (k INT, x INT) STORED AS PARQUET PARTITIONED BY (k) LOCATION '{at}/'"
    );
    assert_eq!(rows_or_error(&ctx, &create).await, "");
    for insert in ["INSERT INTO t VALUES (1, 10)", "INSERT INTO t SELECT * FROM t"] {
        let e = rows_or_error(&ctx, insert).await;
        assert!(e.contains("INSERT INTO t (k, x)"), "{insert}: {e}");
    }
    for insert in [
        "INSERT INTO t (k, x) VALUES (1, 10)",
        "INSERT INTO t BY NAME SELECT 20 AS x, 2 AS k",
        "INSERT INTO t DEFAULT VALUES",
    ] {
        assert_eq!(rows_or_error(&ctx, insert).await, "1", "{insert}");
    }
    let rows = rows_or_error(&ctx, "SELECT k, x FROM t ORDER BY x").await;
    assert_eq!(rows, "1 10; 2 20; NULL NULL");
}

#[tokio::test]
async fn a_column_that_is_always_null_has_one_folder() {
    let dir = tempfile::tempdir().unwrap();
    let copy = format!(
        "COPY (SELECT 1 AS x, NULL AS p) TO '{}/' STORED AS PARQUET PARTITIONED BY (p)",
        display_path(dir.path())
    );
    assert_eq!(query_int(&create_parallel_session(), &copy).await, 1);
    assert_eq!(list_folders(dir.path()), [format!("p={NULLS}")]);
}

#[tokio::test]
async fn strings_are_read_back_from_folder_names() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let copy = format!(
        "COPY (SELECT * FROM (VALUES (1, ''), (2, 'a/b'), (3, 'ä%'), (4, 'a=b'), (5, 'NULL')) AS v(x, p)) \
         TO '{}/' STORED AS PARQUET PARTITIONED BY (p)",
        display_path(dir.path())
    );
    assert_eq!(query_int(&ctx, &copy).await, 5);
    let read = format!("SELECT x, p FROM '{}/' ORDER BY x", display_path(dir.path()));
    let rows = rows_or_error(&ctx, &read).await;
    assert_eq!(rows, "1 ; 2 a/b; 3 ä%; 4 a=b; 5 NULL");
}

#[tokio::test]
async fn values_that_cannot_name_a_folder_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for (columns, by, expected) in [
        ("1 AS x, [2] AS p", "p", "(p) is not supported for the type List(Int64)"),
        ("1 AS x, {a: 2} AS p", "p", "(p) is not supported for the type Struct"),
        ("1 AS x, INTERVAL '1' DAY AS p", "p", "(p) is not supported for the type Interval"),
        ("1 AS x, '__HIVE_DEFAULT_PARTITION__' AS p", "p", "'p' of PARTITIONED BY has the text"),
        ("1 AS x, 2 AS p", "x, p", "(x, p) leaves no column"),
        ("1 AS x, 2 AS p", "p, p", "(p, p) names the column 'p' twice"),
        ("1 AS x, 2 AS \"p=q\"", "\"p=q\"", "(p=q) is not supported"),
        ("1 AS x, 2 AS \".p\"", "\".p\"", "(.p) is not supported"),
        ("1 AS x, repeat('é', 50) AS p", "p", "'p' of PARTITIONED BY has a text of 100 bytes"),
    ] {
        for format in ["PARQUET", "CSV"] {
            let out = dir.path().join("out");
            let copy = format!(
                "COPY (SELECT {columns}) TO '{}/' STORED AS {format} PARTITIONED BY ({by})",
                display_path(&out)
            );
            let e = rows_or_error(&ctx, &copy).await;
            assert!(e.contains(expected), "{copy}\n{e}");
            assert!(!out.exists() || list_folders(&out).is_empty(), "{copy}");
        }
    }
}

#[tokio::test]
async fn partition_columns_kept_in_files_keep_their_values() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let copy = |values: &str, out: &str| {
        format!(
            "COPY (SELECT * FROM (VALUES {values}) AS v(x, p)) TO '{}/{out}/' STORED AS PARQUET \
             PARTITIONED BY (p) OPTIONS (execution.keep_partition_by_columns true)",
            display_path(dir.path())
        )
    };
    assert_eq!(query_int(&ctx, &copy("(1, 7), (2, 8)", "a")).await, 2);
    let read = format!("SELECT p FROM '{}'", find_file(&dir.path().join("a/p=8")));
    let batches = query_batches(&ctx, &read).await.unwrap();
    assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().values(), &[8]);
    let e = error(&ctx, &copy("(1, 7), (2, NULL)", "b")).await;
    assert!(e.contains("'p'") && e.contains("keep_partition_by_columns"), "{e}");
}

#[tokio::test]
async fn stock_null_is_still_written_to_the_folder_of_zero() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = SessionContext::new();
    let copy = format!(
        "COPY (SELECT * FROM (VALUES (1, 0), (2, NULL)) AS v(x, p)) TO '{}/' STORED AS PARQUET PARTITIONED BY (p)",
        display_path(dir.path())
    );
    assert_eq!(stock_one(&ctx, &copy).await, 2);
    assert_eq!(list_folders(dir.path()), ["p=0"]);
}
