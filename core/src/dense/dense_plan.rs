//! [`DensePlan`]: which bytes of a dense tensor hold values of a ragged array, and which hold
//! padding.
//!
//! Each level of lists is one axis of the tensor. The children of a list are at the start of the
//! axis, or at its end with [`PaddingSide::Left`]. Children that do not fit are dropped, and the
//! rest of the axis becomes padding. Example: the rows `[[1, 2, 3], [4]]` and `[]` in a tensor of
//! shape `[2, 2, 2]`:
//! ```text
//! blocks[0] = 4 leaves   |      row 0      |      row 1      |
//! blocks[1] = 2 leaves   | list 0 | list 1 | padding padding |
//! blocks[2] = 1 leaf     | 1 | 2  | 4 | .  | . | .  | . | .  |    (the leaf 3 is dropped)
//! ```

use std::ops::Range;

use arrow::array::OffsetSizeTrait;
use rayon::prelude::*;

use super::PaddingSide;
use super::padding::{PaddingBytes, TASK_BYTES};
use crate::array::{Layout, Offsets};

/// Number of bytes of lists that are filled with padding before their values are written: few
/// enough to stay in the L1 cache until then, but so many that they are filled about as fast as
/// more bytes.
const FILL_BYTES: usize = 32 << 10;

/// Writes the values of a tensor, list by list.
pub(crate) trait DenseSink: Sync {
    /// Writes the leaves at indices `leaves` to `out`, which has exactly their size.
    fn values(&self, leaves: Range<usize>, out: &mut [u8]);

    /// Writes the leaves of several lists, each to its bytes, in ascending order. No list is empty.
    /// `lists` writes the padding of a list when it passes it, so it must be used up.
    fn write_lists<'o>(&self, lists: impl Iterator<Item = (Range<usize>, &'o mut [u8])>) {
        for (leaves, out) in lists {
            self.values(leaves, out);
        }
    }
}

/// Describes where a dense tensor holds values: the layouts of all list levels, and the shape of
/// the tensor.
#[derive(Clone, Debug)]
pub(crate) struct DensePlan {
    layouts: Vec<Layout>,
    shape: Vec<usize>,
    /// `blocks[k]` is the size in bytes of one element of axis `k`; the last entry is the size of a
    /// leaf.
    blocks: Vec<usize>,
    side: PaddingSide,
}

/// The lists of one level: offsets whose integer type is known, so that the inner loop need not
/// check it, or the one length that all lists have.
enum LevelLayout<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
    Uniform(usize),
}

impl LevelLayout<'_> {
    fn range(&self, i: usize) -> Range<usize> {
        fn find_child_range<O: OffsetSizeTrait>(o: &[O], i: usize) -> Range<usize> {
            let base = o[0].as_usize();
            o[i].as_usize() - base..o[i + 1].as_usize() - base
        }
        match self {
            Self::I32(o) => find_child_range(o, i),
            Self::I64(o) => find_child_range(o, i),
            Self::Uniform(size) => i * size..(i + 1) * size,
        }
    }
}

/// The bytes of each list of one level in the tensor.
#[derive(Clone, Copy)]
struct ListShape {
    /// Number of children for which a list has space.
    capacity: usize,
    /// Size of a child in bytes.
    child: usize,
    side: PaddingSide,
}

impl ListShape {
    /// Returns the children of a list that the tensor keeps, their bytes, and those of the padding.
    #[inline]
    fn split_list(
        self,
        list: Range<usize>,
        out: &mut [u8],
    ) -> (Range<usize>, &mut [u8], &mut [u8]) {
        let kept = list.len().min(self.capacity);
        match self.side {
            PaddingSide::Right => {
                let (values, padding) = out.split_at_mut(kept * self.child);
                (list.start..list.start + kept, values, padding)
            }
            PaddingSide::Left => {
                let (padding, values) = out.split_at_mut((self.capacity - kept) * self.child);
                (list.end - kept..list.end, values, padding)
            }
        }
    }
}

struct PlanWriter<'a, S> {
    levels: Vec<LevelLayout<'a>>,
    plan: &'a DensePlan,
    sink: &'a S,
    padding: PaddingBytes,
    parallel: bool,
}

impl DensePlan {
    /// Creates the plan of a tensor. `shape` is the number of rows, then one size per layout;
    /// `size` is the size of a leaf in bytes. The caller guarantees that the size of the tensor in
    /// bytes fits a `usize`.
    pub(crate) fn new(
        layouts: Vec<Layout>,
        shape: Vec<usize>,
        size: usize,
        side: PaddingSide,
    ) -> Self {
        debug_assert_eq!(layouts.len() + 1, shape.len());
        let mut blocks = vec![size; shape.len()];
        for i in (1..shape.len()).rev() {
            // The product exceeds a `usize` only if an axis has size 0; then nothing is written,
            // and the saturated product is not used.
            blocks[i - 1] = blocks[i].saturating_mul(shape[i]);
        }
        Self { layouts, shape, blocks, side }
    }

    pub(crate) fn bytes(&self) -> usize {
        if self.shape.contains(&0) { 0 } else { self.shape[0] * self.blocks[0] }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn list_shape(&self, axis: usize) -> ListShape {
        let (capacity, child) = (self.shape[axis + 1], self.blocks[axis + 1]);
        ListShape { capacity, child, side: self.side }
    }

    /// Returns whether the tensor has several levels of lists and more padding than values.
    pub(crate) fn is_sparse(&self) -> bool {
        let leaves = self.layouts.last().map_or(0, Layout::children);
        let size = self.blocks.last().copied().unwrap_or(1);
        self.layouts.len() > 1 && leaves.saturating_mul(size) < self.bytes() / 2
    }

    /// Writes every byte of the tensor: values with `sink`, and `padding`. Several threads write if
    /// the tensor is large and `parallel` is set. `out` has at least [`bytes`](Self::bytes) bytes;
    /// any further bytes stay unchanged.
    pub(crate) fn walk_lists<S: DenseSink>(
        &self,
        sink: &S,
        padding: PaddingBytes,
        out: &mut [u8],
        parallel: bool,
    ) {
        let bytes = self.bytes();
        if bytes == 0 {
            return;
        }
        let levels = self
            .layouts
            .iter()
            .map(|l| match l {
                Layout::Ragged(Offsets::I32(o)) => LevelLayout::I32(o),
                Layout::Ragged(Offsets::I64(o)) => LevelLayout::I64(o),
                Layout::Uniform { size, .. } => LevelLayout::Uniform(*size),
            })
            .collect();
        let parallel = parallel && bytes > TASK_BYTES;
        let writer = PlanWriter { levels, plan: self, sink, padding, parallel };
        writer.write_elements(0, 0..self.shape[0], &mut out[..bytes]);
    }
}

impl<S: DenseSink> PlanWriter<'_, S> {
    fn write_elements(&self, axis: usize, range: Range<usize>, out: &mut [u8]) {
        if axis == self.levels.len() {
            return self.write_leaves(range, out);
        }
        if self.parallel && out.len() > TASK_BYTES {
            let block = self.plan.blocks[axis];
            let per_task = (TASK_BYTES / block).max(1);
            out.par_chunks_mut(per_task * block).enumerate().for_each(|(task, out)| {
                let first = range.start + task * per_task;
                self.write_in_turn(axis, first..first + out.len() / block, out);
            });
        } else {
            self.write_in_turn(axis, range, out);
        }
    }

    fn write_leaves(&self, leaves: Range<usize>, out: &mut [u8]) {
        if !self.parallel || out.len() <= 4 * TASK_BYTES {
            return self.sink.values(leaves, out);
        }
        let leaf = self.plan.blocks[self.levels.len()];
        // `TASK_BYTES` is a multiple of every leaf size (1, 2, 4 or 8), so tasks split no leaf.
        let per_task = TASK_BYTES / leaf;
        out.par_chunks_mut(TASK_BYTES).enumerate().for_each(|(task, out)| {
            let first = leaves.start + task * per_task;
            self.sink.values(first..first + out.len() / leaf, out);
        });
    }

    fn write_in_turn(&self, axis: usize, elements: Range<usize>, out: &mut [u8]) {
        let block = self.plan.blocks[axis];
        // Threads share the work of a longer list.
        let is_short = !self.parallel || block <= 4 * TASK_BYTES;
        match &self.levels[axis] {
            LevelLayout::I32(o) if is_short && axis + 1 == self.levels.len() => {
                self.write_lists(o, elements, out);
            }
            LevelLayout::I64(o) if is_short && axis + 1 == self.levels.len() => {
                self.write_lists(o, elements, out);
            }
            _ => {
                for (i, out) in elements.zip(out.chunks_exact_mut(block)) {
                    self.write_element(axis, i, out);
                }
            }
        }
    }

    /// Writes innermost lists. `offsets` are those of all lists of the level.
    fn write_lists<O: OffsetSizeTrait>(&self, offsets: &[O], lists: Range<usize>, out: &mut [u8]) {
        let axis = self.levels.len() - 1;
        let (block, shape) = (self.plan.blocks[axis], self.plan.list_shape(axis));
        let base = offsets[0].as_usize();
        let mut first = lists.start;
        for group in out.chunks_mut((FILL_BYTES / block).max(1) * block) {
            let last = first + group.len() / block;
            self.padding.fill_ahead(group);
            let ends = offsets[first..=last].array_windows::<2>();
            let cells =
                ends.zip(group.chunks_exact_mut(block)).filter_map(|([start, end], cell)| {
                    let list = start.as_usize() - base..end.as_usize() - base;
                    let (leaves, values, padding) = shape.split_list(list, cell);
                    self.padding.write_in_group(padding);
                    (!leaves.is_empty()).then_some((leaves, values))
                });
            self.sink.write_lists(cells);
            first = last;
        }
    }

    fn write_element(&self, axis: usize, index: usize, out: &mut [u8]) {
        let list = self.levels[axis].range(index);
        let (kept, values, padding) = self.plan.list_shape(axis).split_list(list, out);
        match self.parallel {
            true => self.padding.write_parallel(padding),
            false => self.padding.write(padding),
        }
        self.write_elements(axis + 1, kept, values);
    }
}
