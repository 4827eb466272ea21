//! Reads and writes of entries of a `RaggedBatch` by index.

use proptest::prelude::*;
use serrate::Error;
use serrate::batching::{
    AnyBatch, BeyondSample, DuplicateWrites, IndexOptions, RaggedBatch, batched_index_mapping,
    batched_indexing_access, batched_indexing_write, batched_inverse_indexing_access,
    get_mask_from_indices,
};
use serrate::dense::{DType, DenseTensor};

use crate::reference::{
    Random, Slow, draw_indices, list_numbers, list_places, make_tensor, read_place,
};

const ANY: IndexOptions =
    IndexOptions { duplicates: DuplicateWrites::Last, beyond: BeyondSample::Filler };
const STRICT: IndexOptions =
    IndexOptions { duplicates: DuplicateWrites::Refuse, beyond: BeyondSample::Error };

/// Returns up to five random indices for each of `samples` samples. Those of sample `i` are in
/// `-limit(i)..limit(i)` and may repeat.
fn draw_positions(r: &mut Random, samples: usize, limit: impl Fn(usize) -> usize) -> Vec<Vec<i64>> {
    (0..samples)
        .map(|i| {
            let n = limit(i);
            let count = if n == 0 { 0 } else { r.below(6) };
            (0..count).map(|_| r.below(2 * n) as i64 - n as i64).collect()
        })
        .collect()
}

/// Returns random indices for each of `samples` samples. Those of sample `i` are in `0..limit(i)`
/// and distinct.
fn draw_distinct(r: &mut Random, samples: usize, limit: impl Fn(usize) -> usize) -> Vec<Vec<i64>> {
    (0..samples)
        .map(|i| {
            let mut all: Vec<i64> = (0..limit(i) as i64).collect();
            for k in (1..all.len()).rev() {
                all.swap(k, r.below(k + 1));
            }
            let keep = r.below(all.len() + 1);
            all.truncate(keep);
            all
        })
        .collect()
}

fn wrap_index(i: i64, n: usize) -> usize {
    (if i < 0 { i + n as i64 } else { i }) as usize
}

/// Returns one random entry for each index in `rows`, which has the indices of every sample.
fn pick_entries(r: &mut Random, slow: &Slow, rows: &[Vec<i64>]) -> Vec<Vec<Vec<i64>>> {
    let entry = slow.entry();
    let one = |r: &mut Random| (0..entry).map(|_| r.below(2) as i64).collect();
    rows.iter().map(|row| row.iter().map(|_| one(r)).collect()).collect()
}

/// Returns the data of `slow` either as a `RaggedBatch` or as a padded tensor, at random.
fn draw_either(r: &mut Random, slow: &Slow) -> AnyBatch {
    if r.flip() { slow.batch(r).into() } else { slow.padded(|| 0).into() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn entries_are_read(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let rows = draw_positions(&mut r, slow.samples.len(), |_| slow.width);
        let ids = draw_indices(&mut r, &slow.batch_shape, &rows);
        let none = vec![0; slow.entry()];
        let expected: Vec<Vec<Vec<i64>>> = rows
            .iter()
            .zip(&slow.samples)
            .map(|(row, sample)| {
                let one = |i: &i64| sample.get(wrap_index(*i, slow.width)).unwrap_or(&none).clone();
                row.iter().map(one).collect()
            })
            .collect();
        let data = draw_either(&mut r, &slow);
        let found = batched_indexing_access(&data, &ids, 1, Some(slow.dim()), &ANY).unwrap();
        let expected = slow.with(ids.max_sample_size(), expected);
        prop_assert_eq!(found.tensor().unwrap(), &expected.padded(|| 1));
        prop_assert_eq!(found.non_uniform_dim(), slow.dim());
        prop_assert_eq!(found.sample_sizes().unwrap(), ids.sample_sizes().unwrap());
    }

    #[test]
    fn entries_are_read_along_any_axis(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let (shape, own) = (slow.shape(), list_numbers(&slow.padded(|| 0)));
        let batch_dims = slow.batch_shape.len();
        for dim in batch_dims..shape.len() {
            let rows = draw_positions(&mut r, slow.samples.len(), |_| shape[dim]);
            let ids = draw_indices(&mut r, &slow.batch_shape, &rows);
            let data = draw_either(&mut r, &slow);
            let found = batched_indexing_access(&data, &ids, 1, Some(dim), &ANY).unwrap();
            let mut made = shape.clone();
            made[dim] = ids.max_sample_size();
            prop_assert_eq!(found.shape(), made.clone());
            let values = list_numbers(found.tensor().unwrap());
            for mut place in list_places(&made) {
                let sample = place[..batch_dims]
                    .iter()
                    .zip(&slow.batch_shape)
                    .fold(0, |f, (i, n)| f * n + i);
                let value = read_place(&values, &made, &place);
                match rows[sample].get(place[dim]) {
                    None => prop_assert_eq!(value, 1),
                    Some(i) => {
                        place[dim] = wrap_index(*i, shape[dim]);
                        prop_assert_eq!(value, read_place(&own, &shape, &place));
                    }
                }
            }
            // Writing the entries to the indices from which they were read changes nothing.
            let back = batched_indexing_write(&found, &ids, &data, Some(dim), &ANY).unwrap();
            prop_assert_eq!(back.to_tensor().unwrap(), data.to_tensor().unwrap());
        }
    }

    #[test]
    fn entries_are_written_and_the_last_one_stays(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let rows = draw_positions(&mut r, slow.samples.len(), |_| slow.width);
        let ids = draw_indices(&mut r, &slow.batch_shape, &rows);
        let new = pick_entries(&mut r, &slow, &rows);
        let from = slow.with(ids.max_sample_size() + r.below(2), new.clone());
        let from = draw_either(&mut r, &from);
        let mut samples = slow.samples.clone();
        for ((sample, row), new) in samples.iter_mut().zip(&rows).zip(&new) {
            for (i, entry) in row.iter().zip(new) {
                if let Some(place) = sample.get_mut(wrap_index(*i, slow.width)) {
                    place.clone_from(entry);
                }
            }
        }
        let expected = slow.with(slow.width, samples);
        let batch = slow.batch(&mut r);
        let found = batched_indexing_write(&from, &ids, &batch, Some(slow.dim()), &ANY).unwrap();
        expected.check(found.as_ragged().unwrap());

        // In a dense tensor, all slots are entries, also those that are filler in `batch`.
        let padded = slow.padded(|| 1);
        let full = RaggedBatch::from_full_tensor(&padded, slow.dim(), slow.batch_shape.len());
        let found = batched_indexing_write(&from, &ids, &padded, Some(slow.dim()), &ANY).unwrap();
        let same = batched_indexing_write(&from, &ids, full.unwrap(), Some(slow.dim()), &ANY);
        prop_assert_eq!(found.as_dense().unwrap(), &same.unwrap().to_tensor().unwrap());

        // The inverse access writes the entries into new samples of `targets` slots with the filler
        // 1.
        let targets = slow.width + r.below(3);
        let rows = draw_positions(&mut r, slow.samples.len(), |_| targets);
        let ids = draw_indices(&mut r, &slow.batch_shape, &rows);
        let new = pick_entries(&mut r, &slow, &rows);
        let from = slow.with(ids.max_sample_size(), new.clone()).padded(|| 0);
        let mut samples = vec![vec![vec![1; slow.entry()]; targets]; slow.samples.len()];
        for ((sample, row), new) in samples.iter_mut().zip(&rows).zip(&new) {
            for (i, entry) in row.iter().zip(new) {
                sample[wrap_index(*i, targets)].clone_from(entry);
            }
        }
        let found =
            batched_inverse_indexing_access(&from, &ids, targets, 1, Some(slow.dim()), &ANY);
        prop_assert_eq!(found.unwrap(), slow.with(targets, samples).padded(|| 0));
    }

    #[test]
    fn entries_written_to_the_indices_they_were_read_from_restore_the_batch(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let rows = draw_distinct(&mut r, slow.samples.len(), |i| slow.samples[i].len());
        let ids = draw_indices(&mut r, &slow.batch_shape, &rows);
        let batch = slow.batch(&mut r);
        let dim = Some(slow.dim());
        let taken = batched_indexing_access(&batch, &ids, 0, dim, &STRICT).unwrap();
        let back = batched_indexing_write(&taken, &ids, &batch, dim, &STRICT).unwrap();
        prop_assert_eq!(back.as_ragged().unwrap(), &batch);
        let again = batched_index_mapping(&batch, &ids, &ids, &batch, &STRICT).unwrap();
        prop_assert_eq!(again.as_ragged().unwrap(), &batch);
        // The inverse access puts each entry at its index again. `ones` marks the slots that it
        // writes; all others are zero.
        let rows_of = |d: &RaggedBatch| {
            batched_inverse_indexing_access(d, &ids, slow.width, 0, dim, &STRICT).unwrap()
        };
        let ones = taken.apply_to_values(|v| {
            DenseTensor::from_bools(v.shape(), vec![true; v.num_elements()])
        });
        let (made, kept) = (list_numbers(&rows_of(&taken)), list_numbers(&rows_of(&ones.unwrap())));
        let original = list_numbers(batch.tensor().unwrap());
        for ((made, kept), original) in made.iter().zip(kept).zip(original) {
            prop_assert_eq!(*made, if kept == 1 { original } else { 0 });
        }
    }

    #[test]
    fn entries_move_from_one_batch_to_another(seed: u64) {
        let mut r = Random::new(seed);
        let source = Slow::random(&mut r);
        let mut target = source.with(source.width, source.samples.clone());
        target.samples = (0..source.samples.len())
            .map(|_| {
                let size = r.below(6);
                (0..size).map(|_| vec![0; source.entry()]).collect()
            })
            .collect();
        target.width = target.samples.iter().map(Vec::len).max().unwrap_or(0) + r.below(2);
        let to = draw_distinct(&mut r, target.samples.len(), |i| target.samples[i].len());
        let mut from = Vec::new();
        let mut to_kept = Vec::new();
        for (row, sample) in to.iter().zip(&source.samples) {
            let row = if sample.is_empty() { vec![] } else { row.clone() };
            from.push(row.iter().map(|_| r.below(sample.len()) as i64).collect::<Vec<_>>());
            to_kept.push(row);
        }
        let (a, b) = (
            draw_indices(&mut r, &source.batch_shape, &from),
            draw_indices(&mut r, &source.batch_shape, &to_kept),
        );
        let width = a.max_sample_size().max(b.max_sample_size());
        let widened = |ids: &RaggedBatch, rows: &[Vec<i64>]| {
            let slow = Slow {
                dtype: ids.dtype(),
                batch_shape: source.batch_shape.clone(),
                before: vec![],
                after: vec![],
                width,
                samples: rows.iter().map(|row| row.iter().map(|i| vec![*i]).collect()).collect(),
            };
            slow.batch(&mut Random::new(1))
        };
        let (a, b) = (widened(&a, &from), widened(&b, &to_kept));
        let mut samples = target.samples.clone();
        for (i, sample) in samples.iter_mut().enumerate() {
            for (s, t) in from[i].iter().zip(&to_kept[i]) {
                sample[*t as usize].clone_from(&source.samples[i][*s as usize]);
            }
        }
        let (data, into) = (source.batch(&mut r), target.batch(&mut r));
        let found = batched_index_mapping(&data, &a, &b, &into, &STRICT).unwrap();
        target.with(target.width, samples).check(found.as_ragged().unwrap());
        // The data and the target may have different non-uniform axes.
        let last = data.ndim() - 1;
        let moved = data.get_non_uniform_dimension_transposed_to(last).unwrap();
        if source.before.is_empty() && source.after.len() < 2 {
            let found = batched_index_mapping(&moved, &a, &b, &into, &STRICT).unwrap();
            let same = batched_index_mapping(&data, &a, &b, &into, &STRICT).unwrap();
            prop_assert_eq!(found.as_ragged(), same.as_ragged());
        }
    }

    #[test]
    fn an_index_out_of_range_is_an_error_that_names_sample_and_position(seed: u64) {
        let mut r = Random::new(seed);
        let slow = Slow::random(&mut r);
        let rows = draw_positions(&mut r, slow.samples.len(), |_| slow.width);
        let mut wrong = rows.clone();
        if rows.is_empty() {
            return Ok(());
        }
        let sample = r.below(rows.len());
        let position = r.below(rows[sample].len() + 1);
        let n = slow.width as i64;
        let index = if r.flip() { n + r.below(3) as i64 } else { -n - 1 - r.below(3) as i64 };
        wrong[sample].insert(position, index);
        let ids = draw_indices(&mut r, &slow.batch_shape, &wrong);
        let place = list_places(&slow.batch_shape)[sample].clone();
        let same = |e: Error| match e {
            Error::NoSuchEntry { sample, position: p, index: i, size } => {
                (sample, p, i, size) == (place.clone(), position, index, slow.width)
            }
            _ => false,
        };
        let data = draw_either(&mut r, &slow);
        let dim = Some(slow.dim());
        prop_assert!(same(batched_indexing_access(&data, &ids, 0, dim, &ANY).unwrap_err()));
        let new =
            slow.with(ids.max_sample_size(), pick_entries(&mut r, &slow, &wrong)).padded(|| 0);
        prop_assert!(same(batched_indexing_write(&new, &ids, &data, dim, &ANY).unwrap_err()));
        let inverse = batched_inverse_indexing_access(&new, &ids, slow.width, 0, dim, &ANY);
        prop_assert!(same(inverse.unwrap_err()));
        prop_assert!(same(get_mask_from_indices(slow.width, &ids).unwrap_err()));
    }
}

#[test]
fn strict_indices_stay_within_their_sample() {
    let t = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6]).unwrap();
    let sizes = DenseTensor::from_vec([2], vec![3i64, 1]).unwrap();
    let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None).unwrap();
    let row = |v: Vec<i64>| {
        RaggedBatch::from_full_tensor(&DenseTensor::from_vec([2, 1], v).unwrap(), 1, 1).unwrap()
    };
    let strict = |v| batched_indexing_access(&batch, &row(v), 0, None, &STRICT);
    // Index -1 selects the last entry of each sample, whatever its size.
    assert_eq!(strict(vec![-1, -1]).unwrap().values().to_string(), "int32[2] [3, 4]");
    let e = strict(vec![0, 1]).unwrap_err().to_string();
    assert_eq!(e, "sample [1], position 0: index 1 is out of range; the number of entries is 1");
    // For `BeyondSample::Filler`, an index counts the slots of the padded tensor, including filler.
    let any = |v, f| {
        let batch = batch.with_padded_set_to(f).unwrap();
        batched_indexing_access(&batch, &row(v), 0, None, &ANY).unwrap().values().to_string()
    };
    assert_eq!(any(vec![2, 2], 0), "int32[2] [3, 0]");
    assert_eq!(any(vec![-1, -1], -7), "int32[2] [3, -7]");
}

#[test]
fn with_duplicates_refuse_an_entry_written_twice_is_an_error() {
    let into = DenseTensor::from_vec([2, 3], vec![0; 6]).unwrap();
    let ids = DenseTensor::from_vec([2, 3], vec![0i64, 1, 2, 1, 0, -2]).unwrap();
    let ids = RaggedBatch::from_full_tensor(&ids, 1, 1).unwrap();
    let new = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6]).unwrap();
    let write = |o| batched_indexing_write(&new, &ids, &into, None, o);
    let e = write(&STRICT).unwrap_err().to_string();
    assert_eq!(
        e,
        "the indices of sample 1 at positions 0 and 2 both refer to entry -2; remove one of the two, or set DuplicateWrites::Last to keep the last value"
    );
    let last = write(&ANY).unwrap().to_tensor().unwrap();
    assert_eq!(last.to_string(), "int32[2, 3] [[1, 2, 3], [5, 6, 0]]");
    // Reading the same entry twice is allowed.
    assert!(batched_indexing_access(&into, &ids, 0, None, &STRICT).is_ok());
}

#[test]
fn padding_may_be_written_twice_behind_a_larger_sample() {
    let options =
        IndexOptions { duplicates: DuplicateWrites::Refuse, beyond: BeyondSample::Filler };
    let values = DenseTensor::from_vec([2, 2], vec![7, 8, 9, 9]).unwrap();
    for (sizes, at) in [([3i64, 1], vec![0i64, 2, 2, 2]), ([1, 3], vec![2, 2, 0, 2])] {
        let t = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6]).unwrap();
        let sizes = DenseTensor::from_vec([2], sizes.to_vec()).unwrap();
        let into = RaggedBatch::try_new(&t, None, Some(&sizes), None).unwrap();
        let at = DenseTensor::from_vec([2, 2], at).unwrap();
        let at = RaggedBatch::from_full_tensor(&at, 1, 1).unwrap();
        let written = batched_indexing_write(&values, &at, &into, None, &options);
        assert!(written.is_ok(), "{sizes}: {written:?}");
    }
}

#[test]
fn indices_of_entries_without_elements_are_checked() {
    let data = make_tensor(DType::F32, &[1, 2, 0], vec![]);
    let ids = |i: i64| {
        let ids = DenseTensor::from_vec([1, 1], vec![i]).unwrap();
        RaggedBatch::from_full_tensor(&ids, 1, 1).unwrap()
    };
    let found = batched_indexing_access(&data, &ids(1), 0, None, &ANY).unwrap();
    assert_eq!(found.shape(), [1, 1, 0]);
    assert!(batched_indexing_access(&data, &ids(2), 0, None, &ANY).is_err());
    let one = make_tensor(DType::F32, &[1, 1, 0], vec![]);
    assert!(batched_indexing_write(&one, &ids(1), &data, None, &ANY).is_ok());
    assert!(batched_indexing_write(&one, &ids(-3), &data, None, &ANY).is_err());
    assert!(batched_inverse_indexing_access(&one, &ids(4), 4, 0, None, &ANY).is_err());
}
