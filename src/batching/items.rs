//! What is in a batch: filler, types, samples one by one, items by index.

use std::sync::Arc;

use arrow::buffer::{Buffer, MutableBuffer};

use super::RaggedBatch;
use super::combine::Samples;
use super::entries::{filled, transpose, with_entry};
use super::pad::element;
use super::structure::product;
use crate::dense::{
    DType, DenseOptions, DenseTensor, Fill, Selection, broadcast, broadcast_positions,
    element_count,
};
use crate::error::{Error, Result};
use crate::index::Index;

impl RaggedBatch {
    /// 1 for what is an entry of the padded tensor and 0 for filler, in a type of choice (float32 to
    /// weigh losses with): as [`mask`](Self::mask), but of the shape of the tensor.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn get_existence_weights(&self, dtype: DType) -> Result<DenseTensor> {
        let one = element(Fill::Int(1), dtype)?;
        let shape = self.values().shape().to_vec();
        let bytes = self.values().num_elements().saturating_mul(dtype.size());
        let buffer = filled(bytes, |out| {
            super::entries::fill(out, one.as_bytes());
            Ok(())
        })?;
        let ones = DenseTensor::try_new_trusted(dtype, shape, buffer)?;
        Self::from_parts(Arc::clone(self.structure()), ones, self.non_uniform_dim())?
            .padded(&DenseOptions::default())
    }

    /// The same batch with this value as filler of the padded tensor. Floats are cut towards zero for
    /// integers, and anything but zero is true. Shares everything; filler is not stored.
    ///
    /// Filler stays what it is set to through what changes batch axes, data axes or type; operations
    /// that make new entries leave zeros.
    ///
    /// ```
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
    /// When the type cannot hold the value.
    pub fn with_padded_set_to(&self, value_to_set: impl Into<Fill>) -> Result<Self> {
        let filler = element(value_to_set.into(), self.dtype())?;
        Ok(self.clone().with_filler(Some(filler)))
    }

    /// As [`with_padded_set_to`](Self::with_padded_set_to), of this batch itself.
    ///
    /// # Errors
    /// As there; the batch is as it was then.
    pub fn set_padded_to(&mut self, value_to_set: impl Into<Fill>) -> Result<()> {
        *self = self.with_padded_set_to(value_to_set)?;
        Ok(())
    }

    /// Converts all elements, see [`DenseTensor::cast`]: exactly where the type can hold them, floats
    /// to integers cut towards zero, anything but zero is `true`. Filler is converted, too.
    ///
    /// # Errors
    /// When a value does not fit the type.
    pub fn to_dtype(&self, dtype: DType) -> Result<Self> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        let made = self.with_values(self.values().cast(dtype)?, self.non_uniform_dim())?;
        let filler = self.filler().map(|f| f.cast(dtype)).transpose()?;
        Ok(made.with_filler(filler))
    }

    /// As int32.
    ///
    /// # Errors
    /// As [`to_dtype`](Self::to_dtype).
    pub fn int(&self) -> Result<Self> {
        self.to_dtype(DType::I32)
    }

    /// As int64.
    ///
    /// # Errors
    /// As [`to_dtype`](Self::to_dtype).
    pub fn long(&self) -> Result<Self> {
        self.to_dtype(DType::I64)
    }

    /// As booleans: what is not zero is true.
    ///
    /// # Errors
    /// As [`to_dtype`](Self::to_dtype).
    pub fn bool(&self) -> Result<Self> {
        self.to_dtype(DType::Bool)
    }

    /// As float16.
    ///
    /// # Errors
    /// As [`to_dtype`](Self::to_dtype).
    pub fn half(&self) -> Result<Self> {
        self.to_dtype(DType::F16)
    }

    /// As bfloat16.
    ///
    /// # Errors
    /// As [`to_dtype`](Self::to_dtype).
    pub fn bfloat16(&self) -> Result<Self> {
        self.to_dtype(DType::BF16)
    }

    /// As float32.
    ///
    /// # Errors
    /// As [`to_dtype`](Self::to_dtype).
    pub fn float(&self) -> Result<Self> {
        self.to_dtype(DType::F32)
    }

    /// As float64.
    ///
    /// # Errors
    /// As [`to_dtype`](Self::to_dtype).
    pub fn double(&self) -> Result<Self> {
        self.to_dtype(DType::F64)
    }

    /// Sample `i`, row-major over the batch axes, as a tensor of its own size. Shares the buffer when
    /// the non-uniform axis is the first data axis.
    ///
    /// # Errors
    /// When there is no such sample.
    pub fn sample(&self, i: usize) -> Result<DenseTensor> {
        let samples = self.total_num_samples_in_batch();
        if i >= samples {
            let index = i64::try_from(i).unwrap_or(i64::MAX);
            return Err(Error::OutOfRange { axis: 0, index, size: samples });
        }
        let entries = self.offsets().range(i);
        let size = entries.len();
        let own = self.values().slice(entries.start, size)?;
        let (before, after) = self.around();
        let mut shape = before.to_vec();
        shape.push(size);
        shape.extend_from_slice(after);
        let outer = product(before);
        if outer == 1 || own.nbytes() == 0 {
            return own.reshape(shape);
        }
        let run = product(after) * self.dtype().size();
        let buffer = filled(own.nbytes(), |out| {
            with_entry!(run, e => transpose(e, (size, outer), (own.as_bytes(), outer), (out, size)));
            Ok(())
        })?;
        DenseTensor::try_new_trusted(self.dtype(), shape, buffer)
    }

    /// All samples, each a tensor of its own size, in lists nested as the batch axes are.
    /// [`combine_data`](super::combine_data) is the way back.
    ///
    /// ```
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
    /// None that a batch can cause.
    pub fn split(&self) -> Result<Samples> {
        let mut level: Vec<Samples> = (0..self.total_num_samples_in_batch())
            .map(|i| self.sample(i).map(Samples::Tensor))
            .collect::<Result<_>>()?;
        for (axis, size) in self.batch_shape().iter().enumerate().skip(1).rev() {
            let lists = product(&self.batch_shape()[..axis]);
            let mut rest = level.into_iter();
            level =
                (0..lists).map(|_| Samples::List(rest.by_ref().take(*size).collect())).collect();
        }
        Ok(Samples::List(level))
    }

    /// Items of the padded [`tensor`](Self::tensor), filler among them, by an index as numpy's, see
    /// [`DenseTensor::index`].
    ///
    /// # Errors
    /// As there; as [`tensor`](Self::tensor).
    pub fn get(&self, index: &[Index]) -> Result<DenseTensor> {
        self.tensor()?.index(index)
    }

    /// Writes to items of the padded tensor, by an index as numpy's. The value is converted to the type
    /// of the batch and broadcast to what the index takes; what would be written to filler is gone.
    /// Where an index takes an item more than once, the last value stays. The entries are written in
    /// place unless something else shares their buffer.
    ///
    /// ```
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
    /// As [`DenseTensor::index`]; a value that does not broadcast or fit the type. The batch is as it
    /// was then.
    pub fn set(&mut self, index: &[Index], value: &DenseTensor) -> Result<()> {
        let shape = self.shape();
        if element_count(&shape).is_none() {
            return Err(Error::invalid(format!("a padded batch of shape {shape:?} has no items")));
        }
        let selection = Selection::new(&shape, index)?;
        let value = value.cast(self.dtype())?;
        // Axes of size 1 in front do not matter, as there is nothing to be repeated along them.
        let extra = value.ndim().saturating_sub(selection.shape().len());
        let (ones, own) = value.shape().split_at(extra);
        let fits = ones.iter().all(|n| *n == 1)
            && broadcast(own, selection.shape()).as_deref() == Some(selection.shape());
        if !fits {
            return Err(Error::invalid(format!(
                "a value of shape {:?} for items of shape {:?}",
                value.shape(),
                selection.shape()
            )));
        }
        let (before, after) = self.around();
        let (outer, run) = (product(before), product(after));
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
        let sources = broadcast_positions(own, selection.shape());
        for (p, source) in selection.positions().zip(sources) {
            if let Some(at) = place(p) {
                bytes[at * size..(at + 1) * size]
                    .copy_from_slice(&from[source * size..(source + 1) * size]);
            }
        }
        let values = DenseTensor::try_new_trusted(dtype, made, bytes.into())?;
        *self = Self::from_parts(structure, values, dim)?.with_filler(filler);
        Ok(())
    }

    /// The bytes of the entries to write to, in place when nothing shares them. The batch is without
    /// entries then.
    fn take_bytes(&mut self) -> MutableBuffer {
        let buffer = self.take_values().into_buffer();
        buffer.into_mutable().unwrap_or_else(|shared: Buffer| {
            let mut copy = MutableBuffer::with_capacity(shared.len());
            copy.extend_from_slice(&shared);
            copy
        })
    }
}
