//! Joins over files return the same rows as joins over tables in memory, although filters move into
//! the scans of files. A filter that moves below a join keeps its columns if names repeat.

use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use tempfile::TempDir;

use futures::FutureExt;

use super::*;

/// Returns the rows of a query as sorted lines.
async fn query_sorted_lines(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let text = query_text(ctx, sql).await;
    let mut rows: Vec<String> = text.lines().skip(3).map(str::to_owned).collect();
    rows.sort();
    rows
}

/// Tables as Parquet files, and the same tables in memory. `{name}` in a query stands for the file
/// or for the table in memory.
struct Both {
    ctx: SessionContext,
    dir: TempDir,
}

impl Both {
    async fn new(tables: &[(&str, &str)], options: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ctx = create_parallel_session();
        for (name, query) in tables {
            let file = display_path(&dir.path().join(format!("{name}.parquet")));
            let copy = format!("COPY ({query}) TO '{file}' {options}");
            let create = format!("CREATE TABLE {name} AS {query}");
            run_all(&ctx, &[copy, create]).await;
        }
        Self { ctx, dir }
    }

    /// Returns the query with the path of a file in place of each `{name}`.
    fn over_files(&self, sql: &str) -> String {
        let path = |name: &str| format!("'{}'", display_path(&self.dir.path().join(name)));
        let mut out = String::new();
        let mut rest = sql;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap();
            out.push_str(before);
            out.push_str(&path(&format!("{name}.parquet")));
            rest = after;
        }
        out + rest
    }

    fn in_memory(sql: &str) -> String {
        sql.replace(['{', '}'], "")
    }

    /// Asserts that a query returns the same `count` rows over files and over tables in memory.
    async fn agree(&self, sql: &str, count: usize) {
        let memory = query_sorted_lines(&self.ctx, &Self::in_memory(sql)).await;
        let files = query_sorted_lines(&self.ctx, &self.over_files(sql)).await;
        assert_eq!(files, memory, "{sql}");
        assert_eq!(files.len(), count + 1, "{sql}");
    }
}

const BIG: &str =
    "SELECT value AS id, value % 10 AS k, [value % 7, 3] AS x FROM generate_series(0, 2999)";

#[tokio::test]
async fn dynamic_filters_keep_their_column_above_joins() {
    let both = Both::new(&[("t", BIG)], "").await;
    for what in ["ragged_sum(a.x)", "a.x", "array_length(a.x)", "a.x[1]"] {
        let sql = format!(
            "SELECT a.id, b.id AS bid, {what} AS s FROM {{t}} a JOIN {{t}} b ON a.id = b.k
             JOIN {{t}} c ON a.id = c.id WHERE c.id < 300"
        );
        both.agree(&sql, 3000).await;
    }
}

#[tokio::test]
async fn outer_joins_keep_the_rows_without_a_match() {
    let tables = [
        ("big", "SELECT value AS id, value % 4 AS v, [value] AS x FROM generate_series(0, 99)"),
        (
            "small",
            "SELECT value::int AS id, 100 + value AS v, [value] AS x FROM generate_series(0, 9)",
        ),
    ];
    let both = Both::new(&tables, "").await;
    let join = "SELECT b.id, b.v FROM {small} a RIGHT JOIN {big} b ON";
    both.agree(&format!("{join} a.id = b.id WHERE a.id IS NULL"), 90).await;
    both.agree(&format!("{join} a.id = b.id WHERE a.v IS NULL"), 90).await;
    both.agree(&format!("{join} a.id + 1 = b.id WHERE coalesce(a.v, 0) > 50"), 10).await;
    both.agree(&format!("{join} a.id = b.id - 1 WHERE a.v IS NULL"), 90).await;
    both.agree(
        &format!("{join} a.id = b.id AND (ragged_first(a.x) > 5 OR ragged_first(a.x) < -1) WHERE a.x[1] < 8"),
        2,
    )
    .await;
    both.agree("SELECT a.id, b.id AS bid FROM {big} a FULL JOIN {small} b ON a.id = b.id WHERE b.id IS NULL", 90)
        .await;
    both.agree(
        "SELECT a.id FROM {big} a LEFT JOIN {small} b ON a.id = b.id WHERE b.id IS NULL",
        90,
    )
    .await;
    both.agree(
        "SELECT a.id FROM {big} a WHERE NOT EXISTS (SELECT 1 FROM {small} b WHERE a.id = b.id)",
        90,
    )
    .await;
}

#[tokio::test]
async fn limits_over_joins_take_the_first_rows() {
    let tables = [
        (
            "r",
            "SELECT id, id % 10 AS k, 'p' || id AS g
             FROM (SELECT (value * 7919) % 30000 AS id FROM generate_series(0, 29999))",
        ),
        ("s", "SELECT value AS id FROM generate_series(0, 9)"),
    ];
    let both = Both::new(&tables, "OPTIONS (max_row_group_size 1000)").await;
    let sql = "SELECT a.id, upper(b.g) AS g FROM {s} a JOIN {r} b ON a.id = b.k ORDER BY a.id, b.id LIMIT 5";
    both.agree(sql, 5).await;
    let files = query_text(&both.ctx, &both.over_files(sql)).await;
    for (at, g) in ["P0 ", "P10 ", "P20 ", "P30 ", "P40 "].iter().enumerate() {
        assert!(files.lines().nth(3 + at).unwrap().contains(g), "{files}");
    }
}

#[tokio::test]
async fn nested_joins_keep_their_rows() {
    let both =
        Both::new(&[("fa", "SELECT 'a1' AS id, 'x1' AS ty"), ("fb", "SELECT 'x1' AS id")], "")
            .await;
    both.agree(
        "SELECT s.id AS sid, a.id AS aid, b.id AS bid
         FROM {fb} s JOIN ({fa} a LEFT JOIN {fb} b ON a.ty = b.id) ON s.id = b.id",
        1,
    )
    .await;
}

#[tokio::test]
async fn filters_on_keys_of_semi_joins_keep_their_columns() {
    let both = Both::new(&[("t", BIG)], "").await;
    both.agree(
        "SELECT c.id, a.id AS aid FROM {t} c JOIN
           (SELECT * FROM {t} a WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.k = a.id AND b.id > a.k)) a
         ON c.id = a.id WHERE c.id < 7",
        7,
    )
    .await;
}

#[tokio::test]
async fn filters_above_unions_and_groups_keep_their_columns() {
    let tables = [
        ("t", "SELECT value AS id, value * 2 AS k FROM generate_series(0, 99)"),
        ("u", "SELECT value * 3 AS k, value AS id FROM generate_series(0, 99)"),
    ];
    let both = Both::new(&tables, "").await;
    both.agree(
        "SELECT * FROM (SELECT id, k FROM {t} UNION ALL SELECT k, id FROM {u}) WHERE id < 6",
        8,
    )
    .await;
    both.agree(
        "SELECT * FROM (SELECT k + 1 AS id, count(*) AS n FROM {t} GROUP BY k + 1) WHERE id < 10",
        5,
    )
    .await;
    both.agree(
        "SELECT g.id, g.n, s.k FROM (SELECT k AS id, count(*) AS n FROM {t} GROUP BY k) g
         JOIN {u} s ON g.id = s.id WHERE s.k < 30",
        5,
    )
    .await;
}

/// A filter of one table without repeated names is pushed into the scan.
#[tokio::test]
async fn filters_of_one_table_are_pushed_into_the_scan() {
    let both = Both::new(&[("t", BIG)], "").await;
    let plan =
        both.over_files("EXPLAIN SELECT a.x FROM {t} a JOIN {t} b ON a.id = b.k WHERE a.k = 3");
    let plan = query_text(&both.ctx, &plan).await;
    assert!(plan.contains("predicate=k@"), "{plan}");
    assert!(plan.contains("DynamicFilter"), "{plan}");
    assert!(!plan.contains("BarrierExec"), "{plan}");
}

/// `FilterPushdown` of DataFusion still resolves columns of filters by name. When this test fails,
/// the guard of this rule in `sql::workarounds::guards::guarded_rules` can be removed.
#[tokio::test]
async fn stock_filter_pushdown_is_still_wrong() {
    let tables = [
        ("big", "SELECT value AS id, value % 4 AS v FROM generate_series(0, 99)"),
        ("small", "SELECT value::int AS id, 100 + value AS v FROM generate_series(0, 9)"),
    ];
    let both = Both::new(&tables, "").await;
    let stock = SessionContext::new();
    for name in ["big", "small"] {
        let path = display_path(&both.dir.path().join(format!("{name}.parquet")));
        stock.register_parquet(name, path, Default::default()).await.unwrap();
    }
    let sql = "SELECT b.id, b.v FROM small a RIGHT JOIN big b ON a.id = b.id WHERE a.id IS NULL";
    let found: usize =
        stock_batches(&stock, sql).await.unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(found, 0, "90 is right: DataFusion is fixed");
}

const EMPTY: &str =
    "SELECT value AS id, value % 3 AS k, 's' AS s, [value, 1] AS y, [true, false] AS bx
    FROM generate_series(0, -1)";
const PROJECTED: &str = "SELECT b.s AS c0, array_length(a.bx) + array_length(a.y) + b.id AS c1
    FROM t0 AS a FULL JOIN t0 AS b ON a.k + 0 = b.id WHERE coalesce(a.s = a.s IS NOT NULL, true)";

#[tokio::test]
async fn projections_above_filters_with_projections_are_planned() {
    let ctx = create_parallel_session();
    run_all(&ctx, &[format!("CREATE TABLE t0 AS {EMPTY}")]).await;
    assert_eq!(query_sorted_lines(&ctx, PROJECTED).await.len(), 0);
}

/// When this test fails, the guard of `ProjectionPushdown` in
/// `sql::workarounds::guards::guarded_rules` can be removed.
#[tokio::test]
async fn stock_projections_of_filters_still_fail() {
    let stock = SessionContext::new();
    let create = format!("CREATE TABLE t0 AS {EMPTY}")
        .replace("[value, 1]", "make_array(value, 1)")
        .replace("[true, false]", "make_array(true, false)");
    stock_batches(&stock, &create).await.unwrap();
    let message = stock_error(&stock, PROJECTED).await;
    assert!(message.contains("does not match with the projection expression"), "{message}");
}

#[tokio::test]
async fn filters_above_joins_of_tables_in_memory_keep_their_column() {
    let ctx = create_parallel_session();
    run_all(
        &ctx,
        &["CREATE TABLE t0 AS SELECT value AS id, value % 3 AS k, [value, 1] AS y, true AS flag
        FROM generate_series(0, 9)"
            .to_owned()],
    )
    .await;
    let sql = "SELECT c.id, unnest(c.y) AS u FROM t0 AS a RIGHT JOIN t0 AS c ON a.k = CAST(c.id AS BIGINT)
        WHERE c.flag AND a.id IS NULL";
    assert_eq!(query_sorted_lines(&ctx, sql).await.len(), 14 + 1);
}

/// Serrate finds the rules of DataFusion that it wraps by these names.
#[test]
fn datafusion_still_has_the_rules_that_are_wrapped() {
    let rules = PhysicalOptimizer::new().rules;
    let count = |name: &str| rules.iter().filter(|rule| rule.name() == name).count();
    assert_eq!(count("FilterPushdown"), 1);
    assert_eq!(count("FilterPushdown(Post)"), 1);
    assert_eq!(count("ProjectionPushdown"), 2);
}

const MERGED: [&str; 2] = [
    "CREATE TABLE a AS SELECT * FROM (VALUES (1, 1, 0.0::double, [1, 2]), (2, 0, 'NaN'::double, [5]),
     (3, 2, -0.0::double, [3]), (3, 7, NULL, NULL)) t(id, x, f, l)",
    "CREATE TABLE b AS SELECT * FROM (VALUES (1, 5, -0.0::double), (3, 1, 'NaN'::double), (3, 9, 1.0),
     (4, 4, NULL)) t(id, y, f)",
];

#[tokio::test]
async fn sort_merge_joins_equal_hash_joins() {
    let (hash, merge) = (create_parallel_session(), create_parallel_session());
    query_batches(&merge, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
    for ctx in [&hash, &merge] {
        run_all(ctx, &MERGED).await;
    }
    let mut statements = Vec::new();
    for kind in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        for on in [
            "a.id = b.id AND a.x < b.y",
            "a.f = b.f",
            "a.id = b.id AND a.x > 1",
            "a.id = b.id AND b.y > 5",
            "a.id = b.id AND b.y IS NULL",
            "a.id = b.id AND false",
        ] {
            statements.push(format!("SELECT a.*, b.* FROM a {kind} b ON {on}"));
        }
    }
    for condition in [
        "id IN (SELECT id FROM b)",
        "id NOT IN (SELECT id FROM b)",
        "EXISTS (SELECT 1 FROM b WHERE a.id = b.id AND a.x < b.y)",
        "NOT EXISTS (SELECT 1 FROM b WHERE a.id = b.id AND a.x < b.y)",
        "EXISTS (SELECT 1 FROM b WHERE a.id = b.id AND a.x < b.y) OR x = 0",
    ] {
        statements.push(format!("SELECT * FROM a WHERE {condition}"));
    }
    for sql in statements {
        assert_eq!(
            query_sorted_lines(&merge, &sql).await,
            query_sorted_lines(&hash, &sql).await,
            "{sql}"
        );
    }
    let plan = query_text(&merge, "EXPLAIN SELECT a.* FROM a LEFT JOIN b ON a.id = b.id").await;
    assert!(plan.contains("SortMergeJoin"), "{plan}");
}

const SORTED: [&str; 2] = [
    "CREATE TABLE l AS SELECT * FROM (VALUES (1, 5), (1, 3), (1, 9)) t(k, a)",
    "CREATE TABLE r AS SELECT * FROM (VALUES (1, 7), (1, 7), (1, 8)) t(k, b)",
];

/// Returns a join of `l`, sorted by `first` and `a`, with `r`, sorted by `first` and `b`.
fn join_sorted(kind: &str, first: &str, order: &str) -> String {
    let side = |t: &str, by: &str| format!("(SELECT * FROM {t} ORDER BY {first}{by} LIMIT 9) {t}");
    let (l, r) = (side("l", "a"), side("r", "b"));
    format!("SELECT b, a FROM {l} {kind} {r} ON l.k = r.k ORDER BY {order}")
}

#[tokio::test]
async fn joins_of_sorted_inputs_are_sorted_by_columns_of_both() {
    let (b_a, a_b) = (
        "7 3; 7 3; 7 5; 7 5; 7 9; 7 9; 8 3; 8 5; 8 9",
        "7 3; 7 3; 8 3; 7 5; 7 5; 8 5; 7 9; 7 9; 8 9",
    );
    for partitions in [1, 4] {
        for hash in [true, false] {
            let config = SessionConfig::new().with_target_partitions(partitions);
            let ctx = serrate::sql::session_with(config);
            run_all(&ctx, &SORTED).await;
            let set = format!("SET datafusion.optimizer.prefer_hash_join = {hash}");
            query_batches(&ctx, &set).await.unwrap();
            for kind in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
                for (order, expected) in [
                    ("b, a", b_a),
                    ("l.k, b, a", b_a),
                    ("r.k, b, a", b_a),
                    ("a, b", a_b),
                    ("l.k, a, b", a_b),
                ] {
                    for first in ["", "k, "] {
                        let sql = join_sorted(kind, first, order);
                        let found = rows_or_error(&ctx, &sql).await;
                        assert_eq!(found, expected, "{sql}, {partitions} partitions");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn stock_joins_still_claim_two_orders() {
    let stock = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    for sql in SORTED {
        stock_batches(&stock, sql).await.unwrap();
    }
    let found = rows_or_error(&stock, &join_sorted("JOIN", "", "b, a")).await;
    assert!(found.starts_with("7 3; 7 5; 7 9; 7 3"), "{found}");
}

#[tokio::test]
async fn stock_merge_joins_still_claim_an_order() {
    let stock = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    stock_batches(&stock, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
    let create =
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, true, 'p'), (2, NULL, 'p')) t(id, flag, s)";
    stock_batches(&stock, create).await.unwrap();
    let sql = "SELECT * FROM t a RIGHT JOIN t b ON a.s = b.s AND b.flag ORDER BY b.s NULLS FIRST, a.s NULLS FIRST";
    let plan = stock_text(&stock, &format!("EXPLAIN {sql}")).await;
    let above = plan.split("SortMergeJoinExec").next().unwrap();
    assert!(!above.contains("SortExec"), "{plan}");
}

/// When this test fails, `sql::workarounds::joins_and_unions::merge_joins` can be removed.
#[tokio::test]
async fn stock_merge_joins_still_fail() {
    let stock = SessionContext::new();
    let list = |sql: &str| sql.replace('[', "make_array(").replace(']', ")");
    for sql in MERGED.map(list) {
        stock_batches(&stock, &sql).await.unwrap();
    }
    stock_batches(&stock, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
    let message =
        stock_error(&stock, "SELECT * FROM a FULL JOIN b ON a.id = b.id AND b.y > 5").await;
    assert!(message.contains("non-nullable"), "{message}");
}

#[tokio::test]
async fn sort_merge_semi_joins_compare_all_types() {
    let union =
        |values: [&str; 2]| format!("SELECT {} AS f UNION ALL SELECT {}", values[0], values[1]);
    for (p, q, common) in [
        (["'NaN'::DOUBLE", "2.0"], ["'NaN'::DOUBLE", "3.0"], "NaN"),
        (["[1]", "[2]"], ["[1]", "[NULL]"], "[1]"),
        (["{'a': 1}", "{'a': 2}"], ["{'a': 1}", "{'a': 3}"], "{a: 1}"),
        (["INTERVAL 1 DAY", "INTERVAL 2 DAY"], ["INTERVAL 1 DAY", "INTERVAL 3 DAY"], "1 days"),
    ] {
        expect_rows(
            &[
                &format!("CREATE TABLE p AS {}", union(p)),
                &format!("CREATE TABLE q AS {}", union(q)),
                "SET datafusion.optimizer.prefer_hash_join = false",
            ],
            &[
                ("SELECT f FROM p INTERSECT SELECT f FROM q", common),
                ("SELECT f FROM p WHERE f IN (SELECT f FROM q)", common),
                ("SELECT count(*) FROM (SELECT f FROM p EXCEPT SELECT f FROM q)", "1"),
            ],
        )
        .await;
    }
}

#[tokio::test]
async fn join_conditions_may_have_lambdas_over_both_sides() {
    expect_rows(
        &[
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, [1, 2]), (2, [3]), (3, [])) v(z, x)",
            "CREATE TABLE u AS SELECT * FROM (VALUES (1), (3)) v(y)",
        ],
        &[
            ("SELECT z, y FROM t JOIN u ON list_any_match(x, v -> v = y) ORDER BY z", "1 1; 2 3"),
            ("SELECT z, y FROM t JOIN u ON ragged_any(ragged_map(x, v -> v = y)) ORDER BY z", "1 1; 2 3"),
            ("SELECT z, y FROM t JOIN u ON ragged_any(ragged_map(x, v -> v + 1 = y + 1 AND z > 0)) ORDER BY z", "1 1; 2 3"),
            (
                "SELECT z, y FROM t LEFT JOIN u ON array_length(list_filter(x, v -> v < y)) > z ORDER BY z",
                "1 3; 2 NULL; 3 NULL",
            ),
            ("SELECT z, y FROM u FULL JOIN t ON list_any_match(x, v -> v = y AND z = 1) ORDER BY z, y", "1 1; 2 NULL; 3 NULL; NULL 3"),
            ("SELECT z, y FROM t JOIN u ON z = y AND list_any_match(x, v -> v <= y) ORDER BY z", "1 1"),
            ("SELECT z FROM t WHERE EXISTS (SELECT 1 FROM u WHERE list_any_match(x, v -> v = y)) ORDER BY z", "1; 2"),
            ("SELECT z FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE list_any_match(x, v -> v = y)) ORDER BY z", "3"),
            (
                "SELECT a.z, b.z FROM t a JOIN t b ON list_any_match(a.x, v -> list_any_match(b.x, w -> v > w)) ORDER BY 1, 2",
                "1 1; 2 1",
            ),
        ],
    )
    .await;
}

/// When this test fails, `ProjectionPushdown` need not skip nested-loop joins.
#[tokio::test]
async fn stock_parts_of_join_conditions_still_move() {
    let config = SessionConfig::new().with_target_partitions(1);
    let ctx = SessionContext::new_with_config(config);
    for sql in
        ["CREATE TABLE a AS VALUES (0), (1)", "CREATE TABLE b AS SELECT 1 AS y WHERE random() > 2"]
    {
        stock_batches(&ctx, sql).await.unwrap();
    }
    let plan = stock_text(&ctx, "EXPLAIN SELECT * FROM a LEFT JOIN b ON 1 / a.column1 > b.y").await;
    assert!(plan.contains("join_proj_push_down"), "{plan}");
}

/// Tables with NULL in two columns for the queries of `NULL_JOINS`, which have `=` above joins by
/// IS NOT DISTINCT FROM.
const NULL_TABLES: [&str; 4] = [
    "CREATE TABLE a AS SELECT * FROM (VALUES (1, 1, 'q'), (2, NULL, NULL)) v(id, k, s)",
    "CREATE TABLE c AS SELECT * FROM (VALUES (9, NULL::BIGINT, NULL::VARCHAR)) v(id, k, s)",
    "CREATE TABLE nn AS SELECT 2 AS id",
    "CREATE TABLE l AS SELECT * FROM (VALUES (1, [1], NULL), (2, [NULL], NULL), (3, NULL, NULL), (4, [1], 1)) t(id, x, v)",
];

const NULL_JOINS: [(&str, &[i64]); 12] = [
    ("SELECT a.id FROM a JOIN c ON a.k IS NOT DISTINCT FROM c.k WHERE a.s = c.s", &[]),
    ("SELECT a.id FROM a JOIN c ON a.k IS NOT DISTINCT FROM c.k JOIN nn ON a.id = nn.id", &[2]),
    ("SELECT x.id FROM a x JOIN a y ON x.k = y.k JOIN a z ON y.k IS NOT DISTINCT FROM z.k", &[1]),
    ("SELECT a.id FROM a JOIN c ON a.k IS NOT DISTINCT FROM c.k, nn WHERE a.id = nn.id", &[2]),
    (
        "SELECT id FROM (SELECT a.id, a.s s1, c.s s2 FROM a LEFT JOIN c ON a.k IS NOT DISTINCT FROM c.k) z WHERE s1 = s2",
        &[],
    ),
    ("SELECT id FROM a WHERE k = (SELECT max(k) FROM c WHERE c.id > a.id)", &[]),
    ("SELECT id FROM a WHERE k = (SELECT k FROM c WHERE c.id > a.id)", &[]),
    ("SELECT id FROM a WHERE k IN (SELECT max(k) FROM c WHERE c.id > a.id)", &[]),
    (
        "SELECT CAST(coalesce(y.n, 0) AS BIGINT) FROM a x LEFT JOIN LATERAL (SELECT c.k, count(*) AS n FROM c WHERE c.id > x.id GROUP BY c.k) y ON y.k = x.k",
        &[0, 0],
    ),
    (
        "SELECT (SELECT count(*) FROM (SELECT * FROM c WHERE id > a.id) c1, (SELECT * FROM c WHERE id > a.id) c2 WHERE c1.k = c2.k) FROM a",
        &[0, 0],
    ),
    ("SELECT id FROM l WHERE v = (SELECT max(e) FROM unnest(l.x) q(e))", &[4]),
    (
        "SELECT a.id FROM a JOIN c ON a.k IS NOT DISTINCT FROM c.k JOIN nn ON a.id = nn.id WHERE EXISTS (SELECT 1 FROM a x, nn y WHERE x.id = y.id AND x.id = a.id)",
        &[2],
    ),
];

#[tokio::test]
async fn plain_equations_above_null_equal_joins_are_never_true_for_null() {
    let ctx = create_parallel_session();
    for table in NULL_TABLES {
        query_batches(&ctx, table).await.unwrap();
    }
    for (sql, expected) in NULL_JOINS {
        assert_eq!(query_ints(&ctx, sql).await, expected, "{sql}");
    }
}

/// When this test fails, `sql::workarounds::joins_and_unions::null_equal_joins` can be removed.
#[tokio::test]
async fn stock_joins_still_mix_equalities_of_null() {
    let ctx = SessionContext::new();
    for table in &NULL_TABLES[..3] {
        stock_batches(&ctx, table).await.unwrap();
    }
    for (sql, expected) in &NULL_JOINS[..3] {
        assert_ne!(stock_ints(&ctx, sql).await, *expected, "{sql}");
    }
}

#[tokio::test]
async fn piecewise_merge_joins_are_refused() {
    let ctx = serrate::sql::session();
    let sql = "SET datafusion.optimizer.enable_piecewise_merge_join = true";
    assert!(rows_or_error(&ctx, sql).await.contains("piecewise merge joins lose rows"));
    run_all(&ctx, &["SET datafusion.optimizer.enable_piecewise_merge_join = false"]).await;
    let sql = "SET datafusion.optimizer.enable_window_topn = true";
    assert!(rows_or_error(&ctx, sql).await.contains("row_number() < 1 ends in an internal error"));
}

/// When this test fails, `SET datafusion.optimizer.enable_window_topn = true` can be allowed.
#[tokio::test]
async fn stock_topk_of_windows_still_panics() {
    let stock = SessionContext::new();
    stock_batches(&stock, "SET datafusion.optimizer.enable_window_topn = true").await.unwrap();
    let sql = "SELECT * FROM (SELECT a, g, row_number() OVER (PARTITION BY g ORDER BY a) AS rn
        FROM (VALUES (1, 1), (2, 1)) t(a, g)) WHERE rn < 1";
    let run = async { stock_batches(&stock, sql).await };
    assert!(!matches!(std::panic::AssertUnwindSafe(run).catch_unwind().await, Ok(Ok(_))));
}

/// When this test fails, piecewise merge joins can be allowed.
#[tokio::test]
async fn stock_piecewise_joins_still_lose_rows() {
    let stock = SessionContext::new();
    for sql in [
        "SET datafusion.optimizer.enable_piecewise_merge_join = true",
        "CREATE TABLE l AS SELECT 5 AS v",
        "CREATE TABLE r AS SELECT * FROM (VALUES (10), (NULL)) t(v)",
    ] {
        stock_batches(&stock, sql).await.unwrap();
    }
    let found =
        stock_batches(&stock, "SELECT l.v, r.v FROM l RIGHT JOIN r ON l.v < r.v").await.unwrap();
    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
}

const JOINED_GROUPS: [&str; 2] = [
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 3), (1, 1), (1, 2), (1, 3), (2, 9), (2, 8)) v(k, i)",
    "CREATE TABLE u AS SELECT * FROM (VALUES (1), (1), (2), (5)) v(y)",
];

#[tokio::test]
async fn groups_of_joins_keep_keys_and_rows() {
    let joined = "FROM (SELECT y FROM u GROUP BY y) u JOIN t ON t.k = u.y";
    let pairs = "1 1; 1 2; 1 3; 2 8; 2 9";
    let lateral =
        "FROM (SELECT y FROM u GROUP BY y) u, LATERAL (SELECT i FROM t WHERE t.k = u.y LIMIT 9) q";
    let distinct = format!("SELECT DISTINCT y, i {joined}");
    let groups = format!("SELECT y, i, count(*) AS c {joined} GROUP BY y, i");
    expect_rows(
        &JOINED_GROUPS,
        &[
            (&format!("{distinct} ORDER BY y, i"), pairs),
            (&format!("SELECT DISTINCT y, i {lateral} ORDER BY y, i"), pairs),
            (&format!("SELECT DISTINCT ON (y, i) y, i {joined} ORDER BY y, i"), pairs),
            (&format!("{groups} ORDER BY y, i"), "1 1 1; 1 2 1; 1 3 2; 2 8 1; 2 9 1"),
            (&format!("SELECT y FROM ({groups}) GROUP BY y, i ORDER BY y"), "1; 1; 1; 2; 2"),
            (
                &format!("SELECT u.y FROM u JOIN ({distinct}) z ON u.y = z.y ORDER BY 1"),
                "1; 1; 1; 1; 1; 1; 2; 2",
            ),
            // Decorrelation adds the outer column `q.y` to the keys of the inner GROUP BY.
            (
                "SELECT q.y, count(*) FROM (SELECT DISTINCT 2 AS y FROM u) q,
                    LATERAL (SELECT a.k FROM t a, t b WHERE b.k = q.y GROUP BY a.k) z GROUP BY q.y",
                "2 2",
            ),
            (
                "SELECT y, n, i FROM (SELECT y, n, i FROM (SELECT y, count(*) AS n FROM u GROUP BY y) u
                    LEFT JOIN t ON t.k = u.y GROUP BY y, n, i) ORDER BY y, i",
                "1 2 1; 1 2 2; 1 2 3; 2 1 8; 2 1 9; 5 1 NULL",
            ),
        ],
    )
    .await;
}

/// When this test fails, `sql::workarounds::grouping::joined_groups` can be removed.
#[tokio::test]
async fn stock_groups_above_joins_still_lose_rows() {
    let ctx = SessionContext::new();
    for sql in JOINED_GROUPS {
        stock_batches(&ctx, sql).await.unwrap();
    }
    let sql = "SELECT u.y FROM u JOIN (SELECT DISTINCT y, i FROM (SELECT y FROM u GROUP BY y) u
        JOIN t ON t.k = u.y) z ON u.y = z.y";
    let found: usize =
        stock_batches(&ctx, sql).await.unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(found, 3, "8 is right: DataFusion is fixed");
}

/// Writes a Parquet file with a dictionary of integers `k`, and returns its path.
async fn write_integer_dictionary(dir: &TempDir) -> String {
    let path = format!("{}/d.parquet", display_path(dir.path()));
    let copy = format!(
        "COPY (SELECT arrow_cast(k, 'Dictionary(Int32, Int64)') AS k, v
            FROM (VALUES (1, 10), (2, 20), (3, 30), (NULL, 40), (2, 50)) t(k, v)) TO '{path}'"
    );
    query_batches(&create_parallel_session(), &copy).await.unwrap();
    path
}

#[tokio::test]
async fn joins_by_dictionaries_of_integers_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_integer_dictionary(&dir).await;
    expect_rows(
        &[
            &format!("CREATE VIEW d AS SELECT * FROM '{path}'"),
            "CREATE TABLE m AS SELECT * FROM (VALUES (2), (9), (NULL)) t(k)",
            "DELETE FROM m WHERE k IN (SELECT k FROM d)",
        ],
        &[
            ("SELECT count(*) FROM d p JOIN d q ON p.k = q.k", "6"),
            (
                "SELECT p.v, q.v FROM d p RIGHT JOIN d q ON p.k = q.k ORDER BY q.v, p.v",
                "10 10; 20 20; 50 20; 30 30; NULL 40; 20 50; 50 50",
            ),
            ("SELECT v FROM d WHERE k IN (SELECT k FROM d WHERE v > 20) ORDER BY v", "20; 30; 50"),
            (
                "SELECT v FROM d WHERE k NOT IN (SELECT k FROM d WHERE v < 20) ORDER BY v",
                "20; 30; 50",
            ),
            ("SELECT v FROM d WHERE k NOT IN (SELECT k FROM d WHERE v > 30)", ""),
            ("SELECT p.v FROM d p JOIN d q ON p.k IS NOT DISTINCT FROM q.k AND q.v = 40", "40"),
            (
                "SELECT v FROM d WHERE EXISTS (SELECT 1 FROM d e WHERE e.k = d.k AND e.v > d.v)",
                "20",
            ),
            (
                "WITH c AS (SELECT k FROM d WHERE v = 30) SELECT c.k, v FROM c JOIN d ON c.k = d.k",
                "3 30",
            ),
            ("SELECT d.k, v FROM d JOIN (VALUES (3)) t(k) ON d.k = t.k", "3 30"),
            ("SELECT k FROM m ORDER BY k", "9; NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn stock_joins_by_integer_dictionaries_still_fail() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_integer_dictionary(&dir).await;
    let stock = SessionContext::new();
    stock.register_parquet("d", &path, Default::default()).await.unwrap();
    let e = stock_error(&stock, "SELECT * FROM d p JOIN d q ON p.k = q.k").await;
    assert!(e.contains("ArrayMap"), "{e}");
}

/// Returns how often a query yields to the runtime before it ends. A query that does not yield
/// cannot be cancelled.
async fn count_pauses(ctx: &SessionContext, sql: &str) -> usize {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let rows = datafusion::physical_plan::collect(plan, ctx.task_ctx());
    let mut rows = std::pin::pin!(rows);
    let mut pauses = 0;
    let rows = std::future::poll_fn(|context| {
        let polled = rows.as_mut().poll(context);
        pauses += usize::from(polled.is_pending());
        polled
    });
    rows.await.unwrap();
    pauses
}

/// A hash join of DataFusion copies its first input, and reserves no memory for the copy. The
/// memory limit is between the size of this input and twice its size. When this test fails,
/// `serrate_copied_inputs` can be removed.
#[tokio::test]
async fn stock_hash_joins_still_do_not_reserve_copies() {
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(100);
    let stock = SessionContext::new_with_config(config.clone());
    let make = "SELECT value AS id, array_repeat(value, 1000) AS x FROM generate_series(1, 1000)";
    let rows = stock_batches(&stock, make).await.unwrap();
    let size: usize = rows.iter().map(RecordBatch::get_array_memory_size).sum();
    let mut answers = Vec::new();
    for is_ours in [false, true] {
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(size / 2 * 3, 1.0);
        let builder = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config.clone())
            .with_runtime_env(runtime.build_arc().unwrap());
        let builder = if is_ours { serrate::sql::configure(builder) } else { builder };
        let ctx = SessionContext::new_with_state(builder.build());
        let table = MemTable::try_new(rows[0].schema(), vec![rows.clone()]).unwrap();
        ctx.register_table("t", Arc::new(table)).unwrap();
        let join = "SELECT count(a.x), count(b.x) FROM t a JOIN t b ON a.id = b.id";
        answers.push(stock_batches(&ctx, join).await.map_err(|e| e.to_string()));
    }
    assert!(answers[0].is_ok(), "{answers:?}");
    assert!(answers[1].as_ref().is_err_and(|e| e.contains("HashJoinInput")), "{answers:?}");
}

#[tokio::test]
async fn stock_joins_still_do_not_yield() {
    let config = SessionConfig::new().with_target_partitions(1);
    let stock = SessionContext::new_with_config(config.clone());
    let ours = serrate::sql::session_with(config);
    let mut pauses = Vec::new();
    for ctx in [&stock, &ours] {
        let make = "CREATE TABLE t AS SELECT value AS x FROM generate_series(1, 3000)";
        stock_batches(ctx, make).await.unwrap();
        // The join returns about four million pairs in hundreds of batches.
        let join = "SELECT count(*) FROM t a JOIN t b ON a.x < b.x";
        pauses.push(count_pauses(ctx, join).await);
    }
    assert!(pauses[0] < 2 && pauses[1] >= 2, "pauses of DataFusion and of Serrate: {pauses:?}");
}
