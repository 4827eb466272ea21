//! The session: dialect, settings, paths in FROM, statements.

use serrate::sql::{NrtNan, SerrateOptions, session};

use super::*;

#[tokio::test]
async fn unnest_in_from_may_contain_lambdas_and_arrays() {
    let ctx = session();
    let cases: [(&str, &[i64]); 5] = [
        ("SELECT * FROM unnest([3, 1, 2])", &[3, 1, 2]),
        ("SELECT c FROM unnest([3, 1]) AS u(c)", &[3, 1]),
        ("FROM unnest([5])", &[5]),
        ("SELECT [1, 2, 3][2]", &[2]),
        ("SELECT * FROM unnest(array_transform([1, 2], lambda v: v * 2))", &[2, 4]),
    ];
    for (sql, expected) in cases {
        assert_eq!(query_ints(&ctx, sql).await, expected, "{sql}");
        assert_eq!(stock_ints(&ctx, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn from_without_select_returns_all_columns() {
    let ctx = session();
    ctx.sql("CREATE TABLE t AS SELECT 1 AS a, 2 AS b").await.unwrap().collect().await.unwrap();
    let select = stock_text(&ctx, "SELECT * FROM t").await;
    for alone in ["FROM t", "FROM (FROM t)", "FROM t LIMIT 1", "FROM t SELECT * WHERE a = 1"] {
        assert_eq!(stock_text(&ctx, alone).await, select, "{alone}");
    }
    assert_eq!(stock_ints(&ctx, "FROM t SELECT b").await, [2]);
    assert_eq!(stock_one(&ctx, "SELECT count(*) FROM (FROM t)").await, 1);
    let with = serrate::sql::sql(&ctx, "WITH u AS (FROM t) FROM u").await.unwrap();
    assert_eq!(with.schema().fields().len(), 2);
}

#[tokio::test]
async fn several_statements_in_one_string_are_split() {
    let ctx = session();
    let statements = serrate::sql::parse(&ctx, "SELECT 1; SELECT ';'; -- done\n").unwrap();
    assert_eq!(statements.len(), 2);
    let two = serrate::sql::sql(&ctx, "SELECT 1; SELECT 2").await.unwrap_err().to_string();
    assert!(two.contains("2 statements"), "{two}");
}

#[tokio::test]
async fn unknown_formats_are_refused_with_the_known_ones() {
    let ctx = session();
    for sql in [
        "COPY (SELECT 1 AS a) TO 'x.nrt' STORED AS nrtt",
        "EXPLAIN COPY (SELECT 1 AS a) TO 'x.nrt' STORED AS nrtt",
        "CREATE EXTERNAL TABLE t STORED AS nrtt LOCATION 'x.nrt'",
    ] {
        let e = serrate::sql::sql(&ctx, sql).await.unwrap_err().to_string();
        assert!(e.contains("NRTT") || e.contains("nrtt"), "{e}");
        for known in ["NRT", "SAFETENSORS", "PARQUET", "CSV", "JSON", "ARROW"] {
            assert!(e.contains(known), "{known} in {e}");
        }
    }
}

#[tokio::test]
async fn settings_are_set_shown_and_checked() {
    let ctx = session();
    let of = |ctx: &SessionContext| SerrateOptions::of(ctx.state().config_options()).clone();
    assert_eq!(of(&ctx), SerrateOptions::default());
    for sql in [
        "SET serrate.nrt_nan = 'nan'",
        "SET serrate.mmap = false",
        "SET serrate.max_dense_bytes = '1GiB'",
        "SET serrate.leaf_batch_size = 17",
    ] {
        query_batches(&ctx, sql).await.unwrap();
    }
    let set = of(&ctx);
    assert_eq!((set.nrt_nan, set.mmap), (NrtNan::Nan, false));
    assert_eq!((set.max_dense_bytes, set.leaf_batch_size), (1 << 30, 17));
    assert!(query_text(&ctx, "SHOW serrate.leaf_batch_size").await.contains("17"));
    assert!(error(&ctx, "SET serrate.nrt_nan = 'zero'").await.contains("'null' or 'nan'"));
    assert!(error(&ctx, "SET serrate.nosuch = 1").await.contains("leaf_batch_size"));
}

#[tokio::test]
async fn missing_paths_and_tables_are_errors() {
    let ctx = session();
    let missing = error(&ctx, "SELECT * FROM 'nowhere/x.nrt'").await;
    assert!(missing.contains("nowhere/x.nrt") && missing.contains("does not exist"), "{missing}");
    let table = error(&ctx, "SELECT * FROM nowhere").await;
    assert!(table.contains("table") && table.contains("nowhere"), "{table}");
}

#[tokio::test]
async fn formats_and_functions_may_be_registered_in_any_session() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nrt");
    write_table(&path, &make_numbered_table(1, 3));
    let ctx = SessionContext::new();
    serrate::sql::register_formats(&ctx).unwrap();
    let create =
        format!("CREATE EXTERNAL TABLE t STORED AS NRT LOCATION '{}'", display_path(&path));
    stock_batches(&ctx, &create).await.unwrap();
    assert_eq!(stock_one(&ctx, "SELECT count(*) FROM t").await, 3);
    // Without the settings and rules of this crate, the order of rows is checked when the plan
    // runs.
    let out = dir.path().join("y.nrt");
    let copy =
        format!("COPY (SELECT * FROM t WHERE id > 1) TO '{}' STORED AS NRT", display_path(&out));
    stock_batches(&ctx, &copy).await.unwrap();
    assert_eq!(nrt::NrtFile::open(&out, &Default::default()).unwrap().num_rows(), 2);
}

#[tokio::test]
async fn errors_of_lists_used_as_scalars_say_what_to_write() {
    let ctx = serrate::sql::session();
    let table = "CREATE TABLE t AS SELECT [1, 2, 3] AS x, [true, false] AS b, ['ab'] AS s, 1 AS n";
    query_batches(&ctx, table).await.unwrap();
    let truth = "needs one boolean per row";
    let cases = [
        ("SELECT n FROM t WHERE x > 2", "x > 2 is a list of booleans; use ragged_any(x > 2)"),
        ("SELECT n FROM t WHERE b", "but b is a list of booleans; use ragged_any(b)"),
        ("SELECT n FROM t WHERE x > 2 AND n > 1", "need one boolean"),
        ("COPY (SELECT n FROM t WHERE x > 2) TO 'never.csv'", "use ragged_any(x > 2)"),
        ("SELECT count(*) FROM t HAVING max(x) > 1", "ragged_any"),
        ("SELECT NOT b FROM t", "ragged_not(..)"),
        ("SELECT -x FROM t", "ragged_neg(..)"),
        ("SELECT x BETWEEN 1 AND n FROM t", "use ragged_between(t.x, 1, t.n) to"),
        ("SELECT n FROM t WHERE n = 1 AND x NOT BETWEEN 1 AND 2", "BETWEEN compares a scalar"),
        ("SELECT s SIMILAR TO 'a.' FROM t", "use ragged_matches(t.s, 'a.') to"),
        ("SELECT [1] BETWEEN 1 AND 2", "but [1] is a list; use ragged_between([1], 1, 2)"),
        ("SELECT [1]::INT", "but [1] is a list (List(Int64)); use ragged_cast([1], 'Int32')"),
        (
            "SELECT n FROM t WHERE [DATE '2020-01-01'] BETWEEN DATE '2020-01-01' AND DATE '2021-01-01'",
            ", '2020-01-01', '2021-01-01') to",
        ),
        ("SELECT CASE WHEN x > 1 THEN 1 END FROM t", "CASE WHEN needs one boolean"),
        ("SELECT a.n FROM t a JOIN t c ON a.x > 2", truth),
        ("SELECT count(*) FILTER (WHERE x > 1) FROM t", truth),
        ("SELECT n FROM t WHERE n IN (SELECT n FROM t WHERE b IS TRUE)", truth),
        ("EXPLAIN SELECT x BETWEEN 1 AND 2 FROM t", "BETWEEN compares a scalar"),
        ("COPY (SELECT x BETWEEN 1 AND 2 AS y FROM t) TO 'never.csv'", "BETWEEN compares"),
    ];
    for (sql, hint) in cases {
        let e = match serrate::sql::sql(&ctx, sql).await {
            Ok(_) => panic!("{sql} worked"),
            Err(e) => e.strip_backtrace(),
        };
        assert!(e.contains(hint) && e.starts_with("Error during planning: "), "{sql}: {e}");
        // Statements that DataFusion parses are refused, too, with the messages of its planner.
        if !sql.starts_with("EXPLAIN") {
            assert!(stock_batches(&ctx, sql).await.is_err(), "{sql}");
        }
    }
    let cases = [
        ("SELECT sum(x) FROM t", "sum takes scalars"),
        ("SELECT sum(x) FROM t", "ragged_sum(..)"),
        ("SELECT avg(x) FROM t", "ragged_mean(..)"),
        ("SELECT median(x) FROM t", "ragged_median(..)"),
        ("SELECT stddev(x) FROM t", "ragged_std(..)"),
        ("SELECT quantile_cont(x, 0.5) FROM t", "ragged_quantile(..)"),
        ("SELECT coalesce(x, 0) FROM t", "ragged_fill_null(..)"),
        ("SELECT x ^ 2 FROM t", "ragged_pow(x, 2)"),
        ("SELECT x & 1 FROM t", "lambda v: v & 1"),
        ("SELECT ragged_any(x == x) FROM t", "ragged_eq(a, b)"),
        ("SELECT max([x]) FROM t", "max(ragged_max("),
        ("SELECT x::DOUBLE FROM t", "ragged_cast(t.x, 'Float64')"),
        ("SELECT TRY_CAST(s AS BIGINT) FROM t", "ragged_try_cast(t.s, 'Int64')"),
    ];
    for (sql, hint) in cases {
        let e = match serrate::sql::sql(&ctx, sql).await {
            Ok(_) => panic!("{sql} worked"),
            Err(e) => e.strip_backtrace(),
        };
        assert!(e.contains(hint), "{sql}: {e}");
        assert!(!e.contains("bug in DataFusion"), "{sql}: {e}");
    }
    // Scalar functions apply to the values of lists, and are planned.
    for sql in [
        "SELECT round(x) FROM t",
        "SELECT round([[1.5]]) FROM t",
        "SELECT abs(x) FROM t",
        "SELECT sqrt(x) FROM t",
        "SELECT power(x, 2) FROM t",
        "SELECT log(x) FROM t",
        "SELECT greatest(x, 1) FROM t",
        "SELECT upper(s) FROM t",
    ] {
        let frame = serrate::sql::sql(&ctx, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        frame.collect().await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    // If DataFusion parses the statement, BETWEEN, LIKE and IN of lists are errors that name a
    // function.
    let e = stock_error(&ctx, "SELECT x BETWEEN 1 AND 2 FROM t").await;
    assert!(e.contains("ragged_between(t.x, 1, 2)"), "{e}");
    let e = stock_error(&ctx, "SELECT s ILIKE 'a%' FROM t").await;
    assert!(e.contains("ragged_ilike(t.s, 'a%')"), "{e}");
    let e = stock_error(&ctx, "SELECT x IN (1, 2) FROM t").await;
    assert!(e.contains("ragged_isin(t.x, [1, 2])") && e.contains("array_has_any(t.x"), "{e}");
    // Comparisons of lists with lists, and of scalars, are planned.
    for sql in [
        "SELECT len(x) = 3 AND length(x) = 3 AND length('ab') = 2 AND len(s[1]) = 2 FROM t",
        "SELECT ragged_any(x = 3) AND NOT ragged_any(x = 9) FROM t",
        "SELECT ragged_any(x = 3 AND x > 2) AND ragged_all(n = 1 OR x = 7 OR x <> 7) FROM t",
        "SELECT ragged_any(x = 1 + 2) FROM t",
        "SELECT list(n) = [1] AND first(n ORDER BY n) = 1 AND last(x ORDER BY n) = [1, 2, 3] FROM t",
        "SELECT [x] <> [] AND NOT ([] = x) AND x[3:2] = [] AND [x][2:1] = [] FROM t",
        "SELECT bool_or(n = 1) AND count(*) FILTER (WHERE n = 1) = 1 AND max(x) = [1, 2, 3] FROM t",
        "SELECT [1, 2] BETWEEN [0] AND [3] AND [1] IN ([1], [2]) AND NOT (n = 2) FROM t",
        "SELECT n BETWEEN 1 AND 2 AND s[1] LIKE 'a%' AND -n < 0 AND n IN (1, 2) FROM t",
        "SELECT ragged_any(x > 2) AND ragged_all(ragged_not(x > 3)) FROM t WHERE ragged_any(b)",
        "SELECT ragged_any(array_transform(s, lambda v: v LIKE 'a%')) FROM t",
    ] {
        let all = serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
        assert!(all[0].column(0).as_boolean().value(0), "{sql}");
    }
}

#[tokio::test]
async fn lambdas_may_build_lists_and_refuse_aggregates_and_windows() {
    let ctx = serrate::sql::session();
    let table = "CREATE TABLE t AS SELECT [1, 2] AS x, [3, 4] AS y, 5 AS u, 6 AS v";
    query_batches(&ctx, table).await.unwrap();
    for (body, expected) in [
        ("ragged_map(x, y, lambda v, w: [v, w])", "[[1, 3], [2, 4]]"),
        ("ragged_map(x, v -> [v, u])", "[[1, 5], [2, 5]]"),
        ("list_transform(x, lambda v: ARRAY[v, 1])", "[[1, 1], [2, 1]]"),
        ("ragged_map(x, lambda v: [v, v * 2][2])", "[2, 4]"),
        ("ragged_map(x, lambda v: [[v], [1]])", "[[[1], [1]], [[2], [1]]]"),
        (
            "ragged_map(x, lambda v: ragged_map(y, lambda w: [v, w]))",
            "[[[1, 3], [1, 4]], [[2, 3], [2, 4]]]",
        ),
        ("ragged_map(x, lambda v: ragged_quantile([v, 4], [0.5]))", "[[2.5], [3.0]]"),
        ("ragged_map(x, lambda v: v + (SELECT max(u) FROM t))", "[6, 7]"),
    ] {
        let query = format!("SELECT {body} AS z FROM t");
        let all = run_query(&ctx, &query).await;
        let shown = pretty_format_batches(&all).unwrap().to_string();
        assert!(shown.contains(&format!("| {expected} ")), "{query}\n{shown}");
    }
    for (body, hint) in [
        ("sum(v)", "use ragged_sum(x)"),
        ("max(v) + 1", "an aggregate works across rows"),
        ("row_number() OVER ()", "a window function works across rows"),
        ("sum(v) OVER (ORDER BY u)", "a window function works across rows"),
        ("v IN (SELECT u FROM t)", "ragged_isin(x, (SELECT array_agg(key)"),
    ] {
        let query = format!("SELECT ragged_map(x, lambda v: {body}) FROM t");
        let e = match serrate::sql::sql(&ctx, &query).await {
            Ok(_) => panic!("{query} worked"),
            Err(e) => e.strip_backtrace(),
        };
        assert!(e.contains(hint) && e.contains("lambda"), "{query}: {e}");
    }
}

#[tokio::test]
async fn settings_of_serrate_are_reset() {
    let ctx = create_parallel_session();
    let value = "SELECT value FROM information_schema.df_settings WHERE name = 'serrate.mmap'";
    let before = rows_or_error(&ctx, value).await;
    for sql in ["SET serrate.mmap = false", "RESET serrate.mmap", "RESET SERRATE.mmap"] {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
        let expected = if sql.starts_with("SET") { "false" } else { before.as_str() };
        assert_eq!(rows_or_error(&ctx, value).await, expected, "{sql}");
    }
    let e = rows_or_error(&ctx, "RESET serrate.nothing").await;
    assert!(e.contains("serrate.nothing is unknown"), "{e}");
}

/// pyarrow refuses a file in which a field of another type has the extension type of tensors.
#[tokio::test]
async fn only_fixed_size_lists_are_marked_as_tensors() {
    use datafusion::arrow::datatypes::{DataType, Field};
    fn find_marked<'a>(field: &'a Field, out: &mut Vec<&'a Field>) {
        if field.metadata().contains_key("ARROW:extension:name") {
            out.push(field);
        }
        match field.data_type() {
            DataType::List(item) => find_marked(item, out),
            DataType::Struct(fields) => fields.iter().for_each(|f| find_marked(f, out)),
            _ => {}
        }
    }
    let ctx = serrate::sql::session();
    let tensors = "(SELECT 1 AS id, densify([1, 2], [2]) AS x)";
    for (sql, marked) in [
        (format!("SELECT x, first_value(x) AS y FROM {tensors} GROUP BY x"), 2),
        (format!("SELECT ragged_head(x, 1) AS y, ragged_sort(x) AS z FROM {tensors}"), 0),
        (format!("SELECT ragged_nest_agg(x), ragged_concat_agg(x) FROM {tensors}"), 0),
        (format!("SELECT ragged_max_agg(x), ragged_min_agg(x) FROM {tensors}"), 0),
        (format!("SELECT ragged_nest_agg(x) OVER (ORDER BY id) FROM {tensors}"), 0),
        (format!("SELECT ragged_zip('a', x, 'b', [3, 4]) FROM {tensors}"), 0),
        (format!("SELECT ragged_unzip(ragged_zip('a', x), 'a') FROM {tensors}"), 0),
        (format!("FROM ragged_explode({tensors})"), 0),
        (format!("FROM ragged_nest({tensors}, 'id')"), 0),
    ] {
        let rows = serrate::sql::sql(&ctx, &sql).await.unwrap().collect().await.unwrap();
        let schema = rows[0].schema();
        let mut found = Vec::new();
        schema.fields().iter().for_each(|f| find_marked(f, &mut found));
        assert_eq!(found.len(), marked, "{sql}: {found:?}");
        let is_fixed = |f: &&Field| matches!(f.data_type(), DataType::FixedSizeList(..));
        assert!(found.iter().all(is_fixed), "{sql}: {found:?}");
    }
}
