//! Bitmaps as 64-bit words: reads at any bit offset, counts and ranks.

use std::sync::OnceLock;

use arrow::array::OffsetSizeTrait;
use arrow::buffer::{BooleanBuffer, MutableBuffer, ScalarBuffer};

use super::simd::for_avx2;

/// A bitmap with ranks: the number of set bits before each of its 64-bit words.
#[derive(Debug)]
pub(crate) struct RankedBitmap {
    bits: BooleanBuffer,
    /// The last bytes of the bitmap (at most [`SPAN`]), padded with zeros, because a read of 64
    /// bits near the end would go past the end of the bitmap.
    last: [u8; LAST],
    words: OnceLock<ScalarBuffer<u64>>,
    /// `before[i]` is the number of set bits before word `i`; the last entry is the number of all
    /// set bits.
    before: OnceLock<Vec<usize>>,
}

impl RankedBitmap {
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

    pub(crate) fn bits(&self) -> BitWords<'_> {
        let bytes = map_bytes(&self.bits);
        BitWords {
            bytes: &bytes[..bytes.len().saturating_sub(1)],
            last: &self.last,
            bit_offset: self.bits.offset() % 8,
        }
    }

    pub(crate) fn words(&self) -> &[u64] {
        self.words.get_or_init(|| collect_words(self))
    }

    pub(crate) fn total(&self) -> usize {
        self.before().last().copied().unwrap_or(0)
    }

    fn before(&self) -> &[usize] {
        self.before.get_or_init(|| count_before_words(self.words()))
    }

    pub(crate) fn count_before(&self, at: usize) -> usize {
        rank_at(self.words(), self.before(), at)
    }

    /// Returns the number of set bits before each of `positions`, which are offsets of lists.
    /// Offset `positions[0]` stands for bit 0 of the bitmap, because the offsets of a slice need
    /// not start at 0.
    pub(crate) fn count_before_each<O: OffsetSizeTrait>(&self, positions: &[O]) -> Vec<O> {
        #[inline(always)]
        fn rank_each<O: OffsetSizeTrait>(
            words: &[u64],
            before: &[usize],
            positions: &[O],
        ) -> Vec<O> {
            let base = positions.first().map_or(0, |first| first.as_usize());
            let mut out = vec![O::default(); positions.len()];
            for i in 0..out.len().min(positions.len()) {
                // The number of set bits is at most the position, so it fits `O`, the type of the
                // positions.
                out[i] = O::usize_as(rank_at(words, before, positions[i].as_usize() - base));
            }
            out
        }
        let (words, before) = (self.words(), self.before());
        for_avx2!(fn[O: OffsetSizeTrait](words: &[u64], before: &[usize], positions: &[O]) -> Vec<O>
            = rank_each(words, before, positions))
    }
}

#[inline(always)]
fn map_bytes(bits: &BooleanBuffer) -> &[u8] {
    let end = (bits.offset() + bits.len()).div_ceil(8);
    &bits.values()[bits.offset() / 8..end]
}

#[inline(always)]
fn rank_at(words: &[u64], before: &[usize], at: usize) -> usize {
    let (word, bit) = (at / 64, at % 64);
    let bits = if word < words.len() { words[word] & ((1u64 << bit) - 1) } else { 0 };
    before[word] + bits.count_ones() as usize
}

/// Maximum number of bytes that 64 adjacent bits touch, because the first bit may be inside a byte.
const SPAN: usize = size_of::<u64>() + 1;

/// Size of [`RankedBitmap::last`]: a read of `SPAN` bytes can begin at each of its first `SPAN`
/// bytes, which are bytes of the bitmap.
const LAST: usize = 2 * SPAN;

/// A bitmap from which 64 bits can be read at any bit offset.
#[derive(Clone, Copy)]
pub(crate) struct BitWords<'a> {
    /// The bytes of the bitmap without the last byte, which is in `last`.
    bytes: &'a [u8],
    last: &'a [u8; LAST],
    bit_offset: usize,
}

impl BitWords<'_> {
    /// Returns 64 bits of the bitmap, with bit `at` as the lowest bit; bits past the end are 0.
    #[inline(always)]
    pub(crate) fn load_bits(self, at: usize) -> u64 {
        let at = at + self.bit_offset;
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
        // `next` has the up to seven high bits that `word >> bit` lacks. Funnel shifts take longer.
        u64::from_le_bytes(*word) >> bit | u64::from_le_bytes(*next) >> bit << 8
    }
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
impl BitWords<'_> {
    /// Returns the exclusive upper bound of the bit indices that
    /// [`load_bits_unchecked`](Self::load_bits_unchecked) accepts.
    #[inline(always)]
    pub(crate) fn reach(self) -> usize {
        (self.bytes.len().saturating_sub(size_of::<u64>()) * 8).saturating_sub(self.bit_offset)
    }

    /// Returns bits like [`load_bits`](Self::load_bits), without bounds checks.
    ///
    /// # Safety
    /// `at` must be less than [`reach`](Self::reach).
    #[inline(always)]
    pub(crate) unsafe fn load_bits_unchecked(self, at: usize) -> u64 {
        let at = at + self.bit_offset;
        let (byte, bit) = (at / 8, at % 8);
        // SAFETY: `at` is less than `reach`, so at least eight bytes follow the byte that contains
        // bit `at`.
        let (word, next) = unsafe {
            let from = self.bytes.as_ptr().add(byte);
            (&*from.cast::<[u8; 8]>(), &*from.add(1).cast::<[u8; 8]>())
        };
        u64::from_le_bytes(*word) >> bit | u64::from_le_bytes(*next) >> bit << 8
    }
}

/// Validity of leaves: a bitmap or [`AllValid`]. Generic code is compiled separately for each.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) trait Validity: Copy {
    const ALL: bool;

    /// Returns the validity bits of the leaves `at..end` (at most 64), the first leaf in the lowest
    /// bit.
    fn load_valid(self, at: usize, end: usize) -> u64;
    /// Returns the exclusive upper bound of `at` in [`load_valid_within`](Self::load_valid_within).
    fn reach(self) -> usize;
    /// Like [`load_valid`](Self::load_valid), without bounds checks.
    ///
    /// # Safety
    /// `at` is less than [`reach`](Self::reach).
    unsafe fn load_valid_within(self, at: usize, end: usize) -> u64;
}

#[derive(Clone, Copy)]
pub(crate) struct AllValid;

impl Validity for AllValid {
    const ALL: bool = true;

    #[inline(always)]
    fn load_valid(self, at: usize, end: usize) -> u64 {
        let n = end - at;
        if n < 64 { (1 << n) - 1 } else { u64::MAX }
    }

    #[inline(always)]
    fn reach(self) -> usize {
        usize::MAX
    }

    #[inline(always)]
    unsafe fn load_valid_within(self, at: usize, end: usize) -> u64 {
        self.load_valid(at, end)
    }
}

impl Validity for BitWords<'_> {
    const ALL: bool = false;

    #[inline(always)]
    fn load_valid(self, at: usize, end: usize) -> u64 {
        AllValid.load_valid(at, end) & self.load_bits(at)
    }

    #[inline(always)]
    fn reach(self) -> usize {
        BitWords::reach(self)
    }

    #[inline(always)]
    unsafe fn load_valid_within(self, at: usize, end: usize) -> u64 {
        // SAFETY: the caller ensures that `at` is less than `reach`.
        AllValid.load_valid(at, end) & unsafe { self.load_bits_unchecked(at) }
    }
}

/// Converts a bitmap to words: its first bit is the lowest bit of the first word, and bits past the
/// end are 0. Shares the buffer if the bitmap starts at an aligned word, and no bits after the
/// bitmap are set in its last word.
pub(crate) fn align_words(bits: &BooleanBuffer) -> ScalarBuffer<u64> {
    collect_words(&RankedBitmap::new(bits))
}

fn collect_words(rank: &RankedBitmap) -> ScalarBuffer<u64> {
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
    let unaligned = rank.bits();
    if unaligned.bit_offset == 0 && cfg!(target_endian = "little") {
        let mut bytes = MutableBuffer::from_len_zeroed(count * size_of::<u64>());
        bytes[..unaligned.bytes.len()].copy_from_slice(unaligned.bytes);
        if let Some(word) = bytes.typed_data_mut::<u64>().last_mut() {
            *word = unaligned.load_bits((count - 1) * 64);
        }
        return ScalarBuffer::new(bytes.into(), 0, count);
    }
    let mut words = Vec::with_capacity(count);
    for word in 0..count {
        words.push(unaligned.load_bits(word * 64));
    }
    words.into()
}

pub(crate) fn count_ones(words: &[u64]) -> usize {
    #[inline(always)]
    fn sum_ones(words: &[u64]) -> usize {
        words.iter().map(|word| word.count_ones() as usize).sum()
    }
    for_avx2!(fn[](words: &[u64]) -> usize = sum_ones(words))
}

fn count_before_words(words: &[u64]) -> Vec<usize> {
    #[inline(always)]
    fn accumulate_ones(words: &[u64]) -> Vec<usize> {
        let mut out = Vec::with_capacity(words.len() + 1);
        let mut sum = 0;
        for word in words {
            out.push(sum);
            sum += word.count_ones() as usize;
        }
        out.push(sum);
        out
    }
    for_avx2!(fn[](words: &[u64]) -> Vec<usize> = accumulate_ones(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_any_position() {
        let bits: Vec<bool> = (0..400u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 30 > 0).collect();
        let map = BooleanBuffer::from(bits.clone());
        // Miri executes a test a thousand times more slowly.
        let step = if cfg!(miri) { 23 } else { 3 };
        for start in (0..70).step_by(step) {
            for len in (0..75).step_by(step / 3).chain([127, 128, 129, 200, 256, 300]) {
                let rank = RankedBitmap::new(&map.slice(start, len));
                let words = rank.bits();
                let expected = |at: usize| {
                    let here = bits[start..start + len].iter().skip(at).take(64);
                    here.enumerate().fold(0u64, |word, (i, b)| word | u64::from(*b) << i)
                };
                for at in 0..len + 80 {
                    assert_eq!(words.load_bits(at), expected(at), "{start} {len} {at}");
                }
                assert!(words.reach() + 80 >= len && words.reach() <= len);
                for at in 0..words.reach() {
                    // SAFETY: `at` is less than `words.reach()`.
                    assert_eq!(unsafe { words.load_bits_unchecked(at) }, expected(at));
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
        let rank = RankedBitmap::new(&map);
        for at in 0..=285 {
            assert_eq!(rank.count_before(at), bits[..at].iter().filter(|b| **b).count());
            for (i, expected) in bits[at..].iter().take(64).enumerate() {
                assert_eq!(rank.bits().load_bits(at) >> i & 1 == 1, *expected);
            }
        }
        for (start, len) in [(0, 285), (3, 64), (8, 0), (3, 130), (11, 100), (8, 64), (200, 85)] {
            let part = map.slice(start, len);
            assert!(
                align_words(&part)
                    .iter()
                    .copied()
                    .eq(part.bit_chunks().iter_padded().take(len.div_ceil(64)))
            );
            let rank = RankedBitmap::new(&part);
            assert_eq!(rank.words(), &align_words(&part)[..]);
            assert_eq!(rank.total(), part.count_set_bits());
            assert_eq!(rank.bits().load_bits((len.div_ceil(64) + 1) * 64), 0);
        }
        let whole = BooleanBuffer::new(vec![u64::MAX, 0b1011, 1 << 63].into(), 0, 192);
        for (start, len) in [(0, 192), (64, 128), (64, 64), (0, 130), (0, 127), (128, 64), (3, 128)]
        {
            let part = whole.slice(start, len);
            let expected: Vec<u64> =
                part.bit_chunks().iter_padded().take(len.div_ceil(64)).collect();
            assert_eq!(align_words(&part)[..], expected, "{start} {len}");
            let shared = start % 64 == 0 && len % 64 == 0;
            let at = align_words(&part).as_ptr().cast::<u8>();
            // The buffer is shared if the last word of the slice has no set bits past the end of
            // the slice.
            assert_eq!(at == whole.values()[start / 8..].as_ptr(), shared || len == 127);
        }
        assert_eq!(rank.bits().load_bits(285), 0);
        assert_eq!(RankedBitmap::new(&BooleanBuffer::new_unset(0)).count_before(0), 0);
        assert_eq!(RankedBitmap::new(&BooleanBuffer::new_set(128)).count_before(128), 128);
    }
}
