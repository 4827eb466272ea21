//! Rows keep the order of their source for any number of partitions; ORDER BY over constants.

use datafusion::arrow::array::StringViewArray;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use serrate::io::nrt::NrtFile;

use super::*;

fn read_column(path: &Path, column: &str) -> Vec<i64> {
    let table = NrtFile::open(path, &Default::default()).unwrap().table().unwrap();
    table.column(column).unwrap().values().as_primitive::<Int64Type>().values().to_vec()
}

async fn cut_small_files(ctx: &SessionContext) {
    let sql = "SET datafusion.optimizer.repartition_file_min_size = 1048576";
    query_batches(ctx, sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn big_files_are_read_once_by_four_partitions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big.nrt");
    let n = 200_000;
    write_table(&path, &make_numbered_table(0, n));
    assert!(std::fs::metadata(&path).unwrap().len() > 4 << 20);
    let ctx = create_parallel_session();
    cut_small_files(&ctx).await;
    let from = format!("FROM '{}'", display_path(&path));
    let plan = query_text(&ctx, &format!("EXPLAIN SELECT id {from} WHERE id >= 0")).await;
    assert!(plan.contains("4 groups"), "{plan}");
    assert_eq!(query_int(&ctx, &format!("SELECT count(id) {from} WHERE id >= 0")).await, n as i64);
    let mut ids = query_ints(&ctx, &format!("SELECT id {from} WHERE id >= 0")).await;
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..n as i64));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_million_rows_filtered_by_four_partitions_are_written_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let n = 2_000_000;
    let table = RaggedTable::builder().column("i", 0, make_ints(0..n)).build().unwrap();
    let path = dir.path().join("in.nrt");
    write_table(&path, &table);
    let ctx = create_parallel_session();
    let parquet = dir.path().join("in.parquet");
    let copy = format!(
        "COPY (SELECT i FROM '{}' ORDER BY i) TO '{}'",
        display_path(&path),
        display_path(&parquet)
    );
    query_batches(&ctx, &copy).await.unwrap();
    for (k, source) in [&path, &parquet].into_iter().enumerate() {
        let out = dir.path().join(format!("out{k}.nrt"));
        let sql = format!(
            "COPY (SELECT i FROM '{}' WHERE i % 3 <> 1) TO '{}'",
            display_path(source),
            display_path(&out)
        );
        let plan = query_text(&ctx, &format!("EXPLAIN {sql}")).await;
        assert!(plan.contains("4 groups") || k == 1, "{plan}");
        assert!(!plan.contains("RoundRobin") && !plan.contains("CoalescePartitions"), "{plan}");
        assert_eq!(query_int(&ctx, &sql).await, n - n.div_euclid(3) - 1);
        assert!(read_column(&out, "i").into_iter().eq((0..n).filter(|i| i % 3 != 1)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn folders_are_written_and_limited_in_the_order_of_their_names() {
    let dir = tempfile::tempdir().unwrap();
    for k in (0..9).rev() {
        write_table(&dir.path().join(format!("in/{k}.nrt")), &make_numbered_table(k * 1000, 1000));
    }
    let ctx = create_parallel_session();
    let from = format!("'{}/in/*.nrt'", display_path(dir.path()));
    for k in 0..5 {
        let out = dir.path().join(format!("{k}.nrt"));
        let sql = format!(
            "COPY (SELECT id, code FROM {from} WHERE id % 7 < 5) TO '{}'",
            display_path(&out)
        );
        query_batches(&ctx, &sql).await.unwrap();
        assert!(read_column(&out, "id").into_iter().eq((0..9000).filter(|i| i % 7 < 5)));
        let first = format!("SELECT id FROM {from} WHERE id % 7 < 5 LIMIT 2 OFFSET 998");
        let expected: Vec<i64> = (0..9000).filter(|i| i % 7 < 5).skip(998).take(2).collect();
        assert_eq!(query_ints(&ctx, &first).await, expected);
        assert_eq!(query_ints(&ctx, &format!("SELECT id FROM {from} LIMIT 3")).await, [0, 1, 2]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tables_in_memory_are_written_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    // DataFusion would distribute batches of different sizes over partitions by size.
    let parts: Vec<RecordBatch> = (0..20i64)
        .map(|k| {
            let ids = make_ints(k * 10_000..k * 10_000 + 100 * k + 1);
            RecordBatch::try_from_iter([("i", ids)]).unwrap()
        })
        .collect();
    let expected: Vec<i64> = (0..20).flat_map(|k| k * 10_000..k * 10_000 + 100 * k + 1).collect();
    let schema = parts[0].schema();
    let table = datafusion::datasource::MemTable::try_new(schema, vec![parts]).unwrap();
    ctx.register_table("m", Arc::new(table)).unwrap();
    let out = dir.path().join("m.nrt");
    let sql = format!("COPY (SELECT i FROM m WHERE i >= 0) TO '{}'", display_path(&out));
    query_batches(&ctx, &sql).await.unwrap();
    assert_eq!(read_column(&out, "i"), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn plans_without_an_order_need_one_or_an_id() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.nrt");
    write_table(&path, &make_numbered_table(0, 1000));
    let ctx = create_parallel_session();
    let from = format!("'{}'", display_path(&path));
    let out = dir.path().join("out.nrt");
    let copy = |query: &str| format!("COPY ({query}) TO '{}'", display_path(&out));
    let grouped = format!("SELECT id % 10 AS k, count(*) AS n FROM {from} GROUP BY id % 10");
    let joined = format!("SELECT a.id FROM {from} a JOIN {from} b ON a.id = b.id");
    let ranked =
        format!("SELECT id, rank() OVER (PARTITION BY id % 2 ORDER BY id) AS r FROM {from}");
    for query in [&grouped, &joined, &ranked] {
        let e = error(&ctx, &copy(query)).await;
        assert!(e.contains("ORDER BY") && e.contains("subject_id"), "{e}");
        assert!(!out.exists());
        // COPY is refused when it is planned, before it runs.
        let planned = ctx.sql(&copy(query)).await.unwrap().create_physical_plan().await;
        assert!(planned.unwrap_err().to_string().contains("ORDER BY"));
    }
    query_batches(&ctx, &copy(&format!("{grouped} ORDER BY k DESC"))).await.unwrap();
    assert_eq!(read_column(&out, "k"), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    let with_id = copy("SELECT k AS subject_id, n FROM g")
        .replace("FROM g", &format!("FROM ({grouped}) WHERE n > 0"));
    let exists = error(&ctx, &with_id).await;
    assert!(exists.contains("exists"), "{exists}");
    query_batches(&ctx, &format!("{with_id} OPTIONS (overwrite true)")).await.unwrap();
    let mut ids = read_column(&out, "subject_id");
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..10));
    let plain = format!("{with_id} OPTIONS (overwrite true, plain true)");
    assert!(error(&ctx, &plain).await.ends_with("; end the query with ORDER BY"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unions_and_aggregates_without_keys_have_an_order() {
    let dir = tempfile::tempdir().unwrap();
    for k in 0..4 {
        write_table(&dir.path().join(format!("{k}.nrt")), &make_numbered_table(k * 1000, 1000));
    }
    let ctx = create_parallel_session();
    let out = dir.path().join("out/x.nrt");
    std::fs::create_dir(dir.path().join("out")).unwrap();
    let file = |k: i64| format!("'{}/{k}.nrt'", display_path(dir.path()));
    let sql = format!(
        "COPY (SELECT id FROM {} UNION ALL SELECT id FROM {}) TO '{}'",
        file(2),
        file(1),
        display_path(&out)
    );
    query_batches(&ctx, &sql).await.unwrap();
    assert!(read_column(&out, "id").into_iter().eq((2000..3000).chain(1000..2000)));
    let all = format!("'{}/*.nrt'", display_path(dir.path()));
    let sql = format!(
        "COPY (SELECT max(id) AS m FROM {all}) TO '{}' OPTIONS (overwrite true)",
        display_path(&out)
    );
    query_batches(&ctx, &sql).await.unwrap();
    assert_eq!(read_column(&out, "m"), [3999]);
    let sql = format!(
        "COPY (SELECT unnest(array_sort(code[1])) AS c FROM {all} WHERE id < (SELECT max(id) FROM {all})) TO '{}' OPTIONS (overwrite true)",
        display_path(&out)
    );
    query_batches(&ctx, &sql).await.unwrap();
    assert!(read_column(&out, "c").is_sorted());
}

#[tokio::test]
async fn a_copy_that_fails_leaves_nothing_and_one_that_cannot_work_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let to = |name: &str| format!("'{}'", display_path(&dir.path().join(name)));
    let e = error(&ctx, &format!("COPY (SELECT 'x' AS name) TO {}", to("a.nrt"))).await;
    assert!(e.contains("name") && e.contains("vocabulary"), "{e}");
    let e = error(&ctx, &format!("COPY (SELECT NULL::BIGINT AS n) TO {}", to("a.nrt"))).await;
    assert!(e.contains("\"n\""), "{e}");
    let late = "SELECT 1 / (1000 - i) AS q FROM generate_series(1, 2000) AS t(i)";
    error(&ctx, &format!("COPY ({late}) TO {}", to("a.nrt"))).await;
    let e = error(&ctx, &format!("COPY (SELECT 1 AS a) TO {}", to("folder/"))).await;
    assert!(!e.is_empty());
    let e = error(
        &ctx,
        &format!("COPY (SELECT 1 AS a) TO '{}' STORED AS NRT", display_path(dir.path())),
    )
    .await;
    assert!(e.contains("folder"), "{e}");
    let e =
        error(&ctx, &format!("COPY (SELECT 1 AS a) TO {} OPTIONS (overwrit true)", to("a.nrt")))
            .await;
    assert!(e.contains("overwrite"), "{e}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Registers a table in memory of integer columns, in batches of `rows` rows.
fn register_memory(ctx: &SessionContext, name: &str, columns: &[(&str, Vec<i64>)], rows: usize) {
    let columns = columns.iter().map(|(name, values)| (*name, make_ints(values.iter().copied())));
    let all = RecordBatch::try_from_iter(columns).unwrap();
    let batches = (0..all.num_rows())
        .step_by(rows)
        .map(|start| all.slice(start, rows.min(all.num_rows() - start)))
        .collect();
    let table = datafusion::datasource::MemTable::try_new(all.schema(), vec![batches]).unwrap();
    ctx.register_table(name, Arc::new(table)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn joins_with_order_by_are_written_in_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.nrt");
    for partitions in [1, 4] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        register_memory(&ctx, "few", &[("k", vec![3, 1, 2]), ("w", vec![30, 10, 20])], 100);
        let keys: Vec<i64> = (0..3000).map(|i| i * 7919 % 3000).collect();
        let third = keys.iter().map(|k| k % 3 + 1).collect();
        register_memory(&ctx, "many", &[("k", third), ("v", keys)], 100);
        // The sort keys are columns of either table, and may be missing from the written columns.
        for order in ["b.v", "b.v DESC", "a.w, b.v DESC", "a.w DESC, b.v"] {
            for columns in ["b.v, a.w", "b.v", "a.w, a.k", "b.k + a.w AS z"] {
                let query = format!(
                    "SELECT {columns} FROM few a JOIN many b ON a.k = b.k ORDER BY {order}"
                );
                let sorted = query_ints(&ctx, &query).await;
                assert_eq!(sorted.len(), 3000);
                for query in [query.clone(), format!("{query} LIMIT 17")] {
                    let copy = format!(
                        "COPY ({query}) TO '{}' OPTIONS (overwrite true, plain true)",
                        display_path(&out)
                    );
                    query_batches(&ctx, &copy).await.unwrap();
                    let n = if query.contains("LIMIT") { 17 } else { 3000 };
                    let first = match columns {
                        "a.w, a.k" => "w",
                        "b.k + a.w AS z" => "z",
                        _ => "v",
                    };
                    assert_eq!(
                        read_column(&out, first),
                        sorted[..n],
                        "{copy}, {partitions} partitions"
                    );
                }
            }
        }
        let e = error(
            &ctx,
            &format!(
                "COPY (SELECT b.v FROM few a JOIN many b ON a.k = b.k) TO '{}' OPTIONS (overwrite true)",
                display_path(&out)
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
    let ctx = create_parallel_session();
    // DataFusion would distribute batches of different sizes over partitions by size.
    let sizes: Vec<i64> = (0..40).map(|k| (k * 37 % 40) * 20 + 1).collect();
    let mut next = 0;
    let parts: Vec<RecordBatch> = sizes
        .iter()
        .map(|n| {
            let ids = make_ints(next..next + n);
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
            assert_eq!(query_ints(&ctx, &sql).await, kept[offset..offset + 50], "{sql}");
        }
    }
    let plan = query_text(&ctx, "EXPLAIN SELECT count(*) FROM m WHERE i > 3").await;
    assert!(!plan.contains("fixed") && plan.contains("partitions=4"), "{plan}");
}

#[tokio::test]
async fn rows_under_a_limit_stay_in_order_above_it() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    query_batches(&ctx, "SET datafusion.execution.batch_size = 1").await.unwrap();
    query_batches(&ctx, "CREATE TABLE t0 AS SELECT value AS id FROM generate_series(0, 19)")
        .await
        .unwrap();
    let file = display_path(&dir.path().join("t0.parquet"));
    query_batches(&ctx, &format!("COPY (SELECT * FROM t0 ORDER BY id) TO '{file}'")).await.unwrap();
    for from in ["t0".to_owned(), format!("'{file}'")] {
        let sql = format!("SELECT id + 0 AS j FROM {from} WHERE id % 2 = 0 LIMIT 8");
        assert_eq!(query_ints(&ctx, &sql).await, [0, 2, 4, 6, 8, 10, 12, 14], "{from}");
        let sql =
            format!("SELECT j * 2 FROM (SELECT id + 0 AS j FROM {from} LIMIT 12) WHERE j > 8");
        assert_eq!(query_ints(&ctx, &sql).await, [18, 20, 22], "{from}");
    }
}

#[tokio::test]
async fn a_limit_takes_the_first_rows_of_row_groups_that_match_in_part() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("us.parquet"));
    let sorted = display_path(&dir.path().join("sorted.parquet"));
    for partitions in [1, 2, 4] {
        let ctx =
            serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
        let rows = "SELECT value AS id, [value] AS x FROM generate_series(0, 2999)";
        let small = "OPTIONS (max_row_group_size 700, overwrite true)";
        query_batches(&ctx, &format!("COPY ({rows}) TO '{file}' {small}")).await.unwrap();
        query_batches(&ctx, &format!("COPY ({rows} ORDER BY id) TO '{sorted}' {small}"))
            .await
            .unwrap();
        query_batches(&ctx, "SET datafusion.optimizer.repartition_file_min_size = 0")
            .await
            .unwrap();
        for lists in [true, false] {
            query_batches(&ctx, &format!("SET serrate.parquet_lists = {lists}")).await.unwrap();
            for columns in ["id", "id, x"] {
                let sql = format!("SELECT {columns} FROM '{file}' WHERE id >= 2287 LIMIT 3");
                assert_eq!(
                    query_ints(&ctx, &sql).await,
                    [2287, 2288, 2289],
                    "{partitions} {columns}"
                );
                let sql =
                    format!("SELECT {columns} FROM '{sorted}' WHERE id >= 600 ORDER BY id LIMIT 2");
                assert_eq!(query_ints(&ctx, &sql).await, [600, 601], "{partitions} {columns}");
            }
        }
    }
}

/// DataFusion still skips row groups below a LIMIT, and returns other rows than the first. When
/// this test fails, `sql::workarounds::sorting::scan_order` need not keep it from doing so.
#[tokio::test]
async fn stock_limits_drop_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("us.parquet"));
    let rows = "SELECT value AS id FROM generate_series(0, 2999)";
    let copy = format!("COPY ({rows}) TO '{file}' OPTIONS (max_row_group_size 700)");
    query_batches(&create_parallel_session(), &copy).await.unwrap();
    let config = SessionConfig::new()
        .set_bool("datafusion.execution.parquet.pushdown_filters", true)
        .with_target_partitions(1);
    let stock = SessionContext::new_with_config(config);
    stock.register_parquet("us", &file, Default::default()).await.unwrap();
    assert_eq!(
        stock_ints(&stock, "SELECT id FROM us WHERE id >= 2287 LIMIT 3").await,
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

pub(super) fn one_row_batches(partitions: usize) -> SessionConfig {
    SessionConfig::new().with_target_partitions(partitions).with_batch_size(1)
}

const SMALL: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (2), (3), (1)) t(id)";

#[tokio::test]
async fn unions_with_a_constant_branch_are_sorted() {
    for partitions in [1, 2, 4] {
        let ctx = serrate::sql::session_with(one_row_batches(partitions));
        query_batches(&ctx, SMALL).await.unwrap();
        for (sql, expected) in CONSTANT_UNIONS.into_iter().zip([
            &[1, 1, 2][..],
            &[1, 1, 2],
            &[2, 1],
            &[1, 1, 2],
            &[1, 2, 2, 2, 2, 3, 5],
        ]) {
            let column = usize::from(sql.starts_with("SELECT id"));
            let rows = run_query(&ctx, sql).await;
            let rows =
                datafusion::arrow::compute::concat_batches(&rows[0].schema(), &rows).unwrap();
            let keys = rows.column(column).as_primitive::<Int64Type>();
            assert_eq!(keys.values(), expected, "{sql}");
        }
    }
}

/// When this test fails, `serrate_missing_sorts` in
/// `sql::workarounds::sorting::sorts` can be removed.
#[tokio::test]
async fn stock_unions_with_a_constant_still_fail() {
    let stock = SessionContext::new_with_config(one_row_batches(2));
    stock_batches(&stock, SMALL).await.unwrap();
    let message = stock_error(&stock, CONSTANT_UNIONS[0]).await;
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
        query_batches(&ctx, SMALL).await.unwrap();
        for (sql, expected) in CONSTANT_LISTS {
            let found = run_query(&ctx, sql).await;
            let found: usize = found.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(found, expected, "{sql}");
        }
    }
}

/// When this test fails, `serrate_unordered_keys` in
/// `sql::workarounds::sorting::sorts` can be removed.
#[tokio::test]
async fn stock_distinct_of_constant_lists_still_fails() {
    let stock = SessionContext::new_with_config(one_row_batches(1));
    stock_batches(&stock, SMALL).await.unwrap();
    let sql = "SELECT DISTINCT id AS a, make_array(make_array(1)) AS c FROM t WHERE id < 3";
    let message = stock_error(&stock, sql).await;
    assert!(message.contains("Uncomparable values"), "{message}");
}

/// Statements with a constant list of lists as a column, and the number of their rows.
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
        query_batches(&ctx, SMALL).await.unwrap();
        for (sql, expected) in NESTED_CONSTANTS {
            let found = run_query(&ctx, sql).await;
            let found: usize = found.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(found, expected, "{sql}");
        }
    }
}

/// When this test fails, `sql::workarounds::grouping::nested_constants` can be removed.
#[tokio::test]
async fn stock_constant_lists_of_lists_still_fail() {
    let stock = SessionContext::new_with_config(one_row_batches(1));
    stock_batches(&stock, SMALL).await.unwrap();
    let (sql, _) = NESTED_CONSTANTS[6];
    let message = stock_error(&stock, sql).await;
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
        query_batches(&ctx, SMALL).await.unwrap();
        for (sql, expected) in LIMITED_UNIONS {
            let rows = run_query(&ctx, sql).await;
            let rows =
                datafusion::arrow::compute::concat_batches(&rows[0].schema(), &rows).unwrap();
            let found = rows.column(1).as_primitive::<Int64Type>();
            assert_eq!(found.values(), &expected, "{partitions} {sql}");
        }
    }
}

/// DataFusion still sorts by fewer keys than the statement has. When this test fails,
/// `sort_by_all_keys` in `sql::workarounds::sorting::sorts` can be removed.
#[tokio::test]
async fn stock_limits_over_unions_still_drop_rows() {
    let stock = SessionContext::new_with_config(one_row_batches(1));
    stock_batches(&stock, SMALL).await.unwrap();
    let plan = stock.sql(LIMITED_UNIONS[1].0).await.unwrap().create_physical_plan().await.unwrap();
    let plan = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
    assert!(plan.contains("expr=[a@0 ASC NULLS LAST], preserve_partitioning=[true]"), "{plan}");
}

/// A sort reserves memory for all the buffers to which the strings of a batch refer, although other
/// batches refer to the same buffers. When this test fails, `serrate_compact_texts` can be removed.
#[tokio::test]
async fn stock_sorts_still_count_shared_buffers() {
    let config = SessionConfig::new()
        .with_target_partitions(1)
        .set_usize("datafusion.execution.sort_spill_reservation_bytes", 1 << 20);
    // 10 MB of strings. The batches contain a tenth of them.
    let texts = StringViewArray::from_iter_values((0..20_000).rev().map(|i| format!("{i:0500}")));
    let all = RecordBatch::try_from_iter([("s", Arc::new(texts) as ArrayRef)]).unwrap();
    let batches: Vec<RecordBatch> = (0..10).map(|i| all.slice(i * 2000, 200)).collect();
    let mut answers = Vec::new();
    for is_ours in [false, true] {
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(12 << 20, 1.0);
        let builder = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config.clone())
            .with_runtime_env(runtime.build_arc().unwrap());
        let builder = if is_ours { serrate::sql::configure(builder) } else { builder };
        let ctx = SessionContext::new_with_state(builder.build());
        let table = MemTable::try_new(all.schema(), vec![batches.clone()]).unwrap();
        ctx.register_table("t", Arc::new(table)).unwrap();
        let sorted = stock_batches(&ctx, "SELECT s FROM t ORDER BY s").await;
        let count = |rows: Vec<RecordBatch>| rows.iter().map(RecordBatch::num_rows).sum::<usize>();
        answers.push(sorted.map(count).map_err(|e| e.to_string()));
    }
    assert!(answers[0].as_ref().is_err_and(|e| e.contains("ExternalSorter")), "{answers:?}");
    assert_eq!(answers[1], Ok(2000));
}
