//! Numbers compare the same in memory, in Arrow files, and in Parquet files with statistics and
//! Bloom filters.

use super::*;

async fn run(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    serrate::sql::sql(ctx, sql).await?.collect().await
}

async fn query_rows(ctx: &SessionContext, sql: &str) -> String {
    let batches = run(ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    datafusion::arrow::util::display::array_value_to_string(batches[0].column(0), 0).unwrap()
}

/// Integers around 2^53 and at the ends of their types, the nearest floats, both zeros, NaN and
/// both infinities.
const ROWS: &str = "SELECT * FROM (VALUES
    (0, 9007199254740991, 9007199254740991.0, 0.0), (1, 9007199254740992, 9007199254740992.0, -0.0),
    (2, 9007199254740993, 9007199254740994.0, 'NaN'::DOUBLE), (3, -9007199254740993, -9007199254740992.0, 'inf'::DOUBLE),
    (4, 9223372036854775807, 9223372036854775808.0, '-inf'::DOUBLE), (5, -9223372036854775807, -9223372036854775808.0, 1.5),
    (6, 0, -0.0, NULL), (7, NULL, NULL, 2.0), (8, 1, 'NaN'::DOUBLE, 'NaN'::DOUBLE), (9, 5, 1e300, -1.0)) t(id, i, f, z)";

/// Creates the table `m` in memory, and tables of all formats with its rows.
async fn create_tables(ctx: &SessionContext, dir: &Path) -> Vec<String> {
    let table = format!(
        "CREATE TABLE m AS SELECT id, i, f, z, [i, 1] AS il, [f, 1.0] AS fl, arrow_cast(z, 'Float32') AS g,
         arrow_cast(i, 'Int64') + CASE WHEN i < 0 THEN NULL ELSE 0 END AS p FROM ({ROWS})"
    );
    run(ctx, &table).await.unwrap();
    run(ctx, "CREATE TABLE n AS SELECT *, arrow_cast(p, 'UInt64') AS u FROM m").await.unwrap();
    let mut tables = Vec::new();
    for (name, options) in [
        ("groups.parquet", "OPTIONS (max_row_group_size 2, 'bloom_filter_on_write' 'true')"),
        ("one.parquet", ""),
        ("rows.arrow", ""),
    ] {
        let path = display_path(&dir.join(name));
        let copy = format!("COPY (SELECT * FROM n ORDER BY id) TO '{path}' {options}");
        run(ctx, &copy).await.unwrap();
        tables.push(format!("'{path}'"));
    }
    tables
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_find_the_same_rows_in_memory_and_in_files() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let tables = create_tables(&ctx, dir.path()).await;
    let mut conditions = Vec::new();
    let values = [
        "9007199254740992.0",
        "9007199254740993",
        "9223372036854775808.0",
        "18446744073709551615",
        "0",
        "0.0",
        "-0.0",
        "'NaN'::DOUBLE",
        "'inf'::DOUBLE",
        "1.5",
    ];
    for value in values {
        for column in ["i", "u", "f", "z", "g"] {
            for op in ["=", ">", "<", "<>"] {
                conditions.push(format!("{column} {op} {value}"));
            }
            conditions.push(format!("{column} IN ({value}, 5)"));
            conditions.push(format!("{column} BETWEEN {value} AND {value}"));
        }
        if !value.starts_with("184") {
            for list in ["il", "fl"] {
                conditions.push(format!("ragged_any({list} == {value})"));
                conditions.push(format!("ragged_any(ragged_isin({list}, [{value}, 77]))"));
            }
        }
    }
    conditions
        .extend(["z <> z", "z = z", "i = f", "u = f", "u = i", "NOT z > 1"].map(String::from));
    // The reference computes conditions as values, which no scan can filter by, all in one pass.
    let expected: Vec<String> = {
        let columns =
            conditions.iter().map(|c| format!("array_agg(CASE WHEN {c} THEN id END ORDER BY id)"));
        let mut expected = Vec::new();
        for column in columns {
            let ids = query_rows(&ctx, &format!("SELECT {column} FROM n")).await;
            let ids = ids.trim_matches(['[', ']']).split(", ").filter(|id| !id.is_empty());
            expected.push(ids.collect::<Vec<_>>().join(", "));
        }
        expected
    };
    let mut wrong = String::new();
    for (condition, expected) in conditions.iter().zip(expected) {
        for table in std::iter::once(&"n".to_owned()).chain(&tables) {
            let sql = format!("SELECT array_agg(id ORDER BY id) FROM {table} WHERE {condition}");
            let ids = query_rows(&ctx, &sql).await;
            if ids.trim_matches(['[', ']']) != expected {
                wrong.push_str(&format!("{table} WHERE {condition}: {ids}, not {expected}\n"));
            }
        }
    }
    assert_eq!(wrong, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_orders_and_extremes_are_those_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let tables = create_tables(&ctx, dir.path()).await;
    let mut queries = Vec::new();
    for (a, b) in [
        ("z", "z"),
        ("f", "f"),
        ("i", "f"),
        ("f", "i"),
        ("u", "f"),
        ("u", "i"),
        ("i", "z"),
        ("g", "z"),
    ] {
        queries.push(format!(
            "SELECT array_agg(x.id * 10 + y.id ORDER BY x.id, y.id) FROM TABLE x JOIN TABLE y ON x.{a} = y.{b}"
        ));
        queries.push(format!("SELECT array_agg(id ORDER BY id) FROM TABLE WHERE {a} IN (SELECT {b} FROM TABLE WHERE id > 1)"));
    }
    for by in ["z", "z DESC", "f", "f DESC", "g DESC", "i DESC"] {
        queries.push(format!(
            "SELECT array_agg(id) FROM (SELECT id FROM TABLE ORDER BY {by} NULLS LAST, id LIMIT 3)"
        ));
    }
    let mut wrong = String::new();
    for query in queries {
        let expected = query_rows(&ctx, &query.replace("TABLE", "n")).await;
        for table in &tables {
            let rows = query_rows(&ctx, &query.replace("TABLE", table)).await;
            if rows != expected {
                wrong.push_str(&format!("{table}: {query}: {rows}, not {expected}\n"));
            }
        }
    }
    assert_eq!(wrong, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn integers_and_floats_compare_as_floats() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let mut tables = create_tables(&ctx, dir.path()).await;
    tables.push("n".into());
    for table in tables {
        for (condition, expected) in [
            ("i = 9007199254740992.0", "[1, 2]"),
            ("i IN (9007199254740992.0)", "[1, 2]"),
            ("i IN (9007199254740992.0, 0.5)", "[1, 2]"),
            ("ragged_any(il == 9007199254740992.0)", "[1, 2]"),
            ("ragged_any(ragged_isin(il, [9007199254740992.0]))", "[1, 2]"),
            ("f = 9007199254740993", "[1]"),
            ("ragged_any(ragged_isin(fl, [9007199254740993]))", "[1]"),
            ("ragged_any(fl == 9007199254740993)", "[1]"),
            ("i = 9007199254740993", "[2]"),
            ("z = 0.0", "[0, 1]"),
            ("z = -0.0", "[0, 1]"),
            ("z > 1.5", "[2, 3, 7, 8]"),
            ("z = 'NaN'::DOUBLE", "[2, 8]"),
            ("z IN ('NaN'::DOUBLE, 2.0)", "[2, 7, 8]"),
        ] {
            let sql = format!("SELECT array_agg(id ORDER BY id) FROM {table} WHERE {condition}");
            assert_eq!(query_rows(&ctx, &sql).await, expected, "{table}: {condition}");
        }
    }
    // Row groups are still skipped by integers.
    let groups = display_path(&dir.path().join("groups.parquet"));
    let plan =
        query_text(&ctx, &format!("EXPLAIN ANALYZE SELECT id FROM '{groups}' WHERE id = 3")).await;
    assert!(plan.contains("row_groups_pruned_statistics=5 total → 1 matched"), "{plan}");
}

/// Like [`ROWS`], without NULL, which `.nrt` files cannot hold; `u` reaches the end of its type.
const FULL: &str = "SELECT id, i, f, z, arrow_cast(u, 'UInt64') AS u, [i, 1] AS il, [f, 1.0] AS fl FROM (VALUES
    (0, 9007199254740991, 9007199254740991.0, 0.0, '9007199254740993'), (1, 9007199254740992, 9007199254740992.0, -0.0, '9007199254740992'),
    (2, 9007199254740993, 9007199254740994.0, 'NaN'::DOUBLE, '18446744073709551615'), (3, -9007199254740993, -9007199254740992.0, 'inf'::DOUBLE, '9223372036854775808'),
    (4, 9223372036854775807, 9223372036854775808.0, '-inf'::DOUBLE, '9223372036854775807'), (5, -9223372036854775807, -9223372036854775808.0, 1.5, '18446744073709549568'),
    (6, 0, -0.0, 7.0, '0'), (7, -1, 18446744073709551616.0, 2.0, '1'), (8, 1, 'NaN'::DOUBLE, 'NaN'::DOUBLE, '5'), (9, 5, 1e300, -1.0, '9007199254740991')) t(id, i, f, z, u)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_nrt_files_are_those_of_all_others() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    run(&ctx, "SET serrate.nrt_nan = 'nan'").await.unwrap();
    run(&ctx, &format!("CREATE TABLE n AS {FULL}")).await.unwrap();
    let mut tables = Vec::new();
    for name in ["rows.nrt", "rows.arrow", "rows.parquet"] {
        let path = display_path(&dir.path().join(name));
        run(&ctx, &format!("COPY (SELECT * FROM n ORDER BY id) TO '{path}'")).await.unwrap();
        tables.push(format!("'{path}'"));
    }
    let mut queries = Vec::new();
    let values = [
        "9007199254740992.0",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808.0",
        "18446744073709551615",
        "-1",
        "0",
        "-0.0",
        "'NaN'::DOUBLE",
        "'inf'::DOUBLE",
        "1.5",
    ];
    let ids =
        |condition: &str| format!("SELECT array_agg(id ORDER BY id) FROM TABLE WHERE {condition}");
    for value in values {
        for column in ["i", "u", "f", "z"] {
            for op in ["=", ">", "<=", "<>"] {
                queries.push(ids(&format!("{column} {op} {value}")));
            }
            queries.push(ids(&format!("{column} IN ({value}, 5)")));
        }
        if !value.starts_with("184") {
            for list in ["il", "fl"] {
                queries.push(ids(&format!("ragged_any({list} == {value})")));
                queries.push(ids(&format!("ragged_any({list} > {value})")));
            }
        }
    }
    for condition in ["z <> z", "z = z", "i = f", "u = f", "u = i", "u > i", "u < f", "NOT z > 1"] {
        queries.push(ids(condition));
    }
    for (a, b) in
        [("z", "z"), ("f", "f"), ("i", "f"), ("u", "f"), ("u", "i"), ("i", "u"), ("i", "z")]
    {
        queries.push(format!(
            "SELECT array_agg(x.id * 10 + y.id ORDER BY x.id, y.id) FROM TABLE x JOIN TABLE y ON x.{a} = y.{b}"
        ));
    }
    for by in ["z", "f", "i", "u"] {
        for order in ["", "DESC"] {
            queries.push(format!("SELECT array_agg(id ORDER BY {by} {order}, id) FROM TABLE"));
            queries.push(format!(
                "SELECT array_agg(id) FROM (SELECT id FROM TABLE ORDER BY {by} {order}, id LIMIT 4)"
            ));
        }
        queries.push(format!(
            "SELECT array_agg(v ORDER BY v) FROM (SELECT DISTINCT {by} AS v FROM TABLE)"
        ));
        queries.push(format!("SELECT array_agg(n ORDER BY n) FROM (SELECT {by}, count(*) AS n FROM TABLE GROUP BY {by})"));
        queries.push(format!("SELECT [min({by})::TEXT, max({by})::TEXT] FROM TABLE"));
    }
    let mut wrong = String::new();
    for query in queries {
        let expected = query_rows(&ctx, &query.replace("TABLE", "n")).await;
        for table in &tables {
            let rows = query_rows(&ctx, &query.replace("TABLE", table)).await;
            if rows != expected {
                wrong.push_str(&format!("{table}: {query}: {rows}, not {expected}\n"));
            }
        }
    }
    assert_eq!(wrong, "");
    // The answers from memory are right, too.
    for (condition, expected) in [
        ("u = 18446744073709551615", "[2]"),
        ("u > 9223372036854775807", "[2, 3, 5]"),
        ("u = i", "[1, 4, 6]"),
        ("z = 0.0", "[0, 1]"),
        ("z > 2.0", "[2, 3, 6, 8]"),
    ] {
        for table in &tables {
            let query = ids(condition).replace("TABLE", table);
            assert_eq!(query_rows(&ctx, &query).await, expected, "{table}: {condition}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_signed_and_unsigned_integers_compare_exactly() {
    let ctx = create_parallel_session();
    run(
        &ctx,
        "CREATE TABLE n AS SELECT ragged_cast(a, 'UInt64') AS u, b AS i FROM (VALUES
        (['9007199254740993', '9223372036854775807', '18446744073709551615', NULL, '0'],
         [9007199254740992, 9223372036854775806, -1, 1, -9223372036854775807])) t(a, b)",
    )
    .await
    .unwrap();
    for (expr, expected) in [
        ("ragged_eq(u, i)", "[false, false, false, , false]"),
        ("ragged_ne(i, u)", "[true, true, true, , true]"),
        ("ragged_gt(u, i)", "[true, true, true, , true]"),
        ("ragged_lt(i, u)", "[true, true, true, , true]"),
        ("ragged_ge(i, u)", "[false, false, false, , false]"),
        ("ragged_le(u, i)", "[false, false, false, , false]"),
        ("u > -1", "[true, true, true, , true]"),
        ("u == 18446744073709551615", "[false, false, true, , false]"),
        ("i == 9223372036854775806", "[false, true, false, false, false]"),
        ("u = i", "false"),
        ("ragged_head(u, 1) = ragged_head(i, 1)", "false"),
        ("ragged_isin(u, i)", "[false, false, false, , false]"),
    ] {
        assert_eq!(query_rows(&ctx, &format!("SELECT {expr} FROM n")).await, expected, "{expr}");
    }
}

#[tokio::test]
async fn positions_and_lengths_are_signed() {
    let ctx = create_parallel_session();
    let from = "FROM (VALUES ([5, 6, 7])) t(l)";
    for (sql, expected) in [
        ("SELECT l[len(l)]", 7),
        ("SELECT l[array_length(l)]", 7),
        ("SELECT l[list_position(l, 6)]", 6),
        ("SELECT (l[1:len(l) - 1])[2]", 6),
        ("SELECT list_position(l, 6) - 5", -3),
        ("SELECT (list_positions(l, 7))[1] - 4", -1),
        ("SELECT CAST(list_contains(l, len(l) + 3) AS INT)", 1),
    ] {
        let frame = serrate::sql::sql(&ctx, &format!("{sql} {from}")).await.unwrap();
        let found = frame.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
        let found = datafusion::arrow::compute::cast(
            found[0].column(0),
            &datafusion::arrow::datatypes::DataType::Int64,
        )
        .unwrap();
        assert_eq!(found.as_primitive::<Int64Type>().value(0), expected, "{sql}");
    }
}

/// When this test fails, `functions::list_counts` can be removed.
#[tokio::test]
async fn stock_positions_are_still_unsigned() {
    let ctx = SessionContext::new();
    let e = stock_error(&ctx, "SELECT make_array(1, 2)[array_position(make_array(1, 2), 2)]").await;
    assert!(e.contains("UInt64"), "{e}");
}

#[tokio::test]
async fn names_right_after_numbers_are_refused() {
    let ctx = serrate::sql::session();
    for (sql, expected) in [
        ("SELECT 1_000", "1_000 is not a number; write 1000, without underscores"),
        (
            "SELECT 2 + 12abc",
            "12abc is neither a number nor a name; write 12 abc for the number 12 with the alias abc",
        ),
    ] {
        let message = rows_or_error(&ctx, sql).await;
        assert!(message.contains(expected), "{message}");
    }
    for (sql, expected) in [
        ("SELECT 1e3 AS t1", "1000.0"),
        ("SELECT a1_0 FROM (SELECT 5 AS a1_0)", "5"),
        ("SELECT '1_000'", "1_000"),
    ] {
        assert_eq!(rows_or_error(&ctx, sql).await, expected);
    }
}

#[tokio::test]
async fn log_of_powers_of_ten_is_exact() {
    expect_rows(
        &[],
        &[("SELECT log(1000), floor(log(1000)), log(2, 8), log(NULL)", "3.0 3.0 3.0 NULL")],
    )
    .await;
}

#[tokio::test]
async fn stock_log_is_still_inexact() {
    let found = rows_or_error(&SessionContext::new(), "SELECT log(1000.0::DOUBLE)").await;
    assert_eq!(found, "2.9999999999999996");
}

#[tokio::test]
async fn lengths_of_dimensions_are_null_where_there_is_none() {
    let ctx = create_parallel_session();
    let sql = "SELECT coalesce(array_length(x, 2), -1) FROM (VALUES (1, [[1, 2]]), (2, []), (3, [NULL, [1]]), (4, NULL), (5, [[]])) v(id, x) ORDER BY id";
    assert_eq!(query_ints(&ctx, sql).await, [2, -1, -1, -1, 0]);
    let sql = "SELECT coalesce(array_length(x, d), -1) FROM (VALUES (1, [[1, 2]], 1), (2, [[1, 2]], 3), (3, [[1]], 0), (4, [[1]], NULL)) v(id, x, d) ORDER BY id";
    assert_eq!(query_ints(&ctx, sql).await, [1, -1, -1, -1]);
}

/// When this fails, `measure_dimensions` of `functions::list_counts` can go.
#[tokio::test]
async fn stock_lengths_of_dimensions_still_panic() {
    let ctx = SessionContext::new();
    let sql =
        "SELECT array_length(x, 2) FROM (VALUES (make_array(make_array(1))), (make_array())) v(x)";
    let frame = ctx.sql(sql).await.unwrap();
    assert!(!matches!(tokio::spawn(frame.collect()).await, Ok(Ok(_))));
}

#[tokio::test]
async fn numbers_at_the_end_of_their_type_are_rounded() {
    let cases = [
        (
            "SELECT ceil(999.99::DECIMAL(5,2)), floor((-999.99)::DECIMAL(5,2)), ceil(NULL::DECIMAL(5,2))",
            "1000.00 -1000.00 NULL",
        ),
        (
            "SELECT ceil(x), floor(x) FROM (VALUES (999.99::DECIMAL(5,2)), (1.5::DECIMAL(5,2))) t(x)",
            "1000.00 999.00; 2.00 1.00",
        ),
        (
            "SELECT x FROM (VALUES (999.99::DECIMAL(5,2)), (1.5::DECIMAL(5,2))) t(x) WHERE floor(x) = 999",
            "999.99",
        ),
        ("SELECT ceil(1.5), floor(1.5::REAL), ceil(2)", "2.0 1.0 2.0"),
        (
            "SELECT round(1.5, 400), round(123.456, -400), round(1e300, 300), round('NaN'::DOUBLE, 400), round('inf'::DOUBLE, 2), round('-inf'::DOUBLE, 400), round('inf'::REAL, -400)",
            "1.5 0.0 1e300 NaN inf -inf inf",
        ),
        (
            "SELECT round(x, n) FROM (VALUES (1.25, 1), (1.5, 400), (NULL, 400), (7.0, NULL)) t(x, n)",
            "1.3; 1.5; NULL; NULL",
        ),
    ];
    expect_rows(&[], &cases).await;
}

/// When this test fails, `scalar::rounding::build_wide_ceilings` can be removed.
#[tokio::test]
async fn stock_ceilings_of_decimals_still_fail() {
    let refused =
        stock_error(&SessionContext::new(), "SELECT ceil(arrow_cast(999.99, 'Decimal128(5, 2)'))")
            .await;
    assert!(refused.contains("overflow"), "{refused}");
}

/// When this test fails, `scalar::rounding::build_finite_round` can be removed.
#[tokio::test]
async fn stock_rounds_to_many_places_are_still_nan() {
    let shown = stock_text(&SessionContext::new(), "SELECT round(1.5, 400) AS r").await;
    assert!(shown.contains("NaN"), "{shown}");
}
