//! Concatenation of arrays.

use proptest::prelude::*;
use serrate::kernels::concat::concat;

use crate::cases;
use crate::common::torture::{Node, Spec, assert_alike, meaning, random, torture};
use crate::support::some_leaf;

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn arrays_one_after_the_other(seed: u64, levels in 1usize..4) {
        let mut rng = random(seed);
        let spec = Spec::new(levels, some_leaf(&mut rng));
        let case = torture(&spec, &mut rng);
        let a = case.ragged();
        let more = torture(&spec, &mut rng);
        let all = concat(&[&a, &more.ragged(), &a]).unwrap();
        let expected: Vec<Node> =
            case.rows.iter().chain(&more.rows).chain(&case.rows).cloned().collect();
        assert_alike(&meaning(&all), &expected);
    }
}
