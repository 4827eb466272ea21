//! Huge pages for large arrays.

/// Asks the system for huge pages for all the memory of a vector, used or not.
///
/// Memory comes from the system a page at a time, filled with zeros, and a processor remembers where few
/// pages are: with pages of two megabytes instead of four kilobytes, large arrays are made and gone through
/// faster. Where memory was written to before, nothing changes.
pub(crate) fn huge_pages<T>(of: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        use std::ffi::{c_int, c_void};
        unsafe extern "C" {
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        /// `MADV_HUGEPAGE`.
        const HUGE_PAGES: c_int = 14;
        const HUGE_PAGE: usize = 2 << 20;
        // No vector has more bytes than fit an isize.
        let (start, bytes) = (of.as_mut_ptr(), of.capacity().saturating_mul(size_of::<T>()));
        // Whole huge pages only, which lie within the vector.
        let skipped = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
        let whole = bytes.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
        if whole > 0 {
            let first = start.cast::<c_void>().wrapping_byte_add(skipped);
            // SAFETY: the range is memory of the vector, whose contents this kind of advice leaves alone.
            // Whether the system takes the advice does not matter.
            let _ = unsafe { madvise(first, whole, HUGE_PAGES) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = of;
}

#[cfg(test)]
mod tests {
    use super::*;

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
