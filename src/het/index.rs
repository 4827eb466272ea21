//! Indexing on every axis.

use arrow::array::UInt64Array;

use super::{HetTensor, HetValue};
use crate::array::{Layout, ListAxis, RaggedArray};
use crate::error::{Error, Result};
use crate::index::{Index, resolve};
use crate::kernels::filter::filter;
use crate::kernels::gather::{lists_like, take_rows, with_axis};
use crate::kernels::index::{new_axis, slice};

impl HetTensor {
    /// Indexes dim 0 by the first item, the next dim by the next, as a tensor: integers drop the dim,
    /// slices (steps and negatives as in Python), lists of positions and masks keep it, `...` and new
    /// axes are there too. One item is applied after the other, each to what the one before it left.
    ///
    /// Where lists differ in length:
    /// * a slice takes what there is of it in every list;
    /// * an integer, or a position of a list, leaves a hole where a list does not have it (negatives
    ///   count from the end of each list), and is an error where no list does;
    /// * a mask is as long as the longest list and takes what there is.
    ///
    /// # Errors
    /// More items than dims; an index that no list has (`OutOfRange`, the axis being the dim); a mask
    /// of another length; more than one list of positions, which numpy would take together.
    pub fn index(&self, index: &[Index]) -> Result<HetValue> {
        let dims = self.ndim();
        let items = Index::expand(index, dims, &format!("a tensor with {dims} dims"))?;
        if items.iter().filter(|i| matches!(i, Index::Array(_) | Index::Mask(_))).count() > 1 {
            return Err(Error::invalid(
                "several index arrays go together element by element in numpy; apply them one after the other",
            ));
        }
        let mut out = self.array.clone();
        let (mut dim, mut axis) = (0usize, 1usize);
        for item in &items {
            match item {
                Index::Rest => continue,
                Index::NewAxis => {
                    out = new_axis(&out, axis)?;
                    axis += 1;
                    continue;
                }
                Index::Slice { start, stop, step } => {
                    let at = i64::try_from(axis).unwrap_or(i64::MAX);
                    out = slice(&out, at, &(*start).into(), &(*stop).into(), &(*step).into())?;
                    axis += 1;
                }
                Index::At(index) => out = picked(&out, axis, dim, *index)?,
                Index::Array(positions) => {
                    out = taken(&out, axis, dim, positions.flat()?)?;
                    axis += 1;
                }
                Index::Mask(keep) => {
                    out = masked(&out, axis, keep.flat()?)?;
                    axis += 1;
                }
            }
            dim += 1;
        }
        Self::boxed(out)?.into_value()
    }

    /// The values for which `mask`, a tensor of booleans with the same structure or that of the outer
    /// dims only, is true; what is left of each list moves up.
    ///
    /// # Errors
    /// When the mask is not of booleans, or its structure is another one.
    pub fn filter(&self, mask: &Self) -> Result<HetValue> {
        Self::boxed(filter(&self.array, &mask.array)?)?.into_value()
    }
}

/// The position of an index in the longest list, or an error.
fn check(array: &RaggedArray, axis: usize, dim: usize, index: i64) -> Result<()> {
    let size = array.axis(axis)?.layout().max_length();
    match resolve(index, size) {
        Some(_) => Ok(()),
        None => Err(Error::OutOfRange { axis: dim, index, size }),
    }
}

fn position(level: &ListAxis, list: usize, index: i64) -> Option<u64> {
    let range = level.layout().range(list);
    resolve(index, range.len()).map(|i| (range.start + i) as u64)
}

fn picked(array: &RaggedArray, axis: usize, dim: usize, index: i64) -> Result<RaggedArray> {
    check(array, axis, dim, index)?;
    let level = array.axis(axis)?;
    let positions: UInt64Array =
        (0..level.layout().lists()).map(|list| position(level, list, index)).collect();
    let (_, below, leaves) = take_rows(&array.inner(axis)?, &positions)?.into_parts();
    let mut axes = array.axes()[..axis - 1].to_vec();
    axes.extend(below);
    RaggedArray::try_new(array.len(), axes, leaves)
}

fn taken(array: &RaggedArray, axis: usize, dim: usize, indices: &[i64]) -> Result<RaggedArray> {
    let level = array.axis(axis)?;
    let layout = level.layout();
    let valid = |list: usize| level.nulls().is_none_or(|n| n.is_valid(list));
    for index in indices {
        check(array, axis, dim, *index)?;
    }
    let there = (0..layout.lists()).filter(|l| valid(*l));
    let positions: UInt64Array =
        there.flat_map(|list| indices.iter().map(move |i| position(level, list, *i))).collect();
    let new = match level.nulls() {
        None => Layout::Uniform { size: indices.len(), lists: layout.lists() },
        Some(_) => {
            let length = |list| if valid(list) { indices.len() } else { 0 };
            lists_like(layout, (0..layout.lists()).map(length))?
        }
    };
    let below = take_rows(&array.inner(axis)?, &positions)?;
    with_axis(array, array.len(), axis, ListAxis::try_new(new, level.nulls().cloned())?, below)
}

fn masked(array: &RaggedArray, axis: usize, keep: &[bool]) -> Result<RaggedArray> {
    let level = array.axis(axis)?;
    let layout = level.layout();
    if keep.len() != layout.max_length() {
        return Err(Error::invalid(format!(
            "a mask of {} values for dim {} of size {}",
            keep.len(),
            axis - 1,
            layout.max_length()
        )));
    }
    let (mut positions, mut lengths) = (Vec::new(), Vec::with_capacity(layout.lists()));
    for list in 0..layout.lists() {
        let before = positions.len();
        positions.extend(layout.range(list).zip(keep).filter(|(_, k)| **k).map(|(p, _)| p as u64));
        lengths.push(positions.len() - before);
    }
    let new = lists_like(layout, lengths)?;
    let below = take_rows(&array.inner(axis)?, &UInt64Array::from(positions))?;
    with_axis(array, array.len(), axis, ListAxis::try_new(new, level.nulls().cloned())?, below)
}
