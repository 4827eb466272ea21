//! Conversion of masks to indices and back.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use serrate::kernels::CountArgument;
use serrate::kernels::filter::filter;
use serrate::kernels::indices::{indices_from_mask, mask_from_indices};
use serrate::kernels::scatter::{DuplicateWrites, scatter_new};
use serrate::kernels::shape::lengths;
use serrate::kernels::take::take;

use crate::common::torture::{Node, Spec, assert_alike, decode_ragged, draw_torture, seed_random};
use crate::configure_cases;

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn masks_convert_to_indices_and_back(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let case = draw_torture(&Spec::new(levels, DataType::Boolean), &mut rng);
        let mask = case.ragged();
        let at = indices_from_mask(&mask).unwrap();
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels - 1, &mut |list| {
            if list.is_null() {
                return Node::Null;
            }
            let places = list.children().iter().enumerate().filter(|(_, b)| **b == Node::Bool(true));
            Node::List(places.map(|(i, _)| Node::Int(i64::try_from(i).unwrap())).collect())
        })).collect();
        assert_alike(&decode_ragged(&at), &expected);
        let sizes = lengths(&mask, -1).unwrap();
        let back = mask_from_indices(&at, CountArgument::Each(&sizes)).unwrap();
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels, &mut |leaf| {
            Node::Bool(*leaf == Node::Bool(true))
        })).collect();
        assert_alike(&decode_ragged(&back), &expected);
        // Filtering by the mask equals taking the elements at its indices.
        let values = mask.with_leaves(Arc::new(UInt32Array::from_iter_values(
            0..u32::try_from(mask.leaves().len()).unwrap(),
        ))).unwrap();
        prop_assert_eq!(filter(&values, &mask).unwrap(), take(&values, &at).unwrap());
        // Scattering true to the indices gives the mask, in which nulls are false.
        let fill: ArrayRef = Arc::new(arrow::array::BooleanArray::from(vec![false]));
        let trues = at.with_leaves(Arc::new(arrow::array::BooleanArray::from(
            vec![true; at.leaves().len()],
        ))).unwrap();
        let written =
            scatter_new(&at, &trues, CountArgument::Each(&sizes), Some(&fill), DuplicateWrites::Refuse).unwrap();
        prop_assert_eq!(written, back);
    }
}
