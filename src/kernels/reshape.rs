//! Merging levels of lists.

use arrow::array::OffsetSizeTrait;
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::ArrowNativeType;

use super::gather::lists_like;
use super::shape::list_axis;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::error::{Error, Result};
use crate::with_offsets;

/// Merges axis `axis` (2.., negatives from the innermost) into the level above it: the lists of
/// axis `axis - 1` hold what their lists held, one after the other.
///
/// Lists that are null on axis `axis` vanish, as empty ones do; a null list of axis `axis - 1` stays
/// null. Leaves and all other levels are shared, only one buffer of offsets is made.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{Array, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reshape::flatten;
/// // [[[1, 2], []], [[3]]] becomes [[1, 2], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let axes = vec![Offsets::from_lengths([2, 1])?.into(), Offsets::from_lengths([2, 0, 1])?.into()];
/// let a = RaggedArray::try_new(2, axes, leaves)?;
/// let b = flatten(&a, -1)?;
/// assert_eq!((b.ndim(), b.lengths(1)?), (2, vec![2, 1]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When the array has no such axis, and for axis 1, which would merge rows.
pub fn flatten(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    let inner = list_axis(array, axis)?;
    if inner == 1 {
        return Err(Error::invalid(format!(
            "axis {axis} is the outermost level of lists; flattening it would merge rows (use unnest)"
        )));
    }
    let mut axes = array.axes().to_vec();
    let below = axes.remove(inner - 1);
    axes[inner - 2] = merged(&axes[inner - 2], &below)?;
    RaggedArray::try_new(array.len(), axes, array.leaves().clone())
}

/// Merges all levels into one: every row is one list of its leaves.
///
/// An array with one level, or none, comes back as it is.
pub fn flatten_all(array: &RaggedArray) -> Result<RaggedArray> {
    match leaf_lists(array)? {
        Some(lists) if array.axes().len() > 1 => {
            RaggedArray::try_new(array.len(), vec![lists], array.leaves().clone())
        }
        _ => Ok(array.clone()),
    }
}

/// How the rows divide the leaves, all levels merged; `None` for an array without levels.
pub(crate) fn leaf_lists(array: &RaggedArray) -> Result<Option<ListAxis>> {
    let mut levels = array.axes().iter();
    let Some(first) = levels.next() else { return Ok(None) };
    levels.try_fold(first.clone(), |outer, inner| merged(&outer, inner)).map(Some)
}

/// Two levels as one.
fn merged(outer: &ListAxis, inner: &ListAxis) -> Result<ListAxis> {
    let layout = match (outer.layout(), inner.layout()) {
        (Layout::Uniform { size: a, lists }, Layout::Uniform { size: b, .. }) => {
            Layout::Uniform { size: a * b, lists: *lists }
        }
        (Layout::Ragged(o), Layout::Uniform { size, .. }) => {
            lists_like(outer.layout(), o.lengths().map(|n| n * size))?
        }
        (outer, Layout::Ragged(o)) => composed(outer, o)?,
    };
    ListAxis::try_new(layout, outer.nulls().cloned())
}

/// Offsets of the children of the children; as wide as the inner ones.
fn composed(outer: &Layout, inner: &Offsets) -> Result<Layout> {
    fn typed<O: OffsetSizeTrait>(outer: &Layout, inner: &[O]) -> Offsets {
        let base = inner[0];
        let mut out = Vec::with_capacity(outer.lists() + 1);
        out.push(O::zero());
        match outer {
            Layout::Uniform { size, lists } => {
                out.extend((1..=*lists).map(|i| inner[i * size] - base));
            }
            Layout::Ragged(o) => with_offsets!(o, o => {
                let first = o[0].as_usize();
                out.extend(o[1..].iter().map(|x| inner[x.as_usize() - first] - base));
            }),
        }
        Offsets::from(OffsetBuffer::new(out.into()))
    }
    let offsets = with_offsets!(inner, o => typed(outer, o));
    Ok(match outer {
        Layout::Ragged(Offsets::I64(_)) => Offsets::I64(offsets.to_i64()),
        _ => offsets,
    }
    .into())
}
