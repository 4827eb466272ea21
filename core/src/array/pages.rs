//! Transparent huge pages for large arrays.

/// Advises the kernel to back the whole capacity of a vector with huge pages.
///
/// The kernel faults in and zeroes memory page by page, and the TLB holds few entries: pages of 2
/// MiB instead of 4 KiB make allocation and scans of large arrays faster. Pages already written to
/// are unaffected.
pub(crate) fn huge_pages<T>(vector: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        use std::ffi::{c_int, c_void};
        unsafe extern "C" {
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        const HUGE_PAGES: c_int = 14;
        const HUGE_PAGE: usize = 2 << 20;
        // A vector never has more than `isize::MAX` bytes.
        let (start, bytes) =
            (vector.as_mut_ptr(), vector.capacity().saturating_mul(size_of::<T>()));
        // Advise only the huge pages that lie fully within the vector.
        let skipped = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
        let whole = bytes.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
        if whole > 0 {
            let first = start.cast::<c_void>().wrapping_byte_add(skipped);
            // SAFETY: the range lies within the vector's memory, and the advice does not change its
            // contents. The result is ignored because the advice is optional.
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
