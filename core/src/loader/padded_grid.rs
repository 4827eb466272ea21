//! [`PaddedGrid`]: which positions of padded tensors hold values of a batch, and which hold padding.

use std::ops::Range;

use super::batch_frame::BatchFrame;
use crate::array::prefetch::prefetch_for_write;
use crate::dense::{AxisSize, PaddingSide};

/// Offsets and sizes of all axes of a batch, which determine where a padded tensor holds values. A
/// memory block keeps the grid of its last batch, to overwrite the old values with padding.
///
/// The lists `[[1, 2], [], [3]]` of axis 1 in a tensor of shape `[3, 2]`, padded on the right:
///
/// ```text
/// offsets  0     2     2     3    list i holds the elements offsets[i]..offsets[i + 1]
/// tensor   | 1 2 | . . | 3 . |    list i starts at position i * shape[1]; a dot is padding
/// ```
#[derive(Debug)]
pub(super) struct PaddedGrid {
    /// For each axis from axis 1 on: the offsets of its lists in the batch. The first offset is 0.
    offsets: Vec<Vec<u32>>,
    /// Number of items, then the size of each axis.
    shape: Vec<usize>,
    side: PaddingSide,
}

pub(super) trait WriteSlots {
    /// Fills `cell`, a range of bytes of a tensor, with consecutive values. The first value has the
    /// index `first` among the values of the batch.
    fn put(&mut self, first: usize, cell: &mut [u8]);
}

impl PaddedGrid {
    /// Builds the grid of a batch and moves the offsets of `frame` into it. `sizes` is the option
    /// [`sizes`](super::LoaderOptions::sizes) of the loader.
    pub(super) fn new(frame: &mut BatchFrame, sizes: &[AxisSize], side: PaddingSide) -> Self {
        let mut shape = vec![frame.items()];
        for axis in 1..=frame.offsets.len() {
            shape.push(match sizes.get(axis - 1).copied().unwrap_or_default() {
                AxisSize::Longest => frame.find_longest_list(axis),
                AxisSize::AtMost(n) => frame.find_longest_list(axis).min(n),
                AxisSize::Exactly(n) => n,
            });
        }
        Self { offsets: std::mem::take(&mut frame.offsets), shape, side }
    }

    pub(super) fn shape(&self, axis: usize) -> &[usize] {
        &self.shape[..=axis]
    }

    /// Returns the number of values, without padding, that a tensor on axis `axis` has after
    /// truncation.
    pub(super) fn count_occupied(&self, axis: usize) -> usize {
        self.count_retained(1, axis, 0..self.shape[0])
    }

    fn count_retained(&self, level: usize, axis: usize, elements: Range<usize>) -> usize {
        if level > axis {
            return elements.len();
        }
        let (offsets, size) = (&self.offsets[level - 1], self.shape[level]);
        let whole = offsets[elements.start] as usize..offsets[elements.end] as usize;
        let cut = |list: &[u32]| (list[1] - list[0]) as usize > size;
        let lists = &offsets[elements.start..=elements.end];
        if !lists.windows(2).any(cut) {
            return self.count_retained(level + 1, axis, whole);
        }
        elements
            .map(|i| self.count_retained(level + 1, axis, self.find_retained_children(level, i)))
            .sum()
    }

    /// Returns the elements that list `i` of axis `level` keeps after truncation, as indices in the
    /// batch.
    fn find_retained_children(&self, level: usize, i: usize) -> Range<usize> {
        let offsets = &self.offsets[level - 1];
        let (start, end) = (offsets[i] as usize, offsets[i + 1] as usize);
        let kept = (end - start).min(self.shape[level]);
        match self.side {
            PaddingSide::Right => start..start + kept,
            PaddingSide::Left => end - kept..end,
        }
    }

    /// Returns whether tensors on axis `axis` have values and padding at the same positions in both
    /// grids.
    pub(super) fn has_same_slots(&self, other: &Self, axis: usize) -> bool {
        self.shape[..=axis] == other.shape[..=axis]
            && self.side == other.side
            && self.offsets[..axis] == other.offsets[..axis]
    }

    pub(super) fn view_slots(&self, axis: usize, size: usize) -> GridSlots<'_> {
        let mut blocks = vec![size; axis + 1];
        for i in (0..axis).rev() {
            // The caller checked that the number of bytes of the tensor does not overflow. This
            // product can therefore overflow only if another axis has the size 0, and then the
            // tensor has no bytes.
            blocks[i] = blocks[i + 1].saturating_mul(self.shape[i + 1]);
        }
        GridSlots { grid: self, blocks }
    }
}

pub(super) struct GridSlots<'a> {
    grid: &'a PaddedGrid,
    /// `blocks[d]` is the size in bytes of one element of axis `d` in the tensor, including
    /// padding.
    blocks: Vec<usize>,
}

impl GridSlots<'_> {
    /// Calls `put` for each innermost list of an item, with the bytes of `out` for its values.
    pub(super) fn write_item<P: WriteSlots>(&self, item: usize, out: &mut [u8], put: &mut P) {
        self.write_elements(0, item..item + 1, out, put);
    }

    pub(super) fn write_all<P: WriteSlots>(&self, out: &mut [u8], put: &mut P) {
        self.write_elements(0, 0..self.grid.shape[0], out, put);
    }

    pub(super) fn item_bytes(&self) -> usize {
        let shape = self.grid.shape(self.blocks.len() - 1);
        if shape.contains(&0) { 0 } else { self.blocks[0] }
    }

    pub(super) fn bytes(&self) -> usize {
        self.item_bytes() * self.grid.shape[0]
    }

    /// Writes consecutive elements of axis `level` to `out`, which has exactly the bytes of these
    /// elements.
    fn write_elements<P: WriteSlots>(
        &self,
        level: usize,
        elements: Range<usize>,
        out: &mut [u8],
        put: &mut P,
    ) {
        if out.is_empty() {
            return;
        }
        if level + 1 == self.blocks.len() {
            return put.put(elements.start, out);
        }
        let (block, child) = (self.blocks[level], self.blocks[level + 1]);
        let offsets = &self.grid.offsets[level][elements.start..=elements.end];
        let size = self.grid.shape[level + 1];
        let innermost = level + 2 == self.blocks.len();
        // Returns the index of the first element that a list keeps after truncation, and the byte
        // range of the kept elements within the padded slot of the list.
        let locate = |[start, end]: [u32; 2]| {
            let (start, end) = (start as usize, end as usize);
            let kept = (end - start).min(size);
            match self.grid.side {
                PaddingSide::Right => (start, 0..kept * child),
                PaddingSide::Left => (end - kept, (size - kept) * child..size * child),
            }
        };
        if !innermost {
            for (list, cell) in offsets.array_windows().zip(out.chunks_exact_mut(block)) {
                let (first, values) = locate(*list);
                let kept = values.len() / child.max(1);
                self.write_elements(level + 1, first..first + kept, &mut cell[values], put);
            }
            return;
        }
        let mut ahead = offsets.array_windows().zip((0..).step_by(block)).skip(AHEAD);
        for (list, at) in offsets.array_windows().zip((0..).step_by(block)) {
            if let Some((list, at)) = ahead.next() {
                let values = locate(*list).1;
                prefetch_for_write(out, at + values.start..at + values.end);
            }
            let (first, values) = locate(*list);
            if !values.is_empty() {
                put.put(first, &mut out[at + values.start..at + values.end]);
            }
        }
    }
}

/// While list `i` is written, the memory for list `i + AHEAD` is prefetched into the CPU cache.
const AHEAD: usize = 4;
