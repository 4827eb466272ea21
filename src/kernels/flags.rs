//! One bit per value, 64 at a time.

use arrow::buffer::{BooleanBuffer, Buffer};

/// Values that make a word of bits.
pub(super) const WORD: usize = 64;

/// What is asked of a value. (A closure may stay a call in functions compiled for wider registers.)
pub(super) trait Question<T>: Copy {
    fn holds(self, value: T) -> bool;
}

/// A bit for every value: whether `question` holds.
pub(super) fn flags<T: Copy + Default, Q: Question<T>>(values: &[T], question: Q) -> BooleanBuffer {
    BooleanBuffer::new(Buffer::from_vec(dispatched(values, question)), 0, values.len())
}

/// With the widest registers that the processor has.
fn dispatched<T: Copy + Default, Q: Question<T>>(values: &[T], question: Q) -> Vec<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide<T: Copy + Default, Q: Question<T>>(values: &[T], question: Q) -> Vec<u64> {
            // SAFETY: this is compiled for AVX2, and runs where it is.
            unsafe { words::<T, Q, true>(values, question) }
        }
        if super::bits::has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide(values, question) };
        }
    }
    // SAFETY: without wide registers nothing is asked of the processor.
    unsafe { words::<T, Q, false>(values, question) }
}

/// # Safety
/// As [`packed`].
#[inline(always)]
unsafe fn words<T: Copy + Default, Q: Question<T>, const WIDE: bool>(
    values: &[T],
    question: Q,
) -> Vec<u64> {
    let mut out = Vec::with_capacity(values.len().div_ceil(WORD));
    let (chunks, rest) = values.as_chunks::<WORD>();
    for chunk in chunks {
        // SAFETY: as the caller says.
        out.push(unsafe { word::<T, Q, WIDE>(chunk, question) }.to_le());
    }
    if !rest.is_empty() {
        let mut chunk = [T::default(); WORD];
        chunk[..rest.len()].copy_from_slice(rest);
        let mask = u64::MAX >> (WORD - rest.len());
        // SAFETY: as the caller says.
        out.push((unsafe { word::<T, Q, WIDE>(&chunk, question) } & mask).to_le());
    }
    out
}

/// # Safety
/// As [`packed`].
#[inline(always)]
unsafe fn word<T: Copy, Q: Question<T>, const WIDE: bool>(values: &[T; WORD], question: Q) -> u64 {
    let mut flags = [0u8; WORD];
    // By number: a zip stays a call for every word, as closures do.
    for i in 0..WORD {
        flags[i] = u8::from(question.holds(values[i]));
    }
    // SAFETY: as the caller says.
    unsafe { packed::<WIDE>(&flags) }
}

/// Bytes that are 0 or 1 as bits, the first the lowest.
///
/// # Safety
/// With `WIDE`, the processor has AVX2.
#[inline(always)]
pub(super) unsafe fn packed<const WIDE: bool>(flags: &[u8; WORD]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: the processor has AVX2, as the caller says.
        return unsafe { packed_wide(flags) };
    }
    let mut word = 0;
    for (i, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The lowest bits of eight bytes, side by side in the highest.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= bits << (8 * i);
    }
    word
}

/// As [`packed`], on any processor.
pub(super) fn packed_anywhere(flags: &[u8; WORD]) -> u64 {
    // SAFETY: without wide registers nothing is asked of the processor.
    unsafe { packed::<false>(flags) }
}

/// As [`packed`], 32 bytes in one step.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn packed_wide(flags: &[u8; WORD]) -> u64 {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_slli_epi16};
    let half = |at: usize| {
        // SAFETY: both halves lie within the 64 bytes.
        let bytes = unsafe { _mm256_loadu_si256(flags.as_ptr().add(at).cast::<__m256i>()) };
        // The lowest bit of every byte becomes its highest, which is the one taken.
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

    impl Question<u32> for Divides {
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
            assert_eq!(packed_anywhere(&bytes), expected);
            #[cfg(target_arch = "x86_64")]
            if crate::kernels::bits::has_avx2() {
                // SAFETY: the processor has the registers.
                assert_eq!(unsafe { packed_wide(&bytes) }, expected);
            }
        }
    }

    #[test]
    fn every_length_around_words() {
        for len in [0, 1, 7, 63, 64, 65, 127, 128, 200] {
            let values: Vec<u32> =
                (0u32..len).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();
            for by in [2, 3, 5] {
                let got = flags(&values, Divides(by));
                assert_eq!(got.len(), values.len());
                for (i, v) in values.iter().enumerate() {
                    assert_eq!(got.value(i), v % by == 1, "{i} of {len}");
                }
                assert_eq!(got.count_set_bits(), values.iter().filter(|v| *v % by == 1).count());
            }
        }
    }
}
