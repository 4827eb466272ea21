//! IN lists and patterns that the simplifier of DataFusion replaces by expressions that lose NULL.

use super::*;

/// Conditions on `x`, each with the values of `x` for which it is true. Each is NULL if `x` is
/// NULL.
const LISTS: [(&str, &[i64]); 10] = [
    ("x NOT IN (1, 2, 3, 4, 6) OR x NOT IN (10, 11, 12, 13, 14)", &[1, 5]),
    ("NOT (x IN (1, 2, 3, 4, 6) AND x IN (10, 11, 12, 13, 14))", &[1, 5]),
    ("NOT ((x = 1 OR x = 2) AND (x = 3 OR x = 4))", &[1, 5]),
    ("NOT (NOT (x <> 1 AND x <> 2) AND NOT (x <> 3 AND x <> 4))", &[1, 5]),
    ("NOT (x IN (1, 2, 3, 4, 6) AND x NOT IN (1, 2, 3, 4, 6))", &[1, 5]),
    ("x IN (1, NULL) AND x NOT IN (5, NULL)", &[]),
    ("x IN (1, 5, y) AND x NOT IN (7, 8, y)", &[1]),
    ("x IN (1, 5) OR x IN (7, NULL)", &[1, 5]),
    ("x NOT IN (1, 2) AND x NOT IN (7, 8)", &[5]),
    ("x IN (1, 5) AND x IN (5, 6) AND y > 0", &[5]),
];

const VALUES: &str = "(VALUES (1, 4), (5, 5), (NULL, 9)) AS v(x, y)";

#[tokio::test]
async fn in_lists_are_null_for_null() {
    let ctx = serrate::sql::session();
    for (condition, kept) in LISTS {
        let query = format!("SELECT x FROM {VALUES} WHERE {condition} ORDER BY x");
        assert_eq!(query_ints(&ctx, &query).await, kept, "{condition}");
        let null =
            format!("SELECT count(*) FROM {VALUES} WHERE x IS NULL AND ({condition}) IS NULL");
        assert_eq!(query_int(&ctx, &null).await, 1, "{condition}");
    }
    // Generated aliases keep the simplifier from merging lists. The names of results omit them.
    let shown =
        query_text(&ctx, &format!("SELECT x IN (1, 2) AND x IN (3, 4) FROM {VALUES}")).await;
    assert!(shown.contains("IN") && !shown.contains("__serrate"), "{shown}");
}

#[tokio::test]
async fn pattern_matches_are_null_for_null() {
    let ctx = serrate::sql::session();
    let texts = "(VALUES ('a'), (''), (NULL)) AS v(s)";
    for (condition, kept) in
        [("s ~ '.*'", 2), ("NOT (s ~ '.*')", 0), ("s !~ '.*'", 0), ("s ~* '.*'", 2)]
    {
        let query = format!("SELECT count(*) FROM {texts} WHERE {condition}");
        assert_eq!(query_int(&ctx, &query).await, kept, "{condition}");
        let null = format!("SELECT count(*) FROM {texts} WHERE ({condition}) IS NULL");
        assert_eq!(query_int(&ctx, &null).await, 1, "{condition}");
    }
}

/// Strings with and without a backslash.
const BACKSLASHES: &str = r"(VALUES ('a\b'), ('ab'), ('a%'), (NULL)) AS v(s)";

#[tokio::test]
async fn patterns_match_backslashes() {
    let count = |condition: &str| {
        format!("SELECT count(*) FILTER (WHERE {condition}), count({condition}) FROM {BACKSLASHES}")
    };
    let cases = [
        (count(r"s ~ 'a\\b'"), "1 3"),
        (count(r"s !~ 'a\\b'"), "2 3"),
        (count(r"s ~* 'A\\B'"), "1 3"),
        (count(r"s ~* '^A\\B$'"), "1 3"),
        (count(r"s ~ '\\'"), "1 3"),
        (count(r"s ~ '\\$'"), "0 3"),
        (count(r"s ~ '\x5C'"), "1 3"),
        (count(r"s ~ '[\\]'"), "1 3"),
        (count(r"s ~ '^a\\'"), "1 3"),
        (count(r"s ~ '\\b$|x'"), "1 3"),
        (count(r"s ~ '^(a\\b|ab)$'"), "2 3"),
        (count(r"regexp_like(s, 'a\\b')"), "1 3"),
        (count(r"regexp_like(s, 'A\\B', 'i')"), "1 3"),
        (count(r"NOT regexp_like(s, '.*')"), "0 3"),
        (count(r"NOT (lower(s) ~ '\\' OR s LIKE '%\%')"), "1 3"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn patterns_of_views_keep_null_and_backslashes() {
    let setup = r"CREATE TABLE v AS SELECT id, arrow_cast(s, 'Utf8View') AS s, arrow_cast(s, 'LargeUtf8') AS l FROM (VALUES (1, 'a\b'), (2, 'ab'), (3, NULL)) t(id, s)";
    let cases = [
        ("SELECT s ~ '.*', l ~ '.*' FROM v ORDER BY id", "true true; true true; NULL NULL"),
        ("SELECT id FROM v WHERE NOT (s ~ '.*')", ""),
        ("SELECT id FROM v WHERE NOT regexp_like(s, '.*')", ""),
        (r"SELECT id FROM v WHERE s ~ 'a\\b'", "1"),
        (r"SELECT id FROM v WHERE l ~ 'a\\b'", "1"),
        (r"SELECT id FROM v WHERE regexp_matches(s, '\\b$')", "1"),
        (r"SELECT id FROM v WHERE s !~ 'a\\b'", "2"),
    ];
    expect_rows(&[setup], &cases).await;
}

#[tokio::test]
async fn windows_over_repeated_in_lists_are_planned() {
    let cases = [(
        "SELECT max(CASE WHEN n IN (5, 2) THEN b ELSE true END) OVER (PARTITION BY n IN (5, 2)) FROM (VALUES (1, true), (5, false)) v(n, b) ORDER BY 1",
        "false; true",
    )];
    expect_rows(&[], &cases).await;
}

/// When this test fails, `sql::workarounds::expressions::in_lists` need not add aliases to lists.
#[tokio::test]
async fn stock_in_lists_still_forget_null() {
    let ctx = SessionContext::new();
    let query = format!(
        "SELECT count(*) FROM {VALUES} WHERE x NOT IN (1, 2, 3, 4, 6) OR x NOT IN (10, 11, 12, 13, 14)"
    );
    assert_eq!(stock_one(&ctx, &query).await, 3);
}

/// When this test fails, `sql::workarounds::expressions::in_lists` need not replace patterns.
#[tokio::test]
async fn stock_patterns_still_forget_null() {
    let query = "SELECT count(*) FROM (VALUES ('a'), (NULL)) AS v(s) WHERE NOT (s ~ '.*')";
    assert_eq!(stock_one(&SessionContext::new(), query).await, 1);
}

/// When this test fails, `sql::workarounds::expressions::in_lists` need not change patterns with
/// backslashes.
#[tokio::test]
async fn stock_patterns_still_forget_backslashes() {
    let query = format!(r"SELECT count(*) FROM {BACKSLASHES} WHERE s ~ 'a\\b' AND s = 'ab'");
    assert_eq!(stock_one(&SessionContext::new(), &query).await, 1);
}

#[tokio::test]
async fn remainders_of_decimals_keep_their_fraction() {
    let cases = [
        (
            "SELECT coalesce(x, 0) % 1 FROM (VALUES (1.25::DECIMAL(5,2)), (-0.05::DECIMAL(5,2)), (3::DECIMAL(5,2))) v(x)",
            "0.25; -0.05; 0.00",
        ),
        (
            "SELECT count(*) FROM (VALUES (1.25::DECIMAL(5,2)), (3::DECIMAL(5,2))) v(x) WHERE coalesce(x, 0) % 1 = 0",
            "1",
        ),
        ("SELECT coalesce(x, 0) % 1 FROM (VALUES (5), (NULL)) v(x)", "0; 0"),
        ("SELECT coalesce(x, 0.5) % 1 FROM (VALUES (1.25), (NULL)) v(x)", "0.25; 0.5"),
    ];
    expect_rows(&[], &cases).await;
}

/// When this test fails, `sql::workarounds::expressions::in_lists` need not hide `% 1`.
#[tokio::test]
async fn stock_remainders_of_decimals_are_still_zero() {
    let query = "SELECT count(*) FROM (VALUES (CAST(1.25 AS DECIMAL(5, 2))), (NULL)) AS v(x) WHERE coalesce(x, CAST(0 AS DECIMAL(5, 2))) % 1 = 0";
    assert_eq!(stock_one(&SessionContext::new(), query).await, 2);
}
