//! Masks of batches: access by sample, and conversion from and to indices.

use std::borrow::Cow;

use super::gather::{BatchIndices, mark_positions};
use super::structure::{SampleStructure, count_samples};
use super::{AnyBatch, RaggedBatch};
use crate::array::{Layout, Offsets};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// A mask: one boolean per entry, in the order of the entries.
pub(super) struct MaskFlags {
    pub(super) values: DenseTensor,
    pub(super) layout: Layout,
}

impl MaskFlags {
    /// Reads a mask, which must be a bool tensor `[batch axes.., entries]` or a bool batch without
    /// data axes.
    pub(super) fn new(mask: &AnyBatch, batch_dims: usize) -> Result<Self> {
        let refuse = |why: String| Err(Error::invalid(format!("invalid mask: {why}")));
        if mask.dtype() != DType::Bool {
            return refuse(format!("the mask has the type {}; cast it to bool", mask.dtype()));
        }
        let shape = mask.shape();
        match mask {
            _ if shape.len() != batch_dims + 1 => refuse(format!(
                "the mask has the shape {shape:?}; give a mask of {} axes, the batch axes and one axis of entries",
                (batch_dims + 1).max(2)
            )),
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

    pub(super) fn get_sample(&self, i: usize, size: usize) -> &[u8] {
        let own = self.layout.range(i);
        let end = own.end.min(own.start.saturating_add(size));
        &self.values.as_bytes()[own.start..end]
    }
}

pub(super) fn count_true(flags: &[u8]) -> usize {
    flags.iter().map(|b| usize::from(*b)).sum()
}

/// Calls `each` with the index of every true byte of `flags`, ascending. Tests eight bytes at a
/// time.
#[inline(always)]
pub(super) fn for_each_true(flags: &[u8], mut each: impl FnMut(usize)) {
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

pub(super) fn mask_to_bool(mask: &DenseTensor) -> Result<Cow<'_, DenseTensor>> {
    match mask.dtype() {
        DType::Bool => Ok(Cow::Borrowed(mask)),
        _ => mask.cast(DType::Bool).map(Cow::Owned),
    }
}

/// Returns, for each sample, the indices at which the mask is true, as ascending int64.
///
/// The mask has one batch axis: a tensor `[samples, entries]`, or a batch without data axes, whose
/// padding is ignored. Nonzero numbers are true. To select the same entries several times, use
/// these indices, which are faster than the mask. A sample whose mask is nowhere true has no
/// indices.
///
/// ```
/// # use serrate_core as serrate;
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
/// If the mask does not have exactly these axes.
pub fn get_indices_from_mask(mask: impl Into<AnyBatch>) -> Result<RaggedBatch> {
    let mask = match mask.into() {
        AnyBatch::Dense(tensor) => AnyBatch::Dense(mask_to_bool(&tensor)?.into_owned()),
        AnyBatch::Ragged(batch) if batch.num_batch_dims() == 1 => batch.cast(DType::Bool)?.into(),
        AnyBatch::Ragged(batch) => {
            return Err(Error::invalid(format!(
                "a mask of {} batch axes cannot be converted to indices; apply flatten_batch_dims first to get one batch axis",
                batch.num_batch_dims()
            )));
        }
    };
    let flags = MaskFlags::new(&mask, 1)?;
    let lists = flags.layout.lists();
    let sizes = (0..lists).map(|i| count_true(flags.get_sample(i, usize::MAX)));
    let offsets = Offsets::from_lengths(sizes)?;
    let mut positions = Vec::with_capacity(offsets.children());
    for i in 0..lists {
        for_each_true(flags.get_sample(i, usize::MAX), |k| {
            positions.push(i64::try_from(k).unwrap_or(i64::MAX));
        });
    }
    let values = DenseTensor::from_vec([positions.len()], positions)?;
    let structure = SampleStructure::try_new(vec![lists], offsets, None, DType::I64)?;
    RaggedBatch::from_parts(structure.into(), values, 1)
}

/// Returns a `Bool` tensor `[batch axes.., mask_num_targets]`: an element of a sample is true if
/// its position is an index of the sample.
///
/// Order and repeats are ignored; negative indices count from the end. A sample without indices has
/// only false.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{RaggedBatch, get_mask_from_indices};
/// use serrate::dense::DenseTensor;
/// let indices = DenseTensor::from_vec([1, 3], vec![2, 0, 2])?;
/// let indices = RaggedBatch::from_full_tensor(&indices, 1, 1)?;
/// let mask = get_mask_from_indices(4, &indices)?;
/// assert_eq!(mask.to_string(), "bool[1, 4] [[true, false, true, false]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If an index is out of range (the message names sample, position, index and size), the indices
/// are not integers or have data axes, or the mask exceeds
/// [`DEFAULT_LIMIT`](crate::dense::DenseOptions::DEFAULT_LIMIT).
pub fn get_mask_from_indices(
    mask_num_targets: usize,
    indices: &RaggedBatch,
) -> Result<DenseTensor> {
    mark_positions(&BatchIndices::new(indices)?, mask_num_targets)
}
