//! The keyed hash of a row. Both the high and the low bits of the hash are well distributed.

use super::row_types::{RowWidth, copy_row};
pub(super) use crate::array::prefetch::prefetch_value;
use crate::kernels::secret_hash::{derive_factors, fold_product};

/// Secret factors of the hash, derived from a seed. Nobody can construct colliding keys without the
/// seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HashFactors {
    start: u64,
    step: u64,
    last: u64,
}

impl HashFactors {
    pub(super) fn new(seed: u64) -> Self {
        let [start, step, last] = derive_factors(seed);
        Self { start, step, last }
    }

    #[inline(always)]
    pub(super) fn hash_row<W: RowWidth>(&self, width: W, row: &[u8]) -> u64 {
        let mut state = self.start;
        let (words, rest) = row[..width.bytes()].as_chunks::<8>();
        // Multiplications are the slowest step, so each multiplication hashes two words of 8 bytes.
        // Zeros pad the last word.
        let (pairs, odd) = words.as_chunks::<2>();
        for [a, b] in pairs {
            state = self.fold_pair(state, u64::from_ne_bytes(*a), u64::from_ne_bytes(*b));
        }
        let mut word = [0; 8];
        copy_row(rest, &mut word[..rest.len()]);
        let rest = u64::from_ne_bytes(word);
        match (odd, width.bytes() % 8) {
            ([odd], 0) if pairs.is_empty() => {
                state = fold_product(state ^ u64::from_ne_bytes(*odd), self.step)
            }
            ([odd], 0) => state ^= u64::from_ne_bytes(*odd),
            ([odd], _) => state = self.fold_pair(state, u64::from_ne_bytes(*odd), rest),
            (_, 0) => {}
            _ if pairs.is_empty() => state = fold_product(state ^ rest, self.step),
            _ => state ^= rest,
        }
        fold_product(state, self.last)
    }

    #[inline(always)]
    fn fold_pair(&self, state: u64, a: u64, b: u64) -> u64 {
        fold_product(state ^ a, self.step ^ b)
    }
}

/// Prefetches row `i`, which may span two cache lines.
#[inline(always)]
pub(super) fn prefetch_row<W: RowWidth>(width: W, rows: &[u8], i: usize) {
    let w = width.bytes();
    if w == 0 {
        return;
    }
    let first = i * w;
    prefetch_value(rows, first);
    // Buffers are aligned to cache lines, so rows of 1, 2, 4, .. 64 bytes lie in one line.
    if !(w.is_power_of_two() && w <= 64) {
        prefetch_value(rows, first + w - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::row_types::{DynamicWidth, FixedWidth};
    use super::*;

    /// Returns the chi-square statistic per bin, which is about 1 for random hashes.
    fn unevenness(numbers: impl Iterator<Item = u64>, bins: usize) -> f64 {
        let mut counts = vec![0u32; bins];
        numbers.for_each(|n| counts[usize::try_from(n).unwrap()] += 1);
        let mean = f64::from(counts.iter().sum::<u32>()) / bins as f64;
        counts.iter().map(|n| (f64::from(*n) - mean).powi(2) / mean).sum::<f64>() / bins as f64
    }

    #[test]
    fn keys_of_a_kind_spread() {
        const N: u64 = 1 << 16;
        // Keys that weak hashes distribute badly: grids, diagonals, axes, distant points, multiples
        // of 2^n.
        let kinds: [fn(u64) -> [u64; 6]; 6] = [
            |i| [i >> 11, i >> 5 & 63, i & 31, i & 1, i & 3, i >> 15],
            |i| [i; 6],
            |i| [7, 7, i, 7, 7, 7],
            |i| [i, 0, 0, 0, 0, 0],
            |i| [0, i << 48, i << 40, 0, 0, i],
            |i| [i << 32, 0, i << 20, i << 10, 0, i],
        ];
        for (kind, make) in kinds.into_iter().enumerate() {
            let hashing = HashFactors::new(7);
            for bytes in [4, 6, 8, 12, 16, 20, 24, 48] {
                // A key is the first `bytes` bytes of six `u64` words. If `bytes` is not a multiple
                // of 8, only the low 4 bytes of each word are used, as if the words were `u32`.
                let wide = bytes % 8 == 0;
                let mut rows: Vec<Vec<u8>> = (0..N)
                    .map(|i| {
                        let words = make(i).map(u64::to_le_bytes);
                        let part = |w: &[u8; 8]| w[..if wide { 8 } else { 4 }].to_vec();
                        words.iter().flat_map(part).take(bytes).collect()
                    })
                    .collect();
                rows.sort_unstable();
                rows.dedup();
                if rows.len() < 1 << 14 {
                    continue;
                }
                let mut hashes: Vec<u64> =
                    rows.iter().map(|row| hashing.hash_row(DynamicWidth(bytes), row)).collect();
                if let 24 = bytes {
                    assert!(
                        (rows.iter().zip(&hashes))
                            .all(|(row, hash)| hashing.hash_row(FixedWidth::<24>, row) == *hash)
                    );
                }
                if let 12 = bytes {
                    assert!(
                        (rows.iter().zip(&hashes))
                            .all(|(row, hash)| hashing.hash_row(FixedWidth::<12>, row) == *hash)
                    );
                }
                let high = unevenness(hashes.iter().map(|h| h >> 52), 1 << 12);
                let low = unevenness(hashes.iter().map(|h| h >> 1 & 0xfff), 1 << 12);
                assert!(high < 1.5 && low < 1.5, "{kind} {bytes}: {high} {low}");
                hashes.sort_unstable();
                hashes.dedup();
                assert_eq!(hashes.len(), rows.len(), "{kind} {bytes}");
            }
        }
    }
}
