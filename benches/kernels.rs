//! Benchmarks kernels over the values of 1,250 patients, 10.7 million float32 in 293,000 lists, and
//! gather and scatter in 65,536 samples by up to 256 indices each.
//!
//! Before the results of Criterion, a table prints the time of each kernel next to a lower bound
//! (floor) from the same run: one pass that reads and writes as many bytes as the kernel has to,
//! into fresh memory, as the kernel does. The last column is the throughput of the kernel in
//! percent of the throughput of a copy of all leaves into memory that was touched before; both
//! count bytes read and written. Kernels and floors alternate, and the fastest run of each counts,
//! so that other load of the machine has little effect. A filter on the command line also applies
//! to the table, and `--table` prints only the table. `--peer FILE` reads lists and leaves from a
//! safetensors file and prints the results as JSON for `benches/peers/kernels.py`.
#![allow(clippy::unwrap_used, missing_docs)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
#![allow(clippy::cast_possible_wrap)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Int32Array, Int64Array, StringArray,
    UInt16Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{Float32Type, Float64Type};
use criterion::{Criterion, Throughput, criterion_group};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use serrate::array::{Offsets, RaggedArray};
use serrate::io::safetensors::{FileAccess, dense};
use serrate::kernels::between::ClosedEnds;
use serrate::kernels::elementwise::{BinaryOp, Operand, binary, binary_owned};
use serrate::kernels::group::{group, group_keys};
use serrate::kernels::histogram::value_counts;
use serrate::kernels::normalize::softmax;
use serrate::kernels::reduce::{Reduction, reduce as reduced};
use serrate::kernels::scatter::{DuplicateWrites, scatter};
use serrate::kernels::sort::SortOrder;
use serrate::kernels::take::take;
use serrate::kernels::unary::{UnaryOp, unary};
use serrate::kernels::window::{TimeWindow, WindowReach, rolling, window_reduce};
use serrate::kernels::{filter, index, isin, occurrences, reduce, running, shape, sort};

const ROWS: usize = 1_250;
const LISTS: usize = 293_000;
const LEAVES: usize = 10_700_000;

/// Draws the lengths of `lists` lists, exponentially distributed, which add up to `total`.
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

/// The number of samples for gather and scatter.
const SAMPLES: usize = 65_536;
/// The greatest number of entries of a sample.
const ENTRIES: usize = 256;

struct Data {
    values: RaggedArray,
    samples: RaggedArray,
    indices: RaggedArray,
    per_event: RaggedArray,
    with_nulls: RaggedArray,
    mask: RaggedArray,
    rare: RaggedArray,
    rarest: RaggedArray,
    events: RaggedArray,
    codes: RaggedArray,
    code_texts: RaggedArray,
    rising: RaggedArray,
}

fn data() -> Data {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let axes = vec![
        Offsets::from_lengths(lengths(ROWS, LISTS, &mut rng)).unwrap().into(),
        Offsets::from_lengths(lengths(LISTS, LEAVES, &mut rng)).unwrap().into(),
    ];
    let leaves: Vec<f32> = (0..LEAVES).map(|_| rng.random_range(-1.0..1.0)).collect();
    let full: NullBuffer = leaves.iter().map(|v| *v < 0.8).collect();
    let rare = leaves.iter().map(|v| Some(*v > 0.98)).collect::<BooleanArray>();
    let rarest = leaves.iter().map(|v| Some(*v > 0.998)).collect::<BooleanArray>();
    let codes: UInt16Array =
        (0..LEAVES).map(|_| (4000.0 * rng.random_range(0.0..1f64).powi(4)) as u16).collect();
    let code_texts: StringArray = codes.values().iter().map(|c| Some(format!("C{c:04}"))).collect();
    let rising = Int64Array::from_iter_values((0..LEAVES).map(|i| (i / 8) as i64));
    let mask = leaves.iter().map(|v| Some(*v > 0.0)).collect::<BooleanArray>();
    // The arrays with and without nulls share their values, so that the CPU caches hold both.
    let leaves = Float32Array::from(leaves);
    let holes: ArrayRef = Arc::new(Float32Array::new(leaves.values().clone(), Some(full)));
    let values = RaggedArray::try_new(ROWS, axes, Arc::new(leaves)).unwrap();
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
        rarest: values.with_leaves(Arc::new(rarest)).unwrap(),
        codes: values.with_leaves(Arc::new(codes)).unwrap(),
        code_texts: values.with_leaves(Arc::new(code_texts)).unwrap(),
        rising: values.with_leaves(Arc::new(rising)).unwrap(),
        events: events.unwrap(),
        values,
    }
}

/// The name of a kernel, the number of bytes that it has to read and to write, and a function that
/// runs it and returns a number that depends on the result.
type Task<'a> = (&'static str, usize, usize, Box<dyn Fn() -> usize + 'a>);

fn tasks(d: &Data) -> Vec<Task<'_>> {
    fn scalar(n: i64) -> ArrayRef {
        Arc::new(Int64Array::from(vec![n]))
    }
    let (one, two) = (scalar(1), scalar(2));
    let bytes = 4 * LEAVES;
    let times = move |a: &RaggedArray| {
        binary(BinaryOp::Mul, Operand::Array(a), Operand::Scalar(&two)).unwrap()
    };
    let plus = move |a: RaggedArray| binary_owned(BinaryOp::Add, a, Operand::Scalar(&one)).unwrap();
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
        ("min of whole rows", v, Reduction::Min, None),
        ("mean of whole rows", v, Reduction::Mean, None),
        ("sum of whole rows, a tenth null", holes, Reduction::Sum, None),
        ("mean of whole rows, a tenth null", holes, Reduction::Mean, None),
        ("max of whole rows, a tenth null", holes, Reduction::Max, None),
        ("sum over events (axis 1)", v, Reduction::Sum, Some(1)),
        ("max over events (axis 1)", v, Reduction::Max, Some(1)),
        ("mean over events (axis 1)", v, Reduction::Mean, Some(1)),
        ("sum over events, a tenth null", holes, Reduction::Sum, Some(1)),
        ("mean over events, a tenth null", holes, Reduction::Mean, Some(1)),
        ("sum over rows (axis 0)", v, Reduction::Sum, Some(0)),
        ("median, innermost", v, Reduction::Median, Some(-1)),
        ("different values of rows", v, Reduction::Nunique, None),
    ] {
        let run = move || reduced(array, how, axis).unwrap().leaves().len();
        let bits = array.leaves().nulls().map_or(0, |_| LEAVES / 8);
        tasks.push((name, bytes + bits, 0, Box::new(run)));
    }
    for (name, how, axis) in [
        ("any of whole rows, truth", Reduction::Any, None),
        ("all of whole rows, truth", Reduction::All, None),
        ("any of every event, truth", Reduction::Any, Some(-1)),
        ("number of true, whole rows", Reduction::Sum, None),
    ] {
        let run = move || reduced(&d.mask, how, axis).unwrap().leaves().len();
        tasks.push((name, LEAVES / 8, 0, Box::new(run)));
    }
    for (name, axis) in
        [("count of whole rows, a tenth null", None), ("count, a tenth null", Some(-1))]
    {
        let run = move || reduced(holes, Reduction::Count, axis).unwrap().leaves().len();
        tasks.push((name, LEAVES / 8, 0, Box::new(run)));
    }
    tasks.push(("sum of rows where v > 0", bytes + LEAVES / 8, 0, {
        Box::new(move || {
            reduce::reduce_where(v, &d.mask, Reduction::Sum, None).unwrap().leaves().len()
        })
    }));
    tasks.extend(moves(d));
    tasks.extend(within(d));
    tasks.extend(streams(d, code));
    tasks.extend::<Vec<Task<'_>>>(vec![
        ("v * 2", bytes, bytes, {
            let times = times.clone();
            Box::new(move || times(v).len())
        }),
        // The second operation overwrites the result of the first in place.
        ("v * 2 + 1", bytes, bytes, Box::new(move || plus(times(v)).len())),
        ("v > 0.5", bytes, LEAVES / 8, {
            Box::new(move || {
                binary(BinaryOp::Gt, Operand::Array(v), Operand::Scalar(&more)).unwrap().len()
            })
        }),
        ("v + v", 2 * bytes, bytes, {
            Box::new(move || {
                binary(BinaryOp::Add, Operand::Array(v), Operand::Array(v)).unwrap().len()
            })
        }),
        ("v * 3 (int32 literal)", bytes, bytes, {
            Box::new(move || {
                binary(BinaryOp::Mul, Operand::Array(v), Operand::Scalar(&some)).unwrap().len()
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

/// Returns gather, scatter, and operations on each leaf.
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
                let out = scatter(&d.samples, &d.indices, &gathered, DuplicateWrites::Last);
                out.unwrap().leaves().len()
            })
        }),
        ("v + one per event", bytes, bytes, {
            Box::new(move || {
                binary(BinaryOp::Add, Operand::Array(v), Operand::Array(&d.per_event))
                    .unwrap()
                    .len()
            })
        }),
        ("sqrt", bytes, bytes, Box::new(move || unary(UnaryOp::Sqrt, v).unwrap().len())),
        ("softmax, innermost", bytes, bytes, Box::new(move || softmax(v, -1).unwrap().len())),
    ]
}

/// Returns kernels that group values within rows, and compute windows within rows.
fn within(d: &Data) -> Vec<Task<'_>> {
    let (v, bytes) = (&d.values, 4 * LEAVES);
    // Each window has the hundred events before an event. The time of an event is its index.
    let past = TimeWindow {
        before: WindowReach::Float(100.0),
        after: WindowReach::Exact(0),
        closure: ClosedEnds::Right,
    };
    let mut tasks: Vec<Task<'_>> = vec![
        ("keys of groups", 2 * LEAVES, 2 * LEAVES, {
            Box::new(|| group_keys(&d.codes).unwrap().leaves().len())
        }),
        ("group by a code", 2 * LEAVES + bytes, bytes, {
            Box::new(move || group(v, &d.codes).unwrap().leaves().len())
        }),
        // A string has 5 bytes and an offset of 4 bytes.
        ("group by a text", 9 * LEAVES + bytes, bytes, {
            Box::new(move || group(v, &d.code_texts).unwrap().leaves().len())
        }),
        // Sorted keys leave the values in place, so that only the keys are read.
        ("group by a rising key", 8 * LEAVES, 0, {
            Box::new(move || group(v, &d.rising).unwrap().leaves().len())
        }),
        ("sum by a code", 2 * LEAVES + bytes, bytes, {
            Box::new(move || {
                reduce::sum(&group(v, &d.codes).unwrap(), Some(-1)).unwrap().leaves().len()
            })
        }),
        ("rolling sum of 20", bytes, bytes, {
            Box::new(move || rolling(v, 20, Reduction::Sum, 1).unwrap().leaves().len())
        }),
        ("rolling max of 20", bytes, bytes, {
            Box::new(move || rolling(v, 20, Reduction::Max, 1).unwrap().leaves().len())
        }),
    ];
    for (name, how) in [
        ("count in windows of 100 events", Reduction::Count),
        ("sum in windows of 100 events", Reduction::Sum),
        ("max in windows of 100 events", Reduction::Max),
    ] {
        let run = move || window_reduce(v, &d.per_event, &d.per_event, how, &past).unwrap();
        let read = if how == Reduction::Count { 0 } else { bytes };
        tasks.push((name, read + 8 * LISTS, 8 * LISTS, Box::new(move || run().leaves().len())));
    }
    tasks
}

/// Returns running operations, sorts, filters by masks with few bits, and operations on codes.
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
        ("sort", bytes, bytes, Box::new(move || leaves(sort::sort(v, SortOrder::ASCENDING)))),
        ("filter by v > 0.98", LEAVES / 8 + bytes / 2, bytes / 100, {
            Box::new(move || leaves(filter::filter(v, &d.rare)))
        }),
        ("sum of rows where v > 0.98", LEAVES / 8 + bytes / 2, 0, {
            Box::new(move || leaves(reduce::reduce_where(v, &d.rare, Reduction::Sum, None)))
        }),
        ("sum of rows where v > 0.998", LEAVES / 8 + bytes / 16, 0, {
            Box::new(move || leaves(reduce::reduce_where(v, &d.rarest, Reduction::Sum, None)))
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

/// Copies `write` bytes to fresh memory, and reads further bytes, so that `read` bytes are read in
/// total.
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
            // A loop over indices, because the speed of `zip` would depend on inlining.
            for i in 0..16 {
                lanes[i] ^= chunk[i].to_bits();
            }
        }
        black_box(lanes);
        read -= n;
    }
}

/// The fastest copy of all leaves into memory that was touched before. It reads and writes each
/// leaf.
struct Copying<'a> {
    source: &'a [f32],
    to: Vec<f32>,
    best: Duration,
}

impl<'a> Copying<'a> {
    fn new(source: &'a [f32]) -> Self {
        Self { source, to: source.to_vec(), best: Duration::MAX }
    }

    fn once(&mut self) {
        let (from, to) = (self.source, &mut self.to);
        self.best = self.best.min(timed(|| to.copy_from_slice(black_box(from))));
        black_box(&mut self.to);
    }

    /// Returns the seconds in which the copy reads and writes `bytes` bytes in total.
    fn moves(&self, bytes: usize) -> f64 {
        self.best.as_secs_f64() * bytes as f64 / (2 * size_of_val(self.source)) as f64
    }
}

fn report(d: &Data, wanted: &[String]) {
    let source = d.values.leaves().as_primitive::<Float32Type>().values();
    let mut copy = Copying::new(source);
    println!("{:<34} {:>9} {:>9} {:>6} {:>9}", "", "ms", "floor ms", "ratio", "% of copy");
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
            copy.once();
        }
        let ms = |t: Duration| t.as_secs_f64() * 1e3;
        println!(
            "{name:<34} {:>9.2} {:>9.2} {:>6.2} {:>9.0}   ({:.1} MB read, {:.1} MB written)",
            ms(found),
            ms(floor),
            ms(found) / ms(floor),
            100.0 * copy.moves(read + write) / found.as_secs_f64(),
            read as f64 / 1e6,
            write as f64 / 1e6
        );
    }
    println!("A copy moved {:.1} GB/s.", 1e-9 / copy.moves(1));
}

/// Runs the kernels that are compared with other libraries on the lists and leaves of a file, and
/// prints JSON.
fn peer(file: &str) {
    let all = dense::read(file, FileAccess::Read).unwrap();
    let get = |name: &str| &all.iter().find(|(n, _)| n == name).unwrap().1;
    let level = |name: &str| {
        let bounds = get(name).as_slice::<i64>().unwrap();
        Offsets::from_lengths(bounds.windows(2).map(|w| (w[1] - w[0]) as usize)).unwrap()
    };
    let leaves = get("values").as_slice::<f32>().unwrap().to_vec();
    let flags =
        |name: &str| -> Vec<bool> { get(name).as_bytes().iter().map(|b| *b != 0).collect() };
    let (outer, inner) = (level("outer"), level("inner"));
    let leaves = Float32Array::from(leaves);
    let valid = NullBuffer::from(flags("valid"));
    let holes: ArrayRef = Arc::new(Float32Array::new(leaves.values().clone(), Some(valid)));
    let (rows, axes) = (outer.lists(), vec![outer.into(), inner.into()]);
    let v = RaggedArray::try_new(rows, axes, Arc::new(leaves)).unwrap();
    let holes = v.with_leaves(holes).unwrap();
    let mask = v.with_leaves(Arc::new(BooleanArray::from(flags("mask")))).unwrap();
    let number = |n: f32| -> ArrayRef { Arc::new(Float32Array::from(vec![n])) };
    let (one, two, half) = (number(1.0), number(2.0), number(0.5));
    let reduced = |a: &RaggedArray, how, axis| reduced(a, how, axis).unwrap();
    let n = v.leaves().len();
    /// The name of a kernel, the number of bytes that it has to read and to write, and a function.
    type Work<'a> = (&'a str, usize, usize, &'a dyn Fn() -> RaggedArray);
    let work: [Work<'_>; 13] = [
        ("sum, innermost", 4 * n, 0, &|| reduced(&v, Reduction::Sum, Some(-1))),
        ("max, innermost", 4 * n, 0, &|| reduced(&v, Reduction::Max, Some(-1))),
        ("mean, innermost", 4 * n, 0, &|| reduced(&v, Reduction::Mean, Some(-1))),
        ("sum, a tenth null", 4 * n + n / 8, 0, &|| reduced(&holes, Reduction::Sum, Some(-1))),
        ("max, a tenth null", 4 * n + n / 8, 0, &|| reduced(&holes, Reduction::Max, Some(-1))),
        ("sum of whole rows", 4 * n, 0, &|| reduced(&v, Reduction::Sum, None)),
        ("max of whole rows", 4 * n, 0, &|| reduced(&v, Reduction::Max, None)),
        ("sum over events (axis 1)", 4 * n, 0, &|| reduced(&v, Reduction::Sum, Some(1))),
        ("max over events (axis 1)", 4 * n, 0, &|| reduced(&v, Reduction::Max, Some(1))),
        ("mean over events (axis 1)", 4 * n, 0, &|| reduced(&v, Reduction::Mean, Some(1))),
        ("v * 2 + 1", 4 * n, 4 * n, &|| {
            let twice = binary(BinaryOp::Mul, Operand::Array(&v), Operand::Scalar(&two)).unwrap();
            binary_owned(BinaryOp::Add, twice, Operand::Scalar(&one)).unwrap()
        }),
        ("v > 0.5", 4 * n, n / 8, &|| {
            binary(BinaryOp::Gt, Operand::Array(&v), Operand::Scalar(&half)).unwrap()
        }),
        ("filter by v > 0", 4 * n + n / 8, 2 * n, &|| filter::filter(&v, &mask).unwrap()),
    ];
    let source = v.leaves().as_primitive::<Float32Type>().values();
    let mut copy = Copying::new(source);
    let mut found = Vec::new();
    for (name, read, write, run) in work {
        let out = arrow::compute::cast(run().leaves(), &arrow::datatypes::DataType::Float64);
        let out = out.unwrap();
        let values = || out.as_primitive::<Float64Type>().iter().flatten();
        let (mut best, mut floor) = (Duration::MAX, Duration::MAX);
        for _ in 0..15 {
            best = best.min(timed(|| drop(black_box(run()))));
            floor = floor.min(timed(|| pass(source, read, write)));
            copy.once();
        }
        found.push(json!({
            "name": name, "seconds": best.as_secs_f64(), "floor": floor.as_secs_f64(),
            "copied": copy.moves(read + write),
            "values": values().count(), "total": values().sum::<f64>(),
            "absolute": values().map(f64::abs).sum::<f64>(),
        }));
    }
    println!("{}", json!(found));
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
    let words: Vec<String> = std::env::args().collect();
    if let Some(at) = words.iter().position(|w| w == "--peer") {
        return peer(&words[at + 1]);
    }
    if std::env::args().any(|a| a == "--table") {
        return table(&data());
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
