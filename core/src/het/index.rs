//! Indexing of tensors along any dim.

use arrow::array::UInt64Array;

use super::{HetTensor, HetValue};
use crate::array::{Layout, ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};
use crate::index::{Index, resolve_position};
use crate::kernels::filter::filter;
use crate::kernels::gather::{replace_axis, take_rows};
use crate::kernels::index::{new_axis, slice};

impl HetTensor {
    /// Selects elements of the tensor.
    ///
    /// The items of `index` apply one after another: the first to dim 0 of this tensor, the second
    /// to dim 1, and so on. An integer drops its dim; a slice (with steps and negatives as in
    /// Python), a list of indices or a mask keeps it. `...` and new axes work as in NumPy.
    ///
    /// If lists differ in length:
    /// * A slice is resolved for each list separately.
    /// * An integer, also one in a list of indices, leaves a hole (an element without a value)
    ///   where a list is too short. Negative integers count from the end of each list. An integer
    ///   outside every list is an error.
    /// * A mask is as long as the longest list; a shorter list uses the first values of the mask.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::Index;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |values: &[i64]| DenseTensor::from_vec([values.len()], values.to_vec());
    /// let x = HetTensor::from_nested(&NestedTensors::List(vec![row(&[1, 2])?.into(), row(&[3])?.into()]))?;
    /// assert_eq!(x.index(&[Index::ALL, (-1).into()])?.to_string(), "tensor([2, 3])");
    /// // The second list has no element 1, so the result has a hole.
    /// assert!(x.index(&[Index::ALL, 1.into()])?.dense().is_none());
    /// assert!(x.index(&[Index::ALL, 2.into()]).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `index` selects on more dims than the tensor has, an integer is outside every list
    /// (`OutOfRange`, whose axis is the dim), a mask is not as long as the longest list, or `index`
    /// has several lists of indices or masks.
    pub fn index(&self, index: &[Index]) -> Result<HetValue> {
        let dims = self.ndim();
        let items = Index::expand_axes(index, dims, &format!("a tensor with {dims} dims"))?;
        if items.iter().filter(|i| matches!(i, Index::Array(_) | Index::Mask(_))).count() > 1 {
            return Err(Error::invalid(
                "the index has several index arrays or masks, but a HetTensor accepts only one (NumPy would combine them element by element); apply each in a separate call",
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
                Index::At(index) => out = pick_position(&out, axis, dim, *index)?,
                Index::Array(positions) => {
                    out = take_positions(&out, axis, dim, positions.as_flat()?)?;
                    axis += 1;
                }
                Index::Mask(keep) => {
                    out = apply_mask(&out, axis, keep.as_flat()?)?;
                    axis += 1;
                }
            }
            dim += 1;
        }
        Self::from_boxed(out)?.into_value()
    }

    /// Keeps the values where `mask` is true.
    ///
    /// The mask has all dims of this tensor or only the outer ones, and on each of its dims the
    /// same list lengths as this tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// let keep = x.gt(1)?.into_het()?;
    /// assert_eq!(x.filter(&keep)?.to_string(), "tensor([[2], [3]])");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the mask is not boolean, or has more dims or other list lengths than this tensor.
    pub fn filter(&self, mask: &Self) -> Result<HetValue> {
        Self::from_boxed(filter(&self.array, &mask.array)?)?.into_value()
    }
}

fn check_index(array: &RaggedArray, axis: usize, dim: usize, index: i64) -> Result<()> {
    let size = array.axis(axis)?.layout().max_length();
    match resolve_position(index, size) {
        Some(_) => Ok(()),
        None => Err(Error::OutOfRange { axis: dim, index, size }),
    }
}

fn find_child_position(level: &ListAxis, list: usize, index: i64) -> Option<u64> {
    let range = level.layout().range(list);
    resolve_position(index, range.len()).map(|i| (range.start + i) as u64)
}

fn pick_position(array: &RaggedArray, axis: usize, dim: usize, index: i64) -> Result<RaggedArray> {
    check_index(array, axis, dim, index)?;
    let level = array.axis(axis)?;
    let positions: UInt64Array =
        (0..level.layout().lists()).map(|list| find_child_position(level, list, index)).collect();
    let (_, below, leaves) = take_rows(&array.inner(axis)?, &positions)?.into_parts();
    let mut axes = array.axes()[..axis - 1].to_vec();
    axes.extend(below);
    RaggedArray::try_new(array.len(), axes, leaves)
}

fn take_positions(
    array: &RaggedArray,
    axis: usize,
    dim: usize,
    indices: &[i64],
) -> Result<RaggedArray> {
    let level = array.axis(axis)?;
    let layout = level.layout();
    let valid = |list: usize| level.nulls().is_none_or(|n| n.is_valid(list));
    for index in indices {
        check_index(array, axis, dim, *index)?;
    }
    let valid_lists = (0..layout.lists()).filter(|l| valid(*l));
    let positions: UInt64Array = valid_lists
        .flat_map(|list| indices.iter().map(move |i| find_child_position(level, list, *i)))
        .collect();
    let new = match level.nulls() {
        None => Layout::Uniform { size: indices.len(), lists: layout.lists() },
        Some(_) => {
            let length = |list| if valid(list) { indices.len() } else { 0 };
            make_lists_like(layout, (0..layout.lists()).map(length))?
        }
    };
    let below = take_rows(&array.inner(axis)?, &positions)?;
    replace_axis(array, array.len(), axis, ListAxis::try_new(new, level.nulls().cloned())?, below)
}

fn apply_mask(array: &RaggedArray, axis: usize, keep: &[bool]) -> Result<RaggedArray> {
    let level = array.axis(axis)?;
    let layout = level.layout();
    if keep.len() != layout.max_length() {
        return Err(Error::invalid(format!(
            "the mask has {} value(s), but the longest list of dim {} has {} element(s); give a mask with one value per element of this list",
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
    let new = make_lists_like(layout, lengths)?;
    let below = take_rows(&array.inner(axis)?, &UInt64Array::from(positions))?;
    replace_axis(array, array.len(), axis, ListAxis::try_new(new, level.nulls().cloned())?, below)
}
