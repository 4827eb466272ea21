//! Access to the contents of a batch: padding, element type, single samples, and NumPy indexing.

use std::sync::Arc;

use arrow::buffer::{Buffer, MutableBuffer};

use super::RaggedBatch;
use super::combine::NestedSamples;
use super::entry_copies::{fill_buffer, transpose_entries, with_entry};
use super::pad::convert_fill;
use super::structure::multiply_saturating;
use crate::dense::{DType, DenseOptions, DenseTensor, Fill, IndexSelection, count_shape_elements};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::index::broadcast_shape::{broadcast_shapes, for_each_broadcast};

impl RaggedBatch {
    /// Returns the [`mask`](Self::mask) expanded to the shape of the padded tensor and converted to
    /// `dtype`: 1 for entries and 0 for padding, for example as float32 weights of a loss.
    ///
    /// A sample without entries has only zeros.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::{DType, DenseTensor};
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// let weights = batch.get_existence_weights(DType::F32)?;
    /// assert_eq!(weights.as_slice::<f32>()?, [1.0, 1.0, 1.0, 0.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`tensor`](Self::tensor).
    pub fn get_existence_weights(&self, dtype: DType) -> Result<DenseTensor> {
        let one = convert_fill(Fill::Int(1), dtype)?;
        let shape = self.values().shape().to_vec();
        let bytes = self.values().num_elements().saturating_mul(dtype.size());
        let buffer = fill_buffer(bytes, |out| {
            super::entry_copies::repeat_value(out, one.as_bytes());
            Ok(())
        })?;
        let ones = DenseTensor::try_new_trusted(dtype, shape, buffer)?;
        Self::from_parts(Arc::clone(self.structure()), ones, self.non_uniform_dim())?
            .padded(&DenseOptions::default())
    }

    /// Sets the value of the padding in the padded tensor.
    ///
    /// For an integer batch, a float is truncated towards zero; for a boolean batch, a nonzero
    /// value is true. Shares all data, because padding is not stored.
    ///
    /// Operations that repeat samples, write some entries, or change axes or the type keep the
    /// value of the padding. Most other operations that return a batch reset this value to zero.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([1, 2], vec![5, 0])?;
    /// let sizes = DenseTensor::from_vec([1], vec![1i64])?;
    /// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?.with_padded_set_to(-100)?;
    /// assert_eq!(batch.tensor()?.to_string(), "int32[1, 2] [[5, -100]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the type cannot represent the value.
    pub fn with_padded_set_to(&self, value_to_set: impl Into<Fill>) -> Result<Self> {
        let filler = convert_fill(value_to_set.into(), self.dtype())?;
        Ok(self.clone().with_filler(Some(filler)))
    }

    /// Sets the value of the padding like [`with_padded_set_to`](Self::with_padded_set_to), but in
    /// place; entries never change.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let mut batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// batch.set_padded_to(-1)?;
    /// assert_eq!(batch.tensor()?.to_string(), "int32[2, 2] [[1, 2], [3, -1]]");
    /// // An int32 cannot hold this value.
    /// assert!(batch.set_padded_to(i64::MAX).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`with_padded_set_to`](Self::with_padded_set_to); the batch is then unchanged.
    pub fn set_padded_to(&mut self, value_to_set: impl Into<Fill>) -> Result<()> {
        *self = self.with_padded_set_to(value_to_set)?;
        Ok(())
    }

    /// Converts all elements and the padding value like [`DenseTensor::cast`]: floats are truncated
    /// towards zero for integer types, and nonzero numbers become true for bool.
    ///
    /// A batch without entries changes its type, too.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::{DType, DenseTensor};
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// let floats = batch.cast(DType::F32)?;
    /// assert_eq!(floats.tensor()?.to_string(), "float32[2, 2] [[1.0, 2.0], [3.0, 0.0]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a value does not fit the type.
    pub fn cast(&self, dtype: DType) -> Result<Self> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        let made = self.replace_values(self.values().cast(dtype)?, self.non_uniform_dim())?;
        let filler = self.filler().map(|f| f.cast(dtype)).transpose()?;
        Ok(made.with_filler(filler))
    }

    /// Returns sample `i` (row-major over the batch axes) as a tensor without padding.
    ///
    /// If the sample has no entries, the non-uniform axis (along which samples differ in size) has
    /// size 0. Shares the buffer if the non-uniform axis is the first data axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::index::parse_index;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let mut batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// assert_eq!(batch.sample(1)?.as_slice::<i32>()?, [3]);
    /// batch.set_padded_to(-1)?;
    /// assert_eq!(batch.index(&parse_index("1")?)?.as_slice::<i32>()?, [3, -1]);
    /// assert_eq!(batch.cast(DType::F32)?.sample(0)?.as_slice::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the sample does not exist.
    pub fn sample(&self, i: usize) -> Result<DenseTensor> {
        let samples = self.num_samples();
        if i >= samples {
            let index = i64::try_from(i).unwrap_or(i64::MAX);
            return Err(Error::OutOfRange { axis: 0, index, size: samples });
        }
        let entries = self.offsets().range(i);
        let size = entries.len();
        let own = self.values().slice(entries.start, size)?;
        let (before, after) = self.split_entry_shape();
        let mut shape = before.to_vec();
        shape.push(size);
        shape.extend_from_slice(after);
        let outer = multiply_saturating(before);
        if outer == 1 || own.nbytes() == 0 {
            return own.reshape(shape);
        }
        let run = multiply_saturating(after) * self.dtype().size();
        let buffer = fill_buffer(own.nbytes(), |out| {
            with_entry!(run, e => {
                transpose_entries(e, (size, outer), (own.as_bytes(), outer), (out, size))
            });
            Ok(())
        })?;
        DenseTensor::try_new_trusted(self.dtype(), shape, buffer)
    }

    /// Returns all samples as tensors without padding, in lists nested like the batch axes.
    ///
    /// This is the inverse of [`combine_data`](super::combine_data). The tensor of a sample without
    /// entries has size 0 along the non-uniform axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let split = RaggedBatch::try_new(&t, None, Some(&sizes), None)?.split()?;
    /// let samples: Vec<String> = split.tensors().map(|t| t.to_string()).collect();
    /// assert_eq!(samples, ["int32[2] [1, 2]", "int32[1] [3]"]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory does not suffice for a copy of the entries of a sample. Entries are copied if data
    /// axes precede the non-uniform axis.
    pub fn split(&self) -> Result<NestedSamples> {
        let mut level: Vec<NestedSamples> = (0..self.num_samples())
            .map(|i| self.sample(i).map(NestedSamples::Tensor))
            .collect::<Result<_>>()?;
        for (axis, size) in self.batch_shape().iter().enumerate().skip(1).rev() {
            let lists = multiply_saturating(&self.batch_shape()[..axis]);
            let mut rest = level.into_iter();
            level = (0..lists)
                .map(|_| NestedSamples::List(rest.by_ref().take(*size).collect()))
                .collect();
        }
        Ok(NestedSamples::List(level))
    }

    /// Returns the elements of the padded tensor that a NumPy index selects; see
    /// [`DenseTensor::index`].
    ///
    /// A sample without entries has only padding.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// use serrate::index::parse_index;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// // Sample 1 has no entry 1, so the result has its padding.
    /// assert_eq!(batch.index(&parse_index(":, 1")?)?.to_string(), "int32[2] [2, 0]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`DenseTensor::index`] and [`tensor`](Self::tensor).
    pub fn index(&self, index: &[Index]) -> Result<DenseTensor> {
        self.tensor()?.index(index)
    }

    /// Writes `value` to the elements of the padded tensor that a NumPy index selects.
    ///
    /// The value is converted to the type of the batch and broadcast to the selected elements;
    /// writes to padding are dropped. If an element is selected more than once, the last value
    /// written to the element wins. Copies the entries only if another batch shares them. A sample
    /// without entries does not change.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// use serrate::index::parse_index;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let mut batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// batch.set(&parse_index(":, 1")?, &DenseTensor::from_vec([], vec![9])?)?;
    /// assert_eq!(batch.tensor()?.to_string(), "int32[2, 2] [[1, 9], [3, 0]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`DenseTensor::index`]; also if `value` has the wrong shape or does not fit the
    /// type. After an error, the batch is unchanged.
    pub fn set(&mut self, index: &[Index], value: &DenseTensor) -> Result<()> {
        let shape = self.shape();
        if count_shape_elements(&shape).is_none() {
            return Err(Error::invalid(format!(
                "a padded batch of shape {shape:?} has more elements than memory can address; use a smaller batch"
            )));
        }
        let selection = IndexSelection::new(&shape, index)?;
        let value = value.cast(self.dtype())?;
        // The value may have more axes than the selection if the extra axes come first and have
        // size 1: a value of shape `[1, 1, 3]` fits 3 elements.
        let extra = value.ndim().saturating_sub(selection.shape().len());
        let (ones, own) = value.shape().split_at(extra);
        let fits = ones.iter().all(|n| *n == 1)
            && broadcast_shapes(own, selection.shape()).as_deref() == Some(selection.shape());
        if !fits {
            return Err(Error::invalid(format!(
                "the value has the shape {:?}, which does not broadcast to the indexed elements of shape {:?}; give a value whose sizes are 1 or the sizes in this shape",
                value.shape(),
                selection.shape()
            )));
        }
        let (before, after) = self.split_entry_shape();
        let (outer, run) = (multiply_saturating(before), multiply_saturating(after));
        let (width, offsets) = (self.max_sample_size(), self.offsets().clone());
        let place = |p: usize| {
            let (rest, a) = (p / run, p % run);
            let (rest, k) = (rest / width, rest % width);
            let (i, b) = (rest / outer, rest % outer);
            let own = offsets.range(i);
            (k < own.len()).then(|| ((own.start + k) * outer + b) * run + a)
        };
        let size = self.dtype().size();
        let from = value.as_bytes();
        let (dtype, dim) = (self.dtype(), self.non_uniform_dim());
        let (made, filler) = (self.values().shape().to_vec(), self.filler().cloned());
        let structure = Arc::clone(self.structure());
        let mut bytes = self.take_bytes();
        let mut positions = selection.positions();
        for_each_broadcast(own, selection.shape(), |source| {
            if let Some(at) = positions.next().and_then(place) {
                bytes[at * size..(at + 1) * size]
                    .copy_from_slice(&from[source * size..(source + 1) * size]);
            }
        });
        let values = DenseTensor::try_new_trusted(dtype, made, bytes.into())?;
        *self = Self::from_parts(structure, values, dim)?.with_filler(filler);
        Ok(())
    }

    /// Moves the bytes of the values out of the batch and leaves an empty batch. Copies the bytes
    /// only if another batch shares them.
    fn take_bytes(&mut self) -> MutableBuffer {
        let buffer = self.take_values().into_buffer();
        buffer.into_mutable().unwrap_or_else(|shared: Buffer| {
            let mut copy = MutableBuffer::with_capacity(shared.len());
            copy.extend_from_slice(&shared);
            copy
        })
    }
}
