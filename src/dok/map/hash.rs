//! The hash of a row: keyed, and good in its high and low bits alike.

use super::rows::{Width, copy};
use crate::kernels::seeded::{fold, mix};

/// Secret numbers of one map.
///
/// The multipliers are secret, so that nobody who does not know the seed can make keys that meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hashing {
    start: u64,
    step: u64,
    last: u64,
}

impl Hashing {
    pub(super) fn new(seed: u64) -> Self {
        let a = mix(seed);
        let b = mix(a);
        let c = mix(b);
        // Odd numbers lose nothing, and the top bits set spread every input over the upper half.
        Self { start: a, step: b | (1 << 63) | 1, last: c | (1 << 63) | 1 }
    }

    #[inline(always)]
    pub(super) fn row<W: Width>(&self, width: W, row: &[u8]) -> u64 {
        let mut state = self.start;
        let (words, rest) = row[..width.bytes()].as_chunks::<8>();
        // Two words a product: products are most of the time. What is left over goes into the last one.
        let (pairs, odd) = words.as_chunks::<2>();
        for [a, b] in pairs {
            state = self.pair(state, u64::from_ne_bytes(*a), u64::from_ne_bytes(*b));
        }
        let mut word = [0; 8];
        copy(rest, &mut word[..rest.len()]);
        let rest = u64::from_ne_bytes(word);
        match (odd, width.bytes() % 8) {
            ([odd], 0) if pairs.is_empty() => {
                state = fold(state ^ u64::from_ne_bytes(*odd), self.step)
            }
            ([odd], 0) => state ^= u64::from_ne_bytes(*odd),
            ([odd], _) => state = self.pair(state, u64::from_ne_bytes(*odd), rest),
            (_, 0) => {}
            _ if pairs.is_empty() => state = fold(state ^ rest, self.step),
            _ => state ^= rest,
        }
        fold(state, self.last)
    }

    #[inline(always)]
    fn pair(&self, state: u64, a: u64, b: u64) -> u64 {
        fold(state ^ a, self.step ^ b)
    }
}

/// Asks for the cache line at element `i` of a slice; does nothing where there is none.
#[inline(always)]
pub(super) fn prefetch<T>(of: &[T], i: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = of.get(i) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is that of an element; a prefetch reads nothing the program can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (of, i);
}

/// Asks for all of a row, which may lie on two lines.
#[inline(always)]
pub(super) fn prefetch_row<W: Width>(width: W, rows: &[u8], i: usize) {
    let w = width.bytes();
    if w == 0 {
        return;
    }
    let first = i * w;
    prefetch(rows, first);
    // Rows as long as a power of two up to a line never lie on two, buffers being aligned.
    if !(w.is_power_of_two() && w <= 64) {
        prefetch(rows, first + w - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{Any, Fixed};
    use super::*;

    /// How far counts are from even: about 1 for random numbers.
    fn unevenness(numbers: impl Iterator<Item = u64>, bins: usize) -> f64 {
        let mut counts = vec![0u32; bins];
        numbers.for_each(|n| counts[usize::try_from(n).unwrap()] += 1);
        let mean = f64::from(counts.iter().sum::<u32>()) / bins as f64;
        counts.iter().map(|n| (f64::from(*n) - mean).powi(2) / mean).sum::<f64>() / bins as f64
    }

    #[test]
    fn keys_of_a_kind_spread() {
        const N: u64 = 1 << 16;
        // Coordinates of a grid, of a diagonal, along one axis, far apart, of multiples of powers of two.
        let kinds: [fn(u64) -> [u64; 6]; 6] = [
            |i| [i >> 11, i >> 5 & 63, i & 31, i & 1, i & 3, i >> 15],
            |i| [i; 6],
            |i| [7, 7, i, 7, 7, 7],
            |i| [i, 0, 0, 0, 0, 0],
            |i| [0, i << 48, i << 40, 0, 0, i],
            |i| [i << 32, 0, i << 20, i << 10, 0, i],
        ];
        for (kind, make) in kinds.into_iter().enumerate() {
            let hashing = Hashing::new(7);
            for bytes in [4, 6, 8, 12, 16, 20, 24, 48] {
                // Narrow keys are made of the low half of each word.
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
                    rows.iter().map(|row| hashing.row(Any(bytes), row)).collect();
                if let 24 = bytes {
                    assert!(
                        (rows.iter().zip(&hashes))
                            .all(|(row, hash)| hashing.row(Fixed::<24>, row) == *hash)
                    );
                }
                if let 12 = bytes {
                    assert!(
                        (rows.iter().zip(&hashes))
                            .all(|(row, hash)| hashing.row(Fixed::<12>, row) == *hash)
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
