//! Packed batches, compared with the elements of padded batches at which their masks are true.

use proptest::prelude::*;
use serrate::dense::{DType, DenseTensor};
use serrate::loader::{Batch, BatchForm, Loader, LoaderOptions};

use super::support::{
    draw_options, gather_items, make_shards, make_table, make_wide, name_tensors, pack_options,
};

/// Returns the elements of a tensor at which a mask is true, as a tensor of one axis.
fn mask_tensor(mask: &DenseTensor, tensor: &DenseTensor) -> DenseTensor {
    let size = tensor.dtype().size();
    let cells = tensor.as_bytes().chunks_exact(size).zip(mask.as_bytes());
    let kept: Vec<u8> = cells.filter(|(_, m)| **m == 1).flat_map(|(c, _)| c.to_vec()).collect();
    let n = kept.len() / size;
    DenseTensor::try_new(tensor.dtype(), [n], arrow::buffer::Buffer::from_vec(kept)).unwrap()
}

fn read_ints(batch: &Batch, name: &str) -> Vec<i32> {
    batch.tensor(name).unwrap().as_slice::<i32>().unwrap().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packed_batches_have_the_elements_of_padded_batches_under_their_masks(
        seed in 0u64..60,
        mixed in any::<bool>(),
        options in draw_options(),
    ) {
        let shards = make_shards(seed, mixed);
        let padded = Loader::try_new(shards.clone(), options.clone()).unwrap();
        let flat = Loader::try_new(shards.clone(), pack_options(&options)).unwrap();
        for epoch in 0..2 {
            let both = padded.epoch(epoch).unwrap().zip(flat.epoch(epoch).unwrap());
            for (padded, flat) in both {
                let (padded, flat) = (padded.unwrap(), flat.unwrap());
                assert_eq!(padded.items(), flat.items());
                // No size is limited, so that each tensor contains every element.
                let occupied = padded.tensors().iter().map(|(_, tensor)| {
                    flat.axis_len(tensor.ndim() - 1).unwrap() * tensor.dtype().size()
                });
                assert_eq!(padded.occupied_bytes(), occupied.sum::<usize>());
                let bytes = flat.tensors().iter().map(|(_, tensor)| tensor.nbytes());
                assert_eq!(flat.occupied_bytes(), bytes.sum::<usize>());
                let table = gather_items(&shards, flat.items());
                for (name, tensor) in name_tensors(&padded) {
                    let column = name.trim_end_matches("/valid");
                    let Ok(column) = table.column(column) else { continue };
                    let expected = match column.axis() {
                        0 => tensor,
                        axis => {
                            let mask = padded.tensor(&format!("dim{axis}/mask")).unwrap();
                            mask_tensor(mask, &tensor)
                        }
                    };
                    assert_eq!(flat.tensor(&name).unwrap(), &expected, "{name}");
                }
                check_lists(&flat, &table);
            }
            assert_eq!(padded.plan(epoch).num_batches(), flat.plan(epoch).num_batches());
        }
    }
}

/// Checks the lengths, offsets and position ids of a packed batch against the table of its items.
fn check_lists(batch: &Batch, table: &serrate::table::RaggedTable) {
    let rows = 0..table.num_rows();
    for axis in 1..4 {
        let ends: Vec<usize> = rows
            .clone()
            .map(|row| table.windows(row..row + 1).unwrap()[axis].len())
            .scan(0, |end, n| {
                *end += n;
                Some(*end)
            })
            .collect();
        let cu: Vec<i32> = std::iter::once(0).chain(ends.iter().map(|e| *e as i32)).collect();
        assert_eq!(read_ints(batch, &format!("dim{axis}/cu_seqlens")), cu);
        let longest = cu.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        assert_eq!(batch.max_seqlen(axis).unwrap(), longest as usize);
        assert_eq!(batch.axis_len(axis).unwrap(), cu[cu.len() - 1] as usize);
        let positions: Vec<i32> = cu.windows(2).flat_map(|w| 0..w[1] - w[0]).collect();
        assert_eq!(read_ints(batch, &format!("dim{axis}/position_ids")), positions);
        if axis > 1 {
            let offsets = table.layout(axis).unwrap().to_offsets().unwrap().to_i32().unwrap();
            assert_eq!(read_ints(batch, &format!("dim{axis}/offsets")), offsets.to_vec());
        }
    }
    assert!(batch.tensor("dim1/offsets").is_err() && batch.max_seqlen(4).is_err());
}

#[test]
fn position_ids_have_the_requested_type() {
    let flat = |options: LoaderOptions| {
        let options = options.form(BatchForm::Packed).columns(["code", "id"]);
        let loader = Loader::try_new([make_table(4, 6, make_wide)], options).unwrap();
        let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
        assert_eq!(batch.nbytes(), batch.occupied_bytes());
        batch
    };
    let narrow = flat(LoaderOptions::new(6));
    let wide = flat(LoaderOptions::new(6).position_ids(DType::I64));
    let expected: Vec<i64> =
        read_ints(&narrow, "dim2/position_ids").into_iter().map(Into::into).collect();
    assert!(!expected.is_empty());
    let found = wide.tensor("dim2/position_ids").unwrap();
    assert_eq!(found.as_slice::<i64>().unwrap(), expected);
    let none = flat(LoaderOptions::new(6).position_ids(None));
    let names: Vec<_> = none.tensors().iter().map(|(n, _)| n.as_ref()).collect();
    let lists = ["dim1/cu_seqlens", "dim2/cu_seqlens", "dim2/offsets"];
    assert_eq!(names, [["code", "id"].as_slice(), &lists].concat());
    // An axis without a column has no position ids.
    assert!(narrow.tensor("dim1/position_ids").is_err());
}
