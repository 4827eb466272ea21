//! JSON files: inferred schemas include late records and later files, and no value is lost.

use super::*;

/// Writes 1,100 records `many` and then the record `last`, once as lines and once as an array.
/// Returns the paths of both files.
fn write_both(dir: &Path, many: &str, last: &str) -> [String; 2] {
    let records: Vec<&str> = std::iter::repeat_n(many, 1100).chain([last]).collect();
    let (lines, list) = (dir.join("a.ndjson"), dir.join("a.json"));
    std::fs::write(&lines, records.join("\n")).unwrap();
    std::fs::write(&list, format!("[{}]", records.join(",\n"))).unwrap();
    [display_path(&lines), display_path(&list)]
}

#[tokio::test]
async fn late_records_keep_their_fields_and_types() {
    let dir = tempfile::tempdir().unwrap();
    for (many, last, select, expected) in [
        (r#"{"x":1}"#, r#"{"x":2,"y":7}"#, "sum(x), sum(y), count(*)", "1102 7 1101"),
        (r#"{"x":1}"#, r#"{"x":7.5}"#, "sum(x)", "1107.5"),
        (r#"{"x":{"a":1}}"#, r#"{"x":{"a":1,"b":2}}"#, "sum(x.a), sum(x.b)", "1101 2"),
        (r#"{"x":[1]}"#, r#"{"x":[1.5, 2]}"#, "max(x[1]), max(x[2])", "1.5 2.0"),
        (r#"{"x":null}"#, r#"{"x":"a"}"#, "max(x)", "a"),
    ] {
        for path in write_both(dir.path(), many, last) {
            let sql = format!("SELECT {select} FROM '{path}'");
            assert_eq!(rows_or_error(&create_parallel_session(), &sql).await, expected, "{sql}");
            let folder = format!("SELECT {select} FROM '{}'", path.replace("/a.", "/*."));
            assert_eq!(
                rows_or_error(&create_parallel_session(), &folder).await,
                expected,
                "{folder}"
            );
        }
    }
}

#[tokio::test]
async fn lists_with_null_are_read_back_from_lines() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for (at, (values, expected)) in [
        ("[{a: 1}, NULL]", "[{a: 1}, ]"),
        ("[NULL, [1], [NULL]]", "[, [1], []]"),
        ("{a: [NULL, {b: 2}]}", "{a: [, {b: 2}]}"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = display_path(&dir.path().join(format!("{at}.ndjson")));
        let copy = format!("COPY (SELECT {values} AS v) TO '{path}'");
        assert_eq!(rows_or_error(&ctx, &copy).await, "1", "{copy}");
        let read = format!("SELECT v FROM '{path}'");
        assert_eq!(rows_or_error(&ctx, &read).await, expected, "{copy}");
    }
}

#[tokio::test]
async fn files_of_a_folder_have_one_schema() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.ndjson"), r#"{"x":1,"l":[],"s":{"a":1}}"#).unwrap();
    std::fs::write(dir.path().join("b.ndjson"), r#"{"x":2.5,"l":[1],"s":{"b":2},"n":null}"#)
        .unwrap();
    let read =
        format!("SELECT x, l, s.a, s.b, n IS NULL FROM '{}/' ORDER BY x", display_path(dir.path()));
    assert_eq!(
        rows_or_error(&create_parallel_session(), &read).await,
        "1.0 [] 1 NULL true; 2.5 [1] NULL 2 true"
    );
    // A column of numbers in one file and strings in another is a column of strings.
    std::fs::write(dir.path().join("c.ndjson"), r#"{"x":"a"}"#).unwrap();
    let read = format!("SELECT x FROM '{}/' ORDER BY x", display_path(dir.path()));
    assert_eq!(rows_or_error(&create_parallel_session(), &read).await, "1; 2.5; a");
    std::fs::write(dir.path().join("c.ndjson"), r#"{"x":[1]}"#).unwrap();
    let e = rows_or_error(&create_parallel_session(), &read).await;
    assert!(e.contains("c.ndjson") && e.contains("'x'"), "{e}");
}

#[tokio::test]
async fn stock_lists_of_structs_with_null_still_fail() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.json");
    std::fs::write(&path, r#"{"v":[{"a":1},null]}"#).unwrap();
    let ctx = SessionContext::new();
    let read = ctx.register_json("t", &display_path(&path), Default::default()).await;
    assert!(read.unwrap_err().strip_backtrace().contains("Expected struct value"));
}

#[tokio::test]
async fn schema_infer_max_rec_limits_the_records_of_the_schema() {
    let dir = tempfile::tempdir().unwrap();
    let [path, _] = write_both(dir.path(), r#"{"x":1}"#, r#"{"x":2,"y":7}"#);
    let ctx = create_parallel_session();
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS NDJSON LOCATION '{path}' OPTIONS (schema_infer_max_rec 10)"
    );
    query_batches(&ctx, &create).await.unwrap();
    assert_eq!(query_batches(&ctx, "SELECT * FROM t").await.unwrap()[0].num_columns(), 1);
}

#[tokio::test]
async fn stock_late_fields_of_json_are_still_lost() {
    let dir = tempfile::tempdir().unwrap();
    let [path, _] = write_both(dir.path(), r#"{"x":1}"#, r#"{"x":7.5,"y":7}"#);
    let ctx = SessionContext::new();
    let options = datafusion::prelude::JsonReadOptions::default().file_extension(".ndjson");
    ctx.register_json("t", &path, options).await.unwrap();
    assert_eq!(stock_one(&ctx, "SELECT sum(x) FROM t").await, 1107);
    assert_eq!(ctx.table("t").await.unwrap().schema().fields().len(), 1);
}

#[tokio::test]
async fn nulls_are_written_as_null() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for name in ["a.ndjson", "a.json"] {
        let path = display_path(&dir.path().join(name));
        let rows = "SELECT * FROM (VALUES (1, NULL::INT, NULL, {a: 1, b: NULL::INT}), (2, NULL, [NULL, 3], NULL)) t(x, v, l, s)";
        let copy = format!("COPY ({rows}) TO '{path}'");
        assert_eq!(rows_or_error(&ctx, &copy).await, "2", "{copy}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text.lines().next().unwrap(),
            r#"{"x":1,"v":null,"l":null,"s":{"a":1,"b":null}}"#
        );
        let read = format!("SELECT x, v IS NULL, l, s.a FROM '{path}' ORDER BY x");
        assert_eq!(rows_or_error(&ctx, &read).await, "1 true NULL 1; 2 true [, 3] NULL");
    }
}

/// When this test fails, `sql::sources::json_sink` can be removed.
#[tokio::test]
async fn stock_null_is_still_omitted_from_json() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("a.json"));
    let copy = format!("COPY (SELECT 1 AS x, arrow_cast(NULL, 'Int64') AS v) TO '{path}'");
    stock_batches(&SessionContext::new(), &copy).await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), r#"{"x":1}"#);
}

#[tokio::test]
async fn declared_integers_refuse_fractions() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let records = [
        "{\"x\":1,\"l\":[1],\"s\":{\"a\":1},\"f\":0.5}",
        "{\"x\":18446744073709551615,\"l\":[2,null]}",
        "{\"x\":7.0,\"s\":{\"a\":-3e2},\"f\":2}",
    ];
    let columns = "x BIGINT UNSIGNED, l SMALLINT[], s STRUCT(a INT), f DOUBLE";
    let whole = "1 [1] 1 0.5; 7 NULL -300 2.0; 18446744073709551615 [2, ] NULL NULL";
    for list in [false, true] {
        let path = dir.path().join(if list { "a.json" } else { "a.ndjson" });
        let write = |records: &[&str]| {
            let text = match list {
                true => format!("[{}]", records.join(",\n")),
                false => records.join("\n"),
            };
            std::fs::write(&path, text).unwrap();
        };
        let format = if list { "JSON" } else { "NDJSON" };
        write(&records);
        let create = format!(
            "CREATE OR REPLACE EXTERNAL TABLE t ({columns}) STORED AS {format} LOCATION '{}'",
            display_path(&path)
        );
        assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
        let read = "SELECT x, l, s.a, f FROM t ORDER BY x";
        assert_eq!(rows_or_error(&ctx, read).await, whole, "{format}");
        assert_eq!(
            rows_or_error(&ctx, "SELECT count(*), sum(f) FROM t WHERE x < 9").await,
            "2 2.5"
        );
        for (record, parts) in [
            ("{\"x\":7.5}", ["'x'", "7.5", "row 1", "UInt64"]),
            ("{\"x\":-1}", ["'x'", "-1", "row 1", "UInt64"]),
            ("{\"l\":[1, 2.25]}", ["'l'", "2.25", "List", "DOUBLE"]),
            ("{\"s\":{\"a\":0.5}}", ["'s'", "0.5", "Struct", "DOUBLE"]),
            ("{\"l\":[40000]}", ["'l'", "40000", "List", "DOUBLE"]),
        ] {
            write(&[records[0], record]);
            let e = rows_or_error(&ctx, "SELECT * FROM t").await;
            for part in parts.into_iter().chain(["a."]) {
                assert!(e.contains(part), "{record} {part}: {e}");
            }
            assert_eq!(rows_or_error(&ctx, "SELECT sum(f) FROM t").await, "0.5");
        }
    }
}

#[tokio::test]
async fn later_files_of_an_inferred_table_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    std::fs::write(dir.path().join("a.json"), r#"{"x":1}"#).unwrap();
    let create =
        format!("CREATE EXTERNAL TABLE t STORED AS JSON LOCATION '{}/'", display_path(dir.path()));
    query_batches(&ctx, &create).await.unwrap();
    std::fs::write(dir.path().join("b.json"), r#"{"x":1.5}"#).unwrap();
    let e = error(&ctx, "SELECT x FROM t").await;
    assert!(e.contains("b.json") && e.contains("'x'") && e.contains("1.5"), "{e}");
}

#[tokio::test]
async fn values_that_a_declared_type_cannot_hold_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for (column, good, bad) in [
        ("DATE", r#""2020-01-01T00:00:00""#, r#""2020-01-01T23:00:00""#),
        ("TIMESTAMP(0)", r#""2020-01-01T00:00:00.000""#, r#""2020-01-01T00:00:00.9""#),
        ("TIMESTAMP", r#""2020-01-01T00:00:00.123456""#, r#""2020-01-01T00:00:00.1234567""#),
        ("DECIMAL(5, 2)", "1.230", r#""1.239""#),
        ("BIGINT", "1.0", "1e-19"),
        ("BIGINT", "1e2", "1.0000000000000000001"),
        ("BIGINT[]", "[1]", "[1, 1.5]"),
    ] {
        for list in [false, true] {
            let path = dir.path().join(if list { "a.json" } else { "a.ndjson" });
            let format = if list { "JSON" } else { "NDJSON" };
            let write = |values: &[&str]| {
                let records: Vec<String> =
                    values.iter().map(|value| format!("{{\"x\":{value}}}")).collect();
                let text = match list {
                    true => format!("[{}]", records.join(",")),
                    false => records.join("\n"),
                };
                std::fs::write(&path, text).unwrap();
            };
            let create = format!(
                "CREATE OR REPLACE EXTERNAL TABLE t (x {column}) STORED AS {format} LOCATION '{}'",
                display_path(&path)
            );
            write(&[good]);
            assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
            assert_eq!(rows_or_error(&ctx, "SELECT count(x) FROM t").await, "1", "{good}");
            write(&[good, bad]);
            let e = error(&ctx, "SELECT x FROM t").await;
            let value = bad.trim_matches(['"', '[', ']']);
            let value = value.rsplit(' ').next().unwrap();
            assert!(e.contains("a.") && e.contains("'x'") && e.contains(value), "{column}: {e}");
        }
    }
}

#[tokio::test]
async fn large_integers_do_not_become_floats() {
    let dir = tempfile::tempdir().unwrap();
    let records = "{\"x\":9007199254740993}\n{\"x\":1.5}\n{\"x\":9007199254740992}";
    std::fs::write(dir.path().join("a.ndjson"), records).unwrap();
    let e = rows_or_error(
        &create_parallel_session(),
        &format!("SELECT x FROM '{}/'", display_path(dir.path())),
    )
    .await;
    assert!(e.contains("a.ndjson") && e.contains("9007199254740993"), "{e}");
    let create = format!(
        "CREATE EXTERNAL TABLE t (x DOUBLE) STORED AS NDJSON LOCATION '{}/'",
        display_path(dir.path())
    );
    let ctx = create_parallel_session();
    assert_eq!(rows_or_error(&ctx, &create).await, "");
    assert_eq!(rows_or_error(&ctx, "SELECT count(x) FROM t").await, "3");
}

#[tokio::test]
async fn arrays_of_records_have_the_columns_of_all_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.json"), r#"[{"x":1}]"#).unwrap();
    std::fs::write(dir.path().join("b.json"), r#"[{"x":1.5,"v":[{"a":1},null]}]"#).unwrap();
    let read = format!("SELECT x, v FROM '{}/' ORDER BY x", display_path(dir.path()));
    assert_eq!(rows_or_error(&create_parallel_session(), &read).await, "1.0 NULL; 1.5 [{a: 1}, ]");
    // An array without its closing bracket is an error.
    std::fs::write(dir.path().join("b.json"), r#"[{"x":1.5},{"x":2}"#).unwrap();
    let e = rows_or_error(&create_parallel_session(), &read).await;
    assert!(e.contains("b.json") && e.contains("bracket"), "{e}");
}

#[tokio::test]
async fn empty_records_are_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("a.json"));
    std::fs::write(&path, "{}\n{}").unwrap();
    for from in [format!("'{path}'"), format!("read_json('{path}')")] {
        let sql = format!("SELECT count(*) FROM {from}");
        assert_eq!(rows_or_error(&create_parallel_session(), &sql).await, "2", "{sql}");
    }
}

/// Only a declaration gives columns to files without records.
#[tokio::test]
async fn files_without_records_have_no_columns() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for (file, text) in [("a.ndjson", ""), ("b.json", "[]"), ("c.csv", "")] {
        std::fs::write(dir.path().join(file), text).unwrap();
        let path = display_path(&dir.path().join(file));
        let count = format!("SELECT count(*) FROM '{path}'");
        assert_eq!(rows_or_error(&ctx, &count).await, "0", "{file}");
        let e = rows_or_error(&ctx, &format!("SELECT x FROM '{path}'")).await;
        assert!(e.contains("No field named x"), "{file}: {e}");
    }
    let path = display_path(&dir.path().join("a.ndjson"));
    let create = format!("CREATE EXTERNAL TABLE t (x INT) STORED AS NDJSON LOCATION '{path}'");
    assert_eq!(rows_or_error(&ctx, &create).await, "");
    assert_eq!(rows_or_error(&ctx, "SELECT x, count(*) FROM t GROUP BY x").await, "");
}

#[tokio::test]
async fn errors_of_json_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    std::fs::write(dir.path().join("a.ndjson"), "{\"x\":true}\n").unwrap();
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS NDJSON LOCATION '{}/'",
        display_path(dir.path())
    );
    assert_eq!(rows_or_error(&ctx, &create).await, "");
    std::fs::write(dir.path().join("b.ndjson"), "{\"x\":7}\n").unwrap();
    assert!(error(&ctx, "SELECT x FROM t").await.contains("b.ndjson"));
}

/// INSERT writes one record per line, which a table of JSON lists could not read.
#[tokio::test]
async fn insert_into_lists_of_records_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for (folder, text) in [("lists", r#"[{"x":1}]"#), ("lines", r#"{"x":1}"#)] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
        std::fs::write(dir.path().join(folder).join("a.json"), text).unwrap();
        let create = format!(
            "CREATE EXTERNAL TABLE {folder} STORED AS JSON LOCATION '{}/'",
            display_path(&dir.path().join(folder))
        );
        assert_eq!(rows_or_error(&ctx, &create).await, "");
    }
    let e = rows_or_error(&ctx, "INSERT INTO lists VALUES (2)").await;
    assert!(e.contains("lists of records"), "{e}");
    assert_eq!(rows_or_error(&ctx, "SELECT x FROM lists").await, "1");
    assert_eq!(rows_or_error(&ctx, "INSERT INTO lines VALUES (2)").await, "1");
    assert_eq!(rows_or_error(&ctx, "SELECT x FROM lines ORDER BY x").await, "1; 2");
}

#[tokio::test]
async fn declared_names_in_another_case_than_in_records_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    // The last record that is read at CREATE is cut, because the file has more than a megabyte.
    let long = "x".repeat(100_000);
    let records: Vec<String> =
        (0..20).map(|i| format!(r#"{{"ID":{i},"s":{{"N":[null,{i}]}},"t":"{long}"}}"#)).collect();
    let write = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        display_path(&path)
    };
    let lines = write("a.ndjson", records.join("\n"));
    let list = write("a.json", format!("[{}]", records.join(",")));
    for (format, path) in [("NDJSON", lines), ("JSON", list)] {
        let create = |columns: &str| {
            format!(
                "CREATE OR REPLACE EXTERNAL TABLE t ({columns}) STORED AS {format} LOCATION '{path}'"
            )
        };
        let e = rows_or_error(&ctx, &create("id INT")).await;
        assert!(e.contains("'id'") && e.contains("(\"ID\" INT)"), "{format}: {e}");
        let e = rows_or_error(&ctx, &create("\"ID\" INT, s STRUCT(n INT[])")).await;
        assert!(e.contains("'s.n'") && e.contains("'s.N'"), "{format}: {e}");
        let quoted = create("\"ID\" INT, s STRUCT(\"N\" INT[]), x INT");
        assert_eq!(rows_or_error(&ctx, &quoted).await, "");
        let sql = "SELECT sum(\"ID\"), sum(s.\"N\"[2]), count(x) FROM t";
        assert_eq!(rows_or_error(&ctx, sql).await, "190 190 0", "{format}");
    }
}

#[tokio::test]
async fn options_that_the_json_writer_ignores_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let folder = display_path(dir.path());
    for option in ["newline_delimited false", "schema_infer_max_rec 5"] {
        let copy = format!("COPY (SELECT 1 AS x) TO '{folder}/a.json' OPTIONS ({option})");
        let e = error(&ctx, &copy).await;
        assert!(e.contains("applies only to reading"), "{copy}: {e}");
    }
    let create = format!(
        "CREATE EXTERNAL TABLE t (x INT) STORED AS JSON LOCATION '{folder}/' OPTIONS (newline_delimited false)"
    );
    assert_eq!(rows_or_error(&ctx, &create).await, "");
    let e = error(&ctx, "INSERT INTO t VALUES (1)").await;
    assert!(e.contains("INSERT write one record per line"), "{e}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let create = create.replace("newline_delimited false", "schema_infer_max_rec 5");
    assert_eq!(rows_or_error(&ctx, &create.replace("CREATE", "CREATE OR REPLACE")).await, "");
    assert_eq!(rows_or_error(&ctx, "INSERT INTO t VALUES (1)").await, "1");
    assert_eq!(rows_or_error(&ctx, "SELECT x FROM t").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_byte_order_mark_is_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let folder = display_path(dir.path());
    let records: Vec<String> = (0..5000).map(|i| format!("{{\"i\":{i},\"s\":\"é\"}}")).collect();
    let lines = records.join("\n");
    for (name, text) in [("a.ndjson", lines.clone()), ("b.ndjson", lines), ("c.ndjson", "".into())]
    {
        std::fs::write(dir.path().join(name), format!("\u{feff}{text}")).unwrap();
    }
    let ctx = create_parallel_session();
    for size in [1_000_000_000, 1000] {
        let set = format!("SET datafusion.optimizer.repartition_file_min_size = {size}");
        query_batches(&ctx, &set).await.unwrap();
        for (from, rows) in [("a.ndjson", 5000), ("*.ndjson", 10_000), ("", 10_000)] {
            let sql = format!("SELECT count(*), min(i), count(s) FROM '{folder}/{from}'");
            assert_eq!(query_rows(&ctx, &sql).await, format!("{rows} 0 {rows}"), "{sql}");
        }
    }
    let create = "CREATE EXTERNAL TABLE t (i BIGINT) STORED AS NDJSON LOCATION";
    query_batches(&ctx, &format!("{create} '{folder}/'")).await.unwrap();
    assert_eq!(query_rows(&ctx, "SELECT sum(i) FROM t").await, "24995000");
    // A mark elsewhere is not part of a record.
    std::fs::write(dir.path().join("a.ndjson"), "{\"i\":1}\n\u{feff}{\"i\":2}\n").unwrap();
    assert!(error(&ctx, &format!("FROM '{folder}/a.ndjson'")).await.contains("a.ndjson"));
}
