//! [`TensorOutput`]: one of the tensors in every batch.

use std::sync::Arc;

use super::block_shelf::BlockShelf;
use super::loader_source::LoaderSource;
use super::options::{BatchForm, LoaderOptions};
use crate::dense::DType;
use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct TensorOutput {
    pub(super) name: Arc<str>,
    /// The tensor has one value per element of this axis: an axis of the static facts if `facts` is
    /// true, otherwise an axis of the shards.
    pub(super) axis: usize,
    pub(super) dtype: DType,
    pub(super) what: TensorContent,
    pub(super) facts: bool,
    pub(super) shelf: Arc<BlockShelf>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TensorContent {
    Column(usize),
    Valid(usize),
    /// For each value of the float32 column with index `.0`, whether it is neither null nor NaN.
    Number(usize),
    Mask,
    /// Offsets of items: entry `i` is the number of elements on the axis in the first `i` items.
    CuSeqlens,
    Offsets,
    /// For each element of a packed batch, its index within its item (a window of a row).
    PositionIds,
    /// For each element of axis 1, whether it is a static fact that is prepended to the elements of
    /// the row.
    Fact,
    /// Whether the position on axis 1 is one of the first `n`, where `n` is the number of facts
    /// that are prepended to the item. With padding on the left, these positions are padding.
    Leading,
    /// The value of each event (days since the previous event) at its first measurement; 0 at all
    /// other measurements.
    Spread,
    /// For each item, the index of its first event in the row; `EndEvent` is the index after its
    /// last event.
    FirstEvent,
    EndEvent,
    /// For each item, the number of windows into which its row or label is divided.
    Windows,
    /// For each item, the value of `LoaderState::targets[.0]`. `TargetValid` is whether this value
    /// is not null.
    Target(usize),
    TargetValid(usize),
}

pub(super) struct TensorOutputs<'a> {
    options: &'a LoaderOptions,
    all: Vec<TensorOutput>,
}

impl<'a> TensorOutputs<'a> {
    pub(super) fn new(options: &'a LoaderOptions) -> Self {
        Self { options, all: Vec::new() }
    }

    /// Adds a tensor with one value per element of axis `axis` of the shards. Returns an error if
    /// another tensor has this name.
    pub(super) fn push(
        &mut self,
        name: impl Into<Arc<str>>,
        axis: usize,
        dtype: DType,
        fill: [u8; 8],
        what: TensorContent,
    ) -> Result<()> {
        self.add(name.into(), axis, dtype, fill, what, false)
    }

    pub(super) fn push_fact(
        &mut self,
        name: impl Into<Arc<str>>,
        axis: usize,
        dtype: DType,
        fill: [u8; 8],
        what: TensorContent,
    ) -> Result<()> {
        self.add(name.into(), axis, dtype, fill, what, true)
    }

    fn add(
        &mut self,
        name: Arc<str>,
        axis: usize,
        dtype: DType,
        fill: [u8; 8],
        what: TensorContent,
        facts: bool,
    ) -> Result<()> {
        if self.all.iter().any(|o| o.name == name) {
            return Err(Error::invalid(format!(
                "two tensors of a batch have the name {name:?}; rename the column with this name, \
                 or disable the tensor that the loader adds"
            )));
        }
        // Keep one block more than the number of batches that the loader builds in advance, because
        // most callers still hold a batch when they request the next.
        let keep = self.options.max_in_flight().saturating_add(1);
        let shelf = BlockShelf::new(axis, dtype.size(), fill, keep, self.options.trust_padding);
        self.all.push(TensorOutput { name, axis, dtype, what, facts, shelf });
        Ok(())
    }

    pub(super) fn into_outputs(self) -> Vec<TensorOutput> {
        self.all
    }
}

pub(super) fn list_outputs(
    source: &LoaderSource,
    options: &LoaderOptions,
) -> Result<Vec<TensorOutput>> {
    let mut out = TensorOutputs::new(options);
    for (i, c) in source.columns.iter().enumerate() {
        out.push(Arc::clone(&c.name), c.axis, c.dtype, c.fill, TensorContent::Column(i))?;
    }
    let zero = [0; 8];
    let with_column = (1..source.ndim).filter(|d| source.columns.iter().any(|c| c.axis == *d));
    match options.form {
        BatchForm::Padded => {
            let axes = options.masks.clone().unwrap_or_else(|| with_column.collect());
            for axis in axes {
                if axis == 0 || axis >= source.ndim {
                    let advice = match source.ndim {
                        0 | 1 => {
                            "the shards have no axis after the rows, so remove the option `masks`"
                                .to_owned()
                        }
                        ndim => format!("use axes from 1 to {}", ndim - 1),
                    };
                    return Err(Error::invalid(format!(
                        "axis {axis} cannot have a mask; {advice}"
                    )));
                }
                out.push(format!("dim{axis}/mask"), axis, DType::Bool, zero, TensorContent::Mask)?;
            }
        }
        BatchForm::Packed => {
            let deepest = with_column.clone().max().unwrap_or(0);
            push_lengths(&mut out, deepest)?;
            for axis in with_column {
                push_position_ids(&mut out, options, axis)?;
            }
        }
    }
    for (i, c) in source.columns.iter().enumerate() {
        if c.nulls && options.validity {
            out.push(
                format!("{}/valid", c.name),
                c.axis,
                DType::Bool,
                zero,
                TensorContent::Valid(i),
            )?;
        }
    }
    Ok(out.into_outputs())
}

/// Adds the tensors of lengths of a packed batch: `cu_seqlens` for each axis from 1 to `deepest`,
/// and `offsets` for each axis from 2 to `deepest`. Returns an error if a name is already in use.
pub(super) fn push_lengths(out: &mut TensorOutputs<'_>, deepest: usize) -> Result<()> {
    for axis in 1..=deepest {
        out.push(
            format!("dim{axis}/cu_seqlens"),
            axis,
            DType::I32,
            [0; 8],
            TensorContent::CuSeqlens,
        )?;
        if axis > 1 {
            out.push(
                format!("dim{axis}/offsets"),
                axis,
                DType::I32,
                [0; 8],
                TensorContent::Offsets,
            )?;
        }
    }
    Ok(())
}

pub(super) fn push_position_ids(
    out: &mut TensorOutputs<'_>,
    options: &LoaderOptions,
    axis: usize,
) -> Result<()> {
    match options.position_ids {
        Some(dtype) => out.push(
            format!("dim{axis}/position_ids"),
            axis,
            dtype,
            [0; 8],
            TensorContent::PositionIds,
        ),
        None => Ok(()),
    }
}

impl TensorOutput {
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
}
