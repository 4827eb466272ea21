//! Lists and structs are compared and sorted in one order, in which a NULL element is the greatest.

use super::*;

const LISTS: &str = "(VALUES ([1, NULL]), ([1, 2]), (NULL), ([1]), ([1, 9]), ([NULL, 1])) t(x)";
const STRUCTS: &str =
    "(VALUES ({'a': 1, 'b': NULL}), ({'a': 1, 'b': 5}), (NULL), ({'a': NULL, 'b': 5})) t(x)";

#[tokio::test]
async fn all_and_any_use_the_order_of_lists() {
    let tables = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, [1]), (2, [NULL]), (3, [1, NULL]), (4, [1, 2]), (5, [])) v(id, x)",
        "CREATE TABLE u AS SELECT id, x AS y, {'f': x[1]} AS s FROM t",
    ];
    let cases = [
        ("SELECT id FROM t WHERE x >= ALL (SELECT y FROM u)", "2"),
        ("SELECT id FROM t WHERE x > ANY (SELECT y FROM u WHERE id = 2)", ""),
        ("SELECT id FROM t WHERE x <= ALL (SELECT x FROM t)", "5"),
        (
            "SELECT id, x >= ALL (SELECT y FROM u), x < ANY (SELECT y FROM u WHERE u.id = t.id + 1) FROM t ORDER BY id",
            "1 false true; 2 true false; 3 false false; 4 false false; 5 false false",
        ),
        ("SELECT id FROM u WHERE s >= ALL (SELECT v.s FROM u v WHERE v.id <> 5)", "2; 5"),
        ("SELECT id FROM t WHERE x > ALL (SELECT y FROM u WHERE u.id < t.id) ORDER BY id", "1; 2"),
        ("SELECT id FROM t WHERE x > ALL (SELECT NULL::INT[])", ""),
    ];
    expect_rows(&tables, &cases).await;
}

#[tokio::test]
async fn array_agg_of_distinct_lists_is_sorted() {
    let ctx = serrate::sql::session();
    for (order, expected) in [
        ("x NULLS LAST", "[[1], [1, 2], [1, 9], [1, ], [, 1], ]"),
        ("x DESC NULLS FIRST", "[, [, 1], [1, ], [1, 9], [1, 2], [1]]"),
        ("x NULLS FIRST", "supports only ASC NULLS LAST"),
        ("x DESC NULLS LAST", "FILTER (WHERE x IS NOT NULL)"),
    ] {
        let sql = format!("SELECT array_agg(DISTINCT x ORDER BY {order}) FROM {LISTS}");
        let found = rows_or_error(&ctx, &sql).await;
        assert!(found.contains(expected), "{sql}\n{found}");
    }
}

#[tokio::test]
async fn rows_are_sorted_by_lists_whose_nulls_are_greatest() {
    let up = "[1]; [1, 2]; [1, 9]; [1, ]; [, 1]";
    let down = "[, 1]; [1, ]; [1, 9]; [1, 2]; [1]";
    let structs = "{a: 1, b: 5}; {a: 1, b: }; {a: , b: 5}";
    for partitions in [1, 4] {
        let ctx =
            serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
        for (from, by, expected) in [
            (LISTS, "x", format!("{up}; NULL")),
            (LISTS, "x NULLS FIRST", format!("NULL; {up}")),
            (LISTS, "x DESC", format!("NULL; {down}")),
            (LISTS, "x DESC NULLS LAST", format!("{down}; NULL")),
            (STRUCTS, "x", format!("{structs}; NULL")),
            (STRUCTS, "x NULLS FIRST", format!("NULL; {structs}")),
        ] {
            let sql = format!("SELECT x FROM {from} ORDER BY {by}");
            assert_eq!(query_rows(&ctx, &sql).await, expected, "{sql}");
            // ORDER BY with LIMIT uses this order, too.
            let first = expected.split("; ").take(3).collect::<Vec<_>>().join("; ");
            let sql = format!("SELECT x FROM {from} ORDER BY {by} LIMIT 3");
            assert_eq!(query_rows(&ctx, &sql).await, first, "{sql}");
            let sql = format!("SELECT array_agg(x ORDER BY {by}) AS all FROM {from}");
            let sorted = format!("[{}]", expected.replace("; ", ", ").replace("NULL", ""));
            assert_eq!(query_rows(&ctx, &sql.replace(" AS all", "")).await, sorted, "{sql}");
            // Window functions cannot sort by structs.
            if from == LISTS {
                let sql = format!(
                    "SELECT x FROM (SELECT x, row_number() OVER (ORDER BY {by}) AS n FROM {from}) ORDER BY n"
                );
                assert_eq!(query_rows(&ctx, &sql).await, expected, "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn comparisons_and_extremes_agree_with_order_by() {
    let ctx = create_parallel_session();
    // Window functions cannot sort by structs.
    for (from, n) in [(LISTS, 5)] {
        let places = format!(
            "(SELECT x, row_number() OVER (ORDER BY x) AS n FROM {from} WHERE x IS NOT NULL)"
        );
        for (op, pairs) in [
            ("<", n * (n - 1) / 2),
            (">", n * (n - 1) / 2),
            ("<=", n * (n + 1) / 2),
            (">=", n * (n + 1) / 2),
        ] {
            let sql = format!(
                "SELECT count(*) || ' ' || count(*) FILTER (WHERE a.n {op} b.n) FROM {places} a, {places} b WHERE a.x {op} b.x"
            );
            assert_eq!(query_rows(&ctx, &sql).await, format!("{pairs} {pairs}"), "{sql}");
        }
        let ends = format!("SELECT x FROM {places} WHERE n IN (1, {n}) ORDER BY n");
        let ends = query_rows(&ctx, &ends).await;
        for sql in [
            format!("SELECT min(x) FROM {from} UNION ALL SELECT max(x) FROM {from}"),
            format!("SELECT unnest([min(x), max(x)]) FROM {from}"),
            format!("SELECT unnest([min(x), max(x)]) FROM {from} GROUP BY 1 + 1"),
            format!(
                "SELECT unnest([min(x), max(x)]) FROM (SELECT x, 1 AS g FROM {from} ORDER BY x DESC) GROUP BY g"
            ),
        ] {
            assert_eq!(query_rows(&ctx, &sql).await, ends, "{sql}");
        }
        let sql = format!(
            "SELECT count(*) FROM {places} a, {places} b WHERE greatest(a.x, b.x) = CASE WHEN a.n > b.n THEN a.x ELSE b.x END AND least(a.x, b.x) = CASE WHEN a.n < b.n THEN a.x ELSE b.x END"
        );
        assert_eq!(query_rows(&ctx, &sql).await, (n * n).to_string(), "{sql}");
    }
    let sql = "SELECT greatest(NULL, [1]), least([2], NULL), NULL::INT[] < [1], [NULL] < [NULL], [NULL] <= [NULL]";
    assert_eq!(query_rows(&ctx, sql).await, "[1] [2] NULL false true");
    let sql = "SELECT [1, 2] BETWEEN [1, 1] AND [1, NULL], [1, NULL] NOT BETWEEN [1, 1] AND [1, 5]";
    assert_eq!(query_rows(&ctx, sql).await, "true true");
}

#[tokio::test]
async fn extremes_of_elements_have_the_order_of_order_by() {
    expect_rows(
        &["CREATE TABLE s AS SELECT * FROM (VALUES (1, [{'p': NULL, 'q': 1}, {'p': -4, 'q': 2}, NULL]), (2, []), (3, NULL), (4, [{'p': 7, 'q': NULL}, {'p': 7, 'q': 3}])) t(id, x)"],
        &[
            ("SELECT list_min(x) FROM s ORDER BY id", "{p: -4, q: 2}; NULL; NULL; {p: 7, q: 3}"),
            ("SELECT list_max(x) FROM s ORDER BY id", "{p: , q: 1}; NULL; NULL; {p: 7, q: }"),
            ("SELECT list_min([[NULL], [1]]), list_max([[1, NULL], [1, 2], NULL])", "[1] [1, ]"),
            ("SELECT list_max([[0.0], [-0.0]]), list_min([[[2]], [[1, 0]]])", "[0.0] [[1, 0]]"),
        ],
    )
    .await;
}

/// When this test fails, `find_nested_extremes` in `functions::float_lists` can be removed.
#[tokio::test]
async fn stock_extremes_of_structs_still_have_least_nulls() {
    let ctx = SessionContext::new();
    let list = "make_array(named_struct('p', CAST(NULL AS INT)), named_struct('p', 4))";
    let sql = format!("SELECT coalesce(get_field(array_min({list}), 'p'), 0)");
    assert_eq!(stock_one(&ctx, &sql).await, 0);
}

/// The rows of each group are in several batches and partitions.
#[tokio::test]
async fn extremes_of_lists_do_not_depend_on_batches() {
    let mut all = Vec::new();
    for size in [3, 8192] {
        let config = SessionConfig::new().with_target_partitions(3).with_batch_size(size);
        let ctx = serrate::sql::session_with(config);
        let sql = "SELECT g, min(x), max(x) FROM (SELECT value % 7 AS g,
            [value * 37 % 11, CASE WHEN value % 3 > 0 THEN value % 5 END] AS x FROM range(400))
            GROUP BY g ORDER BY g";
        all.push(query_rows(&ctx, sql).await);
    }
    assert_eq!(all[0], all[1]);
    assert!(all[0].starts_with("0 [0, 0] [10, ]"), "{}", all[0]);
}

/// Every batch has rows of several groups, and every group has rows in several batches and
/// partitions.
#[tokio::test]
async fn extremes_and_first_lists_per_group_have_the_same_types_and_nulls() {
    let lists = "SELECT value AS id, value % 4 AS g, CASE WHEN value % 4 > 0 AND value % 5 > 0
        THEN [value, CASE WHEN value % 3 > 0 THEN -value END] END AS x FROM range(1, 61)";
    let casts = ["BIGINT[]", "LargeList(Int64)", "FixedSizeList(2, Int64)", "struct", "BIGINT[][]"];
    for (partitions, size) in [(1, 8192), (1, 7), (3, 2)] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config.with_batch_size(size));
        for cast in casts {
            let (of, show) = match cast {
                "struct" => ("named_struct('f', x)".to_owned(), "y['f']"),
                "BIGINT[][]" => ("[x, x]".to_owned(), "y[1]"),
                "BIGINT[]" => ("x".to_owned(), "y"),
                _ => (format!("arrow_cast(x, '{cast}')"), "y"),
            };
            // A struct or list that contains NULL is not NULL, so CASE keeps NULL rows NULL.
            let of = format!("CASE WHEN x IS NOT NULL THEN {of} END");
            let from = format!("(SELECT id, g, {of} AS x FROM ({lists}))");
            let cases = [
                ("min(x)", "NULL; [1, -1]; [2, -2]; [3, ]"),
                ("max(x)", "NULL; [57, ]; [58, -58]; [59, -59]"),
                ("max(x) FILTER (WHERE id < 9)", "NULL; [1, -1]; [6, ]; [7, -7]"),
                ("any_value(x) FILTER (WHERE id > 56)", "NULL; [57, ]; [58, -58]; [59, -59]"),
                ("first_value(x) FILTER (WHERE id = 5)", "NULL; NULL; NULL; NULL"),
                ("last_value(x) FILTER (WHERE id IN (6, 7))", "NULL; NULL; [6, ]; [7, -7]"),
            ];
            for (call, expected) in cases {
                // `min` and `max` do not support lists of lists.
                if cast == "BIGINT[][]" && call.starts_with('m') {
                    continue;
                }
                let sql = format!(
                    "SELECT {show} FROM (SELECT g, {call} AS y FROM {from} GROUP BY g) ORDER BY g"
                );
                assert_eq!(
                    query_rows(&ctx, &sql).await,
                    expected,
                    "{cast} {partitions} {size}: {sql}"
                );
                let sql =
                    format!("SELECT arrow_typeof({call}) = arrow_typeof(any_value(x)) FROM {from}");
                assert_eq!(query_rows(&ctx, &sql).await, "true", "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn first_and_last_lists_per_group_are_in_row_order() {
    let rows = "(VALUES (1, 0, NULL), (2, 0, [2]), (3, 1, [3, NULL]), (4, 0, [4]), (5, 1, [5]), (6, 1, NULL), (7, 2, NULL)) t(id, g, x)";
    let unordered = [
        ("first_value(x)", "NULL; [3, ]; NULL"),
        ("first_value(x) IGNORE NULLS", "[2]; [3, ]; NULL"),
        ("last_value(x)", "[4]; NULL; NULL"),
        ("last_value(x) IGNORE NULLS", "[4]; [5]; NULL"),
        ("any_value(x)", "[2]; [3, ]; NULL"),
    ];
    let ordered = [
        ("first_value(x ORDER BY id)", "NULL; [3, ]; NULL"),
        ("first_value(x ORDER BY id DESC)", "[4]; NULL; NULL"),
        ("first_value(x ORDER BY id DESC) IGNORE NULLS", "[4]; [5]; NULL"),
        ("first_value(x ORDER BY id DESC) FILTER (WHERE id < 6)", "[4]; [5]; NULL"),
        ("last_value(x ORDER BY id % 2, id)", "NULL; [5]; NULL"),
        ("last_value(x ORDER BY x[1] NULLS FIRST)", "[4]; [5]; NULL"),
        ("first_value({'f': x} ORDER BY x[1] DESC NULLS LAST)['f']", "[4]; [5]; NULL"),
    ];
    for (partitions, size) in [(1, 3), (3, 2), (1, 8192)] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config.with_batch_size(size));
        let create = format!("CREATE TABLE t AS SELECT * FROM {rows} ORDER BY id");
        query_batches(&ctx, &create).await.unwrap();
        // Without ORDER BY, the rows of several partitions come in any order.
        let unordered = unordered.iter().filter(|_| partitions == 1);
        for (call, expected) in unordered.chain(&ordered) {
            let sql = format!("SELECT {call} FROM t GROUP BY g ORDER BY g");
            assert_eq!(query_rows(&ctx, &sql).await, *expected, "{partitions} {size}: {sql}");
        }
    }
}

/// When this test fails, `PickedRows` can be removed.
#[test]
fn stock_first_values_of_lists_still_count_their_batch() {
    use datafusion::arrow::array::{BooleanArray, ListArray};
    use datafusion::functions_aggregate::first_last::TrivialFirstValueAccumulator;
    use datafusion::logical_expr::Accumulator;

    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(
        (0..1000).map(|row| Some(vec![Some(row); 100])),
    );
    let mut first = TrivialFirstValueAccumulator::try_new(lists.data_type(), false).unwrap();
    let set: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    first.merge_batch(&[Arc::new(lists.slice(0, 1)), set]).unwrap();
    assert!(first.size() > 500 * 100 * 8, "{}", first.size());
}

/// When this test fails, `serrate_nested_order` and `NestedExtremes` can be removed.
#[tokio::test]
async fn stock_comparisons_of_lists_have_least_nulls() {
    let ctx = SessionContext::new();
    let sql = "SELECT CAST(make_array(1, NULL) < make_array(1, 2) AS INT)";
    assert_eq!(stock_one(&ctx, sql).await, 1);
    // DataFusion does not order these structs, and returns the first as minimum and as maximum.
    let sql = "SELECT count(*) FROM (SELECT min(x) AS a, max(x) AS b FROM (VALUES (struct(1, NULL)), (struct(1, 5))) t(x)) WHERE a = b";
    assert_eq!(stock_one(&ctx, sql).await, 1);
}

#[tokio::test]
async fn min_and_max_of_lists_have_sliding_frames() {
    let frame = "OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let after = "OVER (ORDER BY i ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)";
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, [3], {'a': 1}), (2, [1], {'a': NULL}), (3, NULL, NULL), (4, NULL, NULL), (5, [2, 7], {'a': 0})) v(i, x, s)"],
        &[
            (&format!("SELECT max(x) {frame} FROM t ORDER BY i"), "[3]; [3]; [1]; NULL; [2, 7]"),
            (&format!("SELECT min(x) {frame} FROM t ORDER BY i"), "[3]; [1]; [1]; NULL; [2, 7]"),
            (&format!("SELECT max(x) {after} FROM t ORDER BY i"), "[1]; NULL; [2, 7]; [2, 7]; NULL"),
            (&format!("SELECT max(s) {frame} FROM t ORDER BY i"), "{a: 1}; {a: }; {a: }; NULL; {a: 0}"),
            (&format!("SELECT min([x]) {frame} FROM t ORDER BY i"), "[[3]]; [[1]]; [[1]]; []; [[2, 7]]"),
            (
                &format!("SELECT max(x) FILTER (WHERE i <> 2) {frame} FROM t ORDER BY i"),
                "[3]; [3]; NULL; NULL; [2, 7]",
            ),
            ("SELECT max(x) OVER (PARTITION BY i % 2 ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY i", "[3]; [1]; [3]; [1]; [2, 7]"),
        ],
    )
    .await;
}

#[tokio::test]
async fn lists_that_case_returns_are_compared_as_wholes() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (NULL, NULL)) v(x, s)"],
        &[
            ("SELECT ['a'] IS NOT DISTINCT FROM CASE WHEN x > 1 THEN ['a'] END FROM t ORDER BY x", "false; true; false"),
            ("SELECT CASE WHEN x = 1 THEN [s] END IS DISTINCT FROM ['a'] FROM t ORDER BY x", "false; true; true"),
            ("SELECT ['a'] IS NOT DISTINCT FROM CASE WHEN x = 1 THEN [s] ELSE [] END FROM t ORDER BY x", "true; false; false"),
            ("SELECT [1] IS NOT DISTINCT FROM CASE WHEN x > 0 THEN [x] END FROM t ORDER BY x", "true; false; false"),
            ("SELECT [[1]] IS NOT DISTINCT FROM CASE WHEN x > 0 THEN [[x]] END FROM t ORDER BY x", "true; false; false"),
            ("SELECT ['a'] IS NOT DISTINCT FROM CASE WHEN x = 1 THEN arrow_cast(['a'], 'LargeList(Utf8View)') END FROM t ORDER BY x", "true; false; false"),
            ("SELECT count(*) FROM t a JOIN t b ON [a.s] IS NOT DISTINCT FROM CASE WHEN b.x > 0 THEN [b.s] END", "2"),
            ("SELECT x FROM t WHERE CASE WHEN x > 1 THEN ['a'] END IS NOT DISTINCT FROM ['a']", "2"),
        ],
    )
    .await;
}
