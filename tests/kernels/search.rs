//! `searchsorted`: positions of values in sorted lists.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, Scalar,
    UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};
use proptest::prelude::*;
use serrate::array::{Offsets, RaggedArray};
use serrate::kernels::search::{SearchSide, searchsorted, searchsorted_lists};
use serrate::kernels::sort::{SortOrder, sort};

use crate::common::torture::{
    Node, Spec, assert_alike, build_plain, decode_rows, draw_torture, draw_tree, encode_nodes,
    one_of, seed_random,
};
use crate::configure_cases;
use crate::support::{compare_nodes, draw_like};

proptest! {
    #![proptest_config(configure_cases(250))]

    #[test]
    fn positions_in_sorted_lists_equal_the_reference(seed: u64) {
        let mut rng = seed_random(seed);
        let types = [
            DataType::Int8, DataType::UInt64, DataType::Float32, DataType::Float64, DataType::Utf8,
            DataType::Int64,
        ];
        let leaf = one_of(&types, &mut rng).clone();
        let mut spec = Spec::new(1, leaf.clone());
        spec.odd_floats = true;
        spec.reach = 6;
        let mut case = draw_torture(&spec, &mut rng);
        for row in &mut case.rows {
            if let Node::List(v) = row {
                v.sort_by(compare_nodes);
            }
        }
        case.array = encode_nodes(&spec, &case.kinds, &case.rows, &mut rng);
        let a = case.ragged();
        let spec = Spec { null_lists: false, ..spec };
        let needles: Vec<Node> =
            case.rows.iter().map(|_| draw_tree(&spec, &[], &mut rng)).collect();
        let typed = build_plain(0, &leaf, &needles).leaves().clone();
        // Values to search for may have another numeric type than the lists.
        let other = match &leaf {
            DataType::Utf8 => typed.clone(),
            t if t.is_floating() => cast(&typed, &DataType::Float64).unwrap(),
            _ => cast(&typed, one_of(&[DataType::Int64, DataType::Float64, DataType::UInt8], &mut rng)).unwrap(),
        };
        for side in [SearchSide::Left, SearchSide::Right] {
            let place = |row: &Node, needle: &Node| match (row, needle) {
                (Node::Null, _) | (_, Node::Null) => Node::Null,
                (row, needle) => Node::Int(row.children().iter().filter(|v| {
                    match compare_nodes(v, needle) {
                        std::cmp::Ordering::Less => true,
                        std::cmp::Ordering::Equal => side == SearchSide::Right,
                        std::cmp::Ordering::Greater => false,
                    }
                }).count() as i64),
            };
            let expected: Vec<Node> =
                case.rows.iter().zip(&needles).map(|(r, n)| place(r, n)).collect();
            let found: ArrayRef = Arc::new(searchsorted(&a, &typed, side).unwrap());
            assert_alike(&decode_rows(&found), &expected);
            if other.null_count() == typed.null_count() {
                let found: ArrayRef = Arc::new(searchsorted(&a, &other, side).unwrap());
                assert_alike(&decode_rows(&found), &expected);
            }
            if let Some(needle) = needles.first() {
                let scalar = arrow::array::Scalar::new(typed.slice(0, 1));
                let found: ArrayRef = Arc::new(searchsorted(&a, &scalar, side).unwrap());
                let expected: Vec<Node> = case.rows.iter().map(|r| place(r, needle)).collect();
                assert_alike(&decode_rows(&found), &expected);
            }
        }
    }

    #[test]
    fn unsorted_lists_do_not_panic(seed: u64) {
        let mut rng = seed_random(seed);
        let case = draw_torture(&Spec::new(1, DataType::Float32), &mut rng);
        let found = searchsorted(&case.ragged(), &Float64Array::new_scalar(1.5), SearchSide::Left).unwrap();
        for (place, row) in found.iter().zip(&case.rows) {
            prop_assert_eq!(place.is_none(), row.is_null());
            prop_assert!(place.unwrap_or(0) as usize <= row.children().len());
        }
    }
}

proptest! {
    #![proptest_config(configure_cases(150))]

    #[test]
    fn searchsorted_lists_equals_searchsorted_for_each_list(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&[DataType::Int16, DataType::Float64, DataType::Utf8], &mut rng).clone();
        let mut spec = Spec::new(levels, leaf.clone());
        spec.reach = 6;
        let case = draw_torture(&spec, &mut rng);
        let a = sort(&case.ragged(), SortOrder::ASCENDING).unwrap();
        let below = Spec { null_lists: false, ..Spec::new(0, leaf.clone()) };
        // One value to search for in each innermost list, then three.
        let mut one = || draw_tree(&below, &[], &mut rng);
        let needles: Vec<Node> =
            case.rows.iter().map(|r| draw_like(r, levels - 1, &mut one, false)).collect();
        let single = build_plain(levels - 1, &leaf, &needles);
        let mut three = || Node::List((0..3).map(|_| draw_tree(&below, &[], &mut rng)).collect());
        let several: Vec<Node> =
            case.rows.iter().map(|r| draw_like(r, levels - 1, &mut three, false)).collect();
        let several = build_plain(levels, &leaf, &several);
        let lists = a.inner(levels - 1).unwrap();
        for side in [SearchSide::Left, SearchSide::Right] {
            let found = searchsorted_lists(&a, &single, side).unwrap();
            let expected = searchsorted(&lists, single.leaves(), side).unwrap();
            prop_assert_eq!(found.leaves().as_primitive::<Int64Type>(), &expected);
            let found = searchsorted_lists(&a, &several, side).unwrap();
            prop_assert_eq!(found.lengths(-1).unwrap(), several.lengths(-1).unwrap());
            for i in 0..3 {
                let nth = UInt64Array::from_iter_values((0..lists.len() as u64).map(|l| l * 3 + i));
                let needle = arrow::compute::take(several.leaves(), &nth, None).unwrap();
                let expected = searchsorted(&lists, &needle, side).unwrap();
                let found = arrow::compute::take(found.leaves(), &nth, None).unwrap();
                prop_assert_eq!(found.as_primitive::<Int64Type>(), &expected);
            }
        }
    }
}

#[test]
fn times_in_other_units_are_compared_exactly() {
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

#[test]
fn decimals_are_compared_by_value_with_every_numeric_type() {
    let array = |leaves: ArrayRef| {
        let axis = Offsets::from_lengths([leaves.len()]).unwrap().into();
        RaggedArray::try_new(1, vec![axis], leaves).unwrap()
    };
    let integers = array(Arc::new(Int64Array::from(vec![i64::MIN, -1000, 1, 2, i64::MAX])));
    let floats =
        array(Arc::new(Float64Array::from(vec![f64::NEG_INFINITY, -1e30, -5.0, 5.0, f64::NAN])));
    let decimals = array(cast(integers.leaves(), &DataType::Decimal128(20, 0)).unwrap());
    // The values to search for are 0.5, 1.0 and -999.5.
    for (tenths, among_integers, among_floats) in [(5, 2, 3), (10, 2, 3), (-9995, 2, 2)] {
        let needle = Decimal128Array::from(vec![tenths]).with_precision_and_scale(5, 1).unwrap();
        let find = |a| searchsorted(a, &Scalar::new(&needle), SearchSide::Left).unwrap().value(0);
        assert_eq!((find(&integers), find(&decimals)), (among_integers, among_integers));
        assert_eq!(find(&floats), among_floats);
    }
    let float = Float64Array::new_scalar(0.25);
    assert_eq!(searchsorted(&decimals, &float, SearchSide::Left).unwrap().value(0), 2);
}

#[test]
fn values_of_unsuitable_types_are_refused() {
    let rows = |lengths: &[usize]| -> RaggedArray {
        let n: usize = lengths.iter().sum();
        let axis = Offsets::from_lengths(lengths.iter().copied()).unwrap().into();
        let leaves = Arc::new(Int64Array::from(vec![1; n]));
        RaggedArray::try_new(lengths.len(), vec![axis], leaves).unwrap()
    };
    let a = rows(&[2, 1]);
    let flat = RaggedArray::try_new(2, vec![], Arc::new(Int64Array::from(vec![1, 2]))).unwrap();
    assert!(searchsorted_lists(&flat, &a, SearchSide::Left).is_err());
    let e = searchsorted_lists(&a, &rows(&[1]), SearchSide::Left).unwrap_err().to_string();
    assert!(e.contains("2 row(s) on the left and 1 on the right"), "{e}");
}
