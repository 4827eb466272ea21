//! Bitmaps from predicates: one bit per value, 64 at a time.

use arrow::buffer::{BooleanBuffer, Buffer};

use super::bits::for_avx2;

pub(super) const WORD: usize = 64;

/// A predicate on values. (A closure may not be inlined in functions compiled for wider registers.)
pub(super) trait Predicate<T>: Copy {
    fn holds(self, value: T) -> bool;
}

/// Returns a bitmap with one bit per value: whether `predicate` holds.
pub(super) fn collect_flags<T: Copy + Default, Q: Predicate<T>>(
    values: &[T],
    predicate: Q,
) -> BooleanBuffer {
    BooleanBuffer::new(Buffer::from_vec(dispatch_words(values, predicate)), 0, values.len())
}

fn dispatch_words<T: Copy + Default, Q: Predicate<T>>(values: &[T], predicate: Q) -> Vec<u64> {
    for_avx2!(
        fn[T: Copy + Default, Q: Predicate<T>](values: &[T], predicate: Q) -> Vec<u64> = {
            // SAFETY: this function is compiled with AVX2.
            unsafe { collect_words::<T, Q, true>(values, predicate) }
        },
        else {
            // SAFETY: without `WIDE` the function needs no CPU features.
            unsafe { collect_words::<T, Q, false>(values, predicate) }
        }
    )
}

/// # Safety
/// Same as [`pack_flags`].
#[inline(always)]
unsafe fn collect_words<T: Copy + Default, Q: Predicate<T>, const WIDE: bool>(
    values: &[T],
    predicate: Q,
) -> Vec<u64> {
    let mut out = Vec::with_capacity(values.len().div_ceil(WORD));
    let (chunks, rest) = values.as_chunks::<WORD>();
    for chunk in chunks {
        // SAFETY: with `WIDE` the caller ensures AVX2.
        out.push(unsafe { collect_word::<T, Q, WIDE>(chunk, predicate) }.to_le());
    }
    if !rest.is_empty() {
        let mut chunk = [T::default(); WORD];
        chunk[..rest.len()].copy_from_slice(rest);
        let mask = u64::MAX >> (WORD - rest.len());
        // SAFETY: with `WIDE` the caller ensures AVX2.
        out.push((unsafe { collect_word::<T, Q, WIDE>(&chunk, predicate) } & mask).to_le());
    }
    out
}

/// # Safety
/// Same as [`pack_flags`].
#[inline(always)]
unsafe fn collect_word<T: Copy, Q: Predicate<T>, const WIDE: bool>(
    values: &[T; WORD],
    predicate: Q,
) -> u64 {
    let mut flags = [0u8; WORD];
    // An index loop, because the closures of a zip may not be inlined.
    for i in 0..WORD {
        flags[i] = u8::from(predicate.holds(values[i]));
    }
    // SAFETY: with `WIDE` the caller ensures AVX2.
    unsafe { pack_flags::<WIDE>(&flags) }
}

/// Packs bytes that are 0 or 1 into bits, the first byte lowest.
///
/// # Safety
/// The CPU must support AVX2 if `WIDE` is set.
#[inline(always)]
pub(super) unsafe fn pack_flags<const WIDE: bool>(flags: &[u8; WORD]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: with `WIDE` the caller ensures AVX2.
        return unsafe { pack_flags_avx2(flags) };
    }
    let mut word = 0;
    for (i, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The multiplication gathers the lowest bits of eight bytes in the highest byte.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= bits << (8 * i);
    }
    word
}

/// Packs like [`pack_flags`], on any CPU.
pub(super) fn pack_flags_portable(flags: &[u8; WORD]) -> u64 {
    // SAFETY: without `WIDE` the function needs no CPU features.
    unsafe { pack_flags::<false>(flags) }
}

/// Packs like [`pack_flags`], 32 bytes per step.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn pack_flags_avx2(flags: &[u8; WORD]) -> u64 {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_slli_epi16};
    let half = |at: usize| {
        // SAFETY: both halves lie within the 64 bytes.
        let bytes = unsafe { _mm256_loadu_si256(flags.as_ptr().add(at).cast::<__m256i>()) };
        // `movemask` takes the highest bit of every byte, so shift the lowest bit there.
        let bits = _mm256_movemask_epi8(_mm256_slli_epi16::<7>(bytes));
        u64::from(bits.cast_unsigned())
    };
    half(0) | half(32) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Divides(u32);

    impl Predicate<u32> for Divides {
        fn holds(self, value: u32) -> bool {
            value % self.0 == 1
        }
    }

    #[test]
    fn bytes_are_packed_the_same_way_in_both_ways() {
        let mut state = 1u64;
        for _ in 0..100 {
            let mut bytes = [0u8; WORD];
            let mut expected = 0u64;
            for (i, byte) in bytes.iter_mut().enumerate() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = u8::from(state >> 60 > 7);
                expected |= u64::from(*byte) << i;
            }
            assert_eq!(pack_flags_portable(&bytes), expected);
            #[cfg(target_arch = "x86_64")]
            if crate::kernels::bits::has_avx2() {
                // SAFETY: `has_avx2` checked the enabled features.
                assert_eq!(unsafe { pack_flags_avx2(&bytes) }, expected);
            }
        }
    }

    #[test]
    fn every_length_around_words() {
        for len in [0, 1, 7, 63, 64, 65, 127, 128, 200] {
            let values: Vec<u32> =
                (0u32..len).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();
            for by in [2, 3, 5] {
                let got = collect_flags(&values, Divides(by));
                assert_eq!(got.len(), values.len());
                for (i, v) in values.iter().enumerate() {
                    assert_eq!(got.value(i), v % by == 1, "{i} of {len}");
                }
                assert_eq!(got.count_set_bits(), values.iter().filter(|v| *v % by == 1).count());
            }
        }
    }
}
