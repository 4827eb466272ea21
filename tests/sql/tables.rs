//! Tables in memory: registered ragged tables, batches sized by leaves, and CREATE TABLE.

use datafusion::arrow::datatypes::DataType;
use serrate::sql::{RaggedTableProvider, register_table};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn registered_tables_are_queried() {
    let ctx = create_parallel_session();
    register_table(&ctx, "t", make_numbered_table(0, 10_000)).unwrap();
    register_table(&ctx, "t", make_numbered_table(0, 1000).slice(100, 900).unwrap()).unwrap();
    assert_eq!(query_int(&ctx, "SELECT count(*) FROM t").await, 900);
    let plan = query_text(&ctx, "EXPLAIN SELECT count(*) FROM t").await;
    assert!(plan.contains("PlaceholderRowExec"), "{plan}");
    let sum = "SELECT sum(c) FROM (SELECT unnest(code[1]) AS c FROM t)";
    let expected: i64 = (100..1000).flat_map(|i| (0..i % 10).map(move |k| i * 10 + k)).sum();
    assert_eq!(query_int(&ctx, sum).await, expected);
    assert_eq!(
        query_ints(&ctx, "SELECT id FROM t WHERE id % 2 = 0 LIMIT 3").await,
        [100, 102, 104]
    );
    assert_eq!(query_ints(&ctx, "SELECT id FROM t LIMIT 2 OFFSET 898").await, [998, 999]);
    let plan = query_text(&ctx, "EXPLAIN SELECT id FROM t WHERE id > 3").await;
    assert!(plan.contains("projection=[id]"), "{plan}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_that_offset_skips_are_not_read() {
    let ctx = create_parallel_session();
    register_table(&ctx, "t", make_numbered_table(0, 1000)).unwrap();
    for (query, rows, expected) in [
        ("SELECT id FROM t LIMIT 2 OFFSET 500", Some("rows=500..502"), vec![500, 501]),
        ("SELECT id + 1 FROM t LIMIT 2 OFFSET 998", Some("rows=998..1000"), vec![999, 1000]),
        ("SELECT id FROM t OFFSET 997", Some("rows=997..1000"), vec![997, 998, 999]),
        ("SELECT id FROM t LIMIT 3 OFFSET 1000", Some("rows=0..0"), vec![]),
        ("SELECT id FROM (SELECT id FROM t LIMIT 5) OFFSET 3", Some("rows=3..5"), vec![3, 4]),
        (
            "SELECT id FROM (SELECT id FROM t LIMIT 5 OFFSET 10) LIMIT 9 OFFSET 3",
            None,
            vec![13, 14],
        ),
        ("SELECT id FROM t WHERE id % 2 = 1 LIMIT 2 OFFSET 3", None, vec![7, 9]),
        ("SELECT id FROM t ORDER BY id DESC LIMIT 2 OFFSET 3", None, vec![996, 995]),
        ("SELECT id FROM (SELECT id, unnest(code) FROM t) LIMIT 2 OFFSET 2", None, vec![2, 3]),
    ] {
        let plan = query_text(&ctx, &format!("EXPLAIN {query}")).await;
        if let Some(rows) = rows {
            assert!(plan.contains(rows) && !plan.contains("limit"), "{query}\n{plan}");
            assert!(!plan.contains("GlobalLimitExec"), "{query}\n{plan}");
        }
        assert_eq!(query_ints(&ctx, query).await, expected, "{query}\n{plan}");
    }
    // The table may be read repeatedly, with other batch sizes and columns.
    let codes: i64 = (0..1000).flat_map(|i| (0..i % 10).map(move |k| i * 10 + k)).sum();
    for size in [300, 70, 300, 10_000] {
        query_batches(&ctx, &format!("SET serrate.leaf_batch_size = {size}")).await.unwrap();
        assert_eq!(query_int(&ctx, "SELECT sum(id) FROM t").await, 999 * 500);
        assert_eq!(query_int(&ctx, "SELECT sum(ragged_sum(code)) FROM t").await, codes);
        let both = "SELECT sum(id) FROM t WHERE ragged_count(code) = 9";
        assert_eq!(query_int(&ctx, both).await, (0..100).map(|i| i * 10 + 9).sum::<i64>());
    }
}

/// LIMIT and OFFSET return the right rows for every kind of list and leaf, of arrays with slices,
/// hidden values and nulls.
#[tokio::test]
async fn limit_and_offset_return_the_rows_of_any_array() {
    let mut rng = torture::seed_random(11);
    let leaves =
        [DataType::Int64, DataType::UInt8, DataType::Float32, DataType::Boolean, DataType::Utf8];
    for round in 0..60 {
        let spec = torture::Spec::new(round % 4, leaves[round % leaves.len()].clone());
        let made = torture::draw_torture(&spec, &mut rng);
        let named = RecordBatch::try_from_iter([("x", Arc::clone(&made.array))]).unwrap();
        let table = RaggedTable::try_from_batch(&named).unwrap();
        let rows = made.rows.len();
        // The table may be a slice of a table.
        let skipped = rows / 3;
        for (table, rows) in [
            (table.clone(), &made.rows[..]),
            (table.slice(skipped, rows - skipped).unwrap(), &made.rows[skipped..]),
        ] {
            let ctx = create_parallel_session();
            register_table(&ctx, "t", table).unwrap();
            for (limit, offset) in [(1, 0), (2, 1), (1, 4), (9, 3), (50, 0), (3, 7)] {
                let sql = format!("SELECT x FROM t LIMIT {limit} OFFSET {offset}");
                let found: Vec<torture::Node> = (query_batches(&ctx, &sql).await.unwrap().iter())
                    .flat_map(|batch| {
                        batch.column(0).to_data().validate_full().unwrap();
                        torture::decode_rows(batch.column(0))
                    })
                    .collect();
                let expected: Vec<torture::Node> =
                    rows.iter().skip(offset).take(limit).cloned().collect();
                torture::assert_alike(&found, &expected);
            }
        }
    }
}

#[tokio::test]
async fn batches_share_values_and_account_for_their_own_rows() {
    let table = make_numbered_table(0, 20_000);
    let values = table.column("code").unwrap().values().to_data().buffers()[0].clone();
    let ctx = create_parallel_session();
    query_batches(&ctx, "SET serrate.leaf_batch_size = 500").await.unwrap();
    register_table(&ctx, "t", table).unwrap();
    let all = query_batches(&ctx, "SELECT id, code FROM t").await.unwrap();
    assert!(all.len() > 100, "{}", all.len());
    let within = values.as_ptr_range();
    for batch in &all {
        let leaves = batch.column(1).as_list::<i32>().values().as_list::<i32>().values().clone();
        assert!(leaves.len() <= 500);
        assert!(within.contains(&leaves.to_data().buffers()[0].as_ptr()), "copied");
        let own = batch.num_rows() * 16 + leaves.len() * 8 + 2048;
        assert!(batch.get_array_memory_size() <= own, "{}", batch.get_array_memory_size());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_stay_small_downstream_of_filters_and_joins() {
    let dir = tempfile::tempdir().unwrap();
    let wide = |rows: usize, leaves: usize| {
        RaggedTable::builder()
            .lengths(vec![leaves; rows])
            .unwrap()
            .column("id", 0, make_ints(0..rows as i64))
            .column("v", 1, make_ints(0..(rows * leaves) as i64))
            .build()
            .unwrap()
    };
    let nrt = dir.path().join("wide.nrt");
    write_table(&nrt, &wide(4000, 100));
    let ctx = create_parallel_session();
    register_table(&ctx, "t", wide(4000, 100)).unwrap();
    let parquet = dir.path().join("wide.parquet");
    let copy =
        format!("COPY (SELECT * FROM '{}') TO '{}'", display_path(&nrt), display_path(&parquet));
    query_batches(&ctx, &copy).await.unwrap();
    query_batches(&ctx, "SET serrate.leaf_batch_size = 5000").await.unwrap();
    for from in
        ["t".into(), format!("'{}'", display_path(&nrt)), format!("'{}'", display_path(&parquet))]
    {
        for sql in [
            format!("SELECT v FROM {from} WHERE id >= 0"),
            format!("SELECT a.v FROM {from} a JOIN {from} b ON a.id = b.id"),
            format!("SELECT id, v FROM {from} ORDER BY id DESC"),
        ] {
            let all = query_batches(&ctx, &sql).await.unwrap();
            let most = all.iter().map(RecordBatch::num_rows).max().unwrap();
            assert_eq!(all.iter().map(RecordBatch::num_rows).sum::<usize>(), 4000);
            // Batches of Parquet files are larger, because they are sized by encoded bytes.
            let limit = if from.contains("parquet") { 1000 } else { 50 };
            assert!(most <= limit, "{most} rows of 100 leaves: {sql}");
        }
        let flat = query_text(&ctx, &format!("EXPLAIN SELECT id FROM {from} WHERE id > 3")).await;
        assert!(!flat.contains("BatchSizeExec"), "{flat}");
    }
    // An aggregate that returns lists reads batches of the usual size if its input has no lists.
    let counts = "SELECT v % 10 AS k, count(*) AS n FROM ragged_explode('t') GROUP BY k";
    let query = format!("EXPLAIN ANALYZE SELECT array_agg(n) FROM ({counts})");
    let plan = serrate::sql::sql(&ctx, &query).await.unwrap().collect().await.unwrap();
    let plan = pretty_format_batches(&plan).unwrap().to_string();
    let numbers: Vec<f64> = plan
        .split("output_batches=")
        .skip(1)
        .map(|rest| {
            let end = rest.find([',', ']']).unwrap();
            match rest[..end].strip_suffix(" K") {
                Some(thousands) => 1000.0 * thousands.parse::<f64>().unwrap(),
                None => rest[..end].parse().unwrap(),
            }
        })
        .collect();
    assert!(plan.contains("BatchSizeExec: rows=8192"), "{plan}");
    assert!(numbers.iter().all(|n| *n <= 100.0), "{plan}");
}

#[tokio::test]
async fn tables_without_rows_columns_or_lists_work() {
    let ctx = create_parallel_session();
    register_table(&ctx, "none", make_numbered_table(0, 0)).unwrap();
    assert_eq!(query_int(&ctx, "SELECT count(id) FROM none").await, 0);
    let flat_only = RaggedTable::builder().column("i", 0, make_ints(0..5)).build().unwrap();
    register_table(&ctx, "flat", flat_only).unwrap();
    assert_eq!(query_int(&ctx, "SELECT sum(i) FROM flat").await, 10);
    let bare = RaggedTable::builder().rows(7).build().unwrap();
    let bare = RaggedTableProvider::try_new(bare).unwrap();
    ctx.register_table("bare", Arc::new(bare)).unwrap();
    assert_eq!(query_int(&ctx, "SELECT count(*) FROM bare").await, 7);
    assert_eq!(query_ints(&ctx, "SELECT 1 FROM bare").await, [1; 7]);
}

#[tokio::test]
async fn updates_that_set_a_column_twice_are_refused() {
    let ctx = create_parallel_session();
    query_batches(&ctx, "CREATE TABLE a AS SELECT 1 AS x, 2 AS y").await.unwrap();
    let e = rows_or_error(&ctx, "UPDATE a SET x = x + 1, X = 5").await;
    assert!(e.contains("'X' twice"), "{e}");
    assert_eq!(rows_or_error(&ctx, "UPDATE a SET x = 3, y = 4").await, "1");
    assert_eq!(rows_or_error(&ctx, "FROM a").await, "3 4");
}

#[tokio::test]
async fn views_do_not_replace_tables_nor_tables_views() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "CREATE TABLE t AS SELECT 1 AS a").await;
    rows_or_error(&ctx, "CREATE VIEW v AS SELECT a + 1 AS a FROM t").await;
    for (sql, said) in [
        ("CREATE OR REPLACE VIEW t AS SELECT 5 AS a", "would drop the table t"),
        ("CREATE OR REPLACE TABLE v AS SELECT 5 AS a", "would drop the view v"),
        ("CREATE OR REPLACE TABLE v (a INT)", "would drop the view v"),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(said), "{sql}: {e}");
    }
    assert_eq!(rows_or_error(&ctx, "SELECT t.a, v.a FROM t, v").await, "1 2");
    for sql in [
        "CREATE OR REPLACE TABLE t AS SELECT 3 AS a",
        "CREATE OR REPLACE VIEW v AS SELECT a + 2 AS a FROM t",
        "CREATE OR REPLACE VIEW w AS SELECT 7 AS a",
    ] {
        assert_eq!(rows_or_error(&ctx, sql).await, "", "{sql}");
    }
    assert_eq!(rows_or_error(&ctx, "SELECT t.a, v.a, w.a FROM t, v, w").await, "3 5 7");
}

#[tokio::test]
async fn updates_set_only_columns_of_their_table() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "CREATE TABLE t AS SELECT {'a': 1} AS s, 2 AS a, 3 AS \"B\"").await;
    for (update, said) in [
        ("UPDATE t SET s.a = 5", "UPDATE sets s.a, but s is not the name of the updated table"),
        ("UPDATE t SET u.a = 5", "u is not the name"),
        ("UPDATE t AS o SET t.a = 5", "t is not the name"),
        ("UPDATE t SET b = 5", "b"),
        ("UPDATE t SET A = 5, t.a = 6", "twice"),
    ] {
        let e = rows_or_error(&ctx, update).await;
        assert!(e.contains(said), "{update}: {e}");
    }
    assert_eq!(rows_or_error(&ctx, "FROM t").await, "{a: 1} 2 3");
    for update in [
        "UPDATE t SET A = a + 1",
        "UPDATE t SET T.a = t.a + 1",
        "UPDATE t AS o SET o.A = o.a + 1",
        "UPDATE t SET \"B\" = \"B\" + 1, s = {'a': 7}",
    ] {
        assert_eq!(rows_or_error(&ctx, update).await, "1", "{update}");
    }
    assert_eq!(rows_or_error(&ctx, "FROM t").await, "{a: 7} 5 4");
}

const QUERY_OF_UNIONS: &str = "SELECT count(*) AS c FROM ((SELECT id FROM t) UNION ALL
    (SELECT b.id FROM t b JOIN t c ON b.k = c.k)) q";

#[tokio::test]
async fn tables_are_created_from_any_query() {
    let table = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, 20)) v(id, k)";
    let created = [
        QUERY_OF_UNIONS,
        "SELECT count(*) AS c FROM (SELECT id FROM t UNION ALL SELECT id FROM t WHERE k > 10) q",
        "SELECT string_agg(k::VARCHAR, ',' ORDER BY id DESC) AS c FROM t
            WHERE (SELECT count(*) FROM t x WHERE x.k = t.k) IN (SELECT y.id FROM t y)",
        "SELECT DISTINCT ON (k) list_filter([id, k], lambda v: v > 1) AS c FROM t ORDER BY k, id",
    ];
    let made: Vec<String> =
        created.iter().enumerate().map(|(i, sql)| format!("CREATE TABLE c{i} AS {sql}")).collect();
    let replaced = "CREATE OR REPLACE TABLE c0 AS SELECT c + 1 AS c FROM c0".to_owned();
    let kept = "CREATE TABLE IF NOT EXISTS c0 AS SELECT 1 / 0 AS c".to_owned();
    let setup: Vec<&str> = std::iter::once(table)
        .chain(made.iter().map(String::as_str))
        .chain([replaced.as_str(), kept.as_str()])
        .collect();
    expect_rows(
        &setup,
        &[
            ("SELECT c FROM c0", "9"),
            ("SELECT c FROM c1", "5"),
            ("SELECT c FROM c2", "20,20,10"),
            ("SELECT c FROM c3", "[10]; [2, 20]"),
        ],
    )
    .await;
    let ctx = create_parallel_session();
    serrate::sql::sql(&ctx, table).await.unwrap().collect().await.unwrap();
    for (sql, part) in [
        ("CREATE TABLE t AS SELECT 1 / 0 AS x", "already exists"),
        ("CREATE TABLE u AS SELECT 1 AS x, 2 AS x", "x"),
        ("CREATE TABLE u AS SELECT 1 / 0 AS x", "zero"),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(part), "{sql}: {e}");
    }
    assert!(!ctx.table_exist("u").unwrap());
}

#[tokio::test]
async fn tables_created_from_a_query_keep_not_null() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "CREATE TABLE s AS SELECT 1 AS a UNION ALL SELECT NULL").await;
    let e = rows_or_error(&ctx, "CREATE TABLE t (a INT NOT NULL) AS SELECT a FROM s").await;
    assert!(e.contains("non-nullable"), "{e}");
    assert!(!ctx.table_exist("t").unwrap());
    let create = "CREATE TABLE t (a INT NOT NULL, b INT) AS SELECT a, 5 FROM s WHERE a = 1";
    assert_eq!(rows_or_error(&ctx, create).await, "");
    let e = rows_or_error(&ctx, "INSERT INTO t VALUES (NULL, 1)").await;
    assert!(e.contains("non-nullable"), "{e}");
    assert_eq!(rows_or_error(&ctx, "INSERT INTO t VALUES (2, NULL)").await, "1");
    assert_eq!(rows_or_error(&ctx, "SELECT * FROM t ORDER BY a").await, "1 5; 2 NULL");
}

#[tokio::test]
async fn created_tables_have_the_types_of_their_queries() {
    let ctx = create_parallel_session();
    let table = "CREATE TABLE t AS SELECT arrow_cast(7, 'Int32') AS k";
    query_batches(&ctx, table).await.unwrap();
    for condition in ["false", "true"] {
        let query = format!(
            "SELECT k FROM t WHERE {condition} UNION ALL SELECT 5000000000 FROM t WHERE {condition}"
        );
        query_batches(&ctx, &format!("CREATE OR REPLACE TABLE c AS {query}")).await.unwrap();
        query_batches(&ctx, "INSERT INTO c VALUES (6000000000)").await.unwrap();
        assert_eq!(query_int(&ctx, "SELECT max(k) FROM c").await, 6_000_000_000, "{condition}");
    }
    for query in [
        "SELECT max(CASE WHEN k > n THEN k ELSE n END) OVER () FROM (SELECT k, 5 AS n FROM t)",
        "SELECT CASE WHEN k > 1 THEN arrow_cast([k], 'List(Int32, field: ''element'')') ELSE [5] END FROM t",
        "SELECT arrow_cast('a', 'Utf8View') UNION ALL SELECT 'b' FROM t",
    ] {
        query_batches(&ctx, &format!("CREATE OR REPLACE TABLE c AS {query}")).await.unwrap();
        let rows = query_int(&ctx, &format!("SELECT count(*) FROM ({query})")).await;
        assert_eq!(query_int(&ctx, "SELECT count(*) FROM c").await, rows, "{query}");
    }
}

/// DataFusion optimizes the plan of CREATE TABLE twice. When this test fails,
/// `sql::statement::commands::created_tables::compute_rows` can be removed.
#[tokio::test]
async fn stock_created_tables_are_still_optimized_twice() {
    use futures::FutureExt;
    let ctx = create_parallel_session();
    let table = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, 20)) v(id, k)";
    serrate::sql::sql(&ctx, table).await.unwrap().collect().await.unwrap();
    let sql = format!("CREATE TABLE c AS {QUERY_OF_UNIONS}");
    let statement = serrate::sql::parse(&ctx, &sql).unwrap().remove(0);
    let plan = serrate::sql::plan(&ctx, statement).await.unwrap();
    let run = async { ctx.execute_logical_plan(plan).await.map(|_| ()) };
    assert!(!matches!(std::panic::AssertUnwindSafe(run).catch_unwind().await, Ok(Ok(()))));
}
