//! `broadcast`: values of an outer axis, repeated for each element below.

use arrow::datatypes::DataType;
use proptest::prelude::*;
use serrate::kernels::broadcast::{BroadcastMode, broadcast};

use crate::common::torture::{
    Node, Spec, assert_alike, build_plain, decode_ragged, draw_torture, seed_random,
};
use crate::configure_cases;

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn values_of_outer_axes_are_repeated_or_kept_for_the_first_leaf(seed: u64, levels in 1usize..4, outer in 0usize..3) {
        let mut rng = seed_random(seed);
        let outer = outer.min(levels - 1);
        let case = draw_torture(&Spec::new(levels, DataType::Int32), &mut rng);
        let inner = case.ragged();
        let mut next = 0;
        let values: Vec<Node> = case.rows.iter().map(|r| r.map_at(outer, &mut |_| {
            next += 1;
            if next % 5 == 0 { Node::Null } else { Node::Int(next) }
        })).collect();
        let over = build_plain(outer, &DataType::Int64, &values);
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
        let found = broadcast(&over, &inner, BroadcastMode::Repeat).unwrap();
        assert_alike(&decode_ragged(&found), &expected);
        let first = broadcast(&over, &inner, BroadcastMode::First).unwrap();
        let expected: Vec<Node> = values.iter().zip(&case.rows).map(|(v, r)| {
            spread(v, r, outer, levels).map_at(outer, &mut |below| {
                let mut seen = false;
                below.map_at(levels - outer, &mut |leaf| {
                    if std::mem::replace(&mut seen, true) { Node::Null } else { leaf.clone() }
                })
            })
        }).collect();
        assert_alike(&decode_ragged(&first), &expected);
    }
}
