//! Windows over the times of elements.

use std::sync::Arc;

use arrow::array::{
    Array, AsArray, Float64Array, Int64Array, TimestampMicrosecondArray, TimestampSecondArray,
};
use arrow::datatypes::{DataType, Float64Type, Int64Type, IntervalMonthDayNano};
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::RaggedArray;
use serrate::kernels::between::ClosedEnds;
use serrate::kernels::reduce::{Reduction, quantile, reduce};
use serrate::kernels::search::{SearchSide, searchsorted_lists};
use serrate::kernels::window::{
    TimeWindow, WindowReach, asof, ngrams, rolling, rolling_quantile, window, window_quantile,
    window_reduce,
};

use crate::common::torture::{
    Node, Random, Spec, are_alike, assert_alike, build_plain, decode_ragged, draw_torture,
    draw_tree, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::make_lists;

const HOW: [Reduction; 10] = [
    Reduction::Count,
    Reduction::Any,
    Reduction::All,
    Reduction::Sum,
    Reduction::Mean,
    Reduction::Median,
    Reduction::Min,
    Reduction::Max,
    Reduction::First,
    Reduction::Last,
];

/// A reference: returns the result for one time, given the elements of a list, their times and that
/// time.
type Reference<'a> = &'a dyn Fn(&[Node], &[Node], &Node) -> Node;

/// Returns the start and the end of the window at the time `at`, infinite if it is unbounded.
fn find_ends(at: f64, window: &TimeWindow) -> (f64, f64) {
    let span = |s: WindowReach| match s {
        WindowReach::Unbounded => f64::INFINITY,
        #[allow(clippy::cast_precision_loss)]
        WindowReach::Exact(n) => n as f64,
        WindowReach::Float(n) => n,
        WindowReach::Calendar(_) => panic!("another test covers calendar windows"),
    };
    (at - span(window.before), at + span(window.after))
}

fn is_inside(time: f64, at: f64, window: &TimeWindow) -> bool {
    let (low, high) = find_ends(at, window);
    let above = match window.closure {
        ClosedEnds::Both | ClosedEnds::Left => time >= low,
        _ => time > low,
    };
    let below = match window.closure {
        ClosedEnds::Both | ClosedEnds::Right => time <= high,
        _ => time < high,
    };
    above && below
}

/// Returns the elements whose time is in the window at `at`, sorted by time.
fn select_inside(elements: &[Node], times: &[Node], at: &Node, window: &TimeWindow) -> Node {
    let Some(at) = at.float() else { return Node::Null };
    let mut found: Vec<(f64, &Node)> = elements
        .iter()
        .zip(times)
        .filter_map(|(e, t)| Some((t.float()?, e)))
        .filter(|(t, _)| is_inside(*t, at, window))
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    Node::List(found.into_iter().map(|(_, e)| e.clone()).collect())
}

/// Applies `f` to each list of elements with its times, for each time in `at`.
fn map_lists(rows: [&[Node]; 3], levels: usize, f: Reference<'_>) -> Vec<Node> {
    fn below(x: &Node, time: &Node, at: &Node, levels: usize, f: Reference<'_>) -> Node {
        let known = !x.is_null() && !time.is_null();
        match levels {
            1 => {
                let one = |at: &Node| match known {
                    true => f(x.children(), time.children(), at),
                    false => Node::Null,
                };
                match at {
                    Node::List(all) => Node::List(all.iter().map(one).collect()),
                    at => one(at),
                }
            }
            _ if !known || at.is_null() => Node::Null,
            n => Node::List(
                (0..x.children().len())
                    .map(|i| {
                        below(&x.children()[i], &time.children()[i], &at.children()[i], n - 1, f)
                    })
                    .collect(),
            ),
        }
    }
    let [x, time, at] = rows;
    (0..x.len()).map(|i| below(&x[i], &time[i], &at[i], levels, f)).collect()
}

fn times_of(row: &Node, levels: usize, spec: &Spec, sorted: bool, rng: &mut Random) -> Node {
    match (levels, row) {
        (_, Node::Null) => Node::Null,
        (1, row) => {
            let mut times: Vec<Node> =
                row.children().iter().map(|_| draw_tree(spec, &[], rng)).collect();
            if sorted {
                times.sort_by(|a, b| a.float().unwrap().total_cmp(&b.float().unwrap()));
            }
            Node::List(times)
        }
        (n, row) => {
            let below = row.children().iter().map(|c| times_of(c, n - 1, spec, sorted, rng));
            Node::List(below.collect())
        }
    }
}

/// Draws a list of times for each list of axis `levels` of a row, or with `one` a single time.
fn at_of(row: &Node, levels: usize, one: bool, spec: &Spec, rng: &mut Random) -> Node {
    match (levels, row) {
        (1, _) if one => draw_tree(spec, &[], rng),
        (1, _) => {
            Node::List((0..rng.random_range(0..5)).map(|_| draw_tree(spec, &[], rng)).collect())
        }
        (_, Node::Null) => Node::Null,
        (n, row) => {
            Node::List(row.children().iter().map(|c| at_of(c, n - 1, one, spec, rng)).collect())
        }
    }
}

fn random_window(rng: &mut Random, floats: bool) -> TimeWindow {
    let mut span = || match rng.random_range(0..8) {
        0 => WindowReach::Unbounded,
        n if n < 4 && floats => WindowReach::Float(f64::from(rng.random_range(-2..9i32)) / 2.0),
        _ => WindowReach::Exact(rng.random_range(-1..6)),
    };
    let (before, after) = (span(), span());
    let all = [ClosedEnds::Both, ClosedEnds::Left, ClosedEnds::Right, ClosedEnds::Neither];
    TimeWindow { before, after, closure: *one_of(&all, rng) }
}

/// An array, the times of its elements, the times `at` of the windows, and all three as rows.
struct Case {
    array: RaggedArray,
    rows: [Vec<Node>; 3],
    axis: usize,
    times: RaggedArray,
    at: RaggedArray,
    window: TimeWindow,
}

fn draw_case(seed: u64, levels: usize, leaf: DataType, rng: &mut Random) -> Case {
    let mut spec = Spec::new(levels, leaf);
    spec.odd_floats = seed.is_multiple_of(4);
    let given = draw_torture(&spec, rng);
    let axis = rng.random_range(1..=levels);
    let of_times = [DataType::Int32, DataType::Int64, DataType::UInt64, DataType::Float64];
    let of_times = one_of(&of_times, rng).clone();
    let sorted = rng.random_range(0..2) == 0;
    let times = Spec { reach: 9, null_leaves: !sorted, ..Spec::new(0, of_times.clone()) };
    let one = rng.random_range(0..3) == 0;
    let time_rows: Vec<Node> =
        given.rows.iter().map(|r| times_of(r, axis, &times, sorted, rng)).collect();
    let of_at = Spec { reach: 9, ..Spec::new(0, of_times.clone()) };
    let at_rows: Vec<Node> = given.rows.iter().map(|r| at_of(r, axis, one, &of_at, rng)).collect();
    Case {
        array: given.ragged(),
        times: build_plain(axis, &of_times, &time_rows),
        at: build_plain(axis - usize::from(one), &of_times, &at_rows),
        axis,
        window: random_window(rng, true),
        rows: [given.rows, time_rows, at_rows],
    }
}

impl Case {
    fn expected(&self, f: Reference<'_>) -> Vec<Node> {
        let [x, time, at] = &self.rows;
        map_lists([x, time, at], self.axis, f)
    }
}

proptest! {
    #![proptest_config(configure_cases(300))]

    #[test]
    fn windows_have_the_elements_within_their_bounds(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let c = draw_case(seed, levels, DataType::Int16, &mut rng);
        let found = window(&c.array, &c.times, &c.at, &c.window).unwrap();
        let expected = c.expected(&|x, t, at| select_inside(x, t, at, &c.window));
        assert_alike(&decode_ragged(&found), &expected);

        let past = TimeWindow { before: WindowReach::Unbounded, after: WindowReach::Exact(0), closure: ClosedEnds::Right };
        let last = |x: &[Node], t: &[Node], at: &Node| match select_inside(x, t, at, &past) {
            Node::List(all) => all.last().cloned().unwrap_or(Node::Null),
            other => other,
        };
        assert_alike(&decode_ragged(&asof(&c.array, &c.times, &c.at).unwrap()), &c.expected(&last));
    }

    #[test]
    fn window_reduce_equals_reducing_the_lists_of_window(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let leaves = [
            DataType::Int8, DataType::Int64, DataType::UInt32, DataType::Float32,
            DataType::Float64, DataType::Float16, DataType::Boolean, DataType::Utf8,
        ];
        let leaf = one_of(&leaves, &mut rng).clone();
        let c = draw_case(seed, levels, leaf.clone(), &mut rng);
        let lists = window(&c.array, &c.times, &c.at, &c.window).unwrap();
        // Reduces all elements of each window, even if they are lists.
        let windows = lists.inner(c.at.axes().len()).unwrap();
        for how in HOW.into_iter().filter(|how| how.output_type(&leaf).is_ok()) {
            let found = window_reduce(&c.array, &c.times, &c.at, how, &c.window).unwrap();
            let expected = reduce(&windows, how, None).unwrap();
            prop_assert_eq!(found.leaf_type(), expected.leaf_type());
            let found = decode_ragged(&found.inner(c.at.axes().len()).unwrap());
            assert_alike(&found, &decode_ragged(&expected));
        }
        prop_assert!(window_reduce(&c.array, &c.times, &c.at, Reduction::Mode, &c.window).is_err());
        if Reduction::Median.output_type(&leaf).is_ok() {
            let q = f64::from(rng.random_range(0..=8u8)) / 8.0;
            let found = window_quantile(&c.array, &c.times, &c.at, q, &c.window).unwrap();
            let expected = quantile(&windows, q, None).unwrap();
            prop_assert_eq!(found.leaf_type(), expected.leaf_type());
            let found = decode_ragged(&found.inner(c.at.axes().len()).unwrap());
            assert_alike(&found, &decode_ragged(&expected));
        }
    }

    #[test]
    fn rolling_windows_and_ngrams_equal_the_reference(seed: u64, levels in 1usize..3, n in 1usize..5, least in 0usize..4) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&[DataType::Int32, DataType::Float64], &mut rng).clone();
        let given = draw_torture(&Spec::new(levels, leaf.clone()), &mut rng);
        let a = given.ragged();
        let grams = |list: &Node| match list {
            Node::Null => Node::Null,
            list => Node::List(list.children().windows(n).map(|w| Node::List(w.to_vec())).collect()),
        };
        let expected: Vec<Node> =
            given.rows.iter().map(|r| r.map_at(levels - 1, &mut |l| grams(l))).collect();
        assert_alike(&decode_ragged(&ngrams(&a, n).unwrap()), &expected);
        for how in HOW {
            let value = |w: &[Node]| {
                if w.iter().filter(|v| !v.is_null()).count() < least {
                    return Node::Null;
                }
                let one = build_plain(1, &leaf, &[Node::List(w.to_vec())]);
                decode_ragged(&reduce(&one, how, Some(1)).unwrap())[0].clone()
            };
            let moved = |list: &Node| match list {
                Node::Null => Node::Null,
                list => {
                    let v = list.children();
                    Node::List((0..v.len()).map(|i| value(&v[(i + 1).saturating_sub(n)..=i])).collect())
                }
            };
            let expected: Vec<Node> =
                given.rows.iter().map(|r| r.map_at(levels - 1, &mut |l| moved(l))).collect();
            assert_alike(&decode_ragged(&rolling(&a, n, how, least).unwrap()), &expected);
            if how == Reduction::Median {
                assert_alike(
                    &decode_ragged(&rolling_quantile(&a, n, 0.5, least).unwrap()),
                    &expected,
                );
            }
        }
    }

    #[test]
    fn float_sums_do_not_depend_on_other_values(seed: u64) {
        let mut rng = seed_random(seed);
        let wide = rng.random_range(0..2) == 0;
        let values: Vec<f64> = (0..rng.random_range(1..40)).map(|_| {
            let scale = if wide { rng.random_range(-300..300) } else { rng.random_range(-9..9) };
            rng.random_range(-1.0..1.0f64) * 10f64.powi(scale)
        }).collect();
        let n = rng.random_range(1..6);
        let whole = make_lists(&[values.len()], Arc::new(Float64Array::from(values.clone())));
        let found = rolling(&whole, n, Reduction::Sum, 1).unwrap();
        let found = found.leaves().as_primitive::<Float64Type>().values().to_vec();
        for (i, sum) in found.iter().enumerate() {
            let own = &values[(i + 1).saturating_sub(n)..=i];
            let alone = make_lists(&[own.len()], Arc::new(Float64Array::from(own.to_vec())));
            let alone = rolling(&alone, n, Reduction::Sum, 1).unwrap();
            let alone = alone.leaves().as_primitive::<Float64Type>().value(own.len() - 1);
            prop_assert_eq!(sum.to_bits(), alone.to_bits());
        }
    }
}

#[test]
fn sums_of_windows_are_exact_before_they_are_rounded() {
    let a = make_lists(&[3], Arc::new(Float64Array::from(vec![1e16, 1.0, -1e16])));
    let found = rolling(&a, 3, Reduction::Sum, 1).unwrap();
    assert_eq!(found.leaves().as_primitive::<Float64Type>().value(2), 1.0);
    let far = make_lists(&[3], Arc::new(Float64Array::from(vec![1e300, 1e-300, -1e300])));
    let found = rolling(&far, 3, Reduction::Sum, 1).unwrap();
    assert_eq!(found.leaves().as_primitive::<Float64Type>().value(2), 1e-300);
    let most = make_lists(&[2], Arc::new(Int64Array::from(vec![i64::MAX, 1])));
    let e = rolling(&most, 2, Reduction::Sum, 1).unwrap_err().to_string();
    assert!(e.contains("sum of window 1"), "{e}");
    assert_eq!(rolling(&most, 1, Reduction::Sum, 1).unwrap().leaves(), most.leaves());
}

#[test]
fn durations_in_windows_reduce_like_those_in_lists() {
    let values = [Some(1), Some(2), None, Some(-1), Some(1 << 60), Some((1 << 60) + 1), Some(-4)];
    let leaves = arrow::array::DurationNanosecondArray::from(values.to_vec());
    let a = make_lists(&[7], Arc::new(leaves));
    let times = make_lists(&[7], Arc::new(Int64Array::from((0..7).collect::<Vec<i64>>())));
    for n in 1..5u8 {
        let (before, after) = (WindowReach::Exact(i128::from(n)), WindowReach::Exact(0));
        let given = TimeWindow { before, after, closure: ClosedEnds::Right };
        let lists = window(&a, &times, &times, &given).unwrap();
        for how in [Reduction::Mean, Reduction::Median] {
            let found = window_reduce(&a, &times, &times, how, &given).unwrap();
            let expected = reduce(&lists, how, Some(-1)).unwrap();
            assert_eq!(found.leaf_type(), a.leaf_type());
            assert_eq!(found.leaves(), expected.leaves(), "{how:?} {n}");
            let moved = rolling(&a, usize::from(n), how, 1).unwrap();
            assert_eq!(moved.leaves(), expected.leaves(), "{how:?} {n}");
        }
        let found = window_quantile(&a, &times, &times, 0.25, &given).unwrap();
        assert_eq!(found.leaves(), quantile(&lists, 0.25, Some(-1)).unwrap().leaves());
    }
}

#[test]
fn times_of_different_units_and_extreme_times_are_compared_exactly() {
    let seconds = make_lists(&[3], Arc::new(TimestampSecondArray::from(vec![0, 60, i64::MAX])));
    let at =
        make_lists(&[2], Arc::new(TimestampMicrosecondArray::from(vec![60_000_001, i64::MAX])));
    let count = |before: i128, closure| {
        let given = TimeWindow {
            before: WindowReach::Exact(before),
            after: WindowReach::Exact(0),
            closure,
        };
        let found = window_reduce(&seconds, &seconds, &at, Reduction::Count, &given).unwrap();
        found.leaves().as_primitive::<Int64Type>().values().to_vec()
    };
    assert_eq!(count(60_000_001_000, ClosedEnds::Right), [1, 0]);
    assert_eq!(count(60_000_001_000, ClosedEnds::Both), [2, 0]);
    assert_eq!(count(1000, ClosedEnds::Right), [0, 0]);
    assert_eq!(count(1001, ClosedEnds::Right), [1, 0]);
    let ends = make_lists(&[2], Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX])));
    let given = TimeWindow {
        before: WindowReach::Exact(1),
        after: WindowReach::Exact(1),
        closure: ClosedEnds::Both,
    };
    let found = window_reduce(&ends, &ends, &ends, Reduction::Count, &given).unwrap();
    assert_eq!(found.leaves().as_primitive::<Int64Type>().values(), &[1, 1]);
}

#[test]
fn windows_of_months_follow_the_calendar() {
    let day = 86_400;
    // The times are 2020-02-29, 2020-03-30 and 2020-03-31.
    let days = [18_321, 18_351, 18_352].map(|d| d * day);
    let times = make_lists(&[3], Arc::new(TimestampSecondArray::from(days.to_vec())));
    let month = WindowReach::Calendar(IntervalMonthDayNano::new(1, 0, 0));
    let given =
        TimeWindow { before: month, after: WindowReach::Exact(0), closure: ClosedEnds::Both };
    let found = window_reduce(&times, &times, &times, Reduction::Count, &given).unwrap();
    assert_eq!(found.leaves().as_primitive::<Int64Type>().values(), &[1, 2, 3]);
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let a = make_lists(&[2, 1], Arc::new(Int64Array::from(vec![1, 2, 3])));
    let short = make_lists(&[1, 1], Arc::new(Int64Array::from(vec![1, 2])));
    let flat = RaggedArray::try_new(2, vec![], Arc::new(Int64Array::from(vec![1, 2]))).unwrap();
    let times = make_lists(&[2, 1], Arc::new(TimestampSecondArray::from(vec![1, 2, 3])));
    let past = TimeWindow {
        before: WindowReach::Unbounded,
        after: WindowReach::Exact(0),
        closure: ClosedEnds::Right,
    };
    assert!(window(&a, &short, &a, &past).is_err());
    assert!(window(&a, &flat, &a, &past).is_err());
    assert!(window(&a, &a, &times, &past).is_err());
    assert!(window(&a, &a, &flat, &past).is_ok());
    assert!(rolling(&flat, 2, Reduction::Sum, 1).is_err());
    assert!(ngrams(&a, 0).is_err() && ngrams(&flat, 1).is_err());
    assert!(searchsorted_lists(&a, &short, SearchSide::Left).is_ok());
    assert!(are_alike(&Node::Null, &Node::Null) && times.leaves().null_count() == 0);
}
