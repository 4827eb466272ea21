//! [`BatchItem`]: a window of a row. With labels, the row ends at the time of a label.

use std::ops::Range;

use super::loader_source::LoaderSource;
use super::options::{LoaderOptions, WindowSampling};
use super::row_windows::RowWindows;
use crate::error::{Error, Result};

/// An item of a batch: a range of events (elements of axis 1) of one row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BatchItem {
    /// Index of the shard.
    pub shard: usize,
    /// Index of the row within the shard.
    pub row: usize,
    /// Elements of axis 1, as indices from the first element of the row; `0..0` if there are none.
    pub events: Range<usize>,
}

/// The first `events` elements of axis 1 of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowPrefix {
    /// Index of the row, counted over all shards.
    pub(super) row: usize,
    pub(super) events: usize,
}

/// The base (row or label) of an item, and the index of the item among the windows of the base.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemOrigin {
    pub(super) base: usize,
    pub(super) step: usize,
}

/// The items in source order, the same in every epoch. An item is a window of a row or of a label.
#[derive(Debug)]
pub(super) struct EpochItems {
    pub(super) bases: ItemRows,
    /// The base (row or label) of each item, and the index of the window within the base. If the
    /// options do not divide a base into several windows, this is `None`, and item `i` is the only
    /// window of base `i`.
    windows: Option<(Vec<u32>, Vec<u32>)>,
}

/// The rows that items are windows of: all rows, or rows that end early at the time of a label.
#[derive(Debug)]
pub(super) enum ItemRows {
    /// All rows, each at its full length. The field is the number of rows.
    Rows(usize),
    /// For each label, in order, its subject's row, cut off at the label's time. Rows may repeat.
    Cuts(EarlyEnds),
}

/// Rows that end early: row `rows[i]` keeps its first `ends[i]` elements of axis 1. A row may be
/// repeated.
#[derive(Debug, Default)]
pub(super) struct EarlyEnds {
    /// Indices of the rows, counted over all shards.
    pub(super) rows: Vec<u32>,
    pub(super) ends: Vec<u32>,
}

impl EpochItems {
    /// Lists the items: one per base (a row or label), or all stepped windows of each base. Returns
    /// an error for more than 2^32 - 1 items, and if a stepped window has no elements or a stride
    /// of 0.
    pub(super) fn new(
        source: &LoaderSource,
        options: &LoaderOptions,
        bases: ItemRows,
    ) -> Result<Self> {
        let number = |n: usize| {
            u32::try_from(n).map_err(|_| {
                Error::invalid(format!(
                    "the loader has at least {n} items, more than the maximum of 2^32 - 1; use fewer shards or a longer stride"
                ))
            })
        };
        let mut items = Self { bases, windows: None };
        let n = items.num_bases();
        number(n)?;
        if !matches!(options.window, Some((_, WindowSampling::Step { .. }))) {
            return Ok(items);
        }
        let (mut of, mut steps) = (Vec::new(), Vec::new());
        for base in 0..n {
            let RowPrefix { row, events } = items.make_row_prefix(source, base);
            let Some(window) = RowWindows::from_row(source, options, row) else { continue };
            if window.is_stuck() {
                return Err(Error::invalid(format!(
                    "row {row}: the static facts prepended to each window leave no room for new elements; use a longer window, or a smaller overlap"
                )));
            }
            let count = window.count_steps(events);
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
            ItemRows::Rows(n) => *n,
            ItemRows::Cuts(cuts) => cuts.rows.len(),
        }
    }

    pub(super) fn locate_item(&self, item: u32) -> ItemOrigin {
        let item = item as usize;
        match &self.windows {
            None => ItemOrigin { base: item, step: 0 },
            Some((of, steps)) => ItemOrigin { base: of[item] as usize, step: steps[item] as usize },
        }
    }

    /// Returns the row of a base, and how many of its first events the base includes: all of them
    /// if the base is a row, or those up to the time of a label.
    pub(super) fn make_row_prefix(&self, source: &LoaderSource, base: usize) -> RowPrefix {
        match &self.bases {
            ItemRows::Rows(_) => RowPrefix { row: base, events: source.len(base) },
            ItemRows::Cuts(cuts) => {
                RowPrefix { row: cuts.rows[base] as usize, events: cuts.ends[base] as usize }
            }
        }
    }
}
