//! Counting set bits up to any position of a bit map.

use arrow::buffer::BooleanBuffer;

/// A bit map aligned to words, with the number of set bits before every word.
#[derive(Debug)]
pub(crate) struct Rank {
    words: Vec<u64>,
    before: Vec<usize>,
}

impl Rank {
    pub(crate) fn new(bits: &BooleanBuffer) -> Self {
        let mut words = words(bits);
        // One more than needed, so that the end is a position like any other.
        words.push(0);
        Self { before: before(&words), words }
    }

    /// Set bits before position `at`, which is at most the length of the map.
    #[inline]
    pub(crate) fn rank(&self, at: usize) -> usize {
        let (word, bit) = (at / 64, at % 64);
        self.before[word] + (self.words[word] & ((1u64 << bit) - 1)).count_ones() as usize
    }

    /// The 64 bits from position `at` on, bits past the end unset.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> u64 {
        let (word, bit) = (at / 64, at % 64);
        let low = if word < self.words.len() { self.words[word] >> bit } else { 0 };
        if word + 1 >= self.words.len() {
            return low;
        }
        // In two steps, as nothing of the next word is wanted where the position is that of a word.
        low | self.words[word + 1] << 1 << (63 - bit)
    }
}

/// The words of a bit map, the first bit the lowest, bits past the end unset.
pub(crate) fn words(bits: &BooleanBuffer) -> Vec<u64> {
    let mut words = Vec::with_capacity(bits.len() / 64 + 2);
    if !bits.offset().is_multiple_of(8) {
        words.extend(bits.bit_chunks().iter_padded().take(bits.len().div_ceil(64)));
        return words;
    }
    let bytes = &bits.values()[bits.offset() / 8..(bits.offset() + bits.len()).div_ceil(8)];
    let (chunks, rest) = bytes.as_chunks::<8>();
    words.extend(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)));
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words.push(u64::from_le_bytes(last));
    }
    if !bits.len().is_multiple_of(64)
        && let Some(last) = words.last_mut()
    {
        *last &= u64::MAX >> (64 - bits.len() % 64);
    }
    words
}

/// How many bits are set.
pub(crate) fn ones(words: &[u64]) -> usize {
    #[inline(always)]
    fn counted(words: &[u64]) -> usize {
        words.iter().map(|word| word.count_ones() as usize).sum()
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide(words: &[u64]) -> usize {
            counted(words)
        }
        if has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide(words) };
        }
    }
    counted(words)
}

/// How many bits are set before every word.
fn before(words: &[u64]) -> Vec<usize> {
    #[inline(always)]
    fn counted(words: &[u64]) -> Vec<usize> {
        let mut out = Vec::with_capacity(words.len());
        let mut sum = 0;
        for word in words {
            out.push(sum);
            sum += word.count_ones() as usize;
        }
        out
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide(words: &[u64]) -> Vec<usize> {
            counted(words)
        }
        if has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide(words) };
        }
    }
    counted(words)
}

/// Whether the processor has 256-bit registers and the instructions that came with them.
///
/// What is compiled for every processor of the kind uses half of them; a loop over leaves is compiled a
/// second time for those that have more.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    // One load each: the standard library asks the processor once.
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Whether the processor has 512-bit registers, with masks of their lanes, too.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
}

/// Bytes that are asked for ahead of those that are read. Where short lists are read, the processor
/// foresees the end of a list wrongly all the time and forgets what it asked for behind it.
const AHEAD: usize = 4096;

/// Asks for memory some way behind value `at`, wherever that is.
#[inline(always)]
pub(crate) fn ask_ahead<T>(values: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let bytes = at.wrapping_mul(size_of::<T>()).wrapping_add(AHEAD);
        let place = values.as_ptr().cast::<i8>().wrapping_add(bytes);
        // SAFETY: a hint, which reads nothing and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, at);
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
        }
        assert_eq!(values, [1, 2, 3]);
    }

    #[test]
    fn ranks_and_words_of_a_sliced_map() {
        let bits: Vec<bool> = (0..300).map(|i| i % 3 == 0 || i % 7 == 2).collect();
        let bits = &bits[5..290];
        let map =
            BooleanBuffer::from((0..300).map(|i| i % 3 == 0 || i % 7 == 2).collect::<Vec<bool>>())
                .slice(5, 285);
        let rank = Rank::new(&map);
        for at in 0..=285 {
            assert_eq!(rank.rank(at), bits[..at].iter().filter(|b| **b).count());
            for (i, expected) in bits[at..].iter().take(64).enumerate() {
                assert_eq!(rank.word(at) >> i & 1 == 1, *expected);
            }
        }
        for (start, len) in [(0, 285), (3, 64), (8, 0), (3, 130), (11, 100), (8, 64), (200, 85)] {
            let part = map.slice(start, len);
            assert!(
                words(&part).into_iter().eq(part.bit_chunks().iter_padded().take(len.div_ceil(64)))
            );
        }
        assert_eq!(rank.word(285), 0);
        assert_eq!(Rank::new(&BooleanBuffer::new_unset(0)).rank(0), 0);
        assert_eq!(Rank::new(&BooleanBuffer::new_set(128)).rank(128), 128);
    }
}
