//! Columns whose type differs between the files of a folder, or is finer in the table than in a file.

use super::*;

/// Writes two files with the columns `id` and `x`, and returns statements that create the table `m` of all rows
/// in memory, with `x` in the type `wide`.
async fn write_two(
    dir: &Path,
    extension: &str,
    types: [&str; 2],
    wide: &str,
    values: [&str; 2],
) -> [String; 1] {
    let ctx = four();
    let mut inputs = Vec::new();
    for (file, (data_type, values)) in types.into_iter().zip(values).enumerate() {
        let path = show(&dir.join(format!("{file}.{extension}")));
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

/// Compares statements over the folder with those over the table in memory.
async fn compare(dir: &Path, setup: &[String], conditions: &[&str]) {
    let from = format!("'{}/'", show(dir));
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
            compare(dir.path(), &setup, conditions).await;
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
            compare(dir.path(), &setup, conditions).await;
        }
    }
}

#[tokio::test]
async fn lists_are_widened_and_csv_has_one_type() {
    for extension in ["parquet", "arrow"] {
        let dir = tempfile::tempdir().unwrap();
        let at = show(dir.path());
        let ctx = four();
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
    let sql = format!("SELECT x FROM '{}/' ORDER BY x", show(dir.path()));
    assert_eq!(rows_or_error(&four(), &sql).await, "1.0; 1.5");
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
        let at = show(dir.path());
        let ctx = four();
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

/// Writes milliseconds and returns the statement that declares them as microseconds.
async fn declare_finer(dir: &Path) -> String {
    let path = show(&dir.join("0.parquet"));
    let values = "(1, '2020-01-01 00:00:00.123'), (2, '1969-12-31 23:59:59.999')";
    let copy = format!(
        "COPY (SELECT i AS id, [i] AS l, arrow_cast(x, 'Timestamp(Millisecond, None)') AS x FROM (VALUES {values}) v(i, x)) TO '{path}'"
    );
    assert_eq!(rows_or_error(&four(), &copy).await, "2");
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

/// When this fails, `sql::sources::parquet::exact_times` can go.
#[tokio::test]
async fn stock_conditions_on_coarser_files_still_round() {
    let dir = tempfile::tempdir().unwrap();
    declare_finer(dir.path()).await;
    let config =
        SessionConfig::new().set_bool("datafusion.execution.parquet.pushdown_filters", true);
    let stock = SessionContext::new_with_config(config);
    let create = format!(
        "CREATE EXTERNAL TABLE t (id BIGINT, x TIMESTAMP(6)) STORED AS PARQUET LOCATION '{}'",
        show(&dir.path().join("0.parquet"))
    );
    batches(&stock, &create).await.unwrap();
    let sql = "SELECT id FROM t WHERE x = TIMESTAMP '2020-01-01 00:00:00.123456'";
    assert_eq!(rows_or_error(&stock, sql).await, "1");
}
