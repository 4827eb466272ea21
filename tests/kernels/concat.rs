//! Concatenation of arrays.

use proptest::prelude::*;
use serrate::kernels::concat::concat;

use crate::common::torture::{Node, Spec, assert_alike, decode_ragged, draw_torture, seed_random};
use crate::configure_cases;
use crate::support::some_leaf;

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn concatenation_appends_the_rows_of_arrays(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let spec = Spec::new(levels, some_leaf(&mut rng));
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();
        let more = draw_torture(&spec, &mut rng);
        let all = concat(&[&a, &more.ragged(), &a]).unwrap();
        let expected: Vec<Node> =
            case.rows.iter().chain(&more.rows).chain(&case.rows).cloned().collect();
        assert_alike(&decode_ragged(&all), &expected);
    }
}
