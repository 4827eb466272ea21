//! Entries as bytes: sizes known when compiled where they are common, and work shared by samples.

use std::ops::Range;

use arrow::buffer::{Buffer, MutableBuffer};

use crate::array::Layout;
use crate::dense::Memory;
use crate::error::Result;

/// Bytes of output below which threads are not worth their while.
const GRAIN: usize = 512 << 10;

/// How entries lie in bytes.
pub(super) trait Entry: Copy + Sync {
    /// Bytes of an entry, never 0.
    fn size(self) -> usize;
    /// Copies entry `i` of `from` to be entry `j` of `to`; whether there are both.
    fn copy(self, to: &mut [u8], j: usize, from: &[u8], i: usize) -> bool;
}

/// Entries of `N` bytes: copied as a number is.
#[derive(Clone, Copy)]
pub(super) struct Fixed<const N: usize>;

impl<const N: usize> Entry for Fixed<N> {
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

/// Entries of any size.
#[derive(Clone, Copy)]
pub(super) struct AnySize(pub(super) usize);

impl Entry for AnySize {
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

/// Results below this size are memory of the allocator, which keeps what was freed: that is filled in a
/// third of the time that huge pages take to be there.
const HEAP: usize = 32 << 20;

/// Runs `$body` with `$e` bound to how entries of `$size` bytes (not 0) are copied best.
macro_rules! with_entry {
    ($size:expr, $e:ident => $body:expr) => {
        match $size {
            1 => {
                let $e = $crate::batching::entries::Fixed::<1>;
                $body
            }
            2 => {
                let $e = $crate::batching::entries::Fixed::<2>;
                $body
            }
            4 => {
                let $e = $crate::batching::entries::Fixed::<4>;
                $body
            }
            8 => {
                let $e = $crate::batching::entries::Fixed::<8>;
                $body
            }
            16 => {
                let $e = $crate::batching::entries::Fixed::<16>;
                $body
            }
            size => {
                let $e = $crate::batching::entries::AnySize(size);
                $body
            }
        }
    };
}
pub(super) use with_entry;

/// Runs `leaf` on parts of the lists of a layout, each with its part of `out`, which has `size` bytes
/// per child. Large outputs are shared among threads; the error is that of the first part.
pub(super) fn share(
    layout: &Layout,
    size: usize,
    out: &mut [u8],
    parallel: bool,
    leaf: &(impl Fn(Range<usize>, &mut [u8]) -> Result<()> + Sync),
) -> Result<()> {
    split(layout, size, 0..layout.lists(), out, parallel, leaf)
}

fn split(
    layout: &Layout,
    size: usize,
    lists: Range<usize>,
    out: &mut [u8],
    parallel: bool,
    leaf: &(impl Fn(Range<usize>, &mut [u8]) -> Result<()> + Sync),
) -> Result<()> {
    if !parallel || out.len() <= GRAIN || lists.len() < 2 {
        return leaf(lists, out);
    }
    // The list at which half of the children are passed.
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
        || split(layout, size, lists.start..low, left, parallel, leaf),
        || split(layout, size, low..lists.end, right, parallel, leaf),
    );
    a.and(b)
}

/// A buffer of `bytes` zeros that `write` writes to.
pub(super) fn filled(bytes: usize, write: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Buffer> {
    if bytes < HEAP {
        let mut heap = MutableBuffer::from_len_zeroed(bytes);
        write(heap.as_slice_mut())?;
        return Ok(heap.into());
    }
    let mut memory = Memory::zeroed(bytes)?;
    write(&mut memory.take_contents().0[..bytes])?;
    Ok(memory.into_buffer())
}

/// Writes one value over and over; zeros are there already where memory is fresh.
pub(super) fn fill(out: &mut [u8], value: &[u8]) {
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

/// `[a, b]` entries as `[b, a]`: entry `(i, j)` of `from`, whose rows are `from_width` entries apart,
/// becomes entry `(j, i)` of `out`, whose rows are `out_width` apart.
pub(super) fn transpose(
    entry: impl Entry,
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

/// A dense block `[blocks, a, b]` of entries of `size` bytes as `[blocks, b, a]`.
pub(super) fn swapped(
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
    filled(from.len(), |out| {
        share(&block, size, out, true, &|lists, out| {
            let bytes = a * b * size;
            let from = &from[lists.start * bytes..lists.end * bytes];
            for (from, out) in from.chunks_exact(bytes).zip(out.chunks_exact_mut(bytes)) {
                with_entry!(size, e => transpose(e, (a, b), (from, b), (out, a)));
            }
            Ok(())
        })
    })
}
