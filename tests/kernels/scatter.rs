//! `scatter`: values written to the elements at given indices.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array};
use proptest::prelude::*;
use serrate::Error;
use serrate::array::{ListKind, RaggedArray};
use serrate::kernels::CountArgument;
use serrate::kernels::indices::mask_from_indices;
use serrate::kernels::repeat::repeat;
use serrate::kernels::reshape::reshape;
use serrate::kernels::scatter::{DuplicateWrites, scatter, scatter_new};

use crate::common::torture::{
    Node, Spec, assert_alike, decode_ragged, draw_tree, encode_nodes, seed_random,
};
use crate::configure_cases;
use crate::support::{draw_beside, int_lists, resolve_index, some_leaf, zip_nodes};

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn the_last_value_written_to_an_index_wins_unless_duplicates_are_refused(seed: u64, levels in 1usize..4, axis in 1usize..4) {
        let mut rng = seed_random(seed);
        let b = draw_beside(some_leaf(&mut rng), levels, axis, &mut rng);
        let spec = Spec::new(b.levels, b.array.leaf_type().clone());
        let below = &b.case.kinds[b.axis..];
        let values: Vec<Node> = b.rows.iter().map(|r| {
            r.map_at(b.axis, &mut |_| draw_tree(&spec, below, &mut rng))
        }).collect();
        let mut kinds = vec![ListKind::List; b.axis];
        kinds.extend_from_slice(below);
        let given =
            RaggedArray::try_from_arrow(&encode_nodes(&spec, &kinds, &values, &mut rng)).unwrap();
        let mut twice = false;
        let mut expected = Vec::new();
        for ((x, i), v) in b.case.rows.iter().zip(&b.rows).zip(&values) {
            // Pairs each index with its value.
            let pairs = zip_nodes(i, v, b.axis - 1, &mut |i, v| match (i, v) {
                (Node::Null, _) | (_, Node::Null) => Node::Null,
                _ => Node::List(i.children().iter().zip(v.children())
                    .map(|(i, v)| Node::List(vec![i.clone(), v.clone()])).collect()),
            });
            expected.push(zip_nodes(x, &pairs, b.axis - 1, &mut |x, pairs| {
                let Node::List(list) = x else { return Node::Null };
                let mut list = list.clone();
                let mut seen = std::collections::HashSet::new();
                for pair in pairs.children() {
                    let [i, v] = pair.children() else { unreachable!() };
                    let Node::Int(i) = i else { continue };
                    let place = resolve_index(&list, *i);
                    twice |= !seen.insert(place);
                    list[place] = v.clone();
                }
                Node::List(list)
            }));
        }
        let found = scatter(&b.array, &b.at, &given, DuplicateWrites::Last).unwrap();
        assert_alike(&decode_ragged(&found), &expected);
        let strict = scatter(&b.array, &b.at, &given, DuplicateWrites::Refuse);
        match strict {
            Ok(found) => {
                prop_assert!(!twice);
                assert_alike(&decode_ragged(&found), &expected);
            }
            Err(e) => prop_assert!(
                twice && e.to_string().contains("the same element as an earlier index"), "{}", e),
        }
    }
}

#[test]
fn scatter_new_builds_lists_of_given_sizes() {
    let at = int_lists(&[2, 1], &[2, 0, 1]);
    let values = int_lists(&[2, 1], &[7, 8, 9]);
    let fill: ArrayRef = Arc::new(Int64Array::from(vec![-1]));
    let out = scatter_new(&at, &values, CountArgument::All(3), Some(&fill), DuplicateWrites::Last)
        .unwrap();
    assert_eq!(out, int_lists(&[3, 3], &[8, -1, 7, -1, 9, -1]));
    let sizes: ArrayRef = Arc::new(Int32Array::from(vec![Some(3), None]));
    let sizes = RaggedArray::try_new(2, vec![], sizes).unwrap();
    let out = scatter_new(&at, &values, CountArgument::Each(&sizes), None, DuplicateWrites::Last)
        .unwrap();
    assert!(out.axes()[0].nulls().unwrap().is_null(1) && out.leaves().is_null(1));
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![1 << 40]));
    assert!(
        scatter_new(&at, &values, CountArgument::All(3), Some(&wide), DuplicateWrites::Last)
            .is_err()
    );
    // A result that would not fit into memory is refused.
    for many in [usize::MAX, 1 << 50] {
        let refused = |e: Error| matches!(e, Error::TooLarge { .. } | Error::Offsets { .. });
        let out = scatter_new(&at, &values, CountArgument::All(many), None, DuplicateWrites::Last);
        assert!(refused(out.unwrap_err()));
        assert!(refused(mask_from_indices(&at, CountArgument::All(many)).unwrap_err()));
        assert!(refused(repeat(&at, 1, CountArgument::All(many)).unwrap_err()));
    }
    let none = int_lists(&[0, 0, 0, 0], &[]);
    assert!(reshape(&none, 1, &[1 << 62, 0]).is_err());
    let less = RaggedArray::try_new(2, vec![], Arc::new(Int32Array::from(vec![3, -1]))).unwrap();
    assert!(
        scatter_new(&at, &values, CountArgument::Each(&less), None, DuplicateWrites::Last).is_err()
    );
    assert!(repeat(&at, 1, CountArgument::Each(&less)).is_err());
}
