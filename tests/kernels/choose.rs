//! Filter, gather, search.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimeUnit};
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::{Offsets, RaggedArray};
use serrate::kernels::filter::filter;
use serrate::kernels::gather::{filter_rows, take_ranges, take_rows};
use serrate::kernels::search::{SearchSide, searchsorted};

use crate::cases;
use crate::common::torture::{
    Node, Random, Spec, assert_alike, decode, encode, meaning, one_of, plain, random, torture,
};

fn any_leaf(rng: &mut Random) -> DataType {
    let types = [
        DataType::Int8,
        DataType::Float64,
        DataType::Utf8,
        DataType::Boolean,
        DataType::UInt32,
        DataType::Float16,
    ];
    one_of(&types, rng).clone()
}

/// Draws a mask with `levels` of the levels of `row`, sometimes null where the row is not.
fn mask_of(row: &Node, levels: usize, rng: &mut Random) -> Node {
    if levels == 0 {
        return match rng.random_range(0..8) {
            0 => Node::Null,
            n => Node::Bool(n % 2 == 0),
        };
    }
    if rng.random_range(0..12) == 0 {
        return Node::Null;
    }
    match row {
        // Under a null list, the mask may have any value.
        Node::Null => Node::List(
            (0..rng.random_range(0..3)).map(|_| mask_of(&Node::Null, levels - 1, rng)).collect(),
        ),
        row => Node::List(row.children().iter().map(|c| mask_of(c, levels - 1, rng)).collect()),
    }
}

fn kept(row: &Node, mask: &Node, levels: usize) -> Node {
    if row.is_null() {
        return Node::Null;
    }
    if mask.is_null() {
        return Node::List(Vec::new());
    }
    let pairs = row.children().iter().zip(mask.children());
    Node::List(if levels == 1 {
        pairs.filter(|(_, m)| **m == Node::Bool(true)).map(|(c, _)| c.clone()).collect()
    } else {
        pairs.map(|(c, m)| kept(c, m, levels - 1)).collect()
    })
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn masks_on_every_axis(seed: u64, levels in 1usize..4) {
        let mut rng = random(seed);
        let case = torture(&Spec::new(levels, any_leaf(&mut rng)), &mut rng);
        let axis = rng.random_range(1..=levels);
        let masks: Vec<Node> = case.rows.iter().map(|r| mask_of(r, axis, &mut rng)).collect();
        let mask = plain(axis, &DataType::Boolean, &masks);
        let found = filter(&case.ragged(), &mask).unwrap();
        let expected: Vec<Node> =
            case.rows.iter().zip(&masks).map(|(r, m)| kept(r, m, axis)).collect();
        assert_alike(&meaning(&found), &expected);
    }

    #[test]
    fn gathering_rows(seed: u64, levels in 0usize..4) {
        let mut rng = random(seed);
        let case = torture(&Spec::new(levels, any_leaf(&mut rng)), &mut rng);
        let a = case.ragged();
        let n = case.rows.len();
        let wanted: Vec<Option<usize>> = (0..rng.random_range(0..12))
            .map(|_| if n == 0 || rng.random_range(0..7) == 0 { None } else { Some(rng.random_range(0..n)) })
            .collect();
        let positions: UInt64Array = wanted.iter().map(|w| w.map(|w| w as u64)).collect();
        let expected: Vec<Node> =
            wanted.iter().map(|w| w.map_or(Node::Null, |w| case.rows[w].clone())).collect();
        assert_alike(&meaning(&take_rows(&a, &positions).unwrap()), &expected);

        let keep: Vec<Option<bool>> = (0..n)
            .map(|_| *one_of(&[Some(true), Some(false), None], &mut rng)).collect();
        let expected: Vec<Node> = case.rows.iter().zip(&keep)
            .filter(|(_, k)| **k == Some(true)).map(|(r, _)| r.clone()).collect();
        assert_alike(&meaning(&filter_rows(&a, &BooleanArray::from(keep)).unwrap()), &expected);

        let ranges: Vec<_> = (0..rng.random_range(0..5)).map(|_| {
            let (x, y) = (rng.random_range(0..=n), rng.random_range(0..=n));
            x.min(y)..x.max(y)
        }).collect();
        let expected: Vec<Node> =
            ranges.iter().flat_map(|r| case.rows[r.clone()].to_vec()).collect();
        assert_alike(&meaning(&take_ranges(&a, ranges).unwrap()), &expected);
    }

    #[test]
    fn searching_sorted_lists(seed: u64) {
        let mut rng = random(seed);
        let types = [
            DataType::Int8, DataType::UInt64, DataType::Float32, DataType::Float64, DataType::Utf8,
            DataType::Int64,
        ];
        let leaf = one_of(&types, &mut rng).clone();
        let mut spec = Spec::new(1, leaf.clone());
        spec.odd_floats = true;
        spec.reach = 6;
        let mut case = torture(&spec, &mut rng);
        for row in &mut case.rows {
            if let Node::List(v) = row {
                v.sort_by(order);
            }
        }
        case.array = encode(&spec, &case.kinds, &case.rows, &mut rng);
        let a = case.ragged();
        let spec = Spec { null_lists: false, ..spec };
        let needles: Vec<Node> =
            case.rows.iter().map(|_| crate::common::torture::tree(&spec, &[], &mut rng)).collect();
        let typed = plain(0, &leaf, &needles).leaves().clone();
        // Needles of another numeric type are found, too.
        let other = match &leaf {
            DataType::Utf8 => typed.clone(),
            t if t.is_floating() => cast(&typed, &DataType::Float64).unwrap(),
            _ => cast(&typed, one_of(&[DataType::Int64, DataType::Float64, DataType::UInt8], &mut rng)).unwrap(),
        };
        for side in [SearchSide::Left, SearchSide::Right] {
            let place = |row: &Node, needle: &Node| match (row, needle) {
                (Node::Null, _) | (_, Node::Null) => Node::Null,
                (row, needle) => Node::Int(row.children().iter().filter(|v| {
                    match order(v, needle) {
                        std::cmp::Ordering::Less => true,
                        std::cmp::Ordering::Equal => side == SearchSide::Right,
                        std::cmp::Ordering::Greater => false,
                    }
                }).count() as i64),
            };
            let expected: Vec<Node> =
                case.rows.iter().zip(&needles).map(|(r, n)| place(r, n)).collect();
            let found: ArrayRef = Arc::new(searchsorted(&a, &typed, side).unwrap());
            assert_alike(&decode(&found), &expected);
            if other.null_count() == typed.null_count() {
                let found: ArrayRef = Arc::new(searchsorted(&a, &other, side).unwrap());
                assert_alike(&decode(&found), &expected);
            }
            if let Some(needle) = needles.first() {
                let scalar = arrow::array::Scalar::new(typed.slice(0, 1));
                let found: ArrayRef = Arc::new(searchsorted(&a, &scalar, side).unwrap());
                let expected: Vec<Node> = case.rows.iter().map(|r| place(r, needle)).collect();
                assert_alike(&decode(&found), &expected);
            }
        }
    }

    #[test]
    fn unsorted_lists_do_not_panic(seed: u64) {
        let mut rng = random(seed);
        let case = torture(&Spec::new(1, DataType::Float32), &mut rng);
        let found = searchsorted(&case.ragged(), &Float64Array::new_scalar(1.5), SearchSide::Left).unwrap();
        for (place, row) in found.iter().zip(&case.rows) {
            prop_assert_eq!(place.is_none(), row.is_null());
            prop_assert!(place.unwrap_or(0) as usize <= row.children().len());
        }
    }
}

/// Orders numbers before NaN, and NaN before null.
fn order(a: &Node, b: &Node) -> std::cmp::Ordering {
    match (a, b) {
        (Node::Null, _) | (_, Node::Null) => a.is_null().cmp(&b.is_null()),
        (Node::Text(a), Node::Text(b)) => a.cmp(b),
        _ => {
            let (a, b) = (a.float().unwrap(), b.float().unwrap());
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
    }
}

#[test]
fn masks_that_do_not_fit_are_refused() {
    let rows = |lengths: &[usize]| -> RaggedArray {
        let n: usize = lengths.iter().sum();
        let axis = Offsets::from_lengths(lengths.iter().copied()).unwrap().into();
        let leaves = Arc::new(BooleanArray::from(vec![true; n]));
        RaggedArray::try_new(lengths.len(), vec![axis], leaves).unwrap()
    };
    let says = |a: &RaggedArray, m: &RaggedArray, what: &str| {
        let e = filter(a, m).unwrap_err().to_string();
        assert!(e.contains(what), "{e}");
    };
    let a = rows(&[2, 0, 3]);
    says(
        &a,
        &rows(&[2, 0, 2]),
        "list 2 of axis 1 (row 2) has 3 element(s) on the left and 2 on the right",
    );
    says(&a, &rows(&[2, 0]), "3 row(s) on the left and 2 on the right");
    let numbers = a.with_leaves(Arc::new(Int64Array::from(vec![1; 5]))).unwrap();
    says(
        &a,
        &numbers,
        "the mask: expected booleans (compare or cast the values first), found Int64",
    );
    let flat =
        RaggedArray::try_new(3, vec![], Arc::new(BooleanArray::from(vec![true; 3]))).unwrap();
    says(&a, &flat, "0 level(s)");
    // A mask without false values shares all buffers.
    let same = filter(&numbers, &a).unwrap();
    let pointer = |a: &RaggedArray| a.leaves().to_data().buffers()[0].as_ptr();
    assert_eq!(pointer(&same), pointer(&numbers));
}

#[test]
fn needles_of_other_units_are_exact() {
    let days = arrow::array::Date32Array::from(vec![10, 11, 12]);
    let axis = Offsets::from_lengths([3]).unwrap().into();
    let a = RaggedArray::try_new(1, vec![axis], Arc::new(days)).unwrap();
    // One second after the start of day 11.
    let second = arrow::array::TimestampSecondArray::from(vec![11 * 86_400 + 1]);
    assert_eq!(searchsorted(&a, &second, SearchSide::Left).unwrap().values(), &[2]);
    let day = arrow::array::TimestampSecondArray::from(vec![11 * 86_400]);
    assert_eq!(searchsorted(&a, &day, SearchSide::Left).unwrap().values(), &[1]);
    let text = arrow::array::StringArray::new_scalar("1970-01-12");
    assert_eq!(searchsorted(&a, &text, SearchSide::Right).unwrap().values(), &[2]);
    let e = searchsorted(&a, &BooleanArray::new_scalar(true), SearchSide::Left)
        .unwrap_err()
        .to_string();
    assert!(e.contains("comparable with Date32"), "{e}");
    let times = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let fine = a.with_leaves(cast(a.leaves(), &times).unwrap()).unwrap();
    assert_eq!(searchsorted(&fine, &second, SearchSide::Left).unwrap().values(), &[2]);
    let floats = Float64Array::from(vec![-0.0, 0.0, f64::NAN]);
    let a = a.with_leaves(Arc::new(floats)).unwrap();
    assert_eq!(a.leaves().as_primitive::<Float64Type>().len(), 3);
    assert_eq!(
        searchsorted(&a, &Int64Array::new_scalar(0), SearchSide::Left).unwrap().values(),
        &[0]
    );
    assert_eq!(
        searchsorted(&a, &Int64Array::new_scalar(0), SearchSide::Right).unwrap().values(),
        &[2]
    );
    let nan = Float64Array::new_scalar(f64::NAN);
    assert_eq!(searchsorted(&a, &nan, SearchSide::Left).unwrap().values(), &[2]);
    assert_eq!(searchsorted(&a, &nan, SearchSide::Right).unwrap().values(), &[3]);
}
