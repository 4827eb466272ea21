//! Benchmarks the batched hash map with 10 million random keys of three int64 and 5 million
//! lookups, compared with hashbrown and its default hasher.
//!
//! Before the results of Criterion, a table compares both in the same run, with one thread and with
//! all: lookups of present and of missing keys, construction, and memory per entry. `DOK_KEYS` sets
//! another number of keys.
#![allow(clippy::unwrap_used, missing_docs)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hashbrown::HashMap as Brown;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::dense::{DType, DenseTensor};
use serrate::dok::{DokTensor, DuplicateEntries, Fallback, MapOptions, RowMap, RowType};

/// The size of each of the three axes, so that the tensor has 2^36 elements.
const SIDE: i64 = 1 << 12;

struct Data {
    keys: DenseTensor,
    values: DenseTensor,
    hits: DenseTensor,
    misses: DenseTensor,
}

fn keys_of(t: &DenseTensor) -> &[[i64; 3]] {
    t.as_slice::<i64>().unwrap().as_chunks::<3>().0
}

fn count() -> usize {
    std::env::var("DOK_KEYS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000_000)
}

fn data(n: usize) -> Data {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut random = |odd: i64| -> [i64; 3] {
        let mut axis = || rng.random_range(0..SIDE);
        // The last coordinate of stored keys is even, and that of missing keys is odd.
        [axis(), axis(), axis() / 2 * 2 + odd]
    };
    let tensor = |rows: &[[i64; 3]]| {
        DenseTensor::from_vec([rows.len(), 3], rows.as_flattened().to_vec()).unwrap()
    };
    let keys: Vec<[i64; 3]> = (0..n).map(|_| random(0)).collect();
    let misses: Vec<[i64; 3]> = (0..n / 2).map(|_| random(1)).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let hits: Vec<[i64; 3]> = (0..n / 2).map(|_| keys[rng.random_range(0..n)]).collect();
    let values = DenseTensor::from_vec([n], (0..n).map(|i| i as f64).collect()).unwrap();
    Data { keys: tensor(&keys), values, hits: tensor(&hits), misses: tensor(&misses) }
}

fn best<T>(rounds: usize, mut run: impl FnMut() -> T) -> (Duration, T) {
    let mut best = Duration::MAX;
    let mut last = None;
    for _ in 0..rounds {
        drop(last.take());
        let start = Instant::now();
        let answer = black_box(run());
        best = best.min(start.elapsed());
        last = Some(answer);
    }
    (best, last.unwrap())
}

/// Looks up all keys in hashbrown, one after the other. Returns the values, and whether each key
/// was found.
fn brown_get(map: &Brown<[i64; 3], f64>, asked: &[[i64; 3]]) -> (Vec<f64>, Vec<bool>) {
    let mut values = Vec::with_capacity(asked.len());
    let mut there = Vec::with_capacity(asked.len());
    for key in asked {
        let value = map.get(key);
        values.push(value.copied().unwrap_or(0.0));
        there.push(value.is_some());
    }
    (values, there)
}

fn options(parallel: bool) -> MapOptions {
    MapOptions { seed: Some(1), parallel, ..Default::default() }
}

fn build(data: &Data, parallel: bool) -> RowMap {
    let key = RowType::new(DType::I64, [3]).unwrap();
    let mut map = RowMap::with_types(key, RowType::scalar(DType::F64), options(parallel)).unwrap();
    map.reserve(data.keys.shape()[0]).unwrap();
    map.set(&data.keys, &data.values).unwrap();
    map
}

fn brown_build(data: &Data, reserve: bool) -> Brown<[i64; 3], f64> {
    let keys = keys_of(&data.keys);
    let mut map = if reserve { Brown::with_capacity(keys.len()) } else { Brown::new() };
    for (key, value) in keys.iter().zip(data.values.as_slice::<f64>().unwrap()) {
        map.insert(*key, *value);
    }
    map
}

fn table(data: &Data) -> (RowMap, RowMap, DokTensor, Brown<[i64; 3], f64>) {
    let row = |task: &str, ours: Duration, theirs: Duration| {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        let times = theirs.as_secs_f64() / ours.as_secs_f64();
        println!("{task:44} {:9.1} ms {:9.1} ms {times:7.2}x", ms(ours), ms(theirs));
    };
    let threads = rayon::current_num_threads();
    println!("{} keys, {} look-ups, {threads} threads", data.keys.shape()[0], data.hits.shape()[0]);
    println!("{:44} {:>12} {:>12}", "", "serrate", "hashbrown");
    let (theirs, brown) = best(2, || brown_build(data, true));
    let (ours, one) = best(2, || build(data, false));
    row("build, reserved, 1 thread", ours, theirs);
    let (ours, all) = best(2, || build(data, true));
    row("build, reserved, all threads", ours, theirs);
    assert_eq!(brown.len(), one.len());
    assert_eq!(one.len(), all.len());
    let (theirs, _) = best(1, || brown_build(data, false));
    let grown = |parallel| {
        let mut map = RowMap::new(options(parallel)).unwrap();
        map.set(&data.keys, &data.values).unwrap();
        map
    };
    let (ours, _) = best(1, || grown(false));
    row("build, growing, 1 thread", ours, theirs);
    let (ours, _) = best(1, || grown(true));
    row("build, growing, all threads", ours, theirs);
    for (name, asked) in [("hits", &data.hits), ("misses", &data.misses)] {
        let (theirs, expected) = best(5, || brown_get(&brown, keys_of(asked)));
        for (map, threads) in [(&one, "1 thread"), (&all, "all threads")] {
            let (ours, found) = best(5, || map.get(asked, &Fallback::Zero).unwrap());
            assert_eq!(found.values.as_slice::<f64>().unwrap(), expected.0);
            assert_eq!(found.found, expected.1);
            row(&format!("get, {name}, {threads}"), ours, theirs);
        }
        let mut values = vec![0u8; asked.shape()[0] * 8];
        let mut found = vec![false; asked.shape()[0]];
        let into = || one.get_into(asked, &Fallback::Zero, &mut values, &mut found).unwrap();
        let (ours, ()) = best(5, into);
        row(&format!("get into, {name}, 1 thread"), ours, theirs);
    }
    let indices = {
        let n = data.keys.shape()[0];
        let keys = keys_of(&data.keys);
        let all: Vec<i64> = (0..3).flat_map(|a| keys.iter().map(move |k| k[a])).collect();
        DenseTensor::from_vec([3, n], all).unwrap()
    };
    let side = SIDE as usize;
    let (_, mut tensor) = best(1, || {
        DokTensor::from_coo([side; 3], &indices, &data.values, DuplicateEntries::Last).unwrap()
    });
    let (theirs, expected) = best(3, || brown_get(&brown, keys_of(&data.hits)));
    for parallel in [false, true] {
        tensor.set_parallel(parallel);
        let (ours, found) = best(5, || tensor.lookup(&data.hits, &Fallback::Zero).unwrap());
        assert_eq!(found.found, expected.1);
        let threads = if parallel { "all threads" } else { "1 thread" };
        row(&format!("tensor look-up, hits, {threads}"), ours, theirs);
    }
    for (name, map) in
        [("three int64 -> float64", one.nbytes()), ("sparse tensor", tensor.nbytes())]
    {
        println!("{name}: {:.1} bytes per entry", map as f64 / one.len() as f64);
    }
    println!("load {:.3}", one.load_factor());
    (one, all, tensor, brown)
}

fn dok(c: &mut Criterion) {
    let data = data(count());
    let (one, all, tensor, brown) = table(&data);
    let mut group = c.benchmark_group("dok");
    group.sample_size(10);
    group.throughput(Throughput::Elements(data.hits.shape()[0] as u64));
    for (name, asked) in [("hits", &data.hits), ("misses", &data.misses)] {
        group.bench_function(format!("get/{name}/1 thread"), |b| {
            b.iter(|| one.get(asked, &Fallback::Zero).unwrap());
        });
        group.bench_function(format!("get/{name}/all threads"), |b| {
            b.iter(|| all.get(asked, &Fallback::Zero).unwrap());
        });
        group.bench_function(format!("get/{name}/hashbrown"), |b| {
            b.iter(|| brown_get(&brown, keys_of(asked)));
        });
    }
    group.bench_function("tensor look-up/hits", |b| {
        b.iter(|| tensor.lookup(&data.hits, &Fallback::Zero).unwrap());
    });
    group.finish();
}

criterion_group!(benches, dok);
criterion_main!(benches);
