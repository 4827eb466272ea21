//! Making one batch: from the shards straight into its tensors.

use std::ops::Range;
use std::sync::Arc;

use arrow::buffer::Buffer;
use rayon::prelude::*;

use super::Inner;
use super::batch::Batch;
use super::frame::Frame;
use super::grid::Grid;
use super::options::{Form, LoaderOptions};
use super::output::{Output, What};
use super::plan::{EpochPlan, Item};
use super::put::{Copied, Finite, Numbers, Ones, finite, numbers};
use super::source::{Scratch, Source};
use super::timeline::Span;
use crate::dense::{DType, DenseOptions, DenseTensor, Side, Size};
use crate::error::{Error, Result};

/// Longest that each axis can be in a padded batch, rows first.
pub(super) fn largest_shape(source: &Source, options: &LoaderOptions) -> Vec<usize> {
    let mut shape = vec![options.batch_size];
    for axis in 1..source.ndim {
        let mut longest = source.longest(axis);
        if axis == 1
            && let Some(window) = options.window_len()
        {
            longest = longest.min(window);
        }
        shape.push(match options.sizes.get(axis - 1).copied().unwrap_or_default() {
            Size::Longest => longest,
            Size::AtMost(n) => longest.min(n),
            Size::Exactly(n) => n,
        });
    }
    shape
}

/// Memory for values on their way, used again for every item.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) scratch: Scratch,
    /// Values that are put together.
    pub(super) joined: Vec<u8>,
}

/// The lists of a batch and how large it becomes.
pub(super) struct Draft {
    pub(super) items: Vec<Item>,
    /// Of every item, where some tensor wants to know: what it is a window of, how many such windows
    /// there are, and the events that its measurements are of.
    pub(super) bases: Vec<usize>,
    pub(super) windows: Vec<usize>,
    pub(super) spans: Vec<Span>,
    lists: Lists,
    facts: Option<Lists>,
    pub(super) elements: Vec<(usize, usize)>,
    /// Bytes of all tensors, and of those cells that are not padding.
    pub(super) bytes: usize,
    pub(super) occupied: usize,
}

/// Lists of a batch, and their places where it is padded.
struct Lists {
    frame: Frame,
    grid: Option<Arc<Grid>>,
}

impl EpochPlan {
    /// Everything about a batch but its values; refused when it is too large.
    pub(super) fn draft(&self, batch: usize) -> Result<Draft> {
        let inner = &self.inner;
        let options = &inner.options;
        let depth =
            |facts: bool| inner.outputs.iter().filter(|o| o.facts == facts).map(|o| o.axis).max();
        let named = |e: Error| Error::invalid(format!("batch {batch}: {e}"));
        let padded = options.form == Form::Padded;
        let own = depth(false).unwrap_or(0);
        let (mut frame, items) =
            Frame::new(&inner.source, self.items(batch), own).map_err(named)?;
        let elements = (0..=own).map(|d| (frame.elements(d), frame.longest_item(d))).collect();
        let grid = padded.then(|| Arc::new(Grid::new(&mut frame, &options.sizes, options.side)));
        let lists = Lists { frame, grid };
        let facts = match (&inner.source.facts, depth(true)) {
            (Some(facts), Some(depth)) => {
                // All facts of the row, whatever its window.
                let rows = items.iter().map(|item| {
                    let n = facts.source.shards[item.shard].layouts[0].length(item.row);
                    Item { events: 0..n, ..*item }
                });
                let (mut frame, _) = Frame::new(&facts.source, rows, depth).map_err(named)?;
                let grid = padded.then(|| Arc::new(Grid::new(&mut frame, &[], Side::Right)));
                Some(Lists { frame, grid })
            }
            _ => None,
        };

        let mut draft = Draft {
            items,
            bases: Vec::new(),
            windows: Vec::new(),
            spans: Vec::new(),
            lists,
            facts,
            elements,
            bytes: 0,
            occupied: 0,
        };
        draft.look_up(self, batch);
        let bytes = inner.outputs.iter().map(|o| draft.cells(o).saturating_mul(o.size() as u128));
        let total = bytes.fold(0u128, u128::saturating_add);
        let check = DenseOptions { limit: options.limit, ..DenseOptions::default() };
        draft.bytes = check.check_bytes(
            total,
            || format!("batch {batch} of {} items", draft.items.len()),
            || {
                let shape = inner.outputs.iter().map(|o| (draft.cells(o), &o.name)).max();
                let largest = shape.map_or("", |(_, name)| name.as_ref());
                format!(
                    "the largest tensor is {largest:?}; take smaller batches, shorter windows, \
                     bucket by length, set sizes, or raise the limit"
                )
            },
        )?;
        draft.occupied = match options.form {
            Form::Padded => {
                // Counting walks over the lists: once per axis, not once per tensor.
                let count = |lists: &Lists, depth: usize| -> Vec<usize> {
                    let grid = lists.grid.as_ref();
                    (0..=depth).map(|d| grid.map_or(0, |grid| grid.occupied(d))).collect()
                };
                let own = count(&draft.lists, own);
                let facts = draft.facts.as_ref().map(|f| count(f, 1)).unwrap_or_default();
                let cells = |o: &Output| {
                    let per_axis = if o.facts { &facts } else { &own };
                    per_axis.get(o.axis).copied().unwrap_or(0)
                };
                inner.outputs.iter().map(|o| cells(o) * o.dtype.size()).sum()
            }
            Form::Packed => draft.bytes,
        };
        Ok(draft)
    }

    /// Makes a batch; `together` with the other threads of the pool that this is called in.
    pub(super) fn make(&self, batch: usize, together: bool) -> Result<Batch> {
        let inner = &self.inner;
        let draft = self.draft(batch)?;
        let tensor = |output: &Output, work: &mut Work| {
            let tensor = match &draft.lists(output.facts).grid {
                Some(grid) => output.padded(inner, &draft, grid, work),
                None => output.packed(inner, &draft, work),
            };
            let tensor = tensor.map_err(|e| match e {
                Error::Invalid(m) => {
                    Error::invalid(format!("batch {batch}: {:?}: {m}", output.name))
                }
                e => e,
            });
            tensor.map(|tensor| (Arc::clone(&output.name), tensor))
        };
        let outputs = &inner.outputs;
        let tensors: Vec<_> = if together {
            let each = outputs.par_iter().with_max_len(1);
            each.map(|output| tensor(output, &mut Work::default())).collect()
        } else {
            let mut work = Work::default();
            outputs.iter().map(|output| tensor(output, &mut work)).collect()
        };
        // The first error in their order, whichever came first.
        let tensors = tensors.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Batch {
            number: batch,
            form: inner.options.form,
            items: draft.items,
            tensors,
            elements: draft.elements,
            occupied: draft.occupied,
        })
    }
}

impl Draft {
    /// Looks up what some tensor wants to know of every item.
    fn look_up(&mut self, plan: &EpochPlan, batch: usize) {
        let inner = &plan.inner;
        let wants = |which: fn(What) -> bool| inner.outputs.iter().any(|o| which(o.what));
        let windows = wants(|what| what == What::Windows);
        if windows || wants(|what| matches!(what, What::Target(_) | What::TargetValid(_))) {
            self.bases = plan.bases(batch).collect();
        }
        if windows {
            self.windows = self.bases.iter().map(|base| plan.windows_of(*base)).collect();
        }
        if wants(|what| matches!(what, What::Spread | What::FirstEvent | What::EndEvent)) {
            let spans = self.items.iter().enumerate().filter_map(|(i, item)| {
                let line = inner.source.shards[item.shard].timeline.as_ref()?;
                Some(line.span(item.row, &self.lists.frame.in_shard(1, i)))
            });
            self.spans = spans.collect();
        }
    }

    fn lists(&self, facts: bool) -> &Lists {
        self.facts.as_ref().filter(|_| facts).unwrap_or(&self.lists)
    }

    pub(super) fn frame(&self, facts: bool) -> &Frame {
        &self.lists(facts).frame
    }

    /// The events of an item, counted from the first of its row.
    pub(super) fn events(&self, item: usize) -> Range<usize> {
        match self.spans.get(item) {
            Some(span) => span.of_row.clone(),
            None => self.items.get(item).map_or(0..0, |item| item.events.clone()),
        }
    }

    /// Elements of a tensor, as many as they are.
    fn cells(&self, output: &Output) -> u128 {
        let (axis, lists) = (output.axis, self.lists(output.facts));
        match (&lists.grid, output.what) {
            (Some(grid), _) => crate::kernels::densify::count_bytes(grid.shape(axis), DType::U8),
            (None, What::CuSeqlens) => lists.frame.items() as u128 + 1,
            (None, What::Offsets) => lists.frame.elements(axis - 1) as u128 + 1,
            (None, _) => lists.frame.elements(axis) as u128,
        }
    }
}

impl Output {
    /// Whether its values are made finite when they are written.
    fn is_finite(&self, inner: &Inner) -> bool {
        matches!(self.what, What::Column(column) if self.source(inner).columns[column].finite)
            || self.what == What::Spread
    }

    fn padded(
        &self,
        inner: &Inner,
        draft: &Draft,
        grid: &Arc<Grid>,
        work: &mut Work,
    ) -> Result<DenseTensor> {
        let shape = grid.shape(self.axis).to_vec();
        // Checked together with all others.
        let places = grid.places(self.axis, self.size());
        let largest = match self.facts {
            true => places.bytes().saturating_mul(2),
            false => {
                let largest = &inner.largest_shape[..=self.axis];
                largest.iter().fold(self.size(), |n, d| n.saturating_mul(*d))
            }
        };
        if self.what == What::Leading {
            let row = shape.get(1).copied().unwrap_or(0);
            let mut bytes = vec![0u8; places.bytes()];
            for (item, out) in bytes.chunks_exact_mut(row.max(1)).enumerate() {
                let before = draft.frame(self.facts).before(1, item);
                out[..before.min(row)].fill(1);
            }
            return DenseTensor::try_new_trusted(self.dtype, shape, Buffer::from_vec(bytes));
        }
        let mut memory = self.shelf.take(places.bytes(), largest)?;
        let out = memory.padded(grid);
        if self.what == What::Mask {
            places.all(out, &mut Ones);
            return DenseTensor::try_new_trusted(self.dtype, shape, memory.into_buffer(Some(grid)));
        }
        let is_finite = self.is_finite(inner);
        let rows = out.chunks_exact_mut(places.item_bytes().max(1)).enumerate();
        for (item, out) in rows.take(draft.items.len()) {
            let first = draft.frame(self.facts).range(self.axis, item).start;
            let values = self.values(inner, draft, item, work)?;
            match (self.what, self.size()) {
                (What::Number(_), _) => places.item(item, out, &mut Numbers { values, first }),
                (_, 4) if is_finite => places.item(item, out, &mut Finite { values, first }),
                (_, 1) => places.item(item, out, &mut Copied::<1> { values, first }),
                (_, 2) => places.item(item, out, &mut Copied::<2> { values, first }),
                (_, 4) => places.item(item, out, &mut Copied::<4> { values, first }),
                _ => places.item(item, out, &mut Copied::<8> { values, first }),
            }
        }
        DenseTensor::try_new_trusted(self.dtype, shape, memory.into_buffer(Some(grid)))
    }

    fn packed(&self, inner: &Inner, draft: &Draft, work: &mut Work) -> Result<DenseTensor> {
        let frame = draft.frame(self.facts);
        let copied = |offsets: &[u32]| {
            // Counted in 31 bits when they were put together.
            let signed = offsets.iter().map(|o| o.cast_signed()).collect::<Vec<_>>();
            DenseTensor::from_vec([signed.len()], signed)
        };
        match self.what {
            What::CuSeqlens => return copied(&frame.rows[self.axis]),
            What::Offsets => return copied(&frame.offsets[self.axis - 1]),
            _ => {}
        }
        let (n, size) = (frame.elements(self.axis), self.size());
        let mut memory = self.shelf.take(n * size, n * size + n * size / 4)?;
        let mut rest = memory.any();
        let is_finite = self.is_finite(inner);
        for item in 0..draft.items.len() {
            let (out, after) = rest.split_at_mut(frame.range(self.axis, item).len() * size);
            rest = after;
            match self.what {
                What::PositionIds if self.dtype == DType::I32 => {
                    for (i, out) in (0i32..).zip(out.as_chunks_mut().0) {
                        *out = i.to_ne_bytes();
                    }
                }
                What::PositionIds => {
                    for (i, out) in (0i64..).zip(out.as_chunks_mut().0) {
                        *out = i.to_ne_bytes();
                    }
                }
                What::Number(_) => numbers(self.values(inner, draft, item, work)?, out),
                _ if is_finite => finite(self.values(inner, draft, item, work)?, out),
                _ => out.copy_from_slice(self.values(inner, draft, item, work)?),
            }
        }
        DenseTensor::try_new_trusted(self.dtype, vec![n], memory.into_buffer(None))
    }
}
