//! CSV files as tables: columns are found by the header, and no value is lost when types are
//! inferred.

use super::*;

fn write_text(path: &Path, text: &str) -> String {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    display_path(path)
}

/// Returns a session that reads each file whole, and one that reads byte ranges of files in small
/// batches.
fn create_sessions() -> Vec<SessionContext> {
    let parts = SessionConfig::new()
        .with_target_partitions(3)
        .with_batch_size(2)
        .set_usize("datafusion.optimizer.repartition_file_min_size", 1);
    vec![
        serrate::sql::session_with(SessionConfig::new().with_target_partitions(1)),
        serrate::sql::session_with(parts),
    ]
}

async fn expect_texts(cases: &[(&str, &str)], dir: &Path) {
    for ctx in create_sessions() {
        for (sql, expected) in cases {
            let sql = sql.replace("{}", &display_path(dir));
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
    expect_texts(
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
async fn declared_columns_are_found_in_the_header_or_by_position() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_text(&dir.path().join("a.csv"), "x,y\n1,2\n");
    for ctx in create_sessions() {
        for (columns, expected) in [
            ("y INT, x INT", "2 1"),
            ("x INT", "1"),
            ("y INT", "2"),
            ("x INT, y INT, z INT", "1 2 NULL"),
            // If the header lacks a declared name, the columns are taken by position.
            ("a INT, b INT", "1 2"),
            ("x INT, b INT", "1 2"),
        ] {
            query_batches(&ctx, "DROP TABLE IF EXISTS t").await.unwrap();
            let create = format!(
                "CREATE EXTERNAL TABLE t ({columns}) STORED AS CSV LOCATION '{path}' OPTIONS (has_header true)"
            );
            query_batches(&ctx, &create).await.unwrap();
            assert_eq!(rows_or_error(&ctx, "SELECT * FROM t").await, expected, "{columns}");
        }
        query_batches(&ctx, "DROP TABLE t").await.unwrap();
        let create = format!(
            "CREATE EXTERNAL TABLE t (y INT, b INT) STORED AS CSV LOCATION '{path}' OPTIONS (has_header true)"
        );
        query_batches(&ctx, &create).await.unwrap();
        let e = error(&ctx, "SELECT * FROM t").await;
        assert!(e.contains("a.csv") && e.contains("'x', 'y'") && e.contains("'y', 'b'"), "{e}");
    }
}

#[tokio::test]
async fn files_without_a_common_column_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_text(&dir.path().join("a.csv"), "1,2\n3,4\n");
    write_text(&dir.path().join("b.csv"), "5,6\n7,8\n");
    for ctx in create_sessions() {
        let folder = display_path(dir.path());
        let e = rows_or_error(&ctx, &format!("SELECT * FROM '{folder}/'")).await;
        assert!(e.contains("b.csv") && e.contains("'5', '6'") && e.contains("has_header"), "{e}");
        let create = format!(
            "CREATE EXTERNAL TABLE t (x INT, y INT) STORED AS CSV LOCATION '{folder}/' OPTIONS (has_header false)"
        );
        query_batches(&ctx, &create).await.unwrap();
        assert_eq!(rows_or_error(&ctx, "SELECT sum(x), sum(y) FROM t").await, "16 20");
    }
}

#[tokio::test]
async fn columns_after_the_first_thousand_records_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let many = "1,2\n".repeat(1100);
    write_text(&dir.path().join("d/a.csv"), &format!("x,y\n{many}"));
    write_text(&dir.path().join("d/b.csv"), "x,z\n3,4\n");
    expect_texts(&[("SELECT sum(x), sum(y), sum(z) FROM '{}/d/'", "1103 2200 4")], dir.path())
        .await;
}

#[tokio::test]
async fn a_column_that_begins_empty_keeps_later_values() {
    let dir = tempfile::tempdir().unwrap();
    let empty = "1,\n".repeat(1100);
    write_text(&dir.path().join("a.csv"), &format!("n,x\n{empty}2,seven\n"));
    write_text(&dir.path().join("b.csv"), "n,x\n1,\n");
    expect_texts(
        &[
            ("SELECT count(x), max(x), sum(n) FROM '{}/a.csv'", "1 seven 1102"),
            ("SELECT x, n FROM '{}/b.csv'", "NULL 1"),
        ],
        dir.path(),
    )
    .await;
}

#[tokio::test]
async fn later_dates_and_times_lose_no_digits() {
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
        for ctx in create_sessions() {
            let e = rows_or_error(&ctx, &format!("SELECT DISTINCT x FROM '{path}'")).await;
            let day = later.get(..10).unwrap();
            assert!(e.contains("a.csv") && e.contains("'x'") && e.contains(day), "{e}");
            let create =
                format!("CREATE EXTERNAL TABLE t (x {column}) STORED AS CSV LOCATION '{short}'");
            query_batches(&ctx, &create).await.unwrap();
            let e = rows_or_error(&ctx, "SELECT x FROM t").await;
            assert!(e.contains("b.csv") && e.contains(day), "{e}");
            query_batches(&ctx, "DROP TABLE t").await.unwrap();
        }
    }
    // Timestamps at midnight and years of five digits are read as dates.
    let path = write_text(
        &dir.path().join("c.csv"),
        "x,n\n2020-01-02,1\n2020-01-02 00:00:00,2\n,3\n20200103,4\n+12020-01-04,5\n",
    );
    for ctx in create_sessions() {
        let create =
            format!("CREATE EXTERNAL TABLE t (x DATE, n INT) STORED AS CSV LOCATION '{path}'");
        query_batches(&ctx, &create).await.unwrap();
        let rows = rows_or_error(&ctx, "SELECT x FROM t ORDER BY n").await;
        assert_eq!(rows, "2020-01-02; 2020-01-02; NULL; 2020-01-03; +12020-01-04");
    }
}

#[tokio::test]
async fn columns_of_lists_are_refused_when_they_are_declared() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_text(&dir.path().join("a.csv"), "a,b\n\"[1, 2]\",x\n");
    for ctx in create_sessions() {
        let create = |columns: &str| {
            format!(
                "CREATE EXTERNAL TABLE t ({columns}) STORED AS CSV LOCATION '{path}' OPTIONS (has_header true)"
            )
        };
        let e = rows_or_error(&ctx, &create("a DOUBLE[], b VARCHAR")).await;
        assert!(e.contains("the column 'a'") && e.contains("a::DOUBLE[]"), "{e}");
        query_batches(&ctx, &create("a VARCHAR, b VARCHAR")).await.unwrap();
        assert_eq!(rows_or_error(&ctx, "SELECT a::DOUBLE[], b FROM t").await, "[1.0, 2.0] x");
    }
}

/// Returns sessions that read every file in 1, 2, 5 and 8 byte ranges.
fn create_dividing_sessions() -> Vec<SessionContext> {
    let session = |partitions| {
        let config = SessionConfig::new()
            .with_target_partitions(partitions)
            .with_batch_size(3)
            .set_usize("datafusion.optimizer.repartition_file_min_size", 1);
        serrate::sql::session_with(config)
    };
    [1, 2, 5, 8].map(session).into()
}

#[tokio::test]
async fn line_breaks_in_quotes_do_not_end_records() {
    let dir = tempfile::tempdir().unwrap();
    let quoted: String = (0..40).map(|i| format!("{i},\"x\n7,8\n\"\"9,{i}\"\n")).collect();
    // Quotes within an unquoted field are characters of the field.
    let stray: String = (0..40).map(|i| format!("{i},5\" pipe{}\n", "\"".repeat(i % 3))).collect();
    let marked = format!("\u{feff}\"a\",b\r\n{}", quoted.replace('\n', "\r\n"));
    for (name, text, expected) in [
        ("quoted", format!("a,b\n{quoted}"), "40 780"),
        ("stray", format!("a,b\n{stray}"), "40 780"),
        ("marked", marked, "40 780"),
        ("header", format!("a,\"b\n\"\n{quoted}"), "40 780"),
    ] {
        let path = write_text(&dir.path().join(format!("{name}.csv")), &text);
        let b = if name == "header" { "\"b\n\"" } else { "b" };
        let all = format!("SELECT a, {b} FROM '{path}' ORDER BY a, {b}");
        let whole = rows_or_error(&create_dividing_sessions()[0], &all).await;
        for ctx in create_dividing_sessions() {
            let sql = format!("SELECT count(*), sum(a) FROM '{path}'");
            assert_eq!(rows_or_error(&ctx, &sql).await, expected, "{name}");
            assert_eq!(rows_or_error(&ctx, &all).await, whole, "{name}");
        }
    }
    let escaped: String = (0..40).map(|i| format!("{i};'x\\'\n7;8'\n#'\n")).collect();
    let path = write_text(&dir.path().join("e.csv"), &format!("a;b\n{escaped}"));
    for ctx in create_dividing_sessions() {
        let sql = format!(
            "SELECT count(*), sum(a) FROM read_csv('{path}', delim => ';', quote => '''', escape => '\\', comment => '#')"
        );
        assert_eq!(rows_or_error(&ctx, &sql).await, "40 780");
    }
}

#[tokio::test]
async fn a_file_that_ends_within_quotes_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..40).map(|i| format!("{i},5\" pipe{}\n", "\"".repeat(i % 3))).collect();
    for (name, text) in [
        ("last", "40,\"open\n7,8\n9,10\n"),
        ("no_line_end", "40,\"x\"\n41,\"open"),
        ("lone", "40,\""),
    ] {
        let path =
            write_text(&dir.path().join(format!("{name}.csv")), &format!("a,b\n{rows}{text}"));
        for ctx in create_dividing_sessions() {
            let e = error(&ctx, &format!("SELECT count(b) FROM '{path}'")).await;
            assert!(e.contains(&format!("{name}.csv: the file ends within the quotes")), "{e}");
        }
        // LIMIT does not read to the end.
        let first = format!("SELECT a FROM '{path}' LIMIT 1");
        assert_eq!(rows_or_error(&create_dividing_sessions()[0], &first).await, "0", "{name}");
    }
    let path = write_text(&dir.path().join("closed.csv"), "a,b\n1,\"x\n\"\"\"");
    for ctx in create_dividing_sessions() {
        let read = format!("SELECT a, b = 'x' || chr(10) || '\"' FROM '{path}'");
        assert_eq!(rows_or_error(&ctx, &read).await, "1 true");
    }
}

#[tokio::test]
async fn a_written_file_of_long_strings_is_read_completely() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("o.csv"));
    let copy = format!(
        "COPY (SELECT value AS a, repeat('y', 2000) || chr(10) || '7,8' AS b FROM range(6000)) TO '{path}'"
    );
    assert_eq!(rows_or_error(&create_parallel_session(), &copy).await, "6000");
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(8));
    let sql = format!("SELECT count(*), sum(a) FROM '{path}'");
    assert_eq!(rows_or_error(&ctx, &sql).await, "6000 17997000");
}

#[tokio::test]
async fn later_files_of_an_inferred_table_are_read_by_name() {
    for ctx in create_sessions() {
        let dir = tempfile::tempdir().unwrap();
        write_text(&dir.path().join("0.csv"), "a,b\n1,2\n");
        let create = format!(
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{}/' OPTIONS (has_header true)",
            display_path(dir.path())
        );
        query_batches(&ctx, &create).await.unwrap();
        write_text(&dir.path().join("2.csv"), "d,a\n6,5\n");
        assert_eq!(rows_or_error(&ctx, "SELECT * FROM t ORDER BY a").await, "1 2; 5 NULL");
        write_text(&dir.path().join("1.csv"), "c,e\n3,4\n");
        let e = error(&ctx, "SELECT * FROM t").await;
        assert!(e.contains("1.csv") && e.contains("'c', 'e'") && e.contains("'a', 'b'"), "{e}");
        write_text(&dir.path().join("1.csv"), "b,b\n3,4\n");
        let e = error(&ctx, "SELECT * FROM t").await;
        assert!(e.contains("1.csv") && e.contains("'b'") && e.contains("several"), "{e}");
        let e =
            rows_or_error(&ctx, &format!("SELECT * FROM '{}/'", display_path(dir.path()))).await;
        assert!(e.contains("1.csv") && e.contains("'b'") && e.contains("several"), "{e}");
    }
}

#[tokio::test]
async fn names_of_declared_columns_ignore_case() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_text(&dir.path().join("u.csv"), "B,A,C\n1,2,3\n");
    for ctx in create_sessions() {
        let create = format!(
            "CREATE EXTERNAL TABLE t (a INT, b INT) STORED AS CSV LOCATION '{path}' OPTIONS (has_header true)"
        );
        query_batches(&ctx, &create).await.unwrap();
        assert_eq!(rows_or_error(&ctx, "SELECT a, b FROM t").await, "2 1");
        assert_eq!(rows_or_error(&ctx, "SELECT b FROM t").await, "1");
    }
}

#[tokio::test]
async fn types_are_inferred_from_records_of_every_file() {
    let dir = tempfile::tempdir().unwrap();
    write_text(&dir.path().join("k/a.csv"), &format!("x\n{}", "1\n".repeat(1100)));
    write_text(&dir.path().join("k/b.csv"), "x\n1.5\n");
    write_text(&dir.path().join("t/a.csv"), "x\n1\n");
    write_text(&dir.path().join("t/b.csv"), "x\na\n");
    write_text(&dir.path().join("d/a.csv"), "x\n2020-01-01\n");
    write_text(&dir.path().join("d/b.csv"), "x\n2020-01-01T00:00:00.5\n");
    write_text(&dir.path().join("l/a.csv"), &format!("x\n{}1.5\n", "1\n".repeat(1100)));
    expect_texts(
        &[
            ("SELECT sum(x) FROM '{}/k/'", "1101.5"),
            ("SELECT max(x) FROM '{}/t/'", "a"),
            ("SELECT max(x), min(x) FROM '{}/d/'", "2020-01-01T00:00:00.500 2020-01-01T00:00:00"),
        ],
        dir.path(),
    )
    .await;
    // A value that does not have the type of the first thousand records is an error with the name
    // of the file.
    let e = rows_or_error(
        &create_parallel_session(),
        &format!("SELECT sum(x) FROM '{}/l/'", display_path(dir.path())),
    )
    .await;
    assert!(e.contains("a.csv") && e.contains("1.5"), "{e}");
}

#[tokio::test]
async fn values_with_more_digits_than_the_type_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (first, last) in [
        ("2020-01-01T00:00:00.123456", "2020-01-01T00:00:00.123456789"),
        ("2020-01-01T00:00:00", "2020-01-01T00:00:00.0000005"),
        ("2020-01-01", "2020-01-01T00:00:00.0005"),
        ("0.5", "9007199254740993"),
    ] {
        let many = format!("{first}\n").repeat(1100);
        let path = write_text(&dir.path().join("a.csv"), &format!("x\n{many}{last}\n"));
        for ctx in create_sessions() {
            let e = rows_or_error(&ctx, &format!("SELECT DISTINCT x FROM '{path}'")).await;
            assert!(e.contains("a.csv") && e.contains("'x'") && e.contains(last), "{e}");
        }
    }
    for (column, value) in
        [("DECIMAL(5, 2)", "1.239"), ("TIMESTAMP(6)", "2020-01-01T00:00:00.1234567")]
    {
        let path = write_text(&dir.path().join("a.csv"), &format!("x\n{value}\n"));
        for ctx in create_sessions() {
            let create = format!(
                "CREATE OR REPLACE EXTERNAL TABLE t (x {column}) STORED AS CSV LOCATION '{path}'"
            );
            query_batches(&ctx, &create).await.unwrap();
            let e = rows_or_error(&ctx, "SELECT x FROM t").await;
            assert!(e.contains("a.csv") && e.contains("'x'") && e.contains(value), "{e}");
        }
    }
}

#[tokio::test]
async fn integers_are_no_times_of_day() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_text(&dir.path().join("t.csv"), "x,n\n10:00:00.5,1\n09:30,2\n,3\n36000,4\n");
    for ctx in create_sessions() {
        let create = format!(
            "CREATE EXTERNAL TABLE t (x TIME, n INT) STORED AS CSV LOCATION '{path}' OPTIONS (has_header true)"
        );
        query_batches(&ctx, &create).await.unwrap();
        let e = error(&ctx, "SELECT x FROM t").await;
        assert!(e.contains("t.csv") && e.contains("'x'") && e.contains("'36000'"), "{e}");
    }
    write_text(&dir.path().join("t.csv"), "x,n\n10:00:00.5,1\n09:30,2\n,3\n");
    for ctx in create_sessions() {
        let create = format!(
            "CREATE EXTERNAL TABLE t (x TIME, n INT) STORED AS CSV LOCATION '{path}' OPTIONS (has_header true)"
        );
        query_batches(&ctx, &create).await.unwrap();
        let rows = rows_or_error(&ctx, "SELECT x::VARCHAR FROM t ORDER BY n").await;
        assert!(rows.starts_with("10:00:00.5") && rows.ends_with("09:30:00; NULL"), "{rows}");
    }
}

#[tokio::test]
async fn unknown_options_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_text(&dir.path().join("a.csv"), "x\n1\n");
    let ctx = create_parallel_session();
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{path}' OPTIONS ('format.null_regex' '(')"
    );
    assert!(error(&ctx, &create).await.contains("null_regex"));
    for target in ["y.csv", "z/"] {
        let target = display_path(&dir.path().join(target));
        let copy = format!(
            "COPY (SELECT 1 AS x) TO '{target}' STORED AS CSV OPTIONS (format.null_regex '^NA$')"
        );
        let e = rows_or_error(&ctx, &copy).await;
        assert!(e.contains("null_regex") && e.contains("null_value"), "{copy}: {e}");
    }
    for extension in ["csv", "json"] {
        let copy =
            format!("COPY (SELECT 1 AS x) TO '{path}x.{extension}' OPTIONS (compression_level 3)");
        assert!(rows_or_error(&ctx, &copy).await.contains("compression_level"), "{copy}");
    }
}

#[tokio::test]
async fn null_regex_decides_which_values_are_null() {
    let dir = tempfile::tempdir().unwrap();
    let typed = "i,s,f,b,t\n1,,1.5,true,2020-01-02T00:00:00\nNA,NA,NA,NA,NA\n3,\"NA\",2,false,2020-01-03T00:00:00\n";
    let all = "SELECT i, s = '', f, b, t::DATE FROM t ORDER BY i";
    let typed_rows =
        "1 true 1.5 true 2020-01-02; 3 NULL 2.0 false 2020-01-03; NULL NULL NULL NULL NULL";
    for (text, columns, pattern, query, expected) in [
        (
            "a,b\n1,x\n2,y\n",
            "",
            "^(2|y)$",
            "SELECT a, b, b IS NULL FROM t ORDER BY a",
            "1 x false; NULL NULL true",
        ),
        (
            "a,b\n1,x\n2,y\n",
            "(a INT, b VARCHAR)",
            "^(2|y)$",
            "SELECT b, a FROM t ORDER BY a",
            "x 1; NULL NULL",
        ),
        ("a\nNULL\n1\n", "", "^NULL$", "SELECT a + 1 FROM t ORDER BY a NULLS FIRST", "NULL; 2"),
        (
            "a,b\n\\N,p\n1,\\N\n",
            "",
            r"^\\N$",
            "SELECT a, b FROM t ORDER BY a NULLS FIRST",
            "NULL p; 1 NULL",
        ),
        ("a,b\n1,x\n2,y\n", "", "^(2|y)$", "SELECT count(*), count(a), count(b) FROM t", "2 1 1"),
        ("a,b\n1,x\n2,y\n", "", "^(2|y)$", "SELECT a FROM t WHERE b IS NULL OR b = 'y'", "NULL"),
        ("a,b\n1,xy\n", "", "y", "SELECT a, b FROM t", "1 NULL"),
        (typed, "", "^NA$", all, typed_rows),
        (typed, "(i INT, s VARCHAR, f DOUBLE, b BOOLEAN, t TIMESTAMP)", "^NA$", all, typed_rows),
        (
            "a,b\n,\n1,\n",
            "(a INT, b VARCHAR)",
            "^$",
            "SELECT a, b FROM t ORDER BY a NULLS FIRST",
            "NULL NULL; 1 NULL",
        ),
    ] {
        let path = write_text(&dir.path().join("a.csv"), text);
        for ctx in create_sessions() {
            let create = format!(
                "CREATE EXTERNAL TABLE t {columns} STORED AS CSV LOCATION '{path}' OPTIONS (null_regex '{pattern}')"
            );
            assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
            assert_eq!(rows_or_error(&ctx, query).await, expected, "{create}; {query}");
        }
    }
    let path = write_text(&dir.path().join("a.csv"), "a,b\n,x\n");
    for ctx in create_sessions() {
        let create = format!(
            "CREATE EXTERNAL TABLE t (a INT, b VARCHAR) STORED AS CSV LOCATION '{path}' OPTIONS (null_regex '^NA$')"
        );
        assert_eq!(rows_or_error(&ctx, &create).await, "");
        let e = rows_or_error(&ctx, "SELECT a FROM t").await;
        assert!(e.contains("a.csv") && e.contains("cannot hold ''"), "{e}");
    }
}

#[tokio::test]
async fn null_value_is_read_and_written_as_null() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_text(&dir.path().join("a.csv"), "a,b\n1,x\nN.A,\n3,N.A\n4,N-A\n");
    let rows = "SELECT a, b FROM t ORDER BY a";
    let expected = "1 x; 3 NULL; 4 N-A; NULL ";
    for ctx in create_sessions() {
        for columns in ["", "(a INT, b VARCHAR)"] {
            let create = format!(
                "CREATE OR REPLACE EXTERNAL TABLE t {columns} STORED AS CSV LOCATION '{path}' OPTIONS (null_value 'N.A')"
            );
            assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
            assert_eq!(rows_or_error(&ctx, rows).await, expected, "{create}");
        }
        let read = format!("SELECT a, b FROM read_csv('{path}', nullstr = 'N.A') ORDER BY a");
        assert_eq!(rows_or_error(&ctx, &read).await, expected);
        // `null_regex` has precedence over `null_value` when a file is read.
        let create = format!(
            "CREATE OR REPLACE EXTERNAL TABLE t (a VARCHAR, b VARCHAR) STORED AS CSV LOCATION '{path}' OPTIONS (null_value 'N.A', null_regex '^x$')"
        );
        assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
        assert_eq!(rows_or_error(&ctx, rows).await, "1 NULL; 3 N.A; 4 N-A; N.A ");
        // COPY writes NULL as the `null_value`, and a table with the same option reads it.
        let out = display_path(&dir.path().join("out.csv"));
        let copy = format!(
            "COPY (SELECT * FROM (VALUES (1, NULL), (NULL, ''), (3, 'z')) v(a, b)) TO '{out}' OPTIONS (format.null_value 'NULL', overwrite true)"
        );
        assert_eq!(rows_or_error(&ctx, &copy).await, "3", "{copy}");
        let create = format!(
            "CREATE OR REPLACE EXTERNAL TABLE t STORED AS CSV LOCATION '{out}' OPTIONS (null_value 'NULL')"
        );
        assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
        assert_eq!(rows_or_error(&ctx, rows).await, "1 NULL; 3 z; NULL ");
    }
}

#[tokio::test]
async fn values_that_would_be_read_as_null_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "(SELECT * FROM (VALUES ('NA', 1, DATE '2020-01-02'), (NULL, -9, NULL)) v(a, b, d))";
    for ctx in create_sessions() {
        let target = |name: &str| display_path(&dir.path().join(name));
        // Strings are quoted, as in DuckDB.
        let copy = format!("COPY {rows} TO '{}' (NULLSTR 'NA', OVERWRITE)", target("a.csv"));
        assert_eq!(rows_or_error(&ctx, &copy).await, "2", "{copy}");
        let text = std::fs::read_to_string(dir.path().join("a.csv")).unwrap();
        assert_eq!(text, "a,b,d\n\"NA\",1,2020-01-02\nNA,-9,NA\n");
        for (target, options) in [
            (target("b.csv"), "(NULLSTR 'NA', DATEFORMAT '%d,%m,%Y')"),
            (target("b/"), "(FORMAT csv, NULLSTR 'NA', PARTITION_BY (b))"),
            (target("c.csv"), "(NULLSTR '-9')"),
            (target("d.csv"), "(NULLSTR '2020-01-02')"),
        ] {
            let e = error(&ctx, &format!("COPY {rows} TO '{target}' {options}")).await;
            assert!(e.contains("read as NULL") && e.contains("null_value"), "{options}: {e}");
        }
        // The values of PARTITION_BY are not in the files.
        let folder = tempfile::tempdir().unwrap();
        let folder = display_path(folder.path());
        let copy =
            format!("COPY {rows} TO '{folder}/' (FORMAT csv, NULLSTR '-9', PARTITION_BY (b))");
        assert_eq!(rows_or_error(&ctx, &copy).await, "2", "{copy}");
        for option in ["null_value 'NA'", "null_value 'NA', null_regex '^(NA|-)$'"] {
            let folder = tempfile::tempdir().unwrap();
            let create = format!(
                "CREATE OR REPLACE EXTERNAL TABLE t (a VARCHAR, b INT) STORED AS CSV LOCATION '{}/' OPTIONS (has_header true, {option})",
                display_path(folder.path())
            );
            assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
            let e = error(&ctx, "INSERT INTO t VALUES ('x', 1), ('NA', 2)").await;
            assert!(e.contains("'a'") && e.contains("'NA'") && e.contains("read as NULL"), "{e}");
            let insert = "INSERT INTO t VALUES ('NAN', 1), (NULL, NULL)";
            assert_eq!(rows_or_error(&ctx, insert).await, "2");
            let rows = rows_or_error(&ctx, "SELECT a, b FROM t ORDER BY b").await;
            assert_eq!(rows, "NAN 1; NULL NULL");
        }
    }
}

#[tokio::test]
async fn values_are_compared_with_null_as_they_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let rows = "(SELECT DATE '2020-01-02' AS d, TIMESTAMP '2020-01-02 03:04:05' AS t, [1] AS x, x'aa' AS b, 7 AS p)";
    let target = |name: &str| display_path(&dir.path().join(name));
    for (target, options) in [
        (target("a.csv"), "(NULLSTR '02.01.2020', DATEFORMAT '%d.%m.%Y')"),
        (target("b.csv"), "(NULLSTR '2020', TIMESTAMPFORMAT '%Y')"),
        // These options leave strings without quotes, also those that equal the text of NULL.
        (target("c.csv"), "(NULLSTR '[1]', DATEFORMAT '%d,%m')"),
        (target("d.csv"), "(NULLSTR 'aa', DATEFORMAT '%d,%m')"),
        (target("e/"), "(FORMAT csv, NULLSTR '[1]', PARTITION_BY (p))"),
    ] {
        let e = error(&ctx, &format!("COPY {rows} TO '{target}' {options}")).await;
        assert!(e.contains("read as NULL") && e.contains("null_value"), "{options}: {e}");
    }
    let copy = format!(
        "COPY (SELECT ' NA' AS s) TO '{}' STORED AS CSV OPTIONS (format.null_value 'NA', format.ignore_leading_whitespace true)",
        target("f.csv")
    );
    let e = error(&ctx, &copy).await;
    assert!(e.contains("'s'") && e.contains("read as NULL"), "{e}");
    for (options, text) in [
        ("(NULLSTR '[1]')", "2020-01-02,2020-01-02T03:04:05,\"[1]\",aa,7"),
        (
            "(NULLSTR '2020-01-02', DATEFORMAT '%d.%m.%Y')",
            "02.01.2020,2020-01-02T03:04:05,[1],aa,7",
        ),
    ] {
        let copy = format!("COPY {rows} TO '{}' {options}", target("g.csv"));
        assert_eq!(rows_or_error(&ctx, &copy).await, "1", "{copy}");
        let written = std::fs::read_to_string(dir.path().join("g.csv")).unwrap();
        assert_eq!(written, format!("d,t,x,b,p\n{text}\n"), "{copy}");
        std::fs::remove_file(dir.path().join("g.csv")).unwrap();
    }
}

#[tokio::test]
async fn a_quote_within_a_header_is_part_of_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..2000).map(|i| format!("{i},{i}\n")).collect();
    let path = write_text(&dir.path().join("a.csv"), &format!("len_\",b\n{rows}"));
    for ctx in create_sessions() {
        let sql = format!("SELECT sum(b), sum(\"len_\"\"\") FROM '{path}'");
        assert_eq!(rows_or_error(&ctx, &sql).await, "1999000 1999000");
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
    let ctx = stock_table(&display_path(dir.path())).await;
    // DataFusion reads columns by their position in the file that is listed first, which may be
    // either.
    assert_ne!(stock_one(&ctx, "SELECT max(x) FROM t").await, 4);
}

#[tokio::test]
async fn stock_columns_that_begin_empty_still_stay_empty() {
    let dir = tempfile::tempdir().unwrap();
    let empty = "1,\n".repeat(1100);
    let path = write_text(&dir.path().join("a.csv"), &format!("n,x\n{empty}2,7\n"));
    let ctx = stock_table(&path).await;
    assert_eq!(stock_one(&ctx, "SELECT count(x) FROM t").await, 0);
}

#[tokio::test]
async fn stock_dates_still_lose_the_time_of_day() {
    let dir = tempfile::tempdir().unwrap();
    let many = "2020-01-01\n".repeat(1100);
    let path = write_text(&dir.path().join("a.csv"), &format!("x\n{many}2020-01-01 10:00:00\n"));
    let ctx = stock_table(&path).await;
    assert_eq!(stock_one(&ctx, "SELECT count(DISTINCT x) FROM t").await, 1);
}

#[tokio::test]
async fn times_with_offsets_are_instants() {
    let dir = tempfile::tempdir().unwrap();
    write_text(&dir.path().join("a.csv"), "t\n2020-01-01T00:00:00+02:00\n2020-01-01 00:00:00.5Z\n");
    write_text(&dir.path().join("d/a.csv"), "t\n2020-01-01T00:00:00\n");
    write_text(&dir.path().join("d/b.csv"), "t\n2020-01-01 00:00:00 +02:00\n2020-01-02\n\n");
    write_text(&dir.path().join("local.csv"), "t\n2020-01-01T00:00:00\n2020-01-01 00:00:00.5\n");
    let cases = [
        ("SELECT t FROM '{}/a.csv' ORDER BY t", "2019-12-31T22:00:00Z; 2020-01-01T00:00:00.500Z"),
        ("SELECT count(*) FROM '{}/a.csv' WHERE t < TIMESTAMPTZ '2020-01-01 00:00:00Z'", "1"),
        (
            "SELECT t FROM '{}/d' ORDER BY t",
            "2019-12-31T22:00:00Z; 2020-01-01T00:00:00Z; 2020-01-02T00:00:00Z",
        ),
        ("SELECT t FROM '{}/local.csv' ORDER BY t", "2020-01-01T00:00:00; 2020-01-01T00:00:00.500"),
    ];
    expect_texts(&cases, dir.path()).await;
    // The types follow from the first thousand records, and a later offset is not dropped.
    let many = "2020-01-01 00:00:00\n".repeat(1100);
    let path =
        write_text(&dir.path().join("late.csv"), &format!("t\n{many}2020-01-01T00:00:00Z\n"));
    for ctx in create_sessions() {
        let e = rows_or_error(&ctx, &format!("SELECT max(t) FROM '{path}'")).await;
        assert!(e.contains("late.csv") && e.contains("'t'") && e.contains("TIMESTAMPTZ"), "{e}");
        let create = format!(
            "CREATE EXTERNAL TABLE t (t TIMESTAMPTZ) STORED AS CSV LOCATION '{path}' OPTIONS (has_header true)"
        );
        assert_eq!(rows_or_error(&ctx, &create).await, "");
        assert_eq!(rows_or_error(&ctx, "SELECT max(t) FROM t").await, "2020-01-01T00:00:00Z");
    }
}

#[tokio::test]
async fn stock_offsets_in_csv_files_are_still_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_text(&dir.path().join("a.csv"), "x\n2020-01-01T00:00:00+02:00\n");
    let ctx = stock_table(&path).await;
    let sql =
        "SELECT count(*) FROM t WHERE arrow_typeof(x) LIKE '%UTC%' OR arrow_typeof(x) = 'Utf8'";
    assert_eq!(stock_one(&ctx, sql).await, 0);
}

#[tokio::test]
async fn stock_csv_files_still_keep_null_texts() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_text(&dir.path().join("a.csv"), "a\nx\ny\n");
    let ctx = SessionContext::new();
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{path}' OPTIONS ('format.has_header' 'true', 'format.null_regex' '^x$')"
    );
    stock_batches(&ctx, &create).await.unwrap();
    assert_eq!(stock_one(&ctx, "SELECT count(a) FROM t").await, 2);
}

#[tokio::test]
async fn options_that_a_writer_ignores_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let target = display_path(&dir.path().join("o.csv"));
    let ctx = create_parallel_session();
    for option in [
        "comment '#'",
        "terminator '@'",
        "null_regex '^x$'",
        "newlines_in_values true",
        "schema_infer_max_rec 5",
        "truncated_rows true",
    ] {
        let copy =
            format!("COPY (SELECT '#a' AS x) TO '{target}' STORED AS CSV OPTIONS ({option})");
        let e = error(&ctx, &copy).await;
        assert!(e.contains("applies only to reading"), "{copy}: {e}");
        assert!(!Path::new(&target).exists());
    }
    for (option, columns, row) in [
        ("comment '#'", "a VARCHAR, b INT", "('#a', 1)"),
        ("terminator '@'", "a VARCHAR, b INT", "('a', 1)"),
        ("null_regex '^x$'", "a VARCHAR, b INT", "('a', NULL)"),
        ("quote_style 'Never'", "a VARCHAR, b VARCHAR", "('a,b', 'c')"),
        ("double_quote false", "a VARCHAR", "('a\"b')"),
        ("ignore_leading_whitespace true", "a VARCHAR", "(' a')"),
        ("ignore_trailing_whitespace true", "a VARCHAR", "('a ')"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let create = format!(
            "CREATE OR REPLACE EXTERNAL TABLE t ({columns}) STORED AS CSV LOCATION '{}/' OPTIONS ({option})",
            display_path(folder.path())
        );
        assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
        let e = error(&ctx, &format!("INSERT INTO t VALUES {row}")).await;
        let name = option.split(' ').next().unwrap();
        assert!(e.contains(&format!("with the option {name} is not supported")), "{option}: {e}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{option}");
    }
    // The text that is written for NULL matches `null_regex`, so that it is read as NULL.
    let folder = tempfile::tempdir().unwrap();
    let create = format!(
        "CREATE OR REPLACE EXTERNAL TABLE t (a INT, b INT) STORED AS CSV LOCATION '{}/' OPTIONS (null_regex '^(|-)$')",
        display_path(folder.path())
    );
    assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
    assert_eq!(rows_or_error(&ctx, "INSERT INTO t VALUES (1, NULL)").await, "1");
    assert_eq!(rows_or_error(&ctx, "SELECT a, b FROM t").await, "1 NULL");
}

#[tokio::test]
async fn options_that_only_copy_follows_are_refused_for_tables() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let folder = display_path(dir.path());
    for (format, option) in [
        ("CSV", "date_format '%Y-%d-%m'"),
        ("CSV", "format.timestamp_format '%H'"),
        ("CSV", "time_format '%M:%H'"),
        ("CSV", "overwrite true"),
        ("PARQUET", "overwrite true"),
        ("NDJSON", "format.overwrite false"),
        ("ARROW", "overwrite true"),
        ("NRT", "overwrite true"),
        ("NRT", "plain true"),
    ] {
        let create = format!(
            "CREATE EXTERNAL TABLE t (a DATE) STORED AS {format} LOCATION '{folder}/' OPTIONS ({option})"
        );
        let e = error(&ctx, &create).await;
        assert!(e.contains("table 't'") && e.contains("applies only to COPY"), "{create}: {e}");
    }
}
