//! ROLLUP, CUBE and GROUPING SETS with tuples, positions and nested sets; keys of GROUP BY.

use super::*;

const TABLE: &str =
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 2, 5), (1, 3, 5), (2, 2, 6)) v(a, b, c)";

#[tokio::test]
async fn tuples_in_rollup_and_cube_are_one_key() {
    let by = |groups: &str| {
        format!(
            "SELECT a, b, count(*) FROM t GROUP BY {groups} ORDER BY a NULLS LAST, b NULLS LAST, 3"
        )
    };
    let pairs = "1 2 1; 1 3 1; 2 2 1";
    let of_a = "1 2 1; 1 3 1; 1 NULL 2; 2 2 1; 2 NULL 1";
    let cases = [
        ("ROLLUP ((a, b))", format!("{pairs}; NULL NULL 3")),
        ("ROLLUP ((a), b)", format!("{of_a}; NULL NULL 3")),
        ("ROLLUP (a, (a, b))", format!("{of_a}; NULL NULL 3")),
        ("CUBE ((a, b))", format!("{pairs}; NULL NULL 3")),
        (
            "CUBE ((a, b), c)",
            "1 2 1; 1 2 1; 1 3 1; 1 3 1; 2 2 1; 2 2 1; NULL NULL 1; NULL NULL 2; NULL NULL 3"
                .into(),
        ),
        ("GROUPING SETS ((a, b), a, ())", format!("{of_a}; NULL NULL 3")),
        ("GROUPING SETS (ROLLUP (a, b))", format!("{of_a}; NULL NULL 3")),
        ("GROUPING SETS ((a, b), ROLLUP ((a)))", format!("{of_a}; NULL NULL 3")),
        ("GROUPING SETS (CUBE ((a, b)))", format!("{pairs}; NULL NULL 3")),
        ("(a, b)", pairs.into()),
        ("a, (b)", pairs.into()),
        ("a, ROLLUP ((b, c))", of_a.into()),
        ("a, b, ()", pairs.into()),
        ("ROLLUP (1, 2)", format!("{of_a}; NULL NULL 3")),
        ("ROLLUP ((1, 2))", format!("{pairs}; NULL NULL 3")),
        ("GROUPING SETS ((1, 2), 1)", of_a.into()),
    ];
    let cases = cases.map(|(groups, expected)| (by(groups), expected));
    let cases: Vec<(&str, &str)> =
        cases.iter().map(|(sql, rows)| (sql.as_str(), rows.as_str())).collect();
    expect_rows(&[TABLE], &cases).await;
}

#[tokio::test]
async fn keys_of_grouping_sets_may_begin_with_a_parenthesis() {
    let by = |groups: &str| {
        format!(
            "SELECT a, (b) + 1, count(*) FROM t GROUP BY {groups} ORDER BY a NULLS LAST, 2 NULLS LAST, 3"
        )
    };
    let of_a = "1 3 1; 1 4 1; 1 NULL 2; 2 3 1; 2 NULL 1";
    let of_b = "NULL 3 2; NULL 4 1";
    let cases = [
        ("ROLLUP (a, (b) + 1)", format!("{of_a}; NULL NULL 3")),
        ("CUBE ((b) + 1, a)", format!("{of_a}; {of_b}; NULL NULL 3")),
        ("GROUPING SETS ((b) + 1, a, (a, (b) + 1))", format!("{of_a}; {of_b}")),
        (
            "GROUPING SETS (ROLLUP ((b) + 1), a, (a, (b) + 1))",
            format!("{of_a}; {of_b}; NULL NULL 3"),
        ),
    ];
    let cases = cases.map(|(groups, expected)| (by(groups), expected));
    let mut cases: Vec<(&str, &str)> =
        cases.iter().map(|(sql, rows)| (sql.as_str(), rows.as_str())).collect();
    cases.push((
        "SELECT a, b::DECIMAL(4, 1), count(*) FROM t GROUP BY ROLLUP (a, (b)::DECIMAL(4, 1)) ORDER BY 1 NULLS LAST, 2 NULLS LAST",
        "1 2.0 1; 1 3.0 1; 1 NULL 2; 2 2.0 1; 2 NULL 1; NULL NULL 3",
    ));
    expect_rows(&[TABLE], &cases).await;
}

#[tokio::test]
async fn grouping_identifies_sets_and_the_empty_set_is_one_group() {
    expect_rows(
        &[TABLE],
        &[
            (
                "SELECT a, grouping(a), grouping(b), sum(c) FROM t GROUP BY ROLLUP ((a, b)) ORDER BY 2, 1, 4",
                "1 0 0 5; 1 0 0 5; 2 0 0 6; NULL 1 1 16",
            ),
            ("SELECT count(*) FROM t GROUP BY ()", "3"),
            ("SELECT count(*) FROM t WHERE a > 9 GROUP BY ()", "0"),
            ("SELECT a + b AS s, count(*) FROM t GROUP BY ROLLUP ((s)) ORDER BY s NULLS LAST", "3 1; 4 2; NULL 3"),
        ],
    )
    .await;
    let ctx = create_parallel_session();
    let parts: Vec<String> = (0..13).map(|i| format!("(a, a + {i})")).collect();
    let sql = format!("SELECT 1 FROM (VALUES (1)) t(a) GROUP BY CUBE ({})", parts.join(", "));
    let e = serrate::sql::sql(&ctx, &sql).await.unwrap_err().to_string();
    assert!(e.contains("CUBE of 13 columns has more than 4096 grouping sets"), "{e}");
}

const REPEATED: &str = "SELECT a, count(*) FROM (VALUES (1), (1), (2)) t(a) GROUP BY ROLLUP (a, a)";

#[tokio::test]
async fn a_column_may_be_in_a_rollup_twice() {
    let cases = [
        (&format!("{REPEATED} ORDER BY a NULLS LAST, 2"), "1 2; 1 2; 2 1; 2 1; NULL 3"),
        (
            &"SELECT a, count(*) FROM t GROUP BY CUBE (a, A) ORDER BY a NULLS LAST, 2".to_owned(),
            "1 2; 1 2; 1 2; 2 1; 2 1; 2 1; NULL 3",
        ),
        (
            &"SELECT a FROM t GROUP BY ROLLUP (a, a) UNION ALL SELECT b FROM t GROUP BY ROLLUP (1, b) ORDER BY 1".to_owned(),
            "1; 1; 2; 2; 2; 2; 3; 3; NULL; NULL",
        ),
        (
            &"SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b, a) ORDER BY 1 NULLS LAST, 2 NULLS LAST, 3 LIMIT 4".to_owned(),
            "1 2 1; 1 2 1; 1 3 1; 1 3 1",
        ),
        (
            &"SELECT a, count(*) FROM t GROUP BY ROLLUP (t.a, a) ORDER BY a NULLS LAST, 2".to_owned(),
            "1 2; 1 2; 2 1; 2 1; NULL 3",
        ),
        (
            &"SELECT a AS k, count(*) FROM t GROUP BY ROLLUP (k, T.A) ORDER BY k NULLS LAST, 2".to_owned(),
            "1 2; 1 2; 2 1; 2 1; NULL 3",
        ),
        (
            &"SELECT a + 0 AS k, count(*) FROM t GROUP BY CUBE (k, t.a + 0) ORDER BY k NULLS LAST, 2".to_owned(),
            "1 2; 1 2; 1 2; 2 1; 2 1; 2 1; NULL 3",
        ),
        (
            &"SELECT count(*) FROM t p JOIN t q ON p.a = q.a AND p.b = q.b GROUP BY ROLLUP (p.a, q.a) ORDER BY 1".to_owned(),
            "1; 1; 2; 2; 3",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[TABLE], &cases).await;
    let ctx = create_parallel_session();
    query_batches(&ctx, TABLE).await.unwrap();
    let ambiguous = "SELECT count(*) FROM t p JOIN t q ON p.b = q.b GROUP BY ROLLUP (p.a, a)";
    let e = rows_or_error(&ctx, ambiguous).await;
    assert!(e.contains("Ambiguous reference to unqualified field a"), "{e}");
    for (sql, words) in [
        (
            "SELECT a FROM t GROUP BY ROLLUP (a, 3)",
            "has the position 3, but SELECT has 1 column(s)",
        ),
        ("SELECT a FROM t GROUP BY CUBE (0)", "has the position 0"),
        (
            "SELECT *, a AS k FROM (SELECT a, b FROM t) GROUP BY GROUPING SETS ((1, 2), (1))",
            "SELECT has * at this position or before it",
        ),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

#[tokio::test]
async fn positions_that_refer_to_numbers_are_resolved_once() {
    let cases = [
        (
            "SELECT * FROM (SELECT 5 AS n, count(*) AS c FROM t GROUP BY ROLLUP (1)) q ORDER BY n",
            "5 3; NULL 3",
        ),
        ("SELECT 5, count(*) FROM t GROUP BY ROLLUP (1) ORDER BY 1", "5 3; NULL 3"),
        (
            "SELECT * FROM (SELECT 2 AS n, a, count(*) AS c FROM t GROUP BY ROLLUP (1, 2)) q ORDER BY n, a",
            "2 1 2; 2 2 1; 2 NULL 3; NULL NULL 3",
        ),
        (
            "SELECT * FROM (SELECT 2, max(a) AS m, count(*) AS c FROM t GROUP BY CUBE (1)) q ORDER BY 1",
            "2 2 3; NULL 2 3",
        ),
        (
            "SELECT * FROM (SELECT 2 AS n, b + 0 AS m, count(*) AS c FROM t GROUP BY GROUPING SETS ((1), ROLLUP (1, 2))) q ORDER BY n, m",
            "2 2 2; 2 3 1; 2 NULL 3; 2 NULL 3; NULL NULL 3",
        ),
        (
            "SELECT * FROM (SELECT 2 AS n, a AS m, count(*) AS c FROM t GROUP BY a, CUBE (1)) q ORDER BY n, m",
            "2 1 2; 2 2 1; NULL 1 2; NULL 2 1",
        ),
    ];
    expect_rows(&[TABLE], &cases).await;
}

/// When this test fails, `are_distinct_columns` of `sql::statement::keys::grouping` need not
/// compare the columns.
#[tokio::test]
async fn stock_columns_in_a_rollup_are_still_distinct() {
    let e = stock_error(&SessionContext::new(), REPEATED).await;
    assert!(e.contains("duplicate"), "{e}");
}

/// A query in which `k` determines `v` and `w`, because `k` is the only key of its GROUP BY.
const KEYED: &str = "(SELECT k, max(v) AS v, max(w) AS w FROM (VALUES (1, 2, 5), (1, 3, 6), (2, 4, 7)) t(k, v, w) GROUP BY k)";

#[tokio::test]
async fn keys_next_to_grouping_sets_add_no_columns_to_the_sets() {
    let by = |columns: &str, groups: &str| {
        format!("SELECT {columns}, count(*) FROM {KEYED} u GROUP BY {groups} ORDER BY 1, 2, 3")
    };
    let both = "1 3 1; 1 NULL 1; 2 4 1; 2 NULL 1";
    let cases = [
        (by("k, v", "k, ROLLUP (v)"), both),
        (by("k, v", "u.k, CUBE (v)"), both),
        (by("k, v", "1, ROLLUP (2)"), both),
        (by("k, v", "ROLLUP (v), k"), both),
        (by("k AS key, v", "key, ROLLUP (v)"), both),
        (by("k, v", "GROUPING SETS ((v), ()), k"), both),
        (
            by("k, v + w", "k, ROLLUP (v), ROLLUP (w)"),
            "1 9 1; 1 NULL 1; 1 NULL 1; 1 NULL 1; 2 11 1; 2 NULL 1; 2 NULL 1; 2 NULL 1",
        ),
        (by("k + 1 AS n, v", "n, ROLLUP (v)"), "2 3 1; 2 NULL 1; 3 4 1; 3 NULL 1"),
        (by("k, grouping(v)", "k, ROLLUP (v)"), "1 0 1; 1 1 1; 2 0 1; 2 1 1"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &cases).await;
}

/// When this test fails, `join_columns_to_sets` of `sql::statement::keys::grouping` can be removed.
#[tokio::test]
async fn stock_keys_beside_rollup_still_add_columns() {
    let sql = format!(
        "SELECT count(*) FROM (SELECT k, v FROM {KEYED} u GROUP BY k, ROLLUP (v) HAVING v IS NULL)"
    );
    assert_eq!(stock_one(&SessionContext::new(), &sql).await, 0);
}

const SOURCE: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 20, 'x'), (2, 30, 'y'), (NULL, 10, 'x'), (3, NULL, NULL), (2, 20, 'y')) v(a, b, c)";
const KEYS: &str = "CREATE TABLE k AS SELECT a, b, c, TIMESTAMP '2024-01-01 06:00:00' + INTERVAL '1 day' * (b / 10)::INT AS ts, [a, b] AS l FROM t";

#[tokio::test]
async fn grouping_sets_may_have_keys_that_rules_rewrite() {
    let by = |key: &str| {
        format!("SELECT {key}, count(*) FROM k GROUP BY ROLLUP ({key}) ORDER BY 1 NULLS FIRST, 2")
    };
    let cases = [
        (by("a::VARCHAR"), "NULL 1; NULL 5; 1 1; 2 2; 3 1"),
        (by("-a"), "NULL 1; NULL 5; -3 1; -2 2; -1 1"),
        (by("a + 0.5"), "NULL 1; NULL 5; 1.5 1; 2.5 2; 3.5 1"),
        (by("concat(c, a)"), "NULL 5; 3 1; x 1; x1 1; y2 2"),
        (by("coalesce(a, 2.5)"), "NULL 5; 1.0 1; 2.0 2; 2.5 1; 3.0 1"),
        (by("xor(a, a)"), "NULL 1; NULL 5; 0 4"),
        (by("l > [1]"), "NULL 5; true 5"),
        (by("a IN (1, coalesce(b, 1))"), "NULL 1; NULL 5; false 3; true 1"),
        (by("a IN (1, 2) AND a IN (2, 3)"), "NULL 1; NULL 5; false 2; true 2"),
        (by("a > 1 AND 10 / a > 2"), "NULL 1; NULL 5; false 1; true 3"),
        (by("a::DOUBLE::INT = 2"), "NULL 1; NULL 5; false 2; true 2"),
        (by("c SIMILAR TO 'x.*'"), "NULL 1; NULL 5; false 2; true 2"),
        (by("ts > '2024-01-03'"), "NULL 1; NULL 5; false 1; true 3"),
        (by("ts::DATE"), "NULL 1; NULL 5; 2024-01-02 1; 2024-01-03 2; 2024-01-04 1"),
        (by("ts::TIMESTAMP(0) > '2024-01-03'"), "NULL 1; NULL 5; false 1; true 3"),
        (
            "SELECT count(*) FROM k GROUP BY ROLLUP (ts AT TIME ZONE 'UTC') ORDER BY 1".into(),
            "1; 1; 1; 2; 5",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[SOURCE, KEYS], &cases).await;
}

#[tokio::test]
async fn rewritten_keys_agree_in_all_grouping_sets() {
    let setup = [
        SOURCE,
        KEYS,
        "CREATE VIEW v AS SELECT a::VARCHAR AS s, count(*) AS n FROM k GROUP BY ROLLUP (a::VARCHAR)",
        "PREPARE p AS SELECT a::VARCHAR, count(*) FROM k WHERE b < $1 GROUP BY ROLLUP (a::VARCHAR) ORDER BY 1 NULLS FIRST, 2",
        "CREATE TABLE d AS SELECT * FROM t",
        "DELETE FROM d WHERE a::VARCHAR IN (SELECT a::VARCHAR FROM t GROUP BY ROLLUP (a::VARCHAR) HAVING count(*) = 2)",
        "UPDATE d SET b = (SELECT max(n) FROM (SELECT -a AS n FROM t GROUP BY CUBE (-a))) WHERE a = 1",
    ];
    let cases = [
        (
            "SELECT b, a::VARCHAR, count(*) FROM k GROUP BY b, ROLLUP (a::VARCHAR) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3",
            "NULL NULL 1; NULL 3 1; 10 NULL 1; 10 NULL 1; 20 NULL 2; 20 1 1; 20 2 1; 30 NULL 1; 30 2 1",
        ),
        (
            "SELECT a::VARCHAR, c, count(*) FROM k GROUP BY CUBE (a::VARCHAR, c) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3",
            "NULL NULL 1; NULL NULL 1; NULL NULL 5; NULL x 1; NULL x 2; NULL y 2; 1 NULL 1; 1 x 1; 2 NULL 2; 2 y 2; 3 NULL 1; 3 NULL 1",
        ),
        (
            "SELECT a::VARCHAR, c, sum(b) FROM k GROUP BY GROUPING SETS ((a::VARCHAR, c), (a::VARCHAR), ()) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3",
            "NULL NULL 10; NULL NULL 80; NULL x 10; 1 NULL 20; 1 x 20; 2 NULL 50; 2 y 50; 3 NULL NULL; 3 NULL NULL",
        ),
        (
            "SELECT a::VARCHAR, grouping(a::VARCHAR), count(*) FROM k GROUP BY ROLLUP (a::VARCHAR) ORDER BY 2, 1 NULLS FIRST",
            "NULL 0 1; 1 0 1; 2 0 2; 3 0 1; NULL 1 5",
        ),
        (
            "SELECT ts::DATE, grouping(ts::DATE) AS g, max(ts::DATE) FROM k GROUP BY ROLLUP (ts::DATE) ORDER BY g, 1 NULLS FIRST",
            "NULL 0 NULL; 2024-01-02 0 2024-01-02; 2024-01-03 0 2024-01-03; 2024-01-04 0 2024-01-04; NULL 1 2024-01-04",
        ),
        (
            "SELECT a::VARCHAR || '!', count(*) FROM k GROUP BY ROLLUP (a::VARCHAR) HAVING count(*) > 1 ORDER BY 1 NULLS FIRST, 2",
            "NULL 5; 2! 2",
        ),
        (
            "SELECT a::VARCHAR, count(*) FROM k GROUP BY ROLLUP (1) ORDER BY 2 DESC, 1 LIMIT 2",
            "NULL 5; 2 2",
        ),
        (
            "WITH r AS (SELECT -a AS n, sum(b) AS s FROM k GROUP BY ROLLUP (n)) SELECT n, s FROM r WHERE n IS NOT NULL ORDER BY n",
            "-3 NULL; -2 50; -1 20",
        ),
        (
            "SELECT n, s FROM (SELECT a + 0.5 AS n, sum(b) AS s FROM k GROUP BY CUBE (a + 0.5)) WHERE n > 2 ORDER BY n",
            "2.5 50; 3.5 NULL",
        ),
        (
            "SELECT a::DOUBLE::INT = 2, sum(b + 1), sum(b + 2) FROM k GROUP BY ROLLUP (a::DOUBLE::INT = 2) ORDER BY 2, 1",
            "NULL 11 12; false 21 22; true 52 54; NULL 84 88",
        ),
        (
            "SELECT p.l[1:1], count(*) FROM k p JOIN k q ON p.a = q.a GROUP BY ROLLUP (p.l[1:1]) ORDER BY 2, 1",
            "[1] 1; [3] 1; [2] 4; NULL 6",
        ),
        (
            "SELECT a::INT + 1, a + 1, count(*) FROM t GROUP BY ROLLUP (a::INT + 1, a + 1) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3",
            "NULL NULL 1; NULL NULL 1; NULL NULL 5; 2 NULL 1; 2 2 1; 3 NULL 2; 3 3 2; 4 NULL 1; 4 4 1",
        ),
        (
            "SELECT a, a::VARCHAR, count(*) FROM t GROUP BY GROUPING SETS ((a), (a::VARCHAR)) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3",
            "NULL NULL 1; NULL NULL 1; NULL 1 1; NULL 2 2; NULL 3 1; 1 NULL 1; 2 NULL 2; 3 NULL 1",
        ),
        (
            "SELECT a IN (1, 2) AND a IN (2, 3), c, count(*) FROM k GROUP BY GROUPING SETS ((a IN (1, 2) AND a IN (2, 3), c), (a IN (1, 2) AND a IN (2, 3))) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3",
            "NULL NULL 1; NULL x 1; false NULL 1; false NULL 2; false x 1; true NULL 2; true y 2",
        ),
        (
            "SELECT a::DOUBLE::INT = 2, c, count(*) FROM k GROUP BY GROUPING SETS ((a::DOUBLE::INT = 2, c), (a::DOUBLE::INT = 2)) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3",
            "NULL NULL 1; NULL x 1; false NULL 1; false NULL 2; false x 1; true NULL 2; true y 2",
        ),
        ("SELECT s, n FROM v ORDER BY n DESC, s LIMIT 2", "NULL 5; 2 2"),
        ("EXECUTE p(30)", "NULL 1; NULL 3; 1 1; 2 1"),
        ("SELECT a, b FROM d ORDER BY a", "1 -1; 3 NULL; NULL 10"),
    ];
    expect_rows(&setup, &cases).await;
}

const INTEGERS: &str = "SELECT 5 AS p, count(*) AS n FROM (VALUES (1), (2)) t(a) GROUP BY p";

#[tokio::test]
async fn aliased_integers_in_group_by_are_not_positions() {
    expect_rows(
        &[TABLE],
        &[
            (INTEGERS, "5 2"),
            ("SELECT 3 AS p, a, count(*) FROM t GROUP BY p, a ORDER BY a", "3 1 2; 3 2 1"),
            ("SELECT 2 AS p, count(*) FROM t GROUP BY ROLLUP (p) ORDER BY p", "2 3; NULL 3"),
            ("SELECT a, count(*) FROM t GROUP BY 1 ORDER BY 1", "1 2; 2 1"),
        ],
    )
    .await;
}

/// When this test fails, `cast_grouped_integers` of `sql::statement::keys::grouping` can be
/// removed.
#[tokio::test]
async fn stock_integers_in_group_by_are_still_positions() {
    let e = stock_error(&SessionContext::new(), INTEGERS).await;
    assert!(e.contains("position 5"), "{e}");
}

/// When this test fails, `sql::statement::keys::grouping` can be removed.
#[tokio::test]
async fn stock_tuples_in_rollup_still_fail() {
    let ctx = SessionContext::new();
    let e =
        stock_error(&ctx, "SELECT a FROM (VALUES (1, 2)) t(a, b) GROUP BY ROLLUP ((a, b))").await;
    assert!(e.contains("Tuple expressions"), "{e}");
}

const DISTINCT_SUMS: &str =
    "SELECT sum(DISTINCT f) AS s FROM (VALUES (1.5, true), (1.5, true), (2.0, NULL)) t(f, b)
    GROUP BY CAST(b AS INT), b";

#[tokio::test]
async fn distinct_sums_are_grouped_by_a_cast() {
    let sql = format!("SELECT CAST(sum(s) * 10 AS BIGINT) FROM ({DISTINCT_SUMS})");
    assert_eq!(query_int(&create_parallel_session(), &sql).await, 35);
}

/// When this test fails, `sql::workarounds::grouping` can be removed.
#[tokio::test]
async fn stock_distinct_sums_by_a_cast_still_fail() {
    let message = stock_error(&SessionContext::new(), DISTINCT_SUMS).await;
    assert!(message.contains("single_distinct_aggregation_to_group_by"), "{message}");
}

#[tokio::test]
async fn a_constant_having_makes_one_group() {
    let cases = [
        ("SELECT 1 FROM range(3) HAVING true", "1"),
        ("SELECT 1 FROM range(3) HAVING 1 = 2", ""),
        ("SELECT 1 FROM range(3) HAVING NULL", ""),
        ("SELECT 1 HAVING 1 = 1 OR false", "1"),
        ("SELECT 7 FROM range(2) HAVING 1 BETWEEN 0 AND 2", "7"),
        ("SELECT 7 FROM range(2) HAVING coalesce(true)", "7"),
        ("SELECT 7 FROM range(2) HAVING 'a' LIKE 'b' OR 2 NOT IN (1, 3)", "7"),
        ("SELECT 7 FROM range(2) HAVING CASE WHEN 1 > 2 THEN true ELSE false END", ""),
        ("SELECT count(*) FROM range(3) HAVING true", "3"),
        ("SELECT x FROM range(2) t(x) GROUP BY x HAVING true ORDER BY x", "0; 1"),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn sums_and_means_of_null_are_null() {
    let cases = [
        ("SELECT sum(NULL), avg(NULL), sum(DISTINCT NULL)", "NULL NULL NULL"),
        ("SELECT sum(x), avg(x), count(x) FROM (SELECT NULL AS x FROM range(3))", "NULL NULL 0"),
        ("SELECT k, sum(NULL) FROM range(2) t(k) GROUP BY k ORDER BY k", "0 NULL; 1 NULL"),
        ("SELECT sum(NULL) OVER (ORDER BY x ROWS 1 PRECEDING) FROM range(2) t(x)", "NULL; NULL"),
        ("SELECT arrow_typeof(sum(NULL)), arrow_typeof(avg(NULL))", "Int64 Float64"),
        ("SELECT coalesce(sum(NULL), 0) + 1", "1"),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn groups_are_ordered_by_the_positions_of_expressions() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 1), (2, 'a', 2), (3, NULL, 3)) v(id, g, i)",
    ];
    let cases = [
        ("SELECT i + 1 FROM t GROUP BY i ORDER BY 1 DESC", "4; 3; 2"),
        ("SELECT coalesce(g, 'none'), count(*) FROM t GROUP BY g ORDER BY 1", "a 2; none 1"),
        ("SELECT g, sum(i) * 2 FROM t GROUP BY g ORDER BY 2 DESC, 1 LIMIT 1", "a 6"),
        ("SELECT count(*) * 2 FROM t GROUP BY g ORDER BY ALL", "2; 4"),
        ("SELECT upper(g), sum(i) FROM t GROUP BY ALL ORDER BY 1 NULLS FIRST", "NULL 3; A 3"),
        (
            "SELECT x FROM (SELECT i % 2 AS x FROM t GROUP BY i ORDER BY 1, max(id) LIMIT 2) ORDER BY ALL",
            "0; 1",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

/// The grouped expressions use names of columns that are also aliases of other expressions.
#[tokio::test]
async fn positions_in_group_by_refer_to_columns_not_aliases() {
    let setup = [
        "CREATE TABLE r AS SELECT * FROM (VALUES (1, 3, 10), (2, 2, 20), (3, 1, NULL), (4, NULL, 20), (2, 1, 30)) v(x, y, z)",
    ];
    let cases = [
        (
            "SELECT x % 2, y AS x, count(*) FROM r GROUP BY ALL ORDER BY 1, 2",
            "0 1 1; 0 2 1; 0 NULL 1; 1 1 1; 1 3 1",
        ),
        ("SELECT x % 2, y AS x, count(*) FROM r GROUP BY ALL ORDER BY ALL LIMIT 1", "0 1 1"),
        (
            "SELECT y AS x, coalesce(x, 0) FROM r GROUP BY x, y ORDER BY 2 DESC, 1 LIMIT 2",
            "NULL 4; 1 3",
        ),
        ("SELECT -x, y AS x FROM r GROUP BY 1, 2 ORDER BY 1, 2", "-4 NULL; -3 1; -2 1; -2 2; -1 3"),
        ("SELECT x AS y, y - 1 FROM r GROUP BY x, y HAVING y > 1 ORDER BY 2", "2 1; 1 2"),
        (
            "SELECT * FROM (SELECT x AS y, y + 1 FROM r GROUP BY x, y ORDER BY 2 DESC, 1 LIMIT 2) ORDER BY 1",
            "1 4; 4 NULL",
        ),
        (
            "SELECT y AS x, x % 2, max(z) FROM r GROUP BY 1, 2 ORDER BY 2 DESC, 1",
            "1 1 NULL; 3 1 10; 1 0 30; 2 0 20; NULL 0 20",
        ),
        (
            "SELECT x % 2, y AS z, sum(x) AS x FROM r GROUP BY 1, 2 ORDER BY 1, x DESC, 2",
            "0 NULL 4; 0 1 2; 0 2 2; 1 1 3; 1 3 1",
        ),
        ("SELECT mean(x) + 1, count(*) + 1 FROM r ORDER BY 1, 2", "3.4 6"),
        ("SELECT max(x) - 1 AS y, max(y) + 1 FROM r ORDER BY 2 LIMIT 1", "3 4"),
    ];
    expect_rows(&setup, &cases).await;
}

/// `replace_position` of `sql::statement::names::order_aliases` can be removed once this test
/// fails.
#[tokio::test]
async fn stock_positions_of_groups_are_still_refused() {
    let ctx = SessionContext::new();
    let sql = "SELECT x % 2 FROM (VALUES (9), (10)) v(x) GROUP BY x ORDER BY 1";
    assert!(stock_batches(&ctx, sql).await.is_err());
}

#[tokio::test]
async fn aggregates_ignore_an_order_without_effect() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 1, 1.25), (2, 'a', 2, -0.25), (3, 'b', 2, 10.05)) v(id, g, i, d)",
    ];
    let cases = [
        (
            "SELECT quantile_cont(d, 0.5 ORDER BY id), median(d ORDER BY id), percentile_cont(d, 0.5 ORDER BY id) FROM t",
            "1.25 1.25 1.25",
        ),
        (
            "SELECT g, quantile_cont(d, 0.5 ORDER BY id) FROM t GROUP BY g ORDER BY g",
            "a 0.5; b 10.05",
        ),
        (
            "SELECT g, count(i ORDER BY id), max(i ORDER BY id), min(DISTINCT i ORDER BY i), sum(i ORDER BY id DESC) FROM t GROUP BY g ORDER BY g",
            "a 2 2 1 3; b 1 2 2 2",
        ),
        (
            "SELECT g, bit_or(i ORDER BY id), count(DISTINCT i ORDER BY i), median(d ORDER BY id) FROM t GROUP BY g ORDER BY g",
            "a 3 2 0.5; b 2 1 10.05",
        ),
        ("SELECT max(i ORDER BY id) FROM (SELECT * FROM t UNION ALL SELECT * FROM t)", "2"),
        (
            "SELECT array_agg(i ORDER BY id DESC), string_agg(g, '' ORDER BY id DESC) FROM t",
            "[2, 2, 1] baa",
        ),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY d) FROM t", "1.25"),
    ];
    expect_rows(&setup, &cases).await;
}

/// `drop_order` of `sql::statement::expressions::expr_rewrites` can be removed once this test
/// fails.
#[tokio::test]
async fn stock_orders_of_aggregates_are_still_arguments() {
    let ctx = SessionContext::new();
    let sql = "SELECT max(x ORDER BY y) FROM (VALUES (9, 1), (10, 1)) v(x, y) GROUP BY y";
    assert!(stock_batches(&ctx, sql).await.is_err());
}

#[tokio::test]
async fn conditions_on_random_keys_stay_above_the_groups() {
    let cases = [
        (
            "SELECT DISTINCT k FROM (SELECT random() < 0.5 AS k, count(*) FROM generate_series(1, 1000) GROUP BY 1 HAVING k)",
            "true",
        ),
        (
            "SELECT k, n BETWEEN 900 AND 1100 FROM (SELECT floor(random() * 3)::INT AS k, count(*) AS n FROM generate_series(1, 3000) GROUP BY 1) WHERE k = 1",
            "1 true",
        ),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn unique_columns_may_repeat_null() {
    let setup = [
        "CREATE TABLE t (x INT, y INT, UNIQUE (x) NOT ENFORCED) AS VALUES (NULL, 2), (NULL, 1), (1, 3)",
        "CREATE TABLE u (x INT UNIQUE NOT ENFORCED, y INT) AS VALUES (NULL, 2), (NULL, 1)",
        "CREATE TABLE w (x INT, y INT, z INT, UNIQUE (x, y) NOT ENFORCED) AS VALUES (NULL, 1, 2), (NULL, 1, 3), (1, NULL, 3), (1, NULL, 4)",
        "CREATE TABLE k (x INT NOT NULL, y INT, UNIQUE (x) NOT ENFORCED) AS VALUES (2, 2), (1, 3)",
    ];
    let cases = [
        ("SELECT DISTINCT x FROM t ORDER BY x", "1; NULL"),
        ("SELECT x, sum(y) FROM t GROUP BY x, y ORDER BY x, y", "1 3; NULL 1; NULL 2"),
        ("SELECT DISTINCT x FROM u", "NULL"),
        ("SELECT count(*) FROM (SELECT DISTINCT x, y FROM w)", "2"),
        ("SELECT x, y FROM k GROUP BY x ORDER BY x", "1 3; 2 2"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn group_by_all_of_constants_is_one_group() {
    let cases = [
        ("SELECT 1 AS n, count(*) FROM t WHERE false GROUP BY ALL", "1 0"),
        ("SELECT 'x' AS n, max(a) FROM t WHERE a > 9 GROUP BY ALL", "x NULL"),
        (
            "SELECT 1 + 1, [3], count(*), arg_max(a, b) FROM t WHERE false GROUP BY ALL",
            "2 [3] 0 NULL",
        ),
        ("SELECT 1 AS n, count(*) FROM t GROUP BY ALL", "1 3"),
        ("SELECT 1 AS n, count(*) FROM t GROUP BY ALL HAVING count(*) > 3", ""),
        ("SELECT 1 AS n, a, count(*) FROM t GROUP BY ALL ORDER BY a", "1 1 2; 1 2 1"),
        ("SELECT 1 AS n, a, count(*) FROM t WHERE false GROUP BY ALL", ""),
        ("SELECT 1 AS n, count(*) FROM t WHERE false GROUP BY 1", ""),
        ("SELECT 'x' AS n FROM t WHERE false GROUP BY ALL", ""),
        ("SELECT 'x' AS n FROM t GROUP BY ALL", "x"),
        ("SELECT 1 AS n, (SELECT max(b) FROM t) AS m FROM t WHERE false GROUP BY ALL", ""),
        (
            "SELECT 'x' AS n, max((SELECT count(*) FROM t u WHERE u.a = t.a)) AS m FROM t WHERE false GROUP BY ALL",
            "x NULL",
        ),
        (
            "SELECT 'x' AS n, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM t u WHERE u.b > t.a)) AS m FROM t WHERE false GROUP BY ALL",
            "x 0",
        ),
    ];
    expect_rows(&[TABLE], &cases).await;
}

/// When this test fails, `group_constants_together` can be removed.
#[tokio::test]
async fn stock_constants_in_group_by_all_are_still_keys() {
    let stock = SessionContext::new();
    let sql = "SELECT 1 AS n, count(*) FROM (VALUES (1)) t(a) WHERE false GROUP BY ALL";
    let rows: usize =
        stock_batches(&stock, sql).await.unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 0);
}

#[tokio::test]
async fn order_by_a_column_that_is_not_a_key_is_an_error() {
    let ctx = serrate::sql::session();
    query_batches(&ctx, TABLE).await.unwrap();
    for sql in [
        "SELECT a, count(*) FROM t GROUP BY ALL ORDER BY b",
        "SELECT a FROM t GROUP BY ALL ORDER BY b LIMIT 1",
        "SELECT a, count(*) FROM t GROUP BY a ORDER BY b",
        "SELECT a, sum(b) AS s FROM t GROUP BY ALL ORDER BY s + b",
    ] {
        let message = rows_or_error(&ctx, sql).await;
        assert!(message.contains("not a key of GROUP BY"), "{sql}\n{message}");
        assert!(message.contains("an aggregate such as min(t.b)"), "{sql}\n{message}");
    }
}

#[tokio::test]
async fn any_value_with_an_order_is_the_first_value_of_the_order() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, 1, 2), (1, 3, 4), (1, NULL, 5), (2, 7, 1), (3, NULL, 1)) v(k, a, b)"],
        &[
            ("SELECT any_value(a ORDER BY b DESC), any_value(a ORDER BY b) FROM t WHERE k = 1", "3 1"),
            ("SELECT k, any_value(a ORDER BY b DESC) AS v FROM t GROUP BY k ORDER BY k", "1 3; 2 7; 3 NULL"),
            ("SELECT any_value([a] ORDER BY b DESC) FROM t WHERE k = 1 AND a > 0", "[3]"),
            ("SELECT any_value({'a': a} ORDER BY b DESC).a FROM t WHERE b < 5 AND k = 1", "3"),
            ("SELECT any_value(a ORDER BY b DESC) FILTER (WHERE b < 4 OR k = 3) FROM t", "1"),
            ("SELECT any_value(DISTINCT a ORDER BY a DESC) FROM t", "7"),
            ("SELECT any_value(a ORDER BY b DESC, k) + 1 FROM (SELECT * FROM t WHERE k = 1) q", "4"),
            ("SELECT k FROM t GROUP BY k HAVING any_value(a ORDER BY b DESC) = 3", "1"),
            ("SELECT k FROM t GROUP BY k ORDER BY any_value(a ORDER BY b DESC) DESC NULLS LAST LIMIT 1", "2"),
            ("SELECT any_value(a ORDER BY b DESC) OVER () FROM t WHERE k = 1 LIMIT 1", "3"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    let rows =
        serrate::sql::sql(&ctx, "SELECT any_value(a ORDER BY b) FROM (SELECT 1 AS a, 2 AS b)")
            .await
            .unwrap();
    assert_eq!(rows.schema().field(0).name(), "any_value(a ORDER BY b)");
}

#[tokio::test]
async fn stock_any_value_still_ignores_its_order() {
    let sql = "SELECT any_value(a ORDER BY a DESC) AS v FROM (VALUES (1), (2), (3)) t(a)";
    let rows = SessionContext::new().sql(sql).await.unwrap().collect().await.unwrap();
    let found = rows[0].column(0).as_primitive::<Int64Type>().value(0);
    assert_eq!(found, 1, "DataFusion is fixed");
}

/// Lists with equal lists, NULL, empty lists, NULL elements, strings and inner lists.
const LISTS: &str = "CREATE TABLE t AS SELECT * FROM (VALUES
    (1, [1, 2], [['a'], []]), (2, [1, 2], [['a'], []]), (3, []::BIGINT[], [['a']]),
    (4, NULL, NULL), (5, NULL, [['a']]), (6, [1, NULL], [['b', 'a']])) v(id, x, y)";

#[tokio::test]
async fn equal_lists_are_one_group() {
    let cases = [
        (
            "SELECT x, count(*), min(id) FROM t GROUP BY x ORDER BY 3",
            "[1, 2] 2 1; [] 1 3; NULL 2 4; [1, ] 1 6",
        ),
        (
            "SELECT y, count(*), min(id) FROM t GROUP BY y ORDER BY 3",
            "[[a], []] 2 1; [[a]] 2 3; NULL 1 4; [[b, a]] 1 6",
        ),
        (
            "SELECT y, x, min(id) FROM t GROUP BY x, y ORDER BY 3",
            "[[a], []] [1, 2] 1; [[a]] [] 3; NULL NULL 4; [[a]] NULL 5; [[b, a]] [1, ] 6",
        ),
        (
            "SELECT x, id % 2 AS k, count(*) FROM t GROUP BY x, k ORDER BY min(id)",
            "[1, 2] 1 1; [1, 2] 0 1; [] 1 1; NULL 0 1; NULL 1 1; [1, ] 0 1",
        ),
        ("SELECT count(*) FROM (SELECT DISTINCT x, y FROM t)", "5"),
        ("SELECT count(DISTINCT x), count(DISTINCT y) FROM t", "3 3"),
        ("SELECT x FROM t GROUP BY x HAVING x = [1, 2]", "[1, 2]"),
        ("SELECT x FROM t GROUP BY x HAVING max(id) > 5", "[1, ]"),
        ("SELECT DISTINCT x FROM t WHERE id < 3 LIMIT 1", "[1, 2]"),
        ("SELECT x[1:1] AS k, count(*) FROM t GROUP BY k ORDER BY 2, 1", "[] 1; NULL 2; [1] 3"),
        (
            "SELECT [-0.0, id % 2] AS k, count(*) FROM t GROUP BY k ORDER BY 1",
            "[0.0, 0.0] 3; [0.0, 1.0] 3",
        ),
        ("SELECT count(*) FROM (SELECT x FROM t UNION SELECT x FROM t)", "4"),
        (
            "SELECT arrow_cast(x, 'FixedSizeList(2, Int64)') AS f, count(*) FROM t WHERE id < 3 GROUP BY f",
            "[1, 2] 2",
        ),
        ("SELECT x, count(*) FROM t GROUP BY ROLLUP (x) ORDER BY 2, 1 LIMIT 1", "[] 1"),
        (
            "SELECT [[id > 1]] AS k, count(*) FROM t GROUP BY k ORDER BY 2",
            "[[false]] 1; [[true]] 5",
        ),
    ];
    expect_rows(&[LISTS], &cases).await;
    expect_rows(&[LISTS, "SET serrate.rule.list_keys = false"], &cases).await;
}

/// The same rows in groups by lists, whether the keys are lists or their bytes.
#[tokio::test]
async fn groups_of_lists_meet_other_clauses() {
    let cases = [
        (
            "SELECT x, count(*) FILTER (WHERE id > 1), array_agg(id ORDER BY id DESC) FROM t GROUP BY x ORDER BY min(id)",
            "[1, 2] 1 [2, 1]; [] 1 [3]; NULL 2 [5, 4]; [1, ] 1 [6]",
        ),
        (
            "SELECT x, count(DISTINCT y), count(DISTINCT id) FROM t GROUP BY x ORDER BY min(id)",
            "[1, 2] 1 2; [] 1 1; NULL 1 2; [1, ] 1 1",
        ),
        (
            "SELECT count(*), sum(id) FROM (SELECT DISTINCT ON (x) x, id FROM t ORDER BY x, id DESC)",
            "4 16",
        ),
        (
            "SELECT count(*), count(x), count(y) FROM (SELECT x, y FROM t GROUP BY GROUPING SETS ((x), (y), (x, y)))",
            "13 6 7",
        ),
        (
            "SELECT t.x, count(*) FROM t JOIN t u ON t.id = u.id GROUP BY t.x, u.x ORDER BY min(t.id)",
            "[1, 2] 2; [] 1; NULL 2; [1, ] 1",
        ),
        (
            "SELECT g.x, n, id FROM (SELECT x, count(*) AS n FROM t GROUP BY x) g JOIN t ON g.x = t.x ORDER BY id",
            "[1, 2] 2 1; [1, 2] 2 2; [] 1 3; [1, ] 1 6",
        ),
        ("SELECT * FROM (SELECT x, count(*) AS n FROM t GROUP BY x) WHERE x IS NULL", "NULL 2"),
        ("SELECT x FROM t EXCEPT SELECT x FROM t WHERE id < 4 ORDER BY 1", "[1, ]; NULL"),
        ("SELECT count(*) FROM (SELECT x FROM t INTERSECT SELECT x FROM t)", "4"),
        (
            "SELECT x, count(*) FROM (SELECT x FROM t ORDER BY id LIMIT 4 OFFSET 1) GROUP BY x ORDER BY 2, 1",
            "[] 1; [1, 2] 1; NULL 2",
        ),
        (
            "SELECT arrow_cast(x, 'LargeList(Int64)') AS l, count(*) FROM t GROUP BY l ORDER BY min(id)",
            "[1, 2] 2; [] 1; NULL 2; [1, ] 1",
        ),
        (
            "SELECT arrow_cast(x, 'FixedSizeList(2, Int64)') AS f, count(*) FROM t WHERE id <> 3 GROUP BY f ORDER BY min(id)",
            "[1, 2] 2; NULL 2; [1, ] 1",
        ),
        (
            "SELECT count(*) FROM (SELECT DISTINCT [CASE id % 2 WHEN 0 THEN 'NaN'::DOUBLE ELSE -('NaN'::DOUBLE) END] FROM t)",
            "1",
        ),
    ];
    expect_rows(&[LISTS], &cases).await;
    expect_rows(&[LISTS, "SET serrate.rule.list_keys = false"], &cases).await;
}

/// The limit must be directly above the aggregate, so that the aggregate stops after 3 groups.
#[tokio::test]
async fn distinct_lists_with_a_limit_stop_early() {
    let ctx = create_parallel_session();
    query_batches(&ctx, LISTS).await.unwrap();
    let plan = query_text(&ctx, "EXPLAIN SELECT DISTINCT x FROM t LIMIT 3").await;
    assert!(plan.contains("list_to_key(") && plan.contains("lim=[3]"), "{plan}");
}

#[tokio::test]
async fn groups_of_lists_keep_types_and_names() {
    let ctx = create_parallel_session();
    query_batches(&ctx, LISTS).await.unwrap();
    let sql = "SELECT x, id FROM t";
    let lists = query_batches(&ctx, sql).await.unwrap()[0].schema();
    for by in ["GROUP BY x, id", "GROUP BY 1, 2"] {
        let grouped = query_batches(&ctx, &format!("{sql} {by}")).await.unwrap()[0].schema();
        assert_eq!(grouped, lists);
    }
    let plan = query_text(&ctx, "EXPLAIN SELECT x, count(*) FROM t GROUP BY x").await;
    assert!(plan.contains("list_to_key(") && plan.contains("key_to_list("), "{plan}");
}

const REPEATED_VALUES: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 5, 'a'), (1, 5, 'b'), (2, 3, 'a'), (2, 3, 'b'), (2, 4, NULL), (3, NULL, 'a')) t(g, x, s)";
const DISTINCT_BITS: &str =
    "SELECT g, bit_xor(DISTINCT x) AS k, count(DISTINCT s) AS c FROM t GROUP BY g ORDER BY g";

#[tokio::test]
async fn bit_xor_of_distinct_values_uses_each_value_once() {
    let cases = [
        (DISTINCT_BITS, "1 5 2; 2 7 2; 3 NULL 1"),
        (
            "SELECT g, bit_xor(DISTINCT x) FILTER (WHERE s IS NOT NULL) AS k FROM t GROUP BY g ORDER BY g",
            "1 5; 2 3; 3 NULL",
        ),
        (
            "SELECT g, bit_xor(DISTINCT x) AS k FROM t GROUP BY ROLLUP (g) ORDER BY g",
            "1 5; 2 7; 3 NULL; NULL 2",
        ),
        (
            "SELECT g, bit_xor(DISTINCT x) AS k, bit_xor(x) AS a FROM (SELECT * FROM t UNION ALL SELECT * FROM t) u GROUP BY g ORDER BY g",
            "1 5 0; 2 7 0; 3 NULL NULL",
        ),
        ("SELECT bit_xor(DISTINCT x) AS k, count(DISTINCT s) AS c FROM t", "2 2"),
    ];
    expect_rows(&[REPEATED_VALUES], &cases).await;
}

#[tokio::test]
async fn stock_bits_of_groups_still_ignore_distinct() {
    let stock = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    stock_batches(&stock, REPEATED_VALUES).await.unwrap();
    let sql =
        "SELECT bit_xor(DISTINCT x) AS k, count(DISTINCT s) AS c FROM t GROUP BY g ORDER BY g";
    assert_eq!(stock_ints(&stock, sql).await[..2], [0, 4]);
}
