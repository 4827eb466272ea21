//! Batches to and from ragged arrays, columns of tables and packed tensors.

use arrow::array::Array;

use super::RaggedBatch;
use super::structure::Structure;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};
use crate::table::RaggedTable;

/// A batch as kernels for variable lengths take it: all entries, and where samples begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// `[entries, data axes but the non-uniform one..]`, the samples one after the other.
    pub values: DenseTensor,
    /// `[samples + 1]`, from 0: sample `i` has the entries from number `i` up to number `i + 1`. int32
    /// where that suffices, else int64.
    pub cu_seqlens: DenseTensor,
    /// Entries of the largest sample.
    pub max_seqlen: usize,
}

impl RaggedBatch {
    /// From all entries `[entries, ..]` and the cumulative sizes of the samples: integers
    /// `[samples + 1]`, from 0 to the number of entries. One batch axis; shares the entries, and the
    /// sizes when they are int32 or int64.
    ///
    /// # Errors
    /// Sizes of other axes, that are no integers, decrease, or do not end at the number of entries.
    pub fn from_packed(values: DenseTensor, cu_seqlens: &DenseTensor) -> Result<Self> {
        if cu_seqlens.ndim() != 1 || !cu_seqlens.dtype().is_integer() {
            return Err(Error::invalid(format!(
                "cumulative sizes are integers of one axis, not {} of shape {:?}",
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
                "cumulative sizes begin with 0, not with {}",
                offsets.base()
            )));
        }
        let structure = Structure::try_new(vec![offsets.lists()], offsets, None, DType::I64)?;
        Self::from_parts(structure.into(), values, 1)
    }

    /// Entries and cumulative sizes, sharing the entries.
    ///
    /// ```
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
    /// None that a batch can cause.
    pub fn to_packed(&self) -> Result<Packed> {
        let samples = self.total_num_samples_in_batch();
        let (dtype, buffer) = match self.offsets() {
            Offsets::I32(o) => (DType::I32, o.inner().inner().clone()),
            Offsets::I64(o) => (DType::I64, o.inner().inner().clone()),
        };
        Ok(Packed {
            values: self.values().clone(),
            cu_seqlens: DenseTensor::try_new_trusted(dtype, vec![samples + 1], buffer)?,
            max_seqlen: self.offsets().max_length(),
        })
    }

    /// From a ragged array without nulls: the one axis whose lists differ in length is the non-uniform
    /// one, axes before it are batch axes (the rows among them), axes after it data axes. Where no lists
    /// differ, it is the first that may. Shares offsets and leaves.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::arrow::array::Int32Array;
    /// use serrate::batching::RaggedBatch;
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let array = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
    /// let batch = RaggedBatch::from_ragged_array(&array)?;
    /// assert_eq!(batch.tensor()?.to_string(), "int32[2, 2] [[1, 2], [3, 0]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nulls; no lists; lists that differ in length on more than one axis; leaves that are no numbers.
    pub fn from_ragged_array(array: &RaggedArray) -> Result<Self> {
        let axes = array.axes();
        let nulls = |a: &ListAxis| a.nulls().is_some_and(|n| n.null_count() > 0);
        if axes.iter().any(nulls) || array.leaves().null_count() > 0 {
            return Err(Error::invalid("a batch has no nulls; fill them first"));
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
                    "lists differ in length on axes {} and {}; a batch has one such axis",
                    first + 1,
                    second + 1
                )));
            }
            (Some(at), None) => at,
            (None, _) if axes.is_empty() => {
                return Err(Error::invalid("an array without lists is no batch of samples"));
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
        // Sizes of lists that there are none of are unknown, and 0 here, as there are no elements.
        let values = values.reshape(shape)?;
        let dim = batch_shape.len();
        let structure = Structure::try_new(batch_shape, offsets, None, DType::I64)?;
        Self::from_parts(structure.into(), values, dim)
    }

    /// As a ragged array: rows are the first batch axis, then come the other batch axes, the
    /// non-uniform axis and the data axes, wherever the non-uniform axis is in the tensor. Shares
    /// offsets and values (bool is packed to bits, bfloat16 becomes float32).
    ///
    /// # Errors
    /// None that a batch can cause.
    pub fn to_ragged_array(&self) -> Result<RaggedArray> {
        let uniform = |size: usize, lists: usize| ListAxis::from(Layout::Uniform { size, lists });
        let (rows, rest) = self.batch_shape().split_first().map_or((0, &[][..]), |(r, b)| (*r, b));
        let mut axes = Vec::with_capacity(self.dim() - 1);
        let mut lists = rows;
        for size in rest {
            axes.push(uniform(*size, lists));
            lists *= size;
        }
        axes.push(self.offsets().clone().into());
        let mut lists = self.total_num_entries();
        for size in self.entry_shape() {
            axes.push(uniform(*size, lists));
            lists = lists.saturating_mul(*size);
        }
        RaggedArray::try_new(rows, axes, self.values().to_flat()?)
    }

    /// From a column of a table, as [`from_ragged_array`](Self::from_ragged_array).
    ///
    /// # Errors
    /// As there; when there is no such column.
    pub fn from_column(table: &RaggedTable, name: &str) -> Result<Self> {
        Self::from_ragged_array(&table.array(name)?)
    }

    /// A table with one column per batch, all of the same sample sizes, which share their offsets as
    /// [`to_ragged_array`](Self::to_ragged_array) lays them out. Data axes of the columns are one
    /// chain: those of one batch begin those of another.
    ///
    /// # Errors
    /// No batches; sample sizes that differ, by sample; data axes that are no such chain; names given
    /// twice.
    pub fn to_table(columns: &[(&str, &Self)]) -> Result<RaggedTable> {
        let Some((_, first)) = columns.iter().rev().max_by_key(|(_, b)| b.dim()) else {
            return Err(Error::invalid("a table of no batches"));
        };
        let array = first.to_ragged_array()?;
        let mut builder = RaggedTable::builder().rows(array.len());
        for axis in array.axes() {
            builder = builder.layout(axis.layout().clone());
        }
        for (name, batch) in columns {
            let what = format!("column {name:?} and the others");
            batch.structure().check_same_sizes(first.structure(), &what)?;
            let shape = batch.entry_shape();
            if first.entry_shape().get(..shape.len()) != Some(shape) {
                return Err(Error::invalid(format!(
                    "column {name:?} has entries of shape {shape:?}, another those of {:?}; columns of a table share their axes",
                    first.entry_shape()
                )));
            }
            builder = builder.column(*name, batch.dim() - 1, batch.values().to_flat()?);
        }
        builder.build()
    }
}

/// See [`RaggedBatch::from_ragged_array`].
impl TryFrom<&RaggedArray> for RaggedBatch {
    type Error = Error;

    fn try_from(array: &RaggedArray) -> Result<Self> {
        Self::from_ragged_array(array)
    }
}

/// See [`RaggedBatch::to_ragged_array`].
impl TryFrom<&RaggedBatch> for RaggedArray {
    type Error = Error;

    fn try_from(batch: &RaggedBatch) -> Result<Self> {
        batch.to_ragged_array()
    }
}

/// See [`RaggedBatch::to_packed`].
impl TryFrom<&RaggedBatch> for Packed {
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
        let array = batch.to_ragged_array().unwrap();
        assert!(batch.offsets().ptr_eq(&array.axes()[0].layout().to_offsets().unwrap()));
        let back = RaggedBatch::from_ragged_array(&array).unwrap();
        assert_eq!(back.values().as_bytes().as_ptr(), batch.values().as_bytes().as_ptr());
        let packed = batch.to_packed().unwrap();
        assert_eq!(RaggedBatch::from_packed(packed.values, &packed.cu_seqlens).unwrap(), batch);
    }
}
