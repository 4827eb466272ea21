//! Axes that are added, removed, split and merged.

use arrow::array::Array;
use arrow::datatypes::DataType;
use proptest::prelude::*;
use serrate::array::RaggedArray;
use serrate::kernels::CountArgument;
use serrate::kernels::repeat::repeat;
use serrate::kernels::reshape::{flatten, flatten_all, reshape, squeeze, unsqueeze};

use crate::common::torture::{
    Node, Spec, are_alike, assert_alike, decode_ragged, draw_torture, seed_random,
};
use crate::configure_cases;
use crate::support::{int_lists, some_leaf};

fn same_buffer(a: &RaggedArray, b: &RaggedArray) -> bool {
    a.leaves().to_data().buffers()[0].as_ptr() == b.leaves().to_data().buffers()[0].as_ptr()
}

proptest! {
    #![proptest_config(configure_cases(150))]

    #[test]
    fn flattened_axes_equal_the_reference(seed: u64, levels in 1usize..5) {
        let mut rng = seed_random(seed);
        let mut spec = Spec::new(levels, DataType::Int16);
        spec.longest = 3;
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();
        for axis in 2..=levels {
            let join = |n: &Node| match n {
                Node::Null => Node::Null,
                n => Node::List(n.children().iter().flat_map(|c| c.children().to_vec()).collect()),
            };
            let expected: Vec<Node> =
                case.rows.iter().map(|r| r.map_at(axis - 2, &mut |n| join(n))).collect();
            let found = flatten(&a, axis as i64).unwrap();
            assert_alike(&decode_ragged(&found), &expected);
            prop_assert!(same_buffer(&found, &a));
        }
        let expected: Vec<Node> = case.rows.iter().map(|r| match r {
            Node::Null => Node::Null,
            r => Node::List(r.leaves_below(levels)),
        }).collect();
        let found = flatten_all(&a).unwrap();
        assert!(decode_ragged(&found).iter().zip(&expected).all(|(f, e)| are_alike(f, e)));
        prop_assert!(same_buffer(&found, &a));
    }
}

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn axes_are_added_removed_and_split_like_the_reference(seed: u64, levels in 1usize..4, axis in 1usize..5) {
        let mut rng = seed_random(seed);
        let spec = Spec::new(levels, some_leaf(&mut rng));
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();
        let axis = axis.min(levels + 1);
        let k = i64::try_from(axis).unwrap();
        let wider = unsqueeze(&a, k).unwrap();
        let expected: Vec<Node> = case.rows.iter()
            .map(|r| r.map_at(axis - 1, &mut |n| Node::List(vec![n.clone()]))).collect();
        assert_alike(&decode_ragged(&wider), &expected);
        prop_assert_eq!(&unsqueeze(&a, k - i64::try_from(levels + 2).unwrap()).unwrap(), &wider);
        prop_assert_eq!(&squeeze(&wider, k).unwrap(), &a);
        // Each element is repeated three times, and the lists are then split into lists of three.
        let axis = axis.min(levels);
        let k = i64::try_from(axis).unwrap();
        let long = repeat(&a, k, CountArgument::All(3)).unwrap();
        let cut = reshape(&long, k, &[-1, 3]).unwrap();
        let expected: Vec<Node> = case.rows.iter().map(|r| {
            r.map_at(axis, &mut |n| Node::List(vec![n.clone(); 3]))
        }).collect();
        assert_alike(&decode_ragged(&cut), &expected);
        let other = reshape(&long, k, &[3, -1, 1]).unwrap();
        for (row, expected) in decode_ragged(&other).iter().zip(&case.rows) {
            let (x, y) = (row.leaves_below(levels + 2), expected.leaves_below(levels));
            prop_assert_eq!(x.len(), 3 * y.len());
        }
    }
}

#[test]
fn the_axis_of_rows_cannot_be_merged() {
    let mut rng = seed_random(3);
    let a = draw_torture(&Spec::new(2, DataType::Int8), &mut rng).ragged();
    let merged = flatten(&a, 1).unwrap_err().to_string();
    assert!(merged.contains("would merge rows"), "{merged}");
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let a = int_lists(&[4, 6], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
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
}
