//! Counts the leaves of each list that equal one of several values, or tests whether any does.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use super::isin::isin;
use super::native::reinterpret_values;
use super::reduce::{AxisGroups, Reduction, group_along_axis, reduce};
use super::reshape::flatten_all;
use crate::array::{Layout, ListAxis, RaggedArray};
use crate::error::Result;

/// Counts the leaves that equal one of `values`, in every list of axis `axis`, or in every row if
/// `axis` is `None`.
///
/// Returns `Int64`. Equality is as in [`isin`]; null leaves equal no value. A null list gives null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::occurrences::count_values;
/// // [[1, 2, 1], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 1, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let ones: ArrayRef = Arc::new(Int32Array::from(vec![1]));
/// let found = count_values(&a, &ones, None)?;
/// assert_eq!(found.leaves().as_ref(), &Int64Array::from(vec![2, 0]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`isin`]; also when the array has no such axis.
pub fn count_values(
    array: &RaggedArray,
    values: &ArrayRef,
    axis: Option<i64>,
) -> Result<RaggedArray> {
    reduce(&isin(array, values)?, Reduction::Sum, axis)
}

/// Returns whether any leaf is one of `values`, for every list of axis `axis`, or for every row if
/// `axis` is `None`.
///
/// Nulls are as in [`count_values`]. A search for one integer, or for one string among the leaves
/// of a dictionary array, builds no mask.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, UInt16Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::occurrences::any_value;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(UInt16Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let two: ArrayRef = Arc::new(UInt16Array::from(vec![2]));
/// let found = any_value(&a, &two, None)?;
/// assert_eq!(found.leaves().as_boolean().iter().collect::<Vec<_>>(), [Some(true), Some(false)]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`isin`]; also when the array has no such axis.
pub fn any_value(array: &RaggedArray, values: &ArrayRef, axis: Option<i64>) -> Result<RaggedArray> {
    let Some(wanted) = Needle::new(array.leaves(), values)? else {
        return reduce(&isin(array, values)?, Reduction::Any, axis);
    };
    let flat;
    let (array, axis) = match axis {
        Some(axis) => (array, axis),
        None if array.axes().is_empty() => return find_any_in_rows(array, values),
        None => {
            flat = flatten_all(array)?;
            (&flat, -1)
        }
    };
    let lists = match group_along_axis(array, axis)? {
        AxisGroups::Lists(lists) if array.axes().last().is_some_and(|l| *l.layout() == lists) => {
            lists
        }
        _ => return reduce(&isin(array, values)?, Reduction::Any, Some(axis)),
    };
    let found = wanted.find_in_lists(array.leaves(), &lists)?;
    let (rows, mut axes, _) = array.clone().into_parts();
    let nulls = axes.pop().and_then(|level: ListAxis| level.nulls().cloned());
    RaggedArray::try_new(rows, axes, Arc::new(BooleanArray::new(found, nulls)))
}

fn find_any_in_rows(array: &RaggedArray, values: &ArrayRef) -> Result<RaggedArray> {
    reduce(&isin(array, values)?, Reduction::Any, None)
}

/// The bits of the only value to search for, or its key if the leaves are a dictionary.
struct Needle {
    bits: u64,
}

impl Needle {
    /// Returns `None` unless `values` is one integer for integer leaves, or one value with one
    /// dictionary key.
    fn new(leaves: &ArrayRef, values: &ArrayRef) -> Result<Option<Self>> {
        let t = leaves.data_type();
        if values.len() != 1 || values.logical_null_count() > 0 {
            return Ok(None);
        }
        if let Some(dictionary) = leaves.as_any_dictionary_opt() {
            let found = RaggedArray::try_new(
                dictionary.values().len(),
                Vec::new(),
                dictionary.values().clone(),
            )?;
            let found = isin(&found, values)?;
            let found = crate::array::nulls::find_true_bits(found.leaves().as_boolean());
            return Ok(match found.count_set_bits() {
                1 => found.set_indices().next().map(|key| Self { bits: key as u64 }),
                _ => None,
            });
        }
        if !t.is_integer() {
            return Ok(None);
        }
        // A value that the type of the leaves cannot represent becomes null.
        let options = arrow::compute::CastOptions { safe: true, ..Default::default() };
        if !values.data_type().is_integer() {
            return Ok(None);
        }
        let converted = arrow::compute::cast_with_options(values, t, &options)?;
        if converted.null_count() > 0 {
            return Ok(None);
        }
        Ok(Some(Self { bits: read_first_value_bits(&converted)? }))
    }

    fn find_in_lists(&self, leaves: &ArrayRef, lists: &Layout) -> Result<BooleanBuffer> {
        let keys = leaves.as_any_dictionary_opt().map(|d| d.keys().slice(0, leaves.len()));
        let leaves = keys.as_ref().unwrap_or(leaves);
        let same = |t: &DataType| reinterpret_values(leaves, t);
        Ok(match leaves.data_type().primitive_width() {
            Some(1) => search_lists::<UInt8Type>(&same(&DataType::UInt8)?, self.bits, lists),
            Some(2) => search_lists::<UInt16Type>(&same(&DataType::UInt16)?, self.bits, lists),
            Some(4) => search_lists::<UInt32Type>(&same(&DataType::UInt32)?, self.bits, lists),
            _ => search_lists::<UInt64Type>(&same(&DataType::UInt64)?, self.bits, lists),
        })
    }
}

fn read_first_value_bits(values: &ArrayRef) -> Result<u64> {
    fn read_first<T: ArrowPrimitiveType<Native: Into<u64>>>(values: &ArrayRef) -> u64 {
        values.as_primitive::<T>().values().first().map_or(0, |v| (*v).into())
    }
    let same = |t: &DataType| reinterpret_values(values, t);
    Ok(match values.data_type().primitive_width() {
        Some(1) => read_first::<UInt8Type>(&same(&DataType::UInt8)?),
        Some(2) => read_first::<UInt16Type>(&same(&DataType::UInt16)?),
        Some(4) => read_first::<UInt32Type>(&same(&DataType::UInt32)?),
        _ => read_first::<UInt64Type>(&same(&DataType::UInt64)?),
    })
}

/// Number of leaves that are compared with the value before a branch tests whether any is equal.
const STEP: usize = 128;

fn search_lists<T>(leaves: &ArrayRef, bits: u64, lists: &Layout) -> BooleanBuffer
where
    T: ArrowPrimitiveType<Native: TryFrom<u64>>,
{
    let leaves = leaves.as_primitive::<T>();
    let (flat, nulls) = (leaves.values(), leaves.nulls());
    let Ok(wanted) = T::Native::try_from(bits) else {
        return BooleanBuffer::new_unset(lists.lists());
    };
    BooleanBuffer::collect_bool(lists.lists(), |list| {
        let range = lists.range(list);
        let mut at = range.start;
        for step in flat[range].chunks(STEP) {
            if step.iter().fold(false, |found, v| found | (*v == wanted)) {
                // An equal leaf may be null: the buffer has an arbitrary value for a null leaf.
                let valid = |i: usize| nulls.is_none_or(|n| n.is_valid(at + i));
                if step.iter().enumerate().any(|(i, v)| *v == wanted && valid(i)) {
                    return true;
                }
            }
            at += step.len();
        }
        false
    })
}
