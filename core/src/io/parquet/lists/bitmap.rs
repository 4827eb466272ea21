//! Bit operations of the list decoder: on 64-bit words, and a bitmap to which bits are appended.

use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};

/// Number of 64-bit words that hold one bit of each of the 4096 levels of a window.
pub(super) const WORDS: usize = 64;

/// One bit of every level of a window. The spare word lets `set_bits` always write two words.
pub(super) type BitPlane = [u64; WORDS + 1];

#[inline(always)]
pub(super) fn make_low_mask(n: usize) -> u64 {
    if n == 0 { 0 } else { u64::MAX >> (64 - n.min(64)) }
}

#[inline(always)]
pub(super) fn count_ones(word: u64) -> usize {
    word.count_ones() as usize
}

#[inline(always)]
pub(super) fn find_lowest_bit(word: u64) -> usize {
    word.trailing_zeros() as usize
}

/// Returns the index of the set bit that has `n` set bits below it; this bit must exist.
pub(super) fn find_nth_bit(mut word: u64, n: usize) -> usize {
    for _ in 0..n {
        word &= word.wrapping_sub(1);
    }
    find_lowest_bit(word)
}

/// Loads 8 bytes at an offset; bytes past the end are zero.
#[inline(always)]
pub(super) fn load_u64(data: &[u8], at: usize) -> u64 {
    match data.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(eight) => u64::from_le_bytes(*eight),
        None => load_tail(data, at),
    }
}

#[cold]
fn load_tail(data: &[u8], at: usize) -> u64 {
    let rest = data.get(at..).unwrap_or_default();
    let mut eight = [0; 8];
    eight[..rest.len().min(8)].copy_from_slice(&rest[..rest.len().min(8)]);
    u64::from_le_bytes(eight)
}

/// Packs the bits that `mask` selects into the lowest bits, like the instruction `pext`.
pub(super) fn extract_bits(word: u64, mask: u64) -> u64 {
    let (mut word, mut mask) = (word & mask, mask);
    // A selected bit moves down by the number of unset mask bits below it, in six steps. In step
    // `s`, `parity` has the binary digit `s` of this number for every bit; if the digit is 1, the
    // bit moves down by `1 << s`.
    let mut below = !mask << 1;
    for step in 0..6 {
        let mut parity = below;
        for shift in [1, 2, 4, 8, 16, 32] {
            parity ^= parity << shift;
        }
        let moved = parity & mask;
        mask = mask ^ moved | moved >> (1u32 << step);
        let bits = word & moved;
        word = word ^ bits | bits >> (1u32 << step);
        below &= !parity;
    }
    word
}

#[derive(Debug, Default)]
pub(super) struct BitmapBuilder {
    words: Vec<u64>,
    len: usize,
}

impl BitmapBuilder {
    /// Appends the lowest `n` bits of a word to the bitmap. The higher bits of the word must be
    /// zero.
    #[inline(always)]
    pub(super) fn append_bits(&mut self, word: u64, n: usize) {
        let shift = self.len % 64;
        match self.words.last_mut() {
            Some(last) if shift > 0 => {
                *last |= word << shift;
                if shift + n > 64 {
                    self.words.push(word >> (64 - shift));
                }
            }
            _ if n > 0 => self.words.push(word),
            _ => {}
        }
        self.len += n;
    }

    /// Returns 64 bits of the bitmap from bit `at` on; bits past the end of the bitmap are zero.
    #[inline(always)]
    pub(super) fn read_word(&self, at: usize) -> u64 {
        let (word, shift) = (at / 64, at % 64);
        let low = self.words.get(word).map_or(0, |w| w >> shift);
        match self.words.get(word + 1) {
            Some(next) if shift > 0 => low | next << (64 - shift),
            _ => low,
        }
    }

    /// Converts the bitmap to the validity of an array (an unset bit is a null); `None` if nothing
    /// is null.
    pub(super) fn into_nulls(mut self) -> Option<NullBuffer> {
        for word in &mut self.words {
            *word = word.to_le();
        }
        let bits = BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.len);
        Some(NullBuffer::new(bits)).filter(|n| n.null_count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_move_together() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut masks = vec![0, 1, u64::MAX, 1 << 63, u64::MAX - 1, 0x5555_5555_5555_5555];
        masks.extend((0..200).map(|i| if i % 2 == 0 { draw() } else { draw() & draw() & draw() }));
        for mask in masks {
            let word = draw();
            let mut expected = 0;
            for (to, from) in (0..64).filter(|i| mask >> i & 1 == 1).enumerate() {
                expected |= (word >> from & 1) << to;
            }
            assert_eq!(extract_bits(word, mask), expected, "{word:x} where {mask:x}");
            if mask != 0 {
                assert_eq!(
                    find_nth_bit(mask, count_ones(mask) - 1),
                    63 - mask.leading_zeros() as usize
                );
            }
        }
    }

    #[test]
    fn maps_grow_by_any_number_of_bits() {
        let mut map = BitmapBuilder::default();
        let mut expected = Vec::new();
        for (i, n) in [0, 3, 64, 61, 1, 63, 0, 64, 7, 57, 64, 2].into_iter().enumerate() {
            let word = 0xC3A5_0F96_u64.wrapping_mul(0x1_0000_0001 + i as u64) & make_low_mask(n);
            map.append_bits(word, n);
            expected.extend((0..n).map(|b| word >> b & 1 == 1));
        }
        assert_eq!(map.len, expected.len());
        for at in 0..expected.len() + 70 {
            let word = map.read_word(at);
            for b in 0..64 {
                assert_eq!(word >> b & 1 == 1, expected.get(at + b).copied().unwrap_or(false));
            }
        }
        let nulls = map.into_nulls().unwrap();
        assert!(nulls.iter().eq(expected));
    }
}
