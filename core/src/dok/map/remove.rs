//! Removal of keys: marks their buckets and moves the last rows into the gaps.

use super::RowMap;
use super::get::MISSING;
use super::row_types::{RowWidth, with_key_width};
use crate::dense::DenseTensor;
use crate::error::Result;

impl RowMap {
    /// Removes keys.
    ///
    /// Returns, for each row, whether its key was present before; every repeat of a key gives the
    /// same result. The last rows move into the gaps, in order, so that rows stay contiguous.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{MapOptions, RowMap};
    /// let mut map = RowMap::new(MapOptions::default())?;
    /// let keys = DenseTensor::from_vec([4], vec![1, 2, 3, 4])?;
    /// map.set(&keys, &keys)?;
    /// let removed = map.remove(&DenseTensor::from_vec([3], vec![2, 2, 9])?)?;
    /// assert_eq!(removed, [true, true, false]);
    /// assert_eq!(map.keys()?.as_slice::<i32>()?, [1, 4, 3]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the map has no types yet, or the keys have another type or shape.
    pub fn remove(&mut self, keys: &DenseTensor) -> Result<Vec<bool>> {
        let (queries, count) = self.canonicalize_batch(keys)?;
        self.remove_rows(&queries, count)
    }

    pub(crate) fn remove_rows(&mut self, queries: &[u8], count: usize) -> Result<Vec<bool>> {
        let places = self.find_buckets(queries, count)?;
        let found: Vec<bool> = places.iter().map(|p| *p != MISSING).collect();
        let mut buckets: Vec<usize> = places
            .into_iter()
            .filter(|p| *p != MISSING)
            .filter_map(|p| usize::try_from(p).ok())
            .collect();
        buckets.sort_unstable();
        buckets.dedup();
        if buckets.is_empty() {
            return Ok(found);
        }
        let mut rows: Vec<usize> =
            buckets.iter().filter_map(|b| find_occupied_row(self.table.buckets()[*b])).collect();
        rows.sort_unstable();
        // If tensors share the rows, copy the rows before the first change: the copy can fail, and
        // the map must then be unchanged.
        self.keys.as_mut_slice()?;
        self.values.as_mut_slice()?;
        // A removed bucket becomes empty only if the next bucket is empty, so remove the last
        // bucket first.
        for at in buckets.into_iter().rev() {
            self.table.remove(at);
        }
        self.fill_gaps(&rows)?;
        Ok(found)
    }

    /// Moves the last rows of keys and values into the gaps that the removed rows leave. `removed`
    /// has the indices of these rows, ascending.
    fn fill_gaps(&mut self, removed: &[usize]) -> Result<()> {
        let types = self.types()?.clone();
        let left = self.len - removed.len();
        let holes = removed.partition_point(|row| *row < left);
        let (holes, past) = removed.split_at(holes);
        let mut past = past.iter().copied().peekable();
        let movers = (left..self.len).filter(|row| past.next_if_eq(row).is_none());
        let hashing = self.hashing;
        let moves: Vec<(usize, usize)> = movers.zip(holes.iter().copied()).collect();
        let keys = self.keys.as_mut_slice()?;
        let values = self.values.as_mut_slice()?;
        let (key, value) = (types.key.nbytes(), types.value.nbytes());
        with_key_width!(key, w => {
            for &(from, to) in &moves {
                let hash = hashing.hash_row(w, w.row(keys, from));
                if let Some(at) = self.table.find_row_bucket(hash, from) {
                    self.table.buckets_mut()[at] = super::index_table::pack_bucket(hash, to);
                }
                keys.copy_within(from * key..from * key + key, to * key);
                values.copy_within(from * value..from * value + value, to * value);
            }
        });
        self.len = left;
        self.keys.truncate(left * key);
        self.values.truncate(left * value);
        if left == 0 && self.table.count_removed_buckets() > 0 {
            self.table.clear();
        }
        Ok(())
    }
}

fn find_occupied_row(bucket: u64) -> Option<usize> {
    super::index_table::match_row(bucket, super::index_table::extract_bucket_tag(bucket))
}
