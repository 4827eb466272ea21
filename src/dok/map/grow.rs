//! How large the index table is: growing, shrinking, rehashing.

use super::rows::with_key_width;
use super::table::{Table, buckets_for};
use super::{HashMap, spread};
use crate::error::{Error, Result};

impl HashMap {
    /// The keys that the table takes before it grows.
    pub(super) fn limit(&self) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of the number of buckets"
        )]
        let limit = (self.table.len() as f64 * self.options.load_factor) as usize;
        limit.min(self.table.len() - 1)
    }

    /// Whether `more` keys can come without another table.
    pub(super) fn has_room(&self, more: usize) -> bool {
        let taken = self.len + self.table.gone();
        taken.checked_add(more).is_some_and(|n| n <= self.limit())
    }

    /// Sees to it that `more` keys can come, growing by the factor at least.
    pub(super) fn make_room(&mut self, more: usize) -> Result<()> {
        if self.has_room(more) {
            return Ok(());
        }
        let rows = self.len.saturating_add(more);
        let needed = buckets_for(rows, self.options.load_factor)?;
        let buckets = if rows <= self.limit() {
            // Only the places of removed keys are in the way. A table that is nearly full grows all
            // the same, or it would be made anew again and again.
            if rows > self.limit() / 2 { needed.max(self.grown()) } else { self.table.len() }
        } else {
            needed.max(self.grown())
        };
        self.rebuild(buckets)
    }

    fn grown(&self) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "too many buckets are refused when their memory is asked for"
        )]
        let grown = (self.table.len() as f64 * self.options.growth).ceil() as usize;
        grown
    }

    /// A table of so many buckets, with all keys entered anew.
    fn rebuild(&mut self, buckets: usize) -> Result<()> {
        let mut table = Table::new(buckets)?;
        let (hashing, keys, len) = (self.hashing, self.keys.as_slice(), self.len);
        if let Some(types) = &self.types {
            with_key_width!(types.key.bytes(), w => {
                if self.options.parallel && len >= spread::PARALLEL {
                    spread::fill(&mut table, hashing, w, keys, len);
                } else {
                    table.fill(hashing, w, keys, len);
                }
            });
        }
        self.table = table;
        Ok(())
    }

    /// Makes room for `more` keys, so that nothing is moved while they are set.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        let rows = self.len.saturating_add(more);
        if !self.has_room(more) {
            self.rebuild(buckets_for(rows, self.options.load_factor)?.max(self.table.len()))?;
        }
        if let Some(types) = &self.types {
            let bytes = |row: usize| {
                rows.checked_mul(row).filter(|b| isize::try_from(*b).is_ok()).ok_or_else(|| {
                    Error::invalid(format!("{rows} rows of {row} bytes cannot be addressed"))
                })
            };
            let (keys, values) = (bytes(types.key.bytes())?, bytes(types.value.bytes())?);
            self.keys.reserve(keys)?;
            self.values.reserve(values)?;
        }
        Ok(())
    }

    /// Makes the table `n_buckets` large, or as large as its keys need at its load factor, and enters
    /// all keys anew; the places of removed keys are free again.
    ///
    /// ```
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{HashMap, MapOptions};
    /// let mut map = HashMap::new(MapOptions::default())?;
    /// map.set(&DenseTensor::from_vec([3], vec![1, 2, 3])?, &DenseTensor::from_vec([3], vec![4, 5, 6])?)?;
    /// map.rehash(1000)?;
    /// assert_eq!((map.n_buckets(), map.len()), (1000, 3));
    /// map.rehash(0)?;
    /// assert_eq!((map.n_buckets(), map.len()), (4, 3));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn rehash(&mut self, n_buckets: usize) -> Result<()> {
        self.rebuild(buckets_for(self.len, self.options.load_factor)?.max(n_buckets))
    }

    /// Gives back the memory that the keys there are do not need.
    ///
    /// # Errors
    /// When there is no memory for the smaller copy.
    pub fn shrink(&mut self) -> Result<()> {
        self.keys.shrink()?;
        self.values.shrink()?;
        self.rebuild(buckets_for(self.len, self.options.load_factor)?)
    }

    /// Removes all keys; memory and types stay.
    pub fn clear(&mut self) {
        self.table.clear();
        self.keys.truncate(0);
        self.values.truncate(0);
        self.len = 0;
    }
}
