//! [`BatchDraft`]: shapes and offsets of a batch, determined before its values are copied.

use std::ops::Range;
use std::sync::Arc;

use super::batch::AxisCounts;
use super::batch_frame::BatchFrame;
use super::epoch_plan::EpochPlan;
use super::items::BatchItem;
use super::loader_source::{LoaderSource, StaticFacts};
use super::options::{BatchForm, LoaderOptions};
use super::padded_grid::PaddedGrid;
use super::shard_timeline::EventSpan;
use super::tensor_output::{TensorContent, TensorOutput};
use crate::dense::densify::count_bytes;
use crate::dense::{AxisSize, DType, DenseOptions, PaddingSide};
use crate::error::{Error, Result};

/// Returns the largest shape that a padded batch can have: the number of items, then the size of
/// each axis from axis 1 on.
pub(super) fn find_largest_shape(source: &LoaderSource, options: &LoaderOptions) -> Vec<usize> {
    let mut shape = vec![options.batch_size];
    for axis in 1..source.ndim {
        let mut longest = source.find_longest_list(axis);
        if axis == 1
            && let Some(window) = options.window_len()
        {
            longest = longest.min(window);
        }
        shape.push(match options.sizes.get(axis - 1).copied().unwrap_or_default() {
            AxisSize::Longest => longest,
            AxisSize::AtMost(n) => longest.min(n),
            AxisSize::Exactly(n) => n,
        });
    }
    shape
}

pub(super) struct BatchDraft {
    pub(super) items: Vec<BatchItem>,
    /// For each item, the index of its label or, without labels, of its row (counted over all
    /// shards). Like `windows` and `spans`, empty if no tensor needs it.
    pub(super) bases: Vec<usize>,
    /// For each item (a window of a row or label), the number of all windows of the same row or
    /// label.
    pub(super) windows: Vec<usize>,
    /// For each item (a window of measurements), the events that its measurements belong to.
    pub(super) spans: Vec<EventSpan>,
    lists: BatchLists,
    facts: Option<BatchLists>,
    pub(super) axes: Vec<AxisCounts>,
    /// Size of all tensors in bytes. `occupied` is how many of these bytes are not padding.
    pub(super) bytes: usize,
    pub(super) occupied: usize,
}

/// The lists of a batch. `grid` determines the positions of the elements of these lists in padded
/// tensors. It is `None` for a packed batch, which has no padding.
pub(super) struct BatchLists {
    frame: BatchFrame,
    pub(super) grid: Option<Arc<PaddedGrid>>,
}

impl BatchLists {
    /// Finds the lists of static facts of the rows of `items`, up to axis `depth`.
    fn from_facts(
        facts: &StaticFacts,
        items: &[BatchItem],
        depth: usize,
        padded: bool,
    ) -> Result<Self> {
        // Windows do not apply to static facts, so take all facts of the row.
        let rows = items.iter().map(|item| {
            let n = facts.source.shards[item.shard].layouts[0].length(item.row);
            BatchItem { events: 0..n, ..*item }
        });
        let (mut frame, _) = BatchFrame::new(&facts.source, rows, depth)?;
        let grid = padded.then(|| Arc::new(PaddedGrid::new(&mut frame, &[], PaddingSide::Right)));
        Ok(Self { frame, grid })
    }
}

impl EpochPlan {
    /// Determines the shapes of a batch. Returns an error if the batch exceeds
    /// [`LoaderOptions::limit`], or has more than 2^31 - 1 elements on an axis.
    pub(super) fn draft_batch(&self, batch: usize) -> Result<BatchDraft> {
        let inner = &self.inner;
        let options = &inner.options;
        let depth =
            |facts: bool| inner.outputs.iter().filter(|o| o.facts == facts).map(|o| o.axis).max();
        let named = |e: Error| Error::invalid(format!("batch {batch}: {e}"));
        let padded = options.form == BatchForm::Padded;
        let own = depth(false).unwrap_or(0);
        let (mut frame, items) =
            BatchFrame::new(&inner.source, self.items(batch), own).map_err(named)?;
        let axes = (0..=own)
            .map(|d| AxisCounts {
                total: frame.count_elements(d),
                longest_item: frame.find_longest_item(d),
            })
            .collect();
        let grid =
            padded.then(|| Arc::new(PaddedGrid::new(&mut frame, &options.sizes, options.side)));
        let lists = BatchLists { frame, grid };
        let facts = match (&inner.source.facts, depth(true)) {
            (Some(facts), Some(depth)) => {
                Some(BatchLists::from_facts(facts, &items, depth, padded).map_err(named)?)
            }
            _ => None,
        };

        let mut draft = BatchDraft {
            items,
            bases: Vec::new(),
            windows: Vec::new(),
            spans: Vec::new(),
            lists,
            facts,
            axes,
            bytes: 0,
            occupied: 0,
        };
        draft.collect_item_data(self, batch);
        draft.bytes = draft.check_size(batch, &inner.outputs, options.limit)?;
        draft.occupied = match padded {
            true => draft.count_occupied_bytes(&inner.outputs),
            false => draft.bytes,
        };
        Ok(draft)
    }
}

impl BatchDraft {
    /// Returns the size in bytes of the tensors `outputs` of the batch with the index `batch`.
    /// Returns an error if it exceeds `limit`.
    fn check_size(
        &self,
        batch: usize,
        outputs: &[TensorOutput],
        limit: Option<u64>,
    ) -> Result<usize> {
        let bytes = outputs.iter().map(|o| self.count_cells(o).saturating_mul(o.size() as u128));
        let total = bytes.fold(0u128, u128::saturating_add);
        let check = DenseOptions { limit, ..DenseOptions::default() };
        check.check_bytes(
            total,
            || format!("batch {batch} of {} items", self.items.len()),
            || {
                let shape = outputs.iter().map(|o| (self.count_cells(o), &o.name)).max();
                let largest = shape.map_or("", |(_, name)| name.as_ref());
                format!(
                    "the largest tensor is {largest:?}; use smaller batches or shorter windows, \
                     bucket items by length, set sizes, or raise the limit"
                )
            },
        )
    }

    /// Returns the number of bytes of the padded tensors `outputs` that are not padding.
    fn count_occupied_bytes(&self, outputs: &[TensorOutput]) -> usize {
        // `count_occupied` walks over all lists, so call it once per axis instead of once per
        // tensor.
        let count = |lists: &BatchLists, axes: usize| -> Vec<usize> {
            let grid = lists.grid.as_ref();
            (0..axes).map(|d| grid.map_or(0, |grid| grid.count_occupied(d))).collect()
        };
        let own = count(&self.lists, self.axes.len());
        let facts = self.facts.as_ref().map(|f| count(f, 2)).unwrap_or_default();
        let cells = |o: &TensorOutput| {
            let per_axis = if o.facts { &facts } else { &own };
            per_axis.get(o.axis).copied().unwrap_or(0)
        };
        outputs.iter().map(|o| cells(o) * o.dtype.size()).sum()
    }

    fn collect_item_data(&mut self, plan: &EpochPlan, batch: usize) {
        let inner = &plan.inner;
        let wants = |which: fn(TensorContent) -> bool| inner.outputs.iter().any(|o| which(o.what));
        let windows = wants(|what| what == TensorContent::Windows);
        if windows
            || wants(|what| {
                matches!(what, TensorContent::Target(_) | TensorContent::TargetValid(_))
            })
        {
            self.bases = plan.list_bases(batch).collect();
        }
        if windows {
            self.windows = self.bases.iter().map(|base| plan.count_windows(*base)).collect();
        }
        if wants(|what| {
            matches!(
                what,
                TensorContent::Spread | TensorContent::FirstEvent | TensorContent::EndEvent
            )
        }) {
            let spans = self.items.iter().enumerate().filter_map(|(i, item)| {
                let line = inner.source.shards[item.shard].timeline.as_ref()?;
                Some(line.find_span(item.row, &self.lists.frame.find_shard_range(1, i)))
            });
            self.spans = spans.collect();
        }
    }

    pub(super) fn select_lists(&self, facts: bool) -> &BatchLists {
        self.facts.as_ref().filter(|_| facts).unwrap_or(&self.lists)
    }

    pub(super) fn select_frame(&self, facts: bool) -> &BatchFrame {
        &self.select_lists(facts).frame
    }

    pub(super) fn locate_events(&self, item: usize) -> Range<usize> {
        match self.spans.get(item) {
            Some(span) => span.of_row.clone(),
            None => self.items.get(item).map_or(0..0, |item| item.events.clone()),
        }
    }

    /// Returns the number of elements of a tensor as a `u128`, because it may not fit a `usize`.
    fn count_cells(&self, output: &TensorOutput) -> u128 {
        let (axis, lists) = (output.axis, self.select_lists(output.facts));
        match (&lists.grid, output.what) {
            (Some(grid), _) => count_bytes(grid.shape(axis), DType::U8),
            (None, TensorContent::CuSeqlens) => lists.frame.items() as u128 + 1,
            (None, TensorContent::Offsets) => lists.frame.count_elements(axis - 1) as u128 + 1,
            (None, _) => lists.frame.count_elements(axis) as u128,
        }
    }
}
