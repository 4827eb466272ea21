//! Plans of queries over lists: what scans read, and which reductions are computed below joins.

use datafusion::arrow::array::StringArray;
use serrate::sql::register_table;

use super::*;

async fn explain_query(ctx: &SessionContext, query: &str) -> String {
    let explain = format!("EXPLAIN {query}");
    let frame = serrate::sql::sql(ctx, &explain).await.unwrap_or_else(|e| panic!("{query}\n{e}"));
    let batches = frame.collect().await.unwrap();
    let rows = pretty_format_batches(&batches).unwrap().to_string();
    let physical = rows.split_once("physical_plan").unwrap().1;
    physical.lines().map(|l| l.trim_matches(['|', ' '])).collect::<Vec<_>>().join("\n")
}

/// Returns the lines of a plan that are scans of files.
fn list_scans(plan: &str) -> Vec<&str> {
    plan.lines().filter(|l| l.contains("DataSourceExec")).collect()
}

fn display_folder(dir: &Path) -> String {
    let path = dir.join("t.nrt");
    write_table(&path, &make_numbered_table(0, 1000));
    display_path(&path)
}

#[tokio::test]
async fn counts_of_lists_read_bounds_only() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let t = display_folder(dir.path());
    let other = "(SELECT unnest([3, 5]) AS k)";
    for (query, expected) in [
        (format!("SELECT sum(ragged_count(code)) FROM '{t}'"), 4500),
        (format!("SELECT count(*) FROM '{t}' WHERE ragged_count(code) > 7"), 200),
        (format!("SELECT count(*) FROM '{t}' GROUP BY ragged_count(code) LIMIT 1"), 100),
        (format!("SELECT max(ragged_count(code)) FROM '{t}' WHERE id < 5"), 4),
        (format!("SELECT sum(ragged_sum(ragged_lengths(code, 2))) FROM '{t}'"), 4500),
        (format!("SELECT sum(ragged_count(t.code)) FROM '{t}' t JOIN {other} o ON t.id = o.k"), 8),
        (format!("SELECT id FROM '{t}' ORDER BY ragged_count(code) DESC, id LIMIT 1"), 9),
        (format!("SELECT count(*) FROM '{t}' HAVING sum(ragged_count(code)) = 4500"), 1000),
        (
            format!(
                "SELECT sum(n) FROM (SELECT ragged_count(code) AS n FROM '{t}' WHERE ragged_count(code) < 2)"
            ),
            100,
        ),
    ] {
        let plan = explain_query(&ctx, &query).await;
        let of_t: Vec<&str> =
            list_scans(&plan).into_iter().filter(|s| s.contains("t.nrt")).collect();
        assert_eq!(of_t.len(), 1, "{query}\n{plan}");
        let projection = of_t[0].split("projection=[").nth(1).unwrap();
        assert!(projection.contains("ragged_"), "{query}\n{plan}");
        let columns = projection.split(']').next().unwrap().replace("(code@1)", "");
        let columns = columns.replace("(code@1, 2)", "");
        assert!(!columns.contains("code"), "values are read: {query}\n{plan}");
        assert_eq!(query_int(&ctx, &query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn columns_limits_and_conditions_are_pushed_into_the_scan() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let t = display_folder(dir.path());
    let plan = explain_query(&ctx, &format!("SELECT id FROM '{t}' WHERE id > 990")).await;
    assert!(list_scans(&plan)[0].contains("projection=[id]"), "{plan}");
    assert!(list_scans(&plan)[0].contains("rows=[id"), "{plan}");
    assert!(!plan.contains("FilterExec"), "{plan}");
    let plan = explain_query(&ctx, &format!("SELECT code FROM '{t}' LIMIT 3 OFFSET 2")).await;
    assert!(list_scans(&plan)[0].contains("limit=5"), "{plan}");
    let plan =
        explain_query(&ctx, &format!("SELECT id FROM '{t}' WHERE _row BETWEEN 10 AND 12")).await;
    assert!(list_scans(&plan)[0].contains("rows=[_row"), "{plan}");
    // A condition on lists is evaluated above the scan, one on flat columns still in the scan.
    let both = format!("SELECT id FROM '{t}' WHERE ragged_any(code == 12) AND id < 50");
    let plan = explain_query(&ctx, &both).await;
    assert!(
        plan.contains("FilterExec: ragged_any") && list_scans(&plan)[0].contains("rows=[id"),
        "{plan}"
    );
    let both = format!("SELECT id FROM '{t}' WHERE ragged_count(code) = 3 AND id < 50");
    let plan = explain_query(&ctx, &both).await;
    assert!(list_scans(&plan)[0].contains("rows=[id"), "{plan}");
    let ids = format!("{both} ORDER BY id");
    assert_eq!(query_ints(&ctx, &ids).await, [3, 13, 23, 33, 43]);
}

#[tokio::test]
async fn conditions_on_elements_are_pushed_into_parquet_scans() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let file = display_path(&dir.path().join("t.parquet"));
    let make = format!(
        "COPY (SELECT i AS id, CASE WHEN i % 50 = 0 THEN NULL ELSE [i % 7, NULL, i % 11] END AS code, \
         [concat('c', i % 5)] AS name, [[i]] AS deep, [i * 0.5] AS f FROM (SELECT unnest(range(0, 1000)) AS i)) TO '{file}'"
    );
    serrate::sql::sql(&ctx, &make).await.unwrap().collect().await.unwrap();
    let plain = create_parallel_session();
    serrate::sql::sql(&plain, "SET datafusion.execution.parquet.pushdown_filters = false")
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    for (condition, known) in [
        ("ragged_any(code == 10)", Some("array_has(code")),
        ("ragged_any(10 == code)", Some("array_has(code")),
        ("ragged_any(code IN (9, 10))", Some("array_has_any(code")),
        ("ragged_any(name == 'c3')", Some("array_has(name")),
        ("ragged_any(name IN ('c3', 'c4')) AND id < 100", Some("array_has_any(name")),
        ("ragged_any(code == 10) OR id = 3", None),
        ("NOT ragged_any(code == 10)", None),
        ("ragged_any(code > 10)", None),
        ("ragged_any(deep == 10)", None),
        ("ragged_any(f == 10.0)", None),
        ("ragged_all(code == 10)", None),
    ] {
        let query = format!("SELECT id FROM '{file}' WHERE {condition} ORDER BY id");
        let plan = explain_query(&ctx, &query).await;
        let scan = list_scans(&plan)[0];
        match known {
            Some(known) => {
                assert!(scan.contains("predicate=") && scan.contains(known), "{condition}\n{plan}");
                assert!(!plan.contains("FilterExec"), "{condition}\n{plan}");
            }
            None => assert!(!plan.contains("array_has"), "{condition}\n{plan}"),
        }
        let elsewhere = explain_query(&plain, &query).await;
        assert!(!elsewhere.contains("array_has"), "{condition}\n{elsewhere}");
        let run = |ctx: SessionContext| {
            let query = query.clone();
            async move {
                let frame = serrate::sql::sql(&ctx, &query).await.unwrap();
                pretty_format_batches(&frame.collect().await.unwrap()).unwrap().to_string()
            }
        };
        assert_eq!(run(ctx.clone()).await, run(plain.clone()).await, "{condition}");
    }
}

#[tokio::test]
async fn reductions_of_lists_are_computed_below_joins() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let t = display_folder(dir.path());
    query_batches(&ctx, "CREATE TABLE labels AS SELECT i AS k, i % 2 AS y FROM (SELECT unnest(range(0, 2000)) AS i)")
        .await
        .unwrap();
    for (select, join, made) in [
        ("sum(ragged_mean(t.code))", "JOIN labels l ON t.id = l.k", "ragged_mean"),
        (
            "sum(ragged_mean(t.code)), l.y",
            "JOIN labels l ON t.id = l.k GROUP BY l.y",
            "ragged_mean",
        ),
        ("l.k, ragged_tail(t.code, 2, 2)", "JOIN labels l ON t.id = l.k", "ragged_tail"),
        ("l.k, ragged_slice(t.code, 1, 3)", "JOIN labels l ON t.id = l.k", "ragged_slice"),
        ("l.k, ragged_slice(t.code, -3, -1, 2)", "JOIN labels l ON t.id = l.k", "ragged_slice"),
        ("l.k, t.code[2:3]", "JOIN labels l ON t.id = l.k", "array_slice"),
        ("l.k, t.code[-3:-1]", "JOIN labels l ON t.id = l.k", "array_slice"),
        ("l.k, ragged_sum(t.code[1:5:2])", "JOIN labels l ON t.id = l.k", "array_slice"),
        ("l.k, t.code[1]", "JOIN labels l ON t.id = l.k", "array_element"),
        (
            "l.k, ragged_mean(ragged_tail(t.code, 2, 2)) + l.y",
            "JOIN labels l ON t.id = l.k",
            "ragged_mean",
        ),
        (
            "l.k, ragged_max(ragged_filter(t.code, t.code > 3))",
            "JOIN labels l ON t.id = l.k",
            "ragged_compress",
        ),
        ("l.k, ragged_any(t.code == 12)", "LEFT JOIN labels l ON t.id = l.k", "ragged_any"),
        ("l.k, ragged_max(t.code)", "CROSS JOIN (SELECT * FROM labels LIMIT 2) l", "ragged_max"),
    ] {
        let query = format!("SELECT {select} FROM '{t}' t {join}");
        let plan = explain_query(&ctx, &query).await;
        let at = |what: &str| plan.lines().position(|l| l.contains(what));
        let join = at("JoinExec").unwrap();
        // Columns above still have the names in the statement.
        let call = format!("{made}(");
        let lines = plan.lines().enumerate().filter(|(_, l)| l.contains(&call));
        let made = lines.map(|(i, _)| i).max().unwrap();
        assert!(made > join, "{query}\n{plan}");
    }
    for (select, join) in [
        // Not moved: below an outer join, which adds NULL rows; with arguments of both tables; if
        // the list itself is selected.
        ("l.k, ragged_max(t.code)", "RIGHT JOIN labels l ON t.id = l.k"),
        ("l.k, ragged_tail(t.code, l.y)", "JOIN labels l ON t.id = l.k"),
        ("l.k, ragged_max(t.code[l.y:3])", "JOIN labels l ON t.id = l.k"),
        ("t.code, ragged_max(t.code)", "JOIN labels l ON t.id = l.k"),
        // These can fail, so they stay above the join: a mask of another length, and a sum that may
        // overflow.
        ("l.k, ragged_max(ragged_filter(t.code, t.code[2:] > 3))", "JOIN labels l ON t.id = l.k"),
        ("l.k, ragged_sum(t.code)", "JOIN labels l ON t.id = l.k"),
    ] {
        let query = format!("SELECT {select} FROM '{t}' t {join}");
        let plan = explain_query(&ctx, &query).await;
        let at = |what: &str| plan.lines().position(|l| l.contains(what)).unwrap();
        let made = ["ragged_tail(", "ragged_sum(", "ragged_max("];
        let made = made.into_iter().find(|made| select.contains(made)).unwrap();
        assert!(at(made) < at("JoinExec"), "{query}\n{plan}");
    }
    // The reduction returns the same above the join and without a join.
    let joined = format!("SELECT sum(ragged_sum(t.code)) FROM '{t}' t JOIN labels l ON t.id = l.k");
    let alone = format!("SELECT sum(ragged_sum(code)) FROM '{t}'");
    assert_eq!(query_int(&ctx, &joined).await, query_int(&ctx, &alone).await);
    let names = format!("SELECT t.id, ragged_sum(t.code) FROM '{t}' t JOIN labels l ON t.id = l.k");
    let frame = ctx.sql(&names).await.unwrap();
    let planned = frame.schema().field_names();
    let got = frame.collect().await.unwrap();
    assert_eq!(got[0].schema().field(1).name(), "ragged_sum(t.code)", "{planned:?}");
}

#[tokio::test]
async fn queries_of_lengths_scan_tables_in_memory_without_values() {
    let ctx = create_parallel_session();
    register_table(&ctx, "t", make_numbered_table(0, 1000)).unwrap();
    for (query, expected, of_lengths) in [
        ("SELECT sum(ragged_count(code)) FROM t", 4500, true),
        ("SELECT sum(cardinality(code)) FROM t", 4500, true),
        ("SELECT sum(array_length(code)) FROM t", 1000, true),
        ("SELECT sum(ragged_count(ragged_tail(code, 2, -1))) FROM t", 1700, true),
        ("SELECT sum(ragged_count(code[1:3])) FROM t", 4500, true),
        ("SELECT count(*) FROM t WHERE ragged_count(code) > 7", 200, true),
        ("SELECT count(*) FROM t WHERE ragged_count(code) > 7 AND id < 500", 100, true),
        ("SELECT sum(n) FROM (SELECT ragged_count(code) AS n FROM t)", 4500, true),
        // Values are read if the argument depends on a column, or if values are used elsewhere.
        ("SELECT sum(ragged_count(ragged_tail(code, id % 2))) FROM t", 2500, false),
        (
            "SELECT count(*) FROM t WHERE ragged_count(code) > 7 AND ragged_sum(code) >= 0",
            200,
            false,
        ),
    ] {
        let plan = explain_query(&ctx, query).await;
        assert_eq!(plan.contains("lengths only"), of_lengths, "{query}\n{plan}");
        assert!(!plan.contains("BatchSizeExec"), "{query}\n{plan}");
        assert_eq!(query_int(&ctx, query).await, expected, "{query}\n{plan}");
    }
    // `ragged_count` does not count NULL, so it needs the validity of values.
    let nulls = Int64Array::from((0..1000).map(|i| (i % 3 > 0).then_some(i)).collect::<Vec<_>>());
    let table = RaggedTable::builder()
        .lengths(std::iter::repeat_n(10, 100))
        .unwrap()
        .column("v", 1, Arc::new(nulls))
        .column("w", 1, make_ints(0..1000))
        .build()
        .unwrap();
    register_table(&ctx, "n", table).unwrap();
    assert_eq!(query_int(&ctx, "SELECT sum(ragged_count(v)) FROM n").await, 666);
    assert_eq!(query_int(&ctx, "SELECT sum(cardinality(v)) FROM n").await, 1000);
    // A slice selects the validity of values, although no value is read.
    for last in
        ["ragged_tail(v, 3)", "v[8:10]", "array_slice(v, 8, 10)", "ragged_slice(v, -3, NULL)"]
    {
        let query = format!("SELECT sum(ragged_count({last})) FROM n");
        assert!(explain_query(&ctx, &query).await.contains("lengths only"), "{query}");
        assert_eq!(query_int(&ctx, &query).await, 200, "{query}");
        let query = format!("SELECT sum(array_length({last})) FROM n");
        assert_eq!(query_int(&ctx, &query).await, 300, "{query}");
    }
    // The table contains strings, empty lists, or no rows.
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("c"), Some("d")]));
    for (name, lengths, expected, counted) in
        [("some", vec![3, 0, 1], 3, 2), ("same", vec![2, 2], 2, 1), ("empty", vec![0, 0], 0, 0)]
    {
        let values = texts.slice(0, lengths.iter().sum());
        let table = RaggedTable::builder().lengths(lengths).unwrap().column("x", 1, values);
        register_table(&ctx, name, table.build().unwrap()).unwrap();
        let tail = if name == "same" { 1 } else { 2 };
        let total = |what: &str| {
            format!("SELECT coalesce(sum({what}(ragged_tail(x, {tail}))), 0) FROM {name}")
        };
        assert_eq!(query_int(&ctx, &total("array_length")).await, expected, "{name}");
        assert_eq!(query_int(&ctx, &total("ragged_count")).await, counted, "{name}");
        let none = format!("SELECT count(ragged_count(ragged_tail(x, 2))) FROM {name} WHERE false");
        assert_eq!(query_int(&ctx, &none).await, 0);
    }
    let both = "SELECT sum(ragged_count(v) + ragged_sum(w)) FROM n";
    assert_eq!(query_int(&ctx, both).await, 666 + 499_500);
    assert!(!explain_query(&ctx, both).await.contains("lengths only"));
}

#[tokio::test]
async fn reductions_of_filtered_lists_build_no_lists() {
    let ctx = create_parallel_session();
    register_table(&ctx, "t", make_numbered_table(0, 1000)).unwrap();
    let v = "ragged_filter(code, code % 2 == 0) AS v";
    for (query, flat) in [
        ("SELECT sum(ragged_sum(ragged_filter(code, code > 3))) FROM t".to_owned(), true),
        ("SELECT id FROM t WHERE ragged_max(ragged_filter(code, code > 3)) > 5".into(), true),
        ("SELECT id FROM t ORDER BY ragged_first(ragged_filter(code, code > 3))".into(), true),
        (
            format!("SELECT sum(ragged_sum(v)) / sum(ragged_count(v)) FROM (SELECT {v} FROM t)"),
            true,
        ),
        (format!("SELECT ragged_mean(v) FROM (SELECT {v}, id FROM t) WHERE id > 5"), true),
        (format!("SELECT ragged_mean(a.v) + a.id FROM (SELECT {v}, id FROM t) a"), true),
        (format!("SELECT sum(ragged_sum(v)), count(v) FROM (SELECT {v} FROM t)"), false),
        (format!("SELECT ragged_sum(v, -1) FROM (SELECT {v} FROM t)"), false),
        (format!("SELECT v FROM (SELECT {v} FROM t) WHERE ragged_sum(v) > 3"), true),
        ("SELECT ragged_lengths(ragged_filter(code, code > 3)) FROM t".into(), false),
    ] {
        let plan = explain_query(&ctx, &query).await;
        assert_eq!(plan.contains("ragged_compress("), flat, "{query}\n{plan}");
    }
}

#[tokio::test]
async fn few_rows_of_many_leaves_are_read_by_all_partitions() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let nrt = display_folder(dir.path());
    let parquet = display_path(&dir.path().join("t.parquet"));
    query_batches(&ctx, &format!("COPY (SELECT * FROM '{nrt}') TO '{parquet}'")).await.unwrap();
    for from in [nrt, parquet] {
        let query = format!("SELECT sum(ragged_sum(code)) FROM '{from}'");
        let set = |setting: &'static str| {
            let ctx = &ctx;
            async move { query_batches(ctx, &format!("SET {setting}")).await.unwrap() }
        };
        let expected = query_int(&ctx, &query).await;
        assert!(explain_query(&ctx, &query).await.contains("{1 group:"), "{from}");
        set("datafusion.optimizer.repartition_file_min_size = 1000").await;
        // Rows that fit into one batch are read by one partition.
        assert!(explain_query(&ctx, &query).await.contains("{1 group:"), "{from}");
        set("serrate.leaf_batch_size = 1000").await;
        let plan = explain_query(&ctx, &query).await;
        assert!(plan.contains("{4 groups:"), "{plan}");
        assert_eq!(query_int(&ctx, &query).await, expected, "{plan}");
        // LIMIT and OFFSET return the rows in source order.
        let first = format!("SELECT id FROM '{from}' LIMIT 3 OFFSET 400");
        assert_eq!(query_ints(&ctx, &first).await, [400, 401, 402]);
        set("datafusion.optimizer.repartition_file_scans = false").await;
        assert!(explain_query(&ctx, &query).await.contains("{1 group:"), "{from}");
        set("datafusion.optimizer.repartition_file_scans = true").await;
        set("datafusion.optimizer.repartition_file_min_size = 10485760").await;
        set("serrate.leaf_batch_size = 524288").await;
    }
}

/// An expression that can fail is not evaluated for rows that the query does not select.
#[tokio::test]
async fn rewrites_evaluate_nothing_that_can_fail_for_further_rows() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let tables = [
        "CREATE TABLE a AS SELECT * FROM (VALUES (1, [1, 2], [1, 1]), (2, [9223372036854775807, 2], [])) t(id, x, y)",
        "CREATE TABLE b AS SELECT * FROM (VALUES (1, 10), (3, 20)) t(id, y)",
    ];
    for sql in tables {
        query_batches(&ctx, sql).await.unwrap();
    }
    for call in [
        "ragged_sum(a.x)",
        "ragged_prod(a.x)",
        "ragged_any(ragged_eq(a.x, a.y))",
        "ragged_mean(ragged_filter(a.x, a.y > 0))",
        "ragged_sum(a.x * 3)",
        "ragged_get(a.y, '1')",
        "CASE WHEN b.y < 15 THEN ragged_sum(a.x) ELSE -1 END",
    ] {
        for join in ["JOIN", "RIGHT JOIN"] {
            let sql = format!("SELECT a.id, {call} AS v FROM a {join} b ON a.id = b.id");
            let rows: usize =
                query_batches(&ctx, &sql).await.unwrap().iter().map(RecordBatch::num_rows).sum();
            assert_eq!(rows, if join == "JOIN" { 1 } else { 2 }, "{sql}");
        }
        let outer = format!(
            "SELECT a.id, {} AS v FROM a LEFT JOIN b ON a.id = b.id",
            call.replace("-1", "-2")
        );
        let outer = query_batches(&ctx, &outer).await;
        assert_eq!(outer.is_err(), !call.starts_with("CASE"), "{call}");
    }
    let file = display_path(&dir.path().join("sq.parquet"));
    let rows = "(VALUES (1, [1], [[1], [2]]), (2, [2], [[1, 2], [3]])) t(id, x, xx)";
    query_batches(&ctx, &format!("COPY (SELECT * FROM {rows}) TO '{file}'")).await.unwrap();
    let nrt = display_path(&dir.path().join("sq.nrt"));
    query_batches(&ctx, &format!("COPY (SELECT id, xx FROM {rows} ORDER BY id) TO '{nrt}'"))
        .await
        .unwrap();
    for file in [&file, &nrt] {
        let squeezed =
            format!("SELECT sum(ragged_count(ragged_squeeze(xx, 2))) FROM '{file}' WHERE id = 1");
        assert_eq!(query_int(&ctx, &squeezed).await, 2);
        let guarded = format!(
            "SELECT max(CASE WHEN id = 1 THEN ragged_count(ragged_squeeze(xx, 2)) ELSE 0 END) FROM '{file}'"
        );
        assert_eq!(query_int(&ctx, &guarded).await, 2);
        assert!(
            error(&ctx, &format!("SELECT ragged_squeeze(xx, 2) FROM '{file}'"))
                .await
                .contains("ragged_squeeze")
        );
        let stepped = format!(
            "SELECT max(CASE WHEN id > 5 THEN array_length(xx[1:2:0]) ELSE 0 END) FROM '{file}'"
        );
        assert_eq!(query_int(&ctx, &stepped).await, 0);
    }
}

/// DataFusion still refuses GROUP BY of a column and its cast. Once this test fails,
/// `eliminate_group_by_constant` need not be removed from the session.
#[tokio::test]
async fn stock_grouping_by_a_cast_still_fails() {
    let sql = "SELECT id, CAST(id AS VARCHAR) AS c, count(*) AS n FROM (VALUES (1), (2), (2)) t(id)
        GROUP BY id, CAST(id AS VARCHAR)";
    let stock = stock_error(&SessionContext::new(), sql).await;
    assert!(stock.contains("eliminate_group_by_constant"), "{stock}");
    let ours = format!("SELECT sum(n * id) FROM ({sql})");
    assert_eq!(query_int(&create_parallel_session(), &ours).await, 5);
}

#[tokio::test]
async fn literals_have_the_metadata_of_their_aliases() {
    let ctx = serrate::sql::session();
    let unit = std::collections::HashMap::from([("unit".to_owned(), "mg".to_owned())]);
    let metadata = Some(unit.clone().into());
    let dose = datafusion::prelude::lit(5).alias_with_metadata("dose", metadata);
    let frame = serrate::sql::sql(&ctx, "SELECT 1 AS a").await.unwrap();
    let rows = frame.select(vec![dose]).unwrap().collect().await.unwrap();
    assert_eq!(rows[0].schema().field(0).metadata(), &unit);
}
