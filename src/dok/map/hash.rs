//! The hash of a row: keyed, and good in its high and low bits alike.

use std::hash::{BuildHasher, Hasher};

use super::rows::Width;

/// Secret numbers of one map.
///
/// The multipliers are secret, so that nobody who does not know the seed can make keys that meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hashing {
    start: u64,
    step: u64,
    last: u64,
}

/// Spreads 64 bits over 64 bits (splitmix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Both halves of a product, one over the other.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let (low, high) = (wide as u64, (wide >> 64) as u64);
    low ^ high
}

/// Random bits of the system.
pub(super) fn random_seed() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
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
        for word in words {
            state = fold(state ^ u64::from_ne_bytes(*word), self.step);
        }
        if !width.bytes().is_multiple_of(8) {
            let mut word = [0; 8];
            word[..width.bytes() % 8].copy_from_slice(rest);
            state = fold(state ^ u64::from_ne_bytes(word), self.step);
        }
        fold(state, self.last)
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
