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
        // One more than needed, so that the end is a position like any other.
        let words: Vec<u64> = bits.bit_chunks().iter_padded().chain(std::iter::once(0)).collect();
        let mut sum = 0;
        let before = words
            .iter()
            .map(|w| {
                let here = sum;
                sum += w.count_ones() as usize;
                here
            })
            .collect();
        Self { words, before }
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
        let low = self.words.get(word).map_or(0, |w| w >> bit);
        // In two steps, as nothing of the next word is wanted where the position is that of a word.
        low | self.words.get(word + 1).map_or(0, |w| w << 1 << (63 - bit))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(rank.word(285), 0);
        assert_eq!(Rank::new(&BooleanBuffer::new_unset(0)).rank(0), 0);
        assert_eq!(Rank::new(&BooleanBuffer::new_set(128)).rank(128), 128);
    }
}
