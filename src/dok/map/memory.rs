//! Memory of a map: the words of the index table, and columns of rows that grow and are shared.

use std::sync::Arc;

use arrow::buffer::Buffer;
use bytes::Bytes;

use crate::dense::Block;
use crate::error::{Error, Result};

/// Words that are zero at first; large ones in huge pages.
#[derive(Debug)]
pub(super) struct Words {
    block: Block,
    len: usize,
}

impl Words {
    pub(super) fn zeroed(len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<u64>()).filter(|b| isize::try_from(*b).is_ok());
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!("an index table of {len} buckets cannot be addressed"))
        })?;
        Ok(Self { block: Block::zeroed(bytes)?, len })
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[u64] {
        // SAFETY: every pattern of 8 bytes is a u64; a block is aligned for one, so nothing is cut
        // off in front.
        let (_, words, _) = unsafe { self.block.as_slice().align_to::<u64>() };
        &words[..self.len]
    }

    #[inline(always)]
    pub(super) fn as_mut_slice(&mut self) -> &mut [u64] {
        // SAFETY: as above.
        let (_, words, _) = unsafe { self.block.as_mut_slice().align_to_mut::<u64>() };
        &mut words[..self.len]
    }

    pub(super) fn bytes(&self) -> usize {
        self.block.as_slice().len()
    }
}

/// Rows one after the other. What was handed out by [`share`](Self::share) stays as it was: the first
/// write after it copies.
#[derive(Clone, Debug)]
pub(super) struct Column {
    block: Arc<Block>,
    len: usize,
}

#[derive(Debug)]
struct Shared(Arc<Block>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Column {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { block: Arc::new(Block::zeroed(0)?), len: 0 })
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.block.as_slice()[..self.len]
    }

    /// The rows without a copy.
    pub(super) fn share(&self) -> Buffer {
        Buffer::from(Bytes::from_owner(Shared(Arc::clone(&self.block))).slice(..self.len))
    }

    pub(super) fn capacity(&self) -> usize {
        self.block.as_slice().len()
    }

    fn move_to(&mut self, capacity: usize) -> Result<()> {
        let mut block = Block::zeroed(capacity)?;
        block.as_mut_slice()[..self.len].copy_from_slice(self.as_slice());
        self.block = Arc::new(block);
        Ok(())
    }

    /// Room for `bytes` in all, exactly where it has to be made.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.capacity() < bytes { self.move_to(bytes) } else { Ok(()) }
    }

    /// The rows, to be written to.
    pub(super) fn as_mut_slice(&mut self) -> Result<&mut [u8]> {
        if Arc::get_mut(&mut self.block).is_none() {
            self.move_to(self.capacity())?;
        }
        match Arc::get_mut(&mut self.block) {
            Some(block) => Ok(&mut block.as_mut_slice()[..self.len]),
            // It was just made, and nobody else has it.
            None => Err(Error::invalid("a column in use")),
        }
    }

    /// Makes it `bytes` long, with room to grow, and gives all of it; what is new may hold anything.
    pub(super) fn resize(&mut self, bytes: usize) -> Result<&mut [u8]> {
        self.make_room(bytes)?;
        self.len = bytes;
        self.as_mut_slice()
    }

    /// Room for `bytes` in all that nobody else looks at: [`resize`](Self::resize) to as many asks for no
    /// memory after it.
    pub(super) fn make_room(&mut self, bytes: usize) -> Result<()> {
        if self.capacity() < bytes {
            // Twice as large, so that a row is moved once or twice in all.
            self.move_to(bytes.max(self.capacity().saturating_mul(2)))?;
        }
        self.as_mut_slice().map(|_| ())
    }

    /// Forgets the rows from `bytes` on.
    pub(super) fn truncate(&mut self, bytes: usize) {
        self.len = self.len.min(bytes);
    }

    /// No more memory than there are rows.
    pub(super) fn shrink(&mut self) -> Result<()> {
        let spare = self.capacity() - self.len;
        // Large blocks are whole huge pages.
        if spare > self.capacity() / 16 { self.move_to(self.len) } else { Ok(()) }
    }
}
