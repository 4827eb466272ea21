//! Merges, adds, drops and reshapes levels of lists.

use super::gather::find_row_of_list;
use super::index::{new_axis, pick};
use super::levels::{merge_all_levels, merge_levels};
use super::shape::list_axis;
use crate::array::{Layout, ListAxis, RaggedArray, make_lists_like, resolve_axis};
use crate::error::{Error, Result};

/// Merges axis `axis` (2 or more, negative axes count from the innermost) into the level above:
/// each list of lists becomes one list, the concatenation of its inner lists.
///
/// Null lists of `axis` disappear, like empty lists; null lists of `axis - 1` stay null. Shares
/// leaves and other levels; allocates one offset buffer.
///
/// ```
/// # use serrate_core as serrate;
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
/// If the array has no such axis, and for axis 1, which would merge rows.
pub fn flatten(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    let inner = list_axis(array, axis)?;
    if inner == 1 {
        return Err(Error::invalid(format!(
            "axis {axis} is the outermost level of lists, so flattening it would merge rows; use unnest to get one row per element"
        )));
    }
    let mut axes = array.axes().to_vec();
    let below = axes.remove(inner - 1);
    axes[inner - 2] = merge_levels(&axes[inner - 2], &below)?;
    RaggedArray::try_new(array.len(), axes, array.leaves().clone())
}

/// Merges all levels: every row becomes one list of its leaves.
///
/// Arrays of at most one level stay unchanged. Null rows stay null; null lists within a row
/// disappear, like empty lists.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reshape::flatten_all;
/// // [[[1], [2, 3]], [[4]]]
/// let axes = vec![Offsets::from_lengths([2, 1])?.into(), Offsets::from_lengths([1, 2, 1])?.into()];
/// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3, 4])))?;
/// assert_eq!(flatten_all(&a)?.lengths(1)?, [3, 1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Never, because the lists of any valid array can be merged.
pub fn flatten_all(array: &RaggedArray) -> Result<RaggedArray> {
    match merge_all_levels(array)? {
        Some(lists) if array.axes().len() > 1 => {
            RaggedArray::try_new(array.len(), vec![lists], array.leaves().clone())
        }
        _ => Ok(array.clone()),
    }
}

/// Drops axis `axis` (1 or more, negative axes count from the innermost).
///
/// Each of its lists must have one element, which replaces the list. A null list becomes a null
/// element. If no list is null, copies nothing.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reshape::{squeeze, unsqueeze};
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// assert_eq!(squeeze(&unsqueeze(&a, 1)?, 1)?, a);
/// assert!(squeeze(&a, 1).is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis, `axis` is 0, or a valid list does not have exactly one element
/// (the message names the list).
pub fn squeeze(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    let at = list_axis(array, axis)?;
    let level = array.axis(at)?;
    let layout = level.layout();
    let valid = |i: usize| level.nulls().is_none_or(|n| n.is_valid(i));
    if let Some(list) = (0..layout.lists()).find(|i| layout.length(*i) != 1 && valid(*i)) {
        return Err(Error::invalid(format!(
            "list {list} of axis {at} (row {}) has {} element(s); only an axis of size 1 can be squeezed, so select one element of each list instead",
            find_row_of_list(array, at, list),
            layout.length(list)
        )));
    }
    pick(array, axis, 0)
}

/// Adds an axis of size 1 that becomes axis `axis` of the result: 1 wraps the content of each row
/// in a list, -1 wraps each leaf.
///
/// A null becomes the only element of its list. Copies nothing.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reshape::unsqueeze;
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// assert_eq!(unsqueeze(&a, 1)?.shape(), [Some(2), Some(1), None]);
/// assert_eq!(unsqueeze(&a, -1)?.shape(), [Some(2), None, Some(1)]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `axis` is 0, or the result cannot have such an axis.
pub fn unsqueeze(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    new_axis(array, resolve_axis(axis, array.ndim() + 1, "the array with a new axis")?)
}

/// Reshapes every list of axis `axis` (1 or more, negative axes count from the innermost): one new
/// axis per size replaces the axis.
///
/// Deeper levels are unchanged. One size may be -1: it is inferred from the number of elements,
/// list by list. Elements keep their order (row-major). Copies no leaf. Null lists stay null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reshape::reshape;
/// // [[1, 2, 3, 4], [5, 6]] becomes [[[1, 2], [3, 4]], [[5, 6]]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5, 6]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([4, 2])?.into()], leaves)?;
/// let b = reshape(&a, 1, &[-1, 2])?;
/// assert_eq!(b.shape(), [Some(2), None, Some(2)]);
/// assert_eq!(b.lengths(1)?, [2, 1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis or `axis` is 0; when there are no sizes, two sizes of -1 or other
/// negative sizes; when the elements of a list do not fit the sizes (the message names the list).
pub fn reshape(array: &RaggedArray, axis: i64, sizes: &[i64]) -> Result<RaggedArray> {
    let at = list_axis(array, axis)?;
    let level = array.axis(at)?;
    let layout = level.layout();
    let refuse = |why: &str| Err(refuse_sizes(sizes, why));
    let given = GivenSizes::parse(sizes)?;
    let valid = |i: usize| level.nulls().is_none_or(|n| n.is_valid(i));
    let lists = layout.lists();
    for list in (0..lists).filter(|i| valid(*i)) {
        let n = layout.length(list);
        if given.find_open_size(n).is_none() {
            return refuse(&format!(
                "list {list} of axis {at} (row {}) has {n} element(s), which do not fill the given sizes exactly; give sizes whose product is the number of elements (one size may be -1, to be inferred)",
                find_row_of_list(array, at, list)
            ));
        }
    }
    let open_size = |list: usize| given.find_open_size(layout.length(list)).unwrap_or(0);
    let same = match level.nulls() {
        None => (1..lists)
            .all(|i| open_size(i) == open_size(0))
            .then(|| if lists == 0 { 0 } else { open_size(0) }),
        Some(_) => None,
    };
    let mut axes = array.axes()[..at - 1].to_vec();
    let mut parents = lists;
    // One new level per size; for -1, the length of a list depends on the input list.
    for (i, size) in sizes.iter().enumerate() {
        let fixed_size = usize::try_from(*size).ok().or(same.filter(|_| Some(i) == given.open));
        let first = i == 0 && level.nulls().is_some();
        let next: Layout = match fixed_size {
            Some(size) if size.checked_mul(parents).is_none() => {
                return refuse(&format!(
                    "size {i} is {size} for each of {parents} lists, and the total number of elements exceeds 64 bits; give smaller sizes"
                ));
            }
            Some(size) if !first => Layout::Uniform { size, lists: parents },
            Some(size) => {
                make_lists_like(layout, (0..lists).map(|l| if valid(l) { size } else { 0 }))?
            }
            None => {
                // Number of lists of this level per input list: the product of the outer sizes.
                let before: usize =
                    sizes[..i].iter().filter_map(|s| usize::try_from(*s).ok()).product();
                let each = (0..lists).filter(|l| i == 0 || valid(*l));
                make_lists_like(
                    layout,
                    each.flat_map(|l| std::iter::repeat_n(open_size(l), before)),
                )?
            }
        };
        let nulls = if i == 0 { level.nulls().cloned() } else { None };
        parents = next.children();
        axes.push(ListAxis::try_new(next, nulls)?);
    }
    axes.extend_from_slice(&array.axes()[at..]);
    RaggedArray::try_new(array.len(), axes, array.leaves().clone())
}

/// The sizes that [`reshape`] gets. One of them may be open: -1, to be inferred.
struct GivenSizes {
    /// Index of the open size.
    open: Option<usize>,
    /// Product of the other sizes.
    fixed: usize,
}

impl GivenSizes {
    fn parse(sizes: &[i64]) -> Result<Self> {
        let refuse = |why: &str| Err(refuse_sizes(sizes, why));
        if sizes.is_empty() {
            return refuse("the list of sizes is empty; give at least one size");
        }
        let open = sizes.iter().position(|s| *s == -1);
        let mut fixed = 1usize;
        for (i, size) in sizes.iter().enumerate().filter(|(i, _)| Some(*i) != open) {
            if *size == -1 {
                return refuse(
                    "several sizes are -1, but only one size can be inferred; give 0 or more for the others",
                );
            }
            let Ok(number) = usize::try_from(*size) else {
                return refuse(&format!(
                    "size {i} is {size}; give 0 or more, or -1 to infer the size"
                ));
            };
            let Some(product) = fixed.checked_mul(number) else {
                return refuse(
                    "the product of the sizes does not fit in 64 bits; give smaller sizes",
                );
            };
            fixed = product;
        }
        Ok(Self { open, fixed })
    }

    /// Returns the size that replaces -1 in a list of `n` elements (1 if no size is -1); `None` if
    /// `n` does not fit the sizes.
    fn find_open_size(&self, n: usize) -> Option<usize> {
        match self.open {
            None => (n == self.fixed).then_some(1),
            Some(_) if self.fixed == 0 => (n == 0).then_some(0),
            Some(_) => n.is_multiple_of(self.fixed).then_some(n / self.fixed),
        }
    }
}

fn refuse_sizes(sizes: &[i64], why: &str) -> Error {
    Error::invalid(format!("reshape to {sizes:?}: {why}"))
}
