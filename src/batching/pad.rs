//! Entries to padded tensors and back, each in one pass.

use super::RaggedBatch;
use super::entries::{fill, filled, share, transpose, with_entry};
use super::structure::{check_bytes, product};
use crate::array::{Layout, Offsets};
use crate::dense::{BufferPool, Contents, DenseOptions, DenseTensor, Fill, Memory, Side};
use crate::error::{Error, Result};

/// The padded tensor of a batch.
pub(super) fn pad(batch: &RaggedBatch, options: &DenseOptions) -> Result<DenseTensor> {
    if options.side == Side::Left {
        return Err(Error::invalid(
            "entries of a batch come first and its filler after them; it is not padded on the left",
        ));
    }
    let dtype = batch.dtype();
    if options.dtype.is_some_and(|d| d != dtype) {
        return Err(Error::invalid("convert a batch with to_dtype before it is padded"));
    }
    let filler = match options.fill {
        Some(value) => value.to_tensor(dtype)?.as_bytes().to_vec(),
        None => batch.filler().map_or_else(Vec::new, |f| f.as_bytes().to_vec()),
    };
    let shape = batch.shape();
    let bytes = check_bytes(&shape, dtype, options, "a padded batch")?;
    let (before, after) = batch.around();
    let outer = product(before);
    let run = product(after).saturating_mul(dtype.size());
    let width = batch.max_sample_size();
    let mut memory = match options.pool.as_ref() {
        Some(pool) => BufferPool::take(pool, bytes)?,
        None => Memory::zeroed(bytes)?,
    };
    let (out, contents) = memory.take_contents();
    if bytes > 0 {
        let row = outer * width * run;
        let fresh = matches!(contents, Contents::Zero) && filler.iter().all(|b| *b == 0);
        let zero = [0u8];
        let filler = if filler.is_empty() { &zero[..] } else { &filler };
        let (offsets, values) = (batch.offsets(), batch.values().as_bytes());
        let rows = Layout::Uniform { size: width, lists: offsets.lists() };
        share(&rows, outer * run, &mut out[..bytes], options.parallel, &|samples, out| {
            for (i, out) in samples.zip(out.chunks_exact_mut(row)) {
                let entries = offsets.range(i);
                let size = entries.len();
                let own = &values[entries.start * outer * run..entries.end * outer * run];
                if outer == 1 {
                    let (head, tail) = out.split_at_mut(own.len());
                    head.copy_from_slice(own);
                    if !fresh {
                        fill(tail, filler);
                    }
                    continue;
                }
                with_entry!(run, e => transpose(e, (size, outer), (own, outer), (out, width)));
                if !fresh {
                    for out in out.chunks_exact_mut(width * run) {
                        fill(&mut out[size * run..], filler);
                    }
                }
            }
            Ok(())
        })?;
    }
    memory.set_contents(|| Contents::Unknown);
    DenseTensor::try_new_trusted(dtype, shape, memory.into_buffer())
}

/// The entries of a padded tensor `[samples, before.., width, after..]`: `[entries, before.., after..]`.
/// Samples are not larger than the width. Shares the buffer when nothing is filler.
pub(super) fn unpad(
    tensor: &DenseTensor,
    offsets: &Offsets,
    batch_dims: usize,
    dim: usize,
) -> Result<DenseTensor> {
    let shape = tensor.shape();
    let (before, width, after) = (&shape[batch_dims..dim], shape[dim], &shape[dim + 1..]);
    let outer = product(before);
    let run = product(after).saturating_mul(tensor.dtype().size());
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
    let buffer = filled(entries.saturating_mul(entry), |out| {
        if entry == 0 {
            return Ok(());
        }
        share(&layout, entry, out, true, &|samples, out| {
            let mut rest = out;
            for i in samples {
                let size = offsets.length(i);
                let own = &padded[i * width * entry..(i + 1) * width * entry];
                let (out, after) = std::mem::take(&mut rest).split_at_mut(size * entry);
                rest = after;
                if outer == 1 {
                    out.copy_from_slice(&own[..size * entry]);
                } else {
                    with_entry!(run, e => transpose(e, (outer, size), (own, width), (out, outer)));
                }
            }
            Ok(())
        })
    })?;
    DenseTensor::try_new_trusted(tensor.dtype(), made, buffer)
}

/// A value as one element of a type, as tensor libraries convert it: floats are cut towards zero for
/// integers, and anything but zero is true.
///
/// # Errors
/// When the type cannot hold it.
pub(super) fn element(value: Fill, dtype: crate::dense::DType) -> Result<DenseTensor> {
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
