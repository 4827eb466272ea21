//! Other shapes: copies, and changing the size in place.

use std::sync::Arc;

use super::DokTensor;
use super::entries::{Entries, take};
use super::storage::{Storage, linear, linear_size, place, strides, unravel};
use super::view::View;
use crate::error::{Error, Result};

impl DokTensor {
    /// A copy in another shape with the same elements in row-major order; one size may be -1, which is
    /// what is left.
    ///
    /// ```
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
    /// When the shape has another number of elements, or several sizes are -1.
    pub fn reshape(&self, shape: &[i64]) -> Result<Self> {
        let elements = self.num_elements()?;
        let refused = || {
            Error::invalid(format!(
                "{elements} elements of shape {:?} do not fit the shape {shape:?}",
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
                    return Err(Error::invalid(format!("the shape {shape:?}; one size may be -1")));
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
        let shape: Vec<usize> = sizes.map(super::storage::coordinate).collect();
        if !self.view.is_whole() {
            return self.with_values(Entries { shape, ..self.entries()? });
        }
        // Places stay what they are.
        let storage = self.storage.read();
        linear_size(&shape)?;
        let map = storage.map.try_clone()?;
        let mut made = Self::with_storage(Storage { strides: strides(&shape), shape, map });
        made.limit = self.limit;
        Ok(made)
    }

    /// A copy with one axis.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn flatten(&self) -> Result<Self> {
        self.reshape(&[-1]).or_else(|_| self.reshape(&[0]))
    }

    /// Changes the sizes of the axes; entries outside go, the others keep their coordinates. -1, or a
    /// size that is left out at the end, keeps that of the axis.
    ///
    /// ```
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
    /// When there are more sizes than axes, the shape has more than 2^63 elements, or other views share
    /// the entries, which they would show in the wrong places (as numpy refuses it; clone first).
    pub fn resize(&mut self, sizes: &[i64]) -> Result<()> {
        let mut shape = self.shape();
        if sizes.len() > shape.len() {
            return Err(Error::invalid(format!(
                "{} sizes for a tensor of {} axes",
                sizes.len(),
                shape.len()
            )));
        }
        for (size, new) in shape.iter_mut().zip(sizes) {
            match usize::try_from(*new) {
                Ok(new) => *size = new,
                Err(_) if *new == -1 => {}
                Err(_) => return Err(Error::invalid(format!("a size of {new}"))),
            }
        }
        linear_size(&shape)?;
        if Arc::strong_count(&self.storage) > 1 {
            return Err(Error::invalid(
                "a tensor that shares its entries with views cannot be resized; clone it first",
            ));
        }
        let entries = self.entries()?;
        let (from, to) = (strides(&entries.shape), strides(&shape));
        let mut at = vec![0; shape.len()];
        let (mut places, mut rows) = (Vec::new(), Vec::new());
        for (row, entry) in (0u64..).zip(entries.places()?) {
            unravel(linear(*entry), &from, &mut at);
            if at.iter().zip(&shape).all(|(at, size)| *at < *size as u64) {
                places.push(place(at.iter().zip(&to).map(|(at, stride)| at * stride).sum()));
                rows.push(row);
            }
        }
        let values = take(&entries.values, &rows)?;
        let options = self.storage.read().map.options().clone();
        let view = View::whole(shape.len());
        let mut storage = Storage::with_entries(shape, places, &values, options)?;
        storage.map.set_parallel(self.storage.read().map.options().parallel);
        self.storage = Arc::new(super::Shared::new(storage));
        self.view = view;
        Ok(())
    }
}
