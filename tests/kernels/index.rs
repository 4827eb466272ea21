//! Slices, index expressions, and values at coordinates.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int16Array, Int32Array, Int64Array, StringArray};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use rand::RngExt;
use serrate::Error;
use serrate::array::{Offsets, RaggedArray};
use serrate::index::{Index, parse_index};
use serrate::kernels::index::{get, head, mask, slice, tail};
use serrate::kernels::{RowArg, at::at};

use crate::common::torture::{
    Node, Random, Spec, assert_alike, build_plain, decode_ragged, decode_rows, draw_torture,
    one_of, seed_random,
};
use crate::configure_cases;

/// Length of a list, start, stop and step of a slice, and the positions that it selects.
type Slice = (usize, Option<i64>, Option<i64>, Option<i64>, &'static [i64]);

/// Slices of Python lists, recorded from Python.
const SLICES: &[Slice] = &[
    (2, Some(-7), Some(-1), None, &[0]),
    (0, Some(9), Some(1), Some(1), &[]),
    (2, Some(2), None, Some(-9), &[1]),
    (1, None, Some(-9), Some(-3), &[0]),
    (3, Some(-9), Some(-5), Some(1), &[]),
    (5, Some(-1), None, Some(1), &[4]),
    (1, Some(3), Some(3), None, &[]),
    (5, Some(2), Some(-1), None, &[2, 3]),
    (1, None, Some(1), Some(2), &[0]),
    (2, Some(-1), Some(-7), Some(-9), &[1]),
    (0, Some(2), Some(-3), Some(-9), &[]),
    (7, Some(-7), Some(-9), Some(3), &[]),
    (2, Some(-9), Some(1), Some(1), &[0]),
    (5, None, Some(2), Some(3), &[0]),
    (3, Some(3), Some(1), Some(-3), &[2]),
    (2, Some(0), Some(2), Some(9), &[0]),
    (2, Some(-3), Some(-5), Some(2), &[]),
    (7, Some(7), Some(-5), Some(1), &[]),
    (5, Some(-3), Some(1), Some(9), &[]),
    (2, Some(5), Some(0), Some(-1), &[1]),
    (5, Some(-9), Some(-9), Some(-9), &[]),
    (3, Some(-7), Some(7), Some(-2), &[]),
    (1, Some(0), Some(-1), None, &[]),
    (7, Some(-9), Some(7), Some(-9), &[]),
    (5, Some(7), Some(9), Some(-2), &[]),
    (2, Some(5), Some(-2), Some(9), &[]),
    (5, Some(7), Some(0), Some(1), &[]),
    (0, Some(-3), Some(0), Some(1), &[]),
    (0, Some(5), Some(5), Some(-1), &[]),
    (7, Some(2), Some(3), Some(9), &[2]),
    (2, Some(5), Some(-1), Some(-2), &[]),
    (0, Some(0), Some(-2), Some(2), &[]),
    (5, Some(-9), Some(0), None, &[]),
    (1, Some(7), Some(-3), Some(2), &[]),
    (7, Some(-5), Some(-1), Some(-3), &[]),
    (3, Some(-9), Some(-7), Some(9), &[]),
    (3, Some(1), Some(-3), Some(2), &[]),
    (3, Some(9), Some(1), Some(-1), &[2]),
    (7, Some(-1), Some(-2), Some(-3), &[6]),
    (1, Some(-7), Some(-9), Some(2), &[]),
    (1, Some(-5), Some(3), Some(3), &[0]),
    (0, Some(0), Some(9), Some(2), &[]),
    (2, Some(-3), None, Some(2), &[0]),
    (3, Some(1), Some(-2), Some(-2), &[]),
    (1, Some(5), Some(9), Some(-9), &[]),
    (5, Some(3), Some(3), None, &[]),
    (3, Some(9), Some(7), Some(-9), &[]),
    (3, Some(-1), Some(-1), Some(-3), &[]),
];

#[test]
fn slices_equal_those_of_python() {
    for (n, start, stop, step, expected) in SLICES {
        let row = Node::List((0..*n as i64).map(Node::Int).collect());
        let a = build_plain(1, &DataType::Int64, &[row]);
        let found = slice(&a, 1, &(*start).into(), &(*stop).into(), &(*step).into()).unwrap();
        let expected = vec![Node::List(expected.iter().map(|i| Node::Int(*i)).collect())];
        assert_eq!(decode_ragged(&found), expected, "{n} elements, [{start:?}:{stop:?}:{step:?}]");
    }
}

/// Returns the slice `list[start:stop:step]` by the rules of Python, as a reference.
fn cut_list(list: &[Node], start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> Vec<Node> {
    let n = list.len() as i128;
    let step = i128::from(step.unwrap_or(1));
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clip = |at: i64| {
        let at = i128::from(at);
        (if at < 0 { at + n } else { at }).clamp(low, high.max(low))
    };
    let (from, to) = if step > 0 { (low, high) } else { (high, low) };
    let (mut at, stop) = (start.map_or(from, clip), stop.map_or(to, clip));
    let mut out = Vec::new();
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        out.push(list[at as usize].clone());
        at += step;
    }
    out
}

fn draw_arg(rows: usize, zero: bool, rng: &mut Random) -> RowArg {
    let one = |rng: &mut Random| {
        match rng.random_range(0..10) {
            0 => None,
            1 => Some(*one_of(&[i64::MIN, i64::MAX, -1_000_000], rng)),
            _ => Some(rng.random_range(-4..5)),
        }
        .map(|v| if v == 0 && !zero { 1 } else { v })
    };
    if rng.random() { one(rng).into() } else { RowArg::Each((0..rows).map(|_| one(rng)).collect()) }
}

fn draw_deep(rng: &mut Random, levels: usize) -> Spec {
    let leaves =
        [DataType::Int8, DataType::Float64, DataType::Utf8, DataType::Boolean, DataType::UInt32];
    Spec::new(levels, one_of(&leaves, rng).clone())
}

proptest! {
    #![proptest_config(configure_cases(250))]

    #[test]
    fn slices_of_any_axis_equal_the_reference(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let case = draw_torture(&draw_deep(&mut rng, levels), &mut rng);
        let a = case.ragged();
        let axis = rng.random_range(1..=levels);
        let n = case.rows.len();
        let (start, stop) = (draw_arg(n, true, &mut rng), draw_arg(n, true, &mut rng));
        let step = if rng.random() { RowArg::NONE } else { draw_arg(n, false, &mut rng) };
        let found = slice(&a, axis as i64, &start, &stop, &step).unwrap();
        let expected: Vec<Node> = case.rows.iter().enumerate().map(|(i, row)| {
            row.map_at(axis - 1, &mut |list| match list {
                Node::Null => Node::Null,
                l => Node::List(cut_list(l.children(), start.get(i), stop.get(i), step.get(i))),
            })
        }).collect();
        assert_alike(&decode_ragged(&found), &expected);
    }

    #[test]
    fn head_and_tail_equal_the_reference(seed: u64, n in -6i64..7) {
        let mut rng = seed_random(seed);
        let case = draw_torture(&draw_deep(&mut rng, 2), &mut rng);
        let a = case.ragged();
        for axis in [1, 2] {
            let of = |f: &dyn Fn(&[Node]) -> Vec<Node>| -> Vec<Node> {
                case.rows.iter().map(|r| r.map_at(axis - 1, &mut |l| match l {
                    Node::Null => Node::Null,
                    l => Node::List(f(l.children())),
                })).collect()
            };
            let k = n.unsigned_abs() as usize;
            let first = of(&|l| {
                let keep = if n < 0 { l.len().saturating_sub(k) } else { k.min(l.len()) };
                l[..keep].to_vec()
            });
            let last = of(&|l| {
                let skip = if n < 0 { k.min(l.len()) } else { l.len().saturating_sub(k) };
                l[skip..].to_vec()
            });
            assert_alike(&decode_ragged(&head(&a, axis as i64, &n.into()).unwrap()), &first);
            assert_alike(&decode_ragged(&tail(&a, axis as i64, &n.into()).unwrap()), &last);
        }
    }

    #[test]
    fn index_expressions_equal_the_reference(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let mut spec = draw_deep(&mut rng, levels);
        spec.longest = 3;
        let case = draw_torture(&spec, &mut rng);
        // At most one array and no integers next to it, because numpy would broadcast them
        // together.
        let array = rng.random_range(0..2) == 0;
        let mut arrays = 0;
        let items: Vec<Index> = (0..rng.random_range(0..=levels)).map(|_| match rng.random_range(0..3) {
            0 if array => {
                arrays += 1;
                if arrays > 1 { Index::ALL } else { vec![rng.random_range(-2..2i64), 0].into() }
            }
            0 => Index::At(rng.random_range(-2..2)),
            1 => Index::ALL,
            _ => Index::Slice {
                start: Some(rng.random_range(-3..3)),
                stop: None,
                step: *one_of(&[None, Some(-1), Some(2)], &mut rng),
            },
        }).collect();
        let expected: Option<Vec<Node>> = case.rows.iter().map(|r| pick_items(r, &items)).collect();
        match (get(&case.ragged(), &items), expected) {
            (Ok(found), Some(expected)) => assert_alike(&decode_ragged(&found), &expected),
            (Err(Error::OutOfRangeIn { row, axis, .. }), None) => {
                prop_assert!(axis <= items.len());
                prop_assert!(case.rows.get(row).is_some());
                prop_assert!(matches!(items[axis - 1], Index::At(_) | Index::Array(_)));
            }
            (found, expected) => panic!("found {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn values_at_coordinates_equal_the_reference(seed: u64, levels in 0usize..4) {
        let mut rng = seed_random(seed);
        let mut spec = draw_deep(&mut rng, levels);
        spec.leaf = DataType::Int16;
        spec.longest = 3;
        let case = draw_torture(&spec, &mut rng);
        let coords: Vec<RowArg> =
            (0..levels).map(|_| draw_arg(case.rows.len(), true, &mut rng)).collect();
        let default = Int32Array::new_scalar(-7);
        let found = at(&case.ragged(), &coords, None).unwrap();
        let filled = at(&case.ragged(), &coords, Some(&default)).unwrap();
        let expected: Vec<Node> = case.rows.iter().enumerate().map(|(i, row)| {
            coords.iter().try_fold(row, |node, c| {
                let list = node.children();
                let at = c.get(i)?;
                let at = if at < 0 { at.checked_add(list.len() as i64)? } else { at };
                list.get(usize::try_from(at).ok()?)
            }).cloned().unwrap_or(Node::Null)
        }).collect();
        assert_alike(&decode_rows(&found), &expected);
        let expected: Vec<Node> = expected.into_iter()
            .map(|n| if n.is_null() { Node::Int(-7) } else { n }).collect();
        assert_alike(&decode_rows(&filled), &expected);
    }

    #[test]
    fn parsing_an_index_expression_never_panics(text in r"[-0-9:., x+\[\]TrueNon]{0,12}") {
        if let Ok(items) = parse_index(&text) {
            prop_assert!(!items.is_empty() && items.iter().filter(|i| **i == Index::Rest).count() < 2);
        }
    }
}

/// Applies an index expression to a nested list. Returns `None` if an index is out of range.
fn pick_items(node: &Node, items: &[Index]) -> Option<Node> {
    let Some((item, rest)) = items.split_first() else { return Some(node.clone()) };
    if node.is_null() {
        return Some(Node::Null);
    }
    let list = node.children();
    match item {
        Index::At(i) => {
            let i = if *i < 0 { *i + list.len() as i64 } else { *i };
            pick_items(list.get(usize::try_from(i).ok()?)?, rest)
        }
        Index::Slice { start, stop, step } => {
            let kept = cut_list(list, *start, *stop, *step);
            kept.iter().map(|n| pick_items(n, rest)).collect::<Option<_>>().map(Node::List)
        }
        Index::Array(positions) => {
            let all = positions.values().iter().map(|i| {
                let i = if *i < 0 { *i + list.len() as i64 } else { *i };
                pick_items(list.get(usize::try_from(i).ok()?)?, rest)
            });
            all.collect::<Option<_>>().map(Node::List)
        }
        Index::Mask(_) | Index::Rest | Index::NewAxis => unreachable!("tests draw no such index"),
    }
}

fn make_nested() -> RaggedArray {
    let leaves: ArrayRef = Arc::new(Int32Array::from_iter_values(0..7));
    let axes = vec![
        Offsets::from_lengths([2, 1]).unwrap().into(),
        Offsets::from_lengths([3, 1, 3]).unwrap().into(),
    ];
    RaggedArray::try_new(2, axes, leaves).unwrap()
}

#[test]
fn errors_of_indices_say_where() {
    let message = |text: &str| {
        parse_index(text).and_then(|i| get(&make_nested(), &i)).unwrap_err().to_string()
    };
    for (text, expected) in [
        ("1", "index 1 is out of range for axis 1 of size 1 in row 1"),
        (":, 2", "index 2 is out of range for axis 2 of size 1 in row 0"),
        ("..., -4", "index -4 is out of range for axis 2 of size 3 in row 0"),
        ("0, 0, 0", "3 indices are too many for an array with 2 axes of lists"),
        ("0, a", "position 3: expected an integer, a slice, a list, None or `...`, found \"a\""),
        ("1:2:3:4", "position 6: a slice has more than three parts; write start:stop:step"),
        ("::0", "position 2: a slice has a step of 0; use a positive or negative step"),
        ("0,,1", "position 2: there is no item before this comma"),
        ("..., 0, ...", "position 7: the index contains more than one `...`"),
        (" ", "position 0: the expression is empty"),
        ("99999999999999999999", "position 0: 99999999999999999999 does not fit a 64-bit integer"),
        ("0:1.5", "position 2: expected an integer"),
        ("[0, 1]", "index 1 is out of range for axis 1 of size 1 in row 1"),
        (
            ":, [True, False]",
            "the mask has 2 value(s), but the list has 3 element(s) on axis 2 in row 0",
        ),
        ("0, [0]", "index in two steps"),
    ] {
        assert!(message(text).contains(expected), "{text}: {}", message(text));
    }
    let rest = get(&make_nested(), &parse_index("..., 0,").unwrap()).unwrap();
    assert_eq!(rest, get(&make_nested(), &[Index::ALL, Index::At(0)]).unwrap());
}

#[test]
fn expressions_add_axes_and_masks_select_elements() {
    let get = |text: &str| get(&make_nested(), &parse_index(text).unwrap()).unwrap();
    // The array is [[[0, 1, 2], [3]], [[4, 5, 6]]].
    assert_eq!(get("None").shape(), [Some(2), Some(1), None, None]);
    assert_eq!(get("..., None").shape(), [Some(2), None, None, Some(1)]);
    assert_eq!(get("0, None").max_shape(), [2, 1, 3]);
    assert_eq!(get("None, :, None").max_shape(), [2, 1, 2, 1, 3]);
    let kept = mask(&get("0"), 1, &[true, false, true]).unwrap();
    assert_eq!(kept, get("0, ::2"));
}

#[test]
fn slices_of_all_elements_or_of_one_range_do_not_copy() {
    let a = make_nested();
    let pointer = |a: &RaggedArray| a.leaves().to_data().buffers()[0].as_ptr();
    let whole = slice(&a, 2, &0.into(), &9.into(), &RowArg::NONE).unwrap();
    assert_eq!(pointer(&whole), pointer(&a));
    // The selected elements are adjacent leaves, so that the result is a slice of the buffer.
    let row = a.slice(1, 1).unwrap();
    let part = slice(&row, 2, &1.into(), &RowArg::NONE, &RowArg::NONE).unwrap();
    assert_eq!(part.leaves().len(), 2);
    assert_eq!(pointer(&part), pointer(&a).wrapping_add(5 * 4));
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let a = make_nested();
    let three = RowArg::Each(Int64Array::from(vec![1, 2, 3]));
    let says = |e: Error, what: &str| assert!(e.to_string().contains(what), "{e}");
    says(
        slice(&a, 1, &three, &RowArg::NONE, &RowArg::NONE).unwrap_err(),
        "start: 3 value(s) are given for 2 row(s)",
    );
    let steps = RowArg::Each(Int64Array::from(vec![1, 0]));
    says(slice(&a, 2, &RowArg::NONE, &RowArg::NONE, &steps).unwrap_err(), "step of 0 (row 1)");
    says(slice(&a, 2, &RowArg::NONE, &RowArg::NONE, &0.into()).unwrap_err(), "step of 0");
    says(
        at(&a, &[1.into()], None).unwrap_err(),
        "1 coordinate(s) are given for an array with 2 level(s)",
    );
    says(
        at(&a, &[1.into(), three], None).unwrap_err(),
        "coordinate 2: 3 value(s) are given for 2 row(s)",
    );
    let coords = [9.into(), 9.into()];
    let text = StringArray::new_scalar("x");
    says(at(&a, &coords, Some(&text)).unwrap_err(), "default cannot be converted exactly to Int32");
    let narrow = a.with_leaves(Arc::new(Int16Array::from_iter_values(0..7))).unwrap();
    let big = Int32Array::new_scalar(70_000);
    says(
        at(&narrow, &coords, Some(&big)).unwrap_err(),
        "default cannot be converted exactly to Int16",
    );
    for half in [0.5, f64::NAN, 1e300] {
        let half = Float64Array::new_scalar(half);
        says(
            at(&narrow, &coords, Some(&half)).unwrap_err(),
            "default cannot be converted exactly to Int16",
        );
    }
    let halves = Float64Array::from(vec![5.0, 5.5]);
    says(at(&narrow, &coords, Some(&halves)).unwrap_err(), "Int16: 5.5");
    let found = at(&narrow, &coords, Some(&Float64Array::new_scalar(5.0))).unwrap();
    assert_eq!(decode_rows(&found), [Node::Int(5), Node::Int(5)]);
    let per_row = Int32Array::from(vec![5, 6]);
    let found = at(&narrow, &coords, Some(&per_row)).unwrap();
    assert_eq!(decode_rows(&found), [Node::Int(5), Node::Int(6)]);
}
