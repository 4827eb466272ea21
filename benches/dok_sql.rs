//! Benchmarks `dok_get` in SQL, compared with the call in Rust for the same keys: 5 million
//! lookups in a tensor of three axes with 10 million entries (`SERRATE_BENCH_ENTRIES` sets another
//! number). Half of the lookups find an entry.
//!
//! Both run with one thread and with all cores. Times are medians of alternating runs, so that
//! other load of the machine affects both alike.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]
#![allow(clippy::cast_possible_wrap, clippy::cast_precision_loss)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionConfig;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::dense::DenseTensor;
use serrate::dok::{DokTensor, DuplicateEntries, Fallback};
use serrate::io::safetensors::SaveOptions;
use serrate::{arrow, datafusion};

const LOOK_UPS: usize = 5_000_000;
const SHAPE: [usize; 3] = [1 << 20, 1 << 18, 1 << 10];
const RUNS: usize = 7;

/// Draws the coordinates of `count` keys: all of the first axis, then all of the second and of the
/// third.
fn coordinates(rng: &mut ChaCha8Rng, count: usize) -> Vec<i64> {
    let axis =
        |size: usize| (0..count).map(|_| rng.random_range(0..size as i64)).collect::<Vec<_>>();
    SHAPE.map(axis).concat()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() {
    let entries = std::env::var("SERRATE_BENCH_ENTRIES").ok().and_then(|n| n.parse().ok());
    let entries: usize = entries.unwrap_or(10_000_000);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let stored = coordinates(&mut rng, entries);
    let values: Vec<f64> = (0..entries).map(|i| i as f64 + 1.0).collect();
    let tensor = DokTensor::from_coo(
        SHAPE,
        &DenseTensor::from_vec([3, entries], stored.clone()).unwrap(),
        &DenseTensor::from_vec([entries], values).unwrap(),
        DuplicateEntries::Last,
    )
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.safetensors");
    serrate::io::dok::write(&path, &tensor, &SaveOptions::default()).unwrap();

    let mut asked = [vec![], vec![], vec![]];
    let misses = coordinates(&mut rng, LOOK_UPS / 2);
    for n in 0..LOOK_UPS {
        let hit = rng.random_range(0..entries);
        for (axis, asked) in asked.iter_mut().enumerate() {
            asked.push(match n % 2 {
                0 => stored[axis * entries + hit],
                _ => misses[axis * (LOOK_UPS / 2) + n / 2],
            });
        }
    }
    let fields = ["i", "j", "k"].map(|name| Field::new(name, DataType::Int64, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batches = |partitions: usize| -> Vec<Vec<RecordBatch>> {
        let mut out = vec![Vec::new(); partitions];
        for (n, start) in (0..LOOK_UPS).step_by(8192).enumerate() {
            let range = start..(start + 8192).min(LOOK_UPS);
            let columns = asked
                .each_ref()
                .map(|a| -> ArrayRef { Arc::new(Int64Array::from(a[range.clone()].to_vec())) });
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns.to_vec()).unwrap();
            out[n % partitions].push(batch);
        }
        out
    };
    println!("{LOOK_UPS} look-ups in {entries} entries, medians of {RUNS} runs in ms");
    println!("{:>8} {:>10} {:>10} {:>8}", "threads", "Rust", "SQL", "SQL/Rust");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for threads in [1, cores] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
            .unwrap();
        let mut tensor = serrate::io::dok::read(&path).unwrap();
        tensor.set_parallel(threads > 1);
        let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(threads));
        let table = MemTable::try_new(Arc::clone(&schema), batches(threads)).unwrap();
        ctx.register_table("asked", Arc::new(table)).unwrap();
        let create = format!("CREATE EXTERNAL TABLE t STORED AS DOK LOCATION '{}'", path.display());
        let sql = |sql: &str| {
            runtime.block_on(async { ctx.sql(sql).await.unwrap().collect().await.unwrap() })
        };
        sql(&create);
        let query = "SELECT sum(dok_get('t', i, j, k)) FROM asked";
        let slices: Vec<&[i64]> = asked.iter().map(Vec::as_slice).collect();
        let rust = || -> f64 {
            let fetched = tensor.lookup_columns(&slices, &Fallback::Zero).unwrap();
            fetched.values.as_slice::<f64>().unwrap().iter().sum()
        };
        let in_sql = || sql(query)[0].column(0).as_primitive::<Float64Type>().value(0);
        assert_eq!(rust(), in_sql());
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let start = Instant::now();
            std::hint::black_box(rust());
            ours.push(start.elapsed());
            let start = Instant::now();
            std::hint::black_box(in_sql());
            theirs.push(start.elapsed());
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!("{threads:>8} {ours:>10.1} {theirs:>10.1} {:>8.2}", theirs / ours);
    }
}
