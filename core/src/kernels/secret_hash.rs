//! Hashes numbers with secret factors per process, so that nobody can construct keys that collide.

use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

/// The splitmix64 hash, which differs for different numbers. Must stay the same in every version,
/// because loaders derive random numbers from it.
pub(crate) fn mix_bits(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns the XOR of the two 64-bit halves of the 128-bit product of `a` and `b`.
#[inline(always)]
pub(crate) fn fold_product(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let (low, high) = (wide as u64, (wide >> 64) as u64);
    low ^ high
}

/// Derives the start of a hash and two factors from a seed.
pub(crate) fn derive_factors(seed: u64) -> [u64; 3] {
    let a = mix_bits(seed);
    let b = mix_bits(a);
    let c = mix_bits(b);
    // An odd factor gives different inputs different products. Its top bit makes the product of
    // every input above 1 longer than 64 bits, so that both halves depend on the input.
    [a, b | (1 << 63) | 1, c | (1 << 63) | 1]
}

pub(crate) fn draw_random_seed() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Builds `NumberHasher`s for hash maps; their factors are secret and random in each process.
#[derive(Clone, Copy, Debug)]
pub struct SecretHashState {
    start: u64,
    step: u64,
    last: u64,
}

impl SecretHashState {
    fn new(seed: u64) -> Self {
        let [start, step, last] = derive_factors(seed);
        Self { start, step, last }
    }
}

impl Default for SecretHashState {
    fn default() -> Self {
        static SEEDED: OnceLock<SecretHashState> = OnceLock::new();
        *SEEDED.get_or_init(|| Self::new(draw_random_seed()))
    }
}

impl BuildHasher for SecretHashState {
    type Hasher = NumberHasher;

    fn build_hasher(&self) -> NumberHasher {
        NumberHasher { seeded: *self, state: self.start }
    }
}

/// Hasher for integers: multiplies by one secret factor after each integer, and by another at the
/// end.
#[derive(Debug)]
pub struct NumberHasher {
    seeded: SecretHashState,
    state: u64,
}

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        fold_product(self.state, self.seeded.last)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.state = fold_product(self.state ^ number, self.seeded.step);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKETS: usize = 1 << 14;

    /// Returns the number of keys in the fullest of 2^14 buckets.
    fn fullest(seeded: SecretHashState, keys: &[u64]) -> usize {
        let mut counts = vec![0usize; BUCKETS];
        for key in keys {
            let bucket = seeded.hash_one(*key) % BUCKETS as u64;
            counts[usize::try_from(bucket).unwrap()] += 1;
        }
        counts.into_iter().max().unwrap()
    }

    fn inverse(of: u64) -> u64 {
        (0..6).fold(of, |x, _| x.wrapping_mul(2u64.wrapping_sub(of.wrapping_mul(x))))
    }

    #[test]
    fn keys_made_to_meet_do_not() {
        const N: u64 = 1 << 14;
        let c = 0x9e37_79b9_7f4a_7c15u64;
        // The factor of the hash `old` is not secret, so all `crafted` keys fall into bucket 0.
        let h = |i: u64| i << 25;
        let crafted: Vec<u64> =
            (1..=N).map(|i| inverse(c).wrapping_mul(h(i) ^ (h(i) >> 32))).collect();
        let old = |key: u64| {
            let mixed = key.wrapping_mul(c);
            mixed ^ (mixed >> 32)
        };
        assert!(crafted.iter().all(|key| old(*key) % BUCKETS as u64 == 0));
        let kinds: [Vec<u64>; 4] = [
            crafted,
            (0..N).collect(),
            (0..N).map(|i| i << 40).collect(),
            (0..N).map(|i| i.wrapping_mul(inverse(c))).collect(),
        ];
        for keys in &kinds {
            for seed in 0..20 {
                let most = fullest(SecretHashState::new(seed), keys);
                assert!(most <= 24, "{most} keys in one place, seed {seed}");
            }
            assert!(fullest(SecretHashState::default(), keys) <= 24);
        }
    }

    #[test]
    fn a_process_has_one_seed_of_many() {
        let hash = |seeded: SecretHashState| seeded.hash_one(7u64);
        assert_eq!(hash(SecretHashState::default()), hash(SecretHashState::default()));
        assert_ne!(hash(SecretHashState::new(1)), hash(SecretHashState::new(2)));
        assert_ne!(draw_random_seed(), draw_random_seed());
    }
}
