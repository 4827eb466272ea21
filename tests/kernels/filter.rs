//! `filter`: elements selected by a mask.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, Int64Array};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::{Offsets, RaggedArray};
use serrate::kernels::filter::{compress, filter};
use serrate::kernels::reshape::flatten_all;

use crate::common::torture::{
    Node, Random, Spec, assert_alike, build_plain, decode_ragged, draw_torture, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::{any_leaf, draw_mask};

/// Draws a mask of `levels` levels for the lists of `row`. Some of its lists are null although
/// those of the row are not.
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
        // If the list of the row is null, the mask may have a list of any length.
        Node::Null => Node::List(
            (0..rng.random_range(0..3)).map(|_| mask_of(&Node::Null, levels - 1, rng)).collect(),
        ),
        row => Node::List(row.children().iter().map(|c| mask_of(c, levels - 1, rng)).collect()),
    }
}

fn keep_elements(row: &Node, mask: &Node, levels: usize) -> Node {
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
        pairs.map(|(c, m)| keep_elements(c, m, levels - 1)).collect()
    })
}

proptest! {
    #![proptest_config(configure_cases(250))]

    #[test]
    fn filter_keeps_the_elements_where_the_mask_is_true(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let case = draw_torture(&Spec::new(levels, any_leaf(&mut rng)), &mut rng);
        let axis = rng.random_range(1..=levels);
        let masks: Vec<Node> = case.rows.iter().map(|r| mask_of(r, axis, &mut rng)).collect();
        let mask = build_plain(axis, &DataType::Boolean, &masks);
        let found = filter(&case.ragged(), &mask).unwrap();
        let expected: Vec<Node> =
            case.rows.iter().zip(&masks).map(|(r, m)| keep_elements(r, m, axis)).collect();
        assert_alike(&decode_ragged(&found), &expected);
    }
}

proptest! {
    #![proptest_config(configure_cases(150))]

    #[test]
    fn compress_equals_filter_and_flatten(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let types = [DataType::UInt16, DataType::Float32, DataType::Utf8, DataType::Boolean];
        let leaf = one_of(&types, &mut rng).clone();
        let case = draw_torture(&Spec { longest: 40, ..Spec::new(levels, leaf) }, &mut rng);
        let a = case.ragged();
        let mask = draw_mask(&case.rows, rng.random_range(1..=levels), &mut rng);
        let found = compress(&a, &mask).unwrap();
        let expected = flatten_all(&filter(&a, &mask).unwrap()).unwrap();
        prop_assert_eq!(found.axes().len(), 1);
        prop_assert_eq!(found.leaf_type(), a.leaf_type());
        assert_alike(&decode_ragged(&found), &decode_ragged(&expected));
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
    // A mask that is true everywhere returns the same buffers.
    let same = filter(&numbers, &a).unwrap();
    let pointer = |a: &RaggedArray| a.leaves().to_data().buffers()[0].as_ptr();
    assert_eq!(pointer(&same), pointer(&numbers));
}
