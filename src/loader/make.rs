//! Making one batch: from the shards straight into its tensors.

use std::sync::Arc;

use super::batch::Batch;
use super::frame::Frame;
use super::grid::{Grid, Put};
use super::options::{Form, LoaderOptions};
use super::plan::EpochPlan;
use super::shelf::Shelf;
use super::source::{Scratch, Source};
use crate::dense::{DType, DenseOptions, DenseTensor, Size};
use crate::error::{Error, Result};

/// A tensor of every batch.
#[derive(Debug)]
pub(super) struct Output {
    name: Arc<str>,
    axis: usize,
    dtype: DType,
    what: What,
    shelf: Arc<Shelf>,
}

/// What a tensor holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// Values of a column.
    Column(usize),
    /// Whether they are not null.
    Valid(usize),
    /// Whether there is an element.
    Mask,
    /// Where items end.
    CuSeqlens,
    /// Where lists end.
    Offsets,
    /// Places within the item.
    PositionIds,
}

/// The tensors of every batch, in order.
pub(super) fn outputs(source: &Source, options: &LoaderOptions) -> Result<Vec<Output>> {
    let mut out: Vec<Output> = Vec::new();
    let mut push = |name: Arc<str>, axis, dtype: DType, fill, what| {
        if out.iter().any(|o: &Output| o.name == name) {
            return Err(Error::invalid(format!(
                "column {name:?} has the name of a tensor that the loader makes; rename it, or \
                 leave that one out"
            )));
        }
        let shelf = Shelf::new(axis, dtype.size(), fill, options.in_flight());
        out.push(Output { name, axis, dtype, what, shelf });
        Ok(())
    };
    for (i, c) in source.columns.iter().enumerate() {
        push(Arc::clone(&c.name), c.axis, c.dtype, c.fill, What::Column(i))?;
    }
    let zero = [0; 8];
    let with_column = (1..source.ndim).filter(|d| source.columns.iter().any(|c| c.axis == *d));
    match options.form {
        Form::Padded => {
            let axes = options.masks.clone().unwrap_or_else(|| with_column.collect());
            for axis in axes {
                if axis == 0 || axis >= source.ndim {
                    return Err(Error::invalid(format!(
                        "there is no mask of axis {axis}; masks are of the axes 1 to {}",
                        source.ndim - 1
                    )));
                }
                push(format!("dim{axis}/mask").into(), axis, DType::Bool, zero, What::Mask)?;
            }
        }
        Form::Packed => {
            let deepest = with_column.clone().max().unwrap_or(0);
            for axis in 1..=deepest {
                let name = |what: &str| format!("dim{axis}/{what}").into();
                push(name("cu_seqlens"), axis, DType::I32, zero, What::CuSeqlens)?;
                if axis > 1 {
                    push(name("offsets"), axis, DType::I32, zero, What::Offsets)?;
                }
            }
            for axis in with_column {
                if let Some(dtype) = options.position_ids {
                    let name = format!("dim{axis}/position_ids");
                    push(name.into(), axis, dtype, zero, What::PositionIds)?;
                }
            }
        }
    }
    for (i, c) in source.columns.iter().enumerate() {
        if c.nulls && options.validity {
            let name = format!("{}/valid", c.name);
            push(name.into(), c.axis, DType::Bool, zero, What::Valid(i))?;
        }
    }
    Ok(out)
}

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

/// The lists of a batch and how large it becomes.
pub(super) struct Draft {
    frame: Frame,
    grid: Option<Arc<Grid>>,
    pub(super) elements: Vec<(usize, usize)>,
    /// Bytes of all tensors, and of those cells that are not padding.
    pub(super) bytes: usize,
    pub(super) occupied: usize,
}

impl EpochPlan {
    /// Everything about a batch but its values; refused when it is too large.
    pub(super) fn draft(&self, batch: usize) -> Result<(Draft, Vec<super::Item>)> {
        let inner = &self.inner;
        let options = &inner.options;
        let depth = inner.outputs.iter().map(|o| o.axis).max().unwrap_or(0);
        let (mut frame, items) = Frame::new(&inner.source, self.items(batch), depth)
            .map_err(|e| Error::invalid(format!("batch {batch}: {e}")))?;
        let elements = (0..=depth).map(|d| (frame.elements(d), frame.longest_item(d))).collect();
        let grid = (options.form == Form::Padded)
            .then(|| Arc::new(Grid::new(&mut frame, &options.sizes, options.side)));

        let mut draft = Draft { frame, grid, elements, bytes: 0, occupied: 0 };
        let bytes = inner.outputs.iter().map(|o| draft.cells(o).saturating_mul(o.size() as u128));
        let total = bytes.fold(0u128, u128::saturating_add);
        let check = DenseOptions { limit: options.limit, ..DenseOptions::default() };
        draft.bytes = check.check_bytes(
            total,
            || format!("batch {batch} of {} items", items.len()),
            || {
                let shape = inner.outputs.iter().map(|o| (draft.cells(o), &o.name)).max();
                let largest = shape.map_or("", |(_, name)| name.as_ref());
                format!(
                    "the largest tensor is {largest:?}; take smaller batches, shorter windows, \
                     bucket by length, set sizes, or raise the limit"
                )
            },
        )?;
        let per_axis: Vec<usize> =
            (0..=depth).map(|d| draft.grid.as_ref().map_or(0, |grid| grid.occupied(d))).collect();
        draft.occupied = match options.form {
            Form::Padded => inner.outputs.iter().map(|o| per_axis[o.axis] * o.dtype.size()).sum(),
            Form::Packed => draft.bytes,
        };
        Ok((draft, items))
    }

    /// Makes a batch.
    pub(super) fn make(&self, batch: usize) -> Result<Batch> {
        let inner = &self.inner;
        let (draft, items) = self.draft(batch)?;
        let mut scratch = Scratch::default();
        let mut tensors = Vec::with_capacity(inner.outputs.len());
        for output in &inner.outputs {
            let shards = items.iter().map(|i| i.shard);
            let tensor = match &draft.grid {
                Some(grid) => output.padded(inner, &draft.frame, grid, shards, &mut scratch),
                None => output.packed(inner, &draft.frame, shards, &mut scratch),
            };
            let named = |e| match e {
                Error::Invalid(m) => {
                    Error::invalid(format!("batch {batch}: {:?}: {m}", output.name))
                }
                e => e,
            };
            tensors.push((Arc::clone(&output.name), tensor.map_err(named)?));
        }
        Ok(Batch {
            number: batch,
            form: inner.options.form,
            items,
            tensors,
            elements: draft.elements,
            occupied: draft.occupied,
        })
    }
}

impl Draft {
    /// Elements of a tensor, as many as they are.
    fn cells(&self, output: &Output) -> u128 {
        let axis = output.axis;
        match (&self.grid, output.what) {
            (Some(grid), _) => crate::kernels::densify::count_bytes(grid.shape(axis), DType::U8),
            (None, What::CuSeqlens) => self.frame.items() as u128 + 1,
            (None, What::Offsets) => self.frame.elements(axis - 1) as u128 + 1,
            (None, _) => self.frame.elements(axis) as u128,
        }
    }
}

impl Output {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn axis(&self) -> usize {
        self.axis
    }

    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    fn size(&self) -> usize {
        self.dtype.size()
    }

    fn padded(
        &self,
        inner: &super::Inner,
        frame: &Frame,
        grid: &Arc<Grid>,
        shards: impl Iterator<Item = usize>,
        scratch: &mut Scratch,
    ) -> Result<DenseTensor> {
        let shape = grid.shape(self.axis).to_vec();
        // Checked together with all others.
        let places = grid.places(self.axis, self.size());
        let largest = &inner.largest_shape[..=self.axis];
        let largest = largest.iter().fold(self.size(), |n, d| n.saturating_mul(*d));
        let mut memory = self.shelf.take(places.bytes(), largest)?;
        let out = memory.padded();
        let rows = out.chunks_exact_mut(places.item_bytes().max(1)).enumerate();
        if self.what == What::Mask {
            places.all(out, &mut Ones);
            return DenseTensor::try_new_trusted(self.dtype, shape, memory.into_buffer(Some(grid)));
        }
        for ((item, out), shard) in rows.zip(shards) {
            let first = frame.range(self.axis, item).start;
            let values = self.values(inner, frame, item, shard, scratch)?;
            match self.size() {
                1 => places.item(item, out, &mut Copied::<1> { values, first }),
                2 => places.item(item, out, &mut Copied::<2> { values, first }),
                4 => places.item(item, out, &mut Copied::<4> { values, first }),
                _ => places.item(item, out, &mut Copied::<8> { values, first }),
            }
        }
        DenseTensor::try_new_trusted(self.dtype, shape, memory.into_buffer(Some(grid)))
    }

    /// The values of an item, or whether they are valid.
    fn values<'a>(
        &self,
        inner: &'a super::Inner,
        frame: &Frame,
        item: usize,
        shard: usize,
        scratch: &'a mut Scratch,
    ) -> Result<&'a [u8]> {
        let range = frame.in_shard(self.axis, item);
        let values = &inner.source.shards[shard].values;
        match self.what {
            What::Valid(column) => Ok(values[column].validity(range, scratch)),
            What::Column(column) => {
                let fill = &inner.source.columns[column].fill;
                values[column]
                    .bytes(range, fill, scratch)
                    .ok_or_else(|| Error::invalid(format!("a value does not fit {}", self.dtype)))
            }
            _ => Ok(&[]),
        }
    }

    fn packed(
        &self,
        inner: &super::Inner,
        frame: &Frame,
        shards: impl Iterator<Item = usize>,
        scratch: &mut Scratch,
    ) -> Result<DenseTensor> {
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
        for (item, shard) in shards.enumerate() {
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
                _ => out.copy_from_slice(self.values(inner, frame, item, shard, scratch)?),
            }
        }
        DenseTensor::try_new_trusted(self.dtype, vec![n], memory.into_buffer(None))
    }
}

/// Values of one item, elements of `N` bytes.
struct Copied<'a, const N: usize> {
    values: &'a [u8],
    /// What the first of them is called in the batch.
    first: usize,
}

impl<const N: usize> Put for Copied<'_, N> {
    #[inline]
    fn put(&mut self, first: usize, cell: &mut [u8]) {
        let at = (first - self.first) * N;
        cell.copy_from_slice(&self.values[at..at + cell.len()]);
    }
}

struct Ones;

impl Put for Ones {
    #[inline]
    fn put(&mut self, _: usize, cell: &mut [u8]) {
        cell.fill(1);
    }
}
