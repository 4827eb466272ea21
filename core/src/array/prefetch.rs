//! Software prefetch of slices.

use std::ops::Range;

/// Prefetch distance in bytes. The hardware prefetcher is not enough for short lists: mispredicted
/// list ends discard the loads issued speculatively past them.
const AHEAD: usize = 12 << 10;

/// Prefetches the memory [`AHEAD`] bytes past value `at`; the address may be out of bounds.
#[inline(always)]
pub(crate) fn prefetch_ahead<T>(values: &[T], at: usize) {
    prefetch_byte(values, at.wrapping_mul(size_of::<T>()).wrapping_add(AHEAD));
}

/// Prefetches the memory of value `at`, which may be out of bounds.
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

/// Prefetches these bytes for writing. The hardware prefetcher cannot predict where the next list
/// lies; without this prefetch, most of the time is spent on cache misses.
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
}
