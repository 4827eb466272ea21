use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use arrow::array::ArrayAccessor;
use arrow::buffer::NullBuffer;

use crate::kernels::secret_hash::SecretHashState;

/// Slots of the hash table at first; a power of two.
const FIRST_SLOTS: usize = 64;

/// Finds the distinct strings of a list with a hash table, and sorts only them.
#[derive(Default)]
pub(super) struct TextRanks {
    hashing: SecretHashState,
    /// Hash table with open addressing: the index in `different` plus 1, or 0 in a free slot.
    slots: Vec<usize>,
    /// The hash of each distinct string, and the index of the first leaf that has it.
    different: Vec<(u64, usize)>,
    sorted: Vec<usize>,
    ranks: Vec<u64>,
    keys: Vec<u64>,
}

impl TextRanks {
    /// Returns the rank of each string of a list among the distinct strings of the list:
    /// `[b, a, b]` gives `[1, 0, 1]`. The rank of a null is arbitrary.
    pub(super) fn rank_list<'a>(
        &mut self,
        texts: &impl ArrayAccessor<Item = &'a str>,
        list: Range<usize>,
        nulls: Option<&NullBuffer>,
    ) -> &[u64] {
        self.slots.clear();
        self.slots.resize(FIRST_SLOTS, 0);
        self.different.clear();
        self.keys.clear();
        for leaf in list {
            let number = match nulls.is_some_and(|n| n.is_null(leaf)) {
                true => 0,
                false => self.number_text(texts, leaf),
            };
            self.keys.push(number as u64);
        }
        let different = &self.different;
        self.sorted.clear();
        self.sorted.extend(0..different.len());
        self.sorted.sort_unstable_by(|a, b| {
            texts.value(different[*a].1).cmp(texts.value(different[*b].1))
        });
        self.ranks.clear();
        self.ranks.resize(different.len(), 0);
        for (rank, number) in (0u64..).zip(&self.sorted) {
            self.ranks[*number] = rank;
        }
        for key in &mut self.keys {
            // There are no ranks if all leaves are null; every key is then 0.
            *key =
                usize::try_from(*key).ok().and_then(|at| self.ranks.get(at)).copied().unwrap_or(0);
        }
        &self.keys
    }

    /// Returns the index of a leaf's string in `different`, and adds the string there if it is new.
    fn number_text<'a>(
        &mut self,
        texts: &impl ArrayAccessor<Item = &'a str>,
        leaf: usize,
    ) -> usize {
        let text = texts.value(leaf);
        let mut hasher = self.hashing.build_hasher();
        hasher.write_u64(text.len() as u64);
        hasher.write(text.as_bytes());
        let hash = hasher.finish();
        let mut slot = find_first_slot(hash, self.slots.len());
        while let Some(number) = self.slots[slot].checked_sub(1) {
            let (other, at) = self.different[number];
            if other == hash && texts.value(at) == text {
                return number;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.different.push((hash, leaf));
        self.slots[slot] = self.different.len();
        if self.different.len() > self.slots.len() / 2 {
            self.grow_table();
        }
        self.different.len() - 1
    }

    fn grow_table(&mut self) {
        let slots = self.slots.len() * 4;
        self.slots.clear();
        self.slots.resize(slots, 0);
        for (number, (hash, _)) in self.different.iter().enumerate() {
            let mut slot = find_first_slot(*hash, slots);
            while self.slots[slot] > 0 {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = number + 1;
        }
    }
}

/// Returns the first slot to search for a hash in a table of `slots` slots, a power of two.
fn find_first_slot(hash: u64, slots: usize) -> usize {
    usize::try_from(hash & (slots as u64 - 1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, StringViewArray};

    use super::*;

    #[test]
    fn ranks_compare_like_texts() {
        let many = (0..500).map(|i| Some(format!("code {:03}", i * 7 % 250)));
        let few = ["b", "", "a\0", "a", "b", "ä"].map(|text| Some(text.to_owned()));
        let texts: StringViewArray = many.chain(few).chain([None, None]).collect();
        let nulls = texts.logical_nulls();
        let mut ranks = TextRanks::default();
        for list in [0..500, 500..506, 500..507, 506..508, 508..508] {
            let found = ranks.rank_list(&&texts, list.clone(), nulls.as_ref()).to_vec();
            assert_eq!(found.len(), list.len());
            for (a, x) in list.clone().zip(&found).filter(|(i, _)| texts.is_valid(*i)) {
                for (b, y) in list.clone().zip(&found).filter(|(i, _)| texts.is_valid(*i)) {
                    assert_eq!(x.cmp(y), texts.value(a).cmp(texts.value(b)));
                }
            }
        }
        assert_eq!(ranks.rank_list(&&texts, 500..506, None), [3, 0, 2, 1, 3, 4]);
    }
}
