//! Columns whose type differs between the files of a folder, or between a file and the declared
//! table.

use super::*;

/// Writes two files with the columns `id` and `x`, and returns statements that create the table `m`
/// of all rows in memory, with `x` in the type `wide`.
async fn write_two(
    dir: &Path,
    extension: &str,
    types: [&str; 2],
    wide: &str,
    values: [&str; 2],
) -> [String; 1] {
    let ctx = create_parallel_session();
    let mut inputs = Vec::new();
    for (file, (data_type, values)) in types.into_iter().zip(values).enumerate() {
        let path = display_path(&dir.join(format!("{file}.{extension}")));
        let options = if extension == "parquet" { " OPTIONS (max_row_group_size 2)" } else { "" };
        let rows = format!(
            "SELECT {file} * 10 + i AS id, arrow_cast(x, '{data_type}') AS x FROM (VALUES {values}) v(i, x)"
        );
        let copy = format!("COPY ({rows} ORDER BY id) TO '{path}'{options}");
        let copied = rows_or_error(&ctx, &copy).await;
        assert!(copied.parse::<u64>().is_ok(), "{copy}: {copied}");
        inputs.push(format!("SELECT id, arrow_cast(x, '{wide}') AS x FROM '{path}'"));
    }
    [format!("CREATE TABLE m AS {}", inputs.join(" UNION ALL "))]
}

const ALIKE: [&str; 9] = [
    "SELECT id, x FROM {} ORDER BY id",
    "SELECT DISTINCT arrow_typeof(x) FROM {}",
    "SELECT min(x), max(x), count(x), count(*) FROM {}",
    "SELECT id FROM {} ORDER BY x, id LIMIT 4",
    "SELECT id FROM {} ORDER BY x DESC NULLS LAST, id LIMIT 4",
    "SELECT x, count(*) FROM {} GROUP BY x ORDER BY x",
    "SELECT a.id, b.id AS other FROM {} a JOIN m b ON a.x = b.x ORDER BY 1, 2",
    "SELECT id FROM {} WHERE x IN (SELECT x FROM m WHERE id > 10) ORDER BY id",
    "SELECT min(x) FROM {} WHERE id > 1",
];

/// Asserts that the statements of [`ALIKE`], and statements with each condition, return the same
/// rows over the folder and over the table `m` in memory.
async fn compare_sessions(dir: &Path, setup: &[String], conditions: &[&str]) {
    let from = format!("'{}/'", display_path(dir));
    let conditions = conditions.iter().flat_map(|condition| {
        [
            format!("SELECT id, x FROM {{}} WHERE {condition} ORDER BY id"),
            format!("SELECT count(*), min(id) FROM {{}} WHERE {condition}"),
            format!("SELECT count(*) FROM {{}} WHERE NOT ({condition})"),
        ]
    });
    let statements: Vec<String> = ALIKE.map(String::from).into_iter().chain(conditions).collect();
    for (partitions, batch) in [(1, 8192), (3, 2)] {
        let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch);
        let ctx = serrate::sql::session_with(config);
        for sql in setup {
            rows_or_error(&ctx, sql).await;
        }
        for sql in &statements {
            let expected = rows_or_error(&ctx, &sql.replace("{}", "m")).await;
            assert!(!expected.contains("rror"), "{sql}: {expected}");
            assert_eq!(rows_or_error(&ctx, &sql.replace("{}", &from)).await, expected, "{sql}");
        }
    }
}

#[tokio::test]
async fn integers_and_floats_are_widened() {
    let ints = [
        "(1, 1), (2, NULL), (3, -5), (4, 7), (5, 2147483647)",
        "(1, 3), (2, 4294967296), (3, NULL), (4, 7)",
    ];
    let of_ints: &[&str] = &[
        "x = 7",
        "x > 2147483646",
        "x = 4294967296",
        "x IN (1, 4294967296)",
        "x <> 7",
        "x > 1.5",
        "x IS NULL",
    ];
    let floats = [
        "(1, 1.5), (2, 0.1), (3, NULL), (4, 'NaN'), (5, 7)",
        "(1, 0.1), (2, 1e300), (3, -9), (4, 7)",
    ];
    let of_floats: &[&str] = &[
        "x = 0.1",
        "x > 0.1",
        "x = 7",
        "x > 1e299",
        "x = 'NaN'::DOUBLE",
        "x IN (0.1, 7)",
        "x BETWEEN 0 AND 1.5",
    ];
    let mixed = [
        "(1, 1), (2, NULL), (3, -5), (4, 7), (5, 2147483647)",
        "(1, 0.5), (2, 1e300), (3, NULL), (4, 7)",
    ];
    for extension in ["parquet", "arrow"] {
        for (types, wide, values, conditions) in [
            (["Int32", "Int64"], "Int64", ints, of_ints),
            (["Float32", "Float64"], "Float64", floats, of_floats),
            (["Int32", "Float64"], "Float64", mixed, of_floats),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let setup = write_two(dir.path(), extension, types, wide, values).await;
            compare_sessions(dir.path(), &setup, conditions).await;
        }
    }
}

#[tokio::test]
async fn times_are_widened() {
    let values = [
        "(1, '1970-01-01 00:00:01'), (2, NULL), (3, '1969-12-31 23:59:59.999'), (4, '2020-01-01 00:00:00.123')",
        "(1, '1970-01-01 00:00:01.000001'), (2, '1969-12-31 23:59:59.999999'), (3, NULL), (4, '2020-01-01 00:00:00.123456')",
    ];
    let dates = ["(1, '1970-01-01'), (2, NULL), (3, '1969-12-31'), (4, '2020-01-01')", values[1]];
    let conditions = &[
        "x = TIMESTAMP '2020-01-01 00:00:00.123456'",
        "x < TIMESTAMP '2020-01-01 00:00:00.123456'",
        "x > TIMESTAMP '2020-01-01 00:00:00.123'",
        "x <= TIMESTAMP '1969-12-31 23:59:59.9995'",
        "x IN (TIMESTAMP '1970-01-01 00:00:01', TIMESTAMP '1969-12-31 23:59:59.999999')",
        "x = DATE '2020-01-01'",
    ];
    for extension in ["parquet", "arrow"] {
        for (first, values) in [("Timestamp(Millisecond, None)", values), ("Date32", dates)] {
            let dir = tempfile::tempdir().unwrap();
            let types = [first, "Timestamp(Microsecond, None)"];
            let setup = write_two(dir.path(), extension, types, types[1], values).await;
            compare_sessions(dir.path(), &setup, conditions).await;
        }
    }
}

#[tokio::test]
async fn lists_and_csv_columns_are_widened() {
    for extension in ["parquet", "arrow"] {
        let dir = tempfile::tempdir().unwrap();
        let at = display_path(dir.path());
        let ctx = create_parallel_session();
        for (file, data_type, x) in
            [(0, "List(Int32)", "[1, NULL]"), (1, "List(Int64)", "[4294967296]")]
        {
            let copy = format!(
                "COPY (SELECT {file} AS id, arrow_cast({x}, '{data_type}') AS x) TO '{at}/{file}.{extension}'"
            );
            assert_eq!(rows_or_error(&ctx, &copy).await, "1", "{copy}");
        }
        let sql = format!("SELECT id, x, ragged_max(x) FROM '{at}/' WHERE len(x) > 0 ORDER BY id");
        assert_eq!(rows_or_error(&ctx, &sql).await, "0 [1, ] 1; 1 [4294967296] 4294967296");
        let sql = format!("SELECT id FROM '{at}/' WHERE ragged_any(x == 4294967296)");
        assert_eq!(rows_or_error(&ctx, &sql).await, "1");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.csv"), "x\n1\n").unwrap();
    std::fs::write(dir.path().join("b.csv"), "x\n1.5\n").unwrap();
    let sql = format!("SELECT x FROM '{}/' ORDER BY x", display_path(dir.path()));
    assert_eq!(rows_or_error(&create_parallel_session(), &sql).await, "1.0; 1.5");
}

#[tokio::test]
async fn types_without_an_exact_common_type_are_refused() {
    for types in [
        ["Int64", "Float64"],
        ["UInt64", "Int64"],
        ["Utf8", "Int64"],
        ["Timestamp(Microsecond, None)", "Timestamp(Nanosecond, None)"],
    ] {
        let dir = tempfile::tempdir().unwrap();
        let at = display_path(dir.path());
        let ctx = create_parallel_session();
        for (file, data_type) in types.iter().enumerate() {
            let x = if data_type.starts_with("Time") { "'2020-01-01'" } else { "1" };
            let copy = format!(
                "COPY (SELECT arrow_cast({x}, '{data_type}') AS x) TO '{at}/{file}.parquet'"
            );
            assert_eq!(rows_or_error(&ctx, &copy).await, "1", "{copy}");
        }
        let e = rows_or_error(&ctx, &format!("FROM '{at}/'")).await;
        assert!(
            e.contains("column 'x'") && e.contains("0.parquet") && e.contains("1.parquet"),
            "{e}"
        );
    }
}

/// Writes a Parquet file of timestamps in milliseconds, and returns a statement that creates a
/// table of it with timestamps in microseconds.
async fn declare_finer(dir: &Path) -> String {
    let path = display_path(&dir.join("0.parquet"));
    let values = "(1, '2020-01-01 00:00:00.123'), (2, '1969-12-31 23:59:59.999')";
    let copy = format!(
        "COPY (SELECT i AS id, [i] AS l, arrow_cast(x, 'Timestamp(Millisecond, None)') AS x FROM (VALUES {values}) v(i, x)) TO '{path}'"
    );
    assert_eq!(rows_or_error(&create_parallel_session(), &copy).await, "2");
    format!(
        "CREATE EXTERNAL TABLE t (id BIGINT, l BIGINT[], x TIMESTAMP) STORED AS PARQUET LOCATION '{path}'"
    )
}

#[tokio::test]
async fn conditions_on_coarser_files_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let create = declare_finer(dir.path()).await;
    let cases = [
        ("SELECT id FROM t WHERE x = TIMESTAMP '2020-01-01 00:00:00.123456'", ""),
        (
            "SELECT id, l, x FROM t WHERE x = TIMESTAMP '2020-01-01 00:00:00.123'",
            "1 [1] 2020-01-01T00:00:00.123",
        ),
        ("SELECT id FROM t WHERE x < TIMESTAMP '2020-01-01 00:00:00.123456' ORDER BY id", "1; 2"),
        (
            "SELECT l FROM t WHERE x > TIMESTAMP '1969-12-31 23:59:59.998999' AND x < TIMESTAMP '1970-01-01'",
            "[2]",
        ),
        (
            "SELECT count(l) FROM t WHERE x <> TIMESTAMP '2020-01-01 00:00:00.123456' AND len(l) = 1",
            "2",
        ),
    ];
    expect_rows(&[&create], &cases).await;
}

/// When this test and `stock_fractions_in_files_are_still_cut` fail,
/// `sql::sources::exact_file_casts` can be removed.
#[tokio::test]
async fn stock_conditions_on_coarser_files_still_round() {
    let dir = tempfile::tempdir().unwrap();
    declare_finer(dir.path()).await;
    let config =
        SessionConfig::new().set_bool("datafusion.execution.parquet.pushdown_filters", true);
    let stock = SessionContext::new_with_config(config);
    let create = format!(
        "CREATE EXTERNAL TABLE t (id BIGINT, x TIMESTAMP(6)) STORED AS PARQUET LOCATION '{}'",
        display_path(&dir.path().join("0.parquet"))
    );
    stock_batches(&stock, &create).await.unwrap();
    let sql = "SELECT id FROM t WHERE x = TIMESTAMP '2020-01-01 00:00:00.123456'";
    assert_eq!(rows_or_error(&stock, sql).await, "1");
}

#[tokio::test]
async fn extremes_may_be_in_the_file_of_the_narrow_type() {
    for (types, values) in [
        (["Int32", "Int64"], ["(1, 1), (2, 100)", "(1, 2), (2, 5)"]),
        (["Utf8", "Dictionary(Int32, Utf8)"], ["(1, 'a'), (2, 'zz')", "(1, 'b')"]),
        (["Dictionary(Int32, Utf8)", "Utf8"], ["(1, 'a'), (2, 'zz')", "(1, 'b')"]),
        (
            ["Timestamp(Millisecond, None)", "Timestamp(Microsecond, None)"],
            ["(1, '2021-01-01'), (2, '2001-01-01')", "(1, '2020-01-01')"],
        ),
        (["Date32", "Timestamp(Microsecond, None)"], ["(1, '2021-01-01')", "(1, '2020-01-01')"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let at = display_path(dir.path());
        write_two(dir.path(), "parquet", types, types[1], values).await;
        let ctx = create_parallel_session();
        for select in ["max(x)", "max(x), count(*)", "min(x)", "min(x), max(x)"] {
            let sql = format!("SELECT {select} FROM '{at}/'");
            let read = format!("{sql} WHERE x IS NOT NULL AND id >= 0");
            assert_eq!(rows_or_error(&ctx, &sql).await, rows_or_error(&ctx, &read).await, "{sql}");
        }
    }
}

#[tokio::test]
async fn stock_bounds_of_other_types_are_still_null() {
    let dir = tempfile::tempdir().unwrap();
    let values = ["(1, 1), (2, 100)", "(1, 2), (2, 5)"];
    write_two(dir.path(), "parquet", ["Int32", "Int64"], "Int64", values).await;
    let ctx = SessionContext::new();
    let create = format!(
        "CREATE EXTERNAL TABLE t (x BIGINT) STORED AS PARQUET LOCATION '{}/'",
        display_path(dir.path())
    );
    stock_batches(&ctx, &create).await.unwrap();
    assert_eq!(stock_one(&ctx, "SELECT max(x) FROM t").await, 5);
}

/// Writes a file with the columns `i`, `x` of the given type, `s` (a struct with a field `x` of
/// this type) and `l` (a list of this type), and returns its path.
async fn write_column(dir: &Path, extension: &str, data_type: &str, values: &str) -> String {
    let path = display_path(&dir.join(format!("a.{extension}")));
    let x = format!("arrow_cast(x, '{data_type}')");
    let rows = format!(
        "SELECT i, {x} AS x, named_struct('x', {x}, 'i', i) AS s, [{x}] AS l FROM (VALUES {values}) v(i, x)"
    );
    let copy = format!("COPY ({rows}) TO '{path}' OPTIONS (overwrite true)");
    assert!(
        rows_or_error(&create_parallel_session(), &copy).await.parse::<u64>().is_ok(),
        "{copy}"
    );
    path
}

#[tokio::test]
async fn values_that_the_declared_type_cannot_hold_are_refused() {
    for extension in ["parquet", "arrow"] {
        for (from, to, values, bad) in [
            ("Float64", "INT", "(1, 2.0), (2, 2.9)", "2.9"),
            ("Float64", "BIGINT", "(1, 2.0), (2, 'NaN')", "NaN"),
            ("Int64", "INT", "(1, 2), (2, 4294967296)", "4294967296"),
            ("Int64", "DOUBLE", "(1, 2), (2, 9007199254740993)", "9007199254740993"),
            ("Decimal128(5, 3)", "DECIMAL(5, 2)", "(1, 2.0), (2, 1.239)", "1.239"),
            (
                "Timestamp(Microsecond, None)",
                "DATE",
                "(1, '2020-01-01'), (2, '2020-01-02 10:00:00')",
                "2020-01-02T10:00:00",
            ),
            (
                "Timestamp(Microsecond, None)",
                "TIMESTAMP(0)",
                "(1, '2020-01-01'), (2, '2020-01-02 10:00:00.5')",
                "10:00:00.5",
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = write_column(dir.path(), extension, from, values).await;
            for partitions in [1, 3] {
                let config = SessionConfig::new().with_target_partitions(partitions);
                let ctx = serrate::sql::session_with(config);
                let create = format!(
                    "CREATE EXTERNAL TABLE t (i BIGINT, x {to}, s STRUCT(x {to}), l {to}[]) STORED AS {extension} LOCATION '{path}'"
                );
                assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
                for sql in [
                    "SELECT x FROM t",
                    "SELECT max(x) FROM t",
                    "SELECT s.x FROM t",
                    "SELECT s FROM t",
                    "SELECT l FROM t",
                    "SELECT count(*) FROM t WHERE x IN (SELECT t.x FROM t)",
                    "SELECT i FROM t WHERE s.x::VARCHAR <> '' AND i > 0",
                ] {
                    let e = rows_or_error(&ctx, sql).await;
                    assert!(e.contains(bad) && e.contains(&path), "{create} {sql}: {e}");
                }
                assert_eq!(rows_or_error(&ctx, "SELECT sum(i) FROM t").await, "3");
            }
        }
    }
}

#[tokio::test]
async fn later_files_of_an_inferred_table_lose_nothing() {
    for extension in ["parquet", "arrow"] {
        let dir = tempfile::tempdir().unwrap();
        let ctx = create_parallel_session();
        write_column(dir.path(), extension, "Int32", "(1, 1), (2, 2)").await;
        let create = format!(
            "CREATE EXTERNAL TABLE t STORED AS {extension} LOCATION '{}/'",
            display_path(dir.path())
        );
        assert_eq!(rows_or_error(&ctx, &create).await, "");
        let path = format!("{}/b.{extension}", display_path(dir.path()));
        let copy = |x: &str| {
            format!("COPY (SELECT 3 AS i, {x}::DOUBLE AS x) TO '{path}' OPTIONS (overwrite true)")
        };
        assert_eq!(rows_or_error(&ctx, &copy("2.9")).await, "1");
        for sql in ["SELECT x FROM t", "SELECT max(x) FROM t"] {
            let e = rows_or_error(&ctx, sql).await;
            assert!(e.contains("2.9") && e.contains(&path) && e.contains("'x'"), "{sql}: {e}");
        }
        assert_eq!(rows_or_error(&ctx, &copy("7")).await, "1");
        assert_eq!(rows_or_error(&ctx, "SELECT max(x) FROM t").await, "7");
        assert_eq!(rows_or_error(&ctx, "SELECT i FROM t WHERE x > 2").await, "3");
    }
}

#[tokio::test]
async fn stock_fractions_in_files_are_still_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_column(dir.path(), "parquet", "Float64", "(1, 2.9)").await;
    let ctx = SessionContext::new();
    let create = format!("CREATE EXTERNAL TABLE t (x INT) STORED AS PARQUET LOCATION '{path}'");
    stock_batches(&ctx, &create).await.unwrap();
    assert_eq!(stock_one(&ctx, "SELECT x FROM t").await, 2);
}

#[tokio::test]
async fn conditions_on_coarser_times_in_structs_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let values = "(1, '1970-01-01 00:00:00'), (2, '2020-01-01 00:00:00')";
    let path = write_column(dir.path(), "parquet", "Timestamp(Millisecond, None)", values).await;
    let create = format!(
        "CREATE EXTERNAL TABLE t (i BIGINT, s STRUCT(x TIMESTAMP(6), y INT)) STORED AS PARQUET LOCATION '{path}'"
    );
    expect_rows(
        &[&create],
        &[
            ("SELECT count(*) FROM t WHERE s.x = TIMESTAMP '1970-01-01 00:00:00.0005'", "0"),
            ("SELECT count(*) FROM t WHERE s.x < TIMESTAMP '1970-01-01 00:00:00.0005'", "1"),
            ("SELECT i, s.y FROM t WHERE s.x = TIMESTAMP '2020-01-01'", "2 NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn fields_of_structs_are_widened() {
    for extension in ["parquet", "arrow"] {
        let dir = tempfile::tempdir().unwrap();
        let at = display_path(dir.path());
        let ctx = create_parallel_session();
        for (file, s, l) in [
            (0, "{x: arrow_cast(1, 'Int32'), a: 'p'}", "[{x: arrow_cast(1, 'Int32')}]"),
            (1, "{b: 7, x: 4294967296}", "[{x: 4294967296}, NULL]"),
        ] {
            let copy = format!(
                "COPY (SELECT {file} AS id, {s} AS s, {l} AS l) TO '{at}/{file}.{extension}'"
            );
            assert_eq!(rows_or_error(&ctx, &copy).await, "1", "{copy}");
        }
        let sql = format!("SELECT s.x, s.a, s.b, l FROM '{at}/' ORDER BY id");
        let rows = rows_or_error(&ctx, &sql).await;
        assert_eq!(rows, "1 p NULL [{x: 1}]; 4294967296 NULL 7 [{x: 4294967296}, ]");
        let sql = format!("SELECT id FROM '{at}/' WHERE s.x > 1 AND s.b = 7");
        assert_eq!(rows_or_error(&ctx, &sql).await, "1");
    }
}

/// A column, or field of a struct, that is declared NOT NULL and that one of the files lacks is
/// NULL in the rows of this file.
#[tokio::test]
async fn not_null_columns_that_a_file_lacks_are_null() {
    use datafusion::arrow::array::{LargeListArray, ListArray, StringArray, StructArray};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::parquet::arrow::ArrowWriter;

    let required = |name: &str, t: DataType| Arc::new(Field::new(name, t, false));
    let write = |path: &Path, columns: Vec<(Arc<Field>, ArrayRef)>| {
        let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let file = std::fs::File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    };
    let number = |v: i64| Arc::new(Int64Array::from(vec![v])) as ArrayRef;
    let text = Arc::new(StringArray::from(vec!["p"])) as ArrayRef;
    let lists = || [Some(vec![Some(1i64)])];
    let large: ArrayRef = Arc::new(LargeListArray::from_iter_primitive::<Int64Type, _, _>(lists()));
    let small: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists()));
    let list = |of: &ArrayRef| Arc::new(Field::new("l", of.data_type().clone(), true));
    let (a, s) = (required("a", DataType::Int64), required("s", DataType::Utf8));
    let both = StructArray::from(vec![(Arc::clone(&a), number(5)), (s, text)]);
    let one = StructArray::from(vec![(a, number(6))]);
    let id = || required("id", DataType::Int64);
    let x = |of: &StructArray| required("x", of.data_type().clone());
    let dir = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let folder = dir.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    };
    let (flat, nested) = (folder("flat"), folder("nested"));
    write(
        &flat.join("0.parquet"),
        vec![(id(), number(1)), (required("n", DataType::Int64), number(7)), (list(&large), large)],
    );
    write(&flat.join("1.parquet"), vec![(id(), number(2)), (list(&small), small)]);
    write(&nested.join("0.parquet"), vec![(id(), number(1)), (x(&both), Arc::new(both.clone()))]);
    write(&nested.join("1.parquet"), vec![(id(), number(2)), (x(&one), Arc::new(one.clone()))]);
    let ctx = create_parallel_session();
    for (sql, right) in [
        ("SELECT id FROM '{flat}/' WHERE n IS NULL", "2"),
        ("SELECT id, n, l FROM '{flat}/' ORDER BY id", "1 7 [1]; 2 NULL [1]"),
        ("SELECT count(n), count(*) FROM '{flat}/'", "1 2"),
        ("SELECT id, x.s IS NULL FROM '{nested}/' ORDER BY id", "1 false; 2 true"),
        ("SELECT id FROM '{nested}/' WHERE x.s IS NULL", "2"),
        ("SELECT id, x.a, x.s FROM '{nested}/' WHERE x.s IS NOT NULL", "1 5 p"),
        (
            "SELECT id, x.s, count(*) FROM '{nested}/' GROUP BY id, x.s ORDER BY id",
            "1 p 1; 2 NULL 1",
        ),
    ] {
        let sql =
            sql.replace("{flat}", &display_path(&flat)).replace("{nested}", &display_path(&nested));
        assert_eq!(rows_or_error(&ctx, &sql).await, right, "{sql}");
    }
}

/// A table may declare a column NOT NULL, or be inferred from files that require it, while later
/// files have NULL there. No row is lost or found wrongly, but INSERT still refuses NULL.
#[tokio::test]
async fn files_may_have_null_in_not_null_columns_of_created_tables() {
    for extension in ["parquet", "arrow"] {
        let dir = tempfile::tempdir().unwrap();
        let at = display_path(dir.path());
        let ctx = create_parallel_session();
        let copy = |rows: &str, file: u8| format!("COPY ({rows}) TO '{at}/{file}.{extension}'");
        assert_eq!(rows_or_error(&ctx, &copy("SELECT 1 AS id, 1 AS x", 0)).await, "1");
        for (table, columns) in
            [("inferred", ""), ("declared", "(id BIGINT NOT NULL, x BIGINT NOT NULL)")]
        {
            let create = format!(
                "CREATE EXTERNAL TABLE {table} {columns} STORED AS {extension} LOCATION '{at}/'"
            );
            assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
        }
        let later = "SELECT column1 AS id, column2 AS x FROM (VALUES (2, NULL), (3, 3))";
        assert_eq!(rows_or_error(&ctx, &copy(later, 1)).await, "2");
        assert_eq!(rows_or_error(&ctx, &copy("SELECT 4 AS id", 2)).await, "1");
        for table in ["inferred", "declared"] {
            for (sql, right) in [
                ("SELECT id, x FROM t ORDER BY id", "1 1; 2 NULL; 3 3; 4 NULL"),
                ("SELECT id FROM t WHERE x IS NULL ORDER BY id", "2; 4"),
                ("SELECT id FROM t WHERE x IS NOT NULL ORDER BY id", "1; 3"),
                ("SELECT id FROM t WHERE x NOT IN (7) ORDER BY id", "1; 3"),
                ("SELECT count(*), count(x), count(id) FROM t", "4 2 4"),
            ] {
                let sql = sql.replace("FROM t", &format!("FROM {table}"));
                assert_eq!(rows_or_error(&ctx, &sql).await, right, "{extension} {sql}");
            }
        }
        let e = rows_or_error(&ctx, "INSERT INTO declared SELECT id, x FROM inferred").await;
        assert!(e.contains("non-nullable"), "{extension}: {e}");
    }
}

#[tokio::test]
async fn declared_names_in_another_case_than_in_the_file_are_refused() {
    for extension in ["parquet", "arrow", "json", "ndjson"] {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}/0.{extension}", display_path(dir.path()));
        let ctx = create_parallel_session();
        let copy = format!("COPY (SELECT 1 AS \"subjectId\", 2 AS a, 3 AS \"A\") TO '{path}'");
        assert_eq!(rows_or_error(&ctx, &copy).await, "1");
        let create = |columns: &str| {
            format!(
                "CREATE OR REPLACE EXTERNAL TABLE t ({columns}) STORED AS {extension} LOCATION '{path}'"
            )
        };
        let e = rows_or_error(&ctx, &create("subjectId BIGINT, a INT")).await;
        assert!(e.contains("(\"subjectId\" INT)"), "{extension}: {e}");
        let quoted = create("\"subjectId\" BIGINT, a INT, b INT");
        assert_eq!(rows_or_error(&ctx, &quoted).await, "");
        assert_eq!(rows_or_error(&ctx, "SELECT * FROM t").await, "1 2 NULL");
    }
}

#[tokio::test]
async fn declared_fields_in_another_case_than_in_the_file_are_refused() {
    for extension in ["parquet", "arrow", "ndjson"] {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}/0.{extension}", display_path(dir.path()));
        let ctx = create_parallel_session();
        let copy = format!("COPY (SELECT [{{'Id': 1, 'n': 2}}] AS v) TO '{path}'");
        assert_eq!(rows_or_error(&ctx, &copy).await, "1");
        let create = |fields: &str| {
            format!(
                "CREATE EXTERNAL TABLE t (v STRUCT({fields})[]) STORED AS {extension} LOCATION '{path}'"
            )
        };
        let e = rows_or_error(&ctx, &create("id INT, n INT")).await;
        assert!(e.contains("'v.id'") && e.contains("(\"Id\" INT)"), "{extension}: {e}");
        assert_eq!(rows_or_error(&ctx, &create("\"Id\" INT, n INT")).await, "");
        assert_eq!(rows_or_error(&ctx, "SELECT v[1] FROM t").await, "{Id: 1, n: 2}");
    }
}

/// The values of a tensor of shape [2, 1] are not a tensor of shape [1, 2], although the types are
/// equal.
#[tokio::test]
async fn files_with_tensors_of_several_shapes_are_lists() {
    let ctx = create_parallel_session();
    let tag = "coalesce(arrow_metadata(d, 'ARROW:extension:metadata'), arrow_metadata(d, 'ARROW:extension:name'))";
    for extension in ["parquet", "arrow"] {
        for (shapes, expected) in [
            (["[1, 2]", "[1, 2]"], "{\"shape\":[1,2]}"),
            (["[1, 2]", "[2, 1]"], "NULL"),
            (["[2, 1]", "[1, 2]"], "NULL"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            for (file, shape) in shapes.iter().enumerate() {
                let path = display_path(&dir.path().join(format!("{file}.{extension}")));
                let copy = format!("COPY (SELECT densify([[7], [8]], {shape}) AS d) TO '{path}'");
                assert_eq!(rows_or_error(&ctx, &copy).await, "1", "{copy}");
            }
            let folder = display_path(dir.path());
            let found = query_rows(&ctx, &format!("SELECT DISTINCT {tag} FROM '{folder}/'")).await;
            assert_eq!(found, expected, "{extension} {shapes:?}");
            let found = query_rows(&ctx, &format!("SELECT sum(d[1]) FROM '{folder}/'")).await;
            assert_eq!(found, "14", "{extension} {shapes:?}");
        }
    }
}

#[tokio::test]
async fn nrt_files_keep_the_values_of_other_types() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let at = display_path(dir.path());
    for (file, rows) in [
        ("a", "1 AS id, 1.5::DOUBLE AS f, [9007199254740993] AS x, 300 AS n"),
        ("b", "2 AS id, 2::DOUBLE AS f, [0.5::FLOAT] AS x, 7 AS n"),
    ] {
        let copy = format!("COPY (SELECT {rows}) TO '{at}/{file}.nrt'");
        assert_eq!(rows_or_error(&ctx, &copy).await, "1", "{copy}");
    }
    let create = |columns: &str| {
        format!("CREATE OR REPLACE EXTERNAL TABLE t ({columns}) STORED AS NRT LOCATION '{at}/'")
    };
    for (columns, sql, value) in [
        ("f INT", "SELECT f FROM t", "'1.5'"),
        ("f INT", "SELECT f FROM t WHERE f > 0", "'1.5'"),
        ("n TINYINT, id INT", "SELECT n FROM t", "'300'"),
        ("x DOUBLE[]", "SELECT x FROM t", "'9007199254740993'"),
    ] {
        assert_eq!(rows_or_error(&ctx, &create(columns)).await, "", "{columns}");
        let e = error(&ctx, sql).await;
        assert!(e.contains("a.nrt: the column") && e.contains(value), "{columns} {sql}: {e}");
    }
    // Without a declaration, the type of `x` is that of numpy's promotion.
    let e = error(&ctx, &format!("SELECT x FROM '{at}/*.nrt'")).await;
    assert!(e.contains("a.nrt: the column 'x'") && e.contains("Float64"), "{e}");
    let found = query_rows(&ctx, &format!("SELECT id, f, n FROM '{at}/' ORDER BY id")).await;
    assert_eq!(found, "1 1.5 300; 2 2.0 7");
    assert_eq!(rows_or_error(&ctx, &create("f INT, n TINYINT, id BIGINT")).await, "");
    assert_eq!(query_rows(&ctx, "SELECT f, n FROM t WHERE id = 2").await, "2 7");
}
