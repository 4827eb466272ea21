//! Performance hints for memory: software prefetch, and transparent huge pages for large arrays.

use std::ops::Range;

/// Prefetch distance in bytes. The hardware prefetcher alone is too slow for short lists: each time
/// the CPU mispredicts the end of a list, it discards the loads that it has already started.
const AHEAD: usize = 12 << 10;

/// Prefetches the memory [`AHEAD`] bytes past `values[at]`; the address may be out of bounds.
#[inline(always)]
pub(crate) fn prefetch_ahead<T>(values: &[T], at: usize) {
    prefetch_byte(values, at.wrapping_mul(size_of::<T>()).wrapping_add(AHEAD));
}

/// Prefetches `values[at]`; the index may be out of bounds.
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

/// Advises the kernel to back the whole capacity of a vector with huge pages: pages of 2 MiB instead of 4 KiB
/// cause fewer page faults and TLB misses. Pages that were already written stay as they are.
pub(crate) fn huge_pages<T>(vector: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
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
        // Advise only the huge pages that lie fully within the vector.
        let skipped = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
        let whole = bytes.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
        if whole > 0 {
            let first = start.cast::<c_void>().wrapping_byte_add(skipped);
            // SAFETY: the range lies within the vector's memory, and this advice does not change
            // its contents. The result is ignored because the advice is optional.
            let _ = unsafe { madvise(first, whole, HUGE_PAGES) };
        }
    }
    #[cfg(not(target_os = "linux"))]
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
        for n in [0, 1, 1000, (2 << 20) / 8, (4 << 20) / 8 + 1, (9 << 20) / 8 + 12_345] {
            let mut vector: Vec<u64> = Vec::with_capacity(n);
            huge_pages(&mut vector);
            vector.extend((0..n as u64).map(|i| i * 7));
            huge_pages(&mut vector);
            assert_eq!(vector.len(), n);
            assert!(vector.iter().zip(0..).all(|(v, i)| *v == i * 7));
            let mut zeros = vec![0u64; n];
            huge_pages(&mut zeros);
            assert!(zeros.iter().all(|v| *v == 0) && zeros.len() == n);
        }
        huge_pages(&mut vec![(); 10]);
    }
}
