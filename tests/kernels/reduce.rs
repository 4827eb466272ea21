//! Sum, product, mean, minimum, maximum.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, Float32Type, Float64Type, TimeUnit};
use proptest::prelude::*;
use serrate::Error;
use serrate::array::{Layout, Offsets, RaggedArray};
use serrate::kernels::reduce::{self, Reduction, reduce};

use crate::cases;
use crate::common::torture::{Node, Spec, assert_alike, meaning, one_of, random, torture};

const ALL: [Reduction; 5] =
    [Reduction::Sum, Reduction::Prod, Reduction::Mean, Reduction::Min, Reduction::Max];

/// One value of the leaves `values`, nulls among them.
fn one(how: Reduction, values: &[Node], float: bool) -> Node {
    let values: Vec<&Node> = values.iter().filter(|v| !v.is_null()).collect();
    let floats: Vec<f64> = values.iter().filter_map(|v| v.float()).collect();
    let ints = || values.iter().filter_map(|v| v.int());
    let better = |a: f64, b: f64| {
        if a.is_nan() || b.is_nan() {
            f64::NAN
        } else if how == Reduction::Max {
            a.max(b)
        } else {
            a.min(b)
        }
    };
    match how {
        Reduction::Sum if float => Node::Float(floats.iter().sum()),
        Reduction::Prod if float => Node::Float(floats.iter().product()),
        Reduction::Sum => Node::Int(ints().sum()),
        Reduction::Prod => Node::Int(ints().product()),
        _ if values.is_empty() => Node::Null,
        Reduction::Mean => Node::Float(floats.iter().sum::<f64>() / floats.len() as f64),
        _ if float => Node::Float(floats.iter().copied().reduce(better).unwrap()),
        _ => {
            let key = |n: &Node| match n {
                Node::Text(t) => (0, t.clone()),
                n => (n.int().unwrap(), String::new()),
            };
            let best = if how == Reduction::Max {
                values.iter().max_by_key(|n| key(n))
            } else {
                values.iter().min_by_key(|n| key(n))
            };
            (**best.unwrap()).clone()
        }
    }
}

/// Elements laid over one another, `levels` levels of lists each.
fn over(how: Reduction, elements: &[&Node], levels: usize, float: bool) -> Node {
    if levels == 0 {
        let values: Vec<Node> = elements.iter().map(|n| (*n).clone()).collect();
        return one(how, &values, float);
    }
    let longest = elements.iter().map(|e| e.children().len()).max().unwrap_or(0);
    Node::List(
        (0..longest)
            .map(|j| {
                let there: Vec<&Node> =
                    elements.iter().filter_map(|e| e.children().get(j)).collect();
                over(how, &there, levels - 1, float)
            })
            .collect(),
    )
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn along_every_axis(seed: u64, levels in 1usize..4) {
        let mut rng = random(seed);
        let types = [
            DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64, DataType::UInt8,
            DataType::UInt16, DataType::UInt32, DataType::UInt64, DataType::Float16,
            DataType::Float32, DataType::Float64, DataType::Boolean, DataType::Utf8,
        ];
        let leaf = one_of(&types, &mut rng).clone();
        let float = leaf.is_floating();
        let mut spec = Spec::new(levels, leaf.clone());
        spec.reach = 3;
        spec.odd_floats = true;
        spec.null_leaves = seed % 2 == 0;
        let case = torture(&spec, &mut rng);
        let a = case.ragged();
        for how in ALL {
            let extreme = matches!(how, Reduction::Min | Reduction::Max);
            if leaf == DataType::Utf8 && !extreme {
                prop_assert!(reduce(&a, how, None).is_err());
                continue;
            }
            // What 16 bits overflow to, and products of many, are not the point here.
            if how == Reduction::Prod && (float || case.rows.iter().any(|r| r.leaves().len() > 30)) {
                continue;
            }
            for axis in 1..=levels {
                let found = reduce(&a, how, Some(axis as i64)).unwrap();
                prop_assert_eq!(found.leaf_type(), &how.output_type(&leaf).unwrap());
                let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(axis - 1, &mut |l| {
                    if l.is_null() { return Node::Null; }
                    let elements: Vec<&Node> = l.children().iter().collect();
                    over(how, &elements, levels - axis, float)
                })).collect();
                assert_alike(&meaning(&found), &expected);
            }
            let expected: Vec<Node> = case.rows.iter().map(|r| match r {
                Node::Null => Node::Null,
                r => one(how, &r.leaves_below(levels), float),
            }).collect();
            assert_alike(&meaning(&reduce(&a, how, None).unwrap()), &expected);
        }
    }

    #[test]
    fn long_lists_with_gaps(seed: u64, n in 0usize..700, gap in 1usize..200) {
        // Runs of 64 valid values, words with gaps, remainders of every length.
        let mut rng = random(seed);
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
        for how in [Reduction::Sum, Reduction::Mean, Reduction::Min, Reduction::Max] {
            let expected = [&nodes[..3], &nodes[3..3 + n], &nodes[3 + n..]].map(|v| one(how, v, true));
            assert_alike(&meaning(&reduce(&a, how, Some(1)).unwrap()), &expected);
        }
    }
}

fn torture_leaf(spec: &Spec, rng: &mut crate::common::torture::Random) -> Node {
    crate::common::torture::tree(spec, &[], rng)
}

fn rows(lengths: &[usize], leaves: ArrayRef) -> RaggedArray {
    let axis = Offsets::from_lengths(lengths.iter().copied()).unwrap().into();
    RaggedArray::try_new(lengths.len(), vec![axis], leaves).unwrap()
}

#[test]
fn integers_overflow_only_when_the_result_does() {
    let a = rows(&[1, 3], Arc::new(Int64Array::from(vec![1, i64::MAX, 5, -5])));
    let sums = reduce::sum(&a, Some(1)).unwrap();
    assert_eq!(meaning(&sums), [Node::Int(1), Node::Int(i64::MAX)]);
    let a = rows(&[1, 2], Arc::new(UInt64Array::from(vec![1, u64::MAX, 1])));
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
    let a = rows(&[3, 4], Arc::new(Int64Array::from(vec![big, big, big, big, big, big, 0])));
    assert!(matches!(reduce::prod(&a, None), Err(Error::Overflow(_))));
    let products = reduce::prod(&a.slice(1, 1).unwrap(), None).unwrap();
    assert_eq!(meaning(&products), [Node::Int(0)]);
    // Along an outer axis, too.
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
fn float32_adds_up_in_64_bits() {
    let n = 3_000_000;
    let a = rows(&[n], Arc::new(Float32Array::from(vec![0.1f32; n])));
    let sum = reduce::sum(&a, None).unwrap();
    let expected = (0.1f32 as f64 * n as f64) as f32;
    assert_eq!(sum.leaves().as_primitive::<Float32Type>().value(0), expected);
}

#[test]
fn uniform_axes_reduce_and_times_have_extremes() {
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
    assert_eq!(meaning(&largest), [Node::Int(5), Node::Int(9)]);
    let refused = reduce::sum(&a, None).unwrap_err().to_string();
    assert!(refused.starts_with("sum: expected numbers, booleans or durations"), "{refused}");
    let durations = arrow::array::DurationSecondArray::from(vec![1, 2, 3, 4]);
    let sums = reduce::sum(&a.with_leaves(Arc::new(durations)).unwrap(), None).unwrap();
    assert_eq!(sums.leaf_type(), &DataType::Duration(TimeUnit::Second));
    assert_eq!(sums.leaves().len(), 2);
}

#[test]
fn leaves_without_a_type_and_dictionaries_reduce() {
    let nothing = rows(&[2, 0], Arc::new(arrow::array::NullArray::new(2)));
    assert_eq!(meaning(&reduce::sum(&nothing, None).unwrap()), [Node::Int(0), Node::Int(0)]);
    let mean = reduce::mean(&nothing, Some(1)).unwrap();
    assert_eq!(mean.leaf_type(), &DataType::Float64);
    assert_eq!(meaning(&mean), [Node::Null, Node::Null]);
    let least = reduce::min(&nothing, None).unwrap();
    assert_eq!((least.leaf_type(), least.leaves().len()), (&DataType::Null, 2));

    let keys = arrow::array::UInt8Array::from(vec![Some(1), Some(0), None, Some(1)]);
    let values = Arc::new(Int64Array::from(vec![5, 7]));
    let tagged = arrow::array::DictionaryArray::new(keys, values);
    let a = rows(&[3, 1], Arc::new(tagged));
    assert_eq!(meaning(&reduce::sum(&a, None).unwrap()), [Node::Int(12), Node::Int(7)]);
    assert_eq!(meaning(&reduce::min(&a, None).unwrap()), [Node::Int(5), Node::Int(7)]);
    assert_eq!(reduce::min(&a, None).unwrap().leaf_type(), &DataType::Int64);
}
