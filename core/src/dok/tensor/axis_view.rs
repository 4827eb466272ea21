//! Views of sparse tensors: which axes and coordinates of the stored tensor a view shows, and in
//! which order.

use std::sync::Arc;

use super::storage::DokStorage;

#[derive(Clone, Debug)]
pub(super) struct ViewAxis {
    pub(super) of: usize,
    /// The coordinates on axis `of` of the stored tensor that the view shows, in the order of the
    /// view; `None` if the view shows all coordinates in ascending order.
    pub(super) picks: Option<Arc<[u64]>>,
}

#[derive(Clone, Debug)]
pub(super) struct AxisView {
    pub(super) axes: Vec<ViewAxis>,
    /// Axes of the stored tensor that the view does not show, with the coordinate at which each is
    /// fixed.
    pub(super) fixed: Vec<(usize, u64)>,
}

impl AxisView {
    pub(super) fn with_all_axes(ndim: usize) -> Self {
        Self { axes: (0..ndim).map(|of| ViewAxis { of, picks: None }).collect(), fixed: Vec::new() }
    }

    pub(super) fn ndim(&self) -> usize {
        self.axes.len()
    }

    pub(super) fn shape(&self, storage: &DokStorage) -> Vec<usize> {
        let size = |a: &ViewAxis| a.picks.as_ref().map_or(storage.shape[a.of], |p| p.len());
        self.axes.iter().map(size).collect()
    }

    /// Returns whether the view shows the whole stored tensor, with the axes in any order.
    pub(super) fn is_permutation(&self) -> bool {
        self.fixed.is_empty() && self.axes.iter().all(|a| a.picks.is_none())
    }

    /// Returns whether the view shows the whole stored tensor, with the axes in their stored order.
    pub(super) fn is_whole(&self) -> bool {
        self.is_permutation() && self.axes.iter().enumerate().all(|(i, a)| a.of == i)
    }

    /// Returns whether the view may show an entry several times, because the coordinates of an axis
    /// were picked with [`index_select`](super::DokTensor::index_select).
    pub(super) fn may_repeat(&self) -> bool {
        self.axes.iter().any(|a| a.picks.is_some())
    }
}
