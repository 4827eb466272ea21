//! Kernels over the leaves of 1,250 patients: 10.7 million float32 in 293,000 lists, and gathering and
//! scattering in 64 k samples by up to 256 indices each.
//!
//! Before Criterion's numbers comes a table that sets each kernel beside its floor in the same run:
//! one pass that reads what it must read, or reads and writes what it must write (into fresh memory,
//! as a kernel does). Kernel and floor take turns, and the fastest of each counts, so that neighbours
//! on the machine are not measured. A filter on the command line holds for the table, too; with
//! `--table` there is nothing but the table.
#![allow(clippy::unwrap_used, missing_docs)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
#![allow(clippy::cast_possible_wrap)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Int32Array, Int64Array, UInt16Array,
};
use arrow::datatypes::Float32Type;
use criterion::{Criterion, Throughput, criterion_group};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::array::{Offsets, RaggedArray};
use serrate::kernels::elementwise::{Op, Operand, binary};
use serrate::kernels::histogram::value_counts;
use serrate::kernels::normalize::softmax;
use serrate::kernels::reduce::{Reduction, reduce as reduced};
use serrate::kernels::scatter::{Duplicates, scatter};
use serrate::kernels::sort::Order;
use serrate::kernels::take::take;
use serrate::kernels::unary::{Unary, unary};
use serrate::kernels::{filter, index, isin, occurrences, reduce, running, shape, sort};

const ROWS: usize = 1_250;
const LISTS: usize = 293_000;
const LEAVES: usize = 10_700_000;

/// Lengths around the mean with a long tail that add up to `total`.
fn lengths(lists: usize, total: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let weights: Vec<f64> = (0..lists).map(|_| -rng.random_range(1e-6..1f64).ln()).collect();
    let scale = total as f64 / weights.iter().sum::<f64>();
    let mut lengths: Vec<usize> = weights.iter().map(|w| (w * scale) as usize).collect();
    let missing = total - lengths.iter().sum::<usize>();
    for i in 0..missing {
        lengths[i % lists] += 1;
    }
    lengths
}

/// Samples to gather from and scatter to, and the longest list of each.
const SAMPLES: usize = 65_536;
const ENTRIES: usize = 256;

struct Data {
    values: RaggedArray,
    samples: RaggedArray,
    indices: RaggedArray,
    per_event: RaggedArray,
    with_nulls: RaggedArray,
    mask: RaggedArray,
    rare: RaggedArray,
    events: RaggedArray,
    codes: RaggedArray,
}

fn data() -> Data {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let axes = vec![
        Offsets::from_lengths(lengths(ROWS, LISTS, &mut rng)).unwrap().into(),
        Offsets::from_lengths(lengths(LISTS, LEAVES, &mut rng)).unwrap().into(),
    ];
    let leaves: Vec<f32> = (0..LEAVES).map(|_| rng.random_range(-1.0..1.0)).collect();
    let holes = leaves.iter().map(|v| (*v < 0.9).then_some(*v));
    let holes: ArrayRef = Arc::new(holes.collect::<Float32Array>());
    let rare = leaves.iter().map(|v| Some(*v > 0.98)).collect::<BooleanArray>();
    let codes: UInt16Array =
        (0..LEAVES).map(|_| (4000.0 * rng.random_range(0.0..1f64).powi(4)) as u16).collect();
    let mask = leaves.iter().map(|v| Some(*v > 0.0)).collect::<BooleanArray>();
    let values = RaggedArray::try_new(ROWS, axes, Arc::new(Float32Array::from(leaves))).unwrap();
    let events = RaggedArray::try_new(
        ROWS,
        values.axes()[..1].to_vec(),
        Arc::new((0..LISTS).map(|i| Some(i % 2 == 0)).collect::<BooleanArray>()),
    );
    let mut up_to = || -> Offsets {
        let lengths: Vec<usize> = (0..SAMPLES).map(|_| rng.random_range(1..=ENTRIES)).collect();
        Offsets::from_lengths(lengths).unwrap()
    };
    let (there, wanted) = (up_to(), up_to());
    let at: Vec<i64> = (0..SAMPLES)
        .flat_map(|i| (0..wanted.length(i)).map(move |j| (i, j)))
        .map(|(i, j)| ((j * 7919 + i) % there.length(i)) as i64)
        .collect();
    let entries = Float32Array::from_iter_values((0..there.children()).map(|i| i as f32));
    let samples = RaggedArray::try_new(SAMPLES, vec![there.into()], Arc::new(entries));
    let indices =
        RaggedArray::try_new(SAMPLES, vec![wanted.into()], Arc::new(Int64Array::from(at)));
    let times = Float32Array::from_iter_values((0..LISTS).map(|i| i as f32));
    let per_event =
        RaggedArray::try_new(ROWS, values.axes()[..1].to_vec(), Arc::new(times)).unwrap();
    Data {
        samples: samples.unwrap(),
        indices: indices.unwrap(),
        per_event,
        with_nulls: values.with_leaves(holes).unwrap(),
        mask: values.with_leaves(Arc::new(mask)).unwrap(),
        rare: values.with_leaves(Arc::new(rare)).unwrap(),
        codes: values.with_leaves(Arc::new(codes)).unwrap(),
        events: events.unwrap(),
        values,
    }
}

/// Name, leaf bytes read and written, and the work, which returns something of its result.
type Task<'a> = (&'static str, usize, usize, Box<dyn Fn() -> usize + 'a>);

fn tasks(d: &Data) -> Vec<Task<'_>> {
    fn scalar(n: i64) -> ArrayRef {
        Arc::new(Int64Array::from(vec![n]))
    }
    let (one, two) = (scalar(1), scalar(2));
    let bytes = 4 * LEAVES;
    let times =
        move |a: &RaggedArray| binary(Op::Mul, Operand::Array(a), Operand::Scalar(&two)).unwrap();
    let plus =
        move |a: &RaggedArray| binary(Op::Add, Operand::Array(a), Operand::Scalar(&one)).unwrap();
    let more: ArrayRef = Arc::new(Float32Array::from(vec![0.5]));
    let some: ArrayRef = Arc::new(Int32Array::from(vec![3]));
    let code: ArrayRef = Arc::new(UInt16Array::from(vec![1234]));
    let (v, holes) = (&d.values, &d.with_nulls);
    let mut tasks: Vec<Task<'_>> = Vec::new();
    for (name, array, how, axis) in [
        ("sum, innermost", v, Reduction::Sum, Some(-1)),
        ("max, innermost", v, Reduction::Max, Some(-1)),
        ("mean, innermost", v, Reduction::Mean, Some(-1)),
        ("var, innermost", v, Reduction::Var { ddof: 0 }, Some(-1)),
        ("argmax, innermost", v, Reduction::ArgMax, Some(-1)),
        ("sum, a tenth null", holes, Reduction::Sum, Some(-1)),
        ("max, a tenth null", holes, Reduction::Max, Some(-1)),
        ("mean, a tenth null", holes, Reduction::Mean, Some(-1)),
        ("sum of whole rows", v, Reduction::Sum, None),
        ("max of whole rows", v, Reduction::Max, None),
        ("sum of whole rows, a tenth null", holes, Reduction::Sum, None),
        ("max of whole rows, a tenth null", holes, Reduction::Max, None),
        ("sum over events (axis 1)", v, Reduction::Sum, Some(1)),
        ("max over events (axis 1)", v, Reduction::Max, Some(1)),
        ("mean over events (axis 1)", v, Reduction::Mean, Some(1)),
        ("sum over events, a tenth null", holes, Reduction::Sum, Some(1)),
        ("sum over rows (axis 0)", v, Reduction::Sum, Some(0)),
        ("median, innermost", v, Reduction::Median, Some(-1)),
        ("different values of rows", v, Reduction::Nunique, None),
    ] {
        let run = move || reduced(array, how, axis).unwrap().leaves().len();
        tasks.push((name, bytes, 0, Box::new(run)));
    }
    tasks.extend(moves(d));
    tasks.extend(streams(d, code));
    tasks.extend::<Vec<Task<'_>>>(vec![
        ("v * 2", bytes, bytes, {
            let times = times.clone();
            Box::new(move || times(v).len())
        }),
        ("v * 2 + 1", 2 * bytes, 2 * bytes, Box::new(move || plus(&times(v)).len())),
        ("v > 0.5", bytes, LEAVES / 8, {
            Box::new(move || {
                binary(Op::Gt, Operand::Array(v), Operand::Scalar(&more)).unwrap().len()
            })
        }),
        ("v + v", 2 * bytes, bytes, {
            Box::new(move || binary(Op::Add, Operand::Array(v), Operand::Array(v)).unwrap().len())
        }),
        ("v * 3 (int32 literal)", bytes, bytes, {
            Box::new(move || {
                binary(Op::Mul, Operand::Array(v), Operand::Scalar(&some)).unwrap().len()
            })
        }),
        ("filter by v > 0", bytes + LEAVES / 8, bytes / 2, {
            Box::new(move || filter::filter(v, &d.mask).unwrap().leaves().len())
        }),
        ("filter every other event", bytes / 2, bytes / 2, {
            Box::new(move || filter::filter(v, &d.events).unwrap().leaves().len())
        }),
        ("last 20 of every event", bytes / 2, bytes / 2, {
            Box::new(move || index::tail(v, 2, &20.into()).unwrap().leaves().len())
        }),
        ("lengths of events", 4 * LISTS, 8 * LISTS, {
            Box::new(move || shape::lengths(v, 2).unwrap().leaves().len())
        }),
    ]);
    tasks
}

/// Gathering, scattering, and functions of one number.
fn moves(d: &Data) -> Vec<Task<'_>> {
    let (v, bytes) = (&d.values, 4 * LEAVES);
    let wanted = d.indices.leaves().len();
    let gathered = take(&d.samples, &d.indices).unwrap();
    let entries = d.samples.leaves().len();
    vec![
        ("gather, 64 k samples", 12 * wanted, 4 * wanted, {
            Box::new(move || take(&d.samples, &d.indices).unwrap().leaves().len())
        }),
        ("scatter, 64 k samples", 12 * wanted + 4 * entries, 4 * entries, {
            Box::new(move || {
                let out = scatter(&d.samples, &d.indices, &gathered, Duplicates::Last);
                out.unwrap().leaves().len()
            })
        }),
        ("v + one per event", bytes, bytes, {
            Box::new(move || {
                binary(Op::Add, Operand::Array(v), Operand::Array(&d.per_event)).unwrap().len()
            })
        }),
        ("sqrt", bytes, bytes, Box::new(move || unary(Unary::Sqrt, v).unwrap().len())),
        ("softmax, innermost", bytes, bytes, Box::new(move || softmax(v, -1).unwrap().len())),
    ]
}

/// Running operations, order, codes.
fn streams(d: &Data, code: ArrayRef) -> Vec<Task<'_>> {
    let bytes = 4 * LEAVES;
    let (v, holes, codes) = (&d.values, &d.with_nulls, &d.codes);
    let (one, two, three) = (code.clone(), code.clone(), code);
    fn leaves(found: serrate::Result<RaggedArray>) -> usize {
        found.unwrap().leaves().len()
    }
    vec![
        ("cumsum", bytes, bytes, Box::new(move || leaves(running::cumsum(v, -1)))),
        ("diff", bytes, bytes, Box::new(move || leaves(running::diff(v, 1, -1)))),
        ("shift", bytes, bytes, Box::new(move || leaves(running::shift(v, 1, None, -1)))),
        ("forward fill, a tenth null", bytes, bytes, {
            Box::new(move || leaves(running::forward_fill(holes, -1)))
        }),
        ("sort", bytes, bytes, Box::new(move || leaves(sort::sort(v, Order::ASCENDING)))),
        ("filter by v > 0.98", LEAVES / 8 + bytes / 2, bytes / 100, {
            Box::new(move || leaves(filter::filter(v, &d.rare)))
        }),
        ("sum of rows where v > 0.98", LEAVES / 8 + bytes / 2, 0, {
            Box::new(move || leaves(reduce::reduce_where(v, &d.rare, Reduction::Sum, None)))
        }),
        ("mask of one code", 2 * LEAVES, LEAVES / 8, {
            Box::new(move || leaves(isin::isin(codes, &one)))
        }),
        ("rows' number of one code", 2 * LEAVES, 0, {
            Box::new(move || leaves(occurrences::count_values(codes, &two, None)))
        }),
        ("rows that have one code", 2 * LEAVES, 0, {
            Box::new(move || leaves(occurrences::any_value(codes, &three, None)))
        }),
        ("histogram of codes", 2 * LEAVES, 0, {
            Box::new(move || value_counts(codes.leaves()).unwrap().0.len())
        }),
    ]
}

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Reads `read` bytes and fills `write` fresh ones from them.
fn pass(source: &[f32], read: usize, write: usize) {
    let (mut read, mut write) = (read / 4, write / 4);
    while write > 0 {
        let n = write.min(source.len());
        black_box(source[..n].to_vec());
        write -= n;
        read = read.saturating_sub(n);
    }
    while read > 0 {
        let n = read.min(source.len());
        let mut lanes = [0u32; 16];
        for chunk in source[..n].chunks_exact(16) {
            for (lane, v) in lanes.iter_mut().zip(chunk) {
                *lane ^= v.to_bits();
            }
        }
        black_box(lanes);
        read -= n;
    }
}

fn report(d: &Data, wanted: &[String]) {
    let source = d.values.leaves().as_primitive::<Float32Type>().values();
    println!("{:<34} {:>9} {:>9} {:>6}", "", "ms", "floor ms", "ratio");
    for (name, read, write, run) in tasks(d) {
        if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w.as_str())) {
            continue;
        }
        let (mut found, mut floor) = (Duration::MAX, Duration::MAX);
        for _ in 0..25 {
            found = found.min(timed(|| {
                black_box(run());
            }));
            floor = floor.min(timed(|| pass(source, read, write)));
        }
        let ms = |t: Duration| t.as_secs_f64() * 1e3;
        println!(
            "{name:<34} {:>9.2} {:>9.2} {:>6.2}   ({:.1} MB read, {:.1} MB written)",
            ms(found),
            ms(floor),
            ms(found) / ms(floor),
            read as f64 / 1e6,
            write as f64 / 1e6
        );
    }
}

fn kernels(c: &mut Criterion) {
    let d = data();
    table(&d);
    let mut group = c.benchmark_group("kernels");
    group.sample_size(20);
    for (name, read, write, run) in tasks(&d) {
        group.throughput(Throughput::Bytes((read + write) as u64));
        group.bench_function(name, |b| b.iter(&run));
    }
    group.finish();
}

criterion_group!(benches, kernels);

fn table(d: &Data) {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    report(d, &wanted);
}

fn main() {
    if std::env::args().any(|a| a == "--table") {
        return table(&data());
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
