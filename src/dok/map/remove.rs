//! Removing keys: their buckets are marked, and the last rows take their places.

use super::HashMap;
use super::get::MISSING;
use super::rows::{Width, with_key_width};
use crate::dense::DenseTensor;
use crate::error::Result;

impl HashMap {
    /// Removes keys, and says which rows of the batch were there before it (every row of a key that
    /// the batch has more than once). The rows left at the end take the places of those that went, in
    /// their order, so that there are no holes.
    ///
    /// ```
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{HashMap, MapOptions};
    /// let mut map = HashMap::new(MapOptions::default())?;
    /// let keys = DenseTensor::from_vec([4], vec![1, 2, 3, 4])?;
    /// map.set(&keys, &keys)?;
    /// let gone = map.remove(&DenseTensor::from_vec([3], vec![2, 2, 9])?)?;
    /// assert_eq!(gone, [true, true, false]);
    /// assert_eq!(map.keys()?.as_slice::<i32>()?, [1, 4, 3]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the map has no types yet, or its keys are of another type or shape.
    pub fn remove(&mut self, keys: &DenseTensor) -> Result<Vec<bool>> {
        let (asked, count) = self.batch(keys)?;
        self.remove_rows(&asked, count)
    }

    /// Canonical keys as bytes.
    pub(crate) fn remove_rows(&mut self, asked: &[u8], count: usize) -> Result<Vec<bool>> {
        let places = self.find_buckets(asked, count)?;
        let there: Vec<bool> = places.iter().map(|p| *p != MISSING).collect();
        let mut buckets: Vec<usize> = places
            .into_iter()
            .filter(|p| *p != MISSING)
            .filter_map(|p| usize::try_from(p).ok())
            .collect();
        buckets.sort_unstable();
        buckets.dedup();
        if buckets.is_empty() {
            return Ok(there);
        }
        let mut rows: Vec<usize> =
            buckets.iter().filter_map(|b| row_in(self.table.buckets()[*b])).collect();
        rows.sort_unstable();
        // From the last on, so that what is empty behind a bucket is known.
        for at in buckets.into_iter().rev() {
            self.table.remove(at);
        }
        self.close(&rows)?;
        Ok(there)
    }

    /// Puts the last rows in the places of those that went (ascending).
    fn close(&mut self, gone: &[usize]) -> Result<()> {
        let types = self.types()?.clone();
        let left = self.len - gone.len();
        let holes = gone.partition_point(|row| *row < left);
        let (holes, past) = gone.split_at(holes);
        let mut past = past.iter().copied().peekable();
        let movers = (left..self.len).filter(|row| past.next_if_eq(row).is_none());
        let hashing = self.hashing;
        let moves: Vec<(usize, usize)> = movers.zip(holes.iter().copied()).collect();
        let keys = self.keys.as_mut_slice()?;
        let values = self.values.as_mut_slice()?;
        let (key, value) = (types.key.bytes(), types.value.bytes());
        with_key_width!(key, w => {
            for &(from, to) in &moves {
                let hash = hashing.row(w, w.row(keys, from));
                if let Some(at) = self.table.bucket_of(hash, from) {
                    self.table.buckets_mut()[at] = super::table::bucket(hash, to);
                }
                keys.copy_within(from * key..from * key + key, to * key);
                values.copy_within(from * value..from * value + value, to * value);
            }
        });
        self.len = left;
        self.keys.truncate(left * key);
        self.values.truncate(left * value);
        if left == 0 && self.table.gone() > 0 {
            self.table.clear();
        }
        Ok(())
    }
}

/// The row of a bucket that has one.
fn row_in(bucket: u64) -> Option<usize> {
    super::table::row_of(bucket, super::table::tag_of(bucket))
}
