//! Masks: which places of a dense result hold elements.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray};
use arrow::buffer::BooleanBuffer;

use super::densify::{Padding, check_room, densify_into_named, densify_named, plan_axes, write};
use crate::array::{Layout, RaggedArray, resolve_axis};
use crate::dense::plan::Sink;
use crate::dense::{DType, DenseOptions, DenseTensor, Fill};
use crate::error::{Error, Result};

/// Which places of axis `axis` hold an element: a `Bool` tensor of shape `[rows, d1, .. d_axis]`.
///
/// It belongs to a [`densify`](super::densify::densify) with the same sizes and side. `sizes` has
/// one size per axis after the rows; those beyond `axis` do not matter. Axis 1 is the outermost
/// list, negatives count from the innermost. Elements that are null, or null lists, are elements;
/// the children of a null list are not there. Of the options, fill and dtype do not matter.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::UInt16Array;
/// use serrate::array::{Offsets, RaggedArray};
/// use serrate::dense::DenseOptions;
/// use serrate::kernels::mask::mask;
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
/// No such axis, or axis 0 (every row is there); a wrong number of sizes; more bytes than the limit.
pub fn mask(
    array: &RaggedArray,
    axis: i64,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
) -> Result<DenseTensor> {
    let axis = match resolve_axis(axis, array.ndim(), "the array")? {
        0 => {
            return Err(Error::invalid(
                "a mask of axis 0 would be true for every row; axis 1 is the outermost list",
            ));
        }
        axis => axis,
    };
    let sizes = match sizes {
        Some(s) if s.len() < axis || s.len() > array.ndim() - 1 => {
            return Err(Error::invalid(format!(
                "mask: {} size(s) {s:?} for {axis} axes; give one per axis after the rows",
                s.len()
            )));
        }
        Some(s) => Some(&s[..axis]),
        None => None,
    };
    let layouts = array.axes()[..axis].iter().map(|a| a.layout().clone()).collect();
    mask_axes(array.len(), layouts, sizes, options)
}

/// The mask of the last of `layouts`.
pub(crate) fn mask_axes(
    rows: usize,
    layouts: Vec<Layout>,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
) -> Result<DenseTensor> {
    let plan = plan_axes(rows, layouts, sizes, DType::Bool, options, "mask")?;
    write(plan, DType::Bool, &[0], options, |plan, padding, out| {
        plan.walk(&Ones { padding }, out, options.parallel);
    })
}

/// As [`mask_axes`], into memory of the caller's.
pub(crate) fn mask_axes_into(
    rows: usize,
    layouts: Vec<Layout>,
    sizes: &[usize],
    options: &DenseOptions,
    what: &str,
    out: &mut [u8],
) -> Result<()> {
    let plan = plan_axes(rows, layouts, Some(sizes), DType::Bool, options, what)?;
    check_room(&plan, DType::Bool, what, out)?;
    plan.walk(&Ones { padding: Padding::over(&[0]) }, out, options.parallel);
    Ok(())
}

/// Which places of a dense result hold a leaf that is not null: a `Bool` tensor of the shape of
/// [`densify`](super::densify::densify), for leaves of any type.
///
/// Without null leaves this is the [`mask`] of the innermost axis.
///
/// # Errors
/// A wrong number of sizes; more bytes than the limit.
pub fn validity_mask(
    array: &RaggedArray,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
) -> Result<DenseTensor> {
    let (valid, options) = validity(array, options)?;
    densify_named(&valid, sizes, &options, "validity mask")
}

/// As [`validity_mask`], into memory of the caller's.
///
/// # Errors
/// As [`validity_mask`], and when `out` is not as long as the result.
pub fn validity_mask_into(
    array: &RaggedArray,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
    out: &mut [u8],
) -> Result<Vec<usize>> {
    let (valid, options) = validity(array, options)?;
    densify_into_named(&valid, sizes, &options, "validity mask", out)
}

/// Which leaves are not null, as an array of booleans, and how to densify that.
fn validity(array: &RaggedArray, options: &DenseOptions) -> Result<(RaggedArray, DenseOptions)> {
    let n = array.leaves().len();
    let nulls = array.leaves().logical_nulls().filter(|n| n.null_count() > 0);
    let valid = nulls.map_or_else(|| BooleanBuffer::new_set(n), |n| n.into_inner());
    let valid = Arc::new(BooleanArray::new(valid, None));
    let options = DenseOptions { fill: Some(Fill::Bool(false)), dtype: None, ..options.clone() };
    Ok((array.with_leaves(valid)?, options))
}

/// One for every element.
struct Ones {
    padding: Padding,
}

impl Sink for Ones {
    fn values(&self, _: Range<usize>, out: &mut [u8]) {
        out.fill(1);
    }

    fn padding(&self, out: &mut [u8]) {
        self.padding.write(out);
    }
}
