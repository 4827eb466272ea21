//! [`Output`]: a tensor of every batch, and where the values of one item of it are from.

use std::sync::Arc;

use super::Inner;
use super::make::{Draft, Work};
use super::options::{Form, LoaderOptions};
use super::shelf::Shelf;
use super::source::{Source, sized};
use crate::dense::DType;
use crate::error::{Error, Result};

/// A tensor of every batch.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) name: Arc<str>,
    /// Axis of its innermost lists: of the source, or of its facts.
    pub(super) axis: usize,
    pub(super) dtype: DType,
    pub(super) what: What,
    /// Whether it is of the facts.
    pub(super) facts: bool,
    pub(super) shelf: Arc<Shelf>,
}

/// What a tensor holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum What {
    /// Values of a column.
    Column(usize),
    /// Whether they are not null.
    Valid(usize),
    /// Whether those of a column of float32 are numbers: neither null nor NaN.
    Number(usize),
    /// Whether there is an element.
    Mask,
    /// Where items end.
    CuSeqlens,
    /// Where lists end.
    Offsets,
    /// Places within the item.
    PositionIds,
    /// Whether an element of axis 1 is a fact put before the others.
    Fact,
    /// As many elements of axis 1 as there are facts before the others, wherever those are.
    Leading,
    /// The values of events, each at its first measurement.
    Spread,
    /// The first of the item's events, and the one after the last.
    FirstEvent,
    EndEvent,
    /// How many items there are of the item's base.
    Windows,
    /// Values of a target, one for each base, and whether they are not null.
    Target(usize),
    TargetValid(usize),
}

/// Tensors of one loader.
pub(super) struct Outputs<'a> {
    options: &'a LoaderOptions,
    all: Vec<Output>,
}

impl<'a> Outputs<'a> {
    pub(super) fn new(options: &'a LoaderOptions) -> Self {
        Self { options, all: Vec::new() }
    }

    /// # Errors
    /// When there is one of that name.
    pub(super) fn push(
        &mut self,
        name: impl Into<Arc<str>>,
        axis: usize,
        dtype: DType,
        fill: [u8; 8],
        what: What,
    ) -> Result<()> {
        self.add(name.into(), axis, dtype, fill, what, false)
    }

    /// The same of the facts.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(super) fn push_of_facts(
        &mut self,
        name: impl Into<Arc<str>>,
        axis: usize,
        dtype: DType,
        fill: [u8; 8],
        what: What,
    ) -> Result<()> {
        self.add(name.into(), axis, dtype, fill, what, true)
    }

    fn add(
        &mut self,
        name: Arc<str>,
        axis: usize,
        dtype: DType,
        fill: [u8; 8],
        what: What,
        facts: bool,
    ) -> Result<()> {
        if self.all.iter().any(|o| o.name == name) {
            return Err(Error::invalid(format!(
                "column {name:?} has the name of a tensor that the loader makes; rename it, or \
                 leave that one out"
            )));
        }
        let shelf = Shelf::new(axis, dtype.size(), fill, self.options.in_flight());
        self.all.push(Output { name, axis, dtype, what, facts, shelf });
        Ok(())
    }

    pub(super) fn done(self) -> Vec<Output> {
        self.all
    }
}

/// The tensors of every batch, in order.
pub(super) fn outputs(source: &Source, options: &LoaderOptions) -> Result<Vec<Output>> {
    let mut out = Outputs::new(options);
    for (i, c) in source.columns.iter().enumerate() {
        out.push(Arc::clone(&c.name), c.axis, c.dtype, c.fill, What::Column(i))?;
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
                out.push(format!("dim{axis}/mask"), axis, DType::Bool, zero, What::Mask)?;
            }
        }
        Form::Packed => {
            let deepest = with_column.clone().max().unwrap_or(0);
            push_lengths(&mut out, deepest)?;
            for axis in with_column {
                push_position_ids(&mut out, options, axis)?;
            }
        }
    }
    for (i, c) in source.columns.iter().enumerate() {
        if c.nulls && options.validity {
            out.push(format!("{}/valid", c.name), c.axis, DType::Bool, zero, What::Valid(i))?;
        }
    }
    Ok(out.done())
}

/// Where items and lists end in packed batches, down to an axis.
pub(super) fn push_lengths(out: &mut Outputs<'_>, deepest: usize) -> Result<()> {
    for axis in 1..=deepest {
        out.push(format!("dim{axis}/cu_seqlens"), axis, DType::I32, [0; 8], What::CuSeqlens)?;
        if axis > 1 {
            out.push(format!("dim{axis}/offsets"), axis, DType::I32, [0; 8], What::Offsets)?;
        }
    }
    Ok(())
}

/// Places within items on an axis of packed batches, where they are asked for.
pub(super) fn push_position_ids(
    out: &mut Outputs<'_>,
    options: &LoaderOptions,
    axis: usize,
) -> Result<()> {
    match options.position_ids {
        Some(dtype) => {
            out.push(format!("dim{axis}/position_ids"), axis, dtype, [0; 8], What::PositionIds)
        }
        None => Ok(()),
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

    pub(super) fn size(&self) -> usize {
        self.dtype.size()
    }

    /// What its columns are counted in.
    pub(super) fn source<'a>(&self, inner: &'a Inner) -> &'a Source {
        match (&inner.source.facts, self.facts) {
            (Some(facts), true) => &facts.source,
            _ => &inner.source,
        }
    }

    /// The values of an item: of the type of the tensor, but float32 for [`What::Number`].
    pub(super) fn values<'a>(
        &self,
        inner: &'a Inner,
        draft: &Draft,
        item: usize,
        work: &'a mut Work,
    ) -> Result<&'a [u8]> {
        let (source, frame) = (self.source(inner), draft.frame(self.facts));
        let Some(of) = draft.items.get(item) else { return Ok(&[]) };
        let range = frame.in_shard(self.axis, item);
        let before = frame.before(self.axis, item);
        let shard = &source.shards[of.shard];
        let misfit = || Error::invalid(format!("a value does not fit {}", self.dtype));
        match self.what {
            What::Valid(column) => Ok(shard.values[column].validity(range, &mut work.scratch)),
            What::Column(column) | What::Number(column) => {
                let (values, column) = (&shard.values[column], &source.columns[column]);
                if before == 0 {
                    let bytes = values.bytes(range, &column.null, &mut work.scratch);
                    return bytes.ok_or_else(misfit);
                }
                let size = column.dtype.size();
                let joined = sized(&mut work.joined, (before + range.len()) * size);
                let (first, rest) = joined.split_at_mut(before * size);
                match (&inner.source.facts, column.fact) {
                    (Some(facts), Some(fact)) => {
                        let null = &facts.source.columns[fact].null;
                        let shard = &facts.source.shards[of.shard];
                        let start = shard.layouts[0].range(of.row).start;
                        let range = start..start + before;
                        let bytes = shard.values[fact].bytes(range, null, &mut work.scratch);
                        first.copy_from_slice(bytes.ok_or_else(misfit)?);
                    }
                    _ => first.fill(0),
                }
                let bytes = values.bytes(range, &column.null, &mut work.scratch);
                rest.copy_from_slice(bytes.ok_or_else(misfit)?);
                Ok(joined)
            }
            What::Fact => {
                let joined = sized(&mut work.joined, before + range.len());
                joined[..before].fill(1);
                joined[before..].fill(0);
                Ok(joined)
            }
            What::Spread => {
                let joined = sized(&mut work.joined, (before + range.len()) * 4);
                let (first, rest) = joined.split_at_mut(before * 4);
                first.fill(0);
                if let (Some(line), Some(span)) = (&shard.timeline, draft.spans.get(item)) {
                    line.spread(span, &range, rest);
                }
                Ok(joined)
            }
            What::FirstEvent | What::EndEvent | What::Windows => {
                let number = match self.what {
                    What::FirstEvent => draft.events(item).start,
                    What::EndEvent => draft.events(item).end,
                    _ => draft.windows.get(item).copied().unwrap_or(1),
                };
                let number = i64::try_from(number).unwrap_or(i64::MAX);
                let joined = sized(&mut work.joined, 8);
                joined.copy_from_slice(&number.to_ne_bytes());
                Ok(joined)
            }
            What::Target(target) => {
                let base = draft.bases.get(item).copied().unwrap_or(0);
                let values = &inner.targets[target].values;
                values.bytes(base..base + 1, &[0; 8], &mut work.scratch).ok_or_else(misfit)
            }
            What::TargetValid(target) => {
                let base = draft.bases.get(item).copied().unwrap_or(0);
                Ok(inner.targets[target].values.validity(base..base + 1, &mut work.scratch))
            }
            What::Mask | What::Leading | What::CuSeqlens | What::Offsets | What::PositionIds => {
                Ok(&[])
            }
        }
    }
}
