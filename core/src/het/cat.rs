//! Concatenates tensors, and inserts and removes axes of size 1.

use arrow::buffer::NullBuffer;
use arrow::compute::cast;

use super::promote::{find_arrow_type, promote_dtypes};
use super::{HetTensor, HetValue};
use crate::array::{ListAxis, RaggedArray, make_lists_like, resolve_axis};
use crate::error::{Error, Result};
use crate::kernels::align::align_arrays;
use crate::kernels::concat::concat;
use crate::kernels::gather::{replace_axis, take_ranges};
use crate::kernels::index::new_axis;
use crate::kernels::reshape::squeeze;

/// Concatenates tensors along dim `dim`; -1 is the last dim.
///
/// Along an inner dim, lists at the same position are concatenated, so all tensors must have the
/// same number of dims and the same list lengths before `dim`. Types are promoted as in PyTorch.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DenseTensor;
/// use serrate::het::{HetTensor, NestedTensors, cat};
/// let x = HetTensor::from_nested(&NestedTensors::List(vec![
///     DenseTensor::from_vec([2], vec![1, 2])?.into(),
///     DenseTensor::from_vec([1], vec![3])?.into(),
/// ]))?;
/// assert_eq!(cat(&[&x, &x], 1)?.to_string(), "[tensor([1, 2, 1, 2]), tensor([3, 3])]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `tensors` is empty, the tensors differ in their number of dims or in list lengths before
/// `dim`, or `dim` does not exist.
pub fn cat(tensors: &[&HetTensor], dim: i64) -> Result<HetValue> {
    let [first, rest @ ..] = tensors else {
        return Err(Error::invalid("there are no tensors to concatenate; give at least one"));
    };
    let axis = first.resolve_dim(dim)?;
    let mut dtype = first.dtype();
    for other in rest {
        if other.ndim() != first.ndim() {
            return Err(Error::invalid(format!(
                "a tensor with {} dims cannot be concatenated with a tensor with {} dims; give tensors with the same number of dims",
                other.ndim(),
                first.ndim()
            )));
        }
        dtype = promote_dtypes(dtype, other.dtype());
    }
    let mut outer = first.array.clone();
    let mut parts: Vec<RaggedArray> = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let leaves = cast(tensor.array.leaves(), &find_arrow_type(dtype))?;
        let (_, part) = align_arrays(&outer, &tensor.array.with_leaves(leaves)?, axis - 1)?;
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
    let layout = make_lists_like(levels[0].layout(), (0..lists).map(length))?;
    // A list of the result is null only if the lists at its position are null in all tensors.
    let is_valid = |list: usize| levels.iter().any(|l| l.nulls().is_none_or(|n| n.is_valid(list)));
    let nulls: NullBuffer = (0..lists).map(is_valid).collect();
    let level = ListAxis::try_new(layout, Some(nulls))?;
    HetTensor::from_boxed(replace_axis(&outer, 1, axis, level, below)?)?.into_value()
}

impl HetTensor {
    /// Inserts a dim of size 1 as dim `dim` of the result (-1 is the last).
    ///
    /// Copies nothing.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::HetTensor;
    /// let x = HetTensor::from_dense(&DenseTensor::from_vec([2], vec![1i64, 2])?)?;
    /// assert_eq!(x.unsqueeze(0)?.to_string(), "tensor([[1, 2]])");
    /// assert_eq!(x.unsqueeze(-1)?.to_string(), "tensor([[1], [2]])");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `dim` is outside the dims of the result.
    pub fn unsqueeze(&self, dim: i64) -> Result<HetValue> {
        let dim = resolve_axis(dim, self.ndim() + 1, "the tensor with a new dim")?;
        Self::from_boxed(new_axis(&self.array, dim + 1)?)?.into_value()
    }

    /// Removes dim `dim`, in which every list must have length 1; negative dims count from the end.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// use serrate::het::HetTensor;
    /// let x = HetTensor::from_dense(&DenseTensor::from_vec([2, 1], vec![1i64, 2])?)?;
    /// assert_eq!(x.squeeze(1)?.to_dense()?.shape(), [2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the dim does not exist, or one of its lists does not have length 1.
    pub fn squeeze(&self, dim: i64) -> Result<HetValue> {
        let axis = i64::try_from(self.resolve_dim(dim)?).unwrap_or(i64::MAX);
        Self::from_boxed(squeeze(&self.array, axis)?)?.into_value()
    }
}
