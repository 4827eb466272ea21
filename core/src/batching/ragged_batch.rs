//! [`RaggedBatch`]: its storage and its properties.

use std::sync::{Arc, OnceLock};

use super::structure::{SampleStructure, get_or_compute};
use crate::array::Offsets;
use crate::dense::{DType, DenseOptions, DenseTensor};
use crate::error::{Error, Result};

/// Samples of different sizes as one batch.
///
/// The batch has the shape `[batch axes.., data axes..]`. One of the data axes, the *non-uniform*
/// axis, has a different size in each sample; an element of a sample along this axis is an *entry*.
/// The batch stores, without padding, the entries of all samples, one sample after the other, as
/// `[entries, other data axes..]` ([`values`](Self::values)), and the end of each sample
/// ([`offsets`](Self::offsets)).
///
/// ```text
/// padded tensor      a0 a1 a2    values    a0 a1 a2 b0 c0 c1     (. is filler)
///                    b0 .  .     offsets   0 3 4 6
///                    c0 c1 .
/// ```
///
/// [`tensor`](Self::tensor), [`mask`](Self::mask) and [`sample_sizes`](Self::sample_sizes) are
/// computed on first use and cached. Positions of the tensor after the entries of a sample are
/// *filler*: zeros, or the value of [`with_padded_set_to`](Self::with_padded_set_to). The tensor
/// may be wider than the largest sample ([`max_sample_size`](Self::max_sample_size)), if the batch
/// was built from a wider tensor.
///
/// Clones share all data. A batch derived with other batch axes shares values and offsets; a batch
/// derived with other data of the same sample sizes shares offsets and mask.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::RaggedBatch;
/// use serrate::dense::DenseTensor;
/// let padded = DenseTensor::from_vec([2, 2, 2], vec![1, 2, 3, 4, 5, 6, 0, 0])?;
/// let mask = DenseTensor::from_bools([2, 2], [true, true, true, false])?;
/// let batch = RaggedBatch::try_new(&padded, Some(&mask), None, None)?;
/// assert_eq!((batch.shape(), batch.num_entries()), (vec![2, 2, 2], 3));
/// assert_eq!(batch.values().to_string(), "int32[3, 2] [[1, 2], [3, 4], [5, 6]]");
/// assert_eq!(batch.tensor()?, &padded);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RaggedBatch {
    structure: Arc<SampleStructure>,
    values: DenseTensor,
    non_uniform_dim: usize,
    /// Padding value as a tensor of one element; `None` means zero.
    filler: Option<DenseTensor>,
    tensor: OnceLock<DenseTensor>,
}

impl RaggedBatch {
    /// Creates a batch: `structure` has the size of each sample, `values` has one element per entry
    /// along its first axis, and `non_uniform_dim` is an axis of the padded tensor.
    pub(super) fn from_parts(
        structure: Arc<SampleStructure>,
        values: DenseTensor,
        non_uniform_dim: usize,
    ) -> Result<Self> {
        let entries = structure.offsets().children();
        if values.shape().first() != Some(&entries) {
            return Err(Error::invalid(format!(
                "the values have the shape {:?}, but the number of entries is {entries}; give values whose first axis has one element per entry",
                values.shape()
            )));
        }
        let batch = structure.batch_shape().len();
        check_dim(non_uniform_dim, batch, batch + values.ndim())?;
        Ok(Self { structure, values, non_uniform_dim, filler: None, tensor: OnceLock::new() })
    }

    pub(super) fn with_filler(mut self, filler: Option<DenseTensor>) -> Self {
        let zero = |f: &DenseTensor| f.as_bytes().iter().all(|b| *b == 0);
        self.filler = filler.filter(|f| !zero(f));
        self.tensor = OnceLock::new();
        self
    }

    /// Returns a batch of `values` with the sample sizes of this batch. Its padding value is that
    /// of this batch if the type of the values is the same, and zero otherwise.
    pub(super) fn replace_values(
        &self,
        values: DenseTensor,
        non_uniform_dim: usize,
    ) -> Result<Self> {
        let filler = self.filler.clone().filter(|f| f.dtype() == values.dtype());
        let structure = Arc::clone(&self.structure);
        Ok(Self::from_parts(structure, values, non_uniform_dim)?.with_filler(filler))
    }

    pub(super) fn replace_structure(
        &self,
        structure: SampleStructure,
        values: DenseTensor,
        non_uniform_dim: usize,
    ) -> Result<Self> {
        let made = Self::from_parts(Arc::new(structure), values, non_uniform_dim)?;
        Ok(made.with_filler(self.filler.clone()))
    }

    pub(super) fn structure(&self) -> &Arc<SampleStructure> {
        &self.structure
    }

    pub(super) fn filler(&self) -> Option<&DenseTensor> {
        self.filler.as_ref()
    }

    /// Returns all entries without padding, of shape
    /// `[entries, data axes except the non-uniform one..]`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.values().as_slice::<i32>()?, [1, 2, 3, 4]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn values(&self) -> &DenseTensor {
        &self.values
    }

    /// Returns the offsets of the samples in [`values`](Self::values), with the samples in
    /// row-major order.
    ///
    /// The first offset is 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.offsets().lengths().collect::<Vec<_>>(), [3, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn offsets(&self) -> &Offsets {
        self.structure.offsets()
    }

    /// Returns the padded tensor `[batch axes.., data axes..]`, whose non-uniform axis has the size
    /// [`max_sample_size`](Self::max_sample_size).
    ///
    /// Computed in one pass on first use and cached. A sample without entries has only padding.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.tensor()?, &padded);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor exceeds [`DenseOptions::DEFAULT_LIMIT`]; [`padded`](Self::padded) accepts
    /// another limit.
    pub fn tensor(&self) -> Result<&DenseTensor> {
        get_or_compute(&self.tensor, || self.padded(&DenseOptions::default()))
    }

    /// Returns a `Bool` tensor of shape `[batch axes.., max_sample_size]`: true for entries, false
    /// for padding.
    ///
    /// All elements of a sample without entries are false. Computed on first use and shared by
    /// derived batches with the same sample sizes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.mask()?.as_bytes(), [1, 1, 1, 1, 0, 0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`tensor`](Self::tensor).
    pub fn mask(&self) -> Result<&DenseTensor> {
        self.structure.mask()
    }

    /// Returns the number of entries of each sample: a tensor of shape `[batch axes..]`.
    ///
    /// Its type is the integer type of the sizes from which the batch was created, or int64 if it
    /// was created without sizes. A sample without entries has the size 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.sample_sizes()?, &sizes);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a size does not fit the type.
    pub fn sample_sizes(&self) -> Result<&DenseTensor> {
        self.structure.sample_sizes()
    }

    /// Returns the axis of the tensor along which samples differ in size.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.non_uniform_dim(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn non_uniform_dim(&self) -> usize {
        self.non_uniform_dim
    }

    /// Returns the number of batch axes, one or more.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.num_batch_dims(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_batch_dims(&self) -> usize {
        self.structure.batch_shape().len()
    }

    /// Returns the size of every batch axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.batch_shape(), [2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn batch_shape(&self) -> &[usize] {
        self.structure.batch_shape()
    }

    /// Returns the shape of an entry: the sizes of all data axes except the non-uniform one.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert!(batch.entry_shape().is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn entry_shape(&self) -> &[usize] {
        &self.values.shape()[1..]
    }

    /// Returns the number of samples, over all batch axes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.num_samples(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_samples(&self) -> usize {
        self.offsets().lists()
    }

    /// Returns the number of entries of all samples.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// assert_eq!((batch.num_entries(), batch.tensor()?.num_elements()), (3, 4));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_entries(&self) -> usize {
        self.offsets().children()
    }

    /// Returns the padded size of the non-uniform axis, which is at least the largest sample size.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.max_sample_size(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn max_sample_size(&self) -> usize {
        self.structure.width()
    }

    /// Returns the shape of the padded tensor without computing the tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::{DType, DenseOptions, DenseTensor};
    /// let padded = DenseTensor::from_vec([2, 2, 2], vec![1, 2, 3, 4, 5, 6, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!((batch.shape(), batch.ndim()), (vec![2, 2, 2], 3));
    /// assert_eq!((batch.num_batch_dims(), batch.non_uniform_dim()), (1, 1));
    /// assert_eq!((batch.entry_shape(), batch.nbytes()), (&[2][..], 3 * 2 * 4));
    /// assert_eq!((batch.num_samples(), batch.max_sample_size()), (2, 2));
    /// assert_eq!((batch.sample_sizes()?, batch.offsets().length(1)), (&sizes, 1));
    /// assert_eq!((batch.padded(&DenseOptions::default())?, batch.dtype()), (padded, DType::I32));
    /// let copy = batch.try_clone()?;
    /// assert_eq!(copy, batch);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn shape(&self) -> Vec<usize> {
        let mut shape = self.batch_shape().to_vec();
        shape.extend_from_slice(self.entry_shape());
        shape.insert(self.non_uniform_dim, self.max_sample_size());
        shape
    }

    /// Returns the number of axes of the padded tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.ndim(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn ndim(&self) -> usize {
        self.batch_shape().len() + self.values.ndim()
    }

    /// Returns the type of the elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::{DType, DenseTensor};
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.dtype(), DType::I32);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// Returns the size of [`values`](Self::values) in bytes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.nbytes(), 16);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.values.nbytes()
    }

    /// Returns a batch with a copy of the values.
    ///
    /// The copy shares sample sizes and mask with this batch, so the same samples have no entries.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let padded = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![3i64, 1])?;
    /// let batch = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
    /// assert_eq!(batch.try_clone()?, batch);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: the copy has the type and the shape of the values.
    pub fn try_clone(&self) -> Result<Self> {
        let copy = arrow::buffer::Buffer::from_slice_ref(self.values.as_bytes());
        let shape = self.values.shape().to_vec();
        let values = DenseTensor::try_new_trusted(self.dtype(), shape, copy)?;
        self.replace_values(values, self.non_uniform_dim)
    }

    /// Moves the values out of the batch and leaves an empty tensor. The caller can then change the
    /// values in place, unless another batch shares them.
    pub(super) fn take_values(&mut self) -> DenseTensor {
        self.tensor = OnceLock::new();
        let none = DenseTensor::new_empty(self.values.dtype());
        std::mem::replace(&mut self.values, none)
    }

    /// Returns the sizes of the data axes before the non-uniform axis, and of those after it.
    pub(super) fn split_entry_shape(&self) -> (&[usize], &[usize]) {
        self.entry_shape().split_at(self.non_uniform_dim - self.num_batch_dims())
    }
}

/// Batches are equal if batch axes, sample sizes, padded size, non-uniform axis, type and values
/// are equal; NaN equals NaN of the same bits. Padding value and type of the sizes are ignored.
impl PartialEq for RaggedBatch {
    fn eq(&self, other: &Self) -> bool {
        self.batch_shape() == other.batch_shape()
            && self.non_uniform_dim == other.non_uniform_dim
            && self.max_sample_size() == other.max_sample_size()
            && self.offsets() == other.offsets()
            && self.values == other.values
    }
}

pub(super) fn check_dim(dim: usize, batch_dims: usize, ndim: usize) -> Result<()> {
    if (batch_dims..ndim).contains(&dim) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the non-uniform axis is {dim}, but must be a data axis; choose an axis of at least {batch_dims} (the number of batch axes) and less than {ndim} (the number of all axes)"
    )))
}
