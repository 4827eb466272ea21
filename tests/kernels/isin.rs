//! Membership: dictionaries against plain strings, numbers against equality.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::RaggedArray;
use serrate::kernels::elementwise::{Op, Operand, binary};
use serrate::kernels::isin::isin;

use crate::common::torture::{
    Spec, assert_alike, decode_ragged, draw_torture, one_of, seed_random,
};
use crate::configure_cases;
use crate::text::{WORDS, draw_texts, encode_texts, map_texts};

proptest! {
    #![proptest_config(configure_cases(300))]

    #[test]
    fn membership_in_dictionaries_is_that_of_their_texts(seed: u64, levels in 1usize..4) {
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
    fn membership_of_numbers_is_equality_with_any(seed: u64, levels in 1usize..3) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&[DataType::Int16, DataType::UInt8, DataType::Float32], &mut rng).clone();
        let array = draw_torture(&Spec::new(levels, leaf), &mut rng).ragged();
        let wanted: Vec<i64> =
            (0..rng.random_range(1..9)).map(|_| rng.random_range(-3..9)).collect();
        let values: ArrayRef = Arc::new(arrow::array::Int64Array::from(wanted));
        let each = (0..values.len()).map(|i| {
            let one = values.slice(i, 1);
            binary(Op::Eq, Operand::Array(&array), Operand::Scalar(&one)).unwrap()
        });
        let any = each.reduce(|a, b| binary(Op::Or, Operand::Array(&a), Operand::Array(&b)).unwrap());
        let found = isin(&array, &values).unwrap();
        let bools = |a: &RaggedArray| -> BooleanArray { a.leaves().as_boolean().clone() };
        prop_assert_eq!(bools(&found), bools(&any.unwrap()));
    }
}
