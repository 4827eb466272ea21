//! Random numbers that are the same on every machine and in every version of the crate.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

use crate::kernels::secret_hash::mix_bits;

pub(super) fn derive_random(seed: u64, epoch: u64, item: u64) -> u64 {
    mix_bits(mix_bits(mix_bits(seed) ^ epoch) ^ item)
}

/// Maps 64 random bits to a number from 0 to `n - 1`, nearly uniformly; returns 0 if `n` is 0.
pub(super) fn scale_below(random: u64, n: u64) -> u64 {
    ((u128::from(random) * u128::from(n)) >> 64) as u64
}

pub(super) fn new_epoch_rng(seed: u64, epoch: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    for (i, part) in key.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *part = mix_bits(mix_bits(seed).wrapping_add(i as u64)).to_le_bytes();
    }
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(epoch);
    rng
}

pub(super) fn shuffle_items(items: &mut [u32], rng: &mut ChaCha8Rng) {
    for i in (1..items.len()).rev() {
        let j = usize::try_from(draw_below(rng, i as u64 + 1)).unwrap_or(0);
        items.swap(i, j);
    }
}

/// Draws a uniform number below `n` (at least 1). Rejects random bits that would make some numbers
/// more likely, and draws again.
fn draw_below(rng: &mut ChaCha8Rng, n: u64) -> u64 {
    loop {
        let random = rng.next_u64();
        let number = ((u128::from(random) * u128::from(n)) >> 64) as u64;
        let rest = random.wrapping_mul(n);
        if rest >= n || rest >= n.wrapping_neg() % n {
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_fixed() {
        // The expected number is the published first output of splitmix64 for the seed 0.
        assert_eq!(mix_bits(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(scale_below(u64::MAX, 10), 9);
        assert_eq!(scale_below(0, 10), 0);
        assert_eq!(scale_below(u64::MAX, 0), 0);
        let mut items: Vec<u32> = (0..10).collect();
        shuffle_items(&mut items, &mut new_epoch_rng(7, 0));
        assert_eq!(items, [9, 3, 2, 6, 1, 0, 7, 5, 8, 4]);
        assert_eq!(derive_random(7, 1, 42), 0xce0f_ffa7_9a80_923f);
        assert_eq!(new_epoch_rng(7, 1).next_u64(), 0x5bcc_d224_6ce1_7bce);
        let mut again: Vec<u32> = (0..10).collect();
        shuffle_items(&mut again, &mut new_epoch_rng(7, 0));
        assert_eq!(items, again);
        let mut other: Vec<u32> = (0..10).collect();
        shuffle_items(&mut other, &mut new_epoch_rng(7, 1));
        assert_ne!(items, other);
        items.sort_unstable();
        assert_eq!(items, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn every_place_is_as_likely_as_any_other() {
        let mut counts = [[0u32; 6]; 6];
        for epoch in 0..6000 {
            let mut items: Vec<u32> = (0..6).collect();
            shuffle_items(&mut items, &mut new_epoch_rng(1, epoch));
            for (place, item) in items.into_iter().enumerate() {
                counts[place][item as usize] += 1;
            }
        }
        // Each item is expected 1000 times at each position, with a standard deviation of 29.
        assert!(counts.iter().flatten().all(|n| (850..1150).contains(n)), "{counts:?}");
    }
}
