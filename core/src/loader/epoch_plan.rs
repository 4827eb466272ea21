//! [`EpochPlan`]: which rows and windows each batch of an epoch has.

use std::ops::Range;
use std::sync::Arc;

use super::items::{BatchItem, ItemOrigin, RowPrefix};
use super::loader_source::ShardRow;
use super::options::ProcessPart;
use super::random::{derive_random, new_epoch_rng, shuffle_items};
use super::row_windows::RowWindows;
use super::state::LoaderState;
use crate::error::{Error, Result};

/// The batches of one epoch, which depend only on the options, the lengths of the rows and the
/// epoch.
///
/// A plan takes 4 bytes per item, or none in source order. It does not store windows: they are
/// computed when their batch is built.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::UInt16Array;
/// # use serrate::table::RaggedTable;
/// use serrate::loader::{Loader, LoaderOptions};
/// let table = RaggedTable::builder()
///     .lengths([2, 1, 0])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// let plan = Loader::try_new([table], LoaderOptions::new(2))?.plan(5);
/// assert_eq!((plan.epoch(), plan.num_batches(), plan.num_items()), (5, 2, 3));
/// assert_eq!(plan.items(0).map(|item| item.row).collect::<Vec<_>>(), [0, 1]);
/// assert_eq!((plan.items(1).len(), plan.items(2).len()), (1, 0));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct EpochPlan {
    pub(super) inner: Arc<LoaderState>,
    epoch: u64,
    /// Indices of the items in the order of the epoch; `None` if this is the order of the source.
    order: Option<Vec<u32>>,
    /// The items of batch `i` start at position `parts[i] * size` of `order`; `None` unless
    /// `shuffle` and `bucket` are both set.
    parts: Option<Vec<u32>>,
    items: usize,
    /// Number of items per batch.
    size: usize,
    part: ProcessPart,
}

impl EpochPlan {
    /// Plans an epoch of one batch with the given items. Returns an error if `items` is empty, or
    /// if an item does not exist.
    pub(super) fn from_items(inner: Arc<LoaderState>, epoch: u64, items: &[usize]) -> Result<Self> {
        let all = inner.items.len();
        let order = items
            .iter()
            .map(|item| {
                u32::try_from(*item).ok().filter(|_| *item < all).ok_or_else(|| Error::OutOfRange {
                    axis: 0,
                    index: i64::try_from(*item).unwrap_or(i64::MAX),
                    size: all,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        if order.is_empty() {
            return Err(Error::invalid("no items are given for the batch; give at least one"));
        }
        let (items, part) = (order.len(), ProcessPart { rank: 0, world: 1 });
        Ok(Self { inner, epoch, order: Some(order), parts: None, items, size: items, part })
    }

    pub(super) fn new(inner: Arc<LoaderState>, epoch: u64) -> Self {
        let (options, all) = (&inner.options, inner.items.len());
        let size = options.batch_size;
        let items = if options.drop_last { all - all % size } else { all };
        let mut rng = new_epoch_rng(options.seed, epoch);
        // `EpochItems::new` checked that the number of items fits a `u32`, so this cannot fail.
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut order = None;
        if options.shuffle || options.bucket.is_some() {
            let mut own: Vec<u32> = (0..number(all)).collect();
            if options.shuffle {
                shuffle_items(&mut own, &mut rng);
            }
            own.truncate(items);
            order = Some(own);
        }
        let (parts, part) = (None, options.part);
        let mut plan =
            Self { epoch, order: None, parts, items, size, part, inner: Arc::clone(&inner) };
        if let (Some(pool), Some(order)) = (options.bucket, &mut order) {
            plan.sort_pools(order, pool.saturating_mul(size));
            if options.shuffle {
                let mut parts: Vec<u32> = (0..number(items.div_ceil(size))).collect();
                shuffle_items(&mut parts, &mut rng);
                plan.parts = Some(parts);
            }
        }
        plan.order = order;
        plan
    }

    /// Divides `order` into groups of `pool` items, and sorts the items of each group stably by the
    /// length of their windows.
    fn sort_pools(&self, order: &mut [u32], pool: usize) {
        let mut keys: Vec<(u32, u32, u32)> = Vec::new();
        for part in order.chunks_mut(pool) {
            keys.clear();
            keys.extend((0u32..).zip(&*part).map(|(place, item)| {
                let len = self.find_window_of_item(*item).1.len();
                (u32::try_from(len).unwrap_or(u32::MAX), place, *item)
            }));
            keys.sort_unstable();
            for (slot, (_, _, item)) in part.iter_mut().zip(&keys) {
                *slot = *item;
            }
        }
    }

    /// Returns the number of the epoch.
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
    /// assert_eq!(loader.plan(3).epoch(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the number of batches that this process builds: its
    /// [part](super::LoaderOptions::part) of the epoch.
    ///
    /// All methods of the plan count and list only these batches.
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
    /// assert_eq!(loader.plan(0).num_batches(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_batches(&self) -> usize {
        let ProcessPart { rank, world } = self.part;
        let all = self.items.div_ceil(self.size);
        if self.inner.options.drop_last {
            all / world
        } else {
            all.saturating_sub(rank).div_ceil(world)
        }
    }

    /// Returns the number of items in the batches that this process builds.
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
    /// assert_eq!(loader.plan(0).num_items(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_items(&self) -> usize {
        (0..self.num_batches()).map(|batch| self.locate_batch(batch).len()).sum()
    }

    /// Iterates over the items of a batch, in order.
    ///
    /// The iterator is empty if the epoch has no such batch.
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
    /// let plan = loader.plan(0);
    /// let rows: Vec<_> = plan.items(0).map(|item| (item.row, item.events)).collect();
    /// assert_eq!(rows, [(0, 0..2), (1, 0..1)]);
    /// assert_eq!(plan.items(2).len(), 0); // no such batch
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn items(&self, batch: usize) -> impl ExactSizeIterator<Item = BatchItem> + '_ {
        self.locate_batch(batch).map(|position| {
            let (row, events) = self.find_window_of_item(self.find_item_at(position));
            let ShardRow { shard, row } = self.inner.source.locate_row(row);
            BatchItem { shard, row, events }
        })
    }

    /// Returns the positions of the items of a batch in the order of the epoch. Returns an empty
    /// range if the epoch has no such batch.
    fn locate_batch(&self, batch: usize) -> Range<usize> {
        if batch >= self.num_batches() {
            return 0..0;
        }
        let ProcessPart { rank, world } = self.part;
        let batch = batch * world + rank;
        let part = match &self.parts {
            Some(parts) => parts.get(batch).map_or(usize::MAX, |p| *p as usize),
            None => batch,
        };
        let size = self.size;
        let start = part.saturating_mul(size).min(self.items);
        start..start.saturating_add(size).min(self.items)
    }

    /// Returns the row of an item, as an index over all shards, and the range of its events within
    /// the row.
    fn find_window_of_item(&self, item: u32) -> (usize, Range<usize>) {
        let inner = &self.inner;
        let ItemOrigin { base, step } = inner.items.locate_item(item);
        let RowPrefix { row, events } = inner.items.make_row_prefix(&inner.source, base);
        let Some(window) = RowWindows::from_row(&inner.source, &inner.options, row) else {
            return (row, 0..events);
        };
        let random = || derive_random(inner.options.seed, self.epoch, base as u64);
        (row, window.place_window(events, step, random))
    }

    /// Returns, for each item of a batch, the index of its row or, with labels, of its label.
    pub(super) fn list_bases(&self, batch: usize) -> impl Iterator<Item = usize> + '_ {
        self.locate_batch(batch)
            .map(|position| self.inner.items.locate_item(self.find_item_at(position)).base)
    }

    pub(super) fn count_windows(&self, base: usize) -> usize {
        let inner = &self.inner;
        let RowPrefix { row, events } = inner.items.make_row_prefix(&inner.source, base);
        RowWindows::from_row(&inner.source, &inner.options, row)
            .map_or(1, |window| window.count_steps(events))
    }

    fn find_item_at(&self, position: usize) -> u32 {
        match &self.order {
            Some(order) => order[position],
            None => u32::try_from(position).unwrap_or(u32::MAX),
        }
    }
}
