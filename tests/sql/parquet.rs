//! COPY to Parquet files.

use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use serrate::dense::DenseTensor;

use super::*;

fn open_parquet(path: &Path) -> ParquetRecordBatchReaderBuilder<std::fs::File> {
    ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap()
}

#[tokio::test]
async fn a_damaged_file_among_others_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        let out = dir.path().join(format!("{name}.parquet"));
        query_batches(
            &create_parallel_session(),
            &format!("COPY (SELECT 1 AS a) TO '{}'", display_path(&out)),
        )
        .await
        .unwrap();
    }
    let cut = dir.path().join("b.parquet");
    let bytes = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let e = error(
        &create_parallel_session(),
        &format!("SELECT * FROM '{}/*.parquet'", display_path(dir.path())),
    )
    .await;
    assert!(e.contains("b.parquet: ") && e.contains("footer"), "{e}");
}

#[tokio::test]
async fn an_existing_parquet_file_is_replaced_only_with_overwrite() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/x.parquet");
    let ctx = create_parallel_session();
    let copy =
        |n: i64| format!("COPY (SELECT {n} AS a) TO '{}' STORED AS PARQUET", display_path(&out));
    let read = format!("SELECT a FROM '{}'", display_path(&out));
    assert_eq!(query_int(&ctx, &copy(1)).await, 1);
    let e = error(&ctx, &copy(2)).await;
    assert!(e.contains("exists"), "{e}");
    assert_eq!(query_int(&create_parallel_session(), &read).await, 1);
    query_batches(&ctx, &format!("{} OPTIONS (overwrite true)", copy(3))).await.unwrap();
    assert_eq!(query_int(&create_parallel_session(), &read).await, 3);
    // A query that fails keeps the existing file, and leaves no temporary file.
    let fails = format!(
        "COPY (SELECT 1 / (v - 5) AS a FROM (SELECT unnest([4, 5]) AS v)) TO '{}' OPTIONS (overwrite true)",
        display_path(&out)
    );
    error(&ctx, &fails).await;
    assert_eq!(query_int(&create_parallel_session(), &read).await, 3);
    assert_eq!(std::fs::read_dir(out.parent().unwrap()).unwrap().count(), 1);
}

#[tokio::test]
async fn parquet_row_groups_are_limited_by_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    // All 8 rows of 300,000 leaves fit into one row group, which holds up to 4 Mi leaves, also
    // within structs.
    for (name, value) in [("list", "range(0, 300000)"), ("struct", "{'v': range(0, 300000)}")] {
        let out = dir.path().join(format!("{name}.parquet"));
        let sql = format!(
            "COPY (SELECT {value} AS v FROM (SELECT unnest(range(0, 8)))) TO '{}'",
            display_path(&out)
        );
        assert_eq!(query_int(&ctx, &sql).await, 8);
        let file = open_parquet(&out);
        let groups = file.metadata().row_groups();
        let rows: Vec<_> = groups.iter().map(|g| g.num_rows()).collect();
        assert_eq!(rows, [8], "{name}");
        let column = groups[0].column(0);
        assert!(matches!(column.compression(), Compression::ZSTD(_)));
        assert!(column.offset_index_offset().is_some() && column.column_index_offset().is_some());
    }
}

#[tokio::test]
async fn values_and_types_are_read_back_from_parquet() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.parquet");
    let ctx = create_parallel_session();
    let tensor = DenseTensor::from_vec(vec![2, 3, 2], (0u16..12).collect::<Vec<_>>()).unwrap();
    let schema =
        Schema::new(vec![Field::new("id", DataType::Int64, true), tensor.field("x").unwrap()]);
    let batch =
        RecordBatch::try_new(Arc::new(schema), vec![make_ints([5, 6]), tensor.to_arrow().unwrap()])
            .unwrap();
    ctx.register_batch("p", batch).unwrap();
    // The query returns lists of different lengths, structs, nulls, strings, times and tensors.
    let query = "SELECT id, CASE WHEN id = 5 THEN [1, 2, 3] END AS a, [[1.5], NULL, []] AS b, \
                 {'k': id, 's': ['u', NULL]} AS c, 'text' AS d, \
                 TIMESTAMP '2020-01-01T00:00:00' AS e, x FROM p";
    let expected = query_text(&ctx, query).await;
    query_batches(&ctx, &format!("COPY ({query}) TO '{}'", display_path(&out))).await.unwrap();
    assert_eq!(
        query_text(&ctx, &format!("SELECT * FROM '{}'", display_path(&out))).await,
        expected
    );
    let frame = serrate::sql::sql(&ctx, query).await.unwrap();
    let file = open_parquet(&out);
    for field in frame.schema().fields() {
        let found = file.schema().field_with_name(field.name()).unwrap();
        assert_eq!(found.metadata(), field.metadata());
        if field.name() != "x" {
            assert_eq!(found.data_type(), field.data_type());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parquet_files_keep_the_source_order() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for k in 0..6 {
        write_table(&dir.path().join(format!("in/{k}.nrt")), &make_numbered_table(k * 500, 500));
    }
    let from = display_path(&dir.path().join("in/"));
    let sql = format!("CREATE EXTERNAL TABLE t STORED AS NRT LOCATION '{from}'");
    query_batches(&ctx, &sql).await.unwrap();
    let out = display_path(&dir.path().join("x.parquet"));
    query_batches(&ctx, &format!("COPY (SELECT * FROM t) TO '{out}'")).await.unwrap();
    let read = format!("SELECT id FROM '{out}'");
    assert_eq!(
        query_ints(&ctx, &format!("{read} LIMIT 3000")).await,
        (0..3000).collect::<Vec<_>>()
    );
    // Unlike `.nrt`, Parquet files may be written from unordered rows. ORDER BY is kept.
    let grouped = "SELECT id % 7 AS id, count(*) AS n FROM t GROUP BY id % 7";
    let copy = format!("COPY ({grouped}) TO '{out}' OPTIONS (overwrite true)");
    assert_eq!(query_int(&ctx, &copy).await, 7);
    let total = format!("SELECT sum(n) FROM '{out}'");
    assert_eq!(query_int(&create_parallel_session(), &total).await, 3000);
    let copy =
        format!("COPY (SELECT id FROM t ORDER BY id DESC) TO '{out}' OPTIONS (overwrite true)");
    query_batches(&ctx, &copy).await.unwrap();
    let down: Vec<i64> = (0..3000).rev().collect();
    assert_eq!(query_ints(&create_parallel_session(), &format!("{read} LIMIT 3000")).await, down);
}

#[tokio::test]
async fn parquet_folders_and_options_use_the_writer_of_datafusion() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let folder = format!("{}/", display_path(&dir.path().join("folder")));
    let source = "(SELECT v % 2 AS k, v FROM (SELECT unnest(range(0, 10)) AS v))";
    let copy = format!("COPY {source} TO '{folder}' STORED AS PARQUET");
    assert_eq!(query_int(&ctx, &copy).await, 10);
    let overwrite = format!("{copy} OPTIONS (overwrite true)");
    let e = error(&ctx, &overwrite).await;
    assert!(e.contains("overwrite of COPY replaces one file"), "{e}");
    let e = stock_error(&ctx, &overwrite).await;
    assert!(e.contains("one local file"), "{e}");
    let table = format!("CREATE EXTERNAL TABLE f STORED AS PARQUET LOCATION '{folder}'");
    query_batches(&ctx, &table).await.unwrap();
    assert_eq!(query_int(&ctx, "INSERT INTO f VALUES (7, 7)").await, 1);
    assert_eq!(query_int(&ctx, "SELECT count(*) FROM f").await, 11);
    let parts = format!("{}/", display_path(&dir.path().join("parts")));
    let copy = format!("COPY {source} TO '{parts}' STORED AS PARQUET PARTITIONED BY (k)");
    assert_eq!(query_int(&ctx, &copy).await, 10);
    assert!(dir.path().join("parts/k=1").is_dir());
    // An option that only DataFusion's Parquet writer has selects this writer.
    let out = dir.path().join("x.parquet");
    let copy = format!(
        "COPY {source} TO '{}' STORED AS PARQUET OPTIONS (compression snappy)",
        display_path(&out)
    );
    query_batches(&ctx, &copy).await.unwrap();
    let column = open_parquet(&out).metadata().row_group(0).column(0).compression();
    assert_eq!(column, Compression::SNAPPY);
}

#[tokio::test]
async fn batches_of_parquet_are_sized_by_value_counts_in_the_footer() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    // All values are equal, so that lists of 1000 values take as many bytes as lists of 2: the
    // batch size has to follow from the number of values.
    for (length, rows) in [(2, 20_000), (1000, 400)] {
        let path = dir.path().join(format!("{length}.parquet"));
        let sql = format!(
            "COPY (SELECT i, array_repeat(7, {length}) AS x FROM generate_series(1, {rows}) AS t(i)) TO '{}'",
            display_path(&path)
        );
        query_batches(&ctx, &sql).await.unwrap();
    }
    let plan = |columns: &'static str, file: &'static str| {
        let sql = format!(
            "EXPLAIN SELECT {columns} FROM '{}/{file}' WHERE i > 0",
            display_path(dir.path())
        );
        let ctx = &ctx;
        async move { query_text(ctx, &sql).await }
    };
    let short = plan("x", "2.parquet").await;
    assert!(!short.contains("BatchSizeExec"), "{short}");
    let long = plan("x", "1000.parquet").await;
    assert!(long.contains("BatchSizeExec: rows=524"), "{long}");
    let none = plan("i", "1000.parquet").await;
    assert!(!none.contains("BatchSizeExec"), "{none}");
    // Both files together have 440,000 values in 20,400 rows, so their lists are short on average.
    let both = plan("x", "*.parquet").await;
    assert!(!both.contains("BatchSizeExec"), "{both}");
    query_batches(&ctx, "SET serrate.leaf_batch_size = 1000").await.unwrap();
    let both = plan("x", "*.parquet").await;
    assert!(both.contains("BatchSizeExec: rows=46"), "{both}");
}

#[tokio::test]
async fn lengths_of_lists_may_be_keys_of_grouping_sets() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("t.parquet"));
    let ctx = create_parallel_session();
    let rows = "SELECT * FROM (VALUES (1, [1, 2]), (1, [3, 4]), (2, NULL)) v(k, xs)";
    query_batches(&ctx, &format!("COPY ({rows}) TO '{path}'")).await.unwrap();
    for length in ["len(xs)", "ragged_lengths(xs)", "ragged_count(xs)"] {
        let sql = format!(
            "SELECT k, {length}, count(*) FROM '{path}' GROUP BY ROLLUP (k, {length}) ORDER BY 1, 2"
        );
        let found = rows_or_error(&ctx, &sql).await;
        assert!(found.starts_with("1 2 2; 1 NULL 2; 2 "), "{sql}: {found}");
    }
}

/// Returns the types of the columns that a reader derives from the Parquet schema, without the
/// Arrow schema in the metadata.
fn foreign_types(path: &Path) -> Vec<DataType> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let file = std::fs::File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
    reader.schema().fields().iter().map(|field| field.data_type().clone()).collect()
}

/// Returns `path` if it is a file, and otherwise a file in the first folder entry, recursively.
fn find_file(path: &Path) -> std::path::PathBuf {
    match path.is_dir() {
        true => find_file(&std::fs::read_dir(path).unwrap().next().unwrap().unwrap().path()),
        false => path.to_path_buf(),
    }
}

#[tokio::test]
async fn times_and_dates_have_standard_parquet_types() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let source = "SELECT a,
            CASE WHEN a = 1 THEN '1969-12-31 23:59:59'::TIMESTAMP(0) END AS t,
            arrow_cast(CASE WHEN a = 1 THEN DATE '1969-12-31' END, 'Date64') AS d,
            arrow_cast(CASE WHEN a = 1 THEN '01:02:03'::TIME END, 'Time32(Second)') AS c,
            [arrow_cast(DATE '2020-02-29', 'Date64'), NULL] AS l,
            {'t': '2020-01-01'::TIMESTAMP(0)} AS s
        FROM (VALUES (1), (2)) v(a)";
    let seconds = DataType::Timestamp(TimeUnit::Millisecond, None);
    for (name, clauses) in [
        ("one.parquet", ""),
        ("other.parquet", "STORED AS PARQUET OPTIONS (compression snappy)"),
        ("all/", "STORED AS PARQUET"),
        ("parts/", "STORED AS PARQUET PARTITIONED BY (a)"),
    ] {
        let path = dir.path().join(name);
        let copy = format!("COPY ({source}) TO '{}/{name}' {clauses}", display_path(dir.path()));
        assert_eq!(rows_or_error(&ctx, &copy).await, "2", "{name}");
        let types = foreign_types(&find_file(&path));
        let [.., t, d, c, l, s] = types.as_slice() else { panic!("{types:?}") };
        assert_eq!((t, d), (&seconds, &DataType::Date32), "{name}");
        assert_eq!(c, &DataType::Time32(TimeUnit::Millisecond), "{name}");
        assert_eq!(serrate::array::leaf_type(l), &DataType::Date32, "{name}");
        let DataType::Struct(fields) = s else { panic!("{s}") };
        assert_eq!(fields[0].data_type(), &seconds, "{name}");
        let from = format!("'{}/{name}'", display_path(dir.path()));
        for (sql, expected) in [
            (
                "SELECT t, d, c, l, s FROM {} ORDER BY a",
                "1969-12-31T23:59:59 1969-12-31 01:02:03 [2020-02-29, ] {t: 2020-01-01T00:00:00}; \
                 NULL NULL NULL [2020-02-29, ] {t: 2020-01-01T00:00:00}",
            ),
            ("SELECT a FROM {} WHERE t < '1970-01-01' AND d = DATE '1969-12-31'", "1"),
            ("SELECT min(t), max(d), count(c) FROM {}", "1969-12-31T23:59:59 1969-12-31 1"),
            ("SELECT a FROM {} ORDER BY t NULLS FIRST LIMIT 1", "2"),
        ] {
            let sql = sql.replace("{}", &from);
            assert_eq!(rows_or_error(&ctx, &sql).await, expected, "{sql}");
        }
    }
}

#[tokio::test]
async fn rows_of_tables_in_seconds_are_inserted_into_parquet() {
    let dir = tempfile::tempdir().unwrap();
    let create = format!(
        "CREATE EXTERNAL TABLE e (t TIMESTAMP(0), l TIMESTAMP(0)[]) STORED AS PARQUET LOCATION '{}/e/'",
        display_path(dir.path())
    );
    let ctx = create_parallel_session();
    query_batches(&ctx, &create).await.unwrap();
    let insert = "INSERT INTO e VALUES
        ('2020-01-01 00:00:01', ['2020-01-01 00:00:02', NULL]), (NULL, NULL)";
    assert_eq!(rows_or_error(&ctx, insert).await, "2");
    for (sql, expected) in [
        ("SELECT t, l FROM e ORDER BY t", "2020-01-01T00:00:01 [2020-01-01T00:00:02, ]; NULL NULL"),
        (
            "SELECT arrow_typeof(t), t::BIGINT FROM e WHERE t > '2020-01-01'",
            "Timestamp(s) 1577836801",
        ),
        ("SELECT max(t) FROM e", "2020-01-01T00:00:01"),
    ] {
        assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn values_that_parquet_cannot_store_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for (value, reason) in [
        (
            "arrow_cast(9223372036854775807, 'Timestamp(Second, None)')",
            "Parquet stores milliseconds",
        ),
        ("[arrow_cast(TIMESTAMP '2020-01-01 05:00:00', 'Date64')]", "cast the dates to timestamps"),
        ("INTERVAL '1 month'", "which Parquet does not have"),
    ] {
        for (name, clauses) in [("x.parquet", ""), ("x/", "STORED AS PARQUET")] {
            let out = format!("{}/{name}", display_path(dir.path()));
            let copy = format!("COPY (SELECT {value} AS q) TO '{out}' {clauses}");
            let e = rows_or_error(&ctx, &copy).await;
            assert!(e.contains("column \"q\"") && e.contains(reason), "{copy}\n{e}");
        }
        assert!(!dir.path().join("x.parquet").exists());
    }
}
