//! Benchmarks access to one row of a table in memory, which reads two offsets per axis and copies
//! nothing.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{Float32Array, Int64Array, UInt32Array};
use arrow::datatypes::UInt32Type;
use criterion::{Criterion, criterion_group, criterion_main};
use serrate::index::Index;
use serrate::table::RaggedTable;

fn row(c: &mut Criterion) {
    let (patients, events, codes) = (10_000usize, 100usize, 10usize);
    let table = RaggedTable::builder().lengths((0..patients).map(|i| events + i % 3 - 1)).unwrap();
    let total: usize = (0..patients).map(|i| events + i % 3 - 1).sum();
    let table = table
        .lengths(std::iter::repeat_n(codes, total))
        .unwrap()
        .column("time", 1, Arc::new(Int64Array::from_iter_values((0i64..).take(total))))
        .column("code", 2, Arc::new(UInt32Array::from_iter_values((0u32..).take(total * codes))))
        .column(
            "value",
            2,
            Arc::new(Float32Array::from_iter_values((0..total * codes).map(|i| i as f32))),
        )
        .build()
        .unwrap();
    let mut i = 0;
    let mut next = || {
        i = (i + 7919) % patients;
        i
    };
    let mut group = c.benchmark_group("row");
    group.bench_function("row(i)", |b| b.iter(|| black_box(&table).row(next()).unwrap()));
    group.bench_function("row(i) and a typed column", |b| {
        b.iter(|| table.row(next()).unwrap().typed::<UInt32Type>("code").unwrap().len());
    });
    group.bench_function("row(i) and an Arrow column", |b| {
        b.iter(|| table.row(next()).unwrap().values("code").unwrap());
    });
    group.bench_function("ten events of row(i)", |b| {
        b.iter(|| table.row(next()).unwrap().events(20..30).unwrap());
    });
    group.bench_function("row(i) as a table", |b| {
        b.iter(|| table.row(next()).unwrap().to_table().unwrap());
    });
    group.bench_function("index [i]", |b| {
        b.iter(|| table.index(&[i64::try_from(next()).unwrap().into()]).unwrap());
    });
    group.bench_function("index [i, 20:30]", |b| {
        b.iter(|| table.index(&[i64::try_from(next()).unwrap().into(), (20..30).into()]).unwrap());
    });
    group.finish();
    let mut group = c.benchmark_group("all rows");
    let all = Index::ALL;
    group.bench_function("index [:, :50]", |b| {
        b.iter(|| table.index(&[all.clone(), (..50).into()]).unwrap());
    });
    group.bench_function("index [:, -1]", |b| {
        b.iter(|| table.index(&[all.clone(), (-1).into()]).unwrap());
    });
    group.bench_function("flatten(1)", |b| b.iter(|| table.flatten(1).unwrap()));
    group.finish();
}

criterion_group!(benches, row);
criterion_main!(benches);
