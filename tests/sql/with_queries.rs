//! WITH: names that hide others, MATERIALIZED, recursive queries.

use super::*;

#[tokio::test]
async fn inner_ctes_hide_outer_ones() {
    expect_rows(
        &["CREATE TABLE t AS SELECT 7 AS v"],
        &[
            ("WITH x AS (SELECT 1 AS v) SELECT * FROM (WITH x AS (SELECT 2 AS v) SELECT v FROM x) y, x", "2 1"),
            ("WITH x AS (SELECT 1 AS v) SELECT (WITH x AS (SELECT 2 AS v) SELECT x.v FROM x), v FROM x", "2 1"),
            ("WITH x AS (SELECT 1 AS v), y AS (WITH x AS (SELECT 2 AS v) SELECT * FROM x) SELECT x.v, y.v FROM x, y", "1 2"),
            // The definition of the inner `x` reads the outer `x`, which it hides afterwards.
            ("WITH x AS (SELECT 1 AS v) SELECT * FROM (WITH x AS (SELECT v + 10 AS v FROM x) SELECT X.v FROM X) y", "11"),
            ("WITH x AS (SELECT 1 AS v) SELECT * FROM (WITH x AS (SELECT 2 AS v), z AS (SELECT v * 10 AS w FROM x AS q) SELECT w, x.v FROM z, x) y", "20 2"),
            ("WITH x AS (SELECT 1 AS v) SELECT * FROM (WITH x AS (SELECT 2 AS v) SELECT * FROM (WITH x AS (SELECT v + 1 AS v FROM x) FROM x)) y, x", "3 1"),
            ("WITH x AS (SELECT 1 AS v) SELECT * FROM (WITH RECURSIVE x AS (SELECT 2 AS v UNION ALL SELECT v + 1 FROM x WHERE v < 4) SELECT max(v) FROM x) y, x", "4 1"),
            ("WITH x(a) AS (SELECT 1) SELECT * FROM (WITH \"x\"(b) AS (SELECT 2) SELECT b FROM x) y, x", "2 1"),
            ("WITH t AS (SELECT v + 1 AS v FROM t) SELECT (WITH t AS (SELECT v + 1 AS v FROM t) SELECT v FROM t) FROM t", "9"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    let twice = rows_or_error(&ctx, "WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x").await;
    assert!(twice.contains("more than once"), "{twice}");
}

#[tokio::test]
async fn volatile_ctes_may_be_materialized() {
    expect_rows(
        &[],
        &[
            (
                "WITH x AS MATERIALIZED (SELECT random() AS r) SELECT p.r = q.r FROM x p, x q",
                "true",
            ),
            ("WITH x AS NOT MATERIALIZED (SELECT 1 AS r) SELECT p.r = q.r FROM x p, x q", "true"),
        ],
    )
    .await;
}

#[tokio::test]
async fn several_recursive_branches_are_refused_by_name() {
    let ctx = serrate::sql::session();
    for union in ["UNION", "UNION ALL"] {
        let sql = format!(
            "WITH RECURSIVE r(n) AS (SELECT 1 {union} SELECT n + 1 FROM r WHERE n < 3 {union} SELECT n + 2 FROM r WHERE n < 3) SELECT * FROM r"
        );
        let refused = rows_or_error(&ctx, &sql).await;
        assert!(refused.contains("reads itself in more than one branch"), "{refused}");
    }
    expect_rows(
        &[],
        &[
            ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT 2 UNION SELECT n + 2 FROM r WHERE n < 3) SELECT * FROM r ORDER BY n", "1; 2; 3; 4"),
            ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + step FROM r, (VALUES (1), (2)) AS steps (step) WHERE n < 3) SELECT * FROM r ORDER BY n", "1; 2; 3; 4"),
            ("WITH RECURSIVE r AS (SELECT 1::INT AS n UNION ALL SELECT CASE WHEN n < 3 THEN n + 1 ELSE 9::SMALLINT END FROM r WHERE n < 5) SELECT * FROM r ORDER BY n", "1; 2; 3; 9"),
            ("WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM q WHERE EXISTS (SELECT 1 FROM (SELECT a FROM (VALUES (1), (2), (3)) v(a)) u WHERE u.a > q.n)) SELECT n FROM q ORDER BY n", "1; 2; 3"),
            ("WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM q WHERE EXISTS (SELECT 1 FROM (SELECT a + 1 AS a FROM range(3) v(a)) u WHERE u.a = q.n)) SELECT n FROM q ORDER BY n", "1; 2; 3; 4"),
        ],
    )
    .await;
}

const LISTS: &str =
    "WITH RECURSIVE r(l) AS (SELECT * FROM (VALUES ([1]), (NULL), ([]), ([3]), ([1])) v(l)
    UNION SELECT array_append(l, 1) FROM r WHERE cardinality(l) < 2)
    SELECT * FROM r";

#[tokio::test]
async fn recursive_unions_keep_all_new_rows() {
    let nan = "'NaN'::DOUBLE";
    let floats = format!(
        "WITH RECURSIVE r(f) AS (SELECT * FROM (VALUES (0.0), (-0.0), ({nan}), (-{nan})) v(f)
            UNION SELECT -f FROM r) SELECT * FROM r ORDER BY f"
    );
    let float_lists = format!(
        "WITH RECURSIVE r(k, f) AS (SELECT * FROM (VALUES (1, [0.0]), (1, [-0.0]), (1, [{nan}]), (1, [-{nan}]), (2, [0.0])) v(k, f)
            UNION SELECT k, f FROM r) SELECT k, f FROM r ORDER BY k, f"
    );
    let twice = format!("SELECT count(*) FROM ({LISTS}) a, ({LISTS}) b");
    expect_rows(
        &[],
        &[
            (LISTS, "[1]; NULL; []; [3]; [1, 1]; [3, 1]"),
            (floats.as_str(), "0.0; NaN"),
            (float_lists.as_str(), "1 [0.0]; 1 [NaN]; 2 [0.0]"),
            (twice.as_str(), "36"),
            ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n % 5 + 1 FROM r) SELECT * FROM r", "1; 2; 3; 4; 5"),
            // One month and 30 days are equal intervals, so UNION keeps only the first.
            (
                "WITH RECURSIVE r(i) AS (SELECT INTERVAL '1 month' UNION SELECT INTERVAL '30 days' FROM r) SELECT DATE '2024-02-01' + i = DATE '2024-03-01' FROM r",
                "true",
            ),
            (
                "WITH RECURSIVE r(i) AS (SELECT INTERVAL '30 days' UNION SELECT i + INTERVAL '720 hours' FROM r WHERE i < INTERVAL '3 months') SELECT count(*) FROM r",
                "3",
            ),
            (
                "WITH RECURSIVE r(l, s) AS (SELECT [INTERVAL '30 days', NULL], {'a': INTERVAL '1 month'} UNION SELECT [INTERVAL '1 month', NULL], {'a': INTERVAL '720 hours'} FROM r) SELECT count(*) FROM r",
                "1",
            ),
            ("WITH RECURSIVE r(s, d) AS (SELECT {'a': 1}, DATE '2024-01-01' UNION SELECT s, d FROM r) SELECT count(*) FROM r", "1"),
        ],
    )
    .await;
    // A plan that runs a second time does not keep the rows of the first run.
    let ctx = serrate::sql::session();
    let plan = serrate::sql::sql(&ctx, LISTS).await.unwrap().create_physical_plan().await.unwrap();
    for _ in 0..2 {
        let batches =
            datafusion::physical_plan::collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 6);
    }
}

/// When this test fails, `sql::workarounds::joins_and_unions` can be removed.
#[tokio::test]
async fn stock_recursive_unions_still_lose_rows() {
    let ctx = SessionContext::new();
    let rows = LISTS
        .replace("[]", "make_array()")
        .replace("[1]", "make_array(1)")
        .replace("[3]", "make_array(3)");
    let counted = format!("SELECT count(*) FROM ({rows})");
    assert!(stock_one(&ctx, &counted).await < 6);
}

#[tokio::test]
async fn recursive_terms_that_would_lose_fractions_are_refused() {
    let ctx = serrate::sql::session();
    for sql in [
        "WITH RECURSIVE q AS (SELECT 1 n UNION ALL SELECT n + 0.5 FROM q WHERE n < 3) SELECT n FROM q",
        "WITH RECURSIVE q(n) AS (SELECT 1 UNION SELECT n * 2.5 FROM q WHERE n < 30) SELECT n FROM q",
        "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 0.5::DECIMAL(3, 1) FROM q WHERE n < 3) SELECT n FROM q",
        "SELECT * FROM (WITH RECURSIVE p AS (SELECT 1 AS a), q(n) AS (SELECT a FROM p UNION ALL SELECT n / 2.0 FROM q, p WHERE n > 1) SELECT n FROM q)",
        "CREATE VIEW w AS WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 0.5 FROM q WHERE n < 3) SELECT n FROM q",
    ] {
        let message = rows_or_error(&ctx, sql).await;
        assert!(message.contains("column n of the recursive query q"), "{sql}\n{message}");
        assert!(message.contains("lose their fractions"), "{sql}\n{message}");
    }
    expect_rows(
        &[],
        &[
            ("WITH RECURSIVE q AS (SELECT 1::DOUBLE n UNION ALL SELECT n + 0.5 FROM q WHERE n < 2) SELECT n FROM q ORDER BY n", "1.0; 1.5; 2.0"),
            ("WITH RECURSIVE q(n) AS (SELECT 100 UNION ALL SELECT floor(n / 2.0) FROM q WHERE n > 3) SELECT n FROM q ORDER BY n", "3; 6; 12; 25; 50; 100"),
            ("WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT CAST(n * 2.0 AS BIGINT) FROM q WHERE n < 3) SELECT n FROM q ORDER BY n", "1; 2; 4"),
            ("WITH RECURSIVE q(n) AS (SELECT 1::SMALLINT UNION ALL SELECT n + 1 FROM q WHERE n < 3) SELECT n FROM q ORDER BY n", "1; 2; 3"),
            ("WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT 0.5) SELECT n FROM q ORDER BY n", "0.5; 1.0"),
        ],
    )
    .await;
}

#[tokio::test]
async fn recursive_terms_lose_no_part_of_a_value() {
    let ctx = serrate::sql::session();
    let (day, time) = ("DATE '2020-01-01'", "TIMESTAMP '2020-01-01 10:00:00'");
    for (first, next, lost) in [
        (day.to_owned(), time.to_owned(), "times of day"),
        (day.to_owned(), "x + INTERVAL '1 hour'".to_owned(), "times of day"),
        (day.to_owned(), "date_trunc('hour', x + INTERVAL '1 hour')".to_owned(), "times of day"),
        (day.to_owned(), "date_trunc('day', x) + INTERVAL '1 hour'".to_owned(), "times of day"),
        (day.to_owned(), format!("CASE WHEN n = 1 THEN x ELSE {time} END"), "times of day"),
        (format!("[{day}]"), format!("[{time}]"), "times of day"),
        (format!("[{day}]"), format!("array_append(x, {time})"), "times of day"),
        (format!("{{'a': {day}}}"), format!("{{'a': {time}}}"), "times of day"),
        ("TIME '10:00:00'".to_owned(), time.to_owned(), "dates"),
        ("[1]".to_owned(), "x * 0.5".to_owned(), "fractions"),
        ("[1]".to_owned(), "array_append(x, n + 0.5)".to_owned(), "fractions"),
        ("{'a': 1}".to_owned(), "{'a': 0.5}".to_owned(), "fractions"),
        ("1".to_owned(), "CASE WHEN n = 1 THEN x ELSE 1.5 END".to_owned(), "fractions"),
    ] {
        for union in ["UNION", "UNION ALL"] {
            let sql = format!(
                "WITH RECURSIVE q(n, x) AS (SELECT 1, {first} {union} SELECT n + 1, {next} FROM q WHERE n < 3) SELECT x FROM q"
            );
            let message = rows_or_error(&ctx, &sql).await;
            assert!(message.contains("column x of the recursive query q"), "{sql}\n{message}");
            assert!(message.contains(&format!("lose their {lost}; write")), "{sql}\n{message}");
        }
    }
    expect_rows(
        &[],
        &[
            ("WITH RECURSIVE q(d) AS (SELECT DATE '2020-01-01' UNION ALL SELECT date_trunc('month', d + INTERVAL '1 month') FROM q WHERE d < DATE '2020-03-01') SELECT d FROM q ORDER BY d", "2020-01-01; 2020-02-01; 2020-03-01"),
            ("WITH RECURSIVE q(d) AS (SELECT DATE '2020-01-01' UNION ALL SELECT date_trunc('month', d) + INTERVAL '1 month' FROM q WHERE d < DATE '2020-03-01') SELECT d FROM q ORDER BY d", "2020-01-01; 2020-02-01; 2020-03-01"),
            ("WITH RECURSIVE q(d) AS (SELECT DATE '2020-01-01' UNION ALL SELECT (d + INTERVAL '1 day')::TIMESTAMP FROM q WHERE d < DATE '2020-01-03') SELECT d FROM q ORDER BY d", "2020-01-01; 2020-01-02; 2020-01-03"),
            ("WITH RECURSIVE q(d) AS (SELECT DATE '2020-01-31' UNION ALL SELECT CAST(d + INTERVAL '36 hours' AS DATE) FROM q WHERE d < DATE '2020-02-02') SELECT d FROM q ORDER BY d", "2020-01-31; 2020-02-01; 2020-02-02"),
            ("WITH RECURSIVE q(n, x) AS (SELECT 1, [DATE '2020-01-01'] UNION ALL SELECT n + 1, array_append(x, x[1] + INTERVAL '1 day') FROM q WHERE n < 2) SELECT x FROM q ORDER BY n", "[2020-01-01]; [2020-01-01, 2020-01-02]"),
            ("WITH RECURSIVE q(n, x) AS (SELECT 1, [0.5] UNION ALL SELECT n + 1, array_append(x, n) FROM q WHERE n < 2) SELECT x FROM q ORDER BY n", "[0.5]; [0.5, 1.0]"),
            ("WITH RECURSIVE q(n, t) AS (SELECT 1, TIMESTAMP '2020-01-01 10:00:00' UNION ALL SELECT n + 1, t::DATE FROM q WHERE n < 2) SELECT t FROM q ORDER BY n", "2020-01-01T10:00:00; 2020-01-01T00:00:00"),
        ],
    )
    .await;
}

/// DataFusion would cast the values of the recursive term to the type of the first.
#[tokio::test]
async fn recursive_terms_do_not_mix_times_with_numbers() {
    let ctx = serrate::sql::session();
    for (what, first, next) in [
        ("dates", "DATE '2020-01-01'", "5"),
        ("dates", "5", "DATE '2020-01-01'"),
        ("dates", "[DATE '2020-01-01']", "[5]"),
        ("dates", "{'a': DATE '2020-01-01'}", "{'a': 5}"),
        ("timestamps", "TIMESTAMP '2020-01-01'", "0.5"),
        ("timestamps", "5", "TIMESTAMP '2020-01-01'"),
        ("timestamps", "[[5]]", "[[TIMESTAMP '2020-01-01']]"),
        ("timestamps", "MAP {'a': 5}", "MAP {'a': TIMESTAMP '2020-01-01'}"),
        ("times of day", "5", "TIME '10:00:00'"),
        ("durations", "TIMESTAMP '2020-01-01' - TIMESTAMP '2019-01-01'", "5"),
    ] {
        for union in ["UNION", "UNION ALL"] {
            let sql = format!(
                "WITH RECURSIVE q(n, x) AS (SELECT 1, {first} {union} SELECT n + 1, {next} FROM q WHERE n < 2) SELECT x FROM q"
            );
            let message = rows_or_error(&ctx, &sql).await;
            assert!(message.contains("column x of the recursive query q"), "{sql}\n{message}");
            let reason = format!("but {what} are not numbers; write ");
            assert!(message.contains(&reason), "{sql}\n{message}");
        }
    }
    expect_rows(
        &[],
        &[
            ("WITH RECURSIVE q(d) AS (SELECT DATE '2020-01-01' UNION ALL SELECT d + 1 FROM q WHERE d < DATE '2020-01-03') SELECT d FROM q ORDER BY d", "2020-01-01; 2020-01-02; 2020-01-03"),
            ("WITH RECURSIVE q(d) AS (SELECT DATE '2020-01-01' UNION ALL SELECT d + INTERVAL '1 day' FROM q WHERE d < DATE '2020-01-03') SELECT max(d) FROM q", "2020-01-03"),
            ("WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + (DATE '2020-01-03' - DATE '2020-01-01') FROM q WHERE n < 4) SELECT max(n) FROM q", "5"),
            ("WITH RECURSIVE q(n, d) AS (SELECT 1, NULL::DATE UNION ALL SELECT n + 1, NULL FROM q WHERE n < 2) SELECT n, d FROM q ORDER BY n", "1 NULL; 2 NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn recursive_terms_that_read_their_input_twice_are_refused() {
    let ctx = serrate::sql::session();
    let u = "(VALUES (1), (2), (3)) u(a)";
    for step in [
        format!("SELECT (SELECT min(u.a) FROM {u} WHERE u.a > q.n) FROM q WHERE n < 3"),
        format!(
            "SELECT l.x FROM q, LATERAL (SELECT min(u.a) x FROM {u} WHERE u.a > q.n) l WHERE x > 0"
        ),
        "SELECT q.n + 1 FROM q JOIN q r ON q.n = r.n WHERE q.n < 3".to_owned(),
    ] {
        let sql = format!("WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL {step}) SELECT n FROM q");
        let message = rows_or_error(&ctx, &sql).await;
        assert!(message.contains("reads q more than once"), "{sql}\n{message}");
    }
    let joined = format!(
        "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT min(u.a) FROM q JOIN {u} ON u.a > q.n GROUP BY q.n) SELECT n FROM q ORDER BY n"
    );
    let exists = format!(
        "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE EXISTS (SELECT 1 FROM {u} WHERE u.a = q.n)) SELECT n FROM q ORDER BY n"
    );
    expect_rows(&[], &[(joined.as_str(), "1; 2; 3"), (exists.as_str(), "1; 2; 3; 4")]).await;
}

#[tokio::test]
async fn errors_of_disabled_recursion_name_the_setting() {
    let ctx = serrate::sql::session();
    let off = "SET datafusion.execution.enable_recursive_ctes = false";
    serrate::sql::sql(&ctx, off).await.unwrap().collect().await.unwrap();
    let sql =
        "WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM q WHERE n < 3) FROM q";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("enable_recursive_ctes = true"), "{e}");
}

/// The queries of WITH RECURSIVE that do not read themselves keep their clauses.
#[tokio::test]
async fn clauses_of_recursive_unions_have_their_effect() {
    expect_rows(
        &["CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (3)) v(a)"],
        &[
            ("WITH RECURSIVE q AS (SELECT a FROM t UNION ALL SELECT a + 10 FROM t ORDER BY a DESC LIMIT 2) SELECT a FROM q ORDER BY a", "12; 13"),
            ("WITH RECURSIVE q(n) AS (SELECT a FROM t UNION SELECT a + 1 FROM t ORDER BY 1 LIMIT 2 OFFSET 1) SELECT n FROM q ORDER BY n", "2; 3"),
            ("WITH RECURSIVE q AS (SELECT a FROM t UNION ALL SELECT a FROM t FETCH FIRST 4 ROWS ONLY) SELECT count(*) FROM q", "4"),
            ("WITH RECURSIVE q AS (WITH r AS (SELECT 7 AS a) SELECT a FROM r UNION ALL SELECT a + 1 FROM r) SELECT a FROM q ORDER BY a", "7; 8"),
            ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9), q AS (SELECT n FROM r UNION ALL SELECT a + 20 FROM t ORDER BY n DESC LIMIT 3) SELECT n FROM q ORDER BY n", "21; 22; 23"),
            // WITH goes to the part that reads it.
            ("WITH RECURSIVE q AS (WITH r AS (SELECT 2 AS n) SELECT n FROM r UNION ALL SELECT n + 1 FROM q WHERE n < 4) SELECT n FROM q ORDER BY n", "2; 3; 4"),
            ("WITH RECURSIVE q(n) AS (WITH r AS (SELECT 2 AS step) SELECT 1 UNION ALL SELECT n + step FROM q, r WHERE n < 5) SELECT n FROM q ORDER BY n", "1; 3; 5"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    for (clauses, named) in [
        ("UNION ALL SELECT n + 1 FROM q LIMIT 5", "LIMIT or OFFSET of the recursive query q"),
        ("UNION ALL SELECT n + 1 FROM q OFFSET 5", "LIMIT or OFFSET of the recursive query q"),
        ("UNION ALL SELECT n + 1 FROM q WHERE n < 3 ORDER BY 1", "FROM q ORDER BY"),
        ("UNION ALL BY NAME SELECT n + 1 AS n FROM q WHERE n < 3", "BY NAME of the recursive"),
        ("UNION BY NAME SELECT n + 1 AS n FROM q WHERE n < 3", "BY NAME of the recursive"),
    ] {
        let sql = format!("WITH RECURSIVE q AS (SELECT 1 AS n {clauses}) SELECT n FROM q");
        let refused = rows_or_error(&ctx, &sql).await;
        assert!(refused.contains(named), "{sql}\n{refused}");
    }
    let both = "WITH RECURSIVE q AS (WITH r AS (SELECT 2 AS n) SELECT n FROM r UNION ALL SELECT q.n + r.n FROM q, r WHERE q.n < 9) SELECT n FROM q";
    let refused = rows_or_error(&ctx, both).await;
    assert!(refused.contains("write its queries before q"), "{refused}");
}

#[tokio::test]
async fn stock_clauses_of_recursive_unions_are_still_ignored() {
    let sql = "SELECT count(*) FROM (WITH RECURSIVE q AS (SELECT 1 UNION ALL SELECT 2 LIMIT 1) SELECT * FROM q)";
    assert_eq!(stock_one(&SessionContext::new(), sql).await, 2);
}

#[tokio::test]
async fn recursive_queries_of_outer_columns_are_refused() {
    let table = "CREATE TABLE t AS SELECT * FROM (VALUES (1), (2)) v(k)";
    let ctx = serrate::sql::session();
    run_query(&ctx, table).await;
    let from_key =
        "WITH RECURSIVE r AS (SELECT t.k AS n UNION ALL SELECT n + 1 FROM r WHERE n < 4)";
    let to_key = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < t.k)";
    for sql in [
        format!("SELECT k, ({from_key} SELECT max(n) FROM r) AS m FROM t"),
        format!("SELECT k, ({to_key} SELECT max(n) FROM r) AS m FROM t"),
        format!("SELECT k FROM t WHERE EXISTS ({from_key} SELECT n FROM r WHERE n > 3)"),
        format!("SELECT k FROM t WHERE 3 IN ({from_key} SELECT n FROM r)"),
        format!("SELECT k, m FROM t, LATERAL ({from_key} SELECT max(n) AS m FROM r) v"),
    ] {
        let e = rows_or_error(&ctx, &sql).await;
        assert!(
            e.contains("the recursive query r of a subquery uses the column t.k"),
            "{sql}\n{e}"
        );
    }
    expect_rows(
        &[table],
        &[
            ("SELECT k, (WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT max(n) FROM r WHERE n <= t.k) AS m FROM t ORDER BY k", "1 1; 2 2"),
            ("WITH RECURSIVE r AS (SELECT k, k AS n FROM t UNION ALL SELECT k, n + 1 FROM r WHERE n < 4) SELECT t.k, max(n) FROM t JOIN r ON t.k = r.k GROUP BY t.k ORDER BY t.k", "1 4; 2 4"),
        ],
    )
    .await;
}

/// Edges of a graph, with metadata as pandas and writers of field ids leave it in Parquet files.
fn make_edges() -> RecordBatch {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};

    let field = |name: &str, id: &str| {
        let metadata = [("PARQUET:field_id".to_owned(), id.to_owned())];
        Field::new(name, DataType::Int64, true).with_metadata(metadata.into())
    };
    let schema = Schema::new(vec![field("id", "1"), field("next", "2")]);
    let schema = schema.with_metadata([("pandas".to_owned(), "{}".to_owned())].into());
    let columns = [vec![1, 2, 3], vec![2, 3, 4]];
    let columns = columns.map(|values| Arc::new(Int64Array::from(values)) as ArrayRef);
    RecordBatch::try_new(Arc::new(schema), columns.into()).unwrap()
}

#[tokio::test]
async fn recursive_queries_read_tables_with_metadata() {
    let ctx = create_parallel_session();
    ctx.register_batch("edges", make_edges()).unwrap();
    query_batches(&ctx, "CREATE VIEW w AS SELECT id, next FROM edges").await.unwrap();
    for (terms, expected) in [
        (
            "SELECT id FROM edges WHERE id = 1 UNION ALL SELECT id + 1 FROM r WHERE id < 3",
            "1; 2; 3",
        ),
        ("SELECT id FROM edges WHERE id = 1 UNION SELECT id + 1 FROM r WHERE id < 3", "1; 2; 3"),
        (
            "SELECT 1::BIGINT AS id UNION ALL SELECT e.next FROM r JOIN edges e ON e.id = r.id",
            "1; 2; 3; 4",
        ),
        (
            "SELECT next AS id FROM w WHERE id = 2 UNION SELECT e.next FROM r, edges e WHERE e.id = r.id",
            "3; 4",
        ),
        ("SELECT id FROM edges UNION ALL SELECT id FROM r WHERE false", "1; 2; 3"),
    ] {
        let sql = format!("WITH RECURSIVE r AS ({terms}) SELECT id FROM r ORDER BY id");
        assert_eq!(rows_or_error(&ctx, &sql).await, expected, "{sql}");
        let sql = format!("WITH RECURSIVE r AS ({terms}) SELECT count(*) FROM r a, r b");
        let rows = expected.split("; ").count();
        assert_eq!(rows_or_error(&ctx, &sql).await, (rows * rows).to_string(), "{sql}");
    }
}

/// When this test fails, `serrate_recursive_metadata` can be removed.
#[tokio::test]
async fn stock_recursions_still_compare_metadata() {
    let ctx = SessionContext::new();
    ctx.register_batch("edges", make_edges()).unwrap();
    for first in ["SELECT id FROM edges", "SELECT CAST(1 AS BIGINT) AS id"] {
        let sql = format!(
            "WITH RECURSIVE r AS ({first} UNION ALL SELECT e.next + 0 FROM r JOIN edges e ON e.id = r.id) SELECT * FROM r"
        );
        let e = stock_error(&ctx, &sql).await;
        assert!(e.contains("metadata"), "{e}");
    }
}
