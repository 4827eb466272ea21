//! [`AnyBatch`]: a dense tensor or a ragged batch.

use super::RaggedBatch;
use super::construct::check_batch_axes;
use super::entry_copies::swap_axes;
use super::structure::{count_samples, multiply_saturating};
use crate::array::Layout;
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// Either a dense tensor, whose samples have equal sizes, or a ragged batch.
///
/// Functions that accept both convert between them as needed. Clones share buffers.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{AnyBatch, RaggedBatch};
/// use serrate::dense::DenseTensor;
/// let t = DenseTensor::from_vec([1, 2], vec![1, 2])?;
/// assert!(matches!(AnyBatch::from(&t), AnyBatch::Dense(_)));
/// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
/// assert!(matches!(AnyBatch::from(batch), AnyBatch::Ragged(_)));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum AnyBatch {
    /// Samples of equal size. Axis 0 is the batch axis. If a function also gets a ragged batch with
    /// several batch axes, the first axes of the tensor must be the same batch axes.
    Dense(DenseTensor),
    /// Samples of different sizes.
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
    /// Returns the tensor; `None` for a ragged batch.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::{AnyBatch, RaggedBatch};
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([1, 2], vec![1, 2])?;
    /// assert_eq!(AnyBatch::from(&t).as_dense(), Some(&t));
    /// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
    /// assert_eq!(AnyBatch::from(batch).as_dense(), None);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn as_dense(&self) -> Option<&DenseTensor> {
        match self {
            Self::Dense(tensor) => Some(tensor),
            Self::Ragged(_) => None,
        }
    }

    /// Returns the ragged batch; `None` for a tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::{AnyBatch, RaggedBatch};
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([1, 2], vec![1, 2])?;
    /// let batch = AnyBatch::from(RaggedBatch::from_full_tensor(&t, 1, 1)?);
    /// assert!(batch.as_ragged().is_some() && batch.as_dense().is_none());
    /// assert_eq!((batch.to_tensor()?, batch.shape()), (t, vec![1, 2]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn as_ragged(&self) -> Option<&RaggedBatch> {
        match self {
            Self::Dense(_) => None,
            Self::Ragged(batch) => Some(batch),
        }
    }

    /// Returns the tensor, or the padded tensor of a ragged batch.
    ///
    /// In the padded tensor, a sample without entries has only padding.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::{AnyBatch, RaggedBatch};
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let batch = AnyBatch::from(RaggedBatch::try_new(&t, None, Some(&sizes), None)?);
    /// assert_eq!(batch.to_tensor()?.to_string(), "int32[2, 2] [[1, 2], [3, 0]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`RaggedBatch::tensor`].
    pub fn to_tensor(&self) -> Result<DenseTensor> {
        match self {
            Self::Dense(tensor) => Ok(tensor.clone()),
            Self::Ragged(batch) => batch.tensor().cloned(),
        }
    }

    /// Returns the type of the elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::AnyBatch;
    /// use serrate::dense::{DType, DenseTensor};
    /// let t = DenseTensor::from_vec([1, 2], vec![1u8, 2])?;
    /// assert_eq!(AnyBatch::from(&t).dtype(), DType::U8);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        match self {
            Self::Dense(tensor) => tensor.dtype(),
            Self::Ragged(batch) => batch.dtype(),
        }
    }

    /// Returns the shape of the (padded) tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::{AnyBatch, RaggedBatch};
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let batch = AnyBatch::from(RaggedBatch::try_new(&t, None, Some(&sizes), None)?);
    /// assert_eq!(batch.shape(), [2, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Self::Dense(tensor) => tensor.shape().to_vec(),
            Self::Ragged(batch) => batch.shape(),
        }
    }
}

/// The entries of all samples along one axis of a tensor or batch, one sample after the other.
#[derive(Debug)]
pub(super) struct EntryView {
    /// The entries, of shape `[entries, before.., after..]`: `before` and `after` are the sizes of
    /// the data axes before and after the axis of the entries (field `dim`).
    pub(super) values: DenseTensor,
    pub(super) layout: Layout,
    /// Size of axis `dim` of the padded tensor.
    pub(super) width: usize,
    pub(super) filler: Option<DenseTensor>,
    pub(super) dim: usize,
}

impl EntryView {
    /// Returns the entries of `data` along axis `dim`. The first axes of `data`, of the sizes
    /// `batch_shape`, are batch axes; all others are data axes. `dim` is the number of a data axis,
    /// where axis 0 is the first batch axis.
    ///
    /// If `data` is a ragged batch with these batch axes, and `dim` is its non-uniform axis (along
    /// which samples differ in size), the view shares the values of the batch. Any other ragged
    /// batch is first padded to a tensor, and its padding then counts as entries. The view also
    /// shares the values of a tensor, unless data axes with several elements precede `dim`; then it
    /// copies the values.
    pub(super) fn new(data: &AnyBatch, batch_shape: &[usize], dim: usize) -> Result<Self> {
        let shape = data.shape();
        check_batch_axes(&shape, batch_shape)?;
        if !(batch_shape.len()..shape.len()).contains(&dim) {
            return Err(Error::invalid(format!(
                "axis {dim} of data of shape {shape:?} cannot be indexed; choose an existing data axis (the first of them is axis {})",
                batch_shape.len()
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
            data => Self::from_dense(&data.to_tensor()?, batch_shape.len(), dim),
        }
    }

    fn from_dense(tensor: &DenseTensor, batch: usize, dim: usize) -> Result<Self> {
        let shape = tensor.shape();
        let (before, width, after) = (&shape[batch..dim], shape[dim], &shape[dim + 1..]);
        let lists = count_samples(&shape[..batch])?;
        let outer = multiply_saturating(before);
        let entries = lists.checked_mul(width);
        let mut made = vec![entries.ok_or_else(|| {
            Error::invalid(format!(
                "the data to index, of shape {shape:?}, has more entries than memory can address; index a smaller batch"
            ))
        })?];
        made.extend_from_slice(before);
        made.extend_from_slice(after);
        let values = if outer == 1 {
            tensor.reshape(made)?
        } else {
            let run = multiply_saturating(after).saturating_mul(tensor.dtype().size());
            let buffer = swap_axes(tensor.as_bytes(), lists, (outer, width), run)?;
            DenseTensor::try_new_trusted(tensor.dtype(), made, buffer)?
        };
        let layout = Layout::Uniform { size: width, lists };
        Ok(Self { values, layout, width, filler: None, dim })
    }

    pub(super) fn entry_bytes(&self) -> usize {
        multiply_saturating(self.entry_shape()).saturating_mul(self.values.dtype().size())
    }

    pub(super) fn entry_shape(&self) -> &[usize] {
        &self.values.shape()[1..]
    }

    pub(super) fn filler_entry(&self) -> Vec<u8> {
        let entry = self.entry_bytes();
        let Some(one) = &self.filler else { return vec![0; entry] };
        one.as_bytes().iter().copied().cycle().take(entry).collect()
    }
}

/// Converts the entries `values`, of shape `[samples * width, before.., after..]`, to a tensor of
/// shape `[batch_shape.., before.., width, after..]`. In this shape, `width` is the size of axis
/// `dim`, where axis 0 is the first batch axis; `before` and `after` are the sizes of the data axes
/// before and after axis `dim`.
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
    let outer = multiply_saturating(before);
    if outer == 1 {
        return values.reshape(shape);
    }
    let lists = multiply_saturating(batch_shape);
    let run = multiply_saturating(after).saturating_mul(values.dtype().size());
    let buffer = swap_axes(values.as_bytes(), lists, (width, outer), run)?;
    DenseTensor::try_new_trusted(values.dtype(), shape, buffer)
}
