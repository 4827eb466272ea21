//! Memory that is asked for before it is read.

/// Bytes that are asked for ahead of those that are read. Where short lists are read, the processor
/// foresees the end of a list wrongly all the time and forgets what it asked for behind it.
const AHEAD: usize = 12 << 10;

/// Asks for memory some way behind value `at`, wherever that is.
#[inline(always)]
pub(crate) fn ask_ahead<T>(values: &[T], at: usize) {
    ask_at(values, at.wrapping_mul(size_of::<T>()).wrapping_add(AHEAD));
}

/// Asks for the memory of value `at`, wherever that is.
#[inline(always)]
pub(crate) fn ask<T>(values: &[T], at: usize) {
    ask_at(values, at.wrapping_mul(size_of::<T>()));
}

#[inline(always)]
fn ask_at<T>(values: &[T], bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let place = values.as_ptr().cast::<i8>().wrapping_add(bytes);
        // SAFETY: a hint, which reads nothing and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_may_be_asked_for_anywhere() {
        let values = [1u32, 2, 3];
        for at in [0, 2, 3, 1 << 20, usize::MAX / 2, usize::MAX] {
            ask_ahead(&values, at);
            ask_ahead::<u64>(&[], at);
            ask(&values, at);
        }
        assert_eq!(values, [1, 2, 3]);
    }
}
