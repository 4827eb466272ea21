//! Conversion of batches to and from ragged arrays, tables and packed tensors.

use proptest::prelude::*;
use serrate::array::{Layout, Offsets, RaggedArray};
use serrate::arrow::array::{Array, Int32Array};
use serrate::batching::RaggedBatch;
use serrate::dense::{DType, DenseOptions, DenseTensor};
use serrate::kernels::densify::densify;

use crate::reference::{Random, Slow, list_numbers};

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn batches_convert_to_arrays_tables_and_packed_tensors_and_back(seed: u64) {
        let mut r = Random::new(seed);
        let mut slow = Slow::random(&mut r);
        slow.after.splice(0..0, slow.before.drain(..));
        if slow.dtype == DType::BF16 {
            slow.dtype = DType::F32;
        }
        let batch = slow.batch(&mut r);
        let array = batch.to_ragged().unwrap();
        prop_assert_eq!(array.len(), slow.batch_shape[0]);
        prop_assert_eq!(array.ndim(), batch.ndim());
        let dense = densify(&array, None, &DenseOptions::default()).unwrap();
        let most = slow.samples.iter().map(Vec::len).max().unwrap_or(0);
        let tight = slow.with(most, slow.samples.clone());
        prop_assert_eq!(list_numbers(&dense), list_numbers(&tight.padded(|| 0)));
        // `from_ragged` finds the non-uniform axis again, even if all samples have the same size.
        let back = RaggedBatch::from_ragged(&array).unwrap();
        tight.check(&back);
        prop_assert_eq!(back.values().as_bytes(), batch.values().as_bytes());

        let table = RaggedBatch::to_table(&[("x", &batch)]).unwrap();
        tight.check(&RaggedBatch::from_column(&table, "x").unwrap());

        let flat = batch.flatten_batch_dims().unwrap();
        let packed = flat.to_packed().unwrap();
        prop_assert_eq!(packed.max_seqlen, most);
        let back = RaggedBatch::from_packed(packed.values, &packed.cu_seqlens).unwrap();
        prop_assert_eq!(back.offsets(), flat.offsets());
        prop_assert_eq!(back.values(), flat.values());
        let wide = packed.cu_seqlens.cast(DType::U16).unwrap();
        let back = RaggedBatch::from_packed(flat.values().clone(), &wide).unwrap();
        prop_assert_eq!(back.num_entries(), flat.num_entries());
    }
}

#[test]
fn columns_of_a_table_share_their_axes() {
    let sizes = DenseTensor::from_vec([2], vec![2i64, 1]).unwrap();
    let ids = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0]).unwrap();
    let boxes = DenseTensor::from_vec([2, 2, 2], vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0]);
    let ids = RaggedBatch::try_new(&ids, None, Some(&sizes), None).unwrap();
    let boxes = ids.create_with_sample_sizes_like_self(&boxes.unwrap(), None).unwrap();
    let table = RaggedBatch::to_table(&[("id", &ids), ("box", &boxes)]).unwrap();
    assert_eq!(table.column("id").unwrap().axis(), 1);
    assert_eq!(table.column("box").unwrap().axis(), 2);
    assert_eq!(RaggedBatch::from_column(&table, "id").unwrap(), ids);
    assert_eq!(RaggedBatch::from_column(&table, "box").unwrap(), boxes);
    let Layout::Ragged(offsets) = table.layout(1).unwrap() else { panic!("ragged") };
    assert!(offsets.ptr_eq(ids.offsets()));

    let other = DenseTensor::from_vec([2, 1], vec![1, 2]).unwrap();
    let other = RaggedBatch::from_full_tensor(&other, 1, 1).unwrap();
    let e = RaggedBatch::to_table(&[("id", &ids), ("n", &other)]).unwrap_err().to_string();
    assert!(e.contains("sample 0") && e.contains("\"n\""), "{e}");
    let three = DenseTensor::from_vec([2, 2, 3], vec![0; 12]).unwrap();
    let three = ids.create_with_sample_sizes_like_self(&three, None).unwrap();
    assert!(RaggedBatch::to_table(&[("box", &boxes), ("three", &three)]).is_err());
    assert!(RaggedBatch::to_table(&[]).is_err());
    assert!(RaggedBatch::from_column(&table, "none").is_err());
}

#[test]
fn arrays_with_two_ragged_axes_no_axes_or_nulls_are_not_batches() {
    let leaves = |n: i32| std::sync::Arc::new(Int32Array::from_iter_values(0..n)) as _;
    let offsets = |n: &[usize]| Offsets::from_lengths(n.iter().copied()).unwrap();
    let twice = vec![offsets(&[1, 2]).into(), offsets(&[1, 0, 2]).into()];
    let e = RaggedArray::try_new(2, twice, leaves(3)).unwrap();
    let e = RaggedBatch::from_ragged(&e).unwrap_err().to_string();
    assert!(e.contains("axes 1 and 2"), "{e}");
    let flat = RaggedArray::try_new(3, vec![], leaves(3)).unwrap();
    assert!(RaggedBatch::try_from(&flat).is_err());
    let nulls = std::sync::Arc::new(Int32Array::from(vec![Some(1), None])) as _;
    let nulls = RaggedArray::try_new(1, vec![offsets(&[2]).into()], nulls).unwrap();
    assert!(RaggedBatch::from_ragged(&nulls).unwrap_err().to_string().contains("nulls"));
    // Only axis 2 is ragged. Axes whose lists all have the same length become batch and data axes,
    // even if they have offsets.
    let axes =
        vec![offsets(&[2, 2]).into(), offsets(&[1, 0, 3, 2]).into(), offsets(&[2; 6]).into()];
    let array = RaggedArray::try_new(2, axes, leaves(12)).unwrap();
    let batch = RaggedBatch::from_ragged(&array).unwrap();
    assert_eq!(batch.shape(), [2, 2, 3, 2]);
    // The offsets of a sliced array do not start at 0.
    let tail = RaggedBatch::from_ragged(&array.slice(1, 1).unwrap()).unwrap();
    assert_eq!(tail.sample_sizes().unwrap().to_string(), "int64[1, 2] [[3, 2]]");
    assert_eq!(tail.values().shape(), [5, 2]);
    assert_eq!(list_numbers(tail.values()), (2..12).collect::<Vec<_>>());
    assert_eq!(RaggedArray::try_from(&tail).unwrap().leaves().len(), 10);
}
