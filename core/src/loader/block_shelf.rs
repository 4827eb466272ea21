//! [`BlockShelf`]: a pool of memory blocks for the same tensor in successive batches.

use std::sync::{Arc, Weak};

use arrow::buffer::Buffer;

use super::padded_grid::{PaddedGrid, WriteSlots};
use crate::dense::padding::PaddingBytes;
use crate::dense::{FreeBlocks, MIN_MAPPED_BYTES, MemoryBlock};
use crate::error::Result;

/// Memory blocks of dropped tensors, for reuse. A block records where it has values, so that the
/// next tensor overwrites only these positions with padding.
#[derive(Debug)]
pub(super) struct BlockShelf {
    /// The tensor has one value per element of this axis.
    axis: usize,
    /// Number of bytes per element.
    size: usize,
    /// The value of padding. Only the first `size` bytes are used.
    fill: [u8; 8],
    keep: usize,
    /// Whether the shelf relies on unchanged padding in a block that is returned to it.
    trusts_padding: bool,
    free: FreeBlocks<BlockSlots>,
}

#[derive(Debug)]
struct ShelfBlock {
    block: MemoryBlock,
    slots: BlockSlots,
}

/// The positions of values and of padding in a block.
#[derive(Debug, Default)]
struct BlockSlots {
    /// The first `padded` bytes are padding, except where `written` has values.
    padded: usize,
    written: Option<Arc<PaddedGrid>>,
}

impl BlockShelf {
    pub(super) fn new(
        axis: usize,
        size: usize,
        fill: [u8; 8],
        keep: usize,
        trusts_padding: bool,
    ) -> Arc<Self> {
        Arc::new(Self { axis, size, fill, keep, trusts_padding, free: FreeBlocks::default() })
    }

    /// Takes a free block of at least `len` bytes, with unspecified content. If there is none,
    /// allocates a new block, with spare capacity if later batches may need more (up to `largest`
    /// bytes). Returns an error if the allocation fails.
    pub(super) fn take_block(self: &Arc<Self>, len: usize, largest: usize) -> Result<LentBlock> {
        let used = match self.free.take_smallest(|size| size >= len) {
            Some((block, slots)) => ShelfBlock { block, slots },
            None => {
                // No free block has `len` bytes. To limit the memory, free one of the smaller
                // blocks before a larger block is allocated.
                drop(self.free.take_last());
                let block = MemoryBlock::new_zeroed(choose_capacity(len, largest))?;
                ShelfBlock { block, slots: BlockSlots::default() }.mark_zeros(self)
            }
        };
        Ok(LentBlock { used: Some(used), len, dirty: true, home: Arc::downgrade(self) })
    }

    fn give_back(&self, mut used: ShelfBlock) {
        if !self.trusts_padding {
            used.slots = BlockSlots::default();
        }
        if let Some(mut free) = self.free.lock_blocks()
            && free.len() < self.keep
        {
            free.push((used.block, used.slots));
        }
    }
}

/// Returns the capacity of a new block for `len` bytes now and up to `largest` bytes later.
fn choose_capacity(len: usize, largest: usize) -> usize {
    // Untouched pages of a memory-mapped block take no memory, so the block may have `4 * len`
    // bytes.
    let most = largest.min(len.saturating_mul(4));
    let capacity = if most >= MIN_MAPPED_BYTES { most } else { most.min(len + len / 4) };
    capacity.max(len)
}

impl ShelfBlock {
    /// Marks a new block, which has only zeros: if the padding value is zero, records that the
    /// whole block is padding.
    fn mark_zeros(mut self, shelf: &BlockShelf) -> Self {
        if shelf.fill == [0; 8] {
            self.slots.padded = self.block.as_slice().len();
        }
        self
    }

    /// Pads the first `len` bytes, except where `next`, the grid of the next batch, has values. If
    /// `together` is set, the threads of the current pool share the work.
    fn clear_block(&mut self, shelf: &BlockShelf, len: usize, next: &PaddedGrid, together: bool) {
        let bytes = self.block.as_mut_slice();
        let mut padding = PaddingBytes::from_fill(&shelf.fill[..shelf.size]);
        if let Some(grid) =
            self.slots.written.take().filter(|grid| !grid.has_same_slots(next, shelf.axis))
        {
            let slots = grid.view_slots(shelf.axis, shelf.size);
            let written = slots.bytes();
            slots.write_all(&mut bytes[..written], &mut padding);
        }
        let padded = &mut self.slots.padded;
        if *padded < len {
            let unknown = &mut bytes[*padded..len];
            match together {
                true => padding.write_parallel(unknown),
                false => padding.write(unknown),
            }
            *padded = len;
        }
    }
}

impl WriteSlots for PaddingBytes {
    #[inline]
    fn put(&mut self, _: usize, cell: &mut [u8]) {
        self.write(cell);
    }
}

/// A memory block that a [`BlockShelf`] lends to one tensor. Drop returns it to the shelf, unless
/// it is `dirty`.
#[derive(Debug)]
pub(super) struct LentBlock {
    used: Option<ShelfBlock>,
    len: usize,
    /// Whether the positions of the values in the block are unknown. The old values of such a block
    /// cannot be overwritten with padding, so the block is freed instead of returned to the shelf.
    dirty: bool,
    home: Weak<BlockShelf>,
}

impl LentBlock {
    /// Returns the tensor's bytes: padding, except at the positions of `grid`, where the caller
    /// must write. If `together` is set, the threads of the current pool share the work.
    pub(super) fn clear_for_grid(&mut self, grid: &PaddedGrid, together: bool) -> &mut [u8] {
        match (&mut self.used, self.home.upgrade()) {
            (Some(used), Some(home)) => {
                used.clear_block(&home, self.len, grid, together);
                &mut used.block.as_mut_slice()[..self.len]
            }
            _ => &mut [],
        }
    }

    pub(super) fn as_uninit_slice(&mut self) -> &mut [u8] {
        match &mut self.used {
            Some(used) => &mut used.block.as_mut_slice()[..self.len],
            None => &mut [],
        }
    }

    /// Converts the block to a buffer that returns it to its [`BlockShelf`] on drop. The next batch
    /// overwrites the positions of `grid` with padding; `grid` is `None` for tensors without
    /// padding.
    pub(super) fn into_buffer(mut self, grid: Option<&Arc<PaddedGrid>>) -> Buffer {
        if let Some(used) = &mut self.used {
            used.slots.written = grid.cloned();
        }
        self.dirty = false;
        let len = self.len;
        Buffer::from(bytes::Bytes::from_owner(self).slice(..len))
    }
}

impl AsRef<[u8]> for LentBlock {
    fn as_ref(&self) -> &[u8] {
        self.used.as_ref().map_or(&[], |used| &used.block.as_slice()[..self.len])
    }
}

impl Drop for LentBlock {
    fn drop(&mut self) {
        if let (false, Some(used), Some(home)) = (self.dirty, self.used.take(), self.home.upgrade())
        {
            home.give_back(used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_to_grow_costs_no_memory() {
        const MB: usize = 1 << 20;
        // A memory-mapped block has four times the requested length, but not more than the largest
        // length.
        assert_eq!(choose_capacity(2 * MB, usize::MAX), 8 * MB);
        assert_eq!(choose_capacity(2 * MB, 5 * MB), 5 * MB);
        assert_eq!(choose_capacity(MB, usize::MAX), 4 * MB);
        // A block on the heap, whose memory is committed at once, has a quarter more than
        // requested.
        assert_eq!(choose_capacity(1000, usize::MAX), 1250);
        assert_eq!(choose_capacity(1000, 1100), 1100);
        assert_eq!(choose_capacity(2 * MB, 3 * MB), 2 * MB + MB / 2);
        assert_eq!(choose_capacity(1000, 10), 1000);
        assert_eq!(choose_capacity(usize::MAX, usize::MAX), usize::MAX);
        assert_eq!(choose_capacity(0, 10), 0);
    }
}
