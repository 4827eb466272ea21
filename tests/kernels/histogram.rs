//! Histograms and counts of values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float32Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use proptest::prelude::*;
use serrate::array::{Offsets, RaggedArray};
use serrate::kernels::histogram::{Histogram, value_counts};
use serrate::kernels::sort::{SortOrder, sort};

use crate::common::torture::{Node, Spec, decode_ragged, draw_torture, one_of, seed_random};
use crate::configure_cases;
use crate::support::dictionary_type;

proptest! {
    #![proptest_config(configure_cases(150))]

    #[test]
    fn merged_histograms_count_every_value(seed: u64, parts in 1usize..4) {
        let mut rng = seed_random(seed);
        let types = [
            DataType::Int8, DataType::Int16, DataType::Int32, DataType::UInt8, DataType::UInt16,
            DataType::UInt32, DataType::UInt64, DataType::Float64, DataType::Utf8, DataType::Boolean,
        ];
        let leaf = one_of(&types, &mut rng).clone();
        let mut spec = Spec::new(1, leaf.clone());
        spec.reach = *one_of(&[3, 90], &mut rng);
        let mut all: Vec<Node> = Vec::new();
        let mut one = Histogram::new(&leaf).unwrap();
        let mut other = Histogram::new(&leaf).unwrap();
        for part in 0..parts {
            let case = draw_torture(&spec, &mut rng);
            let mut leaves = case.ragged().leaves().clone();
            if leaf == DataType::Utf8 && part % 2 == 0 {
                leaves = cast(&leaves, &dictionary_type(DataType::UInt16)).unwrap();
            }
            if part == 1 { other.add(&leaves).unwrap() } else { one.add(&leaves).unwrap() }
            all.extend(case.rows.iter().flat_map(|r| r.leaves_below(1)));
        }
        one.merge(&other).unwrap();
        let mut expected: Vec<(Node, u64)> = Vec::new();
        for node in all.into_iter().filter(|n| !n.is_null()) {
            match expected.iter_mut().find(|(n, _)| *n == node) {
                Some((_, count)) => *count += 1,
                None => expected.push((node, 1)),
            }
        }
        let (values, counts) = one.counts().unwrap();
        prop_assert_eq!(values.data_type(), &leaf);
        let flat = |values: &ArrayRef| {
            decode_ragged(&RaggedArray::try_new(values.len(), vec![], values.clone()).unwrap())
        };
        let found: Vec<(Node, u64)> = flat(&values).into_iter().zip(counts.values().iter().copied()).collect();
        prop_assert_eq!(found.len(), expected.len());
        for pair in &expected {
            prop_assert!(found.contains(pair), "{:?} of {:?}", pair, found);
        }
        let again = sort(&RaggedArray::try_new(1, vec![Offsets::from_lengths([values.len()]).unwrap().into()], values.clone()).unwrap(), SortOrder::ASCENDING).unwrap();
        prop_assert_eq!(again.leaves().as_ref(), values.as_ref());
        let (_, top) = one.top(2).unwrap();
        let mut most: Vec<u64> = expected.iter().map(|(_, n)| *n).collect();
        most.sort_by(|a, b| b.cmp(a));
        most.truncate(2);
        prop_assert_eq!(top.values().to_vec(), most);
    }
}

#[test]
fn many_values_nan_and_zeros_are_counted_and_other_types_refused() {
    let many: ArrayRef = Arc::new(arrow::array::UInt32Array::from_iter_values(
        (0..3_000_000u32).map(|i| i % 1000 * 7),
    ));
    let (values, counts) = value_counts(&many).unwrap();
    assert_eq!((values.len(), counts.values().iter().sum::<u64>()), (1000, 3_000_000));
    assert!(counts.values().iter().all(|n| *n == 3000));
    let far: ArrayRef = Arc::new(arrow::array::UInt32Array::from(vec![u32::MAX, 5, u32::MAX]));
    let mut both = Histogram::new(&DataType::UInt32).unwrap();
    both.add(&many.slice(0, 2)).unwrap();
    both.add(&far).unwrap();
    let (values, counts) = both.counts().unwrap();
    let expected = arrow::array::UInt32Array::from(vec![0, 5, 7, u32::MAX]);
    assert_eq!(
        (values.as_ref(), counts.values().as_ref()),
        (&expected as &dyn Array, &[1u64, 1, 1, 2][..])
    );
    let odd: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN, 0.0, -0.0, -f32::NAN]));
    assert_eq!(value_counts(&odd).unwrap().1.values().as_ref(), &[2, 2]);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    assert!(both.add(&text).is_err());
    assert!(both.merge(&Histogram::new(&DataType::Utf8).unwrap()).is_err());
    let nothing: ArrayRef = Arc::new(arrow::array::NullArray::new(3));
    assert_eq!(value_counts(&nothing).unwrap().0.len(), 0);
    let list = DataType::new_list(DataType::Int8, true);
    assert!(Histogram::new(&list).is_err());
}
