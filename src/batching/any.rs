//! [`AnyBatch`]: a dense tensor or a ragged batch.

use super::RaggedBatch;
use super::construct::check_batch;
use super::entries::swapped;
use super::structure::{count_samples, product};
use crate::array::Layout;
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// A dense tensor, whose samples all have one size, or a ragged batch. Either is made into one where
/// one is asked for; clones share buffers.
#[derive(Clone, Debug)]
pub enum AnyBatch {
    /// Samples of one size. The first axis is the batch axis, where nothing else says how many there
    /// are.
    Dense(DenseTensor),
    /// Samples of different size.
    Ragged(RaggedBatch),
}

impl From<DenseTensor> for AnyBatch {
    fn from(tensor: DenseTensor) -> Self {
        Self::Dense(tensor)
    }
}

impl From<&DenseTensor> for AnyBatch {
    fn from(tensor: &DenseTensor) -> Self {
        Self::Dense(tensor.clone())
    }
}

impl From<RaggedBatch> for AnyBatch {
    fn from(batch: RaggedBatch) -> Self {
        Self::Ragged(batch)
    }
}

impl From<&RaggedBatch> for AnyBatch {
    fn from(batch: &RaggedBatch) -> Self {
        Self::Ragged(batch.clone())
    }
}

impl From<&Self> for AnyBatch {
    fn from(batch: &Self) -> Self {
        batch.clone()
    }
}

impl AnyBatch {
    /// The tensor, when it is one.
    pub fn as_dense(&self) -> Option<&DenseTensor> {
        match self {
            Self::Dense(tensor) => Some(tensor),
            Self::Ragged(_) => None,
        }
    }

    /// The ragged batch, when it is one.
    pub fn as_ragged(&self) -> Option<&RaggedBatch> {
        match self {
            Self::Dense(_) => None,
            Self::Ragged(batch) => Some(batch),
        }
    }

    /// The tensor itself, or the padded one of a ragged batch.
    ///
    /// # Errors
    /// As [`RaggedBatch::tensor`].
    pub fn to_tensor(&self) -> Result<DenseTensor> {
        match self {
            Self::Dense(tensor) => Ok(tensor.clone()),
            Self::Ragged(batch) => batch.tensor().cloned(),
        }
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Dense(tensor) => tensor.dtype(),
            Self::Ragged(batch) => batch.dtype(),
        }
    }

    /// Shape of the tensor, or of the padded one.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Self::Dense(tensor) => tensor.shape().to_vec(),
            Self::Ragged(batch) => batch.shape(),
        }
    }
}

/// Data as entries along one axis, those of a sample next to each other.
#[derive(Debug)]
pub(super) struct Entries {
    /// `[entries, before.., after..]`, where the data is `[batch.., before.., entries, after..]`.
    pub(super) values: DenseTensor,
    /// Entries of every sample.
    pub(super) layout: Layout,
    /// Positions there are along the axis, filler included.
    pub(super) width: usize,
    /// One element that filler is read as; zero when `None`.
    pub(super) filler: Option<DenseTensor>,
    /// The axis.
    pub(super) dim: usize,
}

impl Entries {
    /// Entries along axis `dim` of data with these batch axes. Ragged data is read in place along its
    /// own non-uniform axis, and padded along any other.
    pub(super) fn new(data: &AnyBatch, batch_shape: &[usize], dim: usize) -> Result<Self> {
        let shape = data.shape();
        check_batch(&shape, batch_shape)?;
        if !(batch_shape.len()..shape.len()).contains(&dim) {
            return Err(Error::invalid(format!(
                "axis {dim} of data of shape {shape:?} cannot be indexed: it is one of {}..{}, after the batch axes",
                batch_shape.len(),
                shape.len()
            )));
        }
        match data {
            AnyBatch::Ragged(batch)
                if batch.non_uniform_dim() == dim && batch.batch_shape() == batch_shape =>
            {
                Ok(Self {
                    values: batch.values().clone(),
                    layout: batch.offsets().clone().into(),
                    width: batch.max_sample_size(),
                    filler: batch.filler().cloned(),
                    dim,
                })
            }
            data => Self::dense(&data.to_tensor()?, batch_shape.len(), dim),
        }
    }

    fn dense(tensor: &DenseTensor, batch: usize, dim: usize) -> Result<Self> {
        let shape = tensor.shape();
        let (before, width, after) = (&shape[batch..dim], shape[dim], &shape[dim + 1..]);
        let lists = count_samples(&shape[..batch])?;
        let outer = product(before);
        let entries = lists.checked_mul(width);
        let mut made =
            vec![entries.ok_or_else(|| Error::invalid("more entries than there can be"))?];
        made.extend_from_slice(before);
        made.extend_from_slice(after);
        let values = if outer == 1 {
            tensor.reshape(made)?
        } else {
            let run = product(after).saturating_mul(tensor.dtype().size());
            let buffer = swapped(tensor.as_bytes(), lists, (outer, width), run)?;
            DenseTensor::try_new_trusted(tensor.dtype(), made, buffer)?
        };
        let layout = Layout::Uniform { size: width, lists };
        Ok(Self { values, layout, width, filler: None, dim })
    }

    /// Bytes of an entry.
    pub(super) fn entry(&self) -> usize {
        product(self.entry_shape()).saturating_mul(self.values.dtype().size())
    }

    /// Shape of an entry.
    pub(super) fn entry_shape(&self) -> &[usize] {
        &self.values.shape()[1..]
    }

    /// An entry of filler.
    pub(super) fn filler_entry(&self) -> Vec<u8> {
        let entry = self.entry();
        let Some(one) = &self.filler else { return vec![0; entry] };
        one.as_bytes().iter().copied().cycle().take(entry).collect()
    }
}

/// Entries `[samples * width, before.., after..]` as a tensor `[batch.., before.., width, after..]`.
pub(super) fn to_dense(
    values: &DenseTensor,
    batch_shape: &[usize],
    width: usize,
    dim: usize,
) -> Result<DenseTensor> {
    let (before, after) = values.shape()[1..].split_at(dim - batch_shape.len());
    let mut shape = batch_shape.to_vec();
    shape.extend_from_slice(before);
    shape.push(width);
    shape.extend_from_slice(after);
    let outer = product(before);
    if outer == 1 {
        return values.reshape(shape);
    }
    let lists = product(batch_shape);
    let run = product(after).saturating_mul(values.dtype().size());
    let buffer = swapped(values.as_bytes(), lists, (width, outer), run)?;
    DenseTensor::try_new_trusted(values.dtype(), shape, buffer)
}
