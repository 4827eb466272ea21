//! Conversion of batches to and from ragged arrays, table columns and packed tensors.

use arrow::array::Array;

use super::RaggedBatch;
use super::structure::SampleStructure;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};
use crate::table::RaggedTable;

/// A batch in the format of kernels for variable-length sequences: all entries, and cumulative
/// sizes.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::RaggedBatch;
/// use serrate::dense::DenseTensor;
/// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
/// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
/// let packed = RaggedBatch::try_new(&t, None, Some(&sizes), None)?.to_packed()?;
/// assert_eq!(packed.values.to_string(), "int32[3] [1, 2, 3]");
/// assert_eq!(packed.max_seqlen, 2);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PackedBatch {
    /// The entries, sample by sample, of shape `[entries, data axes except the non-uniform one..]`.
    pub values: DenseTensor,
    /// Offsets `[samples + 1]`, starting at 0: sample `i` has the entries
    /// `cu_seqlens[i]..cu_seqlens[i + 1]`. The type is int32 if the offsets fit, else int64.
    pub cu_seqlens: DenseTensor,
    /// Number of entries of the largest sample in the batch.
    pub max_seqlen: usize,
}

impl RaggedBatch {
    /// Creates a batch with one batch axis from entries `[entries, ..]` and cumulative sizes:
    /// integers `[samples + 1]` from 0 to the number of entries.
    ///
    /// If two adjacent cumulative sizes are equal, the sample between them has no entries. Shares
    /// the entries, and also the sizes if they are int32 or int64.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let values = DenseTensor::from_vec([3], vec![1, 2, 3])?;
    /// let cu_seqlens = DenseTensor::from_vec([3], vec![0i32, 2, 3])?;
    /// let batch = RaggedBatch::from_packed(values, &cu_seqlens)?;
    /// assert_eq!(batch.tensor()?.to_string(), "int32[2, 2] [[1, 2], [3, 0]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the sizes are not one-dimensional integers, decrease, or do not end at the number of
    /// entries.
    pub fn from_packed(values: DenseTensor, cu_seqlens: &DenseTensor) -> Result<Self> {
        if cu_seqlens.ndim() != 1 || !cu_seqlens.dtype().is_integer() {
            return Err(Error::invalid(format!(
                "cu_seqlens has the type {} and the shape {:?}; give integers of shape [number of samples + 1]",
                cu_seqlens.dtype(),
                cu_seqlens.shape()
            )));
        }
        let offsets = if cu_seqlens.dtype() == DType::I32 {
            Offsets::try_new::<i32>(arrow::buffer::ScalarBuffer::from(cu_seqlens.buffer().clone()))?
        } else {
            let wide = cu_seqlens.cast(DType::I64)?;
            Offsets::try_new::<i64>(arrow::buffer::ScalarBuffer::from(wide.buffer().clone()))?
        };
        if offsets.base() != 0 {
            return Err(Error::invalid(format!(
                "cu_seqlens begins with {}; give cumulative sizes that begin with 0",
                offsets.base()
            )));
        }
        let structure = SampleStructure::try_new(vec![offsets.lists()], offsets, None, DType::I64)?;
        Self::from_parts(structure.into(), values, 1)
    }

    /// Returns the entries, without a copy, and the cumulative sizes: samples of 2 and 1 entries
    /// give `[0, 2, 3]`.
    ///
    /// For a sample without entries, the cumulative sizes before and after the sample are equal.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let packed = RaggedBatch::try_new(&t, None, Some(&sizes), None)?.to_packed()?;
    /// assert_eq!(packed.values.to_string(), "int32[3] [1, 2, 3]");
    /// assert_eq!(packed.cu_seqlens.to_string(), "int32[3] [0, 2, 3]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: the cumulative sizes are the offsets of the batch.
    pub fn to_packed(&self) -> Result<PackedBatch> {
        let samples = self.num_samples();
        let (dtype, buffer) = match self.offsets() {
            Offsets::I32(o) => (DType::I32, o.inner().inner().clone()),
            Offsets::I64(o) => (DType::I64, o.inner().inner().clone()),
        };
        Ok(PackedBatch {
            values: self.values().clone(),
            cu_seqlens: DenseTensor::try_new_trusted(dtype, vec![samples + 1], buffer)?,
            max_seqlen: self.offsets().max_length(),
        })
    }

    /// Creates a batch from a ragged array without nulls.
    ///
    /// The only axis whose lists differ in length becomes the non-uniform axis. The axes before it
    /// (including the rows) become batch axes, and the axes after it data axes. If all lists have
    /// the same length on every axis, the non-uniform axis is the first axis with
    /// [`Layout::Ragged`](crate::array::Layout::Ragged), or else axis 1. Shares offsets and leaves.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::arrow::array::Int32Array;
    /// use serrate::batching::RaggedBatch;
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let array = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
    /// let batch = RaggedBatch::from_ragged(&array)?;
    /// assert_eq!(batch.tensor()?.to_string(), "int32[2, 2] [[1, 2], [3, 0]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the array has nulls or no lists, leaves are not numeric, or lists differ in length on
    /// several axes.
    pub fn from_ragged(array: &RaggedArray) -> Result<Self> {
        let axes = array.axes();
        let lists: usize = axes.iter().filter_map(ListAxis::nulls).map(|n| n.null_count()).sum();
        let leaves = array.leaves().null_count();
        if lists > 0 || leaves > 0 {
            return Err(Error::invalid(format!(
                "the array has {lists} null list(s) and {leaves} null leaf value(s), but a batch cannot hold nulls; fill them first"
            )));
        }
        let one_size = |axis: &ListAxis| match axis.layout() {
            Layout::Uniform { size, .. } => Some(*size),
            Layout::Ragged(o) => {
                let most = o.max_length();
                o.lengths().all(|n| n == most).then_some(most)
            }
        };
        let sizes: Vec<Option<usize>> = axes.iter().map(one_size).collect();
        let mut differ = (0..axes.len()).filter(|i| sizes[*i].is_none());
        let ragged = (0..axes.len()).find(|i| axes[*i].layout().is_ragged());
        let at = match (differ.next(), differ.next()) {
            (Some(first), Some(second)) => {
                return Err(Error::invalid(format!(
                    "lists differ in length on axes {} and {}, but a batch can have only one such axis; pad the lists of one of these axes",
                    first + 1,
                    second + 1
                )));
            }
            (Some(at), None) => at,
            (None, _) if axes.is_empty() => {
                return Err(Error::invalid(
                    "the array has no lists that could be samples; give an array of lists",
                ));
            }
            (None, _) => ragged.unwrap_or(0),
        };
        let size = |i: &usize| sizes[*i].unwrap_or(0);
        let mut batch_shape = vec![array.len()];
        batch_shape.extend((0..at).map(|i| size(&i)));
        let offsets = axes[at].layout().to_offsets()?;
        let mut shape = vec![offsets.children()];
        shape.extend((at + 1..axes.len()).map(|i| size(&i)));
        let values = DenseTensor::from_flat(array.leaves(), "the leaves of a batch")?;
        // A ragged axis without lists has size 0 in `shape`. The array then has no leaves, so the
        // reshape succeeds.
        let values = values.reshape(shape)?;
        let dim = batch_shape.len();
        let structure = SampleStructure::try_new(batch_shape, offsets, None, DType::I64)?;
        Self::from_parts(structure.into(), values, dim)
    }

    /// Returns a ragged array.
    ///
    /// Its rows are the first batch axis. Its list axes are the other batch axes, the non-uniform
    /// axis and then all other data axes, including those before the non-uniform axis in the
    /// tensor. Shares offsets and values (bool is packed to bits, bfloat16 becomes float32). A
    /// sample without entries becomes an empty list; there are no nulls.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let array = RaggedBatch::try_new(&t, None, Some(&sizes), None)?.to_ragged()?;
    /// assert_eq!((array.len(), array.lengths(1)?), (2, vec![2, 1]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the length of an axis exceeds a `usize`, which can occur only in a batch without values.
    pub fn to_ragged(&self) -> Result<RaggedArray> {
        let uniform = |size: usize, lists: usize| ListAxis::from(Layout::Uniform { size, lists });
        let (rows, rest) = self.batch_shape().split_first().map_or((0, &[][..]), |(r, b)| (*r, b));
        let mut axes = Vec::with_capacity(self.ndim() - 1);
        let mut lists = rows;
        for size in rest {
            axes.push(uniform(*size, lists));
            lists *= size;
        }
        axes.push(self.offsets().clone().into());
        let mut lists = self.num_entries();
        for size in self.entry_shape() {
            axes.push(uniform(*size, lists));
            lists = lists.saturating_mul(*size);
        }
        RaggedArray::try_new(rows, axes, self.values().to_flat()?)
    }

    /// Creates a batch from a column of a table, like [`from_ragged`](Self::from_ragged):
    /// empty lists become samples without entries, and nulls are an error.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(Int32Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let batch = RaggedBatch::from_column(&table, "code")?;
    /// assert_eq!(batch.tensor()?.to_string(), "int32[2, 2] [[1, 2], [3, 0]]");
    /// assert!(RaggedBatch::from_column(&table, "age").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`from_ragged`](Self::from_ragged); also if the column does not exist.
    pub fn from_column(table: &RaggedTable, name: &str) -> Result<Self> {
        Self::from_ragged(&table.array(name)?)
    }

    /// Creates a table with one column per batch.
    ///
    /// All batches must have the same sample sizes; the columns share their offsets and have the
    /// axes of [`to_ragged`](Self::to_ragged). The data axes of each column must be the first data
    /// axes of the column with the most axes: entry shapes `[]`, `[3]` and `[3, 2]` can be in one
    /// table. A sample without entries becomes an empty list.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// let table = RaggedBatch::to_table(&[("code", &batch)])?;
    /// assert_eq!(RaggedBatch::from_column(&table, "code")?, batch);
    /// assert_eq!(batch.to_ragged()?.lengths(1)?, [2, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no batches, sample sizes differ (the message names the sample), the data axes
    /// of a column are not a prefix of those of the longest column, or a name repeats.
    pub fn to_table(columns: &[(&str, &Self)]) -> Result<RaggedTable> {
        let Some((_, first)) = columns.iter().rev().max_by_key(|(_, b)| b.ndim()) else {
            return Err(Error::invalid(
                "there are no batches to convert to a table; give at least one",
            ));
        };
        let array = first.to_ragged()?;
        let mut builder = RaggedTable::builder().rows(array.len());
        for axis in array.axes() {
            builder = builder.layout(axis.layout().clone());
        }
        for (name, batch) in columns {
            let what = format!("column {name:?} and another column");
            batch.structure().check_same_sizes(first.structure(), &what)?;
            let shape = batch.entry_shape();
            if first.entry_shape().get(..shape.len()) != Some(shape) {
                return Err(Error::invalid(format!(
                    "column {name:?} has entries of shape {shape:?}, but another column has entries of shape {:?}; one shape must be a prefix of the other, because the columns of a table share their axes",
                    first.entry_shape()
                )));
            }
            builder = builder.column(*name, batch.ndim() - 1, batch.values().to_flat()?);
        }
        builder.build()
    }
}

impl TryFrom<&RaggedArray> for RaggedBatch {
    type Error = Error;

    fn try_from(array: &RaggedArray) -> Result<Self> {
        Self::from_ragged(array)
    }
}

impl TryFrom<&RaggedBatch> for RaggedArray {
    type Error = Error;

    fn try_from(batch: &RaggedBatch) -> Result<Self> {
        batch.to_ragged()
    }
}

impl TryFrom<&RaggedBatch> for PackedBatch {
    type Error = Error;

    fn try_from(batch: &RaggedBatch) -> Result<Self> {
        batch.to_packed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn structures_are_shared() {
        let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0]).unwrap();
        let sizes = DenseTensor::from_vec([2], vec![2i64, 1]).unwrap();
        let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None).unwrap();
        let other = batch.create_with_sample_sizes_like_self(&t, None).unwrap();
        assert!(Arc::ptr_eq(batch.structure(), other.structure()));
        let mask = batch.mask().unwrap().as_bytes().as_ptr();
        assert_eq!(other.mask().unwrap().as_bytes().as_ptr(), mask);
        let array = batch.to_ragged().unwrap();
        assert!(batch.offsets().ptr_eq(&array.axes()[0].layout().to_offsets().unwrap()));
        let back = RaggedBatch::from_ragged(&array).unwrap();
        assert_eq!(back.values().as_bytes().as_ptr(), batch.values().as_bytes().as_ptr());
        let packed = batch.to_packed().unwrap();
        assert_eq!(RaggedBatch::from_packed(packed.values, &packed.cu_seqlens).unwrap(), batch);
    }
}
