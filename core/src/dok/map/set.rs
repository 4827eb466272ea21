//! Insertion and update of keys in one thread.

#[cfg(target_arch = "x86_64")]
use super::bucket_search::Avx2Probe;
use super::bucket_search::{BucketProbe, NO_ROW, ScalarProbe};
use super::hash::{prefetch_row, prefetch_value};
use super::index_table::{
    AHEAD, EMPTY, RING, find_home_bucket, hash_tag, is_free, match_row, next_bucket, pack_bucket,
};
use super::insert_parallel;
use super::row_types::{RowType, RowWidth, copy_row, with_key_width};
use super::{Fallback, FetchedValues, RowMap, RowTypes};
use crate::dense::DenseTensor;
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::Avx2;
use crate::kernels::simd::for_avx2;

/// Maximum number of keys between two checks of the capacity of the table.
const MAX_UNCHECKED_KEYS: usize = 4096;

impl RowMap {
    /// Replaces the values of existing keys and adds new keys.
    ///
    /// Returns, for each row, whether it added its key. If the batch repeats a key, its first row
    /// adds the key and its last row provides the value. The first batch determines the types of
    /// keys and values, unless the constructor did.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{MapOptions, RowMap};
    /// let mut map = RowMap::new(MapOptions::default())?;
    /// let keys = DenseTensor::from_vec([3, 2], vec![1, 2, 3, 4, 1, 2])?;
    /// let new = map.set(&keys, &DenseTensor::from_vec([3], vec![10.0, 20.0, 30.0])?)?;
    /// assert_eq!(new, [true, true, false]);
    /// assert_eq!(map.values()?.as_slice::<f64>()?, [30.0, 20.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If keys or values have another type or shape than in the map, the number of keys differs
    /// from the number of values, or memory cannot be allocated (some rows may be set by then).
    pub fn set(&mut self, keys: &DenseTensor, values: &DenseTensor) -> Result<Vec<bool>> {
        self.put_batch(keys, values, true)
    }

    /// Adds the missing keys and returns the values of all keys.
    ///
    /// `found` is false for rows that added their key. If a new key repeats, its first row adds it
    /// and provides the value.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{MapOptions, RowMap};
    /// let mut map = RowMap::new(MapOptions::default())?;
    /// let keys = DenseTensor::from_vec([3], vec![5, 5, 6])?;
    /// let fetched = map.get_or_insert(&keys, &DenseTensor::from_vec([3], vec![1, 2, 3])?)?;
    /// assert_eq!(fetched.values.as_slice::<i32>()?, [1, 1, 3]);
    /// assert_eq!(fetched.found, [false, true, false]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`set`](Self::set).
    pub fn get_or_insert(
        &mut self,
        keys: &DenseTensor,
        values: &DenseTensor,
    ) -> Result<FetchedValues> {
        let new = self.put_batch(keys, values, false)?;
        let fetched = self.get(keys, &Fallback::Zero)?;
        Ok(FetchedValues { found: new.into_iter().map(|n| !n).collect(), ..fetched })
    }

    fn put_batch(
        &mut self,
        keys: &DenseTensor,
        values: &DenseTensor,
        replace: bool,
    ) -> Result<Vec<bool>> {
        let (key, value) = (RowType::of(keys)?, RowType::of(values)?);
        let (count, given) = (keys.shape()[0], values.shape()[0]);
        if count != given {
            return Err(Error::invalid(format!(
                "{count} key(s) but {given} value(s) are given; give one value per key"
            )));
        }
        match &self.types {
            Some(types) => {
                types.key.check_equal(&key, "keys")?;
                types.value.check_equal(&value, "values")?;
            }
            None => self.types = Some(RowTypes { key, value }),
        }
        let keys = super::canonicalize_keys(keys)?;
        self.put_rows(&keys, values.as_bytes(), count, replace)
    }

    /// Inserts `count` keys that `canonicalize_keys` returned, and their values. Returns, for each
    /// row, whether it added its key. If `replace` is false, keys that the map already has keep
    /// their values. The caller has checked the lengths.
    pub(crate) fn put_rows(
        &mut self,
        keys: &[u8],
        values: &[u8],
        count: usize,
        replace: bool,
    ) -> Result<Vec<bool>> {
        let types = self.types()?;
        let (key, value) = (types.key.nbytes(), types.value.nbytes());
        let mut new = vec![false; count];
        with_key_width!(key, w => {
            let mut first = 0;
            while first < count {
                let left = count - first;
                let parallel = self.uses_threads(left) && key > 0;
                let most = match parallel {
                    true => insert_parallel::MAX_STEP_KEYS,
                    false => MAX_UNCHECKED_KEYS,
                };
                let mut step = most.min(left);
                // Keys of the batch may repeat, so it is unknown how many of them are new. The
                // table therefore gets capacity for all keys that the next step inserts. Limit the
                // step to about as many keys as the map has, so that the table at most doubles.
                let target = MAX_UNCHECKED_KEYS.max(self.len);
                while parallel && step > target && !self.has_capacity(step) {
                    step = (step / 2).max(MAX_UNCHECKED_KEYS);
                }
                self.ensure_capacity(step)?;
                let keys = &keys[first * key..][..step * key];
                let values = &values[first * value..][..step * value];
                let new = &mut new[first..first + step];
                if parallel && step >= insert_parallel::MIN_PARALLEL_KEYS {
                    self.put_parallel(w, keys, values, new, replace)?;
                } else {
                    self.put_step(w, keys, values, new, replace)?;
                }
                first += step;
            }
        });
        Ok(new)
    }

    /// Inserts keys in one thread, and sets `new` to true for each row that adds its key. The
    /// caller has ensured that the table has capacity for all keys.
    fn put_step<W: RowWidth>(
        &mut self,
        width: W,
        keys: &[u8],
        values: &[u8],
        new: &mut [bool],
        replace: bool,
    ) -> Result<()> {
        let (map, rows) = (self, (keys, values));
        for_avx2!(
            fn[W: RowWidth](
                map: &mut RowMap, width: W, rows: (&[u8], &[u8]), new: &mut [bool], replace: bool,
            ) -> Result<()> = {
                map.put_with_probe(Avx2Probe(Avx2::new()), width, rows, new, replace)
            },
            else map.put_with_probe(ScalarProbe, width, rows, new, replace)
        )
    }

    #[inline(always)]
    fn put_with_probe<W: RowWidth>(
        &mut self,
        probe: impl BucketProbe,
        width: W,
        (keys, values): (&[u8], &[u8]),
        new: &mut [bool],
        replace: bool,
    ) -> Result<()> {
        let value = self.types()?.value.nbytes();
        let (key, count, before) = (width.bytes(), new.len(), self.len);
        let hashing = self.hashing;
        let most = before + count;
        // Reserve memory for keys and values first, so that no error leaves keys without values.
        self.keys.reserve_unshared(most * key)?;
        self.values.reserve_unshared(most * value)?;
        let stored = self.keys.resize(most * key)?;
        let stored_values = self.values.resize(most * value)?;
        let len = self.table.len();
        let buckets = self.table.buckets_mut();
        let (mut rows, mut reused) = (before, 0);
        let mut hashes = [0u64; RING];
        for i in 0..count + 2 * AHEAD {
            if i < count {
                let hash = hashing.hash_row(width, width.row(keys, i));
                hashes[i % RING] = hash;
                prefetch_value(buckets, find_home_bucket(hash, len));
            }
            if let Some(j) = i.checked_sub(AHEAD)
                && j < count
            {
                let hash = hashes[j % RING];
                let row =
                    probe.find_candidate(buckets, hash_tag(hash), find_home_bucket(hash, len)).row;
                if row != NO_ROW {
                    prefetch_row(width, stored, row);
                    prefetch_value(stored_values, row * value);
                }
            }
            let Some(j) = i.checked_sub(2 * AHEAD) else { continue };
            let (hash, row) = (hashes[j % RING], width.row(keys, j));
            let given = &values[j * value..][..value];
            let mut at = find_home_bucket(hash, len);
            let mut free = None;
            loop {
                let found = buckets[at];
                if let Some(found_row) = match_row(found, hash_tag(hash))
                    && width.row(stored, found_row) == row
                {
                    if replace {
                        copy_row(given, &mut stored_values[found_row * value..][..value]);
                    }
                    break;
                }
                if is_free(found) {
                    free = free.or(Some((at, found)));
                    if found == EMPTY {
                        let (at, held) = free.unwrap_or((at, found));
                        reused += usize::from(held != EMPTY);
                        buckets[at] = pack_bucket(hash, rows);
                        copy_row(row, &mut stored[rows * key..][..key]);
                        copy_row(given, &mut stored_values[rows * value..][..value]);
                        rows += 1;
                        new[j] = true;
                        break;
                    }
                }
                at = next_bucket(at, len);
            }
        }
        self.table.mark_reused(reused);
        self.len = rows;
        self.keys.truncate(rows * key);
        self.values.truncate(rows * value);
        Ok(())
    }
}
