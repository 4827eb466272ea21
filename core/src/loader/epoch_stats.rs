//! [`EpochStats`]: the size of an epoch, computed without building its batches.

use std::fmt;

use super::epoch_plan::EpochPlan;
use crate::error::Result;

/// The number of batches, items and bytes of an epoch.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use serrate::arrow::array::UInt16Array;
/// # use serrate::table::RaggedTable;
/// use serrate::loader::{Loader, LoaderOptions};
/// # let table = RaggedTable::builder().lengths([3, 1])?
/// #     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4]))).build()?;
/// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
/// let stats = loader.plan(0).stats()?;
/// assert_eq!(
///     stats.to_string(),
///     "1 batch, 2 items, 18 bytes (the largest batch 18 bytes), 66.7 % occupied"
/// );
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochStats {
    /// Number of batches.
    pub batches: usize,
    /// Number of items (rows, or windows of rows) in all batches.
    pub items: usize,
    /// Size of all tensors of all batches in bytes.
    pub bytes: u64,
    /// Size of all tensors of all batches in bytes, without padding.
    pub occupied: u64,
    /// Size of the largest batch in bytes.
    pub largest_batch: u64,
}

impl EpochStats {
    /// Returns the fraction of the bytes that is not padding; 1 if there are no bytes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::EpochStats;
    /// let stats = EpochStats { bytes: 8, occupied: 6, ..Default::default() };
    /// assert_eq!(stats.occupied_share(), 0.75);
    /// assert_eq!(EpochStats::default().occupied_share(), 1.0);
    /// ```
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn occupied_share(&self) -> f64 {
        if self.bytes == 0 { 1.0 } else { self.occupied as f64 / self.bytes as f64 }
    }

    /// Adds one batch: its number of items, its bytes, and how many of the bytes are not padding.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::EpochStats;
    /// let mut stats = EpochStats::default();
    /// stats.add(2, 100, 75);
    /// stats.add(2, 100, 25);
    /// assert_eq!((stats.items, stats.bytes, stats.occupied_share()), (4, 200, 0.5));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn add(&mut self, items: usize, bytes: usize, occupied: usize) {
        let (bytes, occupied) = (bytes as u64, occupied as u64);
        self.batches += 1;
        self.items += items;
        self.bytes = self.bytes.saturating_add(bytes);
        self.occupied = self.occupied.saturating_add(occupied);
        self.largest_batch = self.largest_batch.max(bytes);
    }
}

impl fmt::Display for EpochStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize, one: &str, more: &str| {
            if n == 1 { format!("1 {one}") } else { format!("{n} {more}") }
        };
        write!(
            f,
            "{}, {}, {} (the largest batch {}), {:.1} % occupied",
            plural(self.batches, "batch", "batches"),
            plural(self.items, "item", "items"),
            ShownBytes(self.bytes),
            ShownBytes(self.largest_batch),
            100.0 * self.occupied_share()
        )
    }
}

struct ShownBytes(u64);

impl fmt::Display for ShownBytes {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} bytes", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kB", n / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} MB", n / 1e6),
            _ => write!(f, "{:.2} GB", n / 1e9),
        }
    }
}

impl EpochPlan {
    /// Computes the size of the epoch from list lengths, in one pass, without building batches.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// # let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// # let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?; // 3 rows
    /// let stats = loader.plan(0).stats()?;
    /// // A value takes 4 bytes and its mask 1; the batches have 2 x 2 and 1 x 3 values.
    /// assert_eq!((stats.batches, stats.bytes, stats.largest_batch), (2, 35, 20));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a batch exceeds [`LoaderOptions::limit`](super::LoaderOptions::limit), or has more than
    /// 2^31 - 1 elements on an axis.
    pub fn stats(&self) -> Result<EpochStats> {
        let mut stats = EpochStats::default();
        for batch in 0..self.num_batches() {
            let draft = self.draft_batch(batch)?;
            stats.add(draft.items.len(), draft.bytes, draft.occupied);
        }
        Ok(stats)
    }
}
