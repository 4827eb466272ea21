//! Queries that worker processes run: they give the same results as in one process, and clear
//! errors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "cluster/command.rs"]
mod command;
#[path = "cluster/faults.rs"]
mod faults;
#[path = "cluster/network.rs"]
mod network;
#[path = "cluster/processes.rs"]
mod processes;
#[path = "cluster/records.rs"]
mod records;
#[path = "common/templates.rs"]
mod templates;
#[path = "cluster/tls.rs"]
mod tls;
#[path = "common/worker_process.rs"]
mod worker_process;

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::logical_expr::{Volatility, create_udf};
use datafusion::prelude::SessionConfig;
use processes::{Pair, data_path, run_query, start_pair, start_workers};
use serrate::datafusion;

/// Statements over a table `T` of several files. Most of them combine rows of several files in a
/// row of the result.
const QUERIES: &[&str] = &[
    "SELECT count(*), sum(subject_id), min(v), max(v) FROM T",
    "SELECT g, count(*), sum(v), avg(v) FROM T GROUP BY g ORDER BY g",
    "SELECT g, count(DISTINCT subject_id % 17) FROM T GROUP BY g ORDER BY g",
    "SELECT codes, count(*) AS c FROM T GROUP BY codes ORDER BY c DESC, codes",
    "SELECT DISTINCT g, subject_id % 3 FROM T",
    "SELECT subject_id, codes FROM T WHERE g = 3 AND v > 10 ORDER BY subject_id",
    "SELECT * FROM T ORDER BY subject_id",
    "SELECT * FROM T ORDER BY v DESC LIMIT 7",
    "SELECT * FROM T ORDER BY g, subject_id DESC LIMIT 7 OFFSET 5",
    "SELECT subject_id FROM T WHERE subject_id < 0",
    "SELECT _row, subject_id FROM T WHERE subject_id % 50 = 1",
    // Reductions, elementwise functions, filters, indexing, windows, sets, densify.
    "SELECT subject_id, ragged_sum(x), ragged_mean(x), ragged_max(codes), ragged_count(deep) FROM T",
    "SELECT g, sum(ragged_sum(x)), max(ragged_lengths(codes)) FROM T GROUP BY g ORDER BY g",
    "SELECT g, ragged_sum_agg(codes) FROM T GROUP BY g ORDER BY g",
    "SELECT subject_id, x * 2 + 1, x > 3, ragged_is_null(x) FROM T WHERE ragged_any(x > 100)",
    "SELECT subject_id, ragged_filter(codes, codes > 2), ragged_head(codes, 2) FROM T",
    "SELECT subject_id, ragged_sort(codes), ragged_cumsum(codes), ragged_diff(codes) FROM T",
    "SELECT subject_id, ragged_unique(codes), ragged_isin(codes, [1, 2]) FROM T",
    "SELECT subject_id, ragged_flatten(deep), ragged_lengths(deep, -1) FROM T",
    "SELECT subject_id, densify(codes, 4) FROM T WHERE g = 1",
    "SELECT subject_id, list_transform(codes, c -> c + g) FROM T WHERE g < 2",
    "SELECT sum(ragged_sum(ragged_map(codes, lambda c: c * 3))) FROM T",
    "SELECT subject_id, c FROM (SELECT subject_id, unnest(codes) AS c FROM T) WHERE c = 2",
    "SELECT c, count(*) FROM (SELECT unnest(codes) AS c FROM T) GROUP BY c ORDER BY c",
    // Joins.
    "SELECT count(*), sum(a.v) FROM T a JOIN T b ON a.subject_id = b.subject_id + 1",
    "SELECT a.g, count(*) FROM T a LEFT JOIN T b ON a.subject_id = b.subject_id * 3 GROUP BY a.g ORDER BY a.g",
    "SELECT count(*), count(a.g), count(b.g) FROM T a FULL JOIN T b ON a.subject_id = b.subject_id + 200",
    "SELECT count(*) FROM T a WHERE a.subject_id IN (SELECT subject_id * 2 FROM T)",
    "SELECT count(*) FROM T a WHERE a.subject_id NOT IN (SELECT subject_id * 2 FROM T)",
    "SELECT count(*) FROM T a WHERE EXISTS (SELECT 1 FROM T b WHERE b.subject_id = a.subject_id + 7)",
    "SELECT count(*), sum(w) FROM T JOIN (VALUES (1, 10), (2, 20), (2, 5)) AS k(g, w) USING (g)",
    "SELECT count(*) FROM (SELECT * FROM T WHERE g = 1) a, (SELECT * FROM T WHERE g = 2) b WHERE a.subject_id < b.subject_id",
    // Set operations, windows, subqueries.
    "SELECT g FROM T UNION SELECT subject_id % 9 FROM T",
    "SELECT count(*), sum(s) FROM (SELECT subject_id AS s FROM T UNION ALL SELECT g FROM T)",
    "SELECT subject_id FROM T EXCEPT SELECT subject_id FROM T WHERE g > 0",
    "SELECT subject_id, row_number() OVER (PARTITION BY g ORDER BY subject_id) FROM T ORDER BY subject_id",
    "SELECT subject_id, sum(v) OVER (ORDER BY subject_id) FROM T ORDER BY subject_id",
    "SELECT subject_id, lag(v) OVER w, first_value(v) OVER w, last_value(v) OVER (PARTITION BY g ORDER BY subject_id DESC) FROM T WINDOW w AS (PARTITION BY g ORDER BY subject_id) ORDER BY subject_id",
    "SELECT subject_id, sum(v) FILTER (WHERE subject_id % 2 = 0) OVER (PARTITION BY g ORDER BY subject_id) FROM T ORDER BY subject_id",
    "SELECT subject_id, max(v) FILTER (WHERE subject_id % 2 = 0) OVER (PARTITION BY g ORDER BY subject_id ROWS 2 PRECEDING) FROM T ORDER BY subject_id",
    "SELECT subject_id, lag(nullif(subject_id % 3, 0)) IGNORE NULLS OVER (PARTITION BY g ORDER BY subject_id) FROM T ORDER BY subject_id",
    "SELECT count(*) FROM T WHERE v > (SELECT avg(v) FROM T)",
    "WITH m AS (SELECT g, max(subject_id) AS s FROM T GROUP BY g) SELECT T.subject_id, T.codes FROM T JOIN m ON T.subject_id = m.s ORDER BY 1",
    // Results that are right only if rows are counted or cut in one partition.
    "SELECT g, count(*) FROM (SELECT g FROM T LIMIT 90) GROUP BY g ORDER BY g",
    "SELECT count(*), sum(subject_id) FROM (SELECT subject_id FROM T LIMIT 90 OFFSET 105)",
    "SELECT sum(subject_id) FROM (SELECT subject_id FROM T LIMIT 90 OFFSET 105)",
    "SELECT r, count(*) AS n FROM (SELECT subject_id, row_number() OVER () AS r FROM T) GROUP BY r ORDER BY n DESC, r LIMIT 3",
    "SELECT count(*) FROM (SELECT DISTINCT g FROM T)",
    "SELECT a.g, count(*) FROM (SELECT g, max(subject_id) AS m FROM T GROUP BY g) a JOIN T ON T.subject_id = a.m GROUP BY a.g ORDER BY a.g",
    "SELECT count(*) FROM (SELECT subject_id FROM T ORDER BY v DESC LIMIT 9) a JOIN T b USING (subject_id)",
    "SELECT * FROM T LIMIT 13 OFFSET 190",
    // A plan in which several partitions are joined with rows that are sorted or limited in one
    // partition.
    "SELECT b.subject_id, b.g FROM (SELECT subject_id FROM T ORDER BY v DESC LIMIT 9) a JOIN T b ON b.subject_id = a.subject_id + 1",
    "SELECT a.subject_id, b.g FROM T a JOIN (SELECT subject_id, g FROM T LIMIT 90 OFFSET 105) b ON a.subject_id = b.subject_id + 3",
    // Types and shapes that plans sent to workers do not preserve.
    "SELECT subject_id, arrow_cast(codes, 'LargeList(Int64)') AS l FROM T",
    "SELECT arrow_cast(codes, 'LargeList(Int64)') AS l, count(*) FROM T GROUP BY 1",
    "SELECT sum(ragged_sum(arrow_cast(codes, 'LargeList(Int64)'))) FROM T",
    "SELECT subject_id, arrow_cast(g::VARCHAR, 'Dictionary(Int32, Utf8)') AS d FROM T",
    "SELECT subject_id, {'a': g, 'b': codes} AS s FROM T",
    // Conditions that can fail, and statements that fail.
    "SELECT count(*) FROM T WHERE g <> 0 AND 10 / g > 3",
    "SELECT sum(10 / g) FROM T",
    "SELECT ragged_at(codes, 100) FROM T",
];

#[tokio::test(flavor = "multi_thread")]
async fn workers_give_the_results_of_one_process() {
    let (_workers, _folder, mut pair) = start_pair(3, 1000).await;
    for table in ["n", "p"] {
        for sql in QUERIES {
            pair.check_query(&with_table(sql, table)).await;
        }
    }
    let all = pair.divided + pair.whole.len();
    eprintln!("{} of {all} statements over files ran in several tasks; the others", pair.divided);
    for whole in &pair.whole {
        eprintln!("  {whole}");
    }
    pair.check_failures();
    assert!(pair.divided * 10 >= all * 6, "only {} of {all} statements were divided", pair.divided);
}

/// The only worker runs two tasks of each scan, and the session runs the last node of the plan.
#[tokio::test(flavor = "multi_thread")]
async fn one_worker_runs_statements() {
    let (mut workers, _folder, mut pair) = start_pair(1, 1000).await;
    for sql in QUERIES {
        pair.check_query(&with_table(sql, "p")).await;
    }
    let all = pair.divided + pair.whole.len();
    eprintln!("{} of {all} statements over files ran on the worker", pair.divided);
    pair.check_failures();
    assert!(pair.divided * 10 >= all * 6, "only {} of {all} statements were divided", pair.divided);
    // The metrics of both tasks are in the output.
    let analyzed = "EXPLAIN ANALYZE SELECT g, count(*) FROM p GROUP BY g";
    let shown = tokio::time::timeout(Duration::from_secs(60), run_query(&pair.there, analyzed));
    let shown = pretty_format_batches(&shown.await.unwrap().unwrap()).unwrap().to_string();
    assert!(shown.contains("t1: ") && shown.contains("output_rows"), "{shown}");
    // A session with one target partition gets two, so that it uses the worker.
    let small = serrate::sql::session_with(SessionConfig::new().with_target_partitions(1));
    pair.cluster.attach(&small);
    assert_eq!(small.copied_config().target_partitions(), 2);
    drop(workers.pop());
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let before = pair.whole.len();
    pair.check_query("SELECT g, count(*) FROM p GROUP BY g ORDER BY g").await;
    assert!(pair.whole[before..].concat().contains("cannot be reached"), "{:?}", pair.whole);
    pair.check_failures();
}

/// Returns the statement with the name `table` in place of the word `T`.
fn with_table(sql: &str, table: &str) -> String {
    let words = sql.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_');
    let replace = |word: &str| match word.strip_prefix('T') {
        Some(rest) if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
            format!("{table}{rest}")
        }
        _ => word.to_owned(),
    };
    words.map(replace).collect()
}

/// In a table of one file, each partition is a range of it, and no range is read twice.
#[tokio::test(flavor = "multi_thread")]
async fn ranges_of_one_file_are_read_once() {
    let (_workers, folder, mut pair) = start_pair(2, 1000).await;
    for format in ["nrt", "parquet"] {
        let path = folder.path().join(format).join(format!("0 a%b.{format}"));
        let one = format!("'{}'", path.display());
        for partitions in ["4", "1"] {
            pair.set_both("datafusion.execution.target_partitions", partitions).await;
            for sql in [
                "SELECT count(*), sum(subject_id) FROM T",
                "SELECT g, count(*) FROM (SELECT g FROM T LIMIT 90) GROUP BY g ORDER BY g",
                "SELECT sum(n) FROM (SELECT g, count(*) n FROM (SELECT g FROM T LIMIT 90 OFFSET 17) GROUP BY g)",
                "SELECT r, count(*) n FROM (SELECT row_number() OVER () AS r FROM T) GROUP BY r ORDER BY n DESC, r LIMIT 2",
                "SELECT count(*) FROM (SELECT DISTINCT g FROM T)",
                "SELECT g, count(*) FROM T GROUP BY g ORDER BY g",
                "SELECT subject_id, rank() OVER (PARTITION BY g ORDER BY v) FROM T ORDER BY 1",
                "SELECT count(*) FROM (SELECT subject_id FROM T ORDER BY v LIMIT 5) a JOIN T b USING (subject_id)",
                "SELECT a.g, count(*) FROM (SELECT g, max(subject_id) m FROM T GROUP BY 1) a JOIN T b ON b.subject_id = a.m GROUP BY 1 ORDER BY 1",
            ] {
                pair.check_query(&with_table(sql, &one)).await;
            }
        }
    }
    pair.check_failures();
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_of_meds_folders_are_read_by_several_workers() {
    let workers = start_workers(2);
    let mut pair = Pair::new(&workers).await;
    for folder in ["synthea-meds", "synthea-meds-torch-data"] {
        let table = format!("meds('{}')", data_path(folder));
        for sql in [
            "SELECT count(*), sum(subject_id), sum(ragged_count(code)) FROM T",
            "SELECT subject_id, ragged_count(numeric_value), ragged_max(time_delta_days) FROM T ORDER BY subject_id",
            "SELECT c, count(*) AS n FROM (SELECT unnest(unnest(code)) AS c FROM T) GROUP BY c ORDER BY n DESC, c LIMIT 20",
        ] {
            pair.check_divided(&with_table(sql, &table)).await;
        }
    }
    // Workers read different shards, so that only one process can find a subject in two of them. By
    // default, a query of such a folder is not divided.
    let folder = tempfile::tempdir().unwrap();
    for (shard, subjects) in [("a", "(1), (2)"), ("b", "(2), (3)"), ("c", "(4), (5)")] {
        let path = folder.path().join("data").join(format!("{shard}.parquet"));
        let rows = format!(
            "SELECT column1 AS subject_id, to_timestamp_micros(7) AS time, 'A' AS code, \
             arrow_cast(1.5, 'Float32') AS numeric_value FROM (VALUES {subjects})"
        );
        std::fs::create_dir_all(folder.path().join("data")).unwrap();
        run_query(&pair.here, &format!("COPY ({rows}) TO '{}'", path.display())).await.unwrap();
    }
    let sql = format!("SELECT count(*) FROM meds('{}')", folder.path().display());
    assert!(!pair.is_divided(&sql).await);
    assert!(pair.cluster.take_notes().concat().contains("meds_shared_subjects"));
    pair.check_query(&sql).await;
    pair.set_both("serrate.meds_shared_subjects", "true").await;
    pair.check_divided(&sql).await;
    pair.check_failures();
}

/// Written files have the rows in the order of the source files, even if each connection to a
/// worker buffers few bytes.
#[tokio::test(flavor = "multi_thread")]
async fn files_are_written_in_source_order() {
    let (_workers, folder, mut pair) = start_pair(3, 5000).await;
    run_query(&pair.there, "SET distributed.worker_connection_buffer_budget_bytes = 1000")
        .await
        .unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (table, format) in
        [("n", "nrt"), ("p", "nrt"), ("n", "safetensors"), ("n", "parquet"), ("p", "csv")]
    {
        let columns = match format {
            "safetensors" => "densify(codes, 6) AS codes",
            "csv" => "subject_id, v",
            _ => "subject_id, g, v, codes, deep",
        };
        let mut bytes = Vec::new();
        for (context, name) in [(&pair.here, "here"), (&pair.there, "there")] {
            let target = path(&format!("{table}-{name}.{format}"));
            let order =
                if ["csv", "parquet"].contains(&format) { " ORDER BY subject_id" } else { "" };
            let copy = format!("COPY (SELECT {columns} FROM {table}{order}) TO '{target}'");
            run_query(context, &copy).await.unwrap_or_else(|e| panic!("{copy}: {e}"));
            bytes.push(std::fs::read(&target).unwrap());
        }
        assert!(bytes[0] == bytes[1], "{table} to {format}");
    }
    // UNION ALL returns the rows of its first input before those of the second.
    let mut bytes = Vec::new();
    for (context, name) in [(&pair.here, "here"), (&pair.there, "there")] {
        let target = path(&format!("union-{name}.nrt"));
        let union = "SELECT subject_id, codes FROM n UNION ALL SELECT subject_id, codes FROM p";
        run_query(context, &format!("COPY ({union}) TO '{target}'")).await.unwrap();
        bytes.push(std::fs::read(&target).unwrap());
    }
    assert!(bytes[0] == bytes[1], "UNION ALL changes the order of the rows");
    // The rows of the files are sorted by `subject_id`, so that a query without ORDER BY returns
    // them in this order.
    let rows = "SELECT subject_id, deep FROM p WHERE g <> 1";
    assert!(pair.is_divided(rows).await, "{:?}", pair.cluster.take_notes());
    let sorted = run_query(&pair.here, &format!("{rows} ORDER BY subject_id")).await.unwrap();
    let found = run_query(&pair.there, rows).await.unwrap();
    let text = |rows: &[_]| pretty_format_batches(rows).unwrap().to_string();
    assert!(text(&sorted) == text(&found), "{}", text(&found));
    let copy = format!("COPY (SELECT * FROM n) TO '{}'", path("again.nrt"));
    assert!(pair.is_divided(&copy).await, "{:?}", pair.cluster.take_notes());
    // For ORDER BY, each task sorts its own range of the key, and the session reads the tasks in
    // order.
    pair.check_divided("SELECT subject_id, deep FROM n ORDER BY subject_id").await;
    pair.cluster.take_notes();
    pair.run_both("CREATE TABLE rows AS SELECT * FROM n WHERE g < 3").await;
    pair.run_both("CREATE TABLE made AS SELECT g, count(*) AS c FROM p GROUP BY g").await;
    // A note would say that the session runs the query of a table.
    let notes = pair.cluster.take_notes();
    assert!(notes.is_empty(), "{notes:?}");
    // Only the session checks the order of the inputs of a UNION ALL, with a node that workers
    // replace by a simpler one.
    let union = "SELECT subject_id, g FROM n UNION ALL SELECT subject_id + 1, g FROM p";
    pair.check_query(&format!("SELECT * FROM ({union}) ORDER BY subject_id, g")).await;
    assert!(!pair.whole.concat().contains("loses its name"), "{:?}", pair.whole);
    pair.run_both("CREATE TABLE both AS SELECT g, v FROM n UNION ALL SELECT g, v FROM p").await;
    let notes = pair.cluster.take_notes().concat();
    assert!(notes.contains("in the order of several scans"), "{notes}");
    pair.check_query("SELECT * FROM both LIMIT 50 OFFSET 4980").await;
    pair.check_query("SELECT * FROM rows LIMIT 50 OFFSET 700").await;
    // A table that a divided query has created can be joined with files.
    pair.check_query("SELECT * FROM made ORDER BY g").await;
    pair.check_divided(
        "SELECT p.g, count(*), max(c) FROM p JOIN made USING (g) GROUP BY 1 ORDER BY 1",
    )
    .await;
}

/// Scalar subqueries run before the statement, each of them on workers. Their values replace them
/// in the statement, which then runs on workers, too.
#[tokio::test(flavor = "multi_thread")]
async fn scalar_subqueries_run_first() {
    let (_workers, folder, mut pair) = start_pair(2, 1000).await;
    for table in ["n", "p"] {
        for sql in [
            "SELECT count(*) FROM T WHERE v > (SELECT avg(v) FROM T)",
            "SELECT count(*) FROM T WHERE subject_id = (SELECT 3.5)",
            "SELECT subject_id, v - (SELECT min(v) FROM T WHERE g = 3) FROM T WHERE g = 2",
            "SELECT subject_id, (SELECT max(g) FROM T) AS m FROM T ORDER BY v DESC",
            "SELECT g, sum(v) / (SELECT sum(v) FROM T) AS s FROM T GROUP BY g ORDER BY g",
            "SELECT g + (SELECT min(g) + 1 FROM T) AS k, count(*) FROM T GROUP BY k ORDER BY k",
            "SELECT sum(v + (SELECT max(v) FROM T)) FROM T",
            "SELECT count(*) FROM T WHERE g = (SELECT max(g) FROM T WHERE v < (SELECT avg(v) FROM T))",
            "SELECT subject_id FROM T WHERE ragged_any(codes > (SELECT avg(g) FROM T))",
            "SELECT count(*) FROM T WHERE g IN (1, (SELECT max(g) FROM T))",
            "SELECT count(*) FROM T a JOIN T b ON a.subject_id = b.subject_id + (SELECT min(g) + 1 FROM T)",
            // A subquery without rows is NULL; one with several rows is an error, and so is a value
            // that does not fit its type.
            "SELECT g, count((SELECT v FROM T WHERE subject_id < 0)) AS c FROM T GROUP BY g ORDER BY g",
            "SELECT count(*) FROM T WHERE v > (SELECT v FROM T)",
            "SELECT sum(10 / (SELECT min(g) FROM T)) FROM T",
            "SELECT subject_id, CASE WHEN g = 7 THEN 10 / (SELECT min(g) FROM T) END AS d FROM T",
            "SELECT count(*) FROM T WHERE CAST(CASE WHEN subject_id = 77 THEN 3000000000 ELSE g END AS INT) = (SELECT max(g) FROM T)",
        ] {
            let sql = with_table(sql, table);
            pair.check_divided(&sql).await;
            let notes = pair.cluster.take_notes();
            assert!(notes.is_empty(), "{sql}: {notes:?}");
        }
    }
    // A table has the order of its source, whether its query is divided or, like that of `both`,
    // not.
    let query = "SELECT subject_id, g FROM n WHERE v > (SELECT avg(v) FROM p)";
    pair.run_both(&format!("CREATE TABLE rows AS {query}")).await;
    let union = format!("SELECT subject_id, g FROM n UNION ALL {query}");
    pair.run_both(&format!("CREATE TABLE both AS {union}")).await;
    pair.check_query("SELECT * FROM rows LIMIT 20 OFFSET 300").await;
    pair.check_query("SELECT * FROM both LIMIT 20 OFFSET 990").await;
    pair.cluster.take_notes();
    // A COPY is planned only once, so that its subqueries do not run first.
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut bytes = Vec::new();
    for (context, name) in [(&pair.here, "here.nrt"), (&pair.there, "there.nrt")] {
        let query = "SELECT subject_id, codes FROM n WHERE v > (SELECT avg(v) FROM p)";
        run_query(context, &format!("COPY ({query}) TO '{}'", path(name))).await.unwrap();
        bytes.push(std::fs::read(path(name)).unwrap());
    }
    assert!(bytes[0] == bytes[1]);
    assert!(pair.cluster.take_notes().concat().contains("if it does not write"));
    pair.check_failures();
}

/// A sparse tensor is read in one partition of the session, not once per worker.
#[tokio::test(flavor = "multi_thread")]
async fn sparse_tables_are_read_once() {
    let (_workers, folder, mut pair) = start_pair(2, 1000).await;
    let path = folder.path().join("m.safetensors").display().to_string();
    // All 100,000 entries have distinct keys.
    let copy = format!(
        "COPY (SELECT value % 100 AS i, value % 1009 AS j, value + 1 AS w \
         FROM generate_series(0, 99999) AS t(value)) \
         TO '{path}' STORED AS DOK OPTIONS (shape '100, 1009')"
    );
    run_query(&pair.here, &copy).await.unwrap();
    pair.run_both(&format!("CREATE EXTERNAL TABLE m STORED AS DOK LOCATION '{path}'")).await;
    for sql in [
        "SELECT count(*), count(DISTINCT w), sum(w) FROM m",
        "SELECT i, count(*), sum(w) FROM m GROUP BY i ORDER BY i",
        "SELECT count(*), sum(w) FROM p JOIN m ON p.subject_id % 100 = m.i AND p.g = m.j",
        "SELECT count(*) FROM p WHERE subject_id IN (SELECT j FROM m WHERE i = 3)",
        "SELECT sum(dok_get('m', g, subject_id % 1009)) FROM p",
    ] {
        pair.check_query(sql).await;
    }
    pair.check_failures();
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_say_why_a_statement_runs_in_the_session() {
    let (_workers, _folder, mut pair) = start_pair(2, 100).await;
    pair.run_both("CREATE TABLE rows AS SELECT g, v FROM n").await;
    let first = create_udf(
        "first_of",
        vec![DataType::Int64],
        DataType::Int64,
        Volatility::Immutable,
        Arc::new(|values| Ok(values[0].clone())),
    );
    pair.here.register_udf(first.clone());
    pair.there.register_udf(first);
    for (sql, reason) in [
        (
            "SELECT arrow_cast(codes, 'LargeList(Int64)') AS l, count(*) FROM n GROUP BY 1",
            "contains a LargeList, which cannot be sent to workers",
        ),
        (
            "SELECT count(*) FROM rows WHERE v > (SELECT avg(v) FROM n)",
            "if its main query can be divided",
        ),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT count(*) FROM n JOIN r ON n.g = r.i",
            "WITH RECURSIVE runs in the session",
        ),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS i UNION SELECT i % 3 + 1 FROM r) SELECT count(*) FROM n JOIN r ON n.g = r.i",
            "WITH RECURSIVE runs in the session",
        ),
        (
            "SELECT subject_id, sum(v) FILTER (WHERE v > 9) OVER (PARTITION BY g ORDER BY subject_id) FROM n ORDER BY 1",
            "has FILTER or IGNORE NULLS",
        ),
        (
            "SELECT sum(first_of(g)) FROM n",
            "the function first_of exists only in this query, not on workers",
        ),
    ] {
        let start = Instant::now();
        pair.check_query(sql).await;
        assert!(start.elapsed() < Duration::from_secs(5), "{sql}");
        assert!(pair.whole.last().is_some_and(|said| said.contains(reason)), "{:?}", pair.whole);
    }
    pair.check_failures();
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_use_the_settings_of_the_session() {
    let (_workers, _folder, mut pair) = start_pair(2, 500).await;
    let sql = "SELECT count(*), sum(ragged_count(x)), max(ragged_max(x)) FROM n";
    pair.check_divided(sql).await;
    for show in ["SHOW cluster.bytes_per_task", "SHOW ALL"] {
        let listed = run_query(&pair.there, show).await.unwrap();
        let listed = pretty_format_batches(&listed).unwrap().to_string();
        let line = listed.lines().find(|line| line.contains("| cluster.bytes_per_task "));
        assert!(line.is_some_and(|line| line.contains(" | 1 ")), "{show}: {listed}");
    }
    let before = run_query(&pair.there, sql).await.unwrap();
    pair.set_both("serrate.nrt_nan", "nan").await;
    pair.check_divided(sql).await;
    assert_ne!(before, run_query(&pair.there, sql).await.unwrap());
    pair.set_both("serrate.codes", "data/größe 100%/codes.parquet").await;
    pair.check_divided(sql).await;
    // Rules replace the function behind `year` and `extract`.
    pair.check_divided(
        "SELECT extract(month FROM DATE '2020-01-01' + CAST(g * 40 AS INT)) AS m, count(*) FROM n GROUP BY m ORDER BY m",
    )
    .await;
    pair.set_both("datafusion.execution.time_zone", "Europe/Berlin").await;
    pair.check_divided(
        "SELECT subject_id, CAST(to_timestamp(subject_id * 100000) AS TIMESTAMPTZ)::VARCHAR FROM n",
    )
    .await;
    // Texts without a zone are times in the zone of the session.
    pair.check_divided("SELECT subject_id, to_timestamp('2024-0' || (1 + g) || '-01') AS t FROM n")
        .await;
    pair.set_both("serrate.max_dense_bytes", "100").await;
    pair.check_query("SELECT sum(ragged_sum(densify(codes, 100))) FROM n").await;
    // A statement whose plan may change during execution runs in the session.
    for changed in [true, false] {
        let set = format!("SET distributed.dynamic_task_count = {changed}");
        run_query(&pair.there, &set).await.unwrap();
        assert_eq!(pair.is_divided("SELECT count(*), sum(v) FROM n").await, !changed);
        let notes = pair.cluster.take_notes().concat();
        assert_eq!(notes.contains("dynamic_task_count to be false"), changed, "{notes}");
    }
    pair.set_both("serrate.codes", &"x".repeat(9000)).await;
    pair.check_query(sql).await;
    assert!(pair.whole.concat().contains("at most 8192"), "{:?}", pair.whole);
    pair.check_failures();
}
