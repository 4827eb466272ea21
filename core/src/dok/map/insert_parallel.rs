//! Insertion of keys by several threads, with the same result as in one thread.
//!
//! ```text
//! table     | part of thread 0 | part of thread 1 | part of thread 2 |
//! batch       every thread scans all hashes in order, inserts those with their home in its part
//! overflow    searches that leave their part --> inserted by one thread afterwards, in order
//! rows        new keys --> numbered in the order of the batch --> rows copied in parallel
//! ```
//!
//! Equal keys have the same home, the bucket where searches start, so one thread handles all rows
//! with equal keys. The number of threads does not affect which row adds a key or gives its value.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rayon::prelude::*;

use super::RowMap;
use super::hash::{HashFactors, prefetch_value};
use super::index_table::{
    AHEAD, EMPTY, IndexTable, LINE, find_home_bucket, hash_tag, match_row, next_bucket, pack_bucket,
};
use super::row_types::{RowWidth, copy_row};
use crate::error::Result;

/// Minimum number of keys for an insertion by several threads.
pub(super) const MIN_PARALLEL_KEYS: usize = 1 << 15;
/// Maximum number of keys that are inserted in one step. It limits the memory for the bookkeeping
/// of a step, about 16 bytes per key.
pub(super) const MAX_STEP_KEYS: usize = 1 << 21;
/// Number of keys per parallel task in loops whose iterations are independent.
const TASK_KEYS: usize = 1 << 14;

struct BatchEntry {
    given: u32,
    /// For a new key, the index of its bucket in the table. For a key that the map already has, the
    /// row of the key in the map.
    place: usize,
}

#[derive(Default)]
struct PartResult {
    new: Vec<BatchEntry>,
    old: Vec<BatchEntry>,
    /// Indices of the batch rows whose search reached the end of this part of the table. The next
    /// part belongs to another thread, so a single thread inserts these rows at the end.
    waiting: Vec<u32>,
}

/// Keys by row number: the keys that the map stores, then the keys of the batch.
#[derive(Clone, Copy)]
struct KeyRows<'a, W> {
    width: W,
    stored: &'a [u8],
    /// Number of keys in `stored`. Row `rows` is the first key in `given`.
    rows: usize,
    given: &'a [u8],
}

impl<'a, W: RowWidth> KeyRows<'a, W> {
    #[inline(always)]
    fn row(&self, row: usize) -> &'a [u8] {
        match row.checked_sub(self.rows) {
            None => self.width.row(self.stored, row),
            Some(given) => self.width.row(self.given, given),
        }
    }
}

fn hash_rows<W: RowWidth>(hashing: HashFactors, width: W, keys: &[u8], count: usize) -> Vec<u64> {
    let mut out = vec![0; count];
    out.par_chunks_mut(TASK_KEYS).enumerate().for_each(|(part, out)| {
        for (i, hash) in out.iter_mut().enumerate() {
            *hash = hashing.hash_row(width, width.row(keys, part * TASK_KEYS + i));
        }
    });
    out
}

/// Divides the table among threads. Returns each part with the index of its first bucket.
fn split_table(buckets: &mut [u64]) -> Vec<(usize, &mut [u64])> {
    // A part consists of whole cache lines, because searches start at the first bucket of a line.
    let size =
        buckets.len().div_ceil(rayon::current_num_threads()).next_multiple_of(LINE).max(LINE);
    buckets.chunks_mut(size).enumerate().map(|(i, part)| (i * size, part)).collect()
}

/// Calls `each` for the hashes whose home bucket is in `part`, in order, and prefetches these
/// buckets. `each` gets the index of the hash, the hash, the index of its home bucket in `part`,
/// and `part`.
#[inline(always)]
fn for_each_home(
    hashes: &[u64],
    buckets: usize,
    (first, part): (usize, &mut [u64]),
    mut each: impl FnMut(usize, u64, usize, &mut [u64]),
) {
    // Collect the hashes whose home bucket is in `part`. The loop has no branch for this, because
    // the CPU could not predict the branch.
    let mut own = [0usize; BLOCK];
    for (block, these) in hashes.chunks(BLOCK).enumerate() {
        let mut count = 0;
        for (i, hash) in these.iter().enumerate() {
            own[count] = i;
            let inside = find_home_bucket(*hash, buckets).wrapping_sub(first) < part.len();
            count += usize::from(inside);
        }
        let own = &own[..count];
        for i in 0..count + AHEAD {
            if let Some(at) = own.get(i) {
                prefetch_value(part, find_home_bucket(these[*at], buckets) - first);
            }
            if let Some(at) = i.checked_sub(AHEAD).map(|i| own[i]) {
                let hash = these[at];
                each(block * BLOCK + at, hash, find_home_bucket(hash, buckets) - first, part);
            }
        }
    }
}

const BLOCK: usize = 1024;

/// Inserts distinct rows like [`IndexTable::insert_distinct`], with several threads.
pub(super) fn fill_parallel<W: RowWidth>(
    table: &mut IndexTable,
    hashing: HashFactors,
    width: W,
    keys: &[u8],
    rows: usize,
) {
    let hashes = hash_rows(hashing, width, keys, rows);
    let len = table.len();
    let all = table.buckets_mut();
    let left: Vec<Vec<usize>> = split_table(all)
        .into_par_iter()
        .map(|part| {
            let mut left = Vec::new();
            for_each_home(&hashes, len, part, |row, hash, mut at, part| {
                while at < part.len() && part[at] != EMPTY {
                    at += 1;
                }
                match part.get_mut(at) {
                    Some(free) => *free = pack_bucket(hash, row),
                    None => left.push(row),
                }
            });
            left
        })
        .collect();
    for row in left.into_iter().flatten() {
        let mut at = find_home_bucket(hashes[row], len);
        while all[at] != EMPTY {
            at = next_bucket(at, len);
        }
        all[at] = pack_bucket(hashes[row], row);
    }
}

/// The insertion of the keys of a batch into the index table.
struct BatchInsertion<'a, W> {
    /// Number of buckets of the table.
    buckets: usize,
    hashes: &'a [u64],
    keys: KeyRows<'a, W>,
    /// For each row of the batch that adds a key: the index of the row that provides the value.
    /// This is the last row with the key if `replace` is set, else the adding row itself.
    winners: &'a [AtomicU32],
    replace: bool,
}

impl<W: RowWidth> BatchInsertion<'_, W> {
    /// Whether row `given` of the batch and `row` have equal keys. If so, records row `given`: as
    /// an entry of a key that the table has already, or, if `replace` is set, as the winner of a
    /// new key.
    #[inline(always)]
    fn add_if_equal(&self, given: u32, row: usize, done: &mut PartResult) -> bool {
        let here = self.keys.width.row(self.keys.given, given as usize);
        if self.keys.row(row) != here {
            return false;
        }
        match row.checked_sub(self.keys.rows) {
            None => done.old.push(BatchEntry { given, place: row }),
            Some(first) => {
                if self.replace {
                    self.winners[first].store(given, Relaxed);
                }
            }
        }
        true
    }

    /// Inserts the keys whose home bucket is in `part`, a part of the table with the index of its
    /// first bucket.
    fn fill_part(&self, part: (usize, &mut [u64])) -> PartResult {
        let first = part.0;
        let mut done = PartResult::default();
        for_each_home(self.hashes, self.buckets, part, |i, hash, mut at, part| {
            #[expect(clippy::cast_possible_truncation, reason = "a step has 2^21 keys")]
            let given = i as u32;
            loop {
                let Some(found) = part.get_mut(at) else {
                    done.waiting.push(given);
                    return;
                };
                if *found == EMPTY {
                    *found = pack_bucket(hash, self.keys.rows + i);
                    self.winners[i].store(given, Relaxed);
                    done.new.push(BatchEntry { given, place: first + at });
                    return;
                }
                if let Some(row) = match_row(*found, hash_tag(hash))
                    && self.add_if_equal(given, row, &mut done)
                {
                    return;
                }
                at += 1;
            }
        });
        done
    }

    /// Inserts the keys of the rows `waiting`, whose searches have left their part of the table, in
    /// the order of the batch.
    fn insert_waiting(&self, mut waiting: Vec<u32>, table: &mut [u64]) -> PartResult {
        waiting.sort_unstable();
        let mut done = PartResult::default();
        for given in waiting {
            let i = given as usize;
            let hash = self.hashes[i];
            let mut at = find_home_bucket(hash, self.buckets);
            loop {
                let found = table[at];
                if found == EMPTY {
                    table[at] = pack_bucket(hash, self.keys.rows + i);
                    self.winners[i].store(given, Relaxed);
                    done.new.push(BatchEntry { given, place: at });
                    break;
                }
                if let Some(row) = match_row(found, hash_tag(hash))
                    && self.add_if_equal(given, row, &mut done)
                {
                    break;
                }
                at = next_bucket(at, self.buckets);
            }
        }
        done
    }
}

/// Returns the number of new keys before each row of a batch, and the number of all new keys.
fn count_before(new: &[bool]) -> (Vec<u32>, usize) {
    let mut numbers = vec![0u32; new.len()];
    let mut rows = 0u32;
    for (number, new) in numbers.iter_mut().zip(new) {
        *number = rows;
        rows += u32::from(*new);
    }
    (numbers, rows as usize)
}

impl RowMap {
    /// Inserts at most [`MAX_STEP_KEYS`] keys with several threads, and sets `new` to true for each
    /// row that adds its key. The caller has ensured that the table has capacity for all keys.
    pub(super) fn put_parallel<W: RowWidth>(
        &mut self,
        width: W,
        keys: &[u8],
        values: &[u8],
        new: &mut [bool],
        replace: bool,
    ) -> Result<()> {
        if self.table.count_removed_buckets() > 0 {
            // The threads cannot reuse buckets of removed keys, so rebuild the table without such
            // buckets.
            self.rehash(self.table.len())?;
        }
        let (key, value) = (width.bytes(), self.types()?.value.nbytes());
        let (before, count) = (self.len, new.len());
        let hashes = hash_rows(self.hashing, width, keys, count);
        let winners: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
        let stored = self.keys.as_slice();
        let insertion = BatchInsertion {
            buckets: self.table.len(),
            hashes: &hashes,
            keys: KeyRows { width, stored, rows: before, given: keys },
            winners: &winners,
            replace,
        };
        let all = self.table.buckets_mut();
        let mut done: Vec<PartResult> =
            split_table(all).into_par_iter().map(|part| insertion.fill_part(part)).collect();
        let waiting = done.iter().flat_map(|d| d.waiting.iter().copied()).collect();
        done.push(insertion.insert_waiting(waiting, all));

        // Number the added keys in the order of the batch, regardless of the thread that added
        // them.
        for entry in done.iter().flat_map(|d| &d.new) {
            new[entry.given as usize] = true;
        }
        let (numbers, added) = count_before(new);
        for entry in done.iter().flat_map(|d| &d.new) {
            let given = entry.given as usize;
            all[entry.place] = pack_bucket(hashes[given], before + numbers[given] as usize);
        }

        let after = before + added;
        let keys_room = self.keys.reserve_unshared(after * key);
        if let Err(e) = keys_room.and_then(|()| self.values.reserve_unshared(after * value)) {
            // There is no memory for the new keys. Empty their buckets, which would otherwise refer
            // to rows that do not exist.
            for entry in done.iter().flat_map(|d| &d.new) {
                all[entry.place] = EMPTY;
            }
            return Err(e);
        }
        let stored = &mut self.keys.resize(after * key)?[before * key..];
        copy_new(stored, key, new, &numbers, |i, out| copy_row(width.row(keys, i), out));
        let stored = self.values.resize(after * value)?;
        let (old, fresh) = stored.split_at_mut(before * value);
        copy_new(fresh, value, new, &numbers, |i, out| {
            copy_row(&values[winners[i].load(Relaxed) as usize * value..][..value], out);
        });
        if replace {
            for entry in done.iter().flat_map(|d| &d.old) {
                let given = &values[entry.given as usize * value..][..value];
                copy_row(given, &mut old[entry.place * value..][..value]);
            }
        }
        self.len = after;
        Ok(())
    }
}

fn copy_new(
    out: &mut [u8],
    width: usize,
    new: &[bool],
    numbers: &[u32],
    each: impl Fn(usize, &mut [u8]) + Sync,
) {
    if width == 0 {
        return;
    }
    let mut jobs = Vec::with_capacity(new.len().div_ceil(TASK_KEYS));
    let mut rest = out;
    for (part, (new, numbers)) in new.chunks(TASK_KEYS).zip(numbers.chunks(TASK_KEYS)).enumerate() {
        let count = new.iter().filter(|n| **n).count();
        let (own, left) = rest.split_at_mut(count * width);
        rest = left;
        jobs.push((part * TASK_KEYS, new, numbers, own));
    }
    jobs.into_par_iter().for_each(|(first, new, numbers, own)| {
        let base = numbers.first().copied().unwrap_or(0);
        for (i, (_, number)) in new.iter().zip(numbers).enumerate().filter(|(_, (n, _))| **n) {
            each(first + i, &mut own[(number - base) as usize * width..][..width]);
        }
    });
}
