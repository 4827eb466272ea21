//! `.nrt` files as tables.

use datafusion::arrow::array::{Float32Array, UInt8Array, UInt16Array};
use datafusion::arrow::datatypes::{DataType, Float32Type};

use super::*;

fn make_codes(lengths: &[usize], column: &str, values: ArrayRef) -> RaggedTable {
    let lengths = lengths.iter().copied();
    RaggedTable::builder().lengths(lengths).unwrap().column(column, 1, values).build().unwrap()
}

#[tokio::test]
async fn a_file_is_a_table_by_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nrt");
    write_table(&path, &make_numbered_table(1, 3));
    let whole =
        query_text(&create_parallel_session(), &format!("SELECT * FROM '{}'", display_path(&path)))
            .await;
    let expected = [
        "+----+----------------+",
        "| id | code           |",
        "+----+----------------+",
        "| 1  | [[10]]         |",
        "| 2  | [[20, 21]]     |",
        "| 3  | [[30, 31, 32]] |",
        "+----+----------------+",
    ];
    assert_eq!(whole, expected.join("\n"));
}

#[tokio::test]
async fn files_of_subfolders_are_read_with_the_widest_type() {
    let dir = tempfile::tempdir().unwrap();
    let narrow = make_codes(&[1, 2], "code", Arc::new(UInt8Array::from(vec![1, 2, 3])));
    let wide = make_codes(&[1], "code", Arc::new(UInt16Array::from(vec![60_000])));
    write_table(&dir.path().join("a.nrt"), &narrow);
    write_table(&dir.path().join("train/0.nrt"), &wide);
    std::fs::write(dir.path().join("notes.txt"), "no table").unwrap();
    let ctx = create_parallel_session();
    let folder = display_path(dir.path());
    let create = format!("CREATE EXTERNAL TABLE t STORED AS NRT LOCATION '{folder}'");
    query_batches(&ctx, &create).await.unwrap();
    for from in ["t".to_string(), format!("'{folder}/**/*.nrt'")] {
        let all = query_batches(&ctx, &format!("SELECT code FROM {from}")).await.unwrap();
        let leaf = all[0].column(0).as_list::<i32>().value_type();
        assert_eq!(leaf, DataType::UInt16, "{from}");
    }
    assert_eq!(query_int(&ctx, "SELECT count(*) FROM t").await, 3);
    let sums = "SELECT c FROM (SELECT unnest(code) AS c FROM t) ORDER BY c";
    assert_eq!(query_ints(&ctx, sums).await, [1, 2, 3, 60_000]);
    // Values are cast to the wider type before the scan evaluates expressions over them.
    let pushed = "SELECT max(array_max(code)) FROM t";
    assert_eq!(query_int(&ctx, pushed).await, 60_000);
}

#[tokio::test]
async fn a_folder_is_a_table_with_its_subfolders() {
    let dir = tempfile::tempdir().unwrap();
    write_table(&dir.path().join("b/2.nrt"), &make_numbered_table(5, 2));
    write_table(&dir.path().join("a/1.nrt"), &make_numbered_table(1, 2));
    let ctx = create_parallel_session();
    let sql = format!("SELECT id FROM '{}/' ORDER BY id", display_path(dir.path()));
    assert_eq!(query_ints(&ctx, &sql).await, [1, 2, 5, 6]);
}

#[tokio::test]
async fn a_column_that_a_file_lacks_is_null_there() {
    let dir = tempfile::tempdir().unwrap();
    let one_column = make_codes(&[1], "code", Arc::new(UInt8Array::from(vec![1])));
    let other = make_codes(&[2], "val", Arc::new(Float32Array::from(vec![0.5, 1.5])));
    write_table(&dir.path().join("a.nrt"), &one_column);
    write_table(&dir.path().join("b.nrt"), &other);
    let ctx = create_parallel_session();
    let sql =
        format!("SELECT * FROM '{}/*.nrt' ORDER BY code NULLS LAST", display_path(dir.path()));
    let expected = [
        "+------+------------+",
        "| code | val        |",
        "+------+------------+",
        "| [1]  |            |",
        "|      | [0.5, 1.5] |",
        "+------+------------+",
    ];
    assert_eq!(query_text(&ctx, &sql).await, expected.join("\n"));
}

#[tokio::test]
async fn files_that_differ_in_axes_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    write_table(
        &dir.path().join("a.nrt"),
        &make_codes(&[1], "x", Arc::new(UInt8Array::from(vec![1]))),
    );
    write_table(&dir.path().join("b.nrt"), &numbered_as("x"));
    let ctx = create_parallel_session();
    let e = error(&ctx, &format!("SELECT * FROM '{}/*.nrt'", display_path(dir.path()))).await;
    assert!(e.contains("a.nrt") && e.contains("b.nrt") && e.contains("\"x\""), "{e}");
    let broken = dir.path().join("c.nrt");
    std::fs::write(&broken, b"no safetensors file at all").unwrap();
    let e = error(&ctx, &format!("SELECT * FROM '{}'", display_path(&broken))).await;
    assert!(e.contains("c.nrt"), "{e}");
}

fn numbered_as(name: &str) -> RaggedTable {
    let table = make_numbered_table(1, 2);
    let code = table.column("code").unwrap().clone().renamed(name);
    table.with_columns(vec![code]).unwrap()
}

#[tokio::test]
async fn nan_is_null_unless_set_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nrt");
    let values = Float32Array::from(vec![1.0, f32::NAN, 3.0]);
    write_table(&path, &make_codes(&[2, 1], "val", Arc::new(values)));
    let ctx = create_parallel_session();
    let missing = format!(
        "SELECT count(*) FROM (SELECT unnest(val) AS v FROM '{}') WHERE v IS NULL",
        display_path(&path)
    );
    assert_eq!(query_int(&ctx, &missing).await, 1);
    let all =
        query_batches(&ctx, &format!("SELECT val FROM '{}'", display_path(&path))).await.unwrap();
    let values = all[0].column(0).as_list::<i32>().values().clone();
    assert_eq!(values.as_primitive::<Float32Type>().null_count(), 1);
    // SET applies to statements that are planned after it, also over tables that were created
    // before it.
    let create =
        format!("CREATE EXTERNAL TABLE t STORED AS NRT LOCATION '{}'", display_path(&path));
    query_batches(&ctx, &create).await.unwrap();
    query_batches(&ctx, "SET serrate.nrt_nan = 'nan'").await.unwrap();
    assert_eq!(query_int(&ctx, &missing).await, 0);
    let table = "SELECT count(*) FROM (SELECT unnest(val) AS v FROM t) WHERE isnan(v)";
    assert_eq!(query_int(&ctx, table).await, 1);
    query_batches(&ctx, "SET serrate.mmap = false").await.unwrap();
    assert_eq!(query_int(&ctx, table).await, 1);
}

#[tokio::test]
async fn counting_rows_reads_headers_only() {
    let dir = tempfile::tempdir().unwrap();
    write_table(&dir.path().join("a.nrt"), &make_numbered_table(0, 30));
    write_table(&dir.path().join("b.nrt"), &make_numbered_table(30, 12));
    let ctx = create_parallel_session();
    let sql = format!("SELECT count(*) FROM '{}/*.nrt'", display_path(dir.path()));
    assert_eq!(query_int(&ctx, &sql).await, 42);
    let plan = query_text(&ctx, &format!("EXPLAIN {sql}")).await;
    assert!(plan.contains("PlaceholderRowExec") && !plan.contains("DataSourceExec"), "{plan}");
}

#[tokio::test]
async fn only_selected_columns_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nrt");
    write_table(&path, &make_numbered_table(0, 10));
    // The bounds of axis 2 are damaged: a query that reads `code` fails, and one that reads `id`
    // does not.
    let file = nrt::NrtFile::open(&path, &Default::default()).unwrap();
    let bounds = file.tensors().tensor("dim2/bounds").unwrap().bytes();
    let mut bytes = std::fs::read(&path).unwrap();
    let start = bounds.start as usize;
    bytes[start..start + 8].copy_from_slice(&(-1i64).to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    let ctx = create_parallel_session();
    assert_eq!(
        query_ints(&ctx, &format!("SELECT id FROM '{}'", display_path(&path))).await.len(),
        10
    );
    let e = error(&ctx, &format!("SELECT code FROM '{}'", display_path(&path))).await;
    assert!(e.contains("x.nrt") && e.contains("dim2/bounds"), "{e}");
    let plan =
        query_text(&ctx, &format!("EXPLAIN SELECT id + 1 FROM '{}'", display_path(&path))).await;
    assert!(plan.contains("DataSourceExec") && plan.contains("projection=[id@0 + 1"), "{plan}");
}

#[tokio::test]
async fn batches_account_for_the_memory_of_their_own_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nrt");
    write_table(&path, &make_numbered_table(0, 20_000));
    let ctx = create_parallel_session();
    query_batches(&ctx, "SET serrate.leaf_batch_size = 1000").await.unwrap();
    let all = query_batches(&ctx, &format!("SELECT id, code FROM '{}'", display_path(&path)))
        .await
        .unwrap();
    assert!(all.len() > 50, "{} batches", all.len());
    for batch in &all {
        let leaves = batch.column(1).as_list::<i32>().values().as_list::<i32>().values().len();
        assert!(leaves <= 1000, "{leaves} leaves");
        // Each row has an id of 8 bytes and two offsets of 4 bytes, each leaf has 8 bytes, and
        // arrays have a fixed overhead.
        let own = batch.num_rows() * (8 + 4 + 4) + leaves * 8 + 2048;
        assert!(batch.get_array_memory_size() <= own, "{} > {own}", batch.get_array_memory_size());
    }
}

#[tokio::test]
async fn files_without_rows_or_values_are_read() {
    let dir = tempfile::tempdir().unwrap();
    write_table(&dir.path().join("a.nrt"), &make_numbered_table(0, 0));
    write_table(
        &dir.path().join("b.nrt"),
        &make_codes(&[0, 0], "code2", Arc::new(UInt8Array::from(vec![0u8; 0]))),
    );
    let ctx = create_parallel_session();
    let none = format!("FROM '{}/a.nrt'", display_path(dir.path()));
    assert_eq!(query_int(&ctx, &format!("SELECT count(*) {none}")).await, 0);
    assert!(query_ints(&ctx, &format!("SELECT id {none} WHERE id > 3")).await.is_empty());
    assert_eq!(
        query_int(&ctx, &format!("SELECT count(code2) FROM '{}/b.nrt'", display_path(dir.path())))
            .await,
        2
    );
}

#[tokio::test]
async fn memory_mapped_batches_are_sorted_grouped_and_joined() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nrt");
    write_table(&path, &make_numbered_table(0, 1000));
    let ctx = create_parallel_session();
    let from = format!("'{}'", display_path(&path));
    let sorted = format!("SELECT id, code FROM {from} ORDER BY id DESC LIMIT 3");
    assert_eq!(query_ints(&ctx, &sorted).await, [999, 998, 997]);
    let groups =
        format!("SELECT n FROM (SELECT id % 10 AS k, count(*) AS n FROM {from} GROUP BY k)");
    assert_eq!(query_ints(&ctx, &groups).await, [100; 10]);
    let joined = format!(
        "SELECT sum(cardinality(b.code[1])) FROM {from} a JOIN {from} b ON a.id = b.id WHERE a.id < 10"
    );
    assert_eq!(query_int(&ctx, &joined).await, 45);
}
