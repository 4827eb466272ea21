//! DISTINCT, ORDER BY, GROUP BY, joins and windows above `unnest` and `ragged_explode`.

use super::*;

const GROUPED: &str = "WITH u AS (SELECT k, unnest(v) AS v FROM (SELECT k, ragged_nest_agg(v) AS v
    FROM (VALUES (1, 10), (1, 20), (1, 30), (2, 40)) t(k, v) GROUP BY k))";

async fn query_sorted(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let mut lines = query_lines(ctx, sql).await;
    lines.sort();
    lines
}

#[tokio::test]
async fn operators_above_unnest_of_groups_are_kept() {
    let ctx = create_parallel_session();
    assert_eq!(
        query_sorted(&ctx, &format!("{GROUPED} SELECT DISTINCT k FROM u")).await,
        ["1", "2"]
    );
    let join = format!("{GROUPED} SELECT j.k FROM (VALUES (1), (2)) j(k) JOIN u ON u.k = j.k");
    assert_eq!(query_sorted(&ctx, &join).await, ["1", "1", "1", "2"]);
    let group = "SELECT id, count(*) AS n FROM (SELECT id, unnest([10, 20, 20]) AS k
        FROM (VALUES (1), (2)) t(id) GROUP BY id) GROUP BY id, k";
    assert_eq!(query_sorted(&ctx, group).await, ["1,1", "1,2", "2,1", "2,2"]);
    let count = "SELECT id, count(*) AS n FROM (SELECT id, unnest([10, 20, 20]) AS k
        FROM (VALUES (1), (2)) t(id) GROUP BY id) GROUP BY id";
    assert_eq!(query_sorted(&ctx, count).await, ["1,3", "2,3"]);
    let order = "SELECT id, k FROM (SELECT id, unnest([3, 1, 2]) AS k FROM (VALUES (1), (2)) t(id) GROUP BY id)
        ORDER BY id, k DESC LIMIT 4";
    assert_eq!(query_lines(&ctx, order).await, ["1,3", "1,2", "1,1", "2,3"]);
    let same_level =
        "SELECT id, unnest(array_agg(v)) AS k FROM (VALUES (1, 5), (1, 7), (2, 6)) t(id, v)
        GROUP BY id ORDER BY id, k DESC";
    assert_eq!(query_lines(&ctx, same_level).await, ["1,7", "1,5", "2,6"]);
    let structs = "SELECT g, h['value'] AS c, h['count'] AS n FROM (SELECT g, unnest(ragged_histogram_agg(x)) AS h
        FROM (VALUES (1, ['b', 'a', 'b']), (1, ['c'])) t(g, x) GROUP BY g) ORDER BY g, c DESC";
    assert_eq!(query_lines(&ctx, structs).await, ["1,c,1", "1,b,2", "1,a,1"]);
}

#[tokio::test]
async fn operators_above_unnest_of_distinct_rows_are_kept() {
    let ctx = create_parallel_session();
    let distinct = "SELECT DISTINCT id, k FROM (SELECT id, unnest(v) AS k
        FROM (SELECT DISTINCT id, v FROM (VALUES (1, [5, 5]), (1, [5, 5]), (2, [6])) t(id, v)))";
    assert_eq!(query_sorted(&ctx, distinct).await, ["1,5", "2,6"]);
    // The key of GROUP BY is the list that is unnested.
    let by_list = "SELECT DISTINCT k FROM (SELECT unnest(v) AS k
        FROM (SELECT v FROM (VALUES ([5, 5]), ([5, 6])) t(v) GROUP BY v))";
    assert_eq!(query_sorted(&ctx, by_list).await, ["5", "6"]);
}

/// LATERAL with `unnest` is planned as `unnest` over the rows of the tables before it.
#[tokio::test]
async fn operators_above_lateral_unnest_of_groups_are_kept() {
    let ctx = create_parallel_session();
    let grouped = "SELECT k, array_agg(i ORDER BY i DESC) AS l
        FROM (VALUES (1, 3), (1, 1), (2, 9), (2, 8), (2, 9)) t(k, i) GROUP BY k";
    for lateral in ["unnest(l) q(x)", "LATERAL (SELECT unnest(l) AS x) q"] {
        let rows = format!("(SELECT k, x FROM ({grouped}) g, {lateral}) z");
        let order = format!("SELECT k, x FROM {rows} ORDER BY k, x");
        assert_eq!(query_lines(&ctx, &order).await, ["1,1", "1,3", "2,8", "2,9", "2,9"]);
        let group = format!("SELECT k, x, count(*) FROM {rows} GROUP BY k, x ORDER BY k, x");
        assert_eq!(query_lines(&ctx, &group).await, ["1,1,1", "1,3,1", "2,8,1", "2,9,2"]);
        let join = format!("SELECT j.k FROM (VALUES (1), (1), (2)) j(k) JOIN {rows} ON z.k = j.k");
        assert_eq!(query_sorted(&ctx, &join).await, ["1", "1", "1", "1", "2", "2", "2"]);
    }
}

#[tokio::test]
async fn operators_above_unnest_in_views_and_subqueries_are_kept() {
    let ctx = create_parallel_session();
    query_batches(&ctx, &format!("CREATE VIEW w AS {GROUPED} SELECT * FROM u")).await.unwrap();
    assert_eq!(query_sorted(&ctx, "SELECT DISTINCT k FROM w").await, ["1", "2"]);
    assert_eq!(query_sorted(&ctx, "SELECT k, count(*) FROM w GROUP BY k").await, ["1,3", "2,1"]);
    let within = format!(
        "{GROUPED} SELECT a FROM (VALUES (10), (40), (50)) t(a) WHERE a IN (SELECT max(v) FROM u GROUP BY k, v)"
    );
    assert_eq!(query_sorted(&ctx, &within).await, ["10", "40"]);
}

#[tokio::test]
async fn filters_are_pushed_below_unnest_of_groups() {
    let ctx = create_parallel_session();
    assert_eq!(
        query_sorted(&ctx, &format!("{GROUPED} SELECT v FROM u WHERE k = 1 AND v > 10")).await,
        ["20", "30"]
    );
}

/// DataFusion still passes dependencies through `Unnest`. Once this test fails,
/// `sql::workarounds::grouping::dependencies` can be removed.
#[tokio::test]
async fn stock_unnest_still_keeps_dependencies() {
    let ctx = SessionContext::new();
    let sql = "SELECT DISTINCT k FROM (SELECT k, unnest(v) AS v FROM (SELECT k, array_agg(v) AS v
        FROM (VALUES (1, 10), (1, 20), (2, 40)) t(k, v) GROUP BY k))";
    let found: usize =
        stock_batches(&ctx, sql).await.unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(found, 3, "2 is right: DataFusion is fixed");
}

const NAMED_TWICE: &str = "SELECT a.k, b.k, unnest(b.x) AS v
    FROM (VALUES (3, 1), (1, 1), (2, 1)) a(k, i) JOIN (VALUES (1, 7, [5, 6])) b(i, k, x) ON a.i = b.i
    WHERE b.k = 7 ORDER BY a.k, v";

/// The columns `k` of both sides of a join pass through `unnest`.
#[tokio::test]
async fn columns_of_one_name_above_unnest_are_distinct() {
    for partitions in [1, 4] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        assert_eq!(
            query_lines(&ctx, NAMED_TWICE).await,
            ["1,7,5", "1,7,6", "2,7,5", "2,7,6", "3,7,5", "3,7,6"]
        );
        let in_from = "SELECT a.k, b.k AS c, v
            FROM (VALUES (3, 1), (1, 1), (2, 1)) a(k, i) JOIN (VALUES (1, 7, [5, 6])) b(i, k, x) ON a.i = b.i
            CROSS JOIN unnest(b.x) AS u(v) WHERE b.k = 7 AND v = 6 ORDER BY a.k";
        assert_eq!(query_lines(&ctx, in_from).await, ["1,7,6", "2,7,6", "3,7,6"]);
        let grouped = "SELECT a.k, max(b.k) AS m, count(*) AS n FROM generate_series(0, 39) AS s(i)
            JOIN (SELECT i % 3 AS k, i FROM generate_series(0, 39) AS s(i)) a ON a.i = s.i
            JOIN (SELECT i AS k, array_agg(i) AS x FROM generate_series(0, 39) AS s(i) GROUP BY i) b
                ON b.k = a.i
            CROSS JOIN unnest(b.x) AS u(v) GROUP BY a.k";
        assert_eq!(query_sorted(&ctx, grouped).await, ["0,39,14", "1,37,13", "2,38,13"]);
    }
}

/// DataFusion still finds the columns that `Unnest` passes on by name. Once this test fails,
/// `sql::workarounds::grouping::unnested_names` can be removed.
#[tokio::test]
async fn stock_unnest_still_finds_columns_by_name() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let plan = stock_text(&ctx, &format!("EXPLAIN {NAMED_TWICE}")).await;
    assert!(!plan.contains("SortExec: expr=[k@"), "{plan}");
}

const V: &str = "(SELECT * FROM (VALUES (1, [3, 1]), (2, [2, 4])) t(id, x))";

/// Operators that require an order run above `ragged_explode` in sessions with one and four
/// partitions.
#[tokio::test]
async fn exploded_rows_are_sorted_by_elements() {
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("t"));
    for partitions in [1, 4] {
        let ctx =
            serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
        for (n, rows) in ["(1, [3, 1])", "(2, [2, 4])"].iter().enumerate() {
            let copy = format!("COPY (SELECT * FROM (VALUES {rows}) t(id, x)) TO '{path}/{n}.nrt'");
            query_batches(&ctx, &format!("{copy} OPTIONS (overwrite true)")).await.unwrap();
        }
        let table = format!("CREATE EXTERNAL TABLE parts STORED AS NRT LOCATION '{path}/'");
        query_batches(&ctx, &table).await.unwrap();
        for from in [
            V.to_owned(),
            "(SELECT * FROM parts)".to_owned(),
            format!("(SELECT * FROM '{path}/0.nrt')"),
        ] {
            let all: &[&str] =
                if from.ends_with("0.nrt')") { &["1", "3"] } else { &["1", "2", "3", "4"] };
            let explode = format!("ragged_explode({from})");
            assert_eq!(
                query_lines(&ctx, &format!("SELECT x FROM {explode} ORDER BY x")).await,
                all
            );
            let down = query_lines(&ctx, &format!("SELECT x FROM {explode} ORDER BY x DESC")).await;
            assert!(down.iter().eq(all.iter().rev()), "{down:?}");
            let window = format!("SELECT x, row_number() OVER (ORDER BY x) AS r FROM {explode}");
            let numbered: Vec<String> =
                all.iter().enumerate().map(|(i, x)| format!("{x},{}", i + 1)).collect();
            assert_eq!(query_sorted(&ctx, &window).await, numbered);
            let union =
                format!("SELECT x FROM (SELECT x FROM {explode} UNION ALL SELECT 0) ORDER BY x");
            assert_eq!(query_lines(&ctx, &union).await[1..], *all);
            let file = display_path(&dir.path().join(format!("out{partitions}.csv")));
            let copy = format!(
                "COPY (SELECT x FROM {explode} ORDER BY x) TO '{file}' OPTIONS (overwrite true)"
            );
            query_batches(&ctx, &copy).await.unwrap();
            let written = std::fs::read_to_string(&file).unwrap();
            assert_eq!(written.lines().skip(1).collect::<Vec<_>>(), all);
        }
    }
}

#[tokio::test]
async fn nested_rows_are_sorted_by_lists() {
    let ctx = create_parallel_session();
    let nested =
        "ragged_nest((SELECT * FROM (VALUES (2, 5), (1, 7), (1, 3)) t(id, x) ORDER BY id), 'id')";
    assert_eq!(
        query_lines(&ctx, &format!("SELECT id FROM {nested} ORDER BY id DESC")).await,
        ["2", "1"]
    );
    assert_eq!(
        query_lines(&ctx, &format!("SELECT id, row_number() OVER (ORDER BY ragged_sum(x)) AS r FROM {nested} ORDER BY r")).await,
        ["2,1", "1,2"]
    );
}

/// The place of the row without a key does not depend on the number of rows that are nested at
/// once.
#[tokio::test]
async fn nested_rows_keep_the_place_of_null_in_order_by() {
    for leaves in [1, 100] {
        let ctx = create_parallel_session();
        query_batches(&ctx, &format!("SET serrate.leaf_batch_size = {leaves}")).await.unwrap();
        for (order, first_two) in [
            ("ORDER BY k NULLS LAST, v", ["1,3", "2,7"]),
            ("ORDER BY k NULLS FIRST, v", [",5", "1,3"]),
            ("", [",5", "1,3"]),
        ] {
            // LIMIT takes the first rows, and may return them in any order.
            let query = format!(
                "SELECT k, ragged_sum(v) AS s FROM ragged_nest((SELECT k, v
                FROM (VALUES (2, 2), (NULL, 1), (1, 3), (NULL, 4), (2, 5)) t(k, v) {order}), 'k') LIMIT 2"
            );
            let mut lines = query_lines(&ctx, &query).await;
            lines.sort();
            assert_eq!(lines, first_two, "{order}, {leaves}");
        }
    }
}

#[tokio::test]
async fn ragged_nest_keeps_an_order_by_unselected_columns() {
    for partitions in [1, 4] {
        let ctx =
            serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
        let table = "CREATE TABLE t0 AS SELECT * FROM (VALUES (7, 'x', 70), (2, 'x', 20), (3, 'x', 30)) t(id, t, b)";
        query_batches(&ctx, table).await.unwrap();
        for inner in ["SELECT id, t, b FROM t0 ORDER BY id", "SELECT t, b FROM t0 ORDER BY id"] {
            let sql = format!("SELECT a.b FROM ragged_nest(({inner}), 't') AS a");
            assert_eq!(query_lines(&ctx, &sql).await, ["[20, 30, 70]"]);
        }
        let exploded = "SELECT x FROM ragged_explode((SELECT id, [b, b + 1] AS x FROM t0 ORDER BY id DESC)) LIMIT 3";
        assert_eq!(query_lines(&ctx, exploded).await, ["70", "71", "30"]);
    }
}

#[tokio::test]
async fn ragged_nest_of_a_join_is_planned() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(1));
    let path = |name: &str| display_path(&dir.path().join(name));
    for (name, rows) in [("big", 1000), ("small", 3)] {
        let copy = format!(
            "COPY (SELECT value AS s, value * 2 AS v FROM generate_series(1, {rows})) TO '{}'",
            path(&format!("{name}.parquet"))
        );
        query_batches(&ctx, &copy).await.unwrap();
    }
    for (left, right) in [("big", "small"), ("small", "big")] {
        let query = format!(
            "SELECT a.s % 2 AS k, b.v FROM '{}' a JOIN '{}' b ON a.s = b.s ORDER BY 1, 2",
            path(&format!("{left}.parquet")),
            path(&format!("{right}.parquet"))
        );
        let nested = format!("SELECT k, v FROM ragged_nest(({query}), 'k')");
        assert_eq!(query_lines(&ctx, &nested).await, ["0,[4]", "1,[2, 6]"]);
    }
}

#[tokio::test]
async fn aliases_next_to_unnest_may_be_names_of_columns() {
    let ctx = create_parallel_session();
    let from = "FROM (SELECT 1 AS d, [1, 2] AS x UNION ALL SELECT 5, [9]) r";
    for (sql, right) in [
        (
            format!("SELECT r.d + 1 AS d, unnest(r.x) AS u {from} ORDER BY d, u"),
            vec!["2,1", "2,2", "6,9"],
        ),
        (format!("SELECT d * 2 AS D, unnest(x) {from} ORDER BY 2 DESC LIMIT 1"), vec!["10,9"]),
        (
            format!("SELECT unnest(r.x) AS d, r.d - 1 AS x {from} ORDER BY 1"),
            vec!["1,0", "2,0", "9,4"],
        ),
        (format!("SELECT DISTINCT r.d % 2 AS d, unnest([1, 1]) AS u {from}"), vec!["1,1"]),
        (
            format!(
                "SELECT sum(d), count(u) FROM (SELECT r.d + 1 AS d, unnest(r.x) AS u {from}) WHERE d > 2"
            ),
            vec!["6,1"],
        ),
        (
            format!(
                "SELECT r.d + 1 AS d, unnest(r.x) AS u {from} UNION ALL SELECT 0, 0 ORDER BY u LIMIT 1"
            ),
            vec!["0,0"],
        ),
        // An alias may be the name of a column that only `unnest` reads.
        (format!("SELECT 0 AS x, unnest(r.x) AS u {from} ORDER BY u"), vec!["0,1", "0,2", "0,9"]),
    ] {
        let batches = run_query(&ctx, &sql).await;
        let table = pretty_format_batches(&batches).unwrap().to_string();
        let rows: Vec<String> = table
            .lines()
            .skip(3)
            .filter(|line| line.starts_with('|'))
            .map(|line| {
                line.split('|')
                    .map(str::trim)
                    .filter(|v| !v.is_empty())
                    .collect::<Vec<_>>()
                    .join(",")
            })
            .collect();
        assert_eq!(rows, right, "{sql}");
    }
    let sql = format!("SELECT r.d + 1 AS d, r.d AS e, unnest(r.x) AS \"U\" {from}");
    let frame = serrate::sql::sql(&ctx, &sql).await.unwrap();
    let names: Vec<&str> = frame.schema().fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["d", "e", "U"]);
}

/// When this test fails, `unnest_names.rs` can be removed.
#[tokio::test]
async fn stock_names_beside_unnest_still_clash() {
    let ctx = SessionContext::new();
    let sql = "SELECT r.d + 1 AS d, unnest(r.x) AS u FROM (SELECT 1 AS d, make_array(1, 2) AS x) r";
    assert!(ctx.sql(sql).await.is_err());
}

#[tokio::test]
async fn fields_of_unnested_structs_are_read() {
    let setup = [
        "CREATE TABLE t AS SELECT 1 AS id, [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'y'}] AS q, {'a': 1} AS s",
    ];
    let cases = [
        ("SELECT id, z.a FROM t, unnest(t.q) AS w(z) ORDER BY 2", "1 1; 1 2"),
        ("SELECT sum(z.a), max(z['b']) FROM t, unnest(t.q) AS w(z)", "3 y"),
        ("SELECT z.b, count(*) FROM t, unnest(t.q) AS w(z) GROUP BY z.b ORDER BY 1", "x 1; y 1"),
        ("SELECT id, z.a FROM t LEFT JOIN unnest(t.q) AS w(z) ON true ORDER BY 2", "1 1; 1 2"),
        ("SELECT z.a FROM t, LATERAL (SELECT t.s AS z) w", "1"),
        ("SELECT z.a FROM t, LATERAL (SELECT unnest(t.q) AS z) w WHERE z.a > 1", "2"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn calls_of_unnest_that_differ_in_casts_are_distinct() {
    let setup = ["CREATE TABLE t AS SELECT [10, 9] AS l, ['2020-01-01', 'x'] AS ls, 3.5 AS c"];
    let cases = [
        ("SELECT unnest(l) / 4 AS q, unnest(l::DOUBLE[]) / 4 AS r FROM t", "2 2.5; 2 2.25"),
        (
            "SELECT unnest(TRY_CAST(ls AS DATE[])) AS a, unnest(ls) AS b FROM t",
            "2020-01-01 2020-01-01; NULL x",
        ),
        ("SELECT unnest([c]) AS a, unnest([c::INT]) AS b FROM t", "3.5 3"),
        ("SELECT unnest(['a, b']) AS x, unnest(['a', 'b']) AS y", "a, b a; NULL b"),
        ("SELECT max([1]) AS a, max(['1']) AS b", "[1] [1]"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn lists_of_outer_columns_are_unnested() {
    let table =
        "CREATE TABLE o AS SELECT * FROM (VALUES (1, 10, [1, 2]), (2, 20, NULL)) v(id, x, l)";
    let cases = [
        ("SELECT id, v FROM o, unnest([id, 9]) z(v) ORDER BY id, v", "1 1; 1 9; 2 2; 2 9"),
        (
            "SELECT o.id, v, w FROM o, unnest(o.l) u(v), unnest([v, 9]) z(w) ORDER BY v, w",
            "1 1 1; 1 1 9; 1 2 2; 1 2 9",
        ),
        (
            "SELECT id, v FROM o, unnest([[id, 9], [x]]) z(v) ORDER BY id, v",
            "1 [1, 9]; 1 [10]; 2 [2, 9]; 2 [20]",
        ),
        ("SELECT id, v FROM o, unnest([id + 1, 9][1:1]) z(v) ORDER BY id", "1 2; 2 3"),
        ("SELECT id, (SELECT max(v) FROM unnest([id, x]) u(v)) FROM o ORDER BY id", "1 10; 2 20"),
        ("SELECT id, v.a FROM o, unnest([{'a': id}]) u(v) ORDER BY id", "1 1; 2 2"),
        (
            "SELECT id, v FROM o, unnest(['a' || id::VARCHAR, 'b']) u(v) WHERE v <> 'b' ORDER BY id",
            "1 a1; 2 a2",
        ),
        (
            "SELECT v FROM unnest([DATE '2020-01-01', '2020-01-02']) u(v) ORDER BY v",
            "2020-01-01; 2020-01-02",
        ),
    ];
    expect_rows(&[table], &cases).await;
}

#[tokio::test]
async fn generate_series_may_use_outer_columns() {
    let setup = [
        "CREATE TABLE u AS SELECT * FROM (VALUES (1, 'p'), (3, 'r'), (NULL, 'z')) w(k, n)",
        "CREATE TABLE d AS SELECT DATE '2020-01-01' AS a, DATE '2020-01-03' AS b",
    ];
    let cases = [
        (
            "SELECT u.n, g.i FROM u, generate_series(1, u.k) g(i) ORDER BY n, i",
            "p 1; r 1; r 2; r 3",
        ),
        (
            "SELECT u.n, g.i FROM u, LATERAL generate_series(1, k, 2) AS g(i) ORDER BY n, i",
            "p 1; r 1; r 3",
        ),
        (
            "SELECT u.n, g.i FROM u LEFT JOIN range(1, u.k) g(i) ON true ORDER BY n, i",
            "p NULL; r 1; r 2; z NULL",
        ),
        ("SELECT n, g.value FROM u CROSS JOIN range(u.k) AS g ORDER BY n, 2", "p 0; r 0; r 1; r 2"),
        (
            "SELECT n, (SELECT sum(i) FROM generate_series(1, u.k) g(i)) AS s FROM u ORDER BY n",
            "p 1; r 6; z NULL",
        ),
        ("SELECT g.i FROM generate_series(1, (SELECT max(k) FROM u)) g(i) ORDER BY i", "1; 2; 3"),
        ("SELECT count(*) FROM d, generate_series(d.a, d.b, INTERVAL '1 day') g(t)", "3"),
        ("SELECT g.value FROM generate_series(1, 2) g ORDER BY 1", "1; 2"),
    ];
    expect_rows(&setup, &cases).await;
}
