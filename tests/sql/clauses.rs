//! Every clause of a statement has an effect or is refused by name, including clauses that planners
//! ignore.

use std::collections::BTreeSet;

use datafusion::arrow::datatypes::Float64Type;
use datafusion::common::config::Dialect;
use datafusion::execution::FunctionRegistry;

use super::*;

async fn create_tables(ctx: &SessionContext) {
    let tables = [
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, [1, 2, 3], 'a'), (2, [4], 'b')) AS t(id, x, s)",
        "CREATE TABLE u (a INT, b INT)",
    ];
    run_all(ctx, &tables).await;
}

async fn show_rows(ctx: &SessionContext, statement: &str) -> String {
    let batches = run_query(ctx, statement).await;
    let table = pretty_format_batches(&batches).unwrap().to_string();
    let rows = table.lines().skip(3).filter(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches(['|', ' ']).to_owned()).collect::<Vec<_>>().join("\n")
}

/// Returns statements that are refused: dialect, statement, and a string that the error contains.
fn list_refused() -> Vec<(Dialect, &'static str, &'static str)> {
    use Dialect::{
        BigQuery, ClickHouse, DuckDB, Generic, Hive, MsSQL, MySQL, PostgreSQL, Snowflake,
    };
    vec![
        // Scalar functions.
        (DuckDB, "SELECT upper(s) FILTER (WHERE false) FROM t", "upper(..) FILTER"),
        (DuckDB, "SELECT ragged_sort(x) FILTER (WHERE x > 1) FROM t", "ragged_filter(x, mask)"),
        (DuckDB, "SELECT list_transform(x, lambda v: v) FILTER (WHERE id = 1) FROM t", "FILTER"),
        (DuckDB, "SELECT ragged_map(x, lambda v: v) FILTER (WHERE id = 1) FROM t", "FILTER"),
        (DuckDB, "SELECT list_sum(x) FILTER (WHERE x > 1) FROM t", "FILTER"),
        (DuckDB, "SELECT array_sum(x) OVER () FROM t", "array_sum"),
        (DuckDB, "SELECT unnest(x) FILTER (WHERE false) FROM t", "unnest(..) FILTER"),
        (DuckDB, "SELECT coalesce(id, 1) FILTER (WHERE false) FROM t", "coalesce(..) FILTER"),
        (DuckDB, "SELECT id FROM t WHERE upper(s) FILTER (WHERE false) = 'A'", "upper(..) FILTER"),
        (
            DuckDB,
            "SELECT ragged_sum(x) FILTER (WHERE id = 1) FROM t",
            "ragged_sum reduces the list",
        ),
        (DuckDB, "SELECT ragged_sum(x) FILTER (WHERE true) FROM t", "list of booleans"),
        (DuckDB, "SELECT ragged_sum(x) FILTER (WHERE x) FROM t", "list of booleans"),
        (DuckDB, "SELECT ragged_count(DISTINCT x) FROM t", "ragged_unique"),
        (DuckDB, "SELECT array_length(DISTINCT x) FROM t", "array_distinct"),
        (DuckDB, "SELECT upper(DISTINCT s) FROM t", "upper(DISTINCT ..)"),
        (DuckDB, "SELECT unnest(DISTINCT x) FROM t", "unnest(DISTINCT ..)"),
        (DuckDB, "SELECT ragged_first(x ORDER BY 1 DESC) FROM t", "ragged_sort"),
        (DuckDB, "SELECT upper(s ORDER BY id) FROM t", "ORDER BY"),
        (DuckDB, "SELECT ragged_sum(x) OVER (ORDER BY id) FROM t", "ragged_sum(..) OVER"),
        (DuckDB, "SELECT id FROM t WHERE row_number() OVER (ORDER BY id) = 1", "QUALIFY"),
        (DuckDB, "SELECT s FROM t GROUP BY s HAVING rank() OVER (ORDER BY s) = 1", "HAVING"),
        (DuckDB, "SELECT count(*) FROM t GROUP BY sum(id) OVER ()", "GROUP BY"),
        (DuckDB, "SELECT 1 FROM t JOIN u ON id = 1 + rank() OVER (ORDER BY a)", "join"),
        (DuckDB, "SELECT upper(s) OVER () FROM t", "upper(..) OVER"),
        (DuckDB, "SELECT ragged_sum(x) IGNORE NULLS FROM t", "IGNORE NULLS"),
        // Names of DuckDB that have no function of their own.
        (DuckDB, "SELECT list_sum(x) FILTER (WHERE x > 1) FROM t", "list_sum(..) FILTER"),
        (DuckDB, "SELECT array_sum(x) OVER (PARTITION BY id) FROM t", "array_sum(..) OVER"),
        (DuckDB, "SELECT len(x) OVER () FROM t", "len(..) OVER"),
        (DuckDB, "SELECT len(DISTINCT x) FROM t", "len(DISTINCT ..)"),
        (DuckDB, "SELECT len(s ORDER BY id) FROM t", "len(.. ORDER BY ..)"),
        (DuckDB, "SELECT len(s) FILTER (WHERE id = 1) FROM t", "len(..) FILTER"),
        (DuckDB, "SELECT upper(s) RESPECT NULLS FROM t", "RESPECT NULLS"),
        (Generic, "SELECT upper(s IGNORE NULLS) FROM t", "IGNORE NULLS"),
        (DuckDB, "SELECT upper(s) WITHIN GROUP (ORDER BY id) FROM t", "WITHIN GROUP"),
        (
            DuckDB,
            "SELECT ragged_quantile(x, 0.5) WITHIN GROUP (ORDER BY id) FROM t",
            "WITHIN GROUP",
        ),
        (DuckDB, "SELECT trim(s, 'a', 'b') FROM t", "TRIM"),
        (ClickHouse, "SELECT upper(1)(s) FROM t", "upper(..)(..)"),
        (Snowflake, "SELECT abs(SELECT 1)", "abs(SELECT ..)"),
        // Aggregates and window functions.
        (DuckDB, "SELECT count(*), corr(DISTINCT id, id) FROM t", "corr(DISTINCT ..)"),
        (DuckDB, "SELECT count(*), regr_slope(DISTINCT id, id) FROM t", "regr_slope(DISTINCT ..)"),
        (DuckDB, "SELECT count(DISTINCT id, s) FROM t", "count(DISTINCT a, b)"),
        (DuckDB, "SELECT count(DISTINCT t.*) FROM t", "count(DISTINCT t.*)"),
        (DuckDB, "SELECT count(DISTINCT q.*) OVER () FROM t AS q", "SELECT DISTINCT q.* FROM"),
        (DuckDB, "SELECT count(u.*) FROM t LEFT JOIN u ON id = a", "count(u.a), with a column a"),
        (DuckDB, "SELECT id FROM t, u GROUP BY id HAVING count(u.*) > 1", "count(u.*) in a SELECT"),
        (DuckDB, "SELECT 1 FROM t WHERE id = (SELECT count(u.*) FROM t, u)", "count(u.*)"),
        (DuckDB, "SELECT id FROM t, u GROUP BY id ORDER BY count(u.*)", "count(u.*) in a SELECT"),
        (
            DuckDB,
            "SELECT (SELECT id FROM t, u GROUP BY id ORDER BY count(u.*) LIMIT 1) FROM t",
            "count(u.*) in a SELECT",
        ),
        (DuckDB, "SELECT corr(DISTINCT id, id) OVER () FROM t", "corr(DISTINCT ..)"),
        (DuckDB, "SELECT lag(DISTINCT id) OVER (ORDER BY id) FROM t", "lag(DISTINCT ..)"),
        (DuckDB, "SELECT rank() IGNORE NULLS OVER (ORDER BY id) FROM t", "rank(..) IGNORE NULLS"),
        (DuckDB, "SELECT sum(id) RESPECT NULLS OVER () FROM t", "RESPECT NULLS"),
        (DuckDB, "SELECT sum(id) RESPECT NULLS FROM t", "NULLS"),
        (DuckDB, "SELECT rank() FILTER (WHERE id > 1) OVER (ORDER BY id) FROM t", "FILTER"),
        (DuckDB, "SELECT sum(id) OVER w FROM t", "w"),
        (DuckDB, "SELECT sum(id) OVER (w ORDER BY id) FROM t", "WINDOW w"),
        (DuckDB, "SELECT sum(id) OVER (w ORDER BY id) FROM t WINDOW w AS (ORDER BY s)", "ORDER BY"),
        (DuckDB, "SELECT max(id ORDER BY id LIMIT 1) FROM t", "LIMIT"),
        (
            DuckDB,
            "SELECT sum(id) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING EXCLUDE TIES) FROM t",
            "EXCLUDE",
        ),
        // Tables.
        (DuckDB, "SELECT count(*) FROM t TABLESAMPLE 1 PERCENT", "TABLESAMPLE"),
        (DuckDB, "SELECT count(*) FROM t TABLESAMPLE BERNOULLI (1)", "TABLESAMPLE BERNOULLI"),
        (DuckDB, "SELECT count(*) FROM t AS q TABLESAMPLE (10 ROWS)", "TABLESAMPLE"),
        (DuckDB, "SELECT count(*) FROM (SELECT * FROM t) TABLESAMPLE (1 ROWS)", "TABLESAMPLE"),
        (DuckDB, "SELECT count(*) FROM unnest([1]) TABLESAMPLE (1 ROWS)", "TABLESAMPLE"),
        (DuckDB, "SELECT * FROM ragged_axes('t') TABLESAMPLE (1 ROWS)", "TABLESAMPLE"),
        (DuckDB, "SELECT * FROM ragged_axes('FROM t TABLESAMPLE (1 ROWS)')", "TABLESAMPLE"),
        (
            DuckDB,
            "SELECT * FROM t WHERE id IN (SELECT id FROM t TABLESAMPLE (1 ROWS))",
            "TABLESAMPLE",
        ),
        (DuckDB, "SELECT count(*) FROM t USING SAMPLE 1%", "USING SAMPLE"),
        (Snowflake, "SELECT count(*) FROM t SAMPLE (1)", "SAMPLE"),
        (MsSQL, "SELECT id FROM t WITH (NOLOCK)", "hint"),
        (MySQL, "SELECT id FROM t USE INDEX (i)", "hint"),
        (MySQL, "SELECT id FROM t PARTITION (p0)", "PARTITION"),
        (BigQuery, "SELECT id FROM t FOR SYSTEM_TIME AS OF '2020-01-01'", "SYSTEM_TIME"),
        (DuckDB, "SELECT id FROM t WITH ORDINALITY", "WITH ORDINALITY"),
        (PostgreSQL, "SELECT * FROM unnest([1]) WITH ORDINALITY", "ORDINALITY"),
        (DuckDB, "SELECT * FROM t AS q(a INT, b TEXT, c TEXT)", "type INT of a"),
        (PostgreSQL, "WITH q AS MATERIALIZED (SELECT 1 AS a) SELECT * FROM q", "MATERIALIZED"),
        (ClickHouse, "SELECT id FROM t GLOBAL JOIN u ON t.id = u.a", "GLOBAL JOIN"),
        (DuckDB, "SELECT id FROM t POSITIONAL JOIN u", "POSITIONAL JOIN"),
        (DuckDB, "SELECT id FROM t JOIN u", "CROSS JOIN for all pairs"),
        (DuckDB, "SELECT id FROM t AS q LEFT JOIN u", "the JOIN has no condition"),
        (DuckDB, "SELECT 1 FROM t, (t AS a JOIN u)", "the JOIN has no condition"),
        (DuckDB, "SELECT * FROM t PIVOT (sum(id) FOR s IN ('a'))", "Pivot"),
        // Queries.
        (DuckDB, "SELECT id FROM t FOR UPDATE", "FOR UPDATE"),
        (DuckDB, "SELECT id FROM (SELECT id FROM t FOR SHARE)", "FOR SHARE"),
        (MsSQL, "SELECT id FROM t FOR JSON AUTO", "FOR JSON"),
        (ClickHouse, "SELECT id FROM t SETTINGS max_threads = 1", "SETTINGS"),
        (ClickHouse, "SELECT id FROM t FORMAT JSON", "FORMAT"),
        (ClickHouse, "SELECT id FROM t PREWHERE id = 1", "PREWHERE"),
        (ClickHouse, "SELECT id, count(*) FROM t GROUP BY id WITH TOTALS", "WITH TOTALS"),
        (ClickHouse, "SELECT id, count(*) FROM t GROUP BY id WITH ROLLUP", "WITH ROLLUP"),
        (ClickHouse, "SELECT id FROM t ORDER BY id WITH FILL", "WITH FILL"),
        (ClickHouse, "SELECT id FROM t ORDER BY id INTERPOLATE (s AS s)", "INTERPOLATE"),
        (ClickHouse, "SELECT id FROM t LIMIT 1 BY id", "LIMIT 1 BY id"),
        (Generic, "SELECT id FROM t START WITH id = 1 CONNECT BY PRIOR id = id", "CONNECT BY"),
        (
            Hive,
            "SELECT id FROM t CLUSTER BY id",
            "CLUSTER BY id is not supported: write ORDER BY id",
        ),
        (Hive, "SELECT id FROM t SORT BY id", "SORT BY id is not supported: write ORDER BY id"),
        (DuckDB, "SELECT id FROM t SORT BY id DESC, s", "write ORDER BY id DESC, s at the end"),
        (
            Hive,
            "SELECT id FROM t LATERAL VIEW explode(x) q AS e",
            "LATERAL VIEW is not supported: write unnest(x)",
        ),
        (BigQuery, "SELECT AS STRUCT id FROM t", "AS STRUCT"),
        (MsSQL, "SELECT TOP 1 id FROM t", "TOP 1 after SELECT is not supported: write LIMIT 1"),
        (DuckDB, "SELECT TOP 2 id FROM t ORDER BY id", "TOP 2 after SELECT"),
        (
            MsSQL,
            "SELECT TOP 10 PERCENT id FROM t",
            "TOP 10 PERCENT after SELECT is not supported: write QUALIFY",
        ),
        (
            DuckDB,
            "SELECT id FROM t ORDER BY id FETCH FIRST 1 ROW WITH TIES",
            "WITH TIES is not supported; write QUALIFY rank()",
        ),
        (
            PostgreSQL,
            "SELECT id FROM t FETCH FIRST 10 PERCENT ROWS ONLY",
            "PERCENT ROWS ONLY is not supported; write QUALIFY percent_rank()",
        ),
        (
            DuckDB,
            "SELECT id FROM t LIMIT 2 FETCH FIRST 1 ROW ONLY",
            "has LIMIT and FETCH FIRST 1 ROWS ONLY; write only one of them",
        ),
        (DuckDB, "SELECT id FROM t UNION ALL SELECT id FROM t ORDER BY ALL DESC", "ORDER BY ALL"),
        (DuckDB, "SELECT 1 AS a UNION ALL SELECT 2 AS a INTO z", "INTO"),
        (MySQL, "SELECT STRAIGHT_JOIN id FROM t", "STRAIGHT_JOIN"),
        (DuckDB, "SELECT id FROM t LIMIT (SELECT 1)", "QUALIFY row_number() OVER (ORDER BY x)"),
        // Stars.
        (DuckDB, "SELECT * EXCLUDE (id, ID) FROM t", "EXCLUDE names the column ID twice"),
        (
            DuckDB,
            "SELECT * EXCLUDE (id) REPLACE (1 AS id) FROM t",
            "id is in EXCLUDE and in REPLACE",
        ),
        (DuckDB, "SELECT * REPLACE (1 AS id, 2 AS id) FROM t", "two expressions for the column id"),
        (DuckDB, "SELECT t.* EXCLUDE (u.a) FROM t, u", "names another table than the star t.*"),
        (DuckDB, "SELECT * EXCLUDE (a, b) FROM u", "EXCLUDE names all columns of the star"),
        (DuckDB, "SELECT count(* EXCLUDE (id)) FROM t", "as an argument of count"),
        (DuckDB, "SELECT * RENAME (id AS k) FROM t", "RENAME after a star at line 1, column 10"),
        (DuckDB, "SELECT * EXCLUDE (x) RENAME (id AS k) FROM t", "EXCLUDE (a), a AS b"),
        (DuckDB, "SELECT * LIKE 'i%' FROM t", "write COLUMNS with a regular expression"),
        (Snowflake, "SELECT * ILIKE 'i%' FROM t", "write COLUMNS with a regular expression"),
        (Snowflake, "SELECT t.* ILIKE 'i%' FROM t", "ILIKE 'i%' after a star"),
        (DuckDB, "SELECT * DROP (id) FROM t", "write EXCLUDE, as in"),
        (DuckDB, "SELECT id EXCLUDE (x) FROM t", "EXCLUDE that does not follow a star"),
        (DuckDB, "SELECT * REPLACE (1 AS id) EXCLUDE (x) FROM t", "and before REPLACE"),
        (DuckDB, "SELECT * EXCLUDE (id + 1) FROM t", "anything but names of columns"),
        (
            DuckDB,
            "SELECT * REPLACE (id + 1) FROM t",
            "with the name of the column that it replaces",
        ),
        (DuckDB, "SELECT * REPLACE id + 1 AS id FROM t", "without parentheses"),
        // Statements.
        (DuckDB, "ALTER TABLE t ADD COLUMN y INT", "write CREATE OR REPLACE TABLE t AS SELECT"),
        (DuckDB, "CREATE INDEX i ON t (id)", "CREATE INDEX is not supported"),
        (DuckDB, "BEGIN", "a transaction is not supported: remove the statement"),
        (DuckDB, "COMMIT", "a transaction is not supported: remove the statement"),
        (DuckDB, "USE s", "USE is not supported"),
        (
            DuckDB,
            "SET TIME ZONE 'Europe/Berlin'",
            "write SET datafusion.execution.time_zone = 'Europe/Berlin'",
        ),
        (DuckDB, "INSERT INTO u VALUES (1, DEFAULT)", "leave the column out of the list"),
        (DuckDB, "INSERT INTO u SELECT 1", "another number of columns than the table"),
        (
            DuckDB,
            "MERGE INTO t USING u ON t.id = u.a WHEN MATCHED THEN UPDATE SET s = 'a'",
            "MERGE is not supported: write UPDATE t",
        ),
        (
            DuckDB,
            "UPDATE t SET (id, s) = (1, 'a')",
            "SET (id, s) = .. is not supported: write an assignment for each column",
        ),
        (DuckDB, "DROP TABLE t CASCADE", "CASCADE"),
        (DuckDB, "DROP TABLE t RESTRICT", "RESTRICT"),
        (DuckDB, "DROP TABLE t PURGE", "PURGE"),
        (MySQL, "DROP TEMPORARY TABLE t", "TEMPORARY"),
        (DuckDB, "CREATE TABLE z (a INT PRIMARY KEY)", "PRIMARY KEY"),
        (DuckDB, "CREATE TABLE z (a INT, PRIMARY KEY (a))", "PRIMARY KEY"),
        (DuckDB, "CREATE TABLE z (a INT UNIQUE)", "UNIQUE"),
        (DuckDB, "CREATE TABLE z (a TEXT COLLATE \"C\")", "COLLATE"),
        (DuckDB, "CREATE TABLE z (a INT GENERATED ALWAYS AS (1))", "GENERATED"),
        (DuckDB, "CREATE TABLE z (a INT COMMENT 'x')", "COMMENT"),
        (DuckDB, "CREATE TABLE z (a INT AUTO_INCREMENT)", "AUTO_INCREMENT of the column a"),
        (DuckDB, "CREATE TABLE z (a INT, b INT AUTOINCREMENT)", "AUTOINCREMENT of the column b"),
        (DuckDB, "CREATE TABLE z (a INT NOT NULL IDENTITY)", "IDENTITY of the column a"),
        (DuckDB, "CREATE TABLE z (a INT ASC, b INT)", "ASC of the column a"),
        (DuckDB, "CREATE TABLE z (a TIMESTAMP ON UPDATE)", "ON UPDATE of the column a"),
        (
            DuckDB,
            "CREATE EXTERNAL TABLE z (a INT AUTO_INCREMENT) STORED AS CSV LOCATION 'z.csv'",
            "AUTO_INCREMENT of the column a",
        ),
        (DuckDB, "CREATE TABLE z (a INT DEFAULT 1 DEFAULT 2)", "the column a has two defaults"),
        (DuckDB, "SELECT {'a': 1, 'b': 2, 'a': 3}", "a struct has two fields named a"),
        (DuckDB, "SELECT {'a': id}::STRUCT(a INT, A INT) FROM t", "two fields named a"),
        (DuckDB, "CREATE TABLE z (s STRUCT(a INT, b STRUCT(c INT, c INT)[]))", "named c"),
        (DuckDB, "CREATE TABLE z (s STRUCT(a DECIMAL(5, -2)))", "has a negative scale"),
        (DuckDB, "CREATE TABLE z (a INT CHECK (a > 1))", "Check"),
        (DuckDB, "CREATE TABLE z (a INT REFERENCES t(id))", "Foreign key"),
        (DuckDB, "CREATE GLOBAL TEMP TABLE z AS SELECT 1 AS a", "Global"),
        (
            DuckDB,
            "CREATE MACRO f(x) AS x + 1",
            "CREATE MACRO f is not supported: write its expression, x + 1, instead of f(..)",
        ),
        (
            DuckDB,
            "CREATE MACRO f(x) AS TABLE SELECT x",
            "write CREATE VIEW f AS SELECT .., which has no parameters, or PREPARE f AS SELECT",
        ),
        (DuckDB, "ATTACH 'x.db' AS x", "ATTACH is not supported: files are read as tables"),
        (DuckDB, "PRAGMA threads = 4", "PRAGMA threads is not supported: write SET name = value"),
        (MsSQL, "CREATE OR ALTER VIEW z AS SELECT 1 AS a", "OR ALTER"),
        (MySQL, "CREATE SQL SECURITY INVOKER VIEW z AS SELECT 1 AS a", "SQL SECURITY"),
        (DuckDB, "CREATE SCHEMA z WITH (a = 1)", "WITH (a = 1)"),
        (DuckDB, "CREATE SCHEMA z AUTHORIZATION me", "AUTHORIZATION me"),
        (DuckDB, "CREATE DATABASE z LOCATION 'x'", "LOCATION 'x'"),
        (
            DuckDB,
            "CREATE EXTERNAL TABLE z (a INT PRIMARY KEY) STORED AS CSV LOCATION 'z.csv'",
            "PRIMARY KEY",
        ),
        (
            DuckDB,
            "CREATE EXTERNAL TABLE z (a TEXT COLLATE \"C\") STORED AS CSV LOCATION 'z.csv'",
            "COLLATE",
        ),
        (
            DuckDB,
            "CREATE UNBOUNDED EXTERNAL TABLE z (a INT) STORED AS CSV LOCATION 'z.csv'",
            "UNBOUNDED",
        ),
        (
            DuckDB,
            "CREATE EXTERNAL TABLE z (a INT) STORED AS CSV LOCATION 'z.csv' OPTIONS (nonsense 1)",
            "nonsense",
        ),
        (
            DuckDB,
            "CREATE EXTERNAL TABLE z (a INT) STORED AS ARROW LOCATION 'z.arrow' OPTIONS (nonsense 1)",
            "nonsense",
        ),
        (DuckDB, "COPY (SELECT 1 AS a) TO '/no/such/z.arrow' OPTIONS (nonsense 1)", "nonsense"),
        (DuckDB, "COPY (SELECT 1 AS a) TO '/no/such/z.csv' OPTIONS (nonsense 1)", "nonsense"),
        (DuckDB, "COPY (SELECT 1 AS a) TO '/no/such/z.nrt' OPTIONS (nonsense 1)", "nonsense"),
        (DuckDB, "COPY (SELECT id FROM t FOR UPDATE) TO '/no/such/z.nrt'", "FOR UPDATE"),
        (DuckDB, "EXPLAIN SELECT id FROM t FOR UPDATE", "FOR UPDATE"),
        (DuckDB, "CREATE VIEW z AS SELECT id FROM t FOR UPDATE", "FOR UPDATE"),
        (DuckDB, "CREATE TABLE z AS SELECT upper(DISTINCT s) AS u FROM t", "upper(DISTINCT ..)"),
        (DuckDB, "INSERT OVERWRITE t SELECT 1, [1], 'a'", "Overwrite"),
        (
            DuckDB,
            "INSERT INTO u VALUES (1, 2) ON CONFLICT DO NOTHING",
            "NOT EXISTS (SELECT 1 FROM t",
        ),
        (
            DuckDB,
            "INSERT INTO u VALUES (1, 2) RETURNING a",
            "RETURNING of INSERT is not supported: write SELECT",
        ),
        (DuckDB, "INSERT OR REPLACE INTO u VALUES (1, 2)", "Replace"),
        (DuckDB, "INSERT INTO u SELECT 1, 2 FROM t FOR UPDATE", "FOR UPDATE"),
        (DuckDB, "UPDATE u SET a = 1 FROM t", "write a subquery for the value"),
        (DuckDB, "UPDATE u SET a = DEFAULT", "write the default value of the column itself"),
        (
            DuckDB,
            "UPDATE u SET a = 1 RETURNING a",
            "RETURNING of UPDATE is not supported: write SELECT",
        ),
        (
            DuckDB,
            "DELETE FROM u WHERE a = 1 RETURNING *",
            "SELECT .. FROM t with the same condition before",
        ),
        (
            DuckDB,
            "DELETE FROM u USING t WHERE u.a = t.id",
            "USING of DELETE is not supported: write a subquery",
        ),
        (DuckDB, "DELETE FROM u ORDER BY a LIMIT 1", "ORDER BY and LIMIT of DELETE"),
        (DuckDB, "DELETE FROM u LIMIT 1", "LIMIT"),
        (DuckDB, "DROP FUNCTION upper", "DROP FUNCTION is not supported"),
        (DuckDB, "DESCRIBE EXTENDED t", "write DESCRIBE t for the columns"),
        (DuckDB, "DESC FORMATTED t", "DESCRIBE FORMATTED is not supported"),
        (DuckDB, "DESCRIBE ANALYZE SELECT 1", "DESCRIBE ANALYZE is not supported"),
        (DuckDB, "DESC VERBOSE SELECT 1", "DESCRIBE VERBOSE is not supported"),
        (DuckDB, "SHOW TABLES LIKE 'x%'", "FILTER"),
        (DuckDB, "SHOW COLUMNS FROM t LIKE 'i%'", "LIKE"),
        (PostgreSQL, "TRUNCATE TABLE u CASCADE", "CASCADE"),
    ]
}

#[tokio::test]
async fn clauses_that_would_be_ignored_are_refused_by_name() {
    let mut silent = Vec::new();
    for (dialect, statement, named) in list_refused() {
        let ctx = serrate::sql::session();
        create_tables(&ctx).await;
        ctx.state_ref().write().config_mut().options_mut().sql_parser.dialect = dialect;
        match query_batches(&ctx, statement).await {
            Ok(_) => silent.push(format!("{statement}: no error")),
            Err(e) => {
                let message = e.strip_backtrace();
                if !message.to_lowercase().contains(&named.to_lowercase()) {
                    silent.push(format!("{statement}: {named:?} is not in: {message}"));
                }
                if message.contains("Internal error") {
                    silent.push(format!("{statement}: {message}"));
                }
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// `* EXCEPT (a)` is `* EXCLUDE (a)`, and EXCEPT before a query stays the set operation.
#[tokio::test]
async fn stars_may_leave_out_columns_with_except() {
    expect_rows(
        &[
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 2, 3), (4, 5, 6)) v(a, b, date)",
            "CREATE TABLE u AS SELECT 1 AS a",
        ],
        &[
            ("SELECT * EXCEPT (a) FROM t WHERE a = 1", "2 3"),
            ("SELECT * EXCEPT a FROM t WHERE a = 1", "2 3"),
            ("SELECT t.* EXCEPT (a, date), u.a FROM t JOIN u USING (a)", "2 1"),
            ("SELECT DISTINCT * EXCEPT (t.b) FROM t ORDER BY a", "1 3; 4 6"),
            ("FROM t SELECT * EXCEPT (b) WHERE a > 1", "4 6"),
            ("SELECT t.* EXCLUDE (t.a, b) FROM t ORDER BY 1", "3; 6"),
            ("SELECT q.* EXCLUDE (Q.a) FROM t q WHERE q.a = 4", "5 6"),
            ("SELECT a FROM t EXCEPT (SELECT a FROM u)", "4"),
            ("FROM u EXCEPT (FROM u)", ""),
            ("FROM u SELECT * EXCEPT SELECT 1", ""),
            ("SELECT a FROM t WHERE a IN (SELECT * EXCEPT (b, date) FROM t WHERE b > 2)", "4"),
        ],
    )
    .await;
}

#[tokio::test]
async fn stock_counts_of_a_table_still_count_all_rows() {
    let sql =
        "SELECT count(u.*) FROM (VALUES (1), (2)) AS t(a) LEFT JOIN (VALUES (1)) AS u(b) ON a = b";
    assert_eq!(stock_one(&SessionContext::new(), sql).await, 2);
}

#[tokio::test]
async fn clauses_that_have_an_effect_are_planned() {
    let ctx = serrate::sql::session();
    create_tables(&ctx).await;
    for statement in [
        "SELECT count(*) FILTER (WHERE id > 1), sum(DISTINCT id), array_agg(id ORDER BY id) FROM t",
        "SELECT first_value(id) IGNORE NULLS OVER (ORDER BY id) FROM t",
        "SELECT string_agg(DISTINCT s, ',') FROM t",
        "CREATE TABLE z (a INT PRIMARY KEY NOT ENFORCED, b INT NOT NULL DEFAULT 3)",
        "SELECT count(t.*), (SELECT count(q.*) FROM u AS q) FROM t GROUP BY s",
        "SELECT s FROM t GROUP BY s ORDER BY count(t.*)",
        "SELECT t.id FROM t, (SELECT s FROM t GROUP BY s ORDER BY count(t.*) LIMIT 1) AS q",
        "DESCRIBE SELECT id FROM t",
        "CREATE SCHEMA IF NOT EXISTS w",
        "CREATE OR REPLACE TEMP TABLE v AS SELECT 1 AS a",
        "CREATE LOCAL TEMPORARY TABLE l (a INT)",
        "CREATE TEMP VIEW w AS SELECT a + 1 AS a FROM v",
        "SELECT v.a, w.a, l.a FROM v, w, l",
        "WITH q(a, b, c) AS (FROM t) SELECT a FROM q AS r(k, l, m) NATURAL JOIN q",
        "DROP TABLE u",
    ] {
        run_query(&ctx, statement).await;
    }
}

#[tokio::test]
async fn filter_after_a_reduction_selects_values_by_a_mask() {
    let ctx = serrate::sql::session();
    let values = "(VALUES (1, [1.0, 2, NULL, 4], [true, false, true, NULL]), \
                  (2, [], []), (3, NULL, NULL), (4, [5, 6, 7], [false, true, true])) AS t(id, x, m)";
    let mut tried = 0;
    let rest = |name: &str| match name {
        "ragged_quantile" => ", 0.5",
        _ => "",
    };
    for function in serrate::functions::all_scalar() {
        let name = function.name();
        let documented = function.documentation().unwrap();
        let reduces = documented.doc_section.label == "Reductions" || name == "ragged_count";
        if !reduces {
            continue;
        }
        tried += 1;
        let list = if ["ragged_any", "ragged_all"].contains(&name) { "x > 1" } else { "x" };
        let more = rest(name);
        for mask in ["m", "x > 1", "x > 1 AND m", "ragged_is_null(x)"] {
            let short = format!(
                "SELECT id, {name}({list}{more}) FILTER (WHERE {mask}) AS v FROM {values} ORDER BY id"
            );
            let long = format!(
                "SELECT id, {name}(ragged_filter({list}, {mask}){more}) AS v FROM {values} ORDER BY id"
            );
            assert_eq!(show_rows(&ctx, &short).await, show_rows(&ctx, &long).await, "{short}");
        }
    }
    assert!(tried > 12, "{tried} reductions");
    // The short form means the long form: with an axis, nested lists, lambdas, WHERE, and a mask of
    // fewer levels than the values.
    for (short, long) in [
        (
            "SELECT ragged_sum([[1, 2], [3]], -1) FILTER (WHERE [[true, false], [true]])",
            "SELECT ragged_sum(ragged_filter([[1, 2], [3]], [[true, false], [true]]), -1)",
        ),
        (
            "SELECT ragged_sum([[1, 2], [3]]) FILTER (WHERE [true, false])",
            "SELECT ragged_sum(ragged_filter([[1, 2], [3]], [true, false]))",
        ),
        (
            "SELECT 1 WHERE ragged_max([1, 5]) FILTER (WHERE [1, 5] < 3) = 1",
            "SELECT 1 WHERE ragged_max(ragged_filter([1, 5], [1, 5] < 3)) = 1",
        ),
        (
            "SELECT ragged_regr_slope([1.0, 9, 2], [1, 2, 3]) FILTER (WHERE [true, false, true])",
            "SELECT ragged_regr_slope([1.0, 2], [1, 3])",
        ),
        (
            "SELECT ragged_corr([[1.0, 5], [9], [2]], [1, 2, 3]) FILTER (WHERE [[true, false], [true], [true]])",
            "SELECT ragged_corr([[1.0], [9], [2]], [1, 2, 3])",
        ),
        (
            "SELECT ragged_window([1, 9, 2], [1, 2, 3], [2, 3], 'sum') FILTER (WHERE [1, 9, 2] < 5)",
            "SELECT ragged_window([1, 2], [1, 3], [2, 3], 'sum')",
        ),
        (
            "SELECT sum(ragged_sum(x) FILTER (WHERE x > 1)) FROM (VALUES ([1, 2]), ([3])) AS t(x)",
            "SELECT sum(ragged_sum(ragged_filter(x, x > 1))) FROM (VALUES ([1, 2]), ([3])) AS t(x)",
        ),
    ] {
        assert_eq!(show_rows(&ctx, short).await, show_rows(&ctx, long).await, "{short}");
    }
}

/// Each aggregate with DISTINCT equals the aggregate over distinct rows, or is refused. A second
/// aggregate in the statement keeps DataFusion from replacing DISTINCT by a GROUP BY.
#[tokio::test]
async fn distinct_aggregates_aggregate_distinct_rows_or_are_refused() {
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(1));
    let rows = "(VALUES (1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (2.0, 4.0), (4.0, 3.0)) AS t(a, b)";
    let mut refused = BTreeSet::new();
    let names: BTreeSet<String> = ctx.state().udafs().into_iter().collect();
    for name in names {
        let args = match name.as_str() {
            "approx_percentile_cont" | "percentile_cont" | "quantile_cont" => "a, 0.5",
            "approx_percentile_cont_with_weight" => "a, b, 0.5",
            "nth_value" => "a, 2",
            "string_agg" => "a::text, ','",
            "bool_and" | "bool_or" => "a > 1",
            n if n.starts_with("bit_") => "a::bigint",
            n if n.starts_with("regr_") || n.starts_with("covar") || n == "corr" => "a, b",
            n if n.starts_with("ragged_") && n != "ragged_nest_agg" => "[a, b]",
            _ => "a",
        };
        // These aggregates may return any of the unordered rows.
        if ["grouping", "first_value", "last_value", "any_value"].contains(&name.as_str()) {
            continue;
        }
        let said = format!("SELECT {name}(DISTINCT {args}) AS v, count(*) AS n FROM {rows}");
        let meant = format!("SELECT {name}({args}) AS v FROM (SELECT DISTINCT a, b FROM {rows})");
        let Ok(answer) = query_batches(&ctx, &said).await else {
            refused.insert(name);
            continue;
        };
        let meant = run_query(&ctx, &meant).await;
        let (answer, meant) = (answer[0].column(0), meant[0].column(0));
        let order = |array: &ArrayRef| match array.as_list_opt::<i32>() {
            Some(list) => datafusion::arrow::compute::sort(&list.value(0), None).unwrap(),
            // Sums in another order differ in the last digits.
            None => match array.as_primitive_opt::<Float64Type>() {
                Some(values) => {
                    Arc::new(values.unary::<_, Float64Type>(|v| (v * 1e12).round())) as ArrayRef
                }
                None => Arc::clone(array),
            },
        };
        let texts = |array: &ArrayRef| {
            let text = pretty_format_columns(array);
            let mut letters: Vec<char> = text.chars().collect();
            letters.sort_unstable();
            letters
        };
        match name.as_str() {
            // The order of the strings is arbitrary, so their characters are compared, sorted.
            "string_agg" => assert_eq!(texts(answer), texts(meant)),
            _ => assert_eq!(&order(answer), &order(meant), "{said}"),
        }
    }
    let kept: Vec<&str> = ["count", "sum", "avg", "array_agg", "median", "min", "max"]
        .into_iter()
        .filter(|name| refused.contains(*name))
        .collect();
    assert!(kept.is_empty(), "{kept:?}");
    assert!(refused.contains("corr"), "{refused:?}");
}

fn pretty_format_columns(array: &ArrayRef) -> String {
    datafusion::arrow::util::pretty::pretty_format_columns("v", std::slice::from_ref(array))
        .unwrap()
        .to_string()
}

#[tokio::test]
async fn named_windows_may_be_used_in_every_clause_of_select() {
    let ctx = serrate::sql::session();
    create_tables(&ctx).await;
    for (short, long) in [
        (
            "SELECT id FROM t WINDOW w AS (ORDER BY id DESC) ORDER BY row_number() OVER w",
            "SELECT id FROM t ORDER BY row_number() OVER (ORDER BY id DESC)",
        ),
        (
            "SELECT id FROM t WINDOW w AS (ORDER BY id DESC) QUALIFY row_number() OVER w = 1",
            "SELECT id FROM t QUALIFY row_number() OVER (ORDER BY id DESC) = 1",
        ),
        (
            "SELECT sum(id) OVER (w ROWS 1 PRECEDING) AS v FROM t WINDOW w AS (ORDER BY id DESC)",
            "SELECT sum(id) OVER (ORDER BY id DESC ROWS 1 PRECEDING) AS v FROM t",
        ),
        (
            "SELECT first_value(id) OVER v AS v FROM t WINDOW w AS (PARTITION BY 1), v AS (w ORDER BY id DESC)",
            "SELECT first_value(id) OVER (PARTITION BY 1 ORDER BY id DESC) AS v FROM t",
        ),
        (
            "SELECT first_value(id) OVER w AS v, (SELECT max(q) FROM (SELECT first_value(id) OVER w AS q FROM t WINDOW w AS (ORDER BY id)) AS s) AS i FROM t WINDOW w AS (ORDER BY id DESC)",
            "SELECT first_value(id) OVER (ORDER BY id DESC) AS v, 1 AS i FROM t",
        ),
    ] {
        assert_eq!(show_rows(&ctx, short).await, show_rows(&ctx, long).await, "{short}");
    }
}

/// Right operands of `a = ..`: one for every operator that may follow `b` in `a = b ..`.
const COMPARED: [&str; 44] = [
    "b",
    "b IS NULL",
    "b IS NOT NULL",
    "b IS TRUE",
    "b IS NOT TRUE",
    "b IS FALSE",
    "b IS NOT FALSE",
    "b IS UNKNOWN",
    "b IS NOT UNKNOWN",
    "b NOTNULL",
    "b IS DISTINCT FROM a",
    "b IS NOT DISTINCT FROM a",
    "b LIKE 'x'",
    "b NOT LIKE 'x'",
    "b ILIKE 'x'",
    "b SIMILAR TO 'x'",
    "b BETWEEN a AND c",
    "b NOT BETWEEN a AND c AND a",
    "b IN (a, c)",
    "b NOT IN (a, c)",
    "b IN (SELECT true)",
    "b = ANY([a])",
    "b <> ALL([a])",
    "b AND c",
    "b OR c",
    "b AND c OR a",
    "b = c",
    "b == c",
    "b <> c",
    "b < c",
    "b >= c",
    "b = c IS NULL",
    "NOT b",
    "NOT b AND c",
    "NOT b IS NULL",
    "b XOR c",
    "b + c",
    "b * c IS NULL",
    "b || c = a",
    "b::int IS NULL",
    "(b IS NULL)",
    "CASE WHEN b THEN c END IS NULL",
    "b ~ 'x'",
    "b IS NULL = c",
];

#[test]
fn an_equals_sign_within_a_call_compares_as_in_parentheses() {
    use datafusion::logical_expr::sqlparser::ast::{
        Expr, FunctionArg, FunctionArgExpr, FunctionArguments, SelectItem, Statement as Sql,
    };
    use datafusion::sql::parser::Statement;
    let ctx = serrate::sql::session();
    let argument = |text: &str| {
        let statement = serrate::sql::parse(&ctx, text).unwrap_or_else(|e| panic!("{text}\n{e}"));
        let Statement::Statement(inner) = &statement[0] else { panic!("{text}") };
        let Sql::Query(query) = inner.as_ref() else { panic!("{text}") };
        let SelectItem::UnnamedExpr(Expr::Function(call)) =
            &query.body.as_select().unwrap().projection[0]
        else {
            panic!("{text}")
        };
        let FunctionArguments::List(list) = &call.args else { panic!("{text}") };
        match &list.args[0] {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Nested(e))) => e.as_ref().clone(),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => e.clone(),
            other => panic!("{text}: {other:?}"),
        }
    };
    let mut tried = 0;
    for first in COMPARED {
        for second in COMPARED.map(|e| format!(" AND {e}")).iter().chain([&String::new()]) {
            for name in ["a", "t.a", "\"a\""] {
                let short = argument(&format!("SELECT f({name} = {first}{second}) FROM t"));
                let long = argument(&format!("SELECT f(({name} = {first}{second})) FROM t"));
                assert_eq!(short, long, "f({name} = {first}{second})");
                tried += 1;
            }
        }
    }
    assert!(tried > 5000);
}

#[tokio::test]
async fn comparisons_mean_the_same_within_and_outside_a_call() {
    let ctx = serrate::sql::session();
    let rows =
        "(VALUES (false, true, true), (true, NULL, false), (false, false, NULL)) AS t(a, b, c)";
    for rest in
        ["b IS NULL", "b IS NOT NULL", "b IN (c)", "b BETWEEN a AND c", "b IS DISTINCT FROM c"]
    {
        let within =
            show_rows(&ctx, &format!("SELECT coalesce(a = {rest}, false) FROM {rows}")).await;
        let beside =
            show_rows(&ctx, &format!("SELECT coalesce((a = {rest}), false) FROM {rows}")).await;
        assert_eq!(within, beside, "{rest}");
    }
}

/// Statements that combine values without a common type are errors of the statement, not "internal"
/// errors of DataFusion.
#[tokio::test]
async fn errors_of_a_statement_are_not_called_internal() {
    let ctx = serrate::sql::session();
    create_tables(&ctx).await;
    let mut wrong = Vec::new();
    let values = [
        "1",
        "1.5",
        "true",
        "'a'",
        "{'p': 1}",
        "[1]",
        "DATE '2020-01-01'",
        "INTERVAL '1 day'",
        "map([1], [2])",
    ];
    let mut statements: Vec<String> = Vec::new();
    for a in values {
        for b in values {
            statements.push(format!("SELECT {a} BETWEEN {b} AND {a}"));
            statements.push(format!("SELECT CASE {a} WHEN {b} THEN {b} ELSE {a} END"));
            statements.push(format!("SELECT {a} IN ({b}, {a})"));
            statements.push(format!("SELECT coalesce({a}, {b}), nullif({a}, {b})"));
            for op in ["+", "=", "<", "AND", "||", "LIKE", "&"] {
                statements.push(format!("SELECT {a} {op} {b}"));
            }
        }
        for f in [
            "sum",
            "avg",
            "median",
            "min",
            "bool_and",
            "stddev",
            "bit_and",
            "approx_median",
            "upper",
            "sqrt",
            "array_length",
        ] {
            statements.push(format!("SELECT {f}({a})"));
        }
    }
    statements.push("SELECT count(DISTINCT id, s) FROM t".into());
    statements.push("SELECT no_such_function(1)".into());
    for statement in statements {
        if let Err(e) = query_batches(&ctx, &statement).await {
            let message = e.strip_backtrace();
            if message.contains("Internal error") || message.contains("likely caused by a bug") {
                wrong.push(format!("{statement}: {message}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of them\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

#[tokio::test]
async fn order_by_all_sorts_by_expressions() {
    let ctx = serrate::sql::session();
    let rows = |sql: &'static str| {
        let ctx = ctx.clone();
        async move {
            let batches = serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
            let shown = datafusion::arrow::util::pretty::pretty_format_batches(&batches)
                .unwrap()
                .to_string();
            let cells = |line: &str| {
                line.split('|')
                    .map(str::trim)
                    .filter(|c| !c.is_empty())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            shown
                .lines()
                .skip(3)
                .map(cells)
                .filter(|l| !l.starts_with('+'))
                .collect::<Vec<_>>()
                .join("; ")
        }
    };
    for (sql, expected) in [
        (
            "SELECT a + 1 AS b, count(*) FROM (VALUES (3), (1), (2), (1)) t(a) GROUP BY ALL ORDER BY ALL",
            "2 2; 3 1; 4 1",
        ),
        ("SELECT a % 2, -a FROM (VALUES (3), (1), (2)) t(a) ORDER BY ALL", "0 -2; 1 -3; 1 -1"),
        ("SELECT a % 2, a FROM (VALUES (3), (1), (2)) t(a) ORDER BY ALL DESC", "1 3; 1 1; 0 2"),
        ("SELECT * FROM (SELECT a * 2 AS x FROM (VALUES (3), (1)) t(a) ORDER BY ALL LIMIT 1)", "2"),
        (
            "WITH q AS (SELECT -a AS n FROM (VALUES (3), (1)) t(a) ORDER BY ALL LIMIT 1) SELECT n FROM q",
            "-3",
        ),
        ("SELECT * FROM (VALUES (3), (1), (2)) t(a) ORDER BY ALL", "1; 2; 3"),
        ("SELECT DISTINCT a % 2 FROM (VALUES (3), (1), (2)) t(a) ORDER BY ALL DESC", "1; 0"),
        (
            "SELECT * FROM (VALUES (3, 'x'), (1, 'y')) t(a, b) FULL JOIN (VALUES (3, 5), (2, 6)) u(a, c) USING (a) ORDER BY ALL",
            "1 y; 2 6; 3 x 5",
        ),
        (
            "SELECT * FROM (VALUES (3, 'x')) t(a, b) NATURAL RIGHT JOIN (VALUES (3, 5), (2, 6)) u(a, c) ORDER BY ALL DESC LIMIT 1",
            "3 x 5",
        ),
    ] {
        assert_eq!(rows(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn errors_say_what_to_write_instead() {
    let ctx = serrate::sql::session();
    let meds = format!("{}/tests/data/synthea-meds", env!("CARGO_MANIFEST_DIR"));
    let codes = format!("SELECT codes FROM meds('{meds}')");
    for (sql, words) in [
        (
            "SELECT ragged_sum([1]) FILTER (WHERE false)",
            &["requires a list of booleans", "one Boolean per row"][..],
        ),
        ("SELECT list_contains([[1], [2]], 1)", &["ragged_any(x == 1)"]),
        ("SELECT [[1]] || 2", &["x || [2]"]),
        (
            "SELECT array_push_front([1], 0)",
            &["take the element first", "not a list (Int64)", "list_prepend(0, [1, 2])"],
        ),
        ("SELECT array_append('a', ['b'])", &["take the list first", "list_append([1, 2], 3)"]),
        (
            "SELECT ragged_max([INTERVAL '1 month', INTERVAL '40 days'])",
            &["ragged_max of", "durations"],
        ),
        (&codes, &["Did you mean 'code'?"]),
    ] {
        let run = async { serrate::sql::sql(&ctx, sql).await?.collect().await };
        let error = run.await.expect_err(sql);
        let text = error.strip_backtrace();
        for word in words {
            assert!(text.contains(word), "{sql}: {text}");
        }
        assert!(!text.contains("\"meds()\""), "{text}");
    }
}
