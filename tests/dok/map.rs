//! `RowMap` under random sequences of calls, with any number of threads, and with keys that simple
//! hash functions map to the same bucket.

use std::collections::HashMap as Std;

use proptest::prelude::*;
use serrate::dense::{DType, DenseTensor, TensorElement};
use serrate::dok::{Fallback, MapOptions, RowMap, RowType};

fn run_in_pool<T: Send>(n: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(run)
}

fn make_options(seed: u64) -> MapOptions {
    MapOptions { seed: Some(seed), ..Default::default() }
}

/// Returns the bytes of each row of a tensor.
fn list_rows(t: &DenseTensor) -> Vec<Vec<u8>> {
    let n = t.shape()[0];
    let w = t.nbytes().checked_div(n).unwrap_or(0);
    (0..n).map(|i| t.as_bytes()[i * w..][..w].to_vec()).collect()
}

/// Builds a key of `width` elements from each number. Small numbers give repeated keys.
fn make_keys<T: TensorElement>(
    numbers: &[u16],
    width: usize,
    make: impl Fn(u16) -> T,
) -> DenseTensor {
    let values: Vec<T> = numbers
        .iter()
        .flat_map(|n| (0..width).map(move |k| n.wrapping_mul(k as u16 + 1) ^ k as u16))
        .map(make)
        .collect();
    DenseTensor::from_vec([numbers.len(), width], values).unwrap()
}

fn make_values(numbers: &[u16], base: i64, width: usize) -> DenseTensor {
    let all = (0..numbers.len() * width).map(|i| base * 1000 + i as i64).collect::<Vec<_>>();
    DenseTensor::from_vec([numbers.len(), width], all).unwrap()
}

/// A call on the map.
#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u16>),
    GetOrInsert(Vec<u16>),
    Remove(Vec<u16>),
    Get(Vec<u16>),
    Rehash(usize),
    Reserve(usize),
    Shrink,
    Clear,
    Copy,
}

fn draw_step() -> impl Strategy<Value = Step> {
    let some = || prop::collection::vec(0u16..300, 0..400);
    prop_oneof![
        6 => some().prop_map(Step::Set),
        2 => some().prop_map(Step::GetOrInsert),
        4 => some().prop_map(Step::Remove),
        3 => some().prop_map(Step::Get),
        1 => (0usize..2000).prop_map(Step::Rehash),
        1 => (0usize..2000).prop_map(Step::Reserve),
        1 => Just(Step::Shrink),
        1 => Just(Step::Clear),
        1 => Just(Step::Copy),
    ]
}

/// The reference: values by the bytes of their keys, and the keys in the order of the map.
#[derive(Default)]
struct Model {
    values: Std<Vec<u8>, Vec<u8>>,
    order: Vec<Vec<u8>>,
}

impl Model {
    fn set(&mut self, key: Vec<u8>, value: Vec<u8>, replace: bool) -> bool {
        let new = !self.values.contains_key(&key);
        if new {
            self.order.push(key.clone());
        }
        if new || replace {
            self.values.insert(key, value);
        }
        new
    }

    fn remove(&mut self, keys: &[Vec<u8>]) {
        let holes: Vec<bool> = self.order.iter().map(|k| keys.contains(k)).collect();
        let left = holes.iter().filter(|h| !**h).count();
        let mut moved: Vec<_> = (left..self.order.len())
            .filter(|i| !holes[*i])
            .map(|i| self.order[i].clone())
            .collect();
        moved.reverse();
        for (i, hole) in holes.iter().enumerate().take(left) {
            if *hole {
                self.order[i] = moved.pop().unwrap();
            }
        }
        self.order.truncate(left);
        for key in keys {
            self.values.remove(key);
        }
    }
}

fn check_program<T: TensorElement>(
    steps: &[Step],
    options: MapOptions,
    width: usize,
    value: usize,
    make: impl Fn(u16) -> T + Copy,
) {
    let mut map = RowMap::with_types(
        RowType::new(T::DTYPE, [width]).unwrap(),
        RowType::new(DType::I64, [value]).unwrap(),
        options.clone(),
    )
    .unwrap();
    let mut model = Model::default();
    for (base, step) in steps.iter().enumerate() {
        match step {
            Step::Set(n) | Step::GetOrInsert(n) => {
                let (k, v) = (make_keys(n, width, make), make_values(n, base as i64, value));
                let replace = matches!(step, Step::Set(_));
                let new: Vec<bool> = list_rows(&k)
                    .into_iter()
                    .zip(list_rows(&v))
                    .map(|(k, v)| model.set(k, v, replace))
                    .collect();
                if replace {
                    assert_eq!(map.set(&k, &v).unwrap(), new);
                } else {
                    let fetched = map.get_or_insert(&k, &v).unwrap();
                    assert_eq!(fetched.found, new.iter().map(|n| !n).collect::<Vec<_>>());
                    let expected: Vec<_> =
                        list_rows(&k).iter().map(|k| model.values[k].clone()).collect();
                    assert_eq!(list_rows(&fetched.values), expected);
                }
            }
            Step::Remove(n) => {
                let k = make_keys(n, width, make);
                let there: Vec<bool> =
                    list_rows(&k).iter().map(|k| model.values.contains_key(k)).collect();
                assert_eq!(map.remove(&k).unwrap(), there);
                model.remove(&list_rows(&k));
            }
            Step::Get(n) => {
                let k = make_keys(n, width, make);
                let fetched = map.get(&k, &Fallback::from(-7)).unwrap();
                assert_eq!(map.contains(&k).unwrap(), fetched.found);
                let other = (-7i64).to_ne_bytes().repeat(value);
                let places = map.find(&k).unwrap();
                for (i, key) in list_rows(&k).iter().enumerate() {
                    let there = model.values.get(key);
                    assert_eq!(fetched.found[i], there.is_some());
                    assert_eq!(list_rows(&fetched.values)[i], *there.unwrap_or(&other));
                    assert_eq!(places[i].map(|p| &model.order[p]), there.map(|_| key));
                }
            }
            Step::Rehash(n) => {
                map.rehash(*n).unwrap();
                assert!(map.n_buckets() >= *n);
            }
            Step::Reserve(n) => {
                map.reserve(*n).unwrap();
                assert!(
                    map.n_buckets() as f64 * options.load_factor >= (map.len() + n) as f64 - 1.0
                );
            }
            Step::Shrink => map.shrink().unwrap(),
            Step::Clear => {
                map.clear();
                model = Model::default();
            }
            Step::Copy => {
                let copy = map.try_clone().unwrap();
                let snapshot = (map.keys().unwrap(), map.values().unwrap());
                // Changes of the original must not affect the copy.
                let n: Vec<u16> = (0..50).collect();
                map.set(&make_keys(&n, width, make), &make_values(&n, -1, value)).unwrap();
                map.remove(&make_keys(&n[..20], width, make)).unwrap();
                map = copy;
                assert_eq!((map.keys().unwrap(), map.values().unwrap()), snapshot);
            }
        }
        assert_eq!(map.len(), model.order.len());
        assert!(map.load_factor() <= options.load_factor.max(0.0) + 1e-9 || map.n_buckets() == 1);
        assert_eq!(list_rows(&map.keys().unwrap()), model.order);
        let expected: Vec<_> = model.order.iter().map(|k| model.values[k].clone()).collect();
        assert_eq!(list_rows(&map.values().unwrap()), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_calls_equal_those_on_the_map_of_std(
        steps in prop::collection::vec(draw_step(), 1..14),
        seed in any::<u64>(),
        load in 0.2f64..0.95,
        growth in 1.05f64..4.0,
        width in 0usize..8,
        value in 0usize..4,
        kind in 0usize..4,
    ) {
        let options = MapOptions { load_factor: load, growth, seed: Some(seed), ..Default::default() };
        match kind {
            0 => check_program(&steps, options, width, value, |n| n),
            1 => check_program(&steps, options, width, value, |n| i64::from(n) << 40),
            2 => check_program(&steps, options, width, value, |n| f32::from(n) / 7.0),
            _ => check_program(&steps, options, width, value, |n| n as u8),
        }
    }
}

/// Draws `n` numbers below `distinct`, so that some repeat.
fn draw_many(n: usize, distinct: u64, salt: u64) -> Vec<i64> {
    let mut x = salt;
    (0..n)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((x >> 20) % distinct) as i64
        })
        .collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let tensor = |v: Vec<i64>| DenseTensor::from_vec([v.len()], v).unwrap();
    // There are more keys than the map processes at once. The second set has few keys that repeat
    // often.
    for (n, distinct) in [(70_000, 25_000), (66_000, 100)] {
        let run = |threads_: usize, parallel: bool, spare: usize| {
            run_in_pool(threads_, || {
                let mut map =
                    RowMap::new(MapOptions { parallel, ..make_options(distinct) }).unwrap();
                map.set(&tensor(vec![1, 2, 3]), &tensor(vec![-1, -2, -3])).unwrap();
                map.reserve(spare).unwrap();
                let keys = tensor(draw_many(n, distinct, 1));
                let first = map.set(&keys, &tensor((0..n as i64).collect())).unwrap();
                let removed = map.remove(&tensor(draw_many(n / 3, distinct, 1))).unwrap();
                let again = map.set(&tensor(draw_many(n, distinct, 2)), &keys).unwrap();
                let fetched = map.get_or_insert(&tensor(draw_many(n, distinct, 3)), &keys).unwrap();
                let got = map.get(&tensor(draw_many(n, distinct, 4)), &Fallback::Zero).unwrap();
                let there = map.contains(&tensor(draw_many(n, distinct, 4))).unwrap();
                map.rehash(map.n_buckets() + 1234).unwrap();
                let after = map.get(&tensor(draw_many(n, distinct, 4)), &Fallback::Zero).unwrap();
                assert_eq!(there, got.found);
                assert_eq!(after, got);
                (first, removed, again, fetched, got, map.keys().unwrap(), map.values().unwrap())
            })
        };
        let one = run(1, false, 0);
        for n_threads in [2, 3, 8] {
            for spare in [0, 2 * n] {
                assert_eq!(run(n_threads, true, spare), one, "{n_threads} threads");
            }
        }
    }
}

/// In a table that is nearly full, a search visits many buckets and wraps around at the end of the
/// table.
#[test]
fn keys_are_found_in_tables_that_are_nearly_full() {
    for n in [1usize, 7, 8, 15, 16, 17, 100, 1000, 5000] {
        for load_factor in [0.75, 0.95] {
            let mut map =
                RowMap::new(MapOptions { load_factor, ..make_options(n as u64) }).unwrap();
            let keys: Vec<i64> = (0..n as i64).flat_map(|i| [i, -i, i * i]).collect();
            let keys = DenseTensor::from_vec([n, 3], keys).unwrap();
            let row_numbers = DenseTensor::from_vec([n], (0..n as i64).collect()).unwrap();
            map.set(&keys, &row_numbers).unwrap();
            map.rehash(0).unwrap();
            let asked: Vec<i64> = (0..2 * n as i64).flat_map(|i| [i, -i, i * i]).collect();
            let asked = DenseTensor::from_vec([2 * n, 3], asked).unwrap();
            let check = |map: &RowMap, there: &dyn Fn(usize) -> bool| {
                let got = map.get(&asked, &Fallback::from(-1)).unwrap();
                let rows = map.find(&asked).unwrap();
                let values = got.values.as_slice::<i64>().unwrap();
                for (i, (value, row)) in values.iter().zip(rows).enumerate() {
                    let expected = if there(i) { i as i64 } else { -1 };
                    assert_eq!(*value, expected, "{n} {load_factor}");
                    assert_eq!((got.found[i], row.is_some()), (there(i), there(i)));
                }
            };
            check(&map, &|i| i < n);
            let odd: Vec<i64> = (1..n as i64).step_by(2).flat_map(|i| [i, -i, i * i]).collect();
            map.remove(&DenseTensor::from_vec([odd.len() / 3, 3], odd).unwrap()).unwrap();
            check(&map, &|i| i < n && i % 2 == 0);
        }
    }
}

#[test]
fn zeros_are_equal_keys_and_so_are_nans() {
    let mut map = RowMap::new(make_options(0)).unwrap();
    let t = |v: Vec<f32>| DenseTensor::from_vec([v.len()], v).unwrap();
    let odd = f32::from_bits(f32::NAN.to_bits() | 0x8000_0001);
    assert_eq!(
        map.set(&t(vec![0.0, -0.0, f32::NAN, odd, 0.1, 0.2]), &t(vec![1., 2., 3., 4., 5., 6.]))
            .unwrap(),
        [true, false, true, false, true, true]
    );
    let got = map.get(&t(vec![-0.0, -f32::NAN, 0.1, 0.3]), &Fallback::from(-1.0)).unwrap();
    assert_eq!(got.values.as_slice::<f32>().unwrap(), [2., 4., 5., -1.]);
    // The map stores 0.0 for -0.0.
    assert!(map.keys().unwrap().as_slice::<f32>().unwrap()[0].is_sign_positive());
}

#[test]
fn regular_keys_do_not_collide_often() {
    // Multiples of powers of two, numbers with equal halves or equal lower halves, and numbers with
    // zeros in their lower bytes.
    let n = 1 << 16;
    let sets: Vec<Vec<i64>> = vec![
        (0..n).map(|i| i << 47).collect(),
        (0..n).map(|i| i * 0x1_0000_0001).collect(),
        (0..n).map(|i| (i << 32) | 7).collect(),
        (0..n).map(|i| i.swap_bytes()).collect(),
        (0..n).map(|i| (i as f64).to_bits() as i64).collect(),
    ];
    for (k, set) in sets.into_iter().enumerate() {
        let mut unique = set.clone();
        unique.sort_unstable();
        unique.dedup();
        let keys = DenseTensor::from_vec([set.len()], set).unwrap();
        for seed in [0, 1, u64::MAX] {
            let mut map = RowMap::new(make_options(seed)).unwrap();
            map.set(&keys, &keys).unwrap();
            assert_eq!(map.len(), unique.len(), "set {k}");
            let got = map.get(&keys, &Fallback::Zero).unwrap();
            assert_eq!(got.values, keys);
            assert!(map.longest_probe() < 200, "set {k}, seed {seed}: {}", map.longest_probe());
        }
    }
    // Without a given seed, each map draws its own.
    let seed = || RowMap::new(MapOptions::default()).unwrap().seed();
    assert_ne!(seed(), seed());
}

#[test]
fn rows_of_other_types_and_invalid_options_are_refused() {
    let mut map = RowMap::new(make_options(0)).unwrap();
    let two = DenseTensor::from_vec([1, 2], vec![1i64, 2]).unwrap();
    let three = DenseTensor::from_vec([1, 3], vec![1i64, 2, 3]).unwrap();
    for e in [map.get(&two, &Fallback::Zero).unwrap_err(), map.remove(&two).unwrap_err()] {
        assert!(e.to_string().contains("insert a first batch with `set`"), "{e}");
    }
    assert!(map.keys().is_err());
    map.set(&two, &two).unwrap();
    let e = map.get(&three, &Fallback::Zero).unwrap_err().to_string();
    assert!(e.contains("int64[2]") && e.contains("int64[3]"), "{e}");
    assert!(map.set(&two, &three).is_err() && map.contains(&three).is_err());
    assert!(map.get(&two.cast(DType::F32).unwrap(), &Fallback::Zero).is_err());
    assert!(map.set(&DenseTensor::from_vec([2, 2], vec![0i64; 4]).unwrap(), &two).is_err());
    assert!(map.get(&two, &Fallback::Value(three)).is_err());
    assert!(map.get(&two, &Fallback::from(0.5)).is_err());
    let scalar = DenseTensor::from_vec([], vec![1i64]).unwrap();
    assert!(map.get(&scalar, &Fallback::Zero).is_err());
    assert!(map.rehash(usize::MAX).is_err());
    for wrong in [
        MapOptions { load_factor: 1.0, ..make_options(0) },
        MapOptions { load_factor: f64::NAN, ..make_options(0) },
        MapOptions { growth: 1.0, ..make_options(0) },
        MapOptions { n_buckets: usize::MAX, ..make_options(0) },
    ] {
        assert!(RowMap::new(wrong).is_err());
    }
    assert!(map.reserve(usize::MAX).is_err());
    assert!(RowType::new(DType::F64, [usize::MAX, 2]).is_err());
    assert_eq!(map.len(), 1);
}

#[test]
fn a_map_takes_at_most_56_bytes_per_entry_of_32_bytes() {
    let n = 3_000_000usize;
    let keys = DenseTensor::from_vec([n, 3], (0..3 * n as i64).collect()).unwrap();
    let values = DenseTensor::from_vec([n], vec![1f64; n]).unwrap();
    let map = RowMap::from_rows(&keys, &values, make_options(3)).unwrap();
    assert!((map.load_factor() - 0.75).abs() < 1e-3);
    let each = map.nbytes() as f64 / n as f64;
    assert!(each <= 1.5 * 32.0 + 8.0, "{each}");
    assert_eq!(map.rows::<i64, f64>().unwrap().nth(1).unwrap(), (&[3i64, 4, 5][..], &[1.0][..]));
}

/// The environment variable that is set in the process in which
/// [`a_map_without_memory_to_grow_keeps_its_entries`] runs with limited memory.
#[cfg(target_os = "linux")]
const LITTLE: &str = "SERRATE_TEST_LITTLE_MEMORY";

#[cfg(target_os = "linux")]
#[test]
fn a_map_without_memory_to_grow_keeps_its_entries() {
    const NAME: &str = "map::a_map_without_memory_to_grow_keeps_its_entries";
    if std::env::var_os(LITTLE).is_none() {
        let test = std::env::current_exe().unwrap();
        let run = format!("ulimit -v 1500000; exec '{}' --exact {NAME}", test.display());
        let output = std::process::Command::new("sh")
            .args(["-c", &run])
            .env(LITTLE, "1")
            .env("RUST_TEST_THREADS", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    // A value of 8 MB makes the array of values run out of memory long before the keys do.
    const WIDE: usize = 1 << 20;
    for (count, replace, width) in
        [(1, true, WIDE), (3, true, WIDE), (3, false, WIDE), (70_000, true, 64)]
    {
        let mut map = RowMap::new(make_options(1)).unwrap();
        let mut failed = false;
        let mut given = 0i64;
        while !failed {
            let numbers: Vec<i64> = (given..given + count).collect();
            let keys = DenseTensor::from_vec([count as usize], numbers.clone()).unwrap();
            // `repeat` copies whole blocks, which is fast in a development build, too.
            let mut each = Vec::with_capacity(numbers.len() * width);
            for number in &numbers {
                each.extend_from_slice(&[*number].repeat(width));
            }
            let values = DenseTensor::from_vec([count as usize, width], each).unwrap();
            failed = match replace {
                true => map.set(&keys, &values).is_err(),
                false => map.get_or_insert(&keys, &values).is_err(),
            };
            given += count;
            assert!(
                given < 100_000_000,
                "allocations do not fail; limit the memory of this process"
            );
        }
        let len = map.len();
        assert!(len > 0 && len as i64 <= given, "{len} {given}");
        let (keys, values) = (map.keys().unwrap(), map.values().unwrap());
        assert_eq!((keys.shape()[0], values.shape()[0]), (len, len));
        let numbers = keys.as_slice::<i64>().unwrap();
        let stored = values.as_slice::<i64>().unwrap();
        for (row, number) in numbers.iter().enumerate() {
            assert_eq!(*number, row as i64);
            assert_eq!((stored[row * width], stored[row * width + width - 1]), (*number, *number));
        }
        // The map can still be searched, for keys that it contains and for others.
        let all = DenseTensor::from_vec([given as usize], (0..given).collect::<Vec<_>>()).unwrap();
        let there = map.contains(&all).unwrap();
        assert!(there.iter().enumerate().all(|(i, there)| *there == (i < len)));
    }
}
