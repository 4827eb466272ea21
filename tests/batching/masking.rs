//! Reads and writes of entries of a `RaggedBatch` by boolean mask, and sums and means over entries.

use proptest::prelude::*;
use serrate::batching::{
    AnyBatch, IndexOptions, NonFiniteMeans, RaggedBatch, apply_mask_to_tensor,
    average_over_targets, batched_bool_indexing, batched_bool_indexing_write,
    batched_indexing_access, get_compact_lists, get_indices_from_mask, get_mask_from_indices,
    sum_over_targets,
};
use serrate::dense::{DType, DenseTensor};

use crate::reference::{Random, Slow, count_elements, list_numbers, list_places, read_place};

/// Returns a random boolean for every slot of the padded batch, including filler.
fn draw_flags(r: &mut Random, slow: &Slow) -> Vec<Vec<bool>> {
    slow.samples.iter().map(|_| (0..slow.width).map(|_| r.flip()).collect()).collect()
}

fn as_tensor(slow: &Slow, flags: &[Vec<bool>]) -> DenseTensor {
    let mut shape = slow.batch_shape.clone();
    shape.push(slow.width);
    DenseTensor::from_bools(shape, flags.iter().flatten().copied()).unwrap()
}

fn filter_slow(slow: &Slow, flags: &[Vec<bool>]) -> Slow {
    let keep = |(sample, flags): (&Vec<Vec<i64>>, &Vec<bool>)| {
        let kept = sample.iter().zip(flags).filter(|(_, f)| **f);
        kept.map(|(entry, _)| entry.clone()).collect::<Vec<_>>()
    };
    let samples: Vec<_> = slow.samples.iter().zip(flags).map(keep).collect();
    let width = samples.iter().map(Vec::len).max().unwrap_or(0);
    slow.with(width, samples)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn entries_selected_by_a_mask_are_read_and_written(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let flags = draw_flags(&mut r, &slow);
        let mask = as_tensor(&slow, &flags);
        let sizes = slow.sizes();
        let ragged_mask = RaggedBatch::try_new(&mask, None, Some(&sizes), None).unwrap();
        let batch = slow.batch(&mut r);
        let expected = filter_slow(&slow, &flags);
        let kept = batched_bool_indexing(&batch, &ragged_mask).unwrap();
        expected.check(&kept);
        let back = batched_bool_indexing_write(&kept, &ragged_mask, &batch).unwrap();
        prop_assert_eq!(back.as_ragged().unwrap(), &batch);

        // Writes other entries to the slots that the mask selects.
        let new: Vec<Vec<Vec<i64>>> = expected
            .samples
            .iter()
            .map(|s| s.iter().map(|e| e.iter().map(|_| r.below(2) as i64).collect()).collect())
            .collect();
        let to_write = slow.with(expected.width, new.clone()).batch(&mut r);
        let written = batched_bool_indexing_write(&to_write, &ragged_mask, &batch).unwrap();
        let mut samples = slow.samples.clone();
        for ((sample, flags), new) in samples.iter_mut().zip(&flags).zip(new) {
            let places = sample.iter_mut().zip(flags).filter(|(_, f)| **f);
            places.zip(new).for_each(|((place, _), entry)| *place = entry);
        }
        slow.with(slow.width, samples).check(written.as_ragged().unwrap());
    }

    #[test]
    fn data_and_mask_may_each_be_a_batch_or_a_tensor(seed: u64) {
        let mut r = Random::new(seed);
        let mut slow = Slow::random(&mut r);
        slow.batch_shape = vec![count_elements(&slow.batch_shape)];
        slow.before.clear();
        let entry = count_elements(&slow.after);
        for sample in &mut slow.samples {
            sample.iter_mut().for_each(|e| e.resize(entry, 1));
        }
        let flags = draw_flags(&mut r, &slow);
        let mask = as_tensor(&slow, &flags);
        let sizes = slow.sizes();
        let ragged_mask: AnyBatch =
            RaggedBatch::try_new(&mask, None, Some(&sizes), None).unwrap().into();
        let (batch, padded) = (slow.batch(&mut r), slow.padded(|| 1));
        let expected = filter_slow(&slow, &flags);
        expected.check(&batched_bool_indexing(&batch, &mask).unwrap());
        expected.check(&batched_bool_indexing(&padded, &ragged_mask).unwrap());
        let kept = batched_bool_indexing(&padded, &mask).unwrap();
        let back = batched_bool_indexing_write(&kept, &mask, &padded).unwrap();
        prop_assert_eq!(back.as_dense().unwrap(), &padded);
        let mut all = slow.samples.clone();
        all.iter_mut().for_each(|s| s.resize(slow.width, vec![1; entry]));
        let all = filter_slow(&slow.with(slow.width, all), &flags);
        all.check(&kept);

        // A mask selects the same entries as the indices made from it, and these indices give the
        // mask again.
        let indices = get_indices_from_mask(&mask).unwrap();
        let taken = batched_indexing_access(&padded, &indices, 0, None, &IndexOptions::default());
        prop_assert_eq!(&taken.unwrap(), &kept);
        prop_assert_eq!(get_mask_from_indices(slow.width, &indices).unwrap(), mask.clone());
        let of_batch = get_indices_from_mask(ragged_mask).unwrap();
        let taken = batched_indexing_access(&batch, &of_batch, 0, None, &IndexOptions::default());
        prop_assert_eq!(taken.unwrap(), batched_bool_indexing(&batch, &mask).unwrap());

        let numbers = mask.cast(DType::I16).unwrap();
        let compact = get_compact_lists(&numbers, vec![padded.clone(), padded]).unwrap();
        prop_assert_eq!(&compact, &vec![kept.clone(), kept]);
    }

    #[test]
    fn a_mask_applies_to_the_first_axes_of_a_tensor(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let data = slow.padded(|| 1);
        let ndim = r.below(data.ndim() + 1);
        let shape: Vec<usize> =
            data.shape()[..ndim].iter().map(|n| if r.flip() { 1 } else { *n }).collect();
        let values: Vec<bool> = (0..count_elements(&shape)).map(|_| r.flip()).collect();
        let mask = DenseTensor::from_bools(shape.clone(), values).unwrap();
        let found = apply_mask_to_tensor(&data, &mask, 1).unwrap();
        let own = list_numbers(&data);
        let flags = list_numbers(&mask);
        for place in list_places(data.shape()) {
            let there: Vec<usize> =
                place.iter().zip(&shape).map(|(i, n)| if *n == 1 { 0 } else { *i }).collect();
            let keep = count_elements(&shape) == 0 || read_place(&flags, &shape, &there) == 1;
            let value = read_place(&own, data.shape(), &place);
            let found = read_place(&list_numbers(&found), data.shape(), &place);
            prop_assert_eq!(found, if keep { value } else { 1 });
        }
    }

    #[test]
    fn sums_and_means_ignore_filler(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let batch = slow.batch(&mut r);
        let mut shape = slow.batch_shape.clone();
        shape.extend(slow.before.iter().chain(&slow.after));
        let mut sums: Vec<i64> = Vec::new();
        let mut means: Vec<f64> = Vec::new();
        for sample in &slow.samples {
            for c in 0..slow.entry() {
                let sum: i64 = sample.iter().map(|e| e[c]).sum();
                sums.push(sum);
                means.push(sum as f64 / sample.len() as f64);
            }
        }
        let sum = sum_over_targets(&batch);
        let limit = match slow.dtype {
            DType::I8 => 127,
            DType::U8 => 255,
            _ => i64::MAX,
        };
        if sums.iter().all(|s| *s <= limit) {
            // The reference adds in int64. The cast rounds large sums as half precision does.
            let exact = DenseTensor::from_vec(shape.clone(), sums).unwrap();
            prop_assert_eq!(sum.unwrap(), exact.cast(slow.dtype).unwrap());
        } else {
            let e = sum.unwrap_err().to_string();
            prop_assert!(e.contains(&format!("does not fit {}", slow.dtype)), "{}", e);
        }
        let dtype = if slow.dtype.is_float() { slow.dtype } else { DType::F32 };
        for non_finite in [NonFiniteMeans::Zero, NonFiniteMeans::Keep] {
            let zero = non_finite == NonFiniteMeans::Zero;
            let expected = means.iter().map(|m| if zero && m.is_nan() { 0.0 } else { *m });
            let expected = DenseTensor::from_vec(shape.clone(), expected.collect::<Vec<f64>>());
            let expected = expected.unwrap().cast(dtype).unwrap().cast(DType::F64).unwrap();
            let found = average_over_targets(&batch, non_finite).unwrap();
            prop_assert_eq!(found.dtype(), dtype);
            prop_assert_eq!(found.shape(), &shape[..]);
            let found = found.cast(DType::F64).unwrap();
            let pairs = found.as_slice::<f64>().unwrap().iter().zip(expected.as_slice().unwrap());
            for (a, b) in pairs {
                let b: &f64 = b;
                prop_assert!(a == b || (a.is_nan() && b.is_nan()), "{} {}", a, b);
            }
        }
    }
}

#[test]
fn means_that_are_not_finite_become_zero_if_requested() {
    let t = DenseTensor::from_vec([2, 2], vec![f32::INFINITY, 1.0, f32::NAN, 2.0]).unwrap();
    let batch = RaggedBatch::from_full_tensor(&t, 1, 1).unwrap();
    let means = |non_finite| average_over_targets(&batch, non_finite).unwrap().to_string();
    assert_eq!(
        (means(NonFiniteMeans::Zero), means(NonFiniteMeans::Keep)),
        ("float32[2] [0.0, 0.0]".into(), "float32[2] [inf, NaN]".into())
    );
    assert_eq!(sum_over_targets(&batch).unwrap().to_string(), "float32[2] [inf, NaN]");
    // Sums of large integers are exact, even if a partial sum exceeds int64.
    let t = DenseTensor::from_vec([1, 3], vec![i64::MAX, 1, -1]).unwrap();
    let batch = RaggedBatch::from_full_tensor(&t, 1, 1).unwrap();
    assert_eq!(sum_over_targets(&batch).unwrap().as_slice::<i64>().unwrap(), [i64::MAX]);
    let e = sum_over_targets(&batch.repeat_samples(1, None).unwrap()).unwrap();
    assert_eq!(e.num_elements(), 1);
}
