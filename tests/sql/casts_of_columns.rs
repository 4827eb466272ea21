//! Casts of columns. DataFusion gives a cast the name of its column, and confuses the two.

use super::*;

const TABLE: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (0, 0.0::DOUBLE), (1, 0.5), (2, 1.0), (3, 1.5)) v(id, f)";

#[tokio::test]
async fn correlated_subqueries_compare_casts_of_columns() {
    let ts = "TIMESTAMP '2020-01-01' + id * INTERVAL '12 hours'";
    expect_rows(
        &[TABLE, &format!("CREATE TABLE d AS SELECT id, {ts} AS ts FROM t")],
        &[
            (
                "SELECT id, (SELECT count(*) FROM t b WHERE b.f::INT = a.f::INT) FROM t a ORDER BY id",
                "0 2; 1 2; 2 2; 3 2",
            ),
            (
                "SELECT id, (SELECT max(b.id) FROM t b WHERE b.f::INT = a.f::INT) FROM t a ORDER BY id",
                "0 1; 1 1; 2 3; 3 3",
            ),
            (
                "SELECT id, (SELECT count(*) FROM d b WHERE b.ts::DATE = a.ts::DATE) FROM d a ORDER BY id",
                "0 2; 1 2; 2 2; 3 2",
            ),
            (
                "SELECT id FROM t a WHERE 2 = (SELECT count(*) FROM t b WHERE b.f::INT = a.f::INT) ORDER BY id",
                "0; 1; 2; 3",
            ),
            (
                "SELECT id FROM t a WHERE id IN (SELECT max(b.id) FROM t b WHERE b.f::INT = a.f::INT) ORDER BY id",
                "1; 3",
            ),
            (
                "SELECT id, (SELECT count(*) FROM t b WHERE b.f::INT = a.id) FROM t a ORDER BY id",
                "0 2; 1 2; 2 0; 3 0",
            ),
            (
                "SELECT id, (SELECT count(*) FROM t b WHERE b.id % 2 = a.id) FROM t a ORDER BY id",
                "0 2; 1 2; 2 0; 3 0",
            ),
            (
                "SELECT id, (SELECT count(*) FROM t b WHERE b.id + 0.5 = a.f) FROM t a ORDER BY id",
                "0 0; 1 1; 2 0; 3 1",
            ),
            (
                "SELECT id, (SELECT count(*) FROM t b WHERE b.id::INT = a.id) FROM t a ORDER BY id",
                "0 1; 1 1; 2 1; 3 1",
            ),
        ],
    )
    .await;
}

/// When this test fails, `are_equations` of `sql::workarounds::subqueries::correlated::checks` may
/// accept casts again.
#[tokio::test]
async fn stock_equations_of_casts_still_repeat_rows() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, TABLE).await.unwrap();
    let most = "SELECT max(n) FROM (SELECT (SELECT count(*) FROM t b WHERE b.f::INT = a.f::INT) AS n FROM t a)";
    assert_eq!(stock_ints(&ctx, most).await, [1]);
}

#[tokio::test]
async fn sort_keys_after_a_cast_of_them_are_kept() {
    expect_rows(
        &[TABLE],
        &[
            (
                "SELECT f, count(*) AS n FROM t GROUP BY f ORDER BY f::INT DESC, f",
                "1.0 1; 1.5 1; 0.0 1; 0.5 1",
            ),
            ("SELECT DISTINCT f FROM t ORDER BY f::INT DESC, f DESC LIMIT 3", "1.5; 1.0; 0.5"),
            ("SELECT DISTINCT f FROM t ORDER BY f::INT, f DESC LIMIT 3", "0.5; 0.0; 1.5"),
        ],
    )
    .await;
}

/// When this test fails, `sql::workarounds::sorting::sort_keys` can be removed.
#[tokio::test]
async fn stock_casts_still_hide_sort_keys() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, TABLE).await.unwrap();
    let sql = "EXPLAIN SELECT f, count(*) AS n FROM t GROUP BY f ORDER BY f::INT DESC, f";
    let plan = stock_text(&ctx, sql).await;
    assert!(!plan.contains(" ASC"), "{plan}");
}

#[tokio::test]
async fn group_keys_next_to_a_cast_of_them_are_kept() {
    expect_rows(
        &[TABLE],
        &[
            (
                "SELECT f::INT AS g, f, count(*) AS n FROM (SELECT f, count(*) AS c FROM t GROUP BY f) GROUP BY f::INT, f ORDER BY f",
                "0 0.0 1; 0 0.5 1; 1 1.0 1; 1 1.5 1",
            ),
            ("SELECT count(*) FROM (SELECT DISTINCT f FROM t) GROUP BY f::INT, f", "1; 1; 1; 1"),
            (
                "SELECT f::INT AS g, c, count(*) AS n FROM (SELECT f, count(*) AS c FROM t GROUP BY f) u GROUP BY f::INT, c ORDER BY g",
                "0 1 2; 1 1 2",
            ),
        ],
    )
    .await;
}

/// When this test fails, `sql::workarounds::grouping::cast_groups` can be removed.
#[tokio::test]
async fn stock_casts_still_replace_group_keys() {
    let ctx = SessionContext::new();
    // Serrate removes this rule too, because it fails for a key and a cast of it.
    ctx.remove_optimizer_rule("eliminate_group_by_constant");
    stock_batches(&ctx, TABLE).await.unwrap();
    let sql = "SELECT count(*) FROM (SELECT DISTINCT f FROM t) GROUP BY f::INT, f";
    assert_eq!(stock_ints(&ctx, sql).await, [2, 2]);
}

const QUOTED: &str = "CREATE TABLE n AS SELECT * FROM (VALUES (3, 9), (1, 9), (2, 9), (1, 8)) v(a, \"a + Int64(1)\")";

const KEYS_OF_ONE_NAME: &str = "SELECT \"a + Int64(1)\" AS x, a + 1 AS y FROM n
    GROUP BY \"a + Int64(1)\", a + 1 ORDER BY x, y";

#[tokio::test]
async fn sort_keys_that_share_a_name_are_all_kept() {
    expect_rows(
        &[TABLE, QUOTED],
        &[
            (KEYS_OF_ONE_NAME, "8 2; 9 2; 9 3; 9 4"),
            (
                "SELECT \"a + Int64(1)\" AS x, a + 1 AS y, count(*) FROM n GROUP BY 1, 2 ORDER BY x DESC, y DESC",
                "9 4 1; 9 3 1; 9 2 1; 8 2 1",
            ),
            (
                "SELECT f::INT AS g, f FROM t GROUP BY f::INT, f ORDER BY g, f DESC",
                "0 0.5; 0 0.0; 1 1.5; 1 1.0",
            ),
            (
                "SELECT count(*) FROM (SELECT f::INT AS g, f FROM t GROUP BY f::INT, f) GROUP BY g, f",
                "1; 1; 1; 1",
            ),
        ],
    )
    .await;
}

/// When this test fails, `repeats_key_name` of `sql::workarounds::grouping::cast_groups` can be
/// removed.
#[tokio::test]
async fn stock_keys_of_one_name_still_count_as_one() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, QUOTED).await.unwrap();
    let plan = stock_text(&ctx, &format!("EXPLAIN {KEYS_OF_ONE_NAME}")).await;
    assert!(plan.contains("x ASC") && !plan.contains("y ASC"), "{plan}");
}

#[tokio::test]
async fn aggregates_of_a_column_and_of_its_cast_are_distinct() {
    expect_rows(
        &[TABLE],
        &[
            ("SELECT sum(f) AS a, sum(f::INT) AS b, sum(f::BIGINT) + 1 AS c FROM t", "3.0 2 3"),
            ("SELECT min(f), min(f::INT), max(f::INT) FROM t WHERE id = 1", "0.5 0 0"),
            ("SELECT count(DISTINCT f), count(DISTINCT f::INT) FROM t", "4 2"),
            ("SELECT sum(f) AS a FROM t HAVING sum(f::INT) = 2", "3.0"),
            (
                "SELECT id, sum(f) OVER (ORDER BY id) AS a, sum(f::INT) OVER (ORDER BY id) AS b FROM t ORDER BY id",
                "0 0.0 0; 1 0.5 0; 2 1.5 1; 3 3.0 2",
            ),
            (
                "SELECT id, rank() OVER (ORDER BY f) AS a, rank() OVER (ORDER BY f::INT) AS b FROM t ORDER BY id",
                "0 1 1; 1 2 1; 2 3 3; 3 4 3",
            ),
            (
                "SELECT count(*) FILTER (WHERE f > 0) AS a, count(*) FILTER (WHERE f::INT > 0) AS b FROM t",
                "3 2",
            ),
            ("SELECT sum(f), SUM(f) FROM t", "3.0 3.0"),
        ],
    )
    .await;
}

#[tokio::test]
async fn aggregates_and_keys_that_differ_in_parentheses_are_distinct() {
    let abc = "(VALUES (1, 2, 3)) t(a, b, c)";
    let pq = "(VALUES (true, false), (false, true), (NULL, true), (false, false)) t(p, q)";
    let cases = [
        (format!("SELECT sum(a * (b + c)), sum(a * b + c) FROM {abc}"), "5 5"),
        (format!("SELECT sum(a - b - c), sum(a - (b - c)) AS d FROM {abc}"), "-4 2"),
        (
            format!(
                "SELECT count(*) FILTER (WHERE NOT p AND q), count(*) FILTER (WHERE NOT (p AND q)) FROM {pq}"
            ),
            "1 3",
        ),
        (
            "SELECT sum((-a)::INT), sum(-(a::INT)) FROM (VALUES ('5')) t(a)"
                .replace("(-a)", "('-' || a)"),
            "-5 -5",
        ),
        (format!("SELECT a::VARCHAR, a::DOUBLE, count(*) FROM {abc} GROUP BY 1, 2"), "1 1.0 1"),
        (
            format!("SELECT a::VARCHAR AS x, a::DOUBLE AS y, a FROM {abc} GROUP BY x, y, a"),
            "1 1.0 1",
        ),
        (
            format!(
                "SELECT a::DOUBLE, a FROM {abc} GROUP BY a::DOUBLE, a HAVING a::DOUBLE > 0.5 ORDER BY a::DOUBLE"
            ),
            "1.0 1",
        ),
        (
            format!(
                "SELECT (p AND q) OR p AS x, p AND (q OR p) AS y, count(*) FROM {pq} GROUP BY (p AND q) OR p, p AND (q OR p) ORDER BY 1, 2"
            ),
            "false false 2; true true 1; NULL NULL 1",
        ),
        (
            format!(
                "SELECT rank() OVER (ORDER BY NOT p AND q) AS x, rank() OVER (ORDER BY NOT (p AND q)) AS y FROM {pq} ORDER BY 1, 2"
            ),
            "1 1; 1 1; 3 1; 4 4",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn a_selected_cast_does_not_replace_its_operand_as_sort_key() {
    let numbers = "(VALUES (1), (2), (92)) t(g)";
    let cases = [
        (format!("SELECT (g + 8)::VARCHAR, count(*) FROM {numbers} GROUP BY g + 8 ORDER BY g + 8"), "9 1; 10 1; 100 1"),
        (format!("SELECT (g + 8)::VARCHAR FROM {numbers} ORDER BY g + 8 DESC LIMIT 2"), "100; 10"),
        (
            format!("SELECT (g % 100)::VARCHAR, sum(g) FROM {numbers} GROUP BY g % 100 ORDER BY g % 100 DESC LIMIT 1"),
            "92 92",
        ),
        (format!("SELECT (g + 8)::VARCHAR, count(*) FROM {numbers} GROUP BY g + 8 ORDER BY count(*), (g + 8)"), "9 1; 10 1; 100 1"),
        (format!("SELECT (g + 8)::VARCHAR FROM {numbers} GROUP BY g + 8 ORDER BY (g + 8)::VARCHAR"), "10; 100; 9"),
        (
            "SELECT (sum(g) OVER (PARTITION BY g))::VARCHAR FROM (VALUES (9), (10), (100)) t(g) ORDER BY sum(g) OVER (PARTITION BY g)".to_owned(),
            "9; 10; 100",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &cases).await;
}

/// When this test fails, `sql::statement::names::cast_arguments` can be removed.
#[tokio::test]
async fn stock_aggregates_of_casts_still_clash() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, TABLE).await.unwrap();
    let e = stock_error(&ctx, "SELECT sum(id) AS a, sum(id::DOUBLE) AS b FROM t").await;
    assert!(e.contains("duplicate unqualified field name"), "{e}");
}

#[tokio::test]
async fn aggregates_of_casts_are_sort_keys() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, '10'), (1, '9'), (2, '7')) v(k, x)"],
        &[
            ("SELECT max(x), max(x::INT) FROM t GROUP BY k ORDER BY max(x::INT)", "7 7; 9 10"),
            ("SELECT max(x) FROM t GROUP BY k ORDER BY max(x::INT) DESC", "9; 7"),
            (
                "SELECT array_agg(DISTINCT x ORDER BY x), array_agg(DISTINCT x::INT ORDER BY x::INT) FROM t",
                "[10, 7, 9] [7, 9, 10]",
            ),
            ("SELECT sum(x), sum(x::DOUBLE) FROM (VALUES (1)) v(x) ORDER BY sum(x::DOUBLE)", "1 1.0"),
        ],
    )
    .await;
}

const DICTIONARY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/parquet-bounds/dictionary.arrow");

#[tokio::test]
async fn casts_of_dictionaries_ignore_unused_values() {
    let file = format!("CREATE TABLE f AS SELECT * FROM '{DICTIONARY}'");
    let from_file = |sql: &str| sql.replace("FROM f", &format!("FROM '{DICTIONARY}'"));
    let texts = "SELECT id, d IS NULL, d::VARCHAR IS NULL, try_cast(d AS INT) FROM f ORDER BY id";
    let numbers = "SELECT d::INT FROM f WHERE d <> 'x' ORDER BY 1";
    let rows = "1 false false 1; 2 true true NULL; 3 true true NULL; 4 false false 3";
    let inserted =
        ["CREATE TABLE k (id INT, d VARCHAR)", &from_file("INSERT INTO k SELECT id, d FROM f")];
    let cases = [
        (texts.to_owned(), rows),
        (from_file(texts), rows),
        (numbers.to_owned(), "1; 3"),
        (from_file(numbers), "1; 3"),
        ("SELECT count(*), count(d) FROM k".to_owned(), "4 2"),
        (
            "SELECT CASE WHEN d <> 'x' THEN d::INT END FROM f ORDER BY id".to_owned(),
            "1; NULL; NULL; 3",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[&file, inserted[0], inserted[1]], &cases).await;
}

/// When this test fails, `sql::workarounds::types::dictionary_casts` can be removed.
#[tokio::test]
async fn stock_casts_of_dictionaries_still_cast_unused_values() {
    let stock = SessionContext::new();
    let table = "CREATE TABLE t AS SELECT arrow_cast(column1, 'Dictionary(Int32, Utf8)') AS d FROM (VALUES ('1'), ('x'))";
    stock_batches(&stock, table).await.unwrap();
    let failed = stock_error(&stock, "SELECT CAST(d AS INT) FROM t WHERE d <> 'x'").await;
    assert!(failed.contains("Cannot cast string 'x'"), "{failed}");
}

#[tokio::test]
async fn functions_treat_null_dictionary_values_as_null() {
    let cases = [
        (
            format!(
                "SELECT d, length(d), upper(d), [d], {{'d': d}}.d IS NULL FROM '{DICTIONARY}' ORDER BY id"
            ),
            "1 1 1 [1] false; NULL NULL NULL [] true; NULL NULL NULL [] true; 3 1 3 [3] false",
        ),
        (
            format!(
                "SELECT count(d), count(length(d)), string_agg(d, ',' ORDER BY id) FROM '{DICTIONARY}'"
            ),
            "2 2 1,3",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn rewritten_aggregates_of_a_column_and_its_cast_are_distinct() {
    let table = "CREATE TABLE s AS SELECT * FROM (VALUES (1, 10.6), (2, 20.4), (3, 5.5)) v(id, x)";
    let cases = [
        ("SELECT quantile_disc(x::INT, 0.5), quantile_disc(x, 0.5) FROM s", "10 10.6"),
        ("SELECT quantile_disc(x::INT, 0.9), quantile_disc(x, 0.5), count(x) FROM s", "20 10.6 3"),
        (
            "SELECT quantile_disc(x::INT, [0.1, 0.9]), quantile_disc(x, [0.5]) FROM s",
            "[5, 20] [10.6]",
        ),
        ("SELECT mode(id::VARCHAR) || 'x', mode(id) FROM s", "1x 1"),
        ("SELECT sem(x::INT) <> sem(x) FROM s", "true"),
        (
            "SELECT quantile_disc(x::INT, 0.5) FROM s GROUP BY id HAVING quantile_disc(x, 0.5) > 6 ORDER BY 1",
            "10; 20",
        ),
        (
            "SELECT quantile_disc(x, 0.5) AS a FROM s GROUP BY id ORDER BY quantile_disc(x::INT, 0.5)",
            "5.5; 10.6; 20.4",
        ),
        (
            "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x::INT), percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM s",
            "10 10.6",
        ),
    ];
    expect_rows(&[table], &cases).await;
}

/// DataFusion compares the operand of a cast with NULL, but TRY_CAST may be NULL where its operand
/// is not.
#[tokio::test]
async fn failed_casts_are_not_distinct_from_null() {
    let setup =
        "CREATE TABLE texts AS SELECT * FROM (VALUES (1, '7'), (2, 'b'), (3, NULL)) v(id, s)";
    expect_rows(
        &[setup],
        &[
            (
                "SELECT NULL IS DISTINCT FROM TRY_CAST(s AS BIGINT) AS a, TRY_CAST(s AS BIGINT) IS NOT DISTINCT FROM NULL::BIGINT AS b FROM texts ORDER BY id",
                "true false; false true; false true",
            ),
            ("SELECT id FROM texts WHERE TRY_CAST(s AS BIGINT) IS DISTINCT FROM ([3])[2]", "1"),
            ("SELECT id FROM texts WHERE TRY_CAST(s AS DECIMAL(4, 1)) IS NOT DISTINCT FROM NULL ORDER BY id", "2; 3"),
            ("SELECT id FROM texts WHERE TRY_CAST(s AS BIGINT) = 7 OR TRY_CAST(s AS BIGINT) IN (1, NULL)", "1"),
        ],
    )
    .await;
}
