//! The index table: where the row of a key is, by its hash.
//!
//! Open addressing with linear probing. A bucket is one word: a tag of 24 bits, by which nearly every other
//! key is told apart without looking at it, over 40 bits of the row's number plus 1. The tags of keys are odd
//! and have 23 bits of the hash; a word of 0 is empty. The home of a key is the first bucket of a cache line, its hash scaled to the number
//! of lines; the number of buckets may be any. So a search mostly ends in the line it begins in, whether
//! the key is there or not. Homes ascend with hashes, so that a part of all hashes is a part of the table.

use super::hash::{Hashing, prefetch};
use super::memory::Words;
use super::rows::Width;
use crate::error::{Error, Result};

/// Bits of a bucket that hold the row.
pub(super) const ROW_BITS: u32 = 40;
const ROW: u64 = (1 << ROW_BITS) - 1;

/// A bucket that never held anything: probes end here.
pub(super) const EMPTY: u64 = 0;
/// A bucket whose key was removed: probes go on.
const GONE: u64 = 2 << ROW_BITS;

/// Most rows of one map.
#[expect(clippy::cast_possible_truncation, reason = "40 bits")]
pub(super) const MAX_ROWS: usize = ROW as usize - 1;

/// Keys between asking for memory and using it.
pub(super) const AHEAD: usize = 16;
/// Places for keys on their way, a power of two.
pub(super) const RING: usize = 64;

/// The tag of a hash, where it stands in a bucket: never that of an empty bucket or of a removed key.
#[inline(always)]
pub(super) fn tag(hash: u64) -> u64 {
    (hash | 1) << ROW_BITS
}

/// A bucket.
#[inline(always)]
pub(super) fn bucket(hash: u64, row: usize) -> u64 {
    tag(hash) | (row as u64 + 1)
}

/// The row of a bucket that has this tag; `None` when it has another, or none.
#[inline(always)]
pub(super) fn row_of(bucket: u64, tag: u64) -> Option<usize> {
    let row = (bucket ^ tag).wrapping_sub(1);
    // One comparison: another tag leaves bits above, and no row is 0 - 1.
    #[expect(clippy::cast_possible_truncation, reason = "40 bits")]
    (row < ROW).then_some(row as usize)
}

/// The row of a bucket plus 1; 0 where there is none.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn row_bits(bucket: u64) -> usize {
    (bucket & ROW) as usize
}

/// The tag of a bucket.
pub(super) fn tag_of(bucket: u64) -> u64 {
    bucket & !ROW
}

/// Whether a key can be put here.
#[inline(always)]
pub(super) fn is_free(bucket: u64) -> bool {
    bucket & ROW == 0
}

#[derive(Debug)]
pub(super) struct Table {
    words: Words,
    len: usize,
    /// Buckets of removed keys.
    gone: usize,
}

impl Table {
    pub(super) fn new(buckets: usize) -> Result<Self> {
        Ok(Self { words: Words::zeroed(buckets)?, len: buckets, gone: 0 })
    }

    /// Number of buckets.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn gone(&self) -> usize {
        self.gone
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    #[inline(always)]
    pub(super) fn buckets(&self) -> &[u64] {
        self.words.as_slice()
    }

    #[inline(always)]
    pub(super) fn buckets_mut(&mut self) -> &mut [u64] {
        self.words.as_mut_slice()
    }

    /// A key took the bucket of a removed one.
    pub(super) fn reused(&mut self, buckets: usize) {
        self.gone -= buckets;
    }

    /// The buckets of another table of the same size.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.words.as_mut_slice().copy_from_slice(other.words.as_slice());
        self.gone = other.gone;
    }

    pub(super) fn clear(&mut self) {
        self.words.as_mut_slice().fill(EMPTY);
        self.gone = 0;
    }

    /// Marks buckets as removed; where the next is empty, they are empty, too.
    pub(super) fn remove(&mut self, at: usize) {
        let len = self.len;
        let words = self.words.as_mut_slice();
        if words[next(at, len)] != EMPTY {
            words[at] = GONE;
            self.gone += 1;
            return;
        }
        words[at] = EMPTY;
        let mut at = before(at, len);
        while words[at] == GONE {
            words[at] = EMPTY;
            self.gone -= 1;
            at = before(at, len);
        }
    }

    /// The bucket of a row whose hash is known; `None` when it has none.
    pub(super) fn bucket_of(&self, hash: u64, row: usize) -> Option<usize> {
        let words = self.buckets();
        let wanted = bucket(hash, row);
        let mut at = home(hash, self.len);
        while words[at] != wanted {
            if words[at] == EMPTY {
                return None;
            }
            at = next(at, self.len);
        }
        Some(at)
    }

    /// Enters rows that are known to be different; `first` is the number of the first. The table has
    /// room for them.
    pub(super) fn fill<W: Width>(&mut self, hashing: Hashing, width: W, keys: &[u8], rows: usize) {
        let len = self.len;
        let words = self.words.as_mut_slice();
        let mut hashes = [0u64; RING];
        for i in 0..rows + AHEAD {
            if i < rows {
                let hash = hashing.row(width, width.row(keys, i));
                hashes[i % RING] = hash;
                prefetch(words, home(hash, len));
            }
            if let Some(row) = i.checked_sub(AHEAD) {
                let hash = hashes[row % RING];
                let mut at = home(hash, len);
                while words[at] != EMPTY {
                    at = next(at, len);
                }
                words[at] = bucket(hash, row);
            }
        }
    }
}

/// Buckets of a cache line.
pub(super) const LINE: usize = 8;

/// The first bucket to look at.
#[inline(always)]
pub(super) fn home(hash: u64, buckets: usize) -> usize {
    let lines = (buckets / LINE).max(1);
    #[expect(clippy::cast_possible_truncation, reason = "below the number of buckets")]
    let line = ((u128::from(hash) * lines as u128) >> 64) as usize;
    line * LINE
}

#[inline(always)]
pub(super) fn next(at: usize, buckets: usize) -> usize {
    if at + 1 == buckets { 0 } else { at + 1 }
}

fn before(at: usize, buckets: usize) -> usize {
    if at == 0 { buckets - 1 } else { at - 1 }
}

/// The buckets that `rows` take at most, at a load.
pub(super) fn buckets_for(rows: usize, load: f64) -> Result<usize> {
    if rows > MAX_ROWS {
        return Err(Error::invalid(format!(
            "{rows} keys; a map holds at most {MAX_ROWS}, and should be divided before"
        )));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rows are below 2^40 and loads not small"
    )]
    let buckets = (rows as f64 / load).ceil() as usize;
    // One stays empty, so that probes end.
    Ok(buckets.max(rows + 1))
}
