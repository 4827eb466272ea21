//! Comparisons of numbers return the same in memory, over Arrow files, and over Parquet files with
//! statistics and Bloom filters; rounding and casts of numbers.

use super::*;

async fn query_first(ctx: &SessionContext, sql: &str) -> String {
    let batches = run_query(ctx, sql).await;
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
    query_batches(ctx, &table).await.unwrap();
    query_batches(ctx, "CREATE TABLE n AS SELECT *, arrow_cast(p, 'UInt64') AS u FROM m")
        .await
        .unwrap();
    let mut tables = Vec::new();
    for (name, options) in [
        ("groups.parquet", "OPTIONS (max_row_group_size 2, 'bloom_filter_on_write' 'true')"),
        ("one.parquet", ""),
        ("rows.arrow", ""),
    ] {
        let path = display_path(&dir.join(name));
        let copy = format!("COPY (SELECT * FROM n ORDER BY id) TO '{path}' {options}");
        query_batches(ctx, &copy).await.unwrap();
        tables.push(format!("'{path}'"));
    }
    tables
}

/// Returns one of two tables for query `i`. Each six consecutive queries differ in their operator,
/// so that each operator is tested with both tables.
fn pick_in_turn(i: usize, tables: &[String]) -> &String {
    &tables[(i + i / 6) % 2]
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
    // The expected ids are computed without a WHERE, so that no scan filters rows.
    let mut expected = Vec::new();
    for some in conditions.chunks(20) {
        let columns = some.iter().enumerate().map(|(i, condition)| {
            format!("array_agg(CASE WHEN {condition} THEN id END ORDER BY id) AS ids{i}")
        });
        let sql = format!("SELECT {} FROM n", columns.collect::<Vec<_>>().join(", "));
        let batches = run_query(&ctx, &sql).await;
        for column in batches[0].columns() {
            let ids = datafusion::arrow::util::display::array_value_to_string(column, 0).unwrap();
            let ids = ids.trim_matches(['[', ']']).split(", ").filter(|id| !id.is_empty());
            expected.push(ids.collect::<Vec<_>>().join(", "));
        }
    }
    assert_eq!(expected.len(), conditions.len());
    let mut wrong = String::new();
    for (i, (condition, expected)) in conditions.iter().zip(expected).enumerate() {
        for table in [&"n".to_owned(), &tables[0], pick_in_turn(i, &tables[1..])] {
            let sql = format!("SELECT array_agg(id ORDER BY id) FROM {table} WHERE {condition}");
            let ids = query_first(&ctx, &sql).await;
            if ids.trim_matches(['[', ']']) != expected {
                wrong.push_str(&format!("{table} WHERE {condition}: {ids}, not {expected}\n"));
            }
        }
    }
    assert_eq!(wrong, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_sorts_and_extremes_over_files_equal_those_in_memory() {
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
        let expected = query_first(&ctx, &query.replace("TABLE", "n")).await;
        for table in &tables {
            let rows = query_first(&ctx, &query.replace("TABLE", table)).await;
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
            assert_eq!(query_first(&ctx, &sql).await, expected, "{table}: {condition}");
        }
    }
    // Conditions on integers still skip row groups.
    let groups = display_path(&dir.path().join("groups.parquet"));
    let plan =
        query_text(&ctx, &format!("EXPLAIN ANALYZE SELECT id FROM '{groups}' WHERE id = 3")).await;
    assert!(plan.contains("row_groups_pruned_statistics=5 total → 1 matched"), "{plan}");
}

/// Like [`ROWS`], without NULL, which `.nrt` files cannot hold, and with a column `u` of unsigned
/// integers up to the greatest.
const FULL: &str = "SELECT id, i, f, z, arrow_cast(u, 'UInt64') AS u, [i, 1] AS il, [f, 1.0] AS fl FROM (VALUES
    (0, 9007199254740991, 9007199254740991.0, 0.0, '9007199254740993'), (1, 9007199254740992, 9007199254740992.0, -0.0, '9007199254740992'),
    (2, 9007199254740993, 9007199254740994.0, 'NaN'::DOUBLE, '18446744073709551615'), (3, -9007199254740993, -9007199254740992.0, 'inf'::DOUBLE, '9223372036854775808'),
    (4, 9223372036854775807, 9223372036854775808.0, '-inf'::DOUBLE, '9223372036854775807'), (5, -9223372036854775807, -9223372036854775808.0, 1.5, '18446744073709549568'),
    (6, 0, -0.0, 7.0, '0'), (7, -1, 18446744073709551616.0, 2.0, '1'), (8, 1, 'NaN'::DOUBLE, 'NaN'::DOUBLE, '5'), (9, 5, 1e300, -1.0, '9007199254740991')) t(id, i, f, z, u)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_over_nrt_files_equal_those_over_other_formats() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    query_batches(&ctx, "SET serrate.nrt_nan = 'nan'").await.unwrap();
    query_batches(&ctx, &format!("CREATE TABLE n AS {FULL}")).await.unwrap();
    let mut tables = Vec::new();
    for name in ["rows.nrt", "rows.arrow", "rows.parquet"] {
        let path = display_path(&dir.path().join(name));
        query_batches(&ctx, &format!("COPY (SELECT * FROM n ORDER BY id) TO '{path}'"))
            .await
            .unwrap();
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
    for (i, query) in queries.iter().enumerate() {
        let expected = query_first(&ctx, &query.replace("TABLE", "n")).await;
        for table in [&tables[0], pick_in_turn(i, &tables[1..])] {
            let rows = query_first(&ctx, &query.replace("TABLE", table)).await;
            if rows != expected {
                wrong.push_str(&format!("{table}: {query}: {rows}, not {expected}\n"));
            }
        }
    }
    assert_eq!(wrong, "");
    // The loop above compares files with memory only. These expected ids do not depend on either.
    for (condition, expected) in [
        ("u = 18446744073709551615", "[2]"),
        ("u > 9223372036854775807", "[2, 3, 5]"),
        ("u = i", "[1, 4, 6]"),
        ("z = 0.0", "[0, 1]"),
        ("z > 2.0", "[2, 3, 6, 8]"),
    ] {
        for table in &tables {
            let query = ids(condition).replace("TABLE", table);
            assert_eq!(query_first(&ctx, &query).await, expected, "{table}: {condition}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_signed_and_unsigned_integers_compare_exactly() {
    let ctx = create_parallel_session();
    query_batches(
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
        assert_eq!(query_first(&ctx, &format!("SELECT {expr} FROM n")).await, expected, "{expr}");
    }
}

#[tokio::test]
async fn subqueries_compare_with_lists_of_narrow_floats_as_columns_do() {
    let tables = [
        "CREATE TABLE f AS SELECT arrow_cast([v], 'List(Float32)') AS x, v AS y FROM (VALUES (0.1), (0.5)) t(v)",
        "CREATE TABLE h AS SELECT arrow_cast([[v]], 'LargeList(List(Float16))') AS x, v AS y FROM (VALUES (0.1), (0.5)) t(v)",
    ];
    let cases = [
        (
            "SELECT x = 0.1, x = y, x = (SELECT 0.1), (SELECT 0.1) = x, ragged_eq(x, (SELECT 0.1)) FROM f ORDER BY y",
            "[true] [false] [false] [false] [false]; [false] [true] [false] [false] [false]",
        ),
        (
            "SELECT x = (SELECT 0.5), x = (SELECT max(y) FROM f), x = (SELECT 0.1::DECIMAL(3, 1)) FROM f ORDER BY y",
            "[false] [false] [false]; [true] [true] [false]",
        ),
        (
            "SELECT x > 0.1, x > y, x > (SELECT 0.1), x <> (SELECT 0.1) FROM f ORDER BY y",
            "[false] [true] [true] [true]; [true] [false] [true] [true]",
        ),
        (
            "SELECT ragged_isin(x, [0.1]), ragged_isin(x, [y]), ragged_isin(x, (SELECT [0.1])), ragged_isin(x, (SELECT array_agg(y) FROM f)) FROM f ORDER BY y",
            "[true] [false] [false] [false]; [false] [true] [false] [true]",
        ),
        ("SELECT x IN (0.1), x IN (y, 0.1) FROM f ORDER BY y", "[true] [true]; [false] [true]"),
        // The optimizer replaces `y` by the literal 0.1.
        (
            "SELECT x = y, ragged_isin(x, [y]) FROM (SELECT x, 0.1 AS y FROM f) t ORDER BY x",
            "[false] [false]; [false] [false]",
        ),
        (
            "SELECT x = y, x = (SELECT 0.1), x = (SELECT 0.5), x = 0.1 FROM h ORDER BY y",
            "[[false]] [[false]] [[false]] [[true]]; [[true]] [[false]] [[true]] [[false]]",
        ),
        (
            "SELECT ragged_between(x, 0.1, 0.1), ragged_between(x, y, y), ragged_between(x, (SELECT 0.1), (SELECT 0.1)), ragged_between(x, 0, (SELECT 0.1), '[]') FROM f ORDER BY y",
            "[true] [false] [false] [false]; [false] [true] [false] [false]",
        ),
        ("SELECT y FROM f WHERE ragged_any(x = (SELECT 0.5)) ORDER BY y", "0.5"),
        ("SELECT y FROM f WHERE ragged_any(x = (SELECT 0.1)) ORDER BY y", ""),
    ];
    expect_rows(&tables, &cases).await;
}

/// Common subexpression elimination of DataFusion numbers the arguments of an expression. A
/// subquery before a common expression must not shift these numbers.
#[tokio::test]
async fn subqueries_before_common_expressions_change_no_value() {
    let tables = [
        "CREATE TABLE f AS SELECT arrow_cast([v, v + 1], 'List(Float32)') AS x, v AS y FROM (VALUES (0.25), (0.5)) t(v)",
    ];
    let cases = [
        (
            "SELECT (SELECT max(y) FROM f) = x::DOUBLE[], x::DOUBLE[] = (SELECT max(y) FROM f) FROM f ORDER BY y",
            "[false, false] [false, false]; [true, false] [true, false]",
        ),
        (
            "SELECT ragged_sub((SELECT max(y) FROM f), ragged_add(x, y + 1)), ragged_add(x, y + 1), y + 1 FROM f ORDER BY y",
            "[-1.0, -2.0] [1.5, 2.5] 1.25; [-1.5, -2.5] [2.0, 3.0] 1.5",
        ),
        (
            "SELECT ragged_add((SELECT max(y) FROM f), ragged_mul(x, 2)), ragged_mul(x, 2), ragged_mul(ragged_mul(x, 2), 3) FROM f ORDER BY y",
            "[1.0, 3.0] [0.5, 2.5] [1.5, 7.5]; [1.5, 3.5] [1.0, 3.0] [3.0, 9.0]",
        ),
    ];
    expect_rows(&tables, &cases).await;
}

#[tokio::test]
async fn strings_of_large_numbers_are_not_infinite() {
    let tables = [
        "CREATE TABLE w AS SELECT id, arrow_cast([v], 'List(Float32)') AS x, arrow_cast([v], 'List(Float16)') AS h, arrow_cast([v], 'List(Float64)') AS d FROM (VALUES (1, 'inf'), (2, '-inf'), (3, '1')) t(id, v)",
    ];
    let cases = [
        (
            "SELECT x = '1e300', x <> '1e300', x < '1e300', x = '-1e300', x = 'inf', '-inf' = x FROM w ORDER BY id",
            "[false] [true] [false] [false] [true] [false]; [false] [true] [true] [false] [false] [true]; [false] [true] [true] [false] [false] [false]",
        ),
        (
            "SELECT x IN ('1e300'), x IN ('1e300', '1'), x IN ('inf'), ragged_isin(d, ['1e400']) FROM w ORDER BY id",
            "[false] [false] [true] [false]; [false] [false] [false] [false]; [false] [true] [false] [false]",
        ),
        (
            "SELECT h = '70000', h < '70000', h = 'inf', h IN ('70000'), d = '1e300' FROM w ORDER BY id",
            "[false] [false] [true] [false] [false]; [false] [true] [false] [false] [false]; [false] [true] [false] [false] [false]",
        ),
        (
            "SELECT x = '0.1' FROM (SELECT arrow_cast([0.1, NULL], 'List(Float32)') AS x)",
            "[true, ]",
        ),
    ];
    expect_rows(&tables, &cases).await;
    let ctx = create_parallel_session();
    let sql = "SELECT [1.5] = '1e400'";
    let e = rows_or_error(&ctx, sql).await;
    assert!(e.contains("the string '1e400' is beyond the range of Float64"), "{e}");
}

#[tokio::test]
async fn strings_of_large_numbers_are_not_infinite_next_to_scalars() {
    let tables = [
        "CREATE TABLE w AS SELECT id, arrow_cast(v::DOUBLE, 'Float32') AS x, arrow_cast(v::DOUBLE, 'Float16') AS h, v::DOUBLE AS d FROM (VALUES (1, 'inf'), (2, '-inf'), (3, '0.1'), (4, NULL)) t(id, v)",
    ];
    let cases = [
        (
            "SELECT x = '1e300', x <> '1e300', x < '1e300', x = '-1e300', x = 'inf', '-inf' = x, x IS DISTINCT FROM '1e300' FROM w ORDER BY id",
            "false true false false true false true; false true true false false true true; false true true false false false true; NULL NULL NULL NULL NULL NULL true",
        ),
        (
            "SELECT x IN ('1e300'), x IN ('1e300', '0.1'), x NOT IN ('1e300', 'inf'), x BETWEEN '0.1' AND '1e300' FROM w ORDER BY id",
            "false false false false; false false true false; false true true true; NULL NULL NULL NULL",
        ),
        (
            "SELECT h = '70000', h < '70000', h = 'inf', h = '0.1' FROM w WHERE id <> 2 ORDER BY id",
            "false false true false; false true false true; NULL NULL NULL NULL",
        ),
        (
            "SELECT CASE x WHEN '1e300' THEN 1 WHEN '0.1' THEN 2 ELSE 3 END, nullif(x, '1e300'), least(x, '1e300') FROM w WHERE id <> 3 ORDER BY id",
            "3 inf 1e300; 3 -inf -inf; 3 NULL 1e300",
        ),
        (
            "SELECT list_contains([x], '1e300'), '1e300' IN [x], list_position([x], '1e300'), array_has_any([x], ['1e300', '0.1']), list_contains(['1e300', '0.1'], x), x = ANY(['1e300', 'inf']) FROM w WHERE id <> 4 ORDER BY id",
            "false false NULL false false true; false false NULL false false false; false false NULL true true false",
        ),
        ("SELECT id FROM w WHERE x >= '1e300'", "1"),
        ("SELECT d = '1e300', d = 'inf' FROM w WHERE id = 1", "false true"),
    ];
    expect_rows(&tables, &cases).await;
    let ctx = create_parallel_session();
    run_all(&ctx, &tables).await;
    for sql in ["SELECT d < '1e400' FROM w", "SELECT x IN ('1', '-1e400') FROM w"] {
        let e = rows_or_error(&ctx, sql).await;
        assert!(e.contains("1e400' is beyond the range of Float64; write 'inf'"), "{e}");
    }
}

#[tokio::test]
async fn casts_beyond_the_range_of_a_float_are_errors() {
    let ctx = create_parallel_session();
    let tables = [
        "CREATE TABLE d AS SELECT * FROM (VALUES (1, 1e300), (2, 0.5), (3, NULL)) v(id, x)",
        "CREATE TABLE r (x FLOAT)",
        "INSERT INTO r VALUES (1.5)",
    ];
    run_all(&ctx, &tables).await;
    for sql in [
        "SELECT 1e300::FLOAT",
        "SELECT -(1e300)::FLOAT",
        "SELECT 3.4028236e38::FLOAT",
        "SELECT x::FLOAT FROM d",
        "SELECT [x]::FLOAT[] FROM d",
        "SELECT [[1e300]]::FLOAT[][]",
        "SELECT sum(x::FLOAT) FROM d",
        "INSERT INTO r VALUES (1e300)",
        "INSERT INTO r SELECT x FROM d",
        "UPDATE r SET x = 1e300",
        "CREATE TABLE c AS SELECT x::FLOAT AS x FROM d",
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains("is beyond the range of the type Float"), "{sql}: {e}");
    }
    let e = error(&ctx, "SELECT ragged_cast([0.5, 1e300], 'FLOAT')").await;
    assert!(e.contains("at [1] of row 0 is not a valid Float32"), "{e}");
    let cases = [
        ("SELECT x FROM r", "1.5"),
        ("SELECT TRY_CAST(x AS FLOAT) FROM d ORDER BY id", "NULL; 0.5; NULL"),
        ("SELECT TRY_CAST([x, 1.5] AS FLOAT[]) FROM d ORDER BY id", "[, 1.5]; [0.5, 1.5]; [, 1.5]"),
        // `arrow_cast` and casts of strings return infinity, as docs/sql.md says.
        ("SELECT arrow_cast(x, 'Float32'), '1e300'::FLOAT FROM d WHERE id = 1", "inf inf"),
        ("SELECT arrow_cast('1e300', 'Float32'), arrow_try_cast(-1e300, 'Float32')", "inf -inf"),
        ("SELECT TRY_CAST('1e300' AS FLOAT), '1e400'::DOUBLE", "inf inf"),
        ("SELECT ragged_try_cast([0.5, 1e300], 'FLOAT')", "[0.5, ]"),
        ("SELECT x::FLOAT FROM d WHERE x < 1e38", "0.5"),
        ("SELECT CASE WHEN x < 1e38 THEN x::FLOAT END FROM d ORDER BY id", "NULL; 0.5; NULL"),
        ("SELECT 'inf'::DOUBLE::FLOAT, 'nan'::DOUBLE::FLOAT, '-inf'::FLOAT", "inf NaN -inf"),
        ("SELECT 3.4028235e38::FLOAT > 3.4e38, 1e-300::FLOAT", "true 0.0"),
        ("SELECT (1e30::DECIMAL(38, 0))::FLOAT > 1e29", "true"),
    ];
    expect_rows(&tables, &cases).await;
}

/// When this test fails, `serrate_float_ranges` and `functions::float_range` can be removed.
#[tokio::test]
async fn stock_casts_to_floats_are_still_infinite() {
    let sql = "SELECT CAST(1e300 AS REAL) = CAST('inf' AS REAL)";
    assert_eq!(rows_or_error(&SessionContext::new(), sql).await, "true");
}

#[tokio::test]
async fn decimals_of_many_digits_become_the_nearest_double() {
    let tables = [
        "CREATE TABLE t AS SELECT '783183164994685.41'::DECIMAL(17, 2) AS d, '783183164994685.41'::DOUBLE AS f",
    ];
    let cases = [
        (
            "SELECT d::DOUBLE = f, d = f, f IN (d), f BETWEEN d AND d, TRY_CAST(d AS DOUBLE) = f FROM t",
            "true true true true true",
        ),
        (
            "SELECT [d]::DOUBLE[] = [f], [d] = [f], [[d], NULL] = [[f], NULL], list_contains([d], f) FROM t",
            "true true true true",
        ),
        (
            "SELECT ragged_eq([d], [f]), ragged_isin([d], [f]), ragged_isin([f], [d]), ragged_searchsorted([d], f), ragged_cast([d], 'DOUBLE') = [f] FROM t",
            "[true] [true] [true] 0 true",
        ),
        ("SELECT count(*) FROM t a JOIN t b ON a.d = b.f", "1"),
        ("SELECT sum(CAST(d AS DOUBLE)) = max(f), avg(d::DOUBLE) = max(f) FROM t", "true true"),
        (
            "SELECT x::DOUBLE, x::FLOAT, (-x)::DOUBLE, x::DOUBLE = 0.1 FROM (VALUES ('0.1'::DECIMAL(38, 38)), (NULL)) v(x) ORDER BY x",
            "0.1 0.1 -0.1 true; NULL NULL NULL NULL",
        ),
        ("SELECT '9007199254740993'::DECIMAL(38, 10)::DOUBLE", "9007199254740992.0"),
        ("SELECT '0.3'::DECIMAL(76, 60)::DOUBLE", "0.3"),
        (
            "SELECT arrow_cast(d, 'Float64') = f, arrow_cast([d], 'LargeList(Float64)') = [f], arrow_try_cast(d, 'Float64') = f FROM t",
            "true true true",
        ),
    ];
    expect_rows(&tables, &cases).await;
}

/// When this test fails, `serrate_nearest_floats` and `functions::nearest_doubles` can be removed.
#[tokio::test]
async fn stock_decimals_are_still_rounded_twice() {
    let sql =
        "SELECT CAST(arrow_cast('0.1', 'Decimal128(38, 38)') AS DOUBLE) = CAST('0.1' AS DOUBLE)";
    assert_eq!(rows_or_error(&SessionContext::new(), sql).await, "false");
}

#[tokio::test]
async fn stock_texts_of_large_numbers_are_still_infinite() {
    let sql = "SELECT x = '1e300' FROM (SELECT CAST('inf' AS REAL) AS x)";
    assert_eq!(rows_or_error(&SessionContext::new(), sql).await, "true");
}

#[tokio::test]
async fn literal_bounds_are_rounded_next_to_bounds_of_subqueries() {
    let tables = [
        "CREATE TABLE f AS SELECT arrow_cast([0.1], 'List(Float32)') AS x, 0.1::DOUBLE AS d, 0.1::DECIMAL(3, 1) AS n, arrow_cast(['inf'::DOUBLE], 'List(Float32)') AS y",
    ];
    let cases = [
        (
            "SELECT ragged_between(x, 0.05, d), ragged_between(x, 0.05, (SELECT 0.1)), ragged_between(x, 0.05, (SELECT max(d) FROM f)), ragged_between(x, '0.05', (SELECT 0.1)), ragged_between(x, 0.05, (SELECT max(n) FROM f)) FROM f",
            "[false] [false] [false] [false] [false]",
        ),
        // The literal is rounded to the float32 0.1, as next to a column.
        (
            "SELECT ragged_between(x, d, 0.1), ragged_between(x, (SELECT 0.1), 0.1), ragged_between(x, (SELECT max(d) FROM f), '0.1'), ragged_between(x, (SELECT 0.1), 0.1, '(]') FROM f",
            "[true] [true] [true] [true]",
        ),
        (
            "SELECT ragged_between(y, 0.5, 1e300), ragged_between(y, (SELECT 0.5), 1e300), ragged_between(y, (SELECT 0.5), '1e300'), ragged_between(y, (SELECT 0.5), 'inf'), ragged_between(y, (SELECT 0.5), NULL) FROM f",
            "[false] [false] [false] [true] []",
        ),
        // A literal decimal is rounded as a literal double is.
        (
            "SELECT x <= 0.1::DECIMAL(3, 1), ragged_le(x, 0.1::DECIMAL(3, 1)), x = 0.1::DECIMAL(3, 1), ragged_eq(0.1::DECIMAL(3, 1), x), x IN (0.1::DECIMAL(3, 1)), ragged_between(x, 0.1::DECIMAL(3, 1), 0.1), ragged_between(x, (SELECT 0.05), 0.1::DECIMAL(3, 1)) FROM f",
            "[true] [true] [true] [true] [true] [true] [true]",
        ),
        ("SELECT x = n, ragged_eq(x, n), ragged_le(x, n) FROM f", "[false] [false] [false]"),
        // The optimizer replaces `e` by 0.1.
        ("SELECT ragged_between(x, 0.05, e) FROM (SELECT x, 0.1 AS e FROM f)", "[false]"),
    ];
    expect_rows(&tables, &cases).await;
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
async fn letters_directly_after_numbers_are_refused() {
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
        &[
            ("SELECT log(1000), floor(log(1000)), log(2, 8), log(NULL)", "3.0 3.0 3.0 NULL"),
            (
                "SELECT log(x), log(arrow_cast(x, 'Decimal256(40, 3)')), log(x::BIGINT UNSIGNED + 0), log(arrow_cast(1, 'Float16'))::DOUBLE FROM (VALUES (1000::DECIMAL(10, 2))) t(x)",
                "3.0 3.0 3.0 0.0",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn stock_log_is_still_inexact() {
    let found = rows_or_error(&SessionContext::new(), "SELECT log(1000.0::DOUBLE)").await;
    assert_eq!(found, "2.9999999999999996");
}

#[tokio::test]
async fn array_length_of_a_missing_dimension_is_null() {
    let ctx = create_parallel_session();
    let sql = "SELECT coalesce(array_length(x, 2), -1) FROM (VALUES (1, [[1, 2]]), (2, []), (3, [NULL, [1]]), (4, NULL), (5, [[]])) v(id, x) ORDER BY id";
    assert_eq!(query_ints(&ctx, sql).await, [2, -1, -1, -1, 0]);
    let sql = "SELECT coalesce(array_length(x, d), -1) FROM (VALUES (1, [[1, 2]], 1), (2, [[1, 2]], 3), (3, [[1]], 0), (4, [[1]], NULL)) v(id, x, d) ORDER BY id";
    assert_eq!(query_ints(&ctx, sql).await, [1, -1, -1, -1]);
}

/// When this test fails, `measure_dimensions` of `functions::list_counts` can be removed.
#[tokio::test]
async fn stock_lengths_of_dimensions_still_panic() {
    let ctx = SessionContext::new();
    let sql =
        "SELECT array_length(x, 2) FROM (VALUES (make_array(make_array(1))), (make_array())) v(x)";
    let frame = ctx.sql(sql).await.unwrap();
    assert!(!matches!(tokio::spawn(frame.collect()).await, Ok(Ok(_))));
}

#[tokio::test]
async fn numbers_close_to_the_end_of_their_type_are_rounded() {
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
        (
            "SELECT trunc(1.5, 400), trunc(123.456, -400), trunc(1e300, 10), trunc(-1e300, 300), trunc(1e30::REAL, 10), trunc(1.25, 1), trunc('NaN'::DOUBLE, 400), trunc('-inf'::DOUBLE, 2)",
            "1.5 0.0 1e300 -1e300 1e30 1.2 NaN -inf",
        ),
        (
            "SELECT trunc(x, n) FROM (VALUES (1.25, 1), (1.5, 400), (1e300, 10), (1.5, -400), (NULL, 400), (7.0, NULL)) t(x, n)",
            "1.2; 1.5; 1e300; 0.0; NULL; NULL",
        ),
        ("SELECT trunc(x, 10) FROM (VALUES (1e300), (-1.25)) t(x)", "1e300; -1.25"),
    ];
    expect_rows(&[], &cases).await;
}

#[tokio::test]
async fn the_sign_of_nan_is_nan() {
    let cases = [(
        "SELECT sign('nan'::DOUBLE), sign([-1.5, 'nan'::DOUBLE]), sign(0.0)",
        "NaN [-1.0, NaN] 0.0",
    )];
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

/// When this test fails, `scalar::rounding::build_finite_rounds` can be removed.
#[tokio::test]
async fn stock_rounds_to_many_places_are_still_nan() {
    let sql = "SELECT round(1.5, 400) AS r, trunc(1e300, 10) AS t";
    let shown = stock_text(&SessionContext::new(), sql).await;
    assert!(shown.contains("NaN") && shown.contains("inf"), "{shown}");
}
