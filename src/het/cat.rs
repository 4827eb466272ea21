//! Tensors one after the other, and axes of size 1.

use arrow::buffer::NullBuffer;
use arrow::compute::cast;

use super::promote::{arrow, promote};
use super::{HetTensor, HetValue};
use crate::array::{ListAxis, RaggedArray, resolve_axis};
use crate::error::{Error, Result};
use crate::kernels::align::aligned;
use crate::kernels::concat::concat;
use crate::kernels::gather::{lists_like, take_ranges, with_axis};
use crate::kernels::index::new_axis;
use crate::kernels::reshape::squeeze;

/// Tensors one after the other along dim `dim` (negatives from the last): along dim 0 whole slices
/// follow each other, along an inner dim the lists at the same place do.
///
/// All have as many dims and the same lists on the dims before `dim`; what follows it may differ.
/// Types are promoted as PyTorch does.
///
/// ```
/// use serrate::dense::DenseTensor;
/// use serrate::het::{HetTensor, Nested, cat};
/// let x = HetTensor::from_nested(&Nested::List(vec![
///     DenseTensor::from_vec([2], vec![1, 2])?.into(),
///     DenseTensor::from_vec([1], vec![3])?.into(),
/// ]))?;
/// assert_eq!(cat(&[&x, &x], 1)?.to_string(), "[tensor([1, 2, 1, 2]), tensor([3, 3])]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// For no tensors, for another number of dims, when there is no such dim, and where lists differ in
/// length on a dim before it.
pub fn cat(tensors: &[&HetTensor], dim: i64) -> Result<HetValue> {
    let [first, rest @ ..] = tensors else {
        return Err(Error::invalid("no tensors to put one after the other"));
    };
    let axis = first.axis_of(dim)?;
    let mut dtype = first.dtype();
    for other in rest {
        if other.ndim() != first.ndim() {
            return Err(Error::invalid(format!(
                "a tensor with {} dims after one with {}; all must have as many",
                other.ndim(),
                first.ndim()
            )));
        }
        dtype = promote(dtype, other.dtype());
    }
    let mut outer = first.array.clone();
    let mut parts: Vec<RaggedArray> = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let leaves = cast(tensor.array.leaves(), &arrow(dtype))?;
        let (_, part) = aligned(&outer, &tensor.array.with_leaves(leaves)?, axis - 1)?;
        if parts.is_empty() {
            outer = part.clone();
        }
        parts.push(part);
    }
    let levels = parts.iter().map(|p| p.axis(axis)).collect::<Result<Vec<_>>>()?;
    let inner = parts.iter().map(|p| p.inner(axis)).collect::<Result<Vec<_>>>()?;
    let all = concat(&inner.iter().collect::<Vec<_>>())?;
    let lists = levels[0].layout().lists();
    let mut ranges = Vec::with_capacity(lists.saturating_mul(parts.len()));
    for list in 0..lists {
        let mut base = 0;
        for level in &levels {
            let range = level.layout().range(list);
            ranges.push(base + range.start..base + range.end);
            base += level.layout().children();
        }
    }
    let below = take_ranges(&all, ranges)?;
    let length = |list: usize| levels.iter().map(|l| l.layout().length(list)).sum();
    let layout = lists_like(levels[0].layout(), (0..lists).map(length))?;
    // Missing where it is missing in all of them.
    let there = |list: usize| levels.iter().any(|l| l.nulls().is_none_or(|n| n.is_valid(list)));
    let nulls: NullBuffer = (0..lists).map(there).collect();
    let level = ListAxis::try_new(layout, Some(nulls))?;
    HetTensor::boxed(with_axis(&outer, 1, axis, level, below)?)?.into_value()
}

impl HetTensor {
    /// A new dim of size 1 that becomes dim `dim` of the result (-1: the last). Nothing is copied.
    ///
    /// # Errors
    /// For a dim that the result would not have.
    pub fn unsqueeze(&self, dim: i64) -> Result<HetValue> {
        let dim = resolve_axis(dim, self.ndim() + 1, "the tensor with a new dim")?;
        Self::boxed(new_axis(&self.array, dim + 1)?)?.into_value()
    }

    /// Without dim `dim` (negatives from the last), which has size 1.
    ///
    /// # Errors
    /// When there is no such dim, or some list of it has another length.
    pub fn squeeze(&self, dim: i64) -> Result<HetValue> {
        let axis = i64::try_from(self.axis_of(dim)?).unwrap_or(i64::MAX);
        Self::boxed(squeeze(&self.array, axis)?)?.into_value()
    }
}
