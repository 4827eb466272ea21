//! Memory of a map: words of the index table, and growable buffers of rows that tensors can share.

use std::sync::Arc;

use arrow::buffer::Buffer;
use bytes::Bytes;

use crate::dense::MemoryBlock;
use crate::error::{Error, Result};

/// The 64-bit words of the index table, one per bucket, initially zero. Large tables use huge
/// pages.
#[derive(Debug)]
pub(super) struct TableWords {
    block: MemoryBlock,
    len: usize,
}

impl TableWords {
    pub(super) fn new_zeroed(len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<u64>()).filter(|b| isize::try_from(*b).is_ok());
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!(
                "an index table of {len} buckets exceeds the address space; reserve capacity for fewer keys, or give a smaller n_buckets"
            ))
        })?;
        Ok(Self { block: MemoryBlock::new_zeroed(bytes)?, len })
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[u64] {
        // Blocks are aligned for u64, so there are no bytes before the first word.
        let (_, words, _) = bytemuck::pod_align_to::<u8, u64>(self.block.as_slice());
        &words[..self.len]
    }

    #[inline(always)]
    pub(super) fn as_mut_slice(&mut self) -> &mut [u64] {
        let (_, words, _) = bytemuck::pod_align_to_mut::<u8, u64>(self.block.as_mut_slice());
        &mut words[..self.len]
    }

    pub(super) fn bytes(&self) -> usize {
        self.block.as_slice().len()
    }
}

/// The rows of all keys, or of all values, of a map. A write copies the rows if a tensor shares
/// them ([`share_buffer`](Self::share_buffer)).
#[derive(Clone, Debug)]
pub(super) struct RowBuffer {
    block: Arc<MemoryBlock>,
    len: usize,
}

#[derive(Debug)]
struct SharedBlock(Arc<MemoryBlock>);

impl AsRef<[u8]> for SharedBlock {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl RowBuffer {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { block: Arc::new(MemoryBlock::new_zeroed(0)?), len: 0 })
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.block.as_slice()[..self.len]
    }

    pub(super) fn share_buffer(&self) -> Buffer {
        Buffer::from(Bytes::from_owner(SharedBlock(Arc::clone(&self.block))).slice(..self.len))
    }

    pub(super) fn capacity(&self) -> usize {
        self.block.as_slice().len()
    }

    fn move_to(&mut self, capacity: usize) -> Result<()> {
        let mut block = MemoryBlock::new_zeroed(capacity)?;
        block.as_mut_slice()[..self.len].copy_from_slice(self.as_slice());
        self.block = Arc::new(block);
        Ok(())
    }

    /// Ensures a capacity of `bytes`, and allocates exactly that much if needed.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.capacity() < bytes { self.move_to(bytes) } else { Ok(()) }
    }

    /// Returns the rows for writing; copies them first if a shared buffer refers to them.
    pub(super) fn as_mut_slice(&mut self) -> Result<&mut [u8]> {
        if Arc::get_mut(&mut self.block).is_none() {
            self.move_to(self.capacity())?;
        }
        match Arc::get_mut(&mut self.block) {
            Some(block) => Ok(&mut block.as_mut_slice()[..self.len]),
            // This cannot happen: `move_to` has just allocated a block that is not shared.
            None => Err(Error::invalid(
                "internal error: the rows of a map are shared right after they were copied; please report it",
            )),
        }
    }

    /// Sets the length to `bytes` and returns all rows; the contents of new rows are unspecified.
    pub(super) fn resize(&mut self, bytes: usize) -> Result<&mut [u8]> {
        self.reserve_unshared(bytes)?;
        self.len = bytes;
        self.as_mut_slice()
    }

    /// Ensures a capacity of `bytes`, and copies the rows if a tensor shares them. A later
    /// [`resize`](Self::resize) to at most `bytes` then does not allocate.
    pub(super) fn reserve_unshared(&mut self, bytes: usize) -> Result<()> {
        if self.capacity() < bytes {
            // At least double the capacity, so that repeated growth moves each row once or twice on
            // average.
            self.move_to(bytes.max(self.capacity().saturating_mul(2)))?;
        }
        self.as_mut_slice().map(|_| ())
    }

    pub(super) fn truncate(&mut self, bytes: usize) {
        self.len = self.len.min(bytes);
    }

    pub(super) fn shrink_to_len(&mut self) -> Result<()> {
        let spare = self.capacity() - self.len;
        // Blocks are whole huge pages, so some capacity may be spare: move the rows only if more
        // than 1/16 of the capacity is spare.
        if spare > self.capacity() / 16 { self.move_to(self.len) } else { Ok(()) }
    }
}
