//! Benchmarks the parsers of this crate for JSON text and for headers of safetensors files,
//! compared with those of libraries. `docs/decisions/0014-parsers-and-names-of-our-own.md` says why
//! they are not replaced.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::SafeTensors;
use serde_json::{Map, Value, json};
use serrate::io::json::JsonOptions;
use serrate::io::safetensors::SafetensorsHeader;
use serrate::table::RaggedTable;

const PATIENTS: usize = 200;
const TENSORS: usize = 10_000;

type Lists<T> = Vec<Vec<Vec<T>>>;

/// Draws a value for each measurement; `sizes` has the number of measurements of each event.
fn draw_values<T>(sizes: &[Vec<usize>], mut draw: impl FnMut() -> T) -> Lists<T> {
    let events = |event: &Vec<usize>| -> Vec<Vec<T>> {
        event.iter().map(|size| (0..*size).map(|_| draw()).collect()).collect()
    };
    sizes.iter().map(events).collect()
}

/// Returns JSON text of two columns, codes and values, of patients who have on average 228 events
/// of 37 measurements.
fn make_text() -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let sizes: Vec<Vec<usize>> = (0..PATIENTS)
        .map(|_| (0..rng.random_range(1..456usize)).map(|_| rng.random_range(1..74)).collect())
        .collect();
    let codes = draw_values(&sizes, || rng.random_range(0..4_000u32));
    let values = draw_values(&sizes, || f64::from(rng.random_range(0..100_000u32)) / 100.0);
    serde_json::to_vec(&json!({"code": codes, "value": values})).unwrap()
}

fn parse_json(c: &mut Criterion) {
    let text = make_text();
    let options = JsonOptions::default();
    let mut group = c.benchmark_group(format!("JSON, {} MB", text.len() / 1_000_000));
    group.sample_size(10).throughput(Throughput::Bytes(u64::try_from(text.len()).unwrap()));
    group.bench_function("columns", |b| {
        b.iter(|| RaggedTable::from_json_text(black_box(&text), &options).unwrap());
    });
    group.bench_function("serde_json: a tree of values, then columns", |b| {
        b.iter(|| {
            let tree: Value = serde_json::from_slice(black_box(&text)).unwrap();
            RaggedTable::from_json(&tree, &options).unwrap()
        });
    });
    // serde_json parses vectors of known type and depth, which is less work than reading columns.
    group.bench_function("floor of serde_json: vectors of floats", |b| {
        b.iter(|| {
            let columns: HashMap<String, Lists<f64>> =
                serde_json::from_slice(black_box(&text)).unwrap();
            columns
        });
    });
    group.finish();
}

fn parse_headers(c: &mut Criterion) {
    let describe =
        |i: usize| json!({"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]});
    let tensors: Map<String, Value> =
        (0..TENSORS).map(|i| (format!("layers/{i}/weight"), describe(i))).collect();
    let header = serde_json::to_vec(&tensors).unwrap();
    let mut file = u64::try_from(header.len()).unwrap().to_le_bytes().to_vec();
    file.extend(&header);
    file.resize(file.len() + 4 * TENSORS, 0);
    let length = u64::try_from(file.len()).unwrap();
    let mut group = c.benchmark_group(format!("safetensors header, {TENSORS} tensors"));
    group.bench_function("checked, with names in errors", |b| {
        b.iter(|| SafetensorsHeader::parse(Path::new("t"), black_box(&header), length).unwrap());
    });
    group.bench_function("the crate safetensors, over the whole file", |b| {
        b.iter(|| SafeTensors::read_metadata(black_box(&file)).unwrap());
    });
    group.finish();
}

criterion_group!(benches, parse_json, parse_headers);
criterion_main!(benches);
