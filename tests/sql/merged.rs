//! The columns that USING and NATURAL joins merge: their values, names, and places in `*`.

use super::*;

pub(super) async fn query_named_rows(
    ctx: &SessionContext,
    query: &str,
) -> (Vec<String>, Vec<String>) {
    let frame = serrate::sql::sql(ctx, query).await.unwrap_or_else(|e| panic!("{query}\n{e}"));
    let names = frame.schema().fields().iter().map(|f| f.name().clone()).collect();
    let batches = frame.collect().await.unwrap_or_else(|e| panic!("{query}\n{e}"));
    let mut rows = to_lines(&batches, "", ",");
    rows.sort();
    (names, rows)
}

const LEFT: &str = "(VALUES (1, 10), (2, 20))";
const RIGHT: &str = "(VALUES (2, 200), (3, 300))";

#[tokio::test]
async fn merged_columns_have_the_value_of_the_side_that_is_not_null() {
    let ctx = serrate::sql::session();
    // The result does not depend on the alphabetical order of the table names.
    for (l, r) in [("a", "z"), ("z", "a")] {
        for (join, expected) in [
            ("JOIN", vec!["2,20,200"]),
            ("LEFT JOIN", vec!["1,10,", "2,20,200"]),
            ("RIGHT JOIN", vec!["2,20,200", "3,,300"]),
            ("FULL JOIN", vec!["1,10,", "2,20,200", "3,,300"]),
        ] {
            let using = format!("{LEFT} AS {l}(id, v) {join} {RIGHT} AS {r}(id, w) USING (id)");
            let natural = format!("{LEFT} AS {l}(id, v) NATURAL {join} {RIGHT} AS {r}(id, w)");
            for from in [&using, &natural] {
                for query in [
                    format!("SELECT * FROM {from}"),
                    format!("FROM {from}"),
                    format!("SELECT id, v, w FROM {from}"),
                    format!("SELECT id, {l}.v, {r}.w FROM {from} ORDER BY id"),
                    format!(
                        "SELECT id, max(v) AS v, max(w) AS w FROM {from} GROUP BY id ORDER BY id"
                    ),
                    format!("SELECT * FROM (SELECT * FROM {from}) AS q WHERE id > 0"),
                    format!("WITH q AS (SELECT * FROM {from}) SELECT * FROM q"),
                    format!("SELECT * FROM {from} WHERE id > 0 ORDER BY id"),
                    format!("SELECT DISTINCT id, v, w FROM {from} ORDER BY id"),
                ] {
                    let (names, found) = query_named_rows(&ctx, &query).await;
                    assert_eq!(names, ["id", "v", "w"], "{query}");
                    assert_eq!(found, expected, "{query}");
                }
            }
            // The merged column may be used in aggregates.
            let (_, found) =
                query_named_rows(&ctx, &format!("SELECT max(id), min(id) FROM {using}")).await;
            let ids: Vec<i64> =
                expected.iter().map(|r| r.split_once(',').unwrap().0.parse().unwrap()).collect();
            assert_eq!(
                found,
                [format!("{},{}", ids.iter().max().unwrap(), ids.iter().min().unwrap())]
            );
            let (names, found) =
                query_named_rows(&ctx, &format!("SELECT * EXCLUDE (v, w) FROM {using}")).await;
            assert_eq!(names, ["id"]);
            assert_eq!(found, ids.iter().map(ToString::to_string).collect::<Vec<_>>(), "{using}");
        }
    }
}

#[tokio::test]
async fn chains_of_full_joins_join_by_the_merged_column() {
    let ctx = serrate::sql::session();
    let third = "(VALUES (3, 3000), (4, 4000)) AS b(id, q)";
    let from = format!(
        "{LEFT} AS z(id, v) FULL JOIN {RIGHT} AS a(id, w) USING (id) FULL JOIN {third} USING (id)"
    );
    let (names, found) = query_named_rows(&ctx, &format!("SELECT * FROM {from}")).await;
    assert_eq!(names, ["id", "v", "w", "q"]);
    assert_eq!(found, ["1,10,,", "2,20,200,", "3,,300,3000", "4,,,4000"]);
    let natural = from.replace("FULL JOIN", "NATURAL FULL JOIN").replace(" USING (id)", "");
    assert_eq!(query_named_rows(&ctx, &format!("SELECT * FROM {natural}")).await.1, found);
    let (_, counted) =
        query_named_rows(&ctx, &format!("SELECT id, count(*) FROM {from} GROUP BY id")).await;
    assert_eq!(counted, ["1,1", "2,1", "3,1", "4,1"]);
}

/// The rewrite of a NATURAL join plans its inputs to find their columns. Joins within an input are
/// rewritten first, because DataFusion could not plan it otherwise.
#[tokio::test]
async fn natural_joins_read_queries_with_merged_columns() {
    let setup = [
        "CREATE TABLE t(k INT, b INT) AS VALUES (1, 4), (2, 5)",
        "CREATE TABLE u(k INT, d INT) AS VALUES (1, 7)",
        "CREATE TABLE w(c INT, y INT) AS VALUES (9, 0), (4, 1)",
        "CREATE VIEW v AS SELECT c FROM (SELECT b AS c FROM t JOIN u USING (k) WHERE k > 0) q NATURAL RIGHT JOIN w",
        "PREPARE p AS SELECT c FROM (SELECT b AS c FROM t JOIN u USING (k) WHERE k > $1) q NATURAL RIGHT JOIN w ORDER BY c",
        "CREATE TABLE made AS SELECT c, y FROM w NATURAL FULL JOIN (SELECT k AS c FROM t JOIN u USING (k) WHERE k > 0) q",
    ];
    let cases = [
        (
            "SELECT c FROM (SELECT b AS c FROM t JOIN u USING (k) WHERE k > 0) q NATURAL RIGHT JOIN w ORDER BY c",
            "4; 9",
        ),
        (
            "WITH q AS (SELECT b AS c FROM t NATURAL LEFT JOIN u WHERE k > 1) SELECT c, y FROM q NATURAL RIGHT JOIN w ORDER BY c",
            "4 1; 9 0",
        ),
        (
            "SELECT c, y FROM w NATURAL FULL JOIN (SELECT k AS c, b FROM t JOIN u USING (k) WHERE k > 0) q ORDER BY c",
            "1 NULL; 4 1; 9 0",
        ),
        (
            "SELECT c, y FROM w NATURAL FULL JOIN (SELECT k AS c FROM t JOIN u USING (k) WHERE k > 0) ORDER BY c",
            "1 NULL; 4 1; 9 0",
        ),
        (
            "SELECT sum(c) FROM (SELECT b AS c FROM t JOIN u USING (k) WHERE k > 0) q NATURAL RIGHT JOIN w",
            "13",
        ),
        (
            "SELECT * FROM (SELECT c FROM (SELECT b AS c FROM t NATURAL JOIN u WHERE k > 0) q NATURAL RIGHT JOIN w WHERE c > 0) p
                NATURAL RIGHT JOIN (SELECT 9 AS c UNION ALL SELECT 8) v ORDER BY c",
            "8; 9",
        ),
        (
            "SELECT c, y FROM (SELECT k AS c, count(*) AS n FROM t FULL JOIN u USING (k) GROUP BY k) q NATURAL FULL JOIN w ORDER BY c",
            "1 NULL; 2 NULL; 4 1; 9 0",
        ),
        ("SELECT c FROM v ORDER BY c", "4; 9"),
        ("EXECUTE p(0)", "4; 9"),
        ("SELECT c, y FROM made ORDER BY c", "1 NULL; 4 1; 9 0"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn lambda_parameters_and_subqueries_hide_merged_columns() {
    let ctx = serrate::sql::session();
    let from = format!("{LEFT} AS z(id, v) FULL JOIN {RIGHT} AS a(id, w) USING (id)");
    let (_, found) = query_named_rows(
        &ctx,
        &format!("SELECT array_transform([1], lambda id: id + 1) AS l, (SELECT max(id) FROM {RIGHT} AS i(id, w)) AS m, id FROM {from}"),
    )
    .await;
    assert_eq!(found, ["[2],3,1", "[2],3,2", "[2],3,3"]);
}

#[tokio::test]
async fn selecting_the_row_position_does_not_change_the_star() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = serrate::sql::session();
    let path = display_path(&dir.path().join("p.nrt"));
    for statement in [
        format!(
            "COPY (SELECT value AS id, value * 10 AS v FROM generate_series(2, 4)) TO '{path}'"
        ),
        format!("CREATE EXTERNAL TABLE p STORED AS NRT LOCATION '{path}'"),
    ] {
        serrate::sql::sql(&ctx, &statement).await.unwrap().collect().await.unwrap();
    }
    for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        for (l, r) in [("(VALUES (0), (3)) AS b(id)", "p"), ("p", "(VALUES (0), (3)) AS b(id)")] {
            for from in [format!("{l} {join} {r} USING (id)"), format!("{l} NATURAL {join} {r}")] {
                let (names, star) = query_named_rows(&ctx, &format!("SELECT * FROM {from}")).await;
                let (more, named) = query_named_rows(
                    &ctx,
                    &format!("SELECT * FROM (SELECT *, _row FROM {from} ORDER BY _row) AS q"),
                )
                .await;
                assert_eq!(more[..more.len() - 1], names, "{from}");
                let without: Vec<&str> =
                    named.iter().map(|row| row.rsplit_once(',').unwrap().0).collect();
                assert_eq!(without, star, "{from}");
            }
        }
    }
    // A CTE hides a table of the same name, with its column `_row`, in the scope of the CTE only.
    for (query, expected) in [
        (
            "SELECT _row, (WITH p AS (SELECT 1 AS a) SELECT a FROM p) AS z FROM p",
            vec!["0,1", "1,1", "2,1"],
        ),
        ("WITH p AS (SELECT _row AS r FROM p) SELECT r, r FROM p", vec!["0,0", "1,1", "2,2"]),
        (
            "WITH q AS (SELECT _row AS r FROM p), p AS (SELECT 5 AS a) SELECT r, a FROM q, p",
            vec!["0,5", "1,5", "2,5"],
        ),
        ("SELECT id, _row FROM p ORDER BY _row DESC", vec!["2,0", "3,1", "4,2"]),
        ("SELECT id, v FROM p ORDER BY _row DESC LIMIT 1", vec!["4,40"]),
    ] {
        let query = query.replace("r, r FROM p", "r, r AS s FROM p");
        assert_eq!(query_named_rows(&ctx, &query).await.1, expected, "{query}");
    }
    let hidden = serrate::sql::sql(&ctx, "WITH p AS (SELECT 1 AS a) SELECT _row FROM p").await;
    assert!(hidden.unwrap_err().to_string().contains("_row"));
}

/// DataFusion resolves the unqualified name of a USING column of two tables, but not of three.
#[tokio::test]
async fn three_and_more_tables_are_joined_using_one_column() {
    let ctx = serrate::sql::session();
    for (name, k, v) in [("a", 1, 10), ("b", 1, 20), ("c", 1, 30), ("d", 1, 40)] {
        let sql = format!("CREATE TABLE {name} AS SELECT {k} AS k, {v} AS v{name}");
        serrate::sql::sql(&ctx, &sql).await.unwrap().collect().await.unwrap();
    }
    let mut from = "a JOIN b USING (k)".to_owned();
    let mut values = "10,20".to_owned();
    for (name, value) in [("c", 30), ("d", 40)] {
        for join in ["JOIN", "LEFT JOIN", "FULL JOIN"] {
            let joined = format!("{from} {join} {name} USING (k)");
            for (query, expected) in [
                (format!("SELECT k FROM {joined}"), "1".to_owned()),
                (format!("SELECT * FROM {joined}"), format!("1,{values},{value}")),
                (
                    format!("SELECT k + 1 AS n, v{name} FROM {joined} WHERE k = 1"),
                    format!("2,{value}"),
                ),
                (
                    format!("SELECT k, count(*) FROM {joined} GROUP BY k ORDER BY k"),
                    "1,1".to_owned(),
                ),
                (format!("SELECT va FROM {joined} ORDER BY k"), "10".to_owned()),
            ] {
                assert_eq!(query_named_rows(&ctx, &query).await.1, [expected], "{query}");
            }
        }
        from = format!("{from} JOIN {name} USING (k)");
        values = format!("{values},{value}");
    }
    let (names, found) =
        query_named_rows(&ctx, "SELECT * EXCLUDE (va) FROM a JOIN b USING (k) JOIN c USING (k)")
            .await;
    assert_eq!(names, ["k", "vb", "vc"]);
    assert_eq!(found, ["1,20,30"]);
}

#[tokio::test]
async fn joins_in_parentheses_merge_columns() {
    let ctx = serrate::sql::session();
    let pair = |join: &str| format!("({LEFT} AS a(id, v) {join} {RIGHT} AS b(id, w) USING (id))");
    let third = "(VALUES (2), (3), (5)) AS c(k)";
    let keyed = "(VALUES (1, 7), (3, 8), (9, 9)) AS d(id, x)";
    let (full, right) = (pair("FULL JOIN"), pair("RIGHT JOIN"));
    for (query, expected) in [
        (format!("SELECT * FROM {full}"), vec!["1,10,", "2,20,200", "3,,300"]),
        (format!("SELECT id FROM {full}"), vec!["1", "2", "3"]),
        (format!("SELECT id FROM {full} WHERE id > a.id OR id = b.id"), vec!["2", "3"]),
        (format!("SELECT id, count(*) FROM {right} GROUP BY id"), vec!["2,1", "3,1"]),
        (format!("SELECT k, id FROM {third} CROSS JOIN {right} WHERE k = 5"), vec!["5,2", "5,3"]),
        (
            format!("SELECT * FROM {third} LEFT JOIN {full} ON k = id"),
            vec!["2,2,20,200", "3,3,,300", "5,,,"],
        ),
        (format!("SELECT k, id FROM {full} JOIN {third} ON id + 2 = k"), vec!["3,1", "5,3"]),
        (
            format!("SELECT * FROM {keyed} FULL JOIN {full} USING (id)"),
            vec!["1,7,10,", "2,,20,200", "3,8,,300", "9,9,,"],
        ),
        (
            format!("SELECT id, x, w FROM {right} LEFT JOIN {keyed} USING (id)"),
            vec!["2,,200", "3,8,300"],
        ),
        (format!("SELECT id FROM {keyed} NATURAL JOIN {full}"), vec!["1", "3"]),
    ] {
        assert_eq!(query_named_rows(&ctx, &query).await.1, expected, "{query}");
    }
}

#[tokio::test]
async fn merged_columns_and_columns_of_tables_may_be_selected_together() {
    let ctx = serrate::sql::session();
    for (join, all, others) in [
        ("JOIN", vec!["2,2,2"], vec!["20,200"]),
        ("LEFT JOIN", vec!["1,1,", "2,2,2"], vec!["10,", "20,200"]),
        ("RIGHT JOIN", vec!["2,2,2", "3,,3"], vec![",300", "20,200"]),
        ("FULL JOIN", vec!["1,1,", "2,2,2", "3,,3"], vec![",300", "10,", "20,200"]),
    ] {
        let from = format!("{LEFT} AS a(k, v) {join} {RIGHT} AS c(k, w) USING (k)");
        let (names, found) =
            query_named_rows(&ctx, &format!("SELECT k, a.k, c.k FROM {from}")).await;
        assert_eq!(names, ["k", "k_1", "k_2"], "{join}");
        assert_eq!(found, all, "{join}");
        let (names, found) =
            query_named_rows(&ctx, &format!("SELECT a.k, K, c.k FROM {from} ORDER BY k")).await;
        assert_eq!(names.len(), 3, "{join}");
        assert_eq!(found.len(), all.len(), "{join}");
        let (names, found) =
            query_named_rows(&ctx, &format!("SELECT * EXCLUDE (k) FROM {from}")).await;
        assert_eq!(names, ["v", "w"], "{join}");
        assert_eq!(found, others, "{join}");
    }
}

#[tokio::test]
async fn joins_with_an_alias_and_tables_without_one_merge_columns() {
    let setup =
        ["CREATE TABLE u AS SELECT 1 AS id, 10 AS k", "CREATE TABLE w AS SELECT 1 AS id, 100 AS m"];
    let cases = [
        ("SELECT id FROM (u FULL JOIN (SELECT 9 AS id) x USING (id)) AS j ORDER BY 1", "1; 9"),
        ("SELECT j.* FROM (u JOIN w USING (id)) AS j WHERE j.id = 1", "1 10 100"),
        ("SELECT * FROM (u NATURAL JOIN w) AS j(a, b, c)", "1 10 100"),
        ("SELECT * FROM u LEFT JOIN (SELECT id, m FROM w WHERE false) USING (id)", "1 10 NULL"),
        (
            "SELECT * FROM u JOIN w USING (id) JOIN (SELECT id, 3 AS g FROM w) USING (id)",
            "1 10 100 3",
        ),
        ("SELECT id, k FROM u JOIN (SELECT 1 AS id) USING (id)", "1 10"),
        (
            "SELECT id, max(m) FROM (u JOIN w USING (id)) FULL JOIN (SELECT 9 AS id) x USING (id) GROUP BY id ORDER BY id",
            "1 100; 9 NULL",
        ),
        (
            "SELECT k, m FROM u JOIN w ON u.id = w.id RIGHT JOIN (SELECT 99 AS k) q USING (k)",
            "99 NULL",
        ),
        ("SELECT max(m) FROM u JOIN w USING (id) FULL JOIN (SELECT 500 AS m) q USING (m)", "500"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = create_parallel_session();
    for sql in setup {
        query_batches(&ctx, sql).await.unwrap();
    }
    let sql = "SELECT id FROM u JOIN w ON u.id = w.id RIGHT JOIN (SELECT 99 AS id) q USING (id)";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("it is not clear from which of these tables the column"), "{sql}: {e}");
}

/// USING after a join of several tables merges the column of the only table that has the name.
#[tokio::test]
async fn using_after_a_join_of_several_tables_merges_columns() {
    let setup = [
        "CREATE TABLE y AS SELECT * FROM (VALUES (1, 2), (3, 4)) v(q, z)",
        "CREATE TABLE w AS SELECT * FROM (VALUES (1, 10), (5, 50)) v(a, k)",
        "CREATE TABLE u AS SELECT * FROM (VALUES (1, 100), (7, 700)) v(a, t)",
        "CREATE VIEW f AS SELECT * FROM y JOIN w ON q = w.a LEFT JOIN u USING (a)",
        "PREPARE p AS SELECT * FROM y JOIN w ON q = w.a JOIN u USING (a) WHERE a = $1",
    ];
    let cases = [
        ("SELECT * FROM y JOIN w ON q = w.a JOIN u USING (a)", "1 2 1 10 100"),
        ("SELECT * EXCLUDE (k) FROM y JOIN w ON q = w.a JOIN u USING (a)", "1 2 1 100"),
        ("SELECT * REPLACE (k + 1 AS k) FROM y JOIN w ON q = w.a JOIN u USING (a)", "1 2 1 11 100"),
        (
            "SELECT * FROM y JOIN w ON q = w.a FULL JOIN u USING (a) ORDER BY a",
            "1 2 1 10 100; NULL NULL 7 NULL 700",
        ),
        (
            "SELECT a, count(*) FROM y JOIN w ON q = w.a RIGHT JOIN u USING (a) GROUP BY a ORDER BY a",
            "1 1; 7 1",
        ),
        ("SELECT * FROM u JOIN (y JOIN w ON q = w.a) USING (a)", "1 100 1 2 10"),
        (
            "SELECT a, k FROM u FULL JOIN (y RIGHT JOIN w ON q = w.a) USING (a) ORDER BY a",
            "1 10; 5 50; 7 NULL",
        ),
        (
            "SELECT a, k FROM (SELECT q FROM y) JOIN w ON q = w.a FULL JOIN u USING (a) ORDER BY a",
            "1 10; 7 NULL",
        ),
        ("SELECT * FROM f", "1 2 1 10 100"),
        ("EXECUTE p(1)", "1 2 1 10 100"),
        (
            "WITH c AS (SELECT a, k FROM w) SELECT * FROM y JOIN c ON q = c.a JOIN u USING (a)",
            "1 2 1 10 100",
        ),
        ("SELECT * FROM y JOIN w ON q = w.a JOIN u USING (a) LIMIT 0", ""),
        ("SELECT a, y.z FROM y, w JOIN u USING (a) WHERE a = 1 ORDER BY z", "1 2; 1 4"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn unknown_names_in_replace_are_errors() {
    let ctx = create_parallel_session();
    for sql in
        ["CREATE TABLE t AS SELECT 1 AS a, 2 AS b", "CREATE TABLE u AS SELECT 1 AS a, 3 AS c"]
    {
        query_batches(&ctx, sql).await.unwrap();
    }
    for sql in [
        "SELECT * REPLACE (1 AS nosuch) FROM t",
        "SELECT t.* REPLACE (1 AS nosuch) FROM t JOIN u ON t.a = u.a",
        "SELECT * REPLACE (1 AS nosuch) FROM t JOIN u USING (a)",
        "SELECT * REPLACE (1 AS nosuch) FROM t NATURAL JOIN u",
        "WITH c AS (SELECT * FROM t) SELECT * REPLACE (1 AS nosuch) FROM c",
        "SELECT count(*) FROM (SELECT * REPLACE (1 AS nosuch) FROM t)",
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("REPLACE (.. AS nosuch) names a column"), "{sql}: {e}");
    }
    let cases = [
        ("SELECT * REPLACE (9 AS c, 8 AS a) FROM t JOIN u USING (a)", "8 2 9"),
        ("SELECT t.* REPLACE (9 AS b), c FROM t, u", "1 9 3"),
    ];
    for (sql, expected) in cases {
        assert_eq!(rows_or_error(&ctx, sql).await, expected, "{sql}");
    }
}

/// When this test fails, `sql::statement::columns::star_replaces` can be removed.
#[tokio::test]
async fn stock_unknown_names_in_replace_are_still_ignored() {
    let stock = SessionContext::new();
    stock_batches(&stock, "CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    assert!(stock_batches(&stock, "SELECT * REPLACE (1 AS nosuch) FROM t").await.is_ok());
}

#[tokio::test]
async fn unquoted_names_are_lower_cased_in_every_clause() {
    let setup =
        ["CREATE TABLE t AS SELECT 1 AS k, 2 AS j", "CREATE TABLE u AS SELECT 1 AS k, 3 AS m"];
    let cases = [
        ("SELECT * FROM t JOIN u USING (K)", "1 2 3"),
        ("SELECT * REPLACE (0 AS J) FROM t", "1 0"),
        ("SELECT * EXCLUDE (J) FROM t", "1"),
        ("SELECT * EXCLUDE J FROM t", "1"),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn distinct_on_takes_positions() {
    let setup = ["CREATE TABLE t AS SELECT * FROM (VALUES ('a', 1), ('a', 2), ('b', 2)) v(s, x)"];
    let cases = [
        ("SELECT DISTINCT ON (1) s, x FROM t ORDER BY s, x", "a 1; b 2"),
        ("SELECT DISTINCT ON (2) s, x FROM t ORDER BY x, s", "a 1; a 2"),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = create_parallel_session();
    assert!(
        rows_or_error(&ctx, "SELECT DISTINCT ON (3) 1, 2").await.contains("has the position 3")
    );
}

/// Unquoted names in USING are lower-cased in ASCII letters only, as names of other columns are.
#[tokio::test]
async fn names_of_merged_columns_are_lower_cased_as_other_names() {
    let both = |name: &str, other: &str| {
        format!(
            "(VALUES (1, 10)) l({name}, v) FULL JOIN (VALUES (1, 20)) r({name}, w) USING ({other})"
        )
    };
    let cases = [
        (format!("SELECT Ü, V, W FROM {}", both("Ü", "Ü")), "1 10 20"),
        (format!("SELECT * FROM {}", both("Ü", "Ü")), "1 10 20"),
        (format!("SELECT \"key\", V FROM {}", both("Key", "KEY")), "1 10"),
        (format!("SELECT * EXCLUDE (Ü) FROM {}", both("Ü", "Ü")), "10 20"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &cases).await;
    let ctx = serrate::sql::session();
    let refused = rows_or_error(&ctx, &format!("SELECT ü FROM {}", both("Ü", "Ü"))).await;
    assert!(refused.contains("No field named"), "{refused}");
}

#[tokio::test]
async fn merged_columns_are_visible_in_lateral_tables() {
    let setup = [
        "CREATE TABLE lt AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(id, x)",
        "CREATE TABLE lb AS SELECT * FROM (VALUES (1, [1, 2]), (3, [4])) v(id, l)",
    ];
    let cases = [
        ("SELECT x, q FROM lt JOIN lb USING (id), LATERAL (SELECT id + 1 AS q) w", "10 2"),
        (
            "SELECT x, q FROM lt JOIN lb USING (id) CROSS JOIN LATERAL (SELECT id + 1 AS q) w",
            "10 2",
        ),
        ("SELECT x, q FROM lt JOIN lb USING (id), unnest([id, 9]) u(q) ORDER BY q", "10 1; 10 9"),
        ("SELECT x, q FROM lt JOIN lb USING (id), unnest(l) u(q) ORDER BY q", "10 1; 10 2"),
        (
            "SELECT x, q FROM lt FULL JOIN lb USING (id), LATERAL (SELECT id + 1 AS q) w ORDER BY q",
            "10 2; 20 3; NULL 4",
        ),
        ("SELECT x, q FROM lt NATURAL JOIN lb, LATERAL (SELECT id + 1 AS q) w", "10 2"),
        ("SELECT x, q FROM lt JOIN lb USING (id), LATERAL (SELECT max(id) AS q FROM lt) w", "10 2"),
    ];
    expect_rows(&setup, &cases).await;
}

const STAR_TABLES: [&str; 8] = [
    "CREATE TABLE w AS SELECT * FROM (VALUES (4, 40, 1), (1, 10, 2)) x(a, z, k)",
    "CREATE TABLE u AS SELECT * FROM (VALUES (1, 7), (4, 1)) x(a, t)",
    "CREATE TABLE v AS SELECT * FROM (VALUES (9, 4, 1), (8, 5, 5)) x(q, a, k)",
    "CREATE VIEW few AS SELECT * EXCLUDE (k) FROM w JOIN u USING (a)",
    "CREATE TABLE kept(a BIGINT, z BIGINT, t BIGINT)",
    "INSERT INTO kept SELECT * EXCLUDE (k) FROM w JOIN u USING (a)",
    "PREPARE above(BIGINT) AS SELECT * EXCLUDE (k) FROM w JOIN u USING (a) WHERE a > $1",
    "CREATE TABLE made AS SELECT * REPLACE (-t AS t) FROM w NATURAL JOIN u",
];

/// In these joins, the name of the right table sorts before the name of the left table.
#[tokio::test]
async fn exclude_and_replace_keep_the_place_of_merged_columns() {
    let cases = [
        ("SELECT * EXCLUDE (k) FROM w JOIN u USING (a) ORDER BY a", "1 10 7; 4 40 1"),
        ("SELECT * EXCLUDE (k) FROM w LEFT JOIN u USING (a) ORDER BY a LIMIT 1", "1 10 7"),
        (
            "SELECT * REPLACE (k + 1 AS k) FROM w LEFT JOIN u USING (a) ORDER BY a",
            "1 10 3 7; 4 40 2 1",
        ),
        (
            "SELECT x, y FROM (SELECT * EXCLUDE (k) FROM w NATURAL JOIN u) q(x, y, z) ORDER BY x",
            "1 10; 4 40",
        ),
        (
            "SELECT * EXCLUDE (k) FROM w JOIN u USING (a) UNION ALL SELECT 100, 200, 300 ORDER BY 1",
            "1 10 7; 4 40 1; 100 200 300",
        ),
        (
            "WITH c AS (SELECT a, t AS b FROM u) SELECT * EXCLUDE (k) REPLACE (-b AS b) FROM w JOIN c USING (a) ORDER BY a",
            "1 10 -7; 4 40 -1",
        ),
        (
            "SELECT * EXCLUDE (z) FROM w LEFT JOIN (SELECT a, t FROM u) USING (a) ORDER BY a",
            "1 2 7; 4 1 1",
        ),
        ("SELECT * FROM few ORDER BY a", "1 10 7; 4 40 1"),
        ("SELECT * FROM kept ORDER BY a", "1 10 7; 4 40 1"),
        ("SELECT * FROM made ORDER BY a", "1 10 2 -7; 4 40 1 -1"),
        ("EXECUTE above(1)", "4 40 1"),
        // ORDER BY uses the value that REPLACE gives the merged column.
        (
            "SELECT * REPLACE (-a AS a) FROM w RIGHT JOIN v USING (a) ORDER BY a",
            "-5 NULL NULL 8 5; -4 40 1 9 1",
        ),
        ("SELECT * REPLACE (-a AS a) FROM w JOIN u USING (a) ORDER BY a", "-4 40 1 1; -1 10 2 7"),
        (
            "SELECT * REPLACE (z + a AS z) FROM w FULL JOIN u USING (a) ORDER BY a",
            "1 11 2 7; 4 44 1 1",
        ),
    ];
    expect_rows(&STAR_TABLES, &cases).await;
}

#[tokio::test]
async fn stars_exclude_columns_of_all_merged_tables() {
    let cases = [
        ("SELECT * EXCLUDE (k) FROM w JOIN v USING (a)", "4 40 9"),
        (
            "SELECT * EXCLUDE (k) FROM w FULL JOIN v USING (a) ORDER BY a",
            "1 10 NULL; 4 40 9; 5 NULL 8",
        ),
        (
            "SELECT * EXCLUDE (a) FROM w FULL JOIN v USING (a) ORDER BY a",
            "10 2 NULL NULL; 40 1 9 1; NULL NULL 8 5",
        ),
        ("SELECT * EXCLUDE (z) FROM w NATURAL JOIN v JOIN u USING (a)", "4 1 9 1"),
        ("SELECT * EXCLUDE (v.k) FROM w JOIN v USING (a)", "4 40 1 9"),
        ("SELECT * EXCLUDE (v.a) FROM w JOIN v USING (a)", "4 40 1 9 1"),
        (
            "SELECT * EXCLUDE (a) FROM w JOIN u USING (a) CROSS JOIN v ORDER BY z, q",
            "10 2 7 8 5; 10 2 7 9 1; 40 1 1 8 5; 40 1 1 9 1",
        ),
        // A table function in FROM may use columns of the tables before it.
        (
            "SELECT * EXCLUDE (k) FROM w JOIN u USING (a) CROSS JOIN unnest([w.a, 0]) e(n) ORDER BY z, n",
            "1 10 7 0; 1 10 7 1; 4 40 1 0; 4 40 1 4",
        ),
        (
            "SELECT * EXCLUDE (k) FROM w JOIN u USING (a), LATERAL (SELECT w.z + 1 AS k, 5 AS y) l ORDER BY z",
            "1 10 7 5; 4 40 1 5",
        ),
    ];
    expect_rows(&STAR_TABLES, &cases).await;
    let ctx = create_parallel_session();
    for sql in &STAR_TABLES[..3] {
        query_batches(&ctx, sql).await.unwrap();
    }
    for (sql, expected) in [
        ("SELECT * EXCLUDE (w.a) FROM w JOIN u USING (a)", "write EXCLUDE (a)"),
        ("SELECT * EXCLUDE (nosuch) FROM w JOIN u USING (a)", "No field named nosuch"),
        ("SELECT * EXCLUDE (k) FROM w JOIN nosuch USING (a)", "nosuch"),
    ] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains(expected), "{sql}: {e}");
    }
}
