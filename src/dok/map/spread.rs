//! Setting keys by several threads, with the answer of one.
//!
//! Homes ascend with hashes, so every thread takes a part of the table and, in their order, the keys
//! whose home is there. Equal keys are in one part; which rows are new and which value is the last does
//! not depend on the parts. Keys whose search leaves their part wait until all threads are done. The
//! new rows are numbered in the order of the batch at the end, as one thread would have.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rayon::prelude::*;

use super::HashMap;
use super::hash::{Hashing, prefetch};
use super::rows::{Width, copy};
use super::table::{AHEAD, EMPTY, LINE, Table, bucket, home, next, row_of, tag};
use crate::error::Result;

/// Keys from which on several threads are worth their while.
pub(super) const PARALLEL: usize = 1 << 15;
/// Most keys that are set together; what is noted about them takes 16 bytes each.
pub(super) const STEP: usize = 1 << 21;
/// Keys per job where every key is by itself.
const PART: usize = 1 << 14;

/// A key that is new, or that is there already.
struct Entry {
    /// Its row in the batch.
    given: u32,
    /// Its bucket when it is new, its row in the map when not.
    place: usize,
}

/// What one thread did.
#[derive(Default)]
struct Done {
    new: Vec<Entry>,
    old: Vec<Entry>,
    /// Rows of the batch whose search left the part.
    waiting: Vec<u32>,
}

/// Keys of the map and of the batch.
#[derive(Clone, Copy)]
struct Keys<'a, W> {
    width: W,
    stored: &'a [u8],
    /// Rows in the map before the batch; a row of the batch counts from there.
    rows: usize,
    given: &'a [u8],
}

impl<'a, W: Width> Keys<'a, W> {
    #[inline(always)]
    fn row(&self, row: usize) -> &'a [u8] {
        match row.checked_sub(self.rows) {
            None => self.width.row(self.stored, row),
            Some(given) => self.width.row(self.given, given),
        }
    }
}

fn hashes<W: Width>(hashing: Hashing, width: W, keys: &[u8], count: usize) -> Vec<u64> {
    let mut out = vec![0; count];
    out.par_chunks_mut(PART).enumerate().for_each(|(part, out)| {
        for (i, hash) in out.iter_mut().enumerate() {
            *hash = hashing.row(width, width.row(keys, part * PART + i));
        }
    });
    out
}

/// The table in parts, each with its first bucket.
fn parts(buckets: &mut [u64]) -> Vec<(usize, &mut [u64])> {
    // Of whole lines, in which searches begin.
    let size =
        buckets.len().div_ceil(rayon::current_num_threads()).next_multiple_of(LINE).max(LINE);
    buckets.chunks_mut(size).enumerate().map(|(i, part)| (i * size, part)).collect()
}

/// Calls for every hash with its home in `first..first + len`, in order; homes are asked for before.
#[inline(always)]
fn homes_in(
    hashes: &[u64],
    buckets: usize,
    (first, part): (usize, &mut [u64]),
    mut each: impl FnMut(usize, u64, usize, &mut [u64]),
) {
    // Those of the part are collected without a branch, which could not be foretold.
    let mut own = [0usize; BLOCK];
    for (block, these) in hashes.chunks(BLOCK).enumerate() {
        let mut count = 0;
        for (i, hash) in these.iter().enumerate() {
            own[count] = i;
            let inside = home(*hash, buckets).wrapping_sub(first) < part.len();
            count += usize::from(inside);
        }
        let own = &own[..count];
        for i in 0..count + AHEAD {
            if let Some(at) = own.get(i) {
                prefetch(part, home(these[*at], buckets) - first);
            }
            if let Some(at) = i.checked_sub(AHEAD).map(|i| own[i]) {
                let hash = these[at];
                each(block * BLOCK + at, hash, home(hash, buckets) - first, part);
            }
        }
    }
}

const BLOCK: usize = 1024;

/// Enters rows that are known to be different, as [`Table::fill`].
pub(super) fn fill<W: Width>(
    table: &mut Table,
    hashing: Hashing,
    width: W,
    keys: &[u8],
    rows: usize,
) {
    let hashes = hashes(hashing, width, keys, rows);
    let len = table.len();
    let all = table.buckets_mut();
    let left: Vec<Vec<usize>> = parts(all)
        .into_par_iter()
        .map(|part| {
            let mut left = Vec::new();
            homes_in(&hashes, len, part, |row, hash, mut at, part| {
                while at < part.len() && part[at] != EMPTY {
                    at += 1;
                }
                match part.get_mut(at) {
                    Some(free) => *free = bucket(hash, row),
                    None => left.push(row),
                }
            });
            left
        })
        .collect();
    for row in left.into_iter().flatten() {
        let mut at = home(hashes[row], len);
        while all[at] != EMPTY {
            at = next(at, len);
        }
        all[at] = bucket(hashes[row], row);
    }
}

impl HashMap {
    /// Sets keys that there is room for; at most [`STEP`].
    pub(super) fn put_spread<W: Width>(
        &mut self,
        width: W,
        keys: &[u8],
        values: &[u8],
        new: &mut [bool],
        replace: bool,
    ) -> Result<()> {
        if self.table.gone() > 0 {
            // Places of removed keys would have to be found by all; there are none in a fresh table.
            self.rehash(self.table.len())?;
        }
        let (key, value) = (width.bytes(), self.types()?.value.bytes());
        let (before, count) = (self.len, new.len());
        let hashes = hashes(self.hashing, width, keys, count);
        let known = Keys { width, stored: self.keys.as_slice(), rows: before, given: keys };
        // The row of the batch that gives the value of a key that was new at this row.
        let winners: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
        let len = self.table.len();
        let all = self.table.buckets_mut();
        let meet = |given: u32, row: usize, done: &mut Done| -> bool {
            let here = width.row(keys, given as usize);
            if known.row(row) != here {
                return false;
            }
            match row.checked_sub(before) {
                None => done.old.push(Entry { given, place: row }),
                Some(first) => {
                    if replace {
                        winners[first].store(given, Relaxed);
                    }
                }
            }
            true
        };
        let mut done: Vec<Done> = parts(all)
            .into_par_iter()
            .map(|part| {
                let first = part.0;
                let mut done = Done::default();
                homes_in(&hashes, len, part, |i, hash, mut at, part| {
                    #[expect(clippy::cast_possible_truncation, reason = "a step has 2^21 keys")]
                    let given = i as u32;
                    loop {
                        let Some(found) = part.get_mut(at) else {
                            done.waiting.push(given);
                            return;
                        };
                        if *found == EMPTY {
                            *found = bucket(hash, before + i);
                            winners[i].store(given, Relaxed);
                            done.new.push(Entry { given, place: first + at });
                            return;
                        }
                        if let Some(row) = row_of(*found, tag(hash))
                            && meet(given, row, &mut done)
                        {
                            return;
                        }
                        at += 1;
                    }
                });
                done
            })
            .collect();

        let mut waiting: Vec<u32> = done.iter().flat_map(|d| d.waiting.iter().copied()).collect();
        waiting.sort_unstable();
        let mut last = Done::default();
        for given in waiting {
            let i = given as usize;
            let hash = hashes[i];
            let mut at = home(hash, len);
            loop {
                let found = all[at];
                if found == EMPTY {
                    all[at] = bucket(hash, before + i);
                    winners[i].store(given, Relaxed);
                    last.new.push(Entry { given, place: at });
                    break;
                }
                if let Some(row) = row_of(found, tag(hash))
                    && meet(given, row, &mut last)
                {
                    break;
                }
                at = next(at, len);
            }
        }
        done.push(last);

        // Numbers in the order of the batch.
        for entry in done.iter().flat_map(|d| &d.new) {
            new[entry.given as usize] = true;
        }
        let mut numbers = vec![0u32; count];
        let mut rows = 0u32;
        for (number, new) in numbers.iter_mut().zip(&*new) {
            *number = rows;
            rows += u32::from(*new);
        }
        let added = rows as usize;
        for entry in done.iter().flat_map(|d| &d.new) {
            let given = entry.given as usize;
            all[entry.place] = bucket(hashes[given], before + numbers[given] as usize);
        }

        let after = before + added;
        let keys_room = self.keys.make_room(after * key);
        if let Err(e) = keys_room.and_then(|()| self.values.make_room(after * value)) {
            // No place of the table stays that says a row which is not there.
            for entry in done.iter().flat_map(|d| &d.new) {
                all[entry.place] = EMPTY;
            }
            return Err(e);
        }
        let stored = &mut self.keys.resize(after * key)?[before * key..];
        copy_new(stored, key, new, &numbers, |i, out| copy(width.row(keys, i), out));
        let stored = self.values.resize(after * value)?;
        let (old, fresh) = stored.split_at_mut(before * value);
        copy_new(fresh, value, new, &numbers, |i, out| {
            copy(&values[winners[i].load(Relaxed) as usize * value..][..value], out);
        });
        if replace {
            for entry in done.iter().flat_map(|d| &d.old) {
                let given = &values[entry.given as usize * value..][..value];
                copy(given, &mut old[entry.place * value..][..value]);
            }
        }
        self.len = after;
        Ok(())
    }
}

/// Writes the rows that are new, by all threads.
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
    let mut jobs = Vec::with_capacity(new.len().div_ceil(PART));
    let mut rest = out;
    for (part, (new, numbers)) in new.chunks(PART).zip(numbers.chunks(PART)).enumerate() {
        let count = new.iter().filter(|n| **n).count();
        let (own, left) = rest.split_at_mut(count * width);
        rest = left;
        jobs.push((part * PART, new, numbers, own));
    }
    jobs.into_par_iter().for_each(|(first, new, numbers, own)| {
        let base = numbers.first().copied().unwrap_or(0);
        for (i, (_, number)) in new.iter().zip(numbers).enumerate().filter(|(_, (n, _))| **n) {
            each(first + i, &mut own[(number - base) as usize * width..][..width]);
        }
    });
}
