//! EXCEPT ALL and INTERSECT ALL count equal rows.

use super::*;

#[tokio::test]
async fn except_all_and_intersect_all_count_equal_rows() {
    let l = "SELECT i FROM (VALUES (1), (1), (1), (2), (NULL), (NULL)) l(i)";
    let r = "SELECT j FROM (VALUES (1), (1), (3), (NULL)) r(j)";
    for partitions in [1, 4] {
        let ctx =
            serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
        for (sql, right) in [
            (format!("{l} EXCEPT ALL {r} ORDER BY i"), vec!["1", "2", ""]),
            (format!("{l} INTERSECT ALL {r} ORDER BY i"), vec!["1", "1", ""]),
            (format!("{r} EXCEPT ALL {l} ORDER BY j"), vec!["3"]),
            (format!("{l} EXCEPT ALL {l}"), vec![]),
            (format!("{l} INTERSECT ALL {l} ORDER BY i"), vec!["1", "1", "1", "2", "", ""]),
            (format!("{l} EXCEPT ALL {r} ORDER BY i DESC NULLS LAST LIMIT 1"), vec!["2"]),
            (format!("{l} EXCEPT ALL ({l} EXCEPT ALL {r}) ORDER BY i"), vec!["1", "1", ""]),
            (
                format!("{l} EXCEPT ALL {r} EXCEPT ALL {r} ORDER BY i"),
                vec!["2"],
            ),
            (
                format!("SELECT count(*), count(i) FROM ({l} INTERSECT ALL {r})"),
                vec!["3 2"],
            ),
            (format!("{l} EXCEPT {r} ORDER BY i"), vec!["2"]),
            (format!("{l} INTERSECT {r} ORDER BY i"), vec!["1", ""]),
            (format!("SELECT DISTINCT i FROM ({l}) EXCEPT ALL SELECT 2 ORDER BY i"), vec!["1", ""]),
            (
                "SELECT i, s FROM (VALUES (1, 'a'), (1, 'a'), (1, 'b')) l(i, s) EXCEPT ALL SELECT 1, 'a' ORDER BY s".into(),
                vec!["1 a", "1 b"],
            ),
            (
                "SELECT f FROM (VALUES ('NaN'::DOUBLE), ('NaN'), (0.0), (-0.0), (-0.0)) l(f) EXCEPT ALL SELECT f FROM (VALUES (0.0::DOUBLE), ('NaN')) r(f) ORDER BY f".into(),
                vec!["0 0 NaN"],
            ),
            (
                "SELECT x FROM (VALUES ([1, NULL]), ([1, NULL]), ([2, 3]), (NULL)) l(x) EXCEPT ALL SELECT [1, NULL] ORDER BY x".into(),
                vec!["[1, ]", "[2, 3]", ""],
            ),
            // The values are equal as doubles, whatever their types.
            (
                "SELECT i FROM (VALUES (1), (1), (2)) l(i) INTERSECT ALL SELECT f FROM (VALUES (1.0::DOUBLE), (1.0)) r(f)".into(),
                vec!["1", "1"],
            ),
        ] {
            let mut found = query_texts(&ctx, &sql).await;
            // 0.0 and -0.0 are equal rows, and either may remain.
            if sql.contains("NaN") {
                found = vec![found.join(" ").replace("-0.0", "0").replace("0.0", "0")];
            }
            assert!(sql.contains("ORDER BY") || found.windows(2).all(|w| w[0] == w[1]), "{sql}");
            assert_eq!(found, right, "{sql}");
        }
        let frame = serrate::sql::sql(&ctx, "SELECT 1 AS a EXCEPT ALL SELECT 2 AS b").await;
        let frame = frame.unwrap();
        assert_eq!(frame.schema().fields().len(), 1);
        assert_eq!(frame.schema().field(0).name(), "a");
    }
}

/// A computed column of the second query may have the place of a column whose name another of its
/// columns has.
#[tokio::test]
async fn computed_columns_may_stand_beside_columns() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, 10, 'a'), (2, 20, 'b')) v(a, b, s)"],
        &[
            ("SELECT a, b FROM t UNION ALL SELECT b, 5 FROM t ORDER BY 1", "1 10; 2 20; 10 5; 20 5"),
            ("SELECT a, b FROM t UNION SELECT b, NULL FROM t ORDER BY 1", "1 10; 2 20; 10 NULL; 20 NULL"),
            ("SELECT a, b FROM t UNION ALL SELECT b, a + 1 FROM t ORDER BY a, b", "1 10; 2 20; 10 2; 20 3"),
            ("SELECT a, b FROM t EXCEPT SELECT b, a * 10 FROM t ORDER BY a", "1 10; 2 20"),
            ("SELECT a * 10, a FROM t INTERSECT SELECT b, a FROM t ORDER BY 1", "10 1; 20 2"),
            ("SELECT a, b FROM t INTERSECT ALL SELECT a, a * 10 FROM t ORDER BY b", "1 10; 2 20"),
            ("SELECT * FROM t UNION ALL SELECT b, 7, s FROM t ORDER BY 1", "1 10 a; 2 20 b; 10 7 a; 20 7 b"),
            ("SELECT a, b FROM t UNION ALL (SELECT b, a + 1 FROM t ORDER BY b DESC LIMIT 1) ORDER BY 1", "1 10; 2 20; 20 3"),
            ("SELECT a, b FROM t UNION ALL SELECT 5 AS b, 6 FROM t WHERE a = 1 ORDER BY 1", "1 10; 2 20; 5 6"),
            ("SELECT a, b FROM t UNION ALL SELECT b, count(*) FROM t GROUP BY b UNION ALL SELECT b, 1 FROM t WHERE a = 1 ORDER BY 1, 2", "1 10; 2 20; 10 1; 10 1; 20 1"),
            ("SELECT b FROM (SELECT a, b FROM t UNION ALL SELECT b, a % 2 FROM t) ORDER BY 1", "0; 1; 10; 20"),
            ("SELECT a, b FROM t UNION ALL BY NAME SELECT 3 AS b, 4 AS a ORDER BY 1", "1 10; 2 20; 4 3"),
        ],
    )
    .await;
}

#[tokio::test]
async fn stock_computed_columns_of_unions_still_clash() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, "CREATE TABLE t AS SELECT 1 AS a, 2 AS b").await.unwrap();
    let message = stock_error(&ctx, "SELECT a, b FROM t UNION ALL SELECT b, 1 FROM t").await;
    assert!(message.contains('b'), "{message}");
}

/// DataFusion plans EXISTS and IN with groups as joins by all columns, as it plans INTERSECT ALL.
/// They do not count equal rows.
#[tokio::test]
async fn correlated_queries_keep_equal_rows() {
    for ctx in [create_parallel_session(), serrate::sql::session()] {
        let table = "CREATE TABLE t AS SELECT * FROM (VALUES (1), (1), (2), (NULL)) v(i)";
        query_batches(&ctx, table).await.unwrap();
        for (condition, expected) in [
            ("EXISTS (SELECT q.i FROM t q WHERE q.i = a.i GROUP BY q.i)", 3),
            ("NOT EXISTS (SELECT q.i FROM t q WHERE q.i = a.i + 1 GROUP BY q.i)", 2),
            ("i IN (SELECT q.i FROM t q WHERE q.i = a.i GROUP BY q.i)", 3),
            ("EXISTS (SELECT 1 FROM t q WHERE q.i = a.i HAVING count(*) > 1)", 2),
        ] {
            let sql = format!("SELECT i FROM t a WHERE {condition}");
            let count = format!("SELECT count(*) FROM ({sql})");
            assert_eq!(query_int(&ctx, &count).await, expected, "{sql}");
            query_batches(&ctx, &format!("CREATE OR REPLACE VIEW v AS {sql}")).await.unwrap();
            assert_eq!(query_int(&ctx, "SELECT count(*) FROM v").await, expected, "view of {sql}");
        }
        let sets = "SELECT i FROM t EXCEPT ALL SELECT 1";
        for (of, kind) in [("s", "VIEW"), ("r", "TABLE")] {
            query_batches(&ctx, &format!("CREATE {kind} {of} AS {sets}")).await.unwrap();
            assert_eq!(query_int(&ctx, &format!("SELECT count(*) FROM {of}")).await, 3, "{of}");
        }
    }
}

#[tokio::test]
async fn correlated_set_operations_count_equal_rows() {
    for ctx in [create_parallel_session(), serrate::sql::session()] {
        for table in [
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 1), (2, 1), (3, 2)) v(id, k)",
            "CREATE TABLE u AS SELECT * FROM (VALUES (1, 7), (1, 7), (1, 8), (2, 7), (2, 7), (2, 7),
                (2, NULL), (2, NULL)) v(k, i)",
            "CREATE TABLE w AS SELECT * FROM (VALUES (7), (7), (8), (8), (NULL)) v(i)",
        ] {
            query_batches(&ctx, table).await.unwrap();
        }
        let of_k = "SELECT i FROM u WHERE u.k = t.k";
        let to_k = "SELECT i FROM u WHERE u.k <= t.k";
        let all = "SELECT i FROM w";
        for (set, right) in [
            (format!("{of_k} INTERSECT ALL {all}"), ["1 3", "2 3", "3 3"]),
            (format!("{of_k} EXCEPT ALL {all}"), ["1 0", "2 0", "3 2"]),
            (format!("{all} INTERSECT ALL {of_k}"), ["1 3", "2 3", "3 3"]),
            (format!("{all} EXCEPT ALL {of_k}"), ["1 2", "2 2", "3 2"]),
            (format!("{to_k} INTERSECT ALL {of_k}"), ["1 3", "2 3", "3 5"]),
            (format!("{to_k} EXCEPT ALL {of_k}"), ["1 0", "2 0", "3 3"]),
            (format!("{of_k} INTERSECT {all}"), ["1 2", "2 2", "3 2"]),
            (format!("{of_k} EXCEPT {all}"), ["1 0", "2 0", "3 0"]),
        ] {
            let sql = format!("SELECT id, (SELECT count(*) FROM ({set})) AS n FROM t");
            let sorted = format!("{sql} ORDER BY id");
            assert_eq!(query_texts(&ctx, &sorted).await, right, "{sql}");
            query_batches(&ctx, &format!("CREATE OR REPLACE VIEW v AS {sql}")).await.unwrap();
            assert_eq!(
                query_texts(&ctx, "SELECT * FROM v ORDER BY id").await,
                right,
                "view of {sql}"
            );
        }
        let set = format!("{of_k} EXCEPT ALL {all}");
        for (sql, right) in [
            (format!("SELECT id FROM t WHERE EXISTS ({set})"), vec!["3"]),
            (format!("SELECT id FROM t WHERE 7 IN ({set})"), vec!["3"]),
            (format!("SELECT id, x.i FROM t, LATERAL ({set}) x ORDER BY x.i"), vec!["3 7", "3 "]),
        ] {
            assert_eq!(query_texts(&ctx, &sql).await, right, "{sql}");
        }
    }
}

/// The rules of this crate change the types of the inputs after DataFusion has planned the union.
#[tokio::test]
async fn unions_have_the_types_of_their_inputs() {
    expect_rows(
        &["CREATE TABLE x AS SELECT 9007199254740993 AS b, 1e300::DOUBLE AS d, 1.25::DECIMAL(5, 2) AS m,
            '9999-01-01'::TIMESTAMP(3) AS t, DATE '2020-02-29' AS a"],
        &[
            (
                "SELECT nullif(b, 0.5) FROM x UNION ALL SELECT nullif(b, 0.5) FROM x",
                "9007199254740993; 9007199254740993",
            ),
            (
                "SELECT c FROM (SELECT * FROM (SELECT nullif(b, 0.5) AS c FROM x) UNION SELECT b FROM x)",
                "9007199254740993",
            ),
            (
                "SELECT c > 1e299 AS g FROM (SELECT coalesce(m, d) AS c FROM x UNION ALL
                    SELECT coalesce(d, m) FROM x) ORDER BY g",
                "false; true",
            ),
            (
                "SELECT arrow_typeof(c) FROM (SELECT t - a AS c FROM x UNION ALL SELECT t - a FROM x)",
                "Duration(ms); Duration(ms)",
            ),
            ("SELECT c FROM (SELECT NULL AS c UNION ALL SELECT b FROM x) ORDER BY c", "9007199254740993; NULL"),
        ],
    )
    .await;
}

/// When this test fails, `serrate_counted_sets` can be removed.
#[tokio::test]
async fn stock_sets_still_count_nothing() {
    let ctx = SessionContext::new();
    let sql = "SELECT i FROM (VALUES (1), (1), (2)) l(i) EXCEPT ALL SELECT 1";
    assert_eq!(stock_ints(&ctx, sql).await, [2]);
}

/// `count(*)` of a correlated query is not nullable, but the join that replaces the query is
/// nullable.
#[tokio::test]
async fn unions_of_correlated_counts_are_grouped() {
    let of = "(VALUES (1, 2), (2, NULL), (5, 2)) t(id, k)";
    let counts = format!("SELECT (SELECT count(*) FROM {of} WHERE k = a.id) AS n FROM {of} AS a");
    let counts = counts.replace("t(id, k) AS a", "a(id, k)");
    let union = format!("{counts} UNION ALL SELECT 7");
    assert_eq!(
        query_int(&create_parallel_session(), &format!("SELECT sum(n) FROM ({union})")).await,
        9
    );
    assert_eq!(
        query_int(
            &create_parallel_session(),
            &format!("SELECT count(*) FROM ({counts} UNION SELECT 7)")
        )
        .await,
        3
    );
    let mut config = SessionConfig::new();
    config.options_mut().execution.skip_physical_aggregate_schema_check = false;
    let ctx = SessionContext::new_with_config(config);
    let stock = stock_error(&ctx, &format!("SELECT sum(n) FROM ({union})")).await;
    assert!(stock.contains("field nullability at index 0"), "{stock}");
}

#[tokio::test]
async fn inputs_may_have_duplicate_column_names() {
    let ctx = create_parallel_session();
    for sql in [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (3)) v(id)",
        "CREATE TABLE u AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(k, y)",
    ] {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    let l = "SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id";
    let r = "SELECT c.k, d.k FROM u c JOIN u d ON c.y = d.y";
    for (sql, expected) in [
        (format!("{l} UNION {r} ORDER BY 1"), vec!["1 1", "2 2", "3 3"]),
        (format!("{l} UNION SELECT 9, 9 ORDER BY 1 DESC LIMIT 1"), vec!["9 9"]),
        (format!("{l} EXCEPT {r}"), vec!["3 3"]),
        (format!("{l} INTERSECT {r} ORDER BY 1"), vec!["1 1", "2 2"]),
        (format!("({l}) EXCEPT ALL ({r})"), vec!["3 3"]),
        (format!("{r} UNION ALL {r} EXCEPT {l}"), vec![]),
    ] {
        assert_eq!(query_texts(&ctx, &sql).await, expected, "{sql}");
    }
}

/// When this test fails, `sql::statement::columns::set_names` can be removed.
#[tokio::test]
async fn stock_set_operations_by_name_still_fail() {
    let ctx = SessionContext::new();
    let l = "SELECT a.i, b.i FROM (VALUES (1)) a(i) JOIN (VALUES (1)) b(i) ON a.i = b.i";
    stock_error(&ctx, &format!("{l} EXCEPT SELECT 1 AS x, 1 AS x")).await;
}

const LONE: [&str; 2] = [
    "CREATE TABLE a AS SELECT * FROM (VALUES (1, 'a'), (3, 'c')) v(id, k)",
    "CREATE TABLE b AS SELECT * FROM (VALUES (1, 'a'), (4, 'd')) v(id, k)",
];

/// If only one branch of UNION ALL can have rows, a filter above applies to the columns of this
/// branch.
#[tokio::test]
async fn filters_apply_to_the_columns_of_the_only_branch_with_rows() {
    let union = "(SELECT id, k FROM a WHERE false UNION ALL SELECT b.id, b.k FROM a, b) q";
    let below =
        "(SELECT id FROM a WHERE 1 = 0 UNION ALL SELECT b.id FROM a JOIN b ON a.id < b.id) q";
    let other = "(SELECT b.id AS id FROM a, b UNION ALL SELECT id FROM a LIMIT 0) q";
    let cases = [
        (format!("SELECT id FROM {union} WHERE id < 4"), "1; 1"),
        (format!("SELECT id, count(*) FROM {union} WHERE id = 4 GROUP BY id"), "4 2"),
        (format!("SELECT k FROM {union} WHERE k LIKE 'a%'"), "a; a"),
        (format!("SELECT count(*) FROM {below} WHERE id < 4"), "0"),
        (format!("SELECT count(*) FROM {other} WHERE id < 4"), "0"),
        (format!("SELECT q.id FROM {union} JOIN b c ON q.id = c.id WHERE c.id > 1"), "4; 4"),
        (
            "SELECT id FROM (SELECT id FROM a WHERE id < 0 AND id > 5 UNION SELECT b.id AS x FROM a, b) q WHERE id < 4".into(),
            "1",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&LONE, &cases).await;
}

#[tokio::test]
async fn stock_filters_of_lone_branches_still_reach_other_tables() {
    let stock = SessionContext::new();
    for table in LONE {
        stock.sql(table).await.unwrap().collect().await.unwrap();
    }
    let sql = "SELECT id FROM (SELECT id FROM a WHERE false UNION ALL SELECT b.id FROM a, b) q WHERE id < 4";
    let batches = stock.sql(sql).await.unwrap().collect().await.unwrap();
    let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_ne!(found, 2, "DataFusion is fixed");
}

const NAMED: &str =
    "CREATE TABLE u AS SELECT * FROM (VALUES (1, 2, 10), (2, 1, 20), (3, NULL, NULL)) v(id, k, x)";
const NAMELESS: &str = "SELECT * FROM (SELECT c1 AS c0, c0 AS c1 FROM (SELECT id AS c0, id AS c1 FROM u WHERE false UNION ALL (SELECT k, x FROM u UNION ALL SELECT x, k FROM u WHERE k > 1))) ORDER BY c0, c1";

/// The columns of UNION keep the names of the first branch if this branch is empty.
#[tokio::test]
async fn unions_keep_the_names_of_an_empty_branch() {
    expect_rows(
        &[NAMED],
        &[
            (NAMELESS, "2 10; 10 2; 20 1; NULL NULL"),
            (
                "SELECT c1, count(*) FROM (SELECT id AS c0, id AS c1 FROM u WHERE false UNION (SELECT k, x FROM u UNION SELECT id, k FROM u)) GROUP BY c1 ORDER BY c1",
                "1 1; 2 1; 10 1; 20 1; NULL 2",
            ),
            (
                "SELECT c1 + 1 FROM (SELECT id AS c0, id AS c1 FROM u WHERE 1 = 0 UNION ALL (SELECT k, x FROM u UNION ALL (SELECT id AS k, k AS x FROM u WHERE false UNION ALL SELECT a.x, b.id FROM u a JOIN u b ON a.id = b.k))) WHERE c1 > 1 ORDER BY 1",
                "3; 11; 21",
            ),
            (
                "WITH q AS (SELECT id AS c0, id AS c1 FROM u LIMIT 0) SELECT c1 FROM (SELECT * FROM q UNION ALL (SELECT k, x FROM u UNION ALL SELECT x, k FROM u)) ORDER BY c1 LIMIT 2",
                "1; 2",
            ),
        ],
    )
    .await;
}

/// When this test fails, `sql::workarounds::joins_and_unions::lone_branches` need not rename
/// columns.
#[tokio::test]
async fn stock_unions_still_take_names_from_a_later_branch() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, NAMED).await.unwrap();
    let e = stock_error(&ctx, NAMELESS).await;
    assert!(e.contains("does not match with the projection expression"), "{e}");
}

/// The rewrite of EXCEPT ALL numbers equal rows. Its inputs may be sorted, and cast to common
/// types.
#[tokio::test]
async fn except_all_may_cast_its_keys_above_sorted_rows() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| display_path(&dir.path().join(name));
    let (t, o) = (file("t.parquet"), file("o.parquet"));
    let setup = [
        format!(
            "COPY (SELECT * FROM (VALUES (1::INT, 'a', 1::INT), (2, 'b', NULL), (2, 'b', NULL)) v(id, k, x)) TO '{t}'"
        ),
        format!(
            "COPY (SELECT * FROM (VALUES (2::INT, 'b', NULL::INT), (3, 'c', 4)) v(id, k, x)) TO '{o}'"
        ),
    ];
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(1));
    for statement in &setup {
        serrate::sql::sql(&ctx, statement).await.unwrap().collect().await.unwrap();
    }
    let sql = format!(
        "SELECT * FROM ((SELECT id::BIGINT AS id, k, x FROM '{t}') EXCEPT ALL ((SELECT b.id, b.k, b.x FROM '{o}' a JOIN '{o}' b ON a.id = b.id) INTERSECT ALL (SELECT id, k, x FROM '{o}'))) ORDER BY id"
    );
    assert_eq!(query_texts(&ctx, &sql).await, ["1 a 1", "2 b "]);
}

const PAIRS: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 20), (2, 30), (NULL, 10), (3, NULL), (2, 20)) v(a, b)";

/// Columns of nested unions are matched by position, whatever their names.
#[tokio::test]
async fn nested_unions_match_columns_by_position() {
    let swapped = "(SELECT a, b FROM t UNION ALL SELECT DISTINCT b, a FROM t)";
    let joined = "(SELECT a FROM t UNION ALL SELECT r.b FROM t l, t r WHERE l.a = 1)";
    let cases = [
        (
            format!("SELECT b, k, count(*) FROM (SELECT b, 1 AS k FROM {swapped} UNION ALL SELECT b, 2 FROM {swapped}) GROUP BY b, k HAVING k = 1 ORDER BY b, k"),
            "1 1 1; 2 1 2; 3 1 1; 10 1 1; 20 1 2; 30 1 1; NULL 1 2",
        ),
        (
            format!("SELECT sum(a), sum(b) FROM (SELECT b AS a, a AS b FROM {swapped} UNION ALL SELECT a, b FROM t)"),
            "96 168",
        ),
        (
            format!("SELECT a FROM (SELECT a + 0 AS a FROM {joined} UNION ALL SELECT 100) WHERE a > 9 ORDER BY a"),
            "10; 20; 20; 30; 100",
        ),
        (
            "SELECT a, b FROM t WHERE false UNION ALL SELECT DISTINCT b, a FROM t ORDER BY a, b".into(),
            "10 NULL; 20 1; 20 2; 30 2; NULL 3",
        ),
        (
            "SELECT x3 FROM (SELECT a AS x1, b AS x3 FROM t WHERE false UNION ALL SELECT DISTINCT a, b FROM t) d ORDER BY 1".into(),
            "10; 20; 20; 30; NULL",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[PAIRS], &cases).await;
}

/// When this test fails, the part of `serrate_flat_unions` that names columns can be removed, and
/// if long UNIONs are planned in linear time as well, the rule.
#[tokio::test]
async fn stock_projections_of_unions_still_mix_columns() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, PAIRS).await.unwrap();
    let swapped = "(SELECT a, b FROM t UNION ALL SELECT DISTINCT b, a FROM t)";
    let sql = format!(
        "SELECT sum(a) FROM (SELECT b AS a, a AS b FROM {swapped} UNION ALL SELECT a, b FROM t)"
    );
    let found = stock_batches(&ctx, &sql).await;
    let is_right = found.is_ok_and(|rows| to_ints(&sql, Ok(rows)) == [96]);
    assert!(!is_right, "DataFusion is fixed");
}

#[tokio::test]
async fn set_operations_in_parentheses_may_be_scalar_subqueries() {
    let cases = [
        ("SELECT ((SELECT 1) UNION (SELECT 1)) AS q", "1"),
        ("SELECT ((SELECT 1) UNION (SELECT 1)) + 1", "2"),
        ("SELECT (((SELECT 3) EXCEPT (SELECT 1)))", "3"),
        ("SELECT (((SELECT 1) UNION (SELECT 2)) INTERSECT (SELECT 2))", "2"),
        ("SELECT x FROM (VALUES (1), (2)) v(x) WHERE x = ((SELECT 2) INTERSECT (SELECT 2))", "2"),
        ("SELECT 5 WHERE 1 IN ((SELECT 1) UNION (SELECT 2))", "5"),
        (
            "SELECT x FROM range(4) v(x) WHERE x = ANY ((SELECT 1) UNION (SELECT 2)) ORDER BY x",
            "1; 2",
        ),
        ("SELECT x FROM range(4) v(x) WHERE x > ALL ((SELECT 1) UNION ALL SELECT 2)", "3"),
        (
            "SELECT x FROM range(4) v(x) WHERE x <> ALL((SELECT 0) EXCEPT (SELECT 1)) AND x < 3 ORDER BY x",
            "1; 2",
        ),
        (
            "SELECT x FROM range(4) v(x) WHERE x < SOME (((SELECT 2)) INTERSECT (SELECT 2)) ORDER BY x",
            "0; 1",
        ),
        ("SELECT ((SELECT 1) + 1), ((SELECT 2)), (SELECT 3 UNION SELECT 3)", "2 2 3"),
    ];
    expect_rows(&[], &cases).await;
}

/// Returns the statement `parts` with `$A`, `$B` and `$C` replaced by tensors of the shapes (2, 3),
/// (3, 2) and (2, 2).
fn write_tensors(parts: &str) -> String {
    parts
        .replace("$A", "densify([[1, 2], [3]], [2, 3])")
        .replace("$B", "densify([[1, 2], [3]], [3, 2])")
        .replace("$C", "densify([[1, 2], [3]], [2, 2])")
}

#[tokio::test]
async fn unions_are_tensors_only_if_all_queries_have_one_shape() {
    let dir = tempfile::tempdir().unwrap();
    let same = "{\"shape\":[2,3]}";
    let cases = [
        ("SELECT $A x UNION ALL SELECT $A", same),
        ("SELECT NULL x UNION ALL SELECT $A", same),
        ("SELECT $A x UNION ALL SELECT NULL", same),
        ("SELECT $A x UNION ALL SELECT densify([[0.5::DOUBLE]], [2, 3])", same),
        ("SELECT $A x EXCEPT SELECT $B", same),
        ("SELECT $A x EXCEPT SELECT $C", same),
        ("SELECT $A x UNION ALL SELECT $B", "NULL"),
        ("SELECT $A x UNION ALL SELECT $C", "NULL"),
        ("SELECT $A x UNION SELECT $B", "NULL"),
        ("SELECT $A x UNION SELECT $C", "NULL"),
        ("SELECT $A x UNION ALL SELECT [1, 2, 3, 4, 5, 6]", "NULL"),
        ("SELECT [1, 2, 3, 4, 5, 6] x UNION ALL SELECT $A", "NULL"),
        ("SELECT coalesce($A, $A) x UNION ALL SELECT $A", "NULL"),
        ("SELECT $A x UNION ALL SELECT $A UNION ALL SELECT $B", "NULL"),
        ("SELECT $A x UNION ALL SELECT $B UNION ALL SELECT NULL", "NULL"),
        ("SELECT NULL x UNION ALL SELECT $A UNION ALL SELECT $A", same),
        ("SELECT NULL x UNION ALL SELECT $A UNION ALL SELECT $B", "NULL"),
        ("SELECT NULL x UNION SELECT $A UNION SELECT $B", "NULL"),
        ("(SELECT $A x UNION ALL SELECT $B) UNION ALL (SELECT $A UNION ALL SELECT $B)", "NULL"),
        ("SELECT $A x UNION ALL BY NAME SELECT $A x", same),
        ("SELECT $A x UNION ALL BY NAME SELECT $B x", "NULL"),
        (
            "SELECT x FROM (SELECT coalesce($A, $A) x UNION ALL SELECT $A) UNION ALL SELECT $A",
            "NULL",
        ),
        ("SELECT CASE WHEN random() < 2 THEN $A ELSE $B END x", "NULL"),
    ];
    let ctx = create_parallel_session();
    // A field without parameters of an extension type must not have the name of one.
    let [read, name] =
        ["metadata", "name"].map(|key| format!("arrow_metadata(x, 'ARROW:extension:{key}')"));
    let read = format!("coalesce({read}, {name})");
    for (at, (query, expected)) in cases.into_iter().enumerate() {
        let query = write_tensors(query);
        let file = display_path(&dir.path().join(format!("{at}.arrow")));
        for (setup, table) in [
            (String::new(), format!("({query})")),
            (format!("CREATE OR REPLACE TABLE t AS {query}"), "t".to_owned()),
            (format!("CREATE OR REPLACE VIEW w AS {query}"), "w".to_owned()),
            (format!("COPY ({query}) TO '{file}'"), format!("'{file}'")),
        ] {
            if !setup.is_empty() {
                query_batches(&ctx, &setup).await.unwrap();
            }
            let found = query_rows(&ctx, &format!("SELECT DISTINCT {read} FROM {table}")).await;
            assert_eq!(found, expected, "{setup}\n{query}");
        }
    }
    for (union, values) in [
        ("SELECT $A x UNION ALL SELECT $B", "[1, 2, 3, 0, 0, 0]; [1, 2, 0, 3, 0, 0]"),
        ("SELECT $A x UNION ALL SELECT $C", "[1, 2, 3, 0]; [1, 2, 0, 3, 0, 0]"),
    ] {
        let union = write_tensors(union);
        let created = format!("CREATE OR REPLACE TABLE t AS {union}");
        query_batches(&ctx, &created).await.unwrap();
        for table in [format!("({union})"), "t".to_owned()] {
            let sorted = format!("SELECT x FROM {table} ORDER BY x DESC");
            assert_eq!(query_rows(&ctx, &sorted).await, values, "{sorted}");
        }
    }
    // The table takes rows of every size, because its lists are not tensors.
    query_batches(&ctx, "INSERT INTO t SELECT [7]").await.unwrap();
    assert_eq!(query_rows(&ctx, "SELECT count(*) FROM t").await, "3");
}

/// When this test fails, `serrate_union_tensors` can be removed.
#[tokio::test]
async fn stock_unions_still_take_tensors_from_the_last_query() {
    use datafusion::arrow::array::{Array, FixedSizeListArray};
    use datafusion::arrow::datatypes::{Field, Int64Type, Schema};

    let ctx = SessionContext::new();
    for (table, shape) in [("a", "[2,3]"), ("b", "[3,2]")] {
        let values = (1..=6).map(Some);
        let values = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>([Some(values)], 6);
        let tag = [("name", "arrow.fixed_shape_tensor"), ("metadata", shape)];
        let tag = tag.map(|(key, value)| (format!("ARROW:extension:{key}"), value.to_owned()));
        let field = Field::new("x", values.data_type().clone(), true).with_metadata(tag.into());
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(values)]).unwrap();
        ctx.register_batch(table, batch).unwrap();
    }
    let union = ctx.sql("SELECT x FROM a UNION ALL SELECT x FROM b").await.unwrap();
    let plan = union.create_physical_plan().await.unwrap();
    let schema = plan.schema();
    assert_eq!(schema.field(0).metadata().get("ARROW:extension:metadata").unwrap(), "[3,2]");
}
