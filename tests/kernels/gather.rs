//! Rows selected by position, mask or range.

use arrow::array::{BooleanArray, UInt64Array};
use proptest::prelude::*;
use rand::RngExt;
use serrate::kernels::gather::{filter_rows, take_ranges, take_rows};

use crate::common::torture::{
    Node, Spec, assert_alike, decode_ragged, draw_torture, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::any_leaf;

proptest! {
    #![proptest_config(configure_cases(250))]

    #[test]
    fn gathered_rows_equal_those_of_the_reference(seed: u64, levels in 0usize..4) {
        let mut rng = seed_random(seed);
        let case = draw_torture(&Spec::new(levels, any_leaf(&mut rng)), &mut rng);
        let a = case.ragged();
        let n = case.rows.len();
        let wanted: Vec<Option<usize>> = (0..rng.random_range(0..12))
            .map(|_| if n == 0 || rng.random_range(0..7) == 0 { None } else { Some(rng.random_range(0..n)) })
            .collect();
        let positions: UInt64Array = wanted.iter().map(|w| w.map(|w| w as u64)).collect();
        let expected: Vec<Node> =
            wanted.iter().map(|w| w.map_or(Node::Null, |w| case.rows[w].clone())).collect();
        assert_alike(&decode_ragged(&take_rows(&a, &positions).unwrap()), &expected);

        let keep: Vec<Option<bool>> = (0..n)
            .map(|_| *one_of(&[Some(true), Some(false), None], &mut rng)).collect();
        let expected: Vec<Node> = case.rows.iter().zip(&keep)
            .filter(|(_, k)| **k == Some(true)).map(|(r, _)| r.clone()).collect();
        assert_alike(
            &decode_ragged(&filter_rows(&a, &BooleanArray::from(keep)).unwrap()),
            &expected,
        );

        let ranges: Vec<_> = (0..rng.random_range(0..5)).map(|_| {
            let (x, y) = (rng.random_range(0..=n), rng.random_range(0..=n));
            x.min(y)..x.max(y)
        }).collect();
        let expected: Vec<Node> =
            ranges.iter().flat_map(|r| case.rows[r.clone()].to_vec()).collect();
        assert_alike(&decode_ragged(&take_ranges(&a, ranges).unwrap()), &expected);
    }
}
