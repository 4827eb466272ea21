use arrow::array::{Array, ArrowPrimitiveType, PrimitiveArray};

use crate::array::prefetch::request_huge_pages;

/// The largest `mmap` threshold of glibc in bytes. The pages of larger allocations are always
/// freshly mapped. With pages of 4 KiB, filling such an allocation spends half of its time in page
/// faults.
const MIN_MAPPED_BYTES: usize = 32 << 20;

/// Allocates an empty vector for `n` values. Requests huge pages if they take [`MIN_MAPPED_BYTES`]
/// bytes or more; the system may refuse.
pub(super) fn allocate_values<T>(n: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(n);
    if n.saturating_mul(size_of::<T>()) >= MIN_MAPPED_BYTES {
        request_huge_pages(&mut room);
    }
    room
}

/// Applies `f` to every value, also to the arbitrary values that null slots store. Nulls stay null.
pub(super) fn map_values<I: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    values: &PrimitiveArray<I>,
    f: impl Fn(I::Native) -> O::Native,
) -> PrimitiveArray<O> {
    let mut out = allocate_values(values.len());
    out.extend(values.values().iter().map(|v| f(*v)));
    PrimitiveArray::new(out.into(), values.nulls().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_there_and_holds_what_is_written() {
        for n in [
            0,
            1,
            MIN_MAPPED_BYTES / 8 - 1,
            MIN_MAPPED_BYTES / 8,
            MIN_MAPPED_BYTES / 8 + 1,
            MIN_MAPPED_BYTES / 2 + 12_345,
        ] {
            let mut room: Vec<u64> = allocate_values(n);
            assert!(room.is_empty() && room.capacity() >= n);
            room.extend((0..n as u64).map(|i| i * 7));
            assert!(room.iter().zip(0..).all(|(v, i)| *v == i * 7));
        }
        assert_eq!(allocate_values::<()>(usize::MAX).len(), 0);
    }
}
