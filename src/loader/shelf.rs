//! [`Shelf`]: the memory of one tensor, batch after batch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow::buffer::Buffer;

use super::grid::{Grid, Put};
use crate::dense::{Block, MAPPED};
use crate::error::Result;

/// Blocks for the batches of one tensor. What a batch wrote is remembered with its block, so that
/// the next one clears those places and no others.
#[derive(Debug)]
pub(super) struct Shelf {
    /// Axis of the tensor, bytes of an element, and of an element of padding.
    axis: usize,
    size: usize,
    fill: [u8; 8],
    /// Most blocks kept.
    keep: usize,
    free: Mutex<Vec<Used>>,
}

#[derive(Debug)]
struct Used {
    block: Block,
    /// Bytes from the start that are padding, but for what was written.
    padded: usize,
    written: Option<Arc<Grid>>,
}

impl Shelf {
    pub(super) fn new(axis: usize, size: usize, fill: [u8; 8], keep: usize) -> Arc<Self> {
        Arc::new(Self { axis, size, fill, keep, free: Mutex::default() })
    }

    fn free(&self) -> MutexGuard<'_, Vec<Used>> {
        // The list is whole whatever a panicking thread did beside it.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `len` bytes of any content, from a block that batches of up to `largest` bytes can use.
    pub(super) fn take(self: &Arc<Self>, len: usize, largest: usize) -> Result<Lent> {
        let (fitting, outgrown) = {
            let mut free = self.free();
            // Of those that fit equally, the one used last: its pages are there.
            let sizes = free.iter().map(|u| u.block.as_slice().len()).enumerate().rev();
            let fitting = sizes.filter(|(_, n)| *n >= len).min_by_key(|(_, n)| *n).map(|(i, _)| i);
            match fitting {
                Some(i) => (Some(free.remove(i)), None),
                // One that is too small makes room for its successor.
                None => (None, free.pop()),
            }
        };
        drop(outgrown);
        let used = match fitting {
            Some(used) => used,
            None => {
                let block = Block::zeroed(room(len, largest))?;
                Used { block, padded: 0, written: None }.fresh(self)
            }
        };
        Ok(Lent { used: Some(used), len, dirty: true, home: Arc::downgrade(self) })
    }

    fn give_back(&self, used: Used) {
        let mut free = self.free();
        if free.len() < self.keep {
            free.push(used);
        }
    }
}

/// Bytes of a new block for `len` bytes now and up to `largest` later.
fn room(len: usize, largest: usize) -> usize {
    // Of mapped memory, address space alone: pages that no batch writes to are never there.
    let most = largest.min(len.saturating_mul(4));
    let room = if most >= MAPPED { most } else { most.min(len + len / 4) };
    room.max(len)
}

impl Used {
    /// A block of zeros.
    fn fresh(mut self, shelf: &Shelf) -> Self {
        if shelf.fill == [0; 8] {
            self.padded = self.block.as_slice().len();
        }
        self
    }

    /// Padding in the first `len` bytes, and wherever was padding; but not in the places of `next`
    /// where they are those that were written before.
    fn clear(&mut self, shelf: &Shelf, len: usize, next: &Grid) {
        let bytes = self.block.as_mut_slice();
        if let Some(grid) = self.written.take().filter(|grid| !grid.same_places(next, shelf.axis)) {
            let places = grid.places(shelf.axis, shelf.size);
            let written = places.bytes();
            places.all(&mut bytes[..written], &mut Fill::new(&shelf.fill[..shelf.size]));
        }
        if self.padded < len {
            Fill::new(&shelf.fill[..shelf.size]).put(0, &mut bytes[self.padded..len]);
            self.padded = len;
        }
    }
}

/// Writes padding.
#[derive(Clone, Copy)]
enum Fill {
    /// Bytes that are all the same.
    Byte(u8),
    Two([u8; 2]),
    Four([u8; 4]),
    Eight([u8; 8]),
}

impl Fill {
    /// From one element.
    fn new(element: &[u8]) -> Self {
        match element {
            [first, rest @ ..] if rest.iter().all(|b| b == first) => Self::Byte(*first),
            [a, b] => Self::Two([*a, *b]),
            [a, b, c, d] => Self::Four([*a, *b, *c, *d]),
            other => {
                // There are elements of 1, 2, 4 and 8 bytes.
                Self::Eight(other.first_chunk().copied().unwrap_or_default())
            }
        }
    }
}

impl Put for Fill {
    #[inline]
    fn put(&mut self, _: usize, cell: &mut [u8]) {
        match self {
            Self::Byte(b) => cell.fill(*b),
            Self::Two(element) => cell.as_chunks_mut().0.fill(*element),
            Self::Four(element) => cell.as_chunks_mut().0.fill(*element),
            Self::Eight(element) => cell.as_chunks_mut().0.fill(*element),
        }
    }
}

/// A block that is written to, or is part of a batch; goes back to its shelf when dropped.
#[derive(Debug)]
pub(super) struct Lent {
    used: Option<Used>,
    len: usize,
    /// Nobody said what was written: of no more use.
    dirty: bool,
    home: Weak<Shelf>,
}

impl Lent {
    /// All padding, but for the places of `grid`, which are to be written to.
    pub(super) fn padded(&mut self, grid: &Grid) -> &mut [u8] {
        match (&mut self.used, self.home.upgrade()) {
            (Some(used), Some(home)) => {
                used.clear(&home, self.len, grid);
                &mut used.block.as_mut_slice()[..self.len]
            }
            _ => &mut [],
        }
    }

    /// Of any content.
    pub(super) fn any(&mut self) -> &mut [u8] {
        match &mut self.used {
            Some(used) => &mut used.block.as_mut_slice()[..self.len],
            None => &mut [],
        }
    }

    /// As a buffer; whoever drops its last copy gives it back. What was written besides padding is
    /// in the places of `grid`; without one, the block must never be asked for padding.
    pub(super) fn into_buffer(mut self, grid: Option<&Arc<Grid>>) -> Buffer {
        if let Some(used) = &mut self.used {
            used.written = grid.cloned();
        }
        self.dirty = false;
        let len = self.len;
        Buffer::from(bytes::Bytes::from_owner(self).slice(..len))
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.used.as_ref().map_or(&[], |used| &used.block.as_slice()[..self.len])
    }
}

impl Drop for Lent {
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
    fn room_to_grow_costs_no_memory() {
        const MB: usize = 1 << 20;
        // Mapped: up to four times as much, or what is ever needed.
        assert_eq!(room(2 * MB, usize::MAX), 8 * MB);
        assert_eq!(room(2 * MB, 5 * MB), 5 * MB);
        assert_eq!(room(MB, usize::MAX), 4 * MB);
        // From the heap, where all of it is there at once.
        assert_eq!(room(1000, usize::MAX), 1250);
        assert_eq!(room(1000, 1100), 1100);
        assert_eq!(room(2 * MB, 3 * MB), 2 * MB + MB / 2);
        // Never less than asked for.
        assert_eq!(room(1000, 10), 1000);
        assert_eq!(room(usize::MAX, usize::MAX), usize::MAX);
        assert_eq!(room(0, 10), 0);
    }
}
