use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow::buffer::{Buffer, MutableBuffer};
use memmap2::{MmapMut, MmapOptions};

use super::plan::DensePlan;
use crate::error::{Error, Result};

/// Minimum size in bytes of a block with its own memory mapping (in huge pages if available).
pub(crate) const MAPPED: usize = 4 << 20;

/// Size of a huge page. Linux places mappings of a multiple of this size on huge-page boundaries.
const HUGE_PAGE: usize = 2 << 20;

#[derive(Debug)]
pub(crate) enum BlockContents {
    Zero,
    /// Zeros, except where an earlier tensor had values; the [`DensePlan`] describes where.
    Values(DensePlan),
    Unknown,
}

/// A block of memory, aligned for every element type.
#[derive(Debug)]
pub(crate) enum MemoryBlock {
    Heap(MutableBuffer),
    Mapped(MmapMut),
}

impl MemoryBlock {
    /// Allocates `bytes` zeros. Page faults are most of the cost of a padded tensor, so large blocks are
    /// mapped: huge pages cause 512 times fewer faults, and pages that hold only padding never fault.
    pub(crate) fn new_zeroed(bytes: usize) -> Result<Self> {
        if bytes < MAPPED {
            return Ok(Self::Heap(MutableBuffer::from_len_zeroed(bytes)));
        }
        let len = bytes.checked_next_multiple_of(HUGE_PAGE).unwrap_or(bytes);
        let map = MmapOptions::new().len(len).map_anon().map_err(|e| {
            Error::invalid(format!("cannot allocate {bytes} bytes for a dense tensor: {e}; convert fewer rows at a time"))
        })?;
        #[cfg(target_os = "linux")]
        {
            // If the advice fails, the mapping has small pages, which are slower but work.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(Self::Mapped(map))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Heap(b) => b.as_slice(),
            Self::Mapped(m) => m,
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(b) => b.as_slice_mut(),
            Self::Mapped(m) => m,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Memory {
    /// The memory; `None` after it was given back to the pool.
    block: Option<MemoryBlock>,
    len: usize,
    contents: BlockContents,
    pool: Weak<PoolState>,
}

impl Memory {
    pub(crate) fn new_zeroed(len: usize) -> Result<Self> {
        let block = Some(MemoryBlock::new_zeroed(len)?);
        Ok(Self { block, len, contents: BlockContents::Zero, pool: Weak::new() })
    }

    /// Returns the whole block, which may be longer than requested, and what it holds now. The contents
    /// count as [`BlockContents::Unknown`] until [`set_contents`](Self::set_contents) is called.
    pub(crate) fn take_contents(&mut self) -> (&mut [u8], BlockContents) {
        let contents = std::mem::replace(&mut self.contents, BlockContents::Unknown);
        let bytes = match &mut self.block {
            Some(b) => b.as_mut_slice(),
            None => &mut [],
        };
        (bytes, contents)
    }

    /// Stores what a block of a pool now holds, so that its next user knows which bytes to clear.
    pub(crate) fn set_contents(&mut self, contents: impl FnOnce() -> BlockContents) {
        if self.pool.strong_count() > 0 {
            self.contents = contents();
        }
    }

    /// Converts to an Arrow buffer. The block returns to its pool when the last clone is dropped.
    pub(crate) fn into_buffer(mut self) -> Buffer {
        if self.pool.strong_count() == 0
            && let Some(MemoryBlock::Heap(b)) =
                self.block.take_if(|b| matches!(b, MemoryBlock::Heap(_)))
        {
            return Buffer::from(b);
        }
        let len = self.len;
        Buffer::from(bytes::Bytes::from_owner(self).slice(..len))
    }
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |b| &b.as_slice()[..self.len])
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let (Some(pool), Some(block)) = (self.pool.upgrade(), self.block.take()) {
            let contents = std::mem::replace(&mut self.contents, BlockContents::Unknown);
            pool.give_back(block, contents);
        }
    }
}

#[derive(Debug)]
struct PoolState {
    keep: usize,
    free: Mutex<Vec<(MemoryBlock, BlockContents)>>,
}

impl PoolState {
    fn free(&self) -> MutexGuard<'_, Vec<(MemoryBlock, BlockContents)>> {
        // No panic can leave the list of free blocks half-changed, so a poisoned lock is still usable.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, block: MemoryBlock, contents: BlockContents) {
        let mut free = self.free();
        free.push((block, contents));
        // Drop the oldest free blocks until the pool keeps at most `keep` bytes.
        let mut held: usize = free.iter().map(|(b, _)| b.as_slice().len()).sum();
        let mut drop_first = 0;
        while held > self.keep && drop_first < free.len() {
            held -= free[drop_first].0.as_slice().len();
            drop_first += 1;
        }
        let dropped: Vec<_> = free.drain(..drop_first).collect();
        drop(free);
        drop(dropped);
    }
}

/// A pool that reuses the memory of dropped dense tensors.
///
/// Set it as [`DenseOptions::pool`](super::DenseOptions) for all batches; clones share the pool.
/// The memory of a tensor returns when its last clone is dropped. The next tensor in it clears only
/// elements that held values, so pages that are padding in both are not touched.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::Int32Array;
/// use serrate::array::{Offsets, RaggedArray};
/// use serrate::dense::{BufferPool, DenseOptions};
/// use serrate::dense::densify::densify;
///
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([1, 2])?.into()], leaves)?;
/// let options = DenseOptions { pool: Some(BufferPool::default()), ..Default::default() };
/// let first = densify(&a, None, &options)?.as_bytes().as_ptr();
/// let second = densify(&a, None, &options)?;
/// assert_eq!(first, second.as_bytes().as_ptr());
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BufferPool(Arc<PoolState>);

impl BufferPool {
    /// Creates a pool that keeps at most `bytes` of memory that no tensor uses.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(PoolState { keep: bytes, free: Mutex::new(Vec::new()) }))
    }

    /// Returns the number of bytes of memory that the pool keeps and that no tensor uses at present.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::BufferPool;
    /// assert_eq!(BufferPool::new(1 << 20).held(), 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn held(&self) -> usize {
        self.0.free().iter().map(|(b, _)| b.as_slice().len()).sum()
    }

    /// Returns the smallest free block of at least the requested size and at most four times this
    /// size or 8 MiB, whichever is more; else a new block that is an eighth larger than requested.
    pub(crate) fn take(&self, len: usize) -> Result<Memory> {
        let used = {
            let mut free = self.0.free();
            let fitting = free
                .iter()
                .enumerate()
                .map(|(i, (b, _))| (b.as_slice().len(), i))
                .filter(|(size, _)| *size >= len && *size / 4 <= len.max(HUGE_PAGE))
                .min();
            fitting.map(|(_, i)| free.remove(i))
        };
        let (block, contents) = match used {
            Some(found) => found,
            None => (MemoryBlock::new_zeroed(len.saturating_add(len / 8))?, BlockContents::Zero),
        };
        Ok(Memory { block: Some(block), len, contents, pool: Arc::downgrade(&self.0) })
    }
}

impl Default for BufferPool {
    fn default() -> Self {
        Self::new(1 << 30)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_is_zero_and_aligned() {
        for len in [0, 1, 4095, MAPPED - 1, MAPPED, MAPPED + 1] {
            let mut m = Memory::new_zeroed(len).unwrap();
            let (bytes, contents) = m.take_contents();
            assert!(bytes.len() >= len);
            assert!(matches!(contents, BlockContents::Zero) && bytes.iter().all(|b| *b == 0));
            bytes.fill(7);
            let buffer = m.into_buffer();
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|b| *b == 7));
            assert_eq!(buffer.as_ptr().align_offset(8), 0);
        }
        assert!(Memory::new_zeroed(isize::MAX.unsigned_abs()).is_err());
    }

    #[test]
    fn pooled_memory_returns_when_the_last_copy_is_dropped() {
        let pool = BufferPool::new(3 * MAPPED);
        let mut a = pool.take(MAPPED).unwrap();
        assert!(matches!(a.take_contents().1, BlockContents::Zero));
        let a = a.into_buffer();
        let (part, at) = (a.slice(5), a.as_ptr());
        drop(a);
        assert_eq!(pool.held(), 0);
        drop(part);
        assert!(pool.held() >= MAPPED);
        let mut again = pool.take(MAPPED - 100).unwrap();
        assert_eq!(again.as_ref().as_ptr(), at);
        assert!(matches!(again.take_contents().1, BlockContents::Unknown));
        assert_eq!(pool.held(), 0);
        drop(again);
        drop(pool.take(16).unwrap());
        assert!(pool.held() < 2 * MAPPED);
        let many: Vec<_> = (0..5).map(|_| pool.take(MAPPED).unwrap().into_buffer()).collect();
        drop(many);
        assert!(pool.held() <= 3 * MAPPED);
        let last = pool.take(64).unwrap().into_buffer();
        drop(pool);
        assert_eq!(last.len(), 64);
    }
}
