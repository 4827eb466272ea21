//! Options of COPY either change what is written, or are refused by name.

use super::*;

#[tokio::test]
async fn escape_characters_are_escaped() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("o.csv"));
    let ctx = create_parallel_session();
    let copy = format!(
        r#"COPY (SELECT 'a"b\c' AS x, 'a,b' AS "y\", 1 AS n, '\' AS z) TO '{path}' (ESCAPE '\')"#
    );
    assert_eq!(rows_or_error(&ctx, &copy).await, "1");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "x,\"y\\\\\",n,z\n\"a\\\"b\\\\c\",\"a,b\",1,\"\\\\\"\n");
    let read = format!(r#"SELECT x, "y\", n, z FROM read_csv('{path}', escape => '\')"#);
    assert_eq!(rows_or_error(&ctx, &read).await, r#"a"b\c a,b 1 \"#);
    // Without doubled quotes, the escape character is a backslash.
    let copy = format!(
        r#"COPY (SELECT 'a"b\c' AS x, '"' AS y, 1 AS n) TO '{path}' OPTIONS (format.double_quote false, overwrite true)"#
    );
    assert_eq!(rows_or_error(&ctx, &copy).await, "1");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "x,y,n\n\"a\\\"b\\\\c\",\"\\\"\",1\n");
    let read = format!(r#"SELECT x, y, n FROM read_csv('{path}', escape => '\')"#);
    assert_eq!(rows_or_error(&ctx, &read).await, r#"a"b\c " 1"#);
    let copy = format!(
        r#"COPY (SELECT 'a"' AS x) TO '{path}' OPTIONS (format.double_quote false, format.quote_style 'Always', overwrite true)"#
    );
    let e = rows_or_error(&ctx, &copy).await;
    assert!(e.contains("double_quote"), "{e}");
    // DataFusion's CSV writer does not escape the escape character itself.
    let copy = format!(
        r"COPY (SELECT 'a\' AS x, 1 AS p) TO '{}/o/' STORED AS CSV PARTITIONED BY (p) OPTIONS (format.escape '\')",
        display_path(dir.path())
    );
    let e = rows_or_error(&ctx, &copy).await;
    assert!(e.contains(r"escape '\'"), "{e}");
}

#[tokio::test]
async fn delimiters_differ_from_quotes() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("o.csv"));
    let ctx = create_parallel_session();
    for (options, named) in [
        ("QUOTE ','", "delimiter and quote"),
        ("DELIMITER '\"'", "delimiter and quote"),
        ("DELIMITER ';', ESCAPE ';'", "delimiter and escape"),
    ] {
        let copy = format!("COPY (SELECT 'a,b' AS x, 2 AS y) TO '{path}' ({options})");
        let e = rows_or_error(&ctx, &copy).await;
        assert!(e.contains(named), "{copy}\n{e}");
        assert!(!Path::new(&path).exists());
    }
    std::fs::write(&path, "a;b\n1;2\n").unwrap();
    let read = format!("SELECT * FROM read_csv('{path}', delim => ';', quote => ';')");
    let e = rows_or_error(&ctx, &read).await;
    assert!(e.contains("delimiter and quote"), "{e}");
}

#[tokio::test]
async fn tabs_have_the_name_of_duckdb() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("o.csv"));
    let ctx = create_parallel_session();
    let copy = format!(r"COPY (SELECT 1 AS x, 'a,b' AS y) TO '{path}' (DELIMITER '\t')");
    assert_eq!(rows_or_error(&ctx, &copy).await, "1");
    let read = format!(r"SELECT x, y FROM read_csv('{path}', delim => '\t')");
    assert_eq!(rows_or_error(&ctx, &read).await, "1 a,b");
    for option in ["delim => ';;'", "quote => ''", "escape => 'é'", "comment => '##'"] {
        let e = error(&ctx, &format!("SELECT x FROM read_csv('{path}', {option})")).await;
        let name = option.split(' ').next().unwrap();
        assert!(e.contains(&format!("option {name} must be one ASCII character")), "{e}");
    }
}

#[tokio::test]
async fn row_groups_of_zero_rows_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("o.parquet"));
    let copy = format!("COPY (SELECT 1 AS x) TO '{path}' (ROW_GROUP_SIZE 0)");
    let e = rows_or_error(&create_parallel_session(), &copy).await;
    assert!(e.contains("row_group_size") && e.contains("not 0"), "{e}");
    assert!(!Path::new(&path).exists());
}

#[tokio::test]
async fn overwrite_is_allowed_if_the_target_does_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let folder = display_path(dir.path());
    for format in ["parquet", "csv", "json", "arrow"] {
        for (name, partitions) in [("a", ""), ("b", ", PARTITION_BY (k)"), ("c.bak", "")] {
            let copy = format!(
                "COPY (SELECT 1 AS k, 2 AS v) TO '{folder}/{format}-{name}' (FORMAT {format}, OVERWRITE{partitions})"
            );
            assert_eq!(rows_or_error(&ctx, &copy).await, "1", "{copy}");
        }
        // A file is replaced only with OVERWRITE, whatever its extension.
        let copy = format!("COPY (SELECT 3 AS k) TO '{folder}/{format}-c.bak' (FORMAT {format}");
        let e = rows_or_error(&ctx, &format!("{copy})")).await;
        assert!(e.contains("already exists"), "{format}: {e}");
        assert_eq!(rows_or_error(&ctx, &format!("{copy}, OVERWRITE)")).await, "1");
        std::fs::write(dir.path().join("file"), "x").unwrap();
        let copy = format!("COPY (SELECT 3 AS k) TO '{folder}/file' (FORMAT {format}, OVERWRITE)");
        let e = rows_or_error(&ctx, &copy).await;
        assert!(e.contains("which is a file; remove the file"), "{format}: {e}");
    }
}

/// DuckDB's syntax of COPY has no STORED AS, so errors do not name this clause.
#[tokio::test]
async fn errors_about_the_format_fit_both_forms_of_copy() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let folder = display_path(dir.path());
    for (target, format, words) in [
        ("x", "XYZ", ["the format XYZ is unknown", "COPY writes ARROW, "]),
        ("x.json", "CSV", ["the extension .json of another format", "leave out the format CSV"]),
    ] {
        for clause in [format!("(FORMAT {format})"), format!("STORED AS {format}")] {
            let copy = format!("COPY (SELECT 1 AS k) TO '{folder}/{target}' {clause}");
            let e = error(&ctx, &copy).await;
            assert!(words.iter().all(|word| e.contains(*word)), "{copy}: {e}");
            assert!(!e.contains("STORED AS"), "{copy}: {e}");
        }
    }
    let table = "CREATE EXTERNAL TABLE t STORED AS xyz LOCATION 'x'";
    let e = error(&ctx, table).await;
    assert!(e.contains("STORED AS accepts ARROW, "), "{e}");
}

#[tokio::test]
async fn copy_to_a_device_is_refused() {
    for copy in [
        "COPY (SELECT 1 AS x) TO '/dev/stdout'",
        "COPY (SELECT 1 AS x) TO '/dev/stdout' (FORMAT csv)",
        "COPY (SELECT 1 AS x) TO '/dev/fd/1' (FORMAT parquet)",
    ] {
        let e = rows_or_error(&create_parallel_session(), copy).await;
        assert!(e.contains("COPY writes files, not /dev/") && e.contains("-f csv"), "{e}");
    }
}

#[tokio::test]
async fn overwrite_of_a_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let folder = display_path(dir.path());
    for format in ["PARQUET", "CSV", "JSON", "ARROW"] {
        let out = format!("{folder}/{format}");
        let copy = format!("COPY (SELECT 1 AS x) TO '{out}/' STORED AS {format}");
        assert_eq!(rows_or_error(&ctx, &copy).await, "1");
        let e = rows_or_error(&ctx, &format!("{copy} OPTIONS (overwrite true)")).await;
        assert!(e.contains("overwrite") && e.contains("is a folder"), "{e}");
        let again =
            format!("COPY (SELECT 1 AS x) TO '{out}' (FORMAT {format}, OVERWRITE_OR_IGNORE)");
        let e = rows_or_error(&ctx, &again).await;
        assert!(e.contains("overwrite") && e.contains("is a folder"), "{e}");
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1, "{format}");
        // Without the option, COPY adds files.
        assert_eq!(rows_or_error(&ctx, &copy).await, "1");
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 2, "{format}");
    }
}

#[tokio::test]
async fn repeated_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("o.csv"));
    let ctx = create_parallel_session();
    let copy = format!("COPY (SELECT 1 AS x) TO '{path}'");
    for statement in [
        format!("{copy} (HEADER, HEADER false)"),
        format!("{copy} (DELIMITER ';', DELIM ',')"),
        format!("{copy} STORED AS CSV OPTIONS (has_header true, format.HAS_HEADER false)"),
        format!("{copy} OPTIONS (aws.region 'a', AWS.region 'b')"),
        format!(
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{path}' OPTIONS (delimiter ';', delimiter ',')"
        ),
    ] {
        let e = rows_or_error(&ctx, &statement).await;
        assert!(e.contains("is given twice; write it once"), "{statement}\n{e}");
        assert!(!Path::new(&path).exists(), "{statement}");
    }
}

#[tokio::test]
async fn formats_of_timestamps_apply_to_timestamps_with_time_zones() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("o.csv"));
    let copy = format!(
        "COPY (SELECT TIMESTAMP '2020-01-02 03:04:05' AS t, TIMESTAMPTZ '2020-01-02 03:04:05+00' AS z) TO '{path}' (TIMESTAMPFORMAT '%d.%m.%Y %H')"
    );
    assert_eq!(rows_or_error(&create_parallel_session(), &copy).await, "1");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "t,z\n02.01.2020 03,02.01.2020 03\n");
}

#[tokio::test]
async fn options_of_unknown_columns_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let copy = |name: &str, options: &str| {
        let path = display_path(&dir.path().join(name));
        format!(
            "COPY (SELECT 1 AS a, {{'b': 2}} AS s, 3 AS \"ID\") TO '{path}' OPTIONS ({options})"
        )
    };
    for (option, column) in [("compression::nope", "nope"), ("compression::s", "s")] {
        let sql = copy("a.parquet", &format!("'format.{option}' 'zstd(3)'"));
        let e = error(&ctx, &sql).await;
        assert!(e.contains(&format!("names the column '{column}'")), "{option}: {e}");
        assert!(e.contains("the columns of the files are a, s.b, ID"), "{option}: {e}");
    }
    let folders = copy("f/", "'format.compression::a' 'zstd(3)'")
        .replace(" OPTIONS", " STORED AS PARQUET PARTITIONED BY (a) OPTIONS");
    let e = error(&ctx, &folders).await;
    assert!(e.contains("the columns of the files are s.b, ID"), "{e}");
    // DataFusion folds the names in options.
    let e = error(&ctx, &copy("a.parquet", "'format.compression::ID' 'zstd(3)'")).await;
    assert!(e.contains("names the column 'id'") && e.contains("in lower case"), "{e}");
    let both = "'format.compression::a' 'zstd(3)', 'format.compression::s.b' 'gzip(6)'";
    assert_eq!(rows_or_error(&ctx, &copy("b.parquet", both)).await, "1");
}

#[tokio::test]
async fn options_of_readers_of_parquet_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let folder = display_path(dir.path());
    for (target, options) in [
        ("a.parquet", "(PRUNING false)"),
        ("a.parquet", "OPTIONS (format.pruning false)"),
        ("a.parquet", "OPTIONS (pruning true, compression 'zstd(3)')"),
        ("a/", "STORED AS PARQUET OPTIONS (pruning false)"),
        ("a/", "STORED AS PARQUET PARTITIONED BY (k) OPTIONS (pruning false)"),
    ] {
        let copy = format!("COPY (SELECT 1 AS k, 2 AS v) TO '{folder}/{target}' {options}");
        let e = error(&ctx, &copy).await;
        let named = e.contains("the option pruning of PARQUET applies only to reading");
        assert!(named, "{target} {options}: {e}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{options}");
    }
    for option in ["pushdown_filters", "binary_as_string", "skip_metadata", "enable_page_index"] {
        let copy = format!("COPY (SELECT 1 AS a) TO '{folder}/a.parquet' OPTIONS ({option} true)");
        let e = error(&ctx, &copy).await;
        assert!(e.contains(&format!("the option {option} of PARQUET applies")), "{e}");
    }
    // A table reads with these options, and INSERT writes to it.
    let table = format!(
        "CREATE EXTERNAL TABLE t (a INT) STORED AS PARQUET LOCATION '{folder}/t/' OPTIONS (pushdown_filters true)"
    );
    query_batches(&ctx, &table).await.unwrap();
    query_batches(&ctx, "INSERT INTO t VALUES (1), (2)").await.unwrap();
    assert_eq!(query_rows(&ctx, "SELECT a FROM t WHERE a > 1").await, "2");
}

#[tokio::test]
async fn parquet_options_out_of_range_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("a.parquet"));
    let ctx = create_parallel_session();
    let columns = "1 AS i, 'x' AS t, true AS b, CAST(1 AS DOUBLE) AS d";
    let copy = |options: &str| format!("COPY (SELECT {columns}) TO '{path}' OPTIONS ({options})");
    for (options, expected) in [
        (
            "bloom_filter_fpp 2",
            "bloom_filter_fpp of PARQUET must be greater than 0 and less than 1",
        ),
        ("bloom_filter_fpp 'nan'", "must be greater than 0 and less than 1, not NaN"),
        ("'bloom_filter_fpp::i' 0", "the option bloom_filter_fpp::i of PARQUET must be greater"),
        (
            "statistics_truncate_length 0",
            "statistics_truncate_length of PARQUET must be at least 1",
        ),
        ("column_index_truncate_length 0", "must be at least 1, not 0"),
        ("write_batch_size 0", "the option write_batch_size of PARQUET must be at least 1, not 0"),
        ("statistics_enabled 'all'", "must be none, chunk or page, not 'all'"),
        ("maximum_parallel_row_group_writers 0", "must be at least 1, not 0"),
        ("maximum_buffered_record_batches_per_stream 0", "must be at least 1, not 0"),
        ("encoding rle_dictionary", "it cannot be rle_dictionary; for dictionaries, set"),
        ("encoding rle", "the column 'i' has the Parquet type INT64, which the encoding rle"),
        ("encoding delta_binary_packed", "the column 't' has the Parquet type BYTE_ARRAY"),
        ("encoding byte_stream_split", "the column 't' has the Parquet type BYTE_ARRAY"),
        ("encoding bit_packed", "the column 'i' has the Parquet type INT64"),
        ("'encoding::d' delta_byte_array", "the column 'd' has the Parquet type DOUBLE"),
        ("'encoding::i' DELTA_LENGTH_BYTE_ARRAY", "the encoding delta_length_byte_array does not"),
    ] {
        let e = error(&ctx, &copy(options)).await;
        assert!(e.contains(expected), "{options}: {e}");
    }
    assert!(!dir.path().join("a.parquet").exists());
    let encodings = "'encoding::i' delta_binary_packed, 'encoding::t' delta_byte_array, \
                     'encoding::b' rle, 'encoding::d' byte_stream_split";
    let options = format!(
        "{encodings}, dictionary_enabled false, bloom_filter_fpp 0.01, statistics_enabled 'PAGE'"
    );
    assert_eq!(rows_or_error(&ctx, &copy(&options)).await, "1");
    let read = format!("SELECT i, t, b, d FROM '{path}'");
    assert_eq!(rows_or_error(&ctx, &read).await, "1 x true 1.0");
}

#[tokio::test]
async fn settings_of_the_parquet_writer_apply_to_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let ctx = create_parallel_session();
    query_text(&ctx, "SET datafusion.execution.parquet.created_by = 'a test'").await;
    let copy = format!("COPY (SELECT 1 AS i) TO '{}'", display_path(&path));
    assert_eq!(rows_or_error(&ctx, &copy).await, "1");
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.windows(6).any(|bytes| bytes == b"a test"));
}

#[tokio::test]
async fn unknown_options_of_arrow_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("a.arrow"));
    for option in ["nope", "foo.bar"] {
        let copy = format!("COPY (SELECT 1 AS x) TO '{path}' OPTIONS ({option} 1)");
        let e = error(&create_parallel_session(), &copy).await;
        assert!(e.contains(&format!("the format ARROW has no option '{option}'")), "{e}");
        assert!(!Path::new(&path).exists());
    }
}

#[tokio::test]
async fn positions_are_an_option_of_tables() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("a.nrt"));
    let copy = format!("COPY (SELECT 1 AS subject_id) TO '{path}' OPTIONS (positions true)");
    let e = error(&create_parallel_session(), &copy).await;
    assert!(e.contains("option positions of NRT applies only to tables"), "{e}");
    assert!(!Path::new(&path).exists());
}

#[tokio::test]
async fn execution_options_without_an_effect_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let folder = display_path(dir.path());
    let copy = format!("COPY (SELECT 1 AS a, 2 AS b) TO '{folder}");
    for statement in [
        format!("{copy}/a.csv' OPTIONS (execution.batch_size 5)"),
        format!("{copy}/a.nrt' OPTIONS (execution.keep_partition_by_columns true)"),
        format!("{copy}/a/' STORED AS PARQUET PARTITIONED BY (a) OPTIONS (execution.nope 1)"),
        format!(
            "CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION '{folder}/' OPTIONS (execution.keep_partition_by_columns true)"
        ),
    ] {
        let e = error(&ctx, &statement).await;
        assert!(e.contains("has no effect here"), "{statement}: {e}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let kept = format!(
        "{copy}/k/' STORED AS PARQUET PARTITIONED BY (a) OPTIONS (execution.keep_partition_by_columns true)"
    );
    assert_eq!(rows_or_error(&ctx, &kept).await, "1");
}
