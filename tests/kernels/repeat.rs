//! `repeat`: elements repeated by a number, or each by its own.

use arrow::datatypes::DataType;
use proptest::prelude::*;
use rand::RngExt;
use serrate::kernels::CountArgument;
use serrate::kernels::repeat::repeat;

use crate::common::torture::{
    Node, Spec, assert_alike, build_plain, decode_ragged, draw_torture, seed_random,
};
use crate::configure_cases;
use crate::support::some_leaf;

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn repeated_elements_equal_the_reference(seed: u64, levels in 1usize..4, axis in 1usize..4, of in 0usize..4) {
        let mut rng = seed_random(seed);
        let (axis, of) = (axis.min(levels), of.min(axis.min(levels)));
        let case = draw_torture(&Spec::new(levels, some_leaf(&mut rng)), &mut rng);
        let a = case.ragged();
        let k = i64::try_from(axis).unwrap();
        let counts: Vec<Node> = case.rows.iter()
            .map(|r| r.map_at(of, &mut |_| match rng.random_range(0..5) {
                0 => Node::Null,
                n => Node::Int(n - 1),
            })).collect();
        fn times(row: &Node, count: &Node, axis: usize, of: usize) -> Node {
            if row.is_null() {
                return Node::Null;
            }
            let count_of = |i: usize| if of == 0 { count.clone() } else { count.children()[i].clone() };
            let each = row.children().iter().enumerate();
            Node::List(if axis == 1 {
                each.flat_map(|(i, c)| {
                    let n = count_of(i).int().unwrap_or(0);
                    vec![c.clone(); usize::try_from(n).unwrap()]
                }).collect()
            } else {
                each.map(|(i, c)| times(c, &count_of(i), axis - 1, of.saturating_sub(1))).collect()
            })
        }
        let numbers = build_plain(of, &DataType::Int32, &counts);
        let found = repeat(&a, k, CountArgument::Each(&numbers)).unwrap();
        let expected: Vec<Node> =
            case.rows.iter().zip(&counts).map(|(r, c)| times(r, c, axis, of)).collect();
        assert_alike(&decode_ragged(&found), &expected);
        let twice: Vec<Node> = case.rows.iter().map(|r| times(r, &Node::Int(2), axis, 0)).collect();
        assert_alike(&decode_ragged(&repeat(&a, k, CountArgument::All(2)).unwrap()), &twice);
    }
}
