//! `pad`, compared with a reference on trees.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use serrate::Error;
use serrate::array::{Offsets, RaggedArray};
use serrate::dense::PaddingSide;
use serrate::kernels::RowArg;
use serrate::kernels::pad::{PadOptions, pad};

use super::tree::{N, any_nested_rows, to_trees};

/// Builds an element that padding adds: a leaf, or a list whose size is the first of `sizes` (none
/// is 0).
fn new_element(sizes: &[Option<i64>], fill: Option<i64>) -> N {
    let Some((size, rest)) = sizes.split_first() else { return fill.map_or(N::Null, N::Leaf) };
    let n = size.unwrap_or(0) as usize;
    N::List(vec![new_element(rest, fill); n])
}

fn pad_tree(tree: &N, sizes: &[Option<i64>], fill: Option<i64>, o: &PadOptions) -> N {
    let (Some((size, rest)), N::List(children)) = (sizes.split_first(), tree) else {
        return tree.clone();
    };
    let mut out: Vec<N> = children.iter().map(|c| pad_tree(c, rest, fill, o)).collect();
    if let Some(n) = size.map(|n| n as usize) {
        let new = new_element(rest, fill);
        match o.side {
            PaddingSide::Right => {
                if o.truncate {
                    out.truncate(n);
                }
                while out.len() < n {
                    out.push(new.clone());
                }
            }
            PaddingSide::Left => {
                if o.truncate && out.len() > n {
                    out.drain(..out.len() - n);
                }
                while out.len() < n {
                    out.insert(0, new.clone());
                }
            }
        }
    }
    N::List(out)
}

fn draw_size() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![1 => Just(None), 4 => (0i64..6).prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn pad_equals_the_reference(
        nested in any_nested_rows(),
        each in any::<[bool; 3]>(),
        sizes in prop::collection::vec([draw_size(), draw_size(), draw_size()], 6),
        left in any::<bool>(),
        truncate in any::<bool>(),
        fill in prop::option::of(0i64..100),
    ) {
        let levels = nested.kinds.len();
        let side = if left { PaddingSide::Left } else { PaddingSide::Right };
        let value = fill.map(|f| Arc::new(Int64Array::from(vec![f])) as ArrayRef);
        let options = PadOptions { side, truncate, fill: value, ..Default::default() };
        // Returns the size on level `k` for a row: its own if `each[k]` is set, otherwise that of
        // the first row.
        let of = |row: usize, k: usize| sizes[if each[k] { row } else { 0 }][k];
        let args: Vec<RowArg> = (0..levels)
            .map(|k| match each[k] {
                true => (0..nested.rows.len()).map(|r| of(r, k)).collect::<Int64Array>().into(),
                false => of(0, k).into(),
            })
            .collect();
        let expected: Vec<N> = nested
            .rows
            .iter()
            .enumerate()
            .map(|(r, t)| {
                let sizes: Vec<_> = (0..levels).map(|k| of(r, k)).collect();
                pad_tree(t, &sizes, fill, &options)
            })
            .collect();
        let array = nested.to_ragged(&DataType::Int16);
        let got = pad(&array, &args, &options).unwrap();
        prop_assert_eq!(got.leaf_type(), &DataType::Int16);
        prop_assert_eq!(to_trees(&got), expected);
    }
}

fn make_words() -> RaggedArray {
    let leaves = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let axis = Offsets::from_lengths([2, 0, 1]).unwrap().into();
    RaggedArray::try_new(3, vec![axis], leaves).unwrap()
}

#[test]
fn strings_are_padded_with_a_fill_value_or_null() {
    let dots: ArrayRef = Arc::new(StringArray::from(vec!["."]));
    let options = PadOptions { fill: Some(dots), side: PaddingSide::Left, ..Default::default() };
    let got = pad(&make_words(), &[3000.into()], &options).unwrap();
    let leaves = got.leaves().as_string::<i32>();
    assert_eq!(got.lengths(1).unwrap(), [3000; 3]);
    let text: Vec<_> = leaves.iter().flatten().filter(|v| *v != ".").collect();
    assert_eq!(text, ["a", "b", "c"]);
    assert_eq!((leaves.value(2998), leaves.value(2999), leaves.value(8999)), ("a", "b", "c"));
    let got = pad(&make_words(), &[1.into()], &PadOptions::default()).unwrap();
    assert_eq!(got.leaves().null_count(), 1);
}

#[test]
fn invalid_sizes_and_fill_values_are_refused() {
    let o = PadOptions::default();
    assert!(pad(&make_words(), &[], &o).is_err());
    let e = pad(&make_words(), &[(-1).into()], &o).unwrap_err().to_string();
    assert!(e.contains("-1") && e.contains("axis 1"), "{e}");
    let two = Int64Array::from(vec![1, 2]);
    assert!(pad(&make_words(), &[two.into()], &o).is_err());
    // An array that needs no padding is returned as it is.
    let same = pad(&make_words(), &[RowArg::NONE], &o).unwrap();
    assert_eq!(same, make_words());
    let numbers = make_words().with_leaves(Arc::new(Int64Array::from(vec![1, 2, 3]))).unwrap();
    for wrong in [vec![0.5], vec![], vec![1.0, 2.0]] {
        let fill: ArrayRef = Arc::new(Float64Array::from(wrong));
        assert!(pad(&numbers, &[3.into()], &PadOptions { fill: Some(fill), ..o.clone() }).is_err());
    }
}

#[test]
fn the_size_is_checked_before_memory_is_allocated() {
    for (a, n) in [(make_words(), i64::MAX), (make_words(), 5 << 30)] {
        let e = pad(&a, &[n.into()], &PadOptions::default()).unwrap_err();
        assert!(matches!(e, Error::TooLarge { .. }), "{e}");
    }
    // The offsets of new lists count towards the limit, even if the lists have no leaves.
    let axis = |n: usize| Offsets::from_lengths([n]).unwrap().into();
    let deep = RaggedArray::try_new(1, vec![axis(1), axis(1)], Arc::new(Int64Array::from(vec![1])));
    let sizes = [(1i64 << 40).into(), 0.into()];
    let e = pad(&deep.unwrap(), &sizes, &PadOptions::default()).unwrap_err();
    assert!(matches!(e, Error::TooLarge { .. }), "{e}");
}

#[test]
fn the_limit_counts_leaves_offsets_and_intermediate_results() {
    let fits = |a: &RaggedArray, sizes: &[RowArg], fill: Option<ArrayRef>, limit: u64| {
        let o = PadOptions { fill, limit: Some(limit), ..Default::default() };
        match pad(a, sizes, &o) {
            Ok(_) => true,
            Err(Error::TooLarge { .. }) => false,
            Err(e) => panic!("{e}"),
        }
    };
    let axis = |n: usize| Offsets::from_lengths([n]).unwrap().into();
    // The result has a thousand strings of a thousand bytes, and their offsets.
    let texts = Arc::new(StringArray::from(vec!["a"]));
    let texts = RaggedArray::try_new(1, vec![axis(1)], texts).unwrap();
    let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1000)]));
    assert!(!fits(&texts, &[1000.into()], Some(long.clone()), 990_000));
    assert!(fits(&texts, &[1000.into()], Some(long), 2_000_000));
    // A million lists without leaves take memory for offsets and for intermediate results.
    let deep = |n: usize| {
        let leaves = Arc::new(Int64Array::from(vec![1; n]));
        let lengths = Offsets::from_lengths(vec![1; n]).unwrap().into();
        RaggedArray::try_new(1, vec![axis(n), lengths], leaves).unwrap()
    };
    let sizes = [1_000_000.into(), 0.into()];
    assert!(!fits(&deep(1), &sizes, None, 20_000_000));
    assert!(fits(&deep(1), &sizes, None, 60_000_000));
    // The limit applies to the sum of all levels. The result has a thousand lists of a thousand
    // values, half of which are new.
    let half = pad(&deep(1000), &[RowArg::NONE, 500.into()], &PadOptions::default()).unwrap();
    assert!(!fits(&half, &[RowArg::NONE, 1000.into()], None, 8_000_000));
    assert!(fits(&half, &[RowArg::NONE, 1000.into()], None, 8_400_000));
    // Truncation adds no elements, so that the result is small.
    assert!(fits(&half, &[RowArg::NONE, 1.into()], None, 200_000));
}
