//! Software prefetches, copies of ranges of values that use them, and requests for transparent huge
//! pages.

use std::ops::Range;

use arrow::buffer::MutableBuffer;

use crate::error::{Error, Result};

/// Prefetch distance in bytes. The hardware prefetcher alone is too slow for short lists: each time
/// the CPU mispredicts the end of a list, it discards the loads that it has already started.
const AHEAD: usize = 12 << 10;

/// Prefetches the byte that is [`AHEAD`] bytes after the start of `values[at]`. This byte may be
/// out of bounds, because a prefetch never faults.
#[inline(always)]
pub(crate) fn prefetch_ahead<T>(values: &[T], at: usize) {
    prefetch_byte(values, at.wrapping_mul(size_of::<T>()).wrapping_add(AHEAD));
}

/// Prefetches `values[at]`; the index may be out of bounds, because a prefetch never faults.
#[inline(always)]
pub(crate) fn prefetch_value<T>(values: &[T], at: usize) {
    prefetch_byte(values, at.wrapping_mul(size_of::<T>()));
}

#[inline(always)]
fn prefetch_byte<T>(values: &[T], bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = values.as_ptr().cast::<i8>().wrapping_add(bytes);
        // SAFETY: a prefetch is a hint; it reads nothing and does not fault at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, bytes);
}

/// Prefetches `bytes[range]` for writing, before a list is written there. The hardware prefetcher
/// cannot predict where the next list goes, so without this hint writers wait for cache misses.
#[inline(always)]
pub(crate) fn prefetch_for_write(bytes: &[u8], range: Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        const LINE: usize = 64;
        let first = bytes.as_ptr().wrapping_add(range.start);
        let lead = first.addr() % LINE;
        for at in (0..range.len() + lead).step_by(LINE) {
            // SAFETY: a prefetch reads and writes nothing and accepts any address.
            unsafe {
                _mm_prefetch::<_MM_HINT_ET0>(first.wrapping_add(at).wrapping_sub(lead).cast())
            };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, range);
}

const PIECE: usize = 64;

/// Lengths in bytes of ranges that are copied in pieces of [`PIECE`] bytes instead of by `memcpy`.
/// The last piece may copy bytes after the end of the range.
const SHORT: Range<usize> = PIECE / 2..16 * PIECE;

/// Copies ranges of values to one new buffer. Each of `parts` has the bytes of an array and a range
/// of its values. `width` is the number of bytes per value, and `len` the total number of values.
pub(crate) fn gather_bytes<'a>(
    parts: impl Iterator<Item = (&'a [u8], Range<usize>)>,
    width: usize,
    len: usize,
) -> Result<MutableBuffer> {
    let bytes = len.checked_mul(width);
    let (Some(bytes), Some(capacity)) = (bytes, bytes.and_then(|n| n.checked_add(PIECE))) else {
        return Err(Error::invalid(format!(
            "{len} values of {width} byte(s) each are selected, more than memory can address; select fewer values"
        )));
    };
    let mut out = MutableBuffer::with_capacity(capacity);
    let (mut at, mut previous_end) = (0, 0);
    for (source, r) in parts {
        let (start, end) = (r.start * width, r.end * width);
        let part = &source[start..end];
        assert!(part.len() <= bytes - at, "the ranges hold more than {bytes} bytes");
        // `prefetch_ahead` prefetches bytes after the end of this short range, so it helps only if
        // the next range starts soon after it.
        let near = start.wrapping_sub(previous_end) < PAGE;
        previous_end = end;
        // A pointer from `part` would not be valid past the end of `part`.
        let from = source[start..].as_ptr();
        // SAFETY: by the assertion above, `part` fits into the first `bytes` bytes of capacity. The
        // copy of a piece may read and write up to PIECE bytes past the end of `part`. The
        // condition checks that the source has these bytes, and `capacity` includes them.
        unsafe {
            let to = out.as_mut_ptr().add(at);
            if near && SHORT.contains(&part.len()) && source.len() - end >= PIECE {
                let mut done = 0;
                while done < part.len() {
                    prefetch_ahead(part, done);
                    to.add(done).copy_from_nonoverlapping(from.add(done), PIECE);
                    done += PIECE;
                }
            } else {
                to.copy_from_nonoverlapping(from, part.len());
            }
        }
        at += part.len();
    }
    // SAFETY: the loop wrote `at` bytes.
    unsafe { out.set_len(at) };
    Ok(out)
}

/// Distance in bytes below which the hardware prefetches two ranges as one stream.
const PAGE: usize = 4 << 10;

/// Advises Linux to use huge pages of 2 MiB for the memory of `vector`, because they cause fewer
/// page faults and TLB misses. Pages that were already written stay small.
pub(crate) fn request_huge_pages<T>(vector: &mut Vec<T>) {
    // Miri does not know `madvise`.
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use std::ffi::{c_int, c_void};
        unsafe extern "C" {
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        const HUGE_PAGES: c_int = 14;
        const HUGE_PAGE: usize = 2 << 20;
        // The product does not saturate, because a vector has at most isize::MAX bytes.
        let (start, bytes) =
            (vector.as_mut_ptr(), vector.capacity().saturating_mul(size_of::<T>()));
        let skipped = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
        let whole = bytes.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
        if whole > 0 {
            let first = start.cast::<c_void>().wrapping_byte_add(skipped);
            // SAFETY: the range lies within the vector's memory, and this advice does not change
            // its contents. The result is ignored because the advice is optional.
            let _ = unsafe { madvise(first, whole, HUGE_PAGES) };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = vector;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_may_be_prefetched() {
        let values = [1u32, 2, 3];
        for at in [0, 2, 3, 1 << 20, usize::MAX / 2, usize::MAX] {
            prefetch_ahead(&values, at);
            prefetch_ahead::<u64>(&[], at);
            prefetch_value(&values, at);
        }
        assert_eq!(values, [1, 2, 3]);
    }

    #[test]
    fn what_a_vector_holds_stays() {
        let sizes = [0, 1, 1000, (2 << 20) / 8, (4 << 20) / 8 + 1, (9 << 20) / 8 + 12_345];
        for n in sizes.into_iter().take(if cfg!(miri) { 3 } else { sizes.len() }) {
            let mut vector: Vec<u64> = Vec::with_capacity(n);
            request_huge_pages(&mut vector);
            vector.extend((0..n as u64).map(|i| i * 7));
            request_huge_pages(&mut vector);
            assert_eq!(vector.len(), n);
            assert!(vector.iter().zip(0..).all(|(v, i)| *v == i * 7));
            let mut zeros = vec![0u64; n];
            request_huge_pages(&mut zeros);
            assert!(zeros.iter().all(|v| *v == 0) && zeros.len() == n);
        }
        request_huge_pages(&mut vec![(); 10]);
    }

    #[test]
    fn ranges_of_every_length_around_pieces() {
        for width in [1, 2, 4, 8, 16] {
            let source: Vec<u8> = (0..=250).cycle().take(5000 * width).collect();
            let around = [SHORT.start, PIECE, SHORT.end].map(|n| [n - 1, n, n + 1]).concat();
            let mut next = 0;
            let mut ranges = vec![0..0, 0..1];
            for n in around.iter().map(|n| n.div_ceil(width)) {
                ranges.extend([next..next + n, 1234..1234 + n, 7..7 + n]);
                next += n + 1;
            }
            ranges.extend((4900..=5000).flat_map(|end| [end - 3..end, end - 90..end, end..end]));
            ranges.extend((4000..4900).step_by(33).map(|start| start..start + 30));
            let expected: Vec<u8> = ranges
                .iter()
                .flat_map(|r| &source[r.start * width..r.end * width])
                .copied()
                .collect();
            let parts = ranges.iter().map(|r| (&source[..], r.clone()));
            let found = gather_bytes(parts, width, expected.len() / width).unwrap();
            assert_eq!(found.as_slice(), expected);
        }
    }

    #[test]
    #[should_panic(expected = "the ranges hold more than 7 bytes")]
    fn writing_past_the_capacity_panics() {
        drop(gather_bytes([(&[1; 100][..], 0..4), (&[1; 100][..], 0..4)].into_iter(), 1, 7));
    }

    #[test]
    fn more_bytes_than_can_be_addressed_are_refused() {
        for (width, len) in [(8, usize::MAX / 4), (1, usize::MAX), (1, usize::MAX - PIECE + 1)] {
            let found = gather_bytes(std::iter::empty(), width, len);
            assert!(found.unwrap_err().to_string().contains("more than memory can address"));
        }
    }
}
