//! Bit maps read as words, and set bits counted up to any position.

use std::sync::OnceLock;

use arrow::array::OffsetSizeTrait;
use arrow::buffer::{BooleanBuffer, MutableBuffer, ScalarBuffer};

/// A bit map, with the number of set bits before every word of it.
#[derive(Debug)]
pub(crate) struct Rank {
    bits: BooleanBuffer,
    /// The end of the map and zeros behind it.
    last: [u8; LAST],
    /// What follows is made when it is asked for.
    words: OnceLock<ScalarBuffer<u64>>,
    /// One more than there are words, so that the end is a position like any other.
    before: OnceLock<Vec<usize>>,
}

impl Rank {
    pub(crate) fn new(bits: &BooleanBuffer) -> Self {
        let mut last = [0; LAST];
        let bytes = map_bytes(bits);
        let end = &bytes[bytes.len().saturating_sub(SPAN)..];
        last[..end.len()].copy_from_slice(end);
        let past = (bits.offset() + bits.len()) % 8;
        if past > 0 && !end.is_empty() {
            last[end.len() - 1] &= u8::MAX >> (8 - past);
        }
        Self { bits: bits.clone(), last, words: OnceLock::new(), before: OnceLock::new() }
    }

    /// Words from any position, read where they lie.
    pub(crate) fn bits(&self) -> Words<'_> {
        let bytes = map_bytes(&self.bits);
        Words {
            bytes: &bytes[..bytes.len().saturating_sub(1)],
            last: &self.last,
            shift: self.bits.offset() % 8,
        }
    }

    /// The words of the map in a row, bits past the end unset.
    pub(crate) fn words(&self) -> &[u64] {
        self.words.get_or_init(|| words_of(self))
    }

    /// Set bits in all.
    pub(crate) fn total(&self) -> usize {
        self.before().last().copied().unwrap_or(0)
    }

    fn before(&self) -> &[usize] {
        self.before.get_or_init(|| before(self.words()))
    }

    /// Set bits before position `at`, which is at most the length of the map.
    pub(crate) fn rank(&self, at: usize) -> usize {
        rank(self.words(), self.before(), at)
    }

    /// Set bits before each of `positions`, counted from the first of them.
    pub(crate) fn ranks<O: OffsetSizeTrait>(&self, positions: &[O]) -> Vec<O> {
        #[inline(always)]
        fn each<O: OffsetSizeTrait>(words: &[u64], before: &[usize], positions: &[O]) -> Vec<O> {
            let base = positions.first().map_or(0, |first| first.as_usize());
            let mut out = vec![O::default(); positions.len()];
            for i in 0..out.len().min(positions.len()) {
                // No more bits are set than there are positions.
                out[i] = O::usize_as(rank(words, before, positions[i].as_usize() - base));
            }
            out
        }
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn wide<O: OffsetSizeTrait>(
                words: &[u64],
                before: &[usize],
                positions: &[O],
            ) -> Vec<O> {
                each(words, before, positions)
            }
            if has_avx2() {
                // SAFETY: the processor has what the function was compiled for.
                return unsafe { wide(self.words(), self.before(), positions) };
            }
        }
        each(self.words(), self.before(), positions)
    }
}

/// The bytes that a map has bits in.
#[inline(always)]
fn map_bytes(bits: &BooleanBuffer) -> &[u8] {
    let end = (bits.offset() + bits.len()).div_ceil(8);
    &bits.values()[bits.offset() / 8..end]
}

/// Set bits before position `at` of a map of `words`, before which so many are set each.
#[inline(always)]
fn rank(words: &[u64], before: &[usize], at: usize) -> usize {
    let (word, bit) = (at / 64, at % 64);
    let bits = if word < words.len() { words[word] & ((1u64 << bit) - 1) } else { 0 };
    before[word] + bits.count_ones() as usize
}

/// Bytes that the bits of a word are in, wherever it begins.
const SPAN: usize = size_of::<u64>() + 1;

/// Bytes from which every word is read that one of the last bytes of a map is part of.
const LAST: usize = 2 * SPAN;

/// The words of a bit map where it lies, from any position on.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    /// All bytes of the map but the last, in which others' bits may follow.
    bytes: &'a [u8],
    last: &'a [u8; LAST],
    /// Bits of the first byte that come before the map.
    shift: usize,
}

impl Words<'_> {
    /// The 64 bits from position `at` on, the first one the lowest; bits past the end are unset.
    #[inline(always)]
    pub(crate) fn at(self, at: usize) -> u64 {
        let at = at + self.shift;
        let (byte, bit) = (at / 8, at % 8);
        let span = match self.bytes.get(byte..byte + SPAN) {
            Some(span) => span,
            None => {
                let begun = (self.bytes.len() + 1).saturating_sub(SPAN);
                let byte = byte - begun;
                let Some(span) = self.last.get(byte..byte + SPAN) else { return 0 };
                span
            }
        };
        let (Some(word), Some(next)) = (span.first_chunk(), span.last_chunk()) else {
            return 0;
        };
        // What the one lacks the other has, a byte further. (Bits shifted across two words take longer.)
        u64::from_le_bytes(*word) >> bit | u64::from_le_bytes(*next) >> bit << 8
    }
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
impl Words<'_> {
    /// Positions before which [`at_within`](Self::at_within) may be asked.
    #[inline(always)]
    pub(crate) fn reach(self) -> usize {
        (self.bytes.len().saturating_sub(size_of::<u64>()) * 8).saturating_sub(self.shift)
    }

    /// As [`at`](Self::at).
    ///
    /// # Safety
    /// `at` is before [`reach`](Self::reach).
    #[inline(always)]
    pub(crate) unsafe fn at_within(self, at: usize) -> u64 {
        let at = at + self.shift;
        let (byte, bit) = (at / 8, at % 8);
        // SAFETY: nine bytes may be read from there, as a position before the reach is in a byte that eight
        // of all bytes follow.
        let (word, next) = unsafe {
            let from = self.bytes.as_ptr().add(byte);
            (&*from.cast::<[u8; 8]>(), &*from.add(1).cast::<[u8; 8]>())
        };
        u64::from_le_bytes(*word) >> bit | u64::from_le_bytes(*next) >> bit << 8
    }
}

/// The words of a bit map in a row, the first bit the lowest, bits past the end unset: those of the map
/// itself where it begins and ends with a word.
pub(crate) fn words(bits: &BooleanBuffer) -> ScalarBuffer<u64> {
    words_of(&Rank::new(bits))
}

fn words_of(rank: &Rank) -> ScalarBuffer<u64> {
    let (bits, len) = (&rank.bits, rank.bits.len());
    let count = len.div_ceil(64);
    let last = if len.is_multiple_of(64) { u64::MAX } else { u64::MAX >> (64 - len % 64) };
    if cfg!(target_endian = "little") && bits.offset().is_multiple_of(64) {
        let (start, bytes) = (bits.offset() / 8, count * size_of::<u64>());
        let whole = bits.inner().len() >= start + bytes;
        if whole && bits.inner()[start..].as_ptr().cast::<u64>().is_aligned() {
            let words = ScalarBuffer::new(bits.inner().clone(), bits.offset() / 64, count);
            if words.last().is_none_or(|word| word & !last == 0) {
                return words;
            }
        }
    }
    let of = rank.bits();
    if of.shift == 0 && cfg!(target_endian = "little") {
        let mut bytes = MutableBuffer::from_len_zeroed(count * size_of::<u64>());
        bytes[..of.bytes.len()].copy_from_slice(of.bytes);
        if let Some(word) = bytes.typed_data_mut::<u64>().last_mut() {
            *word = of.at((count - 1) * 64);
        }
        return ScalarBuffer::new(bytes.into(), 0, count);
    }
    let mut words = Vec::with_capacity(count);
    for word in 0..count {
        words.push(of.at(word * 64));
    }
    words.into()
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

/// How many bits are set before every word, and in all.
fn before(words: &[u64]) -> Vec<usize> {
    #[inline(always)]
    fn counted(words: &[u64]) -> Vec<usize> {
        let mut out = Vec::with_capacity(words.len() + 1);
        let mut sum = 0;
        for word in words {
            out.push(sum);
            sum += word.count_ones() as usize;
        }
        out.push(sum);
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

/// Whether the processor moves bytes and values of 16 bits in 512-bit registers by masks, too.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_vbmi2() -> bool {
    has_avx512() && is_x86_feature_detected!("avx512vbmi2")
}

/// That the processor has registers of 512 bits: there is none of it elsewhere.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) struct Wide(());

#[cfg(target_arch = "x86_64")]
impl Wide {
    #[inline]
    pub(crate) fn here() -> Option<Self> {
        has_avx512().then_some(Self(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_any_position() {
        let bits: Vec<bool> = (0..400u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 30 > 0).collect();
        let map = BooleanBuffer::from(bits.clone());
        for start in (0..70).step_by(3) {
            for len in (0..75).chain([127, 128, 129, 200, 256, 300]) {
                let rank = Rank::new(&map.slice(start, len));
                let words = rank.bits();
                let expected = |at: usize| {
                    let here = bits[start..start + len].iter().skip(at).take(64);
                    here.enumerate().fold(0u64, |word, (i, b)| word | u64::from(*b) << i)
                };
                for at in 0..len + 80 {
                    assert_eq!(words.at(at), expected(at), "{start} {len} {at}");
                }
                // All but those near the end are read without a look at it.
                assert!(words.reach() + 80 >= len && words.reach() <= len);
                for at in 0..words.reach() {
                    // SAFETY: before the reach.
                    assert_eq!(unsafe { words.at_within(at) }, expected(at));
                }
                let row: Vec<u64> = (0..len.div_ceil(64)).map(|i| expected(i * 64)).collect();
                assert_eq!(rank.words(), row);
            }
        }
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
                assert_eq!(rank.bits().at(at) >> i & 1 == 1, *expected);
            }
        }
        for (start, len) in [(0, 285), (3, 64), (8, 0), (3, 130), (11, 100), (8, 64), (200, 85)] {
            let part = map.slice(start, len);
            assert!(
                words(&part)
                    .iter()
                    .copied()
                    .eq(part.bit_chunks().iter_padded().take(len.div_ceil(64)))
            );
            let rank = Rank::new(&part);
            assert_eq!(rank.words(), &words(&part)[..]);
            assert_eq!(rank.total(), part.count_set_bits());
            assert_eq!(rank.bits().at((len.div_ceil(64) + 1) * 64), 0);
        }
        // Of a map that is made of words, whole and in part.
        let whole = BooleanBuffer::new(vec![u64::MAX, 0b1011, 1 << 63].into(), 0, 192);
        for (start, len) in [(0, 192), (64, 128), (64, 64), (0, 130), (0, 127), (128, 64), (3, 128)]
        {
            let part = whole.slice(start, len);
            let expected: Vec<u64> =
                part.bit_chunks().iter_padded().take(len.div_ceil(64)).collect();
            assert_eq!(words(&part)[..], expected, "{start} {len}");
            let shared = start % 64 == 0 && len % 64 == 0;
            let at = words(&part).as_ptr().cast::<u8>();
            // A map whose last word has nothing set behind its end is as good as whole.
            assert_eq!(at == whole.values()[start / 8..].as_ptr(), shared || len == 127);
        }
        assert_eq!(rank.bits().at(285), 0);
        assert_eq!(Rank::new(&BooleanBuffer::new_unset(0)).rank(0), 0);
        assert_eq!(Rank::new(&BooleanBuffer::new_set(128)).rank(128), 128);
    }
}
