//! Copies entries as bytes, with specialized code for common entry sizes, and in several threads.

use std::ops::Range;

use arrow::buffer::{Buffer, MutableBuffer};

use crate::array::Layout;
use crate::dense::TensorMemory;
use crate::error::Result;

/// Maximum size in bytes of an output that one thread writes; a larger output is divided among
/// threads.
const MAX_SERIAL_BYTES: usize = 512 << 10;

pub(super) trait EntryBytes: Copy + Sync {
    /// Size of an entry in bytes, never 0.
    fn size(self) -> usize;
    /// Copies entry `i` of `from` to entry `j` of `to`; returns false if one of these entries does
    /// not exist.
    fn copy(self, to: &mut [u8], j: usize, from: &[u8], i: usize) -> bool;
}

/// Copies entries of `N` bytes. A copy of constant size compiles to register moves.
#[derive(Clone, Copy)]
pub(super) struct FixedEntry<const N: usize>;

impl<const N: usize> EntryBytes for FixedEntry<N> {
    #[inline(always)]
    fn size(self) -> usize {
        N
    }

    #[inline(always)]
    fn copy(self, to: &mut [u8], j: usize, from: &[u8], i: usize) -> bool {
        let to = to.as_chunks_mut::<N>().0.get_mut(j);
        let from = from.as_chunks::<N>().0.get(i);
        if let (Some(to), Some(from)) = (to, from) {
            *to = *from;
            return true;
        }
        false
    }
}

#[derive(Clone, Copy)]
pub(super) struct AnySize(pub(super) usize);

impl EntryBytes for AnySize {
    #[inline(always)]
    fn size(self) -> usize {
        self.0
    }

    #[inline(always)]
    fn copy(self, to: &mut [u8], j: usize, from: &[u8], i: usize) -> bool {
        let at = |i: usize| {
            let start = i.checked_mul(self.0)?;
            Some(start..start.checked_add(self.0)?)
        };
        let to = at(j).and_then(|at| to.get_mut(at));
        let from = at(i).and_then(|at| from.get(at));
        if let (Some(to), Some(from)) = (to, from) {
            to.copy_from_slice(from);
            return true;
        }
        false
    }
}

/// A result of fewer bytes is allocated on the heap, because writing to reused memory of the heap
/// is 3 times as fast as writing to new pages. A larger result gets a memory mapping of its own.
const MAX_HEAP_BYTES: usize = 32 << 20;

/// Evaluates `$body` with `$e` bound to an `EntryBytes` of `$size` bytes (not 0). Common sizes are
/// compile-time constants.
macro_rules! with_entry {
    ($size:expr, $e:ident => $body:expr) => {
        match $size {
            1 => {
                let $e = $crate::batching::entry_copies::FixedEntry::<1>;
                $body
            }
            2 => {
                let $e = $crate::batching::entry_copies::FixedEntry::<2>;
                $body
            }
            4 => {
                let $e = $crate::batching::entry_copies::FixedEntry::<4>;
                $body
            }
            8 => {
                let $e = $crate::batching::entry_copies::FixedEntry::<8>;
                $body
            }
            16 => {
                let $e = $crate::batching::entry_copies::FixedEntry::<16>;
                $body
            }
            size => {
                let $e = $crate::batching::entry_copies::AnySize(size);
                $body
            }
        }
    };
}
pub(super) use with_entry;

/// Divides the lists of `layout` into ranges. Calls `leaf` with each range of lists and with the
/// slice of `out` for the children of these lists (`size` bytes per child). Uses several threads if
/// `parallel` is set and `out` is large. Returns the first error.
pub(super) fn for_each_part(
    layout: &Layout,
    size: usize,
    out: &mut [u8],
    parallel: bool,
    leaf: &(impl Fn(Range<usize>, &mut [u8]) -> Result<()> + Sync),
) -> Result<()> {
    split_lists(layout, size, 0..layout.lists(), out, parallel, leaf)
}

fn split_lists(
    layout: &Layout,
    size: usize,
    lists: Range<usize>,
    out: &mut [u8],
    parallel: bool,
    leaf: &(impl Fn(Range<usize>, &mut [u8]) -> Result<()> + Sync),
) -> Result<()> {
    if !parallel || out.len() <= MAX_SERIAL_BYTES || lists.len() < 2 {
        return leaf(lists, out);
    }
    let half = layout.ranges(lists.clone()).len() / 2;
    let (mut low, mut high) = (lists.start + 1, lists.end - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if layout.ranges(lists.start..middle).len() < half {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let before = layout.ranges(lists.start..low).len() * size;
    let (left, right) = out.split_at_mut(before);
    let (a, b) = rayon::join(
        || split_lists(layout, size, lists.start..low, left, parallel, leaf),
        || split_lists(layout, size, low..lists.end, right, parallel, leaf),
    );
    a.and(b)
}

pub(super) fn fill_buffer(
    bytes: usize,
    write: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Buffer> {
    if bytes < MAX_HEAP_BYTES {
        let mut heap = MutableBuffer::from_len_zeroed(bytes);
        write(heap.as_slice_mut())?;
        return Ok(heap.into());
    }
    let mut memory = TensorMemory::new_zeroed(bytes)?;
    write(&mut memory.take_contents().0[..bytes])?;
    Ok(memory.into_buffer())
}

pub(super) fn repeat_value(out: &mut [u8], value: &[u8]) {
    match value {
        [] => {}
        [first, rest @ ..] if rest.iter().all(|b| b == first) => out.fill(*first),
        value => {
            with_entry!(value.len(), e => {
                for i in 0..out.len() / e.size() {
                    e.copy(out, i, value, 0);
                }
            });
        }
    }
}

/// Transposes a matrix of `a` x `b` entries: entry `(i, j)` of `from` becomes entry `(j, i)` of
/// `out`. Rows start every `from_width` entries in `from` and every `out_width` entries in `out`.
pub(super) fn transpose_entries(
    entry: impl EntryBytes,
    (a, b): (usize, usize),
    (from, from_width): (&[u8], usize),
    (out, out_width): (&mut [u8], usize),
) {
    for j in 0..b {
        for i in 0..a {
            entry.copy(out, j * out_width + i, from, i * from_width + j);
        }
    }
}

/// Copies an array `[blocks, a, b]` of entries of `size` bytes to an array `[blocks, b, a]`.
pub(super) fn swap_axes(
    from: &[u8],
    blocks: usize,
    (a, b): (usize, usize),
    size: usize,
) -> Result<Buffer> {
    if from.is_empty() || a == 1 || b == 1 {
        let mut copy = MutableBuffer::with_capacity(from.len());
        copy.extend_from_slice(from);
        return Ok(copy.into());
    }
    let block = Layout::Uniform { size: a * b, lists: blocks };
    fill_buffer(from.len(), |out| {
        for_each_part(&block, size, out, true, &|lists, out| {
            let bytes = a * b * size;
            let from = &from[lists.start * bytes..lists.end * bytes];
            for (from, out) in from.chunks_exact(bytes).zip(out.chunks_exact_mut(bytes)) {
                with_entry!(size, e => transpose_entries(e, (a, b), (from, b), (out, a)));
            }
            Ok(())
        })
    })
}
