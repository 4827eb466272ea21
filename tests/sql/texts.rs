//! Strings: functions of every Arrow type of strings, and casts between strings and lists.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn string_functions_accept_every_arrow_type_of_strings() {
    let ctx = create_parallel_session();
    let rows = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'ab', '%b', ['ab', 'cd', NULL]), (2, 'yz', 'y_', ['x', 'yz']),
        (3, 'Q', 'q', []), (4, NULL, '%', NULL), (5, 'ab', 'ab', ['ab'])) v(id, s, p, l)";
    serrate::sql::sql(&ctx, rows).await.unwrap().collect().await.unwrap();
    let types = [
        "Utf8",
        "LargeUtf8",
        "Utf8View",
        "Dictionary(Int32, Utf8)",
        "Dictionary(UInt8, LargeUtf8)",
    ];
    let mut wrong = String::new();
    for what in [
        "s LIKE p",
        "s NOT LIKE p",
        "s ILIKE p",
        "s LIKE 'a%'",
        "s = p",
        "s < p",
        "s IN (p, 'Q')",
        "s BETWEEN 'a' AND p",
        "s ~ p",
        "s || p",
        "coalesce(s, p)",
        "starts_with(p, s)",
        "nullif(s, p)",
        "s IS NOT DISTINCT FROM p",
        "upper(s)",
        "length(s)",
        "l == p",
        "ragged_like(l, p)",
        "ragged_eq(l, s)",
        "ragged_ilike(l, 'A%')",
        "l IN ('ab', 'x')",
        "ragged_isin(l, ['ab'])",
        "ragged_starts_with(l, s)",
        "ragged_matches(l, p)",
        "ragged_last(l) LIKE p",
        "ragged_first(l) = s",
        "ragged_last(l) ILIKE p",
        "ragged_max(l)",
        "ragged_nunique(l)",
        "array_length(ragged_unique(l))",
        "ragged_fill_null(l, s)",
        "ragged_map(l, lambda v: v LIKE '%b')",
    ] {
        let of = |list: &str, s: &str, p: &str| {
            format!(
                "SELECT {what} FROM (SELECT id, arrow_cast(s, '{s}') AS s, arrow_cast(p, '{p}') AS p, arrow_cast(l, 'List({list})') AS l FROM t) ORDER BY id"
            )
        };
        let expected = rows_or_error(&ctx, &of("Utf8", "Utf8", "Utf8")).await;
        assert!(!expected.contains("rror"), "{what}: {expected}");
        for s in types {
            for p in types {
                let found = rows_or_error(&ctx, &of(s, s, p)).await;
                if found != expected {
                    wrong.push_str(&format!("{what} of {s} and {p}: {found}, not {expected}\n"));
                }
            }
        }
    }
    assert_eq!(wrong, "");
}

#[tokio::test]
async fn similar_to_matches_the_whole_string() {
    let ctx = serrate::sql::session();
    for (pattern, right) in [
        ("'abc'", "1"),
        ("'b'", ""),
        ("'a%'", "1,2,3,5"),
        ("'a_c'", "1,3"),
        ("'a.c'", "3"),
        ("'(a|b)%[^c]'", "2,4,5"),
        ("'a+'", ""),
        ("'%#%%' ESCAPE '#'", "4"),
        ("'[a-c]{3}'", "1"),
        ("NULL", ""),
    ] {
        for not in ["", "NOT "] {
            let sql = format!(
                "SELECT id FROM (VALUES (1, 'abc'), (2, 'abd'), (3, 'a.c'), (4, 'b%'),
                    (5, 'a' || chr(10) || 'z'), (6, NULL)) v(id, s)
                 WHERE s {not}SIMILAR TO {pattern} ORDER BY id"
            );
            let is_right = |id: &i64| right.contains(&id.to_string()) == not.is_empty();
            let expected: Vec<String> = (1..6)
                .filter(|_| pattern != "NULL")
                .filter(is_right)
                .map(|id| id.to_string())
                .collect();
            assert_eq!(rows_or_error(&ctx, &sql).await, expected.join("; "), "{sql}");
        }
    }
    let column = rows_or_error(&ctx, "SELECT s SIMILAR TO s FROM (SELECT 'a' AS s)").await;
    assert!(column.contains("write a string literal"), "{column}");
}

/// When this test fails, `serrate_similar_patterns` can be removed.
#[tokio::test]
async fn stock_similar_to_still_searches() {
    let ctx = SessionContext::new();
    let batches = stock_batches(&ctx, "SELECT 'abc' SIMILAR TO 'b'").await.unwrap();
    assert!(batches[0].column(0).as_boolean().value(0));
}

#[tokio::test]
async fn dollars_in_replacements_are_literal() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES ('price 5', '$9 USD'), ('a', NULL), ('x 7', '\\0$')) t(s, r)",
    ];
    let cases = [
        (
            "SELECT regexp_replace('price 5', '[0-9]+', '$9 USD'), regexp_replace('abc', 'b', '$$')",
            "price $9 USD a$$c",
        ),
        (
            "SELECT regexp_replace(s, '[0-9]+', '$x'), regexp_replace(s, '[0-9]+', r) FROM t ORDER BY s",
            "a NULL; price $x price $9 USD; x $x x 7$",
        ),
        (
            "SELECT regexp_replace('ab', '(a)(b)', '\\2$\\1'), regexp_replace('aXa', 'a', '$', 'g')",
            "b$a $X$",
        ),
        ("SELECT regexp_replace('aXb', '(a)(X)', NULL)", "NULL"),
    ];
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `regexp_replace` need not be wrapped.
#[tokio::test]
async fn stock_replacements_still_have_dollar_groups() {
    let shown =
        stock_text(&SessionContext::new(), "SELECT regexp_replace('for 5', '5', '$9') AS r").await;
    assert!(!shown.contains('$'), "{shown}");
}

#[tokio::test]
async fn strings_of_lists_show_null() {
    let cases = [
        (
            "SELECT [1, NULL]::VARCHAR AS a, [[1], NULL]::VARCHAR AS b, ['1', '']::VARCHAR AS c, NULL::INT[]::VARCHAR AS d",
            "[1, NULL] [[1], NULL] [1, ''] NULL",
        ),
        (
            "SELECT 'x: ' || x::VARCHAR FROM (VALUES ([1, NULL]), ([]), (NULL)) t(x)",
            "x: [1, NULL]; x: []; NULL",
        ),
        (
            "SELECT s::VARCHAR FROM (VALUES ({'a': 1, 'b': [NULL, 'x']}), (NULL), ({'a': NULL, 'b': NULL})) t(s)",
            "{'a': 1, 'b': [NULL, x]}; NULL; {'a': NULL, 'b': NULL}",
        ),
        (
            "SELECT [{'d': DATE '2024-01-05', 's': {'x': INTERVAL '2 days'}}, NULL]::VARCHAR",
            "[{'d': 2024-01-05, 's': {'x': 2d}}, NULL]",
        ),
        (
            "SELECT count(*) FROM (VALUES ({'a': 1}), ({'a': 2})) t(s) WHERE s::VARCHAR = '{''a'': 1}'",
            "1",
        ),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn strings_of_lists_quote_ambiguous_elements() {
    let cases = [
        (
            "SELECT ['a, b']::VARCHAR, ['NULL', NULL, ' x', 'x y']::VARCHAR, ['it''s', '\\']::VARCHAR",
            "['a, b'] ['NULL', NULL, ' x', x y] ['it\\'s', '\\\\']",
        ),
        ("SELECT {'a': 'x, y', 'b': [''], 'c': 'z'}::VARCHAR", "{'a': 'x, y', 'b': [''], 'c': z}"),
        ("SELECT arrow_cast(['a, b'], 'List(Dictionary(Int32, Utf8))')::VARCHAR", "['a, b']"),
        (
            "SELECT count(*) FROM (VALUES (['a,b']), ([' a']), (['null']), ([NULL]), (['']), (['[', ']']), (['\"', '''', '\\''']), (['a'])) t(x) WHERE x::VARCHAR::VARCHAR[] = x",
            "8",
        ),
        ("SELECT 'a, b'::VARCHAR, [INTERVAL '1d 03:00']::VARCHAR", "a, b [1d 03:00]"),
        ("SELECT arrow_cast(['a, b', NULL, ''], 'ListView(Utf8)')::VARCHAR", "['a, b', NULL, '']"),
        ("SELECT arrow_cast([1, NULL], 'FixedSizeList(2, Int64)')::VARCHAR", "[1, NULL]"),
        (
            "SELECT arrow_cast([[INTERVAL '2 days'], NULL], 'LargeListView(List(Interval(MonthDayNano)))')::VARCHAR",
            "[[2d], NULL]",
        ),
    ];
    expect_rows(&[], &cases).await;
}

/// When this test fails, `serrate_list_texts` can be removed.
#[tokio::test]
async fn stock_texts_of_lists_still_lack_null() {
    let shown =
        stock_text(&SessionContext::new(), "SELECT arrow_cast([1, NULL], 'Utf8') AS t").await;
    assert!(shown.contains("[1, ]"), "{shown}");
}

#[tokio::test]
async fn every_cast_of_lists_to_strings_shows_null() {
    expect_rows(
        &["CREATE TABLE t AS SELECT [1, NULL] AS x, [[1], NULL] AS y"],
        &[
            ("SELECT TRY_CAST(x AS VARCHAR), arrow_cast(x, 'Utf8'), arrow_cast(x, 'Utf8View'), arrow_try_cast(x, 'LargeUtf8') FROM t", "[1, NULL] [1, NULL] [1, NULL] [1, NULL]"),
            ("SELECT TRY_CAST([1, NULL] AS VARCHAR), arrow_cast([1, NULL], 'Utf8')", "[1, NULL] [1, NULL]"),
            ("SELECT TRY_CAST(y AS VARCHAR) FROM t WHERE arrow_cast(y, 'Utf8') = '[[1], NULL]'", "[[1], NULL]"),
        ],
    )
    .await;
}

#[tokio::test]
async fn strings_of_lists_are_cast_to_lists() {
    let setup = [
        "CREATE TABLE w AS SELECT * FROM (VALUES (1, '[1, 2, NULL]'), (2, '[]'), (3, NULL), (4, ' [ 7 ] ')) v(id, s)",
    ];
    let cases = [
        ("SELECT s::INT[] FROM w ORDER BY id", "[1, 2, ]; []; NULL; [7]"),
        ("SELECT ragged_sum(s::BIGINT[]) FROM w ORDER BY id", "3; 0; NULL; 7"),
        ("SELECT id FROM w WHERE list_contains(s::INT[], 7)", "4"),
        (
            "SELECT '[[1, 2], [], NULL]'::INT[][], '[a, ''b, c'']'::VARCHAR[], '[2024-01-05 10:00]'::TIMESTAMP[]",
            "[[1, 2], [], ] [a, b, c] [2024-01-05T10:00:00]",
        ),
        ("SELECT TRY_CAST('[1, a]' AS INT[]), TRY_CAST('x' AS INT[])", "[1, ] NULL"),
        ("SELECT [1.5, NULL]::VARCHAR::DOUBLE[], [[1], []]::VARCHAR::INT[][]", "[1.5, ] [[1], []]"),
        ("SELECT array_append(['a'], 'b'), ['c'] || 'd'", "[a, b] [c, d]"),
    ];
    expect_rows(&setup, &cases).await;
    let refused = rows_or_error(&serrate::sql::session(), "SELECT 'abc'::INT[]").await;
    assert!(refused.contains("not a list"), "{refused}");
}

/// When this test fails, `sql::workarounds::types::text_to_list_casts` can be removed.
#[tokio::test]
async fn stock_texts_of_lists_are_still_elements() {
    let sql = "SELECT cardinality(arrow_cast('[a, b]', 'List(Utf8)'))::BIGINT";
    assert_eq!(stock_one(&SessionContext::new(), sql).await, 1);
}

#[tokio::test]
async fn strings_of_durations_and_intervals_have_one_form() {
    let cases = [
        (
            "SELECT (TIMESTAMP '2024-03-01' - TIMESTAMP '2024-01-01')::VARCHAR, INTERVAL '1 month 2 days'::VARCHAR",
            "60d 1mo 2d",
        ),
        (
            "SELECT 'after ' || (TIMESTAMP '2024-01-02 03:00:00' - TIMESTAMP '2024-01-01')",
            "after 1d 03:00",
        ),
        (
            "SELECT ([TIMESTAMP '2024-01-02', NULL, TIMESTAMP '2024-01-01 00:00:01.5'] - TIMESTAMP '2024-01-01')::VARCHAR",
            "[1d, NULL, 00:00:01.5]",
        ),
        ("SELECT (NULL::TIMESTAMP - TIMESTAMP '2024-01-01')::VARCHAR", "NULL"),
        (
            "SELECT INTERVAL '1y 2mo 3d 04:00'::VARCHAR, INTERVAL '-2d'::VARCHAR",
            "1y 2mo 3d 04:00 -2d",
        ),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn negative_lengths_pad_to_nothing() {
    let cases = [
        (
            "SELECT lpad(s, n, '*'), rpad(s, n, 'xy'), lpad(s, n) FROM (VALUES (1, 'ab', -3), (2, 'ab', 4), (3, NULL, 1), (4, 'ab', NULL), (5, 'ab', 1)) t(i, s, n) ORDER BY i",
            "  ; **ab abxy   ab; NULL NULL NULL; NULL NULL NULL; a a a",
        ),
        ("SELECT lpad('7', 10 - n, '0') FROM (VALUES (12), (7)) t(n) ORDER BY n", "007; "),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn stock_negative_lengths_still_panic() {
    let ctx = SessionContext::new();
    let frame = ctx.sql("SELECT lpad('ab', n, '*') FROM (VALUES (-3), (4)) t(n)").await.unwrap();
    assert!(!matches!(tokio::spawn(frame.collect()).await, Ok(Ok(_))));
}
