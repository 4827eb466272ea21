//! [`Grid`]: the lists of one batch laid over padded tensors.

use std::ops::Range;

use super::frame::Frame;
use crate::dense::{Side, Size};

/// Offsets and sizes of all axes: with them, where the values of every tensor of a batch go. Kept
/// beside used memory, it says which places are to be cleared.
#[derive(Debug)]
pub(super) struct Grid {
    /// Per axis from 1, over the elements of the batch.
    offsets: Vec<Vec<u32>>,
    /// Items, then the size of each axis.
    shape: Vec<usize>,
    side: Side,
}

/// Writes what stands in one list.
pub(super) trait Put {
    /// `cell` is the room of the values from `first` on (counted over the batch), exactly.
    fn put(&mut self, first: usize, cell: &mut [u8]);
}

impl Grid {
    /// Takes the offsets out of a frame. `sizes` as in
    /// [`LoaderOptions::sizes`](super::LoaderOptions::sizes).
    pub(super) fn new(frame: &mut Frame, sizes: &[Size], side: Side) -> Self {
        let mut shape = vec![frame.items()];
        for axis in 1..=frame.offsets.len() {
            shape.push(match sizes.get(axis - 1).copied().unwrap_or_default() {
                Size::Longest => frame.longest(axis),
                Size::AtMost(n) => frame.longest(axis).min(n),
                Size::Exactly(n) => n,
            });
        }
        Self { offsets: std::mem::take(&mut frame.offsets), shape, side }
    }

    /// Shape of a tensor of an axis.
    pub(super) fn shape(&self, axis: usize) -> &[usize] {
        &self.shape[..=axis]
    }

    /// Elements that a tensor of an axis has room for and that are there: those of lists that are
    /// not cut.
    pub(super) fn occupied(&self, axis: usize) -> usize {
        self.kept(1, axis, 0..self.shape[0])
    }

    fn kept(&self, level: usize, axis: usize, elements: Range<usize>) -> usize {
        if level > axis {
            return elements.len();
        }
        let (offsets, room) = (&self.offsets[level - 1], self.shape[level]);
        let whole = offsets[elements.start] as usize..offsets[elements.end] as usize;
        let cut = |list: &[u32]| (list[1] - list[0]) as usize > room;
        let lists = &offsets[elements.start..=elements.end];
        if !lists.windows(2).any(cut) {
            return self.kept(level + 1, axis, whole);
        }
        elements.map(|i| self.kept(level + 1, axis, self.children(level, i))).sum()
    }

    /// Elements of axis `level` that list `i` keeps.
    fn children(&self, level: usize, i: usize) -> Range<usize> {
        let offsets = &self.offsets[level - 1];
        let (start, end) = (offsets[i] as usize, offsets[i + 1] as usize);
        let kept = (end - start).min(self.shape[level]);
        match self.side {
            Side::Right => start..start + kept,
            Side::Left => end - kept..end,
        }
    }

    /// Whether tensors of an axis have their values in the same places.
    pub(super) fn same_places(&self, other: &Self, axis: usize) -> bool {
        self.shape[..=axis] == other.shape[..=axis]
            && self.side == other.side
            && self.offsets[..axis] == other.offsets[..axis]
    }

    /// The places of one tensor, of elements of `size` bytes on `axis`.
    pub(super) fn places(&self, axis: usize, size: usize) -> Places<'_> {
        let mut blocks = vec![size; axis + 1];
        for i in (0..axis).rev() {
            // Can only saturate beside an axis of size 0, where nothing is written.
            blocks[i] = blocks[i + 1].saturating_mul(self.shape[i + 1]);
        }
        Places { grid: self, blocks }
    }
}

/// Where values go in one tensor.
pub(super) struct Places<'a> {
    grid: &'a Grid,
    /// Bytes of one element of each axis.
    blocks: Vec<usize>,
}

impl Places<'_> {
    /// Sends every list of an item to `put`, with its place in the tensor's bytes.
    pub(super) fn item<P: Put>(&self, item: usize, out: &mut [u8], put: &mut P) {
        self.elements(0, item..item + 1, out, put);
    }

    /// The same for all items.
    pub(super) fn all<P: Put>(&self, out: &mut [u8], put: &mut P) {
        self.elements(0, 0..self.grid.shape[0], out, put);
    }

    /// Bytes of one item.
    pub(super) fn item_bytes(&self) -> usize {
        let shape = self.grid.shape(self.blocks.len() - 1);
        if shape.contains(&0) { 0 } else { self.blocks[0] }
    }

    /// Bytes of the tensor.
    pub(super) fn bytes(&self) -> usize {
        self.item_bytes() * self.grid.shape[0]
    }

    /// Consecutive elements of axis `level`, which `out` is exactly long enough for.
    fn elements<P: Put>(&self, level: usize, elements: Range<usize>, out: &mut [u8], put: &mut P) {
        if out.is_empty() {
            return;
        }
        if level + 1 == self.blocks.len() {
            return put.put(elements.start, out);
        }
        let (block, child) = (self.blocks[level], self.blocks[level + 1]);
        let offsets = &self.grid.offsets[level][elements.start..=elements.end];
        let room = self.grid.shape[level + 1];
        let innermost = level + 2 == self.blocks.len();
        // Where the children of a list go, in its block, and the first of them.
        let place = |[start, end]: [u32; 2]| {
            let (start, end) = (start as usize, end as usize);
            let kept = (end - start).min(room);
            match self.grid.side {
                Side::Right => (start, 0..kept * child),
                Side::Left => (end - kept, (room - kept) * child..room * child),
            }
        };
        if !innermost {
            for (list, cell) in offsets.array_windows().zip(out.chunks_exact_mut(block)) {
                let (first, values) = place(*list);
                let kept = values.len() / child.max(1);
                self.elements(level + 1, first..first + kept, &mut cell[values], put);
            }
            return;
        }
        let mut ahead = offsets.array_windows().zip((0..).step_by(block)).skip(AHEAD);
        for (list, at) in offsets.array_windows().zip((0..).step_by(block)) {
            if let Some((list, at)) = ahead.next() {
                let values = place(*list).1;
                expect_write(out, at + values.start..at + values.end);
            }
            let (first, values) = place(*list);
            if !values.is_empty() {
                put.put(first, &mut out[at + values.start..at + values.end]);
            }
        }
    }
}

/// Lists before one is written to that its memory is asked for.
const AHEAD: usize = 4;

/// Tells the processor that these bytes are written to soon: lists lie far apart, in no pattern that
/// it would see by itself, and waiting for one after the other is most of the time they take.
#[inline(always)]
fn expect_write(bytes: &[u8], range: Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        const LINE: usize = 64;
        let first = bytes.as_ptr().wrapping_add(range.start);
        let lead = first.addr() % LINE;
        for at in (0..range.len() + lead).step_by(LINE) {
            // SAFETY: a prefetch reads and writes nothing, and any address will do.
            unsafe {
                _mm_prefetch::<_MM_HINT_ET0>(first.wrapping_add(at).wrapping_sub(lead).cast())
            };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, range);
}
