//! Benchmarks `.nrt` files: reading one patient of a file of 68 MB, reading the whole file, and
//! writing it.
//!
//! Expected times: less than 1 ms to open the file and to read one patient; the time to copy the
//! bounds for reading a whole mapped file, because values are not copied; and for writing, the time
//! to write as many bytes twice (to temporary files and to the result) and to sync them once.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Float32Array, Float64Array, Int64Array, UInt16Array};
use criterion::{Criterion, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::io::nrt::{NrtFile, NrtSchema, NrtWriter, ReadOptions, WriteOptions};
use serrate::table::RaggedTable;

const PATIENTS: usize = 1300;

/// Draws patients with 228 events of 37 measurements on average, as in intensive care.
fn patients(rng: &mut ChaCha8Rng, n: usize) -> RaggedTable {
    let events: Vec<usize> = (0..n).map(|_| rng.random_range(1..456)).collect();
    let total: usize = events.iter().sum();
    let sizes: Vec<usize> = (0..total).map(|_| rng.random_range(1..74)).collect();
    let leaves: usize = sizes.iter().sum();
    let ids = Int64Array::from_iter_values((0..n).map(|i| i64::try_from(i).unwrap()));
    let times = Float64Array::from_iter_values((0..total).map(|_| rng.random()));
    let codes = UInt16Array::from_iter_values((0..leaves).map(|_| rng.random()));
    let values = Float32Array::from_iter_values((0..leaves).map(|_| rng.random()));
    RaggedTable::builder()
        .lengths(events)
        .unwrap()
        .lengths(sizes)
        .unwrap()
        .column("subject_id", 0, Arc::new(ids))
        .column("time_delta_days", 1, Arc::new(times))
        .column("code", 2, Arc::new(codes))
        .column("numeric_value", 2, Arc::new(values))
        .build()
        .unwrap()
}

fn write(path: &Path, chunks: &[RaggedTable]) {
    let options = WriteOptions { overwrite: true, plain: false };
    let mut writer = NrtWriter::create(path, &NrtSchema::of_table(&chunks[0]), &options).unwrap();
    for chunk in chunks {
        writer.write(chunk).unwrap();
    }
    writer.finish().unwrap();
}

fn nrt(c: &mut Criterion) {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let chunks: Vec<_> = (0..PATIENTS / 50).map(|_| patients(&mut rng, 50)).collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("patients.nrt");
    write(&path, &chunks);
    let size = std::fs::metadata(&path).unwrap().len();

    let mut group = c.benchmark_group(format!("nrt, {} MB", size / 1_000_000));
    group.sample_size(20);
    for (name, mmap) in [("mapped", true), ("plain reads", false)] {
        let options = ReadOptions { mmap, ..ReadOptions::default() };
        let mut row = 0;
        group.bench_function(format!("open and read one patient, {name}"), |b| {
            b.iter(|| {
                row = (row + 617) % PATIENTS;
                let file = NrtFile::open(&path, &options).unwrap();
                black_box(file.read(row..row + 1, None).unwrap())
            });
        });
        let file = NrtFile::open(&path, &options).unwrap();
        group.bench_function(format!("read one patient of an open file, {name}"), |b| {
            b.iter(|| {
                row = (row + 617) % PATIENTS;
                black_box(file.read(row..row + 1, None).unwrap())
            });
        });
        group.bench_function(format!("read all, {name}"), |b| {
            b.iter(|| black_box(file.table().unwrap()));
        });
    }
    let copy = dir.path().join("copy.nrt");
    group.sample_size(10);
    group.bench_function("write", |b| b.iter(|| write(&copy, &chunks)));
    group.bench_function("floor of write: the same bytes twice, one sync", |b| {
        let bytes = std::fs::read(&path).unwrap();
        b.iter(|| {
            use std::io::Write;
            for (file, sync) in [("a", false), ("b", true)] {
                let mut file = std::fs::File::create(dir.path().join(file)).unwrap();
                file.write_all(&bytes).unwrap();
                if sync {
                    file.sync_all().unwrap();
                }
            }
        });
    });
    group.finish();
}

criterion_group!(benches, nrt);
criterion_main!(benches);
