//! [`EpochPlan`]: which rows and windows are in which batch.

use std::ops::Range;
use std::sync::Arc;

use super::Inner;
use super::options::{LoaderOptions, Sampling};
use super::random::{below, keyed, shuffle, stream};
use super::source::Source;
use crate::error::{Error, Result};

/// One item of a batch: some consecutive events of one row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Item {
    /// Number of the shard.
    pub shard: usize,
    /// The row in its shard.
    pub row: usize,
    /// Elements of axis 1, counted from the row's first; `0..0` where there are none.
    pub events: Range<usize>,
}

/// The items of every epoch, before they are ordered.
#[derive(Debug)]
pub(super) enum Items {
    /// One for each row.
    Rows(usize),
    /// One for each window that is stepped through.
    Windows {
        /// Row of every item.
        rows: Vec<u32>,
        /// Number of the window within its row.
        steps: Vec<u32>,
    },
}

impl Items {
    pub(super) fn new(source: &Source, options: &LoaderOptions) -> Result<Self> {
        let too_many =
            || Error::invalid("more than 2^32 - 1 items; take fewer shards, or a longer stride");
        let rows = source.rows();
        u32::try_from(rows).map_err(|_| too_many())?;
        let Some((window, Sampling::Step { stride })) = options.window else {
            return Ok(Self::Rows(rows));
        };
        let mut total = 0usize;
        source.for_each_len(|len| total = total.saturating_add(windows(len, window, stride)));
        u32::try_from(total).map_err(|_| too_many())?;
        let (mut of, mut steps) = (Vec::with_capacity(total), Vec::with_capacity(total));
        let mut row = 0u32;
        source.for_each_len(|len| {
            // There are fewer than 2^32 in total.
            for step in 0..u32::try_from(windows(len, window, stride)).unwrap_or(u32::MAX) {
                of.push(row);
                steps.push(step);
            }
            row = row.wrapping_add(1);
        });
        Ok(Self::Windows { rows: of, steps })
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Rows(n) => *n,
            Self::Windows { rows, .. } => rows.len(),
        }
    }

    /// Row of an item, over all shards, and the number of its window.
    fn at(&self, item: u32) -> (usize, usize) {
        let item = item as usize;
        match self {
            Self::Rows(_) => (item, 0),
            Self::Windows { rows, steps } => (rows[item] as usize, steps[item] as usize),
        }
    }
}

/// Windows of `window` events, `stride` apart, of a row of `len`: up to the first that reaches its
/// end, none of them empty but for an empty row.
fn windows(len: usize, window: usize, stride: usize) -> usize {
    if len <= window {
        return 1;
    }
    let reach = (len - window).div_ceil(stride) + 1;
    let start = (len - 1) / stride + 1;
    reach.min(start)
}

/// The batches of one epoch: a function of the options, the lengths of the rows and the number of
/// the epoch, and of nothing else.
///
/// Four bytes per item (and none in source order); the windows of a batch are worked out when it is
/// made.
#[derive(Debug)]
pub struct EpochPlan {
    pub(super) inner: Arc<Inner>,
    epoch: u64,
    /// Items in batches: all of them in this order, or as they are.
    order: Option<Vec<u32>>,
    /// Which of the consecutive parts of `order` each batch is; its own where there is none.
    parts: Option<Vec<u32>>,
    items: usize,
}

impl EpochPlan {
    pub(super) fn new(inner: Arc<Inner>, epoch: u64) -> Self {
        let (options, all) = (&inner.options, inner.items.len());
        let size = options.batch_size;
        let items = if options.drop_last { all - all % size } else { all };
        let mut rng = stream(options.seed, epoch);
        // Counted when the loader was made: the number fits.
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut order = None;
        if options.shuffle || options.bucket.is_some() {
            let mut own: Vec<u32> = (0..number(all)).collect();
            if options.shuffle {
                shuffle(&mut own, &mut rng);
            }
            own.truncate(items);
            order = Some(own);
        }
        let mut plan = Self { epoch, order: None, parts: None, items, inner: Arc::clone(&inner) };
        if let (Some(pool), Some(order)) = (options.bucket, &mut order) {
            plan.sort_pools(order, pool.saturating_mul(size));
            if options.shuffle {
                let mut parts: Vec<u32> = (0..number(items.div_ceil(size))).collect();
                shuffle(&mut parts, &mut rng);
                plan.parts = Some(parts);
            }
        }
        plan.order = order;
        plan
    }

    /// Sorts every pool of items by length; those of one length keep their order.
    fn sort_pools(&self, order: &mut [u32], pool: usize) {
        let mut keys: Vec<(u32, u32, u32)> = Vec::new();
        for part in order.chunks_mut(pool) {
            keys.clear();
            keys.extend((0u32..).zip(&*part).map(|(place, item)| {
                let len = self.window_of(*item).1.len();
                (u32::try_from(len).unwrap_or(u32::MAX), place, *item)
            }));
            keys.sort_unstable();
            for (slot, (_, _, item)) in part.iter_mut().zip(&keys) {
                *slot = *item;
            }
        }
    }

    /// Number of the epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Number of batches, of this [part](LoaderOptions::part) alone as everything here.
    pub fn num_batches(&self) -> usize {
        let options = &self.inner.options;
        let (rank, world) = options.part;
        let all = self.items.div_ceil(options.batch_size);
        if options.drop_last { all / world } else { all.saturating_sub(rank).div_ceil(world) }
    }

    /// Number of items in all batches.
    pub fn num_items(&self) -> usize {
        (0..self.num_batches()).map(|batch| self.places(batch).len()).sum()
    }

    /// The items of a batch, in order; none when there is no such batch.
    pub fn items(&self, batch: usize) -> impl ExactSizeIterator<Item = Item> + '_ {
        self.places(batch).map(|place| {
            let item = match &self.order {
                Some(order) => order[place],
                None => u32::try_from(place).unwrap_or(u32::MAX),
            };
            let (row, events) = self.window_of(item);
            let (shard, row) = self.inner.source.locate(row);
            Item { shard, row, events }
        })
    }

    /// Where the items of a batch are in the order.
    fn places(&self, batch: usize) -> Range<usize> {
        if batch >= self.num_batches() {
            return 0..0;
        }
        let (rank, world) = self.inner.options.part;
        let batch = batch * world + rank;
        let part = match &self.parts {
            Some(parts) => parts.get(batch).map_or(usize::MAX, |p| *p as usize),
            None => batch,
        };
        let size = self.inner.options.batch_size;
        let start = part.saturating_mul(size).min(self.items);
        start..start.saturating_add(size).min(self.items)
    }

    /// Row of an item over all shards, and its events.
    fn window_of(&self, item: u32) -> (usize, Range<usize>) {
        let inner = &self.inner;
        let (row, step) = inner.items.at(item);
        let len = inner.source.len(row);
        let Some((window, sampling)) = inner.options.window else { return (row, 0..len) };
        let room = len.saturating_sub(window);
        let start = match sampling {
            Sampling::FromStart => 0,
            Sampling::ToEnd => room,
            Sampling::Step { stride } => step * stride,
            Sampling::Random => {
                let random = keyed(inner.options.seed, self.epoch, row as u64);
                usize::try_from(below(random, room as u64 + 1)).unwrap_or(0)
            }
        };
        (row, start..len.min(start.saturating_add(window)))
    }
}

#[cfg(test)]
mod tests {
    use super::windows;

    #[test]
    fn windows_reach_the_end_and_none_is_empty() {
        for len in 0..40usize {
            for window in 1..8 {
                for stride in 1..12 {
                    let n = windows(len, window, stride);
                    let ends: Vec<_> = (0..n).map(|k| len.min(k * stride + window)).collect();
                    assert!(n >= 1);
                    assert!(n == 1 || (n - 1) * stride < len, "{len} {window} {stride}");
                    // Only the last may reach the end.
                    assert!(ends[..n - 1].iter().all(|e| *e < len));
                    assert!(ends[n - 1] == len || n * stride >= len, "{len} {window} {stride}");
                }
            }
        }
        assert_eq!(windows(10, 4, 4), 3);
        assert_eq!(windows(8, 4, 4), 2);
        assert_eq!(windows(10, 2, 5), 2);
    }
}
