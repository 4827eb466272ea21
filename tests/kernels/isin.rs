//! `isin`: for dictionaries compared with plain strings, for numbers compared with equality.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::RaggedArray;
use serrate::kernels::elementwise::{BinaryOp, Operand, binary};
use serrate::kernels::isin::isin;

use crate::common::torture::{
    Random, Spec, assert_alike, decode_ragged, draw_torture, one_of, seed_random,
};
use crate::configure_cases;
use crate::text::{WORDS, draw_texts, encode_texts, map_texts};

const NUMBERS: [Option<f64>; 9] = [
    None,
    Some(0.0),
    Some(-0.0),
    Some(0.1),
    Some(0.1f32 as f64),
    Some(3.0),
    Some(2049.0),
    Some(f64::NAN),
    Some(f64::INFINITY),
];

fn draw_numbers(length: usize, t: &DataType, rng: &mut Random) -> ArrayRef {
    let drawn: Float64Array = (0..length).map(|_| *one_of(&NUMBERS, rng)).collect();
    cast(&drawn, t).unwrap()
}

proptest! {
    #![proptest_config(configure_cases(300))]

    #[test]
    fn isin_of_dictionaries_equals_isin_of_their_strings(seed: u64, levels in 1usize..4) {
        let (plain, rows, mut rng) = draw_texts(seed, levels);
        let coded = encode_texts(&plain, &mut rng);
        let wanted: Vec<Option<&str>> = (0..rng.random_range(0..5))
            .map(|_| (rng.random_range(0..6) > 0).then(|| *one_of(&WORDS, &mut rng)))
            .collect();
        let values: ArrayRef = Arc::new(StringArray::from(wanted.clone()));
        let answer = |t: &str| match wanted.contains(&Some(t)) {
            true => Some(true),
            false => (!wanted.contains(&None)).then_some(false),
        };
        for array in [&plain, &coded] {
            let found = isin(array, &values).unwrap();
            assert_alike(&decode_ragged(&found), &map_texts(&rows, levels, answer));
        }
    }

    #[test]
    fn isin_of_numbers_is_equality_with_any_of_them(seed: u64, levels in 1usize..3) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&[DataType::Int16, DataType::UInt8, DataType::Float32], &mut rng).clone();
        let array = draw_torture(&Spec::new(levels, leaf), &mut rng).ragged();
        let wanted: Vec<i64> =
            (0..rng.random_range(1..9)).map(|_| rng.random_range(-3..9)).collect();
        let values: ArrayRef = Arc::new(Int64Array::from(wanted));
        let each = (0..values.len()).map(|i| {
            let one = values.slice(i, 1);
            binary(BinaryOp::Eq, Operand::Array(&array), Operand::Scalar(&one)).unwrap()
        });
        let any = each.reduce(|a, b| binary(BinaryOp::Or, Operand::Array(&a), Operand::Array(&b)).unwrap());
        let found = isin(&array, &values).unwrap();
        let bools = |a: &RaggedArray| -> BooleanArray { a.leaves().as_boolean().clone() };
        prop_assert_eq!(bools(&found), bools(&any.unwrap()));
    }

    #[test]
    fn isin_of_floats_and_decimals_equals_comparisons_with_each_value(seed: u64, levels in 1usize..3) {
        let mut rng = seed_random(seed);
        let types = [DataType::Int16, DataType::Float16, DataType::Float32, DataType::Float64];
        let array = draw_torture(&Spec::new(levels, DataType::Int16), &mut rng).ragged();
        let leaf = one_of(&types, &mut rng).clone();
        let leaves = draw_numbers(array.leaves().len(), &leaf, &mut rng);
        let array = array.with_leaves(leaves).unwrap();
        let types = [DataType::Float32, DataType::Float64, DataType::Decimal128(20, 10)];
        let values = draw_numbers(seed as usize % 4 + 1, one_of(&types, &mut rng), &mut rng);
        let each = (0..values.len()).map(|i| {
            let one = take(&values, &Int64Array::from(vec![i as i64; array.leaves().len()]), None);
            let one = array.with_leaves(one.unwrap()).unwrap();
            binary(BinaryOp::Eq, Operand::Array(&array), Operand::Array(&one)).unwrap()
        });
        let any = each.reduce(|a, b| binary(BinaryOp::Or, Operand::Array(&a), Operand::Array(&b)).unwrap());
        let found = isin(&array, &values).unwrap();
        assert_alike(&decode_ragged(&found), &decode_ragged(&any.unwrap()));
    }
}
