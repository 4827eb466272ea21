//! Converts entries to padded tensors and back, each in one pass.

use super::RaggedBatch;
use super::entry_copies::{
    fill_buffer, for_each_part, repeat_value, transpose_entries, with_entry,
};
use super::structure::{check_bytes, multiply_saturating};
use crate::array::{Layout, Offsets};
use crate::dense::{
    BlockContents, BufferPool, DenseOptions, DenseTensor, Fill, PaddingSide, TensorMemory,
};
use crate::error::{Error, Result};

impl RaggedBatch {
    /// Computes the padded tensor with the `limit`, `fill`, `pool` and `parallel` of `options`.
    ///
    /// Caches nothing. A sample without entries has only padding.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::{DenseOptions, DenseTensor};
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.padded(&DenseOptions::default())?, padded);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor exceeds [`limit`](DenseOptions::limit), the element type cannot represent the
    /// padding value, or `options` request padding on the left or another type, which is not
    /// supported.
    pub fn padded(&self, options: &DenseOptions) -> Result<DenseTensor> {
        pad_batch(self, options)
    }
}

fn pad_batch(batch: &RaggedBatch, options: &DenseOptions) -> Result<DenseTensor> {
    if options.side == PaddingSide::Left {
        return Err(Error::invalid(
            "a batch cannot be padded on the left, because its padding follows its entries; pad it on the right",
        ));
    }
    let dtype = batch.dtype();
    if let Some(other) = options.dtype.filter(|d| *d != dtype) {
        return Err(Error::invalid(format!(
            "padding cannot change the element type from {dtype} to {other}; cast the batch to {other} first"
        )));
    }
    let filler = match options.fill {
        Some(value) => value.to_tensor(dtype)?.as_bytes().to_vec(),
        None => batch.filler().map_or_else(Vec::new, |f| f.as_bytes().to_vec()),
    };
    let shape = batch.shape();
    let bytes = check_bytes(&shape, dtype, options, "a padded batch")?;
    let (before, after) = batch.split_entry_shape();
    let outer = multiply_saturating(before);
    let run = multiply_saturating(after).saturating_mul(dtype.size());
    let width = batch.max_sample_size();
    let mut memory = match options.pool.as_ref() {
        Some(pool) => BufferPool::take_memory(pool, bytes)?,
        None => TensorMemory::new_zeroed(bytes)?,
    };
    let (out, contents) = memory.take_contents();
    if bytes > 0 {
        let row = outer * width * run;
        let fresh = matches!(contents, BlockContents::Zero) && filler.iter().all(|b| *b == 0);
        let zero = [0u8];
        let filler = if filler.is_empty() { &zero[..] } else { &filler };
        let (offsets, values) = (batch.offsets(), batch.values().as_bytes());
        let rows = Layout::Uniform { size: width, lists: offsets.lists() };
        for_each_part(&rows, outer * run, &mut out[..bytes], options.parallel, &|samples, out| {
            for (i, out) in samples.zip(out.chunks_exact_mut(row)) {
                let entries = offsets.range(i);
                let size = entries.len();
                let own = &values[entries.start * outer * run..entries.end * outer * run];
                if outer == 1 {
                    let (head, tail) = out.split_at_mut(own.len());
                    head.copy_from_slice(own);
                    if !fresh {
                        repeat_value(tail, filler);
                    }
                    continue;
                }
                with_entry!(run, e => {
                    transpose_entries(e, (size, outer), (own, outer), (out, width))
                });
                if !fresh {
                    for out in out.chunks_exact_mut(width * run) {
                        repeat_value(&mut out[size * run..], filler);
                    }
                }
            }
            Ok(())
        })?;
    }
    memory.set_contents(|| BlockContents::Unknown);
    DenseTensor::try_new_trusted(dtype, shape, memory.into_buffer())
}

/// Removes the padding of a tensor of shape `[batch.., before.., width, after..]`. Axis `dim`,
/// counted from the first of the `batch_dims` batch axes, has `width` entries per sample. `offsets`
/// has one list per sample; the length of this list is the number of entries of the sample that are
/// not padding. Returns the entries, of shape `[entries, before.., after..]`. They share the memory
/// of `tensor` if there is no padding and all sizes in `before` are 1.
pub(super) fn remove_padding(
    tensor: &DenseTensor,
    offsets: &Offsets,
    batch_dims: usize,
    dim: usize,
) -> Result<DenseTensor> {
    let shape = tensor.shape();
    let (before, width, after) = (&shape[batch_dims..dim], shape[dim], &shape[dim + 1..]);
    let outer = multiply_saturating(before);
    let run = multiply_saturating(after).saturating_mul(tensor.dtype().size());
    let entry = outer.saturating_mul(run);
    let entries = offsets.children();
    let mut made = vec![entries];
    made.extend_from_slice(before);
    made.extend_from_slice(after);
    if outer == 1 && offsets.lists().checked_mul(width) == Some(entries) {
        return tensor.reshape(made);
    }
    let padded = tensor.as_bytes();
    let layout = Layout::Ragged(offsets.clone());
    let buffer = fill_buffer(entries.saturating_mul(entry), |out| {
        if entry == 0 {
            return Ok(());
        }
        for_each_part(&layout, entry, out, true, &|samples, out| {
            let mut rest = out;
            for i in samples {
                let size = offsets.length(i);
                let own = &padded[i * width * entry..(i + 1) * width * entry];
                let (out, after) = std::mem::take(&mut rest).split_at_mut(size * entry);
                rest = after;
                if outer == 1 {
                    out.copy_from_slice(&own[..size * entry]);
                } else {
                    with_entry!(run, e => {
                        transpose_entries(e, (outer, size), (own, width), (out, outer))
                    });
                }
            }
            Ok(())
        })
    })?;
    DenseTensor::try_new_trusted(tensor.dtype(), made, buffer)
}

/// Converts the value of the padding to a tensor of one element: floats are truncated towards zero
/// for integer types, nonzero values are true for bool. Returns an error if the type cannot
/// represent the value.
pub(super) fn convert_fill(value: Fill, dtype: crate::dense::DType) -> Result<DenseTensor> {
    use crate::dense::DType;
    let value = match (value, dtype) {
        (Fill::Float(v), DType::Bool) => Fill::Bool(v != 0.0),
        (Fill::Int(v), DType::Bool) => Fill::Bool(v != 0),
        (Fill::UInt(v), DType::Bool) => Fill::Bool(v != 0),
        (Fill::Float(v), d) if d.is_integer() => Fill::Float(v.trunc()),
        (value, _) => value,
    };
    value.to_tensor(dtype)
}
