//! Views of sparse tensors: a view selects and orders axes and coordinates of the stored tensor,
//! and shares its entries.

use std::sync::Arc;

use super::DokTensor;
use super::axis_view::AxisView;
use crate::error::{Error, Result};
use crate::index::resolve_position;

impl DokTensor {
    fn with_view(&self, view: AxisView) -> Self {
        Self { storage: Arc::clone(&self.storage), view, limit: self.limit }
    }

    /// Returns another view of the same tensor.
    ///
    /// Both views share the entries.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// let mut view = t.view();
    /// view.set_at(&[0, 0], 3)?;
    /// assert_eq!(t.nnz()?, 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn view(&self) -> Self {
        self.with_view(self.view.clone())
    }

    /// Returns a view with two axes swapped.
    ///
    /// Negative axes count from the end.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::new([3, 4], DType::I64)?;
    /// let mut flipped = t.transpose(0, -1)?;
    /// flipped.set_at(&[3, 0], 7)?;
    /// assert_eq!((flipped.shape(), t.at(&[0, 3])?.to_string().as_str()), (vec![4, 3], "7"));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an axis does not exist.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Self> {
        let (a, b) = (self.resolve_axis(a)?, self.resolve_axis(b)?);
        let mut view = self.view.clone();
        view.axes.swap(a, b);
        Ok(self.with_view(view))
    }

    /// Returns a view with permuted axes: axis `k` of the view is axis `order[k]` of this tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.permute(&[1, 0])?.at(&[1, 0])?.to_f64()?, 5.0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `order` does not list every axis exactly once.
    pub fn permute(&self, order: &[i64]) -> Result<Self> {
        let seen = self.flag_axes(Some(order))?;
        if seen.iter().any(|s| !s) {
            return Err(Error::invalid(format!(
                "the order {order:?} does not list every axis of the tensor exactly once; list each of the {} axes once",
                self.ndim()
            )));
        }
        let mut view = self.view.clone();
        let axes = order.iter().map(|a| Ok(self.view.axes[self.resolve_axis(*a)?].clone()));
        view.axes = axes.collect::<Result<_>>()?;
        Ok(self.with_view(view))
    }

    /// Returns a view of a matrix with rows and columns swapped.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.t()?.at(&[1, 0])?.to_f64()?, 5.0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor does not have two axes; use [`permute`](Self::permute) then.
    pub fn t(&self) -> Result<Self> {
        if self.ndim() != 2 {
            return Err(Error::invalid(format!(
                "t() takes a tensor of 2 axes, but the number of axes of this tensor is {}; use permute",
                self.ndim()
            )));
        }
        self.transpose(0, 1)
    }

    /// Returns a view of the elements at coordinate `index` of an axis; the view does not have this
    /// axis.
    ///
    /// A row of a matrix is `select(0, row)`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.select(1, -1)?.to_dense()?.as_slice::<i32>()?, [5, 7]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the axis or the coordinate does not exist.
    pub fn select(&self, axis: i64, index: i64) -> Result<Self> {
        let axis = self.resolve_axis(axis)?;
        let at = self.resolve_index(axis, index)?;
        let mut view = self.view.clone();
        let shown = view.axes.remove(axis);
        view.fixed
            .push((shown.of, shown.picks.map_or(at, |p| p[super::storage::to_coordinate(at)])));
        Ok(self.with_view(view))
    }

    /// Returns a view of the coordinates `index` of an axis, in any order.
    ///
    /// If `index` repeats a coordinate, a write at one of the repeats shows at all of them.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6])?)?;
    /// assert_eq!((t.t()?.shape(), t.permute(&[1, 0])?.shape()), (vec![3, 2], vec![3, 2]));
    /// assert_eq!(t.select(0, -1)?.to_dense()?.as_slice::<i32>()?, [4, 5, 6]);
    /// assert_eq!(t.index_select(1, &[2, 0])?.to_dense()?.as_slice::<i32>()?, [3, 1, 6, 4]);
    /// let mut view = t.view();
    /// view.set_at(&[0, 0], 9)?;
    /// assert_eq!(t.at(&[0, 0])?.to_string(), "9");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the axis or a coordinate does not exist.
    pub fn index_select(&self, axis: i64, index: &[i64]) -> Result<Self> {
        let axis = self.resolve_axis(axis)?;
        let mut view = self.view.clone();
        let shown = &mut view.axes[axis];
        let picked = |i: &i64| {
            let at = self.resolve_index(axis, *i)?;
            Ok(shown.picks.as_ref().map_or(at, |p| p[super::storage::to_coordinate(at)]))
        };
        let picks = index.iter().map(picked).collect::<Result<Arc<[u64]>>>()?;
        shown.picks = Some(picks);
        let view = self.with_view(view);
        view.num_elements()?;
        Ok(view)
    }

    fn resolve_index(&self, axis: usize, index: i64) -> Result<u64> {
        let size = self.shape()[axis];
        let at = resolve_position(index, size).ok_or(Error::OutOfRange { axis, index, size })?;
        Ok(at as u64)
    }
}
