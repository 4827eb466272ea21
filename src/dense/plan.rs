//! [`Plan`]: where the values of a ragged array go in a dense block.

use std::ops::Range;

use arrow::array::OffsetSizeTrait;
use rayon::prelude::*;

use super::Side;
use crate::array::{Layout, Offsets};

/// Bytes of a block that one task writes: small enough to even out rows of different length, large
/// enough that two tasks rarely share a huge page.
const GRAIN: usize = 1 << 20;

/// What is written where: values to places of values, padding to the rest.
pub(crate) trait Sink: Sync {
    /// Writes the leaves `leaves` to `out`, which is exactly as long as they are.
    fn values(&self, leaves: Range<usize>, out: &mut [u8]);

    /// Writes padding.
    fn padding(&self, out: &mut [u8]);
}

/// Levels of lists laid over a dense block: at every level as many elements as the block has room
/// for, from the first on or up to the last.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    layouts: Vec<Layout>,
    shape: Vec<usize>,
    /// Bytes of one element of each axis, rows first; the last is the size of a leaf.
    blocks: Vec<usize>,
    side: Side,
}

/// Offsets as a typed slice, so that the inner loop does not ask for their kind.
enum Level<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
    Uniform(usize),
}

impl Level<'_> {
    fn range(&self, i: usize) -> Range<usize> {
        fn of<O: OffsetSizeTrait>(o: &[O], i: usize) -> Range<usize> {
            let base = o[0].as_usize();
            o[i].as_usize() - base..o[i + 1].as_usize() - base
        }
        match self {
            Self::I32(o) => of(o, i),
            Self::I64(o) => of(o, i),
            Self::Uniform(size) => i * size..(i + 1) * size,
        }
    }
}

struct Walk<'a, S> {
    levels: Vec<Level<'a>>,
    plan: &'a Plan,
    sink: &'a S,
    parallel: bool,
}

impl Plan {
    /// `shape` is the rows and one size per layout; its bytes must fit a `usize` (checked by the
    /// caller).
    pub(crate) fn new(layouts: Vec<Layout>, shape: Vec<usize>, size: usize, side: Side) -> Self {
        debug_assert_eq!(layouts.len() + 1, shape.len());
        let mut blocks = vec![size; shape.len()];
        for i in (1..shape.len()).rev() {
            // Can only saturate beside an axis of size 0, where nothing is written.
            blocks[i - 1] = blocks[i].saturating_mul(shape[i]);
        }
        Self { layouts, shape, blocks, side }
    }

    /// Bytes of the whole block.
    pub(crate) fn bytes(&self) -> usize {
        if self.shape.contains(&0) { 0 } else { self.shape[0] * self.blocks[0] }
    }

    /// Shape of the block.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Sends every byte of `out` to the sink once, values and padding; with `parallel`, large blocks
    /// on several threads.
    ///
    /// `out` is at least [`bytes`](Self::bytes) long; what is beyond stays.
    pub(crate) fn walk<S: Sink>(&self, sink: &S, out: &mut [u8], parallel: bool) {
        let bytes = self.bytes();
        if bytes == 0 {
            return;
        }
        let levels = self
            .layouts
            .iter()
            .map(|l| match l {
                Layout::Ragged(Offsets::I32(o)) => Level::I32(o),
                Layout::Ragged(Offsets::I64(o)) => Level::I64(o),
                Layout::Uniform { size, .. } => Level::Uniform(*size),
            })
            .collect();
        let walk = Walk { levels, plan: self, sink, parallel: parallel && bytes > GRAIN };
        walk.elements(0, 0..self.shape[0], &mut out[..bytes]);
    }
}

impl<S: Sink> Walk<'_, S> {
    /// Consecutive elements of an axis.
    fn elements(&self, axis: usize, range: Range<usize>, out: &mut [u8]) {
        let block = self.plan.blocks[axis];
        if axis == self.levels.len() {
            if !self.parallel || out.len() <= 4 * GRAIN {
                return self.sink.values(range, out);
            }
            // Leaves have 1, 2, 4 or 8 bytes, all of which divide the grain.
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
                for (k, out) in out.chunks_exact_mut(block).enumerate() {
                    self.element(axis, first + k, out);
                }
            });
        } else {
            for (i, out) in range.zip(out.chunks_exact_mut(block)) {
                self.element(axis, i, out);
            }
        }
    }

    /// One element: its list's children and the padding beside them.
    fn element(&self, axis: usize, index: usize, out: &mut [u8]) {
        let (block, room) = (self.plan.blocks[axis + 1], self.plan.shape[axis + 1]);
        let list = self.levels[axis].range(index);
        let kept = list.len().min(room);
        match self.plan.side {
            Side::Right => {
                let (values, padding) = out.split_at_mut(kept * block);
                self.elements(axis + 1, list.start..list.start + kept, values);
                self.padding(padding);
            }
            Side::Left => {
                let (padding, values) = out.split_at_mut((room - kept) * block);
                self.padding(padding);
                self.elements(axis + 1, list.end - kept..list.end, values);
            }
        }
    }

    fn padding(&self, out: &mut [u8]) {
        if self.parallel && out.len() > 4 * GRAIN {
            out.par_chunks_mut(GRAIN).for_each(|out| self.sink.padding(out));
        } else if !out.is_empty() {
            self.sink.padding(out);
        }
    }
}
