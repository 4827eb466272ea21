//! Syntax that DataFusion rejects, and that the statement rewrites of this crate support or refuse.

use super::*;

/// Returns the rows as one string, with semicolons between rows; NULL is an empty string.
pub(super) async fn query_cells(ctx: &SessionContext, sql: &str) -> String {
    query_texts(ctx, sql).await.join("; ")
}

async fn with_tables() -> SessionContext {
    let ctx = create_parallel_session();
    let tables = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, NULL)) v(id, x)",
        "CREATE TABLE u AS SELECT * FROM (VALUES (1, 10), (2, 5), (2, NULL)) v(k, y)",
    ];
    run_all(&ctx, &tables).await;
    ctx
}

#[tokio::test]
async fn queries_may_begin_with_from() {
    let ctx = with_tables().await;
    for (sql, expected) in [
        ("FROM t WHERE id > 1 AND x > 0", "2 20"),
        ("FROM t AS r WHERE r.id = 1", "1 10"),
        ("FROM t r JOIN u ON r.id = u.k WHERE r.id = 1", "1 10 1 10"),
        ("SELECT count(*) FROM (FROM t WHERE id > 1)", "2"),
        ("WITH q AS (FROM t WHERE id > 1) FROM q WHERE id < 3", "2 20"),
        ("FROM t WHERE id = 1 UNION ALL FROM u WHERE k = 2 AND y > 0 ORDER BY 1", "1 10; 2 5"),
        ("SELECT id FROM t WHERE id IN (FROM (SELECT k FROM u) WHERE k > 1)", "2"),
        ("FROM t SELECT x WHERE id = 2", "20"),
        ("FROM t ORDER BY id DESC LIMIT 1", "3 "),
        // The word FROM in a function and in a string is not the clause FROM.
        ("SELECT extract(year FROM DATE '2020-01-01') FROM t WHERE id = 1", "2020"),
        ("SELECT 'FROM t WHERE' FROM t WHERE id = 1", "FROM t WHERE"),
        // A parenthesis in quotes does not end the subquery.
        ("SELECT ')', EXISTS (FROM t WHERE id = 1)", ") true"),
        ("SELECT $$)$$, EXISTS (FROM t WHERE id = 1)", ") true"),
        ("SELECT E'\\')', EXISTS (FROM t WHERE id = 1)", "') true"),
    ] {
        assert_eq!(query_cells(&ctx, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn ctes_may_be_materialized_or_not_materialized() {
    let ctx = with_tables().await;
    for sql in [
        "WITH c AS MATERIALIZED (SELECT id FROM t WHERE id = 2) SELECT * FROM c",
        "WITH c AS NOT MATERIALIZED (SELECT id FROM t WHERE id = 2) SELECT * FROM c",
        "WITH a AS (SELECT 1), c (n) AS materialized (SELECT id FROM t WHERE id = 2) SELECT n FROM c",
        "WITH c AS NOT\nMATERIALIZED (SELECT 'AS MATERIALIZED (' AS s, id FROM t WHERE id = 2) SELECT id FROM c",
    ] {
        assert_eq!(query_cells(&ctx, sql).await, "2", "{sql}");
    }
}

#[tokio::test]
async fn joins_nest_without_parentheses() {
    let tables = [
        "CREATE TABLE a AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(x, y)",
        "CREATE TABLE b AS SELECT * FROM (VALUES (1, 100), (3, 300)) v(x, z)",
        "CREATE TABLE c AS SELECT * FROM (VALUES (1, 1000), (4, 4000)) v(x, w)",
        "CREATE VIEW n AS SELECT a.x, b.z, c.w FROM a JOIN b JOIN c ON b.x = c.x ON a.x = b.x",
    ];
    let cases = [
        ("SELECT * FROM a JOIN b RIGHT JOIN c ON b.x = c.x ON a.x = c.x", "1 10 1 100 1 1000"),
        (
            "SELECT * FROM a RIGHT JOIN b RIGHT JOIN c ON b.x = c.x ON a.x = c.x ORDER BY c.x",
            "1 10 1 100 1 1000; NULL NULL NULL NULL 4 4000",
        ),
        (
            "SELECT * FROM a LEFT JOIN b JOIN c ON b.x = c.x ON a.x = b.x ORDER BY a.x",
            "1 10 1 100 1 1000; 2 20 NULL NULL NULL NULL",
        ),
        ("SELECT x, y, z, w FROM a JOIN b JOIN c USING (x) USING (x)", "1 10 100 1000"),
        ("SELECT count(*) FROM a LEFT JOIN b CROSS JOIN c ON a.x = b.x", "3"),
        ("SELECT count(*), count(w) FROM a LEFT JOIN b NATURAL JOIN c ON a.x = b.x", "2 1"),
        (
            "SELECT count(*) FROM a JOIN b JOIN c JOIN a AS d ON c.x = d.x ON b.x = d.x ON a.x = d.x",
            "1",
        ),
        (
            "SELECT * FROM a JOIN b ON a.x = b.x LEFT JOIN c JOIN a AS d ON c.x = d.x ON b.x = d.x",
            "1 10 1 100 1 1000 1 10",
        ),
        ("SELECT count(*) FROM a JOIN b JOIN c ON b.x IS NOT DISTINCT FROM c.x ON a.x = c.x", "1"),
        (
            "SELECT (SELECT count(*) FROM a JOIN b JOIN c ON b.x = c.x ON a.x = b.x), 2 FROM a WHERE x = 2",
            "1 2",
        ),
        ("SELECT * FROM n", "1 100 1000"),
    ];
    expect_rows(&tables, &cases).await;
    let ctx = create_parallel_session();
    for table in tables {
        serrate::sql::sql(&ctx, table).await.unwrap().collect().await.unwrap();
    }
    // The first JOIN has no condition.
    let sql = "SELECT * FROM a JOIN b JOIN c JOIN a AS d ON c.x = d.x ON b.x = d.x";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("Expected: end of statement, found: ON"), "{e}");
    // The condition of the inner join cannot use the table before it.
    let sql = "SELECT * FROM a JOIN b JOIN c ON a.x = c.x ON a.x = b.x";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("a.x"), "{e}");
}

#[tokio::test]
async fn semi_and_anti_joins_return_columns_of_the_left_side() {
    let ctx = with_tables().await;
    for (sql, expected) in [
        ("SELECT t.id FROM t SEMI JOIN u ON t.id = u.k ORDER BY 1", "1; 2"),
        ("SELECT t.id FROM t ANTI JOIN u ON t.id = u.k", "3"),
        ("SELECT * FROM t SEMI JOIN u ON t.id = u.k AND t.x = u.y", "1 10"),
        ("SELECT id FROM t SEMI JOIN (SELECT k AS id FROM u) v USING (id) ORDER BY 1", "1; 2"),
        ("SELECT id FROM (t ANTI JOIN u ON t.id = u.k)", "3"),
    ] {
        assert_eq!(query_cells(&ctx, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn tuples_compare_field_by_field() {
    let ctx = with_tables().await;
    for (sql, expected) in [
        ("SELECT id FROM t WHERE (id, x) IN ((1, 10), (2, 5)) ORDER BY id", "1"),
        ("SELECT id FROM t WHERE (id + 1, x) = (2, 10)", "1"),
        ("SELECT id FROM t WHERE (id + 0, abs(x)) IN ((1, 10), (2, 20)) ORDER BY id", "1; 2"),
        ("SELECT id FROM t WHERE (id, x) NOT IN ((1, 10)) ORDER BY id", "2; 3"),
        ("SELECT id FROM t WHERE (id, id * 2) < (2, 4)", "1"),
        ("SELECT id FROM t WHERE (id, x) IN (SELECT k, y FROM u)", "1"),
        ("SELECT id FROM t WHERE id > 0 AND ((id, x) IN (SELECT k, y FROM u))", "1"),
        // (2, 20) = (2, NULL) is NULL, so id 2 is not returned; (3, NULL) differs from all rows in
        // `k`.
        ("SELECT id FROM t WHERE (id, x) NOT IN (SELECT k, y FROM u)", "3"),
        ("SELECT id, (id, x) IN (SELECT k, y FROM u) FROM t ORDER BY id", "1 true; 2 ; 3 false"),
        (
            "SELECT id, (id, x) NOT IN (SELECT k, y FROM u WHERE y > 0) FROM t ORDER BY id",
            "1 false; 2 true; 3 true",
        ),
        ("SELECT id FROM t WHERE (id, x) = ANY (SELECT k, y FROM u)", "1"),
        ("SELECT id FROM t WHERE ROW(id, x) = SOME (SELECT k, y FROM u)", "1"),
        ("SELECT id FROM t WHERE ROW(id, x) IN (SELECT k, y FROM u)", "1"),
        ("SELECT id FROM t WHERE (id, x) <> ALL (SELECT k, y FROM u)", "3"),
        ("SELECT id, (id, x) = ANY (SELECT * FROM u) FROM t ORDER BY id", "1 true; 2 ; 3 false"),
        (
            "SELECT id, (id, x) <> ALL (SELECT k, y FROM u WHERE k = id) FROM t ORDER BY id",
            "1 false; 2 ; 3 true",
        ),
        ("SELECT id FROM t WHERE (id, x) = ANY (VALUES (1, 10), (5, 5))", "1"),
        ("SELECT id FROM t WHERE id = ANY (VALUES (1), (3)) ORDER BY id", "1; 3"),
        ("SELECT id FROM t WHERE id > ALL (VALUES (1), (2))", "3"),
        ("SELECT id FROM t WHERE id = ANY (FROM u SELECT k) ORDER BY id", "1; 2"),
    ] {
        assert_eq!(query_cells(&ctx, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn unsupported_syntax_is_refused_with_an_explanation() {
    let ctx = with_tables().await;
    for (sql, words) in [
        ("SELECT * FROM t LIMIT -1", "LIMIT -1 is not valid: the number of rows must be 0 or more"),
        (
            "SELECT * FROM t OFFSET -2",
            "OFFSET -2 is not valid: the number of rows must be 0 or more",
        ),
        ("SELECT * FROM t PIVOT (sum(x) FOR id IN (1, 2))", "PIVOT is not supported"),
        ("SELECT * FROM t UNPIVOT (v FOR n IN (id, x))", "UNPIVOT is not supported"),
        ("SELECT * FROM t ORDER BY x COLLATE nocase", "COLLATE nocase is not supported"),
        ("SELECT 1 = ANY([[1]])", "search for an element"),
        (
            "SELECT id, x, count(*) FROM t GROUP BY id",
            "SELECT has the column t.x, which is not a key of GROUP BY",
        ),
        (
            "SELECT id FROM t GROUP BY id HAVING x > 1",
            "HAVING has the column t.x, which is not a key of GROUP BY",
        ),
        ("SELECT id FROM t JOIN (SELECT 1 AS z) USING (id)", "Valid fields are z."),
        ("SELECT count(*) FROM t GROUP BY sum(x)", "GROUP BY has the aggregate sum(x)"),
        ("SELECT id FROM t LIMIT id", "LIMIT id names a column"),
        (
            "SELECT id FROM t WHERE (id, x) < ANY (SELECT k, y FROM u)",
            "write EXISTS (SELECT 1 FROM (SELECT ..) AS q(c1, c2) WHERE (id, x) < (q.c1, q.c2))",
        ),
        (
            "SELECT id FROM t WHERE (id, x) = ALL (SELECT k, y FROM u)",
            "write NOT EXISTS (SELECT 1 FROM (SELECT ..) AS q(c1, c2) WHERE NOT ((id, x) = (q.c1, q.c2)))",
        ),
        (
            "SELECT id FROM t WHERE (id, x) IN (SELECT k FROM u)",
            "the row (id, x) has 2 values, but the subquery that it is compared with has 1 column",
        ),
        ("SELECT list_contains(['a'], ['a'])", "use ragged_isin(x, ['a', 'b'])"),
        (
            "SELECT c = ANY(['a']) FROM (SELECT [['a']] AS c)",
            "search for one element of List(Utf8), but the value is a list (List(List(Utf8)))",
        ),
        (
            "PIVOT t ON id USING sum(x)",
            "PIVOT at line 1, column 1 is not supported: write an aggregate for each value",
        ),
        ("FROM (pivot 't.parquet' ON id)", "PIVOT at line 1, column 7 is not supported"),
        (
            "WITH p AS (UNPIVOT t ON id, x INTO NAME n VALUE v) FROM p",
            "UNPIVOT at line 1, column 12 is not supported: write UNION ALL",
        ),
        (
            "SELECT id FROM t WHERE COLUMNS('x') > 1",
            "there is no function columns; write the names",
        ),
        ("SELECT id FROM t WHERE COLUMNS(*) > 1", "SELECT * EXCLUDE (a)"),
        ("SELECT lambda v: v + 1 FROM t", "a lambda is not a value; pass it to a function"),
        ("SELECT id FROM t WHERE pivot = )", "found: )"),
        (
            "SELECT [1] && [2]",
            "the operator && at line 1, column 12 is not supported: write list_has",
        ),
        ("SELECT @(-5)", "write abs(x)"),
        ("SELECT 2 BETWEEN SYMMETRIC 3 AND 1", "BETWEEN least(a, b) AND greatest(a, b)"),
        ("SELECT #1 FROM t", "write the name of the column"),
        ("SELECT a: 1", "write SELECT 1 AS x instead"),
        ("TABLE t", "write FROM t"),
        ("DESCRIBE", "write SHOW TABLES"),
        ("DESCRIBE meds('x')", "write DESCRIBE FROM and the call"),
        ("COMMENT ON TABLE t IS 'x'", "COMMENT ON at line 1"),
        ("SET VARIABLE a = 1", "EXECUTE p(..)"),
        ("CREATE TABLE n (a) AS SELECT 1", "as in CREATE TABLE t AS SELECT 1 AS a"),
        ("CREATE TABLE n AS SELECT 1 AS a WITH NO DATA", "LIMIT 0"),
        ("INSERT INTO t AS q VALUES (1, 2)", "remove AS and the alias"),
        ("CREATE VIEW IF NOT EXISTS n AS FROM t", "write CREATE OR REPLACE VIEW"),
        ("CREATE TABLE n (a INT CHECK (a > 0))", "CHECK is not supported"),
        ("SHOW t", "write DESCRIBE t for the columns"),
        ("SELECT (id, x) OVERLAPS (id, x) FROM t", "write a < d AND c < b"),
        ("SELECT t.s -> 'a' FROM (SELECT '{}' AS s) t", "JSON in strings cannot be read"),
        ("SELECT DATE '2020-01-01' || id FROM t", "write concat(a, b)"),
        ("SELECT 'a' || 'b' + 1 FROM t", "cast one side"),
        ("SELECT to_char(DATE '2020-01-02', 'YYYY-MM')", "write to_char(t, '%Y-%m-%d %H:%M:%S')"),
        ("SELECT unnest([id]) AS e FROM t WHERE e > 2", "unnest the list in a subquery in FROM"),
        ("SELECT sum(unnest([id])) FROM t", "unnest is not supported in WHERE, ON, ORDER BY"),
        (
            "WITH RECURSIVE r AS (SELECT NULL AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) FROM r",
            "write its type, as in CAST(NULL AS INT)",
        ),
        (
            "PREPARE p AS WITH RECURSIVE r AS (SELECT $1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) FROM r",
            "$1::INT or PREPARE p(INT) AS ..",
        ),
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains(words) && !e.contains("Ident {"), "{sql}: {e}");
    }
}

#[tokio::test]
async fn fetch_first_limits_the_rows() {
    let ctx = with_tables().await;
    for (sql, expected) in [
        ("SELECT id FROM t ORDER BY id FETCH FIRST 2 ROWS ONLY", "1; 2"),
        ("SELECT id FROM t ORDER BY id DESC FETCH NEXT ROW ONLY", "3"),
        ("SELECT id FROM t ORDER BY id OFFSET 1 ROW FETCH FIRST 1 ROWS ONLY", "2"),
        ("FROM t ORDER BY id FETCH FIRST 1 ROW ONLY", "1 10"),
        (
            "SELECT count(*) FROM ((SELECT id FROM t FETCH FIRST 1 ROW ONLY) UNION ALL SELECT k FROM u)",
            "4",
        ),
        ("SELECT (SELECT max(y) FROM u FETCH FIRST ROW ONLY)", "10"),
    ] {
        assert_eq!(query_cells(&ctx, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn temporary_tables_and_views_live_in_the_session() {
    let ctx = serrate::sql::session();
    for sql in [
        "CREATE TEMP TABLE a AS SELECT 1 AS x",
        "CREATE TEMPORARY TABLE b (x INT)",
        "INSERT INTO b VALUES (2)",
        "CREATE OR REPLACE TEMP VIEW c AS SELECT x + 1 AS x FROM b",
    ] {
        query_cells(&ctx, sql).await;
    }
    let sql = "SELECT a.x, b.x, c.x FROM a, b, c";
    assert_eq!(query_cells(&ctx, sql).await, "1 2 3");
    let e = error(&ctx, "CREATE TEMP TABLE a AS SELECT 2 AS x").await;
    assert!(e.contains("already exists"), "{e}");
}

#[tokio::test]
async fn two_stars_are_exponentiation() {
    let cases = [
        (
            "SELECT 2 ** 3, 2**-1, -2 ** 2, 3 * 2 ** 2, 2 ** 3 ** 2, 10 - 2 ** 2 * 2",
            "8.0 0.5 4.0 12.0 64.0 2.0",
        ),
        (
            "SELECT x ** 2, (x + 1) ** 2 FROM (SELECT [1.0, NULL, 3.0] AS x)",
            "[1.0, , 9.0] [4.0, , 16.0]",
        ),
        ("SELECT id FROM (VALUES (1), (2), (3)) t(id) WHERE id ** 2 > 3 ORDER BY id", "2; 3"),
        ("SELECT list_transform([1, 2], v -> v ** 2)", "[1.0, 4.0]"),
        ("SELECT count(*)*2 FROM (VALUES (1)) t(a)", "2"),
    ];
    expect_rows(&[], &cases).await;
    let ctx = serrate::sql::session();
    let e = error(&ctx, "SELECT 2 * * 3").await;
    assert!(e.contains("Expected: an expression, found: *"), "{e}");
}

#[tokio::test]
async fn arguments_may_have_names_that_are_keywords() {
    let cases = [
        ("SELECT ragged_scatter([1, 2], indices => [0], values => [9])", "[9, 2]"),
        ("SELECT ragged_coords([2, 1], axis => 1)", "[0, 1]"),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn dates_and_casts_are_literal_arguments() {
    let cases = [
        (
            "SELECT ragged_shift([DATE '2020-01-01', '2020-01-02'], 1, DATE '2019-01-01') AS x",
            "[2019-01-01, 2020-01-01]",
        ),
        (
            "SELECT ragged_fill_null([TIMESTAMP '2020-01-01', NULL], TIMESTAMP '2019-01-01') AS x",
            "[2020-01-01T00:00:00, 2019-01-01T00:00:00]",
        ),
        ("SELECT ragged_pad([1, 2], CAST('3' AS INT), '7'::INT) AS x", "[1, 2, 7]"),
        (
            "SELECT ragged_window([1, 2], [DATE '2020-01-01', '2020-02-01'], DATE '2020-02-01', 'sum', before => '40 days'::INTERVAL) AS x",
            "3",
        ),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn stock_list_literals_still_have_no_outer_columns() {
    let ctx = SessionContext::new();
    stock_batches(&ctx, "CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    for sql in
        ["SELECT (SELECT [t.a]) FROM t", "WITH x AS (SELECT 1 AS a) SELECT [(SELECT a FROM x)]"]
    {
        let message = stock_error(&ctx, sql).await;
        assert!(message.contains("No field named") || message.contains("not found"), "{message}");
    }
}

#[tokio::test]
async fn lists_of_outer_columns_and_tuples_of_expressions_are_planned() {
    let setup = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 5, true), (2, 'b', 7, false)) v(id, g, i, b)",
    ];
    let cases = [
        ("SELECT id, a FROM t, unnest([t.id, 9]) AS q(a) ORDER BY id, a", "1 1; 1 9; 2 2; 2 9"),
        (
            "SELECT id, x.a FROM t, LATERAL (SELECT unnest([t.id, 0]) AS a) x ORDER BY 1, 2",
            "1 0; 1 1; 2 0; 2 2",
        ),
        (
            "SELECT id, (SELECT sum(a) FROM (SELECT unnest([t.id, 1]) AS a)) FROM t ORDER BY id",
            "1 2; 2 3",
        ),
        // The columns need no table name, and queries of WITH are found, too.
        (
            "SELECT id, x.a FROM t, LATERAL (SELECT unnest([i, 0]) AS a) x ORDER BY 1, 2",
            "1 0; 1 5; 2 0; 2 7",
        ),
        ("SELECT id, (SELECT [i, id]) AS l FROM t ORDER BY id", "1 [5, 1]; 2 [7, 2]"),
        ("SELECT id FROM t WHERE 7 IN (SELECT unnest([i, id]))", "2"),
        (
            "SELECT id, (SELECT count(*) FROM range(3) r(v) WHERE list_contains([id, i], v)) FROM t ORDER BY id",
            "1 1; 2 1",
        ),
        ("WITH x AS (SELECT 1 AS a) SELECT [(SELECT a FROM x), 2]", "[1, 2]"),
        (
            "SELECT id, [(SELECT max(v) FROM range(9) r(v) WHERE v < i), i] AS l FROM t ORDER BY id",
            "1 [4, 5]; 2 [6, 7]",
        ),
        // VALUES in FROM of a subquery may have outer columns.
        (
            "SELECT id, (SELECT count(*) FROM (VALUES (t.i), (id), (NULL)) q(x) WHERE x > 3) FROM t ORDER BY id",
            "1 1; 2 1",
        ),
        // A string next to a date or time has its type.
        (
            "SELECT [q.d, '2020-01-02'] FROM (SELECT DATE '2020-01-01' AS d) q",
            "[2020-01-01, 2020-01-02]",
        ),
        (
            "SELECT l FROM (SELECT [d, '2020-01-02'] AS l FROM (SELECT DATE '2020-01-01' AS d))",
            "[2020-01-01, 2020-01-02]",
        ),
        ("SELECT id, (SELECT ['x', t.g]) AS l FROM t ORDER BY id", "1 [x, a]; 2 [x, b]"),
        ("SELECT (id + 1, g) FROM t ORDER BY id LIMIT 1", "{c0: 2, c1: a}"),
        ("SELECT (-1, (2, 3 + 1))", "{c0: -1, c1: {c0: 2, c1: 4}}"),
        (
            "SELECT n FROM (VALUES (DATE '2020-01-01'), ('2021-01-01'), (NULL)) v(n) ORDER BY n",
            "2020-01-01; 2021-01-01; NULL",
        ),
        ("SELECT id FROM t WHERE b = 'true' OR 'f' = b AND g <> 'b'", "1"),
        (
            "SELECT date_diff('day', a, b), date_diff('month', a, b), date_diff('hour', a, b) FROM (SELECT TIMESTAMPTZ '2020-07-01 02:00:00Z' AT TIME ZONE 'America/New_York' AS a, TIMESTAMPTZ '2020-07-01 12:00:00Z' AT TIME ZONE 'America/New_York' AS b)",
            "1 1 10",
        ),
        (
            "SELECT to_timestamp_micros([5, NULL])[1:1], to_date(['2020-01-01']), ragged_count(to_timestamp([[5], []]))",
            "[1970-01-01T00:00:00.000005Z] [2020-01-01] 1",
        ),
        (
            "SELECT x, row_number() OVER (ORDER BY x) AS l FROM (VALUES (1), (2)) t(x) QUALIFY x = 2",
            "2 2",
        ),
        (
            "SELECT g, rank() OVER (ORDER BY i DESC) FROM t QUALIFY g = 'a' OR i > 6 ORDER BY g",
            "a 2; b 1",
        ),
    ];
    expect_rows(&setup, &cases).await;
    let ctx = serrate::sql::session();
    query_batches(&ctx, "CREATE TABLE m AS SELECT 1 AS a").await.unwrap();
    query_batches(&ctx, "TRUNCATE m").await.unwrap();
    assert_eq!(rows_or_error(&ctx, "SELECT count(*) FROM m").await, "0");
    assert_eq!(rows_or_error(&ctx, "PREPARE p AS SELECT ? + 1 AS r, ?").await, "");
    assert_eq!(rows_or_error(&ctx, "EXECUTE p(41, 'x')").await, "42 x");
    for (sql, words) in [
        ("SELECT [5]::TIMESTAMP[]", "the unit of the numbers is not known"),
        ("SELECT ragged_cast([5], 'TIMESTAMP')", "to_timestamp_micros"),
        ("SELECT [DATE '2020-01-01', true]", "no common type: [Date32, Boolean]; cast them"),
        ("SELECT [DATE '2020-01-01'] || [5]", "cast one of them, as in CAST(a AS VARCHAR[])"),
        (
            "SELECT ragged_where([true], [{'a': 1}], [{'a': 2}])",
            "choose each field of structs apart",
        ),
        (
            "SELECT * FROM (SELECT 1 x) a ASOF JOIN (SELECT 1 y) b MATCH_CONDITION (a.x >= b.y)",
            "ASOF JOIN is not supported",
        ),
        ("COPY (SELECT 1) TO 'x.csv.gz' (FORMAT csv)", "compressed files (.gz) are not supported"),
        (
            "COPY (SELECT 1) TO 'x.csv' (FORMAT csv, COMPRESSION gzip)",
            "supported for Parquet files only",
        ),
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

/// Type coercion changes the types of a UNION after the planner has compared them with the table.
#[tokio::test]
async fn inserted_unions_have_the_types_of_the_table() {
    let setup = [
        "CREATE TABLE whole (a INT)",
        "INSERT INTO whole SELECT 3::INT AS a UNION ALL SELECT 2.5::DOUBLE AS a",
        "INSERT INTO whole SELECT * FROM (SELECT 5::INT AS a UNION BY NAME SELECT 7.5 AS a) q",
    ];
    let cases = [
        (
            "SELECT a, arrow_typeof(a) FROM whole WHERE a > 2 ORDER BY a",
            "3 Int32; 5 Int32; 7 Int32",
        ),
        ("SELECT count(*) FROM whole WHERE a = 2", "1"),
    ];
    expect_rows(&setup, &cases).await;
}

/// Each `?` of PREPARE is one parameter, and their order is that of the text.
#[tokio::test]
async fn parameters_without_numbers_have_the_order_of_the_text() {
    for (query, arguments, expected) in [
        ("FROM (SELECT ? AS a) SELECT a, ? AS b", "1, 2", "1 2"),
        (
            "SELECT DISTINCT ON (x % ?) x + ? FROM (VALUES (1), (2), (3)) v(x) ORDER BY x",
            "2, 10",
            "11; 12",
        ),
        ("SELECT x FROM (VALUES (1), (2), (3)) v(x) ORDER BY x OFFSET ? LIMIT ?", "1, 2", "2; 3"),
        ("SELECT isfinite(?), list_sum(?) AS s, ? AS z", "1.5, [1, 2], 7", "true 3 7"),
    ] {
        let ctx = serrate::sql::session();
        assert_eq!(rows_or_error(&ctx, &format!("PREPARE p AS {query}")).await, "", "{query}");
        let found = rows_or_error(&ctx, &format!("EXECUTE p({arguments})")).await;
        assert_eq!(found, expected, "{query}");
    }
    let ctx = serrate::sql::session();
    let quoted = "PREPARE p AS SELECT ? FROM ragged_axes('SELECT [?] AS x')";
    let e = rows_or_error(&ctx, quoted).await;
    assert!(e.contains("write $1, $2, .. instead"), "{e}");
}

#[tokio::test]
async fn operators_bind_as_in_duckdb() {
    let cases = [
        ("SELECT ~1 + 2, 1 << 3 & 2, 2 | 1 >> 2, 6 | 3 & 1, 1 | 2 << 1", "-4 0 0 1 6"),
        ("SELECT 5 & 3 = 1, 5 & 3 + 1, 1 + 2 & 3, (5 & 3) || 'a', ~1 & 3", "true 4 3 1a 2"),
        (
            "SELECT 'ab' LIKE 'a%' = true, true = 'ab' LIKE 'a%', true = 1 IN (1), true = 1 BETWEEN 0 AND 2",
            "true true true true",
        ),
        (
            "SELECT p IS DISTINCT FROM q IS TRUE, 1 IS DISTINCT FROM 2 IS NOT TRUE FROM (VALUES (NULL::BOOLEAN, NULL::BOOLEAN)) t(p, q)",
            "false false",
        ),
        (
            "SELECT a ISNULL, a NOTNULL, a + 1 ISNULL AS n FROM (VALUES (1), (NULL)) t(a)",
            "false true false; true false true",
        ),
        ("SELECT count(*) FROM (VALUES (1), (NULL)) t(a) WHERE a ISNULL OR a = 2", "1"),
        ("SELECT isnull FROM (SELECT 1 AS isnull)", "1"),
        (
            "SELECT 1 = 1 IS NULL, NOT 1 = 2, NOT 'a' LIKE 'b', NOT 1 IN (2) AND true",
            "false true true true",
        ),
        ("SELECT 'a' || 'b' LIKE 'a' || '%', 5 BETWEEN 1 | 2 AND 4 << 1", "true true"),
        ("SELECT x LIKE 'a%' = [true, false] FROM (SELECT ['ab', 'b'] AS x)", "true"),
    ];
    expect_rows(&[], &cases).await;
}

/// Statements that create the table `d` for tests of DuckDB syntax.
const D: [&str; 2] = [
    "CREATE TABLE d (i INT, j INT, s VARCHAR, l INT[])",
    "INSERT INTO d VALUES (1, 10, 'abcd', [1, 2, 3]), (2, 20, 'xyz', [4, 5]), (3, 10, NULL, NULL), (4, NULL, 'q', [])",
];

#[tokio::test]
async fn in_takes_a_list_without_parentheses() {
    let cases = [
        (
            "SELECT i, i IN l, i NOT IN l, NOT i IN l, (i NOT IN l) IS NULL FROM d ORDER BY i",
            "1 true false false false; 2 false true true false; 3 NULL NULL NULL true; 4 false true true false",
        ),
        (
            "SELECT i IN l || [4], i IN l AND true FROM d WHERE l IS NOT NULL ORDER BY i",
            "true true; false false; true false",
        ),
        (
            "SELECT 3 IN [1, NULL], NULL IN [1], 'a' IN ['b', 'a'], [1] IN [[1], [2]]",
            "false NULL true true",
        ),
        ("SELECT 2 IN l[1:2], true = 2 IN l FROM d WHERE i = 1", "true true"),
        ("SELECT i FROM d WHERE i IN l", "1"),
        ("SELECT count(*) FROM d WHERE i IN (1, 2) AND i IN [2, 3] AND i IN (SELECT 2)", "1"),
        ("SELECT position('b' IN 'ab')", "2"),
    ];
    expect_rows(&D, &cases).await;
}

#[tokio::test]
async fn lambdas_and_comprehensions_may_use_positions() {
    let view = "CREATE VIEW v AS SELECT i, [x FOR x IN l IF x > 1] AS m FROM d";
    let cases = [
        (
            "SELECT [x + 1 FOR x IN l IF x > 1], [x * x FOR x IN l] FROM d ORDER BY i",
            "[3, 4] [1, 4, 9]; [5, 6] [16, 25]; NULL NULL; [] []",
        ),
        ("SELECT [x * k FOR x, k IN l] FROM d ORDER BY i", "[1, 4, 9]; [4, 10]; NULL; []"),
        ("SELECT [[x + y FOR y IN [10, 20]] FOR x IN [1, 2]]", "[[11, 21], [12, 22]]"),
        ("SELECT [], [1], [1, 2], ARRAY[3]", "[] [1] [1, 2] [3]"),
        (
            "SELECT list_transform(l, lambda x, k: x * k), list_filter(l, lambda x, k: k > 1) FROM d ORDER BY i",
            "[1, 4, 9] [2, 3]; [4, 10] [5]; NULL NULL; [] []",
        ),
        (
            "SELECT list_transform([NULL, 2]::INT[], (x, k) -> k), list_filter([1, NULL, 3], lambda x, k: x >= k OR k = 2)",
            "[1, 2] [1, , 3]",
        ),
        (
            "SELECT list_transform(l, lambda s, k: s.a * k) FROM (SELECT [{'a': 5}, {'a': 6}] AS l)",
            "[5, 12]",
        ),
        ("SELECT list_transform(l, lambda x, k: x + k * j) FROM d WHERE i = 2", "[24, 45]"),
        ("SELECT m FROM v WHERE 3 IN m", "[2, 3]"),
    ];
    expect_rows(&[D[0], D[1], view], &cases).await;
    let ctx = serrate::sql::session();
    for (sql, words) in [
        ("SELECT [x FOR x, k IN [1] IF k > 1]", "list_filter"),
        ("SELECT list_transform((SELECT [1]), lambda x, k: k)", "compute the list in a subquery"),
        (
            "SELECT list_transform([1], lambda x, k: list_transform([1], lambda x: x))",
            "another name",
        ),
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

#[tokio::test]
async fn arg_max_and_max_return_the_n_greatest_values() {
    let cases = [
        (
            "SELECT arg_max(i, j, 2), arg_min(s, i, 2), max(i, 2), min(i, 9) FROM d",
            "[2, 1] [abcd, xyz] [4, 3] [1, 2, 3, 4]",
        ),
        ("SELECT j, max(i, 2) FROM d GROUP BY j ORDER BY j", "10 [3, 1]; 20 [2]; NULL [4]"),
        ("SELECT arg_max(s, i, 2), max(s, 2) FROM d WHERE i > 9", "NULL NULL"),
        ("SELECT max(i, 2) FILTER (WHERE i < 4), max_by(i, j, 1) FROM d", "[3, 2] [2]"),
        // A number in an argument or in ORDER BY of an aggregate is a constant, not a position in
        // SELECT.
        (
            "SELECT arg_max(i, 2), arg_min(i, 2.5), list(i ORDER BY 2 DESC, i DESC) FROM d",
            "1 1 [4, 3, 2, 1]",
        ),
        (
            "SELECT i, arg_max(i, j) OVER (PARTITION BY i % 2), arg_min(s, i) OVER () FROM d ORDER BY i",
            "1 1 abcd; 2 2 abcd; 3 1 abcd; 4 2 abcd",
        ),
        (
            "SELECT i, arg_max(i, j) OVER (PARTITION BY i) AS m FROM d WHERE i > 2 ORDER BY i",
            "3 3; 4 NULL",
        ),
    ];
    expect_rows(&D, &cases).await;
    let ctx = serrate::sql::session();
    for sql in D {
        query_batches(&ctx, sql).await.unwrap();
    }
    for (sql, words) in [
        ("SELECT arg_max(i, j, 0) FROM d", "a number above 0"),
        ("SELECT arg_max(i, j, i) FROM d", "a number above 0"),
        ("SELECT arg_min(i, j) OVER (ORDER BY i) FROM d", "without ORDER BY"),
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

#[tokio::test]
async fn distinct_on_allows_any_order_by() {
    let cases = [
        ("SELECT DISTINCT ON (j) i, j FROM d ORDER BY i", "1 10; 2 20; 4 NULL"),
        (
            "SELECT DISTINCT ON (j) * FROM d ORDER BY i DESC",
            "4 NULL q []; 3 10 NULL NULL; 2 20 xyz [4, 5]",
        ),
        ("SELECT DISTINCT ON (j) i, j FROM d ORDER BY j DESC NULLS LAST, i", "2 20; 1 10; 4 NULL"),
        ("SELECT DISTINCT ON (k) i % 2 AS k, i FROM d ORDER BY i DESC", "0 4; 1 3"),
        ("SELECT DISTINCT ON (2) i, j FROM d ORDER BY 1 DESC", "4 NULL; 3 10; 2 20"),
        ("SELECT DISTINCT ON (j) -i AS k, j FROM d ORDER BY k", "-4 NULL; -3 10; -2 20"),
        (
            "SELECT DISTINCT ON (j) j, count(*) AS c FROM d GROUP BY j, i ORDER BY c, j",
            "10 1; 20 1; NULL 1",
        ),
        ("SELECT DISTINCT ON (j) i FROM d ORDER BY i LIMIT 2", "1; 2"),
        // The alias `i` or `j` is also the name of a column of `d`.
        ("SELECT DISTINCT ON (i) i % 2 AS i, j FROM d ORDER BY j", "1 10; 0 20"),
        ("SELECT DISTINCT ON (abs(j)) -j AS j, i FROM d ORDER BY i", "-10 1; -20 2; NULL 4"),
        ("SELECT DISTINCT ON (abs(i - 2)) j AS i FROM d AS e ORDER BY i", "10; 20; NULL"),
        ("SELECT DISTINCT ON (abs(j)) abs(j) AS a, i FROM d ORDER BY i DESC", "NULL 4; 10 3; 20 2"),
        (
            "WITH q AS (SELECT DISTINCT ON (j) i, j FROM d ORDER BY i DESC) SELECT i FROM q ORDER BY i",
            "2; 3; 4",
        ),
        // ORDER BY ALL next to a star and expressions.
        (
            "SELECT * EXCLUDE (l) REPLACE (-i AS i) FROM d ORDER BY ALL",
            "-4 NULL q; -3 10 NULL; -2 20 xyz; -1 10 abcd",
        ),
        (
            "SELECT j, * EXCLUDE (j, l), i + 1 AS k FROM d ORDER BY ALL LIMIT 2",
            "10 1 abcd 2; 10 3 NULL 4",
        ),
    ];
    expect_rows(&D, &cases).await;
}

#[tokio::test]
async fn insert_by_name_writes_the_columns_of_the_query() {
    let inserts = [
        "INSERT INTO d BY NAME SELECT 'zz' AS s, 5 AS i",
        "INSERT INTO d BY NAME (SELECT [9] AS l, 6 AS \"I\")",
        "INSERT INTO d BY POSITION SELECT 7, 70, 's', [7]",
        "WITH q AS (SELECT 80 AS j, 8 AS i) INSERT INTO d BY NAME SELECT * FROM q",
        "insert into d by name FROM (SELECT 90 AS j, 9 AS i)",
        "INSERT INTO d BY NAME FROM (VALUES (100, 10), (0, 0)) v(j, i) WHERE i > 0",
        "INSERT INTO d BY POSITION FROM (VALUES (11, 110, 't', [1])) v(a, b, c, e) WHERE a > 0 AND b = 110",
        "INSERT INTO d FROM (VALUES (12, 120, 'u', [1])) v(a, b, c, e) WHERE b = 120",
    ];
    let setup: Vec<&str> = D.iter().chain(&inserts).copied().collect();
    let rows = "5 NULL zz NULL; 6 NULL NULL [9]; 7 70 s [7]; 8 80 NULL NULL; 9 90 NULL NULL; 10 100 NULL NULL; 11 110 t [1]; 12 120 u [1]";
    expect_rows(&setup, &[("SELECT * FROM d WHERE i > 4 ORDER BY i", rows)]).await;
    let ctx = serrate::sql::session();
    for sql in D {
        query_batches(&ctx, sql).await.unwrap();
    }
    assert_eq!(rows_or_error(&ctx, "PREPARE p AS INSERT INTO d BY NAME SELECT 5 AS i").await, "");
    assert_eq!(rows_or_error(&ctx, "EXECUTE p").await, "1");
    assert_eq!(rows_or_error(&ctx, "SELECT i, j FROM d WHERE i > 4").await, "5 NULL");
    for (sql, words) in [
        ("INSERT INTO d BY NAME SELECT 5 AS i, 7 AS nope", "the columns of d are i, j, s, l"),
        ("INSERT INTO d BY NAME VALUES (3)", "whose columns have no names"),
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

#[tokio::test]
async fn columns_expressions_and_struct_stars_are_expanded() {
    let view = "CREATE VIEW v AS SELECT COLUMNS('^[ij]$') FROM d";
    let cases = [
        ("SELECT COLUMNS('i|j') FROM d ORDER BY i", "1 10; 2 20; 3 10; 4 NULL"),
        ("SELECT count(COLUMNS(*)) FROM d", "4 3 3 3"),
        ("SELECT min(COLUMNS('i|j')), count(*) FROM d", "1 10 4"),
        ("SELECT m.j FROM (SELECT max(COLUMNS('i|j')) FROM d) m", "20"),
        ("SELECT min(COLUMNS(*)) + max(COLUMNS(*)) FROM (SELECT 1 AS a, 2 AS b)", "2 4"),
        ("SELECT COLUMNS('b') FROM (SELECT 1 AS abc, 2 AS \"B\", 3 AS x)", "1"),
        ("SELECT COLUMNS('i') + 1 AS k, s FROM d WHERE i = 1", "2 abcd"),
        (
            "WITH q AS (SELECT COLUMNS('i|j') FROM d) SELECT COLUMNS('j') FROM q ORDER BY j LIMIT 1",
            "10",
        ),
        ("SELECT * FROM v WHERE i = 4", "4 NULL"),
        ("SELECT st.*, 5 AS z FROM (SELECT {'a': 1, 'b': 'x'} AS st)", "1 x 5"),
        ("SELECT q.a FROM (SELECT st.* FROM (SELECT {'a': 7} AS st)) q", "7"),
        // A table has precedence over a column.
        ("SELECT st.* FROM (SELECT {'a': 1} AS st, 3 AS k) st", "{a: 1} 3"),
    ];
    expect_rows(&[D[0], D[1], view], &cases).await;
    let ctx = with_tables().await;
    for (sql, words) in [
        ("SELECT COLUMNS('^z') FROM t", "matches none of the columns id, x"),
        ("SELECT COLUMNS(*) AS k FROM t", "would give 2 columns the same name"),
        ("SELECT COLUMNS('(') FROM t", "not a regular expression"),
        ("SELECT nope.* FROM t", "nope"),
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

#[tokio::test]
async fn refusals_of_duckdb_syntax_name_a_counterpart() {
    let ctx = with_tables().await;
    for (sql, words) in [
        ("SELECT id FROM t ORDER BY id LIMIT 10%", "LIMIT with a percentage at line 1, column 30"),
        ("SELECT id FROM t LIMIT 10 PERCENT", "percent_rank()"),
        ("SELECT * FROM t a POSITIONAL JOIN u b", "row_number() OVER ()"),
        ("SELECT * FROM t a ASOF JOIN u b ON a.id >= b.k", "DISTINCT ON (a.id)"),
        ("SELECT * FROM t AT (VERSION => 1)", "no versions"),
        ("SELECT * FROM t TABLESAMPLE reservoir(2 ROWS)", "random() < 0.01"),
        (
            "SELECT sum(id) OVER (ORDER BY id ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM t",
            "EXCLUDE in a window frame at line 1, column 51",
        ),
        ("SELECT sum(id) OVER (ORDER BY id ROWS 1 PRECEDING EXCLUDE TIES) FROM t", "1 FOLLOWING"),
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

/// When this test fails, the rewrite that refers to it can be removed.
#[tokio::test]
async fn stock_orders_of_distinct_on_still_begin_with_the_keys() {
    let ctx = SessionContext::new();
    let sql = "SELECT DISTINCT ON (a) b FROM (VALUES (1, 2)) v(a, b) ORDER BY b";
    assert!(ctx.sql(sql).await.is_err());
}

#[tokio::test]
async fn stock_numbers_in_orders_of_arguments_are_still_positions() {
    let ctx = SessionContext::new();
    let sql = "SELECT array_agg(a ORDER BY 2) FROM (VALUES (1, 9), (2, 8)) v(a, b)";
    assert_eq!(rows_of(&ctx, sql).await, "[2, 1]");
}

#[tokio::test]
async fn stock_lambdas_still_have_no_positions() {
    let config = SessionConfig::new().set_str("datafusion.sql_parser.dialect", "duckdb");
    let ctx = SessionContext::new_with_config(config);
    assert!(ctx.sql("SELECT array_transform([1], lambda x: x)").await.is_ok());
    assert!(ctx.sql("SELECT array_transform([1], lambda x, i: i)").await.is_err());
}

async fn rows_of(ctx: &SessionContext, sql: &str) -> String {
    let batches = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    let column = batches[0].column(0);
    datafusion::arrow::util::display::array_value_to_string(column, 0).unwrap()
}

#[tokio::test]
async fn comments_may_be_nested_and_trim_may_omit_characters() {
    let cases = [
        ("SELECT /* a /* b */ c */ 1 -- d", "1"),
        ("SELECT '[' || trim(TRAILING FROM ' a ') || ']', trim(LEADING FROM '  b')", "[ a] b"),
        ("SELECT trim(BOTH FROM ' a '), trim(FROM ' b '), trim(BOTH 'x' FROM 'xcx')", "a b c"),
        ("SELECT to_char(DATE '2020-01-02', '%d.%m'), to_char(DATE '2020-01-02', '-')", "02.01 -"),
    ];
    expect_rows(&[], &cases).await;
}
