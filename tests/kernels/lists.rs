//! Moving elements within lists: take, scatter, repeat, masks and indices, ranges, coordinates.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, UInt32Array};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use proptest::prelude::*;
use rand::RngExt;
use serrate::Error;
use serrate::array::{Layout, ListKind, Offsets, RaggedArray};
use serrate::kernels::Count;
use serrate::kernels::between::{Closure, between};
use serrate::kernels::broadcast::{Spread, broadcast};
use serrate::kernels::concat::concat;
use serrate::kernels::coords::coords;
use serrate::kernels::filter::filter;
use serrate::kernels::indices::{indices_from_mask, mask_from_indices};
use serrate::kernels::repeat::repeat;
use serrate::kernels::reshape::{reshape, squeeze, unsqueeze};
use serrate::kernels::scatter::{Duplicates, scatter, scatter_new};
use serrate::kernels::shape::lengths;
use serrate::kernels::take::{reverse, take};

use crate::cases;
use crate::common::torture::{
    Node, Random, Spec, Torture, assert_alike, encode, meaning, one_of, plain, random, torture,
    tree,
};

fn some_leaf(rng: &mut Random) -> DataType {
    one_of(&[DataType::Int32, DataType::Float32, DataType::Utf8, DataType::Boolean], rng).clone()
}

/// Draws indices for the lists of axis `axis` below `row`.
fn indices(row: &Node, axis: usize, rng: &mut Random) -> Node {
    if axis > 1 {
        return match row {
            Node::Null if rng.random() => Node::Null,
            Node::Null => Node::List(vec![indices(&Node::Null, axis - 1, rng)]),
            row => Node::List(row.children().iter().map(|c| indices(c, axis - 1, rng)).collect()),
        };
    }
    if rng.random_range(0..10) == 0 {
        return Node::Null;
    }
    let n = i64::try_from(row.children().len()).unwrap();
    let many = if row.is_null() { rng.random_range(0..3) } else { rng.random_range(0..6) };
    let any = |rng: &mut Random| match rng.random_range(0..8) {
        0 => Node::Null,
        _ if n == 0 => Node::Int(rng.random_range(-5..5)),
        _ => Node::Int(rng.random_range(-n..n)),
    };
    if n == 0 && !row.is_null() {
        return Node::List(vec![Node::Null; many]);
    }
    Node::List((0..many).map(|_| any(rng)).collect())
}

fn encoded(levels: usize, leaf: &DataType, rows: &[Node], rng: &mut Random) -> RaggedArray {
    let kinds: Vec<ListKind> =
        (0..levels).map(|_| *one_of(&[ListKind::List, ListKind::LargeList], rng)).collect();
    let array = encode(&Spec::new(levels, leaf.clone()), &kinds, rows, rng);
    RaggedArray::try_from_arrow(&array).unwrap()
}

fn at(list: &[Node], index: i64) -> usize {
    let n = i64::try_from(list.len()).unwrap();
    usize::try_from(if index < 0 { index + n } else { index }).unwrap()
}

/// Combines the lists `depth` levels down in pairs; null where either is null.
fn zipped(a: &Node, b: &Node, depth: usize, f: &mut dyn FnMut(&Node, &Node) -> Node) -> Node {
    if a.is_null() || b.is_null() {
        return if depth == 0 { f(a, b) } else { Node::Null };
    }
    if depth == 0 {
        return f(a, b);
    }
    let pairs = a.children().iter().zip(b.children());
    Node::List(pairs.map(|(a, b)| zipped(a, b, depth - 1, f)).collect())
}

struct Beside {
    case: Torture,
    levels: usize,
    axis: usize,
    rows: Vec<Node>,
    array: RaggedArray,
    at: RaggedArray,
}

fn beside(leaf: DataType, levels: usize, axis: usize, rng: &mut Random) -> Beside {
    let axis = axis.min(levels);
    let case = torture(&Spec::new(levels, leaf), rng);
    let rows: Vec<Node> = case.rows.iter().map(|r| indices(r, axis, rng)).collect();
    let kind = one_of(&[DataType::Int64, DataType::Int16, DataType::Int32], rng).clone();
    let at = encoded(axis, &kind, &rows, rng);
    Beside { array: case.ragged(), case, levels, axis, rows, at }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn take_by_lists_of_indices(seed: u64, levels in 1usize..4, axis in 1usize..4) {
        let mut rng = random(seed);
        let b = beside(some_leaf(&mut rng), levels, axis, &mut rng);
        let found = take(&b.array, &b.at).unwrap();
        let expected: Vec<Node> = b.case.rows.iter().zip(&b.rows).map(|(x, i)| {
            zipped(x, i, b.axis - 1, &mut |x, i| {
                if x.is_null() || i.is_null() {
                    return Node::Null;
                }
                Node::List(i.children().iter().map(|i| match i {
                    Node::Int(i) => x.children()[at(x.children(), *i)].clone(),
                    _ => Node::Null,
                }).collect())
            })
        }).collect();
        assert_alike(&meaning(&found), &expected);
        // Scattering what was taken restores the array.
        let back = scatter(&b.array, &b.at, &found, Duplicates::Last).unwrap();
        let expected: Vec<Node> = b.case.rows.iter().zip(&b.rows).map(|(x, i)| {
            zipped(x, i, b.axis - 1, &mut |x, _| x.clone())
        }).collect();
        assert_alike(&meaning(&back), &expected);
    }

    #[test]
    fn scatter_is_the_last_write(seed: u64, levels in 1usize..4, axis in 1usize..4) {
        let mut rng = random(seed);
        let b = beside(some_leaf(&mut rng), levels, axis, &mut rng);
        let spec = Spec::new(b.levels, b.array.leaf_type().clone());
        let below = &b.case.kinds[b.axis..];
        let values: Vec<Node> = b.rows.iter().map(|r| {
            r.map_at(b.axis, &mut |_| tree(&spec, below, &mut rng))
        }).collect();
        let mut kinds = vec![ListKind::List; b.axis];
        kinds.extend_from_slice(below);
        let given = RaggedArray::try_from_arrow(&encode(&spec, &kinds, &values, &mut rng)).unwrap();
        let mut twice = false;
        let mut expected = Vec::new();
        for ((x, i), v) in b.case.rows.iter().zip(&b.rows).zip(&values) {
            // Combines indices and values as pairs.
            let pairs = zipped(i, v, b.axis - 1, &mut |i, v| match (i, v) {
                (Node::Null, _) | (_, Node::Null) => Node::Null,
                _ => Node::List(i.children().iter().zip(v.children())
                    .map(|(i, v)| Node::List(vec![i.clone(), v.clone()])).collect()),
            });
            expected.push(zipped(x, &pairs, b.axis - 1, &mut |x, pairs| {
                let Node::List(list) = x else { return Node::Null };
                let mut list = list.clone();
                let mut seen = std::collections::HashSet::new();
                for pair in pairs.children() {
                    let [i, v] = pair.children() else { unreachable!() };
                    let Node::Int(i) = i else { continue };
                    let place = at(&list, *i);
                    twice |= !seen.insert(place);
                    list[place] = v.clone();
                }
                Node::List(list)
            }));
        }
        let found = scatter(&b.array, &b.at, &given, Duplicates::Last).unwrap();
        assert_alike(&meaning(&found), &expected);
        let strict = scatter(&b.array, &b.at, &given, Duplicates::Refuse);
        match strict {
            Ok(found) => {
                prop_assert!(!twice);
                assert_alike(&meaning(&found), &expected);
            }
            Err(e) => prop_assert!(twice && e.to_string().contains("occurs twice"), "{}", e),
        }
    }

    #[test]
    fn masks_are_indices(seed: u64, levels in 1usize..4) {
        let mut rng = random(seed);
        let case = torture(&Spec::new(levels, DataType::Boolean), &mut rng);
        let mask = case.ragged();
        let at = indices_from_mask(&mask).unwrap();
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels - 1, &mut |list| {
            if list.is_null() {
                return Node::Null;
            }
            let places = list.children().iter().enumerate().filter(|(_, b)| **b == Node::Bool(true));
            Node::List(places.map(|(i, _)| Node::Int(i64::try_from(i).unwrap())).collect())
        })).collect();
        assert_alike(&meaning(&at), &expected);
        let sizes = lengths(&mask, -1).unwrap();
        let back = mask_from_indices(&at, Count::Each(&sizes)).unwrap();
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels, &mut |leaf| {
            Node::Bool(*leaf == Node::Bool(true))
        })).collect();
        assert_alike(&meaning(&back), &expected);
        // The elements of a mask are those at its indices.
        let values = mask.with_leaves(Arc::new(UInt32Array::from_iter_values(
            0..u32::try_from(mask.leaves().len()).unwrap(),
        ))).unwrap();
        prop_assert_eq!(filter(&values, &mask).unwrap(), take(&values, &at).unwrap());
        // Scattered into an empty array, they are where the mask was true.
        let fill: ArrayRef = Arc::new(arrow::array::BooleanArray::from(vec![false]));
        let trues = at.with_leaves(Arc::new(arrow::array::BooleanArray::from(
            vec![true; at.leaves().len()],
        ))).unwrap();
        let written =
            scatter_new(&at, &trues, Count::Each(&sizes), Some(&fill), Duplicates::Refuse).unwrap();
        prop_assert_eq!(written, back);
    }

    #[test]
    fn repeats(seed: u64, levels in 1usize..4, axis in 1usize..4, of in 0usize..4) {
        let mut rng = random(seed);
        let (axis, of) = (axis.min(levels), of.min(axis.min(levels)));
        let case = torture(&Spec::new(levels, some_leaf(&mut rng)), &mut rng);
        let a = case.ragged();
        let k = i64::try_from(axis).unwrap();
        let counts: Vec<Node> = case.rows.iter()
            .map(|r| r.map_at(of, &mut |_| match rng.random_range(0..5) {
                0 => Node::Null,
                n => Node::Int(n - 1),
            })).collect();
        fn times(row: &Node, count: &Node, axis: usize, of: usize) -> Node {
            if row.is_null() {
                return Node::Null;
            }
            let count_of = |i: usize| if of == 0 { count.clone() } else { count.children()[i].clone() };
            let each = row.children().iter().enumerate();
            Node::List(if axis == 1 {
                each.flat_map(|(i, c)| {
                    let n = count_of(i).int().unwrap_or(0);
                    vec![c.clone(); usize::try_from(n).unwrap()]
                }).collect()
            } else {
                each.map(|(i, c)| times(c, &count_of(i), axis - 1, of.saturating_sub(1))).collect()
            })
        }
        let numbers = plain(of, &DataType::Int32, &counts);
        let found = repeat(&a, k, Count::Each(&numbers)).unwrap();
        let expected: Vec<Node> =
            case.rows.iter().zip(&counts).map(|(r, c)| times(r, c, axis, of)).collect();
        assert_alike(&meaning(&found), &expected);
        let twice: Vec<Node> = case.rows.iter().map(|r| times(r, &Node::Int(2), axis, 0)).collect();
        assert_alike(&meaning(&repeat(&a, k, Count::All(2)).unwrap()), &twice);
    }

    #[test]
    fn ranges_of_time(seed: u64, levels in 1usize..4) {
        let mut rng = random(seed);
        let case = torture(&Spec::new(levels, some_leaf(&mut rng)), &mut rng);
        let times: Vec<Node> = case.rows.iter().map(|r| {
            let mut list: Vec<i64> =
                (0..r.children().len()).map(|_| rng.random_range(0..6)).collect();
            list.sort_unstable();
            if r.is_null() { Node::Null } else { Node::List(list.into_iter().map(Node::Int).collect()) }
        }).collect();
        let beside = plain(1, &DataType::Int32, &times);
        let mut bound = || -> Vec<Option<i64>> {
            case.rows.iter().map(|_| (rng.random_range(0..5) > 0).then(|| rng.random_range(-1..7))).collect()
        };
        let (low, high) = (bound(), bound());
        let (lows, highs) = (Int64Array::from(low.clone()), Int64Array::from(high.clone()));
        for text in ["[]", "[)", "(]", "()"] {
            let closure: Closure = text.parse().unwrap();
            let found =
                between(&case.ragged(), &beside, Some(&lows), Some(&highs), closure).unwrap();
            let expected: Vec<Node> = case.rows.iter().enumerate().map(|(r, row)| {
                let Node::List(list) = row else { return Node::Null };
                let keep = |t: i64| {
                    low[r].is_none_or(|l| if text.starts_with('[') { t >= l } else { t > l })
                        && high[r].is_none_or(|h| if text.ends_with(']') { t <= h } else { t < h })
                };
                let pairs = list.iter().zip(times[r].children());
                Node::List(pairs.filter(|(_, t)| keep(t.int().unwrap())).map(|(x, _)| x.clone()).collect())
            }).collect();
            assert_alike(&meaning(&found), &expected);
        }
    }

    #[test]
    fn outer_values_and_places(seed: u64, levels in 1usize..4, outer in 0usize..3) {
        let mut rng = random(seed);
        let outer = outer.min(levels - 1);
        let case = torture(&Spec::new(levels, DataType::Int32), &mut rng);
        let inner = case.ragged();
        let mut next = 0;
        let values: Vec<Node> = case.rows.iter().map(|r| r.map_at(outer, &mut |_| {
            next += 1;
            if next % 5 == 0 { Node::Null } else { Node::Int(next) }
        })).collect();
        let over = plain(outer, &DataType::Int64, &values);
        fn spread(value: &Node, row: &Node, outer: usize, levels: usize) -> Node {
            if levels == 0 {
                return value.clone();
            }
            if row.is_null() {
                return Node::Null;
            }
            let of = |i: usize| if outer == 0 { value } else { &value.children()[i] };
            Node::List(row.children().iter().enumerate()
                .map(|(i, c)| spread(of(i), c, outer.saturating_sub(1), levels - 1)).collect())
        }
        let expected: Vec<Node> = values.iter().zip(&case.rows)
            .map(|(v, r)| spread(v, r, outer, levels)).collect();
        let found = broadcast(&over, &inner, Spread::Repeat).unwrap();
        assert_alike(&meaning(&found), &expected);
        let first = broadcast(&over, &inner, Spread::First).unwrap();
        let mut before = Vec::new();
        let expected: Vec<Node> = values.iter().zip(&case.rows).map(|(v, r)| {
            let repeated = spread(v, r, outer, levels);
            let mut fresh = Vec::new();
            let kept = repeated.map_at(outer, &mut |below| {
                let mut seen = false;
                below.map_at(levels - outer, &mut |leaf| {
                    if std::mem::replace(&mut seen, true) { Node::Null } else { leaf.clone() }
                })
            });
            fresh.push(kept.clone());
            before.extend(fresh);
            kept
        }).collect();
        assert_alike(&meaning(&first), &expected);

        // Every leaf is found at its coordinates.
        let places = coords(&inner).unwrap();
        let column = |axis: usize| places[axis].leaves().as_primitive::<Int64Type>().clone();
        let columns: Vec<Int64Array> = (0..=levels).map(column).collect();
        let leaves: Vec<Node> = case.rows.iter().flat_map(|r| r.leaves_below(levels)).collect();
        for (i, leaf) in leaves.iter().enumerate() {
            let mut node = &case.rows[usize::try_from(columns[0].value(i)).unwrap()];
            for column in &columns[1..] {
                node = &node.children()[usize::try_from(column.value(i)).unwrap()];
            }
            prop_assert_eq!(node, leaf);
        }
        prop_assert_eq!(columns[0].len(), leaves.len());
    }

    #[test]
    fn axes_come_and_go(seed: u64, levels in 1usize..4, axis in 1usize..5) {
        let mut rng = random(seed);
        let spec = Spec::new(levels, some_leaf(&mut rng));
        let case = torture(&spec, &mut rng);
        let a = case.ragged();
        let axis = axis.min(levels + 1);
        let k = i64::try_from(axis).unwrap();
        let wider = unsqueeze(&a, k).unwrap();
        let expected: Vec<Node> = case.rows.iter()
            .map(|r| r.map_at(axis - 1, &mut |n| Node::List(vec![n.clone()]))).collect();
        assert_alike(&meaning(&wider), &expected);
        prop_assert_eq!(&unsqueeze(&a, k - i64::try_from(levels + 2).unwrap()).unwrap(), &wider);
        prop_assert_eq!(&squeeze(&wider, k).unwrap(), &a);
        // Every list is repeated three times, then split into threes.
        let axis = axis.min(levels);
        let k = i64::try_from(axis).unwrap();
        let long = repeat(&a, k, Count::All(3)).unwrap();
        let cut = reshape(&long, k, &[-1, 3]).unwrap();
        let expected: Vec<Node> = case.rows.iter().map(|r| {
            r.map_at(axis, &mut |n| Node::List(vec![n.clone(); 3]))
        }).collect();
        assert_alike(&meaning(&cut), &expected);
        let other = reshape(&long, k, &[3, -1, 1]).unwrap();
        for (row, expected) in meaning(&other).iter().zip(&case.rows) {
            let (x, y) = (row.leaves_below(levels + 2), expected.leaves_below(levels));
            prop_assert_eq!(x.len(), 3 * y.len());
        }
        // Reversing twice gives the original.
        let back = reverse(&a, k).unwrap();
        prop_assert_eq!(&reverse(&back, k).unwrap(), &a);
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(axis - 1, &mut |l| match l {
            Node::List(l) => Node::List(l.iter().rev().cloned().collect()),
            l => l.clone(),
        })).collect();
        assert_alike(&meaning(&back), &expected);
        let more = torture(&spec, &mut rng);
        let all = concat(&[&a, &more.ragged(), &a]).unwrap();
        let expected: Vec<Node> =
            case.rows.iter().chain(&more.rows).chain(&case.rows).cloned().collect();
        assert_alike(&meaning(&all), &expected);
    }
}

fn lists(lengths: &[usize], leaves: ArrayRef) -> RaggedArray {
    let axis = Offsets::from_lengths(lengths.iter().copied()).unwrap().into();
    RaggedArray::try_new(lengths.len(), vec![axis], leaves).unwrap()
}

fn ints(lengths: &[usize], values: &[i32]) -> RaggedArray {
    lists(lengths, Arc::new(Int32Array::from(values.to_vec())))
}

#[test]
fn indices_out_of_range_are_named() {
    let a = ints(&[3, 2], &[1, 2, 3, 4, 5]);
    let at = ints(&[1, 3], &[0, 1, -2, 2]);
    let named = |e: Error| match e {
        Error::OutOfRangeAt { row, position, index, size, .. } => (row, position, index, size),
        other => panic!("{other}"),
    };
    let e = take(&a, &at).unwrap_err();
    assert_eq!(
        e.to_string(),
        "take: index 2 at position 2 of list 1 (row 1) is out of range for 2 element(s)"
    );
    assert_eq!(named(e), (1, 2, 2, 2));
    assert_eq!(named(scatter(&a, &at, &at, Duplicates::Last).unwrap_err()), (1, 2, 2, 2));
    assert_eq!(named(mask_from_indices(&at, Count::All(2)).unwrap_err()), (1, 2, 2, 2));
    let at = ints(&[1, 0], &[-4]);
    assert_eq!(named(take(&a, &at).unwrap_err()), (0, 0, -4, 3));
    // The same with nulls in between.
    let holes =
        lists(&[3, 2], Arc::new(Int32Array::from(vec![Some(1), None, None, None, Some(5)])));
    assert_eq!(named(take(&holes, &at).unwrap_err()), (0, 0, -4, 3));
    let text = lists(&[1, 0], Arc::new(arrow::array::StringArray::from(vec!["0"])));
    assert!(take(&a, &text).is_err());
    let flat = RaggedArray::try_new(2, vec![], Arc::new(Int32Array::from(vec![0, 0]))).unwrap();
    assert!(take(&a, &flat).is_err() && take(&flat, &a).is_err());
}

#[test]
fn lists_of_indices_are_shared() {
    let a = ints(&[3, 2], &[1, 2, 3, 4, 5]);
    let at = ints(&[1, 3], &[0, 1, -2, 0]);
    let out = take(&a, &at).unwrap();
    assert_eq!(out.leaves().as_primitive::<Int32Type>().values(), &[1, 5, 4, 4]);
    let offsets = |a: &RaggedArray| match a.axes()[0].layout() {
        Layout::Ragged(o) => o.clone(),
        Layout::Uniform { .. } => panic!("uniform"),
    };
    assert!(offsets(&out).ptr_eq(&offsets(&at)));
    let written = scatter(&a, &at, &out, Duplicates::Last).unwrap();
    assert!(offsets(&written).ptr_eq(&offsets(&a)));
}

#[test]
fn new_lists_by_size() {
    let at = ints(&[2, 1], &[2, 0, 1]);
    let values = ints(&[2, 1], &[7, 8, 9]);
    let fill: ArrayRef = Arc::new(Int64Array::from(vec![-1]));
    let out = scatter_new(&at, &values, Count::All(3), Some(&fill), Duplicates::Last).unwrap();
    assert_eq!(out, ints(&[3, 3], &[8, -1, 7, -1, 9, -1]));
    let sizes: ArrayRef = Arc::new(Int32Array::from(vec![Some(3), None]));
    let sizes = RaggedArray::try_new(2, vec![], sizes).unwrap();
    let out = scatter_new(&at, &values, Count::Each(&sizes), None, Duplicates::Last).unwrap();
    assert!(out.axes()[0].nulls().unwrap().is_null(1) && out.leaves().is_null(1));
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![1 << 40]));
    assert!(scatter_new(&at, &values, Count::All(3), Some(&wide), Duplicates::Last).is_err());
    // The result would not fit memory.
    for many in [usize::MAX, 1 << 50] {
        let refused = |e: Error| matches!(e, Error::TooLarge { .. } | Error::Offsets { .. });
        let out = scatter_new(&at, &values, Count::All(many), None, Duplicates::Last);
        assert!(refused(out.unwrap_err()));
        assert!(refused(mask_from_indices(&at, Count::All(many)).unwrap_err()));
        assert!(refused(repeat(&at, 1, Count::All(many)).unwrap_err()));
    }
    let none = ints(&[0, 0, 0, 0], &[]);
    assert!(reshape(&none, 1, &[1 << 62, 0]).is_err());
    let less = RaggedArray::try_new(2, vec![], Arc::new(Int32Array::from(vec![3, -1]))).unwrap();
    assert!(scatter_new(&at, &values, Count::Each(&less), None, Duplicates::Last).is_err());
    assert!(repeat(&at, 1, Count::Each(&less)).is_err());
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let a = ints(&[4, 6], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let shape = |sizes: &[i64]| reshape(&a, 1, sizes).map(|b| b.shape());
    assert_eq!(shape(&[-1, 2]).unwrap(), [Some(2), None, Some(2)]);
    assert_eq!(shape(&[2, -1]).unwrap(), [Some(2), Some(2), None]);
    assert_eq!(shape(&[-1]).unwrap(), [Some(2), None]);
    for (sizes, why) in [
        (&[-1, 3][..], "list 0 of axis 1 (row 0) has 4"),
        (&[4][..], "list 1 of axis 1 (row 1) has 6"),
        (&[-1, -1][..], "only one"),
        (&[2, -3][..], "size 1 is -3"),
        (&[][..], "at least one"),
        (&[-1, 0][..], "has 4"),
    ] {
        let e = shape(sizes).unwrap_err().to_string();
        assert!(e.contains(why), "{sizes:?}: {e}");
    }
    let e = squeeze(&a, 1).unwrap_err().to_string();
    assert!(e.contains("list 0 of axis 1 (row 0) has 4"), "{e}");
    assert!(unsqueeze(&a, 0).is_err() && unsqueeze(&a, 3).is_err());
    assert!("(,]".parse::<Closure>().is_err() && "Right".parse::<Closure>().is_err());
    for (name, ends) in [("both", "[]"), ("left", "[)"), ("right", "(]"), ("none", "()")] {
        assert_eq!(name.parse::<Closure>().unwrap(), ends.parse::<Closure>().unwrap());
    }
    let open = between(&a, &a, None, None, Closure::Both).unwrap();
    assert_eq!(open, a);
}
