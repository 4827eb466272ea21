//! Source order, whatever the number of partitions.

use serrate::io::nrt::NrtFile;

use super::*;

fn read(path: &Path, column: &str) -> Vec<i64> {
    let table = NrtFile::open(path, &Default::default()).unwrap().table().unwrap();
    table.column(column).unwrap().values().as_primitive::<Int64Type>().values().to_vec()
}

async fn cut_small_files(ctx: &SessionContext) {
    let sql = "SET datafusion.optimizer.repartition_file_min_size = 1048576";
    batches(ctx, sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn big_files_are_read_once_by_four_partitions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big.nrt");
    let n = 200_000;
    write(&path, &numbered(0, n));
    assert!(std::fs::metadata(&path).unwrap().len() > 4 << 20);
    let ctx = four();
    cut_small_files(&ctx).await;
    let from = format!("FROM '{}'", show(&path));
    let plan = text(&ctx, &format!("EXPLAIN SELECT id {from} WHERE id >= 0")).await;
    assert!(plan.contains("4 groups"), "{plan}");
    assert_eq!(one(&ctx, &format!("SELECT count(id) {from} WHERE id >= 0")).await, n as i64);
    let mut ids = ints(&ctx, &format!("SELECT id {from} WHERE id >= 0")).await;
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..n as i64));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_million_rows_filtered_by_four_partitions_are_written_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let n = 2_000_000;
    let table = RaggedTable::builder().column("i", 0, flat(0..n)).build().unwrap();
    let path = dir.path().join("in.nrt");
    write(&path, &table);
    let ctx = four();
    let parquet = dir.path().join("in.parquet");
    let copy = format!("COPY (SELECT i FROM '{}' ORDER BY i) TO '{}'", show(&path), show(&parquet));
    batches(&ctx, &copy).await.unwrap();
    for (k, source) in [&path, &parquet].into_iter().enumerate() {
        let out = dir.path().join(format!("out{k}.nrt"));
        let sql =
            format!("COPY (SELECT i FROM '{}' WHERE i % 3 <> 1) TO '{}'", show(source), show(&out));
        let plan = text(&ctx, &format!("EXPLAIN {sql}")).await;
        assert!(plan.contains("4 groups") || k == 1, "{plan}");
        assert!(!plan.contains("RoundRobin") && !plan.contains("CoalescePartitions"), "{plan}");
        assert_eq!(one(&ctx, &sql).await, n - n.div_euclid(3) - 1);
        assert!(read(&out, "i").into_iter().eq((0..n).filter(|i| i % 3 != 1)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn folders_are_written_and_limited_in_the_order_of_their_names() {
    let dir = tempfile::tempdir().unwrap();
    for k in (0..9).rev() {
        write(&dir.path().join(format!("in/{k}.nrt")), &numbered(k * 1000, 1000));
    }
    let ctx = four();
    let from = format!("'{}/in/*.nrt'", show(dir.path()));
    for k in 0..5 {
        let out = dir.path().join(format!("{k}.nrt"));
        let sql =
            format!("COPY (SELECT id, code FROM {from} WHERE id % 7 < 5) TO '{}'", show(&out));
        batches(&ctx, &sql).await.unwrap();
        assert!(read(&out, "id").into_iter().eq((0..9000).filter(|i| i % 7 < 5)));
        let first = format!("SELECT id FROM {from} WHERE id % 7 < 5 LIMIT 2 OFFSET 998");
        let expected: Vec<i64> = (0..9000).filter(|i| i % 7 < 5).skip(998).take(2).collect();
        assert_eq!(ints(&ctx, &first).await, expected);
        assert_eq!(ints(&ctx, &format!("SELECT id FROM {from} LIMIT 3")).await, [0, 1, 2]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tables_in_memory_are_written_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = four();
    // Batches of growing size, which DataFusion would distribute by size.
    let parts: Vec<RecordBatch> = (0..20i64)
        .map(|k| {
            let ids = flat(k * 10_000..k * 10_000 + 100 * k + 1);
            RecordBatch::try_from_iter([("i", ids)]).unwrap()
        })
        .collect();
    let expected: Vec<i64> = (0..20).flat_map(|k| k * 10_000..k * 10_000 + 100 * k + 1).collect();
    let schema = parts[0].schema();
    let table = datafusion::datasource::MemTable::try_new(schema, vec![parts]).unwrap();
    ctx.register_table("m", Arc::new(table)).unwrap();
    let out = dir.path().join("m.nrt");
    let sql = format!("COPY (SELECT i FROM m WHERE i >= 0) TO '{}'", show(&out));
    batches(&ctx, &sql).await.unwrap();
    assert_eq!(read(&out, "i"), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn plans_without_an_order_need_one_or_an_id() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.nrt");
    write(&path, &numbered(0, 1000));
    let ctx = four();
    let from = format!("'{}'", show(&path));
    let out = dir.path().join("out.nrt");
    let copy = |query: &str| format!("COPY ({query}) TO '{}'", show(&out));
    let grouped = format!("SELECT id % 10 AS k, count(*) AS n FROM {from} GROUP BY id % 10");
    let joined = format!("SELECT a.id FROM {from} a JOIN {from} b ON a.id = b.id");
    let ranked =
        format!("SELECT id, rank() OVER (PARTITION BY id % 2 ORDER BY id) AS r FROM {from}");
    for query in [&grouped, &joined, &ranked] {
        let e = error(&ctx, &copy(query)).await;
        assert!(e.contains("ORDER BY") && e.contains("subject_id"), "{e}");
        assert!(!out.exists());
        // The refusal comes at planning, not after hours.
        let planned = ctx.sql(&copy(query)).await.unwrap().create_physical_plan().await;
        assert!(planned.unwrap_err().to_string().contains("ORDER BY"));
    }
    batches(&ctx, &copy(&format!("{grouped} ORDER BY k DESC"))).await.unwrap();
    assert_eq!(read(&out, "k"), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    let with_id = copy("SELECT k AS subject_id, n FROM g")
        .replace("FROM g", &format!("FROM ({grouped}) WHERE n > 0"));
    let exists = error(&ctx, &with_id).await;
    assert!(exists.contains("exists"), "{exists}");
    batches(&ctx, &format!("{with_id} OPTIONS (overwrite true)")).await.unwrap();
    let mut ids = read(&out, "subject_id");
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..10));
    let plain = format!("{with_id} OPTIONS (overwrite true, plain true)");
    assert!(error(&ctx, &plain).await.ends_with("; end the query with ORDER BY"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unions_and_aggregates_without_keys_have_an_order() {
    let dir = tempfile::tempdir().unwrap();
    for k in 0..4 {
        write(&dir.path().join(format!("{k}.nrt")), &numbered(k * 1000, 1000));
    }
    let ctx = four();
    let out = dir.path().join("out/x.nrt");
    std::fs::create_dir(dir.path().join("out")).unwrap();
    let file = |k: i64| format!("'{}/{k}.nrt'", show(dir.path()));
    let sql = format!(
        "COPY (SELECT id FROM {} UNION ALL SELECT id FROM {}) TO '{}'",
        file(2),
        file(1),
        show(&out)
    );
    batches(&ctx, &sql).await.unwrap();
    assert!(read(&out, "id").into_iter().eq((2000..3000).chain(1000..2000)));
    let all = format!("'{}/*.nrt'", show(dir.path()));
    let sql = format!(
        "COPY (SELECT max(id) AS m FROM {all}) TO '{}' OPTIONS (overwrite true)",
        show(&out)
    );
    batches(&ctx, &sql).await.unwrap();
    assert_eq!(read(&out, "m"), [3999]);
    let sql = format!(
        "COPY (SELECT unnest(array_sort(code[1])) AS c FROM {all} WHERE id < (SELECT max(id) FROM {all})) TO '{}' OPTIONS (overwrite true)",
        show(&out)
    );
    batches(&ctx, &sql).await.unwrap();
    assert!(read(&out, "c").is_sorted());
}

#[tokio::test]
async fn a_copy_that_fails_leaves_nothing_and_one_that_cannot_work_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = four();
    let to = |name: &str| format!("'{}'", show(&dir.path().join(name)));
    let e = error(&ctx, &format!("COPY (SELECT 'x' AS name) TO {}", to("a.nrt"))).await;
    assert!(e.contains("name") && e.contains("vocabulary"), "{e}");
    let e = error(&ctx, &format!("COPY (SELECT NULL::BIGINT AS n) TO {}", to("a.nrt"))).await;
    assert!(e.contains("\"n\""), "{e}");
    let late = "SELECT 1 / (1000 - i) AS q FROM generate_series(1, 2000) AS t(i)";
    error(&ctx, &format!("COPY ({late}) TO {}", to("a.nrt"))).await;
    let e = error(&ctx, &format!("COPY (SELECT 1 AS a) TO {}", to("folder/"))).await;
    assert!(!e.is_empty());
    let e =
        error(&ctx, &format!("COPY (SELECT 1 AS a) TO '{}' STORED AS NRT", show(dir.path()))).await;
    assert!(e.contains("folder"), "{e}");
    let e =
        error(&ctx, &format!("COPY (SELECT 1 AS a) TO {} OPTIONS (overwrit true)", to("a.nrt")))
            .await;
    assert!(e.contains("overwrite"), "{e}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Creates a table of one batch, or of batches of `rows` rows each.
fn memory(ctx: &SessionContext, name: &str, columns: &[(&str, Vec<i64>)], rows: usize) {
    let columns = columns.iter().map(|(name, values)| (*name, flat(values.iter().copied())));
    let all = RecordBatch::try_from_iter(columns).unwrap();
    let batches = (0..all.num_rows())
        .step_by(rows)
        .map(|start| all.slice(start, rows.min(all.num_rows() - start)))
        .collect();
    let table = datafusion::datasource::MemTable::try_new(all.schema(), vec![batches]).unwrap();
    ctx.register_table(name, Arc::new(table)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn joins_that_end_in_order_by_are_written_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.nrt");
    for partitions in [1, 4] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        memory(&ctx, "few", &[("k", vec![3, 1, 2]), ("w", vec![30, 10, 20])], 100);
        let keys: Vec<i64> = (0..3000).map(|i| i * 7919 % 3000).collect();
        let third = keys.iter().map(|k| k % 3 + 1).collect();
        memory(&ctx, "many", &[("k", third), ("v", keys)], 100);
        // The order is below the join or above it, by a column that is written or by one that is
        // not.
        for order in ["b.v", "b.v DESC", "a.w, b.v DESC", "a.w DESC, b.v"] {
            for columns in ["b.v, a.w", "b.v", "a.w, a.k", "b.k + a.w AS z"] {
                let query = format!(
                    "SELECT {columns} FROM few a JOIN many b ON a.k = b.k ORDER BY {order}"
                );
                let sorted = ints(&ctx, &query).await;
                assert_eq!(sorted.len(), 3000);
                for query in [query.clone(), format!("{query} LIMIT 17")] {
                    let copy = format!(
                        "COPY ({query}) TO '{}' OPTIONS (overwrite true, plain true)",
                        show(&out)
                    );
                    batches(&ctx, &copy).await.unwrap();
                    let n = if query.contains("LIMIT") { 17 } else { 3000 };
                    let first = match columns {
                        "a.w, a.k" => "w",
                        "b.k + a.w AS z" => "z",
                        _ => "v",
                    };
                    assert_eq!(read(&out, first), sorted[..n], "{copy}, {partitions} partitions");
                }
            }
        }
        let e = error(
            &ctx,
            &format!(
                "COPY (SELECT b.v FROM few a JOIN many b ON a.k = b.k) TO '{}' OPTIONS (overwrite true)",
                show(&out)
            ),
        )
        .await;
        assert!(e.starts_with("Error during planning: a .nrt file identifies rows by"), "{e}");
        assert!(
            e.ends_with(
                "end the query with ORDER BY, or keep the id column `subject_id` in its result"
            ),
            "{e}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn limit_takes_the_first_rows_of_a_table_in_memory() {
    let ctx = four();
    // Batches of shrinking and growing sizes, which DataFusion would distribute by size.
    let sizes: Vec<i64> = (0..40).map(|k| (k * 37 % 40) * 20 + 1).collect();
    let mut next = 0;
    let parts: Vec<RecordBatch> = sizes
        .iter()
        .map(|n| {
            let ids = flat(next..next + n);
            next += n;
            RecordBatch::try_from_iter([("i", ids)]).unwrap()
        })
        .collect();
    let schema = parts[0].schema();
    let table = datafusion::datasource::MemTable::try_new(schema, vec![parts]).unwrap();
    ctx.register_table("m", Arc::new(table)).unwrap();
    for (condition, offset) in [("i >= 0", 0), ("i % 5 <> 3", 100), ("i > 500", 3000)] {
        let kept: Vec<i64> = (0..next)
            .filter(|i| match condition {
                "i >= 0" => true,
                "i % 5 <> 3" => i % 5 != 3,
                _ => *i > 500,
            })
            .collect();
        for _ in 0..5 {
            let sql = format!("SELECT i FROM m WHERE {condition} LIMIT 50 OFFSET {offset}");
            assert_eq!(ints(&ctx, &sql).await, kept[offset..offset + 50], "{sql}");
        }
    }
    let plan = text(&ctx, "EXPLAIN SELECT count(*) FROM m WHERE i > 3").await;
    assert!(!plan.contains("fixed") && plan.contains("partitions=4"), "{plan}");
}

#[tokio::test]
async fn rows_under_a_limit_stay_in_order_above_it() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = four();
    batches(&ctx, "SET datafusion.execution.batch_size = 1").await.unwrap();
    batches(&ctx, "CREATE TABLE t0 AS SELECT value AS id FROM generate_series(0, 19)")
        .await
        .unwrap();
    let file = show(&dir.path().join("t0.parquet"));
    batches(&ctx, &format!("COPY (SELECT * FROM t0 ORDER BY id) TO '{file}'")).await.unwrap();
    for from in ["t0".to_owned(), format!("'{file}'")] {
        let sql = format!("SELECT id + 0 AS j FROM {from} WHERE id % 2 = 0 LIMIT 8");
        assert_eq!(ints(&ctx, &sql).await, [0, 2, 4, 6, 8, 10, 12, 14], "{from}");
        let sql =
            format!("SELECT j * 2 FROM (SELECT id + 0 AS j FROM {from} LIMIT 12) WHERE j > 8");
        assert_eq!(ints(&ctx, &sql).await, [18, 20, 22], "{from}");
    }
}

#[tokio::test]
async fn a_limit_takes_the_first_rows_of_row_groups_that_match_in_part() {
    let dir = tempfile::tempdir().unwrap();
    let file = show(&dir.path().join("us.parquet"));
    let sorted = show(&dir.path().join("sorted.parquet"));
    for partitions in [1, 2, 4] {
        let ctx =
            serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
        let rows = "SELECT value AS id, [value] AS x FROM generate_series(0, 2999)";
        let small = "OPTIONS (max_row_group_size 700, overwrite true)";
        batches(&ctx, &format!("COPY ({rows}) TO '{file}' {small}")).await.unwrap();
        batches(&ctx, &format!("COPY ({rows} ORDER BY id) TO '{sorted}' {small}")).await.unwrap();
        batches(&ctx, "SET datafusion.optimizer.repartition_file_min_size = 0").await.unwrap();
        for lists in [true, false] {
            batches(&ctx, &format!("SET serrate.parquet_lists = {lists}")).await.unwrap();
            for columns in ["id", "id, x"] {
                let sql = format!("SELECT {columns} FROM '{file}' WHERE id >= 2287 LIMIT 3");
                assert_eq!(ints(&ctx, &sql).await, [2287, 2288, 2289], "{partitions} {columns}");
                let sql =
                    format!("SELECT {columns} FROM '{sorted}' WHERE id >= 600 ORDER BY id LIMIT 2");
                assert_eq!(ints(&ctx, &sql).await, [600, 601], "{partitions} {columns}");
            }
        }
    }
}

/// DataFusion still drops row groups under a limit. Once this test fails, `sql::scan_order` can be
/// reduced to the promise of the first rows.
#[tokio::test]
async fn stock_limits_drop_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let file = show(&dir.path().join("us.parquet"));
    let rows = "SELECT value AS id FROM generate_series(0, 2999)";
    let copy = format!("COPY ({rows}) TO '{file}' OPTIONS (max_row_group_size 700)");
    batches(&four(), &copy).await.unwrap();
    let config = SessionConfig::new()
        .set_bool("datafusion.execution.parquet.pushdown_filters", true)
        .with_target_partitions(1);
    let stock = SessionContext::new_with_config(config);
    stock.register_parquet("us", &file, Default::default()).await.unwrap();
    assert_eq!(
        ints(&stock, "SELECT id FROM us WHERE id >= 2287 LIMIT 3").await,
        [2800, 2801, 2802]
    );
}

const CONSTANT_UNIONS: [&str; 5] = [
    "SELECT id, k FROM (SELECT id, 1 AS k FROM t WHERE id = 3 UNION ALL SELECT id, id AS k FROM t WHERE id < 3) ORDER BY k",
    "SELECT id, k FROM (SELECT id, id AS k FROM t WHERE id < 3 UNION ALL SELECT id, 1 AS k FROM t WHERE id = 3) ORDER BY k, id",
    "SELECT id, k FROM (SELECT id, 1 AS k FROM t WHERE id = 3 UNION ALL SELECT id, id AS k FROM t WHERE id < 3) ORDER BY k DESC LIMIT 2",
    "SELECT k, sum(id) OVER (ORDER BY k) AS s FROM (SELECT id, 1 AS k FROM t WHERE id = 3 UNION ALL SELECT id, id AS k FROM t WHERE id < 3) ORDER BY k",
    "SELECT a, b, c FROM (SELECT 5 AS a, id AS b, 7 AS c FROM t WHERE id = 1 UNION ALL SELECT id AS p, id AS q, id AS r FROM t WHERE id < 4 UNION ALL SELECT 2 AS p, 2 AS q, id AS r FROM t) ORDER BY a, c, b",
];

fn one_row_batches(partitions: usize) -> SessionConfig {
    SessionConfig::new().with_target_partitions(partitions).with_batch_size(1)
}

const SMALL: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (2), (3), (1)) t(id)";

#[tokio::test]
async fn unions_with_a_constant_branch_are_sorted() {
    for partitions in [1, 2, 4] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        batches(&ctx, SMALL).await.unwrap();
        for (sql, expected) in CONSTANT_UNIONS.into_iter().zip([
            &[1, 1, 2][..],
            &[1, 1, 2],
            &[2, 1],
            &[1, 1, 2],
            &[1, 2, 2, 2, 2, 3, 5],
        ]) {
            let column = usize::from(sql.starts_with("SELECT id"));
            let rows = batches(&ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
            let rows =
                datafusion::arrow::compute::concat_batches(&rows[0].schema(), &rows).unwrap();
            let keys = rows.column(column).as_primitive::<Int64Type>();
            assert_eq!(keys.values(), expected, "{sql}");
        }
    }
}

/// DataFusion's own plan still fails. Once this test fails, `MissingSorts` in `sql::sorts` can be
/// removed.
#[tokio::test]
async fn stock_unions_with_a_constant_still_fail() {
    let stock = SessionContext::new_with_config(one_row_batches(2));
    batches(&stock, SMALL).await.unwrap();
    let message = error(&stock, CONSTANT_UNIONS[0]).await;
    assert!(message.contains("does not satisfy order requirements"), "{message}");
}

const CONSTANT_LISTS: [(&str, usize); 5] = [
    ("SELECT DISTINCT id AS a, [[1]] AS c FROM t WHERE id < 3", 2),
    ("SELECT id, c, count(*) AS n FROM (SELECT id, [[1]] AS c FROM t) GROUP BY id, c", 3),
    ("SELECT id, [[1], []] AS c, count(*) AS n FROM t GROUP BY id, [[1], []]", 3),
    ("SELECT DISTINCT id, named_struct('a', [id > 0]) AS s, [[[1.5]]] AS c FROM t", 3),
    ("SELECT DISTINCT id, l FROM (SELECT id, [[id]] AS l FROM t) WHERE l = [[2]]", 1),
];

#[tokio::test]
async fn constant_lists_of_lists_are_grouped() {
    for partitions in [1, 4] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        batches(&ctx, SMALL).await.unwrap();
        for (sql, expected) in CONSTANT_LISTS {
            let found = batches(&ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
            let found: usize = found.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(found, expected, "{sql}");
        }
    }
}

/// DataFusion's own plan still fails. Once this test fails, `UnorderedKeys` in `sql::sorts` can be
/// removed.
#[tokio::test]
async fn stock_distinct_of_constant_lists_still_fails() {
    let stock = SessionContext::new_with_config(one_row_batches(1));
    batches(&stock, SMALL).await.unwrap();
    let sql = "SELECT DISTINCT id AS a, make_array(make_array(1)) AS c FROM t WHERE id < 3";
    let message = error(&stock, sql).await;
    assert!(message.contains("Uncomparable values"), "{message}");
}

/// Statements over a constant column of lists of lists, with the number of their rows.
const NESTED_CONSTANTS: [(&str, usize); 8] = [
    ("SELECT DISTINCT [[1, NULL]] AS a, [0.5] AS b FROM t", 1),
    ("SELECT DISTINCT [[1, NULL]] AS a FROM (SELECT 1 AS x FROM t WHERE id > 99) WHERE true", 0),
    (
        "SELECT a, row_number() OVER (ORDER BY a NULLS FIRST, id) AS n FROM (SELECT *, [[1], [2, 3]] AS a FROM t)",
        3,
    ),
    ("SELECT sum(id) OVER (PARTITION BY a) FROM (SELECT id, [[1], [2, 3]] AS a FROM t)", 3),
    ("SELECT [[1], [2]] AS a, id FROM t INTERSECT SELECT [[1], [2]], 1", 1),
    (
        "SELECT a, b, count(*) FROM (SELECT [[1], [2, 3]] AS a, true AS b FROM t) GROUP BY GROUPING SETS ((a, b), ())",
        2,
    ),
    (
        "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY a, id) AS n FROM (SELECT *, [[1]] AS a FROM t)) WHERE n <= 2",
        2,
    ),
    (
        "SELECT a, b FROM (SELECT *, row_number() OVER (PARTITION BY a, b) AS n FROM (SELECT [[1, NULL]] AS a, [0.5] AS b FROM t)) WHERE n = 1",
        1,
    ),
];

#[tokio::test]
async fn constant_lists_of_lists_are_columns() {
    for partitions in [1, 4] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        batches(&ctx, SMALL).await.unwrap();
        for (sql, expected) in NESTED_CONSTANTS {
            let found = batches(&ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
            let found: usize = found.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(found, expected, "{sql}");
        }
    }
}

/// When this fails, `sql::mends::nested_constants` may go.
#[tokio::test]
async fn stock_constant_lists_of_lists_still_fail() {
    let stock = SessionContext::new_with_config(one_row_batches(1));
    batches(&stock, SMALL).await.unwrap();
    let (sql, _) = NESTED_CONSTANTS[6];
    let message = error(&stock, sql).await;
    assert!(message.contains("lower bound"), "{message}");
}

const LIMITED_UNIONS: [(&str, [i64; 3]); 4] = [
    (
        "SELECT 7 AS a, 0 AS c FROM t UNION ALL SELECT 7, 1 FROM t ORDER BY a, c DESC LIMIT 3",
        [1, 1, 1],
    ),
    (
        "SELECT id % 2 AS a, 0 AS c FROM t UNION ALL SELECT id % 2, 1 FROM t ORDER BY a, c DESC LIMIT 3",
        [1, 0, 1],
    ),
    (
        "SELECT * FROM (SELECT id % 2 AS a, 5 AS c FROM t UNION ALL SELECT id % 2, 2 FROM t
            UNION ALL SELECT 0, 1 FROM t) ORDER BY a, c LIMIT 3",
        [1, 1, 1],
    ),
    (
        "SELECT id AS a, 1 AS c FROM t UNION ALL SELECT id, 0 FROM t ORDER BY a, c LIMIT 3",
        [0, 1, 0],
    ),
];

#[tokio::test]
async fn limits_over_unions_take_the_first_rows_of_all_inputs() {
    for partitions in [1, 4] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        batches(&ctx, SMALL).await.unwrap();
        for (sql, expected) in LIMITED_UNIONS {
            let rows = batches(&ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
            let rows =
                datafusion::arrow::compute::concat_batches(&rows[0].schema(), &rows).unwrap();
            let found = rows.column(1).as_primitive::<Int64Type>();
            assert_eq!(found.values(), &expected, "{partitions} {sql}");
        }
    }
}

/// DataFusion's own plan still leaves keys out. Once this fails, `sort_by_all_keys` in `sql::sorts` can go.
#[tokio::test]
async fn stock_limits_over_unions_still_drop_rows() {
    let stock = SessionContext::new_with_config(one_row_batches(1));
    batches(&stock, SMALL).await.unwrap();
    let plan = stock.sql(LIMITED_UNIONS[1].0).await.unwrap().create_physical_plan().await.unwrap();
    let plan = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
    assert!(plan.contains("expr=[a@0 ASC NULLS LAST], preserve_partitioning=[true]"), "{plan}");
}

const KEYED: &str = "CREATE TABLE t AS SELECT id, id % 2 AS k FROM (VALUES (2), (3), (1)) t(id)";

const EQUATIONS: [&str; 5] = [
    "SELECT id, row_number() OVER (PARTITION BY id ORDER BY k) FROM t WHERE abs(id) = id",
    "SELECT id, sum(k) OVER (PARTITION BY id ORDER BY k DESC, id) FROM t WHERE id = coalesce(id, 0)",
    "SELECT id, rank() OVER (PARTITION BY id ORDER BY k) FROM t WHERE abs(id) = id AND k = k + 0",
    "SELECT id, count(*) FROM t WHERE (CASE WHEN id > 0 THEN id END) = id GROUP BY id ORDER BY id",
    "SELECT a.id, row_number() OVER (PARTITION BY a.id ORDER BY b.id) FROM t a JOIN t b ON a.id = b.id
        WHERE abs(a.id) = b.id",
];

#[tokio::test]
async fn a_column_may_equal_an_expression_of_itself() {
    for partitions in [1, 2] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        batches(&ctx, KEYED).await.unwrap();
        for sql in EQUATIONS {
            let found = batches(&ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
            let found: usize = found.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(found, 3, "{sql}");
        }
    }
}

/// DataFusion's own plan still fails. Once this fails, `sql::mends::equations` can go.
#[tokio::test]
async fn stock_windows_over_equations_still_fail() {
    let stock = SessionContext::new_with_config(one_row_batches(2));
    batches(&stock, KEYED).await.unwrap();
    let message = error(&stock, EQUATIONS[0]).await;
    assert!(message.contains("PARTITION BY expression"), "{message}");
}

/// Keys that are constant, or equal to another key, below grouping sets and outer joins: a key is
/// NULL in grouping sets without it, and in rows without a partner on its side.
const LOST_CONSTANTS: [(&str, &str); 9] = [
    (
        "SELECT k, count(*) AS n FROM (SELECT 'a' AS k FROM T) GROUP BY ROLLUP (k) ORDER BY k NULLS FIRST",
        "NULL 40; a 40",
    ),
    (
        "SELECT k, count(*) AS n FROM (SELECT x % 2 AS k FROM T) WHERE k = 1 GROUP BY ROLLUP (k) ORDER BY k NULLS FIRST",
        "NULL 20; 1 20",
    ),
    (
        "SELECT k, l, count(*) AS n FROM (SELECT [1.5] AS k, 2 AS l FROM T) GROUP BY CUBE (k, l) ORDER BY n, l NULLS FIRST, k DESC",
        "NULL NULL 40; [1.5] NULL 40; NULL 2 40; [1.5] 2 40",
    ),
    (
        "SELECT k, l, count(*) AS n FROM (SELECT x % 2 AS k, x % 4 AS l FROM T) WHERE k = l GROUP BY ROLLUP (k, l) ORDER BY k, l NULLS FIRST",
        "0 NULL 10; 0 0 10; 1 NULL 10; 1 1 10; NULL NULL 20",
    ),
    (
        "SELECT k, n, rank() OVER (ORDER BY k NULLS FIRST) AS r FROM (SELECT k, count(*) AS n FROM (SELECT 7 AS k FROM T) GROUP BY GROUPING SETS ((k), ())) ORDER BY r",
        "NULL 40 1; 7 40 2",
    ),
    (
        "SELECT c, y FROM (SELECT 1 AS c, x AS k FROM T) AS a RIGHT JOIN (VALUES (39), (40), (41)) b(y) ON k = y ORDER BY c NULLS FIRST, y",
        "NULL 40; NULL 41; 1 39",
    ),
    (
        "SELECT c, y FROM (VALUES (39), (40), (41)) b(y) LEFT JOIN (SELECT x AS c FROM T) AS a ON c = y AND y < 40 ORDER BY c NULLS FIRST, y",
        "NULL 40; NULL 41; 39 39",
    ),
    (
        "SELECT c, d FROM (SELECT 1 AS c, x FROM T) AS a FULL JOIN (SELECT 2 AS d, x AS y FROM T) AS b ON x = y + 38 WHERE coalesce(x, 39) > 38 AND coalesce(y, 0) < 2 ORDER BY c, d",
        "1 2",
    ),
    (
        "SELECT c, d FROM (SELECT x AS c FROM T) AS a FULL JOIN (VALUES (1)) b(d) ON 2 = 3 WHERE c = 7 OR c IS NULL ORDER BY c NULLS FIRST",
        "NULL 1; 7 NULL",
    ),
];

async fn lost_constants(ctx: &SessionContext, sql: &str) -> String {
    use datafusion::arrow::util::display::array_value_to_string;
    let sql = sql.replace(" T)", " (SELECT value AS x FROM generate_series(0, 39)))");
    let frame = serrate::sql::sql(ctx, &sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    let mut rows = Vec::new();
    for batch in frame.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}")) {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().map(|c| {
                if c.is_null(row) { "NULL".into() } else { array_value_to_string(c, row).unwrap() }
            });
            rows.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    rows.join("; ")
}

#[tokio::test]
async fn constants_are_none_where_they_are_null() {
    for partitions in [1, 4] {
        for batch in [1, 7, 8192] {
            let config = SessionConfig::new().with_target_partitions(partitions);
            let ctx = serrate::sql::session_with(config.with_batch_size(batch));
            for (sql, expected) in LOST_CONSTANTS {
                let found = lost_constants(&ctx, sql).await;
                assert_eq!(found, expected, "{partitions} {batch} {sql}");
            }
        }
    }
}

#[tokio::test]
async fn stock_constants_are_still_kept_where_they_are_null() {
    // Whether the rows come in order by chance depends on threads; that nothing sorts them does not.
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4));
    let sql = "SELECT k, count(*) AS n FROM (SELECT 'a' AS k FROM generate_series(0, 39))
        GROUP BY ROLLUP (k) ORDER BY k NULLS FIRST";
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let plan = datafusion::physical_plan::displayable(plan.as_ref()).indent(true).to_string();
    assert!(!plan.contains("SortExec"), "the mend can go\n{plan}");
}

#[tokio::test]
async fn windows_go_by_lists_of_lists_and_structs() {
    let sum = |over: &str| format!("SELECT x, sum(x) OVER ({over}) FROM t ORDER BY x");
    let cases = [
        (sum("PARTITION BY [[1]] ORDER BY x"), "1 1; 2 3; 3 6"),
        (sum("PARTITION BY [[1]], x % 2 ORDER BY x"), "1 1; 2 2; 3 4"),
        (sum("PARTITION BY [[1]]"), "1 6; 2 6; 3 6"),
        (sum("ORDER BY [[1]], x"), "1 1; 2 3; 3 6"),
        (sum("ORDER BY [[1]]"), "1 6; 2 6; 3 6"),
        (sum("PARTITION BY [[x % 2]] ORDER BY [[x]]"), "1 1; 2 2; 3 4"),
        (sum("PARTITION BY [[x % 2]] ORDER BY [[x]] DESC"), "1 4; 2 2; 3 3"),
        (sum("ORDER BY {'a': 1}"), "1 6; 2 6; 3 6"),
        (sum("ORDER BY {'a': [x]}"), "1 1; 2 3; 3 6"),
        (sum("ORDER BY {'a': [x]} DESC"), "1 6; 2 5; 3 3"),
        (sum("PARTITION BY {'a': x % 2} ORDER BY x"), "1 1; 2 2; 3 4"),
        (sum("ORDER BY CASE WHEN x > 1 THEN [[x]] END NULLS FIRST"), "1 1; 2 3; 3 6"),
        (sum("ORDER BY CASE WHEN x > 1 THEN [[x]] END"), "1 6; 2 2; 3 5"),
        (sum("ORDER BY [[-x], [NULL]]"), "1 6; 2 5; 3 3"),
        (
            "SELECT k, rank() OVER (PARTITION BY k ORDER BY x DESC) FROM (SELECT [[1]] AS k, x FROM t) ORDER BY 2".into(),
            "[[1]] 1; [[1]] 2; [[1]] 3",
        ),
        (
            "SELECT min([[1]]) OVER (PARTITION BY [[1]] ORDER BY [[1]]), [[1]] FROM t GROUP BY x, [[1]]".into(),
            "[[1]] [[1]]; [[1]] [[1]]; [[1]] [[1]]",
        ),
        ("SELECT x FROM t ORDER BY [[1]], x DESC".into(), "3; 2; 1"),
        ("SELECT [[1]] AS k, count(*) FROM t GROUP BY [[1]]".into(), "[[1]] 3"),
        ("SELECT k, x, count(*) FROM (SELECT [[1]] AS k, x FROM t) GROUP BY k, x ORDER BY k, x".into(), "[[1]] 1 1; [[1]] 2 1; [[1]] 3 1"),
        ("SELECT DISTINCT [[1]] AS k, x FROM t ORDER BY k, x".into(), "[[1]] 1; [[1]] 2; [[1]] 3"),
        ("SELECT k, count(*) FROM (SELECT [[x % 2]] AS k FROM t ORDER BY [[x % 2]]) GROUP BY k ORDER BY k".into(), "[[0]] 1; [[1]] 2"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&["CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (3)) v(x)"], &cases).await;
}

/// When this fails, `sql::mends::window_keys` can go.
#[tokio::test]
async fn stock_windows_over_lists_of_lists_still_fail() {
    let config = SessionConfig::new().with_target_partitions(1);
    let ctx = SessionContext::new_with_config(config);
    let sql =
        "SELECT sum(x) OVER (ORDER BY make_array(make_array(x))) FROM (VALUES (1), (1), (2)) t(x)";
    let e = error(&ctx, sql).await;
    assert!(e.contains("Uncomparable values"), "{e}");
}

#[tokio::test]
async fn rows_are_sorted_by_functions_of_constant_lists_of_lists() {
    let ctx = four();
    batches(&ctx, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 30)").await.unwrap();
    let at = "array_position([[3], [1], [2]], [v % 4])";
    let sql = format!("SELECT v FROM t WHERE v < 6 ORDER BY {at} NULLS FIRST, v DESC");
    assert_eq!(ints(&ctx, &sql).await, [4, 3, 5, 1, 2]);
    let twice = "(SELECT v FROM t UNION ALL SELECT v FROM t)";
    let sql = format!("SELECT v FROM {twice} WHERE v < 4 ORDER BY {at} DESC, v");
    assert_eq!(ints(&ctx, &sql).await, [2, 2, 1, 1, 3, 3]);
    let sql = format!(
        "SELECT v, sum(v) OVER (PARTITION BY {at} IS NULL ORDER BY {at}, v) FROM t WHERE v < 6"
    );
    assert_eq!(ints(&ctx, &format!("SELECT v FROM ({sql}) ORDER BY v")).await, [1, 2, 3, 4, 5]);
    let sums = format!("SELECT s FROM ({sql}) x(v, s) ORDER BY v");
    assert_eq!(ints(&ctx, &sums).await, [4, 11, 3, 4, 9]);
    let head = text(&ctx, &format!("SELECT *, rank() OVER (ORDER BY {at}) FROM t LIMIT 0")).await;
    assert!(!head.contains("__"), "{head}");
}

/// When this fails, `has_unordered_constant` of `sql::mends::query_values` can go.
#[tokio::test]
async fn stock_sorts_by_constant_lists_still_fail() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4));
    let table = "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 30)";
    batches(&ctx, table).await.unwrap();
    let at = "array_position(make_array(make_array(3), make_array(1)), make_array(v))";
    let twice = "(SELECT v FROM t UNION ALL SELECT v FROM t)";
    let e = error(&ctx, &format!("SELECT v FROM {twice} ORDER BY {at}, v")).await;
    assert!(e.contains("SanityCheckPlan"), "{e}");
}

const FRAMES: &str = "CREATE TABLE a AS
    SELECT * FROM (VALUES (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)) AS v(g, i)";

/// Windows whose results DataFusion takes for sorted.
const WINDOWS: [&str; 8] = [
    "count(1) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "count(CASE WHEN i < 3 THEN 1 END) OVER (ORDER BY CASE WHEN i < 3 THEN 1 END
        ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "max(g) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "max(CASE WHEN i < 2 AND g < 2 THEN 1 END) OVER (ORDER BY g, i
        ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "max(CASE WHEN i > 1 THEN i END) OVER (ORDER BY g, i)",
    "min(CASE WHEN i > 1 THEN i END) OVER (ORDER BY g, i)",
    "min(CASE WHEN i > 1 THEN i END) OVER (PARTITION BY g ORDER BY i DESC
        ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "count(*) OVER (ORDER BY g RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING)",
];

#[tokio::test]
async fn results_of_windows_are_sorted_where_asked() {
    for batch in [8192, 2] {
        let config = SessionConfig::new().with_target_partitions(1).with_batch_size(batch);
        let ctx = serrate::sql::session_with(config);
        batches(&ctx, FRAMES).await.unwrap();
        for window in WINDOWS {
            let from = format!("SELECT {window} AS c FROM a");
            let kept = format!("CREATE OR REPLACE TABLE kept AS {from}");
            batches(&ctx, &kept).await.unwrap();
            for order in ["ASC", "DESC", "ASC NULLS FIRST", "DESC NULLS LAST"] {
                for from in [from.clone(), format!("SELECT DISTINCT c FROM ({from})")] {
                    let sorted = |from: &str| {
                        format!(
                            "SELECT coalesce(c, -1) FROM (SELECT c FROM ({from}) ORDER BY c {order})"
                        )
                    };
                    let expected = match from.starts_with("SELECT DISTINCT") {
                        true => sorted("SELECT DISTINCT c FROM kept"),
                        false => sorted("SELECT c FROM kept"),
                    };
                    let expected = ints(&ctx, &expected).await;
                    assert_eq!(ints(&ctx, &sorted(&from)).await, expected, "{from} {order}");
                }
            }
        }
    }
}

async fn stock_window(window: &str) -> Vec<i64> {
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(2);
    let ctx = SessionContext::new_with_config(config);
    batches(&ctx, FRAMES).await.unwrap();
    ints(&ctx, &format!("SELECT coalesce(c, 9) FROM (SELECT {window} AS c FROM a ORDER BY c)"))
        .await
}

/// When this fails, `sql::mends::window_orders` may go.
#[tokio::test]
async fn stock_counts_over_frames_still_count_as_sorted() {
    assert!(!stock_window(WINDOWS[0]).await.is_sorted());
}

/// When this fails, `min`, `max` and `sum` may promise that they are monotonic.
#[tokio::test]
async fn stock_extremes_over_frames_still_count_as_sorted() {
    assert!(!stock_window(WINDOWS[4]).await.is_sorted());
}

const TRUTHS: &str =
    "SELECT i FROM (VALUES (5), (-3), (0), (1)) AS v(i) WHERE CAST(i AS BOOLEAN) ORDER BY i";

#[tokio::test]
async fn integers_that_are_true_differ() {
    assert_eq!(ints(&four(), TRUTHS).await, [-3, 1, 5]);
    let head =
        text(&four(), "SELECT CAST(i AS BOOLEAN) FROM (VALUES (5), (0), (NULL)) AS v(i)").await;
    assert!(head.contains("true") && head.contains("false"), "{head}");
}

/// When this fails, `sql::mends::truths` may go.
#[tokio::test]
async fn stock_truths_of_integers_are_still_one() {
    assert_ne!(ints(&SessionContext::new(), TRUTHS).await, [-3, 1, 5]);
}

const RANKED: &str = "SELECT r, k FROM (SELECT k, rank() OVER (ORDER BY count(*) DESC) AS r
    FROM (VALUES (5), (3), (4), (1), (2), (2)) AS v(k) GROUP BY k) ORDER BY r, k";

#[tokio::test]
async fn ranks_of_groups_are_sorted_by_their_keys() {
    for partitions in [1, 4] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        let shown = text(&ctx, RANKED).await;
        let at = |k: i64| shown.find(&format!("| {k} |")).unwrap();
        assert!(at(3) < at(4) && at(4) < at(5), "{shown}");
    }
}

/// When this fails, `sql::mends::moved_keys` may go.
#[tokio::test]
async fn stock_projections_still_move_keys() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let plan = text(&ctx, &format!("EXPLAIN {RANKED}")).await;
    assert!(!plan.contains("SortExec: expr=[r@"), "{plan}");
}

/// Statements whose last ORDER BY is by `x` alone, over rows that were merged by a literal and `x`.
const MERGED_PARTITIONS: [(&str, &str); 4] = [
    (
        "SELECT * FROM (SELECT x, 0 AS c FROM m UNION ALL SELECT x + 1, 1 FROM m ORDER BY c DESC, x LIMIT 9) ORDER BY x",
        "3 0; 4 1; 5 0; 6 1; 9 0; 10 1",
    ),
    (
        "SELECT x, row_number() OVER (ORDER BY x) FROM (SELECT x, 0 AS c FROM m UNION ALL SELECT x + 1, 1 FROM m
         ORDER BY c, x LIMIT 9) ORDER BY 2",
        "3 1; 4 2; 5 3; 6 4; 9 5; 10 6",
    ),
    (
        "SELECT x, count(*) AS n FROM (SELECT x, 0 AS c FROM m UNION ALL SELECT x, 1 FROM m ORDER BY c, x LIMIT 9)
         GROUP BY x ORDER BY x",
        "3 2; 5 2; 9 2",
    ),
    (
        "SELECT x, c FROM (SELECT * FROM (SELECT x, 0 AS c FROM m UNION ALL SELECT x + 1, 1 FROM m
         ORDER BY c DESC, x LIMIT 9) ORDER BY x LIMIT 3) ORDER BY c, x",
        "3 0; 5 0; 4 1",
    ),
];

const UNSORTED: &str = "CREATE TABLE m AS SELECT * FROM (VALUES (5), (3), (9)) t(x)";

#[tokio::test]
async fn merged_partitions_are_sorted_again() {
    for partitions in [1, 2, 4] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        batches(&ctx, UNSORTED).await.unwrap();
        for (sql, expected) in MERGED_PARTITIONS {
            assert_eq!(rows_or_error(&ctx, sql).await, expected, "{partitions} {sql}");
        }
    }
}

#[tokio::test]
async fn stock_merges_still_claim_orders_of_partitions() {
    let stock = SessionContext::new_with_config(one_row_batches(1));
    batches(&stock, UNSORTED).await.unwrap();
    let (sql, expected) = MERGED_PARTITIONS[0];
    assert_ne!(rows_or_error(&stock, sql).await, expected);
}

/// The rows of `b` are in two batches, so that windows run in two partitions.
const TWO_BATCHES: &str =
    "CREATE TABLE b AS SELECT * FROM (VALUES (15), (16), (17), (18), (19), (20), (21), (22)) v(id)";

const WINDOWS_OF_ALL: &str =
    "SELECT id AS c0, row_number() OVER (PARTITION BY id ORDER BY id) AS c1,
    count(0) OVER (ORDER BY 6) AS c2 FROM b ORDER BY 1, 2, 3 LIMIT 3";

fn two_partitions() -> SessionConfig {
    SessionConfig::new().with_target_partitions(2).with_batch_size(7)
}

#[tokio::test]
async fn windows_below_a_limit_see_all_rows() {
    let ctx = serrate::sql::session_with(two_partitions());
    batches(&ctx, TWO_BATCHES).await.unwrap();
    for (sql, expected) in [
        (WINDOWS_OF_ALL, "15 1 8; 16 1 8; 17 1 8"),
        (
            "SELECT id, c FROM (SELECT id, row_number() OVER (PARTITION BY id ORDER BY id) AS r, sum(id) OVER
             (ORDER BY id // 100) AS c FROM b) WHERE r = 1 AND id > 16 ORDER BY id, r, c LIMIT 2",
            "17 148; 18 148",
        ),
        ("SELECT id FROM (SELECT id FROM b ORDER BY id DESC LIMIT 4) WHERE id < 22 ORDER BY id LIMIT 2", "19; 20"),
    ] {
        assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn stock_limits_still_move_below_windows() {
    let stock = SessionContext::new_with_config(two_partitions());
    batches(&stock, TWO_BATCHES).await.unwrap();
    assert_eq!(rows_or_error(&stock, WINDOWS_OF_ALL).await, "15 1 3; 16 1 3; 17 1 3");
}
