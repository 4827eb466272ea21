//! Elementwise functions: repeated axes, functions of one value, selection, softmax.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, Int64Array, UInt8Array, UInt64Array,
};
use arrow::datatypes::{DataType, Float32Type};
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::{Layout, Offsets, RaggedArray};
use serrate::kernels::elementwise::{Op, Operand, OperandType, Types, binary};
use serrate::kernels::normalize::{log_softmax, normalize, softmax};
use serrate::kernels::select::{cast, common_type, fill_null, where_};
use serrate::kernels::unary::{Unary, round, unary};

use crate::cases;
use crate::common::torture::{
    Node, Random, Spec, assert_alike, meaning, one_of, plain, random, torture,
};

/// Draws rows whose lists at one level of a row have the same length; axes in `ones` have size 1.
fn rows(lengths: &[Vec<usize>], ones: &[bool], levels: usize, rng: &mut Random) -> Vec<Node> {
    fn list(row: &[usize], ones: &[bool], levels: usize, rng: &mut Random) -> Node {
        if levels == 0 {
            return match rng.random_range(0..7) {
                0 => Node::Null,
                _ => Node::Int(rng.random_range(-9..9)),
            };
        }
        if rng.random_range(0..15) == 0 {
            return Node::Null;
        }
        let n = if ones[0] { 1 } else { row[0] };
        Node::List((0..n).map(|_| list(&row[1..], &ones[1..], levels - 1, rng)).collect())
    }
    lengths.iter().map(|row| list(row, ones, levels, rng)).collect()
}

fn together(a: &Node, b: &Node, left: usize, right: usize) -> Node {
    match (left, right) {
        (0, 0) => match (a, b) {
            (Node::Int(a), Node::Int(b)) => Node::Int(a - b),
            _ => Node::Null,
        },
        (0, _) if b.is_null() => Node::Null,
        (0, _) => Node::List(b.children().iter().map(|b| together(a, b, 0, right - 1)).collect()),
        (_, 0) if a.is_null() => Node::Null,
        (_, 0) => Node::List(a.children().iter().map(|a| together(a, b, left - 1, 0)).collect()),
        _ if a.is_null() || b.is_null() => Node::Null,
        _ => {
            let (x, y) = (a.children(), b.children());
            let n = if x.len() == 1 { y.len() } else { x.len() };
            let of = |v: &[Node], i: usize| v[if v.len() == 1 { 0 } else { i }].clone();
            let pair = |i| together(&of(x, i), &of(y, i), left - 1, right - 1);
            Node::List((0..n).map(pair).collect())
        }
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn axes_of_size_one_are_repeated(seed: u64, left in 0usize..4, right in 0usize..4) {
        let mut rng = random(seed);
        let lengths: Vec<Vec<usize>> = (0..rng.random_range(0..5))
            .map(|_| (0..3).map(|_| rng.random_range(0..4)).collect()).collect();
        let mut ones = || -> Vec<bool> { (0..3).map(|_| rng.random_range(0..3) == 0).collect() };
        let (one_left, one_right) = (ones(), ones());
        let a = rows(&lengths, &one_left, left, &mut rng);
        let b = rows(&lengths, &one_right, right, &mut rng);
        let x = plain(left, &DataType::Int64, &a);
        let y = plain(right, &DataType::Int64, &b);
        let found = binary(Op::Sub, Operand::Array(&x), Operand::Array(&y)).unwrap();
        let expected: Vec<Node> =
            a.iter().zip(&b).map(|(a, b)| together(a, b, left, right)).collect();
        assert_alike(&meaning(&found), &expected);
    }

    #[test]
    fn functions_of_one_number(seed: u64, levels in 1usize..4) {
        let mut rng = random(seed);
        let leaf = one_of(&[DataType::Int16, DataType::Float32, DataType::Float64], &mut rng);
        let spec = Spec { odd_floats: true, ..Spec::new(levels, leaf.clone()) };
        let case = torture(&spec, &mut rng);
        let a = case.ragged();
        type Reference = fn(f64) -> f64;
        let all: [(Unary, Reference, bool); 11] = [
            (Unary::Neg, |x| -x, true),
            (Unary::Abs, f64::abs, true),
            (Unary::Sign, |x| if x == 0.0 || x.is_nan() { x } else { x.signum() }, true),
            (Unary::Ceil, f64::ceil, true),
            (Unary::Floor, f64::floor, true),
            (Unary::Round(0), f64::round_ties_even, true),
            (Unary::Sqrt, f64::sqrt, false),
            (Unary::Exp, f64::exp, false),
            (Unary::Ln, f64::ln, false),
            (Unary::Log2, f64::log2, false),
            (Unary::Log10, f64::log10, false),
        ];
        for (function, reference, keeps) in all {
            let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels, &mut |l| {
                let Some(x) = l.float() else { return Node::Null };
                let y = reference(x);
                if keeps && leaf.is_integer() { Node::Int(y as i64) } else { Node::Float(y) }
            })).collect();
            assert_alike(&meaning(&unary(function, &a).unwrap()), &expected);
            let out = unary(function, &a).unwrap();
            prop_assert_eq!(out.leaf_type(), &function.output_type(leaf).unwrap());
            shares_lists(&out, &a);
        }
        let nulls: Vec<Node> = case.rows.iter()
            .map(|r| r.map_at(levels, &mut |l| Node::Bool(l.is_null()))).collect();
        assert_alike(&meaning(&unary(Unary::IsNull, &a).unwrap()), &nulls);
        let nans: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels, &mut |l| match l {
            Node::Null => Node::Null,
            l => Node::Bool(l.float().unwrap().is_nan()),
        })).collect();
        assert_alike(&meaning(&unary(Unary::IsNan, &a).unwrap()), &nans);
    }

    #[test]
    fn one_of_two(seed: u64, levels in 1usize..4, fewer in 0usize..4) {
        let mut rng = random(seed);
        let leaf = one_of(&[DataType::Int16, DataType::Utf8, DataType::Float32], &mut rng).clone();
        let spec = Spec { null_lists: false, ..Spec::new(levels, leaf.clone()) };
        let case = torture(&spec, &mut rng);
        let a = case.ragged();
        let fewer = fewer.min(levels);
        let coin = |_: &Node, rng: &mut Random| match rng.random_range(0..5) {
            0 => Node::Null,
            n => Node::Bool(n > 2),
        };
        let masks: Vec<Node> = case.rows.iter()
            .map(|r| r.map_at(fewer, &mut |n| coin(n, &mut rng))).collect();
        let mask = plain(fewer, &DataType::Boolean, &masks);
        let fill: (Node, ArrayRef) = match &leaf {
            DataType::Utf8 => {
                (Node::Text("x".into()), Arc::new(arrow::array::StringArray::from(vec!["x"])))
            }
            DataType::Int16 => (Node::Int(7), Arc::new(Int64Array::from(vec![7]))),
            _ => (Node::Float(7.0), Arc::new(Int64Array::from(vec![7]))),
        };
        fn choose(mask: &Node, row: &Node, no: &Node, fewer: usize, levels: usize) -> Node {
            match (fewer, levels) {
                (0, 0) => if *mask == Node::Bool(true) { row.clone() } else { no.clone() },
                (0, _) => Node::List(
                    row.children().iter().map(|r| choose(mask, r, no, 0, levels - 1)).collect(),
                ),
                _ => Node::List(mask.children().iter().zip(row.children())
                    .map(|(m, r)| choose(m, r, no, fewer - 1, levels - 1)).collect()),
            }
        }
        let found = where_(&mask, Operand::Array(&a), Operand::Scalar(&fill.1)).unwrap();
        let expected: Vec<Node> = masks.iter().zip(&case.rows)
            .map(|(m, r)| choose(m, r, &fill.0, fewer, levels)).collect();
        assert_alike(&meaning(&found), &expected);
        prop_assert_eq!(found.leaf_type(), &leaf);

        let filled = fill_null(&a, Operand::Scalar(&fill.1)).unwrap();
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels, &mut |n| {
            if n.is_null() { fill.0.clone() } else { n.clone() }
        })).collect();
        assert_alike(&meaning(&filled), &expected);
        shares_lists(&filled, &a);
    }

    #[test]
    fn softmax_and_norms(seed: u64, levels in 1usize..4, axis in 1usize..4) {
        let mut rng = random(seed);
        let axis = axis.min(levels);
        let leaf = one_of(&[DataType::Int16, DataType::Float32, DataType::Float64], &mut rng);
        let case = torture(&Spec { reach: 6, ..Spec::new(levels, leaf.clone()) }, &mut rng);
        let a = case.ragged();
        let at = i64::try_from(axis).unwrap();
        // Groups elements along the axis, at the same position of every deeper axis.
        fn groups(
            node: &Node, path: &[usize], axis: usize, levels: usize, level: usize,
            out: &mut std::collections::BTreeMap<Vec<usize>, Vec<f64>>,
        ) {
            if level == levels {
                if let Some(x) = node.float() {
                    out.entry(path.to_vec()).or_default().push(x);
                }
                return;
            }
            for (i, child) in node.children().iter().enumerate() {
                let mut path = path.to_vec();
                if level + 1 != axis {
                    path.push(i);
                }
                groups(child, &path, axis, levels, level + 1, out);
            }
        }
        fn rewritten(
            node: &Node, path: &[usize], axis: usize, levels: usize, level: usize,
            value: &dyn Fn(&[usize], f64) -> f64,
        ) -> Node {
            if node.is_null() {
                return Node::Null;
            }
            if level == levels {
                return Node::Float(value(path, node.float().unwrap()));
            }
            Node::List(node.children().iter().enumerate().map(|(i, child)| {
                let mut path = path.to_vec();
                if level + 1 != axis {
                    path.push(i);
                }
                rewritten(child, &path, axis, levels, level + 1, value)
            }).collect())
        }
        let mut all = std::collections::BTreeMap::new();
        for (i, row) in case.rows.iter().enumerate() {
            groups(row, &[i], axis, levels, 0, &mut all);
        }
        let norm = |v: &[f64], p: f64| v.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p);
        let sum = |v: &[f64]| {
            let max = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (max, v.iter().map(|x| (x - max).exp()).sum::<f64>())
        };
        let check = |found: RaggedArray, value: &dyn Fn(&[f64], f64) -> f64| {
            let expected: Vec<Node> = case.rows.iter().enumerate().map(|(i, row)| {
                rewritten(row, &[i], axis, levels, 0, &|path, x| value(&all[path], x))
            }).collect();
            assert_alike(&meaning(&found), &expected);
            shares_lists(&found, &a);
        };
        check(softmax(&a, at).unwrap(), &|v, x| (x - sum(v).0).exp() / sum(v).1);
        check(log_softmax(&a, at).unwrap(), &|v, x| x - sum(v).0 - sum(v).1.ln());
        check(normalize(&a, at, 2.0, 1e-12).unwrap(), &|v, x| x / norm(v, 2.0).max(1e-12));
        check(normalize(&a, at, 1.0, 2.0).unwrap(), &|v, x| x / norm(v, 1.0).max(2.0));
        check(normalize(&a, at, 3.0, 1e-12).unwrap(), &|v, x| x / norm(v, 3.0).max(1e-12));
        check(normalize(&a, at, f64::INFINITY, 1e-12).unwrap(), &|v, x| {
            x / v.iter().fold(1e-12, |m: f64, x| m.max(x.abs()))
        });
        #[allow(clippy::cast_precision_loss)]
        check(normalize(&a, at, 0.0, 1e-12).unwrap(), &|v, x| {
            x / (v.iter().filter(|x| **x != 0.0).count() as f64).max(1e-12)
        });
    }
}

#[track_caller]
fn shares_lists(a: &RaggedArray, b: &RaggedArray) {
    for (x, y) in a.axes().iter().zip(b.axes()) {
        match (x.layout(), y.layout()) {
            (Layout::Ragged(x), Layout::Ragged(y)) => assert!(x.ptr_eq(y)),
            (x, y) => assert!(!x.is_ragged() && !y.is_ragged()),
        }
    }
}

fn row(leaves: ArrayRef) -> RaggedArray {
    let axis = Offsets::from_lengths([leaves.len()]).unwrap().into();
    RaggedArray::try_new(1, vec![axis], leaves).unwrap()
}

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

#[test]
fn lists_that_are_shared_stay_shared_through_an_outer_axis_of_one() {
    // [[1, 2], [3]] on both sides: only the side with an axis of size 1 is repeated.
    let axes = vec![Offsets::from_lengths([2, 1]).unwrap().into()];
    let a = RaggedArray::try_new(2, axes, ints(&[1, 2, 3])).unwrap();
    let one = vec![Layout::Uniform { size: 1, lists: 2 }.into()];
    let b = RaggedArray::try_new(2, one, ints(&[10, 20])).unwrap();
    for (x, y) in [(&a, &b), (&b, &a)] {
        let sum = binary(Op::Add, Operand::Array(x), Operand::Array(y)).unwrap();
        assert_eq!(sum.leaves().as_ref(), ints(&[11, 12, 23]).as_ref());
        shares_lists(&sum, &a);
    }
    // Each list of one element is repeated, independently of its neighbours.
    let axes = vec![Offsets::from_lengths([1, 2]).unwrap().into()];
    let c = RaggedArray::try_new(2, axes, ints(&[1, 2, 3])).unwrap();
    let sum = binary(Op::Add, Operand::Array(&a), Operand::Array(&c)).unwrap();
    assert_eq!(sum.leaves().as_ref(), ints(&[2, 3, 5, 6]).as_ref());
    assert_eq!(sum.lengths(1).unwrap(), [2, 2]);
    let axes = vec![Offsets::from_lengths([3, 1]).unwrap().into()];
    let d = RaggedArray::try_new(2, axes, ints(&[1, 2, 3, 4])).unwrap();
    let e = binary(Op::Add, Operand::Array(&a), Operand::Array(&d)).unwrap_err().to_string();
    assert!(e.contains("list 0 of axis 1 (row 0) has 2 element(s) on the left and 3"), "{e}");
}

#[test]
fn powers_and_choices() {
    let a = row(ints(&[2, -3, 0, -1]));
    let of = |op, x: &RaggedArray, y: &ArrayRef| binary(op, Operand::Array(x), Operand::Scalar(y));
    assert_eq!(of(Op::Pow, &a, &ints(&[3])).unwrap(), row(ints(&[8, -27, 0, -1])));
    assert_eq!(
        of(Op::Pow, &row(ints(&[1, 0, -1])), &ints(&[i64::MAX])).unwrap(),
        row(ints(&[1, 0, -1]))
    );
    // The greatest unsigned integer is not -1.
    let greatest = row(Arc::new(UInt64Array::from(vec![u64::MAX])));
    let huge: ArrayRef = Arc::new(UInt64Array::from(vec![1u64 << 33]));
    let e = of(Op::Pow, &greatest, &huge).unwrap_err().to_string();
    assert!(e.contains("does not fit the integer type"), "{e}");
    let e = of(Op::Pow, &a, &ints(&[-1])).unwrap_err().to_string();
    assert!(e.contains("negative power"), "{e}");
    assert!(of(Op::Pow, &a, &ints(&[64])).unwrap_err().to_string().contains("wider"));
    let half: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
    let roots = of(Op::Pow, &row(ints(&[4, 9])), &half).unwrap();
    assert_eq!(roots, row(Arc::new(Float64Array::from(vec![2.0, 3.0]))));
    assert_eq!(of(Op::Minimum, &a, &ints(&[-1])).unwrap(), row(ints(&[-1, -3, -1, -1])));
    assert_eq!(of(Op::Maximum, &a, &ints(&[-1])).unwrap(), row(ints(&[2, -1, 0, -1])));
    let null = arrow::array::new_null_array(&DataType::Int64, 1);
    assert_eq!(of(Op::Maximum, &a, &null).unwrap().leaves().null_count(), 4);
    assert_eq!(of(Op::Pow, &a, &null).unwrap().leaves().null_count(), 4);
    let floats = row(Arc::new(Float32Array::from(vec![Some(f32::NAN), Some(2.0), None])));
    let least = of(Op::Minimum, &floats, &ints(&[1])).unwrap();
    let least = least.leaves().as_primitive::<Float32Type>();
    assert!(least.value(0).is_nan() && least.value(1) == 1.0 && least.is_null(2));
    let words: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["b"]));
    let texts = row(Arc::new(arrow::array::StringArray::from(vec![Some("a"), None, Some("c")])));
    let first = of(Op::Minimum, &texts, &words).unwrap();
    let expected = arrow::array::StringArray::from(vec![Some("a"), None, Some("b")]);
    assert_eq!(first.leaves().as_ref(), &expected as &dyn Array);
    let e = Types::new(
        Op::Pow,
        OperandType::Leaves(&DataType::Utf8),
        OperandType::Leaves(&DataType::Utf8),
    );
    assert!(e.is_err());
    assert_eq!(
        common_type(OperandType::Leaves(&DataType::UInt8), OperandType::Literal(&ints(&[300])))
            .unwrap(),
        DataType::UInt16
    );
    let e = common_type(OperandType::Leaves(&DataType::Utf8), OperandType::Leaves(&DataType::Int8));
    assert!(e.unwrap_err().to_string().starts_with("a choice of two values"));
}

#[test]
fn rounding_is_numpys() {
    let of = |v: Vec<f64>, d| {
        let out = round(&row(Arc::new(Float64Array::from(v))), d).unwrap();
        out.leaves().as_primitive::<arrow::datatypes::Float64Type>().values().to_vec()
    };
    assert_eq!(of(vec![0.5, 1.5, -2.5, 2.4], 0), [0.0, 2.0, -2.0, 2.0]);
    assert_eq!(of(vec![1.25, -0.125, 1e300], 1), [1.2, -0.1, 1e300]);
    assert_eq!(of(vec![125.0, 135.0, -149.0], -1), [120.0, 140.0, -150.0]);
    assert_eq!(of(vec![1.5], 400), [1.5]);
    let whole = |v: &[i64], d| round(&row(ints(v)), d).unwrap();
    assert_eq!(whole(&[125, 135, -149, 7], -1), row(ints(&[120, 140, -150, 10])));
    assert_eq!(whole(&[125, i64::MAX], -30), row(ints(&[0, 0])));
    assert_eq!(whole(&[125], 3), row(ints(&[125])));
    let bytes = row(Arc::new(UInt8Array::from(vec![255])));
    assert!(round(&bytes, -1).unwrap_err().to_string().contains("wider"));
    assert!(unary(Unary::Abs, &row(ints(&[i64::MIN]))).is_err());
    assert!(unary(Unary::Neg, &bytes).is_err());
    assert!(
        unary(Unary::Sqrt, &row(Arc::new(arrow::array::StringArray::from(vec!["x"])))).is_err()
    );
}

#[test]
fn casts_refuse_or_give_null() {
    let a = row(ints(&[1, 300]));
    assert!(cast(&a, &DataType::UInt8, false).is_err());
    let b = cast(&a, &DataType::UInt8, true).unwrap();
    assert!(b.leaves().is_valid(0) && b.leaves().is_null(1));
    shares_lists(&b, &a);
}

#[test]
fn softmax_of_odd_values() {
    let of = |v: Vec<f32>| {
        let out = softmax(&row(Arc::new(Float32Array::from(v))), -1).unwrap();
        out.leaves().as_primitive::<Float32Type>().values().to_vec()
    };
    assert_eq!(of(vec![1000.0, 1000.0]), [0.5, 0.5]);
    assert_eq!(of(vec![f32::NEG_INFINITY, 0.0]), [0.0, 1.0]);
    assert!(of(vec![f32::NEG_INFINITY]).iter().all(|v| v.is_nan()));
    assert!(of(vec![f32::NAN, 1.0]).iter().all(|v| v.is_nan()));
    assert!(normalize(&row(ints(&[1])), -1, -1.0, 0.0).is_err());
    assert!(softmax(&row(ints(&[1])), 0).is_err());
}
