//! Reshaping of sparse tensors, which returns a copy, and resizing in place.

use std::sync::Arc;

use super::DokTensor;
use super::axis_view::AxisView;
use super::entries::{SparseEntries, take_rows};
use super::storage::{
    DokStorage, compute_strides, count_elements, from_place, to_place, unravel_place,
};
use crate::error::{Error, Result};

impl DokTensor {
    /// Returns a copy with another shape and the same elements in row-major order.
    ///
    /// One size may be -1: it is computed from the number of elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::new([4, 6], DType::I32)?;
    /// t.set_at(&[1, 0], 5)?;
    /// let r = t.reshape(&[2, -1, 3])?;
    /// assert_eq!((r.shape(), r.at(&[0, 2, 0])?.to_string().as_str()), (vec![2, 4, 3], "5"));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shape has a different number of elements, or several sizes are -1.
    pub fn reshape(&self, shape: &[i64]) -> Result<Self> {
        let elements = self.num_elements()?;
        let refused = || {
            Error::invalid(format!(
                "a tensor of shape {:?} has {elements} element(s) and cannot be reshaped to {shape:?}; give a shape with the same number of elements",
                self.shape()
            ))
        };
        let mut known = 1u64;
        let mut open = false;
        for size in shape {
            match u64::try_from(*size) {
                Ok(size) => known = known.checked_mul(size).ok_or_else(refused)?,
                Err(_) if *size == -1 && !std::mem::replace(&mut open, true) => {}
                Err(_) => {
                    return Err(Error::invalid(format!(
                        "the shape {shape:?} is invalid; give sizes of 0 or more, and at most one -1, which is inferred from the other sizes"
                    )));
                }
            }
        }
        let left = match (open, known) {
            (true, 0) => return Err(refused()),
            (true, known) if elements.is_multiple_of(known) => elements / known,
            (false, known) if known == elements => 1,
            _ => return Err(refused()),
        };
        let sizes = shape.iter().map(|size| u64::try_from(*size).unwrap_or(left));
        let shape: Vec<usize> = sizes.map(super::storage::to_coordinate).collect();
        if !self.view.is_whole() {
            return self.replace_entries(SparseEntries { shape, ..self.collect_entries()? });
        }
        // A reshape keeps the row-major index of every element, so copy the map as it is.
        let storage = self.storage.read();
        count_elements(&shape)?;
        let map = storage.map.try_clone()?;
        let mut made =
            Self::from_storage(DokStorage { strides: compute_strides(&shape), shape, map });
        made.limit = self.limit;
        Ok(made)
    }

    /// Returns a copy with one axis and the elements in row-major order.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.flatten()?.shape(), [4]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn flatten(&self) -> Result<Self> {
        self.reshape(&[-1]).or_else(|_| self.reshape(&[0]))
    }

    /// Changes the sizes of the axes.
    ///
    /// Entries outside the new shape are dropped; all other entries keep their coordinates. An axis
    /// keeps its size if `sizes` has -1 or no element for it.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::new([3, 4], DType::F32)?;
    /// t.set_at(&[2, 3], 1.0)?;
    /// t.resize(&[5])?;
    /// assert_eq!((t.shape(), t.nnz()?), (vec![5, 4], 1));
    /// t.resize(&[-1, 3])?;
    /// assert_eq!((t.shape(), t.nnz()?), (vec![5, 3], 0));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more sizes than axes, the shape has more than 2^63 elements, or other views
    /// share the entries (clone first). NumPy returns an error for views, too.
    pub fn resize(&mut self, sizes: &[i64]) -> Result<()> {
        let mut shape = self.shape();
        if sizes.len() > shape.len() {
            return Err(Error::invalid(format!(
                "{} size(s) are given, but the number of axes of the tensor is {}; give at most one size per axis",
                sizes.len(),
                shape.len()
            )));
        }
        for (axis, (size, new)) in shape.iter_mut().zip(sizes).enumerate() {
            match usize::try_from(*new) {
                Ok(new) => *size = new,
                Err(_) if *new == -1 => {}
                Err(_) => {
                    return Err(Error::invalid(format!(
                        "the new size {new} of axis {axis} is invalid; use 0 or more, or -1 to keep the size of the axis"
                    )));
                }
            }
        }
        count_elements(&shape)?;
        if Arc::strong_count(&self.storage) > 1 {
            return Err(Error::invalid(
                "the tensor shares its entries with views, so it cannot be resized; clone it first",
            ));
        }
        let entries = self.collect_entries()?;
        let (from, to) = (compute_strides(&entries.shape), compute_strides(&shape));
        let mut at = vec![0; shape.len()];
        let (mut places, mut rows) = (Vec::new(), Vec::new());
        for (row, entry) in (0u64..).zip(entries.places()?) {
            unravel_place(from_place(*entry), &from, &mut at);
            if at.iter().zip(&shape).all(|(at, size)| *at < *size as u64) {
                places.push(to_place(at.iter().zip(&to).map(|(at, stride)| at * stride).sum()));
                rows.push(row);
            }
        }
        let values = take_rows(&entries.values, &rows)?;
        let options = self.storage.read().map.options().clone();
        let view = AxisView::with_all_axes(shape.len());
        let mut storage = DokStorage::from_slots(shape, places, &values, options)?;
        storage.map.set_parallel(self.storage.read().map.options().parallel);
        self.storage = Arc::new(super::SharedStorage::new(storage));
        self.view = view;
        Ok(())
    }
}
