//! Coordinates of the leaves of an array.

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use proptest::prelude::*;
use serrate::kernels::coords::coords;

use crate::common::torture::{Node, Spec, draw_torture, seed_random};
use crate::configure_cases;

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn every_leaf_is_at_its_coordinates(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let case = draw_torture(&Spec::new(levels, DataType::Int32), &mut rng);
        let places = coords(&case.ragged()).unwrap();
        let column = |axis: usize| places[axis].leaves().as_primitive::<Int64Type>().clone();
        let columns: Vec<Int64Array> = (0..=levels).map(column).collect();
        let leaves: Vec<Node> = case.rows.iter().flat_map(|r| r.leaves_below(levels)).collect();
        for (i, leaf) in leaves.iter().enumerate() {
            let mut node = &case.rows[usize::try_from(columns[0].value(i)).unwrap()];
            for column in &columns[1..] {
                node = &node.children()[usize::try_from(column.value(i)).unwrap()];
            }
            prop_assert_eq!(node, leaf);
        }
        prop_assert_eq!(columns[0].len(), leaves.len());
    }
}
