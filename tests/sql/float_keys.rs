//! Floats have one zero and one NaN in comparisons, sorts, groups and joins.

use super::*;

/// A table of zeros of both signs and NaN of both signs, because 0 / 0 is a negative NaN on most
/// processors.
const FLOATS: &str = "CREATE TABLE t AS
    SELECT id, CASE WHEN id IN (4, 8) THEN -f ELSE f END AS f, id % 2 AS k
    FROM (VALUES (1, 0.0), (2, -0.0), (3, 0.0), (4, 'NaN'::DOUBLE), (5, 1e300), (6, -1e300), (7, -0.0),
        (8, 'NaN'::DOUBLE), (9, 'NaN'::DOUBLE), (10, NULL)) v(id, f)";

async fn with_floats() -> SessionContext {
    let ctx = create_parallel_session();
    serrate::sql::sql(&ctx, FLOATS).await.unwrap().collect().await.unwrap();
    let negative = query_texts(&ctx, "SELECT count(*) FROM t WHERE isnan(f)").await;
    assert_eq!(negative, ["3"]);
    ctx
}

#[tokio::test]
async fn zeros_of_both_signs_and_all_nans_are_one_key() {
    let ctx = with_floats().await;
    for (sql, expected) in [
        // Zeros of both signs are ties, and so are all NaN. The id breaks ties.
        ("SELECT id FROM t ORDER BY f, id", "6 1 2 3 7 5 4 8 9 10"),
        ("SELECT id FROM t ORDER BY f DESC, id", "10 4 8 9 5 1 2 3 7 6"),
        ("SELECT id FROM t ORDER BY f, id LIMIT 4", "6 1 2 3"),
        ("SELECT id FROM t ORDER BY f DESC NULLS LAST, id LIMIT 4", "4 8 9 5"),
        ("SELECT id FROM t ORDER BY [f], id", "6 1 2 3 7 5 4 8 9 10"),
        ("SELECT count(*) FROM t GROUP BY f ORDER BY f", "1 4 1 3 1"),
        ("SELECT count(*) FROM t GROUP BY f, k ORDER BY k, f", "1 1 2 1 3 1 1"),
        ("SELECT count(*) FROM t GROUP BY [f] ORDER BY [f]", "1 4 1 3 1"),
        ("SELECT count(*) FROM t GROUP BY ROLLUP (f) ORDER BY f, 1", "1 4 1 3 1 10"),
        ("SELECT count(*) FROM (SELECT DISTINCT f FROM t)", "5"),
        ("SELECT count(DISTINCT f) FROM t", "4"),
        ("SELECT count(*) FROM (SELECT DISTINCT ON (f) f, id FROM t ORDER BY f, id)", "5"),
        ("SELECT count(*) FROM (SELECT f FROM t INTERSECT SELECT f FROM t)", "5"),
        ("SELECT count(*) FROM (SELECT f FROM t EXCEPT SELECT 'NaN'::DOUBLE)", "4"),
        (
            "SELECT row_number() OVER (PARTITION BY f ORDER BY id) FROM t ORDER BY id",
            "1 2 3 1 1 1 4 2 3 1",
        ),
        ("SELECT rank() OVER (ORDER BY f) FROM t ORDER BY id", "2 2 2 7 6 1 2 7 7 10"),
        (
            "SELECT count(*) OVER (ORDER BY f RANGE BETWEEN 0.5 PRECEDING AND CURRENT ROW) FROM t WHERE f < 5 ORDER BY id",
            "4 4 4 1 4",
        ),
        ("SELECT id FROM t WHERE f < 0.0 ORDER BY id", "6"),
        ("SELECT id FROM t WHERE f > 5 ORDER BY id", "4 5 8 9"),
        ("SELECT id FROM t WHERE f = 'NaN'::DOUBLE ORDER BY id", "4 8 9"),
        ("SELECT id FROM t WHERE f = 0.0 ORDER BY id", "1 2 3 7"),
        ("SELECT id FROM t WHERE f IN (-0.0, 'NaN') ORDER BY id", "1 2 3 4 7 8 9"),
        ("SELECT id FROM t WHERE f NOT BETWEEN -1 AND 'NaN' ORDER BY id", "6"),
        ("SELECT id FROM t WHERE f IS DISTINCT FROM 'NaN'::DOUBLE ORDER BY id", "1 2 3 5 6 7 10"),
        ("SELECT id FROM t WHERE CASE f WHEN 'NaN'::DOUBLE THEN true END ORDER BY id", "4 8 9"),
        ("SELECT id FROM t WHERE nullif(f, 'NaN'::DOUBLE) IS NULL ORDER BY id", "4 8 9 10"),
        ("SELECT id FROM t WHERE isnan(greatest(f, 3.0)) ORDER BY id", "4 8 9"),
        // The planner folds these calls of `coalesce` and CASE to constants.
        (
            "SELECT id FROM t WHERE coalesce('-0.0'::DOUBLE, f) IN ('NaN', 0e0) AND id < 3 ORDER BY id",
            "1 2",
        ),
        (
            "SELECT id FROM t WHERE CASE WHEN true THEN '-0.0'::DOUBLE ELSE f END BETWEEN 0 AND 1 AND id < 3 ORDER BY id",
            "1 2",
        ),
        (
            "SELECT id FROM t WHERE CASE coalesce('-0.0'::DOUBLE, f) WHEN 0e0 THEN id END < 3 ORDER BY id",
            "1 2",
        ),
        (
            "SELECT id FROM t WHERE coalesce('-0.0'::DOUBLE, f) = '0.0'::DOUBLE AND id < 3 ORDER BY id",
            "1 2",
        ),
        (
            "SELECT id FROM t WHERE coalesce(-('NaN'::DOUBLE), f) = 'NaN'::DOUBLE AND id < 3 ORDER BY id",
            "1 2",
        ),
        ("SELECT id FROM t WHERE f IN (SELECT f FROM t WHERE id = 8) ORDER BY id", "4 8 9"),
        ("SELECT count(*) FROM t a JOIN t b ON a.f = b.f", "27"),
        ("SELECT count(*) FROM t a JOIN t b ON [a.f] IS NOT DISTINCT FROM [b.f]", "28"),
        ("SELECT count(*) FROM t a LEFT JOIN t b ON a.f > b.f AND a.id <> b.id", "29"),
        ("SELECT median(f) FROM t WHERE id IN (5, 6, 8)", "1e300"),
        ("SELECT array_agg(id ORDER BY f, id) FROM t WHERE id < 5", "[1, 2, 3, 4]"),
    ] {
        let found = query_texts(&ctx, sql).await.join(" ");
        assert_eq!(found, expected, "{sql}");
    }
}

#[tokio::test]
async fn ragged_nest_treats_zeros_and_nans_as_one_key() {
    let ctx = with_floats().await;
    let expected = query_texts(
        &ctx,
        "SELECT ragged_nest_agg(id ORDER BY id) FROM t GROUP BY f ORDER BY f NULLS FIRST",
    )
    .await;
    for from in
        ["t", "(SELECT * FROM t ORDER BY f, id)", "(SELECT * FROM t ORDER BY f NULLS FIRST, id)"]
    {
        for leaves in [1, 1_000_000] {
            let settings = format!("SET serrate.leaf_batch_size = {leaves}");
            serrate::sql::sql(&ctx, &settings).await.unwrap().collect().await.unwrap();
            let sql = format!(
                "SELECT ragged_sort(id) FROM ragged_nest((SELECT f, id FROM {from}), 'f') AS n ORDER BY f NULLS FIRST"
            );
            assert_eq!(query_texts(&ctx, &sql).await, expected, "{sql}");
        }
    }
}

/// Stock DataFusion still returns other rows than [`zeros_of_both_signs_and_all_nans_are_one_key`]
/// expects.
#[tokio::test]
async fn stock_comparisons_tell_zeros_and_nan_apart() {
    let ctx = SessionContext::new();
    ctx.sql(FLOATS).await.unwrap().collect().await.unwrap();
    let wrong = [
        ("SELECT id FROM t WHERE f < 0.0 ORDER BY id", 1),
        ("SELECT DISTINCT f FROM t", 5),
        (
            "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY f ORDER BY id) r FROM t) WHERE r = 1",
            5,
        ),
    ];
    for (sql, right) in wrong {
        let rows = ctx.sql(sql).await.unwrap().count().await.unwrap();
        assert_ne!(rows, right, "{sql}: DataFusion answers it now");
    }
}

const GROUPS: &str = "SELECT * FROM (VALUES (3, 16.0), (3, 'NaN'::DOUBLE), (0, 'NaN'::DOUBLE), (1, 5.0), (2, 7.0)) n(g, v)";

/// Queries that group by an integer, sort the groups by an aggregate of floats, and limit them.
const CUT_GROUPS: [(&str, &str); 4] = [
    ("SELECT g, max(v) FROM n GROUP BY g ORDER BY 2 DESC, g LIMIT 2", "0 NaN 3 NaN"),
    ("SELECT g, max(v) FROM n GROUP BY g ORDER BY 2 DESC LIMIT 3", ""),
    ("SELECT DISTINCT v FROM n ORDER BY v DESC LIMIT 2", "NaN 16.0"),
    ("SELECT v FROM n GROUP BY v ORDER BY v LIMIT 4", "5.0 7.0 16.0 NaN"),
];

#[tokio::test]
async fn groups_are_limited_after_they_are_complete() {
    let ctx = create_parallel_session();
    query_text(&ctx, &format!("CREATE TABLE n AS {GROUPS}")).await;
    let dir = tempfile::tempdir().unwrap();
    let path = display_path(&dir.path().join("n.parquet"));
    query_text(&ctx, &format!("COPY n TO '{path}'")).await;
    for source in ["n".to_owned(), format!("'{path}'")] {
        for (sql, expected) in CUT_GROUPS {
            let sql = sql.replace("FROM n", &format!("FROM {source}"));
            let found = query_texts(&ctx, &sql).await;
            match expected {
                "" => {
                    assert_eq!(found.iter().filter(|row| row.ends_with("NaN")).count(), 2, "{sql}")
                }
                expected => assert_eq!(found.join(" "), expected, "{sql}"),
            }
        }
    }
}

#[tokio::test]
async fn stock_topk_of_floats_is_still_wrong() {
    let ctx = SessionContext::new();
    ctx.sql(&format!("CREATE TABLE n AS {GROUPS}")).await.unwrap().collect().await.unwrap();
    let sql = "SELECT DISTINCT v FROM n ORDER BY v DESC LIMIT 2";
    let plan = ctx.sql(sql).await.unwrap();
    let found = tokio::spawn(plan.collect()).await;
    let right = match found {
        Ok(Ok(batches)) => {
            let shown = datafusion::arrow::util::pretty::pretty_format_batches(&batches).unwrap();
            shown.to_string().contains("NaN") && shown.to_string().contains("16.0")
        }
        _ => false,
    };
    assert!(!right, "DataFusion answers it now");
}

/// A literal `-0.0` equals `0.0`.
#[tokio::test]
async fn literal_zeros_of_both_signs_are_equal() {
    let ctx = create_parallel_session();
    for condition in [
        "f IN ('-0.0'::DOUBLE, 5)",
        "'-0.0'::DOUBLE IN (0.5, f)",
        "CASE f WHEN 0.5 THEN 1 WHEN '-0.0'::DOUBLE THEN 2 END = 2",
        "nullif(f, '-0.0'::DOUBLE) IS NULL",
        "f = '-0.0'::DOUBLE",
        "f BETWEEN '0.0'::DOUBLE AND '-0.0'::DOUBLE",
        "f IS NOT DISTINCT FROM '-0.0'::DOUBLE",
        "NOT (f NOT IN ('-0.0'::DOUBLE, 'NaN'::DOUBLE, 1))",
    ] {
        for zero in ["0.0", "-0.0"] {
            let t = format!("(SELECT '{zero}'::DOUBLE AS f)");
            let sql = format!("SELECT count(*) FROM {t} WHERE {condition}");
            assert_eq!(query_int(&ctx, &sql).await, 1, "{zero} {condition}");
        }
    }
}

#[tokio::test]
async fn constant_zeros_and_nans_are_compared_as_columns_are() {
    expect_rows(
        &[],
        &[
            ("SELECT 0.0 IN ('-0.0'::DOUBLE, 7), 0.0 NOT IN (-0.0::DOUBLE, 7)", "true false"),
            (
                "SELECT -0.0::DOUBLE < 0.0, -0.0::DOUBLE >= 0.0, 0.0 > -0.0::DOUBLE",
                "false true false",
            ),
            ("SELECT 0.0 BETWEEN 0.0 AND -0.0::DOUBLE, nullif(0.0, -0.0::DOUBLE)", "true NULL"),
            ("SELECT CASE 0.0 WHEN -0.0::DOUBLE THEN 'same' ELSE 'other' END", "same"),
            (
                "SELECT 0.0::DOUBLE / 0.0 = 'NaN'::DOUBLE, 0.0::DOUBLE / 0.0 > 'inf'::DOUBLE",
                "true true",
            ),
            ("SELECT 0.0::DOUBLE / 0.0 IN ('NaN'::DOUBLE, 1)", "true"),
            ("SELECT [0.0 > -0.0::DOUBLE, 0.0 <= -0.0::DOUBLE]", "[false, true]"),
            ("SELECT x IN ('-0.0'::DOUBLE, 7) FROM (SELECT 0.0 AS x)", "true"),
            ("SELECT count(*) FROM (VALUES (0.0), (1.0)) t(x) WHERE 0.0 IN (-0.0::DOUBLE, 7)", "2"),
            ("SELECT * FROM (VALUES (0.0 IN (-0.0::DOUBLE, 7)))", "true"),
        ],
    )
    .await;
}

#[tokio::test]
async fn min_and_max_of_sliding_frames_treat_nans_as_equal() {
    let frame = "OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let table = "CREATE TABLE t AS SELECT i, v / w AS v FROM (VALUES (1, 0.0::DOUBLE, 0.0::DOUBLE), (2, 1, 1), (3, -1, 1), (4, NULL, 1), (5, NULL, 1)) t(i, v, w)";
    expect_rows(
        &[table],
        &[
            (&format!("SELECT max(v) {frame} FROM t ORDER BY i"), "NaN; NaN; 1.0; -1.0; NULL"),
            (&format!("SELECT min(v) {frame} FROM t ORDER BY i"), "NaN; 1.0; -1.0; -1.0; NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn searches_in_lists_find_every_zero_and_nan() {
    let found = "true 1 [] [7.0] true true";
    let zeros = "0.0 = ANY(f), list_position(f, 0.0), array_remove(f, 0.0), array_replace(f, 0.0, 7.0), list_has_any(f, [0.0]), list_has_all(f, [0.0])";
    let nans = zeros.replace("0.0", "'NaN'::DOUBLE");
    let columns = zeros.replace("0.0", "z");
    let two = format!("{found}; {found}");
    expect_rows(
        &[
            "CREATE TABLE t AS SELECT id, f, -f[1] AS z FROM (VALUES (1, [0.0]), (2, ['-0.0'::DOUBLE])) v(id, f)",
            "CREATE TABLE n AS SELECT id, [x / y] AS f FROM (VALUES (1, 0.0::DOUBLE, 0.0::DOUBLE), (2, 'NaN'::DOUBLE, 1)) v(id, x, y)",
        ],
        &[
            ("SELECT id FROM t WHERE list_contains(f, 0.0) ORDER BY id", "1; 2"),
            ("SELECT id FROM t WHERE list_contains(f, '-0.0'::DOUBLE) ORDER BY id", "1; 2"),
            ("SELECT id FROM t WHERE 0.0 = ANY(f) ORDER BY id", "1; 2"),
            ("SELECT list_contains(f, 1.5), array_remove(f, 1.5) FROM t ORDER BY id", "false [0.0]; false [-0.0]"),
            (&format!("SELECT {zeros} FROM t ORDER BY id"), &two),
            (&format!("SELECT {columns} FROM t ORDER BY id"), &two),
            (&format!("SELECT {nans} FROM n ORDER BY id"), &two),
            ("SELECT list_sort(array_concat(f, [2.0, 1.0])), list_max(array_concat(f, [1.0])), list_min(array_concat(f, [1.0])), \
              len(list_distinct(array_concat(f, ['NaN'::DOUBLE]))), len(array_union(f, ['NaN'::DOUBLE])), \
              len(array_intersect(f, ['NaN'::DOUBLE])), len(array_except(f, ['NaN'::DOUBLE])) FROM n ORDER BY id",
             "[1.0, 2.0, NaN] NaN 1.0 1 1 1 0; [1.0, 2.0, NaN] NaN 1.0 1 1 1 0"),
            ("SELECT len(list_distinct(array_concat(f, [0.0]))), len(array_except(f, [0.0])) FROM t ORDER BY id", "1 0; 1 0"),
            ("SELECT list_position([[1.0], [0.0]], [-0.0::DOUBLE]), list_contains(['-0.0'::DOUBLE], 0.0)", "2 true"),
        ],
    )
    .await;
}

#[tokio::test]
async fn conditions_on_zeros_of_both_signs_are_satisfiable() {
    let all = "1 1; 1 2; 2 1; 2 2";
    let cases = [
        ("x.f = y.f AND x.f = 0.0 AND y.f = -0.0", all),
        ("x.f = y.f AND x.f = 0.0 AND y.f = '-0.0'::DOUBLE", all),
        ("x.f = y.f AND x.f = 0.0 AND y.f = -1 * 0.0", all),
        ("x.f = y.f AND x.f IN (0.0, 1.0) AND y.f IN (-0.0, 2.0)", all),
        ("x.f = y.f AND x.f >= 0.0 AND y.f <= -0.0", all),
        ("x.f = y.f AND x.f BETWEEN 0.0 AND 1.0 AND y.f BETWEEN -1.0 AND -0.0", all),
        ("x.f = y.f AND x.l = [0.0] AND y.l = [-0.0]", all),
        ("x.l = y.l AND x.l = [0.0] AND y.l = ['-0.0'::DOUBLE]", all),
        ("x.f = y.f AND x.f = 0.0 AND y.f = 1.0", ""),
        ("x.f = y.f AND x.f = -0.5 AND y.f = 0.0", ""),
    ];
    let statements: Vec<(String, &str)> = cases
        .iter()
        .map(|(on, rows)| {
            let sql = format!("SELECT x.id, y.id AS other FROM a x JOIN a y ON {on} ORDER BY 1, 2");
            (sql, *rows)
        })
        .collect();
    let statements: Vec<(&str, &str)> =
        statements.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(
        &["CREATE TABLE a AS SELECT id, f, [f] AS l FROM (VALUES (1, 0.0::DOUBLE), (2, '-0.0'::DOUBLE)) v(id, f)"],
        &statements,
    )
    .await;
}

#[tokio::test]
async fn lists_keep_the_sign_of_zero() {
    expect_rows(
        &["CREATE TABLE t AS SELECT '-0.0'::DOUBLE AS m, 0.0::DOUBLE AS p, 5.0::DOUBLE AS y, ['-0.0'::DOUBLE, 5.0] AS x"],
        &[
            ("SELECT array_remove(x, y), array_sort(x), array_distinct(x), array_min(x), array_except(x, [5.0]), array_union(x, [6.0]), array_intersect(x, [0.0]) FROM t",
             "[-0.0] [-0.0, 5.0] [-0.0, 5.0] -0.0 [-0.0] [-0.0, 5.0, 6.0] [-0.0]"),
            ("SELECT array_remove([p, m, y], 0.0), array_remove_n([p, m, p, y], m, 2), array_remove_all([p, m, y], m), array_remove([y, m], 7.0) FROM t",
             "[-0.0, 5.0] [0.0, 5.0] [5.0] [5.0, -0.0]"),
            ("SELECT array_replace([p, m, y], 0.0, 7.0), array_replace_n([p, m, p], m, 7.0, 2), array_replace_all([m, y, p], p, 7.0), array_replace([m, y], y, m), array_replace([m, y], 0.0, 0.0) FROM t",
             "[7.0, -0.0, 5.0] [7.0, 7.0, 0.0] [7.0, 5.0, 7.0] [-0.0, -0.0] [0.0, 5.0]"),
            ("SELECT array_distinct([m, p, y]), array_distinct([p, m]), array_max([-y, m]), list_sort([y, m, -y], 'DESC') FROM t", "[-0.0, 5.0] [0.0] -0.0 [5.0, -0.0, -5.0]"),
            ("SELECT array_distinct([[m], [p], NULL]), array_remove([[m, y], [y]], [y]) FROM t", "[[-0.0], ] [[-0.0, 5.0]]"),
            ("SELECT array_sort(CASE WHEN y > 9 THEN x END), array_union(x, NULL) IS NULL FROM t", "NULL true"),
        ],
    )
    .await;
}

/// When this test fails, `functions::float_lists` can be removed.
#[tokio::test]
async fn stock_lists_still_tell_zeros_apart() {
    let sql = "SELECT array_length(array_remove([5.0, -x], 0.0)) FROM (VALUES (0.0::DOUBLE)) v(x)";
    assert_eq!(stock_one(&SessionContext::new(), sql).await, 2);
}

#[tokio::test]
async fn windows_are_partitioned_by_equal_columns() {
    let setup =
        ["CREATE TABLE t AS SELECT * FROM (VALUES (1.5::DOUBLE, 2), (1.5, 3), (2.5, 2)) v(f, k)"];
    let window = "row_number() OVER (PARTITION BY a, b, c) AS r";
    let cases = [
        (format!("SELECT a, c, {window} FROM (SELECT f AS a, f AS b, k AS c FROM t) ORDER BY ALL"), "1.5 2 1; 1.5 3 1; 2.5 2 1"),
        (format!("SELECT a, {window} FROM (SELECT f AS a, f AS b, f AS c FROM t) ORDER BY ALL"), "1.5 1; 1.5 2; 2.5 1"),
        (format!("SELECT a, {window} FROM (SELECT [f] AS a, [f] AS b, max(3) AS c FROM t GROUP BY [f]) ORDER BY ALL"), "[1.5] 1; [2.5] 1"),
        ("SELECT count(*) OVER (PARTITION BY f, x.g, k) AS n FROM t JOIN (SELECT DISTINCT f AS g FROM t) x ON f = g ORDER BY 1".to_owned(), "1; 1; 1"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

const NO_LISTS: &str = "FROM (SELECT * FROM l WHERE id > 5) s LEFT JOIN l r ON true";

#[tokio::test]
async fn functions_of_lists_return_no_rows_for_empty_batches() {
    let setup = "CREATE TABLE l AS SELECT 1 AS id, make_array('a') AS x, make_array(true) AS y";
    let extremes = format!("SELECT array_min(s.x), array_max(s.x), array_min(s.y) {NO_LISTS}");
    let joined =
        "SELECT r.id, array_max(s.x) FROM l r LEFT JOIN (SELECT * FROM l WHERE id > 5) s ON true";
    let positions = format!("SELECT array_positions(s.x, 'a') {NO_LISTS}");
    let cases = [(extremes.as_str(), ""), (joined, "1 NULL"), (positions.as_str(), "")];
    expect_rows(&[setup], &cases).await;
}

/// When this test fails, `functions::float_lists` need not handle batches without rows.
#[tokio::test]
async fn stock_extremes_of_no_lists_still_fail() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, "CREATE TABLE l AS SELECT 1 AS id, make_array('a') AS x").await.unwrap();
    let e = stock_error(&ctx, &format!("SELECT array_min(s.x) {NO_LISTS}")).await;
    assert!(e.contains("Empty iterator"), "{e}");
}

/// When this test fails, `functions::list_counts` need not handle batches without rows.
#[tokio::test]
async fn stock_positions_in_no_lists_are_still_a_row() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, "CREATE TABLE l AS SELECT 1 AS id, make_array('a') AS x").await.unwrap();
    let e = stock_error(&ctx, &format!("SELECT array_positions(s.x, 'a') {NO_LISTS}")).await;
    assert!(e.contains("different number of rows"), "{e}");
}
