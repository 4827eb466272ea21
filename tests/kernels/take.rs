//! `take`: elements at given indices; and reversed lists.

use std::sync::Arc;

use arrow::array::{AsArray, Int32Array};
use arrow::datatypes::Int32Type;
use proptest::prelude::*;
use serrate::Error;
use serrate::array::{Layout, RaggedArray};
use serrate::kernels::CountArgument;
use serrate::kernels::indices::mask_from_indices;
use serrate::kernels::scatter::{DuplicateWrites, scatter};
use serrate::kernels::take::{reverse, take};

use crate::common::torture::{Node, Spec, assert_alike, decode_ragged, draw_torture, seed_random};
use crate::configure_cases;
use crate::support::{draw_beside, int_lists, make_lists, resolve_index, some_leaf, zip_nodes};

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn taken_elements_equal_the_reference(seed: u64, levels in 1usize..4, axis in 1usize..4) {
        let mut rng = seed_random(seed);
        let b = draw_beside(some_leaf(&mut rng), levels, axis, &mut rng);
        let found = take(&b.array, &b.at).unwrap();
        let expected: Vec<Node> = b.case.rows.iter().zip(&b.rows).map(|(x, i)| {
            zip_nodes(x, i, b.axis - 1, &mut |x, i| {
                if x.is_null() || i.is_null() {
                    return Node::Null;
                }
                Node::List(i.children().iter().map(|i| match i {
                    Node::Int(i) => x.children()[resolve_index(x.children(), *i)].clone(),
                    _ => Node::Null,
                }).collect())
            })
        }).collect();
        assert_alike(&decode_ragged(&found), &expected);
        // Writing elements back to the indices from which they were taken changes nothing.
        let back = scatter(&b.array, &b.at, &found, DuplicateWrites::Last).unwrap();
        let expected: Vec<Node> = b.case.rows.iter().zip(&b.rows).map(|(x, i)| {
            zip_nodes(x, i, b.axis - 1, &mut |x, _| x.clone())
        }).collect();
        assert_alike(&decode_ragged(&back), &expected);
    }

    #[test]
    fn reversing_twice_gives_the_original(seed: u64, levels in 1usize..4, axis in 1usize..4) {
        let mut rng = seed_random(seed);
        let case = draw_torture(&Spec::new(levels, some_leaf(&mut rng)), &mut rng);
        let a = case.ragged();
        let axis = axis.min(levels);
        let k = i64::try_from(axis).unwrap();
        let back = reverse(&a, k).unwrap();
        prop_assert_eq!(&reverse(&back, k).unwrap(), &a);
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(axis - 1, &mut |l| match l {
            Node::List(l) => Node::List(l.iter().rev().cloned().collect()),
            l => l.clone(),
        })).collect();
        assert_alike(&decode_ragged(&back), &expected);
    }
}

#[test]
fn indices_out_of_range_are_named() {
    let a = int_lists(&[3, 2], &[1, 2, 3, 4, 5]);
    let at = int_lists(&[1, 3], &[0, 1, -2, 2]);
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
    assert_eq!(named(scatter(&a, &at, &at, DuplicateWrites::Last).unwrap_err()), (1, 2, 2, 2));
    assert_eq!(named(mask_from_indices(&at, CountArgument::All(2)).unwrap_err()), (1, 2, 2, 2));
    let at = int_lists(&[1, 0], &[-4]);
    assert_eq!(named(take(&a, &at).unwrap_err()), (0, 0, -4, 3));
    // The error is the same for an array with nulls.
    let holes =
        make_lists(&[3, 2], Arc::new(Int32Array::from(vec![Some(1), None, None, None, Some(5)])));
    assert_eq!(named(take(&holes, &at).unwrap_err()), (0, 0, -4, 3));
    let text = make_lists(&[1, 0], Arc::new(arrow::array::StringArray::from(vec!["0"])));
    assert!(take(&a, &text).is_err());
    let flat = RaggedArray::try_new(2, vec![], Arc::new(Int32Array::from(vec![0, 0]))).unwrap();
    assert!(take(&a, &flat).is_err() && take(&flat, &a).is_err());
}

#[test]
fn results_share_the_offsets_of_the_indices() {
    let a = int_lists(&[3, 2], &[1, 2, 3, 4, 5]);
    let at = int_lists(&[1, 3], &[0, 1, -2, 0]);
    let out = take(&a, &at).unwrap();
    assert_eq!(out.leaves().as_primitive::<Int32Type>().values(), &[1, 5, 4, 4]);
    let offsets = |a: &RaggedArray| match a.axes()[0].layout() {
        Layout::Ragged(o) => o.clone(),
        Layout::Uniform { .. } => panic!("uniform"),
    };
    assert!(offsets(&out).ptr_eq(&offsets(&at)));
    let written = scatter(&a, &at, &out, DuplicateWrites::Last).unwrap();
    assert!(offsets(&written).ptr_eq(&offsets(&a)));
}
