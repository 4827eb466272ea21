//! Numbers and how often each was seen.

use std::collections::HashMap;

use serrate_core::internal::Seeded;

/// How often each number was seen.
#[derive(Debug, Default)]
pub(super) struct Counts(HashMap<u64, u64, Seeded>);

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
