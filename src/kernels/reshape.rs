//! Merging, adding and dropping levels of lists.

use arrow::array::OffsetSizeTrait;
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::ArrowNativeType;

use super::gather::{lists_like, row_of_list};
use super::index::{new_axis, pick};
use super::shape::list_axis;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray, resolve_axis};
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

/// Drops axis `axis` (1.., negatives from the innermost), each of whose lists has one element: that
/// element takes the list's place. A null list becomes a null element.
///
/// Nothing is copied where no list is null.
///
/// # Errors
/// When the array has no such axis or `axis` is 0, and for a list that is not null and has another
/// number of elements, naming it.
pub fn squeeze(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    let at = list_axis(array, axis)?;
    let level = array.axis(at)?;
    let layout = level.layout();
    let valid = |i: usize| level.nulls().is_none_or(|n| n.is_valid(i));
    if let Some(list) = (0..layout.lists()).find(|i| layout.length(*i) != 1 && valid(*i)) {
        return Err(Error::invalid(format!(
            "list {list} of axis {at} (row {}) has {} element(s); only an axis of size 1 can be squeezed",
            row_of_list(array, at, list),
            layout.length(list)
        )));
    }
    pick(array, axis, 0)
}

/// Adds an axis of size 1 that becomes axis `axis` of the result: 1 puts each row's content into one
/// list, -1 each leaf into a list of its own. Nothing is copied.
///
/// # Errors
/// For axis 0, and for an axis the result would not have.
pub fn unsqueeze(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    new_axis(array, resolve_axis(axis, array.ndim() + 1, "the array with a new axis")?)
}

/// Every list of axis `axis` (1.., negatives from the innermost) as an array of the given sizes: the
/// axis is replaced by one axis for each of them, and everything below stays.
///
/// One size may be -1: as much as the number of elements asks for, list by list. Elements stay in
/// their order (row-major, as in numpy), and no leaf is copied. Null lists stay null.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reshape::reshape;
/// // [[1, 2, 3, 4], [5, 6]] becomes [[[1, 2], [3, 4]], [[5, 6]]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5, 6]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([4, 2])?.into()], leaves)?;
/// let b = reshape(&a, 1, &[-1, 2])?;
/// assert_eq!((b.shape(), b.lengths(1)?), (vec![2, -1, 2], vec![2, 1]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When the array has no such axis or `axis` is 0, without sizes, for two sizes of -1 or other
/// negative ones, and for a list whose elements do not fit the sizes, naming it.
pub fn reshape(array: &RaggedArray, axis: i64, sizes: &[i64]) -> Result<RaggedArray> {
    let at = list_axis(array, axis)?;
    let level = array.axis(at)?;
    let layout = level.layout();
    let refuse = |why: &str| Err(Error::invalid(format!("reshape to {sizes:?}: {why}")));
    let open = sizes.iter().position(|s| *s == -1);
    if sizes.is_empty() {
        return refuse("there must be at least one size");
    }
    let mut fixed = 1usize;
    for (i, size) in sizes.iter().enumerate().filter(|(i, _)| Some(*i) != open) {
        if *size == -1 {
            return refuse("only one size can be -1");
        }
        let Some(product) = usize::try_from(*size).ok().and_then(|s| fixed.checked_mul(s)) else {
            return refuse(&format!("size {i} is {size}"));
        };
        fixed = product;
    }
    let valid = |i: usize| level.nulls().is_none_or(|n| n.is_valid(i));
    // How many elements the open size has in a list; the product of all without one is 1.
    let share = |n: usize| match open {
        None => (n == fixed).then_some(1),
        Some(_) if fixed == 0 => (n == 0).then_some(0),
        Some(_) => n.is_multiple_of(fixed).then_some(n / fixed),
    };
    let lists = layout.lists();
    for list in (0..lists).filter(|i| valid(*i)) {
        let n = layout.length(list);
        if share(n).is_none() {
            return refuse(&format!(
                "list {list} of axis {at} (row {}) has {n} element(s)",
                row_of_list(array, at, list)
            ));
        }
    }
    let of = |list: usize| share(layout.length(list)).unwrap_or(0);
    let same = match level.nulls() {
        None => (1..lists).all(|i| of(i) == of(0)).then(|| if lists == 0 { 0 } else { of(0) }),
        Some(_) => None,
    };
    let mut axes = array.axes()[..at - 1].to_vec();
    let mut parents = lists;
    // Sizes of the lists at hand, one for all or one for each list of the input.
    for (i, size) in sizes.iter().enumerate() {
        let fixed_size = usize::try_from(*size).ok().or(same.filter(|_| Some(i) == open));
        let first = i == 0 && level.nulls().is_some();
        let next: Layout = match fixed_size {
            Some(size) if size.checked_mul(parents).is_none() => {
                return refuse(&format!("size {i} is {size}, for {parents} lists"));
            }
            Some(size) if !first => Layout::Uniform { size, lists: parents },
            Some(size) => lists_like(layout, (0..lists).map(|l| if valid(l) { size } else { 0 }))?,
            None => {
                // As many lists per list of the input as the sizes before this one say.
                let before: usize =
                    sizes[..i].iter().filter_map(|s| usize::try_from(*s).ok()).product();
                let each = (0..lists).filter(|l| i == 0 || valid(*l));
                lists_like(layout, each.flat_map(|l| std::iter::repeat_n(of(l), before)))?
            }
        };
        let nulls = if i == 0 { level.nulls().cloned() } else { None };
        parents = next.children();
        axes.push(ListAxis::try_new(next, nulls)?);
    }
    axes.extend_from_slice(&array.axes()[at..]);
    RaggedArray::try_new(array.len(), axes, array.leaves().clone())
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
