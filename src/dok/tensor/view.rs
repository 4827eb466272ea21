//! Views: which axes of the storage a tensor shows, in which order, and what of them.

use std::sync::Arc;

use super::DokTensor;
use super::storage::Storage;
use crate::error::{Error, Result};
use crate::index::resolve;

/// One axis of a view.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The axis of the storage.
    pub(super) of: usize,
    /// What it shows of that axis; all of it when `None`.
    pub(super) picks: Option<Arc<[u64]>>,
}

#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) axes: Vec<Axis>,
    /// Axes of the storage that are not shown, and the coordinate there.
    pub(super) fixed: Vec<(usize, u64)>,
}

impl View {
    pub(super) fn whole(ndim: usize) -> Self {
        Self { axes: (0..ndim).map(|of| Axis { of, picks: None }).collect(), fixed: Vec::new() }
    }

    pub(super) fn ndim(&self) -> usize {
        self.axes.len()
    }

    pub(super) fn shape(&self, storage: &Storage) -> Vec<usize> {
        let size = |a: &Axis| a.picks.as_ref().map_or(storage.shape[a.of], |p| p.len());
        self.axes.iter().map(size).collect()
    }

    /// Whether every entry is shown, once.
    pub(super) fn is_permutation(&self) -> bool {
        self.fixed.is_empty() && self.axes.iter().all(|a| a.picks.is_none())
    }

    /// Whether it shows the storage as it is.
    pub(super) fn is_whole(&self) -> bool {
        self.is_permutation() && self.axes.iter().enumerate().all(|(i, a)| a.of == i)
    }

    /// Whether an entry may be shown in several places.
    pub(super) fn may_repeat(&self) -> bool {
        self.axes.iter().any(|a| a.picks.is_some())
    }
}

impl DokTensor {
    fn with_view(&self, view: View) -> Self {
        Self { storage: Arc::clone(&self.storage), view, limit: self.limit }
    }

    /// The same tensor once more, sharing the entries.
    pub fn view(&self) -> Self {
        self.with_view(self.view.clone())
    }

    /// A view with two axes swapped. Axes may be counted from the end.
    ///
    /// ```
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
    /// When there is no such axis.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Self> {
        let (a, b) = (self.axis(a)?, self.axis(b)?);
        let mut view = self.view.clone();
        view.axes.swap(a, b);
        Ok(self.with_view(view))
    }

    /// As [`transpose`](Self::transpose), of this tensor itself.
    ///
    /// # Errors
    /// As [`transpose`](Self::transpose).
    pub fn transpose_in_place(&mut self, a: i64, b: i64) -> Result<()> {
        *self = self.transpose(a, b)?;
        Ok(())
    }

    /// A view with the axes in another order: axis `k` of it is axis `order[k]` of this tensor.
    ///
    /// # Errors
    /// When some axis is not there exactly once.
    pub fn permute(&self, order: &[i64]) -> Result<Self> {
        let seen = self.axes(Some(order))?;
        if seen.iter().any(|s| !s) {
            return Err(Error::invalid(format!(
                "the order {order:?} has not all of the {} axes",
                self.ndim()
            )));
        }
        let mut view = self.view.clone();
        let axes = order.iter().map(|a| Ok(self.view.axes[self.axis(*a)?].clone()));
        view.axes = axes.collect::<Result<_>>()?;
        Ok(self.with_view(view))
    }

    /// As [`permute`](Self::permute), of this tensor itself.
    ///
    /// # Errors
    /// As [`permute`](Self::permute).
    pub fn permute_in_place(&mut self, order: &[i64]) -> Result<()> {
        *self = self.permute(order)?;
        Ok(())
    }

    /// A view of a matrix with rows and columns swapped.
    ///
    /// # Errors
    /// When the tensor has not two axes; see [`permute`](Self::permute) then.
    pub fn t(&self) -> Result<Self> {
        if self.ndim() != 2 {
            return Err(Error::invalid(format!(
                "t() is for tensors of 2 axes, this has {}; see permute",
                self.ndim()
            )));
        }
        self.transpose(0, 1)
    }

    /// A view of one place along an axis, which goes.
    ///
    /// # Errors
    /// When there is no such axis or place.
    pub fn select(&self, axis: i64, index: i64) -> Result<Self> {
        let axis = self.axis(axis)?;
        let at = self.resolve(axis, index)?;
        let mut view = self.view.clone();
        let shown = view.axes.remove(axis);
        view.fixed.push((shown.of, shown.picks.map_or(at, |p| p[super::storage::coordinate(at)])));
        Ok(self.with_view(view))
    }

    /// A view of some places along an axis, in any order; some may be there several times. What is
    /// written to one of those is seen at all of them.
    ///
    /// # Errors
    /// When there is no such axis or place.
    pub fn index_select(&self, axis: i64, index: &[i64]) -> Result<Self> {
        let axis = self.axis(axis)?;
        let mut view = self.view.clone();
        let shown = &mut view.axes[axis];
        let picked = |i: &i64| {
            let at = self.resolve(axis, *i)?;
            Ok(shown.picks.as_ref().map_or(at, |p| p[super::storage::coordinate(at)]))
        };
        let picks = index.iter().map(picked).collect::<Result<Arc<[u64]>>>()?;
        shown.picks = Some(picks);
        let view = self.with_view(view);
        view.num_elements()?;
        Ok(view)
    }

    fn resolve(&self, axis: usize, index: i64) -> Result<u64> {
        let size = self.shape()[axis];
        let at = resolve(index, size).ok_or(Error::OutOfRange { axis, index, size })?;
        Ok(at as u64)
    }
}
