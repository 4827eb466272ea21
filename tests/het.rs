//! `HetTensor`, a tensor in which sizes may differ within an axis, compared with nested vectors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
#![allow(unreachable_pub)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float32Array, Int64Array, StringArray};
use arrow::compute::cast as cast_leaves;
use arrow::datatypes::{DataType, Float64Type};
use proptest::prelude::*;
use proptest::test_runner::Config;
use rand::RngExt;
use serrate::array::RaggedArray;
use serrate::dense::{DType, DenseOptions, DenseTensor};
use serrate::het::{DimType, HetTensor, HetValue, NestedTensors, cat};
use serrate::index::Index;
use serrate::kernels::elementwise::BinaryOp;
use serrate::kernels::reduce::Reduction;
use serrate::kernels::unary::UnaryOp;

use common::torture::{Node, Random, Spec, build_plain, decode_ragged, draw_tree, seed_random};

fn cases(cases: u32) -> Config {
    Config { cases, max_shrink_iters: 0, failure_persistence: None, ..Config::default() }
}

/// The elements of a tensor by their coordinates.
type Cells = BTreeMap<Vec<usize>, f64>;

/// Returns the elements `levels` levels below `node`, by their coordinates. Nulls are omitted.
fn read_cells(node: &Node, levels: usize) -> Cells {
    fn walk(node: &Node, levels: usize, at: &mut Vec<usize>, out: &mut Cells) {
        if node.is_null() {
            return;
        }
        if levels == 0 {
            out.insert(at.clone(), node.float().unwrap());
            return;
        }
        for (i, child) in node.children().iter().enumerate() {
            at.push(i);
            walk(child, levels - 1, at, out);
            at.pop();
        }
    }
    let mut out = Cells::new();
    walk(node, levels, &mut Vec::new(), &mut out);
    out
}

/// Returns the elements of a tensor as nested lists. Holes become nulls.
fn to_node(value: &HetValue) -> Node {
    let het = value.clone().into_het().unwrap();
    if het.ndim() == 0 {
        let dense = het.to_dense(&DenseOptions::default()).unwrap();
        let flat = cast_leaves(&dense.to_flat().unwrap(), &DataType::Float64).unwrap();
        let value = flat.as_primitive::<Float64Type>().value(0);
        return if het.has_holes() { Node::Null } else { Node::Float(value) };
    }
    Node::List(decode_ragged(&het.to_ragged().unwrap()))
}

fn read_found(value: &HetValue, levels: usize) -> Cells {
    read_cells(&to_node(value), levels)
}

#[track_caller]
fn assert_same(found: &Cells, expected: &Cells) {
    let keys = |c: &Cells| c.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(found), keys(expected));
    for (at, x) in found {
        let y = expected[at];
        let near = (x - y).abs() <= 1e-4 * (1.0 + y.abs());
        assert!(*x == y || near || (x.is_nan() && y.is_nan()), "at {at:?}: {x}, expected {y}");
    }
}

/// Draws a tensor with `dims` dims, and the same elements as nested lists. With `holes`, elements
/// may be missing.
fn draw_any(dims: usize, holes: bool, leaf: &DataType, rng: &mut Random) -> (HetTensor, Node) {
    let spec = Spec {
        null_leaves: holes,
        null_lists: holes,
        longest: 4,
        reach: 5,
        ..Spec::new(dims - 1, leaf.clone())
    };
    let kinds: Vec<_> = (1..dims)
        .map(|_| match rng.random_range(0..4) {
            0 => serrate::array::ListKind::FixedSizeList(rng.random_range(0..4)),
            _ => serrate::array::ListKind::List,
        })
        .collect();
    let rows: Vec<Node> =
        (0..rng.random_range(0..4)).map(|_| draw_tree(&spec, &kinds, rng)).collect();
    let array = build_plain(dims - 1, leaf, &rows);
    (HetTensor::from_ragged(&array).unwrap(), Node::List(rows))
}

/// Returns for each dim whether it is a batch dim by the definition of the Python library: all
/// positions along it have elements at the same other coordinates.
fn types(cells: &Cells, max_shape: &[usize]) -> Vec<DimType> {
    (0..max_shape.len())
        .map(|dim| {
            let rest = |i: usize| -> BTreeSet<Vec<usize>> {
                let there = cells.keys().filter(|at| at[dim] == i);
                there
                    .map(|at| {
                        at.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, i)| *i).collect()
                    })
                    .collect()
            };
            let alike = (1..max_shape[dim]).all(|i| rest(i) == rest(0));
            if alike { DimType::Batch } else { DimType::Het }
        })
        .collect()
}

fn to_i64(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn shapes_and_kinds_of_dims_follow_from_the_coordinates(seed: u64, dims in 1usize..5, holes: bool) {
        let mut rng = seed_random(seed);
        let (x, rows) = draw_any(dims, holes, &DataType::Int64, &mut rng);
        let cells = read_cells(&rows, dims);
        prop_assert_eq!(x.num_values(), cells.len());
        let expected = types(&cells, &x.max_shape());
        if cells.is_empty() {
            return Ok(());
        }
        prop_assert_eq!(x.dim_types(), expected.clone(), "{}", x);
        let shape: Vec<Option<usize>> = x.max_shape().iter().zip(&expected)
            .map(|(n, t)| (*t == DimType::Batch).then_some(*n)).collect();
        prop_assert_eq!(x.shape(), shape);
        let dense = x.clone().into_value().unwrap().dense().is_some();
        prop_assert_eq!(dense, expected.iter().all(|t| *t == DimType::Batch));
        // The padded tensor has each element at its coordinates, and 0 elsewhere.
        let padded = x.to_dense(&DenseOptions::default()).unwrap();
        let strides = padded.strides();
        let mut flat = vec![0i64; padded.num_elements()];
        for (at, v) in &cells {
            flat[at.iter().zip(&strides).map(|(a, b)| a * b).sum::<usize>()] = *v as i64;
        }
        prop_assert_eq!(padded.as_slice::<i64>().unwrap(), &flat[..]);
    }

    #[test]
    fn a_tensor_is_the_same_after_unbind_and_from_nested(seed: u64, dims in 1usize..5, holes: bool) {
        let mut rng = seed_random(seed);
        let (x, rows) = draw_any(dims, holes, &DataType::Float32, &mut rng);
        let parts = x.unbind().unwrap();
        fn tensors(n: &NestedTensors) -> usize {
            match n {
                NestedTensors::Tensor(_) => 1,
                NestedTensors::List(l) => l.iter().map(tensors).sum(),
                NestedTensors::Hole => 0,
            }
        }
        if tensors(&parts) == 0 {
            prop_assert!(HetTensor::from_nested(&parts).is_err());
            return Ok(());
        }
        let again = HetTensor::from_nested(&parts).unwrap();
        prop_assert_eq!(&to_node(&HetValue::Het(again)), &rows);
    }

    #[test]
    fn reductions_over_any_dim_equal_the_reference(seed: u64, dims in 1usize..5, dim in 0usize..4, holes: bool) {
        let mut rng = seed_random(seed);
        let leaf = if rng.random() { DataType::Int64 } else { DataType::Float32 };
        let (x, rows) = draw_any(dims, holes, &leaf, &mut rng);
        let dim = dim % dims;
        let cells = read_cells(&rows, dims);
        let mut groups: BTreeMap<Vec<usize>, Vec<f64>> = BTreeMap::new();
        for (at, v) in &cells {
            let mut at = at.clone();
            at.remove(dim);
            groups.entry(at).or_default().push(*v);
        }
        type Reference = fn(&[f64]) -> f64;
        let all: [(Reduction, Reference); 5] = [
            (Reduction::Sum, |v| v.iter().sum()),
            (Reduction::Prod, |v| v.iter().product()),
            (Reduction::Mean, |v| v.iter().sum::<f64>() / v.len() as f64),
            (Reduction::Min, |v| v.iter().copied().fold(f64::INFINITY, f64::min)),
            (Reduction::Max, |v| v.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        ];
        for (how, reference) in all {
            let expected: Cells = groups.iter().map(|(at, v)| (at.clone(), reference(v))).collect();
            let negative = to_i64(dim) - if rng.random() { to_i64(dims) } else { 0 };
            let out = x.reduce(how, Some(negative)).unwrap();
            assert_same(&read_found(&out, dims - 1), &expected);
            let values: Vec<f64> = cells.values().copied().collect();
            // A product that is too large is infinite as float32 and an error as int64.
            let wide = reference(&values);
            let expected = match leaf {
                DataType::Float32 => f64::from(wide as f32),
                _ => wide,
            };
            match x.reduce(how, None) {
                Ok(one) => {
                    let one = to_node(&one).float().unwrap();
                    let near = (one - expected).abs() <= 1e-4 * (1.0 + expected.abs());
                    let nothing = one.is_nan() && values.is_empty();
                    prop_assert!(one == expected || near || nothing, "{one} {expected}");
                }
                Err(e) => {
                    let large = leaf == DataType::Int64 && wide.abs() > i64::MAX as f64;
                    prop_assert!(values.is_empty() || large, "{}", e);
                }
            }
        }
        // The sum over a dim is the sum of the slices along it.
        let size = x.max_shape()[dim];
        let mut sum = Cells::new();
        for k in 0..size {
            let mut index = vec![Index::ALL; dim];
            index.push(to_i64(k).into());
            for (at, v) in read_found(&x.index(&index).unwrap(), dims - 1) {
                *sum.entry(at).or_default() += v;
            }
        }
        assert_same(&read_found(&x.sum(Some(to_i64(dim))).unwrap(), dims - 1), &sum);
    }

    #[test]
    fn indexing_any_dims_equals_indexing_nested_lists(seed: u64, dims in 1usize..5, holes: bool) {
        let mut rng = seed_random(seed);
        let (x, rows) = draw_any(dims, holes, &DataType::Int64, &mut rng);
        let max_shape = x.max_shape();
        let mut index: Vec<Index> = Vec::new();
        let mut arrays = 0;
        for size in &max_shape[..rng.random_range(0..=dims)] {
            let n = to_i64(*size);
            index.push(match rng.random_range(0..5) {
                0 if n > 0 => rng.random_range(-n..n).into(),
                1 if n > 0 && arrays == 0 => {
                    arrays += 1;
                    let many = rng.random_range(0..4);
                    (0..many).map(|_| rng.random_range(-n..n)).collect::<Vec<i64>>().into()
                }
                2 if arrays == 0 => {
                    arrays += 1;
                    (0..n).map(|_| rng.random()).collect::<Vec<bool>>().into()
                }
                3 => Index::ALL,
                _ => {
                    let mut end = || (rng.random_range(0..3) > 0).then(|| rng.random_range(-5i64..6));
                    let (start, stop) = (end(), end());
                    let step = [None, Some(1), Some(2), Some(-1), Some(-3)][rng.random_range(0..5)];
                    Index::Slice { start, stop, step }
                }
            });
        }
        fn walk(node: &Node, index: &[Index], left: usize) -> Node {
            if left == 0 || node.is_null() {
                return node.clone();
            }
            let list = node.children();
            let (item, rest) = match index.split_first() {
                Some((item, rest)) => (item.clone(), rest),
                None => (Index::ALL, &[][..]),
            };
            let at = |k: i64| {
                let k = if k < 0 { k + to_i64(list.len()) } else { k };
                usize::try_from(k).ok().and_then(|k| list.get(k)).map_or(Node::Null, |n| walk(n, rest, left - 1))
            };
            match item {
                Index::At(k) => at(k),
                Index::Array(all) => Node::List(all.values().iter().map(|k| at(*k)).collect()),
                Index::Mask(keep) => Node::List(
                    list.iter().zip(keep.values()).filter(|(_, k)| **k).map(|(n, _)| walk(n, rest, left - 1)).collect(),
                ),
                Index::Slice { start, stop, step } => {
                    let n = to_i64(list.len());
                    let step = step.unwrap_or(1);
                    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
                    let clip = |k: i64| (if k < 0 { k + n } else { k }).clamp(low, high);
                    let mut k = start.map_or(if step > 0 { 0 } else { n - 1 }, clip);
                    let stop = stop.map_or(if step > 0 { n } else { -1 }, clip);
                    let mut out = Vec::new();
                    while if step > 0 { k < stop } else { k > stop } {
                        out.push(walk(&list[usize::try_from(k).unwrap()], rest, left - 1));
                        k += step;
                    }
                    Node::List(out)
                }
                other => panic!("{other:?}"),
            }
        }
        let left = dims - index.iter().filter(|i| matches!(i, Index::At(_))).count();
        // Each index applies to what the indices before it select, where it may be out of range.
        match x.index(&index) {
            Ok(out) => {
                assert_same(&read_found(&out, left), &read_cells(&walk(&rows, &index, dims), left))
            }
            Err(e) => {
                let what = e.to_string();
                prop_assert!(what.contains("out of range") || what.contains("the mask has"), "{what}");
                prop_assert!(index.len() > 1);
            }
        }
    }

    #[test]
    fn elementwise_operations_equal_those_by_coordinates(seed: u64, dims in 1usize..5, holes: bool) {
        let mut rng = seed_random(seed);
        let (x, rows) = draw_any(dims, holes, &DataType::Int64, &mut rng);
        let a = read_cells(&rows, dims);
        // A tensor with the same lists and other values, of which some may be missing.
        let other = x.apply(|v| {
            let v = v.as_primitive::<arrow::datatypes::Int64Type>();
            let other = v.iter().enumerate()
                .map(|(k, v)| v.filter(|_| !holes || k % 5 > 0).map(|v| v * 2 + to_i64(k % 3)));
            Ok(Arc::new(other.collect::<Int64Array>()))
        }).unwrap();
        let b = read_found(&other, dims);
        let expected = |f: &dyn Fn(f64, f64) -> f64| -> Cells {
            a.iter().filter_map(|(at, x)| Some((at.clone(), f(*x, *b.get(at)?)))).collect()
        };
        let check = |op: BinaryOp, f: &dyn Fn(f64, f64) -> f64| {
            assert_same(&read_found(&x.binary(op, &other).unwrap(), dims), &expected(f));
            let turned = |x: f64, y: f64| f(y, x);
            assert_same(
                &read_found(&x.binary_reverse(op, &other).unwrap(), dims),
                &expected(&turned),
            );
        };
        check(BinaryOp::Add, &|x, y| x + y);
        check(BinaryOp::Sub, &|x, y| x - y);
        check(BinaryOp::Mul, &|x, y| x * y);
        check(BinaryOp::Minimum, &f64::min);
        check(BinaryOp::Maximum, &f64::max);
        check(BinaryOp::Lt, &|x, y| f64::from(u8::from(x < y)));
        check(BinaryOp::Eq, &|x, y| f64::from(u8::from(x == y)));
        check(BinaryOp::Div, &|x, y| x / y);

        // Broadcasts a dense tensor that has dims of size 1 or lacks leading dims.
        let shape = x.max_shape();
        let small: Vec<usize> = x.uniform_shape().iter().map(|n| match n {
            Some(n) if *n > 0 && rng.random() => *n,
            _ => 1,
        }).collect();
        let drop = rng.random_range(0..=dims);
        let ones = small.iter().take_while(|n| **n == 1).count();
        let small = &small[drop.min(ones)..];
        let count: usize = small.iter().product();
        let values: Vec<f32> = (0..count).map(|k| k as f32 + 0.5).collect();
        let tensor = DenseTensor::from_vec(small, values.clone()).unwrap();
        let strides = tensor.strides();
        let out = x.mul(&tensor).unwrap();
        prop_assert_eq!(out.dtype(), DType::F32);
        let expected: Cells = a.iter().map(|(at, v)| {
            let tail = &at[shape.len() - small.len()..];
            let place: usize = tail.iter().zip(small).zip(&strides)
                .map(|((k, n), s)| if *n == 1 { 0 } else { k * s }).sum();
            (at.clone(), v * f64::from(values[place]))
        }).collect();
        assert_same(&read_found(&out, dims), &expected);
        // A mean over a dim, kept with size 1, is broadcast to the original tensor.
        let dim = rng.random_range(0..dims);
        let mean = x.mean(Some(to_i64(dim))).unwrap().into_het().unwrap();
        let centred = x.sub(&mean.unsqueeze(to_i64(dim)).unwrap());
        if let Ok(centred) = centred {
            prop_assert_eq!(read_found(&centred, dims).len(), a.len());
        } else {
            // If lists differ along the other dims, the mean may lack elements that the tensor
            // needs.
            prop_assert!(dim < dims - 1);
        }
    }

    #[test]
    fn concatenation_equals_that_of_nested_lists(seed: u64, dims in 1usize..4, holes: bool) {
        let mut rng = seed_random(seed);
        let (x, a) = draw_any(dims, holes, &DataType::Int64, &mut rng);
        let (y, b) = draw_any(dims, holes, &DataType::Int64, &mut rng);
        let rows: Vec<Node> = a.children().iter().chain(b.children()).cloned().collect();
        let out = cat(&[&x, &y], 0).unwrap();
        prop_assert_eq!(to_node(&out), Node::List(rows));
        // Concatenates a tensor with itself along an inner dim.
        let dim = rng.random_range(0..dims);
        let twice = cat(&[&x, &x], to_i64(dim)).unwrap();
        let expected = a.map_at(dim, &mut |l| match l {
            Node::List(l) => Node::List(l.iter().chain(l).cloned().collect()),
            l => l.clone(),
        });
        prop_assert_eq!(to_node(&twice), expected);
        let wide = x.unsqueeze(to_i64(dim)).unwrap().into_het().unwrap();
        let expected = a.map_at(dim, &mut |n| Node::List(vec![n.clone()]));
        assert_same(
            &read_found(&HetValue::Het(wide.clone()), dims + 1),
            &read_cells(&expected, dims + 1),
        );
        assert_same(&read_found(&wide.squeeze(to_i64(dim)).unwrap(), dims), &read_cells(&a, dims));
    }
}

fn make_tensor(values: &[i64]) -> NestedTensors {
    DenseTensor::from_vec([values.len()], values.to_vec()).unwrap().into()
}

fn make_list(parts: Vec<NestedTensors>) -> NestedTensors {
    NestedTensors::List(parts)
}

#[test]
fn tensors_are_printed_as_nested_lists() {
    let x = make_list(vec![
        make_list(vec![make_tensor(&[1, 2]), make_tensor(&[3])]),
        make_list(vec![make_tensor(&[4, 5, 6])]),
    ]);
    let x = HetTensor::from_nested(&x).unwrap();
    assert_eq!(x.to_string(), "[[tensor([1, 2]), tensor([3])], tensor([[4, 5, 6]])]");
    let second = x.index(&[Index::ALL, Index::ALL, 1.into()]).unwrap();
    assert_eq!(second.to_string(), "[[tensor(2), -], tensor([5])]");
    assert_eq!(second.to_dense().unwrap().as_slice::<i64>().unwrap(), [2, 0, 5, 0]);
    let empty =
        HetTensor::from_nested(&make_list(vec![make_tensor(&[1]), make_list(vec![])])).unwrap();
    assert_eq!(empty.to_string(), "[tensor([1]), tensor([])]");
    assert_eq!(empty.max_shape(), [2, 1]);
}

#[test]
fn nested_tensors_need_equal_depths_and_results_have_numpys_types() {
    let deep = DenseTensor::from_vec([1, 1], vec![3i64]).unwrap();
    let e = HetTensor::from_nested(&make_list(vec![make_tensor(&[1]), deep.clone().into()]))
        .unwrap_err();
    assert!(e.to_string().contains("the tensor [1]"), "{e}");
    assert!(HetTensor::from_nested(&make_list(vec![])).is_err());
    assert!(
        HetTensor::from_nested(&make_list(vec![
            make_tensor(&[1]),
            make_list(vec![make_list(vec![])])
        ]))
        .is_err()
    );
    // A tensor of two axes stands for a list of tensors of one axis.
    let mixed =
        make_list(vec![deep.into(), make_list(vec![make_tensor(&[1, 2]), make_tensor(&[])])]);
    let mixed = HetTensor::from_nested(&mixed).unwrap();
    assert_eq!((mixed.ndim(), mixed.max_shape()), (3, vec![2, 2, 2]));
    let floats = DenseTensor::from_vec([1], vec![2.5f32]).unwrap();
    let x = HetTensor::from_nested(&make_list(vec![make_tensor(&[1, 2]), floats.into()])).unwrap();
    assert_eq!(x.dtype(), DType::F32);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let texts = RaggedArray::try_new(1, vec![], texts).unwrap();
    assert!(HetTensor::from_ragged(&texts).is_err());
    let x = HetTensor::from_nested(&make_tensor(&[1, 2])).unwrap();
    assert_eq!(x.add(2.5).unwrap().dtype(), DType::F32);
    assert_eq!(x.add(2).unwrap().dtype(), DType::I64);
    assert_eq!(x.div(2).unwrap().to_string(), "tensor([0.5, 1.0])");
    assert_eq!(x.pow(2).unwrap().to_string(), "tensor([1, 4])");
    assert!(x.pow(-1).is_err());
    assert_eq!(x.gt(1).unwrap().to_string(), "tensor([false, true])");
    assert_eq!(x.unary(UnaryOp::Sqrt).unwrap().dtype(), DType::F32);
    assert_eq!(x.unary(UnaryOp::Neg).unwrap().to_string(), "tensor([-1, -2])");
    let small = x.cast(DType::U8).unwrap();
    assert_eq!(small.add(1).unwrap().dtype(), DType::U8);
    assert!(small.add(300).is_err());
    assert_eq!(small.sum(None).unwrap().dtype(), DType::U64);
    let half = x.cast(DType::F16).unwrap();
    assert_eq!(half.sum(Some(0)).unwrap().dtype(), DType::F16);
    let truth = x.cast(DType::Bool).unwrap();
    assert_eq!(truth.mul(&truth).unwrap().dtype(), DType::Bool);
}

#[test]
fn nan_is_not_equal_to_itself() {
    let values: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN, 1.0]));
    let x = HetTensor::from_ragged(&RaggedArray::try_new(2, vec![], values).unwrap()).unwrap();
    assert_eq!(x.eq(&x).unwrap().to_string(), "tensor([false, true])");
    assert_eq!(x.ne(&x).unwrap().to_string(), "tensor([true, false])");
    assert_eq!(x.ge(0.0).unwrap().to_string(), "tensor([false, true])");
}

#[test]
fn operands_with_other_lists_and_invalid_indices_are_refused() {
    let x =
        HetTensor::from_nested(&make_list(vec![make_tensor(&[1, 2]), make_tensor(&[3])])).unwrap();
    let y =
        HetTensor::from_nested(&make_list(vec![make_tensor(&[1]), make_tensor(&[2, 3])])).unwrap();
    assert!(x.add(&y).is_err());
    let dense = DenseTensor::from_vec([2, 2], vec![1i64; 4]).unwrap();
    assert!(x.add(&dense).is_err());
    let column = DenseTensor::from_vec([2, 1], vec![10i64, 20]).unwrap();
    assert_eq!(x.add(&column).unwrap().to_string(), "[tensor([11, 12]), tensor([23])]");
    // The other tensor has more dims.
    let leading = DenseTensor::from_vec([2, 1, 1], vec![10i64, 20]).unwrap();
    let out = x.add(&leading).unwrap();
    assert_eq!(
        out.to_string(),
        "[[tensor([11, 12]), tensor([13])], [tensor([21, 22]), tensor([23])]]"
    );
    let e = x.index(&[5.into()]).unwrap_err();
    assert!(e.to_string().contains("index 5 is out of range for axis 0 of size 2"), "{e}");
    assert!(x.index(&[0.into(), 0.into(), 0.into()]).is_err());
    assert!(x.index(&[vec![0].into(), vec![0].into()]).is_err());
    assert!(x.sum(Some(2)).is_err() && x.unsqueeze(3).is_err());
    let keep = x.gt(1).unwrap().into_het().unwrap();
    assert_eq!(x.filter(&keep).unwrap().to_string(), "tensor([[2], [3]])");
}

#[test]
fn large_sizes_without_elements_are_refused_before_allocation() {
    let empty = |shape: &[usize]| -> NestedTensors {
        DenseTensor::from_vec(shape.to_vec(), Vec::<i64>::new()).unwrap().into()
    };
    assert_eq!(HetTensor::from_nested(&empty(&[3, 0])).unwrap().max_shape(), [3, 0]);
    for nested in
        [empty(&[1 << 62, 0]), make_list(vec![empty(&[usize::MAX, 0]), empty(&[1 << 62, 0])])]
    {
        let e = HetTensor::from_nested(&nested).unwrap_err();
        assert!(matches!(e, serrate::Error::TooLarge { .. }), "{e}");
    }
}
