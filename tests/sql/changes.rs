//! INSERT, UPDATE and DELETE: the rows that they change, and the rows that remain if they fail.

use super::*;

#[tokio::test]
async fn changes_select_their_rows_by_subqueries() {
    let setup = [
        "CREATE TABLE u AS SELECT * FROM (VALUES (2), (3), (2)) v(a)",
        "CREATE TABLE n AS SELECT * FROM (VALUES (2), (NULL)) v(a)",
    ];
    let rows = "SELECT * FROM (VALUES (1, 'x'), (2, 'y'), (3, 'z'), (NULL, 'w')) v(a, s)";
    for (change, left) in [
        ("DELETE FROM t WHERE a IN (SELECT a FROM u)", "w; x"),
        ("DELETE FROM t WHERE a NOT IN (SELECT a FROM u)", "w; y; z"),
        ("DELETE FROM t WHERE a NOT IN (SELECT a FROM n)", "w; x; y; z"),
        ("DELETE FROM t WHERE a NOT IN (SELECT a FROM n) IS NULL", "y"),
        ("DELETE FROM t WHERE a IN (SELECT a FROM u WHERE false)", "w; x; y; z"),
        ("DELETE FROM t WHERE a NOT IN (SELECT a FROM u WHERE false)", ""),
        ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE a > 2)", ""),
        ("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE a > 2) OR s = 'x'", "w; y; z"),
        ("DELETE FROM t WHERE a = (SELECT max(a) FROM t)", "w; x; y"),
        ("DELETE FROM t WHERE a = (SELECT a FROM u WHERE a > 9)", "w; x; y; z"),
        (
            "DELETE FROM t WHERE a::BIGINT IN (WITH q AS (SELECT a + 1 AS b FROM u) SELECT b FROM q)",
            "w; x; y",
        ),
        ("UPDATE t SET s = 'n' WHERE a IN (SELECT a FROM u) AND s <> 'z'", "n; w; x; z"),
        ("UPDATE t SET s = s || a WHERE a = (SELECT min(a) FROM u)", "w; x; y2; z"),
        ("DELETE FROM t WHERE a::DOUBLE IN (SELECT 2e0)", "w; x; z"),
        ("DELETE FROM t WHERE a > ALL (SELECT a FROM u)", "w; x; y; z"),
        ("DELETE FROM t WHERE a >= ANY (SELECT a FROM n)", "w; x"),
        ("DELETE FROM t WHERE a IN (SELECT u.a FROM u WHERE u.a < length(s) + 2)", "w; x; z"),
        ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", "w; x"),
        ("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", "y; z"),
        ("DELETE FROM t WHERE a < (SELECT max(u.a) FROM u WHERE u.a > t.a)", "w; z"),
        ("DELETE FROM t WHERE (SELECT 1) IN (SELECT a FROM t)", ""),
        ("DELETE FROM t WHERE a + (SELECT 1) IN (SELECT a FROM t)", "w; z"),
        ("UPDATE t SET s = (SELECT count(*) FROM u WHERE u.a = t.a)", "0; 0; 1; 2"),
        ("UPDATE t SET s = (SELECT max(s) FROM t), a = a + 1 WHERE a > 1", "w; x; z; z"),
        (
            "UPDATE t AS o SET s = o.s || 'n' WHERE o.a IN (SELECT a FROM t WHERE t.a < o.a + 1)",
            "w; xn; yn; zn",
        ),
    ] {
        let ctx = create_parallel_session();
        for sql in setup {
            query_batches(&ctx, sql).await.unwrap();
        }
        query_batches(&ctx, &format!("CREATE TABLE t AS {rows}")).await.unwrap();
        rows_or_error(&ctx, change).await;
        assert_eq!(rows_or_error(&ctx, "SELECT s FROM t ORDER BY s").await, left, "{change}");
    }
}

/// When this test fails, `serrate_plain_changes` can be removed, if the table receives all
/// conditions.
#[tokio::test]
async fn stock_deletes_with_subqueries_still_change_every_row() {
    let ctx = SessionContext::new();
    for sql in [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (3)) v(a)",
        "CREATE TABLE u AS SELECT 2 AS a",
        "DELETE FROM t WHERE a IN (SELECT a FROM u)",
    ] {
        stock_batches(&ctx, sql).await.unwrap();
    }
    assert_eq!(stock_one(&ctx, "SELECT count(*) FROM t").await, 0, "DataFusion is fixed");
}

#[tokio::test]
async fn changes_compare_and_cast_as_queries_do() {
    for (rows, change, query, left) in [
        (
            "SELECT '-0.0'::DOUBLE AS f",
            "DELETE FROM t WHERE f = 0.0",
            "SELECT count(*) FROM t",
            "0",
        ),
        (
            "SELECT * FROM (VALUES (1, 0), (4, 2)) v(a, b)",
            "DELETE FROM t WHERE b <> 0 AND a / b > 1",
            "SELECT a FROM t",
            "1",
        ),
        (
            "SELECT * FROM (VALUES (1, 0), (4, 2)) v(a, b)",
            "UPDATE t SET a = a / b WHERE b <> 0",
            "SELECT a FROM t ORDER BY b",
            "1; 2",
        ),
        (
            "SELECT [1, NULL] AS x, NULL::VARCHAR AS s, TIMESTAMP '1969-12-31 23:59:59.5' AS z, NULL::TIMESTAMP(0) AS y",
            "UPDATE t SET s = x::VARCHAR, y = z::TIMESTAMP(0)",
            "SELECT s, y FROM t",
            "[1, NULL] 1969-12-31T23:59:59",
        ),
        (
            "SELECT TIMESTAMP '2020-01-01 00:00:00.001'::TIMESTAMP(3) AS m",
            "DELETE FROM t WHERE m::TIMESTAMP(6) = TIMESTAMP '2020-01-01 00:00:00.001500'",
            "SELECT count(*) FROM t",
            "1",
        ),
        (
            "SELECT * FROM (VALUES ([1, 2], 1), ([3], 2), (NULL, 3)) v(x, i)",
            "UPDATE t SET x = x || [i] WHERE ragged_sum(x) > 2",
            "SELECT x FROM t ORDER BY i",
            "[1, 2, 1]; [3, 2]; NULL",
        ),
        ("SELECT 1 AS i", "UPDATE t SET i = i + 1 WHERE NULL", "SELECT i FROM t", "1"),
        ("SELECT 1 AS i", "UPDATE t SET i = 1.6", "SELECT i FROM t", "1"),
    ] {
        let ctx = create_parallel_session();
        rows_or_error(&ctx, &format!("CREATE TABLE t AS {rows}")).await;
        rows_or_error(&ctx, change).await;
        assert_eq!(rows_or_error(&ctx, query).await, left, "{change}");
    }
}

#[tokio::test]
async fn changes_keep_the_order_and_the_partitions_of_rows() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "SET datafusion.execution.batch_size = 7").await;
    rows_or_error(&ctx, "CREATE TABLE t AS SELECT i, i AS v FROM range(1000) r(i)").await;
    assert_eq!(rows_or_error(&ctx, "DELETE FROM t WHERE i % 3 = 0").await, "334");
    assert_eq!(rows_or_error(&ctx, "UPDATE t SET v = -v WHERE i % 2 = 1").await, "333");
    assert_eq!(
        rows_or_error(&ctx, "UPDATE t SET v = 0 WHERE i IN (SELECT i + 1 FROM t WHERE i < 5)")
            .await,
        "2"
    );
    let expected: Vec<(i64, i64)> = (0..1000)
        .filter(|i| i % 3 != 0)
        .map(|i| {
            (
                i,
                if [2, 5].contains(&i) {
                    0
                } else if i % 2 == 1 {
                    -i
                } else {
                    i
                },
            )
        })
        .collect();
    let found = query_batches(&ctx, "SELECT i, v FROM t LIMIT 10000").await.unwrap();
    let found: Vec<(i64, i64)> = found
        .iter()
        .flat_map(|batch| {
            let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().values().to_vec();
            column(0).into_iter().zip(column(1))
        })
        .collect();
    assert!(found == expected, "{:?}", found.iter().zip(&expected).find(|(a, b)| a != b));
}

#[tokio::test]
async fn changes_that_fail_change_nothing() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "SET datafusion.execution.batch_size = 2").await;
    rows_or_error(&ctx, "CREATE TABLE t AS SELECT i, 10 - i AS j FROM range(20) r(i)").await;
    rows_or_error(&ctx, "CREATE TABLE n (i INT NOT NULL)").await;
    rows_or_error(&ctx, "INSERT INTO n VALUES (1), (2)").await;
    for (change, fault) in [
        ("DELETE FROM t WHERE 1 / j > 0", "Divide by zero"),
        ("UPDATE t SET i = 1 / j", "Divide by zero"),
        ("UPDATE t SET i = i + 1, j = 'x'", "'x'"),
        ("UPDATE t SET i = (SELECT i FROM t)", "more than one row"),
        ("DELETE FROM t WHERE i = (SELECT i FROM t)", "more than one row"),
        ("UPDATE t SET k = 1", "k"),
        ("UPDATE n SET i = nullif(i, 2)", "non-nullable"),
        ("DELETE FROM t WHERE i = 1 LIMIT 1", "LIMIT"),
        ("DELETE FROM t USING n WHERE t.i = n.i", "USING"),
        ("UPDATE t SET i = n.i FROM n", "FROM"),
    ] {
        let e = rows_or_error(&ctx, change).await;
        assert!(e.contains(fault), "{change}: {e}");
        assert_eq!(
            rows_or_error(&ctx, "SELECT count(*), sum(i), sum(j) FROM t").await,
            "20 190 10",
            "{change}"
        );
        assert_eq!(rows_or_error(&ctx, "SELECT sum(i) FROM n").await, "3", "{change}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_updates_are_all_applied() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "CREATE TABLE t AS SELECT i, 0 AS v FROM range(100) r(i)").await;
    let changes = (0..20).map(|_| {
        let ctx = ctx.clone();
        tokio::spawn(
            async move { rows_or_error(&ctx, "UPDATE t SET v = v + 1 WHERE i < 50").await },
        )
    });
    for change in changes.collect::<Vec<_>>() {
        assert_eq!(change.await.unwrap(), "50");
    }
    assert_eq!(rows_or_error(&ctx, "SELECT sum(v) FROM t").await, "1000");
}

#[tokio::test]
async fn stock_deletes_that_fail_still_change_rows() {
    let config = SessionConfig::new().with_batch_size(2).with_target_partitions(4);
    let ctx = SessionContext::new_with_config(config);
    let rows = "SELECT value AS i, 10 - value AS j FROM range(0, 20)";
    stock_batches(&ctx, &format!("CREATE TABLE t AS {rows} UNION ALL {rows}")).await.unwrap();
    let before = stock_one(&ctx, "SELECT count(*) FROM t").await;
    assert!(
        stock_batches(&ctx, "DELETE FROM t WHERE i < 3 OR 1 / (j - 1000000 + i) > 0").await.is_ok()
    );
    assert!(before > stock_one(&ctx, "SELECT count(*) FROM t").await);
}

#[tokio::test]
async fn changes_may_have_with_queries_and_aliases() {
    let setup = ["CREATE TABLE u AS SELECT * FROM (VALUES (2), (3), (2)) v(a)"];
    let rows = "SELECT * FROM (VALUES (1, 'x'), (2, 'y'), (3, 'z'), (NULL, 'w')) v(a, s)";
    for (change, left) in [
        ("WITH q AS (SELECT 7 AS a, 'q' AS s) INSERT INTO t SELECT * FROM q", "q; w; x; y; z"),
        (
            "WITH q AS (SELECT 7 AS a, 'q' AS s) INSERT INTO t WITH q AS (SELECT 8, 'r') SELECT * FROM q",
            "r; w; x; y; z",
        ),
        (
            "WITH q AS (SELECT 7 AS a, 'q' AS s) INSERT INTO t WITH q AS (SELECT a + 1 AS a, s || 'r' AS s FROM q) SELECT a, s FROM q",
            "qr; w; x; y; z",
        ),
        (
            "WITH q AS (SELECT 7 AS a), r AS (SELECT a FROM q) INSERT INTO t WITH q AS (SELECT 50 AS a) SELECT r.a + q.a, (r.a + q.a)::VARCHAR FROM r, q",
            "57; w; x; y; z",
        ),
        (
            "WITH q AS (SELECT 'o' AS s) INSERT INTO t WITH q AS (SELECT s || 'i' AS s FROM q) SELECT 1, s FROM q UNION ALL SELECT 2, s || '2' FROM q ORDER BY 1 LIMIT 1",
            "oi; w; x; y; z",
        ),
        (
            "WITH q AS (SELECT 'o' AS s) INSERT INTO t WITH q AS (SELECT s || 'i' AS s FROM q) VALUES (1, (SELECT s FROM q)), (2, 'v')",
            "oi; v; w; x; y; z",
        ),
        // RECURSIVE before INSERT does not make the queries of the WITH after INSERT recursive.
        (
            "WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM n WHERE a < 3) INSERT INTO t WITH u AS (SELECT max(a) AS a FROM u) SELECT u.a, 'u' || count(*) FROM n, u GROUP BY u.a",
            "u3; w; x; y; z",
        ),
        (
            "WITH q AS (SELECT 1 AS a), r AS (SELECT a FROM q) DELETE FROM t WHERE a IN (WITH q AS (SELECT 3 AS a) SELECT a FROM r)",
            "w; y; z",
        ),
        (
            "WITH q AS (SELECT 1 AS a) UPDATE t SET s = 'n' WHERE a = (WITH q AS (SELECT a + 1 AS a FROM q) SELECT a FROM q)",
            "n; w; x; z",
        ),
        (
            "WITH q AS (SELECT 'n' AS s) UPDATE t SET s = (WITH q AS (SELECT s || 'm' AS s FROM q) SELECT s FROM q) WHERE a IN (SELECT 2 FROM q)",
            "nm; w; x; z",
        ),
        ("WITH q AS (SELECT a FROM u) DELETE FROM t WHERE a IN (SELECT a FROM q)", "w; x"),
        (
            "WITH q AS (SELECT a FROM u) DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE a IN (SELECT a FROM q) AND u.a = t.a)",
            "w; x",
        ),
        (
            "WITH q AS (SELECT max(a) AS a FROM u) UPDATE t SET s = 'n' WHERE a = (SELECT a FROM q)",
            "n; w; x; y",
        ),
        ("DELETE FROM t AS m WHERE m.a = 1", "w; y; z"),
        ("DELETE FROM t m WHERE EXISTS (SELECT 1 FROM u WHERE u.a = m.a)", "w; x"),
        ("DELETE FROM t m WHERE EXISTS (SELECT 1 FROM u AS \"M\" WHERE \"M\".a = m.a)", "w; x"),
        ("DELETE FROM t AS m", ""),
        ("DELETE FROM t AS z WHERE z.a > (SELECT avg(a) FROM t)", "w; x; y"),
        ("DELETE FROM t z WHERE a NOT IN (SELECT a FROM t WHERE a > 1)", "w; y; z"),
        ("DELETE FROM t AS m WHERE a IN (SELECT m.a FROM range(3) AS m(a))", "w; z"),
        (
            "WITH q AS (SELECT a FROM t) DELETE FROM t AS z WHERE EXISTS (SELECT 1 FROM q WHERE q.a = z.a)",
            "w",
        ),
    ] {
        let ctx = create_parallel_session();
        rows_or_error(&ctx, setup[0]).await;
        rows_or_error(&ctx, &format!("CREATE TABLE t AS {rows}")).await;
        let changed = rows_or_error(&ctx, change).await;
        assert_eq!(
            rows_or_error(&ctx, "SELECT s FROM t ORDER BY s").await,
            left,
            "{change}: {changed}"
        );
    }
    let ctx = create_parallel_session();
    rows_or_error(&ctx, &format!("CREATE TABLE t AS {rows}")).await;
    let refused = "DELETE FROM t AS m WHERE EXISTS (SELECT 1 FROM t WHERE t.a > m.a)";
    let refused = rows_or_error(&ctx, refused).await;
    assert!(refused.contains("give t an alias of its own in the subquery"), "{refused}");
    // The alias is quoted, so `m` is another name.
    let unknown = rows_or_error(&ctx, "DELETE FROM t AS \"M\" WHERE m.a = 1").await;
    assert!(unknown.contains("m.a"), "{unknown}");
    assert!(
        rows_or_error(
            &ctx,
            "EXPLAIN WITH q AS (SELECT 1 AS a) DELETE FROM t WHERE a IN (SELECT a FROM q)"
        )
        .await
        .contains("EXPLAIN of DELETE")
    );
    assert_eq!(rows_or_error(&ctx, "SELECT count(*) FROM t").await, "4");
}

#[tokio::test]
async fn aggregates_and_windows_in_changes_and_values_are_refused() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (NULL)) v(a)").await;
    for (change, said) in [
        ("UPDATE t SET a = row_number() OVER ()", "UPDATE computes each row from that row alone"),
        ("UPDATE t SET a = 1 + sum(a) OVER (ORDER BY a)", "the window function sum(..)"),
        (
            "UPDATE t SET a = 1 WHERE row_number() OVER () > 1",
            "UPDATE computes each row from that row alone",
        ),
        ("UPDATE t SET a = max(a)", "the aggregate max(..)"),
        ("UPDATE t SET a = CASE WHEN true THEN count(*) ELSE 0 END", "the aggregate count(..)"),
        (
            "DELETE FROM t WHERE row_number() OVER () > 1",
            "DELETE computes each row from that row alone",
        ),
        ("DELETE FROM t WHERE sum(a) > 1", "the aggregate sum(..)"),
        (
            "INSERT INTO t VALUES (row_number() OVER ())",
            "VALUES computes each row from that row alone",
        ),
        ("INSERT INTO t VALUES (1), (sum(2))", "the aggregate sum(..)"),
        ("SELECT * FROM (VALUES (sum(1))) v(a)", "VALUES computes each row from that row alone"),
    ] {
        let answer = rows_or_error(&ctx, change).await;
        assert!(answer.contains(said) && answer.contains("subquery"), "{change}: {answer}");
    }
    assert_eq!(rows_or_error(&ctx, "SELECT a FROM t ORDER BY a").await, "1; 2; NULL");
    for change in [
        "INSERT INTO t VALUES ((SELECT sum(a) FROM t))",
        "UPDATE t SET a = a + (SELECT max(a) FROM t) WHERE a < (SELECT max(a) FROM t)",
        "DELETE FROM t WHERE a IN (SELECT min(a) OVER () FROM t)",
        "INSERT INTO t SELECT count(*) FROM t",
    ] {
        rows_or_error(&ctx, change).await;
    }
    // The rows after each change: 1, 2, NULL, 3; 4, 5, NULL, 3; 4, 5, NULL; 4, 5, NULL, 3.
    assert_eq!(rows_or_error(&ctx, "SELECT a FROM t ORDER BY a").await, "3; 4; 5; NULL");
}

#[tokio::test]
async fn default_inserts_the_default_of_the_column() {
    let ctx = create_parallel_session();
    for (sql, expected) in [
        ("CREATE TABLE d (a INT DEFAULT 5, \"B c\" INT, s VARCHAR DEFAULT 'x')", ""),
        ("INSERT INTO d DEFAULT VALUES", "1"),
        ("INSERT INTO d DEFAULT VALUES", "1"),
        ("SELECT * FROM d", "5 NULL x; 5 NULL x"),
    ] {
        assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
    }
    rows_or_error(&ctx, "CREATE TABLE e (a INT DEFAULT 5)").await;
    let e = rows_or_error(&ctx, "INSERT INTO e DEFAULT VALUES").await;
    assert!(e.contains("write the value of one column: INSERT INTO e (a) VALUES (1)"), "{e}");
    let e = rows_or_error(&ctx, "INSERT INTO nowhere DEFAULT VALUES").await;
    assert!(e.contains("nowhere"), "{e}");
    rows_or_error(&ctx, "CREATE TABLE n (a INT NOT NULL)").await;
    let e = rows_or_error(&ctx, "INSERT INTO n DEFAULT VALUES").await;
    assert!(e.contains("null"), "{e}");
}

#[tokio::test]
async fn tuples_are_cast_to_structs_by_position() {
    let cases = [
        ("SELECT row(1, 2)::STRUCT(x INT, y VARCHAR) AS s", "{x: 1, y: 2}"),
        ("SELECT CAST((1, 2) AS STRUCT(x INT, y VARCHAR)) AS s", "{x: 1, y: 2}"),
        (
            "SELECT TRY_CAST(row(id, 'b') AS STRUCT(x INT, y INT)) AS s FROM range(3, 4) t(id)",
            "{x: 3, y: }",
        ),
        (
            "SELECT [row(1, row(2, 3)), NULL]::STRUCT(x INT, y STRUCT(a INT, b INT))[] AS s",
            "[{x: 1, y: {a: 2, b: 3}}, ]",
        ),
        (
            "SELECT {'y': row(5, 6), 'x': 9}::STRUCT(x INT, y STRUCT(a INT, b INT)) AS s",
            "{x: 9, y: {a: 5, b: 6}}",
        ),
        ("SELECT {'y': 5, 'x': 6}::STRUCT(x INT, y INT) AS s", "{x: 6, y: 5}"),
    ];
    expect_rows(&[], &cases).await;
    let ctx = create_parallel_session();
    rows_or_error(
        &ctx,
        "CREATE TABLE s (id INT, s STRUCT(x INT, y VARCHAR), l STRUCT(a INT, b INT)[])",
    )
    .await;
    for insert in [
        "INSERT INTO s VALUES (1, row(8, 9), [row(1, 2)]), (2, NULL, NULL)",
        "INSERT INTO s(s, id) VALUES ((5, 'z'), 3)",
        "INSERT INTO s SELECT 4, row(6, 7), [(3, 4)]",
    ] {
        let changed = rows_or_error(&ctx, insert).await;
        assert!(["1", "2"].contains(&changed.as_str()), "{insert}: {changed}");
    }
    assert_eq!(
        rows_or_error(&ctx, "SELECT * FROM s ORDER BY id").await,
        "1 {x: 8, y: 9} [{a: 1, b: 2}]; 2 NULL NULL; 3 {x: 5, y: z} NULL; 4 {x: 6, y: 7} [{a: 3, b: 4}]"
    );
}

#[tokio::test]
async fn values_within_the_query_of_an_insert_keep_their_types() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "CREATE TABLE t (a INT)").await;
    for insert in [
        "INSERT INTO t SELECT length(s) FROM (VALUES ('007')) v(s)",
        "INSERT INTO t SELECT a * 2 FROM (VALUES (2.5)) v(a)",
        "INSERT INTO t WITH v(a) AS (VALUES (3.5)) SELECT a * 2 FROM v",
        "INSERT INTO t SELECT 11 WHERE 1 IN (VALUES (1.5))",
        "INSERT INTO t SELECT b FROM (VALUES (1, 9), (2, 10)) v(a, b) WHERE a < 2",
        "INSERT INTO t SELECT 17 EXCEPT VALUES (17.5)",
        "INSERT INTO t VALUES ((SELECT max(a * 2) FROM (VALUES (6.5)) v(a)))",
        "INSERT INTO t SELECT length(s) FROM (VALUES ('1') UNION ALL VALUES ('01') ORDER BY 1 LIMIT 1) v(s)",
    ] {
        rows_or_error(&ctx, insert).await;
    }
    assert_eq!(rows_or_error(&ctx, "SELECT a FROM t ORDER BY a").await, "2; 3; 5; 7; 9; 13; 17");
    rows_or_error(&ctx, "PREPARE p AS INSERT INTO t SELECT a * 2 FROM (VALUES ($1)) v(a)").await;
    assert_eq!(rows_or_error(&ctx, "EXECUTE p(10.5)").await, "1");
    assert_eq!(rows_or_error(&ctx, "SELECT max(a) FROM t").await, "21");
    let created = "CREATE TABLE c (a INT, s VARCHAR) AS SELECT a * 2, 'x' FROM (VALUES (1.5)) v(a)";
    rows_or_error(&ctx, created).await;
    assert_eq!(rows_or_error(&ctx, "FROM c").await, "3 x");
}

/// When this test fails, `sql::from::nested_values` can be removed.
#[tokio::test]
async fn stock_nested_values_still_have_the_types_of_the_table() {
    let ctx = SessionContext::new();
    for sql in ["CREATE TABLE t (a INT)", "INSERT INTO t SELECT a * 2 FROM (VALUES (2.5)) v(a)"] {
        stock_batches(&ctx, sql).await.unwrap();
    }
    assert_eq!(stock_one(&ctx, "SELECT a FROM t").await, 4, "DataFusion is fixed");
}

#[tokio::test]
async fn changes_write_the_types_of_the_table() {
    let ctx = create_parallel_session();
    let table = "CREATE TABLE t (a INT, i INT, x INT[], z TIMESTAMP(0))";
    rows_or_error(&ctx, table).await;
    let rows = "INSERT INTO t VALUES (1, 4, [1], TIMESTAMP '2020-01-01'), (2, NULL, [], NULL)";
    rows_or_error(&ctx, rows).await;
    for change in [
        "INSERT INTO t (a, i) SELECT a, CASE WHEN a > 1 THEN i ELSE -1 END FROM t",
        "INSERT INTO t (a, i) SELECT i, a FROM t WHERE a = 5 UNION ALL SELECT 7, 8",
        "INSERT INTO t (a, x) SELECT 9, CASE WHEN a > 1 THEN x ELSE [3000] END FROM t WHERE i = 4",
        "INSERT INTO t BY NAME SELECT CASE WHEN a > 7 THEN a ELSE 10 END AS a FROM t WHERE a = 7",
        "UPDATE t SET i = CASE WHEN a > 9 THEN i ELSE -2 END WHERE a > 6",
        "UPDATE t SET z = CASE WHEN a > 9 THEN z ELSE TIMESTAMP '1969-12-31 23:59:59.5' END WHERE a = 9",
    ] {
        let changed = rows_or_error(&ctx, change).await;
        assert!(changed.parse::<u64>().is_ok(), "{change}: {changed}");
    }
    let rows = "1 -1 NULL NULL; 1 4 [1] 2020-01-01T00:00:00; 2 NULL [] NULL; 2 NULL NULL NULL; 7 -2 NULL NULL; 9 -2 [3000] 1969-12-31T23:59:59; 10 NULL NULL NULL";
    assert_eq!(rows_or_error(&ctx, "SELECT * FROM t ORDER BY a, i, x").await, rows);
    for change in [
        "INSERT INTO t (i) SELECT CASE WHEN a > 1 THEN i ELSE 5000000000 END FROM t",
        "INSERT INTO t (i) SELECT i FROM t UNION ALL SELECT 5000000000",
        "INSERT INTO t (x) SELECT CASE WHEN a > 1 THEN x ELSE [5000000000] END FROM t",
        "UPDATE t SET i = CASE WHEN a > 1 THEN i ELSE 5000000000 END",
        "UPDATE t SET x = CASE WHEN a > 1 THEN x ELSE [5000000000] END",
    ] {
        let e = rows_or_error(&ctx, change).await;
        assert!(e.contains("5000000000"), "{change}: {e}");
        assert_eq!(rows_or_error(&ctx, "SELECT * FROM t ORDER BY a, i, x").await, rows, "{change}");
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = display_path(&dir.path().join("p"));
    let table = format!("CREATE EXTERNAL TABLE p (i INT) STORED AS PARQUET LOCATION '{folder}/'");
    rows_or_error(&ctx, &table).await;
    let insert = "INSERT INTO p SELECT CASE WHEN a > 1 THEN a ELSE 20 END FROM t WHERE a > 6";
    assert_eq!(rows_or_error(&ctx, insert).await, "3");
    assert_eq!(rows_or_error(&ctx, "SELECT i FROM p ORDER BY i").await, "7; 9; 10");
}

#[tokio::test]
async fn errors_of_null_name_the_column() {
    let dir = tempfile::tempdir().unwrap();
    let folder = display_path(&dir.path().join("p"));
    let setup = [
        "CREATE TABLE n (a INT NOT NULL, b VARCHAR, \"C d\" DOUBLE NOT NULL)".to_owned(),
        "CREATE TABLE s AS SELECT * FROM (VALUES (1, 1.5), (NULL, 2.5), (3, NULL)) v(x, y)"
            .to_owned(),
        format!("CREATE EXTERNAL TABLE p (i INT NOT NULL) STORED AS PARQUET LOCATION '{folder}/'"),
    ];
    let ctx = serrate::sql::session();
    run_all(&ctx, &setup).await;
    for (sql, column) in [
        ("INSERT INTO n VALUES (1, 'b', 2), (NULL, 'b', 2)", "a"),
        ("INSERT INTO n VALUES (1, 'b', NULL)", "C d"),
        ("INSERT INTO n (b, a) VALUES ('b', 1)", "C d"),
        ("INSERT INTO n SELECT x, 'b', 1 FROM s", "a"),
        ("INSERT INTO n BY NAME SELECT 5 AS a, y AS \"C d\" FROM s", "C d"),
        ("INSERT INTO n SELECT NULL, 'b', 1", "a"),
        ("EXPLAIN ANALYZE INSERT INTO n VALUES (NULL, 'b', 2)", "a"),
        ("INSERT INTO p SELECT x FROM s", "i"),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(&format!("'{column}' is non-nullable (NOT NULL)")), "{sql}: {e}");
    }
    for (sql, expected) in [
        ("INSERT INTO n VALUES (1, NULL, 2), (2, 'b', 3)", "2"),
        ("INSERT INTO n SELECT x, NULL, y FROM s WHERE x + y > 0", "1"),
        ("SELECT * FROM n ORDER BY a, \"C d\"", "1 NULL 1.5; 1 NULL 2.0; 2 b 3.0"),
    ] {
        assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
    }
}

/// When this test fails, `serrate_inserted_nulls` can be removed.
#[tokio::test]
async fn stock_errors_of_null_still_lack_the_column() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, "CREATE TABLE n (a INT NOT NULL)").await.unwrap();
    for sql in ["INSERT INTO n VALUES (NULL)", "INSERT INTO n SELECT NULL"] {
        let e = stock_error(&ctx, sql).await;
        assert!(!e.contains("'a'"), "{e}");
    }
}

/// When this test fails, `serrate_inserted_types` can be removed.
#[tokio::test]
async fn stock_inserts_still_write_other_types() {
    let ctx = SessionContext::new();
    for sql in [
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t SELECT CASE WHEN a > 1 THEN a ELSE 5000000000 END FROM t",
    ] {
        stock_batches(&ctx, sql).await.unwrap();
    }
    let is_wrong = match stock_batches(&ctx, "SELECT a FROM t").await {
        Ok(rows) => rows.iter().any(|rows| rows.column(0).data_type().to_string() == "Int64"),
        Err(_) => true,
    };
    assert!(is_wrong, "DataFusion is fixed");
}

/// The rows of a DataFrame are cast to the types of the table only if they have as many columns.
#[tokio::test]
async fn frames_with_other_columns_than_the_table_are_not_written() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "CREATE TABLE t (a INT)").await;
    for (rows, is_written) in
        [("SELECT 5::BIGINT AS a", true), ("SELECT 6::BIGINT AS a, 7 AS b", false)]
    {
        let frame = serrate::sql::sql(&ctx, rows).await.unwrap();
        let options = datafusion::dataframe::DataFrameWriteOptions::new();
        assert_eq!(frame.write_table("t", options).await.is_ok(), is_written, "{rows}");
    }
    assert_eq!(rows_or_error(&ctx, "SELECT a FROM t").await, "5");
}

#[tokio::test]
async fn numbers_are_not_written_to_timestamps() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "CREATE TABLE t (i INT, z TIMESTAMP)").await;
    rows_or_error(&ctx, "INSERT INTO t VALUES (5, NULL)").await;
    for change in [
        "INSERT INTO t VALUES (1, 5)",
        "INSERT INTO t (z) VALUES ('2020-01-01'), (-1.5)",
        "INSERT INTO t SELECT i, i FROM t",
        "INSERT INTO t BY NAME SELECT 5 AS z",
        "UPDATE t SET z = 5",
        "UPDATE t SET z = i + 1",
        "UPDATE t SET z = i::BIGINT",
        "EXPLAIN INSERT INTO t VALUES (1, 5)",
        "EXPLAIN INSERT INTO t SELECT i, i FROM t",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (1, 5)",
        "EXPLAIN ANALYZE INSERT INTO t SELECT i, i FROM t",
        "PREPARE p AS INSERT INTO t VALUES (1, 5)",
    ] {
        let e = rows_or_error(&ctx, change).await;
        assert!(e.contains("'z' has timestamps, but gets a number"), "{change}: {e}");
    }
    for (change, time) in [
        ("UPDATE t SET z = i::TIMESTAMP", "1970-01-01T00:00:05"),
        ("UPDATE t SET z = to_timestamp_micros(7)", "1970-01-01T00:00:00.000007"),
        ("UPDATE t SET z = '2020-01-01'", "2020-01-01T00:00:00"),
    ] {
        assert_eq!(rows_or_error(&ctx, change).await, "1", "{change}");
        assert_eq!(rows_or_error(&ctx, "SELECT z FROM t").await, time, "{change}");
    }
    for change in [
        "INSERT INTO t VALUES (1, 2 + 3)",
        "INSERT INTO t VALUES (1, 5::BIGINT)",
        "UPDATE t SET z = (i)::TIMESTAMP(6)",
        "EXPLAIN INSERT INTO t VALUES (1, 2 + 3)",
    ] {
        let e = rows_or_error(&ctx, change).await;
        assert!(e.contains("to_timestamp_micros(x) for microseconds"), "{change}: {e}");
    }
    assert_eq!(rows_or_error(&ctx, "INSERT INTO t SELECT 1, 8::TIMESTAMP").await, "1");
    assert_eq!(rows_or_error(&ctx, "INSERT INTO t VALUES (2, 9::TIMESTAMP)").await, "1");
    let seconds = "SELECT extract(second FROM z)::INT FROM t WHERE i < 3 ORDER BY i";
    assert_eq!(rows_or_error(&ctx, seconds).await, "8; 9");
}

#[tokio::test]
async fn numbers_are_not_written_to_dates() {
    let ctx = create_parallel_session();
    rows_or_error(&ctx, "CREATE TABLE t (i INT, d DATE)").await;
    rows_or_error(&ctx, "INSERT INTO t VALUES (5, NULL)").await;
    for change in [
        "INSERT INTO t VALUES (1, 20200101)",
        "INSERT INTO t (d) VALUES ('2020-01-01'), (-1)",
        "INSERT INTO t SELECT i, i FROM t",
        "INSERT INTO t BY NAME SELECT 5 AS d",
        "UPDATE t SET d = 5",
        "UPDATE t SET d = i + 1",
        "UPDATE t SET d = i::BIGINT",
    ] {
        let e = rows_or_error(&ctx, change).await;
        assert!(e.contains("'d' has dates, but gets a number"), "{change}: {e}");
    }
    rows_or_error(&ctx, "PREPARE day(INT) AS INSERT INTO t (d) VALUES ($1)").await;
    let e = rows_or_error(&ctx, "EXECUTE day(5)").await;
    assert!(e.contains("'d' has dates, but gets a number"), "{e}");
    for (change, day) in [
        ("UPDATE t SET d = i::DATE", "1970-01-06"),
        ("UPDATE t SET d = '2020-01-01'", "2020-01-01"),
        ("UPDATE t SET d = d + 1", "2020-01-02"),
    ] {
        assert_eq!(rows_or_error(&ctx, change).await, "1", "{change}");
        assert_eq!(rows_or_error(&ctx, "SELECT d FROM t").await, day, "{change}");
    }
    assert_eq!(rows_or_error(&ctx, "INSERT INTO t SELECT 1, 8::DATE").await, "1");
    assert_eq!(rows_or_error(&ctx, "INSERT INTO t VALUES (2, 9::DATE)").await, "1");
    let days = "SELECT d FROM t WHERE i < 3 ORDER BY i";
    assert_eq!(rows_or_error(&ctx, days).await, "1970-01-09; 1970-01-10");
}

#[tokio::test]
async fn times_are_not_written_to_numbers() {
    let ctx = create_parallel_session();
    let table = [
        "CREATE TABLE t (i BIGINT, s INT, f DOUBLE, l BIGINT[], d DATE, z TIMESTAMP, c TIME)",
        "INSERT INTO t (i, d, z, c) VALUES (5, DATE '2020-01-02', TIMESTAMP '2020-01-02 03:04:05', TIME '03:04:05')",
    ];
    run_all(&ctx, &table).await;
    for (change, expected) in [
        ("INSERT INTO t (i) VALUES (DATE '2020-01-02')", "'i' has numbers, but gets a date"),
        ("INSERT INTO t (i, s) VALUES (1, 2), (3, DATE '2020-01-02')", "'s' has numbers"),
        ("INSERT INTO t (i) VALUES (NULL), (TIMESTAMP '2020-01-02')", "gets a timestamp"),
        ("INSERT INTO t (i) VALUES (TIME '10:00:00')", "gets a time of day"),
        ("INSERT INTO t (l) VALUES ([DATE '2020-01-02'])", "'l' has numbers, but gets a date"),
        ("INSERT INTO t (i) SELECT d FROM t", "gets a date"),
        ("INSERT INTO t (f) SELECT z FROM t", "'f' has numbers, but gets a timestamp"),
        ("INSERT INTO t (i) SELECT z - TIMESTAMP '2020-01-01' FROM t", "gets a duration"),
        ("INSERT INTO t (i) SELECT NULL UNION ALL SELECT d FROM t", "gets a date"),
        (
            "INSERT INTO t (i) SELECT NULL UNION SELECT NULL UNION ALL SELECT d FROM t",
            "gets a date",
        ),
        ("INSERT INTO t (i) SELECT NULL UNION SELECT d FROM t LIMIT 1", "gets a date"),
        ("INSERT INTO t (l) SELECT [d] FROM t", "'l' has numbers, but gets a date"),
        ("INSERT INTO t BY NAME SELECT d AS i FROM t", "'i' has numbers, but gets a date"),
        ("EXPLAIN INSERT INTO t (i) SELECT d FROM t", "'i' has numbers, but gets a date"),
        ("UPDATE t SET i = d", "'i' has numbers, but gets a date"),
        ("UPDATE t SET s = DATE '2020-01-02'", "'s' has numbers, but gets a date"),
        ("UPDATE t SET i = '2020-01-02'::DATE", "'i' has numbers, but gets a date"),
        ("UPDATE t SET i = c", "gets a time of day"),
    ] {
        let e = rows_or_error(&ctx, change).await;
        assert!(e.contains(expected), "{change}: {e}");
    }
    for (change, number) in [
        ("UPDATE t SET i = d::BIGINT", "18263"),
        ("UPDATE t SET i = d - DATE '1970-01-02'", "18262"),
        ("UPDATE t SET i = epoch(c)", "11045"),
    ] {
        assert_eq!(rows_or_error(&ctx, change).await, "1", "{change}");
        assert_eq!(rows_or_error(&ctx, "SELECT i FROM t").await, number, "{change}");
    }
    for insert in [
        "INSERT INTO t (i) VALUES (DATE '2020-01-02'::BIGINT)",
        "EXPLAIN ANALYZE INSERT INTO t (i) VALUES (NULL), (CAST(DATE '2020-01-02' AS INT))",
        "INSERT INTO t (i) SELECT d::BIGINT FROM t WHERE d IS NOT NULL",
    ] {
        run_query(&ctx, insert).await;
    }
    let numbers = rows_or_error(&ctx, "SELECT i FROM t ORDER BY i").await;
    assert_eq!(numbers, "11045; 18263; 18263; 18263; NULL");
}

#[tokio::test]
async fn numbers_are_not_written_to_times_of_day() {
    let ctx = create_parallel_session();
    run_all(&ctx, &["CREATE TABLE t (i BIGINT, c TIME)", "INSERT INTO t (i) VALUES (5)"]).await;
    for change in [
        "INSERT INTO t (c) VALUES (5)",
        "INSERT INTO t (c) VALUES (TIME '10:00:00'), (2 + 3)",
        "INSERT INTO t (c) SELECT i FROM t",
        "UPDATE t SET c = 5",
        "UPDATE t SET c = i",
    ] {
        let e = rows_or_error(&ctx, change).await;
        assert!(e.contains("'c' has times of day, but gets a number"), "{change}: {e}");
    }
    let change = "UPDATE t SET c = TIME '00:00:00' + i * INTERVAL '1 second'";
    assert_eq!(rows_or_error(&ctx, change).await, "1");
    assert_eq!(rows_or_error(&ctx, "SELECT c FROM t").await, "00:00:05");
    for cast in ["5::TIME", "TRY_CAST(i AS TIME)", "[i]::TIME[]", "1.5::TIME"] {
        let e = error(&ctx, &format!("SELECT {cast} FROM t")).await;
        assert!(e.contains("to TIME, because the unit of the number"), "{cast}: {e}");
    }
    let cases = [
        (
            "SELECT '10:00'::TIME, NULL::TIME, TIMESTAMP '2020-01-01 10:00:00'::TIME",
            "10:00:00 NULL 10:00:00",
        ),
        ("SELECT arrow_cast(5, 'Time64(Nanosecond)')", "00:00:00.000000005"),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]

async fn tensors_of_another_shape_are_not_written_to_a_column() {
    let ctx = create_parallel_session();
    let tensor = |shape: &str| format!("densify([[1], [2, 3]], {shape})");
    let created = format!("CREATE TABLE t AS SELECT 1 AS id, {} AS d", tensor("[2, 3]"));
    run_query(&ctx, &created).await;
    let other = tensor("[3, 2]");
    for (change, found) in [
        (format!("INSERT INTO t SELECT 2, {other}"), "{\"shape\":[3,2]}"),
        (format!("INSERT INTO t VALUES (2, {other})"), "{\"shape\":[3,2]}"),
        ("INSERT INTO t (d) SELECT densify([1, 2], [6])".to_owned(), "{\"shape\":[6]}"),
        (format!("UPDATE t SET d = {other}"), "{\"shape\":[3,2]}"),
        (format!("EXPLAIN INSERT INTO t SELECT 2, {other}"), "{\"shape\":[3,2]}"),
        (
            format!("INSERT INTO t SELECT 2, {} UNION ALL SELECT 3, {other}", tensor("[2, 3]")),
            "of several shapes",
        ),
    ] {
        let e = error(&ctx, &change).await;
        let column = "the column 'd' of t has arrow.fixed_shape_tensor {\"shape\":[2,3]}";
        assert!(e.contains(column) && e.contains(found), "{change}\n{e}");
    }
    for change in [
        format!("INSERT INTO t SELECT 2, {}", tensor("[2, 3]")),
        "INSERT INTO t SELECT 3, [6, 5, 4, 3, 2, 1]".to_owned(),
        format!("INSERT INTO t VALUES (4, NULL), (5, {})", tensor("[2, 3]")),
        format!("UPDATE t SET d = {} WHERE id = 3", tensor("[2, 3]")),
        "UPDATE t SET id = id + 10".to_owned(),
    ] {
        let changed = rows_or_error(&ctx, &change).await;
        assert!(changed.parse::<i64>().is_ok(), "{change}\n{changed}");
    }
    assert_eq!(query_rows(&ctx, "SELECT count(d), count(*) FROM t").await, "4 5");
}

#[tokio::test]
async fn changes_of_files_and_views_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let create = format!(
        "CREATE EXTERNAL TABLE f (a INT) STORED AS PARQUET LOCATION '{}/'",
        display_path(dir.path())
    );
    let insert = "INSERT INTO f VALUES (1), (2)";
    run_all(&ctx, &[create.as_str(), insert, "CREATE VIEW v AS SELECT a FROM f"]).await;
    for change in ["DELETE FROM t", "DELETE FROM t WHERE a = 1", "UPDATE t SET a = 3", "TRUNCATE t"]
    {
        for (name, expected) in [("f", "for a table of files"), ("v", "for a view")] {
            let e = error(&ctx, &change.replace('t', name)).await;
            assert!(e.contains(expected), "{change}: {e}");
        }
    }
    assert_eq!(rows_or_error(&ctx, "SELECT a FROM f ORDER BY a").await, "1; 2");
}
