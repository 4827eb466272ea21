//! Numbers and how often each was seen.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// How often each number was seen.
#[derive(Debug, Default)]
pub(super) struct Counts(HashMap<u64, u64, BuildHasherDefault<Mix>>);

impl Counts {
    /// Adds to the count of a number.
    pub(super) fn add(&mut self, id: u64, n: u64) {
        let count = self.0.entry(id).or_default();
        *count = count.saturating_add(n);
    }

    /// Numbers and counts, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(id, n)| (*id, *n))
    }

    /// Bytes in use.
    pub(super) fn size(&self) -> usize {
        self.0.capacity() * (size_of::<(u64, u64)>() + 1)
    }
}

/// A hash of one number: its bits spread by a multiplication.
#[derive(Debug, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }

    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
