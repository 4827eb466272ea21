//! Lengths, counts and shapes of arrays.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use serrate::kernels::shape;

use crate::common::torture::{
    Node, Spec, assert_alike, decode_ragged, decode_rows, draw_torture, one_of, seed_random,
};
use crate::configure_cases;

fn make_int(n: usize) -> Node {
    Node::Int(n as i64)
}

fn find_extents(node: &Node, levels: usize) -> Vec<usize> {
    let mut out = vec![0; levels];
    fn visit(node: &Node, out: &mut [usize]) {
        if let [own, below @ ..] = out {
            *own = (*own).max(node.children().len());
            node.children().iter().for_each(|c| visit(c, below));
        }
    }
    visit(node, &mut out);
    out
}

proptest! {
    #![proptest_config(configure_cases(150))]

    #[test]
    fn lengths_counts_and_shapes_equal_the_reference(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&[DataType::UInt8, DataType::Utf8, DataType::Float32], &mut rng).clone();
        let case = draw_torture(&Spec::new(levels, leaf), &mut rng);
        let a = case.ragged();
        for axis in 1..=levels {
            let own =
                |n: &Node| if n.is_null() { Node::Null } else { make_int(n.children().len()) };
            let expected: Vec<Node> =
                case.rows.iter().map(|r| r.map_at(axis - 1, &mut |n| own(n))).collect();
            let found = shape::lengths(&a, axis as i64).unwrap();
            assert_alike(&decode_ragged(&found), &expected);
            let from_inside = shape::lengths(&a, axis as i64 - levels as i64 - 1).unwrap();
            prop_assert_eq!(&found, &from_inside);
        }
        let counts: ArrayRef = Arc::new(shape::count(&a).unwrap());
        let expected: Vec<Node> = case.rows.iter().map(|r| match r {
            Node::Null => Node::Null,
            r => make_int(r.leaves_below(levels).iter().filter(|l| !l.is_null()).count()),
        }).collect();
        assert_alike(&decode_rows(&counts), &expected);

        let per_row = |f: &dyn Fn(&Node) -> Vec<Node>| -> Vec<Node> {
            case.rows.iter().map(|r| match r {
                Node::Null => Node::Null,
                r => Node::List(f(r)),
            }).collect()
        };
        let expected = per_row(&|r| find_extents(r, levels).into_iter().map(make_int).collect());
        assert_alike(&decode_ragged(&shape::row_max_shapes(&a).unwrap()), &expected);
        let sizes = a.shape();
        let expected = per_row(&|r| {
            let own = std::iter::once(make_int(r.children().len()));
            own.chain(sizes[2..].iter().map(|s| s.map_or(Node::Int(-1), make_int))).collect()
        });
        assert_alike(&decode_ragged(&shape::row_shapes(&a).unwrap()), &expected);
    }
}

#[test]
fn arrays_of_the_torture_generator_decode_to_their_rows() {
    let mut kinds = std::collections::HashSet::new();
    let (mut sliced, mut hidden) = (0, 0);
    for seed in 0..200 {
        let mut rng = seed_random(seed);
        let leaf = one_of(&[DataType::Int32, DataType::Utf8, DataType::Boolean], &mut rng).clone();
        let case = draw_torture(&Spec::new(1 + (seed % 3) as usize, leaf), &mut rng);
        assert_alike(&decode_rows(&case.array), &case.rows);
        assert_alike(&decode_ragged(&case.ragged()), &case.rows);
        kinds.extend(case.kinds.iter().map(std::mem::discriminant));
        if let Some(list) = case.array.as_any().downcast_ref::<arrow::array::ListArray>() {
            sliced += usize::from(list.value_offsets()[0] > 0);
            hidden +=
                usize::from((0..list.len()).any(|i| list.is_null(i) && list.value_length(i) > 0));
        }
    }
    assert_eq!(kinds.len(), 3);
    assert!(
        sliced > 10 && hidden > 10,
        "{sliced} sliced arrays, {hidden} with elements in NULL lists"
    );
}

#[test]
fn axes_that_do_not_exist_are_named() {
    let mut rng = seed_random(3);
    let a = draw_torture(&Spec::new(2, DataType::Int8), &mut rng).ragged();
    let message = |axis| shape::lengths(&a, axis).unwrap_err().to_string();
    assert!(message(0).contains("axis 0 is the rows"), "{}", message(0));
    assert!(message(3).contains("no axis 3"), "{}", message(3));
    assert!(message(-4).contains("no axis -4"), "{}", message(-4));
}
