//! [`EpochPlan`]: which rows and windows are in which batch.

use std::ops::Range;
use std::sync::Arc;

use super::Inner;
use super::options::{LoaderOptions, Sampling};
use super::random::{keyed, shuffle, stream};
use super::source::Source;
use super::window::Window;
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
pub(super) struct Items {
    pub(super) bases: Bases,
    /// Of every item its base and the number of its window, where windows are stepped through.
    windows: Option<(Vec<u32>, Vec<u32>)>,
}

/// What windows are taken of.
#[derive(Debug)]
pub(super) enum Bases {
    /// So many rows, whole.
    Rows(usize),
    /// Rows up to a place each: any of them, in any order, as often as they come.
    Cuts(Cuts),
}

/// Rows that end early, side by side.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// The row, counted over all shards.
    pub(super) rows: Vec<u32>,
    /// Elements of axis 1 that are left of it.
    pub(super) ends: Vec<u32>,
}

impl Items {
    /// # Errors
    /// When there are too many, or windows of no elements or no stride would be stepped through.
    pub(super) fn new(source: &Source, options: &LoaderOptions, bases: Bases) -> Result<Self> {
        let too_many =
            || Error::invalid("more than 2^32 - 1 items; take fewer shards, or a longer stride");
        let number = |n: usize| u32::try_from(n).map_err(|_| too_many());
        let mut items = Self { bases, windows: None };
        let n = items.num_bases();
        number(n)?;
        if !matches!(options.window, Some((_, Sampling::Step { .. }))) {
            return Ok(items);
        }
        let (mut of, mut steps) = (Vec::new(), Vec::new());
        for base in 0..n {
            let (row, len) = items.base(source, base);
            let Some(window) = Window::of(source, options, row) else { continue };
            if window.stands_still() {
                return Err(Error::invalid(format!(
                    "row {row}: what is put before its window leaves no room to step through it; \
                     take a longer window, or a smaller overlap"
                )));
            }
            let count = window.count(len);
            number(of.len().saturating_add(count))?;
            of.extend(std::iter::repeat_n(number(base)?, count));
            steps.extend(0..number(count)?);
        }
        items.windows = Some((of, steps));
        Ok(items)
    }

    pub(super) fn len(&self) -> usize {
        self.windows.as_ref().map_or(self.num_bases(), |(of, _)| of.len())
    }

    fn num_bases(&self) -> usize {
        match &self.bases {
            Bases::Rows(n) => *n,
            Bases::Cuts(cuts) => cuts.rows.len(),
        }
    }

    /// Base of an item, and the number of its window.
    fn at(&self, item: u32) -> (usize, usize) {
        let item = item as usize;
        match &self.windows {
            None => (item, 0),
            Some((of, steps)) => (of[item] as usize, steps[item] as usize),
        }
    }

    /// Row of a base, over all shards, and how many elements of axis 1 it has.
    fn base(&self, source: &Source, base: usize) -> (usize, usize) {
        match &self.bases {
            Bases::Rows(_) => (base, source.len(base)),
            Bases::Cuts(cuts) => (cuts.rows[base] as usize, cuts.ends[base] as usize),
        }
    }
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
    /// Items of a batch, and which of all batches are planned.
    size: usize,
    part: (usize, usize),
}

impl EpochPlan {
    /// One batch of given items.
    ///
    /// # Errors
    /// When there is no such item, or none is asked for.
    pub(super) fn of(inner: Arc<Inner>, epoch: u64, items: &[usize]) -> Result<Self> {
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
            return Err(Error::invalid("a batch of 0 items; at least 1"));
        }
        let (items, part) = (order.len(), (0, 1));
        Ok(Self { inner, epoch, order: Some(order), parts: None, items, size: items, part })
    }

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
        let (parts, part) = (None, options.part);
        let mut plan =
            Self { epoch, order: None, parts, items, size, part, inner: Arc::clone(&inner) };
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
        let (rank, world) = self.part;
        let all = self.items.div_ceil(self.size);
        if self.inner.options.drop_last {
            all / world
        } else {
            all.saturating_sub(rank).div_ceil(world)
        }
    }

    /// Number of items in all batches.
    pub fn num_items(&self) -> usize {
        (0..self.num_batches()).map(|batch| self.places(batch).len()).sum()
    }

    /// The items of a batch, in order; none when there is no such batch.
    pub fn items(&self, batch: usize) -> impl ExactSizeIterator<Item = Item> + '_ {
        self.places(batch).map(|place| {
            let (row, events) = self.window_of(self.item_at(place));
            let (shard, row) = self.inner.source.locate(row);
            Item { shard, row, events }
        })
    }

    /// Where the items of a batch are in the order.
    fn places(&self, batch: usize) -> Range<usize> {
        if batch >= self.num_batches() {
            return 0..0;
        }
        let (rank, world) = self.part;
        let batch = batch * world + rank;
        let part = match &self.parts {
            Some(parts) => parts.get(batch).map_or(usize::MAX, |p| *p as usize),
            None => batch,
        };
        let size = self.size;
        let start = part.saturating_mul(size).min(self.items);
        start..start.saturating_add(size).min(self.items)
    }

    /// Row of an item over all shards, and its events.
    fn window_of(&self, item: u32) -> (usize, Range<usize>) {
        let inner = &self.inner;
        let (base, step) = inner.items.at(item);
        let (row, len) = inner.items.base(&inner.source, base);
        let Some(window) = Window::of(&inner.source, &inner.options, row) else {
            return (row, 0..len);
        };
        let random = || keyed(inner.options.seed, self.epoch, base as u64);
        (row, window.range(len, step, random))
    }

    /// Numbers of what the items of a batch are windows of: rows over all shards, or cuts.
    pub(super) fn bases(&self, batch: usize) -> impl Iterator<Item = usize> + '_ {
        self.places(batch).map(|place| self.inner.items.at(self.item_at(place)).0)
    }

    /// How many items a base is.
    pub(super) fn windows_of(&self, base: usize) -> usize {
        let inner = &self.inner;
        let (row, len) = inner.items.base(&inner.source, base);
        Window::of(&inner.source, &inner.options, row).map_or(1, |window| window.count(len))
    }

    fn item_at(&self, place: usize) -> u32 {
        match &self.order {
            Some(order) => order[place],
            None => u32::try_from(place).unwrap_or(u32::MAX),
        }
    }
}
