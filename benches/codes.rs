//! Benchmarks predicates on 10 million medical codes in lists, stored as a dictionary of 4,000
//! strings.
//!
//! Before the results of Criterion, a table prints the time of each predicate next to a lower bound
//! (floor) from the same run, one pass that reads the keys and writes bits, and next to the time of
//! Arrow's kernels, which evaluate the predicate for each value, over the dictionary and over plain
//! strings.
#![allow(clippy::unwrap_used, missing_docs)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, AsArray, DictionaryArray, Scalar, StringArray, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::{cmp, comparison};
use arrow::datatypes::UInt32Type;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::array::{Offsets, RaggedArray};
use serrate::kernels::elementwise::{BinaryOp, Operand, binary};
use serrate::kernels::isin::isin;
use serrate::kernels::text::{TextTest, test};

const LEAVES: usize = 10_000_000;
const CODES: usize = 4_000;

struct Data {
    codes: RaggedArray,
    plain: ArrayRef,
    one: ArrayRef,
    some: ArrayRef,
}

fn data() -> Data {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let kinds = ["DIAGNOSIS//ICD//10", "LAB", "MEDICATION//start", "PROCEDURE//ICD//9"];
    let units = ["kg", "mmol/L", "mm[Hg]", "unknown"];
    let name = |i: usize| format!("{}//{:05}-7//{}", kinds[i % 4], i * 7, units[i / 4 % 4]);
    let mut names: Vec<String> = (0..CODES).map(name).collect();
    names.sort();
    let values: StringArray = names.iter().map(Some).collect();
    // A few codes make up most of the leaves, as in health records.
    let keys: Vec<u32> = (0..LEAVES)
        .map(|_| (rng.random_range(0.0..1f64).powi(3) * CODES as f64) as u32)
        .map(|rank| rank.wrapping_mul(2_654_435_761) % CODES as u32)
        .collect();
    let codes = DictionaryArray::new(UInt32Array::from(keys), Arc::new(values));
    let plain = arrow::compute::cast(&codes, &arrow::datatypes::DataType::Utf8).unwrap();
    let lists = Offsets::from_lengths(std::iter::repeat_n(40, LEAVES / 40)).unwrap();
    let codes = RaggedArray::try_new(LEAVES / 40, vec![lists.into()], Arc::new(codes)).unwrap();
    let some = names.iter().step_by(80).map(Some).collect::<StringArray>();
    let one: ArrayRef = Arc::new(StringArray::from(vec![names[CODES / 3].as_str()]));
    Data { codes, plain, one, some: Arc::new(some) }
}

/// The name of a predicate, a function that evaluates it, and two functions that evaluate it for
/// each leaf with Arrow: over the dictionary and over plain strings. Each function returns the
/// number of leaves.
type Task<'a> =
    (&'static str, Box<dyn Fn() -> usize + 'a>, Option<[Box<dyn Fn() -> usize + 'a>; 2]>);

fn passing(mask: &RaggedArray) -> usize {
    mask.leaves().as_boolean().values().len()
}

fn tasks<'a>(d: &'a Data) -> Vec<Task<'a>> {
    let tested = move |t: TextTest<'static>| -> Box<dyn Fn() -> usize + 'a> {
        Box::new(move || passing(&test(&d.codes, t).unwrap()))
    };
    let by_leaf = move |t: &'static str| -> Option<[Box<dyn Fn() -> usize + 'a>; 2]> {
        let like = move |a: &ArrayRef| {
            comparison::like(a, &Scalar::new(StringArray::from(vec![t]))).unwrap().len()
        };
        Some([Box::new(move || like(d.codes.leaves())), Box::new(move || like(&d.plain))])
    };
    let equal = |a: &ArrayRef| cmp::eq(a, &Scalar::new(d.one.clone())).unwrap().len();
    let compare =
        |op| passing(&binary(op, Operand::Array(&d.codes), Operand::Scalar(&d.one)).unwrap());
    vec![
        (
            "code = 'X'",
            Box::new(move || compare(BinaryOp::Eq)),
            Some([Box::new(move || equal(d.codes.leaves())), Box::new(move || equal(&d.plain))]),
        ),
        ("code < 'X'", Box::new(move || compare(BinaryOp::Lt)), None),
        ("code LIKE 'LAB//%'", tested(TextTest::Like("LAB//%")), by_leaf("LAB//%")),
        ("code LIKE '%kg'", tested(TextTest::Like("%kg")), by_leaf("%kg")),
        ("code LIKE '%1%kg%'", tested(TextTest::Like("%1%kg%")), by_leaf("%1%kg%")),
        (
            "code ~ '[0-4]-7//(kg|mm)'",
            tested(TextTest::Matches { pattern: "[0-4]-7//(kg|mm)", flags: None }),
            None,
        ),
        ("code IN (50 codes)", Box::new(move || passing(&isin(&d.codes, &d.some).unwrap())), None),
    ]
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

/// Returns a bitmap with the lowest bit of each key, built as Arrow builds bitmaps.
fn collected(keys: &[u32]) -> BooleanBuffer {
    BooleanBuffer::collect_bool(keys.len(), |i| keys[i] & 1 == 1)
}

/// Reads all keys, and writes a bitmap of as many bits into fresh memory: the least work of a
/// predicate.
fn floor(keys: &[u32]) -> ([u32; 16], Vec<u8>) {
    let mut lanes = [0; 16];
    for chunk in keys.chunks_exact(16) {
        for (lane, key) in lanes.iter_mut().zip(chunk) {
            *lane ^= key;
        }
    }
    (lanes, vec![black_box(1u8); keys.len().div_ceil(8)])
}

fn report(d: &Data) {
    let keys = d.codes.leaves().as_dictionary::<UInt32Type>().keys().values().clone();
    let ms = |t: Duration| t.as_secs_f64() * 1e3;
    let least = ms(median(|| {
        black_box(floor(&keys));
    }));
    let bits = ms(median(|| {
        black_box(collected(&keys));
    }));
    println!("{LEAVES} leaves, {CODES} codes; keys read and bits written: {least:.2} ms");
    println!("a bit of each key, as Arrow collects bits: {bits:.2} ms");
    println!("{:<28} {:>8} {:>8} {:>16} {:>14}", "", "ms", "floors", "dictionary, ms", "plain, ms");
    for (name, run, others) in tasks(d) {
        let of = |run: &dyn Fn() -> usize| {
            ms(median(|| {
                black_box(run());
            }))
        };
        let found = of(&run);
        let others = others.map(|o| o.map(|run| format!("{:.1}", of(&run))));
        let [coded, plain] = others.unwrap_or_default();
        println!("{name:<28} {found:>8.2} {:>8.2} {coded:>16} {plain:>14}", found / least);
    }
}

fn codes(c: &mut Criterion) {
    let d = data();
    report(&d);
    let mut group = c.benchmark_group("codes");
    group.sample_size(20);
    group.throughput(Throughput::Elements(LEAVES as u64));
    for (name, run, _) in tasks(&d) {
        group.bench_function(name, |b| b.iter(&run));
    }
    group.finish();
}

criterion_group!(benches, codes);
criterion_main!(benches);
