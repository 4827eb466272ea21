//! Errors of `RaggedBatch` and the functions on it, with their messages.

use serrate::batching::{
    IndexOptions, NestedSamples, RaggedBatch, apply_mask_to_tensor, batched_bool_indexing,
    batched_bool_indexing_write, batched_index_mapping, batched_indexing_access,
    batched_indexing_write, batched_inverse_indexing_access, combine_data, get_compact_lists,
    get_indices_from_mask,
};
use serrate::dense::{DType, DenseOptions, DenseTensor, PaddingSide};

fn make_ints(shape: &[usize], values: &[i64]) -> DenseTensor {
    DenseTensor::from_vec(shape, values.to_vec()).unwrap()
}

fn make_bools(shape: &[usize], values: &[u8]) -> DenseTensor {
    DenseTensor::from_bools(shape, values.iter().map(|v| *v == 1)).unwrap()
}

fn make_full(shape: &[usize], batch_dims: usize) -> RaggedBatch {
    let t = make_ints(shape, &vec![0; shape.iter().product()]);
    RaggedBatch::from_full_tensor(&t, batch_dims, batch_dims).unwrap()
}

#[track_caller]
fn expect_refused<T: std::fmt::Debug>(result: serrate::Result<T>, words: &str) {
    let e = result.unwrap_err().to_string();
    assert!(e.contains(words), "{e:?} does not contain {words:?}");
}

#[test]
fn invalid_masks_and_sample_sizes_are_refused() {
    let t = make_ints(&[2, 3], &[1, 2, 3, 4, 5, 6]);
    let new =
        |m: Option<&DenseTensor>, s: Option<&DenseTensor>, d| RaggedBatch::try_new(&t, m, s, d);
    let gap = make_bools(&[2, 3], &[1, 1, 0, 1, 0, 1]);
    expect_refused(
        new(Some(&gap), None, None),
        "mask of sample 1 is true at entry 2 after it is false at entry 1",
    );
    let mask = make_bools(&[2, 3], &[1, 1, 0, 1, 0, 0]);
    let sizes = |v: &[i64]| make_ints(&[v.len()], v);
    expect_refused(
        new(Some(&mask), Some(&sizes(&[2, 2])), None),
        "sample 1 has the size 2 in sample_sizes, but the number of its entries in mask is 1",
    );
    assert!(new(Some(&mask), Some(&sizes(&[2, 1])), None).is_ok());
    expect_refused(new(None, None, None), "neither mask nor sample_sizes");
    expect_refused(
        new(None, Some(&sizes(&[1, 4])), None),
        "sample 1 has 4 entries, but the non-uniform axis of the tensor has room for only 3",
    );
    expect_refused(new(None, Some(&sizes(&[1, -1])), None), "sample 1 has the invalid size -1");
    expect_refused(new(None, Some(&sizes(&[1, 1, 1])), None), "batch axes, of shape [3]");
    expect_refused(new(None, Some(&make_ints(&[], &[1])), None), "there are no batch axes");
    let bounds = "at least 1 (the number of batch axes) and less than 2 (the number of all axes)";
    expect_refused(new(None, Some(&sizes(&[1, 1])), Some(0)), bounds);
    expect_refused(new(None, Some(&sizes(&[1, 1])), Some(2)), bounds);
    let floats = DenseTensor::from_vec([2], vec![1.0f32, 2.0]).unwrap();
    expect_refused(new(None, Some(&floats), None), "sample_sizes has the type float32");
    expect_refused(new(Some(&make_ints(&[2, 3], &[1; 6])), None, None), "cast it to bool");
    expect_refused(
        new(Some(&make_bools(&[2, 2], &[1; 4])), None, None),
        "the last axis of the mask has the size 2",
    );
    expect_refused(
        new(Some(&make_bools(&[2, 3], &[1; 6])), Some(&sizes(&[1])), None),
        "does not match sample_sizes",
    );
    expect_refused(new(Some(&make_bools(&[], &[1])), None, None), "the mask has no axes");
    expect_refused(
        RaggedBatch::try_new(
            &make_ints(&[1, 1, 1], &[1]),
            None,
            Some(&make_ints(&[1, 1], &[2])),
            None,
        ),
        "sample [0, 0] has 2 entries",
    );
    expect_refused(
        RaggedBatch::from_oversize_tensor(&t, None, Some(&sizes(&[4, 0])), None),
        "room for only 3",
    );
    expect_refused(RaggedBatch::empty(2, 1, Some(1), Some(&[2])), "give only one of them");
    expect_refused(RaggedBatch::empty(2, 1, Some(usize::MAX), None), "batch axes");
    expect_refused(RaggedBatch::empty(2, 1, None, Some(&[usize::MAX])), "limit");
    expect_refused(RaggedBatch::empty(2, 1, Some(0), None), "batch axes");
}

#[test]
fn invalid_axes_and_shapes_are_refused() {
    let batch = make_full(&[2, 3, 4], 2);
    expect_refused(batch.unsqueeze_batch_dim(3), "from 0 to 2");
    expect_refused(batch.squeeze_batch_dim(0), "has size 2");
    expect_refused(batch.squeeze_batch_dim(2), "there is no batch axis 2");
    expect_refused(
        make_full(&[1, 2], 1).squeeze_batch_dim(0),
        "the result would have no batch axes",
    );
    expect_refused(batch.reshape_batch_dims(&[4]), "6 samples");
    expect_refused(batch.reshape_batch_dims(&[-1, -1]), "6 samples");
    expect_refused(batch.reshape_batch_dims(&[-2, 3]), "6 samples");
    expect_refused(batch.reshape_batch_dims(&[4, -1]), "6 samples");
    expect_refused(batch.reshape_batch_dims(&[]), "batch axes");
    expect_refused(make_full(&[0, 2], 1).reshape_batch_dims(&[0, -1]), "0 samples");
    expect_refused(batch.repeat_samples([1, 2], Some(0)), "give a single number");
    expect_refused(
        batch.repeat_samples([1], None),
        "has the length 1, but the number of batch axes is 2",
    );
    expect_refused(batch.repeat_samples(2, Some(2)), "no batch axis 2");
    expect_refused(
        batch.repeat_samples(usize::MAX, None),
        "repeated [18446744073709551615, 1] times",
    );
    expect_refused(batch.repeat_samples(1 << 40, None), "limit");
    expect_refused(batch.broadcast_batch_dims_to_shape(&[3, 3]), "multiple");
    expect_refused(batch.broadcast_batch_dims_to_shape(&[2]), "one size per batch axis");
    expect_refused(
        RaggedBatch::broadcast_batch_dims(&[batch.clone(), make_full(&[2, 2], 1)]),
        "2 and 1",
    );
    expect_refused(batch.unsqueeze_data_dim(1), "from 2 to 3");
    expect_refused(batch.unsqueeze_data_dim(-3), "from 2 to 3");
    expect_refused(
        batch.get_non_uniform_dimension_transposed_to(1),
        "at least 2 (the number of batch axes) and less than 3",
    );
    let t = make_ints(&[2, 3, 5], &[0; 30]);
    expect_refused(batch.create_with_sample_sizes_like_self(&t, None), "5 along axis 2");
    expect_refused(batch.create_with_sample_sizes_like_self(&t, Some(7)), "no axis 7");
    let mut same = batch.clone();
    expect_refused(same.set_tensor(&t), "5 along");
    assert_eq!(same, batch);
    expect_refused(batch.sample(6), "out of range");
    expect_refused(batch.index(&[2.into()]), "out of range");
    expect_refused(same.set(&[0.into()], &make_ints(&[2], &[1, 2])), "the value has the shape [2]");
    let big = DenseTensor::from_vec([1], vec![1e30]).unwrap();
    assert!(same.set(&[0.into()], &big).is_err());
    assert_eq!(same, batch);
}

#[test]
fn invalid_padding_options_and_offsets_are_refused() {
    let ends = DenseTensor::from_vec([3], vec![0i64, 0, 1]).unwrap();
    let batch = RaggedBatch::from_packed(make_ints(&[1], &[5]), &ends).unwrap();
    let limit = DenseOptions { limit: Some(8), ..Default::default() };
    expect_refused(batch.padded(&limit), "needs 16 bytes");
    let left = DenseOptions { side: PaddingSide::Left, ..Default::default() };
    expect_refused(batch.padded(&left), "left");
    let other = DenseOptions { dtype: Some(DType::F32), ..Default::default() };
    expect_refused(batch.padded(&other), "cast the batch to float32 first");
    let half = DenseOptions { fill: Some(0.5.into()), ..Default::default() };
    expect_refused(batch.padded(&half), "0.5");
    expect_refused(batch.with_padded_set_to(f64::NAN), "NaN");
    expect_refused(batch.cast(DType::U8).unwrap().with_padded_set_to(-1), "-1");
    expect_refused(batch.with_padded_set_to(300).unwrap().cast(DType::I8), "");
    expect_refused(
        RaggedBatch::from_packed(make_ints(&[2], &[5, 6]), &ends),
        "the number of entries is 1",
    );
    let late = DenseTensor::from_vec([2], vec![1i32, 2]).unwrap();
    expect_refused(RaggedBatch::from_packed(make_ints(&[1], &[5]), &late), "begin with 0");
    let down = DenseTensor::from_vec([3], vec![0i32, 2, 1]).unwrap();
    expect_refused(RaggedBatch::from_packed(make_ints(&[1], &[5]), &down), "must not decrease");
    let none = DenseTensor::from_vec([0], Vec::<i64>::new()).unwrap();
    expect_refused(RaggedBatch::from_packed(make_ints(&[0], &[]), &none), "at least one offset");
    expect_refused(
        RaggedBatch::from_packed(make_ints(&[1], &[5]), &make_ints(&[1, 1], &[0])),
        "of shape [number of samples + 1]",
    );
}

#[test]
fn invalid_indices_and_data_to_index_are_refused() {
    let any = IndexOptions::default();
    let (data, ids) = (make_ints(&[2, 3], &[0; 6]), make_full(&[2, 2], 1));
    expect_refused(
        batched_indexing_access(&data, &ids, 0, Some(0), &any),
        "dim_to_index_in is 0, which is a batch axis",
    );
    expect_refused(batched_indexing_access(&data, &ids, 0, Some(2), &any), "axis 2");
    expect_refused(
        batched_indexing_access(make_ints(&[3, 3], &[0; 9]), &ids, 0, None, &any),
        "batch axes",
    );
    expect_refused(
        batched_indexing_access(&data, &ids.cast(DType::F32).unwrap(), 0, None, &any),
        "integers",
    );
    expect_refused(
        batched_indexing_access(&data, &make_full(&[2, 2, 1], 1), 0, None, &any),
        "integers",
    );
    expect_refused(batched_indexing_access(&data, &ids, f64::INFINITY, None, &any), "inf");
    let float = DenseTensor::from_vec([2, 2], vec![0.5f32; 4]).unwrap();
    expect_refused(batched_indexing_write(&float, &ids, &data, None, &any), "cast them to");
    expect_refused(
        batched_indexing_write(make_ints(&[2, 2, 1], &[0; 4]), &ids, &data, None, &any),
        "entries of shape [1]",
    );
    expect_refused(
        batched_indexing_write(make_ints(&[2, 1], &[0; 2]), &ids, &data, None, &any),
        "of sample 0 in to_write or input_data is 1",
    );
    expect_refused(
        batched_inverse_indexing_access(
            make_ints(&[2, 2], &[0; 4]),
            &ids,
            usize::MAX,
            0,
            None,
            &any,
        ),
        "limit",
    );
    expect_refused(
        batched_index_mapping(&data, &ids, &make_full(&[2, 3], 1), &data, &any),
        "the number of entries of sample 0 is 2 in the first of the two and 3 in the second",
    );
    expect_refused(
        batched_index_mapping(&data, &ids, &make_full(&[3, 2], 1), &data, &any),
        "have different batch shapes",
    );
}

#[test]
fn masks_that_do_not_fit_the_data_are_refused() {
    let (data, mask) = (make_ints(&[2, 3], &[0; 6]), make_bools(&[2, 3], &[1; 6]));
    expect_refused(
        batched_bool_indexing(&data, make_bools(&[2, 2], &[1; 4])),
        "the mask has the size 2",
    );
    expect_refused(batched_bool_indexing(&data, make_bools(&[3, 3], &[1; 9])), "batch axes");
    expect_refused(batched_bool_indexing(&data, make_ints(&[2, 3], &[1; 6])), "cast it to bool");
    expect_refused(
        batched_bool_indexing(&data, make_bools(&[2], &[1; 2])),
        "give a mask of 2 axes",
    );
    expect_refused(
        batched_bool_indexing(make_full(&[1, 2, 3], 2), &mask),
        "combined with a dense tensor",
    );
    let sizes = make_ints(&[2], &[3, 1]);
    let short = RaggedBatch::try_new(&mask, None, Some(&sizes), None).unwrap();
    expect_refused(
        batched_bool_indexing(make_full(&[2, 3], 1), &short),
        "the number of entries of sample 1 is 3 in the first of the two and 1 in the second",
    );
    let kept = batched_bool_indexing(&data, make_bools(&[2, 3], &[1, 1, 1, 0, 0, 0])).unwrap();
    let other = make_bools(&[2, 3], &[0, 1, 1, 1, 0, 0]);
    expect_refused(
        batched_bool_indexing_write(&kept, &other, &data),
        "of sample 0 in to_write is 3, but the number of its true values in output_mask is 2",
    );
    let floats = kept.cast(DType::F32).unwrap();
    let first = make_bools(&[2, 3], &[1, 1, 1, 0, 0, 0]);
    expect_refused(batched_bool_indexing_write(&floats, &first, &data), "cast them to");
    expect_refused(
        batched_bool_indexing_write(&make_full(&[3, 1], 1), &first, &data),
        "batch axes",
    );
    expect_refused(apply_mask_to_tensor(&data, &make_ints(&[2], &[1, 1]), 0), "bool");
    expect_refused(
        apply_mask_to_tensor(&data, &make_bools(&[3], &[1; 3]), 0),
        "a mask of shape [3]",
    );
    expect_refused(
        apply_mask_to_tensor(&data, &make_bools(&[2, 3, 1], &[1; 6]), 0),
        "a mask of shape",
    );
    expect_refused(apply_mask_to_tensor(&data, &mask, f64::NAN), "NaN");
    expect_refused(get_indices_from_mask(make_bools(&[2], &[1; 2])), "batch axes");
    expect_refused(get_indices_from_mask(make_full(&[1, 1, 2], 2)), "one batch axis");
    expect_refused(get_compact_lists(&make_bools(&[2], &[1, 1]), vec![data.clone()]), "two axes");
    expect_refused(
        get_compact_lists(&make_bools(&[2, 4], &[1; 8]), vec![data]),
        "the mask has the size 4",
    );
}

#[test]
fn samples_that_do_not_combine_are_refused() {
    let combine = |s: NestedSamples, flat| combine_data(&s, None, flat);
    let t = |n: usize| NestedSamples::Tensor(make_ints(&[n], &vec![1; n]));
    expect_refused(
        combine(NestedSamples::List(vec![]), true),
        "data_list is a list without tensors",
    );
    expect_refused(combine(t(1), true), "data_list is a single tensor");
    expect_refused(combine(vec![vec![t(1)], vec![]].into(), false), "lists of length 1 and 0");
    expect_refused(combine(vec![t(1), vec![t(1)].into()].into(), false), "list next to samples");
    expect_refused(combine(vec![vec![t(1)].into(), t(1)].into(), false), "a sample next to lists");
    assert!(combine(vec![vec![t(1)].into(), t(1)].into(), true).is_ok());
    expect_refused(combine(vec![make_ints(&[], &[1])].into(), true), "without axes");
    let flat = vec![make_ints(&[1, 2], &[1, 2]), make_ints(&[1, 3], &[1, 2, 3])];
    expect_refused(combine(flat.into(), true), "sample 1 has the shape [1, 3]");
    let other = make_full(&[2, 2], 1);
    expect_refused(
        combine_data(&vec![t(2), t(1)].into(), Some(&other), true),
        "the number of entries of sample 1 is 1 in the first of the two and 2 in the second",
    );
    expect_refused(
        combine_data(&vec![t(2)].into(), Some(&other), true),
        "have different batch shapes",
    );
    let long = NestedSamples::Tensor(make_ints(&[1], &[300]));
    let byte = NestedSamples::Tensor(DenseTensor::from_vec([1], vec![1u8]).unwrap());
    expect_refused(combine(vec![byte, long].into(), true), "");
}

#[test]
fn shapes_too_large_are_refused_before_memory_is_allocated() {
    let most = usize::MAX;
    expect_refused(RaggedBatch::empty(most, 1, None, None), "an empty batch");
    expect_refused(RaggedBatch::empty(most, 1, Some(most - 1), None), "the batch axes");
    expect_refused(RaggedBatch::empty(2, 1, None, Some(&[1 << 60])), "sample sizes of shape");
    let full = make_ints(&[1 << 60, 0], &[]);
    expect_refused(RaggedBatch::from_full_tensor(&full, 1, 1), "sample sizes of shape");
    let mask = make_bools(&[1 << 60, 0], &[]);
    expect_refused(RaggedBatch::try_new(&full, Some(&mask), None, None), "sample sizes of shape");
}
