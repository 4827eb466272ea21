//! Memory for results that are as long as the leaves.

use arrow::array::{Array, ArrowPrimitiveType, PrimitiveArray};

use crate::array::pages::huge_pages;

/// Bytes from which an allocator maps memory anew for every result (glibc's largest threshold). Half of
/// the time of a loop over leaves then goes into pages that the system fills with zeros, four kilobytes
/// at a time.
const MAPPED: usize = 32 << 20;

/// An empty vector with room for `n` values, in huge pages where it is large and the system has them.
pub(super) fn with_room<T>(n: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(n);
    if n.saturating_mul(size_of::<T>()) >= MAPPED {
        huge_pages(&mut room);
    }
    room
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
        }
        assert_eq!(with_room::<()>(usize::MAX).len(), 0);
    }
}
