//! Masks of batches: read row by row, made of indices, made into indices.

use std::borrow::Cow;

use super::gather::{Indices, marks};
use super::structure::{Structure, count_samples};
use super::{AnyBatch, RaggedBatch};
use crate::array::{Layout, Offsets};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// One truth value per entry, in the order of the entries.
pub(super) struct Flags {
    pub(super) values: DenseTensor,
    pub(super) layout: Layout,
}

impl Flags {
    /// Of a tensor `[batch axes.., entries]` or a batch without data axes.
    ///
    /// # Errors
    /// When it is not bool, or has data axes.
    pub(super) fn new(mask: &AnyBatch, batch_dims: usize) -> Result<Self> {
        let refuse = |why: String| Err(Error::invalid(format!("a mask {why}")));
        if mask.dtype() != DType::Bool {
            return refuse(format!("is bool, not {}", mask.dtype()));
        }
        let shape = mask.shape();
        match mask {
            _ if shape.len() != batch_dims + 1 => {
                refuse(format!("of {batch_dims} batch axes and one more, not of shape {shape:?}"))
            }
            AnyBatch::Ragged(batch) => {
                Ok(Self { values: batch.values().clone(), layout: batch.offsets().clone().into() })
            }
            AnyBatch::Dense(tensor) => {
                let lists = count_samples(&shape[..batch_dims])?;
                let layout = Layout::Uniform { size: shape[batch_dims], lists };
                Ok(Self { values: tensor.clone(), layout })
            }
        }
    }

    /// The flags of the first `size` entries of sample `i`.
    pub(super) fn of(&self, i: usize, size: usize) -> &[u8] {
        let own = self.layout.range(i);
        let end = own.end.min(own.start.saturating_add(size));
        &self.values.as_bytes()[own.start..end]
    }
}

/// How many of the bytes, 0 or 1 each, are 1.
pub(super) fn count(flags: &[u8]) -> usize {
    flags.iter().map(|b| usize::from(*b)).sum()
}

/// Runs of eight flags at once: calls `each` with the positions that are true, in order.
#[inline(always)]
pub(super) fn each_true(flags: &[u8], mut each: impl FnMut(usize)) {
    let (eights, rest) = flags.as_chunks::<8>();
    for (i, eight) in eights.iter().enumerate() {
        let mut word = u64::from_le_bytes(*eight);
        while word != 0 {
            each(i * 8 + (word.trailing_zeros() / 8) as usize);
            word &= word - 1;
        }
    }
    let first = eights.len() * 8;
    for (i, flag) in rest.iter().enumerate() {
        if *flag != 0 {
            each(first + i);
        }
    }
}

/// A mask as bool: what is not zero is true.
pub(super) fn truth(mask: &DenseTensor) -> Result<Cow<'_, DenseTensor>> {
    match mask.dtype() {
        DType::Bool => Ok(Cow::Borrowed(mask)),
        _ => mask.cast(DType::Bool).map(Cow::Owned),
    }
}

/// For every sample, the positions where the mask is true: int64, ascending.
///
/// The mask has one batch axis: a tensor `[samples, entries]` or a batch without data axes, whose
/// filler does not count. Numbers are true unless zero. Filtering by a mask is taking the entries at
/// its indices; where that is done several times, the indices are the faster way.
///
/// ```
/// use serrate::batching::get_indices_from_mask;
/// use serrate::dense::DenseTensor;
/// let mask = DenseTensor::from_bools([2, 3], [true, false, true, false, false, true])?;
/// let indices = get_indices_from_mask(&mask)?;
/// assert_eq!(indices.values().to_string(), "int64[3] [0, 2, 2]");
/// assert_eq!(indices.tensor()?.to_string(), "int64[2, 2] [[0, 2], [2, 0]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When the mask has other axes.
pub fn get_indices_from_mask(mask: impl Into<AnyBatch>) -> Result<RaggedBatch> {
    let mask = match mask.into() {
        AnyBatch::Dense(tensor) => AnyBatch::Dense(truth(&tensor)?.into_owned()),
        AnyBatch::Ragged(batch) if batch.num_batch_dims() == 1 => {
            batch.to_dtype(DType::Bool)?.into()
        }
        AnyBatch::Ragged(batch) => {
            return Err(Error::invalid(format!(
                "a mask of one batch axis becomes indices, not one of {}; flatten_batch_dims makes it one",
                batch.num_batch_dims()
            )));
        }
    };
    let flags = Flags::new(&mask, 1)?;
    let lists = flags.layout.lists();
    let sizes = (0..lists).map(|i| count(flags.of(i, usize::MAX)));
    let offsets = Offsets::from_lengths(sizes)?;
    let mut positions = Vec::with_capacity(offsets.children());
    for i in 0..lists {
        each_true(flags.of(i, usize::MAX), |k| {
            positions.push(i64::try_from(k).unwrap_or(i64::MAX));
        });
    }
    let values = DenseTensor::from_vec([positions.len()], positions)?;
    let structure = Structure::try_new(vec![lists], offsets, None, DType::I64)?;
    RaggedBatch::from_parts(structure.into(), values, 1)
}

/// For every sample, a row of `mask_num_targets` places that are true at its indices: a `Bool` tensor
/// `[batch axes.., mask_num_targets]`. Order and repeats do not matter; negative indices count from
/// the end of the row.
///
/// ```
/// use serrate::batching::{RaggedBatch, get_mask_from_indices};
/// use serrate::dense::DenseTensor;
/// let indices = RaggedBatch::from_full_tensor(&DenseTensor::from_vec([1, 3], vec![2, 0, 2])?, 1, 1)?;
/// assert_eq!(get_mask_from_indices(4, &indices)?.to_string(), "bool[1, 4] [[true, false, true, false]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// An index out of range, by sample, position, index and size; indices that are no integers or have
/// data axes; more places than [`DEFAULT_LIMIT`](crate::dense::DenseOptions::DEFAULT_LIMIT).
pub fn get_mask_from_indices(
    mask_num_targets: usize,
    indices: &RaggedBatch,
) -> Result<DenseTensor> {
    marks(&Indices::new(indices)?, mask_num_targets)
}
