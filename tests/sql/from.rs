//! Table functions in FROM, SUMMARIZE, and slices and elements of lists.

use super::*;

/// Returns each row of a query as a string of its cells.
async fn list_cells(ctx: &SessionContext, query: &str) -> Vec<String> {
    let rows = query_texts(ctx, query).await;
    rows.iter().map(|row| row.trim_end().to_owned()).collect()
}

const EVENTS: &str = "CREATE TABLE events AS SELECT * FROM (VALUES \
    (2, 5, 'd'), (1, 1, 'b'), (1, 0, 'a'), (1, 1, 'c'), (2, 5, 'e')) AS v(id, time, code)";

#[tokio::test]
async fn ragged_nest_nests_long_tables() {
    let ctx = create_parallel_session();
    query_batches(&ctx, EVENTS).await.unwrap();
    let expected = ["1 [0, 1] [[a], [b, c]]", "2 [5] [[d, e]]"];
    for from in [
        "ragged_nest('events', 'id', 'time')",
        "ragged_nest(events, 'id', 'time')",
        "ragged_nest((SELECT * FROM events), id, time)",
        "ragged_nest('SELECT * FROM events', 'id', 'time')",
        "ragged_nest('FROM events', 'id', 'time') AS t",
        "ragged_nest('SELECT * FROM events ORDER BY id, time, code', 'id', 'time')",
    ] {
        let query = format!("SELECT * FROM {from} ORDER BY id");
        assert_eq!(list_cells(&ctx, &query).await, expected, "{from}");
    }
    // The query in the string may use the CTEs of the statement.
    let named = "WITH e AS (SELECT * FROM events WHERE code <> 'b') FROM ragged_nest('e', 'id')";
    assert_eq!(list_cells(&ctx, named).await, ["1 [0, 1] [a, c]", "2 [5, 5] [d, e]"]);
    // Queries over the nested rows: a subset of columns, conditions, aggregates, views.
    let part = "SELECT code FROM ragged_nest('events', 'id', 'time') WHERE id = 1";
    assert_eq!(list_cells(&ctx, part).await, ["[[a], [b, c]]"]);
    let plan = query_text(&ctx, &format!("EXPLAIN {part}")).await;
    assert!(plan.contains("NestExec: keys=[id, time], sorted=false"), "{plan}");
    let below = plan.split("NestExec").nth(1).unwrap();
    assert!(below.contains("FilterExec: id@0 = 1"), "the condition is not below: {plan}");
    let many = "SELECT sum(ragged_count(code)) FROM ragged_nest('events', 'id', 'time')";
    assert_eq!(list_cells(&ctx, many).await, ["5"]);
    query_batches(&ctx, "CREATE VIEW nested AS FROM ragged_nest('events', 'id')").await.unwrap();
    assert_eq!(list_cells(&ctx, "SELECT count(*) FROM nested").await, ["2"]);
    // A condition on a nested column is evaluated on the nested rows.
    let lists = "SELECT id FROM ragged_nest('events', 'id') WHERE ragged_any(code == 'e')";
    assert_eq!(list_cells(&ctx, lists).await, ["2"]);
    let none = "SELECT count(*) FROM ragged_nest('SELECT * FROM events WHERE id > 9', 'id')";
    assert_eq!(list_cells(&ctx, none).await, ["0"]);
}

#[tokio::test]
async fn ragged_nest_streams_sorted_input() {
    let ctx = create_parallel_session();
    query_batches(&ctx, "SET serrate.leaf_batch_size = 100").await.unwrap();
    query_batches(
        &ctx,
        "CREATE TABLE long AS SELECT i / 7 AS id, i AS v FROM (SELECT unnest(range(0, 3000)) AS i)",
    )
    .await
    .unwrap();
    let from = "ragged_nest('SELECT * FROM long ORDER BY id, v', 'id')";
    let plan = query_text(&ctx, &format!("EXPLAIN SELECT * FROM {from}")).await;
    assert!(plan.contains("sorted=true"), "{plan}");
    let batches = query_batches(&ctx, &format!("SELECT id, v FROM {from}")).await.unwrap();
    assert!(batches.len() > 10, "{} batches", batches.len());
    let mut next = 0;
    for batch in &batches {
        let lists = batch.column(1).as_list::<i32>();
        let ids = batch.column(0).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            assert_eq!(ids.value(row), next / 7);
            let values = lists.value(row);
            for v in values.as_primitive::<Int64Type>().values() {
                assert_eq!(*v, next);
                next += 1;
            }
        }
    }
    assert_eq!(next, 3000);
    // A nested row may have more values than a batch.
    let one =
        "SELECT ragged_count(v) FROM ragged_nest('SELECT 1 AS id, v FROM long ORDER BY id', 'id')";
    assert_eq!(list_cells(&ctx, one).await, ["3000"]);
}

#[tokio::test]
async fn ragged_nest_keeps_the_place_of_null() {
    for key in ["0.5::DOUBLE, 0.0", "0.5::FLOAT, 0.0", "2, 1", "'b', 'a'"] {
        let (high, low) = key.split_once(", ").unwrap();
        let create = format!(
            "CREATE TABLE t AS SELECT * FROM (VALUES ({high}, 'a'), (NULL, 'b'), ({low}, 'c'), \
             (NULL, 'd'), ({low}, 'e')) AS v(k, x)"
        );
        let cases = [
            ("FROM t ORDER BY k", "'k'", "[c, e]; [a]; [b, d]"),
            ("FROM t ORDER BY k NULLS FIRST", "'k'", "[b, d]; [c, e]; [a]"),
            ("FROM t ORDER BY k, x", "'k', 'x'", "[c, e]; [a]; [b, d]"),
            ("FROM t", "'k'", "[b, d]; [c, e]; [a]"),
        ];
        for (query, keys, expected) in cases {
            let sql = format!("SELECT x FROM ragged_nest(({query}), {keys})");
            expect_rows(&[create.as_str()], &[(sql.as_str(), expected)]).await;
        }
    }
}

#[tokio::test]
async fn ragged_nest_reverses_ragged_explode() {
    let ctx = create_parallel_session();
    query_batches(
        &ctx,
        "CREATE TABLE t AS SELECT * FROM (VALUES \
         (1, [10, 11], [['a'], ['b', NULL]]), (2, [20], [['c']]), (3, [30, 31, 32], [['d'], ['e', 'f', 'g'], ['h']])) \
         AS v(id, time, code)",
    )
    .await
    .unwrap();
    assert_eq!(
        list_cells(&ctx, "FROM ragged_explode('t') LIMIT 3").await,
        ["1 10 a", "1 11 b", "1 11"]
    );
    let again = "SELECT * FROM ragged_nest('FROM ragged_explode(''t'')', 'id', 'time') ORDER BY id";
    assert_eq!(
        list_cells(&ctx, again).await,
        list_cells(&ctx, "SELECT * FROM t ORDER BY id").await
    );
    let again =
        "SELECT * FROM ragged_nest((SELECT * FROM ragged_explode(t)), 'id', 'time') ORDER BY id";
    assert_eq!(
        list_cells(&ctx, again).await,
        list_cells(&ctx, "SELECT * FROM t ORDER BY id").await
    );
    // The positions of events keep events apart that have the same time.
    assert_eq!(
        list_cells(
            &ctx,
            "SELECT axis1, axis2, code FROM ragged_explode('t', positions => true) WHERE id = 3"
        )
        .await,
        ["0 0 d", "1 0 e", "1 1 f", "1 2 g", "2 0 h"]
    );
    let positions = "SELECT * EXCLUDE (axis1) FROM ragged_nest('SELECT id, axis1, code FROM ragged_explode(''t'', positions => true)', 'id', 'axis1') ORDER BY id";
    assert_eq!(
        list_cells(&ctx, positions).await,
        list_cells(&ctx, "SELECT id, code FROM t ORDER BY id").await
    );
    // Empty and NULL lists have no row, unless the argument requests one.
    query_batches(
        &ctx,
        "CREATE TABLE holes AS SELECT * FROM (VALUES (1, [7]), (2, []), (3, NULL)) AS v(id, x)",
    )
    .await
    .unwrap();
    assert_eq!(list_cells(&ctx, "FROM ragged_explode('holes')").await, ["1 7"]);
    assert_eq!(
        list_cells(&ctx, "FROM ragged_explode('holes', keep_empty => true)").await,
        ["1 7", "2", "3"]
    );
    // The number of rows does not depend on the selected columns.
    assert_eq!(list_cells(&ctx, "SELECT id FROM ragged_explode('t')").await.len(), 9);
    assert_eq!(list_cells(&ctx, "SELECT count(*) FROM ragged_explode('t')").await, ["9"]);
}

#[tokio::test]
async fn ragged_axes_counts_the_elements_of_axes() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.nrt");
    write_table(&file, &make_numbered_table(0, 100));
    let axes = format!("FROM ragged_axes('{}')", display_path(&file));
    assert_eq!(
        list_cells(&ctx, &axes).await,
        ["0 [id] 100", "1 [] 100 1 1 1.0 0", "2 [code] 450 0 9 4.5 10"]
    );
    let plan = query_text(&ctx, &format!("EXPLAIN {axes}")).await;
    let scan = plan.lines().rfind(|l| l.contains("DataSourceExec")).unwrap();
    assert!(scan.contains("ragged_lengths"), "values would be read: {plan}");
    assert_eq!(list_cells(&ctx, "FROM ragged_axes('SELECT 1 AS a')").await, ["0 [a] 1"]);
    query_batches(&ctx, "CREATE TABLE none (a INT, b INT[])").await.unwrap();
    assert_eq!(list_cells(&ctx, "FROM ragged_axes(none)").await, ["0 [a] 0", "1 [b] 0    0"]);
}

#[tokio::test]
async fn summarize_returns_statistics_of_columns() {
    let ctx = create_parallel_session();
    query_batches(
        &ctx,
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'x', [[1.5, 2.5], []], true), (2, NULL, [[NULL, 4.0]], false), \
         (3, 'z', NULL, NULL)) AS v(a, b, c, d)",
    )
    .await
    .unwrap();
    for statement in ["SUMMARIZE t", "SUMMARIZE SELECT * FROM t;", "FROM summarize('t')"] {
        let rows = list_cells(&ctx, statement).await;
        assert_eq!(rows.len(), 4, "{statement}");
        assert!(rows[0].starts_with("a Int64 0.0 1 3 3 3 "), "{}", rows[0]);
        assert!(rows[0].contains(" 1.0 ") && rows[0].ends_with(" 2.0"), "{}", rows[0]);
        assert!(rows[1].starts_with("b Utf8") && rows[1].contains(" 33.33 x z 2 3"), "{}", rows[1]);
        assert!(rows[2].starts_with("c List"), "{}", rows[2]);
        assert!(rows[2].contains(" 25.0 1.5 4.0 3 3 4 2, 2 "), "{}", rows[2]);
        assert!(rows[2].ends_with(" 2.6666666666666665"), "{}", rows[2]);
        assert!(rows[3].contains("false true"), "{}", rows[3]);
    }
    let one = "SELECT column_name, count FROM (SUMMARIZE SELECT 1 AS x, [2] AS y)";
    assert_eq!(list_cells(&ctx, one).await, ["x 1", "y 1"]);
    // `null_percentage` counts the values in lists. A NULL or empty list has no values.
    let figures = "SELECT null_percentage, count, leaves FROM (SUMMARIZE SELECT x FROM (VALUES \
        {}) AS v(x))";
    for (lists, expected) in [
        ("([1, NULL, NULL]), ([2]), ([]), (NULL)", "50.0 4 4"),
        ("([[1, 2], NULL, []]), ([[NULL, 3]]), (NULL)", "25.0 3 4"),
        ("([1]), (NULL)", "0.0 2 1"),
        ("([NULL::INT])", "100.0 1 1"),
        ("([]::INT[]), (NULL)", " 2 0"),
        ("(1), (NULL), (NULL), (4)", "50.0 4"),
    ] {
        assert_eq!(list_cells(&ctx, &figures.replace("{}", lists)).await, [expected], "{lists}");
    }
    assert!(query_text(&ctx, "EXPLAIN SUMMARIZE t").await.contains("AggregateExec"));
    assert_eq!(list_cells(&ctx, "SUMMARIZE SELECT 1 AS a WHERE false").await.len(), 1);
}

#[tokio::test]
async fn read_functions_read_files_of_any_name() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| display_path(&dir.path().join(name));
    query_batches(&ctx, &format!("COPY (SELECT 1 AS a) TO '{}'", at("x.parquet"))).await.unwrap();
    query_batches(&ctx, &format!("COPY (SELECT 2 AS a) TO '{}'", at("y.parquet"))).await.unwrap();
    std::fs::copy(dir.path().join("x.parquet"), dir.path().join("it's data")).unwrap();
    std::fs::write(dir.path().join("p.csv"), "1|2\n3|4\n").unwrap();
    std::fs::write(dir.path().join("r.ndjson"), "{\"a\": [1, 2]}\n{\"a\": []}\n").unwrap();
    write_table(&dir.path().join("t.nrt"), &make_numbered_table(0, 10));
    let one = format!("FROM read_parquet('{}')", at("x.parquet"));
    assert_eq!(list_cells(&ctx, &one).await, ["1"]);
    let odd = format!("SELECT read_parquet.a FROM read_parquet('{}')", at("it''s data"));
    assert_eq!(list_cells(&ctx, &odd).await, ["1"]);
    let list = format!(
        "SELECT sum(a) FROM read_parquet(['{}', '{}']) AS p",
        at("x.parquet"),
        at("y.parquet")
    );
    assert_eq!(list_cells(&ctx, &list).await, ["3"]);
    let many = format!("SELECT sum(a) FROM read_parquet('{}')", at("*.parquet"));
    assert_eq!(list_cells(&ctx, &many).await, ["3"]);
    let csv = format!("FROM read_csv('{}', delim = '|', header = false)", at("p.csv"));
    assert_eq!(list_cells(&ctx, &csv).await, ["1 2", "3 4"]);
    let json = format!("SELECT ragged_count(a) FROM read_ndjson('{}')", at("r.ndjson"));
    assert_eq!(list_cells(&ctx, &json).await, ["2", "0"]);
    let nrt = format!("SELECT sum(ragged_count(code)) FROM read_nrt('{}')", at("t.nrt"));
    assert_eq!(list_cells(&ctx, &nrt).await, ["45"]);
    let nested = format!("FROM ragged_nest('FROM read_parquet(''{}'')', 'a')", at("x.parquet"));
    assert_eq!(list_cells(&ctx, &nested).await, ["1"]);
    let e = error(&ctx, "FROM read_parquet('nowhere.parquet')").await;
    assert!(e.contains("nowhere.parquet"), "{e}");
    let e = error(&ctx, "FROM read_parquet()").await;
    assert!(e.contains("read_parquet('data/*.parquet')"), "{e}");
    let e = error(&ctx, &format!("FROM read_csv('{}', skip = 3)", at("p.csv"))).await;
    assert!(e.contains("no option skip") && e.contains("delim"), "{e}");
}

#[tokio::test]
async fn vocab_returns_the_tokens_of_a_vocabulary() {
    let ctx = create_parallel_session();
    let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny-codes");
    let first = format!("FROM vocab('{tiny}') LIMIT 2");
    assert_eq!(list_cells(&ctx, &first).await, ["1 DX//250.00", "2 DX//E10.9"]);
    let count = format!("SELECT count(*), max(token) FROM vocab('{tiny}/codes.parquet')");
    assert_eq!(list_cells(&ctx, &count).await, ["14 14"]);
    assert!(error(&ctx, "FROM vocab('nowhere')").await.contains("nowhere"));
}

#[tokio::test]
async fn slices_have_the_bounds_of_duckdb() {
    let ctx = create_parallel_session();
    for (slice, expected) in [
        ("[1, 2, 3][2:]", "[2, 3]"),
        ("[1, 2, 3][:2]", "[1, 2]"),
        ("[1, 2, 3][:-1]", "[1, 2, 3]"),
        ("[1, 2, 3][-2:]", "[2, 3]"),
        ("[1, 2, 3][4:]", "[]"),
        ("[1, 2, 3][0:2]", "[1, 2]"),
        ("[1, 2, 3][:]", "[1, 2, 3]"),
        ("[1, 2, 3][2:1]", "[]"),
        ("[1, 2, 3][3:1:-1]", "[3, 2, 1]"),
        ("[[1, 2], [3]][:1][1][2:]", "[2]"),
    ] {
        assert_eq!(list_cells(&ctx, &format!("SELECT {slice}")).await, [expected], "{slice}");
    }
    let column = "SELECT x[n:] FROM (VALUES ([1, 2, 3], 2), ([4], 1)) AS t(x, n)";
    assert_eq!(list_cells(&ctx, column).await, ["[2, 3]", "[4]"]);
}

#[tokio::test]
async fn both_bounds_of_slices_are_clipped() {
    let tables = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, [1, 2, 3], 9, 1, -1), (2, [4, NULL], -1, -9, -1), (3, [], 3, 1, -1), (4, NULL, 3, 1, -1), (5, [5, 6, 7], 2, 0, -2), (6, [8, 9], 0, 1, -1), (7, [1, 2, 3], 1, 9, 2), (8, [1], NULL, 1, -1)) AS v(id, x, a, b, s)",
        "CREATE TABLE f AS SELECT id, arrow_cast([id, 2, 3], 'FixedSizeList(3, Int64)') AS x, a, b, s FROM t",
        "CREATE TABLE l AS SELECT id, arrow_cast(x, 'LargeList(Int64)') AS x, a, b, s FROM t",
    ];
    let sliced = "1 [3, 2, 1]; 2 [, 4]; 3 []; 4 NULL; 5 [6]; 6 []; 7 [1, 3]; 8 NULL";
    let cases = [
        ("SELECT [1, 2][3:1:-1], [1, 2][9:1:-1], [1, 2][-1:-9:-1]", "[2, 1] [2, 1] [2, 1]"),
        ("SELECT [1, 2][2:0:-1], [1, 2][0:1:-1], [1, 2][-9:1:-1]", "[2, 1] [] []"),
        ("SELECT [1, 2, 3, 4][9:-9:-3], [1, 2][1:9:-1], [1, 2, 3][2:2:-1]", "[4, 1] [] [2]"),
        ("SELECT [1, 2, 3][:2:-1], array_slice([1, 2], 3, 1, -1)", "[3, 2] [2, 1]"),
        (
            "SELECT x[9:1:-1], x[9223372036854775807:-9223372036854775807:-2], x[1:9223372036854775807], x[-9223372036854775807:2:9223372036854775807] FROM t WHERE id = 1",
            "[3, 2, 1] [3, 1] [1, 2, 3] [1]",
        ),
        ("SELECT id, x[a:b:s] FROM t ORDER BY id", sliced),
        ("SELECT id, x[a:b:s] FROM l ORDER BY id", sliced),
        ("SELECT id, array_slice(x, a, b, s) FROM l ORDER BY id", sliced),
        (
            "SELECT x[9:1:-1], x[a:b:s] FROM f WHERE id IN (1, 2, 5) ORDER BY id",
            "[3, 2, 1] [3, 2, 1]; [3, 2, 2] [3, 2, 2]; [3, 2, 5] [2]",
        ),
        ("SELECT x[9:1:-1] FROM f WHERE id = 2", "[3, 2, 2]"),
        ("SELECT arrow_typeof(x[9:1:-1]) FROM l WHERE id = 2", "LargeList(Int64)"),
        ("SELECT [[1, 2], [3]][9:1:-1], ['a', 'b'][9:1:-1]", "[[3], [1, 2]] [b, a]"),
    ];
    expect_rows(&tables, &cases).await;
    let ctx = create_parallel_session();
    let e = error(&ctx, "SELECT [1, 2][1:2:0]").await;
    assert!(e.contains("has the step 0; use a positive step"), "{e}");
}

#[tokio::test]
async fn positions_beyond_every_list_are_clipped() {
    let tables = [
        "CREATE TABLE t AS SELECT id, x, arrow_cast(u, 'UInt64') AS u, i FROM (VALUES (1, [1, 2], '9223372036854775808', 9223372036854775807), (2, [3], '1', 1), (3, [4], NULL, NULL), (4, NULL, '2', -3000000000)) AS v(id, x, u, i)",
        "CREATE TABLE l AS SELECT id, arrow_cast(x, 'LargeList(Int64)') AS x, u, i FROM t",
    ];
    let element = "1 NULL NULL; 2 3 3; 3 NULL NULL; 4 NULL NULL";
    let cases = [
        (
            "SELECT [1, 2][9223372036854775807], [1, 2][-9223372036854775807], [1, 2][-9223372036854775808], [1, 2][3000000000], [1, 2][18446744073709551615]",
            "NULL NULL NULL NULL NULL",
        ),
        (
            "SELECT list_extract(x, 9223372036854775807), x[-9223372036854775808], array_element(x, 18446744073709551615) FROM t WHERE id = 1",
            "NULL NULL NULL",
        ),
        ("SELECT id, x[u], array_element(x, u) FROM t ORDER BY id", element),
        ("SELECT id, x[i], array_element(x, i) FROM t ORDER BY id", element),
        ("SELECT id, x[u], array_element(x, i) FROM l ORDER BY id", element),
        // The position is a decimal, the type of a UInt64 plus an Int64.
        (
            "SELECT x[u - 9223372036854775807], x[-9223372036854775807 - u] FROM t WHERE id = 1",
            "1 NULL",
        ),
        (
            "SELECT id, x[u:], x[:u] FROM t ORDER BY id",
            "1 [] [1, 2]; 2 [3] [3]; 3 NULL NULL; 4 NULL NULL",
        ),
        (
            "SELECT x[-9223372036854775808:9223372036854775807], x[1:u:u], array_slice(x, 1, u) FROM t WHERE id = 1",
            "[1, 2] [1] [1, 2]",
        ),
        (
            "SELECT x[9223372036854775807:-9223372036854775808:-1], x[2:18446744073709551615] FROM t WHERE id = 1",
            "[2, 1] [2]",
        ),
        ("SELECT list_transform([[1, 2]], lambda y: y[9223372036854775807])", "[]"),
        (
            "SELECT array_agg(id ORDER BY id)[2], array_agg(id)[9223372036854775807] FROM t",
            "2 NULL",
        ),
    ];
    expect_rows(&tables, &cases).await;
}

#[tokio::test]
async fn elements_of_array_agg_are_read() {
    let tables = [
        "CREATE TABLE t AS SELECT id, id % 2 AS k, arrow_cast(id, 'UInt64') AS u FROM (VALUES (1), (2), (3)) v(id)",
    ];
    let cases = [
        (
            "SELECT array_agg(id ORDER BY id)[9223372036854775808], array_agg(id ORDER BY id)[18446744073709551615], array_agg(id ORDER BY id)[0], array_agg(id ORDER BY id)[NULL], array_agg(id ORDER BY id)[NULL::INT] FROM t",
            "NULL NULL NULL NULL NULL",
        ),
        (
            "SELECT array_agg(id ORDER BY id)[2::TINYINT], array_agg(id ORDER BY id)[1 + 1], array_agg(id ORDER BY id)[-1], array_agg(id ORDER BY id)[arrow_cast(2, 'UInt64')], array_agg(id ORDER BY id)[2::DECIMAL(10, 0)] FROM t",
            "2 2 3 2 2",
        ),
        (
            "SELECT array_agg(DISTINCT k ORDER BY k)[2], array_agg(id ORDER BY id) FILTER (WHERE id > 1)[1] FROM t",
            "1 2",
        ),
        (
            "SELECT k, array_agg(id ORDER BY id)[k], array_agg(id ORDER BY id)[k + 1], array_agg(id ORDER BY id)[max(u)] FROM t GROUP BY k ORDER BY k",
            "0 NULL 2 NULL; 1 1 3 NULL",
        ),
        (
            "SELECT k FROM t GROUP BY k HAVING array_agg(id ORDER BY id)[9223372036854775808] IS NULL ORDER BY k",
            "0; 1",
        ),
    ];
    expect_rows(&tables, &cases).await;
    let ctx = create_parallel_session();
    for sql in ["SELECT [1, 2][1.5]", "SELECT array_agg(id)[1.5] FROM (VALUES (1)) v(id)"] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("array_element does not accept arguments of the types"), "{sql}\n{e}");
    }
}

/// `functions::clipped_element` can be removed once this test fails.
#[tokio::test]
async fn stock_elements_still_need_short_indexes() {
    let sql = "SELECT array_element([1], 9223372036854775807)";
    let e = stock_error(&SessionContext::new(), sql).await;
    assert!(e.contains("invalid index"), "{e}");
}

/// `functions::clipped_slice` can be removed once this test fails.
#[tokio::test]
async fn stock_backward_slices_are_still_not_clipped() {
    let ctx = SessionContext::new();
    let sql = "SELECT array_slice([1, 2], 3, 1, -1) AS a, array_slice([1, 2], 2, 0, -1) AS b";
    let found = stock_text(&ctx, sql).await;
    assert!(found.contains("| [] | [] |"), "{found}");
}

#[tokio::test]
async fn unnest_in_from_and_lambdas_may_be_in_one_statement() {
    let ctx = create_parallel_session();
    let both = "SELECT sum(v) FROM unnest([1, 2, 3]) AS u(v) WHERE v IN (SELECT * FROM unnest(array_transform([1, 2], lambda x: x + 1)))";
    assert_eq!(list_cells(&ctx, both).await, ["5"]);
}

#[tokio::test]
async fn ragged_lookup_finds_values_in_tables() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    query_batches(&ctx, "CREATE TABLE units AS SELECT * FROM (VALUES ('kg', 1.0, [50.0, 80.0]), ('lb', 0.45, NULL)) AS v(code, factor, cuts)")
        .await
        .unwrap();
    query_batches(&ctx, "CREATE TABLE t AS SELECT * FROM (VALUES (1, [['lb', 'kg'], ['?']], [[1.0, 80.0], [3.0]]), (2, NULL, NULL)) AS v(id, code, val)")
        .await
        .unwrap();
    let file = display_path(&dir.path().join("units.csv"));
    query_batches(&ctx, &format!("COPY (SELECT code, factor FROM units) TO '{file}'"))
        .await
        .unwrap();
    for from in ["units", "SELECT * FROM units", &file] {
        let query = format!(
            "SELECT ragged_lookup(code, '{}', 'code', 'factor') AS f FROM t ORDER BY id",
            from
        );
        assert_eq!(list_cells(&ctx, &query).await, ["[[0.45, 1.0], []]", ""], "{from}");
    }
    let name =
        query_text(&ctx, "SELECT ragged_lookup(code, 'units', 'code', 'factor') FROM t").await;
    assert!(name.contains("| ragged_lookup(code, 'units', 'code', 'factor') |"), "{name}");
    let kept =
        "SELECT id FROM t WHERE ragged_any(ragged_lookup(code, 'units', 'code', 'factor') > 0.9)";
    assert_eq!(list_cells(&ctx, kept).await, ["1"]);
    let grouped = "SELECT count(*) FROM t GROUP BY ragged_max(ragged_lookup(code, 'units', 'code', 'factor'))";
    assert_eq!(list_cells(&ctx, grouped).await, ["1", "1"]);
    let cte = "WITH u AS (SELECT 'kg' AS code, 7 AS n) SELECT ragged_sum(ragged_lookup(code, 'u', 'code', 'n')) FROM t ORDER BY id";
    assert_eq!(list_cells(&ctx, cte).await, ["7", ""]);
    let bins = "SELECT ragged_bin(val, code, 'units') FROM t ORDER BY id";
    assert_eq!(list_cells(&ctx, bins).await, ["[[, 2], []]", ""]);
    let one = "SELECT ragged_bin(val, 'kg', 'units', 'code', 'cuts') FROM t WHERE id = 1";
    assert_eq!(list_cells(&ctx, one).await, ["[[0, 2], [0]]"]);
    let plain = "SELECT ragged_lookup('lb', 'units', 'code', 'factor')";
    assert_eq!(list_cells(&ctx, plain).await, ["0.45"]);
    let e = error(&ctx, "SELECT ragged_lookup(code, 'nowhere', 'code', 'x') FROM t").await;
    assert!(e.contains("nowhere"), "{e}");
    let e = error(&ctx, "SELECT ragged_lookup(val, 'units', 'code', 'factor') FROM t").await;
    assert!(e.contains("cannot be looked up among keys"), "{e}");
    let twice = "SELECT ragged_lookup(code, 'SELECT ''kg'' AS k, 1 AS v FROM t', 'k', 'v') FROM t";
    assert!(error(&ctx, twice).await.contains("\"kg\" occurs twice"));
}

#[tokio::test]
async fn errors_of_table_functions_name_the_cause() {
    let ctx = create_parallel_session();
    query_batches(&ctx, EVENTS).await.unwrap();
    for (query, said) in [
        ("FROM ragged_nest()", "ragged_nest('SELECT"),
        ("FROM ragged_nest('events')", "no column is given"),
        ("FROM ragged_nest('events', 'nothing')", "nothing"),
        ("FROM ragged_nest('events', 3)", "expected the name of a column, found 3"),
        ("FROM ragged_nest('SELECT * FRO events', 'id')", "the string is not a valid query"),
        ("FROM ragged_nest('nowhere', 'id')", "nowhere"),
        (
            "FROM ragged_nest('SELECT e.id, f.id FROM events e, events f', 'id')",
            "two columns named \"id\"",
        ),
        ("FROM ragged_explode('events', depth => 3)", "true or false"),
        ("FROM ragged_explode('events', depth => true)", "no option depth"),
        ("FROM ragged_axes('events', 1)", "takes one argument"),
    ] {
        let e = error(&ctx, query).await;
        assert!(e.contains(said), "{query}: {e}");
    }
}

#[tokio::test]
async fn query_arguments_may_begin_with_from_and_have_extra_parentheses() {
    let ctx = serrate::sql::session();
    let make = "CREATE TABLE lists AS SELECT * FROM (VALUES (1, [1, 2]), (2, [3])) AS t(id, x)";
    serrate::sql::sql(&ctx, make).await.unwrap().collect().await.unwrap();
    for (query, rows) in [
        ("SELECT * FROM ragged_explode((FROM lists))", 3),
        ("SELECT * FROM ragged_explode(((SELECT * FROM lists)))", 3),
        ("FROM ragged_axes((FROM lists))", 2),
        ("SUMMARIZE (SELECT id FROM lists)", 1),
        ("SUMMARIZE (FROM lists)", 2),
        ("SUMMARIZE FROM lists", 2),
        ("SUMMARIZE FROM (FROM lists)", 2),
        ("SELECT id FROM lists WHERE id IN (FROM (SELECT 1 AS k))", 1),
        ("SELECT id FROM lists WHERE EXISTS (FROM lists)", 2),
    ] {
        let frame = serrate::sql::sql(&ctx, query).await.unwrap_or_else(|e| panic!("{query}\n{e}"));
        assert_eq!(frame.count().await.unwrap(), rows, "{query}");
    }
}

#[tokio::test]
async fn query_arguments_have_their_final_types() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1, 3), (5, 4), (5, 2)) v(x, y)"],
        &[
            ("SELECT k, y FROM ragged_nest('SELECT CASE WHEN x < 5 THEN 1::INT ELSE x END AS k, y FROM t', 'k')", "1 [3]; 5 [4, 2]"),
            ("SELECT k, y FROM ragged_nest('SELECT coalesce(1::SMALLINT, x) AS k, y FROM t', 'k')", "1 [3, 4, 2]"),
            ("SELECT k, y FROM ragged_nest('SELECT x AS k, CASE WHEN y < 3 THEN 1::INT ELSE y + 0.5 END AS y FROM t', 'k')", "1 [3.5]; 5 [4.5, 1.0]"),
            ("SELECT arrow_typeof(k) FROM ragged_nest('SELECT CASE WHEN x < 5 THEN 1::INT ELSE x END AS k, y FROM t', 'k') LIMIT 1", "Int64"),
            (
                "SELECT k, y FROM ragged_nest('SELECT 1::INT AS k, y FROM t UNION ALL SELECT x, y FROM t WHERE y < 3', 'k')",
                "1 [3, 4, 2]; 5 [2]",
            ),
            ("SELECT v FROM ragged_explode('SELECT CASE WHEN x < 5 THEN [1::INT] ELSE [x, y] END AS v FROM t') ORDER BY v", "1; 2; 4; 5; 5"),
        ],
    )
    .await;
}

#[tokio::test]
async fn table_functions_outside_from_are_refused() {
    let ctx = create_parallel_session();
    for (call, name) in [
        ("ragged_nest('t', 'id')", "ragged_nest"),
        ("ragged_axes('t')", "ragged_axes"),
        ("summarize('t')", "summarize"),
        ("meds('d')", "meds"),
        ("meds_features('d', 'l')", "meds_features"),
        ("meds_cohort('d', 'c')", "meds_cohort"),
        ("vocab('v')", "vocab"),
        ("read_parquet('a.parquet')", "read_parquet"),
        ("1 + read_csv('a.csv')", "read_csv"),
    ] {
        let e = rows_or_error(&ctx, &format!("SELECT {call} AS x")).await;
        assert!(e.contains(&format!("{name} is a table function; write FROM {name}(..)")), "{e}");
    }
    let e = rows_or_error(&ctx, "SELECT ragged_explode((SELECT 1))").await;
    assert!(e.contains("write unnest(x), or FROM ragged_explode('t')"), "{e}");
}

#[tokio::test]
async fn errors_of_unknown_url_schemes_list_the_known_ones() {
    let ctx = serrate::sql::session();
    let statements = |url: &str| {
        [
            format!("FROM '{url}'"),
            format!("SELECT count(*) FROM read_csv('{url}')"),
            format!("COPY (SELECT 1 AS x) TO '{url}'"),
            format!("COPY (SELECT 1 AS x) TO '{url}.d/' STORED AS CSV"),
            format!("CREATE EXTERNAL TABLE t (x INT) STORED AS CSV LOCATION '{url}'"),
        ]
    };
    let mut cases = vec![("hdfs", "hdfs:// is not a known URL scheme; use a local path")];
    if cfg!(not(feature = "cloud")) {
        cases.push(("s3", "s3:// is the URL of an object store, which this program cannot"));
        cases.push(("https", "https:// is the URL of an object store, which this program cannot"));
    }
    for (scheme, expected) in cases {
        for sql in statements(&format!("{scheme}://name/x.csv")) {
            let e = rows_or_error(&ctx, &sql).await;
            assert!(e.contains(expected), "{sql}: {e}");
            assert!(e.contains("cloud") || cfg!(feature = "cloud"), "{sql}: {e}");
            assert!(!e.to_lowercase().contains("internal error"), "{sql}: {e}");
        }
    }
    if cfg!(not(feature = "cloud")) {
        for from in ["meds('s3://name/meds')", "vocab('s3://name/meds')"] {
            let e = rows_or_error(&ctx, &format!("SELECT * FROM {from}")).await;
            assert!(e.contains("feature `cloud`"), "{from}: {e}");
        }
    }
}

/// When this test fails, `serrate_from_alone` can be removed.
#[tokio::test]
async fn stock_from_alone_still_has_no_columns() {
    for (ctx, columns) in [(SessionContext::new(), 0), (serrate::sql::session(), 1)] {
        stock_batches(&ctx, "CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
        let frame = ctx.sql("FROM t").await.unwrap();
        let plan = frame.into_optimized_plan().unwrap();
        assert_eq!(plan.schema().fields().len(), columns);
    }
}

#[tokio::test]
async fn aliases_may_name_the_first_columns() {
    let setup = [
        "CREATE TABLE t AS SELECT 1 AS p, 2 AS q, 3 AS r",
        "CREATE VIEW v (x) AS SELECT p, q FROM t",
    ];
    let cases = [
        ("SELECT x, q FROM (SELECT 1 AS p, 2 AS q) a(x)", "1 2"),
        ("SELECT a.x, a.q, r FROM t AS a(x)", "1 2 3"),
        ("SELECT x, y, r FROM t a(x, y) WHERE x = 1 ORDER BY r", "1 2 3"),
        ("SELECT a.x, b.z, b.q FROM t a(x) JOIN t AS b(z) ON a.x = b.z", "1 1 2"),
        ("SELECT x FROM (VALUES (1, 2), (3, 4)) AS a(x) ORDER BY x", "1; 3"),
        ("SELECT x, q FROM (SELECT p, q FROM (SELECT * FROM t) AS b(p)) AS a(x)", "1 2"),
        ("WITH a(x) AS (SELECT 1 AS p, 2 AS q) SELECT a.x, q FROM a", "1 2"),
        ("WITH a(x) AS (SELECT p, q FROM t ORDER BY p LIMIT 1) SELECT x + q FROM a", "3"),
        ("WITH a(x) AS (VALUES (1, 2) UNION ALL VALUES (3, 4)) SELECT x FROM a ORDER BY x", "1; 3"),
        ("WITH a AS (SELECT 1 AS p, 2 AS q) SELECT x, q FROM a AS b(x)", "1 2"),
        ("SELECT x, q FROM v", "1 2"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    for (sql, expected) in [
        (
            "SELECT * FROM (SELECT 1 AS p) a(x, y)",
            "in parentheses is 2, but the table, view or query has 1 columns",
        ),
        (
            "WITH a(x) AS (SELECT * FROM (SELECT 1 AS p, 2 AS q)) SELECT x FROM a",
            "in parentheses is 1, but the table, view or query has 2 columns; write a name for each",
        ),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(expected), "{sql}: {e}");
    }
}

/// When this test fails, `name_first_columns` in `sql::from::planned_relations` and
/// `sql::statement::names::partial_names` can be removed.
#[tokio::test]
async fn stock_aliases_must_still_name_all_columns() {
    let e = stock_error(&SessionContext::new(), "SELECT x FROM (SELECT 1 AS p, 2 AS q) a(x)").await;
    assert!(e.contains("names given as column alias"), "{e}");
}

/// Operators have the same precedences as in statements, not those of the parser's DuckDB dialect.
#[tokio::test]
async fn queries_in_quotes_are_parsed_like_statements() {
    let ctx = serrate::sql::session();
    for expr in [
        "true IS DISTINCT FROM false AND false",
        "1 << 3 & 2",
        "~1 + 2",
        "2 * 3 ** 2",
        "1 | 2 = 3",
        "[1] || 2 + 3",
        "list_sum([v + 1 FOR v IN [1, 2]])",
    ] {
        let plain = rows_or_error(&ctx, &format!("SELECT {expr} AS a")).await;
        let quoted = format!("SELECT a FROM ragged_nest('SELECT 1 AS k, {expr} AS a', 'k')");
        assert_eq!(rows_or_error(&ctx, &quoted).await, format!("[{plain}]"), "{expr}");
        let lookup = format!(
            "SELECT ragged_lookup([1], 'SELECT 1 AS k, ({expr})::VARCHAR AS v', 'k', 'v') = [({expr})::VARCHAR]"
        );
        assert_eq!(rows_or_error(&ctx, &lookup).await, "true", "{expr}");
    }
    // `ctx.sql` of DataFusion parses the statement itself, but not the query in quotes.
    let sql = "SELECT a FROM ragged_nest('SELECT 1 AS k, 2 ** 3 AS a', 'k')";
    let rows = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    assert_eq!(rows[0].num_rows(), 1);
    let e = rows_or_error(&ctx, "SELECT * FROM ragged_explode('SELECT 1_000 AS a')").await;
    assert!(e.contains("1_000 is not a number"), "{e}");
}

#[tokio::test]
async fn repeated_options_of_table_functions_are_refused() {
    let ctx = serrate::sql::session();
    for call in [
        "ragged_explode((SELECT [1] AS x), keep_empty => true, keep_empty => false)",
        "ragged_explode('SELECT [1] AS x', positions => true, POSITIONS => true)",
        "read_csv('a.csv', header => true, header => false)",
        "read_csv('a.csv', delim => ';', sep => ',')",
        "meds_cohort('meds', 'task.yaml', predicates => 'a.yaml', predicates => 'b.yaml')",
        "meds_features('meds', 'labels/', closed => 'left', closed => 'right')",
    ] {
        let e = rows_or_error(&ctx, &format!("SELECT * FROM {call}")).await;
        assert!(e.contains("is given twice; write it once"), "{call}: {e}");
    }
}

/// Empty lists of codes would otherwise select all codes.
#[tokio::test]
async fn features_of_no_codes_are_refused() {
    let ctx = serrate::sql::session();
    let read = |options: &str| {
        format!(
            "SELECT count(*) > 0 FROM meds_features('tests/data/synthea-meds', 'tests/data/synthea-meds/labels', form => 'list', windows => ['all'], aggregates => ['count']{options})"
        )
    };
    for (options, name) in [
        (", codes => []", "codes"),
        (", prefixes => []", "prefixes"),
        (", codes => [], prefixes => []", "codes"),
    ] {
        let e = rows_or_error(&ctx, &read(options)).await;
        let expected = format!("meds_features: {name} is an empty list, so no code is selected");
        assert!(e.contains(&expected), "{options}: {e}");
    }
    for options in
        ["", ", codes => [], prefixes => ['LAB//']", ", codes => ['MEDS_BIRTH'], prefixes => []"]
    {
        assert_eq!(rows_or_error(&ctx, &read(options)).await, "true", "{options}");
    }
}
