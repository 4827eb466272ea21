//! Reads, writes and moves entries of all samples by index.

use super::any::{EntryView, to_dense};
use super::gather::{
    BatchIndices, IndexLimit, ScatterTarget, TargetStart, gather_entries, scatter_entries,
};
use super::pad::convert_fill;
use super::structure::{check_bytes, count_samples};
use super::{AnyBatch, RaggedBatch};
use crate::array::Layout;
use crate::dense::{DenseOptions, DenseTensor, Fill};
use crate::error::{Error, Result};
use crate::kernels::scatter::DuplicateWrites;

/// How functions treat an index that points to padding: such an index is at least the size of its
/// sample, but less than [`max_sample_size`](RaggedBatch::max_sample_size).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BeyondSample {
    /// An index that points to padding is valid, as in the padded tensor: reads return the padding
    /// value (0 by default), and writes are dropped. Negative indices count from the end of the
    /// padded axis.
    #[default]
    Filler,
    /// An index that points to padding is an error. Negative indices count from the end of the
    /// sample.
    Error,
}

/// Options of functions that take indices.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{BeyondSample, DuplicateWrites, IndexOptions};
/// let strict = IndexOptions { duplicates: DuplicateWrites::Refuse, beyond: BeyondSample::Error };
/// assert_ne!(strict, IndexOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IndexOptions {
    /// How functions that write treat an index that repeats within a sample.
    pub duplicates: DuplicateWrites,
    /// How functions treat an index that points to padding.
    pub beyond: BeyondSample,
}

impl IndexOptions {
    fn make_limit(self, width: usize) -> IndexLimit {
        IndexLimit { width, strict: self.beyond == BeyondSample::Error }
    }
}

/// Returns the axis to index, by default the non-uniform axis of the indices; a batch axis is an
/// error.
fn resolve_axis(indices: &RaggedBatch, dim_to_index_in: Option<usize>) -> Result<usize> {
    let dim = dim_to_index_in.unwrap_or(indices.non_uniform_dim());
    let batch = indices.num_batch_dims();
    if dim < batch {
        return Err(Error::invalid(format!(
            "dim_to_index_in is {dim}, which is a batch axis (the number of batch axes is {batch}); choose axis {batch} or a later axis"
        )));
    }
    Ok(dim)
}

/// Returns, for each sample, the entries of the data at its indices:
/// `out[b, j] = data[b, indices[b, j]]`.
///
/// Indices are integers `[batch axes.., positions]` without data axes; the data has the same batch
/// axes. `dim_to_index_in`, by default the non-uniform axis of the indices, is the data axis along
/// which the data is indexed; it becomes the non-uniform axis of the result. The result has the
/// sizes of the indices, padded with `filler_value`. Negative indices count from the end; indices
/// may repeat. A sample without indices has no entries in the result.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{RaggedBatch, IndexOptions, batched_indexing_access};
/// use serrate::dense::DenseTensor;
/// let data = DenseTensor::from_vec([2, 3], vec![10, 11, 12, 20, 21, 22])?;
/// let indices = RaggedBatch::from_packed(
///     DenseTensor::from_vec([3], vec![2i64, 0, -1])?,
///     &DenseTensor::from_vec([3], vec![0i64, 2, 3])?,
/// )?;
/// let out = batched_indexing_access(&data, &indices, -1, None, &IndexOptions::default())?;
/// assert_eq!(out.tensor()?.to_string(), "int32[2, 2] [[12, 10], [22, -1]]");
///
/// let wrong = RaggedBatch::from_packed(
///     DenseTensor::from_vec([3], vec![2i64, 0, 3])?,
///     &DenseTensor::from_vec([3], vec![0i64, 2, 3])?,
/// )?;
/// let e = batched_indexing_access(&data, &wrong, -1, None, &IndexOptions::default()).unwrap_err();
/// assert_eq!(e.to_string(), "sample [1], position 0: index 3 is out of range; the number of entries is 3");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If an index is out of range (the message names sample, position, index and size), the data and
/// the indices differ in batch axes, `dim_to_index_in` is not a data axis, the indices are not
/// integers or have data axes, or the type of the data cannot represent `filler_value`.
pub fn batched_indexing_access(
    input_data: impl Into<AnyBatch>,
    input_indices: &RaggedBatch,
    filler_value: impl Into<Fill>,
    dim_to_index_in: Option<usize>,
    options: &IndexOptions,
) -> Result<RaggedBatch> {
    let data = input_data.into();
    let dim = resolve_axis(input_indices, dim_to_index_in)?;
    let filler = convert_fill(filler_value.into(), data.dtype())?;
    let indices = BatchIndices::new(input_indices)?;
    let entries = EntryView::new(&data, indices.batch_shape(), dim)?;
    let values = gather_entries(&entries, &indices, options.make_limit(entries.width))?;
    Ok(input_indices.replace_values(values, dim)?.with_filler(Some(filler)))
}

/// Returns a dense tensor with `output_num_targets` entries for each sample: the entries of the
/// data at the indices (`out[b, indices[b, j]] = data[b, j]`), and `filler_value` elsewhere.
///
/// Indices, batch axes and `dim_to_index_in` are as in [`batched_indexing_access`]. Each sample of
/// the data must have at least as many entries as indices; further entries are ignored. A sample
/// without indices has only `filler_value`.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{RaggedBatch, IndexOptions, batched_inverse_indexing_access};
/// use serrate::dense::DenseTensor;
/// let data = DenseTensor::from_vec([1, 2], vec![1.5f32, 2.5])?;
/// let indices = RaggedBatch::from_full_tensor(&DenseTensor::from_vec([1, 2], vec![3, 0])?, 1, 1)?;
/// let out = batched_inverse_indexing_access(&data, &indices, 4, 0.0, None, &Default::default())?;
/// assert_eq!(out.to_string(), "float32[1, 4] [[2.5, 0.0, 0.0, 1.5]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`batched_indexing_access`]; also if a sample has fewer entries than indices, an index
/// repeats and the options forbid it, or the result exceeds [`DenseOptions::DEFAULT_LIMIT`].
pub fn batched_inverse_indexing_access(
    input_data: impl Into<AnyBatch>,
    output_indices: &RaggedBatch,
    output_num_targets: usize,
    filler_value: impl Into<Fill>,
    dim_to_index_in: Option<usize>,
    options: &IndexOptions,
) -> Result<DenseTensor> {
    let data = input_data.into();
    let dim = resolve_axis(output_indices, dim_to_index_in)?;
    let filler = convert_fill(filler_value.into(), data.dtype())?;
    let indices = BatchIndices::new(output_indices)?;
    let from = EntryView::new(&data, indices.batch_shape(), dim)?;
    let lists = count_samples(indices.batch_shape())?;
    let mut shape = vec![lists, output_num_targets];
    shape.extend_from_slice(from.entry_shape());
    check_bytes(&shape, data.dtype(), &DenseOptions::default(), "the output tensor")?;
    let entries = lists.checked_mul(output_num_targets);
    shape.splice(..2, entries);
    if entries.is_none() {
        return Err(Error::invalid(format!(
            "{lists} sample(s) of {output_num_targets} targets have more entries than memory can address; reduce output_num_targets"
        )));
    }
    let target = ScatterTarget {
        layout: &Layout::Uniform { size: output_num_targets, lists },
        shape,
        before: TargetStart::Fill(filler.as_bytes()),
        limit: options.make_limit(output_num_targets),
        duplicates: options.duplicates,
    };
    let values = scatter_entries(&from, &indices, target)?;
    to_dense(&values, indices.batch_shape(), output_num_targets, dim)
}

/// Writes `to_write` at the indices of each sample in a copy of `to_write_into`:
/// `out[b, indices[b, j]] = to_write[b, j]`.
///
/// The result is a tensor if `to_write_into` is a tensor, else a batch with the sample sizes of
/// `to_write_into`.
///
/// Indices, batch axes and `dim_to_index_in` are as in [`batched_indexing_access`]. `to_write` and
/// `to_write_into` have the same type, and the same shape except along the indexed axis. Each
/// sample of `to_write` has at least as many entries as indices; further entries are ignored. Along
/// the non-uniform axis, an index that is not less than the size of its sample points to padding;
/// see [`BeyondSample`]. A sample without indices does not change.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{RaggedBatch, DuplicateWrites, IndexOptions, batched_indexing_write};
/// use serrate::dense::DenseTensor;
/// let into = DenseTensor::from_vec([1, 3], vec![1, 2, 3])?;
/// let indices = RaggedBatch::from_full_tensor(&DenseTensor::from_vec([1, 2], vec![2, 2])?, 1, 1)?;
/// let new = DenseTensor::from_vec([1, 2], vec![7, 8])?;
/// let out = batched_indexing_write(&new, &indices, &into, None, &IndexOptions::default())?;
/// assert_eq!(out.to_tensor()?.to_string(), "int32[1, 3] [[1, 2, 8]]");
/// let once = IndexOptions { duplicates: DuplicateWrites::Refuse, ..Default::default() };
/// assert!(batched_indexing_write(&new, &indices, &into, None, &once).is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`batched_inverse_indexing_access`]; also if types or shapes differ.
pub fn batched_indexing_write(
    to_write: impl Into<AnyBatch>,
    output_indices: &RaggedBatch,
    to_write_into: impl Into<AnyBatch>,
    dim_to_index_in: Option<usize>,
    options: &IndexOptions,
) -> Result<AnyBatch> {
    let (from, into) = (to_write.into(), to_write_into.into());
    let dim = resolve_axis(output_indices, dim_to_index_in)?;
    let indices = BatchIndices::new(output_indices)?;
    let from = EntryView::new(&from, indices.batch_shape(), dim)?;
    write_entries(&from, &indices, &into, dim, options)
}

fn write_entries(
    from: &EntryView,
    indices: &BatchIndices,
    into: &AnyBatch,
    dim: usize,
    options: &IndexOptions,
) -> Result<AnyBatch> {
    let own = EntryView::new(into, indices.batch_shape(), dim)?;
    check_same_entries(from, &own)?;
    let target = ScatterTarget {
        layout: &own.layout,
        shape: own.values.shape().to_vec(),
        before: TargetStart::Copy(own.values.as_bytes()),
        limit: options.make_limit(own.width),
        duplicates: options.duplicates,
    };
    let values = scatter_entries(from, indices, target)?;
    match into {
        AnyBatch::Ragged(batch) if own.layout.is_ragged() => {
            Ok(batch.replace_values(values, dim)?.into())
        }
        AnyBatch::Ragged(batch) => {
            let tensor = to_dense(&values, batch.batch_shape(), own.width, dim)?;
            let axis = i64::try_from(batch.non_uniform_dim()).ok();
            Ok(batch.create_with_sample_sizes_like_self(&tensor, axis)?.into())
        }
        AnyBatch::Dense(_) => Ok(to_dense(&values, indices.batch_shape(), own.width, dim)?.into()),
    }
}

pub(super) fn check_same_entries(from: &EntryView, into: &EntryView) -> Result<()> {
    let (a, b) = (from.values.dtype(), into.values.dtype());
    if a != b {
        return Err(Error::invalid(format!(
            "entries of type {a} cannot be written into entries of type {b}; cast them to {b} first"
        )));
    }
    if from.entry_shape() != into.entry_shape() {
        return Err(Error::invalid(format!(
            "entries of shape {:?} cannot be written into entries of shape {:?}; reshape the entries to write to the second shape",
            from.entry_shape(),
            into.entry_shape()
        )));
    }
    Ok(())
}

/// Returns a copy of `target_data` in which the entries of `source_data` at `source_indices`
/// replace the entries at `target_indices`: `out[b, to[b, j]] = source[b, from[b, j]]`.
///
/// The result is a tensor if `target_data` is a tensor, else a batch with the sample sizes of
/// `target_data`.
///
/// The entries are along the non-uniform axis of a ragged batch, or the axis after the batch axes
/// of a tensor. Source and target have the same type, and the same shape except along this axis.
/// Both batches of indices have the same sample sizes. Indices of the source may repeat. A sample
/// without indices does not change.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{RaggedBatch, batched_index_mapping};
/// use serrate::dense::DenseTensor;
/// let row = |v: Vec<i64>| DenseTensor::from_vec([1, v.len()], v);
/// let indices = |v| RaggedBatch::from_full_tensor(&row(v)?, 1, 1);
/// let (from, to) = (indices(vec![0, 2])?, indices(vec![1, 0])?);
/// let (source, target) = (row(vec![7, 8, 9])?, row(vec![1, 2])?);
/// let out = batched_index_mapping(&source, &from, &to, &target, &Default::default())?;
/// assert_eq!(out.to_tensor()?.to_string(), "int64[1, 2] [[9, 7]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the indices differ in sample sizes; otherwise same as [`batched_indexing_write`].
pub fn batched_index_mapping(
    source_data: impl Into<AnyBatch>,
    source_indices: &RaggedBatch,
    target_indices: &RaggedBatch,
    target_data: impl Into<AnyBatch>,
    options: &IndexOptions,
) -> Result<AnyBatch> {
    let (source, target) = (source_data.into(), target_data.into());
    source_indices
        .structure()
        .check_same_sizes(target_indices.structure(), "source_indices and target_indices")?;
    let widths = (source_indices.max_sample_size(), target_indices.max_sample_size());
    if widths.0 != widths.1 {
        return Err(Error::invalid(format!(
            "source_indices are padded to {} positions and target_indices to {}; pad both to the same number of positions",
            widths.0, widths.1
        )));
    }
    let along = |data: &AnyBatch| match data {
        AnyBatch::Ragged(batch) => batch.non_uniform_dim(),
        AnyBatch::Dense(_) => source_indices.num_batch_dims(),
    };
    let (from, to) = (BatchIndices::new(source_indices)?, BatchIndices::new(target_indices)?);
    let source = EntryView::new(&source, from.batch_shape(), along(&source))?;
    let values = gather_entries(&source, &from, options.make_limit(source.width))?;
    let moved = EntryView {
        values,
        layout: source_indices.offsets().clone().into(),
        width: widths.0,
        filler: None,
        dim: source.dim,
    };
    write_entries(&moved, &to, &target, along(&target), options)
}
