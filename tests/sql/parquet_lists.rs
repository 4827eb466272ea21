//! The scan of this crate, which decodes lists in Parquet files, returns the same rows as the scan
//! of DataFusion.

use datafusion::arrow::array::{
    Float32Builder, Int32Builder, Int64Builder, LargeListBuilder, ListBuilder, StringArray,
    StringBuilder, TimestampMicrosecondBuilder,
};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};

use super::*;

/// Returns rows `first..first + n` with lists of every kind, and nulls and empty lists at all
/// levels.
fn make_mixed_batch(first: i64, n: i64) -> RecordBatch {
    let mut x = ListBuilder::new(Int64Builder::new());
    let mut y = ListBuilder::new(ListBuilder::new(Float32Builder::new()));
    let mut l = LargeListBuilder::new(Int32Builder::new());
    let mut t = ListBuilder::new(TimestampMicrosecondBuilder::new());
    let mut s = ListBuilder::new(StringBuilder::new());
    for id in first..first + n {
        for k in 0..id % 7 {
            x.values().append_option((k != 3).then_some(id * 10 + k));
            t.values().append_value(id * 1_000_000 + k);
            s.values().append_option((k != 2).then(|| format!("{id}/{k}")));
        }
        x.append(id % 11 != 4);
        t.append(true);
        s.append(id % 13 != 5);
        for k in 0..id % 4 {
            for m in 0..(id + k) % 3 {
                y.values().values().append_option((m != 1).then_some((id * m) as f32 / 4.0));
            }
            y.values().append(k != 2);
        }
        y.append(id % 9 != 8);
        for k in 0..(id % 5) * 40 {
            l.values().append_value((id + k) as i32);
        }
        l.append(true);
    }
    let name: StringArray =
        (first..first + n).map(|i| (i % 6 != 0).then(|| format!("n{}", i % 17))).collect();
    RecordBatch::try_from_iter([
        ("id", make_ints(first..first + n)),
        ("x", Arc::new(x.finish()) as ArrayRef),
        ("name", Arc::new(name)),
        ("y", Arc::new(y.finish())),
        ("l", Arc::new(l.finish())),
        ("t", Arc::new(t.finish())),
        ("s", Arc::new(s.finish())),
    ])
    .unwrap()
}

fn make_properties() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_max_row_group_row_count(Some(300))
}

fn save_batch(path: &Path, batch: &RecordBatch, properties: WriterPropertiesBuilder) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// Returns a session with the scan of this crate, and one with the scan of DataFusion.
async fn create_both_sessions(partitions: usize) -> [SessionContext; 2] {
    let config = || {
        SessionConfig::new()
            .with_target_partitions(partitions)
            .set_usize("datafusion.optimizer.repartition_file_min_size", 1)
    };
    let ours = serrate::sql::session_with(config());
    let stock = serrate::sql::session_with(config());
    query_batches(&stock, "SET serrate.parquet_lists = false").await.unwrap();
    [ours, stock]
}

async fn explain_plan(ctx: &SessionContext, sql: &str) -> String {
    query_text(ctx, &format!("EXPLAIN {sql}")).await
}

/// Writes Parquet files that differ in encodings, pages and compression, with 2500 rows in total
/// and consecutive values of `id` from 0. Returns the path of the folder.
fn write_folder(dir: &Path) -> String {
    let kinds = [
        make_properties(),
        make_properties().set_offset_index_disabled(true).set_compression(Compression::SNAPPY),
        make_properties().set_writer_version(WriterVersion::PARQUET_2_0),
        make_properties()
            .set_data_page_size_limit(200)
            .set_write_batch_size(16)
            .set_statistics_enabled(EnabledStatistics::None),
        make_properties().set_dictionary_enabled(false).set_max_row_group_row_count(Some(10_000)),
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        save_batch(&dir.join(format!("{i}.parquet")), &make_mixed_batch(i as i64 * 500, 500), kind);
    }
    display_path(dir)
}

const QUERIES: &[&str] = &[
    "SELECT * FROM f",
    "SELECT x FROM f",
    "SELECT y, id, x FROM f",
    "SELECT l, name, s, t FROM f",
    "SELECT s FROM f",
    "SELECT id, ragged_sum(x) AS a, ragged_count(y) AS b, id + 1 AS c, name FROM f",
    "SELECT x, x AS again, ragged_add(x, id) AS moved FROM f",
    "SELECT id, y FROM f WHERE id % 97 = 3",
    "SELECT id, y FROM f WHERE id BETWEEN 640 AND 660 OR id = 2499",
    "SELECT x FROM f WHERE name = 'n5' AND id > 1000",
    "SELECT id FROM f WHERE array_has(x, 10031)",
    "SELECT id, x, y FROM f WHERE ragged_any(x == 10031) OR id < 2",
    "SELECT id, l FROM f WHERE ragged_any(ragged_isin(x, [12330, 21, 24981]))",
    "SELECT id, x FROM f WHERE ragged_any(x == 10031) AND name = 'n0'",
    "SELECT y FROM f WHERE ragged_any(x == -5)",
    "SELECT id FROM f WHERE x IS NULL",
    "SELECT id, x FROM f WHERE ragged_count(x) > 5 AND id < 300",
    "SELECT id, x FROM f LIMIT 7",
    "SELECT x FROM f LIMIT 3 OFFSET 498",
    "SELECT id, y FROM f LIMIT 700 OFFSET 777",
    "SELECT l FROM f OFFSET 2490",
    "SELECT l FROM f LIMIT 5 OFFSET 9999",
    "SELECT id, x FROM f WHERE id % 2 = 0 LIMIT 5 OFFSET 600",
    "SELECT id, x FROM f WHERE ragged_any(x >= 100) LIMIT 9",
    "SELECT id, x FROM f WHERE array_has(x, 10031) LIMIT 1",
    "SELECT count(*) AS n, sum(ragged_sum(x)) AS s, sum(ragged_count(y)) AS c FROM f",
    "SELECT count(*) AS n FROM f WHERE ragged_count(x) = 3",
    "SELECT ragged_count(l) AS k, count(*) AS n FROM f GROUP BY k ORDER BY k",
    "SELECT ragged_lengths(y) AS k FROM f",
    "SELECT id, ragged_shape(y) AS k, ragged_max_shape(x) AS m FROM f",
    "SELECT id, x FROM f ORDER BY id DESC LIMIT 4",
    "SELECT a.id, a.x, b.y FROM f a JOIN f b ON a.id = b.id + 1000 ORDER BY a.id",
    "SELECT id, v FROM (SELECT id, unnest(x) AS v FROM f) ORDER BY id, v NULLS FIRST",
    "SELECT name, ragged_sum_agg(l) AS s FROM f GROUP BY name ORDER BY name",
    "SELECT id FROM f WHERE id IN (SELECT max(id) FROM f WHERE array_has(x, 24981))",
];

#[tokio::test]
async fn rows_equal_those_of_the_stock_scan() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_folder(dir.path());
    for (partitions, leaves) in [(1, 300), (3, 2000), (2, 262_144)] {
        let [ours, stock] = create_both_sessions(partitions).await;
        // The size of batches decides whether a row group is decoded sequentially or by its pages.
        query_batches(&ours, &format!("SET serrate.leaf_batch_size = {leaves}")).await.unwrap();
        for ctx in [&ours, &stock] {
            let sql = format!("CREATE EXTERNAL TABLE f STORED AS PARQUET LOCATION '{path}/'");
            query_batches(ctx, &sql).await.unwrap();
        }
        for sql in QUERIES {
            let mut sql = (*sql).to_owned();
            if !sql.contains("ORDER BY") && !sql.contains("LIMIT") && !sql.contains("OFFSET") {
                let columns = sql.strip_prefix("SELECT ").unwrap();
                let id = if columns.contains("id") || columns.contains('*') { "" } else { "id, " };
                let sorted = !columns.starts_with("count");
                let order = if sorted { " ORDER BY id" } else { "" };
                let id = if sorted { id } else { "" };
                sql = format!("SELECT {id}{columns}{order}");
            }
            let expected = query_text(&stock, &sql).await;
            assert_eq!(query_text(&ours, &sql).await, expected, "{sql}");
            assert!(!explain_plan(&stock, &sql).await.contains("lists=["), "{sql}");
        }
        let sql = "SELECT id, x FROM f WHERE array_has(x, 10031)";
        let p = explain_plan(&ours, sql).await;
        assert!(p.contains("file_type=parquet, lists=[x]"), "{p}");
        assert_eq!(query_ints(&ours, sql).await, [1003]);
    }
}

#[tokio::test]
async fn batches_hold_as_many_leaves_as_set() {
    let dir = tempfile::tempdir().unwrap();
    write_folder(dir.path());
    let [ours, _] = create_both_sessions(1).await;
    query_batches(&ours, "SET serrate.leaf_batch_size = 1000").await.unwrap();
    let sql = format!("SELECT l FROM '{}/4.parquet'", display_path(dir.path()));
    let all = query_batches(&ours, &sql).await.unwrap();
    let leaves: Vec<usize> = all
        .iter()
        .map(|b| {
            let lists = b.column(0).as_list::<i64>();
            (0..lists.len()).map(|i| lists.value(i).len()).sum()
        })
        .collect();
    assert_eq!(leaves.iter().sum::<usize>(), 500 / 5 * 400);
    assert!(leaves.iter().all(|n| *n <= 1000), "{leaves:?}");
}

#[tokio::test]
async fn limits_and_offsets_become_row_ranges_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_folder(dir.path());
    for partitions in [1, 4] {
        let [ours, _] = create_both_sessions(partitions).await;
        let read = async |sql: &str| {
            let shown = query_text(&ours, &format!("EXPLAIN ANALYZE {sql}")).await;
            let decoded = shown.split("lists_rows_decoded=").nth(1).unwrap_or("0");
            let digits = decoded.find(|c: char| !c.is_ascii_digit()).unwrap_or(decoded.len());
            decoded[..digits].parse::<usize>().unwrap()
        };
        let sql = format!("SELECT x FROM '{path}' LIMIT 1 OFFSET 1730");
        let p = explain_plan(&ours, &sql).await;
        assert!(!p.contains("LimitExec") && !p.contains("2.parquet"), "{p}");
        assert!(p.contains("3.parquet") && p.contains("lists=[x], rows=[230..231]"), "{p}");
        assert_eq!(read(&sql).await, 1);
        let sql = format!("SELECT id, x FROM '{path}' LIMIT 600 OFFSET 450");
        assert_eq!(read(&sql).await, 600);
        assert_eq!(query_ints(&ours, &sql).await, (450..1050).collect::<Vec<_>>());
        // LIMIT and OFFSET also become ranges of rows if no list is selected.
        let sql = format!("SELECT id * 2 AS d FROM '{path}' LIMIT 3 OFFSET 2497");
        assert_eq!(query_ints(&ours, &sql).await, [4994, 4996, 4998]);
        // LIMIT and OFFSET after a condition count the rows that match it.
        let sql = format!("SELECT id FROM '{path}' WHERE id % 2 = 1 LIMIT 2 OFFSET 1000");
        assert_eq!(query_ints(&ours, &sql).await, [2001, 2003]);
        let nested =
            format!("SELECT id FROM (SELECT id, x FROM '{path}' LIMIT 20 OFFSET 1000) OFFSET 18");
        assert_eq!(query_ints(&ours, &nested).await, [1018, 1019]);
    }
}

#[tokio::test]
async fn lengths_are_read_without_values() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_folder(dir.path());
    let [ours, stock] = create_both_sessions(2).await;
    for sql in [
        "SELECT sum(ragged_count(x)) AS n FROM f",
        "SELECT count(*) AS n FROM f WHERE ragged_count(x) > 2",
        "SELECT ragged_max_shape(x) AS k, count(*) AS n FROM f GROUP BY k ORDER BY k",
        "SELECT max(id) AS id, sum(ragged_count(x)) AS n FROM f WHERE id < 1200",
    ] {
        let sql = sql.replace(" f", &format!(" '{path}'"));
        let p = explain_plan(&ours, &sql).await;
        assert!(p.contains(", lengths=[x]") && !p.contains("lists=["), "{p}");
        assert_eq!(query_text(&ours, &sql).await, query_text(&stock, &sql).await, "{sql}");
    }
    let sql = format!("SELECT ragged_count(x) AS n, ragged_sum(x) AS s FROM '{path}'");
    let p = explain_plan(&ours, &sql).await;
    assert!(p.contains("lists=[x]") && !p.contains("lengths=["), "{p}");
}

#[tokio::test]
async fn files_with_other_types_or_columns_are_read_by_the_stock_scan() {
    let dir = tempfile::tempdir().unwrap();
    let [ours, stock] = create_both_sessions(2).await;
    let narrow = RecordBatch::try_from_iter([
        ("id", make_ints(0..3)),
        (
            "x",
            Arc::new({
                let mut x = ListBuilder::new(Int32Builder::new());
                for i in 0..3 {
                    x.values().append_value(i);
                    x.append(true);
                }
                x.finish()
            }) as ArrayRef,
        ),
    ])
    .unwrap();
    let without = RecordBatch::try_from_iter([("id", make_ints(3..5))]).unwrap();
    // Files with columns in another order, and without one of the columns.
    let other = make_mixed_batch(5, 9).project(&[3, 1, 0]).unwrap();
    let without_y: Vec<usize> = vec![1, 2];
    save_batch(&dir.path().join("a.parquet"), &narrow, make_properties());
    save_batch(&dir.path().join("b.parquet"), &without, make_properties());
    save_batch(&dir.path().join("c.parquet"), &other, make_properties());
    save_batch(
        &dir.path().join("d.parquet"),
        &other.project(&without_y).unwrap(),
        make_properties(),
    );
    for ctx in [&ours, &stock] {
        let sql = format!(
            "CREATE EXTERNAL TABLE m (id BIGINT, x BIGINT[], y FLOAT[][]) STORED AS PARQUET LOCATION '{}/'",
            display_path(dir.path())
        );
        query_batches(ctx, &sql).await.unwrap();
    }
    for sql in [
        "SELECT * FROM m ORDER BY id, y IS NULL",
        "SELECT id, ragged_sum(x) AS s FROM m ORDER BY id, s",
        "SELECT count(*) AS n, sum(ragged_count(y)) AS v FROM m",
        "SELECT id, y FROM m WHERE array_has(x, 51) ORDER BY id, y IS NULL",
    ] {
        assert_eq!(query_text(&ours, sql).await, query_text(&stock, sql).await, "{sql}");
    }
    let sql = "SELECT id FROM m WHERE array_has(x, 51)";
    assert_eq!(query_ints(&ours, sql).await, [5, 5]);
}

#[tokio::test]
async fn partition_columns_of_folders_are_read() {
    let dir = tempfile::tempdir().unwrap();
    for (part, first) in [("a", 0), ("b", 400)] {
        save_batch(
            &dir.path().join(format!("part={part}/f.parquet")),
            &make_mixed_batch(first, 400),
            make_properties(),
        );
    }
    let [ours, stock] = create_both_sessions(3).await;
    for ctx in [&ours, &stock] {
        let sql = format!(
            "CREATE EXTERNAL TABLE p STORED AS PARQUET PARTITIONED BY (part) LOCATION '{}/'",
            display_path(dir.path())
        );
        query_batches(ctx, &sql).await.unwrap();
    }
    for sql in [
        "SELECT part, id, x FROM p ORDER BY id",
        "SELECT x, part FROM p WHERE part = 'b' ORDER BY id LIMIT 5",
        "SELECT id, part || name AS n, y FROM p WHERE array_has(x, 4001) OR part = 'a' AND id < 3 ORDER BY id",
        "SELECT part, sum(ragged_count(x)) AS n FROM p GROUP BY part ORDER BY part",
        "SELECT part, id, x FROM p LIMIT 4 OFFSET 398",
    ] {
        assert_eq!(query_text(&ours, sql).await, query_text(&stock, sql).await, "{sql}");
    }
}

#[tokio::test]
async fn row_groups_are_divided_among_partitions_and_pruned() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("one.parquet");
    // The file has one row group of many pages.
    let pages =
        || WriterProperties::builder().set_data_page_row_count_limit(100).set_write_batch_size(50);
    save_batch(&file, &make_mixed_batch(0, 5000), pages());
    let [ours, stock] = create_both_sessions(4).await;
    // Without an offset index, decoding cannot start in the middle.
    let whole = dir.path().join("whole.parquet");
    save_batch(&whole, &make_mixed_batch(0, 5000), pages().set_offset_index_disabled(true));
    for file in [&file, &whole] {
        for rest in ["", " AND id % 3 = 1"] {
            let sql = format!(
                "SELECT id, x, y FROM '{}' WHERE coalesce(ragged_sum(x), 1) >= 0{rest} ORDER BY id",
                display_path(file)
            );
            let p = explain_plan(&ours, &sql).await;
            assert!(p.contains("4 groups"), "{p}");
            assert_eq!(query_text(&ours, &sql).await, query_text(&stock, &sql).await, "{sql}");
        }
    }
    // Row groups and pages that a condition excludes are not read.
    let groups = dir.path().join("groups.parquet");
    save_batch(&groups, &make_mixed_batch(0, 3000), make_properties());
    let sql = format!("EXPLAIN ANALYZE SELECT x FROM '{}' WHERE id = 1300", display_path(&groups));
    let shown = query_text(&ours, &sql).await;
    assert!(shown.contains("lists_rows_decoded=1,"), "{shown}");
    // The file has ten row groups. Three are divided between two partitions, and are counted twice.
    assert!(shown.contains("row_groups_pruned_statistics=13 total → 1 matched"), "{shown}");
}

#[tokio::test]
async fn damaged_files_end_in_errors() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.parquet");
    save_batch(
        &file,
        &make_mixed_batch(0, 400),
        make_properties().set_compression(Compression::SNAPPY),
    );
    let good = std::fs::read(&file).unwrap();
    let footer = u32::from_le_bytes(good[good.len() - 8..good.len() - 4].try_into().unwrap());
    let data = good.len() - 8 - footer as usize;
    let mut wrong = 0;
    for step in 0..60 {
        let mut bytes = good.clone();
        let at = 4 + step * (data - 40) / 60;
        for byte in &mut bytes[at..at + 16] {
            *byte ^= 0xa5;
        }
        let broken = dir.path().join(format!("{step}.parquet"));
        std::fs::write(&broken, bytes).unwrap();
        let ctx = create_parallel_session();
        let sql = format!("SELECT x, y, l FROM '{}'", display_path(&broken));
        wrong += usize::from(query_batches(&ctx, &sql).await.is_err());
    }
    assert!(wrong > 10, "{wrong}");
    let short = dir.path().join("short.parquet");
    let plain = make_properties()
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::None);
    save_batch(&file, &make_mixed_batch(0, 400), plain);
    let good = std::fs::read(&file).unwrap();
    let footer = u32::from_le_bytes(good[good.len() - 8..good.len() - 4].try_into().unwrap());
    let data = good.len() - 8 - footer as usize;
    let mut bytes = good[..data / 2].to_vec();
    bytes.extend(&good[data..]);
    std::fs::write(&short, bytes).unwrap();
    let e = error(
        &create_parallel_session(),
        &format!("SELECT x, y, l FROM '{}'", display_path(&short)),
    )
    .await;
    assert!(e.contains("short.parquet") && e.contains("row group"), "{e}");
}

#[tokio::test]
async fn empty_files_have_no_rows() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.parquet");
    save_batch(&file, &make_mixed_batch(0, 0), make_properties());
    let [ours, _] = create_both_sessions(2).await;
    let sql = format!("SELECT x, id FROM '{}'", display_path(&file));
    let all = query_batches(&ours, &sql).await.unwrap();
    assert_eq!(all.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    let sql = format!("SELECT x FROM '{}' LIMIT 1 OFFSET 3", display_path(&file));
    assert!(query_batches(&ours, &sql).await.unwrap().iter().all(|b| b.num_rows() == 0));
}

/// Returns a folder of two Parquet files, one of which has one row with NULL in `u` and `ls`, and
/// the other no row.
async fn write_nulls() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let ctx = SessionContext::new();
    let row =
        "SELECT 3 AS id, arrow_cast(NULL, 'UInt64') AS u, arrow_cast(NULL, 'List(Utf8)') AS ls";
    for (file, sql) in [("0", row.to_owned()), ("1", format!("{row} LIMIT 0"))] {
        let to = dir.path().join(format!("{file}.parquet"));
        stock_batches(&ctx, &format!("COPY ({sql}) TO '{}'", to.display())).await.unwrap();
    }
    dir
}

const NULL_LISTS: &str = "SELECT count(*) FROM t WHERE ls <> CASE WHEN u = u THEN ['a'] END";

fn null_table(dir: &tempfile::TempDir) -> String {
    let at = dir.path().display();
    format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{at}/'")
}

#[tokio::test]
async fn conditions_on_lists_are_evaluated_in_every_file() {
    let dir = write_nulls().await;
    for partitions in [1, 2] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        query_batches(&ctx, &null_table(&dir)).await.unwrap();
        assert_eq!(query_int(&ctx, NULL_LISTS).await, 0);
        for (condition, expected) in [
            ("ls IS NULL", 1),
            ("NOT array_has(ls, 'a')", 0),
            ("array_has(ls, CASE WHEN u IS NOT NULL THEN 'a' END) IS NULL", 1),
            ("(ls <> CASE WHEN u IS NOT NULL THEN ['a'] END) IS NULL", 1),
            ("ls IS NULL AND id = 3 AND u IS NULL", 1),
        ] {
            let sql = format!("SELECT count(*) FROM t WHERE {condition}");
            assert_eq!(query_int(&ctx, &sql).await, expected, "{condition}");
        }
    }
}

/// When this test fails, `sql::workarounds::guards::row_filters` can be removed.
#[tokio::test]
async fn stock_row_filters_of_lists_still_vanish() {
    let dir = write_nulls().await;
    let config = SessionConfig::new()
        .with_target_partitions(1)
        .set_bool("datafusion.execution.parquet.pushdown_filters", true);
    let ctx = SessionContext::new_with_config(config);
    stock_batches(&ctx, &null_table(&dir)).await.unwrap();
    assert_eq!(stock_one(&ctx, NULL_LISTS).await, 1);
}
