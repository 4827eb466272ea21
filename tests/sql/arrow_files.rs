//! Arrow files and streams as one table: columns are found by name, and cast to the types of the
//! table.

use datafusion::arrow::array::{
    Decimal128Array, Decimal256Array, Float64Array, Int32Array, ListArray, RunArray, StringArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{Field, Int32Type, i256};
use datafusion::arrow::ipc::writer::{FileWriter, StreamWriter};
use datafusion::datasource::file_format::options::ArrowReadOptions;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::parquet::arrow::ArrowWriter;
use object_store::memory::InMemory;
use object_store::path::Path as Location;
use object_store::{ObjectStore, ObjectStoreExt};

use super::*;

/// Writes an Arrow file of two batches: all rows of `batch`, and its first row again.
fn write_file(path: &Path, batch: &RecordBatch) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.write(&batch.slice(0, 1)).unwrap();
    writer.finish().unwrap();
}

fn write_stream(path: &Path, batch: &RecordBatch) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = StreamWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

/// Returns a session that reads each file whole, and one that reads byte ranges of files in three
/// partitions.
fn create_sessions() -> Vec<SessionContext> {
    let parts = SessionConfig::new()
        .with_target_partitions(3)
        .set_usize("datafusion.optimizer.repartition_file_min_size", 1);
    vec![
        serrate::sql::session_with(SessionConfig::new().with_target_partitions(1)),
        serrate::sql::session_with(parts),
    ]
}

#[tokio::test]
async fn columns_of_each_file_are_found_by_name() {
    let dir = tempfile::tempdir().unwrap();
    write_file(
        &dir.path().join("0.arrow"),
        &make_batch(&[("x", make_ints([1, 2])), ("y", make_ints([10, 20]))]),
    );
    write_file(
        &dir.path().join("1.arrow"),
        &make_batch(&[("y", make_ints([30])), ("x", make_ints([3]))]),
    );
    write_file(&dir.path().join("2.arrow"), &make_batch(&[("x", make_ints([4]))]));
    write_stream(
        &dir.path().join("3.arrow"),
        &make_batch(&[("y", make_ints([50])), ("x", make_ints([5]))]),
    );
    let from = format!("'{}/'", display_path(dir.path()));
    for ctx in create_sessions() {
        for (sql, expected) in [
            (
                "SELECT x, y FROM {} ORDER BY x",
                "1 10; 1 10; 2 20; 3 30; 3 30; 4 NULL; 4 NULL; 5 50",
            ),
            ("SELECT y FROM {} WHERE x = 3", "30; 30"),
            ("SELECT x + y FROM {} WHERE y > 20 ORDER BY x", "33; 33; 55"),
            ("SELECT x FROM {} WHERE y IS NULL", "4; 4"),
            ("SELECT count(*), count(y), sum(x) FROM {}", "8 6 23"),
            ("SELECT y, x, y FROM {} ORDER BY x DESC LIMIT 2", "50 5 50; NULL 4 NULL"),
        ] {
            // The columns are those of the first file, then further columns of later files.
            let sql = sql.replace("{}", &from);
            assert_eq!(rows_or_error(&ctx, &sql).await, expected, "{sql}");
        }
    }
}

#[tokio::test]
async fn columns_are_cast_to_the_declared_types() {
    let dir = tempfile::tempdir().unwrap();
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![2.5]));
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![7]));
    write_file(
        &dir.path().join("0.arrow"),
        &make_batch(&[("y", Arc::clone(&doubles)), ("x", ints)]),
    );
    write_file(&dir.path().join("1.arrow"), &make_batch(&[("x", make_ints([8])), ("y", doubles)]));
    for ctx in create_sessions() {
        let create = format!(
            "CREATE EXTERNAL TABLE t (x BIGINT, y DOUBLE, z VARCHAR) STORED AS ARROW LOCATION '{}/'",
            display_path(dir.path())
        );
        query_batches(&ctx, &create).await.unwrap();
        let rows = rows_or_error(&ctx, "SELECT x, y, z FROM t ORDER BY x").await;
        assert_eq!(rows, "7 2.5 NULL; 7 2.5 NULL; 8 2.5 NULL; 8 2.5 NULL");
        let rows = rows_or_error(&ctx, "SELECT arrow_typeof(x) FROM t LIMIT 1").await;
        assert_eq!(rows, "Int64");
    }
}

#[tokio::test]
async fn values_that_cannot_be_cast_are_refused_with_file_and_column() {
    let dir = tempfile::tempdir().unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["1", "two"]));
    let list: ArrayRef =
        make_numbered_table(1, 2).to_batch().unwrap().column_by_name("code").unwrap().clone();
    for (column, reason) in [(texts, "two"), (list, "List")] {
        write_file(
            &dir.path().join("a.arrow"),
            &make_batch(&[("y", make_ints([1, 2])), ("x", column)]),
        );
        for ctx in create_sessions() {
            let create = format!(
                "CREATE EXTERNAL TABLE t (x BIGINT, y BIGINT) STORED AS ARROW LOCATION '{}/'",
                display_path(dir.path())
            );
            query_batches(&ctx, &create).await.unwrap();
            let e = error(&ctx, "SELECT x FROM t").await;
            assert!(e.contains("a.arrow") && e.contains("'x'") && e.contains(reason), "{e}");
            assert_eq!(query_int(&ctx, "SELECT sum(y) FROM t").await, 4);
        }
    }
}

#[tokio::test]
async fn list_views_of_dictionaries_are_written_as_list_views_of_strings() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("v.arrow"));
    let ctx = create_parallel_session();
    let create = "CREATE TABLE v AS SELECT 1 AS i, arrow_cast(['a', NULL], 'ListView(Dictionary(Int8, Utf8))') AS x
        UNION ALL SELECT 2, arrow_cast(['b'], 'ListView(Dictionary(Int8, Utf8))')";
    for sql in [create, &format!("COPY (SELECT * FROM v ORDER BY i) TO '{path}'")] {
        query_batches(&ctx, sql).await.unwrap();
    }
    let sql = format!("SELECT x::VARCHAR, arrow_typeof(x) FROM '{path}'");
    let expected = "[a, NULL] ListView(Utf8); [b] ListView(Utf8)";
    assert_eq!(rows_or_error(&ctx, &sql).await, expected);
}

#[tokio::test]
async fn duplicate_column_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [("a", make_ints([1])), ("a", make_ints([3])), ("b", make_ints([5]))];
    write_file(&dir.path().join("0.arrow"), &make_batch(&columns));
    let path = dir.path().join("0.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let batch = make_batch(&columns);
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let ctx = create_parallel_session();
    for sql in ["SELECT a FROM '{}/0.arrow'", "SELECT * FROM '{}/0.parquet'"] {
        let e = rows_or_error(&ctx, &sql.replace("{}", &display_path(dir.path()))).await;
        assert!(e.contains("several columns named 'a'") && e.contains("/0."), "{sql}\n{e}");
    }
    let b = format!("SELECT b FROM '{}/0.arrow' LIMIT 1", display_path(dir.path()));
    assert_eq!(rows_or_error(&ctx, &b).await, "5");
    let path = dir.path().join("0.csv");
    std::fs::write(&path, "a,a,b\n1,3,5\n").unwrap();
    let e = rows_or_error(&ctx, &format!("SELECT * FROM '{}'", display_path(&path))).await;
    assert!(e.contains("several columns named 'a'") && e.contains("0.csv"), "{e}");
}

#[tokio::test]
async fn stock_arrow_files_are_still_read_by_position() {
    let dir = tempfile::tempdir().unwrap();
    write_file(
        &dir.path().join("0.arrow"),
        &make_batch(&[("x", make_ints([1])), ("y", make_ints([10]))]),
    );
    write_file(
        &dir.path().join("1.arrow"),
        &make_batch(&[("y", make_ints([30])), ("x", make_ints([3]))]),
    );
    let ctx = SessionContext::new();
    let options = ArrowReadOptions::default();
    ctx.register_arrow("t", &display_path(dir.path()), options).await.unwrap();
    // DataFusion reads columns by their position in the file that is listed first, which may be
    // either.
    assert_ne!(stock_one(&ctx, "SELECT max(x) FROM t").await, 3);
}

#[tokio::test]
async fn decimals_of_negative_scale_are_read_as_scale_zero() {
    let dir = tempfile::tempdir().unwrap();
    let values = Decimal128Array::from(vec![Some(0), Some(12), Some(-3), None]);
    let values: ArrayRef = Arc::new(values.with_precision_and_scale(5, -2).unwrap());
    let wide = Decimal256Array::from(vec![Some(i256::ONE), Some(i256::ZERO), None, None]);
    let wide: ArrayRef = Arc::new(wide.with_precision_and_scale(38, -1).unwrap());
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([2, 1, 0, 1]);
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::clone(&values), None));
    let path = dir.path().join("n.arrow");
    write_stream(
        &path,
        &make_batch(&[("a", values), ("w", wide), ("l", lists), ("v", make_ints(1..5))]),
    );
    let from = format!("'{}'", display_path(&path));
    for ctx in create_sessions() {
        for (sql, expected) in [
            ("SELECT a, a::VARCHAR FROM {} ORDER BY v", "0 0; 1200 1200; -300 -300; NULL NULL"),
            (
                "SELECT arrow_typeof(a), arrow_typeof(w) FROM {} LIMIT 1",
                "Decimal128(7, 0) Decimal256(39, 0)",
            ),
            ("SELECT v FROM {} WHERE a = 0", "1"),
            ("SELECT v FROM {} WHERE a <> 0 AND a < 1000", "3"),
            ("SELECT sum(a), max(a), count(a), sum(w) FROM {}", "900 1200 3 10"),
            ("SELECT l FROM {} ORDER BY v LIMIT 3", "[0, 1200]; [-300]; []"),
            ("SELECT v FROM {} WHERE a IN (SELECT a FROM {} WHERE a > 0)", "2"),
        ] {
            let sql = sql.replace("{}", &from);
            assert_eq!(rows_or_error(&ctx, &sql).await, expected, "{sql}");
        }
    }
    let ctx = create_parallel_session();
    for file in ["n.json", "n.parquet", "n.csv"] {
        let copy = display_path(&dir.path().join(file));
        rows_or_error(&ctx, &format!("COPY (SELECT a, v FROM {from}) TO '{copy}'")).await;
        let sql = format!("SELECT a::BIGINT FROM '{copy}' ORDER BY v");
        assert_eq!(rows_or_error(&ctx, &sql).await, "0; 1200; -300; NULL", "{copy}");
    }
}

#[tokio::test]
async fn run_end_encoded_columns_are_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let values = Int64Array::from(vec![Some(7), Some(3), None]);
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 4, 5]), &values).unwrap();
    let runs: ArrayRef = Arc::new(runs);
    let item = Arc::new(Field::new("item", runs.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([2, 1, 0, 1, 1]);
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::clone(&runs), None));
    let path = dir.path().join("r.arrow");
    write_stream(&path, &make_batch(&[("r", runs), ("l", lists), ("v", make_ints(1..6))]));
    for ctx in create_sessions() {
        for (sql, expected) in [
            ("SELECT min(r), max(r), sum(r), arrow_typeof(min(r)) FROM {}", "3 7 20 Int64"),
            ("SELECT r, count(*) FROM {} GROUP BY r ORDER BY r", "3 2; 7 2; NULL 1"),
            ("SELECT v FROM {} WHERE r = 3 ORDER BY v", "3; 4"),
            ("SELECT v FROM {} WHERE r IS NULL", "5"),
            ("SELECT r FROM {} ORDER BY r DESC NULLS LAST LIMIT 3", "7; 7; 3"),
            (
                "SELECT lag(r) OVER (ORDER BY v), min(r) OVER (ORDER BY v) FROM {} ORDER BY v",
                "NULL 7; 7 7; 7 3; 3 3; 3 3",
            ),
            (
                "SELECT a.v, b.r FROM {} a LEFT JOIN {} b ON b.v = a.v + 3 ORDER BY a.v",
                "1 3; 2 NULL; 3 NULL; 4 NULL; 5 NULL",
            ),
            ("SELECT l FROM {} ORDER BY v", "[7, 7]; [3]; []; [3]; []"),
            ("SELECT ragged_sum(l) FROM {} ORDER BY v LIMIT 2", "14; 3"),
        ] {
            let sql = sql.replace("{}", &format!("'{}'", display_path(&path)));
            assert_eq!(rows_or_error(&ctx, &sql).await, expected, "{sql}");
        }
    }
}

/// Creates an object store with an Arrow file `a/0.arrow`, a stream `a/1.arrow` with other columns,
/// and a damaged file.
async fn fill_bucket() -> Arc<InMemory> {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(InMemory::new());
    let path = dir.path().join("0.arrow");
    write_file(&path, &make_batch(&[("x", make_ints([1, 2])), ("y", make_ints([10, 20]))]));
    let file = std::fs::read(&path).unwrap();
    write_stream(&path, &make_batch(&[("y", make_ints([30])), ("x", make_ints([3]))]));
    let stream = std::fs::read(&path).unwrap();
    let damaged = file[..file.len() - 20].to_vec();
    for (name, bytes) in [("a/0.arrow", file), ("a/1.arrow", stream), ("damaged.arrow", damaged)] {
        store.put(&Location::from(name), bytes.into()).await.unwrap();
    }
    store
}

#[tokio::test]
async fn files_and_streams_are_read_from_stores() {
    let store = fill_bucket().await;
    for ctx in create_sessions() {
        let url = ObjectStoreUrl::parse("mem://bucket").unwrap();
        ctx.register_object_store(url.as_ref(), Arc::clone(&store) as Arc<dyn ObjectStore>);
        for (sql, expected) in [
            ("SELECT x, y FROM 'mem://bucket/a/0.arrow' ORDER BY x", "1 10; 1 10; 2 20"),
            ("SELECT x, y FROM 'mem://bucket/a/1.arrow'", "3 30"),
            ("SELECT x, y FROM 'mem://bucket/a/' ORDER BY x", "1 10; 1 10; 2 20; 3 30"),
            ("SELECT sum(y) FROM 'mem://bucket/a/*.arrow' WHERE x > 1", "50"),
            ("SELECT count(*) FROM read_arrow('mem://bucket/a/0.arrow')", "3"),
        ] {
            assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
        }
        let e = rows_or_error(&ctx, "SELECT * FROM 'mem://bucket/damaged.arrow'").await;
        assert!(e.contains("damaged.arrow"), "{e}");
    }
}

#[tokio::test]
async fn stock_arrow_objects_still_have_no_schema() {
    let ctx = SessionContext::new();
    let url = ObjectStoreUrl::parse("mem://bucket").unwrap();
    ctx.register_object_store(url.as_ref(), fill_bucket().await);
    let options = ArrowReadOptions::default();
    let e = ctx.register_arrow("t", "mem://bucket/a/0.arrow", options).await.unwrap_err();
    assert!(e.to_string().contains("IPC message schema"), "{e}");
}
