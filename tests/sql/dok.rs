//! Files of sparse tensors and dictionaries (`STORED AS DOK`): scans, look-ups, and changes.

use std::collections::BTreeMap;

use datafusion::arrow::array::Float64Array;
use datafusion::arrow::datatypes::Float64Type;
use serrate::dok::Fallback;

use super::*;

/// Returns the number of changed or written rows that a statement returns.
async fn query_count(ctx: &SessionContext, sql: &str) -> u64 {
    let rows = run_query(ctx, sql).await;
    rows[0].column(0).as_primitive::<datafusion::arrow::datatypes::UInt64Type>().value(0)
}

/// A folder with the file of a tensor `m` of shape 10 x 20, and a session in which `m` is a table.
struct Folder {
    dir: tempfile::TempDir,
    ctx: SessionContext,
}

impl Folder {
    async fn new(options: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ctx = create_parallel_session();
        let sql = format!(
            "CREATE EXTERNAL TABLE m (i BIGINT, j BIGINT, v DOUBLE) STORED AS DOK LOCATION '{}' OPTIONS (shape '10, 20'{options})",
            dir.path().join("m.safetensors").display()
        );
        query_batches(&ctx, &sql).await.unwrap();
        Self { dir, ctx }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path("m.safetensors")).unwrap()
    }

    /// Returns the entries of the table, which must equal those of the file.
    async fn entries(&self) -> BTreeMap<(i64, i64), f64> {
        let rows = query_batches(&self.ctx, "SELECT i, j, v FROM m").await.unwrap();
        let mut out = BTreeMap::new();
        for batch in rows {
            for row in 0..batch.num_rows() {
                let at = |c: usize| batch.column(c).as_primitive::<Int64Type>().value(row);
                let value = batch.column(2).as_primitive::<Float64Type>().value(row);
                assert!(out.insert((at(0), at(1)), value).is_none());
            }
        }
        let file = serrate::io::dok::read(self.path("m.safetensors")).unwrap();
        assert_eq!(file.nnz().unwrap(), out.len());
        for ((i, j), v) in &out {
            assert_eq!(file.at(&[*i, *j]).unwrap().to_f64().unwrap(), *v);
        }
        out
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inserts_updates_and_deletes_change_the_file() {
    let f = Folder::new("").await;
    assert!(f.entries().await.is_empty());
    assert_eq!(
        query_count(&f.ctx, "INSERT INTO m VALUES (1, 2, 0.5), (3, 4, 1.5), (9, 19, 2.5)").await,
        3
    );
    assert_eq!(f.entries().await, [((1, 2), 0.5), ((3, 4), 1.5), ((9, 19), 2.5)].into());
    // A sparse tensor does not store zero: (0, 4, 3) assigns zero to an entry, which removes it.
    query_count(
        &f.ctx,
        "INSERT INTO m (v, j, i) VALUES (7, 2, 1), (0, 4, 3), (8, 0, 0), (9, 0, 0)",
    )
    .await;
    assert_eq!(f.entries().await, [((0, 0), 9.0), ((1, 2), 7.0), ((9, 19), 2.5)].into());
    assert_eq!(query_count(&f.ctx, "UPDATE m SET v = v * 10 + i WHERE j = 2 OR j = 3").await, 1);
    assert_eq!(f.entries().await, [((0, 0), 9.0), ((1, 2), 71.0), ((9, 19), 2.5)].into());
    // Entries move to other keys; a statement without a condition changes all of them.
    assert_eq!(query_count(&f.ctx, "UPDATE m AS x SET i = 9 - x.i, v = x.v - 9").await, 3);
    assert_eq!(f.entries().await, [((8, 2), 62.0), ((0, 19), -6.5)].into());
    assert_eq!(query_count(&f.ctx, "DELETE FROM m WHERE v < 0 AND i = 0").await, 1);
    assert_eq!(f.entries().await, [((8, 2), 62.0)].into());
    assert_eq!(query_count(&f.ctx, "INSERT INTO m SELECT i - 1, j, v FROM m").await, 1);
    assert_eq!(f.entries().await, [((7, 2), 62.0), ((8, 2), 62.0)].into());
    assert_eq!(query_count(&f.ctx, "INSERT OVERWRITE m VALUES (5, 5, 5)").await, 1);
    assert_eq!(f.entries().await, [((5, 5), 5.0)].into());
    assert_eq!(query_count(&f.ctx, "TRUNCATE TABLE m").await, 1);
    assert!(f.entries().await.is_empty());
    query_count(
        &f.ctx,
        "INSERT INTO m SELECT x % 10, x % 20, x FROM generate_series(1, 1000) AS t(x)",
    )
    .await;
    assert_eq!(f.entries().await.len(), 20);
    assert_eq!(f.entries().await[&(7, 17)], 997.0);
    assert_eq!(query_count(&f.ctx, "DELETE FROM m").await, 20);
    assert!(f.entries().await.is_empty());
    // The changes keep the shape of the tensor.
    let file = serrate::io::dok::read(f.path("m.safetensors")).unwrap();
    assert_eq!(file.shape(), [10, 20]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_fails_changes_nothing() {
    let f = Folder::new("").await;
    query_count(&f.ctx, "INSERT INTO m VALUES (1, 2, 0.5), (3, 4, 1.5)").await;
    let before = f.bytes();
    for (sql, said) in [
        ("INSERT INTO m VALUES (0, 0, 1), (10, 0, 1)", "row 1 (counted from 0): \"i\" is 10"),
        (
            "INSERT INTO m VALUES (0, 0, 1), (0, 1, 1), (0, -1, 1)",
            "row 2 (counted from 0): \"j\" is -1",
        ),
        ("INSERT INTO m VALUES (0, 0, NULL)", "row 0 (counted from 0): \"v\" is NULL"),
        ("INSERT INTO m VALUES (NULL, 0, 1)", "\"i\" is NULL"),
        ("INSERT INTO m (i, v) VALUES (1, 1)", "\"j\" is NULL"),
        ("INSERT INTO m VALUES (1, 2)", "expected 3"),
        ("INSERT INTO m SELECT 1, 2, 1 / (x - 2) FROM generate_series(1, 3) AS t(x)", "zero"),
        ("INSERT OVERWRITE m VALUES (11, 2, 1)", "\"i\" is 11"),
        ("UPDATE m SET i = 100", "\"i\" is 100"),
        ("UPDATE m SET i = 1, j = 2", "is already present"),
        ("UPDATE m SET v = NULL WHERE i = 1", "\"v\" is NULL"),
        ("UPDATE m SET v = 1 / (i - 3)", "zero"),
        ("UPDATE m SET w = 1", "w"),
        ("DELETE FROM m WHERE 1 / (i - 3) = 0", "zero"),
        ("DELETE FROM m WHERE w = 1", "w"),
    ] {
        let e = error(&f.ctx, sql).await;
        assert!(e.to_lowercase().contains(&said.to_lowercase()), "{sql}: {e}");
        assert_eq!(f.bytes(), before, "{sql}");
    }
    assert_eq!(std::fs::read_dir(f.dir.path()).unwrap().count(), 1, "something is left behind");
    assert_eq!(f.entries().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_that_are_never_true_change_nothing() {
    let f = Folder::new("").await;
    query_count(&f.ctx, "INSERT INTO m VALUES (1, 2, 0.5), (3, 4, 1.5)").await;
    query_batches(&f.ctx, "CREATE TABLE t AS SELECT i, j, v FROM m").await.unwrap();
    let before = f.bytes();
    for table in ["m", "t"] {
        for condition in [
            "false",
            "1 = 0",
            "NULL",
            "i = NULL",
            "i > 5 AND i < 3",
            "i = 1 AND 1 = 2",
            "v * v + 1 > 1000 AND v * v + 1 < 2000",
            "i IN (7, NULL)",
            "now() < TIMESTAMP '2000-01-01'",
        ] {
            let sql = format!("DELETE FROM {table} WHERE {condition}");
            assert_eq!(query_count(&f.ctx, &sql).await, 0, "{sql}");
            let sql = format!("UPDATE {table} SET v = 9 WHERE {condition}");
            assert_eq!(query_count(&f.ctx, &sql).await, 0, "{sql}");
            assert_eq!(
                query_int(&f.ctx, &format!("SELECT count(*) FROM {table} WHERE v < 9")).await,
                2
            );
        }
        let common = "v * v + 1 > 1 AND v * v + 1 < 2";
        assert_eq!(
            query_count(&f.ctx, &format!("UPDATE {table} SET v = v * v + v * v WHERE {common}"))
                .await,
            1
        );
        assert_eq!(
            query_int(&f.ctx, &format!("SELECT count(*) FROM {table} WHERE v = 0.5")).await,
            1
        );
        assert_eq!(query_count(&f.ctx, &format!("DELETE FROM {table} WHERE {common}")).await, 1);
        assert_eq!(query_int(&f.ctx, &format!("SELECT count(*) FROM {table}")).await, 1);
    }
    assert_ne!(f.bytes(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_select_their_rows_by_subqueries() {
    for (change, left) in [
        ("DELETE FROM m WHERE i IN (SELECT u.i FROM u WHERE u.i < v + 1)", "3 4 1.5"),
        ("DELETE FROM m WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.i = m.i)", "1 2 0.5"),
        ("DELETE FROM m WHERE i = (SELECT max(i) FROM m)", "1 2 0.5"),
        (
            "UPDATE m SET v = (SELECT max(j) FROM m) WHERE i IN (SELECT i FROM u)",
            "1 2 4.0; 3 4 1.5",
        ),
        ("UPDATE m AS x SET v = (SELECT sum(m.v) FROM m WHERE m.i <= x.i)", "1 2 0.5; 3 4 2.0"),
    ] {
        let f = Folder::new("").await;
        query_count(&f.ctx, "INSERT INTO m VALUES (1, 2, 0.5), (3, 4, 1.5)").await;
        query_batches(&f.ctx, "CREATE TABLE u AS SELECT 1 AS i").await.unwrap();
        assert_eq!(
            rows_or_error(&f.ctx, change).await,
            "1".replace('1', if change.contains("AS x") { "2" } else { "1" }),
            "{change}"
        );
        assert_eq!(
            rows_or_error(&f.ctx, "SELECT i, j, v FROM m ORDER BY i").await,
            left,
            "{change}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_by_join_or_limit_are_refused() {
    let f = Folder::new("").await;
    query_count(&f.ctx, "INSERT INTO m VALUES (1, 2, 0.5), (3, 4, 1.5)").await;
    query_batches(&f.ctx, "CREATE TABLE u AS SELECT 1 AS i").await.unwrap();
    let before = f.bytes();
    for (change, clause) in [
        ("DELETE FROM m WHERE i > 1 LIMIT 1", "LIMIT"),
        ("DELETE FROM m LIMIT 1", "LIMIT"),
        ("DELETE FROM m USING u WHERE i = u.i", "USING"),
        ("UPDATE m SET v = u.i FROM u WHERE u.i = 1", "FROM"),
        ("UPDATE m SET v = 9 LIMIT 1", "LIMIT"),
    ] {
        let e = error(&f.ctx, change).await;
        assert!(e.contains(clause), "{change}: {e}");
        assert_eq!(f.bytes(), before, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_keys_are_handled_as_the_option_says() {
    let strict = Folder::new(", duplicates 'error'").await;
    query_count(&strict.ctx, "INSERT INTO m VALUES (1, 2, 0.5)").await;
    let before = strict.bytes();
    let e = error(&strict.ctx, "INSERT INTO m VALUES (0, 0, 1), (1, 2, 1)").await;
    assert!(e.contains("row 1 (counted from 0): an entry with i 1, j 2 is already present"), "{e}");
    let e = error(&strict.ctx, "INSERT INTO m VALUES (0, 0, 1), (0, 0, 2)").await;
    assert!(e.contains("row 1 (counted from 0): an entry with i 0, j 0 is already present"), "{e}");
    assert_eq!(strict.bytes(), before);

    let sums = Folder::new(", duplicates 'sum'").await;
    query_count(&sums.ctx, "INSERT INTO m VALUES (1, 2, 0.5), (1, 2, 1), (3, 3, 7)").await;
    query_count(&sums.ctx, "INSERT INTO m VALUES (1, 2, 10), (3, 3, -7)").await;
    assert_eq!(sums.entries().await, [((1, 2), 11.5)].into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_reads_the_entries_at_planning_time() {
    let f = Folder::new("").await;
    query_count(&f.ctx, "INSERT INTO m VALUES (1, 2, 0.5), (3, 4, 1.5)").await;
    let planned = [
        "SELECT count(*) FROM m",
        "SELECT count(*) FROM m WHERE i = 1 AND j = 2",
        "SELECT count(*) FROM m WHERE dok_get('m', i, j) = v",
        "SELECT sum(CASE WHEN dok_contains('m', x, 2) THEN 2 ELSE 0 END) FROM generate_series(0, 9) AS t(x)",
    ];
    let mut plans = Vec::new();
    for sql in planned {
        plans.push(f.ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap());
    }
    query_count(
        &f.ctx,
        "INSERT OVERWRITE m SELECT x AS i, x AS j, x AS v FROM generate_series(0, 9) AS t(x)",
    )
    .await;
    query_count(&f.ctx, "UPDATE m SET v = 7").await;
    let mut seen = Vec::new();
    for plan in plans {
        let rows = datafusion::physical_plan::collect(plan, f.ctx.task_ctx()).await.unwrap();
        let rows: Vec<i64> = rows
            .iter()
            .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect();
        seen.push(rows[0]);
    }
    assert_eq!(seen, [2, 1, 2, 2]);
    // The inserted zero did not become an entry.
    assert_eq!(f.entries().await.len(), 9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_changes_are_serialized() {
    let f = Folder::new(", duplicates 'sum'").await;
    query_count(&f.ctx, "INSERT INTO m VALUES (0, 0, 1)").await;
    // Another session has a table of the same file.
    let other = create_parallel_session();
    let sql = format!(
        "CREATE EXTERNAL TABLE n STORED AS DOK LOCATION '{}' OPTIONS (duplicates 'sum')",
        f.path("m.safetensors").display()
    );
    query_batches(&other, &sql).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..12 {
        let (ctx, table) = if n % 2 == 0 { (f.ctx.clone(), "m") } else { (other.clone(), "n") };
        tasks.spawn(async move {
            match n % 3 {
                0 => query_count(&ctx, &format!("INSERT INTO {table} VALUES (0, 0, 1)")).await,
                1 => query_count(&ctx, &format!("UPDATE {table} SET v = v + 1 WHERE i = 0")).await,
                _ => query_count(&ctx, &format!("INSERT INTO {table} VALUES (1, {n}, 1)")).await,
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        assert_eq!(done.unwrap(), 1);
    }
    let entries = f.entries().await;
    assert_eq!((entries[&(0, 0)], entries.len()), (9.0, 5));
    assert_eq!(query_int(&other, "SELECT count(*) FROM n").await, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_on_few_keys_look_them_up_and_others_scan() {
    let f = Folder::new("").await;
    let all = "INSERT INTO m SELECT x / 20, x % 20, x + 1 FROM generate_series(0, 199) AS t(x) WHERE x % 3 <> 1";
    query_count(&f.ctx, all).await;
    let entries = f.entries().await;
    type Condition = fn(i64, i64, f64) -> bool;
    let cases: [(&str, Condition, &str); 19] = [
        ("i = 3 AND j = 5", |i, j, _| (i, j) == (3, 5), "look-up of 1 key"),
        (
            "5 = j AND i IN (3, 4, 5, 6, 70)",
            |i, j, _| j == 5 && (3..7).contains(&i),
            "look-up of 5 key",
        ),
        (
            "i IN (1, 2) AND j IN (0, 3)",
            |i, j, _| (1..3).contains(&i) && (j == 0 || j == 3),
            "look-up of 4 key",
        ),
        ("i = 1 AND j = 0 AND v > 1000", |_, _, _| false, "look-up of 1 key"),
        (
            "i = 1 AND j IN (0, 2) AND v < 22",
            |i, j, v| i == 1 && (j == 0 || j == 2) && v < 22.0,
            "look-up of 2 key",
        ),
        (
            "(i = 1 AND j = 2) OR (i = 4 AND j = 4)",
            |i, j, _| (i, j) == (1, 2) || (i, j) == (4, 4),
            "look-up of 2 key",
        ),
        ("(i = 1 AND j = 2) OR (j = 2 AND i = 1)", |i, j, _| (i, j) == (1, 2), "look-up of 1 key"),
        ("i = 1 AND i = 2 AND j = 1", |_, _, _| false, ""),
        ("i = -1 AND j = 5", |_, _, _| false, "look-up of 1 key"),
        ("i = 9223372036854775807 AND j = 5", |_, _, _| false, "look-up of 1 key"),
        ("i = 3", |i, _, _| i == 3, "scan"),
        ("i >= 3 AND i < 5", |i, _, _| (3..5).contains(&i), "scan"),
        ("i = 3 AND j > 5", |i, j, _| i == 3 && j > 5, "scan"),
        (
            "i BETWEEN 2 AND 4 AND j NOT IN (1, 2)",
            |i, j, _| (2..5).contains(&i) && j != 1 && j != 2,
            "scan",
        ),
        ("i = 3 AND j = 5 OR v = 7", |i, j, v| (i, j) == (3, 5) || v == 7.0, "scan"),
        ("NOT (i = 3 AND j = 5)", |i, j, _| (i, j) != (3, 5), "scan"),
        ("v = 7", |_, _, v| v == 7.0, "scan"),
        ("i = j", |i, j, _| i == j, "scan"),
        ("i + 1 = 4 AND j = 5", |i, j, _| i == 3 && j == 5, ""),
    ];
    for (condition, holds, shown) in cases {
        let sql = format!("SELECT i * 100 + j FROM m WHERE {condition}");
        let mut seen = query_ints(&f.ctx, &sql).await;
        seen.sort_unstable();
        let expected: Vec<i64> = entries
            .iter()
            .filter(|((i, j), v)| holds(*i, *j, **v))
            .map(|((i, j), _)| i * 100 + j)
            .collect();
        assert_eq!(seen, expected, "{condition}");
        let n = query_int(&f.ctx, &format!("SELECT count(*) FROM m WHERE {condition}")).await;
        assert_eq!(n, expected.len() as i64, "{condition}");
        let plan = query_text(&f.ctx, &format!("EXPLAIN {sql}")).await;
        assert!(plan.contains(shown), "{condition}: {plan}");
        if shown == "scan" {
            assert!(!plan.contains("look-up"), "{condition}: {plan}");
        }
    }
    assert_eq!(query_ints(&f.ctx, "SELECT j FROM m WHERE i > 4 LIMIT 3").await.len(), 3);
    let plan = query_text(&f.ctx, "EXPLAIN SELECT count(*) FROM m").await;
    assert!(plan.contains("PlaceholderRowExec"), "{plan}");
    let joined = "SELECT count(*) FROM m JOIN (VALUES (0, 0), (0, 2), (5, 5)) AS t(a, b) ON m.i = t.a AND m.j = t.b";
    let expected = [(0, 0), (0, 2), (5, 5)].iter().filter(|k| entries.contains_key(k)).count();
    assert_eq!(query_int(&f.ctx, joined).await, expected as i64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_writes_sparse_tensors() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let rows = "(VALUES (1, 2, 5), (3, 0, 7), (1, 2, 6), (0, 0, 0)) AS t(i, j, v)";
    let a = file("a.safetensors");
    let saved =
        format!("COPY (SELECT i, j, sum(v) AS v FROM {rows} GROUP BY i, j) TO '{a}' STORED AS DOK");
    assert_eq!(query_count(&ctx, &saved).await, 3);
    let tensor = serrate::io::dok::read(&a).unwrap();
    assert_eq!((tensor.shape(), tensor.nnz().unwrap()), (vec![4, 3], 2));
    assert_eq!(tensor.at(&[1, 2]).unwrap().to_f64().unwrap(), 11.0);
    assert_eq!(tensor.dtype(), serrate::dense::DType::I64);
    // The file stores the names of its keys, which become columns of the table.
    query_batches(&ctx, &format!("CREATE EXTERNAL TABLE a STORED AS DOK LOCATION '{a}'"))
        .await
        .unwrap();
    assert_eq!(query_int(&ctx, "SELECT v FROM a WHERE i = 3 AND j = 0").await, 7);
    query_batches(
        &ctx,
        &format!("CREATE EXTERNAL TABLE b (x INT, y INT, z BIGINT) STORED AS DOK LOCATION '{a}'"),
    )
    .await
    .unwrap();
    assert_eq!(query_int(&ctx, "SELECT z FROM b WHERE x = 3 AND y = 0").await, 7);

    let e = error(&ctx, &saved).await;
    assert!(e.contains("overwrite"), "{e}");
    let twice = |rest: &str| {
        format!(
            "COPY (SELECT i, j, v FROM {rows}) TO '{}' STORED AS DOK {rest}",
            file("b.safetensors")
        )
    };
    let e = error(&ctx, &twice("")).await;
    assert!(e.contains("row 2 (counted from 0): an entry with i 1, j 2 is already present"), "{e}");
    for (rest, said) in [
        (
            "OPTIONS (shape '3, 3')",
            "row 1 (counted from 0): \"i\" is 3; the axis has the size 3, so give a coordinate below it",
        ),
        ("OPTIONS (shape '3')", "the number of axes of the shape [3] is 1"),
        ("OPTIONS (shap '3, 3')", "no option 'shap'"),
        ("OPTIONS (duplicates 'first')", "'error', 'last' or 'sum'"),
        ("OPTIONS (keys 'i, k')", "names column 'k', which the query does not have"),
        ("OPTIONS (keys 'i')", "2 other columns"),
    ] {
        let e = error(&ctx, &twice(rest)).await;
        assert!(e.contains(said), "{rest}: {e}");
    }
    assert!(!std::path::Path::new(&file("b.safetensors")).exists());
    for (rest, value) in [("'last'", 6.0), ("'sum', overwrite true", 11.0)] {
        query_count(&ctx, &twice(&format!("OPTIONS (shape '100, 100', duplicates {rest})"))).await;
        let tensor = serrate::io::dok::read(file("b.safetensors")).unwrap();
        assert_eq!((tensor.shape(), tensor.nnz().unwrap()), (vec![100, 100], 2));
        assert_eq!(tensor.at(&[1, 2]).unwrap().to_f64().unwrap(), value);
    }
    for (query, said) in [
        ("SELECT 1 AS v", "1 column"),
        ("SELECT 1.5 AS i, 2 AS v", "must be an integer"),
        ("SELECT 1 AS i, 'a' AS v", "a number or a boolean"),
        ("SELECT 1 AS i, NULL::DOUBLE AS v", "\"v\" is NULL"),
        (
            "SELECT x - 2 AS i, 1 AS v FROM generate_series(1, 3) AS t(x)",
            "row 0 (counted from 0): \"i\" is -1; give a coordinate of 0 or more",
        ),
    ] {
        let e =
            error(&ctx, &format!("COPY ({query}) TO '{}' STORED AS DOK", file("c.safetensors")))
                .await;
        assert!(e.contains(said), "{query}: {e}");
        assert!(!std::path::Path::new(&file("c.safetensors")).exists());
    }
    // ORDER BY of the query decides which of the duplicate rows is the last.
    let sql = format!(
        "COPY (SELECT i, j, v FROM {rows} ORDER BY v DESC) TO '{}' STORED AS DOK OPTIONS (duplicates 'last')",
        file("d.safetensors")
    );
    query_count(&ctx, &sql).await;
    let tensor = serrate::io::dok::read(file("d.safetensors")).unwrap();
    assert_eq!(tensor.at(&[1, 2]).unwrap().to_f64().unwrap(), 5.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dictionaries_have_keys_of_any_type() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let file = dir.path().join("w.safetensors").display().to_string();
    let copy = format!(
        "COPY (SELECT subject_id, x AS w, code FROM (VALUES (7, 'A', 0.5), (7, 'B', 1.5), (9, 'A', 0.0)) AS t(subject_id, code, x)) TO '{file}' STORED AS DOK OPTIONS (keys 'subject_id, code')"
    );
    assert_eq!(query_count(&ctx, &copy).await, 3);
    query_batches(&ctx, &format!("CREATE EXTERNAL TABLE w STORED AS DOK LOCATION '{file}'"))
        .await
        .unwrap();
    let shown = query_text(&ctx, "SELECT * FROM w ORDER BY subject_id, code").await;
    assert!(shown.contains("| subject_id | code | w   |"), "{shown}");
    // A dictionary stores zero, unlike a sparse tensor.
    let get = "SELECT dok_get('w', s, c) AS a, dok_get('w', s, c, -1) AS b, dok_contains('w', s, c) AS c FROM (VALUES (9, 'A'), (9, 'B'), (7, 'B'), (NULL, 'B')) AS t(s, c)";
    let shown = query_text(&ctx, get).await;
    for line in [
        "| 0.0 | 0.0  | true  |",
        "|     | -1.0 | false |",
        "| 1.5 | 1.5  | true  |",
        "|     |      |       |",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    query_count(&ctx, "INSERT INTO w VALUES (9, 'B', 4), (7, 'A', 5)").await;
    query_count(&ctx, "UPDATE w SET w = w + 1 WHERE code = 'B'").await;
    query_count(&ctx, "DELETE FROM w WHERE subject_id = 9 AND code = 'A'").await;
    let shown = query_text(&ctx, "SELECT * FROM w ORDER BY subject_id, code").await;
    for line in [
        "| 7          | A    | 5.0 |",
        "| 7          | B    | 2.5 |",
        "| 9          | B    | 5.0 |",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    assert_eq!(query_int(&ctx, "SELECT count(*) FROM w").await, 3);
    let plan = query_text(
        &ctx,
        "EXPLAIN SELECT w FROM w WHERE subject_id = 7 AND code IN ('A', 'B', 'C', 'D', 'E')",
    )
    .await;
    assert!(plan.contains("look-up of 5 key"), "{plan}");
    assert_eq!(
        query_int(
            &ctx,
            "SELECT count(*) FROM w WHERE subject_id = 7 AND code IN ('A', 'B', 'C', 'D', 'E')"
        )
        .await,
        2
    );
    let e = error(&ctx, "INSERT INTO w VALUES (NULL, 'B', 4)").await;
    assert!(e.contains("\"subject_id\" is NULL"), "{e}");
    assert_eq!(query_count(&ctx, "TRUNCATE TABLE w").await, 3);
    assert_eq!(query_int(&ctx, "SELECT count(*) FROM w").await, 0);
    // Creates a file from declared columns.
    let file = dir.path().join("n.safetensors").display().to_string();
    query_batches(&ctx, &format!("CREATE EXTERNAL TABLE n (day DATE, code VARCHAR, name VARCHAR) STORED AS DOK LOCATION '{file}' OPTIONS (keys 'day, code', duplicates 'error')")).await.unwrap();
    query_count(&ctx, "INSERT INTO n VALUES (DATE '2020-01-01', 'A', 'first')").await;
    let e = error(
        &ctx,
        "INSERT INTO n VALUES (DATE '2020-01-02', 'A', 'x'), (DATE '2020-01-01', 'A', 'y')",
    )
    .await;
    let said = "row 1 (counted from 0): an entry with day 2020-01-01, code A is already present";
    assert!(e.contains(said), "{e}");
    let shown = query_text(&ctx, "SELECT dok_get('n', DATE '2020-01-01', 'A') AS a, dok_get('n', DATE '2020-01-01', 'B', 'none') AS b").await;
    assert!(shown.contains("| first | none |"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_table_definitions_are_refused() {
    let f = Folder::new("").await;
    let m = f.path("m.safetensors").display().to_string();
    let no = f.path("no.safetensors").display().to_string();
    std::fs::write(f.path("text.safetensors"), "no tensors").unwrap();
    let text = f.path("text.safetensors").display().to_string();
    for (sql, said) in [
        (format!("(i BIGINT, v DOUBLE) STORED AS DOK LOCATION '{m}'"), "the file has the columns"),
        (
            format!("(i BIGINT, j BIGINT, v FLOAT) STORED AS DOK LOCATION '{m}'"),
            "the file has the columns",
        ),
        (
            format!("STORED AS DOK LOCATION '{m}' OPTIONS (shape '10, 21')"),
            "the file has the shape [10, 20]",
        ),
        (format!("STORED AS DOK LOCATION '{m}' OPTIONS (keys 'i, j')"), "tensor"),
        (format!("STORED AS DOK LOCATION '{m}' OPTIONS (shapes '10, 20')"), "no option 'shapes'"),
        (format!("STORED AS DOK LOCATION '{no}'"), "does not exist"),
        (format!("(i BIGINT, v DOUBLE) STORED AS DOK LOCATION '{no}'"), "shape"),
        (
            format!("(i BIGINT, v DOUBLE) STORED AS DOK LOCATION '{no}' OPTIONS (shape '3, 4')"),
            "the number of columns before the value is 1",
        ),
        (
            format!("(i DOUBLE, v DOUBLE) STORED AS DOK LOCATION '{no}' OPTIONS (shape '3')"),
            "integer",
        ),
        (
            format!("(i BIGINT, v VARCHAR) STORED AS DOK LOCATION '{no}' OPTIONS (shape '3')"),
            "a number",
        ),
        (format!("(i BIGINT, v DOUBLE) STORED AS DOK LOCATION '{no}' OPTIONS (keys 'k')"), "keys"),
        (format!("STORED AS DOK LOCATION '{text}'"), "safetensors"),
        (format!("STORED AS DOK LOCATION '{}'", f.dir.path().display()), "one local file"),
        (format!("STORED AS DOKK LOCATION '{m}'"), "the format DOKK is unknown"),
    ] {
        let e = error(&f.ctx, &format!("CREATE EXTERNAL TABLE x {sql}")).await;
        assert!(e.contains(said), "{sql}: {e}");
        assert!(!std::path::Path::new(&no).exists(), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn look_ups_return_the_values_of_the_tensor() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let file = dir.path().join("t.safetensors").display().to_string();
    let key = |n: &str, m: i64| format!("(x * {n}) % {m}");
    let copy = format!(
        "COPY (SELECT {} AS i, {} AS j, {} AS k, x * 0.5 AS v FROM generate_series(1, 100000) AS t(x)) TO '{file}' STORED AS DOK OPTIONS (shape '1009, 997, 991', duplicates 'last')",
        key("7919", 1009),
        key("104729", 997),
        key("15485863", 991)
    );
    query_count(&ctx, &copy).await;
    query_batches(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS DOK LOCATION '{file}'"))
        .await
        .unwrap();
    let sql = format!(
        "SELECT i, j, k, dok_get('t', i, j, k) AS v, dok_get('t', i, j, k, -1.0) AS w, dok_contains('t', i, j, k) AS c FROM (SELECT {} AS i, {} + x % 2 AS j, {} AS k FROM generate_series(50000, 150000) AS t(x))",
        key("7919", 1009),
        key("104729", 997),
        key("15485863", 991)
    );
    let tensor = serrate::io::dok::read(&file).unwrap();
    let (mut rows, mut hits) = (0, 0);
    for batch in query_batches(&ctx, &sql).await.unwrap() {
        let axis = |c: usize| batch.column(c).as_primitive::<Int64Type>().values().to_vec();
        let (i, j, k) = (axis(0), axis(1), axis(2));
        let asked = tensor.lookup_columns(&[&i, &j, &k], &Fallback::Zero).unwrap();
        let values = Float64Array::from(asked.values.as_slice::<f64>().unwrap().to_vec());
        assert_eq!(batch.column(3).as_primitive::<Float64Type>().values(), values.values());
        let found = batch.column(5).as_boolean();
        for (row, hit) in asked.found.iter().enumerate() {
            assert_eq!(found.value(row), *hit);
            let or_else = batch.column(4).as_primitive::<Float64Type>().value(row);
            assert_eq!(or_else, if *hit { values.value(row) } else { -1.0 });
            hits += usize::from(*hit);
        }
        rows += batch.num_rows();
    }
    assert_eq!(rows, 100_001);
    assert!(hits > 10_000 && hits < rows, "{hits}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn table_names_in_look_ups_are_resolved_at_planning() {
    let f = Folder::new("").await;
    query_count(&f.ctx, "INSERT INTO m VALUES (1, 2, 0.5)").await;
    let plan =
        query_text(&f.ctx, "EXPLAIN SELECT dok_get('m', x, 2) FROM generate_series(0, 9) AS t(x)")
            .await;
    assert!(plan.contains("m.safetensors") && plan.contains("version"), "{plan}");
    // Only the name of a function and literals are serialized, so another session understands them.
    let frame =
        f.ctx.sql("SELECT dok_get('m', x, 2) AS v FROM (VALUES (1)) AS t(x)").await.unwrap();
    let spec = format!("{}", frame.into_optimized_plan().unwrap().display_indent());
    let from = spec.find('{').unwrap_or_else(|| panic!("{spec}"));
    let to = spec.rfind('}').unwrap();
    let other = create_parallel_session();
    let sql = format!("SELECT dok_get('{}', 1, 2) = 0.5 AS same", &spec[from..=to]);
    assert!(query_text(&other, &sql).await.contains("true"), "{sql}");
    // The literal in the plan names the version of the file, so a changed file is an error.
    query_count(&f.ctx, "UPDATE m SET v = 7").await;
    let mut rest = f.ctx.clone();
    for table in ["a", "b", "c", "d", "e"] {
        // Other files evict the old version from the cache.
        let path = f.path(&format!("{table}.safetensors")).display().to_string();
        query_batches(&rest, &format!("CREATE EXTERNAL TABLE {table} (i BIGINT, v DOUBLE) STORED AS DOK LOCATION '{path}' OPTIONS (shape '3')")).await.unwrap();
        rest = rest.clone();
    }
    let e = error(&other, &sql).await;
    assert!(e.contains("changed after the query was planned"), "{e}");
    // A table name is resolved in the catalog and schema of the session.
    assert!(error(&other, "SELECT dok_get('m', 1, 2)").await.contains("neither a table \"m\""));
    query_batches(&f.ctx, "CREATE SCHEMA s").await.unwrap();
    let path = f.path("m.safetensors").display().to_string();
    query_batches(&f.ctx, &format!("CREATE EXTERNAL TABLE s.n STORED AS DOK LOCATION '{path}'"))
        .await
        .unwrap();
    assert!(query_text(&f.ctx, "SELECT dok_get('s.n', 1, 2) AS v").await.contains("7.0"));
    // A view resolves the table each time it is read; a table that is created again is another
    // table.
    query_batches(&f.ctx, "CREATE VIEW w AS SELECT dok_get('s.n', 1, 2) AS v").await.unwrap();
    query_count(&f.ctx, "UPDATE m SET v = 8").await;
    assert!(query_text(&f.ctx, "SELECT v FROM w").await.contains("8.0"));
}
