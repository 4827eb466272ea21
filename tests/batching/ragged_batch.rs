//! Construction, axes and items of `RaggedBatch`.

use proptest::prelude::*;
use serrate::batching::{
    NestedSamples, RaggedBatch, SampleRepeats, combine_data, squeeze_except_batch_and_sample,
};
use serrate::dense::{DType, DenseTensor};
use serrate::index::{Index, IndexArray};

use crate::reference::{
    Random, Slow, count_elements, list_numbers, list_places, make_tensor, read_place,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_batch_has_the_entries_of_the_tensor_and_mask_it_is_made_of(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let batch = slow.batch(&mut r);
        slow.check(&batch);
        // The padded tensor and the mask of a batch give the batch again.
        let again = RaggedBatch::try_new(
            batch.tensor().unwrap(),
            Some(batch.mask().unwrap()),
            None,
            Some(batch.non_uniform_dim()),
        );
        prop_assert_eq!(&again.unwrap(), &batch);
        let tight = RaggedBatch::from_oversize_tensor(
            &slow.padded(|| 1),
            Some(&slow.mask()),
            None,
            Some(slow.dim()),
        );
        let most = slow.samples.iter().map(Vec::len).max().unwrap_or(0);
        slow.with(most, slow.samples.clone()).check(&tight.unwrap());
        let full = RaggedBatch::from_full_tensor(
            &slow.padded(|| 1),
            slow.dim(),
            slow.batch_shape.len(),
        );
        let mut filled = slow.samples.clone();
        for sample in &mut filled {
            sample.resize(slow.width, vec![1; slow.entry()]);
        }
        slow.with(slow.width, filled).check(&full.unwrap());
        slow.check(&batch.try_clone().unwrap());
    }

    #[test]
    fn filler_can_be_set_without_changing_entries(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let mut batch = slow.batch(&mut r);
        let set = batch.with_padded_set_to(1.9).unwrap();
        prop_assert_eq!(set.values(), batch.values());
        let one = if slow.dtype.is_float() { None } else { Some(slow.padded(|| 1)) };
        if let Some(one) = one {
            prop_assert_eq!(set.tensor().unwrap(), &one);
        }
        batch.set_padded_to(1).unwrap();
        prop_assert_eq!(batch.tensor().unwrap(), &slow.padded(|| 1));
        let flat = batch.flatten_batch_dims().unwrap().cast(DType::F64).unwrap();
        prop_assert_eq!(list_numbers(flat.tensor().unwrap()), list_numbers(&slow.padded(|| 1)));
        let weights = batch.get_existence_weights(DType::F32).unwrap();
        let zeros = Slow { dtype: DType::F32, ..slow.clone() };
        let ones = zeros.samples.iter().map(|s| vec![vec![1; slow.entry()]; s.len()]).collect();
        prop_assert_eq!(weights, zeros.with(slow.width, ones).padded(|| 0));
    }

    #[test]
    fn samples_split_and_combine(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let batch = slow.batch(&mut r);
        let split = batch.split().unwrap();
        let inner = count_elements(&slow.after);
        for (found, sample) in split.tensors().zip(&slow.samples) {
            let mut shape = slow.before.clone();
            shape.push(sample.len());
            shape.extend(&slow.after);
            let mut expected = Vec::new();
            for b in 0..count_elements(&slow.before) {
                for entry in sample {
                    expected.extend(&entry[b * inner..(b + 1) * inner]);
                }
            }
            prop_assert_eq!(found, &make_tensor(slow.dtype, &shape, expected));
        }
        prop_assert_eq!(split.tensors().count(), slow.samples.len());
        if slow.before.is_empty() && !slow.samples.is_empty() && slow.entry() > 0 {
            let most = slow.samples.iter().map(Vec::len).max().unwrap();
            let tight = slow.with(most, slow.samples.clone());
            let together = combine_data(&split, None, false).unwrap();
            let all_empty = most == 0;
            if !all_empty {
                tight.check(&together);
                let flat = combine_data(&split, None, true).unwrap();
                prop_assert_eq!(flat, together.flatten_batch_dims().unwrap());
                let shared = combine_data(&split, Some(&batch), false).unwrap();
                prop_assert_eq!(shared, batch);
            }
        }
    }

    #[test]
    fn the_non_uniform_axis_swaps_with_any_other(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let batch = slow.batch(&mut r);
        let (shape, own) = (slow.shape(), list_numbers(&slow.padded(|| 0)));
        for dim in slow.batch_shape.len()..shape.len() {
            let swapped = batch.get_non_uniform_dimension_transposed_to(dim).unwrap();
            let mut expected = shape.clone();
            expected.swap(dim, slow.dim());
            prop_assert_eq!(swapped.shape(), expected.clone());
            prop_assert_eq!(swapped.non_uniform_dim(), dim);
            let found = list_numbers(swapped.tensor().unwrap());
            for mut place in list_places(&expected) {
                let value = read_place(&found, &expected, &place);
                place.swap(dim, slow.dim());
                prop_assert_eq!(value, read_place(&own, &shape, &place));
            }
            let back = swapped.get_non_uniform_dimension_transposed_to(slow.dim()).unwrap();
            prop_assert_eq!(&back, &batch);
        }
    }

    #[test]
    fn batch_axes_change_and_entries_do_not(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let batch = slow.batch(&mut r);
        let flat = batch.flatten_batch_dims().unwrap();
        let samples = slow.samples.len();
        prop_assert_eq!(flat.batch_shape(), &[samples][..]);
        prop_assert_eq!(flat.values(), batch.values());
        let shape: Vec<i64> = slow.batch_shape.iter().map(|n| *n as i64).collect();
        prop_assert_eq!(&flat.reshape_batch_dims(&shape).unwrap(), &batch);
        if samples > 0 {
            let open = flat.reshape_batch_dims(&[1, -1, 1]).unwrap();
            prop_assert_eq!(open.batch_shape(), &[1, samples, 1][..]);
        }
        for dim in 0..=slow.batch_shape.len() {
            let more = batch.unsqueeze_batch_dim(dim).unwrap();
            prop_assert_eq!(more.batch_shape()[dim], 1);
            prop_assert_eq!(more.non_uniform_dim(), slow.dim() + 1);
            prop_assert_eq!(
                list_numbers(more.tensor().unwrap()),
                list_numbers(batch.tensor().unwrap()),
            );
            prop_assert_eq!(&more.squeeze_batch_dim(dim).unwrap(), &batch);
        }
        for dim in slow.batch_shape.len()..=batch.ndim() {
            let more = batch.unsqueeze_data_dim(dim as i64).unwrap();
            let mut shape = slow.shape();
            shape.insert(dim, 1);
            prop_assert_eq!(more.shape(), shape);
            prop_assert_eq!(more.non_uniform_dim(), slow.dim() + usize::from(dim <= slow.dim()));
            prop_assert_eq!(
                list_numbers(more.tensor().unwrap()),
                list_numbers(batch.tensor().unwrap()),
            );
            let negative = dim as i64 - batch.ndim() as i64 - 1;
            prop_assert_eq!(&batch.unsqueeze_data_dim(negative).unwrap(), &more);
            let less = squeeze_except_batch_and_sample(&more).unwrap();
            let expected = squeeze_except_batch_and_sample(&batch).unwrap();
            prop_assert_eq!(less.as_ragged().unwrap(), expected.as_ragged().unwrap());
        }
    }

    #[test]
    fn repeating_samples_tiles_the_batch_axes(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let batch = slow.batch(&mut r);
        let times: Vec<usize> = slow.batch_shape.iter().map(|_| r.below(4)).collect();
        let tiled = batch.repeat_samples(times.clone(), None).unwrap();
        let shape: Vec<usize> = slow.batch_shape.iter().zip(&times).map(|(n, t)| n * t).collect();
        let samples = list_places(&shape)
            .into_iter()
            .map(|place| {
                let from = place.iter().zip(&slow.batch_shape).fold(0, |f, (i, n)| f * n + i % n);
                slow.samples[from].clone()
            })
            .collect();
        let expected = Slow { batch_shape: shape.clone(), samples, ..slow.clone() };
        expected.check(&tiled);
        if times.iter().all(|t| *t > 0) {
            prop_assert_eq!(&batch.broadcast_batch_dims_to_shape(&shape).unwrap(), &tiled);
            let both = RaggedBatch::broadcast_batch_dims(&[batch.clone(), tiled.clone()]).unwrap();
            prop_assert_eq!(&both, &vec![tiled.clone(), tiled]);
        }
        let axis = r.below(times.len());
        let mut one = vec![1; times.len()];
        one[axis] = 2;
        prop_assert_eq!(
            batch.repeat_samples(SampleRepeats::One(2), Some(axis)).unwrap(),
            batch.repeat_samples(one, None).unwrap()
        );
    }

    #[test]
    fn indexing_a_batch_equals_indexing_its_padded_tensor(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let mut batch = slow.batch(&mut r);
        let shape = slow.shape();
        let mut index = Vec::new();
        let mut axis = 0;
        let masked = r.below(4) == 0;
        while axis < shape.len() && r.below(6) > 0 {
            let size = shape[axis];
            let item: Index = match r.below(4) {
                0 if size > 0 => (r.below(2 * size) as i64 - size as i64).into(),
                1 if size > 0 && !masked => {
                    let positions = (0..2).map(|_| r.below(size) as i64).collect();
                    Index::Array(IndexArray::try_new([2], positions).unwrap())
                }
                2 => Index::Slice { start: None, stop: None, step: Some(-1) },
                _ => Index::Slice { start: Some(r.below(3) as i64), stop: None, step: Some(2) },
            };
            index.push(item);
            axis += 1;
        }
        if masked && axis < shape.len() {
            let mask = (0..shape[axis]).map(|_| r.flip()).collect::<Vec<_>>();
            index.push(mask.into());
        }
        let padded = slow.padded(|| 0);
        prop_assert_eq!(batch.index(&index).unwrap(), padded.index(&index).unwrap());
        // Indexing a tensor whose elements are their own positions gives the positions that `set`
        // must write.
        let all = DenseTensor::from_vec(shape.clone(), (0..count_elements(&shape) as i64).collect()).unwrap();
        let taken = all.index(&index).unwrap();
        let values: Vec<i64> = (0..taken.num_elements()).map(|_| r.below(2) as i64).collect();
        let mut expected = list_numbers(&padded);
        for (place, value) in list_numbers(&taken).iter().zip(&values) {
            expected[*place as usize] = *value;
        }
        let value = DenseTensor::from_vec(taken.shape(), values).unwrap();
        batch.set(&index, &value).unwrap();
        let exists = batch.get_existence_weights(DType::I64).unwrap();
        let kept: Vec<i64> =
            expected.iter().zip(exists.as_slice::<i64>().unwrap()).map(|(v, e)| v * e).collect();
        prop_assert_eq!(list_numbers(batch.tensor().unwrap()), kept);
    }
}

#[test]
fn a_function_applied_to_a_batch_may_return_one_batch_or_several() {
    let t = DenseTensor::from_vec([2, 2], vec![1i64, 2, 3, 7]).unwrap();
    let sizes = DenseTensor::from_vec([2], vec![2i32, 1]).unwrap();
    let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None).unwrap();
    let twice = |t: &DenseTensor| {
        make_tensor(DType::I64, t.shape(), list_numbers(t).iter().map(|v| v * 2).collect())
    };
    let one = batch.apply(|t| Ok(twice(t))).unwrap();
    assert_eq!(one.values().to_string(), "int64[3] [2, 4, 6]");
    assert_eq!(batch.apply_to_values(|t| Ok(twice(t))).unwrap(), one);
    assert_eq!(one.sample_sizes().unwrap().dtype(), DType::I32);
    let (a, b, c) = batch
        .apply_with_sample_sizes(|t, m, s| {
            assert_eq!((m.shape(), s.to_string()), (t.shape(), "int32[2] [2, 1]".into()));
            Ok((t.clone(), m.clone(), t.reshape([2, 2, 1])?))
        })
        .unwrap();
    assert_eq!((a, b.dtype(), c.shape()), (batch.clone(), DType::Bool, vec![2, 2, 1]));
    let many = batch.apply_with_mask(|t, m| Ok(vec![t.clone(), m.clone()])).unwrap();
    assert_eq!(many.len(), 2);
    assert!(batch.apply(|t| t.reshape([4])).is_err());
    let wide = batch.apply_to_values(|v| v.reshape([3, 1])).unwrap();
    assert_eq!(wide.shape(), [2, 2, 1]);
    assert!(batch.apply_to_values(|v| v.slice(0, 1)).is_err());
}

#[test]
fn combined_samples_have_the_type_of_the_first_sample() {
    let f = DenseTensor::from_vec([2], vec![2.7f32, -2.7]).unwrap();
    let i = DenseTensor::from_vec([1], vec![5i64]).unwrap();
    let none = DenseTensor::from_vec([0], Vec::<f64>::new()).unwrap();
    let list = |t: &[&DenseTensor]| {
        NestedSamples::from(t.iter().map(|t| (*t).clone()).collect::<Vec<_>>())
    };
    let ints = combine_data(&list(&[&i, &f]), None, true).unwrap();
    assert_eq!(ints.tensor().unwrap().to_string(), "int64[2, 2] [[5, 0], [2, -2]]");
    // If batch axes are flattened, the first sample with elements determines the type; otherwise,
    // the first sample does.
    let floats = combine_data(&list(&[&none, &f]), None, true).unwrap();
    assert_eq!(floats.dtype(), DType::F32);
    assert_eq!(combine_data(&list(&[&none, &f]), None, false).unwrap().dtype(), DType::F64);
    // Samples without elements may have any shape.
    let flat = DenseTensor::from_vec([3, 2], vec![1; 6]).unwrap();
    let odd = DenseTensor::from_vec([4, 0], Vec::<i32>::new()).unwrap();
    let both = combine_data(&list(&[&odd, &flat]), None, true).unwrap();
    assert_eq!(both.sample_sizes().unwrap().to_string(), "int64[2] [0, 3]");
    // If no sample has elements, the batch still has their sizes.
    let all = combine_data(&list(&[&odd, &odd]), None, true).unwrap();
    assert_eq!((all.shape(), all.num_entries()), (vec![2, 4, 0], 8));
    let nested: NestedSamples = vec![vec![none.clone()], vec![none]].into();
    assert_eq!(combine_data(&nested, None, false).unwrap().shape(), [2, 1, 0]);
}

#[test]
fn items_are_written_in_place_when_nothing_shares_them() {
    let t = DenseTensor::from_vec([2, 2], vec![1i64, 2, 3, 7]).unwrap();
    let sizes = DenseTensor::from_vec([2], vec![2i64, 1]).unwrap();
    let mut batch = RaggedBatch::try_new(&t, None, Some(&sizes), None).unwrap();
    let nine = DenseTensor::from_vec([], vec![9i64]).unwrap();
    let before = batch.values().as_bytes().as_ptr();
    batch.set(&[0.into(), 0.into()], &nine).unwrap();
    assert_eq!(batch.values().as_bytes().as_ptr(), before);
    let kept = batch.clone();
    batch.set(&[1.into(), 0.into()], &nine).unwrap();
    assert_eq!(kept.values().to_string(), "int64[3] [9, 2, 3]");
    assert_eq!(batch.values().to_string(), "int64[3] [9, 2, 9]");
}
