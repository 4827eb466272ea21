//! Counts of a value, and whether it occurs.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use proptest::prelude::*;
use rand::RngExt;
use serrate::kernels::isin::isin;
use serrate::kernels::occurrences::{any_value, count_values};
use serrate::kernels::reduce::{Reduction, reduce};

use crate::common::torture::{Spec, decode_ragged, draw_torture, one_of, seed_random};
use crate::configure_cases;
use crate::support::dictionary_type;

proptest! {
    #![proptest_config(configure_cases(150))]

    #[test]
    fn count_values_and_any_value_equal_reductions_of_isin(seed: u64, levels in 0usize..4) {
        let mut rng = seed_random(seed);
        let types = [
            DataType::Int8, DataType::UInt16, DataType::UInt32, DataType::Int64, DataType::Utf8,
            DataType::Float32,
        ];
        let leaf = one_of(&types, &mut rng).clone();
        let spec = Spec { reach: 3, longest: 9, ..Spec::new(levels, leaf.clone()) };
        let case = draw_torture(&spec, &mut rng);
        let mut a = case.ragged();
        if leaf == DataType::Utf8 && seed % 2 == 0 {
            let keys = one_of(&[DataType::Int8, DataType::UInt32], &mut rng).clone();
            a = a.with_leaves(cast(a.leaves(), &dictionary_type(keys)).unwrap()).unwrap();
        }
        let wanted: ArrayRef = match leaf {
            DataType::Utf8 => Arc::new(StringArray::from(vec![*one_of(&["", "ab", "none"], &mut rng)])),
            _ => Arc::new(Int64Array::from(vec![rng.random_range(-4i64..400) % 5])),
        };
        let found = isin(&a, &wanted).unwrap();
        for axis in (0..=levels).map(|a| Some(a as i64)).chain([None]) {
            let counts = count_values(&a, &wanted, axis).unwrap();
            let expected = reduce(&found, Reduction::Sum, axis).unwrap();
            prop_assert_eq!(decode_ragged(&counts), decode_ragged(&expected));
            let any = any_value(&a, &wanted, axis).unwrap();
            let expected = reduce(&found, Reduction::Any, axis).unwrap();
            prop_assert_eq!(decode_ragged(&any), decode_ragged(&expected));
        }
    }
}
