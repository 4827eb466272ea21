//! COPY to safetensors, MEDS data sets, and the limit of dense results.

use datafusion::arrow::array::{Float32Array, UInt16Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use serrate::dense::{DType, DenseTensor};
use serrate::io::safetensors::{FileAccess, dense};

use super::*;

fn read_tensor(path: &Path, name: &str) -> DenseTensor {
    let all = dense::read(path, FileAccess::Map).unwrap();
    let names: Vec<_> = all.iter().map(|(n, _)| n.clone()).collect();
    match all.into_iter().find(|(n, _)| n == name) {
        Some((_, tensor)) => tensor,
        None => panic!("no {name} in {names:?}"),
    }
}

fn make_patients() -> RaggedTable {
    RaggedTable::builder()
        .lengths([2, 1])
        .unwrap()
        .lengths([1, 2, 1])
        .unwrap()
        .column("id", 0, make_ints([5, 6]))
        .column("T", 1, Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5])))
        .column("code", 2, Arc::new(UInt16Array::from(vec![7, 8, 9, 10])))
        .build()
        .unwrap()
}

#[tokio::test]
async fn safetensors_hold_padded_columns_and_masks() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    serrate::sql::register_table(&ctx, "p", make_patients()).unwrap();
    let out = dir.path().join("batch.safetensors");
    let copy = format!("COPY (SELECT * FROM p) TO '{}' STORED AS SAFETENSORS", display_path(&out));
    assert_eq!(query_int(&ctx, &copy).await, 2);
    assert_eq!(read_tensor(&out, "id").as_slice::<i64>().unwrap(), [5, 6]);
    let code = read_tensor(&out, "code");
    assert_eq!((code.dtype(), code.shape()), (DType::I64, [2, 2, 2].as_slice()));
    assert_eq!(code.as_slice::<i64>().unwrap(), [7, 0, 8, 9, 10, 0, 0, 0]);
    assert_eq!(read_tensor(&out, "T").as_slice::<f32>().unwrap(), [0.5, 1.5, 2.5, 0.0]);
    assert_eq!(read_tensor(&out, "dim1/mask").as_bytes(), [1, 1, 1, 0]);
    assert_eq!(read_tensor(&out, "dim2/mask").as_bytes(), [1, 0, 1, 1, 1, 0, 0, 0]);
    // COPY to the existing file is refused without `overwrite`. With it, other options apply.
    assert!(error(&ctx, &copy).await.contains("exists"));
    query_batches(&ctx, &format!("{copy} OPTIONS (overwrite true, left true, keep_types true)"))
        .await
        .unwrap();
    let code = read_tensor(&out, "code");
    assert_eq!(code.dtype(), DType::U16);
    assert_eq!(read_tensor(&out, "T").as_slice::<f32>().unwrap(), [0.5, 1.5, 0.0, 2.5]);
    query_batches(&ctx, "SET serrate.max_dense_bytes = 10").await.unwrap();
    let e = error(&ctx, &format!("{copy} OPTIONS (overwrite true)")).await;
    assert!(e.contains("limit of 10 bytes"), "{e}");
    let e = error(&ctx, &format!("SELECT * FROM '{}'", display_path(&out))).await;
    assert!(e.contains("not read as tables"), "{e}");
}

/// The limit applies to the tensors of all rows of a batch together, and is checked before memory
/// is allocated.
#[tokio::test]
async fn the_limit_of_dense_results_counts_all_rows_of_a_batch() {
    let ctx = serrate::sql::session();
    let make = "CREATE TABLE t AS SELECT value AS id, [[value, 1, 2], [3, 4], [5]] AS g FROM range(40) AS r(value)";
    assert_eq!(rows_or_error(&ctx, make).await, "");
    for (limit, sql, expected) in [
        (
            "4MiB",
            "SELECT cardinality(p) FROM (SELECT id, ragged_pad(g[1:], [900, 2]) AS p FROM t ORDER BY 2 DESC LIMIT 1)",
            "1800",
        ),
        ("4MiB", "SELECT cardinality(ragged_pad(g[1:], [10000, 2])) FROM t WHERE id = 3", "20000"),
        (
            "4MiB",
            "SELECT id FROM (SELECT id, ragged_pad(g[1:], [1000000, 2]) AS p FROM t ORDER BY 2 DESC LIMIT 1)",
            "padding to 40000000 elements on axis 1 needs",
        ),
        (
            "4GiB",
            "SELECT id FROM (SELECT id, ragged_pad(g[1:], [2147483647, 2]) AS p FROM t ORDER BY 2 DESC LIMIT 1)",
            "padding to 85899345880 elements on axis 1 needs",
        ),
        ("4MiB", "SELECT cardinality(densify_valid([id], [200000])) FROM t WHERE id = 3", "200000"),
        (
            "4MiB",
            "SELECT densify_valid([id], [200000]) FROM t",
            "shape [40, 200000] needs 8000000 bytes, more than the limit of 4194304 bytes",
        ),
        (
            "4GiB",
            "SELECT densify_valid([id], [2147483647]) FROM t",
            "shape [40, 2147483647] needs 85899345880 bytes, more than the limit of 4294967296 bytes",
        ),
    ] {
        let set = format!("SET serrate.max_dense_bytes = '{limit}'");
        assert_eq!(rows_or_error(&ctx, &set).await, "");
        let found = rows_or_error(&ctx, sql).await;
        assert!(found.contains(expected), "{sql}\n{found}");
    }
}

#[tokio::test]
async fn tensors_of_fixed_shape_keep_their_shape() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    // The column has two rows of a tensor of shape [3, 2], as `densify` returns them.
    let code = DenseTensor::from_vec(vec![2, 3, 2], (0u16..12).collect::<Vec<_>>()).unwrap();
    let schema =
        Schema::new(vec![Field::new("id", DataType::Int64, true), code.field("code").unwrap()]);
    let columns = vec![make_ints([5, 6]), code.to_arrow().unwrap()];
    let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    ctx.register_batch("p", batch).unwrap();
    let out = dir.path().join("batch.safetensors");
    let sql = format!("COPY (SELECT * FROM p WHERE id > 5) TO '{}'", display_path(&out));
    query_batches(&ctx, &sql).await.unwrap();
    let code = read_tensor(&out, "code");
    assert_eq!((code.dtype(), code.shape()), (DType::I64, [1, 3, 2].as_slice()));
    assert_eq!(code.as_slice::<i64>().unwrap(), [6, 7, 8, 9, 10, 11]);
    assert_eq!(read_tensor(&out, "id").shape(), [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_meds_folder_is_a_table_of_subjects() {
    let ctx = create_parallel_session();
    let from = "meds('tests/data/synthea-meds')";
    let meds = serrate::io::meds::MedsDataset::open("tests/data/synthea-meds").unwrap();
    let shards: Vec<_> =
        meds.shards().map(|s| s.read(&Default::default()).unwrap().events).collect();
    let ids: Vec<i64> = shards
        .iter()
        .flat_map(|t| {
            t.column("subject_id").unwrap().values().as_primitive::<Int64Type>().values().to_vec()
        })
        .collect();
    assert_eq!(query_int(&ctx, &format!("SELECT count(*) FROM {from}")).await, ids.len() as i64);
    assert_eq!(query_ints(&ctx, &format!("SELECT subject_id FROM {from} LIMIT 3")).await, ids[..3]);
    let measurements: usize = shards.iter().map(|t| t.column("code").unwrap().values().len()).sum();
    let count = format!("SELECT sum(array_length(e)) FROM (SELECT unnest(code) AS e FROM {from})");
    assert_eq!(query_int(&ctx, &count).await, measurements as i64);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.nrt");
    query_batches(&ctx, "SET serrate.leaf_batch_size = 700").await.unwrap();
    let copy = format!(
        "COPY (SELECT subject_id, time_delta_days, code_id, numeric_value FROM {from}) TO '{}'",
        display_path(&out)
    );
    query_batches(&ctx, &copy).await.unwrap();
    let table = nrt::NrtFile::open(&out, &Default::default()).unwrap().table().unwrap();
    let written = table.column("subject_id").unwrap().values().clone();
    assert_eq!(written.as_primitive::<Int64Type>().values().to_vec(), ids);
    assert_eq!(table.column("code_id").unwrap().values().len(), measurements);
    let all = query_text(&ctx, &format!("SELECT * FROM {from} LIMIT 1")).await;
    assert!(all.contains("static_code"), "{all}");
    let e = error(&ctx, "SELECT * FROM meds('nowhere')").await;
    assert!(e.contains("nowhere"), "{e}");
    let e = error(&ctx, "SELECT * FROM meds(1)").await;
    assert!(e.contains("folder"), "{e}");
}

#[tokio::test]
async fn copy_of_duplicate_column_names_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = serrate::sql::session();
    for format in ["parquet", "csv", "json", "arrow"] {
        let path = dir.path().join(format!("d.{format}"));
        let sql = format!(
            "COPY (SELECT a.x, b.x FROM (VALUES (1)) a(x), (VALUES (2)) b(x)) TO '{}'",
            path.display()
        );
        let message = rows_or_error(&ctx, &sql).await;
        assert!(message.contains("COPY: the query has two columns named \"x\""), "{message}");
        assert!(!path.exists());
    }
}

#[tokio::test]
async fn folders_without_rows_have_a_file_with_the_columns() {
    for format in ["PARQUET", "CSV", "ARROW"] {
        let dir = tempfile::tempdir().unwrap();
        let at = display_path(dir.path());
        let ctx = create_parallel_session();
        let copy =
            format!("COPY (SELECT 1 AS x, 'a' AS s WHERE false) TO '{at}/w/' STORED AS {format}");
        assert_eq!(rows_or_error(&ctx, &copy).await, "0", "{copy}");
        let count = format!("SELECT count(x), max(s) FROM '{at}/w/'");
        assert_eq!(rows_or_error(&ctx, &count).await, "0 NULL", "{format}");
        let divided = copy.replace("/w/'", "/p/'") + " PARTITIONED BY (s)";
        assert_eq!(rows_or_error(&ctx, &divided).await, "0", "{divided}");
        assert_eq!(std::fs::read_dir(dir.path().join("p")).unwrap().count(), 0);
        let insert = "INSERT INTO t SELECT 1, 'a' WHERE false".to_owned();
        let create = format!(
            "CREATE EXTERNAL TABLE t (x BIGINT, s VARCHAR) STORED AS {format} LOCATION '{at}/t/'"
        );
        std::fs::create_dir(dir.path().join("t")).unwrap();
        assert_eq!(rows_or_error(&ctx, &create).await, "", "{create}");
        assert_eq!(rows_or_error(&ctx, &insert).await, "0", "{insert}");
        assert_eq!(std::fs::read_dir(dir.path().join("t")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn copy_to_the_extension_of_another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = serrate::sql::session();
    let copy = |name: &str, format: &str| {
        format!("COPY (SELECT 1 AS x) TO '{}' {format}", display_path(&dir.path().join(name)))
    };
    for (name, format) in [
        ("z.parquet", "STORED AS SAFETENSORS"),
        ("z.PARQUET", "(FORMAT csv)"),
        ("z.csv", "STORED AS PARQUET"),
        ("z.nrt", "STORED AS JSON"),
    ] {
        let sql = copy(name, format);
        let e = rows_or_error(&ctx, &sql).await;
        assert!(e.contains("of another format; use the extension"), "{sql}: {e}");
        assert!(!dir.path().join(name).exists(), "{sql}");
    }
    // COPY is accepted if the extension belongs to the format, is unknown, or is missing, which
    // means a folder.
    for (name, format) in
        [("z.ndjson", "STORED AS JSON"), ("z.bak", "STORED AS CSV"), ("z", "STORED AS PARQUET")]
    {
        let sql = copy(name, format);
        serrate::sql::sql(&ctx, &sql).await.unwrap().collect().await.unwrap();
    }
}

#[tokio::test]
async fn targets_may_have_the_characters_of_patterns() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let at = display_path(dir.path());
    for format in ["parquet", "csv", "json", "arrow", "nrt"] {
        for name in ["a*b", "c?d", "[1]", "f[2]/x", "g*/x", "e%41 e"] {
            let copy = format!("COPY (SELECT 7 AS x) TO '{at}/{name}.{format}'");
            assert_eq!(rows_or_error(&ctx, &copy).await, "1", "{copy}");
            let path = dir.path().join(format!("{name}.{format}"));
            assert!(path.is_file(), "{copy}");
            let read = format!("SELECT x FROM '{at}/{name}.{format}'");
            assert_eq!(rows_or_error(&ctx, &read).await, "7", "{read}");
            assert!(error(&ctx, &copy).await.contains("already exists"), "{copy}");
        }
        let copy = format!("COPY (SELECT 7 AS x) TO '{at}/k*%5B.{format}'");
        assert_eq!(rows_or_error(&ctx, &copy).await, "1", "{copy}");
    }
    let copy = format!("COPY (SELECT 7 AS x) TO '{at}/h[1]/' STORED AS CSV");
    assert_eq!(rows_or_error(&ctx, &copy).await, "1");
    assert_eq!(rows_or_error(&ctx, &format!("SELECT x FROM '{at}/h[1]/'")).await, "7");
    // An encoded URL names the same file.
    std::fs::write(dir.path().join("a b.csv"), "x\n1\n").unwrap();
    let copy = format!("COPY (SELECT 7 AS x) TO 'file://{at}/a%20b.csv'");
    assert!(error(&ctx, &copy).await.contains("already exists"));
}
