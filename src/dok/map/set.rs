//! Setting keys, by one thread.

use super::hash::{prefetch, prefetch_row};
#[cfg(target_arch = "x86_64")]
use super::probe::ByLine;
use super::probe::{NONE, OneByOne, Probe};
use super::rows::{RowType, Width, copy, with_key_width};
use super::spread;
use super::table::{AHEAD, EMPTY, RING, bucket, home, is_free, next, row_of, tag};
use super::{Fallback, Fetched, HashMap, Types};
use crate::dense::DenseTensor;
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::kernels::bits::has_avx2;

/// Keys between looks at the room that is left.
const STEP: usize = 4096;

impl HashMap {
    /// Sets the values of keys: those that are there get another value, the others are added. Says
    /// which rows added their key. Of a key that the batch has more than once, the last row gives
    /// the value, and the first is the one that added it.
    ///
    /// The first batch fixes what keys and values are, unless that was given when the map was made.
    ///
    /// ```
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{HashMap, MapOptions};
    /// let mut map = HashMap::new(MapOptions::default())?;
    /// let keys = DenseTensor::from_vec([3, 2], vec![1, 2, 3, 4, 1, 2])?;
    /// let new = map.set(&keys, &DenseTensor::from_vec([3], vec![10.0, 20.0, 30.0])?)?;
    /// assert_eq!(new, [true, true, false]);
    /// assert_eq!(map.values()?.as_slice::<f64>()?, [30.0, 20.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// When keys or values are of another type or shape than those of the map, there are not as many
    /// of the one as of the other, or there is not so much memory (some rows may be set then).
    pub fn set(&mut self, keys: &DenseTensor, values: &DenseTensor) -> Result<Vec<bool>> {
        self.put(keys, values, true)
    }

    /// Sets the values of the keys that are not there, and gives the values that all of the keys
    /// have then; `found` says which were there before. Of a new key that the batch has more than
    /// once, the first row counts, as if rows came one after the other.
    ///
    /// ```
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{HashMap, MapOptions};
    /// let mut map = HashMap::new(MapOptions::default())?;
    /// let keys = DenseTensor::from_vec([3], vec![5, 5, 6])?;
    /// let fetched = map.get_or_insert(&keys, &DenseTensor::from_vec([3], vec![1, 2, 3])?)?;
    /// assert_eq!(fetched.values.as_slice::<i32>()?, [1, 1, 3]);
    /// assert_eq!(fetched.found, [false, true, false]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn get_or_insert(&mut self, keys: &DenseTensor, values: &DenseTensor) -> Result<Fetched> {
        let new = self.put(keys, values, false)?;
        let fetched = self.get(keys, &Fallback::Zero)?;
        Ok(Fetched { found: new.into_iter().map(|n| !n).collect(), ..fetched })
    }

    fn put(
        &mut self,
        keys: &DenseTensor,
        values: &DenseTensor,
        replace: bool,
    ) -> Result<Vec<bool>> {
        let (key, value) = (RowType::of(keys)?, RowType::of(values)?);
        let (count, given) = (keys.shape()[0], values.shape()[0]);
        if count != given {
            return Err(Error::invalid(format!("{count} keys and {given} values")));
        }
        match &self.types {
            Some(types) => {
                types.key.check(&key, "keys")?;
                types.value.check(&value, "values")?;
            }
            None => self.types = Some(Types { key, value }),
        }
        let keys = super::canonical(keys)?;
        self.put_rows(&keys, values.as_bytes(), count, replace)
    }

    /// Canonical keys and their values as bytes; types are set and lengths are right.
    pub(crate) fn put_rows(
        &mut self,
        keys: &[u8],
        values: &[u8],
        count: usize,
        replace: bool,
    ) -> Result<Vec<bool>> {
        let types = self.types()?;
        let (key, value) = (types.key.bytes(), types.value.bytes());
        let mut new = vec![false; count];
        with_key_width!(key, w => {
            let mut first = 0;
            while first < count {
                let left = count - first;
                let parallel = self.divides(left) && key > 0;
                let mut step = if parallel { spread::STEP } else { STEP }.min(left);
                // Keys may be the same few again and again: the table at most doubles for a step.
                while parallel && step > STEP && !self.has_room(step) && step > self.len {
                    step = (step / 2).max(STEP);
                }
                self.make_room(step)?;
                let keys = &keys[first * key..][..step * key];
                let values = &values[first * value..][..step * value];
                let new = &mut new[first..first + step];
                if parallel && step >= spread::PARALLEL {
                    self.put_spread(w, keys, values, new, replace)?;
                } else {
                    self.put_step(w, keys, values, new, replace)?;
                }
                first += step;
            }
        });
        Ok(new)
    }

    /// Sets keys that there is room for.
    fn put_step<W: Width>(
        &mut self,
        width: W,
        keys: &[u8],
        values: &[u8],
        new: &mut [bool],
        replace: bool,
    ) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn wide<W: Width>(
                map: &mut HashMap,
                width: W,
                rows: (&[u8], &[u8]),
                new: &mut [bool],
                replace: bool,
            ) -> Result<()> {
                // SAFETY: this is compiled for AVX2, and runs where it is.
                map.put_by(unsafe { ByLine::new() }, width, rows, new, replace)
            }
            if has_avx2() {
                // SAFETY: the processor has what the function was compiled for.
                return unsafe { wide(self, width, (keys, values), new, replace) };
            }
        }
        self.put_by(OneByOne, width, (keys, values), new, replace)
    }

    #[inline(always)]
    fn put_by<W: Width>(
        &mut self,
        probe: impl Probe,
        width: W,
        (keys, values): (&[u8], &[u8]),
        new: &mut [bool],
        replace: bool,
    ) -> Result<()> {
        let value = self.types()?.value.bytes();
        let (key, count, before) = (width.bytes(), new.len(), self.len);
        let hashing = self.hashing;
        let most = before + count;
        // Room for both before one of them is longer: keys without values would stay otherwise.
        self.keys.make_room(most * key)?;
        self.values.make_room(most * value)?;
        let stored = self.keys.resize(most * key)?;
        let stored_values = self.values.resize(most * value)?;
        let len = self.table.len();
        let buckets = self.table.buckets_mut();
        let (mut rows, mut reused) = (before, 0);
        let mut hashes = [0u64; RING];
        for i in 0..count + 2 * AHEAD {
            if i < count {
                let hash = hashing.row(width, width.row(keys, i));
                hashes[i % RING] = hash;
                prefetch(buckets, home(hash, len));
            }
            if let Some(j) = i.checked_sub(AHEAD)
                && j < count
            {
                let hash = hashes[j % RING];
                let row = probe.candidate(buckets, tag(hash), home(hash, len)).row;
                if row != NONE {
                    prefetch_row(width, stored, row);
                    prefetch(stored_values, row * value);
                }
            }
            let Some(j) = i.checked_sub(2 * AHEAD) else { continue };
            let (hash, row) = (hashes[j % RING], width.row(keys, j));
            let given = &values[j * value..][..value];
            let mut at = home(hash, len);
            let mut free = None;
            loop {
                let found = buckets[at];
                if let Some(there) = row_of(found, tag(hash))
                    && width.row(stored, there) == row
                {
                    if replace {
                        copy(given, &mut stored_values[there * value..][..value]);
                    }
                    break;
                }
                if is_free(found) {
                    free = free.or(Some((at, found)));
                    if found == EMPTY {
                        let (at, held) = free.unwrap_or((at, found));
                        reused += usize::from(held != EMPTY);
                        buckets[at] = bucket(hash, rows);
                        copy(row, &mut stored[rows * key..][..key]);
                        copy(given, &mut stored_values[rows * value..][..value]);
                        rows += 1;
                        new[j] = true;
                        break;
                    }
                }
                at = next(at, len);
            }
        }
        self.table.reused(reused);
        self.len = rows;
        self.keys.truncate(rows * key);
        self.values.truncate(rows * value);
        Ok(())
    }
}
