//! Cumulative sums, shifts, differences and filled nulls.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, TimeUnit};
use proptest::prelude::*;
use rand::RngExt;
use serrate::Error;
use serrate::array::{Offsets, RaggedArray};
use serrate::kernels::running::{
    RunningOp, backward_fill, cumsum, diff, forward_fill, running, shift,
};

use crate::common::torture::{
    Node, Spec, assert_alike, decode_ragged, draw_torture, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::make_lists;

/// A function of the values at one position of all lists, each with its index along the axis.
/// Returns as many values.
type Along<'a> = dyn Fn(&[(usize, Node)]) -> Vec<Node> + 'a;

/// Applies `work` across elements, which are nested lists of `levels` levels, to the values at each
/// position. Returns the elements with the new values.
fn run_over(elements: &[(usize, &Node)], levels: usize, work: &Along<'_>) -> Vec<Node> {
    if levels == 0 {
        let values: Vec<_> = elements.iter().map(|(at, n)| (*at, (*n).clone())).collect();
        return work(&values);
    }
    let longest = elements.iter().map(|(_, e)| e.children().len()).max().unwrap_or(0);
    let mut out: Vec<Vec<Node>> = vec![Vec::new(); elements.len()];
    for place in 0..longest {
        let there: Vec<usize> =
            (0..elements.len()).filter(|i| elements[*i].1.children().len() > place).collect();
        let column: Vec<(usize, &Node)> =
            there.iter().map(|i| (elements[*i].0, &elements[*i].1.children()[place])).collect();
        for (i, found) in there.into_iter().zip(run_over(&column, levels - 1, work)) {
            out[i].push(found);
        }
    }
    let same = |(i, children): (usize, Vec<Node>)| match elements[i].1 {
        Node::Null => Node::Null,
        _ => Node::List(children),
    };
    out.into_iter().enumerate().map(same).collect()
}

fn run_along(rows: &[Node], levels: usize, axis: usize, work: &Along<'_>) -> Vec<Node> {
    let placed = |nodes: &[Node], below| {
        let nodes: Vec<(usize, &Node)> = nodes.iter().enumerate().collect();
        run_over(&nodes, below, work)
    };
    if axis == 0 {
        return placed(rows, levels);
    }
    let list = &mut |l: &Node| match l {
        Node::Null => Node::Null,
        l => Node::List(placed(l.children(), levels - axis)),
    };
    rows.iter().map(|r| r.map_at(axis - 1, list)).collect()
}

fn cumulate_values(how: RunningOp, float: bool, values: &[(usize, Node)]) -> Vec<Node> {
    let mut acc: Option<f64> = None;
    let step = |a: f64, v: f64| match how {
        RunningOp::Sum => a + v,
        RunningOp::Prod => a * v,
        _ if a.is_nan() || v.is_nan() => f64::NAN,
        RunningOp::Min => a.min(v),
        RunningOp::Max => a.max(v),
    };
    let made = |(_, v): &(usize, Node)| match v.float() {
        None => Node::Null,
        Some(v) => {
            let next = acc.map_or(v, |a| step(a, v));
            acc = Some(next);
            if float { Node::Float(next) } else { Node::Int(next as i64) }
        }
    };
    values.iter().map(made).collect()
}

fn shift_values(values: &[(usize, Node)], n: i64, fill: &Node) -> Vec<Node> {
    let find = |at: i64| values.iter().find(|(a, _)| *a as i64 == at);
    values
        .iter()
        .map(|(at, _)| find(*at as i64 - n).map_or(fill.clone(), |v| v.1.clone()))
        .collect()
}

fn fill_values(values: &[(usize, Node)], back: bool) -> Vec<Node> {
    let at = |i: usize| {
        let there = |v: &&(usize, Node)| !v.1.is_null();
        let found = match back {
            false => values[..=i].iter().rev().find(there),
            true => values[i..].iter().find(there),
        };
        found.map_or(Node::Null, |v| v.1.clone())
    };
    (0..values.len()).map(at).collect()
}

proptest! {
    #![proptest_config(configure_cases(150))]

    #[test]
    fn running_functions_along_every_axis_equal_the_reference(seed: u64, levels in 0usize..4) {
        let mut rng = seed_random(seed);
        let types = [
            DataType::Int8, DataType::Int32, DataType::Int64, DataType::UInt16, DataType::UInt64,
            DataType::Float16, DataType::Float32, DataType::Float64, DataType::Boolean, DataType::Utf8,
        ];
        let leaf = one_of(&types, &mut rng).clone();
        let float = leaf.is_floating();
        let mut spec = Spec::new(levels, leaf.clone());
        spec.reach = 3;
        spec.odd_floats = leaf == DataType::Float64;
        spec.null_leaves = seed % 4 != 0;
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();
        for axis in 0..=levels {
            let named = if axis % 2 == 0 { axis as i64 } else { axis as i64 - levels as i64 - 1 };
            for how in [RunningOp::Sum, RunningOp::Prod, RunningOp::Min, RunningOp::Max] {
                let Ok(out) = how.output_type(&leaf) else {
                    prop_assert!(leaf == DataType::Utf8 && running(&a, how, named).is_err());
                    continue;
                };
                if how == RunningOp::Prod && (float || case.rows.len() > 1) {
                    continue;
                }
                let found = match running(&a, how, named) {
                    Err(Error::Overflow(_)) if how == RunningOp::Prod => continue,
                    found => found.unwrap(),
                };
                prop_assert_eq!(found.leaf_type(), &out);
                let work = |v: &[(usize, Node)]| {
                    let truth = |n: Node| n.int().map_or(n, |i| Node::Bool(i == 1));
                    let made = cumulate_values(how, float, v);
                    match out {
                        DataType::Boolean => made.into_iter().map(truth).collect(),
                        _ => made,
                    }
                };
                assert_alike(&decode_ragged(&found), &run_along(&case.rows, levels, axis, &work));
            }
            for n in [0, 1, 2, -1, -3, 100] {
                let found = shift(&a, n, None, named).unwrap();
                let work = |v: &[(usize, Node)]| shift_values(v, n, &Node::Null);
                assert_alike(&decode_ragged(&found), &run_along(&case.rows, levels, axis, &work));
                if leaf.is_numeric() {
                    let fill: ArrayRef = Arc::new(Int64Array::from(vec![1]));
                    let found = shift(&a, n, Some(&fill), named).unwrap();
                    let one = if float { Node::Float(1.0) } else { Node::Int(1) };
                    let work = |v: &[(usize, Node)]| shift_values(v, n, &one);
                    assert_alike(
                        &decode_ragged(&found),
                        &run_along(&case.rows, levels, axis, &work),
                    );
                    let found = diff(&a, n, named).unwrap();
                    let work = |v: &[(usize, Node)]| {
                        let less = |((_, a), b): (&(usize, Node), Node)| match (a, b) {
                            (Node::Int(a), Node::Int(b)) => Node::Int(a - b),
                            (Node::Float(a), Node::Float(b)) => Node::Float(a - b),
                            _ => Node::Null,
                        };
                        v.iter().zip(shift_values(v, n, &Node::Null)).map(less).collect()
                    };
                    assert_alike(
                        &decode_ragged(&found),
                        &run_along(&case.rows, levels, axis, &work),
                    );
                }
            }
            let found = forward_fill(&a, named).unwrap();
            let work = |v: &[(usize, Node)]| fill_values(v, false);
            assert_alike(&decode_ragged(&found), &run_along(&case.rows, levels, axis, &work));
            let found = backward_fill(&a, named).unwrap();
            let work = |v: &[(usize, Node)]| fill_values(v, true);
            assert_alike(&decode_ragged(&found), &run_along(&case.rows, levels, axis, &work));
        }
    }

    #[test]
    fn nulls_are_filled_across_words_of_the_bitmap_but_not_across_lists(seed: u64, gap in 1usize..90) {
        let mut rng = seed_random(seed);
        let lengths: Vec<usize> = (0..6).map(|_| rng.random_range(0..150)).collect();
        let n: usize = lengths.iter().sum();
        let leaves: Int32Array = (0..n as i32).map(|i| (rng.random_range(0..gap) == 0).then_some(i)).collect();
        let axis = Offsets::from_lengths(lengths.iter().copied()).unwrap().into();
        let a = RaggedArray::try_new(6, vec![axis], Arc::new(leaves)).unwrap();
        let rows = decode_ragged(&a);
        let work = |v: &[(usize, Node)]| fill_values(v, false);
        assert_alike(&decode_ragged(&forward_fill(&a, 1).unwrap()), &run_along(&rows, 1, 1, &work));
        let work = |v: &[(usize, Node)]| fill_values(v, true);
        assert_alike(
            &decode_ragged(&backward_fill(&a, 1).unwrap()),
            &run_along(&rows, 1, 1, &work),
        );
        let work = |v: &[(usize, Node)]| shift_values(v, 1, &Node::Null);
        assert_alike(
            &decode_ragged(&shift(&a, 1, None, 1).unwrap()),
            &run_along(&rows, 1, 1, &work),
        );
    }
}

#[test]
fn overflow_and_unsuitable_types_are_refused() {
    let a = make_lists(&[1, 2], Arc::new(Int64Array::from(vec![i64::MAX, i64::MAX, 1])));
    let e = cumsum(&a, -1).unwrap_err();
    assert_eq!(
        e.to_string(),
        "the cumsum of list 1 along axis -1: the result does not fit a 64-bit integer; cast the values to float64 first"
    );
    assert!(matches!(diff(&a, 1, 1).unwrap().leaves().len(), 3));
    let a = make_lists(&[2], Arc::new(Int64Array::from(vec![i64::MIN, 1])));
    assert!(matches!(diff(&a, 1, 1), Err(Error::Overflow(_))));
    let a = make_lists(&[3], Arc::new(UInt64Array::from(vec![u64::MAX, u64::MAX - 5, u64::MAX])));
    let found = diff(&a, 1, 1).unwrap();
    assert_eq!(decode_ragged(&found), [Node::List(vec![Node::Null, Node::Int(-5), Node::Int(5)])]);
    let text = make_lists(&[1], Arc::new(arrow::array::StringArray::from(vec!["a"])));
    assert!(diff(&text, 1, 1).is_err());
    let half: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![0.5]));
    assert!(shift(&a, 1, Some(&half), 1).is_err());
    assert!(shift(&a, 1, None, 2).is_err());
}

#[test]
fn differences_of_times_are_durations_and_lists_are_shared() {
    let times = arrow::array::TimestampMicrosecondArray::from(vec![5, 9, 2]);
    let a = make_lists(&[2, 1], Arc::new(times));
    let gaps = diff(&a, 1, -1).unwrap();
    assert_eq!(gaps.leaf_type(), &DataType::Duration(TimeUnit::Microsecond));
    assert_eq!(decode_ragged(&gaps)[0], Node::List(vec![Node::Null, Node::Int(4)]));
    let first = running(&a, RunningOp::Min, -1).unwrap();
    assert_eq!(first.leaf_type(), a.leaf_type());
    assert_eq!(decode_ragged(&first)[1], Node::List(vec![Node::Int(2)]));
    let sums = cumsum(&gaps, -1).unwrap();
    assert_eq!(sums.leaf_type(), gaps.leaf_type());
    for made in [&gaps, &first, &sums, &forward_fill(&gaps, 1).unwrap()] {
        let offsets = |a: &RaggedArray| match a.axes()[0].layout() {
            serrate::array::Layout::Ragged(o) => o.clone(),
            other => panic!("{other:?}"),
        };
        assert!(offsets(made).ptr_eq(&offsets(&a)));
    }
    // Without nulls, nothing is filled, and all buffers are shared.
    let same = forward_fill(&a, 1).unwrap();
    let pointer = |a: &RaggedArray| a.leaves().to_data().buffers()[0].as_ptr();
    assert_eq!(pointer(&same), pointer(&a));
    assert_eq!(a.leaves().as_primitive::<arrow::datatypes::TimestampMicrosecondType>().len(), 3);
}
