//! Reductions, such as sum, product, mean, minimum and quantiles.

use std::sync::Arc;

use arrow::array::{
    Array, ArrowPrimitiveType, AsArray, Float32Array, Int64Array, PrimitiveArray, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int32Type, Int64Type, TimeUnit, UInt16Type,
};
use proptest::prelude::*;
use rand::RngExt;
use serrate::Error;
use serrate::array::{Layout, Offsets, RaggedArray};
use serrate::kernels::filter::filter;
use serrate::kernels::reduce::{self, Reduction, reduce};

use crate::common::torture::{
    Node, Spec, assert_alike, decode_ragged, draw_torture, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::{LEAVES, draw_mask, make_lists};

const ALL: [Reduction; 20] = [
    Reduction::Sum,
    Reduction::Prod,
    Reduction::Mean,
    Reduction::Min,
    Reduction::Max,
    Reduction::Count,
    Reduction::Size,
    Reduction::Any,
    Reduction::All,
    Reduction::Var { ddof: 0 },
    Reduction::Var { ddof: 1 },
    Reduction::Std { ddof: 0 },
    Reduction::Std { ddof: 2 },
    Reduction::Median,
    Reduction::ArgMin,
    Reduction::ArgMax,
    Reduction::First,
    Reduction::Last,
    Reduction::Nunique,
    Reduction::Mode,
];

/// A value and its position along the axis that is reduced.
type Placed<'a> = (usize, &'a Node);

fn place_values(values: &[Node]) -> Vec<Placed<'_>> {
    values.iter().enumerate().collect()
}

/// Returns the key by which minimum and maximum compare. NaN precedes all numbers in both. Strings
/// are compared with strings only.
fn order_key(node: &Node, max: bool) -> (bool, f64, String) {
    match node {
        Node::Text(t) => (false, 0.0, t.clone()),
        node => {
            let v = node.float().unwrap();
            (
                if max { v.is_nan() } else { !v.is_nan() },
                if v.is_nan() { 0.0 } else { v },
                String::new(),
            )
        }
    }
}

/// Returns the first of the smallest or, with `max`, of the largest values.
fn find_best<'a>(values: &[Placed<'a>], max: bool) -> Option<Placed<'a>> {
    let mut found: Option<Placed<'a>> = None;
    for (at, value) in values {
        let better = found.is_none_or(|(_, b)| {
            let (value, b) = (order_key(value, max), order_key(b, max));
            if max { value > b } else { value < b }
        });
        if better {
            found = Some((*at, value));
        }
    }
    found
}

fn compute_spread(floats: &[f64], ddof: u32) -> Option<f64> {
    let n = floats.len() as f64;
    if n <= f64::from(ddof) {
        return None;
    }
    let mean = floats.iter().sum::<f64>() / n;
    Some(floats.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - f64::from(ddof)))
}

/// Returns the quantile `q` with linear interpolation, as numpy computes it.
fn quantile_of(floats: &[f64], q: f64) -> Node {
    if floats.is_empty() {
        return Node::Null;
    }
    if floats.iter().any(|v| v.is_nan()) {
        return Node::Float(f64::NAN);
    }
    let mut sorted = floats.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = q * (sorted.len() - 1) as f64;
    let (low, share) = (at.floor() as usize, at.fract());
    let (a, b) = (sorted[low], sorted[(low + 1).min(sorted.len() - 1)]);
    Node::Float(if a == b || share == 0.0 { a } else { a * (1.0 - share) + b * share })
}

/// Reduces the values of one list, which may be null, to one value.
fn reduce_list(how: Reduction, values: &[Placed<'_>], float: bool) -> Node {
    let size = values.len() as i64;
    let values: Vec<Placed<'_>> = values.iter().filter(|(_, v)| !v.is_null()).copied().collect();
    let floats: Vec<f64> = values.iter().filter_map(|(_, v)| v.float()).collect();
    let ints = || values.iter().filter_map(|(_, v)| v.int());
    let some = |v: Option<f64>| v.map_or(Node::Null, Node::Float);
    let at = |v: Option<Placed<'_>>| v.map_or(Node::Null, |(i, _)| Node::Int(i as i64));
    let value = |v: Option<&Placed<'_>>| v.map_or(Node::Null, |(_, v)| (*v).clone());
    match how {
        Reduction::Count => Node::Int(values.len() as i64),
        Reduction::Size => Node::Int(size),
        Reduction::Any => Node::Bool(floats.iter().any(|v| *v != 0.0)),
        Reduction::All => Node::Bool(floats.iter().all(|v| *v != 0.0)),
        Reduction::First => value(values.first()),
        Reduction::Last => value(values.last()),
        Reduction::Nunique => {
            let mut seen: Vec<&Node> = Vec::new();
            for (_, v) in &values {
                let same = |s: &&Node| {
                    **s == **v
                        || (s.float().is_some_and(f64::is_nan)
                            && v.float().is_some_and(f64::is_nan))
                };
                if !seen.iter().any(same) {
                    seen.push(v);
                }
            }
            Node::Int(seen.len() as i64)
        }
        Reduction::Mode => {
            let count = |v: &Node| {
                values.iter().filter(|(_, w)| order_key(w, true) == order_key(v, true)).count()
            };
            let mut best: Option<&Placed<'_>> = None;
            for v in &values {
                let better = |b: &&Placed<'_>| {
                    count(v.1) > count(b.1)
                        || count(v.1) == count(b.1) && order_key(v.1, true) < order_key(b.1, true)
                };
                if best.is_none() || best.as_ref().is_some_and(better) {
                    best = Some(v);
                }
            }
            value(best)
        }
        Reduction::Sum if float => Node::Float(floats.iter().sum()),
        Reduction::Prod if float => Node::Float(floats.iter().product()),
        Reduction::Sum => Node::Int(ints().sum()),
        Reduction::Prod => Node::Int(ints().product()),
        Reduction::Var { ddof } => some(compute_spread(&floats, ddof)),
        Reduction::Std { ddof } => some(compute_spread(&floats, ddof).map(f64::sqrt)),
        Reduction::ArgMin => at(find_best(&values, false)),
        Reduction::ArgMax => at(find_best(&values, true)),
        Reduction::Min => value(find_best(&values, false).as_ref()),
        Reduction::Max => value(find_best(&values, true).as_ref()),
        Reduction::Median => quantile_of(&floats, 0.5),
        Reduction::Mean if values.is_empty() => Node::Null,
        Reduction::Mean => Node::Float(floats.iter().sum::<f64>() / floats.len() as f64),
    }
}

/// Reduces across elements, which are nested lists of `levels` levels: returns nested lists in
/// which each position has the reduction of the values that the elements have there.
fn reduce_over(
    levels: usize,
    elements: &[Placed<'_>],
    one: &dyn Fn(&[Placed<'_>]) -> Node,
) -> Node {
    if levels == 0 {
        return one(elements);
    }
    let longest = elements.iter().map(|(_, e)| e.children().len()).max().unwrap_or(0);
    Node::List(
        (0..longest)
            .map(|j| {
                let there: Vec<Placed<'_>> = elements
                    .iter()
                    .filter_map(|(at, e)| e.children().get(j).map(|e| (*at, e)))
                    .collect();
                reduce_over(levels - 1, &there, one)
            })
            .collect(),
    )
}

/// Reduces rows of `levels` levels of lists along the axis `axis`.
fn reduce_along(
    rows: &[Node],
    levels: usize,
    axis: usize,
    one: &dyn Fn(&[Placed<'_>]) -> Node,
) -> Vec<Node> {
    if axis == 0 {
        return match reduce_over(levels, &place_values(rows), one) {
            Node::List(rows) if levels > 0 => rows,
            value => vec![value],
        };
    }
    let list = &mut |l: &Node| match l {
        Node::Null => Node::Null,
        l => reduce_over(levels - axis, &place_values(l.children()), one),
    };
    rows.iter().map(|r| r.map_at(axis - 1, list)).collect()
}

/// Reduces all leaves of each row to one value.
fn reduce_whole(rows: &[Node], levels: usize, one: &dyn Fn(&[Placed<'_>]) -> Node) -> Vec<Node> {
    rows.iter()
        .map(|row| match row {
            Node::Null if levels > 0 => Node::Null,
            row => one(&place_values(&row.leaves_below(levels))),
        })
        .collect()
}

proptest! {
    #![proptest_config(configure_cases(120))]

    #[test]
    fn reductions_along_every_axis_equal_the_reference(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&LEAVES, &mut rng).clone();
        let float = leaf.is_floating();
        let mut spec = Spec::new(levels, leaf.clone());
        spec.reach = 3;
        spec.odd_floats = true;
        spec.null_leaves = seed % 2 == 0;
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();
        for how in ALL {
            let Ok(out) = how.output_type(&leaf) else {
                prop_assert!(leaf == DataType::Utf8 && reduce(&a, how, None).is_err(), "{how:?} of {leaf}");
                continue;
            };
            // This test does not cover overflow of float16 and rounding of long products.
            if how == Reduction::Prod && (float || case.rows.iter().any(|r| r.leaves().len() > 30)) {
                continue;
            }
            let one = |values: &[Placed<'_>]| reduce_list(how, values, float);
            // A product over all rows may overflow, so that axis 0 is omitted.
            let first = usize::from(how == Reduction::Prod);
            for axis in first..=levels {
                let found = reduce(&a, how, Some(axis as i64)).unwrap();
                prop_assert_eq!(found.leaf_type(), &out);
                assert_alike(&decode_ragged(&found), &reduce_along(&case.rows, levels, axis, &one));
            }
            let found = reduce(&a, how, None).unwrap();
            assert_alike(&decode_ragged(&found), &reduce_whole(&case.rows, levels, &one));
        }
    }

    #[test]
    fn quantiles_equal_those_of_numpy(seed: u64, levels in 0usize..4) {
        let mut rng = seed_random(seed);
        let types = [DataType::Int16, DataType::Float32, DataType::Float64, DataType::Boolean];
        let leaf = one_of(&types, &mut rng).clone();
        let mut spec = Spec::new(levels, leaf);
        spec.odd_floats = seed % 3 == 0;
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();
        let qs = [0.0, 0.3, 0.5, 0.95, 1.0];
        let of = |values: &[Placed<'_>], q| {
            let floats: Vec<f64> = values.iter().filter_map(|(_, v)| v.float()).collect();
            quantile_of(&floats, q)
        };
        for axis in (0..=levels).map(Some).chain([None]) {
            let expected = |one: &dyn Fn(&[Placed<'_>]) -> Node| match axis {
                Some(axis) => reduce_along(&case.rows, levels, axis, one),
                None => reduce_whole(&case.rows, levels, one),
            };
            let axis = axis.map(|a| a as i64);
            for q in qs {
                let found = reduce::quantile(&a, q, axis).unwrap();
                assert_alike(&decode_ragged(&found), &expected(&|values| of(values, q)));
            }
            let found = reduce::quantiles(&a, &qs, axis).unwrap();
            let all = |values: &[Placed<'_>]| Node::List(qs.iter().map(|q| of(values, *q)).collect());
            assert_alike(&decode_ragged(&found), &expected(&all));
        }
    }

    #[test]
    fn long_lists_with_nulls_reduce_like_the_reference(seed: u64, n in 0usize..700, gap in 1usize..200) {
        // Covers 64 valid values in a row, words of the null bitmap with nulls, and every length of
        // the last word.
        let mut rng = seed_random(seed);
        let spec = Spec { null_leaves: false, odd_floats: seed % 3 == 0, ..Spec::new(0, DataType::Float64) };
        let values: Vec<Node> = (0..n + 9).map(|_| torture_leaf(&spec, &mut rng)).collect();
        let valid = |i: usize| i % gap != gap - 1 || gap > 150;
        let leaves: Float32Array = values.iter().enumerate()
            .map(|(i, v)| valid(i).then(|| v.float().unwrap() as f32)).collect();
        let lengths = [3, n, 6];
        let a = RaggedArray::try_new(
            3, vec![Offsets::from_lengths(lengths).unwrap().into()], Arc::new(leaves),
        ).unwrap();
        let nodes: Vec<Node> = values.into_iter().enumerate()
            .map(|(i, v)| if valid(i) { v } else { Node::Null }).collect();
        for how in ALL.into_iter().filter(|how| *how != Reduction::Prod) {
            let expected = [&nodes[..3], &nodes[3..3 + n], &nodes[3 + n..]]
                .map(|v| reduce_list(how, &place_values(v), true));
            assert_alike(&decode_ragged(&reduce(&a, how, Some(1)).unwrap()), &expected);
        }
    }
}

fn torture_leaf(spec: &Spec, rng: &mut crate::common::torture::Random) -> Node {
    crate::common::torture::draw_tree(spec, &[], rng)
}

/// Checks sums, minima and maxima of lists of every length up to several words of the null bitmap.
/// Leaves after each list and under nulls are `loud`: counting one would change any result.
fn behind_lists_counts_nothing<T>(loud: [T::Native; 2], number: fn(i8) -> T::Native)
where
    T: ArrowPrimitiveType,
{
    const LONGEST: usize = 200;
    let value = |n: usize, i: usize| ((n * 31 + i * 17) % 100) as i8;
    for every in [usize::MAX, 10, 2, 1] {
        let there = |i: usize| i % every != every - 1;
        let (mut lengths, mut leaves, mut valid) = (vec![], vec![], vec![]);
        for n in 0..=LONGEST {
            lengths.extend([n, 2 * LONGEST]);
            for i in 0..n {
                leaves.push(if there(i) { number(value(n, i)) } else { loud[i % 2] });
                valid.push(there(i));
            }
            leaves.extend((0..2 * LONGEST).map(|i| loud[i % 2]));
            valid.resize(leaves.len(), true);
        }
        let leaves = PrimitiveArray::<T>::new(leaves.into(), Some(valid.into()));
        let a = make_lists(&lengths, Arc::new(leaves));
        let found = |how| {
            let found = cast(reduce(&a, how, Some(1)).unwrap().leaves(), &DataType::Float64);
            found.unwrap().as_primitive::<Float64Type>().iter().step_by(2).collect::<Vec<_>>()
        };
        let expected = |how: fn(&[i8]) -> Option<f64>| -> Vec<Option<f64>> {
            let list = |n| (0..n).filter(|i| there(*i)).map(|i| value(n, i)).collect::<Vec<i8>>();
            (0..=LONGEST).map(|n| how(&list(n))).collect()
        };
        let sums = expected(|v| Some(v.iter().map(|v| f64::from(*v)).sum()));
        assert_eq!(found(Reduction::Sum), sums, "{} {every}", T::DATA_TYPE);
        let least = expected(|v| v.iter().min().map(|v| f64::from(*v)));
        assert_eq!(found(Reduction::Min), least, "{} {every}", T::DATA_TYPE);
        let most = expected(|v| v.iter().max().map(|v| f64::from(*v)));
        assert_eq!(found(Reduction::Max), most, "{} {every}", T::DATA_TYPE);
    }
}

#[test]
fn leaves_after_a_list_or_under_a_null_are_not_counted() {
    behind_lists_counts_nothing::<Int8Type>([i8::MIN, i8::MAX], |v| v);
    behind_lists_counts_nothing::<UInt16Type>([0, u16::MAX], |v| v.unsigned_abs().into());
    behind_lists_counts_nothing::<Int32Type>([i32::MIN, i32::MAX], i32::from);
    behind_lists_counts_nothing::<Int64Type>([-1 << 40, 1 << 40], i64::from);
    behind_lists_counts_nothing::<Float32Type>([f32::NAN, f32::INFINITY], f32::from);
    behind_lists_counts_nothing::<Float64Type>([f64::NEG_INFINITY, f64::NAN], f64::from);
}

/// Reduces across none, one or many lists of a row: short lists next to long ones, lists that end
/// at the last leaf, with and without nulls.
#[test]
fn reductions_across_lists_of_different_lengths_equal_the_reference() {
    for every in [usize::MAX, 7, 2, 1] {
        let there = |i: usize| i % every != every - 1;
        for longest in [0usize, 1, 8, 31, 32, 33, 64, 65, 200] {
            let lengths: Vec<Vec<usize>> = (0..12usize)
                .map(|row| {
                    (0..row * row % 23).map(|i| (row * 13 + i * 29) % (longest + 1)).collect()
                })
                .chain([vec![longest; 3]])
                .collect();
            let all: Vec<usize> = lengths.iter().flatten().copied().collect();
            let leaves = all.iter().sum::<usize>();
            let value = |i: usize| i32::try_from(i * 37 % 1009).unwrap();
            // Null leaves are NaN, so that counting one would change the result.
            let floats = (0..leaves).map(|i| if there(i) { value(i) as f32 } else { f32::NAN });
            let floats = PrimitiveArray::<Float32Type>::new(
                floats.collect(),
                Some((0..leaves).map(there).collect::<Vec<_>>().into()),
            );
            let integers = cast(&floats, &DataType::Int32).unwrap();
            let outer = Offsets::from_lengths(lengths.iter().map(Vec::len)).unwrap();
            let axes = vec![outer.into(), Offsets::from_lengths(all).unwrap().into()];
            let array = |leaves| RaggedArray::try_new(lengths.len(), axes.clone(), leaves).unwrap();
            let (floats, integers) = (array(Arc::new(floats)), array(integers));
            // Collects the values at each position of the lists of each row.
            let (mut columns, mut sizes, mut leaf) = (vec![], vec![], 0);
            for row in &lengths {
                let size = row.iter().max().copied().unwrap_or(0);
                let mut places = vec![vec![]; size];
                for n in row {
                    for place in &mut places[..*n] {
                        place.extend(there(leaf).then(|| f64::from(value(leaf))));
                        leaf += 1;
                    }
                }
                sizes.push(size);
                columns.extend(places);
            }
            for how in
                [Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Mean, Reduction::Count]
            {
                let expected: Vec<Option<f64>> = columns
                    .iter()
                    .map(|v| {
                        let sum = v.iter().sum::<f64>();
                        match how {
                            Reduction::Sum => Some(sum),
                            Reduction::Count => Some(v.len() as f64),
                            Reduction::Mean => (!v.is_empty()).then(|| sum / v.len() as f64),
                            Reduction::Max => v.iter().copied().reduce(f64::max),
                            _ => v.iter().copied().reduce(f64::min),
                        }
                    })
                    .collect();
                for a in [&floats, &integers] {
                    let found = reduce(a, how, Some(1)).unwrap();
                    assert_eq!(
                        found.lengths(1).unwrap(),
                        sizes,
                        "{} {every} {longest}",
                        how.name()
                    );
                    let found = cast(found.leaves(), &DataType::Float64).unwrap();
                    let found: Vec<_> = found.as_primitive::<Float64Type>().iter().collect();
                    // The mean of float32 values is rounded to float32.
                    let near = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
                        (Some(a), Some(b)) => (a - b).abs() <= b.abs() * 1e-7,
                        (a, b) => a == b,
                    };
                    assert_eq!(found.len(), expected.len());
                    for (place, (a, b)) in found.iter().zip(&expected).enumerate() {
                        assert!(
                            near(a, b),
                            "{} {every} {longest} {place}: {a:?}, {b:?}",
                            how.name()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_sum_overflows_only_if_the_result_does() {
    let a = make_lists(&[1, 3], Arc::new(Int64Array::from(vec![1, i64::MAX, 5, -5])));
    let sums = reduce::sum(&a, Some(1)).unwrap();
    assert_eq!(decode_ragged(&sums), [Node::Int(1), Node::Int(i64::MAX)]);
    let a = make_lists(&[1, 2], Arc::new(UInt64Array::from(vec![1, u64::MAX, 1])));
    for (how, axis) in [(Reduction::Sum, Some(1)), (Reduction::Sum, None)] {
        match reduce(&a, how, axis) {
            Err(Error::Overflow(what)) => assert_eq!(what, "sum of list 1 of axis 1"),
            other => panic!("{other:?}"),
        }
    }
    let means = reduce::mean(&a, None).unwrap();
    let expected = (u64::MAX as f64 + 1.0) / 2.0;
    assert_eq!(means.leaves().as_primitive::<Float64Type>().values(), &[1.0, expected]);
    let big = i64::from(u32::MAX);
    let a = make_lists(&[3, 4], Arc::new(Int64Array::from(vec![big, big, big, big, big, big, 0])));
    assert!(matches!(reduce::prod(&a, None), Err(Error::Overflow(_))));
    let products = reduce::prod(&a.slice(1, 1).unwrap(), None).unwrap();
    assert_eq!(decode_ragged(&products), [Node::Int(0)]);
    // A sum along an outer axis overflows, too.
    let two = RaggedArray::try_new(
        1,
        vec![
            Offsets::from_lengths([2]).unwrap().into(),
            Offsets::from_lengths([1, 1]).unwrap().into(),
        ],
        Arc::new(Int64Array::from(vec![i64::MAX, 1])),
    );
    assert!(matches!(reduce::sum(&two.unwrap(), Some(1)), Err(Error::Overflow(_))));
}

#[test]
fn float32_values_are_added_in_64_bits() {
    let n = 3_000_000;
    let a = make_lists(&[n], Arc::new(Float32Array::from(vec![0.1f32; n])));
    let sum = reduce::sum(&a, None).unwrap();
    let expected = (0.1f32 as f64 * n as f64) as f32;
    assert_eq!(sum.leaves().as_primitive::<Float32Type>().value(0), expected);
}

#[test]
fn fixed_size_lists_are_reduced_and_times_have_a_maximum_but_no_sum() {
    let times =
        arrow::array::TimestampMicrosecondArray::from(vec![5, 3, 9, 1]).with_timezone("UTC");
    let a = RaggedArray::try_new(
        2,
        vec![Layout::Uniform { size: 2, lists: 2 }.into()],
        Arc::new(times),
    )
    .unwrap();
    let largest = reduce::max(&a, Some(-1)).unwrap();
    let expected = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    assert_eq!(largest.leaf_type(), &expected);
    assert_eq!(decode_ragged(&largest), [Node::Int(5), Node::Int(9)]);
    let refused = reduce::sum(&a, None).unwrap_err().to_string();
    assert!(refused.starts_with("sum: expected numbers, booleans or durations"), "{refused}");
    let durations = arrow::array::DurationSecondArray::from(vec![1, 2, 3, 4]);
    let sums = reduce::sum(&a.with_leaves(Arc::new(durations)).unwrap(), None).unwrap();
    assert_eq!(sums.leaf_type(), &DataType::Duration(TimeUnit::Second));
    assert_eq!(sums.leaves().len(), 2);
}

#[test]
fn durations_have_exact_means_and_quantiles() {
    let far = (1 << 60) + 1;
    let values = [Some(1), Some(2), None, Some(-1), Some(-2), Some(far), Some(far + 1), None];
    let leaves = arrow::array::DurationNanosecondArray::from(values.to_vec());
    let a = make_lists(&[2, 3, 2, 1, 0], Arc::new(leaves));
    let unit = DataType::Duration(TimeUnit::Nanosecond);
    let check = |found: &RaggedArray, expected: &[Option<i64>]| {
        assert_eq!(found.leaf_type(), &unit);
        let numbers = cast(found.leaves(), &DataType::Int64).unwrap();
        assert_eq!(numbers.as_primitive::<Int64Type>(), &Int64Array::from(expected.to_vec()));
    };
    // A mean that ends in one half is rounded away from zero, a quantile upwards.
    let mean = reduce::mean(&a, None).unwrap();
    check(&mean, &[Some(2), Some(-2), Some(far + 1), None, None]);
    let median = reduce::median(&a, Some(1)).unwrap();
    check(&median, &[Some(2), Some(-1), Some(far + 1), None, None]);
    let quarter = reduce::quantile(&a, 0.25, None).unwrap();
    check(&quarter, &[Some(1), Some(-2), Some(far), None, None]);
    let ends = reduce::quantiles(&a, &[0.0, 1.0], None).unwrap();
    let expected = [1, 2, -2, -1, far, far + 1].map(Some).into_iter().chain([None; 4]);
    check(&ends, &expected.collect::<Vec<_>>());
    // Along axis 0, the lists have 1 and `far` at the first position, 2, -1 and `far + 1` at the
    // second, and -2 at the third.
    let across = reduce::mean(&a, Some(0)).unwrap();
    check(&across, &[Some(i64::midpoint(1, far)), Some((far + 2) / 3), Some(-2)]);
    assert!(reduce(&a, Reduction::Std { ddof: 1 }, None).is_err());
}

#[test]
fn leaves_of_type_null_and_dictionaries_are_reduced() {
    let nothing = make_lists(&[2, 0], Arc::new(arrow::array::NullArray::new(2)));
    assert_eq!(decode_ragged(&reduce::sum(&nothing, None).unwrap()), [Node::Int(0), Node::Int(0)]);
    let mean = reduce::mean(&nothing, Some(1)).unwrap();
    assert_eq!(mean.leaf_type(), &DataType::Float64);
    assert_eq!(decode_ragged(&mean), [Node::Null, Node::Null]);
    let least = reduce::min(&nothing, None).unwrap();
    assert_eq!((least.leaf_type(), least.leaves().len()), (&DataType::Null, 2));

    let keys = arrow::array::UInt8Array::from(vec![Some(1), Some(0), None, Some(1)]);
    let values = Arc::new(Int64Array::from(vec![5, 7]));
    let tagged = arrow::array::DictionaryArray::new(keys, values);
    let a = make_lists(&[3, 1], Arc::new(tagged));
    assert_eq!(decode_ragged(&reduce::sum(&a, None).unwrap()), [Node::Int(12), Node::Int(7)]);
    assert_eq!(decode_ragged(&reduce::min(&a, None).unwrap()), [Node::Int(5), Node::Int(7)]);
    assert_eq!(reduce::min(&a, None).unwrap().leaf_type(), &DataType::Int64);
}

proptest! {
    #![proptest_config(configure_cases(150))]

    #[test]
    fn reduce_where_equals_filter_and_reduce(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let types = [DataType::Int16, DataType::Float32, DataType::Utf8, DataType::Boolean];
        let leaf = one_of(&types, &mut rng).clone();
        let mut spec = Spec::new(levels, leaf.clone());
        spec.odd_floats = true;
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();
        let mask = draw_mask(&case.rows, rng.random_range(1..=levels), &mut rng);
        for how in [
            Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Count, Reduction::Size,
            Reduction::Last, Reduction::Nunique, Reduction::Median, Reduction::Any,
        ] {
            if how.output_type(&leaf).is_err() {
                continue;
            }
            // A mask of outer levels removes whole lists together with their results along axis -1.
            // Therefore, axis -1 is compared only for masks of all levels.
            let axes = if mask.axes().len() == levels { vec![None, Some(-1)] } else { vec![None] };
            for axis in axes {
                let found = reduce::reduce_where(&a, &mask, how, axis).unwrap();
                let expected = reduce(&filter(&a, &mask).unwrap(), how, axis).unwrap();
                prop_assert_eq!(found.leaf_type(), expected.leaf_type());
                assert_alike(&decode_ragged(&found), &decode_ragged(&expected));
            }
        }
    }
}

#[test]
fn masks_that_are_not_boolean_are_refused() {
    let a = make_lists(&[2, 1], Arc::new(Int64Array::from(vec![1; 3])));
    assert!(reduce::reduce_where(&a, &a, Reduction::Sum, None).is_err());
}
