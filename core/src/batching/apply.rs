//! Applies functions to the padded tensor or to the entries of a batch.

use super::RaggedBatch;
use crate::dense::DenseTensor;
use crate::error::Result;

/// Result of the function given to [`RaggedBatch::apply`]: one or several tensors.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{ApplyOutput, RaggedBatch};
/// use serrate::dense::{DType, DenseTensor};
/// let t = DenseTensor::from_vec([1, 2], vec![1, 2])?;
/// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
/// // Two tensors give two batches.
/// let tensors = (t.clone(), t.cast(DType::F32)?);
/// let (ints, floats) = tensors.batches(|t| batch.create_with_sample_sizes_like_self(&t, None))?;
/// assert_eq!((ints, floats.dtype()), (batch, DType::F32));
/// # Ok::<(), serrate::Error>(())
/// ```
pub trait ApplyOutput {
    /// The batches that are built from the tensors: one batch, or a tuple or `Vec` of batches.
    type Batches;

    /// Converts each tensor to a batch with `make`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::{ApplyOutput, RaggedBatch};
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 1], vec![1, 2])?;
    /// let batch = t.batches(|t| RaggedBatch::from_full_tensor(&t, 1, 1))?;
    /// assert_eq!(batch.shape(), [2, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `make` fails.
    fn batches(self, make: impl Fn(DenseTensor) -> Result<RaggedBatch>) -> Result<Self::Batches>;
}

impl ApplyOutput for DenseTensor {
    type Batches = RaggedBatch;

    fn batches(self, make: impl Fn(DenseTensor) -> Result<RaggedBatch>) -> Result<RaggedBatch> {
        make(self)
    }
}

impl ApplyOutput for Vec<DenseTensor> {
    type Batches = Vec<RaggedBatch>;

    fn batches(self, make: impl Fn(DenseTensor) -> Result<RaggedBatch>) -> Result<Self::Batches> {
        self.into_iter().map(make).collect()
    }
}

impl ApplyOutput for (DenseTensor, DenseTensor) {
    type Batches = (RaggedBatch, RaggedBatch);

    fn batches(self, make: impl Fn(DenseTensor) -> Result<RaggedBatch>) -> Result<Self::Batches> {
        Ok((make(self.0)?, make(self.1)?))
    }
}

impl ApplyOutput for (DenseTensor, DenseTensor, DenseTensor) {
    type Batches = (RaggedBatch, RaggedBatch, RaggedBatch);

    fn batches(self, make: impl Fn(DenseTensor) -> Result<RaggedBatch>) -> Result<Self::Batches> {
        Ok((make(self.0)?, make(self.1)?, make(self.2)?))
    }
}

impl RaggedBatch {
    /// Applies a function to the padded [`tensor`](Self::tensor) and converts each returned tensor
    /// to a batch.
    ///
    /// The function returns one or several tensors (a tuple or a `Vec`). The type and the data axes
    /// of the tensors may differ from those of the argument. The batch axes, the non-uniform axis
    /// (along which samples differ in size), its size and the positions of the entries must not
    /// differ. A sample without entries is padding in the tensor, and stays without entries.
    ///
    /// For functions of single entries, [`apply_to_values`](Self::apply_to_values) avoids padding.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::{DType, DenseTensor};
    /// let t = DenseTensor::from_vec([1, 2], vec![1, 2])?;
    /// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
    /// let (wide, same) = batch.apply(|t| Ok((t.cast(DType::I64)?, t.clone())))?;
    /// assert_eq!((wide.dtype(), same), (DType::I64, batch));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the function or [`tensor`](Self::tensor) fails, or a returned tensor has other batch axes
    /// or another size of the non-uniform axis.
    pub fn apply<R: ApplyOutput>(
        &self,
        proc_step: impl FnOnce(&DenseTensor) -> Result<R>,
    ) -> Result<R::Batches> {
        self.make_batches(proc_step(self.tensor()?)?)
    }

    /// Applies a function like [`apply`](Self::apply), but also passes the [`mask`](Self::mask).
    ///
    /// All elements of the mask are false for a sample without entries.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::{DType, DenseTensor};
    /// let t = DenseTensor::from_vec([1, 2], vec![1, 2])?;
    /// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
    /// let weights = batch.apply_with_mask(|_, mask| mask.cast(DType::F32))?;
    /// assert_eq!(weights.tensor()?.as_slice::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`apply`](Self::apply); also if [`mask`](Self::mask) fails.
    pub fn apply_with_mask<R: ApplyOutput>(
        &self,
        proc_step: impl FnOnce(&DenseTensor, &DenseTensor) -> Result<R>,
    ) -> Result<R::Batches> {
        self.make_batches(proc_step(self.tensor()?, self.mask()?)?)
    }

    /// Applies a function like [`apply`](Self::apply), but also passes the mask and the sample
    /// sizes to the function.
    ///
    /// The size of a sample without entries is 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// let copy = batch.apply_with_sample_sizes(|t, mask, sizes| {
    ///     assert_eq!((mask.shape(), sizes.as_slice::<i64>()?), (&[2, 2][..], &[2i64, 1][..]));
    ///     Ok(t.clone())
    /// })?;
    /// assert_eq!(copy, batch);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`apply`](Self::apply), [`mask`](Self::mask) and [`sample_sizes`](Self::sample_sizes).
    pub fn apply_with_sample_sizes<R: ApplyOutput>(
        &self,
        proc_step: impl FnOnce(&DenseTensor, &DenseTensor, &DenseTensor) -> Result<R>,
    ) -> Result<R::Batches> {
        self.make_batches(proc_step(self.tensor()?, self.mask()?, self.sample_sizes()?)?)
    }

    fn make_batches<R: ApplyOutput>(&self, result: R) -> Result<R::Batches> {
        result.batches(|t| self.create_with_sample_sizes_like_self(&t, None))
    }

    /// Applies a function to the [`values`](Self::values), which have no padding.
    ///
    /// The function returns one or several tensors of any type, with the same number and order of
    /// entries. If the shape of an entry changes, the non-uniform axis is the first data axis of
    /// the result. The function is called even if there are no entries.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::{DType, DenseTensor};
    /// let t = DenseTensor::from_vec([1, 2], vec![1, 2])?;
    /// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
    /// assert_eq!(batch.apply_to_values(|v| v.cast(DType::F32))?.dtype(), DType::F32);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the function fails, or a returned tensor has another number of entries.
    pub fn apply_to_values<R: ApplyOutput>(
        &self,
        proc_step: impl FnOnce(&DenseTensor) -> Result<R>,
    ) -> Result<R::Batches> {
        proc_step(self.values())?.batches(|values| {
            if values.shape() == self.values().shape() {
                self.replace_values(values, self.non_uniform_dim())
            } else {
                self.create_with_values(values)
            }
        })
    }
}
