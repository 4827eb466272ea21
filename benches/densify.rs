//! Benchmarks the padding of 64 patients with the lengths of MIMIC data: a dense tensor of 0.13 GB.
//! One slot in thirty holds a value. A second part pads 20 batches of differing shapes, which have
//! 1.1 GB in total.
//!
//! Lower bounds (floors) from the same run are to fill as many bytes of fresh memory (mostly page
//! faults), to fill memory that was touched before, and to copy it. Ratios of consecutive runs are
//! printed first, because other load of the machine changes them less than times.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rayon::prelude::*;
use serrate::array::RaggedArray;
use serrate::dense::{BufferPool, DType, DenseOptions, PaddingSide, TableDenseOptions};
use serrate::generate::mimic_table;
use serrate::kernels::densify::{dense_bytes, densify, densify_into};
use serrate::kernels::mask::mask;
use serrate::loader::{StackTensor, TableStack};
use serrate::table::RaggedTable;

/// The name of a measured operation, and a function that runs it once.
type Run<'a> = (&'static str, Box<dyn FnMut() + 'a>);

/// Allocates `bytes` bytes and writes all of them.
fn fill_fresh(bytes: usize) {
    let mut v = vec![0u8; bytes];
    v.fill(black_box(1));
    black_box(&v[0]);
}

/// Runs all operations in turn, in several rounds. Prints the fastest time of each, and the median
/// over the rounds of its time divided by the time of the first operation.
fn compare(title: &str, bytes: usize, mut runs: Vec<Run<'_>>) {
    const ROUNDS: usize = 15;
    let mut times = vec![Vec::with_capacity(ROUNDS); runs.len()];
    for round in 0..=ROUNDS {
        for (times, (_, run)) in times.iter_mut().zip(&mut runs) {
            let start = Instant::now();
            run();
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    println!("{title}: {:.1} MB", bytes as f64 / 1e6);
    for (own, (name, _)) in times.iter().zip(&runs) {
        let mut ratios: Vec<f64> = own.iter().zip(&times[0]).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        let least = own.iter().copied().fold(f64::INFINITY, f64::min);
        println!("  {name:42} {least:8.2} ms   x {:.3}", ratios[ROUNDS / 2]);
    }
}

/// Benchmarks batches of differing shapes as the Python class `JointNestedRaggedTensorDict` makes
/// them: in memory that others may have written to, while the batch before is still in use. The
/// floor fills memory of the same sizes with as many threads.
fn compare_batches() {
    let columns = ["time_delta_days", "code", "numeric_value"];
    let table = mimic_table(1250, 7).unwrap().select(&columns).unwrap();
    let window = |row| {
        let events = table.slice(row, 1).unwrap().squeeze(0).unwrap();
        events.slice(0, events.num_rows().min(256)).unwrap()
    };
    let items: Vec<RaggedTable> = (0..table.num_rows()).map(window).collect();
    let stacks: Vec<_> =
        items.chunks(64).map(|items| TableStack::new(items).unwrap().unwrap()).collect();
    let wanted = [
        StackTensor::Mask(1),
        StackTensor::Values("time_delta_days"),
        StackTensor::Mask(2),
        StackTensor::Values("code"),
        StackTensor::Values("numeric_value"),
    ];
    let epoch = |options: &DenseOptions| {
        let (mut last, mut sizes) = (Vec::new(), Vec::with_capacity(stacks.len()));
        for stack in &stacks {
            let batch = stack.to_tensors(&wanted, options).unwrap();
            sizes.push(batch.iter().map(|tensor| tensor.nbytes()).sum::<usize>());
            drop(std::mem::replace(&mut last, batch));
        }
        sizes
    };
    let pool = Some(BufferPool::for_writers(2 << 30));
    let many = DenseOptions { pool, ..Default::default() };
    let one = DenseOptions { parallel: false, ..many.clone() };
    let sizes = epoch(&many);
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let mut memory = [vec![1u8; largest], vec![2u8; largest]];
    let fill = move || {
        for size in &sizes {
            memory.reverse();
            memory[0][..*size].par_chunks_mut(1 << 20).for_each(|part| part.fill(black_box(0)));
        }
    };
    compare(
        "batches of differing shapes into memory from a pool",
        epoch(&many).iter().sum(),
        vec![
            ("floor: fill memory of two batches in turn", Box::new(fill)),
            ("memory from a pool for writers", Box::new(|| drop(black_box(epoch(&many))))),
            ("the same, one thread", Box::new(|| drop(black_box(epoch(&one))))),
        ],
    );
}

fn benches(c: &mut Criterion) {
    let table = mimic_table(64, 7).unwrap();
    let codes: RaggedArray = table.array("code").unwrap();
    let wide = DenseOptions { dtype: Some(DType::I64), ..Default::default() };
    let serial = DenseOptions { parallel: false, ..wide.clone() };
    let pooled = DenseOptions { pool: Some(BufferPool::default()), ..wide.clone() };
    let left = DenseOptions { side: PaddingSide::Left, ..wide.clone() };
    let ones = DenseOptions { fill: Some((-100).into()), ..wide.clone() };
    let (_, shape, bytes) = dense_bytes(&codes, None, &wide).unwrap();
    println!("64 patients, shape {shape:?}, {} values", codes.leaves().len());

    let (mut a, mut b) = (vec![1u8; bytes], vec![2u8; bytes]);
    let (mut reused, source) = (vec![3u8; bytes], vec![4u8; bytes]);
    compare(
        "token codes as int64",
        bytes,
        vec![
            ("floor: fill fresh memory", Box::new(|| fill_fresh(bytes))),
            ("floor: fill memory at hand", Box::new(|| black_box(&mut a).fill(black_box(0)))),
            ("floor: copy memory at hand", Box::new(|| b.copy_from_slice(black_box(&source)))),
            ("fresh", Box::new(|| drop(densify(&codes, None, &wide).unwrap()))),
            ("fresh, one thread", Box::new(|| drop(densify(&codes, None, &serial).unwrap()))),
            ("fresh, left", Box::new(|| drop(densify(&codes, None, &left).unwrap()))),
            ("fresh, fill -100", Box::new(|| drop(densify(&codes, None, &ones).unwrap()))),
            ("memory from a pool", Box::new(|| drop(densify(&codes, None, &pooled).unwrap()))),
            (
                "dirty memory of the caller's",
                Box::new(|| {
                    densify_into(&codes, None, &wide, &mut reused).unwrap();
                }),
            ),
            (
                "mask of axis 2",
                Box::new(|| drop(mask(&codes, 2, None, &DenseOptions::default()).unwrap())),
            ),
        ],
    );

    let columns = ["time_delta_days", "code", "numeric_value"];
    let options = |pool: Option<BufferPool>| TableDenseOptions {
        columns: Some(columns.iter().map(|c| (*c).to_owned()).collect()),
        tokens_as_i64: true,
        dense: DenseOptions { pool, ..Default::default() },
        ..Default::default()
    };
    let (fresh, reused) = (options(None), options(Some(BufferPool::default())));
    let total = table.to_dense_with(&fresh).unwrap().iter().map(|(_, t)| t.nbytes()).sum();
    compare(
        "a batch: three columns and two masks",
        total,
        vec![
            ("floor: fill fresh memory", Box::new(|| fill_fresh(total))),
            ("fresh", Box::new(|| drop(table.to_dense_with(&fresh).unwrap()))),
            ("memory from a pool", Box::new(|| drop(table.to_dense_with(&reused).unwrap()))),
        ],
    );

    compare_batches();

    // For many short lists, the time per list dominates.
    let short = RaggedArray::try_new(
        1_000_000,
        vec![serrate::array::Offsets::from_lengths((0..1_000_000).map(|i| i % 5)).unwrap().into()],
        Arc::new(arrow::array::UInt16Array::from_iter_values(
            (0..2_000_000u32).map(|i| (i % 60_000) as u16),
        )),
    )
    .unwrap();
    let mut group = c.benchmark_group("densify");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(300));
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("fill_fresh", |b| b.iter(|| fill_fresh(bytes)));
    group.bench_function("fresh", |b| b.iter(|| densify(&codes, None, &wide).unwrap()));
    group.bench_function("pooled", |b| b.iter(|| densify(&codes, None, &pooled).unwrap()));
    group.throughput(Throughput::Elements(1_000_000));
    group.bench_function("short_lists", |b| {
        b.iter(|| {
            densify(&short, None, &DenseOptions { parallel: false, ..Default::default() }).unwrap()
        });
    });
    group.finish();
}

criterion_group!(densify_benches, benches);
criterion_main!(densify_benches);
