//! `between`: elements for which the corresponding element of a sorted array lies within bounds.

use arrow::array::Int64Array;
use arrow::datatypes::DataType;
use proptest::prelude::*;
use rand::RngExt;
use serrate::kernels::between::{ClosedEnds, between};

use crate::common::torture::{
    Node, Spec, assert_alike, build_plain, decode_ragged, draw_torture, seed_random,
};
use crate::configure_cases;
use crate::support::{int_lists, some_leaf};

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn between_keeps_the_elements_within_bounds(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let case = draw_torture(&Spec::new(levels, some_leaf(&mut rng)), &mut rng);
        let times: Vec<Node> = case.rows.iter().map(|r| {
            let mut list: Vec<i64> =
                (0..r.children().len()).map(|_| rng.random_range(0..6)).collect();
            list.sort_unstable();
            if r.is_null() { Node::Null } else { Node::List(list.into_iter().map(Node::Int).collect()) }
        }).collect();
        let beside = build_plain(1, &DataType::Int32, &times);
        let mut bound = || -> Vec<Option<i64>> {
            case.rows.iter().map(|_| (rng.random_range(0..5) > 0).then(|| rng.random_range(-1..7))).collect()
        };
        let (low, high) = (bound(), bound());
        let (lows, highs) = (Int64Array::from(low.clone()), Int64Array::from(high.clone()));
        for text in ["[]", "[)", "(]", "()"] {
            let closure: ClosedEnds = text.parse().unwrap();
            let found =
                between(&case.ragged(), &beside, Some(&lows), Some(&highs), closure).unwrap();
            let expected: Vec<Node> = case.rows.iter().enumerate().map(|(r, row)| {
                let Node::List(list) = row else { return Node::Null };
                let keep = |t: i64| {
                    low[r].is_none_or(|l| if text.starts_with('[') { t >= l } else { t > l })
                        && high[r].is_none_or(|h| if text.ends_with(']') { t <= h } else { t < h })
                };
                let pairs = list.iter().zip(times[r].children());
                Node::List(pairs.filter(|(_, t)| keep(t.int().unwrap())).map(|(x, _)| x.clone()).collect())
            }).collect();
            assert_alike(&decode_ragged(&found), &expected);
        }
    }
}

#[test]
fn closures_have_names_and_missing_bounds_keep_all_elements() {
    let a = int_lists(&[4, 6], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert!("(,]".parse::<ClosedEnds>().is_err() && "Right".parse::<ClosedEnds>().is_err());
    for (name, ends) in [("both", "[]"), ("left", "[)"), ("right", "(]"), ("none", "()")] {
        assert_eq!(name.parse::<ClosedEnds>().unwrap(), ends.parse::<ClosedEnds>().unwrap());
    }
    let open = between(&a, &a, None, None, ClosedEnds::Both).unwrap();
    assert_eq!(open, a);
}
