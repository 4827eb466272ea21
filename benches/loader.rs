//! Benchmarks one epoch of padded batches of a loader, compared with the time to copy the values
//! and to fill the batches.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serrate::dense::AxisSize;
use serrate::generate::mimic_table;
use serrate::loader::{BatchForm, EpochStats, Loader, LoaderOptions, WindowSampling};

const PATIENTS: usize = 1250;

fn options() -> LoaderOptions {
    LoaderOptions::new(64).window(256, WindowSampling::Random).shuffle(7).columns([
        "time_delta_days",
        "code",
        "numeric_value",
    ])
}

fn epoch(loader: &Loader, number: u64) -> EpochStats {
    let mut stats = EpochStats::default();
    for batch in loader.epoch(number).unwrap() {
        let batch = batch.unwrap();
        stats.add(batch.len(), batch.nbytes(), batch.occupied_bytes());
        black_box(batch);
    }
    stats
}

/// Returns the seconds of the fastest of 15 runs.
fn best(mut run: impl FnMut()) -> f64 {
    let times = (0..15).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

fn benches(c: &mut Criterion) {
    let table = mimic_table(PATIENTS, 7).unwrap();
    let loader = |options: LoaderOptions| Loader::try_new([table.clone()], options).unwrap();
    let padded = loader(options());
    let stats = epoch(&padded, 0);
    println!("{PATIENTS} patients: {stats}");

    // The lower bounds are the times to copy the bytes of values, and to fill an average batch once
    // per batch, both in memory that was touched before.
    let occupied = usize::try_from(stats.occupied).unwrap();
    let (source, mut target) = (vec![1u8; occupied], vec![2u8; occupied]);
    let mut batch = vec![3u8; usize::try_from(stats.bytes).unwrap() / stats.batches];
    let move_occupied = best(|| black_box(&mut target).copy_from_slice(black_box(&source)));
    let fill_dense = best(|| {
        for _ in 0..stats.batches {
            black_box(&mut batch).fill(black_box(0));
        }
    });
    println!("  floor: copy the occupied bytes     {:8.2} ms", move_occupied * 1e3);
    println!("  floor: fill the dense bytes        {:8.2} ms", fill_dense * 1e3);
    let variants = [
        ("padded", options()),
        ("padded, new loader each time", options()),
        ("padded, 2 threads", options().threads(2).prefetch(1)),
        ("padded, codes filled with 999", options().fill_column("code", 999)),
        ("padded, int64 tokens", options().tokens_as_i64(true)),
        (
            "padded, one shape for all",
            options().sizes([AxisSize::Exactly(256), AxisSize::Exactly(600)]),
        ),
        ("bucketed", options().bucket(20)),
        ("packed", options().form(BatchForm::Packed)),
        ("packed, no position ids", options().form(BatchForm::Packed).position_ids(None)),
    ];
    for (name, options) in variants {
        let mut own = loader(options.clone());
        let mut number = 0;
        let seconds = best(|| {
            if name.contains("new loader") {
                own = loader(options.clone());
            }
            number += 1;
            epoch(&own, number);
        });
        println!(
            "  {name:34} {:8.2} ms   x {:.2} of copying, x {:.2} of filling",
            seconds * 1e3,
            seconds / move_occupied,
            seconds / fill_dense
        );
    }

    let mut group = c.benchmark_group("loader");
    group.sample_size(20).throughput(Throughput::Bytes(stats.bytes));
    group.bench_function("epoch, padded", |b| b.iter(|| epoch(&padded, 0)));
    group.bench_function("plan", |b| b.iter(|| padded.plan(black_box(0))));
    group.bench_function("stats", |b| b.iter(|| padded.plan(0).stats().unwrap()));
    group.finish();
}

criterion_group!(loader_benches, benches);
criterion_main!(loader_benches);
