use arrow::array::{ArrayRef, BooleanBufferBuilder, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take as take_array;

use super::storage::{compute_strides, to_coordinate};
use super::{Coo, Csr, DokTensor};
use crate::array::{ListAxis, Offsets, RaggedArray};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};
use crate::index::Index;

impl DokTensor {
    /// Converts the whole tensor to a dense tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.to_dense()?.as_slice::<i32>()?, [0, 5, 0, 7]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the tensor exceeds [`dense_limit`](Self::dense_limit), before
    /// allocation.
    pub fn to_dense(&self) -> Result<DenseTensor> {
        self.index(&[Index::Rest])
    }

    /// Returns the coordinates and values in row-major order.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// let coo = t.to_coo()?;
    /// assert_eq!(coo.indices.as_slice::<i64>()?, [0, 1, 1, 1]); // [0, 1] and [1, 1]
    /// assert_eq!(coo.values.as_slice::<i32>()?, [5, 7]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn to_coo(&self) -> Result<Coo> {
        let entries = self.collect_entries()?.into_sorted()?;
        let indices = entries.to_indices()?;
        Ok(Coo { shape: entries.shape, indices, values: entries.values })
    }

    /// Converts a matrix to compressed sparse row form, with ascending columns in each row.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 3], vec![0, 5, 0, 7, 0, 9])?)?;
    /// let csr = t.to_csr()?;
    /// assert_eq!(csr.crow_indices.as_slice::<i64>()?, [0, 1, 3]);
    /// assert_eq!(csr.col_indices.as_slice::<i64>()?, [1, 0, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor does not have two axes, or the row starts exceed
    /// [`dense_limit`](Self::dense_limit).
    pub fn to_csr(&self) -> Result<Csr> {
        let &[rows, cols] = self.shape().as_slice() else {
            return Err(Error::invalid(format!(
                "compressed sparse rows need a tensor of 2 axes, but the number of axes of this tensor is {}; reshape the tensor first",
                self.ndim()
            )));
        };
        self.check_dense_bytes(rows as u64 + 1, DType::I64, "the array of row starts")?;
        let coo = self.to_coo()?;
        let count = coo.values.num_elements();
        let mut crow = vec![0i64; rows + 1];
        let indices = coo.indices.as_slice::<i64>()?;
        for row in &indices[..count] {
            // Count an entry of row `r` at index `r + 1`, so that the running sums are the row
            // starts.
            if let Some(n) = usize::try_from(*row).ok().and_then(|r| crow.get_mut(r + 1)) {
                *n += 1;
            }
        }
        let mut sum = 0;
        for n in &mut crow {
            sum += *n;
            *n = sum;
        }
        Ok(Csr {
            shape: [rows, cols],
            crow_indices: DenseTensor::from_vec([rows + 1], crow)?,
            col_indices: coo.indices.row(1)?,
            values: coo.values,
        })
    }

    /// Converts to a ragged array in which each list ends at its last entry.
    ///
    /// Earlier elements without entry are null. Keeps all rows, but drops trailing empty lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::array::Array;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let dense = DenseTensor::from_vec([3, 3], vec![0, 5, 0, 0, 0, 0, 7, 0, 0])?;
    /// let ragged = DokTensor::from_dense(&dense)?.to_ragged()?; // [[NULL, 5], [], [7]]
    /// assert_eq!(ragged.lengths(1)?, [2, 0, 1]);
    /// assert_eq!(ragged.leaves().null_count(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// For a tensor without axes; [`Error::TooLarge`] if the elements up to the last entries of all
    /// lists exceed [`dense_limit`](Self::dense_limit).
    pub fn to_ragged(&self) -> Result<RaggedArray> {
        let entries = self.collect_entries()?.into_sorted()?;
        let Some(rows) = entries.shape.first().copied() else {
            return Err(Error::invalid(
                "a tensor without axes has no rows; reshape it to [1] first",
            ));
        };
        let steps = compute_strides(&entries.shape);
        let mut rest: Vec<u64> =
            entries.places()?.iter().map(|p| super::storage::from_place(*p)).collect();
        let mut coordinates = |stride: u64| -> Vec<u64> {
            let each = rest.iter_mut().map(|rest| {
                let at = *rest / stride;
                *rest -= at * stride;
                at
            });
            each.collect()
        };
        // Each list takes 16 bytes in the vectors below: its length and its offset.
        self.check_bytes(rows as u64, 16, "one list per row")?;
        // For each entry, the index of the element that contains the entry: first on axis 0, and
        // after each iteration on the next axis.
        let mut parents = coordinates(steps[0]);
        let mut elements = rows as u64;
        let mut axes = Vec::new();
        for stride in &steps[1..] {
            let at = coordinates(*stride);
            let mut lengths = vec![0usize; to_coordinate(elements)];
            for (parent, at) in parents.iter().zip(&at) {
                let length = &mut lengths[to_coordinate(*parent)];
                *length = (*length).max(to_coordinate(*at) + 1);
            }
            let total: u128 = lengths.iter().map(|n| *n as u128).sum();
            elements = u64::try_from(total).unwrap_or(u64::MAX);
            self.check_bytes(elements, 16, "the ragged array up to the last entry of each list")?;
            let offsets = Offsets::from_lengths(lengths)?;
            for (parent, at) in parents.iter_mut().zip(&at) {
                *parent = offsets.at(to_coordinate(*parent)) as u64 + at;
            }
            axes.push(ListAxis::from(offsets));
        }
        // Bytes per element: the index of its entry, a flag for its presence, and the value.
        let size = 8 + 1 + entries.values.dtype().size();
        self.check_bytes(elements, size, "the ragged array up to the last entry of each list")?;
        let mut source = vec![0u64; to_coordinate(elements)];
        let mut stored = BooleanBufferBuilder::new(source.len());
        stored.append_n(source.len(), false);
        for (entry, at) in (0u64..).zip(&parents) {
            source[to_coordinate(*at)] = entry;
            stored.set_bit(to_coordinate(*at), true);
        }
        let stored = NullBuffer::new(stored.finish());
        let values: ArrayRef = entries.values.to_flat()?;
        let leaves = take_array(&values, &UInt64Array::new(source.into(), Some(stored)), None)?;
        RaggedArray::try_new(rows, axes, leaves)
    }
}
