//! Operations on batches so large that they run on several threads, compared with loops over
//! samples.

use serrate::batching::{
    DuplicateWrites, IndexOptions, RaggedBatch, batched_bool_indexing, batched_bool_indexing_write,
    batched_indexing_access, batched_indexing_write,
};
use serrate::dense::{DenseOptions, DenseTensor};

use crate::reference::Random;

/// Draws samples with fewer than 400 numbers each. A third of them are empty, and the one in the
/// middle has 70,000 numbers.
fn draw_ragged(r: &mut Random, samples: usize) -> RaggedBatch {
    let mut ends = vec![0i64];
    for i in 0..samples {
        let size = match r.below(3) {
            _ if i == samples / 2 => 70_000,
            0 => 0,
            _ => r.below(400),
        };
        ends.push(ends[i] + size as i64);
    }
    let values: Vec<i32> = (0..ends[samples] as i32).collect();
    let values = DenseTensor::from_vec([values.len()], values).unwrap();
    RaggedBatch::from_packed(values, &DenseTensor::from_vec([samples + 1], ends).unwrap()).unwrap()
}

#[test]
fn parallel_operations_equal_loops_over_samples() {
    let mut r = Random::new(7);
    let data = draw_ragged(&mut r, 3000);
    let mut flags = Vec::new();
    let mut ids = Vec::new();
    let mut ends = vec![0i64];
    for i in 0..data.num_samples() {
        let size = data.offsets().length(i);
        for k in (0..size).rev() {
            let keep = r.below(3) > 0;
            flags.push(keep);
            if keep {
                ids.push(k as i32);
            }
        }
        ends.push(ids.len() as i64);
    }
    let count = ids.len();
    let ids = RaggedBatch::from_packed(
        DenseTensor::from_vec([count], ids).unwrap(),
        &DenseTensor::from_vec([ends.len()], ends).unwrap(),
    )
    .unwrap();
    let options = IndexOptions { duplicates: DuplicateWrites::Refuse, ..Default::default() };
    let taken = batched_indexing_access(&data, &ids, 0, None, &options).unwrap();
    let (values, positions) = (data.values(), ids.values().as_slice::<i32>().unwrap());
    let values = values.as_slice::<i32>().unwrap();
    let mut expected = Vec::new();
    for i in 0..ids.num_samples() {
        let own = data.offsets().range(i);
        expected.extend(
            positions[ids.offsets().range(i)].iter().map(|k| values[own.start + *k as usize]),
        );
    }
    assert!(taken.values().nbytes() > 1 << 20, "large enough for threads");
    assert_eq!(taken.values().as_slice::<i32>().unwrap(), expected);

    let zero = data
        .apply_to_values(|v| DenseTensor::from_vec(v.shape(), vec![0i32; v.num_elements()]))
        .unwrap();
    let back = batched_indexing_write(&taken, &ids, &zero, None, &options).unwrap();
    let mut expected = vec![0; values.len()];
    for i in 0..ids.num_samples() {
        let own = data.offsets().range(i);
        for k in &positions[ids.offsets().range(i)] {
            expected[own.start + *k as usize] = values[own.start + *k as usize];
        }
    }
    assert_eq!(back.as_ragged().unwrap().values().as_slice::<i32>().unwrap(), expected);

    let mask =
        data.create_with_values(DenseTensor::from_bools([flags.len()], flags.clone()).unwrap());
    let mask = mask.unwrap();
    let kept = batched_bool_indexing(&data, &mask).unwrap();
    let expected: Vec<i32> =
        values.iter().zip(&flags).filter(|(_, f)| **f).map(|(v, _)| *v).collect();
    assert_eq!(kept.values().as_slice::<i32>().unwrap(), expected);
    let back = batched_bool_indexing_write(&kept, &mask, &zero).unwrap();
    let expected: Vec<i32> =
        values.iter().zip(&flags).map(|(v, f)| if *f { *v } else { 0 }).collect();
    assert_eq!(back.as_ragged().unwrap().values().as_slice::<i32>().unwrap(), expected);

    let narrow = RaggedBatch::from_packed(
        data.values().slice(0, data.offsets().range(1400).end).unwrap(),
        &DenseTensor::from_vec(
            [1402],
            (0..1402).map(|i| data.offsets().at(i) as i64).collect::<Vec<_>>(),
        )
        .unwrap(),
    )
    .unwrap();
    let serial = DenseOptions { parallel: false, ..Default::default() };
    for fill in [None, Some((-1).into())] {
        let padded = narrow.padded(&DenseOptions { fill, ..Default::default() }).unwrap();
        assert_eq!(padded, narrow.padded(&DenseOptions { fill, ..serial.clone() }).unwrap());
        let sizes = narrow.sample_sizes().unwrap();
        let back = RaggedBatch::try_new(&padded, None, Some(sizes), None).unwrap();
        assert_eq!(back, narrow);
    }
}

#[test]
fn of_several_invalid_indices_the_error_names_the_first() {
    let mut r = Random::new(8);
    let data = draw_ragged(&mut r, 3000);
    let mut ids: Vec<i64> = Vec::new();
    for i in 0..data.num_samples() {
        ids.extend(0..data.offsets().length(i) as i64);
    }
    let wrong: Vec<usize> = (0..ids.len()).step_by(10_007).skip(3).collect();
    for at in &wrong {
        ids[*at] = i64::MAX;
    }
    let packed = data.to_packed().unwrap();
    let count = ids.len();
    let ids = DenseTensor::from_vec([count], ids).unwrap();
    let ids = RaggedBatch::from_packed(ids, &packed.cu_seqlens).unwrap();
    let e = batched_indexing_access(&data, &ids, 0, None, &IndexOptions::default()).unwrap_err();
    let sample = (0..3000).find(|i| data.offsets().range(*i).contains(&wrong[0])).unwrap();
    let position = wrong[0] - data.offsets().range(sample).start;
    let start = format!("sample [{sample}], position {position}: index {}", i64::MAX);
    assert!(e.to_string().starts_with(&start), "{e}");
}

#[test]
fn buffers_of_a_pool_are_filled_again_before_reuse() {
    let t = DenseTensor::from_vec([3], vec![1, 2, 3]).unwrap();
    let ends = DenseTensor::from_vec([3], vec![0, 1, 3]).unwrap();
    let batch = RaggedBatch::from_packed(t, &ends).unwrap();
    let pool = serrate::dense::BufferPool::default();
    let options = DenseOptions { pool: Some(pool), ..Default::default() };
    let ones = DenseOptions { fill: Some(7.into()), ..options.clone() };
    for _ in 0..3 {
        assert_eq!(batch.padded(&ones).unwrap().to_string(), "int32[2, 2] [[1, 7], [2, 3]]");
        assert_eq!(batch.padded(&options).unwrap().to_string(), "int32[2, 2] [[1, 0], [2, 3]]");
    }
}
