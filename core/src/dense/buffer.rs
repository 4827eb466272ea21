//! Memory of dense tensors, and a pool that reuses it.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use arrow::buffer::{Buffer, MutableBuffer};
use memmap2::{MmapMut, MmapOptions};

use super::dense_plan::DensePlan;
use crate::error::{Error, Result};
use crate::locks::lock_mutex;

/// Minimum bytes of a block with its own memory mapping; smaller blocks are on the heap.
pub(crate) const MIN_MAPPED_BYTES: usize = 4 << 20;

/// Linux aligns a mapping to huge pages if its size is a multiple of this number of bytes.
const HUGE_PAGE: usize = 2 << 20;

/// Minimum size in bytes of a tensor for which a pool of [`BufferPool::for_writers`] reuses memory.
/// Smaller tensors get new memory, because malloc itself reuses small blocks.
const MIN_REUSED_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) enum BlockContents {
    Zero,
    /// Zeros, except where the [`DensePlan`] of the previous tensor in the block has values.
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
    /// Allocates `bytes` zeros. Page faults are most of the cost of a padded tensor, so large
    /// blocks are mapped: huge pages cause 512 times fewer faults, and pages that hold only padding
    /// never fault.
    pub(crate) fn new_zeroed(bytes: usize) -> Result<Self> {
        if bytes < MIN_MAPPED_BYTES {
            return Ok(Self::Heap(MutableBuffer::from_len_zeroed(bytes)));
        }
        let len = bytes.checked_next_multiple_of(HUGE_PAGE).unwrap_or(bytes);
        let map = MmapOptions::new().len(len).map_anon().map_err(|e| {
            Error::invalid(format!(
                "cannot allocate {bytes} bytes of memory for a dense tensor or a hash map ({e}); process fewer rows at a time"
            ))
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

/// Memory blocks that no tensor uses; the block that was returned last is at the end. `C` describes
/// the contents of a block.
#[derive(Debug)]
pub(crate) struct FreeBlocks<C> {
    blocks: Mutex<Vec<(MemoryBlock, C)>>,
    creator_process: u32,
}

impl<C> Default for FreeBlocks<C> {
    fn default() -> Self {
        Self { blocks: Mutex::new(Vec::new()), creator_process: std::process::id() }
    }
}

impl<C> FreeBlocks<C> {
    /// Locks the list of blocks. Returns `None` in a process that was forked after the pool was
    /// created: at the fork, a thread of the parent process may have held the lock, which is then
    /// never released in the forked process.
    pub(crate) fn lock_blocks(&self) -> Option<MutexGuard<'_, Vec<(MemoryBlock, C)>>> {
        if self.creator_process != std::process::id() {
            return None;
        }
        // No panic can leave the list half-changed, so a poisoned lock is still usable.
        Some(lock_mutex(&self.blocks))
    }

    /// Takes the smallest block whose size in bytes satisfies `fits`. If several blocks have this
    /// size, takes the one that was returned last, because its pages are most likely in memory.
    pub(crate) fn take_smallest(&self, fits: impl Fn(usize) -> bool) -> Option<(MemoryBlock, C)> {
        let mut blocks = self.lock_blocks()?;
        let sizes = blocks.iter().map(|(b, _)| b.as_slice().len()).enumerate().rev();
        let (at, _) = sizes.filter(|(_, size)| fits(*size)).min_by_key(|(_, size)| *size)?;
        Some(blocks.remove(at))
    }

    pub(crate) fn take_last(&self) -> Option<(MemoryBlock, C)> {
        self.lock_blocks()?.pop()
    }

    /// Frees all blocks. A forked process frees its own copies of its parent's blocks. Does nothing
    /// if a thread holds the lock, or held the lock when this process was forked.
    fn clear(&self) {
        let blocks = self.blocks.try_lock().map(|mut blocks| std::mem::take(&mut *blocks));
        drop(blocks);
    }
}

#[derive(Debug)]
pub(crate) struct TensorMemory {
    /// The memory; `None` after it was given back to the pool.
    block: Option<MemoryBlock>,
    len: usize,
    contents: BlockContents,
    /// The pages after this many bytes take no memory, because no tensor has written to them.
    touched: usize,
    pool: Weak<PoolState>,
    is_for_writers: bool,
}

impl TensorMemory {
    pub(crate) fn new_zeroed(len: usize) -> Result<Self> {
        let block = Some(MemoryBlock::new_zeroed(len)?);
        let (contents, pool) = (BlockContents::Zero, Weak::new());
        Ok(Self { block, len, contents, touched: len, pool, is_for_writers: false })
    }

    /// Returns the bytes of the block and what they contain. From now on, the contents count as
    /// [`BlockContents::Unknown`]. The bytes may be more than the tensor needs, except in a pool
    /// for writers.
    pub(crate) fn take_contents(&mut self) -> (&mut [u8], BlockContents) {
        let contents = std::mem::replace(&mut self.contents, BlockContents::Unknown);
        let bytes = self.block.as_mut().map_or(&mut [][..], MemoryBlock::as_mut_slice);
        match self.is_for_writers {
            // Each tensor of a pool for writers writes all of its bytes and expects no zeros, so
            // the bytes after this tensor need not be cleared.
            true => (&mut bytes[..self.len], contents),
            false => (bytes, contents),
        }
    }

    /// Records which bytes of the block are not zero, so that the next tensor in this block can
    /// clear them. Does nothing without a pool, or in a pool for writers, whose tensors write all
    /// bytes.
    pub(crate) fn set_contents(&mut self, contents: impl FnOnce() -> BlockContents) {
        if self.pool.strong_count() > 0 && !self.is_for_writers {
            self.contents = contents();
        }
    }

    /// Converts the memory to an Arrow buffer. The block returns to its pool when the last clone of
    /// the buffer is dropped.
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

impl AsRef<[u8]> for TensorMemory {
    fn as_ref(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |b| &b.as_slice()[..self.len])
    }
}

impl Drop for TensorMemory {
    fn drop(&mut self) {
        if let (Some(pool), Some(block)) = (self.pool.upgrade(), self.block.take()) {
            let contents = std::mem::replace(&mut self.contents, BlockContents::Unknown);
            pool.give_back(block, FreeContents { contents, touched: self.touched });
        }
    }
}

/// Holds what a pool knows about a free block.
#[derive(Debug)]
struct FreeContents {
    contents: BlockContents,
    /// See [`TensorMemory::touched`].
    touched: usize,
}

#[derive(Debug)]
struct PoolState {
    keep: usize,
    is_for_writers: bool,
    free: FreeBlocks<FreeContents>,
}

impl PoolState {
    fn give_back(&self, block: MemoryBlock, contents: FreeContents) {
        let Some(mut free) = self.free.lock_blocks() else { return };
        free.push((block, contents));
        let mut held: usize = free.iter().map(|(_, known)| known.touched).sum();
        let mut drop_first = 0;
        while held > self.keep && drop_first < free.len() {
            held -= free[drop_first].1.touched;
            drop_first += 1;
        }
        let dropped: Vec<_> = free.drain(..drop_first).collect();
        drop(free);
        drop(dropped);
    }

    /// Allocates a block for a tensor of `len` bytes and, later, for longer tensors.
    fn allocate_block(&self, len: usize) -> Result<MemoryBlock> {
        // A mapped block takes memory only for the pages that are written. No byte after a tensor
        // of a pool for writers is written, so the block may have twice the size of the tensor. If
        // the sizes of batches vary, fewer blocks serve all of them.
        let double = len.saturating_mul(2);
        if self.is_for_writers
            && double >= MIN_MAPPED_BYTES
            && let Ok(block) = MemoryBlock::new_zeroed(double)
        {
            return Ok(block);
        }
        MemoryBlock::new_zeroed(len.saturating_add(len / 8))
    }
}

/// A pool that reuses the memory of dropped dense tensors.
///
/// Set it as [`DenseOptions::pool`](super::DenseOptions) for all batches; clones share the pool.
/// The memory of a tensor returns to the pool when its last clone is dropped. The next tensor in
/// this memory clears only the elements that held values, so pages with only padding in both
/// tensors stay untouched. In a process that is forked after the creation of the pool, the pool
/// lends no memory and takes none back.
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
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// # use serrate::array::{Offsets, RaggedArray};
    /// use serrate::dense::densify::densify;
    /// use serrate::dense::{BufferPool, DenseOptions};
    /// let leaves = Arc::new(UInt8Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([1, 2])?.into()], leaves)?;
    /// let pool = BufferPool::new(1 << 20);
    /// let options = DenseOptions { pool: Some(pool.clone()), ..Default::default() };
    /// drop(densify(&a, None, &options)?);
    /// assert!(pool.held() >= 4);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn new(bytes: usize) -> Self {
        Self::create(bytes, false)
    }

    /// Creates a pool like [`new`](Self::new) for tensors whose memory other code may write to,
    /// such as a numpy array over the same memory.
    ///
    /// The next tensor in this memory therefore writes all of its bytes, and the pool saves only
    /// page faults. Tensors of less than 1 MiB do not use the pool.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// # use serrate::array::{Offsets, RaggedArray};
    /// use serrate::dense::densify::densify;
    /// use serrate::dense::{BufferPool, DenseOptions};
    /// let leaves = Arc::new(UInt8Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([1, 2])?.into()], leaves)?;
    /// let pool = BufferPool::for_writers(64 << 20);
    /// let options = DenseOptions { pool: Some(pool.clone()), ..Default::default() };
    /// drop(densify(&a, Some(&[1 << 20]), &options)?);
    /// assert!(pool.held() >= 2 << 20);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn for_writers(bytes: usize) -> Self {
        Self::create(bytes, true)
    }

    fn create(keep: usize, is_for_writers: bool) -> Self {
        Self(Arc::new(PoolState { keep, is_for_writers, free: FreeBlocks::default() }))
    }

    /// Returns the number of bytes of memory that the pool keeps and that no tensor uses at
    /// present. In a pool of [`for_writers`](Self::for_writers), huge pages to which no tensor has
    /// written do not count, because they take no memory.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::BufferPool;
    /// assert_eq!(BufferPool::new(1 << 20).held(), 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn held(&self) -> usize {
        let free = self.0.free.lock_blocks();
        free.map_or(0, |free| free.iter().map(|(_, known)| known.touched).sum())
    }

    /// Frees the memory that the pool keeps, unless another thread uses the pool at this moment.
    ///
    /// A forked process frees its copy of the memory with this function.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::BufferPool;
    /// let pool = BufferPool::default();
    /// pool.clear();
    /// assert_eq!(pool.held(), 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn clear(&self) {
        self.0.free.clear();
    }

    /// Returns the smallest free block of `len` to `4 * len` bytes (or 8 MiB, if that is more),
    /// else a new block. In a pool for writers, a free block may have twice as many bytes, and a
    /// tensor of less than [`MIN_REUSED_BYTES`] bytes always gets new memory of `len` bytes.
    pub(crate) fn take_memory(&self, len: usize) -> Result<TensorMemory> {
        let is_for_writers = self.0.is_for_writers;
        if is_for_writers && len < MIN_REUSED_BYTES {
            return TensorMemory::new_zeroed(len);
        }
        let ratio = if is_for_writers { 8 } else { 4 };
        let fits = |size: usize| size >= len && size / ratio <= len.max(HUGE_PAGE);
        let (block, known) = match self.0.free.take_smallest(fits) {
            Some(found) => found,
            None => {
                let known = FreeContents { contents: BlockContents::Zero, touched: 0 };
                (self.0.allocate_block(len)?, known)
            }
        };
        let touched = match (&block, is_for_writers) {
            (MemoryBlock::Mapped(_), true) => known.touched.max(len.next_multiple_of(HUGE_PAGE)),
            _ => block.as_slice().len(),
        };
        let (block, contents, pool) = (Some(block), known.contents, Arc::downgrade(&self.0));
        Ok(TensorMemory { block, len, contents, touched, pool, is_for_writers })
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
        for len in [0, 1, 4095, MIN_MAPPED_BYTES - 1, MIN_MAPPED_BYTES, MIN_MAPPED_BYTES + 1] {
            let mut m = TensorMemory::new_zeroed(len).unwrap();
            let (bytes, contents) = m.take_contents();
            assert!(bytes.len() >= len);
            assert!(matches!(contents, BlockContents::Zero) && bytes.iter().all(|b| *b == 0));
            bytes.fill(7);
            let buffer = m.into_buffer();
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|b| *b == 7));
            assert_eq!(buffer.as_ptr().align_offset(8), 0);
        }
        assert!(TensorMemory::new_zeroed(isize::MAX.unsigned_abs()).is_err());
    }

    #[test]
    fn pooled_memory_returns_when_the_last_copy_is_dropped() {
        let pool = BufferPool::new(3 * MIN_MAPPED_BYTES);
        let mut a = pool.take_memory(MIN_MAPPED_BYTES).unwrap();
        assert!(matches!(a.take_contents().1, BlockContents::Zero));
        let a = a.into_buffer();
        let (part, at) = (a.slice(5), a.as_ptr());
        drop(a);
        assert_eq!(pool.held(), 0);
        drop(part);
        assert!(pool.held() >= MIN_MAPPED_BYTES);
        let mut again = pool.take_memory(MIN_MAPPED_BYTES - 100).unwrap();
        assert_eq!(again.as_ref().as_ptr(), at);
        assert!(matches!(again.take_contents().1, BlockContents::Unknown));
        assert_eq!(pool.held(), 0);
        drop(again);
        drop(pool.take_memory(16).unwrap());
        assert!(pool.held() < 2 * MIN_MAPPED_BYTES);
        let many: Vec<_> =
            (0..5).map(|_| pool.take_memory(MIN_MAPPED_BYTES).unwrap().into_buffer()).collect();
        drop(many);
        assert!(pool.held() <= 3 * MIN_MAPPED_BYTES);
        let last = pool.take_memory(64).unwrap().into_buffer();
        drop(pool);
        assert_eq!(last.len(), 64);
    }

    #[test]
    fn blocks_for_writers_have_space_for_larger_tensors() {
        let pool = BufferPool::for_writers(16 * MIN_MAPPED_BYTES);
        let mut at = None;
        for (len, held) in [(2, 2), (4, 4), (3, 4), (1, 4)] {
            let len = len * MIN_MAPPED_BYTES - 8;
            let memory = pool.take_memory(len).unwrap();
            let first = *at.get_or_insert(memory.as_ref().as_ptr());
            assert_eq!((memory.as_ref().len(), memory.as_ref().as_ptr()), (len, first));
            drop(memory.into_buffer());
            // Only the huge pages to which a tensor may have written count.
            assert_eq!(pool.held(), held * MIN_MAPPED_BYTES);
        }
        let larger = pool.take_memory(5 * MIN_MAPPED_BYTES).unwrap();
        assert_eq!(pool.held(), 4 * MIN_MAPPED_BYTES);
        drop(larger);
        // The pool keeps 16 units, so it frees the blocks of 4 and 5 units.
        drop(pool.take_memory(13 * MIN_MAPPED_BYTES).unwrap());
        assert_eq!(pool.held(), 13 * MIN_MAPPED_BYTES);
        // On the heap, all bytes count.
        pool.clear();
        drop(pool.take_memory(MIN_REUSED_BYTES).unwrap());
        assert!((MIN_REUSED_BYTES..2 * MIN_REUSED_BYTES).contains(&pool.held()));
    }

    #[test]
    fn a_pool_for_writers_never_knows_its_contents() {
        let pool = BufferPool::for_writers(4 * MIN_MAPPED_BYTES);
        let mut a = pool.take_memory(MIN_MAPPED_BYTES).unwrap();
        let (bytes, contents) = a.take_contents();
        assert_eq!(bytes.len(), MIN_MAPPED_BYTES);
        assert!(matches!(contents, BlockContents::Zero));
        a.set_contents(|| BlockContents::Zero);
        let at = a.as_ref().as_ptr();
        drop(a.into_buffer());
        let mut again = pool.take_memory(MIN_MAPPED_BYTES - 8).unwrap();
        assert_eq!(again.as_ref().as_ptr(), at);
        let (bytes, contents) = again.take_contents();
        assert_eq!(bytes.len(), MIN_MAPPED_BYTES - 8);
        assert!(matches!(contents, BlockContents::Unknown));
        drop(again);
        drop(pool.take_memory(MIN_REUSED_BYTES - 1).unwrap());
        let held = pool.held();
        assert!((MIN_MAPPED_BYTES..2 * MIN_MAPPED_BYTES).contains(&held), "{held}");
        pool.clear();
        assert_eq!(pool.held(), 0);
    }

    #[test]
    fn a_forked_process_leaves_the_pool_alone() {
        // A list with the id of another process behaves like a list after a fork.
        let free =
            FreeBlocks::<()> { creator_process: std::process::id() + 1, ..Default::default() };
        let block = MemoryBlock::new_zeroed(8).unwrap();
        free.blocks.lock().unwrap().push((block, ()));
        assert!(free.lock_blocks().is_none() && free.take_last().is_none());
        assert!(free.take_smallest(|_| true).is_none());
        free.clear();
        assert!(free.blocks.lock().unwrap().is_empty());
    }
}
