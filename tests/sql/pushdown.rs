//! How many bytes of `.nrt` files a query reads, in object stores and on local disks without memory
//! mapping; positions of rows (`_row`, `_file`).

use std::ops::Range;

use datafusion::arrow::array::{Float32Array, Float64Array, UInt16Array};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect};
use serrate::io::nrt::{NrtFile, ReadOptions};

use super::*;
use crate::store::Counting;

/// Number of bytes of the first request for a file.
const HEAD: u64 = 16 << 10;

/// Returns `n` rows of three events of four codes. A row has 16 bytes of columns on axis 0; 8 bytes
/// of bounds and 24 of `time` on axis 1; 24 of bounds, 24 of `code` and 48 of `value` on axis 2.
fn make_patients(first: i64, n: usize) -> RaggedTable {
    let ids = first..first + n as i64;
    let codes = ids.clone().flat_map(|i| (0..12).map(move |k| ((i * 12 + k) % 50_000) as u16));
    RaggedTable::builder()
        .lengths(vec![3; n])
        .unwrap()
        .lengths(vec![4; 3 * n])
        .unwrap()
        .column("id", 0, make_ints(ids.clone()))
        .column("age", 0, make_ints(ids.map(|i| i % 100)))
        .column("time", 1, Arc::new(Float64Array::from_iter_values((0..3 * n).map(|t| t as f64))))
        .column("code", 2, Arc::new(UInt16Array::from_iter_values(codes)))
        .column(
            "value",
            2,
            Arc::new(Float32Array::from_iter_values((0..12 * n).map(|v| v as f32 / 7.0))),
        )
        .build()
        .unwrap()
}

fn file_of(table: &RaggedTable) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.nrt");
    write_table(&path, table);
    std::fs::read(path).unwrap()
}

const ROWS: usize = 20_000;

/// Creates a session with some partitions and a table `t` over objects whose headers it has read.
async fn create_remote(
    partitions: usize,
    objects: &[(&str, Vec<u8>)],
) -> (SessionContext, Arc<Counting>) {
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
    let store = Counting::with(objects).await;
    let shared = Arc::clone(&store) as Arc<dyn object_store::ObjectStore>;
    let url = ObjectStoreUrl::parse("mem://bucket").unwrap();
    ctx.register_object_store(url.as_ref(), shared);
    run_query(&ctx, "CREATE EXTERNAL TABLE t STORED AS NRT LOCATION 'mem://bucket/data/'").await;
    (ctx, store)
}

async fn one_file(partitions: usize) -> (SessionContext, Arc<Counting>) {
    let (ctx, store) =
        create_remote(partitions, &[("data/a.nrt", file_of(&make_patients(0, ROWS)))]).await;
    let (requests, bytes) = store.counts();
    assert_eq!((requests, bytes), (1, HEAD), "the header is read once");
    (ctx, store)
}

fn take_nested(batch: &RecordBatch, column: &str) -> ArrayRef {
    let lists = batch.column_by_name(column).unwrap();
    let lists = lists.as_list::<i32>().value(0);
    lists.as_list::<i32>().values().clone()
}

#[tokio::test]
async fn reading_one_row_of_an_object_reads_only_its_bytes() {
    for partitions in [1, 4] {
        let (ctx, store) = one_file(partitions).await;
        let batches = run_query(&ctx, "SELECT * FROM t WHERE _row = 12345").await;
        let (requests, bytes) = store.counts();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, 1);
        let batch = batches.iter().find(|b| b.num_rows() == 1).unwrap();
        assert_eq!(batch.num_columns(), 5, "* is what it is without positions");
        let codes = take_nested(batch, "code");
        let expected = (0..12).map(|k| ((12_345 * 12 + k) % 50_000) as u16).collect::<Vec<_>>();
        assert_eq!(
            codes.as_primitive::<datafusion::arrow::datatypes::UInt16Type>().values().to_vec(),
            expected
        );
        // The query reads two bounds of axis 1, four of axis 2, and id, age, time, code and value.
        assert_eq!(bytes, 2 * 8 + 4 * 8 + 8 + 8 + 24 + 24 + 48);
        assert_eq!(requests, 7);
    }
}

#[tokio::test]
async fn limits_read_only_the_bytes_of_their_rows() {
    let (ctx, store) = one_file(4).await;
    assert_eq!(query_ints(&ctx, "SELECT id, code FROM t LIMIT 5").await, [0, 1, 2, 3, 4]);
    let (requests, bytes) = store.counts();
    // The query reads bounds of axes 1 and 2, ids and codes.
    assert_eq!(bytes, 5 * 8 + 15 * 8 + 5 * 8 + 5 * 24);
    assert_eq!(requests, 4);
    assert_eq!(query_ints(&ctx, "SELECT id FROM t LIMIT 3 OFFSET 4").await, [4, 5, 6]);
    assert_eq!(store.counts().1, 7 * 8);
    // The scan reads the column of the condition for the first rows only, then `code` of matching
    // rows.
    let first = "SELECT id, code FROM t WHERE age = 17 LIMIT 3";
    assert_eq!(query_ints(&ctx, first).await, [17, 117, 217]);
    let (_, bytes) = store.counts();
    assert!(bytes < 8192 * 8 + 201 * (8 + 24 + 8 + 24) + 100, "{bytes}");
    assert_eq!(
        query_ints(&ctx, "SELECT id FROM t WHERE id > 15000 LIMIT 2").await,
        [15_001, 15_002]
    );
}

#[tokio::test]
async fn conditions_may_combine_partition_columns_and_others() {
    let objects = [
        ("data/split=held/a.nrt", file_of(&make_patients(0, 300))),
        ("data/split=train/a.nrt", file_of(&make_patients(300, 300))),
    ];
    let (ctx, _) = create_remote(2, &objects).await;
    for (condition, expected) in [
        ("split = 'train'", 300),
        ("split = 'train' OR id < 10", 310),
        ("split = 'held' AND _row < 5", 5),
        ("concat(split, id) = 'held7'", 1),
        ("_file LIKE '%train%' AND split <> 'train'", 0),
    ] {
        let sql = format!("SELECT count(*) FROM t WHERE {condition}");
        assert_eq!(query_ints(&ctx, &sql).await, [expected], "{condition}");
    }
    let all = "SELECT max(split), max(_row), max(_file) FROM t WHERE id = 7";
    let shown = query_text(&ctx, all).await;
    assert!(shown.contains("held") && shown.contains("| 7"), "{shown}");
}

#[tokio::test]
async fn reading_a_column_reads_only_its_own_bounds() {
    let (ctx, store) = one_file(4).await;
    let all = run_query(&ctx, "SELECT time FROM t").await;
    assert_eq!(all.iter().map(RecordBatch::num_rows).sum::<usize>(), ROWS);
    let (_, bytes) = store.counts();
    let least = ROWS as u64 * (8 + 24);
    // Four partitions read the file in ranges of rows; adjacent ranges read the bound between them
    // twice.
    assert!((least..least + 64).contains(&bytes), "{bytes} {least}");
    let ids = run_query(&ctx, "SELECT id FROM t").await;
    assert_eq!(ids.iter().map(RecordBatch::num_rows).sum::<usize>(), ROWS);
    assert_eq!(store.counts().1, ROWS as u64 * 8);
    assert_eq!(query_int(&ctx, "SELECT count(*) FROM t").await, ROWS as i64);
    assert_eq!(store.counts(), (0, 0), "rows are counted in headers");
}

#[tokio::test]
async fn lengths_read_bounds_and_no_values() {
    let (ctx, store) = one_file(1).await;
    let bounds = ROWS as u64 * (8 + 24);
    for (sql, expected) in [
        ("SELECT ragged_count(code) FROM t", 12),
        ("SELECT ragged_count(code) * 2 + ragged_lengths(code, 1) FROM t", 27),
        ("SELECT ragged_max_shape(value)[2] FROM t", 4),
        ("SELECT ragged_shape(value)[1], age FROM t WHERE _row >= 0", 3),
    ] {
        let all = query_ints(&ctx, sql).await;
        assert!(all.len() == ROWS && all.iter().all(|n| *n == expected), "{sql}");
        let (_, bytes) = store.counts();
        let age = if sql.contains("age") { ROWS as u64 * 8 } else { 0 };
        assert!((bounds..bounds + age + 1000).contains(&bytes), "{sql}: {bytes} {bounds}");
    }
    // The scan reads values that are selected, and values that may be NaN, which is NULL and not
    // counted.
    let both = "SELECT ragged_count(code), ragged_sum(code) FROM t WHERE _row < 3";
    let rows = run_query(&ctx, both).await;
    let sums: Vec<u64> = rows
        .iter()
        .flat_map(|b| {
            let sums = b.column(1).as_primitive::<datafusion::arrow::datatypes::UInt64Type>();
            sums.values().to_vec()
        })
        .collect();
    assert_eq!(sums, [66, 66 + 144, 66 + 288]);
    store.take();
    run_query(&ctx, "SELECT ragged_count(value) FROM t").await;
    assert!(store.counts().1 >= bounds + ROWS as u64 * 48);
    run_query(&ctx, "SET serrate.nrt_nan = 'nan'").await;
    assert_eq!(query_ints(&ctx, "SELECT ragged_count(value) FROM t").await, vec![12; ROWS]);
    assert!(store.counts().1 < bounds + 1000);
}

#[tokio::test]
async fn conditions_on_flat_columns_are_read_before_other_columns() {
    let (ctx, store) = one_file(1).await;
    // Every hundredth row has this age.
    let sql = "SELECT id, code, value FROM t WHERE age = 17";
    let batches = run_query(&ctx, sql).await;
    let (_, bytes) = store.counts();
    let ids: Vec<i64> = batches
        .iter()
        .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    assert_eq!(ids, (0..200).map(|i| i * 100 + 17).collect::<Vec<i64>>());
    for batch in &batches {
        let codes = batch.column(1).as_list::<i32>().values().as_list::<i32>().values().clone();
        let codes = codes.as_primitive::<datafusion::arrow::datatypes::UInt16Type>();
        let ids = batch.column(0).as_primitive::<Int64Type>();
        for (i, id) in ids.values().iter().enumerate() {
            assert_eq!(i64::from(codes.value(i * 12)), id * 12 % 50_000);
        }
    }
    let plan = query_text(&ctx, &format!("EXPLAIN {sql}")).await;
    assert!(plan.contains("rows=[age@0 = 17]") && !plan.contains("FilterExec"), "{plan}");
    // The matching rows are 800 bytes or more apart in each column. The scan reads gaps of up to 64
    // KiB instead of sending more requests, so it reads the selected columns completely, and no
    // other column.
    let whole = ROWS as u64 * (8 + 8 + 8 + 24 + 24 + 48);
    assert!(bytes <= whole + HEAD, "{bytes} {whole}");
}

/// Returns rows so large that gaps of a hundred rows exceed the gaps that the scan reads.
fn make_wide_table(n: usize) -> RaggedTable {
    let codes = (0..n * 1000).map(|k| (k % 60_000) as u16);
    RaggedTable::builder()
        .lengths(vec![1000; n])
        .unwrap()
        .column("id", 0, make_ints(0..n as i64))
        .column("age", 0, make_ints((0..n as i64).map(|i| i % 100)))
        .column("code", 1, Arc::new(UInt16Array::from_iter_values(codes)))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_hundredth_of_the_rows_reads_about_a_hundredth_of_the_bytes() {
    let bytes = file_of(&make_wide_table(5000));
    let size = bytes.len() as u64;
    assert!(size > 10_000_000);
    for partitions in [1, 4] {
        let (ctx, store) = create_remote(partitions, &[("data/a.nrt", bytes.clone())]).await;
        store.take();
        let sql = "SELECT count(*), sum(ragged_max(code)) FROM t WHERE age = 17";
        assert_eq!(query_ints(&ctx, sql).await, [50]);
        let (requests, read) = store.counts();
        // The scan reads the column of the condition, 8 bytes per row, then 50 rows of 2,000 bytes.
        // It reads all bounds, because the gaps between the bounds of these rows are small.
        let least = 5000 * 8 + 50 * 2000;
        assert!((least..least + 5000 * 8 + 1000).contains(&read), "{read} of {size}");
        assert!(requests <= 50 + 3 * partitions, "{requests}");
    }
}

#[tokio::test]
async fn partitions_of_a_file_return_each_row_once() {
    let objects = [
        ("data/a.nrt", file_of(&make_patients(0, ROWS))),
        ("data/b.nrt", file_of(&make_patients(20_000, 11_000))),
    ];
    assert!(objects[0].1.len() > 2 << 20);
    for partitions in [1, 3, 4, 16] {
        let (ctx, _) = create_remote(partitions, &objects).await;
        for (condition, expected) in [
            ("true", 31_000),
            ("id % 7 = 3", (0..31_000).filter(|i| i % 7 == 3).count()),
            ("_row % 2 = 0", 15_500),
            ("_row BETWEEN 9000 AND 12000", 3001 + 2000),
            ("age IN (3, 50) OR _row < 10", 31_000 / 50 + 20 - 2),
            ("id >= 30990", 10),
            ("false", 0),
        ] {
            let sql = format!(
                "SELECT count(*), sum(id), sum(cardinality(flatten(code))) FROM t WHERE {condition}"
            );
            let counts = run_query(&ctx, &sql).await;
            let column = |i: usize| counts[0].column(i).clone();
            let count = column(0).as_primitive::<Int64Type>().value(0);
            assert_eq!(count, expected as i64, "{condition} {partitions}");
            let leaves = datafusion::arrow::compute::cast(
                &column(2),
                &datafusion::arrow::datatypes::DataType::Int64,
            )
            .unwrap();
            if expected > 0 {
                assert_eq!(leaves.as_primitive::<Int64Type>().value(0), count * 12);
            }
        }
        let all = query_ints(&ctx, "SELECT id FROM t ORDER BY id").await;
        assert_eq!(all, (0..31_000).collect::<Vec<i64>>());
    }
}

#[tokio::test]
async fn conditions_in_scans_equal_conditions_above_scans() {
    let dir = tempfile::tempdir().unwrap();
    write_table(&dir.path().join("a.nrt"), &make_patients(0, 3000));
    write_table(&dir.path().join("b.nrt"), &make_patients(3000, 500));
    let objects: Vec<(&str, Vec<u8>)> = ["a", "b"]
        .iter()
        .map(|n| std::fs::read(dir.path().join(format!("{n}.nrt"))).unwrap())
        .zip(["data/a.nrt", "data/b.nrt"])
        .map(|(bytes, name)| (name, bytes))
        .collect();
    let (ctx, _) = create_remote(3, &objects).await;
    let local = "CREATE EXTERNAL TABLE l STORED AS NRT LOCATION";
    run_query(&ctx, &format!("{local} '{}/' OPTIONS (positions true)", display_path(dir.path())))
        .await;
    let copy = "CREATE TABLE copied AS SELECT *, _row AS r, _file AS f FROM l";
    run_query(&ctx, copy).await;
    let conditions = [
        "id = 17",
        "id IN (1, 2, 700, 3001)",
        "age > 97 AND id < 1000",
        "id NOT IN (1, 2) AND age BETWEEN 3 AND 5",
        "cardinality(code) = 3 AND age = 4",
        "time[1] > 4000 OR id = 3",
        "id IS NULL",
        "age + id > 3400",
        "NOT (id > 3 AND age < 99)",
    ];
    for from in ["t", "l"] {
        for read in ["true", "false"] {
            run_query(&ctx, &format!("SET serrate.mmap = {read}")).await;
            for condition in conditions {
                let of = |table: &str| {
                    format!("SELECT id, age, time, code FROM {table} WHERE {condition} ORDER BY id")
                };
                let expected = query_text(&ctx, &of("copied")).await;
                assert_eq!(query_text(&ctx, &of(from)).await, expected, "{from} {condition}");
            }
            for (ours, theirs) in [
                ("_row = 17", "r = 17"),
                ("_row < 5 OR _row >= 2998", "r < 5 OR r >= 2998"),
                ("_row IN (1, 400, 2999) AND age > 0", "r IN (1, 400, 2999) AND age > 0"),
                ("7 >= _row AND id <> 3", "7 >= r AND id <> 3"),
                ("_row % 500 = id % 500", "r % 500 = id % 500"),
                ("_file LIKE '%b.nrt' AND _row > 490", "f LIKE '%b.nrt' AND r > 490"),
                ("_file NOT LIKE '%b.nrt' AND _row > 2990", "f NOT LIKE '%b.nrt' AND r > 2990"),
                ("_row = 3.0", "r = 3.0"),
                ("_row > 99999999999", "r > 99999999999"),
                ("_row < -1", "r < -1"),
            ] {
                let select = "SELECT id, age, time, code FROM";
                let expected = format!("{select} copied WHERE {theirs} ORDER BY id");
                let sql = format!("{select} {from} WHERE {ours} ORDER BY id");
                assert_eq!(
                    query_text(&ctx, &sql).await,
                    query_text(&ctx, &expected).await,
                    "{from} {ours}"
                );
            }
        }
    }
}

#[tokio::test]
async fn files_that_cannot_match_are_not_opened() {
    let objects = [
        ("data/a.nrt", file_of(&make_patients(0, 2000))),
        ("data/b.nrt", file_of(&make_patients(2000, 2000))),
    ];
    let (ctx, store) = create_remote(2, &objects).await;
    store.take();
    for condition in [
        "_file = 'mem://bucket/data/b.nrt'",
        "_file IN ('mem://bucket/data/b.nrt', 'elsewhere')",
        "_file LIKE '%/b.nrt'",
        "_file <> 'mem://bucket/data/a.nrt'",
        "NOT _file LIKE '%a.nrt' AND age >= 0",
    ] {
        let sql = format!("SELECT min(id), count(id) FROM t WHERE {condition}");
        assert_eq!(query_ints(&ctx, &sql).await, [2000], "{condition}");
        let gets = store.take();
        assert!(!gets.is_empty() && gets.iter().all(|(file, _)| file == "data/b.nrt"), "{gets:?}");
    }
    let none = "SELECT id FROM t WHERE _file = 'x'";
    assert!(query_ints(&ctx, none).await.is_empty());
    assert_eq!(store.take().len(), 0);
    let both = "SELECT DISTINCT _file FROM t ORDER BY _file";
    assert_eq!(
        query_text(&ctx, both).await.lines().filter(|l| l.contains("mem://bucket/data/")).count(),
        2
    );
}

#[tokio::test]
async fn scans_read_only_the_rows_that_a_join_or_top_k_needs() {
    let bytes = file_of(&make_wide_table(5000));
    let (ctx, store) = create_remote(2, &[("data/a.nrt", bytes.clone())]).await;
    run_query(&ctx, "CREATE TABLE few AS SELECT * FROM (VALUES (7), (1200), (4999)) v(id)").await;
    store.take();
    let sql = "SELECT t.id, cardinality(t.code) FROM few JOIN t ON few.id = t.id ORDER BY t.id";
    assert_eq!(query_ints(&ctx, sql).await, [7, 1200, 4999]);
    let (_, read) = store.counts();
    assert!(read < bytes.len() as u64 / 20, "{read}");
    // The scan does not read rows with smaller ids once it knows three ids.
    let top = "SELECT id, code FROM t ORDER BY id DESC LIMIT 3";
    assert_eq!(query_ints(&ctx, top).await, [4999, 4998, 4997]);
    // The dynamic filter of the join does not change which rows the LIMIT returns.
    let limited =
        "SELECT few.id FROM few JOIN (SELECT * FROM t LIMIT 10) s ON few.id = s.id ORDER BY few.id";
    assert_eq!(query_ints(&ctx, limited).await, [7]);
}

#[tokio::test]
async fn errors_of_object_stores_are_reported() {
    let table = make_patients(0, ROWS);
    let (ctx, store) = one_file(2).await;
    store.short.store(true, std::sync::atomic::Ordering::Relaxed);
    let e = error(&ctx, "SELECT code FROM t").await;
    assert!(e.contains("data/a.nrt") && e.contains("were requested"), "{e}");
    store.short.store(false, std::sync::atomic::Ordering::Relaxed);
    store.replace("data/a.nrt", file_of(&table.slice(0, 100).unwrap())).await;
    assert_eq!(query_ints(&ctx, "SELECT count(*) FROM t").await, [100]);
    store.remove("data/a.nrt").await;
    let e = error(&ctx, "SELECT code FROM t").await;
    assert!(e.contains("data") && e.contains("does not exist"), "{e}");
}

#[tokio::test]
async fn files_without_rows_in_a_store_are_read() {
    let objects = [
        ("data/a.nrt", file_of(&make_patients(0, 0))),
        ("data/b.nrt", file_of(&make_patients(5, 2))),
    ];
    let (ctx, _) = create_remote(2, &objects).await;
    assert_eq!(query_ints(&ctx, "SELECT id FROM t ORDER BY id").await, [5, 6]);
    assert_eq!(query_ints(&ctx, "SELECT id FROM t WHERE age > 5 AND _row >= 0").await, [6]);
    assert_eq!(query_int(&ctx, "SELECT count(*) FROM t").await, 2);
}

#[tokio::test]
async fn rows_without_events_at_the_ends_of_read_ranges_are_returned() {
    // The rows with codes are between runs of rows without events and of events without codes.
    let n = 4000;
    let events = (0..n).map(|r| [0, 0, 3, 0, 2, 0][r % 6]).collect::<Vec<_>>();
    let all = events.iter().sum::<usize>();
    let codes = (0..all).map(|e| [0, 5, 0, 0, 1][e % 5]).collect::<Vec<_>>();
    let held = codes.iter().sum::<usize>();
    let table = RaggedTable::builder()
        .lengths(events)
        .unwrap()
        .lengths(codes)
        .unwrap()
        .column("id", 0, make_ints(0..n as i64))
        .column("time", 1, Arc::new(Float64Array::from_iter_values((0..all).map(|t| t as f64))))
        .column("code", 2, Arc::new(UInt16Array::from_iter_values((0..held).map(|c| c as u16))))
        .build()
        .unwrap();
    let file = file_of(&table);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.nrt"), &file).unwrap();
    for partitions in [1, 3] {
        let (ctx, _) = create_remote(partitions, &[("data/a.nrt", file.clone())]).await;
        let local = "CREATE EXTERNAL TABLE l STORED AS NRT LOCATION";
        run_query(&ctx, &format!("{local} '{}/'", display_path(dir.path()))).await;
        for condition in [
            "true",
            "_row = 3997",
            "_row IN (1, 3, 5, 3996, 3999)",
            "_row BETWEEN 1998 AND 2003",
            "id % 6 = 0",
            "id % 6 <> 2",
            "id % 997 IN (0, 1)",
        ] {
            let of =
                |t: &str| format!("SELECT id, time, code FROM {t} WHERE {condition} ORDER BY id");
            assert_eq!(
                query_text(&ctx, &of("t")).await,
                query_text(&ctx, &of("l")).await,
                "{condition}"
            );
        }
    }
}

/// Returns the sum of a metric over all nodes of an executed plan.
fn sum_metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().into_iter().flat_map(|m| m.iter().cloned().collect::<Vec<_>>());
    let own: usize = own
        .filter_map(|m| match m.value() {
            MetricValue::Count { name: n, count } if n == name => Some(count.value()),
            _ => None,
        })
        .sum();
    own + plan.children().into_iter().map(|c| sum_metric(c, name)).sum::<usize>()
}

/// Runs a query over local files without memory mapping. Returns the number of its rows and the
/// number of bytes that it reads.
async fn bytes_of(ctx: &SessionContext, sql: &str) -> (usize, usize) {
    let frame = serrate::sql::sql(ctx, sql).await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    (batches.iter().map(RecordBatch::num_rows).sum(), sum_metric(&plan, "bytes_scanned"))
}

#[tokio::test]
async fn local_files_without_mapping_read_only_the_needed_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.nrt");
    write_table(&path, &make_wide_table(5000));
    let header = NrtFile::open(&path, &ReadOptions::default()).unwrap();
    let header = header.tensors().header().data_start() as usize;
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(1));
    run_query(&ctx, "SET serrate.mmap = false").await;
    let from = format!("FROM '{}'", display_path(&path));
    let between = |n: usize, range: Range<usize>| assert!(range.contains(&n), "{n} {range:?}");

    let (rows, bytes) = bytes_of(&ctx, &format!("SELECT * {from} WHERE _row = 1234")).await;
    assert_eq!(rows, 1);
    // The query reads the header, one row, and the bounds around it.
    between(bytes, header + 2016..header + 2016 + 200);
    let (rows, bytes) = bytes_of(&ctx, &format!("SELECT id, code {from} LIMIT 5")).await;
    assert_eq!(rows, 5);
    between(bytes, header + 5 * 2008..header + 5 * 2016 + 300);
    let (rows, bytes) = bytes_of(&ctx, &format!("SELECT id {from}")).await;
    assert_eq!((rows, bytes), (5000, header + 5000 * 8));
    let (rows, bytes) = bytes_of(&ctx, &format!("SELECT id, code {from} WHERE age = 17")).await;
    assert_eq!(rows, 50);
    between(bytes, header + 5000 * 8 + 50 * 2016..header + 5000 * 8 + 50 * 2300);
}

#[tokio::test]
async fn positions_are_selected_by_name_and_not_by_star() {
    let dir = tempfile::tempdir().unwrap();
    write_table(&dir.path().join("a.nrt"), &make_numbered_table(10, 3));
    write_table(&dir.path().join("b.nrt"), &make_numbered_table(20, 2));
    let ctx = create_parallel_session();
    let folder = display_path(dir.path());
    let from = format!("'{folder}/*.nrt'");
    let sql = format!("SELECT id, _row FROM {from} ORDER BY _file, _row");
    let expected = [
        "+----+------+",
        "| id | _row |",
        "+----+------+",
        "| 10 | 0    |",
        "| 11 | 1    |",
        "| 12 | 2    |",
        "| 20 | 0    |",
        "| 21 | 1    |",
        "+----+------+",
    ];
    assert_eq!(query_text(&ctx, &sql).await, expected.join("\n"));
    let star = run_query(&ctx, &format!("SELECT * FROM {from} WHERE _row = 1 ORDER BY id")).await;
    assert_eq!(star[0].schema().fields().len(), 2);
    let both = run_query(&ctx, &format!("SELECT *, _row, _file FROM {from} LIMIT 1")).await;
    let names: Vec<_> = both[0].schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["id", "code", "_row", "_file"]);
    let file = both[0].column(3).as_string::<i32>().value(0).to_owned();
    assert_eq!(file, format!("{folder}/a.nrt"));
    assert_eq!(
        query_ints(&ctx, &format!("SELECT id FROM {from} WHERE _file = '{file}' AND _row > 0"))
            .await,
        [11, 12]
    );

    // Positions are columns of tables by name, with aliases, in joins, subqueries and WITH.
    let create = format!("CREATE EXTERNAL TABLE t STORED AS NRT LOCATION '{folder}/'");
    run_query(&ctx, &create).await;
    for (sql, expected) in [
        ("SELECT t.id FROM t WHERE t._row = 2", vec![12]),
        ("SELECT x.id FROM t x WHERE X._ROW = 2", vec![12]),
        ("SELECT a.id FROM t a JOIN t b ON a.id = b.id AND b._row = 2", vec![12]),
        ("SELECT id FROM (SELECT *, _row AS r FROM t) WHERE r = 2", vec![12]),
        ("WITH p AS (SELECT id, _row FROM t) SELECT id FROM p WHERE _row = 2", vec![12]),
        ("SELECT id FROM t WHERE id = (SELECT max(id) FROM t WHERE _row = 2)", vec![12]),
        ("SELECT max(_row) FROM t", vec![2]),
        ("SELECT count(*) FROM t GROUP BY _file ORDER BY 1", vec![2, 3]),
        ("FROM t SELECT id WHERE _row = 2", vec![12]),
    ] {
        assert_eq!(query_ints(&ctx, sql).await, expected, "{sql}");
    }
    // `*` over joined tables that all have `_row` does not contain it.
    let star = |sql: String| {
        let ctx = ctx.clone();
        async move {
            let batches = run_query(&ctx, &sql).await;
            let fields = batches[0].schema().fields().clone();
            let names: Vec<String> = fields.iter().map(|f| f.name().clone()).collect();
            (names.join(" "), batches.iter().map(RecordBatch::num_rows).sum::<usize>())
        }
    };
    for (sql, names, rows) in [
        (
            "SELECT * FROM t a JOIN t b ON a._row = b._row AND a._file = b._file",
            "id code id code",
            5,
        ),
        ("SELECT *, a._row AS r FROM t a JOIN t b ON a._row = b._row", "id code id code r", 9),
        ("SELECT b.*, a._row FROM t a JOIN t b ON a._row = b._row", "id code _row", 9),
        ("SELECT * FROM t a JOIN t b USING (_row)", "id code id code", 9),
        ("SELECT * FROM t a JOIN t b USING (_row, id)", "id code code", 5),
        (
            "SELECT * FROM t JOIN (SELECT id, _row FROM t) u ON t._row = u._row",
            "id code id _row",
            9,
        ),
        ("SELECT * FROM t a LEFT SEMI JOIN t b ON a._row = b._row + 2", "id code", 1),
        ("SELECT * FROM t a, t b WHERE a._row = 2 AND b._row = 2", "id code id code", 1),
    ] {
        assert_eq!(star(sql.to_string()).await, (names.to_string(), rows), "{sql}");
    }
    let (one, two) = (format!("'{folder}/a.nrt'"), format!("'{folder}/b.nrt'"));
    let sql = format!("SELECT * FROM {one} JOIN {two} b USING (_row)");
    assert_eq!(star(sql).await, ("id code id code".to_string(), 2));
    let elsewhere = tempfile::tempdir().unwrap();
    let out = elsewhere.path().join("rows.nrt");
    run_query(&ctx, &format!("COPY (SELECT id, _row AS row FROM t) TO '{}'", display_path(&out)))
        .await;
    assert_eq!(
        query_ints(&ctx, &format!("SELECT row FROM '{}'", display_path(&out))).await,
        [0, 1, 2, 0, 1]
    );
    let explain = query_text(&ctx, "EXPLAIN SELECT id FROM t WHERE _row = 2 AND id > 3").await;
    assert!(explain.contains("rows=[_row@2 = 2 AND id@0 > 3]"), "{explain}");
    assert!(!explain.contains("FilterExec"), "{explain}");

    // The option `positions` makes positions available to statements that DataFusion parses.
    let create = "CREATE EXTERNAL TABLE p STORED AS NRT LOCATION";
    run_query(&ctx, &format!("{create} '{folder}/*.nrt' OPTIONS (positions true)")).await;
    assert_eq!(stock_ints(&ctx, "SELECT id FROM p WHERE _row = 2").await, [12]);
    let all = stock_batches(&ctx, "SELECT * FROM p LIMIT 1").await.unwrap();
    assert_eq!(all[0].num_columns(), 4);

    // A column `_row` in the file has precedence over the position.
    let named = numbered_as_row();
    write_table(&dir.path().join("own/x.nrt"), &named);
    let own = format!("'{folder}/own/x.nrt'");
    assert_eq!(
        query_ints(&ctx, &format!("SELECT _row FROM {own} WHERE _row > 70 ORDER BY _row")).await,
        [71, 72]
    );
    assert_eq!(
        run_query(&ctx, &format!("SELECT * FROM {own} WHERE _row = 70")).await[0].num_columns(),
        2
    );
    let e = error(&ctx, "SELECT _row FROM (VALUES (1)) v(a)").await;
    assert!(e.contains("_row"), "{e}");
}

fn numbered_as_row() -> RaggedTable {
    let table = make_numbered_table(70, 3);
    let columns = table.columns().iter().map(|c| match c.name() {
        "id" => c.clone().renamed("_row"),
        _ => c.clone(),
    });
    table.with_columns(columns.collect()).unwrap()
}
