//! Masks of dense tensors: true for elements, false for padding.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray};
use arrow::buffer::BooleanBuffer;

use super::dense_plan::DenseSink;
use super::densify::{check_out_len, create_tensor, densify_into_named, densify_named, plan_axes};
use super::padding::PaddingBytes;
use super::{DType, DenseOptions, DenseTensor, Fill};
use crate::array::nulls::find_validity;
use crate::array::{Layout, RaggedArray, resolve_axis};
use crate::error::{Error, Result};

/// Returns a `Bool` tensor `[rows, d1, .. d_axis]`: true for elements of axis `axis`, false for
/// padding.
///
/// The mask is for the tensor of [`densify`](super::densify::densify) with the same sizes and side.
/// `sizes` has one size per axis after the rows; the sizes of the axes after `axis` have no effect.
/// The fill value and the element type in `options` are ignored, too. Axis 1 is the outermost list;
/// negative axes count from the innermost list. A null counts as an element, a null list as empty.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::UInt16Array;
/// use serrate::array::{Offsets, RaggedArray};
/// use serrate::dense::DenseOptions;
/// use serrate::dense::mask::mask;
///
/// // [[1, 2], [], [4]]
/// let leaves = Arc::new(UInt16Array::from(vec![1, 2, 4]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
/// let m = mask(&a, 1, None, &DenseOptions::default())?;
/// assert_eq!(m.to_string(), "bool[3, 2] [[true, true], [false, false], [true, false]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the axis is 0 or does not exist, the number of sizes is wrong, or the result has more bytes
/// than [`DenseOptions::limit`].
pub fn mask(
    array: &RaggedArray,
    axis: i64,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
) -> Result<DenseTensor> {
    let axis = match resolve_axis(axis, array.ndim(), "the array")? {
        0 => {
            return Err(Error::invalid(
                "a mask of axis 0 would be true for every row; use axis 1 (the outermost lists) or a later axis",
            ));
        }
        axis => axis,
    };
    let sizes = match sizes {
        Some(s) if s.len() < axis || s.len() > array.ndim() - 1 => {
            return Err(Error::invalid(format!(
                "{} size(s) {s:?} are given for the mask of axis {axis}; give from {axis} to {} sizes, one per list axis from axis 1 on (sizes after axis {axis} are ignored)",
                s.len(),
                array.ndim() - 1
            )));
        }
        Some(s) => Some(&s[..axis]),
        None => None,
    };
    let layouts = array.axes()[..axis].iter().map(|a| a.layout().clone()).collect();
    mask_axes(array.len(), layouts, sizes, options)
}

/// Returns the [`mask`] of the innermost axis; `layouts` are the list levels, outermost first.
pub(crate) fn mask_axes(
    rows: usize,
    layouts: Vec<Layout>,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
) -> Result<DenseTensor> {
    let plan = plan_axes(rows, layouts, sizes, DType::Bool, options, "mask")?;
    create_tensor(plan, DType::Bool, &[0], options, |plan, padding, out| {
        plan.walk_lists(&OneSink, padding, out, options.parallel);
    })
}

pub(crate) fn mask_axes_into(
    rows: usize,
    layouts: Vec<Layout>,
    sizes: &[usize],
    options: &DenseOptions,
    what: &str,
    out: &mut [u8],
) -> Result<()> {
    let plan = plan_axes(rows, layouts, Some(sizes), DType::Bool, options, what)?;
    check_out_len(&plan, DType::Bool, what, out)?;
    plan.walk_lists(&OneSink, PaddingBytes::from_fill(&[0]), out, options.parallel);
    Ok(())
}

/// Returns a `Bool` tensor of the shape of [`densify`](super::densify::densify): true for leaves
/// (of any type) that are not null, else false.
///
/// If no leaf is null, this is the [`mask`] of the innermost axis.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::dense::mask::validity_mask;
/// // [[1, NULL], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let mask = validity_mask(&a, None, &Default::default())?;
/// assert_eq!(mask.as_slice::<u8>()?, [1, 0, 1, 0]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the number of sizes is wrong, or the result has more bytes than [`DenseOptions::limit`].
pub fn validity_mask(
    array: &RaggedArray,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
) -> Result<DenseTensor> {
    let (valid, options) = make_validity(array, options)?;
    densify_named(&valid, sizes, &options, "validity mask")
}

/// Computes the mask of [`validity_mask`] and writes it to `out`.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::dense::mask::validity_mask_into;
/// // [[1, NULL], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let mut out = [9; 4];
/// validity_mask_into(&a, None, &Default::default(), &mut out)?;
/// assert_eq!(out, [1, 0, 1, 0]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`validity_mask`]; also if `out` does not have the length of the result.
pub fn validity_mask_into(
    array: &RaggedArray,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
    out: &mut [u8],
) -> Result<Vec<usize>> {
    let (valid, options) = make_validity(array, options)?;
    densify_into_named(&valid, sizes, &options, "validity mask", out)
}

/// Replaces each leaf with a boolean, which is true unless the leaf is null. Also returns the
/// options for such leaves: the fill value is false, and the type is not converted.
fn make_validity(
    array: &RaggedArray,
    options: &DenseOptions,
) -> Result<(RaggedArray, DenseOptions)> {
    let n = array.leaves().len();
    let nulls = find_validity(array.leaves());
    let valid = nulls.map_or_else(|| BooleanBuffer::new_set(n), |n| n.into_inner());
    let valid = Arc::new(BooleanArray::new(valid, None));
    let options = DenseOptions { fill: Some(Fill::Bool(false)), dtype: None, ..options.clone() };
    Ok((array.with_leaves(valid)?, options))
}

struct OneSink;

impl DenseSink for OneSink {
    fn values(&self, _: Range<usize>, out: &mut [u8]) {
        out.fill(1);
    }
}
