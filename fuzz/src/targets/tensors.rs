//! Tensors of safetensors files, such as saved batches: conversions to padded batches, packed
//! batches and tensors of tensors return an error or a valid result.

use crate::{FIXED, check_array, read_within};
use serrate::dense::{DType, DenseTensor};
use serrate::io::safetensors::{SafetensorsFile, dense};
use serrate::{HetTensor, RaggedBatch};

pub fn run(data: &[u8]) {
    let open = || SafetensorsFile::from_bytes("f", data.to_vec().into());
    let Ok(file) = read_within(data, FIXED, open) else { return };
    let read = || {
        let read = file.tensors().iter().map(|entry| dense::read_one(&file, entry).ok());
        read.collect::<Vec<_>>()
    };
    let tensors: Vec<DenseTensor> =
        read_within(data, FIXED, read).into_iter().flatten().take(4).collect();
    for tensor in &tensors {
        if let Ok(flat) = tensor.to_flat() {
            assert_eq!(flat.len(), tensor.num_elements());
            check_array(&flat);
        }
        if let Ok(nested) = tensor.to_arrow_nested() {
            check_array(&nested);
        }
        for dtype in [DType::F32, DType::I64, DType::U8, DType::Bool, DType::F16] {
            if let Ok(cast) = tensor.cast(dtype) {
                assert_eq!(cast.shape(), tensor.shape());
            }
        }
        if let Ok(het) = HetTensor::from_dense(tensor) {
            assert!(het.is_dense());
            let back = het.to_ragged().and_then(|array| HetTensor::from_ragged(&array));
            if let Ok(back) = back {
                assert_eq!(back.num_values(), het.num_values());
            }
            let _ = (het.unbind(), het.to_string());
        }
        if let (Some(&size), Ok(column)) =
            (tensor.shape().first(), tensor.reshape([tensor.num_elements()]))
        {
            let _ = (tensor.row(size / 2), column.slice(size / 2, 1), tensor.to_string());
        }
        for sizes in &tensors {
            check_pair(tensor, sizes);
        }
    }
}

/// Builds batches of the first tensor with the second as offsets, as sizes and as mask.
fn check_pair(values: &DenseTensor, other: &DenseTensor) {
    let batches = [
        RaggedBatch::from_packed(values.clone(), other),
        RaggedBatch::try_new(values, None, Some(other), None),
        RaggedBatch::try_new(values, Some(other), None, None),
        RaggedBatch::from_oversize_tensor(values, None, Some(other), None),
        RaggedBatch::from_oversize_tensor(values, Some(other), None, Some(1)),
    ];
    for batch in batches.into_iter().flatten() {
        // A small file may have a batch with a huge padded shape, which is not built.
        let padded = batch.shape().iter().map(|&n| n as u128).product::<u128>();
        if padded > 1 << 16 {
            continue;
        }
        if let Ok(tensor) = batch.tensor() {
            assert_eq!(tensor.shape(), batch.shape());
        }
        let sizes = batch.sample_sizes().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(sizes.num_elements(), batch.num_samples());
        let _ = (batch.mask(), batch.split(), batch.get_existence_weights(DType::F32));
        if let Ok(packed) = batch.to_packed() {
            let back = RaggedBatch::from_packed(packed.values.clone(), &packed.cu_seqlens);
            let back = back.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(back.num_entries(), batch.num_entries());
        }
        if let Ok(array) = batch.to_ragged() {
            if let Ok(array) = array.to_arrow() {
                check_array(&array);
            }
            let _ = RaggedBatch::from_ragged(&array);
        }
        for sample in 0..batch.num_samples().min(4) {
            batch.sample(sample).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}
