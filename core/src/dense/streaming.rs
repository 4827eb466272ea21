//! Writes to memory that is larger than the caches, with streaming stores on x86-64.
//!
//! An ordinary store first reads its cache line from memory, so memory moves twice as many bytes as
//! are written. A streaming store bypasses the caches.

/// Minimum size in bytes of a tensor that is written with streaming stores. Ordinary stores are
/// faster while the caches hold the tensor: one core of machine C fills 8 MiB again and again with
/// 28 GB/s, and 32 MiB with 11 GB/s; with streaming stores, it fills both with 19 GB/s.
pub(super) const STREAMED: usize = 8 << 20;

/// Whether the functions of this module use streaming stores.
pub(super) const HAS_STREAMING: bool = cfg!(target_arch = "x86_64");

/// Size of a cache line in bytes. Only whole lines are written with streaming stores.
const LINE: usize = 64;

/// Copies `from` to `to`, which has the same length.
pub(super) fn copy_streamed(from: &[u8], to: &mut [u8]) {
    let (before, lines, after) = split_lines(to);
    let (head, rest) = from.split_at(before.len());
    let (middle, tail) = rest.split_at(lines.len());
    before.copy_from_slice(head);
    stream_lines(middle.as_chunks::<LINE>().0.iter(), lines);
    after.copy_from_slice(tail);
}

/// Sets all bytes of `out` to `byte`.
pub(super) fn fill_streamed(byte: u8, out: &mut [u8]) {
    let (before, lines, after) = split_lines(out);
    before.fill(byte);
    stream_lines(std::iter::repeat(&[byte; LINE]), lines);
    after.fill(byte);
}

/// Splits bytes into those before the first whole line, the whole lines, and the rest.
fn split_lines(bytes: &mut [u8]) -> (&mut [u8], &mut [u8], &mut [u8]) {
    let before = bytes.as_ptr().align_offset(LINE).min(bytes.len());
    let (before, rest) = bytes.split_at_mut(before);
    let whole = rest.len() / LINE * LINE;
    let (lines, after) = rest.split_at_mut(whole);
    (before, lines, after)
}

/// Writes the lines `from` to `to`, whole lines that begin at the start of a line.
fn stream_lines<'a>(from: impl Iterator<Item = &'a [u8; LINE]>, to: &mut [u8]) {
    assert!(to.is_empty() || to.as_ptr().addr().is_multiple_of(LINE));
    let lines = to.as_chunks_mut::<LINE>().0.iter_mut().zip(from);
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
        // SAFETY: every x86-64 CPU has SSE2. Loads and stores are within lines of `LINE` bytes, and
        // stores are aligned because all lines are. The fence makes all stores visible to others
        // before this function returns, as streaming stores require.
        unsafe {
            for (to, from) in lines {
                for at in [0, 16, 32, 48] {
                    let value = _mm_loadu_si128(from.as_ptr().add(at).cast::<__m128i>());
                    _mm_stream_si128(to.as_mut_ptr().add(at).cast::<__m128i>(), value);
                }
            }
            _mm_sfence();
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (to, from) in lines {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_at_every_offset_are_written_and_no_others() {
        let source: Vec<u8> = (0..=250).cycle().take(400).collect();
        for first in 0..70 {
            for len in [0, 1, 15, 63, 64, 65, 127, 128, 200, 300] {
                let range = first..first + len;
                let mut copied = vec![255; 400];
                copy_streamed(&source[..len], &mut copied[range.clone()]);
                let mut filled = vec![255; 400];
                fill_streamed(7, &mut filled[range.clone()]);
                for at in 0..400 {
                    let (copy, fill) = match range.contains(&at) {
                        true => (source[at - first], 7),
                        false => (255, 255),
                    };
                    assert_eq!((copied[at], filled[at]), (copy, fill), "{first} {len} {at}");
                }
            }
        }
    }
}
