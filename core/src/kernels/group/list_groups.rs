//! Groups of equal keys within each list.

use std::ops::Range;

use arrow::buffer::NullBuffer;

/// Maximum number of counters for the counting sort of a list; this many fit a CPU cache.
const MAX_COUNTERS: u64 = 1 << 15;

/// The leaves of lists, ordered by list and then by key; leaves with equal keys keep their order.
#[derive(Default)]
pub(super) struct ListGroups {
    pub(super) order: Vec<u64>,
    pub(super) group_counts: Vec<usize>,
    pub(super) group_sizes: Vec<usize>,
    /// If false, `order` is 0, 1, 2, ..
    pub(super) is_moved: bool,
    // Scratch buffers, reused for every list.
    codes: Vec<u64>,
    counters: Vec<usize>,
    packed: Vec<u64>,
    wide: Vec<u128>,
}

impl ListGroups {
    pub(super) fn with_capacity(lists: usize, leaves: usize) -> Self {
        Self {
            order: Vec::with_capacity(leaves),
            group_counts: Vec::with_capacity(lists),
            ..Self::default()
        }
    }

    /// `list` has the indices of the leaves, `keys` their keys, and `nulls` the validity of the
    /// leaves of all lists. Null keys form the last group; their integers in `keys` are ignored.
    pub(super) fn push_list(
        &mut self,
        list: Range<usize>,
        keys: &[u64],
        nulls: Option<&NullBuffer>,
    ) {
        let before = self.group_sizes.len();
        let nulls = nulls.map(|n| n.slice(list.start, list.len())).filter(|n| n.null_count() > 0);
        self.push_groups(list.start as u64, keys, nulls.as_ref());
        self.group_counts.push(self.group_sizes.len() - before);
    }

    fn push_groups(&mut self, first: u64, keys: &[u64], nulls: Option<&NullBuffer>) {
        let (least, greatest) = match nulls {
            None => find_bounds(keys.iter().copied()),
            Some(nulls) => find_bounds(nulls.valid_indices().map(|i| keys[i])),
        };
        let span = greatest.saturating_sub(least);
        // The code of a key is its difference from the least key; nulls have the greatest code.
        let last = if nulls.is_some() { span.checked_add(1) } else { Some(span) };
        let Some(last) = last else { return self.push_wide(first, keys, nulls) };
        self.codes.clear();
        match nulls {
            None => self.codes.extend(keys.iter().map(|key| key - least)),
            Some(nulls) => {
                let code =
                    |(i, key): (usize, &u64)| if nulls.is_null(i) { last } else { key - least };
                self.codes.extend(keys.iter().enumerate().map(code));
            }
        }
        let length = self.codes.len() as u64;
        let index_bits = u64::BITS - length.leading_zeros();
        if self.codes.is_sorted() {
            self.order.extend(first..first + length);
            self.group_sizes.extend(self.codes.chunk_by(|a, b| a == b).map(<[u64]>::len));
            return;
        }
        self.is_moved = true;
        if last < MAX_COUNTERS.min(length.saturating_mul(4)) {
            self.push_counted(first, last);
        } else if last.leading_zeros() >= index_bits {
            self.push_packed(first, index_bits);
        } else {
            self.push_wide(first, keys, nulls);
        }
    }

    /// Sorts by counting. `self.codes` has one integer per leaf, from 0 to `last`, which compares
    /// like the key of the leaf; `first` is the index of the first leaf.
    fn push_counted(&mut self, first: u64, last: u64) {
        let counters = &mut self.counters;
        counters.clear();
        counters.resize(to_index(last) + 1, 0);
        for code in &self.codes {
            counters[to_index(*code)] += 1;
        }
        let mut start = self.order.len();
        self.order.resize(start + self.codes.len(), 0);
        for counter in counters.iter_mut() {
            let size = std::mem::replace(counter, start);
            start += size;
            if size > 0 {
                self.group_sizes.push(size);
            }
        }
        for (leaf, code) in (first..).zip(&self.codes) {
            let place = &mut counters[to_index(*code)];
            self.order[*place] = leaf;
            *place += 1;
        }
    }

    /// Sorts integers: the lowest `index_bits` bits are the index of the leaf in the list, the
    /// higher bits its code. `first` is the index of the first leaf of the list.
    fn push_packed(&mut self, first: u64, index_bits: u32) {
        self.packed.clear();
        self.packed.extend(self.codes.iter().zip(0u64..).map(|(code, i)| (code << index_bits) | i));
        self.packed.sort_unstable();
        let mask: u64 = (1 << index_bits) - 1;
        self.order.extend(self.packed.iter().map(|packed| first + (packed & mask)));
        let same = |a: &u64, b: &u64| (a >> index_bits) == (b >> index_bits);
        self.group_sizes.extend(self.packed.chunk_by(same).map(<[u64]>::len));
    }

    /// Like [`push_packed`](Self::push_packed) for any keys, with 128-bit integers.
    fn push_wide(&mut self, first: u64, keys: &[u64], nulls: Option<&NullBuffer>) {
        /// Offsets and indices have at most 63 bits. A key or null takes the other 65 bits.
        const INDEX_BITS: u32 = 63;
        self.is_moved = true;
        self.wide.clear();
        self.wide.extend(keys.iter().enumerate().map(|(i, key)| {
            let is_null = nulls.is_some_and(|n| n.is_null(i));
            let code = if is_null { 1u128 << u64::BITS } else { u128::from(*key) };
            (code << INDEX_BITS) | u128::from(i as u64)
        }));
        self.wide.sort_unstable();
        let mask = (1u128 << INDEX_BITS) - 1;
        let index = |wide: &u128| u64::try_from(wide & mask).unwrap_or(u64::MAX);
        self.order.extend(self.wide.iter().map(|wide| first + index(wide)));
        let same = |a: &u128, b: &u128| (a >> INDEX_BITS) == (b >> INDEX_BITS);
        self.group_sizes.extend(self.wide.chunk_by(same).map(<[u128]>::len));
    }
}

/// Returns the least and the greatest key; without keys, the least is greater than the greatest.
fn find_bounds(keys: impl Iterator<Item = u64>) -> (u64, u64) {
    keys.fold((u64::MAX, 0), |(least, greatest), key| (least.min(key), greatest.max(key)))
}

fn to_index(code: u64) -> usize {
    usize::try_from(code).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn group_slowly(lists: &[Vec<Option<u64>>]) -> (Vec<u64>, Vec<usize>, Vec<usize>) {
        let (mut order, mut counts, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = 0;
        for list in lists {
            let mut sorted: Vec<usize> = (0..list.len()).collect();
            sorted.sort_by_key(|i| (list[*i].is_none(), list[*i]));
            let before = sizes.len();
            sizes.extend(sorted.chunk_by(|a, b| list[*a] == list[*b]).map(<[usize]>::len));
            counts.push(sizes.len() - before);
            order.extend(sorted.iter().map(|i| (first + i) as u64));
            first += list.len();
        }
        (order, counts, sizes)
    }

    fn check(lists: &[Vec<Option<u64>>]) {
        let leaves: Vec<Option<u64>> = lists.iter().flatten().copied().collect();
        // The stored keys of null leaves must not affect the result, so they are arbitrary here.
        let keys: Vec<u64> = leaves.iter().map(|key| key.unwrap_or(u64::MAX / 3)).collect();
        let nulls: NullBuffer = leaves.iter().map(Option::is_some).collect();
        let mut found = ListGroups::with_capacity(lists.len(), keys.len());
        let mut start = 0;
        for list in lists {
            let range = start..start + list.len();
            found.push_list(range.clone(), &keys[range], Some(&nulls));
            start += list.len();
        }
        let (order, counts, sizes) = group_slowly(lists);
        assert_eq!(
            (&found.order, &found.group_counts, &found.group_sizes),
            (&order, &counts, &sizes)
        );
        assert!(found.is_moved || order.is_sorted());
    }

    fn lists_of(key: impl Strategy<Value = u64>) -> impl Strategy<Value = Vec<Vec<Option<u64>>>> {
        let key = prop_oneof![1 => Just(None), 6 => key.prop_map(Some)];
        prop::collection::vec(prop::collection::vec(key, 0..60), 0..5)
    }

    proptest! {
        #[test]
        fn groups_are_those_of_a_stable_sort(
            few in lists_of(7u64..20),
            some in lists_of(0u64..1000),
            many in lists_of(any::<u64>()),
            ends in lists_of(prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(u64::MAX - 1)]),
        ) {
            for lists in [few, some, many, ends] {
                check(&lists);
                let mut sorted = lists;
                sorted.iter_mut().for_each(|list| list.retain(Option::is_some));
                check(&sorted);
                sorted.iter_mut().for_each(|list| list.sort_unstable());
                check(&sorted);
            }
        }
    }
}
