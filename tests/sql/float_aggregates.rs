//! Sums of floats, and the statistics that are computed from sums, are exact for any batches,
//! partitions, files and order of rows.

use datafusion::arrow::array::{Float64Array, UInt64Array};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::sql::session_with;

use super::exact::cut_table;
use super::*;

/// Aggregates of one argument.
const OF_X: [&str; 6] = ["sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop"];
/// Aggregates of two arguments.
const OF_XY: [&str; 12] = [
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_count",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
];

/// Returns calls of all aggregates, each followed by the clause `behind`. With DISTINCT, returns
/// only the aggregates of one argument, because those of two refuse it.
fn list_calls(distinct: &str, of_x: &str, of_y: &str, behind: &str) -> Vec<String> {
    let one = OF_X.iter().map(|name| format!("{name}({distinct}{of_x}){behind}"));
    let two = OF_XY.iter().map(|name| format!("{name}({distinct}{of_y}, {of_x}){behind}"));
    match distinct {
        "" => one.chain(two).collect(),
        _ => one.collect(),
    }
}

fn format_select(calls: &[String]) -> String {
    let named = calls.iter().enumerate().map(|(i, call)| format!("{call} AS c{i}"));
    named.collect::<Vec<_>>().join(", ")
}

/// Draws a float of the kind that `group` selects: ordinary, close to a large number, the extremes
/// that cancel, NaN and infinities, zeros of both signs, or any bits.
fn draw_float(rng: &mut ChaCha8Rng, group: i64) -> f64 {
    let wide = |rng: &mut ChaCha8Rng| f64::from_bits(rng.random());
    match (group, rng.random_range(0..12)) {
        (0, _) => rng.random_range(-1e3..1e3),
        (1, _) => 1e9 + f64::from(rng.random_range(0..100i8)) * 1e-3,
        (2, 0) => 1e308,
        (2, 1) => -1e308,
        (2, 2) => f64::from(rng.random_range(-9..9i8)) * 5e-324,
        (2, _) => Some(wide(rng)).filter(|v| v.is_finite()).unwrap_or(0.0),
        (3, 0) => f64::NAN,
        (3, 1) => f64::INFINITY,
        (4, 0) => f64::NEG_INFINITY,
        (5, _) => -0.0,
        (6, _) => 0.1,
        _ => f64::from(rng.random_range(-30..30i8)) / 10.0,
    }
}

fn draw_rows(rng: &mut ChaCha8Rng, n: usize) -> RecordBatch {
    let g: Vec<i64> = (0..n).map(|_| rng.random_range(0..9)).collect();
    let mut column = |share: u32| -> Vec<Option<f64>> {
        let value =
            |g: &i64| (*g != 8 && rng.random_range(0..100) >= share).then(|| draw_float(rng, *g));
        g.iter().map(value).collect()
    };
    let (x, y) = (column(5), column(10));
    let close = |at: u64| i64::try_from(at).unwrap() + (1 << 62);
    let i = x.iter().enumerate().map(|(at, v)| v.map(|_| close(at as u64)));
    let i: Int64Array = i.collect();
    let u: UInt64Array = i.iter().map(|v| v.map(|v| v as u64 * 2 + 1)).collect();
    make_batch(&[
        ("id", make_ints(0..n as i64)),
        ("g", make_ints(g)),
        ("x", Arc::new(Float64Array::from(x))),
        ("y", Arc::new(Float64Array::from(y))),
        ("i", Arc::new(i)),
        ("u", Arc::new(u)),
    ])
}

fn list_queries() -> Vec<String> {
    let all = format_select(&list_calls("", "x", "y", ""));
    let distinct = format_select(&list_calls("DISTINCT ", "x", "y", ""));
    let filtered = format_select(&list_calls("", "x", "y", " FILTER (WHERE x < 100 OR y > 0)"));
    let frame = " OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING)";
    let sliding = format_select(&list_calls("", "x", "y", frame));
    let growing = format_select(&list_calls("", "x", "y", " OVER (PARTITION BY g ORDER BY id)"));
    let whole = format_select(&list_calls("", "x", "y", " OVER (PARTITION BY g)"));
    let narrow = |t: &str| {
        let (x, y) = (format!("arrow_cast(x, '{t}')"), format!("arrow_cast(y, '{t}')"));
        format_select(&list_calls("", &x, &y, ""))
    };
    vec![
        format!("SELECT {all} FROM t"),
        format!("SELECT {all} FROM t WHERE g IN (0, 1, 6, 7)"),
        format!("SELECT g, {all} FROM t GROUP BY g ORDER BY g"),
        format!("SELECT id, {all} FROM t GROUP BY id ORDER BY id"),
        format!("SELECT g, {filtered} FROM t GROUP BY g ORDER BY g"),
        format!("SELECT {filtered} FROM t"),
        format!("SELECT {distinct} FROM t WHERE g IN (0, 1, 7)"),
        format!("SELECT g, {distinct} FROM t GROUP BY g ORDER BY g"),
        format!("SELECT id, {sliding} FROM t ORDER BY id"),
        format!("SELECT id, {growing} FROM t ORDER BY id"),
        format!("SELECT id, {whole} FROM t ORDER BY id"),
        format!("SELECT g, {} FROM t GROUP BY g ORDER BY g", narrow("Float32")),
        format!("SELECT g, {} FROM t GROUP BY g ORDER BY g", narrow("Float16")),
        "SELECT g, sum(DISTINCT x) AS s FROM t GROUP BY g ORDER BY g".into(),
        "SELECT avg(DISTINCT x) AS s, count(*) AS n FROM t WHERE g < 2".into(),
        "SELECT g, sum(x) AS s FROM t GROUP BY g HAVING sum(x) > 0 AND stddev(x) >= 0 ORDER BY g".into(),
        "SELECT g, k, sum(x) AS s, avg(y) AS a FROM (SELECT *, id % 3 AS k FROM t) GROUP BY ROLLUP (g, k) ORDER BY g, k".into(),
        "SELECT id, (x - avg(x) OVER ()) / stddev(x) OVER () AS z FROM t WHERE g IN (0, 1, 6, 7) ORDER BY id".into(),
        "SELECT g, avg(i) AS i, avg(u) AS u, avg(DISTINCT i % 7) AS d, mean(i) FILTER (WHERE g > 2) AS f FROM t GROUP BY g ORDER BY g".into(),
        "SELECT id, avg(i) OVER (ORDER BY id ROWS 2 PRECEDING) AS i, avg(u) OVER (ORDER BY id ROWS 2 PRECEDING) AS u FROM t ORDER BY id".into(),
        "SELECT id, sum(DISTINCT x) OVER (PARTITION BY g ORDER BY id ROWS 4 PRECEDING) AS s, avg(DISTINCT x) OVER (PARTITION BY g ORDER BY id ROWS 4 PRECEDING) AS a FROM t ORDER BY id".into(),
        "SELECT median(x) AS m, percentile_cont(0.3) WITHIN GROUP (ORDER BY x) AS p FROM t WHERE g IN (0, 1, 2, 5, 7)".into(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_do_not_depend_on_batches_partitions_and_files() {
    let rng = &mut ChaCha8Rng::seed_from_u64(21);
    let all = draw_rows(rng, 160);
    let queries = list_queries();
    let mut expected: Vec<Option<String>> = vec![None; queries.len()];
    let folder = tempfile::tempdir().unwrap();
    let files = display_path(&folder.path().join("files"));
    for (trial, (partitions, size)) in
        [(1, 8192), (2, 7), (4, 1), (4, 8192), (1, 1), (2, 8192)].into_iter().enumerate()
    {
        let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(size);
        let ctx = session_with(config);
        let most = [160, 40, 1][trial % 3];
        ctx.register_table("t", Arc::new(cut_table(&all, partitions, most, rng))).unwrap();
        if trial == 3 {
            for part in 0..3 {
                let copy = format!(
                    "COPY (SELECT * FROM t WHERE id % 3 = {part} ORDER BY x) TO '{files}/{part}.parquet' OPTIONS (max_row_group_size 20)"
                );
                query_batches(&ctx, &copy).await.unwrap();
            }
            ctx.deregister_table("t").unwrap();
            let table = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{files}/'");
            query_batches(&ctx, &table).await.unwrap();
        }
        for (sql, expected) in queries.iter().zip(&mut expected) {
            let found = query_text(&ctx, sql).await;
            let expected = expected.get_or_insert_with(|| found.clone());
            assert_eq!(*expected, found, "{sql}\n{partitions} partitions, batches of {size}");
        }
    }
}

/// The aggregate of a sliding frame depends on the rows in the frame only, not on rows that have
/// left it.
#[tokio::test]
async fn sliding_frames_forget_rows_that_have_left() {
    let rng = &mut ChaCha8Rng::seed_from_u64(22);
    let ctx = create_parallel_session();
    ctx.register_table("t", Arc::new(cut_table(&draw_rows(rng, 90), 2, 30, rng))).unwrap();
    for distinct in ["", "DISTINCT "] {
        let mut calls = list_calls(distinct, "x", "y", "");
        calls.extend([format!("avg({distinct}i)"), format!("avg({distinct}u)")]);
        let over = "ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING";
        let windows: Vec<_> = calls.iter().map(|c| format!("{c} OVER ({over})")).collect();
        let windows = format!("SELECT id, {} FROM t ORDER BY id", format_select(&windows));
        let of_b = |call: &String| {
            let of = |name: &str, call: &str| {
                call.replace(&format!("({name})"), &format!("(b.{name})"))
                    .replace(&format!("({name},"), &format!("(b.{name},"))
                    .replace(&format!(" {name})"), &format!(" b.{name})"))
                    .replace(&format!(" {name},"), &format!(" b.{name},"))
            };
            ["x", "y", "i", "u"].iter().fold(call.clone(), |call, name| of(name, &call))
        };
        let joined: Vec<_> = calls.iter().map(of_b).collect();
        let joined = format!(
            "SELECT a.id, {} FROM t a LEFT JOIN t b ON b.id BETWEEN a.id - 3 AND a.id - 1 GROUP BY a.id ORDER BY a.id",
            format_select(&joined)
        );
        assert_eq!(
            query_text(&ctx, &windows).await,
            query_text(&ctx, &joined).await,
            "{windows}\n{joined}"
        );
    }
}

/// Parses the hexadecimal bits of a double, as `float_aggregates/make.py` writes them.
fn parse_double(text: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(text, 16).unwrap())
}

/// Results equal those of rational arithmetic: quotients of sums exactly, roots and regression
/// lines up to one unit in the last place.
#[tokio::test]
async fn aggregates_equal_rational_arithmetic() {
    let cases = include_str!("float_aggregates/cases.txt");
    let mut compared = 0;
    for (at, line) in cases.lines().enumerate() {
        let [name, x, y, expected] = line.split('|').collect::<Vec<_>>().try_into().unwrap();
        let column = |text: &str| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(text.split(' ').map(parse_double)))
        };
        let all = make_batch(&[("x", column(x)), ("y", column(y))]);
        let ctx = create_parallel_session();
        let rng = &mut ChaCha8Rng::seed_from_u64(at as u64);
        ctx.register_table("t", Arc::new(cut_table(&all, 1 + at % 3, 4, rng))).unwrap();
        let expected: Vec<(&str, &str)> =
            expected.split(';').map(|e| e.split_once('=').unwrap()).collect();
        let calls: Vec<String> = expected.iter().map(|(call, _)| (*call).into()).collect();
        for group in ["", " GROUP BY x > 0 OR x <= 0"] {
            let sql = format!("SELECT {} FROM t{group}", format_select(&calls));
            let found = query_batches(&ctx, &sql).await.unwrap();
            let found = concat_batches(&found[0].schema(), &found).unwrap();
            for ((call, value), column) in expected.iter().zip(found.columns()) {
                let found = column.as_primitive::<Float64Type>();
                let found = found.is_valid(0).then(|| found.value(0));
                let expected = (*value != "-").then(|| parse_double(value));
                let rounded_once = !["stddev", "corr", "slope", "intercept", "r2"]
                    .iter()
                    .any(|inexact| call.contains(inexact));
                let near = match (expected, found) {
                    (Some(a), Some(b)) if rounded_once => a == b,
                    (Some(a), Some(b)) => a == b || a.next_up() == b || a.next_down() == b,
                    (a, b) => a == b,
                };
                assert!(near, "{name}, case {at}, {call}: {expected:?}, found {found:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

fn to_columns(found: &[RecordBatch]) -> Vec<Vec<Option<f64>>> {
    let found = concat_batches(&found[0].schema(), found).unwrap();
    let floats = |column: &ArrayRef| {
        let column = datafusion::arrow::compute::cast(column, &DataType::Float64).unwrap();
        column.as_primitive::<Float64Type>().iter().collect()
    };
    found.columns().iter().map(floats).collect()
}

/// Results equal those of stock DataFusion for values for which stock is accurate, and are NULL if
/// those are NULL.
#[tokio::test]
async fn aggregates_equal_accurate_stock_aggregates() {
    let rng = &mut ChaCha8Rng::seed_from_u64(23);
    let (ours, stock) = (create_parallel_session(), SessionContext::new());
    let mut columns_of: Vec<(i64, Option<f64>, Option<f64>)> = Vec::new();
    // Groups of a few rows, of one row, of a constant column, and of NULL only.
    for g in 0..20 {
        for _ in 0..rng.random_range(2..30) {
            let (x, e) = (rng.random_range(-5.0..9.0), rng.random_range(-1.0..1.0));
            columns_of.push((g, Some(x), Some(3.0 * x + e)));
            columns_of.push((g, (rng.random_range(0..3) > 0).then_some(x), Some(e)));
        }
    }
    columns_of.extend([(20, Some(1.5), Some(2.5)), (21, Some(1.5), None), (22, None, None)]);
    columns_of.extend((0..3).map(|i| (23, Some(2.0), Some(f64::from(i)))));
    columns_of.extend((0..3).map(|i| (24, Some(f64::from(i)), Some(2.0))));
    let all = make_batch(&[
        ("g", make_ints(columns_of.iter().map(|r| r.0))),
        ("x", Arc::new(columns_of.iter().map(|r| r.1).collect::<Float64Array>())),
        ("y", Arc::new(columns_of.iter().map(|r| r.2).collect::<Float64Array>())),
    ]);
    for ctx in [&ours, &stock] {
        ctx.register_batch("t", all.clone()).unwrap();
    }
    let calls = format_select(&list_calls("", "x", "y", ""));
    let more = "sum(arrow_cast(x, 'Float32')) AS s, avg(g) AS a, sum(g) AS i, avg(arrow_cast(g, 'UInt8')) AS u, mean(arrow_cast(x, 'Decimal128(9, 3)')) AS d, sum(DISTINCT x) AS ds, avg(DISTINCT x) AS da, var_pop(DISTINCT x) AS dv";
    for sql in [
        format!("SELECT g, {calls}, {more} FROM t GROUP BY g ORDER BY g"),
        format!("SELECT {calls}, {more} FROM t"),
        format!("SELECT {calls}, {more} FROM t WHERE g > 99"),
        format!("SELECT {calls}, {more} FROM t WHERE g = 22"),
        format!("SELECT {calls}, {more} FROM t WHERE g = 20"),
    ] {
        let own = to_columns(&query_batches(&ours, &sql).await.unwrap());
        let other = to_columns(&stock_batches(&stock, &sql).await.unwrap());
        for (c, (own, other)) in own.iter().zip(&other).enumerate() {
            for (row, (a, b)) in own.iter().zip(other).enumerate() {
                let near = match (a, b) {
                    (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3),
                    // `regr_r2` of a constant `y` is 1 in the SQL standard, and NULL in DataFusion.
                    (Some(a), None) if c == 13 => *a == 1.0,
                    (a, b) => a == b,
                };
                assert!(near, "{sql}\ncolumn {c}, row {row}: {a:?}, stock {b:?}");
            }
        }
        let schemas = [&ours, &stock].map(|ctx| ctx.sql(&sql));
        let [own, other] = schemas;
        let (own, other) = (own.await.unwrap(), other.await.unwrap());
        assert_eq!(own.schema().as_arrow(), other.schema().as_arrow(), "{sql}");
    }
}

/// The aggregated column `x` has extreme values, infinities, NaN and NULL.
#[tokio::test]
async fn aggregates_of_special_numbers_are_exact() {
    let ctx = create_parallel_session();
    for (values, call, expected) in [
        ("(1e16), (1.0), (-1e16)", "sum(x)", "1.0"),
        ("(1e308), (1e308), (-1e308)", "sum(x)", "1e308"),
        ("(1e308), (1e308)", "sum(x)", "inf"),
        ("(1e308), (1e308)", "avg(x)", "1e308"),
        ("(-1e308), (-1e308)", "sum(x)", "-inf"),
        ("(5e-324), (5e-324)", "sum(x)", "1e-323"),
        ("(5e-324), (0.0)", "avg(x)", "0.0"),
        ("(-0.0), (-0.0)", "sum(x)", "0.0"),
        ("(-0.0)", "avg(x)", "0.0"),
        ("(0.1), (0.1), (0.1)", "stddev_pop(x)", "0.0"),
        ("(0.1), (0.1), (0.1)", "avg(x)", "0.1"),
        ("(1e200), (-1e200)", "stddev_pop(x)", "1e200"),
        ("(1e200), (-1e200)", "var_pop(x)", "inf"),
        ("(1e-200), (-1e-200)", "stddev_pop(x)", "1e-200"),
        ("(1e200), (3e200), (2e200)", "corr(2 * x, x)", "1.0"),
        ("(1e-200), (3e-200), (2e-200)", "regr_slope(-2 * x, x)", "-2.0"),
        ("(1e200), (3e200), (2e200)", "regr_r2(2 * x, x)", "1.0"),
        ("(0.5), (0.75)", "regr_r2(3.0, x)", "1.0"),
        ("('inf'::double), (1.0)", "sum(x)", "inf"),
        ("('inf'::double), ('-inf'::double)", "sum(x)", "NaN"),
        ("('-inf'::double), (1.0)", "avg(x)", "-inf"),
        ("('NaN'::double), (1.0)", "sum(x)", "NaN"),
        ("('inf'::double), (1.0)", "var_pop(x)", "NaN"),
        ("('NaN'::double)", "var_pop(x)", "NaN"),
        ("('NaN'::double)", "stddev_samp(x)", ""),
        ("('NaN'::double), (1.0), (2.0)", "corr(x, x)", "NaN"),
        ("('NaN'::double), (1.0), (2.0)", "regr_avgx(x, 1.5)", "1.5"),
        ("(NULL), (NULL)", "sum(x)", ""),
        ("(NULL), (1.0)", "sum(x)", "1.0"),
        ("(0.0), (-0.0), (1.0)", "avg(DISTINCT x)", "0.5"),
        ("('NaN'::double), (-'NaN'::double)", "sum(DISTINCT x)", "NaN"),
    ] {
        for group in ["", " GROUP BY x IS NULL OR x IS NOT NULL"] {
            for from in [values.to_string(), format!("{values}, (NULL)")] {
                let sql = format!(
                    "SELECT {call} AS c FROM (SELECT column1::DOUBLE AS x FROM (VALUES {from})){group}"
                );
                let found = query_text(&ctx, &sql).await;
                let found = found.lines().nth(3).unwrap().trim_matches(['|', ' ']);
                let same = match (found.parse::<f64>(), expected.parse::<f64>()) {
                    (Ok(a), Ok(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
                    _ => found == expected,
                };
                assert!(same, "{sql}: {found}, expected {expected}");
            }
        }
    }
}

#[tokio::test]
async fn means_of_integers_are_exact() {
    let ctx = create_parallel_session();
    let sql = "SELECT avg(i) AS a, avg(u) AS b, avg(DISTINCT i) AS c, avg(s) AS d FROM (SELECT i, arrow_cast(i, 'UInt64') AS u, arrow_cast(i % 100, 'Int8') AS s FROM (VALUES (9007199254740993), (9007199254740993), (9007199254740995)) t(i))";
    // The mean of the three values is 9007199254740993 2/3, and the mean of the distinct two is
    // 9007199254740994. The nearest double to both is 9007199254740994.
    let row =
        "| 9007199254740994.0 | 9007199254740994.0 | 9007199254740994.0 | 93.66666666666667 |";
    assert_eq!(query_text(&ctx, sql).await.lines().nth(3).unwrap(), row);
    let ends = "SELECT avg(i) AS a FROM (VALUES (9223372036854775807), (9223372036854775807), (-9223372036854775807), (-9223372036854775805)) t(i)";
    assert_eq!(query_text(&ctx, ends).await.lines().nth(3).unwrap(), "| 0.5 |");
    let large = "SELECT avg(u) AS a FROM (VALUES (arrow_cast('18446744073709551615', 'UInt64')), (arrow_cast('18446744073709551613', 'UInt64')), (1::BIGINT UNSIGNED)) t(u)";
    let found = query_text(&ctx, large).await;
    assert_eq!(found.lines().nth(3).unwrap(), "| 1.2297829382473034e19 |", "{found}");
    // Aggregates of an untyped NULL return what stock DataFusion returns. Stock refuses `sum` and
    // `avg`.
    for typeless in ["stddev(NULL)", "corr(NULL, NULL)"] {
        let sql = format!("SELECT {typeless} AS c");
        let shown = |found: Result<Vec<RecordBatch>>| {
            found.ok().map(|found| pretty_format_batches(&found).unwrap().to_string())
        };
        let stock = shown(stock_batches(&SessionContext::new(), &sql).await);
        assert_eq!(shown(query_batches(&ctx, &sql).await), stock, "{sql}");
    }
    for refused in ["avg('a')", "avg(true)", "sum('a')"] {
        let sql = format!("SELECT {refused} AS c");
        assert!(stock_batches(&SessionContext::new(), &sql).await.is_err(), "{sql}");
        assert!(error(&ctx, &sql).await.contains(&refused[..3]), "{sql}");
    }
}

/// DataFusion would rewrite `sum(x + 0.1)` to `sum(x) + 0.1 * count(x)`, which rounds differently,
/// if the statement has another sum of `x` and a number.
#[tokio::test]
async fn sums_of_x_plus_a_constant_are_rounded_per_row() {
    let ctx = create_parallel_session();
    let from = "FROM (VALUES (1e16::DOUBLE), (-1e16::DOUBLE), (0.3::DOUBLE)) t(x)";
    let alone = query_text(&ctx, &format!("SELECT sum(x + 0.1) AS a {from}")).await;
    let both = query_text(
        &ctx,
        &format!("SELECT a FROM (SELECT sum(x + 0.1) AS a, sum(x + 0.2) AS b {from})"),
    )
    .await;
    let both_kept =
        query_text(&ctx, &format!("SELECT sum(x + 0.1) AS a, sum(x + 0.2) AS b {from}")).await;
    assert_eq!(alone, both);
    let first = |t: &str| t.lines().nth(3).unwrap().split('|').nth(1).unwrap().trim().to_string();
    assert_eq!(first(&alone), first(&both_kept));
    assert_eq!(first(&alone), "0.4");
}

/// When this test fails, the aggregates of floats of this crate can be removed.
#[tokio::test]
async fn stock_float_aggregates_still_depend_on_the_cut() {
    let mut found = Vec::new();
    for values in [[1e16, 1.0, -1e16], [1e16, -1e16, 1.0]] {
        let ctx = SessionContext::new();
        let x: ArrayRef = Arc::new(Float64Array::from_iter_values(values));
        ctx.register_batch("t", make_batch(&[("x", x), ("g", make_ints([0; 3]))])).unwrap();
        found.push(stock_text(&ctx, "SELECT sum(x) AS s FROM t GROUP BY g").await);
    }
    assert_ne!(found[0], found[1], "sums of floats do not depend on the order of rows");
}

/// There are more groups than rows in a batch. The aggregation runs with and without spilling, and
/// with partial aggregations that return each row as a state without aggregating it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregates_of_many_groups_are_exact() {
    let mut found: Vec<String> = Vec::new();
    let all = make_batch(&[("v", make_ints(0..12_000))]);
    let rng = &mut ChaCha8Rng::seed_from_u64(24);
    for (partitions, size) in [(1, 8192), (4, 512)] {
        let mut config =
            SessionConfig::new().with_target_partitions(partitions).with_batch_size(size);
        let options = &mut config.options_mut().execution;
        options.skip_partial_aggregation_probe_rows_threshold = 100;
        options.skip_partial_aggregation_probe_ratio_threshold = 0.1;
        let ctx = session_with(config);
        ctx.register_table("t", Arc::new(cut_table(&all, partitions, 500, rng))).unwrap();
        let calls = format_select(&list_calls("", "x", "y", " FILTER (WHERE v % 5 > 0)"));
        let sql = format!(
            "SELECT k, {calls} FROM (SELECT v, v * 7 % 3001 AS k, sin(v) AS x, cos(v * v) AS y FROM t) GROUP BY k ORDER BY k"
        );
        found.push(query_text(&ctx, &sql).await);
    }
    assert_eq!(found[0].lines().count(), 3001 + 4);
    assert_eq!(found[0], found[1]);
}
