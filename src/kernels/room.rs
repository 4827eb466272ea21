//! Memory for results that are as long as the leaves.

use arrow::array::{Array, ArrowPrimitiveType, PrimitiveArray};

/// Bytes from which an allocator maps memory anew for every result (glibc's largest threshold). Half of
/// the time of a loop over leaves then goes into pages that the system fills with zeros, four kilobytes
/// at a time.
const MAPPED: usize = 32 << 20;

/// An empty vector with room for `n` values, in huge pages where it is large and the system has them.
pub(super) fn with_room<T>(n: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(n);
    if n.saturating_mul(size_of::<T>()) >= MAPPED {
        advise(&mut room);
    }
    room
}

/// Asks for huge pages.
fn advise<T>(room: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        use std::ffi::{c_int, c_void};
        unsafe extern "C" {
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        /// `MADV_HUGEPAGE`.
        const HUGE_PAGES: c_int = 14;
        const HUGE_PAGE: usize = 2 << 20;
        let spare = room.spare_capacity_mut();
        let (start, bytes) = (spare.as_mut_ptr(), size_of_val(spare));
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
    let _ = room;
}

/// `f` of every value, null or not; nulls stay.
pub(super) fn unary<I: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    values: &PrimitiveArray<I>,
    f: impl Fn(I::Native) -> O::Native,
) -> PrimitiveArray<O> {
    let mut out = with_room(values.len());
    out.extend(values.values().iter().map(|v| f(*v)));
    PrimitiveArray::new(out.into(), values.nulls().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_there_and_holds_what_is_written() {
        for n in [0, 1, MAPPED / 8 - 1, MAPPED / 8, MAPPED / 8 + 1, MAPPED / 2 + 12_345] {
            let mut room: Vec<u64> = with_room(n);
            assert!(room.is_empty() && room.capacity() >= n);
            room.extend((0..n as u64).map(|i| i * 7));
            assert!(room.iter().zip(0..).all(|(v, i)| *v == i * 7));
            // What lies in it stays when more is advised behind it.
            advise(&mut room);
            assert_eq!(room.len(), n);
            assert!(room.iter().zip(0..).all(|(v, i)| *v == i * 7));
        }
        assert_eq!(with_room::<()>(usize::MAX).len(), 0);
    }
}
