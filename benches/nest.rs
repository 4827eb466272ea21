//! Benchmarks `RaggedTable::nest` of a sorted long table of 10 million rows, compared with one pass
//! over the key columns.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{AsArray, Float32Array, Int64Array, RecordBatch, UInt32Array};
use arrow::datatypes::Int64Type;
use criterion::{Criterion, criterion_group, criterion_main};
use serrate::table::{LongOptions, NestOptions, RaggedTable};

const ROWS: usize = 10_000_000;

/// Returns a table of on average 228 times per subject and 37 rows per time, as in intensive care.
fn long_table() -> RecordBatch {
    let mut subject = Vec::with_capacity(ROWS);
    let mut time = Vec::with_capacity(ROWS);
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    let mut id = 0;
    while subject.len() < ROWS {
        id += 1;
        let mut now = 0;
        for _ in 0..1 + draw(455) {
            now += 1 + draw(1000).cast_signed();
            for _ in 0..1 + draw(73) {
                subject.push(id);
                time.push(now);
            }
        }
    }
    subject.truncate(ROWS);
    time.truncate(ROWS);
    let code = UInt32Array::from_iter_values((0u32..10_000).cycle().take(ROWS));
    let value = Float32Array::from_iter_values((0u32..).take(ROWS).map(|i| i as f32));
    RecordBatch::try_from_iter([
        ("subject_id", Arc::new(Int64Array::from(subject)) as _),
        ("time", Arc::new(Int64Array::from(time)) as _),
        ("code", Arc::new(code) as _),
        ("value", Arc::new(value) as _),
    ])
    .unwrap()
}

fn nest(c: &mut Criterion) {
    let long = long_table();
    let mut group = c.benchmark_group("nest 10M rows");
    group.sample_size(20);
    group.bench_function("floor: one pass over the keys", |b| {
        let keys: Vec<&[i64]> =
            (0..2).map(|k| &long.column(k).as_primitive::<Int64Type>().values()[..]).collect();
        b.iter(|| {
            keys.iter().map(|k| black_box(k).iter().fold(0i64, |a, x| a ^ x)).fold(0, |a, x| a ^ x)
        });
    });
    let keys = ["subject_id", "time"];
    group.bench_function("nest by subject and time", |b| {
        b.iter(|| RaggedTable::nest(black_box(&long), &keys, &NestOptions::default()).unwrap());
    });
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    group.bench_function("nest by subject and time, one thread", |b| {
        b.iter(|| {
            one_thread.install(|| {
                RaggedTable::nest(black_box(&long), &keys, &NestOptions::default()).unwrap()
            })
        });
    });
    let table = RaggedTable::nest(&long, &keys, &NestOptions::default()).unwrap();
    group.bench_function("back to the long table", |b| {
        b.iter(|| black_box(&table).to_long(&LongOptions::default()).unwrap());
    });
    group.finish();
}

criterion_group!(benches, nest);
criterion_main!(benches);
