use super::index_table::{IndexTable, compute_bucket_count};
use super::row_types::with_key_width;
use super::{RowMap, insert_parallel};
use crate::error::{Error, Result};

impl RowMap {
    pub(super) fn max_rows(&self) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of the number of buckets"
        )]
        let limit = (self.table.len() as f64 * self.options.load_factor) as usize;
        limit.min(self.table.len() - 1)
    }

    pub(super) fn has_capacity(&self, more: usize) -> bool {
        let taken = self.len + self.table.count_removed_buckets();
        taken.checked_add(more).is_some_and(|n| n <= self.max_rows())
    }

    /// Ensures that the table has capacity for `more` further keys. Growing multiplies the number
    /// of buckets at least by [`MapOptions::growth`](super::MapOptions::growth).
    pub(super) fn ensure_capacity(&mut self, more: usize) -> Result<()> {
        if self.has_capacity(more) {
            return Ok(());
        }
        let rows = self.len.saturating_add(more);
        let needed = compute_bucket_count(rows, self.options.load_factor)?;
        let buckets = if rows <= self.max_rows() {
            // A rebuild with the same number of buckets frees the buckets of removed keys, so the
            // new keys fit. If the table would then be more than half full, grow it to avoid
            // another rebuild soon.
            if rows > self.max_rows() / 2 {
                needed.max(self.compute_grown_buckets())
            } else {
                self.table.len()
            }
        } else {
            needed.max(self.compute_grown_buckets())
        };
        self.rebuild_table(buckets)
    }

    fn compute_grown_buckets(&self) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the allocation fails for too many buckets"
        )]
        let grown = (self.table.len() as f64 * self.options.growth).ceil() as usize;
        grown
    }

    fn rebuild_table(&mut self, buckets: usize) -> Result<()> {
        let mut table = IndexTable::new(buckets)?;
        let (hashing, keys, len) = (self.hashing, self.keys.as_slice(), self.len);
        if let Some(types) = &self.types {
            with_key_width!(types.key.nbytes(), w => {
                if self.options.parallel && len >= insert_parallel::MIN_PARALLEL_KEYS {
                    insert_parallel::fill_parallel(&mut table, hashing, w, keys, len);
                } else {
                    table.insert_distinct(hashing, w, keys, len);
                }
            });
        }
        self.table = table;
        Ok(())
    }

    /// Reserves capacity for `more` keys, so that inserting them does not reallocate.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let mut map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// map.reserve(1000)?;
    /// assert!(map.n_buckets() > 1000);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        let rows = self.len.saturating_add(more);
        if !self.has_capacity(more) {
            self.rebuild_table(
                compute_bucket_count(rows, self.options.load_factor)?.max(self.table.len()),
            )?;
        }
        if let Some(types) = &self.types {
            let bytes = |row: usize| {
                rows.checked_mul(row).filter(|b| isize::try_from(*b).is_ok()).ok_or_else(|| {
                    Error::invalid(format!(
                        "{rows} rows of {row} bytes exceed the address space; reserve fewer rows"
                    ))
                })
            };
            let (keys, values) = (bytes(types.key.nbytes())?, bytes(types.value.nbytes())?);
            self.keys.reserve(keys)?;
            self.values.reserve(values)?;
        }
        Ok(())
    }

    /// Rebuilds the index table without removed keys.
    ///
    /// The table gets `n_buckets` buckets, or more if the keys need more.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{MapOptions, RowMap};
    /// let mut map = RowMap::new(MapOptions::default())?;
    /// let keys = DenseTensor::from_vec([3], vec![1, 2, 3])?;
    /// map.set(&keys, &DenseTensor::from_vec([3], vec![4, 5, 6])?)?;
    /// map.rehash(1000)?;
    /// assert_eq!((map.n_buckets(), map.len()), (1000, 3));
    /// map.rehash(0)?;
    /// assert_eq!((map.n_buckets(), map.len()), (4, 3));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn rehash(&mut self, n_buckets: usize) -> Result<()> {
        self.rebuild_table(compute_bucket_count(self.len, self.options.load_factor)?.max(n_buckets))
    }

    /// Releases memory that the current keys do not need.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let mut map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// map.reserve(1000)?;
    /// map.shrink()?;
    /// assert_eq!(map.len(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the smaller copy cannot be allocated.
    pub fn shrink(&mut self) -> Result<()> {
        self.keys.shrink_to_len()?;
        self.values.shrink_to_len()?;
        self.rebuild_table(compute_bucket_count(self.len, self.options.load_factor)?)
    }

    /// Removes all keys; keeps memory and types.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let mut map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// map.clear();
    /// assert!(map.is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.table.clear();
        self.keys.truncate(0);
        self.values.truncate(0);
        self.len = 0;
    }
}
