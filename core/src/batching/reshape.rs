//! Reshapes batches: changes their batch axes, data axes or non-uniform axis.

use std::sync::Arc;

use super::entry_copies::swap_axes;
use super::ragged_batch::check_dim;
use super::structure::{
    SampleStructure, check_bytes, count_samples, multiply_saturating, unravel_position,
};
use super::{AnyBatch, RaggedBatch};
use crate::array::Offsets;
use crate::dense::{DenseOptions, DenseTensor, count_shape_elements};
use crate::error::{Error, Result};

/// How often samples are repeated: along one batch axis, or along each batch axis.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::SampleRepeats;
/// assert_eq!(SampleRepeats::from(3), SampleRepeats::One(3));
/// assert_eq!(SampleRepeats::from([2, 1]), SampleRepeats::Each(vec![2, 1]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SampleRepeats {
    /// Number of repeats along one batch axis; samples are not repeated along the others.
    One(usize),
    /// Number of repeats along each batch axis, one number per axis.
    Each(Vec<usize>),
}

impl From<usize> for SampleRepeats {
    fn from(n: usize) -> Self {
        Self::One(n)
    }
}

impl From<Vec<usize>> for SampleRepeats {
    fn from(n: Vec<usize>) -> Self {
        Self::Each(n)
    }
}

impl From<&[usize]> for SampleRepeats {
    fn from(n: &[usize]) -> Self {
        Self::Each(n.to_vec())
    }
}

impl<const N: usize> From<[usize; N]> for SampleRepeats {
    fn from(n: [usize; N]) -> Self {
        Self::Each(n.to_vec())
    }
}

impl RaggedBatch {
    /// Returns the batch with the batch axes `batch_shape`, whose sizes must multiply to the number
    /// of samples.
    fn replace_batch_shape(&self, batch_shape: Vec<usize>) -> Result<Self> {
        let dim = self.non_uniform_dim() - self.num_batch_dims() + batch_shape.len();
        let structure = self.structure().replace_batch_shape(batch_shape)?;
        self.replace_structure(structure, self.values().clone(), dim)
    }

    /// Inserts a batch axis of size 1 before batch axis `dim`, or after the last batch axis if
    /// `dim` is the number of batch axes.
    ///
    /// Shares all data; samples without entries stay empty.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 1], vec![1, 2])?;
    /// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
    /// assert_eq!(batch.unsqueeze_batch_dim(0)?.batch_shape(), [1, 2]);
    /// assert_eq!(batch.unsqueeze_batch_dim(1)?.batch_shape(), [2, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `dim` is larger than the number of batch axes.
    pub fn unsqueeze_batch_dim(&self, dim: usize) -> Result<Self> {
        let mut shape = self.batch_shape().to_vec();
        if dim > shape.len() {
            return Err(Error::invalid(format!(
                "a new batch axis cannot be inserted at index {dim}; give an index from 0 to {}",
                shape.len()
            )));
        }
        shape.insert(dim, 1);
        self.replace_batch_shape(shape)
    }

    /// Removes batch axis `batch_dim`, which has size 1.
    ///
    /// Shares all data; samples without entries stay empty.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([1, 2, 1], vec![1, 2])?;
    /// let batch = RaggedBatch::from_full_tensor(&t, 2, 2)?;
    /// assert_eq!(batch.squeeze_batch_dim(0)?.batch_shape(), [2]);
    /// // Batch axis 1 has size 2.
    /// assert!(batch.squeeze_batch_dim(1).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the axis has another size, does not exist, or is the only batch axis.
    pub fn squeeze_batch_dim(&self, batch_dim: usize) -> Result<Self> {
        let mut shape = self.batch_shape().to_vec();
        let Some(size) = shape.get(batch_dim) else {
            return Err(Error::invalid(format!(
                "there is no batch axis {batch_dim}; give an axis from 0 to {}",
                shape.len().saturating_sub(1)
            )));
        };
        if *size != 1 {
            return Err(Error::invalid(format!(
                "batch axis {batch_dim} has size {size}, but only an axis of size 1 can be removed; choose such an axis"
            )));
        }
        shape.remove(batch_dim);
        self.replace_batch_shape(shape)
    }

    /// Reshapes the batch axes and keeps the row-major order of the samples.
    ///
    /// One size may be -1: it is computed from the number of samples. Shares all data; samples
    /// without entries stay empty.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let batch = RaggedBatch::from_full_tensor(&DenseTensor::from_vec([4, 1], vec![1, 2, 3, 4])?, 1, 1)?;
    /// let square = batch.reshape_batch_dims(&[2, -1])?;
    /// assert_eq!(square.batch_shape(), [2, 2]);
    /// assert_eq!(square.flatten_batch_dims()?, batch);
    /// let wide = batch.unsqueeze_batch_dim(0)?;
    /// assert_eq!((wide.batch_shape(), wide.squeeze_batch_dim(0)?), (&[1, 4][..], batch));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the sizes do not multiply to the number of samples; if `new_batch_shape` is empty, has
    /// more than one -1 or another negative size; if another size is 0, so that the -1 is
    /// ambiguous.
    pub fn reshape_batch_dims(&self, new_batch_shape: &[i64]) -> Result<Self> {
        let samples = self.num_samples();
        let refuse = || {
            Error::invalid(format!(
                "{samples} samples do not fit batch axes of shape {new_batch_shape:?}; give sizes whose product is the number of samples (one size may be -1, to be inferred)"
            ))
        };
        let mut shape = Vec::with_capacity(new_batch_shape.len());
        let mut open = None;
        for (i, n) in new_batch_shape.iter().enumerate() {
            match usize::try_from(*n) {
                Ok(n) => shape.push(n),
                Err(_) if *n == -1 && open.is_none() => {
                    open = Some(i);
                    shape.push(1);
                }
                Err(_) => return Err(refuse()),
            }
        }
        if let Some(i) = open {
            let others = count_shape_elements(&shape).filter(|n| *n > 0).ok_or_else(refuse)?;
            shape[i] = samples / others;
        }
        if count_shape_elements(&shape) != Some(samples) {
            return Err(refuse());
        }
        self.replace_batch_shape(shape)
    }

    /// Flattens the batch axes to one.
    ///
    /// Shares all data; samples without entries stay empty.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2, 1], vec![1, 2, 3, 4])?;
    /// let flat = RaggedBatch::from_full_tensor(&t, 2, 2)?.flatten_batch_dims()?;
    /// assert_eq!(flat.tensor()?.to_string(), "int32[4, 1] [[1], [2], [3], [4]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: the new batch axis has one element per sample.
    pub fn flatten_batch_dims(&self) -> Result<Self> {
        self.replace_batch_shape(vec![self.num_samples()])
    }

    /// Repeats the samples along batch axis `batch_dim` (by default the first) or along every batch
    /// axis.
    ///
    /// Like NumPy's `tile`, the result has all samples, then all samples again. 0 repeats give no
    /// samples.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 1], vec![1, 2])?;
    /// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
    /// let twice = batch.repeat_samples(2, None)?;
    /// assert_eq!(twice.tensor()?.to_string(), "int32[4, 1] [[1], [2], [1], [2]]");
    /// assert_eq!(batch.repeat_samples([3], None)?.batch_shape(), [6]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `batch_dim` does not exist; if [`SampleRepeats::Each`] is given together with
    /// `batch_dim`, or does not have one number per batch axis; if the result exceeds
    /// [`DenseOptions::DEFAULT_LIMIT`].
    pub fn repeat_samples(
        &self,
        num_repeats: impl Into<SampleRepeats>,
        batch_dim: Option<usize>,
    ) -> Result<Self> {
        let batch = self.num_batch_dims();
        let each = match (num_repeats.into(), batch_dim) {
            (SampleRepeats::One(n), dim) => {
                let dim = dim.unwrap_or(0);
                let mut each = vec![1; batch];
                *each.get_mut(dim).ok_or_else(|| {
                    Error::invalid(format!(
                        "there is no batch axis {dim}; give an axis from 0 to {}",
                        batch.saturating_sub(1)
                    ))
                })? = n;
                each
            }
            (SampleRepeats::Each(_), Some(_)) => {
                return Err(Error::invalid(
                    "batch_dim is given, but num_repeats lists a number for each batch axis; give a single number as num_repeats, or leave out batch_dim",
                ));
            }
            (SampleRepeats::Each(each), None) if each.len() == batch => each,
            (SampleRepeats::Each(each), None) => {
                return Err(Error::invalid(format!(
                    "num_repeats has the length {}, but the number of batch axes is {batch}; give one number per batch axis",
                    each.len()
                )));
            }
        };
        let sizes = self.batch_shape().iter().zip(&each).map(|(n, times)| n.checked_mul(*times));
        let shape: Option<Vec<usize>> = sizes.collect();
        self.tile_samples(shape.ok_or_else(|| {
            Error::invalid(format!(
                "batch axes of shape {:?} repeated {each:?} times have more samples than memory can address; use fewer repeats",
                self.batch_shape()
            ))
        })?)
    }

    /// Repeats samples until the batch axes have the shape `shape`: along each axis, index `i` of
    /// the result has the sample with the index `i` modulo the old size of the axis.
    fn tile_samples(&self, shape: Vec<usize>) -> Result<Self> {
        if shape == self.batch_shape() {
            return Ok(self.clone());
        }
        let samples = count_samples(&shape)?;
        let own = self.batch_shape();
        let source = |i: usize| {
            let place = unravel_position(&shape, i);
            own.iter().zip(place).fold(0, |at, (size, i)| at * size + i % (*size).max(1))
        };
        let sources: Vec<usize> = (0..samples).map(source).collect();
        let offsets = Offsets::from_lengths(sources.iter().map(|i| self.offsets().length(*i)))?;
        let mut made = vec![offsets.children()];
        made.extend_from_slice(self.entry_shape());
        let options = DenseOptions::default();
        let bytes = check_bytes(&made, self.dtype(), &options, "repeated samples")?;
        let entry = multiply_saturating(self.entry_shape()).saturating_mul(self.dtype().size());
        let mut out = arrow::buffer::MutableBuffer::with_capacity(bytes);
        if entry > 0 {
            let values = self.values().as_bytes();
            for i in sources {
                let own = self.offsets().range(i);
                out.extend_from_slice(&values[own.start * entry..own.end * entry]);
            }
        }
        let values = DenseTensor::try_new_trusted(self.dtype(), made, out.into())?;
        let (width, dtype) = (self.max_sample_size(), self.structure().sizes_dtype());
        let structure = SampleStructure::try_new(shape, offsets, Some(width), dtype)?;
        self.replace_structure(structure, values, self.non_uniform_dim())
    }

    /// Repeats samples to fill `new_batch_shape`, whose sizes are multiples of the current sizes.
    ///
    /// Samples without entries are repeated, too.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 1], vec![1, 2])?;
    /// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
    /// let wide = batch.broadcast_batch_dims_to_shape(&[4])?;
    /// assert_eq!(wide.tensor()?.to_string(), "int32[4, 1] [[1], [2], [1], [2]]");
    /// assert!(batch.broadcast_batch_dims_to_shape(&[3]).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of batch axes differs, or a size is not a multiple.
    pub fn broadcast_batch_dims_to_shape(&self, new_batch_shape: &[usize]) -> Result<Self> {
        let own = self.batch_shape();
        if own.len() != new_batch_shape.len() {
            return Err(Error::invalid(format!(
                "the batch axes have the shape {own:?}, and cannot be broadcast to {new_batch_shape:?}; give new_batch_shape one size per batch axis"
            )));
        }
        let fits =
            |(old, new): (&usize, &usize)| new.checked_rem(*old).map_or(*new == 0, |r| r == 0);
        if !own.iter().zip(new_batch_shape).all(fits) {
            return Err(Error::invalid(format!(
                "batch axes of shape {own:?} cannot be broadcast to {new_batch_shape:?}; each size must be a multiple of the current size, so choose other sizes"
            )));
        }
        self.tile_samples(new_batch_shape.to_vec())
    }

    /// Repeats samples until all batches have the same batch axes: the size of each batch axis
    /// becomes its largest size in `data`.
    ///
    /// See [`broadcast_batch_dims_to_shape`](Self::broadcast_batch_dims_to_shape). Samples without
    /// entries are repeated, too.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let one = RaggedBatch::from_full_tensor(&DenseTensor::from_vec([1, 1], vec![7])?, 1, 1)?;
    /// let two = RaggedBatch::from_full_tensor(&DenseTensor::from_vec([2, 1], vec![1, 2])?, 1, 1)?;
    /// let same = RaggedBatch::broadcast_batch_dims(&[one.clone(), two])?;
    /// assert_eq!(same[0], one.broadcast_batch_dims_to_shape(&[2])?);
    /// assert_eq!(same[0].tensor()?.as_slice::<i32>()?, [7, 7]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the numbers of batch axes differ, or a size does not divide the largest.
    pub fn broadcast_batch_dims(data: &[Self]) -> Result<Vec<Self>> {
        let Some(first) = data.first() else { return Ok(Vec::new()) };
        let mut shape = first.batch_shape().to_vec();
        for batch in data {
            let own = batch.batch_shape();
            if own.len() != shape.len() {
                return Err(Error::invalid(format!(
                    "the batches to broadcast have {} and {} batch axes; give batches with the same number of batch axes",
                    shape.len(),
                    own.len()
                )));
            }
            for (most, n) in shape.iter_mut().zip(own) {
                *most = (*most).max(*n);
            }
        }
        data.iter().map(|b| b.broadcast_batch_dims_to_shape(&shape)).collect()
    }

    /// Inserts a data axis of size 1 at index `dim` of the new shape, which must be after the batch
    /// axes.
    ///
    /// A negative `dim` counts from the end of the new shape. Shares all data; samples without
    /// entries stay empty.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6])?;
    /// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
    /// assert_eq!(batch.unsqueeze_data_dim(-1)?.shape(), [2, 3, 1]);
    /// let row = batch.unsqueeze_data_dim(1)?;
    /// assert_eq!((row.shape(), row.non_uniform_dim()), (vec![2, 1, 3], 2));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the axis is among the batch axes or beyond the last axis.
    pub fn unsqueeze_data_dim(&self, dim: i64) -> Result<Self> {
        let (batch, ndim) = (self.num_batch_dims(), self.ndim());
        let at = crate::index::resolve_position(dim, ndim + 1).filter(|d| *d >= batch);
        let at = at.ok_or_else(|| {
            Error::invalid(format!(
                "a new data axis cannot be inserted at index {dim}; give an index from {batch} to {ndim}"
            ))
        })?;
        let (at_entry, non_uniform) = if at <= self.non_uniform_dim() {
            (at - batch, self.non_uniform_dim() + 1)
        } else {
            (at - batch - 1, self.non_uniform_dim())
        };
        let mut shape = self.values().shape().to_vec();
        shape.insert(1 + at_entry, 1);
        self.replace_values(self.values().reshape(shape)?, non_uniform)
    }

    /// Swaps the non-uniform axis (along which samples differ in size) with axis `dim`; axis 0 is
    /// the first batch axis.
    ///
    /// Copies the entries unless the axes are adjacent. Samples without entries stay empty.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let batch = RaggedBatch::from_full_tensor(&DenseTensor::from_vec([1, 2], vec![1, 2])?, 1, 1)?;
    /// let column = batch.unsqueeze_data_dim(2)?;
    /// assert_eq!(column.shape(), [1, 2, 1]);
    /// let row = column.get_non_uniform_dimension_transposed_to(2)?;
    /// assert_eq!((row.shape(), row.non_uniform_dim()), (vec![1, 1, 2], 2));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `dim` is a batch axis or does not exist.
    pub fn get_non_uniform_dimension_transposed_to(&self, dim: usize) -> Result<Self> {
        let batch = self.num_batch_dims();
        check_dim(dim, batch, self.ndim())?;
        let own = self.non_uniform_dim();
        if dim == own {
            return Ok(self.clone());
        }
        // The shape of an entry does not have the non-uniform axis, so the swap only moves axis
        // `dim` (x) past the axes between `dim` and the non-uniform axis. If `dim` comes before the
        // non-uniform axis, `[before, x, between, after]` becomes `[before, between, x, after]`;
        // otherwise, `[before, between, x, after]` becomes `[before, x, between, after]`.
        let (low, high) = (own.min(dim) - batch, own.max(dim) - batch);
        let shape = self.entry_shape();
        let between = high - low - 1;
        let (a, b) = if dim > own {
            // Axis `dim` of the tensor is axis `high - 1` of an entry. The swap moves it before
            // axis `low` of the entry.
            (multiply_saturating(&shape[low..high - 1]), shape[high - 1])
        } else {
            (shape[low], multiply_saturating(&shape[low + 1..high]))
        };
        let mut made = self.values().shape().to_vec();
        if dim > own {
            made[1 + low..1 + high].rotate_right(1);
        } else {
            made[1 + low..1 + high].rotate_left(1);
        }
        let values = if between == 0 || a == 1 || b == 1 {
            self.values().reshape(made)?
        } else {
            let blocks = self.num_entries().saturating_mul(multiply_saturating(&shape[..low]));
            let run = multiply_saturating(&shape[high..]).saturating_mul(self.dtype().size());
            let buffer = swap_axes(self.values().as_bytes(), blocks, (a, b), run)?;
            DenseTensor::try_new_trusted(self.dtype(), made, buffer)?
        };
        self.replace_values(values, dim)
    }
}

/// Removes the axes of size 1, but keeps the batch axes and the non-uniform axis of a batch, and
/// axes 0 and 1 of a tensor.
///
/// Copies nothing; samples without entries stay empty.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::squeeze_except_batch_and_sample;
/// use serrate::dense::DenseTensor;
/// let t = DenseTensor::from_vec([1, 1, 1, 2], vec![1, 2])?;
/// assert_eq!(squeeze_except_batch_and_sample(&t)?.shape(), [1, 1, 2]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Never: removing axes of size 1 keeps the number of elements.
pub fn squeeze_except_batch_and_sample(data: impl Into<AnyBatch>) -> Result<AnyBatch> {
    match data.into() {
        AnyBatch::Dense(tensor) => {
            let (kept, rest) = tensor.shape().split_at(tensor.ndim().min(2));
            let mut shape = kept.to_vec();
            shape.extend(rest.iter().filter(|n| **n != 1));
            Ok(tensor.reshape(shape)?.into())
        }
        AnyBatch::Ragged(batch) => {
            let (before, after) = batch.split_entry_shape();
            let gone = before.iter().filter(|n| **n == 1).count();
            let mut shape = vec![batch.num_entries()];
            shape.extend(before.iter().chain(after).filter(|n| **n != 1));
            let values = batch.values().reshape(shape)?;
            Ok(batch.replace_values(values, batch.non_uniform_dim() - gone)?.into())
        }
    }
}

impl RaggedBatch {
    /// Returns a batch with the sample sizes of this batch and other values `[entries, ..]` of any
    /// type and entry shape.
    ///
    /// All data axes follow the non-uniform axis. The result shares sizes and mask with this batch,
    /// so the same samples have no entries.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let batch = RaggedBatch::from_full_tensor(&DenseTensor::from_vec([2, 1], vec![1, 2])?, 1, 1)?;
    /// let values = batch.create_with_values(DenseTensor::from_vec([2, 3], vec![0.0; 6])?)?;
    /// assert_eq!(values.shape(), [2, 1, 3]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of entries differs.
    pub fn create_with_values(&self, values: DenseTensor) -> Result<Self> {
        Self::from_parts(Arc::clone(self.structure()), values, self.num_batch_dims())
    }
}
