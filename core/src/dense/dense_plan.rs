//! [`DensePlan`]: which bytes of a dense tensor hold values of a ragged array, and which hold padding.
//!
//! Each level of lists is one axis of the tensor. The children of a list are at the start of the
//! axis, or at its end with [`PaddingSide::Left`]. Children that do not fit are dropped, and the rest of
//! the axis becomes padding. Example: the rows `[[1, 2, 3], [4]]` and `[]` in a tensor of shape
//! `[2, 2, 2]`:
//! ```text
//! blocks[0] = 4 leaves   |      row 0      |      row 1      |
//! blocks[1] = 2 leaves   | list 0 | list 1 | padding padding |
//! blocks[2] = 1 leaf     | 1 | 2  | 4 | .  | . | .  | . | .  |    (the leaf 3 is dropped)
//! ```

use std::ops::Range;

use arrow::array::OffsetSizeTrait;
use rayon::prelude::*;

use super::PaddingSide;
use crate::array::{Layout, Offsets};

/// Number of bytes that one parallel task writes: few enough to divide long rows evenly among
/// threads, but so many that two tasks rarely write to the same huge page.
const GRAIN: usize = 1 << 20;

/// Writes a tensor range by range. Each byte belongs to exactly one range, either of values or of
/// padding.
pub(crate) trait DenseSink: Sync {
    /// Writes the leaves at indices `leaves` to `out`, which has exactly their size.
    fn values(&self, leaves: Range<usize>, out: &mut [u8]);

    fn padding(&self, out: &mut [u8]);

    /// Called with the bytes of whole rows, before `values` and `padding` write to these rows. Not
    /// called for a tensor without lists.
    fn begin(&self, _: &mut [u8]) {}
}

/// Describes where a dense tensor holds values: the layouts of all list levels, and the shape of the tensor.
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

struct PlanWriter<'a, S> {
    levels: Vec<LevelLayout<'a>>,
    plan: &'a DensePlan,
    sink: &'a S,
    parallel: bool,
}

impl DensePlan {
    /// Creates the plan of a tensor. `shape` is the number of rows, then one size per layout; `size` is the
    /// size of a leaf in bytes. The caller guarantees that the size of the tensor in bytes fits a `usize`.
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

    /// Returns whether the tensor has several levels of lists and more padding than values.
    pub(crate) fn is_sparse(&self) -> bool {
        let leaves = self.layouts.last().map_or(0, Layout::children);
        let size = self.blocks.last().copied().unwrap_or(1);
        self.layouts.len() > 1 && leaves.saturating_mul(size) < self.bytes() / 2
    }

    /// Passes every byte of the tensor to `sink` once, in several threads if the tensor is large and `parallel`
    /// is set. `out` has at least [`bytes`](Self::bytes) bytes; any further bytes stay unchanged.
    pub(crate) fn walk_lists<S: DenseSink>(&self, sink: &S, out: &mut [u8], parallel: bool) {
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
        let writer = PlanWriter { levels, plan: self, sink, parallel: parallel && bytes > GRAIN };
        writer.write_elements(0, 0..self.shape[0], &mut out[..bytes]);
    }
}

impl<S: DenseSink> PlanWriter<'_, S> {
    fn write_elements(&self, axis: usize, range: Range<usize>, out: &mut [u8]) {
        let block = self.plan.blocks[axis];
        if axis == self.levels.len() {
            if !self.parallel || out.len() <= 4 * GRAIN {
                return self.sink.values(range, out);
            }
            // `GRAIN` is a multiple of every leaf size (1, 2, 4 or 8), so tasks split no leaf.
            let per_task = GRAIN / block;
            return out.par_chunks_mut(GRAIN).enumerate().for_each(|(task, out)| {
                let first = range.start + task * per_task;
                self.sink.values(first..first + out.len() / block, out);
            });
        }
        if self.parallel && out.len() > GRAIN {
            let per_task = (GRAIN / block).max(1);
            out.par_chunks_mut(per_task * block).enumerate().for_each(|(task, out)| {
                let first = range.start + task * per_task;
                self.begin_rows(axis, out);
                for (k, out) in out.chunks_exact_mut(block).enumerate() {
                    self.write_element(axis, first + k, out);
                }
            });
        } else {
            for (i, out) in range.zip(out.chunks_exact_mut(block)) {
                self.begin_rows(axis, out);
                self.write_element(axis, i, out);
            }
        }
    }

    fn begin_rows(&self, axis: usize, out: &mut [u8]) {
        if axis == 0 {
            self.sink.begin(out);
        }
    }

    fn write_element(&self, axis: usize, index: usize, out: &mut [u8]) {
        let (block, capacity) = (self.plan.blocks[axis + 1], self.plan.shape[axis + 1]);
        let list = self.levels[axis].range(index);
        let kept = list.len().min(capacity);
        match self.plan.side {
            PaddingSide::Right => {
                let (values, padding) = out.split_at_mut(kept * block);
                self.write_elements(axis + 1, list.start..list.start + kept, values);
                self.write_padding(padding);
            }
            PaddingSide::Left => {
                let (padding, values) = out.split_at_mut((capacity - kept) * block);
                self.write_padding(padding);
                self.write_elements(axis + 1, list.end - kept..list.end, values);
            }
        }
    }

    fn write_padding(&self, out: &mut [u8]) {
        if self.parallel && out.len() > 4 * GRAIN {
            out.par_chunks_mut(GRAIN).for_each(|out| self.sink.padding(out));
        } else if !out.is_empty() {
            self.sink.padding(out);
        }
    }
}
