//! Masked reductions, occurrences, histograms, search in lists.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Int64Array, StringArray, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::{Offsets, RaggedArray};
use serrate::kernels::filter::{compress, filter};
use serrate::kernels::histogram::{Histogram, value_counts};
use serrate::kernels::isin::isin;
use serrate::kernels::occurrences::{any_value, count_values};
use serrate::kernels::reduce::{Reduction, reduce, reduce_where};
use serrate::kernels::reshape::flatten_all;
use serrate::kernels::search::{SearchSide, searchsorted, searchsorted_lists};
use serrate::kernels::sort::{Order, sort};

use crate::cases;
use crate::common::torture::{
    Node, Random, Spec, assert_alike, meaning, one_of, plain, random, torture, tree,
};

fn dictionary(keys: DataType) -> DataType {
    DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8))
}

/// Builds leaves with `levels` of the levels of `row`; some lists are null.
fn like(row: &Node, levels: usize, leaf: &mut dyn FnMut() -> Node, nulls: bool) -> Node {
    match (levels, row) {
        (0, _) => leaf(),
        (_, Node::Null) => Node::Null,
        (n, row) => {
            let children: Vec<Node> =
                row.children().iter().map(|c| like(c, n - 1, leaf, nulls)).collect();
            if nulls && children.len() == 1 { Node::Null } else { Node::List(children) }
        }
    }
}

fn mask(rows: &[Node], levels: usize, rng: &mut Random) -> RaggedArray {
    let mut leaf = || match rng.random_range(0..6) {
        0 => Node::Null,
        n => Node::Bool(n % 2 == 0),
    };
    let rows: Vec<Node> = rows.iter().map(|r| like(r, levels, &mut leaf, true)).collect();
    plain(levels, &DataType::Boolean, &rows)
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn reducing_where_is_reducing_what_is_filtered(seed: u64, levels in 1usize..4) {
        let mut rng = random(seed);
        let types = [DataType::Int16, DataType::Float32, DataType::Utf8, DataType::Boolean];
        let leaf = one_of(&types, &mut rng).clone();
        let mut spec = Spec::new(levels, leaf.clone());
        spec.odd_floats = true;
        let case = torture(&spec, &mut rng);
        let a = case.ragged();
        let mask = mask(&case.rows, rng.random_range(1..=levels), &mut rng);
        for how in [
            Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Count, Reduction::Size,
            Reduction::Last, Reduction::Nunique, Reduction::Median, Reduction::Any,
        ] {
            if how.output_type(&leaf).is_err() {
                continue;
            }
            // A mask of outer levels removes whole lists, and the results of reductions within
            // them.
            let axes = if mask.axes().len() == levels { vec![None, Some(-1)] } else { vec![None] };
            for axis in axes {
                let found = reduce_where(&a, &mask, how, axis).unwrap();
                let expected = reduce(&filter(&a, &mask).unwrap(), how, axis).unwrap();
                prop_assert_eq!(found.leaf_type(), expected.leaf_type());
                assert_alike(&meaning(&found), &meaning(&expected));
            }
        }
    }

    #[test]
    fn compressing_is_filtering_and_flattening(seed: u64, levels in 1usize..4) {
        let mut rng = random(seed);
        let types = [DataType::UInt16, DataType::Float32, DataType::Utf8, DataType::Boolean];
        let leaf = one_of(&types, &mut rng).clone();
        let case = torture(&Spec { longest: 40, ..Spec::new(levels, leaf) }, &mut rng);
        let a = case.ragged();
        let mask = mask(&case.rows, rng.random_range(1..=levels), &mut rng);
        let found = compress(&a, &mask).unwrap();
        let expected = flatten_all(&filter(&a, &mask).unwrap()).unwrap();
        prop_assert_eq!(found.axes().len(), 1);
        prop_assert_eq!(found.leaf_type(), a.leaf_type());
        assert_alike(&meaning(&found), &meaning(&expected));
    }

    #[test]
    fn occurrences_are_those_of_a_mask(seed: u64, levels in 0usize..4) {
        let mut rng = random(seed);
        let types = [
            DataType::Int8, DataType::UInt16, DataType::UInt32, DataType::Int64, DataType::Utf8,
            DataType::Float32,
        ];
        let leaf = one_of(&types, &mut rng).clone();
        let spec = Spec { reach: 3, longest: 9, ..Spec::new(levels, leaf.clone()) };
        let case = torture(&spec, &mut rng);
        let mut a = case.ragged();
        if leaf == DataType::Utf8 && seed % 2 == 0 {
            let keys = one_of(&[DataType::Int8, DataType::UInt32], &mut rng).clone();
            a = a.with_leaves(cast(a.leaves(), &dictionary(keys)).unwrap()).unwrap();
        }
        let wanted: ArrayRef = match leaf {
            DataType::Utf8 => Arc::new(StringArray::from(vec![*one_of(&["", "ab", "none"], &mut rng)])),
            _ => Arc::new(Int64Array::from(vec![rng.random_range(-4i64..400) % 5])),
        };
        let found = isin(&a, &wanted).unwrap();
        for axis in (0..=levels).map(|a| Some(a as i64)).chain([None]) {
            let counts = count_values(&a, &wanted, axis).unwrap();
            let expected = reduce(&found, Reduction::Sum, axis).unwrap();
            prop_assert_eq!(meaning(&counts), meaning(&expected));
            let any = any_value(&a, &wanted, axis).unwrap();
            let expected = reduce(&found, Reduction::Any, axis).unwrap();
            prop_assert_eq!(meaning(&any), meaning(&expected));
        }
    }

    #[test]
    fn histograms_count_what_is_there(seed: u64, parts in 1usize..4) {
        let mut rng = random(seed);
        let types = [
            DataType::Int8, DataType::Int16, DataType::Int32, DataType::UInt8, DataType::UInt16,
            DataType::UInt32, DataType::UInt64, DataType::Float64, DataType::Utf8, DataType::Boolean,
        ];
        let leaf = one_of(&types, &mut rng).clone();
        let mut spec = Spec::new(1, leaf.clone());
        spec.reach = *one_of(&[3, 90], &mut rng);
        let mut all: Vec<Node> = Vec::new();
        let mut one = Histogram::new(&leaf).unwrap();
        let mut other = Histogram::new(&leaf).unwrap();
        for part in 0..parts {
            let case = torture(&spec, &mut rng);
            let mut leaves = case.ragged().leaves().clone();
            if leaf == DataType::Utf8 && part % 2 == 0 {
                leaves = cast(&leaves, &dictionary(DataType::UInt16)).unwrap();
            }
            if part == 1 { other.add(&leaves).unwrap() } else { one.add(&leaves).unwrap() }
            all.extend(case.rows.iter().flat_map(|r| r.leaves_below(1)));
        }
        one.merge(&other).unwrap();
        let mut expected: Vec<(Node, u64)> = Vec::new();
        for node in all.into_iter().filter(|n| !n.is_null()) {
            match expected.iter_mut().find(|(n, _)| *n == node) {
                Some((_, count)) => *count += 1,
                None => expected.push((node, 1)),
            }
        }
        let (values, counts) = one.counts().unwrap();
        prop_assert_eq!(values.data_type(), &leaf);
        let flat = |values: &ArrayRef| {
            meaning(&RaggedArray::try_new(values.len(), vec![], values.clone()).unwrap())
        };
        let found: Vec<(Node, u64)> = flat(&values).into_iter().zip(counts.values().iter().copied()).collect();
        prop_assert_eq!(found.len(), expected.len());
        for pair in &expected {
            prop_assert!(found.contains(pair), "{:?} of {:?}", pair, found);
        }
        let again = sort(&RaggedArray::try_new(1, vec![Offsets::from_lengths([values.len()]).unwrap().into()], values.clone()).unwrap(), Order::ASCENDING).unwrap();
        prop_assert_eq!(again.leaves().as_ref(), values.as_ref());
        let (_, top) = one.top(2).unwrap();
        let mut most: Vec<u64> = expected.iter().map(|(_, n)| *n).collect();
        most.sort_by(|a, b| b.cmp(a));
        most.truncate(2);
        prop_assert_eq!(top.values().to_vec(), most);
    }

    #[test]
    fn needles_in_lists_of_their_own(seed: u64, levels in 1usize..4) {
        let mut rng = random(seed);
        let leaf = one_of(&[DataType::Int16, DataType::Float64, DataType::Utf8], &mut rng).clone();
        let mut spec = Spec::new(levels, leaf.clone());
        spec.reach = 6;
        let case = torture(&spec, &mut rng);
        let a = sort(&case.ragged(), Order::ASCENDING).unwrap();
        let below = Spec { null_lists: false, ..Spec::new(0, leaf.clone()) };
        // One needle per innermost list, then three.
        let mut one = || tree(&below, &[], &mut rng);
        let needles: Vec<Node> =
            case.rows.iter().map(|r| like(r, levels - 1, &mut one, false)).collect();
        let single = plain(levels - 1, &leaf, &needles);
        let mut three = || Node::List((0..3).map(|_| tree(&below, &[], &mut rng)).collect());
        let several: Vec<Node> =
            case.rows.iter().map(|r| like(r, levels - 1, &mut three, false)).collect();
        let several = plain(levels, &leaf, &several);
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
fn large_tables_and_odd_values_are_counted() {
    let many: ArrayRef = Arc::new(arrow::array::UInt32Array::from_iter_values(
        (0..3_000_000u32).map(|i| i % 1000 * 7),
    ));
    let (values, counts) = value_counts(&many).unwrap();
    assert_eq!((values.len(), counts.values().iter().sum::<u64>()), (1000, 3_000_000));
    assert!(counts.values().iter().all(|n| *n == 3000));
    let far: ArrayRef = Arc::new(arrow::array::UInt32Array::from(vec![u32::MAX, 5, u32::MAX]));
    let mut both = Histogram::new(&DataType::UInt32).unwrap();
    both.add(&many.slice(0, 2)).unwrap();
    both.add(&far).unwrap();
    let (values, counts) = both.counts().unwrap();
    let expected = arrow::array::UInt32Array::from(vec![0, 5, 7, u32::MAX]);
    assert_eq!(
        (values.as_ref(), counts.values().as_ref()),
        (&expected as &dyn Array, &[1u64, 1, 1, 2][..])
    );
    let odd: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN, 0.0, -0.0, -f32::NAN]));
    assert_eq!(value_counts(&odd).unwrap().1.values().as_ref(), &[2, 2]);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    assert!(both.add(&text).is_err());
    assert!(both.merge(&Histogram::new(&DataType::Utf8).unwrap()).is_err());
    let nothing: ArrayRef = Arc::new(arrow::array::NullArray::new(3));
    assert_eq!(value_counts(&nothing).unwrap().0.len(), 0);
    let list = DataType::new_list(DataType::Int8, true);
    assert!(Histogram::new(&list).is_err());
}

#[test]
fn masks_and_needles_that_do_not_fit_are_refused() {
    let rows = |lengths: &[usize]| -> RaggedArray {
        let n: usize = lengths.iter().sum();
        let axis = Offsets::from_lengths(lengths.iter().copied()).unwrap().into();
        let leaves = Arc::new(Int64Array::from(vec![1; n]));
        RaggedArray::try_new(lengths.len(), vec![axis], leaves).unwrap()
    };
    let a = rows(&[2, 1]);
    assert!(reduce_where(&a, &a, Reduction::Sum, None).is_err());
    let flat = RaggedArray::try_new(2, vec![], Arc::new(Int64Array::from(vec![1, 2]))).unwrap();
    assert!(searchsorted_lists(&flat, &a, SearchSide::Left).is_err());
    let e = searchsorted_lists(&a, &rows(&[1]), SearchSide::Left).unwrap_err().to_string();
    assert!(e.contains("2 row(s) on the left and 1 on the right"), "{e}");
}
