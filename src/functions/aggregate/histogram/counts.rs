//! Counts of values by id. The ids come from [`ValueNumbers`](super::value_ids::ValueNumbers).

use std::collections::HashMap;

use serrate_core::internal::SecretHashState;

#[derive(Debug, Default)]
pub(super) struct ValueCounts(HashMap<u64, u64, SecretHashState>);

impl ValueCounts {
    pub(super) fn add(&mut self, id: u64, n: u64) {
        let count = self.0.entry(id).or_default();
        *count = count.saturating_add(n);
    }

    /// Returns the id of each counted value with its count, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(id, n)| (*id, *n))
    }

    pub(super) fn size(&self) -> usize {
        self.0.capacity() * (size_of::<(u64, u64)>() + 1)
    }
}
