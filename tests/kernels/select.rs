//! Selection by a mask from two arrays, filled nulls, and casts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use rand::RngExt;
use serrate::kernels::elementwise::Operand;
use serrate::kernels::select::{cast, cast_or_null, fill_null, where_};

use crate::common::torture::{
    Node, Random, Spec, assert_alike, build_plain, decode_ragged, draw_torture, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::{make_ints, make_row, shares_lists};

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn a_mask_selects_from_two_arrays(seed: u64, levels in 1usize..4, fewer in 0usize..4) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&[DataType::Int16, DataType::Utf8, DataType::Float32], &mut rng).clone();
        let spec = Spec { null_lists: false, ..Spec::new(levels, leaf.clone()) };
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();
        let fewer = fewer.min(levels);
        let coin = |_: &Node, rng: &mut Random| match rng.random_range(0..5) {
            0 => Node::Null,
            n => Node::Bool(n > 2),
        };
        let masks: Vec<Node> = case.rows.iter()
            .map(|r| r.map_at(fewer, &mut |n| coin(n, &mut rng))).collect();
        let mask = build_plain(fewer, &DataType::Boolean, &masks);
        let fill: (Node, ArrayRef) = match &leaf {
            DataType::Utf8 => {
                (Node::Text("x".into()), Arc::new(arrow::array::StringArray::from(vec!["x"])))
            }
            DataType::Int16 => (Node::Int(7), Arc::new(Int64Array::from(vec![7]))),
            _ => (Node::Float(7.0), Arc::new(Int64Array::from(vec![7]))),
        };
        fn choose(mask: &Node, row: &Node, no: &Node, fewer: usize, levels: usize) -> Node {
            match (fewer, levels) {
                (0, 0) => if *mask == Node::Bool(true) { row.clone() } else { no.clone() },
                (0, _) => Node::List(
                    row.children().iter().map(|r| choose(mask, r, no, 0, levels - 1)).collect(),
                ),
                _ => Node::List(mask.children().iter().zip(row.children())
                    .map(|(m, r)| choose(m, r, no, fewer - 1, levels - 1)).collect()),
            }
        }
        let found = where_(&mask, Operand::Array(&a), Operand::Scalar(&fill.1)).unwrap();
        let expected: Vec<Node> = masks.iter().zip(&case.rows)
            .map(|(m, r)| choose(m, r, &fill.0, fewer, levels)).collect();
        assert_alike(&decode_ragged(&found), &expected);
        prop_assert_eq!(found.leaf_type(), &leaf);

        let filled = fill_null(&a, Operand::Scalar(&fill.1)).unwrap();
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels, &mut |n| {
            if n.is_null() { fill.0.clone() } else { n.clone() }
        })).collect();
        assert_alike(&decode_ragged(&filled), &expected);
        shares_lists(&filled, &a);
    }
}

#[test]
fn casts_of_invalid_values_are_errors_or_null() {
    let a = make_row(make_ints(&[1, 300]));
    assert!(cast(&a, &DataType::UInt8).is_err());
    let b = cast_or_null(&a, &DataType::UInt8).unwrap();
    assert!(b.leaves().is_valid(0) && b.leaves().is_null(1));
    shares_lists(&b, &a);
}
