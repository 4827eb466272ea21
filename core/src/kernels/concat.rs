//! Concatenation of arrays.

use arrow::array::{Array, BooleanBufferBuilder};
use arrow::buffer::NullBuffer;
use arrow::compute::concat as concat_leaves;

use crate::array::{Layout, ListAxis, RaggedArray};
use crate::error::{Error, Result};
use crate::table::join_layouts;

/// Concatenates the rows of arrays.
///
/// An axis that is uniform with the same size in all arrays stays uniform. Null lists and leaves
/// stay null, and an array without rows adds nothing.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::concat::concat;
/// let axes = vec![Offsets::from_lengths([2, 1])?.into()];
/// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3])))?;
/// let b = concat(&[&a, &a.slice(0, 1)?])?;
/// assert_eq!(b.lengths(1)?, [2, 1, 2]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `arrays` is empty, or if the arrays differ in the number of their axes or in the type of
/// their leaves ([`cast`](super::select::cast) them first).
pub fn concat(arrays: &[&RaggedArray]) -> Result<RaggedArray> {
    let [first, rest @ ..] = arrays else {
        return Err(Error::invalid("there are no arrays to concatenate; give at least one"));
    };
    if rest.is_empty() {
        return Ok((*first).clone());
    }
    for array in rest {
        if array.ndim() != first.ndim() {
            return Err(Error::invalid(format!(
                "an array to concatenate has {} axes, but the first array has {}; give arrays with the same number of axes",
                array.ndim(),
                first.ndim()
            )));
        }
        if array.leaf_type() != first.leaf_type() {
            return Err(Error::type_of(
                "concatenated arrays",
                format!(
                    "leaves of type {}, as in the first array (cast the others)",
                    first.leaf_type()
                ),
                array.leaf_type(),
            ));
        }
    }
    let rows =
        arrays.iter().try_fold(0usize, |sum, a| sum.checked_add(a.len())).ok_or_else(|| {
            Error::invalid("the total number of rows exceeds 64 bits; concatenate fewer arrays")
        })?;
    let mut axes = Vec::with_capacity(first.axes().len());
    for level in 0..first.axes().len() {
        let parts: Vec<&ListAxis> = arrays.iter().map(|a| &a.axes()[level]).collect();
        let layouts: Vec<&Layout> = parts.iter().map(|p| p.layout()).collect();
        let nulls = parts.iter().any(|p| p.nulls().is_some()).then(|| {
            let mut bits = BooleanBufferBuilder::new(0);
            for part in &parts {
                match part.nulls() {
                    Some(n) => bits.append_buffer(n.inner()),
                    None => bits.append_n(part.layout().lists(), true),
                }
            }
            NullBuffer::new(bits.finish())
        });
        axes.push(ListAxis::try_new(join_layouts(&layouts)?, nulls)?);
    }
    let leaves: Vec<&dyn Array> = arrays.iter().map(|a| a.leaves().as_ref()).collect();
    RaggedArray::try_new(rows, axes, concat_leaves(&leaves)?)
}
