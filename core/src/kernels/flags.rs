//! Tests a predicate on each value of a slice, and packs the results into a bitmap.

use arrow::buffer::{BooleanBuffer, Buffer};

#[cfg(target_arch = "x86_64")]
use super::simd::Avx2;
use super::simd::for_avx2;

pub(super) const WORD: usize = 64;

/// A predicate on a value. This is a trait instead of `Fn(T) -> bool`, because the compiler might
/// not inline a closure in AVX2 functions.
pub(super) trait ValuePredicate<T>: Copy {
    fn holds(self, value: T) -> bool;
}

pub(super) fn collect_flags<T: Copy + Default, Q: ValuePredicate<T>>(
    values: &[T],
    predicate: Q,
) -> BooleanBuffer {
    BooleanBuffer::new(Buffer::from_vec(dispatch_words(values, predicate)), 0, values.len())
}

fn dispatch_words<T: Copy + Default, Q: ValuePredicate<T>>(values: &[T], predicate: Q) -> Vec<u64> {
    for_avx2!(
        fn[T: Copy + Default, Q: ValuePredicate<T>](values: &[T], predicate: Q) -> Vec<u64> =
            collect_words(values, predicate, Avx2::new()),
        else collect_words(values, predicate, PortablePack)
    )
}

#[inline(always)]
fn collect_words<T: Copy + Default, Q: ValuePredicate<T>>(
    values: &[T],
    predicate: Q,
    pack: impl PackFlags,
) -> Vec<u64> {
    let mut out = Vec::with_capacity(values.len().div_ceil(WORD));
    let (chunks, rest) = values.as_chunks::<WORD>();
    for chunk in chunks {
        out.push(collect_word(chunk, predicate, pack).to_le());
    }
    if !rest.is_empty() {
        let mut chunk = [T::default(); WORD];
        chunk[..rest.len()].copy_from_slice(rest);
        let mask = u64::MAX >> (WORD - rest.len());
        out.push((collect_word(&chunk, predicate, pack) & mask).to_le());
    }
    out
}

#[inline(always)]
fn collect_word<T: Copy, Q: ValuePredicate<T>>(
    values: &[T; WORD],
    predicate: Q,
    pack: impl PackFlags,
) -> u64 {
    let mut flags = [0u8; WORD];
    // Loop over indices, because the compiler might not inline the closures of a zip.
    for i in 0..WORD {
        flags[i] = u8::from(predicate.holds(values[i]));
    }
    pack.pack_flags(&flags)
}

/// Packs 64 bytes that are 0 or 1 into the bits of a word, the first byte into the lowest bit.
pub(super) trait PackFlags: Copy {
    fn pack_flags(self, flags: &[u8; WORD]) -> u64;
}

#[derive(Clone, Copy)]
pub(super) struct PortablePack;

impl PackFlags for PortablePack {
    #[inline(always)]
    fn pack_flags(self, flags: &[u8; WORD]) -> u64 {
        let mut word = 0;
        for (i, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
            // The multiplication gathers the lowest bits of eight bytes in the highest byte.
            let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            word |= bits << (8 * i);
        }
        word
    }
}

#[cfg(target_arch = "x86_64")]
impl PackFlags for Avx2 {
    #[inline(always)]
    fn pack_flags(self, flags: &[u8; WORD]) -> u64 {
        self.pack_bytes(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct HasRemainderOne(u32);

    impl ValuePredicate<u32> for HasRemainderOne {
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
            assert_eq!(PortablePack.pack_flags(&bytes), expected);
            #[cfg(target_arch = "x86_64")]
            if let Some(token) = Avx2::try_new() {
                assert_eq!(token.pack_flags(&bytes), expected);
            }
        }
    }

    #[test]
    fn every_length_around_words() {
        for len in [0, 1, 7, 63, 64, 65, 127, 128, 200] {
            let values: Vec<u32> =
                (0u32..len).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();
            for by in [2, 3, 5] {
                let got = collect_flags(&values, HasRemainderOne(by));
                assert_eq!(got.len(), values.len());
                for (i, v) in values.iter().enumerate() {
                    assert_eq!(got.value(i), v % by == 1, "{i} of {len}");
                }
                assert_eq!(got.count_set_bits(), values.iter().filter(|v| *v % by == 1).count());
            }
        }
    }
}
