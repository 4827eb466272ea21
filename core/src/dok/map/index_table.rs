//! The index table: maps the hash of a key to its row, by open addressing with linear probing.
//!
//! A bucket is a 64-bit word: a tag, and 1 plus the index of the key's row; 0 is an empty bucket.
//! The tag has bits of the hash, by which a search tells nearly all keys apart without reading
//! them. The tag is odd, or 2 for a removed key.
//!
//! ```text
//! bucket    | 23 bits of the hash, 1 |      row + 1       |
//!             tag: 24 bits             40 bits
//!
//! table     | line 0: 8 buckets | line 1 | line 2 | ..      a line is one cache line of 64 bytes
//!             ^ home of all hashes that scale to line 0
//! ```
//!
//! A search starts at the home bucket, the first of a cache line. The index of this line is the
//! hash, scaled to the number of lines (the number of buckets need not be a power of two). Most
//! searches end in this line. Home buckets ascend with hashes, so a range of hashes is a range of
//! the table.

use super::hash::{HashFactors, prefetch_value};
use super::row_buffer::TableWords;
use super::row_types::RowWidth;
use crate::error::{Error, Result};

/// Number of low bits of a bucket. They hold 1 plus the index of a row, or 0 if the bucket has no
/// row.
pub(super) const ROW_BITS: u32 = 40;
const ROW: u64 = (1 << ROW_BITS) - 1;

/// An empty bucket. A search that reaches it ends: the key is missing.
pub(super) const EMPTY: u64 = 0;
/// A bucket whose key was removed. A search continues in the next bucket.
const GONE: u64 = 2 << ROW_BITS;

#[expect(clippy::cast_possible_truncation, reason = "40 bits")]
const MAX_ROWS: usize = ROW as usize - 1;

/// Number of keys between the prefetch of a bucket and the use of this bucket.
pub(super) const AHEAD: usize = 16;
/// Size of the ring buffer of hashes whose buckets are being prefetched; a power of two.
pub(super) const RING: usize = 64;

/// Returns the tag of a key with the hash `hash`, in the high bits of a bucket. The tag is odd, so
/// it differs from the tags 0 (empty bucket) and 2 (removed key).
#[inline(always)]
pub(super) fn hash_tag(hash: u64) -> u64 {
    (hash | 1) << ROW_BITS
}

#[inline(always)]
pub(super) fn pack_bucket(hash: u64, row: usize) -> u64 {
    hash_tag(hash) | (row as u64 + 1)
}

/// Returns the row of a bucket with the tag `tag`; `None` if the bucket has another tag or no row.
#[inline(always)]
pub(super) fn match_row(bucket: u64, tag: u64) -> Option<usize> {
    let row = (bucket ^ tag).wrapping_sub(1);
    // The comparison is false for a bucket with another tag, which leaves high bits in `row`, and
    // for a bucket without a row, because 0 - 1 wraps.
    #[expect(clippy::cast_possible_truncation, reason = "40 bits")]
    (row < ROW).then_some(row as usize)
}

/// Returns 1 plus the index of the row of a bucket; 0 for an empty bucket or a removed key.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn unpack_row(bucket: u64) -> usize {
    (bucket & ROW) as usize
}

pub(super) fn extract_bucket_tag(bucket: u64) -> u64 {
    bucket & !ROW
}

/// Returns whether the bucket is empty or its key was removed.
#[inline(always)]
pub(super) fn is_free(bucket: u64) -> bool {
    bucket & ROW == 0
}

#[derive(Debug)]
pub(super) struct IndexTable {
    words: TableWords,
    len: usize,
    removed: usize,
}

impl IndexTable {
    pub(super) fn new(buckets: usize) -> Result<Self> {
        Ok(Self { words: TableWords::new_zeroed(buckets)?, len: buckets, removed: 0 })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn count_removed_buckets(&self) -> usize {
        self.removed
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

    /// Records that new keys now use `buckets` of the buckets whose keys were removed.
    pub(super) fn mark_reused(&mut self, buckets: usize) {
        self.removed -= buckets;
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.words.as_mut_slice().copy_from_slice(other.words.as_slice());
        self.removed = other.removed;
    }

    pub(super) fn clear(&mut self) {
        self.words.as_mut_slice().fill(EMPTY);
        self.removed = 0;
    }

    /// Frees a bucket: marks it as removed, or as empty if the next bucket is empty, because then
    /// no search needs to pass it. Removed buckets directly before an empty one become empty, too.
    pub(super) fn remove(&mut self, at: usize) {
        let len = self.len;
        let words = self.words.as_mut_slice();
        if words[next_bucket(at, len)] != EMPTY {
            words[at] = GONE;
            self.removed += 1;
            return;
        }
        words[at] = EMPTY;
        let mut at = find_previous_bucket(at, len);
        while words[at] == GONE {
            words[at] = EMPTY;
            self.removed -= 1;
            at = find_previous_bucket(at, len);
        }
    }

    /// Returns the bucket of row `row`, whose key has the hash `hash`; `None` if no bucket has this
    /// row.
    pub(super) fn find_row_bucket(&self, hash: u64, row: usize) -> Option<usize> {
        let words = self.buckets();
        let wanted = pack_bucket(hash, row);
        let mut at = find_home_bucket(hash, self.len);
        while words[at] != wanted {
            if words[at] == EMPTY {
                return None;
            }
            at = next_bucket(at, self.len);
        }
        Some(at)
    }

    /// Inserts the keys of rows `0..rows`. The keys must be distinct, and the table must have
    /// capacity for all of them.
    pub(super) fn insert_distinct<W: RowWidth>(
        &mut self,
        hashing: HashFactors,
        width: W,
        keys: &[u8],
        rows: usize,
    ) {
        let len = self.len;
        let words = self.words.as_mut_slice();
        let mut hashes = [0u64; RING];
        for i in 0..rows + AHEAD {
            if i < rows {
                let hash = hashing.hash_row(width, width.row(keys, i));
                hashes[i % RING] = hash;
                prefetch_value(words, find_home_bucket(hash, len));
            }
            if let Some(row) = i.checked_sub(AHEAD) {
                let hash = hashes[row % RING];
                let mut at = find_home_bucket(hash, len);
                while words[at] != EMPTY {
                    at = next_bucket(at, len);
                }
                words[at] = pack_bucket(hash, row);
            }
        }
    }
}

pub(super) const LINE: usize = 8;

#[inline(always)]
pub(super) fn find_home_bucket(hash: u64, buckets: usize) -> usize {
    let lines = (buckets / LINE).max(1);
    #[expect(clippy::cast_possible_truncation, reason = "below the number of buckets")]
    let line = ((u128::from(hash) * lines as u128) >> 64) as usize;
    line * LINE
}

#[inline(always)]
pub(super) fn next_bucket(at: usize, buckets: usize) -> usize {
    if at + 1 == buckets { 0 } else { at + 1 }
}

fn find_previous_bucket(at: usize, buckets: usize) -> usize {
    if at == 0 { buckets - 1 } else { at - 1 }
}

pub(super) fn compute_bucket_count(rows: usize, load: f64) -> Result<usize> {
    if rows > MAX_ROWS {
        return Err(Error::invalid(format!(
            "{rows} keys exceed the maximum of {MAX_ROWS} per map; divide them among several maps"
        )));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "there are fewer than 2^40 rows, and the load factor is above 0.001"
    )]
    let buckets = (rows as f64 / load).ceil() as usize;
    // Keep at least one bucket empty, so that the search for a missing key ends.
    Ok(buckets.max(rows + 1))
}
