//! Results that do not depend on the order of rows, on batches or on partitions: sums, means,
//! extremes, sorts and RANGE frames.

use datafusion::arrow::array::{Array, ListArray, UInt64Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema};
use datafusion::datasource::MemTable;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::sql::session_with;

use super::*;

/// Returns `n` rows with a group key `g`, a list `x` of floats of all magnitudes, and a list `i` of
/// integers whose sums overflow 64 bits midway.
fn draw_rows(rng: &mut ChaCha8Rng, n: usize) -> RecordBatch {
    let float = |rng: &mut ChaCha8Rng| match rng.random_range(0..40) {
        0 => f64::NAN,
        1 => f64::NEG_INFINITY,
        2..8 => 1e308 * f64::from(rng.random_range(-1..=1i8)),
        8..20 => f64::from(rng.random_range(-9..9i8)) * 1e-300,
        _ => rng.random_range(-1e3..1e3),
    };
    let lists: Vec<Option<Vec<Option<f64>>>> = (0..n)
        .map(|_| {
            let length = rng.random_range(0..9);
            let value = |rng: &mut ChaCha8Rng| (rng.random_range(0..7) > 0).then(|| float(rng));
            (rng.random_range(0..9) > 0).then(|| (0..length).map(|_| value(rng)).collect())
        })
        .collect();
    let x = ListArray::from_iter_primitive::<Float64Type, _, _>(lists);
    // Alternates between the largest integer and its negative.
    let ends = |i: usize| if i.is_multiple_of(2) { i64::MAX } else { -i64::MAX };
    let i = ListArray::from_iter_primitive::<Int64Type, _, _>(
        (0..n).map(|row| Some(vec![Some(ends(row)), Some(row as i64)])),
    );
    let g: ArrayRef = make_ints((0..n).map(|_| rng.random_range(0..4)));
    let fields = vec![
        Field::new("g", DataType::Int64, true),
        Field::new("x", x.data_type().clone(), true),
        Field::new("i", i.data_type().clone(), true),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![g, Arc::new(x), Arc::new(i)]).unwrap()
}

/// Returns a table of the rows of `all`, shuffled, in batches of at most `most` rows.
pub(super) fn cut_table(
    all: &RecordBatch,
    partitions: usize,
    most: usize,
    rng: &mut ChaCha8Rng,
) -> MemTable {
    let n = all.num_rows();
    let mut order: Vec<u64> = (0..n as u64).collect();
    for i in (1..n).rev() {
        order.swap(i, rng.random_range(0..=i));
    }
    let moved = take_record_batch(all, &UInt64Array::from(order)).unwrap();
    let mut parts = vec![Vec::new(); partitions];
    let mut at = 0;
    while at < n {
        let length = rng.random_range(1..=most).min(n - at);
        parts[rng.random_range(0..partitions)].push(moved.slice(at, length));
        at += length;
    }
    MemTable::try_new(all.schema(), parts).unwrap()
}

#[tokio::test]
async fn sums_and_means_do_not_depend_on_batches() {
    let rng = &mut ChaCha8Rng::seed_from_u64(11);
    let all = draw_rows(rng, 300);
    let queries = [
        "SELECT ragged_sum_agg(x) AS s, ragged_mean_agg(x) AS m, ragged_min_agg(x) AS l, ragged_max_agg(x) AS h FROM t",
        "SELECT g, ragged_sum_agg(x) AS s, ragged_mean_agg(x) AS m, ragged_min_agg(x) AS l, ragged_max_agg(x) AS h FROM t GROUP BY g ORDER BY g",
        "SELECT g, ragged_sum_agg(ragged_try_cast(x, 'Float32')) AS s, ragged_mean_agg(ragged_try_cast(x, 'Float16')) AS m FROM t GROUP BY g ORDER BY g",
        "SELECT ragged_sum_agg(i) AS s, ragged_mean_agg(i) AS m FROM t",
        "SELECT g, ragged_sum_agg([x, x]) AS s, ragged_mean_agg([[1.5], ragged_head(x, 2)]) AS m FROM t GROUP BY g ORDER BY g",
        "SELECT ragged_histogram_agg(x) AS h FROM t",
    ];
    let mut expected: Vec<Option<RecordBatch>> = vec![None; queries.len()];
    for trial in 0..12 {
        let partitions = 1 + trial % 4;
        let size = [1, 3, 64, 8192][trial % 4];
        let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(size);
        let ctx = session_with(config);
        let table = cut_table(&all, partitions, 40, rng);
        ctx.register_table("t", Arc::new(table)).unwrap();
        for (sql, expected) in queries.iter().zip(&mut expected) {
            let found = run_query(&ctx, sql).await;
            let found = concat_batches(&found[0].schema(), &found).unwrap();
            // The comparison of arrays compares the bits of floats.
            match expected {
                None => *expected = Some(found),
                Some(first) => assert!(
                    *first == found,
                    "{sql}\n{}",
                    pretty_format_batches(&[first.clone(), found]).unwrap()
                ),
            }
        }
    }
}

#[tokio::test]
async fn only_the_final_sum_overflows() {
    let ctx = create_parallel_session();
    let fits = "SELECT ragged_sum_agg(x) AS s FROM (VALUES ([9223372036854775807]), ([9223372036854775807]), ([-9223372036854775807])) AS t(x)";
    assert_eq!(query_text(&ctx, fits).await.lines().nth(3).unwrap(), "| [9223372036854775807] |");
    let e = error(
        &ctx,
        "SELECT ragged_sum_agg(x) AS s FROM (VALUES ([9223372036854775807]), ([1])) AS t(x)",
    )
    .await;
    assert!(e.contains("does not fit"), "{e}");
    let mean =
        "SELECT ragged_mean_agg(x) AS m FROM (VALUES ([1e308]), ([1e308]), ([NULL])) AS t(x)";
    assert_eq!(query_text(&ctx, mean).await.lines().nth(3).unwrap(), "| [1e308] |");
}

/// Equal lists have equal variances, wherever they are in a batch. A variance that is computed from
/// finite values does not overflow.
#[tokio::test]
async fn equal_lists_have_equal_variances() {
    let ctx = create_parallel_session();
    let list = "[NULL,-2,NULL,NULL,NULL,NULL,-3,NULL,-5,NULL,NULL,NULL,NULL]";
    let sql = format!(
        "SELECT count(DISTINCT ragged_var(x)) AS v, count(DISTINCT ragged_std(x)) AS s FROM (VALUES ({list}), ([7]), ({list}), ([7, 7, 8]), ({list})) AS t(x) WHERE ragged_count(x) = 3 AND ragged_min(x) < 0"
    );
    assert_eq!(query_text(&ctx, &sql).await.lines().nth(3).unwrap(), "| 1 | 1 |");
    let far =
        "SELECT ragged_var([1e308, 1e308], -1, 0) AS v, ragged_std([-1e308, -1e308, NULL]) AS s";
    assert_eq!(query_text(&ctx, far).await.lines().nth(3).unwrap(), "| 0.0 | 0.0 |");
}

/// A list of one element is broadcast to the length of the other list of its row, independently of
/// the other rows of the batch.
#[tokio::test]
async fn lists_of_one_element_are_broadcast_per_row() {
    let rows = "(VALUES (1, [1, 2, 3], [10]), (2, [1, 2], [5, 6]), (3, [4], [1, 2]), (4, [7], []), (5, NULL, [1])) AS t(id, x, y)";
    for size in [1, 2, 8192] {
        let ctx = session_with(SessionConfig::new().with_batch_size(size));
        let sql = format!(
            "SELECT id, ragged_add(x, y) AS a, x * y AS m, ragged_where(ragged_lt(x, y), x, y) AS w, ragged_pow(x, ragged_minimum(y, 2)) AS p FROM {rows} ORDER BY id"
        );
        let shown = query_text(&ctx, &sql).await;
        let shown: Vec<&str> = shown.lines().skip(3).take(5).collect();
        let squeezed: Vec<String> =
            shown.iter().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            squeezed,
            [
                "| 1 | [11, 12, 13] | [10, 20, 30] | [1, 2, 3] | [1, 4, 9] |",
                "| 2 | [6, 8] | [5, 12] | [1, 2] | [1, 4] |",
                "| 3 | [5, 6] | [4, 8] | [1, 2] | [4, 16] |",
                "| 4 | [] | [] | [] | [] |",
                "| 5 | | | | |",
            ]
        );
        let other = "SELECT x + y AS s FROM (VALUES ([1, 2, 3], [10, 20]), ([1], [2])) AS t(x, y)";
        let e = error(&ctx, other).await;
        assert!(e.contains("has 3 element(s) on the left and 2 on the right"), "{e}");
    }
    let ctx = create_parallel_session();
    let bound = "SELECT ragged_between(w, w, id, f) AS x FROM (VALUES (1, [1, 2, 3], 2.5), (2, [1, 2, 3], NULL)) AS t(id, w, f) ORDER BY id";
    let shown = query_text(&ctx, bound).await;
    assert_eq!(shown.lines().nth(3).unwrap(), "| [1, 2] |");
    assert_eq!(shown.lines().nth(4).unwrap(), "| [2, 3] |");
    let e = error(&ctx, "SELECT ragged_repeat([5], [1, 2, 3])").await;
    assert!(e.contains("list of counts has several"), "{e}");
}

#[tokio::test]
async fn zeros_of_both_signs_are_equal_and_nans_are_equal() {
    let ctx = create_parallel_session();
    let sql = "SELECT ragged_argsort(z) AS a, ragged_argsort(z, 'desc') AS d, ragged_rank(z) AS r, ragged_sort(z) AS s, ragged_sort(z, 'desc') AS t, ragged_unique(z) AS u, ragged_nunique(z) AS n
               FROM (VALUES ([0.0, -0.0, 0.0, -1.0]), ([0.0, NULL, -0.0])) AS v(z)";
    let shown = query_text(&ctx, sql).await;
    let squeezed: Vec<String> = shown
        .lines()
        .skip(3)
        .take(2)
        .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        squeezed,
        [
            "| [3, 0, 1, 2] | [0, 1, 2, 3] | [1, 2, 3, 0] | [-1.0, 0.0, -0.0, 0.0] | [0.0, -0.0, 0.0, -1.0] | [-1.0, 0.0] | 2 |",
            "| [0, 2, 1] | [0, 2, 1] | [0, , 1] | [0.0, -0.0, ] | [0.0, -0.0, ] | [0.0] | 1 |",
        ]
    );
    // `m` contains the NaN of `inf - inf`, whose sign bit differs from that of the literal in `n`.
    let nan = "SELECT ragged_eq(m, n) AS e, ragged_gt(m, 5.0) AS g, m > 5.0 AS o, ragged_isin(m, n) AS i, ragged_nunique([m, n]) AS u, ragged_searchsorted(ragged_sort(m), CAST('NaN' AS DOUBLE), 'left') AS l, ragged_argsort(m) AS a
               FROM (SELECT ragged_sub(x, y) AS m, [CAST('NaN' AS DOUBLE)] AS n FROM (VALUES ([CAST('Infinity' AS DOUBLE), 1.0], [CAST('Infinity' AS DOUBLE), 1.0])) AS t(x, y))";
    let shown = query_text(&ctx, nan).await;
    let row = shown.lines().nth(3).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        row,
        "| [true, false] | [true, false] | [true, false] | [true, false] | 2 | 1 | [1, 0] |"
    );
    let half = "SELECT ragged_gt(ragged_cast(m, 'Float16'), ragged_cast([5.0], 'Float16')) AS g FROM (SELECT ragged_sub(x, x) AS m FROM (VALUES ([CAST('Infinity' AS DOUBLE), 1.0])) AS t(x))";
    assert_eq!(query_text(&ctx, half).await.lines().nth(3).unwrap(), "| [true, false] |");
}

#[tokio::test]
async fn rounding_to_more_digits_than_floats_have_is_exact() {
    let ctx = create_parallel_session();
    let sql = "SELECT ragged_round(x, 400) AS a, ragged_round(x, -400) AS b, ragged_round(x, -2) AS c FROM (VALUES ([1.5, -150.0, NULL])) AS t(x)";
    assert_eq!(
        query_text(&ctx, sql).await.lines().nth(3).unwrap(),
        "| [1.5, -150.0, ] | [0.0, -0.0, ] | [0.0, -200.0, ] |"
    );
}

/// Returns a table with a constant column `g` and a column `f`, and one batch per value of `f`.
fn table_of(values: &[Option<f64>]) -> MemTable {
    let fields =
        vec![Field::new("g", DataType::Int64, true), Field::new("f", DataType::Float64, true)];
    let schema = Arc::new(Schema::new(fields));
    let batch = |v: &Option<f64>| {
        let f: ArrayRef = Arc::new(datafusion::arrow::array::Float64Array::from(vec![*v]));
        RecordBatch::try_new(Arc::clone(&schema), vec![make_ints([0]), f]).unwrap()
    };
    let batches = values.iter().map(batch).collect();
    MemTable::try_new(schema, vec![batches]).unwrap()
}

#[tokio::test]
async fn min_and_max_of_floats_have_one_order() {
    let nan = Some(f64::NAN);
    let orders: [&[Option<f64>]; 5] = [
        &[nan, Some(2.0), Some(1.0), None],
        &[Some(1.0), nan, Some(2.0)],
        &[Some(2.0), Some(1.0), nan],
        &[Some(1.0), Some(-f64::NAN), Some(2.0)],
        &[Some(-f64::NAN), None, Some(2.0), Some(1.0)],
    ];
    let of = |order: &[Option<f64>]| table_of(order);
    for values in orders {
        let ctx = create_parallel_session();
        ctx.register_table("t", Arc::new(of(values))).unwrap();
        for sql in [
            "SELECT g, min(f) AS l, max(f) AS h FROM t GROUP BY g",
            "SELECT 0 AS g, min(f) AS l, max(f) AS h FROM t",
            "SELECT g, min(f) AS l, max(f) AS h FROM t GROUP BY g ORDER BY max(f) DESC LIMIT 1",
            "SELECT g, min(f) FILTER (WHERE g = 0) AS l, max(f) AS h FROM t GROUP BY g",
        ] {
            let shown = query_text(&ctx, sql).await;
            assert_eq!(shown.lines().nth(3).unwrap(), "| 0 | 1.0 | NaN |", "{sql} {values:?}");
        }
    }
    let ctx = create_parallel_session();
    ctx.register_table("t", Arc::new(of(&[Some(f64::NEG_INFINITY), None]))).unwrap();
    ctx.register_table("u", Arc::new(of(&[Some(f64::INFINITY)]))).unwrap();
    ctx.register_table("n", Arc::new(of(&[None]))).unwrap();
    let sql = "SELECT (SELECT max(f) FROM t GROUP BY g) AS a, (SELECT min(f) FROM u GROUP BY g) AS b, (SELECT max(f) FROM n GROUP BY g) AS c, max(CAST(f AS REAL)) AS d FROM t GROUP BY g";
    assert_eq!(query_text(&ctx, sql).await.lines().nth(3).unwrap(), "| -inf | inf |   | -inf |");
    let others =
        "SELECT min(x) AS a, max(x) AS b, min(y) AS c FROM (VALUES (2, 'b'), (1, 'a')) AS t(x, y)";
    assert_eq!(query_text(&ctx, others).await.lines().nth(3).unwrap(), "| 1 | 2 | a |");
    // Statistics of Parquet files ignore NaN, so the maximum is not computed from them.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.parquet");
    ctx.register_table("v", Arc::new(of(&[Some(1.0), nan]))).unwrap();
    query_batches(&ctx, &format!("COPY v TO '{}'", display_path(&file))).await.unwrap();
    let shown =
        query_text(&ctx, &format!("SELECT max(f) AS h FROM '{}'", display_path(&file))).await;
    assert_eq!(shown.lines().nth(3).unwrap(), "| NaN |");
}

#[tokio::test]
async fn nan_next_to_one_number_is_read_from_files() {
    let ctx = create_parallel_session();
    let folder = tempfile::tempdir().unwrap();
    for t in ["DOUBLE", "REAL"] {
        let file = display_path(&folder.path().join(format!("{t}.parquet")));
        let copy = format!(
            "COPY (SELECT id, CAST(f AS {t}) AS f, CAST(g AS {t}) AS g FROM (VALUES (0, 1.0, 2.0), (1, CAST('NaN' AS DOUBLE), 2.0)) AS t(id, f, g)) TO '{file}'"
        );
        query_batches(&ctx, &copy).await.unwrap();
        let external = format!("CREATE EXTERNAL TABLE {t}_t STORED AS PARQUET LOCATION '{file}'");
        query_batches(&ctx, &external).await.unwrap();
        for from in [format!("'{file}'"), format!("{t}_t")] {
            let shown = query_text(&ctx, &format!("SELECT f, g FROM {from} ORDER BY id")).await;
            assert_eq!(shown.lines().nth(3).unwrap(), "| 1.0 | 2.0 |", "{from}");
            assert_eq!(shown.lines().nth(4).unwrap(), "| NaN | 2.0 |", "{from}");
            let shown =
                query_text(&ctx, &format!("SELECT min(f) AS l, max(f) AS h FROM {from}")).await;
            assert_eq!(shown.lines().nth(3).unwrap(), "| 1.0 | NaN |", "{from}");
        }
    }
}

/// When this test fails, the aggregates `min` and `max` of this crate can be removed.
#[tokio::test]
async fn stock_extremes_are_still_wrong() {
    let ctx = SessionContext::new();
    let values = [Some(1.0), Some(f64::NAN), Some(2.0)];
    ctx.register_table("t", Arc::new(table_of(&values))).unwrap();
    ctx.register_table("u", Arc::new(table_of(&[Some(f64::NEG_INFINITY)]))).unwrap();
    let nan = stock_text(&ctx, "SELECT max(f) AS h FROM t GROUP BY g").await;
    let infinite = stock_text(&ctx, "SELECT max(f) AS h FROM u GROUP BY g").await;
    let right = nan.contains("NaN") && infinite.contains("-inf");
    assert!(!right, "min and max of floats are right: {nan}\n{infinite}");
}

#[tokio::test]
async fn order_by_lists_does_not_depend_on_batches() {
    let rng = &mut ChaCha8Rng::seed_from_u64(12);
    let lists = (0..60).map(|_| {
        let value = |rng: &mut ChaCha8Rng| match rng.random_range(0..4) {
            0 => None,
            1 => Some(f64::NAN),
            _ => Some(f64::from(rng.random_range(0..3i8))),
        };
        let length = rng.random_range(0..4);
        (rng.random_range(0..8) > 0).then(|| (0..length).map(|_| value(rng)).collect::<Vec<_>>())
    });
    let lists: Vec<_> = lists.collect();
    let x = ListArray::from_iter_primitive::<Float64Type, _, _>(lists);
    let fields =
        vec![Field::new("id", DataType::Int64, true), Field::new("x", x.data_type().clone(), true)];
    let schema = Arc::new(Schema::new(fields));
    let all =
        RecordBatch::try_new(Arc::clone(&schema), vec![make_ints(0..60), Arc::new(x)]).unwrap();
    // When this part of the test fails, DataFusion sorts lists correctly without the workaround.
    let parts = vec![(0..60).map(|at| all.slice(at, 1)).collect::<Vec<_>>()];
    let stock = SessionContext::new();
    let table = MemTable::try_new(Arc::clone(&schema), parts).unwrap();
    stock.register_table("t", Arc::new(table)).unwrap();
    let mut wrong = false;
    for order in ["x, id", "x DESC, id"] {
        let whole = stock_ints(&stock, &format!("SELECT id FROM t ORDER BY {order}")).await;
        for n in [1, 5, 20] {
            let first = format!("SELECT id FROM t ORDER BY {order} LIMIT {n}");
            wrong |= stock_ints(&stock, &first).await != whole[..n];
        }
    }
    assert!(wrong, "TopK over lists is right without SortLists");
    let orders =
        ["x, id", "x DESC, id", "x NULLS FIRST, id", "x DESC NULLS LAST, id", "{'a': x}, id"];
    for order in orders {
        let mut expected: Option<Vec<i64>> = None;
        for (size, partitions) in [(60, 1), (1, 1), (7, 1), (3, 4)] {
            let mut parts = vec![Vec::new(); partitions];
            for (i, at) in (0..60).step_by(size).enumerate() {
                parts[i % partitions].push(all.slice(at, size.min(60 - at)));
            }
            let config = SessionConfig::new().with_target_partitions(partitions);
            let ctx = session_with(config);
            let table = MemTable::try_new(Arc::clone(&schema), parts).unwrap();
            ctx.register_table("t", Arc::new(table)).unwrap();
            let whole = query_ints(&ctx, &format!("SELECT id FROM t ORDER BY {order}")).await;
            for n in [1, 5, 20] {
                let sql = format!("SELECT id FROM t ORDER BY {order} LIMIT {n}");
                assert_eq!(query_ints(&ctx, &sql).await, whole[..n], "{sql}, batches of {size}");
            }
            let first = expected.get_or_insert_with(|| whole.clone());
            assert_eq!(*first, whole, "{order}");
        }
    }
}

/// RANGE frames that end before the current row, over keys that contain NULL or infinities, for
/// which `key - n` equals `key`.
const RANGE_FRAMES: &str =
    "SELECT count(*) OVER (ORDER BY z RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING)
        + count(*) OVER (ORDER BY f DESC RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING)
        + min(z) OVER (ORDER BY f RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) * 100
    FROM t";

fn range_frames(batch: usize) -> SessionConfig {
    SessionConfig::new().with_target_partitions(1).with_batch_size(batch)
}

const RANGE_KEYS: &str = "CREATE TABLE t AS
    SELECT CASE WHEN value < 8 THEN value END AS z, CASE WHEN value > 5 THEN 'inf'::DOUBLE ELSE value END AS f
    FROM generate_series(1, 12)";

#[tokio::test]
async fn range_frames_contain_all_peers_in_batches_of_any_size() {
    let mut expected = None;
    for batch in [8192, 1, 3, 5] {
        let ctx = serrate::sql::session_with(range_frames(batch));
        query_batches(&ctx, RANGE_KEYS).await.unwrap();
        let mut found =
            query_ints(&ctx, &format!("SELECT coalesce(s, -1) FROM ({RANGE_FRAMES}) AS q(s)"))
                .await;
        found.sort_unstable();
        assert_eq!(*expected.get_or_insert_with(|| found.clone()), found, "{batch}");
        let nulls =
            "SELECT min(n) FROM (SELECT z, count(*) OVER (ORDER BY z RANGE BETWEEN 1 PRECEDING AND
            1 PRECEDING) AS n FROM t) WHERE z IS NULL";
        assert_eq!(query_int(&ctx, nulls).await, 5, "{batch}");
    }
}

/// When this test fails, `sql::workarounds::windows::range_frames` can be removed.
#[tokio::test]
async fn stock_range_frames_of_nulls_still_miss_peers() {
    let ctx = SessionContext::new_with_config(range_frames(1));
    stock_batches(&ctx, RANGE_KEYS).await.unwrap();
    let nulls =
        "SELECT min(n) FROM (SELECT z, count(*) OVER (ORDER BY z RANGE BETWEEN 1 PRECEDING AND
        1 PRECEDING) AS n FROM t) WHERE z IS NULL";
    assert!(stock_one(&ctx, nulls).await < 5);
}
