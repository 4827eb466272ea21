//! Medical codes as lists of strings: predicates, vocabularies, hierarchies.

use std::fs;

use serrate::io::ExistingTarget;
use serrate::io::meds::Vocabulary;

use super::*;

const REAL: &str = "meds('tests/data/synthea-meds')";

async fn with_codes() -> SessionContext {
    let ctx = create_parallel_session();
    let create = "CREATE TABLE t AS SELECT id, w, n, \
        arrow_cast(code, 'List(List(Dictionary(UInt32, Utf8)))') AS code \
        FROM (VALUES \
          (1, 'LAB//b', 2, [['LAB//a', 'DX//1'], [], ['LAB//b']]), \
          (2, 'x', 7, NULL), \
          (3, 'lab//a', 3, [[NULL, 'lab//a']]) \
        ) AS v(id, w, n, code)";
    query_batches(&ctx, create).await.unwrap();
    ctx
}

#[tokio::test]
async fn predicates_on_lists_are_masks() {
    let ctx = with_codes().await;
    // Each pair is a predicate in SQL syntax, and the call of a function that it means.
    let cases = [
        ("code LIKE 'LAB//%'", "ragged_like(code, 'LAB//%')"),
        ("code NOT LIKE 'LAB//%'", "ragged_not(ragged_like(code, 'LAB//%'))"),
        ("code ILIKE 'lab//_'", "ragged_ilike(code, 'lab//_')"),
        ("code NOT ILIKE 'lab//_'", "ragged_not(ragged_ilike(code, 'lab//_'))"),
        ("code LIKE w", "ragged_like(code, w)"),
        ("code IN ('LAB//a', 'DX//1')", "ragged_isin(code, ['LAB//a', 'DX//1'])"),
        ("code IN ('LAB//a')", "code = 'LAB//a'"),
        ("code NOT IN ('LAB//a', 'x')", "ragged_not(ragged_isin(code, ['LAB//a', 'x']))"),
        ("code IN ('LAB//a', NULL)", "ragged_isin(code, ['LAB//a', NULL])"),
        ("code IN ('DX//1', w)", "ragged_or(ragged_eq(code, 'DX//1'), ragged_eq(code, w))"),
        (
            "code IN ('LAB//a') OR code LIKE 'D%' AND code != 'x'",
            "ragged_or(code == 'LAB//a', ragged_and(ragged_like(code, 'D%'), code <> 'x'))",
        ),
        ("ragged_lengths(code, 2) IN (0, 2)", "ragged_isin(ragged_lengths(code, 2), [0, 2])"),
        ("ragged_any(code IN ('DX//1'), -1)", "ragged_any(ragged_eq(code, 'DX//1'), -1)"),
        ("ragged_filter(code, code LIKE '%a')", "ragged_filter(code, ragged_like(code, '%a'))"),
        ("code ~ '^LAB'", "ragged_matches(code, '^LAB')"),
        ("starts_with(code, 'LAB')", "ragged_starts_with(code, 'LAB')"),
        ("STARTS_WITH(code, w)", "ragged_starts_with(code, w)"),
        ("regexp_like(code, '^lab', 'i')", "ragged_matches(code, '^lab', 'i')"),
        ("code !~* '^lab'", "ragged_not(ragged_matches(code, '^lab', 'i'))"),
    ];
    for (written, meant) in cases {
        let found =
            query_text(&ctx, &format!("SELECT id, {written} AS m FROM t ORDER BY id")).await;
        let expected =
            query_text(&ctx, &format!("SELECT id, {meant} AS m FROM t ORDER BY id")).await;
        assert_eq!(found, expected, "{written}");
        assert!(found.contains("true") || found.contains("LAB//a"), "{written}: {found}");
    }
    let found =
        query_text(&ctx, "SELECT id FROM t WHERE ragged_any(code LIKE 'LAB%') ORDER BY id").await;
    assert_eq!(found, query_text(&ctx, "SELECT id FROM t WHERE id = 1").await);
    // Predicates on lists may appear in subqueries, aggregates, CASE, joins, views and prepared
    // statements.
    for sql in [
        "WITH c AS (SELECT id, code ILIKE 'lab%' AS m FROM t) SELECT id FROM c WHERE ragged_any(m)",
        "SELECT id FROM (SELECT id FROM t WHERE ragged_any(code IN ('LAB//a', 'lab//a')))",
        "SELECT CASE WHEN ragged_any(code LIKE 'L%') THEN 1 WHEN id = 2 THEN NULL ELSE 3 END FROM t WHERE id <> 2",
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id AND ragged_any(a.code ILIKE '%//a')",
    ] {
        let found = query_text(&ctx, &format!("SELECT * FROM ({sql}) AS q(id) ORDER BY id")).await;
        assert_eq!(
            found,
            query_text(&ctx, "SELECT id FROM t WHERE id <> 2 ORDER BY id").await,
            "{sql}"
        );
    }
    query_text(&ctx, "CREATE VIEW v AS SELECT id, code LIKE 'LAB%' AS m FROM t").await;
    assert_eq!(
        query_text(&ctx, "SELECT id, ragged_any(m) FROM v ORDER BY id").await,
        query_text(&ctx, "SELECT id, ragged_any(ragged_like(code, 'LAB%')) AS \"ragged_any(m)\" FROM t ORDER BY id").await
    );
    let views = "SELECT definition FROM information_schema.views WHERE table_name = 'v'";
    let definition = query_text(&ctx, views).await;
    assert!(definition.contains("SELECT id, code LIKE 'LAB%' AS m FROM t"), "{definition}");
    query_text(&ctx, "CREATE VIEW w AS SELECT id, starts_with(code, 'LAB') AND code IN ('LAB//a', 'b') AS m FROM t").await;
    let definition = query_text(&ctx, &views.replace("'v'", "'w'")).await;
    assert!(
        definition.contains("starts_with(code, 'LAB') AND code IN ('LAB//a', 'b')"),
        "{definition}"
    );
    query_text(&ctx, "PREPARE p(TEXT) AS SELECT ragged_any(code LIKE $1) AS a FROM t WHERE id = 1")
        .await;
    assert!(query_text(&ctx, "EXECUTE p('DX%')").await.contains("true"));
    // A boolean of a row is combined with each value of the list of this row.
    let found =
        query_text(&ctx, "SELECT n IN (2, 3) AND code LIKE 'L%' AS m FROM t WHERE id = 1").await;
    assert!(found.contains("[[true, false], [], [true]]"), "{found}");
    for sql in [
        "SELECT id FROM t WHERE code LIKE 'L%'",
        "SELECT id FROM t WHERE code IN ('a')",
        "SELECT id FROM t WHERE starts_with(code, 'a') AND id = 1",
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains("is a list of booleans; use ragged_any("), "{e}");
    }
    let e = error(&ctx, "SELECT n FROM t WHERE ragged_any(code LIKE 1)").await;
    assert!(e.contains("ragged_like: argument 2 must be a string"), "{e}");
}

#[tokio::test]
async fn predicates_on_scalars_equal_those_of_datafusion() {
    let ctx = with_codes().await;
    for predicate in [
        "w LIKE 'LAB%'",
        "w NOT LIKE '%a' AND n > 1",
        "w ILIKE 'lab%'",
        "w NOT ILIKE 'lab%'",
        "w LIKE NULL",
        "n IN (1, 2)",
        "n IN (1, 2.5, id + 2)",
        "n NOT IN (1, 2, NULL)",
        "n IN (7)",
        "w IN ('x', w)",
        "n IN (1, 2, 3, 4, 5, 6, 7)",
        "n + 1 IN (id, n) OR NOT w LIKE 'x'",
        "[n] IN ([2], [7])",
        "starts_with(w, 'LAB')",
        "regexp_like(w, '^lab', 'i') AND starts_with(w, lower(w))",
        "starts_with(n, 'LAB')",
        "starts_with(w)",
    ] {
        let sql = format!(
            "EXPLAIN SELECT id, {predicate}, {predicate} AS again FROM t WHERE {predicate}"
        );
        // Both sessions return rows, or both return an error. The errors differ.
        let plain = match ctx.sql(&sql).await {
            Ok(frame) => frame.collect().await,
            Err(e) => Err(e),
        };
        let ours = match serrate::sql::sql(&ctx, &sql).await {
            Ok(frame) => frame.collect().await,
            Err(e) => Err(e),
        };
        match (plain, ours) {
            (Ok(plain), Ok(ours)) => assert_eq!(plain, ours, "{predicate}"),
            (Err(_), Err(_)) => {}
            (plain, ours) => panic!("{predicate}: {plain:?} but {ours:?}"),
        }
    }
    // An IN list of 20,000 values does not become a deep expression, which would overflow the
    // stack.
    let many: Vec<String> = (0..20_000).map(|i| i.to_string()).collect();
    let sql = format!("SELECT count(*) AS c FROM t WHERE n IN ({})", many.join(", "));
    assert!(query_text(&ctx, &sql).await.contains("| 3 |"));
    let sql = format!(
        "SELECT ragged_count(ragged_lengths(code, 1)) AS c FROM t WHERE ragged_any(ragged_lengths(code, 2) IN ({})) AND id = 1",
        many.join(", ")
    );
    assert!(
        query_text(&ctx, &sql.replace("ragged_count(ragged_lengths(code, 1))", "id"))
            .await
            .contains("| 1 |")
    );
    // `register_functions` alone adds no operators on lists, so DataFusion plans the statement.
    let mut bare = SessionContext::new();
    serrate::sql::register_functions(&mut bare).unwrap();
    assert!(
        query_text(&bare, "SELECT 'abc' LIKE 'a%' AND 1 IN (1, 2) AS yes").await.contains("true")
    );
}

#[tokio::test]
async fn masks_select_as_many_codes_as_predicates_on_unnested_codes() {
    let ctx = create_parallel_session();
    for predicate in
        ["LIKE 'LAB//%'", "ILIKE '%kg%'", "~ '[0-9]{5}-[0-9]'", "= 'MEDS_BIRTH'", "< 'LAB'"]
    {
        let masks = query_text(
            &ctx,
            &format!(
                "SELECT sum(ragged_count(ragged_filter(code, (code {predicate})))) AS n FROM {REAL}"
            ),
        )
        .await;
        let rows = query_text(&ctx, &format!("SELECT count(*) AS n FROM (SELECT unnest(ragged_flatten(code)) AS c FROM {REAL}) WHERE c {predicate}")).await;
        assert_eq!(masks, rows, "{predicate}");
        assert!(!masks.contains("| 0 "), "{predicate}");
    }
}

#[tokio::test]
async fn a_changed_vocabulary_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("codes.parquet");
    let write = |codes: &[&str]| {
        let vocabulary = Vocabulary::from_codes(codes).unwrap();
        vocabulary.write(&path, |_| None, ExistingTarget::Replace).unwrap();
    };
    let ctx = create_parallel_session();
    let sql = format!(
        "SELECT ragged_encode(code, '{}') AS x FROM (VALUES (['b', 'c'])) AS t(code)",
        display_path(&path)
    );
    write(&["a", "b"]);
    assert!(query_text(&ctx, &sql).await.contains("[2, 0]"));
    let planned = ctx.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
    write(&["b", "c"]);
    assert!(query_text(&ctx, &sql).await.contains("[1, 2]"));
    // A plan of the old vocabulary is not executed with the new one.
    let run = datafusion::physical_plan::collect(planned, ctx.task_ctx()).await;
    let e = run.unwrap_err().strip_backtrace();
    assert!(e.contains("changed after the query was planned"), "{e}");
    fs::remove_file(&path).unwrap();
    assert!(error(&ctx, &sql).await.contains("codes.parquet"));
}

#[tokio::test]
async fn tokens_of_a_cohort_decode_to_the_codes_of_the_folder() {
    let ctx = create_parallel_session();
    // A token of the cohort decodes to its code; tokens of codes outside the vocabulary are 0.
    let sql = "SELECT bool_and(ragged_all(ragged_or(ragged_eq(ragged_decode(code_id, \
        'tests/data/synthea-meds-torch-data'), code), code_id == 0))) AS same \
        FROM meds('tests/data/synthea-meds-torch-data')";
    assert!(query_text(&ctx, sql).await.contains("true"));
    let e =
        error(&ctx, "SELECT densify(code, [2, 2]) FROM meds('tests/data/synthea-meds-torch-data')")
            .await;
    assert!(e.contains("ragged_encode") && e.contains("code_id"), "{e}");
}

#[tokio::test]
async fn the_documented_query_of_codes_runs() {
    let page = include_str!("../../docs/sql.md");
    let query = page.split("```sql\n").find(|part| part.contains("descendants(")).unwrap();
    let answer = query_text(&create_parallel_session(), query.split("```").next().unwrap()).await;
    // The answer has one line for each of 28 patients, and four lines of the frame.
    assert_eq!(answer.lines().count(), 28 + 4, "{answer}");
}

#[tokio::test]
async fn one_statement_may_look_up_a_table_several_times() {
    let look = "ragged_lookup(x, 'm', 'k', 's')";
    expect_rows(
        &[
            "CREATE TABLE m AS SELECT * FROM (VALUES (1, 'a', 10), (2, 'b', 20)) v(k, s, n)",
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, [1, 2]), (2, [2, 3])) v(i, x)",
        ],
        &[
            ("SELECT ragged_lookup([1, 2], 'm', 'k', 's'), ragged_lookup([2], 'm', 'k', 's')", "[a, b] [b]"),
            (&format!("SELECT {look}, ragged_lookup(ragged_head(x, 1), 'm', 'k', 's') FROM t ORDER BY i"), "[a, b] [a]; [b, ] [b]"),
            (&format!("SELECT {look}, {look} FROM t ORDER BY i"), "[a, b] [a, b]; [b, ] [b, ]"),
            (&format!("SELECT {look}, ragged_lookup(x, 'm', 'k', 'n') FROM t WHERE ragged_any({look} == 'a')"), "[a, b] [10, 20]"),
            (&format!("SELECT {look} AS l, count(*) FROM t GROUP BY {look} HAVING ragged_any({look} == 'a') ORDER BY {look}"), "[a, b] 1"),
            (&format!("SELECT i FROM t ORDER BY ragged_first({look}) DESC, ragged_last({look})"), "2; 1"),
        ],
    )
    .await;
    let ctx = create_parallel_session();
    let sql = "CREATE TABLE m AS SELECT * FROM (VALUES (1, 'a')) v(k, s)";
    serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    let sql = "SELECT ragged_lookup([1], 'm', 'k', 's'), ragged_lookup([2], 'm', 'k', 's')";
    let rows = serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    let names: Vec<String> = rows[0].schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["ragged_lookup([1], 'm', 'k', 's')", "ragged_lookup([2], 'm', 'k', 's')"]);
}

#[tokio::test]
async fn aggregates_take_dictionaries() {
    let tables = [
        "CREATE TABLE t AS SELECT id, k, arrow_cast(s, 'Dictionary(Int32, Utf8)') AS code FROM (VALUES (1, 1, 'b'), (2, 1, 'a'), (3, 2, 'b'), (4, 1, 'b'), (5, 2, NULL)) v(id, k, s)",
    ];
    let cases = [
        (
            "SELECT k, string_agg(DISTINCT code, ',' ORDER BY code), string_agg(DISTINCT code, ',' ORDER BY code DESC) FROM t GROUP BY k ORDER BY k",
            "1 a,b b,a; 2 b b",
        ),
        ("SELECT string_agg(DISTINCT code, '') FILTER (WHERE k = 2) FROM t", "b"),
        ("SELECT k, approx_distinct(code) FROM t GROUP BY k ORDER BY k", "1 2; 2 1"),
        ("SELECT string_agg(code, ',' ORDER BY id DESC) FROM t", "b,b,a,b"),
        (
            "SELECT approx_distinct(x), approx_count_distinct(x::REAL) FROM (VALUES (0.0::DOUBLE), (-0.0), (0.5), ('nan'), (NULL), (0.5)) t(x)",
            "3 3",
        ),
    ];
    expect_rows(&tables, &cases).await;
}

#[tokio::test]
async fn codes_have_characters() {
    let tables = [
        "CREATE TABLE t AS SELECT arrow_cast(s, 'Dictionary(Int32, Utf8)') AS code FROM (VALUES ('LAB//12'), ('DX'), (NULL)) v(s)",
    ];
    let cases = [
        (
            "SELECT code[1:3], code[1], code[-2:], code[2:] FROM t",
            "LAB L 12 AB//12; DX D DX X; NULL NULL NULL NULL",
        ),
        ("SELECT code[1:2] AS k, count(*) FROM t GROUP BY k ORDER BY k", "DX 1; LA 1; NULL 1"),
    ];
    expect_rows(&tables, &cases).await;
    let ctx = create_parallel_session();
    let sql = "SELECT count(DISTINCT code[1:3]) > 1 FROM ragged_explode((SELECT subject_id, code FROM meds('tests/data/synthea-meds')))";
    assert_eq!(rows_or_error(&ctx, sql).await, "true");
}

#[tokio::test]
async fn lists_of_dictionaries_of_several_batches_have_wide_keys() {
    let setup = [
        "SET datafusion.execution.batch_size = 100",
        "CREATE TABLE z AS SELECT value AS x FROM range(0, 300)",
    ];
    let dictionary = "arrow_cast('v' || x, 'Dictionary(Int8, Utf8)')";
    let list = "arrow_cast(['v' || x], 'List(Dictionary(UInt8, Utf8))')";
    let cases = [
        (
            format!(
                "SELECT array_agg({dictionary} ORDER BY x)[299], len(array_agg({dictionary} ORDER BY x)) FROM z"
            ),
            "v298 300",
        ),
        (
            format!(
                "SELECT x % 2 AS k, array_agg({dictionary} ORDER BY x)[149:] FROM z GROUP BY k ORDER BY k"
            ),
            "0 [v296, v298]; 1 [v297, v299]",
        ),
        (
            format!("SELECT len(array_agg(DISTINCT {dictionary} ORDER BY {dictionary})) FROM z"),
            "300",
        ),
        (
            format!(
                "SELECT len(array_agg({dictionary})), len(array_agg({list} ORDER BY x)) FROM z"
            ),
            "300 300",
        ),
        (
            format!(
                "SELECT arrow_typeof(array_agg({dictionary})), arrow_typeof(array_agg(x::VARCHAR)) FROM z"
            ),
            "List(Dictionary(Int32, Utf8)) List(Utf8View)",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&setup, &cases).await;
}

/// When this test and the next two fail, `serrate_one_text` can be removed.
#[tokio::test]
async fn stock_lists_of_narrow_dictionaries_still_panic() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_batch_size(100));
    let sql = "SELECT array_agg(arrow_cast(concat('v', value), 'Dictionary(Int8, Utf8)') ORDER BY value) FROM range(0, 300)";
    let frame = ctx.sql(sql).await.unwrap();
    let found = tokio::spawn(frame.collect()).await;
    assert!(!matches!(found, Ok(Ok(_))));
}

#[tokio::test]
async fn stock_aggregates_of_dictionaries_still_fail() {
    let ctx = SessionContext::new();
    let from = "FROM (SELECT arrow_cast(s, 'Dictionary(Int32, Utf8)') AS code FROM (VALUES ('ab'), ('c')) v(s))";
    let e = stock_error(&ctx, &format!("SELECT approx_distinct(code) {from}")).await;
    assert!(e.contains("approx_distinct"), "{e}");
    let sql = format!("SELECT string_agg(DISTINCT code, ',' ORDER BY code) {from}");
    let e = stock_error(&ctx, &sql).await;
    assert!(e.contains("ORDER BY expressions must appear in argument list"), "{e}");
}

#[tokio::test]
async fn stock_patterns_of_dictionaries_still_fail() {
    let make = "CREATE TABLE t AS SELECT arrow_cast('ab', 'Dictionary(Int32, Utf8)') AS code, arrow_cast('a%', 'Utf8View') AS pattern";
    let like = "SELECT code LIKE pattern FROM t";
    let ctx = SessionContext::new();
    stock_batches(&ctx, make).await.unwrap();
    let e = stock_error(&ctx, like).await;
    assert!(e.contains("LIKE"), "{e}");
    expect_rows(&[make], &[(like, "true")]).await;
}

/// Writes the vocabulary of the codes A and B, and that of the codes X and Y.
fn write_two_vocabularies(first: &str, second: &str) {
    for (file, codes) in [(first, ["A", "B"]), (second, ["X", "Y"])] {
        let vocabulary = Vocabulary::from_codes(codes).unwrap();
        vocabulary.write(file, |_| None, ExistingTarget::Refuse).unwrap();
    }
}

#[tokio::test]
async fn tokens_of_several_vocabularies_are_not_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| display_path(&dir.path().join(name));
    let (first, second) = (path("first.parquet"), path("second.parquet"));
    write_two_vocabularies(&first, &second);
    let ctx = create_parallel_session();
    for (table, codes, file) in [("a", "'A', 'B'", &first), ("b", "'X'", &second)] {
        let encoded = format!("SELECT 1 AS i, ragged_encode([{codes}], '{file}') AS t");
        run_all(&ctx, &[format!("CREATE TABLE {table} AS {encoded}")]).await;
        for (extension, format) in [("parquet", "PARQUET"), ("arrow", "ARROW")] {
            let file = path(&format!("{extension}/{table}.{extension}"));
            run_all(&ctx, &[format!("COPY {table} TO '{file}' STORED AS {format}")]).await;
        }
    }
    let mixed = "SELECT t FROM a UNION ALL SELECT t FROM b";
    run_all(&ctx, &[format!("CREATE TABLE c AS {mixed}"), format!("CREATE VIEW v AS {mixed}")])
        .await;
    let (parquet, arrow) = (path("parquet"), path("arrow"));
    for from in [
        format!("({mixed})"),
        format!("({mixed} UNION ALL SELECT t FROM a)"),
        format!("(SELECT t FROM a UNION ALL ({mixed}))"),
        "(SELECT t FROM a UNION SELECT t FROM b)".to_owned(),
        "(SELECT t FROM a UNION ALL BY NAME SELECT t FROM b)".to_owned(),
        "(SELECT NULL AS t UNION ALL SELECT t FROM b UNION ALL SELECT t FROM a)".to_owned(),
        "c".to_owned(),
        "v".to_owned(),
        format!("'{parquet}/'"),
        format!("'{arrow}/'"),
    ] {
        for file in [&first, &second] {
            let e = error(&ctx, &format!("SELECT ragged_decode(t, '{file}') FROM {from}")).await;
            // For a UNION in the statement itself, the planner names the vocabulary of the last
            // query only.
            let is_union = from.starts_with('(') && e.contains("is the vocabulary");
            assert!(is_union || e.contains("tokens of several vocabularies"), "{from}: {e}");
        }
        // The tokens themselves can be read.
        let read = format!("SELECT t FROM {from} WHERE ragged_max(t) > 1");
        assert!(!query_rows(&ctx, &read).await.is_empty(), "{from}");
    }
    for from in [
        "(SELECT t FROM a UNION ALL SELECT t FROM a)".to_owned(),
        "(SELECT NULL AS t UNION ALL SELECT t FROM a)".to_owned(),
        "(SELECT t FROM a EXCEPT SELECT t FROM b)".to_owned(),
        format!("'{parquet}/a.parquet'"),
    ] {
        let read =
            format!("SELECT DISTINCT ragged_decode(t, '{first}') FROM {from} WHERE len(t) > 1");
        assert_eq!(query_rows(&ctx, &read).await, "[A, B]", "{from}");
    }
    for sql in [
        "INSERT INTO a SELECT 2, t FROM b",
        "EXPLAIN ANALYZE INSERT INTO a SELECT 2, t FROM b",
        "INSERT INTO a (t) SELECT t FROM c",
        "UPDATE a SET t = (SELECT t FROM b) WHERE i = 1",
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains("the column 't' of a has tokens of the vocabulary"), "{sql}: {e}");
    }
    for sql in [
        "INSERT INTO a SELECT 2, t FROM a",
        "INSERT INTO a VALUES (3, [1])",
        "UPDATE a SET t = [2] WHERE i = 3",
        "INSERT INTO c SELECT t FROM b",
    ] {
        query_batches(&ctx, sql).await.unwrap();
    }
    let read = format!("SELECT i, ragged_decode(t, '{first}') FROM a ORDER BY i");
    assert_eq!(query_rows(&ctx, &read).await, "1 [A, B]; 2 [A, B]; 3 [B]");
}

/// The vocabulary of a column is known by any of its files, and by any part of WITH RECURSIVE.
#[tokio::test]
async fn tokens_next_to_plain_integers_keep_their_vocabulary() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| display_path(&dir.path().join(name));
    let (first, second) = (path("first.parquet"), path("second.parquet"));
    write_two_vocabularies(&first, &second);
    let ctx = create_parallel_session();
    for folder in ["one", "two"] {
        let to = path(&format!("{folder}/a.parquet"));
        let plain = format!("COPY (SELECT [arrow_cast(2, 'UInt32')] AS t) TO '{to}'");
        run_all(&ctx, &[plain]).await;
    }
    for (folder, file, of, code) in
        [("one", "b", &first, "A"), ("two", "b", &first, "A"), ("two", "c", &second, "X")]
    {
        let to = path(&format!("{folder}/{file}.parquet"));
        run_all(&ctx, &[format!("COPY (SELECT ragged_encode(['{code}'], '{of}') AS t) TO '{to}'")])
            .await;
    }
    let decode = |folder: &str, file: &str| {
        format!("SELECT ragged_decode(t, '{file}') AS c FROM '{}/' ORDER BY t[1]", path(folder))
    };
    assert_eq!(query_rows(&ctx, &decode("one", &first)).await, "[A]; [B]");
    let e = error(&ctx, &decode("one", &second)).await;
    assert!(e.contains("but the tokens are of the vocabulary"), "{e}");
    let e = error(&ctx, &decode("two", &first)).await;
    assert!(e.contains("tokens of several vocabularies"), "{e}");

    let recursive = |next: &str, file: &str| {
        format!(
            "WITH RECURSIVE r AS (SELECT 1 AS i, ragged_encode(['A'], '{first}') AS t UNION ALL \
             SELECT i + 1, {next} FROM r WHERE i < 2) SELECT i, ragged_decode(t, '{file}') FROM r ORDER BY i"
        )
    };
    let integer = "[arrow_cast(2, 'UInt32')]";
    assert_eq!(query_rows(&ctx, &recursive(integer, &first)).await, "1 [A]; 2 [B]");
    let e = error(&ctx, &recursive(integer, &second)).await;
    assert!(e.contains("but the tokens are of the vocabulary"), "{e}");
    let other = format!("ragged_encode(['Y'], '{second}')");
    let e = error(&ctx, &recursive(&other, &first)).await;
    assert!(e.contains("the column 't' of WITH RECURSIVE has tokens of several"), "{e}");
}

#[tokio::test]
async fn chosen_tokens_keep_their_vocabulary() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| display_path(&dir.path().join(name));
    let (first, second) = (path("first.parquet"), path("second.parquet"));
    write_two_vocabularies(&first, &second);
    let ctx = create_parallel_session();
    let create = format!(
        "CREATE TABLE t AS SELECT 1 AS i, ragged_encode(['A', 'B'], '{first}') AS a, \
         ragged_encode(['B'], '{first}') AS b, ragged_encode(['X'], '{second}') AS x"
    );
    run_all(&ctx, &[create, "CREATE TABLE w AS SELECT i, a FROM t".to_owned()]).await;
    let cases = [
        ("CASE WHEN i > 0 THEN a ELSE b END", "[A, B]"),
        ("CASE i WHEN 2 THEN a WHEN 1 THEN CASE WHEN i > 0 THEN b END END", "[B]"),
        ("CASE WHEN i > 0 THEN a ELSE [2] END", "[A, B]"),
        ("coalesce(a, b)", "[A, B]"),
        ("ifnull(a, b)", "[A, B]"),
        ("if(i > 1, a, b)", "[B]"),
        ("nullif(a, x)", "[A, B]"),
        ("nvl2(x, b, a)", "[B]"),
        ("greatest(a, b)", "[B]"),
        ("least(a, b)", "[A, B]"),
        ("list_concat(a, b)", "[A, B, B]"),
    ];
    for (e, expected) in cases {
        for from in
            ["t".to_owned(), "(SELECT i, a, b, x FROM t UNION SELECT i, a, b, x FROM t)".to_owned()]
        {
            let decode = format!("SELECT ragged_decode({e}, '{first}') FROM {from}");
            assert_eq!(query_rows(&ctx, &decode).await, expected, "{decode}");
        }
        let named = format!("SELECT ragged_decode(c, '{second}') FROM (SELECT {e} AS c FROM t)");
        let refusal = error(&ctx, &named).await;
        assert!(refusal.contains("but the tokens are of the vocabulary"), "{e}: {refusal}");
        let plain =
            format!("SELECT {e} AS c FROM t WHERE {e} IS NOT NULL GROUP BY {e} ORDER BY {e}");
        assert!(!query_rows(&ctx, &plain).await.is_empty(), "{e}");
    }
    let mixed = [
        "CASE WHEN i > 0 THEN a ELSE x END",
        "CASE WHEN i > 0 THEN coalesce(a, b) ELSE least(x, b) END",
        "coalesce(a, x)",
        "nvl2(b, a, x)",
        "greatest(x, a)",
        "list_concat(a, x)",
    ];
    for e in mixed {
        for file in [&first, &second] {
            let decode = format!("SELECT ragged_decode({e}, '{file}') FROM t");
            let refusal = error(&ctx, &decode).await;
            assert!(refusal.contains("tokens of several vocabularies"), "{e}: {refusal}");
        }
        let refusal = error(&ctx, &format!("INSERT INTO w SELECT i, {e} FROM t")).await;
        assert!(refusal.contains("gets tokens of several vocabularies"), "{e}: {refusal}");
    }
    run_all(&ctx, &["CREATE VIEW v AS SELECT coalesce(a, x) AS c FROM t"]).await;
    let refusal = error(&ctx, &format!("SELECT ragged_decode(c, '{first}') FROM v")).await;
    assert!(refusal.contains("tokens of several vocabularies"), "{refusal}");
    run_all(&ctx, &["INSERT INTO w SELECT 2, coalesce(b, a) FROM t"]).await;
    let read = format!("SELECT ragged_decode(a, '{first}') FROM w ORDER BY i");
    assert_eq!(query_rows(&ctx, &read).await, "[A, B]; [B]");
}

/// When this test fails, `serrate_chosen_tokens` can be removed.
#[tokio::test]
async fn stock_case_still_has_no_metadata() {
    let ctx = SessionContext::new();
    let case =
        "CASE WHEN i > 0 THEN with_metadata(i, 'k', 'v') ELSE with_metadata(i + 1, 'k', 'v') END";
    let query = format!("SELECT {case} AS c FROM (VALUES (1)) AS t(i)");
    let batches = stock_batches(&ctx, &query).await.unwrap();
    assert!(batches[0].schema().field(0).metadata().is_empty());
}
