//! Arrow's list types, and conversion of nested lists from and to Arrow arrays.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, LargeListArray, ListArray,
    MutableArrayData, OffsetSizeTrait, make_array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};

use super::ranges::{gather_values, merge_ranges};
use super::{Layout, ListAxis, Offsets, RaggedArray};
use crate::error::{Error, Result};

/// An Arrow list type.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::datatypes::DataType;
/// use serrate::array::{ListKind, list_kind, list_of};
/// let lists = list_of(1, DataType::Int32);
/// assert_eq!(list_kind(&lists).map(|(kind, _)| kind), Some(ListKind::List));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// Lists of any length, with 32-bit offsets.
    List,
    /// Lists of any length, with 64-bit offsets.
    LargeList,
    /// Lists that all have this size, without offsets.
    FixedSizeList(i32),
}

/// Returns the list type and the field of the elements; `None` for a type without a [`ListKind`].
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::datatypes::DataType;
/// use serrate::array::{ListKind, list_kind, list_of};
/// let t = list_of(1, DataType::Int32);
/// let (kind, element) = list_kind(&t).unwrap();
/// assert_eq!((kind, element.data_type()), (ListKind::List, &DataType::Int32));
/// assert!(list_kind(&DataType::Int32).is_none());
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn list_kind(data_type: &DataType) -> Option<(ListKind, &FieldRef)> {
    match data_type {
        DataType::List(f) => Some((ListKind::List, f)),
        DataType::LargeList(f) => Some((ListKind::LargeList, f)),
        DataType::FixedSizeList(f, n) => Some((ListKind::FixedSizeList(*n), f)),
        _ => None,
    }
}

/// Returns the number of nested list levels of a type; 0 if the type is not a list.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::datatypes::DataType;
/// use serrate::array::{leaf_type, list_depth, list_of};
/// let t = list_of(2, DataType::Int32);
/// assert_eq!((list_depth(&t), leaf_type(&t)), (2, &DataType::Int32));
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn list_depth(data_type: &DataType) -> usize {
    list_kind(data_type).map_or(0, |(_, f)| 1 + list_depth(f.data_type()))
}

/// Returns the type of the leaves below all levels of lists.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::DataType;
/// use serrate::array::{leaf_type, list_of};
/// let codes = list_of(2, DataType::UInt16);
/// assert_eq!(leaf_type(&codes), &DataType::UInt16);
/// assert_eq!(leaf_type(&DataType::UInt16), &DataType::UInt16);
/// ```
pub fn leaf_type(data_type: &DataType) -> &DataType {
    list_kind(data_type).map_or(data_type, |(_, f)| leaf_type(f.data_type()))
}

/// Wraps a leaf type in `levels` levels of `List` with nullable elements named `item`.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::DataType;
/// use serrate::array::list_of;
/// assert_eq!(list_of(0, DataType::Int32), DataType::Int32);
/// assert_eq!(list_of(1, DataType::Int32), DataType::new_list(DataType::Int32, true));
/// ```
pub fn list_of(levels: usize, leaf: DataType) -> DataType {
    (0..levels).fold(leaf, |t, _| DataType::new_list(t, true))
}

impl RaggedArray {
    /// Converts an Arrow array: every level of List, LargeList or FixedSizeList becomes an axis.
    ///
    /// Shares offsets and leaves, even if `array` is a slice. If null lists have values, drops
    /// these values and copies all levels below. A FixedSizeList with nulls becomes a ragged axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int32Array, ListArray};
    /// # use arrow::datatypes::Int32Type;
    /// use serrate::array::RaggedArray;
    /// let rows = [Some(vec![Some(1), Some(2)]), None, Some(vec![])];
    /// let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(rows);
    /// let lists: ArrayRef = Arc::new(lists);
    /// let a = RaggedArray::try_from_arrow(&lists)?;
    /// assert_eq!((a.len(), a.lengths(1)?), (3, vec![2, 0, 0]));
    /// assert_eq!(a.leaves().as_ref(), &Int32Array::from(vec![1, 2]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// For a ListView or LargeListView.
    pub fn try_from_arrow(array: &ArrayRef) -> Result<Self> {
        Self::try_from_arrow_levels(array, usize::MAX)
    }

    /// Converts an Arrow array like [`try_from_arrow`](Self::try_from_arrow), but only its outer
    /// `levels` levels of lists become axes; the lists below become the leaves.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[[1], [2, 3]], [[4]]]
    /// let axes = vec![Offsets::from_lengths([2, 1])?.into(), Offsets::from_lengths([1, 2, 1])?.into()];
    /// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3, 4])))?;
    /// let outer = RaggedArray::try_from_arrow_levels(&a.to_arrow()?, 1)?;
    /// assert_eq!((outer.ndim(), outer.leaves().len()), (2, 3));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`try_from_arrow`](Self::try_from_arrow), for the outer `levels` levels.
    pub fn try_from_arrow_levels(array: &ArrayRef, levels: usize) -> Result<Self> {
        let rows = array.len();
        let mut axes = Vec::new();
        let mut current = array.clone();
        while axes.len() < levels {
            let (axis, child) = match current.data_type() {
                DataType::List(_) => open_list(current.as_list::<i32>())?,
                DataType::LargeList(_) => open_list(current.as_list::<i64>())?,
                DataType::FixedSizeList(_, _) => open_fixed_list(current.as_fixed_size_list())?,
                found @ (DataType::ListView(_) | DataType::LargeListView(_)) => {
                    return Err(Error::type_of(
                        "the array to convert to a ragged array",
                        "a List, LargeList or FixedSizeList (cast the array first)",
                        found,
                    ));
                }
                _ => break,
            };
            axes.push(axis);
            current = child;
        }
        Self::try_new(rows, axes, current)
    }

    /// Converts to Arrow lists with nullable elements named `item`: `LargeList` for 64-bit offsets,
    /// `FixedSizeList` for uniform axes, otherwise `List`.
    ///
    /// Leaves are not copied; offsets are copied only if they do not start at zero.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, ListArray};
    /// # use arrow::datatypes::Int32Type;
    /// use serrate::array::RaggedArray;
    /// let rows = [Some(vec![Some(1), Some(2)]), None, Some(vec![])];
    /// let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(rows);
    /// let lists: ArrayRef = Arc::new(lists);
    /// let a = RaggedArray::try_from_arrow(&lists)?;
    /// assert_eq!(&a.to_arrow()?, &lists);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a uniform axis has lists of more than 2^31 - 1 elements, the maximum of a FixedSizeList.
    pub fn to_arrow(&self) -> Result<ArrayRef> {
        let mut current = self.leaves().clone();
        for axis in self.axes().iter().rev() {
            let item = Arc::new(Field::new_list_field(current.data_type().clone(), true));
            let kind = match axis.layout() {
                Layout::Ragged(Offsets::I32(_)) => ListKind::List,
                Layout::Ragged(Offsets::I64(_)) => ListKind::LargeList,
                Layout::Uniform { size, .. } => ListKind::FixedSizeList(to_fixed_size(*size)?),
            };
            current = wrap_in_lists(axis.layout(), axis.nulls().cloned(), kind, item, current)?;
        }
        Ok(current)
    }

    /// Converts to lists of the exact type `target`, with one list level per axis after the rows.
    ///
    /// Leaves are not copied; offsets are copied if their width differs or they do not start at
    /// zero.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, ListArray};
    /// # use arrow::datatypes::{DataType, Int32Type};
    /// use serrate::array::RaggedArray;
    /// let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]);
    /// let lists: ArrayRef = Arc::new(lists);
    /// let large = DataType::new_large_list(DataType::Int32, true);
    /// let a = RaggedArray::try_from_arrow(&lists)?;
    /// assert_eq!(a.to_arrow_as(&large)?.data_type(), &large);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the types do not match, or a list that is not null does not have the size of its
    /// FixedSizeList.
    pub fn to_arrow_as(&self, target: &DataType) -> Result<ArrayRef> {
        let levels = self.axes().iter().map(|axis| (axis.layout(), axis.nulls().cloned()));
        build_lists_as(levels, self.leaves().clone(), target)
    }
}

/// Builds an array of type `target` from leaves and levels of lists, outermost level first. Returns
/// an error if `target` does not have these levels, or if its leaves have another type.
pub fn build_lists_as<'a>(
    levels: impl Iterator<Item = (&'a Layout, Option<NullBuffer>)>,
    leaves: ArrayRef,
    target: &DataType,
) -> Result<ArrayRef> {
    let mut open = Vec::with_capacity(list_depth(target));
    let mut current = target;
    for level in levels {
        let (kind, field) = list_kind(current).ok_or_else(|| {
            Error::type_of(
                "the target type of a conversion to Arrow",
                "a list type with one level per list axis of the array (choose such a type)",
                target,
            )
        })?;
        open.push((level, kind, field));
        current = field.data_type();
    }
    if leaves.data_type() != current {
        return Err(Error::type_of(
            "the leaves to convert to Arrow",
            format!("{current} (cast the leaves first)"),
            leaves.data_type(),
        ));
    }
    let mut out = leaves;
    while let Some(((layout, nulls), kind, field)) = open.pop() {
        out = wrap_in_lists(layout, nulls, kind, Arc::clone(field), out)?;
    }
    Ok(out)
}

fn open_list<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> Result<(ListAxis, ArrayRef)> {
    let offsets = list.offsets();
    let (first, last) = (offsets[0].as_usize(), offsets[list.len()].as_usize());
    let child = match list.values() {
        // Share a whole array: `slice` recounts nulls, which takes as long as summing the values.
        whole if first == 0 && last == whole.len() => Arc::clone(whole),
        part => part.slice(first, last - first),
    };
    let nulls = list.nulls().filter(|n| n.null_count() > 0);
    let hides =
        nulls.is_some_and(|n| (0..n.len()).any(|i| n.is_null(i) && offsets[i + 1] > offsets[i]));
    let offsets = Offsets::from(offsets.clone());
    match nulls {
        Some(nulls) if hides => drop_null_children(nulls, |i| offsets.range(i), &child),
        nulls => Ok((ListAxis::try_new(offsets, nulls.cloned())?, child)),
    }
}

fn open_fixed_list(list: &FixedSizeListArray) -> Result<(ListAxis, ArrayRef)> {
    let size = usize::try_from(list.value_length()).map_err(|_| {
        Error::invalid(format!(
            "the array is a FixedSizeList of size {}; use a size of 0 or more",
            list.value_length()
        ))
    })?;
    let nulls = list.nulls().filter(|n| n.null_count() > 0);
    match nulls {
        Some(nulls) => drop_null_children(nulls, |i| i * size..(i + 1) * size, list.values()),
        None => Ok((Layout::Uniform { size, lists: list.len() }.into(), list.values().clone())),
    }
}

fn drop_null_children(
    nulls: &NullBuffer,
    range: impl Fn(usize) -> std::ops::Range<usize>,
    child: &ArrayRef,
) -> Result<(ListAxis, ArrayRef)> {
    let keep = |i: usize| if nulls.is_valid(i) { range(i) } else { 0..0 };
    let offsets = Offsets::from_lengths((0..nulls.len()).map(|i| keep(i).len()))?;
    // Do not use Arrow's `take`: it is slower, and loses the length of an array of empty
    // FixedSizeLists.
    let child = gather_values(child, &merge_ranges((0..nulls.len()).map(keep)))?;
    Ok((ListAxis::try_new(offsets, Some(nulls.clone()))?, child))
}

pub(crate) fn to_fixed_size(size: usize) -> Result<i32> {
    i32::try_from(size).map_err(|_| {
        Error::invalid(format!(
            "lists of {size} elements do not fit a FixedSizeList, whose size is at most 2^31 - 1; convert them to List or LargeList"
        ))
    })
}

fn wrap_in_lists(
    layout: &Layout,
    nulls: Option<NullBuffer>,
    kind: ListKind,
    field: FieldRef,
    child: ArrayRef,
) -> Result<ArrayRef> {
    Ok(match kind {
        ListKind::List => {
            let offsets = layout.to_offsets()?.to_i32()?;
            Arc::new(ListArray::try_new(field, offsets, child, nulls)?)
        }
        ListKind::LargeList => {
            let offsets = layout.to_offsets()?.to_i64();
            Arc::new(LargeListArray::try_new(field, offsets, child, nulls)?)
        }
        ListKind::FixedSizeList(n) => {
            let lists = layout.lists();
            let size = usize::try_from(n).map_err(|_| {
                Error::invalid(format!(
                    "the target type is a FixedSizeList of size {n}; use a size of 0 or more"
                ))
            })?;
            let is_valid = |i| nulls.as_ref().is_none_or(|n| n.is_valid(i));
            if let Some(i) = (0..lists).find(|i| is_valid(*i) && layout.length(*i) != size) {
                return Err(Error::invalid(format!(
                    "list {i} has {} element(s), but every list of the FixedSizeList must have {size}; convert to List or LargeList",
                    layout.length(i)
                )));
            }
            let child = match &nulls {
                None => child,
                // A null list has no elements in `layout`, but `size` elements in a FixedSizeList.
                Some(n) => {
                    let data = child.to_data();
                    let mut all = MutableArrayData::new(vec![&data], true, child.len());
                    for i in 0..lists {
                        match layout.range(i) {
                            r if n.is_valid(i) => all.try_extend(0, r.start, r.end)?,
                            _ => all.try_extend_nulls(size)?,
                        }
                    }
                    make_array(all.freeze())
                }
            };
            Arc::new(FixedSizeListArray::try_new_with_length(field, n, child, nulls, lists)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::Int32Array;
    use arrow::datatypes::Int32Type;

    use super::*;

    /// Returns a FixedSizeList array in which every third list is null, but still has values in
    /// `child`.
    fn fixed(size: i32, child: ArrayRef, lists: usize) -> ArrayRef {
        let field = Arc::new(Field::new_list_field(child.data_type().clone(), true));
        let nulls = (0..lists).map(|i| i % 3 > 0).collect();
        let list = FixedSizeListArray::try_new_with_length(field, size, child, Some(nulls), lists);
        Arc::new(list.unwrap())
    }

    #[test]
    fn null_fixed_size_lists_at_every_level_and_of_no_size() {
        let leaves: ArrayRef = Arc::new(Int32Array::from_iter_values(0..24));
        for (outer, inner) in [(3, 2), (6, 0), (0, 2)] {
            let inner_lists = if inner == 0 { 24 } else { 24 / inner };
            let child = if inner == 0 { leaves.slice(0, 0) } else { leaves.clone() };
            let middle = fixed(inner, child, usize::try_from(inner_lists).unwrap());
            let lists = if outer == 0 { 4 } else { middle.len() / usize::try_from(outer).unwrap() };
            let middle = if outer == 0 { middle.slice(0, 0) } else { middle };
            let whole = fixed(outer, middle, lists);
            let ragged = RaggedArray::try_from_arrow(&whole).unwrap();
            let back = ragged.to_arrow_as(whole.data_type()).unwrap();
            assert_eq!(&*back, &*whole, "sizes {outer} and {inner}");
            let as_lists = ragged.to_arrow().unwrap();
            assert_eq!(RaggedArray::try_from_arrow(&as_lists).unwrap(), ragged);
            assert_eq!(as_lists.as_list::<i32>().len(), lists);
        }
        let hidden = RaggedArray::try_from_arrow(&fixed(2, leaves, 12)).unwrap();
        let kept = hidden.leaves().as_primitive::<Int32Type>().values();
        assert_eq!(kept[..4], [2, 3, 4, 5]);
        assert_eq!(kept.len(), 16);
    }
}
